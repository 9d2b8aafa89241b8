"""Explanations of all clusters together: which may be told as one, and where chains differ."""

from __future__ import annotations

from dataclasses import dataclass

from .parts import TreeNode
from .records import Explanation
from .words import cluster_title, counted, cut, listed, percent

ALL = 0.9  # from this share on, nearly all
CASES, FLOWS = 20, 5  # that are printed


@dataclass(frozen=True)
class TreeExplanation(Explanation):
    """Which clusters may be told as one: joined again and again, where the probability of left-out cases loses least.

    Attributes
    ----------
    n_cases, n_clusters : int
        How many cases and clusters there are.
    nodes : tuple of TreeNode
        The clusters by their numbers, then the joins, from the smallest cost to the largest. The last one is all cases.
    tolerance : float
        Clusters count as one if that makes their cases less probable by no more than this share; that two features go together
        in them does not count.
    number : int
        How many there are then.
    scope : str
        Of which cases the sizes are, if not of all: a sentence.
    """

    n_cases: int
    n_clusters: int
    nodes: tuple[TreeNode, ...]
    tolerance: float
    number: int
    scope: str = ""

    @property
    def joins(self) -> tuple[TreeNode, ...]:
        """From the smallest cost to the largest."""
        return self.nodes[self.n_clusters :]

    def groups(self, k: int) -> tuple[TreeNode, ...]:
        """The nodes that there are with k clusters, from large to small.

        Parameters
        ----------
        k : int
            From 1 to the number of clusters.

        Returns
        -------
        tuple of TreeNode
        """
        made = self.nodes[: 2 * self.n_clusters - k]
        inside = {part for node in made for part in node.parts}
        return tuple(sorted((node for node in made if node.node not in inside), key=lambda node: (-node.size, node.node)))

    @property
    def sentence(self) -> str:
        """How many clusters there are if small differences do not count."""
        if self.n_clusters == 1:
            return "There is only one cluster, so there is nothing to fold."
        less = f"become less probable by no more than {percent(self.tolerance)}"
        if self.number == self.n_clusters:
            more = f"become less probable by more than {percent(self.tolerance)}"
            return f"Told as one, the cases of any two clusters {more}: there are {counted(self.n_clusters, 'cluster')}."
        fewer = f"{counted(self.n_clusters, 'cluster')} can be told as {self.number}"
        return f"{fewer}: joined, their cases {less}, how features go together aside."

    def __str__(self) -> str:
        lines = [self.sentence, *(["", "clusters  less probable  joined"] if self.joins else [])]
        for k, node in zip(range(self.n_clusters - 1, 0, -1), self.joins, strict=True):
            a, b = (cut(self.nodes[part].title, 40) for part in node.parts)
            mark = "*" if k == self.number else " "
            lines.append(f"{mark}{k:7d}  {percent(node.less_probable):>13}  {a} + {b}, {like_of(node)}")
        return "\n".join([*lines, *([self.scope] if self.scope else [])])


def like_of(node: TreeNode) -> str:
    """How large it is, and which case stands for it."""
    return counted(node.size) + ("" if node.prototype is None else f" like {node.prototype}")


# --- where chains differ ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClusterInChains:
    """A cluster, and how much of it each chain found.

    Attributes
    ----------
    cluster : int
        Its number.
    name : str
        Its name.
    size : int
        Cases whose main cluster it is.
    same : bool
        Is it the same in all chains?
    alike : tuple of float
        For each chain, the cases that are in it there and here over those that are in it there or here; 0 if the chain has no
        such cluster.
    """

    cluster: int
    name: str
    size: int
    same: bool
    alike: tuple[float, ...]


@dataclass(frozen=True)
class MovingCase:
    """A case that is not in the same cluster in all chains.

    Attributes
    ----------
    row : int
        Of the table.
    name : str
        Its name.
    cluster : int
        Its main cluster, as it is shown.
    chains : tuple of int or None
        Its main cluster in each chain; None if that is none of those that are shown.
    """

    row: int
    name: str
    cluster: int
    chains: tuple[int | None, ...]


@dataclass(frozen=True)
class Flow:
    """Cases of a cluster that are together in another clustering.

    Attributes
    ----------
    cluster : int
        Where they are shown.
    to : int or None
        Which cluster it is there; None if it is none of those shown.
    part : int
        Which of all clusters there, those shown first.
    size : int
        How many cases.
    """

    cluster: int
    to: int | None
    part: int
    size: int


@dataclass(frozen=True)
class Way:
    """Another way to cluster the cases, which some chains found.

    Attributes
    ----------
    chains : tuple of int
        Which chains, the one that is told first.
    lower : float
        By how much its mean log joint is lower than that of the chains that are shown.
    flows : tuple of Flow
        Where the cases of each cluster are.
    """

    chains: tuple[int, ...]
    lower: float
    flows: tuple[Flow, ...]

    @property
    def title(self) -> str:
        """ "Chains 1 and 3 (less probable)"."""
        which = f"Chain {self.chains[0]}" if len(self.chains) == 1 else f"Chains {listed(map(str, self.chains), 8)}"
        return f"{which} ({'less' if self.lower >= 0.5 else 'as'} probable)"


@dataclass(frozen=True)
class DifferencesExplanation(Explanation):
    """Where the chains differ: which clusters all of them found, and which cases are in one or another.

    Attributes
    ----------
    n_cases, n_chains : int
        How many cases have a value, and how many chains there are.
    shown : tuple of int
        The chains that found the clusters that are shown.
    clusters : tuple of ClusterInChains
        The clusters that have cases.
    cases : tuple of MovingCase
        Those that are not in the same cluster in all chains, by their clusters.
    ways : tuple of Way
        What the other chains found, the most probable first.
    scope : str
        Of which cases the sizes are, if not of all: a sentence.
    """

    n_cases: int
    n_chains: int
    shown: tuple[int, ...]
    clusters: tuple[ClusterInChains, ...]
    cases: tuple[MovingCase, ...]
    ways: tuple[Way, ...]
    scope: str = ""

    @property
    def sentence(self) -> str:
        """Which clusters are certain, and how many cases could as well be in another one."""
        if self.n_chains == 1:
            return "One chain alone found these clusters, so there is nothing to compare it with: run several chains."
        moving = f"{len(self.cases):,} of {counted(self.n_cases)}"
        every = "both chains" if self.n_chains == 2 else f"all {self.n_chains} chains"
        if not self.ways:
            same = f"{every.capitalize()} found the same clusters"
            others = f"{moving} {'is' if len(self.cases) == 1 else 'are'} not in the same one in each of them"
            return f"{same}; {others}." if self.cases else f"{same}, and every case is in the same one in each of them."
        if not self.cases:
            return f"Every case has the same main cluster in {every}; what differs is how much of it belongs there."
        certain = [self.title_of(c.cluster) for c in self.clusters if c.same]
        which = f": {listed(certain, FLOWS)}" if certain else ""
        n, of = len(certain), f"of {counted(len(self.clusters), 'cluster')}"
        same = f"{n or 'None'} {of} {'are' if n > 1 else 'is'} the same in {every}{which}"
        return f"{same}. {moving} could as well be in another one."

    def title_of(self, cluster: int) -> str:
        """ "cluster 3 (pasta, parmesan)"."""
        return cluster_title(cluster, next((c.name for c in self.clusters if c.cluster == cluster), ""))

    def moves(self, way: Way) -> tuple[str, ...]:
        """What is otherwise in another way to cluster the cases, in words, the largest first.

        Parameters
        ----------
        way : Way
            One of `ways`.

        Returns
        -------
        tuple of str
            "cluster 3 (pasta) is one with cluster 1 (soup)", "9 of 20 cases of cluster 2 (cake) are a cluster of their own".
        """
        size = {c.cluster: c.size for c in self.clusters}
        there: dict[int, int] = {}
        for flow in way.flows:
            there[flow.part] = there.get(flow.part, 0) + flow.size
        words = []
        for flow in sorted((f for f in way.flows if f.to != f.cluster), key=lambda f: -f.size):
            title, n = self.title_of(flow.cluster), size[flow.cluster]
            some = f"{flow.size:,} of {counted(n)} of {title} {'is' if flow.size == 1 else 'are'}"
            if flow.to is not None:
                target = self.title_of(flow.to)
                words.append(f"{title} is one with {target}" if flow.size >= ALL * n else f"{some} in {target}")
            elif flow.size >= ALL * there[flow.part]:
                words.append(f"{some} a cluster of {'its' if flow.size == 1 else 'their'} own")
            else:
                words.append(f"{some} in a cluster that is not shown")
        return tuple(words)

    @property
    def words(self) -> str:
        """What differs, without the table of cases."""
        lines = [self.sentence]
        for way in self.ways:
            moves = self.moves(way)
            lines += ["", f"{way.title}:"]
            lines += [f"  {line}" for line in moves[:FLOWS]] or ["  the same main clusters, but other shares of them"]
            lines += [f"  and {len(moves) - FLOWS} more"] if len(moves) > FLOWS else []
        return "\n".join([*lines, *(["", self.scope] if self.scope else [])])

    def __str__(self) -> str:
        if not self.cases:
            return self.words
        shown = self.cases[:CASES]
        wide = max(len(cut(case.name, 40)) for case in shown)
        lines = [self.words, "", f"{'case':{wide}}  shown" + "".join(f"  chain {c}" for c in range(self.n_chains))]
        for case in shown:
            own = "".join(f"  {in_chain(s):>{6 + len(str(c))}}" for c, s in enumerate(case.chains))
            lines.append(f"{cut(case.name, 40):{wide}}  {case.cluster:5}{own}")
        more = len(self.cases) - len(shown)
        return "\n".join([*lines, *([f"… and {more:,} more"] if more else [])])


def in_chain(cluster: int | None) -> str:
    """Where a case is in a chain; "other" is a cluster that is not shown."""
    return "other" if cluster is None else str(cluster)
