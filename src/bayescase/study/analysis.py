"""What the answers say: as in the paper, and as recommended. Pure functions of the exported tables.

A test that cannot be made says why in `note`, and has no numbers. Nothing here is NaN.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import optimize, stats

from ..explaining.explanation import counted
from . import mixed
from .design import Design, Likert

LABELS = {"bcm": "BCM", "lda": "LDA", "subspace": "BCM with subspace"}
HALVES = ("first", "second", "third")
MOST_EXACT, FLIPS, SEED = 20, 100_000, 2014  # people whose signs are all enumerated; random flips beyond
LONG = 600  # seconds; nobody thinks so long about a question
INDEPENDENT = "treats answers as independent"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Test:
    name: str
    statistic: float | None
    df: float | None
    p: float | None
    holm: float | None  # p, adjusted for the number of pairs of conditions; None for a single pair
    note: str  # how it was made, or why it could not be


@dataclass(frozen=True)
class Arm:
    """A condition."""

    condition: str
    answers: int
    right: int
    accuracy: float | None
    mean_seconds: float | None
    median_seconds: float | None


@dataclass(frozen=True)
class Within:
    """One outcome, compared within participants."""

    people: int
    difference: Estimate | None  # of shares of right answers; for time the ratio of geometric means
    effect_size: Estimate | None  # Cohen's d_z
    t: Test
    flip: Test
    order: Test
    by_order: tuple[tuple[str, int, float], ...]  # which condition came first, people, their mean difference (time: ratio)


@dataclass(frozen=True)
class Odds:
    """Of a right answer with the first condition against the second, for the same person and item."""

    ratio: Estimate | None
    above_one: float | None  # probability
    person_sd: float | None  # on the logit scale
    item_sd: float | None
    note: str


@dataclass(frozen=True)
class Pair:
    """Two conditions."""

    first: str
    second: str
    pooled_accuracy: Test  # the paper's
    pooled_time: Test
    accuracy: Within
    time: Within
    odds: Odds


@dataclass(frozen=True)
class Rating:
    """A question of the questionnaire, or two or three that ask the same of each part of the study."""

    id: str
    text: str
    labels: tuple[str, ...]
    counts: dict[str, tuple[int, ...]]  # condition, or "all" → people per label
    tests: dict[str, Test]  # "bcm, lda" → Wilcoxon


@dataclass(frozen=True)
class Result:
    """The analysis of one group of people."""

    people: int
    answers: int
    arms: tuple[Arm, ...]
    pairs: tuple[Pair, ...]
    ratings: tuple[Rating, ...]
    by_person: dict[str, dict[str, float]]  # person → condition → accuracy
    by_item: dict[str, dict[str, tuple[int, int]]]  # item → condition → right, answers
    seconds: dict[str, tuple[float, ...]]  # condition → times
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    title: str
    design_hash: str
    mode: str
    conditions: tuple[str, ...]
    phase: str
    simulated: int  # people among those included
    times: str
    left_out: dict[str, int]  # why → people
    everyone: Result
    flagged: int  # people who failed an attention check
    attentive: Result | None  # without them; None if there are none


def analyse(
    design: Design,
    answers: Sequence[Row],
    people: Sequence[Row],
    *,
    phase: str = "live",
    simulated: bool = False,
    times: str = "server",
) -> Analysis:
    """Analyse the exported tables.

    Parameters
    ----------
    design : Design
    answers, people : sequences of mappings
        Rows as in `answers.csv` and `people.csv`.
    phase : {"live", "pilot", "all"}, default="live"
    simulated : bool, default=False
        Count simulated people, too.
    times : {"server", "browser"}, default="server"
        The server's time runs from the first sending of a question to its answer, reloads and the network included; the
        browser's from the last showing.
    """
    if phase not in ("live", "pilot", "all"):
        raise ValueError(f"phase must be 'live', 'pilot' or 'all', not {phase!r}.")
    if times not in ("server", "browser"):
        raise ValueError(f"times must be 'server' or 'browser', not {times!r}.")
    kept: list[Row] = []
    left_out: dict[str, int] = {}
    for person in people:
        why = reason_to_leave_out(person, phase, simulated)
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        else:
            kept.append(person)
    names = {person["participant"] for person in kept}
    counted = [row for row in answers if row["participant"] in names and not row["superseded"]]
    attentive = [person for person in kept if not person["checks_failed"]]
    flagged = len(kept) - len(attentive)
    names = {person["participant"] for person in attentive}
    without = [row for row in counted if row["participant"] in names]
    return Analysis(
        design.title,
        design.hash,
        design.mode,
        design.conditions,
        phase,
        sum(bool(person["simulated"]) for person in kept),
        times,
        left_out,
        result(design, counted, kept, times),
        flagged,
        result(design, without, attentive, times) if flagged else None,
    )


def reason_to_leave_out(person, phase, simulated):
    if person["simulated"] and not simulated:
        return "simulated"
    if phase != "all" and person["phase"] != phase:
        return f"{person['phase']} phase"
    return "" if person["status"] == "complete" else str(person["status"])


def result(design, answers, people, times):
    column = "seconds" if times == "server" else "browser_seconds"
    table = Answers(design, answers, column)
    pairs = [pair(table, a, b, design) for a, b in combinations(range(len(design.conditions)), 2)]
    return Result(
        len(people),
        len(answers),
        tuple(arm(table, c) for c in range(len(design.conditions))),
        adjusted(pairs),
        ratings(design, people),
        {who: shares(table, i) for i, who in enumerate(table.people)},
        {what: tallies(table, table.item == i) for i, what in enumerate(table.items)},
        {name: tuple(table.seconds[(table.condition == c) & table.timed].tolist()) for c, name in enumerate(table.conditions)},
        tuple(remarks(design, table)),
    )


class Answers:
    """The answers as arrays of numbers, one entry per answer."""

    def __init__(self, design, answers, column="seconds"):
        self.conditions = design.conditions
        self.people = tuple(sorted({row["participant"] for row in answers}))
        self.items = tuple(sorted({row["item"] for row in answers}))

        def numbers(name, values):
            place = {value: i for i, value in enumerate(values)}
            return np.array([place[row[name]] for row in answers], int)

        self.person = numbers("participant", self.people)
        self.item = numbers("item", self.items)
        self.condition = numbers("condition", self.conditions)
        self.block = np.array([row["block"] for row in answers], int)
        self.right = np.array([bool(row["correct"]) for row in answers], bool)
        self.seconds = np.array([row[column] or 0 for row in answers], float)
        self.timed = self.seconds > 0  # the browser's time may be missing

    def means(self, values, keep, c):
        """Mean of `values` per person in condition c; NaN without an answer."""
        keep = keep & (self.condition == c)
        n = len(self.people)
        total, count = np.bincount(self.person[keep], values[keep], n), np.bincount(self.person[keep], minlength=n)
        return np.divide(total, count, out=np.full(n, np.nan), where=count > 0)

    def places(self, c):
        """The block in which each person met condition c; -1 if never."""
        found = np.full(len(self.people), -1)
        keep = self.condition == c
        found[self.person[keep]] = self.block[keep]
        return found


def remarks(design, table):
    """What a reader should know before the numbers."""
    if design.mode == "paper":
        yield (
            "Every person saw the same items in the same condition, so a difference between items looks like one between "
            "conditions; only the model with item effects takes account of it."
        )
    long = int((table.seconds > LONG).sum())
    if long:
        yield f"{long} answers took longer than {LONG // 60} minutes; they are counted. Logarithms suffer less from them."
    missing = int((~table.timed).sum())
    if missing:
        yield f"{missing} answers have no time and are left out of the comparison of times."
    if 0 < len(table.people) < 6:
        yield "With fewer than six people no test within participants can reach p < 0.05 by flipping signs."


def arm(table, c):
    keep = table.condition == c
    n, right = int(keep.sum()), int(table.right[keep].sum())
    seconds = table.seconds[keep & table.timed]
    mean, median = (float(np.mean(seconds)), float(np.median(seconds))) if len(seconds) else (None, None)
    return Arm(table.conditions[c], n, right, right / n if n else None, mean, median)


def shares(table, i):
    own = table.person == i
    return {name: float(table.right[own & (table.condition == c)].mean()) for c, name in met(table, own)}


def tallies(table, keep):
    found = {name: table.right[keep & (table.condition == c)] for c, name in met(table, keep)}
    return {name: (int(right.sum()), len(right)) for name, right in found.items()}


def met(table, keep):
    return [(c, name) for c, name in enumerate(table.conditions) if (keep & (table.condition == c)).any()]


# --- two conditions -------------------------------------------------------------------------------------------------------


def pair(table, a, b, design) -> Pair:
    log = np.log(np.where(table.timed, table.seconds, 1.0))
    everyone = np.ones(len(table.right), bool)
    return Pair(
        table.conditions[a],
        table.conditions[b],
        chi_square(table, a, b),
        pooled_t(table, a, b),
        within(table, table.right.astype(float), everyone, a, b, ratio=False),
        within(table, log, table.timed, a, b, ratio=True),
        odds(table, a, b),
    )


def adjusted(pairs):
    """Holm's p values over the pairs, for each kind of test."""
    if len(pairs) < 2:
        return tuple(pairs)
    for path in (
        ("pooled_accuracy",),
        ("pooled_time",),
        ("accuracy", "t"),
        ("accuracy", "flip"),
        ("time", "t"),
        ("time", "flip"),
    ):
        p = holm([get(pair, path).p for pair in pairs])
        pairs = [put(pair, path, replace(get(pair, path), holm=value)) for pair, value in zip(pairs, p, strict=True)]
    return tuple(pairs)


def get(record, path):
    for name in path:
        record = getattr(record, name)
    return record


def put(record, path, value):
    name, *rest = path
    return replace(record, **{name: put(getattr(record, name), rest, value) if rest else value})


def holm(p):
    """Holm's step-down adjustment; tests that could not be made stay None and are not counted."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    found, highest = [None] * len(p), 0.0
    for rank, (value, i) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        found[i] = highest
    return found


def not_made(name, why) -> Test:
    return Test(name, None, None, None, None, why)


def chi_square(table, a, b) -> Test:
    """Pearson's, without Yates' correction, of all answers."""
    name = "pooled χ²"
    counts = np.array([np.bincount(table.right[table.condition == c], minlength=2) for c in (a, b)])
    if not counts.sum(axis=1).all():
        return not_made(name, f"There are no answers in {listed_absent(table, a, b)}.")
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
        return not_made(name, f"There are too few answers with a time in {listed_absent(table, a, b)}.")
    if constant(first) and constant(second):
        return not_made(name, "All times within a condition are the same.")
    found = student(first, second, equal_var=True)
    return Test(name, float(found.statistic), float(found.df), float(found.pvalue), None, INDEPENDENT)


def listed_absent(table, a, b):
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
    se = d.std(ddof=1) / np.sqrt(n)
    t = float(d.mean() / se)
    reach = float(stats.t.ppf(0.975, n - 1) * se)
    test = Test(name, t, n - 1.0, float(2 * stats.t.sf(abs(t), n - 1)), None, counted(n, "person"))
    return test, float(d.mean()) - reach, float(d.mean()) + reach, effect_size(t, n)


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
    name = "sign-flip permutation"
    sizes = np.abs(d[d != 0])
    seen = abs(d.sum()) - 1e-9 * max(sizes.sum(), 1e-300)  # sums that are equal but for rounding count as equal
    if len(sizes) <= MOST_EXACT:
        sums = np.zeros(1)
        for size in sizes:
            sums = np.concatenate([sums + size, sums - size])
        p, how = float(np.mean(np.abs(sums) >= seen)), "exact: all signs were tried"
    else:
        signs = np.random.default_rng(SEED).integers(2, size=(FLIPS, len(sizes)), dtype=np.int8).astype(float)  # 0 and 1
        p = float(1 + (np.abs(2 * signs @ sizes - sizes.sum()) >= seen).sum()) / (1 + FLIPS)
        how = f"{FLIPS:,} random flips, seed {SEED}"
    return Test(name, float(d.mean()), None, p, None, f"{how}; {counted(len(d), 'person')}")


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


def odds(table, a, b) -> Odds:
    """The logistic model of all conditions, with the block as a further effect (practice)."""
    k = len(table.conditions)
    for c in (a, b):
        if not (table.condition == c).any():
            return Odds(None, None, None, None, f"There are no answers in {LABELS[table.conditions[c]]}.")
    c = np.zeros(2 * k - 1)
    for which, sign in ((a, 1.0), (b, -1.0)):
        if which:
            c[which] = sign
    posterior = table_posterior(table)
    middle, low, high, above = posterior.contrast(c)
    ratio = Estimate(*(float(np.exp(x)) for x in (middle, low, high)))
    person, item = posterior.spread()
    return Odds(ratio, above, person, item, "Bayesian logistic model with effects of condition, block, person and item")


def table_posterior(table):
    """Fitted once per table of answers."""
    if not hasattr(table, "posterior"):
        k = len(table.conditions)
        X = np.c_[np.ones(len(table.right)), np.eye(k)[table.condition][:, 1:], np.eye(k)[table.block][:, 1:]]
        table.posterior = mixed.fit(table.right, X, table.person, table.item)
    return table.posterior


# --- questionnaire --------------------------------------------------------------------------------------------------------


def ratings(design, people) -> tuple[Rating, ...]:
    """Questions whose ids end in _first, _second (_third) or in the name of a condition are compared; others are counted."""
    found: dict[str, dict[str, Likert]] = {}
    for question in design.questionnaire:
        stem, _, end = question.id.replace("-", "_").rpartition("_")
        compared = stem and end in (*HALVES, *design.conditions)
        found.setdefault(stem if compared else question.id, {})[end if compared else "all"] = question
    return tuple(rating(design, people, stem, parts) for stem, parts in found.items())


def rating(design, people, stem, parts):
    labels = max((question.labels for question in parts.values()), key=len)
    values: dict[str, list[int | None]] = {name: [] for name in (("all",) if "all" in parts else design.conditions)}
    for person in people:
        for name in values:
            half = HALVES[person["order"].split(" then ").index(name)] if name != "all" else "all"
            question = parts.get(name) or parts.get(half)
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
