"""Prior weights of candidates and of values, from what the cases lack and have."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import BayescaseWarning, ParameterError
from ..state import Codes, chunks, has_gaps

SHOWN = 5  # empty rows that are named


def frequencies(cases: Codes, offset: np.ndarray) -> np.ndarray:
    """The base measure of the values of these cases."""
    codes = cases.cells.codes
    return base_of(np.bincount(codes[codes >= 0], minlength=int(offset[-1])), offset)


def base_of(counts: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """λ(v) / λ = V f(v), f the share of value v in all cells of its feature, one more cell of each value added."""
    n, sizes = counts + 1.0, np.diff(offset)
    return np.asarray(n * np.repeat(sizes / np.add.reduceat(n, offset[:-1]), sizes))


def bar_empty(weight: np.ndarray | None, empty: np.ndarray) -> np.ndarray | None:
    """A case whose bags are empty, and that has no value, is no candidate."""
    if empty.all():
        raise ParameterError("No candidate has an item or a value, so none can be a prototype.")
    if not empty.any():
        return weight
    weight = np.ones((len(empty), 1)) if weight is None else weight.copy()
    barred = np.where(empty[:, None], 0.0, weight)
    return np.where(barred.any(axis=0), barred, weight)


def weigh_gaps(candidates: np.ndarray, q: np.ndarray) -> np.ndarray | None:
    """Π_j (1 − q_j) over the single features that a candidate lacks, as (M, 1), or None if none has gaps.

    Without it a gap would be an advantage: a value that the cluster does not share costs 1 − q, a missing one nothing.
    """
    if not has_gaps(candidates):
        return None
    cost = cost_of_gaps(q, candidates.shape[1])
    log_weight = np.concatenate([(candidates[rows] < 0) @ cost for rows in chunks(*candidates.shape)])
    return np.exp(log_weight - log_weight.max())[:, None] if log_weight.any() else None


def cost_of_gaps(q: np.ndarray, n_single: int) -> np.ndarray:
    """log(1 − q) of each single feature."""
    return np.asarray(np.log1p(-q[:, :n_single].mean(axis=0)))


def warn_empty_rows(cases: Codes) -> None:
    empty = np.flatnonzero(~cases.known)
    warn_empty(empty[:SHOWN].tolist(), len(empty))


def warn_empty(first: Sequence[int], n: int) -> None:
    """Warn that n rows have no value; the first few are named."""
    if n:
        shown = ", ".join(map(str, first[:SHOWN])) + (f" and {n - SHOWN} more" if n > SHOWN else "")
        some, it = ("Row {shown} has", "it") if n == 1 else ("Rows {shown} have", "them")
        warnings.warn(
            BayescaseWarning(
                some + " no value at all; every cluster is equally likely there, so no cluster counts {it}.", shown=shown, it=it
            ),
            stacklevel=5,
        )
