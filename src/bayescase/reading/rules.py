"""What the user says about columns, checked: one value for all of them, or a mapping from columns to values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..errors import ParameterError, Setting
from .tables import Marker, Table, is_missing

TYPES = ("category", "ordered", "integer", "number", "count")
MOST_BINS = 1000

Bins: TypeAlias = tuple[str, Any]  # ("quantile", n), ("uniform", n) or ("edges", (…))
T = TypeVar("T")


class Rule(NamedTuple):
    """How to read one column."""

    type: str | None = None  # one of TYPES, or "drop"; None: guess
    bins: Bins = ("quantile", 5)
    top: int | None = None
    max_count: int = 1


def make_rules(table: Table, bins: Any, feature_types: Any, top_values: Any, max_count: Any) -> list[Rule]:
    """A Rule per column. A column named in bins is read as numbers, one named in top_values as categories."""
    if not is_whole(max_count) or max_count < 1:
        raise ParameterError(
            "{parameter} must be a whole number of at least 1, not {value!r}.", parameter="max_count", value=max_count
        )
    every_bins, some_bins = by_column("bins", bins, table, check_bins, Rule().bins)
    every_type, some_type = by_column("feature_types", feature_types, table, check_type, None)
    every_top, some_top = by_column("top_values", top_values, table, check_top, None)
    if every_type == "drop":
        raise ParameterError(
            "{parameter} would leave no column; name the columns to leave out.", parameter=Setting("feature_types", "drop")
        )
    rules = []
    for j in range(len(table.columns)):
        type_ = some_type.get(j, every_type)
        if j in some_bins or j in some_top:
            type_ = implied_type(table.name(j), j in some_bins, j in some_top, some_type.get(j))
        rules.append(Rule(type_, some_bins.get(j, every_bins), some_top.get(j, every_top), int(max_count)))
    if all(rule.type == "drop" for rule in rules):
        raise ParameterError("Every column is left out; keep at least one.", parameter="feature_types")
    return rules


def implied_type(name: str, binned: bool, topped: bool, given: str | None) -> str:
    """The type of a column that is named in bins or in top_values."""
    if binned and topped:
        raise ParameterError(
            "Column {column!r} is in both {parameter} and {other}; remove it from one of them.",
            column=name,
            parameter="bins",
            other=Setting("top_values"),
        )
    implied = "number" if binned else "category"
    if given not in (implied, "drop", None):
        raise ParameterError(
            "Column {column!r} is in {other}, so its {parameter} must be {implied!r}, not {value!r}; change one.",
            column=name,
            other=Setting("bins" if binned else "top_values"),
            parameter="feature_types",
            implied=implied,
            value=given,
        )
    return given or implied


def by_column(
    parameter: str, given: Any, table: Table, check: Callable[[Setting, Any], T], default: T
) -> tuple[T, dict[int, T]]:
    """(the value for every column, {position: value} for the columns that are named)."""
    if not isinstance(given, Mapping):
        return (default if given is None else check(Setting(parameter), given)), {}
    at = {table.name(j): j for j in range(len(table.columns))}
    some = {}
    for key, value in given.items():
        j = at.get(str(key), key if is_whole(key) else -1)
        if not 0 <= j < len(at):
            raise ParameterError(
                "{parameter} names column {column!r}, but the data has no such column.", parameter=parameter, column=key
            )
        some[j] = check(Setting(parameter, column=key), value)
    return default, some


def is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def check_bins(parameter: Setting, bins: Any) -> Bins:
    """("quantile", n), ("uniform", n) or ("edges", (…)). A number alone means quantiles."""
    if isinstance(bins, str):
        raise ParameterError(
            "{parameter} must be the number of intervals, such as 5 or ('uniform', 5), or a list of edges, not {value!r}.",
            parameter=parameter,
            value=bins,
        )
    given = list(bins) if np.iterable(bins) else ["quantile", bins]
    if len(given) == 2 and isinstance(given[0], str):
        way, n = given
        if way not in ("quantile", "uniform"):
            raise ParameterError(
                "{parameter} can be cut by 'quantile' or 'uniform', not {value!r}.", parameter=parameter, value=way
            )
        if not is_whole(n) or not 2 <= n <= MOST_BINS:
            raise ParameterError(
                "{parameter} must be a whole number of at least 2 and at most {most}, not {value!r}.",
                parameter=parameter,
                most=MOST_BINS,
                value=n,
            )
        return way, int(n)
    if not given or not all(isinstance(edge, Real) and math.isfinite(edge) for edge in given):
        raise ParameterError(
            "{parameter} must be a list of edges, finite numbers, not {value!r}.", parameter=parameter, value=bins
        )
    if any(low >= high for low, high in itertools.pairwise(given)):
        raise ParameterError(
            "{parameter} must list its edges from low to high, each once, not {value!r}.", parameter=parameter, value=bins
        )
    return "edges", tuple(float(edge) for edge in given)


def check_type(parameter: Setting, type_: Any) -> str | None:
    if not isinstance(type_, str) or type_ not in (*TYPES, "drop"):
        raise ParameterError(
            "{parameter} must be one of {types} or 'drop', not {value!r}.",
            parameter=parameter,
            types=", ".join(map(repr, TYPES)),
            value=type_,
        )
    return type_


def check_top(parameter: Setting, top: Any) -> int | None:
    if not is_whole(top) or top < 1:
        raise ParameterError("{parameter} must be a whole number of at least 1, not {value!r}.", parameter=parameter, value=top)
    return int(top)


def check_markers(markers: Any) -> tuple[Marker, ...]:
    """The words and numbers that count as missing, as a tuple."""
    given = list(markers) if np.iterable(markers) and not isinstance(markers, (str, bytes, Mapping)) else [markers]
    given = [marker for marker in given if not is_missing(marker)]
    for marker in given:
        if not isinstance(marker, (str, Real)) or isinstance(marker, (bool, np.bool_)):
            raise ParameterError(
                "{parameter} must be words or numbers, not {value!r}.", parameter="missing_values", value=marker
            )
    return tuple(marker.item() if isinstance(marker, np.generic) else marker for marker in given)
