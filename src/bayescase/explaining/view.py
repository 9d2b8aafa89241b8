"""A Fitted as explanations see it: values in words, what sets each cluster apart, key features, names, prototypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..fitted import Fitted
from ..sampling.prototypes import Candidate
from ..sampling.values import is_int
from .naming import names_of
from .parts import Distinction, Prototype
from .telling import Told, group, rest, tell_all
from .values import Values, agreeing_codes

TOLD = 50  # distinctions of a cluster that an explanation holds


@dataclass(frozen=True, eq=False)
class View:
    """What the makers of explanations share."""

    fitted: Fitted
    values: Values
    told: tuple[Told, ...]  # of each cluster against all others
    names: tuple[str, ...]  # of the clusters
    made: tuple[str, ...]  # names that the clusters have if nobody gives them others

    def prototype(self, s: int) -> Prototype:
        """The case that stands for a cluster."""
        return self.as_prototype(s, self.fitted.prototype_ranking[s][0])

    def as_prototype(self, s: int, candidate: Candidate) -> Prototype:
        fitted, row = self.fitted, candidate.row
        ties = tuple(fitted.table_row(tie, candidate=True) for tie in candidate.ties)
        at = fitted.table_row(row, candidate=True)
        return Prototype(at, fitted.name_of(row), candidate.probability, ties, bool(fitted.belongs[row] == s))

    def codes(self, s: int) -> np.ndarray:
        """(D,) Codes of the prototype."""
        row: np.ndarray = self.fitted.prototype_codes[s]
        return row

    def keys(self, s: int) -> np.ndarray:
        """(D,) Key features: cases copy the prototype's value with a probability above one half.

        That something is absent is a key feature only if it sets the cluster apart, being common elsewhere.
        """
        said = (self.codes(s) != self.fitted.columns.absent) | self.told[s].rare
        return np.asarray((self.key_probabilities(s) > 0.5) & said)

    def key_probabilities(self, s: int) -> np.ndarray:
        """(D,) Probability that cases copy the prototype's value, or one that agrees with it."""
        return self.probability_of(s, agreeing_codes(self.fitted, s))

    def probability_of(self, s: int, chosen: np.ndarray) -> np.ndarray:
        """(D,) Probability that one of the values of the feature that are chosen is copied, whichever case is the prototype."""
        copied = np.where(chosen, self.copied(s), 0.0)
        return np.asarray(np.minimum(np.add.reduceat(copied, self.values.offset[:-1]), 1.0))

    def copied(self, s: int) -> np.ndarray:
        """(ΣV,) Probability that the value is copied, whichever case is the prototype."""
        return np.asarray(self.fitted.columns.spread(self.fitted.posterior.copied[:, s]))

    def key_order(self, s: int) -> np.ndarray:
        """The key features in the order of `parts.most_telling`."""
        keys, told, codes = np.flatnonzero(self.keys(s)), self.told[s], self.codes(s)
        lacks = (codes >= 0) & self.fitted.columns.lacks[codes]
        return keys[np.lexsort((-self.lead(s)[keys], -told.bits[keys], lacks[keys]))]

    def lead(self, s: int) -> np.ndarray:
        """(D,) How much more common the prototype's value is in its cluster than elsewhere."""
        feature, codes = np.arange(len(self.values.features)), self.codes(s)
        here, there = (
            of.cases[codes] / np.maximum(of.known, 1)[feature] for of in (group(self.fitted, [s]), rest(self.fitted, s))
        )
        return np.where(codes < 0, 0.0, here - there)

    def distinctions(self, s: int, told: Told, rare: bool, most: int = TOLD) -> tuple[Distinction, ...]:
        """What sets cluster s apart, the most telling first; what is rare in it if so asked."""
        offset, agrees = self.values.offset, agreeing_codes(self.fitted, s)
        probability = self.probability_of(s, told.chosen != rare)  # of what is rare here, that its absence is copied
        found = []
        for j in told.order(rare)[:most].tolist():
            codes = offset[j] + np.flatnonzero(told.chosen[offset[j] : offset[j + 1]])
            known = self.codes(s)[j] >= 0
            like = bool(known and (agrees[codes].any() != rare))
            found.append(
                Distinction(
                    feature=self.values.features[j].name,
                    values=tuple(self.values.of(j, code) for code in codes.tolist()),
                    words=self.values.words(j, codes.tolist()),
                    here=float(told.here[j]),
                    there=float(told.there[j]),
                    bits=float(told.bits[j]),
                    like_prototype=like,
                    probability=float(probability[j]),
                    key=bool(probability[j] > 0.5),
                )
            )
        return tuple(found)

    def shared(self, s: int) -> tuple[Distinction, ...]:
        """The key features of the only cluster that has cases: there is nothing to set it apart from."""
        codes, here = self.codes(s), group(self.fitted, [s])
        keys, probability = np.flatnonzero(self.keys(s)), self.key_probabilities(s)
        share = here.cases[codes[keys]] / np.maximum(here.known[keys], 1)
        return tuple(
            Distinction(
                feature=self.values.features[j].name,
                values=(self.values.of(j, codes[j]),),
                words=self.values.words(j, [codes[j]]),
                here=float(share[k]),
                there=None,
                bits=0.0,
                like_prototype=True,
                probability=float(probability[j]),
                key=True,
            )
            for k, j in ((k, int(keys[k])) for k in np.argsort(-share, kind="stable")[:TOLD])
        )


def view_of(fitted: Fitted) -> View:
    """Look at a fit."""
    values = Values(fitted.columns)
    told = tell_all(fitted)
    made = names_of(fitted, values, told)
    return View(fitted, values, told, fitted.cluster_names or made, made)


def check_cluster(fitted: Fitted, cluster: Any) -> int:
    """The number of a cluster that can be explained."""
    if not is_int(cluster) or not 0 <= cluster < fitted.n_clusters:
        raise ParameterError("There is no cluster {s!r}: the model has {n}, counted from 0.", s=cluster, n=fitted.n_clusters)
    if not fitted.sizes[cluster]:
        raise ParameterError("Cluster {s} is the main one of no case, so there is nothing to explain.", s=int(cluster))
    return int(cluster)
