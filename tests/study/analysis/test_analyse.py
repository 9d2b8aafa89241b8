"""The analysis: known answers, agreement with scipy and brute force, and what it concludes when nothing is there."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from bayescase.explaining.records import plain
from bayescase.study.analysis import mixed
from bayescase.study.analysis.analyse import analyse, odds
from bayescase.study.analysis.answers_table import AnswerTable
from bayescase.study.analysis.paired import chi_square, holm, paired_t, sign_flip, within
from bayescase.study.design.design import Likert, Representation
from bayescase.study.design.wording import RATINGS, ratings

from ..designs import small_design
from ..made_data import plan, rows

CROSSED = small_design()
PAPER = small_design(mode="paper")


def three_arms(mode="crossed"):
    items = [replace(item, id=f"c{i}", item_set="C") for i, item in enumerate(CROSSED.of_set("A"))]
    more = [
        Representation("subspace", r.cluster, r.source, r.stimulus) for r in CROSSED.representations if r.condition == "bcm"
    ]
    return small_design(
        mode=mode,
        conditions=("bcm", "lda", "subspace"),
        items=(*CROSSED.items, *items),
        representations=(*CROSSED.representations, *more),
    )


def with_rights(first, second, people=24):
    """Rows in which so many answers of each condition are right, the times in whole seconds."""
    answers, who = rows(CROSSED, people, np.random.default_rng(0))
    for condition, right in zip(CROSSED.conditions, (first, second), strict=True):
        own = [row for row in answers if row["condition"] == condition]
        for k, row in enumerate(own):
            row["correct"] = k < right
    return answers, who


def numbers_in(value):
    """Every number of a result as JSON has it; NaN and infinity are refused by allow_nan=False."""
    json.dumps(plain(value), allow_nan=False)


# --- as in the paper ------------------------------------------------------------------------------------------------------


def test_the_papers_numbers_come_out():
    answers, who = with_rights(165, 137)
    pair = analyse(CROSSED, answers, who).everyone.pairs[0]
    assert round(pair.pooled_accuracy.statistic, 3) == 12.157
    assert pair.pooled_accuracy.df == 1
    assert "independent" in pair.pooled_accuracy.note
    assert pair.pooled_time.df == 382
    first, second = ([row["seconds"] for row in answers if row["condition"] == c] for c in CROSSED.conditions)
    found = stats.ttest_ind(first, second)
    assert pair.pooled_time.statistic == pytest.approx(found.statistic)
    assert pair.pooled_time.p == pytest.approx(found.pvalue)


# --- within participants --------------------------------------------------------------------------------------------------


def test_paired_test_interval_and_effect_size_agree_with_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 1, (2, 15))
    test, low, high, size = paired_t(a - b)
    found = stats.ttest_rel(a, b)
    assert (test.statistic, test.p, test.df) == pytest.approx((found.statistic, found.pvalue, 14))
    assert (low, high) == pytest.approx(found.confidence_interval())
    assert size.value == pytest.approx(np.mean(a - b) / np.std(a - b, ddof=1))
    assert stats.nct.cdf(test.statistic, 14, size.low * np.sqrt(15)) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(test.statistic, 14, size.high * np.sqrt(15)) == pytest.approx(0.025, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_sign_flips_are_all_enumerated(n):
    rng = np.random.default_rng(n)
    for d in (rng.normal(0.5, 1, n), rng.integers(-3, 4, n) / 8):
        all_sums = [abs(np.dot(signs, d)) for signs in product((-1, 1), repeat=n)]
        expected = np.mean([s >= abs(d.sum()) - 1e-12 for s in all_sums])
        test = sign_flip(d)
        assert test.p == pytest.approx(expected, abs=1e-12)
        assert "exact" in test.note


def test_random_sign_flips_agree_with_scipy_and_repeat():
    d = np.random.default_rng(3).normal(0.35, 1, 30)
    test = sign_flip(d)
    found = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0))
    assert test.p == pytest.approx(found.pvalue, abs=0.01)
    assert sign_flip(d) == test
    assert "seed 2014" in test.note


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]


def test_order_is_seen_when_practice_is_planted():
    answers, who = rows(CROSSED, 24, np.random.default_rng(5))
    for row in answers:
        row["seconds"] *= 0.5 if row["block"] else 1.0
    time = analyse(CROSSED, answers, who).everyone.pairs[0].time
    assert time.order.p < 1e-6
    (first, n, early), (second, m, late) = time.by_order
    assert (first, second, n, m) == ("bcm", "lda", 12, 12)
    assert early > 1.5
    assert late < 0.67
    assert time.difference.low < 1 < time.difference.high


# --- the model ------------------------------------------------------------------------------------------------------------


def test_the_model_agrees_with_brute_force():
    """Two people, two items: the posterior by a sum over the six unknowns and two spreads on a fine grid of draws."""
    rng = np.random.default_rng(0)
    person, item = np.repeat([0, 1], 6), np.tile([0, 1, 0, 1, 0, 1], 2)
    c = np.tile([0.5, 0.5, -0.5], 4)
    y = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1, 1, 1, 0])
    n = 1_000_000  # draws of the prior, weighted by the likelihood
    b0, b1 = rng.normal(0, mixed.INTERCEPT_SD, n), rng.normal(0, mixed.EFFECT_SD, n)
    s = np.abs(rng.normal(0, mixed.SPREAD_SD, (2, n)))
    u, v = rng.normal(0, 1, (2, n)) * s[0], rng.normal(0, 1, (2, n)) * s[1]
    log = np.zeros(n)
    for i in range(len(y)):
        eta = b0 + b1 * c[i] + u[person[i]] + v[item[i]]
        log += y[i] * eta - np.logaddexp(0, eta)
    w = np.exp(log - log.max())
    order = np.argsort(b1)
    cumulative = np.cumsum(w[order]) / w.sum()
    low, median, high = (b1[order][np.searchsorted(cumulative, q)] for q in (0.025, 0.5, 0.975))
    found = mixed.fit(y, np.c_[np.ones(len(y)), c], person, item).contrast(np.array([0.0, 1.0]))
    assert found[0] == pytest.approx(median, abs=0.2)  # the interval is five wide; a dozen answers are few for Laplace
    assert found[1:3] == pytest.approx((low, high), abs=0.4)
    assert found[3] == pytest.approx(w[b1 > 0].sum() / w.sum(), abs=0.02)


def test_the_model_recovers_what_was_planted():
    design = CROSSED
    answers, _ = rows(design, 200, np.random.default_rng(2), effect=1.0)
    found = odds(AnswerTable(design, answers), 0, 1)
    assert found.ratio.low < np.e < found.ratio.high
    assert found.ratio.high / found.ratio.low < 2
    assert found.above_one > 0.999
    assert found.person_sd == pytest.approx(1, abs=0.2)
    assert found.item_sd == pytest.approx(1, abs=0.5)
    swapped = odds(AnswerTable(replace(design, conditions=("lda", "bcm")), answers), 0, 1)
    assert swapped.ratio.value == pytest.approx(1 / found.ratio.value, rel=0.01)


def test_the_order_of_rows_and_the_numbering_do_not_matter():
    answers, _ = rows(CROSSED, 12, np.random.default_rng(4), effect=0.5)
    shuffled = [answers[i] for i in np.random.default_rng(0).permutation(len(answers))]
    for row in shuffled:
        row["participant"] = row["participant"][::-1]
    a, b = (odds(AnswerTable(CROSSED, part), 0, 1).ratio for part in (answers, shuffled))
    assert (a.value, a.low, a.high) == pytest.approx((b.value, b.low, b.high), rel=1e-6)


def test_perfect_scores_have_finite_odds():
    answers, who = with_rights(192, 150)
    ratio = analyse(CROSSED, answers, who).everyone.pairs[0].odds.ratio
    assert 1 < ratio.low < ratio.value < ratio.high < 1e5


# --- what it concludes when there is nothing ------------------------------------------------------------------------------


def rejections(design, studies, test, seed):
    rng = np.random.default_rng(seed)
    return sum(test(AnswerTable(design, rows(design, 24, rng)[0])) < 0.05 for _ in range(studies))


def by_flips(table):
    d = within(table, table.right.astype(float), np.ones(len(table.right), bool), 0, 1, ratio=False)
    return d.flip.p


def pooled(table):
    return chi_square(table, 0, 1).p


def test_false_positives_are_near_five_percent_and_the_papers_are_not():
    """400 studies of 24 people, items and people differing by 1 logit. The last line is the broken analysis."""
    studies = 400
    low, high = stats.binom.ppf([0.001, 0.999], studies, 0.05)
    recommended = rejections(CROSSED, studies, by_flips, 1)
    assert recommended <= high
    assert recommended >= low / 3  # items that change sides add noise that flipping cannot use: it is a little careful
    broken = rejections(PAPER, studies, pooled, 2)
    assert broken > 0.2 * studies > high


def test_flips_do_not_save_fixed_items_but_the_model_does():
    """In the paper's mode a comparison within people still takes easy items for a good explanation."""
    rng = np.random.default_rng(3)
    studies = 60
    wrong = model = 0
    for _ in range(studies):
        table = AnswerTable(PAPER, rows(PAPER, 24, rng)[0])
        wrong += by_flips(table) < 0.05
        ratio = odds(table, 0, 1).ratio
        model += not ratio.low < 1 < ratio.high
    assert wrong > 0.2 * studies
    assert model <= stats.binom.ppf(0.999, studies, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 1.0])
def test_intervals_of_the_model_cover_the_truth(effect):
    rng = np.random.default_rng(int(10 * effect) + 7)
    studies, covered, time_covered, found = 300, 0, 0, 0
    for _ in range(studies):
        answers, who = rows(CROSSED, 24, rng, effect=effect, slow=0.2)
        pair = analyse(CROSSED, answers, who).everyone.pairs[0]
        covered += pair.odds.ratio.low < np.exp(effect) < pair.odds.ratio.high
        time_covered += pair.time.difference.low < np.exp(0.2) < pair.time.difference.high
        found += pair.accuracy.flip.p < 0.05
    low, high = stats.binom.ppf([0.001, 0.999], studies, 0.95)
    assert low <= covered <= high
    assert low <= time_covered <= high
    if effect:
        assert found > 0.8 * studies


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
    for pair in found.everyone.pairs:
        tests = (pair.pooled_accuracy, pair.pooled_time, pair.accuracy.t, pair.accuracy.flip, pair.time.t, pair.time.order)
        for test in tests:
            assert test.p is None or 0 <= test.p <= 1
            assert test.p is not None or test.note.endswith(".")


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
    design = three_arms()
    answers, who = rows(design, 18, np.random.default_rng(0), effect=2.0)
    result = analyse(design, answers, who).everyone
    assert [(pair.first, pair.second) for pair in result.pairs] == [("bcm", "lda"), ("bcm", "subspace"), ("lda", "subspace")]
    for path in ("t", "flip"):
        tests = [getattr(pair.accuracy, path) for pair in result.pairs]
        assert [test.holm for test in tests] == pytest.approx(holm([test.p for test in tests]))
    one, two, three = (np.log(pair.odds.ratio.value) for pair in result.pairs)
    assert two - one == pytest.approx(three, abs=0.05)  # medians of mixtures add up nearly
    assert one > 1
    numbers_in(result)


# --- questionnaire --------------------------------------------------------------------------------------------------------


def test_ratings_of_halves_are_ratings_of_conditions():
    labels = ("no", "so so", "yes")
    design = small_design(
        questionnaire=(
            Likert("clear_first", "First?", labels),
            Likert("clear_second", "Second?", labels),
            Likert("fun", "Fun?", labels),
        )
    )
    answers, who = rows(design, 12, np.random.default_rng(0))
    for k, person in enumerate(who):
        better = {"bcm": 2, "lda": 0 if k else 1}
        first, second = person["order"].split(" then ")
        person |= {"likert_clear_first": better[first], "likert_clear_second": better[second], "likert_fun": 1 if k else None}
    clear, fun = analyse(design, answers, who).everyone.ratings
    assert clear.counts == {"bcm": (0, 0, 12), "lda": (11, 1, 0)}
    differences = [2] * 11 + [1]
    assert clear.tests["bcm, lda"].p == pytest.approx(stats.wilcoxon(differences).pvalue)
    assert clear.text == "First? / Second?"
    assert fun.counts == {"all": (0, 11, 0)}
    assert fun.tests == {}


def test_ratings_without_a_difference_or_without_answers():
    design = small_design(questionnaire=(Likert("a_bcm", "A?", ("no", "yes")), Likert("a_lda", "B?", ("no", "yes"))))
    answers, who = rows(design, 4, np.random.default_rng(0))
    assert "both" in analyse(design, answers, who).everyone.ratings[0].tests["bcm, lda"].note
    for person in who:
        person |= {"likert_a_bcm": 1, "likert_a_lda": 1}
    assert "differently" in analyse(design, answers, who).everyone.ratings[0].tests["bcm, lda"].note


def test_ratings_of_a_new_study_are_compared():
    design = small_design(questionnaire=ratings(2))
    found = analyse(design, *rows(design, 4, np.random.default_rng(0))).everyone.ratings
    assert [rating.text for rating in found] == [text for _, text in RATINGS]
    assert all(list(rating.tests) == ["bcm, lda"] for rating in found)


def test_plans_put_items_in_both_conditions():
    """The simulation stands on this: crossed, an item is met in both conditions; in the paper's mode in one."""
    for design, expected in ((CROSSED, 2), (PAPER, 1)):
        met = {(trial.item, trial.condition) for slot in range(8) for trial in plan(design, slot).trials}
        assert len(met) == expected * 16
