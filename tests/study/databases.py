"""A PostgreSQL of our own for a few minutes: Debian's package, run by an ordinary user, since it refuses to be run by root."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

# Where syncing costs nothing; BAYESCASE_ON_DISK=1 asks for the usual place.
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) and "BAYESCASE_ON_DISK" not in os.environ else None


def programs():
    """The folder of initdb and postgres; tests that need it are skipped without."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found += [Path(path).parent for path in [shutil.which("initdb")] if path]
    if not found:
        pytest.skip("needs PostgreSQL: scripts/database, or apt-get install postgresql")
    return max(found)


def ordinary():
    """Settings of a process that is not run by root."""
    if os.getuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL needs a user who is not root")
    return {}


@contextmanager
def postgresql():
    import psycopg

    where, who = programs(), ordinary()
    folder = Path(tempfile.mkdtemp(prefix="bayescase-postgres-", dir=MEMORY))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    try:
        if who:
            os.chown(folder, who["user"], who["group"])
        made = [
            where / "initdb",
            "-D",
            folder / "data",
            "-U",
            "study",
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--locale=C",
        ]
        subprocess.run(made, check=True, **quiet, **who)
        settings = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}", "-c", "max_connections=200"]
        started = [where / "postgres", "-D", folder / "data", "-p", str(port), *settings]
        server = subprocess.Popen(started, **quiet, **who)
        try:
            root = f"host=127.0.0.1 port={port} user=study dbname=postgres"
            for _ in range(200):
                try:
                    psycopg.connect(root).close()
                    break
                except psycopg.OperationalError:
                    time.sleep(0.05)
            numbers = count()

            def new():
                name = f"study_{next(numbers)}"
                with psycopg.connect(root, autocommit=True) as connection:
                    connection.execute(f"CREATE DATABASE {name}")
                return f"postgresql+psycopg://study@127.0.0.1:{port}/{name}"

            yield new
        finally:
            server.send_signal(signal.SIGQUIT)  # at once: it is thrown away
            server.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
