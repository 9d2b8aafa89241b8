"""Cases that stay where they are: the files of their codes, and which of them a run has at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..reading.cache import Cached
from ..storage import Mapped


class Stored(NamedTuple):
    """Where the cases of a problem are, if they are not in memory."""

    cached: Cached
    folder: Path  # for labels and memberships
    log_weight: np.ndarray | Mapped  # (N, 1) of all cases as candidates; (1, 1) if they are equal
    rows: np.ndarray  # of the table: those that the problem's `data` has, those of `sample_rows` first
    client: Any = None  # of the cluster that the run is made on

    @property
    def n_cases(self) -> int:
        return len(self.cached)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a checkpoint must agree with, beside the sample: how often each value occurs, and that rows are in files."""
        about = self.cached.about
        return "stored", about.n_rows, np.array(about.counts), np.array(about.n_i)


START_CASES = 1 << 17  # of more cases than this, seeded starts and explanations use a sample of this size


def sample_rows(n_cases: int, seed: int, most: int | None = None) -> np.ndarray:
    """All rows, or a sample of `most`, in rising order: for seeded starts, and what a run has in memory of a table on disk."""
    most = START_CASES if most is None else most
    if n_cases <= most:
        return np.arange(n_cases)
    return np.sort(np.random.default_rng([seed, n_cases]).choice(n_cases, size=most, replace=False))
