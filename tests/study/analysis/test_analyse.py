"""The analysis: known answers, agreement with scipy and brute force, and what it concludes when nothing is there."""

import json
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from bayescase.explaining.records import plain
from bayescase.study.analysis import mixed
from bayescase.study.analysis.analyse import BY_EXPLANATION, analyse, odds
from bayescase.study.analysis.answers_table import AnswerTable, outcomes
from bayescase.study.analysis.compare import compare, holm, verdict
from bayescase.study.analysis.generalise import Observed, reach
from bayescase.study.analysis.mixed import Term
from bayescase.study.analysis.paired import chi_square, paired_t, rank_test, sign_flip, welch_t
from bayescase.study.analysis.sentences import in_short
from bayescase.study.design.design import Likert
from bayescase.study.planted import Truth, World
from bayescase.study.planted import rows as planted_rows

from ..designs import AGREEMENT, between, predicting, rating_design, small_design, three_conditions
from ..made_data import plan, rows
from .error_rates import verdicts

CROSSED = small_design()
PAPER = small_design(mode="paper")


def with_rights(first, second, people=24):
    """Rows in which so many answers of each condition are right, the times in whole seconds."""
    answers, who = rows(CROSSED, people, np.random.default_rng(0))
    for condition, right in zip(CROSSED.labels, (first, second), strict=True):
        own = [row for row in answers if row["condition"] == condition]
        for k, row in enumerate(own):
            row["correct"] = k < right
    return answers, who


def numbers_in(value):
    """Every number of a result as JSON has it; NaN and infinity are refused by allow_nan=False."""
    json.dumps(plain(value), allow_nan=False)


def one(result, outcome="accuracy", first="bcm", second="lda"):
    return next(c for c in result.comparisons if (c.outcome, c.first, c.second) == (outcome, first, second))


# --- as in the paper ------------------------------------------------------------------------------------------------------


def test_the_papers_numbers_come_out():
    answers, who = with_rights(165, 137)
    pooled = analyse(CROSSED, answers, who).everyone.pooled[0]
    assert round(pooled.accuracy.statistic, 3) == 12.157
    assert pooled.accuracy.df == 1
    assert "independent" in pooled.accuracy.note
    assert pooled.time.df == 382
    first, second = ([row["seconds"] for row in answers if row["condition"] == c] for c in CROSSED.labels)
    found = stats.ttest_ind(first, second)
    assert pooled.time.statistic == pytest.approx(found.statistic)
    assert pooled.time.p == pytest.approx(found.pvalue)


# --- people ---------------------------------------------------------------------------------------------------------------


def test_paired_test_interval_and_effect_size_agree_with_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 1, (2, 15))
    test, mean, size = paired_t(a - b)
    found = stats.ttest_rel(a, b)
    assert (test.statistic, test.p, test.df) == pytest.approx((found.statistic, found.pvalue, 14))
    assert (mean.low, mean.high) == pytest.approx(found.confidence_interval())
    assert size.value == pytest.approx(np.mean(a - b) / np.std(a - b, ddof=1))
    assert stats.nct.cdf(test.statistic, 14, size.low * np.sqrt(15)) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(test.statistic, 14, size.high * np.sqrt(15)) == pytest.approx(0.025, abs=1e-6)


def test_two_groups_of_people_agree_with_scipy():
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.5, 1, 12), rng.normal(0, 2, 15)
    test, mean, size = welch_t(a, b)
    found = stats.ttest_ind(a, b, equal_var=False)
    assert (test.statistic, test.p, test.df) == pytest.approx((found.statistic, found.pvalue, found.df))
    assert (mean.low, mean.high) == pytest.approx(found.confidence_interval())
    assert size.low < size.value < size.high
    assert rank_test(a, b, within=False).p == pytest.approx(stats.brunnermunzel(a, b).pvalue)
    assert rank_test(a, a + 100, within=False).name == "Mann–Whitney"
    assert rank_test(np.ones(4), np.ones(4), within=False).p is None


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_sign_flips_are_all_enumerated(n):
    rng = np.random.default_rng(n)
    for d in (rng.normal(0.5, 1, n), rng.integers(-3, 4, n) / 8, rng.integers(-3, 4, n) / 7):
        all_sums = [abs(np.dot(signs, d)) for signs in product((-1, 1), repeat=n)]
        expected = np.mean([s >= abs(d.sum()) - 1e-12 for s in all_sums])
        test = sign_flip(d)
        assert test.p == pytest.approx(expected, abs=1e-12)
        assert "exact" in test.note


def test_random_sign_flips_repeat():
    d = np.random.default_rng(3).normal(0.35, 1, 30)
    test = sign_flip(d)
    found = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0))
    assert test.p == pytest.approx(found.pvalue, abs=0.01)
    assert sign_flip(d) == test
    assert "seed 2014" in test.note


def test_order_is_seen_when_practice_is_planted():
    answers, who = rows(CROSSED, 24, np.random.default_rng(5))
    for row in answers:
        row["seconds"] *= 0.5 if row["block"] else 1.0
    time = one(analyse(CROSSED, answers, who).everyone, "time")
    assert time.order.p < 1e-6
    (first, n, early), (second, m, late) = time.by_order
    assert (first, second, n, m) == ("bcm", "lda", 12, 12)
    assert early > 1.5
    assert late < 0.67
    assert time.difference.low < 1 < time.difference.high


# --- families -------------------------------------------------------------------------------------------------------------


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]


def test_all_outcomes_of_a_family_are_adjusted_together():
    """Four ratings and the time are one family; a single one of them must not be taken for the only one."""
    ratings = tuple(Likert(f"q{k}", f"Question {k}", AGREEMENT) for k in range(4))
    design = small_design(block_ratings=ratings)
    answers, who = rows(design, 24, np.random.default_rng(1))
    rng = np.random.default_rng(2)
    for person in who:
        for likert in ratings:
            person |= {f"rating_{likert.id}_{c}": int(rng.integers(5)) for c in design.labels}
    found = analyse(design, answers, who).everyone
    family = {outcome.id: outcome.family for outcome in found.outcomes}
    assert Counter(family.values()) == {"primary": 1, "others": 5}
    others = [c for c in found.comparisons if family[c.outcome] == "others"]
    assert [c.these.holm for c in others] == pytest.approx(holm([c.these.p for c in others]))
    assert one(found).these.holm is None
    three = three_conditions()
    primary = [
        c for c in analyse(three, *rows(three, 12, np.random.default_rng(0))).everyone.comparisons if c.outcome == "accuracy"
    ]
    assert [c.kind.holm for c in primary] == pytest.approx(holm([c.kind.p for c in primary]))


def test_the_plan_says_what_is_primary_and_who_is_left_out():
    design = replace(CROSSED, plan=replace(CROSSED.plan, primary="time", leave_out=("attention",)))
    answers, who = rows(design, 6, np.random.default_rng(0))
    who[0]["checks_failed"] = 1
    found = analyse(design, answers, who)
    assert found.everyone.outcomes[0].id == "time"
    assert found.left_out == {"failed an attention check": 1}
    assert (found.everyone.people, found.flagged, found.attentive) == (5, 0, None)


# --- how far a difference reaches -----------------------------------------------------------------------------------------


def observed(design, answers, outcome="accuracy"):
    table = AnswerTable(design, answers)
    values = table.values(next(o for o in outcomes(design) if o.id == outcome))
    parts = (table.condition == 0, table.person, table.item, table.block, table.explanation)
    keep = table.condition < 2
    return Observed(values[keep], *(part[keep] for part in parts))


def test_a_difference_by_hand():
    """Two people, four cases of two explanations, no noise: the difference is the mean over explanations."""
    person = np.repeat([0, 1], 4)
    item = np.tile(np.arange(4), 2)
    first = np.array([1, 0, 1, 0, 0, 1, 0, 1], bool)
    d = np.array([1.0, 1.0, 3.0, 3.0])  # of each case; explanations 0 and 1 have two each
    value = 10.0 * person + item + np.where(first, 0.5, -0.5) * d[item]
    found = reach(Observed(value, first, person, item, np.zeros(8, int), item // 2))
    assert (found.people, found.cases, found.explanations) == (2, 4, 2)
    assert found.kind is None  # two explanations are no kind
    assert found.these is None or found.these.value == pytest.approx(2.0)


def test_least_squares_agree_with_a_dense_solution():
    answers, _ = rows(CROSSED, 10, np.random.default_rng(3), effect=0.7)
    seen = observed(CROSSED, answers[5:])  # not balanced
    found = reach(seen)
    x = np.where(seen.first, 0.5, -0.5)

    def one_hot(group):
        return np.eye(group.max() + 1)[group]

    X = np.hstack([one_hot(seen.person), one_hot(seen.item), one_hot(seen.block), one_hot(seen.explanation) * x[:, None]])
    d = np.linalg.lstsq(X, seen.value, rcond=None)[0][-5:]
    assert found.these.value == pytest.approx(d.mean(), abs=1e-6)


def test_what_cannot_be_generalised_has_no_numbers():
    answers, _ = rows(PAPER, 8, np.random.default_rng(0))
    assert reach(observed(PAPER, answers))[:2] == (None, None)  # no case was met in both conditions
    two = [row for row in rows(CROSSED, 8, np.random.default_rng(0))[0] if row["explanation"] in ("chilli", "brownie")]
    found = reach(observed(CROSSED, two))
    assert found.kind is None
    assert found.these is not None


def test_the_difference_is_what_was_planted():
    truth = Truth({"bcm": 0.9, "lda": 0.7}, explanation_slope_sd=0.0, case_slope_sd=0.0, person_slope_sd=0.0)
    design = small_design()
    answers, who = planted_rows(design, 100, World(design, truth, 3))
    found = one(analyse(design, answers, who).everyone)
    assert (found.verdict, found.better) == ("kind", "bcm")
    for interval in (found.difference, found.kind_difference):
        assert 0.1 < interval.low < interval.value < interval.high < 0.3


def test_explanations_that_differ_widen_the_interval_for_their_kind_only():
    wide = Truth({"bcm": 0.75, "lda": 0.75}, explanation_slope_sd=2.0, case_slope_sd=0.0, person_slope_sd=0.0)
    design = small_design()
    found = one(analyse(design, *planted_rows(design, 50, World(design, wide, 2))).everyone)
    these, kind = (e.high - e.low for e in (found.difference, found.kind_difference))
    assert kind > 1.5 * these


# --- what it concludes when there is nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("slopes", [0.0, 1.0])
def test_a_kind_of_explanations_is_seldom_claimed_to_be_better_when_it_is_not(slopes):
    """120 studies of 24 people. tests/study/analysis/error_rates.py counts 400, also of 100 people."""
    studies, design = 120, CROSSED
    truth = Truth(
        {"bcm": 0.77, "lda": 0.77}, person_sd=1.0, case_sd=1.0, person_slope_sd=0.0, case_slope_sd=0.0,
        explanation_slope_sd=slopes, seed=5,
    )  # fmt: skip
    kind = by_people = 0
    for draw in range(studies):
        answers, _ = planted_rows(design, 24, World(design, truth, draw))
        seen = observed(design, answers)
        kind += reach(seen).kind.p < 0.05
        table = AnswerTable(design, answers)
        d = table.means(table.values(outcomes(design)[0]), 0) - table.means(table.values(outcomes(design)[0]), 1)
        by_people += paired_t(d)[0].p < 0.05
    assert kind <= stats.binom.ppf(0.999, studies, 0.05)
    if slopes:  # the broken analysis, which knows of people only
        assert by_people > 0.2 * studies


@pytest.mark.slow
@pytest.mark.parametrize("people", [24, 100])
@pytest.mark.parametrize("slopes", [0.0, 0.5, 1.0])
def test_false_positives_are_as_rare_as_promised(slopes, people):
    """400 studies without a difference on average. That these explanations differ is false only where none does."""
    found = [verdicts(CROSSED, people, slopes, draw) for draw in range(400)]
    kind, claimed = (sum(each) / len(found) for each in zip(*found, strict=True))
    assert 0.03 <= (kind if slopes else claimed) <= 0.07
    assert kind <= claimed


def test_a_kind_is_claimed_only_where_these_explanations_differ():
    found = one(analyse(CROSSED, *rows(CROSSED, 8, np.random.default_rng(3))).everyone)
    outcome = outcomes(CROSSED)[0]

    def judge(these, kind):
        changed = replace(found, these=replace(found.these, p=these), kind=replace(found.kind, p=kind))
        return verdict(changed, outcome, CROSSED)

    assert judge(0.03, 0.04) == "kind"
    assert judge(0.03, 0.2) == "these"
    assert judge(0.03, None) == "these"
    assert judge(0.2, 0.04) == "open"


def test_the_interval_of_a_kind_is_never_narrower_by_luck():
    """Explanations that happen to be alike say nothing of the noise of their cases."""
    for seed in range(20):
        seen = observed(CROSSED, planted_rows(CROSSED, 12, World(CROSSED, Truth(explanation_slope_sd=0.0), seed))[0])
        these, kind = (effect.interval() for effect in reach(seen)[:2])
        assert kind[1] - kind[0] >= 0.999 * (these[1] - these[0])


def test_sentences_claim_what_the_tests_find():
    truth = Truth({"bcm": 0.95, "lda": 0.5}, explanation_slope_sd=0.0)
    found = analyse(CROSSED, *planted_rows(CROSSED, 24, World(CROSSED, truth)))
    assert one(found.everyone).verdict == "kind"
    assert "reaches beyond what was shown" in in_short(found, found.everyone)[0]
    nothing = analyse(CROSSED, *planted_rows(CROSSED, 24, World(CROSSED, Truth(explanation_slope_sd=0.0), 3)))
    assert one(nothing.everyone).verdict == "open"
    assert "This may well be chance" in in_short(nothing, nothing.everyone)[0]


def test_false_positives_of_the_papers_analysis():
    """400 studies of 24 people, items and people differing by 1 logit, items fixed to conditions."""
    rng, studies = np.random.default_rng(2), 400
    broken = sum(chi_square(AnswerTable(PAPER, rows(PAPER, 24, rng)[0]), 0, 1).p < 0.05 for _ in range(studies))
    assert broken > 0.2 * studies


@pytest.mark.parametrize("outcome", ["accuracy", "time"])
def test_in_the_papers_mode_there_are_no_verdicts(outcome):
    """Items of one condition that take longer, or are harder, would pass for an effect of the condition."""
    given = Counter()
    for seed in range(3):
        answers, who = rows(PAPER, 24, np.random.default_rng(seed), item_sd=2.0)
        for row in answers:  # half of the items take three times as long
            row["seconds"] *= 3 if row["item"].startswith("a") else 1
        found = one(analyse(PAPER, answers, who).everyone, outcome)
        given[found.verdict] += 1
        assert found.these.p is None
        assert "one condition only" in found.these.note
    assert given == {"none": 3}


def test_equal_is_not_the_same_as_nothing_found():
    design = replace(CROSSED, plan=replace(CROSSED.plan, equal_within=0.15))
    truth = Truth({"bcm": 0.8, "lda": 0.8}, explanation_slope_sd=0.0, case_slope_sd=0.0, person_slope_sd=0.0)
    many = one(analyse(design, *planted_rows(design, 80, World(design, truth, 2))).everyone)
    few = one(analyse(design, *planted_rows(design, 4, World(design, truth, 2))).everyone)
    assert many.verdict == "equal"
    assert few.verdict == "open"


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_intervals_cover_the_truth(effect):
    """Explanations that differ; the logistic model's odds, and the time, which has no slopes here."""
    studies, covered, time_covered = 200, 0, 0
    truth = Truth(
        {"bcm": float(1 / (1 + np.exp(-1.0 - effect))), "lda": float(1 / (1 + np.exp(-1.0)))}, {"bcm": 30.0, "lda": 25.0},
        person_sd=1.0, case_sd=1.0, explanation_slope_sd=0.7,
    )  # fmt: skip
    for draw in range(studies):
        result = analyse(CROSSED, *planted_rows(CROSSED, 24, World(CROSSED, truth, draw))).everyone
        ratio, time = result.odds[0].ratio, one(result, "time").kind_difference
        covered += ratio.low < np.exp(effect) < ratio.high
        time_covered += time.low < 1.2 < time.high
    low, high = stats.binom.ppf([0.001, 0.999], studies, 0.95)
    assert low <= covered  # the prior of the slopes makes it careful
    assert low <= time_covered <= high


# --- the logistic model ---------------------------------------------------------------------------------------------------


def model_terms(n, item, condition, explanation):
    return (
        [Term("person", np.zeros(n, int)), Term("person by condition", condition)],
        [Term("case", item), Term(BY_EXPLANATION, 2 * explanation + condition)],
    )


def test_given_its_spreads_the_model_agrees_with_brute_force():
    """Two people, two cases: with all σ known, the posterior by draws of the prior weighted by the likelihood."""
    rng = np.random.default_rng(0)
    person, item = np.repeat([0, 1], 6), np.tile([0, 1, 0, 1, 0, 1], 2)
    condition = np.tile([0, 0, 1], 4)
    y = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0])
    X = np.c_[np.ones(12), condition - 0.5]
    within, terms = model_terms(12, item, condition, item)
    F = np.hstack([X, np.eye(2)[item], np.eye(4)[2 * item + condition]])
    Z = np.c_[np.ones(12), np.eye(2)[condition]]
    spans = (slice(2, 4), slice(4, 8)), (slice(0, 1), slice(1, 3))
    model = mixed.Model(y.astype(float), F, Z, person, np.array([0, 6]), 2, *spans)
    variance, own = np.array([0.8, 0.3]), np.array([0.5, 0.2])
    at = np.zeros(8), np.zeros((2, 3))
    at, state = mixed.newton(model, mixed.precision(model, variance), mixed.own_precision(model, own), at, 100)
    mean = (at[0] + mixed.shift(model, state))[1]
    sd = np.sqrt(mixed.linalg.cho_solve(state.S, np.eye(8))[1, 1])
    n = 400_000
    b = rng.normal(0, [mixed.INTERCEPT_SD, mixed.EFFECT_SD], (n, 2))
    cases, slopes = rng.normal(0, variance[0] ** 0.5, (n, 2)), rng.normal(0, variance[1] ** 0.5, (n, 4))
    people, own_slopes = rng.normal(0, own[0] ** 0.5, (n, 2)), rng.normal(0, own[1] ** 0.5, (n, 2, 2))
    log = np.zeros(n)
    for i in range(12):
        eta = b @ X[i] + cases[:, item[i]] + slopes[:, 2 * item[i] + condition[i]]
        eta += people[:, person[i]] + own_slopes[:, person[i], condition[i]]
        log += y[i] * eta - np.logaddexp(0, eta)
    w = np.exp(log - log.max())
    expected = w @ b[:, 1] / w.sum()
    spread = np.sqrt(w @ (b[:, 1] - expected) ** 2 / w.sum())
    assert mean == pytest.approx(expected, abs=0.15)
    assert sd == pytest.approx(spread, rel=0.15)
    assert within[0].name == "person"
    assert terms[0].name == "case"


def test_the_model_recovers_what_was_planted():
    truth = Truth(
        {"bcm": 0.9, "lda": 0.75}, person_sd=1.0, case_sd=0.7, person_slope_sd=0.0, case_slope_sd=0.0, explanation_slope_sd=0.0
    )
    design = CROSSED
    answers, _ = planted_rows(design, 80, World(design, truth, 4))
    found = odds(AnswerTable(design, answers), 0, 1)
    planted = (0.9 / 0.1) / (0.75 / 0.25)
    assert found.ratio.low < planted < found.ratio.high
    assert 0.5 < found.spreads["person"] < 1.3  # Laplace: a little small, with sixteen answers of a person
    turned = replace(design, conditions=design.conditions[::-1])
    swapped = odds(AnswerTable(turned, answers), 0, 1)
    assert swapped.ratio.value == pytest.approx(1 / found.ratio.value, rel=0.05)


def test_the_order_of_rows_and_the_numbering_do_not_matter():
    answers, _ = rows(CROSSED, 12, np.random.default_rng(4), effect=0.5)
    shuffled = [answers[i] for i in np.random.default_rng(0).permutation(len(answers))]
    renamed = [row | {"participant": row["participant"][::-1]} for row in shuffled]
    a, b = (odds(AnswerTable(CROSSED, part), 0, 1).ratio for part in (answers, renamed))
    assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-5)
    one_, two = (reach(observed(CROSSED, part)).kind for part in (answers, renamed))
    assert (one_.value, one_.se) == pytest.approx((two.value, two.se), rel=1e-6)


def test_perfect_scores_have_finite_odds():
    answers, who = with_rights(192, 150)
    ratio = analyse(CROSSED, answers, who).everyone.odds[0].ratio
    assert 0.5 < ratio.low < ratio.value < ratio.high < 1e5


# --- odd data -------------------------------------------------------------------------------------------------------------


def odd_data():
    answers, who = rows(CROSSED, 6, np.random.default_rng(0))
    yield "nothing", [], []
    yield "people without answers", [], who
    yield "one answer", answers[:1], who[:1]
    yield "one person", [row for row in answers if row["participant"] == "p000"], who[:1]
    yield "two people", [row for row in answers if row["participant"] in ("p000", "p001")], who[:2]
    yield "one condition", [row for row in answers if row["condition"] == "bcm"], who
    yield "all right", [row | {"correct": True} for row in answers], who
    yield "all wrong", [row | {"correct": False} for row in answers], who
    yield "perfectly apart", [row | {"correct": row["condition"] == "bcm"} for row in answers], who
    yield "equal times", [row | {"seconds": 7.0} for row in answers], who
    yield "no times", [row | {"seconds": None, "browser_seconds": None} for row in answers], who
    yield "a day for an answer", [row | {"seconds": 86400.0} if k == 3 else row for k, row in enumerate(answers)], who
    flagged = [person | {"checks_failed": 1} for person in who]
    yield "everyone flagged", answers, flagged


ODD = {name: data for name, *data in odd_data()}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("mode", ["crossed", "paper"])
def test_odd_data_get_a_sentence_and_no_nan(name, mode):
    answers, who = ODD[name]
    found = analyse(replace(CROSSED, mode=mode), answers, who)
    numbers_in(found)
    for comparison in found.everyone.comparisons:
        for test in (comparison.these, comparison.kind, comparison.people_only, comparison.order):
            assert test.p is None or 0 <= test.p <= 1
            assert test.p is not None or test.note.endswith(".")


@pytest.mark.parametrize("make", [three_conditions, between, predicting, rating_design])
@pytest.mark.parametrize("people", [0, 1, 2, 7])
def test_every_kind_of_design_can_be_analysed_from_the_first_person_on(make, people):
    design = make()
    answers, who = planted_rows(design, people, World(design, Truth()))
    found = analyse(design, answers, who).everyone
    numbers_in(found)
    assert len(found.comparisons) == len(outcomes(design)) * len(design.labels) * (len(design.labels) - 1) // 2
    assert {arm.people for arm in found.arms} <= {0, people, people // 2, people - people // 2}


def test_who_is_counted():
    answers, who = rows(CROSSED, 6, np.random.default_rng(0))
    who[0]["simulated"] = True
    who[1]["phase"] = "pilot"
    who[2]["status"] = "timed out"
    who[3]["checks_failed"] = 1
    found = analyse(CROSSED, answers, who)
    assert found.left_out == {"simulated": 1, "pilot phase": 1, "timed out": 1}
    assert (found.everyone.people, found.flagged, found.attentive.people) == (3, 1, 2)
    assert found.everyone.answers == 48
    assert analyse(CROSSED, answers, who, simulated=True).everyone.people == 4
    assert analyse(CROSSED, answers, who, phase="pilot").everyone.people == 1
    assert analyse(CROSSED, answers, who, phase="all", simulated=True).everyone.people == 5
    answers[-1]["superseded"] = True
    assert analyse(CROSSED, answers, who).everyone.answers == 47
    with pytest.raises(ValueError, match="phase must be 'live', 'pilot' or 'all', not 'x'"):
        analyse(CROSSED, answers, who, phase="x")
    with pytest.raises(ValueError, match="times must be"):
        analyse(CROSSED, answers, who, times="x")


def test_three_conditions_are_compared_in_pairs():
    design = three_conditions()
    answers, who = rows(design, 18, np.random.default_rng(0), effect=2.0)
    result = analyse(design, answers, who).everyone
    pairs = [("bcm", "lda"), ("bcm", "subspace"), ("lda", "subspace")]
    assert [(c.first, c.second) for c in result.comparisons if c.outcome == "accuracy"] == pairs
    first, second, third = (np.log(odds.ratio.value) for odds in result.odds)
    assert second - first == pytest.approx(third, abs=0.1)  # medians of mixtures add up nearly
    assert first > 1
    numbers_in(result)


# --- ratings --------------------------------------------------------------------------------------------------------------


def test_ratings_of_parts_are_ratings_of_conditions():
    labels = ("no", "so so", "yes")
    design = small_design(block_ratings=(Likert("clear", "Clear?", labels),), questionnaire=(Likert("fun", "Fun?", labels),))
    answers, who = rows(design, 12, np.random.default_rng(0))
    for k, person in enumerate(who):
        person |= {"rating_clear_bcm": 2, "rating_clear_lda": 0 if k else 1, "likert_fun": 1 if k else None}
    result = analyse(design, answers, who).everyone
    clear, fun = result.ratings
    assert clear.counts == {"bcm": (0, 0, 12), "lda": (11, 1, 0)}
    assert fun.counts == {"all": (0, 11, 0)}
    found = one(result, "clear")
    assert found.these.p == pytest.approx(stats.wilcoxon([2] * 11 + [1]).pvalue)
    assert found.difference.value == pytest.approx(23 / 12)
    assert (found.verdict, found.better) == ("these", "bcm")
    assert "rated all explanations of a part together" in found.kind.note


def test_ratings_without_a_difference_or_without_answers():
    design = small_design(block_ratings=(Likert("a", "A?", ("no", "yes")),))
    answers, who = rows(design, 4, np.random.default_rng(0))
    assert "both" in one(analyse(design, answers, who).everyone, "a").these.note
    for person in who:
        person |= {"rating_a_bcm": 1, "rating_a_lda": 1}
    assert "differently" in one(analyse(design, answers, who).everyone, "a").these.note


def test_ratings_of_every_answer_reach_as_far_as_accuracy_does():
    design = rating_design()
    truth = Truth(rating={"bcm": 0.9, "lda": 0.3})
    result = analyse(design, *planted_rows(design, 12, World(design, truth))).everyone
    found = one(result, "trust")
    assert (found.verdict, found.better, found.explanations) == ("kind", "bcm", 5)
    assert 1 < found.difference.value < 4
    assert result.odds == result.pooled == ()


def test_between_people_two_groups_are_compared():
    design = between(block_ratings=(Likert("a", "A?", AGREEMENT),))
    truth = Truth({"bcm": 0.95, "lda": 0.4}, rating={"bcm": 0.9, "lda": 0.2})
    result = analyse(design, *planted_rows(design, 24, World(design, truth))).everyone
    found = one(result)
    assert found.verdict in ("kind", "these")
    assert found.people_only.name == "Welch's t-test"
    assert found.order.p is None
    assert one(result, "a").these.name in ("Brunner–Munzel", "Mann–Whitney")
    assert one(result, "a").verdict == "these"


def test_a_comparison_has_all_that_a_reader_needs():
    table = AnswerTable(CROSSED, rows(CROSSED, 8, np.random.default_rng(0))[0])
    found = compare(table, [], outcomes(CROSSED)[0], 0, 1)
    assert (found.people, found.cases, found.explanations) == (8, 16, 5)
    assert found.these.name.endswith("these explanations")
    assert found.kind.name.endswith("explanations of this kind")


def test_plans_put_items_in_both_conditions():
    """The simulation stands on this: crossed, an item is met in both conditions; in the paper's mode in one."""
    for design, expected in ((CROSSED, 2), (PAPER, 1)):
        met = {(trial.item, trial.condition) for slot in range(8) for trial in plan(design, slot).trials}
        assert len(met) == expected * 16
