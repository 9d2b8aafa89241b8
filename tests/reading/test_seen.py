"""Columns of few values are read without an object for each cell, and without another result."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayescase.errors import TableError
from bayescase.parallel import on_threads
from bayescase.reading import encoding as encoding_room
from bayescase.reading import seen as seen_room
from bayescase.reading.encoding import Encoding
from bayescase.reading.rules import Asked
from bayescase.reading.seen import MOST, as_matrix, code_columns, is_few
from bayescase.reading.tables import read

N = 700
RNG = np.random.default_rng(5)
NUMBERS = RNG.integers(-3, 4, size=N)
WORDS = np.array(["no", "yes", "?", "12", "7"], dtype=object)[RNG.integers(5, size=N)]
GAPS = np.where(RNG.random(N) < 0.2, None, WORDS)
GAPS[:50] = None  # words that come late
MARKED = {"missing_values": [2, "?"]}

COLUMNS = {
    "int64": NUMBERS,
    "int8": NUMBERS.astype(np.int8),
    "uint8": (NUMBERS + 100).astype(np.uint8),
    "uint64 beyond int64": NUMBERS.astype(np.uint64) + np.uint64(2**63 + 10),
    "int64 near its least": NUMBERS - (2**63 - 10),
    "more values than a byte": RNG.integers(1000, 1300, size=4 * N),
    "floats": NUMBERS.astype(float),
    "floats with gaps": np.where(NUMBERS == 3, np.nan, NUMBERS).astype(np.float32),
    "no whole numbers": NUMBERS + 0.5,
    "half precision": NUMBERS.astype(np.float16),
    "booleans": NUMBERS > 0,
    "backwards": NUMBERS[::-1],
    "pandas categories": pd.Series(GAPS, dtype="category"),
    "pandas categories in order": pd.Series(pd.Categorical(GAPS, ["yes", "no", "?", "7", "12", "unused"], ordered=True)),
    "pandas categories of numbers": pd.Series(NUMBERS, dtype="category"),
    "pandas categories that look alike": pd.Series(["1", 1, "2"] * 200, dtype="category"),
    "pandas words": pd.Series(GAPS),
    "pandas objects": pd.Series(GAPS, dtype=object),
    "pandas booleans": pd.Series(NUMBERS > 0),
    "pandas integers with gaps": pd.Series(np.where(NUMBERS == 3, None, NUMBERS), dtype="Int64"),
    "polars categories": pl.Series(GAPS.tolist(), dtype=pl.Categorical),
    "polars enum": pl.Series(GAPS.tolist(), dtype=pl.Enum(["yes", "no", "?", "7", "12", "unused"])),
    "polars words": pl.Series(GAPS.tolist(), dtype=pl.String),
    "polars integers": pl.Series(NUMBERS),
    "arrow dictionary": pa.chunked_array([pa.array(GAPS[:300]).dictionary_encode(), pa.array(GAPS[300:]).dictionary_encode()]),
    "pandas words, joined": pd.concat(
        [pd.Series(GAPS[:300], dtype="string[pyarrow]"), pd.Series(GAPS[300:], dtype="string[pyarrow]")]
    ),
    "arrow words": pa.chunked_array([GAPS[:300].tolist(), GAPS[300:].tolist()]),
}
ASKED = (
    {},
    MARKED,
    {"feature_types": "category"},
    {"feature_types": "ordered"},
    {"feature_types": "number"},
    {"feature_types": "integer"},
    {"feature_types": "count", "max_count": 3},
    {"top_values": {"a": 2}},
)


def outcome(column, asked):
    """Everything that reading a column says: its feature, codes and notes, or the error."""
    try:
        table = read({"a": column})
        encoding = Encoding.learn(table, Asked(**asked))
        new = read({"a": column[: N // 2]})
        few = Encoding.learn(new, Asked(**asked))
        codes, unseen = few.encode(table)
        notes = [str(note) for note in encoding.notes]
        return encoding.features, encoding.encode(new)[0].x.tolist(), few.features, codes.x.tolist(), unseen, notes
    except TableError as error:
        return type(error), str(error)


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: "-".join(asked) or "default")
@pytest.mark.parametrize("name", COLUMNS)
def test_the_result_is_that_of_cells_looked_at_one_by_one(name, asked, monkeypatch):
    found = outcome(COLUMNS[name], asked)
    monkeypatch.setattr(encoding_room, "code_columns", lambda columns, *_: [None] * len(columns))
    assert found == outcome(COLUMNS[name], asked)


@pytest.mark.parametrize("name", COLUMNS)
def test_which_columns_have_few_values(name):
    column = read({"a": COLUMNS[name]}).columns
    slow = {"no whole numbers", "half precision", "pandas categories that look alike", "pandas integers with gaps"}
    assert (code_columns(column, ["a"], ())[0] is None) == (name in slow)


WHOLE = np.column_stack([NUMBERS, NUMBERS % 2 + 5, RNG.integers(90, 120, size=N), NUMBERS])
MATRICES = {
    "int64": WHOLE,
    "int8": WHOLE.astype(np.int8),
    "uint8": (WHOLE + 100).astype(np.uint8),
    "uint32": (WHOLE + 2**31).astype(np.uint32),
    "uint64": (WHOLE + 3).astype(np.uint64),
    "near the least and the largest": WHOLE + np.array([-(2**63) + 10, 2**62, 0, 2**63 - 10]),
    "by columns": np.asfortranarray(WHOLE),
    "some columns of a larger one": np.hstack([WHOLE, WHOLE])[:, 1:6],
    "every second row and column": np.repeat(np.repeat(WHOLE, 2, axis=0), 2, axis=1)[::2, ::2],
    "backwards": WHOLE[::-1, ::-1],
    "one row again and again": np.broadcast_to(WHOLE[0], WHOLE.shape),
    "booleans": WHOLE > 2,
    "values that are not there": WHOLE * 2,
    "floats": WHOLE.astype(float),
}


@pytest.mark.parametrize("asked", [{}, MARKED, {"feature_types": "category"}, {"feature_types": {"x1": "drop"}}], ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_as_a_whole_is_read_as_its_columns_are(name, asked, monkeypatch):
    table, new = read(MATRICES[name]), read(MATRICES[name][: N // 2])

    def read_it():
        found = []
        for learned, coded in ((table, new), (new, table), (table, table)):
            encoding = Encoding.learn(learned, Asked(**asked))
            (x, _), unseen = encoding.encode(coded)
            found.append((encoding.features, x.tolist(), x.dtype, unseen))
        return found

    for name, value in (("CELLS", 1000), ("MANY", 0)):
        monkeypatch.setattr(seen_room, name, value)
    for room in (seen_room, encoding_room):
        monkeypatch.setattr(room, "OF_MATRIX", 300)
    whole = read_it()
    with on_threads(3):
        assert read_it() == whole
    monkeypatch.setattr(seen_room, "as_matrix", lambda columns: None)
    monkeypatch.setattr(encoding_room, "as_matrix", lambda columns: None)
    assert read_it() == whole
    monkeypatch.setattr(encoding_room, "code_columns", lambda columns, *_: [None] * len(columns))
    assert read_it() == whole


def test_which_columns_are_a_matrix():
    columns = {name: read(x).columns for name, x in MATRICES.items()}
    found = {name for name, of in columns.items() if as_matrix(of) is not None}
    assert found == {"int64", "int8", "uint8", "uint32", "near the least and the largest", "some columns of a larger one"} | {
        "values that are not there"
    }
    for name in found:
        assert np.array_equal(as_matrix(columns[name]), MATRICES[name])
    first, second, third, fourth = columns["int64"]
    for other in ([first, third], [second, first], [first, second, fourth], [first, second[1:]], [first]):
        assert as_matrix(other) is None


def test_threads_read_a_frame_as_one_does(monkeypatch):
    monkeypatch.setattr(seen_room, "CELLS", 500)
    monkeypatch.setattr(seen_room, "MANY", 0)
    frame = pd.DataFrame({"a": GAPS, "b": pd.Categorical(GAPS), "c": NUMBERS, "d": RNG.normal(size=N), "e": NUMBERS / 2})
    few, wrong = read(frame[: N // 2]), read(frame.assign(f=[f"id {i}" for i in range(N)], c=np.arange(N)))

    def read_it():
        encoding = Encoding.learn(few, Asked())
        (x, _), unseen = encoding.encode(read(frame))
        with pytest.raises(TableError) as refused:
            Encoding.learn(wrong, Asked())
        return encoding.features, x.tolist(), unseen, str(refused.value)

    alone = read_it()
    assert "Columns 'c', 'f' cannot be used" in alone[-1]
    with on_threads(4):
        assert read_it() == alone


def test_values_beyond_the_first_rows_and_across_blocks(monkeypatch):
    """A table of several blocks of rows, whose last value occurs in the last block alone."""
    monkeypatch.setattr("bayescase.reading.seen.CELLS", 64)
    x = np.column_stack([NUMBERS, NUMBERS % 2, np.arange(N) >= N - 1])
    table = read(x)
    encoding = Encoding.learn(table, Asked())
    assert [feature.values for feature in encoding.features] == [(-3, -2, -1, 0, 1, 2, 3), (0, 1), (0, 1)]
    (codes, _), unseen = encoding.encode(table)
    assert unseen == 0
    np.testing.assert_array_equal(codes, x - [-3, 0, 0] + encoding.offset[:-1])
    assert encoding.encode(read(x + np.array([3, 0, 0])))[1] == (NUMBERS > 0).sum()


def test_few_is_what_a_table_of_that_size_can_bear():
    assert is_few(256, 1)
    assert not is_few(257, 1000)
    assert is_few(257, 1100)
    assert is_few(MOST, 10**9)
    assert not is_few(MOST + 1, 10**9)
    assert not is_few(0, 10)
