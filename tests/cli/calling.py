"""The command line called from tests: in a process of its own, or within this one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from bayescase.cli.main import main

COMMAND = shutil.which("bayescase", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
SHORT = ("--iterations", "12", "--chains", "1", "--jobs", "1")


def run(*args, command=None):
    settings = {"capture_output": True, "text": True, "timeout": 300, "stdin": subprocess.DEVNULL}
    return subprocess.run([*(command or [COMMAND]), *args], **settings, env=os.environ | {"COLUMNS": "120"})


def call(*args, code=0, **settings):
    """Run a command; whatever happens there is no traceback."""
    result = CliRunner().invoke(main, [str(arg) for arg in args], **settings)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args, code=1, **settings):
    """The one sentence that a command refuses with."""
    result = call(*args, code=code, **settings)
    assert result.stdout == ""
    *before, last = result.stderr.strip().splitlines()
    assert last.startswith("Error: ")
    assert all(line.startswith("Note: ") for line in before) or code == 2
    return last.removeprefix("Error: ")
