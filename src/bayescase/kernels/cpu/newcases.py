"""New cases, folded in row by row given tables of φ: memberships, and the probability of a case.

Random numbers are keyed by the case's own values, so a case gets the same answer in any batch and at any position.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..rng import categorical, derive, uniform
from .rows import group_sums, move_cells, relabel_row, row_labels, row_sums
from .tables import ROWS, compiled, fill_row, lanes_for, make_scratch, make_tables, row_rises

BURN, KEEP = 3, 6  # sweeps of a new case per table: there are several tables, and they differ more than the sweeps
PARTICLES, STOPS = 4, 32  # of the left-to-right estimate


class Fold(NamedTuple):
    """One table of φ made ready for the row kernels."""

    tables: tuple
    log_top: np.ndarray  # (ΣV + 1,) the maximum over s that `log_phi` lacks
    hyper: tuple
    rows_rise: np.ndarray
    scratch: tuple
    z: np.ndarray


def make_fold(data, hyper, phi):
    """phi is (ΣV, S)."""
    S = phi.shape[1]
    P = len(data.offset) - 1
    tables = make_tables(data, S)
    phi = phi.astype(float)
    log_phi = np.log(np.maximum(phi, 1e-300))
    fill_rows(data.offset, tables, hyper, log_phi, phi, lanes_for(S))
    rows_rise, _ = row_rises(hyper, np.zeros(0, dtype=int), P)
    z = np.zeros((ROWS, P), dtype=np.int64)
    return Fold(tables, np.append(0.0, log_phi.max(axis=1)), hyper, rows_rise, make_scratch(data, S, z.dtype), z)


@compiled
def fill_rows(offset, tables, hyper, log_phi, phi, lanes):
    for j in range(len(offset) - 1):
        for v in range(offset[j], offset[j + 1]):
            fill_row(tables, hyper, log_phi, phi, v, v + 1, j, v == offset[j], lanes)


@compiled
def row_hash(x, i):
    """64 bits that depend on every cell of the row and on its place."""
    key = np.uint64(x.shape[1])
    for j in range(x.shape[1]):
        key = derive(key, np.int64(x[i, j]) + 1)
    return key


def row_hashes(x):
    out = np.empty(len(x), dtype=np.uint64)
    fill_hashes(x, out)
    return out


@compiled
def fill_hashes(x, out):
    for i in range(len(x)):
        out[i] = row_hash(x, i)


@compiled
def sweep_row(x, z, i, P, fold, a, key, sums, at):
    """One relabel and cell sweep over the first P cells of row i; its `row_sums` are at sums[at]. Returns the labels in use."""
    t, c = fold.tables, fold.scratch
    lanes = len(c.sums) // ROWS
    k = row_labels(x, z, i, P, True, c.n, c.used)
    if k < len(a):
        group_sums(x, z, i, P, t.log_phi, lanes, c.used, k, c.n, sums, at, c.groups, c.rows)
        relabel_row(x, z, i, P, fold.rows_rise, key, c.groups, np.int64(0), lanes, c.n, c.used, k, c.weight, c.to)
    if fold.hyper.alpha > 0.0:
        _, k = move_cells(
            x, z, i, P, t.phi, t.smooth, t.often, a, key, c.u, c.cut, c.rare, c.cells, c.n, c.used, k, c.rows, c.old
        )
    return k


@compiled
def fold_in(x, fold, seed, mean):
    """mean[i] += E[π_i | x_i, φ], by Gibbs sampling with π integrated out; exact at α = 0."""
    S, P = len(fold.hyper.beta), x.shape[1]
    lanes = len(fold.scratch.sums) // ROWS
    sums, n, used = fold.scratch.sums, fold.scratch.n, fold.scratch.used
    alpha, beta = fold.hyper.alpha, fold.hyper.beta
    a = alpha * beta
    n[:] = 0
    w = np.zeros(S)
    for i0 in range(0, len(x), ROWS):
        i1 = min(i0 + ROWS, len(x))
        row_sums(fold.tables.log_phi, lanes, x, P, i0, i1, sums)
        block = x[i0:i1]
        for i in range(i1 - i0):
            observed = 0
            for j in range(P):
                observed += block[i, j] >= 0
            total = 0.0
            top = -np.inf
            for s in range(S):
                w[s] = sums[i * lanes + s] + fold.rows_rise[observed, s]
                top = max(top, w[s])
            for s in range(S):
                w[s] = exp(w[s] - top)
                total += w[s]
            if alpha == 0.0 or observed == 0:
                for s in range(S):
                    mean[i0 + i, s] += w[s] / total if observed else beta[s]
                continue
            key = derive(seed, row_hash(block, i))
            fold.z[i] = categorical(w, S, uniform(key, 0))
            for t in range(BURN + KEEP):
                k = sweep_row(block, fold.z, i, P, fold, a, derive(key, t + 1), sums, i * lanes)
                if t >= BURN:
                    for s in range(S):
                        mean[i0 + i, s] += (a[s] + n[s]) / (alpha + observed) / KEEP
                for t in range(k):
                    n[used[t]] = 0


@compiled
def predict_pure(row, fold, a, chance, out):
    """If the cells before j share one label: chance[j, s] that it is s, and out[j] = p(x_j | they share one, φ).

    out[j] = Σ_s chance[j, s] (n φ_s(x_j) + Σ_t a_t φ_t(x_j)) / (α + n), with n cells before.
    """
    S, lanes = len(a), len(fold.scratch.sums) // ROWS
    phi, log_phi, smooth = fold.tables.phi, fold.tables.log_phi, fold.tables.smooth
    w, n = np.zeros(S), 0
    for j in range(row.shape[1]):
        if row[0, j] < 0:
            continue
        v = np.intp(row[0, j]) + 1
        top, total, mean = w.max(), 0.0, 0.0
        for s in range(S):
            chance[j, s] = exp(w[s] - top)
            total += chance[j, s]
        for s in range(S):
            chance[j, s] /= total
            mean += chance[j, s] * phi[s, v]
        out[j] = (n * mean + smooth[v]) / (fold.hyper.alpha + n)
        for s in range(S):
            w[s] += log_phi[v * lanes + s] + log(a[s] + n)
        n += 1


@compiled
def log_probability(x, fold, seed, out):
    """out[i, r] = log of an unbiased estimate r of p(x_i | φ): left to right (Wallach et al. 2009; Buntine 2009).

    Each cell's predictive probability given the cells before it, whose labels are swept again at up to STOPS places. As long
    as these share one label, and at small α most do, it is summed over which one (k = 1 below, the label not yet drawn);
    with a label at hand, the estimate of a few runs is far too low. Exact at α = 0: log Σ_s β_s Π_j φ_s(x_ij).
    """
    S, P = len(fold.hyper.beta), x.shape[1]
    phi, smooth, n, z = fold.tables.phi, fold.tables.smooth, fold.scratch.n, fold.z
    alpha, beta = fold.hyper.alpha, fold.hyper.beta
    lanes = len(fold.scratch.sums) // ROWS
    a = alpha * beta
    w, pure, chance = np.zeros(S), np.zeros(P), np.zeros((P, S))
    stride = max(1, P // STOPS)
    for i in range(len(x)):
        row = x[i : i + 1]
        if alpha == 0.0:
            row_sums(fold.tables.log_phi, lanes, row, P, 0, 1, fold.scratch.sums)
            total = 0.0
            top = fold.scratch.sums[:S].max()
            for s in range(S):
                total += beta[s] * exp(fold.scratch.sums[s] - top)
            base = 0.0
            for j in range(P):
                base += fold.log_top[np.intp(row[0, j]) + 1]
            out[i, :] = base + top + log(total)
            continue
        key = derive(seed, row_hash(row, 0))
        predict_pure(row, fold, a, chance, pure)
        for r in range(out.shape[1]):
            run_key = derive(key, r)
            seen, value, k = 0, 0.0, 0
            for j in range(P):
                if row[0, j] < 0:
                    continue
                cell_key = derive(run_key, j)
                if j % stride == 0 and seen > 0:
                    if k == 1:
                        z[0, :j] = categorical(chance[j], S, uniform(cell_key, 0))
                    n[:] = 0
                    row_sums(fold.tables.log_phi, lanes, row, j, 0, 1, fold.scratch.sums)
                    k = sweep_row(row, z, 0, j, fold, a, derive(cell_key, 1), fold.scratch.sums, 0)
                v = np.intp(row[0, j]) + 1
                if k <= 1:
                    value += log(pure[j])
                    k = 1
                    # x_j comes with the shared label, or as if from a fresh draw of one: σ = Σ_t a_t φ_t
                    if seen > 0 and uniform(cell_key, 2) * pure[j] * (alpha + seen) < smooth[v]:
                        own = categorical(chance[j], S, uniform(cell_key, 3))
                        for s in range(S):
                            w[s] = a[s] * phi[s, v]
                        b = categorical(w, S, uniform(cell_key, 4))
                        if b != own:
                            n[:] = 0
                            n[own], n[b], k = seen, 1.0, 2
                            z[0, :j], z[0, j] = own, b
                else:
                    total = 0.0
                    for s in range(S):
                        w[s] = (a[s] + n[s]) * phi[s, v]
                        total += w[s]
                    value += log(total / (alpha + seen))
                    b = categorical(w, S, uniform(cell_key, 2))
                    z[0, j] = b
                    k += n[b] == 0
                    n[b] += 1
                seen += 1
            out[i, r] = value
    n[:] = 0
