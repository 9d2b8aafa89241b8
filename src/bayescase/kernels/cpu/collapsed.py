"""z with φ integrated out: the paper's sampler, cell by cell, and cases reseated as a whole.

Nothing here runs in parallel, since every move changes the counts.
"""

from math import exp, log

import numpy as np

from ..compiling import compiled, inner
from ..equations import z_weight
from ..rng import categorical, derive, uniform
from .bags import item_g
from .intrinsics import borrow, span
from .labels import note_row, row_labels, used_labels
from .sums import row_span
from .tables import fill_g

FACTORS = 8  # weights that are multiplied before their logarithm is taken


@inner
def fill_pseudo_counts(book, hyper, state, g_sv, g_sum):
    """g_sj(v) of every cluster and its sum over v."""
    for s in range(len(state.omega)):
        for j in range(book.n_single):
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], g_sv, np.int64(0), s)
        for v in range(book.offset[book.n_single], book.offset[-1]):
            g_sv[v, s] = item_g(book, hyper, state.omega[s, book.column[v]], v)
    for j in range(len(g_sum)):
        for v in range(book.offset[j], book.offset[j + 1]):
            g_sum[j] += g_sv[v]


@compiled
def move_case(x, z, book, n_sv, n_sj, g_sv, g_sum, log_prior, u, w, product, n):
    """All cells of a case, which share a label: s with weight prior_s Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj).

    Returns whether it moved.
    """
    S, a, feature = len(log_prior), 0, book.feature
    w[:S], product[:] = log_prior, 1.0
    for i in range(len(x)):
        v = x[i]
        if v >= 0:
            n_sv[v, z[i]] -= 1
            n_sj[feature[v], z[i]] -= 1
    for i in range(len(x)):
        v = x[i]
        if v >= 0:
            a, j = z[i], feature[v]
            for s in range(S):
                product[s] *= z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])
            if j >= book.n_single:  # the items of a bag come one after the other: each counts for the next
                n_sv[v] += 1
                n_sj[j] += 1
        if i % FACTORS == FACTORS - 1:
            for s in range(S):
                w[s] += log(product[s])
            product[:] = 1.0
    for i in range(len(x)):
        v = x[i]
        if v >= 0 and feature[v] >= book.n_single:
            n_sv[v] -= 1
            n_sj[feature[v]] -= 1
    for s in range(S):
        w[s] += log(product[s])
    top = w[:S].max()
    for s in range(S):
        w[s] = exp(w[s] - top)
    b = categorical(w, S, u)
    for i in range(len(x)):
        v = x[i]
        if v >= 0:
            z[i] = b
            n_sv[v, b] += 1
            n_sj[feature[v], b] += 1
    n[b], n[a] = n[a], n[b]
    return a != b


@compiled
def update_z_collapsed(block, book, hyper, state, n_sj, key, scratch):
    """One pass over all cells: remove, weigh, draw, add. At α = 0 over all cases, each as a whole."""
    S, F, feature = len(state.omega), len(book.offset) - 1, book.feature
    n_sv, row, tally = state.n_sv, borrow(scratch.row), borrow(scratch.tally)
    block = borrow(block)
    g_sv, g_sum = np.empty(n_sv.shape), np.zeros((F, S))
    fill_pseudo_counts(book, hyper, state, g_sv, g_sum)
    w, n, used = borrow(scratch.weight), row.n, row.used
    log_beta, product = np.log(hyper.beta), np.empty(S)
    n[:] = 0
    for i in range(block.size):
        start, size = row_span(block, i)
        xi, zi = span(block.x, start, size), span(block.z, start, size)
        if row_labels(xi, zi, True, n, used) == 0:
            continue
        row_key = derive(key, block.number + i)
        is_held = len(block.held) > 0 and block.held[i] >= 0
        if hyper.alpha == 0.0 and not is_held:
            tally.moved[1] += move_case(xi, zi, book, n_sv, n_sj, g_sv, g_sum, log_beta, uniform(row_key, 0), w, product, n)
        for cell in range(size if hyper.alpha > 0.0 and not is_held else 0):
            v = xi[cell]
            if v < 0:
                continue
            a, j = zi[cell], feature[v]
            n[a] -= 1
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                prior = hyper.alpha * hyper.beta[s]
                w[s] = z_weight(prior, n[s], g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])
            b = categorical(w, S, uniform(row_key, cell))
            zi[cell] = b
            n[b] += 1
            n_sv[v, b] += 1
            n_sj[j, b] += 1
            tally.moved[0] += b != a
        note_row(used_labels(n, used), row, tally)


@compiled
def reseat(block, book, hyper, state, u, m, scratch):
    """The label of each case of a block, all of whose cells share one, with φ and β integrated out; m_s ← tables of label s.

    s has weight (γ/S + m_s) Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), without the case.
    """
    S, F, block = len(state.omega), len(book.offset) - 1, borrow(block)
    g_sv, g_sum, n_sj = np.empty(state.n_sv.shape), np.zeros((F, S)), np.zeros((F, S))
    fill_pseudo_counts(book, hyper, state, g_sv, g_sum)
    for j in range(F):
        for v in range(book.offset[j], book.offset[j + 1]):
            n_sj[j] += state.n_sv[v]
    row, product = scratch.row, np.empty(S)
    n = row.n
    n[:] = 0
    for i in range(block.size):
        start, cells = row_span(block, i)
        xi, zi = span(block.x, start, cells), span(block.z, start, cells)
        row_labels(xi, zi, True, n, row.used)
        a, size = row.used[0], int(n[row.used[0]])
        m[a] -= 1
        state.n_rows[a, size] -= 1
        move_case(xi, zi, book, state.n_sv, n_sj, g_sv, g_sum, np.log(hyper.gamma / S + m), u[i], scratch.weight, product, n)
        b = np.argmax(n)
        m[b] += 1
        state.n_rows[b, size] += 1
        n[b] = 0
