"""The database → tables that anyone can read, one mapping per row.

Anonymised unless asked otherwise: no hashes of external ids, days instead of times of day, and times relative to the consent.
Rows are sorted by the random id of the person, not by arrival.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, func, select

from ..design.design import Design
from ..design.schedule import Plan, plan
from .tables import answers, events, participants, responses, studies

Rows = list[dict[str, Any]]
DEVICE = ("window_width", "window_height", "pixel_ratio", "touch")


class ExportError(ValueError):
    """The export cannot be made or read, in one sentence."""


@dataclass(frozen=True)
class Tables:
    """What is exported, one mapping per row."""

    answers: Rows
    people: Rows
    events: Rows
    responses: Rows


def collect(connection: Connection, design: Design, identified: bool = False) -> Tables:
    """Read every table; the number of rows is checked against the number of committed answers."""
    of = connection.execute(select(studies.c.design_hash)).scalars().all()
    if set(of) - {design.hash}:
        raise ExportError("The database belongs to another design; give the folder of the study that it was made for.")
    own = {row["id"]: dict(row) for row in connection.execute(select(participants)).mappings()}
    given, said, noted = (rows_of(connection, table) for table in (answers, responses, events))
    plans = {id: plan(design, row["first_slot"]) for id, row in own.items()}
    people, kept = [], []
    for id, person in own.items():
        mine, forms = given.get(id, []), said.get(id, [])
        rows = answer_rows(design, person, plans[id], mine, identified)
        kept += rows
        people.append(person_row(design, person, plans[id], rows, mine, forms, noted.get(id, []), identified))
    tables = Tables(
        sorted(kept, key=lambda row: (row["participant"], row["trial"], row["round"])),
        sorted(people, key=lambda row: row["participant"]),
        sorted(
            event_rows(own, noted, identified), key=lambda row: (row["participant"] or "~", row["day"], row["seconds"] or 0)
        ),
        sorted(response_rows(own, said, identified), key=lambda row: (row["participant"], row["seconds"])),
    )
    committed = connection.execute(select(func.count()).select_from(answers)).scalar_one()
    if len(tables.answers) != committed:
        raise ExportError(f"The database has {committed} answers, but {len(tables.answers)} belong to a person; run verify.")
    return tables


def rows_of(connection, table):
    """participant id → rows, in the order of the table."""
    found: dict[int | None, Rows] = defaultdict(list)
    for row in connection.execute(select(table).order_by(table.c.id)).mappings():
        found[row["participant_id"]].append(dict(row))
    return found


def trials_done(person: dict[str, Any], schedule: Plan) -> int:
    return sum(step.kind == "trial" for step in schedule.steps[: person["step"]])


def superseded(person: dict[str, Any], schedule: Plan, rows: Rows) -> list[bool]:
    """Was the block begun again after this answer? Then the person was, or will be, asked once more."""
    last: dict[int, int] = {}
    for row in rows:
        last[row["trial"]] = max(row["round"], last.get(row["trial"], 0))
    done = trials_done(person, schedule)
    return [row["round"] < last[row["trial"]] or row["trial"] >= done for row in rows]


def of_person(person: dict[str, Any], schedule: Plan) -> dict[str, Any]:
    """The columns that every row of a person begins with."""
    return {
        "participant": person["public_id"],
        "phase": person["phase"],
        "simulated": person["simulated"],
        "status": person["status"],
        "slot": person["first_slot"],
        "cell": str(schedule.cell),
    }


def answer_rows(design, person, schedule, rows, identified):
    items, labels = {item.id: item for item in design.items}, {group.id: group.label for group in design.groups}
    found = []
    for row, old in zip(rows, superseded(person, schedule, rows), strict=True):
        item = items.get(row["item"])
        record = of_person(person, schedule) | {
            "round": row["round"],
            "superseded": old,
            "trial": row["trial"],
            "block": row["block"],
            "condition": row["condition"],
            "item": row["item"],
            "item_set": item.item_set if item else None,
            "item_name": item.name if item else None,
            "explanation": design.explanation_behind(item) if item else None,
            "options": " ".join(str(option) for option in row["options"]),
            "right_choice": item.correct if item else None,
            "choice": row["choice"],
            "choice_label": labels.get(row["choice"]),
            "correct": row["correct"],
            "seconds": seconds(row["sent_at"], row["received_at"]),
            "browser_seconds": seconds(row["shown_ms"], row["submitted_ms"]),
            "first_input_seconds": seconds(row["shown_ms"], row["first_input_ms"]),
            "hidden_seconds": seconds(0, row["hidden_ms"]),
            "blur_count": row["blur_count"],
            "timing_differs": row["timing_differs"],
            "after_consent": seconds(person["consented_at"], row["sent_at"]),
        }
        record |= {f"rating_{likert.id}": row["ratings"].get(likert.id) for likert in design.item_ratings}
        if identified:
            record |= {"sent_at": moment(row["sent_at"]), "received_at": moment(row["received_at"])}
        found.append(record)
    return found


def person_row(design, person, schedule, rows, own_answers, forms, noted, identified):
    latest: dict[tuple[str, str], Any] = {}
    for form in sorted(forms, key=lambda form: form["round"]):
        latest[form["kind"], form["ref"]] = form["values"]
    asked = [check for check in design.checks if check.after]
    checks = {check.id: choice_of(latest.get(("check", check.id))) for check in asked}
    times = sorted([person["consented_at"], *(row["received_at"] for row in (*own_answers, *forms))])
    pauses = [late - early for early, late in pairwise(times)]
    valid = [row for row in rows if not row["superseded"]]
    record = of_person(person, schedule) | {
        "order": " then ".join(schedule.cell.order),
        "item_sets": " then ".join(schedule.cell.sets),
        "consented_on": day(person["consented_at"]),
        "finished_on": day(person["finished_at"]),
        "step": person["step"],
        "steps": len(schedule.steps),
        "rounds": person["round"],
        "answers": len(valid),
        "superseded_answers": len(rows) - len(valid),
        "right_answers": sum(bool(row["correct"]) for row in valid),
        "checks_failed": sum(checks[check.id] is not None and checks[check.id] != check.correct for check in asked),
        "misunderstandings": sum(row["kind"] == "misunderstood" for row in noted),
        "total_seconds": seconds(person["consented_at"], person["finished_at"]),
        "longest_pause_seconds": max(pauses) / 1000 if pauses else None,
    }
    device: dict[str, Any] = next((row["detail"] for row in noted if row["kind"] == "device"), {})
    record |= {name: device.get(name) for name in DEVICE}
    record |= {f"check_{check.id}": checks[check.id] for check in asked}
    record |= {f"practice_{item.id}": choice_of(latest.get(("practice", item.id))) for item in design.of_set("practice")}
    rated = {name: latest.get(("ratings", str(block))) or {} for block, name in enumerate(schedule.cell.order)}
    for likert in design.block_ratings:
        record |= {f"rating_{likert.id}_{c.id}": rated.get(c.id, {}).get(likert.id) for c in design.conditions}
    for prefix, kind, parts in (
        ("about", "demographics", design.demographics),
        ("likert", "questionnaire", design.questionnaire),
    ):
        values = latest.get((kind, "")) or {}
        record |= {f"{prefix}_{part.id}": values.get(part.id) for part in parts}
    if identified:
        record |= {
            "external_hash": person["external_hash"],
            "other_hashes": json.dumps(person["other_hashes"], sort_keys=True),
            "consented_at": moment(person["consented_at"]),
            "last_seen_at": moment(person["last_seen_at"]),
            "finished_at": moment(person["finished_at"]),
        }
    return record


def choice_of(values):
    return values.get("choice") if isinstance(values, dict) else values


def event_rows(own, noted, identified):
    for id, rows in noted.items():
        person = own.get(id)
        for row in rows:
            record = {
                "participant": person["public_id"] if person else None,
                "kind": row["kind"],
                "day": day(row["at"]),
                "seconds": seconds(person["consented_at"], row["at"]) if person else None,
                "detail": json.dumps(row["detail"], sort_keys=True),
            }
            yield record | ({"at": moment(row["at"])} if identified else {})


def response_rows(own, said, identified):
    for id, rows in said.items():
        for row in rows if id in own else ():
            record = {
                "participant": own[id]["public_id"],
                "round": row["round"],
                "kind": row["kind"],
                "ref": row["ref"],
                "values": json.dumps(row["values"], ensure_ascii=False, sort_keys=True),
                "seconds": seconds(own[id]["consented_at"], row["received_at"]),
            }
            yield record | ({"received_at": moment(row["received_at"])} if identified else {})


def seconds(start, end):
    """Between two times in milliseconds."""
    return None if start is None or end is None else (end - start) / 1000


def moment(ms):
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def day(ms):
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
