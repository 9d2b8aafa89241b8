"""Ratings of the questionnaire: counted, and compared between conditions."""

from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy import stats

from ...explaining.words import counted
from ..design.design import Likert
from .paired import holm
from .results import Rating, Test, not_made

PARTS = ("first", "second", "third")


def ratings(design, people) -> tuple[Rating, ...]:
    """Questions whose ids end in _first, _second (_third) or in the name of a condition are compared; others are counted."""
    found: dict[str, dict[str, Likert]] = {}
    for question in design.questionnaire:
        stem, _, end = question.id.replace("-", "_").rpartition("_")
        compared = stem and end in (*PARTS, *design.conditions)
        found.setdefault(stem if compared else question.id, {})[end if compared else "all"] = question
    return tuple(rating(design, people, stem, parts) for stem, parts in found.items())


def rating(design, people, stem, parts):
    labels = max((question.labels for question in parts.values()), key=len)
    values: dict[str, list[int | None]] = {name: [] for name in (("all",) if "all" in parts else design.conditions)}
    for person in people:
        for name in values:
            part = PARTS[person["order"].split(" then ").index(name)] if name != "all" else "all"
            question = parts.get(name) or parts.get(part)
            values[name].append(person.get(f"likert_{question.id}") if question else None)
    counts = {name: tuple(sum(value == i for value in given) for i in range(len(labels))) for name, given in values.items()}
    tests = {}
    for a, b in combinations(values, 2):
        both = [(x, y) for x, y in zip(values[a], values[b], strict=True) if x is not None and y is not None]
        tests[f"{a}, {b}"] = wilcoxon(np.array([x - y for x, y in both]))
    if len(tests) > 1:
        for key, p in zip(tests, holm([test.p for test in tests.values()]), strict=True):
            tests[key] = replace(tests[key], holm=p)
    return Rating(stem, wording([question.text for question in parts.values()]), labels, counts, tests)


def wording(texts):
    """Of questions that differ before a colon only, "In the first part: …", what they share."""
    ends = {text.partition(": ")[2] for text in texts}
    return ends.pop() if len(texts) > 1 and len(ends) == 1 and "" not in ends else " / ".join(texts)


def wilcoxon(d) -> Test:
    name = "Wilcoxon signed-rank"
    if not d.any():
        why = "Nobody rated the two differently." if len(d) else "Nobody rated both."
        return not_made(name, why)
    found = stats.wilcoxon(d)
    return Test(
        name,
        float(found.statistic),
        None,
        float(found.pvalue),
        None,
        f"{counted(len(d), 'person')}, {int((d == 0).sum())} of them alike",
    )
