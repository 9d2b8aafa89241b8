"""The database: SQLite in the study's folder, or PostgreSQL; opened with the settings that the promises need.

On SQLite a transaction that writes begins by taking the write lock (deferred ones fail under load).
"""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

DATABASE = "study.db"
WAL_SINCE = (3, 51, 3)  # earlier versions can damage the file when the write-ahead log is reset
MINUTE = 60_000


class StoreError(ValueError):
    """The data cannot be opened, in one sentence."""


def milliseconds() -> int:
    return time.time_ns() // 1_000_000


def database_url(folder: Path, database: str | None = None) -> str:
    return database or f"sqlite:///{Path(folder).resolve() / DATABASE}"


def connect(folder: Path, database: str | None = None) -> Engine:
    """An engine with the settings that the promises need; the schema is not touched."""
    url = database_url(folder, database)
    try:
        kind = make_url(url).get_backend_name()
        if kind not in ("sqlite", "postgresql"):
            raise StoreError(f"The database must be SQLite or PostgreSQL, not {kind}.")
        pool = {"pool_size": 20, "max_overflow": 30, "pool_timeout": 60, "hide_parameters": True}
        if kind == "postgresql":
            return create_engine(url, pool_pre_ping=True, **pool)
        engine = create_engine(url, connect_args={"timeout": 60, "check_same_thread": False}, **pool)
    except ArgumentError as error:
        raise StoreError("The database must be an address such as postgresql+psycopg://user@host/name.") from error
    except ImportError as error:
        raise ImportError("PostgreSQL needs a driver; install it with: pip install 'bayescase[postgres]'") from error
    event.listen(engine, "connect", prepare_sqlite)
    event.listen(engine, "begin", begin_sqlite)
    return engine


def prepare_sqlite(connection, _):
    connection.isolation_level = None  # we begin transactions ourselves
    # The end of a transaction is synced by TRUNCATE, not by DELETE, so only that one survives a loss of power at once.
    mode = "WAL" if sqlite3.sqlite_version_info >= WAL_SINCE else "TRUNCATE"
    for pragma in (f"journal_mode={mode}", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def begin_sqlite(connection):
    writes = connection.get_execution_options().get("writes", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def migrate(engine: Engine) -> None:
    """Bring the schema up to date."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.set_main_option("path_separator", "os")
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7305242)")  # two servers may start at once
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise StoreError("The database was made by a newer bayescase; upgrade bayescase to use it.") from error


def passes(error: DBAPIError) -> bool:
    """Whether the same transaction may succeed in a moment. Each finds out by itself whether it had succeeded already."""
    state = getattr(error.orig, "sqlstate", None)
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF  # without the bits that say why
    busy = code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return error.connection_invalidated or state in ("40001", "40P01") or busy


def reason(error: SQLAlchemyError) -> str:
    return str(getattr(error, "orig", None) or error).strip().splitlines()[0]


# --- reading --------------------------------------------------------------------------------------------------------------


def need_data(folder: Path, database: str | None = None) -> None:
    """Raise unless the study has data: opening a database that is not there would make one."""
    if database is None and not (Path(folder) / DATABASE).exists():
        raise StoreError(f"There are no data in {folder} yet; collect some with: bayescase study serve {folder}")


@contextmanager
def opened(folder: Path, database: str | None = None) -> Iterator[Engine]:
    """The database of a study that has data; what goes wrong with it is one sentence."""
    need_data(folder, database)
    engine = connect(folder, database)
    try:
        yield engine
    except SQLAlchemyError as error:
        raise StoreError(f"The database cannot be read: {reason(error)}") from error
    finally:
        engine.dispose()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """One read transaction: everything read in it is of the same moment."""
    options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {"writes": False}
    with engine.connect().execution_options(**options) as connection:
        yield connection
