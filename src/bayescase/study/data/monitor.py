"""How a study goes: how many people are where. Nobody's answers."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from ..design.design import Design
from ..design.design_file import read_design
from ..design.schedule import cells, plan
from .database import MINUTE, milliseconds, opened, reading
from .tables import answers, events, participants

AWAY = 5 * MINUTE  # without a form for so long, a person was away


@dataclass(frozen=True)
class PhaseCounts:
    """A phase in numbers. Rows of `cells`: the cell, then how many are complete, active, silent and timed out."""

    phase: str
    simulated: int
    declined: int
    withdrawn: int
    answers: int
    cells: tuple[tuple[Any, ...], ...]
    places: tuple[tuple[str, int], ...]  # where those are who are not complete
    minutes: float | None  # median of those who are complete

    def total(self, column: int) -> int:
        return sum(int(row[column]) for row in self.cells)


def monitor(connection: Connection, design: Design, now: int) -> list[PhaseCounts]:
    """How many people are where, by phase; nobody's answers."""
    people = connection.execute(select(participants)).all()
    counted = select(participants.c.phase, func.count()).join(answers, answers.c.participant_id == participants.c.id)
    given = {row[0]: row[1] for row in connection.execute(counted.group_by(participants.c.phase))}
    declined = Counter(
        detail.get("phase")
        for detail in connection.execute(select(events.c.detail).where(events.c.kind == "declined")).scalars()
    )
    kinds = ("complete", "active", "silent", "timed out")
    found = []
    for phase in ("live", "pilot"):
        here = [person for person in people if person.phase == phase]
        table: Counter[tuple[str, str]] = Counter()
        places: Counter[tuple[int, str]] = Counter()
        minutes = []
        for person in here:
            if person.status == "withdrawn":
                continue
            mine = plan(design, person.first_slot)
            silent = person.status == "active" and now - person.last_seen_at > AWAY
            table[str(mine.cell), "silent" if silent else person.status] += 1
            if person.status == "complete":
                minutes.append((person.finished_at - person.consented_at) / MINUTE)
            else:
                step = mine.steps[person.step]
                number = f" {int(step.ref) + 1}" if step.kind == "trial" else ""
                places[person.step, step.kind.replace("trial", "question") + number] += 1
        rows = tuple((str(cell), *(table[str(cell), kind] for kind in kinds)) for cell in cells(design))
        middle = sorted(minutes)[len(minutes) // 2] if minutes else None
        withdrawn = sum(person.status == "withdrawn" for person in here)
        found.append(
            PhaseCounts(
                phase, sum(p.simulated for p in here), declined[phase], withdrawn, given.get(phase, 0), rows,
                tuple((name, n) for (_, name), n in sorted(places.items())), middle,
            )
        )  # fmt: skip
    return found


def look(folder: Path, database: str | None = None) -> list[PhaseCounts]:
    """The counts of a study, without starting anything."""
    design = read_design(folder)
    with opened(folder, database) as engine, reading(engine) as connection:
        return monitor(connection, design, milliseconds())
