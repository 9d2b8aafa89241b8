"""What a column becomes: types, bins, top values, counts, and what the user says about them."""

import re
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from bayescase import TableError
from bayescase.reading.encoding import Encoding, describe, types_in_words
from bayescase.reading.features import MANY, intervals
from bayescase.reading.rules import Asked
from bayescase.reading.tables import read


def learn(X, **settings):
    """(encoding, codes of X within each feature, -1 missing)."""
    table = read(X)
    encoding = Encoding.learn(table, Asked(**settings))
    (x, _), _ = encoding.encode(table)
    return encoding, np.where(x < 0, -1, x - encoding.offset[:-1])


def feature(column, **settings):
    encoding, codes = learn({"a": column}, **settings)
    return encoding.features[0], codes[:, 0].tolist()


def again(encoding, X):
    (x, _), unseen = encoding.encode(read(X))
    return np.where(x < 0, -1, x - encoding.offset[:-1]).tolist(), unseen


# --- bins -------------------------------------------------------------------------------------------------------------

AGES = np.array([3, 17, 18, 40, 64, 65, 90, 30, 31, 32, 33, 34])


def test_explicit_edges_are_cut_points():
    found, codes = feature(AGES, bins=[18, 65])
    assert found.type == "number"
    assert found.edges == (18.0, 65.0)
    assert found.values == ("below 18", "18 to 64", "65 or more")
    assert codes == [0, 0, 1, 1, 1, 2, 2, 1, 1, 1, 1, 1]


def test_explicit_edges_keep_bins_that_nobody_is_in():
    found, codes = feature(AGES, bins=[0, 50, 200])
    assert len(found.values) == 4
    assert set(codes) == {1, 2}


def test_uniform_bins_have_equal_widths():
    column = np.array([0.0, 0.1, 0.2, 9.0, 10.0])
    found, codes = feature(column, bins=("uniform", 4))
    np.testing.assert_allclose(found.edges, [2.5, 5, 7.5])
    assert found.values == ("below 2.5", "2.5 to 5", "5 to 7.5", "7.5 or more")
    assert codes == [0, 0, 0, 3, 3]


@pytest.mark.parametrize("bins", [4, ("quantile", 4), ["quantile", 4], np.int64(4)])
def test_the_ways_to_ask_for_quantiles(bins):
    column = np.random.default_rng(0).normal(size=200)
    _, codes = feature(column, bins=bins)
    assert np.bincount(codes).tolist() == [50] * 4


def test_a_minimum_that_fills_a_quantile_has_its_own_bin():
    rng = np.random.default_rng(0)
    column = np.concatenate([np.zeros(78), rng.uniform(1000, 9000, size=22)])
    found, codes = feature(column)
    assert set(codes[:78]) == {0}
    assert 0 not in codes[78:]
    assert found.edges[0] == column[78:].min()


def test_bins_by_column_by_name_or_position():
    X = {"age": AGES, "size": AGES * 1.5, "few": AGES % 2}
    encoding, _ = learn(X, bins={"age": [18, 65], 1: ("uniform", 3), "few": [1]})
    assert [f.type for f in encoding.features] == ["number"] * 3
    assert [len(f.values) for f in encoding.features] == [3, 3, 2]
    assert encoding.features[2].values == ("below 1", "1 or more")
    encoding, _ = learn(np.column_stack([AGES, AGES * 1.5]), bins={"x1": [30.5]})
    assert [len(f.values) for f in encoding.features] == [5, 2]  # five quantile bins where nothing is said
    encoding, _ = learn({"0": [1.5, 2.5] * 4, "1": [1.5, 2.5] * 4}, bins={1: [2]})
    assert encoding.features[1].edges == (2.0,)


def test_words_that_spell_numbers_are_binned_if_asked():
    X = {"a": ["1", "2.5", "?", " 3 ", "10"] * 3}
    encoding, codes = learn(X, bins={"a": [2, 5]}, missing_values="?")
    assert codes[:5, 0].tolist() == [0, 1, -1, 1, 2]
    assert again(encoding, {"a": ["4", "four", "?", "nan"]}) == ([[1], [-1], [-1], [-1]], 2)
    assert again(encoding, {"a": [4.0, 1.0, np.nan]}) == ([[1], [0], [-1]], 0)
    with pytest.raises(
        ValueError, match=r"Column 'a' is to be read as number, but has the value '\?'.*say so with missing_values='\?'"
    ):
        learn(X, bins={"a": [2, 5]})


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (1, "bins must be a whole number of at least 2 and at most 1000, not 1"),
        (2.5, "bins must be a whole number"),
        (True, "bins must be a whole number"),
        (("uniform", 10**9), "bins must be a whole number of at least 2 and at most 1000"),
        ("quantile", r"bins must be the number of intervals, such as 5 or \('uniform', 5\), or a list.*not 'quantile'"),
        ("auto", "bins must be the number of intervals.*not 'auto'"),
        (("kmeans", 3), "bins can be cut by 'quantile' or 'uniform', not 'kmeans'"),
        ([], "bins must be a list of edges, finite numbers"),
        ([1, np.nan], "bins must be a list of edges, finite numbers"),
        ([[1, 2], [3, 4]], "bins must be a list of edges, finite numbers"),
        ([2, 1], "bins must list its edges from low to high, each once"),
        ([1, 1], "bins must list its edges from low to high, each once"),
        ({"b": 3}, "bins names column 'b', but the data has no such column"),
        ({7: 3}, "bins names column 7, but the data has no such column"),
        ({-1: 3}, "bins names column -1, but the data has no such column"),
        ({"a": None}, r"bins\['a'\] must be a whole number of at least 2"),
        ({"a": "uniform"}, r"bins\['a'\] must be the number of intervals"),
    ],
)
def test_bad_bins(bins, message):
    with pytest.raises(ValueError, match=message) as raised:
        feature(AGES * 1.5, bins=bins)
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith(".")


def test_intervals_are_in_the_units_of_the_user():
    assert intervals((7688.0, 99999.0)) == ("below 7688", "7688 to 99999", "99999 or more")
    assert intervals((7688.0, 99999.0), whole=True) == ("below 7688", "7688 to 99998", "99999 or more")
    assert intervals((3.0, 4.0), whole=True) == ("below 3", "3", "4 or more")
    assert intervals((12345.678,)) == ("below 12346", "12346 or more")
    assert intervals((0.01234567, 0.5)) == ("below 0.01235", "0.01235 to 0.5", "0.5 or more")
    assert intervals((1e-9, 1e20)) == ("below 1e-09", "1e-09 to 1e+20", "1e+20 or more")
    assert intervals((-2.5, 0.0)) == ("below -2.5", "-2.5 to 0", "0 or more")


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=30), st.integers(2, 9))
def test_uniform_bins_cover_everything_in_order(column, n):
    values = np.array([*column, 0.25])  # not all whole
    found, codes = feature_of_numbers(values, ("uniform", n))
    assert len(found.values) == len(found.edges) + 1 == len(set(found.values))
    assert (np.diff(np.array(codes)[np.argsort(values, kind="stable")]) >= 0).all()
    assert len(found.values) <= n


def feature_of_numbers(values, bins):
    encoding = Encoding.learn(read({"a": [*values, 1e6]}), Asked(bins={"a": bins}))
    (x, _), _ = encoding.encode(read({"a": values}))
    return encoding.features[0], x[:, 0].tolist()


# --- types ------------------------------------------------------------------------------------------------------------


def test_the_user_can_override_every_guess():
    X = {"zip": [10, 20, 20, 10] * 3, "grade": ["b", "a", "c", "a"] * 3, "id": range(12), "size": [1, 2, 30, 4] * 3}
    X = {name: list(column) for name, column in X.items()}
    encoding, _ = learn(X, feature_types={"zip": "category", "grade": "ordered", "id": "drop", "size": "number"})
    assert [(f.name, f.type, f.ordered) for f in encoding.features] == [
        ("zip", "category", False),
        ("grade", "ordered", True),
        ("size", "number", True),
    ]
    assert encoding.features[0].values == (10, 20)  # numbers stay numbers
    encoding, _ = learn(X, feature_types={"id": "integer", "size": "count"}, max_count=2)
    assert encoding.features[2].values == tuple(range(12))
    assert encoding.features[3].values == (0, 1, "2+")


def test_one_word_is_for_all_columns_but_a_name_goes_first():
    encoding, _ = learn({"a": [1.5, 2.5] * 3, "b": [1.5, 2.5] * 3}, feature_types="category", bins={"b": 2})
    assert [f.type for f in encoding.features] == ["category", "number"]
    assert encoding.features[0].values == (1.5, 2.5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"feature_types": "words"},
            "feature_types must be one of 'category', 'ordered', 'integer', 'number', 'count', 'bag' or 'drop'",
        ),
        ({"feature_types": {"a": "float"}}, r"feature_types\['a'\] must be one of"),
        ({"feature_types": {"z": "drop"}}, "feature_types names column 'z', but the data has no such column"),
        ({"feature_types": "drop"}, "name the columns to leave out"),
        ({"feature_types": {"a": "drop", "b": "drop"}}, "Every column is left out; keep at least one"),
        ({"feature_types": {"b": "integer"}}, "Column 'b' is to be read as integer, but has the value 1.5"),
        ({"feature_types": {"a": "number"}}, "Column 'a' is to be read as number, but has the value 'x'"),
        (
            {"feature_types": {"b": "category"}, "bins": {"b": 3}},
            "Column 'b' is in bins, so its feature_types must be 'number'",
        ),
        (
            {"feature_types": {"b": "number"}, "top_values": {"b": 3}},
            "Column 'b' is in top_values, so its feature_types must be",
        ),
        ({"bins": {"b": 3}, "top_values": {"b": 3}}, "Column 'b' is in both bins and top_values"),
        ({"bins": {"a": 3}}, "Column 'a' is to be read as number, but has the value 'x'"),
        ({"top_values": 0}, "top_values must be a whole number of at least 1, not 0"),
        ({"top_values": {"a": True}}, r"top_values\['a'\] must be a whole number"),
        ({"max_count": 0}, "max_count must be a whole number of at least 1"),
        ({"missing_values": True}, "missing_values must be words or numbers, not True"),
        ({"missing_values": ["?", ["x"]]}, r"missing_values must be words or numbers, not \['x'\]"),
        ({"missing_values": {"a": "?"}}, "missing_values must be words or numbers"),
        ({"missing_values": b"?"}, "missing_values must be words or numbers"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message) as raised:
        learn({"a": ["x", "y"] * 3, "b": [1.5, 2.0] * 3}, **settings)
    assert str(raised.value).endswith(".")


@pytest.mark.parametrize(
    ("column", "ordered"),
    [
        (pd.Series(pd.Categorical(["lo", "hi", "lo", "mid"], ["lo", "mid", "hi"], ordered=True)), True),
        (pd.Series(pd.Categorical(["lo", "hi", "lo", "mid"], ["lo", "mid", "hi"])), False),
        (pl.Series(["lo", "hi", "lo", "mid"], dtype=pl.Enum(["lo", "mid", "hi"])), True),
        (
            pa.chunked_array([pa.DictionaryArray.from_arrays([0, 2, 0, 1], ["lo", "mid", "hi"], ordered=True)]),
            True,
        ),
    ],
    ids=["pandas ordered", "pandas", "polars enum", "pyarrow"],
)
def test_declared_orders_are_kept_and_remembered(column, ordered):
    found, codes = feature(column)
    assert found.values == ("lo", "mid", "hi")
    assert codes == [0, 2, 0, 1]
    assert found.type == ("ordered" if ordered else "category")
    assert found.ordered == ordered


def test_the_order_holds_for_the_catalogue_too():
    column = pd.Series(pd.Categorical(["lo", "hi", "lo"], ["lo", "mid", "hi"], ordered=True))
    encoding = Encoding.learn(read({"a": column}), Asked(), read({"a": ["mid", "hi"]}))
    assert encoding.features[0].values == ("lo", "mid", "hi")
    with pytest.raises(ValueError, match="candidates has the value 'top' in column 'a', which is not in the order"):
        Encoding.learn(read({"a": column}), Asked(), read({"a": ["top"]}))


def test_numbers_and_counts_are_ordered_and_words_are_not():
    encoding, _ = learn({"a": [1, 2] * 3, "b": [1.5, 2.5] * 3, "c": ["x", "y"] * 3, "d": [True, False] * 3})
    assert [f.ordered for f in encoding.features] == [True, True, False, False]


# --- whole numbers: codes or measures? ----------------------------------------------------------------------------------


def whole(values, times=10, **settings):
    return learn({"a": np.repeat(values, times)}, **settings)[0]


def test_codes_with_gaps_are_values():
    codes = [1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 21, 22]
    assert whole(codes).features[0].values == tuple(codes)
    assert whole(codes).notes == ()
    assert whole(codes, times=3).features[0].type == "number"  # too few cases to tell
    rare = np.concatenate([np.repeat(np.arange(15), 100), [40, 97]])  # the tail of a count is no gap
    assert learn({"a": rare})[0].features[0].type == "number"
    assert whole(range(0, 1000, 10)).features[0].type == "number"  # a hundred codes would be too many


def test_numbers_that_are_cut_but_may_be_codes_are_noted():
    (note,) = whole(range(1, 25)).notes
    assert str(note) == (
        "Column 'a' has whole numbers that are cut into intervals, such as a = 5 to 9; if they are codes, say so with "
        "feature_types={'a': 'category'}, or keep the intervals with feature_types={'a': 'number'}."
    )
    assert whole(range(1, 25), feature_types={"a": "number"}).notes == ()
    assert whole(range(1, 25), feature_types={"a": "category"}).notes == ()
    assert whole(range(1, 25), bins={"a": 3}).notes == ()
    assert whole(range(17, 91)).notes == ()  # ages
    assert whole(range(1, 25), times=9).notes == ()
    (note,) = whole(range(8001, 8900, 7)).notes  # postcodes
    assert note.column == "a"
    assert whole(range(10, 2000, 19)).notes == ()  # numbers of two to four digits
    losses = np.concatenate([np.zeros(2000), np.arange(1400, 2000, 15)])  # most have none
    assert learn({"a": losses})[0].notes == ()
    X = {name: np.repeat(np.arange(24), 10) for name in "abc"}
    (note,) = learn(X)[0].notes
    assert str(note).startswith("Columns 'a', 'b', 'c' have whole numbers")


@pytest.mark.parametrize("gap", [[], [None]])
@pytest.mark.parametrize("first", [2**53, 2**62, 2**63 - 2, 10**30, -(10**30)])
def test_large_whole_numbers_stay_apart(first, gap):
    """As floats 10**30 and 10**30 + 1 are one number."""
    column = [first, first + 1, first, first + 1, *gap]
    encoding, codes = learn({"a": column})
    assert codes[:, 0].tolist() == [0, 1, 0, 1, *([-1] if gap else [])]
    assert list(map(int, encoding.features[0].values)) == [first, first + 1]
    assert again(encoding, {"a": [first + 1, None]}) == ([[1], [-1]], 0)
    for frame in (pd.DataFrame({"a": pd.Series(column, dtype=object)}), np.array([column], dtype=object).T):
        assert learn(frame)[1][:, 0].tolist() == codes[:, 0].tolist()


def test_words_that_spell_large_whole_numbers_stay_apart():
    column = [str(2**53), str(2**53 + 1)] * 3
    found, codes = feature(column, feature_types={"a": "integer"})
    assert found.values == (2**53, 2**53 + 1)
    assert codes == [0, 1] * 3
    with pytest.raises(ValueError, match=r"Column 'a' is to be read as integer, but has the value 1e\+30"):
        feature([str(10**30), str(10**30 + 1)] * 3, feature_types={"a": "integer"})


# --- many values ------------------------------------------------------------------------------------------------------


def test_too_many_values_name_the_column_and_the_ways_out():
    names = [f"n{i}" for i in range(MANY + 1)]
    with pytest.raises(ValueError, match=r"^Column 'animal' has 51 different values in 52 cases") as raised:
        learn({"animal": [*names, "n0"]})
    for way in ("feature_types={'animal': 'drop'}", "top_values={'animal': 10}", "feature_types={'animal': 'category'}"):
        assert way in str(raised.value)
    assert len(learn({"animal": [*names, "n0"]}, feature_types={"animal": "category"})[0].features[0].values) == 51
    assert len(learn({"animal": [*names, "n0"]}, top_values={"animal": 10})[0].features[0].values) == 11
    assert len(learn({"animal": names * 2})[0].features[0].values) == 51


def test_an_insisted_row_number():
    with pytest.raises(ValueError, match=r"row number.*feature_types=\{'a': 'drop'\}"):
        feature(np.arange(30))
    assert len(feature(np.arange(30), feature_types={"a": "number"})[0].values) == 5
    assert len(feature(np.arange(30), feature_types={"a": "category"})[0].values) == 30


def test_identifiers_that_are_no_row_numbers():
    rng = np.random.default_rng(0)
    ids = rng.choice(50_000, size=4000, replace=False)  # 160 pairs would be equal by chance
    with pytest.raises(TableError, match=r"^Column 'a' has as many values as cases \(4000\), whole numbers like those"):
        feature(ids)
    assert feature(ids, feature_types={"a": "number"})[0].type == "number"
    assert feature(np.append(ids, ids[0]))[0].type == "number"  # one twice
    assert feature(rng.choice(10**7, size=4000, replace=False))[0].type == "number"  # by chance none would be
    assert feature(ids / 2)[0].type == "number"


def test_top_values_keep_the_most_frequent_and_other():
    column = ["c"] * 4 + ["a"] * 3 + ["b"] * 2 + ["d", "e", None]
    encoding, codes = learn({"a": column}, top_values={"a": 2})
    assert encoding.features[0].values == ("a", "c", "other")
    assert encoding.features[0].other
    assert codes[:, 0].tolist() == [1] * 4 + [0] * 3 + [2] * 4 + [-1]
    # a value first seen later is "other" too, not missing
    assert again(encoding, {"a": ["z", "a", None, "other"]}) == ([[2], [0], [-1], [2]], 0)


def test_ties_are_kept_in_order_and_other_is_not_mistaken_for_a_value():
    found, codes = feature(["other", "b", "a", "(other)"] * 2 + ["other", "other", "b", "x", "y"], top_values=2)
    assert found.values == ("b", "other", "((other))")
    assert Counter(codes) == {1: 4, 0: 3, 2: 6}
    assert feature(["b", "a", "c"] * 3, top_values=2)[0].values == ("a", "b", "other")


def test_top_values_leave_columns_alone_that_have_no_more():
    encoding, _ = learn({"a": ["x", "y"] * 3, "b": [True, False] * 3, "c": [1, 2, 3] * 2}, top_values=2)
    assert [f.values for f in encoding.features] == [("x", "y"), (False, True), (1, 2, 3)]
    assert again(encoding, {"a": ["z"], "b": [True], "c": [1]}) == ([[-1, 1, 0]], 1)


def test_top_values_of_a_named_column_of_numbers():
    encoding, _ = learn({"zip": [8001, 8001, 8002, 8003, 8004.0, np.nan]}, top_values={"zip": 1})
    assert encoding.features[0].values == (8001, "other")
    assert again(encoding, {"zip": ["8001", 8001.0, "x"]})[0] == [[0], [0], [1]]


# --- counts -----------------------------------------------------------------------------------------------------------

COUNTS = np.array([[0, 2, 1], [1, 0, 1], [0, 7, 0], [3, 1, 1], [0, 0, 0]])


def test_sparse_is_absent_or_present():
    encoding, codes = learn(scipy.sparse.csr_array(COUNTS), feature_types="count")
    assert [f.values for f in encoding.features] == [(False, True)] * 3
    assert [f.type for f in encoding.features] == ["count"] * 3
    assert np.array_equal(codes, COUNTS > 0)
    weights = scipy.sparse.csc_array(COUNTS * -0.37)  # presence is anything but zero
    assert np.array_equal(learn(weights, feature_types="count")[1], COUNTS > 0)


def test_capped_counts():
    encoding, codes = learn(scipy.sparse.csr_array(COUNTS), max_count=3)
    assert [f.values for f in encoding.features] == [(0, 1, 2, "3+"), (0, 1, 2, "3+"), (0, "1+")]
    assert np.array_equal(codes, np.minimum(COUNTS, [3, 3, 1]))
    assert again(encoding, scipy.sparse.csr_array([[9, 9, 9]])) == ([[3, 3, 1]], 0)
    assert again(encoding, np.array([[9.0, 0.5, np.nan]])) == ([[3, -1, -1]], 1)


@pytest.mark.parametrize("wrong", [-1, 0.5])
def test_what_is_no_count_is_named(wrong):
    with pytest.raises(ValueError, match=rf"Column 'x1' has the value {wrong:g}, which is no count; use max_count=1"):
        learn(scipy.sparse.csr_array([[1, 1], [1, wrong], [0, 0]]), max_count=2)


def test_dense_and_sparse_can_stand_for_each_other():
    sparse, dense = scipy.sparse.csr_array(COUNTS), COUNTS.astype(float)
    encoding, codes = learn(sparse, max_count=2)
    assert again(encoding, dense) == (codes.tolist(), 0)
    assert again(encoding, pd.DataFrame(COUNTS)) == (codes.tolist(), 0)
    assert again(encoding, COUNTS > 0) == ((COUNTS > 0).astype(int).tolist(), 0)
    encoding, codes = learn(np.vstack([COUNTS] * 3))
    assert again(encoding, sparse) == (codes[:5].tolist(), 0)


@pytest.mark.parametrize("catalogue", [COUNTS, scipy.sparse.coo_array(COUNTS), pd.DataFrame(COUNTS)])
def test_a_catalogue_of_counts(catalogue):
    encoding = Encoding.learn(read(scipy.sparse.csr_array(np.minimum(COUNTS, 1))), Asked(max_count=9), read(catalogue))
    assert [len(f.values) for f in encoding.features] == [4, 8, 2]


def test_a_column_of_a_sparse_matrix_can_be_read_in_another_way():
    types = {0: "drop", "x1": "integer", "x2": "count"}
    encoding, codes = learn(scipy.sparse.csr_array(COUNTS), feature_types=types)
    assert [(f.name, f.values) for f in encoding.features] == [("x1", (0, 1, 2, 7)), ("x2", (False, True))]
    assert codes[:, 0].tolist() == [2, 0, 3, 1, 0]
    with pytest.raises(ValueError, match="missing_values has the number -1, but a sparse matrix has no missing cells"):
        learn(scipy.sparse.csr_array(COUNTS), feature_types="count", missing_values=-1)


def test_a_word_that_nobody_uses_is_noted():
    encoding, _ = learn(scipy.sparse.csr_array(COUNTS * [1, 0, 1]), feature_types="count")
    assert list(map(str, encoding.notes)) == ["Feature 'x1' has one value only and cannot tell cases apart."]
    assert again(encoding, scipy.sparse.csr_array([[0, 1, 0]])) == ([[0, 1, 0]], 0)


# --- the features in words ----------------------------------------------------------------------------------------------


def test_features_are_described():
    X = {"age": [*AGES.tolist(), None], "colour": ["red", "blue", "green"] * 4 + [None], "tall": [True, False] * 6 + [True]}
    encoding, _ = learn(X)
    table = describe(encoding, encoding.encode(read(X))[0], most=2)
    assert [(row.name, row.type, row.n_values) for row in table] == [
        ("age", "number", 5),
        ("colour", "category", 3),
        ("tall", "category", 2),
    ]
    assert table[1].missing == pytest.approx(1 / 13)
    assert table[1].values == "blue, green, …"
    lines = repr(table).splitlines()
    assert len(lines) == 4
    assert re.match(r"colour +category +3 +7\.7%  blue, green, …$", lines[2])
    assert list(types_in_words(encoding)) == ["2 category: colour, tall", "1 number: age"]
