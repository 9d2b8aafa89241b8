"""How two clusters differ."""

from __future__ import annotations

from ..errors import ParameterError
from ..fitted import Fitted
from .clusters import against
from .explanation import PairExplanation
from .parts import Side
from .view import check_cluster, view_of


def explain_pair(fitted: Fitted, first: int, second: int) -> PairExplanation:
    """How two clusters differ.

    Parameters
    ----------
    fitted : Fitted
    first, second : int
        Their numbers.

    Returns
    -------
    PairExplanation
    """
    s, t = check_cluster(fitted, first), check_cluster(fitted, second)
    if s == t:
        raise ParameterError("explain_pair needs two different clusters, not {s} twice.", s=s)
    view = view_of(fitted)
    one, two = (Side(k, view.names[k], view.prototype(k), against(view, k, other)) for k, other in ((s, t), (t, s)))
    return PairExplanation(one, two, fitted.scope)
