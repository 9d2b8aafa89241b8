"""A small study with data: made once, and copies of it to spoil."""

import csv

from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.data.database import opened, reading
from bayescase.study.data.export import collect

from .designs import small_design

DESIGN = small_design()
EVIL = '=HYPERLINK("http://x")'


def run(*arguments):
    return CliRunner().invoke(main, ["study", *map(str, arguments)])


def change(folder, *statements):
    """As somebody would who gets at the database past the server, where triggers keep what is stored."""
    with opened(folder) as engine, engine.begin() as connection:
        found = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").scalars().all()
        for name in found:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
    with opened(folder) as engine, engine.connect() as connection:
        connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=OFF").close()
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def tables_of(folder, identified=False):
    with opened(folder) as engine, reading(engine) as connection:
        return collect(connection, DESIGN, identified)


def rows_in(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
