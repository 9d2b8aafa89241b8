"""The Bayesian Case Model (Kim, Rudin, Shah, NIPS 2014), one equation per function.

The leaf functions take and return scalars and are plain Python: `kernels.equations` compiles these very objects, so what the
tests hold against `log_joint` is what the samplers run. `log_joint` and `simulate` are the model as a whole, in NumPy.

Values are global codes: feature j owns the codes offset[j] .. offset[j + 1] - 1, and -1 is a missing cell.
"""

from math import exp, lgamma, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from .state import Cells

# --- leaf functions: compiled as they stand, never rewritten ---------------------------------------------------------


def g(lam, c, omega, k):
    """g_sj(v) = λ (1 + c ω_sj K_j(p_sj, v)): how many pseudo-counts value v gets; k is K_j(p_sj, v)."""
    return lam * (1.0 + c * omega * k)


def z_weight(a, n_is, g_v, n_sv, g_sum, n_sj):
    """p(z_ij = s | rest) ∝ (α/S + n_is) (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), all counts without the cell."""
    return (a + n_is) * (g_v + n_sv) / (g_sum + n_sj)


def row_weight(a, n_is, phi):
    """p(z_ij = s | φ, rest of the row) ∝ (α/S + n_is) φ_sj(x_ij), count without the cell."""
    return (a + n_is) * phi


def log_rise(a, n):
    """log Γ(a + n) / Γ(a): the evidence of n draws of one value that started with a pseudo-counts."""
    return lgamma(a + n) - lgamma(a)


def omega_logit(q, e):
    """logit p(ω_sj = 1 | rest) = logit q + E[s, p_sj]."""
    return log(q) - log1p(-q) + e


def log_copy(q, e):
    """log( q exp(E) + 1 − q ): evidence that a candidate has this value, ω summed out."""
    if e > 0.0:
        return e + log(q + (1.0 - q) * exp(-e))
    return log(q * exp(e) + 1.0 - q)


# --- the model as a whole -------------------------------------------------------------------------------------------


def g_table(data, hyper, p, omega):
    """g(v) for every code and cluster, (ΣV, S). A missing prototype value cannot be copied: g = λ(v) there.

    Single features: g_sj(v) = λ(v) (1 + c ω_sj K_j(p_sj, v)). Bags: g_sb(v) = λ(v) (1 + c ω_sv [v in the prototype]).
    """
    book, S = data.book, len(p)
    table = np.repeat(hyper.lam * book.base[:, None], S, axis=1)
    for s in range(S):
        for j, u in enumerate(data.candidates[p[s]]):
            if u >= 0:
                for e in range(book.k_ptr[u], book.k_ptr[u + 1]):
                    v = book.k_idx[e]
                    table[v, s] = g(hyper.lam * book.base[v], hyper.c, omega[s, j], book.k_val[e])
        for v in items_of(data, p[s]):
            table[v, s] = g(hyper.lam * book.base[v], hyper.c, omega[s, book.column[v]], 1.0)
    return table


def items_of(data, m):
    """The items of candidate m, each once."""
    bags = data.candidate_bags
    return np.zeros(0, dtype=int) if bags is None else bags.codes[bags.first[m] : bags.first[m + 1]]


def count(data, z, S):
    """n_sv as (ΣV, S) and n_is as (N, S), recounted from z; z is in the order of `data.cells`."""
    cells = data.cells
    z, rows = np.asarray(z).reshape(-1), np.repeat(np.arange(len(data.x)), cells.sizes)
    n_sv = np.zeros((data.offset[-1], S), dtype=np.int64)
    n_is = np.zeros((len(data.x), S), dtype=np.int64)
    seen = cells.codes >= 0
    np.add.at(n_sv, (cells.codes[seen], z[seen]), 1)
    np.add.at(n_is, (rows[seen], z[seen]), 1)
    return n_sv, n_is


def log_joint(data, hyper, z, p, omega):
    """log p(x, z, p, ω) with φ and π integrated out:

    Σ_i [ log Γ(α) − log Γ(α + n_i) + Σ_s log Γ(α β_s + n_is) − log Γ(α β_s) ] + Σ_sj [ log B(g_sj + n_sj·) − log B(g_sj) ]
    + Σ [ ω log q + (1 − ω) log(1 − q) ] over single features and the items of prototypes that are not held
    + Σ_s log weight of p_s
    """
    n_sv, n_is = count(data, z, len(p))
    g_sv = g_table(data, hyper, p, omega)
    starts = data.offset[:-1]
    g_sum, n_sj = np.add.reduceat(g_sv, starts), np.add.reduceat(n_sv, starts)
    rows = log_prior_z(hyper, n_is)
    tables = _rise(g_sv, n_sv).sum() - _rise(g_sum, n_sj).sum()
    bits = np.where(omega, np.log(hyper.q), np.log1p(-hyper.q))
    subspaces = bits[:, : data.book.n_single].sum()
    for s, m in enumerate(p):
        columns = data.book.column[items_of(data, m)]
        free = data.omega_held[s, columns] < 0 if len(data.omega_held) else slice(None)
        subspaces += bits[s, columns[free]].sum()
    return float(rows + tables + subspaces + data.log_weight[p, np.arange(len(p)) % data.log_weight.shape[1]].sum())


def log_prior_z(hyper, n_is):
    """log p(z) with π integrated out. At α = 0 a case has one label, s with probability β_s."""
    if hyper.alpha == 0.0:
        if ((n_is > 0).sum(axis=1) > 1).any():
            return -np.inf
        return float(((n_is > 0) * np.log(hyper.beta)).sum())
    return _rise(hyper.alpha * hyper.beta, n_is).sum() - _rise(hyper.alpha, n_is.sum(axis=1)).sum()


def _rise(a, n):
    return gammaln(a + n) - gammaln(a)


class Simulation(NamedTuple):
    x: np.ndarray  # (N, P)
    z: np.ndarray  # (N, P) if there are no bags, else (cells,)
    p: np.ndarray  # (S,)
    omega: np.ndarray  # (S, D)
    phi: np.ndarray  # (ΣV, S)
    pi: np.ndarray  # (N, S)
    bags: Cells | None


def simulate(data, hyper, rng, N, *, p=None, omega=None, z=None):
    """Draw from the prior, given the catalogue: p, ω, φ, π, z, x, in that order. What is given is kept.

    Bags have as many items as those of `data`, whose sizes the model does not draw.
    """
    book, S = data.book, len(hyper.beta)
    if p is None:
        weight = np.broadcast_to(np.exp(data.log_weight), (len(data.candidates), S))
        p = np.array([rng.choice(len(weight), p=weight[:, s]) for s in range(S)])
    if omega is None:
        omega = rng.random(hyper.q.shape) < hyper.q
        for s, m in enumerate(p):  # of a bag only the items of the prototype have a bit
            omega[s, np.setdiff1d(np.arange(book.n_single, book.n_columns), book.column[items_of(data, m)])] = False
    g_sv = g_table(data, hyper, p, omega)
    phi = np.empty_like(g_sv)
    for lo, hi in zip(book.offset[:-1], book.offset[1:], strict=True):
        for s in range(S):
            phi[lo:hi, s] = rng.dirichlet(g_sv[lo:hi, s])
    if hyper.alpha > 0.0:
        pi = rng.dirichlet(hyper.alpha * hyper.beta, size=N)
    else:
        pi = np.eye(S)[rng.choice(S, size=N, p=hyper.beta)]
    if data.bags is None:
        P = book.n_single
        if z is None:
            z = (rng.random((N, P, 1)) > np.cumsum(pi, axis=1)[:, None, :]).sum(axis=2).clip(max=S - 1)
        x = np.empty((N, P), dtype=np.int64)
        for j in range(P):
            x[:, j] = draw_values(book, j, phi, z[:, j], rng)
        return Simulation(x, z, p, omega, phi, pi, None)
    cells = data.cells
    rows = np.repeat(np.arange(N), cells.sizes)
    if z is None:
        z = (rng.random((len(rows), 1)) > np.cumsum(pi, axis=1)[rows]).sum(axis=1).clip(max=S - 1)
    place = np.arange(len(rows)) - cells.first[rows]
    single, codes = place < book.n_single, np.empty(len(rows), dtype=np.int64)
    feature = np.where(single, place, book.feature[np.maximum(cells.codes, 0)])
    for j in range(len(book.offset) - 1):
        codes[feature == j] = draw_values(book, j, phi, z[feature == j], rng)
    return Simulation(codes[single].reshape(N, -1), z, p, omega, phi, pi, Cells(codes[~single], data.bags.first))


def draw_values(book, j, phi, z, rng):
    """A value of feature j for each label."""
    lo, hi = book.offset[j : j + 2]
    below = np.cumsum(phi[lo:hi, z], axis=0) < rng.random(len(z))
    return lo + below.sum(axis=0).clip(max=hi - lo - 1)
