"""The page of an analysis: whole, harmless, readable, for any data."""

import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from rich.console import Console

from bayescase.study.analysis import report, report_page
from bayescase.study.analysis.analyse import analyse
from bayescase.study.analysis.sentences import in_short, sentences, verdict
from bayescase.study.design.design import Condition, Likert
from bayescase.study.planted import Truth, World
from bayescase.study.planted import rows as planted_rows

from ...explaining.render.test_report import EVIL, Reader
from ..designs import AGREEMENT, between, predicting, rating_design, small_design, three_conditions
from ..made_data import rows
from .test_analyse import ODD

RATED = (Likert("clear", "The groups were easy to understand.", AGREEMENT), Likert("bad", f"{EVIL} hm", ("no", EVIL, "yes")))
FUN = (Likert("fun", f"{EVIL} I liked the task.", ("no", EVIL, "yes", *AGREEMENT)),)


def planted(design, people=12, **truth):
    answers, who = planted_rows(design, people, World(design, Truth({"bcm": 0.95, "lda": 0.5}, **truth)))
    rng = np.random.default_rng(1)
    for k, person in enumerate(who):
        person |= {f"likert_{q.id}": int(rng.integers(len(q.labels))) for q in design.questionnaire}
        person["checks_failed"] = int(k == 1)
    return analyse(design, answers, who)


@cache
def made(name):
    if name == "two":
        return planted(small_design(block_ratings=RATED, questionnaire=FUN), 16)
    if name == "three":
        return planted(three_conditions(), 6)
    if name == "between":
        return planted(between())
    if name == "predict":
        return planted(predicting())
    if name == "rate":
        return planted(rating_design())
    if name == "hostile":
        conditions = (Condition("bcm", EVIL, EVIL), Condition("lda", f"{EVIL}2", EVIL))
        found = planted(small_design(title=EVIL, conditions=conditions, block_ratings=RATED, questionnaire=FUN), 6)
        return replace(found, everyone=replace(found.everyone, by_person={EVIL: {"bcm": 0.5, "lda": 1.0}}))
    return analyse(small_design(), *ODD[name])


NAMES = (
    "two",
    "three",
    "between",
    "predict",
    "rate",
    "hostile",
    "nothing",
    "one answer",
    "one condition",
    "all right",
    "no times",
)


@cache
def page_of(name):
    return report_page.page(made(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_fetches_nothing(name):
    text = page_of(name)
    page = Reader(text)
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == len(page.all("main")) == 1
    assert not {"script", "link", "iframe", "form"} & {tag for tag, _ in page.tags}
    assert not re.search(r"https?:|@import|url\(", text)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert all(a["href"][1:] in ids for a in page.all("a"))
    words = " ".join(page.text)
    assert not re.search(r"\bnan\b|\binf\b|None", words)
    for figure in re.findall(r"<figure>.*?</figure>", text, re.S):
        assert re.search(r"<figcaption>.+?\.</figcaption>", figure)
        assert "<table>" in figure


@pytest.mark.parametrize("name", NAMES)
def test_terminal_pipe_and_json_survive_any_data(name):
    found = made(name)
    json.dumps(report.as_results(found), allow_nan=False)
    console = Console(record=True, width=160, force_terminal=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.for_terminal(found))
    console.file.close()
    for text in (report.for_pipe(found), console.export_text()):
        assert not re.search(r"\bnan\b|\binf\b|None", text)


def test_sentences_say_what_was_planted_and_for_what_it_holds():
    found = made("two")
    short = " ".join(in_short(found, found.everyone))
    assert "of the answers were right, with LDA" in short
    assert "The difference, BCM less LDA, is" in short
    assert "for these 5 explanations" in short
    assert "other people, other cases, and other explanations of these kinds, of which 5 were compared" in short
    nothing = analyse(small_design(), *rows(small_design(), 24, np.random.default_rng(3)))
    assert "does not show that the two are equal" in in_short(nothing, nothing.everyone)[0]
    assert in_short(made("nothing"), made("nothing").everyone) == ["There are no answers to analyse yet."]
    lone = made("one condition")
    assert "no answers in LDA" in in_short(lone, lone.everyone)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"verdict": "kind"}, "reaches beyond what was shown"),
        ({"verdict": "these"}, "It does not show that explanations of this kind differ"),
        ({"verdict": "these", "cases": 5}, "does not show that explanations of this kind do the same for other cases"),
        ({"verdict": "these", "explanations": 0}, "other people would rate these explanations in the same way"),
        ({"verdict": "equal"}, "too small to matter"),
        ({"verdict": "none"}, "No verdict"),
    ],
)
def test_every_verdict_says_what_it_generalises_to(changes, words):
    found = made("two")
    assert words in verdict(found, replace(found.everyone.comparisons[0], **changes))


def test_a_difference_that_counts_only_alone_is_not_called_chance_without_a_word():
    found = made("two")
    first = found.everyone.comparisons[0]
    alone = replace(first, verdict="open", these=replace(first.these, p=0.03, holm=0.15))
    assert "Taken alone" in verdict(found, alone)


def test_the_papers_mode_has_no_verdicts():
    design = small_design(mode="paper")
    found = analyse(design, *rows(design, 24, np.random.default_rng(1)))
    said = " ".join(sentences(found))
    assert "No test of such data can tell the two apart" in said
    assert said.count("No verdict: each case was seen in one condition only") == 2  # accuracy and time
    assert not re.search("more than chance|seldom", said)


def test_holm_is_shown_where_there_is_something_to_adjust_for():
    assert '<th scope="col" class="n">p, Holm</th>' in page_of("three")


def test_files_are_replaced_whole(tmp_path):
    found = made("two people")
    for _ in range(2):
        assert [path.name for path in report.write_analysis(found, tmp_path)] == ["analysis.html", "results.json"]
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match="is a file"):
        report.write_analysis(found, tmp_path / "results.json")


# --- in a browser ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["three", "rate", "hostile", "nothing"])
def test_pages_pass_axe_at_every_width(browser, axe, name, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(page_of(name), "utf-8")
    for width, scheme in ((1280, "light"), (320, "light"), (1280, "dark")):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.goto(path.as_uri())
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        page.add_script_tag(path=str(axe))
        found = page.evaluate("axe.run()")["violations"]
        assert not [(v["id"], v["nodes"][0]["html"][:200]) for v in found]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("window.evil") is None
        page.close()
