"""Row by row: candidates scored as prototypes, and the labels z of a row drawn given φ.

Kernels release the GIL and write only to their own rows and their own scratch; integer statistics are added up. So the split
into blocks of rows cannot change a result.

A row's cells are a `span` of the block's: x and z below are those of one row. Loops that should be vectorised run from 0: of
any other start LLVM cannot tell that it is not negative, which to Python means an index from the end.

Functions are compiled once for each combination of types, and a constant has one of its own: where a function also gets other
integers, constants are written np.int64(0).
"""

from math import exp, log

import numpy as np

from ..equations import compiled, inner, row_weight
from ..rng import categorical, derive, uniform
from .intrinsics import WIDTH, add, add_to, borrow, load, prefetch, span, take, zeros
from .tables import ROWS, leave_mass

TILE = 32  # features whose tables stay in the first-level cache while the sums of ROWS rows are made
GUMBEL_MAX = 36.8  # −log(−log u) for the largest u below 1 that `uniform` returns


@compiled
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


@compiled
def score_p(block, log_weight, copies, key, scratch, lo, hi):
    """The best of the candidates lo .. hi - 1 for each cluster, by log weight + Gumbel noise: a draw without gathering."""
    S, P = len(scratch.best), block.width
    lanes = len(scratch.sums) // ROWS
    x, adds, top, log_weight = borrow(block.x), borrow(copies.adds), borrow(copies.top), borrow(log_weight)
    best, arg, sums = borrow(scratch.best), borrow(scratch.arg), borrow(scratch.sums)
    per_cluster = log_weight.shape[1] > 1
    best[:] = -np.inf
    arg[:] = -1
    for m0 in range(lo, hi, ROWS):
        m1 = min(m0 + ROWS, hi)
        row_sums(adds, lanes, x, P, m0, m1, sums)
        for m in range(m0, m1):
            at = (m - m0) * lanes
            if block.gaps:
                for j in range(P):
                    if x[m * P + j] < 0:  # cannot be copied: E = 0
                        for s in range(S):
                            sums[at + s] -= top[j, s]
            row_key = derive(key, block.number + m)
            for s in range(S):
                w = sums[at + s] + log_weight[m, s if per_cluster else 0]
                if w + GUMBEL_MAX > best[s]:
                    w -= log(-log(uniform(row_key, s)))
                    if w > best[s]:
                        best[s], arg[s] = w, m


@compiled
def row_labels(x, z, gaps, n, used):
    """n_is of a row, and the labels in use by first appearance. n must be 0 before. Returns how many labels there are.

    Most rows have one or two labels and most tables no gaps, so these are looked for first, in loops that can be vectorised.
    """
    P = len(x)
    first, observed = 0, P
    if gaps:
        while first < P and x[first] < 0:
            first += 1
        if first == P:
            return 0
        for j in range(P):
            observed -= x[j] < 0
    a, mixed = z[first], False
    if observed < P:
        for j in range(P):
            mixed |= (x[j] >= 0) & (z[j] != a)
    else:
        for j in range(P):
            mixed |= z[j] != a
    used[0] = a
    if not mixed:
        n[a] = observed
        return 1
    second = first + 1
    while x[second] < 0 or z[second] == a:
        second += 1
    b, of_a, of_b = z[second], 0, 0
    for j in range(P):
        of_a += (x[j] >= 0) & (z[j] == a)
        of_b += (x[j] >= 0) & (z[j] == b)
    if of_a + of_b == observed:
        used[1], n[a], n[b] = b, of_a, of_b
        return 2
    k = 0
    for j in range(P):
        if x[j] >= 0:
            if n[z[j]] == 0:
                used[k] = z[j]
                k += 1
            n[z[j]] += 1
    return k


@inner
def group_sums(x, z, log_phi, lanes, k, sums, at, row):
    """row.groups[t] = Σ_j log φ(x_j) over the cells whose label is used[t].

    sums[at : at + lanes] is the sum over all cells, so the largest group is what the others leave.
    """
    n, used, groups, where = row.n, row.used, row.groups, row.where
    largest = 0
    for t in range(1, k):
        if n[used[t]] > n[used[largest]]:
            largest = t
    groups[: k * lanes] = 0.0
    for s in range(lanes):
        groups[largest * lanes + s] = sums[at + s]
    for t in range(k):
        if t == largest:
            continue
        size = 0
        for j in range(len(x)):
            where[size] = (np.intp(x[j]) + 1) * lanes
            size += (x[j] >= 0) & (z[j] == used[t])
        for s in range(0, lanes, WIDTH):
            for r0 in range(0, size, TILE):
                a = zeros()
                for r in range(r0, min(r0 + TILE, size)):
                    a = add(a, load(log_phi, where[r] + s))
                add_to(groups, t * lanes + s, a)
        for s in range(lanes):
            groups[largest * lanes + s] -= groups[t * lanes + s]


@inner
def relabel_row(x, z, rise, key, sums, at, lanes, k, row):
    """Each group of cells that share a label draws a new one among its own and those the row does not use, ∝ Π φ.

    sums[at + t · lanes + s] = Σ log φ_s over the cells of group t. Groups go by first appearance: an order that the move
    itself cannot change, as an exact scan needs. Returns the number of groups moved.
    """
    n, used, w, to = row.n, row.used, row.weight, row.to
    S = len(n)
    moved = 0
    for t in range(k):
        a = used[t]
        size = int(n[a])
        n[a] = 0
        for s in range(S):
            w[s] = sums[at + t * lanes + s] + rise[size, s] if n[s] == 0 else -np.inf
        top, b = -np.inf, a
        for s in range(S):
            if w[s] > top:
                top, b = w[s], s
        near = 0
        for s in range(S):
            near += w[s] > top - 60.0
        if near > 1:  # else no uniform number is small enough to choose another than b
            for s in range(S):
                w[s] = exp(w[s] - top) if w[s] > top - 60.0 else 0.0
            b = categorical(w, S, uniform(key, len(x) + t))
        n[b] = size
        used[t] = b
        to[a] = b
        moved += b != a
    if moved:
        for j in range(len(x)):
            if x[j] >= 0:
                z[j] = to[z[j]]
    return moved


@inner
def first_leaver(x, j0, j1, phi, s, smooth, n, a, u):
    """First of the cells j0 .. j1 - 1 that leaves s, the only label of the row, or j1. n is the count of s without the cell."""
    for j in range(j0, j1):
        if x[j] >= 0:
            v = np.intp(x[j]) + 1
            if u[j] * (row_weight(0.0, n, phi[s, v]) + smooth[v]) < leave_mass(a, phi[s, v], smooth[v]):
                return j
    return j1


@inner
def first_leaver_complete(x, phi, bound, s, smooth, a, u):
    """The same for a whole row without gaps. Most cells are ruled out by a bound, without a look at their value."""
    P = len(x)
    for tile in range(-(-P // TILE)):
        j0 = (tile & 0xFFFFFF) * TILE  # the mask says: not negative
        size = min(P - j0, TILE)
        some = 0
        for j in range(size):
            some += u[j0 + j] < bound[s, j0 + j]
        if some:
            j = first_leaver(x, j0, j0 + size, phi, s, smooth, P - 1.0, a, u)
            if j < j0 + size:
                return j
    return P


@inner
def fresh_label(r, own, phi, v, a):
    """The label that owns r < Σ_s a_s φ_s, the cell's own label last."""
    for s in range(len(a)):
        if s != own:
            r -= row_weight(a[s], 0.0, phi[s, v])
            if r < 0.0:
                return s
    return own


@inner
def move_cell(x, z, j, phi, smooth, a, k, row):
    """One cell: z_ij ∝ (a_s + n_is) φ_s(x_ij). Returns (moved, labels in use)."""
    u, n, used = row.u, row.n, row.used
    v = np.intp(x[j]) + 1
    own = np.intp(z[j])
    n[own] -= 1
    total = np.float64(smooth[v])
    for t in range(k):
        total += row_weight(0.0, n[used[t]], phi[used[t], v])
    r = u[j] * total
    b = own
    if r < smooth[v]:
        b = fresh_label(r, own, phi, v, a)
    else:
        r -= smooth[v]
        for t in range(k):
            if n[used[t]] > 0:
                b = used[t]
                r -= row_weight(0.0, n[b], phi[b, v])
                if r < 0.0:
                    break
    if b != own:
        if n[b] == 0:
            used[k] = b
            k += 1
        if n[own] == 0:
            k = drop(used, k, own)
        z[j] = b
    n[b] += 1
    return int(b != own), k


@inner
def move_cells_two(x, z, j0, phi, smooth, a, moved, row):
    """The cells from j0 on of a row with two labels, 0 and 1, until one takes another label.

    With m other cells, m0 of them of label 0, a cell takes label 0 if u (σ + m0 φ0 + (m − m0) φ1) < σ + m0 φ0, σ the smoothing
    part. Solved for m0: if m0 > (u (σ + m φ1) − σ) / ((1 − u) φ0 + u φ1), a number that depends on no other cell. So these are
    made first, in a vectorised loop; what remains in sequence is to compare and to count. Returns (next cell, moved, labels).
    """
    u, cut, rare, cells, n, used = row.u, row.cut, row.rare, row.cells, row.n, row.used
    where, old, P = row.where, row.old, len(x)
    s0, s1 = used[0], used[1]
    n0, m = int(n[s0]), int(n[s0] + n[s1]) - 1
    others, one = np.float32(m), np.float32(1.0)
    at0, at1 = s0 * phi.shape[1] + 1, s1 * phi.shape[1] + 1
    for j in range(P):
        v = np.intp(x[j])
        cells[0, j], cells[1, j], cells[2, j] = take(phi, at0 + v), take(phi, at1 + v), take(smooth, v + 1)
    for j in range(P):
        phi0, phi1, sigma = cells[0, j], cells[1, j], cells[2, j]
        bound = (u[j] * (sigma + others * phi1) - sigma) / ((one - u[j]) * phi0 + u[j] * phi1)
        cut[j] = np.int32(np.floor(min(max(bound, -one), others)))  # m0 is whole: so may the bound be
        rare[j] = (x[j] < 0) | (u[j] * (sigma + others * min(phi0, phi1)) < sigma)  # a gap, or perhaps r < σ, a fresh label
    for j in range(j0, P):
        own0 = np.int64(z[j] == s0)
        m0 = n0 - own0
        new0 = np.int64(m0 > cut[j])
        if rare[j]:
            v = np.intp(x[j]) + 1
            r = u[j] * (smooth[v] + row_weight(0.0, m0, phi[s0, v]) + row_weight(0.0, m - m0, phi[s1, v]))
            if v == 0:
                continue
            if r < smooth[v]:
                b = fresh_label(r, s0 if own0 else s1, phi, v, a)
                if b != s0 and b != s1:
                    where[moved], old[moved] = j, z[j]
                    z[j] = b
                    n[s0], n[s1], n[b] = m0, m - m0, 1.0
                    used[2] = b
                    k = np.int64(3)
                    if n[s0] == 0:
                        k = drop(used, k, s0)
                    if n[s1] == 0:
                        k = drop(used, k, s1)
                    return j + 1, moved + 1, k
                new0 = np.int64(b == s0)
        n0 = m0 + new0
        where[moved], old[moved] = j, z[j]
        moved += own0 != new0
        z[j] = s0 if new0 else s1
    n[s0], n[s1] = n0, m + 1 - n0
    k = np.int64(2)
    if n[s0] == 0:
        k = drop(used, k, s0)
    if n[s1] == 0:
        k = drop(used, k, s1)
    return P, moved, k


@compiled
def move_cells(x, z, tables, key, k, row):
    """z_ij ∝ (a_s + n_is) φ_s(x_ij) for the cells of a row in turn, with a = α β. Returns (cells moved, labels in use).
    The cells that moved are left in row.where[:moved], their labels before in row.old[:moved].

    The sum over s is split: σ = Σ_s a_s φ_s, known once per sweep, and n_is φ_s over the labels in use, few when α is small.
    Small u opens a label, so that float32 has its digits where probabilities are small. Rows with one label, where no draw
    depends on another until a cell leaves, and with two go faster.
    """
    phi, smooth, a, u, used, P = tables.phi, tables.smooth, tables.a, row.u, row.used, len(x)
    for j in range(P):
        u[j] = uniform(key, j)
    start = 0
    if k == 1 and row.n[used[0]] == tables.bound.shape[1]:
        start = first_leaver_complete(x, phi, tables.bound, used[0], smooth, a[used[0]], u)
    if start == P:
        return 0, k
    return move_cells_from(start, x, z, phi, smooth, a, k, row)


@inner
def move_cells_from(j, x, z, phi, smooth, a, k, row):
    """The cells of a row from j on."""
    n, used, P = row.n, row.used, len(x)
    moved = np.int64(0)
    while j < P:
        if k == 1:
            j = first_leaver(x, j, P, phi, used[0], smooth, n[used[0]] - 1.0, a[used[0]], row.u)
            if j == P:
                break
        if k == 2:
            j, moved, k = move_cells_two(x, z, j, phi, smooth, a, moved, row)
        else:
            if x[j] >= 0:
                row.where[moved], row.old[moved] = j, z[j]
                more, k = move_cell(x, z, j, phi, smooth, a, k, row)
                moved += more
            j += 1
    return moved, k


@inner
def drop(used, k, a):
    """Remove label a from the k labels in use."""
    for t in range(k):
        if used[t] == a:
            used[t] = used[k - 1]
            return k - 1
    return k


@inner
def note_row(k, row, tally):
    """Add the row's counts to the statistics and set n back to 0."""
    n, used = row.n, row.used
    observed, most, b = 0, 0, 0
    for t in range(k):
        s = used[t]
        tally.n_rows[s, int(n[s])] += 1
        observed += int(n[s])
        if n[s] > most:
            most, b = int(n[s]), s
        n[s] = 0
    tally.main[b] += 1
    tally.purity[0] += (most << 32) // observed


@compiled
def update_z(block, tables, by_cell, key, scratch, lo, hi):
    """Relabel and cell moves of the rows lo .. hi - 1 given φ, but held ones. Leaves the change of counts in the scratch."""
    S, P, gaps = len(tables.a), block.width, block.gaps
    lanes = len(scratch.sums) // ROWS
    x, z, held = borrow(block.x), borrow(block.z), borrow(block.held)
    tables, row, tally, sums = borrow(tables), borrow(scratch.row), borrow(scratch.tally), borrow(scratch.sums)
    log_phi, delta, old, where = tables.log_phi, tally.delta, row.old, row.where
    tally.delta[:] = 0
    tally.n_rows[:] = 0
    tally.main[:] = 0
    tally.purity[:] = 0
    tally.moved[:] = 0
    row.n[:] = 0
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        row_sums(log_phi, lanes, x, P, i0, i1, sums)
        for i in range(i0, i1):
            xi, zi = span(x, i * P, P), span(z, i * P, P)
            k = row_labels(xi, zi, gaps, row.n, row.used)
            if k == 0:
                continue
            if len(held) > 0 and held[i] >= 0:
                note_row(k, row, tally)
                continue
            row_key = derive(key, block.number + i)
            grouped, moved = 0, 0
            if k < S:
                for j in range(P):
                    old[j] = zi[j]
            at = (i - i0) * lanes
            if k == 1:
                grouped = relabel_row(xi, zi, tables.rise, row_key, sums, at, lanes, k, row)
            elif k < S:
                group_sums(xi, zi, log_phi, lanes, k, sums, at, row)
                grouped = relabel_row(xi, zi, tables.rise, row_key, row.groups, np.int64(0), lanes, k, row)
            if grouped:
                for j in range(P):
                    if xi[j] >= 0:
                        delta[xi[j], old[j]] -= 1
                        delta[xi[j], zi[j]] += 1
            if by_cell:
                moved, k = move_cells(xi, zi, tables, row_key, k, row)
                for m in range(moved):
                    delta[xi[where[m]], old[m]] -= 1
                    delta[xi[where[m]], zi[where[m]]] += 1
            tally.moved[0] += moved
            tally.moved[1] += grouped > 0
            note_row(k, row, tally)
