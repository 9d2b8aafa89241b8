"""What leaves the database: all of it, explained, anonymous unless asked."""

import hashlib
import json
import os
import re
import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import insert

from bayescase.study.data import export_folder, tables
from bayescase.study.data.database import opened, reading
from bayescase.study.data.export import ExportError, collect
from bayescase.study.data.export_folder import as_csv, cell, export, read_export, uncell
from bayescase.study.design.design_file import write_design

from ..designs import small_design
from ..made_data import START, answer, event, plan, public_id, respond
from ..studies import DESIGN, EVIL, change, rows_in, run, tables_of


def test_every_answer_is_a_row_and_every_column_is_explained(made, tmp_path):
    done = run("export", made, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    folder = tmp_path / "out"
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    assert manifest["committed_answers"] == manifest["files"]["answers.csv"]["rows"] == 64
    names = {path.name for path in folder.iterdir()}
    assert names == {*manifest["files"], "manifest.json"}
    for name, entry in manifest["files"].items():
        assert entry["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    book = json.loads((folder / "codebook.json").read_text("utf-8"))
    words = (folder / "codebook.md").read_text("utf-8")
    for name, columns in book.items():
        found = rows_in(folder / name)
        assert list(found[0]) == [column["name"] for column in columns]
        assert len(found) == manifest["files"][name]["rows"]
        assert all(column["meaning"] and f"`{column['name']}`" in words for column in columns)
    for likert in (*DESIGN.questionnaire, *DESIGN.block_ratings):
        assert likert.text in words
    assert "analysis.R" in names
    assert not list(tmp_path.glob(".out*"))


def test_rows_say_what_was_stored(made):
    found = tables_of(made)
    assert [person["participant"] for person in found.people] == sorted(public_id(slot) for slot in range(4))
    row = next(row for row in found.answers if row["slot"] == 1 and row["trial"] == 5)
    trial = plan(DESIGN, 1).trials[5]
    assert (row["item"], row["condition"], row["block"]) == (trial.item, trial.condition, trial.block)
    assert row["options"] == " ".join(map(str, trial.options))
    assert row["correct"] == (row["choice"] == row["right_choice"])
    assert row["browser_seconds"] == pytest.approx(row["seconds"] - 0.06)
    person = next(person for person in found.people if person["slot"] == 2)
    assert (person["checks_failed"], person["answers"], person["status"], person["about_age"]) == (1, 16, "complete", 32)
    assert person["right_answers"] == sum(row["correct"] for row in found.answers if row["slot"] == 2)
    order = plan(DESIGN, 2).cell.order
    assert all(person[f"rating_clear_{condition}"] in range(5) for condition in order)
    assert row["explanation"] == DESIGN.explanation_behind(DESIGN.item(trial.item))
    assert person["total_seconds"] > sum(row["seconds"] for row in found.answers if row["slot"] == 2)


def test_anonymised_by_default(made, tmp_path):
    for identified in (False, True):
        folder = tmp_path / str(identified)
        with opened(made) as engine:
            export(engine, DESIGN, folder, identified)
        everything = "".join(path.read_text("utf-8") for path in folder.glob("*.csv")) + (folder / "data.json").read_text(
            "utf-8"
        )
        hashes = re.findall("[0-9a-f]{64}", everything)
        clocks = re.findall(r"\d\d:\d\d:\d\d", everything)
        assert bool(hashes) == bool(clocks) == identified
        assert str(START)[:9] not in everything
        assert "token" not in everything


def test_formulas_are_disarmed_and_come_back():
    for text in (EVIL, "+1", "-1", "@x", "'", "'=1", "''", "＝1", '"=1'):
        assert "'" in cell(text)
        assert uncell(cell(text)) == text
    for text in ("a=1", "", "x'", "a; b, c", "1-2"):
        assert cell(text) == uncell(cell(text)) == text
    assert [cell(value) for value in (-1, -0.5, None, True, 7)] == ["-1", "-0.5", "", "true", "7"]


@pytest.mark.parametrize("separator", [";", ",", "\t", "|", "\n"])
@pytest.mark.parametrize("text", ["a{}=1+1", "a{} =1+1", 'a{}"=1+1', "a{}+1{}-1", "{}@x", "a{}'=1", "a{}＝1"])
def test_no_cell_begins_a_formula_whatever_a_spreadsheet_takes_for_a_separator(separator, text):
    given = text.replace("{}", separator)
    assert uncell(cell(given)) == given
    line = as_csv([{"first": "x", "free": given, "last": "y"}], ["first", "free", "last"]).decode().split("\r\n", 1)[1]
    for part in re.split(f"[{separator}]", line):
        assert not re.match(r"[\s\"]*[=+\-@＝＋－＠]", part), part


def test_every_cell_is_in_quotes():
    content = as_csv([{"a": "x;y", "b": 1.5, "c": None}], ["a", "b", "c"]).decode()
    assert content == '"a","b","c"\r\n"x;y","1.5",""\r\n'


@settings(max_examples=300)
@given(st.text(alphabet=st.sampled_from(list("a=+-@';,|\t\r\n \"“＝x"))))
def test_any_text_comes_back_from_a_cell(text):
    assert uncell(cell(text)) == text


def test_formulas_of_participants_reach_the_file_disarmed(made, tmp_path):
    with opened(made) as engine:
        export(engine, DESIGN, tmp_path / "out")
    for person in rows_in(tmp_path / "out" / "people.csv"):
        assert person["about_cooking"] == "'=1+1"
    assert read_export(tmp_path / "out")[1].people[0]["about_cooking"] == "=1+1"


def test_a_folder_with_something_in_it_is_refused(made, tmp_path):
    (tmp_path / "kept").write_text("x")
    done = run("export", made, "-o", tmp_path)
    assert done.exit_code == 1
    assert "not empty" in done.output
    assert (tmp_path / "kept").read_text() == "x"
    assert "There is no folder" in run("export", made, "-o", tmp_path / "a" / "b").output
    (tmp_path / "empty").mkdir()
    assert run("export", made, "-o", tmp_path / "empty").exit_code == 0


def test_a_failure_leaves_nothing_behind(made, tmp_path, monkeypatch):
    monkeypatch.setattr(export_folder, "in_markdown", lambda *_: 1 / 0)
    with opened(made) as engine, pytest.raises(ZeroDivisionError):
        export(engine, DESIGN, tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with opened(made) as engine, pytest.raises((ExportError, OSError), match="No space left"):
        export(engine, DESIGN, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_block_begun_again_supersedes_its_answers(study):
    """Person 1 answered three questions of the first block, went away, and has answered one again."""
    first = plan(DESIGN, 4)
    steps = [step.kind for step in first.steps]
    at = START + 10**8
    values = {
        "id": 9, "public_id": "f" * 32, "token_hash": "f" * 64, "receipt_number": 0, "other_hashes": {}, "phase": "live",
        "simulated": False, "slot": 4, "first_slot": 4,
        "status": "active", "step": steps.index("trial") + 1, "round": 1, "consented_at": at, "last_seen_at": at, "step_at": at,
    }  # fmt: skip
    with opened(study) as engine, engine.begin() as connection:
        connection.execute(insert(tables.participants).values(values))
        for trial in first.trials[:3]:
            answer(connection, 9, trial, trial.options[0], False, at, 900)
        answer(connection, 9, first.trials[0], first.trials[0].options[1], False, at + 9000, 900, round=1)
        respond(connection, 9, "check", "check-1", {"choice": 0, "correct": False}, at)
        respond(connection, 9, "check", "check-1", {"choice": 1, "correct": True}, at + 1, round=1)
    found = tables_of(study)
    mine = [(row["trial"], row["round"], row["superseded"]) for row in found.answers if row["participant"] == "f" * 32]
    assert mine == [(0, 0, True), (0, 1, False), (1, 0, True), (2, 0, True)]
    person = next(row for row in found.people if row["participant"] == "f" * 32)
    assert (person["answers"], person["superseded_answers"], person["checks_failed"]) == (1, 3, 0)
    assert len(found.answers) == 68


def test_the_export_is_of_one_moment(study):
    """An answer that is committed while the export reads is in the next one."""
    with opened(study) as engine, reading(engine) as connection:
        connection.execute(tables.studies.select()).all()
        other = sqlite3.connect(study / "study.db", timeout=0)
        try:
            other.execute("INSERT INTO events (at, kind, detail) VALUES (1, 'x', '{}')")
            other.commit()
        except sqlite3.OperationalError:  # without a write-ahead log the reader keeps writers waiting
            pass
        finally:
            other.close()
        assert all(row["kind"] != "x" for row in collect(connection, DESIGN).events)


def test_lost_people_and_other_designs_are_noticed(study):
    change(study, insert(tables.answers).values(**orphan()))
    with pytest.raises(ExportError, match="65 answers, but 64 belong"):
        tables_of(study)
    with opened(study) as engine, reading(engine) as connection, pytest.raises(ExportError, match="another design"):
        collect(connection, small_design(seed=2))


def orphan():
    trial = plan(DESIGN, 0).trials[0]
    return {
        "participant_id": 77, "round": 0, "trial": 0, "block": 0, "condition": trial.condition, "item": trial.item,
        "options": list(trial.options), "choice": 0, "correct": False, "ratings": {}, "sent_at": 1, "received_at": 2,
        "timing_differs": False,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["answers.csv", "data.json", "design.json", "manifest.json"])
@pytest.mark.parametrize("how", ["changed", "gone", "torn"])
def test_a_spoilt_export_is_not_read(made, tmp_path, name, how):
    folder = tmp_path / "out"
    with opened(made) as engine:
        export(engine, DESIGN, folder)
    path = folder / name
    if how == "gone":
        path.unlink()
    else:
        whole = path.read_bytes()
        path.write_bytes(
            whole[: len(whole) // 2]
            if how == "torn"
            else whole.replace(b"bcm", b"bcn").replace(b'"sha256": "', b'"sha256": "0')
        )
    with pytest.raises(ExportError) as error:
        read_export(folder)
    assert name in str(error.value) or name == "manifest.json"


def test_commands_say_that_there_are_no_data(tmp_path):
    write_design(DESIGN, tmp_path / "a")
    for command in (("export", tmp_path / "a", "-o", tmp_path / "b"), ("analyse", tmp_path / "a"), ("verify", tmp_path / "a")):
        done = run(*command)
        assert done.exit_code == 1
        assert "There are no data" in done.output
    assert "There is no design.json" in run("analyse", tmp_path).output
    assert not (tmp_path / "b").exists()


def test_events_of_nobody_have_a_day_only(study):
    with opened(study) as engine, engine.begin() as connection:
        event(connection, None, START, "declined", {"phase": "live"})
    (row,) = [row for row in tables_of(study).events if row["participant"] is None]
    assert row == {"participant": None, "kind": "declined", "day": "2026-09-21", "seconds": None, "detail": '{"phase": "live"}'}


def test_numbers_survive_the_csv(made, tmp_path):
    with opened(made) as engine:
        export(engine, DESIGN, tmp_path / "out")
    written = [float(row["seconds"]) for row in rows_in(tmp_path / "out" / "answers.csv")]
    assert np.array_equal(written, [row["seconds"] for row in tables_of(made).answers])
