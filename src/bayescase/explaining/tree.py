"""Which clusters may be told as one, and what they are then."""

from __future__ import annotations

import numpy as np

from ..errors import ParameterError
from ..fitted import Fitted
from ..sampling.tree import Join
from ..sampling.values import is_int, is_real
from .explanation import TreeExplanation
from .parts import TreeNode
from .view import View, view_of

TOLERANCE = 0.07
SHOWN = 3  # distinctions of a node


def explain_tree(fitted: Fitted, tolerance: float = TOLERANCE) -> TreeExplanation:
    """Which clusters may be told as one; of a folded fit, those of the whole.

    Parameters
    ----------
    fitted : Fitted
    tolerance : float, default=0.07
        Clusters count as one if that makes their cases less probable by no more than this share; that two features go
        together in them does not count.

    Returns
    -------
    TreeExplanation
    """
    whole, tree = fitted.whole or fitted, fitted.tree
    number = tree.number(check_tolerance(tolerance))
    view, S = view_of(whole), whole.n_clusters
    nodes = [make_node(view, s, s) for s in range(S)]
    for step, join in enumerate(tree.joins):
        fewer = view_of(whole.folded(tree.groups(S - step - 1)))
        clusters = tuple(sorted(tree.leaves(S + step)))
        nodes.append(make_node(fewer, fewer.fitted.groups.index(clusters), S + step, join))
    return TreeExplanation(whole.n_cases, S, tuple(nodes), float(tolerance), number, whole.scope)


def make_node(view: View, s: int, node: int, join: Join | None = None) -> TreeNode:
    """Cluster s of a fit as a node of the tree."""
    fitted = view.fitted
    return TreeNode(
        node=node,
        clusters=fitted.groups[s] if join else (s,),
        name=view.names[s],
        size=int(fitted.sizes[s]),
        prototype=view.prototype(s) if fitted.sizes[s] else None,
        has=view.distinctions(s, view.told[s], rare=False, most=SHOWN)
        if np.count_nonzero(fitted.sizes) > 1
        else view.shared(s)[:SHOWN],
        parts=(join.first, join.second) if join else (),
        together=tuple(view.values.features[j].name for j in join.pair) if join else (),
        loss=join.loss if join else 0.0,
        error=join.error if join else 0.0,
        cost=join.cost if join else 0.0,
    )


def fold(fitted: Fitted, n_clusters: int | None = None, tolerance: float = TOLERANCE) -> Fitted:
    """A fit with fewer clusters, those that lose least joined.

    Parameters
    ----------
    fitted : Fitted
    n_clusters : int, default=None
        How many; as many as the tolerance leaves if None.
    tolerance : float, default=0.07
        Clusters count as one if that makes their cases less probable by no more than this share; that two features go
        together in them does not count.

    Returns
    -------
    Fitted
    """
    whole = fitted.whole or fitted
    tolerance = check_tolerance(tolerance)
    if n_clusters is not None and (not is_int(n_clusters) or not 1 <= n_clusters <= whole.n_clusters):
        raise ParameterError(
            "{parameter} must be a whole number from 1 to {most}, the number of clusters that there are, not {value!r}.",
            parameter="n_clusters",
            most=whole.n_clusters,
            value=n_clusters,
        )
    return whole.named(fitted.case_names).folded(fitted.tree.groups(n_clusters or fitted.tree.number(tolerance)))


def check_tolerance(tolerance: float) -> float:
    if not is_real(tolerance) or not 0 <= tolerance < 1:
        raise ParameterError(
            "{parameter} must be a share of at least 0 and below 1, not {value!r}.", parameter="tolerance", value=tolerance
        )
    return float(tolerance)
