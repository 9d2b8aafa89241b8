"""Counts and running means of the draws: memberships, row by row; values, feature by feature."""

import numpy as np

from ...state import Codebook
from ..compiling import compiled, inner
from .intrinsics import span
from .labels import count_gaps, row_labels
from .sums import row_span
from .tables import fill_g

OVERLAP_UNIT = 65536.0


@compiled
def find_single(block):
    """Which rows have one label: block.one from block.z. A row without cells counts as one of label 0."""
    for i in range(block.size):
        start, size = row_span(block, i)
        z, own, mixed = span(block.z, start, size), np.int64(0), False
        if block.gaps:
            seen = False
            for c in range(size):
                if block.x[start + c] >= 0:
                    mixed |= seen and z[c] != own
                    own, seen = np.int64(z[c]), True
        elif size > 0:
            first = z[0]
            for c in range(size):
                mixed |= z[c] != first
            own = np.int64(first)
        block.one[i] = -1 if mixed else own


@compiled
def spell_out(block):
    """Write the label of single-label rows into their cells; until then it is in block.one alone."""
    for i in range(block.size):
        if block.one[i] >= 0:
            start, size = row_span(block, i)
            block.z[start : start + size] = block.one[i]


@inner
def labels_of(block, i, n, used):
    """n_is of row i and the labels in use; n must be 0 before. Returns how many labels there are."""
    start, size = row_span(block, i)
    x = span(block.x, start, size)
    if block.one[i] < 0:
        return row_labels(x, span(block.z, start, size), block.gaps, n, used)
    cells = size - count_gaps(x) if block.gaps else size
    if cells == 0:
        return 0
    used[0] = block.one[i]
    n[used[0]] = cells
    return 1


@compiled
def add_z_counts(block, n, n_sv, n_rows, lo, hi):
    """Add the counts of z of the rows lo .. hi - 1. n is (S,), 0 before and after."""
    for i in range(lo, hi):
        start, size = row_span(block, i)
        xi, zi, one = span(block.x, start, size), span(block.z, start, size), block.one[i]
        for j in range(size):
            if xi[j] >= 0:
                s = np.int64(zi[j]) if one < 0 else one
                n_sv[xi[j], s] += 1
                n[s] += 1
        for s in range(len(n)):
            if n[s] > 0:
                n_rows[s, n[s]] += 1
                n[s] = 0


@compiled
def add_overlap(block, mean, n, used, total, lo, hi):
    """total[r, s] += Σ_i mean[i, r] n_is / n_i: how much label s of this draw lies on reference label r.

    Over the rows lo .. hi - 1, in units of 2⁻¹⁶, an integer: it adds up in any order.
    """
    S = mean.shape[1]
    for i in range(lo, hi):
        k = labels_of(block, i, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for t in range(k):
            s = used[t]
            for r in range(S):
                unit = mean[i, r] * OVERLAP_UNIT
                total[r, s] += np.int64(unit + 0.5 if k == 1 else unit / observed * n[s] + 0.5)
            n[s] = 0


def add_memberships(block, alpha, beta, to, weight, mean, n, used, lo, hi):
    """mean[i] += weight (E[π_i | z] − mean[i]), with E[π_is | z] = (α β_s + n_is) / (α + n_i); label s counts as to[s]."""
    prior = np.empty(len(beta))
    prior[to] = alpha * beta
    add_means(block, alpha, beta, prior, to, weight, mean, n, used, lo, hi)


@compiled
def add_means(block, alpha, beta, prior, to, weight, mean, n, used, lo, hi):
    """prior[to[s]] is α β_s, all that most labels of a row with one label have."""
    S = mean.shape[1]
    for i in range(lo, hi):
        k = labels_of(block, i, n, used)
        if k == 1:
            s, row = used[0], mean[i]
            total, before = alpha + n[s], row[to[s]]
            for r in range(S):
                row[r] += weight * (prior[r] / total - row[r])
            row[to[s]] = before + weight * ((alpha * beta[s] + n[s]) / total - before)
            n[s] = 0
            continue
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for s in range(S):
            pi = (alpha * beta[s] + n[s]) / (alpha + observed) if k else beta[s]
            mean[i, to[s]] += weight * (pi - mean[i, to[s]])
        for t in range(k):
            n[used[t]] = 0


def copied(book: Codebook, u: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """(ΣV, S) ω_sj K_j(p_sj, v): how much of each value's pseudo-counts is copied from the prototype."""
    k_sv = np.zeros((int(book.offset[-1]), len(omega)))
    fill_copied(book, u, omega, k_sv)
    return k_sv


@compiled
def fill_copied(book, u, omega, k_sv):
    for s in range(len(omega)):
        for v in range(book.offset[book.n_single], book.offset[-1]):  # items: only those of the prototype can be on
            k_sv[v, s] = omega[s, book.column[v]]
        for j in range(book.n_single):
            if u[s, j] >= 0 and omega[s, j]:
                for k in range(book.k_ptr[u[s, j]], book.k_ptr[u[s, j] + 1]):
                    k_sv[book.k_idx[k], s] = book.k_val[k]


@compiled
def add_values(book, hyper, state, to, weight, value, mean, table):
    """mean[v] += weight (E[φ(v) | z, p, ω] − mean[v]), with E[φ_sj(v)] = (g_sj(v) + n_sv) / (Σ_v g_sj(v) + n_sj).

    The draw's own E[φ] is left in `table`, unless that has no rows; `value` is scratch, (V, S).
    """
    S = len(state.omega)
    for j in range(book.n_single):
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
