"""Who sees what, in which order: a pure function of (hash of the design, its seed, the slot), printed before any data.

A slot is a place in the study: 0, 1, 2, … A person who consents takes the lowest free one, so cells are balanced within one.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count, permutations
from typing import NamedTuple

from .design import PRACTICE, Design, Line, Stimulus


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
    options: tuple[int, ...]  # groups, in the order in which they are shown


class Step(NamedTuple):
    """A page of the flow."""

    # "demographics", "instructions", "comprehension", "practice", "trial", "check", "ratings", "break", "questionnaire", "end"
    kind: str
    ref: str  # id of a practice item or check; number of a trial, a block, or of the questions before a break; else empty


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

    def of_block(self, block: int) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.block == block)


def cells(design: Design) -> tuple[Cell, ...]:
    """Within people: orders of the blocks × assignments of item sets to conditions (in the paper, one). Between: conditions."""
    ids = tuple(condition.id for condition in design.conditions)
    if design.layout == "between":
        return tuple(Cell((id,), design.sets) for id in ids)
    k = len(ids)
    found = []
    for turn in range(k if design.mode == "crossed" else 1):
        of = {id: design.sets[(i + turn) % k] for i, id in enumerate(ids)}
        found += [Cell(order, tuple(of[id] for id in order)) for order in orders(ids)]
    return tuple(found)


def orders(ids: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All orders of up to three conditions; of more, Williams' design: each is as often in each place and after each other."""
    k = len(ids)
    if k <= 3:
        return list(permutations(ids))
    first = [0] + [(n + 1) // 2 if n % 2 else k - n // 2 for n in range(1, k)]  # 0, 1, k − 1, 2, k − 2, …
    square = [tuple(ids[(place + row) % k] for place in first) for row in range(k)]
    return square if k % 2 == 0 else square + [order[::-1] for order in square]


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
        for i, item in enumerate(design.of_set(PRACTICE))
    )
    return Plan(slot, cell, tuple(trials), practice, steps(design, trials, practice))


def steps(design: Design, trials: list[Trial], practice: tuple[Trial, ...]) -> tuple[Step, ...]:
    found = [Step("demographics", "")] if design.demographics else []
    found += [Step("instructions", "")]
    found += [Step("comprehension", check.id) for check in design.checks if check.after == 0]
    found += [Step("practice", trial.item) for trial in practice]
    for trial, following in zip(trials, [*trials[1:], None], strict=True):
        found.append(Step("trial", str(trial.number)))
        done = trial.number + 1
        found += [Step("check", check.id) for check in design.checks if check.after == done]
        if design.block_ratings and (following is None or following.block > trial.block):
            found.append(Step("ratings", str(trial.block)))
        if done % design.rules.break_every == 0 and following is not None:
            found.append(Step("break", str(done)))
    if design.questionnaire:
        found.append(Step("questionnaire", ""))
    return (*found, Step("end", ""))


def arranged(design: Design, slot: int, stimulus: Stimulus) -> Stimulus:
    """The lines of a card in the order of the study. At random: one order of all words per person, the same on every card."""
    if design.order == "given" or len(stimulus.lines) < 2:
        return stimulus
    key = f"{design.hash}/{design.seed}/slot/{slot}/words"

    def place(line: Line):
        name = line.name.casefold() if design.order == "alphabetical" else word_place(key, line.name)
        return name, line.name, line.value or ""

    return replace(stimulus, lines=tuple(sorted(stimulus.lines, key=place)))


@lru_cache(65536)
def word_place(key: str, word: str) -> bytes:
    return hashlib.sha256(f"{key}/{word}".encode()).digest()


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
