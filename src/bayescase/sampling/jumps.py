"""Jumps between descriptions: where runs that searched for starts disagree, a chain can go from one to the other.

Two descriptions of the same cases differ in a few clusters and agree in the rest. From one to the other cases would have to
move one by one, through states that are less probable than either. A *switch* is a set of labels L and two ways, A and B, to
give them to cases: those of the run that a chain goes on from, and those of another, named alike. Runs of all chains are met by
each. A jump takes a chain that is near A to B, or back:

    the units of L, all cells of a case with labels in L, get the labels of B, then twice those under which they are most
    probable, and then are drawn one by one, each given the others, twice (`kernels.settle`);
    A likewise leads to the labels that the units had. The last turn is scored, there and on the way back.

Units may mix two labels, as far as they have at most MOST_MIXED cells and β is not integrated out; others that mix stay.

Which switch is taken, and from which side, is drawn by how alike the labels are to that side, and by a weight. What is worth
trying is learned in sweeps of all chains before the first, from how often jumps of a switch are accepted; its weight then is
such that means over cases vary least (`balanced`). Weights are fixed from then on. The labels drawn are accepted by the exact
evidence, with p, ω and φ summed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ..kernels import MOST_MIXED, Driver, Parts, Prior, Rows, change, differences, fill_rough, gather, make_bench, settle
from ..state import Hyper, State
from .hyper import log_tables
from .search import named_after
from .trying import Trial, WholeCases

MOST_CELLS = 50_000  # of a table: in larger ones too many cases would have to draw what they have in the other description
MOST_LABELS = 6  # of a switch
FEWEST, SHARE = 3, 0.25  # so many cases, or a larger share of a cluster, make a difference,
OF_ALL = 0.005  # if they are so many of all cases
ALIKE = 0.1  # switches that differ in a smaller share of their cases are one
FOUND, MOST = 32, 128  # switches that a chain finds, and that it tries, at most
TURNS = 2  # of learning which are worth trying, each from what was met before it; in one more, how often
BLOCKS, BLOCK = 5, 10  # of each, of so many sweeps; weights are reckoned after every block
MORE = 2  # times as many tries as afterwards
TRIES, WANTED = 2, 0.1  # in a sweep, at most, and so that for each switch so many are accepted,
AS_LONG = 2  # and that they take at most so many times as long as sweeps do, by microseconds that were measured once:
ONE_TRY, WITH_BAGS, ONE_CELL = 135, 600, 0.036
PRIOR = (0.1, 1.0)  # as if so much had been accepted, of so many tries
HOPELESS, WORSE = 1e-6, 3  # a try that is accepted with less counts as so many
SELDOM = 0.1  # switches that are accepted less often are tried less, not more
LEAST = 0.005  # switches with a smaller share of accepted jumps are left out,
OFTEN = 0.05  # and those that sweeps make by themselves in a larger share of their number
ROUNDS = 2  # of giving units the labels under which they are most probable
SHARP = 30.0  # a share of one in thirty of cases that differ makes a side e times less likely to be taken

Gain: TypeAlias = Callable[[np.ndarray, np.ndarray], float]  # of cases with some labels, if they get those of a side


class Switches(NamedTuple):
    """The switches of a chain; of number k the sides are the rows 2k and 2k + 1."""

    sides: np.ndarray  # (2K, N) the label of each case, -1 for one that the switch says nothing about
    weight: np.ndarray  # (K,)
    share: np.ndarray  # (K,) of jumps that are accepted, as far as that is known

    @classmethod
    def none(cls) -> Switches:
        return cls.between(np.zeros((0, 0), np.int8))

    @classmethod
    def between(cls, sides: np.ndarray) -> Switches:
        """Of which nothing is known yet."""
        return cls(sides, np.ones(len(sides) // 2), np.ones(len(sides) // 2))

    def labels(self, k: int) -> np.ndarray:
        """L of number k."""
        return np.flatnonzero(np.bincount(self.sides[2 * k : 2 * k + 2].ravel() + 1)[1:])

    @property
    def differing(self) -> np.ndarray:
        """(K,) In how many cases the sides differ."""
        differing: np.ndarray = (self.sides[0::2] != self.sides[1::2]).sum(axis=1)
        return differing

    def named(self, to: np.ndarray) -> Switches:
        """With label s as to[s]."""
        return self._replace(sides=np.append(to, -1)[self.sides].astype(self.sides.dtype))

    def different(self, most: int) -> Switches:
        """The first of them, but none that is like one before it, either way round."""
        pairs = self.sides.reshape(-1, 2, self.sides.shape[1])
        kept: list[int] = []
        for k, sides in enumerate(pairs):
            if len(kept) == most:
                break
            known = pairs[kept]
            where = ((known >= 0) | (sides >= 0)).any(axis=1).sum(axis=1)
            differ = np.minimum((known != sides).sum(axis=(1, 2)), (known != sides[::-1]).sum(axis=(1, 2)))
            if (differ > ALIKE * where).all():
                kept.append(k)
        return Switches(pairs[kept].reshape(-1, self.sides.shape[1]), self.weight[kept], self.share[kept])

    def nearer(self, one: np.ndarray) -> np.ndarray:
        """(K,) Are cases with these labels nearer to the second side?"""
        differ = ((self.sides != one) & (self.sides >= 0)).sum(axis=1)
        nearer: np.ndarray = differ[1::2] < differ[0::2]
        return nearer

    def weighed(self, tally: Tally) -> Switches:
        """With weights to learn by: what moves much, and is accepted often; 0 for those that are hopeless."""
        share = tally.share
        return self._replace(weight=np.where(share > LEAST, self.differing.astype(float) ** 2 * share, 0.0))

    def balanced(self, tally: Tally) -> Switches:
        """With weights to sample by.

        Means of the d cases that a switch moves, which is tried with w and accepted with a, have a variance ∝ d² / (w a). In
        all it is least if w ∝ d / √a. Those of the same labels are one switch here, and share its weight by √a.
        """
        share, differing, weight = tally.share, self.differing, np.zeros(len(self.weight))
        labels = [tuple(self.labels(k)) for k in range(len(weight))]
        for same in set(labels):
            among = np.array([of == same for of in labels])
            accepted = np.average(share[among], weights=np.sqrt(share[among]))
            often = min(accepted**-0.5, accepted * SELDOM**-1.5)
            weight[among] = differing[among].max() * often * np.sqrt(share[among]) / np.sqrt(share[among]).sum()
        return self._replace(weight=weight, share=share)

    def kept(self, which: np.ndarray) -> Switches:
        """Some of them."""
        return Switches(self.sides[np.repeat(which, 2)], self.weight[which], self.share[which])


class Tally(NamedTuple):
    """What was learned of each switch."""

    accepted: np.ndarray  # (K,) the sum of the probabilities that tries were accepted with
    tried: np.ndarray  # (K,)
    made: np.ndarray  # (K,) how often sweeps went to the other side by themselves
    sweeps: int

    @classmethod
    def none(cls, K: int) -> Tally:
        return cls(np.zeros(K), np.zeros(K), np.zeros(K), 0)

    def plus(self, other: Tally) -> Tally:
        return Tally(
            self.accepted + other.accepted, self.tried + other.tried, self.made + other.made, self.sweeps + other.sweeps
        )

    def of(self, which: np.ndarray) -> Tally:
        """Of some switches."""
        return Tally(self.accepted[which], self.tried[which], self.made[which], self.sweeps)

    def tell(self, k: int, chance: float) -> None:
        """A try of number k would have been accepted with this probability."""
        self.accepted[k] += chance
        self.tried[k] += 1 if chance > HOPELESS else WORSE

    @property
    def share(self) -> np.ndarray:
        """(K,) Of tries that are accepted."""
        share: np.ndarray = (self.accepted + PRIOR[0]) / (self.tried + PRIOR[1])
        return share

    @property
    def to_keep(self) -> np.ndarray:
        """(K,) Was any try likely to be accepted, and do sweeps not go there by themselves?"""
        keep: np.ndarray = (self.accepted > LEAST) & (self.share > LEAST) & (self.made <= OFTEN * self.sweeps)
        return keep


class HowOften(NamedTuple):
    """In every so many sweeps so many tries."""

    every: int
    tries: int

    def at(self, t: int) -> int:
        return self.tries if t % self.every == 0 else 0


def how_often(switches: Switches, sizes: np.ndarray, bags: bool) -> HowOften:
    """By how many are accepted, and what a try and a sweep take; cases have so many cells."""
    weight = switches.weight
    if not weight.any():
        return HowOften(1, 0)
    known = switches.sides.reshape(len(weight), 2, -1) >= 0
    labels = np.array([len(switches.labels(k)) for k in range(len(known))])
    costs = (WITH_BAGS if bags else ONE_TRY) + ONE_CELL * labels * (known.any(axis=1) @ sizes)
    one_try, sweep = float(np.average(costs, weights=weight)), 300 + 0.03 * float(sizes.sum())
    accepted = float(np.average(switches.share, weights=weight))
    tries = min(TRIES, AS_LONG * sweep / one_try, WANTED * np.count_nonzero(weight) / accepted)
    return HowOften(max(1, round(1 / tries)), max(1, round(tries)))


def find_switches(best: np.ndarray, others: Sequence[np.ndarray], S: int, gain: Gain, n_sure: int = 0) -> Switches:
    """Where others differ from the best one, each group of clusters that exchange cases by itself.

    First those from the first `n_sure` of the others, then what gains most.
    """
    found: dict[bytes, tuple[np.ndarray, float]] = {}
    for number, other in enumerate(others):
        other = named_after(best.astype(np.int64), other.astype(np.int64), S)
        for labels in exchanging(best, other, S):
            chosen = np.zeros(S, dtype=bool)
            chosen[labels] = True
            pair: np.ndarray = np.array([np.where(chosen[of], of, -1) for of in (best, other)], dtype=smallest_signed(S))
            key = pair[1].tobytes()
            if key not in found:
                found[key] = pair, np.inf if number < n_sure else gain(best, pair[1])
    order = sorted(found.values(), key=lambda known: -known[1])
    sides: np.ndarray = np.array([pair for pair, _ in order], dtype=smallest_signed(S)).reshape(-1, len(best))
    return Switches.between(sides).different(FOUND)


def together(some: Sequence[Switches]) -> Switches:
    """All of them, but none twice."""
    return Switches(*(np.concatenate(of) for of in zip(*some, strict=True))).different(MOST)


def smallest_signed(S: int) -> type:
    return np.int8 if S < 128 else np.int16


def exchanging(a: np.ndarray, b: np.ndarray, S: int) -> list[list[int]]:
    """Groups of labels between which cases go from one labelling to the other."""
    shared = np.zeros((S, S), dtype=np.int64)
    np.add.at(shared, (a, b), 1)
    small = np.minimum(shared.sum(axis=1)[:, None], shared.sum(axis=0)[None, :])
    np.fill_diagonal(shared, 0)
    group = np.arange(S)
    telling = (shared >= FEWEST) | (shared > SHARE * small)
    for s, t in np.argwhere(telling & (shared >= OF_ALL * len(a))):
        group[group == group[t]] = group[s]
    groups = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    return [labels for labels in groups if 2 <= len(labels) <= MOST_LABELS]


class RoughGain:
    """How much more evidence cases have with the labels of a side, roughly."""

    def __init__(self, cases: WholeCases, driver: Driver, hyper: Hyper):
        driver.use(hyper)
        self.cases, self.driver, self.hyper, self.S = cases, driver, hyper, len(hyper.beta)
        self.n = np.zeros((int(cases.data.offset[-1]), self.S + 1), dtype=np.int32)
        self.rough, self.none = np.zeros(self.S), np.zeros((self.S, self.S))

    def __call__(self, labels: np.ndarray, side: np.ndarray) -> float:
        rows = np.flatnonzero((side >= 0) & (side != labels))
        which = np.unique(np.append(side[rows], labels[rows]))
        rows = np.flatnonzero(np.isin(labels, which) | np.isin(side, which))
        there = np.where(side[rows] >= 0, side[rows], labels[rows])
        codes, first = self.cases.cells
        sizes = np.diff(first)[rows]
        places = np.repeat(first[:-1][rows] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())
        x = codes[places].astype(np.int64)
        seen = x >= 0
        found = []
        for one in (labels[rows], there):
            key = (x * (self.S + 1) + np.repeat(one, sizes))[seen]
            self.n[:] = np.bincount(key, minlength=self.n.size).reshape(self.n.shape)
            fill_rough(self.driver.book, self.driver.rises, self.hyper, self.n, which, False, self.rough, self.none)
            found.append(self.rough[which].sum())
        return float(found[1] - found[0])


class Jumps(Trial):
    """The jumps of one sweep."""

    def __init__(
        self,
        cases: WholeCases,
        switches: Switches,
        driver: Driver,
        rows: Rows,
        hyper: Hyper,
        state: State,
        rng: np.random.Generator,
    ):
        super().__init__(cases, driver, rows, hyper, state, rng)
        self.switches, self.weight = switches, np.repeat(switches.weight, 2)
        self.now = self.chances(self.one)
        self.may_mix = hyper.alpha > 0.0 and self.m is None
        log_prior = self.rise if self.m is None else np.zeros_like(self.rise)  # else of tables, whatever their cells
        n = np.arange(len(log_prior))[: MOST_MIXED + 1, None]
        step = max(0.0, float(log_prior[len(n) - 1].max()) / max(len(n) - 1, 1))  # so that a large α does not overflow
        shared = np.exp(log_prior[: len(n)] - step * n) if self.may_mix else np.zeros((0, 0))
        self.prior = Prior(log_prior, shared, step)

    def chances(self, one: np.ndarray) -> np.ndarray:
        """(2K,) Of every side to be the one that is left."""
        differ, known = np.empty((2, len(self.weight)), dtype=np.int64)
        differences(self.switches.sides, one, differ, known)
        chance: np.ndarray = self.weight * np.exp(-SHARP * differ / known)
        return chance / max(chance.sum(), np.finfo(float).tiny)

    def go(self, least: float = 0.0) -> tuple[int, float]:
        """(the switch, the probability that a jump was accepted with, or 0 if it is known to be below `least` and was not)."""
        chances, barrier = self.now, float(np.log1p(-self.rng.random()))
        side = min(int(np.searchsorted(np.cumsum(chances), self.rng.random())), len(chances) - 1)
        switch, labels = side // 2, self.switches.labels(side // 2)
        hopeless = min(barrier, np.log(least)) if least > 0.0 else barrier
        parts, stay = self.parts(labels)
        if not len(parts.row) or chances[side] == 0.0:
            return switch, 0.0
        way = Way(self, labels, parts, stay)
        new = np.empty_like(parts.at)
        ratio = -way.go(self.switches.sides[side ^ 1], new, to_draw=True)
        if (new == parts.at).all():
            return switch, 0.0
        n, one, m = self.n[:, labels], self.one.copy(), self.m
        ratio += change(parts, new, labels, self.prior, n, way.bench.of)
        one[parts.row] = one_of(parts, new, labels)
        if m is not None and self.m is not None:
            of = [labels[at[parts.first[:-1]]] for at in (new, parts.at)]  # units with one label and one table
            m = self.m + np.bincount(of[0], minlength=self.S) - np.bincount(of[1], minlength=self.S)
            ratio += float(log_tables(m, self.hyper.gamma) - log_tables(self.m, self.hyper.gamma))
        there = self.chances(one)
        if there[side ^ 1] == 0.0:
            return switch, 0.0
        evidence, sure, log_t = self.exact_ratio(labels.tolist(), n)
        ratio += evidence + float(np.log(there[side ^ 1]) - np.log(chances[side]))
        if ratio < hopeless:  # the way back has a probability of at most 1
            return switch, 0.0
        ratio += way.go(self.switches.sides[side], parts.at, to_draw=False, least=hopeless - ratio)
        if ratio >= barrier:
            self.n[:, labels], self.one, self.m, self.now = n, one, m, there
            self.sure, self.log_t = self.sure | sure, self.log_t | log_t
            self.z[parts.place] = labels[new]
            self.made += 1
        return switch, float(np.exp(min(0.0, ratio)))

    def parts(self, labels: np.ndarray) -> tuple[Parts, np.ndarray]:
        """The units of these labels, and the counts of all else."""
        codes, starts = self.cases.cells
        place = np.full(self.S + 2, -1)  # also of -1 and -2
        place[labels] = np.arange(len(labels))
        some = (place[self.one] >= 0) | (self.one == -1)
        N, cells = int(some.sum()), int(self.cases.sizes[some].sum())
        x, where, at = np.empty(cells, np.int32), np.empty(cells, np.int64), np.empty(cells, np.int8)
        room = Parts(x, where, np.zeros(N + 1, np.int64), np.empty(N, np.int64), np.empty(N, np.bool_), at)
        stay = self.n[:, labels]
        U = gather(codes, starts, self.z, self.one, place, self.may_mix, room, stay)
        end = room.first[U]
        return Parts(x[:end], where[:end], room.first[: U + 1], room.row[:U], room.whole[:U], at[:end]), stay


class Way:
    """To a side, and back: units that settle near it."""

    def __init__(self, jumps: Jumps, labels: np.ndarray, parts: Parts, stay: np.ndarray):
        driver, self.parts = jumps.driver, parts
        self.place = np.full(jumps.S + 1, -1, dtype=np.int8)
        self.place[labels] = np.arange(len(labels))
        self.sizes = np.diff(parts.first)
        self.bench = make_bench(len(stay), len(driver.book.offset) - 1, len(labels), int(self.sizes.max()))
        self.fixed = (parts, driver.book, driver.rises, jumps.hyper, labels, jumps.prior)
        self.rest, self.rng = (stay, self.bench, ROUNDS), jumps.rng

    def go(self, side: np.ndarray, at: np.ndarray, to_draw: bool, least: float = -np.inf) -> float:
        """Draw labels near this side to `at`, or score what is there: the log probability, -∞ if it is below `least`."""
        now = np.repeat(self.place[side[self.parts.row]], self.sizes)
        key = np.uint64(self.rng.integers(1 << 63))
        log_p: float = settle(*self.fixed, now, at, to_draw, key, *self.rest, least)
        return log_p


def one_of(parts: Parts, at: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The label of each unit's case if it has only one, else -1."""
    first = parts.first[:-1]
    least, most = np.minimum.reduceat(at, first), np.maximum.reduceat(at, first)
    return np.where(parts.whole & (least == most), labels[least], -1)
