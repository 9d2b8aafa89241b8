"""Draws → Posterior: labels aligned, then averages of π, φ and ω."""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..kernels import Driver, Rows, row_hashes
from ..parallel import each, portions
from ..state import FEW, Data, Hyper, State, chunks, smallest_int
from ..storage import Mapped

MOST_TABLES = 8  # tables of φ kept per chain for new cases, evenly spaced over its kept draws
AGREE = 0.9  # overlap from which two chains have found the same clusters
PART = 1 << 22  # memberships that are read at a time
SHARE = 1 << 18  # that a thread works on at a time
FORGET = 4  # while burning in, draw n has the weight FORGET / (n + FORGET): the first half of them weighs 1 / 2^FORGET in all


class Draw(NamedTuple):
    """One kept draw, labels matched."""

    sweep: int
    log_joint: float
    p: np.ndarray  # (S,)
    z: np.ndarray  # (N, P), or (cells,) if there are bags; (0, 0) if draws are not kept whole
    omega: np.ndarray  # (S, D), or (0, 0)


class Accumulator:
    """Means over the draws of one chain, each draw's labels first matched, to the mean so far if to nothing else. Memberships
    stay with the rows.

    During the burn-in the means forget early draws, so that a run that is stopped then shows its second half.
    """

    def __init__(self, data: Data, exchangeable: np.ndarray, keep_draws: bool, forget: bool = False):
        S, V = len(exchangeable), int(data.offset[-1])
        self.exchangeable, self.keep_draws, self.forget = exchangeable, keep_draws, forget
        self.shape = data.x.shape if data.bags is None else (-1,)  # of z
        self.gaps = data.cells.codes < 0 if keep_draws else np.zeros(0, dtype=bool)
        self.n = 0
        self.values = np.zeros((V, S))
        self.omega_prob = np.zeros((S, data.book.n_columns))
        self.copied = np.zeros((V, S))
        self.column = data.book.column
        self.draws: list[Draw] = []
        self.stride = 1  # of the draws whose tables are kept
        self.tables: list[np.ndarray] = []  # (ΣV, S) float32, E[φ] of every stride-th draw
        self.prior: list[np.ndarray] = []  # (S,) and α β

    def add(
        self,
        driver: Driver,
        rows: Rows,
        state: State,
        hyper: Hyper,
        log_joint: float,
        sweep: int,
        to: np.ndarray | None = None,
    ) -> None:
        """One more draw. to: what each label is called, if that is known."""
        S = len(state.p)
        if to is None:
            to = match(rows.overlap(), self.exchangeable) if self.n else np.arange(S)
        weight = FORGET / (self.n + FORGET) if self.forget else 1.0 / (self.n + 1)
        rows.add_memberships(hyper, to, weight)
        table = np.empty((len(self.values) if self.n % self.stride == 0 else 0, S), dtype=np.float32)
        driver.add_values(hyper, state, to, weight, self.values, table)
        self.omega_prob[to] += weight * (state.omega_prob - self.omega_prob[to])
        self.add_copied(state, to, weight)
        if len(table):
            self.keep_table(table, moved(hyper.alpha * hyper.beta if hyper.alpha > 0.0 else hyper.beta, to))
        z, omega = np.zeros((0, 0), dtype=np.uint8), np.zeros((0, 0), dtype=np.bool_)
        if self.keep_draws:
            labels = rows.labels()
            z, omega = to.astype(labels.dtype)[labels], moved(state.omega, to)
            z[self.gaps] = 0
            z = z.reshape(self.shape)
        self.draws.append(Draw(sweep, log_joint, moved(state.p, to), z, omega))
        self.n += 1
        if self.forget:
            self.draws = [draw for draw in self.draws if draw.sweep >= sweep // 2]

    def add_copied(self, state: State, to: np.ndarray, weight: float) -> None:
        """The mean of [p_sj = v] p(ω_sj = 1 | rest)."""
        self.copied *= 1.0 - weight
        for codes, prob, s in zip(state.u, state.omega_prob, to.tolist(), strict=True):
            known = codes >= 0
            self.copied[codes[known], s] += weight * prob[self.column[codes[known]]]

    def keep_table(self, table: np.ndarray, prior: np.ndarray) -> None:
        """Keep a table. When there are too many, drop every second one, so that the length of the run need not be known."""
        self.tables.append(table)
        self.prior.append(prior)
        if len(self.tables) > MOST_TABLES:
            self.tables, self.prior, self.stride = self.tables[::2], self.prior[::2], 2 * self.stride

    def of_draws(self, name: str) -> np.ndarray:
        """A field of every kept draw, stacked."""
        return np.array([getattr(draw, name) for draw in self.draws])

    def arrays(self) -> dict[str, np.ndarray]:
        """All that must outlive the process, by name."""
        found = {
            "n": self.n,
            "stride": self.stride,
            "forget": self.forget,
            "values": self.values,
            "omega_prob": self.omega_prob,
            "copied": self.copied,
        }
        found |= {"tables": self.tables, "prior": self.prior}
        return {name: np.asarray(value) for name, value in found.items()} | {name: self.of_draws(name) for name in Draw._fields}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what another Accumulator wrote by `arrays`."""
        self.n, self.stride, self.forget = int(arrays["n"]), int(arrays["stride"]), bool(arrays["forget"])
        self.values, self.omega_prob, self.copied = (arrays[name] for name in ("values", "omega_prob", "copied"))
        self.tables, self.prior = list(arrays["tables"]), list(arrays["prior"])
        fields = zip(*(arrays[name] for name in Draw._fields), strict=True)
        self.draws = [Draw(int(sweep), float(log_joint), *rest) for sweep, log_joint, *rest in fields]


def moved(values: np.ndarray, to: np.ndarray) -> np.ndarray:
    """The same array, label s renamed to to[s]."""
    result = np.empty_like(values)
    result[to] = values
    return result


class ChainDraws(NamedTuple):
    """What a chain has to show."""

    memberships: np.ndarray | Mapped  # (N, S) float32
    kept: Accumulator

    @property
    def mean_log_joint(self) -> float:
        return float(self.kept.of_draws("log_joint").mean())


class Posterior(NamedTuple):
    """Averages over the kept draws of the pooled chains, labels aligned; clusters from large to small."""

    memberships: np.ndarray  # (N, S) mean of π; equal cases have equal ones
    values: np.ndarray  # (ΣV, S) mean of φ
    omega_prob: np.ndarray  # (S, P) mean of ω
    copied: np.ndarray  # (ΣV, S) probability that the value is copied: the prototype has it, and ω is 1
    p: np.ndarray  # (pooled chains, kept, S) every prototype draw
    tables: np.ndarray  # (T, ΣV, S) mean of φ given single draws: what new cases are folded into
    prior: np.ndarray  # (T, S) α β of the same draws; β at α = 0
    relabel: np.ndarray  # (C, all labels) label of chain c that became cluster s; labels beyond the clusters are not in use
    overlap: np.ndarray  # (C,) mean over cases of the membership that chain c shares with the best chain
    chain_labels: np.ndarray  # (C, N) main label of each case in chain c, numbered by `relabel`


def exchangeable_labels(data: Data, hyper: Hyper) -> np.ndarray:
    """(S,) Labels with the same number may be permuted: the prior and what is held do not tell them apart."""
    S = len(hyper.beta)
    marks = [hyper.q, data.log_weight.T if data.log_weight.shape[1] > 1 else np.zeros((S, 0)), data.omega_held.reshape(S, -1)]
    held = np.isin(np.arange(S), data.z_held) * (1 + np.arange(S))
    return np.unique(np.column_stack([*marks, held]), axis=0, return_inverse=True)[1].reshape(S)


def match(overlap: np.ndarray, exchangeable: np.ndarray) -> np.ndarray:
    """to[s]: the reference label for label s, exchangeable with it, such that the total overlap is largest."""
    r, s = linear_sum_assignment(np.where(exchangeable[:, None] == exchangeable, overlap, -np.inf), maximize=True)
    return r[np.argsort(s)]


def order_by_size(size: np.ndarray, exchangeable: np.ndarray) -> np.ndarray:
    """Labels from large to small, each moved only among the places of labels that it is exchangeable with."""
    order = np.empty(len(size), dtype=np.int64)
    for group in np.unique(exchangeable):
        places = np.flatnonzero(exchangeable == group)
        order[places] = places[np.argsort(-size[places], kind="stable")]
    return order


def compare(chains: list[ChainDraws]) -> tuple[np.ndarray, np.ndarray]:
    """(relabel, overlap): label of chain c that is label s of the best chain, and the membership that the two share.

    The best chain is the one with the highest mean log joint of its kept draws.
    """
    best = int(np.argmax([chain.mean_log_joint for chain in chains]))
    reference = chains[best].memberships
    S = reference.shape[1]
    relabel = np.empty((len(chains), S), dtype=np.int64)
    overlap = np.empty(len(chains))
    for c, chain in enumerate(chains):
        to = match(in_both(reference, chain.memberships), chain.kept.exchangeable)
        relabel[c] = np.argsort(to) if c != best else np.arange(S)
        overlap[c] = in_common(reference, chain.memberships, relabel[c])
    return relabel, overlap


def in_both(a: np.ndarray | Mapped, b: np.ndarray | Mapped) -> np.ndarray:
    """(S, S) Σ_i a[i, r] b[i, s], by parts: arrays may lie on a disk."""
    total = np.zeros((a.shape[1], b.shape[1]))
    for found in each(lambda few: a[few].T @ b[few], chunks(len(a), a.shape[1], PART)):
        total += found
    return total


def in_common(a: np.ndarray | Mapped, b: np.ndarray | Mapped, relabel: np.ndarray) -> float:
    """The membership that two chains share, mean over cases; label relabel[s] of b is label s of a."""

    def share(part: slice) -> list[float]:
        of_a, of_b = a[part], b[part]
        few = chunks(len(of_a), a.shape[1], FEW)
        return [float(np.minimum(of_a[rows], of_b[rows].take(relabel, axis=1)).sum(dtype=float)) for rows in few]

    total = 0.0
    for found in each(share, chunks(len(a), a.shape[1], PART)):
        for shared in found:
            total += shared
    return total / len(a)


class Averaging(Protocol):
    """Cases that nothing tells apart."""

    def average(self, memberships: Any) -> None:
        """Give equal cases the mean of their memberships, in place. They have the same posterior: this averages more draws."""


class Equals(NamedTuple):
    """Cases that nothing tells apart: those with the same values that are not held at different labels."""

    rows: np.ndarray  # of all groups of two and more, group by group
    first: np.ndarray  # where each group begins

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.first, append=len(self.rows))

    def average(self, memberships: np.ndarray) -> None:
        if not len(self.rows):
            return
        sizes = self.sizes

        def level(column: np.ndarray) -> None:
            column[self.rows] = np.repeat(np.add.reduceat(column[self.rows], self.first) / sizes, sizes)

        each(level, list(memberships.T))


def equal_cases(data: Data) -> Equals:
    """The groups of equal cases."""
    return equal_hashes(row_hashes(data.cells), data.z_held)


def equal_hashes(hashes: np.ndarray, held: np.ndarray) -> Equals:
    """By the hash of their values, and the label that they are held at."""
    some = repeated(hashes)
    held = held[some] if len(held) else np.zeros(len(some), dtype=np.int64)
    order = np.lexsort((held, hashes[some]))
    found, held = hashes[some][order], held[order]
    new = np.append(np.ones(min(len(order), 1), dtype=bool), (found[1:] != found[:-1]) | (held[1:] != held[:-1]))
    sizes = np.diff(np.flatnonzero(new), append=len(order))
    several = np.repeat(sizes > 1, sizes)
    return Equals(some[order[several]], np.flatnonzero(new[several]))


def repeated(hashes: np.ndarray) -> np.ndarray:
    """In rising order, where those are that occur twice and more often, and perhaps a few others."""
    parts = np.uint64(len(portions(len(hashes))))

    def twice(part: int) -> np.ndarray:
        own: np.ndarray = np.sort(hashes[hashes % parts == part])
        again: np.ndarray = own[1:][own[1:] == own[:-1]]
        return again

    return np.flatnonzero(may_be_among(hashes, np.concatenate(each(twice, range(int(parts))))))


def may_be_among(hashes: np.ndarray, few: np.ndarray) -> np.ndarray:
    """A quick test by the first bits: true for every hash that is among the few, and for a small share of others."""
    bits = np.uint64(64 - 16)
    flags = np.zeros(1 << 16, dtype=bool)
    flags[few >> bits] = True
    found = np.empty(len(hashes), dtype=bool)
    each(lambda part: np.take(flags, hashes[part] >> bits, out=found[part]), portions(len(hashes)))
    return found


def summarise(chains: list[ChainDraws], equals: Averaging, prune: bool = False, out: Mapped | None = None) -> Posterior:
    """Average over the best chain and the chains that found the same clusters.

    prune: leave out labels that are the main one of no case, if the number of clusters was to be found.
    out: an array for the memberships of all labels, those in use first; the posterior then has none, and no chain labels.

    Chains that disagree sit in different modes. Their average would describe none of these, and the chains do not tell how
    much weight each mode deserves. So only chains that agree with the best one are pooled, and the rest are reported.
    """
    relabel, overlap = compare(chains)
    pooled = np.flatnonzero(overlap >= AGREE)
    memberships, order, S = pool_memberships([(chains[c], relabel[c]) for c in pooled], equals, prune, out)
    relabel = relabel[:, order]
    used = [(chains[c].kept, relabel[c, :S]) for c in pooled]
    tables = np.empty((sum(len(kept.tables) for kept, _ in used), len(used[0][0].values), S), dtype=np.float32)
    at = 0
    for kept, places in used:
        for table in kept.tables:
            np.take(table, places, axis=1, out=tables[at])
            at += 1
    return Posterior(
        memberships=memberships if isinstance(memberships, np.ndarray) else np.zeros((0, S)),
        values=reduce(np.add, (kept.values[:, places] for kept, places in used)) / len(used),
        omega_prob=reduce(np.add, (kept.omega_prob[places] for kept, places in used)) / len(used),
        copied=reduce(np.add, (kept.copied[:, places] for kept, places in used)) / len(used),
        p=np.stack([kept.of_draws("p")[:, places] for kept, places in used]),
        tables=tables,
        prior=np.concatenate([np.array(kept.prior)[:, places] for kept, places in used]),
        relabel=relabel,
        overlap=overlap,
        chain_labels=main_labels(chains, relabel, equals)
        if isinstance(equals, Equals)
        else np.zeros((len(chains), 0), np.uint8),
    )


def main_labels(chains: list[ChainDraws], relabel: np.ndarray, equals: Equals, rows: np.ndarray | None = None) -> np.ndarray:
    """(C, rows) The label with the largest membership in each chain; label relabel[c, s] of chain c is s. All rows if None.

    Equal cases, `equals` among these rows, have equal labels.
    """
    found = []
    for (memberships, _), of in zip(chains, relabel, strict=True):
        if rows is not None:
            memberships = memberships.take(rows) if isinstance(memberships, Mapped) else memberships[rows]
        labels = np.empty(len(memberships), dtype=smallest_int(relabel.shape[1]))
        find_main(memberships, of, labels)
        if len(equals.rows):
            columns = (np.asarray(memberships)[:, s] for s in of)  # one at a time, to save memory
            sums = np.column_stack([np.add.reduceat(column[equals.rows], equals.first) for column in columns])
            labels[equals.rows] = np.repeat(sums.argmax(axis=1), equals.sizes)
        found.append(labels)
    return np.stack(found)


def find_main(memberships: np.ndarray | Mapped, order: np.ndarray, labels: np.ndarray) -> None:
    """labels[i] is the place in `order` of the label with the largest membership, the first of equals."""

    def of_part(part: slice) -> None:
        here, found = memberships[part], labels[part]
        for few in chunks(len(here), len(order), FEW):
            found[few] = here[few].take(order, axis=1).argmax(axis=1)

    each(of_part, chunks(len(labels), len(order), SHARE))


def pool_memberships(
    pooled: list[tuple[ChainDraws, np.ndarray]], equals: Averaging, prune: bool, out: Mapped | None = None
) -> tuple[np.ndarray | Mapped, np.ndarray, int]:
    """(mean memberships, the order of the clusters from large to small, how many there are)."""
    N, S = pooled[0][0].memberships.shape
    memberships = np.zeros((N, S)) if out is None else out  # the largest array of a fit: one, without copies
    size = np.zeros(S)

    def pool(part: slice) -> None:
        here, found = memberships[part], [(chain.memberships[part], relabel) for chain, relabel in pooled]
        for few in chunks(len(here), S, FEW):
            here[few] = sum(of[few].take(relabel, axis=1).astype(float) for of, relabel in found) / len(pooled)

    each(pool, shares := chunks(N, S, SHARE))
    equals.average(memberships)
    for found in each(lambda part: memberships[part].sum(axis=0), parts := chunks(N, S, PART)):
        size += found
    order = order_by_size(size, pooled[0][0].kept.exchangeable)
    if prune:
        labels = np.concatenate([np.unique(memberships[part][:, order].argmax(axis=1)) for part in parts])
        main = np.isin(np.arange(S), labels)
        order, S = order[np.argsort(~main, kind="stable")], int(main.sum())

    def arrange(part: slice) -> None:
        here = memberships[part]
        for few in chunks(len(here), len(order), FEW):
            here[few] = here[few].take(order, axis=1)
            if prune:
                here[few] /= here[few][:, :S].sum(axis=1, keepdims=True)

    if prune or not np.array_equal(order, np.arange(len(order))):
        each(arrange, shares)
    if prune and isinstance(memberships, np.ndarray):
        memberships = np.ascontiguousarray(memberships[:, :S])
    return memberships, order, S
