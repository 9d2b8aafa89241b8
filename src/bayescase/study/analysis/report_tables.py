"""Results as tables, for a terminal and for the page."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...explaining.render.blocks import Table, table
from ...explaining.words import cut
from .results import Analysis, Comparison, Estimate, Outcome, Result, Test
from .sentences import in_units, interval, number, p_value, share

VERDICTS = {
    "kind": "explanations of this kind differ",
    "these": "these explanations differ",
    "equal": "no difference that matters",
    "open": "open",
    "none": "none",
}


def arms(analysis: Analysis, result: Result) -> Table:
    head: tuple[str, ...] = ("condition", "people", "answers", "right", "accuracy", "mean seconds", "median seconds")
    rows: list[tuple[Any, ...]] = [
        (analysis.labels[arm.condition], arm.people, arm.answers, arm.right, share(arm.accuracy),
         number(arm.mean_seconds, 1), number(arm.median_seconds, 1))
        for arm in result.arms
    ]  # fmt: skip
    if analysis.task == "rate":
        head, rows = (*head[:3], *head[5:]), [(*row[:3], *row[5:]) for row in rows]
    return table("Answers by condition", head, rows, tuple(range(1, len(head))))


def outcome_of(result: Result, one: Comparison) -> Outcome:
    return next(outcome for outcome in result.outcomes if outcome.id == one.outcome)


def named(analysis: Analysis, result: Result, one: Comparison) -> str:
    name = cut(outcome_of(result, one).name, 60)
    pairs = len({(other.first, other.second) for other in result.comparisons})
    pair = f": {analysis.labels[one.first]} against {analysis.labels[one.second]}" if pairs > 1 else ""
    return name + pair


def differences(analysis: Analysis, result: Result) -> Table:
    """How large, and how far it reaches."""
    head = ("what", "difference", "95 %, these explanations", "95 %, of this kind", "p, these", "p, of this kind", "verdict")
    rows = []
    for one in result.comparisons:
        show = in_units(outcome_of(result, one))
        value = "–" if one.difference is None else show(one.difference.value)
        rows.append(
            (named(analysis, result, one), value, interval(one.difference, show), interval(one.kind_difference, show),
             p_value(one.these.final), p_value(one.kind.final), VERDICTS[one.verdict])
        )  # fmt: skip
    return table("Differences between conditions", head, rows, (1, 2, 3, 4, 5))


def tests(analysis: Analysis, result: Result) -> Table:
    rows = []
    for one in result.comparisons:
        name = named(analysis, result, one)
        for test in dict.fromkeys((one.these, one.kind, one.people_only, one.order)):
            rows.append(test_row(f"{name}: {test.name}", test))
    return without_holm(table("Tests", ("test", "statistic", "df", "p", "p, Holm", "remark"), rows, (1, 2, 3, 4)))


def test_row(what: str, test: Test) -> tuple[str, ...]:
    df = "–" if test.df is None else f"{test.df:.4g}"
    return (what, number(test.statistic, 3), df, p_value(test.p), p_value(test.holm), test.note)


def effects(analysis: Analysis, result: Result) -> Table:
    """Sizes without a unit, and odds."""
    rows = []
    for one in result.comparisons:
        if one.effect_size is not None:
            kind = "d_z" if analysis.layout == "within" else "d"
            rows.append(effect_row(f"{named(analysis, result, one)}: Cohen's {kind}", one.effect_size, "over people only"))
    for odds in result.odds:
        a, b = analysis.labels[odds.first], analysis.labels[odds.second]
        sure = "" if odds.above_one is None else f"probability that {a} is better: {odds.above_one:.3f}; "
        rows.append(effect_row(f"odds of a right answer, {a} divided by {b}", odds.ratio, sure + odds.note))
    return table("Effect sizes", ("what", "estimate", "95 % interval", "remark"), rows, (1, 2))


def effect_row(what: str, estimate: Estimate | None, remark: str) -> tuple[str, ...]:
    return (what, "–" if estimate is None else number(estimate.value), interval(estimate), remark)


def orders(analysis: Analysis, result: Result) -> Table:
    rows = []
    for one in result.comparisons:
        show = in_units(outcome_of(result, one))
        for first, n, mean in one.by_order:
            rows.append((named(analysis, result, one), f"{analysis.labels[first]} first", n, show(mean)))
    return table("Does it matter which came first?", ("what", "order", "people", "difference"), rows, (2, 3))


def paper(analysis: Analysis, result: Result) -> Table:
    rows = []
    for one in result.pooled:
        pair = f"{analysis.labels[one.first]} against {analysis.labels[one.second]}"
        rows += [test_row(f"{pair}: {test.name}", test) for test in (one.accuracy, one.time)]
    head = ("test", "statistic", "df", "p", "p, Holm", "remark")
    return without_holm(table("As in the paper, which treats answers as independent", head, rows, (1, 2, 3, 4)))


def rating_table(analysis: Analysis, result: Result) -> Table:
    rows = []
    for rating in result.ratings:
        for condition, counts in rating.counts.items():
            middle = median_label(counts)
            shown = "all" if condition == "all" else analysis.labels[condition]
            rows.append((cut(rating.text, 90), shown, sum(counts), "–" if middle is None else rating.labels[middle]))
    return table("Ratings", ("question", "condition", "answers", "median"), rows, (2,))


def without_holm(found: Table) -> Table:
    """Without Holm's column where there is nothing to adjust for."""
    at = found.head.index("p, Holm")
    if any(row[at] != "–" for row in found.rows):
        return found
    head = (*found.head[:at], *found.head[at + 1 :])
    numbers = tuple(k - (k > at) for k in found.numbers if k != at)
    return replace(found, head=head, rows=tuple((*row[:at], *row[at + 1 :]) for row in found.rows), numbers=numbers)


def median_label(counts: tuple[int, ...]) -> int | None:
    """The lowest label that half of the answers do not exceed."""
    total = sum(counts)
    return None if not total else int(np.searchsorted(np.cumsum(counts), total / 2))


def tables(analysis: Analysis, result: Result) -> Iterator[Table]:
    """All of them, of one group of people."""
    if not result.answers:
        return
    yield arms(analysis, result)
    made = (differences, tests, effects, orders) + ((rating_table,) if result.ratings else ())
    for make in made + ((paper,) if result.pooled else ()):
        found = make(analysis, result)
        if found.rows:
            yield found
