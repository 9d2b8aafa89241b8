"""The label of one cell given the others of its row and φ: z_ij ∝ (a_s + n_is) φ_s(x_ij).

Functions are compiled once for each combination of types, and a constant has one of its own: where a function also gets other
integers, constants are written np.int64(0).
"""

import numpy as np

from ..compiling import inlined, inner
from ..equations import row_weight
from ..rng import uniform
from .intrinsics import (
    WIDTH,
    add,
    div,
    every,
    larger,
    load,
    mul,
    prefetch,
    smaller,
    span,
    store,
    sub,
    take,
    where_less,
    where_same,
    zeros,
)
from .labels import drop, drop_empty
from .relabel import pick
from .tables import AHEAD

# Parts of row.ahead, WIDTH numbers each: of cells side by side what they may become. From LABELS on, one for each label in use.
SMOOTH, OWN, PHI_OWN, N_OWN, INDEX, SLACK, LABELS = range(0, (AHEAD + 1) * WIDTH, WIDTH)
ROUNDING = np.float32(2.0**-22)  # of a float32 sum, per term, with room to spare


@inlined
def all_stay(x, leave, s, n, u):
    """Is it certain that none of the cells leaves s, the only label of the row? n is the weight of s without one of them."""
    return u * n >= leave_sum(x, leave, s)


@inlined
def leave_sum(x, leave, s):
    """Σ_j ν_j over the cells, ν = Σ_{t ≠ s} a_t φ_t(x_j) / φ_s(x_j): a cell leaves s with probability ν / (n + ν)."""
    a, b, c, d = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    at, n = s * leave.shape[1] + 1, len(x)
    for j in range(0, n - 3, 4):
        a += take(leave, at + np.intp(take(x, j)))
        b += take(leave, at + np.intp(take(x, j + 1)))
        c += take(leave, at + np.intp(take(x, j + 2)))
        d += take(leave, at + np.intp(take(x, j + 3)))
    for j in range(n - n % 4, n):
        a += take(leave, at + np.intp(take(x, j)))
    return a + b + c + d


@inner
def first_leaver(x, leave, s, n, u):
    """First cell that leaves s, the only label of the row, or len(x). n is the weight of s without that cell.

    Until a cell leaves no draw depends on another: cell j is the first with probability p_j Π_{i < j} (1 − p_i).
    """
    stayed = 1.0
    for j in range(len(x)):
        v = leave[s, np.intp(x[j]) + 1]  # 0 for a missing cell
        stayed *= n / (n + v)
        if u < 1.0 - stayed:
            return j
    return len(x)


@inner
def fresh_label(r, own, phi, at, a):
    """The label that owns r < Σ_s a_s φ_s, the cell's own label last."""
    for s in range(len(a)):
        if s != own:
            r -= row_weight(a[s], 0.0, phi[at + s])
            if r < 0.0:
                return s
    return own


@inner
def move_one_label(x, z, own, n, tables, lanes, key, row, delta):
    """Cell moves of a row whose n cells have one label: most stay. Returns the cells moved; z is filled if there are any."""
    a, others = tables.a, row_weight(tables.a[own], n - 1.0, 1.0)
    u = uniform(key, np.int64(0))
    if all_stay(x, tables.leave, own, others, u):
        return 0
    j = first_leaver(x, tables.leave, own, others, u)
    if j == len(x):
        return 0
    z[:] = own
    at = (np.intp(x[j]) + 1) * lanes
    row.e[:] = 0.0
    leave = 0.0
    for s in range(len(a)):
        if s != own:
            row.e[s] = row_weight(a[s], 0.0, tables.phi[at + s])
            leave += row.e[s]
    b = pick(row.e, len(a), own, uniform(key, 2 * len(x) + 1 + j) * leave)
    z[j] = b
    delta[x[j], own] -= 1
    delta[x[j], b] += 1
    row.n[own], row.n[b], row.used[0], row.used[1] = n - 1, 1, own, b
    k = np.int64(2)
    if n == 1:
        row.used[0], k = b, np.int64(1)
    draw_uniforms(key, j + 1, row.u, len(x))
    moved, _ = move_cells_from(j + 1, x, z, tables, lanes, k, row, delta)
    return moved + 1


@inner
def draw_uniforms(key, start, u, n):
    part = span(u, start, n - start)
    for j in range(len(part)):
        part[j] = uniform(key, start + j)


@inlined
def move_cell(x, z, j, tables, lanes, k, row, delta):
    """One cell: z_ij ∝ (a_s + n_is) φ_s(x_ij), labels in use and then the others. Returns (moved, labels in use).

    Small u opens a label or leaves the own one, so that float32 has its digits where probabilities are small.
    """
    n, used, phi = row.n, row.used, tables.phi
    v, own = np.intp(x[j]), np.intp(z[j])
    at = (v + 1) * lanes
    smooth = np.float64(tables.smooth[v + 1])
    others = 0.0
    for t in range(k):
        s = used[t]
        others += row_weight(0.0, n[s], phi[at + s]) if s != own else 0.0
    r = row.u[j] * (smooth + others + row_weight(0.0, n[own] - 1, phi[at + own]))
    b = own
    if r < smooth:
        b = fresh_label(r, own, phi, at, tables.a)
    elif r < smooth + others:
        r -= smooth
        for t in range(k):
            s = used[t]
            if s != own and n[s] > 0:
                b = s
                r -= row_weight(0.0, n[s], phi[at + s])
                if r < 0.0:
                    break
    if b == own:
        return 0, k
    if n[b] == 0:
        used[k] = b
        k += 1
    n[b] += 1
    n[own] -= 1
    if n[own] == 0:
        k = drop(used, k, own)
    z[j] = b
    delta[v, own] -= 1
    delta[v, b] += 1
    return 1, k


@inlined
def foresee(x, z, u, tables, lanes, k, row):
    """What `move_cell` would do with some cells, at most WIDTH, if the counts were those of now.

    Of every cell row.ahead gets INDEX, the label that it takes as a number in `used`, or k if it stays; and SLACK, how many
    other cells may move before that is uncertain. One that moves from label a to b changes every difference of u Σ w_s and a
    partial sum of the w_s by no more than the largest φ_s. A missing cell has φ = 0: its slack is 0 / 0, more than nothing.
    """
    n, used, phi, where, ahead = row.n, row.used, tables.phi, row.where, row.ahead
    smooth, own = span(ahead, SMOOTH, WIDTH), span(ahead, OWN, WIDTH)
    phi_own, n_own = span(ahead, PHI_OWN, WIDTH), span(ahead, N_OWN, WIDTH)
    for c in range(len(x)):
        v, s = np.intp(x[c]) + 1, np.intp(z[c])
        where[c], own[c], n_own[c] = v * lanes, s, take(n, s) - 1
        smooth[c], phi_own[c] = take(tables.smooth, v), take(phi, where[c] + s)
    for t in range(k):
        s, phi_s = take(used, t), span(ahead, LABELS + t * WIDTH, WIDTH)
        for c in range(len(x)):
            phi_s[c] = take(phi, where[c] + s)
    label, most, others = load(own, 0), zeros(), zeros()
    for t in range(k):
        s, phi_s = take(used, t), span(ahead, LABELS + t * WIDTH, WIDTH)
        most, n_s = larger(most, load(phi_s, 0)), every(np.float32(take(n, s)))
        part = where_same(label, every(np.float32(s)), zeros(), mul(n_s, load(phi_s, 0)))
        store(phi_s, 0, part)
        others = add(others, part)
    reached = load(smooth, 0)
    whole = add(add(reached, others), mul(load(n_own, 0), load(phi_own, 0)))
    r = mul(load(u, 0), whole)
    index, near = zeros(), sub(r, reached)  # near < 0: a fresh label
    for t in range(k):
        reached = add(reached, load(ahead, LABELS + t * WIDTH))
        d = sub(reached, r)
        index = add(index, where_less(zeros(), d, zeros(), every(np.float32(1.0))))
        near = smaller(near, larger(d, sub(zeros(), d)))
    store(ahead, INDEX, index)
    error = mul(every(np.float32(k + 8) * ROUNDING), whole)
    store(ahead, SLACK, div(sub(near, error), most))


@inlined
def move_some(start, x, z, tables, lanes, moved, k, row, delta):
    """Up to WIDTH cells from `start` on, until the labels in use change. Returns (next cell, moved, labels in use)."""
    n, used, before, size, listed = row.n, row.used, moved, min(len(x) - start, WIDTH), np.int64(0)
    some, labels = span(x, start, size), span(z, start, size)
    foresee(some, labels, span(row.u, start, WIDTH), tables, lanes, k, row)
    slack, index = span(row.ahead, SLACK, WIDTH), span(row.ahead, INDEX, WIDTH)
    for c in range(size):
        own = np.int64(labels[c])
        if slack[c] > moved - before:
            t = np.int64(index[c])
            b = take(used, min(t, k - 1))
            b += np.int64(t == k) * (own - b)
            n[own] -= 1
            n[b] += 1
            labels[c] = b
            row.cut[listed] = c  # kept if the cell moves
            listed += b != own
            moved += b != own
            if n[own] == 0:
                count_listed(some, labels, row, listed, delta)
                return start + c + 1, moved, drop(used, k, own)
        elif some[c] >= 0:
            more, now = move_cell(x, z, start + c, tables, lanes, k, row, delta)
            moved += more
            if now != k or n[own] == 0:
                count_listed(some, labels, row, listed, delta)
                return start + c + 1, moved, now
    count_listed(some, labels, row, listed, delta)
    return start + size, moved, k


@inlined
def count_listed(x, z, row, listed, delta):
    """The cells at row.cut[:listed] have left the labels that `foresee` found."""
    own = span(row.ahead, OWN, WIDTH)
    for k in range(listed):
        c = row.cut[k]
        delta[x[c], np.int64(own[c])] -= 1
        delta[x[c], z[c]] += 1


@inner
def move_cells_two(x, z, j0, tables, lanes, moved, row, delta):
    """The cells from j0 on of a row with two labels, 0 and 1, until one takes another label.

    With m other cells, m0 of them of label 0, a cell takes label 0 if u (σ + m0 φ0 + (m − m0) φ1) < σ + m0 φ0, σ the smoothing
    part. Solved for m0: if m0 > (u (σ + m φ1) − σ) / ((1 − u) φ0 + u φ1), a number that depends on no other cell. So these are
    made first, in a vectorised loop; what remains in sequence is to compare and to count. Returns (next cell, moved, labels).
    """
    n, used, where, phi, P = row.n, row.used, row.where, tables.phi, len(x) - j0
    x, z, u = span(x, j0, P), span(z, j0, P), span(row.u, j0, P)
    s0, s1 = used[0], used[1]
    n0, m = n[s0], n[s0] + n[s1] - 1
    bound_two(x, z, u, tables, lanes, s0, s1, m, row)
    cut, rare, swapped = row.cut, row.rare, np.int64(0)
    for j in range(P):
        own0 = np.int64(z[j] == s0)
        new0 = np.int64(n0 > cut[j])
        if rare[j]:
            v = np.intp(x[j]) + 1
            if v == 0:
                continue
            at, m0 = v * lanes, n0 - own0
            r = u[j] * (tables.smooth[v] + row_weight(0.0, m0, phi[at + s0]) + row_weight(0.0, m - m0, phi[at + s1]))
            if r < tables.smooth[v]:
                b = fresh_label(r, s0 if own0 else s1, phi, at, tables.a)
                if b != s0 and b != s1:
                    delta[v - 1, z[j]] -= 1
                    delta[v - 1, b] += 1
                    z[j] = b
                    swap_two(x, z, s0, s1, where, swapped, delta)
                    n[s0], n[s1], n[b] = m0, m - m0, 1
                    used[2] = b
                    return j0 + j + 1, moved + swapped + 1, drop_empty(used, np.int64(3), n)
                new0 = np.int64(b == s0)
        n0 += new0 - own0
        where[swapped] = j  # kept if the cell moves: no branch that would be foreseen wrongly
        swapped += own0 ^ new0
    swap_two(x, z, s0, s1, where, swapped, delta)
    n[s0], n[s1] = n0, m + 1 - n0
    return j0 + P, moved + swapped, drop_empty(used, np.int64(2), n)


@inlined
def bound_two(x, z, u, tables, lanes, s0, s1, m, row):
    """row.cut: a cell takes label 0 if more cells have it, itself included. row.rare: a gap, or perhaps a fresh label."""
    cut, rare, cells, phi, P = row.cut, row.rare, row.cells, tables.phi, len(x)
    others, one = np.float32(m), np.float32(1.0)
    for j in range(P):
        v = np.intp(x[j]) + 1
        cells[0, j], cells[1, j], cells[2, j] = take(phi, v * lanes + s0), take(phi, v * lanes + s1), take(tables.smooth, v)
    for j in range(P):
        phi0, phi1, sigma = cells[0, j], cells[1, j], cells[2, j]
        bound = (u[j] * (sigma + others * phi1) - sigma) / ((one - u[j]) * phi0 + u[j] * phi1)
        cut[j] = np.int32(np.floor(min(max(bound, -one), others))) + np.int32(z[j] == s0)  # m0 is whole: so may the bound be
        rare[j] = (x[j] < 0) | (u[j] * (sigma + others * min(phi0, phi1)) < sigma)  # a gap, or perhaps r < σ


@inlined
def swap_two(x, z, s0, s1, where, swapped, delta):
    """The cells at where[:swapped], which have one of two labels, take the other. Their counts are asked for first."""
    S = delta.shape[1]
    for k in range(swapped):
        at = np.intp(x[where[k]]) * S
        prefetch(delta, at + s0)
        prefetch(delta, at + s1)
    for k in range(swapped):
        j = where[k]
        v, a = x[j], np.int64(z[j])
        b = s0 + s1 - a
        z[j] = b
        delta[v, a] -= 1
        delta[v, b] += 1


@inner
def move_cells_from(j, x, z, tables, lanes, k, row, delta):
    """The cells of a row from j on. Returns (cells moved, labels in use)."""
    moved, P = np.int64(0), len(x)
    while j < P:
        if k == 2:
            j, moved, k = move_cells_two(x, z, j, tables, lanes, moved, row, delta)
        else:
            j, moved, k = move_some(j, x, z, tables, lanes, moved, k, row, delta)
    return moved, k


@inlined
def ask_for_phi(x, phi, lanes, used, k):
    """Prefetch φ of the labels in use, which the cells of a row need when its labels have been found and renamed."""
    for j in range(len(x)):
        at = (np.intp(x[j]) + 1) * lanes
        for t in range(k):
            prefetch(phi, at + used[t])


@inner
def move_cells(x, z, tables, lanes, key, k, row, delta):
    """z_ij ∝ (a_s + n_is) φ_s(x_ij) for the cells of a row in turn, with a = α β. Returns (cells moved, labels in use).

    The sum over s is split: σ = Σ_s a_s φ_s, known once per sweep, and n_is φ_s over the labels in use, few when α is small.
    """
    draw_uniforms(key, np.int64(0), row.u, len(x))
    return move_cells_from(np.int64(0), x, z, tables, lanes, k, row, delta)
