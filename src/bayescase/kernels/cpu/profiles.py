"""Groups of cases by the frequencies of their values, for the starts of a chain."""

import numpy as np

from ...state import Cells, Data
from ..compiling import compiled
from .engine import make_block
from .sums import block_sums
from .tables import ROWS, lanes_for


def value_counts(data: Data, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """(ΣV, groups) How often each value occurs in each group."""
    n = np.zeros((int(data.offset[-1]), n_groups), dtype=np.int32)
    add_counts(*data.cells, labels, n)
    return n


@compiled
def add_counts(codes, first, labels, n):
    for i in range(len(labels)):
        for c in range(first[i], first[i + 1]):
            if codes[c] >= 0:
                n[codes[c], labels[i]] += 1


def best_profile(cells: Cells, width: int, profiles: np.ndarray, closed: np.ndarray) -> np.ndarray:
    """(rows,) The group under which each row is most probable, none that is closed; profiles[v, g] is a log frequency."""
    V, n_groups = profiles.shape
    lanes = lanes_for(n_groups)
    table = np.zeros((V + 1, lanes), dtype=np.float32)  # a missing cell is at 0
    table[1:, :n_groups] = profiles
    block = make_block(cells, width)
    sums, labels = np.zeros(ROWS * lanes), np.empty(len(cells.first) - 1, dtype=np.int64)
    for lo in range(0, len(labels), ROWS):
        hi = min(lo + ROWS, len(labels))
        sum_block(block, table.reshape(-1), lanes, lo, hi, sums)
        fit = sums[: (hi - lo) * lanes].reshape(-1, lanes)[:, :n_groups]
        labels[lo:hi] = np.where(closed, -np.inf, fit).argmax(axis=1)
    return labels


def row_means(cells: Cells, rows: np.ndarray, of_code: np.ndarray) -> np.ndarray:
    """(rows,) The mean of a number that each code has, over the observed cells of some rows; 0 if there are none."""
    mean = np.empty(len(rows))
    fill_means(*cells, rows, of_code, mean)
    return mean


@compiled
def fill_means(codes, first, rows, of_code, mean):
    for k in range(len(rows)):
        total, n = 0.0, 0
        for c in range(first[rows[k]], first[rows[k] + 1]):
            if codes[c] >= 0:
                total += of_code[codes[c]]
                n += 1
        mean[k] = total / max(n, 1)


@compiled
def sum_block(block, table, lanes, lo, hi, sums):
    block_sums(block, table, lanes, lo, hi, sums)
