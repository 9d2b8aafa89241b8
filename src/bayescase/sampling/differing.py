"""Where chains differ: which clusters all of them found, and which cases are in another one elsewhere."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from .posterior import AGREE


class Differing(NamedTuple):
    """The main cluster of each case in each chain, with the number of the shown cluster that it is, if it is one."""

    labels: np.ndarray  # (C, N) from S on: clusters of that chain that are none of those shown
    alike: np.ndarray  # (C, S) cases that are in the cluster in both over those that are in either; NaN if it has none
    same: np.ndarray  # (S,) has cases, and is alike in all chains
    moving: np.ndarray  # (N,) is the case in another cluster in some chain?
    way: np.ndarray  # (C,) chains with the same number found the same clusters; 0 are those shown

    @property
    def counts(self) -> Counts:
        used = int((~np.isnan(self.alike[0])).sum())
        return Counts(int(self.same.sum()), used, int(self.moving.sum()), len(self.moving))


class Counts(NamedTuple):
    """What differs, in numbers."""

    same: int  # clusters that are the same in all chains
    clusters: int  # with cases
    moving: int  # cases that are not in the same cluster in all chains
    cases: int


def differing(shown: np.ndarray, chains: np.ndarray, S: int, overlap: np.ndarray, folded: bool = False) -> Differing:
    """How the labels of chains, (C, N), differ from the S clusters that are shown.

    folded: each cluster of a chain counts as the shown one that holds most of its cases, since several may be one there.
    """
    pairs = [in_fewer(shown, own, S) if folded else in_shown(shown, own, S) for own in chains]
    labels = np.stack([found for found, _ in pairs])
    alike = np.stack([share for _, share in pairs])
    same = np.nan_to_num(alike, nan=-1.0).min(axis=0) >= AGREE
    return Differing(labels, alike, same, (labels != shown).any(axis=0), ways(chains, overlap))


def in_shown(shown: np.ndarray, own: np.ndarray, S: int) -> tuple[np.ndarray, np.ndarray]:
    """(labels, how much each cluster is alike): clusters matched so that most cases are in the same one.

    A match counts if it has half of the cases of one of the two; what a chain has beside is a cluster of its own, from S on.
    """
    table = cross(shown, own, S)
    r, t = linear_sum_assignment(table, maximize=True)
    both, here, there = table[r, t], table.sum(axis=1), table.sum(axis=0)
    found = (both > 0) & (2 * both >= np.minimum(here[r], there[t]))
    name = np.full(table.shape[1], -1)
    name[t[found]] = r[found]
    others = np.flatnonzero((name < 0) & (there > 0))
    name[others] = S + np.arange(len(others))
    alike = np.where(here > 0, 0.0, np.nan)
    alike[r[found]] = (both / np.maximum(here[r] + there[t] - both, 1))[found]
    return name[own], alike


def in_fewer(shown: np.ndarray, own: np.ndarray, S: int) -> tuple[np.ndarray, np.ndarray]:
    labels = cross(shown, own, S).argmax(axis=0)[own]
    table = cross(shown, labels, S)[:, :S]
    both, here, there = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
    return labels, np.where(here > 0, both / np.maximum(here + there - both, 1), np.nan)


def cross(a: np.ndarray, b: np.ndarray, S: int) -> np.ndarray:
    """(S, at least S) How many cases have label r in a and label t in b."""
    K = max(S, int(b.max(initial=0)) + 1)
    return np.bincount(a.astype(np.int64) * K + b, minlength=S * K).reshape(S, K)


def ways(chains: np.ndarray, overlap: np.ndarray) -> np.ndarray:
    """(C,) 0 for the chains that results rest on; the others get the number of the first that has the same clusters."""
    way = np.zeros(len(chains), dtype=np.int64)
    first: list[int] = []
    K = int(chains.max(initial=0)) + 1
    for c in np.flatnonzero(overlap < AGREE).tolist():
        for number, other in enumerate(first, start=1):
            table = cross(chains[other], chains[c], K)
            if table[linear_sum_assignment(table, maximize=True)].sum() >= AGREE * chains.shape[1]:
                way[c] = number
                break
        else:
            first.append(c)
            way[c] = len(first)
    return way
