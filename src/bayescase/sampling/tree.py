"""Which clusters may be told as one: a tree, joined where the probability of cases that are left out loses least.

No fit is made anew. A case is left out by taking its own cells off the counts of its cluster; all others stay where they are:

    p(x_i | the others) = Σ_s (n_s + β_s) / N · Π_j (g_s(x_ij) + n_s(x_ij)) / (Σ_v g_s(v) + n_sj),

n_s cases in cluster s, n_s(v) of their cells with value v, all without case i. A cluster has the share of the cases that it
has, also where the model gives all clusters the same: else a large one would gain by taking in the weight of any other. Two
clusters that are joined have the sum of their counts and of their β, and the best prototype for these, of those that the run
drew for either. A prototype is scored as if nobody copied it: else a cluster of one would predict its only case. A case
counts as if all its cells had one cluster, as nearly all cases do at the small α that clusters are found with.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ..state import Cells, Codes, Data, Hyper
from .joining import Groups, copying, prior_of, pseudo_counts, tell, value_counts

MOST_CELLS = 1 << 19  # of the cases that are left out, one by one; more of them are chosen at random


class Join(NamedTuple):
    """Two nodes that become one. Nodes are clusters, 0 to S − 1, and joins, S, S + 1, …"""

    first: int
    second: int
    loss: float  # of the mean log probability of a case that is left out; below 0 if it gains
    error: float  # standard error of that, over cases
    sizes: tuple[int, int]  # cases whose main cluster is in the one and in the other
    cost: float  # the same loss, shared by these cases alone


class Tree(NamedTuple):
    """All clusters at one end, one at the other."""

    n_leaves: int
    joins: tuple[Join, ...]  # S − 1, in the order in which they are made
    log_probability: float  # mean of a case that is left out, with all clusters

    def groups(self, k: int) -> Groups:
        """The clusters as k groups."""
        nodes: dict[int, tuple[int, ...]] = {s: (s,) for s in range(self.n_leaves)}
        for step, join in enumerate(self.joins[: self.n_leaves - k]):
            nodes[self.n_leaves + step] = nodes.pop(join.first) + nodes.pop(join.second)
        return tuple(nodes.values())

    def number(self, tolerance: float) -> int:
        """How many clusters there are if those count as one whose cases become less probable by no more than this share."""
        most = -np.log1p(-tolerance)
        return self.n_leaves - next((k for k, join in enumerate(self.joins) if join.cost > most), len(self.joins))

    def leaves(self, node: int) -> tuple[int, ...]:
        """The clusters below a node."""
        if node < self.n_leaves:
            return (node,)
        join = self.joins[node - self.n_leaves]
        return self.leaves(join.first) + self.leaves(join.second)


class Found(NamedTuple):
    """What a tree is made of."""

    data: Data
    hyper: Hyper
    labels: np.ndarray  # (N,) main cluster of each case
    p: np.ndarray  # (chains, draws, S) prototypes that were drawn
    seed: int


class Node(NamedTuple):
    """Some clusters as one."""

    clusters: tuple[int, ...]
    size: int
    log_share: np.ndarray  # (chosen cases,) log of its part of the sum


class LeftOut:
    """The cases that are left out, one at a time."""

    def __init__(self, of: Found):
        data, book = of.data, of.data.book
        self.of, S = of, len(of.hyper.beta)
        per_case = max(len(data.cells.codes) / len(data.x), 1.0)
        most = int(min(len(data.x), max(MOST_CELLS // per_case, 1)))
        rng = np.random.default_rng(of.seed)
        self.rows = np.sort(rng.choice(len(data.x), size=most, replace=False))
        self.cells = known_cells(data.cases.take(self.rows))
        self.row = np.repeat(np.arange(most), self.cells.sizes)
        self.labels = of.labels[self.rows]
        self.counts = value_counts(data.cells, np.eye(S)[of.labels], len(book.base))
        self.sizes = np.bincount(of.labels, minlength=S)
        # how often a case has this very value, and how many cells of this feature: 1 and 1 but for bags
        feature = book.feature[self.cells.codes].astype(np.int64)
        self.feature = feature
        self.own = np.ones(len(feature))
        self.own_total = np.ones(len(feature))
        if book.n_bags:
            for out, key in ((self.own, self.cells.codes.astype(np.int64)), (self.own_total, feature)):
                _, where, times = np.unique(
                    self.row * (1 + int(key.max(initial=0))) + key, return_inverse=True, return_counts=True
                )
                out[:] = times[where]

    def node(self, clusters: tuple[int, ...]) -> Node:
        """Some clusters as one, and how probable it makes every case."""
        of, group = self.of, list(clusters)
        data, hyper, book = of.data, of.hyper, of.data.book
        n = self.counts[:, group].sum(axis=1)
        prior = prior_of(group, data, hyper)
        drawn = np.unique(of.p[..., group])
        catalogue = data.catalogue.take(drawn).cells
        told = tell(copying(n, book, prior), prior.log_weight[drawn], catalogue)
        best = told.best
        plain = prior.lam * book.base
        copied = plain + pseudo_counts(catalogue.codes[catalogue.first[best] : catalogue.first[best + 1]], told, book, prior)
        member = np.isin(self.labels, group)
        log_phi = self.log_phi(n, copied, member)
        self_copied = np.flatnonzero(self.rows == drawn[best]) if data.own_cases else np.zeros(0, dtype=int)
        if len(self_copied):
            log_phi[self_copied] = self.log_phi(n, plain, member)[self_copied]
        others = self.sizes[group].sum() - member + max(float(hyper.beta[group].sum()), 1e-300)
        return Node(clusters, int(self.sizes[group].sum()), log_phi + np.log(others / len(of.labels)))

    def log_phi(self, n: np.ndarray, g: np.ndarray, member: np.ndarray) -> np.ndarray:
        """(chosen cases,) log Π_j of each, its own cells off the counts if it is a member."""
        starts, codes, mine = self.of.data.book.offset[:-1], self.cells.codes, member[self.row]
        total = (np.add.reduceat(n, starts) + np.add.reduceat(g, starts))[self.feature]
        value = (n + g)[codes] - np.where(mine, self.own, 0.0)
        total = total - np.where(mine, self.own_total, 0.0)
        return np.bincount(self.row, weights=np.log(value) - np.log(total), minlength=len(self.rows))


def known_cells(cases: Codes) -> Cells:
    """The observed cells alone."""
    cells = cases.cells
    known = cells.codes >= 0
    if known.all():
        return cells
    n = np.bincount(np.repeat(np.arange(cases.n_rows), cells.sizes)[known], minlength=cases.n_rows)
    return Cells(cells.codes[known], np.concatenate([[0], np.cumsum(n)]))


def make_tree(of: Found) -> Tree:
    """Join the two clusters that lose least, again and again."""
    left_out, S = LeftOut(of), len(of.hyper.beta)
    nodes = {s: left_out.node((s,)) for s in range(S)}
    pairs = {(a, b): left_out.node(nodes[a].clusters + nodes[b].clusters) for a, b in itertools.combinations(nodes, 2)}
    now = np.asarray(logsumexp(np.stack([node.log_share for node in nodes.values()]), axis=0))
    first = float(now.mean())
    joins: list[Join] = []
    while len(nodes) > 1:
        shares, place = np.stack([node.log_share for node in nodes.values()]), {key: k for k, key in enumerate(nodes)}
        means = {(a, b): joined(now, shares, place[a], place[b], node).mean() for (a, b), node in pairs.items()}
        a, b = max(means, key=lambda pair: (means[pair], -pair[0], -pair[1]))
        node, new = pairs[a, b], S + len(joins)
        after = joined(now, shares, place[a], place[b], node)
        loss, sizes = now - after, (nodes[a].size, nodes[b].size)
        cost = float(loss.mean()) * len(of.labels) / max(sum(sizes), 1)
        joins.append(Join(a, b, float(loss.mean()), float(loss.std() / np.sqrt(len(loss))), sizes, cost))
        now = after
        nodes = {key: of_key for key, of_key in nodes.items() if key not in (a, b)}
        pairs = {pair: of_pair for pair, of_pair in pairs.items() if not {a, b} & set(pair)}
        pairs |= {(other, new): left_out.node(of_other.clusters + node.clusters) for other, of_other in nodes.items()}
        nodes[new] = node
    return Tree(S, tuple(joins), first)


def joined(now: np.ndarray, shares: np.ndarray, a: int, b: int, node: Node) -> np.ndarray:
    """(chosen cases,) log Σ of all shares, with one node in place of two.

    now: log Σ of shares, (nodes, cases). Where the two are most of it, the others are summed anew, so that no digit is lost.
    """
    two, new = np.exp(shares[a] - now) + np.exp(shares[b] - now), node.log_share
    most = two > 0.5
    after = now + np.log1p(np.where(most, 0.0, np.exp(np.minimum(new - now, 700.0)) - two))
    others = np.delete(shares[:, most], (a, b), axis=0)
    after[most] = logsumexp(np.vstack([others, new[most]]), axis=0)
    return np.asarray(after)
