"""A fitted model and tables for the tests of the command line."""

import pytest

from .calling import SHORT, call


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """data.csv with planted clusters, and model.bcm fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    call("simulate", "-n", 40, "-p", 5, "-k", 3, "--missing", 0.05, "-o", folder / "data.csv")
    fitted = ("-k", 3, "--id", "case", "--label", "cluster", *SHORT, "--keep-draws")
    shown = call("fit", folder / "data.csv", "-o", folder / "model.bcm", *fitted)
    (folder / "shown").write_text(shown.stdout)
    return folder


@pytest.fixture
def table(tmp_path):
    """table(text) writes a CSV file."""

    def make(text, name="table.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make
