"""Whoever opens a connection and says nothing, too little or too slowly, is not in the way of others."""

import contextlib
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from starlette.responses import PlainTextResponse

from bayescase.errors import ParameterError
from bayescase.web import guard, serving
from bayescase.web.guard import Guard
from bayescase.web.serving import TimedProtocol, UnderPath, clean_path, listen, server_of

LARGE = 64 * 1024 * 1024


async def app(scope, receive, send):
    body = "x" * LARGE if scope["path"] == "/large" else scope["path"]
    await PlainTextResponse(body)(scope, receive, send)


@contextlib.contextmanager
def serving_app(made):
    place = listen("127.0.0.1", 0)
    server = server_of(made)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield place.getsockname()
    finally:
        server.should_exit = True
        thread.join(30)
        place.close()


@pytest.fixture
def served(monkeypatch):
    """Time-outs of a fifth of a second."""
    for what, name in ((TimedProtocol, "HEAD_SECONDS"), (TimedProtocol, "ANSWER_SECONDS"), (guard, "BODY_SECONDS")):
        monkeypatch.setattr(what, name, 0.2)
    with serving_app(Guard(app, lambda scope, status: PlainTextResponse(str(status), status))) as address:
        yield address


def ended(connection):
    """What came until the server closed the connection; a time-out here means that it did not."""
    connection.settimeout(20)
    found = b""
    try:
        while piece := connection.recv(1 << 20):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("head", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX: "])
def test_half_open_connections_are_closed(served, head):
    waiting = [socket.create_connection(served) for _ in range(30)]
    for connection in waiting:
        connection.sendall(head)
    assert httpx.get(f"http://127.0.0.1:{served[1]}/here").text == "/here"  # meanwhile
    assert [ended(connection) for connection in waiting] == [b""] * len(waiting)
    for connection in waiting:
        connection.close()


FEW_FILES = """
import resource, sys
from starlette.responses import PlainTextResponse
from bayescase.web import serving

resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
serving.TimedProtocol.HEAD_SECONDS = 0.5
place = serving.listen("127.0.0.1", 0)
print(place.getsockname()[1], flush=True)
serving.serve(PlainTextResponse("here"), place)
"""


def test_more_half_open_connections_than_the_server_may_have_do_not_block_others():
    pytest.importorskip("resource")
    server = subprocess.Popen([sys.executable, "-c", FEW_FILES], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = int(server.stdout.readline())
        with contextlib.ExitStack() as waiting:
            for _ in range(150):
                waiting.enter_context(socket.create_connection(("127.0.0.1", port)))
            assert httpx.get(f"http://127.0.0.1:{port}/", timeout=60).text == "here"
    finally:
        server.terminate()
        server.communicate(timeout=30)


def test_a_form_that_does_not_come_is_given_up(served):
    with socket.create_connection(served) as connection:
        connection.sendall(b"POST /x HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\nContent-Length: 5\r\n\r\nab")
        assert ended(connection).startswith(b"HTTP/1.1 408")


def test_an_answer_that_nobody_takes_is_given_up(served):
    with socket.create_connection(served) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        time.sleep(1.5)
        assert len(ended(connection)) < LARGE


def test_a_connection_is_kept_for_the_next_request(served):
    with httpx.Client(base_url=f"http://127.0.0.1:{served[1]}") as client:
        for n in range(5):
            assert client.get(f"/{n}").text == f"/{n}"


def test_below_a_path_with_and_without_a_proxy_that_takes_it_away():
    with serving_app(UnderPath(app, "/taste")) as address:
        base = f"http://127.0.0.1:{address[1]}"
        shown = [httpx.get(base + path).text for path in ("/taste", "/taste/", "/taste/study", "/study", "/tasteful")]
    assert shown == ["/", "/", "/study", "/study", "/tasteful"]


@pytest.mark.parametrize(("path", "clean"), [("", ""), ("/", ""), ("a", "/a"), ("/a/b-c/", "/a/b-c"), ("//a", "/a")])
def test_a_path_can_be_written_in_several_ways(path, clean):
    assert clean_path(path) == clean


@pytest.mark.parametrize("path", ["/a b", "/../x", "/a?b", "/<script>"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ParameterError, match="path must be letters"):
        clean_path(path)


def test_a_process_may_have_as_many_connections_as_the_machine_allows():
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(before[0], 256), before[1]))
        serving.more_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= before[0]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
