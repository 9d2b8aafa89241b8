"""Models that the tests of designs share. Tests must not change them."""

import pytest

from . import models


@pytest.fixture(scope="session")
def lda():
    return pytest.importorskip("tomotopy", reason="pip install 'bayescase[study]'")


@pytest.fixture(scope="session")
def meals():
    return models.meals()


@pytest.fixture(scope="session")
def animals():
    return models.animals()


@pytest.fixture(scope="session")
def digits():
    return models.digits()
