"""The study in a real browser: the whole flow, at two widths, by keyboard alone, without JavaScript, with axe on every page."""

import os
import re
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.database import milliseconds
from bayescase.study.data.tables import answers, participants
from bayescase.study.design.design import Check, Ending, Likert, Line, Stimulus
from bayescase.study.design.language import catalogue
from bayescase.study.pages.server import create_app
from bayescase.web.password import AdminPassword
from bayescase.web.serving import server_of

from ..designs import predicting, rating_design, small_design

SHOTS = os.environ.get("BAYESCASE_SCREENSHOTS")  # a folder: every page is photographed for people to look at


class Late:
    """A clock that can be put forward."""

    def __init__(self):
        self.more = 0

    def __call__(self):
        return milliseconds() + self.more


@pytest.fixture
def served(frozen):
    """served(design) → (address, store, clock) of a real server in a thread."""
    running = []

    def start(design, phase="live"):
        clock = Late()
        app = create_app(frozen(design, f"study{len(running)}"), phase=phase, clock=clock)
        place = socket.create_server(("127.0.0.1", 0))
        server = server_of(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        running.append((server, thread, place))
        return f"http://127.0.0.1:{place.getsockname()[1]}", app.store, clock

    yield start
    for server, thread, place in running:
        server.should_exit = True
        thread.join()
        place.close()


def short(design=None, **rules):
    """Four questions, a break of a second: every kind of page once or twice."""
    design = design or small_design()
    items = tuple(item for item in design.items if item.item_set == "practice" or item.id[1:] in "12")
    ids = {item.id for item in items}
    rules = {"break_every": 2, "break_seconds": 1, "complete": Ending("DONE-1", "https://example.org/done?cc=1")} | rules
    checks = (
        Check("task", "What are you asked?", ("Which is largest", "Which group it belongs to"), 1, 0),
        *(replace(check, after=3) for check in design.checks[:1]),
    )
    explanations = tuple(shown for shown in design.explanations if shown.item is None or shown.item in ids)
    rules = replace(design.rules, **rules)
    return replace(design, items=items, explanations=explanations, checks=checks, rules=rules)


def tabled(design):
    """The same study with a table for the cases and pictures for the groups."""
    table = Stimulus("table", (Line("number of legs", "4", False), Line("home", "land", True)))
    ink = tuple(None if i == 9 else (i % 5) / 4 for i in range(64))
    items = tuple(replace(item, stimulus=table) for item in design.items)

    def pixels(group):
        return Stimulus("image", (), (8, 8), tuple(ink[(i * (group + 1)) % 64] for i in range(64)), (18, 19, 26))

    shown = tuple(replace(r, stimulus=pixels(r.group)) for r in design.explanations)
    return replace(design, items=items, explanations=shown)


def all_tables(design):
    """The same study with tables only: the case stands beside the groups."""
    lines = tuple(Line(f"feature {i} with a name", "an ordinary value", i % 2 == 0) for i in range(9))
    items = tuple(replace(item, stimulus=Stimulus("table", lines)) for item in design.items)
    shown = tuple(
        replace(r, stimulus=Stimulus("table", (*lines, Line("cluster", str(r.group), False)))) for r in design.explanations
    )
    return replace(design, items=items, explanations=shown)


SURE = Likert("confidence", "How sure are you?", ("Not at all", "A little", "Very", "Completely"))
GRID = Stimulus(
    "grid", rows=(("if", "then", "how often"), *((f"a rule with words {k}", "an answer", f"{k} %") for k in range(4)))
)
PROSE = Stimulus(
    "text", text="The model looks for **red**.\n\n- and for *size*\n- and for `shape`\n\n| a | b |\n|---|---|\n| 1 | 2 |"
)


def brought(language="en"):
    """What people bring along: weights as bars, texts, grids; with a rating of every answer."""
    design = predicting(language=language, item_ratings=(SURE,))
    kinds = {0: GRID, 1: PROSE}
    shown = tuple(replace(e, stimulus=kinds[k % 2]) if e.condition == "lda" else e for k, e in enumerate(design.explanations))
    return short(replace(design, explanations=shown))


CUT = """() => [...document.querySelectorAll('main *')].filter(e => {
  const {overflowX, overflowY} = getComputedStyle(e), hides = s => s === 'hidden' || s === 'clip';
  return (hides(overflowX) && e.scrollWidth > e.clientWidth + 1 || hides(overflowY) && e.scrollHeight > e.clientHeight + 1)
    && !e.classList.contains('hidden') || e.parentElement.matches('.option, .tokens') && !e.classList.contains('hidden')
    && e.getBoundingClientRect().right > e.parentElement.getBoundingClientRect().right + 1;
}).map(e => e.outerHTML.slice(0, 100))"""


AUDITED = set()  # what axe has looked at in this process
FORM = """[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches, document.documentElement.style.fontSize,
  [...document.querySelectorAll(':checked')].map(e => e.id).join()]"""


def audited(page):
    """Whether axe has seen this page as it is now: the same document but for its numbers and tokens, equally drawn."""
    text = re.sub(r"<script.*?</script>|[0-9a-f]{16,}|[A-Z0-9]{4}(-[A-Z0-9]{4})+|\d+", "", page.content(), flags=re.DOTALL)
    seen = (*page.evaluate(FORM), text)
    known = seen in AUDITED
    AUDITED.add(seen)
    return known


def look(page, axe, width, name):
    """The page fits, nothing in it is cut off or sticks out, and axe finds nothing."""
    assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert not page.evaluate(CUT), name
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)
    if audited(page):
        return
    if not page.evaluate("'axe' in window"):
        page.add_script_tag(path=str(axe))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = page.evaluate("tags => axe.run(document, {runOnly: tags, resultTypes: ['violations']})", tags)
    told = [(v["id"], v["nodes"][0]["html"][:200], v["nodes"][0].get("failureSummary")) for v in found["violations"]]
    assert not told, name


def press(page, button="main button:enabled"):
    """Click, and wait for the page that comes; at the end of a break also for the button."""
    with page.expect_navigation():
        page.locator(button).first.click()


def fill(page):
    """Answer what is on the page, with the mouse: the second of every row of choices."""
    names = {}
    for box in page.locator("input[type=radio], input[type=checkbox]").all():
        names.setdefault(box.get_attribute("name"), []).append(box.get_attribute("id"))
    for ids in names.values():
        page.locator(f"label[for={ids[min(1, len(ids) - 1)]}]").click()
    if page.locator("#age").count():
        page.locator("#age").fill("41")
    press(page)


DESIGNS = {
    "sets": short,
    "zoom": short,
    "pictures": lambda: tabled(short()),
    "zoomed pictures": lambda: tabled(short()),
    "zoomed tables": lambda: all_tables(short()),
    "brought": brought,
    "gebracht": lambda: brought("de"),
    "rated": lambda: short(rating_design(language="de")),
}


@pytest.mark.parametrize(
    ("width", "scheme", "kind"),
    [
        (1280, "light", "sets"),
        (320, "light", "sets"),
        (1280, "dark", "pictures"),
        (320, "dark", "pictures"),
        (640, "light", "zoom"),
        (640, "dark", "zoomed pictures"),
        (1280, "light", "zoomed tables"),
        (1280, "light", "brought"),
        (320, "light", "gebracht"),
        (320, "dark", "rated"),
    ],
)
def test_every_page_passes_axe_and_fits(browser, axe, served, width, scheme, kind):
    design = DESIGNS[kind]()
    say = catalogue(design.language)
    address, store, clock = served(design)
    viewport = {"width": width, "height": 700}
    context = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True)
    if "zoom" in kind:  # all letters twice as large, nothing else
        context.add_init_script(
            "addEventListener('DOMContentLoaded', () => { document.documentElement.style.fontSize = '200%' })"
        )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(address)
    number = 0

    def seen(name):
        nonlocal number
        number += 1
        name = name.replace(" ", "-").replace(":", "").replace("?", "").replace("/", "-")
        look(page, axe, viewport["width"], f"{kind}-{width}-{number:02}-{name}")

    def at(key, **values):
        return page.title().startswith(say(key, **values))

    seen("information")
    fill(page)
    misread = False
    while not at("end.title"):
        seen(page.title().split(" –")[0])
        if at("question.title", number=2, total=4):
            for path in ("/receipt", "/withdraw", "/return", "/nowhere"):
                page.goto(address + path)
                seen(path[1:])
            clock.more += 10 * 60_000
            page.goto(address + "/study")
            seen("welcome-back")
            press(page)
        if at("about.title"):
            page.locator("#age").fill("old")
            press(page)
            seen("a-mistake")
        if at("question.title", number=3, total=4) and design.task != "rate":
            page.locator(".option label").first.click()
            seen("chosen")
        if at("one-question.title") and not misread:
            page.locator("label[for=choice-0]").click()  # not what was asked
            press(page)
            assert page.locator("[role=alert]").inner_text() == say("instructions.again")
            seen("read-again")
            misread = True
        fill(page)
    seen("end")
    if kind in ("sets", "pictures"):
        researcher(page, address, store, seen)
    page.goto(address + "/withdraw")
    seen("withdraw-after-the-end")
    with store.reading() as connection:
        person = connection.execute(select(participants)).one()
    page.locator("#receipt").fill(store.receipt_of(person))
    press(page)
    assert at("withdrawn.title")
    seen("withdrawn")
    store.set_state("paused")
    page.goto(address)
    seen("paused")
    context.close()


def researcher(page, address, store, seen):
    AdminPassword(store.folder).set("long enough")
    page.goto(address + "/admin")
    seen("log-in")
    page.locator("#password").fill("long enough")
    press(page)
    seen("monitor")
    page.locator("main table a").first.click()
    page.wait_for_url("**/admin/person/*")
    seen("path")


# --- in view --------------------------------------------------------------------------------------------------------------

VISIBLE = """element => {
  const box = element.getBoundingClientRect();
  return Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0)) / Math.min(box.height, innerHeight);
}"""


@pytest.mark.parametrize("kind", ["sets", "pictures", "brought"])
def test_the_case_stays_in_view_on_a_phone(browser, served, kind):
    """At 360 px the groups are one below the other; who reads the last one must still see what it is about."""
    address, _, _ = served(DESIGNS[kind]())
    context = browser.new_context(viewport={"width": 360, "height": 640})
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(address)
    while not page.title().startswith("Question 1"):
        fill(page)
    last = page.locator(".option").last
    last.locator("label").click()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    assert page.locator(".case").evaluate(VISIBLE) > 0.9
    for option in page.locator(".option").all():
        option.locator("input").focus()
        assert page.locator(".case").evaluate(VISIBLE) > 0.9
        case, box = page.locator(".case").bounding_box(), option.locator(".pick").bounding_box()
        assert box["y"] >= case["y"] + case["height"] - 1 or box["y"] + box["height"] <= case["y"] + 1  # not hidden behind it
    context.close()


@pytest.mark.parametrize("width", [360, 1280])
def test_what_is_rated_stays_in_view(browser, served, width):
    address, _, _ = served(short())
    context = browser.new_context(viewport={"width": width, "height": 700})
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.goto(address)
    while not page.title().startswith("About part 1"):
        fill(page)
    page.locator("input[name=sure]").last.focus()
    assert page.locator(".rated").evaluate(VISIBLE) > 0.9
    assert page.locator(".rated .one").count() == 5
    context.close()


def test_a_code_after_the_hash_is_filled_in_and_not_sent(browser, served):
    address, _, _ = served(short())
    first, second = browser.new_context(), browser.new_context()
    one, two = first.new_page(), second.new_page()
    one.goto(address)
    fill(one)
    one.goto(address + "/receipt")
    link = one.locator(".address").last.inner_text()
    asked = []
    two.on("request", lambda request: asked.append(request.url))
    two.goto(link)
    code = two.locator("#receipt").input_value()
    assert code == link.partition("#")[2]
    assert not any(code in url.partition("#")[0] for url in asked)
    press(two)
    assert two.title().startswith("About you")
    first.close()
    second.close()


def test_javascript_measures_and_nothing_breaks_the_policy(browser, served):
    address, store, _ = served(short())
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(10_000)
    wrong, asked = [], []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    while not page.title().startswith("Thank you"):
        fill(page)
    assert not wrong
    assert all(url.startswith((address, "data:,")) for url in asked)
    with store.reading() as connection:
        kept = connection.execute(select(answers)).all()
    assert len(kept) == 4
    for row in kept:
        assert 0 < row.shown_ms <= row.first_input_ms <= row.submitted_ms
        assert row.hidden_ms == 0
        assert row.blur_count is not None
        assert not row.timing_differs
    page.go_back()
    assert page.title().startswith("Thank you")
    page.reload()
    assert page.title().startswith("Thank you")
    context.close()


def test_the_whole_flow_by_keyboard_alone(browser, served):
    """Tab, space, arrows and Enter; what has the focus can be seen."""
    address, store, _ = served(short())
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.goto(address)

    def tab_to(selector):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("s => document.activeElement.matches(s)", selector):
                ring = "getComputedStyle(document.activeElement.closest('.option') || document.activeElement).outlineStyle"
                assert page.evaluate(ring) == "solid"
                return
        raise AssertionError(f"{selector} cannot be reached on {page.title()}")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab_to("#consent")
    page.keyboard.press("Space")
    tab_to("button")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    for _ in range(40):
        title = page.title()
        if title.startswith("Thank you"):
            break
        if title.startswith(("Question", "Practice –", "A short question")):
            tab_to("input[name=choice]")
            page.keyboard.press("ArrowDown")
        for start, names in (("About part", ("clear", "sure")), ("How was it", ("effort", "pleasant"))):
            for name in names if title.startswith(start) else ():
                tab_to(f"input[name={name}]")
                page.keyboard.press("Space")
        if title.startswith("A short break"):
            page.locator("main button:focus").wait_for()
        else:
            tab_to("main button")
        with page.expect_navigation():
            page.keyboard.press("Enter")
    assert page.title().startswith("Thank you")
    with store.reading() as connection:
        kept = connection.execute(select(answers)).all()
    assert [row.choice == row.options[1] for row in kept] == [True] * 4
    context.close()


def test_the_whole_flow_without_javascript(browser, served):
    address, store, clock = served(short())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_default_timeout(10_000)
    page.goto(address)
    early = 0
    for _ in range(40):
        title = page.title()
        if title.startswith("Thank you"):
            break
        if title.startswith(("A short break", "Not yet")):
            assert "Part 2 begins" in page.locator("main").inner_text()
            press(page)  # at once
            if page.title().startswith("Not yet"):
                early += 1
                assert "more second" in page.locator("[role=alert]").inner_text()
                clock.more += 1000
            continue
        fill(page)
    assert page.title().startswith("Thank you")
    assert early == 1
    with store.reading() as connection:
        kept = connection.execute(select(answers)).all()
    assert len(kept) == 4
    assert all(row.submitted_ms is None and not row.timing_differs for row in kept)
    context.close()
