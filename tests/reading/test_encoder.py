"""CaseEncoder: a scikit-learn transformer from any table to codes and back; and what an estimator does with one."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayescase import BayesianCaseModel, CaseEncoder, ParameterError, TableError
from bayescase.errors import TableWarning

TINY = {"n_iter": 3, "n_chains": 1, "random_state": 0}


@parametrize_with_checks([CaseEncoder(), CaseEncoder(bins=("uniform", 3), max_count=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def animals():
    return pd.DataFrame(
        {
            "chip": [f"C{i}" for i in range(12)],
            "coat": ["long", "short", "?", "long"] * 3,
            "age": [1, 7, 20, 33, 2.5, 8] * 2,
            "legs": [4, 2, 4, 2] * 3,
        }
    )


@pytest.fixture
def encoder():
    return CaseEncoder({"age": [5, 30]}, feature_types={"chip": "drop"}, missing_values="?")


def test_codes_and_back(animals, encoder):
    codes = encoder.fit_transform(animals)
    assert codes.dtype == np.int64
    assert codes[:4].tolist() == [[0, 0, 1], [1, 1, 0], [-1, 1, 1], [0, 2, 0]]
    back = encoder.inverse_transform(codes)
    assert back[:3].tolist() == [["long", "below 5", 4], ["short", "5 to 30", 2], [None, "5 to 30", 4]]
    assert np.array_equal(encoder.transform(pd.DataFrame(back, columns=encoder.get_feature_names_out())), codes)
    assert encoder.feature_values_ == [("long", "short"), ("below 5", "5 to 30", "30 or more"), (2, 4)]
    assert encoder.feature_types_ == {"coat": "category", "age": "number", "legs": "integer"}
    assert [feature.name for feature in encoder.features_] == ["coat", "age", "legs"]


def test_dropped_columns_count_among_those_that_came_in(animals, encoder):
    encoder.fit(animals)
    assert encoder.n_features_in_ == 4
    assert encoder.feature_names_in_.tolist() == ["chip", "coat", "age", "legs"]
    assert encoder.get_feature_names_out().tolist() == ["coat", "age", "legs"]
    assert encoder.get_feature_names_out(list(animals)).tolist() == ["coat", "age", "legs"]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(list("abcd"))
    unnamed = CaseEncoder(feature_types={0: "drop"}).fit(animals.to_numpy())
    assert not hasattr(unnamed, "feature_names_in_")
    assert unnamed.get_feature_names_out().tolist() == ["x1", "x2", "x3"]
    assert unnamed.get_feature_names_out(list("abcd")).tolist() == ["b", "c", "d"]
    with pytest.raises(ValueError, match=r"input_features should have length equal to number of features \(4\), got 3"):
        unnamed.get_feature_names_out(list("abc"))
    again = encoder.set_params(feature_types={0: "drop"}, bins=5).fit(animals.to_numpy())
    assert not hasattr(again, "feature_names_in_")


def test_pandas_comes_out_if_asked(animals, encoder):
    shown = encoder.set_output(transform="pandas").fit_transform(animals)
    assert shown.columns.tolist() == ["coat", "age", "legs"]
    assert encoder.inverse_transform(shown)[0].tolist() == ["long", "below 5", 4]


def test_in_a_pipeline_with_others(animals):
    y = np.arange(12) % 2
    encoder = CaseEncoder(feature_types={"chip": "drop", "coat": "drop"})
    model = make_pipeline(encoder, CategoricalNB()).fit(animals, y)
    assert model.score(animals, y) > 0.5
    assert clone(encoder).get_params() == encoder.get_params()
    fitted = pickle.loads(pickle.dumps(model[0]))
    assert np.array_equal(fitted.transform(animals), model[0].transform(animals))


def test_sparse(animals):
    counts = scipy.sparse.csr_array([[0, 2], [1, 0], [5, 1], [0, 0]])
    assert CaseEncoder(feature_types="count").fit_transform(counts).tolist() == [[0, 1], [1, 0], [1, 1], [0, 0]]
    capped = CaseEncoder(max_count=2).fit(counts)
    assert capped.inverse_transform(capped.transform(counts)).tolist() == [[0, "2+"], [1, 0], ["2+", 1], [0, 0]]


def test_values_never_seen_are_missing_and_said(animals, encoder):
    encoder.fit(animals)
    with pytest.warns(TableWarning, match="^2 cells have values never seen in fit; counted as missing"):
        codes = encoder.transform(animals.assign(coat=["curly", "wire"] + ["long"] * 10))
    assert codes[:3, 0].tolist() == [-1, -1, 0]


def test_what_it_reads_is_described(animals, encoder):
    shown = encoder.fit(animals).describe_features(animals)
    assert [(row.name, row.n_values, row.missing) for row in shown] == [("coat", 2, 0.25), ("age", 3, 0.0), ("legs", 2, 0.0)]


def test_notes_are_warnings(animals):
    with pytest.warns(TableWarning, match="Feature 'kind' has one value only"):
        CaseEncoder().fit({"kind": ["cat"] * 4, "legs": [4, 2] * 2})


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0, 1]], r"X must be whole numbers with a column for each of the 3 features, not int64 of shape \(1, 2\)"),
        ([[0.0, 1.0, 1.0]], r"not float64 of shape \(1, 3\)"),
        ([0, 1, 1], r"of shape \(3,\)"),
        ([[0, 0, 0], [0, 3, 0]], "X has the code 3 for 'age' in row 1; its codes go from -1 to 2"),
        ([[-2, 0, 0]], "X has the code -2 for 'coat' in row 0"),
    ],
)
def test_codes_that_are_none(animals, encoder, codes, message):
    encoder.fit(animals)
    with pytest.raises(ParameterError, match=message):
        encoder.inverse_transform(codes)


# --- as a parameter of a model ----------------------------------------------------------------------------------------------


def test_a_model_takes_an_encoder_or_its_parameters(animals, encoder, same, tmp_path):
    model = BayesianCaseModel(2, encoder=encoder, **TINY).fit(animals)
    assert not hasattr(encoder, "features_")  # cloned, not fitted
    assert model.encoder_.feature_types_ == model.feature_types_
    short = BayesianCaseModel(2, encoder=encoder.get_params(), **TINY).fit(animals)
    same(model, short)
    model.save(tmp_path / "model")
    loaded = BayesianCaseModel.load(tmp_path / "model")
    same(model, loaded)
    assert np.array_equal(loaded.encoder_.transform(animals), model.encoder_.transform(animals))
    same(clone(loaded).fit(animals), model)
    nested = clone(model).set_params(encoder__bins={"age": [10]}).fit(animals)
    assert nested.feature_values_[1] == ("below 10", "10 or more")


def test_errors_and_notes_speak_of_the_parameter_of_the_model(animals):
    with pytest.raises(TableError, match=r"leave it out with encoder=\{'feature_types': \{'chip': 'drop'\}\}") as raised:
        BayesianCaseModel(2, **TINY).fit(animals)
    assert "name the cases by it, too, with case_names=X['chip']" in str(raised.value)
    assert raised.value.column == "chip"
    with pytest.raises(TableError, match=r"leave it out with feature_types=\{'chip': 'drop'\}"):
        CaseEncoder().fit(animals)
    codes = {"race": np.repeat(np.arange(24), 10)}
    with pytest.warns(TableWarning, match=r"say so with encoder=\{'feature_types': \{'race': 'category'\}\}"):
        BayesianCaseModel(2, **TINY).fit(codes)
