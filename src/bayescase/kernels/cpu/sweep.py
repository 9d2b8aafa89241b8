"""The samplers on the CPU: sweeps in blocks of features and rows, the paper's cell-by-cell update, running means of draws."""

import itertools
from math import exp, log
from typing import NamedTuple

import numpy as np

from ...state import chunks
from ..rng import categorical, derive, uniform
from .rows import note_row, row_labels, score_p, update_z
from .tables import (
    compiled,
    fill_g,
    make_rises,
    make_scratch,
    make_tables,
    update_evidence,
    update_omega,
    update_phi,
    z_weight,
)

PHI, ROW, PROTOTYPE, SUBSPACE = range(4)  # purposes: one stream of random numbers each

# --- counts and running means -----------------------------------------------------------------------------------------


def recount(x, z, n_sv, n_rows):
    """The counts of z, from nothing."""
    fill_counts(x, z, n_sv, n_rows, np.zeros(n_sv.shape[1]))


@compiled
def fill_counts(x, z, n_sv, n_rows, n):
    n_sv[:] = 0
    n_rows[:] = 0
    for i in range(x.shape[0]):
        n[:] = 0
        for j in range(x.shape[1]):
            if x[i, j] >= 0:
                n_sv[x[i, j], z[i, j]] += 1
                n[z[i, j]] += 1
        for s in range(len(n)):
            if n[s] > 0:
                n_rows[s, int(n[s])] += 1


class MeanScratch(NamedTuple):
    """What the running means of a chain need for a row or a feature."""

    n: np.ndarray  # (S,) n_is of the row at hand, 0 between rows
    used: np.ndarray  # (S,) labels in use
    value: np.ndarray  # (V, S) E[φ] of a feature


def make_mean_scratch(data, S):
    return MeanScratch(np.zeros(S), np.zeros(S, dtype=np.int64), np.zeros((int(np.diff(data.offset).max()), S)))


@compiled
def add_overlap(x, z, gaps, mean, scratch, total):
    """total[r, s] += Σ_i mean[i, r] n_is / n_i: how much label s of this draw lies on reference label r."""
    S, P = mean.shape[1], x.shape[1]
    n, used = scratch.n, scratch.used
    for i in range(x.shape[0]):
        k = row_labels(x, z, i, P, gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for t in range(k):
            s = used[t]
            for r in range(S):
                total[r, s] += mean[i, r] * n[s] / observed
            n[s] = 0


@compiled
def add_memberships(x, z, gaps, alpha, beta, to, mean, weight, scratch):
    """mean[i] += weight (E[π_i | z] − mean[i]), with E[π_is | z] = (α β_s + n_is) / (α + n_i); label s counts as to[s]."""
    S, P = mean.shape[1], x.shape[1]
    n, used = scratch.n, scratch.used
    for i in range(x.shape[0]):
        k = row_labels(x, z, i, P, gaps, n, used)
        observed = 0.0
        for t in range(k):
            observed += n[used[t]]
        for s in range(S):
            pi = (alpha * beta[s] + n[s]) / (alpha + observed) if k else beta[s]
            mean[i, to[s]] += weight * (pi - mean[i, to[s]])
        for t in range(k):
            n[used[t]] = 0


@compiled
def copied(data, p, omega):
    """(ΣV, S) ω_sj K_j(p_sj, v): how much of each value's pseudo-counts is copied from the prototype."""
    S, P = omega.shape
    k_sv = np.zeros((data.offset[-1], S))
    for s in range(S):
        for j in range(P):
            u = data.candidates[p[s], j]
            if u >= 0 and omega[s, j]:
                for k in range(data.k_ptr[u], data.k_ptr[u + 1]):
                    k_sv[data.k_idx[k], s] = data.k_val[k]
    return k_sv


@compiled
def add_values(data, hyper, p, omega, n_sv, to, mean, weight, scratch, table):
    """mean[v] += weight (E[φ(v) | z, p, ω] − mean[v]), with E[φ_sj(v)] = (g_sj(v) + n_sv) / (Σ_v g_sj(v) + n_sj).

    The draw's own E[φ] is left in `table`, unless that has no rows.
    """
    S, P = omega.shape
    value = scratch.value
    for j in range(P):
        v0, v1 = data.offset[j], data.offset[j + 1]
        for s in range(S):
            fill_g(data, hyper, j, p[s], omega[s, j], value, v0, s)
            total = 0.0
            for v in range(v0, v1):
                value[v - v0, s] += n_sv[v, s]
                total += value[v - v0, s]
            for v in range(v0, v1):
                value[v - v0, s] /= total
                mean[v, to[s]] += weight * (value[v - v0, s] - mean[v, to[s]])
                if len(table) > 0:
                    table[v, to[s]] = value[v - v0, s]


# --- z, cell by cell, φ integrated out: the paper's sampler -----------------------------------------------------------


@compiled
def move_case(x, z, i, n_sv, n_sj, g_sv, g_sum, log_beta, heat, u, w, n, info):
    """All cells of case i, which share a label: s with weight β_s Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj)."""
    S, P, a = len(log_beta), x.shape[1], 0
    w[:S] = log_beta
    for j in range(P):
        v = x[i, j]
        if v >= 0:
            a = z[i, j]
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                w[s] += heat * log(z_weight(1.0, 0.0, g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s]))
    top = w[:S].max()
    for s in range(S):
        w[s] = exp(w[s] - top)
    b = categorical(w, S, u)
    for j in range(P):
        v = x[i, j]
        if v >= 0:
            z[i, j] = b
            n_sv[v, b] += 1
            n_sj[j, b] += 1
    n[b], n[a] = n[a], n[b]
    info[1] += a != b


@compiled
def update_z_collapsed(data, z, n_sv, n_sj, p, omega, hyper, heat, key, scratch):
    """One pass over all cells: remove, weigh, draw, add. At α = 0 over all cases, each as a whole."""
    S, P = omega.shape
    x = data.x
    g_sv = np.empty(n_sv.shape)
    for s in range(S):
        for j in range(P):
            fill_g(data, hyper, j, p[s], omega[s, j], g_sv, np.int64(0), s)
    g_sum = np.zeros((P, S))
    for j in range(P):
        for v in range(data.offset[j], data.offset[j + 1]):
            g_sum[j] += g_sv[v]
    w, n = scratch.weight, scratch.n
    log_beta = np.log(hyper.beta)
    scratch.n_rows[:] = 0
    scratch.main[:] = 0
    scratch.info[:] = 0
    n[:] = 0
    for i in range(x.shape[0]):
        if row_labels(x, z, i, P, True, n, scratch.used) == 0:
            continue
        row_key = derive(key, i)
        held = len(data.z_held) > 0 and data.z_held[i] >= 0
        if hyper.alpha == 0.0 and not held:
            move_case(x, z, i, n_sv, n_sj, g_sv, g_sum, log_beta, heat, uniform(row_key, 0), w, n, scratch.info)
        for j in range(P if hyper.alpha > 0.0 and not held else 0):
            v = x[i, j]
            if v < 0:
                continue
            a = z[i, j]
            n[a] -= 1
            n_sv[v, a] -= 1
            n_sj[j, a] -= 1
            for s in range(S):
                prior = hyper.alpha * hyper.beta[s]
                w[s] = z_weight(prior, n[s], g_sv[v, s], n_sv[v, s], g_sum[j, s], n_sj[j, s])
                if heat != 1.0:
                    w[s] = (prior + n[s]) * (w[s] / (prior + n[s])) ** heat
            b = categorical(w, S, uniform(row_key, j))
            z[i, j] = b
            n[b] += 1
            n_sv[v, b] += 1
            n_sj[j, b] += 1
            scratch.info[0] += b != a
        k = 0
        for s in range(S):
            if n[s] > 0:
                scratch.used[k] = s
                k += 1
        note_row(n, scratch.used, k, scratch.n_rows, scratch.main, scratch.info)


@compiled
def reseat(data, state, hyper, rows, u, m):
    """The label of each case in `rows`, all of whose cells share one, with φ and β integrated out; m_s ← tables of label s.

    s has weight (γ/S + m_s) Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), without the case.
    """
    S, P = state.omega.shape
    g_sv, g_sum, n_sj = np.empty(state.n_sv.shape), np.zeros((P, S)), np.zeros((P, S))
    for j in range(P):
        for s in range(S):
            fill_g(data, hyper, j, state.p[s], state.omega[s, j], g_sv, np.int64(0), s)
        for v in range(data.offset[j], data.offset[j + 1]):
            g_sum[j] += g_sv[v]
            n_sj[j] += state.n_sv[v]
    w, n, info = np.zeros(S), np.zeros(S), np.zeros(3, dtype=np.int64)
    used = np.zeros(S, dtype=np.int64)
    for r in range(len(rows)):
        i = rows[r]
        row_labels(data.x, state.z, i, P, True, n, used)
        a, size = used[0], int(n[used[0]])
        m[a] -= 1
        state.n_rows[a, size] -= 1
        move_case(data.x, state.z, i, state.n_sv, n_sj, g_sv, g_sum, np.log(hyper.gamma / S + m), 1.0, u[r], w, n, info)
        b = np.argmax(n)
        m[b] += 1
        state.n_rows[b, size] += 1
        n[b] = 0


# --- sweeps -----------------------------------------------------------------------------------------------------------


class Work:
    """Everything a chain needs beside its state: tables, one scratch per block, and the threads to run blocks on."""

    def __init__(self, data, hyper, z_type, pool=None, n_blocks=1, rises=None):
        N, P = data.x.shape
        S = len(hyper.beta)
        self.pool = pool
        self.data, self.hyper, self.rises = data, None, rises
        self.use(hyper)
        self.tables = make_tables(data, S)
        self.scratch = [make_scratch(data, S, z_type) for _ in range(n_blocks)]
        self.rows, self.features = split(N, n_blocks), split(P, n_blocks)
        self.candidates = split(len(data.candidates), n_blocks)
        self.gaps = has_gaps(data.x)
        self.catalogue_gaps = self.gaps if data.candidates is data.x else has_gaps(data.candidates)
        self.chance = np.zeros((S, P))  # p(ω_sj = 1 | rest) at the last draw

    def use(self, hyper):
        """Make what depends on the hyperparameters, if they are not those of the last time."""
        if hyper is not self.hyper:
            if self.hyper is not None or self.rises is None:  # else they came from a Work with the same hyperparameters
                self.rises = make_rises(self.data, hyper)
            self.hyper = hyper
            self.omega_const = float(np.log1p(-hyper.q).sum())

    def each(self, blocks, kernel):
        """kernel(scratch, lo, hi) for every block, on the pool if there is one."""
        tasks = [(kernel, scratch, lo, hi) for scratch, (lo, hi) in zip(self.scratch, blocks, strict=False)]
        jobs = [self.pool.submit(*task) for task in tasks[1:]] if self.pool else []
        for run, *task in tasks[: len(tasks) - len(jobs)]:
            run(*task)  # here: a thread that sleeps meanwhile is slow to wake
        for job in jobs:
            job.result()


def has_gaps(x):
    return any((x[rows] < 0).any() for rows in chunks(*x.shape))


def split(n, n_blocks):
    """At most n_blocks ranges that cover 0 .. n - 1."""
    edges = np.linspace(0, n, min(n_blocks, max(n, 1)) + 1).astype(int)
    return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(edges)]


def update_p_omega(data, hyper, state, work, key, blocked):
    """p then ω. blocked: p with ω summed out; else p given ω, as the paper has it. Returns the log joint."""
    work.use(hyper)
    starts = data.offset[:-1]
    n_sj = np.add.reduceat(state.n_sv, starts, dtype=state.n_sv.dtype)
    work.each(
        work.features,
        lambda scratch, lo, hi: update_evidence(
            data, work.rises, state.n_sv, n_sj, hyper.q, state.omega, blocked, work.tables, scratch, lo, hi
        ),
    )
    p_key = np.uint64(derive(key, PROTOTYPE))
    work.each(work.candidates, lambda scratch, lo, hi: score_p(data, work.catalogue_gaps, work.tables, p_key, scratch, lo, hi))
    used = work.scratch[: len(work.candidates)]
    winner = np.argmax([scratch.best for scratch in used], axis=0)
    state.p[:] = [used[b].arg[s] for s, b in enumerate(winner)]
    omega_key = np.uint64(derive(key, SUBSPACE))
    evidence = update_omega(data, hyper.q, work.tables.evidence, state.p, omega_key, state.omega, work.chance)
    columns = np.arange(len(state.p)) % data.log_weight.shape[1]
    rows = (state.n_rows * work.rises.rows.T).sum() - work.rises.rows_const
    return float(rows + work.tables.part.sum() + evidence + work.omega_const + data.log_weight[state.p, columns].sum())


def sweep_rows(data, hyper, state, work, key, heat=1.0, cells=True):
    """φ | p, ω, z; then the rows of z | φ; then p, ω | z in one block. Returns (log joint, info).

    info: cells moved, rows relabelled, Σ_i purity in units of 2⁻³², clusters that are the main one of some row.
    """
    work.use(hyper)
    phi_key, row_key = (np.uint64(derive(key, purpose)) for purpose in (PHI, ROW))
    work.each(
        work.features,
        lambda scratch, lo, hi: update_phi(
            data, hyper, state.p, state.omega, state.n_sv, heat, phi_key, work.tables, scratch, lo, hi
        ),
    )
    a = hyper.alpha * hyper.beta
    cells = cells and hyper.alpha > 0.0  # at α = 0 a case has one label, and moves as a whole
    work.each(
        work.rows,
        lambda scratch, lo, hi: update_z(
            data.x, state.z, data.z_held, work.gaps, work.tables, a, work.rises.rows, cells, row_key, scratch, lo, hi
        ),
    )
    info, main = np.zeros(3, dtype=np.int64), np.zeros(len(a), dtype=np.int64)
    state.n_rows[:] = 0
    for scratch, _ in zip(work.scratch, work.rows, strict=False):
        np.add(state.n_sv, scratch.delta, out=state.n_sv)
        np.add(state.n_rows, scratch.n_rows, out=state.n_rows)
        info += scratch.info
        main += scratch.main
    return update_p_omega(data, hyper, state, work, key, blocked=True), np.append(info, (main > 0).sum())


def sweep_collapsed(data, hyper, state, work, key, heat=1.0, cells=True):
    """The paper's sampler: z cell by cell with φ integrated out, then p | ω and ω | p. Returns (log joint, info)."""
    scratch = work.scratch[0]
    n_sj = np.add.reduceat(state.n_sv, data.offset[:-1])
    row_key = np.uint64(derive(key, ROW))
    update_z_collapsed(data, state.z, state.n_sv, n_sj, state.p, state.omega, hyper, heat, row_key, scratch)
    state.n_rows[:] = scratch.n_rows
    info = np.append(scratch.info, (scratch.main > 0).sum())
    return update_p_omega(data, hyper, state, work, key, blocked=False), info


sweeps = {"rows": sweep_rows, "collapsed": sweep_collapsed}
