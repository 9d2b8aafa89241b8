"""Jumps between descriptions: where two short runs that searched for the start disagree, a chain can go from one to the other.

Two descriptions of the same cases differ in a few clusters and agree in the rest. From one to the other cases would have to
move one by one, through states that are less probable than either. A *switch* is a set of labels L and two ways, A and B, to
give them to cases: those of the best run, and those of another, named alike. A jump takes a chain that is near A to B, or back:

    the units (`trying`) of L get the labels of B, then twice those under which they are most probable;
    given these labels each unit draws its own, φ as it is without its cells (`kernels.settle`);
    A likewise leads to the labels that the units had, and their probability is that of the way back.

Which switch is taken, and from which side, is drawn by how alike the labels are to that side, and by a weight: how often jumps
of that switch were accepted in sweeps before the first, times the cases that differ. Weights are fixed from then on. Both
count. The labels drawn are accepted by the exact evidence, with p, ω and φ summed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ..kernels import Driver, Rows, Units, settle
from ..state import Hyper, State
from .search import named_after
from .trying import Move, Trial, WholeCases, unit_counts

MOST_CELLS = 50_000  # of a table: in larger ones too many cases would have to draw what they have in the other description
MOST_LABELS = 4  # of a switch
FEWEST = 3  # cases that make a difference
ALIKE = 0.1  # switches that differ in a smaller share of their cases are one
LOOKED_AT, KEPT = 48, 12  # switches, at most
ROUNDS = 2  # of giving units the labels under which they are most probable
SHARP = 30.0  # a share of one in thirty of cases that differ makes a side e times less likely to be taken
LEARNT = 60  # sweeps before the first, to learn the weights
TRIES_LEARNING, TRIES = 10, 2  # in a sweep
PRIOR = (0.05, 0.5)  # as if so much had been accepted, of so many tries
LEAST = 0.02  # of the best weight: switches with less are left out


class Switches(NamedTuple):
    """The switches of a chain; of number k the sides are the rows 2k and 2k + 1."""

    sides: np.ndarray  # (2K, N) the label of each case, -1 for one that the switch says nothing about
    weight: np.ndarray  # (K,)

    @classmethod
    def none(cls) -> Switches:
        return cls(np.zeros((0, 0), np.int8), np.zeros(0))

    def labels(self, k: int) -> list[int]:
        """L of number k."""
        return [int(s) for s in np.unique(self.sides[2 * k : 2 * k + 2]) if s >= 0]

    @property
    def differing(self) -> np.ndarray:
        """(K,) In how many cases the sides differ."""
        differing: np.ndarray = (self.sides[0::2] != self.sides[1::2]).sum(axis=1)
        return differing

    def best(self, weight: np.ndarray) -> Switches:
        """Those that are worth their time, with these weights."""
        order = np.argsort(-weight, kind="stable")[:KEPT]
        order = order[weight[order] > LEAST * weight.max(initial=0.0)]
        return Switches(self.sides[np.stack([2 * order, 2 * order + 1], axis=1).reshape(-1)], weight[order])


def find_switches(best: np.ndarray, others: Sequence[np.ndarray], S: int) -> Switches:
    """Where other runs differ from the best one, each group of clusters that exchange cases by itself; common ones first."""
    found: dict[bytes, list[np.ndarray]] = {}
    times: dict[bytes, int] = {}
    for other in others:
        other = named_after(best.astype(np.int64), other.astype(np.int64), S)
        for labels in exchanging(best, other, S):
            sides: list[np.ndarray] = [np.where(np.isin(of, labels), of, -1).astype(smallest_signed(S)) for of in (best, other)]
            key = next((key for key, known in found.items() if alike(known, sides)), sides[1].tobytes())
            found.setdefault(key, sides)
            times[key] = times.get(key, 0) + 1
    keys = sorted(found, key=lambda key: -times[key])[:LOOKED_AT]
    if not keys:
        return Switches.none()
    return Switches(np.array([side for key in keys for side in found[key]]), np.ones(len(keys)))


def smallest_signed(S: int) -> type:
    return np.int8 if S < 128 else np.int16


def alike(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    """Are they the same switch, but for a few cases?"""
    where = (a[0] >= 0) | (b[0] >= 0) | (a[1] >= 0) | (b[1] >= 0)
    return int((a[0] != b[0]).sum() + (a[1] != b[1]).sum()) <= ALIKE * int(where.sum())


def exchanging(a: np.ndarray, b: np.ndarray, S: int) -> list[list[int]]:
    """Groups of labels between which cases go from one labelling to the other."""
    shared = np.zeros((S, S), dtype=np.int64)
    np.add.at(shared, (a, b), 1)
    np.fill_diagonal(shared, 0)
    group = np.arange(S)
    for s, t in np.argwhere(shared >= FEWEST):
        group[group == group[t]] = group[s]
    groups = [np.flatnonzero(group == g).tolist() for g in np.unique(group)]
    return [labels for labels in groups if 2 <= len(labels) <= MOST_LABELS]


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
        self.sides, self.weight, self.labels = switches.sides, np.repeat(switches.weight, 2), cache(switches.labels)
        self.known = self.sides >= 0
        self.size = self.known.sum(axis=1)
        self.now = self.chances(self.one)

    def chances(self, one: np.ndarray) -> np.ndarray:
        """(2K,) Of every side to be the one that is left."""
        differ = ((self.sides != one) & self.known).sum(axis=1)
        chance: np.ndarray = self.weight * np.exp(-SHARP * differ / self.size)
        return chance / max(chance.sum(), np.finfo(float).tiny)

    def go(self) -> tuple[int, float]:
        """(the switch, the probability that a jump was accepted with)."""
        chances = self.now
        side = min(int(np.searchsorted(np.cumsum(chances), self.rng.random())), len(chances) - 1)
        labels = self.labels(side // 2)
        units, stay = self.units(labels)
        if not len(units.at) or chances[side] == 0.0:
            return side // 2, 0.0
        settle = self.settler(labels, units, stay)
        new, forth = settle(side ^ 1)
        if (new == units.at).all():
            return side // 2, 0.0
        _, back = settle(side, units.at)
        n, one = self.n.copy(), self.one.copy()
        n[:, labels] = stay + unit_counts(units, new, *stay.shape)
        single = one[units.row] >= 0
        one[units.row[single]] = np.array(labels)[new[single]]
        there = self.chances(one)
        if there[side ^ 1] == 0.0:
            return side // 2, 0.0
        move = Move(labels, units, stay, new, back - forth, None)
        ratio, sure, log_t = self.exact_ratio(labels, n)
        ratio += move.log_ratio + self.log_prior(move) + float(np.log(there[side ^ 1]) - np.log(chances[side]))
        if np.log1p(-self.rng.random()) <= ratio:
            self.n, self.sure, self.log_t, self.now = n, self.sure | sure, self.log_t | log_t, there
            self.take_over(move)
        return side // 2, float(np.exp(min(0.0, ratio)))

    def settler(self, labels: list[int], units: Units, stay: np.ndarray) -> Callable[..., tuple[np.ndarray, float]]:
        """settle(side, given): labels drawn for units that begin as on a side, or those given, and their log density."""
        place, (V, L) = np.full(self.S + 1, -1, dtype=np.int8), stay.shape
        place[labels] = np.arange(L)
        prior = np.zeros((len(units.at), L))
        if self.m is None:  # else β is integrated out, and nothing may depend on it
            size = np.add.reduceat(units.codes >= 0, units.first[:-1], dtype=np.int64)
            prior += self.rise[size][:, labels]
        fixed = (units.codes, units.first, self.driver.book, self.driver.rises, self.hyper, np.array(labels), prior)
        room = (np.ascontiguousarray(stay), np.empty((V, L), np.int32), np.empty((V, 2 * L)), np.empty(L), ROUNDS)

        def of(side: int, given: np.ndarray | None = None) -> tuple[np.ndarray, float]:
            now = place[self.sides[side][units.row]]
            new, u = (np.zeros_like(now), self.rng.random(len(now))) if given is None else (given, np.zeros(0))
            return new, settle(*fixed, now, new, u, *room)

        return of
