"""Groups of cases by the frequencies of their values, for the starts of a chain."""

import numpy as np

from ..equations import compiled
from .rows import row_sums
from .tables import ROWS, lanes_for


def value_counts(x, labels, n_groups, n_values):
    """(ΣV, groups) How often each value occurs in each group."""
    n = np.zeros((n_values, n_groups), dtype=np.int32)
    add_counts(x, labels, n)
    return n


@compiled
def add_counts(x, labels, n):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] >= 0:
                n[x[i, j], labels[i]] += 1


def best_profile(x, profiles, closed):
    """(N,) The group under which each row is most probable, none that is closed; profiles[v, g] is a log frequency."""
    V, n_groups = profiles.shape
    lanes = lanes_for(n_groups)
    table = np.zeros((V + 1, lanes), dtype=np.float32)  # a missing cell is at 0
    table[1:, :n_groups] = profiles
    sums, labels, flat = np.zeros(ROWS * lanes), np.empty(len(x), dtype=np.int64), np.ascontiguousarray(x).reshape(-1)
    for lo in range(0, len(x), ROWS):
        hi = min(lo + ROWS, len(x))
        row_sums(table.reshape(-1), lanes, flat, x.shape[1], lo, hi, sums)
        fit = sums[: (hi - lo) * lanes].reshape(-1, lanes)[:, :n_groups]
        labels[lo:hi] = np.where(closed, -np.inf, fit).argmax(axis=1)
    return labels
