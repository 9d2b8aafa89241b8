"""The evidence of one cluster with p, ω and φ summed out, from its counts."""

from __future__ import annotations

import numpy as np
from scipy.special import betaln, expit, gammaln

from ..state import Cells, Data, Hyper, State
from .cpu.bags import make_bag_tables, update_bag_evidence
from .cpu.moves import add_up, log_evidence
from .cpu.tables import Copies, EvidenceTables, Subspaces, add_up_evidence, alone, lanes_for, update_evidence
from .driver import Driver

WIDER = 0.5  # t is proposed by a Beta distribution with this share of its counts


class ClusterEvidence:
    """log Σ_m w_m Π_j (q e^E + 1 − q) + the evidence at ω = 0, of a cluster with given counts.

    For a bag it is the joint density of the counts and of a given t (see `bags.draw_t`).
    """

    def __init__(self, data: Data, candidates: Cells, driver: Driver, hyper: Hyper):
        self.data, self.candidates, self.driver, self.hyper, self.book = data, candidates, driver, hyper, data.book
        driver.use(hyper)
        P, V = self.book.n_single, int(self.book.offset[-1])
        self.log_weight = np.ascontiguousarray(data.log_weight.T)
        self.values, self.found = np.empty(V + 1), np.empty(len(candidates.first) - 1)
        if self.book.n_bags:
            self.adds = alone((V + 1) * lanes_for(1), dtype=np.float32)
            self.tables = EvidenceTables(np.zeros((V, 1)), Copies(self.adds, np.zeros((P, 1))))
            self.part = np.zeros(P)
            self.bags = make_bag_tables(self.book, 1)
            self.log_q, self.log_not_q = (f(hyper.q)[:, self.book.column] for f in (np.log, lambda q: np.log1p(-q)))
            self.adds_j = np.zeros((int(np.diff(self.book.offset[: P + 1]).max(initial=1)), 1))
            self.no_bits = np.zeros((1, self.book.n_columns), dtype=np.bool_)
            self.sizes = hyper.lam * np.diff(self.book.offset)[P:]  # G_0 of each bag

    def of(self, s: int, n: np.ndarray, log_t: np.ndarray) -> float:
        """Of label s with counts n (ΣV,); log_t per bag, 0 for a bag without cells."""
        n = np.ascontiguousarray(n, dtype=np.int32).reshape(-1, 1)
        if not self.book.n_bags:
            held, weight = self.driver.omega_held, self.weight_of(s)
            return log_evidence(
                self.book, self.driver.rises, self.hyper, held, s, n, *self.candidates, weight, self.values, self.found
            )
        adds, plain = self.copies(s, n, log_t)
        scores = self.scores(s, adds)
        top = float(scores.max())
        return plain + top + float(np.log(np.exp(scores - top).sum()))

    def copies(self, s: int, n: np.ndarray, log_t: np.ndarray) -> tuple[np.ndarray, float]:
        """(what each value of a candidate adds to its log weight, the evidence without any copy), where there are bags."""
        book, hyper, P, held = self.book, self.hyper, self.book.n_single, self.driver.omega_held
        n = np.ascontiguousarray(n, dtype=np.int32).reshape(-1, 1)
        n_j = np.add.reduceat(n, book.offset[:-1], dtype=n.dtype)
        held = held[s : s + 1] if len(held) else held
        bits = Subspaces(self.no_bits, held, np.ascontiguousarray(hyper.q[s : s + 1]), True)
        if P:
            update_evidence(book, self.driver.rises, n, n_j, bits, self.tables, self.adds_j, 0, P)
            add_up_evidence(book, self.driver.rises, n, n_j, self.part, 0, P)
        plain = float(self.part.sum())
        self.bags.log_t[:, 0] = log_t
        chunks = self.driver.chunks
        update_bag_evidence(
            book, hyper, n, bits, self.tables.evidence, self.adds, self.bags, chunks, np.int64(0), np.int64(len(chunks))
        )
        some = n_j[P:, 0] > 0
        n_b, log_t = n_j[P:, 0][some], log_t[some]
        density = (self.sizes[some] - 1.0) * log_t + (n_b - 1.0) * np.log1p(-np.exp(log_t)) - gammaln(n_b)
        plain += float(self.bags.part.sum() + density.sum())
        e = self.tables.evidence[:, 0]
        adds = np.logaddexp(self.log_q[s] + e, self.log_not_q[s])
        if len(held):
            known = held[0][book.column]
            adds = np.where(known >= 0, known * e, adds)
        return adds, plain

    def scores(self, s: int, adds: np.ndarray) -> np.ndarray:
        """(M,) Log weight of every candidate, what it copies included."""
        add_up(*self.candidates, np.append(adds, 0.0), self.found)  # a gap, -1, is the last
        return self.found + self.weight_of(s)

    def weight_of(self, s: int) -> np.ndarray:
        """(M,) The candidates' log weight for label s."""
        weight: np.ndarray = self.log_weight[s % len(self.log_weight)]
        return weight

    # --- t of bags: a number between 0 and 1 for every bag with cells, and 1 for one without --------------------------------

    def draw_t(self, s: int, state: State, rng: np.random.Generator) -> np.ndarray:
        """log t given the prototype and the subspace of label s: t ~ Beta(G, n)."""
        items = state.u[s, self.book.n_single :]
        items = items[items >= 0]
        on = items[state.omega[s, self.book.column[items]]]
        return self.log_beta(self.total(on, np.ones(len(on))), self.bag_sizes(state.n_sv[:, s]), rng)

    def propose_t(self, s: int, n: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
        """log t from the counts alone, and the log density of that."""
        a, b = WIDER * self.likely_total(s, n), WIDER * self.bag_sizes(n)
        log_t = self.log_beta(a, b, rng)
        return log_t, self.log_density(a, b, log_t)

    def log_density_t(self, s: int, n: np.ndarray, log_t: np.ndarray) -> float:
        """Of t as `propose_t` draws it."""
        return self.log_density(WIDER * self.likely_total(s, n), WIDER * self.bag_sizes(n), log_t)

    def log_density(self, a: np.ndarray, b: np.ndarray, log_t: np.ndarray) -> float:
        some = b > 0
        a, b, log_t = a[some], b[some], log_t[some]
        return float(((a - 1.0) * log_t + (b - 1.0) * np.log1p(-np.exp(log_t)) - betaln(a, b)).sum())

    def likely_total(self, s: int, n: np.ndarray) -> np.ndarray:
        """G of the likeliest candidate, each item weighted by the probability that it is on."""
        sizes, first = self.bag_sizes(n), self.book.offset[self.book.n_single]
        codes, starts = self.candidates
        adds, _ = self.copies(s, n, -np.log1p(sizes / self.sizes))  # t as if nothing were copied
        m = int(np.argmax(self.scores(s, adds)))
        items = codes[starts[m] : starts[m + 1]]
        items = items[items >= first]
        on = expit(self.log_q[s, items] - self.log_not_q[s, items] + self.tables.evidence[items, 0])
        if len(self.driver.omega_held):
            known = self.driver.omega_held[s, self.book.column[items]]
            on = np.where(known >= 0, known, on)
        return self.total(items, on)

    def total(self, items: np.ndarray, on: np.ndarray) -> np.ndarray:
        """G of every bag: λ V + c Σ λ(v) over the items that are on."""
        bag = self.book.feature[items] - self.book.n_single
        more = self.hyper.lam * self.hyper.c * self.book.base[items] * on
        return self.sizes + np.bincount(bag, weights=more, minlength=len(self.sizes))

    def bag_sizes(self, n: np.ndarray) -> np.ndarray:
        """(bags,) Cells."""
        return np.add.reduceat(n, self.book.offset[:-1])[self.book.n_single :]

    def log_beta(self, a: np.ndarray, b: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x, y = np.log(rng.standard_gamma(a)), np.log(rng.standard_gamma(np.where(b > 0, b, 1.0)))
        return np.where(b > 0, x - np.logaddexp(x, y), 0.0)
