"""The installed command, in a process of its own."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bayescase

COMMAND = shutil.which("bayescase", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def run(*args, command=None):
    settings = {"capture_output": True, "text": True, "timeout": 300, "stdin": subprocess.DEVNULL}
    return subprocess.run([*(command or [COMMAND]), *args], **settings, env=os.environ | {"COLUMNS": "120"})


def test_the_command_is_installed():
    assert COMMAND is not None


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "bayescase"]], ids=["command", "module"])
def test_help_and_version(command):
    for option in ("--help", "-h"):
        shown = run(option, command=command)
        assert shown.returncode == 0
        assert "Clusters of discrete data" in shown.stdout
        assert "demo" in shown.stdout
    version = run("--version", command=command)
    assert version.returncode == 0
    assert version.stdout.strip() == f"bayescase, version {bayescase.__version__}"


def test_help_of_demo():
    shown = run("demo", "--help")
    assert shown.returncode == 0
    assert "--seed" in shown.stdout
    assert "--jobs" in shown.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--colour"], "No such option"),
        (["fly"], "No such command"),
        (["demo", "--colour"], "No such option"),
        (["demo", "--seed", "many"], "--seed"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", str(2**32)], "--seed"),
        (["demo", "--jobs", "0"], "--jobs"),
        (["demo", "--jobs", "two"], "--jobs"),
        (["demo", "extra"], "unexpected extra argument"),
    ],
)
def test_bad_use_is_explained_and_ends_with_2(args, message):
    shown = run(*args)
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


@pytest.fixture(scope="module")
def demo():
    return run("demo", "--seed", "3", "--jobs", "2")


def test_demo_shows_the_clusters(demo):
    assert demo.returncode == 0, demo.stderr
    assert "Recipes: 80 cases" in demo.stdout
    assert "5 clusters" in demo.stdout
    assert "Smiley faces: 240 cases, 5 features, 3 clusters" in demo.stdout
    recipes, faces = demo.stdout.split("Smiley faces")
    assert sum(int(n) for n in re.findall(r"^│ +(\d+) │", recipes, flags=re.M)) == 80
    assert sum(int(n) for n in re.findall(r"^│ +(\d+) │", faces, flags=re.M)) == 240
    names = set(bayescase.load_recipes().names)
    assert sum(name in recipes for name in names) >= 5
    assert "colour" in faces
    assert len(re.findall(r"^(?:Good|The chains)", demo.stdout, flags=re.M)) == 2  # a verdict on each fit
    assert demo.stderr == ""  # no warning, and no progress bar where nobody looks


def test_demo_is_the_same_with_one_thread(demo):
    assert run("demo", "--seed", "3", "--jobs", "1").stdout == demo.stdout


def test_importing_is_light():
    """scikit-learn and numba are imported when first needed."""
    code = (
        "import sys, bayescase; print([name for name in ('numba', 'sklearn', 'scipy') if name in sys.modules], dir(bayescase))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("[] ")
    assert "BayesianCaseModel" in shown.stdout
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bayescase.nothing  # noqa: B018
