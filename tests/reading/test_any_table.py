"""Whole runs on tables of every kind: made up, real, sparse, and large."""

import csv
import gzip
import json
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from bayescase import BayesianCaseModel, CaseEncoder, FileFormatError
from bayescase.errors import TableWarning
from bayescase.reading.encoding import Encoding
from bayescase.reading.rules import Asked
from bayescase.reading.tables import read

from ..helpers import rewritten

TINY = {"n_iter": 3, "n_chains": 1, "random_state": 0}
DATA = Path(__file__).parents[3] / "shared/data"


# --- made up ------------------------------------------------------------------------------------------------------------

DOCUMENTED = (
    "has no value at all",
    "as many values as cases",
    "different values in",
    "contains infinity",
    "holds dates or times",
    "argument must be a string or a number",
)


COLUMNS = {
    "word": st.sampled_from(["a", "b", "", "?", "nan", "é"]),
    "text": st.text(max_size=2),
    "flag": st.booleans(),
    "small": st.integers(-2, 2),
    "large": st.integers(-(2**62), 2**62),
    "number": st.floats(allow_nan=True, allow_infinity=False, width=32),
    "extreme": st.sampled_from([0.5, 3.0, 1e308, -1e308, 5e-324, 2.0**64, float("nan"), float("inf")]),
    "empty": st.none(),
}


@st.composite
def tables(draw):
    """A mapping of columns of one type each, with gaps; some have their rows twice, so that not all look like identifiers."""
    n, times = draw(st.integers(2, 8)), draw(st.sampled_from([1, 2]))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=4))
    columns = {}
    for j, values in enumerate(COLUMNS[kind] for kind in kinds):
        some = draw(st.lists(st.one_of(st.none(), values, values, values), min_size=n - 1, max_size=n - 1))
        columns[f"{kinds[j]} {j}"] = [draw(values), *some] * times
    return columns


MAKERS = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas category": lambda columns: pd.DataFrame({name: pd.Categorical(column) for name, column in columns.items()}),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
    "numpy object": lambda columns: np.array(list(columns.values()), dtype=object).T,
    "mapping": dict,
}


def works_or_says_why(X, **params):
    """fit → predict → score_samples → explain, or one of the documented errors; returns the model."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Features? .* one value only|Rows? .* no value at all")
        try:
            model = BayesianCaseModel(2, **TINY, **params).fit(X)
        except (ValueError, TypeError) as error:
            assert any(reason in str(error) for reason in DOCUMENTED), error  # noqa: PT017
            assert str(error).endswith(".")  # noqa: PT017
            return None
        labels, scores = model.predict(X), model.score_samples(X)  # nothing in X is new: no warning of unseen values
        explained, case = model.explain(), model.explain_case(0)
    assert set(labels) <= {0, 1}
    assert sum(cluster.size for cluster in explained.clusters) + explained.n_empty == len(labels)
    assert type(explained).from_json(json.loads(json.dumps(explained.to_json()))) == explained
    assert str(explained)
    assert str(case)
    assert np.isfinite(scores).all()
    assert (scores <= 1e-6).all()
    return model


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@settings(max_examples=100)
@given(columns=tables())
def test_any_mixed_table_works_or_says_why(make, columns):
    works_or_says_why(make(columns))


@settings(max_examples=100)
@given(columns=tables(), top=st.integers(1, 3), bins=st.sampled_from([2, ("uniform", 3), [0.0], [-1, 1.5]]))
def test_any_mixed_table_with_settings(columns, top, bins):
    model = works_or_says_why(columns, encoder={"top_values": top, "bins": bins, "missing_values": ["?", -2]})
    if model is not None:
        assert not any("?" in values or -2 in values for values in model.feature_values_)
        as_read = Encoding.from_json(model.fitted_.encoding.to_json())
        assert as_read.features == model.fitted_.encoding.features


MIXED = st.one_of(st.none(), st.text(max_size=2), st.integers(-9, 9), st.booleans(), st.floats(), st.binary(max_size=1))


@settings(max_examples=100)
@given(st.lists(st.lists(MIXED, min_size=2, max_size=2), min_size=2, max_size=9))
def test_objects_of_mixed_types_are_words(rows):
    X = np.empty((len(rows), 2), dtype=object)
    X[:] = rows
    model = works_or_says_why(X)
    if model is not None:
        kinds = {type(value) for values in model.feature_values_ for value in values}
        assert kinds <= {str, bool, int}


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.sampled_from([0, 0, 0, 1, 2, 7]), min_size=3, max_size=3), min_size=2, max_size=12),
    st.sampled_from(["csr_array", "csc_matrix", "coo_array", "dok_array"]),
    st.sampled_from([bool, np.int8, float]),
    st.integers(1, 3),
)
def test_any_sparse_matrix(rows, layout, dtype, max_count):
    counts = np.array(rows).astype(dtype)
    settings = {"feature_types": "count", "max_count": max_count}
    model = works_or_says_why(getattr(scipy.sparse, layout)(counts), encoder=settings)
    shown = model.fitted_.encoding.decode(model.fitted_.data.x)
    for j in range(3):
        for cell, count in zip(shown[:, j], counts[:, j], strict=True):
            assert cell is bool(count) if max_count == 1 else int(str(cell).rstrip("+")) == min(int(count), max_count)


@pytest.mark.parametrize("make", [MAKERS[name] for name in ("pandas", "pandas nullable", "polars", "pyarrow")])
def test_the_same_table_from_every_library_gives_the_same_model(make, same):
    rng = np.random.default_rng(0)
    gap = rng.random((2, 40)) < 0.1
    columns = {
        "word": np.where(gap[0], None, rng.choice(["x", "y", "?"], size=40).astype(object)).tolist(),
        "flag": rng.integers(2, size=40).astype(bool).tolist(),
        "age": np.where(gap[1], None, rng.integers(17, 90, size=40).astype(object)).tolist(),
        "size": rng.normal(size=40).tolist(),
    }
    model = BayesianCaseModel(
        2, encoder={"missing_values": "?", "bins": {"size": [-1, 1]}}, n_iter=20, n_chains=1, random_state=0
    )
    same(model.fit(columns), clone(model).fit(make(columns)))
    assert model.feature_values_[:2] == [("x", "y"), (False, True)]


# --- what is learned is kept ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    n = 60
    return pd.DataFrame(
        {
            "id": np.arange(n),
            "age": rng.integers(17, 90, size=n),
            "town": rng.choice(["here", "there", "other", "far", "?"], size=n, p=[0.4, 0.3, 0.1, 0.1, 0.1]),
            "grade": pd.Categorical(rng.choice(["low", "mid", "high"], size=n), ["low", "mid", "high"], ordered=True),
            "size": rng.normal(size=n),
        }
    )


SETTINGS = {
    "feature_types": {"id": "drop"},
    "bins": {"age": [18, 65], 4: ("uniform", 3)},
    "missing_values": ["?", -1],
    "top_values": {"town": 2},
    "max_count": 3,
}


@pytest.fixture(scope="module")
def described(table):
    return BayesianCaseModel(2, encoder=SETTINGS, n_iter=20, n_chains=1, random_state=0).fit(table)


def test_settings_reach_the_features(described, table):
    assert list(described.feature_names_in_) == list(table.columns)
    assert described.n_features_in_ == 5
    assert described.subspaces_.shape[1] == 4
    assert list(described.encoder_.get_feature_names_out()) == ["age", "town", "grade", "size"]
    assert described.feature_types_ == {"age": "number", "town": "category", "grade": "ordered", "size": "number"}
    assert described.feature_values_[:3] == [
        ("below 18", "18 to 64", "65 or more"),
        ("here", "there", "(other)"),
        ("low", "mid", "high"),
    ]
    assert len(described.feature_values_[3]) == 3
    shown = described.describe_features()
    assert shown[1].missing == pytest.approx((table["town"] == "?").mean())
    assert str(shown).count("\n") == 4


def test_a_dropped_column_is_not_needed_later(described, table):
    expected = described.transform(table)
    assert np.array_equal(described.transform(table.drop(columns="id")), expected)
    assert np.array_equal(described.transform(table[["size", "grade", "town", "age"]]), expected)
    assert np.array_equal(described.transform(pl.from_pandas(table)), expected)
    with pytest.raises(ValueError, match=r"^X has no column 'town'\.$"):
        described.predict(table.drop(columns="town"))


def test_cases_that_the_model_shows_can_be_given_back(described):
    names = list(described.feature_types_)
    prototypes = pd.DataFrame(described.prototype_cases_, columns=names)
    x = described._encode(prototypes).x  # no warning of values never seen
    assert np.array_equal(x, described.fitted_.data.candidates[described.prototypes_])
    drawn = described.sample(50, random_state=0)[0]
    assert np.array_equal(described.fitted_.encoding.decode(*described._encode(pd.DataFrame(drawn, columns=names))), drawn)
    counts = scipy.sparse.random(30, 6, 0.4, random_state=0, data_rvs=lambda n: np.arange(n) % 5 + 1, format="csr")
    model = BayesianCaseModel(2, encoder={"max_count": 3}, **TINY).fit(counts)
    assert np.array_equal(model._encode(model.prototype_cases_).x, model.fitted_.data.x[model.prototypes_])


def test_unnamed_columns_keep_their_positions():
    x = np.random.default_rng(0).integers(3, size=(30, 3))
    x[:, 0] = np.arange(30)
    model = BayesianCaseModel(2, encoder={"feature_types": {0: "drop"}}, **TINY).fit(x)
    assert list(model.feature_types_) == ["x1", "x2"]
    assert model.transform(x).shape == (30, 2)
    with pytest.raises(ValueError, match="X has 2 features, but BayesianCaseModel is expecting 3 features as input"):
        model.transform(x[:, 1:])
    again = BayesianCaseModel(2, **TINY).fit(x[:, 1:])
    assert np.array_equal(model.memberships_, again.memberships_)


def test_the_guess_can_be_given_back(table):
    model = BayesianCaseModel(2, **TINY).fit(table.drop(columns="id"))
    again = BayesianCaseModel(2, encoder={"feature_types": model.feature_types_}, **TINY).fit(table.drop(columns="id"))
    assert again.feature_types_ == model.feature_types_
    assert again.feature_values_ == model.feature_values_


def test_candidates_are_matched_by_name(table):
    params = {"encoder": CaseEncoder(**SETTINGS), **TINY}
    model = BayesianCaseModel(2, **params).fit(table, candidates=table[:9])
    turned = table[:9][["size", "town", "grade", "age"]].assign(extra="so")
    again = BayesianCaseModel(2, **params).fit(table, candidates=turned)
    assert np.array_equal(model.prototypes_, again.prototypes_)
    assert np.array_equal(model.prototype_cases_, again.prototype_cases_)
    with pytest.raises(ValueError, match=r"^candidates has no columns 'grade', 'size'\.$"):
        BayesianCaseModel(2, **params).fit(table, candidates=table[["age", "town"]])


def test_verbose_shows_the_guess(table, capsys):
    BayesianCaseModel(2, **TINY, verbose=1).fit(table.drop(columns="id"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("1 category: town\n1 ordered: grade\n2 number: age, size\n")


def test_everything_survives_a_file(described, table, tmp_path, same):
    described.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(described, again)
    new = table.assign(town=["mars"] * 59 + ["?"])
    assert np.array_equal(again.transform(new), described.transform(new))
    assert again.fitted_.encoding.markers == ("?", -1)
    assert again.fitted_.encoding.features == described.fitted_.encoding.features
    refit = again.fit(table)  # the parameters came back in a form that fits the same model
    assert refit.feature_values_ == described.feature_values_


def test_a_sparse_model_survives_a_file(tmp_path, same):
    X = scipy.sparse.random(30, 6, 0.4, random_state=0, data_rvs=lambda n: np.arange(n) % 5 + 1, format="csr")
    model = BayesianCaseModel(2, encoder={"max_count": 3}, **TINY).fit(X)
    model.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(model, again)
    assert np.array_equal(again.transform(X), model.transform(X.toarray()))


HOSTILE = {
    "name": lambda h: h["features"][0].update(name=3),
    "twin names": lambda h: h["features"][0].update(name="town"),
    "values nested": lambda h: h["features"][1].update(values=[["here"], "there", "x"]),
    "values null": lambda h: h["features"][1].update(values=[None, "there", "x"]),
    "other": lambda h: h["features"][1].update(other="yes"),
    "edges unsorted": lambda h: h["features"][0].update(edges=[65.0, 18.0]),
    "edges nan": lambda h: h["features"][0].update(edges=[float("nan"), 18.0]),
    "edges words": lambda h: h["features"][0].update(edges=["a", "b"]),
    "edges too few": lambda h: h["features"][0].update(edges=[18.0]),
    "integers unsorted": lambda h: h["features"][2].update(type="integer", values=[3, 1, 2]),
    "integers words": lambda h: h["features"][2].update(type="integer"),
    "counts": lambda h: h["features"][2].update(type="count", values=[5, 6, "7+"]),
    "type": lambda h: h["features"][2].update(type="drop"),
    "columns": lambda h: h.update(columns=["id", "age", "town", "grade", "weight"]),
    "columns short": lambda h: h.update(columns=["age", "town", "grade", "size"]),
    "columns twice": lambda h: h.update(columns=["age", "age", "town", "grade", "size"]),
    "columns numbers": lambda h: h.update(columns=[0, "age", "town", "grade", "size"]),
    "positions short": lambda h: h.update(positions=[1, 2, 3]),
    "positions outside": lambda h: h.update(positions=[1, 2, 3, 9]),
    "positions twice": lambda h: h.update(positions=[1, 2, 2, 3]),
    "positions negative": lambda h: h.update(positions=[-2, 2, 3, 4]),
    "positions words": lambda h: h.update(positions=list("abcd")),
    "width": lambda h: h.update(width=2.5),
    "markers": lambda h: h.update(missing_values=[{"a": 1}]),
    "no markers": lambda h: h.pop("missing_values"),
    "pairs": lambda h: h["settings"].update(encoder={"age": 3}),
    "pairs unhashable": lambda h: h["settings"].update(encoder={"mapping": [[{"list": [1]}, 2]]}),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file_is_refused(described, change, tmp_path):
    described.save(tmp_path / "model")
    (tmp_path / "changed").write_bytes(rewritten((tmp_path / "model").read_bytes(), change))
    with pytest.raises(FileFormatError, match="not a whole bayescase model"):
        BayesianCaseModel.load(tmp_path / "changed")


# --- memory -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_a_sparse_matrix_is_encoded_without_a_dense_copy(layout):
    X = scipy.sparse.random(20_000, 200, 0.05, format=layout, random_state=0)
    read(X[:100])  # imports
    tracemalloc.start()
    table = read(X)
    (x, _), _ = Encoding.learn(table, Asked(feature_types="count")).encode(table)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert x.dtype == np.int16
    assert peak < 1.5 * x.nbytes, f"{peak / x.nbytes:.2f} times the codes"  # as floats it would be 4 times
    assert np.array_equal(x - np.arange(0, 400, 2), (X.toarray() != 0).astype(int))


# --- real -------------------------------------------------------------------------------------------------------------------


def shared(name):
    if not (DATA / name).exists():
        pytest.skip(f"needs {name} in ../shared/data, which is not here")
    return DATA / name


def rows_of(name):
    path = shared(name)
    with gzip.open(path, "rt") if name.endswith("gz") else open(path, newline="") as file:
        return pd.DataFrame(list(csv.DictReader(file)))


def test_adult():
    """Numbers, categories and "?" in one call; 48,842 cases, of which every sixteenth is enough here."""
    adult = pd.read_csv(shared("uci_adult.csv.gz"))[::16].reset_index(drop=True)
    adult.columns = [name.strip() for name in adult.columns]
    X = adult.drop(columns=["split", adult.columns[0]])
    with pytest.warns(TableWarning, match=r"^Column 'education-num' has whole numbers that are cut into intervals, such as "):
        BayesianCaseModel(4, encoder={"missing_values": "?"}, n_iter=1, n_chains=1, random_state=0).fit(X)
    settings = {"missing_values": "?", "feature_types": {"education-num": "integer"}}
    model = BayesianCaseModel(4, encoder=settings, n_iter=20, n_chains=1, random_state=0).fit(X)
    types = model.feature_types_
    assert {types[name] for name in ("age", "fnlwgt", "capital-gain", "hours-per-week")} == {"number"}
    assert types["workclass"] == types["native-country"] == "category"
    shown = {row.name: row for row in model.describe_features()}
    assert 0.03 < shown["workclass"].missing < 0.09
    assert not any("?" in values for values in model.feature_values_)
    gain = model.feature_values_[list(types).index("capital-gain")]
    assert gain[0].startswith("below ")
    assert int(gain[0].split()[1]) < 1000  # those without a gain are apart
    assert np.isfinite(model.score(X[:200]))
    turned = X[:200][X.columns[::-1]]
    assert np.array_equal(model.predict(turned), model.predict(X[:200]))
    few = BayesianCaseModel(4, encoder=settings | {"top_values": 5}, n_iter=3, n_chains=1, random_state=0).fit(X)
    assert few.feature_values_[list(types).index("native-country")][-1] == "other"
    assert max(len(values) for values in few.feature_values_) <= 16


def test_mushroom():
    mushroom = rows_of("uci_mushroom.csv")[::8]
    X, poisonous = mushroom.iloc[:, 1:], mushroom.iloc[:, 0]
    missing = (X == "?").to_numpy().sum()
    assert missing > 0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Feature '.*' has one value only")  # veil-type
        model = BayesianCaseModel(8, encoder={"missing_values": "?"}, n_iter=60, n_chains=2, random_state=0).fit(X)
    assert (model.fitted_.data.x < 0).sum() == missing
    assert set(model.feature_types_.values()) == {"category"}
    purity = sum(poisonous[model.labels_ == s].value_counts().max() for s in np.unique(model.labels_)) / len(X)
    assert purity > 0.8


def test_votes():
    votes = rows_of("uci_house_votes_84.csv")
    X, party = votes.iloc[:, 1:], votes.iloc[:, 0]
    model = BayesianCaseModel(2, encoder={"missing_values": "?"}, n_iter=100, n_chains=2, random_state=0)
    with pytest.warns(UserWarning, match="Row 248 has no value at all"):  # who never voted
        model.fit(pl.from_pandas(X))
    assert (model.fitted_.data.x < 0).sum() == 392
    assert {len(values) for values in model.feature_values_} == {2}
    assert adjusted_rand_score(party, model.labels_) > 0.4


def test_soybean():
    soybean = rows_of("uci_soybean_large.csv")
    X = pa.Table.from_pandas(soybean.iloc[:, 1:])
    model = BayesianCaseModel(15, encoder={"missing_values": "?"}, n_iter=60, n_chains=1, random_state=0).fit(X)
    assert (model.fitted_.data.x < 0).sum() == 2337
    assert adjusted_rand_score(soybean.iloc[:, 0], model.labels_) > 0.25


def test_zoo_has_an_identifier():
    zoo = rows_of("uci_zoo.csv")
    with pytest.raises(ValueError, match="Column 'animal' has 100 different values in 101 cases"):
        BayesianCaseModel(7, **TINY).fit(zoo)
    model = BayesianCaseModel(7, encoder={"feature_types": {"animal": "drop", zoo.columns[0]: "drop"}}, **TINY).fit(zoo)
    assert len(model.feature_types_) == 16
    assert model.n_features_in_ == 18


def test_newsgroups():
    """Words in messages, as a sparse matrix of counts: present or absent, and capped."""
    file = np.load(shared("20news_bydate_counts.npz"), allow_pickle=False)
    counts = scipy.sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
    often = np.argsort(-counts.getnnz(axis=0))[:150]
    X = counts[::20][:, often]
    model = BayesianCaseModel(5, encoder={"feature_types": "count"}, n_iter=10, n_chains=1, random_state=0).fit(X)
    assert np.array_equal(model.fitted_.data.x % 2, (X.toarray() > 0).astype(int))
    assert set(model.feature_types_.values()) == {"count"}
    assert np.isfinite(model.score(X[:50]))
    capped = BayesianCaseModel(5, encoder={"max_count": 3}, n_iter=3, n_chains=1, random_state=0).fit(X)
    assert capped.feature_values_[0] == (0, 1, 2, "3+")


def test_newsgroups_whole_encode():
    file = np.load(shared("20news_bydate_counts.npz"), allow_pickle=False)
    counts = scipy.sparse.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])[:2000]
    encoding = Encoding.learn(read(counts), Asked(feature_types="count"))
    assert "have one value only" in str(encoding.notes[0])  # words of the other messages
    (x, _), unseen = encoding.encode(read(counts))
    assert unseen == 0
    assert x.shape == (2000, 12_871)
    assert (x - encoding.offset[:-1]).sum() == counts.nnz
