"""What a column's feature is: its type, its values, the bins of its numbers; and the codes of its cells."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import Advice, ColumnOf, Setting, TableError, brief
from .rules import Bins, Rule
from .seen import Seen, labels, seen
from .tables import EXACT, INFINITE, INT64, AnyColumn, Column, Marker, SparseColumn, plain, word

FEW_INTEGERS = 10  # so many different whole numbers, or fewer, are each a value
MANY = 50  # so many values are too many if a value has fewer than two cases on average
CASES_PER_CODE = 10  # whole numbers with so many cases each, or more, may be codes
LUCKY_PAIRS = 10  # so many equal pairs are expected, and none found: the numbers are identifiers
SEPARATORS = ";|,"  # of items in a cell
WORDS_OF_A_TEXT = 8  # a value with so many words may be a text
NUMBERS_PER_WORD = 3  # so many different numbers for each word, or more: the words are out of place
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
ID_FROM = 10  # from so many cases on, a column that counts 1, 2, 3, … is taken for a row number

Value: TypeAlias = str | bool | int | float


@dataclass(frozen=True)
class Feature:
    """The values that a feature can take, in the order of their codes.

    Attributes
    ----------
    name : str
        The name of its column; "x0", "x1", … if the table has no names.
    type : {"category", "ordered", "integer", "number", "count", "bag"}
        How it is read. All but bags have one value per case; a bag has any number of items.
    values : tuple
        What is shown: words, booleans, whole numbers; for numbers the intervals between the edges; for bags the items.
    edges : tuple of float
        Where the intervals meet; an edge belongs to the interval above it.
    other : bool
        Does the last value stand for all that are not listed?
    source : {"", "columns", "lists", "texts"}
        Where the items of a bag are: each in a column of its own, in cells that are lists, or in texts.
    separator : str
        What separates items in a cell that is a word; "" if cells must be lists.
    left_out : tuple of str
        Items in lists of the fit that are in too few cases.
    """

    name: str
    type: str
    values: tuple[Value, ...]
    edges: tuple[float, ...] = ()
    other: bool = False
    source: str = ""
    separator: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def ordered(self) -> bool:
        """Do the values lie on a scale, from low to high?"""
        return self.type not in ("category", "bag")

    @property
    def is_bag(self) -> bool:
        """Has a case any number of its values?"""
        return self.type == "bag"

    @property
    def items(self) -> tuple[str, ...]:
        """The items of a bag, in the order of their codes."""
        return tuple(str(value) for value in self.values) if self.is_bag else ()

    @property
    def width(self) -> int:
        """How many columns of a table it is made of."""
        return len(self.values) if self.source == "columns" else 1


class Learned(NamedTuple):
    """A feature, and whether a person should look at it."""

    feature: Feature
    doubtful: bool = False  # whole numbers that were cut, but may be codes
    stray: str | None = None  # a word among numbers, because of which all are words


# --- learning ----------------------------------------------------------------------------------------------------------


def learn_feature(
    name: str, columns: Sequence[AnyColumn], rule: Rule, markers: Sequence[Marker], known: Sequence[Seen | None]
) -> Learned:
    """The feature of a column of the table, with the same column of the catalogue perhaps after it.

    `known` is what they hold, None where that has yet to be seen.
    """
    if isinstance(columns[0], SparseColumn) and rule.type in (None, "count"):
        return Learned(learn_counts(name, columns, rule, markers))
    parts = [part or seen(plain(column, name, markers)) for column, part in zip(columns, known, strict=True)]
    return learn_seen(name, parts, rule)


def learn_seen(name: str, parts: Sequence[Seen], rule: Rule) -> Learned:
    """The feature of a column, from what it holds, and what that of the catalogue holds."""
    if not len(parts[0].times):
        raise TableError(
            "Column {column!r} has no value at all.",
            Advice("leave it out with {}", Setting("feature_types", "drop", column=name)),
            column=name,
        )
    read = [part.column for part in parts]
    if rule.type == "count":
        return Learned(learn_counts(name, read, rule, ()))
    if rule.type in ("integer", "number"):
        parts = [part._replace(column=forced_numbers(name, part.column, rule.type)) for part in parts]
    numeric = all(part.column.numeric for part in parts if len(part.times))
    if rule.type in ("integer", "number") or (rule.type is None and numeric):
        return learn_numbers(name, [numbers_of(part) for part in parts], rule)
    feature = learn_words(name, parts, rule)
    return Learned(
        feature, stray=stray_word(feature.values) if rule.type is None and parts[0].column.categories is None else None
    )


class Numbers(NamedTuple):
    """Different numbers from low to high, and how often each occurs."""

    values: np.ndarray
    times: np.ndarray
    share: float = 1.0

    def quantiles(self, t: np.ndarray) -> np.ndarray:
        """As numpy.quantile with method="higher": numbers that occur."""
        last = np.cumsum(self.times) - 1
        cuts: np.ndarray = self.values[np.searchsorted(last, np.ceil((last[-1]) * t).astype(np.int64))]
        return cuts


def numbers_of(part: Seen) -> Numbers:
    values = part.column.values
    values, which = np.unique(values.astype(float) if values.dtype == object else values, return_inverse=True)
    times = np.zeros(len(values), dtype=np.int64)
    np.add.at(times, which.reshape(-1), part.times)
    return Numbers(values, times, part.share)


def learn_words(name: str, parts: Sequence[Seen], rule: Rule) -> Feature:
    """Every value for itself, or the most frequent ones and "other"."""
    first = parts[0].column
    type_ = rule.type or ("ordered" if first.ordered else "category")
    own, *others = (part._replace(column=as_known(first.categories or (), part.column)).own for part in parts)
    every = {word(value): value for part in (*others, own) for value in part}
    declared = {word(value): k for k, value in enumerate(first.categories or ())}
    if type_ == "ordered" and declared and not every.keys() <= declared.keys():
        raise TableError(
            "candidates has the value {value!r} in column {column!r}, which is not in the order of its categories.",
            value=min(every.keys() - declared.keys()),
            column=name,
        )
    in_order = sorted(every.values(), key=lambda v: (declared.get(word(v), len(declared)), *sortable(v)))
    top = rule.top if type_ == "category" and first.categories != (False, True) else None
    if top is not None and top < len(in_order):
        by_frequency = sorted((value for value in in_order if value in own), key=lambda value: -own[value])  # ties in order
        kept = {word(value) for value in by_frequency[:top]}
        other = "other"
        while other in every:  # a real value has that name
            other = f"({other})"
        return Feature(name, type_, (*(value for value in in_order if word(value) in kept), other), other=True)
    if top is None and rule.type is None:
        check_cardinality(name, own)
    return Feature(name, type_, tuple(in_order))


def check_cardinality(name: str, values: Counter[Any]) -> None:
    distinct, n = len(values), values.total()
    if distinct == n > 2 or (distinct > MANY and 2 * distinct > n):
        raise TableError(
            "Column {column!r} has {what}, so it says nothing about clusters.",
            *(as_numbers(list(values)) or as_bag(name, list(values))),
            *leave_out(name),
            Advice('keep its most frequent values and "other" with {}', Setting("top_values", 10, column=name)),
            Advice("insist with {}", Setting("feature_types", "category", column=name)),
            column=name,
            what=f"as many values as cases ({n})" if distinct == n else f"{distinct} different values in {n} cases",
        )


def stray_word(values: Sequence[Any]) -> str | None:
    """A word among numbers that are too many to be codes."""
    words = [value for value in values if isinstance(value, str)]
    strays = [value for value in words if not spells_number(value)]
    n = len(words) - len(strays)
    return min(strays) if n > FEW_INTEGERS and strays and n >= NUMBERS_PER_WORD * len(strays) else None


def spells_number(value: str) -> bool:
    try:
        return bool(np.isfinite(float(value)))
    except ValueError:
        return False


def as_numbers(values: Sequence[Any]) -> tuple[Advice, ...]:
    """What to do if a word, or a decimal comma, makes words of numbers."""
    commas = sum(DECIMAL_COMMA.fullmatch(value) is not None for value in values if isinstance(value, str))
    if 2 * commas > len(values):
        return (Advice("if these are numbers with a decimal comma, write them with a point"),)
    stray = stray_word(values)
    if stray is None:
        return ()
    shown = brief(stray).replace("{", "{{").replace("}", "}}")
    return (Advice(f"most values are numbers: if {shown} means missing, say so with {{}}", Setting("missing_values", stray)),)


def as_bag(name: str, values: Sequence[Any]) -> tuple[Advice, ...]:
    """What to do with texts and with lists in words, if most values look like some."""
    words = [value for value in values if isinstance(value, str)]
    found = {separator: sum(separator in value for value in words) for separator in SEPARATORS}
    separator, times = max(found.items(), key=lambda each: each[1])
    texts = sum(value.count(" ") >= WORDS_OF_A_TEXT - 1 for value in words)
    if 2 * texts > len(values):
        return (Advice("if it holds texts, read their words with {}", Setting("texts", name)),)
    if 2 * times > len(values):
        return (Advice("if it holds lists, read their items with {}", Setting("bags", separator, column=name)),)
    return ()


def leave_out(name: str) -> tuple[Advice, ...]:
    """What to do with an identifier."""
    return (
        Advice("leave it out with {}", Setting("feature_types", "drop", column=name)),
        Advice("name the cases by it, too, with {}", Setting("case_names", ColumnOf(name), of="")),
    )


def learn_numbers(name: str, parts: Sequence[Numbers], rule: Rule) -> Learned:
    """Few integers, and those that look like codes, are values of their own; other numbers are binned."""
    check_finite(name, *(part.values for part in parts))
    distinct = np.unique(np.concatenate([part.values for part in parts]))
    whole = bool((distinct == np.floor(distinct)).all()) and max(abs(int(distinct[0])), abs(int(distinct[-1]))) < INT64
    if rule.type == "integer" and not whole:
        odd = distinct[(distinct != np.floor(distinct)) | (abs(distinct.astype(float)) >= INT64)][0]
        raise TableError("Column {column!r} is to be read as integer, but has the value {value:g}.", column=name, value=odd)
    own = parts[0]
    type_, doubtful = rule.type or "number", False
    if rule.type is None and whole:
        if (own.times == 1).all():
            check_identifier(name, own.values, round(len(own.values) / own.share))
        type_, doubtful = guess_whole(own.values, own.times, len(distinct))
    if type_ == "integer":
        return Learned(Feature(name, "integer", tuple(int(value) for value in distinct)))
    edges = find_edges(rule.bins, own, distinct)
    return Learned(Feature(name, "number", intervals(edges, whole), edges), doubtful)


def check_identifier(name: str, own: np.ndarray, n: int) -> None:
    """Refuse row numbers, and n numbers of which none occurs twice although many would if they were measured.

    Of n random numbers out of R, n (n - 1) / 2R pairs are equal on average.
    """
    R = int(own[-1]) - int(own[0]) + 1
    if n >= ID_FROM and (n == R or n * (n - 1) > 2 * R * LUCKY_PAIRS):
        raise TableError(
            "Column {column!r} has as many values as cases ({n}){like}, so it says nothing about clusters.",
            *leave_out(name),
            Advice("insist with {}", Setting("feature_types", "number", column=name)),
            column=name,
            n=n,
            like=" and counts them like a row number" if n == R else ", whole numbers like those of an identifier",
        )


def guess_whole(values: np.ndarray, times: np.ndarray, distinct: int) -> tuple[str, bool]:
    """(type, doubtful) of whole numbers: codes have many cases each and often gaps between them, measures do not."""
    n = int(times.sum())
    if distinct <= FEW_INTEGERS and distinct <= max(2, n // 2):
        return "integer", False
    if distinct * CASES_PER_CODE > n:
        return "number", False
    common = 2 * times * len(values) >= n  # half as many cases as the average, or more
    gaps = has_gaps(values, values[common])
    if gaps and distinct <= MANY:
        return "integer", False
    low, high = int(values[0]), int(values[-1])
    like_postcodes = gaps and 2 < len(str(abs(low))) == len(str(abs(high)))
    return "number", like_postcodes or (distinct <= MANY and high - low < 2 * distinct)


def has_gaps(values: np.ndarray, common: np.ndarray) -> bool:
    """Does no case have some whole number that lies between common ones?"""
    within = (values >= common[0]) & (values <= common[-1])
    return int(within.sum()) <= int(common[-1]) - int(common[0])


def find_edges(bins: Bins, own: Numbers, distinct: np.ndarray) -> tuple[float, ...]:
    """Where the bins of a column meet. An edge belongs to the bin above it."""
    way, n = bins
    if way == "edges":
        given: tuple[float, ...] = n
        return given
    t = np.linspace(0, 1, n + 1)[1:-1]
    lowest, *rest = distinct[:2]
    if way == "uniform":
        low, high = float(lowest), float(distinct[-1])
        edges = np.unique(low * (1 - t) + high * t)  # the difference of two large numbers may be infinite
        return tuple(float(edge) for edge in edges[edges > low])
    cuts = own.quantiles(t)  # values that occur: no bin is empty
    edges = np.unique(cuts[cuts > lowest])
    if rest and cuts[0] == lowest:  # so many cells are the minimum, often 0, that it gets a bin of its own
        edges = np.append(rest, edges[1:])
    return tuple(float(edge) for edge in edges)


def learn_counts(name: str, columns: Sequence[AnyColumn | Column], rule: Rule, markers: Sequence[Marker]) -> Feature:
    """Absent or present; or 0, 1, …, the last one standing for all larger counts."""
    largest = 1
    for column in columns:
        if isinstance(column, SparseColumn):
            check_sparse_markers(markers)
            counts = column.values
        else:
            read = column if isinstance(column, Column) else plain(column, name, markers)
            counts = forced_numbers(name, read, "count").observed
            check_finite(name, counts)
        if rule.max_count > 1 and not is_count(counts).all():
            raise TableError(
                "Column {column!r} has the value {value:g}, which is no count.",
                Advice("use {} for absent (zero) and present (anything else)", Setting("max_count", 1)),
                column=name,
                value=counts[~is_count(counts)][0],
            )
        largest = max(largest, int(counts.max(initial=0)) if rule.max_count > 1 else 1)
    if rule.max_count == 1:
        return Feature(name, "count", (False, True))
    largest = min(largest, rule.max_count)
    return Feature(name, "count", (*range(largest), f"{largest}+"))


def check_sparse_markers(markers: Sequence[Marker]) -> None:
    numbers = [marker for marker in markers if not isinstance(marker, str)]
    if numbers:
        raise TableError(
            "{parameter} has the number {value!r}, but a sparse matrix has no missing cells.",
            parameter="missing_values",
            value=numbers[0],
        )


def is_count(values: np.ndarray) -> np.ndarray:
    return np.asarray((values >= 0) & (values == np.floor(values)))


def check_finite(name: str, *parts: np.ndarray) -> None:
    if any(np.isinf(part).any() for part in parts if part.dtype.kind == "f"):
        raise TableError(INFINITE, column=name)


def sortable(value: Value) -> tuple[int, Any, str]:
    """Numbers by size, then words."""
    return (0, value, "") if isinstance(value, Real) and not isinstance(value, bool) else (1, 0, str(value))


def forced_numbers(name: str, column: Column, type_: str, *ways: Advice) -> Column:
    """The column as numbers, because the user says so; a word that is no number is an error, with these ways out."""
    numbers = to_numbers(column)
    lost = numbers.missing & ~column.missing
    if lost.any():
        value = column.values[lost][0]
        raise TableError(
            "Column {column!r} is to be read as {type}, but has the value {value!r}, which is not a number.",
            *ways,
            Advice("if it means missing, say so with {}", Setting("missing_values", value)),
            column=name,
            type=type_,
            value=value,
        )
    return numbers


def to_numbers(column: Column) -> Column:
    """Numbers as they are, booleans as 0 and 1, words that spell a finite number as that number, else missing."""
    if column.numeric:
        return column
    numbers = [None if gone else spelled(v) for v, gone in zip(column.values, column.missing, strict=True)]
    missing = np.fromiter((number is None for number in numbers), dtype=bool, count=len(numbers))
    known = [number for number in numbers if number is not None]
    exact = all(isinstance(number, int) and abs(number) < INT64 for number in known)
    large = exact and any(abs(number) > EXACT for number in known)  # which floats cannot tell apart
    values = np.full(len(numbers), 0 if large else np.nan, dtype=np.int64 if large else float)
    values[~missing] = known
    return Column(values, missing)


def spelled(value: Any) -> int | float | None:
    """The finite number that a word spells; a whole one is exact within 64 bits."""
    for kind in (int, float):
        try:
            number = kind(value)
        except (TypeError, ValueError):
            continue
        if abs(number) < (INT64 if kind is int else np.inf):
            return number
    return None


def intervals(edges: Sequence[float], whole: bool = False) -> tuple[str, ...]:
    """Words for the bins between the edges. Between whole numbers "3 to 5" ends with 5; else it ends before 5."""
    if not edges:
        return ("any",)
    if whole and all(edge == np.floor(edge) and abs(edge) < EXACT for edge in edges):
        cuts = [int(edge) for edge in edges]
        middle = [str(low) if low == high - 1 else f"{low} to {high - 1}" for low, high in itertools.pairwise(cuts)]
        return (f"below {cuts[0]}", *middle, f"{cuts[-1]} or more")
    for digits in range(4, 18):
        shown = [short(edge, digits) for edge in edges]
        if len(set(shown)) == len(shown):
            break
    middle = [f"{low} to {high}" for low, high in itertools.pairwise(shown)]
    return (f"below {shown[0]}", *middle, f"{shown[-1]} or more")


def short(number: float, digits: int) -> str:
    """A number in so many digits, but never fewer than its whole part has, as people write it."""
    if not 1e-4 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    digits = max(digits, len(str(int(abs(number)))))
    return np.format_float_positional(number, precision=digits, unique=False, fractional=False, trim="-")


# --- codes ---------------------------------------------------------------------------------------------------------------


def local_codes(feature: Feature, column: Column) -> np.ndarray:
    """Codes 0 .. V_j - 1 of one column; -1 for missing and for values never seen."""
    if feature.type in ("category", "ordered"):
        return word_codes(feature, as_known(feature.values, column))
    numbers = to_numbers(column)
    codes, seen = np.full(len(numbers.values), -1, dtype=np.int64), ~numbers.missing
    codes[seen] = number_codes(feature, numbers.values[seen])
    if not column.numeric:  # words such as "18 to 64" or "3+", from cases that the model has shown
        shown = {value: k for k, value in enumerate(feature.values) if isinstance(value, str)}
        own = [-1 if gone else shown.get(v, -1) for v, gone in zip(column.values, column.missing, strict=True)]
        codes = np.maximum(codes, own)
    return codes


def number_codes(feature: Feature, observed: np.ndarray) -> np.ndarray:
    if feature.type == "integer":
        values = np.array(feature.values)
        at = np.searchsorted(values, observed).clip(max=len(values) - 1)
        return np.where(values[at] == observed, at, -1)
    check_finite(feature.name, observed)
    return count_codes(feature, observed) if feature.type == "count" else np.searchsorted(feature.edges, observed, side="right")


def word_codes(feature: Feature, column: Column) -> np.ndarray:
    codes = np.full(len(column.values), -1, dtype=np.int64)
    code = {word(value): k for k, value in enumerate(feature.values[: len(feature.values) - feature.other])}
    rest = len(feature.values) - 1 if feature.other else -1
    codes[~column.missing] = [code.get(v if type(v) is str else word(v), rest) for v in labels(column)]
    return codes


def count_codes(feature: Feature, observed: np.ndarray) -> np.ndarray:
    """Any value but zero is present; counts go up to the last value; what is no count was never seen."""
    top = len(feature.values) - 1
    if feature.values == (False, True):
        return np.asarray(observed != 0, dtype=np.int64)
    return np.where(is_count(observed), np.minimum(observed, top), -1).astype(np.int64)


def as_known(values: Iterable[Value], column: Column) -> Column:
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
