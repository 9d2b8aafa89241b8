"""Clusters joined: the prototype, the subspace and the values of a cluster whose cases are known, by its counts alone.

Given the cases of a cluster, p and ω have a posterior in closed form. With n(v) how often value v occurs among them, copying
value u of the prototype is worth

    E(u) = log B(g_1 + n) − log B(g_1) − log B(g_0 + n) + log B(g_0),    g_ω(v) = λ(v) (1 + c ω K(u, v)),

so that candidate m has the weight w_m Π_j (q e^E(m_j) + 1 − q), and ω_j is 1 with the log odds logit q + E(m_j). The items of a
bag share one total, of n items. As in the sampler (docs/bags.md), t makes them independent,

    Γ(g) / Γ(g + n) = 1 / Γ(n) ∫ t^(g − 1) (1 − t)^(n − 1) dt,

so that each adds c λ(v) log t to its E; here the integral is a sum over a grid of t.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, gammaln, logsumexp

from ..state import Cells, Codebook, Data, Hyper
from .posterior import Posterior

FREE = -1  # ω is not held
GRID, TAIL = 32, 1e-5  # points of t, and what is left out at either end


class Prior(NamedTuple):
    """What is known of a cluster before its cases are."""

    lam: float
    c: float
    q: np.ndarray  # (D,)
    held: np.ndarray  # (D,) 0 or 1 where ω is held, FREE elsewhere
    log_weight: np.ndarray  # (M,) of each candidate


class Items(NamedTuple):
    """The items of a bag, at every t of a grid."""

    codes: slice
    log_weight: np.ndarray  # (GRID,) of t
    log_copy: np.ndarray  # (GRID, items)
    omega_prob: np.ndarray  # (GRID, items)


class Copying(NamedTuple):
    """For every code, as a value of the prototype; items of bags apart."""

    log_copy: np.ndarray  # (ΣV,) log(q e^E + 1 − q); 0 for items
    omega_prob: np.ndarray  # (ΣV,) p(ω = 1); 0 for items
    bags: tuple[Items, ...]


class Told(NamedTuple):
    """Who the prototype is, and what of it is copied."""

    weights: np.ndarray  # (candidates,) p(p = m)
    copied: np.ndarray  # (ΣV,) p(the prototype has it, and ω = 1)
    best: int  # the most probable candidate
    omega_prob: np.ndarray  # (ΣV,) p(ω = 1) of every code, if that is the prototype and has it


def prior_of(group: np.ndarray | list[int], data: Data, hyper: Hyper) -> Prior:
    """The prior of clusters taken together: the mean of theirs; ω is held where all of them hold it alike."""
    weight, held = data.log_weight, np.full(data.book.n_columns, FREE)
    if len(data.omega_held):
        of = data.omega_held[group]
        held = np.where((of == of[0]).all(axis=0), of[0], FREE)
    log_weight = weight[:, 0] if weight.shape[1] == 1 else logsumexp(weight[:, group], axis=1) - np.log(len(group))
    return Prior(hyper.lam, hyper.c, hyper.q[group].mean(axis=0), held, log_weight)


def copying(n: np.ndarray, book: Codebook, prior: Prior) -> Copying:
    """What copying each code is worth, given how often each occurs among the cases of the cluster, (ΣV,)."""
    lam, first = prior.lam * book.base, int(book.offset[book.n_single])
    q, held = prior.q[book.column], prior.held[book.column]
    log_copy, omega = np.zeros(len(n)), np.zeros(len(n))
    if first:
        worth = worth_of_values(n, book, lam, prior.c)
        log_copy[:first], omega[:first] = copy_or_not(worth, q[:first], held[:first])
    bags = []
    for b in range(book.n_single, len(book.offset) - 1):
        part = slice(int(book.offset[b]), int(book.offset[b + 1]))
        log_t, log_weight = grid_of_t(n[part], lam[part], prior.c)
        alone = rise(lam[part] * (1.0 + prior.c), n[part]) - rise(lam[part], n[part])
        worth = alone + prior.c * lam[part] * log_t[:, None]
        bags.append(Items(part, log_weight, *copy_or_not(worth, q[part], held[part])))
    return Copying(log_copy, omega, tuple(bags))


def copy_or_not(worth: np.ndarray, q: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(log(q e^E + 1 − q), p(ω = 1)), or what is held."""
    log_copy, omega = np.logaddexp(np.log(q) + worth, np.log1p(-q)), expit(np.log(q) - np.log1p(-q) + worth)
    return np.where(held == FREE, log_copy, np.where(held == 1, worth, 0.0)), np.where(held == FREE, omega, held == 1)


def grid_of_t(n: np.ndarray, lam: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    """(log t, log weight): even in log t, from where nothing is copied to where all items that occur are."""
    g, total = float(lam.sum()), max(float(n.sum()), 1e-9)
    most = g + c * float(lam[n > 0].sum())
    low, high = np.log(betaincinv(g, total, TAIL)), np.log(betaincinv(most, total, 1 - TAIL))
    high = min(high, -1e-12)
    log_t = np.linspace(min(max(low, -700.0), high), high, GRID)  # without cells t is 1
    return log_t, g * log_t + (total - 1.0) * np.log(-np.expm1(log_t))


def worth_of_values(n: np.ndarray, book: Codebook, lam: np.ndarray, c: float) -> np.ndarray:
    """E of every value of the single features."""
    P, first = book.n_single, int(book.offset[book.n_single])
    edges = int(book.k_ptr[first])
    v, k = book.k_idx[:edges], book.k_val[:edges]
    more = c * k * lam[v]
    gain = rise(lam[v] + more, n[v]) - rise(lam[v], n[v])
    sums = np.zeros((2, first))
    filled = np.diff(book.k_ptr[: first + 1]) > 0  # a value may agree with none
    for total, part in zip(sums, (gain, more), strict=True):
        total[filled] = np.add.reduceat(part, book.k_ptr[:first][filled]) if edges else 0.0
    feature, starts = book.feature[:first], book.offset[:P]
    plain, n_j = (np.add.reduceat(of[:first], starts)[feature] for of in (lam, n))
    return np.asarray(sums[0] - rise(plain + sums[1], n_j) + rise(plain, n_j))


def rise(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    """log Γ(a + n) / Γ(a)."""
    return np.asarray(gammaln(a + n) - gammaln(a))


def sum_rows(values: np.ndarray, cells: Cells) -> np.ndarray:
    """(rows,) Sums of a number of each code over the observed cells of each row."""
    known = cells.codes >= 0
    row = np.repeat(np.arange(len(cells.first) - 1), cells.sizes)[known]
    return np.bincount(row, weights=values[cells.codes[known]], minlength=len(cells.first) - 1)


def tell(of: Copying, log_weight: np.ndarray, candidates: Cells) -> Told:
    """The posterior of the prototype, one of the candidates, and of its subspace."""
    score, V = log_weight + sum_rows(of.log_copy, candidates), len(of.log_copy)
    of_t = []  # of every bag (GRID, candidates)
    for bag in of.bags:
        table, by_t = np.zeros(V), np.empty((len(bag.log_weight), len(score)))
        for k, row in enumerate(bag.log_copy):
            table[bag.codes] = row
            by_t[k] = bag.log_weight[k] + sum_rows(table, candidates)
        total = logsumexp(by_t, axis=0)
        of_t.append(np.exp(by_t - total))
        score = score + total
    weights = np.exp(score - logsumexp(score))
    best, omega = int(np.argmax(weights)), of.omega_prob.copy()
    copied = times_had(weights, candidates, V) * of.omega_prob
    for bag, p_t in zip(of.bags, of_t, strict=True):
        omega[bag.codes] = p_t[:, best] @ bag.omega_prob
        for k, row in enumerate(bag.omega_prob):
            copied[bag.codes] += times_had(weights * p_t[k], candidates, V)[bag.codes] * row
    return Told(weights, copied, best, omega)


def times_had(weights: np.ndarray, rows: Cells, V: int) -> np.ndarray:
    """(ΣV,) The weight of all rows that have each code."""
    known = rows.codes >= 0
    return np.bincount(rows.codes[known], weights=np.repeat(weights, rows.sizes)[known], minlength=V)


def pseudo_counts(codes: np.ndarray, of: Told, book: Codebook, prior: Prior) -> np.ndarray:
    """(ΣV,) How many pseudo-counts copying the prototype with these codes adds to each value, ω at its mean."""
    more = np.zeros(len(book.base))
    for u in codes[codes >= 0].tolist():
        if u < book.offset[book.n_single]:
            edges = slice(int(book.k_ptr[u]), int(book.k_ptr[u + 1]))
            more[book.k_idx[edges]] += of.omega_prob[u] * book.k_val[edges]
        else:
            more[u] = of.omega_prob[u]
    return prior.lam * prior.c * book.base * more


# --- a posterior with fewer clusters ---------------------------------------------------------------------------------------

Groups = tuple[tuple[int, ...], ...]  # clusters, each in one group


def order_groups(groups: Groups, memberships: np.ndarray) -> Groups:
    """From large to small, as clusters are."""
    size = memberships.sum(axis=0)
    return tuple(sorted((tuple(sorted(group)) for group in groups), key=lambda group: (-size[list(group)].sum(), group)))


def join_posterior(post: Posterior, data: Data, hyper: Hyper, groups: Groups, seed: int) -> tuple[Posterior, Data, Hyper]:
    """The posterior, the catalogue's prior and the hyperparameters with groups of clusters in place of clusters.

    A case belongs to a group as much as to its clusters together. Values are those of its clusters, by their size. Its
    prototype and its subspace are drawn given its cases, whatever the other groups are; a group of one cluster keeps what the
    run has drawn.
    """
    size = np.maximum(post.memberships.sum(axis=0), 1e-12)
    shares = [size[list(group)] / size[list(group)].sum() for group in groups]
    counts = value_counts(data.cells, post.memberships, len(post.values))
    found = [
        Drawn.as_it_was(post, group[0]) if len(group) == 1 else Drawn.anew(list(group), post, data, hyper, counts, seed)
        for group in groups
    ]

    def joined(of: np.ndarray) -> np.ndarray:
        return np.stack([of[..., list(group)] @ share for group, share in zip(groups, shares, strict=True)], axis=-1)

    def summed(of: np.ndarray) -> np.ndarray:
        return np.stack([of[..., list(group)].sum(axis=-1) for group in groups], axis=-1)

    priors = [prior_of(list(group), data, hyper) for group in groups]
    weight = data.log_weight if data.log_weight.shape[1] == 1 else np.column_stack([prior.log_weight for prior in priors])
    held = np.stack([prior.held for prior in priors]).astype(np.int8) if len(data.omega_held) else data.omega_held
    posterior = Posterior(
        memberships=summed(post.memberships),
        values=joined(post.values),
        omega_prob=np.stack([of.omega_prob for of in found]),
        copied=np.column_stack([of.copied for of in found]),
        p=np.stack([of.p for of in found], axis=-1),
        tables=post.tables,
        prior=post.prior,
        relabel=post.relabel,
        overlap=post.overlap,
        chain_labels=post.chain_labels,
    )
    q = np.stack([prior.q for prior in priors])
    return posterior, data._replace(log_weight=weight, omega_held=held), hyper._replace(beta=summed(hyper.beta), q=q)


def value_counts(cells: Cells, memberships: np.ndarray, V: int) -> np.ndarray:
    """(ΣV, S) How often each value occurs in each cluster, cases counted by their memberships."""
    known = cells.codes >= 0
    row = np.repeat(np.arange(len(memberships)), cells.sizes)[known]
    codes = cells.codes[known]
    return np.column_stack([np.bincount(codes, weights=of[row], minlength=V) for of in memberships.T])


class Drawn(NamedTuple):
    """Prototype and subspace of a group."""

    p: np.ndarray  # (chains, draws)
    omega_prob: np.ndarray  # (D,)
    copied: np.ndarray  # (ΣV,)

    @classmethod
    def as_it_was(cls, post: Posterior, s: int) -> Drawn:
        return cls(post.p[..., s], post.omega_prob[s], post.copied[:, s])

    @classmethod
    def anew(cls, group: list[int], post: Posterior, data: Data, hyper: Hyper, counts: np.ndarray, seed: int) -> Drawn:
        """Drawn given the cases of the group."""
        book, prior, catalogue = data.book, prior_of(group, data, hyper), data.candidate_cells
        of = tell(copying(counts[:, group].sum(axis=1), book, prior), prior.log_weight, catalogue)
        weights = of.weights
        p = np.random.default_rng([seed, *group]).choice(len(weights), size=post.p.shape[:2], p=weights)
        omega = np.bincount(book.column, weights=of.copied, minlength=book.n_columns)
        single = slice(0, book.n_single)  # where the prototype has no value, nothing is learned about ω
        has = np.bincount(book.column, weights=times_had(weights, catalogue, len(book.base)), minlength=book.n_columns)[single]
        omega[single] += (1.0 - np.minimum(has, 1.0)) * prior.q[single]
        return cls(p, np.clip(omega, 0.0, 1.0), np.clip(of.copied, 0.0, 1.0))
