"""New cases, folded in row by row given tables of φ: memberships, and the probability of a case.

Random numbers are keyed by the case's own values, so a case gets the same answer in any batch and at any position.
"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import exp, log
from typing import NamedTuple, TypeAlias

import numpy as np

from ...parallel import each, portions
from ...state import Cells, Codebook, Codes, Hyper
from ..compiling import compiled, inner
from ..rng import categorical, derive, uniform
from .cells import move_cells
from .engine import Block, make_block
from .intrinsics import span
from .labels import rename_cells, row_labels
from .relabel import group_sums, relabel_row
from .sums import block_sums, row_span, row_sums
from .tables import ROWS, Scratch, Tables, fill_row, lanes_for, make_scratch, make_tables, row_rises

BURN, KEEP = 3, 6  # sweeps of a new case per table: there are several tables, and they differ more than the sweeps
PARTICLES, STOPS = 4, 32  # of the left-to-right estimate

Given: TypeAlias = tuple[Hyper, np.ndarray]  # one draw: α and β, and φ as (ΣV, S)


class Fold(NamedTuple):
    """One table of φ made ready for the row kernels."""

    tables: Tables
    log_top: np.ndarray  # (ΣV + 1,) the maximum over s that `log_phi` lacks
    alpha: float
    beta: np.ndarray  # (S,)
    scratch: Scratch
    z: np.ndarray  # (longest case,)


def make_fold(book: Codebook, hyper: Hyper, phi: np.ndarray, width: int) -> Fold:
    """phi is (ΣV, S); of hyper α and β are used; width: cells of the longest case."""
    S = phi.shape[1]
    tables = make_tables(book, S, width)
    tables.a[:] = hyper.alpha * hyper.beta
    tables.rise.reshape(width + 1, -1)[:, :S] = row_rises(hyper, width)
    log_phi = np.zeros((len(phi), lanes_for(S)), dtype=np.float32)
    log_phi[:, :S] = np.log(np.maximum(phi, 1e-38))
    log_top = np.append(0.0, log_phi[:, :S].max(axis=1))  # before it is taken off
    fill_rows(tables, log_phi.reshape(-1), lanes_for(S))
    z = np.zeros(width, dtype=np.int64)
    return Fold(tables, log_top, hyper.alpha, hyper.beta, make_scratch(book, S, width), z)


@compiled
def fill_rows(tables, log_phi, lanes):
    for v in range(tables.leave.shape[1] - 1):
        fill_row(tables, log_phi, v * lanes, v + 1, lanes)


@inner
def row_hash(x):
    """64 bits that depend on every cell of a row and on its place."""
    key = np.uint64(len(x))
    for j in range(len(x)):
        key = derive(key, np.int64(x[j]) + 1)
    return key


def row_hashes(cells: Cells) -> np.ndarray:
    """(N,) the hash of every row."""
    out = np.empty(len(cells.first) - 1, dtype=np.uint64)
    each(
        lambda rows: fill_hashes(Cells(cells.codes, cells.first[rows.start : rows.stop + 1]), out[rows]),
        portions(len(out)),
    )
    return out


@compiled
def fill_hashes(cells, out):
    """Four rows at a time, if they are of one length: each step of a hash waits for the last."""
    codes, first, n = cells.codes, cells.first, len(out)
    i = 0
    while i < n:
        a, size = first[i], first[i + 1] - first[i]
        if i + 4 <= n and first[i + 4] - a == 4 * size and first[i + 2] - a == 2 * size and first[i + 3] - a == 3 * size:
            b, c, d = a + size, a + 2 * size, a + 3 * size
            key_a = key_b = key_c = key_d = np.uint64(size)
            for j in range(size):
                key_a = derive(key_a, np.int64(codes[a + j]) + 1)
                key_b = derive(key_b, np.int64(codes[b + j]) + 1)
                key_c = derive(key_c, np.int64(codes[c + j]) + 1)
                key_d = derive(key_d, np.int64(codes[d + j]) + 1)
            out[i], out[i + 1], out[i + 2], out[i + 3] = key_a, key_b, key_c, key_d
            i += 4
        else:
            out[i] = row_hash(codes[a : a + size])
            i += 1


@inner
def sweep_row(x, z, fold, key, sums, at):
    """One relabel and cell sweep over the cells x of a row; its `row_sums` are at sums[at]. Leaves n_is in the scratch."""
    tables, row, nothing = fold.tables, fold.scratch.row, fold.scratch.tally.delta
    lanes = len(fold.scratch.sums) // ROWS
    row.n[:] = 0
    k = row_labels(x, z, True, row.n, row.used)
    if k < len(fold.beta):
        group_sums(x, z, tables.log_phi, lanes, k, sums, at, row)
        if relabel_row(x, tables.rise, key, row.groups, np.int64(0), lanes, k, row):
            rename_cells(x, z, row.to, nothing)
    if fold.alpha > 0.0:
        move_cells(x, z, tables, lanes, key, k, row, nothing)


@compiled
def fold_in(block, fold, seed, mean):
    """mean[i] += E[π_i | x_i, φ], by Gibbs sampling with π integrated out; exact at α = 0."""
    S = len(fold.beta)
    lanes = len(fold.scratch.sums) // ROWS
    sums, n = fold.scratch.sums, fold.scratch.row.n
    alpha, beta, a, rise, w = fold.alpha, fold.beta, fold.tables.a, fold.tables.rise, fold.scratch.weight
    for i0 in range(0, block.size, ROWS):
        i1 = min(i0 + ROWS, block.size)
        block_sums(block, fold.tables.log_phi, lanes, i0, i1, sums)
        for i in range(i0, i1):
            start, size = row_span(block, i)
            xi, zi, at = span(block.x, start, size), span(fold.z, np.int64(0), size), (i - i0) * lanes
            observed = 0
            for j in range(size):
                observed += xi[j] >= 0
            total = 0.0
            top = -np.inf
            for s in range(S):
                w[s] = sums[at + s] + rise[observed * lanes + s]
                top = max(top, w[s])
            for s in range(S):
                w[s] = exp(w[s] - top)
                total += w[s]
            if alpha == 0.0 or observed == 0:
                for s in range(S):
                    mean[i, s] += w[s] / total if observed else beta[s]
                continue
            key = derive(seed, row_hash(xi))
            zi[:] = categorical(w, S, uniform(key, 0))
            for t in range(BURN + KEEP):
                sweep_row(xi, zi, fold, derive(key, t + 1), sums, at)
                if t >= BURN:
                    for s in range(S):
                        mean[i, s] += (a[s] + n[s]) / (alpha + observed) / KEEP


class Shared(NamedTuple):
    """What holds of a cell if those before it share one label."""

    prob: np.ndarray  # (longest case, S) that it is s
    smooth: np.ndarray  # (longest case,) σ = Σ_s a_s φ_s(x)
    pure: np.ndarray  # (longest case,) p(x | they share one, φ)


@inner
def predict_shared(x, fold, shared):
    """pure[j] = Σ_s prob[j, s] (n φ_s(x_j) + σ_j) / (α + n), with n cells before cell j."""
    a, w, (prob, smooth, pure) = fold.tables.a, fold.scratch.weight, shared
    S, lanes = len(a), len(fold.scratch.sums) // ROWS
    phi, log_phi = fold.tables.phi, fold.tables.log_phi
    n = 0
    w[:] = 0.0
    for j in range(len(x)):
        if x[j] < 0:
            continue
        at = (np.intp(x[j]) + 1) * lanes
        top, norm, mean = w[0], 0.0, 0.0
        for s in range(1, S):
            top = max(top, w[s])
        smooth[j] = 0.0
        for s in range(S):
            prob[j, s] = exp(w[s] - top)
            norm += prob[j, s]
            smooth[j] += a[s] * phi[at + s]
        for s in range(S):
            prob[j, s] /= norm
            mean += prob[j, s] * phi[at + s]
        pure[j] = (n * mean + smooth[j]) / (fold.alpha + n)
        for s in range(S):
            w[s] += log_phi[at + s] + log(a[s] + n)
        n += 1


@inner
def log_mixture(x, fold):
    """log Σ_s β_s Π_j φ_s(x_j): the probability of a case at α = 0."""
    S, lanes, sums = len(fold.beta), len(fold.scratch.sums) // ROWS, fold.scratch.sums
    row_sums(fold.tables.log_phi, lanes, x, len(x), np.int64(0), np.int64(1), sums)
    total, top = 0.0, sums[0]
    for s in range(1, S):
        top = max(top, sums[s])
    for s in range(S):
        total += fold.beta[s] * exp(sums[s] - top)
    base = 0.0
    for j in range(len(x)):
        base += fold.log_top[np.intp(x[j]) + 1]
    return base + top + log(total)


@inner
def left_to_right(x, fold, key, shared):
    """log of one unbiased estimate of p(x | φ), the cells taken one after the other."""
    w, (prob, smooth, pure) = fold.scratch.weight, shared
    S, P, a, alpha = len(fold.beta), len(x), fold.tables.a, fold.alpha
    phi, n, z, sums = fold.tables.phi, fold.scratch.row.n, fold.z, fold.scratch.sums
    lanes, stride = len(sums) // ROWS, max(1, P // STOPS)
    seen, value, k = 0, 0.0, 0
    for j in range(P):
        if x[j] < 0:
            continue
        cell_key = derive(key, j)
        if j % stride == 0 and seen > 0:
            if k == 1:
                z[:j] = categorical(prob[j], S, uniform(cell_key, 0))
            before = span(x, np.int64(0), j)
            row_sums(fold.tables.log_phi, lanes, before, j, np.int64(0), np.int64(1), sums)
            sweep_row(before, span(z, np.int64(0), j), fold, derive(cell_key, 1), sums, np.int64(0))
            k = 0
            for s in range(S):
                k += n[s] > 0
        at = (np.intp(x[j]) + 1) * lanes
        if k <= 1:
            value += log(pure[j])
            k = 1
            # x_j comes with the shared label, or as if from a fresh draw of one, with weight σ_j
            if seen > 0 and uniform(cell_key, 2) * pure[j] * (alpha + seen) < smooth[j]:
                own = categorical(prob[j], S, uniform(cell_key, 3))
                for s in range(S):
                    w[s] = a[s] * phi[at + s]
                b = categorical(w, S, uniform(cell_key, 4))
                if b != own:
                    n[:] = 0
                    n[own], n[b], k = seen, 1, 2
                    z[:j], z[j] = own, b
        else:
            norm = 0.0
            for s in range(S):
                w[s] = (a[s] + n[s]) * phi[at + s]
                norm += w[s]
            value += log(norm / (alpha + seen))
            b = categorical(w, S, uniform(cell_key, 2))
            z[j] = b
            k += n[b] == 0
            n[b] += 1
        seen += 1
    return value


def log_probability(block, fold: Fold, seed: np.uint64, out: np.ndarray) -> None:
    """out[i, r] = log of an unbiased estimate r of p(x_i | φ): left to right (Wallach et al. 2009; Buntine 2009).

    The product of each cell's predictive probability given the cells before it, whose labels are swept again at up to STOPS
    places. While these share one label, as most do at small α, it is summed out (k = 1 above); if it were drawn, the estimate
    of a few runs would be far too low. Exact at α = 0: log Σ_s β_s Π_j φ_s(x_ij).
    """
    S, longest = len(fold.beta), len(fold.z)
    shared = Shared(np.zeros((longest, S)), np.zeros(longest), np.zeros(longest))
    fill_log_probability(block, fold, shared, seed, out)


@compiled
def fill_log_probability(block, fold, shared, seed, out):
    for i in range(block.size):
        start, size = row_span(block, i)
        x = span(block.x, start, size)
        if fold.alpha == 0.0:
            out[i, :] = log_mixture(x, fold)
            continue
        key = derive(seed, row_hash(x))
        predict_shared(x, fold, shared)
        for r in range(out.shape[1]):
            out[i, r] = left_to_right(x, fold, derive(key, r), shared)


# --- all cases and all tables, on threads ---------------------------------------------------------------------------------


def each_table(
    cases: Codes, book: Codebook, given: Sequence[Given], n_jobs: int, kernel: Callable[[Block, slice, int, Fold], None]
) -> None:
    """kernel(block, rows, d, fold) for every table d of φ and every block of rows, a block per thread."""
    cells, most = cases.cells, cases.longest

    def work(rows: slice) -> None:
        block = make_block(cells.part(rows), cases.width)
        for d, (hyper, phi) in enumerate(given):
            kernel(block, rows, d, make_fold(book, hyper, phi, most))

    edges = np.linspace(0, cases.n_rows, min(n_jobs, max(cases.n_rows, 1)) + 1).astype(int)
    with ThreadPoolExecutor(n_jobs) as pool:
        list(pool.map(work, [slice(lo, hi) for lo, hi in itertools.pairwise(edges)]))


def fold_here(cases: Codes, book: Codebook, given: Sequence[Given], seed: np.uint64, n_jobs: int = 1) -> np.ndarray:
    """(N, S) Σ_d E[π_i | x_i, φ_d]."""
    sums = np.zeros((cases.n_rows, len(given[0][0].beta)))
    each_table(cases, book, given, n_jobs, lambda block, rows, d, fold: fold_in(block, fold, seed, sums[rows]))
    return sums


def fold_by_table(cases: Codes, book: Codebook, given: Sequence[Given], seed: np.uint64) -> np.ndarray:
    """(D, N, S) E[π_i | x_i, φ_d] for each table d."""
    means = np.zeros((len(given), cases.n_rows, len(given[0][0].beta)))
    each_table(cases, book, given, 1, lambda block, rows, d, fold: fold_in(block, fold, seed, means[d, rows]))
    return means


def score_cases(cases: Codes, book: Codebook, given: Sequence[Given], seed: np.uint64, n_jobs: int = 1) -> np.ndarray:
    """(D, N, particles) Estimates of log p(x_i | φ_d); the mean of their exponentials is unbiased."""
    found = np.zeros((len(given), cases.n_rows, PARTICLES))
    each_table(cases, book, given, n_jobs, lambda block, rows, d, fold: log_probability(block, fold, seed, found[d, rows]))
    return found
