"""Where the chains of a fit differ, in words and numbers."""

from __future__ import annotations

import numpy as np

from ..fitted import Fitted
from ..sampling.differing import Differing
from ..sampling.posterior import AGREE
from .overall import ClusterInChains, DifferencesExplanation, Flow, MovingCase, Way
from .view import view_of


def explain_differences(fitted: Fitted) -> DifferencesExplanation:
    """Which clusters all chains found, and which cases are in one or another.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    DifferencesExplanation
    """
    found, names = fitted.differing, view_of(fitted).names
    rows = np.flatnonzero(fitted.known)
    return DifferencesExplanation(
        n_cases=len(rows),
        n_chains=fitted.n_chains,
        shown=tuple(np.flatnonzero(fitted.posterior.overlap >= AGREE).tolist()),
        clusters=tuple(
            ClusterInChains(s, names[s], int(fitted.sizes[s]), bool(found.same[s]), tuple(found.alike[:, s].tolist()))
            for s in np.flatnonzero(fitted.sizes).tolist()
        ),
        cases=tuple(moving_case(fitted, int(rows[i]), i) for i in by_clusters(found, fitted.labels[rows])),
        ways=tuple(
            sorted(
                (make_way(fitted, w, fitted.labels[rows]) for w in range(1, int(found.way.max()) + 1)),
                key=lambda way: way.lower,
            )
        ),
        scope=fitted.scope,
    )


def by_clusters(found: Differing, labels: np.ndarray) -> list[int]:
    """The cases that move, those that do so alike together."""
    moving = np.flatnonzero(found.moving)
    order: list[int] = moving[np.lexsort([*found.labels[::-1, moving], labels[moving]])].tolist()
    return order


def moving_case(fitted: Fitted, row: int, i: int) -> MovingCase:
    """Case i of those that have a value."""
    chains = tuple(None if s >= fitted.n_clusters else s for s in fitted.differing.labels[:, i].tolist())
    return MovingCase(fitted.table_row(row), fitted.name_of_case(row), int(fitted.labels[row]), chains)


def make_way(fitted: Fitted, number: int, labels: np.ndarray) -> Way:
    """What some chains found, told by the best of them."""
    S, found, kept = fitted.n_clusters, fitted.differing, slice(fitted.kept.first, fitted.kept.end)
    log_joint = fitted.trace["log_joint"][:, kept].mean(axis=1)
    chains = sorted(np.flatnonzero(found.way == number).tolist(), key=lambda c: -log_joint[c])
    pairs, sizes = np.unique(np.stack([labels, found.labels[chains[0]]]), axis=1, return_counts=True)
    flows = tuple(Flow(s, t if t < S else None, t, n) for (s, t), n in zip(pairs.T.tolist(), sizes.tolist(), strict=True))
    lower = float(log_joint[fitted.posterior.overlap >= AGREE].mean() - log_joint[chains].mean())
    return Way(tuple(chains), lower, flows)
