"""The pages of a study over HTTP. GET changes nothing; a form is one call of the store, then a redirect to the current page."""

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Row
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ...web.forms import clean, fields
from ...web.guard import Guard
from ...web.serving import UnderPath, clean_path
from ...web.templating import STATIC
from ..data.database import milliseconds
from ..data.places import CLOSED, FORM_LASTS, Arrival, NotAdmitted
from ..data.store import Store, open_store
from ..design.design import Ending
from ..design.design_file import MEDIA, copy_design, freeze, pictures
from .admin import AdminPages
from .forms import read_step, read_timing
from .pages import HERE, Pages

DAYS = 30
LONGEST_ID = 200
STATUS = {"known": 200, "busy": 429, "no-id": 403, "not-invited": 403, "spent": 403, "late-form": 403}  # else 503


def create_app(
    folder: Path,
    database: str | None = None,
    *,
    phase: str = "live",
    simulated: bool = False,
    path: str = "",
    clock: Callable[[], int] = milliseconds,
) -> "Site":
    """The application of a study's folder.

    Parameters
    ----------
    folder : Path
        The study; its design must be frozen.
    database : str, optional
        Address of a PostgreSQL database; by default SQLite in the folder.
    phase : {"live", "pilot"}
        Where new people are counted.
    simulated : bool
        Whether new people are not people.
    path : str
        Of the address that the study is served below: "/taste" for https://example.org/taste/.
    clock : callable
        Milliseconds since 1970; another one only for simulations and tests.
    """
    return Site(open_store(folder, database, phase=phase, simulated=simulated, clock=clock), clean_path(path))


class Site:
    """The routes, as an application."""

    def __init__(self, store: Store, path: str = ""):
        self.store, self.pages = store, Pages(store.design, path)
        self.admin = AdminPages(store, self.pages)
        mark = store.design.hash[:8]  # cookies do not know ports, so two studies on one host need two names
        self.cookie, self.id_cookie = f"study_{mark}", f"id_{mark}"
        routes = [
            Route("/", self.information),
            Route("/consent", self.consent, methods=["POST"]),
            Route("/study", self.current),
            Route("/study", self.take, methods=["POST"]),
            Route("/continue", self.come_back, methods=["POST"]),
            Route("/receipt", self.receipt),
            Route("/return", self.ask_return),
            Route("/return", self.return_, methods=["POST"]),
            Route("/withdraw", self.ask_withdraw),
            Route("/withdraw", self.withdraw, methods=["POST"]),
            Route("/media/{name}", self.media),
            *self.admin.routes(),
            Mount("/static/web", StaticFiles(directory=STATIC)),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
        handlers: dict[Any, Any] = {HTTPException: self.refused, Exception: self.failed}
        starlette = Starlette(routes=routes, exception_handlers=handlers, lifespan=self.lifespan)
        self.app = UnderPath(Guard(starlette, lambda scope, status: self.pages.message(status)), path)
        self.shown_files = pictures(store.design)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self, _):
        yield
        self.store.close()

    def redirect(self, path: str) -> Response:
        return RedirectResponse(self.pages.url(path), 303)

    def set_cookie(self, request: Request, response: Response, name: str, value: str) -> Response:
        secure, path = request.url.scheme == "https", self.pages.prefix or "/"
        response.set_cookie(name, value, DAYS * 86400, path=path, httponly=True, samesite="lax", secure=secure)
        return response

    # --- before there is a place ---

    def arrival(self, given: Any) -> Arrival:
        """Who comes, by the parameters of the address or the fields of the form that repeats them."""
        rule = self.design.rules.admission
        others = tuple((name, clean(given.get(name, ""))) for name in rule.other_parameters)
        return Arrival(clean(given.get(rule.id_parameter, "")), others)

    async def information(self, request: Request) -> Response:
        """Information and consent. Link previews may come here; nothing is taken."""
        arrival = self.arrival(request.query_params)
        if any(len(value) > LONGEST_ID for value in (arrival.id, *(value for _, value in arrival.others))):
            return self.pages.message(400, place=False, words=self.pages.say("message.long-id"))

        def work():
            person = self.store.find(request.cookies.get(self.cookie))
            if person is not None and self.is_same(person, arrival.id) and person.status in ("active", "timed out"):
                return self.redirect("/study")
            try:
                self.store.admit(arrival)
            except NotAdmitted as refusal:
                own = person is not None and self.is_same(person, arrival.id)
                return self.redirect("/study") if refusal.why == "known" and own else self.not_admitted(refusal.why)
            return self.ask_consent(arrival, {}, before=person is not None)

        return await run_in_threadpool(work)

    def ask_consent(self, arrival: Arrival, errors: dict[str, str], before: bool = False) -> Response:
        rule, visit, at = self.design.rules.admission, secrets.token_hex(16), str(self.store.clock())
        form = {rule.id_parameter: arrival.id} | dict(arrival.others)
        form |= {"visit": visit, "at": at, "token": self.consent_token(visit, at, arrival)}
        return self.pages.show("information", 400 if errors else 200, form=form, errors=errors, before=before)

    def consent_token(self, visit: str, at: str, arrival: Arrival) -> str:
        return self.store.keys.digest("consent", visit, at, arrival.id, *(value for _, value in arrival.others))

    def is_same(self, person: Row, external: str) -> bool:
        known = self.store.external_hash(external)
        return known is None or person.external_hash == known

    def not_admitted(self, why: str) -> Response:
        if why == "known":
            return self.pages.show("return", errors={}, known=True, other=False)
        return self.pages.told(why, STATUS.get(why, 503), ending=None)

    async def consent(self, request: Request) -> Response:
        """Takes the place; the cookie has its token."""
        form = await fields(request)
        arrival, visit, at = self.arrival(form), form.get("visit", ""), form.get("at", "")
        if not secrets.compare_digest(form.get("token", "").encode(), self.consent_token(visit, at, arrival).encode()):
            return self.pages.message(403, place=False)
        if self.store.clock() - int(at) > FORM_LASTS:
            return self.not_admitted("late-form")
        if form.get("answer") == "no":
            await run_in_threadpool(self.store.decline, visit)
            return self.pages.told("declined", ending=self.ending(request, self.design.rules.no_consent))
        if form.get("answer") != "yes" or form.get("consent") != "yes":
            return self.ask_consent(arrival, {"consent": self.pages.say("information.tick")})
        try:
            token = await run_in_threadpool(self.store.begin, visit, arrival)
        except NotAdmitted as refusal:
            return self.not_admitted(refusal.why)
        response = self.set_cookie(request, self.redirect("/study"), self.cookie, token)
        rules = self.design.rules
        endings = (rules.complete, rules.timed_out, rules.screened_out)
        if arrival.id and any("{id}" in (ending.address or "") for ending in endings):
            self.set_cookie(request, response, self.id_cookie, quote(arrival.id, safe=""))  # in the browser, not here
        return response

    async def ask_return(self, request: Request) -> Response:
        return self.pages.show("return", errors={}, known=False, other=await self.person(request) is not None)

    async def return_(self, request: Request) -> Response:
        """Go on in this browser with the code that the person was given."""
        form = await fields(request)
        person = await run_in_threadpool(self.store.find_by_receipt, form.get("receipt", ""))
        if person is None:
            errors = {"receipt": self.pages.say("return.unknown")}
            return self.pages.show("return", 403, errors=errors, known=False, other=False)
        return self.set_cookie(request, self.redirect("/study"), self.cookie, self.store.token_of(person.public_id))

    # --- with a place ---

    @property
    def design(self):
        return self.store.design

    async def person(self, request: Request) -> Row | None:
        return await run_in_threadpool(self.store.find, request.cookies.get(self.cookie))

    def nobody(self) -> Response:
        return self.pages.told("nobody", 403, code=True)

    def ending(self, request: Request, ending: Ending) -> Ending:
        """With the id that the person came with, where the platform wants it back."""
        if "{id}" not in (ending.address or ""):
            return ending
        id = request.cookies.get(self.id_cookie, "")
        return replace(ending, address=ending.address.replace("{id}", id) if id and ending.address else None)

    async def current(self, request: Request) -> Response:
        """The page that the person is at, whatever they did before: reload, back, another tab, another day."""

        def work():
            person = self.store.find(request.cookies.get(self.cookie))
            return self.nobody() if person is None else self.page_of(request, person)

        return await run_in_threadpool(work)

    def page_of(self, request: Request, person: Row, status: int = 200, **values: Any) -> Response:
        standing, rules = self.store.standing(person), self.design.rules
        if standing == "complete":
            receipt = self.store.receipt_of(person) if person.receipt_hash else None
            return self.pages.show("end", place=True, ending=self.ending(request, rules.complete), receipt=receipt)
        if standing == "withdrawn":
            return self.pages.told("withdrawn")
        if standing == "screened out":
            return self.pages.told("screened", ending=self.ending(request, rules.screened_out), place=True)
        if self.store.state() == CLOSED:
            return self.pages.told("closed", ending=self.ending(request, rules.timed_out), place=True)
        if standing == "over":
            return self.pages.told("over", ending=self.ending(request, rules.timed_out), place=True)
        if standing == "away":
            token = self.store.keys.digest("continue", person.public_id)
            return self.pages.show("away", place=True, restart=rules.resume == "restart block", token=token)
        step, part = self.store.step_of(person), ""
        if step.kind == "practice":
            values["feedback"] = self.store.response(person, step.kind, step.ref)
            part = "" if values["feedback"] is None else "feedback"
        elif step.kind == "instructions":
            values["again"] = self.store.misunderstood(person) > 0
        form = {"step": person.step, "round": person.round, "part": part}
        form["token"] = self.store.keys.digest("form", person.public_id, *map(str, form.values()))
        return self.pages.step(self.store.plan(person.first_slot), step, form, status, wait=self.store.wait(person), **values)

    async def take(self, request: Request) -> Response:
        """A form of the flow. It counts if it is the one of the current step; any other changes nothing."""
        form = await fields(request)

        def work():
            person = self.store.find(request.cookies.get(self.cookie))
            return self.nobody() if person is None else self.taken(request, person, form)

        return await run_in_threadpool(work)

    def taken(self, request: Request, person: Row, form: dict[str, str]) -> Response:
        step, round, part = (form.get(name, "") for name in ("step", "round", "part"))
        if not self.store.keys.matches(form.get("token", ""), "form", person.public_id, step, round, part):
            return self.pages.message(403)
        if (step, round) != (str(person.step), str(person.round)) or person.status != "active":
            return self.redirect("/study")
        plan, at = self.store.plan(person.first_slot), self.store.step_of(person)
        feedback = part == "feedback"
        given, errors = (None, {}) if feedback else read_step(self.design, plan, at, form, self.pages.say)
        if errors:
            return self.page_of(request, person, 400, errors=errors, given=form)
        outcome = self.store.record(person, part, given, read_timing(form))
        return self.page_of(request, person, 409, errors={"early": True}) if outcome == "early" else self.redirect("/study")

    async def come_back(self, request: Request) -> Response:
        person, form = await self.person(request), await fields(request)
        if person is None:
            return self.nobody()
        if not self.store.keys.matches(form.get("token", ""), "continue", person.public_id):
            return self.pages.message(403)
        await run_in_threadpool(self.store.resume, person)
        return self.redirect("/study")

    async def receipt(self, request: Request) -> Response:
        person = await self.person(request)
        if person is None:
            return self.nobody()
        if person.receipt_hash is None or person.status == "withdrawn":
            return self.redirect("/study")
        code, base = self.store.receipt_of(person), f"{request.url.scheme}://{request.url.netloc}"
        address = f"{base}{self.pages.url('/return')}#{code}"  # what follows # is not sent, so no log has it
        return self.pages.show("receipt", place=True, receipt=code, address=address, rules=self.design.rules)

    async def ask_withdraw(self, request: Request) -> Response:
        person = await self.person(request)
        if person is None:
            return self.nobody()
        if person.status == "withdrawn":
            return self.redirect("/study")
        return self.withdraw_page(person)

    def withdraw_page(self, person: Row, status: int = 200, errors: dict[str, str] | None = None) -> Response:
        """Whoever is not in the middle of it must show the receipt: others may sit at this computer by now."""
        token, ask = self.store.keys.digest("withdraw", person.public_id), person.status != "active"
        once = self.design.rules.unique_people and person.external_hash is not None
        return self.pages.show("withdraw", status, token=token, ask=ask, once=once, errors=errors or {})

    async def withdraw(self, request: Request) -> Response:
        person, form = await self.person(request), await fields(request)
        if person is None:
            return self.nobody()
        if not self.store.keys.matches(form.get("token", ""), "withdraw", person.public_id):
            return self.pages.message(403)
        if person.status == "withdrawn":
            return self.redirect("/study")
        if person.status != "active":
            shown = await run_in_threadpool(self.store.find_by_receipt, form.get("receipt", ""))
            if shown is None or shown.id != person.id:
                return self.withdraw_page(person, 403, {"receipt": self.pages.say("withdraw.wrong")})
        await run_in_threadpool(self.store.withdraw, person)
        response = self.redirect("/study")
        response.delete_cookie(self.id_cookie, path=self.pages.prefix or "/")
        return response

    async def media(self, request: Request) -> Response:
        """A picture of the design; nothing else that lies in the folder."""
        name = request.path_params["name"]
        if name not in self.shown_files:
            raise HTTPException(404)
        lasting = {"cache-control": "private, max-age=31536000, immutable"}
        return FileResponse(self.store.folder / MEDIA / name, headers=lasting)

    # --- when something is wrong ---

    async def refused(self, request: Request, error: HTTPException) -> Response:
        response = self.pages.message(error.status_code)
        response.headers.update(error.headers or {})  # of 405: Allow
        return response

    async def failed(self, request: Request, error: Exception) -> Response:
        return self.pages.message(500)


@contextlib.contextmanager
def preview(folder: Path) -> Iterator[Path]:
    """A folder to try an unfinished design in; it is gone afterwards, with all that was answered."""
    with tempfile.TemporaryDirectory(prefix="bayescase-") as name:
        copy_design(folder, Path(name))
        freeze(Path(name), finished=False)
        yield Path(name)
