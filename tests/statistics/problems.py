"""Problems small enough to enumerate, and the exact answers to them."""

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from bayescase.state import Hyper, make_data, make_hyper


def tiny():
    """S = 3, P = 2, ragged values, one missing cell, two equal candidates, one candidate with a gap, q per feature."""
    x = np.array([[0, 2], [1, 4], [0, -1]])
    candidates = np.array([[0, 2], [1, -1], [0, 2], [1, 4]])
    data = make_data(x, [0, 2, 5], candidates, weight=[1.0, 2.0, 1.0, 1.5])
    return data, make_hyper(3, 2, alpha=1.2, lam=0.7, c=4.0, q=[0.6, 0.3])


def random_problem(rng, *, S=3, N=6, P=4, M=5, gaps=0.15, kernel=False):
    """A problem with everything in it: ragged values, gaps in cases and candidates, weights, q per cluster and feature."""
    sizes = rng.integers(1, 5, size=P)
    offset = np.concatenate([[0], np.cumsum(sizes)])

    def rows(n):
        codes = offset[:-1] + (rng.random((n, P)) * sizes).astype(int)
        return np.where(rng.random((n, P)) < gaps, -1, codes)

    similarity = None
    if kernel:  # K_j(u, v) in [0, 1], some zeros
        ptr, idx, val = [0], [], []
        for lo, hi in pairwise(offset):
            for u in range(lo, hi):
                for v in range(lo, hi):
                    if u == v or rng.random() < 0.5:
                        idx.append(v)
                        val.append(1.0 if u == v else rng.random())
                ptr.append(len(idx))
        similarity = np.array(ptr), np.array(idx), np.array(val)
    data = make_data(rows(N), offset, rows(M), rng.random((M, S)) + 0.1, similarity)
    hyper = Hyper(
        rng.random() * 3 + 0.1, rng.dirichlet(np.ones(S) * 5), rng.random() + 0.1, rng.random() * 20, rng.random((S, P))
    )
    return data, hyper


class Exact(NamedTuple):
    """The posterior of a tiny problem by enumeration."""

    z: np.ndarray  # (states, N, P)
    prob: np.ndarray  # (states,) p(z | x)
    cluster: np.ndarray  # (states, S, M, 2^P) p(p_s = m, ω_s = w | z, x)
    subspaces: np.ndarray  # (2^P, P)


def enumerate_posterior(data, hyper):
    """Every z; given z the clusters are independent, so (p_s, ω_s) is enumerated cluster by cluster."""
    (N, P), S, M = data.x.shape, len(hyper.beta), len(data.candidates)
    cells = np.argwhere(data.x >= 0)
    subspaces = np.array(list(product((0, 1), repeat=P)))
    states = np.array(list(product(range(S), repeat=len(cells))))
    z = np.zeros((len(states), N, P), dtype=int)
    z[:, cells[:, 0], cells[:, 1]] = states
    log_prior = np.zeros(len(states))
    log_cluster = np.zeros((len(states), S, M, len(subspaces)))
    a = hyper.alpha * hyper.beta
    columns = np.arange(S) % data.log_weight.shape[1]
    for k, labels in enumerate(z):
        n_is = np.array([[((labels[i] == s) & (data.x[i] >= 0)).sum() for s in range(S)] for i in range(N)])
        log_prior[k] = (gammaln(a + n_is) - gammaln(a)).sum()
        log_prior[k] += (gammaln(hyper.alpha) - gammaln(hyper.alpha + n_is.sum(axis=1))).sum()
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
            for w, on in enumerate(subspaces):
                log_cluster[k, s, :, w] = term[:, np.arange(P), on].sum(axis=1) + data.log_weight[:, columns[s]]
    per_cluster = logsumexp(log_cluster, axis=(2, 3))
    log_z = log_prior + per_cluster.sum(axis=1)
    return Exact(z, np.exp(log_z - logsumexp(log_z)), np.exp(log_cluster - per_cluster[:, :, None, None]), subspaces)


def similarity_row(data, u, codes):
    """K_j(u, ·) over the codes of a feature; nothing is similar to a missing value."""
    k = np.zeros(len(codes))
    if u >= 0:
        span = slice(data.k_ptr[u], data.k_ptr[u + 1])
        k[data.k_idx[span] - codes[0]] = data.k_val[span]
    return k
