"""The page of an analysis: whole, harmless, readable, for any data."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from bayescase.study.analysis import report, report_page
from bayescase.study.analysis.analyse import analyse
from bayescase.study.analysis.sentences import in_short
from bayescase.study.design.design import Likert

from ...explaining.render.test_report import EVIL, Reader
from ..designs import AGREEMENT, small_design
from ..made_data import rows
from .test_analyse import ODD, three_arms

RATED = (
    Likert("clear_first", "The first groups were easy to understand.", AGREEMENT),
    Likert("clear_second", "The second groups were easy to understand.", AGREEMENT),
    Likert("fun", f"{EVIL} I liked the task.", ("no", EVIL, "yes", *AGREEMENT)),
)


def rated(design, people, **planted):
    rng = np.random.default_rng(1)
    answers, who = rows(design, people, rng, **planted)
    for k, person in enumerate(who):
        person |= {f"likert_{q.id}": int(rng.integers(len(q.labels))) for q in design.questionnaire}
        person["checks_failed"] = int(k == 1)
    return analyse(design, answers, who)


def made(name):
    if name == "two":
        return rated(small_design(questionnaire=RATED), 24, effect=1.5)
    if name == "three":
        return rated(three_arms(), 12, effect=1.0)
    if name == "hostile":
        found = rated(small_design(title=EVIL, questionnaire=RATED), 6)
        return replace(found, everyone=replace(found.everyone, by_person={EVIL: {"bcm": 0.5, "lda": 1.0}}))
    return analyse(small_design(), *ODD[name])


NAMES = ("two", "three", "hostile", *ODD)


@pytest.fixture(scope="module")
def pages():
    return {name: report_page.page(made(name)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_fetches_nothing(pages, name):
    text = pages[name]
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


def test_sentences_say_what_was_planted():
    short = " ".join(in_short(made("two").everyone, "crossed"))
    assert "People were right more often with BCM than with LDA" in short
    assert "percentage points (95 % interval" in short
    assert "Answers took as long with BCM as with LDA." in short
    nothing = " ".join(
        in_short(analyse(small_design(), *rows(small_design(), 24, np.random.default_rng(3))).everyone, "crossed")
    )
    assert "does not show that the two are equal" in nothing
    assert in_short(made("nothing").everyone, "crossed") == ["There are no answers to analyse yet."]
    assert "there are no answers in LDA" in " ".join(in_short(made("one condition").everyone, "crossed"))


def test_the_papers_mode_is_not_trusted_too_far():
    design = small_design(mode="paper")
    found = analyse(design, *rows(design, 24, np.random.default_rng(1)))
    assert "only the model with item effects" in " ".join(report.sentences(found))
    assert "each item was seen in one condition only" in " ".join(report.sentences(found))


def test_holm_is_shown_with_three_conditions_only(pages):
    assert '<th scope="col" class="n">p, Holm</th>' in pages["three"]
    assert '<th scope="col" class="n">p, Holm</th>' not in pages["two"]


def test_files_are_replaced_whole(tmp_path):
    found = made("two people")
    for _ in range(2):
        assert [path.name for path in report.write_analysis(found, tmp_path)] == ["analysis.html", "results.json"]
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(ValueError, match="is a file"):
        report.write_analysis(found, tmp_path / "results.json")


# --- in a browser ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two", "three", "hostile", "nothing", "all right"])
def test_pages_pass_axe_at_every_width(browser, axe, pages, name, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(pages[name], "utf-8")
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
