"""Bags: evidence, ω, φ and means of features with many items, of which a case has any number.

Items are worked on in chunks of fixed size, whose sums are added up in their order: no split into threads can change a sum.
"""

from math import exp, lgamma, log, pi
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..equations import g, log_copy, omega_logit
from ..rng import derive, log_gamma, uniform
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
    span,
    store,
    sub,
    total,
    where_less,
    wide_every,
    wide_load,
    wide_store,
    widen,
    zeros,
)
from .lanes_math import draw_log_gammas, exp_lanes, log_lanes, wide_log
from .tables import fill_row, lanes_for

CHUNK = 512  # items
FEW = 8  # counts up to this are multiplied out; above, Stirling's series for log Γ has all its digits
HALF_LOG_2PI = 0.5 * log(2.0 * pi)
PRODUCT = 4  # registers whose factors are multiplied before the logarithm is taken
LARGE = 1e9  # pseudo-counts up to this; the product of larger ones would overflow
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
SURE = 1e-5  # a q nearer to 0 or 1 is left to float64


class BagTables(NamedTuple):
    """What the bags of a chain need beside the tables of rows and candidates."""

    n: np.ndarray  # (bags, S) cells
    log_t: np.ndarray  # (bags, lanes)
    log_phi: np.ndarray  # (items · S and some lanes for each chunk,) float32: Gamma draws
    q: np.ndarray  # (items · lanes,) float32; (0,) if some q is next to 0 or 1
    sums: np.ndarray  # (chunks, lanes) Σ_v of Gamma draws
    part: np.ndarray  # (chunks,) Σ_sv log Γ(λ(v) + n_sv) / Γ(λ(v))
    copied: np.ndarray  # (S,) what the items that are copied add to the log joint
    log_gamma: np.ndarray  # (items, 2) log Γ(λ(v) (1 + c)) and log Γ(λ(v)), less ½ log 2π; NaN until it is needed


def make_bag_tables(book, S):
    items, n_bags = int(book.offset[-1] - book.offset[book.n_single]), len(book.offset) - 1 - book.n_single
    chunks = len(chunks_of(book))
    return BagTables(
        n=np.zeros((n_bags, S)),
        log_t=np.zeros((n_bags, lanes_for(S))),
        log_phi=np.zeros(items * S + chunks * lanes_for(S), dtype=np.float32),
        q=np.zeros(0, dtype=np.float32),
        sums=np.zeros((chunks, lanes_for(S))),
        part=np.zeros(chunks),
        copied=np.zeros(S),
        log_gamma=np.full((items, 2), np.nan),
    )


def chunks_of(book):
    """(chunks, 3) bag, first code and end of each chunk; no chunk has items of two bags."""
    found = [
        (b, lo, min(lo + CHUNK, book.offset[book.n_single + b + 1]))
        for b in range(len(book.offset) - 1 - book.n_single)
        for lo in range(book.offset[book.n_single + b], book.offset[book.n_single + b + 1], CHUNK)
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def prior_lanes(book, q):
    """q of the items, as lanes of clusters side by side; nothing if float32 could not tell some q from 0 or 1."""
    q = q[:, book.n_single :]
    if q.size == 0 or q.min() < SURE or q.max() > 1.0 - SURE:
        return np.zeros(0, dtype=np.float32)
    lanes = np.full((q.shape[1], lanes_for(len(q))), 0.5, dtype=np.float32)
    lanes[:, : len(q)] = q.T
    return lanes.reshape(-1)


@inner
def short_rise(a, n):
    """log Γ(a + n) / Γ(a)."""
    if n > FEW:
        return lgamma(a + n) - lgamma(a)
    product = 1.0
    for k in range(n):
        product *= a + k
    return log(product)


@inner
def total_g(book, hyper, u, omega, b, s):
    """G_sb = Σ_v g_sb(v) = λ V_b + c Σ λ(v) over the items of the prototype with ω = 1."""
    j = book.n_single + b
    total = hyper.lam * (book.offset[j + 1] - book.offset[j])
    for k in range(book.n_single, u.shape[1]):
        v = u[s, k]
        if v < 0:  # no more items
            break
        if book.feature[v] == j and omega[s, book.column[v]]:
            total += hyper.lam * hyper.c * book.base[v]
    return total


@inner
def count_cells(book, n_sv, n):
    """n_sb, the cells of each bag by label."""
    counts, found, S = n_sv.reshape(-1), n.reshape(-1), n.shape[1]
    for b in range(len(n)):
        for s in range(0, S, WIDTH):
            sums = wide_every(0.0)
            for v in range(book.offset[book.n_single + b], book.offset[book.n_single + b + 1]):
                sums = add(sums, wide_load(counts, v * S + s, S - s))
            wide_store(found, b * S + s, sums, S - s)


@compiled
def draw_t(book, hyper, n_sv, u, omega, key, bags):
    """Counts n_sb, then t_sb ~ Beta(G_sb, n_sb), as log t. Given it the items of a bag are independent: Γ(G)/Γ(G + n) times the
    density of t is t^(G−1) (1−t)^(n−1) / Γ(n). Without cells there is nothing to divide: t = 1.
    """
    n_bags, S = bags.n.shape
    count_cells(book, n_sv, bags.n)
    for b in range(n_bags):
        for s in range(S):
            bags.log_t[b, s] = 0.0
            if bags.n[b, s] > 0:
                t_key = derive(key, b * S + s)
                x = log_gamma(total_g(book, hyper, u, omega, b, s), derive(t_key, 0))
                y = log_gamma(bags.n[b, s], derive(t_key, 1))
                top = max(x, y)
                bags.log_t[b, s] = x - top - log(exp(x - top) + exp(y - top))


@inner
def log_copy_lanes(q, e):
    """log( q exp(E) + 1 − q ) of sixteen clusters, from the larger of the two terms."""
    less, x = sub(every(np.float32(1.0)), q), exp_lanes(sub(zeros(), larger(e, sub(zeros(), e))))
    return add(larger(e, zeros()), log_lanes(where_less(zeros(), e, add(q, mul(less, x)), add(mul(q, x), less))))


@inner
def log_gamma_by(x, log_x):
    """log Γ(x) of sixteen numbers above FEW, less ½ log 2π."""
    y, series = div(wide_every(1.0), mul(x, x)), wide_every(STIRLING[5])
    for k in range(4, -1, -1):
        series = add(mul(series, y), wide_every(STIRLING[k]))
    return add(sub(mul(sub(x, wide_every(0.5)), log_x), x), div(series, x))


@inner
def fill_log_gamma(log_gamma, plain, copied):
    """log Γ of an item's two pseudo-counts, unless they are known."""
    if log_gamma[0] != log_gamma[0]:
        log_gamma[1] = lgamma(plain) - HALF_LOG_2PI
        log_gamma[0] = lgamma(copied) - HALF_LOG_2PI


@inner
def lane_rises(plain, copied, log_gamma, n):
    """(rise(copied, n), rise(plain, n)) of sixteen counts, with rise(a, n) = log Γ(a + n) / Γ(a); log_gamma is of the item."""
    most = largest(n)
    if most == 0.0:
        return wide_every(0.0), wide_every(0.0)
    above, below = wide_every(1.0), wide_every(1.0)
    for k in range(min(np.int64(most), FEW)):
        counted = wide_every(np.float64(k))
        above = where_less(counted, n, mul(above, wide_every(copied + k)), above)
        below = where_less(counted, n, mul(below, wide_every(plain + k)), below)
    if most <= FEW:
        return wide_log(above), wide_log(below)
    few = wide_every(np.float64(FEW))
    above, below = where_less(few, n, add(n, wide_every(copied)), above), where_less(few, n, add(n, wide_every(plain)), below)
    log_above, log_below = wide_log(above), wide_log(below)
    fill_log_gamma(log_gamma, plain, copied)
    high = sub(log_gamma_by(above, log_above), wide_every(log_gamma[0]))
    low = sub(log_gamma_by(below, log_below), wide_every(log_gamma[1]))
    return where_less(few, n, high, log_above), where_less(few, n, low, log_below)


@compiled
def update_bag_evidence(book, hyper, n_sv, subspaces, evidence, adds, bags, chunks, lo, hi):
    """E[s, v] given t and what an item adds to the log weight of a candidate, for the chunks lo .. hi - 1.

    E[s, v] = rise(λ(v) (1 + c), n_sv) − rise(λ(v), n_sv) + λ(v) c log t_sb, with rise(a, n) = log Γ(a + n) / Γ(a).
    """
    S, P = n_sv.shape[1], book.n_single
    lanes = len(adds) // (n_sv.shape[0] + 1)
    q, held = subspaces.q, subspaces.held
    counts, found, log_t = n_sv.reshape(-1), evidence.reshape(-1), bags.log_t.reshape(-1)
    log_gammas = bags.log_gamma.reshape(-1)
    for k in range(lo, hi):
        joint = wide_every(0.0)
        for v in range(chunks[k, 1], chunks[k, 2]):
            d, plain = book.column[v], hyper.lam * book.base[v]
            copied = g(plain, hyper.c, 1.0, 1.0)
            log_gamma = span(log_gammas, 2 * (v - book.offset[P]), 2)
            for s in range(0, lanes, WIDTH):
                high, low = lane_rises(plain, copied, log_gamma, wide_load(counts, v * S + s, S - s))
                joint = add(joint, low)
                for_t = mul(wide_every(copied - plain), wide_load(log_t, chunks[k, 0] * lanes + s, WIDTH))
                e = add(for_t, sub(high, low))
                wide_store(found, v * S + s, e, S - s)
                if len(bags.q) > 0:
                    store(adds, (v + 1) * lanes + s, log_copy_lanes(load(bags.q, (d - P) * lanes + s), narrow(e)))
            if len(bags.q) == 0:
                for s in range(S):
                    adds[(v + 1) * lanes + s] = log_copy(q[s, d], evidence[v, s])
            for s in range(len(held)):
                if held[s, d] >= 0:
                    adds[(v + 1) * lanes + s] = held[s, d] * evidence[v, s]
        bags.part[k] = total(joint)


@inner
def lane_rise(plain, copied, log_gamma, n):
    """rise(plain, n) of sixteen counts as factors, whose logarithms are still to be taken, and terms."""
    most, factors = largest(n), wide_every(1.0)
    for k in range(min(np.int64(most), FEW)):
        factors = where_less(wide_every(np.float64(k)), n, mul(factors, wide_every(plain + k)), factors)
    if most <= FEW:
        return factors, wide_every(0.0)
    fill_log_gamma(log_gamma, plain, copied)
    few, x = wide_every(np.float64(FEW)), add(n, wide_every(plain))
    terms = sub(log_gamma_by(x, wide_log(x)), wide_every(log_gamma[1]))
    return where_less(few, n, wide_every(1.0), factors), where_less(few, n, terms, wide_every(0.0))


@inner
def stirling(x):
    """log Γ(x) of a number above FEW, less ½ log 2π."""
    y, series = 1.0 / (x * x), STIRLING[5]
    for k in range(4, -1, -1):
        series = series * y + STIRLING[k]
    return (x - 0.5) * log(x) - x + series / x


@compiled
def add_up_items(book, hyper, n_sv, bags, chunks, lo, hi):
    """The log joint with ω = 0, as `update_bag_evidence` leaves it, for the chunks lo .. hi - 1, and nothing else."""
    S = n_sv.shape[1]
    counts, log_gammas = n_sv.reshape(-1), bags.log_gamma.reshape(-1)
    for k in range(lo, hi):
        joint, product, n = wide_every(0.0), wide_every(1.0), 0
        for v in range(chunks[k, 1], chunks[k, 2]):
            plain = hyper.lam * book.base[v]
            copied = g(plain, hyper.c, 1.0, 1.0)
            log_gamma = span(log_gammas, 2 * (v - book.offset[book.n_single]), 2)
            for s in range(0, S, WIDTH):
                factors, terms = lane_rise(plain, copied, log_gamma, wide_load(counts, v * S + s, S - s))
                joint = add(joint, terms)
                if plain > LARGE:
                    joint = add(joint, wide_log(factors))
                    continue
                product, n = mul(product, factors), n + 1
                if n == PRODUCT:
                    joint, product, n = add(joint, wide_log(product)), wide_every(1.0), 0
        bags.part[k] = total(add(joint, wide_log(product)))


@compiled
def update_own_items(book, hyper, n_sv, u, evidence, bags, lo, hi):
    """E[s, v] given t for the items of the prototypes lo .. hi - 1: all that ω needs if no prototype is drawn.

    After `add_up_items`, which fills log_gamma.
    """
    P = book.n_single
    for s in range(lo, hi):
        for k in range(P, u.shape[1]):
            v = u[s, k]
            if v < 0:  # no more items
                break
            plain, n = hyper.lam * book.base[v], np.int64(n_sv[v, s])
            copied = g(plain, hyper.c, 1.0, 1.0)
            e = (copied - plain) * bags.log_t[book.feature[v] - P, s]
            if n <= FEW:
                above = below = 1.0
                for i in range(n):
                    above, below = above * (copied + i), below * (plain + i)
                evidence[v, s] = e + log(above / below)
            else:
                log_gamma = bags.log_gamma[v - book.offset[P]]
                evidence[v, s] = e + (stirling(copied + n) - log_gamma[0]) - (stirling(plain + n) - log_gamma[1])


@compiled
def forget_items(book, u, omega, prob):
    """ω and its probability back to 0 for the items of the last prototypes. All others, and these are many, are 0 already."""
    for s in range(len(u)):
        for k in range(book.n_single, u.shape[1]):
            if u[s, k] < 0:  # no more items
                break
            omega[s, book.column[u[s, k]]], prob[s, book.column[u[s, k]]] = False, 0.0


@compiled
def update_bag_omega(book, hyper, u, evidence, subspaces, key, bags, prob, lo, hi):
    """ω_sv of the items of the prototypes lo .. hi - 1, given t; prob[s, d] = p(ω = 1 | rest). All are 0 before.

    bags.copied[s] ← log p(ω) + Σ ω (rise(λ(v) (1 + c), n) − rise(λ(v), n)) − Σ_b rise(G_sb, n_sb), with t integrated out.
    """
    omega, q, held, P = subspaces.omega, subspaces.q, subspaces.held, book.n_single
    prior = log_odds = log_q = log_not = -1.0
    for s in range(lo, hi):
        row_key, total = derive(key, s), 0.0
        for k in range(P, u.shape[1]):
            v = u[s, k]
            if v < 0:  # no more items
                break
            d, plain = book.column[v], hyper.lam * book.base[v]
            copied = g(plain, hyper.c, 1.0, 1.0)
            if q[s, d] != prior:  # most are the same
                prior = q[s, d]
                log_odds, log_q, log_not = omega_logit(prior, 0.0), log(prior), log(1.0 - prior)
            if len(held) > 0 and held[s, d] >= 0:
                prob[s, d] = omega[s, d] = held[s, d]
            else:
                prob[s, d] = 1.0 / (1.0 + exp(-(log_odds + evidence[v, s])))
                omega[s, d] = uniform(row_key, d) < prob[s, d]
                total += log_q if omega[s, d] else log_not
            if omega[s, d]:  # E without the part of t
                total += evidence[v, s] - (copied - plain) * bags.log_t[book.feature[v] - P, s]
        for b in range(len(bags.n)):
            if bags.n[b, s] > 0:
                total -= short_rise(total_g(book, hyper, u, omega, b, s), np.int64(bags.n[b, s]))
        bags.copied[s] = total


@inner
def item_g(book, hyper, u_on, v):
    """g_sb(v): of a bag only items of the prototype can be on."""
    return g(hyper.lam * book.base[v], hyper.c, u_on, 1.0)


def list_copied(book, u, omega):
    """(first place in u.flat where an item is copied, −1 if nowhere; the next place after each): few, where ω has many."""
    first, then = np.full(len(book.column) - book.offset[book.n_single], -1), np.empty(u.size, dtype=np.int64)
    fill_copied(book, u, omega, first, then)
    return first, then


@compiled
def fill_copied(book, u, omega, first, then):
    start, width = book.offset[book.n_single], u.shape[1]
    for s in range(len(u)):
        for k in range(book.n_single, width):
            v = u[s, k]
            if v < 0:  # no more items
                break
            if omega[s, book.column[v]]:
                then[s * width + k], first[v - start] = first[v - start], s * width + k


@compiled
def draw_bag_gammas(book, hyper, state, copied, key, bags, chunks, scratch, lo, hi):
    """Gamma(g_sb(v) + n_sv) draws of the chunks lo .. hi - 1, which φ_sb are made of by dividing by their sum.

    copied: from `list_copied`. WIDTH items are drawn together: they fill whole lanes.
    """
    keys, numbers, shapes, log_phi = scratch.keys, scratch.numbers, scratch.shapes, bags.log_phi
    S, lanes, counts = state.n_sv.shape[1], bags.sums.shape[1], state.n_sv.reshape(-1)
    for k in range(lo, hi):
        j, end = book.n_single + chunks[k, 0], chunks[k, 2]
        for i in range(WIDTH * S):
            keys[i] = derive(key, j * S + i % S)
        bags.sums[k] = 0.0
        sums, at = bags.sums[k], draws_of(book, chunks, k, S, lanes)
        for v in range(chunks[k, 1], end, WIDTH):
            some = min(WIDTH, end - v)
            fill_shapes(book, hyper, counts, S, copied, v, some, shapes)
            draw_log_gammas(keys, numbers, v - book.offset[j], shapes, some * S, log_phi, at)
            for s in range(0, lanes, WIDTH):
                part = wide_load(sums, s, WIDTH)
                for i in range(some):
                    drawn = first_lanes(load(log_phi, at + i * S + s), S - s, np.float32(0.0))
                    part = add(part, widen(exp_lanes(drawn)))
                wide_store(sums, s, part, WIDTH)
            at += some * S


@inner
def draws_of(book, chunks, k, S, lanes):
    """Where the draws of chunk k begin: item after item, label after label, and room for the last lanes."""
    return (chunks[k, 1] - book.offset[book.n_single]) * S + k * lanes


@inner
def fill_shapes(book, hyper, counts, S, copied, v, some, shapes):
    """g_sb + n_s of the items v .. v + some - 1, side by side; counts is n_sv.flat."""
    start, (first, then) = book.offset[book.n_single], copied
    width = len(then) // S
    for i in range(some):
        plain = item_g(book, hyper, False, v + i)
        for s in range(0, S, WIDTH):
            store(shapes, i * S + s, narrow(add(wide_every(plain), wide_load(counts, (v + i) * S + s, S - s))))
        place = first[v + i - start]
        while place >= 0:
            s = place // width
            shapes[i * S + s] = item_g(book, hyper, True, v + i) + counts[(v + i) * S + s]
            place = then[place]


@compiled
def fill_bag_phi(book, log_total, tables, bags, chunks, log_phi, lo, hi):
    """φ_sb of the chunks lo .. hi - 1 to the tables of rows; log_total is (bags · lanes,), log_phi for the item at hand."""
    S, lanes = len(tables.a), bags.sums.shape[1]
    for k in range(lo, hi):
        at = draws_of(book, chunks, k, S, lanes)
        for v in range(chunks[k, 1], chunks[k, 2]):
            for s in range(0, lanes, WIDTH):
                value = sub(load(bags.log_phi, at + s), load(log_total, chunks[k, 0] * lanes + s))
                store(log_phi, s, first_lanes(value, S - s, np.float32(0.0)))
            fill_row(tables, log_phi, np.int64(0), v + 1, lanes)
            at += S


@compiled
def add_bag_values(book, hyper, state, n_sb, to, weight, mean, table):
    """As `means.add_values`, for the items of bags."""
    S = state.n_sv.shape[1]
    for b in range(len(n_sb)):
        j = book.n_single + b
        for s in range(S):
            total = total_g(book, hyper, state.u, state.omega, b, s) + n_sb[b, s]
            for v in range(book.offset[j], book.offset[j + 1]):
                value = (item_g(book, hyper, state.omega[s, book.column[v]], v) + state.n_sv[v, s]) / total
                mean[v, to[s]] += weight * (value - mean[v, to[s]])
                if len(table) > 0:
                    table[v, to[s]] = value
