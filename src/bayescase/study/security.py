"""Keys and tokens, and what a request must pass before a page sees it."""

import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY, ADMIN = "secret.key", "admin.hash"
LIMIT = 64 * 1024  # bytes of a form; the longest honest one has a few thousand
SAFE = ("GET", "HEAD", "OPTIONS")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
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


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Keys:
    """Keyed hashes, one family per purpose. The key never leaves the study's folder."""

    def __init__(self, key: bytes):
        self._key = key

    def digest(self, purpose: str, *parts: str | int) -> str:
        return hmac.new(self._key, json.dumps([purpose, *parts]).encode(), "sha256").hexdigest()

    def matches(self, given: str, purpose: str, *parts: str | int) -> bool:
        return hmac.compare_digest(given.encode(), self.digest(purpose, *parts).encode())


def read_keys(folder: Path) -> Keys:
    """The key of a folder; made, for its owner's eyes only, if there is none."""
    path = Path(folder) / KEY
    if not path.exists():
        fresh = Path(folder) / f".{KEY}.{secrets.token_hex(4)}"
        write_private(fresh, secrets.token_hex(32) + "\n")
        try:
            os.link(fresh, path)  # whole, and only if no other process was faster
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    key = path.read_text("ascii").strip()
    if len(key) != 64:
        raise ValueError(f"{path} is damaged: restore it from a copy; without it, people are not known again.")
    return Keys(bytes.fromhex(key))


def write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


# --- every request --------------------------------------------------------------------------------------------------------


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
    return bool(origin and host) and urlsplit((origin or b"").decode("latin-1")).netloc == (host or b"").decode("latin-1")


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
                more = dict(HEADERS)
                if b"cache-control" not in given:
                    more["cache-control"] = "no-store"
                if scope["scheme"] == "https":
                    more["strict-transport-security"] = "max-age=31536000"
                added = [(name.encode(), value.encode()) for name, value in more.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        if scope["method"] in SAFE:
            await self.app(scope, receive, guarded)
            return
        headers = dict(scope["headers"])
        if not same_origin(headers):
            await self.refuse(scope, 403)(scope, receive, guarded)
            return
        wrong, body = await read_body(headers, receive)
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


# --- the researcher's password --------------------------------------------------------------------------------------------


class Admin:
    """One password, kept as its argon2id hash. Guessing is slowed for everyone alike, since no addresses are kept."""

    TRIES, WINDOW = 5, 60.0  # failures in so many seconds

    def __init__(self, folder: Path):
        self.path = Path(folder) / ADMIN
        self._failures: list[float] = []
        self._lock = threading.Lock()

    @property
    def exists(self) -> bool:
        return self.path.exists()

    def set(self, password: str) -> None:
        from argon2 import PasswordHasher

        if len(password) < 8:
            raise ValueError("The admin password needs 8 or more characters.")
        write_private(self.path, PasswordHasher().hash(password) + "\n")

    def right(self, password: str) -> bool | None:
        """Whether it is the password; None if there were too many wrong ones lately."""
        from argon2 import PasswordHasher
        from argon2.exceptions import Argon2Error, InvalidHashError

        with self._lock:  # one at a time: a guess costs 64 MiB of memory
            self._failures = [at for at in self._failures if at > time.monotonic() - self.WINDOW]
            if len(self._failures) >= self.TRIES:
                return None
            try:
                if self.exists and PasswordHasher().verify(self.path.read_text("ascii").strip(), password):
                    return True
            except (Argon2Error, InvalidHashError):
                pass
            self._failures.append(time.monotonic())
            return False
