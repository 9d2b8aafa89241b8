"""Settings as options, and errors that say them."""

import pytest

from bayescase import BayesianCaseModel, CaseEncoder
from bayescase.cli import options
from bayescase.cli.errors import OPTIONS, as_option, in_options
from bayescase.cli.main import main
from bayescase.errors import Advice, ColumnOf, ParameterError, Setting, TableError
from bayescase.reading import rules


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        (Setting("n_iter"), "--iterations"),
        (Setting("n_clusters", 5), "-k 5"),
        (Setting("bins", column="a"), "--bins of 'a'"),
        (Setting("bins", [18, 65], column="a"), "--bins a=18,65"),
        (Setting("bins", ("uniform", 5)), "--bins uniform:5"),
        (Setting("feature_types", "drop", column="a b"), "--drop 'a b'"),
        (Setting("feature_types", "drop"), "--drop"),
        (Setting("feature_types", "category", column="a", of="encoder"), "--type a=category"),
        (Setting("top_values", 10, column="a"), "--top a=10"),
        (Setting("missing_values", "?"), "--missing '?'"),
        (Setting("keep_draws", True), "--keep-draws"),
        (Setting("header", False), "--no-header"),
        (Setting("array", "X"), "--array X"),
        (Setting("case_names", ColumnOf("a b"), of=""), "--id 'a b'"),
        (Setting("image_shape", (8, 8)), "--image 8 8"),
        (Setting("arms", ("bcm", "subspace")), "--arms bcm,subspace"),
        (Setting("paper_mode", True), "--paper-mode"),
        (Setting("items_per_block", 4), "--items-per-block 4"),
        (Setting("burn_in", None), "--burn-in unset"),
        (Setting("n_samples", 5), "5"),
        (Setting("X"), "The data"),
        (Setting("heat", 0.5), None),
        (Setting("similarity", column="a"), None),
    ],
    ids=str,
)
def test_settings_as_options(setting, words):
    assert as_option(setting) == words


def test_every_option_is_one_of_a_command():
    pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")
    commands = [*main.commands.values(), *main.commands["study"].commands.values()]
    known = {option for command in commands for param in command.params for option in param.opts}
    assert {"--drop", *OPTIONS.values()} <= known
    import inspect

    from bayescase.experiments import reproduce
    from bayescase.reading.files import read_file
    from bayescase.selection import select_n_clusters
    from bayescase.study.data.reconcile import read_ids
    from bayescase.study.design.own import OwnWishes
    from bayescase.study.design.wishes import ModelWishes
    from bayescase.web.serving import clean_path, listen

    methods = (read_file, select_n_clusters, reproduce, BayesianCaseModel.fit, BayesianCaseModel.fold, BayesianCaseModel.report)
    parameters = {*BayesianCaseModel().get_params(), *CaseEncoder().get_params()}
    parameters |= {name for method in methods for name in inspect.signature(method).parameters}
    parameters |= {*ModelWishes.__dataclass_fields__, *OwnWishes.__dataclass_fields__}
    for method in (read_ids, listen, clean_path):
        parameters |= {*inspect.signature(method).parameters}
    assert set(OPTIONS) - {"admin_password"} <= parameters  # that one is asked for


def test_the_types_are_those_of_the_package():
    """Written twice, since the command line should start fast. Bags have options of their own."""
    assert (*options.TYPES, "bag") == rules.TYPES


def test_errors_in_one_line():
    drop = Advice("leave it out with {}", Setting("feature_types", "drop", column="n_iter"))
    error = TableError("Column {column!r} has no value.", drop, column="n_iter")
    assert in_options(error) == "Column 'n_iter' has no value; leave it out with --drop n_iter."
    error = ParameterError("{parameter} must be small.", Advice("or use {}", Setting("heat", 0.5)), parameter="c")
    assert in_options(error) == "--c must be small."
    assert in_options(ValueError("two\nlines")) == "two lines"
    assert in_options("words") == "words"
