"""What sets some cases apart from others: for each feature the values that they have more often, and how much these tell.

Shares are counted, not modelled: of the cases that have a value for the feature, so many have this one. How telling a value
is, is the Jensen–Shannon divergence of the two shares in bits: what having the value or not tells about which of the two a
case comes from, when both are as likely. 0 bits is nothing, 1 bit is all. 75 % against 2 % is 0.49 bits, 100 % against 50 %
is 0.31, 12 % against 0.3 % is 0.05, 97 % against 94 % is 0.004. "Most telling first" means: by these bits, and values that
say that nothing is there after all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from ..fitted import Fitted

LEAST = 0.03  # bits from which a value is telling
ERRORS = 2.0  # and so many standard errors between the two shares
COMMON = 0.5  # share elsewhere from which it is worth saying that something is rare here
FAIR = 0.3  # share here from which a value is what a cluster is known by; an item is one of many, and may be rarer


class Group(NamedTuple):
    """How many cases of a group have each value."""

    cases: np.ndarray  # (ΣV,)
    known: np.ndarray  # (P,) cases that have a value for the feature
    size: int

    def share(self, feature: np.ndarray) -> np.ndarray:
        """(ΣV,) Of the cases that have a value for the feature, so many have this one."""
        return np.asarray(self.cases / np.maximum(self.known, 1)[feature])


class Told(NamedTuple):
    """For each feature its most telling values."""

    bits: np.ndarray  # (P,) how telling; 0 if not
    chosen: np.ndarray  # (ΣV,) the values that are more common here, or all that say "present" where these are rare here
    here: np.ndarray  # (P,) share of the cases that have one of these
    there: np.ndarray
    rare: np.ndarray  # (P,) are they rare here?
    lacks: np.ndarray  # (P,) do all of them say that nothing is there?

    def order(self, rare: bool) -> np.ndarray:
        """The features that tell something, the most telling first."""
        features = np.flatnonzero((self.bits > 0) & (self.rare == rare))
        return features[np.lexsort((-self.bits[features], self.lacks[features]))]


def bits(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Jensen–Shannon divergence of two shares."""
    middle = (here + there) / 2
    return np.asarray((entropy(middle) - (entropy(here) + entropy(there)) / 2) / np.log(2))


def entropy(share: np.ndarray) -> np.ndarray:
    return -(xlogy(share, share) + xlogy(1 - share, 1 - share))


def is_telling(here: np.ndarray, there: np.ndarray, n_here: np.ndarray, n_there: np.ndarray) -> np.ndarray:
    """Do two shares differ by enough bits, and by more than chance would give?"""
    return np.asarray((bits(here, there) >= LEAST) & is_beyond_chance(here, there, n_here, n_there))


def is_beyond_chance(here: np.ndarray, there: np.ndarray, n_here: np.ndarray, n_there: np.ndarray) -> np.ndarray:
    """Are two shares more than a few standard errors apart?"""
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (here * n_here + there * n_there) / (n_here + n_there)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n_here + 1 / n_there))
        return np.asarray(abs(here - there) > ERRORS * error)


def group(fitted: Fitted, clusters: Sequence[int]) -> Group:
    """The cases whose main cluster is one of these."""
    cases = fitted.cases_with[:, list(clusters)].sum(axis=1, dtype=np.int64)
    return Group(cases, np.add.reduceat(cases, fitted.columns.offset[:-1]), int(fitted.sizes[list(clusters)].sum()))


def rest(fitted: Fitted, s: int) -> Group:
    """The cases of all clusters but one."""
    return group(fitted, [t for t in range(fitted.n_clusters) if t != s])


def tell_apart(fitted: Fitted, here: Group, there: Group) -> Told:
    """For each feature its most telling set of values, among those more common here than chance explains.

    The set has the values with the largest ratio of shares, as many as tell most, and as make up a fair share here. Absence is
    never told as such: of a feature that is present or absent, presence is told as common here, or as rare.
    """
    columns, offset = fitted.columns, fitted.columns.offset
    feature = columns.column  # of each value
    present = np.ones(len(feature), dtype=bool)
    present[columns.absent[columns.absent >= 0]] = False
    fair = np.where(columns.one_of_many, 0.0, FAIR)
    chosen = more_often(here, there, offset, feature, present, fair)
    told = np.logical_or.reduceat(chosen, offset[:-1])
    rare = columns.optional & ~told & is_rare(here, there, offset, present)
    chosen |= present & rare[feature]
    shares = [shares_of(of, chosen, offset) for of in (here, there)]
    tells = (told | rare) & (here.known > 0) & (there.known > 0)
    return Told(
        bits=np.where(tells, bits(*shares), 0.0) * here.known / max(here.size, 1),  # a case without a value tells nothing
        chosen=chosen,
        here=shares[0],
        there=shares[1],
        rare=rare,
        lacks=~np.logical_or.reduceat(chosen & ~columns.lacks, offset[:-1]),
    )


def tell_all(fitted: Fitted) -> tuple[Told, ...]:
    """What sets each cluster apart from all others."""
    return tuple(tell_apart(fitted, group(fitted, [s]), rest(fitted, s)) for s in range(fitted.n_clusters))


def shares_of(of: Group, chosen: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """(P,) Of the cases that have a value for the feature, so many have one of those chosen."""
    return np.asarray(np.add.reduceat(np.where(chosen, of.cases, 0), offset[:-1]) / np.maximum(of.known, 1))


def is_rare(here: Group, there: Group, offset: np.ndarray, present: np.ndarray) -> np.ndarray:
    """(P,) Is something less common here that most cases there have?"""
    a, b = (shares_of(of, present, offset) for of in (here, there))
    return np.asarray((a < b) & (b >= COMMON) & is_telling(a, b, here.known, there.known))


def more_often(
    here: Group, there: Group, offset: np.ndarray, feature: np.ndarray, allowed: np.ndarray, fair: np.ndarray
) -> np.ndarray:
    """(ΣV,) For each feature the most telling set of allowed values that are more common here, and common enough.

    None if it tells too little.
    """
    V = len(feature)
    a, b = here.share(feature), there.share(feature)
    fit = allowed & (a > b) & is_beyond_chance(a, b, here.known[feature], there.known[feature])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(fit, a / b, -1.0)
    order = np.lexsort((-ratio, feature))  # features stay in their places
    sets = [running_sum(np.where(fit, of.cases, 0)[order], offset) / np.maximum(of.known, 1)[feature] for of in (here, there)]
    score = np.where(fit[order] & (sets[0] >= fair[feature]), bits(*sets), -1.0)
    best = np.maximum.reduceat(score, offset[:-1])
    last = np.full(len(best), V)  # value of the best set; of equal sets the smallest
    np.minimum.at(last, feature, np.where(score == best[feature], np.arange(V), V))
    good = (best > 0) & is_telling(sets[0][last], sets[1][last], here.known, there.known)
    chosen = np.zeros(V, dtype=bool)
    chosen[order] = fit[order] & (np.arange(V) <= last[feature]) & good[feature]
    return chosen


def running_sum(values: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """Sums from the first value of each feature on."""
    total = np.cumsum(values)
    return np.asarray(total - np.repeat(np.append(0, total)[offset[:-1]], np.diff(offset)))
