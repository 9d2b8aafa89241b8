"""Feature by feature: the tables made from counts, for rows (φ) and for candidates (evidence); and ω.

Tables have a row 0 for missing cells: value v is at v + 1. A missing cell adds nothing to a sum and never moves.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ... import model
from ..equations import compiled, g, inner, log_copy, log_rise, omega_logit, row_weight
from ..rng import derive, log_gamma, uniform
from .intrinsics import WIDTH

ROWS = 32  # rows whose sums are made together
CACHED_RISES = 1 << 22  # entries of log Γ kept in tables
SMALLEST = 1e-37  # of φ: still a normal float32
ROUND_UP = 1.00001  # more than float32 loses


class Rises(NamedTuple):
    """log Γ(const + n) / Γ(const) by lookup: counts are integers, and few different constants occur in g."""

    const: np.ndarray  # (C,)
    table: np.ndarray  # (C, n)
    one: int  # which constant is λ
    k: np.ndarray  # (nnz K,) λ (1 + c K)
    sum0: np.ndarray  # (P,) Σ_v g with ω = 0
    sum1: np.ndarray  # (ΣV,) Σ_v g with ω = 1 and prototype value u


class Tables(NamedTuple):
    """What rows are drawn by: φ for cell moves, log φ for relabel moves, and the prior of a row. Goes out to every engine."""

    phi: np.ndarray  # (S, ΣV + 1) float32
    log_phi: np.ndarray  # ((ΣV + 1) · lanes,) float32, less its maximum over s
    smooth: np.ndarray  # (ΣV + 1,) float32, Σ_s α β_s φ_s(v)
    bound: np.ndarray  # (S, P) float32, no cell of feature j is likelier to leave label s if the P − 1 others have it
    a: np.ndarray  # (S,) α β
    rise: np.ndarray  # (P + 1, S) log Γ(α β_s + n) / Γ(α β_s)


class Copies(NamedTuple):
    """What candidates are scored by. Goes out to every engine."""

    adds: np.ndarray  # ((ΣV + 1) · lanes,) float32, what a candidate's value adds to its log weight, less its maximum
    top: np.ndarray  # (P, S) that maximum


class RowScratch(NamedTuple):
    """For the row at hand."""

    n: np.ndarray  # (S,) n_is, 0 between rows
    used: np.ndarray  # (S,) labels in use, in order of first appearance
    to: np.ndarray  # (S,) old label to new label
    weight: np.ndarray  # (max(S, V),) float64
    groups: np.ndarray  # (S · lanes,) float64
    u: np.ndarray  # (P,) float32
    cut: np.ndarray  # (P,) int32
    rare: np.ndarray  # (P,) bool
    cells: np.ndarray  # (3, P) float32
    where: np.ndarray  # (P + 1,) cells that moved, or rows of a table
    old: np.ndarray  # (P + 1,) labels before an update


class Tally(NamedTuple):
    """Integer statistics of a block of rows: they add up in any order."""

    delta: np.ndarray  # (ΣV, S) change of n_sv
    n_rows: np.ndarray  # (S, P + 1)
    main: np.ndarray  # (S,) rows most of whose cells have label s
    moved: np.ndarray  # (2,) cells moved, rows relabelled
    purity: np.ndarray  # (1,) Σ_i max_s n_is / n_i in units of 2⁻³²


class Scratch(NamedTuple):
    """Per thread, so that threads share no cache line."""

    row: RowScratch
    tally: Tally
    sums: np.ndarray  # (ROWS · lanes,) float64
    log_phi: np.ndarray  # (V, S) float64
    phi: np.ndarray  # (V, S) float64
    best: np.ndarray  # (S,)
    arg: np.ndarray  # (S,)


def lanes_for(S):
    return -(-S // WIDTH) * WIDTH


def alone(shape, dtype=np.float64):
    """Zeros on cache lines of their own, so that threads do not wait for each other's scratch."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 256, dtype=np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + size].view(dtype).reshape(shape)


def make_tables(offset, S, by_lanes=None):
    V, P = int(offset[-1]), len(offset) - 1
    return Tables(
        phi=np.ones((S, V + 1), dtype=np.float32),
        log_phi=alone((V + 1) * lanes_for(S), dtype=np.float32) if by_lanes is None else by_lanes,
        smooth=np.zeros(V + 1, dtype=np.float32),
        bound=np.zeros((S, P), dtype=np.float32),
        a=np.zeros(S),
        rise=np.zeros((P + 1, S)),
    )


def make_scratch(offset, S, z_type):
    V, P = int(offset[-1]), len(offset) - 1
    widest = int(np.diff(offset).max())
    row = RowScratch(
        n=alone(S),
        used=alone(S, dtype=np.int64),
        to=alone(S, dtype=np.int64),
        weight=alone(max(S, widest)),
        groups=alone(S * lanes_for(S)),
        u=alone(P, dtype=np.float32),
        cut=alone(P, dtype=np.int32),
        rare=alone(P, dtype=np.bool_),
        cells=alone((3, P), dtype=np.float32),
        where=alone(P + 1, dtype=np.int64),
        old=alone(P + 1, dtype=z_type),
    )
    return Scratch(
        row=row,
        tally=make_tally(V, P, S),
        sums=alone(ROWS * lanes_for(S)),
        log_phi=alone((widest, S)),
        phi=alone((widest, S)),
        best=alone(S),
        arg=alone(S, dtype=np.int64),
    )


def make_tally(V, P, S):
    return Tally(
        delta=alone((V, S), dtype=np.int32),
        n_rows=alone((S, P + 1), dtype=np.int64),
        main=alone(S, dtype=np.int64),
        moved=alone(2, dtype=np.int64),
        purity=alone(1, dtype=np.int64),
    )


def make_rises(book, hyper, most):
    """For counts up to `most`, the number of rows."""
    lam, c, offset = hyper.lam, hyper.c, book.offset
    n_values = np.diff(offset)
    k, sum0 = model.g(lam, c, 1.0, book.k_val), lam * n_values
    sum1 = np.repeat(sum0, n_values) + np.bincount(
        np.repeat(np.arange(offset[-1]), np.diff(book.k_ptr)), weights=k - lam, minlength=offset[-1]
    )
    const, ids = np.unique(np.concatenate([[lam], k, sum0, sum1]), return_inverse=True)
    ids = np.split(ids, np.cumsum([1, len(k), len(sum0)]))
    width = min(most + 1, CACHED_RISES // len(const))
    return Rises(const, rise_table(const, width), int(ids[0][0]), *ids[1:])


def row_rises(hyper, P):
    """The prior of a row, by count and label. At α = 0 a row has one label s, with probability β_s."""
    if hyper.alpha == 0.0:
        rows = np.repeat(np.log(hyper.beta)[None], P + 1, axis=0)
        rows[0] = 0.0
        return rows
    return np.ascontiguousarray(rise_table(hyper.alpha * hyper.beta, P + 1).T)


def rise_table(const, width):
    table = np.empty((len(const), width))
    fill_rises(const, table)
    return table


@compiled
def fill_rises(const, table):
    for k in range(len(const)):
        for n in range(table.shape[1]):
            table[k, n] = log_rise(const[k], n)


@inner
def rise(rises, k, n):
    if n < rises.table.shape[1]:
        return rises.table[k, n]
    return log_rise(rises.const[k], n)


class Subspaces(NamedTuple):
    """ω, what is held of it, and its prior."""

    omega: np.ndarray  # (S, P)
    held: np.ndarray  # (S, P) or (0, 0)
    q: np.ndarray  # (S, P)
    summed: bool  # is ω to be summed out where it is not held?


@compiled
def update_evidence(book, rises, n_sv, n_sj, subspaces, evidence, part, copies, adds, lo, hi):
    """E[s, u] and what a candidate's value adds to its log weight, for the features lo .. hi - 1.

    E[s, u] = Σ_v [ rise(g¹_u(v), n_v) − rise(g⁰, n_v) ] − [ rise(Σ g¹_u, n_j) − rise(Σ g⁰, n_j) ]; terms without a copy cancel.
    With ω summed out a value adds log(q e^E + 1 − q); with ω known or held it adds ω E. part[j] ← log joint with ω = 0.
    """
    S = n_sv.shape[1]
    lanes = len(copies.adds) // (n_sv.shape[0] + 1)
    omega, q, held = subspaces.omega, subspaces.q, subspaces.held
    for j in range(lo, hi):
        v0, v1 = book.offset[j], book.offset[j + 1]
        joint = 0.0
        for s in range(S):
            summed = subspaces.summed and not (len(held) > 0 and held[s, j] >= 0)
            none = rise(rises, rises.sum0[j], n_sj[j, s])
            joint -= none
            top = -np.inf
            for u in range(v0, v1):
                joint += rise(rises, rises.one, n_sv[u, s])
                e = none - rise(rises, rises.sum1[u], n_sj[j, s])
                for k in range(book.k_ptr[u], book.k_ptr[u + 1]):
                    n = n_sv[book.k_idx[k], s]
                    e += rise(rises, rises.k[k], n) - rise(rises, rises.one, n)
                evidence[u, s] = e
                adds[u - v0] = log_copy(q[s, j], e) if summed else omega[s, j] * e
                top = max(top, adds[u - v0])
            for u in range(v0, v1):
                copies.adds[(u + 1) * lanes + s] = adds[u - v0] - top
            copies.top[j, s] = top
        part[j] = joint


@compiled
def update_omega(u, evidence, subspaces, key, prob):
    """ω_sj given the prototypes' codes u, φ integrated out; prob[s, j] = p(ω_sj = 1 | rest).

    Returns Σ ω E + log p(ω) − Σ log(1 − q).
    """
    omega, q, held = subspaces.omega, subspaces.q, subspaces.held
    S, P = omega.shape
    total = 0.0
    for s in range(S):
        row_key = derive(key, s)
        for j in range(P):
            e = evidence[u[s, j], s] if u[s, j] >= 0 else 0.0
            logit = omega_logit(q[s, j], e)
            if len(held) > 0 and held[s, j] >= 0:
                prob[s, j] = omega[s, j] = held[s, j]
            else:
                prob[s, j] = 1.0 / (1.0 + exp(-logit))
                omega[s, j] = uniform(row_key, j) < prob[s, j]
            total += omega[s, j] * logit
    return total


@inner
def fill_g(book, hyper, j, u, omega_sj, out, base, s):
    """out[v - base, s] = g_sj(v) for the values of feature j if the prototype has value u. A missing value is not copied."""
    for v in range(book.offset[j], book.offset[j + 1]):
        out[v - base, s] = g(hyper.lam, hyper.c, 0.0, 0.0)
    if u >= 0:
        for k in range(book.k_ptr[u], book.k_ptr[u + 1]):
            out[book.k_idx[k] - base, s] = g(hyper.lam, hyper.c, omega_sj, book.k_val[k])


@compiled
def update_phi(book, hyper, state, key, tables, scratch, lo, hi):
    """φ_sj ~ Dirichlet(g_sj + n_sj·) for the features lo .. hi - 1."""
    n_sv = state.n_sv
    S = n_sv.shape[1]
    lanes = len(tables.log_phi) // (n_sv.shape[0] + 1)
    log_phi, phi = scratch.log_phi, scratch.phi
    for j in range(lo, hi):
        v0, v1 = book.offset[j], book.offset[j + 1]
        for s in range(S):
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], phi, v0, s)
            cell_key = derive(key, j * S + s)
            top = -np.inf
            for v in range(v1 - v0):
                log_phi[v, s] = log_gamma(phi[v, s] + n_sv[v0 + v, s], derive(cell_key, v))
                top = max(top, log_phi[v, s])
            total = 0.0
            for v in range(v1 - v0):
                phi[v, s] = exp(log_phi[v, s] - top)
                total += phi[v, s]
            log_total = top + log(total)
            for v in range(v1 - v0):
                log_phi[v, s] -= log_total
                phi[v, s] /= total
        for v in range(v1 - v0):
            fill_row(tables, log_phi, phi, v, v0 + v + 1, j, v == 0, lanes)


@inner
def leave_mass(a, phi, smooth):
    """Weight of all labels but the row's only one: Σ_t a_t φ_t without its own a φ."""
    return max(smooth - row_weight(a, 0.0, phi), 0.0)


@inner
def fill_row(tables, log_phi, phi, v, row, j, first, lanes):
    """Write log_phi[v, :] and phi[v, :], of a value of feature j, its first or a later one, to row `row` of the tables."""
    S = log_phi.shape[1]
    top, smooth = -np.inf, 0.0
    for s in range(S):
        if log_phi[v, s] > top:
            top = log_phi[v, s]
    for s in range(S):
        tables.log_phi[row * lanes + s] = log_phi[v, s] - top
        tables.phi[s, row] = max(phi[v, s], SMALLEST)
        smooth += row_weight(tables.a[s], 0.0, tables.phi[s, row])
    tables.smooth[row] = smooth
    n = tables.bound.shape[1] - 1.0  # all other cells of a row without gaps
    for s in range(S):
        phi_s = tables.phi[s, row]
        leave = leave_mass(tables.a[s], phi_s, smooth) / (row_weight(0.0, n, phi_s) + smooth)
        tables.bound[s, j] = max(np.float32(0.0) if first else tables.bound[s, j], np.float32(leave * ROUND_UP))
