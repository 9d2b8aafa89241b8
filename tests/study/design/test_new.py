"""`study new`, `freeze` and `schedule` on the command line."""

import csv
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.design.design import Check
from bayescase.study.design.design_file import read_design, write_design
from bayescase.study.design.schedule import plan

from ..designs import small_design


def call(*args, code=0):
    result = CliRunner().invoke(main, ["study", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def saved(meals, tmp_path):
    meals.save(tmp_path / "meals.bcm")
    return tmp_path / "meals.bcm"


DONE = ("--contact", "Ann, ann@example.org", "--reviewed-by", "board 1")


def test_new_freeze_and_schedule(saved, tmp_path):
    folder = tmp_path / "study"
    made = call("new", saved, "-o", folder, "--arms", "bcm, subspace", "--noun", "dish", "--paper-mode")
    design = read_design(folder)
    assert design.mode == "paper"
    assert "SHA-256" in design.made["model_file"]
    assert "FILL IN" in made.stderr
    assert "filled in" in call("freeze", folder, code=1).stderr
    call("new", saved, "-o", folder, "--replace", "--arms", "bcm, subspace", "--noun", "dish", "--paper-mode", *DONE)
    design = read_design(folder)
    assert "items:" in made.stdout
    assert "not frozen" in call("schedule", folder).stderr
    assert call("freeze", folder).stdout == f"Frozen: {design.hash}\n"
    shown = call("schedule", folder, "--people", 6)
    assert "not frozen" not in shown.stderr
    lines = shown.stdout.splitlines()
    for slot in range(6):
        found = plan(design, slot)
        assert lines[1 + slot].split(maxsplit=1)[0] == str(slot)
        assert str(found.cell) in lines[1 + slot]
        assert lines[1 + slot].endswith(" ".join(trial.item for trial in found.trials))
    assert lines[-2:] == ["bcm (A) then subspace (B): 3", "subspace (B) then bcm (A): 3"]


def test_schedules_in_files(tmp_path):
    write_design(small_design(), tmp_path / "s")
    whole = json.loads(call("schedule", tmp_path / "s", "--people", 3, "--json").stdout)
    assert [person["slot"] for person in whole["people"]] == [0, 1, 2]
    assert whole["design"] == small_design().hash
    assert whole["frozen"] is False
    call("schedule", tmp_path / "s", "--people", 3, "-o", tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text("utf-8")) == whole
    call("schedule", tmp_path / "s", "--people", 3, "-o", tmp_path / "s.csv")
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 48
    trial = plan(small_design(), 1).trials[0]
    assert rows[16]["item"] == trial.item
    assert rows[16]["options"] == " ".join(map(str, trial.options))


def test_edits_are_not_lost_by_accident(saved, tmp_path):
    folder = tmp_path / "study"
    wishes = (saved, "-o", folder, "--arms", "bcm,subspace", *DONE)
    call("new", *wishes)
    edited = replace(read_design(folder), title="Mine")
    write_design(edited, folder)
    assert "--replace" in call("new", *wishes, code=1).stderr
    assert read_design(folder).title == "Mine"
    call("new", *wishes, "--replace")
    assert read_design(folder).title != "Mine"
    call("freeze", folder)
    assert "is frozen" in call("new", *wishes, "--replace", code=1).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("new", "nothing.bcm"), "No such file"),
        (("new", "MODEL", "--arms", "bcm"), "--arms must be"),
        (("new", "MODEL", "--image", 2, 2), "--image 2 2 has 4 pixels"),
        (("new", "MODEL", "--lda", "nothing.csv"), "No such file"),
        (("new", "MODEL", "--options", 9), "--options must be from 4 to 6"),
        (("new", "MODEL", "--arms", "bcm,subspace", "--coders", "nothing.csv"), "No such file"),
        (("new", "MODEL", "-o", "MODEL"), "is a file; give a folder"),
        (("new",), "Give either a MODEL, or both --items and --explanations"),
        (("new", "MODEL", "--items", "x.csv", "--explanations", "x"), "Give either a MODEL"),
        (("new", "--items", "x.csv"), "Give either a MODEL"),
        (("new", "MODEL", "--task", "rate"), "--task rate is for your own items"),
        (("new", "--items", "nothing.csv", "--explanations", "x"), "No such file"),
        (("new", "--items", "x.csv", "--explanations", "x", "--arms", "bcm,lda"), "--arms is about a MODEL"),
        (("new", "--items", "x.csv", "--explanations", "x", "--image", 2, 2), "--image is about a MODEL"),
        (("freeze", "nowhere"), "There is no design.json"),
        (("schedule", "nowhere"), "There is no design.json"),
    ],
)
def test_wrong_input_is_one_sentence(saved, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    error = call(*(saved if arg == "MODEL" else arg for arg in args), code=1).stderr
    assert error.startswith("Error: ")
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "study").exists()


def test_a_design_made_by_the_command_can_be_extended_by_hand(saved, tmp_path):
    folder = tmp_path / "study"
    call("new", saved, "-o", folder, "--arms", "bcm,subspace")
    value = json.loads((folder / "design.json").read_text("utf-8"))
    value["checks"].append({"id": "mine", "text": "Two?", "options": ["one", "two"], "correct": 1, "after": 2})
    (folder / "design.json").write_text(json.dumps(value), "utf-8")
    assert Check("mine", "Two?", ("one", "two"), 1, 2) in read_design(folder).checks
