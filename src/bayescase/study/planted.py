"""What is true of people who are not: how often they are right, how long they take, what they rate, and how all of that varies.

    logit P(right) = condition + person + person's slope + case + case's slope + explanation's slope

Slopes are differences between conditions. `simulate` plays this through the real pages, `power` without them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .data.monitor import AWAY
from .design.design import Design
from .design.schedule import Trial, plan

LONGEST = AWAY / 2000  # seconds: who takes longer was away


@dataclass(frozen=True)
class Truth:
    """Standard deviations are on the logit scale; the defaults are what studies of this kind tend to have."""

    right: Mapping[str, float] = field(default_factory=dict)  # condition → share, for a person and a case without effects
    seconds: Mapping[str, float] = field(default_factory=dict)  # condition → median
    rating: Mapping[str, float] = field(default_factory=dict)  # condition → mean, from 0 (the lowest label) to 1
    person_sd: float = 0.8
    person_slope_sd: float = 0.3
    case_sd: float = 0.8
    case_slope_sd: float = 0.3
    explanation_slope_sd: float = 0.5
    pace_sd: float = 0.4  # of people, in log seconds
    seconds_sd: float = 0.5  # of answers, in log seconds
    rating_sd: float = 0.25  # of a rating, on a scale from 0 to 1
    dropout: float = 0.0
    attention: float = 0.98  # probability of passing a check
    seed: int = 0

    USUAL_RIGHT, USUAL_SECONDS, USUAL_RATING = 0.75, 28.0, 0.6


class World:
    """One draw of all that is the same for everybody: cases and explanations."""

    def __init__(self, design: Design, truth: Truth, draw: int = 0):
        self.design, self.truth, self.draw = design, truth, draw
        rng = np.random.default_rng([truth.seed, draw, 0])
        conditions = [condition.id for condition in design.conditions]
        items = [item.id for item in design.items]
        behind = list(dict.fromkeys(design.explanation_behind(item) for item in design.items))

        def slopes(names, sd):  # the difference between two conditions has this standard deviation
            drawn = rng.normal(0, sd / math.sqrt(2), (len(names), len(conditions)))
            return {(name, c): float(drawn[i, k]) for i, name in enumerate(names) for k, c in enumerate(conditions)}

        self.case = dict(zip(items, rng.normal(0, truth.case_sd, len(items)).tolist(), strict=True))
        self.case_slope = slopes(items, truth.case_slope_sd)
        self.explanation_slope = slopes(behind, truth.explanation_slope_sd)

    def logit(self, item: str, condition: str) -> float:
        right = self.truth.right.get(condition, Truth.USUAL_RIGHT)
        behind = self.design.explanation_behind(self.design.item(item))
        return logit(right) + self.case[item] + self.case_slope[item, condition] + self.explanation_slope[behind, condition]


class SimulatedMind:
    """One person's part of it."""

    def __init__(self, world: World, number: int):
        truth = world.truth
        self.world, self.rng = world, np.random.default_rng([truth.seed, world.draw, 1, number])
        self.skill, pace = float(self.rng.normal(0, truth.person_sd)), float(self.rng.normal(0, truth.pace_sd))
        self.pace = pace
        conditions = world.design.conditions
        drawn = self.rng.normal(0, truth.person_slope_sd / math.sqrt(2), len(conditions)).tolist()
        self.slope = {condition.id: value for condition, value in zip(conditions, drawn, strict=True)}

    def is_right(self, item: str, condition: str) -> bool:
        odds = self.world.logit(item, condition) + self.skill + self.slope[condition]
        return bool(self.rng.random() < 1 / (1 + math.exp(-odds)))

    def seconds(self, condition: str) -> float:
        median = self.world.truth.seconds.get(condition, Truth.USUAL_SECONDS)
        return min(float(math.exp(math.log(median) + self.pace + self.rng.normal(0, self.world.truth.seconds_sd))), LONGEST)

    def rating(self, condition: str, labels: int) -> int:
        mean = self.world.truth.rating.get(condition, Truth.USUAL_RATING)
        value = mean + 0.1 * self.slope[condition] + self.rng.normal(0, self.world.truth.rating_sd)
        return int(np.clip(round(value * (labels - 1)), 0, labels - 1))


def logit(p: float) -> float:
    p = min(max(p, 1e-9), 1 - 1e-9)
    return math.log(p / (1 - p))


def rows(design: Design, people: int, world: World) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(answers, people) as an export has them, as far as an analysis needs them: a whole study without any page."""
    answers, who = [], []
    for slot in range(people):
        mind, mine, name = SimulatedMind(world, slot), plan(design, slot), f"p{slot:04}"
        person: dict[str, Any] = {
            "participant": name, "phase": "live", "simulated": False, "status": "complete", "checks_failed": 0,
            "order": " then ".join(mine.cell.order),
        }  # fmt: skip
        answers += [answer_row(design, trial, mind, name) for trial in mine.trials]
        for likert in design.block_ratings:
            for condition in mine.cell.order:
                person[f"rating_{likert.id}_{condition}"] = mind.rating(condition, len(likert.labels))
        who.append(person)
    return answers, who


def answer_row(design: Design, trial: Trial, mind: SimulatedMind, name: str) -> dict[str, Any]:
    item = design.item(trial.item)
    right = mind.is_right(trial.item, trial.condition) if design.task != "rate" else None
    seconds = mind.seconds(trial.condition)
    row = {
        "participant": name, "superseded": False, "block": trial.block, "condition": trial.condition, "item": trial.item,
        "explanation": design.explanation_behind(item), "correct": right, "seconds": seconds, "browser_seconds": seconds,
    }  # fmt: skip
    return row | {f"rating_{one.id}": mind.rating(trial.condition, len(one.labels)) for one in design.item_ratings}
