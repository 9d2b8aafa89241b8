"""Cases folded into clusters whose φ is known: where they belong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..kernels import fold_cases, fold_in, make_block, make_fold, stream
from ..state import Codebook, Codes, Hyper, longest
from .joining import Groups
from .posterior import Posterior

FOLD = 1 << 20  # stream of random numbers beside those of the chains 0, 1, 2, …


class Folds:
    """The kept draws of φ of a posterior, as new cases are folded into them."""

    def __init__(self, posterior: Posterior, hyper: Hyper, book: Codebook, seed: int, groups: Groups = ()):
        self.posterior, self.hyper, self.book, self.seed, self.groups = posterior, hyper, book, seed, groups

    def __len__(self) -> int:
        return len(self.posterior.tables)

    @property
    def n_clusters(self) -> int:
        return len(self.hyper.beta)

    def each(self, cases: Codes, purpose: int, n_jobs: int, kernel: Callable[..., Any]) -> None:
        """kernel(block, rows, d, fold, seed) for every kept table d of φ and every block of rows, a block per thread."""
        seed, n_cases = stream(self.seed, purpose), cases.n_rows
        cells = cases.cells
        most = longest(cells)

        def block(rows: slice) -> None:
            block_of = make_block(cells.part(rows), cases.width)
            for d, (hyper, phi) in enumerate(self.given()):
                kernel(block_of, rows, d, make_fold(self.book, hyper, phi, most), seed)

        edges = np.linspace(0, n_cases, min(n_jobs, max(n_cases, 1)) + 1).astype(int)
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(block, [slice(lo, hi) for lo, hi in itertools.pairwise(edges)]))

    def given(self) -> list[tuple[Hyper, np.ndarray]]:
        """Of every kept draw α and β, and φ."""
        totals = self.posterior.prior.sum(axis=1).tolist()
        alphas = totals if self.hyper.alpha > 0 else [0.0] * len(totals)
        parts = zip(alphas, self.posterior.prior, totals, self.posterior.tables, strict=True)
        return [(self.hyper._replace(alpha=alpha, beta=prior / total), phi) for alpha, prior, total, phi in parts]

    def memberships(self, cases: Codes, n_jobs: int = 1, device: str = "cpu") -> np.ndarray:
        """(N, S) Posterior mean of π of cases; of many, made on the device."""
        mean = fold_cases(cases, self.book, self.given(), stream(self.seed, FOLD), device)
        if mean is None:
            mean = sums = np.zeros((cases.n_rows, self.n_clusters))
            self.each(cases, FOLD, n_jobs, lambda block, rows, d, fold, seed: fold_in(block, fold, seed, sums[rows]))
        return self.gather(mean / mean.sum(axis=1, keepdims=True))

    def gather(self, shares: np.ndarray) -> np.ndarray:
        """(…, groups) What belongs to the clusters of each group together, if clusters are told in groups."""
        return np.stack([shares[..., list(group)].sum(axis=-1) for group in self.groups], axis=-1) if self.groups else shares
