"""Draws → Posterior: labels aligned, then averages of π, φ, ω and p."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..state import FEW, chunks

NEW_CASE_TABLES = 8  # tables of φ kept per chain for new cases, evenly spaced over its kept draws
AGREE = 0.9  # overlap from which two chains have found the same clusters


class Accumulator:
    """Running means over the kept draws of one chain, each draw's labels first matched to the mean so far."""

    def __init__(self, data, kinds, kept, keep_draws):
        from ..kernels.cpu import sweep as cpu

        self.cpu, self.data, self.kinds = cpu, data, kinds
        (N, P), S, V = data.x.shape, len(kinds), int(data.offset[-1])
        self.n = 0
        self.gaps = cpu.has_gaps(data.x)
        self.scratch = cpu.make_mean_scratch(data, S)
        self.memberships = np.zeros((N, S), dtype=np.float32)
        self.values = np.zeros((V, S))
        self.chance = np.zeros((S, P))
        self.p = np.zeros((kept, S), dtype=np.int64)
        self.log_joint = np.zeros(kept)
        self.keep_tables = np.linspace(kept - 1, 0, min(NEW_CASE_TABLES, kept), endpoint=False).astype(int)[::-1]
        self.tables = np.zeros((len(self.keep_tables), V, S), dtype=np.float32)
        self.prior = np.zeros((len(self.keep_tables), S))
        rows = kept if keep_draws else 0
        self.z = np.zeros((rows, N, P), dtype=np.min_scalar_type(S - 1))
        self.omega = np.zeros((rows, S, P), dtype=np.bool_)

    def add(self, state, hyper, chance, log_joint):
        data, scratch, S = self.data, self.scratch, len(state.p)
        to = np.arange(S)
        if self.n:
            overlap = np.zeros((S, S))
            self.cpu.add_overlap(data.x, state.z, self.gaps, self.memberships, scratch, overlap)
            to = match(overlap, self.kinds)
        weight = 1.0 / (self.n + 1)
        self.cpu.add_memberships(data.x, state.z, self.gaps, hyper.alpha, hyper.beta, to, self.memberships, weight, scratch)
        turn = np.flatnonzero(self.keep_tables == max(self.n, self.keep_tables[0]))  # until its turn, the first is the latest
        table = self.tables[turn[0]] if len(turn) else self.tables[0, :0]
        self.cpu.add_values(data, hyper, state.p, state.omega, state.n_sv, to, self.values, weight, scratch, table)
        self.prior[turn[:, None], to] = hyper.alpha * hyper.beta if hyper.alpha > 0.0 else hyper.beta
        self.chance[to] += weight * (chance - self.chance[to])
        self.p[self.n, to] = state.p
        self.log_joint[self.n] = log_joint
        if len(self.z):
            np.take(to.astype(self.z.dtype), state.z, out=self.z[self.n])
            self.z[self.n][data.x < 0] = 0
            self.omega[self.n, to] = state.omega
        self.n += 1

    def new_case_tables(self):
        """(tables, prior) for new cases; at least one, also of a run that was stopped."""
        reached = self.keep_tables < max(self.n, self.keep_tables[0] + 1)
        return self.tables[reached], self.prior[reached]

    NAMES = ("memberships", "values", "chance", "p", "log_joint", "tables", "prior", "z", "omega")

    def arrays(self):
        return {"n": np.array(self.n)} | {name: getattr(self, name) for name in self.NAMES}

    def restore(self, arrays):
        self.n = int(arrays["n"])
        for name in self.NAMES:
            getattr(self, name)[...] = arrays[name]


class Posterior(NamedTuple):
    """Averages over the kept draws of the pooled chains, labels aligned; clusters from large to small."""

    memberships: np.ndarray  # (N, S) mean of π
    values: np.ndarray  # (ΣV, S) mean of φ
    chance: np.ndarray  # (S, P) mean of ω
    p: np.ndarray  # (pooled chains, kept, S) every prototype draw
    tables: np.ndarray  # (T, ΣV, S) mean of φ given single draws: what new cases are folded into
    prior: np.ndarray  # (T, S) α β of the same draws; β at α = 0
    relabel: np.ndarray  # (C, all labels) label of chain c that became cluster s; labels beyond the clusters are not in use
    overlap: np.ndarray  # (C,) mean over cases of the membership that chain c shares with the best chain


def kinds_of(data, hyper):
    """(S,) Labels of one kind may be permuted: the prior and what is held do not tell them apart. β is even, or learned."""
    S = len(hyper.beta)
    marks = [hyper.q, data.log_weight.T if data.log_weight.shape[1] > 1 else np.zeros((S, 0)), data.omega_held.reshape(S, -1)]
    held = np.isin(np.arange(S), data.z_held) * (1 + np.arange(S))
    return np.unique(np.column_stack([*marks, held]), axis=0, return_inverse=True)[1].reshape(S)


def match(overlap, kinds):
    """to[s] = reference label of the same kind for label s, so that the total overlap is largest."""
    r, s = linear_sum_assignment(np.where(kinds[:, None] == kinds, overlap, -np.inf), maximize=True)
    return r[np.argsort(s)]


def order_by_size(size, kinds):
    """Labels from large to small; those of a kind keep the places of their kind."""
    order = np.empty(len(size), dtype=np.int64)
    for kind in np.unique(kinds):
        places = np.flatnonzero(kinds == kind)
        order[places] = places[np.argsort(-size[places], kind="stable")]
    return order


def compare(chains):
    """(relabel, overlap): label of chain c that is label s of the best chain, and the membership that the two share.

    The best chain is the one with the highest mean log joint of its kept draws.
    """
    best = int(np.argmax([chain.log_joint[: chain.n].mean() for chain in chains]))
    reference = chains[best].memberships
    S = reference.shape[1]
    relabel = np.empty((len(chains), S), dtype=np.int64)
    overlap = np.empty(len(chains))
    for c, chain in enumerate(chains):
        to = match(reference.T @ chain.memberships, chain.kinds)
        relabel[c] = np.argsort(to) if c != best else np.arange(S)
        overlap[c] = in_common(reference, chain.memberships, relabel[c])
    return relabel, overlap


def in_common(a, b, relabel):
    """The membership that two chains share, mean over cases; label relabel[s] of b is label s of a."""
    shared = np.empty(len(a))
    for few in chunks(*a.shape, FEW):
        np.minimum(a[few], b[few][:, relabel]).sum(axis=1, dtype=float, out=shared[few])
    return shared.mean()


def summarise(chains, prune=False):
    """Average over the best chain and the chains that found the same clusters.

    prune: leave out the labels that are not the main one of any case, as there are if their number was to be found.

    Chains that have not met sit in different modes. Their average describes none of them, and how much weight each mode
    deserves is not known from the chains; so only chains that agree with the best one are pooled, and the rest are reported.
    """
    relabel, overlap = compare(chains)
    pooled = np.flatnonzero(overlap >= AGREE)
    memberships = np.zeros(chains[0].memberships.shape)  # a float64 per case and cluster is much: one array, no copies
    parts = chunks(*memberships.shape, FEW)
    for c in pooled:
        for few in parts:
            memberships[few] += chains[c].memberships[few][:, relabel[c]]
    memberships /= len(pooled)
    order = order_by_size(memberships.sum(axis=0), chains[0].kinds)
    S = len(order)
    if prune:
        main = np.bincount(memberships[:, order].argmax(axis=1), minlength=S) > 0
        order, S = order[np.argsort(~main, kind="stable")], int(main.sum())
    for few in parts:
        memberships[few] = memberships[few][:, order]
    relabel = relabel[:, order]
    used = [(chains[c], relabel[c, :S]) for c in pooled]

    def average(pick):
        total = sum(pick(chain)[..., order].astype(float) for chain, order in used)
        return total / len(used)

    if prune:
        memberships = np.ascontiguousarray(memberships[:, :S])
        memberships /= memberships.sum(axis=1, keepdims=True)
    new = [(*chain.new_case_tables(), order) for chain, order in used]
    tables = np.empty((sum(len(part) for part, _, _ in new), len(new[0][0][0]), S), dtype=np.float32)
    at = 0
    for part, _, order in new:
        np.take(part, order, axis=2, out=tables[at : at + len(part)])
        at += len(part)
    return Posterior(
        memberships=memberships,
        values=average(lambda chain: chain.values),
        chance=average(lambda chain: chain.chance.T).T,
        p=np.stack([chain.p[: chain.n, order] for chain, order in used]),
        tables=tables,
        prior=np.concatenate([prior[:, order] for _, prior, order in new]),
        relabel=relabel,
        overlap=overlap,
    )


class Candidate(NamedTuple):
    """A case that may be the prototype of a cluster."""

    row: int  # of the catalogue; the first of the ties, or the one of the largest prior weight
    probability: float  # that the prototype is this case or one of its ties
    ties: tuple  # all rows of the catalogue with the same values that may be chosen, `row` first


def top_candidates(p, catalogue, log_weight, values, most):
    """For each cluster its prototype, and after it the `most` probable ones. Cases with equal values are one candidate.

    The prototype is the most typical case, by the value probabilities, of those at least half as probable as the most
    probable one, each of the equals by itself: where a cluster agrees on a few features only, many cases are as good in
    these, even some that are no members. A candidate of weight zero is never chosen, so it is no tie either.
    """
    from ..kernels.cpu.newcases import row_hashes

    hashes = row_hashes(catalogue)
    log_values = np.vstack([np.zeros(values.shape[1]), np.log(np.maximum(values, 1e-300))])  # a missing cell is at 0
    clusters = []
    for s in range(p.shape[-1]):
        prior = log_weight[:, s % log_weight.shape[1]]
        rows, counts = np.unique(p[..., s], return_counts=True)
        total, found = counts.sum(), []
        kinds, which = np.unique(hashes[rows], return_inverse=True)
        for kind, count in zip(kinds, np.bincount(which, weights=counts), strict=True):
            ties = np.flatnonzero((hashes == kind) & (prior > -np.inf))
            ties = ties[np.argsort(-prior[ties], kind="stable")]
            found.append(Candidate(int(ties[0]), float(count / total), tuple(int(row) for row in ties)))
        found.sort(key=lambda c: (-c.probability, c.row))
        each = [c.probability / len(c.ties) for c in found]
        near = [c for c, chance in zip(found, each, strict=True) if 2 * chance >= max(each)]
        cells = catalogue[[c.row for c in near]]
        typical = log_values[cells.astype(np.intp) + 1, s].sum(axis=1) / np.maximum((cells >= 0).sum(axis=1), 1)
        first = near[int(np.argmax(typical))]
        clusters.append((first, *(c for c in found if c is not first))[:most])
    return clusters
