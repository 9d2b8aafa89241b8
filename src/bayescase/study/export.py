"""The database → a folder of tables that anyone can read, with a codebook and a manifest of hashes. Whole, or not there.

Anonymised unless asked otherwise: no hashes of external ids, days instead of times of day, and times relative to the consent.
Rows are sorted by the random id of the person, not by arrival.
"""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, func, select
from sqlalchemy.exc import SQLAlchemyError

from .. import __version__
from .design import DESIGN, Design, DesignError, read_design, write_design
from .schedule import Plan, plan
from .store import DATABASE, StoreError, connect, reason
from .tables import answers, events, participants, responses, studies

FORMAT, VERSION = "bayescase study export", 1
DATA, MANIFEST = "data.json", "manifest.json"
RISKY = tuple("=+-@\t\r\n＝＋－＠")  # at the beginning of a cell, a spreadsheet may run what follows
Rows = list[dict[str, Any]]


class ExportError(ValueError):
    """The export cannot be made or read, in one sentence."""


@dataclass(frozen=True)
class Tables:
    """What is exported, one mapping per row."""

    answers: Rows
    people: Rows
    events: Rows
    responses: Rows


# --- from the database ----------------------------------------------------------------------------------------------------


@contextmanager
def opened(folder: Path, database: str | None = None) -> Iterator[Engine]:
    """The database of a study that has data; what goes wrong with it is one sentence."""
    if database is None and not (Path(folder) / DATABASE).exists():
        raise StoreError(f"There are no data in {folder} yet; collect some with: bayescase study serve {folder}")
    engine = connect(folder, database)
    try:
        yield engine
    except SQLAlchemyError as error:
        raise StoreError(f"The database cannot be read: {reason(error)}") from error
    finally:
        engine.dispose()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One read transaction: everything read in it is of the same moment."""
    options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {"writes": False}
    with engine.connect().execution_options(**options) as connection:
        yield connection


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
        people.append(person_row(design, person, plans[id], rows, mine, forms, identified))
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


def answer_rows(design, person, schedule, rows, identified):
    items = {item.id: item for item in design.items}
    found = []
    for row, old in zip(rows, superseded(person, schedule, rows), strict=True):
        item = items.get(row["item"])
        record = {
            "participant": person["public_id"],
            "phase": person["phase"],
            "simulated": person["simulated"],
            "status": person["status"],
            "slot": person["first_slot"],
            "cell": str(schedule.cell),
            "round": row["round"],
            "superseded": old,
            "trial": row["trial"],
            "block": row["block"],
            "condition": row["condition"],
            "item": row["item"],
            "item_set": item.item_set if item else None,
            "item_name": item.name if item else None,
            "options": " ".join(str(option) for option in row["options"]),
            "right_choice": item.correct if item else None,
            "choice": row["choice"],
            "correct": row["correct"],
            "seconds": seconds(row["sent_at"], row["received_at"]),
            "browser_seconds": seconds(row["shown_ms"], row["submitted_ms"]),
            "first_input_seconds": seconds(row["shown_ms"], row["first_input_ms"]),
            "hidden_seconds": seconds(0, row["hidden_ms"]),
            "blur_count": row["blur_count"],
            "timing_differs": row["timing_differs"],
            "after_consent": seconds(person["consented_at"], row["sent_at"]),
        }
        if identified:
            record |= {"sent_at": moment(row["sent_at"]), "received_at": moment(row["received_at"])}
        found.append(record)
    return found


def person_row(design, person, schedule, rows, own_answers, forms, identified):
    latest: dict[tuple[str, str], Any] = {}
    for form in sorted(forms, key=lambda form: form["round"]):
        latest[form["kind"], form["ref"]] = form["values"]
    checks = {check.id: choice_of(latest.get(("check", check.id))) for check in design.checks}
    times = sorted([person["consented_at"], *(row["received_at"] for row in (*own_answers, *forms))])
    pauses = [late - early for early, late in pairwise(times)]
    valid = [row for row in rows if not row["superseded"]]
    record = {
        "participant": person["public_id"],
        "phase": person["phase"],
        "simulated": person["simulated"],
        "status": person["status"],
        "slot": person["first_slot"],
        "cell": str(schedule.cell),
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
        "checks_failed": sum(checks[check.id] is not None and checks[check.id] != check.correct for check in design.checks),
        "total_seconds": seconds(person["consented_at"], person["finished_at"]),
        "longest_pause_seconds": max(pauses) / 1000 if pauses else None,
    }
    record |= {f"check_{check.id}": checks[check.id] for check in design.checks}
    record |= {f"practice_{item.id}": choice_of(latest.get(("practice", item.id))) for item in design.of_set("practice")}
    for prefix, kind, parts in (
        ("about", "demographics", design.demographics),
        ("likert", "questionnaire", design.questionnaire),
    ):
        values = latest.get((kind, "")) or {}
        record |= {f"{prefix}_{part.id}": values.get(part.id) for part in parts}
    if identified:
        record |= {
            "external_hash": person["external_hash"],
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
                "detail": json.dumps(row["detail"] if identified else without_hashes(row["detail"]), sort_keys=True),
            }
            yield record | ({"at": moment(row["at"])} if identified else {})


def without_hashes(detail):
    """Ids of a recruiting platform are kept as hashes, which whoever has the key can recognise."""
    return {key: value for key, value in detail.items() if not re.fullmatch("[0-9a-f]{64}", str(value))}


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


# --- to a folder ----------------------------------------------------------------------------------------------------------


def export(engine: Engine, design: Design, folder: str | os.PathLike, identified: bool = False) -> dict[str, Any]:
    """Write the folder, which must be empty or new, and return its manifest."""
    folder = Path(folder)
    check_empty(folder)
    with reading(engine) as connection:
        tables = collect(connection, design, identified)
    return write(tables, design, folder, identified)


def check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder} is there and not empty; an export goes into a new folder.")
    if not folder.absolute().parent.is_dir():
        raise ExportError(f"There is no folder {folder.absolute().parent} to put {folder.name} in.")


def write(tables: Tables, design: Design, folder: Path, identified: bool) -> dict[str, Any]:
    book = codebook(design, identified)
    named = {"answers": tables.answers, "people": tables.people, "events": tables.events, "responses": tables.responses}
    files = {f"{name}.csv": as_csv(rows, [column["name"] for column in book[f"{name}.csv"]]) for name, rows in named.items()}
    files[DATA] = as_json({"format": FORMAT, "version": VERSION, "identified": identified} | named)
    files["codebook.json"] = as_json(book)
    files["codebook.md"] = in_markdown(book, design, identified).encode()
    with making(folder) as temporary:
        write_design(design, temporary)
        for name, content in files.items():
            with open(temporary / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        counts = {f"{name}.csv": len(rows) for name, rows in named.items()}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "bayescase": __version__,
            "design_hash": design.hash,
            "identified": identified,
            "committed_answers": len(tables.answers),
            "files": {
                path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
                | ({"rows": counts[path.name]} if path.name in counts else {})
                for path in sorted(temporary.iterdir())
            },
        }
        (temporary / MANIFEST).write_bytes(as_json(manifest))
    return manifest


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """A folder that appears under its name once it is whole."""
    temporary = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        os.chmod(temporary, 0o700)
        os.rename(temporary, folder)  # onto an empty folder or nothing; anything else is an error
    except OSError as error:
        raise ExportError(f"{folder} could not be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def as_json(value) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(rows: Rows, columns: list[str]) -> bytes:
    """UTF-8, commas, CRLF, as RFC 4180 has it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue().encode()


def cell(value) -> str:
    """Numbers as they are; text that a spreadsheet might run gets an apostrophe in front, as does text that begins with one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return f"'{value}" if str(value).startswith((*RISKY, "'")) else str(value)


def uncell(text: str) -> str:
    """The text of a cell as it was given."""
    return text.removeprefix("'")


# --- codebook -------------------------------------------------------------------------------------------------------------

WHO = (
    ("participant", "text", "random id of the person"),
    ("phase", "text", "pilot or live"),
    ("simulated", "true or false", "made by the software, not a person"),
    ("status", "text", "active, complete, timed out or withdrawn"),
    ("slot", "number", "place in the schedule; the plan of the person follows from it and the design"),
    ("cell", "text", "order of the blocks, with the item set of each"),
)
ANSWERS = (
    *WHO,
    ("round", "number", "how often a block had been begun again when the answer was given"),
    ("superseded", "true or false", "the block was begun again later; the analysis leaves the answer out"),
    ("trial", "number", "question, from 0, through all blocks"),
    ("block", "number", "from 0"),
    ("condition", "text", "how the clusters were explained: bcm, lda or subspace"),
    ("item", "text", "id of the case that was shown"),
    ("item_set", "text", "A, B or C"),
    ("item_name", "text", "name of the case; not shown to the person"),
    ("options", "text", "clusters that were offered, from top to bottom"),
    ("right_choice", "number", "cluster that is right"),
    ("choice", "number", "cluster that was chosen"),
    ("correct", "true or false", "was it right?"),
    (
        "seconds",
        "number",
        "from the first sending of the question to its answer, by the server; reloads and the network included",
    ),
    ("browser_seconds", "number", "from the showing of the question to its answer, by the browser; empty without JavaScript"),
    ("first_input_seconds", "number", "from the showing to the first choice, by the browser"),
    ("hidden_seconds", "number", "how long the page was hidden behind another, by the browser"),
    ("blur_count", "number", "how often the page lost the focus, by the browser"),
    ("timing_differs", "true or false", "the browser's time is longer than the server's allows"),
    ("after_consent", "number", "seconds from the consent to the sending of the question"),
)
PEOPLE = (
    *WHO,
    ("order", "text", "conditions in the order of the blocks"),
    ("item_sets", "text", "item sets in the order of the blocks"),
    ("consented_on", "date", "day of the consent, UTC"),
    ("finished_on", "date", "day of the end, UTC; empty if there was none"),
    ("step", "number", "pages passed"),
    ("steps", "number", "pages in all"),
    ("rounds", "number", "how often a block was begun again"),
    ("answers", "number", "answers that count"),
    ("superseded_answers", "number", "answers of blocks that were begun again"),
    ("right_answers", "number", "right answers among those that count"),
    ("checks_failed", "number", "attention checks answered wrongly"),
    ("total_seconds", "number", "from the consent to the end"),
    ("longest_pause_seconds", "number", "longest time between two forms that were sent"),
)
EVENTS = (
    ("participant", "text", "random id of the person; empty if it is about nobody"),
    ("kind", "text", "what happened"),
    ("day", "date", "UTC"),
    ("seconds", "number", "since the consent of the person"),
    ("detail", "JSON", "more about it"),
)
RESPONSES = (
    ("participant", "text", "random id of the person"),
    ("round", "number", "how often a block had been begun again"),
    ("kind", "text", "demographics, practice, check, questionnaire"),
    ("ref", "text", "id of the practice item or check"),
    ("values", "JSON", "what was entered"),
    ("seconds", "number", "since the consent of the person"),
)
EXACT = {
    "answers": (("sent_at", "time", "first sending, UTC"), ("received_at", "time", "arrival of the answer, UTC")),
    "people": (
        ("external_hash", "text", "keyed hash of the id at a recruiting platform"),
        ("consented_at", "time", "UTC"),
        ("last_seen_at", "time", "last request, UTC"),
        ("finished_at", "time", "UTC"),
    ),
    "events": (("at", "time", "UTC"),),
    "responses": (("received_at", "time", "UTC"),),
}


def codebook(design: Design, identified: bool) -> dict[str, list[dict[str, str]]]:
    """file → its columns: name, kind, meaning."""
    asked = []
    for check in design.checks:
        right = check.options[check.correct]
        asked.append((f"check_{check.id}", "number", f"“{check.text}” {numbered(check.options)}; right is {right}"))
    for item in design.of_set("practice"):
        asked.append(
            (f"practice_{item.id}", "number", f"cluster chosen for the practice item {item.name}; right is {item.correct}")
        )
    for field in design.demographics:
        kind = "number" if field.kind == "number" else "text"
        asked.append((f"about_{field.id}", kind, f"“{field.label}” {', '.join(field.options)}".strip()))
    for likert in design.questionnaire:
        asked.append((f"likert_{likert.id}", "number", f"“{likert.text}” {numbered(likert.labels)}"))
    all_columns = {"answers": ANSWERS, "people": (*PEOPLE, *asked), "events": EVENTS, "responses": RESPONSES}
    return {
        f"{name}.csv": [
            {"name": column, "kind": kind, "meaning": meaning}
            for column, kind, meaning in (*columns, *(EXACT[name] if identified else ()))
        ]
        for name, columns in all_columns.items()
    }


def numbered(words) -> str:
    return ", ".join(f"{i}: {word}" for i, word in enumerate(words))


ABOUT = """# Codebook: {title}

Design {hash}, written by bayescase {version}.

- `answers.csv` has one row per answer, `people.csv` one per person, `events.csv` one per event, `responses.csv` one per other
  form. `data.json` has all four; `design.json` is the study itself; `manifest.json` has the SHA-256 and the number of rows of
  each file.
- {privacy}
- Text that begins with one of `= + - @`, a tab, a line break or an apostrophe has one apostrophe put in front in the CSV files,
  so that no spreadsheet runs it; remove the first apostrophe of a text to get it back. Numbers are never changed.
- An empty cell is missing. Free text was written by participants and may name people; read it before you publish it.
"""
ANONYMISED = (
    "Anonymised: no hashes of external ids, days instead of exact times. Times are relative to the consent of the person. Rows "
    "are sorted by the random ids; the slots still tell roughly who came before whom."
)
IDENTIFIED = "**Not anonymised**: it has exact times and hashes of external ids. Do not publish it."


def in_markdown(book, design, identified):
    text = ABOUT.format(
        title=" ".join(design.title.split()),
        hash=design.hash,
        version=__version__,
        privacy=IDENTIFIED if identified else ANONYMISED,
    )
    for name, columns in book.items():
        text += f"\n## {name}\n\n| column | kind | meaning |\n|---|---|---|\n"
        for column in columns:
            meaning = " ".join(column["meaning"].split()).replace("|", "\\|")
            text += f"| `{column['name']}` | {column['kind']} | {meaning} |\n"
    return text


# --- back -----------------------------------------------------------------------------------------------------------------


def read_export(folder: str | os.PathLike) -> tuple[Design, Tables]:
    """The design and the tables of an exported folder, if every file is as it was written."""
    folder = Path(folder)
    for wrong in export_problems(folder):
        raise ExportError(wrong)
    value = json.loads((folder / DATA).read_text("utf-8"))
    return read_design(folder), Tables(*(value[name] for name in ("answers", "people", "events", "responses")))


def export_problems(folder: Path) -> Iterator[str]:
    """How an exported folder differs from its manifest, one sentence each."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise ValueError("it is of another kind or version")
        files = {name: of["sha256"] for name, of in manifest["files"].items()}
    except FileNotFoundError:
        yield f"{folder} is not an export: there is no {MANIFEST} in it."
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"{folder / MANIFEST} cannot be read ({error})."
        return
    for name, sha in files.items():
        path = folder / name
        if not path.is_file():
            yield f"{name} is missing from {folder}."
        elif hashlib.sha256(path.read_bytes()).hexdigest() != sha:
            yield f"{name} in {folder} was changed after the export."
    for name in (DATA, DESIGN):
        if name not in files:
            yield f"The manifest of {folder} does not name {name}."
    try:
        if (folder / DESIGN).is_file() and read_design(folder).hash != manifest.get("design_hash"):
            yield f"{DESIGN} in {folder} is not the design that the manifest names."
    except DesignError as error:
        yield str(error)
