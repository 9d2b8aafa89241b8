"""How it is kept: every change is one transaction, then the second copy, and only then does the person see the next page.

The same code for SQLite and PostgreSQL. On PostgreSQL rows are locked: first the study's, where slots are given, then the
person's, always in this order.
"""

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Row, delete, insert, select, update
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from ...web.keys import Keys, read_keys, sha256
from ..design.design import Design
from ..design.design_file import frozen_hash, read_design
from ..design.schedule import Plan, Step, Trial, plan
from . import journal as journals
from .database import DATABASE, MINUTE, StoreError, connect, migrate, milliseconds, passes, reason
from .journal import Journal, record_of
from .monitor import AWAY, PhaseCounts, monitor
from .tables import admin_sessions, answers, events, notes, participants, responses, studies

SESSION = 12 * 60 * MINUTE
TRIES = 8
SLACK = 1000  # milliseconds by which a browser's clock may run ahead of ours
LONGEST = 2**31 - 1


class Timing(NamedTuple):
    """What the browser measured, in milliseconds after the page began to load; None without JavaScript."""

    shown_ms: int | None = None
    first_input_ms: int | None = None
    submitted_ms: int | None = None
    hidden_ms: int | None = None
    blur_count: int | None = None


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


# --- people ---------------------------------------------------------------------------------------------------------------


class Store:
    """The study's data. Every public method that changes something is one transaction, safe to call again after an error."""

    def __init__(self, folder, engine: Engine, design: Design, keys: Keys, phase="live", simulated=False, clock=milliseconds):
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
    def reading(self):
        with self.engine.connect().execution_options(writes=False) as connection:
            yield connection

    def _write(self, work: Callable[[Connection, list], Any]) -> Any:
        """work(connection, records) in one transaction; then the records in the journal."""
        if self._behind:
            self.catch_up()
        for attempt in range(TRIES):
            records: list[dict[str, Any]] = []
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

    def _insert(self, connection, records, table, public_id: str | None, values: dict[str, Any]) -> int:
        made = connection.execute(insert(table).values(**values).returning(table.c.id)).scalar_one()
        records.append(record_of(table.name, public_id, values | {"id": made}))
        return made

    def _event(self, connection, records, person: Row | None, kind: str, **detail):
        id, public_id = (None, None) if person is None else (person.id, person.public_id)
        values = {"participant_id": id, "at": self.clock(), "kind": kind, "detail": detail}
        self._insert(connection, records, events, public_id, values)

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
            self._write(work)
        except IntegrityError:  # another server was faster
            self._write(work)

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

    # --- who ---

    def find(self, token: str | None) -> Row | None:
        if not token:
            return None
        with self.reading() as connection:
            return connection.execute(select(participants).where(participants.c.token_hash == sha256(token))).first()

    def external_hash(self, external: str | None) -> str | None:
        return self.keys.digest("external", external) if external and self.design.rules.unique_people else None

    def token_of(self, public_id: str) -> str:
        return self.keys.digest("token", public_id)

    def begin(self, visit: str, external: str | None = None, **places: str) -> str:
        """Consent: take the lowest free slot; the token of the person. The same visit, or person, again is the same place.

        `visit` is a random word of the form that was sent; `places` are ids of the recruiting platform, kept as keyed hashes.
        """
        public_id, known = self.keys.digest("visit", visit)[:32], self.external_hash(external)

        def work(connection, records):
            connection.execute(select(studies.c.id).with_for_update()).first()
            same = participants.c.public_id == public_id
            if known is not None:
                same |= (participants.c.phase == self.phase) & (participants.c.external_hash == known)
            found = connection.execute(select(participants).where(same)).first()
            if found is not None:
                return self.token_of(found.public_id)
            now, token = self.clock(), self.token_of(public_id)
            self._release(connection, records, now)
            taken = select(participants.c.slot).where(participants.c.phase == self.phase, participants.c.slot.is_not(None))
            slot = lowest_free(connection.execute(taken).scalars())
            values = {
                "public_id": public_id, "token_hash": sha256(token), "external_hash": known, "phase": self.phase,
                "simulated": self.simulated, "slot": slot, "first_slot": slot, "status": "active", "step": 0, "round": 0,
                "consented_at": now, "last_seen_at": now, "step_at": now,
            }  # fmt: skip
            made = self._insert(connection, records, participants, public_id, values)
            person = connection.execute(select(participants).where(participants.c.id == made)).one()
            hashes = {name: self.keys.digest(name, value) for name, value in places.items()}
            self._event(connection, records, person, "consent", slot=slot, **hashes)
            return token

        return self._write(work)

    def decline(self) -> None:
        """Somebody did not consent: counted, and nothing else."""
        self._write(lambda connection, records: self._event(connection, records, None, "declined", phase=self.phase))

    def _release(self, connection, records, now: int) -> None:
        """Give back the slots of those of whom nothing was heard for too long."""
        silent = participants.c.last_seen_at < now - self.design.rules.timeout_minutes * MINUTE
        late = select(participants).where(participants.c.status == "active", participants.c.phase == self.phase, silent)
        for person in connection.execute(late.with_for_update()).all():
            self._time_out(connection, records, person)

    def _time_out(self, connection, records, person) -> None:
        change(connection, person, status="timed out", slot=None)
        self._event(connection, records, person, "timed out", slot=person.slot, step=person.step)

    # --- where they are ---

    def step_of(self, person: Row) -> Step:
        return self.plan(person.first_slot).steps[person.step]

    def standing(self, person: Row) -> str:
        """'here', 'away' (may come back), 'over' (may not), 'complete' or 'withdrawn'."""
        if person.status in ("complete", "withdrawn"):
            return person.status
        rules, gap = self.design.rules, self.clock() - person.last_seen_at
        limit = rules.resume_minutes * MINUTE if rules.resume == "resume within" else None
        if person.status == "active" and gap <= min(AWAY, rules.timeout_minutes * MINUTE, AWAY if limit is None else limit):
            return "here"
        return "over" if rules.resume == "refuse" or (limit is not None and gap > limit) else "away"

    def wait(self, person: Row) -> int:
        """Milliseconds that are left of a break."""
        if self.step_of(person).kind != "break":
            return 0
        return max(0, person.step_at + self.design.rules.break_seconds * 1000 - self.clock())

    def response(self, person: Row, kind: str, ref: str) -> dict[str, Any] | None:
        with self.reading() as connection:
            return response(connection, person, kind, ref)

    def record(self, person: Row, part: str = "", given: Any = None, timing: Timing | None = None) -> str:
        """Keep the form of the step that `person` is at, as it was read before, and go on: one transaction.

        `part` is "feedback" for the second half of a practice question. `given` is the place of the chosen option for a
        question, else the values of the form. The result is "kept"; "early" during a break; or "stale" if the person was not
        at this step any more, or was away for too long: then nothing is changed.
        """

        def work(connection, records):
            now_at = connection.execute(select(participants).where(participants.c.id == person.id).with_for_update()).first()
            if now_at is None or (now_at.step, now_at.round, now_at.status) != (person.step, person.round, "active"):
                return "stale"
            standing, now = self.standing(now_at), self.clock()
            if standing != "here" and (standing != "away" or self.design.rules.resume == "restart block"):
                return "stale"
            if self.wait(now_at):
                return "early"
            if standing == "away":
                self._event(connection, records, now_at, "gap", ms=now - now_at.last_seen_at, step=now_at.step, then="answered")
            step = self.step_of(now_at)
            if step.kind == "trial":
                self._answer(connection, records, now_at, int(step.ref), given, timing or Timing(), now)
            elif step.kind == "practice":
                known = response(connection, now_at, step.kind, step.ref) is not None
                if known != (part == "feedback"):
                    return "stale"
                if not known:
                    trial = next(t for t in self.plan(now_at.first_slot).practice if t.item == step.ref)
                    values = {"choice": trial.options[given], "correct": self._right(trial, given)}
                    self._respond(connection, records, now_at, step, values, now)
                    change(connection, now_at, last_seen_at=now)
                    return "kept"
            elif step.kind in ("demographics", "check", "questionnaire"):
                self._respond(connection, records, now_at, step, given, now)
            self._advance(connection, records, now_at, now)
            return "kept"

        return self._write(work)

    def _right(self, trial: Trial, place: int) -> bool:
        return trial.options[place] == self.design.item(trial.item).correct

    def _answer(self, connection, records, person, number, place, timing, now):
        trial = self.plan(person.first_slot).trials[number]
        values = {
            "participant_id": person.id, "round": person.round, "trial": number, "block": trial.block,
            "condition": trial.condition, "item": trial.item,
            "options": list(trial.options), "choice": trial.options[place], "correct": self._right(trial, place),
            "sent_at": person.step_at, "received_at": now, "timing_differs": differs(timing, now - person.step_at),
        }  # fmt: skip
        self._insert(connection, records, answers, person.public_id, values | timing._asdict())

    def _respond(self, connection, records, person, step, values, now):
        row = {"participant_id": person.id, "round": person.round, "kind": step.kind, "ref": step.ref}
        self._insert(connection, records, responses, person.public_id, row | {"values": values, "received_at": now})

    def _advance(self, connection, records, person, now):
        values = {"step": person.step + 1, "step_at": now, "last_seen_at": now}
        if self.plan(person.first_slot).steps[person.step + 1].kind == "end":
            values |= {"status": "complete", "finished_at": now}
            self._event(connection, records, person, "complete")
        change(connection, person, **values)

    def resume(self, person: Row) -> str:
        """Come back after having been away, by the study's rule; the standing afterwards."""

        def work(connection, records):
            connection.execute(select(studies.c.id).with_for_update()).first()
            now_at = connection.execute(select(participants).where(participants.c.id == person.id).with_for_update()).first()
            if now_at is None:
                return "withdrawn"
            standing, now = self.standing(now_at), self.clock()
            if standing == "over" and now_at.status == "active":
                self._time_out(connection, records, now_at)
            if standing != "away":
                return standing
            values = {"status": "active", "last_seen_at": now, "step_at": now}
            gap = {"ms": now - now_at.last_seen_at, "step": now_at.step}
            if now_at.slot is None:  # take the old slot again, unless somebody has it; else stay beyond the slots
                slot = (participants.c.phase == now_at.phase) & (participants.c.slot == now_at.first_slot)
                if connection.execute(select(participants.c.id).where(slot)).first() is None:
                    values["slot"] = now_at.first_slot
            first = self._first_of_block(now_at) if self.design.rules.resume == "restart block" else None
            if first is not None and first < now_at.step:
                values |= {"step": first, "round": now_at.round + 1}
                self._event(connection, records, now_at, "gap", **gap, then="block restarted", to=first)
            else:
                self._event(connection, records, now_at, "gap", **gap, then="resumed")
            change(connection, now_at, **values)
            return "here"

        return self._write(work)

    def _first_of_block(self, person) -> int | None:
        """The step with the first question of the block that the person is in; None before, between and after the blocks."""
        found = self.plan(person.first_slot)
        steps = [(i, found.trials[int(step.ref)].block) for i, step in enumerate(found.steps) if step.kind == "trial"]
        if not steps or not steps[0][0] <= person.step <= steps[-1][0]:
            return None
        block = max(of for i, of in steps if i <= person.step)
        last = max(i for i, of in steps if of == block)
        return None if person.step > last else min(i for i, of in steps if of == block)

    def withdraw(self, person: Row) -> None:
        """Delete everything that the person gave, in both copies. A row without content remains, so that they are told so."""

        def work(connection, records):
            now_at = connection.execute(select(participants).where(participants.c.id == person.id).with_for_update()).first()
            if now_at is None or now_at.status == "withdrawn":
                return
            for table in (answers, responses, events):
                connection.execute(delete(table).where(table.c.participant_id == person.id))
            change(connection, now_at, status="withdrawn", slot=None, external_hash=None, last_seen_at=now_at.consented_at,
                   step_at=now_at.consented_at, finished_at=None)  # fmt: skip
            self._event(connection, records, None, "withdrawn", phase=now_at.phase, step=now_at.step, was=now_at.status)

        self._write(work)
        self.journal.redact([person.public_id])

    # --- the researcher ---

    def log_in(self) -> str:
        token, now = secrets.token_urlsafe(32), self.clock()

        def work(connection, _):
            connection.execute(delete(admin_sessions).where(admin_sessions.c.expires_at < now))
            connection.execute(insert(admin_sessions).values(token_hash=sha256(token), expires_at=now + SESSION))

        self._write(work)
        return token

    def logged_in(self, token: str | None) -> bool:
        if not token:
            return False
        own = (admin_sessions.c.token_hash == sha256(token)) & (admin_sessions.c.expires_at > self.clock())
        with self.reading() as connection:
            return connection.execute(select(admin_sessions.c.token_hash).where(own)).first() is not None

    def log_out(self, token: str | None) -> None:
        own = admin_sessions.c.token_hash == sha256(token or "")
        self._write(lambda connection, _: connection.execute(delete(admin_sessions).where(own)))

    def monitor(self) -> list[PhaseCounts]:
        with self.reading() as connection:
            return monitor(connection, self.design, self.clock())


def lowest_free(taken) -> int:
    taken = set(taken)
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def change(connection: Connection, person: Row, **values) -> None:
    connection.execute(update(participants).where(participants.c.id == person.id).values(**values))


def response(connection: Connection, person: Row, kind: str, ref: str) -> dict[str, Any] | None:
    own = (responses.c.participant_id == person.id) & (responses.c.round == person.round)
    own &= (responses.c.kind == kind) & (responses.c.ref == ref)
    return connection.execute(select(responses.c["values"]).where(own)).scalar()


def differs(timing: Timing, passed: int) -> bool:
    """Whether the browser's times cannot be true: longer than ours, or out of order."""
    shown, first, submitted, hidden, _ = timing
    if submitted is None:
        return any(value is not None for value in timing)
    order = [value for value in (shown, first, submitted) if value is not None]
    return submitted > passed + SLACK or order != sorted(order) or (hidden or 0) > submitted
