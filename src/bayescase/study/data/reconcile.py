"""A recruiting platform's list of ids beside the study: who is complete, who should be paid. Ids are hashed, never stored."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, select

from ...errors import Advice, Setting, TableError
from ...web.keys import Keys
from .tables import participants, spent_ids

MISSING = "not here"


class Reconciled(NamedTuple):
    id: str
    status: str  # "complete", …, or MISSING
    answers_kept: bool
    code: str  # that the person was shown in the end


class Reconciliation(NamedTuple):
    rows: list[Reconciled]
    unlisted: int  # people of the study whose id is not on the list
    without_id: int  # people of the study who came without an id


def read_ids(path: Path, column: str | None) -> list[str]:
    """Ids of a CSV file: of a column, by its name, or of the only one."""
    try:
        rows = list(csv.DictReader(io.StringIO(Path(path).read_text("utf-8-sig"))))
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8.") from None
    names = list(rows[0]) if rows else []
    if not names:
        raise ValueError(f"{path} has no rows.")
    if column is None and len(names) > 1:
        raise TableError(
            "{path} has the columns {names}.",
            Advice("say with {} which has the ids", Setting("column")),
            path=path,
            names=", ".join(names),
        )
    wanted = column if column is not None else names[0]
    if wanted not in names:
        raise ValueError(f"{path} has no column {wanted!r}; it has {', '.join(names)}.")
    return [row[wanted].strip() for row in rows if row[wanted] and row[wanted].strip()]


def reconcile(connection: Connection, keys: Keys, codes: dict[str, str], ids: Iterable[str], phase: str) -> Reconciliation:
    """`codes`: status → the code of its ending."""
    here = select(participants.c.external_hash, participants.c.status).where(participants.c.phase == phase)
    people = connection.execute(here).all()
    known = {row.external_hash: row.status for row in people if row.external_hash is not None}
    gone = set(connection.execute(select(spent_ids.c.external_hash).where(spent_ids.c.phase == phase)).scalars())
    rows, seen = [], set()
    for id in ids:
        mark = keys.digest("external", id)
        seen.add(mark)
        status = known.get(mark) or ("withdrawn" if mark in gone else MISSING)
        rows.append(Reconciled(id, status, status not in ("withdrawn", MISSING), codes.get(status, "")))
    without = sum(row.external_hash is None and row.status != "withdrawn" for row in people)
    return Reconciliation(rows, len(set(known) - seen), without)
