"""The starts of a chain: labels z."""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

from ..kernels import best_profile, value_counts
from ..state import FEW, chunks, smallest_int

MORE_SEEDS = 30  # at most, and at most three times the clusters
ROUNDS = 5  # of moving every case to the group that it fits best


def init(data, hyper, start, rng, out=None):
    """Labels z for a start: "seeded", "cases", "cells", or one label per case with -1 for unknown. Held cases have theirs."""
    (N, P), S = data.x.shape, len(hyper.beta)
    z = np.empty((N, P), dtype=smallest_int(S)) if out is None else out
    if isinstance(start, str) and start == "cells":
        for rows in chunks(N, P):
            z[rows] = rng.integers(S, size=z[rows].shape, dtype=z.dtype)
    else:
        if isinstance(start, str):
            labels = seeded_labels(data, hyper, rng) if start == "seeded" else rng.integers(S, size=N)
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
    if data.own_cases:
        m, s = np.nonzero(data.log_weight == 0.0)  # probability one
        np.add.at(votes, (s, labels[m]), 1.0)
    if not votes.any():
        return labels
    r, s = linear_sum_assignment(votes, maximize=True)
    return r[np.argsort(s)][labels]


# --- seeded -------------------------------------------------------------------------------------------------------------


def seeded_labels(data, hyper, rng):
    """More groups than clusters around seeds that lie far apart; then those that are most alike are merged.

    With as many seeds as clusters, two of them often fall into one cluster and another gets none, which a chain of single moves
    does not mend for long. Too many seeds leave no cluster out.
    """
    S = len(hyper.beta)
    n_groups = min(S + min(3 * S, MORE_SEEDS), len(data.x))
    labels = refine(data, near_seeds(data.x, n_groups, rng), n_groups)
    return refine(data, merge(data, hyper, labels), S)


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
    for rows in chunks(*x.shape, FEW):
        both = (x[rows] >= 0) & (case >= 0)
        far[rows] = (both & (x[rows] != case)).sum(axis=1) / np.maximum(both.sum(axis=1), 1)
    return far


def refine(data, labels, n_groups):
    """Move every case to the group under whose value frequencies it is most probable, a few times. Empty groups stay so."""
    for _ in range(ROUNDS):
        profiles = log_frequencies(value_counts(data.x, labels, n_groups, int(data.offset[-1])), data.offset)
        empty = np.bincount(labels, minlength=n_groups) == 0
        before, labels = labels, best_profile(data.x, profiles, empty)
        if (labels == before).all():
            break
    return labels


def merge(data, hyper, labels):
    """Unite the two groups whose union loses least evidence until there are no more than clusters.

    The evidence of a group is that of the model with φ integrated out and ω summed out, if its prototype has the most frequent
    value of every feature: Σ_j log B(λ + n_j·) / B(λ) + log(q e^E + 1 − q).
    """
    _, labels = np.unique(labels, return_inverse=True)  # no empty groups
    n_groups = labels.max() + 1
    n = value_counts(data.x, labels, n_groups, int(data.offset[-1]))
    lam, c, q = hyper.lam, hyper.c, hyper.q.mean(axis=0)[:, None]
    starts, (sizes, which) = data.offset[:-1], np.unique(np.diff(data.offset), return_inverse=True)
    count = np.arange(len(data.x) + 1)
    none, copied = (gammaln(a + count) - gammaln(a) for a in (lam, lam * (1.0 + c)))
    sum_none, sum_copied = (gammaln(a + count) - gammaln(a) for a in (lam * sizes[:, None], lam * (sizes[:, None] + c)))
    which = which.reshape(-1, 1)

    def evidence(n):
        """Per column."""
        n_j, top = np.add.reduceat(n, starts), np.maximum.reduceat(n, starts)
        e = copied[top] - none[top] - (sum_copied[which, n_j] - sum_none[which, n_j])
        plain = none[n].sum(axis=0) - sum_none[which, n_j].sum(axis=0)
        return plain + np.logaddexp(np.log(q) + e, np.log1p(-q)).sum(axis=0)

    def gain_of(a, others):
        """Of uniting group a with each of the others, a few at a time: temporaries stay small."""
        for few in np.split(others, range(4, len(others), 4)):
            gain[np.minimum(a, few), np.maximum(a, few)] = evidence(n[:, [a]] + n[:, few]) - alone[a] - alone[few]

    alone = np.concatenate([evidence(n[:, [a]]) for a in range(n_groups)])
    gain = np.full((n_groups, n_groups), -np.inf)
    for a in range(n_groups - 1):
        gain_of(a, np.arange(a + 1, n_groups))
    to, alive = np.arange(n_groups), np.ones(n_groups, dtype=bool)
    for _ in range(n_groups - len(hyper.beta)):
        a, b = np.unravel_index(np.argmax(gain), gain.shape)
        n[:, a] += n[:, b]
        to[to == b], alive[b] = a, False
        gain[b], gain[:, b] = -np.inf, -np.inf
        alone[a] = evidence(n[:, [a]])[0]
        gain_of(a, np.flatnonzero(alive & (np.arange(n_groups) != a)))
    return np.cumsum(alive)[to[labels]] - 1


def log_frequencies(n, offset):
    """(ΣV, groups) float32, log of the frequency of each value in each group, with one pseudo-count."""
    profiles = np.empty(n.shape, dtype=np.float32)
    for s in range(n.shape[1]):
        total = np.add.reduceat(n[:, s] + 1, offset[:-1])
        profiles[:, s] = np.log((n[:, s] + 1) / np.repeat(total, np.diff(offset)))
    return profiles
