"""The bundled data."""

import numpy as np
import pytest

from bayescase import load_recipes, load_smileys
from bayescase.datasets import FACE, FACE_SUBSPACES

from .helpers import in_columns


def test_smileys():
    faces = load_smileys()
    assert list(faces.table) == list(FACE)
    for name, column in faces.table.items():
        assert column.shape == (240,)
        assert set(column) <= set(FACE[name])
        assert len(set(column)) > 1
    assert faces.names.shape == faces.families.shape == (240,)
    assert len(set(faces.names)) == 240
    families, sizes = np.unique(faces.families, return_counts=True)
    assert set(families) == {"+".join(subspace) for subspace in FACE_SUBSPACES}
    assert sizes.min() > 240 / 10
    assert "three clusters" in faces.description


def test_smileys_copy_their_prototype_on_the_subspace():
    """Within a family a defining feature mostly has one value, and more so than the other features do."""
    faces = load_smileys()
    inside, outside = [], []
    for subspace in FACE_SUBSPACES:
        family = faces.families == "+".join(subspace)
        for name, column in faces.table.items():
            _, counts = np.unique(column[family], return_counts=True)
            (inside if name in subspace else outside).append(counts.max() / counts.sum())
    assert min(inside) > 0.6
    assert np.mean(inside) > np.mean(outside) + 0.15


def test_smileys_are_the_same_for_the_same_seed():
    first, again, other = load_smileys(), load_smileys(), load_smileys(random_state=1)
    assert all(np.array_equal(first.table[name], again.table[name]) for name in FACE)
    assert np.array_equal(first.families, again.families)
    assert any(not np.array_equal(first.table[name], other.table[name]) for name in FACE)


@pytest.mark.parametrize("n", [1, 7, 1000])
def test_any_number_of_smileys(n):
    faces = load_smileys(n_cases=n, random_state=3)
    assert {len(column) for column in faces.table.values()} == {n}
    assert len(faces.families) == len(faces.names) == n


def test_recipes():
    recipes = load_recipes()
    families, sizes = np.unique(recipes.families, return_counts=True)
    assert set(families) == {"pasta", "chili", "brownies", "punch", "curry"}
    assert sizes.sum() == len(recipes.names) == 80
    assert sizes.min() >= 10
    assert len(set(recipes.names)) == 80
    (bags,) = recipes.table.values()
    assert len(bags) == 80
    for ingredients in bags:
        assert len(ingredients) == len(set(ingredients)) >= 3
        assert all(name == name.strip() != "" for name in ingredients)
    for name, column in in_columns(bags).items():
        assert 0 < column.sum() < 80, name  # no ingredient that all use
    assert len({tuple(ingredients) for ingredients in bags}) > 70


def test_recipes_of_a_family_share_ingredients():
    recipes = load_recipes()
    x = np.array(list(in_columns(recipes.table["ingredients"]).values())).T.astype(float)
    together = x @ x.T / np.sqrt(np.outer(x.sum(axis=1), x.sum(axis=1)))
    own = recipes.families[:, None] == recipes.families[None, :]
    np.fill_diagonal(together, np.nan)
    assert np.nanmean(together[own]) > 2 * np.nanmean(together[~own])
    assert load_recipes().names.tolist() == recipes.names.tolist()
