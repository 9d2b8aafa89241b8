"""Tables that are read in parts: the features and codes of the same table in memory."""

import bz2
import gzip
import json
import lzma

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import feather, parquet

from bayescase import TableError
from bayescase.errors import TableWarning
from bayescase.reading import batches, cache, tallies
from bayescase.reading.batches import open_source
from bayescase.reading.encoding import Encoding
from bayescase.reading.files import read_file
from bayescase.reading.rules import Asked
from bayescase.reading.tables import read


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(batches, "PART_ROWS", 64)
    monkeypatch.setattr(batches, "CSV_BYTES", 2000)
    monkeypatch.setattr(cache, "BLOCK_CELLS", 300)


def table(n=333, bags=False):
    rng = np.random.default_rng(1)
    found = {
        "colour": rng.choice(["red", "blue", "green"], n).tolist(),
        "weight": np.round(rng.normal(size=n), 2).tolist(),
        "legs": rng.integers(0, 5, n).tolist(),
        "tame": [None if u < 0.1 else bool(u < 0.5) for u in rng.random(n)],
        "code": rng.choice([10, 20, 35, 1000], n).tolist(),
        "grade": rng.choice(["a", "?", "c"], n).tolist(),
    }
    if bags:
        found["tags"] = [rng.choice(list("abcdef"), size=rng.integers(0, 5)).tolist() for _ in range(n)]
    return found


def cached(source, folder, **asked):
    how = Asked(**asked)
    print_ = cache.print_of(source, how, None)
    encoding = cache.known_features(folder, print_) or cache.learn(folder, source, how, None, lambda n: None)
    known = cache.known_codes(folder, encoding, print_)
    return cache.cache(folder, source, encoding, print_, lambda n: None) if known is None else known


def check_same(source, whole, folder, **asked):
    """Features and codes of a source are those of a table in memory."""
    found = cached(source, folder, **asked)
    wanted = Encoding.learn(whole, Asked(**asked))
    assert found.encoding.to_json() == wanted.to_json()
    codes = wanted.encode(whole)[0]
    again = found.take(np.arange(codes.n_rows))
    assert np.array_equal(again.x, codes.x)
    assert found.about.n_rows == codes.n_rows
    observed = codes.cells.codes[codes.cells.codes >= 0]
    assert found.about.counts == np.bincount(observed, minlength=int(wanted.offset[-1])).tolist()
    if codes.bags is not None:
        assert np.array_equal(again.bags.codes, codes.bags.codes)
        assert np.array_equal(again.bags.first, codes.bags.first)
    return found


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow_files_are_read_as_in_memory(kind, tmp_path):
    whole = pa.table(table(bags=True))
    path = tmp_path / f"cases.{kind}"
    if kind == "parquet":
        parquet.write_table(whole, path, row_group_size=100)
    else:
        feather.write_feather(whole, path, chunksize=100)
    found = check_same(open_source(path), read(whole), tmp_path, missing_values="?")
    assert found.n_blocks > 3


def test_a_dataset_of_pyarrow(tmp_path):
    whole = pa.table(table())
    source = open_source(ds.dataset(whole))
    assert source.print is None  # memory cannot be recognised
    check_same(source, read(whole), tmp_path)


def test_a_dataset_that_was_filtered(tmp_path):
    whole = pa.table(table())
    parquet.write_table(whole, tmp_path / "x.parquet", row_group_size=100)
    source = open_source(ds.dataset(tmp_path / "x.parquet").filter(ds.field("legs") > 1))
    assert source.print is None  # nothing tells one filter from another
    check_same(source, read(whole.filter(pa.compute.greater(whole["legs"], 1))), tmp_path)


def test_files_that_lack_columns_or_have_other_numbers(tmp_path):
    """As Spark and pandas write them: a column without any value has no type, one without gaps is whole numbers."""
    folder, whole = tmp_path / "visits", pa.table(table())
    folder.mkdir()
    first = whole.slice(0, 100).drop(["code"]).set_column(0, "colour", pa.nulls(100))
    second = whole.slice(100, 100).set_column(2, "legs", whole["legs"].slice(100, 100).cast(pa.float32()))
    for k, part in enumerate((first, second, whole.slice(200))):
        parquet.write_table(part, folder / f"{k}.parquet")
    together = pa.concat_tables([first, second, whole.slice(200)], promote_options="permissive")
    check_same(open_source(folder), read(together.cast(together.schema.set(2, pa.field("legs", pa.float64())))), tmp_path)


@pytest.mark.parametrize(
    "compress", [gzip.compress, bz2.compress, lzma.compress, bytes, lambda b: b.decode("utf-8-sig").encode("utf-16")]
)
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_texts_that_are_compressed_or_marked(kind, compress, tmp_path):
    frame, path = pd.DataFrame(table(100)), tmp_path / f"cases.{kind}"
    text = frame.to_csv(index=False) if kind == "csv" else frame.to_json(orient="records", lines=True)
    path.write_bytes(compress(text.encode("utf-8-sig")))
    check_same(open_source(path), read_file(path, missing_values=["?"]).table, tmp_path, missing_values="?")


def test_names_without_the_space_around_them(tmp_path):
    (tmp_path / "cases.csv").write_text(" a , b\nx,1\ny,2\n" * 1 + "x,2\ny,1\n" * 20)
    check_same(open_source(tmp_path / "cases.csv"), read_file(tmp_path / "cases.csv").table, tmp_path)


def test_csv_is_typed_by_all_its_cells(tmp_path):
    cases = table()
    cases["late"] = [*range(300), *["word"] * 33]  # a number in every part but the last
    cases["flag"] = ["TRUE", "false", ""] * 111
    pd.DataFrame(cases).to_csv(tmp_path / "cases.csv", index=False)
    whole = read_file(tmp_path / "cases.csv", missing_values=["?"]).table
    asked = {"missing_values": "?", "feature_types": {"late": "category", "code": "category"}}
    check_same(open_source(tmp_path / "cases.csv"), whole, tmp_path, **asked)


def test_compressed_csv_without_a_header(tmp_path):
    pd.DataFrame(table()).to_csv(tmp_path / "cases.csv.gz", index=False, header=False, sep=";")
    with pytest.warns(TableWarning, match="if it means missing") as warned:
        whole = read_file(tmp_path / "cases.csv.gz", header=False).table
    found = check_same(open_source(tmp_path / "cases.csv.gz", header=False), whole, tmp_path)
    assert [str(note) for note in found.encoding.notes] == [str(each.message) for each in warned]


def test_json_lines_with_lists_and_keys_that_come_late(tmp_path):
    cases = table(bags=True)
    lines = [{key: column[i] for key, column in cases.items()} for i in range(333)]
    for line in lines[250:]:
        line["more"] = "x" if line["legs"] > 2 else 7
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)))
    check_same(open_source(tmp_path / "cases.jsonl"), read_file(tmp_path / "cases.jsonl").table, tmp_path)


def test_a_folder_is_read_file_by_file_with_its_partitions(tmp_path):
    folder = tmp_path / "visits"
    whole = pa.table(table())
    for k, year in enumerate((2021, 2022, 2023)):
        (folder / f"year={year}").mkdir(parents=True)
        parquet.write_table(whole.slice(111 * k, 111), folder / f"year={year}" / "part.parquet")
    together = whole.append_column("year", pa.array(np.repeat([2021, 2022, 2023], 111).astype(np.int32)))
    check_same(open_source(folder), read(together), tmp_path)


def test_categories_are_unified(tmp_path):
    folder = tmp_path / "visits"
    folder.mkdir()
    parts = [["b", "a", "b", "a"] * 5, ["c", "b", "c", "b"] * 5]
    for k, part in enumerate(parts):
        columns = {"kind": pa.array(part).dictionary_encode(), "n": [1, 2] * 10}
        parquet.write_table(pa.table(columns), folder / f"{k}.parquet")
    found = cached(open_source(folder), tmp_path)
    assert set(found.encoding.features[0].values) == {"a", "b", "c"}


def test_bags_of_separated_words_and_of_columns(tmp_path):
    rng = np.random.default_rng(0)
    cases = {"tags": [";".join(rng.choice(list("abcd"), rng.integers(0, 4))) for _ in range(200)]}
    cases |= {name: rng.integers(0, 3, 200) for name in ("egg", "rice")} | {"x": rng.integers(0, 3, 200)}
    pd.DataFrame(cases).to_csv(tmp_path / "cases.csv", index=False)
    whole = read_file(tmp_path / "cases.csv").table
    found = check_same(
        open_source(tmp_path / "cases.csv"), whole, tmp_path, bags={"tags": ";", "food": ["egg", "rice"]}, min_cases=2
    )
    assert found.about.n_candidate_cells < found.about.n_cells  # items that occur twice are one for a candidate


def test_too_many_numbers_are_sampled_and_the_bins_hardly_move(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "LEAST", 4000)
    monkeypatch.setattr(tallies, "MOST_NUMBERS", 4000)
    numbers = np.random.default_rng(0).normal(size=30_000)
    parquet.write_table(pa.table({"x": numbers}), tmp_path / "x.parquet")
    monkeypatch.setattr(batches, "PART_ROWS", 1000)
    monkeypatch.setattr(cache, "BLOCK_CELLS", 4000)
    found = cached(open_source(tmp_path / "x.parquet"), tmp_path)
    (note,) = found.encoding.notes
    assert "one in 8" in str(note) or "one in 16" in str(note)
    np.testing.assert_allclose(found.encoding.features[0].edges, np.quantile(numbers, [0.2, 0.4, 0.6, 0.8]), atol=0.06)


def test_a_cache_is_recognised_and_that_of_another_table_is_not(tmp_path, monkeypatch):
    path, passes = tmp_path / "cases.parquet", []
    parquet.write_table(pa.table(table()), path)
    learn, write = cache.learn_source, cache.write_codes
    monkeypatch.setattr(cache, "learn_source", lambda *args: passes.append(1) or learn(*args))
    monkeypatch.setattr(cache, "write_codes", lambda *args: passes.append(2) or write(*args))
    cached(open_source(path), tmp_path)
    cached(open_source(path), tmp_path)
    assert passes == [1, 2]
    cached(open_source(path), tmp_path, bins=3)
    assert passes == [1, 2, 1, 2]
    parquet.write_table(pa.table(table(334)), path)
    cached(open_source(path), tmp_path, bins=3)
    assert passes == [1, 2, 1, 2, 1, 2]


def write_mixed(folder):
    parquet.write_table(pa.table({"a": [1, 2]}), folder / "1.parquet")
    parquet.write_table(pa.table({"a": ["x", "y"]}), folder / "2.parquet")


def write_two_kinds(folder):
    parquet.write_table(pa.table({"a": [1, 2]}), folder / "1.parquet")
    (folder / "2.csv").write_text("a\n1\n")


def write_ragged(folder):
    (folder / "1.csv").write_text("a,b\n1,2\n3\n")


def write_other_columns(folder):
    (folder / "1.csv").write_text("a,b\n1,2\n")
    (folder / "2.csv").write_text("a,c\n1,2\n")


def write_latin(folder):
    (folder / "1.csv").write_bytes("a,b\nä,ö\n".encode("latin-1"))


def write_latin_json(folder):
    (folder / "1.jsonl").write_bytes('{"a": "ä"}\n'.encode("latin-1"))


def write_bad_json(folder):
    (folder / "1.jsonl").write_text('{"a": 1}\n' * 70 + "{nonsense\n")


def write_damaged(folder):
    (folder / "1.csv").write_bytes(gzip.compress(b"a,b\n1,2\n" * 99)[:-9])


def write_no_table(folder):
    (folder / "1.bin").write_bytes(b"\x00\x01nothing")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (write_mixed, "Column 'a' is int64 in some files"),
        (write_two_kinds, "several kinds: csv, parquet"),
        (write_ragged, "cannot be read as CSV"),
        (write_other_columns, "does not have the columns of 1.csv"),
        (write_latin, "1.csv is not UTF-8 text"),
        (write_latin_json, "1.jsonl is not UTF-8 text"),
        (write_bad_json, "1.jsonl, line 71: this is not JSON"),
        (write_damaged, "1.csv cannot be read"),
        (write_no_table, "not a table that can be read in parts"),
        (lambda folder: None, "has no file"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(write, words, tmp_path):
    folder, place = tmp_path / "data", tmp_path / "cache"
    folder.mkdir()
    place.mkdir()
    write(folder)
    with pytest.raises(TableError, match=words) as error:
        cached(open_source(folder), place)
    assert "\n" not in str(error.value)


def test_a_column_of_too_many_words_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "LEAST", 100)
    monkeypatch.setattr(tallies, "MOST_WORDS", 100)
    parquet.write_table(pa.table({"id": [f"n{i}" for i in range(500)], "a": [1, 2] * 250}), tmp_path / "x.parquet")
    with pytest.raises(TableError, match=r"more than 100 different words.*drop"):
        cached(open_source(tmp_path / "x.parquet"), tmp_path)
