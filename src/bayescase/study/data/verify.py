"""Is everything as it must be? The two copies agree, every answer is one that the schedule asked for, and its mark is right."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from ..design.design import Design
from ..design.design_file import frozen_hash, media_problems, read_design
from ..design.schedule import Plan, plan
from . import journal
from .database import opened, reading
from .export import collect, superseded, trials_done
from .export_folder import export_problems, read_export
from .tables import answers, participants, responses, studies

STATUSES = ("active", "complete", "timed out", "screened out", "withdrawn")


def verify(folder: Path, database: str | None = None, export: Path | None = None, heads: Iterable[str] = ()) -> list[str]:
    """Everything that is wrong with the data of a study, and with an export of it, one sentence each.

    `heads`: of the journal, as they were printed and kept elsewhere.
    """
    folder = Path(folder)
    design = read_design(folder)
    found = [] if frozen_hash(folder) else [f"The design in {folder} has data but is not frozen; restore frozen.json."]
    with opened(folder, database) as engine, reading(engine) as connection:
        found += file_problems(connection)
        found += study_problems(connection, design)
        found += journal.compare(connection, folder)
        found += [wrong for head in heads for wrong in journal.head_problems(folder, head)]
        found += media_problems(design, folder)
        found += data_problems(connection, design)
        if export is not None:
            found += snapshot_problems(connection, design, Path(export))
    return found


def file_problems(connection: Connection) -> list[str]:
    """What SQLite itself finds; PostgreSQL checks its pages by checksums."""
    if connection.dialect.name != "sqlite":
        return []
    found = [row[0] for row in connection.exec_driver_sql("PRAGMA integrity_check(5)") if row[0] != "ok"]
    return [f"The database file is damaged ({words}); restore it from a copy." for words in found]


def study_problems(connection: Connection, design: Design) -> Iterator[str]:
    rows = connection.execute(select(studies.c.design_hash)).scalars().all()
    if len(rows) != 1:
        yield f"The database belongs to {len(rows)} studies instead of one."
    elif rows[0] != design.hash:
        yield "The database belongs to another design: its hash is not that of design.json."


def data_problems(connection: Connection, design: Design) -> Iterator[str]:
    people = {row["id"]: dict(row) for row in connection.execute(select(participants)).mappings()}
    plans = {id: plan(design, person["first_slot"]) for id, person in people.items()}
    given: dict[int, list[dict[str, Any]]] = {id: [] for id in people}
    for stored in connection.execute(select(answers).order_by(answers.c.id)).mappings():
        if stored["participant_id"] not in people:
            yield f"Answer {stored['id']} belongs to nobody."
        else:
            given[stored["participant_id"]].append(dict(stored))
    for form in connection.execute(select(responses)).mappings():
        if form["participant_id"] not in people:
            yield f"Response {form['id']} belongs to nobody."
        elif (form["kind"], form["ref"]) not in plans[form["participant_id"]].steps:
            whose = people[form["participant_id"]]["public_id"]
            yield f"The response {form['kind']} {form['ref']} of {whose} is not in the schedule."
    for column in ("public_id", "token_hash"):
        for value, n in Counter(person[column] for person in people.values()).items():
            if n > 1:
                yield f"{n} people have the {column} {value}."
    taken = Counter((person["phase"], person["slot"]) for person in people.values() if person["slot"] is not None)
    for (phase, slot), n in taken.items():
        if n > 1:
            yield f"{n} people of the {phase} phase are in slot {slot}."
    for id, person in people.items():
        yield from person_problems(person, plans[id], given[id])
        for row in given[id]:
            yield from answer_problems(design, person, plans[id], row)


def person_problems(person, schedule: Plan, rows) -> Iterator[str]:
    who = person["public_id"]
    if person["status"] not in STATUSES:
        yield f"{who} has the status {person['status']!r}."
    if person["slot"] not in (None, person["first_slot"]):
        yield f"{who} is in slot {person['slot']}, but was scheduled for {person['first_slot']}."
    if not 0 <= person["step"] < len(schedule.steps):
        yield f"{who} is at step {person['step']}, which is not in the schedule."
        return
    if (person["status"] == "complete") != (person["finished_at"] is not None):
        yield f"{who} is {person['status']}, which does not fit the time of the end."
    for (round, trial), n in Counter((row["round"], row["trial"]) for row in rows).items():
        if n > 1:
            yield f"{who} has {n} answers to question {trial} of round {round}."
    done = trials_done(person, schedule)
    valid = {row["trial"] for row, old in zip(rows, superseded(person, schedule, rows), strict=True) if not old}
    if person["status"] == "withdrawn":
        if rows:
            yield f"{who} has withdrawn, but {len(rows)} answers are still there."
    elif valid != set(range(done)):
        lost = sorted(set(range(done)) - valid)
        yield f"{who} passed {done} questions, but the answers to questions {', '.join(map(str, lost))} are not there."
    if person["status"] == "complete" and done < len(schedule.trials):
        yield f"{who} is complete, but answered {done} of {len(schedule.trials)} questions."


def answer_problems(design: Design, person, schedule: Plan, row) -> Iterator[str]:
    what = f"Answer {row['trial']} of {person['public_id']} (round {row['round']})"
    if not 0 <= row["trial"] < len(schedule.trials):
        yield f"{what} is to a question that is not in the schedule."
        return
    trial = schedule.trials[row["trial"]]
    wanted = {"block": trial.block, "condition": trial.condition, "item": trial.item, "options": list(trial.options)}
    for column, value in wanted.items():
        if row[column] != value:
            yield f"{what} has the {column} {row[column]}, but the schedule says {value}."
            return
    if design.task == "rate":
        if row["choice"] is not None or row["correct"] is not None:
            yield f"{what} has a choice, where the task was to rate."
    elif row["choice"] not in trial.options:
        yield f"{what} chose group {row['choice']}, which was not offered."
    elif bool(row["correct"]) != (row["choice"] == design.item(trial.item).correct):
        yield f"{what} is marked as {'right' if row['correct'] else 'wrong'}, which it is not."
    if set(row["ratings"]) != {likert.id for likert in design.item_ratings}:
        yield f"{what} has other ratings than the design asks for."
    if not 0 <= row["round"] <= person["round"]:
        yield f"{what} is of a round that the person has not begun."
    if not person["consented_at"] <= row["sent_at"] <= row["received_at"]:
        yield f"{what} has times that are out of order."


def snapshot_problems(connection: Connection, design: Design, folder: Path) -> list[str]:
    """An export against its manifest and the database: what was exported must still be there, unless it was withdrawn."""
    found = list(export_problems(folder))
    if found:
        return found
    exported, tables = read_export(folder)
    if exported.hash != design.hash:
        return [f"{folder} is an export of another study."]
    now = collect(connection, design)
    gone = {row["participant"] for row in now.people if row["status"] == "withdrawn"}
    known = {(row["participant"], row["round"], row["trial"]): row for row in now.answers}
    for row in tables.answers:
        mine = known.get((row["participant"], row["round"], row["trial"]))
        what = f"answer {row['trial']} of {row['participant']}"
        if mine is None and row["participant"] not in gone:
            found.append(f"{folder} has {what}, which the database does not have.")
        elif mine is not None and any(
            row[c] != mine[c] for c in ("condition", "item", "options", "choice", "correct", "seconds")
        ):
            found.append(f"{folder} and the database differ in {what}.")
    withdrawn = len(gone & {row["participant"] for row in tables.answers})
    if withdrawn:
        found.append(f"{folder} has answers of {withdrawn} people who withdrew later: delete it, and export again.")
    return found
