"""What was found, in sentences for people who have never heard of a p value."""

from collections.abc import Iterator

from ...explaining.words import counted, listed
from .results import LABELS, Analysis, Pair, Result, Test

SURE = 0.05


def name(condition) -> str:
    return LABELS[condition]


def share(x) -> str:
    return "–" if x is None else f"{100 * x:.1f} %"


def number(x, digits=2) -> str:
    return "–" if x is None else f"{x:.{digits}f}".replace("-", "−")


def p_value(p) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_words(test: Test) -> str:
    """ "p = 0.012", with Holm's value if there are several pairs."""
    if test.p is None:
        return ""
    p = test.p if test.holm is None else test.holm
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"


def interval(estimate, show=number) -> str:
    if estimate is None or estimate.low is None:
        return "–"
    return f"{show(estimate.low)} to {show(estimate.high)}"


def points(x) -> str:
    return number(100 * x, 1)


def who_is_counted(analysis: Analysis) -> str:
    everyone = analysis.everyone
    n = everyone.people
    words = f"{counted(n, 'person')} with {counted(everyone.answers, 'answer')}"
    words += {"live": " of the live phase", "pilot": " of the pilot phase", "all": " of both phases"}[analysis.phase]
    words += f", {analysis.simulated} of them simulated" if analysis.simulated else ""
    left = [f"{n} {why}" for why, n in sorted(analysis.left_out.items())]
    if not left:
        return f"{words}. Nobody was left out."
    hint = " To count them: --phase all --simulated." if not everyone.answers and "simulated" in analysis.left_out else ""
    return f"{words}. Left out: {listed(left, 9)}.{hint}"


def in_short(result: Result, mode: str) -> list[str]:
    """What was found, for people who have never heard of a p value."""
    if not result.answers:
        return ["There are no answers to analyse yet."]
    found = [list(pair_in_short(result, pair, mode)) for pair in result.pairs]
    return found[0] if len(found) == 1 else [" ".join(sentences) for sentences in found]


def pair_in_short(result, pair, mode) -> Iterator[str]:
    a, b = name(pair.first), name(pair.second)
    arms = {arm.condition: arm for arm in result.arms}
    one, two = arms[pair.first], arms[pair.second]
    if not one.answers or not two.answers:
        yield f"{a} and {b} cannot be compared: there are no answers in {a if not one.answers else b}."
        return
    yield f"With {a} {share(one.accuracy)} of the answers were right, with {b} {share(two.accuracy)}."
    if pair.accuracy.difference is not None and pair.accuracy.difference.low is not None:
        d = pair.accuracy.difference
        yield f"Person by person the difference is {points(d.value)} percentage points (95 % interval {interval(d, points)})."
    yield accuracy_verdict(pair, mode, len(result.pairs))
    if pair.time.difference is not None:
        yield time_verdict(pair)


def accuracy_verdict(pair: Pair, mode: str, pairs: int) -> str:
    a, b = name(pair.first), name(pair.second)
    d, ratio = pair.accuracy.difference, pair.odds.ratio
    above = pair.odds.above_one
    if d is None or ratio is None or above is None:
        return (
            f"Whether this is more than chance cannot be said. {pair.odds.note if ratio is None else pair.accuracy.flip.note}"
        )
    p = pair.accuracy.flip.p if pair.accuracy.flip.holm is None else pair.accuracy.flip.holm
    by_people = p is not None and p < SURE
    by_model = 2 * min(above, 1 - above) * pairs < SURE  # for one pair: the interval does not hold 1
    better, worse = (a, b) if ratio.value > 1 else (b, a)
    if mode == "paper":
        if by_model:
            return f"People were right more often with {better} than with {worse}, also if the items differ in difficulty."
        return "This may be chance, or the items: each item was seen in one condition only."
    if by_people and by_model:
        return f"People were right more often with {better} than with {worse}; chance alone seldom makes such a difference."
    if by_people or by_model:
        return f"There are signs that people are right more often with {better}, but the two recommended analyses do not agree."
    if d.low is None and pair.accuracy.people == 1:
        return "One person is too few to tell a difference from chance."
    if d.low is None:
        return "There is no sign of a difference; with so even scores nothing more can be said."
    return (
        "This may well be chance. That does not show that the two are equal: any difference in the interval fits the answers."
    )


def time_verdict(pair: Pair) -> str:
    a, b = name(pair.first), name(pair.second)
    ratio, test = pair.time.difference, pair.time.flip
    assert ratio is not None
    if abs(ratio.value - 1) < 0.005:
        return f"Answers took as long with {a} as with {b}."
    how = f"{100 * abs(ratio.value - 1):.0f} % {'longer' if ratio.value > 1 else 'less time'}"
    words = f"An answer took {how} with {a} than with {b}"
    p = test.p if test.holm is None else test.holm
    if p is not None and p < SURE:
        return f"{words}, which is more than chance would make."
    return f"{words}, which may well be chance."
