"""What explanations consist of: prototypes, distinctions, the roles of features, memberships, and the card of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from math import expm1
from typing import Any

from ..reading.columns import lacks
from .words import cluster_title, cut, percent, phrase


@dataclass(frozen=True)
class Prototype:
    """A case that stands, or might stand, for a cluster.

    Attributes
    ----------
    row : int
        Of the catalogue.
    name : str
        Its name.
    probability : float
        Posterior probability that it, or a case with the same values, is the prototype.
    ties : tuple of int
        Rows with the same values, itself among them.
    member : bool
        Is the cluster its main one? False only if no member may be chosen.
    """

    row: int
    name: str
    probability: float
    ties: tuple[int, ...]
    member: bool

    @property
    def short(self) -> str:
        """Its name in a sentence: one line, cut if it is long, as a text is."""
        return cut(self.name, 100)

    @property
    def sure(self) -> str:
        """ "(27%)": how probable it is, which stands wherever it is named."""
        return f"({percent(self.probability)})"

    def __str__(self) -> str:
        return f"{self.short} {self.sure}"


@dataclass(frozen=True)
class Distinction:
    """Values of a feature that set the cases of a cluster apart from others.

    Attributes
    ----------
    feature : str
        Name of the feature.
    values : tuple
        The values; of an item that is present or not, True.
    words : str
        The feature and its values in words: "onion", "coat = long or curly".
    here, there : float
        Share of the cluster's cases that have one of the values, and of the others; `there` is None if there are none.
    bits : float
        How telling that is, from 0 to 1 (`bayescase.explaining.telling`).
    like_prototype : bool
        Does the shown prototype have one of the values? For something that is rare here: does it lack it?
    probability : float
        Posterior probability that it is key: that the feature belongs to the subspace, and the prototype is like that.
    key : bool
        Is that above one half?
    """

    feature: str
    values: tuple[Any, ...]
    words: str
    here: float
    there: float | None
    bits: float
    like_prototype: bool
    probability: float
    key: bool

    @property
    def lacks(self) -> bool:
        """Do all of the values say that nothing is there?"""
        return all(map(lacks, self.values))

    @property
    def shares(self) -> str:
        """ "98%, elsewhere 3%"."""
        return percent(self.here) + ("" if self.there is None else f", elsewhere {percent(self.there)}")

    @property
    def role(self) -> str:
        """ "key 97%"; "" where it cannot be, such as for an absent item."""
        return f"key {percent(self.probability)}" if self.probability else ""


@dataclass(frozen=True)
class FeatureRole:
    """What a feature, or an item of a bag, means to a cluster.

    Attributes
    ----------
    name : str
        Name of the feature, or the item.
    column : int
        Its place in `subspaces_`.
    key : bool
        Is it a key feature? Cases copy the prototype's value with a probability above one half; that something is absent
        counts only where it sets the cluster apart.
    probability : float
        Posterior probability that it is key: that the feature belongs to the subspace, and the prototype has this value.
    subspace_probability : float
        Posterior probability that the feature belongs to the subspace, whatever the prototype.
    prior : float
        The same before the data were seen.
    value : object
        The prototype's; None if it has none, True for an item of a bag.
    share, elsewhere : float or None
        Share of the cluster's cases with this value, and of all others.
    bits : float
        How telling the feature is; 0 if it is not.
    typical : object
        The most common value in the cluster.
    typical_share : float
        Its share.
    distribution : tuple of (value, share, elsewhere)
        Every value.
    """

    name: str
    column: int
    key: bool
    probability: float
    subspace_probability: float
    prior: float
    value: Any
    share: float | None
    elsewhere: float | None
    bits: float
    typical: Any
    typical_share: float
    distribution: tuple[tuple[Any, float, float | None], ...]

    @property
    def words(self) -> str:
        """The feature and the prototype's value."""
        return phrase(self.name, self.value)

    @property
    def lacks(self) -> bool:
        """Does the prototype's value say that nothing is there?"""
        return lacks(self.value)

    @property
    def as_distinction(self) -> Distinction:
        """The prototype's value with its shares."""
        share, elsewhere = self.share or 0.0, self.elsewhere
        return Distinction(self.name, (self.value,), self.words, share, elsewhere, self.bits, True, self.probability, self.key)

    @property
    def sets_apart(self) -> bool:
        """Is the prototype's value more common here, in a feature that sets the cluster apart?"""
        return self.bits > 0 and self.share is not None and self.share > (self.elsewhere or 0.0)


def most_telling(roles: tuple[FeatureRole, ...]) -> tuple[FeatureRole, ...]:
    """Sorted: the most telling first, then those whose value is more common here than elsewhere; what is lacking last."""
    return tuple(sorted(roles, key=lambda f: (f.lacks, -f.bits, (f.elsewhere or 0.0) - (f.share or 0.0))))


def as_set(roles: tuple[FeatureRole, ...]) -> bool:
    """Is the table one of present and absent features, such as ingredients or words?"""
    return all(value in (0, 1) for role in roles for value, _, _ in role.distribution)


@dataclass(frozen=True)
class Contrast:
    """What tells a cluster from another one, the most telling first."""

    other: int
    name: str
    distinctions: tuple[Distinction, ...]


@dataclass(frozen=True)
class Criticism:
    """A member that the prototype explains badly.

    Attributes
    ----------
    row : int
        Of the cases.
    name : str
        Its name.
    membership : float
        How much of it belongs to the cluster.
    agrees, of : int
        On how many of the key features that it has a value for it agrees with the prototype.
    differs : tuple of (feature, value)
        Its values where it does not, the most telling features first.
    """

    row: int
    name: str
    membership: float
    agrees: int
    of: int
    differs: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class SharedValue:
    """Values of a feature that set a cluster apart, and how common they are in every cluster that has cases.

    Attributes
    ----------
    cluster : int
        The cluster that they set apart.
    feature, words : str
        Name of the feature; it and the values in words.
    bits : float
        How telling they are.
    shares : tuple of float
        Share of the cases of each cluster, as the clusters are explained.
    keys : tuple of bool
        For each cluster, is it a key feature there, as on its card?
    """

    cluster: int
    feature: str
    words: str
    bits: float
    shares: tuple[float, ...]
    keys: tuple[bool, ...]


@dataclass(frozen=True)
class TreeNode:
    """A cluster, or clusters that are told as one.

    Attributes
    ----------
    node : int
        Its number: that of the cluster; joins go on from there, in the order in which they are made.
    clusters : tuple of int
        The clusters below it.
    name : str
        Given by a person, or made of what sets it apart from all other cases.
    size : int
        Cases whose main cluster is one of these.
    prototype : Prototype or None
        The case that stands for it; None if it has no cases.
    has : tuple of Distinction
        What sets it apart, the most telling first.
    parts : tuple of int
        The two nodes that it joins; empty for a cluster.
    together : tuple of str
        Two features, or items, that may go together in it, as they do in the two; empty if that does not help.
    loss : float
        What joining the two takes from the mean log probability of their cases, left out; below 0 if it adds something.
    error : float
        Standard error of that, over cases.
    cost : float
        What all joins in it take, per case of it, or those in a node above it if that is less; joins are in its order.
    """

    node: int
    clusters: tuple[int, ...]
    name: str
    size: int
    prototype: Prototype | None
    has: tuple[Distinction, ...]
    parts: tuple[int, ...]
    together: tuple[str, ...]
    loss: float
    error: float
    cost: float

    @property
    def less_probable(self) -> float:
        """By which share its cases are less probable than if its clusters were told apart."""
        return -expm1(-self.cost)

    @property
    def title(self) -> str:
        """ "cluster 3: pasta", "3 clusters: pasta"."""
        what = f"cluster {self.node}" if len(self.clusters) == 1 else f"{len(self.clusters)} clusters"
        return f"{what}: {self.name}" if self.name else what


@dataclass(frozen=True)
class Membership:
    """How much of a case belongs to a cluster: posterior mean, and the range over draws of the clusters."""

    cluster: int
    name: str
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
        """The sum of the weights."""
        return float(sum(c.weight for c in self.contributions))


@dataclass(frozen=True)
class CaseFeature:
    """One feature of a case, beside the prototype of its main cluster.

    Attributes
    ----------
    name : str
        Name of the feature.
    value : object
        The case's; None if missing.
    cluster : int or None
        That this cell most probably comes from; None if missing.
    cluster_probability : float or None
        How probable that is.
    prototype : object
        The prototype's value.
    key : bool
        Is it a key feature of the main cluster?
    agrees : bool or None
        With the prototype, by the model's similarity; None if one of the two has no value.
    """

    name: str
    value: Any
    cluster: int | None
    cluster_probability: float | None
    prototype: Any
    key: bool
    agrees: bool | None


@dataclass(frozen=True)
class Neighbour:
    """A case of the fit that is alike on the key features."""

    row: int
    name: str
    agrees: int  # key features with the same value
    of: int


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
class Side:
    """One of two clusters that are compared: what it has more often than the other."""

    cluster: int
    name: str
    prototype: Prototype
    more_often: tuple[Distinction, ...]

    @property
    def title(self) -> str:
        """ "cluster 3 (pasta, parmesan)"."""
        return cluster_title(self.cluster, self.name)


@dataclass(frozen=True)
class Card:
    """What is shown of a cluster, wherever it is shown: terminal, pipe, plot, report, notebook.

    Attributes
    ----------
    cluster : int
        Its number.
    title, size, like : str
        Its name, its cases, and which case stands for it, in words.
    has : tuple of Distinction
        What it has more often than the others, the most telling first.
    shared : tuple of Distinction
        Other key features that the prototype has: they may be as common elsewhere.
    more : int
        How many of these are left out; of `has` if there are none of these.
    rare : tuple of Distinction
        What is rare here and common elsewhere.
    items : tuple of (name, key)
        Of a table of present and absent features what the prototype has, key features and the most telling first; else ().
    alone : bool
        Is it the only cluster that has cases? Then `has` are its key features.
    """

    cluster: int
    title: str
    size: str
    like: str
    has: tuple[Distinction, ...]
    shared: tuple[Distinction, ...]
    more: int
    rare: tuple[Distinction, ...]
    items: tuple[tuple[str, bool], ...]
    alone: bool = False

    @property
    def heading(self) -> str:
        """What stands above `has`."""
        return "key features, as there is no other cluster:" if self.alone else "more often than elsewhere:"

    @property
    def nothing(self) -> str:
        """What stands in place of `has` and `rare` if there are none; else ""."""
        if self.has or self.rare:
            return ""
        return "there is no other cluster to set it apart from" if self.alone else "nothing sets it apart for certain"

    @property
    def sections(self) -> tuple[tuple[str, tuple[Distinction, ...], int], ...]:
        """(heading, distinctions, how many more there are): what it has more often, what else is key, what is rare in it."""
        found = (
            (self.heading, self.has, 0 if self.shared else self.more),
            ("also key, if less telling:", self.shared, self.more),
            ("less often:", self.rare, 0),
        )
        return tuple(section for section in found if section[1])

    def __str__(self) -> str:
        wide = max((len(cut(d.words, 44)) for _, found, _ in self.sections for d in found), default=0)
        lines = [self.title, f"  {self.size}, {self.like}", *([f"  {self.nothing}"] if self.nothing else [])]
        for words, found, more in self.sections:
            lines.append(f"  {words}")
            for d in found:
                elsewhere = "" if d.there is None else f", elsewhere {percent(d.there):>4}"
                role = f"; {d.role}" if d.role else ""
                lines.append(f"  {'*' if d.key else ' '} {cut(d.words, 44):{wide}}  {percent(d.here):>4}{elsewhere}{role}")
            lines += [f"    and {more} more"] if more else []
        return "\n".join(lines)
