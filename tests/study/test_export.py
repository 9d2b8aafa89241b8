"""What leaves the database: all of it, explained, anonymous unless asked; and what checks it."""

import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import delete, insert, update

from bayescase.cli.main import main
from bayescase.study import export as exports
from bayescase.study import tables
from bayescase.study.analysis import analyse
from bayescase.study.design import PLACEHOLDER, Likert, freeze, write_design
from bayescase.study.doctor import OK, PROBLEM, WARNING, examine
from bayescase.study.export import ExportError, cell, collect, export, opened, read_export, reading, uncell
from bayescase.study.security import KEY, Admin
from bayescase.study.simulate import Rates, simulate
from bayescase.study.store import open_store
from bayescase.study.verify import verify

from .data import START, answer, event, make_study, plan, public_id, respond
from .databases import postgresql
from .designs import AGREEMENT, small_design

DESIGN = small_design()
EVIL = '=HYPERLINK("http://x")'


def run(*arguments):
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A study of four people. Tests must not change it."""
    return make_study(tmp_path_factory.mktemp("study") / "a", DESIGN, 4, inattentive=(2,))


@pytest.fixture
def study(made, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(made, tmp_path / "study")


def change(folder, *statements):
    """As somebody would who gets at the database past the server, where triggers keep what is stored."""
    with opened(folder) as engine, engine.begin() as connection:
        found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars().all()
        for name in found:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
    with opened(folder) as engine, engine.connect() as connection:
        connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=OFF").close()
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def of(folder, identified=False):
    with opened(folder) as engine, reading(engine) as connection:
        return collect(connection, DESIGN, identified)


def rows_in(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- export ---------------------------------------------------------------------------------------------------------------


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
    for likert in DESIGN.questionnaire:
        assert likert.text in words
    assert not list(tmp_path.glob(".out*"))


def test_rows_say_what_was_stored(made):
    found = of(made)
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
    for text in (EVIL, "+1", "-1", "@x", "\tx", "\rx", "\nx", "'", "'=1", "''", "＝1"):
        assert cell(text)[0] == "'"
        assert uncell(cell(text)) == text
    for text in ("a=1", "", "x'"):
        assert cell(text) == uncell(cell(text)) == text
    assert [cell(value) for value in (-1, -0.5, None, True, 7)] == ["-1", "-0.5", "", "true", "7"]


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
    monkeypatch.setattr(exports, "in_markdown", lambda *_: 1 / 0)
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
        "id": 9, "public_id": "f" * 32, "token_hash": "f" * 64, "phase": "live", "simulated": False, "slot": 4, "first_slot": 4,
        "status": "active", "step": steps.index("trial") + 1, "round": 1, "consented_at": at, "last_seen_at": at, "step_at": at,
    }  # fmt: skip
    with opened(study) as engine, engine.begin() as connection:
        connection.execute(insert(tables.participants).values(values))
        for trial in first.trials[:3]:
            answer(connection, 9, trial, trial.options[0], False, at, 900)
        answer(connection, 9, first.trials[0], first.trials[0].options[1], False, at + 9000, 900, round=1)
        respond(connection, 9, "check", "check-1", {"choice": 0, "correct": False}, at)
        respond(connection, 9, "check", "check-1", {"choice": 1, "correct": True}, at + 1, round=1)
    found = of(study)
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
        of(study)
    with opened(study) as engine, reading(engine) as connection, pytest.raises(ExportError, match="another design"):
        collect(connection, small_design(seed=2))


def orphan():
    trial = plan(DESIGN, 0).trials[0]
    return {
        "participant_id": 77, "round": 0, "trial": 0, "block": 0, "condition": trial.condition, "item": trial.item,
        "options": list(trial.options), "choice": 0, "correct": False, "sent_at": 1, "received_at": 2, "timing_differs": False,
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


# --- analyse from the command line ----------------------------------------------------------------------------------------


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


# --- verify ---------------------------------------------------------------------------------------------------------------


def test_good_data_pass(made, tmp_path):
    with opened(made) as engine:
        export(engine, DESIGN, tmp_path / "out")
    assert verify(made, export=tmp_path / "out") == []
    done = run("verify", made, "--export", tmp_path / "out")
    assert (done.exit_code, done.stdout) == (0, "Database, journal and schedule agree.\n")


ONE = tables.answers.c.id == 7
ANSWER = update(tables.answers).where(ONE)
PERSON = update(tables.participants).where(tables.participants.c.id == 2)
SPOILT = {
    "not what the schedule asked": (ANSWER.values(item="a1", condition="x"), "the schedule says"),
    "the mark is wrong": (ANSWER.values(correct=~tables.answers.c.correct), "which it is not"),
    "not offered": (ANSWER.values(choice=99), "was not offered"),
    "options in another order": (ANSWER.values(options=[0, 1]), "has the options"),
    "times out of order": (ANSWER.values(received_at=1), "out of order"),
    "a lost answer": (delete(tables.answers).where(ONE), "are not there"),
    "another round": (ANSWER.values(round=3), "has not begun"),
    "another trial": (ANSWER.values(trial=99), "not in the schedule"),
    "an answer of nobody": (ANSWER.values(participant_id=77), "belongs to nobody"),
    "another status": (PERSON.values(status="gone"), "the status 'gone'"),
    "another slot": (PERSON.values(slot=9), "was scheduled for 1"),
    "another schedule": (PERSON.values(first_slot=9, slot=9), "the schedule says"),
    "beyond the end": (PERSON.values(step=999), "step 999"),
    "complete too soon": (PERSON.values(step=9), "is complete, but answered"),
    "withdrawn, not deleted": (PERSON.values(status="withdrawn", finished_at=None), "has withdrawn, but"),
    "another design": (update(tables.studies).values(design_hash="0" * 64), "another design"),
    "a strange form": (update(tables.responses).where(tables.responses.c.id == 3).values(ref="x"), "is not in the schedule"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_spoilt_data_are_noticed(study, name):
    statement, words = SPOILT[name]
    change(study, statement)
    found = verify(study)
    assert any(words in sentence for sentence in found), found
    assert all(sentence.endswith(".") for sentence in found)
    assert run("verify", study).exit_code == 1


def test_the_second_copy_is_compared(study):
    path = next((study / "journal").glob("*.jsonl"))
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:-1]), "utf-8")
    assert any("the journal does not" in sentence for sentence in verify(study))


def test_an_export_is_compared_with_the_database(study, tmp_path):
    with opened(study) as engine:
        export(engine, DESIGN, tmp_path / "out")
    change(study, update(tables.answers).where(ONE).values(sent_at=tables.answers.c.sent_at + 1))
    assert any("differ in answer" in sentence for sentence in verify(study, export=tmp_path / "out"))
    change(study, delete(tables.answers).where(ONE))
    assert any("which the database does not have" in sentence for sentence in verify(study, export=tmp_path / "out"))
    (tmp_path / "out" / "people.csv").write_text("x")
    assert any("people.csv" in sentence for sentence in verify(study, export=tmp_path / "out"))
    assert any("is not an export" in sentence for sentence in verify(study, export=tmp_path))


def test_people_who_withdrew_after_an_export_are_named(study, tmp_path):
    with opened(study) as engine:
        export(engine, DESIGN, tmp_path / "out")
    store = open_store(study)
    with store.engine.connect() as connection:
        person = connection.execute(tables.participants.select().where(tables.participants.c.id == 2)).one()
    store.withdraw(person)
    store.close()
    assert verify(study) == []
    (sentence,) = verify(study, export=tmp_path / "out")
    assert "withdrew later" in sentence
    assert len(of(study).answers) == 48


# --- doctor ---------------------------------------------------------------------------------------------------------------


def levels(folder, **how):
    return {(line.what, line.level): line.words for line in examine(folder, **how)}


def test_the_doctor_finds_a_good_study_ready(study):
    Admin(study).set("long enough")
    found = levels(study)
    assert not [line for line in found if line[1] == PROBLEM], found
    assert run("doctor", study).exit_code == 0
    for what in ("design", "texts", "codes", "items", "disk", "journal", "password", "SQLite", "database", "export", "verify"):
        assert (what, OK) in found
    assert ("ratings", WARNING) in found


def test_the_doctor_names_what_is_missing(tmp_path):
    rules, texts = DESIGN.rules, DESIGN.texts
    flagged = (replace(DESIGN.items[0], flags=("coders differ",)), *DESIGN.items[1:])
    design = small_design(
        mode="paper",
        checks=(),
        items=flagged,
        texts=replace(texts, contact=f"{PLACEHOLDER}: name]"),
        rules=replace(rules, complete=replace(rules.complete, code="")),
        questionnaire=(Likert("a_first", "A", AGREEMENT), Likert("a_second", "B", AGREEMENT)),
    )
    write_design(design, tmp_path)
    found = levels(tmp_path)
    assert "contact" in found["texts", PROBLEM]
    assert "complete" in found["codes", PROBLEM]
    assert "freeze" in found["design", PROBLEM]
    assert "a1" in found["items", WARNING]
    assert {
        ("coders", WARNING),
        ("cells", WARNING),
        ("attention", WARNING),
        ("password", WARNING),
        ("data", WARNING),
    } <= found.keys()
    assert ("ratings", WARNING) not in found
    done = run("doctor", tmp_path)
    assert done.exit_code == 1
    assert "problem  texts: Something is to be filled in in contact" in done.stdout
    assert json.loads(run("doctor", tmp_path, "--json").stdout)[0]["level"] == PROBLEM


def test_the_doctor_sees_clocks_keys_and_damage(study):
    assert ("clock", PROBLEM) in levels(study, now=START - 10**7)
    os.chmod(study / KEY, 0o644)
    assert "chmod 600" in levels(study)["key", PROBLEM]
    change(study, update(tables.answers).where(ONE).values(choice=99))
    assert "the journal differ in 'choice'" in levels(study)["verify", PROBLEM]
    (study / "study.db").write_bytes(b"nothing" * 1000)
    assert ("database", PROBLEM) in levels(study)
    assert "design.json" in levels(study / "nowhere")["design", PROBLEM]


def test_events_of_nobody_have_a_day_only(study):
    with opened(study) as engine, engine.begin() as connection:
        event(connection, None, START, "declined", {"phase": "live"})
    (row,) = [row for row in of(study).events if row["participant"] is None]
    assert row == {"participant": None, "kind": "declined", "day": "2026-09-21", "seconds": None, "detail": '{"phase": "live"}'}


def test_numbers_survive_the_csv(made, tmp_path):
    with opened(made) as engine:
        export(engine, DESIGN, tmp_path / "out")
    written = [float(row["seconds"]) for row in rows_in(tmp_path / "out" / "answers.csv")]
    assert np.array_equal(written, [row["seconds"] for row in of(made).answers])


def test_all_of_it_on_postgresql(tmp_path):
    pytest.importorskip("psycopg", reason="pip install 'bayescase[postgres]'")
    with postgresql() as new:
        url = new()
        folder = make_study(tmp_path / "study", DESIGN, 4, database=url, inattentive=(2,))
        assert run("export", folder, "-o", tmp_path / "out", "--database", url).exit_code == 0
        assert verify(folder, url, tmp_path / "out") == []
        found = levels(folder, database=url)
        assert ("database", OK) in found
        assert not [line for line in found if line[1] == PROBLEM], found
        with opened(folder, url) as engine, reading(engine) as connection:
            before = collect(connection, DESIGN)
            with engine.begin() as other:
                event(other, None, START, "declined", {})
            assert collect(connection, DESIGN) == before  # one moment, whatever is committed meanwhile
        assert read_export(tmp_path / "out")[1].answers == before.answers
    done = run("verify", folder, "--database", url)
    assert done.exit_code == 1
    assert "The database cannot be read" in done.output
