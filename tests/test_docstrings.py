"""Everything public says what it takes and what it gives, as numpydoc wants it."""

import inspect

import pytest
from numpydoc.validate import validate

import bayescase
from bayescase import plots

# Left out: sections that not everything needs (See Also, Examples, an extended summary), and SS05, which takes a noun in the
# plural for a verb.
CHECKS = {
    "GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08",  # there is a docstring; its sections are known and in order
    "SS01", "SS02", "SS03", "SS04", "SS06",  # a summary of one sentence on one line
    "PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10",  # every parameter: its type, and what it is
    "RT01", "RT02", "RT03", "RT04", "RT05",  # what comes back
    "YD01",
}  # fmt: skip
# Messages are caught, not made: what their constructor takes is said once, by the class `errors.Message`.
ALLOWED = {(name, "PR01") for name in ("BayescaseError", "BayescaseWarning", "ParameterError", "TableError")}


def own(function):
    """Is it written here, not inherited from scikit-learn or Python?"""
    return inspect.isfunction(function) and inspect.unwrap(function).__module__.startswith("bayescase.")


def methods(cls):
    found = {name: inspect.unwrap(getattr(cls, name)) for name in dir(cls) if not name.startswith("_")}
    return [name for name, method in found.items() if own(getattr(method, "__func__", method))]  # a class method has one


def public():
    for name in bayescase.__all__:
        yield name
        if inspect.isclass(getattr(bayescase, name)):
            yield from (f"{name}.{method}" for method in methods(getattr(bayescase, name)))
    yield from (f"plots.{name}" for name in dir(plots) if name.startswith("plot_"))


@pytest.mark.parametrize("name", list(public()))
def test_docstring_is_whole(name):
    errors = validate(f"bayescase.{name}")["errors"]
    assert [f"{code} {words}" for code, words in errors if code in CHECKS and (name, code) not in ALLOWED] == []


def test_a_docstring_that_lacks_a_parameter_is_found(monkeypatch):
    monkeypatch.setattr(plots.plot_values, "__doc__", "How common values are.\n\nReturns\n-------\nFigure\n    All of it.\n")
    assert "PR01" in {code for code, _ in validate("bayescase.plots.plot_values")["errors"]}


def test_what_is_public_was_found():
    names = set(public())
    assert {"BayesianCaseModel.fit", "BayesianCaseModel.load", "CaseEncoder.transform", "plots.plot_history"} <= names
    assert "BayesianCaseModel.get_params" not in names
