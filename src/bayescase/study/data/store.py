"""The data of a study, as a server needs them: places, the flow, erasing, and the researcher's sessions."""

import secrets
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import SQLAlchemyError

from ...web.keys import read_keys, sha256
from ..design.design_file import frozen_hash, media_problems, read_design
from .database import DATABASE, MINUTE, StoreError, connect, migrate, milliseconds, reason
from .flow import Flow
from .monitor import PhaseCounts, monitor
from .tables import admin_sessions, answers, events, participants, responses, spent_ids
from .transactions import change, locked

SESSION = 12 * 60 * MINUTE
DAY = 24 * 60 * MINUTE


def open_store(
    folder: Path,
    database: str | None = None,
    *,
    phase: str = "live",
    simulated: bool = False,
    clock: Callable[[], int] = milliseconds,
) -> "Store":
    """Everything that a server needs of a folder with a frozen design. Both copies agree when this returns."""
    folder = Path(folder)
    design = read_design(folder)
    if frozen_hash(folder) is None:
        raise StoreError(f"The design in {folder} is not frozen, so no data can be collected: bayescase study freeze {folder}")
    for wrong in media_problems(design, folder):
        raise StoreError(wrong)
    keys = read_keys(folder)
    if database is None:
        (folder / DATABASE).touch(0o600)  # for its owner's eyes only, like the journal
    engine = connect(folder, database)
    try:
        migrate(engine)
        store = Store(folder, engine, design, keys, phase, simulated, clock)
        store.claim()
        store.catch_up()
    except SQLAlchemyError as error:
        engine.dispose()
        raise StoreError(f"The database cannot be opened: {reason(error)}") from error
    except BaseException:
        engine.dispose()
        raise
    return store


class Store(Flow):
    """The study's data. Every public method that changes something is one transaction, safe to call again after an error."""

    # --- erasing ---

    def withdraw(self, person: Row) -> None:
        """Delete everything that the person gave, in both copies. A row without content remains, so that they are told so."""

        def work(connection, records):
            now_at = locked(connection, person)
            if now_at is None or now_at.status == "withdrawn":
                return
            for table in (answers, responses, events):
                connection.execute(delete(table).where(table.c.participant_id == person.id))
            if now_at.external_hash is not None:
                kind = postgresql if self.engine.dialect.name == "postgresql" else sqlite
                spent = {"phase": now_at.phase, "external_hash": now_at.external_hash}
                connection.execute(kind.insert(spent_ids).values(**spent).on_conflict_do_nothing())
            change(connection, now_at, status="withdrawn", slot=None, external_hash=None, other_hashes={}, finished_at=None,
                   last_seen_at=now_at.consented_at, step_at=now_at.consented_at)  # fmt: skip
            self.event(connection, records, None, "withdrawn", phase=now_at.phase, step=now_at.step, was=now_at.status)

        self.write(work)
        self.journal.redact([person.public_id])

    def forget(self, before: int | None = None) -> int:
        """Delete receipts and hashes of ids of everyone whose time to keep them is over; how many they were.

        From then on nobody can tell which answers are whose. `before`: of everyone who consented earlier.
        """
        days = self.design.rules.keep_days
        if before is None:
            if days is None:
                return 0
            before = self.clock() - days * DAY

        def work(connection, records):
            due = (participants.c.consented_at < before) & participants.c.receipt_hash.is_not(None)
            n = len(connection.execute(select(participants.c.id).where(due)).all())
            if n:
                connection.execute(
                    update(participants).where(due).values(receipt_hash=None, external_hash=None, other_hashes={})
                )
                self.event(connection, records, None, "forgotten", people=n)
            return n

        return self.write(work)

    # --- the researcher ---

    def log_in(self, password_stamp: str) -> str:
        """A session; it ends by itself, and when the password changes."""
        token, now = secrets.token_urlsafe(32), self.clock()

        def work(connection, _):
            connection.execute(delete(admin_sessions).where(admin_sessions.c.expires_at < now))
            mark = sha256(token + password_stamp)
            connection.execute(insert(admin_sessions).values(token_hash=mark, expires_at=now + SESSION))

        self.write(work)
        return token

    def logged_in(self, token: str | None, password_stamp: str) -> bool:
        if not token:
            return False
        own = (admin_sessions.c.token_hash == sha256(token + password_stamp)) & (admin_sessions.c.expires_at > self.clock())
        with self.reading() as connection:
            return connection.execute(select(admin_sessions.c.token_hash).where(own)).first() is not None

    def log_out(self, token: str | None, password_stamp: str) -> None:
        own = admin_sessions.c.token_hash == sha256((token or "") + password_stamp)
        self.write(lambda connection, _: connection.execute(delete(admin_sessions).where(own)))

    def monitor(self) -> list[PhaseCounts]:
        with self.reading() as connection:
            return monitor(connection, self.design, self.clock())
