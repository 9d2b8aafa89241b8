"""Tables of every kind to codes and back."""

import datetime
import re
import warnings
from collections import Counter
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayescase.reading.encoding import Encoding
from bayescase.reading.features import intervals
from bayescase.reading.rules import Asked
from bayescase.reading.tables import is_missing, read

NAN = float("nan")


def learn(X, bins=5, catalogue=None):
    """(encoding, codes of X within each feature, -1 missing)."""
    table = read(X)
    encoding = Encoding.learn(table, Asked(bins), None if catalogue is None else read(catalogue))
    (x, _), unseen = encoding.encode(table)
    assert unseen == 0
    return encoding, np.where(x < 0, -1, x - encoding.offset[:-1])


def feature(column, **settings):
    encoding, codes = learn({"a": column}, **settings)
    return encoding.features[0], codes[:, 0].tolist()


# --- kinds of columns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "kind", "values", "codes"),
    [
        (np.array([3, 1, 3, 1]), "integer", (1, 3), [1, 0, 1, 0]),
        (np.array([3, 1, 3, 1], dtype=np.uint8), "integer", (1, 3), [1, 0, 1, 0]),
        (np.array([3.0, 1.0, NAN, 3.0, 1.0]), "integer", (1, 3), [1, 0, -1, 1, 0]),
        (np.array([-0.0, 0.0, 1.0, 1.0]), "integer", (0, 1), [0, 0, 1, 1]),
        (np.array([True, False, True]), "category", (False, True), [1, 0, 1]),
        ([True, None, False], "category", (False, True), [1, -1, 0]),
        ([True, True, None, True], "category", (True,), [0, 0, -1, 0]),
        (["b", "a", "b"], "category", ("a", "b"), [1, 0, 1]),
        (["b", None, NAN, pd.NA, pd.NaT, "a", "b"], "category", ("a", "b"), [1, -1, -1, -1, -1, 0, 1]),
        (["b", np.datetime64("NaT", "D"), Decimal("NaN"), np.float32("nan"), "b"], "category", ("b",), [0, -1, -1, -1, 0]),
        ([1, "x", 1, None, 2.5, "x", 2.5], "category", ("1", "2.5", "x"), [0, 2, 0, -1, 1, 2, 1]),
        (["", "a", "", "nan"], "category", ("", "a", "nan"), [0, 1, 0, 2]),
        ([1, None, 2, 1, 2], "integer", (1, 2), [0, -1, 1, 0, 1]),
        (np.array([np.float32("nan"), 1, 2, 1, 2], dtype=object), "integer", (1, 2), [-1, 0, 1, 0, 1]),
        (np.ma.array([1, 2, 1, 9, 2], mask=[0, 0, 0, 1, 0]), "integer", (1, 2), [0, 1, 0, -1, 1]),
        (np.array(["a", "b", "a"], dtype=np.dtypes.StringDType()), "category", ("a", "b"), [0, 1, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:Feature 'a' has one value only")
def test_columns(column, kind, values, codes):
    learned, found = feature(column)
    assert learned.type == kind
    assert learned.values == values
    assert [type(value) for value in learned.values] == [type(value) for value in values]
    assert found == codes


def test_arrays_of_any_type_have_the_features_of_their_columns():
    x = np.array([["a", 1, True, 0.5], ["b", 2, None, 1.5], ["a", 1, False, NAN], ["a", 2, True, 2.5]], dtype=object)
    encoding, codes = learn(x)
    assert [f.type for f in encoding.features] == ["category", "integer", "category", "number"]
    assert [f.name for f in encoding.features] == ["x0", "x1", "x2", "x3"]
    assert (codes < 0).sum() == 2
    rows = [list(row) for row in x]
    assert [f.values for f in learn(rows)[0].features] == [f.values for f in encoding.features]


def test_a_list_of_rows_keeps_nan_apart_from_words():
    encoding, codes = learn([["a", NAN], ["b", "c"], ["a", "d"], ["b", "c"]])
    assert encoding.features[1].values == ("c", "d")
    assert codes[:, 1].tolist() == [-1, 0, 1, 0]


def test_a_masked_array():
    x = np.ma.array([[1, 2], [1, 3], [7, 2], [1, 3]], mask=[[0, 0], [0, 1], [1, 0], [0, 0]])
    encoding, codes = learn(x)
    assert str(encoding.notes[0]) == "Feature 'x0' has one value only and cannot tell cases apart."
    assert encoding.features[0].values == (1,)
    assert codes.tolist() == [[0, 0], [0, -1], [-1, 0], [0, 1]]


COLUMNS = {
    "word": ["b", "a", None, "b"],
    "count": [1, 2, None, 2],
    "flag": [True, None, False, True],
    "number": [1.5, NAN, None, 2.5],
}


def frames():
    frame = pd.DataFrame(COLUMNS)
    yield "pandas", frame
    yield "pandas nullable", frame.convert_dtypes()
    yield "pandas arrow", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "pandas object", frame.astype(object)
    yield "polars", pl.DataFrame(COLUMNS)
    yield "pyarrow", pa.table(COLUMNS)
    yield "mapping of lists", COLUMNS
    yield "mapping of pandas", dict(frame.convert_dtypes())
    yield "mapping of polars", {name: pl.Series(column) for name, column in COLUMNS.items()}


@pytest.mark.parametrize("X", [frame for _, frame in frames()], ids=[name for name, _ in frames()])
def test_tables(X):
    encoding, codes = learn(X)
    assert [(f.name, f.type) for f in encoding.features] == [
        ("word", "category"),
        ("count", "integer"),
        ("flag", "category"),
        ("number", "number"),
    ]
    assert [f.values for f in encoding.features[:3]] == [("a", "b"), (1, 2), (False, True)]
    assert codes.tolist() == [[1, 0, 1, 0], [0, 1, -1, -1], [-1, -1, 0, -1], [1, 1, 1, 1]]


CATEGORICAL = {
    "ordered": pd.Categorical(["b", "a", "b", None], categories=["c", "b", "a"], ordered=True),
    "unordered": pd.Categorical(["b", "a", "b", None], categories=["c", "b", "a"]),
}


@pytest.mark.parametrize(
    "X",
    [
        *(pd.DataFrame({"a": column}) for column in CATEGORICAL.values()),
        {"a": pd.Series(CATEGORICAL["ordered"])},
        pl.DataFrame({"a": pl.Series(["b", "a", "b", None], dtype=pl.Enum(["c", "b", "a"]))}),
        pl.DataFrame({"a": pl.Series(["b", "a", "b", None], dtype=pl.Categorical)}),
        pa.table({"a": pa.array(["b", "a", "b", None]).dictionary_encode()}),
    ],
    ids=["pandas ordered", "pandas", "mapping", "polars enum", "polars", "pyarrow"],
)
def test_categories_keep_their_order_and_unused_ones_go(X):
    encoding, codes = learn(X)
    assert encoding.features[0].values == ("b", "a")
    assert codes[:, 0].tolist() == [0, 1, 0, -1]


@pytest.mark.parametrize(
    ("categories", "values"),
    [
        ([2, 1], ("2", "1")),
        ([2.5, 1.0], ("2.5", "1.0")),
        ([True, False], ("True", "False")),
        (list(pd.interval_range(0, 2)), ("(0, 1]", "(1, 2]")),
    ],
)
@pytest.mark.parametrize("gap", [False, True])
def test_categories_that_are_not_words(categories, values, gap):
    """With a gap, pandas turns a column of categories 2 and 1 into 2.0 and 1.0: no value must get lost on the way."""
    column = [categories[0], categories[1], categories[0], *([None] if gap else [])]
    encoding, codes = learn(pd.DataFrame({"a": pd.Categorical(column, categories=categories)}))
    assert encoding.features[0].values == values
    assert codes[:, 0].tolist() == [0, 1, 0, *([-1] if gap else [])]


def test_decimals_are_numbers():
    column = pl.Series([Decimal("1.50"), Decimal("2.25"), Decimal("9.00")] * 9)
    assert learn(pl.DataFrame({"a": column}))[0].features[0].type == "number"
    assert feature([Decimal("1.50"), Decimal("2.25"), Decimal("9.00")] * 9)[0].type == "number"


@pytest.mark.parametrize(
    "value", [None, NAN, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "D"), Decimal("NaN")]
)
def test_is_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", ["", "nan", "None", 0, 0.0, False, np.inf, -1, (), b""])
def test_is_not_missing(value):
    assert not is_missing(value)


# --- numbers ----------------------------------------------------------------------------------------------------------


def test_bins_are_cut_at_quantiles():
    column = np.random.default_rng(0).normal(size=1000)
    learned, codes = feature(column, bins=4)
    assert learned.type == "number"
    assert np.bincount(codes).tolist() == [250] * 4
    assert set(learned.edges) <= set(column), "an edge is a value that occurs, so no bin is empty"
    assert learned.values[0].startswith("below ")
    assert learned.values[-1].endswith(" or more")
    assert len(learned.values) == len(learned.edges) + 1


@pytest.mark.parametrize("column", [[1.5, 2.5] * 2, [0.0] * 9 + [0.5], [0.1, 0.2, 0.2, 0.2, 0.9], [-1.5, 0.0, 0.0, 7.25]])
def test_no_bin_is_empty(column):
    learned, codes = feature(np.array(column), bins=5)
    assert (np.bincount(codes, minlength=len(learned.values)) > 0).all()
    assert len(learned.values) > 1


def test_an_edge_belongs_to_the_bin_above():
    encoding, _ = learn({"a": np.arange(100) / 10}, bins=2)
    (edge,) = encoding.features[0].edges
    (codes, _), _ = encoding.encode(read({"a": [edge, np.nextafter(edge, -1), -1e300, 1e300, NAN]}))
    assert codes[:, 0].tolist() == [1, 0, 0, 1, -1]


@pytest.mark.parametrize(("zeros", "others"), [(60, 40), (95, 5), (99, 1)])
def test_a_zero_inflated_column_keeps_its_zeros_apart(zeros, others):
    _, codes = feature(np.concatenate([np.zeros(zeros), 0.5 + np.arange(others)]))
    assert set(codes[:zeros]) == {0}
    assert 0 not in codes[zeros:]


def test_a_column_with_many_cells_at_its_maximum():
    _, codes = feature(np.concatenate([np.ones(60), np.arange(40) / 100]))
    assert len(set(codes[:60])) == 1
    assert not set(codes[:60]) & set(codes[60:])


def test_few_integers_are_values_and_many_are_binned():
    assert feature(np.tile(np.arange(10), 3))[0].values == tuple(range(10))
    learned, _ = feature(np.tile(np.arange(11), 3))
    assert learned.type == "number"
    assert len(learned.values) == 5
    assert feature(np.tile([0.5, 1.0], 9))[0].type == "number"


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32])
def test_numbers_at_the_end_of_their_type(dtype):
    """Differences of such numbers overflow in their own type."""
    info = np.finfo(dtype) if np.issubdtype(dtype, np.floating) else np.iinfo(dtype)
    column = np.array([info.min, info.max, *range(3, 100, 6)], dtype=dtype)
    learned, codes = feature(column)
    assert codes[0] == 0
    assert codes[1] == len(learned.values) - 1
    assert np.isfinite(learned.edges).all()


def test_intervals_show_enough_digits():
    assert intervals(()) == ("any",)
    assert intervals((1.0, 2.5)) == ("below 1", "1 to 2.5", "2.5 or more")
    close = intervals((1.0, 1.0 + 1e-12, 1.0 + 2e-12))
    assert len(set(close)) == 4


@given(
    st.lists(st.one_of(st.none(), st.floats(-1e300, 1e300)), min_size=2, max_size=40).filter(lambda c: c.count(None) < len(c)),
    st.integers(2, 9),
)
def test_bins_are_in_order_and_cover_everything(column, bins):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Feature 'a' has one value only")
        try:
            learned, codes = feature(column, bins=bins)
        except ValueError as error:
            assert "row number" in str(error)  # noqa: PT017
            return
    codes = np.array(codes)
    missing = np.array([value is None for value in column])
    assert ((codes < 0) == missing).all()
    assert len(set(learned.values)) == len(learned.values)
    values = np.array([value for value in column if value is not None], dtype=float)
    order = np.argsort(values, kind="stable")
    assert (np.diff(codes[~missing][order]) >= 0).all()
    assert codes.max() < len(learned.values)
    assert len(set(codes[~missing])) > 1 or len(set(values)) == 1  # numbers that differ are not all in one bin


# --- codes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "dtype"), [(100, np.int8), (128, np.int8), (129, np.int16), (32768, np.int16), (32769, np.int32)]
)
def test_the_smallest_type_that_fits(n, dtype):
    column = [f"{i:05}" for i in range(n)]
    encoding, codes = learn({"a": [*column, *column]})
    assert encoding.dtype == dtype
    assert codes[:, 0].tolist() == [*range(n), *range(n)]


def test_codes_are_global_and_ragged():
    encoding, _ = learn({"a": ["x", "y", "x", "z"], "b": [1, 1, 2, 2], "c": [True, False, True, True]})
    assert encoding.offset.tolist() == [0, 3, 5, 7]
    (x, _), _ = encoding.encode(read({"a": ["z"], "b": [2], "c": [None]}))
    assert x.tolist() == [[2, 4, -1]]


def test_unseen_values_are_counted():
    encoding, _ = learn({"a": ["x", "y", "x"], "b": [1, 2, 1, 2][:3], "c": [True, False, True]})
    (x, _), unseen = encoding.encode(read({"a": ["q", None, "x"], "b": [3, 1.5, 2], "c": ["True", 1, None]}))
    assert unseen == 4
    assert x.tolist() == [[-1, -1, 5], [-1, -1, -1], [0, 3, -1]]


def test_a_column_may_change_its_type_between_fit_and_use():
    encoding, _ = learn({"a": [1, 2, 1, 2], "b": ["1", "2", "1", "2"]})
    (x, _), unseen = encoding.encode(read({"a": [1.0, NAN, 2.0], "b": [1, 2, 1]}))
    assert unseen == 0
    assert x.tolist() == [[0, 2], [-1, 3], [1, 2]]


CELLS = st.one_of(st.none(), st.text(max_size=3), st.integers(-3, 3), st.booleans())


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=4, max_size=12))
def test_decode_gives_back_what_encode_took(rows):
    """Every value comes back, as itself or, in a mixed column, as a word; None for missing; and again the same codes."""
    rows = rows + rows  # so that no column has as many values as cases
    X = np.array(rows, dtype=object)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Features? .* one value only")
        try:
            encoding, _ = learn(X)
        except ValueError as error:
            assert "no value at all" in str(error)  # noqa: PT017
            return
    (x, _), _ = encoding.encode(read(X))
    back = encoding.decode(x)
    for j, learned in enumerate(encoding.features):
        for value, decoded in zip(X[:, j], back[:, j], strict=True):
            if value is None:
                assert decoded is None
            elif learned.type == "number":
                low, high = (-np.inf, *learned.edges), (*learned.edges, np.inf)
                k = learned.values.index(decoded)
                assert low[k] <= value < high[k]
            else:
                assert decoded == value or decoded == str(value)
    again = Encoding.from_json(encoding.to_json())
    assert np.array_equal(again.encode(read(X))[0].x, x)
    assert again.features == encoding.features
    readable = [j for j, learned in enumerate(encoding.features) if learned.type != "number"]
    (once_more, _), _ = encoding.encode(read({f"x{j}": list(back[:, j]) for j in range(3)}))
    assert np.array_equal(once_more[:, readable], x[:, readable])


def test_values_of_the_catalogue_count_too():
    learned, _ = feature(["x", "y", "x", "y"], catalogue={"a": ["w", "x"]})
    assert learned.values == ("w", "x", "y")
    learned, _ = feature([1, 2, 1, 2, 1, 2], catalogue={"a": [7]})
    assert learned.values == (1, 2, 7)
    learned, _ = feature(pd.Series(["y", "x", "y"], dtype=pd.CategoricalDtype(["y", "x"])), catalogue={"a": ["w", "x"]})
    assert learned.values == ("y", "x", "w")
    learned, _ = feature([1.5, 2.5, 1.5, 2.5], catalogue={"a": [None, None]})
    assert learned.type == "number"


# --- errors and warnings ----------------------------------------------------------------------------------------------


NO_COLUMN = (
    r"^X has no columns: if each case is a list of items, give \{'items': X\}; if each is a text, give \{'text': X\} with "
    r"encoder=\{'texts': 'text'\}\.$"
)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ({}, ValueError, r"^The table is empty: 0 cases, 0 features\.$"),
        ({"a": []}, ValueError, r"^The table is empty: 0 cases, 1 features\.$"),
        (pd.DataFrame({"a": []}), ValueError, "The table is empty"),
        (pd.DataFrame(index=range(3)), ValueError, "The table is empty"),
        (pl.DataFrame(), ValueError, "The table is empty"),
        ({"a": [1, 2], "b": [1]}, ValueError, r"^The columns have different lengths: \[1, 2\]\.$"),
        ({"a": 1}, ValueError, "Column 'a' must be a list of values, not 0-dimensional"),
        ({"a": np.zeros((3, 2))}, ValueError, "Column 'a' must be a list of values, not 2-dimensional"),
        (
            {"good": [1, 1, 2, 2], "bad": [None] * 4},
            ValueError,
            r"^Column 'bad' has no value at all; leave it out with feature_types=\{'bad': 'drop'\}\.$",
        ),
        (pl.DataFrame({"bad": [None, None]}), ValueError, "Column 'bad' has no value at all"),
        ({"bad": [1.5, np.inf, 2.0]}, ValueError, r"^Column 'bad' contains infinity; only finite numbers"),
        ({"bad": [1.5, -np.inf, None]}, ValueError, "Column 'bad' contains infinity"),
        ({"bad": ["a", np.inf, "a"]}, ValueError, "Column 'bad' contains infinity"),
        ({"bad": list("abcde")}, ValueError, r"^Column 'bad' has as many values as cases \(5\), so it says nothing"),
        ({"bad": pd.Categorical(list("abcde"))}, ValueError, "Column 'bad' has as many values as cases"),
        ({"bad": range(100, 112)}, ValueError, r"Column 'bad' has as many values as cases \(12\) and counts them like a row"),
        ({"bad": np.arange(-128, 128, dtype=np.int8)}, ValueError, "Column 'bad' has as many values as cases"),
        ({"bad": np.array(["2020-01-01"] * 3, dtype="M8[D]")}, ValueError, r"^Column 'bad' holds dates or times; turn them"),
        (pd.DataFrame({"bad": pd.to_timedelta([1, 2, 3])}), ValueError, "Column 'bad' holds dates or times"),
        (pl.DataFrame({"bad": [datetime.time(1), None]}), ValueError, "Column 'bad' holds dates or times"),
        (pl.DataFrame({"bad": [datetime.date(2020, 1, 1)]}), ValueError, "Column 'bad' holds dates or times"),
        ({"bad": np.array([1j, 2])}, ValueError, "Complex data not supported: column 'bad'"),
        (
            {"bad": [{"x": "a"}, {"x": "b"}]},
            TypeError,
            r"^Column 'bad': argument must be a string or a number, got dict; give each key a column",
        ),
        ({"bad": [10**400, 1, 1]}, ValueError, "Column 'bad' has whole numbers that are too large"),
        (pl.LazyFrame({"a": [1, 2]}), TypeError, r"X is a LazyFrame.*collect\(\) it first"),
        (np.zeros((2, 2, 2)), ValueError, "dim 3"),
        (np.zeros(3), ValueError, "2D array"),
        (["a cat", "a dog"], ValueError, NO_COLUMN),
        (pd.Series(["a cat", "a dog"]), ValueError, NO_COLUMN),
        (pd.Series([["a", "b"], ["c"]]), ValueError, NO_COLUMN),
        (pl.Series([["a", "b"], ["c"]]), ValueError, NO_COLUMN),
        ([{"a", "b"}, {"c"}], ValueError, NO_COLUMN),
        ([Counter("ab"), None], ValueError, NO_COLUMN),
        (
            [["a", "b"], None, ["c"]],
            ValueError,
            r"^The rows have different lengths; .* every feature; if each row is a list of items, give \{'items': X\}\.$",
        ),
        ([[1, 2], [3]], ValueError, r"^The rows have different lengths; give every case a value or None for every feature\.$"),
        (pd.Series([1, 2]), ValueError, "2-dimensional"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "unique column names"),
        (None, ValueError, "2D array"),
    ],
)
def test_errors(X, error, message):
    if isinstance(X, dict):
        X = {name: list(column) if isinstance(column, range) else column for name, column in X.items()}
    with pytest.raises(error, match=message):
        learn(X)


def test_infinity_in_new_cases():
    encoding, _ = learn({"a": np.arange(20) / 3})
    with pytest.raises(ValueError, match="Column 'a' contains infinity"):
        encoding.encode(read({"a": [1.0, np.inf]}))


def test_distinct_numbers_are_no_error():
    assert feature(np.random.default_rng(0).normal(size=30))[0].type == "number"
    assert feature([1, 5, 2])[0].type == "number"  # too short to look like a row number
    assert feature(["a", "b"])[0].values == ("a", "b")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], r"^Feature 'a' has one value only and cannot tell cases apart\.$"),
        (list("ab"), r"^Features 'a', 'b' have one value only and cannot tell cases apart\.$"),
        (list("abcdefg"), r"^Features 'a', 'b', 'c', 'd', 'e' and 2 more have one value only and cannot"),
    ],
)
def test_constant_columns_are_noted_once(names, message):
    encoding, _ = learn({name: ["same"] * 4 for name in names} | {"other": [1, 2, 1, 2]})
    (note,) = encoding.notes
    assert re.match(message, str(note))
    assert note.column == "a"
    encoding, _ = learn({"a": [0.5] * 5})
    assert encoding.features[0].values == ("any",)
    assert re.match("Feature 'a' has one value only", str(encoding.notes[0]))
