"""The prototypes behind a prediction, and what cases have in common with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..state import Codes
from .values import agreement, in_words
from .view import View
from .words import cluster_title, counted, cut, listed, percent, phrase

SHOWN = 0.05  # a printed explanation leaves out clusters with less membership than this
MOST_FEATURES = 6  # that a printed line names


@dataclass(frozen=True)
class PrototypeEvidence:
    """A prototype behind a prediction, and what the case has in common with it.

    Attributes
    ----------
    cluster : int
        Whose prototype it is.
    cluster_name : str
        The name of the cluster.
    membership : float
        How much of the case belongs to the cluster.
    prototype : int
        Row of the catalogue: of the fitted X, unless there were candidates.
    name : str
        The name of that case.
    probability : float
        Posterior probability that it is the prototype.
    label : object
        Of the prototype; None if it is one of the candidates, which have no labels.
    values : dict of str to object
        The prototype's values on its key features, the most telling first.
    own : dict of str to object
        The case's values on the same features; None where it has none.
    agrees : dict of str to bool or None
        Does the case have that value, or a similar one? None where it has no value.
    contribution : float or None
        Of the membership to the decision for the predicted label; None unless that is linear.
    """

    cluster: int
    cluster_name: str
    membership: float
    prototype: int
    name: str
    probability: float
    label: Any
    values: dict[str, Any]
    own: dict[str, Any]
    agrees: dict[str, bool | None]
    contribution: float | None

    def __str__(self) -> str:
        known = [agrees for agrees in self.agrees.values() if agrees is not None]
        words = f"{percent(self.membership)} in {cluster_title(self.cluster, self.cluster_name)}, like {cut(self.name, 100)}"
        words += f" ({percent(self.probability)}" + (")" if self.label is None else f"; label {self.label})")
        words += "" if self.contribution is None else f", which adds {self.contribution:+.2f}"
        words += f": agrees on {sum(known)} of {counted(len(known), 'key feature')}" if known else ""
        same, other = (
            [phrase(name, value) for name, value in of.items() if self.agrees[name] is agrees and value is not False]
            for of, agrees in ((self.values, True), (self.own, False))
        )
        words += f", {listed(same, MOST_FEATURES)}" if same else ""
        return words + (f"; but {listed(other, MOST_FEATURES)}" if other else "")


@dataclass(frozen=True)
class PredictionExplanation:
    """Why a case got its label.

    Attributes
    ----------
    label : object
        The predicted label.
    evidence : tuple of PrototypeEvidence
        The prototypes behind the prediction, the largest membership first.
    intercept : float or None
        Of the decision for the label, which is this plus all contributions; None unless that is linear.
    known : bool
        Has the case a value that the model knows? If not, it gets the label of any such case.
    """

    label: Any
    evidence: tuple[PrototypeEvidence, ...]
    intercept: float | None
    known: bool = True

    def __str__(self) -> str:
        if not self.known:
            return f"{self.label}:\n  no value that the model knows, so nothing speaks for this label; any such case gets it"
        shown = [e for e in self.evidence if e.membership >= SHOWN] or self.evidence[:1]
        return "\n".join([f"{self.label}:", *(f"  {evidence}" for evidence in shown)])


class ClusterEvidence:
    """What cases have in common with the prototype of a cluster, on its key features, the most telling first."""

    def __init__(self, view: View, s: int, cases: Codes, label: Any):
        keys = view.key_order(s)
        self.view, self.s, self.label, self.keys = view, s, label, keys.tolist()
        self.values = self.named(view.codes(s)[keys])
        self.states, self.codes = agreement(view.fitted, s, cases, keys), view.fitted.columns.codes(cases, keys)

    def named(self, codes: np.ndarray) -> dict[str, Any]:
        """Values on the key features by their names."""
        of = self.view.values
        return {of.features[j].name: of.of(j, code) for j, code in zip(self.keys, codes.tolist(), strict=True)}

    def of_case(self, i: int, membership: float, contribution: float | None) -> PrototypeEvidence:
        prototype = self.view.prototype(self.s)
        return PrototypeEvidence(
            cluster=self.s,
            cluster_name=self.view.names[self.s],
            membership=membership,
            prototype=prototype.row,
            name=prototype.name,
            probability=prototype.probability,
            label=self.label,
            values=self.values,
            own=self.named(self.codes[i]),
            agrees=dict(zip(self.values, map(in_words, self.states[i].tolist()), strict=True)),
            contribution=contribution,
        )
