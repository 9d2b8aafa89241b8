"""Cases folded into clusters whose φ is known: where they belong."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..kernels import fold_in, make_fold, stream
from ..state import Hyper
from .posterior import Posterior

FOLD = 1 << 20  # stream of random numbers beside those of the chains 0, 1, 2, …


class Folds:
    """The kept draws of φ of a posterior, as new cases are folded into them."""

    def __init__(self, posterior: Posterior, hyper: Hyper, offset: np.ndarray, seed: int):
        self.posterior, self.hyper, self.offset, self.seed = posterior, hyper, offset, seed

    def __len__(self) -> int:
        return len(self.posterior.tables)

    @property
    def n_clusters(self) -> int:
        return len(self.hyper.beta)

    def each(self, n_cases: int, purpose: int, n_jobs: int, kernel: Callable[..., Any]) -> None:
        """kernel(rows, d, fold, seed) for every kept table d of φ and every block of rows, a block per thread."""
        seed, alpha = stream(self.seed, purpose), self.hyper.alpha

        def block(rows: slice) -> None:
            for d, (phi, prior) in enumerate(zip(self.posterior.tables, self.posterior.prior, strict=True)):
                total = float(prior.sum())
                hyper = self.hyper._replace(alpha=total if alpha > 0 else 0.0, beta=prior / total)
                kernel(rows, d, make_fold(self.offset, hyper, phi), seed)

        edges = np.linspace(0, n_cases, min(n_jobs, max(n_cases, 1)) + 1).astype(int)
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(block, [slice(lo, hi) for lo, hi in itertools.pairwise(edges)]))

    def memberships(self, x: np.ndarray, n_jobs: int = 1) -> np.ndarray:
        """(N, S) Posterior mean of π of cases with codes x."""
        mean = np.zeros((len(x), self.n_clusters))
        self.each(len(x), FOLD, n_jobs, lambda rows, d, fold, seed: fold_in(x[rows], fold, seed, mean[rows]))
        shares: np.ndarray = mean / mean.sum(axis=1, keepdims=True)
        return shares
