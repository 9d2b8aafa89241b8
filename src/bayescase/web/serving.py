"""Listening at an address, and serving an application until Ctrl-C, without anybody's half-open connections in the way."""

import asyncio
import contextlib
import errno
import multiprocessing
import signal
import socket
import threading
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import Advice, ParameterError, Setting
from .password import AdminPassword

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class TimedProtocol(H11Protocol):
    """A connection must send the head of a request, and take the answer, within a time; uvicorn itself waits for ever."""

    HEAD_SECONDS = 10.0
    ANSWER_SECONDS = 30.0
    _head: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel()  # the head is here; the body has a time of its own (guard.py)
        else:
            self._await_head()

    def on_response_complete(self) -> None:
        self._cancel()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.ANSWER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stuck is not None:
            self._stuck.cancel()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():  # the answer was not taken
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._head is None:
            self._head = self.loop.call_later(self.HEAD_SECONDS, self.transport.abort)

    def _cancel(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None


def listen(host: str, port: int) -> socket.socket:
    """Take the address."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ParameterError(
                "Port {value} is in use.", Advice("choose another with {}", Setting("port")), parameter="port", value=port
            ) from error
        raise


def server_of(app: ASGIApp) -> uvicorn.Server:
    """No log of who asked for what."""
    config = uvicorn.Config(
        app, http=TimedProtocol, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=10
    )
    return uvicorn.Server(config)


def serve(app: ASGIApp, place: socket.socket) -> None:
    """Run until Ctrl-C."""
    more_files()
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has ended cleanly, and then tells what ended it
        server_of(app).run(sockets=[place])


def serve_in_processes(factory: Callable[[], ASGIApp], place: socket.socket, workers: int) -> None:
    """The same in several processes, which share the socket; each makes its own application. One that dies is replaced."""
    spawn = multiprocessing.get_context("spawn")
    running: list[Any] = []
    ending = threading.Event()

    def end(*_: Any) -> None:
        ending.set()

    handlers = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not ending.is_set():
            running = [process for process in running if process.is_alive()]
            while len(running) < workers:
                running.append(spawn.Process(target=serve_made, args=(factory, place)))
                running[-1].start()
            ending.wait(0.5)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.join()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def serve_made(factory: Callable[[], ASGIApp], place: socket.socket) -> None:
    serve(factory(), place)


def more_files() -> None:
    """As many open connections as the machine allows, not as many as a shell does."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else max(soft, 65536), hard))


def check_address(host: str, admin: AdminPassword) -> None:
    if host not in LOOPBACK and not admin.exists:
        raise ParameterError(
            "{value} can be reached from other machines, so the monitor needs a password.",
            Advice("give one with {}, once", Setting("admin_password")),
            Advice("set BAYESCASE_ADMIN_PASSWORD in the environment"),
            parameter="host",
            value=host,
        )


class UnderPath:
    """Serve an application below a path, whether or not a proxy takes the path away before it passes a request on."""

    def __init__(self, app: ASGIApp, path: str):
        self.app, self.path = app, path

    async def __call__(self, scope: Any, receive: Callable, send: Callable) -> None:
        if self.path and scope["type"] == "http" and (scope["path"] + "/").startswith(self.path + "/"):
            rest = scope["path"][len(self.path) :] or "/"
            scope = scope | {"path": rest, "raw_path": rest.encode()}
        await self.app(scope, receive, send)


def clean_path(path: str) -> str:
    """ "/study", "study/" and "/study/" are the same; "" is none."""
    parts = [part for part in path.split("/") if part]
    if any(not part.replace("-", "").replace("_", "").replace(".", "").isalnum() or part.startswith(".") for part in parts):
        raise ParameterError(
            "{parameter} must be letters, digits, - and _ between slashes, not {value!r}.", parameter="path", value=path
        )
    return "".join(f"/{part}" for part in parts)
