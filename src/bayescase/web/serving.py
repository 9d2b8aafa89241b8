"""Listening at an address, and serving an application until Ctrl-C."""

import contextlib
import errno
import socket

from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp

from .password import AdminPassword

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def redirect(path: str) -> Response:
    return RedirectResponse(path, 303)


def listen(host: str, port: int) -> socket.socket:
    """Take the address; OSError if it is taken."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OSError(error.errno, f"Port {port} is in use; choose another with --port") from error
        raise


def serve(app: ASGIApp, place: socket.socket) -> None:
    """Run until Ctrl-C. No log of who asked for what."""
    import uvicorn

    config = uvicorn.Config(app, access_log=False, log_level="warning", server_header=False, timeout_graceful_shutdown=10)
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has ended cleanly, and then tells what ended it
        uvicorn.Server(config).run(sockets=[place])


def check_address(host: str, admin: AdminPassword) -> None:
    if host not in LOOPBACK and not admin.exists:
        raise ValueError(
            f"{host} can be reached from other machines, so the monitor needs a password: give --admin-password once, or set "
            "BAYESCASE_ADMIN_PASSWORD."
        )
