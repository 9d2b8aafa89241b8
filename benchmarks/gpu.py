"""How fast a GPU sweeps: python benchmarks/gpu.py [--fit] [--device cuda]

Tables of cases around prototypes, five values a feature. A sweep is everything: φ and the tables by the driver, labels, and
prototypes with their subspaces; the parts are timed in further sweeps, kernel by kernel. Roofline: what a sweep must read and
compute, beside what it took. With --fit a whole fit, and where its seconds went; without a GPU, --device cpu says the same.
"""

import argparse
import functools
import threading
import time
import warnings
from collections import defaultdict
from contextlib import ExitStack
from unittest import mock

import numpy as np

from bayescase import BayesianCaseModel, estimator, fitted
from bayescase.kernels import Driver, stream, sweeps
from bayescase.kernels.cuda.cells import DeviceCells
from bayescase.kernels.cuda.engine import CudaEngine
from bayescase.kernels.cuda.machine import Cuda
from bayescase.kernels.cuda.rows import CudaRows
from bayescase.sampling import chain, posterior, run
from bayescase.sampling.plan import prototypes_every
from bayescase.state import make_data, make_hyper, new_state

TABLES = (  # cases, features, clusters, α, goal in G cells/s
    (4_000_000, 50, 10, 0.01, 80),
    (4_000_000, 50, 50, 0.01, 40),
    (40_000_000, 50, 10, 0.01, 120),
    (1_000_000, 200, 10, 0.01, None),
    (1_000_000, 50, 10, 0.5, None),
    (20_000, 50, 10, 0.01, None),
)
VALUES, COPIED = 5, 0.6  # share of a case's values that are its prototype's, the others being random


def cases(N, P, S, dtype=np.uint8, seed=1):
    """(values 0 … 4 of N cases, the cluster of each)."""
    rng = np.random.default_rng(seed)
    truth, prototypes = rng.integers(S, size=N), rng.integers(VALUES, size=(S, P)).astype(dtype)
    x, step = np.empty((N, P), dtype), 1 << 18
    for lo in range(0, N, step):
        of = truth[lo : lo + step]
        own = rng.integers(256, size=(len(of), P), dtype=np.uint8) < COPIED * 256
        x[lo : lo + step] = np.where(own, prototypes[of], rng.integers(VALUES, size=(len(of), P), dtype=np.uint8))
    return x, truth


class Chain:
    """A chain that has settled, on the device."""

    def __init__(self, machine, N, P, S, alpha):
        x, truth = cases(N, P, S, np.int16)
        x += np.arange(P, dtype=np.int16) * VALUES
        data, self.hyper = make_data(x, np.arange(P + 1) * VALUES), make_hyper(S, P, alpha, 1.0, 10.0, 0.5)
        n_i = np.zeros(P + 1, dtype=np.int64)
        n_i[P] = N
        self.engine = CudaEngine(data, S, 1, 1, machine)
        self.driver, self.rows, self.state = (
            Driver(data, n_i, self.hyper, self.engine.threads),
            self.engine.rows(0),
            new_state(data, S),
        )
        self.rows.put_labels(np.repeat(truth.astype(self.rows.z.dtype), P))
        self.state.n_sv[:], self.state.n_rows[:] = self.rows.recount(len(self.state.n_sv))
        self.driver.update_p_omega(self.hyper, self.state, self.engine.candidates, stream(1, 0))
        self.every = prototypes_every(S, N * P)
        self.n = 0
        self.run(10)

    def run(self, n):
        """Seconds of a sweep."""
        started = time.perf_counter()
        for _ in range(n):
            self.n += 1
            now, then, draw_p = stream(2, self.n), stream(2, self.n + 1), self.n % self.every == 0
            sweeps["rows"](
                self.driver, self.rows, self.engine.candidates, self.hyper, self.state, now, then=then, draw_p=draw_p
            )
        return (time.perf_counter() - started) / n

    def kernels(self, machine, n=10):
        """Milliseconds of each kernel."""
        launch, events, found = self.engine.cells.launch, machine.cupy.cuda.Event, defaultdict(list)

        def timed(name, *rest):
            before, after = events(), events()
            before.record()
            launch(name, *rest)
            after.record()
            after.synchronize()
            found[name].append(machine.cupy.cuda.get_elapsed_time(before, after))

        self.engine.cells.launch = timed
        self.run(n)
        for _ in range(3):
            self.rows.overlap()
            self.rows.add_memberships(self.hyper, np.arange(len(self.hyper.beta)), 0.1)
        self.engine.cells.launch = launch
        return {name: float(np.median(times)) for name, times in found.items()}


def copy_rate(machine, size=1 << 32):
    """Bytes a second that a copy on the device reads and writes."""
    xp, best = machine.cupy, np.inf
    a, b = xp.ones(size, dtype=np.uint8), xp.empty(size, dtype=np.uint8)
    for _ in range(5):
        before, after = xp.cuda.Event(), xp.cuda.Event()
        before.record()
        b[:] = a
        after.record()
        after.synchronize()
        best = min(best, xp.cuda.get_elapsed_time(before, after) / 1e3)
    return 2 * size / best


def report(machine):
    rate = copy_rate(machine)
    print(f"copy on the device: {rate / 1e12:.2f} TB/s, {machine.n_sm} multiprocessors")
    print("cases × features, clusters, α: sweep, speed (goal); least bytes, share of the copy's speed; rows listed")
    for N, P, S, alpha, goal in TABLES:
        chain = Chain(machine, N, P, S, alpha)
        seconds = np.median([chain.run(10 if N > 1e7 else 20) for _ in range(3)])
        listed = int(chain.rows.workers.desks[0].moved.here["moved"][3])
        least = 2 * N * P + 4 * N  # codes once for labels and once for prototypes; the labels of rows
        words = f"{N:,} × {P}, {S}, {alpha}: {1e3 * seconds:.2f} ms, {N * P / seconds / 1e9:.1f} G cells/s"
        words += f" ({goal})" if goal else ""
        print(f"{words}; {least / 1e6:.0f} MB: {least / seconds / rate:.1%}; {listed / N:.2%}")
        print("   ", ", ".join(f"{name} {ms:.3f}" for name, ms in chain.kernels(machine).items()), "ms", flush=True)
        chain.engine.close()
        del chain
        machine.cupy.get_default_memory_pool().free_all_blocks()


STAGES = {  # what is called, and what it does
    "reading": [(estimator, "read"), (estimator, "fit_encoder"), (estimator, "prepare")],
    "chains": [(run.Run, "__init__")],
    "device": [(Cuda, "__init__"), (Cuda, "compile"), (DeviceCells, "__init__"), (CudaRows, "__init__")],
    "start": [(chain.Chain, "begin"), (chain.Chain, "count")],
    "search": [(chain.Chain, "search"), (chain.Chain, "find")],
    "runs": [(chain, name) for name in ("few_cases", "open_engine", "fresh", "crossed")] + [(chain.Chain, "one_each")],
    "sweeps": [(chain.Chain, name) for name in ("step", "sweep", "note", "keep")],
    "driver": [(Driver, "update_phi"), (Driver, "update_p_omega"), (CudaRows, "update_z"), (posterior.Accumulator, "add")],
    "results": [(run.Run, "draws"), (fitted.Fitted, "of_draws"), (BayesianCaseModel, "_show")],
    "parts": [(fitted, name) for name in ("row_hashes", "equal_hashes", "summarise", "mean_hyper")],
    "shown": [(fitted.Fitted, name) for name in ("prototype_ranking", "labels", "homes", "diagnostics")],
}


class Split:
    """Seconds of what a fit calls, each beneath what called it."""

    def __init__(self):
        self.seconds, self.calls, self.order = defaultdict(float), defaultdict(int), {}
        self.within = threading.local()

    def timed(self, name, function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            above = getattr(self.within, "path", ())
            self.within.path, started = (path := (*above, name)), time.perf_counter()
            self.order.setdefault(path, len(self.order))
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[path] += time.perf_counter() - started
                self.calls[path] += 1
                self.within.path = above

        return call

    def watch(self):
        """Time them while the context lasts."""
        stack = ExitStack()
        for owner, name in (place for places in STAGES.values() for place in places):
            plain, called = vars(owner)[name], f"{owner.__name__.rpartition('.')[2]}.{name}"
            if isinstance(plain, functools.cached_property):
                again = functools.cached_property(self.timed(called, plain.func))
                again.__set_name__(owner, name)
            elif isinstance(plain, classmethod):
                again = classmethod(self.timed(called, plain.__func__))
            else:
                again = self.timed(called, plain)
            stack.enter_context(mock.patch.object(owner, name, again))
        return stack

    def show(self, least=0.02):
        """A tree, in the order of first calls; what took less is left out. Chains side by side are added up."""
        for path in sorted(self.order, key=lambda path: [self.order[path[: k + 1]] for k in range(len(path))]):
            if self.seconds[path] >= least:
                print(f"{self.seconds[path]:10.2f} s {self.calls[path]:7,} ×  {'    ' * (len(path) - 1)}{path[-1]}", flush=True)


def report_fit(device, n_iter, n_jobs, n_cases, chains):
    """A fit from a NumPy array to labels."""
    x, truth = cases(n_cases, 50, 10)
    for n_chains in chains:
        split, started = Split(), time.perf_counter()
        first = []
        settings = {
            "n_iter": n_iter,
            "n_chains": n_chains,
            "init": "cases",
            "random_state": 0,
            "n_jobs": n_jobs,
            "device": device,
        }
        with warnings.catch_warnings(), split.watch():
            warnings.simplefilter("ignore")
            model = BayesianCaseModel(10, **settings).fit(x, callback=lambda report: first.append(time.perf_counter()))
        done = time.perf_counter()
        agree = sum(np.bincount(model.labels_[truth == s]).max() for s in range(10)) / len(truth)
        swept = first[-1] - first[0]
        print(
            f"fit of {n_iter} sweeps, {n_chains} chains: {done - started:.1f} s: {first[0] - started:.1f} s "
            f"to the first sweep, {swept:.1f} s sweeps ({n_chains * (len(first) - 1) * x.size / swept / 1e9:.0f} G cells/s), "
            f"{done - first[-1]:.1f} s results; {agree:.1%} of the cases in their cluster",
            flush=True,
        )
        split.show()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--fit", type=int, metavar="SWEEPS", help="fit a table instead, and say where the seconds went")
    parser.add_argument(
        "--chains", type=int, nargs="+", default=[1, 1, 4], help="of the fits; the first makes the device ready"
    )
    parser.add_argument("--cases", type=int, default=4_000_000, help="of the table that is fitted")
    parser.add_argument("--jobs", type=int, default=-1)
    args = parser.parse_args()
    if args.fit:
        report_fit(args.device, args.fit, args.jobs, args.cases, args.chains)
    else:
        report(Cuda(args.device))
