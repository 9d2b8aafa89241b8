"""What columns hold: their different values, how often each occurs, and where. Of whole numbers within a small range, booleans,
categories and words, no cell becomes a Python object, and nothing is sorted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..parallel import Part, Result, each
from ..state import chunks
from .tables import AnyColumn, Column, Marker, SparseColumn, categories_of, plain

FEW = 1 << 8  # so many different values are always few
MOST = 1 << 16  # and so many never more than that
CELLS_PER_VALUE = 4  # on average, at least, of columns with more than a few values
CELLS = 1 << 19  # that are looked at together: columns of one array share its cache lines
OF_MATRIX = 1 << 16  # that are looked at together if columns are a matrix
MANY = 1 << 24  # that are worth threads, with which the memory of their temporaries stays
FEW_CELLS = 1 << 20  # fewer columns are looked at one by one


class Seen(NamedTuple):
    """What a column holds: its values, each once, and how often."""

    column: Column  # of the values; none is missing
    times: np.ndarray  # (values,) of each
    share: float = 1.0  # of its different numbers that are here, if they are too many to be held

    @property
    def own(self) -> Counter[Any]:
        """How often each value occurs: a word, a boolean or a plain number."""
        return Counter(dict(zip(labels(self.column), self.times.tolist(), strict=True)))


def labels(column: Column) -> list[Any]:
    """The observed values of a column: words, booleans, or plain numbers."""
    observed = column.observed
    if not column.numeric:
        return list(observed.tolist())
    return [int(value) if value == np.floor(value) else value for value in observed.tolist()]


def seen(column: Column) -> Seen:
    """What a whole column holds."""
    observed = column.observed
    if column.numeric:
        values, times = np.unique(observed, return_counts=True)
    else:
        counted = Counter(observed.tolist())  # in the order of their first cases
        values, times = np.fromiter(counted, object, count=len(counted)), np.fromiter(counted.values(), np.int64)
    return Seen(column._replace(values=values, missing=np.zeros(len(values), dtype=bool)), times)


# --- columns of few values -----------------------------------------------------------------------------------------------


class Coded(NamedTuple):
    """A column whose cell i is values[cells[i] − low]; or values[0], a missing one, if that is NaN."""

    cells: np.ndarray  # (cases,) whole numbers, floats perhaps
    low: int
    values: Column  # those within the range, whether a cell has them or not

    def places(self, rows: slice) -> np.ndarray:
        """(rows,) The place of each cell's value."""
        cells: np.ndarray = self.cells[rows]
        if cells.dtype.kind == "f":
            cells = cells - cells.dtype.type(self.low)
            cells[cells != cells] = 0
            return cells.astype(np.intp)
        if cells.dtype != np.uint8 or self.low:
            cells = cells.astype(np.intp)
        if self.low:
            cells -= self.low
        return cells


def code_columns(columns: Sequence[AnyColumn], names: Sequence[str], markers: Sequence[Marker]) -> list[Coded | None]:
    """The columns that have few values, as Coded; None for each of the others."""
    found: list[Coded | None] = [None] * len(columns)
    numbers: dict[int, np.ndarray] = {}
    words = [
        (k, column)
        for k, column in enumerate(columns)
        if isinstance(column, nw.Series) and column.dtype in (nw.Categorical, nw.Enum, nw.String)
    ]
    n_cases = len(words[0][1]) if words else 0
    for (k, _), coded in zip(words, by_column(lambda word: code_words(word[1], markers), words, n_cases), strict=True):
        found[k] = coded
    of_words = {k for k, _ in words}
    for k, column in enumerate(columns):
        if k in of_words:
            continue
        if isinstance(column, nw.Series):
            if not (column.dtype.is_numeric() or column.dtype == nw.Boolean) or column.null_count():
                continue
            column = column.to_numpy()
        if isinstance(column, SparseColumn) or column.dtype.kind not in "biuf" or column.dtype in (np.float16, np.longdouble):
            continue
        if column.dtype.kind == "b":
            found[k] = Coded(column.view(np.uint8), 0, plain(np.array([False, True]), names[k], markers))
        else:
            numbers[k] = column
    for (k, cells), (low, high) in zip(numbers.items(), ranges([*numbers.values()]), strict=True):
        if is_few(high - low + 1, len(cells)):
            found[k] = code_numbers(cells, low, high, names[k], markers)
    return found


def in_parts(work: Callable[[slice], Result], n: int, width: int, cells: int | None = None) -> list[Result]:
    """What comes of some rows at a time, on threads if there are many cells."""
    parts = chunks(n, width, CELLS if cells is None else cells)
    return each(work, parts) if n * width >= MANY else [work(part) for part in parts]


def by_column(work: Callable[[Part], Result], columns: Sequence[Part], n: int) -> list[Result]:
    """What comes of each of some columns of n cells, on threads if there are many cells."""
    return each(work, columns) if n * len(columns) >= FEW_CELLS else [work(column) for column in columns]


def is_few(n_values: int, n_cells: int) -> bool:
    return 0 < n_values <= min(max(FEW, n_cells // CELLS_PER_VALUE), MOST)


def as_matrix(columns: Sequence[np.ndarray]) -> np.ndarray | None:
    """Columns of whole numbers that lie side by side in one array: what is done to all of them at once takes less time."""
    first, *rest = columns
    at, step = first.__array_interface__["data"][0], first.itemsize
    if first.dtype.kind not in "iu" or first.dtype == np.uint64 or not rest or first.strides[0] < step * len(columns):
        return None
    for k, column in enumerate(rest, start=1):
        same = column.dtype == first.dtype and column.strides == first.strides and len(column) == len(first)
        if not same or column.__array_interface__["data"][0] != at + k * step:
            return None
    return as_strided(first, (len(first), len(columns)), (first.strides[0], step), writeable=False)


def ranges(columns: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """(lowest, highest) number of each column; lowest above highest if it has others than whole ones, or none."""
    if columns and len(columns[0]) and (matrix := as_matrix(columns)) is not None:
        found = in_parts(lambda rows: (matrix[rows].min(axis=0), matrix[rows].max(axis=0)), len(matrix), len(columns))
        least_most = np.array(found)
        return list(zip(least_most[:, 0].min(axis=0).tolist(), least_most[:, 1].max(axis=0).tolist(), strict=True))
    bounds = [np.iinfo(column.dtype) if column.dtype.itemsize == 1 else None for column in columns]  # of a byte: all there are
    low: list[Any] = [of and of.min for of in bounds]
    high: list[Any] = [of and of.max for of in bounds]
    whole, wider = [True] * len(columns), [k for k, column in enumerate(columns) if column.dtype.itemsize > 1]

    def look(rows: slice) -> list[tuple[int, int, int]]:
        """(column, lowest, highest) of those that have whole numbers so far, and some here."""
        found = []
        for k in wider:
            if not whole[k]:
                continue
            cells = np.ascontiguousarray(columns[k][rows])  # minima and maxima are faster so
            if cells.dtype.kind == "f":
                cells = cells[cells == cells]
                if not (np.abs(cells) < MOST).all() or not (cells == np.floor(cells)).all():  # so far from 0, at most
                    whole[k] = False
                    continue
            if len(cells):
                found.append((k, int(cells.min()), int(cells.max())))
        return found

    for known in in_parts(look, len(columns[0]), len(wider)) if wider else []:
        for k, least, most in known:
            low[k] = least if low[k] is None else min(low[k], least)
            high[k] = most if high[k] is None else max(high[k], most)
    return [(a, b) if ok and a is not None else (1, 0) for a, b, ok in zip(low, high, whole, strict=True)]


def code_numbers(cells: np.ndarray, low: int, high: int, name: str, markers: Sequence[Marker]) -> Coded:
    if cells.dtype.kind == "f":
        values = np.append(np.nan, np.arange(low, high + 1)).astype(cells.dtype)
        return Coded(cells, low - 1, plain(values, name, markers))
    values = np.array([*range(low, high + 1)], dtype=cells.dtype)
    return Coded(cells, low - (low > np.iinfo(np.intp).max) * 2**64, plain(values, name, markers))


def code_words(column: nw.Series[Any], markers: Sequence[Marker]) -> Coded | None:
    """A column of categories or words. The first of its values stands for cells that are missing."""
    native: Any = column.to_native()
    if column.dtype == nw.Categorical and hasattr(getattr(native, "cat", None), "codes"):  # of pandas
        cells, known = native.cat.codes.to_numpy(), native.cat.categories.tolist()
    else:
        try:
            arrow: Any = column.to_arrow()
            coded = arrow if hasattr(arrow.type, "index_type") else arrow.dictionary_encode()
            coded = coded.combine_chunks() if hasattr(coded, "chunks") else coded  # as of frames that pandas has joined
        except (ImportError, ValueError, TypeError):
            return None  # no pyarrow, or words that it cannot take
        cells, known = coded.indices, coded.dictionary.to_pylist()
        if not all(isinstance(value, str) for value in known):
            return None
    words = [str(value) for value in known]
    if not is_few(len(words) + 1, len(cells)) or len(set(words)) < len(words):
        return None
    if not isinstance(cells, np.ndarray):
        cells = cells.cast("int32").fill_null(-1).to_numpy().astype(np.min_scalar_type(-len(words) - 1))
    marks = {str(mark) for mark in markers if isinstance(mark, str) or column.dtype != nw.String}
    values = np.fromiter([None, *words], dtype=object, count=len(words) + 1)
    missing = np.array([True, *(word in marks for word in words)])
    if column.dtype == nw.String:
        return Coded(cells, -1, Column(values, missing))
    return Coded(cells, -1, Column(values, missing, *categories_of(column, markers)))


def count_values(columns: Sequence[Coded | None]) -> list[Seen | None]:
    """What these columns hold; None for None. Words are in the order of their first cases, as `seen` has them."""
    known = [
        (k, column, np.zeros(len(column.values.values), np.int64)) for k, column in enumerate(columns) if column is not None
    ]
    order: dict[int, list[int]] = {k: [] for k, column, _ in known if not column.values.numeric}
    matrix = as_matrix([column.cells for _, column, _ in known]) if known else None
    ends = np.cumsum([len(times) for _, _, times in known])
    at = [end - len(times) - column.low for end, (_, column, times) in zip(ends.tolist(), known, strict=True)]
    first = np.array([place % 2**64 for place in at], dtype=np.uint64).view(np.int64)  # sums are modulo 2⁶⁴

    def count(rows: slice) -> list[np.ndarray]:
        if matrix is None:
            return [np.bincount(column.places(rows), minlength=len(times)) for _, column, times in known]
        return np.split(np.bincount((matrix[rows] + first).reshape(-1), minlength=ends[-1]), ends[:-1])

    size = CELLS if matrix is None else OF_MATRIX
    shape = (len(known[0][1].cells), len(known)) if known else (0, 0)
    for rows, counts in zip(chunks(*shape, size), in_parts(count, *shape, size), strict=True):
        for (k, column, times), here in zip(known, counts, strict=True):
            if k in order and (new := np.flatnonzero((times == 0) & (here > 0))).size:
                places = column.places(rows)
                order[k] += sorted(new.tolist(), key=lambda place: int(np.argmax(places == place)))
            times += here
    found: list[Seen | None] = [None] * len(columns)
    for k, column, times in known:
        held = np.array(order[k], dtype=np.intp) if k in order else np.flatnonzero(times)
        held = held[~column.values.missing[held]]
        values = column.values._replace(values=column.values.values[held], missing=np.zeros(len(held), dtype=bool))
        found[k] = Seen(values, times[held])
    return found
