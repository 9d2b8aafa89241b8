"""Tests of people: each person's difference, or two groups of people; and the pooled tests of the paper."""

import warnings
from typing import Any

import numpy as np
from scipy import optimize, stats

from ...explaining.words import counted
from .answers_table import AnswerTable
from .results import Estimate, Pooled, Test, not_made

FLIPS, SEED = 100_000, 2014  # random flips of signs; all of them if there are fewer
INDEPENDENT = "treats answers as independent"


def pooled(table: AnswerTable, a: int, b: int) -> Pooled:
    """As in the paper."""
    return Pooled(table.conditions[a], table.conditions[b], chi_square(table, a, b), pooled_t(table, a, b))


def chi_square(table: AnswerTable, a: int, b: int) -> Test:
    """Pearson's, without Yates' correction, of all answers."""
    name = "pooled χ²"
    sides = [table.right[(table.condition == c) & table.judged] for c in (a, b)]
    counts = np.array([np.bincount(side, minlength=2) for side in sides])
    if not counts.sum(axis=1).all():
        return not_made(name, f"There are no right or wrong answers in {absent(table, a, b)}.")
    if not counts.sum(axis=0).all():
        return not_made(name, f"Every answer was {'right' if counts[0, 1] else 'wrong'}, so there is nothing to compare.")
    found = stats.chi2_contingency(counts, correction=False)
    note = f"{INDEPENDENT}; N = {counts.sum()}"
    return Test(name, float(found.statistic), float(found.dof), float(found.pvalue), None, note)


def pooled_t(table: AnswerTable, a: int, b: int) -> Test:
    """Student's, with equal variances, of the seconds of all answers."""
    name = "pooled t-test of seconds"
    first, second = (table.seconds[(table.condition == c) & table.timed] for c in (a, b))
    if min(len(first), len(second)) < 1 or len(first) + len(second) < 3:
        return not_made(name, f"There are too few answers with a time in {absent(table, a, b)}.")
    if constant(first) and constant(second):
        return not_made(name, "All times within a condition are the same.")
    found = student(first, second, equal_var=True)
    return Test(name, float(found.statistic), float(found.df), float(found.pvalue), None, INDEPENDENT)


def absent(table: AnswerTable, a: int, b: int) -> str:
    gone = [table.design.labels[table.conditions[c]] for c in (a, b) if not (table.condition == c).any()]
    return " and ".join(gone) or "each condition"


def student(first: np.ndarray, second: np.ndarray, equal_var: bool):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)  # one of the two is constant, which is no harm
        return stats.ttest_ind(first, second, equal_var=equal_var)


def constant(values: np.ndarray) -> bool:
    return len(values) < 2 or np.ptp(values) <= 1e-9 * np.abs(values).max()


# --- people ---------------------------------------------------------------------------------------------------------------


def paired_t(d: np.ndarray) -> tuple[Test, Estimate | None, Estimate | None]:
    """(test, mean with its interval, Cohen's d_z) of differences within people."""
    name, n = "paired t-test", len(d)
    if n < 2:
        return not_made(name, "It needs two people or more."), None, None
    if constant(d):
        return not_made(name, "The difference is the same for every person, so its spread is unknown."), None, None
    found = stats.ttest_1samp(d, 0.0)  # of differences, so the test of pairs
    t, interval = float(found.statistic), found.confidence_interval(0.95)
    test = Test(name, t, float(found.df), float(found.pvalue), None, counted(n, "person"))
    mean = Estimate(float(d.mean()), float(interval.low), float(interval.high))
    return test, mean, effect_size(t, n - 1, 1 / np.sqrt(n))


def welch_t(first: np.ndarray, second: np.ndarray) -> tuple[Test, Estimate | None, Estimate | None]:
    """(test, difference with its interval, Cohen's d) of two groups of people."""
    name = "Welch's t-test"
    if min(len(first), len(second)) < 2:
        return not_made(name, "It needs two people or more in each condition."), None, None
    if constant(first) and constant(second):
        return not_made(name, "Within each condition everybody has the same value, so the spread is unknown."), None, None
    found = student(first, second, equal_var=False)
    interval = found.confidence_interval(0.95)
    note = f"{len(first)} and {len(second)} people"
    test = Test(name, float(found.statistic), float(found.df), float(found.pvalue), None, note)
    mean = Estimate(float(first.mean() - second.mean()), float(interval.low), float(interval.high))
    size = np.sqrt(1 / len(first) + 1 / len(second))
    return test, mean, effect_size(float(found.statistic), float(found.df), size)


def effect_size(t: float, df: float, size: float) -> Estimate:
    """Cohen's d: t · size, with the interval of the noncentral t distribution."""
    if t < 0:
        found = effect_size(-t, df, size)
        return Estimate(-found.value, *(None if end is None else -end for end in (found.high, found.low)))

    def end(q):
        return float(optimize.brentq(lambda nc: stats.nct.cdf(t, df, nc) - q, -5.0, 10 + 3 * t) * size)

    try:
        low, high = end(0.975), end(0.025)
    except (ValueError, RuntimeError):  # so far out that the distribution cannot be computed
        low = high = None
    return Estimate(float(t * size), low, high)


def sign_flip(d: np.ndarray, flips: int = FLIPS) -> Test:
    """If the conditions do not differ, each person's difference could as well have had the other sign."""
    name, n = "sign-flip permutation", len(d)
    sizes = d[d != 0]  # those without a difference change nothing
    if len(sizes) < 2:
        mean = float(d.mean()) if n else 0.0
        return Test(name, mean, None, 1.0, None, f"exact: all signs were tried; {counted(n, 'person')}")

    def distance(values, axis):
        return np.abs(np.round(values.sum(axis=axis) / np.abs(sizes).max(), 9))  # equal but for rounding counts as equal

    found = stats.permutation_test(
        (sizes,), distance, permutation_type="samples", vectorized=True, n_resamples=flips, batch=max(flips // 10, 1),
        alternative="greater", rng=np.random.default_rng(SEED),
    )  # fmt: skip
    exact = 2 ** len(sizes) <= flips
    how = "exact: all signs were tried" if exact else f"{flips:,} random flips, seed {SEED}"
    return Test(name, float(d.mean()), None, float(found.pvalue), None, f"{how}; {counted(n, 'person')}")


def order_test(groups: list[tuple[str, np.ndarray]]) -> Test:
    """Does the difference depend on which condition came first? If so, practice or fatigue is at work."""
    name = "order × condition (Welch)"
    first, second = (part for _, part in groups)
    if min(len(first), len(second)) < 2:
        return not_made(name, "It needs two people or more in each order.")
    if constant(first) and constant(second):
        return not_made(name, "Within each order the difference is the same for every person.")
    found = student(first, second, equal_var=False)
    note = f"{len(first)} and {len(second)} people"
    return Test(name, float(found.statistic), float(found.df), float(found.pvalue), None, note)


def rank_test(first: np.ndarray, second: np.ndarray, within: bool) -> Test:
    """Of ratings: Wilcoxon's signed-rank test within people, Brunner and Munzel's between them."""
    name = "Wilcoxon signed-rank" if within else "Brunner–Munzel"
    found: Any
    if within:
        d = first - second
        if not d.any():
            return not_made(name, "Nobody rated the two differently." if len(d) else "Nobody rated both.")
        found, note = stats.wilcoxon(d), f"{counted(len(d), 'person')}, {int((d == 0).sum())} of them alike"
    else:
        if min(len(first), len(second)) < 2:
            return not_made(name, "It needs two people or more in each condition.")
        if len(np.unique(np.concatenate([first, second]))) < 2:
            return not_made(name, "Everybody rated alike.")
        note = f"{len(first)} and {len(second)} people"
        if min(first) > max(second) or min(second) > max(first):  # its variance is 0 where the groups do not overlap
            found, name = stats.mannwhitneyu(first, second, alternative="two-sided"), "Mann–Whitney"
        else:
            found = stats.brunnermunzel(first, second)
    return Test(name, float(found.statistic), None, float(found.pvalue), None, note)
