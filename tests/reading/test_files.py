"""Files of every kind become tables, and what is wrong with one is said in a sentence."""

import bz2
import csv
import gzip
import io
import json
import lzma
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse

from bayescase import BayesianCaseModel, TableError
from bayescase.reading.files import read_file
from bayescase.reading.tables import SparseColumn, Table, plain

CSV = "name,colour,legs,size,tame\nrex,red,4,1.5,true\ntom,,2,,false\nana,blue,4,2,true\n"


@pytest.fixture
def write(tmp_path):
    def make(content, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return make


def columns(data):
    """{name: values}, None where missing."""
    return {data.table.name(j): data.values(data.table.name(j)) for j in range(len(data.table.columns))}


ANIMALS = {
    "name": ["rex", "tom", "ana"],
    "colour": ["red", None, "blue"],
    "legs": [4, 2, 4],
    "size": [1.5, None, 2.0],
    "tame": [True, False, True],
}


# --- CSV ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_the_delimiter_is_guessed(write, delimiter):
    assert columns(read_file(write(CSV.replace(",", delimiter)))) == ANIMALS


def test_numbers_with_commas_do_not_hide_the_semicolon(write):
    assert columns(read_file(write("a;b\n1,5;x\n2,5;y\n"))) == {"a": ["1,5", "2,5"], "b": ["x", "y"]}


def test_a_single_column(write):
    assert columns(read_file(write("word\none\ntwo\n"))) == {"word": ["one", "two"]}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed(write, pack):
    assert columns(read_file(write(pack(CSV.encode()), "data.csv.packed"))) == ANIMALS


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode("utf-8-sig"),
        CSV.encode("utf-16"),
        CSV.replace("\n", "\r\n").encode(),
        CSV.replace("\n", "\r").encode(),
        CSV.replace("\n", "\r\n", 2).encode(),
        CSV.replace("\n", "\n\n").encode(),
        CSV.rstrip("\n").encode(),
        CSV.replace("\n", ",\n").encode(),
        CSV.replace(",", " , ").encode(),
    ],
    ids=["BOM", "UTF-16", "CRLF", "CR", "mixed line ends", "blank lines", "no last line end", "trailing commas", "spaces"],
)
def test_ways_to_write_the_same(write, content):
    assert columns(read_file(write(content))) == ANIMALS


def test_quotes(write):
    text = 'a,b\n"one, two","line 1\nline 2"\n"say ""hi""",plain\n'
    assert columns(read_file(write(text))) == {"a": ["one, two", 'say "hi"'], "b": ["line 1\nline 2", "plain"]}


def test_latin_1_is_noted(write):
    with pytest.warns(UserWarning, match=r"not UTF-8 \(line 3\); read as Latin-1"):
        assert columns(read_file(write("a\nx\ncafé\n".encode("latin-1")))) == {"a": ["x", "café"]}


def test_no_header(write):
    data = read_file(write("1,a\n2,b\n"), header=False)
    assert data.table.names is None
    assert columns(data) == {"x0": [1, 2], "x1": ["a", "b"]}


def test_a_case_in_place_of_the_header_is_noted(write):
    with pytest.warns(UserWarning, match=r"first row of data.csv looks like a case"):
        read_file(write("1,a,x\n2,b,x\n1,a,y\n"))


def test_unnamed_columns_get_a_name(write):
    assert list(columns(read_file(write(",a\n0,1\n1,2\n")))) == ["column 1", "a"]


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2"], "i", [1, -2]),
        (["1", ""], "f", [1.0, None]),
        (["1", "nan"], "f", [1.0, None]),
        (["1e3", ".5"], "f", [1000.0, 0.5]),
        (["TRUE", "False"], "b", [True, False]),
        (["true", ""], "O", [True, None]),
        (["007", "7"], "O", ["007", "7"]),
        (["1_000", "2"], "O", ["1_000", "2"]),
        (["٣", "4"], "O", ["٣", "4"]),
        (["nan", "x"], "O", ["nan", "x"]),
        (["9223372036854775807", "1"], "i", [2**63 - 1, 1]),
        (["9223372036854775808", "1"], "O", ["9223372036854775808", "1"]),
        (["9" * 5000, "1"], "O", ["9" * 5000, "1"]),
        (["1e999", "1"], "f", [np.inf, 1.0]),
        (["", ""], "O", [None, None]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Column 'a' has the value 'nan'")
def test_types_of_columns(write, cells, kind, values):
    data = read_file(write("a,b\n" + "".join(f"{cell},0\n" for cell in cells)))
    assert data.table.columns[0].dtype.kind == kind
    assert data.values("a") == values


def test_marks_for_missing(write):
    path = write("a,b\n?,-1\n3,4\n4,5\n")
    with pytest.warns(
        UserWarning, match=r"Column 'a' has the value '\?'; if it means missing, say so with missing_values='\?'\."
    ):
        assert columns(read_file(path))["a"] == ["?", "3", "4"]
    assert columns(read_file(path, missing_values=["?", "-1"])) == {"a": [None, 3, 4], "b": [None, 4, 5]}


def test_a_very_wide_header(write):
    names = [f"f{j}" for j in range(100_000)]
    data = read_file(write(",".join(names) + "\n" + ",".join(["1"] * 100_000) + "\n"))
    assert data.table.names == names
    with pytest.raises(ValueError, match=r"--id names 'f100000'.*did you mean"):
        data.position("f100000", "--id")


def test_a_cell_may_be_a_book(write):
    """Texts are bags. Python's reader alone would stop at 131,072 characters."""
    limit, book = csv.field_size_limit(), "word " * 50_000
    data = read_file(write(f"title,text\nA,{book}\nB,short\n"))
    assert [len(cell) for cell in data.table.columns[1]] == [len(book) - 1, 5]
    assert csv.field_size_limit() == limit


BAD = {
    "nothing": ("", "data.csv is empty"),
    "a BOM alone": ("\ufeff\n", "data.csv is empty"),
    "header only": ("a,b\n", "has a header, but no cases"),
    "short row": ("a,b\n1,2\n3\n", "line 3: 1 cell, but the header has 2"),
    "long row": ("a,b\n1,2\n\n3,4,5\n", "line 4: 3 cells, but the header has 2"),
    "long row after a cell of two lines": ('a,b\n"1\n1",2\n3,4,5\n', "line 4: 3 cells"),
    "open quote": ('a,b\n1,2\n"3,4\n5,6\n', "line 3: a quoted cell that begins here does not end"),
    "long open quote": ('a,b\n1,2\n"3,4\n' + "5,6\n" * 50_000, "line 3: a quoted cell that begins here does not end"),
    "text after a quote": ('a,b\n"1"x,2\n', "line 2: ',' expected after"),
    "names twice": ("a,b,a\n1,2,3\n", "columns 1 and 3 are both called 'a'"),
    "binary": (b"\x7fELF\0\0\0", "must be CSV, TSV, JSON lines, NPZ, Parquet or Feather"),
    "half a gzip": (gzip.compress(CSV.encode())[:-12], "compressed, but damaged"),
    "half an xz": (lzma.compress(CSV.encode())[:-12], "compressed, but damaged"),
    "half a zip": (b"PK\x03\x04" + bytes(30), "damaged archive"),
    "half UTF-16": (b"\xff\xfea", "begins like UTF-16"),
    "half a parquet": (b"PAR1" + bytes(30), "cannot be read"),
    "half a feather": (b"ARROW1" + bytes(30), "cannot be read"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said(write, content, message):
    if "cannot be read" in message:
        pytest.importorskip("pyarrow", reason="pip install 'bayescase[files]'")
    with pytest.raises(ValueError, match=message) as error:
        read_file(write(content))
    assert "\n" not in str(error.value)


def test_another_delimiter_than_was_said(write):
    with pytest.raises(ValueError, match="not separated by ';'; try ','"):
        read_file(write(CSV), delimiter=";")


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CSV.encode())))
    assert columns(read_file("-")) == ANIMALS


# --- JSON ---------------------------------------------------------------------------------------------------------------


def test_json_lines(write):
    cases = [{"a": 1, "b": "x", "c": True}, {"b": None, "a": 2.5}, {"d": "é"}]
    want = {"a": [1, 2.5, None], "b": ["x", None, None], "c": [True, None, None], "d": [None, None, "é"]}
    lines = "\n".join(map(json.dumps, cases))
    assert columns(read_file(write(lines, "a.jsonl"))) == want
    assert columns(read_file(write(gzip.compress(lines.encode()), "a.jsonl.gz"))) == want
    assert columns(read_file(write(json.dumps(cases), "a.json"))) == want
    assert columns(read_file(write(lines, "a"))) == want


def test_lists_in_json_stay_lists(write):
    path = write('{"n": 1, "in": ["salt", "egg", "egg"]}\n{"n": 2, "in": []}\n{"n": 3}\n', "a.jsonl")
    assert columns(read_file(path)) == {"n": [1, 2, 3], "in": [["salt", "egg", "egg"], [], None]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 2', "a.jsonl, line 2: this is not JSON"),
        ('{"a": 1}\n3\n', "line 2: a case must be an object"),
        ('[{"a": 1}, 2]', "entry 2: a case must be an object"),
        ("[" * 100_000, "not JSON"),
        ("[]", "empty"),
    ],
    ids=["half a line", "number", "number in a list", "deep", "no entry"],
)
def test_bad_json(write, text, message):
    with pytest.raises(ValueError, match=message):
        read_file(write(text, "a.jsonl"))


# --- ARFF ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"), [("a.arff", "1,2\n"), ("a.txt", "% by hand\n\n@RELATION 'some animals'\n@data\n1\n")]
)
def test_arff_is_named_and_refused(write, name, text):
    with pytest.raises(TableError, match=f"^{name} is an ARFF file, which cannot be read; save it as CSV first\\.$"):
        read_file(write(text, name))


# --- arrays -------------------------------------------------------------------------------------------------------------


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


X = np.array([[0, 2, 0], [1, 0, 0]])


def test_dense_npz(write):
    data = read_file(write(npz(X=X, y=np.array([5, 6]), feature_names=np.array(["a", "b", "c"])), "a.npz"))
    assert columns(data) == {"a": [0, 1], "b": [2, 0], "c": [0, 0]}
    assert data.values("y") == [5, 6]
    assert columns(read_file(write(npz(some=X), "a.npz"))) == {"x0": [0, 1], "x1": [2, 0], "x2": [0, 0]}
    several = write(npz(X_train=X, X_test=X[:1]), "a.npz")
    with pytest.raises(ValueError, match="several tables: 'X_train', 'X_test'"):
        read_file(several)
    assert read_file(several, array="X_test").table.n_cases == 1
    with pytest.raises(ValueError, match="no table 'X_val'; there are 'X_train', 'X_test'"):
        read_file(several, array="X_val")
    with pytest.raises(ValueError, match="is no NPZ file"):
        read_file(write(CSV), array="X")


def test_npy(write):
    file = io.BytesIO()
    np.save(file, X)
    assert columns(read_file(write(file.getvalue(), "a.npy")))["x1"] == [2, 0]


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_npz(tmp_path, layout):
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.csr_array(X).asformat(layout))
    data = read_file(tmp_path / "a.npz")
    assert columns(data) == {"x0": [0, 1], "x1": [2, 0], "x2": [0, 0]}
    assert all(isinstance(column, SparseColumn) for column in data.table.columns)


def test_sparse_parts_with_names_and_without_values(write):
    parts = {"indices": np.array([1, 0], dtype=np.uint16), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3])}
    data = read_file(write(npz(**parts, title=np.array(["p", "q"]), words=np.array(["a", "b", "c"])), "a.npz"))
    assert columns(data) == {"a": [0, 1], "b": [1, 0], "c": [0, 0]}
    assert data.values("title") == ["p", "q"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"indices": np.array([9, 0])},
        {"indices": np.array([-1, 0])},
        {"indptr": np.array([0, 9, 2])},
        {"indptr": np.array([0, 2])},
        {"shape": np.array([2])},
        {"shape": np.array([-2, 3])},
        {"data": np.array([1.0])},
    ],
    ids=str,
)
def test_parts_that_make_no_matrix(write, wrong):
    parts = {"indices": np.array([1, 0]), "indptr": np.array([0, 1, 2]), "shape": np.array([2, 3])}
    with pytest.raises(ValueError, match="do not make a sparse matrix"):
        read_file(write(npz(**parts | wrong), "a.npz"))


def test_archives_that_are_no_data(write, tmp_path):
    BayesianCaseModel(2, n_iter=4, n_chains=1, random_state=0).fit(X.repeat(3, axis=0)[:, :2]).save(tmp_path / "model.bcm")
    with pytest.raises(ValueError, match=r"model.bcm is a bayescase model or checkpoint, not data"):
        read_file(tmp_path / "model.bcm")
    for entry, message in (("xl/workbook.xml", "spreadsheet"), ("readme.txt", "archive without NumPy arrays")):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(entry, "x")
        with pytest.raises(ValueError, match=message):
            read_file(write(file.getvalue(), "a.zip"))
    for arrays, message in (({"a": np.array([object()])}, "allow_pickle"), ({"a": np.arange(3)}, "no array of two dimensions")):
        with pytest.raises(ValueError, match=message):
            read_file(write(npz(**arrays), "a.npz"))
    with pytest.raises(ValueError, match="dimensions of type complex"):
        read_file(write(npz(a=np.ones((2, 2), complex)), "a.npz"))


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_arrow(tmp_path, kind):
    pa = pytest.importorskip("pyarrow", reason="pip install 'bayescase[files]'")
    from pyarrow import feather, parquet

    path = tmp_path / f"data.{kind}"
    {"parquet": parquet.write_table, "feather": feather.write_feather}[kind](pa.table(ANIMALS), str(path))
    assert columns(read_file(path)) == ANIMALS


def test_arrow_says_how_to_install_it(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'bayescase\[files\]'"):
        read_file(write(b"PAR1", "a.parquet"))


# --- what is read can be fitted ------------------------------------------------------------------------------------------


def test_a_table_from_a_file_fits_like_the_table_itself(write, mixed, same):
    table = mixed[0]
    rows = zip(*(["" if v is None or v != v else v for v in column.tolist()] for column in table.values()), strict=True)
    path = write(",".join(table) + "\n" + "\n".join(",".join(map(str, row)) for row in rows))
    data = read_file(path)
    settings = {"n_clusters": 3, "n_iter": 20, "n_chains": 1, "random_state": 0}
    model, other = BayesianCaseModel(**settings).fit(data.table), BayesianCaseModel(**settings).fit(table)
    same(model, other)
    some = data.table.take(np.array([7, 3]))
    assert np.array_equal(model.predict_proba(some), other.predict_proba(table)[[7, 3]])


def test_take_from_sparse_columns():
    columns = [SparseColumn(np.array([1, 3]), np.array([5, 6]), 4), np.array(list("abcd")), SparseColumn([0], [7], 4)]
    taken = Table(None, columns, 4).take(np.array([3, 0, 1, 1]))
    assert [plain(column, "a").values.tolist() for column in taken.columns] == [[6, 0, 5, 5], list("dabb"), [0, 7, 0, 0]]
    assert taken.n_cases == 4
