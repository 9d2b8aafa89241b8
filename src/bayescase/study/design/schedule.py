"""Who sees what, in which order: a pure function of (hash of the design, its seed, the slot), printed before any data.

A slot is a place in the study: 0, 1, 2, … A person who consents takes the lowest free one, so cells are balanced within one.
"""

import hashlib
from dataclasses import dataclass
from itertools import count, permutations
from typing import NamedTuple

from .design import SETS, Design


class Cell(NamedTuple):
    """An order of the blocks, and which item set each condition gets."""

    order: tuple[str, ...]  # conditions
    sets: tuple[str, ...]  # item set of each block

    def __str__(self):
        return " then ".join(f"{condition} ({items})" for condition, items in zip(self.order, self.sets, strict=True))


class Trial(NamedTuple):
    number: int  # 0, 1, … through all blocks
    block: int
    condition: str
    item: str  # id
    options: tuple[int, ...]  # clusters, in the order in which they are shown


class Step(NamedTuple):
    """A page of the flow."""

    kind: str  # "demographics", "instructions", "practice", "trial", "break", "check", "questionnaire", "end"
    ref: str  # id of the practice item or check; number of the trial, or of the questions before the break; else empty


@dataclass(frozen=True)
class Plan:
    slot: int
    cell: Cell
    trials: tuple[Trial, ...]
    practice: tuple[Trial, ...]  # in the condition of the first block
    steps: tuple[Step, ...]

    def trial(self, step: Step) -> Trial:
        """The question of a step."""
        return self.trials[int(step.ref)] if step.kind == "trial" else next(t for t in self.practice if t.item == step.ref)


def cells(design: Design) -> tuple[Cell, ...]:
    """Block orders × assignments of item sets to conditions; in the paper only the order of the blocks changes."""
    k = len(design.conditions)
    turns = range(k if design.mode == "crossed" else 1)
    found = []
    for turn in turns:
        of = {condition: SETS[(i + turn) % k] for i, condition in enumerate(design.conditions)}
        found += [Cell(order, tuple(of[c] for c in order)) for order in permutations(design.conditions)]
    return tuple(found)


def plan(design: Design, slot: int) -> Plan:
    """What the person in this slot sees, page by page."""
    every = cells(design)
    turn, place = divmod(slot, len(every))
    cell = every[shuffled(range(len(every)), f"{design.hash}/{design.seed}/cells/{turn}")[place]]
    key = f"{design.hash}/{design.seed}/slot/{slot}"
    trials: list[Trial] = []
    for block, (condition, items) in enumerate(zip(cell.order, cell.sets, strict=True)):
        for item in shuffled(design.of_set(items), f"{key}/items/{block}"):
            trials.append(Trial(len(trials), block, condition, item.id, shuffled(item.options, f"{key}/options/{item.id}")))
    practice = tuple(
        Trial(i, 0, cell.order[0], item.id, shuffled(item.options, f"{key}/options/{item.id}"))
        for i, item in enumerate(design.of_set("practice"))
    )
    return Plan(slot, cell, tuple(trials), practice, steps(design, trials, practice))


def steps(design, trials, practice):
    found = [Step("demographics", "")] if design.demographics else []
    found += [Step("instructions", "")]
    found += [Step("practice", trial.item) for trial in practice]
    for trial in trials:
        found.append(Step("trial", str(trial.number)))
        done = trial.number + 1
        found += [Step("check", check.id) for check in design.checks if check.after == done]
        if done % design.rules.break_every == 0 and done < len(trials):
            found.append(Step("break", str(done)))
    if design.questionnaire:
        found.append(Step("questionnaire", ""))
    return (*found, Step("end", ""))


def shuffled(values, key: str) -> tuple:
    """A permutation that depends on the key alone: Fisher and Yates with SHA-256, the same on every machine and version."""
    values = list(values)
    draw = numbers(key)
    for i in range(len(values) - 1, 0, -1):
        j = next(draw) % (i + 1)  # 64 bits: the bias is below 1e-17
        values[i], values[j] = values[j], values[i]
    return tuple(values)


def numbers(key):
    """An endless row of 64-bit numbers."""
    for n in count():
        yield int.from_bytes(hashlib.sha256(f"{key}/{n}".encode()).digest()[:8])


# --- in print -------------------------------------------------------------------------------------------------------------


def as_plain(plan: Plan) -> dict:
    """For JSON."""
    return {
        "slot": plan.slot,
        "cell": str(plan.cell),
        "practice": [trial._asdict() for trial in plan.practice],
        "trials": [trial._asdict() for trial in plan.trials],
        "steps": [list(step) for step in plan.steps],
    }


def question_rows(plans) -> tuple[list[str], list[list]]:
    """Columns, and a row per question."""
    columns = ["slot", "cell", "trial", "block", "condition", "item", "options"]
    rows = [
        [plan.slot, str(plan.cell), t.number, t.block, t.condition, t.item, " ".join(map(str, t.options))]
        for plan in plans
        for t in plan.trials
    ]
    return columns, rows
