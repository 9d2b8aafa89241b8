"""How every command behaves: help, exit codes, notes, pipes, completion."""

import json
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bayescase
from bayescase.cli.main import main

from .calling import COMMAND, SHORT, call, refused, run


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


def test_no_kernel_is_compiled_twice_for_a_constant():
    """A literal 0 has a type of its own, and the first fit would wait for a second copy of the function."""
    code = """
        import sys
        from numba import types
        from numba.core.dispatcher import Dispatcher
        from bayescase import BayesianCaseModel
        BayesianCaseModel(2, n_iter=4, n_chains=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        for name in [name for name in sys.modules if name.startswith("bayescase")]:
            for kernel in vars(sys.modules[name]).values():
                if isinstance(kernel, Dispatcher):
                    plain = {tuple(types.unliteral(kind) for kind in signature) for signature in kernel.signatures}
                    print(kernel.__name__, len(kernel.signatures) - len(plain))
    """
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    twice = dict(line.split() for line in shown.stdout.splitlines())
    assert twice["update_z"] == "0"
    assert [name for name, more in twice.items() if more != "0"] == []


def test_files_that_are_not_there_or_not_what_they_should_be(folder, tmp_path):
    data, model = folder / "data.csv", folder / "model.bcm"
    assert refused("fit", tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: No such file or directory."
    assert refused("explain", tmp_path / "none.bcm") == f"{tmp_path / 'none.bcm'}: No such file or directory."
    assert refused("fit", tmp_path) == f"{tmp_path}: Is a directory."
    assert "model.bcm is a bayescase model or checkpoint, not data" in refused("fit", model)
    assert refused("explain", data) == f"{str(data)!r} is not a whole bayescase file (it does not begin like one)."
    (tmp_path / "half.bcm").write_bytes(model.read_bytes()[:-900])
    for command in (["explain"], ["info"], ["predict"]):
        more = [data] if command == ["predict"] else []
        assert "is not a whole bayescase" in refused(*command, tmp_path / "half.bcm", *more)
    (tmp_path / "other.csv").write_text("f1,f2\nv1,v1\n")
    assert "The data has no columns 'f3', 'f4', 'f5'." in refused("predict", model, tmp_path / "other.csv")


def test_warnings_are_notes(table):
    data = table("a,b\n" + "".join(f"{i % 3},one\n" for i in range(9)) + "?,one\n")
    lines = call("fit", data, "-k", 2, *SHORT).stderr.splitlines()
    assert lines[0] == "Note: Column 'a' has the value '?'; if it means missing, say so with --missing '?'."
    assert lines[1] == "Note: Feature 'b' has one value only and cannot tell cases apart."
    assert len(lines) == 3


def test_ctrl_c_while_reading(folder, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayescase.reading.files.read_file", interrupted)
    result = call("fit", folder / "data.csv", "-o", tmp_path / "m", code=130)
    assert result.stderr == "Stopped; nothing was written.\n"
    assert os.listdir(tmp_path) == []


def test_a_pipe_from_end_to_end(tmp_path):
    drawn = run("simulate", "-n", "30", "-p", "4", "-k", "2")
    assert drawn.returncode == 0
    fitting = [
        COMMAND,
        "fit",
        "-",
        "-k",
        "2",
        "--id",
        "case",
        "--label",
        "cluster",
        *SHORT,
        "--json",
        "-o",
        str(tmp_path / "m"),
    ]
    fitted = subprocess.run(fitting, input=drawn.stdout, capture_output=True, text=True, timeout=300)
    assert fitted.returncode == 0, fitted.stderr
    assert len(json.loads(fitted.stdout)["labels"]) == 30
    assert run("explain", str(tmp_path / "m")).stdout.startswith("30 cases")


def test_pandas_and_its_kin_are_not_needed(table):
    data = table("a,b\n" + "x,1\ny,2\n" * 4)
    code = "import sys; sys.modules.update(pandas=None, polars=None, pyarrow=None); from bayescase.cli.main import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", code, "fit", data, "-k", "2", *SHORT], capture_output=True, text=True, timeout=300
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("8 cases, 2 features, 2 clusters")


def test_a_reader_that_has_seen_enough():
    lines = subprocess.run(
        f"'{COMMAND}' simulate -n 20000 | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=300,
        executable="/bin/bash",
    )
    assert lines.stdout.startswith("case,cluster,f1")
    assert "Traceback" not in lines.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    settings = {"capture_output": True, "text": True, "timeout": 300}
    words = {"COMP_WORDS": "bayescase si", "COMP_CWORD": "1" if shell != "fish" else "si"}
    shown = subprocess.run([COMMAND], env=os.environ | words | {"_BAYESCASE_COMPLETE": f"{shell}_complete"}, **settings)
    assert "simulate" in shown.stdout
    assert "select" not in shown.stdout


def test_the_reference_is_fresh():
    """docs/cli.md has what `scripts/docs` would write."""
    root = Path(__file__).parents[2]
    text = (root / "docs/cli.md").read_text("utf-8")
    assert runpy.run_path(str(root / "scripts/docs"))["with_reference"](text) == text
    for name in main.commands:
        assert f"### `bayescase {name}" in text
