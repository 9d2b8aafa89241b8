"""Right or wrong, by condition, with effects of the person and of the item: a Bayesian logistic model, without chance.

    logit P(right) = Xβ + u[person] + v[item],   β_j ~ N(0, s_j²),   u ~ N(0, σ_u²),   v ~ N(0, σ_v²),   σ_u, σ_v ~ |N(0, 1.5²)|

Given σ the posterior of (β, u, v) is taken as normal (Laplace, mean corrected for skewness); σ is summed over a grid. So the
answer is the same every time, perfect scores have finite odds, and the doubt about σ widens the intervals. Maximum
likelihood gives infinite odds for perfect scores; variational fits (statsmodels) have intervals that are too narrow, and would
be a heavy dependency for one function.
"""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize, special
from threadpoolctl import threadpool_limits

INTERCEPT_SD, EFFECT_SD, SPREAD_SD = 5.0, 2.5, 1.5  # an effect beyond a factor of e^5 = 150 in the odds is not expected
COARSE = np.linspace(np.log(0.05), np.log(5), 7)  # of log σ


@dataclass(frozen=True)
class Posterior:
    """A mixture of normal distributions of β, one per pair (σ_u, σ_v)."""

    weights: np.ndarray  # g
    means: np.ndarray  # g × j
    covariances: np.ndarray  # g × j × j
    spreads: np.ndarray  # g × 2

    def contrast(self, c) -> tuple[float, float, float, float]:
        """Median of cᵀβ, its 95 % interval, and the probability that it is above zero."""
        mean, sd = self.means @ c, np.sqrt(np.einsum("gjk,j,k->g", self.covariances, c, c))
        lowest, highest = (mean - 8 * sd).min(), (mean + 8 * sd).max()

        def below(x):
            return float(self.weights @ special.ndtr((x - mean) / sd))

        median, low, high = (optimize.brentq(lambda x: below(x) - q, lowest, highest) for q in (0.5, 0.025, 0.975))
        return median, low, high, 1 - below(0.0)

    def spread(self) -> tuple[float, float]:
        """Posterior means of σ_u and σ_v."""
        return tuple((self.weights @ self.spreads).tolist())


def fit(right, X, person, item) -> Posterior:
    """The first column of X is the constant; persons and items are numbered from 0, and each has an answer."""
    order = np.argsort(person, kind="stable")
    y, X, person, item = (np.asarray(part)[order] for part in (right, X, person, item))
    data = y.astype(float), np.c_[X, np.eye(item.max() + 1)[item]], person, np.flatnonzero(np.diff(person, prepend=-1))
    with threadpool_limits(1, "blas"):  # the matrices are small; threads would only wait for each other
        coarse = over_grid(*data, X.shape[1], COARSE, COARSE)
        log = np.log(coarse.spreads)
        mean = coarse.weights @ log
        sd = np.maximum(np.sqrt(coarse.weights @ (log - mean) ** 2), 0.2)  # the coarse grid cannot tell a smaller one
        return over_grid(*data, X.shape[1], *(m + s * np.linspace(-3, 3, 9) for m, s in zip(mean, sd, strict=True)))


def over_grid(y, F, person, starts, j, logs_u, logs_v):
    """The posterior with σ_u and σ_v on an even grid of logarithms. F = [X, items]."""
    fixed = np.r_[INTERCEPT_SD, np.full(j - 1, EFFECT_SD)] ** -2.0
    k_v = F.shape[1] - j
    at = np.zeros(F.shape[1]), np.zeros(len(starts))
    found = []
    for a, log_u in enumerate(logs_u):
        for log_v in logs_v if a % 2 == 0 else logs_v[::-1]:  # there and back, so that each start is near its mode
            s_u, s_v = np.exp(log_u), np.exp(log_v)
            Q = np.r_[fixed, np.full(k_v, s_v**-2.0)]
            at, height, half_log_det, S, shift = mode(y, F, person, starts, Q, s_u**-2.0, at)
            evidence = height + 0.5 * np.log(Q).sum() - len(starts) * log_u - half_log_det
            prior = log_u + log_v - 0.5 * (s_u**2 + s_v**2) / SPREAD_SD**2  # |N|, as a density of log σ
            cov = linalg.cho_solve(S, np.eye(F.shape[1], j))[:j]
            found.append((evidence + prior, (at[0] + shift)[:j], cov, (s_u, s_v)))
    heights, means, covs, spreads = (np.array(part) for part in zip(*found, strict=True))
    return Posterior(special.softmax(heights), means, covs, spreads)


def mode(y, F, person, starts, Q, q, at):
    """Newton with halved steps from `at` = (β and v, u): the mode, log likelihood and prior there, ½ log|H|, the factor of S,
    and how far the mean of (β, v) is from the mode.

    The curvature H has a diagonal block D for the persons, so S = H_ff − AᵀD⁻¹A, as large as β and v, is all that is factored.
    """

    def height(f, u):
        eta = F @ f + u[person]
        return float(y @ eta - np.logaddexp(0, eta).sum() - 0.5 * (Q @ f**2 + q * u @ u)), eta

    (f, u), step = at, np.inf
    now, eta = height(f, u)
    for _ in range(100):
        p = special.expit(eta)
        w = p * (1 - p)
        wF = w[:, None] * F
        A, D = np.add.reduceat(wF, starts), np.add.reduceat(w, starts) + q
        S = linalg.cho_factor(F.T @ wF + np.diag(Q) - A.T @ (A / D[:, None]))
        if step < 1e-6:
            break
        g_f, g_u = F.T @ (y - p) - Q * f, np.add.reduceat(y - p, starts) - q * u
        move_f = linalg.cho_solve(S, g_f - A.T @ (g_u / D))
        move_u = (g_u - A @ move_f) / D
        size = 1.0
        while (new := height(f + size * move_f, u + size * move_u))[0] < now - 1e-9 and size > 1e-6:
            size /= 2
        f, u, (now, eta) = f + size * move_f, u + size * move_u, new
        step = size * max(np.abs(move_f).max(), np.abs(move_u).max())
    # The distribution is skewed: its mean is at the mode − ½ H⁻¹ Zᵀ(w′ var η), with w′ = dw/dη.
    B = F - (A / D[:, None])[person]
    skew = w * (1 - 2 * p) * (np.einsum("ij,ji->i", B, linalg.cho_solve(S, B.T)) + 1 / D[person])
    shift = -0.5 * linalg.cho_solve(S, F.T @ skew - A.T @ (np.add.reduceat(skew, starts) / D))
    return (f, u), now, np.log(np.diag(S[0])).sum() + 0.5 * np.log(D).sum(), S, shift
