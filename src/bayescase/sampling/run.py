"""The only loop: chains × sweeps. A Run is chains in motion; fitting, running longer and Ctrl-C are thin callers of it."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from queue import SimpleQueue
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ..errors import Advice, BayescaseWarning, Setting
from ..kernels import Driver, Engine, lost_memory, open_engine, open_stored
from . import checkpoint as checkpoints
from .chain import Chain
from .checkpoint import Stage
from .consensus import consensus
from .diagnostics import TRACED, diagnose, is_settled, traced
from .jumps import BLOCKS, TURNS, Switches, Tally, together
from .moves import Mover
from .plan import Plan, Round
from .posterior import ChainDraws, compare
from .problem import Problem
from .search import renamed

CHECKPOINT_SECONDS = 3.0  # between checkpoints, at least
CHECKPOINT_PAUSE = 7  # and so many times longer for each second that the last one took
LATER = Advice("start again later, which goes on from the {} if there is one", Setting("checkpoint"))  # if a GPU is full
ROUNDS_APART = 2  # after so many rounds of settled chains that disagree, more sweeps are not going to help


class Report(NamedTuple):
    """What a callback sees after each sweep."""

    sweep: int
    n_iter: int  # sweeps of the run; if it chooses its own length, up to the next verdict
    log_joint: np.ndarray  # (chains,) of this sweep
    cells_moved: np.ndarray  # (chains,) share of the observed cells
    cases_relabelled: np.ndarray  # (chains,) share of the cases
    purity: np.ndarray  # (chains,) mean over cases of max_s n_is / n_i
    prototypes_changed: np.ndarray  # (chains,) share of the clusters, when prototypes were drawn last


class Draws(NamedTuple):
    """What a run has to show."""

    chains: list[ChainDraws]
    trace: dict[str, np.ndarray]  # name → (chains, sweeps), of the label-free quantities
    kept: Round  # the sweeps that the kept draws come from
    interrupted: bool


class Run:
    """Chains in motion. The numbers depend on the problem alone, not on n_jobs, the device or interruptions.

    `advance` makes sweeps, `extend` asks for more of them, `repin` changes pins and priors, `save` and `resume` keep the run on
    disk, and `draws` is what there is to show. Close it, or use it in a `with` statement.
    """

    def __init__(self, problem: Problem, n_jobs: int = 1, device: str = "cpu"):
        self.problem, self.stage, self.print = problem, Stage(), ""
        data, S, n_chains = problem.data, len(problem.hyper.beta), problem.plan.n_chains
        self.engine: Engine = engine_of(problem, S, n_jobs, device)
        at_once = self.engine.chains_at_once
        self.map = self.engine.threads.pool.map if at_once > 1 else map
        self.drivers: SimpleQueue[Driver] = SimpleQueue()
        self.chains: list[Chain] = []
        rises, mover = None, Mover(data, S) if problem.plan.moves == "clusters" else None
        for _ in range(at_once):
            driver = Driver(data, problem.n_i, problem.hyper, self.engine.threads, rises)
            rises = driver.rises
            self.drivers.put(driver)

        def new(number: int, driver: Driver) -> Chain:
            return Chain(number, problem, self.engine.rows(number), self.engine.candidates, driver, mover)

        try:
            self.chains = self.each(new, range(n_chains))
        except BaseException:
            self.close()
            raise

    @property
    def plan(self) -> Plan:
        return self.problem.plan

    @lost_memory(LATER)
    def each(self, task: Callable[[Any, Driver], Any], items: Iterable[Any]) -> list[Any]:
        """[task(item, driver) for item in items], a driver lent to each."""

        def lend(item: Any) -> Any:
            driver = self.drivers.get()
            try:
                return task(item, driver)
            finally:
                self.drivers.put(driver)

        return list(self.map(lend, items))

    def advance(self, n: int | None = None, after: Callable[[Run], Any] | None = None) -> bool:
        """Make n sweeps, or all there are to make. A true result of `after`, called after each, stops. Returns: finished?"""
        if self.stage.sweep == 0 and n != 0:
            self.find_starts()
        while not self.stage.finished and n != 0:
            t, plan = self.stage.sweep, self.plan
            if t == plan.round_of(t).first:
                self.agree_on_names()
            self.each(lambda chain, driver: chain.step(t, plan, driver), self.chains)
            self.stage = self.next_stage()
            n = None if n is None else n - 1
            if after is not None and after(self):
                break
        return self.stage.finished

    def find_starts(self) -> None:
        """Each chain searches for its start by itself. What all of them met on the way is what each may jump to."""
        found = self.each(lambda chain, driver: chain.search(self.plan, driver), self.chains)
        begun = [chain for chain, labels in zip(self.chains, found, strict=True) if labels]
        if not begun:
            return
        self.find_switches(begun, [labels for labels in found if labels])

    def find_switches(self, chains: list[Chain], found: list[list[np.ndarray]]) -> None:
        """What chains may jump between, and how often they should try: all learn it together.

        found: of each chain the labels that it has, then others that it met. Switches are named after the first chain.
        """
        S, switches = len(self.problem.hyper.beta), Switches.none()
        for turn in range(TURNS):
            now, met = [labels[0] for labels in found], [one for labels in found for one in labels[1:]]
            names = [renamed(now[0].astype(np.int64), one.astype(np.int64), S) for one in now]
            of_each = self.each(lambda chain, driver: chain.find_switches([*now, *met], len(now), driver), chains)
            known = [switches] if turn else []
            switches = together(known + [of.named(to) for of, to in zip(of_each, names, strict=True)])
            tally, found = Tally.none(len(switches.weight)), [[] for _ in chains]
            for block in range(turn * BLOCKS, (turn + 1) * BLOCKS):
                weighed = switches.weighed(tally)
                if not weighed.weight.any():
                    break
                tally = tally.plus(self.learn(chains, weighed, names, block, mix=False))
                for labels, chain in zip(found, chains, strict=True):
                    labels.insert(0, chain.one_each())
            switches, tally = switches.kept(keep := tally.to_keep), tally.of(keep)
            if not all(found):
                break
        for block in range(TURNS * BLOCKS, (TURNS + 1) * BLOCKS if len(switches.weight) else 0):
            tally = tally.plus(self.learn(chains, switches.balanced(tally), names, block, mix=True))
        for chain, to in zip(chains, names, strict=True):
            chain.use_switches(switches.balanced(tally).named(np.argsort(to)))

    def learn(self, chains: list[Chain], switches: Switches, names: list[np.ndarray], block: int, mix: bool) -> Tally:
        """How often jumps of these switches are accepted, in some sweeps of all chains."""

        def one(number: int, driver: Driver) -> Tally:
            return chains[number].learn_switches(switches.named(np.argsort(names[number])), block, self.plan, driver, mix)

        of_each: list[Tally] = self.each(one, range(len(chains)))
        return reduce(Tally.plus, of_each)

    def agree_on_names(self) -> None:
        """What chains that jump call their clusters in the draws that are kept from now on."""
        lately = [one for chain in self.chains for one in chain.lately]
        if lately:
            named_after = consensus(lately, self.chains[0].exchangeable)
            for chain in self.chains:
                chain.named_after = named_after

    def next_stage(self) -> Stage:
        """The stage after one more sweep. At the end of a round it is time to ask whether there should be another."""
        t, now = self.stage.sweep + 1, self.plan.round_of(self.stage.sweep)
        if t < now.end or t == self.plan.n_iter:
            return Stage(t, self.stage.apart, t == self.plan.n_iter)
        trace = self.trace(t)
        _, overlap = compare([chain.draws() for chain in self.chains])
        verdict = diagnose(trace, now, overlap)
        parted = verdict.n_agreeing < verdict.n_chains and is_settled(trace, now)
        apart = self.stage.apart + 1 if parted else 0
        return Stage(t, apart, verdict.converged or apart >= ROUNDS_APART)

    def extend(self, n: int, burn_in: int | None = None) -> None:
        """Plan n more sweeps than were made; see `Plan.extended`."""
        made = self.plan._replace(rounds=self.rounds_made())
        self.problem = self.problem._replace(plan=made.extended(n, burn_in))
        self.stage = Stage(self.stage.sweep)

    def rounds_made(self) -> tuple[Round, ...]:
        """The rounds of the plan as far as they were run."""
        t = self.stage.sweep
        rounds = [r for r in self.plan.rounds if r.end <= t]
        if not rounds or rounds[-1].end < t:
            now = self.plan.round_of(t - 1) if t else self.plan.rounds[0]
            rounds.append(Round(min(now.first, t), t))
        return tuple(rounds)

    def repin(self, problem: Problem) -> None:
        """Go on with the pins and priors of another problem of the same data; what was kept so far is forgotten."""
        self.problem, self.print = problem._replace(plan=self.plan), ""
        self.engine.candidates.log_weight = problem.data.log_weight
        for driver in (self.drivers.get() for _ in range(self.drivers.qsize())):
            driver.omega_held = problem.data.omega_held
            self.drivers.put(driver)
        mover = Mover(problem.data, len(problem.hyper.beta)) if problem.plan.moves == "clusters" else None
        self.each(lambda chain, driver: chain.repin(self.stage.sweep, self.problem, mover, driver), self.chains)

    def draws(self) -> Draws:
        """What there is to show. Of a run that was stopped the second half, of all its sweeps or of those of a whole round."""
        t, plan = self.stage.sweep, self.plan
        chains = self.each(lambda chain, driver: chain.to_show(t, plan, driver), self.chains)
        sweeps = [draw.sweep for draw in chains[0].kept.draws]
        return Draws(chains, self.trace(t), Round(sweeps[0], min(sweeps[-1] + plan.thin, t)), not self.stage.finished)

    def trace(self, t: int) -> dict[str, np.ndarray]:
        names = traced(self.problem.learn)
        return {name: np.array([chain.trace[k, :t] for chain in self.chains]) for k, name in enumerate(names)}

    def report(self) -> Report:
        t = self.stage.sweep
        last = np.array([chain.trace[: len(TRACED), t - 1] for chain in self.chains]).T
        now = dict(zip(TRACED, last, strict=True))
        return Report(t, self.plan.round_of(t - 1).end, **{name: now[name] for name in Report._fields[2:]})

    def fingerprint(self) -> str:
        self.print = self.print or checkpoints.fingerprint(self.problem)
        return self.print

    @lost_memory(LATER)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        checkpoints.save(path, self.fingerprint(), self.problem, self.chains, self.stage)

    @lost_memory(LATER)
    def resume(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint of the same problem, or of a shorter run of it."""
        self.stage, plan = checkpoints.resume(path, self.fingerprint(), self.problem, self.chains)
        self.problem = self.problem._replace(plan=plan)

    def close(self) -> None:
        """Give back threads and memory. What `draws` gave stays."""
        self.engine.close()
        self.chains = []

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lost_memory(LATER)
def engine_of(problem: Problem, S: int, n_jobs: int, device: str) -> Engine:
    """The engine that has the rows: in memory or on a device, or wherever they are stored."""
    data, stored, n_chains = problem.data, problem.stored, problem.plan.n_chains
    if stored is None:
        return open_engine(data, S, n_chains, n_jobs, device, problem.plan.sampler)
    return open_stored(stored.cached, data, stored.log_weight, stored.folder, S, n_chains, n_jobs, stored.client, device)


# --- for callers that wait: checkpoints, Ctrl-C, progress ----------------------------------------------------------------


class Watch(NamedTuple):
    """What a caller wants to see and to keep while a run goes on."""

    callback: Callable[[Report], object] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    verbose: int = 0


def run_to_end(run: Run, watch: Watch) -> None:
    """Advance until the plan is done, a callback or Ctrl-C stops it; write the checkpoint on the way and at the end."""
    saved = time.monotonic()
    written = run.stage.sweep if watch.checkpoint is not None and os.path.exists(watch.checkpoint) else 0  # nothing to keep
    warned, pause = False, CHECKPOINT_SECONDS

    def save(checkpoint: str | os.PathLike[str]) -> None:
        """A checkpoint that cannot be written must not end the run."""
        nonlocal saved, written, warned, pause
        begun = time.monotonic()
        try:
            run.save(checkpoint)
            written = run.stage.sweep
        except OSError as error:
            if not warned:
                why = error.strerror or error
                sentence = "The checkpoint {path} could not be written ({why}); the run goes on."
                warnings.warn(BayescaseWarning(sentence, path=checkpoint, why=why), stacklevel=5)
            warned = True
        saved = time.monotonic()
        pause = CHECKPOINT_SECONDS * max(1.0, CHECKPOINT_PAUSE * (saved - begun))

    with progress(run.plan, watch.verbose) as show, patience() as stopped:

        def after(run: Run) -> bool:
            report = run.report()
            show(report)
            if watch.callback is not None and watch.callback(report):
                return True
            if watch.checkpoint is not None and time.monotonic() - saved > pause:
                save(watch.checkpoint)
            return stopped()

        if not stopped():
            run.advance(after=after)
        if watch.checkpoint is not None and written != run.stage.sweep:
            save(watch.checkpoint)
    if run.stage.sweep == 0:
        raise KeyboardInterrupt


@contextmanager
def patience() -> Iterator[Callable[[], bool]]:
    """Ctrl-C waits for the end of the sweep, so that the state stays whole; a second one does not wait."""
    hits: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(signum: int, frame: FrameType | None) -> None:
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
def progress(plan: Plan, verbose: int) -> Iterator[Callable[[Report], None]]:
    """A function that shows a Report on stderr: a bar with the sweep, the log joint of each chain and the time left."""
    if not verbose:
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("log joint {task.fields[joint]}"), console=Console(stderr=True)) as bar:
        task = bar.add_task("burning in", total=plan.rounds[0].end, joint="…")

        def show(report: Report) -> None:
            bar.update(
                task,
                total=report.n_iter,
                completed=report.sweep,
                description="burning in" if report.sweep <= plan.round_of(report.sweep - 1).first else "sampling",
                joint=" ".join(f"{value:.0f}" for value in report.log_joint),
            )

        yield show
