"""Draws of p → the posterior of each cluster's prototype, and the case that stands for the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..kernels import row_means
from ..state import Cells, chunks
from .posterior import may_be_among

NEVER = -1  # the home of a case that may not stand for any cluster
LEAST_COPIED = 0.5  # values of a member that are copied, so that it says something
NEAR, CLOSE = 0.8, 0.005  # a member with so much of the largest probability, and so close to it, may stand in its place
EQUAL = 0.95  # of what is copied from the best one
TINY = 1e-300


class Candidate(NamedTuple):
    """A case that may be the prototype of a cluster."""

    row: int  # of the catalogue; of the ties the one with the largest prior weight, the first of equals
    probability: float  # that the prototype is this case or one of its ties
    ties: tuple[int, ...]  # all rows of the catalogue with the same values that may be chosen, `row` first


def prototype_posterior(p: np.ndarray, hashes: np.ndarray, log_weight: np.ndarray) -> list[tuple[Candidate, ...]]:
    """For each cluster every case that was drawn as its prototype, the most probable first; `hashes` of the catalogue's rows.

    Cases with equal values are one candidate. A candidate of weight zero is never drawn, so it is no tie either.
    """
    order = np.flatnonzero(may_be_among(hashes, hashes[np.unique(p)]))
    order = order[np.argsort(hashes[order], kind="stable")]
    in_order = hashes[order]
    clusters = []
    for s in range(p.shape[-1]):
        prior = log_weight[:, s % log_weight.shape[1]]
        rows, counts = np.unique(p[..., s], return_counts=True)
        distinct, which = np.unique(hashes[rows], return_inverse=True)
        shares = np.bincount(which, weights=counts) / counts.sum()
        first, last = np.searchsorted(in_order, distinct), np.searchsorted(in_order, distinct, side="right")
        found = []
        for share, lo, hi in zip(shares.tolist(), first, last, strict=True):
            ties = order[lo:hi][prior[order[lo:hi]] > -np.inf]
            ties = ties[np.argsort(-prior[ties], kind="stable")]
            found.append(Candidate(int(ties[0]), share, tuple(ties.tolist())))
        clusters.append(tuple(sorted(found, key=lambda c: (-c.probability, c.row))))
    return clusters


class Catalogue(NamedTuple):
    """What it takes to choose the case that stands for a cluster."""

    candidates: Cells
    log_weight: np.ndarray  # (M, 1) or (M, S)
    home: np.ndarray  # (M,) the cluster that a candidate belongs to; NEVER if it is empty, or of no interest
    bare: np.ndarray  # (M,) the same of candidates that have values, but in which nothing is present; NEVER for all others
    values: np.ndarray  # (ΣV, S) mean of φ
    copied: np.ndarray  # (ΣV, S) probability that the value is copied: the prototype has it, and ω is 1

    def prior(self, s: int) -> np.ndarray:
        """(M,) Log prior weight of each candidate for cluster s."""
        return self.log_weight[:, s % self.log_weight.shape[1]]


def rank_prototypes(posterior: Sequence[tuple[Candidate, ...]], of: Catalogue) -> list[tuple[Candidate, ...]]:
    """For each cluster the case that stands for it, and after it the other members that could, the most probable first.

    The most probable member stands for its cluster. If others are as probable (CLOSE and NEAR), the one does from which most of
    the cluster would be copied: see `best_example`. If no member was drawn, all are compared. A member of which nothing would
    be copied, or in which nothing is present, stands for its cluster only if all are like that. A cluster without a member
    that may be chosen takes the most probable case that stands for no other cluster. A pinned prototype stays.
    """
    pinned = {s: found[0] for s, found in enumerate(posterior) if (of.prior(s) > -np.inf).sum() == 1}
    taken = {candidate.row for candidate in pinned.values()}
    bare = of._replace(home=of.bare)
    ranking = [
        (pinned[s],) if s in pinned else members_first(s, found, of, taken) or members_first(s, found, bare, taken)
        for s, found in enumerate(posterior)
    ]
    taken |= {ranked[0].row for ranked in ranking if ranked}
    for s, found in enumerate(posterior):
        if not ranking[s]:
            free = [c for c in (free_ties_first(c, taken) for c in found) if c.row not in taken]
            ranking[s] = (([c for c in free if of.home[c.row] != NEVER] or free or found)[0],)
            taken.add(ranking[s][0].row)
    return ranking


def free_ties_first(of: Candidate, taken: set[int]) -> Candidate:
    """The same candidate, by a row that stands for no other cluster if one of its ties does not."""
    ties = tuple(sorted(of.ties, key=taken.__contains__))
    return Candidate(ties[0], of.probability, ties)


def members_first(s: int, found: tuple[Candidate, ...], of: Catalogue, taken: set[int]) -> tuple[Candidate, ...]:
    """The members of cluster s that were drawn and could stand for it, or the best example if none was; () if none may."""
    members = []
    for candidate in found:
        at_home = tuple(row for row in candidate.ties if of.home[row] == s and row not in taken)
        if at_home:
            ties = (*at_home, *(row for row in candidate.ties if row not in at_home))
            members.append(Candidate(at_home[0], candidate.probability, ties))
    worth = copied_if_had(s, found, of)
    if not members:
        rows = np.flatnonzero((of.home == s) & (of.prior(s) > -np.inf))
        rows = rows[~np.isin(rows, list(taken))]
        return (Candidate(row := best_example(rows, s, worth, of), 0.0, (row,)),) if len(rows) else ()
    some = row_sums(of.candidates, np.array([c.row for c in members]), worth) >= LEAST_COPIED
    able = [c for c, has in zip(members, some.tolist(), strict=True) if has] or members
    largest = able[0].probability
    least = max(NEAR * largest, largest - CLOSE)
    row = best_example(np.array([c.row for c in able if c.probability >= least]), s, worth, of)
    return tuple(sorted(able, key=lambda c: c.row != row))


def copied_if_had(s: int, found: tuple[Candidate, ...], of: Catalogue) -> np.ndarray:
    """(ΣV,) Probability that cluster s copies a value if its prototype has it; 0 for what none that was drawn has."""
    cells, copied = of.candidates.take([c.row for c in found]), of.copied[:, s]
    known, shares = cells.codes >= 0, np.repeat([c.probability for c in found], cells.sizes)
    had = np.bincount(cells.codes[known], weights=shares[known], minlength=len(copied))
    return np.asarray(np.where(had > 0, copied / np.maximum(np.maximum(had, copied), TINY), 0.0))


def best_example(rows: np.ndarray, s: int, worth: np.ndarray, of: Catalogue) -> int:
    """The row from which most of cluster s would be copied, Σ p(copied | had) φ_s over its values; of equals the most typical.

    Typical is the largest mean of log φ_s over its values. By that alone, a text of one word is more typical than any other.
    """
    most = row_sums(of.candidates, rows, worth * of.values[:, s])
    rows = rows[most >= EQUAL * most.max()]
    log_phi = np.log(np.maximum(of.values[:, s], TINY))
    return int(rows[np.argmax(row_means(of.candidates, rows, log_phi))])


def row_sums(cells: Cells, rows: np.ndarray, of_code: np.ndarray) -> np.ndarray:
    """(rows,) The sum of a number that each code has, over the observed cells of some rows."""
    sums = np.zeros(len(rows))
    for few in chunks(len(rows), max(1, int(cells.sizes.max(initial=0)))):
        some = cells.take(rows[few])
        known, row = some.codes >= 0, np.repeat(np.arange(len(some.sizes)), some.sizes)
        sums[few] = np.bincount(row[known], weights=of_code[some.codes[known]], minlength=len(some.sizes))
    return sums
