"""Explanations: what a cluster is, why a case is in it, and how two clusters differ. Everything that shows anything uses these.

All are frozen dataclasses of words and numbers; `to_json` and `from_json` turn them into plain JSON and back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..predicting import memberships_by_draw
from ..sampling.problem import is_int
from .records import build, plain

SMALLEST = 1e-300  # a probability whose logarithm is still finite
NEIGHBOURS = 5
CRITICISMS = 5
MEMBERS = 30
UNLIKE = 0.15  # so much more probable here than elsewhere sets a cluster apart
DISTINCTIONS = 5  # features that tell a cluster from another
INTERVAL = (0.05, 0.95)


class Explanation:
    """What all explanations can do."""

    def to_json(self) -> dict:
        """Plain lists, words and numbers, with the kind of each explanation."""
        return {"kind": type(self).__name__} | plain(self)

    @classmethod
    def from_json(cls, value: dict) -> Explanation:
        """The explanation that `to_json` made; ValueError if it is none."""
        try:
            kind = {kind.__name__: kind for kind in EXPLANATIONS if issubclass(kind, cls)}[value["kind"]]
            return build(kind, value)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This is not an explanation of bayescase ({error!r}).") from error


@dataclass(frozen=True)
class Prototype:
    """A case that may stand for a cluster."""

    row: int  # of the catalogue
    name: str
    probability: float  # that it, or a case with the same values, is the prototype
    ties: tuple[int, ...]  # rows with the same values, itself first


@dataclass(frozen=True)
class FeatureRole:
    """What a feature means to a cluster."""

    name: str
    key: bool  # does it belong to the subspace?
    probability: float  # that it does
    prior: float  # the same before the data were seen
    value: Any  # the prototype's; None if it has none
    share: float | None  # probability of this value in the cluster
    elsewhere: float | None  # and in the others together
    typical: Any  # the most probable value
    typical_share: float
    distribution: tuple[tuple[Any, float, float], ...]  # every value with its probability here and elsewhere

    @property
    def unlike(self) -> bool:
        """Is the prototype's value much more common here than elsewhere?"""
        return self.share is not None and self.elsewhere is not None and self.share - self.elsewhere >= UNLIKE


@dataclass(frozen=True)
class Distinction:
    """A value that tells a cluster from another one."""

    feature: str
    value: Any
    here: float  # probability of the value
    there: float
    weight: float  # Σ_v φ(v) log φ(v) / φ'(v): what an average case of the cluster says for it, by this feature


@dataclass(frozen=True)
class Contrast:
    """The features that tell a cluster best from another one, the most telling first."""

    other: int
    distinctions: tuple[Distinction, ...]


@dataclass(frozen=True)
class Criticism:
    """A member that the prototype explains badly."""

    row: int
    name: str
    membership: float
    agrees: int  # key features on which it agrees with the prototype
    of: int  # key features for which it has a value
    differs: tuple[tuple[str, Any], ...]  # its values where it does not


@dataclass(frozen=True)
class ClusterExplanation(Explanation):
    """What a cluster is: its prototype and the features that matter, in numbers and in words."""

    cluster: int
    size: int  # cases whose main cluster it is
    share: float  # of all memberships
    prototype: Prototype
    features: tuple[FeatureRole, ...]  # in the order of the table
    candidates: tuple[Prototype, ...]  # for prototype, the chosen one first
    contrasts: tuple[Contrast, ...]  # with every other cluster
    criticisms: tuple[Criticism, ...]  # the worst first

    @property
    def key_features(self) -> tuple[FeatureRole, ...]:
        """The features of the subspace; first those whose value is common here and rare elsewhere."""
        return key_features(self.features)

    def __str__(self):
        head = f"Cluster {self.cluster}: {counted(self.size)} like {self.prototype.name}"
        keys = [f"{phrase(f.name, f.value)} ({f.share:.0%}, elsewhere {f.elsewhere:.0%})" for f in self.key_features]
        return f"{head}, which share {listed(keys, 6)}." if keys else f"{head}. No feature is shared by most of them."


@dataclass(frozen=True)
class Membership:
    """How much of a case belongs to a cluster: posterior mean, and the range over draws of the clusters."""

    cluster: int
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Contribution:
    """What one feature of a case says for the first cluster against the second: log φ_s(x) − log φ_t(x)."""

    feature: str
    value: Any
    weight: float


@dataclass(frozen=True)
class Reason:
    """Why here and not there: the weights of all features; their sum is the difference of the log likelihoods."""

    here: int
    there: int
    contributions: tuple[Contribution, ...]  # the weightiest first

    @property
    def total(self) -> float:
        return float(sum(c.weight for c in self.contributions))


@dataclass(frozen=True)
class CaseFeature:
    """One feature of a case, beside the prototype of its main cluster."""

    name: str
    value: Any  # None if missing
    cluster: int | None  # that this cell most probably comes from; None if missing
    cluster_probability: float | None
    prototype: Any
    key: bool  # does the feature matter to the main cluster?
    agrees: bool | None  # with the prototype, by the model's similarity; None if one of the two is missing


@dataclass(frozen=True)
class Neighbour:
    """A case of the fit that is alike on the key features."""

    row: int
    name: str
    agrees: int  # key features with the same value
    of: int


@dataclass(frozen=True)
class CaseExplanation(Explanation):
    """Where a case belongs, and why."""

    cluster: int  # the main one
    prototype: Prototype
    memberships: tuple[Membership, ...]  # the largest first
    features: tuple[CaseFeature, ...]
    reasons: tuple[Reason, ...]  # the main cluster against each other one, the closest first
    neighbours: tuple[Neighbour, ...]

    @property
    def agreement(self) -> tuple[int, int]:
        """Key features on which it agrees with the prototype, and how many could be compared."""
        known = [f.agrees for f in self.features if f.key and f.agrees is not None]
        return sum(known), len(known)

    def __str__(self):
        agrees, of = self.agreement
        first = self.memberships[0]
        words = f"{first.mean:.0%} in cluster {self.cluster} (between {first.low:.0%} and {first.high:.0%}), like "
        words += f"{self.prototype.name}: agrees on {agrees} of {of} key features."
        if self.reasons:
            reason = self.reasons[0]
            best = [phrase(c.feature, c.value) for c in reason.contributions if c.weight > 0][:3]
            if best:
                words += f" Not in cluster {reason.there}, mostly because of {listed(best, 3)}."
        return words


@dataclass(frozen=True)
class PairExplanation(Explanation):
    """How two clusters differ, seen from each."""

    first: int
    second: int
    first_prototype: Prototype
    second_prototype: Prototype
    first_against_second: tuple[Distinction, ...]
    second_against_first: tuple[Distinction, ...]

    def __str__(self):
        sides = []
        for s, found in ((self.first, self.first_against_second), (self.second, self.second_against_first)):
            values = [f"{phrase(d.feature, d.value)} ({d.here:.0%}, not {d.there:.0%})" for d in found]
            sides.append(f"Cluster {s} has more often {listed(values, 4)}.")
        return " ".join(sides)


@dataclass(frozen=True)
class ModelExplanation(Explanation):
    """All clusters, and how far to trust them."""

    n_cases: int
    n_features: int
    missing: float  # share of the cells
    clusters: tuple[ClusterExplanation, ...]
    verdict: str
    converged: bool
    hyperparameters: dict[str, float]  # as set, or the posterior mean if learned
    learned: dict[str, tuple[float, float, float]]  # mean and 90 % interval
    n_clusters_probabilities: dict[str, float] | None
    sweeps: int
    chains: int

    def __str__(self):
        sizes = [counted(self.n_cases), counted(self.n_features, "feature"), counted(len(self.clusters), "cluster")]
        head = f"{', '.join(sizes)}. {self.verdict}"
        return "\n".join([head, *map(str, self.clusters)])


@dataclass(frozen=True)
class KeyAgreement:
    """How many members agree with the prototype on a key feature."""

    name: str
    value: Any  # the prototype's
    agreeing: float  # share of the members that have a value


@dataclass(frozen=True)
class Member:
    """A case of a cluster beside its prototype."""

    row: int
    name: str
    membership: float
    agrees: tuple[bool | None, ...]  # key feature by key feature; None where the case has no value


@dataclass(frozen=True)
class AgreementExplanation(Explanation):
    """Which members of a cluster agree with its prototype, and on what."""

    cluster: int
    size: int
    prototype: Prototype
    features: tuple[KeyAgreement, ...]  # those of the subspace, the most telling first
    members: tuple[Member, ...]  # from those that agree most to those that agree least, evenly chosen if there are many

    def __str__(self):
        if not self.features or not self.members:
            return f"Cluster {self.cluster} has no key features that its members could agree on."
        mean = np.mean([f.agreeing for f in self.features])
        words = (
            f"Members of cluster {self.cluster} agree with {self.prototype.name} on {mean:.0%} of its key features on average"
        )
        best, worst = (pick(self.features, key=lambda f: f.agreeing) for pick in (max, min))
        if best.agreeing == worst.agreeing:
            return f"{words}."
        ends = (f"{phrase(cut(f.name, 60), f.value)} ({f.agreeing:.0%})" for f in (best, worst))
        return f"{words}; most on {', least on '.join(ends)}."


EXPLANATIONS = (ClusterExplanation, CaseExplanation, PairExplanation, ModelExplanation, AgreementExplanation)


# --- making them ----------------------------------------------------------------------------------------------------------


def explain(fitted) -> ModelExplanation:
    """Explain all clusters."""
    data, hyper = fitted.data, fitted.hyper
    given = {name: float(getattr(hyper, name)) for name in ("alpha", "lam", "c")} | {"q": float(hyper.q.mean())}
    chances = fitted.n_clusters_probabilities
    return ModelExplanation(
        n_cases=len(data.x),
        n_features=data.x.shape[1],
        missing=float((data.x < 0).mean()),
        clusters=tuple(explain_cluster(fitted, s) for s in range(fitted.n_clusters)),
        verdict=fitted.diagnostics.verdict,
        converged=fitted.diagnostics.converged,
        hyperparameters=given,
        learned={name: (value.mean, value.low, value.high) for name, value in fitted.hyperparameters.items()},
        n_clusters_probabilities=None if chances is None else {str(k): float(p) for k, p in chances.items()},
        sweeps=fitted.n_sweeps,
        chains=fitted.n_chains,
    )


def explain_cluster(fitted, s) -> ClusterExplanation:
    candidates = tuple(_prototype(fitted, candidate) for candidate in fitted.candidates[s])
    return ClusterExplanation(
        cluster=int(s),
        size=int((fitted.labels == s).sum()),
        share=float(fitted.posterior.memberships[:, s].mean()),
        prototype=candidates[0],
        features=feature_roles(fitted, s),
        candidates=candidates,
        contrasts=tuple(Contrast(t, distinguish(fitted, s, t)) for t in range(fitted.n_clusters) if t != s),
        criticisms=criticise(fitted, s),
    )


def feature_roles(fitted, s) -> tuple[FeatureRole, ...]:
    others = fitted.posterior.memberships.sum(axis=0) * (np.arange(fitted.n_clusters) != s)
    others = others / max(others.sum(), SMALLEST)
    roles = []
    for j, feature in enumerate(fitted.encoding.features):
        own = fitted.prototype_values[s, j]
        chances, elsewhere = fitted.value_probabilities[j][s], others @ fitted.value_probabilities[j]
        v = None if own is None else feature.values.index(own)
        top = int(np.argmax(chances))
        roles.append(
            FeatureRole(
                name=feature.name,
                key=bool(fitted.subspaces[s, j]) and own is not None,
                probability=float(fitted.posterior.omega_prob[s, j]),
                prior=float(fitted.hyper.q[s, j]),
                value=plain(own),
                share=None if v is None else float(chances[v]),
                elsewhere=None if v is None else float(elsewhere[v]),
                typical=plain(feature.values[top]),
                typical_share=float(chances[top]),
                distribution=tuple(zip(map(plain, feature.values), chances.tolist(), elsewhere.tolist(), strict=True)),
            )
        )
    return tuple(roles)


def key_features(roles) -> tuple[FeatureRole, ...]:
    """Those of the subspace; first those whose value is common here and rare elsewhere."""
    return tuple(sorted((f for f in roles if f.key), key=lambda f: -telling(f.share, f.elsewhere)))


def explain_pair(fitted, s, t) -> PairExplanation:
    s, t = check_cluster(fitted, s), check_cluster(fitted, t)
    if s == t:
        raise ParameterError("explain_pair needs two different clusters, not {s} twice.", s=s)
    first, second = (_prototype(fitted, fitted.candidates[k][0]) for k in (s, t))
    return PairExplanation(int(s), int(t), first, second, distinguish(fitted, s, t), distinguish(fitted, t, s))


def telling(here, there) -> float:
    """φ log φ / φ': how much a value that is common here and rare there says."""
    return here * (np.log(max(here, SMALLEST)) - np.log(max(there, SMALLEST)))


def distinguish(fitted, s, t, most=DISTINCTIONS) -> tuple[Distinction, ...]:
    """The features by which an average case of cluster s shows that it is not of cluster t, with their most telling value."""
    features, offset = fitted.encoding.features, fitted.encoding.offset
    here, there = np.maximum(fitted.posterior.values[:, [s, t]].T, SMALLEST)
    weights = here * (np.log(here) - np.log(there))
    total = np.add.reduceat(weights, offset[:-1])
    found = []
    for j in np.argsort(-total, kind="stable")[:most]:
        v = int(np.argmax(weights[offset[j] : offset[j + 1]]))
        at, value = offset[j] + v, plain(features[j].values[v])
        found.append(Distinction(features[j].name, value, float(here[at]), float(there[at]), float(total[j])))
    return tuple(found)


def criticise(fitted, s, most=CRITICISMS) -> tuple[Criticism, ...]:
    """The members with the least log probability on the key features, those that differ from the prototype somewhere."""
    x, keys = fitted.data.x, np.flatnonzero(fitted.subspaces[s])
    rows = np.flatnonzero(fitted.labels == s)
    if not len(keys) or not len(rows):
        return ()
    log_phi = log_values(fitted)
    fit = log_phi[x[rows][:, keys].astype(np.intp) + 1, s].sum(axis=1)
    found: list[Criticism] = []
    for i in rows[np.argsort(fit, kind="stable")]:
        same = agreements(fitted, s, x[i])
        known = [(j, same[j]) for j in keys if same[j] is not None]
        differs = [j for j, agrees in known if not agrees]
        if differs and len(found) < most:
            shown = fitted.encoding.decode(x[i : i + 1])[0]
            found.append(
                Criticism(
                    row=int(i),
                    name=fitted.name_of_case(i),
                    membership=float(fitted.posterior.memberships[i, s]),
                    agrees=len(known) - len(differs),
                    of=len(known),
                    differs=tuple((fitted.encoding.features[j].name, plain(shown[j])) for j in differs),
                )
            )
        if len(found) == most:
            break
    return tuple(found)


def explain_case(fitted, case) -> CaseExplanation:
    """Explain a case of the fit, by its number, or a new one of codes (P,)."""
    encoding = fitted.encoding
    if is_int(case) and not 0 <= case < fitted.n_cases:
        raise ParameterError(
            "There is no case {row}: the model was fitted to {n}, counted from 0.", row=int(case), n=fitted.n_cases
        )
    x = fitted.data.x[case] if is_int(case) else case
    by_draw = memberships_by_draw(fitted, x[None])[:, 0]
    mean = by_draw.mean(axis=0)
    mean = fitted.posterior.memberships[case] if is_int(case) else mean / mean.sum()
    order = np.argsort(-mean, kind="stable")
    s = int(order[0])
    low, high = np.quantile(by_draw, INTERVAL, axis=0)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    shown, same = encoding.decode(x[None])[0], agreements(fitted, s, x)
    phi = np.exp(log_values(fitted))[x.astype(np.intp) + 1]  # (P, S)
    cells = mean * phi
    cells = cells / cells.sum(axis=1, keepdims=True)
    features = []
    for j, feature in enumerate(encoding.features):
        seen = x[j] >= 0
        t = int(np.argmax(cells[j]))
        features.append(
            CaseFeature(
                name=feature.name,
                value=plain(shown[j]),
                cluster=t if seen else None,
                cluster_probability=float(cells[j, t]) if seen else None,
                prototype=plain(fitted.prototype_values[s, j]),
                key=bool(fitted.subspaces[s, j]),
                agrees=same[j],
            )
        )
    return CaseExplanation(
        cluster=s,
        prototype=_prototype(fitted, fitted.candidates[s][0]),
        memberships=tuple(Membership(int(t), float(mean[t]), float(low[t]), float(high[t])) for t in order),
        features=tuple(features),
        reasons=tuple(reason(fitted, x, s, int(t)) for t in order[1:]),
        neighbours=neighbours(fitted, x, s),
    )


def explain_agreement(fitted, s, most=MEMBERS) -> AgreementExplanation:
    s = check_cluster(fitted, s)
    roles = key_features(feature_roles(fitted, s))
    x, rows = fitted.data.x, np.flatnonzero(fitted.labels == s)
    place = {feature.name: j for j, feature in enumerate(fitted.encoding.features)}
    keys = [place[f.name] for f in roles]
    same = np.stack([agreeing(fitted, s, j, x[rows, j]) for j in keys], axis=1) if keys else np.zeros((len(rows), 0))
    seen = (x[rows][:, keys] >= 0) if keys else np.zeros((len(rows), 0), dtype=bool)
    order = np.argsort(-same.sum(axis=1), kind="stable")
    chosen = (
        order[np.unique(np.linspace(0, len(order) - 1, min(most, len(order))).round().astype(int))] if len(order) else order
    )
    return AgreementExplanation(
        cluster=int(s),
        size=len(rows),
        prototype=_prototype(fitted, fitted.candidates[s][0]),
        features=tuple(
            KeyAgreement(f.name, f.value, float(same[:, k].sum() / max(seen[:, k].sum(), 1))) for k, f in enumerate(roles)
        ),
        members=tuple(
            Member(
                row=int(rows[i]),
                name=fitted.name_of_case(rows[i]),
                membership=float(fitted.posterior.memberships[rows[i], s]),
                agrees=tuple(bool(a) if b else None for a, b in zip(same[i], seen[i], strict=True)),
            )
            for i in chosen
        ),
    )


def reason(fitted, x, s, t) -> Reason:
    """log φ_s(x_j) − log φ_t(x_j) for every observed feature j."""
    log_phi = log_values(fitted)[x.astype(np.intp) + 1]
    shown = fitted.encoding.decode(x[None])[0]
    parts = [
        Contribution(feature.name, plain(shown[j]), float(log_phi[j, s] - log_phi[j, t]))
        for j, feature in enumerate(fitted.encoding.features)
        if x[j] >= 0
    ]
    return Reason(int(s), int(t), tuple(sorted(parts, key=lambda c: -abs(c.weight))))


def neighbours(fitted, x, s, most=NEIGHBOURS) -> tuple[Neighbour, ...]:
    """The cases of the fit that share most values with x on the key features of cluster s, all features if there is no key."""
    cases = fitted.data.x
    keys = np.flatnonzero(fitted.subspaces[s] & (x >= 0))
    keys = keys if len(keys) else np.flatnonzero(x >= 0)
    same = (cases[:, keys] == x[keys]).sum(axis=1)
    everywhere = (cases == x).sum(axis=1)  # among equals on the key features, the most alike
    rows = np.lexsort((-everywhere, -same))[:most]
    return tuple(Neighbour(int(i), fitted.name_of_case(i), int(same[i]), len(keys)) for i in rows)


def agreeing(fitted, s, j, codes) -> np.ndarray:
    """Which codes of feature j agree with the prototype of cluster s? Missing ones do not."""
    book, u = fitted.data.book, fitted.data.candidates[fitted.prototypes[s], j]
    return np.isin(codes, book.k_idx[book.k_ptr[u] : book.k_ptr[u + 1]]) & (codes >= 0)


def agreements(fitted, s, x) -> list[bool | None]:
    """Does a case with codes x agree with the prototype of cluster s, feature by feature? None where one has no value."""
    book, prototype = fitted.data.book, fitted.data.candidates[fitted.prototypes[s]]
    return [
        None if u < 0 or v < 0 else bool(v in book.k_idx[book.k_ptr[u] : book.k_ptr[u + 1]])
        for u, v in zip(prototype.tolist(), x.tolist(), strict=True)
    ]


def log_values(fitted) -> np.ndarray:
    """log φ, (ΣV + 1, S), value v at v + 1; a missing cell is at 0 and says nothing."""
    values = np.maximum(fitted.posterior.values, SMALLEST)
    return np.vstack([np.zeros(values.shape[1]), np.log(values)])


def _prototype(fitted, candidate):
    return Prototype(candidate.row, fitted.name_of(candidate.row), float(candidate.probability), tuple(candidate.ties))


def check_cluster(fitted, s) -> int:
    if not is_int(s) or not 0 <= s < fitted.n_clusters:
        raise ParameterError("There is no cluster {s!r}: the model has {n}, counted from 0.", s=s, n=fitted.n_clusters)
    return int(s)


# --- words ----------------------------------------------------------------------------------------------------------------


def show(value) -> str:
    """A value in a sentence."""
    if value is None:
        return "missing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def phrase(name, value) -> str:
    """A feature and its value: "onion", "no onion", "coat = long"."""
    return name if value is True else f"no {name}" if value is False else f"{name} = {show(value)}"


def clean(words) -> str:
    """One line that can be drawn and written, whatever was in it."""
    words = " ".join(str(words).split()).encode("utf-8", "replace").decode()
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in words)


def cut(words, most) -> str:
    """At most so many letters."""
    words = clean(words)
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def counted(n, what="case") -> str:
    if what == "person" and n != 1:
        return f"{n:,} people"
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def listed(words, most) -> str:
    """ "a, b and c"; what is beyond `most` is counted."""
    words = list(words)
    more = len(words) - most
    words = words[:most] + ([f"{more} more"] if more > 0 else [])
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def as_set(roles) -> bool:
    """Is the table one of present and absent features, such as ingredients or words?"""
    return all(value in (0, 1) for role in roles for value, _, _ in role.distribution)
