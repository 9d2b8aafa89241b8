"""The answers as arrays of numbers, one entry per answer, and what is compared of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..design.design import Design, Likert
from .results import Outcome

Row = Mapping[str, Any]
NAMES = {"accuracy": "right answers", "time": "time"}


def outcomes(design: Design) -> tuple[Outcome, ...]:
    """Everything that is compared between conditions, the primary outcome first."""
    found: list[tuple[str, str, str, str, tuple[str, ...]]] = []
    if design.task != "rate":
        found.append(("accuracy", NAMES["accuracy"], "answer", "share", ()))
    found.append(("time", NAMES["time"], "answer", "ratio", ()))
    for likerts, level in ((design.item_ratings, "answer"), (design.block_ratings, "block")):
        found += [(likert.id, likert.text, level, "points", likert.labels) for likert in likerts]
    named = [
        Outcome(id, name, level, scale, "primary" if id == design.plan.primary else "others", labels)
        for id, name, level, scale, labels in found
    ]
    return tuple(sorted(named, key=lambda outcome: outcome.family != "primary"))


class AnswerTable:
    """The answers as arrays of numbers, one entry per answer."""

    def __init__(self, design: Design, answers: Sequence[Row], column: str = "seconds"):
        self.design = design
        self.conditions = tuple(condition.id for condition in design.conditions)
        self.people = tuple(sorted({row["participant"] for row in answers}))
        self.items = tuple(sorted({row["item"] for row in answers}))
        self.explanations = tuple(sorted({row["explanation"] for row in answers}))

        def numbers(name, values):
            place = {value: i for i, value in enumerate(values)}
            return np.array([place[row[name]] for row in answers], int)

        self.person = numbers("participant", self.people)
        self.item = numbers("item", self.items)
        self.explanation = numbers("explanation", self.explanations)
        self.condition = numbers("condition", self.conditions)
        self.block = np.array([row["block"] for row in answers], int)
        self.judged = np.array([row["correct"] is not None for row in answers], bool)
        self.right = np.array([bool(row["correct"]) for row in answers], bool)
        self.seconds = np.array([row[column] or 0 for row in answers], float)
        self.timed = self.seconds > 0  # the browser's time may be missing
        self.rated = {likert.id: rating_values(answers, likert) for likert in design.item_ratings}

    def values(self, outcome: Outcome) -> np.ndarray:
        """One per answer; NaN where there is none. Times as logarithms."""
        if outcome.id == "accuracy":
            return np.where(self.judged, self.right, np.nan)
        if outcome.id == "time":
            return np.where(self.timed, np.log(np.where(self.timed, self.seconds, 1.0)), np.nan)
        return self.rated[outcome.id]

    def means(self, values: np.ndarray, c: int) -> np.ndarray:
        """Mean of `values` per person in condition c; NaN without one."""
        keep = np.isfinite(values) & (self.condition == c)
        n = len(self.people)
        total, count = np.bincount(self.person[keep], values[keep], n), np.bincount(self.person[keep], minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)

    def places(self, c: int) -> np.ndarray:
        """The block in which each person met condition c; -1 if never."""
        found = np.full(len(self.people), -1)
        keep = self.condition == c
        found[self.person[keep]] = self.block[keep]
        return found


def rating_values(answers: Sequence[Row], likert: Likert) -> np.ndarray:
    given = [row.get(f"rating_{likert.id}") for row in answers]
    return np.array([np.nan if value is None else float(value) for value in given], float)
