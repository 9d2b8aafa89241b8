"""Many people at once, and a server that is killed again and again: nothing is lost, nothing is stored twice."""

import asyncio
import random
import socket
import subprocess
import sys
import time
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

import httpx
from sqlalchemy import func, select

from bayescase.study.data.database import connect
from bayescase.study.data.journal import compare, read_journal
from bayescase.study.data.store import open_store
from bayescase.study.data.tables import answers, participants
from bayescase.study.planted import SimulatedMind, Truth, World
from bayescase.study.simulate import Key, Person, simulate

from .designs import small_design

TRUTH = Truth({"bcm": 0.86, "lda": 0.71}, seed=3)


def check(folder, database, people):
    """Everybody is complete, with every answer once, in both copies."""
    engine = connect(folder, database)
    with engine.connect() as connection:
        assert compare(connection, folder) == []
        counted = select(func.count()).select_from(answers).group_by(answers.c.participant_id)
        assert connection.execute(counted).scalars().all() == [16] * people
        kept = connection.execute(select(participants.c.slot, participants.c.status).order_by(participants.c.slot)).all()
    engine.dispose()
    assert kept == [(slot, "complete") for slot in range(people)]


@pytest.mark.parametrize("n", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_many_people_at_once(place, n):
    folder, database = place(small_design())
    done = simulate(folder, n, truth=TRUTH, at_once=n, database=database)
    print(f"{n} people at once, {'PostgreSQL' if database else 'SQLite'}: {done.answers} answers, {done.seconds:.1f} s")
    assert (done.complete, done.answers, done.errors) == (n, 16 * n, ())
    check(folder, database, n)


class Server:
    """The real command in a process of its own, to be killed."""

    def __init__(self, folder, database):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        options = ["--database", database] if database else []
        self.command = [
            sys.executable,
            "-m",
            "bayescase",
            "study",
            "serve",
            str(folder),
            "--live",
            "--port",
            str(self.port),
            *options,
        ]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.process.kill()
        self.process.wait()

    async def ready(self):
        async with httpx.AsyncClient(base_url=self.url, timeout=10) as client:
            while True:
                try:
                    return await client.get("/static/study.css")
                except httpx.TransportError:
                    assert self.process.poll() is None
                    await asyncio.sleep(0.05)


async def under_fire(server, design, people, kills, seed):
    """(people, kills): everybody takes part in real time while the server is killed at random moments."""
    rng, key, world = random.Random(seed), Key(design), World(design, TRUTH)
    async with httpx.AsyncHTTPTransport(limits=httpx.Limits(max_connections=people)) as transport:
        await server.ready()
        minds = [SimulatedMind(world, i) for i in range(people)]
        crowd = [Person(key, server.url, transport, mind, i, None, patience=120) for i, mind in enumerate(minds)]

        async def one(person):
            await person.go_on(await person.begin())

        going = asyncio.gather(*(one(person) for person in crowd))
        killed = 0
        while killed < kills and not going.done():
            await asyncio.sleep(rng.uniform(0.05, 0.6))
            server.kill()
            killed += 1
            server.start()
            await server.ready()
        await going
    return crowd, killed


@pytest.mark.parametrize(("people", "kills"), [(12, 3), pytest.param(200, 20, marks=pytest.mark.slow)])
def test_nothing_is_lost_when_the_server_is_killed(place, people, kills):
    design = small_design()
    design = replace(design, rules=replace(design.rules, break_seconds=0))
    folder, database = place(design)
    server, began = Server(folder, database), time.monotonic()
    try:
        crowd, killed = asyncio.run(under_fire(server, design, people, kills, seed=people))
    finally:
        server.kill()
    seconds = time.monotonic() - began
    recovered = sum(record["recovered"] for record in read_journal(folder))
    name = "PostgreSQL" if database else "SQLite"
    print(f"{killed} kills, {people} people, {name}: {16 * people} answers, {seconds:.1f} s, {recovered} rows recovered")
    assert killed == kills
    for person in crowd:
        assert person.complete
        assert not person.errors
        assert len(person.shown) == len(set(person.shown))  # a lost answer would be asked for again
    open_store(folder, database).close()  # what the last kill left is journalled at the next start
    check(folder, database, people)
