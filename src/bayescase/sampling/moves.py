"""Moves of many cases at once between clusters, exact: p, ω and φ are summed out, and for an unknown number of clusters β.

Sweeps move one case at a time, and a cluster that should be two never becomes two that way. Here units (`trying`) of two or
three labels get other ones of these.

    exchange   a and b become one, c becomes two: the number of clusters stays
    resplit    the union of a and b is split anew
    divide     a becomes two, one half with a label that has no cells; or, in reverse, b joins a

A split is made around two units, or by a value that some have, and drawn unit by unit, so that its probability is known
(`kernels.split`); likewise that of the split which the reverse of the move would make. The units at the centres are drawn from
all pairs where a split is made, and from its two sides where it is undone: both count. The way of each split is chosen at
random, by the same chances in both directions: good splits are refined, but one made in turn can lead back to any state.

A proposal is accepted in two steps (Christen and Fox 2005): by a rough evidence that needs no candidates, then by the exact one
over the rough one. Of bags the state has t, too, as where prototypes are drawn; a move draws t of the clusters that it makes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import Driver, Rows, Sides, Units, fill_rough, split
from ..state import Data, Hyper, State
from .trying import Move, Trial, WholeCases, unit_counts

# How likely exchange, resplit and divide are, by whether the number of clusters is to be found
KINDS = {False: (0.5, 0.4, 0.1), True: (0.3, 0.3, 0.4)}
IN_TURN, AROUND = 0.5, 0.75  # a uniform below the first: a split in turn; below the second: refined around two; else by a value
MOST_ROUNDS = 3  # of refining
TRIES = 8  # at a time
# In each of the first sweeps, which move whole cases only: by cluster; at least, at most; and at most as long as so many sweeps
FIRST, LEAST_FIRST, MOST_FIRST, FIRST_COST = 8, 48, 160, 40
MOST_CELLS = 1 << 24  # of a table: beyond, a copy of the labels is too much
MILD = 4.0  # nats of lost evidence that make a pair e times less likely to be chosen


class Mover(WholeCases):
    """Makes moves; chains share it."""

    def __init__(self, data: Data, S: int):
        super().__init__(data)
        self.period, self.first_tries = how_often(len(self.cells.codes), len(data.x), int(data.offset[-1]), S)
        self.pairs = np.triu_indices(S, 1)

    def tries(self, t: int, whole_cases: bool) -> int:
        """How many in sweep t: some now and then; many while cases have one label each, and none stands in the way."""
        if not self.period:
            return 0
        return self.first_tries if whole_cases else TRIES if t % self.period == 0 else 0

    def sweep(
        self, driver: Driver, rows: Rows, hyper: Hyper, state: State, rng: np.random.Generator, tries: int = TRIES
    ) -> Moves:
        """Some tries. If any is accepted, the rows have their new labels; the caller counts again, and draws p and ω."""
        tried = Tries(self, driver, rows, hyper, state, rng)
        for _ in range(tries):
            tried.go()
        if tried.made:
            rows.put_labels(tried.z)
        return Moves(tried.made, tried.after() if tried.made else hyper)


class Moves(NamedTuple):
    """What came of some tries."""

    made: int
    hyper: Hyper  # β drawn anew if it was integrated out


def how_often(cells: int, cases: int, values: int, S: int) -> tuple[int, int]:
    """(sweeps between tries, tries in each of the first sweeps), (0, 0) for never.

    Tries take as long as the sweeps, by microseconds that were measured once: the same run has the same numbers everywhere.
    """
    if S < 2 or cases < 2 or cells > MOST_CELLS:
        return 0, 0
    one_try = 250 + 1.2 * values + 0.016 * cells * min(1.0, 2.5 / S)
    sweep = 300 + 0.03 * cells
    often = round((250 + 0.027 * S * S * values + TRIES * one_try) / sweep)
    first = min(max(FIRST * S, LEAST_FIRST), MOST_FIRST, int(FIRST_COST * sweep / one_try))
    return max(1, often), max(TRIES, first)


class Tries(Trial):
    """The tries of one sweep."""

    def __init__(self, mover: Mover, driver: Driver, rows: Rows, hyper: Hyper, state: State, rng: np.random.Generator):
        super().__init__(mover, driver, rows, hyper, state, rng)
        self.rough, self.gain = np.zeros(self.S), np.zeros((self.S, self.S))
        self.fill(self.n, np.arange(self.S), self.rough, self.gain)
        self.pairs = mover.pairs

    def fill(self, n: np.ndarray, which: np.ndarray, rough: np.ndarray, gain: np.ndarray) -> None:
        """The rough evidence of some labels, and of their unions with all."""
        for with_pairs in (False, True):
            fill_rough(self.driver.book, self.driver.rises, self.hyper, n, which, with_pairs, rough, gain)

    # --- a try ----------------------------------------------------------------------------------------------------------

    def go(self) -> None:
        """Propose a move, and accept it or not; one that cannot pass is given up as soon as that is known."""
        move = self.propose()
        if move is None or not move.log_ratio < np.inf:
            return
        barrier = np.log1p(-self.rng.random())
        n, which = self.n.copy(), np.array(move.labels)
        n[:, which] = move.stay + unit_counts(move.units, move.new, *move.stay.shape)
        rough, gain = self.rough.copy(), self.gain.copy()
        fill_rough(self.driver.book, self.driver.rises, self.hyper, n, which, False, rough, gain)
        ratio = move.log_ratio + self.log_prior(move) + (rough - self.rough)[which].sum()
        if ratio < barrier:  # densities of the way back are at most 1, but for what the ratio has
            return
        ratio += self.undo(move)
        if ratio < barrier:
            return
        fill_rough(self.driver.book, self.driver.rises, self.hyper, n, which, True, rough, gain)
        if move.back is not None:
            ratio += self.log_chance(gain, *move.back)
        if ratio >= barrier and self.is_sure(move.labels, n, rough):
            self.n, self.rough, self.gain = n, rough, gain
            self.take_over(move)

    def propose(self) -> Move | None:
        exchange, resplit, _ = KINDS[self.m is not None]
        u = self.rng.random() * (1.0 if self.S > 2 else 1.0 - exchange) + (0.0 if self.S > 2 else exchange)
        if u < exchange:
            return self.exchange()
        if u < exchange + resplit:
            return self.resplit()
        return self.join() if self.rng.random() < 0.5 else self.divide()

    def is_sure(self, labels: list[int], n: np.ndarray, rough: np.ndarray) -> bool:
        """The second step: exact evidence over rough evidence, there over here."""
        ratio, sure, log_t = self.exact_ratio(labels, n[:, labels])
        ratio += sum(self.rough[s] - rough[s] for s in labels)
        if np.log1p(-self.rng.random()) > ratio:
            return False
        self.sure |= sure
        self.log_t |= log_t
        return True

    # --- proposals ------------------------------------------------------------------------------------------------------

    def exchange(self) -> Move | None:
        """a and b become one, c becomes two, b the label of its half."""
        c = self.below(self.S)
        a, b = self.choose_pair(c)
        if a < 0:
            return None
        units, stay = self.units([a, b, c])
        sizes = np.bincount(units.at, minlength=3)
        if sizes[0] == 0 or sizes[1] == 0 or sizes[2] < 2:
            return None
        third = units.at == 2
        side, forth = self.split(units, np.flatnonzero(third), [c, b], stay[:, [2, 1]])
        new = np.where(third, 2 - side, 0).astype(np.int8)
        return Move([a, b, c], units, stay, new, -forth - self.log_chance(self.gain, c, a, b), (a, b, c))

    def resplit(self) -> Move | None:
        """The union of a and b is split anew."""
        a, b = self.choose_pair()
        if a < 0:
            return None
        units, stay = self.units([a, b])
        if np.bincount(units.at, minlength=2).min() == 0:
            return None
        side, forth = self.split(units, np.arange(len(units.at)), [a, b], stay)
        return Move([a, b], units, stay, side, -forth - self.log_chance(self.gain, -1, a, b), (-1, a, b))

    def join(self) -> Move | None:
        """b joins a, and no cell has its label."""
        a, b = self.choose_pair()
        if a < 0:
            return None
        units, stay = self.units([a, b])
        if np.bincount(units.at, minlength=2).min() == 0 or stay[:, 1].any():
            return None
        used = int(self.n[:, : self.S].any(axis=0).sum())
        ratio = -np.log(0.5) - self.log_chance(self.gain, -1, a, b) - np.log(used - 1) - np.log(self.S - used + 1)
        return Move([a, b], units, stay, np.zeros_like(units.at), float(ratio), None)

    def divide(self) -> Move | None:
        """a becomes two, one half with a label that has no cells."""
        has = self.n[:, : self.S].any(axis=0)
        used, free = np.flatnonzero(has), np.flatnonzero(~has)
        if not len(used) or not len(free):
            return None
        a, b = int(used[self.below(len(used))]), int(free[self.below(len(free))])
        units, stay = self.units([a, b])
        if len(units.at) < 2:
            return None
        side, forth = self.split(units, np.arange(len(units.at)), [a, b], stay)
        return Move([a, b], units, stay, side, float(np.log(0.5) + np.log(len(used) * len(free)) - forth), (-1, a, b))

    def undo(self, move: Move) -> float:
        """The log density of the split that the reverse of the move would make; 0 if it would join."""
        if move.back is not None and not (move.units.at == 1).any():
            return 0.0
        who = np.flatnonzero(move.units.at < 2)
        return self.split(move.units, who, move.labels[:2], move.stay[:, :2], move.units.at)[1]

    def split(
        self, units: Units, who: np.ndarray, labels: list[int], stay: np.ndarray, given: np.ndarray | None = None
    ) -> tuple[np.ndarray, float]:
        """Split some units, or score the split that is given: (sides of all units, log density)."""
        rng, U, n, V = self.rng, len(units.at), len(who), len(stay)
        way, rounds = rng.random(), self.below(MOST_ROUNDS + 1)
        sides = Sides(
            side=np.zeros(U, np.int8) if given is None else given.astype(np.int8),
            now=np.full(U, -1, np.int8),
            fixed=np.zeros(U, bool),
            order=rng.permutation(who) if way < IN_TURN else who,
            u=rng.random(U) if given is None else np.zeros(0),
            stay=np.ascontiguousarray(stay),
            n=np.empty((V, 2), np.int32),
            log_phi=np.empty((V, 4)),
        )
        if way < AROUND:
            i, j = self.centres(who, given)
            sides.now[i], sides.now[j], sides.side[i], sides.side[j] = 0, 1, 0, 1
            sides.fixed[i] = sides.fixed[j] = True
        elif not self.by_value(units, who, sides.now):
            return sides.side, -np.inf
        rounds = -1 if way < IN_TURN else rounds
        found = split(*units[:2], self.driver.book, self.driver.rises, self.hyper, np.array(labels), sides, rounds)
        ones = int(sides.side[who].sum())
        if ones in (0, n):
            return sides.side, -np.inf
        if way < AROUND:  # two of n where it is made; one of each side where it is undone
            found += np.log(ones * (n - ones)) - np.log(n * (n - 1))
        return sides.side, float(found)

    def centres(self, who: np.ndarray, given: np.ndarray | None) -> tuple[int, int]:
        """The units that a split is made around, or was."""
        if given is not None:
            zero, one = who[given[who] == 0], who[given[who] == 1]
            return int(zero[self.below(len(zero))]), int(one[self.below(len(one))])
        i, j = self.below(len(who)), self.below(len(who) - 1)
        return int(who[i]), int(who[j + (j >= i)])

    def by_value(self, units: Units, who: np.ndarray, now: np.ndarray) -> bool:
        """Those that have a value of one of them on one side, the others on the other; False if that one has a gap there."""
        i = who[self.below(len(who))]
        lo, hi = units.first[i], units.first[i + 1]
        v = units.codes[lo + self.below(hi - lo)]
        has = np.zeros(len(now), bool)
        has[np.repeat(np.arange(len(now)), np.diff(units.first))[units.codes == v]] = True
        now[who] = has[who] if self.rng.random() < 0.5 else ~has[who]
        return bool(v >= 0)

    # --- pairs ----------------------------------------------------------------------------------------------------------

    def chances(self, gain: np.ndarray, but: int) -> np.ndarray:
        """Of every pair of labels that have cells, `but` left out: half of the time all are alike, else by what they gain."""
        i, j = self.pairs
        gains = np.where((i == but) | (j == but), -np.inf, gain[i, j])
        ok = gains > -np.inf
        if not ok.any():
            return np.zeros(len(i))
        weight = np.exp((gains - gains.max()) / MILD)
        return 0.5 * ok / ok.sum() + 0.5 * weight / weight.sum()

    def choose_pair(self, but: int = -1) -> tuple[int, int]:
        """An ordered pair, or (-1, -1) if there is none."""
        chances = self.chances(self.gain, but)
        if not chances.any():
            return -1, -1
        k = min(int(np.searchsorted(np.cumsum(chances), self.rng.random())), len(chances) - 1)
        a, b = int(self.pairs[0][k]), int(self.pairs[1][k])
        return (a, b) if self.rng.random() < 0.5 else (b, a)

    def log_chance(self, gain: np.ndarray, but: int, a: int, b: int) -> float:
        """Of the pair {a, b}."""
        a, b = min(a, b), max(a, b)
        k = a * self.S - a * (a + 1) // 2 + b - a - 1
        return float(np.log(self.chances(gain, but)[k]))
