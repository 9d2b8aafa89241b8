"""The samplers on the CPU: the equations compiled, the updates of p, ω, φ and z, and the two sweeps built from them.

A block of rows, or of features, is the unit of work. Kernels release the GIL and write only to their own rows, their own
features or their own scratch; integer statistics are added up. So the split into blocks cannot change a result.

Tables have a row 0 for missing cells: value v is at v + 1. A missing cell adds nothing to a sum and never moves.
"""

import itertools
from math import exp, log
from typing import NamedTuple

import numpy as np
from numba import njit

from .. import model
from ..state import chunks, count_observed
from .intrinsics import WIDTH, add, add_to, borrow, load, zeros
from .rng import categorical, derive, log_gamma, uniform

ROWS, TILE = 32, 32  # rows whose sums are made together; features whose tables stay in the first-level cache meanwhile
CACHED_RISES = 1 << 22  # entries of log Γ kept in tables
GUMBEL_MAX = 36.8  # −log(−log u) for the largest u below 1 that `uniform` returns
SMALLEST = 1e-37  # of φ: still a normal float32
PHI, ROW, PROTOTYPE, SUBSPACE = range(4)  # purposes: one stream of random numbers each

compiled = njit(nogil=True, cache=True, error_model="numpy")  # no test for division by zero: it keeps loops from vectorising

# --- compiled equations -------------------------------------------------------------------------------------------

g = compiled(model.g)
z_weight = compiled(model.z_weight)
row_weight = compiled(model.row_weight)
log_rise = compiled(model.log_rise)
omega_logit = compiled(model.omega_logit)
log_copy = compiled(model.log_copy)


class Rises(NamedTuple):
    """log Γ(const + n) / Γ(const) by lookup: counts are integers, and few different constants occur in g."""

    const: np.ndarray  # (C,)
    table: np.ndarray  # (C, n)
    one: int  # which constant is λ
    k: np.ndarray  # (nnz K,) λ (1 + c K)
    sum0: np.ndarray  # (P,) Σ_v g with ω = 0
    sum1: np.ndarray  # (ΣV,) Σ_v g with ω = 1 and prototype value u
    rows: np.ndarray  # (S, P + 1) log Γ(α β_s + n) / Γ(α β_s)
    rows_const: float  # Σ_i log Γ(α + n_i) / Γ(α)


class Tables(NamedTuple):
    """What the row kernels read: φ for cell moves, log φ for relabel moves, evidence for prototypes."""

    phi: np.ndarray  # (S, ΣV + 1) float32
    log_phi: np.ndarray  # ((ΣV + 1) · lanes,) float32, less its maximum over s
    smooth: np.ndarray  # (ΣV + 1,) float32, Σ_s α β_s φ_s(v)
    leave: np.ndarray  # (S, ΣV + 1) float32, probability that a cell leaves label s if the P − 1 others have it
    evidence: np.ndarray  # (ΣV, S) E[s, u]
    copies: np.ndarray  # ((ΣV + 1) · lanes,) float32, what a candidate's value adds to its log weight, less its maximum
    copies_max: np.ndarray  # (P, S)
    part: np.ndarray  # (P,) log joint of feature j with ω = 0


class Scratch(NamedTuple):
    """Per block, so that threads share no cache line."""

    sums: np.ndarray  # (ROWS · lanes,) float64
    groups: np.ndarray  # (S · lanes,) float64
    weight: np.ndarray  # (max(S, V),) float64
    log_phi: np.ndarray  # (V, S) float64
    phi: np.ndarray  # (V, S) float64
    u: np.ndarray  # (P,) float32
    cut: np.ndarray  # (P,) int32
    rare: np.ndarray  # (P,) bool
    rows: np.ndarray  # (P + 1,) rows of a table
    n: np.ndarray  # (S,) n_is of the row at hand
    used: np.ndarray  # (S,) labels in use, in order of first appearance
    to: np.ndarray  # (S,) old label to position in `used`, or to new label
    old: np.ndarray  # (P + 1,) labels before an update
    delta: np.ndarray  # (ΣV, S) change of n_sv
    n_rows: np.ndarray  # (S, P + 1)
    info: np.ndarray  # (3,) cells moved, rows relabelled, Σ_i purity in units of 2⁻³²
    best: np.ndarray  # (S,)
    arg: np.ndarray  # (S,)


def lanes_for(S):
    return -(-S // WIDTH) * WIDTH


def make_tables(data, S):
    V, P = int(data.offset[-1]), len(data.offset) - 1
    flat = (V + 1) * lanes_for(S)
    return Tables(
        phi=np.ones((S, V + 1), dtype=np.float32),
        log_phi=np.zeros(flat, dtype=np.float32),
        smooth=np.zeros(V + 1, dtype=np.float32),
        leave=np.zeros((S, V + 1), dtype=np.float32),
        evidence=np.zeros((V, S)),
        copies=np.zeros(flat, dtype=np.float32),
        copies_max=np.zeros((P, S)),
        part=np.zeros(P),
    )


def alone(shape, dtype=np.float64):
    """Zeros on cache lines of their own, so that threads do not wait for each other's scratch."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 256, dtype=np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + size].view(dtype).reshape(shape)


def make_scratch(data, S, z_type):
    V, P = int(data.offset[-1]), len(data.offset) - 1
    widest = int(np.diff(data.offset).max())
    return Scratch(
        sums=alone(ROWS * lanes_for(S)),
        groups=alone(S * lanes_for(S)),
        weight=alone(max(S, widest)),
        log_phi=alone((widest, S)),
        phi=alone((widest, S)),
        u=alone(P, dtype=np.float32),
        cut=alone(P, dtype=np.int32),
        rare=alone(P, dtype=np.bool_),
        rows=alone(P + 1, dtype=np.int64),
        n=alone(S),
        used=alone(S, dtype=np.int64),
        to=alone(S, dtype=np.int64),
        old=alone(P + 1, dtype=z_type),
        delta=alone((V, S), dtype=np.int32),
        n_rows=alone((S, P + 1), dtype=np.int64),
        info=alone(3, dtype=np.int64),
        best=alone(S),
        arg=alone(S, dtype=np.int64),
    )


def make_rises(data, hyper):
    lam, c = hyper.lam, hyper.c
    n_values = np.diff(data.offset)
    k, sum0 = model.g(lam, c, 1.0, data.k_val), lam * n_values
    sum1 = np.repeat(sum0, n_values) + np.bincount(
        np.repeat(np.arange(data.offset[-1]), np.diff(data.k_ptr)), weights=k - lam, minlength=data.offset[-1]
    )
    const, ids = np.unique(np.concatenate([[lam], k, sum0, sum1]), return_inverse=True)
    ids = np.split(ids, np.cumsum([1, len(k), len(sum0)]))
    width = min(len(data.x) + 1, CACHED_RISES // len(const))
    rows, rows_const = row_rises(hyper, count_observed(data.x), data.x.shape[1])
    return Rises(const, rise_table(const, width), int(ids[0][0]), *ids[1:], rows, rows_const)


def row_rises(hyper, n_i, P):
    """The prior of a row, by label and count. At α = 0 a row has one label s, with probability β_s."""
    if hyper.alpha == 0.0:
        rows = np.repeat(np.log(hyper.beta)[:, None], P + 1, axis=1)
        rows[:, 0] = 0.0
        return rows, 0.0
    total = rise_table(np.array([hyper.alpha]), P + 1)[0]
    return rise_table(hyper.alpha * hyper.beta, P + 1), float(total[n_i].sum())


@compiled
def rise_table(const, width):
    table = np.empty((len(const), width))
    for k in range(len(const)):
        for n in range(width):
            table[k, n] = log_rise(const[k], n)
    return table


@compiled
def rise(rises, k, n):
    if n < rises.table.shape[1]:
        return rises.table[k, n]
    return log_rise(rises.const[k], n)


# --- p and ω: evidence, then prototypes, then subspaces ------------------------------------------------------------


@compiled
def update_evidence(data, rises, n_sv, n_sj, q, omega, blocked, tables, scratch, lo, hi):
    """E[s, u] and what a candidate's value adds to its log weight, for the features lo .. hi - 1.

    E[s, u] = Σ_v [ rise(g¹_u(v), n_v) − rise(g⁰, n_v) ] − [ rise(Σ g¹_u, n_j) − rise(Σ g⁰, n_j) ]; terms without a copy cancel.
    With ω summed out (blocked) a value adds log(q e^E + 1 − q); with ω known it adds ω E.
    """
    S = n_sv.shape[1]
    lanes = len(tables.copies) // (n_sv.shape[0] + 1)
    adds = scratch.weight
    for j in range(lo, hi):
        v0, v1 = data.offset[j], data.offset[j + 1]
        part = 0.0
        for s in range(S):
            none = rise(rises, rises.sum0[j], n_sj[j, s])
            part -= none
            top = -np.inf
            for u in range(v0, v1):
                part += rise(rises, rises.one, n_sv[u, s])
                e = none - rise(rises, rises.sum1[u], n_sj[j, s])
                for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
                    n = n_sv[data.k_idx[k], s]
                    e += rise(rises, rises.k[k], n) - rise(rises, rises.one, n)
                tables.evidence[u, s] = e
                adds[u - v0] = log_copy(q[s, j], e) if blocked else omega[s, j] * e
                top = max(top, adds[u - v0])
            for u in range(v0, v1):
                tables.copies[(u + 1) * lanes + s] = adds[u - v0] - top
            tables.copies_max[j, s] = top
        tables.part[j] = part


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
def update_omega(data, q, evidence, p, key, omega, chance):
    """ω_sj given p, φ integrated out; chance[s, j] = p(ω_sj = 1 | rest). Returns Σ ω E + log p(ω) − Σ log(1 − q)."""
    S, P = omega.shape
    total = 0.0
    for s in range(S):
        row_key = derive(key, s)
        for j in range(P):
            u = data.candidates[p[s], j]
            e = evidence[u, s] if u >= 0 else 0.0
            logit = omega_logit(q[s, j], e)
            chance[s, j] = 1.0 / (1.0 + exp(-logit))
            omega[s, j] = uniform(row_key, j) < chance[s, j]
            total += omega[s, j] * logit
    return total


# --- φ ----------------------------------------------------------------------------------------------------------------


@compiled
def update_phi(data, hyper, p, omega, n_sv, heat, key, tables, scratch, lo, hi):
    """φ_sj ~ Dirichlet(g_sj + n_sj·) for the features lo .. hi - 1, raised to the power `heat` while burning in."""
    S = n_sv.shape[1]
    lanes = len(tables.log_phi) // (n_sv.shape[0] + 1)
    shape, log_phi, phi = scratch.weight, scratch.log_phi, scratch.phi
    for j in range(lo, hi):
        v0, v1 = data.offset[j], data.offset[j + 1]
        for s in range(S):
            for v in range(v0, v1):
                shape[v - v0] = g(hyper.lam, hyper.c, 0.0, 0.0) + n_sv[v, s]
            u = data.candidates[p[s], j]
            if u >= 0:
                for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
                    v = data.k_idx[k]
                    shape[v - v0] = g(hyper.lam, hyper.c, omega[s, j], data.k_val[k]) + n_sv[v, s]
            cell_key = derive(key, j * S + s)
            top = -np.inf
            for v in range(v1 - v0):
                log_phi[v, s] = log_gamma(shape[v], derive(cell_key, v))
                top = max(top, log_phi[v, s])
            total = 0.0
            for v in range(v1 - v0):
                phi[v, s] = exp(log_phi[v, s] - top)
                total += phi[v, s]
            log_total = top + log(total)
            for v in range(v1 - v0):
                log_phi[v, s] = heat * (log_phi[v, s] - log_total)
                phi[v, s] = phi[v, s] / total if heat == 1.0 else exp(log_phi[v, s])
        for v in range(v1 - v0):
            fill_row(tables, hyper, log_phi, phi, v, v0 + v + 1, lanes)


@compiled
def leave_mass(a, phi, smooth):
    """Weight of all labels but the row's only one: Σ_t a_t φ_t without its own a φ."""
    return max(smooth - row_weight(a, 0.0, phi), 0.0)


@compiled
def fill_row(tables, hyper, log_phi, phi, v, row, lanes):
    """Write log_phi[v, :] and phi[v, :] to row `row` of the four tables."""
    S = log_phi.shape[1]
    top, smooth = -np.inf, 0.0
    for s in range(S):
        if log_phi[v, s] > top:
            top = log_phi[v, s]
    for s in range(S):
        tables.log_phi[row * lanes + s] = log_phi[v, s] - top
        tables.phi[s, row] = max(phi[v, s], SMALLEST)
        smooth += row_weight(hyper.alpha * hyper.beta[s], 0.0, tables.phi[s, row])
    tables.smooth[row] = smooth
    n = len(tables.part) - 1.0  # all other cells of a row without gaps
    for s in range(S):
        phi_s = tables.phi[s, row]
        tables.leave[s, row] = leave_mass(hyper.alpha * hyper.beta[s], phi_s, smooth) / (row_weight(0.0, n, phi_s) + smooth)


# --- z, row by row, given φ ------------------------------------------------------------------------------------------


@compiled
def row_labels(x, z, i, P, gaps, n, used):
    """n_is of the first P cells of row i, and the labels in use by first appearance. n must be 0 before. Returns how many.

    Row functions take arrays and an index: a view would touch a reference count that all threads share. Most rows have one
    or two labels and most tables no gaps, so these are looked for first, in loops that the compiler can vectorise.
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


@compiled
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


@compiled
def relabel_row(x, z, i, P, rows_rise, key, sums, at, lanes, n, used, k, w, to):
    """Each group of cells that share a label draws a new one among its own and those the row does not use, ∝ Π φ.

    sums[at + t · lanes + s] = Σ log φ_s over the cells of group t. Groups go by first appearance: an order that the move
    itself cannot change, as an exact scan needs. Returns the number of groups moved.
    """
    S = len(n)
    moved = 0
    for t in range(k):
        a = used[t]
        size = n[a]
        n[a] = 0
        top, second, b = -np.inf, -np.inf, a
        for s in range(S):
            if n[s] == 0:
                w[s] = sums[at + t * lanes + s] + rows_rise[s, int(size)]
                if w[s] > top:
                    top, second, b = w[s], top, s
                elif w[s] > second:
                    second = w[s]
        if second - top > -60.0:  # else no uniform number is small enough to choose another than b
            for s in range(S):
                w[s] = exp(w[s] - top) if n[s] == 0 and w[s] - top > -60.0 else 0.0
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


@compiled
def first_leaver(x, i, j0, P, phi, s, smooth, n, a, u):
    """First cell from j0 on that leaves s, the only label of the row, or P. n is the count of s without the cell."""
    for j in range(j0, P):
        if x[i, j] >= 0:
            v = np.intp(x[i, j]) + 1
            if u[j] * (row_weight(0.0, n, phi[s, v]) + smooth[v]) < leave_mass(a, phi[s, v], smooth[v]):
                return j
    return P


@compiled
def first_leaver_complete(x, i, P, leave, s, u):
    """The same from cell 0 of a row without gaps, whose n is always P − 1: the probability of leaving is in a table."""
    count = 0
    for j in range(P):
        count += u[j] < leave[s, np.intp(x[i, j]) + 1]
    if count:
        for j in range(P):
            if u[j] < leave[s, np.intp(x[i, j]) + 1]:
                return j
    return P


@compiled
def fresh_label(r, own, phi, v, a):
    """The label that owns r < Σ_s a_s φ_s, the cell's own label last."""
    for s in range(len(a)):
        if s != own:
            r -= row_weight(a[s], 0.0, phi[s, v])
            if r < 0.0:
                return s
    return own


@compiled
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


@compiled
def move_cells_two(x, z, i, j0, P, phi, smooth, a, u, cut, rare, n, used, moved, where, old):
    """The cells from j0 on of a row with two labels, 0 and 1, until one takes another label.

    With m other cells, m0 of them of label 0, a cell takes label 0 if u (σ + m0 φ0 + (m − m0) φ1) < σ + m0 φ0, σ the smoothing
    part. Solved for m0: if m0 > (u (σ + m φ1) − σ) / ((1 − u) φ0 + u φ1), a number that depends on no other cell. So these are
    made first, in a vectorised loop; what remains in sequence is to compare and to count. Returns (next cell, moved, labels).
    """
    s0, s1 = used[0], used[1]
    n0, m = int(n[s0]), int(n[s0] + n[s1]) - 1
    others, one = np.float32(m), np.float32(1.0)
    for j in range(j0, P):
        v = np.intp(x[i, j]) + 1
        phi0, phi1, sigma = phi[s0, v], phi[s1, v], smooth[v]
        bound = (u[j] * (sigma + others * phi1) - sigma) / ((one - u[j]) * phi0 + u[j] * phi1)
        cut[j] = np.int32(np.floor(min(max(bound, -one), others)))  # m0 is whole: so may the bound be
        rare[j] = u[j] * (sigma + others * min(phi0, phi1)) < sigma  # perhaps r < σ, a fresh label
    j = j0
    while j < P:
        if x[i, j] >= 0:
            own0 = np.int64(z[i, j] == s0)
            where[moved], old[moved] = j, z[i, j]
            m0 = n0 - own0
            if rare[j]:
                v = np.intp(x[i, j]) + 1
                r = u[j] * (smooth[v] + row_weight(0.0, m0, phi[s0, v]) + row_weight(0.0, m - m0, phi[s1, v]))
                if r < smooth[v]:
                    b = fresh_label(r, s0 if own0 else s1, phi, v, a)
                    if b != s0 and b != s1:
                        z[i, j] = b
                        n[s0], n[s1], n[b] = m0, m - m0, 1.0
                        used[2] = b
                        k = 3
                        if n[s0] == 0:
                            k = drop(used, k, s0)
                        if n[s1] == 0:
                            k = drop(used, k, s1)
                        return j + 1, moved + 1, k
                    new0 = np.int64(b == s0)
                else:
                    new0 = np.int64(m0 > cut[j])
            else:
                new0 = np.int64(m0 > cut[j])
            n0 = m0 + new0
            moved += own0 != new0
            z[i, j] = s0 if new0 else s1
        j += 1
    n[s0], n[s1] = n0, m + 1 - n0
    k = 2
    if n[s0] == 0:
        k = drop(used, k, s0)
    if n[s1] == 0:
        k = drop(used, k, s1)
    return P, moved, k


@compiled
def move_cells(x, z, i, P, phi, smooth, leave, a, key, u, cut, rare, n, used, k, where, old):
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
        start = first_leaver_complete(x, i, P, leave, used[0], u)
    if start == P:
        return 0, k
    return move_cells_from(start, x, z, i, P, phi, smooth, a, u, cut, rare, n, used, k, where, old)


@compiled
def move_cells_from(j, x, z, i, P, phi, smooth, a, u, cut, rare, n, used, k, where, old):
    """The cells of a row from j on."""
    moved = 0
    while j < P:
        if k == 1:
            j = first_leaver(x, i, j, P, phi, used[0], smooth, n[used[0]] - 1.0, a[used[0]], u)
            if j == P:
                break
        if k == 2:
            j, moved, k = move_cells_two(x, z, i, j, P, phi, smooth, a, u, cut, rare, n, used, moved, where, old)
        else:
            if x[i, j] >= 0:
                where[moved], old[moved] = j, z[i, j]
                more, k = move_cell(x, z, i, j, phi, smooth, a, u, n, used, k)
                moved += more
            j += 1
    return moved, k


@compiled
def drop(used, k, a):
    """Remove label a from the k labels in use."""
    for t in range(k):
        if used[t] == a:
            used[t] = used[k - 1]
            return k - 1
    return k


@compiled
def note_row(n, used, k, n_rows, info):
    """Add the row's counts to the statistics and set n back to 0."""
    observed, most = 0, 0
    for t in range(k):
        s = used[t]
        n_rows[s, int(n[s])] += 1
        observed += int(n[s])
        most = max(most, int(n[s]))
        n[s] = 0
    info[2] += (most << 32) // observed


@compiled
def update_z(x, z, gaps, tables, a, rows_rise, cells, key, scratch, lo, hi):
    """Relabel and cell moves of the rows lo .. hi - 1 given φ. Leaves the change of counts in the scratch."""
    S, P = len(a), x.shape[1]
    lanes = len(scratch.sums) // ROWS
    x, z, a, rows_rise = borrow(x), borrow(z), borrow(a), borrow(rows_rise)
    phi, log_phi, smooth, leave = borrow(tables.phi), borrow(tables.log_phi), borrow(tables.smooth), borrow(tables.leave)
    sums, groups, w, u, n = (
        borrow(scratch.sums),
        borrow(scratch.groups),
        borrow(scratch.weight),
        borrow(scratch.u),
        borrow(scratch.n),
    )
    used, to, old, rows = borrow(scratch.used), borrow(scratch.to), borrow(scratch.old), borrow(scratch.rows)
    cut, rare = borrow(scratch.cut), borrow(scratch.rare)
    delta, n_rows, info = borrow(scratch.delta), borrow(scratch.n_rows), borrow(scratch.info)
    delta[:] = 0
    n_rows[:] = 0
    info[:] = 0
    n[:] = 0
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        row_sums(log_phi, lanes, x, P, i0, i1, sums)
        for i in range(i0, i1):
            k = row_labels(x, z, i, P, gaps, n, used)
            if k == 0:
                continue
            row_key = derive(key, i)
            grouped, moved = 0, 0
            if k < S:
                for j in range(P):
                    old[j] = z[i, j]
            if k == 1:
                grouped = relabel_row(x, z, i, P, rows_rise, row_key, sums, (i - i0) * lanes, lanes, n, used, k, w, to)
            elif k < S:
                group_sums(x, z, i, P, log_phi, lanes, used, k, n, sums, (i - i0) * lanes, groups, rows)
                grouped = relabel_row(x, z, i, P, rows_rise, row_key, groups, 0, lanes, n, used, k, w, to)
            if grouped:
                for j in range(P):
                    if x[i, j] >= 0:
                        delta[x[i, j], old[j]] -= 1
                        delta[x[i, j], z[i, j]] += 1
            if cells:
                moved, k = move_cells(x, z, i, P, phi, smooth, leave, a, row_key, u, cut, rare, n, used, k, rows, old)
                for m in range(moved):
                    delta[x[i, rows[m]], old[m]] -= 1
                    delta[x[i, rows[m]], z[i, rows[m]]] += 1
            info[0] += moved
            info[1] += grouped > 0
            note_row(n, used, k, n_rows, info)


@compiled
def recount(x, z, n_sv, n_rows):
    """The counts of z, from nothing."""
    n_sv[:] = 0
    n_rows[:] = 0
    n = np.zeros(n_sv.shape[1])
    for i in range(x.shape[0]):
        n[:] = 0
        for j in range(x.shape[1]):
            if x[i, j] >= 0:
                n_sv[x[i, j], z[i, j]] += 1
                n[z[i, j]] += 1
        for s in range(len(n)):
            if n[s] > 0:
                n_rows[s, int(n[s])] += 1


@compiled
def overlap(x, z, gaps, mean):
    """(S, S) Σ_i mean[i, r] n_is / n_i: how much label s of this draw lies on reference label r."""
    S, P = mean.shape[1], x.shape[1]
    total, n, used = np.zeros((S, S)), np.zeros(S), np.zeros(S, dtype=np.int64)
    for i in range(x.shape[0]):
        k = row_labels(x, z, i, P, gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for t in range(k):
            s = used[t]
            for r in range(S):
                total[r, s] += mean[i, r] * n[s] / observed
            n[s] = 0
    return total


@compiled
def add_memberships(x, z, gaps, alpha, beta, to, mean, weight):
    """mean[i] += weight (E[π_i | z] − mean[i]), with E[π_is | z] = (α β_s + n_is) / (α + n_i); label s counts as to[s]."""
    S, P = mean.shape[1], x.shape[1]
    n, used = np.zeros(S), np.zeros(S, dtype=np.int64)
    for i in range(x.shape[0]):
        k = row_labels(x, z, i, P, gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for s in range(S):
            pi = (alpha * beta[s] + n[s]) / (alpha + observed) if k else beta[s]
            mean[i, to[s]] += weight * (pi - mean[i, to[s]])
        for t in range(k):
            n[used[t]] = 0


@compiled
def add_values(data, hyper, p, omega, n_sv, to, mean, weight):
    """mean[v] += weight (E[φ(v) | z, p, ω] − mean[v]), with E[φ_sj(v)] = (g_sj(v) + n_sv) / (Σ_v g_sj(v) + n_sj)."""
    S, P = omega.shape
    value = np.empty(n_sv.shape)
    for s in range(S):
        for j in range(P):
            v0, v1 = data.offset[j], data.offset[j + 1]
            value[v0:v1, s] = g(hyper.lam, hyper.c, 0.0, 0.0)
            u = data.candidates[p[s], j]
            if u >= 0:
                for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
                    value[data.k_idx[k], s] = g(hyper.lam, hyper.c, omega[s, j], data.k_val[k])
            total = 0.0
            for v in range(v0, v1):
                value[v, s] += n_sv[v, s]
                total += value[v, s]
            for v in range(v0, v1):
                value[v, s] /= total
                mean[v, to[s]] += weight * (value[v, s] - mean[v, to[s]])
    return value


# --- z, cell by cell, φ integrated out: the paper's sampler ------------------------------------------------------------


@compiled
def update_z_collapsed(data, z, n_sv, n_sj, p, omega, hyper, heat, key, scratch):
    """One pass over all cells: remove, weigh, draw, add."""
    S, P = omega.shape
    x = data.x
    g_sv = np.full(n_sv.shape, g(hyper.lam, hyper.c, 0.0, 0.0))
    for s in range(S):
        for j in range(P):
            u = data.candidates[p[s], j]
            if u >= 0:
                for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
                    g_sv[data.k_idx[k], s] = g(hyper.lam, hyper.c, omega[s, j], data.k_val[k])
    g_sum = np.zeros((P, S))
    for j in range(P):
        for v in range(data.offset[j], data.offset[j + 1]):
            g_sum[j] += g_sv[v]
    w, n = scratch.weight, scratch.n
    scratch.n_rows[:] = 0
    scratch.info[:] = 0
    n[:] = 0
    for i in range(x.shape[0]):
        if row_labels(x, z, i, P, True, n, scratch.used) == 0:
            continue
        row_key = derive(key, i)
        for j in range(P):
            v = x[i, j]
            if v < 0:
                continue
            a = z[i, j]
            n[a] -= 1
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                prior = hyper.alpha * hyper.beta[s]
                w[s] = z_weight(prior, n[s], g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])
                if heat != 1.0:
                    w[s] = (prior + n[s]) * (w[s] / (prior + n[s])) ** heat
            b = categorical(w, S, uniform(row_key, j))
            z[i, j] = b
            n[b] += 1
            n_sv[v, b] += 1
            n_sj[j, b] += 1
            scratch.info[0] += b != a
        k = 0
        for s in range(S):
            if n[s] > 0:
                scratch.used[k] = s
                k += 1
        note_row(n, scratch.used, k, scratch.n_rows, scratch.info)


# --- sweeps -----------------------------------------------------------------------------------------------------------


class Work:
    """Everything a chain needs beside its state: tables, one scratch per block, and the threads to run blocks on."""

    def __init__(self, data, hyper, z_type, pool=None, n_blocks=1):
        N, P = data.x.shape
        S = len(hyper.beta)
        self.pool = pool
        self.rises = make_rises(data, hyper)
        self.tables = make_tables(data, S)
        self.scratch = [make_scratch(data, S, z_type) for _ in range(n_blocks)]
        self.rows, self.features = split(N, n_blocks), split(P, n_blocks)
        self.candidates = split(len(data.candidates), n_blocks)
        self.gaps = has_gaps(data.x)
        self.catalogue_gaps = self.gaps if data.candidates is data.x else has_gaps(data.candidates)
        self.omega_const = float(np.log1p(-hyper.q).sum())
        self.chance = np.zeros((S, P))  # p(ω_sj = 1 | rest) at the last draw

    def each(self, blocks, kernel):
        """kernel(scratch, lo, hi) for every block, on the pool if there is one."""
        if self.pool is None or len(blocks) == 1:
            for scratch, (lo, hi) in zip(self.scratch, blocks, strict=False):
                kernel(scratch, lo, hi)
        else:
            jobs = [self.pool.submit(kernel, scratch, lo, hi) for scratch, (lo, hi) in zip(self.scratch, blocks, strict=False)]
            for job in jobs:
                job.result()


def has_gaps(x):
    return any((x[rows] < 0).any() for rows in chunks(*x.shape))


def split(n, n_blocks):
    """At most n_blocks ranges that cover 0 .. n - 1."""
    edges = np.linspace(0, n, min(n_blocks, max(n, 1)) + 1).astype(int)
    return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(edges)]


def update_p_omega(data, hyper, state, work, key, blocked):
    """p then ω. blocked: p with ω summed out; else p given ω, as the paper has it. Returns the log joint."""
    starts = data.offset[:-1]
    n_sj = np.add.reduceat(state.n_sv, starts)
    work.each(
        work.features,
        lambda scratch, lo, hi: update_evidence(
            data, work.rises, state.n_sv, n_sj, hyper.q, state.omega, blocked, work.tables, scratch, lo, hi
        ),
    )
    p_key = np.uint64(derive(key, np.uint64(PROTOTYPE)))
    work.each(work.candidates, lambda scratch, lo, hi: score_p(data, work.catalogue_gaps, work.tables, p_key, scratch, lo, hi))
    used = work.scratch[: len(work.candidates)]
    winner = np.argmax([scratch.best for scratch in used], axis=0)
    state.p[:] = [used[b].arg[s] for s, b in enumerate(winner)]
    omega_key = np.uint64(derive(key, np.uint64(SUBSPACE)))
    evidence = update_omega(data, hyper.q, work.tables.evidence, state.p, omega_key, state.omega, work.chance)
    columns = np.arange(len(state.p)) % data.log_weight.shape[1]
    rows = (state.n_rows * work.rises.rows).sum() - work.rises.rows_const
    return float(rows + work.tables.part.sum() + evidence + work.omega_const + data.log_weight[state.p, columns].sum())


def sweep_rows(data, hyper, state, work, key, heat=1.0, cells=True):
    """φ | p, ω, z; then the rows of z | φ; then p, ω | z in one block. Returns (log joint, info)."""
    phi_key, row_key = (np.uint64(derive(key, np.uint64(purpose))) for purpose in (PHI, ROW))
    work.each(
        work.features,
        lambda scratch, lo, hi: update_phi(
            data, hyper, state.p, state.omega, state.n_sv, heat, phi_key, work.tables, scratch, lo, hi
        ),
    )
    a = hyper.alpha * hyper.beta
    cells = cells and hyper.alpha > 0.0  # at α = 0 a case has one label, and moves as a whole
    work.each(
        work.rows,
        lambda scratch, lo, hi: update_z(
            data.x, state.z, work.gaps, work.tables, a, work.rises.rows, cells, row_key, scratch, lo, hi
        ),
    )
    info = np.zeros(3, dtype=np.int64)
    state.n_rows[:] = 0
    for scratch, _ in zip(work.scratch, work.rows, strict=False):
        np.add(state.n_sv, scratch.delta, out=state.n_sv)
        np.add(state.n_rows, scratch.n_rows, out=state.n_rows)
        info += scratch.info
    return update_p_omega(data, hyper, state, work, key, blocked=True), info


def sweep_collapsed(data, hyper, state, work, key, heat=1.0, cells=True):
    """The paper's sampler: z cell by cell with φ integrated out, then p | ω and ω | p. Returns (log joint, info)."""
    scratch = work.scratch[0]
    n_sj = np.add.reduceat(state.n_sv, data.offset[:-1])
    row_key = np.uint64(derive(key, np.uint64(ROW)))
    update_z_collapsed(data, state.z, state.n_sv, n_sj, state.p, state.omega, hyper, heat, row_key, scratch)
    state.n_rows[:] = scratch.n_rows
    return update_p_omega(data, hyper, state, work, key, blocked=False), scratch.info.copy()


sweeps = {"rows": sweep_rows, "collapsed": sweep_collapsed}
