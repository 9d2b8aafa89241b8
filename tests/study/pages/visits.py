"""What tests of pages look at: titles, and everything that is kept."""

from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")

from sqlalchemy import select

from bayescase.study.data.journal import read_journal
from bayescase.study.data.tables import answers, metadata
from bayescase.study.simulate import Page

from ..designs import small_design

EVIL = "'; DROP TABLE answers; -- <script>window.evil = 1</script> \"><img src=x onerror=alert(1)> {{ 7*7 }} \x00 %00 漢字"


def ruled(**rules):
    design = small_design()
    return replace(design, rules=replace(design.rules, **rules))


def dump(visit):
    """Everything that is kept."""
    with visit.store.reading() as connection:
        kept = {table.name: connection.execute(select(table)).all() for table in metadata.sorted_tables}
    return kept, read_journal(visit.store.folder)


def title(answer):
    return Page(answer.text).title


def count(visit, table=answers):
    with visit.store.reading() as connection:
        return len(connection.execute(select(table.c.id)).all())
