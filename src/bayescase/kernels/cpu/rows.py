"""Row by row: candidates scored as prototypes, and the labels z of a row drawn given φ.

Kernels release the GIL and write only to their own rows and their own scratch; integer statistics are added up. So the split
into blocks of rows cannot change a result.
"""

from math import log

import numpy as np

from ..compiling import compiled, inner
from ..equations import row_weight
from ..rng import derive, uniform
from .cells import all_stay, ask_for_phi, move_cells, move_one_label
from .intrinsics import WIDTH, span
from .labels import count_gaps, move_counts, note_row, note_whole, rename_cells, row_labels, used_labels
from .lanes_math import may_win
from .relabel import group_sums, relabel_row, relabel_whole
from .sums import block_sums, row_span
from .tables import ROWS


@compiled
def score_p(block, log_weight, copies, key, best, lo, hi):
    """The best of the candidates lo .. hi - 1 for each cluster, by log weight + Gumbel noise: a draw without gathering."""
    S = copies.top.shape[1]
    lanes = len(best.sums) // ROWS
    adds, top = copies
    score, row, sums = best
    for s in range(S):
        score[s], row[s] = -np.inf, -1
    for m0 in range(lo, hi, ROWS):
        m1 = min(m0 + ROWS, hi)
        block_sums(block, adds, lanes, m0, m1, sums)
        for m in range(m0, m1):
            at = (m - m0) * lanes
            if block.gaps:
                start, _ = row_span(block, m)
                if count_gaps(span(block.x, start, len(top))) > 0:
                    take_gaps(span(block.x, start, len(top)), top, sums, at)
            weight = log_weight[m, 0]
            if log_weight.shape[1] > 1:
                weight = 0.0
                for s in range(S):
                    sums[at + s] += log_weight[m, s]
            row_key = derive(key, block.number + m)
            for s0 in range(0, lanes, WIDTH):
                left = may_win(row_key, s0, sums, at + s0, weight, score)
                s = s0
                while left:
                    if left & 1 and s < S:
                        w = sums[at + s] + weight - log(-log(uniform(row_key, s)))
                        if w > score[s]:
                            score[s], row[s] = w, m
                    left >>= 1
                    s += 1


@inner
def take_gaps(x, top, sums, at):
    """A value that a candidate lacks cannot be copied: E = 0."""
    for j in range(len(x)):
        if x[j] < 0:
            for s in range(top.shape[1]):
                sums[at + s] -= top[j, s]


@compiled
def update_z(block, tables, by_cell, key, row, tally, sums, lo, hi):
    """Relabel and cell moves of the rows lo .. hi - 1 given φ, but held ones. Leaves the change of counts in the tally."""
    S, gaps = len(tables.a), block.gaps
    lanes = len(sums) // ROWS
    one, delta = block.one, tally.delta
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        block_sums(block, tables.log_phi, lanes, i0, i1, sums)
        for i in range(i0, i1):
            start, n_cells = row_span(block, i)
            xi, zi = span(block.x, start, n_cells), span(block.z, start, n_cells)
            row_key, at = derive(key, block.number + i), (i - i0) * lanes
            held = len(block.held) > 0 and block.held[i] >= 0
            moved, k = 0, np.int64(1)
            if one[i] >= 0:
                n = n_cells - count_gaps(xi) if gaps else n_cells
                if n == 0:
                    continue
                own = np.int64(one[i])
                if not held:
                    own = relabel_whole(tables.rise, uniform(row_key, n_cells), sums, at, lanes, own, n, row)
                    if own != one[i]:
                        move_counts(xi, one[i], own, delta)
                        tally.moved[1] += 1
                        one[i] = own
                    others = row_weight(tables.a[own], n - 1.0, 1.0)
                    if by_cell and not all_stay(xi, tables.leave, own, others, uniform(row_key, np.int64(0))):
                        moved = move_one_label(xi, zi, own, n, tables, lanes, row_key, row, delta)
                if not moved:
                    note_whole(own, n, tally)
                    continue
            else:
                k = row_labels(xi, zi, gaps, row.n, row.used)
                if block.width == 0:
                    ask_for_phi(xi, tables.phi, lanes, row.used, k)
                if not held and k < S:
                    group_sums(xi, zi, tables.log_phi, lanes, k, sums, at, row)
                    if relabel_row(xi, tables.rise, row_key, row.groups, np.int64(0), lanes, k, row):
                        rename_cells(xi, zi, row.to, delta)
                        tally.moved[1] += 1
                if not held and by_cell:
                    moved, k = move_cells(xi, zi, tables, lanes, row_key, k, row, delta)
            if moved:
                k = used_labels(row.n, row.used)
                one[i] = row.used[0] if k == 1 else -1
            tally.moved[0] += moved
            note_row(k, row, tally)
