"""What a column's feature is: its kind, its values, the bins of its numbers."""

import itertools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from .tables import INFINITE, Column, SparseColumn, is_missing, plain, word

KINDS = ("category", "ordered", "integer", "number", "count")
FEW_INTEGERS = 10  # a column with more different numbers than this is binned
ID_FROM = 10  # from so many cases on, a column that counts 1, 2, 3, … is taken for a row number
MANY = 50  # so many values are too many if a value has fewer than two cases on average
MOST_BINS = 1000


@dataclass(frozen=True)
class Feature:
    """The values that a feature can take, in the order of their codes."""

    name: str
    kind: str  # one of KINDS
    values: tuple  # what is shown; for numbers the intervals between the edges
    edges: tuple = ()  # for numbers
    other: bool = False  # does the last value stand for all that are not listed?

    @property
    def ordered(self):
        """Do the values lie on a scale, from low to high?"""
        return self.kind != "category"


class Setting(NamedTuple):
    """What the user says about one column."""

    kind: str | None = None  # None: guess
    bins: tuple = ("quantile", 5)  # or ("uniform", n), or ("edges", (…))
    top: int | None = None
    max_count: int = 1


# --- settings: one value for all columns, or a mapping from columns to values ------------------------------------------


def make_settings(table, bins, feature_types, top_values, max_count):
    """A Setting per column. A column named in bins is read as numbers, one named in top_values as categories."""
    if not is_whole(max_count) or max_count < 1:
        raise ValueError(f"max_count must be a whole number of at least 1, not {max_count!r}.")
    every_bins, some_bins = by_column("bins", bins, table, check_bins, Setting().bins)
    every_kind, some_kind = by_column("feature_types", feature_types, table, check_kind, None)
    every_top, some_top = by_column("top_values", top_values, table, check_top, None)
    if every_kind == "drop":
        raise ValueError("feature_types='drop' would leave no column; name the columns to leave out.")
    settings = []
    for j in range(len(table.columns)):
        if j in some_bins and j in some_top:
            raise ValueError(f"Column {table.name(j)!r} is in both bins and top_values; remove it from one of them.")
        implied, where = ("number", "bins") if j in some_bins else ("category", "top_values") if j in some_top else (None, "")
        kind = some_kind.get(j, implied or every_kind)
        if implied and kind not in (implied, "drop"):
            raise ValueError(
                f"Column {table.name(j)!r} is in {where}, so its feature_types must be {implied!r}, not {kind!r}; change one."
            )
        settings.append(Setting(kind, some_bins.get(j, every_bins), some_top.get(j, every_top), int(max_count)))
    if all(setting.kind == "drop" for setting in settings):
        raise ValueError("feature_types drops every column; keep at least one.")
    return settings


def by_column(parameter, given, table, check, default):
    """(the value for every column, {position: value} for the columns that are named)."""
    if not isinstance(given, Mapping):
        return (default if given is None else check(parameter, given)), {}
    at = {table.name(j): j for j in range(len(table.columns))}
    some = {}
    for key, value in given.items():
        j = at.get(str(key), key if is_whole(key) else -1)
        if not 0 <= j < len(at):
            raise ValueError(f"{parameter} names column {key!r}, but the data has no such column.")
        some[j] = check(f"{parameter}[{key!r}]", value)
    return default, some


def is_whole(value):
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def check_bins(parameter, bins):
    """("quantile", n), ("uniform", n) or ("edges", (…)). A number alone means quantiles."""
    if isinstance(bins, str):
        raise ValueError(f"{parameter} must say how many bins, as in ({bins!r}, 5), or give a list of edges.")
    given = list(bins) if np.iterable(bins) else ["quantile", bins]
    if len(given) == 2 and isinstance(given[0], str):
        way, n = given
        if way not in ("quantile", "uniform"):
            raise ValueError(f"{parameter} can be cut by 'quantile' or 'uniform', not {way!r}.")
        if not is_whole(n) or not 2 <= n <= MOST_BINS:
            raise ValueError(f"{parameter} must be a whole number of at least 2 and at most {MOST_BINS}, not {n!r}.")
        return way, int(n)
    if not given or not all(isinstance(edge, Real) and np.isfinite(edge) for edge in given):
        raise ValueError(f"{parameter} must be a list of edges, finite numbers, not {bins!r}.")
    if any(low >= high for low, high in itertools.pairwise(given)):
        raise ValueError(f"{parameter} must list its edges from low to high, each once, not {bins!r}.")
    return "edges", tuple(float(edge) for edge in given)


def check_kind(parameter, kind):
    if not isinstance(kind, str) or kind not in (*KINDS, "drop"):
        raise ValueError(f"{parameter} must be one of {', '.join(map(repr, KINDS))} or 'drop', not {kind!r}.")
    return kind


def check_top(parameter, top):
    if not is_whole(top) or top < 1:
        raise ValueError(f"{parameter} must be a whole number of at least 1, not {top!r}.")
    return int(top)


def check_markers(markers):
    """The words and numbers that count as missing, as a tuple."""
    given = list(markers) if np.iterable(markers) and not isinstance(markers, (str, bytes, Mapping)) else [markers]
    given = [marker for marker in given if not is_missing(marker)]
    for marker in given:
        if not isinstance(marker, (str, Real)) or isinstance(marker, (bool, np.bool_)):
            raise ValueError(f"missing_values must be words or numbers, not {marker!r}.")
    return tuple(marker.item() if isinstance(marker, np.generic) else marker for marker in given)


# --- learning ----------------------------------------------------------------------------------------------------------


def learn_feature(name, columns, setting, markers=()):
    """The feature of a column of the table, with the same column of the catalogue perhaps after it."""
    if isinstance(columns[0], SparseColumn) and setting.kind in (None, "count"):
        return learn_counts(name, columns, setting, markers)
    columns = [plain(column, name, markers) for column in columns]
    if columns[0].missing.all():
        raise ValueError(f"Column {name!r} has no value at all; drop it.")
    if setting.kind == "count":
        return learn_counts(name, columns, setting, markers)
    if setting.kind in ("integer", "number"):
        columns = [forced_numbers(name, column, setting.kind) for column in columns]
    numeric = all(column.numeric for column in columns if not column.missing.all())
    if setting.kind in ("integer", "number") or (setting.kind is None and numeric):
        observed = [column.values[~column.missing] for column in columns]
        return learn_numbers(name, [part.astype(float) if part.dtype == object else part for part in observed], setting)
    return learn_words(name, columns, setting)


def learn_words(name, columns, setting):
    """Every value for itself, or the most frequent ones and "other"."""
    first = columns[0]
    kind = setting.kind or ("ordered" if first.ordered else "category")
    columns = [as_kind(first.categories or (), column) for column in columns]
    own = Counter(labels(columns[0]))
    n = own.total()
    every = {word(value): value for part in (*map(labels, columns[1:]), own) for value in set(part)}
    declared = {word(value): k for k, value in enumerate(first.categories or ())}
    if kind == "ordered" and declared and not every.keys() <= declared.keys():
        stray = min(every.keys() - declared.keys())
        raise ValueError(f"candidates has the value {stray!r} in column {name!r}, which is not in the order of its categories.")
    in_order = sorted(every.values(), key=lambda v: (declared.get(word(v), len(declared)), *sortable(v)))
    top = setting.top if kind == "category" and first.categories != (False, True) else None
    if top is not None and top < len(in_order):
        by_frequency = sorted((value for value in in_order if value in own), key=lambda value: -own[value])  # ties in order
        kept = {word(value) for value in by_frequency[:top]}
        other = "other"
        while other in every:  # a real value has that name
            other = f"({other})"
        return Feature(name, kind, (*(value for value in in_order if word(value) in kept), other), other=True)
    if top is None and setting.kind is None:
        check_cardinality(name, len(own), n)
    return Feature(name, kind, tuple(in_order))


def check_cardinality(name, distinct, n):
    if distinct == n > 2 or (distinct > MANY and 2 * distinct > n):
        what = f"as many values as cases ({n})" if distinct == n else f"{distinct} different values in {n} cases"
        raise ValueError(
            f"Column {name!r} has {what}, so it says nothing about clusters; leave it out with "
            f"feature_types={{{name!r}: 'drop'}}, keep its most frequent values and \"other\" with "
            f"top_values={{{name!r}: 10}}, or insist with feature_types={{{name!r}: 'category'}}."
        )


def learn_numbers(name, observed, setting):
    """Few integers are values of their own; other numbers are binned."""
    check_finite(name, *observed)
    distinct = np.unique(np.concatenate(observed))
    whole = bool((distinct == np.floor(distinct)).all()) and max(abs(float(distinct[0])), abs(float(distinct[-1]))) < 2**63
    n, own = len(observed[0]), np.unique(observed[0])
    if setting.kind is None and whole and n >= ID_FROM and len(own) == n == int(own[-1]) - int(own[0]) + 1:
        raise ValueError(
            f"Column {name!r} has as many values as cases ({n}) and counts them like a row number, so it says nothing about "
            f"clusters; leave it out with feature_types={{{name!r}: 'drop'}}, or insist with 'number'."
        )
    if setting.kind == "integer" or (
        setting.kind is None and whole and len(distinct) <= FEW_INTEGERS and len(distinct) <= max(2, n // 2)
    ):
        if not whole:
            odd = distinct[(distinct != np.floor(distinct)) | (abs(distinct.astype(float)) >= 2**63)][0]
            raise ValueError(f"Column {name!r} is to be read as integer, but has the value {odd:g}.")
        return Feature(name, "integer", tuple(int(value) for value in distinct))
    edges = find_edges(setting.bins, observed[0], distinct)
    return Feature(name, "number", intervals(edges, whole), edges)


def find_edges(bins, values, distinct):
    """Where the bins of a column meet. An edge belongs to the bin above it."""
    way, n = bins
    if way == "edges":
        return n
    t = np.linspace(0, 1, n + 1)[1:-1]
    lowest, *rest = distinct[:2]
    if way == "uniform":
        low, high = float(lowest), float(distinct[-1])
        edges = np.unique(low * (1 - t) + high * t)  # the difference of two large numbers may be infinite
        return tuple(float(edge) for edge in edges[edges > low])
    cuts = np.quantile(values, t, method="higher")  # values that occur: no bin is empty
    edges = np.unique(cuts[cuts > lowest])
    if rest and cuts[0] == lowest:  # so many cells are the minimum, often 0, that it gets a bin of its own
        edges = np.append(rest, edges[1:])
    return tuple(float(edge) for edge in edges)


def learn_counts(name, columns, setting, markers):
    """Absent or present; or 0, 1, …, the last one standing for all larger counts."""
    largest = 1
    numbers = [marker for marker in markers if not isinstance(marker, str)]
    for column in columns:
        if isinstance(column, SparseColumn):
            counts = column.values
            if numbers:
                raise ValueError(f"missing_values has the number {numbers[0]!r}, but a sparse matrix has no missing cells.")
        else:
            column = forced_numbers(name, column if isinstance(column, Column) else plain(column, name, markers), "count")
            counts = column.values[~column.missing]
            check_finite(name, counts)
        if setting.max_count > 1 and not is_count(counts).all():
            raise ValueError(
                f"Column {name!r} has the value {counts[~is_count(counts)][0]:g}, which is no count; use max_count=1 for "
                "absent (zero) and present (anything else)."
            )
        largest = max(largest, int(counts.max(initial=0)) if setting.max_count > 1 else 1)
    if setting.max_count == 1:
        return Feature(name, "count", (False, True))
    largest = min(largest, setting.max_count)
    return Feature(name, "count", (*range(largest), f"{largest}+"))


def is_count(values):
    return (values >= 0) & (values == np.floor(values))


def check_finite(name, *parts):
    if any(np.isinf(part).any() for part in parts if part.dtype.kind == "f"):
        raise ValueError(INFINITE.format(name))


def labels(column):
    """The observed values of a column: words, booleans, or plain numbers."""
    observed = column.values[~column.missing]
    if not column.numeric:
        return observed.tolist()
    return [int(value) if value == np.floor(value) else value for value in observed.tolist()]


def sortable(value):
    """Numbers by size, then words."""
    return (0, value, "") if isinstance(value, Real) and not isinstance(value, bool) else (1, 0, str(value))


def forced_numbers(name, column, kind):
    """The column as numbers, because the user says so; a word that is no number is an error."""
    numbers = to_numbers(column)
    lost = numbers.missing & ~column.missing
    if lost.any():
        raise ValueError(
            f"Column {name!r} is to be read as {kind}, but has the value {column.values[lost][0]!r}, which is not a number; if "
            "it means missing, name it in missing_values."
        )
    return numbers


def to_numbers(column):
    """Numbers as they are, booleans as 0 and 1, words that spell a finite number as that number, else missing."""
    if column.numeric:
        return column
    values = np.array([np.nan if gone else spelled(v) for v, gone in zip(column.values, column.missing, strict=True)])
    return Column(values, np.isnan(values))


def spelled(value):
    try:
        number = float(value)
    except (TypeError, ValueError):
        return np.nan
    return number if np.isfinite(number) else np.nan


def intervals(edges, whole=False):
    """Words for the bins between the edges. Between whole numbers "3 to 5" ends with 5; else it ends before 5."""
    if not edges:
        return ("any",)
    if whole and all(edge == np.floor(edge) and abs(edge) < 2**53 for edge in edges):
        cuts = [int(edge) for edge in edges]
        middle = [str(low) if low == high - 1 else f"{low} to {high - 1}" for low, high in itertools.pairwise(cuts)]
        return (f"below {cuts[0]}", *middle, f"{cuts[-1]} or more")
    for digits in range(4, 18):
        shown = [short(edge, digits) for edge in edges]
        if len(set(shown)) == len(shown):
            break
    middle = [f"{low} to {high}" for low, high in itertools.pairwise(shown)]
    return (f"below {shown[0]}", *middle, f"{shown[-1]} or more")


def short(number, digits):
    """A number in so many digits, but never fewer than its whole part has, as people write it."""
    if not 1e-4 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    digits = max(digits, len(str(int(abs(number)))))
    return np.format_float_positional(number, precision=digits, unique=False, fractional=False, trim="-")


# --- codes ---------------------------------------------------------------------------------------------------------------


def local_codes(feature, column):
    """Codes 0 .. V_j - 1 of one column; -1 for missing and for values never seen."""
    if feature.kind in ("category", "ordered"):
        return word_codes(feature, as_kind(feature.values, column))
    numbers = to_numbers(column)
    codes, seen = np.full(len(numbers.values), -1, dtype=np.int64), ~numbers.missing
    codes[seen] = number_codes(feature, numbers.values[seen])
    if not column.numeric:  # words such as "18 to 64" or "3+", from cases that the model has shown
        shown = {value: k for k, value in enumerate(feature.values) if isinstance(value, str)}
        own = [-1 if gone else shown.get(v, -1) for v, gone in zip(column.values, column.missing, strict=True)]
        codes = np.maximum(codes, own)
    return codes


def number_codes(feature, observed):
    if feature.kind == "integer":
        values = np.array(feature.values)
        at = np.searchsorted(values, observed).clip(max=len(values) - 1)
        return np.where(values[at] == observed, at, -1)
    check_finite(feature.name, observed)
    return count_codes(feature, observed) if feature.kind == "count" else np.searchsorted(feature.edges, observed, side="right")


def word_codes(feature, column):
    codes = np.full(len(column.values), -1, dtype=np.int64)
    code = {word(value): k for k, value in enumerate(feature.values[: len(feature.values) - feature.other])}
    rest = len(feature.values) - 1 if feature.other else -1
    codes[~column.missing] = [code.get(v if type(v) is str else word(v), rest) for v in labels(column)]
    return codes


def count_codes(feature, observed):
    """Any value but zero is present; counts go up to the last value; what is no count was never seen."""
    top = len(feature.values) - 1
    if feature.values == (False, True):
        return (observed != 0).astype(np.int64)
    return np.where(is_count(observed), np.minimum(observed, top), -1).astype(np.int64)


def as_kind(values, column):
    """Yes/no as True and False or as 1 and 0: whichever the feature knows."""
    known_types = set(map(type, values))
    if column.numeric and known_types == {bool}:
        flags = np.full(len(column.values), None, dtype=object)
        known = ~column.missing & np.isin(column.values, (0, 1))
        flags[known] = column.values[known].astype(bool)
        flags[~known & ~column.missing] = column.values[~known & ~column.missing]
        return Column(flags, column.missing, (False, True))
    if not column.numeric and column.categories == (False, True) and known_types == {int}:
        return Column(np.where(column.missing, np.nan, column.values).astype(float), column.missing)
    return column
