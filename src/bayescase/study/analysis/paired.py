"""Two conditions: the pooled tests of the paper, and tests of each person's difference."""

import warnings

import numpy as np
from scipy import optimize, stats

from ...explaining.words import counted
from .results import LABELS, Estimate, Test, Within, not_made

FLIPS, SEED = 100_000, 2014  # random flips of signs; all of them if there are fewer
INDEPENDENT = "treats answers as independent"


def holm(p):
    """Holm's step-down adjustment; tests that could not be made stay None and are not counted."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    found, highest = [None] * len(p), 0.0
    for rank, (value, i) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        found[i] = highest
    return found


def chi_square(table, a, b) -> Test:
    """Pearson's, without Yates' correction, of all answers."""
    name = "pooled χ²"
    counts = np.array([np.bincount(table.right[table.condition == c], minlength=2) for c in (a, b)])
    if not counts.sum(axis=1).all():
        return not_made(name, f"There are no answers in {absent_conditions(table, a, b)}.")
    if not counts.sum(axis=0).all():
        return not_made(name, f"Every answer was {'right' if counts[0, 1] else 'wrong'}, so there is nothing to compare.")
    found = stats.chi2_contingency(counts, correction=False)
    note = f"{INDEPENDENT}; N = {counts.sum()}"
    return Test(name, float(found.statistic), float(found.dof), float(found.pvalue), None, note)


def pooled_t(table, a, b) -> Test:
    """Student's, with equal variances, of the seconds of all answers."""
    name = "pooled t-test of seconds"
    first, second = (table.seconds[(table.condition == c) & table.timed] for c in (a, b))
    if min(len(first), len(second)) < 1 or len(first) + len(second) < 3:
        return not_made(name, f"There are too few answers with a time in {absent_conditions(table, a, b)}.")
    if constant(first) and constant(second):
        return not_made(name, "All times within a condition are the same.")
    found = student(first, second, equal_var=True)
    return Test(name, float(found.statistic), float(found.df), float(found.pvalue), None, INDEPENDENT)


def absent_conditions(table, a, b):
    absent = [LABELS[table.conditions[c]] for c in (a, b) if not (table.condition == c).any()]
    return " and ".join(absent) or "each condition"


def student(first, second, equal_var):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)  # one of the two is constant, which is no harm
        return stats.ttest_ind(first, second, equal_var=equal_var)


def constant(values):
    return len(values) < 2 or np.ptp(values) <= 1e-9 * np.abs(values).max()


def within(table, values, keep, a, b, ratio) -> Within:
    """Differences of each person's means; `ratio`: values are logarithms, so differences are shown as ratios."""
    first, second = table.means(values, keep, a), table.means(values, keep, b)
    both = np.isfinite(first) & np.isfinite(second)
    d, before = (first - second)[both], (table.places(a) < table.places(b))[both]
    show = np.exp if ratio else float
    groups = [(table.conditions[c], d[before == (c == a)]) for c in (a, b)]
    by_order = tuple((name, len(part), float(show(part.mean()))) for name, part in groups if len(part))
    if not len(d):
        why = "No person has answers in both conditions."
        t, flip = not_made("paired t-test", why), not_made("sign-flip permutation", why)
        return Within(0, None, None, t, flip, order_test(groups), by_order)
    t, low, high, size = paired_t(d)
    found = Estimate(float(show(d.mean())), *(None if x is None else float(show(x)) for x in (low, high)))
    return Within(len(d), found, size, t, sign_flip(d), order_test(groups), by_order)


def paired_t(d):
    """(test, lower and upper end of the 95 % interval of the mean, d_z) of differences within people."""
    name, n = "paired t-test", len(d)
    if n < 2:
        return not_made(name, "It needs two people or more."), None, None, None
    if constant(d):
        return not_made(name, "The difference is the same for every person, so its spread is unknown."), None, None, None
    found = stats.ttest_1samp(d, 0.0)  # of differences, so the test of pairs
    t, interval = float(found.statistic), found.confidence_interval(0.95)
    test = Test(name, t, float(found.df), float(found.pvalue), None, counted(n, "person"))
    return test, float(interval.low), float(interval.high), effect_size(t, n)


def effect_size(t, n) -> Estimate:
    """Cohen's d_z, with the interval of the noncentral t distribution."""
    if t < 0:
        found = effect_size(-t, n)
        return Estimate(-found.value, *(None if end is None else -end for end in (found.high, found.low)))

    def end(q):
        return float(optimize.brentq(lambda nc: stats.nct.cdf(t, n - 1, nc) - q, -5.0, 10 + 3 * t) / np.sqrt(n))

    try:
        low, high = end(0.975), end(0.025)
    except (ValueError, RuntimeError):  # so far out that the distribution cannot be computed
        low = high = None
    return Estimate(float(t / np.sqrt(n)), low, high)


def sign_flip(d) -> Test:
    """If the conditions do not differ, each person's difference could as well have had the other sign."""
    name, n = "sign-flip permutation", len(d)
    sizes = d[d != 0]  # those without a difference change nothing
    if len(sizes) < 2:
        return Test(name, float(d.mean()), None, 1.0, None, f"exact: all signs were tried; {counted(n, 'person')}")

    def distance(values, axis):
        return np.abs(np.round(values.sum(axis=axis) / np.abs(sizes).max(), 9))  # equal but for rounding counts as equal

    found = stats.permutation_test(
        (sizes,), distance, permutation_type="samples", vectorized=True, n_resamples=FLIPS, batch=FLIPS // 10,
        alternative="greater", rng=np.random.default_rng(SEED),
    )  # fmt: skip
    exact = 2 ** len(sizes) <= FLIPS
    how = "exact: all signs were tried" if exact else f"{FLIPS:,} random flips, seed {SEED}"
    return Test(name, float(d.mean()), None, float(found.pvalue), None, f"{how}; {counted(n, 'person')}")


def order_test(groups) -> Test:
    """Does the difference depend on which condition came first? If so, practice or fatigue is at work."""
    name = "order × condition (Welch)"
    first, second = (part for _, part in groups)
    if min(len(first), len(second)) < 2:
        return not_made(name, "It needs two people or more in each order.")
    if constant(first) and constant(second):
        return not_made(name, "Within each order the difference is the same for every person.")
    found = student(first, second, equal_var=False)
    return Test(
        name, float(found.statistic), float(found.df), float(found.pvalue), None, f"{len(first)} and {len(second)} people"
    )
