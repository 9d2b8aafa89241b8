"""A new researcher copies the commands of the pages, from a fitted model or from files to an analysed study."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bayescase.cli.main import main

for name in ("starlette", "sqlalchemy", "tomotopy", "matplotlib"):
    pytest.importorskip(name, reason="pip install 'bayescase[study]'")

DOCS = Path(__file__).parents[2] / "docs"
ELSEWHERE = ("pip install", "bayescase study serve")  # what needs a network, and what runs until Ctrl-C


def copied(page, folder, fewer=()):
    """What the commands of a page print, run from top to bottom in an empty folder; with (many, fewer) to simulate."""
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.S)
    lines = [line for block in blocks for line in block.splitlines(keepends=True)]
    script = "".join(line for line in lines if not line.startswith(ELSEWHERE))
    script = script.replace("bayescase study doctor study\n", "bayescase study doctor study || test $? = 1\n")  # not frozen
    for many, few in fewer:
        assert many in script
        script = script.replace(many, few)
    settings = os.environ | {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(["bash", "-e"], input=script, cwd=folder, env=settings, capture_output=True, text=True, timeout=850)
    assert done.returncode == 0, done.stderr
    return done.stdout


def results(folder):
    assert (folder / "analysis.html").stat().st_size > 10_000
    return json.loads((folder / "results.json").read_text("utf-8"))


def test_the_commands_of_the_guide_lead_to_results(tmp_path):
    printed = copied("study.md", tmp_path, [("--n 24 ", "--n 8 "), ("--studies 20 ", "--studies 5 ")])
    assert "8 people: 8 complete" in printed
    assert "Database, journal and schedule agree." in printed
    assert "80 % power, explanations of this kind, effect 0.2" in printed
    assert (tmp_path / "power/power.png").exists()
    assert "## Hypotheses" in (tmp_path / "preregistration.md").read_text("utf-8")
    assert results(tmp_path / "rehearsal")["everyone"]["people"] == 8
    assert (tmp_path / "data/answers.csv").read_text("utf-8").count("\n") == 1 + 8 * 16
    assert results(tmp_path / "results")["everyone"] == results(tmp_path / "rehearsal")["everyone"]


def test_explanations_made_elsewhere_become_a_study_by_copied_commands(tmp_path):
    assert "12 people: 12 complete" in copied("study-own.md", tmp_path)
    found = results(tmp_path / "mail-results")
    assert found["labels"] == {"examples": "Examples", "rules": "Rules"}
    assert found["everyone"]["answers"] == 12 * 6


@pytest.mark.slow
def test_the_studies_of_the_gallery_run_from_new_to_the_report_by_copied_commands(tmp_path):
    printed = copied("study-gallery.md", tmp_path)
    assert printed.count("24 people: 24 complete") == 2
    assert "30 people: 30 complete" in printed
    for name, task, layout in (
        ("paper", "classify", "within"),
        ("attributions", "predict", "within"),
        ("styles", "rate", "between"),
    ):
        found = results(tmp_path / f"{name}-report")
        assert (found["task"], found["layout"]) == (task, layout)
        assert "## Analysis" in (tmp_path / f"{name}-preregistration.md").read_text("utf-8")
    assert len(found["labels"]) == 3


def test_every_command_on_the_pages_and_in_the_recipes_exists():
    """Also those that cannot be run here: servers, proxies, other machines."""
    known = main.commands["study"].commands
    texts = [path.read_text("utf-8") for path in (*DOCS.glob("study*.md"), *(DOCS / "hosting").iterdir())]
    found = 0
    for text in texts:
        for name, rest in re.findall(r"bayescase study ([a-z]+)((?:[^\n`]|\\\n)*)", text):
            options = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", re.sub(r'"[^"]*"|#.*', "", rest)))
            assert options <= {option for param in known[name].params for option in param.opts}, (name, options)
            found += 1
    assert found > 50
