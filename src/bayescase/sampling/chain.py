"""One chain: its state, its rows, its trace, and what it has kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..kernels import Candidates, Driver, Moved, Rows, open_engine, stream, sweeps
from ..state import Cells, Hyper, count_observed, new_state, smallest_int
from . import consensus
from .diagnostics import TRACED, traced
from .hyper import count_tables, initial, instead_of_beta, log_prior, slice_log, update
from .jumps import BLOCK, HOPELESS, MORE, Jumps, RoughGain, Switches, Tally, find_switches, how_often
from .moves import Mover
from .plan import OFTEN, SELDOM, SMALL, Plan
from .posterior import Accumulator, ChainDraws, exchangeable_labels
from .problem import Problem
from .search import KINDS, SHORT, Short, crossed, first_observed, fresh, n_runs, search
from .starts import Start, few_cases
from .trying import WholeCases

START, SWEEP, HYPER, MOVE, SEARCH, CASES, JUMP, LEARN, REPIN = range(9)  # purposes of a chain's random numbers
CHANGED = TRACED.index("prototypes_changed")  # of the sweep that drew them last
DRAWN = ("p", "u", "omega", "omega_prob")  # the rest of the state is counted anew


class Chain:
    """A chain in motion. A driver is lent to it for every sweep."""

    def __init__(self, number: int, problem: Problem, rows: Rows, candidates: Candidates, driver: Driver, mover: Mover | None):
        self.number, self.data, self.learn, self.mover = number, problem.data, problem.learn, mover
        self.rows, self.candidates, self.n_i = rows, candidates, problem.n_i
        plan, S = problem.plan, len(problem.hyper.beta)
        self.hyper = initial(problem.hyper, problem.learn)
        self.exchangeable = exchangeable_labels(self.data, self.hyper)
        rng = np.random.default_rng([plan.seed, number, START])
        start = plan.start[number] if isinstance(plan.start, tuple) else plan.start
        self.kind = start if isinstance(start, str) and start in KINDS else None  # of search
        self.problem = problem
        self.cells: Cells | None = None  # of all cases, once they have been drawn anew
        self.whole: WholeCases | None = None  # once there are switches
        self.use_switches(Switches.none())  # between descriptions that the search for the start has met
        self.lately: list[np.ndarray] = []  # labels of cases, if it jumps
        self.named_after = np.zeros((0, 0), dtype=np.float32)  # the consensus of all chains
        self.state = new_state(self.data, S)
        self.n_cells = int((np.arange(len(self.n_i)) * self.n_i).sum())
        self.n_cases = max(1, int(self.n_i[1:].sum()))
        self.kept = self.keep_nothing(plan)
        self.former: Accumulator | None = None
        self.trace = np.zeros((len(traced(self.learn)), 0))
        if problem.stored is None and self.searches(plan):
            return  # its search begins anew
        first = Start(self.data, self.hyper, start, rng, problem.n_cases, plan.seed)
        self.begin(first, self.hyper, driver, stream(plan.seed, number, START))

    def searches(self, plan: Plan) -> bool:
        return self.kind is not None and plan.n_init > 1

    def count(self) -> None:
        """The counts, from nothing."""
        self.state.n_sv[:], self.state.n_rows[:] = self.rows.recount(len(self.state.n_sv))

    def keep_nothing(self, plan: Plan, forget: bool = True) -> Accumulator:
        return Accumulator(self.data, self.exchangeable, plan.keep_draws, forget)

    def step(self, t: int, plan: Plan, driver: Driver) -> None:
        """Sweep number t."""
        before, cells = self.state.p.copy(), t >= plan.single_label[self.number]
        if plan.moves != "none" and cells and t % self.every(plan) == 0:
            self.redraw(plan, driver, t)
        if self.mover and (tries := self.mover.tries(t, whole_cases=not cells)):
            self.move(self.mover, t, plan, driver, tries)
        if cells and (tries := self.jumps_often.at(t)):
            self.jump(plan, driver, tries, t)
        draw_p = t % plan.prototypes_every == 0
        log_joint, moved = self.sweep(plan, driver, (SWEEP, t), (HYPER, t), cells, draw_p)
        if self.may_jump and t % consensus.EVERY == 0:
            self.lately = [*self.lately[1 - consensus.MOST :], self.one_each()]
        changed = float((before != self.state.p).mean())
        self.note(t, log_joint, moved, changed if draw_p or changed else self.trace[CHANGED, t - 1])
        self.keep(t, plan, driver, log_joint)

    def sweep(
        self,
        plan: Plan,
        driver: Driver,
        path: tuple[int, ...],
        hyper_path: tuple[int, ...],
        cells: bool,
        draw_p: bool = True,
    ) -> tuple[float, Moved]:
        """Learned hyperparameters, then all else; (log joint, what moved). The paths lead to the random numbers."""
        rows, state = self.rows, self.state
        if self.learn:
            rng = np.random.default_rng([plan.seed, self.number, *hyper_path])
            self.hyper = update(driver, rows, self.hyper, self.learn, state, self.n_i, rng, alpha=cells)
        key, then = (stream(plan.seed, self.number, *path[:-1], path[-1] + ahead) for ahead in (0, 1))
        log_joint, moved = sweeps[plan.sampler](
            driver, rows, self.candidates, self.hyper, state, key, cells, None if self.learn else then, draw_p
        )
        log_joint += log_prior(self.hyper, self.learn)
        if self.learn.beta:
            log_joint += instead_of_beta(count_tables(self.hyper, state.n_rows, rng), self.hyper)
        return log_joint, moved

    def search(self, plan: Plan, driver: Driver) -> list[np.ndarray]:
        """Go on from the best of many short runs: of all cases, or of a sample in memory, the others by what they are like.

        Returns the labels that cases had in them if jumps could go there, the best first.
        """
        problem, number, kind = self.problem, self.number, self.kind
        if kind is None or not self.searches(plan):
            return []
        few = few_cases(self.data, problem.n_cases, plan.seed)
        met: list[np.ndarray] | None = [] if plan.moves == "jumps" and len(few.x) == problem.n_cases else None
        if few is self.data and problem.stored is None:
            best = self.find(plan, driver, kind, met)
        else:
            engine = open_engine(few, len(self.hyper.beta), 1, driver.threads.n_blocks, self.rows.device)
            small = problem._replace(data=few, n_i=count_observed(few.x, few.bags), stored=None)
            own = Driver(few, small.n_i, small.hyper, engine.threads)
            try:
                best = Chain(number, small, engine.rows(0), engine.candidates, own, None).find(plan, own, kind, met)
            finally:
                engine.close()
        rng = np.random.default_rng([plan.seed, number, SEARCH])  # nothing is drawn: all labels are found
        start = Start(self.data, best.hyper, "seeded", rng, problem.n_cases, plan.seed, best.labels)
        self.begin(start, best.hyper, driver, stream(plan.seed, number, SEARCH, n_runs(plan.n_init), SHORT))
        return [] if met is None else [best.labels, *met]

    def find_switches(self, met: list[np.ndarray], n_sure: int, driver: Driver) -> Switches:
        """From the labels that cases have here to others."""
        gain = RoughGain(self.whole_cases(), driver, self.hyper)
        return find_switches(self.one_each(), met, len(self.hyper.beta), gain, n_sure)

    @property
    def may_jump(self) -> bool:
        return len(self.switches.weight) > 0

    def use_switches(self, switches: Switches) -> None:
        self.switches = switches
        self.jumps_often = how_often(switches, self.data.cells.sizes, self.data.bags is not None)

    def learn_switches(self, switches: Switches, block: int, plan: Plan, driver: Driver, mix: bool) -> Tally:
        """Make sweeps, of whole cases unless they may mix, and jumps: how often these are accepted."""
        self.use_switches(switches)
        tally, (_, tries) = Tally.none(len(switches.weight)), self.jumps_often
        for t in range(BLOCK):
            path, before = (LEARN, block * BLOCK + t), switches.nearer(self.one_each())
            self.redraw(plan, driver, *path, mix=mix)
            self.sweep(plan, driver, path, path, cells=mix)
            tally.made[before != switches.nearer(self.one_each())] += 1
            for k, chance in self.jump(plan, driver, MORE * tries, *path, least=HOPELESS):
                tally.tell(k, chance)
        return tally._replace(sweeps=BLOCK)

    @cached_property
    def seen(self) -> np.ndarray:
        return first_observed(self.data.cells)

    def one_each(self) -> np.ndarray:
        """(N,) The label of the first cell of each case, 0 of one without cells."""
        one = self.rows.single()
        labels = one if (one >= 0).all() else self.rows.labels()[self.seen]
        return np.where(self.seen >= 0, labels, 0).astype(smallest_int(len(self.hyper.beta)))

    def find(self, plan: Plan, driver: Driver, kind: str, met: list[np.ndarray] | None = None) -> Short:
        """The best of many short runs, which move whole cases only; the labels of all of them to `met`."""
        data, hyper, S = self.data, self.hyper, len(self.hyper.beta)
        runs, held = itertools.count(), data.z_held

        def run(labels: np.ndarray, hyper: Hyper, n_sweeps: int = SHORT) -> Short:
            path = (SEARCH, next(runs))
            labels = (np.where(held >= 0, held, labels) if len(held) else labels).astype(smallest_int(S), copy=False)
            key = stream(plan.seed, self.number, *path, SHORT)
            self.begin(lambda rows, cells: labels[rows, None], hyper, driver, key)
            joint = [self.sweep(plan, driver, (*path, t), (*path, t), cells=False)[0] for t in range(n_sweeps)]
            one = self.one_each()
            if met is not None:
                met.append(one)
            return Short(one, self.hyper, float(np.mean(joint[n_sweeps // 2 :] or [0.0])))

        def start(k: int) -> Short:
            rng = np.random.default_rng([plan.seed, self.number, SEARCH, k])
            return run(fresh(data, hyper, kind, k, rng, plan.seed), hyper)

        def cross(a: Short, b: Short) -> Short:
            most = max(len(np.unique(run.labels)) for run in (a, b)) if self.learn.beta else S
            return run(crossed(data, a.hyper, a.labels, b.labels, most), a.hyper)

        return search(start, cross, plan.n_init)

    def begin(self, start: Callable[[slice, Cells], np.ndarray], hyper: Hyper, driver: Driver, key: np.uint64) -> None:
        """A new state, from labels of the cells of every row."""
        self.rows.start(start)
        self.hyper, self.state = hyper, new_state(self.data, len(hyper.beta))
        self.count()
        driver.update_p_omega(hyper, self.state, self.candidates, key)

    def move(self, mover: Mover, t: int, plan: Plan, driver: Driver, tries: int) -> None:
        """Try to move many cases at once."""
        rng = np.random.default_rng([plan.seed, self.number, MOVE, t])
        made, self.hyper = mover.sweep(driver, self.rows, self.hyper, self.state, rng, tries)
        if made:
            self.count()
            driver.update_p_omega(self.hyper, self.state, self.candidates, stream(plan.seed, self.number, MOVE, t))

    def jump(self, plan: Plan, driver: Driver, tries: int, *path: int, least: float = 0.0) -> list[tuple[int, float]]:
        """Try to go to another description; of each try the switch, and the probability that it was accepted with."""
        rng = np.random.default_rng([plan.seed, self.number, JUMP, *path])
        trial = Jumps(self.whole_cases(), self.switches, driver, self.rows, self.hyper, self.state, rng)
        found = [trial.go(least) for _ in range(tries)]
        if trial.made:
            self.rows.put_labels(trial.z)
            self.count()
            self.hyper = trial.after()
            driver.update_p_omega(self.hyper, self.state, self.candidates, stream(plan.seed, self.number, JUMP, *path))
        return found

    def whole_cases(self) -> WholeCases:
        if self.whole is None:
            self.whole = WholeCases(self.data)
        return self.whole

    def every(self, plan: Plan) -> int:
        """Sweeps from one redraw to the next: a learned α needs them more often."""
        often = OFTEN if self.n_cells <= SMALL else SELDOM
        return often // 2 if "alpha" in self.learn.names else often

    def redraw(self, plan: Plan, driver: Driver, *path: int, mix: bool = True) -> None:
        """Draw cases with one label anew as a whole, and, to mix, two labels of each case jointly, a learned α with them."""
        if self.cells is None:
            self.cells, _, _ = self.rows.take(np.arange(int(self.n_i.sum())))
        path = (self.number, CASES, *path)
        draw_alpha = None
        if "alpha" in self.learn.names and mix:
            draw_alpha = partial(slice_log, "alpha", self.hyper.alpha, rng=np.random.default_rng([plan.seed, *path]))
        z, held = self.rows.labels(), self.data.z_held
        key = stream(plan.seed, *path)
        self.hyper = driver.redraw(self.hyper, self.state, self.cells, z, held, key, draw_alpha, mix)
        self.rows.put_labels(z)
        self.count()

    def note(self, t: int, log_joint: float, moved: Moved, prototypes_changed: float) -> None:
        """One more column of the trace, in the order of `diagnostics.traced`."""
        size = np.add.reduce(self.state.n_sv, axis=0) / max(self.n_cells, 1)
        if t >= self.trace.shape[1]:
            self.trace = np.concatenate([self.trace, np.zeros((len(self.trace), max(100, t)))], axis=1)
        self.trace[:, t] = (
            log_joint,
            moved.purity / self.n_cases,
            self.state.omega.sum(),
            -(size[size > 0] * np.log(size[size > 0])).sum(),
            moved.cells / max(self.n_cells, 1),
            moved.rows / self.n_cases,
            prototypes_changed,
            *(
                float(self.hyper.q[self.learn.q_free][0]) if name == "q" else getattr(self.hyper, name)
                for name in self.learn.names
            ),
            *([moved.clusters_in_use] if self.learn.beta else []),
        )

    def keep(self, t: int, plan: Plan, driver: Driver, log_joint: float) -> None:
        """Add the draw of sweep t to the means, if it is one to keep. With a round, and with a burn-in, they begin anew."""
        now = plan.round_of(t)
        if t == now.first or (t < now.first and not self.kept.forget):
            self.former = self.kept if self.kept.draws else None
            self.kept = self.keep_nothing(plan, forget=t < now.first)
            self.rows.new_means(keep_former=self.former is not None)
        if (t - now.first) % plan.thin == 0:
            to = None
            if t >= now.first and len(self.named_after):
                to = consensus.names(self.named_after, self.one_each(), self.exchangeable)
            self.kept.add(driver, self.rows, self.state, self.hyper, log_joint, t, to)
        if self.former is not None and len(self.kept.draws) >= len(self.former.draws):
            self.former = None
            self.rows.drop_former()

    def to_show(self, t: int, plan: Plan, driver: Driver) -> ChainDraws:
        """What there is to show after t sweeps. If a round has just begun, that is what was kept before it."""
        if self.former is not None and t < plan.round_of(t - 1).end:
            return ChainDraws(self.rows.former_memberships(), self.former)
        if not self.kept.draws:
            self.kept.add(driver, self.rows, self.state, self.hyper, self.trace[0, t - 1], t - 1)
        return self.draws()

    def repin(self, t: int, problem: Problem, mover: Mover | None, driver: Driver) -> None:
        """Go on from sweep t with other pins and priors: held cases get their labels, and what was kept is forgotten."""
        self.problem, self.data, self.mover, self.whole = problem, problem.data, mover, None
        self.hyper = self.hyper._replace(q=np.where(self.learn.q_free, self.hyper.q, problem.hyper.q))
        self.rows.hold(self.data.z_held)
        self.count()
        held = self.data.omega_held[:, : self.data.book.n_single]  # an item of a bag follows with the next prototype
        self.state.omega[:, : held.shape[1]][held >= 0] = held[held >= 0]
        if problem.plan.prototypes_every > 1:  # else the next sweep draws them
            key = stream(problem.plan.seed, self.number, REPIN, t)
            driver.update_p_omega(self.hyper, self.state, self.candidates, key)
        self.exchangeable = exchangeable_labels(self.data, self.hyper)
        self.lately, self.named_after = [], np.zeros((0, 0), dtype=np.float32)
        self.kept, self.former = self.keep_nothing(problem.plan), None
        self.rows.new_means()

    def arrays(self, t: int) -> dict[str, np.ndarray]:
        """All that must outlive the process after t sweeps, by name."""
        found = self.rows.arrays() | {"trace": self.trace[:, :t]}
        found |= {f"state/{name}": getattr(self.state, name) for name in DRAWN}
        found |= {f"switches/{name}": value for name, value in self.switches._asdict().items()}
        found |= {"lately": np.array(self.lately), "named_after": self.named_after}
        found |= {f"hyper/{name}": np.asarray(value) for name, value in self.hyper._asdict().items()}
        return found | {f"kept/{name}": value for name, value in self.kept.arrays().items()}

    def restore(self, arrays: dict[str, np.ndarray], plan: Plan) -> None:
        """Take over the state that `arrays` wrote down."""
        stored = {name: arrays[f"hyper/{name}"] for name in self.hyper._fields}
        hyper: dict[str, Any] = {name: value if value.ndim else float(value) for name, value in stored.items()}
        self.hyper = Hyper(**hyper)
        self.use_switches(Switches(*(arrays[f"switches/{name}"] for name in Switches._fields)))
        self.lately, self.named_after = list(arrays["lately"]), arrays["named_after"]
        self.rows.restore(arrays)
        self.count()
        for name in DRAWN:
            getattr(self.state, name)[:] = arrays[f"state/{name}"]
        self.trace = arrays["trace"]
        self.kept, self.former = self.keep_nothing(plan), None
        self.kept.restore({name.removeprefix("kept/"): value for name, value in arrays.items() if name.startswith("kept/")})

    def draws(self) -> ChainDraws:
        """What this round has kept."""
        return ChainDraws(self.rows.memberships, self.kept)
