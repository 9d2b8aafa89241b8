"""Speed and memory, in one process, interleaved and repeated: `python benchmarks/speed.py [--data FOLDER]`.

FOLDER has those of usps_16x16.npz, uci_adult.csv.gz, connect4_67557x42.npz, uci_mushroom.csv and 20news_bydate_counts.npz that
are to be measured; without one, simulated digits are. Prints tables and writes the same figures as JSON (--json). The peer is
tomotopy's LDA (pip install bayescase[peers]), given every cell as a token, with the same number of threads. Ratios within
this run are what counts; machines are noisy.
"""

import argparse
import csv
import gzip
import itertools
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table

WARM, REPEATS, LEAST_SECONDS = 20, 7, 0.2  # sweeps before the clock, turns, and how long a turn takes at least
console, SPAWN = Console(width=150), multiprocessing.get_context("spawn")


# --- the tables ----------------------------------------------------------------------------------------------------------


def digits(path=None):
    """(9298, 256) values 0 … 6: the real USPS digits if a path is given, else cases from ten sharp clusters."""
    if path is not None and path.exists():
        with np.load(path) as file:
            pixels = np.vstack([file["X_train"], file["X_test"]])
        return np.minimum(pixels.astype(int) * 7 // 256, 6)
    rng = np.random.default_rng(0)
    phi = rng.dirichlet(np.full(7, 0.15), size=(10, 256))
    labels, edges = rng.integers(10, size=9298), np.cumsum(phi, axis=2)
    return (rng.random((9298, 256, 1)) > edges[labels]).sum(axis=2).clip(max=6)


def planted(N, P, V=5, S=10, seed=0):
    """Cases around S centres, a third of whose cells are noise."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(V, size=(S, P))
    return np.where(rng.random((N, P)) < 0.3, rng.integers(V, size=(N, P)), centres[rng.integers(S, size=N)])


def read_csv(path, drop):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    return {name: as_numbers(column) for name, column in columns.items() if name not in drop}


def as_numbers(column):
    try:
        return np.array(column, dtype=float)
    except ValueError:
        return list(column)


def table_data(table, **reading):
    """A table as the kernels take it."""
    from bayescase import CaseEncoder
    from bayescase.state import make_data

    encoder = CaseEncoder(**reading)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = encoder.fit_transform(table)
    offset = np.concatenate([[0], np.cumsum([len(values) for values in encoder.feature_values_])])
    x = np.where(codes < 0, -1, codes + offset[:-1])
    return make_data(np.ascontiguousarray(x, dtype=np.int16 if offset[-1] < 2**15 else np.int32), offset)


def text_data(path):
    """Word counts as one bag: every word of a message once, as tomotopy gets it."""
    from bayescase.state import Cells, make_data

    with np.load(path) as file:
        items, first, V = file["indices"], file["indptr"].astype(np.int64), int(file["shape"][1])
    base = np.bincount(items, minlength=V) + 1.0
    bags = Cells(items.astype(np.int32), first)
    return make_data(np.zeros((len(first) - 1, 0), np.int32), [0, V], bags=bags, base=base / base.mean())


def all_tables(folder):
    """Name → function that makes the data."""
    plain = {"feature_types": "integer"}
    found = {"USPS digits": lambda: table_data(digits(folder / "usps_16x16.npz"), **plain)}
    if (folder / "uci_adult.csv.gz").exists():
        found["adult"] = lambda: table_data(
            read_csv(folder / "uci_adult.csv.gz", {"class", "split", "fnlwgt"}), missing_values="?"
        )
    if (folder / "connect4_67557x42.npz").exists():
        found["connect-4"] = lambda: table_data(np.load(folder / "connect4_67557x42.npz")["X"].astype(int), **plain)
    if (folder / "uci_mushroom.csv").exists():
        found["mushroom"] = lambda: table_data(read_csv(folder / "uci_mushroom.csv", {"class"}), missing_values="?")
    if (folder / "20news_bydate_counts.npz").exists():
        found["newsgroups"] = lambda: text_data(folder / "20news_bydate_counts.npz")
    return found


# --- the runners ---------------------------------------------------------------------------------------------------------


class Ours:
    """One chain of bayescase; `run(n)` makes n complete sweeps."""

    def __init__(self, data, S, threads, sampler="rows", start="seeded"):
        from bayescase.kernels import Driver, open_engine, stream, sweeps
        from bayescase.sampling.plan import prototypes_every
        from bayescase.sampling.starts import init
        from bayescase.state import count_observed, make_hyper, new_state

        prior = {"lam": 1.0, "c": 50.0, "q": 0.8} if data.bags is None else {"lam": 0.5, "c": 5.0, "q": 0.5}
        self.hyper = make_hyper(S, data.book.n_columns, alpha=0.01, **prior)
        self.engine = open_engine(data, S, 1, threads)
        self.rows, self.candidates = self.engine.rows(0), self.engine.candidates
        self.rows.put_labels(init(data, self.hyper, start, np.random.default_rng(0)))
        self.driver = Driver(data, count_observed(data.x, data.bags), self.hyper, self.engine.threads)
        self.state, self.sweep, self.stream, self.t = new_state(data, S), sweeps[sampler], stream, 0
        self.state.n_sv[:], self.state.n_rows[:] = self.rows.recount(len(self.state.n_sv))
        self.every = prototypes_every(S, len(data.candidate_cells.codes)) if sampler == "rows" else 1
        self.driver.update_p_omega(self.hyper, self.state, self.candidates, stream(0))

    def run(self, n):
        """(n, 2) log joint and mean purity."""
        trace = []
        for _ in range(n):
            key = self.stream(0, 1, self.t)
            draw_p = self.t % self.every == 0
            log_joint, moved = self.sweep(self.driver, self.rows, self.candidates, self.hyper, self.state, key, draw_p=draw_p)
            trace.append((log_joint, moved.purity / moved.main.sum()))
            self.t += 1
        return np.array(trace)

    def values(self):
        """(ΣV, S) E[φ | z, p, ω]."""
        mean, none = np.zeros(self.state.n_sv.shape), np.zeros((0, len(self.state.p)), dtype=np.float32)
        self.driver.add_values(self.hyper, self.state, np.arange(len(self.state.p)), 1.0, mean, none)
        return mean

    def close(self):
        self.engine.close()


class Tomotopy:
    """tomotopy's LDA over the same cells, from its own start."""

    def __init__(self, data, S, threads):
        from bayescase.lda import new_lda

        self.threads, eta = threads, 1.0 if data.bags is None else 0.5
        self.model = new_lda(S, alpha=0.01 / S, eta=eta, seed=1)
        codes, first = data.cells
        words = np.array([str(v) for v in range(int(data.offset[-1]))])
        for lo, hi in itertools.pairwise(first):
            row = codes[lo:hi]
            if (row >= 0).any():
                self.model.add_doc(words[row[row >= 0]].tolist())

    def run(self, n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.train(n, workers=self.threads)

    def close(self):
        pass


def take_turns(runners, least=LEAST_SECONDS, clock=time.perf_counter):
    """Name → seconds of a sweep in each turn. A turn is as many sweeps as take about so long."""
    per_turn = {}
    for name, runner in runners.items():
        runner.run(WARM)
        start = clock()
        runner.run(2)
        per_turn[name] = max(1, int(least / ((clock() - start) / 2)))
    seconds = {name: [] for name in runners}
    for _ in range(REPEATS):
        for name, runner in runners.items():
            start = clock()
            runner.run(per_turn[name])
            seconds[name].append((clock() - start) / per_turn[name])
    return {name: np.array(times) for name, times in seconds.items()}


def iteration_speed(folder):
    """Cells per second of complete sweeps, ours and tomotopy's, one and two threads."""
    figures = {}
    table = Table("table", "clusters", "bayescase ×1", "tomotopy ×1", "ratio", "bayescase ×2", "tomotopy ×2", "ratio", "2 / 1")
    for name, make in all_tables(folder).items():
        data = make()
        cells = int((data.cells.codes >= 0).sum())
        for S in (10, 50) if data.bags is None else (20,):
            runners = {}
            for threads in (1, 2):
                runners["bayescase", threads] = Ours(data, S, threads)
                runners["tomotopy", threads] = Tomotopy(data, S, threads)
            seconds = take_turns(runners)
            speed = {key: cells / times / 1e6 for key, times in seconds.items()}
            ratio = {n: median(seconds["tomotopy", n] / seconds["bayescase", n]) for n in (1, 2)}
            scaling = median(speed["bayescase", 2] / speed["bayescase", 1])
            for runner in runners.values():
                runner.close()
            figures[f"{name}, S = {S}"] = {
                "cells": cells,
                "cells_per_second_M": {f"{who} x{n}": median(v) for (who, n), v in speed.items()},
                "ratio_to_tomotopy": ratio,
                "two_threads_to_one": scaling,
            }
            size = f"{len(data.x):,} × {data.x.shape[1]}" if data.bags is None else f"{len(data.x):,} bags"
            cell = {key: f"{median(v):.0f}" if key[0] == "bayescase" else f"{median(v):.1f}" for key, v in speed.items()}
            table.add_row(
                f"{name} {size}", str(S), cell["bayescase", 1], cell["tomotopy", 1], f"[bold]{ratio[1]:.1f}[/]",
                cell["bayescase", 2], cell["tomotopy", 2], f"[bold]{ratio[2]:.1f}[/]", f"{scaling:.2f}",
            )  # fmt: skip
    table.title = "One complete sweep, million cells per second (medians over turns)"
    console.print(table)
    return figures


def growth(folder):
    """Milliseconds of a sweep against cases, features, clusters and threads, on planted tables.

    Of one thread it is processor time, which other processes on the machine hardly change; threads take the time they take.
    """
    usual = {"N": 20_000, "P": 50, "S": 10, "threads": 1}
    axes = {
        "N": (1_000, 5_000, 20_000, 100_000, 400_000),
        "P": (5, 20, 50, 200, 800),
        "S": (2, 5, 10, 20, 50, 100),
        "threads": tuple(n for n in (1, 2, 4, 8, 16, 32) if n <= (os.cpu_count() or 1)),
    }
    figures, table = {}, Table("along", "value", "milliseconds a sweep", "million cells per second", title="Growth")
    for axis, values in axes.items():
        for value in values:
            size = usual | {axis: value}
            if axis == "threads":
                size["N"] = 400_000
            data = table_data(planted(size["N"], size["P"], S=size["S"]), feature_types="integer")
            runner = Ours(data, size["S"], size["threads"])
            clock = time.perf_counter if axis == "threads" else time.process_time
            seconds = median(take_turns({"ours": runner}, clock=clock)["ours"])
            runner.close()
            figures.setdefault(axis, {})[value] = seconds
            table.add_row(axis, f"{value:,}", f"{1e3 * seconds:.2f}", f"{size['N'] * size['P'] / seconds / 1e6:.0f}")
    console.print(table)
    return figures


def plot_growth(figures, path):
    """A curve for each of cases, features, clusters and threads, beside the line of growth in proportion."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    names = {"N": "cases (50 features, 10 clusters)", "P": "features (20,000 cases, 10 clusters)"}
    names |= {"S": "clusters (20,000 cases, 50 features)", "threads": "threads (400,000 cases, 50 features)"}
    figures = {axis: curve for axis, curve in figures.items() if len(curve) > 2}  # two threads are no curve
    figure, axes = plt.subplots(1, len(figures), figsize=(3.2 * len(figures), 3.2), layout="constrained")
    for ax, (axis, curve) in zip(axes, figures.items(), strict=True):
        values, ms = np.array(list(curve), dtype=float), 1e3 * np.array(list(curve.values()))
        equal = ms[-1] * values / values[-1] if axis != "threads" else ms[0] * values[0] / values
        ax.loglog(values, equal, color="0.7", linestyle="--", label="in proportion")
        ax.loglog(values, ms, marker="o", color="C0", label="a sweep")
        ax.set_xticks(values, [f"{value:,.0f}" for value in values], rotation=45, fontsize=8)
        ax.minorticks_off()
        ax.set_xlabel(names[axis])
    axes[0].set_ylabel("milliseconds")
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def median(values):
    return float(statistics.median(values))


def samplers(folder, n_cases=2000, seconds=20.0):
    """rows against collapsed on some digits: time to the same held-out log probability, and effective samples per second."""
    from scipy.special import logsumexp

    from bayescase.kernels import score_cases
    from bayescase.sampling.diagnostics import ess_bulk

    values = digits(folder / "usps_16x16.npz")
    order = np.random.default_rng(1).permutation(len(values))
    both = table_data(values[order[: n_cases + 200]], feature_types="integer")
    data, held_out = (both._replace(x=part, candidates=part) for part in (both.x[:n_cases], both.x[n_cases:]))
    data = data._replace(log_weight=both.log_weight[:n_cases])
    curves, effective = {}, {}
    for sampler in ("rows", "collapsed"):
        chain = Ours(data, 10, 1, sampler, start="cases")
        spent, curve, trace = 0.0, [], []
        while spent < seconds:
            start = time.perf_counter()
            trace.append(chain.run(10))
            spent += time.perf_counter() - start
            if len(trace) in (1, 2, 4, 8, 16) or len(trace) % 32 == 0:
                found = score_cases(held_out.cases, data.book, [(chain.hyper, chain.values())], np.uint64(1))[0]
                curve.append((spent, float((logsumexp(found, axis=1) - np.log(found.shape[1])).mean())))
        chain.close()
        trace = np.concatenate(trace)
        kept, per_second = trace[len(trace) // 2 :], len(trace) / spent
        curves[sampler] = curve
        effective[sampler] = {
            name: ess_bulk(kept[None, :, k]) / len(kept) * per_second for k, name in enumerate(("log joint", "purity"))
        }
    target = min(max(v for _, v in curve) for curve in curves.values())
    reach = {name: next(t for t, v in curve if v >= target - 0.05) for name, curve in curves.items()}
    heads = (
        "sampler",
        "held-out log probability at the end",
        "seconds to the lower of the two",
        "ESS/s log joint",
        "ESS/s purity",
    )
    table = Table(*heads, title=f"Samplers, {n_cases} digits, S = 10, {seconds:.0f} s each, one thread")
    for name, curve in curves.items():
        of = effective[name]
        table.add_row(name, f"{curve[-1][1]:.2f}", f"{reach[name]:.2f}", f"{of['log joint']:.2f}", f"{of['purity']:.2f}")
    console.print(table)
    return {"held_out": curves, "seconds_to_target": reach, "effective_per_second": effective, "target": target}


# --- how much of the machine threads reach -------------------------------------------------------------------------------

CORES_ROWS, CORES_TURNS, CORES_SECONDS = 1_000_000, 5, 0.6
STAGES = ("update_phi", "update_z", "update_evidence", "score")  # the rest of a sweep is one thread's


class Timed:
    """Seconds that calls of one method take, all together."""

    def __init__(self, owner, name):
        self.seconds, self.plain = 0.0, getattr(owner, name)
        setattr(owner, name, self)

    def __call__(self, *args, **kwargs):
        start = time.perf_counter()
        try:
            return self.plain(*args, **kwargs)
        finally:
            self.seconds += time.perf_counter() - start


def rate(runner, seconds):
    """Sweeps a second for so long."""
    start, n = time.perf_counter(), 0
    while (spent := time.perf_counter() - start) < seconds:
        runner.run(1)
        n += 1
    return n / spent


def sweep_alone(pipe, rows, S, seed):
    """A process with a table of its own: as many sweeps as it can, whenever it is asked."""
    runner = Ours(planted_data(rows, 50, S, seed), S, 1)
    runner.run(3)
    pipe.send(True)
    while seconds := pipe.recv():
        pipe.send(rate(runner, seconds))


def planted_data(rows, P, S, seed=0):
    """A planted table of five values, as the kernels take it."""
    from bayescase.state import make_data

    x = planted(rows, P, S=S, seed=seed).astype(np.int16) + np.arange(P, dtype=np.int16) * 5
    return make_data(x, np.arange(P + 1) * 5)


def cores(folder):
    """A fit on n threads beside n processes of one thread, which share nothing: how much of what the machine gives is reached.

    The processes have an n-th of the rows each, so that all of them together have as many cells. They take turns with the fit,
    and with one whose threads have one part of the rows each, in place of several for whoever is done first.
    """
    from bayescase.kernels.cpu.threads import cut

    figures, heads = (
        {},
        ("threads", "ms", "times one", "processes", "reached", "equal parts", "handing over"),
    )
    for S in (10, 50):
        table = Table(*heads, *STAGES, "rest", title=f"Cores: {CORES_ROWS:,} × 50, {S} clusters; stages in ms")
        data, alone = planted_data(CORES_ROWS, 50, S), None
        for n in (n for n in (1, 2, 4, 8, 16, 32, 64) if n <= (os.cpu_count() or 1)):
            runner, found, pipes = Ours(data, S, n), [], []
            for seed in range(n):
                ours, theirs = SPAWN.Pipe()
                SPAWN.Process(target=sweep_alone, args=(theirs, CORES_ROWS // n, S, seed), daemon=True).start()
                pipes.append(ours)
            runner.run(3)
            for pipe in pipes:
                pipe.recv()
            stages = [Timed(runner.rows if name == "update_z" else runner.driver, name) for name in STAGES[:-1]]
            stages.append(Timed(runner.candidates, STAGES[-1]))
            parts, before = runner.rows.parts, runner.t
            for _ in range(CORES_TURNS):
                one = rate(runner, CORES_SECONDS)
                for pipe in pipes:
                    pipe.send(CORES_SECONDS)
                together = sum(pipe.recv() for pipe in pipes) / n  # in sweeps of the whole table
                runner.rows.parts = runner.candidates.parts = cut(data.cells.first, n)
                found.append((one, together, rate(runner, CORES_SECONDS)))
                runner.rows.parts = runner.candidates.parts = parts
            for pipe in pipes:
                pipe.send(0)
            times = [1e3 * stage.seconds / (runner.t - before) for stage in stages]
            handing = handing_over(runner, n)
            runner.close()
            ours, theirs, equal = np.median(found, axis=0)
            alone = alone or (ours, theirs)
            figures[f"S = {S}, {n} threads"] = of = {
                "ms": 1e3 / ours,
                "times_one": ours / alone[0],
                "processes_times_one": theirs / alone[1],
                "reached": median(a / b for a, b, _ in found),
                "ms_equal_parts": 1e3 / equal,
                "ms_of_handing_over": handing,
                "stages_ms": dict(zip((*STAGES, "rest"), (*times, 1e3 / ours - sum(times)), strict=True)),
            }
            table.add_row(
                str(n), f"{of['ms']:.2f}", f"{of['times_one']:.1f}", f"{of['processes_times_one']:.1f}",
                f"[bold]{of['reached']:.0%}[/]", f"{of['ms_equal_parts']:.2f}", f"{handing:.3f}",
                *(f"{ms:.2f}" for ms in of["stages_ms"].values()),
            )  # fmt: skip
        console.print(table)
    return figures


def handing_over(runner, n, times=200):
    """Milliseconds that n threads need for nothing at all."""
    threads, parts = runner.engine.threads, [(k, k + 1) for k in range(n)]
    start = time.perf_counter()
    for _ in range(times):
        threads.each(parts, lambda *_: None)
    return 1e3 * (time.perf_counter() - start) / times


# --- reading, start and results ------------------------------------------------------------------------------------------

ROWS, COLUMNS, SWEEPS, TURNS = 1_000_000, 50, 8, 3
INPUTS = ("NumPy int8", "NumPy int64", "pandas categories")


def as_input(values, kind):
    """Whole numbers from 0 as one of INPUTS."""
    if kind != "pandas categories":
        return values.astype(kind.removeprefix("NumPy "))
    import pandas

    words = [f"value {v}" for v in range(values.max() + 1)]
    return pandas.DataFrame({f"x{j}": pandas.Categorical.from_codes(column, words) for j, column in enumerate(values.T)})


def beside_sweeps(X, threads):
    """How many sweeps all of a fit but its sweeps takes: (by the clock, in processor time), one chain of ten clusters."""
    from bayescase import BayesianCaseModel
    from bayescase.sampling.chain import Chain

    def now():
        return np.array([time.perf_counter(), time.process_time()])

    def step(*args):
        begun = now()
        plain_step(*args)
        sweeps.append(now() - begun)

    plain_step, sweeps, start = Chain.step, [], now()
    with warnings.catch_warnings(), mock.patch.object(Chain, "step", step):
        warnings.simplefilter("ignore")
        model = BayesianCaseModel(10, n_iter=SWEEPS, burn_in=1, n_chains=1, n_jobs=threads, random_state=0)
        model.fit(X)  # of the sweeps, all but the first move cells
    return (now() - start - np.sum(sweeps, axis=0)) / np.median(sweeps, axis=0)


def reading(folder):
    """Reading, start and results in sweeps of as many threads, for inputs of three kinds."""
    values = planted(ROWS, COLUMNS)
    figures, table = {}, Table("input", "threads", "in sweeps, by the clock", "in sweeps, in processor time")
    for kind in INPUTS:
        beside_sweeps(as_input(values[:5000], kind), 1)  # compile first
    found = {(kind, threads): [] for kind in INPUTS for threads in (1, 2)}
    for _ in range(TURNS):
        for kind in INPUTS:
            X = as_input(values, kind)
            for threads in (1, 2):
                found[kind, threads].append(beside_sweeps(X, threads))
    for (kind, threads), ratios in found.items():
        clock, processor = np.median(ratios, axis=0)
        figures[f"{kind} x{threads}"] = {"clock": float(clock), "processor": float(processor)}
        table.add_row(kind, str(threads), f"{clock:.1f}", f"{processor:.1f}")
    table.title = f"Reading, start and results of {ROWS:,} × {COLUMNS}, medians of {TURNS} turns"
    console.print(table)
    return figures


# --- what users would pick instead --------------------------------------------------------------------------------------


LENGTHS = (10, 20, 40, 80, 160, 320, 640, 1280)  # sweeps of one chain, until it is as good as another method
AS_GOOD = 0.02  # of the log probability of a case: so much less is as good


def peers(folder):
    """Seconds of a fit, agreement with the classes and held-out log probability, beside StepMix and k-modes.

    And how soon one chain is as good as they are: in the log probability of left-out cases, or where there is none in NMI.
    """
    from sklearn.metrics import normalized_mutual_info_score

    from bayescase.experiments import methods
    from bayescase.experiments.sets import PLACES, load

    figures, table = {}, Table("table", "method", "seconds", "NMI", "held-out log p", "ours as good in", title="Whole fits")
    for name in ("zoo", "votes", "soybean", "mushroom", "car", "connect-4"):
        if not (folder / PLACES[name].file).exists():
            continue
        cases = load(name, 0, folder)
        held, k = np.random.default_rng(0).random(len(cases.x)) < 0.2, len(np.unique(cases.y))

        def fit(who, settings, cases=cases, held=held, k=k):
            start = time.perf_counter()
            made = methods.fit(methods.METHODS[who], cases.x[~held], k, 1, 0, {"bayescase": settings})
            spent = time.perf_counter() - start
            nmi = normalized_mutual_info_score(cases.y[~held], made.labels)
            return spent, nmi, made.score(cases.x[held]) if made.score else None

        def as_good_in(nmi, score, fit=fit):
            for n_iter in LENGTHS:
                spent, our_nmi, our_score = fit("bayescase", {"n_chains": 1, "n_iter": n_iter})
                if our_score >= score - AS_GOOD if score is not None else our_nmi >= nmi:
                    return spent, n_iter
            return None

        fit("bayescase", {"n_chains": 1, "n_iter": LENGTHS[0]})  # compiles
        for who in ("bayescase", "StepMix", "k-modes"):
            if not methods.is_here(methods.METHODS[who]):
                continue
            spent, nmi, score = fit(who, {})
            good = as_good_in(nmi, score) if who != "bayescase" else None
            figures[f"{name}, {who}"] = {"seconds": spent, "nmi": nmi, "held_out": score, "as_good_in": good}
            shown = "" if who == "bayescase" else f"{good[0]:.2f} s, {good[1]} sweeps" if good else "no run tried"
            table.add_row(name, who, f"{spent:.2f}", f"{nmi:.2f}", "" if score is None else f"{score:.2f}", shown)
    console.print(table)
    return figures


# --- memory, import, first fit -------------------------------------------------------------------------------------------

MEMORY = """
import sys, numpy as np, warnings
from pathlib import Path
sys.path.insert(0, {here!r})
from speed import digits
from bayescase import BayesianCaseModel
def status(field):
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith(field))
X = digits(Path({usps!r})).astype(np.uint8)
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
X.data[:] = 1
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
print(time.perf_counter() - start, time.process_time())
"""


def footprint(folder):
    """Bytes a cell over the encoded input, import time, and the first fit from a cold compile cache."""
    here, usps = os.path.dirname(os.path.abspath(__file__)), str(folder / "usps_16x16.npz")

    def run(code, **env):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **env}
        )
        return [float(number) for number in done.stdout.split()]

    imports = "import time; t = time.perf_counter(); import bayescase; print(time.perf_counter() - t)"
    with tempfile.TemporaryDirectory() as cache:
        first, of_processor = run(FIRST_FIT, NUMBA_CACHE_DIR=cache)
    figures = {
        "bytes_a_cell": {chains: run(MEMORY.format(here=here, usps=usps, chains=chains))[0] for chains in (1, 4)},
        "sparse_MiB": run(SPARSE)[0],
        "import_seconds": median(run(imports)[0] for _ in range(REPEATS)),
        "first_fit_seconds": first,
        "first_fit_processor_seconds": of_processor,
    }
    table = Table("what", "figure", title="Footprint")
    for chains, value in figures["bytes_a_cell"].items():
        chain = f"{chains} chain{'s' * (chains > 1)}"
        table.add_row(f"peak memory of a fit over the encoded input, {chain}", f"{value:.2f} bytes a cell")
    sparse = f"{figures['sparse_MiB']:.0f} MiB"
    table.add_row("the same for 20,000 bags of 200 words, 4 chains, 200 sweeps, over the imports", sparse)
    table.add_row("import bayescase (median)", f"{figures['import_seconds']:.3f} s")
    table.add_row("first fit, cold compile cache, import included", f"{first:.1f} s, {of_processor:.1f} s of processor time")
    console.print(table)
    return figures


PARTS = {
    "footprint": footprint,
    "iteration": iteration_speed,
    "cores": cores,
    "reading": reading,
    "growth": growth,
    "samplers": samplers,
    "peers": peers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("nowhere"), help="folder of the tables; simulated digits if absent")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--plot", type=Path, help="draw how time grows here, as PNG")
    parser.add_argument("--only", choices=list(PARTS), action="append", help="one part only; may be repeated")
    args = parser.parse_args()
    console.print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    figures = {name: part(args.data) for name, part in PARTS.items() if args.only is None or name in args.only}
    if args.plot and "growth" in figures:
        plot_growth(figures["growth"], args.plot)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
