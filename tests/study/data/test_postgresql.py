"""Export, verify and doctor on PostgreSQL."""

import pytest

from bayescase.study.data.database import opened, reading
from bayescase.study.data.export import collect
from bayescase.study.data.export_folder import read_export
from bayescase.study.data.verify import verify
from bayescase.study.doctor import OK, PROBLEM, examine

from ..databases import postgresql
from ..made_data import START, event, make_study
from ..studies import DESIGN, run


def test_all_of_it_on_postgresql(tmp_path):
    pytest.importorskip("psycopg", reason="pip install 'bayescase[postgres]'")
    with postgresql() as new:
        url = new()
        folder = make_study(tmp_path / "study", DESIGN, 4, database=url, inattentive=(2,))
        assert run("export", folder, "-o", tmp_path / "out", "--database", url).exit_code == 0
        assert verify(folder, url, tmp_path / "out") == []
        found = {(line.what, line.level): line.words for line in examine(folder, url)}
        assert ("database", OK) in found
        assert not [line for line in found if line[1] == PROBLEM], found
        with opened(folder, url) as engine, reading(engine) as connection:
            before = collect(connection, DESIGN)
            with engine.begin() as other:
                event(other, None, START, "declined", {})
            assert collect(connection, DESIGN) == before  # one moment, whatever is committed meanwhile
        assert read_export(tmp_path / "out")[1].answers == before.answers
    done = run("verify", folder, "--database", url)
    assert done.exit_code == 1
    assert "The database cannot be read" in done.output
