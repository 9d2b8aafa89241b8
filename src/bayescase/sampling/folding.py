"""Cases folded into clusters whose φ is known: where they belong."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from ..kernels import Given, fold_by_table, fold_cases, score_cases, stream
from ..state import Codebook, Codes, Hyper
from .joining import Groups
from .posterior import Posterior

FOLD, SCORE = 1 << 20, 1 << 21  # streams of random numbers beside those of the chains 0, 1, 2, …


class Folds:
    """The kept draws of φ of a posterior, as new cases are folded into them."""

    def __init__(self, posterior: Posterior, hyper: Hyper, book: Codebook, seed: int, groups: Groups = ()):
        self.posterior, self.hyper, self.book, self.seed, self.groups = posterior, hyper, book, seed, groups

    def __len__(self) -> int:
        return len(self.posterior.tables)

    @property
    def n_clusters(self) -> int:
        return len(self.hyper.beta)

    def given(self) -> list[Given]:
        """Of every kept draw α and β, and φ."""
        totals = self.posterior.prior.sum(axis=1).tolist()
        alphas = totals if self.hyper.alpha > 0 else [0.0] * len(totals)
        parts = zip(alphas, self.posterior.prior, totals, self.posterior.tables, strict=True)
        return [(self.hyper._replace(alpha=alpha, beta=prior / total), phi) for alpha, prior, total, phi in parts]

    def memberships(self, cases: Codes, n_jobs: int = 1, device: str = "cpu") -> np.ndarray:
        """(N, S) Posterior mean of π of cases; of many, made on the device."""
        sums = fold_cases(cases, self.book, self.given(), stream(self.seed, FOLD), n_jobs, device)
        return self.gather(sums / sums.sum(axis=1, keepdims=True))

    def memberships_by_draw(self, cases: Codes) -> np.ndarray:
        """(draws, N, S) The same by each kept draw of φ."""
        each = fold_by_table(cases, self.book, self.given(), stream(self.seed, FOLD))
        return self.gather(each / each.sum(axis=2, keepdims=True))

    def log_probabilities(self, cases: Codes, n_jobs: int = 1) -> np.ndarray:
        """(N,) Log predictive probability of cases, averaged over draws of φ."""
        found = score_cases(cases, self.book, self.given(), stream(self.seed, SCORE), n_jobs)
        by_case = found.transpose(1, 0, 2).reshape(cases.n_rows, -1)  # a case is summed alike in any company
        value: np.ndarray = logsumexp(by_case, axis=1) - np.log(by_case.shape[1])
        return value

    def gather(self, shares: np.ndarray) -> np.ndarray:
        """(…, groups) What belongs to the clusters of each group together, if clusters are told in groups."""
        return np.stack([shares[..., list(group)].sum(axis=-1) for group in self.groups], axis=-1) if self.groups else shares
