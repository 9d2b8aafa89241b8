"""Groups of cases by the frequencies of their values, for the starts of a chain."""

import numpy as np

from ...parallel import each, portions
from ...state import Cells, Data
from ..compiling import compiled
from .engine import make_block
from .sums import block_sums
from .tables import ROWS, lanes_for


def value_counts(data: Data, labels: np.ndarray, n_groups: int) -> np.ndarray:
    """(ΣV, groups) How often each value occurs in each group."""
    codes, first = data.cells
    V = int(data.offset[-1])

    def count(rows: slice) -> np.ndarray:
        n = np.zeros((V, n_groups), dtype=np.int32)
        add_counts(codes, first[rows.start : rows.stop + 1], labels[rows], n)
        return n

    return sum(each(count, portions(len(labels))))


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
    block, labels = make_block(cells, width), np.empty(len(cells.first) - 1, dtype=np.int64)
    each(
        lambda rows: find_best(block, table.reshape(-1), lanes, closed, np.zeros(ROWS * lanes), labels, rows.start, rows.stop),
        portions(len(labels)),
    )
    return labels


@compiled
def find_best(block, table, lanes, closed, sums, labels, start, end):
    for lo in range(start, end, ROWS):
        hi = min(lo + ROWS, end)
        block_sums(block, table, lanes, lo, hi, sums)
        for i in range(lo, hi):
            best, most = np.int64(0), -np.inf
            for g in range(len(closed)):
                if not closed[g] and sums[(i - lo) * lanes + g] > most:
                    best, most = np.int64(g), sums[(i - lo) * lanes + g]
            labels[i] = best


def apart(x: np.ndarray, case: np.ndarray) -> np.ndarray:
    """(rows,) Share of the features observed in both that differ between each row and a case."""
    far = np.empty(len(x))
    each(lambda rows: fill_apart(x[rows], case, far[rows]), portions(len(x)))
    return far


@compiled
def fill_apart(x, case, far):
    P = x.shape[1]
    for i in range(len(x)):
        both, differ = 0, 0
        for j in range(P):
            seen = (x[i, j] >= 0) & (case[j] >= 0)
            both += seen
            differ += seen & (x[i, j] != case[j])
        far[i] = differ / max(both, 1)


def row_means(cells: Cells, rows: np.ndarray, of_code: np.ndarray) -> np.ndarray:
    """(rows,) The mean of a number that each code has, over the observed cells of some rows; 0 if there are none."""
    mean = np.empty(len(rows))
    each(lambda few: fill_means(*cells, rows[few], of_code, mean[few]), portions(len(rows)))
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
