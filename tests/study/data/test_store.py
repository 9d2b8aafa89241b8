"""What is kept, and how: each promise has a test that fails when it is broken. On SQLite and on PostgreSQL."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("sqlalchemy", reason="pip install 'bayescase[study]'")

from sqlalchemy import delete, insert, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from bayescase.study.data import database, transactions
from bayescase.study.data import journal as journals
from bayescase.study.data.database import MINUTE, StoreError, connect, migrate
from bayescase.study.data.flow import Given, Timing, differs
from bayescase.study.data.journal import Journal, head_problems, heads, read_journal
from bayescase.study.data.monitor import AWAY
from bayescase.study.data.store import open_store
from bayescase.study.data.tables import answers, events, metadata, participants, responses
from bayescase.study.design.schedule import plan

from ..designs import small_design
from ..opened_stores import GIVEN, again, begin, differences, fresh, go, kinds, rows

# --- the schema and the settings ------------------------------------------------------------------------------------------


def test_the_migrations_end_at_the_tables(opened):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    store = opened()
    with store.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata) == []
    migrate(store.engine)  # again: nothing to do


def test_sqlite_is_set_to_keep_its_word(tmp_path):
    engine = connect(tmp_path)
    with engine.connect() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("synchronous", "foreign_keys", "journal_mode", "secure_delete")
        }
    engine.dispose()
    assert pragma == {"synchronous": 2, "foreign_keys": 1, "secure_delete": 1, "journal_mode": pragma["journal_mode"]}
    assert pragma["journal_mode"] == ("wal" if database.sqlite3.sqlite_version_info >= (3, 51, 3) else "truncate")


def test_an_answer_cannot_be_changed_nor_doubled_by_anybody(opened):
    store = opened()
    go(store, begin(store), until="break")
    first = rows(store)[0]
    for table in (answers, responses):
        with pytest.raises(DBAPIError, match="never changed"), store.engine.begin() as connection:
            connection.execute(update(table).values(round=7))
    with pytest.raises(IntegrityError), store.engine.begin() as connection:
        connection.execute(insert(answers).values(**(first._asdict() | {"id": 999})))
    assert rows(store)[0] == first


def test_wrong_folders_are_refused_in_one_sentence(opened, place):
    store = opened()
    begin(store)
    other, _ = place(small_design(title="Another"), "other")
    address = store.engine.url.render_as_string(hide_password=False)
    with pytest.raises(StoreError, match="belong to another design"):
        open_store(other, address)
    (store.folder / "secret.key").rename(store.folder / "key")
    with pytest.raises(StoreError, match="is not the one that the study began with"):
        again(store)
    (store.folder / "secret.key").write_text("short")
    with pytest.raises(ValueError, match="damaged"):
        again(store)
    (store.folder / "key").replace(store.folder / "secret.key")
    assert os.stat(store.folder / "secret.key").st_mode & 0o777 == 0o600
    (store.folder / "frozen.json").rename(store.folder / "elsewhere")
    with pytest.raises(StoreError, match="study freeze"):
        again(store)
    (store.folder / "elsewhere").replace(store.folder / "frozen.json")
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StoreError, match="newer bayescase"):
        again(store)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("mysql://x/y", "SQLite or PostgreSQL"),
        ("nonsense", "such as postgresql"),
        ("postgresql+psycopg://nobody@127.0.0.1:1/none", "cannot be opened"),
    ],
)
def test_wrong_databases_are_refused_in_one_sentence(frozen, address, words):
    with pytest.raises(StoreError, match=words) as caught:
        open_store(frozen(small_design()), address)
    assert "\n" not in str(caught.value)


# --- places ---------------------------------------------------------------------------------------------------------------


def test_people_take_the_lowest_free_slot_and_cells_stay_balanced(opened):
    store = opened()
    people = [begin(store, f"visit {i}") for i in range(8)]
    assert [person.slot for person in people] == list(range(8))
    seen = [plan(store.design, person.first_slot).cell for person in people]
    assert all(seen.count(cell) == 2 for cell in seen)
    store.withdraw(people[3])
    assert begin(store, "next").slot == 3
    assert begin(store, "and next").slot == 8


def test_pilot_and_live_are_counted_apart(opened):
    store = opened("live")
    begin(store)
    pilot = again(store, phase="pilot", simulated=True)
    person = begin(pilot, "pilot")
    pilot.close()
    assert (person.slot, person.phase, person.simulated) == (0, "pilot", True)


def test_the_same_form_is_the_same_place_and_ids_are_hashed(opened):
    store = opened()
    first = begin(store, "a", "ann")
    assert begin(store, "a", "ann").id == first.id
    assert begin(store, "c", "bob").id != first.id
    assert begin(store, "d").id != first.id
    stored = json.dumps([dict(row._mapping) for row in rows(store, participants)])
    assert "ann" not in stored
    assert begin(opened(unique_people=False), "a", "ann").external_hash is None


def test_many_at_once_get_different_slots(opened):
    store = opened()
    with ThreadPoolExecutor(16) as pool:
        tokens = list(pool.map(store.begin, [f"visit {i}" for i in range(16)]))
        twice = list(pool.map(store.begin, ["same"] * 8))
    assert sorted(store.find(token).slot for token in tokens) == list(range(16))
    assert len(set(twice)) == 1
    assert not differences(store)


def test_the_slot_of_a_silent_person_goes_to_the_next_and_theirs_is_kept_if_free(opened, clock):
    store = opened()
    first = go(store, begin(store, "first"), until="break")
    clock.now += 121 * MINUTE
    second = begin(store, "second")
    assert (second.slot, fresh(store, first).status, fresh(store, first).slot) == (0, "timed out", None)
    assert store.record(first) == "stale"
    assert store.resume(first) == "here"
    first = fresh(store, first)
    assert (first.status, first.slot, first.first_slot) == ("active", None, 0)  # somebody has it; the schedule stays
    assert go(store, first).status == "complete"
    third = go(store, begin(store, "third"), until="break")
    clock.now += 121 * MINUTE
    begin(store, "fourth")
    assert fresh(store, second).status == "timed out"
    store.withdraw(begin(store, "fifth"))
    assert [fresh(store, p).status for p in (second, third)] == ["timed out", "timed out"]
    assert store.resume(third) == "here"
    assert fresh(store, third).slot == 1
    assert not differences(store)


# --- promise 1 and 4: on disk, twice, before the next page ------------------------------------------------------------------


def traced(store, monkeypatch, broken=None):
    """What happens in the course of one change, in order."""
    store.begin("before")
    happened = []
    real_sync, real_write = os.fsync, journals.write_all
    if broken != "no fsync":
        monkeypatch.setattr(journals.os, "fsync", lambda file: (happened.append("synced"), real_sync(file))[1])
    else:
        monkeypatch.setattr(journals.os, "fsync", lambda file: None)
    monkeypatch.setattr(journals, "write_all", lambda *a: (happened.append("journalled"), real_write(*a))[1])
    from sqlalchemy import event

    event.listen(store.engine, "commit", lambda _: happened.append("committed"))
    if broken == "no journal":
        monkeypatch.setattr(Journal, "append", lambda *_: None)
    if broken == "journal first":
        append = Journal.append
        monkeypatch.setattr(
            transactions, "record_of", lambda *a: (append(store.journal, [journals.record_of(*a)]), journals.record_of(*a))[1]
        )
    store.begin("traced")
    happened.append("returned")
    return happened


def test_an_answer_is_committed_then_journalled_then_synced_then_shown(opened, monkeypatch):
    assert traced(opened(), monkeypatch) == ["committed", "journalled", "synced", "returned"]


@pytest.mark.parametrize("broken", ["no fsync", "no journal", "journal first"])
def test_the_order_is_really_tested(opened, monkeypatch, broken):
    assert traced(opened(), monkeypatch, broken) != ["committed", "journalled", "synced", "returned"]


def test_the_whole_flow_is_in_both_copies(opened):
    store = opened()
    person = go(store, begin(store))
    assert person.status == "complete"
    assert [row.trial for row in rows(store)] == list(range(16))
    mine = plan(store.design, person.first_slot)
    for row, trial in zip(rows(store), mine.trials, strict=True):
        assert (row.item, row.condition, row.block, tuple(row.options)) == (
            trial.item,
            trial.condition,
            trial.block,
            trial.options,
        )
        assert row.choice == trial.options[0]
        assert row.correct == (row.choice == store.design.item(row.item).correct)
        assert row.received_at - row.sent_at == 6000
    kept = [row.kind for row in rows(store, responses)]
    assert kept == ["demographics", "practice", "check", "ratings", "check", "ratings", "questionnaire"]
    assert kinds(store, person) == ["consent", "complete"]
    assert not differences(store)
    assert len(read_journal(store.folder)) == 1 + 16 + 7 + 2


def test_what_was_committed_but_not_journalled_is_journalled_at_the_next_start(opened, monkeypatch):
    store = opened()
    person = go(store, begin(store), until="check")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", lambda *_: None)  # as if killed in between
        assert store.record(person, "", GIVEN["check"]) == "kept"
    assert differences(store) == [
        f"The database has response round 0 kind check ref check-1 of {person.public_id}, the journal does not."
    ]
    again(store).close()
    assert not differences(store)
    assert [r["row"]["ref"] for r in read_journal(store.folder) if r["recovered"]] == ["check-1"]


def test_a_full_disk_stops_the_study_before_anything_is_kept_once_only(opened, monkeypatch):
    store = opened()
    person = go(store, begin(store), until="trial")

    def full(file, words):
        os.write(file, words[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(journals, "write_all", full)
        with pytest.raises(OSError, match="No space"):
            store.record(person, "", Given(0, {}))  # in the database, not in the journal: the next page is not shown
        with pytest.raises(OSError, match="No space"):
            store.record(fresh(store, person), "", Given(0, {}))  # now refused before
    assert len(rows(store)) == 1
    assert store.record(fresh(store, person), "", Given(0, {})) == "kept"
    assert len(rows(store)) == 2
    assert not differences(store)


def test_a_torn_line_is_no_damage(opened):
    store = opened()
    go(store, begin(store), until="break")
    with open(store.journal.path, "ab") as file:
        file.write(b'{"previous":"12')
    assert not differences(store)


def change_a_value(lines):
    return [line.replace(b'"choice":', b'"choice":1') if b'"trial":2,' in line else line for line in lines]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (change_a_value, "was changed"),
        (lambda lines: [line for line in lines if b'"trial":2,' not in line], "does not follow the line before it"),
        (lambda lines: lines[::-1], "does not follow"),
        (lambda lines: [*lines[:3], b"rubbish\n", *lines[3:]], "not a whole line"),
        (lambda lines: lines[:-1], "The database has answer round 0 trial 3"),
    ],
)
def test_harm_to_the_journal_is_found(frozen, clock, harm, words):
    store = open_store(frozen(small_design()), clock=clock)
    go(store, begin(store), until="break")
    assert not differences(store)
    path = store.journal.path
    path.write_bytes(b"".join(harm(path.read_bytes().splitlines(keepends=True))))
    assert any(words in difference for difference in differences(store))
    store.close()


# --- a journal that was written anew --------------------------------------------------------------------------------------


def rewrite(folder, change):
    """All files anew, with the chain right, as somebody could who has the folder."""
    for path in journals.files(folder):
        records = [json.loads(line)["record"] for line in path.read_text("utf-8").splitlines()]
        last, written = journals.START, []
        for record in change(records):
            text = json.dumps(record, separators=(",", ":"))
            digest = journals.hashed(text)
            before, last = last, journals.hashed(last + digest)
            written.append(f'{{"previous":"{before}","digest":"{digest}","hash":"{last}","record":{text}}}\n')
        path.write_text("".join(written), "utf-8")


def forged(records):
    for record in records:
        if record["table"] == "answers":
            record["row"] |= {"correct": True}
    return records


def test_a_journal_rewritten_with_the_database_is_noticed_by_a_head_that_was_kept_elsewhere(frozen, clock):
    store = open_store(frozen(small_design()), clock=clock)
    go(store, begin(store), until="break")
    (head,) = heads(store.folder)
    assert head == store.journal.head
    assert not head_problems(store.folder, head)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER answers_never_change")
        connection.execute(update(answers).values(correct=True))
    rewrite(store.folder, forged)
    assert not differences(store)  # all copies agree on the lie
    (wrong,) = head_problems(store.folder, head)
    assert "was written anew" in wrong
    store.close()


def test_a_head_still_holds_after_more_answers_and_after_withdrawals(frozen, clock):
    store = open_store(frozen(small_design()), clock=clock)
    ann = go(store, begin(store, "ann"), until="break")
    (head,) = heads(store.folder)
    go(store, begin(store, "bob"))
    store.withdraw(ann)
    assert not head_problems(store.folder, head)
    assert heads(store.folder) != [head]
    store.close()


def test_a_new_file_vouches_for_the_older_ones(frozen, clock):
    """The newest head is enough to notice that an older file was changed, cut or taken away."""
    store = open_store(frozen(small_design()), clock=clock)
    go(store, begin(store, "ann"), until="break")
    store.close()
    old = store.journal.path
    second = again(store)
    begin(second, "bob")
    second.close()
    (head,) = heads(store.folder)
    assert head.startswith(second.journal.path.name)
    assert not journals.problems(store.folder)
    whole = old.read_bytes()
    rewrite_one(old, forged)
    assert any("was written anew" in wrong for wrong in journals.problems(store.folder))
    old.write_bytes(b"".join(whole.splitlines(keepends=True)[:-2]))
    assert any("has fewer" in wrong for wrong in journals.problems(store.folder))
    old.unlink()
    assert any("not there any more" in wrong for wrong in journals.problems(store.folder))
    old.write_bytes(whole)
    assert not journals.problems(store.folder)


def rewrite_one(path, change):
    others = {other: other.read_bytes() for other in journals.files(path.parent.parent) if other != path}
    rewrite(path.parent.parent, change)
    for other, content in others.items():
        other.write_bytes(content)


@pytest.mark.parametrize("head", ["", "x", "a:b:c", "nothing.jsonl:3:" + "0" * 64, "../../etc/passwd:1:0"])
def test_what_is_no_head_is_a_sentence(frozen, clock, head):
    store = open_store(frozen(small_design()), clock=clock)
    begin(store)
    (wrong,) = head_problems(store.folder, head)
    assert wrong.endswith(".")
    store.close()


def test_harm_to_the_database_is_found(opened):
    store = opened()
    go(store, begin(store), until="break")
    with store.engine.begin() as connection:
        connection.execute(update(events).values(kind="other"))
        connection.execute(delete(answers).where(answers.c.trial == 2))
        connection.execute(insert(responses).values(participant_id=1, round=9, kind="x", ref="", values={}, received_at=0))
    found = " ".join(differences(store))
    assert "differ in 'kind' of event" in found
    assert "The journal has answer round 0 trial 2" in found
    assert "The database has response round 9" in found


def test_a_commit_whose_answer_got_lost_is_neither_doubled_nor_forgotten(opened, monkeypatch):
    """The database goes away after the commit and before it said so: the second try finds the first one's row."""
    from contextlib import contextmanager

    store = opened()
    person = go(store, begin(store), until="trial")
    real, lost = store.engine.begin, []

    @contextmanager
    def begins():
        with real() as connection:
            yield connection
        if not lost:
            lost.append(True)
            raise DBAPIError("COMMIT", None, Exception("server closed the connection"), connection_invalidated=True)

    monkeypatch.setattr(store.engine, "begin", begins)
    assert store.record(person, "", Given(1, {})) == "stale"
    token = store.begin("another")
    assert lost
    assert len(rows(store)) == 1
    assert fresh(store, person).step == person.step + 1
    assert not differences(store)
    lost.clear()
    assert store.begin("third") == store.begin("third") != token
    assert len(rows(store, participants)) == 3
    assert not differences(store)


def test_two_servers_share_a_database(opened):
    one = opened()
    two = again(one)
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda i: (one, two)[i % 2].begin(f"visit {i}"), range(12)))
        people = [one.find(token) for token in tokens]
        outcomes = list(pool.map(lambda i: (one, two)[i % 2].record(people[i // 4], "", GIVEN["demographics"]), range(48)))
    assert sorted(person.slot for person in people) == list(range(12))
    assert outcomes.count("kept") == 12
    assert len(journals.files(one.folder)) == 2
    two.withdraw(people[0])
    two.close()
    assert not differences(one)
    assert people[0].public_id.encode() not in b"".join(path.read_bytes() for path in journals.files(one.folder))


# --- promise 2: once ------------------------------------------------------------------------------------------------------


def test_a_form_counts_once_however_often_it_comes(opened):
    store = opened()
    person = go(store, begin(store), until="trial")
    with ThreadPoolExecutor(12) as pool:
        outcomes = list(pool.map(lambda choice: store.record(person, "", Given(choice % 4, {})), range(12)))
    assert sorted(outcomes) == ["kept"] + ["stale"] * 11
    assert len(rows(store)) == 1
    assert fresh(store, person).step == person.step + 1
    kept = rows(store)
    assert store.record(person, "", Given(3, {})) == "stale"
    assert rows(store) == kept
    assert not differences(store)


def test_practice_has_two_halves_and_neither_can_be_skipped_or_repeated(opened):
    store = opened()
    person = go(store, begin(store), until="practice")
    assert store.record(person, "feedback") == "stale"
    assert store.record(person, "", Given(1, {})) == "kept"
    assert store.record(person, "", Given(2, {})) == "stale"
    assert fresh(store, person).step == person.step
    assert store.record(person, "feedback") == "kept"
    assert store.record(person, "feedback") == "stale"
    assert fresh(store, person).step == person.step + 1
    (kept,) = [row.values for row in rows(store, responses) if row.kind == "practice"]
    assert kept["choice"] == plan(store.design, 0).practice[0].options[1]


def test_a_break_cannot_be_cut_short(opened, clock):
    store = opened()
    person = go(store, begin(store), until="break")
    clock.now += 4999
    assert store.wait(person) == 1
    assert store.record(person) == "early"
    assert fresh(store, person) == person
    clock.now += 1
    assert store.record(person) == "kept"


# --- coming back ----------------------------------------------------------------------------------------------------------


def test_resume_goes_on_where_one_was_and_stores_the_gap(opened, clock):
    store = opened(resume="resume")
    person = go(store, begin(store), until=plan(store.design, 0).steps[6])
    assert store.resume(person) == "here"  # was not away: nothing happens
    assert fresh(store, person) == person
    clock.now += 90 * MINUTE
    assert store.standing(person) == "away"
    assert store.resume(person) == "here"
    back = fresh(store, person)
    assert (back.step, back.round, back.step_at) == (person.step, 0, clock.now)
    (gap,) = [row for row in rows(store, events) if row.kind == "gap"]
    assert gap.detail == {"ms": 90 * MINUTE, "step": person.step, "then": "resumed"}
    clock.now += AWAY + 1
    assert store.record(back, "", Given(0, {})) == "kept"  # answered in a page that had stayed open
    assert [row.detail["then"] for row in rows(store, events) if row.kind == "gap"] == ["resumed", "answered"]
    assert not differences(store)


def test_resume_within_ends_after_that(opened, clock):
    store = opened(resume="resume within", resume_minutes=30)
    person = go(store, begin(store), until="trial")
    clock.now += 30 * MINUTE
    assert store.resume(person) == "here"
    person = fresh(store, person)
    clock.now += 30 * MINUTE + 1
    assert store.standing(person) == "over"
    assert store.record(person, "", Given(0, {})) == "stale"
    assert store.resume(person) == "over"
    late = fresh(store, person)
    assert (late.status, late.slot) == ("timed out", None)
    assert store.resume(person) == "over"
    assert kinds(store, person) == ["consent", "gap", "timed out"]
    assert not rows(store)


def test_restart_block_begins_the_block_again_and_keeps_what_was_answered(opened, clock):
    store = opened(resume="restart block")
    steps = plan(store.design, 0).steps
    numbers = [i for i, step in enumerate(steps) if step.kind == "trial"]
    person = go(store, begin(store), until=steps[numbers[10]])  # the third question of the second block
    clock.now += AWAY + 1
    assert store.record(person, "", Given(0, {})) == "stale"
    assert store.resume(person) == "here"
    back = fresh(store, person)
    assert (back.step, back.round) == (numbers[8], 1)
    go(store, back)
    kept = [(row.round, row.trial) for row in rows(store)]
    assert kept == [(0, i) for i in range(10)] + [(1, i) for i in range(8, 16)]
    assert not differences(store)


def test_restart_block_between_two_blocks_just_goes_on(opened, clock):
    store = opened(resume="restart block")
    steps = plan(store.design, 0).steps
    between = [step for step in steps if step.kind == "break"][1]
    person = go(store, begin(store), until=between)
    clock.now += AWAY + 1
    assert store.resume(person) == "here"
    assert (fresh(store, person).step, fresh(store, person).round) == (person.step, 0)
    before = begin(store, "other")
    clock.now += AWAY + 1
    assert store.resume(before) == "here"
    assert fresh(store, before).round == 0


def test_refuse_ends_for_who_was_away(opened, clock):
    store = opened(resume="refuse")
    person = go(store, begin(store), until="trial")
    clock.now += AWAY
    assert store.standing(person) == "here"
    clock.now += 1
    assert store.resume(person) == "over"
    assert fresh(store, person).status == "timed out"


# --- withdrawing ----------------------------------------------------------------------------------------------------------


def test_withdrawing_deletes_both_copies_and_the_chain_still_holds(opened):
    store = opened()
    stays = go(store, begin(store, "stays"), until="break")
    person = go(store, begin(store, "leaves", "leaver"), until="break")
    assert b"soup" in store.journal.path.read_bytes()
    store.withdraw(person)
    store.withdraw(person)
    left = fresh(store, person)
    assert (left.status, left.slot, left.external_hash) == ("withdrawn", None, None)
    for table in (answers, responses, events):
        assert {row.participant_id for row in rows(store, table)} <= {stays.id, None}
    assert [row.detail for row in rows(store, events) if row.kind == "withdrawn"] == [
        {"phase": "live", "step": person.step, "was": "active"}
    ]
    assert {record["participant"] for record in read_journal(store.folder)} == {stays.public_id, None}
    assert person.public_id.encode() not in store.journal.path.read_bytes()
    assert not differences(store)
    assert store.record(person) == "stale"
    assert store.resume(left) == "withdrawn"
    go(store, stays)
    assert not differences(store)


def test_a_withdrawal_that_was_cut_off_is_finished_at_the_next_start(opened, monkeypatch):
    store = opened()
    person = go(store, begin(store), until="break")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "redact", lambda *_: 0)
        store.withdraw(person)
    assert b"soup" in store.journal.path.read_bytes()
    again(store).close()
    assert b"soup" not in store.journal.path.read_bytes()
    assert not differences(store)


def test_what_comes_after_a_withdrawal_is_blank(tmp_path):
    journal = Journal(tmp_path, "x")
    journal.redact(["gone"])
    journal.append([journals.record_of("responses", "gone", dict.fromkeys(journals.KEPT["responses"], "secret"))])
    journal.close()
    assert b"secret" not in journal.path.read_bytes()
    assert not journals.problems(tmp_path)
    assert read_journal(tmp_path) == []


def test_the_journal_keeps_its_chain_with_many_writers(tmp_path):
    journal = Journal(tmp_path, "x")
    threads = [
        threading.Thread(target=lambda n=n: [journal.append([{"table": "x", "participant": None, "n": n}]) for _ in range(20)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    assert not journals.problems(tmp_path)
    assert len(read_journal(tmp_path)) == 160


# --- times and counts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timing", "wrong"),
    [
        (Timing(), False),
        (Timing(100, 2000, 3000, 0, 0), False),
        (Timing(100, None, 5900, 200, 1), False),
        (Timing(100, 2000, 60_000, 0, 0), True),  # longer than the server's clock
        (Timing(100, 4000, 3000, 0, 0), True),
        (Timing(100, 2000, 3000, 4000, 1), True),
        (Timing(100, None, None, None, None), True),
    ],
)
def test_times_that_cannot_be_true_are_flagged(timing, wrong):
    assert differs(timing, 5000) == wrong


def test_the_monitor_counts_people_not_answers(opened, clock):
    store = opened()
    go(store, begin(store, "complete"))
    go(store, begin(store, "silent"), until="break")
    clock.now += AWAY + 1
    go(store, begin(store, "active"), until="trial")
    store.withdraw(begin(store, "withdrawn"))
    store.decline("visit")
    store.decline("visit")  # the same form again
    live, pilot = store.monitor()
    assert [live.total(column) for column in range(1, 6)] == [1, 1, 1, 0, 0]
    assert {id: (n, failed) for id, n, failed in live.checks} == {"check-1": (1, 0), "check-2": (1, 0)}
    assert (live.withdrawn, live.declined, live.answers, live.simulated) == (1, 1, 20, 0)
    assert dict(live.places) == {"question 1": 1, "break after question 4": 1}
    assert live.minutes == pytest.approx(sum(1 for _ in plan(store.design, 0).steps) * 6 / 60, abs=0.2)
    assert pilot.total(1) == pilot.answers == 0
