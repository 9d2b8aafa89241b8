"""Results as rows of tables, for a terminal and for the page."""

import numpy as np

from ...explaining.words import counted, cut
from .results import Pair, Result, Test, Within
from .sentences import interval, name, number, p_value, points, share

ARM_HEAD = ("condition", "answers", "right", "accuracy", "mean seconds", "median seconds")
TEST_HEAD = ("test", "statistic", "df", "p", "p, Holm", "remark")
EFFECT_HEAD = ("what", "estimate", "95 % interval", "remark")


def arm_rows(result: Result):
    return [
        (
            name(arm.condition),
            arm.answers,
            arm.right,
            share(arm.accuracy),
            number(arm.mean_seconds, 1),
            number(arm.median_seconds, 1),
        )
        for arm in result.arms
    ]


def test_row(what: str, test: Test):
    df = "–" if test.df is None else f"{test.df:.4g}"
    return (what, number(test.statistic, 3), df, p_value(test.p), p_value(test.holm), test.note)


def test_rows(pair: Pair):
    return [
        test_row("accuracy: " + pair.accuracy.t.name, pair.accuracy.t),
        test_row("accuracy: " + pair.accuracy.flip.name, pair.accuracy.flip),
        test_row("accuracy: " + pair.accuracy.order.name, pair.accuracy.order),
        test_row("log time: " + pair.time.t.name, pair.time.t),
        test_row("log time: " + pair.time.flip.name, pair.time.flip),
        test_row("log time: " + pair.time.order.name, pair.time.order),
    ]


def effect_rows(pair: Pair):
    a, b = name(pair.first), name(pair.second)

    def row(what, estimate, show, remark):
        return (what, "–" if estimate is None else show(estimate.value), interval(estimate, show), remark)

    def small(x):
        return number(x, 2)

    above = pair.odds.above_one
    sure = "" if above is None else f"probability that {a} is better: {'> 0.999' if above > 0.999 else f'{above:.3f}'}; "
    n = counted(pair.accuracy.people, "person")
    return [
        row(f"odds of a right answer, {a} against {b}", pair.odds.ratio, small, sure + pair.odds.note),
        row("difference in accuracy, percentage points", pair.accuracy.difference, points, n),
        row("the same as Cohen's d_z", pair.accuracy.effect_size, small, n),
        row(
            f"time, {a} divided by {b}", pair.time.difference, small, f"{counted(pair.time.people, 'person')}, geometric means"
        ),
        row("the same as Cohen's d_z", pair.time.effect_size, small, "of log seconds"),
    ]


def order_rows(pair: Pair):
    def words(within: Within, show):
        return {first: (n, show(mean)) for first, n, mean in within.by_order}

    accuracy, time = words(pair.accuracy, points), words(pair.time, number)
    return [
        (f"{name(first)} first", n, difference, time.get(first, ("", "–"))[1]) for first, (n, difference) in accuracy.items()
    ]


def paper_rows(pair: Pair):
    return [
        test_row("accuracy: " + pair.pooled_accuracy.name, pair.pooled_accuracy),
        test_row("time: " + pair.pooled_time.name, pair.pooled_time),
    ]


def rating_rows(result: Result):
    rows = []
    for rating in result.ratings:
        for condition, counts in rating.counts.items():
            middle = median_label(counts)
            shown = "all" if condition == "all" else name(condition)
            rows.append((cut(rating.text, 90), shown, sum(counts), "–" if middle is None else rating.labels[middle]))
    return rows


def rating_test_rows(result: Result):
    return [
        test_row(f"{cut(rating.id, 40)}: {test.name}, {' against '.join(name(c) for c in which.split(', '))}", test)
        for rating in result.ratings
        for which, test in rating.tests.items()
    ]


def without_holm(head, rows):
    """The tables of tests lack Holm's column where there is nothing to adjust for."""
    at = head.index("p, Holm") if "p, Holm" in head else None
    if at is None or any(row[at] != "–" for row in rows):
        return head, rows
    return tuple(np.delete(head, at).tolist()), [(*row[:at], *row[at + 1 :]) for row in rows]


def median_label(counts):
    """The lowest label that half of the people do not exceed."""
    total = sum(counts)
    return None if not total else int(np.searchsorted(np.cumsum(counts), total / 2))


def title_of(pair: Pair) -> str:
    return f"{name(pair.first)} against {name(pair.second)}"
