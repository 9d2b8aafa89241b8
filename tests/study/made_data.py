"""Answers of people who do not exist, under the schedule: as exported rows, and as a database."""

from functools import cache

import numpy as np
from sqlalchemy import insert

from bayescase.study.data import tables
from bayescase.study.data.store import open_store
from bayescase.study.design import schedule
from bayescase.study.design.design import Design
from bayescase.study.design.design_file import freeze, write_design

START = 1_790_000_000_123  # milliseconds since 1970
PLANS: dict = {}


def plan(design: Design, slot: int):
    """Plans are pure, and simulations need the same ones again and again."""
    key = design.hash, slot
    if key not in PLANS:
        PLANS[key] = schedule.plan(design, slot)
    return PLANS[key]


def draw(design, people, rng, effect=0.0, person_sd=1.0, item_sd=1.0, base=1.2, slow=0.0):
    """(slot, trial, right, seconds) of every answer. `effect`: of the first condition, in logits; `slow`: in log seconds."""
    ids = [item.id for item in design.items]
    easy = dict(zip(ids, rng.normal(0, item_sd, len(ids)), strict=True))
    for slot in range(people):
        able, pace = rng.normal(0, person_sd), rng.normal(3, 0.4)
        for trial in plan(design, slot).trials:
            first = trial.condition == design.conditions[0].id
            logit = base + effect * first + able + easy[trial.item]
            seconds = float(np.exp(pace + slow * first + rng.normal(0, 0.5)))
            yield slot, trial, bool(rng.random() < 1 / (1 + np.exp(-logit))), seconds


def rows(design, people, rng, **planted):
    """(answers, people) as `export.collect` gives them, as far as an analysis needs them."""
    answers = [
        {
            "participant": f"p{slot:03}", "superseded": False, "block": trial.block, "condition": trial.condition,
            "item": trial.item, "explanation": design.explanation_behind(design.item(trial.item)), "correct": right,
            "seconds": seconds, "browser_seconds": seconds - 0.1,
        }
        for slot, trial, right, seconds in draw(design, people, rng, **planted)
    ]  # fmt: skip
    who = [
        {
            "participant": f"p{slot:03}", "phase": "live", "simulated": False, "status": "complete", "checks_failed": 0,
            "order": " then ".join(plan(design, slot).cell.order),
        }
        for slot in range(people)
    ]  # fmt: skip
    return answers, who


def make_study(folder, design, people=4, database=None, **planted):
    """A frozen study with complete people, in both copies."""
    write_design(design, folder)
    freeze(folder)
    store = open_store(folder, database)
    with store.engine.begin() as connection:
        fill(connection, design, people, **planted)
    store.catch_up()
    store.close()
    return folder


def fill(connection, design, people=4, seed=0, inattentive=(), **planted):
    """Complete people in slots 0, 1, …, as the server leaves them; the inattentive fail the first check."""
    rng = np.random.default_rng(seed)
    steps = len(plan(design, 0).steps)
    now = {}
    for slot in range(people):
        at = now[slot] = START + slot * 3_600_000
        values = {
            "id": slot + 1, "public_id": public_id(slot), "token_hash": f"{slot:064x}", "external_hash": f"{slot + 500:064x}",
            "receipt_hash": f"{slot + 700:064x}", "receipt_number": 0, "other_hashes": {"STUDY_ID": f"{slot + 900:064x}"},
            "phase": "live", "simulated": False, "slot": slot, "first_slot": slot, "status": "complete", "step": steps - 1,
            "round": 0, "consented_at": at, "last_seen_at": at, "step_at": at, "finished_at": None,
        }  # fmt: skip
        connection.execute(insert(tables.participants).values(values))
        event(connection, slot + 1, at, "consent", {"slot": slot})
    for slot, trial, right, seconds in draw(design, people, rng, **planted):
        ms = round(seconds * 1000)
        wrong = [option for option in trial.options if option != design.item(trial.item).correct]
        answer(connection, slot + 1, trial, design.item(trial.item).correct if right else wrong[0], right, now[slot], ms)
        now[slot] += ms
    for slot in range(people):
        forms = [("demographics", "", {"age": 30 + slot, "gender": "woman", "cooking": "=1+1"})]
        forms += [("practice", trial.item, {"choice": 1, "correct": True}) for trial in plan(design, slot).practice]
        for k, check in enumerate(design.checks):
            choice = 0 if slot in inattentive and not k else check.correct
            forms.append(("check", check.id, {"choice": choice, "correct": choice == check.correct}))
        parts = [("questionnaire", "", design.questionnaire)]
        parts += [("ratings", str(block), design.block_ratings) for block in range(design.blocks)]
        for kind, ref, asked in parts:
            forms.append((kind, ref, {likert.id: int(rng.integers(len(likert.labels))) for likert in asked}))
        for kind, ref, given in forms:
            now[slot] += 1000
            respond(connection, slot + 1, kind, ref, given, now[slot])
        change = tables.participants.update().where(tables.participants.c.id == slot + 1)
        connection.execute(change.values(finished_at=now[slot], last_seen_at=now[slot], step_at=now[slot]))
        event(connection, slot + 1, now[slot], "complete", {})


@cache
def public_id(slot):
    return f"{np.random.default_rng(slot).integers(2**60):032x}"


def answer(connection, person, trial, choice, right, sent, ms, round=0):
    values = {
        "participant_id": person, "round": round, "trial": trial.number, "block": trial.block, "condition": trial.condition,
        "item": trial.item, "options": list(trial.options), "choice": choice, "correct": right, "ratings": {}, "sent_at": sent,
        "received_at": sent + ms, "shown_ms": 40, "first_input_ms": ms // 2, "submitted_ms": ms - 20, "hidden_ms": 0,
        "blur_count": 0, "timing_differs": False,
    }  # fmt: skip
    connection.execute(insert(tables.answers).values(values))


def respond(connection, person, kind, ref, given, at, round=0):
    values = {"participant_id": person, "round": round, "kind": kind, "ref": ref, "values": given, "received_at": at}
    connection.execute(insert(tables.responses).values(values))


def event(connection, person, at, kind, detail):
    connection.execute(insert(tables.events).values(participant_id=person, at=at, kind=kind, detail=detail))
