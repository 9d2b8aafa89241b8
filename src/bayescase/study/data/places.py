"""Who may take part, and which place a person has: admission, consent, receipts, pausing."""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Row, delete, func, insert, select

from ...web.keys import sha256
from .database import MINUTE, StoreError
from .tables import invitations, notes, participants, spent_ids, visits
from .transactions import Transactions, change, lock_study

OPEN, PAUSED, CLOSED = "open", "paused", "closed"
STATES = (OPEN, PAUSED, CLOSED)
FORM_LASTS = 12 * 60 * MINUTE  # a form of consent
LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: none looks like another
LOOKS = str.maketrans("OIL", "011")


@dataclass(frozen=True)
class Arrival:
    """Whoever comes to the study, as the address says."""

    id: str = ""
    others: tuple[tuple[str, str], ...] = ()


class NotAdmitted(Exception):
    """Why a person cannot begin: "paused", "closed", "full", "busy", "no-id", "not-invited", "spent", "known", "late-form"."""

    def __init__(self, why: str):
        super().__init__(why)
        self.why = why


def receipt_of(digest: str) -> str:
    """A code of 80 bits to write down: ABCD-EFGH-JKMN-PQRS."""
    number = int(digest[:20], 16)
    letters = "".join(LETTERS[number >> 5 * k & 31] for k in range(16))
    return "-".join(letters[k : k + 4] for k in range(0, 16, 4))


def receipt_hash(code: str) -> str:
    """Of a code as somebody typed it."""
    return sha256("".join(c for c in code.upper().translate(LOOKS) if c in LETTERS))


class Places(Transactions):
    """Places in the study, taken and found again."""

    # --- who is it? ---

    def find(self, token: str | None) -> Row | None:
        if not token:
            return None
        with self.reading() as connection:
            return connection.execute(select(participants).where(participants.c.token_hash == sha256(token))).first()

    def find_by_receipt(self, code: str) -> Row | None:
        with self.reading() as connection:
            own = participants.c.receipt_hash == receipt_hash(code)
            return connection.execute(select(participants).where(own)).first()

    def token_of(self, public_id: str) -> str:
        return self.keys.digest("token", public_id)

    def receipt_of(self, person: Row) -> str:
        return receipt_of(self.keys.digest("receipt", person.public_id, person.receipt_number))

    def external_hash(self, external: str) -> str | None:
        """What is kept of an id; nothing where people may take part again and no list is kept."""
        needed = self.design.rules.unique_people or self.design.rules.admission.who == "invited"
        return self.keys.digest("external", external) if external and needed else None

    # --- may they come in? ---

    def state(self) -> str:
        with self.reading() as connection:
            return state(connection)

    def set_state(self, new: str) -> None:
        """Open, paused (nobody new) or closed (nobody at all)."""

        def work(connection, records):
            if state(connection) == new:
                return
            connection.execute(delete(notes).where(notes.c.name == "state"))
            connection.execute(insert(notes).values(name="state", value=new))
            self.event(connection, records, None, new, phase=self.phase)

        self.write(work)

    def admit(self, arrival: Arrival) -> None:
        """Whether whoever comes may begin; NotAdmitted says why not. Nothing is changed."""
        with self.reading() as connection:
            self._admit(connection, arrival)

    def _admit(self, connection: Connection, arrival: Arrival) -> None:
        now = state(connection)
        if now != OPEN:
            raise NotAdmitted(now)
        rule, known = self.design.rules.admission, self.external_hash(arrival.id)
        live = self.phase == "live"
        if live and rule.who != "open" and not (arrival.id and re.fullmatch(rule.id_pattern, arrival.id)):
            raise NotAdmitted("no-id")
        if known is not None:
            here = (participants.c.phase == self.phase) & (participants.c.external_hash == known)
            if self.design.rules.unique_people and connection.execute(select(participants.c.id).where(here)).first():
                raise NotAdmitted("known")
            gone = (spent_ids.c.phase == self.phase) & (spent_ids.c.external_hash == known)
            if self.design.rules.unique_people and connection.execute(select(spent_ids.c.phase).where(gone)).first():
                raise NotAdmitted("spent")
        if live and rule.who == "invited":
            on_list = select(invitations.c.created_at).where(invitations.c.external_hash == known)
            if connection.execute(on_list).first() is None:
                raise NotAdmitted("not-invited")
        if live and rule.quota is not None:
            taken = select(func.count()).where(participants.c.phase == self.phase, participants.c.slot.is_not(None))
            if connection.execute(taken).scalar_one() >= rule.quota:
                raise NotAdmitted("full")

    def begin(self, visit: str, arrival: Arrival | None = None) -> str:
        """Consent: take the lowest free slot; the token of the person. The same form sent twice is the same place.

        `visit` is a random word of the form that was sent.
        """
        arrival = arrival or Arrival()
        public_id = self.keys.digest("visit", visit)[:32]

        def work(connection, records):
            lock_study(connection)
            found = connection.execute(select(participants).where(participants.c.public_id == public_id)).first()
            if found is not None:
                if found.step or found.status != "active":  # whoever has an old form is not the person for that
                    raise NotAdmitted("late-form")
                return self.token_of(public_id)
            now, token = self.clock(), self.token_of(public_id)
            self._release(connection, records, now)
            self._admit(connection, arrival)
            lately = select(func.count()).where(participants.c.phase == "live", participants.c.consented_at > now - MINUTE)
            most = self.design.rules.admission.per_minute
            if self.phase == "live" and connection.execute(lately).scalar_one() >= most:
                raise NotAdmitted("busy")
            taken = select(participants.c.slot).where(participants.c.phase == self.phase, participants.c.slot.is_not(None))
            slot = lowest_free(connection.execute(taken).scalars())
            values = {
                "public_id": public_id, "token_hash": sha256(token), "receipt_number": 0,
                "receipt_hash": receipt_hash(receipt_of(self.keys.digest("receipt", public_id, 0))),
                "external_hash": self.external_hash(arrival.id) if self.design.rules.unique_people else None,
                "other_hashes": {name: self.keys.digest(name, value) for name, value in arrival.others if value},
                "phase": self.phase, "simulated": self.simulated, "slot": slot, "first_slot": slot, "status": "active",
                "step": 0, "round": 0, "consented_at": now, "last_seen_at": now, "step_at": now,
            }  # fmt: skip
            made = self.insert(connection, records, participants, public_id, values)
            person = connection.execute(select(participants).where(participants.c.id == made)).one()
            self.event(connection, records, person, "consent", slot=slot)
            return token

        return self.write(work)

    def decline(self, visit: str) -> None:
        """Somebody did not consent: counted once per form, and nothing else."""

        def work(connection, records):
            now, mark = self.clock(), self.keys.digest("declined", visit)
            connection.execute(delete(visits).where(visits.c.at < now - FORM_LASTS))
            lately = connection.execute(select(func.count()).where(visits.c.at > now - MINUTE)).scalar_one()
            known = connection.execute(select(visits.c.at).where(visits.c.hash == mark)).first()
            if known is None and lately < self.design.rules.admission.per_minute:
                connection.execute(insert(visits).values(hash=mark, at=now))
                self.event(connection, records, None, "declined", phase=self.phase)

        self.write(work)

    def _release(self, connection: Connection, records: list, now: int) -> None:
        """Give back the slots of those of whom nothing was heard for too long."""
        silent = participants.c.last_seen_at < now - self.design.rules.timeout_minutes * MINUTE
        late = select(participants).where(participants.c.status == "active", participants.c.phase == self.phase, silent)
        for person in connection.execute(late.with_for_update()).all():
            self.time_out(connection, records, person)

    def time_out(self, connection: Connection, records: list, person: Row) -> None:
        change(connection, person, status="timed out", slot=None)
        self.event(connection, records, person, "timed out", slot=person.slot, step=person.step)

    # --- invitations and receipts, by the researcher ---

    def invite(self, ids: Iterable[str]) -> int:
        """Put ids on the list; how many are new."""
        now = self.clock()

        def work(connection, _):
            known = set(connection.execute(select(invitations.c.external_hash)).scalars())
            new = {self.keys.digest("external", id) for id in ids} - known
            if new:
                connection.execute(insert(invitations), [{"external_hash": mark, "created_at": now} for mark in sorted(new)])
            return len(new)

        return self.write(work)

    def invite_codes(self, n: int) -> list[str]:
        """New codes that the pattern of ids allows, each for one person."""
        codes = [secrets.token_hex(12) for _ in range(n)]
        if not all(re.fullmatch(self.design.rules.admission.id_pattern, code) for code in codes):
            raise StoreError("Codes do not match rules.admission.id_pattern of the design; invite ids of the platform instead.")
        self.invite(codes)
        return codes

    def new_receipt(self, external: str) -> str | None:
        """Another receipt for the person with this id, as the researcher has made sure who asks; the old one is void."""

        def work(connection, records):
            own = (participants.c.phase == self.phase) & (participants.c.external_hash == self.external_hash(external))
            person = connection.execute(select(participants).where(own).with_for_update()).first()
            if person is None:
                return None
            code = receipt_of(self.keys.digest("receipt", person.public_id, person.receipt_number + 1))
            change(connection, person, receipt_number=person.receipt_number + 1, receipt_hash=receipt_hash(code))
            self.event(connection, records, person, "new receipt")
            return code

        return self.write(work)


def state(connection: Connection) -> str:
    return connection.execute(select(notes.c.value).where(notes.c.name == "state")).scalar() or OPEN


def lowest_free(taken: Iterable[int]) -> int:
    taken = set(taken)
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)
