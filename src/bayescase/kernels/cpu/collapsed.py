"""z with φ integrated out: the paper's sampler, cell by cell, and cases reseated as a whole.

Nothing here runs in parallel, since every move changes the counts.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..equations import z_weight
from ..rng import categorical, derive, uniform
from .bags import item_g
from .intrinsics import span
from .labels import note_row, row_labels, used_labels
from .sums import row_span
from .tables import fill_g

FACTORS = 8  # weights that are multiplied before their logarithm is taken


class Weights(NamedTuple):
    """Room for what a label is weighed by."""

    g_sv: np.ndarray  # (ΣV, S) g_sj(v)
    g_sum: np.ndarray  # (F, S) its sum over the values of a feature
    n_sj: np.ndarray  # (F, S) cells
    log_prior: np.ndarray  # (S,) of a case's label
    product: np.ndarray  # (S,) of the weights of a few cells


def make_weights(book, S):
    F, V = len(book.offset) - 1, int(book.offset[-1])
    return Weights(np.zeros((V, S)), np.zeros((F, S)), np.zeros((F, S)), np.zeros(S), np.zeros(S))


@inner
def fill_pseudo_counts(book, hyper, state, weights):
    """g_sj(v) of every cluster and its sum over v."""
    g_sv, g_sum = weights.g_sv, weights.g_sum
    for s in range(len(state.omega)):
        for j in range(book.n_single):
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], g_sv, np.int64(0), s)
        for v in range(book.offset[book.n_single], book.offset[-1]):
            g_sv[v, s] = item_g(book, hyper, state.omega[s, book.column[v]], v)
    for j in range(len(g_sum)):
        for v in range(book.offset[j], book.offset[j + 1]):
            for s in range(g_sum.shape[1]):
                g_sum[j, s] += g_sv[v, s]


@inner
def count_features(book, n_sv, n_sj):
    """n_sj ← the cells of every feature and cluster; 0 before."""
    for v in range(len(n_sv)):
        j = book.feature[v]
        for s in range(n_sj.shape[1]):
            n_sj[j, s] += n_sv[v, s]


@compiled
def move_case(x, z, book, n_sv, n_sj, weights, u, w, n):
    """All cells of a case, which share a label: s with weight prior_s Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj).

    Returns whether it moved.
    """
    S, a, feature, g_sv, g_sum = len(weights.log_prior), 0, book.feature, weights.g_sv, weights.g_sum
    product = weights.product
    for s in range(S):
        w[s], product[s] = weights.log_prior[s], 1.0
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
            for s in range(S if j >= book.n_single else 0):  # the items of a bag come in turn: each counts for the next
                n_sv[v, s] += 1
                n_sj[j, s] += 1
        if i % FACTORS == FACTORS - 1 or i == len(x) - 1:
            for s in range(S):
                w[s] += log(product[s])
                product[s] = 1.0
    for i in range(len(x)):
        v = x[i]
        if v >= 0 and feature[v] >= book.n_single:
            for s in range(S):
                n_sv[v, s] -= 1
                n_sj[feature[v], s] -= 1
    top = w[0]
    for s in range(1, S):
        top = max(top, w[s])
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
def update_z_collapsed(block, book, hyper, state, n_sj, key, scratch, weights):
    """One pass over all cells: remove, weigh, draw, add. At α = 0 over all cases, each as a whole."""
    S, feature, n_sv, row, tally = len(state.omega), book.feature, state.n_sv, scratch.row, scratch.tally
    fill_pseudo_counts(book, hyper, state, weights)
    g_sv, g_sum, w, n, used = weights.g_sv, weights.g_sum, scratch.weight, row.n, row.used
    for s in range(S):
        n[s], weights.log_prior[s] = 0, log(hyper.beta[s])
    for i in range(block.size):
        start, size = row_span(block, i)
        xi, zi = span(block.x, start, size), span(block.z, start, size)
        if row_labels(xi, zi, True, n, used) == 0:
            continue
        row_key = derive(key, block.number + i)
        is_held = len(block.held) > 0 and block.held[i] >= 0
        if hyper.alpha == 0.0 and not is_held:
            tally.moved[1] += move_case(xi, zi, book, n_sv, n_sj, weights, uniform(row_key, 0), w, n)
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
def reseat(block, book, hyper, state, u, m, scratch, weights):
    """The label of each case of a block, all of whose cells share one, with φ and β integrated out; m_s ← tables of label s.

    s has weight (γ/S + m_s) Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), without the case.
    """
    S, n_sj = len(state.omega), weights.n_sj
    fill_pseudo_counts(book, hyper, state, weights)
    count_features(book, state.n_sv, n_sj)
    row = scratch.row
    n = row.n
    n[:] = 0
    for i in range(block.size):
        start, cells = row_span(block, i)
        xi, zi = span(block.x, start, cells), span(block.z, start, cells)
        row_labels(xi, zi, True, n, row.used)
        a, size = row.used[0], int(n[row.used[0]])
        m[a] -= 1
        state.n_rows[a, size] -= 1
        for s in range(S):
            weights.log_prior[s] = log(hyper.gamma / S + m[s])
        move_case(xi, zi, book, state.n_sv, n_sj, weights, u[i], scratch.weight, n)
        b = np.argmax(n)
        m[b] += 1
        state.n_rows[b, size] += 1
        n[b] = 0
