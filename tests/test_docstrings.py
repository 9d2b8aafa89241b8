"""Everything public says what it takes and what it gives, as numpydoc wants it."""

import doctest
import inspect
import io
import warnings
from operator import attrgetter

import pytest
from numpydoc.validate import validate

import bayescase
from bayescase import plots

# Left out: sections that not everything needs (See Also, an extended summary), and SS05, which takes a noun in the plural for a
# verb.
CHECKS = {
    "GL01", "GL02", "GL03", "GL05", "GL06", "GL07", "GL08",  # there is a docstring; its sections are known and in order
    "SS01", "SS02", "SS03", "SS04", "SS06",  # a summary of one sentence on one line
    "PR01", "PR02", "PR03", "PR04", "PR05", "PR06", "PR07", "PR08", "PR09", "PR10",  # every parameter: its type, and what it is
    "RT01", "RT02", "RT03", "RT04", "RT05",  # what comes back
    "YD01", "EX01",  # an example
}  # fmt: skip
MESSAGES = ("BayescaseError", "BayescaseWarning", "ParameterError", "TableError", "FileFormatError")
# What scikit-learn has everywhere is in the example of its class.
USUAL = ("predict", "predict_proba", "decision_function", "transform", "inverse_transform", "score", "get_feature_names_out")
EXAMPLE_OF_CLASS = {*USUAL, "BayesianCaseClassifier.fit", "CaseEncoder.fit"}


def is_allowed(name, code):
    if name.split(".")[0] in MESSAGES:  # they are caught, not made: `errors.Message` says what their constructor takes
        return code in ("PR01", "EX01")
    return code == "EX01" and not {name, name.split(".")[-1]}.isdisjoint(EXAMPLE_OF_CLASS)


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
    assert [f"{code} {words}" for code, words in errors if code in CHECKS and not is_allowed(name, code)] == []


@pytest.mark.parametrize("name", [name for name in public() if ">>>" in (attrgetter(name)(bayescase).__doc__ or "")])
def test_the_example_prints_what_it_shows(name):
    text = attrgetter(name)(bayescase).__doc__
    if "plots" in text or name.endswith(".report"):
        pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    if "arviz" in name:
        pytest.importorskip("arviz", reason="pip install 'bayescase[arviz]'")
    example = doctest.DocTest(doctest.DocTestParser().get_examples(text), {}, name, None, 0, None)
    wrong = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.x announces 1.x whenever it is imported
        failed = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example, out=wrong.write).failed
    assert not failed, wrong.getvalue()


def test_a_docstring_that_lacks_a_parameter_is_found(monkeypatch):
    monkeypatch.setattr(plots.plot_values, "__doc__", "How common values are.\n\nReturns\n-------\nFigure\n    All of it.\n")
    assert "PR01" in {code for code, _ in validate("bayescase.plots.plot_values")["errors"]}


def test_what_is_public_was_found():
    names = set(public())
    assert {"BayesianCaseModel.fit", "BayesianCaseModel.load", "CaseEncoder.transform", "plots.plot_history"} <= names
    assert "BayesianCaseModel.get_params" not in names
