"""What is wrong with the data is noticed."""

import pytest
from sqlalchemy import delete, update

from bayescase.study.data import tables
from bayescase.study.data.database import opened
from bayescase.study.data.export_folder import export
from bayescase.study.data.store import open_store
from bayescase.study.data.verify import verify

from ..studies import DESIGN, change, run, tables_of


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
    assert len(tables_of(study).answers) == 48
