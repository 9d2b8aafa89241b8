"""How long a run is, and which of its sweeps are kept.

Sweeps come in rounds, each of which keeps its own draws. A run of given length is one round. A run that
chooses its length has several: each ends after twice as many sweeps as the one before, whose draws it forgets. The run ends
when the verdict on a round is good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FIRST_ROUND = 250  # sweeps at least, if a run chooses its own length
MOVES = ("none", "cases", "clusters", "jumps")  # what is moved between sweeps; clusters, and jumps: cases as well
MOST_CELLS = 1_000_000  # "auto": cases of a larger table are not drawn anew between sweeps
SMALL, OFTEN, SELDOM = 60_000, 2, 8  # of so many cells: they are in every second sweep, those of larger tables in every eighth
MANY_CLUSTERS, MANY_CELLS = 16, 1 << 17  # with more, and so many cells of candidates, prototypes are drawn less often:
SELDOMEST = 3  # one sweep later for every sixteen clusters more, but at least in every third
SINGLE_LABEL = 10  # sweeps at the start of a chain that move whole cases only; few, so that runs of any length begin alike


class Round(NamedTuple):
    """The sweeps first … end − 1, of which every `thin`-th draw is kept."""

    first: int
    end: int


class Plan(NamedTuple):
    """How to run: everything that, with the data and the hyperparameters, decides the numbers that come out."""

    sampler: str
    rounds: tuple[Round, ...]
    thin: int
    n_chains: int
    start: tuple[str, ...] | np.ndarray  # "seeded", "cases" or "cells" for each chain, or labels
    single_label: tuple[int, ...]  # for each chain, first sweeps without cell moves: one label per case
    keep_draws: bool
    seed: int
    moves: str = "none"  # of MOVES
    n_init: int = 1  # short runs that each chain makes first; it goes on from the best
    prototypes_every: int = 1  # sweeps from one in which prototypes are drawn to the next
    auto_moves: bool = False  # "auto" chose them, by whether there is a search

    @property
    def searches(self) -> bool:
        """Does every chain search for its start?"""
        return self.n_init > 1 and isinstance(self.start, tuple) and "cells" not in self.start

    @property
    def n_iter(self) -> int:
        """The most sweeps that there can be."""
        return self.rounds[-1].end

    def round_of(self, t: int) -> Round:
        """The round that sweep t belongs to, or leads to."""
        return next(r for r in self.rounds if t < r.end)

    def extended(self, n: int, burn_in: int | None = None) -> Plan:
        """The plan with n more sweeps, as one long run from the start would have it.

        If n is at least the number of sweeps so far, the second half of all sweeps is kept; else the burn-in stays as it was.
        A burn-in that the user set always stays.
        """
        first, end = self.rounds[-1]
        total = end + n
        if burn_in is not None:
            first = min(burn_in, total - 1)
        elif total // 2 >= end:
            first = total // 2
        rounds = self.rounds if len(self.rounds) > 1 and first >= end else self.rounds[:-1]
        return self._replace(rounds=(*rounds, Round(first, total)))


def prototypes_every(S: int, n_cells: int) -> int:
    """Sweeps from one in which prototypes are drawn to the next, by what scoring takes: clusters, and cells of candidates."""
    return min(-(-S // MANY_CLUSTERS), SELDOMEST) if n_cells >= MANY_CELLS else 1


def one_round(n_iter: int, burn_in: int | None) -> tuple[Round, ...]:
    """A run of given length; half of it is burn-in unless said otherwise."""
    return (Round(int(n_iter) // 2 if burn_in is None else int(burn_in), int(n_iter)),)


def doubling(max_iter: int) -> tuple[Round, ...]:
    """Rounds that end at max_iter, max_iter / 2, max_iter / 4, …; each keeps the second half of all sweeps so far."""
    rounds = [Round(max_iter // 2, max_iter)]
    while rounds[0].first >= FIRST_ROUND:
        rounds.insert(0, Round(rounds[0].first // 2, rounds[0].first))
    return tuple(rounds)
