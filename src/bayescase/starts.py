"""The starts of a chain: labels z."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from .kernels.rows import row_sums
from .kernels.tables import ROWS, compiled, lanes_for
from .state import chunks, smallest_int

MORE_SEEDS = 30  # at most, and at most three times the clusters
ROUNDS = 5  # of moving every case to the group that it fits best


def init(data, S, start, rng):
    """Labels z for a start: "seeded", "cases", "cells", or one label per case with -1 for unknown. Held cases have theirs."""
    N, P = data.x.shape
    z = np.empty((N, P), dtype=smallest_int(S))
    if isinstance(start, str) and start == "cells":
        for rows in chunks(N, P):
            z[rows] = rng.integers(S, size=z[rows].shape, dtype=z.dtype)
    else:
        if isinstance(start, str):
            labels = seeded_labels(data, S, rng) if start == "seeded" else rng.integers(S, size=N)
            labels = name_as_held(data, S, labels)
        else:
            labels = np.where(start < 0, rng.integers(S, size=N), start)
        z[:] = labels[:, None]
    held = np.flatnonzero(data.z_held >= 0)
    z[held] = data.z_held[held, None]
    return z


def name_as_held(data, S, labels):
    """Permute the labels of a start so that the groups around held cases and held prototypes have the labels held there."""
    votes = np.zeros((S, S))  # of held label r for the start's label s
    held = np.flatnonzero(data.z_held >= 0)
    np.add.at(votes, (data.z_held[held], labels[held]), 1.0)
    if data.candidates is data.x:
        m, s = np.nonzero(data.log_weight == 0.0)  # probability one
        np.add.at(votes, (s, labels[m]), 1.0)
    if not votes.any():
        return labels
    r, s = linear_sum_assignment(votes, maximize=True)
    return r[np.argsort(s)][labels]


# --- seeded -------------------------------------------------------------------------------------------------------------


def seeded_labels(data, S, rng):
    """More groups than clusters around seeds that lie far apart; then those that are most alike are merged.

    With as many seeds as clusters, two of them often fall into one cluster and another gets none, which a chain of single moves
    does not mend for long. Too many seeds leave no cluster out.
    """
    n_groups = min(S + min(3 * S, MORE_SEEDS), len(data.x))
    labels = refine(data, near_seeds(data.x, n_groups, rng), n_groups)
    return refine(data, merge(data, labels, S), S)


def near_seeds(x, n_groups, rng):
    """Each case to the nearest of some cases chosen as in k-means++, by the share of features that differ."""
    N = len(x)
    nearest, labels, seed = np.full(N, np.inf), np.zeros(N, dtype=np.int64), rng.integers(N)
    for s in range(n_groups):
        far = mismatch(x, x[seed])
        labels[far < nearest] = s
        nearest = np.minimum(nearest, far)
        total = np.square(nearest).sum()
        seed = rng.choice(N, p=np.square(nearest) / total) if total > 0 else rng.integers(N)
    return labels


def mismatch(x, case):
    """Share of the features observed in both that differ, per row of x."""
    far = np.empty(len(x))
    for rows in chunks(*x.shape):
        both = (x[rows] >= 0) & (case >= 0)
        far[rows] = (both & (x[rows] != case)).sum(axis=1) / np.maximum(both.sum(axis=1), 1)
    return far


def refine(data, labels, n_groups):
    """Move every case to the group under whose value frequencies it is most probable, a few times. Empty groups stay so."""
    lanes, starts = lanes_for(n_groups), data.offset[:-1]
    table = np.zeros((int(data.offset[-1]) + 1, lanes), dtype=np.float32)
    sums = np.zeros(ROWS * lanes)
    for _ in range(ROUNDS):
        n = value_counts(data.x, labels, n_groups, int(data.offset[-1])) + 1.0
        table[1:, :n_groups] = np.log(n / np.repeat(np.add.reduceat(n, starts), np.diff(data.offset), axis=0))
        empty = np.bincount(labels, minlength=n_groups) == 0
        before, labels = labels, labels.copy()
        for lo in range(0, len(labels), ROWS):
            hi = min(lo + ROWS, len(labels))
            row_sums(table.reshape(-1), lanes, data.x, data.x.shape[1], lo, hi, sums)
            fit = sums[: (hi - lo) * lanes].reshape(-1, lanes)[:, :n_groups]
            labels[lo:hi] = np.where(empty, -np.inf, fit).argmax(axis=1)
        if (labels == before).all():
            break
    return labels


def merge(data, labels, S):
    """Unite the two groups whose union loses least log probability, φ integrated out at λ = 1, until S are left."""
    _, labels = np.unique(labels, return_inverse=True)  # no empty groups
    n_groups = labels.max() + 1
    n = value_counts(data.x, labels, n_groups, int(data.offset[-1]))
    log_factorial = gammaln(np.arange(len(data.x) + np.diff(data.offset).max() + 1) + 1.0)
    sizes, starts = np.diff(data.offset)[:, None], data.offset[:-1]

    def evidence(n):
        """Σ_j log B(1 + n_j·), per column."""
        return log_factorial[n].sum(axis=0) - log_factorial[np.add.reduceat(n, starts) + sizes - 1].sum(axis=0)

    alone = evidence(n)
    gain = np.full((n_groups, n_groups), -np.inf)
    for a in range(n_groups - 1):
        gain[a, a + 1 :] = evidence(n[:, [a]] + n[:, a + 1 :]) - alone[a] - alone[a + 1 :]
    to, alive = np.arange(n_groups), np.ones(n_groups, dtype=bool)
    for _ in range(n_groups - S):
        a, b = np.unravel_index(np.argmax(gain), gain.shape)
        n[:, a] += n[:, b]
        to[to == b], alive[b] = a, False
        gain[b], gain[:, b] = -np.inf, -np.inf
        alone[a] = evidence(n[:, [a]])[0]
        others = np.flatnonzero(alive & (np.arange(n_groups) != a))
        gain[np.minimum(a, others), np.maximum(a, others)] = evidence(n[:, [a]] + n[:, others]) - alone[a] - alone[others]
    return np.cumsum(alive)[to[labels]] - 1


@compiled
def value_counts(x, labels, n_groups, n_values):
    """(ΣV, groups) How often each value occurs in each group."""
    n = np.zeros((n_values, n_groups), dtype=np.int64)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] >= 0:
                n[x[i, j], labels[i]] += 1
    return n
