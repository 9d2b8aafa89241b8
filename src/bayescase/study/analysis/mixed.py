"""Right or wrong, by condition: a logistic model with effects of people, cases and explanations, and with their slopes.

    logit P(right) = Xβ + Σ over terms of b[group],   β_j ~ N(0, s_j²),   b ~ N(0, σ²) with one σ per term,   σ ~ |N(0, 1.5²)|

The terms are person, case and explanation, and each of them by condition: these are the slopes, without which five
explanations pass for all of their kind. Given σ the posterior of (β, b) is taken as normal (Laplace, mean corrected for
skewness). σ of people and cases are set to their most probable values (EM); that of explanations by condition, on which the
interval of β depends most and of which few explanations say little, is summed over a grid. So the answer is the same every
time, perfect scores have finite odds, and the doubt about the slopes widens the intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize, special
from threadpoolctl import threadpool_limits

INTERCEPT_SD, EFFECT_SD, SPREAD_SD = 5.0, 2.5, 1.5  # an effect beyond a factor of e^5 = 150 in the odds is not expected
GRID = np.linspace(np.log(0.03), np.log(4), 9)  # of log σ of the term that is summed over
ROUNDS, PACE = 24, 2.5  # of EM


@dataclass(frozen=True)
class Posterior:
    """A mixture of normal distributions of β, one per value of the σ that is summed over."""

    weights: np.ndarray  # g
    means: np.ndarray  # g × j
    covariances: np.ndarray  # g × j × j
    spreads: dict[str, float]  # σ of each term, on average

    def contrast(self, c: np.ndarray) -> tuple[float, float, float, float]:
        """Median of cᵀβ, its 95 % interval, and the probability that it is above zero."""
        mean, sd = self.means @ c, np.sqrt(np.einsum("gjk,j,k->g", self.covariances, c, c))
        lowest, highest = (mean - 8 * sd).min(), (mean + 8 * sd).max()

        def below(x):
            return float(self.weights @ special.ndtr((x - mean) / sd))

        median, low, high = (optimize.brentq(lambda x: below(x) - q, lowest, highest) for q in (0.5, 0.025, 0.975))
        return median, low, high, 1 - below(0.0)


class Term(NamedTuple):
    """A group of effects with one σ."""

    name: str
    group: np.ndarray  # of each answer, from 0


class Model(NamedTuple):
    """Answers in the order of persons. F = [X, a column per effect of a term]; Z: the terms within persons, alike for all."""

    y: np.ndarray
    F: np.ndarray
    Z: np.ndarray
    person: np.ndarray
    starts: np.ndarray
    j: int  # columns of X
    spans: tuple[slice, ...]  # columns of F of each term
    own: tuple[slice, ...]  # columns of Z of each term within persons


def fit(
    right: np.ndarray, X: np.ndarray, person: np.ndarray, within: Sequence[Term], terms: Sequence[Term], summed: str
) -> Posterior:
    """The first column of X is the constant. `within`: terms numbered within persons; `summed`: the name of one of `terms`."""
    order = np.argsort(person, kind="stable")

    def one_hot(term):
        return np.eye(int(term.group.max()) + 1)[term.group]

    columns, own = [one_hot(term) for term in terms], [one_hot(term) for term in within]
    model = Model(
        right[order].astype(float), np.hstack([X, *columns])[order], np.hstack(own)[order], person[order],
        np.flatnonzero(np.diff(person[order], prepend=-1)), X.shape[1],
        spans([part.shape[1] for part in columns], X.shape[1]), spans([part.shape[1] for part in own], 0),
    )  # fmt: skip
    with threadpool_limits(1, "blas"):  # the matrices are small; threads would only wait for each other
        return over_grid(model, [term.name for term in within], [term.name for term in terms], summed)


def spans(widths: list[int], start: int) -> tuple[slice, ...]:
    ends = start + np.cumsum(widths)
    return tuple(slice(int(end) - width, int(end)) for end, width in zip(ends, widths, strict=True))


def over_grid(model: Model, within: list[str], names: list[str], summed: str) -> Posterior:
    """σ of `summed` on an even grid of logarithms, the others where EM leads for each."""
    variance = np.full(len(names), 0.5)
    own = np.full(len(within), 0.5)
    at = np.zeros(model.F.shape[1]), np.zeros((len(model.starts), model.Z.shape[1]))
    found = []
    place = names.index(summed)
    for n, log in enumerate(GRID):
        variance[place] = np.exp(2 * log)
        for _ in range(ROUNDS if n == 0 else ROUNDS // 4):  # the next point of the grid is near
            at, state = newton(model, precision(model, variance), own_precision(model, own), at, 2)
            variance, own = m_step(model, at, state, variance, own, place)
        at, state = newton(model, precision(model, variance), own_precision(model, own), at, 100)
        prior = sum(0.5 * np.log(v) - 0.5 * v / SPREAD_SD**2 for v in (*variance, *own))  # |N|, as a density of log σ
        cov = linalg.cho_solve(state.S, np.eye(model.F.shape[1], model.j))[: model.j]
        found.append((state.evidence + prior, (at[0] + shift(model, state))[: model.j], cov, np.r_[variance, own] ** 0.5))
    heights, means, covs, spreads = (np.array(part) for part in zip(*found, strict=True))
    weights = special.softmax(heights)
    return Posterior(weights, means, covs, dict(zip([*names, *within], (weights @ spreads).tolist(), strict=True)))


def precision(model: Model, variance: np.ndarray) -> np.ndarray:
    found = np.r_[INTERCEPT_SD, np.full(model.F.shape[1] - 1, EFFECT_SD)] ** -2.0
    for span, v in zip(model.spans, variance, strict=True):
        found[span] = 1 / v
    return found


def own_precision(model: Model, variance: np.ndarray) -> np.ndarray:
    return np.concatenate([np.full(of.stop - of.start, 1 / v) for of, v in zip(model.own, variance, strict=True)])


def m_step(model, at, state, variance, own, place):
    """The most probable variances given how large the effects are, E[b²] summed: v² / s² + n v − ΣE[b²] = 0."""

    def likeliest(n, squares):
        return max((np.sqrt(n**2 + 4 * squares / SPREAD_SD**2) - n) * SPREAD_SD**2 / 2, 1e-4)

    def further(old, new):  # EM is slow: go on in the direction that it takes
        return np.clip(old * (new / old) ** PACE, 1e-4, 25.0)

    inverse = linalg.cho_solve(state.S, np.eye(model.F.shape[1]))
    squares = at[0] ** 2 + np.diag(inverse)
    new = further(variance, np.array([likeliest(of.stop - of.start, squares[of].sum()) for of in model.spans]))
    new[place] = variance[place]
    of_persons = at[1] ** 2 + np.diagonal(state.D, axis1=1, axis2=2) + np.einsum("pqf,fg,pqg->pq", state.G, inverse, state.G)
    n = len(model.starts)
    return new, further(own, np.array([likeliest(n * (of.stop - of.start), of_persons[:, of].sum()) for of in model.own]))


class State(NamedTuple):
    """The curvature at a mode. D: inverses of the blocks of persons; S: factor of what is left of F; G = D A."""

    S: tuple
    D: np.ndarray
    G: np.ndarray
    p: np.ndarray
    evidence: float


def newton(model: Model, Q: np.ndarray, q: np.ndarray, at: tuple, most: int) -> tuple[tuple[np.ndarray, np.ndarray], State]:
    """At most so many steps, halved where they lead down, from `at` = (β and b of cases and explanations, b within persons).

    The curvature has a small block per person, so S = H_ff − Σ AᵀD A, as large as F is wide, is all that is factored.
    """
    y, F, Z, person, starts = model[:5]

    def height(f, u):
        eta = F @ f + (Z * u[person]).sum(axis=1)
        return float(y @ eta - np.logaddexp(0, eta).sum() - 0.5 * (Q @ f**2 + (u**2 @ q).sum())), eta

    (f, u), step = at, np.inf
    now, eta = height(f, u)
    for round in range(most + 1):
        p = special.expit(eta)
        w = p * (1 - p)
        wF = w[:, None] * F
        A = np.stack([np.add.reduceat(wF * Z[:, [k]], starts) for k in range(Z.shape[1])], axis=1)  # persons × q × f
        blocks = np.add.reduceat((w[:, None] * Z)[:, :, None] * Z[:, None, :], starts) + np.diag(q)
        D = np.linalg.inv(blocks)
        G = D @ A
        S = linalg.cho_factor(F.T @ wF + np.diag(Q) - np.tensordot(A, G, ([0, 1], [0, 1])))
        if step < 1e-6 or round == most:
            break
        g_f, g_u = F.T @ (y - p) - Q * f, np.add.reduceat((y - p)[:, None] * Z, starts) - q * u
        move_f = linalg.cho_solve(S, g_f - np.tensordot(G, g_u, ([0, 1], [0, 1])))
        move_u = np.einsum("pqr,pr->pq", D, g_u) - G @ move_f
        size = 1.0
        while (new := height(f + size * move_f, u + size * move_u))[0] < now - 1e-9 and size > 1e-6:
            size /= 2
        f, u, (now, eta) = f + size * move_f, u + size * move_u, new
        step = size * max(np.abs(move_f).max(), np.abs(move_u).max())
    half_log_det = np.log(np.diag(S[0])).sum() - 0.5 * np.linalg.slogdet(D)[1].sum()
    evidence = now + 0.5 * np.log(Q).sum() + 0.5 * len(starts) * np.log(q).sum() - half_log_det
    return (f, u), State(S, D, G, p, float(evidence))


def shift(model: Model, state: State) -> np.ndarray:
    """The distribution is skewed: its mean is at the mode − ½ H⁻¹ (w′ var η), with w′ = dw/dη."""
    F, Z, person, starts = model.F, model.Z, model.person, model.starts
    B = F - np.einsum("nq,nqf->nf", Z, state.G[person])
    spread = np.einsum("nf,fn->n", B, linalg.cho_solve(state.S, B.T)) + np.einsum("nq,nqr,nr->n", Z, state.D[person], Z)
    skew = state.p * (1 - state.p) * (1 - 2 * state.p) * spread
    of_persons = np.add.reduceat(skew[:, None] * Z, starts)
    return -0.5 * linalg.cho_solve(state.S, F.T @ skew - np.tensordot(state.G, of_persons, ([0, 1], [0, 1])))
