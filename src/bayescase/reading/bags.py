"""Bags, features with any number of items per case: lists, texts or columns of counts → how often each case has each item."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse

from ..errors import Advice, Setting, TableError, TableTypeError, TableWarning
from ..state import Cells
from .features import SEPARATORS, Feature, check_finite, check_sparse_markers, forced_numbers, is_count
from .rules import Items
from .tables import INFINITE, LISTS, AnyColumn, Marker, SparseColumn, holds_items, is_marked, is_missing, plain, stack, word

MOST_CELLS = 2**31 - 1  # cells of a cluster are counted in 32 bits
UNSEEN, IGNORED = -1, -2  # in place of the codes of items

Counts: TypeAlias = scipy.sparse.csr_array  # (cases, items), without stored zeros
Cut: TypeAlias = Callable[[str], list[str]]


class LearnedBag(NamedTuple):
    """A bag, which of its columns are kept, and what a person should know of it."""

    feature: Feature
    kept: list[int]
    note: TableWarning | None


class Wishes(NamedTuple):
    """What is asked of the items of a bag."""

    least: int = 1  # cases that an item must be in
    stop_words: list[str] | str | None = None  # words of texts that are no items
    markers: Sequence[Marker] = ()  # items that mean nothing


# --- learning ------------------------------------------------------------------------------------------------------------


def learn_bag(how: Items, names: Sequence[str], tables: Sequence[Sequence[AnyColumn]], wishes: Wishes) -> LearnedBag:
    """The bag of these columns of the table, with the same columns of the catalogue perhaps after them."""
    tally = ItemTally(how, names, wishes)
    return tally.learned([tally.count(columns) for columns in tables])


class ItemCodes(dict[str, int]):
    """Gives a new item the next code."""

    def __missing__(self, item: str) -> int:
        return self.setdefault(item, len(self))


class ItemTally:
    """The items of a bag, as they are found, and in how many cases each is."""

    def __init__(self, how: Items, names: Sequence[str], wishes: Wishes):
        self.how, self.names, self.wishes = how, names, wishes
        self.code = ItemCodes()

    def count(self, columns: Sequence[AnyColumn]) -> np.ndarray:
        """(items so far,) In how many of these cases each item is."""
        if self.how.source == "columns":
            matrix = count_columns(self.names, columns, self.wishes.markers, learning=True)
        else:
            cut = cut_of(self.how.source, self.how.separator, self.wishes.stop_words)
            cells = cells_of(self.names[0], columns[0], self.wishes.markers, cut, learning=True)
            matrix, _ = count_cells(cells, self.code)
        return np.bincount(matrix.indices, minlength=matrix.shape[1])

    def learned(self, tables: Sequence[np.ndarray]) -> LearnedBag:
        """The bag, from what `count` found in the table, and perhaps in the catalogue."""
        how, least = self.how, self.wishes.least
        items = list(self.names if how.source == "columns" else self.code)
        cases = np.max([np.pad(counts, (0, len(items) - len(counts))) for counts in tables], axis=0)
        kept = np.flatnonzero(cases >= least).tolist()
        check_some(how.bag, kept, int(cases.max(initial=0)), least, how.source != "columns")
        left_out = [items[k] for k in np.flatnonzero(cases < least)]
        note = note_on(how.bag, len(left_out), len(items), least) if left_out else None
        if how.source != "columns":
            kept.sort(key=items.__getitem__)
        feature = Feature(
            how.bag,
            "bag",
            tuple(items[k] for k in kept),
            source=how.source,
            separator=how.separator,
            left_out=tuple(sorted(left_out)) if how.source == "lists" else (),
        )
        return LearnedBag(feature, kept if how.source == "columns" else [0], note)


def check_some(name: str, kept: Sequence[int], most: int, least: int, in_cells: bool) -> None:
    """in_cells: the bag is a column, which can be left out."""
    if most == 0:
        leave_out = Advice("leave it out with {}", Setting("feature_types", "drop", column=name))
        raise TableError("The bag {column!r} has no item at all.", *([leave_out] if in_cells else []), column=name)
    if not kept:
        raise TableError(
            "No item of {column!r} is in {least} cases: the most common one is in {most}.",
            Advice("use {} or less", Setting("min_cases", most)),
            column=name,
            least=least,
            most=most,
        )


def note_on(name: str, n: int, total: int, least: int) -> TableWarning:
    return TableWarning(
        "{n} of the {total} items of {column!r} {verb} in {few} and left out.",
        n=f"{n:,}",
        total=f"{total:,}",
        column=name,
        verb="is" if n == 1 else "are",
        few="no case" if least == 1 else f"fewer than {least} cases",
    )


# --- counting ------------------------------------------------------------------------------------------------------------


def count_items(feature: Feature, columns: Sequence[AnyColumn], markers: Sequence[Marker]) -> tuple[Counts, int]:
    """(how often each case has each item, how often cases have items never seen)."""
    if feature.source == "columns":
        return count_columns(feature.items, columns, markers), 0
    other = IGNORED if feature.source == "texts" else UNSEEN  # new texts have new words
    code = defaultdict(lambda: other, ((item, k) for k, item in enumerate(feature.items)))
    code |= dict.fromkeys(feature.left_out, IGNORED)
    cut = cut_of(feature.source, feature.separator)
    return count_cells(cells_of(feature.name, columns[0], markers, cut), code, len(feature.values))


def count_columns(
    names: Sequence[str], columns: Sequence[AnyColumn], markers: Sequence[Marker], learning: bool = False
) -> Counts:
    """Columns of counts, of zeros and ones or of booleans, as counts; what is missing is none."""
    matrix = stack([item_column(name, column, markers, learning) for name, column in zip(names, columns, strict=True)])
    wrong = np.flatnonzero(~is_count(matrix.data))
    if len(wrong):
        raise TableError(
            "Column {column!r} has the value {value:g}, which does not count an item of a bag.",
            Advice("give counts, not weights such as tf-idf"),
            Advice("read columns as absent (zero) or present (anything else) with {}", Setting("feature_types", "count")),
            column=names[matrix.indices[wrong[0]]],
            value=matrix.data[wrong[0]],
        )
    total = matrix.data.sum(dtype=float)
    if total > MOST_CELLS:
        raise TableError(
            "Columns {column!r} and so on count {total:.2g} items in all, more than can be computed with; these are hardly "
            "counts.",
            Advice("read columns as absent (zero) or present (anything else) with {}", Setting("feature_types", "count")),
            column=names[0],
            total=total,
        )
    return matrix.astype(np.int64)


def item_column(name: str, column: AnyColumn, markers: Sequence[Marker], learning: bool) -> SparseColumn:
    if isinstance(column, SparseColumn):
        check_sparse_markers(markers)
        return column
    of_its_own = Advice(
        "if it is no item, make it a feature of its own with {}", Setting("feature_types", "category", column=name)
    )
    ways = [of_its_own] if learning else []  # of a fitted model nothing can be changed
    numbers = forced_numbers(name, plain(column, name, markers), "counts of an item", *ways)
    check_finite(name, numbers.observed)
    rows = np.flatnonzero(~numbers.missing & (numbers.values != 0))
    return SparseColumn(rows, numbers.values[rows], len(numbers.values))


def count_cells(cells: Iterable[Iterable[str]], code: dict[str, int], n_items: int | None = None) -> tuple[Counts, int]:
    """(counts by the codes of the items, number of those unseen). `code` may give new items new codes."""
    codes, ends = array("i"), array("q", [0])
    for items in cells:
        codes.extend(map(code.__getitem__, items))
        ends.append(len(codes))
    columns, rows = np.array(codes), np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    known = columns >= 0
    shape = (len(ends) - 1, len(code) if n_items is None else n_items)
    ones = np.ones(int(known.sum()), dtype=np.int64)
    return scipy.sparse.coo_array((ones, (rows[known], columns[known])), shape).tocsr(), int((columns == UNSEEN).sum())


# --- items of cells ------------------------------------------------------------------------------------------------------


def cut_of(source: str, separator: str, stop_words: list[str] | str | None = None) -> Cut | None:
    """What makes items of a cell that is a word; None if cells are lists."""
    if source == "texts":
        from sklearn.feature_extraction.text import CountVectorizer

        analyse: Cut = CountVectorizer(stop_words=stop_words).build_analyzer()
        return lambda text: list(dict.fromkeys(analyse(text)))  # once: a word that was used is likely to be used again
    if separator:
        return lambda cell: [part for part in map(str.strip, cell.split(separator)) if part]
    return None


def cells_of(
    name: str, column: AnyColumn, markers: Sequence[Marker], cut: Cut | None, learning: bool = False
) -> Iterator[list[str]]:
    """The items of each case; none where the cell is missing."""
    for row, cell in enumerate(objects_of(column)):
        if holds_items(cell):
            items = repeated(cell, name, row) if isinstance(cell, dict) else cell
            yield list(words_of(items.tolist() if isinstance(items, np.ndarray) else items, name, row, markers))
        elif is_missing(cell) or is_marked(cell, markers):
            yield []
        elif cut is None or isinstance(cell, dict):
            separated = Advice("if it is several items, say what separates them with {}", Setting("bags", ";", column=name))
            as_fitted = Advice("give a list of its items, as in the fit")
            raise TableTypeError(
                "Column {column!r} is read as lists of items, but case {row} has {value!r}.",
                *([separated if learning else as_fitted] if isinstance(cell, str) else []),
                column=name,
                row=row,
                value=cell,
            )
        else:
            yield cut(word(cell))


def repeated(counts: dict[Any, Any], name: str, row: int) -> Iterator[Any]:
    """The items of a Counter, each as often as it says."""
    for item, times in counts.items():
        if is_missing(times):
            continue
        if not 0 <= times <= MOST_CELLS or times != int(times):
            raise TableError(
                "Column {column!r}, case {row}: {item!r} is there {value!r} times; counts of items are whole, 0 to {most:,}.",
                most=MOST_CELLS,
                column=name,
                row=row,
                item=item,
                value=times,
            )
        yield from repeat(item, int(times))


def words_of(items: Iterable[Any], name: str, row: int, markers: Sequence[Marker]) -> Iterator[str]:
    for item in items:
        if type(item) is str and not markers:
            if found := item.strip():
                yield found
        elif isinstance(item, (dict, *LISTS)):
            raise TableTypeError(
                "Column {column!r}, case {row}: an item must be a word or a number, not {value!r}.",
                column=name,
                row=row,
                value=item,
            )
        elif isinstance(item, float) and np.isinf(item):
            raise TableError(INFINITE, column=name, row=row)
        elif not is_missing(item) and not is_marked(item, markers) and (found := word(item).strip()):
            yield found


def objects_of(column: AnyColumn) -> list[Any]:
    if isinstance(column, nw.Series):
        return column.to_list()
    cells: list[Any] = (column.dense() if isinstance(column, SparseColumn) else column).tolist()
    return cells


def guess_separator(column: AnyColumn) -> str:
    """Of the usual separators the one in most cells; "" if no cell is a word."""
    cells = [cell for cell in objects_of(column) if isinstance(cell, str)]
    return max(SEPARATORS, key=lambda separator: sum(separator in cell for cell in cells)) if cells else ""


# --- cells ---------------------------------------------------------------------------------------------------------------


def to_cells(counts: Sequence[Counts], first_code: int, dtype: np.dtype[Any]) -> Cells:
    """Every occurrence of an item as a cell: rows in order, within a row by code. The bags' codes begin at first_code."""
    matrix = scipy.sparse.hstack(counts, format="csr") if len(counts) > 1 else counts[0]
    matrix.sort_indices()
    codes = np.repeat((matrix.indices + first_code).astype(dtype), matrix.data)
    return Cells(codes, np.concatenate([[0], np.cumsum(matrix.data)])[matrix.indptr].astype(np.int64))


def from_cells(bags: Cells, first_code: int, n_items: int) -> Counts:
    """The counts of the items of all bags, side by side."""
    ones, columns = np.ones(len(bags.codes), dtype=np.int64), bags.codes.astype(np.int64) - first_code
    matrix = scipy.sparse.csr_array((ones, columns, bags.first), shape=(len(bags.first) - 1, n_items))
    matrix.sum_duplicates()
    return matrix


def select_codes(bags: Cells, first_code: int, n_items: int) -> Cells:
    """The cells of one bag, with its own codes 0, 1, …"""
    codes = bags.codes.astype(np.int64) - first_code
    own = (codes >= 0) & (codes < n_items)
    return Cells(codes[own], np.concatenate([[0], np.cumsum(own)])[bags.first])


def items_of_rows(bags: Cells, items: Sequence[str], first_code: int) -> Iterator[tuple[str, ...]]:
    """The items of each case in one bag."""
    own, words = select_codes(bags, first_code, len(items)), np.array(items, dtype=object)
    for part in np.split(words[own.codes], own.first[1:-1]):
        yield tuple(part)
