"""A new researcher copies the commands of docs/study.md, from a fitted model to an analysed study."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("starlette", "sqlalchemy", "tomotopy", "matplotlib"):
    pytest.importorskip(name, reason="pip install 'bayescase[study]'")

GUIDE = Path(__file__).parents[2] / "docs/study.md"
ELSEWHERE = ("pip install", "bayescase study serve")  # what needs a network, and what runs until Ctrl-C


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text("utf-8"), re.S)
    lines = [line for block in blocks for line in block.splitlines(keepends=True)]
    return "".join(line for line in lines if not line.startswith(ELSEWHERE))


def test_the_commands_of_the_guide_lead_to_results(tmp_path):
    settings = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }
    script = commands().replace("bayescase study doctor study\n", "bayescase study doctor study || test $? = 1\n")  # not frozen
    done = subprocess.run(["bash", "-e"], input=script, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "24 people: 24 complete" in done.stdout
    assert "Database, journal and schedule agree." in done.stdout
    found = json.loads((tmp_path / "rehearsal/results.json").read_text("utf-8"))
    assert found["everyone"]["people"] == 24
    assert (tmp_path / "rehearsal/analysis.html").exists()
    assert (tmp_path / "data/answers.csv").read_text("utf-8").count("\n") == 1 + 24 * 16
    assert (tmp_path / "results/analysis.html").exists()
