"""The analysis as one HTML page."""

import numpy as np

from ... import __version__
from ...explaining.render.blocks import (
    Block,
    Definitions,
    Heading,
    Page,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
    picture,
    table,
)
from ...explaining.render.html import render_page
from ...explaining.words import counted, listed
from .report_tables import (
    ARM_HEAD,
    EFFECT_HEAD,
    TEST_HEAD,
    arm_rows,
    effect_rows,
    median_label,
    order_rows,
    paper_rows,
    rating_test_rows,
    test_rows,
    title_of,
    without_holm,
)
from .results import Analysis
from .sentences import in_short, name, number, p_words, share, who_is_counted

ABOUT = {
    "bcm": "by a typical case (BCM)",
    "lda": "by a list of frequent words or values (LDA)",
    "subspace": "by a typical case whose important features are boxed (BCM with subspace)",
}


def page(analysis: Analysis) -> str:
    """The analysis as one HTML document."""
    result = analysis.everyone
    sections = [Section("short", "In short", short_section(analysis))]
    if result.answers:
        sections += [
            Section("right", "Were the answers right?", accuracy_section(analysis, result)),
            Section("time", "How long did they take?", time_section(result)),
        ]
        if result.ratings:
            sections.append(Section("ratings", "What did people say?", ratings_section(result)))
        sections.append(Section("tests", "The recommended analysis", recommended_section(result)))
        sections.append(Section("paper", "The analysis of the paper", paper_section(result)))
        if analysis.attentive is not None:
            words = "Without those who failed an attention check"
            sections.append(Section("attentive", words, attentive_section(analysis, analysis.attentive)))
    sections.append(Section("how", "How to read this", how_section(analysis)))
    about = f"People sorted cases into clusters that were explained in {len(analysis.conditions)} ways: "
    about += listed([ABOUT[condition] for condition in analysis.conditions], 9) + "."
    made = f"Made by bayescase {__version__} from the study with design {analysis.design_hash}."
    return render_page(Page(f"{analysis.title} – analysis", about, tuple(sections), made))


def test_table(caption, rows) -> Table:
    head, rows = without_holm(TEST_HEAD, rows)
    return table(caption, head, rows, range(1, len(head) - 1))


def short_section(analysis) -> tuple[Block, ...]:
    result = analysis.everyone
    care = Verdict(("simulated people are among them.",), "Take care:", bad=True)
    return (
        Text(who_is_counted(analysis)),
        Verdict(tuple(in_short(result, analysis.mode))),
        *([care] if analysis.simulated else []),
        *(Text(note) for note in result.notes),
        *([table("Answers by condition", ARM_HEAD, arm_rows(result), (1, 2, 3, 4, 5))] if result.answers else []),
    )


def accuracy_section(analysis, result) -> tuple[Block, ...]:
    from . import plots

    names = list(analysis.conditions)
    people = [(who, *(share(of.get(c)) for c in names)) for who, of in sorted(result.by_person.items(), key=lambda row: row[0])]
    numbers = range(1, len(names) + 1)
    items = [
        (item, *("–" if c not in of else f"{of[c][0]} of {of[c][1]}" for c in names))
        for item, of in sorted(result.by_item.items())
    ]
    hardest = min(result.by_item, key=lambda item: item_share(result.by_item[item]))
    easiest = max(result.by_item, key=lambda item: item_share(result.by_item[item]))
    sentence = (
        f"The hardest item was {hardest} ({item_share(result.by_item[hardest]):.0%} right), the easiest {easiest} "
        f"({item_share(result.by_item[easiest]):.0%})."
    )
    return (
        Heading("Person by person"),
        picture(
            plots.plot_people(result, names),
            "One line per person from one condition to the next, by the share of right answers; a thick line for the mean.",
            slopes_sentence(result, names),
            table("Share of right answers of each person", ("person", *(name(c) for c in names)), people, numbers),
        ),
        Heading("Item by item"),
        picture(
            plots.plot_items(result, names),
            "One row per item: its share of right answers in each condition.",
            sentence,
            table("Right answers of each item", ("item", *(name(c) for c in names)), items, numbers),
        ),
    )


def item_share(of):
    return sum(right for right, _ in of.values()) / sum(n for _, n in of.values())


def slopes_sentence(result, names):
    a, b = names[:2]
    both = [(of[a], of[b]) for of in result.by_person.values() if a in of and b in of]
    up, down = sum(x > y for x, y in both), sum(x < y for x, y in both)
    return (
        f"Of {len(both)} people, {up} were right more often with {name(a)}, {down} with {name(b)}, and "
        f"{len(both) - up - down} equally often."
    )


def time_section(result) -> tuple[Block, ...]:
    from . import plots

    seconds = {c: np.array(values) for c, values in result.seconds.items() if len(values)}
    if not seconds:
        return (Text("No answer has a time."),)
    rows = [
        (name(c), len(of), *(number(float(q), 1) for q in np.quantile(of, (0.05, 0.25, 0.5, 0.75, 0.95))))
        for c, of in seconds.items()
    ]
    head = ("condition", "answers", "5 %", "25 %", "half", "75 %", "95 %")
    middle = listed([f"{number(float(np.median(of)), 1)} seconds with {name(c)}" for c, of in seconds.items()], 9)
    return (
        picture(
            plots.plot_times(seconds),
            "Distribution of the seconds per answer in each condition, on a logarithmic scale.",
            f"Half of the answers took less than {middle}.",
            table("Seconds that so many answers stay below", head, rows, (1, 2, 3, 4, 5, 6)),
        ),
    )


def ratings_section(result) -> tuple[Block, ...]:
    found: list[Block] = []
    for rating in result.ratings:
        found.append(Heading(rating.text))
        answered = any(sum(counts) for counts in rating.counts.values())
        found.append(rating_picture(rating) if answered else Text("Nobody has answered this."))
    return tuple(found)


def rating_picture(rating) -> Picture:
    from . import plots

    rows = [("all" if c == "all" else name(c), *counts) for c, counts in rating.counts.items()]
    middles = {("all" if c == "all" else name(c)): median_label(n) for c, n in rating.counts.items() if sum(n)}
    words = "; ".join(
        f"the median is “{rating.labels[m]}”" if c == "all" else f"with {c} the median is “{rating.labels[m]}”"
        for c, m in middles.items()
        if m is not None
    )
    tests = "".join(
        f" {test.name}: {p_words(test) or test.note}" + ("." if p_words(test) else "") for test in rating.tests.values()
    )
    return picture(
        plots.plot_rating(rating),
        "Bars divided by the share of people who chose each label.",
        f"{words[0].upper()}{words[1:]}.{tests}",
        table("People by label", ("condition", *rating.labels), rows, range(1, len(rating.labels) + 1)),
    )


def recommended_section(result) -> tuple[Block, ...]:
    words = "People differ, and so do items. These analyses compare each person with themselves, and the model of the odds "
    found: list[Block] = [Text(f"{words}takes account of the items, too.")]
    for pair in result.pairs:
        found += [
            Heading(title_of(pair)),
            table("Effects", EFFECT_HEAD, effect_rows(pair), (1, 2)),
            test_table("Tests within participants", test_rows(pair)),
        ]
        if pair.accuracy.by_order:
            head = ("order", "people", "difference in accuracy, points", "time, ratio")
            found.append(table("Does it matter which came first?", head, order_rows(pair), (1, 2, 3)))
        spread = pair.odds
        if spread.person_sd is not None and spread.item_sd is not None:
            people, items = f"{spread.person_sd:.2f}", f"{spread.item_sd:.2f}"
            found.append(Text(f"On the logit scale people differ with a standard deviation of {people}, items of {items}."))
    if rating_test_rows(result):
        found += [Heading("Ratings"), test_table("Ratings compared", rating_test_rows(result))]
    return tuple(found)


def paper_section(result) -> tuple[Block, ...]:
    words = (
        "as the paper did, this treats all answers as independent, though many come from the same person and are about the "
        "same item. It is here to compare with the paper, not to conclude from."
    )
    found: list[Block] = [Verdict((words,), "Take care:", bad=True)]
    for pair in result.pairs:
        found += [Heading(title_of(pair)), test_table("Pooled tests", paper_rows(pair))]
    return tuple(found)


def attentive_section(analysis, result) -> tuple[Block, ...]:
    words = f"{counted(analysis.flagged, 'person')} failed an attention check. They are counted above; this is what is found "
    found: list[Block] = [Text(f"{words}without them."), Verdict(tuple(in_short(result, analysis.mode)))]
    if not result.answers:
        return tuple(found)
    found.append(table("Answers by condition", ARM_HEAD, arm_rows(result), (1, 2, 3, 4, 5)))
    for pair in result.pairs:
        found += [
            Heading(title_of(pair)),
            table("Effects", EFFECT_HEAD, effect_rows(pair), (1, 2)),
            test_table("Tests within participants", test_rows(pair)),
        ]
    return tuple(found)


HOW = (
    (
        "p",
        "how often chance alone would make a difference at least as large; below 0.05 counts as more than chance",
    ),
    ("95 % interval", "values that fit the data; in repeated studies 95 of 100 such intervals hold the true value"),
    (
        "p, Holm",
        "p raised for the number of pairs of conditions that are compared; only with three conditions. Intervals are of each "
        "pair alone; the sentences above ask for more of each, too",
    ),
    ("odds", "right answers per wrong answer; 2 means that the odds are twice as high with the first condition"),
    ("d_z", "mean difference divided by the standard deviation of the differences between people; 0.5 is called medium"),
    (
        "sign-flip permutation",
        "each person's difference gets a random sign; p is the share of sums that are as large as the one found",
    ),
    (
        "order × condition",
        "whether the difference depends on which condition came first; a small p is a sign of practice or fatigue",
    ),
    (
        "logistic model",
        "effects of condition, block, person and item together, with weak priors; σ of persons and items summed over a grid, "
        "the rest by Laplace's method",
    ),
)


def how_section(analysis) -> tuple[Block, ...]:
    times = {
        "server": "Times run on the server, from the sending of a question to its answer.",
        "browser": "Times run in the browser, from the showing of a question to its answer.",
    }[analysis.times]
    cells = {
        "crossed": "Item sets changed conditions from person to person, so easy items do not pass for a good condition.",
        "paper": "Item sets were fixed to conditions, as in the paper.",
    }[analysis.mode]
    return (Text(times), Text(cells), Definitions(HOW))
