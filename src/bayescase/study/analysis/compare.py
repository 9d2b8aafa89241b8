"""One outcome in two conditions: the difference, how far it reaches, and the verdict."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import stats

from ...explaining.words import counted
from ..design.design import Design
from .answers_table import AnswerTable, Row
from .generalise import FEWEST, Effect, Observed, reach
from .paired import FLIPS, order_test, paired_t, rank_test, sign_flip, welch_t
from .results import SURE, Comparison, Estimate, Outcome, Test, not_made

THESE, KIND = "these explanations", "explanations of this kind"


class ByPerson(NamedTuple):
    """A value per person in each of two conditions; NaN where there is none."""

    first: np.ndarray
    second: np.ndarray
    before: np.ndarray  # did the first condition come first?


def compare(table: AnswerTable, people: Sequence[Row], outcome: Outcome, a: int, b: int, *, flips: int = FLIPS) -> Comparison:
    """The family's adjustment and the verdict come later, by `judged`. `flips` of signs at most; no verdict needs them."""
    design = table.design
    within = design.layout == "within"
    if outcome.level == "block":
        by_person = block_values(design, people, outcome, a, b)
        return of_blocks(by_person, design, outcome, a, b, within)
    values = table.values(outcome)
    by_person = ByPerson(table.means(values, a), table.means(values, b), table.places(a) < table.places(b))
    kept = np.isfinite(values) & np.isin(table.condition, (a, b))
    parts = (table.condition == a, table.person, table.item, table.block, table.explanation)
    found = reach(Observed(values[kept], *(part[kept] for part in parts)), within)
    test, plain, size = people_test(by_person, within, flips)
    show = np.exp if outcome.scale == "ratio" else float
    crossed = design.mode == "crossed"
    these = effect_test(f"t-test over people and cases: {THESE}", found.these, too_few(found.people, found.cases, crossed))
    kind = effect_test(
        f"t-test over people, cases and explanations: {KIND}", found.kind, few_explanations(found.explanations, crossed)
    )
    groups = order_groups(by_person, table.conditions[a], table.conditions[b])
    difference = estimate(found.these, show) or shown(plain, show)
    return Comparison(
        outcome.id, table.conditions[a], table.conditions[b], found.people, found.cases, found.explanations,
        difference, estimate(found.kind, show), these, kind, test, size,
        order_test(groups) if within else not_made("order × condition", "Each person met one condition."),
        tuple((name, len(part), float(show(part.mean()))) for name, part in groups if within and len(part)),
        "open", higher(difference, outcome, table.conditions[a], table.conditions[b]),
    )  # fmt: skip


def too_few(people: int, cases: int, crossed: bool) -> str:
    if not crossed:
        return "Each case was seen in one condition only, so a difference between cases looks like one between conditions."
    if not people or not cases:
        return "No case was met in both conditions."
    return "There are too few people or cases, or all values are the same."


def few_explanations(n: int, crossed: bool) -> str:
    if not crossed:
        return too_few(0, 0, crossed)
    return (
        f"{counted(n, 'explanation')} cannot stand for a kind; it takes {FEWEST} or more."
        if n < FEWEST
        else too_few(1, 1, True)
    )


def effect_test(name: str, effect: Effect | None, why: str) -> Test:
    if effect is None:
        return not_made(name, why)
    return Test(name, float(effect.t), float(effect.df), effect.p, None, f"standard error {effect.se:.3g}")


def estimate(effect: Effect | None, show) -> Estimate | None:
    if effect is None:
        return None
    low, high = effect.interval()
    return Estimate(float(show(effect.value)), float(show(low)), float(show(high)))


def shown(found: Estimate | None, show) -> Estimate | None:
    if found is None:
        return None
    return Estimate(float(show(found.value)), *(None if end is None else float(show(end)) for end in (found.low, found.high)))


def higher(difference: Estimate | None, outcome: Outcome, first: str, second: str) -> str | None:
    neutral = 1.0 if outcome.scale == "ratio" else 0.0
    if difference is None or difference.value == neutral:
        return None
    return first if difference.value > neutral else second


def people_test(values: ByPerson, within: bool, flips: int) -> tuple[Test, Estimate | None, Estimate | None]:
    """(test that knows of people only, plain mean difference, effect size)"""
    if not within:
        return welch_t(values.first[np.isfinite(values.first)], values.second[np.isfinite(values.second)])
    d = (values.first - values.second)[np.isfinite(values.first) & np.isfinite(values.second)]
    if not len(d):
        return not_made("sign-flip permutation", "No person has answers in both conditions."), None, None
    _, mean, size = paired_t(d)
    return sign_flip(d, flips), mean or Estimate(float(d.mean()), None, None), size


def order_groups(values: ByPerson, first: str, second: str) -> list[tuple[str, np.ndarray]]:
    both = np.isfinite(values.first) & np.isfinite(values.second)
    d, before = (values.first - values.second)[both], values.before[both]
    return [(first, d[before]), (second, d[~before])]


# --- ratings of a part ----------------------------------------------------------------------------------------------------


def block_values(design: Design, people: Sequence[Row], outcome: Outcome, a: int, b: int) -> ByPerson:
    ids = [condition.id for condition in design.conditions]

    def of(person, c):
        value = person.get(f"rating_{outcome.id}_{ids[c]}")
        return np.nan if value is None else float(value)

    orders = [person["order"].split(" then ") for person in people]
    before = [ids[a] in order and (ids[b] not in order or order.index(ids[a]) < order.index(ids[b])) for order in orders]
    first, second = (np.array([of(person, c) for person in people], float) for c in (a, b))
    return ByPerson(first, second, np.array(before, bool))


def of_blocks(values: ByPerson, design: Design, outcome: Outcome, a: int, b: int, within: bool) -> Comparison:
    """People rate all explanations of a part together: nothing can be said of others."""
    first, second = (design.conditions[c].id for c in (a, b))
    if within:
        both = np.isfinite(values.first) & np.isfinite(values.second)
        sides = values.first[both], values.second[both]
        _, mean, size = paired_t(sides[0] - sides[1])
        mean = mean or (Estimate(float((sides[0] - sides[1]).mean()), None, None) if len(sides[0]) else None)
    else:
        sides = values.first[np.isfinite(values.first)], values.second[np.isfinite(values.second)]
        _, mean, size = welch_t(*sides)
    groups = order_groups(values, first, second)
    n = len(sides[0]) if within else len(sides[0]) + len(sides[1])
    test = rank_test(*sides, within)
    why = "People rated all explanations of a part together."
    order = order_test(groups) if within else not_made("order × condition", "Each person met one condition.")
    by_order = tuple((name, len(part), float(part.mean())) for name, part in groups if within and len(part))
    return Comparison(
        outcome.id, first, second, n, 0, 0, mean, None, test, not_made(KIND, why), test, size, order, by_order, "open",
        higher(mean, outcome, first, second),
    )  # fmt: skip


# --- verdicts -------------------------------------------------------------------------------------------------------------


def judged(found: list[Comparison], outcomes: Sequence[Outcome], design: Design) -> tuple[Comparison, ...]:
    """With Holm's p values, over all comparisons of a family, and a verdict each."""
    family = {outcome.id: outcome.family for outcome in outcomes}
    for name in sorted(set(family.values())):
        own = [i for i, one in enumerate(found) if family[one.outcome] == name]
        if len(own) < 2:
            continue
        for test in ("these", "kind", "people_only"):
            adjusted = holm([getattr(found[i], test).p for i in own])
            for i, p in zip(own, adjusted, strict=True):
                found[i] = replace(found[i], **{test: replace(getattr(found[i], test), holm=p)})
    of = {outcome.id: outcome for outcome in outcomes}
    return tuple(replace(one, verdict=verdict(one, of[one.outcome], design)) for one in found)


def verdict(one: Comparison, outcome: Outcome, design: Design) -> str:
    if design.mode == "paper":
        return "none"
    if one.these.final is None or one.these.final >= SURE:
        return "equal" if is_equal(one, outcome, design) else "open"
    return "kind" if one.kind.final is not None and one.kind.final < SURE else "these"  # what is not shown here is not beyond


def is_equal(one: Comparison, outcome: Outcome, design: Design) -> bool:
    """Is the 90 % interval, so that each of two one-sided tests errs in 5 %, within what is too small to matter?"""
    test, found, plan = one.these, one.difference, design.plan
    if found is None or found.low is None or found.high is None or test.p is None:
        return False
    most = np.log(plan.equal_ratio) if outcome.scale == "ratio" else plan.equal_within
    if outcome.scale == "points":
        most *= len(outcome.labels) - 1
    ends = [np.log(end) if outcome.scale == "ratio" else end for end in (found.value, found.low, found.high)]
    narrower = 1.645 / 1.96 if test.df is None else quantiles(test.df)
    middle, low, high = ends
    return bool(middle - (middle - low) * narrower > -most and middle + (high - middle) * narrower < most)


def quantiles(df: float) -> float:
    """How much narrower a 90 % interval is than one of 95 %."""
    return float(stats.t.ppf(0.95, df) / stats.t.ppf(0.975, df))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment; tests that could not be made stay None and are not counted."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    found: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, i) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        found[i] = highest
    return found
