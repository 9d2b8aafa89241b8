"""Fitted models that the tests of explanations share. Tests must not change them."""

import warnings

import numpy as np
import pytest

from bayescase import BayesianCaseModel, load_recipes

from ..helpers import in_columns


@pytest.fixture(scope="package")
def table(mixed):
    """Columns of every kind, with gaps."""
    return BayesianCaseModel(3, alpha=0.5, n_iter=120, n_chains=2, keep_draws=True, random_state=0).fit(mixed[0])


@pytest.fixture(scope="package")
def words():
    """Present and absent words."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=60)
    chance = np.where(rng.random((3, 12)) < 0.4, 0.9, 0.1)
    columns = {f"w{j}": rng.random(60) < chance[kinds, j] for j in range(12)}
    return BayesianCaseModel(3, n_iter=100, n_chains=2, random_state=0).fit(
        columns, case_names=[f"text {i}" for i in range(60)]
    )


@pytest.fixture(scope="package")
def recipes():
    """A column per ingredient: is it there?"""
    found = load_recipes()
    model = BayesianCaseModel(5, n_iter=40, n_chains=2, keep_draws=True, random_state=0)
    return model.fit(in_columns(found.table["ingredients"]), case_names=found.names)


@pytest.fixture(scope="package")
def bags():
    """The same recipes as bags."""
    found = load_recipes()
    model = BayesianCaseModel(5, n_iter=100, n_chains=2, keep_draws=True, random_state=0)
    return model.fit(found.table, case_names=found.names)


@pytest.fixture(scope="package")
def alone():
    """One cluster only."""
    columns = {"a": ["x", "y", "x", "x"], "b": [1, 2, 1, 1], "c": [True, False, True, True]}
    return BayesianCaseModel(1, n_iter=40, n_chains=1, keep_draws=True, random_state=0).fit(columns)


@pytest.fixture(scope="package")
def keyless(planted):
    """No feature belongs to a subspace, and the cases are not the catalogue."""
    x, _ = planted(N=30, P=4)
    return BayesianCaseModel(2, q=0.001, c=0.01, n_iter=40, n_chains=1, random_state=0).fit(x, candidates=x[:7])


@pytest.fixture(scope="package")
def unused():
    """Two kinds of cases and four clusters, of which at least one is nobody's main one."""
    x = np.repeat([[0, 0, 1, 1], [1, 1, 0, 2]], 20, axis=0)
    return BayesianCaseModel(4, n_iter=60, n_chains=1, random_state=0).fit(x)


@pytest.fixture(scope="package")
def apart():
    """Three chains in three ways to cluster the cases."""
    rng = np.random.default_rng(1)
    x = np.where(
        rng.random((60, 6)) < 0.15, rng.integers(3, size=(60, 6)), rng.integers(3, size=(3, 6))[np.repeat([0, 1, 2], 20)]
    )
    x[:20] = rng.integers(3, size=(20, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return BayesianCaseModel(4, n_iter=30, n_chains=3, random_state=0).fit(x)
