"""Sums of a table over the cells of rows: of log weights of candidates, of log φ.

A row's cells are a `span` of the block's. Loops that should be vectorised start at 0: LLVM cannot tell that any other
start is not negative, and a negative index counts from the end.
"""

import numpy as np

from ..compiling import inner
from .intrinsics import WIDTH, add, add_to, load, prefetch, span, zeros
from .tables import ROWS

TILE = 32  # features whose tables stay in the first-level cache while the sums of ROWS rows are made


@inner
def row_sums(table, lanes, x, P, lo, hi, sums):
    """Σ_j table[x_ij] over the rows lo .. hi - 1 of P cells each; x has all rows, one after the other.

    float32 registers within a tile of features, whose tables stay in the first-level cache for all rows; float64 across tiles.
    """
    sums[: (hi - lo) * lanes] = 0.0
    tile = TILE if lanes <= 2 * WIDTH else TILE // 2
    for j0 in range(0, P, tile):
        size = min(P - j0, tile)
        for i in range(lo, hi):
            at = (i - lo) * lanes
            prefetch(x, (i + ROWS) * P + j0)
            row = span(x, i * P + j0, size)
            s = 0
            while s + 4 * WIDTH <= lanes:
                a, b, c, d = zeros(), zeros(), zeros(), zeros()
                for j in range(size):
                    v = (np.intp(row[j]) + 1) * lanes + s
                    a, b = add(a, load(table, v)), add(b, load(table, v + WIDTH))
                    c, d = add(c, load(table, v + 2 * WIDTH)), add(d, load(table, v + 3 * WIDTH))
                add_to(sums, at + s, a)
                add_to(sums, at + s + WIDTH, b)
                add_to(sums, at + s + 2 * WIDTH, c)
                add_to(sums, at + s + 3 * WIDTH, d)
                s += 4 * WIDTH
            while s < lanes:
                a, b = zeros(), zeros()
                for j in range(0, size - 1, 2):
                    a = add(a, load(table, (np.intp(row[j]) + 1) * lanes + s))
                    b = add(b, load(table, (np.intp(row[j + 1]) + 1) * lanes + s))
                if size % 2:
                    a = add(a, load(table, (np.intp(row[size - 1]) + 1) * lanes + s))
                add_to(sums, at + s, add(a, b))
                s += WIDTH


@inner
def ragged_sums(table, lanes, x, first, lo, hi, sums):
    """The same for rows of any length, without gaps: row i is x[first[i] : first[i + 1]]. Tables are too large to be tiled."""
    sums[: (hi - lo) * lanes] = 0.0
    for i in range(lo, hi):
        at, start, n_cells = (i - lo) * lanes, first[i], first[i + 1] - first[i]
        for s in range(0, lanes, 2 * WIDTH):
            for j0 in range(0, n_cells, TILE):
                row = span(x, start + j0, min(n_cells - j0, TILE))
                a, b = zeros(), zeros()
                if s + WIDTH < lanes:
                    for j in range(len(row)):
                        v = (np.intp(row[j]) + 1) * lanes + s
                        a, b = add(a, load(table, v)), add(b, load(table, v + WIDTH))
                    add_to(sums, at + s + WIDTH, b)
                else:
                    for j in range(len(row)):
                        a = add(a, load(table, (np.intp(row[j]) + 1) * lanes + s))
                add_to(sums, at + s, a)


@inner
def block_sums(block, table, lanes, lo, hi, sums):
    """Σ_j table[x_ij] over the rows lo .. hi - 1 of a block."""
    if block.width > 0:
        row_sums(table, lanes, block.x, block.width, lo, hi, sums)
    else:
        ragged_sums(table, lanes, block.x, block.first, lo, hi, sums)


@inner
def row_span(block, i):
    """(first cell, cells) of row i."""
    if block.width > 0:
        return i * block.width, block.width
    return block.first[i], block.first[i + 1] - block.first[i]
