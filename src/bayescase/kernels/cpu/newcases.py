"""New cases, folded in row by row given tables of φ: memberships, and the probability of a case.

Random numbers are keyed by the case's own values, so a case gets the same answer in any batch and at any position.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..equations import compiled, inner
from ..rng import categorical, derive, uniform
from .intrinsics import span
from .rows import group_sums, move_cells, relabel_row, row_labels, row_sums
from .tables import ROWS, Scratch, Tables, fill_row, lanes_for, make_scratch, make_tables, row_rises

BURN, KEEP = 3, 6  # sweeps of a new case per table: there are several tables, and they differ more than the sweeps
PARTICLES, STOPS = 4, 32  # of the left-to-right estimate


class Fold(NamedTuple):
    """One table of φ made ready for the row kernels."""

    tables: Tables
    log_top: np.ndarray  # (ΣV + 1,) the maximum over s that `log_phi` lacks
    alpha: float
    beta: np.ndarray  # (S,)
    scratch: Scratch
    z: np.ndarray  # (ROWS · P,)


def make_fold(offset, hyper, phi):
    """phi is (ΣV, S); of hyper α and β are used."""
    S, P = phi.shape[1], len(offset) - 1
    tables = make_tables(offset, S)
    tables.a[:] = hyper.alpha * hyper.beta
    tables.rise[:] = row_rises(hyper, P)
    phi = phi.astype(float)
    log_phi = np.log(np.maximum(phi, 1e-300))
    fill_rows(offset, tables, log_phi, phi, lanes_for(S))
    z = np.zeros(ROWS * P, dtype=np.int64)
    log_top = np.append(0.0, log_phi.max(axis=1))
    return Fold(tables, log_top, hyper.alpha, hyper.beta, make_scratch(offset, S, z.dtype), z)


@compiled
def fill_rows(offset, tables, log_phi, phi, lanes):
    for j in range(len(offset) - 1):
        for v in range(offset[j], offset[j + 1]):
            fill_row(tables, log_phi, phi, v, v + 1, j, v == offset[j], lanes)


@compiled
def row_hash(x):
    """64 bits that depend on every cell of a row and on its place."""
    key = np.uint64(len(x))
    for j in range(len(x)):
        key = derive(key, np.int64(x[j]) + 1)
    return key


def row_hashes(x):
    """(N,) the hash of every row of a table."""
    out = np.empty(len(x), dtype=np.uint64)
    fill_hashes(x, out)
    return out


@compiled
def fill_hashes(x, out):
    for i in range(len(x)):
        out[i] = row_hash(x[i])


@compiled
def sweep_row(x, z, fold, key, sums, at):
    """One relabel and cell sweep over the cells x of a row; its `row_sums` are at sums[at]. Returns the labels in use."""
    tables, row = fold.tables, fold.scratch.row
    lanes = len(fold.scratch.sums) // ROWS
    k = row_labels(x, z, True, row.n, row.used)
    if k < len(fold.beta):
        group_sums(x, z, tables.log_phi, lanes, k, sums, at, row)
        relabel_row(x, z, tables.rise, key, row.groups, np.int64(0), lanes, k, row)
    if fold.alpha > 0.0:
        _, k = move_cells(x, z, tables, key, k, row)
    return k


@compiled
def fold_in(x, fold, seed, mean):
    """mean[i] += E[π_i | x_i, φ], by Gibbs sampling with π integrated out; exact at α = 0."""
    S, P = len(fold.beta), x.shape[1]
    lanes = len(fold.scratch.sums) // ROWS
    sums, n, used = fold.scratch.sums, fold.scratch.row.n, fold.scratch.row.used
    alpha, beta, a, rise, z = fold.alpha, fold.beta, fold.tables.a, fold.tables.rise, fold.z
    x = x.reshape(-1)
    n[:] = 0
    w = np.zeros(S)
    for i0 in range(0, len(mean), ROWS):
        i1 = min(i0 + ROWS, len(mean))
        row_sums(fold.tables.log_phi, lanes, x, P, i0, i1, sums)
        for i in range(i1 - i0):
            xi, zi = span(x, (i0 + i) * P, P), span(z, i * P, P)
            observed = 0
            for j in range(P):
                observed += xi[j] >= 0
            total = 0.0
            top = -np.inf
            for s in range(S):
                w[s] = sums[i * lanes + s] + rise[observed, s]
                top = max(top, w[s])
            for s in range(S):
                w[s] = exp(w[s] - top)
                total += w[s]
            if alpha == 0.0 or observed == 0:
                for s in range(S):
                    mean[i0 + i, s] += w[s] / total if observed else beta[s]
                continue
            key = derive(seed, row_hash(xi))
            zi[:] = categorical(w, S, uniform(key, 0))
            for t in range(BURN + KEEP):
                k = sweep_row(xi, zi, fold, derive(key, t + 1), sums, i * lanes)
                if t >= BURN:
                    for s in range(S):
                        mean[i0 + i, s] += (a[s] + n[s]) / (alpha + observed) / KEEP
                for t in range(k):
                    n[used[t]] = 0


@compiled
def predict_pure(x, fold, prob, out):
    """If the cells before j share one label: prob[j, s] that it is s, and out[j] = p(x_j | they share one, φ).

    out[j] = Σ_s prob[j, s] (n φ_s(x_j) + Σ_t a_t φ_t(x_j)) / (α + n), with n cells before.
    """
    a = fold.tables.a
    S, lanes = len(a), len(fold.scratch.sums) // ROWS
    phi, log_phi, smooth = fold.tables.phi, fold.tables.log_phi, fold.tables.smooth
    w, n = np.zeros(S), 0
    for j in range(len(x)):
        if x[j] < 0:
            continue
        v = np.intp(x[j]) + 1
        top, total, mean = w.max(), 0.0, 0.0
        for s in range(S):
            prob[j, s] = exp(w[s] - top)
            total += prob[j, s]
        for s in range(S):
            prob[j, s] /= total
            mean += prob[j, s] * phi[s, v]
        out[j] = (n * mean + smooth[v]) / (fold.alpha + n)
        for s in range(S):
            w[s] += log_phi[v * lanes + s] + log(a[s] + n)
        n += 1


@inner
def log_mixture(x, fold):
    """log Σ_s β_s Π_j φ_s(x_j): the probability of a case at α = 0."""
    S, lanes, sums = len(fold.beta), len(fold.scratch.sums) // ROWS, fold.scratch.sums
    row_sums(fold.tables.log_phi, lanes, x, len(x), np.int64(0), np.int64(1), sums)
    total = 0.0
    top = sums[:S].max()
    for s in range(S):
        total += fold.beta[s] * exp(sums[s] - top)
    base = 0.0
    for j in range(len(x)):
        base += fold.log_top[np.intp(x[j]) + 1]
    return base + top + log(total)


@inner
def left_to_right(x, fold, key, pure, prob, w):
    """log of one unbiased estimate of p(x | φ), the cells taken one after the other."""
    S, P, a, alpha = len(fold.beta), len(x), fold.tables.a, fold.alpha
    phi, smooth, n, z, sums = fold.tables.phi, fold.tables.smooth, fold.scratch.row.n, fold.z, fold.scratch.sums
    lanes, stride = len(sums) // ROWS, max(1, P // STOPS)
    seen, value, k = 0, 0.0, 0
    for j in range(P):
        if x[j] < 0:
            continue
        cell_key = derive(key, j)
        if j % stride == 0 and seen > 0:
            if k == 1:
                z[:j] = categorical(prob[j], S, uniform(cell_key, 0))
            n[:] = 0
            before = span(x, np.int64(0), j)
            row_sums(fold.tables.log_phi, lanes, before, j, np.int64(0), np.int64(1), sums)
            k = sweep_row(before, span(z, np.int64(0), j), fold, derive(cell_key, 1), sums, np.int64(0))
        v = np.intp(x[j]) + 1
        if k <= 1:
            value += log(pure[j])
            k = 1
            # x_j comes with the shared label, or as if from a fresh draw of one: σ = Σ_t a_t φ_t
            if seen > 0 and uniform(cell_key, 2) * pure[j] * (alpha + seen) < smooth[v]:
                own = categorical(prob[j], S, uniform(cell_key, 3))
                for s in range(S):
                    w[s] = a[s] * phi[s, v]
                b = categorical(w, S, uniform(cell_key, 4))
                if b != own:
                    n[:] = 0
                    n[own], n[b], k = seen, 1.0, 2
                    z[:j], z[j] = own, b
        else:
            total = 0.0
            for s in range(S):
                w[s] = (a[s] + n[s]) * phi[s, v]
                total += w[s]
            value += log(total / (alpha + seen))
            b = categorical(w, S, uniform(cell_key, 2))
            z[j] = b
            k += n[b] == 0
            n[b] += 1
        seen += 1
    n[:] = 0
    return value


@compiled
def log_probability(x, fold, seed, out):
    """out[i, r] = log of an unbiased estimate r of p(x_i | φ): left to right (Wallach et al. 2009; Buntine 2009).

    Each cell's predictive probability given the cells before it, whose labels are swept again at up to STOPS places. As long
    as these share one label, and at small α most do, it is summed over which one (k = 1 above, the label not yet drawn);
    with a label at hand, the estimate of a few runs is far too low. Exact at α = 0: log Σ_s β_s Π_j φ_s(x_ij).
    """
    S, P = len(fold.beta), x.shape[1]
    w, pure, prob = np.zeros(S), np.zeros(P), np.zeros((P, S))
    for i in range(len(x)):
        row = x[i]
        if fold.alpha == 0.0:
            out[i, :] = log_mixture(row, fold)
            continue
        key = derive(seed, row_hash(row))
        predict_pure(row, fold, prob, pure)
        for r in range(out.shape[1]):
            out[i, r] = left_to_right(row, fold, derive(key, r), pure, prob, w)
