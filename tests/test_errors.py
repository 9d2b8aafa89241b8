"""Errors carry structure; Python and the command line say the same error in their own words."""

import copy
import pickle
import warnings

import numpy as np
import pytest

from bayescase.errors import (
    Advice,
    BayescaseWarning,
    Message,
    ParameterError,
    ParameterTypeError,
    Setting,
    TableError,
    TableTypeError,
    advise,
    in_python,
    one_of,
)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting("n_iter"), "n_iter"),
        (Setting("bins", column="age"), "bins['age']"),
        (Setting("n_clusters", 5), "n_clusters=5"),
        (Setting("burn_in", None), "burn_in=None"),
        (Setting("feature_types", "drop", column="a b"), "feature_types={'a b': 'drop'}"),
        (Setting("feature_types", "drop", column="id").within("encoder"), "encoder={'feature_types': {'id': 'drop'}}"),
        (Setting("missing_values", "?", of="encoder").within("model"), "encoder={'missing_values': '?'}"),
        (Setting("bins", of="encoder"), "bins"),
    ],
    ids=str,
)
def test_settings_in_python(setting, words):
    assert in_python(setting) == words


DROP = Advice("leave it out with {}", Setting("feature_types", "drop", column="id"))
LESS = Advice("try {}", Setting("alpha", 0.5))


def test_a_sentence_with_advice():
    error = TableError("Column {column!r} has {n} values.", DROP, LESS, column="id", n=9)
    assert str(error) == "Column 'id' has 9 values; leave it out with feature_types={'id': 'drop'}, or try alpha=0.5."
    assert error.column == "id"
    assert error.parameter is None
    assert [setting.value for way in error.advice for setting in way.settings] == ["drop", 0.5]
    assert str(error.within("encoder")).endswith("{'feature_types': {'id': 'drop'}}, or try encoder={'alpha': 0.5}.")


def without_alpha(setting):
    return None if setting.parameter == "alpha" else f"--{setting.parameter}"


def test_advice_that_a_front_end_does_not_have_is_left_out():
    assert TableError("It is bad.", DROP, LESS).render(without_alpha) == "It is bad; leave it out with --feature_types."
    assert TableError("It is bad.", LESS).render(without_alpha) == "It is bad."
    error = ParameterError("{parameter} must be small, not {value!r}.", parameter="alpha", value=2)
    assert error.render(without_alpha) == "alpha must be small, not 2."  # the problem is said all the same
    assert advise([LESS], without_alpha) == ""
    assert advise([LESS, DROP, LESS]) == ("Try alpha=0.5, leave it out with feature_types={'id': 'drop'}, or try alpha=0.5.")
    assert one_of([]) == ""


def test_a_parameter_is_a_setting_or_its_name():
    error = ParameterError("{parameter} must be a number, not {value!r}.", parameter="c", value="x")
    assert (str(error), error.parameter, error.value) == ("c must be a number, not 'x'.", "c", "x")
    error = ParameterError("{parameter} needs more cases.", parameter=Setting("n_clusters", 5))
    assert (str(error), error.parameter) == ("n_clusters=5 needs more cases.", "n_clusters")


def test_what_is_quoted_is_brief_and_braces_are_harmless():
    assert str(TableError("It is {value!r}.", value="x" * 100)) == f"It is '{'x' * 57} …."
    assert "\n" not in str(TableError("It is {value!r}.", value=np.zeros((9, 9))))
    assert str(TableError("It is {value!r}.", DROP, value="{x}")).startswith("It is '{x}'; leave")
    strange = Setting("feature_types", "drop", column="{a}")
    assert str(TableError("Bad.", Advice("use {}", strange))) == "Bad; use feature_types={'{a}': 'drop'}."


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [
        (ParameterError, (ValueError,)),
        (TableError, (ValueError,)),
        (ParameterTypeError, (ParameterError, TypeError)),
        (TableTypeError, (TableError, TypeError)),
        (BayescaseWarning, (UserWarning,)),
    ],
)
def test_they_are_the_errors_that_callers_expect_and_survive_pickle(kind, kinds):
    error = kind("{parameter} has {column!r} in row {row}.", DROP, parameter="q", column="a", row=3)
    assert isinstance(error, kinds)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is kind
        assert str(other) == str(error)
        assert (other.parameter, other.column, other.row) == ("q", "a", 3)
    bare = Setting("q")
    assert pickle.loads(pickle.dumps(bare)) == bare
    assert in_python(pickle.loads(pickle.dumps(bare))) == "q"


def test_warnings_keep_their_structure():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn(BayescaseWarning("Column {column!r} is odd.", DROP, column="id"), stacklevel=1)
    assert seen[0].message.column == "id"
    assert str(seen[0].message) == "Column 'id' is odd; leave it out with feature_types={'id': 'drop'}."


def test_a_message_alone():
    assert Message("{n} draws.", n=3).render(without_alpha) == "3 draws."
