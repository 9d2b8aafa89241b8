"""Problems small enough to enumerate, and the exact answers to them."""

from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from bayescase.state import Cells, Hyper, distinct, make_data, make_hyper


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
    return make_data(data.x, data.offset, data.candidates, weight, data.book[-3:])._replace(**held), hyper


def similarity_of(rng, offset, kernel, n_codes=None):
    """K as (k_ptr, k_idx, k_val): "within" is 1[|u − v| ≤ 1]; "table" is any K: not symmetric, fractions, zeros.

    n_codes: so many codes in all; items of bags match exactly.
    """
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
    for u in range(offset[-1], n_codes or offset[-1]):
        idx.append(u)
        val.append(1.0)
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


BAG_OFFSET = [0, 2, 5]  # a feature of two values, and a bag of three items


def tiny_bags(base=None, single=False, held=False, **given):
    """S = 3 and bags: an item that occurs twice, two equal candidates, weights, a base measure that is not flat.

    single: beside a feature of two values, one of them missing. held: a case, bits of items and a prototype, priors.
    """
    first = 2 if single else 0  # code of the first item
    items = [[0, 0], [1], [0, 2]] if not single else [[0, 0], [2], [1]]
    lists = [[0, 1], [2], [0, 1], [1, 2]]
    bags, candidate_bags = cells_of(items, first), cells_of(lists, first)
    x = np.array([[0], [1], [-1]]) if single else np.zeros((3, 0), dtype=int)
    candidates = np.array([[0], [1], [0], [-1]]) if single else np.zeros((4, 0), dtype=int)
    measure = None if base is None else np.array([0.6, 1.4, 0.3, 1.9, 0.8]) if single else np.array([0.3, 1.9, 0.8])
    D, more = 3 + single, {}
    weight, q = [1.0, 2.0, 1.0, 1.5], np.array([0.6, 0.3, 0.45, 0.7])[:D]
    if held:
        weight = np.array([[1.0, 0.0, 1.0], [2.0, 0.0, 0.5], [1.0, 0.0, 3.0], [1.5, 1.0, 1.0]])  # cluster 1 has candidate 3
        more = {"z_held": np.array([-1, 2, -1]), "omega_held": np.full((3, D), -1)}
        more["omega_held"][0, -1], more["omega_held"][2, -2] = 1, 0
        q = np.array([q, q[::-1], np.roll(q, 1)])
    offset = BAG_OFFSET if single else [0, 3]
    data = make_data(x, offset, candidates, weight, bags=bags, candidate_bags=candidate_bags, base=measure, **more)
    return data, make_hyper(3, D, **({"alpha": 1.2, "lam": 0.5, "c": 12.0, "q": q} | given))


def cells_of(lists, first=0):
    """Cells from a list of items per row."""
    sizes = [len(items) for items in lists]
    codes = np.array([item for items in lists for item in items], dtype=np.int64) + first
    return Cells(codes, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))


def random_bags(rng, *, S=3, N=8, M=5, P=2, alpha=None, held=False, kernel=None):
    """A mixed table with everything: two bags, repeated items, empty bags, gaps, a base measure, weights, q per column."""
    sizes = rng.integers(2, 4, size=P)
    offset = np.concatenate([[0], np.cumsum([*sizes, 4, 6])])

    def singles(n):
        codes = offset[:P] + (rng.random((n, P)) * sizes).astype(int)
        return np.where(rng.random((n, P)) < 0.15, -1, codes)

    def items(n, times):
        return [
            np.concatenate([rng.choice(np.arange(offset[P + b], offset[P + b + 1]), rng.integers(0, 4), times) for b in (0, 1)])
            for _ in range(n)
        ]

    base = np.concatenate([v / v.mean() for v in (rng.random(k) + 0.2 for k in (*sizes, 4, 6))])
    weight, D = rng.random((M, S)) + 0.1, P + 10
    z_held = omega_held = None
    if held:
        z_held = np.where(rng.random(N) < 0.3, rng.integers(S, size=N), -1)
        omega_held = np.where(rng.random((S, D)) < 0.3, rng.integers(2, size=(S, D)), -1)
        weight[:, 0] = np.arange(M) == 2
    data = make_data(
        singles(N), offset, singles(M), weight, similarity_of(rng, offset[: P + 1], kernel, offset[-1]), z_held, omega_held,
        bags=cells_of(items(N, True)), candidate_bags=distinct(cells_of(items(M, False))), base=base,
    )  # fmt: skip
    alpha = rng.random() * 3 + 0.1 if alpha is None else alpha
    return data, Hyper(
        alpha, rng.dirichlet(np.ones(S) * 5), rng.random() + 0.1, rng.random() * 20, rng.random((S, D)), gamma=1.5
    )


class Exact(NamedTuple):
    """The posterior of a tiny problem by enumeration."""

    z: np.ndarray  # (states, cells), missing ones 0
    prob: np.ndarray  # (states,) p(z | x)
    cluster: np.ndarray  # (states, S, M, 2^D) p(p_s = m, ω_s = w | z, x)
    subspaces: np.ndarray  # (2^D, D)


def enumerate_posterior(data, hyper):
    """Every z; given z the clusters are independent, so (p_s, ω_s) is enumerated cluster by cluster.

    What is held has probability one. With γ > 0, β is integrated out.
    """
    N, S, M, D = len(data.x), len(hyper.beta), len(data.candidates), data.book.n_columns
    codes, rows = data.cells.codes, np.repeat(np.arange(N), data.cells.sizes)
    seen = np.flatnonzero(codes >= 0)
    subspaces = np.array(list(product((0, 1), repeat=D)))
    states = np.array(list(product(range(S), repeat=len(seen))))
    z = np.zeros((len(states), len(codes)), dtype=int)
    z[:, seen] = states
    log_z, tables = np.zeros(len(states)), [tables_of(data, hyper, s, subspaces) for s in range(S)]
    log_cluster = np.zeros((len(states), S, M, len(subspaces)))
    for k, labels in enumerate(z):
        n_is, n_vs = np.zeros((N, S), dtype=int), np.zeros((data.offset[-1], S), dtype=int)
        np.add.at(n_is, (rows[seen], labels[seen]), 1)
        np.add.at(n_vs, (codes[seen], labels[seen]), 1)
        log_z[k] = log_prior_of_rows(hyper, n_is)
        held = data.z_held >= 0
        if held.any() and (n_is[held].sum(axis=1) != n_is[held, data.z_held[held]]).any():
            log_z[k] = -np.inf
        for s in range(S):
            log_cluster[k, s] = log_evidence(data, *tables[s], n_vs[:, s])
    per_cluster = logsumexp(log_cluster, axis=(2, 3))
    log_z += per_cluster.sum(axis=1)
    return Exact(z, np.exp(log_z - logsumexp(log_z)), np.exp(log_cluster - per_cluster[:, :, None, None]), subspaces)


def tables_of(data, hyper, s, subspaces):
    """(g, log prior) of every candidate and every ω for cluster s: (M, W, ΣV) and (M, W), -inf where ω is impossible."""
    book, M, W = data.book, len(data.candidates), len(subspaces)
    lam = hyper.lam * book.base
    g, log_prior = np.tile(lam, (M, W, 1)), np.zeros((M, W))
    bits = np.where(subspaces, np.log(hyper.q[s]), np.log1p(-hyper.q[s]))
    if len(data.omega_held):
        bits = np.where((data.omega_held[s] >= 0) & (subspaces != data.omega_held[s]), -np.inf, bits)
    for m in range(M):
        own = np.zeros(book.n_columns, dtype=bool)
        own[: book.n_single] = True
        for u in data.candidates[m][data.candidates[m] >= 0]:
            k = np.zeros(len(lam))
            k[book.k_idx[book.k_ptr[u] : book.k_ptr[u + 1]]] = book.k_val[book.k_ptr[u] : book.k_ptr[u + 1]]
            g[m] += lam * hyper.c * subspaces[:, [book.column[u]]] * k
        if data.candidate_bags is not None:
            first = data.candidate_bags.first
            for v in data.candidate_bags.codes[first[m] : first[m + 1]]:
                own[book.column[v]] = True
                g[m, :, v] += lam[v] * hyper.c * subspaces[:, book.column[v]]
        single = np.arange(book.n_columns) < book.n_single
        random = own & (single | (data.omega_held[s] < 0)) if len(data.omega_held) else own  # an item that is held has no bit
        impossible = np.isinf(bits[:, own]).any(axis=1) | subspaces[:, ~own].any(axis=1)
        log_prior[m] = np.where(impossible, -np.inf, np.where(random, bits, 0.0).sum(axis=1))
        log_prior[m] += data.log_weight[m, s % data.log_weight.shape[1]]
    return g, log_prior


def log_evidence(data, g, log_prior, n):
    """log p(x, m, ω) of one cluster with counts n, φ integrated out: (M, W)."""
    starts = data.offset[:-1]
    g_sum, n_sum = np.add.reduceat(g, starts, axis=2), np.add.reduceat(n, starts)
    values = (gammaln(g + n) - gammaln(g)).sum(axis=2)
    return values - (gammaln(g_sum + n_sum) - gammaln(g_sum)).sum(axis=2) + log_prior


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
