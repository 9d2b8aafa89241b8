"""z with φ integrated out: the paper's sampler, cell by cell, and cases reseated as a whole. In sequence: counts change."""

from math import exp, log

import numpy as np

from ..equations import compiled, inner, z_weight
from ..rng import categorical, derive, uniform
from .intrinsics import borrow, span
from .rows import note_row, row_labels
from .tables import fill_g


@inner
def fill_pseudo_counts(book, hyper, state, g_sv, g_sum):
    """g_sj(v) of every cluster and its sum over v."""
    S, P = state.omega.shape
    for s in range(S):
        for j in range(P):
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], g_sv, np.int64(0), s)
    for j in range(P):
        for v in range(book.offset[j], book.offset[j + 1]):
            g_sum[j] += g_sv[v]


@compiled
def move_case(x, z, n_sv, n_sj, g_sv, g_sum, log_prior, u, row):
    """All cells of a case, which share a label: s with weight prior_s Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj).

    Returns whether it moved.
    """
    S, P, a, w, n = len(log_prior), len(x), 0, row.weight, row.n
    w[:S] = log_prior
    for j in range(P):
        v = x[j]
        if v >= 0:
            a = z[j]
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                w[s] += log(z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s]))
    top = w[:S].max()
    for s in range(S):
        w[s] = exp(w[s] - top)
    b = categorical(w, S, u)
    for j in range(P):
        v = x[j]
        if v >= 0:
            z[j] = b
            n_sv[v, b] += 1
            n_sj[j, b] += 1
    n[b], n[a] = n[a], n[b]
    return a != b


@compiled
def update_z_collapsed(block, book, hyper, state, n_sj, key, scratch):
    """One pass over all cells: remove, weigh, draw, add. At α = 0 over all cases, each as a whole."""
    S, P = state.omega.shape
    n_sv, row, tally = state.n_sv, borrow(scratch.row), borrow(scratch.tally)
    x, z, held = borrow(block.x), borrow(block.z), borrow(block.held)
    g_sv, g_sum = np.empty(n_sv.shape), np.zeros((P, S))
    fill_pseudo_counts(book, hyper, state, g_sv, g_sum)
    w, n, used = row.weight, row.n, row.used
    log_beta = np.log(hyper.beta)
    tally.delta[:] = 0
    tally.n_rows[:] = 0
    tally.main[:] = 0
    tally.moved[:] = 0
    tally.purity[:] = 0
    n[:] = 0
    for i in range(block.size):
        xi, zi = span(x, i * P, P), span(z, i * P, P)
        if row_labels(xi, zi, True, n, used) == 0:
            continue
        row_key = derive(key, block.number + i)
        is_held = len(held) > 0 and held[i] >= 0
        if hyper.alpha == 0.0 and not is_held:
            tally.moved[1] += move_case(xi, zi, n_sv, n_sj, g_sv, g_sum, log_beta, uniform(row_key, 0), row)
        for j in range(P if hyper.alpha > 0.0 and not is_held else 0):
            v = xi[j]
            if v < 0:
                continue
            a = zi[j]
            n[a] -= 1
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                prior = hyper.alpha * hyper.beta[s]
                w[s] = z_weight(prior, n[s], g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])
            b = categorical(w, S, uniform(row_key, j))
            zi[j] = b
            n[b] += 1
            n_sv[v, b] += 1
            n_sj[j, b] += 1
            tally.moved[0] += b != a
        k = 0
        for s in range(S):
            if n[s] > 0:
                used[k] = s
                k += 1
        note_row(k, row, tally)


@compiled
def reseat(block, book, hyper, state, u, m, row):
    """The label of each case of a block, all of whose cells share one, with φ and β integrated out; m_s ← tables of label s.

    s has weight (γ/S + m_s) Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), without the case.
    """
    S, P = state.omega.shape
    x, z = borrow(block.x), borrow(block.z)
    g_sv, g_sum, n_sj = np.empty(state.n_sv.shape), np.zeros((P, S)), np.zeros((P, S))
    fill_pseudo_counts(book, hyper, state, g_sv, g_sum)
    for j in range(P):
        for v in range(book.offset[j], book.offset[j + 1]):
            n_sj[j] += state.n_sv[v]
    n = row.n
    n[:] = 0
    for i in range(block.size):
        xi, zi = span(x, i * P, P), span(z, i * P, P)
        row_labels(xi, zi, True, n, row.used)
        a, size = row.used[0], int(n[row.used[0]])
        m[a] -= 1
        state.n_rows[a, size] -= 1
        move_case(xi, zi, state.n_sv, n_sj, g_sv, g_sum, np.log(hyper.gamma / S + m), u[i], row)
        b = np.argmax(n)
        m[b] += 1
        state.n_rows[b, size] += 1
        n[b] = 0
