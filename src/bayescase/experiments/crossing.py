"""What a way between two descriptions of the same cases costs: case by case takes the labels of the other side.

On each side a differing case has a set of one or two labels, A_i and B_i. The way is a row of distributions, each the
posterior with sets for these cases; all others are free. From one to the next the set of one case changes, which costs

    log p(x_i, z_i in B_i | all else) − log p(x_i, z_i in A_i | all else),        z_i, π_i and φ integrated out

Then its labels are drawn, and sweeps go on. The sum is the work of annealed importance sampling (Neal 2001): the mean of
its exponential is the ratio of the two ends, so the mean of the work lies below the log of that ratio, on either way.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from ..sampling.plan import one_round
from ..sampling.problem import Problem
from ..sampling.run import Run
from ..state import count_observed

SETTLE = 10  # rounds of sweeps before the first step
SWEEP, AGAIN = range(2)  # purposes of random numbers


class Sets(NamedTuple):
    """Of the differing cases: the labels at the start, on the way and at the end, and their shares of the cluster."""

    cases: list[int]
    start: list[tuple[int, ...]]
    way: list[tuple[int, ...]]  # without the cluster that differs
    end: list[tuple[int, ...]]
    leave: np.ndarray  # the cases that leave it, those with the least of it first
    join: np.ndarray  # the cases that join it, those with the most of it first


def label_set(z: np.ndarray) -> tuple[int, ...]:
    """One or two labels that all cells of a case have in as many as possible of its draws, (draws, cells)."""
    found = Counter(tuple(np.unique(draw).tolist()) for draw in z)
    some = [labels for labels in found if len(labels) <= 2]
    if not some:
        return tuple(sorted(np.bincount(z.ravel()).argsort()[:-3:-1].tolist()))
    return max(some, key=lambda labels: sum(n for of, n in found.items() if set(of) <= set(labels)))


def make_sets(z_a: np.ndarray, z_b: np.ndarray, t: int, shares_a: np.ndarray, shares_b: np.ndarray, least: float) -> Sets:
    """The cases with more than `least` of cluster t on one side, by draws z of both, (draws, N, cells); labels match but t."""
    near = np.flatnonzero(np.maximum(shares_a[:, t], shares_b[:, t]) > least)
    start, end = ({int(i): label_set(z[:, i]) for i in near} for z in (z_a, z_b))
    cases = [i for i in start if t in start[i] or t in end[i]]

    def without(i: int) -> tuple[int, ...]:
        for labels in (end[i], start[i]):
            if t not in labels:
                return labels
        rest = np.delete(np.arange(shares_a.shape[1]), t)
        return (int(rest[(shares_a + shares_b)[i, rest].argmax()]),)

    leave = [k for k, i in enumerate(cases) if t in start[i]]
    join = [k for k, i in enumerate(cases) if t in end[i]]
    return Sets(
        cases,
        [start[i] for i in cases],
        [without(i) for i in cases],
        [end[i] for i in cases],
        np.array(sorted(leave, key=lambda k: shares_a[cases[k], t]), dtype=int),
        np.array(sorted(join, key=lambda k: -shares_b[cases[k], t]), dtype=int),
    )


class Crossing:
    """A chain whose differing cases are drawn here, from their sets, and all others by the package."""

    def __init__(self, problem: Problem, z: np.ndarray, sets: Sets, seed: int):
        """z: (N, cells) labels to begin with. The differing cases are gaps to the run, and counted beside it."""
        self.x, self.cases, self.now, self.rng = problem.data.x, sets.cases, list(sets.start), np.random.default_rng(seed)
        few = self.x.copy()
        few[self.cases] = -1
        plan = problem.plan._replace(start=z.astype(np.int64), n_init=1, rounds=one_round(1, 0), seed=seed, moves="none")
        data = problem.data._replace(x=few)
        self.run = Run(problem._replace(data=data, n_i=count_observed(few), plan=plan))
        self.chain, self.driver, self.t = self.run.chains[0], self.run.drivers.get(), 0
        self.z = {i: z[i].copy() for i in self.cases}
        hyper, n = self.chain.hyper, self.x.shape[1]
        a = hyper.alpha * hyper.beta[0]
        self.rise = gammaln(a + np.arange(n + 1)) - gammaln(a)  # (α/S) … (α/S + k − 1)
        self.total = gammaln(hyper.alpha + n) - gammaln(hyper.alpha)
        for i in self.cases:
            self.add(i, 1)
        for _ in range(SETTLE):
            self.go_on()

    def add(self, i: int, sign: int) -> None:
        np.add.at(self.chain.state.n_sv, (self.x[i], self.z[i]), sign)

    def values(self, i: int) -> np.ndarray:
        """(cells, S) (g_sj(x_ij) + n_sv) / Σ_v (g_sj(v) + n_sv), without the case if it is not counted."""
        state, hyper, offset = self.chain.state, self.chain.hyper, self.chain.data.offset
        omega, u = state.omega.T, state.u[:, : self.x.shape[1]].T
        g = hyper.lam * (1.0 + hyper.c * omega * (u == self.x[i][:, None]))
        g_sum = hyper.lam * (np.diff(offset)[:, None] + hyper.c * omega)
        return (g + state.n_sv[self.x[i]]) / (g_sum + np.add.reduceat(state.n_sv, offset[:-1]))

    def weigh(self, values: np.ndarray, labels: tuple[int, ...]) -> tuple[float, np.ndarray]:
        """log p(x_i, all labels of this set), and labels drawn so."""
        n = len(values)
        if len(labels) == 1:
            return float(np.log(values[:, labels[0]]).sum() + self.rise[n] - self.total), np.full(n, labels[0])
        a, b = values[:, labels[0]], values[:, labels[1]]
        odds, chance = b / (a + b), np.zeros((n + 1, n + 1))  # that k of the first t cells take the second
        chance[0, 0] = 1.0
        for t, p in enumerate(odds):
            taken = p * chance[t]
            chance[t + 1] = chance[t] - taken
            chance[t + 1, 1:] += taken[:-1]
        with np.errstate(divide="ignore"):
            w = np.log(chance[n]) + self.rise + self.rise[::-1]
        total = logsumexp(w)
        k, z = int(self.rng.choice(n + 1, p=np.exp(w - total))), np.full(n, labels[0])
        for t, u in zip(range(n - 1, -1, -1), self.rng.random(n), strict=True):
            if k > 0 and u * chance[t + 1, k] < odds[t] * chance[t, k - 1]:
                z[t], k = labels[1], k - 1
        return float(np.log(a + b).sum() + total - self.total), z

    def draw(self, k: int, labels: tuple[int, ...]) -> float:
        """Give case k this set, and labels from it; what the change of the set costs."""
        i = self.cases[k]
        self.add(i, -1)
        values = self.values(i)
        log_p, self.z[i] = self.weigh(values, labels)
        work = log_p - self.weigh(values, self.now[k])[0] if labels != self.now[k] else 0.0
        self.now[k] = labels
        self.add(i, 1)
        return work

    def go_on(self) -> None:
        """Everything once more: a sweep of the free cases, these drawn anew, and all labels of the differing ones."""
        chain, plan = self.chain, self.run.plan
        chain.sweep(plan, self.driver, (SWEEP, self.t), (SWEEP, self.t), True)
        chain.redraw(plan, self.driver, self.t)
        for i in self.cases:
            self.add(i, 1)  # the chain has counted its own cases only
        for k, labels in enumerate(self.now):
            self.draw(k, labels)
        chain.sweep(plan, self.driver, (AGAIN, self.t), (AGAIN, self.t), True)
        self.t += 1


def cross(problem: Problem, z: np.ndarray, sets: Sets, seed: int, rounds: int) -> tuple[list[float], int]:
    """(the work after each step, how many of the steps are out of the cluster); `rounds` of sweeps after each."""
    crossing, work = Crossing(problem, z, sets, seed), [0.0]
    with crossing.run:
        for order, goal in ((sets.leave, sets.way), (sets.join, sets.end)):
            for k in order:
                work.append(work[-1] + crossing.draw(int(k), goal[k]))
                for _ in range(rounds):
                    crossing.go_on()
    return work, len(sets.leave)
