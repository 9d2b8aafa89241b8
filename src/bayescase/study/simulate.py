"""People who are not: they use the real pages over HTTP as browsers do, read what is on them, and are right with known odds.

Our own server for them has a clock of its own per person, so that nobody has to wait: the time comes with each request,
through a layer that exists here only. On another server (`url`) they wait like anybody else.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from ..web.serving import listen
from .data.database import MINUTE, milliseconds
from .data.monitor import AWAY
from .design.design import Design, Stimulus
from .design.design_file import read_design
from .pages.pages import Pages
from .pages.server import create_app

TIME = "x-simulated-ms"
SECONDS, SPREAD, LONGEST = 28.0, 0.5, 200.0  # of an answer: median, SD of its logarithm, and the most
_clock: ContextVar[int | None] = ContextVar("simulated time", default=None)


@dataclass(frozen=True)
class Simulation:
    """What came of it."""

    people: int
    complete: int
    dropped: int
    answers: int
    errors: tuple[str, ...]
    seconds: float


@dataclass
class Rates:
    """How likely a correct answer is: by condition, and by person and question on the scale of log-odds."""

    p: dict[str, float]
    person_sd: float = 0.0
    item_sd: float = 0.0
    dropout: float = 0.0
    attention: float = 0.98  # probability of passing an attention check
    seed: int = 0

    def person(self, i: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 1, i])

    def items(self, design: Design) -> dict[str, float]:
        drawn = np.random.default_rng([self.seed, 0]).normal(0, self.item_sd, len(design.items))
        return dict(zip((item.id for item in design.items), drawn.tolist(), strict=True))


def simulate(
    folder: Path,
    n: int = 24,
    *,
    rates: Rates,
    at_once: int = 24,
    database: str | None = None,
    url: str | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Simulation:
    """Let `n` people take part in the study of a folder, `at_once` at a time; in its pilot phase, marked as simulated."""
    design = read_design(folder)
    if url is not None:
        return asyncio.run(crowd(design, url, n, at_once, rates, None, progress))
    # People come one after another, so close that nobody who is still at it is taken for silent.
    apart = min(30_000, design.rules.timeout_minutes * MINUTE // (4 * at_once))
    start = milliseconds() - n * apart - 30 * MINUTE
    with running(folder, database) as address:
        return asyncio.run(crowd(design, address, n, at_once, rates, (start, apart), progress))


@contextlib.contextmanager
def running(folder: Path, database: str | None = None) -> Iterator[str]:
    """A server of our own in a thread; its address."""
    import uvicorn

    app = create_app(folder, database, phase="pilot", simulated=True, clock=lambda: _clock.get() or milliseconds())
    place = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(with_time(app), access_log=False, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{place.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        place.close()


def with_time(app):
    async def timed(scope, receive, send):
        given = dict(scope.get("headers", ())).get(TIME.encode())
        _clock.set(int(given) if given else None)
        await app(scope, receive, send)

    return timed


async def crowd(design, url, n, at_once, rates, times, progress) -> Simulation:
    began, gate = time.monotonic(), asyncio.Semaphore(at_once)
    key, items = Key(design), rates.items(design)
    async with httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=at_once, keepalive_expiry=60)) as transport:
        turns = [asyncio.Event() for _ in range(n + 1)]  # they consent one after another, so that a seed repeats the slots
        turns[0].set()

        async def one(i):
            async with gate:
                clock = None if times is None else times[0] + i * times[1]
                person = Person(key, url, transport, rates, items, i, clock)
                await turns[i].wait()
                page = await person.begin()
                turns[i + 1].set()
                await person.go_on(page)
                progress()
                return person

        people = await asyncio.gather(*(one(i) for i in range(n)))
    return Simulation(
        people=n,
        complete=sum(person.complete for person in people),
        dropped=sum(person.dropped for person in people),
        answers=sum(len(person.shown) for person in people),
        errors=tuple(error for person in people for error in person.errors),
        seconds=time.monotonic() - began,
    )


# --- a person -------------------------------------------------------------------------------------------------------------


@dataclass
class Person:
    key: "Key"
    url: str
    transport: httpx.AsyncBaseTransport
    rates: Rates
    items: dict[str, float]
    number: int
    clock: int | None  # None: real time
    patience: float = 0.0  # seconds to try again for, while the server does not answer
    shown: list[str] = field(default_factory=list)  # titles of the questions after whose answer the next page was shown
    errors: list[str] = field(default_factory=list)
    complete: bool = False
    dropped: bool = False

    def __post_init__(self):
        self.rng = self.rates.person(self.number)
        self.skill = float(self.rng.normal(0, self.rates.person_sd))
        drops = self.rng.random() < self.rates.dropout
        self.stays = int(self.rng.integers(1, 25)) if drops else None  # pages
        headers = {"origin": self.url, "sec-fetch-site": "same-origin"}
        self.client = httpx.AsyncClient(transport=self.transport, base_url=self.url, headers=headers, timeout=120)

    async def begin(self) -> "Page | None":
        """Consent; the first page of the study."""
        page = await self.ask("GET", "/")
        return None if page is None else await self.ask("POST", page.action, self.fill(page)[1])

    async def go_on(self, page: "Page | None") -> None:
        """Answer page after page, until the end or as long as this person stays."""
        pages = 0
        while page is not None and not self.complete:
            if pages == self.stays:
                self.dropped = True
                return
            pages += 1
            question = page.title if page.options else None
            wait, data = self.fill(page)
            await self.sleep(wait)
            page = await self.ask("POST", page.action, data)
            if page is not None:
                if question is not None and page.title != question and not question.startswith("Practice"):
                    self.shown.append(question)
                self.complete = page.title.startswith("Thank you")

    async def ask(self, method: str, path: str, data: dict[str, str] | None = None) -> "Page | None":
        """The page that a browser would end up at; None after an error, which is noted."""
        give_up = time.monotonic() + self.patience
        while True:
            headers = {} if self.clock is None else {TIME: str(self.clock)}
            try:
                answer = await self.client.request(method, path, data=data, headers=headers)
                if answer.status_code == 303:
                    method, path, data = "GET", answer.headers["location"], None
                    continue
                if answer.status_code < 400:
                    return Page(answer.text)
                wrong = f"{method} {path}: {answer.status_code}"
            except httpx.TransportError as error:
                wrong = f"{method} {path}: {type(error).__name__}"
            if time.monotonic() > give_up:
                self.errors.append(wrong)
                return None
            await asyncio.sleep(0.1)
            if method == "POST" and path == "/study":  # was it kept? the current page tells
                method, data = "GET", None

    async def sleep(self, seconds: float) -> None:
        if self.clock is None:
            await asyncio.sleep(seconds)
        else:
            self.clock += math.ceil(seconds * 1000)

    def fill(self, page: "Page") -> tuple[float, dict[str, str]]:
        """(seconds that it takes, the fields) of a page's form."""
        data = dict(page.hidden)
        if page.options:
            choice, seconds = self.choose(page), 0.0
            if self.clock is not None:
                seconds = min(float(self.rng.lognormal(math.log(SECONDS), SPREAD)), LONGEST, AWAY / 2000)
            passed = int(seconds * 1000)
            times = {"shown_ms": min(120, passed), "first_input_ms": passed * 9 // 10, "submitted_ms": passed}
            if not passed:
                times = {}
            return seconds, data | {"choice": choice} | {name: str(ms) for name, ms in times.items()}
        for name, values in page.choices.items():
            data[name] = values[int(self.rng.integers(len(values)))]
        if page.legend in self.key.checks and self.rng.random() < self.rates.attention:
            data["choice"] = str(self.key.checks[page.legend])
        for name in page.texts:
            data[name] = str(int(self.rng.integers(18, 80)))
        return page.wait / 1000 + 0.01, data | page.button

    def choose(self, page: "Page") -> str:
        """The place of an option: the right one with the probability of this condition, person and question."""
        item, condition, clusters = self.key.read(page)
        odds = logit(self.rates.p[condition]) + self.skill + self.items[item.id]
        right = clusters.index(item.correct)
        if self.rng.random() < 1 / (1 + math.exp(-odds)):
            return str(right)
        others = [place for place in range(len(clusters)) if place != right]
        return str(others[int(self.rng.integers(len(others)))])


def logit(p: float) -> float:
    p = min(max(p, 1e-9), 1 - 1e-9)
    return math.log(p / (1 - p))


# --- reading pages --------------------------------------------------------------------------------------------------------


class Page(HTMLParser):
    """A page as a person sees it: title, form, what is to be sorted, and the groups."""

    def __init__(self, text: str):
        super().__init__()
        self.title, self.legend, self.action, self.wait = "", "", "", 0
        self.hidden: dict[str, str] = {}
        self.choices: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.button: dict[str, str] = {}
        self.case: list[str] = []
        self.options: list[list[str]] = []
        self._into: list[str] | None = None
        self._tag = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a: dict[str, Any] = {name: value or "" for name, value in attrs}
        kind, self._tag = a.get("class", ""), tag
        if tag == "form":
            self.action, self.wait = a["action"], int(a.get("data-wait", 0))
        elif tag == "input" and a["type"] == "hidden":
            self.hidden[a["name"]] = a["value"]
        elif tag == "input" and a["type"] in ("radio", "checkbox"):
            self.choices.setdefault(a["name"], []).append(a["value"])
        elif tag == "input":
            self.texts.append(a["name"])
        elif tag == "button" and "name" in a and not self.button:
            self.button = {a["name"]: a["value"]}
        elif tag == "section" and kind == "case":
            self._into = self.case
        elif tag == "fieldset":
            self._into = None
        elif tag == "div" and kind == "option":
            self.options.append([])
        elif tag == "p":
            self._into = None
        elif tag in ("rect", "path") and self._into is not None:
            self._into.append(" ".join(f"{name}={value}" for name, value in attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag == "p" and self.options:
            self._into = self.options[-1]
        elif tag in ("section", "fieldset", "form"):
            self._into = None

    def handle_data(self, data: str) -> None:
        if self._tag == "title":
            self.title += data
        elif self._tag == "legend" and not self.legend:
            self.legend = data.strip()
        elif self._into is not None and data.strip() and self._tag != "caption":
            self._into.append(data.strip())


class Key:
    """From what is drawn to what it is, by the design: the server does not tell."""

    def __init__(self, design: Design):
        self.design = design
        draw = Pages(design).templates.get_template("parts.html").module.stimulus  # type: ignore[attr-defined]

        def seen(stimulus: Stimulus) -> tuple[str, ...]:
            return tuple(Page(f'<section class="case">{draw(stimulus, "")}</section>').case)

        self.checks = {check.text.strip(): check.correct for check in design.checks}
        self.cases = {seen(item.stimulus): item for item in design.items}
        self.shown: dict[str, dict[tuple[str, ...], int]] = {condition: {} for condition in design.conditions}
        for r in design.representations:
            self.shown[r.condition][seen(r.stimulus)] = r.cluster

    def read(self, page: Page):
        """(item, condition, clusters from the first option to the last)."""
        item = self.cases[tuple(page.case)]
        for condition, known in self.shown.items():
            if all(tuple(option) in known for option in page.options):
                return item, condition, [known[tuple(option)] for option in page.options]
        raise ValueError("A question shows a group that is not in the design.")
