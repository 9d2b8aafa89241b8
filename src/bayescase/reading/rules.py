"""What the user says about columns, checked: one value for all of them, or a mapping from columns to values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..errors import ParameterError, Setting
from .tables import AnyColumn, Marker, SparseColumn, Table, has_lists, is_missing

TYPES = ("category", "ordered", "integer", "number", "count", "bag")
SOURCES = ("columns", "lists", "texts")  # where the items of a bag are
ITEMS = "items"  # what a bag is called that has no name
UNNAMED = ""
MOST_BINS = 1000

Bins: TypeAlias = tuple[str, Any]  # ("quantile", n), ("uniform", n) or ("edges", (…))
T = TypeVar("T")


class Asked(NamedTuple):
    """What a user says about a table: the parameters of a CaseEncoder."""

    bins: Any = 5
    feature_types: Any = None
    missing_values: Any = None
    top_values: Any = None
    max_count: Any = 1
    bags: Any = None
    texts: Any = None
    stop_words: Any = None
    min_cases: Any = 1
    feature_names: Any = None


class Items(NamedTuple):
    """That a column holds items of a bag, and how."""

    bag: str
    source: str = "columns"  # one of SOURCES
    separator: str = ""  # between the items of a cell that is a word


class Rule(NamedTuple):
    """How to read one column."""

    type: str | None = None  # one of TYPES, or "drop"; None: guess
    bins: Bins = ("quantile", 5)
    top: int | None = None
    max_count: int = 1
    items: Items | None = None  # if it is of a bag


def make_rules(table: Table, asked: Asked) -> list[Rule]:
    """A Rule per column. A column named in bins is read as numbers, one named in top_values as categories."""
    at = {table.name(j): j for j in range(len(table.columns))}
    max_count = check_at_least_1(Setting("max_count"), asked.max_count)
    said = said_items(table, at, asked)
    every_bins, some_bins = by_column("bins", asked.bins, at, check_bins, Rule().bins)
    every_type, some_type = by_column("feature_types", without_bags(asked, at), at, check_type, None)
    every_top, some_top = by_column("top_values", asked.top_values, at, check_at_least_1, None)
    if every_type == "drop":
        raise ParameterError(
            "{parameter} would leave no column; name the columns to leave out.", parameter=Setting("feature_types", "drop")
        )
    rules = []
    for j, column in enumerate(table.columns):
        name, type_ = table.name(j), some_type.get(j)
        if j in some_bins or j in some_top:
            type_ = implied_type(name, j in some_bins, j in some_top, type_)
        if j in said:
            check_only_items(name, said[j], type_)
            items: Items | None = said[j]
        else:
            type_ = type_ or every_type
            items = guess_items(name, column, type_, in_one=is_word(asked.bags, "all"), counts=max_count > 1)
        type_ = type_ if items is None else "bag"
        rules.append(Rule(type_, some_bins.get(j, every_bins), some_top.get(j, every_top), max_count, items))
    if all(rule.type == "drop" for rule in rules):
        raise ParameterError("Every column is left out; keep at least one.", parameter="feature_types")
    if is_word(asked.bags, "all") and not any(rule.items == Items(UNNAMED) for rule in rules):
        raise ParameterError(
            "{parameter} has no column left: of each is said how it is read.", parameter=Setting("bags", "all"), value="all"
        )
    return with_names_of_bags(rules, list(at))


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


# --- bags ----------------------------------------------------------------------------------------------------------------


def said_items(table: Table, at: Mapping[str, int], asked: Asked) -> dict[int, Items]:
    """{position: Items} of the columns that are named in bags and texts."""
    if asked.bags is not None and not is_word(asked.bags, "all") and not isinstance(asked.bags, Mapping):
        raise ParameterError(
            "{parameter} must be 'all', a mapping from bags to their columns, or one from columns to what separates their "
            "items, not {value!r}.",
            parameter="bags",
            value=asked.bags,
        )
    said: list[tuple[str, Any, Items]] = []
    for name, of in asked.bags.items() if isinstance(asked.bags, Mapping) else ():
        parameter = Setting("bags", column=name)
        if isinstance(of, str):
            said.append(
                ("bags", name, Items(table.name(position_of("bags", name, at)), "lists", check_separator(parameter, of)))
            )
        else:
            said += [("bags", key, Items(str(name))) for key in check_keys(parameter, of)]
    for key in () if asked.texts is None else check_keys(Setting("texts"), asked.texts):
        said.append(("texts", key, Items(table.name(position_of("texts", key, at)), "texts")))
    found: dict[int, Items] = {}
    for where, key, items in said:
        j = position_of(where, key, at)
        if j in found:
            raise ParameterError(
                "{parameter} has the column {column!r}, which is in a bag already; remove it from one.",
                parameter=where,
                column=key,
            )
        found[j] = items
    return found


def guess_items(name: str, column: AnyColumn, type_: str | None, in_one: bool, counts: bool) -> Items | None:
    """The bag of a column that no parameter puts into one. in_one: all columns are items; counts: sparse columns are not."""
    if type_ not in (None, "bag"):
        return None
    if isinstance(column, SparseColumn):
        return None if counts and type_ is None else Items(UNNAMED)
    if in_one:
        return Items(UNNAMED)
    return Items(name, "lists") if type_ == "bag" or has_lists(column) else None


def without_bags(asked: Asked, at: Mapping[str, int]) -> Any:
    """feature_types without bags that are no columns, so that `feature_types_` can be given back."""
    if not isinstance(asked.feature_types, Mapping):
        return asked.feature_types
    bags = {ITEMS, *(asked.bags if isinstance(asked.bags, Mapping) else ())} - set(at)
    return {key: type_ for key, type_ in asked.feature_types.items() if key not in bags or type_ != "bag"}


def check_separator(parameter: Setting, separator: str) -> str:
    if not separator:
        raise ParameterError(
            "{parameter} must be what separates the items of a cell, such as ';', or a list of columns, not {value!r}.",
            parameter=parameter,
            value=separator,
        )
    return separator


def check_keys(parameter: Setting, keys: Any) -> list[Any]:
    """One column, or a list of columns."""
    given = [keys] if isinstance(keys, str) or is_whole(keys) else keys
    if isinstance(given, Mapping) or not np.iterable(given) or not len(list(given)):
        raise ParameterError("{parameter} must be a list of columns, not {value!r}.", parameter=parameter, value=keys)
    return list(given)


def check_only_items(name: str, items: Items, type_: str | None) -> None:
    """A column of a bag is nothing else."""
    if type_ not in (None, "bag"):
        raise ParameterError(
            "Column {column!r} is in {parameter}, so it cannot be read as {value!r}, too; change one.",
            column=name,
            parameter="texts" if items.source == "texts" else "bags",
            value=type_,
        )


def with_names_of_bags(rules: list[Rule], names: list[str]) -> list[Rule]:
    """The rules, with a name for the bag that has none: "items", or "(items)" if another feature is called so."""
    groups = {rule.items.bag for rule in rules if rule.items and rule.items.source == "columns"}
    others = [rule.type != "drop" and (rule.items is None or rule.items.source != "columns") for rule in rules]
    taken = {name for name, other in zip(names, others, strict=True) if other}
    if groups & taken:
        raise ParameterError(
            "{parameter} has a bag {value!r}, but another feature is called so, too; rename one.",
            parameter="bags",
            value=min(groups & taken),
        )
    name = ITEMS
    while name in groups | taken:
        name = f"({name})"
    return [rule._replace(items=Items(name)) if rule.items == Items(UNNAMED) else rule for rule in rules]


def check_min_cases(min_cases: Any, bags: Collection[str]) -> dict[str, int]:
    """The least number of cases that an item of each bag must be in."""
    named = isinstance(min_cases, Mapping)
    for name in min_cases if named else ():
        if name not in bags:
            raise ParameterError(
                "{parameter} names {value!r}, but there is no such bag{there}.",
                parameter="min_cases",
                value=name,
                there=f"; there are {', '.join(map(repr, bags))}" if bags else "",
            )
    if not named and check_at_least_1(Setting("min_cases"), min_cases) > 1 and not bags:
        raise ParameterError("{parameter} is for items of bags, but the data has none.", parameter="min_cases", value=min_cases)
    return {
        name: check_at_least_1(Setting("min_cases", column=name), min_cases.get(name, 1)) if named else int(min_cases)
        for name in bags
    }


def check_stop_words(words: Any, texts: bool) -> list[str] | str | None:
    """What CountVectorizer takes."""
    if words is not None and not texts:
        raise ParameterError("{parameter} is for texts, but there are none.", parameter="stop_words", value=words)
    if words is None or is_word(words, "english"):
        return None if words is None else "english"
    if isinstance(words, (str, Mapping)) or not np.iterable(words) or not all(isinstance(word, str) for word in words):
        raise ParameterError(
            "{parameter} must be 'english' or a list of words, not {value!r}.", parameter="stop_words", value=words
        )
    return list(words)


def with_names(table: Table, feature_names: Any) -> Table:
    """The table with the names that the user gives to columns that have none."""
    if feature_names is None:
        return table
    names = check_column_names("feature_names", feature_names, len(table.columns))
    if table.names not in (None, names):
        raise ParameterError(
            "{parameter} differs from the names that the columns have; leave it out.", parameter="feature_names"
        )
    return table._replace(names=names)


def check_column_names(parameter: str, given: Any, width: int) -> list[str]:
    """A different name for each column."""
    names = list(given) if np.iterable(given) and not isinstance(given, str) else [None]
    if not all(isinstance(name, str) for name in names):
        raise ParameterError("{parameter} must be a list of words, not {value!r}.", parameter=parameter, value=given)
    if len(names) != width:
        raise ParameterError(
            "{parameter} has {n} names, but the data has {width} columns.", parameter=parameter, n=len(names), width=width
        )
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ParameterError("{parameter} has the name {value!r} twice.", parameter=parameter, value=twice[0])
    return [str(name) for name in names]


# --- values of parameters ------------------------------------------------------------------------------------------------


def by_column(
    parameter: str, given: Any, at: Mapping[str, int], check: Callable[[Setting, Any], T], default: T
) -> tuple[T, dict[int, T]]:
    """(the value for every column, {position: value} for the columns that are named)."""
    if not isinstance(given, Mapping):
        return (default if given is None else check(Setting(parameter), given)), {}
    return default, {
        position_of(parameter, key, at): check(Setting(parameter, column=key), value) for key, value in given.items()
    }


def position_of(parameter: str, key: Any, at: Mapping[str, int]) -> int:
    """The column that a name or a position means."""
    j = at.get(str(key), key if is_whole(key) else -1)
    if not 0 <= j < len(at):
        raise ParameterError(
            "{parameter} names column {column!r}, but the data has no such column.", parameter=parameter, column=key
        )
    return int(j)


def is_word(value: Any, word: str) -> bool:
    return isinstance(value, str) and value == word


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


def check_at_least_1(parameter: Setting, number: Any) -> int:
    if not is_whole(number) or number < 1:
        raise ParameterError(
            "{parameter} must be a whole number of at least 1, not {value!r}.", parameter=parameter, value=number
        )
    return int(number)


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
