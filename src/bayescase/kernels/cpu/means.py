"""Counts and running means of the draws: memberships, row by row; values, feature by feature."""

import numpy as np

from ..equations import compiled
from .intrinsics import borrow, span
from .rows import row_labels
from .tables import fill_g


@compiled
def fill_counts(block, n_sv, n_rows):
    """The counts of z, from nothing."""
    x, z, P = borrow(block.x), borrow(block.z), block.width
    n = np.zeros(n_sv.shape[1])
    n_sv[:] = 0
    n_rows[:] = 0
    for i in range(block.size):
        xi, zi = span(x, i * P, P), span(z, i * P, P)
        n[:] = 0
        for j in range(P):
            if xi[j] >= 0:
                n_sv[xi[j], zi[j]] += 1
                n[zi[j]] += 1
        for s in range(len(n)):
            if n[s] > 0:
                n_rows[s, int(n[s])] += 1


@compiled
def add_overlap(block, mean, row, total):
    """total[r, s] += Σ_i mean[i, r] n_is / n_i: how much label s of this draw lies on reference label r."""
    x, z, P = borrow(block.x), borrow(block.z), block.width
    n, used, S = row.n, row.used, mean.shape[1]
    for i in range(block.size):
        k = row_labels(span(x, i * P, P), span(z, i * P, P), block.gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for t in range(k):
            s = used[t]
            for r in range(S):
                total[r, s] += mean[i, r] * n[s] / observed
            n[s] = 0


@compiled
def add_memberships(block, alpha, beta, to, weight, row, mean):
    """mean[i] += weight (E[π_i | z] − mean[i]), with E[π_is | z] = (α β_s + n_is) / (α + n_i); label s counts as to[s]."""
    x, z, P = borrow(block.x), borrow(block.z), block.width
    n, used, S = row.n, row.used, mean.shape[1]
    for i in range(block.size):
        k = row_labels(span(x, i * P, P), span(z, i * P, P), block.gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for s in range(S):
            pi = (alpha * beta[s] + n[s]) / (alpha + observed) if k else beta[s]
            mean[i, to[s]] += weight * (pi - mean[i, to[s]])
        for t in range(k):
            n[used[t]] = 0


@compiled
def copied(book, u, omega):
    """(ΣV, S) ω_sj K_j(p_sj, v): how much of each value's pseudo-counts is copied from the prototype."""
    S, P = omega.shape
    k_sv = np.zeros((book.offset[-1], S))
    for s in range(S):
        for j in range(P):
            if u[s, j] >= 0 and omega[s, j]:
                for k in range(book.k_ptr[u[s, j]], book.k_ptr[u[s, j] + 1]):
                    k_sv[book.k_idx[k], s] = book.k_val[k]
    return k_sv


@compiled
def add_values(book, hyper, state, to, weight, value, mean, table):
    """mean[v] += weight (E[φ(v) | z, p, ω] − mean[v]), with E[φ_sj(v)] = (g_sj(v) + n_sv) / (Σ_v g_sj(v) + n_sj).

    The draw's own E[φ] is left in `table`, unless that has no rows; `value` is scratch, (V, S).
    """
    S, P = state.omega.shape
    for j in range(P):
        v0, v1 = book.offset[j], book.offset[j + 1]
        for s in range(S):
            fill_g(book, hyper, j, state.u[s, j], state.omega[s, j], value, v0, s)
            total = 0.0
            for v in range(v0, v1):
                value[v - v0, s] += state.n_sv[v, s]
                total += value[v - v0, s]
            for v in range(v0, v1):
                value[v - v0, s] /= total
                mean[v, to[s]] += weight * (value[v - v0, s] - mean[v, to[s]])
                if len(table) > 0:
                    table[v, to[s]] = value[v - v0, s]
