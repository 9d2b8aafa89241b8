"""Simulated people."""

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.journal import compare
from bayescase.study.data.tables import answers
from bayescase.study.planted import Truth
from bayescase.study.simulate import simulate

from .designs import small_design
from .pages.visits import dump, ruled
from .people import visiting

CERTAIN = Truth(
    {"bcm": 1.0, "lda": 0.0}, person_sd=0, person_slope_sd=0, case_sd=0, case_slope_sd=0, explanation_slope_sd=0, attention=1.0,
    seed=1,
)  # fmt: skip


def test_simulated_people_answer_as_they_are_told(place):
    folder, database = place(ruled(timeout_minutes=60))
    done = simulate(folder, 6, truth=CERTAIN, database=database, at_once=6)
    assert (done.people, done.complete, done.dropped, done.answers, done.errors) == (6, 6, 0, 96, ())
    with visiting(folder, database) as visit:
        with visit.store.reading() as connection:
            kept = connection.execute(select(answers)).all()
            assert not compare(connection, folder)
        assert all(row.correct == (row.condition == "bcm") for row in kept)
        assert not any(row.timing_differs for row in kept)
        checks = [row for row in dump(visit)[0]["responses"] if row.kind == "check"]
        assert len(checks) == 6 * len(visit.store.design.checks)
        assert all(row.values["correct"] for row in checks)
        assert {row.simulated for row in dump(visit)[0]["participants"]} == {True}
        live, pilot = visit.store.monitor()
        assert (live.total(1), pilot.total(1), pilot.simulated) == (0, 6, 6)


def test_a_seed_repeats_a_simulation(frozen):
    kept = []
    for name in ("one", "two"):
        folder = frozen(small_design(), name)
        done = simulate(folder, 5, truth=Truth({"bcm": 0.8, "lda": 0.6}, dropout=0.5, seed=4), at_once=3)
        assert done.dropped > 0
        assert not done.errors
        with visiting(folder) as visit:
            people = {row.id: row.first_slot for row in dump(visit)[0]["participants"]}
            kept.append(sorted((people[row.participant_id], row.trial, row.choice) for row in dump(visit)[0]["answers"]))
    assert kept[0] == kept[1]
