"""Any table → columns of plain NumPy, with the missing cells known."""

import datetime
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number, Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse

INFINITE = "Column {!r} contains infinity; only finite numbers and missing cells can be used."
DATES = (
    "Column {!r} holds dates or times; turn them into numbers (a year, days since the first) or categories (a weekday) first, "
    "or leave it out with feature_types."
)
TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
NESTED = (dict, list, tuple, set, frozenset, np.ndarray)


class Table(NamedTuple):
    """Columns of any kind, side by side."""

    names: list[str] | None
    columns: list[Any]  # narwhals series, NumPy arrays, or SparseColumns
    n_cases: int

    def name(self, j):
        return self.names[j] if self.names else f"x{j}"

    def select(self, wanted, what):
        """The columns that a Wanted asks for: by name if both sides have names, else by position."""
        if not (self.names and wanted.named):
            if len(self.columns) != wanted.width:
                raise ValueError(f"{what} has {len(self.columns)} features, but the data has {wanted.width}.")
            return self._replace(names=wanted.names, columns=[self.columns[j] for j in wanted.positions])
        at = {name: j for j, name in enumerate(self.names)}
        lost = [name for name in wanted.names if name not in at]
        if lost:
            raise ValueError(f"{what} has no {listed('column', lost)}.")
        return self._replace(names=wanted.names, columns=[self.columns[at[name]] for name in wanted.names])

    def take(self, rows):
        """Some of the cases, in the order of `rows`."""
        columns = [column.take(rows) if isinstance(column, SparseColumn) else column[rows] for column in self.columns]
        return self._replace(columns=columns, n_cases=len(rows))


class Wanted(NamedTuple):
    """The columns of the fit that are features, as later tables must bring them."""

    named: bool
    names: list[str]
    positions: list[int]  # of the features among the columns of the fit
    width: int  # number of columns at the fit


class SparseColumn(NamedTuple):
    """One column of a sparse matrix: what is not stored is 0."""

    rows: np.ndarray
    values: np.ndarray  # nonzero
    n_cases: int

    def dense(self):
        column = np.zeros(self.n_cases, dtype=self.values.dtype)
        column[self.rows] = self.values
        return column

    def take(self, rows):
        column = self.dense()[rows]
        stored = np.flatnonzero(column)
        return SparseColumn(stored, column[stored], len(rows))


class Column(NamedTuple):
    """One column as plain NumPy: numbers, or objects that are strings or booleans."""

    values: np.ndarray
    missing: np.ndarray
    categories: tuple | None = None  # known beforehand, in order
    ordered: bool = False  # does that order mean anything?

    @property
    def numeric(self):
        return self.values.dtype.kind in "iuf"


# --- reading -----------------------------------------------------------------------------------------------------------


def read(X):
    """A Table from a data frame (pandas, polars, pyarrow, …), a mapping of columns, an array, or a sparse matrix."""
    if isinstance(X, Table):
        return X
    if scipy.sparse.issparse(X):
        return read_sparse(X)
    if isinstance(X, Mapping):
        columns = [one_column(column, name) for name, column in X.items()]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"The columns have different lengths: {sorted(lengths)}.")
        return check_table(Table([str(name) for name in X], columns, lengths.pop() if lengths else 0))
    check_unique(list(getattr(X, "column_names", getattr(X, "columns", ()))) if hasattr(X, "__dataframe__") else [])
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [frame.get_column(name) for name in frame.columns]
        return check_table(Table(names_of(frame.columns), columns, len(frame)))
    if hasattr(X, "collect"):
        raise TypeError(f"X is a {type(X).__name__}, a table not yet computed: collect() it first.")
    from sklearn.utils.validation import check_array

    X = check_array(as_array(X), dtype=None, ensure_all_finite=False)
    return Table(None, [X[:, j] for j in range(X.shape[1])], X.shape[0])


def names_of(labels):
    """Labels that are words name the columns; numbers and tuples, pandas' stand-ins for names, do not."""
    words = [isinstance(label, str) for label in labels]
    if any(words) and not all(words):
        raise TypeError("Feature names are only supported if all column names are strings: use X.columns.astype(str).")
    return list(labels) if all(words) else None


def read_sparse(X):
    """The columns of a sparse matrix, in as much memory as its nonzero cells take."""
    if X.ndim != 2:
        raise ValueError(f"Expected a 2D sparse array, got one of {X.ndim} dimensions.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"Complex data not supported: the sparse matrix holds {X.dtype}.")
    matrix = X.tocsc()
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy() if matrix is X or np.shares_memory(matrix.data, X.data) else matrix
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        j = int(np.searchsorted(matrix.indptr, np.argmin(finite), side="right")) - 1
        raise ValueError(
            f"Column 'x{j}' of the sparse matrix contains NaN or infinity; a sparse matrix has no missing cells, what is not "
            "stored is absent."
        )
    parts = [slice(a, b) for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]
    columns = [SparseColumn(matrix.indices[part], matrix.data[part], X.shape[0]) for part in parts]
    return check_table(Table(None, columns, X.shape[0]))


def one_column(column, name):
    """A column of a mapping: a data frame's series, an array or a list."""
    series = nw.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    column = as_array(column)
    if column.ndim != 1:
        raise ValueError(f"Column {str(name)!r} must be a list of values, not {column.ndim}-dimensional.")
    return column


def as_array(values):
    """Lists and masked arrays as NumPy would not have them: words beside numbers and NaN stay apart, masked is missing."""
    if isinstance(values, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(values), None, values.data.astype(object))
    if hasattr(values, "shape"):
        return values
    try:
        array = np.asarray(values)
    except ValueError:  # NumPy speaks of inhomogeneous shapes
        raise ValueError("The rows have different lengths; give every case a value or None for every feature.") from None
    return np.array(values, dtype=object) if isinstance(values, (list, tuple)) and array.dtype.kind in "US" else array


def check_table(table):
    if not table.n_cases or not table.columns:
        raise ValueError(f"The table is empty: {table.n_cases} cases, {len(table.columns)} features.")
    check_unique(table.names or [])
    return table


def check_unique(names):
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"Column {twice[0]!r} is there more than once; a table needs unique column names.")


# --- one column ---------------------------------------------------------------------------------------------------------


def plain(column, name, markers=()):
    """A Column from a NumPy array, a narwhals series or a SparseColumn; cells that equal a marker are missing."""
    if isinstance(column, nw.Series):
        return plain_series(column, name, markers)
    if isinstance(column, SparseColumn):
        column = column.dense()
    if column.dtype.kind in "iuf":
        missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
        return Column(column, missing | np.isin(column, [marker for marker in markers if not isinstance(marker, str)]))
    if column.dtype.kind in "mM":
        raise ValueError(DATES.format(name))
    if column.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r}.")
    return plain_objects(column.astype(object), name, markers)


def plain_series(column, name, markers):
    dtype, missing = column.dtype, column.is_null().to_numpy()
    if dtype in (nw.Categorical, nw.Enum):
        marked = {str(marker) for marker in markers}
        categories = tuple(str(value) for value in column.cat.get_categories().to_list())
        words = np.full(len(column), None, dtype=object)
        words[~missing] = [str(value) for value in column.drop_nulls().to_list()]
        if marked:
            missing = missing | np.fromiter((word in marked for word in words), dtype=bool, count=len(words))
        ordered = dtype == nw.Enum or getattr(getattr(column.to_native(), "type", None), "ordered", False)
        return Column(words, missing, tuple(word for word in categories if word not in marked), bool(ordered))
    if dtype.is_temporal():
        raise ValueError(DATES.format(name))
    if dtype.is_integer() or dtype.is_float():
        numbers = plain((column.fill_null(0) if missing.any() else column).to_numpy(), name, markers)
        return Column(numbers.values, numbers.missing | missing)
    objects = np.fromiter(column.to_list(), dtype=object, count=len(column))
    if dtype == nw.String:
        words = {marker for marker in markers if isinstance(marker, str)}
        if words:
            missing = missing | np.fromiter((value in words for value in objects), dtype=bool, count=len(objects))
        return Column(objects, missing)
    return plain_objects(objects, name, markers)


def plain_objects(objects, name, markers):
    """Objects are booleans, or numbers, or else words: a column that mixes them is words."""
    missing = np.fromiter((is_missing(value) or is_marked(value, markers) for value in objects), bool, count=len(objects))
    observed = objects[~missing]
    seen = {type(value) for value in observed}
    if seen and all(issubclass(kind, (bool, np.bool_)) for kind in seen):
        return Column(objects, missing, (False, True))
    if seen and all(issubclass(kind, (Real, Decimal)) for kind in seen):
        try:
            return Column(np.where(missing, np.nan, objects).astype(float), missing)
        except OverflowError:
            raise ValueError(f"Column {name!r} has whole numbers that are too large to compute with.") from None
    for value in observed:
        if isinstance(value, NESTED):
            raise TypeError(f"Column {name!r}: argument must be a string or a number, got {type(value).__name__}.")
        if isinstance(value, TIMES):
            raise ValueError(DATES.format(name))
        if isinstance(value, Real) and abs(value) == np.inf:
            raise ValueError(INFINITE.format(name))
    words = np.full(len(objects), None, dtype=object)
    words[~missing] = [word(value) for value in observed]
    return Column(words, missing)


def is_missing(value):
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Number, np.datetime64, np.timedelta64)) and bool(value != value)


def is_marked(value, markers):
    """Words match words, numbers match numbers; True is not 1 here."""
    if not markers or isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, Number)):
        return False
    return any(isinstance(marker, str) == isinstance(value, str) and marker == value for marker in markers)


def word(value):
    """A value as a word, the same for 1 and 1.0: a column of integers with a gap comes back as floats."""
    if isinstance(value, (float, np.floating)) and value == np.floor(value):
        return str(int(value))
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def listed(noun, names, most=5):
    """A noun and its names in a sentence."""
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{noun}{'s' * (len(names) > 1)} {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")
