"""A study with data that tests share."""

import shutil

import pytest


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A study of four people. Tests must not change it."""
    pytest.importorskip("sqlalchemy", reason="pip install 'bayescase[study]'")
    from .designs import small_design
    from .made_data import make_study

    return make_study(tmp_path_factory.mktemp("study") / "a", small_design(), 4, inattentive=(2,))


@pytest.fixture
def study(made, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(made, tmp_path / "study")
