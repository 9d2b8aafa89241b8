"""Problems small enough to enumerate, and the exact answers to them."""

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from bayescase.state import Hyper, make_data, make_hyper


def tiny(kernel=None, **given):
    """S = 3, P = 2, ragged values, one missing cell, two equal candidates, one candidate with a gap, q per feature."""
    x = np.array([[0, 2], [1, 4], [0, -1]])
    candidates = np.array([[0, 2], [1, -1], [0, 2], [1, 4]])
    data = make_data(x, OFFSET, candidates, [1.0, 2.0, 1.0, 1.5], similarity_of(np.random.default_rng(0), OFFSET, kernel))
    return data, make_hyper(3, 2, **({"alpha": 1.2, "lam": 0.7, "c": 4.0, "q": [0.6, 0.3]} | given))


OFFSET = [0, 2, 5]


def tiny_pinned(**given):
    """The same, with everything in it that a person can say: a held case, held ω, a held prototype, priors per cluster."""
    data, hyper = tiny("table", q=[[0.6, 0.3], [0.2, 0.8], [0.5, 0.4]], **given)
    weight = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 0.0], [1.0, 0.0, 3.0], [1.5, 1.0, 1.0]])  # cluster 1 has candidate 3
    held = {"z_held": np.array([-1, 2, -1]), "omega_held": np.array([[-1, 1], [-1, -1], [0, -1]], dtype=np.int8)}
    return make_data(data.x, data.offset, data.candidates, weight, data.book[1:])._replace(**held), hyper


def similarity_of(rng, offset, kernel):
    """K as (k_ptr, k_idx, k_val): "within" is 1[|u − v| ≤ 1]; "table" is any K: not symmetric, fractions, zeros."""
    if kernel is None:
        return None
    ptr, idx, val = [0], [], []
    for lo, hi in pairwise(offset):
        for u in range(lo, hi):
            for v in range(lo, hi):
                k = float(abs(u - v) <= 1) if kernel == "within" else rng.random() * (rng.random() < 0.7)
                if k > 0:
                    idx.append(v)
                    val.append(k)
            ptr.append(len(idx))
    return np.array(ptr), np.array(idx), np.array(val)


def random_problem(rng, *, S=3, N=6, P=4, M=5, gaps=0.15, kernel=None, alpha=None, held=False):
    """A problem with everything in it: ragged values, gaps in cases and candidates, weights, q per cluster and feature.

    held: a third of the cases, of ω and of the prototypes.
    """
    sizes = rng.integers(1, 5, size=P)
    offset = np.concatenate([[0], np.cumsum(sizes)])

    def rows(n):
        codes = offset[:-1] + (rng.random((n, P)) * sizes).astype(int)
        return np.where(rng.random((n, P)) < gaps, -1, codes)

    weight = rng.random((M, S)) + 0.1
    z_held = omega_held = None
    if held:
        z_held = np.where(rng.random(N) < 0.3, rng.integers(S, size=N), -1)
        omega_held = np.where(rng.random((S, P)) < 0.3, rng.integers(2, size=(S, P)), -1)
        weight[:, 0] = np.arange(M) == 2
    data = make_data(rows(N), offset, rows(M), weight, similarity_of(rng, offset, kernel), z_held, omega_held)
    alpha = rng.random() * 3 + 0.1 if alpha is None else alpha
    beta, q = rng.dirichlet(np.ones(S) * 5), rng.random((S, P))
    return data, Hyper(alpha, beta, rng.random() + 0.1, rng.random() * 20, q, gamma=1.5)


class Exact(NamedTuple):
    """The posterior of a tiny problem by enumeration."""

    z: np.ndarray  # (states, N, P)
    prob: np.ndarray  # (states,) p(z | x)
    cluster: np.ndarray  # (states, S, M, 2^P) p(p_s = m, ω_s = w | z, x)
    subspaces: np.ndarray  # (2^P, P)


def enumerate_posterior(data, hyper):
    """Every z; given z the clusters are independent, so (p_s, ω_s) is enumerated cluster by cluster.

    What is held has probability one. With γ > 0, β is integrated out.
    """
    (N, P), S, M = data.x.shape, len(hyper.beta), len(data.candidates)
    cells = np.argwhere(data.x >= 0)
    subspaces = np.array(list(product((0, 1), repeat=P)))
    states = np.array(list(product(range(S), repeat=len(cells))))
    z = np.zeros((len(states), N, P), dtype=int)
    z[:, cells[:, 0], cells[:, 1]] = states
    log_z = np.zeros(len(states))
    log_cluster = np.zeros((len(states), S, M, len(subspaces)))
    columns = np.arange(S) % data.log_weight.shape[1]
    for k, labels in enumerate(z):
        n_is = np.array([[((labels[i] == s) & (data.x[i] >= 0)).sum() for s in range(S)] for i in range(N)])
        log_z[k] = log_prior_of_rows(hyper, n_is)
        if len(data.z_held) and (n_is[data.z_held >= 0].argmax(axis=1) != data.z_held[data.z_held >= 0]).any():
            log_z[k] = -np.inf
        if len(data.z_held) and ((n_is > 0).sum(axis=1) > 1)[data.z_held >= 0].any():
            log_z[k] = -np.inf
        for s in range(S):
            term = np.zeros((M, P, 2))
            for j in range(P):
                codes = np.arange(data.offset[j], data.offset[j + 1])
                n = np.array([((data.x[:, j] == v) & (labels[:, j] == s)).sum() for v in codes])
                for m in range(M):
                    for on in (0, 1):
                        g = hyper.lam * (1 + hyper.c * on * similarity_row(data, data.candidates[m, j], codes))
                        term[m, j, on] = (gammaln(g + n) - gammaln(g)).sum() + gammaln(g.sum()) - gammaln(g.sum() + n.sum())
                        term[m, j, on] += np.log(hyper.q[s, j]) if on else np.log1p(-hyper.q[s, j])
            if len(data.omega_held):
                for j in np.flatnonzero(data.omega_held[s] >= 0):
                    term[:, j, 1 - data.omega_held[s, j]] = -np.inf
            for w, on in enumerate(subspaces):
                log_cluster[k, s, :, w] = term[:, np.arange(P), on].sum(axis=1) + data.log_weight[:, columns[s]]
    per_cluster = logsumexp(log_cluster, axis=(2, 3))
    log_z += per_cluster.sum(axis=1)
    return Exact(z, np.exp(log_z - logsumexp(log_z)), np.exp(log_cluster - per_cluster[:, :, None, None]), subspaces)


def log_prior_of_rows(hyper, n_is):
    """log p(z) with π integrated out; with γ > 0 β, too: given the tables m of all rows, labels are Dirichlet-multinomial."""
    alpha, S = hyper.alpha, len(hyper.beta)
    if alpha == 0.0 and ((n_is > 0).sum(axis=1) > 1).any():
        return -np.inf
    if hyper.gamma == 0.0:
        if alpha == 0.0:
            return np.log((n_is > 0) @ hyper.beta)[n_is.any(axis=1)].sum()
        a = alpha * hyper.beta
        return (gammaln(a + n_is) - gammaln(a)).sum() + (gammaln(alpha) - gammaln(alpha + n_is.sum(axis=1))).sum()
    ways = []  # of each label: Σ of the weights of all seatings with m tables, for every m
    for s in range(S):
        total = np.ones(1)
        for n in n_is[:, s]:
            total = np.convolve(total, seatings(alpha, n))
        ways.append(total)
    total, a = 0.0, hyper.gamma / S
    for m in product(*(range(len(w)) for w in ways)):
        weight = np.prod([w[t] for w, t in zip(ways, m, strict=True)])
        if weight > 0:
            m = np.array(m)
            log_m = (gammaln(a + m) - gammaln(a)).sum() + gammaln(hyper.gamma) - gammaln(hyper.gamma + m.sum())
            total += weight * np.exp(log_m)
    rows = (gammaln(alpha) - gammaln(alpha + n_is.sum(axis=1))).sum() if alpha > 0.0 else 0.0
    return np.log(total) + rows


def seatings(a, n):
    """(n + 1,) Σ over the seatings of n customers at m tables of Π weights: a for a new table, l for one of l seated before.

    At α = 0 (one label per case) a row has one table.
    """
    ways = np.ones(1)
    for seated in range(n):
        ways = np.append(ways * seated, 0.0) + np.append(0.0, ways * a)
    if a == 0.0:
        ways = np.eye(n + 1)[1] if n else np.ones(1)
    return ways


def similarity_row(data, u, codes):
    """K_j(u, ·) over the codes of a feature; nothing is similar to a missing value."""
    k = np.zeros(len(codes))
    if u >= 0:
        span = slice(data.book.k_ptr[u], data.book.k_ptr[u + 1])
        k[data.book.k_idx[span] - codes[0]] = data.book.k_val[span]
    return k
