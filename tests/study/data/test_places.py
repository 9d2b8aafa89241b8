"""Who gets a place, who keeps it, and who can take it away. On SQLite and on PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

pytest.importorskip("sqlalchemy", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.database import MINUTE, StoreError, reading
from bayescase.study.data.flow import Given
from bayescase.study.data.monitor import path_of
from bayescase.study.data.places import Arrival, NotAdmitted, receipt_hash, receipt_of
from bayescase.study.data.reconcile import MISSING, reconcile
from bayescase.study.data.store import DAY
from bayescase.study.data.tables import answers, events, participants, spent_ids, visits
from bayescase.study.design.design import Check

from ..designs import rating_design, small_design
from ..opened_stores import GIVEN, again, begin, differences, fresh, go, rows

RULE = small_design().rules.admission
ANN, BOB = "a" * 24, "b" * 24


def refusal(store, arrival="", visit="visit"):
    """Why somebody cannot begin; None if they can. Looking and beginning agree."""
    who = Arrival(arrival)
    try:
        store.admit(who)
        looked = None
    except NotAdmitted as why:
        looked = why.why
    try:
        store.begin(visit, who)
        begun = None
    except NotAdmitted as why:
        begun = why.why
    assert looked == begun or begun == "busy"
    return begun


# --- a known id is not enough ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("until", ["trial", None])
def test_a_known_id_gives_nobody_a_place_that_is_taken(opened, until):
    """Whoever knows an id could go on as that person, or delete what that person had answered."""
    store = opened()
    ann = go(store, begin(store, "ann's form", ANN), until=until)
    before = rows(store, participants), rows(store), rows(store, events)
    assert refusal(store, ANN, "another form") == "known"
    assert (rows(store, participants), rows(store), rows(store, events)) == before
    assert fresh(store, ann) == ann


def test_an_old_form_of_consent_does_not_open_the_place_either(opened, clock):
    store = opened()
    ann = begin(store, "form", ANN)
    assert store.begin("form", Arrival(ANN)) == store.token_of(ann.public_id)  # a double click
    go(store, ann, until="trial")
    with pytest.raises(NotAdmitted, match="late-form"):
        store.begin("form", Arrival(ANN))


def test_a_receipt_opens_the_place_it_was_given_for(opened):
    store = opened()
    ann, bob = begin(store, "1", ANN), begin(store, "2", BOB)
    code = store.receipt_of(ann)
    assert len(code) == 19
    assert store.find_by_receipt(code).id == ann.id
    typed = code.lower().replace("-", " ").replace("0", "o").replace("1", "l")
    assert store.find_by_receipt(typed).id == ann.id
    assert store.find_by_receipt(store.receipt_of(bob)).id == bob.id
    for wrong in ("", code[:-1], code + "A", "0" * 16, ann.public_id, store.token_of(ann.public_id)):
        assert store.find_by_receipt(wrong) is None
    stored = str(rows(store, participants))
    assert code.replace("-", "") not in stored
    assert code not in stored


def test_receipts_are_long_and_all_different():
    codes = {receipt_of(f"{k:064x}"[::-1]) for k in range(1000)}
    assert len(codes) == 1000
    assert len({receipt_hash(code) for code in codes}) == 1000


def test_a_new_receipt_voids_the_old_one(opened):
    store = opened()
    ann = begin(store, "1", ANN)
    old = store.receipt_of(ann)
    new = store.new_receipt(ANN)
    assert store.find_by_receipt(old) is None
    assert store.find_by_receipt(new).id == ann.id
    assert store.receipt_of(fresh(store, ann)) == new
    assert store.new_receipt("nobody") is None


# --- withdrawn is withdrawn -----------------------------------------------------------------------------------------------


def test_who_has_withdrawn_cannot_begin_again_with_the_same_id(opened):
    store = opened()
    ann = go(store, begin(store, "1", ANN), until="break")
    store.withdraw(ann)
    assert refusal(store, ANN, "2") == "spent"
    assert refusal(store, BOB, "3") is None
    left = fresh(store, ann)
    assert (left.external_hash, left.other_hashes) == (None, {})  # nothing links the id to the row
    (spent,) = rows_of(store, spent_ids)
    assert ann.public_id not in str(spent)
    assert ANN not in str(spent)
    assert refusal(opened(unique_people=False), ANN) is None
    pilot = again(store, phase="pilot")
    assert refusal(pilot, ANN, "4") is None  # phases are counted apart
    pilot.close()


def rows_of(store, table):
    with store.reading() as connection:
        return connection.execute(select(table)).all()


# --- admission ------------------------------------------------------------------------------------------------------------


def ruled(opened, phase="live", **changes):
    return opened(phase, admission=replace(RULE, **changes))


def test_ids_can_be_required_and_have_a_form(opened):
    store = ruled(opened, who="id", id_pattern="[0-9a-f]{24}")
    assert refusal(store) == "no-id"
    for wrong in ("x" * 24, "a" * 23, "a" * 25, f"{ANN}\n", f" {ANN}"):
        assert refusal(store, wrong) == "no-id"
    assert refusal(store, ANN) is None
    assert len(rows(store, participants)) == 1
    pilot = again(store, phase="pilot")
    assert refusal(pilot, "", "pilot") is None  # who tries it out needs no id
    pilot.close()


def test_people_can_be_invited(opened):
    store = ruled(opened, who="invited")
    assert refusal(store, ANN) == "not-invited"
    assert store.invite([ANN, BOB, ANN]) == 2
    assert store.invite([ANN]) == 0
    assert refusal(store, ANN) is None
    codes = store.invite_codes(3)
    assert len(set(codes)) == 3
    assert refusal(store, codes[0], "by code") is None
    assert refusal(store, codes[0], "again") == "known"
    with pytest.raises(StoreError, match="do not match"):
        ruled(opened, who="invited", id_pattern="[A-Z]+").invite_codes(1)


def test_a_quota_counts_places_and_gives_back_those_that_are_free(opened, clock):
    store = ruled(opened, quota=2)
    first, _ = go(store, begin(store, "1")), begin(store, "2")
    assert refusal(store, "", "3") == "full"
    clock.now += 121 * MINUTE  # the second is silent; the first is complete
    assert store.begin("4")
    assert refusal(store, "", "5") == "full"
    store.withdraw(first)
    assert refusal(store, "", "6") is None


def test_nobody_can_take_many_places_in_a_minute(opened, clock):
    store = ruled(opened, per_minute=5)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: refusal(store, "", f"visit {i}"), range(15)))
    assert found.count(None) == 5
    assert found.count("busy") == 10
    clock.now += MINUTE + 1
    assert refusal(store, "", "later") is None


def test_declining_is_counted_once_per_form_and_not_without_end(opened, clock):
    store = ruled(opened, per_minute=5)
    for _ in range(20):
        store.decline("the same form")
    assert store.monitor()[0].declined == 1
    for i in range(20):
        store.decline(f"form {i}")
    assert store.monitor()[0].declined == 5
    clock.now += 13 * 60 * MINUTE
    store.decline("next day")
    assert len(rows_of(store, visits)) == 1


def test_pausing_and_closing(opened):
    store = opened()
    ann = go(store, begin(store, "1"), until="trial")
    assert store.state() == "open"
    store.set_state("paused")
    other = again(store)  # all processes hear of it
    assert refusal(other, "", "2") == "paused"
    assert other.record(ann, "", Given(0, {})) == "kept"
    other.set_state("closed")
    assert refusal(store, "", "3") == "closed"
    assert store.record(fresh(store, ann), "", Given(0, {})) == "closed"
    assert len(rows(store)) == 1
    store.set_state("open")
    assert store.record(fresh(store, ann), "", Given(0, {})) == "kept"
    assert [row.kind for row in rows(store, events) if row.participant_id is None] == ["paused", "closed", "open"]
    assert not differences(store)
    other.close()


# --- comprehension --------------------------------------------------------------------------------------------------------

CHECKS = (
    Check("task", "What are you asked?", ("this", "that"), 1, 0),
    Check("time", "How fast?", ("slow", "fast"), 1, 0),
    *small_design().checks,
)


def test_who_does_not_understand_reads_again_and_then_the_study_ends(opened):
    store = opened(design=small_design(checks=CHECKS), comprehension_tries=2)
    ann = go(store, begin(store, "ann"), until="comprehension")
    assert store.record(ann, "", {"choice": 1, "correct": True}) == "kept"
    ann = fresh(store, ann)
    assert store.step_of(ann).ref == "time"
    assert store.record(ann, "", {"choice": 0, "correct": False}) == "kept"
    ann = fresh(store, ann)
    assert store.step_of(ann).kind == "instructions"
    assert store.misunderstood(ann) == 1
    assert go(store, ann).status == "complete"  # the one that was passed is asked again, and kept once
    assert not differences(store)
    bob = begin(store, "bob")
    for _ in range(2):
        bob = go(store, bob, until="comprehension")
        store.record(bob, "", {"choice": 0, "correct": False})
        bob = fresh(store, bob)
    assert (bob.status, bob.slot, store.standing(bob)) == ("screened out", None, "screened out")
    assert begin(store, "next").slot == bob.first_slot
    live = store.monitor()[0]
    assert {id: (n, failed) for id, n, failed in live.checks}["task"] == (2, 1)
    assert live.total(5) == 1
    assert not differences(store)


# --- ratings --------------------------------------------------------------------------------------------------------------


def test_where_the_task_is_to_rate_nothing_is_right_or_wrong(opened):
    design = rating_design()
    store = opened(design=design)
    person = begin(store)
    while (person := fresh(store, person)).status == "active":
        step = store.step_of(person)
        store.clock.now += 6000
        given = Given(None, {"trust": 3}) if step.kind in ("trial", "practice") else GIVEN.get(step.kind)
        practised = step.kind == "practice" and store.response(person, *step) is not None
        assert store.record(person, "feedback" if practised else "", given) == "kept"
    kept = rows(store)
    assert [(row.choice, row.correct, row.ratings) for row in kept] == [(None, None, {"trust": 3})] * 16
    assert not differences(store)


# --- what is kept of people -----------------------------------------------------------------------------------------------


def test_after_the_days_to_keep_them_nobody_is_known_any_more(opened, clock):
    store = opened(keep_days=30)
    ann = go(store, begin(store, "1", ANN))
    code = store.receipt_of(ann)
    clock.now += 29 * DAY
    bob = begin(store, "2", BOB)
    assert store.forget() == 0
    clock.now += 2 * DAY
    assert store.forget() == 1
    assert store.find_by_receipt(code) is None
    ann = fresh(store, ann)
    assert (ann.external_hash, ann.receipt_hash, ann.other_hashes) == (None, None, {})
    assert fresh(store, bob).receipt_hash is not None
    assert len(rows(store)) == 16  # the answers stay
    assert not differences(store)
    assert store.forget(clock.now + 1) == 1
    assert opened().forget() == 0  # without such a rule


def test_a_platforms_list_is_compared_without_keeping_an_id(opened):
    store = opened()
    go(store, begin(store, "1", ANN))
    go(store, begin(store, "2", BOB), until="trial")
    store.withdraw(begin(store, "3", "c" * 24))
    begin(store, "4", "d" * 24)
    begin(store, "5")
    ids = [ANN, BOB, "c" * 24, "e" * 24]
    with reading(store.engine) as connection:
        found = reconcile(connection, store.keys, {"complete": "DONE-1"}, ids, "live")
    assert [(row.id, row.status, row.code) for row in found.rows] == [
        (ANN, "complete", "DONE-1"), (BOB, "active", ""), ("c" * 24, "withdrawn", ""), ("e" * 24, MISSING, ""),
    ]  # fmt: skip
    assert (found.unlisted, found.without_id) == (1, 1)


def test_deleted_answers_are_not_left_in_the_file(frozen, clock):
    """secure_delete: what was deleted is overwritten, not only let go."""
    from bayescase.study.data.store import open_store

    store = open_store(frozen(small_design()), clock=clock)
    ann = begin(store, "ann")
    store.record(ann, "", {"age": 30, "gender": None, "cooking": "a soup that nobody else cooks"})
    assert b"nobody else cooks" in (store.folder / "study.db").read_bytes()
    store.withdraw(fresh(store, ann))
    everything = b"".join(path.read_bytes() for path in store.folder.rglob("*") if path.is_file())
    assert b"nobody else cooks" not in everything
    store.close()


def test_the_path_of_a_person_tells_when_and_not_what(opened):
    store = opened()
    ann = go(store, begin(store, "1", ANN))
    with store.reading() as connection:
        blind = path_of(connection, store.design, ann.public_id, blind=True)
        seen = path_of(connection, store.design, ann.public_id, blind=False)
        assert path_of(connection, store.design, "nobody", blind=True) is None
    assert (blind.status, blind.phase, blind.cell) == ("complete", "live", str(store.plan(0).cell))
    words = " | ".join(line.what for line in blind.lines)
    assert "question 16" in words
    assert "check check-1: passed" in words
    assert not {"right", "wrong"} & set(words.replace(",", " ").replace(":", " ").split())
    assert not any(item.id in words.split() for item in store.design.items if item.item_set != "practice")
    assert "practice practice | " in words
    assert [line.minutes for line in blind.lines] == sorted(line.minutes for line in blind.lines)
    open_words = [line.what for line in seen.lines if line.what.startswith("question ")]
    rights = [row.correct for row in rows(store, answers)]
    assert [words.endswith("right") for words in open_words] == rights
