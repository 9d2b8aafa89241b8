"""What a request must pass before a page sees it, and the headers that every answer gets."""

import asyncio
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

LIMIT = 64 * 1024  # bytes of a form; the longest honest one has a few thousand
BODY_SECONDS = 20.0  # for a form to arrive
SAFE = ("GET", "HEAD", "OPTIONS")
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # not no-referrer: browsers would then send `Origin: null` with our own forms
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def same_origin(headers: dict[bytes, bytes]) -> bool:
    """Whether a form comes from our own pages. Fail closed: a request that tells nothing about its origin is not ours.

    `Sec-Fetch-Site` decides where the browser sends it (https and localhost), else `Origin`, else, for browsers older than
    2020, `Referer`. A proxy may speak another scheme than we do, so hosts are compared, as the browser saw them.
    """
    site = headers.get(b"sec-fetch-site")
    if site is not None:
        return site in (b"same-origin", b"none")  # none: the person's own doing, such as sending a form again
    origin = headers.get(b"origin")
    if origin in (None, b"null"):
        origin = headers.get(b"referer")
    host = headers.get(b"host")
    if not origin or not host:
        return False
    try:
        return urlsplit(origin.decode("latin-1")).netloc == host.decode("latin-1")
    except ValueError:  # not an address: http://[
        return False


class Guard:
    """Outermost: refuses forms of other sites and bodies too large, and adds the headers of security to every answer."""

    def __init__(self, app: ASGIApp, refuse):
        self.app, self.refuse = app, refuse  # refuse(request's scope, status) → a page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = HEADERS | {"cache-control": "no-store"}
                if scope["scheme"] == "https":
                    more["strict-transport-security"] = "max-age=31536000"
                added = [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in given]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        if scope["method"] in SAFE:
            await self.app(scope, receive, guarded)
            return
        headers = dict(scope["headers"])
        if not same_origin(headers):
            await self.refuse(scope, 403)(scope, receive, guarded)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                wrong, body = await read_body(headers, receive)
        except TimeoutError:
            wrong, body = 408, b""
        if wrong:
            await self.refuse(scope, wrong)(scope, receive, guarded)
            return
        told = False

        async def replay() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, guarded)


async def read_body(headers: dict[bytes, bytes], receive: Receive) -> tuple[int, bytes]:
    """(0, the whole body); (413, nothing) once it is larger than a form can be, (400, nothing) if it was cut off on its way."""
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > LIMIT:
        return 413, b""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return 400, b""
        body += message.get("body", b"")
        if len(body) > LIMIT:
            return 413, b""
        if not message.get("more_body"):
            return 0, body
