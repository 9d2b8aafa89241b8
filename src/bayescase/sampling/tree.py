"""Which clusters may be told as one: a tree, joined where the probability of cases that are left out loses least.

No fit is made anew. A case is left out by taking its own cells off the counts of its cluster; all others stay where they are.
With n_s cases in cluster s, n_s(v) of their cells with value v, all without case i, cluster s has the part

    f_s(i) = (n_s + β_s) / N · Π_j φ_s(x_ij),    φ_s(x_ij) = (g_s(x_ij) + n_s(x_ij)) / (Σ_v g_s(v) + n_sj),

of its probability. Two clusters a and b that are joined to c have the sum of their counts and of their β, and the best
prototype for these, of those that the run drew for either. Their cases lose log (f_a + f_b) − log f_c.

In a cluster features are independent. Where two of them go together, a mixture has clusters for that, which are not what a
person would count. So c may keep how two features j and k go together in a and b: both are taken out of the product, and

    Σ_{s = a, b} (n_s + β_s) φ_s(x_ij) φ_s(x_ik) / (n_c + β_c)

comes in. The loss of a join is what its cases lose all the same. Clusters that are truly different differ in more features.

The two are joined that lose least in sum. The cost of a node is what all joins in it lose, per case of it; it is one cluster
if that is little, or if a node above it is one. By this cost joins are put in order.

A prototype is scored as if nobody copied it: else a cluster of one would predict its only case. A case counts as if all its
cells had one cluster, as nearly all cases do at the small α that clusters are found with. Items of bags count as features.
"""

from __future__ import annotations

import itertools
from math import log1p
from typing import NamedTuple

import numpy as np

from ..state import Data, Hyper
from .joining import Groups, copying, prior_of, pseudo_counts, tell, value_counts

MOST_CELLS = 1 << 19  # of the cases that are left out, one by one; more of them are chosen at random
FIRSTS = 6  # columns that the pair which explains a join is looked for among


class Join(NamedTuple):
    """Two nodes that become one. Nodes are clusters, 0 to S − 1, and joins, S, S + 1, …"""

    first: int
    second: int
    sizes: tuple[int, int]  # cases whose main cluster is in the one and in the other
    pair: tuple[int, ...]  # two columns of ω that may go together; none if that does not help
    loss: float  # of the mean log probability of these cases, left out; below 0 if it gains
    error: float  # standard error of that, over cases
    cost: float  # what all joins in it lose per case, or in a node above it, if that is less


class Tree(NamedTuple):
    """All clusters at one end, one at the other."""

    n_leaves: int
    joins: tuple[Join, ...]  # S − 1, from the smallest cost to the largest

    def groups(self, k: int) -> Groups:
        """The clusters as k groups."""
        nodes: dict[int, tuple[int, ...]] = {s: (s,) for s in range(self.n_leaves)}
        for step, join in enumerate(self.joins[: self.n_leaves - k]):
            nodes[self.n_leaves + step] = nodes.pop(join.first) + nodes.pop(join.second)
        return tuple(nodes.values())

    def number(self, tolerance: float) -> int:
        """How many clusters there are if those count as one whose cases become less probable by no more than this share."""
        return self.n_leaves - sum(join.cost <= -log1p(-tolerance) for join in self.joins)

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
    beta: float
    n: np.ndarray  # (ΣV,) how often each value occurs
    g: np.ndarray  # (ΣV,) pseudo-counts, with what the prototype adds
    plain: np.ndarray  # (ΣV,) pseudo-counts without it
    prototype: int  # the case; −1 if it is none


class Cases(NamedTuple):
    """Cases that are left out, one at a time: rows, and their cells, equal items of a bag as one."""

    rows: np.ndarray  # numbers of the cases
    labels: np.ndarray  # (rows,)
    row: np.ndarray  # (cells,) place in rows
    codes: np.ndarray  # (cells,)
    times: np.ndarray  # (cells,) how often the case has it: 1 but for bags
    total: np.ndarray  # (cells,) how many cells of this feature the case has: 1 but for bags

    def of(self, clusters: tuple[int, ...]) -> Cases:
        """Those of some clusters alone."""
        chosen = np.isin(self.labels, clusters)
        cells, place = chosen[self.row], np.cumsum(chosen) - 1
        return Cases(
            self.rows[chosen],
            self.labels[chosen],
            place[self.row[cells]],
            *(of[cells] for of in (self.codes, self.times, self.total)),
        )


class Parts(NamedTuple):
    """What a node makes of cases: f is the product of all."""

    log_weight: np.ndarray  # (rows,) log (n_s + β_s) / N
    log_phi: np.ndarray  # (cells,)
    log_f: np.ndarray  # (rows,)


class LeftOut:
    """The cases that are left out."""

    def __init__(self, of: Found):
        data, book = of.data, of.data.book
        self.of, S, V = of, len(of.hyper.beta), len(of.data.book.base)
        per_case = max(len(data.cells.codes) / len(data.x), 1.0)
        most = int(min(len(data.x), max(MOST_CELLS // per_case, 1)))
        rows = np.sort(np.random.default_rng(of.seed).choice(len(data.x), size=most, replace=False))
        cells = data.cases.take(rows).cells
        known = cells.codes >= 0
        key = np.repeat(np.arange(most), cells.sizes)[known] * V + cells.codes[known]
        key, times = np.unique(key, return_counts=True)
        row, codes = np.divmod(key, V)
        _, where = np.unique(row * len(book.offset) + book.feature[codes], return_inverse=True)
        total = np.bincount(where, weights=times)[where]
        self.cases = Cases(rows, of.labels[rows], row, codes, times.astype(float), total)
        self.counts = value_counts(data.cells, np.eye(S)[of.labels], V)
        self.sizes = np.bincount(of.labels, minlength=S)

    def node(self, clusters: tuple[int, ...]) -> Node:
        """Some clusters as one."""
        data, hyper, group = self.of.data, self.of.hyper, list(clusters)
        n, prior = self.counts[:, group].sum(axis=1), prior_of(group, data, hyper)
        drawn = np.unique(self.of.p[..., group])
        catalogue = data.catalogue.take(drawn).cells
        told = tell(copying(n, data.book, prior), prior.log_weight[drawn], catalogue)
        plain = prior.lam * data.book.base
        codes = catalogue.codes[catalogue.first[told.best] : catalogue.first[told.best + 1]]
        prototype = int(drawn[told.best]) if data.own_cases else -1
        beta = max(float(hyper.beta[group].sum()), 1e-300)
        g = plain + pseudo_counts(codes, told, data.book, prior)
        return Node(clusters, int(self.sizes[group].sum()), beta, n, g, plain, prototype)

    def parts(self, node: Node, cases: Cases) -> Parts:
        """What a node makes of cases, each left out if it is a member."""
        member = np.isin(cases.labels, node.clusters)
        log_phi = self.log_phi(node.n, node.g, cases, member)
        itself = (cases.rows == node.prototype)[cases.row]
        if itself.any():
            log_phi[itself] = self.log_phi(node.n, node.plain, cases, member)[itself]
        log_weight = np.log((node.size - member + node.beta) / len(self.of.labels))
        return Parts(log_weight, log_phi, log_weight + np.bincount(cases.row, weights=log_phi, minlength=len(member)))

    def log_phi(self, n: np.ndarray, g: np.ndarray, cases: Cases, member: np.ndarray) -> np.ndarray:
        """(cells,) The log probability of each, those of its case off the counts if that is a member."""
        book, mine = self.of.data.book, member[cases.row]
        total = np.add.reduceat(n + g, book.offset[:-1])[book.feature[cases.codes]] - np.where(mine, cases.total, 0.0)
        value = (n + g)[cases.codes] - np.where(mine, cases.times, 0.0)
        return np.asarray(cases.times * (np.log(value) - np.log(total)))

    def join(self, a: Node, b: Node) -> Lost:
        """What is lost if two nodes are one."""
        both, book = self.node(a.clusters + b.clusters), self.of.data.book
        cases = self.cases.of(both.clusters)
        if not len(cases.rows):
            return Lost((), 0.0, 0.0)
        parts = [self.parts(node, cases) for node in (a, b, both)]
        return lost(parts, cases.row, book.column[cases.codes], book.n_columns)


class Lost(NamedTuple):
    """What a join loses, as in Join."""

    pair: tuple[int, ...]
    loss: float
    error: float


def lost(parts: list[Parts], row: np.ndarray, column: np.ndarray, D: int) -> Lost:
    """What the cases of two nodes lose as one, but for the pair of columns that matter most.

    One column is among the FIRSTS without which least is lost, the other is that which explains most with it.
    """
    loss = lose([of.log_f for of in parts])
    without = lose([of.log_f[row] - of.log_phi for of in parts])
    firsts = np.argsort(np.bincount(column, weights=without - loss[row], minlength=D), kind="stable")[:FIRSTS].tolist()
    found = [(first, *best_partner(first, parts, row, column, D)) for first in firsts]
    first, second, explained = max(found, key=lambda of: of[2].mean())
    pair: tuple[int, ...] = (min(first, second), max(first, second))
    if D < 2 or explained.mean() <= 0.0:
        pair, explained = (), np.zeros(len(loss))
    left = loss - explained
    return Lost(pair, float(left.mean()), float(left.std() / np.sqrt(len(left))))


def best_partner(j: int, parts: list[Parts], row: np.ndarray, column: np.ndarray, D: int) -> tuple[int, np.ndarray]:
    """(the column that explains most together with j, what the two explain of each case's loss)."""
    n = len(parts[0].log_f)
    alone = [of.log_weight + np.bincount(row, np.where(column == j, of.log_phi, 0.0), n) for of in parts]
    explained = lose(alone)
    more = lose([of[row] + part.log_phi for of, part in zip(alone, parts, strict=True)]) - explained[row]
    gains = np.bincount(column, weights=more, minlength=D)
    gains[j] = -np.inf
    best = int(np.argmax(gains))
    return best, explained + np.bincount(row, np.where(column == best, more, 0.0), n)


def lose(logs: list[np.ndarray]) -> np.ndarray:
    """log (f_a + f_b) − log f_c."""
    a, b, c = logs
    return np.asarray(np.logaddexp(a, b) - c)


def make_tree(of: Found) -> Tree:
    """Join the two clusters that lose least, again and again."""
    left_out, S = LeftOut(of), len(of.hyper.beta)
    nodes = {s: left_out.node((s,)) for s in range(S)}
    pairs = {(a, b): left_out.join(nodes[a], nodes[b]) for a, b in itertools.combinations(nodes, 2)}
    joins: list[Join] = []
    while pairs:
        a, b = min(pairs, key=lambda pair: (pairs[pair].loss * sum(nodes[side].size for side in pair), pair))
        first, second, new = nodes.pop(a), nodes.pop(b), S + len(joins)
        joins.append(Join(a, b, (first.size, second.size), *pairs[a, b], cost=np.nan))
        node = left_out.node(first.clusters + second.clusters)
        pairs = {pair: found for pair, found in pairs.items() if not {a, b} & set(pair)}
        pairs |= {(other, new): left_out.join(of_other, node) for other, of_other in nodes.items()}
        nodes[new] = node
    return in_order(S, joins)


def in_order(S: int, joins: list[Join]) -> Tree:
    """The tree of joins that are given from the leaves to the root, with their costs. What is gained makes up for no loss."""
    lost = np.zeros(S + len(joins))
    cost = np.full(S + len(joins), np.inf)
    for node, join in enumerate(joins, S):
        lost[node] = max(join.loss, 0.0) * sum(join.sizes) + lost[join.first] + lost[join.second]
        cost[node] = lost[node] / max(sum(join.sizes), 1)
    for node, join in reversed(list(enumerate(joins, S))):
        for part in (join.first, join.second):
            cost[part] = min(cost[part], cost[node])
    order = sorted(range(S, S + len(joins)), key=lambda node: (cost[node], node))
    place = {node: k for k, node in enumerate([*range(S), *order])}
    made = [joins[node - S]._replace(cost=float(cost[node])) for node in order]
    return Tree(S, tuple(join._replace(first=place[join.first], second=place[join.second]) for join in made))
