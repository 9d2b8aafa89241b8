"""Any input becomes the same columns; what cannot be read is named."""

import datetime
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from bayescase.errors import TableTypeError
from bayescase.reading.tables import SparseColumn, Wanted, index_names, is_marked, listed, plain, read, word

COUNTS = np.array([[0, 2, 0], [1, 0, 0], [0, 5, 0], [3, 1, 0]])


def dense(table):
    return np.column_stack([column.dense() for column in table.columns])


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dok", "lil", "dia", "bsr"])
def test_sparse_layouts_give_the_same_columns(layout, kind):
    X = getattr(scipy.sparse, f"{layout}_{kind}")(COUNTS)
    before = X.toarray()
    table = read(X)
    assert table.names is None
    assert table.n_cases == 4
    assert np.array_equal(dense(table), COUNTS)
    assert [column.rows.tolist() for column in table.columns] == [[1, 3], [0, 2, 3], []]
    assert np.array_equal(X.toarray(), before)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, float])
def test_sparse_numbers_of_every_type(dtype):
    X = scipy.sparse.csr_array(COUNTS.astype(dtype))
    assert np.array_equal(dense(read(X)), COUNTS.astype(dtype))


def test_sparse_cells_given_twice_add_up_and_zeros_are_absent():
    rows, columns, values = [0, 0, 1, 1, 2], [0, 0, 1, 1, 0], [2, 3, 1, -1, 0]
    for layout in (scipy.sparse.coo_array, scipy.sparse.csr_array, scipy.sparse.csc_array):
        X = layout((values, (rows, columns)), shape=(3, 2))
        stored = X.nnz
        table = read(X)
        assert dense(table).tolist() == [[5, 0], [0, 0], [0, 0]]
        assert len(table.columns[1].rows) == 0
        assert X.nnz == stored  # the user's matrix is left alone
    raw = scipy.sparse.csr_array((np.array([1, 2]), np.array([0, 0]), np.array([0, 2, 2])), shape=(2, 2))
    assert not raw.has_canonical_format
    assert dense(read(raw)).tolist() == [[3, 0], [0, 0]]
    assert raw.data.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            scipy.sparse.csr_array(np.array([[1.0, 0], [0, np.nan]])),
            "Column 'x1' of the sparse matrix contains NaN or infinity",
        ),
        (
            scipy.sparse.csc_array(np.array([[np.inf, 0], [0, 1.0]])),
            "Column 'x0' of the sparse matrix contains NaN or infinity",
        ),
        (scipy.sparse.csr_array(COUNTS * 1j), "Complex data not supported"),
        (scipy.sparse.csr_array((0, 3)), "The table is empty: 0 cases, 3 features"),
        (scipy.sparse.csr_array((3, 0)), "The table is empty: 3 cases, 0 features"),
        (scipy.sparse.coo_array(np.array([1, 0, 2])), "Expected a 2D sparse array"),
    ],
)
def test_sparse_errors(X, message):
    with pytest.raises(ValueError, match=message):
        read(X)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]),
        {"1": [1], 1: [2]},
    ],
)
def test_names_must_be_unique(X):
    with pytest.raises(ValueError, match=r"^Column '\w' is there more than once; a table needs unique column names\.$"):
        read(X)


def test_labels_that_are_not_words_are_no_names():
    assert read(pd.DataFrame(COUNTS)).names is None
    assert read(pd.DataFrame(COUNTS, columns=list("abc"))).names == ["a", "b", "c"]
    assert read({0: [1, 2], 1: [3, 4]}).names == ["0", "1"]
    with pytest.raises(TypeError, match="all column names are strings"):
        read(pd.DataFrame(COUNTS, columns=["a", 1, 2]))


def test_an_index_of_words_names_the_cases():
    frame = pd.DataFrame({"a": [1, 2]}, index=["rex", "tom"])
    assert index_names(frame) == ["rex", "tom"]
    assert index_names(frame.astype({"a": "category"}).set_index(pd.CategoricalIndex(["x", "x"]))) == ["x", "x"]
    for index in ([5, 3], [1.5, 2.5], ["rex", 3], pd.to_datetime(["2020-01-01", "2020-01-02"]), [("a", "b"), ("a", "c")]):
        assert index_names(frame.set_axis(index)) is None
    for X in (frame.reset_index(drop=True), frame[:0], pl.DataFrame({"a": [1]}), {"a": [1]}, COUNTS, [[1]]):
        assert index_names(X) is None


def test_columns_are_selected_by_name_or_by_position():
    table = read({"c": [3], "a": [1], "b": [2]})
    wanted = Wanted(["a", "b", "c"], 3, [0, 2])
    assert [column.tolist() for column in table.select(wanted, "X").columns] == [[1], [3]]
    array = read(np.array([[7, 8, 9]]))
    assert [column.tolist() for column in array.select(wanted, "X").columns] == [[7], [9]]
    with pytest.raises(ValueError, match=r"^X has no columns 'a', 'c'\.$"):
        read({"b": [1]}).select(wanted, "X")
    with pytest.raises(ValueError, match=r"^candidates has 2 features, but the data has 3\.$"):
        read(np.array([[7, 8]])).select(wanted, "candidates")


# --- missing in every dialect --------------------------------------------------------------------------------------------

WORDS = ["a", "?", None, "b"]
NUMBERS = [1, -9, None, 2]


@pytest.mark.parametrize(
    "column",
    [
        np.array(WORDS, dtype=object),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype=object),
        pd.Series(WORDS, dtype="category"),
        pd.Series(WORDS, dtype=pd.ArrowDtype(pa.string())),
        pd.Series(["a", "?", pd.NA, "b"], dtype="string"),
        pl.Series(WORDS),
        pl.Series(WORDS, dtype=pl.Categorical),
        pl.Series(WORDS, dtype=pl.Enum(["a", "b", "?"])),
        pa.chunked_array([WORDS]),
        pa.chunked_array([pa.array(WORDS).dictionary_encode()]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {getattr(column, 'dtype', getattr(column, 'type', ''))}"[:40],
)
def test_a_marker_is_missing_beside_null(column):
    column = read({"a": column}).columns[0]
    found = plain(column, "a", ("?",))
    assert found.missing.tolist() == [False, True, True, False]
    assert found.values[~found.missing].tolist() == ["a", "b"]
    assert found.categories is None or "?" not in found.categories
    assert plain(column, "a").missing.tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    "column",
    [
        np.array([1, -9, np.nan, 2]),
        np.array(NUMBERS, dtype=object),
        pd.Series(NUMBERS),
        pd.Series(NUMBERS, dtype="Int64"),
        pd.Series(NUMBERS, dtype=pd.ArrowDtype(pa.int64())),
        pl.Series(NUMBERS),
        pl.Series([1.0, -9.0, float("nan"), 2.0]),
        pa.chunked_array([NUMBERS]),
    ],
)
@pytest.mark.parametrize("marker", [-9, -9.0])
def test_a_number_can_be_a_marker(column, marker):
    found = plain(read({"a": column}).columns[0], "a", ("?", marker))
    assert found.missing.tolist() == [False, True, True, False]
    assert found.values[~found.missing].tolist() == [1, 2]


def test_markers_match_their_own_kind():
    assert is_marked("1", ("1",))
    assert is_marked(np.float32(1), (1,))
    assert not is_marked("1", (1,))
    assert not is_marked(1, ("1",))
    assert not is_marked(True, (1,))
    assert not is_marked((1,), (1,))
    assert not is_marked("?", ())


# --- columns of objects -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        [datetime.date(2020, 1, 1), None],
        [datetime.time(1), "a"],
        [datetime.timedelta(1), 3],
        [np.datetime64("2020-01-01"), 3],
        [pd.Timestamp("2020-01-01"), None],
    ],
)
def test_dates_among_objects(column):
    objects = np.empty(2, dtype=object)
    objects[:] = column
    with pytest.raises(ValueError, match="Column 'when' holds dates or times; turn them into numbers"):
        plain(objects, "when")


@pytest.mark.parametrize("value", [[1], (1,), {1}, frozenset({1}), {"x": 1}, np.array([1])])
def test_nested_values(value):
    objects = np.empty(2, dtype=object)
    objects[0], objects[1] = value, "a"
    with pytest.raises(TypeError, match=f"Column 'bad'.*got {type(value).__name__}"):
        plain(objects, "bad")


def test_words_are_the_same_for_whole_floats_and_integers():
    assert [word(value) for value in (1, 1.0, np.float32(2), 2.5, True, "1.0", b"caf\xc3\xa9", b"\xff")] == [
        *("1", "1", "2", "2.5", "True", "1.0", "café", "\\xff")
    ]


def test_listed():
    assert listed("column", ["a"]) == "column 'a'"
    assert listed("column", list("abcdefg")) == "columns 'a', 'b', 'c', 'd', 'e' and 2 more"


def test_a_sparse_column_knows_its_zeros():
    assert SparseColumn(np.array([1]), np.array([7]), 3).dense().tolist() == [0, 7, 0]


# --- on a GPU ------------------------------------------------------------------------------------------------------------


class There:
    """An array that NumPy must not touch."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class WithInterface(There):
    @property
    def __cuda_array_interface__(self):
        return {"shape": self.shape}


class WithDlpack(There):
    def __dlpack_device__(self):
        return (2, 0)


class Here(There):
    """As PyTorch's tensors that are not on a GPU."""

    @property
    def __cuda_array_interface__(self):
        raise AttributeError("not on a GPU")

    def __array__(self, *_, **__):
        return self.array


@pytest.mark.parametrize("kind", [WithInterface, WithDlpack])
def test_an_array_on_a_gpu_is_copied_once(kind, monkeypatch):
    x = np.array([[1, 2], [3, 4]])
    taken = []
    cupy = types.SimpleNamespace(
        asarray=lambda X: taken.append(X) or X, from_dlpack=lambda X: taken.append(X) or X, asnumpy=lambda X: X.array
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert np.array_equal(np.column_stack(read(kind(x)).columns), x)
    assert len(taken) == 1


def test_an_array_on_a_gpu_without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(TypeError, match="X lies on a GPU, and reading it from there needs CuPy"):
        read(WithInterface(np.eye(2)))


def test_a_tensor_that_is_not_on_a_gpu():
    assert np.array_equal(np.column_stack(read(Here(np.array([[1, 2], [3, 4]]))).columns), [[1, 2], [3, 4]])


@pytest.mark.parametrize("path", ["cases.csv", Path("cases.csv")])
def test_a_path_is_no_table(path):
    with pytest.raises(TableTypeError, match=r"X is a path, which only BayesianCaseModel reads; give the table, as read_file"):
        read(path)
