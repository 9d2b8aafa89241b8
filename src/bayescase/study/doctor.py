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

from ..explaining.words import counted
from ..lda import has_lda
from ..web.keys import KEY
from ..web.password import ADMIN
from .analysis.generalise import FEWEST
from .data import journal
from .data.database import DATABASE, WAL_SINCE, StoreError, milliseconds, opened, reading
from .data.export import ExportError
from .data.export_folder import export, read_export
from .data.tables import events, participants
from .data.verify import verify
from .design.design import PLACEHOLDER, PRACTICE, Design, DesignError
from .design.design_file import frozen_hash, media_problems, read_design, unfinished
from .design.wording import ENDINGS
from .simulate import REHEARSALS

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
    else:
        empty = [name for name in ("information", "consent", "contact") if not getattr(design.texts, name).strip()]
        words = f"These texts are empty: {', '.join(empty)}."
        yield Line(PROBLEM, "texts", words) if empty else Line(OK, "texts", "nothing is left to fill in")
    for wrong in media_problems(design, folder):
        yield Line(PROBLEM, "pictures", wrong)
    yield from of_endings(design)
    yield from of_items(design)
    if "lda" in design.labels:
        told = design.made.get("lda")
        words = "The design does not say where the topics come from; note it in your protocol."
        yield Line(OK, "topics", str(told)) if told else Line(WARNING, "topics", words)
        if not has_lda():
            yield Line(
                WARNING, "LDA", "tomotopy is not installed, so no new topics can be fitted: pip install 'bayescase[study]'"
            )
    if design.mode == "paper":
        words = "Item sets are fixed to conditions, as in the paper: there will be no verdicts. Better: crossed."
        yield Line(WARNING, "cells", words)
    elif design.layout == "between":
        yield Line(OK, "cells", "each person meets one condition, and all items")
    else:
        yield Line(OK, "cells", "item sets change conditions from person to person")
    if not any(check.after for check in design.checks):
        yield Line(WARNING, "attention", "There is no attention check.")
    yield from of_explanations(design)
    yield from of_plan(design)
    yield from of_admission(design)


def of_explanations(design: Design) -> Iterator[Line]:
    n = len({design.explanation_behind(item) for item in design.items if item.item_set != PRACTICE})
    if n < FEWEST:
        words = f"Answers depend on {n} explanations per condition; nothing can be said of their kind with fewer than {FEWEST}."
        yield Line(WARNING, "explanations", words)
    else:
        yield Line(OK, "explanations", f"answers depend on {n} per condition")
    if design.order == "given":
        words = (
            "The words of a card keep the order of their files; if it differs between conditions, it may pass for an effect."
        )
        yield Line(WARNING, "order", words)
    blank = [e.source for e in design.explanations if e.stimulus.kind == "picture" and not e.stimulus.text]
    blank += [item.id for item in design.items if item.stimulus.kind == "picture" and not item.stimulus.text]
    if blank:
        words = (
            f"{len(blank)} pictures have no words for people who cannot see them, such as {blank[0]}: NAME.alt.txt has them."
        )
        yield Line(WARNING, "pictures", words)


def of_plan(design: Design) -> Iterator[Line]:
    lacks = [name for name, value in (("hypotheses", design.plan.hypotheses), ("stopping", design.plan.stopping)) if not value]
    lacks += ["sample_size"] if design.plan.sample_size is None else []
    if lacks:
        words = f"plan in design.json lacks {', '.join(lacks)}: bayescase study power helps with the number of people."
        yield Line(WARNING, "plan", words)
    else:
        yield Line(OK, "plan", f"{design.plan.sample_size} people; the primary outcome is {design.plan.primary}")


def of_admission(design: Design) -> Iterator[Line]:
    rule = design.rules.admission
    if rule.who == "open":
        words = "Anybody who has the address can take part, again and again: better 'id' or 'invited' in rules.admission."
        yield Line(WARNING, "admission", words)
    else:
        yield Line(OK, "admission", f"{rule.who}: by {rule.id_parameter} in the address")
    if rule.quota is None:
        yield Line(WARNING, "quota", "There is no quota, so people are admitted without end; rules.admission.quota sets one.")
    if design.rules.keep_days is None:
        words = "Hashes of ids are kept for ever; rules.keep_days says after how many days `study forget` deletes them."
        yield Line(WARNING, "retention", words)


def of_endings(design: Design) -> Iterator[Line]:
    endings = {name: getattr(design.rules, name) for name in ENDINGS}
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
    flagged = [item.id for item in design.items if item.flags and item.item_set != PRACTICE]
    if flagged:
        yield Line(WARNING, "items", f"Look at {', '.join(flagged)}: their flags in design.json say why.")
    else:
        yield Line(OK, "items", "none is flagged")
    if "model" not in design.made:
        return
    coders = design.made.get("coders")
    words = "What is right was not coded by two people; the paper had two coders. bayescase study new reads their table."
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
            "The monitor has no password, so only this machine can be served; bayescase study serve sets one.",
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
            yield from of_rehearsals(folder, design)
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


def of_rehearsals(folder: Path, design: Design) -> Iterator[Line]:
    """Where there are no data yet."""
    seals = [place.parent for place in (folder / REHEARSALS).glob(f"*/{DATABASE}")]
    same = sum(frozen_hash(place) == design.hash for place in seals)
    if same:
        yield Line(OK, "data", f"none yet; {counted(same, 'rehearsal')} of this design")
    else:
        yield Line(WARNING, "data", f"There are none yet. Try it out first: bayescase study simulate {folder}")


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
            WARNING, "pilot", "Nobody has tried it out to the end yet: bayescase study simulate, or serve it as a pilot."
        )
    live_fakes = done.get(("live", True), 0)
    if live_fakes:
        yield Line(WARNING, "pilot", f"{live_fakes} simulated people are in the live phase; the analysis leaves them out.")
