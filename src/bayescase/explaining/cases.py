"""Where a case belongs and why."""

from __future__ import annotations

import numpy as np

from ..errors import ParameterError
from ..fitted import Fitted
from ..predicting import memberships_by_draw
from ..sampling.problem import is_int
from ..state import chunks
from .agreement import log_values
from .explanation import CaseExplanation
from .parts import CaseFeature, Contribution, Membership, Neighbour, Reason
from .values import agreement, in_words
from .view import View, view_of

NEIGHBOURS = 5
INTERVAL = (0.05, 0.95)


def explain_case(fitted: Fitted, case: int | np.ndarray) -> CaseExplanation:
    """Where a case belongs, and why.

    Parameters
    ----------
    fitted : Fitted
    case : int or ndarray of shape (n_features,)
        The row of a case of the fit, which is explained by what the fit found, or the codes of a new one.

    Returns
    -------
    CaseExplanation
    """
    if is_int(case) and not 0 <= case < fitted.n_cases:
        raise ParameterError(
            "There is no case {row}: the model was fitted to {n}, counted from 0.", row=int(case), n=fitted.n_cases
        )
    view = view_of(fitted)
    codes = fitted.data.x[case] if is_int(case) else np.asarray(case)
    by_draw = memberships_by_draw(fitted, codes[None])[:, 0]
    x = codes.astype(np.int64)
    mean = by_draw.mean(axis=0)
    mean = fitted.posterior.memberships[case] if is_int(case) else mean / mean.sum()
    low, high = np.quantile(by_draw, INTERVAL, axis=0)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    order = np.argsort(-mean, kind="stable").tolist()
    s = order[0]
    return CaseExplanation(
        name=fitted.name_of_case(int(case)) if is_int(case) else None,
        cluster=s,
        prototype=view.prototype(s),
        memberships=tuple(Membership(t, view.names[t], float(mean[t]), float(low[t]), float(high[t])) for t in order),
        features=case_features(view, x, s, mean),
        reasons=tuple(reason(view, x, s, t) for t in order[1:] if fitted.sizes[t]),
        neighbours=neighbours(view, x, s),
    )


def case_features(view: View, x: np.ndarray, s: int, mean: np.ndarray) -> tuple[CaseFeature, ...]:
    """The values of a case beside those of the prototype of cluster s, and where each cell most probably comes from."""
    cells = mean * np.exp(log_values(view.fitted))[x]  # (P, S)
    cells = cells / cells.sum(axis=1, keepdims=True)
    likely, states = cells.argmax(axis=1), agreement(view.fitted, s, x[None], np.arange(len(x)))[0].tolist()
    keys, prototype = view.keys(s), view.values.of_row(view.codes(s))
    return tuple(
        CaseFeature(
            name=view.values.features[j].name,
            value=value,
            cluster=None if value is None else int(likely[j]),
            cluster_probability=None if value is None else float(cells[j, likely[j]]),
            prototype=prototype[j],
            key=bool(keys[j]),
            agrees=in_words(states[j]),
        )
        for j, value in enumerate(view.values.of_row(x))
    )


def reason(view: View, x: np.ndarray, s: int, t: int) -> Reason:
    """log φ_s(x_j) − log φ_t(x_j) for every observed feature j."""
    log_phi = log_values(view.fitted)[x]
    parts = [
        Contribution(view.values.features[j].name, value, float(log_phi[j, s] - log_phi[j, t]))
        for j, value in enumerate(view.values.of_row(x))
        if value is not None
    ]
    return Reason(s, t, tuple(sorted(parts, key=lambda c: -abs(c.weight))))


def neighbours(view: View, x: np.ndarray, s: int, most: int = NEIGHBOURS) -> tuple[Neighbour, ...]:
    """The cases of the fit that share most values with x on the key features of cluster s, on all features if it has none."""
    cases = view.fitted.data.x
    keys = np.flatnonzero(view.keys(s) & (x >= 0))
    keys = keys if len(keys) else np.flatnonzero(x >= 0)
    same, everywhere = np.empty((2, len(cases)), dtype=np.int64)
    for rows in chunks(*cases.shape):
        same[rows] = (cases[rows][:, keys] == x[keys]).sum(axis=1)
        everywhere[rows] = (cases[rows] == x).sum(axis=1)  # among equals on the key features, the most alike
    nearest = np.lexsort((-everywhere, -same))[:most]
    return tuple(Neighbour(int(i), view.fitted.name_of_case(i), int(same[i]), len(keys)) for i in nearest.tolist())
