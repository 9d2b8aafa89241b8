"""`study serve`, `simulate` and `monitor` on the command line."""

import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.data.database import opened, reading
from bayescase.study.data.export import collect
from bayescase.study.design.design_file import write_design
from bayescase.study.simulate import Page

from ..designs import small_design


def test_commands(frozen, tmp_path, monkeypatch):
    monkeypatch.delenv("BAYESCASE_ADMIN_PASSWORD", raising=False)
    folder, run = frozen(small_design()), CliRunner().invoke
    shown = run(main, ["study", "monitor", str(folder)])
    assert shown.exit_code == 1
    assert "no data" in shown.output
    shown = run(main, ["study", "simulate", str(folder), "--n", "2", "--json"])
    assert shown.exit_code == 0, shown.output
    assert '"complete": 2' in shown.output
    with opened(folder) as engine, reading(engine) as connection:
        passed = [row["checks_failed"] == 0 for row in collect(connection, small_design()).people]
    assert passed == [True, True]  # options reach the right parameters: 98 % attention, whatever the seed
    shown = run(main, ["study", "monitor", str(folder)])
    assert "pilot: 32 answers" in shown.output
    assert '"answers": 32' in run(main, ["study", "monitor", str(folder), "--json"]).output
    shown = run(main, ["study", "serve", str(folder), "--host", "0.0.0.0"])
    assert shown.exit_code == 1
    assert "needs a password" in shown.output
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = run(main, ["study", "serve", str(folder), "--port", str(taken.getsockname()[1])])
    assert shown.exit_code == 1
    assert "is in use; choose another with --port" in shown.output
    assert "Listening" not in shown.output
    write_design(small_design(), tmp_path / "draft")
    shown = run(main, ["study", "serve", str(tmp_path / "draft"), "--live"])
    assert shown.exit_code == 1
    assert "study freeze" in shown.output
    design = small_design()
    half = frozen(replace(design, texts=replace(design.texts, contact="[FILL IN a name]")), "half")
    shown = run(main, ["study", "serve", str(half), "--live"])
    assert shown.exit_code == 1
    assert "filled in in the texts contact" in shown.output
    assert "not frozen" in run(main, ["study", "simulate", str(tmp_path / "draft")]).output
    assert "There is no design.json" in run(main, ["study", "serve", str(tmp_path)]).output


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def serving(folder, port, *options):
    command = [sys.executable, "-m", "bayescase", "study", "serve", str(folder), "--port", str(port), *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        try:
            httpx.get(f"http://127.0.0.1:{port}/static/study.css", timeout=5)
            return server
        except httpx.TransportError:
            assert server.poll() is None, server.communicate()
            time.sleep(0.05)
    raise AssertionError("The server did not start.")


def test_the_server_ends_cleanly_and_a_preview_keeps_nothing(tmp_path):
    write_design(small_design(), tmp_path)
    before, port = sorted(tmp_path.iterdir()), free_port()
    server = serving(tmp_path, port)
    with httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"origin": f"http://127.0.0.1:{port}"}, follow_redirects=True
    ) as client:
        page = Page(client.get("/").text)
        assert "About you" in client.post("/consent", data=page.hidden | {"consent": "yes", "answer": "yes"}).text
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=30)
    assert server.returncode == 0
    assert out == ""
    assert "preview" in err
    assert err.endswith("Stopped.\n")
    assert "127.0.0.1 -" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_missing_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    shown = CliRunner().invoke(main, ["study", "serve", str(tmp_path)])
    assert shown.exit_code == 1
    assert "pip install 'bayescase[study]'" in shown.output
