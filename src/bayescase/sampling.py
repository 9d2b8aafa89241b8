"""The only loop: chains × sweeps, with burn-in, thinning, checkpoints and callbacks."""

import os
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from . import storage
from .posterior import Accumulator
from .state import count_observed, init, new_state, smallest_int

CHECKPOINT_SECONDS = 3.0
START, SWEEP = range(2)  # purposes of a chain's random numbers
BLOCK_CELLS = 1 << 16  # a block smaller than this costs more to hand to a thread than to run


class Plan(NamedTuple):
    """How to run: everything that, with the data and the hyperparameters, decides the numbers that come out."""

    sampler: str
    n_iter: int
    burn_in: int
    thin: int
    n_chains: int
    start: Any  # "seeded", "cases", "cells", or labels
    single_label: int  # first sweeps without cell moves: one label per case
    heat: float  # β of the first sweep; rises to 1 by the middle of the burn-in
    keep_draws: bool
    seed: int


class Report(NamedTuple):
    """What a callback sees after each sweep."""

    sweep: int
    n_iter: int
    log_joint: np.ndarray  # (chains,) of this sweep
    cells_moved: np.ndarray  # (chains,) share of the observed cells
    cases_relabelled: np.ndarray  # (chains,) share of the cases
    purity: np.ndarray  # (chains,) mean over cases of max_s n_is / n_i
    prototypes_changed: np.ndarray  # (chains,) share of the clusters


class Draws(NamedTuple):
    """What a run leaves behind."""

    chains: list  # Accumulator per chain
    trace: dict  # name → (chains, sweeps), of the label-free quantities
    n_sweeps: int
    interrupted: bool


TRACED = ("log_joint", "purity", "subspace_size", "entropy", "cells_moved", "cases_relabelled", "prototypes_changed")


class Chain:
    """One chain: its state, its work space and what it has accumulated."""

    def __init__(self, number, data, hyper, plan, work):
        from .kernels import cpu
        from .kernels.rng import stream

        self.cpu, self.stream = cpu, stream
        self.number, self.data, self.hyper, self.plan = number, data, hyper, plan
        S = len(hyper.beta)
        rng = np.random.default_rng([plan.seed, number, START])
        self.state = new_state(data, init(data, S, plan.start, rng), S)
        self.n_cells = int(self.state.n_sv.sum())
        self.n_rows = max(1, int((count_observed(data.x) > 0).sum()))
        self.draws = Accumulator(data, hyper, plan)
        self.trace = np.zeros((len(TRACED), plan.n_iter))
        cpu.update_p_omega(data, hyper, self.state, work, stream(plan.seed, number, START), blocked=True)
        self.chance = work.chance.copy()

    def step(self, t, work):
        """Sweep number t."""
        plan, state = self.plan, self.state
        key = self.stream(plan.seed, self.number, SWEEP, t)
        before = state.p.copy()
        log_joint, info = self.cpu.sweeps[plan.sampler](
            self.data, self.hyper, state, work, key, heat_at(plan, t), cells=t >= plan.single_label
        )
        size = np.add.reduce(state.n_sv, axis=0) / max(self.n_cells, 1)
        self.trace[:, t] = (
            log_joint,
            info[2] / 2**32 / self.n_rows,
            state.omega.sum(),
            -(size[size > 0] * np.log(size[size > 0])).sum(),
            info[0] / max(self.n_cells, 1),
            info[1] / self.n_rows,
            (before != state.p).mean(),
        )
        self.chance[:] = work.chance
        if t >= plan.burn_in and (t - plan.burn_in) % plan.thin == 0:
            self.draws.add(state, self.chance, log_joint)

    def arrays(self):
        """All that must outlive the process, by name."""
        state = self.state
        kept = {"z": state.z, "p": state.p, "omega": state.omega, "chance": self.chance, "trace": self.trace}
        return kept | {f"draws/{name}": value for name, value in self.draws.arrays().items()}

    def restore(self, arrays):
        self.state = new_state(self.data, arrays["z"], len(self.hyper.beta))
        self.state.p[:], self.state.omega[:] = arrays["p"], arrays["omega"]
        self.chance[:], self.trace[:] = arrays["chance"], arrays["trace"]
        self.draws.restore({k.removeprefix("draws/"): v for k, v in arrays.items() if k.startswith("draws/")})


def heat_at(plan, t):
    """β of sweep t: from `heat` up to 1 at the middle of the burn-in; 1 ever after."""
    warm = plan.burn_in // 2
    return 1.0 if t >= warm else plan.heat + (1.0 - plan.heat) * t / warm


def run(data, hyper, plan, *, n_jobs=1, callback=None, verbose=0, checkpoint=None):
    """Sample; returns Draws. The numbers depend on data, hyper and plan alone, not on n_jobs or on interruptions."""
    # Chains side by side if there are enough of them, else the rows of one chain after the other.
    by_chain = plan.n_chains >= n_jobs
    n_blocks = 1 if by_chain else min(n_jobs, max(1, data.x.size // BLOCK_CELLS))
    from .kernels.cpu import Work

    with ThreadPoolExecutor(n_jobs) as pool, progress(plan, verbose) as show, patience() as stopped:
        works: SimpleQueue = SimpleQueue()  # one for each chain that runs at a time
        for _ in range(n_jobs if by_chain else 1):
            works.put(Work(data, hyper, smallest_int(len(hyper.beta)), None if by_chain else pool, n_blocks))

        def with_work(task):
            work = works.get()
            try:
                return task(work)
            finally:
                works.put(work)

        def every(task, items):
            return list(
                (pool.map if by_chain and n_jobs > 1 else map)(lambda item: with_work(lambda work: task(item, work)), items)
            )

        chains = every(lambda number, work: Chain(number, data, hyper, plan, work), range(plan.n_chains))
        first, saved = 0, time.monotonic()
        print_ = fingerprint(data, hyper, plan) if checkpoint is not None else ""
        if checkpoint is not None and os.path.exists(checkpoint):
            first = resume(checkpoint, print_, chains)
        t = first
        while t < plan.n_iter and not stopped():
            every(lambda chain, work, t=t: chain.step(t, work), chains)
            t += 1
            report = make_report(plan, chains, t)
            show(report)
            if callback is not None and callback(report):
                break
            if checkpoint is not None and time.monotonic() - saved > CHECKPOINT_SECONDS:
                save(checkpoint, print_, plan.seed, chains, t)
                saved = time.monotonic()
        if checkpoint is not None and t > first:
            save(checkpoint, print_, plan.seed, chains, t)
    if t == 0:
        raise KeyboardInterrupt
    for chain in chains:
        if chain.draws.n == 0:  # stopped while burning in: the last state is all there is
            chain.draws.add(chain.state, chain.chance, chain.trace[0, t - 1])
    if t < plan.n_iter:
        kept = chains[0].draws.n
        warnings.warn(
            f"Stopped after {t} of {plan.n_iter} sweeps; the results rest on {kept} kept draw{'s' * (kept > 1)} per chain.",
            stacklevel=2,
        )
    trace = {name: np.array([chain.trace[k, :t] for chain in chains]) for k, name in enumerate(TRACED)}
    return Draws([chain.draws for chain in chains], trace, t, t < plan.n_iter)


def make_report(plan, chains, t):
    now = dict(zip(TRACED, np.array([chain.trace[:, t - 1] for chain in chains]).T, strict=True))
    return Report(t, plan.n_iter, **{name: now[name] for name in Report._fields[2:]})


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
        task = bar.add_task("burning in", total=plan.n_iter, joint="…")

        def show(report):
            bar.update(
                task,
                completed=report.sweep,
                description="burning in" if report.sweep <= plan.burn_in else "sampling",
                joint=" ".join(f"{value:.0f}" for value in report.log_joint),
            )

        yield show


# --- checkpoints -------------------------------------------------------------------------------------------------------


def fingerprint(data, hyper, plan):
    """What a checkpoint must agree with: the data, the hyperparameters and the plan."""
    import hashlib

    digest = hashlib.sha256()
    for part in (*data, *hyper, *plan):
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else np.frombuffer(repr(part).encode(), np.uint8)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def seed_of(path):
    """The seed of the run that the checkpoint at `path` belongs to; None if there is no checkpoint."""
    return storage.read_header(path, "checkpoint")["seed"] if os.path.exists(path) else None


def save(path, print_, seed, chains, t):
    arrays = {f"{c}/{name}": value for c, chain in enumerate(chains) for name, value in chain.arrays().items()}
    storage.write(path, "checkpoint", {"fingerprint": print_, "seed": seed, "sweep": t}, arrays)


def resume(path, print_, chains):
    """Put the chains back where the checkpoint left them; returns the next sweep."""
    header, arrays = storage.read(path, "checkpoint")
    if header["fingerprint"] != print_:
        raise ValueError(
            f"The checkpoint {os.fspath(path)!r} belongs to other data or settings; delete it or choose another path."
        )
    for c, chain in enumerate(chains):
        chain.restore({k.removeprefix(f"{c}/"): v for k, v in arrays.items() if k.startswith(f"{c}/")})
    return header["sweep"]
