"""The pages of a study over HTTP. GET changes nothing; a form is one call of the store, then a redirect to the current page."""

import contextlib
import secrets
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ...web.forms import clean, fields
from ...web.guard import Guard
from ...web.password import AdminPassword
from ...web.serving import redirect
from ...web.templating import STATIC
from ..data.database import milliseconds
from ..data.store import SESSION, Store, open_store
from ..design.design_file import freeze, read_design, write_design
from .forms import read_step, read_timing
from .pages import HERE, Pages

DAYS = 30
IDS = {"PROLIFIC_PID": "person", "STUDY_ID": "study", "SESSION_ID": "session"}  # of the recruiting platform
LONGEST_ID = 200


def create_app(
    folder: Path,
    database: str | None = None,
    *,
    phase: str = "live",
    simulated: bool = False,
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
    clock : callable
        Milliseconds since 1970; another one only for simulations and tests.
    """
    return Site(open_store(folder, database, phase=phase, simulated=simulated, clock=clock))


class Site:
    """The routes, as an application."""

    def __init__(self, store: Store):
        self.store, self.pages, self.admin = store, Pages(store.design), AdminPassword(store.folder)
        mark = store.design.hash[:8]  # cookies do not know ports, so two studies on one host need two names
        self.cookie, self.admin_cookie = f"study_{mark}", f"admin_{mark}"
        routes = [
            Route("/", self.information),
            Route("/consent", self.consent, methods=["POST"]),
            Route("/study", self.current),
            Route("/study", self.take, methods=["POST"]),
            Route("/continue", self.come_back, methods=["POST"]),
            Route("/resume/{token}", self.follow_link),
            Route("/link", self.link),
            Route("/withdraw", self.ask_withdraw),
            Route("/withdraw", self.withdraw, methods=["POST"]),
            Route("/admin", self.monitor),
            Route("/admin/in", self.log_in, methods=["POST"]),
            Route("/admin/out", self.log_out, methods=["POST"]),
            Mount("/static/web", StaticFiles(directory=STATIC)),
            Mount("/static", StaticFiles(directory=HERE / "static")),
        ]
        handlers: dict[Any, Any] = {HTTPException: self.refused, Exception: self.failed}
        starlette = Starlette(routes=routes, exception_handlers=handlers, lifespan=self.lifespan)
        self.guard = Guard(starlette, lambda scope, status: self.pages.message(status))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.guard(scope, receive, send)

    @contextlib.asynccontextmanager
    async def lifespan(self, _):
        yield
        self.store.close()

    # --- before there is a place ---

    async def information(self, request: Request) -> Response:
        """Information and consent. Link previews may come here; nothing is taken."""
        ids = {name: request.query_params.get(name, "") for name in IDS}
        if any(len(value) > LONGEST_ID for value in ids.values()):
            return self.pages.message(
                400, place=False, words="An id in the address is too long. Please use the link that you got."
            )
        person = await self.person(request)
        if person is not None and self.is_same(person, ids["PROLIFIC_PID"]) and person.status in ("active", "timed out"):
            return redirect("/study")
        visit = secrets.token_hex(16)
        ids |= {"visit": visit, "token": self.store.keys.digest("consent", visit)}
        return self.pages.show("information", form=ids, errors={}, before=person is not None)

    def is_same(self, person, external: str) -> bool:
        known = self.store.external_hash(clean(external))
        return known is None or known == person.external_hash

    async def consent(self, request: Request) -> Response:
        form = await fields(request)
        ids = {name: form.get(name, "") for name in IDS}
        visit, token = form.get("visit", ""), form.get("token", "")
        if not self.store.keys.matches(token, "consent", visit) or any(len(value) > LONGEST_ID for value in ids.values()):
            return self.pages.message(403, place=False)
        person = await self.person(request)
        if person is not None and self.is_same(person, ids["PROLIFIC_PID"]) and person.status in ("active", "timed out"):
            return redirect("/study")
        if form.get("answer") == "no":
            await run_in_threadpool(self.store.decline)
            ending = self.design.rules.no_consent
            return self.pages.show("message", title="You do not take part", words="Nothing about you was kept.", ending=ending)
        if form.get("answer") != "yes" or form.get("consent") != "yes":
            errors = {"consent": "To take part, tick the box; or choose not to take part."}
            return self.pages.show("information", 400, form=ids | {"visit": visit, "token": token}, errors=errors, before=False)
        places = {IDS[name]: ids[name] for name in ("STUDY_ID", "SESSION_ID") if ids[name]}
        token = await run_in_threadpool(lambda: self.store.begin(visit, ids["PROLIFIC_PID"] or None, **places))
        return self.with_cookie(request, redirect("/study"), token)

    def with_cookie(self, request, response: Response, token: str) -> Response:
        secure = request.url.scheme == "https"
        response.set_cookie(self.cookie, token, DAYS * 86400, httponly=True, samesite="lax", secure=secure)
        return response

    async def follow_link(self, request: Request) -> Response:
        """The personal link: the place in another browser."""
        token = request.path_params["token"]
        if await run_in_threadpool(self.store.find, token) is None:
            return self.pages.message(404, place=False, words="This personal link is not known here. Please copy all of it.")
        return self.with_cookie(request, redirect("/study"), token)

    # --- with a place ---

    @property
    def design(self):
        return self.store.design

    async def person(self, request: Request):
        return await run_in_threadpool(self.store.find, request.cookies.get(self.cookie))

    def nobody(self) -> Response:
        words = (
            "This browser has no place in the study. If you had begun in another one, use your personal link; else begin here."
        )
        return self.pages.show("message", 403, title="Please begin first", words=words, ending=None, place=False)

    async def current(self, request: Request) -> Response:
        """The page that the person is at, whatever they did before: reload, back, another tab, another day."""

        def work():
            person = self.store.find(request.cookies.get(self.cookie))
            return self.nobody() if person is None else self.page_of(person)

        return await run_in_threadpool(work)

    def page_of(self, person, status: int = 200, **values) -> Response:
        standing, rules = self.store.standing(person), self.design.rules
        if standing == "complete":
            return self.pages.show("end", place=True, ending=rules.complete)
        if standing == "withdrawn":
            words = "You have withdrawn. Everything that you had answered was deleted."
            return self.pages.show("message", title="You have withdrawn", words=words, ending=None)
        if standing == "over":
            words = "You were away for longer than this study allows, so it ended. What you had answered is kept."
            return self.pages.show("message", title="The time is over", words=words, ending=rules.timed_out, place=True)
        if standing == "away":
            token = self.store.keys.digest("continue", person.public_id)
            return self.pages.show("away", place=True, restart=rules.resume == "restart block", token=token)
        step, part = self.store.step_of(person), ""
        if step.kind == "practice":
            values["feedback"] = self.store.response(person, step.kind, step.ref)
            part = "" if values["feedback"] is None else "feedback"
        form = {"step": person.step, "round": person.round, "part": part}
        form["token"] = self.store.keys.digest("form", person.public_id, *map(str, form.values()))
        return self.pages.step(self.store.plan(person.first_slot), step, form, status, wait=self.store.wait(person), **values)

    async def take(self, request: Request) -> Response:
        """A form of the flow. It counts if it is the one of the current step; any other changes nothing."""
        form = await fields(request)

        def work():
            person = self.store.find(request.cookies.get(self.cookie))
            return self.nobody() if person is None else self.taken(person, form)

        return await run_in_threadpool(work)

    def taken(self, person, form: dict[str, str]) -> Response:
        step, round, part = (form.get(name, "") for name in ("step", "round", "part"))
        if not self.store.keys.matches(form.get("token", ""), "form", person.public_id, step, round, part):
            return self.pages.message(403)
        if (step, round) != (str(person.step), str(person.round)) or person.status != "active":
            return redirect("/study")
        plan, at = self.store.plan(person.first_slot), self.store.step_of(person)
        given, errors = (None, {}) if part == "feedback" else read_step(self.design, plan, at, form)
        if errors:
            return self.page_of(person, 400, errors=errors, given=form)
        outcome = self.store.record(person, part, given, read_timing(form))
        return self.page_of(person, 409, errors={"early": True}) if outcome == "early" else redirect("/study")

    async def come_back(self, request: Request) -> Response:
        person, form = await self.person(request), await fields(request)
        if person is None:
            return self.nobody()
        if not self.store.keys.matches(form.get("token", ""), "continue", person.public_id):
            return self.pages.message(403)
        await run_in_threadpool(self.store.resume, person)
        return redirect("/study")

    async def link(self, request: Request) -> Response:
        person = await self.person(request)
        if person is None:
            return self.nobody()
        address = f"{request.base_url}resume/{self.store.token_of(person.public_id)}"
        return self.pages.show("link", place=True, address=address, rules=self.design.rules)

    async def ask_withdraw(self, request: Request) -> Response:
        person = await self.person(request)
        if person is None:
            return self.nobody()
        if person.status == "withdrawn":
            return redirect("/study")
        return self.pages.show("withdraw", token=self.store.keys.digest("withdraw", person.public_id), errors={})

    async def withdraw(self, request: Request) -> Response:
        person, form = await self.person(request), await fields(request)
        if person is None:
            return self.nobody()
        if not self.store.keys.matches(form.get("token", ""), "withdraw", person.public_id):
            return self.pages.message(403)
        await run_in_threadpool(self.store.withdraw, person)
        return redirect("/study")

    # --- the researcher ---

    async def monitor(self, request: Request) -> Response:
        if not self.admin.exists:
            words = "No password is set. Start the server with --admin-password, or use: bayescase study monitor FOLDER"
            return self.pages.show("message", 403, title="The monitor is closed", words=words, ending=None)
        if not await run_in_threadpool(self.store.logged_in, request.cookies.get(self.admin_cookie)):
            return self.pages.show("admin_login", error=None)
        return self.pages.show("admin", phases=await run_in_threadpool(self.store.monitor))

    async def log_in(self, request: Request) -> Response:
        form = await fields(request)
        right = await run_in_threadpool(self.admin.right, form.get("password", ""))
        if right is None:
            return self.pages.show("admin_login", 429, error="There were too many wrong passwords. Wait a minute.")
        if not right:
            return self.pages.show("admin_login", 403, error="This is not the password.")
        token, response = await run_in_threadpool(self.store.log_in), redirect("/admin")
        secure = request.url.scheme == "https"
        response.set_cookie(self.admin_cookie, token, SESSION // 1000, "/", httponly=True, samesite="strict", secure=secure)
        return response

    async def log_out(self, request: Request) -> Response:
        await run_in_threadpool(self.store.log_out, request.cookies.get(self.admin_cookie))
        response = redirect("/admin")
        response.delete_cookie(self.admin_cookie)
        return response

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
        write_design(read_design(folder), Path(name))
        freeze(Path(name))
        yield Path(name)
