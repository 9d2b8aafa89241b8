"""Feature by feature: the tables made from counts, for rows (φ) and for candidates (evidence).

Tables have a row 0 for missing cells: value v is at v + 1. A missing cell adds nothing to a sum and never moves.
"""

from typing import NamedTuple

import numpy as np

from ... import model
from ...parallel import LEAST, each, portions
from ..compiling import compiled, inner
from ..equations import g, log_copy, log_rise
from ..rng import derive
from .intrinsics import (
    WIDTH,
    add,
    div,
    every,
    first_lanes,
    larger,
    largest,
    load,
    mul,
    narrow,
    prefetch,
    store,
    sub,
    total,
    wide_every,
    wide_load,
    widen,
    zeros,
)
from .lanes_math import draw_log_gammas, exp_lanes, log_lanes

ROWS = 32  # rows whose sums are made together
AHEAD = 6  # numbers of a cell whose next label is foreseen, beside one for each label
CACHED_RISES = 1 << 22  # entries of log Γ kept in tables
SMALLEST = 1e-37  # of φ: still a normal float32


class Rises(NamedTuple):
    """log Γ(const + n) / Γ(const) by lookup: counts are integers, and few different constants occur in g."""

    const: np.ndarray  # (C,)
    table: np.ndarray  # (n, C): what a count needs lies side by side
    one: np.ndarray  # (ΣV,) which constant is λ(v)
    k: np.ndarray  # (nnz K,) λ(v) (1 + c K)
    sum0: np.ndarray  # (P,) Σ_v g with ω = 0
    sum1: np.ndarray  # (ΣV,) Σ_v g with ω = 1 and prototype value u


class Tables(NamedTuple):
    """What rows are drawn by: φ for cell moves, log φ for relabel moves, and the prior of a row. Goes out to every engine."""

    phi: np.ndarray  # ((ΣV + 1) · lanes,) float32
    log_phi: np.ndarray  # ((ΣV + 1) · lanes,) float32, less its maximum over s
    smooth: np.ndarray  # (ΣV + 1,) float32, Σ_s α β_s φ_s(v)
    leave: np.ndarray  # (S, ΣV + 1) float32, Σ_{t ≠ s} α β_t φ_t(v) / φ_s(v): weight of all labels but the row's only one
    a: np.ndarray  # (S,) α β
    rise: np.ndarray  # ((longest row + 1) · lanes,) log Γ(α β_s + n) / Γ(α β_s) at n · lanes + s


class Copies(NamedTuple):
    """What candidates are scored by. Goes out to every engine."""

    adds: np.ndarray  # ((ΣV + 1) · lanes,) float32, what a candidate's value adds to its log weight, less its maximum
    top: np.ndarray  # (P, S) that maximum


class RowScratch(NamedTuple):
    """For the row at hand."""

    n: np.ndarray  # (S,) n_is, 0 between rows
    used: np.ndarray  # (S,) labels in use, in order of first appearance
    to: np.ndarray  # (S,) old label to new label
    barred: np.ndarray  # (lanes,) float32, −∞ for the labels that a group cannot take, 0 for the others and between rows
    e: np.ndarray  # (lanes,) float32
    groups: np.ndarray  # (S · lanes,) float64
    u: np.ndarray  # (W,) float32, for the longest row of W cells
    cut: np.ndarray  # (W,) int32
    rare: np.ndarray  # (W,) bool
    cells: np.ndarray  # (3, W) float32
    where: np.ndarray  # (W + 1,) rows of a table
    ahead: np.ndarray  # ((S + AHEAD) · WIDTH,) float32, see `cells.foresee`


class Tally(NamedTuple):
    """Integer statistics of a block of rows: they add up in any order."""

    delta: np.ndarray  # (ΣV, S) change of n_sv
    n_rows: np.ndarray  # (S, W + 1)
    main: np.ndarray  # (S,) rows most of whose cells have label s
    moved: np.ndarray  # (2,) cells moved, rows relabelled
    purity: np.ndarray  # (1,) Σ_i max_s n_is / n_i in units of 2⁻³²

    def clear(self):
        for counts in self:
            counts[...] = 0


class PhiScratch(NamedTuple):
    """For the feature at hand, or for WIDTH items of a bag: side by side, label after label, these fill whole lanes."""

    g: np.ndarray  # (V, S) float64
    log_phi: np.ndarray  # (V · lanes,) float32
    keys: np.ndarray  # (WIDTH · S and some lanes,) uint64, of (item, label)
    numbers: np.ndarray  # the same, int64: which of the items
    shapes: np.ndarray  # the same, float32
    values: np.ndarray  # (S and some lanes,) int64: of values that are copied, which of the feature's each is
    places: np.ndarray  # the same: where in log_phi each belongs
    drawn: np.ndarray  # the same, float32


class BestScratch(NamedTuple):
    """The best candidate so far of each cluster, and the sums of those at hand."""

    score: np.ndarray  # (lanes,) ∞ in lanes that no label has
    row: np.ndarray  # (S,)
    sums: np.ndarray  # (ROWS · lanes,) float64


class Scratch(NamedTuple):
    """Per thread, so that threads share no cache line. A kernel gets the part that it needs."""

    row: RowScratch
    tally: Tally
    sums: np.ndarray  # (ROWS · lanes,) float64
    weight: np.ndarray  # (max(S, V),) float64
    phi: PhiScratch
    best: BestScratch


def lanes_for(S):
    return -(-S // WIDTH) * WIDTH


def alone(shape, dtype=np.float64):
    """Zeros on cache lines of their own, so that threads do not wait for each other's scratch."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 256, dtype=np.uint8)
    start = -raw.ctypes.data % 128
    return raw[start : start + size].view(dtype).reshape(shape)


def make_tables(book, S, width, by_lanes=None):
    """width: cells of the longest row."""
    V = int(book.offset[-1])
    return Tables(
        phi=alone((V + 1) * lanes_for(S), dtype=np.float32),
        log_phi=alone((V + 1) * lanes_for(S), dtype=np.float32) if by_lanes is None else by_lanes,
        smooth=np.zeros(V + 1, dtype=np.float32),
        leave=np.zeros((S, V + 1), dtype=np.float32),
        a=np.zeros(S),
        rise=np.zeros((width + 1) * lanes_for(S)),
    )


def make_scratch(book, S, width):
    """width: cells of the longest row."""
    widest = int(np.diff(book.offset[: book.n_single + 1]).max(initial=1))
    row = RowScratch(
        n=alone(S, dtype=np.int64),
        used=alone(S, dtype=np.int64),
        to=alone(S, dtype=np.int64),
        barred=alone(lanes_for(S), dtype=np.float32),
        e=alone(lanes_for(S), dtype=np.float32),
        groups=alone(S * lanes_for(S)),
        u=alone(width, dtype=np.float32),
        cut=alone(width, dtype=np.int32),
        rare=alone(width, dtype=np.bool_),
        cells=alone((3, width), dtype=np.float32),
        where=alone(width + 1, dtype=np.int64),
        ahead=alone((S + AHEAD) * WIDTH, dtype=np.float32),
    )
    row.barred[S:] = -np.inf
    side_by_side = WIDTH * S + WIDTH
    phi = PhiScratch(
        g=alone((widest, S)),
        log_phi=alone(widest * lanes_for(S), dtype=np.float32),
        keys=alone(side_by_side, dtype=np.uint64),
        numbers=alone(side_by_side, dtype=np.int64),
        shapes=alone(side_by_side, dtype=np.float32),
        values=alone(S + WIDTH, dtype=np.int64),
        places=alone(S + WIDTH, dtype=np.int64),
        drawn=alone(S + WIDTH, dtype=np.float32),
    )
    phi.numbers[:] = np.arange(side_by_side) // S
    phi.shapes[:] = 1.0  # in lanes that no label has
    sums, score = alone(ROWS * lanes_for(S)), alone(lanes_for(S))
    score[S:] = np.inf
    return Scratch(
        row=row,
        tally=make_tally(int(book.offset[-1]), width, S),
        sums=sums,
        weight=alone(max(S, widest)),
        phi=phi,
        best=BestScratch(score, alone(S, dtype=np.int64), sums),
    )


def make_tally(V, width, S):
    return Tally(
        delta=alone((V, S), dtype=np.int32),
        n_rows=alone((S, width + 1), dtype=np.int64),
        main=alone(S, dtype=np.int64),
        moved=alone(2, dtype=np.int64),
        purity=alone(1, dtype=np.int64),
    )


def make_rises(book, hyper, most):
    """For counts up to `most`, the number of rows."""
    V = int(book.offset[book.n_single])  # of single features; bags need none of this
    n_values, lam = np.diff(book.offset[: book.n_single + 1]), hyper.lam * book.base[:V]
    k_ptr, k_idx = book.k_ptr[: V + 1], book.k_idx[: book.k_ptr[V]]
    k, sum0 = model.g(lam[k_idx], hyper.c, 1.0, book.k_val[: len(k_idx)]), hyper.lam * n_values
    sum1 = np.repeat(sum0, n_values) + np.bincount(np.repeat(np.arange(V), np.diff(k_ptr)), weights=k - lam[k_idx], minlength=V)
    const, ids = np.unique(np.concatenate([lam, k, sum0, sum1]), return_inverse=True)
    ids = np.split(ids, np.cumsum([V, len(k), len(sum0)]))
    width = min(most + 1, CACHED_RISES // max(len(const), 1))
    return Rises(const, rise_table(const, width), *ids)


def row_rises(hyper, width):
    """(width + 1, S) The prior of a row, by count and label. At α = 0 a row has one label s, with probability β_s."""
    if hyper.alpha == 0.0:
        rows = np.repeat(np.log(hyper.beta)[None], width + 1, axis=0)
        rows[0] = 0.0
        return rows
    return rise_table(hyper.alpha * hyper.beta, width + 1)


def rise_table(const, width):
    """(width, C) log Γ(const + n) / Γ(const)"""
    table = np.empty((width, len(const)))
    each(lambda few: fill_rises(const, table[few], few.start), portions(width, max(1, LEAST // max(len(const), 1))))
    return table


@compiled
def fill_rises(const, table, first):
    """The rows `first` and on."""
    for n in range(len(table)):
        for k in range(len(const)):
            table[n, k] = log_rise(const[k], first + n)


@inner
def rise(rises, k, n):
    if n < len(rises.table):
        return rises.table[n, k]
    return log_rise(rises.const[k], n)


class Subspaces(NamedTuple):
    """ω, what is held of it, and its prior."""

    omega: np.ndarray  # (S, D)
    held: np.ndarray  # (S, D) or (0, 0)
    q: np.ndarray  # (S, D)
    summed: bool  # is ω to be summed out where it is not held?


class EvidenceTables(NamedTuple):
    """What is made from counts for prototypes."""

    evidence: np.ndarray  # (ΣV, S) E[s, u]
    copies: Copies


@inner
def copy_evidence(book, rises, n_sv, n_sj, j, u, s):
    """E[s, u] = Σ_v [ rise(g¹_u(v), n_v) − rise(g⁰, n_v) ] − [ rise(Σ g¹_u, n_j) − rise(Σ g⁰, n_j) ].

    Terms without a copy cancel.
    """
    e = rise(rises, rises.sum0[j], n_sj[j, s]) - rise(rises, rises.sum1[u], n_sj[j, s])
    for k in range(book.k_ptr[u], book.k_ptr[u + 1]):
        v = book.k_idx[k]
        e += rise(rises, rises.k[k], n_sv[v, s]) - rise(rises, rises.one[v], n_sv[v, s])
    return e


@compiled
def update_own_evidence(book, rises, n_sv, n_sj, codes, evidence, lo, hi):
    """E[s, u] for the prototypes' own codes u of the features lo .. hi - 1: all that ω needs if no prototype is drawn."""
    for j in range(lo, hi):
        for s in range(len(codes)):
            if codes[s, j] >= 0:
                evidence[codes[s, j], s] = copy_evidence(book, rises, n_sv, n_sj, j, codes[s, j], s)


@compiled
def update_evidence(book, rises, n_sv, n_sj, subspaces, tables, adds, lo, hi):
    """E[s, u] and what a candidate's value adds to its log weight, for the features lo .. hi - 1.

    With ω summed out a value adds log(q e^E + 1 − q); with ω known or held it adds ω E.
    """
    S, copies, evidence = n_sv.shape[1], tables.copies, tables.evidence
    lanes, known, n_const = len(copies.adds) // (n_sv.shape[0] + 1), rises.table.reshape(-1), rises.table.shape[1]
    omega, q, held = subspaces.omega, subspaces.q, subspaces.held
    for j in range(lo, hi):
        v0, v1 = book.offset[j], book.offset[j + 1]
        if j + 1 < hi:  # numbers for the next feature are on their way meanwhile
            for v in range(v1, book.offset[j + 2]):
                for s in range(S):
                    prefetch(known, n_sv[v, s] * n_const)
            for s in range(S):
                prefetch(known, n_sj[j + 1, s] * n_const)
        for u in range(v0, v1):
            for s in range(S):
                evidence[u, s] = copy_evidence(book, rises, n_sv, n_sj, j, u, s)
        for s in range(S):
            copies.top[j, s] = -np.inf
        for u in range(v0, v1):
            for s in range(S):
                summed = subspaces.summed and not (len(held) > 0 and held[s, j] >= 0)
                adds[u - v0, s] = log_copy(q[s, j], evidence[u, s]) if summed else omega[s, j] * evidence[u, s]
                copies.top[j, s] = max(copies.top[j, s], adds[u - v0, s])
        for u in range(v0, v1):
            for s in range(S):
                copies.adds[(u + 1) * lanes + s] = adds[u - v0, s] - copies.top[j, s]


@compiled
def add_up_evidence(book, rises, n_sv, n_sj, part, lo, hi):
    """Log joint of the features lo .. hi - 1 with ω = 0, each to part[j]."""
    for j in range(lo, hi):
        joint = 0.0
        for s in range(n_sv.shape[1]):
            joint -= rise(rises, rises.sum0[j], n_sj[j, s])
            for u in range(book.offset[j], book.offset[j + 1]):
                joint += rise(rises, rises.one[u], n_sv[u, s])
        part[j] = joint


@inner
def fill_g(book, hyper, j, u, omega_sj, out, base, s):
    """out[v - base, s] = g_sj(v) for the values of feature j if the prototype has value u. A missing value is not copied."""
    for v in range(book.offset[j], book.offset[j + 1]):
        out[v - base, s] = g(hyper.lam * book.base[v], hyper.c, 0.0, 0.0)
    if u >= 0:
        for k in range(book.k_ptr[u], book.k_ptr[u + 1]):
            v = book.k_idx[k]
            out[v - base, s] = g(hyper.lam * book.base[v], hyper.c, omega_sj, book.k_val[k])


@compiled
def update_phi(book, hyper, state, key, tables, scratch, lo, hi):
    """φ_sj ~ Dirichlet(g_sj + n_sj·) for the features lo .. hi - 1: Gamma draws, divided by their sum."""
    n_sv, S = state.n_sv, state.n_sv.shape[1]
    g_v, log_phi, keys, numbers, shapes = scratch.g, scratch.log_phi, scratch.keys, scratch.numbers, scratch.shapes
    lanes = len(tables.phi) // tables.leave.shape[1]
    for j in range(lo, hi):
        v0, v1 = book.offset[j], book.offset[j + 1]
        for s in range(S):
            keys[s] = derive(key, j * S + s)
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], g_v, v0, s)
        for v in range(v1 - v0):
            for s in range(S):
                shapes[s] = g_v[v, s] + n_sv[v0 + v, s]
            draw_log_gammas(keys, numbers, v, shapes, S, log_phi, v * lanes)
        fill_feature(tables, log_phi, v0, v1, lanes)


@compiled
def draw_uncopied(book, hyper, n_sv, key, log_gamma, scratch, lo, hi):
    """The Gamma draws of `update_phi` for the features lo .. hi - 1, as if no value were copied, whatever p and ω."""
    S, keys, shapes = n_sv.shape[1], scratch.keys, scratch.shapes
    lanes = len(log_gamma) // n_sv.shape[0]
    for j in range(lo, hi):
        for s in range(S):
            keys[s] = derive(key, j * S + s)
        for v in range(book.offset[j], book.offset[j + 1]):
            plain = g(hyper.lam * book.base[v], hyper.c, 0.0, 0.0)
            for s in range(S):
                shapes[s] = plain + n_sv[v, s]
            draw_log_gammas(keys, scratch.numbers, v - book.offset[j], shapes, S, log_gamma, v * lanes)


@compiled
def update_copied_phi(book, hyper, state, key, tables, log_gamma, scratch, lo, hi):
    """`update_phi` from what `draw_uncopied` has drawn with the same counts and key: values that are copied are drawn anew."""
    S, log_phi, shapes = state.n_sv.shape[1], scratch.log_phi, scratch.shapes
    lanes = len(tables.phi) // tables.leave.shape[1]
    for j in range(lo, hi):
        v0, v1, n = book.offset[j], book.offset[j + 1], 0
        for k in range((v1 - v0) * lanes):
            log_phi[k] = log_gamma[v0 * lanes + k]
        for s in range(S):
            u = state.u[s, j]
            if u < 0 or not state.omega[s, j]:
                continue
            for k in range(book.k_ptr[u], book.k_ptr[u + 1]):
                v = book.k_idx[k]
                scratch.keys[n], scratch.values[n] = derive(key, j * S + s), v - v0
                shapes[n] = g(hyper.lam * book.base[v], hyper.c, 1.0, book.k_val[k]) + state.n_sv[v, s]
                scratch.places[n] = (v - v0) * lanes + s
                n += 1
                if n == S:
                    draw_some(scratch, n)
                    n = 0
        draw_some(scratch, n)
        fill_feature(tables, log_phi, v0, v1, lanes)


@inner
def draw_some(scratch, n):
    """The draws of n values, wherever in log_phi they belong."""
    draw_log_gammas(scratch.keys, scratch.values, 0, scratch.shapes, n, scratch.drawn, 0)
    for k in range(n):
        scratch.log_phi[scratch.places[k]] = scratch.drawn[k]


@inner
def fill_feature(tables, log_phi, v0, v1, lanes):
    """φ and what is made of it from the logarithms of its Gamma draws."""
    for s in range(0, lanes, WIDTH):
        normalise(log_phi, v1 - v0, lanes, s)
    for v in range(v1 - v0):
        fill_row(tables, log_phi, v * lanes, v0 + v + 1, lanes)


@inner
def normalise(log_phi, V, lanes, s):
    """Take log Σ_v exp from the V numbers of each of the lanes s .. s + WIDTH - 1."""
    top = load(log_phi, s)
    for v in range(1, V):
        top = larger(top, load(log_phi, v * lanes + s))
    norm = zeros()
    for v in range(V):
        norm = add(norm, exp_lanes(sub(load(log_phi, v * lanes + s), top)))
    norm = add(top, log_lanes(norm))
    for v in range(V):
        store(log_phi, v * lanes + s, sub(load(log_phi, v * lanes + s), norm))


@inner
def fill_row(tables, log_phi, at, row, lanes):
    """Write the numbers log φ_s at log_phi[at : at + lanes] to row `row` of the tables. They are not kept."""
    S, to = len(tables.a), row * lanes
    top, weight = every(np.float32(-np.inf)), wide_every(0.0)
    for s in range(0, lanes, WIDTH):
        value = load(log_phi, at + s)
        phi = larger(exp_lanes(value), every(np.float32(SMALLEST)))
        store(tables.phi, to + s, phi)
        top = larger(top, first_lanes(value, S - s, np.float32(-np.inf)))
        weight = add(weight, mul(wide_load(tables.a, s, S - s), widen(phi)))  # row_weight(a_s, 0, φ_s)
    smooth, most = total(weight), every(largest(top))
    for s in range(0, lanes, WIDTH):
        store(tables.log_phi, to + s, sub(load(log_phi, at + s), most))
        phi = widen(load(tables.phi, to + s))
        rest = sub(wide_every(smooth), mul(wide_load(tables.a, s, S - s), phi))
        store(log_phi, at + s, narrow(div(rest, phi)))
    for s in range(S):
        tables.leave[s, row] = log_phi[at + s]
    tables.smooth[row] = smooth
