"""Feature by feature: the compiled equations, and the tables made from counts: evidence for prototypes and subspaces, and φ.

Tables have a row 0 for missing cells: value v is at v + 1. A missing cell adds nothing to a sum and never moves.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
from numba import njit

from ... import model
from ...state import count_observed
from ..rng import derive, log_gamma, uniform
from .intrinsics import WIDTH

ROWS = 32  # rows whose sums are made together
CACHED_RISES = 1 << 22  # entries of log Γ kept in tables
SMALLEST = 1e-37  # of φ: still a normal float32
ROUND_UP = 1.00001  # more than float32 loses

compiled = njit(nogil=True, cache=True, error_model="numpy")  # no test for division by zero: it keeps loops from vectorising
inner = njit(
    nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
)  # of kernels only: less to compile

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
    rows: np.ndarray  # (P + 1, S) log Γ(α β_s + n) / Γ(α β_s)
    rows_const: float  # Σ_i log Γ(α + n_i) / Γ(α)


class Tables(NamedTuple):
    """What the row kernels read: φ for cell moves, log φ for relabel moves, evidence for prototypes.

    log_phi and copies are one memory: the sums of a sweep need the first until z is drawn, and the second only then.
    """

    phi: np.ndarray  # (S, ΣV + 1) float32
    log_phi: np.ndarray  # ((ΣV + 1) · lanes,) float32, less its maximum over s
    smooth: np.ndarray  # (ΣV + 1,) float32, Σ_s α β_s φ_s(v)
    often: np.ndarray  # (S, P) float32, no cell of feature j is likelier to leave label s if the P − 1 others have it
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
    cells: np.ndarray  # (3, P) float32
    rows: np.ndarray  # (P + 1,) rows of a table
    n: np.ndarray  # (S,) n_is of the row at hand
    used: np.ndarray  # (S,) labels in use, in order of first appearance
    to: np.ndarray  # (S,) old label to position in `used`, or to new label
    old: np.ndarray  # (P + 1,) labels before an update
    delta: np.ndarray  # (ΣV, S) change of n_sv
    n_rows: np.ndarray  # (S, P + 1)
    main: np.ndarray  # (S,) rows most of whose cells have label s
    info: np.ndarray  # (3,) cells moved, rows relabelled, Σ_i purity in units of 2⁻³²
    best: np.ndarray  # (S,)
    arg: np.ndarray  # (S,)


def lanes_for(S):
    return -(-S // WIDTH) * WIDTH


def make_tables(data, S):
    V, P = int(data.offset[-1]), len(data.offset) - 1
    by_lanes = alone((V + 1) * lanes_for(S), dtype=np.float32)
    return Tables(
        phi=np.ones((S, V + 1), dtype=np.float32),
        log_phi=by_lanes,
        smooth=np.zeros(V + 1, dtype=np.float32),
        often=np.zeros((S, P), dtype=np.float32),
        evidence=np.zeros((V, S)),
        copies=by_lanes,
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
        cells=alone((3, P), dtype=np.float32),
        rows=alone(P + 1, dtype=np.int64),
        n=alone(S),
        used=alone(S, dtype=np.int64),
        to=alone(S, dtype=np.int64),
        old=alone(P + 1, dtype=z_type),
        delta=alone((V, S), dtype=np.int32),
        n_rows=alone((S, P + 1), dtype=np.int64),
        main=alone(S, dtype=np.int64),
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
        rows = np.repeat(np.log(hyper.beta)[None], P + 1, axis=0)
        rows[0] = 0.0
        return rows, 0.0
    total = rise_table(np.array([hyper.alpha]), P + 1)[0]
    return np.ascontiguousarray(rise_table(hyper.alpha * hyper.beta, P + 1).T), float(total[n_i].sum())


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


@compiled
def update_evidence(data, rises, n_sv, n_sj, q, omega, blocked, tables, scratch, lo, hi):
    """E[s, u] and what a candidate's value adds to its log weight, for the features lo .. hi - 1.

    E[s, u] = Σ_v [ rise(g¹_u(v), n_v) − rise(g⁰, n_v) ] − [ rise(Σ g¹_u, n_j) − rise(Σ g⁰, n_j) ]; terms without a copy cancel.
    With ω summed out (blocked) a value adds log(q e^E + 1 − q); with ω known or held it adds ω E.
    """
    S = n_sv.shape[1]
    lanes = len(tables.copies) // (n_sv.shape[0] + 1)
    adds, some_held = scratch.weight, len(data.omega_held) > 0
    for j in range(lo, hi):
        v0, v1 = data.offset[j], data.offset[j + 1]
        part = 0.0
        for s in range(S):
            summed = blocked and not (some_held and data.omega_held[s, j] >= 0)
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
                adds[u - v0] = log_copy(q[s, j], e) if summed else omega[s, j] * e
                top = max(top, adds[u - v0])
            for u in range(v0, v1):
                tables.copies[(u + 1) * lanes + s] = adds[u - v0] - top
            tables.copies_max[j, s] = top
        tables.part[j] = part


@compiled
def update_omega(data, q, evidence, p, key, omega, chance):
    """ω_sj given p, φ integrated out; chance[s, j] = p(ω_sj = 1 | rest). Returns Σ ω E + log p(ω) − Σ log(1 − q)."""
    S, P = omega.shape
    total, some_held = 0.0, len(data.omega_held) > 0
    for s in range(S):
        row_key = derive(key, s)
        for j in range(P):
            u = data.candidates[p[s], j]
            e = evidence[u, s] if u >= 0 else 0.0
            logit = omega_logit(q[s, j], e)
            if some_held and data.omega_held[s, j] >= 0:
                chance[s, j] = omega[s, j] = data.omega_held[s, j]
            else:
                chance[s, j] = 1.0 / (1.0 + exp(-logit))
                omega[s, j] = uniform(row_key, j) < chance[s, j]
            total += omega[s, j] * logit
    return total


@inner
def fill_g(data, hyper, j, m, omega_sj, out, base, s):
    """out[v - base, s] = g_sj(v) for the values of feature j, with candidate m as prototype. A missing value is not copied."""
    for v in range(data.offset[j], data.offset[j + 1]):
        out[v - base, s] = g(hyper.lam, hyper.c, 0.0, 0.0)
    u = data.candidates[m, j]
    if u >= 0:
        for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
            out[data.k_idx[k] - base, s] = g(hyper.lam, hyper.c, omega_sj, data.k_val[k])


@compiled
def update_phi(data, hyper, p, omega, n_sv, heat, key, tables, scratch, lo, hi):
    """φ_sj ~ Dirichlet(g_sj + n_sj·) for the features lo .. hi - 1, raised to the power `heat` while burning in."""
    S = n_sv.shape[1]
    lanes = len(tables.log_phi) // (n_sv.shape[0] + 1)
    log_phi, phi = scratch.log_phi, scratch.phi
    for j in range(lo, hi):
        v0, v1 = data.offset[j], data.offset[j + 1]
        for s in range(S):
            fill_g(data, hyper, j, p[s], omega[s, j], phi, v0, s)
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
                log_phi[v, s] = heat * (log_phi[v, s] - log_total)
                phi[v, s] = phi[v, s] / total if heat == 1.0 else exp(log_phi[v, s])
        for v in range(v1 - v0):
            fill_row(tables, hyper, log_phi, phi, v, v0 + v + 1, j, v == 0, lanes)


@inner
def leave_mass(a, phi, smooth):
    """Weight of all labels but the row's only one: Σ_t a_t φ_t without its own a φ."""
    return max(smooth - row_weight(a, 0.0, phi), 0.0)


@inner
def fill_row(tables, hyper, log_phi, phi, v, row, j, first, lanes):
    """Write log_phi[v, :] and phi[v, :], of a value of feature j, its first or a later one, to row `row` of the tables."""
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
        leave = leave_mass(hyper.alpha * hyper.beta[s], phi_s, smooth) / (row_weight(0.0, n, phi_s) + smooth)
        tables.often[s, j] = max(np.float32(0.0) if first else tables.often[s, j], np.float32(leave * ROUND_UP))
