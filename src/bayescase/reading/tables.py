"""Any table → columns of plain NumPy, with the missing cells known."""

from __future__ import annotations

import datetime
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from numbers import Integral, Number, Real
from os import PathLike
from typing import Any, NamedTuple, Protocol, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse
from narwhals.stable.v2.typing import IntoDataFrame
from numpy.typing import ArrayLike

from ..errors import Advice, Setting, TableError, TableTypeError

NO_COLUMN = (  # braces that stay are doubled
    "X has no columns: if each case is a list of items, give {{'items': X}}; if each is a text, give {{'text': X}} with "
    "encoder={{'texts': 'text'}}."
)
INFINITE = "Column {column!r} contains infinity; only finite numbers and missing cells can be used."
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
LISTS = (list, tuple, set, frozenset, np.ndarray)  # cells that hold items of a bag; see also `holds_items`
NESTED = (dict, *LISTS)
EXACT = 2**53  # up to here floats tell whole numbers apart
INT64 = 2**63
DLPACK_CUDA = 2  # the number of such devices there

Marker: TypeAlias = str | int | float  # a word or a number that means missing
AnyColumn: TypeAlias = "np.ndarray | nw.Series[Any] | SparseColumn"


class Scanned(Protocol):
    """A dataset of pyarrow, which is read in parts."""

    def scanner(self, *args: Any, **kwargs: Any) -> Any: ...


class Delayed(Protocol):
    """A collection of Dask."""

    def to_delayed(self, *args: Any, **kwargs: Any) -> Any: ...


Matrix: TypeAlias = "ArrayLike | Sequence[Sequence[object]] | scipy.sparse.sparray | scipy.sparse.spmatrix"
TableLike: TypeAlias = "IntoDataFrame | Mapping[Any, Any] | Matrix | PathLike[str] | Scanned | Delayed"  # or a path as a str


class Table(NamedTuple):
    """Columns of any kind, side by side."""

    names: list[str] | None
    columns: list[AnyColumn]
    n_cases: int

    def name(self, j: int) -> str:
        return self.names[j] if self.names else f"x{j}"

    def select(self, wanted: Wanted, what: str) -> Table:
        """The columns that are features: by name if both sides have names, else by position. `what` names the table."""
        if not (self.names and wanted.named):
            if len(self.columns) != wanted.width:
                raise TableError("{parameter} has {n} features, but the data has {width}.", parameter=what,
                                 n=len(self.columns), width=wanted.width)  # fmt: skip
            return Table(wanted.names, [self.columns[j] for j in wanted.positions], self.n_cases)
        at = {name: j for j, name in enumerate(self.names)}
        lost = [name for name in wanted.names if name not in at]
        if lost:
            raise TableError("{parameter} has no {columns}.", parameter=what, columns=listed("column", lost), column=lost[0])
        return Table(wanted.names, [self.columns[at[name]] for name in wanted.names], self.n_cases)

    def take(self, rows: Sequence[int] | np.ndarray) -> Table:
        """Some of the cases, in the order of `rows`."""
        sparse = [column for column in self.columns if isinstance(column, SparseColumn)]
        taken = iter(split(stack(sparse)[rows])) if sparse else iter(())
        columns = [next(taken) if isinstance(column, SparseColumn) else column[rows] for column in self.columns]
        return self._replace(columns=columns, n_cases=len(rows))


class Wanted(NamedTuple):
    """The columns of the fit, as later tables must bring them, and which of them are features."""

    columns: list[str] | None  # names of all columns, None if there are none
    width: int  # how many columns there are
    positions: list[int]  # of those that features are made of: single features first, then the columns of bags
    own_names: bool = True  # did the table itself have the names?

    @property
    def named(self) -> bool:
        """Are columns found by name?"""
        return self.columns is not None

    @property
    def names(self) -> list[str]:
        """Of the columns at these positions; x0, x1, … if there are no names."""
        return [f"x{j}" if self.columns is None else self.columns[j] for j in self.positions]


class SparseColumn(NamedTuple):
    """One column of a sparse matrix: what is not stored is 0."""

    rows: np.ndarray
    values: np.ndarray  # nonzero
    n_cases: int

    def dense(self) -> np.ndarray:
        column = np.zeros(self.n_cases, dtype=self.values.dtype)
        column[self.rows] = self.values
        return column


def stack(columns: Sequence[SparseColumn]) -> scipy.sparse.csr_array:
    """Sparse columns side by side."""
    ends = np.cumsum([0, *(len(column.rows) for column in columns)])
    values, rows = (np.concatenate(parts) for parts in ([c.values for c in columns], [c.rows for c in columns]))
    return scipy.sparse.csc_array((values, rows, ends), shape=(columns[0].n_cases, len(columns))).tocsr()


def split(matrix: Any) -> list[SparseColumn]:
    """The columns of a sparse matrix that stores no zero."""
    by_column = matrix.tocsc()
    parts = (slice(a, b) for a, b in pairwise(by_column.indptr))
    return [SparseColumn(by_column.indices[part], by_column.data[part], matrix.shape[0]) for part in parts]


class Column(NamedTuple):
    """One column as plain NumPy: numbers, or objects that are strings or booleans."""

    values: np.ndarray
    missing: np.ndarray
    categories: tuple[Any, ...] | None = None  # known beforehand, in order
    ordered: bool = False  # does that order mean anything?

    @property
    def numeric(self) -> bool:
        return self.values.dtype.kind in "iuf"

    @property
    def observed(self) -> np.ndarray:
        """The cells that are not missing."""
        observed: np.ndarray = self.values[~self.missing]
        return observed


# --- reading -----------------------------------------------------------------------------------------------------------


def read(X: Any) -> Table:
    """A Table from a data frame (pandas, polars, pyarrow, …), a mapping of columns, an array, or a sparse matrix."""
    if isinstance(X, Table):
        return X
    if isinstance(X, (str, PathLike)):
        raise TableTypeError("X is a path, which only BayesianCaseModel reads; give the table, as read_file(path).table.")
    if is_on_gpu(X):
        X = copied_here(X)
    if scipy.sparse.issparse(X):
        return read_sparse(X)
    if isinstance(X, Mapping):
        columns = [one_column(column, name) for name, column in X.items()]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise TableError("The columns have different lengths: {lengths}.", lengths=sorted(lengths))
        return check_table(Table([str(name) for name in X], columns, lengths.pop() if lengths else 0))
    check_unique(getattr(X, "column_names", getattr(X, "columns", ())) if hasattr(X, "__dataframe__") else ())
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [unpacked(frame.get_column(name)) for name in frame.columns]
        return check_table(Table(names_of(frame.columns), columns, len(frame)))
    if hasattr(X, "collect"):
        raise TableTypeError("X is a {kind}, a table not yet computed: collect() it first.", kind=type(X).__name__)
    from sklearn.utils.validation import check_array

    array = as_array(X)
    check_no_bag(array)
    array = check_array(array, dtype=None, ensure_all_finite=False)
    return Table(None, [array[:, j] for j in range(array.shape[1])], array.shape[0])


def check_no_bag(array: Any) -> None:
    """Texts, or lists of items, without a column around them: scikit-learn would print them and advise to reshape them."""
    if len(array.shape) == 1 and any(isinstance(cell, (str, dict, *LISTS)) for cell in np.asarray(array, dtype=object)):
        raise TableError(NO_COLUMN)


def is_on_gpu(X: Any) -> bool:
    """Is it an array of CuPy, PyTorch, JAX, … in the memory of a GPU?"""
    if hasattr(type(X), "__cuda_array_interface__"):
        try:
            return X.__cuda_array_interface__ is not None
        except AttributeError:  # PyTorch says so of tensors that are here
            return False
    return hasattr(X, "__dlpack_device__") and X.__dlpack_device__()[0] == DLPACK_CUDA


def copied_here(X: Any) -> np.ndarray:
    try:
        import cupy
    except ImportError:
        raise TableTypeError(
            "X lies on a GPU, and reading it from there needs CuPy; copy it to this computer's memory first."
        ) from None
    array: np.ndarray = cupy.asnumpy(cupy.asarray(X) if hasattr(type(X), "__cuda_array_interface__") else cupy.from_dlpack(X))
    return array


def names_of(labels: Sequence[Any]) -> list[str] | None:
    """Labels that are words name the columns; numbers and tuples, pandas' stand-ins for names, do not."""
    words = [isinstance(label, str) for label in labels]
    if any(words) and not all(words):
        raise TableTypeError(
            "Feature names are only supported if all column names are strings: use X.columns.astype(str)."
        )  # scikit-learn's own first words
    return list(labels) if all(words) else None


def index_names(X: Any) -> list[str] | None:
    """Names of the cases from the index of a data frame: that of pandas, if it is made of words; else None."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    index = nw.maybe_get_index(frame) if isinstance(frame, nw.DataFrame) else None
    if index is None:
        return None
    labels = index.tolist()
    return labels if labels and all(isinstance(label, str) for label in labels) else None


def read_sparse(X: Any) -> Table:
    """The columns of a sparse matrix, in as much memory as its nonzero cells take."""
    if X.ndim != 2:
        raise TableError("Expected a 2D sparse array, got one of {n} dimensions.", n=X.ndim)
    if X.dtype.kind not in "biuf":
        raise TableError("Complex data not supported: the sparse matrix holds {dtype}.", dtype=X.dtype)
    matrix = X.tocsc()
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy() if matrix is X or np.shares_memory(matrix.data, X.data) else matrix
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        j = int(np.searchsorted(matrix.indptr, np.argmin(finite), side="right")) - 1
        raise TableError(
            "Column {column!r} of the sparse matrix contains NaN or infinity; a sparse matrix has no missing cells, what is "
            "not stored is absent.",
            column=f"x{j}",
        )
    return check_table(Table(None, [*split(matrix)], X.shape[0]))


def one_column(column: Any, name: Any) -> AnyColumn:
    """A column of a mapping: a data frame's series, an array or a list."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return unpacked(series)
    if isinstance(column, (list, tuple)) and any(holds_items(cell) for cell in column):
        return np.fromiter(column, dtype=object, count=len(column))
    array: np.ndarray = as_array(column)
    if array.ndim != 1:
        raise TableError("Column {column!r} must be a list of values, not {n}-dimensional.", column=str(name), n=array.ndim)
    return array


def unpacked(series: nw.Series[Any]) -> AnyColumn:
    """A series as it is, but a sparse one of pandas as a SparseColumn, or as an array if what it does not store is not 0."""
    cells: Any = getattr(series.to_native(), "array", None)
    if not hasattr(cells, "sp_index"):
        return series
    stored, rows = cells.sp_values, cells.sp_index.to_int_index().indices
    if cells.fill_value != 0 or not np.isfinite(stored).all():
        return np.asarray(cells)
    return SparseColumn(rows[stored != 0], stored[stored != 0], len(cells))


def holds_items(cell: Any) -> bool:
    """Is it a list, a set, a tuple or an array of items, or does it say how often it has each, as a Counter does?"""
    if isinstance(cell, dict):
        return all(isinstance(times, Real) or is_missing(times) for times in cell.values())
    return isinstance(cell, LISTS)


def has_lists(column: AnyColumn) -> bool:
    """Is there a cell that holds items?"""
    if isinstance(column, nw.Series):
        if column.dtype in (nw.List, nw.Array):
            return True
        return column.dtype in (nw.Object, nw.Unknown, nw.Struct) and any(map(holds_items, column.to_list()))
    return not isinstance(column, SparseColumn) and column.dtype == object and any(map(holds_items, column))


def as_array(values: Any) -> Any:
    """Lists and masked arrays as NumPy would not have them: words beside numbers and NaN stay apart, masked is missing."""
    if isinstance(values, np.ma.MaskedArray):
        objects = values.data.astype(object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    if hasattr(values, "shape"):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # NumPy speaks of inhomogeneous shapes
        words = any(isinstance(cell, str) for row in values if isinstance(row, LISTS) for cell in row)
        raise TableError(
            "The rows have different lengths; give every case a value or None for every feature.",
            *([Advice("if each row is a list of items, give {{'items': X}}")] if words else []),
        ) from None
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) and array.dtype.kind in "US" else array


def check_table(table: Table) -> Table:
    if not table.n_cases or not table.columns:
        raise TableError(
            "The table is empty: {cases} cases, {features} features.", cases=table.n_cases, features=len(table.columns)
        )
    check_unique(table.names or ())
    return table


def check_unique(names: Iterable[Hashable]) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise TableError("Column {column!r} is there more than once; a table needs unique column names.", column=twice[0])


def check_columns(table: Table, wanted: Wanted, estimator: str) -> None:
    """As scikit-learn does: names on one side only are a warning, another number of columns without names is an error."""
    if wanted.named and table.names:
        return  # matched by name
    if len(table.columns) != wanted.width:
        raise TableError(
            "{parameter} has {n} features, but {estimator} is expecting {width} features as input.",
            parameter="X",
            n=len(table.columns),
            estimator=estimator,
            width=wanted.width,
        )
    if wanted.named and wanted.own_names:
        warnings.warn(f"X does not have valid feature names, but {estimator} was fitted with feature names", stacklevel=4)
    elif table.names:
        warnings.warn(f"X has feature names, but {estimator} was fitted without feature names", stacklevel=4)


# --- one column ---------------------------------------------------------------------------------------------------------


def plain(column: AnyColumn, name: str, markers: Sequence[Marker] = ()) -> Column:
    """A Column from a NumPy array, a narwhals series or a SparseColumn; cells that equal a marker are missing."""
    if isinstance(column, nw.Series):
        return plain_series(column, name, markers)
    if isinstance(column, SparseColumn):
        column = column.dense()
    if column.dtype.kind in "iuf":
        missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
        return Column(column, missing | np.isin(column, [marker for marker in markers if not isinstance(marker, str)]))
    if column.dtype.kind in "mM":
        raise dates(name)
    if column.dtype.kind == "c":
        raise TableError("Complex data not supported: column {column!r}.", column=name)
    return plain_objects(column.astype(object), name, markers)


def plain_series(column: nw.Series[Any], name: str, markers: Sequence[Marker]) -> Column:
    dtype, missing = column.dtype, column.is_null().to_numpy()
    if dtype in (nw.Categorical, nw.Enum):
        marked = {str(marker) for marker in markers}
        words = np.full(len(column), None, dtype=object)
        words[~missing] = [str(value) for value in column.drop_nulls().to_list()]
        if marked:
            missing = missing | np.fromiter((word in marked for word in words), dtype=bool, count=len(words))
        return Column(words, missing, *categories_of(column, markers))
    if dtype.is_temporal():
        raise dates(name)
    if dtype.is_integer() or dtype.is_float():
        numbers = plain((column.fill_null(0) if missing.any() else column).to_numpy(), name, markers)
        return Column(numbers.values, numbers.missing | missing)
    objects = np.fromiter(column.to_list(), dtype=object, count=len(column))
    if dtype == nw.String:
        marks = {marker for marker in markers if isinstance(marker, str)}
        if marks:
            missing = missing | np.fromiter((value in marks for value in objects), dtype=bool, count=len(objects))
        return Column(objects, missing)
    return plain_objects(objects, name, markers)


def categories_of(column: nw.Series[Any], markers: Sequence[Marker]) -> tuple[tuple[str, ...], bool]:
    """(the categories of a column, in order, without those that mean missing; does that order mean anything?)."""
    marked = {str(marker) for marker in markers}
    categories = (str(value) for value in column.cat.get_categories().to_list())
    ordered = column.dtype == nw.Enum or getattr(getattr(column.to_native(), "type", None), "ordered", False)
    return tuple(word for word in categories if word not in marked), bool(ordered)


def plain_objects(objects: np.ndarray, name: str, markers: Sequence[Marker]) -> Column:
    """Objects are booleans, or numbers, or else words: a column that mixes them is words."""
    missing = np.fromiter((is_missing(value) or is_marked(value, markers) for value in objects), bool, count=len(objects))
    observed = objects[~missing]
    seen = {type(value) for value in observed}
    if seen and all(issubclass(kind, (bool, np.bool_)) for kind in seen):
        return Column(objects, missing, (False, True))
    if seen and all(issubclass(kind, (Real, Decimal)) for kind in seen):
        return plain_numbers(objects, missing, name)
    for value in observed:
        if isinstance(value, NESTED):
            raise TableTypeError(
                "Column {column!r}: argument must be a string or a number, got {kind}{ways}.",
                column=name,
                kind=type(value).__name__,
                ways="; give each key a column of its own, or whole counts if keys are items"
                if isinstance(value, dict)
                else "",
            )
        if isinstance(value, TIMES):
            raise dates(name)
        if isinstance(value, Real) and abs(value) == np.inf:
            raise TableError(INFINITE, column=name)
    words = np.full(len(objects), None, dtype=object)
    words[~missing] = [word(value) for value in observed]
    return Column(words, missing)


def plain_numbers(objects: np.ndarray, missing: np.ndarray, name: str) -> Column:
    """Numbers as floats. Whole numbers that floats cannot tell apart stay exact: in 64 bits, or else as words."""
    try:
        floats = np.where(missing, np.nan, objects).astype(float)
    except OverflowError:
        raise TableError("Column {column!r} has whole numbers that are too large to compute with.", column=name) from None
    observed = objects[~missing]
    if np.nanmax(np.abs(floats), initial=0) < EXACT or not all(is_integral(value) for value in observed):
        return Column(floats, missing)
    whole = [int(value) for value in observed]
    fits = all(-INT64 <= value < INT64 for value in whole)
    values = np.zeros(len(objects), dtype=np.int64) if fits else np.full(len(objects), None, dtype=object)
    values[~missing] = whole if fits else [str(value) for value in whole]
    return Column(values, missing)


def is_integral(value: Any) -> bool:
    """Written as a whole number: 3 or Decimal(3), but not 3.0."""
    return isinstance(value, Integral) or (isinstance(value, Decimal) and value.is_finite() and value == value.to_integral())


def dates(name: str) -> TableError:
    return TableError(
        "Column {column!r} holds dates or times; turn them into numbers (a year, days since the first) or categories (a "
        "weekday) first.",
        Advice("leave it out with {}", Setting("feature_types", "drop", column=name)),
        column=name,
    )


def is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Number, np.datetime64, np.timedelta64)) and bool(value != value)


def is_marked(value: Any, markers: Sequence[Marker]) -> bool:
    """Words match words, numbers match numbers; True is not 1 here."""
    if not markers or isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, Number)):
        return False
    return any(isinstance(marker, str) == isinstance(value, str) and marker == value for marker in markers)


def word(value: Any) -> str:
    """A value as a word, the same for 1 and 1.0: a column of integers with a gap comes back as floats."""
    if isinstance(value, (float, np.floating)) and value == np.floor(value):
        return str(int(value))
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def listed(noun: str, names: Sequence[Any], most: int = 5) -> str:
    """A noun and its names in a sentence."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{noun}{'s' * (len(names) > 1)} {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")
