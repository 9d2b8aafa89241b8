"""Where a case belongs and why."""

from __future__ import annotations

import numpy as np

from ..errors import ParameterError
from ..fitted import Fitted
from ..predicting import memberships_by_draw
from ..state import Codes, chunks
from .agreement import log_values
from .explanation import CaseExplanation
from .parts import CaseFeature, Contribution, Membership, Neighbour, Reason
from .values import agreement, in_words
from .view import View, view_of

NEIGHBOURS = 5
INTERVAL = (0.05, 0.95)


def explain_case(fitted: Fitted, case: int | Codes) -> CaseExplanation:
    """Where a case belongs, and why.

    Parameters
    ----------
    fitted : Fitted
    case : int or Codes
        The row of a case of the fit, which is explained by what the fit found, or the codes of a new one.

    Returns
    -------
    CaseExplanation
    """
    if isinstance(case, int) and not 0 <= case < fitted.n_cases:
        raise ParameterError(
            "There is no case {row}: the model was fitted to {n}, counted from 0.", row=int(case), n=fitted.n_cases
        )
    view = view_of(fitted)
    codes = fitted.data.cases.take([case]) if isinstance(case, int) else case
    by_draw = memberships_by_draw(fitted, codes)[:, 0]
    mean = by_draw.mean(axis=0)
    mean = fitted.posterior.memberships[case] if isinstance(case, int) else mean / mean.sum()
    low, high = np.quantile(by_draw, INTERVAL, axis=0)
    low, high = np.minimum(low, mean), np.maximum(high, mean)
    order = np.argsort(-mean, kind="stable").tolist()
    s = order[0]
    return CaseExplanation(
        name=fitted.name_of_case(case) if isinstance(case, int) else None,
        cluster=s,
        prototype=view.prototype(s),
        memberships=tuple(Membership(t, view.names[t], float(mean[t]), float(low[t]), float(high[t])) for t in order),
        features=case_features(view, codes, s, mean),
        reasons=tuple(reason(view, codes, s, t) for t in order[1:] if fitted.sizes[t]),
        neighbours=neighbours(view, codes, s),
    )


def case_features(view: View, case: Codes, s: int, mean: np.ndarray) -> tuple[CaseFeature, ...]:
    """The values of a case beside those of the prototype of cluster s, and where each cell most probably comes from.

    Of a bag the items that the case has, and key ones that it lacks.
    """
    x, columns, keys = view.fitted.columns.codes(case)[0], view.fitted.columns, view.keys(s)
    chosen = np.flatnonzero((np.arange(len(x)) < columns.n_single) | (x != columns.absent) | keys)
    cells = mean * np.exp(log_values(view.fitted))[x[chosen]]  # (chosen, S)
    cells = cells / cells.sum(axis=1, keepdims=True)
    likely, states = cells.argmax(axis=1), agreement(view.fitted, s, case, chosen)[0].tolist()
    prototype, found = view.codes(s), []
    for k, j in enumerate(chosen.tolist()):
        lacks = x[j] < 0 or (j >= columns.n_single and x[j] == columns.absent[j])
        found.append(
            CaseFeature(
                name=view.values.features[j].name,
                value=view.values.of(j, x[j]),
                cluster=None if lacks else int(likely[k]),
                cluster_probability=None if lacks else float(cells[k, likely[k]]),
                prototype=view.values.of(j, prototype[j]),
                key=bool(keys[j]),
                agrees=in_words(states[k]),
            )
        )
    return tuple(found)


def reason(view: View, case: Codes, s: int, t: int) -> Reason:
    """log φ_s(x_j) − log φ_t(x_j) for every observed cell; an item counts as often as it occurs."""
    columns, log_phi = view.fitted.columns, log_values(view.fitted)
    x = columns.codes(case)[0]
    times = np.zeros(len(x), dtype=np.int64)
    times[: columns.n_single] = x[: columns.n_single] >= 0
    if case.bags is not None:
        np.add.at(times, case.bags.codes.astype(np.int64) - columns.first_item + columns.n_single, 1)
    parts = [
        Contribution(
            view.values.features[j].name, view.values.of(j, x[j]), float(times[j] * (log_phi[x[j], s] - log_phi[x[j], t]))
        )
        for j in np.flatnonzero(times).tolist()
    ]
    return Reason(s, t, tuple(sorted(parts, key=lambda c: -abs(c.weight))))


def neighbours(view: View, case: Codes, s: int, most: int = NEIGHBOURS) -> tuple[Neighbour, ...]:
    """The cases of the fit that share most values with a case on the key features of cluster s, on all if it has none."""
    columns, cases = view.fitted.columns, view.fitted.data.cases
    x = columns.codes(case)[0]
    has = (x >= 0) & (x != np.where(np.arange(len(x)) < columns.n_single, -1, columns.absent))
    keys = np.flatnonzero(view.keys(s) & (x >= 0))
    keys = keys if len(keys) else np.flatnonzero(has)
    same = np.empty(cases.n_rows, dtype=np.int64)
    everywhere = np.zeros(cases.n_rows, dtype=np.int64)  # among equals on the key features, the most alike
    single = x[: columns.n_single]
    for rows in chunks(cases.n_rows, max(len(keys), columns.n_single)):
        same[rows] = (columns.codes(cases.part(rows), keys) == x[keys]).sum(axis=1)
        everywhere[rows] = (cases.x[rows] == single).sum(axis=1)
    if cases.bags is not None:
        shared = has[columns.n_single :][cases.bags.codes.astype(np.int64) - columns.first_item]
        everywhere += np.bincount(np.repeat(np.arange(cases.n_rows), cases.bags.sizes)[shared], minlength=cases.n_rows)
    nearest = np.lexsort((-everywhere, -same))[:most]
    return tuple(Neighbour(int(i), view.fitted.name_of_case(i), int(same[i]), len(keys)) for i in nearest.tolist())
