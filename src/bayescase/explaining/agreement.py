"""Which members of a cluster agree with its prototype, and which members fit worst."""

from __future__ import annotations

import numpy as np

from ..fitted import Fitted
from ..state import chunks
from .explanation import AgreementExplanation
from .parts import Criticism, KeyAgreement, Member
from .telling import group
from .values import AGREES, DIFFERS, UNKNOWN, agreement, in_words
from .view import View, check_cluster, view_of

CRITICISMS = 5
MEMBERS = 30
SMALLEST = 1e-300  # a probability whose logarithm is still finite


def explain_agreement(fitted: Fitted, cluster: int, most: int = MEMBERS) -> AgreementExplanation:
    """Which members of a cluster agree with its prototype.

    Parameters
    ----------
    fitted : Fitted
    cluster : int
        Its number.
    most : int, default=30
        Members that are named.

    Returns
    -------
    AgreementExplanation
    """
    s, view = check_cluster(fitted, cluster), view_of(fitted)
    keys, rows = view.key_order(s), np.flatnonzero(fitted.main == s)
    states = agreement(fitted, s, fitted.data.cases.take(rows), keys)
    agreeing, known = (states == AGREES).sum(axis=0), (states != UNKNOWN).sum(axis=0)
    order = np.argsort(-(states == AGREES).sum(axis=1), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int))]
    return AgreementExplanation(
        cluster=s,
        name=view.names[s],
        size=len(rows),
        prototype=view.prototype(s),
        features=tuple(
            KeyAgreement(
                view.values.features[j].name, view.values.of(j, view.codes(s)[j]), float(agreeing[k] / max(known[k], 1))
            )
            for k, j in enumerate(keys.tolist())
        ),
        members=tuple(
            Member(
                row=fitted.table_row(rows[i]),
                name=fitted.name_of_case(rows[i]),
                membership=float(fitted.posterior.memberships[rows[i], s]),
                agrees=tuple(in_words(state) for state in states[i].tolist()),
            )
            for i in chosen.tolist()
        ),
        scope=fitted.scope,
    )


def criticise(view: View, s: int, most: int = CRITICISMS) -> tuple[Criticism, ...]:
    """The members that are least probable by their key features, of those that differ from the prototype in one."""
    fitted, keys = view.fitted, view.key_order(s)
    rows = np.flatnonzero(fitted.main == s)
    states = agreement(fitted, s, fitted.data.cases.take(rows), keys)
    differing = (states == DIFFERS).any(axis=1)
    rows, states = rows[differing], states[differing]
    log_share, fit = log_shares(view, s), np.empty(len(rows))
    for some in chunks(len(rows), len(keys)):
        fit[some] = log_share[fitted.columns.codes(fitted.data.cases.take(rows[some]), keys)].sum(axis=1)
    worst = np.argsort(fit, kind="stable")[:most]
    found = []
    for i in worst.tolist():
        differs = keys[states[i] == DIFFERS].tolist()
        codes = fitted.columns.codes(fitted.data.cases.take(rows[[i]]))[0]
        found.append(
            Criticism(
                row=fitted.table_row(rows[i]),
                name=fitted.name_of_case(rows[i]),
                membership=float(fitted.posterior.memberships[rows[i], s]),
                agrees=int((states[i] == AGREES).sum()),
                of=int((states[i] != UNKNOWN).sum()),
                differs=tuple((view.values.features[j].name, view.values.of(j, int(codes[j]))) for j in differs),
            )
        )
    return tuple(found)


def log_values(fitted: Fitted) -> np.ndarray:
    """log φ of every code of the columns, and a last row for a missing cell, -1: it says nothing, nor does an absent item."""
    values = np.log(np.maximum(fitted.posterior.values, SMALLEST))
    return np.vstack([fitted.columns.spread(values), np.zeros(values.shape[1])])


def log_shares(view: View, s: int) -> np.ndarray:
    """log φ_s of every code of the columns; of an item the log share of the cases that have it, or have it not."""
    fitted, columns = view.fitted, view.fitted.columns
    found, here = log_values(fitted)[:, s], group(fitted, [s])
    found[columns.first_item : -1] = np.log((here.cases[columns.first_item :] + 0.5) / (here.size + 1.0))
    return found
