"""The start of a chain, searched: short runs of its own, crossed two by two until one is left.

Where two runs put a pair of cases apart, at least one of them may be right. So two runs are *crossed*: cases that share their
label in both are a group, and the groups whose union loses least evidence are united until there are as many as clusters. A
short run goes on from there, and of it and the two that it comes from the best stays. One that found half of the clusters, and
one that found the other half, so make one that has all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..kernels import best_profile, value_counts
from ..state import Cells, Data, Hyper, chunks, has_gaps, smallest_int
from . import stored
from .starts import Start, log_frequencies, merge

SHORT = 10  # sweeps of a short run; the second half of them is judged
SWEEPS_PER_RUN = 15  # "auto": a run to begin with for so many sweeps of the chain, so that it takes about as long as these
MOST_RUNS = 64  # "auto": at most
FEWEST_SWEEPS = 250  # "auto": a shorter chain does not search
MOST_CELLS = 20_000_000  # "auto": chains that would search among more do not
UNITING = 5  # sweeps that a crossing may take as long as
KINDS = {"seeded": ("seeded", "cases", "cases", "cases"), "cases": ("cases",)}  # the starts of a chain's runs, in turn


class Short(NamedTuple):
    """A short run as it ended."""

    labels: np.ndarray  # (N,) one per case
    hyper: Hyper
    score: float  # mean log joint


def how_many(n_init: int | str, most: int, n_cells: int, n_cases: int) -> int:
    """Runs to begin with; "auto": by the most sweeps that the chain can make, if it does not search among too many cells."""
    if not isinstance(n_init, str):
        return int(n_init)
    searched = n_cells * min(n_cases, stored.START_CASES) // max(n_cases, 1)
    return min(MOST_RUNS, most // SWEEPS_PER_RUN) if most >= FEWEST_SWEEPS and searched <= MOST_CELLS else 1


def search(start: Callable[[int], Short], cross: Callable[[Short, Short], Short], n: int, first: int = 0) -> Short:
    """The best of n runs, from number `first` on, and of those that come from them; cross(a, b) makes one of two.

    Runs are crossed as soon as there are two that come from as many: few have to be kept.
    """
    if n == 1:
        return start(first)
    half = n // 2
    a, b = search(start, cross, n - half, first), search(start, cross, half, first + n - half)
    return max(a, b, cross(a, b), key=lambda run: run.score)


def n_runs(n: int) -> int:
    """How many runs such a search makes: every crossing leaves one less in the field."""
    return 2 * n - 1


def fresh(data: Data, hyper: Hyper, kind: str, k: int, rng: np.random.Generator, seed: int) -> np.ndarray:
    """(N,) Labels for run k of a chain of this kind."""
    kinds, rows = KINDS[kind], slice(0, len(data.x))
    return Start(data, hyper, kinds[k % len(kinds)], rng, seed=seed).of_rows(rows, data.cells)


def crossed(data: Data, hyper: Hyper, a: np.ndarray, b: np.ndarray, n_clusters: int) -> np.ndarray:
    """(N,) Labels from those of two runs, named after those of the first."""
    S = len(hyper.beta)
    _, group, sizes = np.unique(a.astype(np.int64) * S + b, return_inverse=True, return_counts=True)
    most = most_groups(data, S)
    if len(sizes) > most:
        group = few_groups(data, group, np.argsort(-sizes, kind="stable")[:most])
    return named_after(a, merge(data, hyper, group, n_clusters), S)


def most_groups(data: Data, S: int) -> int:
    """Groups that are united in the time of some sweeps, by microseconds that were measured once."""
    sweep, one_union = 300 + 0.03 * len(data.cells.codes), 0.0012 * int(data.offset[-1])
    return max(2 * S, int(math.sqrt(UNITING * sweep / one_union)))


def few_groups(data: Data, group: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Groups 0, 1, …: those to keep, the cases of the others with the group whose values are most like theirs."""
    place = np.full(int(group.max()) + 1, -1)
    place[keep] = np.arange(len(keep))
    known = place[group]
    n = value_counts(data, np.where(known >= 0, known, len(keep)), len(keep) + 1)[:, :-1]
    width = data.x.shape[1] if data.bags is None else 0
    nearest = best_profile(data.cells, width, log_frequencies(n, data.book), np.zeros(len(keep), dtype=bool))
    return np.where(known >= 0, known, nearest)


def named_after(known: np.ndarray, labels: np.ndarray, S: int) -> np.ndarray:
    """The labels permuted, so that as many cases as can be have the known ones: labels may differ in their priors."""
    return renamed(known, labels, S)[labels].astype(smallest_int(S))


def renamed(known: np.ndarray, labels: np.ndarray, S: int) -> np.ndarray:
    """(S,) What each label is named there."""
    shared = np.zeros((S, S))
    np.add.at(shared, (known, labels), 1.0)
    r, s = linear_sum_assignment(shared, maximize=True)
    return r[np.argsort(s)]


def first_observed(cells: Cells) -> np.ndarray:
    """(N,) The first cell of every row that is observed, -1 if none is."""
    first, N = cells.first, len(cells.first) - 1
    found = np.where(cells.sizes > 0, first[:-1], -1)
    if has_gaps(cells.codes):
        for rows in chunks(N, len(cells.codes) // N):
            part = cells.part(rows)
            observed = np.flatnonzero(part.codes >= 0)
            row = np.searchsorted(part.first, observed, side="right") - 1
            here = np.full(rows.stop - rows.start, -1)
            here[row[::-1]] = observed[::-1] + first[rows.start]
            found[rows] = here
    return found
