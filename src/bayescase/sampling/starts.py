"""The starts of a chain: labels z."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, diags_array
from scipy.special import gammaln

from ..kernels import apart, best_profile, value_counts
from ..state import Cells, Codebook, Data, Hyper, chunks, distinct, smallest_int, spread
from . import stored

MORE_SEEDS = 30  # at most, and at most three times the clusters
AT_ONCE = 1 << 14  # counts of unions made at a time
ROUNDS = 5  # of moving every case to the group that it fits best
SINGLE_COUNT, ITEM_COUNT = (
    1.0,
    0.1,
)  # pseudo-counts of a value in a group: of single features, and of bags, whose items are many


class Start:
    """Labels z for a start: "seeded", "cases", "cells", or labels, one per case or one per cell, with -1 for unknown.

    Call it for one part of the rows after the other; how rows are cut into parts changes nothing. `data` holds all cases, or a
    sample of the `n_cases` that begins with the rows of `sample_rows`. `found`: labels of `few_cases` in place of seeded ones.
    """

    def __init__(
        self,
        data: Data,
        hyper: Hyper,
        start: str | np.ndarray,
        rng: np.random.Generator,
        n_cases: int | None = None,
        seed: int = 0,
        found: np.ndarray | None = None,
    ):
        self.data, self.S, self.start, self.rng = data, len(hyper.beta), start, rng
        self.n_cases = len(data.x) if n_cases is None else n_cases
        self.width, self.first, self.by_profile = data.x.shape[1] if data.bags is None else 0, 0, False
        self.named = False  # are labels those that held cases and prototypes are held at?
        if isinstance(start, str) and start == "seeded":
            sample, self.named = few_cases(data, self.n_cases, seed), found is not None
            self.labels = seeded_labels(sample, hyper, rng) if found is None else found
            self.by_profile = len(sample.x) < self.n_cases
            if self.by_profile:
                self.profiles = log_frequencies(value_counts(sample, self.labels, self.S), data.book)
                self.empty = np.bincount(self.labels, minlength=self.S) == 0

    def __call__(self, rows: slice, cells: Cells) -> np.ndarray:
        """The labels of some neighbouring rows: (cells,), or (rows, 1) if every row has one."""
        kind, held = smallest_int(self.S), self.data.z_held[rows] if len(self.data.z_held) else None
        by_cell = self.start == "cells" if isinstance(self.start, str) else self.start.ndim == 2
        if not by_cell:
            labels = self.of_rows(rows, cells).astype(kind, copy=False)
            return (labels if held is None else np.where(held >= 0, held, labels).astype(kind))[:, None]
        z = np.empty(len(cells.codes), dtype=kind)
        if isinstance(self.start, str):
            for part in chunks(len(z), 1):
                z[part] = self.rng.integers(self.S, size=part.stop - part.start)
        else:
            given = self.start[rows].reshape(-1)
            z[:] = np.where(given < 0, self.rng.integers(self.S, size=given.shape), given)
        if held is not None:
            of_cells = spread(held[:, None], cells, self.width)
            z[of_cells >= 0] = of_cells[of_cells >= 0]
        return z

    def portion(self, rows: slice, n_cells: int) -> Start:
        """This start for the next rows alone, so that another process can call it."""
        alone = copy.copy(self)
        nothing = np.zeros(0, dtype=np.int64)
        alone.data = self.data._replace(x=self.data.x[:0], candidates=self.data.x[:0], bags=None, candidate_bags=None)
        alone.data = alone.data._replace(log_weight=np.zeros((0, 1)), z_held=nothing)
        alone.rng, alone.first = copy.deepcopy(self.rng), rows.start
        if isinstance(self.start, str) and self.start == "seeded":
            alone.labels = nothing if self.by_profile else self.labels[rows]
        elif isinstance(self.start, str):
            for part in chunks(n_cells if self.start == "cells" else rows.stop - rows.start, 1):
                self.rng.integers(self.S, size=part.stop - part.start)
        return alone

    def of_rows(self, rows: slice, cells: Cells) -> np.ndarray:
        """(rows,) One label per case."""
        if not isinstance(self.start, str):
            given = self.start[rows]
            return np.where(given < 0, self.rng.integers(self.S, size=len(given)), given)
        if self.start == "cases":
            labels = self.rng.integers(self.S, size=rows.stop - rows.start)
        elif self.by_profile:
            labels = best_profile(cells, self.width, self.profiles, self.empty)
        else:
            labels = self.labels[rows.start - self.first : rows.stop - self.first]
        held = not self.named and len(labels) == len(self.data.x)
        return name_as_held(self.data, self.S, labels) if held else labels


def few_cases(data: Data, n_cases: int, seed: int) -> Data:
    """The cases that a start is looked for in: all, or a sample, which is then the catalogue, too. `data` is as in `Start`."""
    few = min(n_cases, stored.START_CASES)
    if few == len(data.x):
        return data
    some = stored.sample_rows(n_cases, seed) if len(data.x) == n_cases else np.arange(few)
    if data.own_cases:  # each cluster needs a candidate that it may have
        lacking = np.flatnonzero(~np.isfinite(data.log_weight[some]).any(axis=0))
        some = np.union1d(some, data.log_weight[:, lacking].argmax(axis=0)) if len(lacking) else some
    cases = data.cases.take(some)
    sample = data._replace(x=cases.x, bags=cases.bags, z_held=data.z_held[some] if len(data.z_held) else data.z_held)
    if not data.own_cases:
        return sample
    once = None if cases.bags is None else distinct(cases.bags)
    return sample._replace(candidates=cases.x, candidate_bags=once, log_weight=data.log_weight[some])


def init(data: Data, hyper: Hyper, start: str | np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels z of all cases, (N, P), or flat if there are bags; held cases have the labels that they are held at."""
    labels, cells = Start(data, hyper, start, rng)(slice(0, len(data.x)), data.cells), data.cells
    z = spread(labels, cells, data.cases.width)
    return z.reshape(data.x.shape) if data.bags is None else z


def name_as_held(data: Data, S: int, labels: np.ndarray) -> np.ndarray:
    """Permute labels so that groups around held cases and held prototypes get the labels that these are held at."""
    votes = np.zeros((S, S))  # of held label r for the start's label s
    held = np.flatnonzero(data.z_held >= 0)
    np.add.at(votes, (data.z_held[held], labels[held]), 1.0)
    if data.own_cases:
        m, s = np.nonzero(data.log_weight == 0.0)  # probability one
        np.add.at(votes, (s, labels[m]), 1.0)
    if not votes.any():
        return labels
    r, s = linear_sum_assignment(votes, maximize=True)
    return r[np.argsort(s)][labels]


# --- seeded -------------------------------------------------------------------------------------------------------------


def seeded_labels(data: Data, hyper: Hyper, rng: np.random.Generator) -> np.ndarray:
    """Groups around seeds that lie far apart, more groups than clusters; then the most similar ones are merged.

    With only as many seeds as clusters, one cluster often gets two seeds and another none, and a chain that moves single cases
    takes long to mend that. With more seeds every cluster gets one.
    """
    S = len(hyper.beta)
    n_groups = min(S + min(3 * S, MORE_SEEDS), len(data.x))
    labels = refine(data, near_seeds(data, n_groups, rng), n_groups)
    return refine(data, merge(data, hyper, labels, S), S)


def near_seeds(data: Data, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Each case to the nearest of some cases chosen as in k-means++."""
    N, distance = len(data.x), distances(data)
    nearest, labels, seed = np.full(N, np.inf), np.zeros(N, dtype=np.int64), int(rng.integers(N))
    for s in range(n_groups):
        far = distance(seed)
        labels[far < nearest] = s
        nearest = np.minimum(nearest, far)
        total = np.square(nearest).sum()
        seed = int(rng.choice(N, p=np.square(nearest) / total) if total > 0 else rng.integers(N))
    return labels


def distances(data: Data) -> Callable[[int], np.ndarray]:
    """distance(i) → how far every case is from case i: the share of single features that differ, and the angle of the bags."""
    P, n_bags = data.book.n_single, data.book.n_bags
    if n_bags == 0:
        return lambda i: apart(data.x, data.x[i])
    items = weighted_items(data)

    def distance(i: int) -> np.ndarray:
        far = 1.0 - (items @ items[[i]].T).toarray()[:, 0].clip(0.0, 1.0)
        return far if P == 0 else (P * apart(data.x, data.x[i]) + n_bags * far) / (P + n_bags)

    return distance


def weighted_items(data: Data) -> csr_array:
    """(N, items) Rows of length one: which items a case has, rare ones more important than common ones."""
    assert data.bags is not None
    bags, N, first = distinct(data.bags), len(data.x), int(data.offset[data.book.n_single])
    columns = bags.codes.astype(np.int64) - first
    n_cases = np.bincount(columns, minlength=int(data.offset[-1]) - first)
    weight = np.log((1 + N) / (1 + n_cases))[columns]
    items = csr_array((weight, columns, bags.first), shape=(N, len(n_cases)))
    length = np.sqrt(np.asarray(items.multiply(items).sum(axis=1)).reshape(-1))
    return csr_array(diags_array(1.0 / np.where(length > 0, length, 1.0)) @ items)


def refine(data: Data, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """Move every case to the group under whose value frequencies it is most probable, a few times. Empty groups stay empty."""
    cells, width = data.cells, data.x.shape[1] if data.bags is None else 0
    for _ in range(ROUNDS):
        profiles = log_frequencies(value_counts(data, labels, n_groups), data.book)
        empty = np.bincount(labels, minlength=n_groups) == 0
        before, labels = labels, best_profile(cells, width, profiles, empty)
        if (labels == before).all():
            break
    return labels


def log_frequencies(n: np.ndarray, book: Codebook) -> np.ndarray:
    """(ΣV, groups) float32, log of the frequency of each value in each group, with pseudo-counts."""
    more = np.where(book.feature < book.n_single, SINGLE_COUNT, ITEM_COUNT)
    profiles, sizes = np.empty(n.shape, dtype=np.float32), np.diff(book.offset)
    for s in range(n.shape[1]):
        total = np.add.reduceat(n[:, s] + more, book.offset[:-1])
        profiles[:, s] = np.log((n[:, s] + more) / np.repeat(total, sizes))
    return profiles


def merge(data: Data, hyper: Hyper, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Unite the two groups whose union loses the least evidence, until there are as few groups as clusters."""
    _, labels = np.unique(labels, return_inverse=True)  # no empty groups
    n_groups = labels.max() + 1
    n, evidence = value_counts(data, labels, n_groups), group_evidence(data, hyper)
    step = max(4, AT_ONCE // len(n))

    def find_gains(a: np.ndarray, b: np.ndarray) -> None:
        """What uniting each group of a with that of b gains; a few at a time, so that temporaries stay small."""
        for lo in range(0, len(a), step):
            few, others = a[lo : lo + step], b[lo : lo + step]
            gain[few, others] = evidence(n[:, few] + n[:, others]) - alone[few] - alone[others]

    alone = np.concatenate([evidence(n[:, few]) for few in np.split(np.arange(n_groups), range(step, n_groups, step))])
    gain = np.full((n_groups, n_groups), -np.inf)
    find_gains(*np.triu_indices(n_groups, 1))
    to, alive = np.arange(n_groups), np.ones(n_groups, dtype=bool)
    for _ in range(n_groups - n_clusters):
        a, b = map(int, np.unravel_index(np.argmax(gain), gain.shape))
        n[:, a] += n[:, b]
        to[to == b], alive[b] = a, False
        gain[b], gain[:, b] = -np.inf, -np.inf
        alone[a] = evidence(n[:, [a]])[0]
        others = np.flatnonzero(alive & (np.arange(n_groups) != a))
        find_gains(np.minimum(a, others), np.maximum(a, others))
    return np.cumsum(alive)[to[labels]] - 1


def group_evidence(data: Data, hyper: Hyper) -> Callable[[np.ndarray], np.ndarray]:
    """evidence(n) of groups with counts n, per column: that of the model with φ integrated out.

    For single features ω is summed out, as if the prototype had the most frequent value of each, and all values had the same
    base measure: Σ_j log B(λ + n_j·) / B(λ) + log(q e^E + 1 − q). In bags no item is copied: Σ_b log B(λ(·) + n_b·) / B(λ(·)).
    """
    book, P = data.book, data.book.n_single
    end = int(book.offset[P])
    lam, c, q = hyper.lam, hyper.c, hyper.q[:, :P].mean(axis=0)[:, None]
    starts, (sizes, which) = book.offset[:P], np.unique(np.diff(book.offset[: P + 1]), return_inverse=True)
    count = np.arange(len(data.x) + 1)
    none, copied = (rise(a, count) for a in (lam, lam * (1.0 + c)))
    sum_none, sum_copied = (rise(a, count) for a in (lam * sizes[:, None], lam * (sizes[:, None] + c)))
    which, base = which.reshape(-1, 1), lam * book.base[end:, None]
    totals = lam * np.diff(book.offset[P:])[:, None]

    def single(n: np.ndarray) -> np.ndarray:
        n_j, top = np.add.reduceat(n, starts), np.maximum.reduceat(n, starts)
        e = copied[top] - none[top] - (sum_copied[which, n_j] - sum_none[which, n_j])
        plain = none[n].sum(axis=0) - sum_none[which, n_j].sum(axis=0)
        return plain + np.logaddexp(np.log(q) + e, np.log1p(-q)).sum(axis=0)

    def items(n: np.ndarray) -> np.ndarray:
        some, groups = np.nonzero(n)
        values = np.bincount(groups, weights=rise(base[some, 0], n[some, groups]), minlength=n.shape[1])
        return values - rise(totals, np.add.reduceat(n, book.offset[P:-1] - end)).sum(axis=0)

    def evidence(n: np.ndarray) -> np.ndarray:
        found = single(n[:end]) if P else np.zeros(n.shape[1])
        return found + items(n[end:]) if book.n_bags else found

    return evidence


def rise(a: np.ndarray | float, n: np.ndarray) -> np.ndarray:
    return gammaln(a + n) - gammaln(a)
