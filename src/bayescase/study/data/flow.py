"""Where a person is in the study, what their forms say, and how they come back after having been away."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from ..design.schedule import Step, Trial
from .database import MINUTE
from .monitor import AWAY
from .places import CLOSED, Places, state
from .tables import answers, events, participants, responses
from .transactions import Records, change, lock_study, locked

SLACK = 1000  # milliseconds by which a browser's clock may run ahead of ours
LONGEST = 2**31 - 1
ASKED = ("demographics", "check", "ratings", "questionnaire")  # steps whose forms are kept as they are
MISUNDERSTOOD = "misunderstood"


class Timing(NamedTuple):
    """What the browser measured, in milliseconds after the page began to load; None without JavaScript."""

    shown_ms: int | None = None
    first_input_ms: int | None = None
    submitted_ms: int | None = None
    hidden_ms: int | None = None
    blur_count: int | None = None


class Given(NamedTuple):
    """What was answered to a question."""

    place: int | None  # of the option that was chosen
    ratings: dict[str, int | None]


class Flow(Places):
    """The way through the study."""

    def step_of(self, person: Row) -> Step:
        return self.plan(person.first_slot).steps[person.step]

    def standing(self, person: Row) -> str:
        """'here', 'away' (may come back), 'over' (may not), 'complete', 'screened out' or 'withdrawn'."""
        if person.status in ("complete", "screened out", "withdrawn"):
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

    def misunderstood(self, person: Row) -> int:
        """Wrong answers to comprehension checks."""
        with self.reading() as connection:
            return misunderstood(connection, person)

    def record(self, person: Row, part: str = "", given: Any = None, timing: Timing | None = None) -> str:
        """Keep the form of the step that `person` is at, as it was read before, and go on: one transaction.

        `part` is "feedback" for the second half of a practice question. `given` is a `Given` for a question, else the values
        of the form. The result is "kept"; "early" during a break; "closed"; or "stale" if the person was not at this step any
        more, or was away for too long: then nothing is changed.
        """

        def work(connection, records):
            now_at = locked(connection, person)
            if now_at is None or (now_at.step, now_at.round, now_at.status) != (person.step, person.round, "active"):
                return "stale"
            if state(connection) == CLOSED:
                return "closed"
            standing, now = self.standing(now_at), self.clock()
            if standing != "here" and (standing != "away" or self.design.rules.resume == "restart block"):
                return "stale"
            if self.wait(now_at):
                return "early"
            if standing == "away":
                self.event(connection, records, now_at, "gap", ms=now - now_at.last_seen_at, step=now_at.step, then="answered")
            return self._keep(connection, records, now_at, part, given, timing or Timing(), now)

        return self.write(work)

    def _keep(
        self, connection: Connection, records: Records, person: Row, part: str, given: Any, timing: Timing, now: int
    ) -> str:
        step = self.step_of(person)
        if step.kind == "trial":
            self._answer(connection, records, person, int(step.ref), given, timing, now)
        elif step.kind == "practice":
            known = response(connection, person, step.kind, step.ref) is not None
            if known != (part == "feedback"):
                return "stale"
            if not known:
                values = self._judged(self.plan(person.first_slot).trial(step), given)
                self._respond(connection, records, person, step, values, now)
                change(connection, person, last_seen_at=now)
                return "kept"
        elif step.kind == "comprehension":
            if not given["correct"]:
                return self._misunderstand(connection, records, person, step, given, now)
            if response(connection, person, step.kind, step.ref) is None:  # passed before, if another one was not
                self._respond(connection, records, person, step, given, now)
        elif step.kind == "instructions" and given:
            self.event(connection, records, person, "device", **given)
        elif step.kind in ASKED:
            self._respond(connection, records, person, step, given, now)
        self._advance(connection, records, person, now)
        return "kept"

    def _judged(self, trial: Trial, given: Given) -> dict[str, Any]:
        """What was chosen, and whether it is right, where something is."""
        if given.place is None:
            return {"choice": None, "correct": None, "ratings": given.ratings}
        choice = trial.options[given.place]
        return {"choice": choice, "correct": choice == self.design.item(trial.item).correct, "ratings": given.ratings}

    def _answer(self, connection, records, person, number: int, given: Given, timing: Timing, now: int) -> None:
        trial = self.plan(person.first_slot).trials[number]
        values = {
            "participant_id": person.id, "round": person.round, "trial": number, "block": trial.block,
            "condition": trial.condition, "item": trial.item, "options": list(trial.options),
            "sent_at": person.step_at, "received_at": now, "timing_differs": differs(timing, now - person.step_at),
        }  # fmt: skip
        values |= self._judged(trial, given) | timing._asdict()
        self.insert(connection, records, answers, person.public_id, values)

    def _respond(self, connection, records, person, step: Step, values: dict[str, Any], now: int) -> None:
        row = {"participant_id": person.id, "round": person.round, "kind": step.kind, "ref": step.ref}
        self.insert(connection, records, responses, person.public_id, row | {"values": values, "received_at": now})

    def _misunderstand(self, connection, records, person, step: Step, given: dict[str, Any], now: int) -> str:
        """Back to the instructions, or the end, if it was too often."""
        self.event(connection, records, person, MISUNDERSTOOD, check=step.ref, choice=given["choice"])
        values: dict[str, Any] = {"step_at": now, "last_seen_at": now}
        if misunderstood(connection, person) >= self.design.rules.comprehension_tries:
            self.event(connection, records, person, "screened out", slot=person.slot)
            values |= {"status": "screened out", "slot": None}
        else:
            values["step"] = [of.kind for of in self.plan(person.first_slot).steps].index("instructions")
        change(connection, person, **values)
        return "kept"

    def _advance(self, connection, records, person, now: int) -> None:
        values = {"step": person.step + 1, "step_at": now, "last_seen_at": now}
        if self.plan(person.first_slot).steps[person.step + 1].kind == "end":
            values |= {"status": "complete", "finished_at": now}
            self.event(connection, records, person, "complete")
        change(connection, person, **values)

    def resume(self, person: Row) -> str:
        """Come back after having been away, by the study's rule; the standing afterwards."""

        def work(connection, records):
            lock_study(connection)
            now_at = locked(connection, person)
            if now_at is None:
                return "withdrawn"
            standing, now = self.standing(now_at), self.clock()
            if standing == "over" and now_at.status == "active":
                self.time_out(connection, records, now_at)
            if standing != "away" or state(connection) == CLOSED:
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
                self.event(connection, records, now_at, "gap", **gap, then="block restarted", to=first)
            else:
                self.event(connection, records, now_at, "gap", **gap, then="resumed")
            change(connection, now_at, **values)
            return "here"

        return self.write(work)

    def _first_of_block(self, person: Row) -> int | None:
        """The step with the first question of the block that the person is in; None before, between and after the blocks."""
        found = self.plan(person.first_slot)
        steps = [(i, found.trials[int(step.ref)].block) for i, step in enumerate(found.steps) if step.kind == "trial"]
        if not steps or not steps[0][0] <= person.step <= steps[-1][0]:
            return None
        block = max(of for i, of in steps if i <= person.step)
        last = max(i for i, of in steps if of == block)
        return None if person.step > last else min(i for i, of in steps if of == block)


def response(connection: Connection, person: Row, kind: str, ref: str) -> dict[str, Any] | None:
    """The latest one; comprehension checks and practice are not asked again after a block is."""
    own = (responses.c.participant_id == person.id) & (responses.c.kind == kind) & (responses.c.ref == ref)
    if kind not in ("comprehension", "practice"):
        own &= responses.c.round == person.round
    return connection.execute(select(responses.c["values"]).where(own).order_by(responses.c.round.desc())).scalar()


def misunderstood(connection: Connection, person: Row) -> int:
    own = (events.c.participant_id == person.id) & (events.c.kind == MISUNDERSTOOD)
    return connection.execute(select(func.count()).where(own)).scalar_one()


def differs(timing: Timing, passed: int) -> bool:
    """Whether the browser's times cannot be true: longer than ours, or out of order."""
    shown, first, submitted, hidden, _ = timing
    if submitted is None:
        return any(value is not None for value in timing)
    order = [value for value in (shown, first, submitted) if value is not None]
    return submitted > passed + SLACK or order != sorted(order) or (hidden or 0) > submitted
