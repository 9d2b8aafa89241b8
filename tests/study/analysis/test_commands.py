"""`study analyse` on a study and on an export."""

import json

from bayescase.study.analysis.analyse import analyse
from bayescase.study.data.database import opened
from bayescase.study.data.export_folder import export, read_export
from bayescase.study.data.verify import verify
from bayescase.study.design.design_file import freeze, write_design
from bayescase.study.simulate import Rates, simulate

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
    assert "BCM against LDA" in done.stdout
    assert {path.name for path in (tmp_path / "deep" / "out").iterdir()} == {"analysis.html", "results.json"}
    assert json.loads((tmp_path / "deep" / "out" / "results.json").read_text("utf-8"))["times"] == "browser"
    assert "no answers to analyse" in run("analyse", made, "--phase", "pilot").stdout


def test_simulated_people_go_through_the_pages_to_the_analysis(tmp_path):
    write_design(DESIGN, tmp_path / "study")
    freeze(tmp_path / "study")
    rates = Rates({"bcm": 0.95, "lda": 0.4}, 0.0, 0.0, 0.0, 0)
    done = simulate(tmp_path / "study", n=8, rates=rates, at_once=4)
    assert (done.complete, done.errors) == (8, ())
    assert verify(tmp_path / "study") == []
    assert run("export", tmp_path / "study", "-o", tmp_path / "out").exit_code == 0
    assert verify(tmp_path / "study", export=tmp_path / "out") == []
    shown = run("analyse", tmp_path / "out", "--phase", "pilot", "--simulated", "--json")
    found = json.loads(shown.stdout)["everyone"]
    assert (found["people"], found["answers"]) == (8, 128)
    assert found["pairs"][0]["odds"]["ratio"]["low"] > 1
    assert json.loads(run("analyse", tmp_path / "out", "--json").stdout)["everyone"]["people"] == 0
