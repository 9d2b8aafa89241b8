"""Do the clusters tell cases apart? If every case belongs to all of them in the same shares, the table has no clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import entr

from ..errors import Advice, Setting
from ..parallel import each
from ..state import chunks
from .diagnostics import Diagnostics

# Measured at the defaults: 0.91 to 0.96 on tables with clusters, 0.02 to 0.14 on tables of all combinations (docs/chains.md)
LEAST_TOLD = 0.2
MOST_MIXED = 0.05  # α per cell of a case: above it, memberships are alike because of the prior, whatever the table


def told(memberships: np.ndarray) -> float:
    """How well features tell the cluster of a case, from 0 to 1: 1 − mean_i H(π_i) / H(mean_i π_i).

    Where there are no clusters, a chain gives every case every label in turn, so that all π_i become the same.
    """
    parts, N = chunks(*memberships.shape), len(memberships)
    mean = np.sum(each(lambda few: memberships[few].sum(axis=0, dtype=float), parts), axis=0) / N
    whole, own = float(entr(mean).sum()), sum(each(lambda few: float(entr(memberships[few]).sum(dtype=float)), parts)) / N
    return 1.0 if whole <= 0.0 else 1.0 - own / whole


def has_structure(memberships: np.ndarray, alpha: float, n_i: np.ndarray) -> bool:
    """False only if the clusters clearly tell nothing; a single one has nothing to tell apart. n_i: cases with n cells."""
    cells = float((np.arange(len(n_i)) * n_i).sum() / max(int(n_i.sum()), 1))
    return memberships.shape[1] < 2 or alpha > MOST_MIXED * cells or told(memberships) >= LEAST_TOLD


def without_structure(found: Diagnostics, number: str = "n_clusters") -> Diagnostics:
    """The verdict on a fit whose clusters do not tell cases apart; more sweeps, or chains that agree, would not change it.

    number: the setting that says how many clusters there may be.
    """
    words = "There are no clusters to speak of: all cases have about the same shares in them."
    fewer = Advice("try fewer clusters with a smaller {}", Setting(number))
    return replace(found, converged=False, sound=False, verdict=words, remedies=(fewer,))
