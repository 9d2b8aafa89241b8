"""Where the chains of a fit differ, in words and numbers."""

from __future__ import annotations

import numpy as np

from ..fitted import Fitted
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
    found, S, names = fitted.differing, fitted.n_clusters, view_of(fitted).names
    return DifferencesExplanation(
        n_cases=fitted.n_cases,
        n_chains=fitted.n_chains,
        shown=tuple(np.flatnonzero(fitted.posterior.overlap >= AGREE).tolist()),
        clusters=tuple(
            ClusterInChains(s, names[s], int(fitted.sizes[s]), bool(found.same[s]), tuple(found.alike[:, s].tolist()))
            for s in np.flatnonzero(fitted.sizes).tolist()
        ),
        cases=tuple(moving_case(fitted, i) for i in by_clusters(fitted)),
        ways=tuple(sorted((make_way(fitted, w, S) for w in range(1, int(found.way.max()) + 1)), key=lambda way: way.lower)),
        scope=fitted.scope,
    )


def by_clusters(fitted: Fitted) -> list[int]:
    """The cases that move, those that do so alike together."""
    rows = np.flatnonzero(fitted.differing.moving)
    keys = [*fitted.differing.labels[::-1, rows], fitted.labels[rows]]
    order: list[int] = rows[np.lexsort(keys)].tolist()
    return order


def moving_case(fitted: Fitted, i: int) -> MovingCase:
    chains = tuple(None if s >= fitted.n_clusters else s for s in fitted.differing.labels[:, i].tolist())
    return MovingCase(fitted.table_row(i), fitted.name_of_case(i), int(fitted.labels[i]), chains)


def make_way(fitted: Fitted, number: int, S: int) -> Way:
    """What some chains found, told by the best of them."""
    found, kept = fitted.differing, slice(fitted.kept.first, fitted.kept.end)
    log_joint = fitted.trace["log_joint"][:, kept].mean(axis=1)
    chains = sorted(np.flatnonzero(found.way == number).tolist(), key=lambda c: -log_joint[c])
    pairs, sizes = np.unique(np.stack([fitted.labels, found.labels[chains[0]]]), axis=1, return_counts=True)
    flows = tuple(Flow(s, t if t < S else None, t, n) for (s, t), n in zip(pairs.T.tolist(), sizes.tolist(), strict=True))
    lower = float(log_joint[fitted.posterior.overlap >= AGREE].mean() - log_joint[chains].mean())
    return Way(tuple(chains), lower, flows)
