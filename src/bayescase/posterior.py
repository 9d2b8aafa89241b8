"""Draws → Posterior: labels aligned, then averages of π, φ, ω and p."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

NEW_CASE_TABLES = 8  # tables of φ kept per chain for new cases, evenly spaced over its kept draws
AGREE = 0.9  # overlap from which two chains have found the same clusters


class Accumulator:
    """Running means over the kept draws of one chain, each draw's labels first matched to the mean so far."""

    def __init__(self, data, hyper, kept, keep_draws):
        from .kernels import cpu

        self.cpu, self.data, self.hyper = cpu, data, hyper
        (N, P), S, V = data.x.shape, len(hyper.beta), int(data.offset[-1])
        self.n = 0
        self.exchangeable, self.gaps = is_exchangeable(data, hyper), cpu.has_gaps(data.x)
        self.memberships = np.zeros((N, S), dtype=np.float32)
        self.values = np.zeros((V, S))
        self.chance = np.zeros((S, P))
        self.p = np.zeros((kept, S), dtype=np.int64)
        self.log_joint = np.zeros(kept)
        self.keep_tables = np.linspace(kept - 1, 0, min(NEW_CASE_TABLES, kept), endpoint=False).astype(int)[::-1]
        self.tables = np.zeros((len(self.keep_tables), V, S), dtype=np.float32)
        rows = kept if keep_draws else 0
        self.z = np.zeros((rows, N, P), dtype=np.min_scalar_type(S - 1))
        self.omega = np.zeros((rows, S, P), dtype=np.bool_)

    def add(self, state, chance, log_joint):
        data, hyper = self.data, self.hyper
        S = len(state.p)
        to = np.arange(S)
        if self.n and self.exchangeable:
            to = match(self.cpu.overlap(data.x, state.z, self.gaps, self.memberships))
        weight = 1.0 / (self.n + 1)
        self.cpu.add_memberships(data.x, state.z, self.gaps, hyper.alpha, hyper.beta, to, self.memberships, weight)
        value = self.cpu.add_values(data, hyper, state.p, state.omega, state.n_sv, to, self.values, weight)
        self.chance[to] += weight * (chance - self.chance[to])
        self.p[self.n, to] = state.p
        self.log_joint[self.n] = log_joint
        for t in np.flatnonzero(self.keep_tables == self.n):
            self.tables[t][:, to] = value
        if len(self.z):
            np.take(to.astype(self.z.dtype), state.z, out=self.z[self.n])
            self.z[self.n][data.x < 0] = 0
            self.omega[self.n, to] = state.omega
        self.n += 1

    def new_case_tables(self):
        """The tables for new cases; the mean if the run ended before the first of them."""
        reached = self.tables[self.keep_tables < self.n]
        return reached if len(reached) else self.values[None].astype(np.float32)

    NAMES = ("memberships", "values", "chance", "p", "log_joint", "tables", "z", "omega")

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
    relabel: np.ndarray  # (C, S) label of chain c that became cluster s
    overlap: np.ndarray  # (C,) mean over cases of the membership that chain c shares with the best chain


def is_exchangeable(data, hyper):
    """May labels be permuted? Not if the prior tells clusters apart."""
    return data.log_weight.shape[1] == 1 and (hyper.q == hyper.q[0]).all() and (hyper.beta == hyper.beta[0]).all()


def match(overlap):
    """to[s] = reference label for label s, so that the total overlap is largest."""
    r, s = linear_sum_assignment(overlap, maximize=True)
    return r[np.argsort(s)]


def compare(chains, exchangeable):
    """(relabel, overlap): label of chain c that is label s of the best chain, and the membership that the two share.

    The best chain is the one with the highest mean log joint of its kept draws.
    """
    best = int(np.argmax([chain.log_joint[: chain.n].mean() for chain in chains]))
    reference = chains[best].memberships
    S = reference.shape[1]
    relabel = np.empty((len(chains), S), dtype=np.int64)
    overlap = np.empty(len(chains))
    for c, chain in enumerate(chains):
        to = match(reference.T.astype(float) @ chain.memberships) if exchangeable and c != best else np.arange(S)
        relabel[c] = np.argsort(to)
        overlap[c] = np.minimum(reference, chain.memberships[:, relabel[c]]).sum(axis=1, dtype=float).mean()
    return relabel, overlap


def summarise(chains, exchangeable):
    """Average over the best chain and the chains that found the same clusters.

    Chains that have not met sit in different modes. Their average describes none of them, and how much weight each mode
    deserves is not known from the chains; so only chains that agree with the best one are pooled, and the rest are reported.
    """
    relabel, overlap = compare(chains, exchangeable)
    pooled = overlap >= AGREE
    if exchangeable:
        size = sum(chains[c].memberships[:, relabel[c]].sum(axis=0, dtype=float) for c in np.flatnonzero(pooled))
        relabel = relabel[:, np.argsort(-size, kind="stable")]
    used = [(chain, order) for chain, order, use in zip(chains, relabel, pooled, strict=True) if use]

    def average(pick):
        total = sum(pick(chain)[..., order].astype(float) for chain, order in used)
        return total / len(used)

    return Posterior(
        memberships=average(lambda chain: chain.memberships),
        values=average(lambda chain: chain.values),
        chance=average(lambda chain: chain.chance.T).T,
        p=np.stack([chain.p[: chain.n, order] for chain, order in used]),
        tables=np.concatenate([chain.new_case_tables()[:, :, order] for chain, order in used]),
        relabel=relabel,
        overlap=overlap,
    )


class Candidate(NamedTuple):
    """A case that may be the prototype of a cluster."""

    row: int  # of the catalogue; the first of the ties, or the one of the largest prior weight
    probability: float  # that the prototype is this case or one of its ties
    ties: tuple  # all rows of the catalogue with the same values that may be chosen, `row` first


def top_candidates(p, catalogue, log_weight, most):
    """For each cluster the `most` probable prototypes. Cases with equal values are one candidate, named as ties.

    A candidate of weight zero is never chosen, so it is no tie either.
    """
    from .kernels.newcases import row_hashes

    hashes = row_hashes(catalogue)
    clusters = []
    for s in range(p.shape[-1]):
        prior = log_weight[:, s % log_weight.shape[1]]
        rows, counts = np.unique(p[..., s], return_counts=True)
        groups = {}
        for row, count in zip(rows, counts, strict=True):
            groups[hashes[row]] = groups.get(hashes[row], 0) + int(count)
        ranked = sorted(groups.items(), key=lambda item: -item[1])[:most]
        ties = [np.flatnonzero((hashes == h) & (prior > -np.inf)) for h, _ in ranked]
        ties = [rows[np.argsort(-prior[rows], kind="stable")] for rows in ties]
        total = counts.sum()
        candidates = [Candidate(int(t[0]), c / total, tuple(int(r) for r in t)) for t, (_, c) in zip(ties, ranked, strict=True)]
        clusters.append(tuple(sorted(candidates, key=lambda c: (-c.probability, c.row))))
    return clusters
