"""Bags: every way to give them, every way to give them wrongly, and what comes back."""

import json
import pickle
import tracemalloc
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bayescase import BayesianCaseClassifier, BayesianCaseModel, CaseEncoder, ParameterError, TableError
from bayescase.errors import TableWarning
from bayescase.parameters import params_from_json, params_to_json
from bayescase.reading.bags import guess_separator
from bayescase.reading.encoder import fit_encoder
from bayescase.reading.encoding import Encoding, describe, types_in_words
from bayescase.reading.files import read_file
from bayescase.reading.rules import Asked
from bayescase.reading.similarity import similarity_table
from bayescase.reading.tables import read
from bayescase.state import Cells

from .test_any_table import shared

LISTS = [["egg", "salt"], [], ["rice", "salt", "rice"], None]
ITEMS = ("egg", "rice", "salt")
COUNTS = np.array([[1, 0, 1], [0, 0, 0], [0, 2, 1], [0, 0, 0]])
SPARSE = scipy.sparse.csr_array(COUNTS)
SHOWN = [("egg", "salt"), (), ("rice", "rice", "salt"), ()]


def learn(X, catalogue=None, **asked):
    return Encoding.learn(read(X), Asked(**asked), None if catalogue is None else read(catalogue))


def counts_of(encoding, X):
    """(counts of the items, number unseen)."""
    codes, unseen = encoding.encode(read(X))
    start, rows = encoding.first_item, np.repeat(np.arange(len(codes.x)), codes.bags.sizes)
    counts = np.zeros((len(codes.x), int(encoding.offset[-1]) - start), dtype=int)
    np.add.at(counts, (rows, codes.bags.codes - start), 1)
    return counts.tolist(), unseen


# --- lists ---------------------------------------------------------------------------------------------------------------

SETS = [{"egg", "salt"}, set(), {"rice", "salt"}, None]
OF_LISTS = {
    "mapping": {"in": LISTS},
    "tuples": {"in": tuple(None if cell is None else tuple(cell) for cell in LISTS)},
    "arrays": {"in": [None if cell is None else np.array(cell, dtype=object) for cell in LISTS]},
    "words of NumPy": {"in": [None if cell is None else np.array(cell, dtype=str) for cell in LISTS]},
    "pandas": pd.DataFrame({"in": LISTS}),
    "pandas with NaN": pd.DataFrame({"in": [*LISTS[:3], np.nan]}),
    "pandas series": {"in": pd.Series(LISTS)},
    "pandas arrow": pd.DataFrame({"in": pd.Series(LISTS, dtype=pd.ArrowDtype(pa.list_(pa.string())))}),
    "Counters": {"in": [None if cell is None else Counter(cell) for cell in LISTS]},
    "pandas Counters": pd.DataFrame({"in": [Counter(cell or ()) for cell in LISTS]}),
    "mappings": {"in": [{"egg": 1, "salt": True, "rice": 0}, {}, {"rice": 2.0, "salt": 1}, None]},
    "Counters and lists": {"in": [LISTS[0], {}, Counter(LISTS[2]), None]},
    "structs of polars": pl.DataFrame({"in": [{"egg": 1, "salt": 1, "rice": None}, {}, {"rice": 2, "salt": 1}, None]}),
    "structs of pyarrow": pa.table({"in": [{"egg": 1, "salt": 1, "rice": None}, {}, {"rice": 2, "salt": 1}, None]}),
    "polars": pl.DataFrame({"in": LISTS}),
    "pyarrow": pa.table({"in": LISTS}),
    "pyarrow large": pa.table({"in": pa.array(LISTS, type=pa.large_list(pa.large_string()))}),
}


@pytest.mark.parametrize("X", OF_LISTS.values(), ids=OF_LISTS)
def test_a_column_of_lists_is_a_bag(X):
    encoding = learn(X)
    (bag,) = encoding.features
    assert (bag.name, bag.type, bag.values, bag.source) == ("in", "bag", ITEMS, "lists")
    assert counts_of(encoding, X) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, {"in": LISTS}) == (COUNTS.tolist(), 0)


@pytest.mark.parametrize("X", [{"in": SETS}, pd.DataFrame({"in": SETS}), {"in": [s and frozenset(s) for s in SETS]}])
def test_a_column_of_sets_is_a_bag(X):
    assert counts_of(learn(X), X) == (np.minimum(COUNTS, 1).tolist(), 0)


def test_lists_of_equal_length_are_no_table():
    X = {"in": [["egg", "salt"], ["rice", "salt"]]}
    assert counts_of(learn(X), X) == ([[1, 0, 1], [0, 1, 1]], 0)
    arrays = pl.DataFrame(X, schema={"in": pl.Array(pl.String, 2)})
    assert counts_of(learn(arrays), arrays) == ([[1, 0, 1], [0, 1, 1]], 0)
    objects = np.array([[["egg"], 1], [["rice", "salt"], 2]], dtype=object)
    encoding = learn(objects)
    assert [(f.name, f.type) for f in encoding.features] == [("x1", "integer"), ("x0", "bag")]


def test_items_are_words():
    X = {"in": [[1, 2.0, True, "1"], [2.5, None, np.nan, "?"], [np.int8(2), b"x"]]}
    encoding = learn(X, missing_values=["?", 2.5])
    assert encoding.features[0].values == ("1", "2", "True", "x")
    assert counts_of(encoding, X) == ([[2, 1, 1, 0], [0, 0, 0, 0], [0, 1, 0, 1]], 0)


def test_cells_in_a_fixed_order_single_features_first():
    X = {"in": LISTS, "colour": ["red", "blue", None, "red"], "out": [["x"], ["y", "x"], [], ["x"]]}
    encoding = learn(X)
    assert [feature.name for feature in encoding.features] == ["colour", "in", "out"]
    assert encoding.n_single == 1
    assert encoding.offset.tolist() == [0, 2, 5, 7]
    (x, bags), unseen = encoding.encode(read(X))
    assert x.tolist() == [[1], [0], [-1], [1]]
    assert bags.codes.tolist() == [2, 4, 5, 5, 6, 3, 3, 4, 5]
    assert bags.first.tolist() == [0, 3, 5, 8, 9]
    assert (bags.codes.dtype, bags.first.dtype, unseen) == (np.int8, np.int64, 0)
    shown = encoding.decode(x, bags).tolist()
    assert shown == [
        ["red", ("egg", "salt"), ("x",)],
        ["blue", (), ("x", "y")],
        [None, ("rice", "rice", "salt"), ()],
        ["red", (), ("x",)],
    ]
    again, unseen = encoding.encode(read(pd.DataFrame(shown, columns=["colour", "in", "out"])))
    assert unseen == 0
    assert np.array_equal(again.bags.codes, bags.codes)
    assert np.array_equal(again.x, x)


def test_a_table_without_bags_has_none():
    X = {"colour": ["red", "blue", "red"]}
    codes, _ = learn(X).encode(read(X))
    assert codes.bags is None


# --- sparse matrices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr_array", "csc_matrix", "coo_array", "lil_array", "dok_array"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint16, float])
def test_a_sparse_matrix_is_one_bag(layout, dtype):
    X = getattr(scipy.sparse, layout)(COUNTS.astype(dtype))
    encoding = learn(X)
    (bag,) = encoding.features
    assert (bag.name, bag.type, bag.values, bag.source) == ("items", "bag", ("x0", "x1", "x2"), "columns")
    assert counts_of(encoding, X) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, COUNTS) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, scipy.sparse.csr_array(COUNTS > 0)) == (np.minimum(COUNTS, 1).tolist(), 0)


def test_duplicates_and_zeros_that_are_stored():
    X = scipy.sparse.coo_array(([1, 1, 2, 0], ([0, 0, 1, 1], [0, 0, 1, 0])), shape=(2, 2))
    assert counts_of(learn(X), X) == ([[2, 0], [0, 2]], 0)
    assert X.nnz == 4  # untouched


def test_a_sparse_matrix_can_be_read_otherwise():
    X = scipy.sparse.csr_array(COUNTS)
    assert {f.type for f in learn(X, feature_types="count").features} == {"count"}
    assert [f.values for f in learn(X, max_count=2).features] == [(0, "1+"), (0, 1, "2+"), (0, "1+")]
    mixed = learn(X, feature_types={"x0": "integer", 1: "drop"})
    assert [(f.name, f.values) for f in mixed.features] == [("x0", (0, 1)), ("items", ("x2",))]
    assert counts_of(mixed, X) == ([[1], [0], [1], [0]], 0)
    assert learn(X, bags={"words": [0, "x2"]}, feature_types={1: "drop"}).features[0].name == "words"


def test_a_pandas_frame_of_sparse_columns_keeps_its_names():
    X = pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_array(COUNTS), columns=ITEMS)
    encoding = learn(X)
    assert encoding.column_names == list(ITEMS)
    assert counts_of(encoding, X) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, X[["salt", "egg", "rice"]].assign(more=1)) == (COUNTS.tolist(), 0)
    mixed = X.assign(colour=["red", "blue"] * 2, gap=pd.arrays.SparseArray([1.0, np.nan, 2.0, 2.0]))
    assert [(f.name, f.type) for f in learn(mixed).features] == [
        ("colour", "category"),
        ("gap", "integer"),
        ("items", "bag"),
    ]


# --- columns -------------------------------------------------------------------------------------------------------------

COLUMNS = {
    "counts": dict(zip(ITEMS, COUNTS.T, strict=True)),
    "floats with gaps": {"egg": [1, None, 0, 0.0], "rice": [0, np.nan, 2, 0], "salt": [1, 0, 1, 0]},
    "booleans": dict(zip(ITEMS, (COUNTS > 0).T, strict=True)),
    "booleans with gaps": {
        "egg": [True, None, False, False],
        "rice": [False, None, True, None],
        "salt": [True, None, True, None],
    },
    "words": {"egg": list("1000"), "rice": list("0020"), "salt": list("1010")},
    "array": COUNTS,
    "polars": pl.DataFrame(dict(zip(ITEMS, COUNTS.T, strict=True))),
}


@pytest.mark.parametrize("X", COLUMNS.values(), ids=COLUMNS)
def test_all_columns_are_items_of_one_bag(X):
    encoding = learn(X, bags="all")
    (bag,) = encoding.features
    assert (bag.name, len(bag.values)) == ("items", 3)
    counts, unseen = counts_of(encoding, X)
    assert counts == COUNTS.tolist() or counts == np.minimum(COUNTS, 1).tolist()
    assert unseen == 0


def test_all_columns_but_those_of_which_more_is_said():
    X = {"id": list("abcd"), **COLUMNS["counts"], "age": [3, 20, 41, 70], "town": list("xyxy")}
    said = {"feature_types": {"id": "drop", "town": "category"}, "bins": {"age": [18]}}
    encoding = learn(X, bags="all", **said)
    assert [(f.name, f.type) for f in encoding.features] == [("age", "number"), ("town", "category"), ("items", "bag")]
    assert encoding.wanted.positions == [4, 5, 1, 2, 3]
    assert counts_of(encoding, X) == (COUNTS.tolist(), 0)


def test_named_groups_of_columns():
    X = {**COLUMNS["counts"], "a": [1, 0, 1, 0], "b": [0, 1, 1, 0], "colour": list("xyxy")}
    encoding = learn(X, bags={"in": ["salt", 0, "rice"], "letters": ["b", "a"]})
    assert [(f.name, f.values) for f in encoding.features] == [("colour", ("x", "y")), ("in", ITEMS), ("letters", ("a", "b"))]
    assert encoding.column_names == ["colour", "in: egg", "in: rice", "in: salt", "letters: a", "letters: b"]
    assert counts_of(encoding, X)[0][2] == [0, 2, 1, 1, 1]
    assert counts_of(encoding, pd.DataFrame(X)[["b", "a", "colour", *ITEMS[::-1]]])[0][2] == [0, 2, 1, 1, 1]


def test_a_bag_gets_a_name_of_its_own():
    X = {"items": ["p", "q", "p", "q"], **COLUMNS["counts"]}
    assert [f.name for f in learn(X, bags="all", feature_types={"items": "category"}).features] == ["items", "(items)"]
    as_word = {"items": [1, 0, 1, 1], "egg": [0, 1, 0, 1]}
    encoding = learn(as_word, bags="all")
    assert encoding.features[0].name == "items"
    assert counts_of(encoding, as_word)[0] == [[1, 0], [0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("names", [None, ITEMS])
def test_items_in_columns_can_come_as_lists(names):
    """As a model shows them, and as people type them."""
    X = scipy.sparse.csr_array(COUNTS)
    encoder = CaseEncoder(feature_names=names).fit(X)
    items = encoder.features_[0].values
    shown = encoder.inverse_transform(encoder.transform(X))
    assert shown[2, 0] == (items[1], items[1], items[2])
    assert (encoder.transform({"items": list(shown[:, 0])}) != X).nnz == 0
    with pytest.warns(TableWarning, match=r"^2 items were never seen in fit and are left out\.$"):
        codes = encoder.transform({"items": [[items[0], "soap", "soap"]]})
    assert codes.toarray().tolist() == [[1, 0, 0]]


# --- words that are lists, and texts -----------------------------------------------------------------------------------------


def test_a_column_of_words_with_a_separator():
    X = {"tags": ["egg; salt", "", "rice;salt ;;rice", None]}
    encoding = learn(X, bags={"tags": ";"})
    assert (encoding.features[0].values, encoding.features[0].separator) == (ITEMS, ";")
    assert counts_of(encoding, X) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, {"tags": LISTS}) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, {"tags": ["egg;tea"]}) == ([[1, 0, 0]], 1)
    numbers = {"codes": [7, 12, 7]}
    assert learn(numbers, bags={"codes": " "}).features[0].values == ("12", "7")


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["a;b", "c"], ";"),
        (["a,b", "c,d", "e;f"], ","),
        (["a|b", None], "|"),
        (["salt, coarse;egg", "rice;egg"], ";"),
        (["a", "b"], ";"),
        ([1, 2], ""),
    ],
    ids=str,
)
def test_separators_are_guessed(cells, separator):
    assert guess_separator(read({"a": np.array(cells, dtype=object)}).columns[0]) == separator


TEXTS = ["The car, the CAR!", "", "A car and an engine.", None, "Engines of cars"]


def test_texts_are_read_like_scikit_learn_does():
    X = {"body": TEXTS, "group": list("ababa")}
    encoding = learn(X, texts="body")
    vectorizer = CountVectorizer(binary=True)
    want = vectorizer.fit_transform([text or "" for text in TEXTS])
    assert [f.name for f in encoding.features] == ["group", "body"]
    assert encoding.column_names == ["group", *vectorizer.get_feature_names_out()]
    assert counts_of(encoding, X) == (want.toarray().tolist(), 0)
    assert counts_of(encoding, {"body": ["car ride"], "group": ["a"]})[1] == 0  # new words are nothing new
    fewer = learn(X, texts=["body"], stop_words="english", min_cases={"body": 2})
    assert fewer.features[1].values == ("car",)
    assert fewer.features[1].left_out == ()
    own = learn(X, texts=0, stop_words=["the", "and", "an", "of"])
    assert own.features[1].values == ("car", "cars", "engine", "engines")
    again = Encoding.from_json(json.loads(json.dumps(fewer.to_json())))
    assert counts_of(again, {"body": ["A Car and a cart"], "group": ["b"]}) == ([[1]], 0)


def test_texts_and_lists_are_recognised_where_they_cannot_be_values():
    texts = [f"This is the text number {i}, and it says nothing at all." for i in range(9)]
    with pytest.raises(TableError, match=r"cases \(9\).*; if it holds texts, read their words with texts='body', leave it out"):
        learn({"body": texts})
    with pytest.raises(TableError, match=r"if it holds lists, read their items with bags=\{'tags': '\|'\}, leave it out"):
        learn({"tags": [f"a{i}|b" for i in range(9)]})


# --- items in few cases ---------------------------------------------------------------------------------------------------


def test_items_in_few_cases_are_left_out_and_it_is_said():
    encoding = learn({"in": LISTS}, min_cases=2)
    assert encoding.features[0].values == ("salt",)
    assert encoding.features[0].left_out == ("egg", "rice")
    assert list(map(str, encoding.notes)) == ["2 of the 3 items of 'in' are in fewer than 2 cases and left out."]
    assert counts_of(encoding, {"in": [["salt", "egg", "tea"]]}) == ([[1]], 1)  # egg is known to be left out
    matrix = scipy.sparse.csr_array(COUNTS * [1, 0, 1])
    encoding = learn(matrix)
    assert list(map(str, encoding.notes)) == ["1 of the 3 items of 'items' is in no case and left out."]
    assert encoding.features[0].values == ("x0", "x2")
    assert counts_of(encoding, COUNTS) == (COUNTS[:, [0, 2]].tolist(), 0)
    both = learn({"in": LISTS, "out": LISTS}, min_cases={"out": 2})
    assert [f.values for f in both.features] == [ITEMS, ("salt",)]


def test_a_catalogue_brings_items_too():
    encoding = learn({"in": LISTS}, {"in": [["tea"], ["egg"]]})
    assert encoding.features[0].values == ("egg", "rice", "salt", "tea")
    columns = learn(scipy.sparse.csr_array([[1, 0, 0], [1, 1, 0]]), scipy.sparse.csr_array([[0, 0, 1]]))
    assert columns.features[0].values == ("x0", "x1", "x2")
    few = learn({"in": LISTS}, {"in": [["tea", "salt"], ["tea"]]}, min_cases=2)
    assert few.features[0].values == ("salt", "tea")


# --- names ----------------------------------------------------------------------------------------------------------------


def test_items_are_found_by_all_their_names():
    encoding = learn({"colour": list("xyxy"), "in": LISTS})
    assert encoding.column_names == ["colour", "egg", "rice", "salt"]
    for key in ("rice", ("in", "rice"), "in: rice"):
        assert encoding.find(key, "pins") == 2
    assert encoding.find("colour", "pins") == encoding.find(0, "pins") == 0
    for key in ("tea", ("in", "tea"), 1, 9, 1.5, None, [1]):  # the column at 1 is a whole bag
        with pytest.raises(ParameterError, match=r"^pins names the feature .* which the data does not have"):
            encoding.find(key, "pins")
    with pytest.raises(
        ParameterError, match=r"^pins names 'in', which is a bag; name an item and its bag, such as \('in', 'egg'\)"
    ):
        encoding.find("in", "pins")
    two = learn({"in": LISTS, "out": LISTS})
    assert two.column_names[3:] == ["out: egg", "out: rice", "out: salt"]
    assert two.find(("out", "egg"), "pins") == two.find("out: egg", "pins") == 3
    with pytest.raises(ParameterError, match=r"'egg', which is an item of 'in' and 'out'; .*, such as \('in', 'egg'\)\."):
        two.find("egg", "pins")
    columns = learn({"a": list("xyxy"), **COLUMNS["counts"]}, bags={"in": ITEMS})
    assert [columns.find(k, "pins") for k in range(4)] == [0, 1, 2, 3]


def test_an_item_with_the_name_of_a_feature():
    encoding = learn({"egg": list("xyxy"), "in": LISTS})
    assert encoding.column_names == ["egg", "in: egg", "in: rice", "in: salt"]
    assert encoding.find("egg", "pins") == 0
    assert encoding.find("rice", "pins") == 2
    with pytest.raises(TableError, match=r"^Two columns are called 'in: egg'"):
        learn({"egg": list("xyxy"), "in: egg": list("xyxy"), "in": LISTS})


def test_names_for_a_matrix_that_has_none():
    X = scipy.sparse.csr_array(COUNTS)
    encoder = CaseEncoder(feature_names=np.array(ITEMS, dtype=object)).fit(X)
    assert encoder.get_feature_names_out().tolist() == list(ITEMS)
    assert encoder.feature_names_in_.tolist() == list(ITEMS)
    assert (encoder.transform(X) != X).nnz == 0  # and no warning of names
    frame = pd.DataFrame(COUNTS[:, ::-1], columns=ITEMS[::-1])
    assert (encoder.transform(frame) != X).nnz == 0
    unnamed = CaseEncoder().fit(X)
    assert unnamed.get_feature_names_out(ITEMS).tolist() == list(ITEMS)
    with pytest.raises(ValueError, match="expecting 3 features"):
        encoder.transform(X[:, :2])
    dense = CaseEncoder(feature_names=["a", "b"]).fit(np.array([[1, 2], [2, 1], [1, 1], [2, 2]]))
    assert dense.feature_types_ == {"a": "integer", "b": "integer"}


def test_names_of_a_vectorizer_in_a_pipeline():
    texts = [text or "" for text in TEXTS]
    vectorizer = CountVectorizer().fit(texts)
    names = vectorizer.get_feature_names_out()
    pipeline = make_pipeline(vectorizer, CaseEncoder(feature_names=names)).fit(texts)
    assert pipeline[-1].get_feature_names_out().tolist() == names.tolist()
    assert (pipeline.transform(texts) != vectorizer.transform(texts)).nnz == 0
    as_parameter = fit_encoder({"feature_names": names}, read(vectorizer.transform(texts)))
    assert as_parameter.features_ == pipeline[-1].features_
    model = BayesianCaseModel(2, encoder={"feature_names": names})
    kept = params_from_json(json.loads(json.dumps(params_to_json(clone(model).get_params(deep=False)))))
    assert kept["encoder"]["feature_names"].tolist() == names.tolist()


TALK = [f"{a} {b} {c}" for a in ("bicycle", "chain") for b in ("brakes", "oil") for c in ("squeak", "rust", "slip")]
TALK += [f"{a} {b} {c}" for a in ("camera", "lens") for b in ("film", "dust") for c in ("night", "birds", "trip")]
TOPICS = np.repeat(["rides", "pictures"], 12)
SMALL = {"n_iter": 40, "n_chains": 1, "random_state": 0}


def test_features_without_names_get_them_after_the_fit(tmp_path):
    pipe = make_pipeline(CountVectorizer(), BayesianCaseModel(2, warm_start=True, **SMALL)).fit(TALK)
    model, words = pipe[-1], pipe[:-1].get_feature_names_out().tolist()
    before = pipe.predict_proba(TALK)
    assert model.name_features(words) is model
    assert model.feature_values_ == [tuple(words)]
    assert model.feature_names_in_.tolist() == words == model.encoder_.get_feature_names_out().tolist()
    assert {d.words for cluster in model.explain().clusters for d in cluster.more_often} <= set(words)
    assert (pipe.predict_proba(TALK) == before).all()  # and no warning of names
    assert model.explain_case({"items": [["camera", "film"]]}).cluster == pipe.predict(["camera film"])[0]
    folded = model.fold(1)
    model.save(tmp_path / "m")
    folded.save(tmp_path / "f")
    for kept in (BayesianCaseModel.load(tmp_path / "m"), BayesianCaseModel.load(tmp_path / "f"), folded, model.more(20)):
        assert kept.feature_values_ == [tuple(words)]
    assert folded.name_features(words[::-1]).feature_values_ == [tuple(words[::-1])]
    assert folded.fitted_.whole.encoding.column_names == words[::-1]
    assert model.feature_values_ == [tuple(words)]


def test_columns_that_were_left_out_have_names_too():
    X = np.array([[1, 2, 8], [2, 1, 7], [1, 1, 7], [2, 2, 8]] * 2)
    model = BayesianCaseModel(2, encoder={"feature_types": {1: "drop"}}, **SMALL).fit(X)
    assert model.name_features(["a", "b", "c"]).feature_types_ == {"a": "integer", "c": "integer"}


@pytest.mark.parametrize(
    ("X", "names", "message"),
    [
        (SPARSE, ["a", "b"], r"^names has 2 names, but the data has 3 columns\.$"),
        (SPARSE, "abc", "^names must be a list of words, not 'abc'"),
        (SPARSE, ["a", "b", "a"], r"^names has the name 'a' twice\.$"),
        ({"in": LISTS}, ["out"], r"^The columns of X have names; rename them there, and fit again\.$"),
    ],
)
def test_names_that_features_cannot_have(X, names, message):
    with warnings.catch_warnings(action="ignore"):  # two cases are empty
        model = BayesianCaseModel(2, **SMALL).fit(X)
    with pytest.raises(ParameterError, match=message):
        model.name_features(names)


def test_advice_on_new_cases_is_nothing_that_only_a_fit_can_do():
    lists, columns = CaseEncoder().fit({"in": LISTS}), CaseEncoder(bags="all").fit({"a": [1, 0], "b": [0, 1]})
    with pytest.raises(TableError, match=r"but case 1 has 'egg;rice'; give a list of its items, as in the fit\.$"):
        lists.transform({"in": [["egg"], "egg;rice"]})
    with pytest.raises(TableError) as found:
        columns.transform({"a": [1], "b": ["x"]})
    assert "feature_types" not in str(found.value)


@pytest.mark.filterwarnings("ignore::bayescase.errors.TableWarning")  # of words that a fold does not have
def test_pipelines_of_texts_in_cross_validation():
    words = sorted({word for text in TALK for word in text.split()})
    named = BayesianCaseModel(2, encoder={"feature_names": words}, **SMALL)
    fixed = CountVectorizer(vocabulary=words, binary=True)
    assert np.isfinite(cross_val_score(make_pipeline(fixed, named), TALK, cv=3)).all()
    for steps in (
        (fixed, BayesianCaseClassifier(named)),
        (CountVectorizer(), BayesianCaseClassifier(BayesianCaseModel(2, **SMALL))),
    ):
        assert cross_val_score(make_pipeline(*steps), TALK, TOPICS, cv=3).mean() > 0.7
    pipe = make_pipeline(CountVectorizer(), BayesianCaseClassifier(BayesianCaseModel(2, **SMALL))).fit(TALK, TOPICS)
    classifier = pipe[-1].name_features(pipe[:-1].get_feature_names_out())
    assert classifier.feature_names_in_.tolist() == words
    assert classifier.case_model_.feature_values_ == [tuple(words)]
    assert any(word in str(classifier.explain(pipe[:-1].transform(["camera film"]))[0]) for word in words)


# --- the encoder ------------------------------------------------------------------------------------------------------------


def test_codes_and_back():
    X = {"in": LISTS, "colour": ["red", "blue", None, "red"]}
    encoder = CaseEncoder().fit(X)
    codes = encoder.transform(X)
    assert scipy.sparse.issparse(codes)
    assert codes.format == "csr"
    assert codes.toarray().tolist() == [[2, 1, 0, 1], [1, 0, 0, 0], [0, 0, 2, 1], [2, 0, 0, 0]]
    assert encoder.get_feature_names_out().tolist() == ["colour", "egg", "rice", "salt"]
    want = [["red", SHOWN[0]], ["blue", SHOWN[1]], [None, SHOWN[2]], ["red", SHOWN[3]]]
    assert encoder.inverse_transform(codes).tolist() == want
    assert encoder.inverse_transform(codes.toarray()).tolist() == want
    assert encoder.feature_types_ == {"colour": "category", "in": "bag"}
    assert encoder.feature_values_ == [("blue", "red"), ITEMS]
    assert encoder.n_features_in_ == 2
    copy = pickle.loads(pickle.dumps(encoder))
    assert (copy.transform(X) != codes).nnz == 0
    with pytest.raises(ParameterError, match="code 3 for 'colour' in row 0; its codes go from 0 to 2"):
        encoder.inverse_transform([[3, 0, 0, 0]])
    with pytest.raises(ParameterError, match="X has the count -1"):
        encoder.inverse_transform([[1, -1, 0, 0]])
    with pytest.raises(ParameterError, match=r"a column for each of the 4 features, not int64 of shape \(1, 2\)"):
        encoder.inverse_transform([[1, 1]])


def test_bags_are_described():
    X = {"in": LISTS, "colour": ["red", "blue", None, "red"]}
    encoding = learn(X)
    shown = describe(encoding, encoding.encode(read(X))[0], most=2)
    assert shown[1] == ("in", "bag", 3, 0.5, "rice, salt, …")
    assert list(types_in_words(encoding)) == ["1 category: colour", "1 bag: in (3 items)"]
    assert not encoding.features[1].ordered


def test_the_guess_can_be_given_back():
    for X, asked in (
        ({"in": LISTS, "colour": list("xyxy")}, {}),
        (scipy.sparse.csr_array(COUNTS), {}),
        (COLUMNS["counts"], {"bags": {"in": ITEMS}}),
        (COLUMNS["counts"], {"bags": "all"}),
    ):
        encoder = CaseEncoder(**asked).fit(X)
        again = CaseEncoder(**asked, feature_types=encoder.feature_types_).fit(X)
        assert again.features_ == encoder.features_


def test_parameters_survive_a_file():
    asked = {"bags": {"in": ["egg", 2], "tags": ";"}, "texts": ["body"], "stop_words": ["the"], "min_cases": {"in": 3}}
    encoder = CaseEncoder(**asked)
    kept = params_from_json(json.loads(json.dumps(params_to_json({"encoder": encoder}))))["encoder"]
    assert kept.get_params() == encoder.get_params()


def test_items_agree_only_with_themselves():
    encoding = learn({"in": LISTS, "size": [1, 2, 1, 2]})
    k_ptr, k_idx, k_val = similarity_table(("within", 1), encoding)
    assert k_ptr.tolist() == [0, 2, 4, 5, 6, 7]
    assert k_idx.tolist() == [0, 1, 0, 1, 2, 3, 4]
    assert set(k_val) == {1.0}
    with pytest.raises(ParameterError, match=r"^similarity names 'egg', an item of a bag; items agree only with themselves"):
        similarity_table({"egg": "match"}, encoding)


# --- JSON -------------------------------------------------------------------------------------------------------------------

KINDS = {
    "lists": ({"in": LISTS, "n": [1, 2, 1, 2]}, {"min_cases": 2}),
    "words": ({"tags": ["a;b", "c", None, "a"]}, {"bags": {"tags": ";"}}),
    "texts": ({"body": TEXTS[:4], "in": LISTS}, {"texts": "body"}),
    "sparse": (scipy.sparse.csr_array(COUNTS), {}),
    "named": (scipy.sparse.csr_array(COUNTS), {"feature_names": ITEMS}),
    "columns": ({"n": [1, 2, 1, 2], **COLUMNS["counts"]}, {"bags": {"in": ["egg", "salt"], "out": ["rice"]}}),
}


@pytest.mark.parametrize(("X", "asked"), KINDS.values(), ids=KINDS)
def test_json_and_back(X, asked):
    encoding = learn(X, **asked)
    again = Encoding.from_json(json.loads(json.dumps(encoding.to_json())))
    assert again.features == encoding.features
    assert again.wanted == encoding.wanted
    assert again.column_names == encoding.column_names
    (x, bags), _ = encoding.encode(read(X))
    (y, others), _ = again.encode(read(X))
    assert np.array_equal(x, y)
    assert all(map(np.array_equal, bags, others))


HOSTILE = {
    "no items": lambda h: h["features"][1].update(values=[]),
    "items twice": lambda h: h["features"][1].update(values=["egg", "egg"]),
    "items are numbers": lambda h: h["features"][1].update(values=[1, 2]),
    "items nested": lambda h: h["features"][1].update(values=[["egg"], "rice"]),
    "source": lambda h: h["features"][1].update(source="files"),
    "no source": lambda h: h["features"][1].update(source=""),
    "source of columns": lambda h: h["features"][1].update(source="columns"),
    "separator": lambda h: h["features"][1].update(separator=3),
    "separator of texts": lambda h: h["features"][1].update(separator=";", source="texts", left_out=[]),
    "left out and not": lambda h: h["features"][1].update(left_out=["salt"]),
    "left out numbers": lambda h: h["features"][1].update(left_out=[3]),
    "edges": lambda h: h["features"][1].update(edges=[1.0]),
    "other": lambda h: h["features"][1].update(other=True),
    "name": lambda h: h["features"][1].update(name=3),
    "unknown field": lambda h: h["features"][1].update(colour="red"),
    "a field less": lambda h: h["features"][1].pop("separator"),
    "single with a source": lambda h: h["features"][0].update(source="lists"),
    "bags first": lambda h: h.update(features=h["features"][::-1], positions=h["positions"][::-1]),
    "names twice": lambda h: h.update(
        features=[dict(h["features"][0], name="in: salt", values=["x", "y"]), h["features"][1]],
        columns=["in", "in: salt", "salt"],
    ),
    "own names": lambda h: h.update(own_names="yes"),
    "positions": lambda h: h.update(positions=[1, 5]),
    "positions negative": lambda h: h.update(positions=[-1, 0]),
    "positions twice": lambda h: h.update(positions=[1, 1]),
    "too few positions": lambda h: h.update(positions=[1]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_json_is_refused(change):
    encoding = learn({"in": LISTS, "n": [1, 2, 1, 2], "salt": list("xyxy")}, feature_types={"salt": "drop"}, min_cases=2)
    parts = json.loads(json.dumps(encoding.to_json()))
    Encoding.from_json(parts)
    change(parts)
    with pytest.raises((ValueError, TypeError, KeyError)):
        Encoding.from_json(parts)


# --- wrong input ----------------------------------------------------------------------------------------------------------

NO_COUNT = (
    r"which does not count an item of a bag; give counts, not weights such as tf-idf, or read columns as absent \(zero\) or "
    r"present \(anything else\) with feature_types='count'\.$"
)
NO_LIST = "^Column 'a' is read as lists of items, but case 1 has "
WRONG = {
    "negative": (SPARSE * -1, {}, r"^Column 'x0' has the value -1, " + NO_COUNT),
    "fraction": (SPARSE * 0.5, {}, r"^Column 'x0' has the value 0.5, " + NO_COUNT),
    "named fraction": (SPARSE * 0.5, {"feature_names": ITEMS}, "^Column 'egg' has the value 0.5"),
    "NaN": (SPARSE * np.nan, {}, "^Column 'x0' of the sparse matrix contains NaN or infinity"),
    "infinity": ({"a": [1, np.inf, 0]}, {"bags": "all"}, "^Column 'a' contains infinity"),
    "word": (
        {"b": ["1", "yes"]},
        {"bags": "all"},
        r"^Column 'b' is to be read as counts of an item, but has the value 'yes', which is not a number; if it "
        r"is no item, make it a feature of its own with feature_types=\{'b': 'category'\}, or if it means missing, say so with "
        r"missing_values='yes'\.$",
    ),
    "too many": ({"pay": [3e9, 2e9]}, {"bags": "all"}, r"count 5e\+09 items in all, more than can be computed with"),
    "marks in sparse": (SPARSE, {"missing_values": -1}, "missing_values has the number -1, but a sparse matrix has no missing"),
    "a word among lists": (
        {"a": [["x"], "y"]},
        {},
        NO_LIST + r"'y'; if it is several items, say what separates them with bags=",
    ),
    "a number among lists": ({"a": [["x"], 2]}, {}, NO_LIST + r"2\.$"),
    "an object among lists": ({"a": [["x"], {"y": "z"}]}, {"bags": {"a": ";"}}, "but case 1 has {'y': 'z'}"),
    "words": ({"a": [None, "y"]}, {"feature_types": "bag"}, NO_LIST + "'y'; if it is several items"),
    "negative count": ({"a": [["x"], {"y": -1}]}, {}, "^Column 'a', case 1: 'y' is there -1 times; counts of items are whole"),
    "half a count": ({"a": [{"x": 0.5}]}, {}, "case 0: 'x' is there 0.5 times"),
    "endless count": ({"a": [{"x": np.inf}]}, {}, "case 0: 'x' is there inf times"),
    "nested": ({"a": [["x"], [["y"]]]}, {}, r"^Column 'a', case 1: an item must be a word or a number, not \['y'\]\.$"),
    "array of two dimensions": ({"a": [np.eye(2)]}, {}, r"case 0: an item must be a word or a number, not \[1.0, 0.0\]"),
    "infinite item": ({"a": [[np.inf]]}, {}, "^Column 'a' contains infinity"),
    "empty": ({"a": [[], None]}, {}, r"^The bag 'a' has no item at all; leave it out with feature_types=\{'a': 'drop'\}\.$"),
    "empty matrix": (scipy.sparse.csr_array((3, 2)), {}, "^The bag 'items' has no item at all"),
    "all left out": ({"a": LISTS}, {"min_cases": 3}, r"in 3 cases: the most common one is in 2; use min_cases=2 or less\.$"),
    "min_cases": ({"a": LISTS}, {"min_cases": 0}, "^min_cases must be a whole number of at least 1, not 0"),
    "min_cases of a bag": ({"a": LISTS}, {"min_cases": {"a": 1.5}}, r"^min_cases\['a'\] must be a whole number"),
    "min_cases of no bag": ({"a": LISTS}, {"min_cases": {"b": 2}}, r"^min_cases names 'b', but .*; there are 'a'\.$"),
    "min_cases without a bag": ({"a": [1, 2, 1]}, {"min_cases": 2}, "^min_cases is for items of bags, but the data has none"),
    "bags": (SPARSE, {"bags": "some"}, "^bags must be 'all', a mapping from bags to their columns, or one"),
    "bags list": (SPARSE, {"bags": ["x0"]}, r"^bags must be 'all', .* not \['x0'\]\.$"),
    "bags empty": (SPARSE, {"bags": {"a": []}}, r"^bags\['a'\] must be a list of columns, not \[\]\.$"),
    "bags number": (SPARSE, {"bags": {"a": 1.5}}, r"^bags\['a'\] must be a list of columns, not 1.5\.$"),
    "bags nowhere": (SPARSE, {"bags": {"a": ["y"]}}, r"^bags names column 'y', but the data has no such column\.$"),
    "separator nowhere": (SPARSE, {"bags": {"a": ";"}}, r"^bags names column 'a', but the data has no such column\.$"),
    "separator empty": ({"a": ["x"]}, {"bags": {"a": ""}}, r"^bags\['a'\] must be what separates the items"),
    "twice": (SPARSE, {"bags": {"a": [0], "b": ["x0"]}}, "^bags has the column 'x0', which is in a bag already"),
    "bag and text": ({"a": ["x"]}, {"bags": {"a": ";"}, "texts": "a"}, "^texts has the column 'a', which is in a bag already"),
    "dropped": (
        SPARSE,
        {"bags": {"a": [0]}, "feature_types": {0: "drop"}},
        "^Column 'x0' is in bags, so it cannot be read as 'drop'",
    ),
    "binned": ({"a": ["x"]}, {"texts": "a", "bins": {"a": 3}}, "^Column 'a' is in texts, so it cannot be read as 'number'"),
    "nothing left": (COUNTS, {"bags": "all", "feature_types": "integer"}, "^bags='all' has no column left"),
    "name taken": (
        {"a": [1, 0], "b": list("xy")},
        {"bags": {"b": ["a"]}},
        "^bags has a bag 'b', but another feature is called so",
    ),
    "texts": ({"a": ["x"]}, {"texts": "b"}, "^texts names column 'b'"),
    "texts mapping": ({"a": ["x"]}, {"texts": {"a": 1}}, r"^texts must be a list of columns, not \{'a': 1\}\.$"),
    "stop words": ({"a": ["xx"]}, {"texts": "a", "stop_words": "german"}, "^stop_words must be 'english' or a list of words"),
    "stop words of nothing": ({"a": LISTS}, {"stop_words": "english"}, "^stop_words is for texts, but there are none"),
    "all words stopped": ({"a": ["the", "of"]}, {"texts": "a", "stop_words": "english"}, "^The bag 'a' has no item at all"),
    "too few names": (SPARSE, {"feature_names": ["a"]}, r"^feature_names has 1 names, but the data has 3 columns\.$"),
    "names": (SPARSE, {"feature_names": [1, 2, 3]}, "^feature_names must be a list of words"),
    "a name": (SPARSE, {"feature_names": "abc"}, "^feature_names must be a list of words, not 'abc'"),
    "same names": (SPARSE, {"feature_names": ["a", "b", "a"]}, r"^feature_names has the name 'a' twice\.$"),
    "other names": (
        COLUMNS["counts"],
        {"feature_names": list("abc")},
        "^feature_names differs from the names that the columns",
    ),
}


@pytest.mark.parametrize(("X", "asked", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_one_sentence(X, asked, message):
    with pytest.raises((ParameterError, TableError), match=message) as raised:
        CaseEncoder(**asked).fit(X)
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith(".")


def test_new_cases_that_are_wrong():
    encoder = CaseEncoder().fit(SPARSE)
    with pytest.raises(TableError, match=r"^Column 'x0' has the value 0\.5"):
        encoder.transform(SPARSE * 0.5)
    with pytest.raises(TableError, match="X has 2 features, but CaseEncoder is expecting 3 features as input"):
        encoder.transform(SPARSE[:, :2])
    named = CaseEncoder(bags="all").fit(COLUMNS["counts"])
    with pytest.raises(TableError, match=r"^X has no column 'egg'\.$"):
        named.transform({"rice": [1], "salt": [1]})


# --- files and sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "feather"])
def test_lists_in_files(tmp_path, kind):
    from pyarrow import feather, parquet

    path = tmp_path / f"data.{kind}"
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps({"n": n, "in": cell}) for n, cell in zip([1, 2, 1, 2], LISTS, strict=True)))
    else:
        write = {"parquet": parquet.write_table, "feather": feather.write_feather}[kind]
        write(pa.table({"n": [1, 2, 1, 2], "in": LISTS}), str(path))
    data = read_file(path)
    encoding = learn(data.table)
    assert [(f.name, f.type) for f in encoding.features] == [("n", "integer"), ("in", "bag")]
    assert counts_of(encoding, data.table) == (COUNTS.tolist(), 0)
    assert counts_of(encoding, data.table.take([2])) == ([[0, 2, 1]], 0)


def test_a_sparse_file_keeps_its_words(tmp_path):
    parts = {name: getattr(SPARSE, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "a.npz", **parts, vocabulary=np.array(ITEMS), who=np.arange(4))
    data = read_file(tmp_path / "a.npz")
    encoding = learn(data.table)
    assert encoding.column_names == list(ITEMS)
    assert counts_of(encoding, data.table.take([2, 0])) == (COUNTS[[2, 0]].tolist(), 0)


def test_newsgroups_are_encoded_without_a_dense_copy():
    """18,846 messages × 12,871 words; codes are of two bytes, and a dense table of bytes would take 231 MiB."""
    table = read_file(shared("20news_bydate_counts.npz")).table
    tracemalloc.start()
    encoding = learn(table)
    codes, unseen = encoding.encode(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120 * 2**20, f"{peak / 2**20:.0f} MiB"
    assert (codes.x.shape, unseen) == ((18_846, 0), 0)
    stored = sum(int(column.values.sum()) for column in table.columns)
    assert len(codes.bags.codes) == codes.bags.first[-1] == stored
    assert codes.bags.codes.dtype == np.int16
    assert encoding.column_names[encoding.find("windows", "pins")] == "windows"


def test_whats_cooking():
    """39,774 recipes with a list of ingredients each."""
    data = read_file(shared("whats_cooking_train.jsonl.gz"))
    encoding = learn(data.table, feature_types={"cuisine": "drop", "id": "drop"}, min_cases=10)
    (bag,) = encoding.bags
    assert bag.name == "ingredients"
    assert len(bag.values) + len(bag.left_out) == 6_714
    codes, unseen = encoding.encode(data.table)
    assert unseen == 0
    assert len(codes.bags.first) == 39_775
    first = Cells(codes.bags.codes[: codes.bags.first[1]], codes.bags.first[:2])
    want = set(data.values("ingredients")[0]) - set(bag.left_out)
    assert encoding.decode(codes.x[:1], first)[0, 0] == tuple(sorted(want))
