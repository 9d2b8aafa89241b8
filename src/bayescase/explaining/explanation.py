"""Explanations: what a cluster is, why a case is in it, and how two clusters differ. Everything that shows anything uses these.

All are frozen dataclasses of words and numbers; `to_json` and `from_json` turn them into plain JSON and back. Shares are
counted: of the cases whose main cluster it is, and that have a value for the feature, so many have this value.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from ..reading.columns import lacks
from .overall import DifferencesExplanation, TreeExplanation
from .parts import (
    Card,
    CaseFeature,
    Contrast,
    Criticism,
    Distinction,
    FeatureRole,
    KeyAgreement,
    Member,
    Membership,
    Neighbour,
    Prototype,
    Reason,
    SharedValue,
    Side,
    as_set,
    most_telling,
)
from .records import Explanation
from .words import any_of, clean, cluster_title, counted, cut, listed, percent, phrase

FLAT = 0.25  # of a prototype that is less probable, it is said which others are nearly as probable
SHOWN = 8  # distinctions that are printed
RARE = 3  # rare ones that are printed
__all__ = [
    "AgreementExplanation",
    "CaseExplanation",
    "ClusterExplanation",
    "DifferencesExplanation",
    "Explanation",
    "ModelExplanation",
    "PairExplanation",
    "TreeExplanation",
]
KEY = (
    "like: the prototype, a case that stands for its cluster, and how probably it is the best one to do so. "
    "“key”: how probable it is that the cluster takes after its prototype in this, * if above 50%; what many cases have "
    "need not be key."
)


@dataclass(frozen=True)
class ClusterExplanation(Explanation):
    """What a cluster is: its prototype and what sets it apart, in numbers and in words.

    Attributes
    ----------
    cluster : int
        Its number.
    name : str
        Given by a person, or made of what sets it apart.
    named : bool
        Did a person give it?
    size, n_cases : int
        Cases whose main cluster it is, and all cases.
    share : float
        Of all memberships.
    prototype : Prototype
        The case that stands for it.
    candidates : tuple of Prototype
        It, and after it the other members that could stand for the cluster, the most probable first.
    more_often : tuple of Distinction
        What the cluster has more often than the others, the most telling first.
    rare : tuple of Distinction
        What most others have and few cases here, the most telling first.
    features : tuple of FeatureRole
        In the order of the table; of a bag the items that the prototype has or that tell something.
    unsaid : int
        Features of the subspace that are no key features: they are absent here as they are elsewhere.
    contrasts : tuple of Contrast
        With every other cluster that has cases; the 20 most alike if there are more.
    criticisms : tuple of Criticism
        Members that the prototype explains badly, the worst first.
    alone : bool
        Is it the only cluster that has cases?
    """

    cluster: int
    name: str
    named: bool
    size: int
    n_cases: int
    share: float
    prototype: Prototype
    candidates: tuple[Prototype, ...]
    more_often: tuple[Distinction, ...]
    rare: tuple[Distinction, ...]
    features: tuple[FeatureRole, ...]
    unsaid: int
    contrasts: tuple[Contrast, ...]
    criticisms: tuple[Criticism, ...]
    alone: bool = False

    @property
    def title(self) -> str:
        """ "Cluster 3: pasta, parmesan"."""
        return f"Cluster {self.cluster}: {self.name}" if self.name else f"Cluster {self.cluster}"

    @property
    def key_features(self) -> tuple[FeatureRole, ...]:
        """The key features, the most telling first."""
        return most_telling(tuple(f for f in self.features if f.key))

    @property
    def stand_ins(self) -> tuple[Prototype, ...]:
        """The prototype, and up to two other members that would do as well.

        These are at least half as probable, where the prototype has less than a quarter of the probability, or more probable.
        """
        shown = self.prototype.probability
        others = [c for c in self.candidates if c.row != self.prototype.row]
        near = [c for c in others if c.probability > shown or 2 * c.probability >= shown < FLAT]
        return (self.prototype, *near[:2])

    @property
    def like(self) -> str:
        """Which case stands for it, and how probable that is."""
        if others := self.stand_ins[1:]:
            return f"like {self.prototype}; {any_of([*map(str, others)])} would do as well"
        if not self.prototype.member:
            return f"like {self.prototype}, which is not a member"
        return f"like {self.prototype}" + ("" if self.prototype.probability else ", its most typical member; no draw chose one")

    @property
    def sentence(self) -> str:
        """The cluster in a sentence: "Cluster 0: 20 cases like Amatriciana (38%), known by pasta, parmesan and olive oil."."""
        others = len(self.stand_ins) - 1
        note = "" if self.prototype.member else "; not a member"
        note = f"; {'another' if others == 1 else 'others'} would do as well" if others else note
        head = f"Cluster {self.cluster}, {self.name}" if self.named and self.name else f"Cluster {self.cluster}"
        told = [d.words for d in self.more_often if not d.lacks] or [d.words for d in self.more_often]
        known = f", known by {listed(told[:3], 3)}" if told else ""
        return f"{head}: {counted(self.size)} like {self.prototype.short} ({percent(self.prototype.probability)}{note}){known}."

    def card(self, most: int = SHOWN) -> Card:
        """What is shown of it.

        Parameters
        ----------
        most : int, default=8
            Distinctions shown; the rest are counted. Where there are fewer, other key features that the prototype has follow.

        Returns
        -------
        Card
        """
        present = most_telling(tuple(f for f in self.features if f.value)) if as_set(self.features) else ()
        has, told = self.more_often[:most], {d.feature for d in self.more_often if d.like_prototype}
        others = [f.as_distinction for f in self.key_features if not f.lacks and f.value is not None and f.name not in told]
        shared = tuple(others[: most - len(has)])
        return Card(
            cluster=self.cluster,
            title=self.title,
            size=f"{self.size:,} of {counted(self.n_cases)}",
            like=self.like,
            has=has,
            shared=shared,
            more=len(others) - len(shared) if shared else len(self.more_often) - len(has),
            rare=self.rare[:RARE],
            items=tuple((f.name, f.key) for f in sorted(present, key=lambda f: not f.key)),
            alone=self.alone,
        )

    def __str__(self) -> str:
        return str(self.card())


@dataclass(frozen=True)
class ModelExplanation(Explanation):
    """All clusters, and how far to trust them.

    Attributes
    ----------
    n_cases, n_features : int
        Sizes of the table; features with one value per case.
    bags : dict
        Name of each bag, and how many items it has.
    missing : float
        Share of the cells that are missing.
    clusters : tuple of ClusterExplanation
        Those that are the main one of a case, by their numbers.
    n_unused : int
        How many others there are.
    values : tuple of SharedValue
        What sets the clusters apart: in turn the most telling values of each.
    verdict, advice : str
        What `diagnostics_` says.
    converged, sound : bool
        The same.
    hyperparameters : dict
        As set, or the posterior mean if learned.
    learned : dict
        Mean and 90 % interval of those that were learned.
    n_clusters_probabilities : dict or None
        Of each number of clusters, if it was to be found.
    sweeps, chains : int
        Length and number of the chains.
    capped : bool
        Was the number of clusters to be found, and all that were allowed are in use?
    folded_from : int or None
        How many clusters the fit has, if this tells them as fewer.
    n_empty : int
        Cases without any value: nothing says where they belong, so no cluster counts them.
    """

    n_cases: int
    n_features: int
    bags: dict[str, int]
    missing: float
    clusters: tuple[ClusterExplanation, ...]
    n_unused: int
    values: tuple[SharedValue, ...]
    verdict: str
    advice: str
    converged: bool
    sound: bool
    hyperparameters: dict[str, float]
    learned: dict[str, tuple[float, float, float]]
    n_clusters_probabilities: dict[str, float] | None
    sweeps: int
    chains: int
    capped: bool = False
    folded_from: int | None = None
    n_empty: int = 0

    @property
    def summary(self) -> str:
        """The sizes in a sentence."""
        features = [counted(self.n_features, "feature")] if self.n_features or not self.bags else []
        bags = [counted(n, "item") + (f" in {clean(name)}" if name != "items" else "") for name, n in self.bags.items()]
        sizes = [counted(self.n_cases), *features, *bags, counted(len(self.clusters), "cluster")]
        unused = f"; {counted(self.n_unused, 'more cluster')} {'is' if self.n_unused == 1 else 'are'} the main one of no case"
        most = ", as many as were allowed" if self.capped else ""
        if self.folded_from is not None:
            most = f", folded from {self.folded_from}{most}"
        empty = f"; {counted(self.n_empty)} without any value {'is' if self.n_empty == 1 else 'are'} not counted"
        return f"{', '.join(sizes)}{most}{unused if self.n_unused else ''}{empty if self.n_empty else ''}."

    def telling_values(self, most: int) -> tuple[SharedValue, ...]:
        """What sets the clusters apart, cluster by cluster, the most telling first.

        Parameters
        ----------
        most : int
            Values in all; every cluster has its turn.

        Returns
        -------
        tuple of SharedValue
        """
        place = {cluster.cluster: k for k, cluster in enumerate(self.clusters)}
        return tuple(sorted(self.values[:most], key=lambda value: (place[value.cluster], -value.bits)))

    def cluster(self, number: int) -> ClusterExplanation:
        """The explanation of a cluster by its number.

        Parameters
        ----------
        number : int

        Returns
        -------
        ClusterExplanation

        Raises
        ------
        KeyError
            If it is the main cluster of no case.
        """
        return {cluster.cluster: cluster for cluster in self.clusters}[number]

    def __str__(self) -> str:
        return "\n\n".join([f"{self.summary}\n{self.verdict}", *map(str, self.clusters), KEY])


@dataclass(frozen=True)
class CaseExplanation(Explanation):
    """Where a case belongs, and why.

    Attributes
    ----------
    name : str or None
        Of a case of the fit.
    cluster : int
        The main one.
    prototype : Prototype
        Of the main cluster.
    memberships : tuple of Membership
        The largest first.
    features : tuple of CaseFeature
        In the order of the table.
    reasons : tuple of Reason
        The main cluster against each other one that has cases, the closest first.
    neighbours : tuple of Neighbour
        Cases of the fit that are most alike.
    """

    name: str | None
    cluster: int
    prototype: Prototype
    memberships: tuple[Membership, ...]
    features: tuple[CaseFeature, ...]
    reasons: tuple[Reason, ...]
    neighbours: tuple[Neighbour, ...]

    @property
    def agreement(self) -> tuple[int, int]:
        """Key features on which it agrees with the prototype, and how many could be compared."""
        known = [f.agrees for f in self.features if f.key and f.agrees is not None]
        return sum(known), len(known)

    @property
    def is_empty(self) -> bool:
        """Has it no value, or none that the model knows? Then nothing says where it belongs."""
        return all(f.cluster is None for f in self.features)

    def title_of(self, cluster: int) -> str:
        """ "cluster 3 (pasta, parmesan)"."""
        return cluster_title(cluster, next((m.name for m in self.memberships if m.cluster == cluster), ""))

    def __str__(self) -> str:
        agrees, of = self.agreement
        first = self.memberships[0]
        words, mean, low, high = (
            f"{cut(self.name, 100)}: " if self.name else "",
            *map(percent, (first.mean, first.low, first.high)),
        )
        if self.is_empty:
            words += "no value that the model knows, so nothing says where it belongs; as any such case it is "
            return f"{words}{mean} in {self.title_of(self.cluster)}."
        words += f"{mean} in {self.title_of(self.cluster)}" + ("." if low == high else f", between {low} and {high}.")
        words += f" Like {self.prototype}" + (f": agrees on {agrees} of {counted(of, 'key feature')}." if of else ".")
        if because := self.because:
            words += f" Not in {self.title_of(self.reasons[0].there)}, {because}."
        return words

    @property
    def because(self) -> str:
        """What of the case speaks most for its main cluster against the next one: "mostly because of ice, rum and mint".

        What it lacks is not named. "" if nothing speaks for it.
        """
        speaks = [c for c in self.reasons[0].contributions if c.weight > 0] if self.reasons else []
        has = sorted((c for c in speaks if c.value is not False), key=lambda c: lacks(c.value))
        if not has:
            return "because of what it lacks" if speaks else ""
        how = "mostly" if 2 * sum(c.weight for c in has) >= sum(c.weight for c in speaks) else "partly"
        return f"{how} because of {listed([phrase(c.feature, c.value) for c in has][:3], 3)}"


@dataclass(frozen=True)
class PairExplanation(Explanation):
    """How two clusters differ, seen from each; `scope` says of which cases the shares are, if not of all."""

    first: Side
    second: Side
    scope: str = ""

    def __str__(self) -> str:
        sides = []
        for side in (self.first, self.second):
            values = [f"{d.words} ({percent(d.here)} against {percent(d.there)})" for d in side.more_often]
            sides.append(f"More often in {side.title}: {listed(values, 4) if values else 'nothing for certain'}.")
        return " ".join([*sides, self.scope]).rstrip()


@dataclass(frozen=True)
class AgreementExplanation(Explanation):
    """Which members of a cluster agree with its prototype, and on what.

    Attributes
    ----------
    cluster : int
        Its number.
    name : str
        Its name.
    size : int
        Cases whose main cluster it is.
    prototype : Prototype
        The case that stands for it.
    features : tuple of KeyAgreement
        The key features, the most telling first.
    members : tuple of Member
        From those that agree most to those that agree least, evenly chosen if there are many.
    scope : str
        Of which cases the sizes are, if not of all: a sentence.
    """

    cluster: int
    name: str
    size: int
    prototype: Prototype
    features: tuple[KeyAgreement, ...]
    members: tuple[Member, ...]
    scope: str = ""

    def __str__(self) -> str:
        return f"{self.sentence} {self.scope}".rstrip()

    @property
    def title(self) -> str:
        """ "cluster 3 (pasta, parmesan)"."""
        return cluster_title(self.cluster, self.name)

    @property
    def sentence(self) -> str:
        """How much they agree."""
        if not self.features or not self.members:
            return f"C{self.title[1:]} has no key features that its members could agree on."
        mean = fmean(f.agreeing for f in self.features)
        words = f"Members of {self.title} agree with {self.prototype} on {percent(mean)} of its key features"
        there = [f for f in self.features if f.value is not False] or self.features
        best, worst = (pick(there, key=lambda f: f.agreeing) for pick in (max, min))
        if best.agreeing == worst.agreeing:
            return f"{words}."
        ends = (f"{phrase(cut(f.name, 60), f.value)} ({percent(f.agreeing)})" for f in (best, worst))
        return f"{words} on average; most on {', least on '.join(ends)}."
