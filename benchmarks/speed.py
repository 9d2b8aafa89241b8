"""Speed and memory, in one process, interleaved and repeated: `python benchmarks/speed.py [--usps usps_16x16.npz]`.

Prints tables and writes the same figures as JSON (--json). The peer is tomotopy's LDA (pip install bayescase[peers]), given
every cell as a token, with the same number of threads. Ratios within this run are what counts; the machine is noisy.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table

N, P, V = 9298, 256, 7
WARM, REPEATS, PER_REPEAT = 20, 9, 20
console = Console(width=120)


def usps_like(path=None):
    """(N, P) values 0 … 6: the real USPS digits if a path is given, else cases from ten sharp clusters."""
    if path:
        with np.load(path) as file:
            pixels = np.vstack([file["X_train"], file["X_test"]])
        return np.minimum(pixels.astype(int) * V // 256, V - 1)
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(V, 0.15), size=(10, P))
    labels = rng.integers(10, size=N)
    edges = np.cumsum(phi, axis=2)
    return (rng.random((N, P, 1)) > edges[labels]).sum(axis=2).clip(max=V - 1)


def data_of(values):
    from bayescase.state import make_data

    offset = np.arange(P + 1) * V
    return make_data((values + offset[:-1]).astype(np.int16), offset)


class Ours:
    """One chain of bayescase; `run(n)` does n complete iterations."""

    def __init__(self, data, S, threads, sampler="rows", seed=0):
        from bayescase.kernels import CpuCandidates, CpuRows, Driver, Threads, stream, sweeps
        from bayescase.sampling.starts import init
        from bayescase.state import count_observed, make_hyper, new_state, smallest_int

        self.hyper = make_hyper(S, data.x.shape[1], alpha=0.01, lam=1.0, c=50.0, q=0.8)
        self.z = np.empty(data.x.shape, dtype=smallest_int(S))
        init(data, self.hyper, "seeded", np.random.default_rng(seed), out=self.z)
        pool = Threads(data.offset, S, threads, threads)
        self.rows = CpuRows(pool, data.x, self.z, data.z_held, S)
        self.candidates = CpuCandidates(pool, data.candidates, data.log_weight)
        self.driver = Driver(data.book, data.omega_held, count_observed(data.x), self.hyper, pool)
        self.state, self.sweep, self.stream, self.seed = new_state(data, S), sweeps[sampler], stream, seed
        self.begin()

    def begin(self):
        """Begin anew, at the labels z."""
        self.state.n_sv[:], self.state.n_rows[:] = self.rows.recount(len(self.state.n_sv))
        self.driver.update_p_omega(self.hyper, self.state, self.candidates, self.stream(self.seed))
        self.t = 0

    def run(self, n):
        trace = []
        for _ in range(n):
            key = self.stream(self.seed, 1, self.t)
            log_joint, moved = self.sweep(self.driver, self.rows, self.candidates, self.hyper, self.state, key)
            trace.append((log_joint, moved.purity / len(self.z)))
            self.t += 1
        return np.array(trace)

    def values(self):
        """(ΣV, S) E[φ | z, p, ω]."""
        mean, none = np.zeros(self.state.n_sv.shape), np.zeros((0, len(self.state.p)), dtype=np.float32)
        self.driver.add_values(self.hyper, self.state, np.arange(len(self.state.p)), 1.0, mean, none)
        return mean


class Tomotopy:
    """tomotopy's LDA over the same cells."""

    def __init__(self, values, S, threads):
        from bayescase.lda import new_lda

        self.threads = threads
        self.model = new_lda(S, alpha=0.01 / S, eta=1.0, seed=1)
        for row in values:
            self.model.add_doc([f"{j}_{v}" for j, v in enumerate(row)])

    def run(self, n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.train(n, workers=self.threads)


def iteration_speed(values):
    """Cells per second of complete iterations, ours and tomotopy's, one and two threads."""
    data = data_of(values)
    figures = {}
    for S in (10, 50):
        runners = {}
        for threads in (1, 2):
            runners["bayescase", threads] = Ours(data, S, threads)
            runners["tomotopy", threads] = Tomotopy(values, S, threads)
        for runner in runners.values():
            runner.run(WARM)
        seconds = {name: [] for name in runners}
        for _ in range(REPEATS):
            for name, runner in runners.items():
                start = time.perf_counter()
                runner.run(PER_REPEAT)
                seconds[name].append((time.perf_counter() - start) / PER_REPEAT)
        speed = {name: values.size / np.array(times) / 1e6 for name, times in seconds.items()}
        figures[S] = {
            "cells_per_second_M": {f"{name} x{threads}": median(v) for (name, threads), v in speed.items()},
            "ratio_to_tomotopy": {
                threads: median(speed["bayescase", threads] / speed["tomotopy", threads]) for threads in (1, 2)
            },
            "two_threads_to_one": median(speed["bayescase", 2] / speed["bayescase", 1]),
        }
    table = Table("clusters", "bayescase ×1", "tomotopy ×1", "ratio", "bayescase ×2", "tomotopy ×2", "ratio", "2 threads / 1")
    for S, f in figures.items():
        c, r = f["cells_per_second_M"], f["ratio_to_tomotopy"]
        table.add_row(
            str(S), f"{c['bayescase x1']:.0f}", f"{c['tomotopy x1']:.1f}", f"[bold]{r[1]:.1f}[/]",
            f"{c['bayescase x2']:.0f}", f"{c['tomotopy x2']:.1f}", f"[bold]{r[2]:.1f}[/]",
            f"[bold]{f['two_threads_to_one']:.2f}[/]",
        )  # fmt: skip
    table.title = "One complete iteration, million cells per second (medians)"
    console.print(table)
    return figures


def median(values):
    return float(statistics.median(values))


def samplers(values, n_cases=2000, seconds=20.0):
    """rows against collapsed on a subset: time to the same held-out log probability, and effective samples per second."""
    from scipy.special import logsumexp

    from bayescase.kernels import PARTICLES, log_probability, make_fold

    order = np.random.default_rng(1).permutation(len(values))
    data, held_out = data_of(values[order[:n_cases]]), data_of(values[order[n_cases : n_cases + 200]]).x
    curves, effective = {}, {}
    for sampler in ("rows", "collapsed"):
        chain = Ours(data, 10, 1, sampler)
        chain.z[:] = np.random.default_rng(2).integers(10, size=(n_cases, 1))  # a random label per case, for both
        chain.begin()
        spent, curve, trace = 0.0, [], []
        while spent < seconds:
            start = time.perf_counter()
            trace.append(chain.run(10))
            spent += time.perf_counter() - start
            if len(trace) in (1, 2, 4, 8, 16) or len(trace) % 32 == 0:
                out = np.zeros((len(held_out), PARTICLES))
                log_probability(held_out, make_fold(data.offset, chain.hyper, chain.values()), np.uint64(1), out)
                curve.append((spent, float((logsumexp(out, axis=1) - np.log(PARTICLES)).mean())))
        trace = np.concatenate(trace)
        kept = trace[len(trace) // 2 :]
        per_second = len(trace) / spent
        curves[sampler] = curve
        effective[sampler] = {
            name: effective_size(kept[:, k]) / len(kept) * per_second for k, name in enumerate(("log joint", "purity"))
        }
    target = min(max(v for _, v in curve) for curve in curves.values())
    reach = {name: next(t for t, v in curve if v >= target - 0.05) for name, curve in curves.items()}
    table = Table(
        "sampler", "held-out log probability at the end", "seconds to the lower of the two", "ESS/s log joint", "ESS/s purity"
    )
    for name, curve in curves.items():
        table.add_row(
            name,
            f"{curve[-1][1]:.2f}",
            f"{reach[name]:.2f}",
            f"{effective[name]['log joint']:.2f}",
            f"{effective[name]['purity']:.2f}",
        )
    table.title = f"Samplers, {n_cases} cases, S = 10, {seconds:.0f} s each, one thread"
    console.print(table)
    return {"held_out": curves, "seconds_to_target": reach, "effective_per_second": effective, "target": target}


def effective_size(x):
    """Effective sample size by Geyer's initial positive sequence."""
    x = x - x.mean()
    n = len(x)
    spectrum = np.abs(np.fft.rfft(x, 2 * n)) ** 2
    rho = np.fft.irfft(spectrum)[:n]
    if rho[0] == 0:
        return float(n)
    rho /= rho[0]
    pairs = rho[0 : n - 1 : 2] + rho[1:n:2]
    stop = int(np.argmax(pairs < 0)) if (pairs < 0).any() else len(pairs)
    return float(n / max(2 * pairs[:stop].sum() - 1, 1e-9))


MEMORY = """
import sys, numpy as np, warnings
sys.path.insert(0, {here!r})
from speed import usps_like
from bayescase import BayesianCaseModel
def status(field):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(field))
X = usps_like({usps!r}).astype(np.uint8)
BayesianCaseModel(10, n_iter=20, n_jobs=2, random_state=0).fit(X[:300])  # compile first
import gc; gc.collect()
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
BayesianCaseModel(10, n_iter=40, n_chains={chains}, n_jobs=2, random_state=0).fit(X)
print((status("VmHWM") - before) / X.size - 2)  # 2 bytes a cell is the encoded input
"""

SPARSE = """
import resource, warnings
import scipy.sparse
import bayescase.kernels
from bayescase import BayesianCaseModel
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
X = scipy.sparse.random_array((20_000, 200), density=0.05, format="csr", rng=0)
warnings.simplefilter("ignore")
BayesianCaseModel(20, n_iter=200, random_state=0, n_jobs=2).fit(X)
print(peak() - before)
"""
FIRST_FIT = """
import time; start = time.perf_counter()
import numpy as np
from bayescase import BayesianCaseModel
X = np.random.default_rng(0).integers(7, size=(500, 256))
X[:, 0] = X[:, 0] % 2
BayesianCaseModel(10, n_iter=20, random_state=0).fit(X)
print(time.perf_counter() - start)
"""


def footprint(usps):
    """Bytes a cell over the encoded input, import time, and the first fit from a cold compile cache."""
    here = os.path.dirname(os.path.abspath(__file__))

    def run(code, **env):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **env}
        )
        return float(done.stdout.split()[-1])

    imports = [
        run("import time; t = time.perf_counter(); import bayescase; print(time.perf_counter() - t)") for _ in range(REPEATS)
    ]
    with tempfile.TemporaryDirectory() as cache:
        first = run(FIRST_FIT, NUMBA_CACHE_DIR=cache)
    figures = {
        "bytes_a_cell": {chains: run(MEMORY.format(here=here, usps=usps, chains=chains)) for chains in (1, 4)},
        "sparse_MiB": run(SPARSE),
        "import_seconds": median(imports),
        "first_fit_seconds": first,
    }
    table = Table("what", "figure", title="Footprint")
    for chains, value in figures["bytes_a_cell"].items():
        table.add_row(
            f"peak memory of a fit over the encoded input, {chains} chain{'s' * (chains > 1)}", f"{value:.2f} bytes a cell"
        )
    table.add_row(
        "the same for 20,000 × 200 sparse text, 4 chains, 200 sweeps, over the imports", f"{figures['sparse_MiB']:.0f} MiB"
    )
    table.add_row("import bayescase (median)", f"{figures['import_seconds']:.3f} s")
    table.add_row("first fit, cold compile cache, import included", f"{first:.1f} s")
    console.print(table)
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--usps", help="npz with X_train and X_test of the USPS digits; simulated data if absent")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--only", choices=["iteration", "samplers", "footprint"], help="one part only")
    args = parser.parse_args()
    values = usps_like(args.usps)
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    kind = "USPS digits" if args.usps else "simulated data"
    console.print(f"{machine}, {kind} {values.shape[0]} × {values.shape[1]} × {V}")
    parts = {
        "footprint": lambda: footprint(args.usps),
        "iteration": lambda: iteration_speed(values),
        "samplers": lambda: samplers(values),
    }
    figures = {name: part() for name, part in parts.items() if args.only in (None, name)}
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
