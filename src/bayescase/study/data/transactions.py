"""Every change is one transaction, then the second copy; only then may the person see the next page.

The same code for SQLite and PostgreSQL. On PostgreSQL rows are locked: first the study's, where slots are given, then the
person's, always in this order.
"""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from ...web.keys import Keys
from ..design.design import Design
from ..design.schedule import Plan, plan
from . import journal as journals
from .database import StoreError, milliseconds, passes
from .journal import Journal, record_of
from .tables import events, notes, participants, studies

TRIES = 8
Records = list[dict[str, Any]]


class Transactions:
    """The data of a study, and how they are changed."""

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        design: Design,
        keys: Keys,
        phase: str = "live",
        simulated: bool = False,
        clock: Callable[[], int] = milliseconds,
    ):
        self.folder, self.engine, self.design, self.keys = Path(folder), engine, design, keys
        self.phase, self.simulated, self.clock = phase, simulated, clock
        self.journal = Journal(self.folder, time.strftime("%Y%m%dT%H%M%S", time.gmtime()))
        self.plan: Callable[[int], Plan] = lru_cache(4096)(lambda slot: plan(design, slot))
        self._behind = False  # the journal may lack rows: the disk was full, or the database went away during a commit
        # SQLite lets one write at a time, and those who wait ask again and again: a queue of our own is fair, and faster.
        self._turn = threading.Lock() if engine.dialect.name == "sqlite" else nullcontext()

    def close(self) -> None:
        self.journal.close()
        self.engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self.engine.connect().execution_options(writes=False) as connection:
            yield connection

    def write(self, work: Callable[[Connection, Records], Any]) -> Any:
        """work(connection, records) in one transaction; then the records in the journal."""
        if self._behind:
            self.catch_up()
        for attempt in range(TRIES):
            records: Records = []
            try:
                with self._turn, self.engine.begin() as connection:
                    result = work(connection, records)
                break
            except DBAPIError as error:
                self._behind |= error.connection_invalidated  # it may have been committed, unheard
                if attempt + 1 == TRIES or not passes(error):
                    raise
                time.sleep(0.02 * 2**attempt * (0.5 + secrets.randbelow(100) / 100))
        try:
            self.journal.append(records)
            if self._behind:
                self.catch_up()
        except OSError:
            self._behind = True
            raise
        return result

    def insert(
        self, connection: Connection, records: Records, table: Table, public_id: str | None, values: dict[str, Any]
    ) -> int:
        made = connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
        records.append(record_of(table.name, public_id, values | {"id": made}))
        return made

    def event(self, connection: Connection, records: Records, person: Row | None, kind: str, **detail: Any) -> None:
        id, public_id = (None, None) if person is None else (person.id, person.public_id)
        values = {"participant_id": id, "at": self.clock(), "kind": kind, "detail": detail}
        self.insert(connection, records, events, public_id, values)

    def claim(self) -> None:
        """The data belong to this design, and to this key."""

        def work(connection, _):
            found = connection.execute(select(studies)).first()
            mark = self.keys.digest("key")
            if found is None:
                connection.execute(insert(studies).values(id=1, design_hash=self.design.hash, created_at=self.clock()))
                connection.execute(insert(notes).values(name="key", value=mark))
            elif found.design_hash != self.design.hash:
                raise StoreError(
                    f"The data of {self.folder} belong to another design; serve that one, or use another database."
                )
            elif connection.execute(select(notes.c.value).where(notes.c.name == "key")).scalar() != mark:
                raise StoreError(
                    f"secret.key in {self.folder} is not the one that the study began with; restore it from a copy."
                )

        try:
            self.write(work)
        except IntegrityError:  # another server was faster
            self.write(work)

    def catch_up(self) -> int:
        """Journal what was kept but not journalled, since the server was killed in between, or the disk was full."""
        self._behind = False  # first, so that what goes wrong meanwhile is not overlooked
        try:
            with self.reading() as connection:
                gone = select(participants.c.public_id).where(participants.c.status == "withdrawn")
                self.journal.redact(connection.execute(gone).scalars())
                rows = journals.stored(connection)
            seen = {journals.name_of(record) for record in journals.read_journal(self.folder)}
            missing = [record | {"recovered": True} for name, record in rows.items() if name not in seen]
            self.journal.append(missing)
        except BaseException:
            self._behind = True
            raise
        return len(missing)


def locked(connection: Connection, person: Row) -> Row | None:
    """The person's row as it is now; nobody else changes it before the transaction ends."""
    return connection.execute(select(participants).where(participants.c.id == person.id).with_for_update()).first()


def lock_study(connection: Connection) -> None:
    """One at a time, where slots are given."""
    connection.execute(select(studies.c.id).with_for_update()).first()


def change(connection: Connection, person: Row, **values: Any) -> None:
    connection.execute(update(participants).where(participants.c.id == person.id).values(**values))
