"""Hyperparameters that are learned: α, λ, c, q, and for an unknown number of clusters β and γ, given z, p and ω.

Only tables of counts enter, so this is cheap. Priors are diffuse:

    log α, log λ, log c, log γ ~ Normal, cut off at the limits of what can be computed exactly
    q ~ Uniform(0, 1), one number for all clusters and features that have no q of their own
    β ~ Dirichlet(γ/S, …, γ/S): as S grows, π_i ~ DP(α β) becomes the hierarchical Dirichlet process. Unlike broken sticks this
    treats all labels alike, so that labels can be aligned over draws as ever.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

LARGEST = 1e6  # of a hyperparameter: differences of log Γ lose their digits beyond
PRIORS = {"alpha": (np.log(0.1), 2.0), "lam": (0.0, 1.5), "c": (np.log(10.0), 2.0), "gamma": (0.0, 1.5)}  # mean, sd of the log
LEARNED = ("alpha", "lam", "c", "q", "gamma")
STEPS = 24  # at most, of widening a slice


class Learn(NamedTuple):
    """What to draw."""

    names: tuple[str, ...] = ()  # of LEARNED; with "gamma" β, too
    q_free: np.ndarray | None = None  # (S, P) where q is the learned number


def initial(hyper, learn):
    """The hyperparameters to start from: what is learned starts at the middle of its prior, q at one half."""
    for name in learn.names:
        if name == "q":
            hyper = hyper._replace(q=np.where(learn.q_free, 0.5, hyper.q))
        else:
            hyper = hyper._replace(**{name: float(np.exp(PRIORS[name][0]))})
    return hyper


def draw_prior(hyper, learn, rng):
    """The learned hyperparameters from their priors, the others as they are."""
    for name in learn.names:
        if name == "q":
            hyper = hyper._replace(q=np.where(learn.q_free, rng.random(), hyper.q))
        else:
            mean, sd = PRIORS[name]
            value = np.inf
            while abs(value) > np.log(LARGEST):
                value = rng.normal(mean, sd)
            hyper = hyper._replace(**{name: float(np.exp(value))})
    if "gamma" in learn.names:
        hyper = hyper._replace(beta=dirichlet(np.full(len(hyper.beta), hyper.gamma / len(hyper.beta)), rng))
    return hyper


def log_prior(hyper, learn):
    """Log density of log α, …, as far as they are learned, up to a constant. That of β has poles, and is left out."""
    return float(sum(_log_normal(name, np.log(getattr(hyper, name))) for name in learn.names if name != "q"))


def update(data, hyper, learn, state, n_i, rng):
    """Draw each of the learned hyperparameters given all else. n_i: histogram of the numbers of observed cells per row."""
    if not learn.names:
        return hyper
    if "gamma" in learn.names:
        m = count_tables(hyper, state.n_rows, rng)
        gamma = slice_log("gamma", hyper.gamma, lambda x: log_tables(m, x), rng)
        hyper = hyper._replace(gamma=gamma, beta=dirichlet(gamma / len(m) + m, rng))
    if "alpha" in learn.names:
        hyper = hyper._replace(alpha=slice_log("alpha", hyper.alpha, lambda x: log_z(x, hyper.beta, state.n_rows, n_i), rng))
    if "lam" in learn.names or "c" in learn.names:
        counts = Counts(data, state)
        if "lam" in learn.names:
            hyper = hyper._replace(lam=slice_log("lam", hyper.lam, lambda x: counts.log_x(x, hyper.c), rng))
        if "c" in learn.names:
            hyper = hyper._replace(c=slice_log("c", hyper.c, lambda x: counts.log_x(hyper.lam, x), rng))
    if "q" in learn.names:
        on, free = int(state.omega[learn.q_free].sum()), int(learn.q_free.sum())
        q = np.clip(rng.beta(1 + on, 1 + free - on), 1 / LARGEST, 1 - 1 / LARGEST)
        hyper = hyper._replace(q=np.where(learn.q_free, q, hyper.q))
    return hyper


# --- the number of clusters ---------------------------------------------------------------------------------------------


def count_tables(hyper, n_rows, rng):
    """m_s: tables that serve label s, all rows together (Teh et al. 2006). Given them, β ~ Dirichlet(γ/S + m).

    A row with n_is cells of label s has Σ_{l < n_is} Bernoulli(α β_s / (α β_s + l)) tables; over rows only the number of them
    with n_is > l matters. At α = 0 a row has one table.
    """
    width = n_rows.shape[1]
    more = n_rows[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]  # rows with n_is > l, l = 0 …
    if hyper.alpha > 0.0:
        a = hyper.alpha * hyper.beta[:, None]
        return rng.binomial(more, a / (a + np.arange(width - 1))).sum(axis=1)
    return more[:, 0]


def log_tables(m, gamma):
    """log p(m | γ) with β integrated out, up to a constant."""
    return _rise(gamma / len(m), m).sum() - _rise(gamma, m.sum())


def dirichlet(shape, rng):
    """A Dirichlet draw that small shapes do not underflow; no entry below 1e-300, so that its logarithm exists."""
    log_gamma = np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(len(shape))) / shape  # Gamma(a) = Gamma(a + 1) U^(1/a)
    beta = np.exp(log_gamma - log_gamma.max())
    return np.maximum(beta / beta.sum(), 1e-300)


# --- likelihoods of single hyperparameters --------------------------------------------------------------------------------


def log_z(alpha, beta, n_rows, n_i):
    """log p(z | α, β) with π integrated out: the first line of the log joint, from histograms of counts."""
    a, n = (alpha * beta)[:, None], np.arange(n_rows.shape[1])
    return (n_rows * _rise(a, n)).sum() - (n_i * _rise(alpha, n)).sum()


class Counts:
    """log p(x | z, p, ω, λ, c) with φ integrated out, from a histogram of the counts by the similarity that they meet."""

    def __init__(self, data, state):
        from .kernels.cpu import copied

        n_sv, starts = state.n_sv, data.offset[:-1]
        k_sv = copied(data, state.p, state.omega)  # ω_sj K_j(p_sj, v)
        k, which = np.unique(k_sv, return_inverse=True)
        width = int(n_sv.max()) + 1
        pairs = np.bincount((which.reshape(-1) * width + n_sv.reshape(-1)), minlength=len(k) * width)
        seen = np.flatnonzero(pairs)
        self.k, self.n, self.times = k[seen // width], seen % width, pairs[seen]
        self.sizes = np.diff(data.offset)[:, None]
        self.k_sum, self.n_sj = np.add.reduceat(k_sv, starts), np.add.reduceat(n_sv, starts)

    def log_x(self, lam, c):
        values = (self.times * _rise(lam * (1.0 + c * self.k), self.n)).sum()
        return values - _rise(lam * (self.sizes + c * self.k_sum), self.n_sj).sum()


def _rise(a, n):
    return gammaln(a + n) - gammaln(a)


# --- slice sampling -------------------------------------------------------------------------------------------------------


def _log_normal(name, x):
    mean, sd = PRIORS[name]
    return -0.5 * ((x - mean) / sd) ** 2


def slice_log(name, value, log_likelihood, rng, width=1.0):
    """One slice-sampling update (Neal 2003, stepping out) of a positive number, on the scale of its logarithm."""
    low, high = -np.log(LARGEST), np.log(LARGEST)

    def height(x):
        return log_likelihood(np.exp(x)) + _log_normal(name, x) if low <= x <= high else -np.inf

    x = np.log(value)
    level = height(x) - rng.exponential()
    left = x - width * rng.random()
    right = left + width
    below = rng.integers(STEPS)
    for _ in range(below):
        if height(left) < level:
            break
        left -= width
    for _ in range(STEPS - 1 - below):
        if height(right) < level:
            break
        right += width
    while True:
        new = rng.uniform(left, right)
        if height(new) >= level:
            return float(np.exp(new))
        left, right = (new, right) if new < x else (left, new)
