"""People who are not: they use the real pages over HTTP as browsers do, read what is on them, and answer as is planted.

Our own server for them has a clock of its own per person, so that nobody has to wait: the time comes with each request,
through a layer that exists here only. On another server (`url`) they wait like anybody else. A rehearsal has its own folder,
with a database, so it never mixes with another one, nor with data.
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

from ..web.serving import listen, server_of
from .data.database import MINUTE, milliseconds
from .design.design import Design, Item, ShownExplanation, Stimulus
from .design.design_file import copy_design, freeze, read_design
from .design.language import catalogue
from .pages.forms import NO_ANSWER
from .pages.pages import Pages
from .pages.server import create_app
from .planted import SimulatedMind, Truth, World

TIME = "x-simulated-ms"
REHEARSALS = "rehearsals"
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
    folder: str | None = None  # of the rehearsal


def rehearse(folder: Path, n: int = 24, *, output: Path | None = None, **how: Any) -> Simulation:
    """Let `n` people take part in a copy of the study, in a new folder: `folder/rehearsals/1`, 2, …, or `output`."""
    folder = Path(folder)
    place = Path(output) if output is not None else next_rehearsal(folder)
    if place.exists() and any(place.iterdir()):
        raise ValueError(f"{place} is there and not empty; a rehearsal goes into a new folder.")
    copy_design(folder, place)
    freeze(place, finished=False)
    done = simulate(place, n, **how)
    return Simulation(**(vars(done) | {"folder": str(place)}))


def next_rehearsal(folder: Path) -> Path:
    taken = [int(path.name) for path in (folder / REHEARSALS).glob("*") if path.name.isdigit()]
    return folder / REHEARSALS / str(max(taken, default=0) + 1)


def simulate(
    folder: Path,
    n: int = 24,
    *,
    truth: Truth,
    at_once: int = 24,
    database: str | None = None,
    url: str | None = None,
    progress: Callable[[], object] = lambda: None,
) -> Simulation:
    """Let `n` people take part in the study of a folder, `at_once` at a time; in its pilot phase, marked as simulated."""
    design = read_design(folder)
    if url is not None:
        return asyncio.run(crowd(design, url, n, at_once, truth, None, progress))
    # People come one after another, so close that nobody who is still at it is taken for silent.
    apart = min(30_000, design.rules.timeout_minutes * MINUTE // (4 * at_once))
    start = milliseconds() - n * apart - 30 * MINUTE
    with running(folder, database) as address:
        return asyncio.run(crowd(design, address, n, at_once, truth, (start, apart), progress))


@contextlib.contextmanager
def running(folder: Path, database: str | None = None) -> Iterator[str]:
    """A server of our own in a thread; its address."""
    app = create_app(folder, database, phase="pilot", simulated=True, clock=lambda: _clock.get() or milliseconds())
    place = listen("127.0.0.1", 0)
    server = server_of(with_time(app))
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


async def crowd(design, url, n, at_once, truth, times, progress) -> Simulation:
    began, gate = time.monotonic(), asyncio.Semaphore(at_once)
    key, world = Key(design), World(design, truth)
    async with httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=at_once, keepalive_expiry=60)) as transport:
        turns = [asyncio.Event() for _ in range(n + 1)]  # they consent one after another, so that a seed repeats the slots
        turns[0].set()

        async def one(i):
            async with gate:
                clock = None if times is None else times[0] + i * times[1]
                person = Person(key, url, transport, SimulatedMind(world, i), i, clock)
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
    mind: SimulatedMind
    number: int
    clock: int | None  # None: real time
    patience: float = 0.0  # seconds to try again for, while the server does not answer
    shown: list[str] = field(default_factory=list)  # titles of the questions after whose answer the next page was shown
    errors: list[str] = field(default_factory=list)
    complete: bool = False
    dropped: bool = False
    condition: str = ""  # that was met last

    def __post_init__(self):
        self.rng, truth = self.mind.rng, self.mind.world.truth
        drops = self.rng.random() < truth.dropout
        self.stays = int(self.rng.integers(1, 25)) if drops else None  # pages
        headers = {"origin": self.url, "sec-fetch-site": "same-origin"}
        self.client = httpx.AsyncClient(transport=self.transport, base_url=self.url, headers=headers, timeout=120)

    async def begin(self) -> "Page | None":
        """Consent; the first page of the study. The id is what the platform would send."""
        page = await self.ask("GET", f"/?{self.key.id_parameter}={self.number + 1:024x}")
        return None if page is None else await self.ask("POST", page.action, self.fill(page)[1])

    async def go_on(self, page: "Page | None") -> None:
        """Answer page after page, until the end or as long as this person stays."""
        pages = 0
        while page is not None and not self.complete:
            if pages == self.stays:
                self.dropped = True
                return
            pages += 1
            question = page.title if page.is_question else None
            wait, data = self.fill(page)
            await self.sleep(wait)
            page = await self.ask("POST", page.action, data)
            if page is not None:
                if question is not None and page.title != question and not question.startswith(self.key.practice):
                    self.shown.append(question)
                self.complete = page.title.startswith(self.key.end)
                if not page.action and not self.complete:  # screened out
                    return

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
            if method == "POST" and path.endswith("/study"):  # was it kept? the current page tells
                method, data = "GET", None

    async def sleep(self, seconds: float) -> None:
        if self.clock is None:
            await asyncio.sleep(seconds)
        else:
            self.clock += math.ceil(seconds * 1000)

    def fill(self, page: "Page") -> tuple[float, dict[str, str]]:
        """(seconds that it takes, the fields) of a page's form."""
        data = dict(page.hidden)
        if page.is_question:
            return self.fill_question(page, data)
        for name, values in page.choices.items():
            if NO_ANSWER in values:
                data[name] = str(self.mind.rating(self.condition or self.key.any_condition, len(values) - 1))
            else:
                data[name] = values[int(self.rng.integers(len(values)))]
        if page.legend in self.key.checks and self.rng.random() < self.mind.world.truth.attention:
            data["choice"] = str(self.key.checks[page.legend])
        for name in page.texts:
            data[name] = str(int(self.rng.integers(18, 80)))
        return page.wait / 1000 + 0.01, data | page.button

    def fill_question(self, page: "Page", data: dict[str, str]) -> tuple[float, dict[str, str]]:
        item, self.condition, groups = self.key.read(page)
        seconds = 0.0 if self.clock is None else self.mind.seconds(self.condition)
        passed = int(seconds * 1000)
        times = {"shown_ms": min(120, passed), "first_input_ms": passed * 9 // 10, "submitted_ms": passed} if passed else {}
        if groups:
            data["choice"] = self.choose(item, groups)
        for name, values in page.choices.items():
            if name != "choice":
                data[name] = str(self.mind.rating(self.condition, len(values) - 1))
        return seconds, data | {name: str(ms) for name, ms in times.items()}

    def choose(self, item: Item, groups: list[int]) -> str:
        """The place of an option: the right one with the probability of this condition, person, case and explanation."""
        right = groups.index(item.correct)  # type: ignore[arg-type]
        if self.mind.is_right(item.id, self.condition):
            return str(right)
        others = [place for place in range(len(groups)) if place != right]
        return str(others[int(self.rng.integers(len(others)))])


# --- reading pages --------------------------------------------------------------------------------------------------------

Seen = tuple[str, ...]  # what is drawn, piece by piece, in no order: each person has their own


class Page(HTMLParser):
    """A page as a person sees it: title, form, the case, the explanation, and the groups."""

    def __init__(self, text: str):
        super().__init__()
        self.title, self.legend, self.action, self.wait = "", "", "", 0
        self.hidden: dict[str, str] = {}
        self.choices: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.button: dict[str, str] = {}
        self.case: list[str] = []
        self.explanation: list[str] = []
        self.options: list[list[str]] = []
        self.labels: list[str] = []
        self._into: list[str] | None = None
        self._tag, self._piece, self._label = "", "", False
        self.feed(text)
        self.close()

    @property
    def is_question(self) -> bool:
        return "submitted_ms" in self.hidden

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        a: dict[str, Any] = {name: value or "" for name, value in attrs}
        kind, self._tag = a.get("class", ""), tag
        if tag == "form":
            self.action, self.wait = a["action"], int(a.get("data-wait", 0))
        elif tag == "input" and a["type"] == "hidden":
            self.hidden[a["name"]] = a["value"]
        elif tag == "input" and "name" in a and a["type"] in ("radio", "checkbox"):
            self.choices.setdefault(a["name"], []).append(a["value"])
        elif tag == "input" and "name" in a:
            self.texts.append(a["name"])
        elif tag == "button" and "name" in a and not self.button:
            self.button = {a["name"]: a["value"]}
        elif tag == "section":
            self._into = {"case": self.case, "explanation": self.explanation}.get(kind)
        elif tag == "div" and kind == "option":
            self.options.append([])
            self.labels.append("")
            self._into = None
        elif tag == "p" and kind == "pick":
            self._label = True
        elif tag == "fieldset":
            self._into = None
        elif tag == "img" and self._into is not None:
            self._into.append(a["src"].rpartition("/")[2])
        elif tag in ("rect", "path") and self._into is not None:
            self._into.append(" ".join(f"{name}={value}" for name, value in attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("li", "tr") and self._into is not None and self._piece:
            self._into.append(self._piece)
        if tag in ("li", "tr"):
            self._piece = ""
        elif tag == "p" and self._label:
            self._label, self._into = False, self.options[-1]
        elif tag in ("section", "fieldset", "form"):
            self._into = None
        self._tag = ""

    def handle_data(self, data: str) -> None:
        words = data.strip()
        if self._tag == "title":
            self.title += data
        elif self._tag == "legend" and not self.legend:
            self.legend = words
        elif self._label and words:
            self.labels[-1] += words
        elif self._into is not None and words and self._tag != "caption":
            self._piece += f"{words} "
            if self._tag in ("p", "h1", "h2", "h3", "h4", "strong", "em", "code"):
                self._into.append(self._piece)
                self._piece = ""


class Key:
    """From what is drawn to what it is, by the design: the server does not tell."""

    def __init__(self, design: Design):
        say = catalogue(design.language)
        self.design, self.practice, self.end = design, say("question.practice"), say("end.title")
        self.id_parameter, self.any_condition = design.rules.admission.id_parameter, design.conditions[0].id
        draw = Pages(design).templates.get_template("parts.html").module.stimulus  # type: ignore[attr-defined]

        def seen(stimulus: Stimulus) -> Seen:
            return pieces(Page(f'<section class="case">{draw(stimulus, "")}</section>').case)

        self.checks = {check.text.strip(): check.correct for check in design.checks}
        self.cases: dict[Seen, list[Item]] = {}
        for item in design.items:
            self.cases.setdefault(seen(item.stimulus), []).append(item)
        self.shown: dict[tuple[str, Seen], list[ShownExplanation]] = {}
        for one in design.explanations:
            self.shown.setdefault((one.condition, seen(one.stimulus)), []).append(one)
        self.of_group = {label.label: label.id for label in design.groups}

    def read(self, page: Page) -> tuple[Item, str, list[int]]:
        """(item, condition, groups from the first option to the last; none where the task is to rate)."""
        for item in self.cases[pieces(page.case)]:  # several items may look alike; their explanations tell them apart
            for condition in (condition.id for condition in self.design.conditions):
                groups = self.groups(page, item, condition)
                if groups is not None:
                    return item, condition, groups
        raise ValueError("A question shows something that is not in the design.")

    def groups(self, page: Page, item: Item, condition: str) -> list[int] | None:
        """The groups that a page offers, if it can be a page of this item in this condition."""
        if page.explanation:
            found = self.shown.get((condition, pieces(page.explanation)), [])
            if not any(one.item in (None, item.id) and one.group in (None, item.correct) for one in found):
                return None
            return [self.of_group[label] for label in page.labels]
        shown = [self.shown.get((condition, pieces(option))) for option in page.options]
        return None if None in shown else [one[0].group for one in shown]  # type: ignore[index, misc]


def pieces(found: list[str]) -> Seen:
    return tuple(sorted(" ".join(piece.split()) for piece in found))
