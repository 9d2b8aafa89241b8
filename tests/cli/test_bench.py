"""`demo`, `simulate` and `bench`."""

import csv
import io
import json
import re

import pytest
from click.testing import CliRunner

import bayescase
from bayescase.cli.main import main

from .calling import call, run


def test_help_of_demo():
    shown = run("demo", "--help")
    assert shown.returncode == 0
    assert "--seed" in shown.stdout
    assert "--jobs" in shown.stdout


@pytest.fixture(scope="module")
def demo():
    return run("demo", "--seed", "3", "--jobs", "2")


def test_demo_shows_the_clusters(demo):
    assert demo.returncode == 0, demo.stderr
    assert "Recipes: 80 cases" in demo.stdout
    assert "5 clusters" in demo.stdout
    assert "Smiley faces: 240 cases, 5 features, 3 clusters" in demo.stdout
    recipes, faces = demo.stdout.split("Smiley faces")
    assert sum(int(n) for n in re.findall(r"^│ (\d+) of 80 cases, ", recipes, flags=re.M)) == 80
    assert sum(int(n) for n in re.findall(r"^│ (\d+) of 240 cases, ", faces, flags=re.M)) == 240
    names = set(bayescase.load_recipes().names)
    heads = " ".join(" ".join(row.split("│")[1] for row in recipes.splitlines() if row.startswith("│")).split())
    assert sum(name in heads for name in names) >= 5
    assert "colour" in faces
    assert len(re.findall(r"^(?:Good|All|Both|The \d chains)", demo.stdout, flags=re.M)) == 2  # a verdict on each fit
    assert demo.stderr == ""  # no warning, and no progress bar where nobody looks


def test_demo_is_the_same_with_one_thread(demo):
    assert run("demo", "--seed", "3", "--jobs", "1").stdout == demo.stdout


def test_simulate(tmp_path):
    shown = call("simulate", "-n", 7, "-p", 3, "--values", 2, "-k", 2, "--alpha", 0, "--seed", 5)
    rows = list(csv.reader(io.StringIO(shown.stdout)))
    assert rows[0] == ["case", "cluster", "f1", "f2", "f3"]
    assert len(rows) == 8
    assert {cell for row in rows[1:] for cell in row[2:]} == {"v1", "v2"}
    assert call("simulate", "-n", 7, "-p", 3, "--values", 2, "-k", 2, "--alpha", 0, "--seed", 5).stdout == shown.stdout
    assert shown.stderr == ""


def test_bench():
    found = json.loads(call("bench", "--seconds", 0.01, "--jobs", 1, "--json").stdout)
    assert all(speed["cells_per_second"] > 0 and speed["sweeps"] > 0 for speed in found)
    assert json.loads(call("bench", "speed", "--seconds", 0.01, "--jobs", 1, "--json").stdout)
    assert "quality" in call("bench", "--help").stdout
    assert "No such command 'fast'" in CliRunner().invoke(main, ["bench", "fast"]).stderr
