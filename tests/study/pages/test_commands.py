"""`study serve`, `simulate` and `monitor` on the command line."""

import json
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.data import journal
from bayescase.study.data.database import opened, reading
from bayescase.study.data.export import collect
from bayescase.study.data.places import Arrival
from bayescase.study.data.store import open_store
from bayescase.study.data.verify import verify
from bayescase.study.design.design_file import write_design
from bayescase.study.planted import Truth
from bayescase.study.simulate import Page, simulate

from ..databases import postgresql
from ..designs import small_design


def run(*arguments):
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


def refused(*arguments):
    shown = run(*arguments)
    assert shown.exit_code == 1, shown.output
    assert "Traceback" not in shown.output
    return shown.output


def test_commands(frozen, tmp_path, monkeypatch):
    monkeypatch.delenv("BAYESCASE_ADMIN_PASSWORD", raising=False)
    folder = frozen(small_design())
    assert "no data" in refused("monitor", folder)
    assert "needs a password" in refused("serve", folder, "--host", "0.0.0.0")
    assert "--workers need" in refused("serve", folder, "--workers", 2)
    assert "--path must be" in refused("serve", folder, "--path", "/a b")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("serve", folder, "--port", taken.getsockname()[1])
    assert "is in use; choose another with --port" in said
    assert "Listening" not in said
    write_design(small_design(), tmp_path / "draft")
    assert "study freeze" in refused("serve", tmp_path / "draft", "--live")
    assert "There is no design.json" in refused("serve", tmp_path)


def test_rehearsals_do_not_mix_with_each_other_nor_with_data(frozen):
    folder = frozen(small_design())
    for number in (1, 2):
        shown = run("simulate", folder, "--n", 2, "--json", "--seed", number)
        assert shown.exit_code == 0, shown.output
        done = json.loads(shown.stdout)
        assert (done["complete"], done["folder"]) == (2, str(folder / "rehearsals" / str(number)))
        assert "pilot: 32 answers" in run("monitor", done["folder"]).output
        assert '"answers": 32' in run("monitor", done["folder"], "--json").output
        with opened(Path(done["folder"])) as engine, reading(engine) as connection:
            passed = [row["checks_failed"] == 0 for row in collect(connection, small_design()).people]
        assert passed == [True, True]  # options reach the right parameters: 98 % attention, whatever the seed
    assert not (folder / "study.db").exists()
    assert "none yet; 2 rehearsals of this design" in run("doctor", folder).output
    assert "not empty" in refused("simulate", folder, "--n", 1, "-o", folder / "rehearsals" / "1")
    assert "no condition 'x'" in refused("simulate", folder, "--right", "x=.5")
    assert "must be CONDITION=SHARE" in run("simulate", folder, "--right", "bcm").output
    assert "must be above 0 and at most 1" in run("simulate", folder, "--right", "bcm=2").output
    assert "must be above 0." in run("simulate", folder, "--seconds", "bcm=0").output


def test_a_rehearsal_needs_no_frozen_design(tmp_path):
    write_design(small_design(title="[FILL IN] later"), tmp_path)
    assert run("simulate", tmp_path, "--n", 1).exit_code == 0
    assert not (tmp_path / "frozen.json").exists()


def test_people_are_paused_invited_erased_and_forgotten_from_the_command_line(frozen, tmp_path):
    design = small_design()
    rules = replace(design.rules, admission=replace(design.rules.admission, who="invited"), keep_days=1)
    folder = frozen(replace(design, rules=rules))
    assert run("state", folder, "paused").output == "The study is paused.\n"
    run("state", folder, "open")
    (tmp_path / "ids.csv").write_text("name,id\nx,ann1\ny,bob1\n")
    assert "say with --column" in refused("invite", folder, "--ids", tmp_path / "ids.csv")
    assert "2 ids are new" in run("invite", folder, "--ids", tmp_path / "ids.csv", "--column", "id").output
    assert "either --n or --ids" in refused("invite", folder)
    codes = run("invite", folder, "--n", 3).output.split()
    assert len(set(codes)) == 3
    store = open_store(folder)
    ann, bob = (store.find(store.begin(id, Arrival(id))) for id in ("ann1", "bob1"))
    old = store.receipt_of(ann)
    store.close()
    new = run("receipt", folder, "--id", "ann1").output.strip()
    assert new != old
    assert "Nobody with the id carl" in refused("receipt", folder, "--id", "carl")
    assert "nothing was deleted" in refused("erase", folder, "--receipt", old)
    assert ann.public_id in run("erase", folder, "--receipt", new).output
    shown = run("reconcile", folder, tmp_path / "ids.csv", "--column", "id")
    assert shown.stdout == "ann1\twithdrawn\t\nbob1\tactive\t\n"
    run("reconcile", folder, tmp_path / "ids.csv", "--column", "id", "-o", tmp_path / "out.csv")
    assert '"bob1","active","true",""' in (tmp_path / "out.csv").read_text()
    assert "0 people are not known any more" in run("forget", folder).output
    assert "people are not known any more" in run("forget", folder, "--all").output
    store = open_store(folder)
    assert store.find_by_receipt(store.receipt_of(bob)) is None
    store.close()
    (head,) = run("head", folder).output.splitlines()[-1:]
    assert run("verify", folder, "--head", head).exit_code == 0
    assert run("verify", folder, "--head", head[:-1] + ("0" if head[-1] != "0" else "1")).exit_code == 1


def test_a_study_without_data_is_left_alone(frozen):
    folder = frozen(small_design())
    before = sorted(path.name for path in folder.iterdir())
    for command in (("receipt", "--id", "ann1"), ("erase", "--receipt", "x"), ("forget", "--all")):
        assert "There are no data in" in refused(command[0], folder, *command[1:])
    assert sorted(path.name for path in folder.iterdir()) == before


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


def test_several_processes_share_a_database(frozen, tmp_path):
    """They are started by one command, share the address, and each has its own file of the journal."""
    pytest.importorskip("psycopg", reason="pip install 'bayescase[postgres]'")
    design = small_design()
    folder, port = frozen(replace(design, rules=replace(design.rules, break_seconds=0))), free_port()
    with postgresql() as new:
        url = new()
        server = serving(folder, port, "--live", "--workers", "2", "--database", url)
        try:
            done = simulate(folder, 12, truth=Truth(seed=1), url=f"http://127.0.0.1:{port}", at_once=12)
            assert (done.complete, done.errors) == (12, ())
        finally:
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=60)
        assert server.returncode == 0, err
        assert 1 <= err.count(".jsonl:") == len(journal.heads(folder)) <= 2
        assert verify(folder, url) == []
        look = run("monitor", folder, "--database", url).output
        assert "live: 192 answers" in look
