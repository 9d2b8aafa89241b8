"""The analysis as one HTML page, from templates that escape."""

from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ... import __version__
from ...explaining.explanation import clean, counted, cut, listed
from ...explaining.render.report import png
from ...web.templating import environment
from . import plots
from .report_tables import Table, arms, differences, effects, median_label, orders, paper, rating_table, tests
from .results import SURE, Analysis, Rating, Result
from .sentences import in_short, number, share, who_is_counted

TASKS = {
    "classify": "People sorted cases into groups that were explained in {n} ways: {ways}.",
    "predict": "People foretold what a model says, with {n} kinds of explanations: {ways}.",
    "rate": "People rated explanations of {n} kinds: {ways}.",
}
HOW = (
    (
        "p",
        f"how often chance alone would make a difference at least as large; below {SURE:g} counts as more than chance",
    ),
    ("95 % interval", "values that fit the data; in repeated studies 95 of 100 such intervals hold the true value"),
    (
        "these explanations, explanations of this kind",
        "explanations differ, so an effect with those that were shown need not hold for others. The first interval allows for "
        "other people and other cases; the second also for other explanations, of which those shown are a sample",
    ),
    (
        "p, Holm",
        "p raised for the number of comparisons in its family: the primary outcome over all pairs of conditions, and all other "
        "outcomes together. Verdicts go by it; intervals are of each comparison alone",
    ),
    ("no difference that matters", "the 90 % interval lies within what the plan of the study takes for equal"),
    ("odds", "right answers per wrong answer; 2 means that the odds are twice as high with the first condition"),
    ("d_z, d", "mean difference divided by the standard deviation between people; 0.5 is called medium"),
    (
        "sign-flip permutation",
        "each person's difference gets a random sign; p is the share of sums that are as large as the one found. It knows of "
        "people only, so it is not what verdicts go by",
    ),
    (
        "order × condition",
        "whether the difference depends on which condition came first; a small p is a sign of practice or fatigue",
    ),
    (
        "logistic model",
        "effects of condition, block, person, case and explanation, and their slopes, with weak priors; by Laplace's method",
    ),
)


class Shown(NamedTuple):
    """A figure: a picture, what it says, and its numbers."""

    alt: str
    sentence: str
    picture: str
    width: int
    height: int
    table: Table


def page(analysis: Analysis) -> str:
    templates = environment(Path(__file__).parent / "templates")
    templates.filters |= {"clean": clean, "cut": cut}
    style = files("bayescase").joinpath("data/report.css").read_text(encoding="utf-8")
    about = TASKS[analysis.task].format(n=len(analysis.labels), ways=listed(list(analysis.abouts.values()), 9))
    result = analysis.everyone
    values: dict[str, Any] = {
        "analysis": analysis, "result": result, "about": about, "style": style, "version": __version__, "how": HOW,
        "who": who_is_counted(analysis), "short": in_short(analysis, result), "arms": arms(analysis, result),
        "people": None, "items": None, "explanations": None, "times": None, "ratings": [], "tables": [], "paper": None,
        "attentive": None, "counted": counted,
    }  # fmt: skip
    if result.answers:
        values |= figures(analysis, result)
        values["tables"] = made(analysis, result, (differences, tests, effects, orders, rating_table))
        values["paper"] = paper(analysis, result) if result.pooled else None
        if analysis.attentive is not None and analysis.attentive.answers:
            other = analysis.attentive
            values["attentive"] = made(analysis, other, (arms, differences, tests))
            values["attentive_short"] = in_short(analysis, other)
    return templates.get_template("analysis.html").render(values)


def made(analysis: Analysis, result: Result, makers) -> list[Table]:
    return [table for table in (maker(analysis, result) for maker in makers) if table.rows]


def shown(figure: Any, alt: str, sentence: str, table: Table) -> Shown:
    wide, high = (round(inches * 84) for inches in figure.get_size_inches())
    return Shown(alt, sentence, png(figure), wide, high, table)


def figures(analysis: Analysis, result: Result) -> dict[str, Any]:
    found: dict[str, Any] = {"ratings": [rating_figure(analysis, rating) for rating in result.ratings]}
    if any(arm.accuracy is not None for arm in result.arms):
        if analysis.layout == "within":
            found["people"] = people_figure(analysis, result)
        found["items"] = tally_figure(analysis, result.by_item, "item")
        if len(result.by_explanation) < len(result.by_item):
            found["explanations"] = tally_figure(analysis, result.by_explanation, "explanation")
    seconds = {c: np.array(values) for c, values in result.seconds.items() if len(values)}
    if seconds:
        found["times"] = time_figure(analysis, seconds)
    return found


def people_figure(analysis: Analysis, result: Result) -> Shown:
    names = list(analysis.labels)
    rows = [(who, *(share(of.get(c)) for c in names)) for who, of in sorted(result.by_person.items())]
    head = ("person", *(analysis.labels[c] for c in names))
    table = Table("Share of right answers of each person", head, rows, tuple(range(1, len(names) + 1)))
    a, b = names[:2]
    both = [(of[a], of[b]) for of in result.by_person.values() if a in of and b in of]
    up, down = sum(x > y for x, y in both), sum(x < y for x, y in both)
    sentence = (
        f"Of {len(both)} people, {up} were right more often with {analysis.labels[a]}, {down} with {analysis.labels[b]}, and "
        f"{len(both) - up - down} equally often."
    )
    alt = "One line per person from one condition to the next, by the share of right answers; a thick line for the mean."
    return shown(plots.plot_people(result, analysis.labels), alt, sentence, table)


def tally_figure(analysis: Analysis, tallies: dict[str, dict[str, tuple[int, int]]], what: str) -> Shown:
    names = list(analysis.labels)

    def overall(name):
        of = tallies[name]
        return sum(right for right, _ in of.values()) / max(sum(n for _, n in of.values()), 1)

    rows = [
        (name, *("–" if c not in of else f"{of[c][0]} of {of[c][1]}" for c in names)) for name, of in sorted(tallies.items())
    ]
    table = Table(
        f"Right answers by {what}", (what, *(analysis.labels[c] for c in names)), rows, tuple(range(1, len(names) + 1))
    )
    hardest, easiest = min(tallies, key=overall), max(tallies, key=overall)
    sentence = f"Hardest: {hardest} ({overall(hardest):.0%} right); easiest: {easiest} ({overall(easiest):.0%})."
    alt = f"One row per {what}: its share of right answers in each condition."
    return shown(plots.plot_tallies(tallies, analysis.labels), alt, sentence, table)


def time_figure(analysis: Analysis, seconds: dict[str, np.ndarray]) -> Shown:
    rows = [
        (analysis.labels[c], len(of), *(number(float(q), 1) for q in np.quantile(of, (0.05, 0.25, 0.5, 0.75, 0.95))))
        for c, of in seconds.items()
    ]
    head = ("condition", "answers", "5 %", "25 %", "half", "75 %", "95 %")
    table = Table("Seconds that so many answers stay below", head, rows, (1, 2, 3, 4, 5, 6))
    middle = listed([f"{number(float(np.median(of)), 1)} seconds with {analysis.labels[c]}" for c, of in seconds.items()], 9)
    alt = "Distribution of the seconds per answer in each condition, on a logarithmic scale."
    return shown(plots.plot_times(seconds, analysis.labels), alt, f"Half of the answers took less than {middle}.", table)


def rating_figure(analysis: Analysis, rating: Rating) -> tuple[Rating, Shown | None]:
    named = {c: "all" if c == "all" else analysis.labels[c] for c in rating.counts}
    if not any(sum(counts) for counts in rating.counts.values()):
        return rating, None
    rows = [(named[c], *counts) for c, counts in rating.counts.items()]
    head = ("condition", *rating.labels)
    unit = {"answer": "Answers by label", "part": "People by label", "person": "People by label"}[rating.per]
    table = Table(unit, head, rows, tuple(range(1, len(rating.labels) + 1)))
    middles = {c: median_label(counts) for c, counts in rating.counts.items() if sum(counts)}
    words = "; ".join(
        f"the median is “{rating.labels[m]}”" if c == "all" else f"with {named[c]} the median is “{rating.labels[m]}”"
        for c, m in middles.items()
        if m is not None
    )
    alt = "Bars divided by the share that chose each label."
    return rating, shown(plots.plot_rating(rating, named), alt, f"{words[0].upper()}{words[1:]}.", table)
