"""A table of values ↔ global integer codes. Feature j owns the codes offset[j] .. offset[j + 1] - 1; -1 is missing."""

import itertools
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from numbers import Number, Real
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

FEW_INTEGERS = 10  # a column with more different numbers than this is binned
INFINITE = "Column {!r} contains infinity; only finite numbers and missing cells can be used."
ID_FROM = 10  # from so many cases on, a column that counts 1, 2, 3, … is taken for a row number


class Table(NamedTuple):
    """Columns of any kind, side by side."""

    names: list[str] | None
    columns: list[Any]
    n_cases: int

    def name(self, j):
        return self.names[j] if self.names else f"x{j}"


@dataclass(frozen=True)
class Feature:
    """The values that a feature can take, in the order of their codes."""

    name: str
    kind: str  # "category", "integer" or "number"
    values: tuple  # what is shown; for numbers the intervals between the edges
    edges: tuple = ()  # for numbers


# --- reading -----------------------------------------------------------------------------------------------------------


def read(X):
    """A Table from a data frame (pandas, polars, pyarrow, …), a mapping of columns, or a two-dimensional array."""
    if isinstance(X, Mapping) and not hasattr(X, "toarray"):  # SciPy's sparse "dok" is a mapping, of cells
        columns = [one_column(column, name) for name, column in X.items()]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"The columns have different lengths: {sorted(lengths)}.")
        return _not_empty(Table([str(name) for name in X], columns, lengths.pop() if lengths else 0))
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [frame.get_column(name) for name in frame.columns]
        return _not_empty(Table([str(name) for name in frame.columns], columns, len(frame)))
    if hasattr(X, "collect"):
        raise TypeError(f"X is a {type(X).__name__}, a table not yet computed: collect() it first.")
    from sklearn.utils.validation import check_array

    X = check_array(as_array(X), dtype=None, ensure_all_finite=False)
    return Table(None, [X[:, j] for j in range(X.shape[1])], X.shape[0])


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
    if isinstance(values, (list, tuple)) and np.asarray(values).dtype.kind in "US":
        return np.array(values, dtype=object)
    return values if hasattr(values, "shape") else np.asarray(values)


def _not_empty(table):
    if not table.n_cases or not table.columns:
        raise ValueError(f"The table is empty: {table.n_cases} cases, {len(table.columns)} features.")
    return table


class Column(NamedTuple):
    """One column as plain NumPy: numbers, or objects that are strings or booleans."""

    values: np.ndarray
    missing: np.ndarray
    categories: tuple | None = None  # known beforehand, in order


def plain(column, name):
    """A Column from a NumPy array or a narwhals series."""
    if isinstance(column, nw.Series):
        missing = column.is_null().to_numpy()
        if column.dtype in (nw.Categorical, nw.Enum):
            categories = tuple(str(value) for value in column.cat.get_categories().to_list())
            words = np.full(len(column), None, dtype=object)
            words[~missing] = [str(value) for value in column.drop_nulls().to_list()]
            return Column(words, missing, categories)
        if column.dtype.is_temporal():
            raise ValueError(f"Column {name!r} holds dates or times; turn them into numbers or categories first.")
        column = (
            np.array(column.to_list(), dtype=object) if missing.any() or not column.dtype.is_numeric() else column.to_numpy()
        )
    if column.dtype.kind in "iu":
        return Column(column, np.zeros(len(column), dtype=bool))
    if column.dtype.kind == "f":
        return Column(column, np.isnan(column))
    if column.dtype.kind in "mM":
        raise ValueError(f"Column {name!r} holds dates or times; turn them into numbers or categories first.")
    if column.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r}.")
    objects = column.astype(object)
    missing = np.fromiter((is_missing(value) for value in objects), dtype=bool, count=len(objects))
    seen = {type(value) for value in objects[~missing]}
    if seen and all(issubclass(kind, (bool, np.bool_)) for kind in seen):
        return Column(objects, missing, (False, True))
    if seen and all(issubclass(kind, (Real, Decimal)) for kind in seen):
        try:
            return Column(np.where(missing, np.nan, objects).astype(float), missing)
        except OverflowError:
            raise ValueError(f"Column {name!r} has whole numbers that are too large to compute with.") from None
    bad = [value for value in objects[~missing] if isinstance(value, (dict, list, tuple, set, np.ndarray))]
    if bad:
        raise TypeError(f"Column {name!r}: argument must be a string or a number, got {type(bad[0]).__name__}.")
    if any(isinstance(value, Real) and abs(value) == np.inf for value in objects[~missing]):
        raise ValueError(INFINITE.format(name))
    words = [None if gone else str(value) for value, gone in zip(objects, missing, strict=True)]
    return Column(np.array(words, dtype=object), missing)


def is_missing(value):
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Number, np.datetime64, np.timedelta64)) and bool(value != value)


# --- learning ----------------------------------------------------------------------------------------------------------


class Encoding:
    """The features of a model; learned once, then turns tables into codes and codes into values."""

    def __init__(self, features):
        self.features = tuple(features)
        self.offset = np.concatenate([[0], np.cumsum([len(f.values) for f in self.features])]).astype(np.int64)
        self.dtype = np.min_scalar_type(-max(int(self.offset[-1]), 1))  # signed: -1 is missing

    @classmethod
    def learn(cls, table, bins, catalogue=None):
        """What the features of a table are. Values that only the catalogue has count too."""
        features, constant = [], []
        for j, column in enumerate(table.columns):
            name = table.name(j)
            columns = [plain(column, name)]
            if catalogue is not None:
                columns.append(plain(catalogue.columns[j], name))
            features.append(learn_feature(name, columns, bins))
            if len(features[-1].values) == 1:
                constant.append(name)
        if constant:
            warnings.warn(
                f"{_names('Feature', constant)} has one value only and cannot tell cases apart."
                if len(constant) == 1
                else f"{_names('Features', constant)} have one value only and cannot tell cases apart.",
                stacklevel=2,
            )
        return cls(features)

    def encode(self, table):
        """(codes, number of cells with a value never seen). Unseen values are -1, like missing ones."""
        x = np.empty((table.n_cases, len(self.features)), dtype=self.dtype)
        unseen = 0
        for j, (feature, column) in enumerate(zip(self.features, table.columns, strict=True)):
            column = plain(column, feature.name)
            codes = local_codes(feature, column)
            unseen += int((codes[~column.missing] < 0).sum())
            x[:, j] = np.where(codes < 0, -1, codes + self.offset[j])
        return x, unseen

    def decode(self, x):
        """Codes back to values, None where missing."""
        out = np.full(x.shape, None, dtype=object)
        for j, feature in enumerate(self.features):
            values = np.empty(len(feature.values) + 1, dtype=object)
            values[:-1] = feature.values
            out[:, j] = values[np.where(x[:, j] < 0, -1, x[:, j] - self.offset[j])]
        return out

    def to_json(self):
        return [asdict(feature) for feature in self.features]

    @classmethod
    def from_json(cls, features):
        return cls(Feature(f["name"], f["kind"], tuple(f["values"]), tuple(f["edges"])) for f in features)


def learn_feature(name, columns, bins):
    """The values of one feature, from its column in the table and perhaps in the catalogue."""
    observed = [column.values[~column.missing] for column in columns]
    if len(observed[0]) == 0:
        raise ValueError(f"Column {name!r} has no value at all; drop it.")
    if all(column.values.dtype.kind in "iuf" for column, part in zip(columns, observed, strict=True) if len(part)):
        return learn_numbers(name, [part.astype(float) if part.dtype == object else part for part in observed], bins)
    first = columns[0]
    columns = [as_kind(first.categories or (), column) for column in columns]
    observed = [column.values[~column.missing] for column in columns]
    distinct = {str(value) for value in observed[0]}
    if len(distinct) == len(observed[0]) > 2:
        raise ValueError(
            f"Column {name!r} has as many values as cases ({len(distinct)}), so it says nothing about clusters; drop it or "
            "group its values."
        )
    if first.categories is not None:
        present = set(observed[0])
        known = [value for value in first.categories if value in present]
        extra = sorted({str(value) for part in observed[1:] for value in part} - {str(value) for value in known})
        return Feature(name, "category", (*known, *extra))
    return Feature(name, "category", tuple(sorted({str(value) for part in observed for value in part})))


def learn_numbers(name, observed, bins):
    """Few integers are values of their own; other numbers are binned at quantiles."""
    if any(np.isinf(part).any() for part in observed if part.dtype.kind == "f"):
        raise ValueError(INFINITE.format(name))
    distinct = np.unique(np.concatenate(observed))
    whole = bool((distinct == np.floor(distinct)).all())
    n = len(observed[0])
    own = np.unique(observed[0])
    if whole and n >= ID_FROM and len(own) == n == int(own[-1]) - int(own[0]) + 1:
        raise ValueError(
            f"Column {name!r} has as many values as cases ({n}) and counts them like a row number, so it says nothing about "
            "clusters; drop it."
        )
    if whole and len(distinct) <= FEW_INTEGERS and len(distinct) <= max(2, n // 2):
        return Feature(name, "integer", tuple(int(value) for value in distinct))
    edges = np.unique(np.quantile(observed[0], np.linspace(0, 1, bins + 1)[1:-1], method="higher"))
    edges = edges[edges > distinct[0]]
    if not len(edges) and len(distinct) > 1:  # more than half of the cells are the minimum
        edges = distinct[1:2]
    edges = tuple(float(edge) for edge in edges)
    return Feature(name, "number", intervals(edges), edges)


def intervals(edges):
    """Words for the bins between the edges, with as many digits as tell them apart."""
    if not edges:
        return ("any",)
    for digits in range(3, 18):
        shown = [f"{edge:.{digits}g}" for edge in edges]
        if len(set(shown)) == len(shown):
            break
    middle = [f"{low} to {high}" for low, high in itertools.pairwise(shown)]
    return (f"below {shown[0]}", *middle, f"{shown[-1]} or more")


def local_codes(feature, column):
    """Codes 0 .. V_j - 1 of one column; -1 for missing and for values never seen."""
    column = as_kind(feature.values, column)
    codes = np.full(len(column.values), -1, dtype=np.int64)
    seen = ~column.missing
    if feature.kind == "category":
        code = {str(value): k for k, value in enumerate(feature.values)}
        codes[seen] = [code.get(str(value), -1) for value in column.values[seen]]
    elif column.values.dtype.kind not in "iuf":
        return codes  # words where numbers were: never seen
    elif feature.kind == "integer":
        values = np.array(feature.values)
        at = np.searchsorted(values, column.values[seen]).clip(max=len(values) - 1)
        codes[seen] = np.where(values[at] == column.values[seen], at, -1)
    else:
        if column.values.dtype.kind == "f" and np.isinf(column.values[seen]).any():
            raise ValueError(INFINITE.format(feature.name))
        codes[seen] = np.searchsorted(np.array(feature.edges), column.values[seen], side="right")
    return codes


def as_kind(values, column):
    """Yes/no as True and False or as 1 and 0: whichever the feature knows."""
    numeric = column.values.dtype.kind in "iuf"
    if numeric and set(map(type, values)) == {bool}:
        flags = np.full(len(column.values), None, dtype=object)
        known = ~column.missing & np.isin(column.values, (0, 1))
        flags[known] = column.values[known].astype(bool)
        flags[~known & ~column.missing] = column.values[~known & ~column.missing]
        return Column(flags, column.missing, (False, True))
    if not numeric and column.categories == (False, True) and set(map(type, values)) == {int}:
        return Column(np.where(column.missing, np.nan, column.values).astype(float), column.missing)
    return column


def _names(word, names, most=5):
    shown = ", ".join(repr(name) for name in names[:most])
    return f"{word} {shown}" + (f" and {len(names) - most} more" if len(names) > most else "")
