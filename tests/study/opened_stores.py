"""Stores that tests open, and people who go through them without a page."""

from sqlalchemy import select

from bayescase.study.data.flow import Given
from bayescase.study.data.journal import compare
from bayescase.study.data.places import Arrival
from bayescase.study.data.store import open_store
from bayescase.study.data.tables import answers, events


class Clock:
    def __init__(self):
        self.now = 1_700_000_000_000

    def __call__(self):
        return self.now


def again(store, **settings):
    """Another server process on the same data."""
    address = store.engine.url.render_as_string(hide_password=False)
    database = None if address.startswith("sqlite") else address
    return open_store(store.folder, database, clock=store.clock, **settings)


def begin(store, name="somebody", external=""):
    return store.find(store.begin(name, Arrival(external)))


def fresh(store, person):
    return store.find(store.token_of(person.public_id))


GIVEN = {
    "demographics": {"age": 30, "gender": None, "cooking": "soup"},
    "practice": Given(0, {}),
    "trial": Given(0, {}),
    "check": {"choice": 1, "correct": True},
    "comprehension": {"choice": 1, "correct": True},
    "ratings": {"clear": 1, "sure": 2},
    "questionnaire": {"effort": None, "pleasant": 4},
}


def go(store, person, until=None, wait=6000):
    """Answer page after page, up to a kind of step, a number of answers, or the end."""
    while True:
        person = fresh(store, person)
        step = store.step_of(person)
        if person.status != "active" or until in (step.kind, step):
            return person
        store.clock.now += wait
        practised = step.kind == "practice" and store.response(person, *step) is not None
        assert store.record(person, "feedback" if practised else "", GIVEN.get(step.kind)) == "kept"


def rows(store, table=answers):
    with store.reading() as connection:
        return connection.execute(select(table).order_by(table.c.id)).all()


def differences(store):
    with store.reading() as connection:
        return compare(connection, store.folder)


def kinds(store, person):
    return [row.kind for row in rows(store, events) if row.participant_id == person.id]
