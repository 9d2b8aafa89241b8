"""Making the explanation of clusters from a Fitted."""

from __future__ import annotations

import numpy as np

from ..fitted import Fitted
from .agreement import criticise
from .explanation import ClusterExplanation, ModelExplanation
from .parts import Contrast, Distinction, FeatureRole, SharedValue
from .telling import Told, group, rest, tell_apart
from .view import View, view_of

CANDIDATES = 10  # cases that could stand for a cluster
ALIKE = 20  # other clusters that a cluster is contrasted with
CONTRASTED = 5  # features that tell a cluster from another
VALUES = 40  # values that tell all clusters apart


def explain(fitted: Fitted) -> ModelExplanation:
    """What the clusters of a fit are.

    Parameters
    ----------
    fitted : Fitted

    Returns
    -------
    ModelExplanation
        Of the clusters that are the main one of a case.
    """
    view, hyper, found = view_of(fitted), fitted.hyper, fitted.diagnostics
    used = np.flatnonzero(fitted.sizes).tolist()
    numbers = fitted.n_clusters_probabilities
    return ModelExplanation(
        n_cases=fitted.n_cases,
        n_features=fitted.encoding.n_single,
        bags={bag.name: len(bag.values) for bag in fitted.encoding.bags},
        missing=float((fitted.data.x < 0).mean()) if fitted.data.x.size else 0.0,
        clusters=tuple(make_cluster(view, s) for s in used),
        n_unused=fitted.n_clusters - len(used),
        values=shared_values(view, used),
        verdict=f"{found.verdict} {fitted.scope}".rstrip(),
        advice=found.advice,
        converged=found.converged,
        sound=found.sound,
        hyperparameters={name: float(getattr(hyper, name)) for name in ("alpha", "lam", "c")} | {"q": float(hyper.q.mean())},
        learned={name: (value.mean, value.low, value.high) for name, value in fitted.hyperparameters.items()},
        n_clusters_probabilities=None if numbers is None else {str(k): float(p) for k, p in numbers.items()},
        sweeps=fitted.n_sweeps,
        chains=fitted.n_chains,
        capped=fitted.capped,
        folded_from=None if fitted.whole is None else fitted.whole.n_clusters,
        n_empty=int((~fitted.known).sum()),
    )


def make_cluster(view: View, s: int) -> ClusterExplanation:
    """The explanation of a cluster that has cases."""
    fitted, told = view.fitted, view.told[s]
    copied = view.key_probabilities(s) > 0.5
    others = [t for t in np.flatnonzero(fitted.sizes).tolist() if t != s]
    ranking = fitted.prototype_ranking[s][:CANDIDATES]
    return ClusterExplanation(
        cluster=s,
        name=view.names[s],
        named=view.names[s] != view.made[s],
        size=int(fitted.sizes[s]),
        n_cases=fitted.n_cases,
        share=float(fitted.posterior.memberships[:, s].mean()),
        prototype=view.prototype(s),
        candidates=tuple(view.as_prototype(s, candidate) for candidate in ranking),
        more_often=view.distinctions(s, told, rare=False) if others else view.shared(s),
        rare=view.distinctions(s, told, rare=True),
        features=feature_roles(view, s),
        unsaid=int((copied & ~view.keys(s)).sum()),
        contrasts=tuple(Contrast(t, view.names[t], against(view, s, t)) for t in most_alike(view, s, others)),
        criticisms=criticise(view, s),
        alone=not others,
    )


def most_alike(view: View, s: int, others: list[int]) -> list[int]:
    """The clusters that cluster s could be mistaken for, in the order of their numbers; all if they are few."""
    if len(others) <= ALIKE:
        return others
    shares = view.fitted.cases_with / np.maximum(view.fitted.sizes, 1)
    apart = abs(shares[:, others] - shares[:, [s]]).sum(axis=0)
    return sorted(others[k] for k in np.argsort(apart, kind="stable")[:ALIKE].tolist())


def against(view: View, s: int, t: int) -> tuple[Distinction, ...]:
    """What cluster s has more often than cluster t."""
    told = tell_apart(view.fitted, group(view.fitted, [s]), group(view.fitted, [t]))
    return view.distinctions(s, told, rare=False, most=CONTRASTED)


def feature_roles(view: View, s: int) -> tuple[FeatureRole, ...]:
    """What every feature means to cluster s, in the order of the table; of a bag the items that its prototype or it has."""
    fitted, offset = view.fitted, view.values.offset
    feature = fitted.columns.column
    here, others = group(fitted, [s]), rest(fitted, s)
    share, elsewhere = here.share(feature).tolist(), others.share(feature).tolist()
    some = others.known > 0
    codes, keys, told, probability = view.codes(s).tolist(), view.keys(s), view.told[s], view.key_probabilities(s)
    roles = []
    for j in told_columns(view, s).tolist():
        shown = view.values.shown[j]
        first, code = int(offset[j]), codes[j]
        shares = share[first : first + len(shown)]
        there = elsewhere[first : first + len(shown)] if some[j] else [None] * len(shown)
        top = int(np.argmax(shares))
        roles.append(
            FeatureRole(
                name=view.values.features[j].name,
                column=j,
                key=bool(keys[j]),
                probability=float(probability[j]),
                subspace_probability=float(fitted.posterior.omega_prob[s, j]),
                prior=float(fitted.hyper.q[s, j]),
                value=view.values.of(j, code),
                share=None if code < 0 else share[code],
                elsewhere=None if code < 0 or not some[j] else elsewhere[code],
                bits=float(told.bits[j]),
                typical=shown[top],
                typical_share=shares[top],
                distribution=tuple(zip(shown, shares, there, strict=True)),
            )
        )
    return tuple(roles)


def told_columns(view: View, s: int) -> np.ndarray:
    """The columns that are worth a word: all single features, and the items that the prototype has or that tell something."""
    n_single, codes = view.fitted.columns.n_single, view.codes(s)
    told = (view.told[s].bits > 0) | (codes != view.fitted.columns.absent)
    return np.flatnonzero(told | (np.arange(len(codes)) < n_single))


def shared_values(view: View, used: list[int]) -> tuple[SharedValue, ...]:
    """In turn the most telling values of each cluster."""
    order = {s: view.told[s].order(rare=False).tolist() for s in used}
    chosen: dict[tuple[int, bytes], int] = {}
    for place in range(max((len(of) for of in order.values()), default=0)):
        for s in used:
            if place < len(order[s]) and len(chosen) < VALUES:
                chosen.setdefault(set_of(view, view.told[s], order[s][place]), s)
    groups = [group(view.fitted, [s]) for s in used]
    copied = [view.copied(s) for s in used]
    found = []
    for (j, mask), s in chosen.items():
        members = view.values.offset[j] + np.flatnonzero(np.frombuffer(mask, dtype=bool))
        found.append(
            SharedValue(
                cluster=s,
                feature=view.values.features[j].name,
                words=view.values.words(j, members.tolist()),
                bits=float(view.told[s].bits[j]),
                shares=tuple(float(of.cases[members].sum() / max(of.known[j], 1)) for of in groups),
                keys=tuple(bool(of[members].sum() > 0.5) for of in copied),
            )
        )
    return tuple(found)


def set_of(view: View, told: Told, j: int) -> tuple[int, bytes]:
    """A feature and the set of its values that is told."""
    return j, told.chosen[view.values.offset[j] : view.values.offset[j + 1]].tobytes()
