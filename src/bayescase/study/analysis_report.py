"""The analysis for people: sentences, tables for a terminal, one HTML page, results.json."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .. import __version__
from ..explaining.explanation import counted, cut, listed
from ..explaining.records import plain
from ..explaining.render.html import document, esc, table
from ..storage import replacing
from .analysis import LABELS, Analysis, Pair, Result, Test, Within

SURE = 0.05
PAGE_FILE, RESULTS_FILE = "analysis.html", "results.json"
FORMAT, VERSION = "bayescase study analysis", 1


# --- numbers in words -----------------------------------------------------------------------------------------------------


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


# --- sentences ------------------------------------------------------------------------------------------------------------


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


# --- rows of tables -------------------------------------------------------------------------------------------------------

ARM_HEAD = ("condition", "answers", "right", "accuracy", "mean seconds", "median seconds")
TEST_HEAD = ("test", "statistic", "df", "p", "p, Holm", "remark")
EFFECT_HEAD = ("what", "estimate", "95 % interval", "remark")


def arm_rows(result: Result):
    return [
        (
            name(arm.condition),
            arm.answers,
            arm.right,
            share(arm.accuracy),
            number(arm.mean_seconds, 1),
            number(arm.median_seconds, 1),
        )
        for arm in result.arms
    ]


def test_row(what: str, test: Test):
    df = "–" if test.df is None else f"{test.df:.4g}"
    return (what, number(test.statistic, 3), df, p_value(test.p), p_value(test.holm), test.note)


def test_rows(pair: Pair):
    return [
        test_row("accuracy: " + pair.accuracy.t.name, pair.accuracy.t),
        test_row("accuracy: " + pair.accuracy.flip.name, pair.accuracy.flip),
        test_row("accuracy: " + pair.accuracy.order.name, pair.accuracy.order),
        test_row("log time: " + pair.time.t.name, pair.time.t),
        test_row("log time: " + pair.time.flip.name, pair.time.flip),
        test_row("log time: " + pair.time.order.name, pair.time.order),
    ]


def effect_rows(pair: Pair):
    a, b = name(pair.first), name(pair.second)

    def row(what, estimate, show, remark):
        return (what, "–" if estimate is None else show(estimate.value), interval(estimate, show), remark)

    def small(x):
        return number(x, 2)

    above = pair.odds.above_one
    sure = "" if above is None else f"probability that {a} is better: {'> 0.999' if above > 0.999 else f'{above:.3f}'}; "
    n = counted(pair.accuracy.people, "person")
    return [
        row(f"odds of a right answer, {a} against {b}", pair.odds.ratio, small, sure + pair.odds.note),
        row("difference in accuracy, percentage points", pair.accuracy.difference, points, n),
        row("the same as Cohen's d_z", pair.accuracy.effect_size, small, n),
        row(
            f"time, {a} divided by {b}", pair.time.difference, small, f"{counted(pair.time.people, 'person')}, geometric means"
        ),
        row("the same as Cohen's d_z", pair.time.effect_size, small, "of log seconds"),
    ]


def order_rows(pair: Pair):
    def words(within: Within, show):
        return {first: (n, show(mean)) for first, n, mean in within.by_order}

    accuracy, time = words(pair.accuracy, points), words(pair.time, number)
    return [
        (f"{name(first)} first", n, difference, time.get(first, ("", "–"))[1]) for first, (n, difference) in accuracy.items()
    ]


def paper_rows(pair: Pair):
    return [
        test_row("accuracy: " + pair.pooled_accuracy.name, pair.pooled_accuracy),
        test_row("time: " + pair.pooled_time.name, pair.pooled_time),
    ]


def rating_rows(result: Result):
    rows = []
    for rating in result.ratings:
        for condition, counts in rating.counts.items():
            middle = median_label(counts)
            shown = "all" if condition == "all" else name(condition)
            rows.append((cut(rating.text, 90), shown, sum(counts), "–" if middle is None else rating.labels[middle]))
    return rows


def rating_test_rows(result: Result):
    return [
        test_row(f"{cut(rating.id, 40)}: {test.name}, {' against '.join(name(c) for c in which.split(', '))}", test)
        for rating in result.ratings
        for which, test in rating.tests.items()
    ]


def without_holm(head, rows):
    """The tables of tests lack Holm's column where there is nothing to adjust for."""
    at = head.index("p, Holm") if "p, Holm" in head else None
    if at is None or any(row[at] != "–" for row in rows):
        return head, rows
    return tuple(np.delete(head, at).tolist()), [(*row[:at], *row[at + 1 :]) for row in rows]


def test_table(caption, rows) -> str:
    head, rows = without_holm(TEST_HEAD, rows)
    return table(caption, head, rows, tuple(range(1, len(head) - 1)))


def median_label(counts):
    """The lowest label that half of the people do not exceed."""
    total = sum(counts)
    return None if not total else int(np.searchsorted(np.cumsum(counts), total / 2))


def title_of(pair: Pair) -> str:
    return f"{name(pair.first)} against {name(pair.second)}"


# --- terminal -------------------------------------------------------------------------------------------------------------


def blocks(analysis: Analysis):
    """(title, head, rows) of every table."""
    groups = [("", analysis.everyone)]
    if analysis.attentive is not None:
        groups.append(("; without those who failed an attention check", analysis.attentive))
    for words, result in groups:
        if not result.answers:
            continue
        yield f"Answers{words}", ARM_HEAD, arm_rows(result)
        for pair in result.pairs:
            yield f"{title_of(pair)}: recommended{words}", EFFECT_HEAD, effect_rows(pair)
            yield f"{title_of(pair)}: tests within participants{words}", TEST_HEAD, test_rows(pair)
            yield f"{title_of(pair)}: as in the paper, which treats answers as independent{words}", TEST_HEAD, paper_rows(pair)
        if result.ratings:
            yield f"Ratings{words}", ("question", "condition", "people", "median"), rating_rows(result)
        if rating_test_rows(result):
            yield f"Ratings compared{words}", TEST_HEAD, rating_test_rows(result)


def sentences(analysis: Analysis) -> list[str]:
    found = [who_is_counted(analysis), *in_short(analysis.everyone, analysis.mode), *analysis.everyone.notes]
    if analysis.attentive is not None:
        n = analysis.flagged
        found.append(f"{counted(n, 'person')} failed an attention check; without them: ")
        found[-1] += " ".join(in_short(analysis.attentive, analysis.mode))
    return found


def for_terminal(analysis: Analysis):
    """Renderables for rich."""
    from rich.console import Group
    from rich.text import Text

    from ..explaining.render.terminal import plain_table

    return Group(
        *(Text(sentence) for sentence in sentences(analysis)),
        *(plain_table(title, *without_holm(head, rows)) for title, head, rows in blocks(analysis)),
    )


def for_pipe(analysis: Analysis) -> str:
    parts = ["\n".join(sentences(analysis))]
    for title, head, rows in blocks(analysis):
        head, rows = without_holm(head, rows)
        parts.append("\n".join([title, *("\t".join(str(cell) for cell in row) for row in (head, *rows))]))
    return "\n\n".join(parts)


# --- files ----------------------------------------------------------------------------------------------------------------


def as_results(analysis: Analysis) -> dict:
    return {"format": FORMAT, "version": VERSION, "bayescase": __version__} | plain(analysis)


def write_analysis(analysis: Analysis, folder: Path) -> tuple[Path, Path]:
    """Write analysis.html and results.json; files that are there are replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give the path of a folder.")
    text, results = page(analysis), json.dumps(as_results(analysis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in ((folder / PAGE_FILE, text), (folder / RESULTS_FILE, results)):
        with replacing(path) as file:
            file.write(content.encode())
    return folder / PAGE_FILE, folder / RESULTS_FILE


# --- the page -------------------------------------------------------------------------------------------------------------

ABOUT = {
    "bcm": "by a typical case (BCM)",
    "lda": "by a list of frequent words or values (LDA)",
    "subspace": "by a typical case whose important features are boxed (BCM with subspace)",
}


def page(analysis: Analysis) -> str:
    result = analysis.everyone
    parts = [("short", "In short", short_section(analysis))]
    if result.answers:
        parts += [
            ("right", "Were the answers right?", accuracy_section(analysis, result)),
            ("time", "How long did they take?", time_section(result)),
        ]
        if result.ratings:
            parts.append(("ratings", "What did people say?", ratings_section(result)))
        parts.append(("tests", "The recommended analysis", recommended_section(result)))
        parts.append(("paper", "The analysis of the paper", paper_section(result)))
        if analysis.attentive is not None:
            parts.append(("attentive", "Without those who failed an attention check", attentive_section(analysis)))
    parts.append(("how", "How to read this", how_section(analysis)))
    about = f"People sorted cases into clusters that were explained in {len(analysis.conditions)} ways: "
    about += listed([ABOUT[condition] for condition in analysis.conditions], 9) + "."
    made = f"Made by bayescase {esc(__version__)} from the study with design <code>{esc(analysis.design_hash)}</code>."
    return document(f"{esc(analysis.title)} – analysis", esc(about), parts, made)


def paragraphs(sentences) -> str:
    return "".join(f"<p>{esc(sentence)}</p>" for sentence in sentences)


def short_section(analysis):
    result = analysis.everyone
    text = f"<p>{esc(who_is_counted(analysis))}</p>"
    text += f'<div class="verdict">{paragraphs(in_short(result, analysis.mode))}</div>'
    if analysis.simulated:
        text += '<p class="verdict bad"><strong>Take care:</strong> simulated people are among them.</p>'
    text += paragraphs(result.notes)
    return text + (table("Answers by condition", ARM_HEAD, arm_rows(result), (1, 2, 3, 4, 5)) if result.answers else "")


def accuracy_section(analysis, result):
    from ..explaining.render.report import figure
    from . import analysis_plots as plots

    names = list(analysis.conditions)
    people = [(who, *(share(of.get(c)) for c in names)) for who, of in sorted(result.by_person.items(), key=lambda row: row[0])]
    numbers = tuple(range(1, len(names) + 1))
    data = table("Share of right answers of each person", ("person", *(name(c) for c in names)), people, numbers)
    text = "<h3>Person by person</h3>" + figure(
        plots.plot_people(result, names),
        "One line per person from one condition to the next, by the share of right answers; a thick line for the mean.",
        slopes_sentence(result, names),
        data,
    )
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
        text
        + "<h3>Item by item</h3>"
        + figure(
            plots.plot_items(result, names),
            "One row per item: its share of right answers in each condition.",
            sentence,
            table("Right answers of each item", ("item", *(name(c) for c in names)), items, numbers),
        )
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


def time_section(result):
    from ..explaining.render.report import figure
    from . import analysis_plots as plots

    seconds = {c: np.array(values) for c, values in result.seconds.items() if len(values)}
    if not seconds:
        return "<p>No answer has a time.</p>"
    rows = [
        (name(c), len(of), *(number(float(q), 1) for q in np.quantile(of, (0.05, 0.25, 0.5, 0.75, 0.95))))
        for c, of in seconds.items()
    ]
    head = ("condition", "answers", "5 %", "25 %", "half", "75 %", "95 %")
    middle = listed([f"{number(float(np.median(of)), 1)} seconds with {name(c)}" for c, of in seconds.items()], 9)
    return figure(
        plots.plot_times(seconds),
        "Distribution of the seconds per answer in each condition, on a logarithmic scale.",
        f"Half of the answers took less than {middle}.",
        table("Seconds that so many answers stay below", head, rows, (1, 2, 3, 4, 5, 6)),
    )


def ratings_section(result):
    from ..explaining.render.report import figure
    from . import analysis_plots as plots

    text = ""
    for rating in result.ratings:
        rows = [("all" if c == "all" else name(c), *counts) for c, counts in rating.counts.items()]
        total = max(sum(counts) for counts in rating.counts.values())
        if not total:
            text += f"<h3>{esc(rating.text)}</h3><p>Nobody has answered this.</p>"
            continue
        middles = {("all" if c == "all" else name(c)): median_label(n) for c, n in rating.counts.items() if sum(n)}
        words = "; ".join(
            f"the median is “{rating.labels[m]}”" if c == "all" else f"with {c} the median is “{rating.labels[m]}”"
            for c, m in middles.items()
            if m is not None
        )
        tests = "".join(
            f" {test.name}: {p_words(test) or test.note}" + ("." if p_words(test) else "") for test in rating.tests.values()
        )
        text += f"<h3>{esc(rating.text)}</h3>" + figure(
            plots.plot_rating(rating),
            "Bars divided by the share of people who chose each label.",
            f"{words[0].upper()}{words[1:]}.{tests}",
            table("People by label", ("condition", *rating.labels), rows, tuple(range(1, len(rating.labels) + 1))),
        )
    return text


def recommended_section(result):
    text = (
        "<p>People differ, and so do items. These analyses compare each person with themselves, and the model of the odds "
        "takes account of the items, too.</p>"
    )
    for pair in result.pairs:
        text += f"<h3>{esc(title_of(pair))}</h3>"
        text += table("Effects", EFFECT_HEAD, effect_rows(pair), (1, 2))
        text += test_table("Tests within participants", test_rows(pair))
        if pair.accuracy.by_order:
            head = ("order", "people", "difference in accuracy, points", "time, ratio")
            text += table("Does it matter which came first?", head, order_rows(pair), (1, 2, 3))
        spread = pair.odds
        if spread.person_sd is not None and spread.item_sd is not None:
            people, items = f"{spread.person_sd:.2f}", f"{spread.item_sd:.2f}"
            words = f"On the logit scale people differ with a standard deviation of {people}, items of {items}."
            text += f"<p>{esc(words)}</p>"
    if rating_test_rows(result):
        text += "<h3>Ratings</h3>" + test_table("Ratings compared", rating_test_rows(result))
    return text


def paper_section(result):
    text = (
        '<p class="verdict bad"><strong>Take care:</strong> as the paper did, this treats all answers as independent, though '
        "many come from the same person and are about the same item. It is here to compare with the paper, not to conclude "
        "from.</p>"
    )
    for pair in result.pairs:
        text += f"<h3>{esc(title_of(pair))}</h3>" + test_table("Pooled tests", paper_rows(pair))
    return text


def attentive_section(analysis):
    result = analysis.attentive
    n = analysis.flagged
    text = f"<p>{counted(n, 'person')} failed an attention check. "
    text += "They are counted above; this is what is found without them.</p>"
    text += f'<div class="verdict">{paragraphs(in_short(result, analysis.mode))}</div>'
    if not result.answers:
        return text
    text += table("Answers by condition", ARM_HEAD, arm_rows(result), (1, 2, 3, 4, 5))
    for pair in result.pairs:
        text += f"<h3>{esc(title_of(pair))}</h3>" + table("Effects", EFFECT_HEAD, effect_rows(pair), (1, 2))
        text += test_table("Tests within participants", test_rows(pair))
    return text


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


def how_section(analysis):
    times = {
        "server": "Times run on the server, from the sending of a question to its answer.",
        "browser": "Times run in the browser, from the showing of a question to its answer.",
    }[analysis.times]
    cells = {
        "crossed": "Item sets changed conditions from person to person, so easy items do not pass for a good condition.",
        "paper": "Item sets were fixed to conditions, as in the paper.",
    }[analysis.mode]
    words = "".join(f"<dt><strong>{esc(word)}</strong></dt><dd>{esc(meaning)}</dd>" for word, meaning in HOW)
    return f"{paragraphs([times, cells])}<dl>{words}</dl>"
