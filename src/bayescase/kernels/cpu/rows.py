"""Row by row: candidates scored as prototypes, and the labels z of a row drawn given φ.

Kernels release the GIL and write only to their own rows and their own scratch; integer statistics are added up. So the split
into blocks of rows cannot change a result.

Row functions take arrays and an index: a view would touch a reference count that all threads share. Loops that should be
vectorised run from 0: of another start LLVM does not know that it is not negative, a Python index from the end.

Functions are compiled once for each combination of types, and a constant has one of its own: where a function also gets other
integers, constants are written np.int64(0).
"""

from math import exp, log

import numpy as np

from ..rng import categorical, derive, uniform
from .intrinsics import WIDTH, add, add_to, borrow, load, prefetch, take, zeros
from .tables import ROWS, compiled, inner, leave_mass, row_weight

TILE = 32  # features whose tables stay in the first-level cache while the sums of ROWS rows are made
GUMBEL_MAX = 36.8  # −log(−log u) for the largest u below 1 that `uniform` returns


@compiled
def row_sums(table, lanes, x, P, lo, hi, sums):
    """Σ_j table[x_ij] over the first P cells of the rows lo .. hi - 1.

    float32 registers within a tile of features, whose tables stay in the first-level cache for all rows; float64 across tiles.
    """
    sums[: (hi - lo) * lanes] = 0.0
    tile = TILE if lanes <= 2 * WIDTH else TILE // 2
    for j0 in range(0, P, tile):
        j1 = min(j0 + tile, P)
        for i in range(lo, hi):
            at = (i - lo) * lanes
            prefetch(x, i + ROWS, j0)
            s = 0
            while s + 4 * WIDTH <= lanes:
                a, b, c, d = zeros(), zeros(), zeros(), zeros()
                for j in range(j0, j1):
                    v = (np.intp(x[i, j]) + 1) * lanes + s
                    a, b = add(a, load(table, v)), add(b, load(table, v + WIDTH))
                    c, d = add(c, load(table, v + 2 * WIDTH)), add(d, load(table, v + 3 * WIDTH))
                add_to(sums, at + s, a)
                add_to(sums, at + s + WIDTH, b)
                add_to(sums, at + s + 2 * WIDTH, c)
                add_to(sums, at + s + 3 * WIDTH, d)
                s += 4 * WIDTH
            while s < lanes:
                a, b = zeros(), zeros()
                for j in range(j0, j1 - 1, 2):
                    a = add(a, load(table, (np.intp(x[i, j]) + 1) * lanes + s))
                    b = add(b, load(table, (np.intp(x[i, j + 1]) + 1) * lanes + s))
                if (j1 - j0) % 2:
                    a = add(a, load(table, (np.intp(x[i, j1 - 1]) + 1) * lanes + s))
                add_to(sums, at + s, add(a, b))
                s += WIDTH


@compiled
def score_p(data, gaps, tables, key, scratch, lo, hi):
    """The best of the candidates lo .. hi - 1 for each cluster, by log weight + Gumbel noise: a draw without gathering."""
    S, P = len(scratch.best), data.candidates.shape[1]
    lanes = len(scratch.sums) // ROWS
    candidates, copies, log_weight = borrow(data.candidates), borrow(tables.copies), borrow(data.log_weight)
    best, arg, sums = borrow(scratch.best), borrow(scratch.arg), borrow(scratch.sums)
    per_cluster = log_weight.shape[1] > 1
    best[:] = -np.inf
    arg[:] = -1
    for m0 in range(lo, hi, ROWS):
        m1 = min(m0 + ROWS, hi)
        row_sums(copies, lanes, candidates, P, m0, m1, sums)
        for m in range(m0, m1):
            at = (m - m0) * lanes
            for j in range(P if gaps else 0):
                if candidates[m, j] < 0:  # cannot be copied: E = 0
                    for s in range(S):
                        sums[at + s] -= tables.copies_max[j, s]
            row_key = derive(key, m)
            for s in range(S):
                w = sums[at + s] + log_weight[m, s if per_cluster else 0]
                if w + GUMBEL_MAX > best[s]:
                    w -= log(-log(uniform(row_key, s)))
                    if w > best[s]:
                        best[s], arg[s] = w, m


@compiled
def row_labels(x, z, i, P, gaps, n, used):
    """n_is of the first P cells of row i, and the labels in use by first appearance. n must be 0 before. Returns how many.

    Most rows have one or two labels and most tables no gaps, so these are looked for first, in loops that can be vectorised.
    """
    first, observed = 0, P
    if gaps:
        while first < P and x[i, first] < 0:
            first += 1
        if first == P:
            return 0
        for j in range(P):
            observed -= x[i, j] < 0
    a, mixed = z[i, first], False
    if observed < P:
        for j in range(P):
            mixed |= (x[i, j] >= 0) & (z[i, j] != a)
    else:
        for j in range(P):
            mixed |= z[i, j] != a
    used[0] = a
    if not mixed:
        n[a] = observed
        return 1
    second = first + 1
    while x[i, second] < 0 or z[i, second] == a:
        second += 1
    b, of_a, of_b = z[i, second], 0, 0
    for j in range(P):
        of_a += (x[i, j] >= 0) & (z[i, j] == a)
        of_b += (x[i, j] >= 0) & (z[i, j] == b)
    if of_a + of_b == observed:
        used[1], n[a], n[b] = b, of_a, of_b
        return 2
    k = 0
    for j in range(P):
        if x[i, j] >= 0:
            if n[z[i, j]] == 0:
                used[k] = z[i, j]
                k += 1
            n[z[i, j]] += 1
    return k


@inner
def group_sums(x, z, i, P, table, lanes, used, k, n, sums, at, groups, rows):
    """groups[t] = Σ_j table[x_ij] over the cells whose label is used[t].

    sums[at : at + lanes] is the sum over all cells, so the largest group is what the others leave.
    """
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
        for j in range(P):
            rows[size] = (np.intp(x[i, j]) + 1) * lanes
            size += (x[i, j] >= 0) & (z[i, j] == used[t])
        for s in range(0, lanes, WIDTH):
            for r0 in range(0, size, TILE):
                a = zeros()
                for r in range(r0, min(r0 + TILE, size)):
                    a = add(a, load(table, rows[r] + s))
                add_to(groups, t * lanes + s, a)
        for s in range(lanes):
            groups[largest * lanes + s] -= groups[t * lanes + s]


@inner
def relabel_row(x, z, i, P, rows_rise, key, sums, at, lanes, n, used, k, w, to):
    """Each group of cells that share a label draws a new one among its own and those the row does not use, ∝ Π φ.

    sums[at + t · lanes + s] = Σ log φ_s over the cells of group t. Groups go by first appearance: an order that the move
    itself cannot change, as an exact scan needs. Returns the number of groups moved.
    """
    S = len(n)
    moved = 0
    for t in range(k):
        a = used[t]
        size = int(n[a])
        n[a] = 0
        for s in range(S):
            w[s] = sums[at + t * lanes + s] + rows_rise[size, s] if n[s] == 0 else -np.inf
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
            b = categorical(w, S, uniform(key, P + t))
        n[b] = size
        used[t] = b
        to[a] = b
        moved += b != a
    if moved:
        for j in range(P):
            if x[i, j] >= 0:
                z[i, j] = to[z[i, j]]
    return moved


@inner
def first_leaver(x, i, j0, P, phi, s, smooth, n, a, u):
    """First of the cells j0 .. P - 1 that leaves s, the only label of the row, or P. n is the count of s without the cell."""
    for j in range(j0, P):
        if x[i, j] >= 0:
            v = np.intp(x[i, j]) + 1
            if u[j] * (row_weight(0.0, n, phi[s, v]) + smooth[v]) < leave_mass(a, phi[s, v], smooth[v]):
                return j
    return P


@inner
def first_leaver_complete(x, i, P, phi, often, s, smooth, a, u):
    """The same for a whole row without gaps. Most cells are ruled out by a bound, without a look at their value."""
    for tile in range(-(-P // TILE)):
        j0 = (tile & 0xFFFFFF) * TILE  # the mask says: not negative
        size = min(P - j0, TILE)
        some = 0
        for j in range(size):
            some += u[j0 + j] < often[s, j0 + j]
        if some:
            j = first_leaver(x, i, j0, j0 + size, phi, s, smooth, P - 1.0, a, u)
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
def move_cell(x, z, i, j, phi, smooth, a, u, n, used, k):
    """One cell: z_ij ∝ (a_s + n_is) φ_s(x_ij). Returns (moved, labels in use)."""
    v = np.intp(x[i, j]) + 1
    own = np.intp(z[i, j])
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
        z[i, j] = b
    n[b] += 1
    return int(b != own), k


@inner
def move_cells_two(x, z, i, j0, P, phi, smooth, a, u, cut, rare, cells, n, used, moved, where, old):
    """The cells from j0 on of a row with two labels, 0 and 1, until one takes another label.

    With m other cells, m0 of them of label 0, a cell takes label 0 if u (σ + m0 φ0 + (m − m0) φ1) < σ + m0 φ0, σ the smoothing
    part. Solved for m0: if m0 > (u (σ + m φ1) − σ) / ((1 − u) φ0 + u φ1), a number that depends on no other cell. So these are
    made first, in a vectorised loop; what remains in sequence is to compare and to count. Returns (next cell, moved, labels).
    """
    s0, s1 = used[0], used[1]
    n0, m = int(n[s0]), int(n[s0] + n[s1]) - 1
    others, one = np.float32(m), np.float32(1.0)
    at0, at1 = s0 * phi.shape[1] + 1, s1 * phi.shape[1] + 1
    for j in range(P):
        v = np.intp(x[i, j])
        cells[0, j], cells[1, j], cells[2, j] = take(phi, at0 + v), take(phi, at1 + v), take(smooth, v + 1)
    for j in range(P):
        phi0, phi1, sigma = cells[0, j], cells[1, j], cells[2, j]
        bound = (u[j] * (sigma + others * phi1) - sigma) / ((one - u[j]) * phi0 + u[j] * phi1)
        cut[j] = np.int32(np.floor(min(max(bound, -one), others)))  # m0 is whole: so may the bound be
        rare[j] = (x[i, j] < 0) | (u[j] * (sigma + others * min(phi0, phi1)) < sigma)  # a gap, or perhaps r < σ, a fresh label
    for j in range(j0, P):
        own0 = np.int64(z[i, j] == s0)
        m0 = n0 - own0
        new0 = np.int64(m0 > cut[j])
        if rare[j]:
            v = np.intp(x[i, j]) + 1
            r = u[j] * (smooth[v] + row_weight(0.0, m0, phi[s0, v]) + row_weight(0.0, m - m0, phi[s1, v]))
            if v == 0:
                continue
            if r < smooth[v]:
                b = fresh_label(r, s0 if own0 else s1, phi, v, a)
                if b != s0 and b != s1:
                    where[moved], old[moved] = j, z[i, j]
                    z[i, j] = b
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
        where[moved], old[moved] = j, z[i, j]
        moved += own0 != new0
        z[i, j] = s0 if new0 else s1
    n[s0], n[s1] = n0, m + 1 - n0
    k = np.int64(2)
    if n[s0] == 0:
        k = drop(used, k, s0)
    if n[s1] == 0:
        k = drop(used, k, s1)
    return P, moved, k


@compiled
def move_cells(x, z, i, P, phi, smooth, often, a, key, u, cut, rare, cells, n, used, k, where, old):
    """z_ij ∝ (a_s + n_is) φ_s(x_ij) for the cells of a row in turn, with a = α β. Returns (cells moved, labels in use).
    The cells that moved are left in where[:moved], their labels before in old[:moved].

    The sum over s is split: σ = Σ_s a_s φ_s, known once per sweep, and n_is φ_s over the labels in use, few when α is small.
    Small u opens a label, so that float32 has its digits where probabilities are small. Rows with one label, where no draw
    depends on another until a cell leaves, and with two go faster.
    """
    for j in range(P):
        u[j] = uniform(key, j)
    start = 0
    if k == 1 and n[used[0]] == x.shape[1]:
        start = first_leaver_complete(x, i, P, phi, often, used[0], smooth, a[used[0]], u)
    if start == P:
        return 0, k
    return move_cells_from(start, x, z, i, P, phi, smooth, a, u, cut, rare, cells, n, used, k, where, old)


@inner
def move_cells_from(j, x, z, i, P, phi, smooth, a, u, cut, rare, cells, n, used, k, where, old):
    """The cells of a row from j on."""
    moved = np.int64(0)
    while j < P:
        if k == 1:
            j = first_leaver(x, i, j, P, phi, used[0], smooth, n[used[0]] - 1.0, a[used[0]], u)
            if j == P:
                break
        if k == 2:
            j, moved, k = move_cells_two(x, z, i, j, P, phi, smooth, a, u, cut, rare, cells, n, used, moved, where, old)
        else:
            if x[i, j] >= 0:
                where[moved], old[moved] = j, z[i, j]
                more, k = move_cell(x, z, i, j, phi, smooth, a, u, n, used, k)
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
def note_row(n, used, k, n_rows, main, info):
    """Add the row's counts to the statistics and set n back to 0."""
    observed, most, b = 0, 0, 0
    for t in range(k):
        s = used[t]
        n_rows[s, int(n[s])] += 1
        observed += int(n[s])
        if n[s] > most:
            most, b = int(n[s]), s
        n[s] = 0
    main[b] += 1
    info[2] += (most << 32) // observed


@compiled
def update_z(x, z, held, gaps, tables, a, rows_rise, by_cell, key, scratch, lo, hi):
    """Relabel and cell moves of the rows lo .. hi - 1 given φ, but held ones. Leaves the change of counts in the scratch."""
    S, P = len(a), x.shape[1]
    lanes = len(scratch.sums) // ROWS
    x, z, a, rows_rise = borrow(x), borrow(z), borrow(a), borrow(rows_rise)
    phi, log_phi, smooth, often = borrow(tables.phi), borrow(tables.log_phi), borrow(tables.smooth), borrow(tables.often)
    sums, groups, w, u, n = (
        borrow(scratch.sums),
        borrow(scratch.groups),
        borrow(scratch.weight),
        borrow(scratch.u),
        borrow(scratch.n),
    )
    used, to, old, rows = borrow(scratch.used), borrow(scratch.to), borrow(scratch.old), borrow(scratch.rows)
    cut, rare, cells = borrow(scratch.cut), borrow(scratch.rare), borrow(scratch.cells)
    delta, n_rows, main, info = borrow(scratch.delta), borrow(scratch.n_rows), borrow(scratch.main), borrow(scratch.info)
    delta[:] = 0
    n_rows[:] = 0
    main[:] = 0
    info[:] = 0
    n[:] = 0
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        row_sums(log_phi, lanes, x, P, i0, i1, sums)
        for i in range(i0, i1):
            k = row_labels(x, z, i, P, gaps, n, used)
            if k == 0:
                continue
            if len(held) > 0 and held[i] >= 0:
                note_row(n, used, k, n_rows, main, info)
                continue
            row_key = derive(key, i)
            grouped, moved = 0, 0
            if k < S:
                for j in range(P):
                    old[j] = z[i, j]
            at = (i - i0) * lanes
            if k == 1:
                grouped = relabel_row(x, z, i, P, rows_rise, row_key, sums, at, lanes, n, used, k, w, to)
            elif k < S:
                group_sums(x, z, i, P, log_phi, lanes, used, k, n, sums, at, groups, rows)
                grouped = relabel_row(x, z, i, P, rows_rise, row_key, groups, np.int64(0), lanes, n, used, k, w, to)
            if grouped:
                for j in range(P):
                    if x[i, j] >= 0:
                        delta[x[i, j], old[j]] -= 1
                        delta[x[i, j], z[i, j]] += 1
            if by_cell:
                moved, k = move_cells(x, z, i, P, phi, smooth, often, a, row_key, u, cut, rare, cells, n, used, k, rows, old)
                for m in range(moved):
                    delta[x[i, rows[m]], old[m]] -= 1
                    delta[x[i, rows[m]], z[i, rows[m]]] += 1
            info[0] += moved
            info[1] += grouped > 0
            note_row(n, used, k, n_rows, main, info)
