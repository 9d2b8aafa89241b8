"""The analysis as one HTML page, of the blocks that all pages of the package are made of."""

from typing import Any

import numpy as np

from ... import __version__
from ...explaining.render.blocks import (
    Block,
    Definitions,
    Heading,
    Page,
    Picture,
    Section,
    Text,
    Verdict,
    picture,
    table,
)
from ...explaining.render.html import render_page
from ...explaining.words import counted, listed
from . import plots
from .report_tables import arms, differences, effects, median_label, orders, paper, rating_table, tests
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


def page(analysis: Analysis) -> str:
    """The analysis as one HTML document."""
    about = TASKS[analysis.task].format(n=len(analysis.labels), ways=listed(list(analysis.abouts.values()), 9))
    made = f"Made by bayescase {__version__} from the study with design {analysis.design_hash}."
    return render_page(Page(f"{analysis.title} – analysis", about, tuple(sections(analysis)), made))


def sections(analysis: Analysis) -> list[Section]:
    """Those that have something to say."""
    result, found = analysis.everyone, [Section("short", "In short", short_section(analysis))]
    if result.answers:
        parts = (
            ("right", "Were the answers right?", right_section(analysis, result)),
            ("time", "How long did they take?", time_section(analysis, result)),
            ("ratings", "What did people say?", ratings_section(analysis, result)),
            ("tests", "The recommended analysis", tests_section(analysis, result)),
            ("paper", "The analysis of the paper", paper_section(analysis, result)),
            ("attentive", "Without those who failed an attention check", attentive_section(analysis)),
        )
        found += [Section(name, title, blocks) for name, title, blocks in parts if blocks]
    return [*found, Section("how", "How to read this", how_section(analysis))]


def filled(analysis: Analysis, result: Result, makers: Any) -> tuple[Block, ...]:
    """Tables that have rows."""
    return tuple(made for made in (maker(analysis, result) for maker in makers) if made.rows)


def short_section(analysis: Analysis) -> tuple[Block, ...]:
    result = analysis.everyone
    care = Verdict(("simulated people are among them.",), "Take care:", bad=True)
    return (
        Text(who_is_counted(analysis)),
        Verdict(tuple(in_short(analysis, result))),
        *([care] if analysis.simulated else []),
        *(Text(note) for note in result.notes),
        *([arms(analysis, result)] if result.answers else []),
    )


def right_section(analysis: Analysis, result: Result) -> tuple[Block, ...]:
    if all(arm.accuracy is None for arm in result.arms):
        return ()
    found: list[Block] = []
    if analysis.layout == "within":
        found += [Heading("Person by person"), people_picture(analysis, result)]
    if len(result.by_explanation) < len(result.by_item):
        found += [Heading("Explanation by explanation"), tally_picture(analysis, result.by_explanation, "explanation")]
    return (*found, Heading("Item by item"), tally_picture(analysis, result.by_item, "item"))


def time_section(analysis: Analysis, result: Result) -> tuple[Block, ...]:
    seconds = {c: np.array(values) for c, values in result.seconds.items() if len(values)}
    return (time_picture(analysis, seconds),) if seconds else ()


def ratings_section(analysis: Analysis, result: Result) -> tuple[Block, ...]:
    found: list[Block] = []
    for rating in result.ratings:
        answered = any(sum(counts) for counts in rating.counts.values())
        found += [Heading(rating.text), rating_picture(analysis, rating) if answered else Text("Nobody has answered this.")]
    return tuple(found)


def tests_section(analysis: Analysis, result: Result) -> tuple[Block, ...]:
    spreads = [
        ", ".join(f"{term} {sd:.2f}" for term, sd in odds.spreads.items()) for odds in result.odds[:1] if odds.spreads
    ]  # of one model of all conditions
    return (
        Text(
            "People differ, and so do cases and explanations. Verdicts go by tests that allow for all three; tests that know "
            "of people only are there to compare. Of every difference two questions are asked: does it hold for these "
            "explanations, and if so, for explanations of this kind?"
        ),
        *filled(analysis, result, (differences, tests, effects, orders, rating_table)),
        *(Text(f"Standard deviations on the logit scale, by the logistic model: {words}.") for words in spreads),
    )


def paper_section(analysis: Analysis, result: Result) -> tuple[Block, ...]:
    if not result.pooled:
        return ()
    words = (
        "as the paper did, this treats all answers as independent, though many come from the same person and are about the "
        "same item. It is here to compare with the paper, not to conclude from."
    )
    return Verdict((words,), "Take care:", bad=True), paper(analysis, result)


def attentive_section(analysis: Analysis) -> tuple[Block, ...]:
    result = analysis.attentive
    if result is None or not result.answers:
        return ()
    return (
        Text(
            f"{counted(analysis.flagged, 'person')} failed an attention check. They are counted above; this is what is found "
            "without them."
        ),
        Verdict(tuple(in_short(analysis, result))),
        *filled(analysis, result, (arms, differences, tests)),
    )


def how_section(analysis: Analysis) -> tuple[Block, ...]:
    from_to = "on the server, from the sending" if analysis.times == "server" else "in the browser, from the showing"
    if analysis.layout == "between":
        cells = "Each person met one condition, and all items."
    elif analysis.mode == "crossed":
        cells = "Item sets changed conditions from person to person, so easy items do not pass for a good condition."
    else:
        cells = "Item sets were fixed to conditions, as in the paper."
    return Text(f"Times run {from_to} of a question to its answer."), Text(cells), Definitions(HOW)


# --- pictures -------------------------------------------------------------------------------------------------------------


def people_picture(analysis: Analysis, result: Result) -> Picture:
    names = list(analysis.labels)
    rows = [(who, *(share(of.get(c)) for c in names)) for who, of in sorted(result.by_person.items())]
    head = ("person", *(analysis.labels[c] for c in names))
    a, b = names[:2]
    both = [(of[a], of[b]) for of in result.by_person.values() if a in of and b in of]
    up, down = sum(x > y for x, y in both), sum(x < y for x, y in both)
    sentence = (
        f"Of {len(both)} people, {up} were right more often with {analysis.labels[a]}, {down} with {analysis.labels[b]}, and "
        f"{len(both) - up - down} equally often."
    )
    alt = "One line per person from one condition to the next, by the share of right answers; a thick line for the mean."
    numbers = table("Share of right answers of each person", head, rows, range(1, len(names) + 1))
    return picture(plots.plot_people(result, analysis.labels), alt, sentence, numbers)


def tally_picture(analysis: Analysis, tallies: dict[str, dict[str, tuple[int, int]]], what: str) -> Picture:
    names = list(analysis.labels)

    def overall(name):
        of = tallies[name]
        return sum(right for right, _ in of.values()) / max(sum(n for _, n in of.values()), 1)

    rows = [
        (name, *("–" if c not in of else f"{of[c][0]} of {of[c][1]}" for c in names)) for name, of in sorted(tallies.items())
    ]
    head = (what, *(analysis.labels[c] for c in names))
    hardest, easiest = min(tallies, key=overall), max(tallies, key=overall)
    sentence = f"Hardest: {hardest} ({overall(hardest):.0%} right); easiest: {easiest} ({overall(easiest):.0%})."
    alt = f"One row per {what}: its share of right answers in each condition."
    numbers = table(f"Right answers by {what}", head, rows, range(1, len(names) + 1))
    return picture(plots.plot_tallies(tallies, analysis.labels), alt, sentence, numbers)


def time_picture(analysis: Analysis, seconds: dict[str, np.ndarray]) -> Picture:
    rows = [
        (analysis.labels[c], len(of), *(number(float(q), 1) for q in np.quantile(of, (0.05, 0.25, 0.5, 0.75, 0.95))))
        for c, of in seconds.items()
    ]
    head = ("condition", "answers", "5 %", "25 %", "half", "75 %", "95 %")
    middle = listed([f"{number(float(np.median(of)), 1)} seconds with {analysis.labels[c]}" for c, of in seconds.items()], 9)
    alt = "Distribution of the seconds per answer in each condition, on a logarithmic scale."
    numbers = table("Seconds that so many answers stay below", head, rows, range(1, 7))
    return picture(plots.plot_times(seconds, analysis.labels), alt, f"Half of the answers took less than {middle}.", numbers)


def rating_picture(analysis: Analysis, rating: Rating) -> Picture:
    named = {c: "all" if c == "all" else analysis.labels[c] for c in rating.counts}
    middles = {c: median_label(counts) for c, counts in rating.counts.items() if sum(counts)}
    words = "; ".join(
        f"the median is “{rating.labels[m]}”" if c == "all" else f"with {named[c]} the median is “{rating.labels[m]}”"
        for c, m in middles.items()
        if m is not None
    )
    unit = {"answer": "Answers by label", "part": "People by label", "person": "People by label"}[rating.per]
    rows = [(named[c], *counts) for c, counts in rating.counts.items()]
    numbers = table(unit, ("condition", *rating.labels), rows, range(1, len(rating.labels) + 1))
    alt = "Bars divided by the share that chose each label."
    return picture(plots.plot_rating(rating, named), alt, f"{words[0].upper()}{words[1:]}.", numbers)
