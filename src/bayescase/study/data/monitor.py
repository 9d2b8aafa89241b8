"""How a study goes: how many people are where, and the path of one person. Nobody's answers, unless the study is closed."""

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, func, select

from ..design.design import Design
from ..design.design_file import read_design
from ..design.schedule import Step, cells, plan
from .database import MINUTE, milliseconds, opened, reading
from .tables import answers, events, participants, responses

AWAY = 5 * MINUTE  # without a form for so long, a person was away
COLUMNS = ("complete", "active", "silent", "timed out", "screened out")


@dataclass(frozen=True)
class PhaseCounts:
    """A phase in numbers. Rows of `cells`: the cell, then how many are in each of COLUMNS."""

    phase: str
    simulated: int
    declined: int
    withdrawn: int
    answers: int
    cells: tuple[tuple[Any, ...], ...]
    places: tuple[tuple[str, int], ...]  # where those are who are not complete
    minutes: float | None  # median of those who are complete
    checks: tuple[tuple[str, int, int], ...]  # id of a check, people who answered it, people who failed
    quota: int | None

    def total(self, column: int) -> int:
        return sum(int(row[column]) for row in self.cells)


def monitor(connection: Connection, design: Design, now: int) -> list[PhaseCounts]:
    """How many people are where, by phase."""
    people = connection.execute(select(participants)).all()
    counted = select(participants.c.phase, func.count()).join(answers, answers.c.participant_id == participants.c.id)
    given = {row[0]: row[1] for row in connection.execute(counted.group_by(participants.c.phase))}
    declined = Counter(
        detail.get("phase")
        for detail in connection.execute(select(events.c.detail).where(events.c.kind == "declined")).scalars()
    )
    found = []
    for phase in ("live", "pilot"):
        here = [person for person in people if person.phase == phase]
        table, places, minutes = where_they_are(here, design, now)
        found.append(
            PhaseCounts(
                phase=phase,
                simulated=sum(person.simulated for person in here),
                declined=declined[phase],
                withdrawn=sum(person.status == "withdrawn" for person in here),
                answers=given.get(phase, 0),
                cells=tuple((str(cell), *(table[str(cell), column] for column in COLUMNS)) for cell in cells(design)),
                places=tuple((name, n) for (_, name), n in sorted(places.items())),
                minutes=sorted(minutes)[len(minutes) // 2] if minutes else None,
                checks=check_counts(connection, design, phase),
                quota=design.rules.admission.quota if phase == "live" else None,
            )
        )
    return found


def where_they_are(people: list[Row], design: Design, now: int) -> tuple[Counter, Counter, list[float]]:
    """(people by cell and column, people who are not complete by step, minutes of those who are)"""
    table: Counter[tuple[str, str]] = Counter()
    places: Counter[tuple[int, str]] = Counter()
    minutes = []
    for person in people:
        if person.status == "withdrawn":
            continue
        mine = plan(design, person.first_slot)
        silent = person.status == "active" and now - person.last_seen_at > AWAY
        table[str(mine.cell), "silent" if silent else person.status] += 1
        if person.status == "complete":
            minutes.append((person.finished_at - person.consented_at) / MINUTE)
        else:
            places[person.step, step_name(mine.steps[person.step])] += 1
    return table, places, minutes


def step_name(step: Step) -> str:
    if step.kind in ("trial", "ratings"):
        return f"{'question' if step.kind == 'trial' else 'ratings of part'} {int(step.ref) + 1}"
    if step.kind == "break":
        return f"break after question {step.ref}"
    return " ".join(filter(None, [step.kind, step.ref]))


def check_counts(connection: Connection, design: Design, phase: str) -> tuple[tuple[str, int, int], ...]:
    """How many people answered a check, and how many failed it at least once."""
    joined = select(responses.c.ref, responses.c["values"], responses.c.participant_id).join(
        participants, participants.c.id == responses.c.participant_id
    )
    wanted = participants.c.phase == phase
    answered: dict[str, set[int]] = {check.id: set() for check in design.checks}
    failed: dict[str, set[int]] = {check.id: set() for check in design.checks}
    kinds = responses.c.kind.in_(("check", "comprehension"))
    for ref, values, who in connection.execute(joined.where(wanted, kinds)):
        answered[ref].add(who)
        if not values["correct"]:
            failed[ref].add(who)
    wrong = select(events.c.detail, events.c.participant_id).join(participants, participants.c.id == events.c.participant_id)
    for detail, who in connection.execute(wrong.where(wanted, events.c.kind == "misunderstood")):
        answered[detail["check"]].add(who)
        failed[detail["check"]].add(who)
    return tuple((id, len(answered[id]), len(failed[id])) for id in answered)


# --- one person -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PathLine:
    """What happened to a person, and when."""

    minutes: float  # after the consent
    what: str
    seconds: float | None  # that a question took


@dataclass(frozen=True)
class PersonPath:
    participant: str
    phase: str
    simulated: bool
    status: str
    cell: str
    day: str
    lines: tuple[PathLine, ...]


def people_of(connection: Connection, design: Design, phase: str, most: int = 500) -> list[tuple[str, str, str, str]]:
    """(id, status, where they are, day) of the people who came last."""
    rows = select(participants).where(participants.c.phase == phase).order_by(participants.c.id.desc()).limit(most)
    return [
        (
            person.public_id,
            person.status,
            step_name(plan(design, person.first_slot).steps[person.step]),
            day_of(person.consented_at),
        )
        for person in connection.execute(rows)
    ]


def path_of(connection: Connection, design: Design, public_id: str, blind: bool) -> PersonPath | None:
    """The way of a person through the study; what they answered only if the study is not blind any more."""
    person = connection.execute(select(participants).where(participants.c.public_id == public_id)).first()
    if person is None:
        return None
    found = [(row.at, row.id, event_words(row.kind, row.detail, blind), None) for row in rows_of(connection, events, person)]
    for row in rows_of(connection, responses, person):
        judged = row.kind in ("check", "comprehension", "practice")
        right = {True: ": passed", False: ": failed", None: ""}[row.values.get("correct")] if judged else ""
        words = step_name(Step(row.kind, row.ref)) + ("" if blind and row.kind == "practice" else right)
        found.append((row.received_at, row.id, words, None))
    for row in rows_of(connection, answers, person):
        words = f"question {row.trial + 1}, {row.condition}"
        if not blind:
            right = {True: "right", False: "wrong", None: "rated"}[row.correct]
            words += f", {row.item}: {right}"
        found.append((row.received_at, row.id, words, (row.received_at - row.sent_at) / 1000))
    lines = tuple(PathLine((at - person.consented_at) / MINUTE, words, took) for at, _, words, took in sorted(found))
    cell = str(plan(design, person.first_slot).cell)
    status = (person.phase, bool(person.simulated), person.status)
    return PersonPath(public_id, *status, cell, day_of(person.consented_at), lines)


def event_words(kind: str, detail: dict[str, Any], blind: bool) -> str:
    shown = {name: value for name, value in detail.items() if not (blind and name == "choice")}
    return ", ".join([kind, *(f"{name} {value}" for name, value in shown.items())])


def rows_of(connection: Connection, table: Any, person: Row) -> list[Row]:
    return list(connection.execute(select(table).where(table.c.participant_id == person.id)).all())


def day_of(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).date().isoformat()


def look(folder: Path, database: str | None = None) -> list[PhaseCounts]:
    """The counts of a study, without starting anything."""
    design = read_design(folder)
    with opened(folder, database) as engine, reading(engine) as connection:
        return monitor(connection, design, milliseconds())
