"""`study analyse` on a study and on an export."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bayescase.study.analysis.analyse import analyse
from bayescase.study.analysis.r_script import r_script
from bayescase.study.data.database import opened
from bayescase.study.data.export_folder import as_csv, export, read_export
from bayescase.study.data.verify import verify
from bayescase.study.design.design_file import write_design
from bayescase.study.planted import Truth, World, rows
from bayescase.study.simulate import rehearse

from ..designs import between, predicting, rating_design, small_design, three_conditions
from ..studies import DESIGN, run


def test_an_export_and_its_database_are_analysed_alike(made, tmp_path):
    with opened(made) as engine:
        export(engine, DESIGN, tmp_path / "out")
    here, there = run("analyse", made, "--json"), run("analyse", tmp_path / "out", "--json")
    assert here.exit_code == there.exit_code == 0
    assert json.loads(here.stdout) == json.loads(there.stdout)
    found = json.loads(here.stdout)
    assert (found["everyone"]["people"], found["flagged"], found["attentive"]["people"]) == (4, 1, 3)
    design, read = read_export(tmp_path / "out")
    assert analyse(design, read.answers, read.people).everyone.answers == 64


def test_analyse_writes_a_page_and_numbers(made, tmp_path):
    done = run("analyse", made, "-o", tmp_path / "deep" / "out", "--times", "browser")
    assert done.exit_code == 0, done.output
    assert "The difference, BCM less LDA" in done.stdout
    assert {path.name for path in (tmp_path / "deep" / "out").iterdir()} == {"analysis.html", "results.json"}
    assert json.loads((tmp_path / "deep" / "out" / "results.json").read_text("utf-8"))["times"] == "browser"
    assert "no answers to analyse" in run("analyse", made, "--phase", "pilot").stdout


def test_simulated_people_go_through_the_pages_to_the_analysis(tmp_path):
    write_design(DESIGN, tmp_path / "study")
    done = rehearse(tmp_path / "study", n=8, truth=Truth({"bcm": 0.95, "lda": 0.4}), at_once=4)
    folder = Path(done.folder)
    assert (done.complete, done.errors) == (8, ())
    assert verify(folder) == []
    assert run("export", folder, "-o", tmp_path / "out").exit_code == 0
    assert verify(folder, export=tmp_path / "out") == []
    shown = run("analyse", tmp_path / "out", "--phase", "pilot", "--simulated", "--json")
    found = json.loads(shown.stdout)["everyone"]
    assert (found["people"], found["answers"]) == (8, 128)
    assert found["comparisons"][0]["difference"]["low"] > 0
    assert found["odds"][0]["ratio"]["value"] > 2
    assert json.loads(run("analyse", tmp_path / "out", "--json").stdout)["everyone"]["people"] == 0


MAKES = [pytest.param(make, marks=pytest.mark.slow) for make in (small_design, three_conditions, between, predicting)]


@pytest.mark.parametrize("make", [*MAKES, rating_design])
def test_the_script_for_r_runs_on_an_export(tmp_path, make):
    """With lme4, where R is there; and it finds what was planted."""
    if shutil.which("Rscript") is None or subprocess.run(["Rscript", "-e", "library(lme4)"], capture_output=True).returncode:
        pytest.skip("needs R with lme4: apt-get install r-cran-lme4")
    design = make()
    answers, who = rows(design, 16, World(design, Truth({"bcm": 0.95, "lda": 0.5}, rating={"bcm": 0.9, "lda": 0.3})))
    for name, table in (("answers", answers), ("people", who)):
        columns = list(dict.fromkeys(key for row in table for key in row))
        (tmp_path / f"{name}.csv").write_bytes(as_csv(table, columns))
    (tmp_path / "analysis.R").write_text(r_script(design), "utf-8")
    done = subprocess.run(["Rscript", "analysis.R"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"16 people, {len(answers)} answers" in done.stdout
    effects = re.findall(r"^c1 +(-?[\d.]+)", done.stdout, re.M)  # of right answers, of time; or of time, of the rating
    assert float(effects[-1 if make is rating_design else 0]) > 0.3
    assert "(0 + c1" in done.stdout  # slopes by explanation were fitted
