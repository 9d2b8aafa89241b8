"""New cases and a Fitted: where they belong, how probable they are; and simulated cases."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import logsumexp

from .fitted import Fitted
from .reading.encoder import new_codes
from .reading.tables import Table, TableLike
from .sampling.folding import Folds
from .sampling.hyper import log_gammas
from .state import Cells, Codes

DRAW = 1 << 22  # a stream of random numbers beside those of `sampling.folding`


def memberships(fitted: Fitted, cases: Codes, n_jobs: int = 1, device: str = "cpu") -> np.ndarray:
    """(N, S) Posterior mean of π of cases, folded into the fitted clusters."""
    return fitted.folds.memberships(cases, n_jobs, device)


class Folding:
    """A function of new cases that can travel to workers: it has what it needs of a Fitted, and no more."""

    def __init__(self, fitted: Fitted, wanted: Literal["memberships", "labels", "scores"]):
        none = fitted.folds.posterior._replace(memberships=np.zeros((0, fitted.folds.n_clusters)))
        self.folds = Folds(none, fitted.folds.hyper, fitted.folds.book, fitted.folds.seed, fitted.folds.groups)
        self.encoding, self.wanted = fitted.encoding, wanted

    def check(self, names: list[str] | None, n_columns: int) -> None:
        """Raise unless a table with these columns has those that are needed."""
        Table(names, [np.zeros(0)] * n_columns, 0).select(self.encoding.wanted, "X")

    def __call__(self, X: TableLike) -> np.ndarray:
        cases = new_codes(self.encoding, X, "BayesianCaseModel")
        if self.wanted == "scores":
            return self.folds.log_probabilities(cases)
        shares = self.folds.memberships(cases)
        return shares.argmax(axis=1) if self.wanted == "labels" else shares


def memberships_by_draw(fitted: Fitted, cases: Codes) -> np.ndarray:
    """(draws, N, S) The same by each draw of φ that was kept for new cases."""
    return fitted.folds.memberships_by_draw(cases)


def log_probabilities(fitted: Fitted, cases: Codes, n_jobs: int = 1) -> np.ndarray:
    """(N,) Log predictive probability of cases, averaged over draws of φ."""
    return fitted.folds.log_probabilities(cases, n_jobs)


def sample(fitted: Fitted, n: int, seed: Any = None) -> tuple[Codes, np.ndarray]:
    """n cases from the posterior predictive distribution, and their labels: those of most cells.

    The model does not draw how many items a bag has: as many as the bag of a random case of the fit.
    """
    rng = np.random.default_rng([fitted.plan.seed, DRAW] if seed is None else seed)
    tables, prior, book, folds = fitted.posterior.tables, fitted.posterior.prior, fitted.data.book, fitted.folds
    S, P = folds.n_clusters, book.n_single
    which = rng.integers(len(tables), size=n)
    pi = np.exp(log_dirichlet(prior[which], rng)) if fitted.hyper.alpha > 0 else np.eye(S)[pick(prior[which], rng)]
    x, n_is = np.empty((n, P), dtype=np.int64), np.zeros((n, S), dtype=np.int64)
    for j in range(P):
        z, values = pick(pi, rng), slice(book.offset[j], book.offset[j + 1])
        x[:, j] = book.offset[j] + pick(tables[which, values, z].astype(float), rng)
        n_is[np.arange(n), z] += 1
    if not book.n_bags:
        return Codes(x), folds.gather(n_is).argmax(axis=1)
    bags = sample_items(fitted, which, pi, n_is, rng)
    return Codes(x, bags), folds.gather(n_is).argmax(axis=1)


def sample_items(fitted: Fitted, which: np.ndarray, pi: np.ndarray, n_is: np.ndarray, rng: np.random.Generator) -> Cells:
    """Items of new cases, given the table of φ and the mixture of each; adds their labels to n_is."""
    tables, book, known = fitted.posterior.tables, fitted.data.book, fitted.data.bags
    assert known is not None
    like = known.take(rng.integers(fitted.n_cases, size=len(which)))
    edges: dict[tuple[int, int, int], np.ndarray] = {}
    codes = np.empty(len(like.codes), dtype=np.int64)
    for i, (first, last) in enumerate(zip(like.first[:-1].tolist(), like.first[1:].tolist(), strict=True)):
        for k in range(first, last):
            b, s = int(book.feature[like.codes[k]]), int(rng.choice(len(pi[i]), p=pi[i] / pi[i].sum()))
            lo, hi = int(book.offset[b]), int(book.offset[b + 1])
            key = (int(which[i]), b, s)
            if key not in edges:
                edges[key] = np.cumsum(tables[key[0], lo:hi, s].astype(float))
            codes[k] = lo + min(int(np.searchsorted(edges[key], rng.random() * edges[key][-1], side="right")), hi - lo - 1)
            n_is[i, s] += 1
        codes[first:last].sort()
    return Cells(codes, like.first)


def log_dirichlet(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Dirichlet draws, one per row, on the log scale: small shapes underflow."""
    log_gamma = log_gammas(shape, rng)
    return log_gamma - logsumexp(log_gamma, axis=1, keepdims=True)


def pick(weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One index per row, ∝ its weights."""
    edges = np.cumsum(weights, axis=1)
    return (edges < rng.random((len(weights), 1)) * edges[:, -1:]).sum(axis=1)
