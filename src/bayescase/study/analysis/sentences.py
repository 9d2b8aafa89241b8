"""What was found, in sentences for people who have never heard of a p value."""

from ...explaining.words import counted, listed
from .results import SURE, Analysis, Comparison, Estimate, Outcome, Result

# --- numbers in words -----------------------------------------------------------------------------------------------------


def share(x: float | None) -> str:
    return "–" if x is None else f"{100 * x:.1f} %"


def number(x: float | None, digits: int = 2) -> str:
    return "–" if x is None else f"{x:.{digits}f}".replace("-", "−")


def p_value(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def points(x: float | None) -> str:
    return number(None if x is None else 100 * x, 1)


def in_units(outcome: Outcome):
    """How a difference of this outcome is written."""
    return points if outcome.scale == "share" else number


def interval(estimate: Estimate | None, show=number) -> str:
    if estimate is None or estimate.low is None:
        return "–"
    return f"{show(estimate.low)} to {show(estimate.high)}"


# --- who ------------------------------------------------------------------------------------------------------------------


def who_is_counted(analysis: Analysis) -> str:
    everyone = analysis.everyone
    words = f"{counted(everyone.people, 'person')} with {counted(everyone.answers, 'answer')}"
    words += {"live": " of the live phase", "pilot": " of the pilot phase", "all": " of both phases"}[analysis.phase]
    words += f", {analysis.simulated} of them simulated" if analysis.simulated else ""
    if analysis.planned is not None and everyone.people and everyone.people != analysis.planned:
        words += f"; the plan was {analysis.planned}"
    left = [f"{n} {why}" for why, n in sorted(analysis.left_out.items())]
    if not left:
        return f"{words}. Nobody was left out."
    hint = ""
    if not everyone.answers and "simulated" in analysis.left_out:
        hint = " Simulated people and those of the pilot are counted only if that is asked for."
    return f"{words}. Left out: {listed(left, 9)}.{hint}"


# --- what ------------------------------------------------------------------------------------------------------------------


def in_short(analysis: Analysis, result: Result) -> list[str]:
    """The primary outcome in full, a sentence for each other one."""
    if not result.answers:
        return ["There are no answers to analyse yet."]
    of = {outcome.id: outcome for outcome in result.outcomes}
    found = []
    for one in result.comparisons:
        outcome = of[one.outcome]
        words = [what(analysis, one, outcome), verdict(analysis, one)]
        if outcome.family == "primary":
            found.append(" ".join([*levels(analysis, result, one, outcome), *words]))
        elif one.difference is not None:
            found.append(" ".join(words))
    return found


def levels(analysis: Analysis, result: Result, one: Comparison, outcome: Outcome) -> list[str]:
    arms = {arm.condition: arm for arm in result.arms}
    first, second = arms[one.first], arms[one.second]
    a, b = analysis.labels[one.first], analysis.labels[one.second]
    if outcome.id == "accuracy" and first.accuracy is not None and second.accuracy is not None:
        return [f"With {a} {share(first.accuracy)} of the answers were right, with {b} {share(second.accuracy)}."]
    absent = [name for name, arm in ((a, first), (b, second)) if not arm.answers]
    return [f"There are no answers in {listed(absent, 2)}."] if absent else []


def what(analysis: Analysis, one: Comparison, outcome: Outcome) -> str:
    """The difference in words, with its intervals."""
    a, b = analysis.labels[one.first], analysis.labels[one.second]
    if one.difference is None:
        return f"{a} and {b} cannot be compared: {one.these.note}"
    show, d = in_units(outcome), one.difference
    ranges = []
    if d.low is not None:
        ranges.append(f"95 % interval {interval(d, show)}{reach_words(one)}")
    if one.kind_difference is not None:
        ranges.append(f"{interval(one.kind_difference, show)} for explanations of this kind")
    behind = f" ({'; '.join(ranges)})" if ranges else ""
    if outcome.scale == "share":
        return f"The difference, {a} less {b}, is {points(d.value)} percentage points{behind}."
    if outcome.scale == "ratio":
        if abs(d.value - 1) < 0.005:
            return f"Answers took as long with {a} as with {b}{behind}."
        how = f"{100 * abs(d.value - 1):.0f} % {'longer' if d.value > 1 else 'less time'}"
        return f"An answer took {how} with {a} than with {b}{behind}."
    if d.value == 0:
        return f"“{outcome.name}” was rated alike with {a} and with {b}{behind}."
    steps = f"{number(abs(d.value))} of {len(outcome.labels) - 1} steps {'higher' if d.value > 0 else 'lower'}"
    return f"“{outcome.name}” was rated {steps} with {a} than with {b}{behind}."


def reach_words(one: Comparison) -> str:
    return f" for these {one.explanations} explanations" if one.explanations else ""


def verdict(analysis: Analysis, one: Comparison) -> str:
    """What may be concluded, and for what it holds."""
    if one.verdict == "none":
        return "No verdict: each case was seen in one condition only, and cases differ."
    if one.verdict == "equal":
        return "That is too small to matter, by what the plan takes for equal."
    if one.verdict == "open" or one.better is None:
        if one.difference is None or one.difference.low is None:
            return "Whether there is a difference cannot be said."
        if one.these.p is not None and one.these.p < SURE:
            return (
                "Taken alone this would be more than chance makes; among all that is asked of these answers, something is "
                "likely to look like this by chance."
            )
        return (
            "This may well be chance. That does not show that the two are equal: any difference in the interval fits the "
            "answers."
        )
    if one.verdict == "kind":
        return (
            "This is more than chance would make, and reaches beyond what was shown: other people, other cases, and other "
            f"explanations of these kinds, of which {one.explanations} were compared."
        )
    if not one.explanations:
        return "This is more than chance would make: other people would rate these explanations in the same way."
    if one.explanations == one.cases:
        return (
            f"This is more than chance would make: other people would show it with these {one.cases} cases and their "
            "explanations. It does not show that explanations of this kind do the same for other cases."
        )
    return (
        f"This is more than chance would make with these {one.explanations} explanations: other people and other cases would "
        "show it. It does not show that explanations of this kind differ; for that there are too few, or they differ too much."
    )


def sentences(analysis: Analysis) -> list[str]:
    found = [who_is_counted(analysis), *in_short(analysis, analysis.everyone), *analysis.everyone.notes]
    if analysis.attentive is not None:
        short = " ".join(in_short(analysis, analysis.attentive)[:1])
        found.append(f"{counted(analysis.flagged, 'person')} failed an attention check; without them: {short}")
    return found
