"""Which errors of a database pass by themselves, so that the transaction is tried again."""

import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from bayescase.study.data.database import passes


@pytest.fixture
def two(tmp_path):
    """Two connections to one SQLite file that do not wait for each other."""
    engine = create_engine(f"sqlite:///{tmp_path / 'some.db'}", connect_args={"timeout": 0})
    with engine.connect() as first, engine.connect() as second:
        first.exec_driver_sql("CREATE TABLE busy (x PRIMARY KEY)")
        first.commit()
        yield first, second
    engine.dispose()


def test_a_database_that_is_locked_is_asked_again(two):
    first, second = two
    first.exec_driver_sql("INSERT INTO busy VALUES (1)")
    with pytest.raises(DBAPIError) as error:
        second.exec_driver_sql("INSERT INTO busy VALUES (2)")
    assert passes(error.value)


def test_an_error_that_only_mentions_it_is_not(two):
    """A table called `busy` is not a busy database."""
    first, _ = two
    first.exec_driver_sql("INSERT INTO busy VALUES (1)")
    for wrong in ("INSERT INTO busy VALUES (1)", "SELECT y FROM busy WHERE locked"):
        with pytest.raises(DBAPIError) as error:
            first.exec_driver_sql(wrong)
        assert not passes(error.value)
