"""The researcher's pages: counts, the path of a person, pausing. Until the study is closed it is blind: nobody's answers."""

import ipaddress
import secrets
from datetime import UTC, datetime

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ...web.forms import fields
from ...web.guard import POLICY
from ...web.password import AdminPassword
from ..data.monitor import COLUMNS, path_of, people_of
from ..data.places import CLOSED, STATES
from ..data.store import SESSION, Store
from .pages import Pages

LIVE = {"content-security-policy": f"{POLICY}; connect-src 'self'"}  # of the page that asks for new counts
KNOWN_DAYS = 180  # a browser that was logged in


class AdminPages:
    """The routes below /admin."""

    def __init__(self, store: Store, pages: Pages):
        self.store, self.pages, self.password = store, pages, AdminPassword(store.folder)
        mark = store.design.hash[:8]
        self.cookie, self.known_cookie = f"admin_{mark}", f"known_{mark}"

    def routes(self) -> list[Route]:
        return [
            Route("/admin", self.monitor),
            Route("/admin/counts", self.counts),
            Route("/admin/person/{id}", self.person),
            Route("/admin/state", self.set_state, methods=["POST"]),
            Route("/admin/in", self.log_in, methods=["POST"]),
            Route("/admin/out", self.log_out, methods=["POST"]),
        ]

    def redirect(self) -> Response:
        return RedirectResponse(self.pages.url("/admin"), 303)

    def token(self, request: Request) -> str:
        """Of the forms of this session."""
        return self.store.keys.digest("admin form", request.cookies.get(self.cookie, ""))

    async def logged_in(self, request: Request) -> bool:
        return await run_in_threadpool(self.store.logged_in, request.cookies.get(self.cookie), self.password.stamp)

    async def ask(self) -> Response:
        if not self.password.exists:
            words = "No password is set: bayescase study serve sets one. In a terminal, bayescase study monitor shows the same."
            return self.pages.show("message", 403, title="The monitor is closed", words=words, ending=None, code=False)
        return self.pages.show("admin_login", error=None)

    def now(self) -> dict:
        at = datetime.fromtimestamp(self.store.clock() / 1000, UTC).strftime("%H:%M:%S")
        return {"phases": self.store.monitor(), "columns": COLUMNS, "state": self.store.state(), "time": at}

    async def monitor(self, request: Request) -> Response:
        if not await self.logged_in(request):
            return await self.ask()

        def work():
            values = self.now()
            with self.store.reading() as connection:
                everyone = [(phase, people_of(connection, self.store.design, phase)) for phase in ("live", "pilot")]
            return values | {"everyone": everyone, "blind": values["state"] != CLOSED, "head": self.store.journal.head}

        page = self.pages.show("admin", token=self.token(request), **await run_in_threadpool(work))
        page.headers.update(LIVE)
        return page

    async def counts(self, request: Request) -> Response:
        if not await self.logged_in(request):
            return Response(status_code=403)
        return self.pages.show("admin_counts", **await run_in_threadpool(self.now))

    async def person(self, request: Request) -> Response:
        if not await self.logged_in(request):
            return await self.ask()

        def work():
            with self.store.reading() as connection:
                blind = self.store.state() != CLOSED
                return path_of(connection, self.store.design, request.path_params["id"], blind)

        path = await run_in_threadpool(work)
        return self.pages.message(404, place=False) if path is None else self.pages.show("admin_person", path=path)

    async def set_state(self, request: Request) -> Response:
        form = await fields(request)
        if not await self.logged_in(request) or form.get("state") not in STATES:
            return self.pages.message(403, place=False)
        if not secrets.compare_digest(form.get("token", "").encode(), self.token(request).encode()):
            return self.pages.message(403, place=False)
        await run_in_threadpool(self.store.set_state, form["state"])
        return self.redirect()

    # --- the password ---

    def guesser(self, request: Request) -> tuple[str, bool]:
        """(who guesses, were they logged in before): a browser that has proved itself, else an address."""
        name, _, proof = request.cookies.get(self.known_cookie, "").partition(".")
        if name and self.store.keys.matches(proof, "known browser", name):
            return f"browser {name}", True
        host = request.client.host if request.client else ""
        try:
            address = ipaddress.ip_address(host)
            return str(ipaddress.ip_network((address, 64), strict=False) if address.version == 6 else address), False
        except ValueError:
            return host, False

    async def log_in(self, request: Request) -> Response:
        form = await fields(request)
        who, known = self.guesser(request)
        right = await run_in_threadpool(self.password.right, form.get("password", ""), who, known)
        if right is None:
            return self.pages.show("admin_login", 429, error="There were too many wrong passwords. Wait a minute.")
        if not right:
            return self.pages.show("admin_login", 403, error="This is not the password.")
        token, response = await run_in_threadpool(self.store.log_in, self.password.stamp), self.redirect()
        name = secrets.token_hex(8)
        proof = f"{name}.{self.store.keys.digest('known browser', name)}"
        for cookie, value, seconds in (
            (self.cookie, token, SESSION // 1000),
            (self.known_cookie, proof, KNOWN_DAYS * 86400),
        ):
            response.set_cookie(
                cookie, value, seconds, path=self.pages.url("/admin"), httponly=True, samesite="strict",
                secure=request.url.scheme == "https",
            )  # fmt: skip
        return response

    async def log_out(self, request: Request) -> Response:
        await run_in_threadpool(self.store.log_out, request.cookies.get(self.cookie), self.password.stamp)
        response = self.redirect()
        response.delete_cookie(self.cookie, path=self.pages.url("/admin"))
        return response
