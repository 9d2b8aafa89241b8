"""Row by row: candidates scored as prototypes, and the labels z of a row drawn given φ.

Kernels release the GIL and write only to their own rows and their own scratch; integer statistics are added up. So the split
into blocks of rows cannot change a result.
"""

from math import log

import numpy as np

from ..compiling import compiled
from ..rng import derive, uniform
from .cells import move_cells, move_one_label
from .intrinsics import borrow, span
from .labels import count_gaps, move_counts, note_row, rename_cells, row_labels, used_labels
from .relabel import group_sums, relabel_row
from .sums import block_sums, row_span
from .tables import ROWS

GUMBEL_MAX = 36.8  # −log(−log u) for the largest u below 1 that `uniform` returns


@compiled
def score_p(block, log_weight, copies, key, best, lo, hi):
    """The best of the candidates lo .. hi - 1 for each cluster, by log weight + Gumbel noise: a draw without gathering."""
    S, P = len(best.score), len(copies.top)
    lanes = len(best.sums) // ROWS
    block, adds, top, log_weight = borrow(block), borrow(copies.adds), borrow(copies.top), borrow(log_weight)
    score, row, sums = borrow(best)
    per_cluster = log_weight.shape[1] > 1
    for s in range(S):
        score[s], row[s] = -np.inf, -1
    for m0 in range(lo, hi, ROWS):
        m1 = min(m0 + ROWS, hi)
        block_sums(block, adds, lanes, m0, m1, sums)
        for m in range(m0, m1):
            at = (m - m0) * lanes
            if block.gaps:
                start, _ = row_span(block, m)
                for j in range(P):
                    if block.x[start + j] < 0:  # cannot be copied: E = 0
                        for s in range(S):
                            sums[at + s] -= top[j, s]
            row_key = derive(key, block.number + m)
            for s in range(S):
                w = sums[at + s] + log_weight[m, s if per_cluster else 0]
                if w + GUMBEL_MAX > score[s]:
                    w -= log(-log(uniform(row_key, s)))
                    if w > score[s]:
                        score[s], row[s] = w, m


@compiled
def update_z(block, tables, by_cell, key, row, tally, sums, lo, hi):
    """Relabel and cell moves of the rows lo .. hi - 1 given φ, but held ones. Leaves the change of counts in the tally."""
    S, gaps = len(tables.a), block.gaps
    lanes = len(sums) // ROWS
    block, tables, row, tally, sums = borrow(block), borrow(tables), borrow(row), borrow(tally), borrow(sums)
    one, delta = block.one, tally.delta
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        block_sums(block, tables.log_phi, lanes, i0, i1, sums)
        for i in range(i0, i1):
            start, n_cells = row_span(block, i)
            xi, zi = span(block.x, start, n_cells), span(block.z, start, n_cells)
            row_key, at = derive(key, block.number + i), (i - i0) * lanes
            held = len(block.held) > 0 and block.held[i] >= 0
            grouped, moved, k = 0, 0, np.int64(1)
            if one[i] >= 0:
                n = n_cells - count_gaps(xi) if gaps else n_cells
                if n == 0:
                    continue
                own = one[i]
                row.n[own], row.used[0] = n, own
                if not held:
                    grouped = relabel_row(xi, tables.rise, row_key, sums, at, lanes, k, row)
                    if grouped:
                        own = row.used[0]
                        move_counts(xi, one[i], own, delta)
                        one[i] = own
                    if by_cell:
                        moved = move_one_label(xi, zi, own, n, tables, lanes, row_key, row, delta)
            else:
                k = row_labels(xi, zi, gaps, row.n, row.used)
                if not held and k < S:
                    group_sums(xi, zi, tables.log_phi, lanes, k, sums, at, row)
                    grouped = relabel_row(xi, tables.rise, row_key, row.groups, np.int64(0), lanes, k, row)
                    if grouped:
                        rename_cells(xi, zi, row.to, delta)
                if not held and by_cell:
                    moved, k = move_cells(xi, zi, tables, lanes, row_key, k, row, delta)
            if moved:
                k = used_labels(row.n, row.used)
                one[i] = row.used[0] if k == 1 else -1
            tally.moved[0] += moved
            tally.moved[1] += grouped > 0
            note_row(k, row, tally)
