"""The only loop: chains × sweeps, with burn-in, thinning, checkpoints and callbacks.

Sweeps come in rounds, each of which keeps its own draws. A run of given length is one round; a run without one doubles from
round to round, forgets the draws of the round before, and ends when the verdict on a round is good.
"""

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from .. import storage
from ..kernels.cpu import sweep as cpu
from ..kernels.rng import stream
from ..state import Hyper, count_observed, new_state, smallest_int
from .diagnostics import TRACED, Round, diagnose, is_settled
from .hyper import Learn, count_tables, initial, instead_of_beta, log_prior, update
from .posterior import Accumulator, compare, kinds_of
from .starts import init

CHECKPOINT_SECONDS = 3.0
FIRST_ROUND = 250  # sweeps at least, if a run chooses its own length
ROUNDS_APART = 2  # after so many rounds of settled chains that disagree, more sweeps are not going to help
START, SWEEP, HYPER = range(3)  # purposes of a chain's random numbers
NOTHING = Learn()
BLOCK_CELLS = 1 << 16  # a block smaller than this costs more to hand to a thread than to run


class Plan(NamedTuple):
    """How to run: everything that, with the data and the hyperparameters, decides the numbers that come out."""

    sampler: str
    rounds: tuple[Round, ...]
    thin: int
    n_chains: int
    start: Any  # "seeded", "cases" or "cells" for each chain, or labels
    single_label: tuple[int, ...]  # for each chain, first sweeps without cell moves: one label per case
    heat: float  # β of the first sweep; rises to 1 by the middle of the first burn-in
    keep_draws: bool
    seed: int

    @property
    def n_iter(self):
        """The most sweeps that there can be."""
        return self.rounds[-1].end

    def round_of(self, t):
        """The round that sweep t belongs to, or leads to."""
        return next(r for r in self.rounds if t < r.end)


def one_round(n_iter, burn_in):
    return (Round(int(n_iter) // 2 if burn_in is None else int(burn_in), int(n_iter)),)


def doubling(max_iter):
    """Rounds that end at max_iter, max_iter / 2, max_iter / 4, …; each keeps the second half of all sweeps so far."""
    rounds = [Round(max_iter // 2, max_iter)]
    while rounds[0].first >= FIRST_ROUND:
        rounds.insert(0, Round(rounds[0].first // 2, rounds[0].first))
    return tuple(rounds)


class Report(NamedTuple):
    """What a callback sees after each sweep."""

    sweep: int
    n_iter: int  # sweeps of the run; if it chooses its own length, up to the next verdict
    log_joint: np.ndarray  # (chains,) of this sweep
    cells_moved: np.ndarray  # (chains,) share of the observed cells
    cases_relabelled: np.ndarray  # (chains,) share of the cases
    purity: np.ndarray  # (chains,) mean over cases of max_s n_is / n_i
    prototypes_changed: np.ndarray  # (chains,) share of the clusters


class Draws(NamedTuple):
    """What a run leaves behind."""

    chains: list  # Accumulator per chain
    trace: dict  # name → (chains, sweeps), of the label-free quantities
    kept: Round  # the sweeps that the kept draws come from
    interrupted: bool


class Chain:
    """One chain: its state, its work space and what it has accumulated."""

    def __init__(self, number, data, hyper, learn, plan, z, work):
        self.number, self.data, self.learn, self.plan = number, data, learn, plan
        self.hyper = initial(hyper, learn)
        self.kinds = kinds_of(data, self.hyper)
        S = len(hyper.beta)
        rng = np.random.default_rng([plan.seed, number, START])
        start = plan.start[number] if isinstance(plan.start, tuple) else plan.start
        self.state = new_state(data, init(data, self.hyper, start, rng, out=z), S)
        self.n_cells = int(self.state.n_sv.sum())
        self.n_i = np.bincount(count_observed(data.x), minlength=data.x.shape[1] + 1)  # how many rows have n cells
        self.n_rows = max(1, int(self.n_i[1:].sum()))
        self.draws = self.keep_nothing(plan.rounds[0])
        self.before = None  # the draws of the last round, if there was one; not worth a place in the checkpoint
        self.trace = np.zeros((len(traced(learn)), plan.n_iter))
        cpu.update_p_omega(data, self.hyper, self.state, work, stream(plan.seed, number, START), blocked=True)
        self.chance = work.chance.copy()

    def keep_nothing(self, round_):
        """An empty Accumulator for the draws of a round."""
        kept = len(range(round_.first, round_.end, self.plan.thin))
        return Accumulator(self.data, self.kinds, kept, self.plan.keep_draws)

    def step(self, t, work):
        """Sweep number t."""
        plan, state = self.plan, self.state
        key = stream(plan.seed, self.number, SWEEP, t)
        before, cells = state.p.copy(), t >= plan.single_label[self.number]
        if self.learn:
            rng = np.random.default_rng([plan.seed, self.number, HYPER, t])
            self.hyper = update(self.data, self.hyper, self.learn, state, self.n_i, rng, alpha=cells)
        log_joint, info = cpu.sweeps[plan.sampler](self.data, self.hyper, state, work, key, heat_at(plan, t), cells)
        log_joint += log_prior(self.hyper, self.learn)
        if self.learn.beta:
            log_joint += instead_of_beta(count_tables(self.hyper, state.n_rows, rng), self.hyper)
        size = np.add.reduce(state.n_sv, axis=0) / max(self.n_cells, 1)
        self.trace[:, t] = (
            log_joint,
            info[2] / 2**32 / self.n_rows,
            state.omega.sum(),
            -(size[size > 0] * np.log(size[size > 0])).sum(),
            info[0] / max(self.n_cells, 1),
            info[1] / self.n_rows,
            (before != state.p).mean(),
            *(
                float(self.hyper.q[self.learn.q_free][0]) if name == "q" else getattr(self.hyper, name)
                for name in self.learn.names
            ),
            *([info[3]] if self.learn.beta else []),
        )
        self.chance[:] = work.chance
        now = plan.round_of(t)
        if t == now.first and now != plan.rounds[0]:
            self.before, self.draws = self.draws, self.keep_nothing(now)
        if t >= now.first and (t - now.first) % plan.thin == 0:
            self.draws.add(state, self.hyper, self.chance, log_joint)

    def arrays(self):
        """All that must outlive the process, by name."""
        state = self.state
        kept = {"z": state.z, "p": state.p, "omega": state.omega, "chance": self.chance, "trace": self.trace}
        kept |= {f"hyper/{name}": np.asarray(value) for name, value in self.hyper._asdict().items()}
        return kept | {f"draws/{name}": value for name, value in self.draws.arrays().items()}

    def restore(self, arrays, t):
        """Be again what `arrays` was after t sweeps."""
        hyper = {name: arrays[f"hyper/{name}"] for name in self.hyper._fields}
        self.hyper = Hyper(**{name: value if value.ndim else float(value) for name, value in hyper.items()})
        self.state.z[:] = arrays["z"]
        self.state = new_state(self.data, self.state.z, len(self.hyper.beta))
        self.state.p[:], self.state.omega[:] = arrays["p"], arrays["omega"]
        self.chance[:], self.trace[:] = arrays["chance"], arrays["trace"]
        self.draws = self.keep_nothing(self.plan.round_of(t - 1))
        self.draws.restore({k.removeprefix("draws/"): v for k, v in arrays.items() if k.startswith("draws/")})


def traced(learn):
    """The names of what is traced: if the number of clusters is to be found, also how many are in use."""
    return TRACED + learn.names + (("clusters_in_use",) if learn.beta else ())


def heat_at(plan, t):
    """β of sweep t: from `heat` up to 1 at the middle of the first burn-in; 1 ever after."""
    warm = plan.rounds[0].first // 2
    return 1.0 if t >= warm else plan.heat + (1.0 - plan.heat) * t / warm


class Workers:
    """Threads, and a Work for each chain that runs at a time.

    Chains run side by side if there are enough of them, else one after the other, its rows in blocks.
    """

    def __init__(self, data, hyper, n_chains, n_jobs):
        by_chain = n_chains >= n_jobs
        n_blocks = 1 if by_chain else min(n_jobs, max(1, data.x.size // BLOCK_CELLS))
        self.pool = ThreadPoolExecutor(n_jobs)
        self.map = self.pool.map if by_chain and n_jobs > 1 else map
        self.free: SimpleQueue = SimpleQueue()
        rises = None
        for _ in range(n_jobs if by_chain else 1):
            pool = None if by_chain else self.pool
            work = cpu.Work(data, hyper, smallest_int(len(hyper.beta)), pool, n_blocks, rises)
            rises = work.rises
            self.free.put(work)

    def each(self, task, items):
        """[task(item, work) for item in items]"""
        return list(self.map(partial(self.lend, task), items))

    def lend(self, task, item):
        work = self.free.get()
        try:
            return task(item, work)
        finally:
            self.free.put(work)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.pool.shutdown()


class Stage(NamedTuple):
    """How far a run has come."""

    sweep: int = 0  # sweeps made
    apart: int = 0  # rounds in a row that ended with settled chains in different clusters
    finished: bool = False


def run(data, hyper, plan, learn=NOTHING, *, n_jobs=1, callback=None, verbose=0, checkpoint=None):
    """Sample; returns Draws. The numbers depend on data, hyper, plan and learn alone, not on n_jobs or on interruptions."""
    with Workers(data, hyper, plan.n_chains, n_jobs) as workers, progress(plan, verbose) as show, patience() as stopped:
        # Made here: memory of another thread does not come back to this one, which makes the results next.
        z = np.empty((plan.n_chains, *data.x.shape), dtype=smallest_int(len(hyper.beta)))
        chains = workers.each(lambda number, work: Chain(number, data, hyper, learn, plan, z[number], work), range(len(z)))
        stage, saved, unsaved = Stage(), time.monotonic(), False
        print_ = fingerprint(data, hyper, learn, plan) if checkpoint is not None else ""
        if checkpoint is not None and os.path.exists(checkpoint):
            stage = resume(checkpoint, print_, chains)
        while not stage.finished and not stopped():
            workers.each(lambda chain, work: chain.step(stage.sweep, work), chains)
            stage, unsaved = advance(stage, chains, plan), True
            report = make_report(plan, chains, stage.sweep)
            show(report)
            if callback is not None and callback(report):
                break
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                save(checkpoint, print_, plan.seed, chains, stage)
                saved, unsaved = time.monotonic(), False
        if checkpoint is not None and unsaved:
            save(checkpoint, print_, plan.seed, chains, stage)
    t = stage.sweep
    if t == 0:
        raise KeyboardInterrupt
    kept = close(chains, plan, t)
    if not stage.finished:
        n = chains[0].draws.n
        warnings.warn(
            f"Stopped after {t} of {'at most ' * (len(plan.rounds) > 1)}{plan.n_iter} sweeps; the results rest on {n} kept "
            f"draw{'s' * (n > 1)} per chain.",
            stacklevel=2,
        )
    return Draws([chain.draws for chain in chains], trace_of(chains, t), kept, not stage.finished)


def advance(stage, chains, plan):
    """The stage after one more sweep. At the end of a round it is time to ask whether there should be another."""
    t, now = stage.sweep + 1, plan.round_of(stage.sweep)
    if t < now.end or t == plan.n_iter:
        return Stage(t, stage.apart, t == plan.n_iter)
    trace, draws = trace_of(chains, t), [chain.draws for chain in chains]
    _, overlap = compare(draws)
    verdict = diagnose(trace, now, overlap)
    parted = verdict.n_agreeing < verdict.n_chains and is_settled(trace, now)
    apart = stage.apart + 1 if parted else 0
    return Stage(t, apart, verdict.converged or apart >= ROUNDS_APART)


def close(chains, plan, t):
    """Settle which draws are kept after t sweeps; returns the sweeps that they come from."""
    now = plan.round_of(t - 1)
    if chains[0].before is not None and chains[0].before.n > chains[0].draws.n:  # stopped early in a round
        for chain in chains:
            chain.draws = chain.before
        return plan.rounds[plan.rounds.index(now) - 1]
    if chains[0].draws.n == 0:  # stopped while burning in: the last state is all there is
        for chain in chains:
            chain.draws.add(chain.state, chain.hyper, chain.chance, chain.trace[0, t - 1])
        return Round(t - 1, t)
    return Round(now.first, t)


def trace_of(chains, t):
    return {name: np.array([chain.trace[k, :t] for chain in chains]) for k, name in enumerate(traced(chains[0].learn))}


def make_report(plan, chains, t):
    now = dict(zip(TRACED, np.array([chain.trace[: len(TRACED), t - 1] for chain in chains]).T, strict=True))
    return Report(t, plan.round_of(t - 1).end, **{name: now[name] for name in Report._fields[2:]})


# --- interruption, progress --------------------------------------------------------------------------------------------


@contextmanager
def patience():
    """Ctrl-C waits for the end of the sweep, so that the state stays whole; a second one does not wait."""
    hits = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(signum, frame):
        hits.append(signum)
        if len(hits) > 1:
            raise KeyboardInterrupt

    previous = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(hits)
    finally:
        signal.signal(signal.SIGINT, previous)


@contextmanager
def progress(plan, verbose):
    """A function that shows a Report on stderr: a bar with the sweep, the log joint of each chain and the time left."""
    if not verbose:
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("log joint {task.fields[joint]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("burning in", total=plan.rounds[0].end, joint="…")

        def show(report):
            bar.update(
                task,
                total=report.n_iter,
                completed=report.sweep,
                description="burning in" if report.sweep <= plan.round_of(report.sweep - 1).first else "sampling",
                joint=" ".join(f"{value:.0f}" for value in report.log_joint),
            )

        yield show


# --- checkpoints -------------------------------------------------------------------------------------------------------


def fingerprint(data, hyper, learn, plan):
    """What a checkpoint must agree with: the data, the hyperparameters, which of them are learned, and the plan."""
    import hashlib

    digest = hashlib.sha256()
    for part in (*data, *hyper, *learn, *plan):
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else np.frombuffer(repr(part).encode(), np.uint8)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def seed_of(path):
    """The seed of the run that the checkpoint at `path` belongs to; None if there is no checkpoint."""
    return storage.read_header(path, "checkpoint")["seed"] if os.path.exists(path) else None


def save(path, print_, seed, chains, stage):
    arrays = {f"{c}/{name}": value for c, chain in enumerate(chains) for name, value in chain.arrays().items()}
    storage.write(path, "checkpoint", {"fingerprint": print_, "seed": seed, **stage._asdict()}, arrays)


def resume(path, print_, chains):
    """Put the chains back where the checkpoint left them; returns the stage."""
    header, arrays = storage.read(path, "checkpoint")
    if header["fingerprint"] != print_:
        raise ValueError(
            f"The checkpoint {os.fspath(path)!r} belongs to other data or settings; delete it or choose another path."
        )
    stage = Stage(*(header[name] for name in Stage._fields))
    for c, chain in enumerate(chains):
        chain.restore({k.removeprefix(f"{c}/"): v for k, v in arrays.items() if k.startswith(f"{c}/")}, stage.sweep)
    return stage
