"""The Bayesian Case Model (Kim, Rudin, Shah, NIPS 2014), one equation per function.

The leaf functions take and return scalars and are plain Python: `kernels.equations` compiles these very objects, so what the
tests hold against `log_joint` is what the samplers run. `log_joint` and `simulate` are the model as a whole, in NumPy.

Values are global codes: feature j owns the codes offset[j] .. offset[j + 1] - 1, and -1 is a missing cell.
"""

from math import exp, lgamma, log, log1p
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

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
    """g_sj(v) for every code and cluster, (ΣV, S). A missing prototype value cannot be copied: g = λ there."""
    S, P = omega.shape
    table = np.full((data.offset[-1], S), float(hyper.lam))
    for s in range(S):
        for j in range(P):
            u = data.candidates[p[s], j]
            if u >= 0:
                for e in range(data.book.k_ptr[u], data.book.k_ptr[u + 1]):
                    table[data.book.k_idx[e], s] = g(hyper.lam, hyper.c, omega[s, j], data.book.k_val[e])
    return table


def count(data, z, S):
    """n_sv as (ΣV, S) and n_is as (N, S), recounted from z."""
    n_sv = np.zeros((data.offset[-1], S), dtype=np.int64)
    n_is = np.zeros((len(z), S), dtype=np.int64)
    i, j = np.nonzero(data.x >= 0)
    np.add.at(n_sv, (data.x[i, j], z[i, j]), 1)
    np.add.at(n_is, (i, z[i, j]), 1)
    return n_sv, n_is


def log_joint(data, hyper, z, p, omega):
    """log p(x, z, p, ω) with φ and π integrated out:

    Σ_i [ log Γ(α) − log Γ(α + n_i) + Σ_s log Γ(α β_s + n_is) − log Γ(α β_s) ] + Σ_sj [ log B(g_sj + n_sj·) − log B(g_sj) ]
    + Σ_sj [ ω_sj log q_sj + (1 − ω_sj) log(1 − q_sj) ] + Σ_s log weight of p_s
    """
    n_sv, n_is = count(data, z, len(p))
    g_sv = g_table(data, hyper, p, omega)
    starts = data.offset[:-1]
    g_sum, n_sj = np.add.reduceat(g_sv, starts), np.add.reduceat(n_sv, starts)
    rows = log_prior_z(hyper, n_is)
    tables = _rise(g_sv, n_sv).sum() - _rise(g_sum, n_sj).sum()
    subspaces = np.where(omega, np.log(hyper.q), np.log1p(-hyper.q)).sum()
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
    z: np.ndarray  # (N, P)
    p: np.ndarray  # (S,)
    omega: np.ndarray  # (S, P)
    phi: np.ndarray  # (ΣV, S)
    pi: np.ndarray  # (N, S)


def simulate(data, hyper, rng, N, *, p=None, omega=None, z=None):
    """Draw from the prior, given the catalogue: p, ω, φ, π, z, x, in that order. What is given is kept."""
    S, P = hyper.q.shape
    if p is None:
        weight = np.broadcast_to(np.exp(data.log_weight), (len(data.candidates), S))
        p = np.array([rng.choice(len(weight), p=weight[:, s]) for s in range(S)])
    if omega is None:
        omega = rng.random((S, P)) < hyper.q
    g_sv = g_table(data, hyper, p, omega)
    phi = np.empty_like(g_sv)
    for lo, hi in zip(data.offset[:-1], data.offset[1:], strict=True):
        for s in range(S):
            phi[lo:hi, s] = rng.dirichlet(g_sv[lo:hi, s])
    if hyper.alpha > 0.0:
        pi = rng.dirichlet(hyper.alpha * hyper.beta, size=N)
    else:
        pi = np.eye(S)[rng.choice(S, size=N, p=hyper.beta)]
    if z is None:
        z = (rng.random((N, P, 1)) > np.cumsum(pi, axis=1)[:, None, :]).sum(axis=2).clip(max=S - 1)
    x = np.empty((N, P), dtype=np.int64)
    for j, (lo, hi) in enumerate(zip(data.offset[:-1], data.offset[1:], strict=True)):
        below = np.cumsum(phi[lo:hi, z[:, j]], axis=0) < rng.random(N)
        x[:, j] = lo + below.sum(axis=0).clip(max=hi - lo - 1)
    return Simulation(x, z, p, omega, phi, pi)
