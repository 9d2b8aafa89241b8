"""Values as they are shown, and which of them agree with a prototype."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.values import AGREES, DIFFERS, UNKNOWN, Values, agreeing_codes, agreement, in_words
from bayescase.reading.columns import Columns
from bayescase.reading.encoding import Encoding
from bayescase.reading.rules import Asked
from bayescase.reading.tables import read

QUICK = {"n_iter": 20, "n_chains": 1, "random_state": 0}


def learn(columns, **settings):
    return Encoding.learn(read(columns), Asked(**settings))


def values_of(columns, **settings):
    return Values(Columns(learn(columns, **settings)))


def test_presence_is_shown_as_yes_and_no():
    found = values_of({"a": ["true", "false"], "b": [True, False], "c": ["Present", "absent"], "d": ["x", "y"], "e": [3, 4]})
    assert found.shown == [(False, True), (False, True), (True, False), ("x", "y"), (3, 4)]
    assert found.words(0, [1]) == "a"
    assert found.words(2, [int(found.offset[2])]) == "c"
    assert found.words(3, [6, 7]) == "d = x or y"


def test_counts_are_shown_as_counts():
    found = values_of(np.array([[0, 1], [2, 0], [3, 1]]), feature_types="count", max_count=2)
    assert found.shown == [(0, 1, "2+"), (False, True)]  # of two values one says that it is there
    assert found.words(0, [1, 2]) == "x0"
    assert found.words(0, [2]) == "x0 = 2+"


def test_missing_values_are_none(table):
    found, x = Values(table.fitted_.columns), table.fitted_.data.x
    for i in (0, 3, 5, 17):
        shown = [found.of(j, code) for j, code in enumerate(x[i].tolist())]
        assert [value is None for value in shown] == (x[i] < 0).tolist()
        assert shown == list(table.fitted_.encoding.decode(x[i : i + 1])[0])


def test_agreement_follows_the_similarity_of_the_model():
    x = np.array([[1, 5], [2, 5], [3, 6], [9, 5]] * 5)
    pins = {"prototypes": {0: 1}, "subspaces": {0: {"x0": True}}}
    model = BayesianCaseModel(1, similarity={"x0": ("within", 1)}, **QUICK).fit(x, pins=pins)
    found = agreement(model.fitted_, 0, model.fitted_.data.cases, np.arange(2))
    assert found[:4].tolist() == [[AGREES, AGREES], [AGREES, AGREES], [AGREES, DIFFERS], [DIFFERS, AGREES]]
    values = [value for values in model.feature_values_ for value in values]
    assert [v for v, agrees in zip(values, agreeing_codes(model.fitted_, 0), strict=True) if agrees] == [1, 2, 3, 5]


def test_agreement_is_unknown_where_a_value_is_missing(table):
    fitted = table.fitted_
    for s in range(3):
        prototype = fitted.data.candidates[fitted.prototypes[s]]
        found = agreement(fitted, s, fitted.data.cases, np.arange(5))
        for i in range(fitted.n_cases):
            for j in range(5):
                missing = fitted.data.x[i, j] < 0 or prototype[j] < 0
                expected = UNKNOWN if missing else AGREES if fitted.data.x[i, j] == prototype[j] else DIFFERS
                assert found[i, j] == expected
    assert [in_words(state) for state in (AGREES, DIFFERS, UNKNOWN)] == [True, False, None]


@pytest.mark.parametrize(
    ("columns", "optional", "is_set"),
    [
        ({"a": [True, False], "b": [True, True]}, [True, True], True),
        ({"a": [0, 1], "b": [1, 0]}, [True, True], True),
        ({"a": [0, 1], "b": [1, 2]}, [False, False], False),
        ({"a": ["true", "false"], "b": ["x", "y"]}, [True, False], False),
        ({"a": ["yes", "no"], "b": ["n", "y"]}, [False, False], False),
    ],
)
def test_which_features_say_whether_something_is_there(columns, optional, is_set):
    found = Columns(learn(columns))
    assert found.optional.tolist() == optional
    assert found.is_set == is_set


def test_empty_rows():
    table = {"a": [True, False, None, False], "b": [False, False, None, True]}
    assert Columns(learn(table)).is_empty(learn(table).encode(read(table))[0]).tolist() == [False, True, True, False]
    other = learn({"a": [True, False], "b": ["x", None]})
    new = other.encode(read({"a": [False, False], "b": ["x", None]}))[0]
    assert Columns(other).is_empty(new).tolist() == [False, True]
