"""What the documents say is so."""

import ast
import contextlib
import importlib
import inspect
import io
import itertools
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import bayescase
from bayescase import BayesianCaseModel

ROOT = Path(__file__).parent.parent
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def test_readme_code_prints_what_the_readme_shows():
    code, output = re.search(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S
    ).groups()
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    assert printed.getvalue() == output


PAGES = (
    "docs/bags.md",
    "docs/diagnostics.md",
    "docs/explanations.md",
    "docs/guide.md",
    "docs/how-many.md",
    "docs/large.md",
    "docs/prediction.md",
    "docs/steering.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_code_of_a_page_runs_from_top_to_bottom_and_prints_what_it_shows(page):
    text, names = (ROOT / page).read_text("utf-8"), {}
    if "arviz" in text:
        pytest.importorskip("arviz", reason="pip install 'bayescase[arviz]'")
    if "plots" in text:
        pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.S)
    assert len(blocks) == text.count("```python") > 0
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # ArviZ 0.x announces 1.x whenever it is imported
            exec(compile(code, page, "exec"), names)
        if output:
            assert printed.getvalue() == output


def rows():
    for line in (ROOT / "docs/notation.md").read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[1].startswith("`"):
            yield [cell.strip("`") for cell in cells]


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row[1])
def test_notation(row):
    _, name, place, public, _ = row
    module, _, holder = place.rpartition(".")
    assert name in getattr(importlib.import_module(f"bayescase.{module}"), holder)._fields
    if public and public not in inspect.signature(BayesianCaseModel.fit).parameters:
        model = BayesianCaseModel(2, n_iter=4, n_chains=1, keep_draws=True, random_state=0)
        assert hasattr(model.fit(np.arange(12).reshape(6, 2) % 3 % 2), public)


def test_notation_table_was_read():
    assert len(list(rows())) >= 15


def test_the_architecture_names_every_file_and_no_other_in_the_reading_order():
    source = ROOT / "src/bayescase"
    named = re.findall(r"^\| `([\w/]+\.py)` \|", (ROOT / "docs/architecture.md").read_text("utf-8"), re.M)
    files = [str(path.relative_to(source)) for path in source.rglob("*.py") if path.stem not in ("__init__", "__main__")]
    assert sorted(named) == sorted(files)
    rooms = [room for room, _ in itertools.groupby(file.split("/")[0].removesuffix(".py") for file in named)]
    assert rooms == re.findall(r"^    (\w+) ", bayescase.__doc__, re.M)


def test_the_walks_of_the_architecture_name_functions_that_are_there():
    walks = (ROOT / "docs/architecture.md").read_text("utf-8").split("## Three walks")[1].split("## Four nouns")[0]
    steps = re.findall(r"^(\d+)\. (.*)$", walks, re.M)
    assert [int(number) for number, _ in steps] == 3 * list(range(1, 11))
    assert all(len(line) < 160 for line in walks.splitlines())
    for _, step in steps:
        named = re.findall(r"`([\w/]+\.py):(\w+)`", step)
        assert named, step
        for file, name in named:
            tree = ast.parse((ROOT / "src/bayescase" / file).read_text("utf-8"))
            defined = {node.name for node in ast.walk(tree) if isinstance(node, DEFINITIONS)}
            assert name in defined, f"{file}:{name}"


def test_every_parameter_and_attribute_is_documented():
    text = inspect.cleandoc(BayesianCaseModel.__doc__)  # from Python 3.13 on it has no indentation anyway
    for name in BayesianCaseModel().get_params():
        assert re.search(rf"^{name} : ", text, re.M), name
    model = BayesianCaseModel(2, n_iter=4, n_chains=1, keep_draws=True, random_state=0)
    for name in vars(model.fit({"a": np.arange(12) % 2, "b": np.arange(12) % 3})):
        if name.endswith("_") and not name.startswith("_"):
            assert re.search(rf"^{name} : ", text, re.M), name
