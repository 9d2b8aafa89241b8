"""New cases and a Fitted: where they belong, how probable they are, and cases that never were."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp

from .fitted import Fitted
from .kernels import PARTICLES, fold_in, log_probability
from .sampling.folding import FOLD

SCORE, DRAW = 1 << 21, 1 << 22  # streams of random numbers beside FOLD


def memberships(fitted: Fitted, x: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """(N, S) Posterior mean of π of cases with codes x, folded into the fitted clusters."""
    return fitted.folds.memberships(x, n_jobs)


def memberships_by_draw(fitted: Fitted, x: np.ndarray) -> np.ndarray:
    """(draws, N, S) The same by each draw of φ that was kept for new cases."""
    each = np.zeros((len(fitted.folds), len(x), fitted.n_clusters))
    fitted.folds.each(len(x), FOLD, 1, lambda rows, d, fold, seed: fold_in(x[rows], fold, seed, each[d, rows]))
    return each / each.sum(axis=2, keepdims=True)


def log_probabilities(fitted: Fitted, x: np.ndarray, n_jobs: int = 1) -> np.ndarray:
    """(N,) Log predictive probability of cases with codes x, averaged over draws of φ."""
    value = np.zeros((len(fitted.folds), len(x), PARTICLES))
    fitted.folds.each(len(x), SCORE, n_jobs, lambda rows, d, fold, seed: log_probability(x[rows], fold, seed, value[d, rows]))
    return logsumexp(value, axis=(0, 2)) - np.log(len(value) * PARTICLES)


def sample(fitted: Fitted, n: int, seed: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(codes, labels) of n cases from the posterior predictive distribution; a label is that of most cells."""
    rng = np.random.default_rng([fitted.plan.seed, DRAW] if seed is None else seed)
    tables, prior, offset = fitted.posterior.tables, fitted.posterior.prior, fitted.data.offset
    S, P = fitted.hyper.q.shape
    which = rng.integers(len(tables), size=n)
    pi = np.exp(log_dirichlet(prior[which], rng)) if fitted.hyper.alpha > 0 else np.eye(S)[pick(prior[which], rng)]
    x, z = np.empty((n, P), dtype=np.int64), np.empty((n, P), dtype=np.int64)
    for j in range(P):
        z[:, j] = pick(pi, rng)
        x[:, j] = offset[j] + pick(tables[which, offset[j] : offset[j + 1], z[:, j]].astype(float), rng)
    return x, (z[:, :, None] == np.arange(S)).sum(axis=1).argmax(axis=1)


def log_dirichlet(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Dirichlet draws, one per row, on the log scale: small shapes underflow."""
    log_gamma = np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
    return log_gamma - logsumexp(log_gamma, axis=1, keepdims=True)


def pick(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One index per row, ∝ its weights."""
    edges = np.cumsum(weights, axis=1)
    return (edges < rng.random((len(weights), 1)) * edges[:, -1:]).sum(axis=1)
