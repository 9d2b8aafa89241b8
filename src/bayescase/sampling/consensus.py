"""What chains that jump call their clusters: labels of many draws, matched, so that all chains match theirs to the same.

A chain that goes round many descriptions has no draw that is like all others. Matched each to the mean of those before it,
draws come to one way of naming them or another, as the first of them have it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .posterior import match

EVERY, MOST = 16, 16  # sweeps from one labelling that a chain keeps to the next; so many of them, the latest
BEGINNINGS, TURNS = 4, 6  # labellings to begin from; turns of matching all to what they came to, at most


def consensus(labellings: Sequence[np.ndarray], exchangeable: np.ndarray) -> np.ndarray:
    """(N, S) In how many labellings a case has a label, once they are matched so that they agree most."""
    best, most = np.zeros((0, 0), dtype=np.float32), -1.0
    for first in labellings[:: -(-len(labellings) // BEGINNINGS)]:
        counts, agreement = marks(first, len(exchangeable)), -1.0
        for _ in range(TURNS):
            named = [names(counts, one, exchangeable)[one] for one in labellings]
            counts = sum((marks(one, len(exchangeable)) for one in named), start=np.zeros_like(counts))
            before, agreement = agreement, float(np.square(counts, dtype=float).sum())
            if agreement <= before:
                break
        if agreement > most:
            best, most = counts, agreement
    return best


def names(counts: np.ndarray, one: np.ndarray, exchangeable: np.ndarray) -> np.ndarray:
    """(S,) What each label of the cases is called in a consensus."""
    return match(counts.T @ marks(one, counts.shape[1]), exchangeable)  # whole numbers, so no sum is rounded


def marks(one: np.ndarray, S: int) -> np.ndarray:
    """(N, S) 1 for the label of each case."""
    found: np.ndarray = (one[:, None] == np.arange(S)).astype(np.float32)
    return found
