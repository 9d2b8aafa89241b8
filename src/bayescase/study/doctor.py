"""Before going live: is everything ready? Each line is ok, a warning or a problem, and says what to do. Nothing is changed."""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from ..lda import has_lda
from ..web.keys import KEY
from ..web.password import ADMIN
from .analysis.ratings import PARTS
from .data import journal
from .data.database import DATABASE, WAL_SINCE, StoreError, milliseconds, opened, reading
from .data.export import ExportError
from .data.export_folder import export, read_export
from .data.tables import events, participants
from .data.verify import verify
from .design.design import PLACEHOLDER, Design, DesignError, canonical
from .design.design_file import frozen_hash, read_design, unfinished

OK, WARNING, PROBLEM = "ok", "warning", "problem"
LOW, LEAST = 1_000_000_000, 100_000_000  # bytes
EARLIEST = 1_767_225_600_000  # 2026: a clock before it is wrong


class Line(NamedTuple):
    level: str
    what: str
    words: str


def examine(folder: Path, database: str | None = None, now: int | None = None) -> list[Line]:
    """Every line, the design first."""
    folder = Path(folder)
    try:
        design = read_design(folder)
    except DesignError as error:
        return [Line(PROBLEM, "design", str(error))]
    return [
        *of_design(folder, design),
        *of_machine(folder),
        *of_data(folder, design, database, milliseconds() if now is None else now),
    ]


# --- the design -----------------------------------------------------------------------------------------------------------


def of_design(folder: Path, design: Design) -> Iterator[Line]:
    frozen = frozen_hash(folder)
    yield (
        Line(OK, "design", f"frozen, {frozen[:12]}…")
        if frozen
        else Line(PROBLEM, "design", f"It is not frozen; when it is finished: bayescase study freeze {folder}")
    )
    texts = unfinished(design)
    if texts:
        where = "a copy of design.json in a new folder, as this one is frozen" if frozen else "design.json"
        words = f"Something is to be filled in in {', '.join(texts)}: look for {PLACEHOLDER} in {where}."
        yield Line(PROBLEM, "texts", words)
    elif PLACEHOLDER in canonical(design):
        yield Line(PROBLEM, "texts", f"Something is to be filled in: look for {PLACEHOLDER} in design.json.")
    else:
        empty = [name for name in ("information", "consent", "contact") if not getattr(design.texts, name).strip()]
        words = f"These texts are empty: {', '.join(empty)}."
        yield Line(PROBLEM, "texts", words) if empty else Line(OK, "texts", "nothing is left to fill in")
    yield from of_endings(design)
    yield from of_items(design)
    if "lda" in design.conditions:
        told = design.made.get("lda")
        words = "The design does not say where the topics come from; note it in your protocol."
        yield Line(OK, "topics", str(told)) if told else Line(WARNING, "topics", words)
        if not has_lda():
            yield Line(
                WARNING, "LDA", "tomotopy is not installed, so no new topics can be fitted: pip install 'bayescase[study]'"
            )
    if design.mode == "paper":
        yield Line(
            WARNING,
            "cells",
            "Item sets are fixed to conditions, as in the paper: items may pass for an effect. Better: crossed.",
        )
    else:
        yield Line(OK, "cells", "item sets change conditions from person to person")
    if not design.checks:
        yield Line(WARNING, "attention", "There is no attention check.")
    ends = {question.id.replace("-", "_").rpartition("_")[2] for question in design.questionnaire}
    if design.questionnaire and not ends & {*PARTS, *design.conditions}:
        words = "No rating is asked of each condition, so none can be compared; for that, end their ids in _first and _second."
        yield Line(WARNING, "ratings", words)


def of_endings(design: Design) -> Iterator[Line]:
    endings = {name: getattr(design.rules, name) for name in ("complete", "no_consent", "timed_out")}
    empty = [name for name, ending in endings.items() if not ending.code.strip()]
    if empty:
        yield Line(PROBLEM, "codes", f"These completion codes are empty: {', '.join(empty)}; set them in rules of design.json.")
    elif len({ending.code for ending in endings.values()}) < len(endings):
        yield Line(WARNING, "codes", "Two endings have the same completion code, so a platform cannot tell them apart.")
    else:
        yield Line(OK, "codes", "each ending has its own completion code")
    if not endings["complete"].address:
        yield Line(WARNING, "codes", "There is no address to send people back to; they only see the code. Prolific needs one.")


def of_items(design: Design) -> Iterator[Line]:
    flagged = [item.id for item in design.items if item.flags and item.item_set != "practice"]
    if flagged:
        yield Line(WARNING, "items", f"Look at {', '.join(flagged)}: their flags in design.json say why.")
    else:
        yield Line(OK, "items", "none is flagged")
    coders = design.made.get("coders")
    words = "What is right was not coded by two people; the paper had two coders (bayescase study new --coders)."
    yield Line(OK, "coders", str(coders)) if coders else Line(WARNING, "coders", words)


# --- the machine ----------------------------------------------------------------------------------------------------------


def of_machine(folder: Path) -> Iterator[Line]:
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
        yield Line(OK, "folder", f"{folder} can be written")
    except OSError as error:
        yield Line(PROBLEM, "folder", f"{folder} cannot be written ({error.strerror}); the server needs to.")
    records = folder / journal.FOLDER
    if records.is_dir():
        try:
            with tempfile.TemporaryFile(dir=records):
                yield Line(OK, "journal", f"{records} can be written")
        except OSError as error:
            yield Line(PROBLEM, "journal", f"{records} cannot be written ({error.strerror}).")
    else:
        yield Line(OK, "journal", "is made with the first record")
    free = shutil.disk_usage(folder).free
    words = f"{free / 1e9:.1f} GB are free"
    if free < LEAST:
        yield Line(PROBLEM, "disk", f"Only {free / 1e6:.0f} MB are free; make room before people come.")
    else:
        yield Line(WARNING, "disk", f"{words}; that is little.") if free < LOW else Line(OK, "disk", words)
    if (folder / ADMIN).exists():
        yield Line(OK, "password", "the monitor has one")
    else:
        yield Line(
            WARNING,
            "password",
            "The monitor has no password, so only this machine can be served: serve --admin-password sets one.",
        )
    key = folder / KEY
    if key.exists() and stat.S_IMODE(key.stat().st_mode) & 0o077:
        yield Line(PROBLEM, "key", f"{key} can be read by others: chmod 600 {key}")


# --- the data -------------------------------------------------------------------------------------------------------------


def of_data(folder: Path, design: Design, database: str | None, now: int) -> Iterator[Line]:
    if now < EARLIEST:
        yield Line(
            PROBLEM,
            "clock",
            f"This machine thinks that it is {time.strftime('%Y-%m-%d', time.gmtime(now / 1000))}; set its clock.",
        )
    if database is None:
        wal = sqlite3.sqlite_version_info >= WAL_SINCE
        how = "write-ahead log" if wal else "rollback journal, as its write-ahead log is safe only from 3.51.3"
        yield Line(OK, "SQLite", f"{sqlite3.sqlite_version}: {how}")
        if not (folder / DATABASE).exists():
            words = f"There are none yet. Try it out first: bayescase study simulate {folder}"
            yield Line(WARNING, "data", words)
            return
    try:
        with opened(folder, database) as engine:
            yield from of_database(engine, now)
            with tempfile.TemporaryDirectory() as place:
                manifest = export(engine, design, Path(place) / "export")
                read_export(Path(place) / "export")
            yield Line(OK, "export", f"works: {manifest['committed_answers']} answers")
        wrong = verify(folder, database)
    except (StoreError, ExportError, ImportError) as error:
        yield Line(PROBLEM, "database", str(error))
        return
    if wrong:
        more = f" There are {len(wrong) - 1} more: bayescase study verify {folder}" if len(wrong) > 1 else ""
        yield Line(PROBLEM, "verify", wrong[0] + more)
    else:
        yield Line(OK, "verify", "database, journal and schedule agree")


def of_database(engine, now) -> Iterator[Line]:
    try:
        with engine.connect() as connection:  # on SQLite this takes the lock for writing
            if engine.dialect.name == "sqlite":
                safe = connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            else:
                settings = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in ("fsync", "synchronous_commit")]
                safe = settings[0] == "on" and settings[1] != "off"
                if connection.exec_driver_sql("SELECT pg_is_in_recovery()").scalar():
                    yield Line(PROBLEM, "database", "It is a copy that cannot be written.")
            connection.rollback()
    except SQLAlchemyError as error:
        yield Line(PROBLEM, "database", f"It cannot be written ({getattr(error, 'orig', error)}).")
        return
    words = "PostgreSQL does not wait for the disk; set fsync = on and synchronous_commit = on, or answers may be lost."
    yield Line(OK, "database", "can be written, and waits for the disk") if safe else Line(PROBLEM, "database", words)
    with reading(engine) as connection:
        last = connection.execute(select(func.max(events.c.at))).scalar()
        counts = select(participants.c.phase, participants.c.simulated, func.count()).where(participants.c.status == "complete")
        done = {(phase, bool(fake)): n for phase, fake, n in connection.execute(counts.group_by("phase", "simulated"))}
    if last is not None and last > now + 60_000:
        yield Line(PROBLEM, "clock", "The clock is behind what was stored last; set it before people come.")
    else:
        yield Line(OK, "clock", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(now / 1000)))
    tried = sum(n for (phase, fake), n in done.items() if fake or phase == "pilot")
    if tried:
        yield Line(OK, "pilot", f"{tried} simulated or pilot people have come to the end")
    else:
        yield Line(
            WARNING, "pilot", "Nobody has tried it out to the end yet: bayescase study simulate, or serve without --live."
        )
    live_fakes = done.get(("live", True), 0)
    if live_fakes:
        yield Line(WARNING, "pilot", f"{live_fakes} simulated people are in the live phase; the analysis leaves them out.")
