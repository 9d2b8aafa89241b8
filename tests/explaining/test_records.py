"""Frozen dataclasses as JSON and back."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from bayescase.explaining.records import build, plain


@dataclass(frozen=True)
class Leaf:
    name: str
    share: float
    tags: tuple[str, ...]
    size: tuple[int, int] | None = None


@dataclass(frozen=True)
class Tree:
    leaf: Leaf
    leaves: tuple[Leaf, ...]
    inks: tuple[float | None, ...]
    more: dict[str, Any]
    free: Any


TREE = Tree(Leaf("a", 0.5, ("x", "y"), (2, 3)), (Leaf("b", 1.0, ()),), (0.25, None), {"k": 1, "none": None}, True)


def test_there_and_back_through_json():
    assert build(Tree, json.loads(json.dumps(plain(TREE)))) == TREE


def test_numbers_of_numpy_become_plain_ones():
    value = plain({"a": np.float32(0.5), "b": (np.int64(3), [np.bool_(True)])})
    assert value == {"a": 0.5, "b": [3, [True]]}
    assert [type(value["a"]), type(value["b"][0]), type(value["b"][1][0])] == [float, int, bool]


def test_a_field_with_a_default_may_be_absent_and_others_may_not():
    value = {"name": "a", "share": 0.5, "tags": []}
    assert build(Leaf, value).size is None
    with pytest.raises(KeyError, match="tags"):
        build(Leaf, {"name": "a", "share": 0.5})


def test_a_whole_number_where_a_real_one_is_wanted_is_that_number():
    leaf = build(Leaf, {"name": "a", "share": 1, "tags": []})
    assert type(leaf.share) is float
    assert json.dumps(plain(leaf)) == json.dumps(plain(Leaf("a", 1.0, ())))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": 3},
        {"name": None},
        {"share": "0.5"},
        {"share": True},
        {"tags": "xy"},
        {"tags": [1]},
        {"tags": None},
        {"size": [1, 2.5]},
        {"size": "12"},
    ],
    ids=str,
)
def test_what_has_another_type_is_refused(wrong):
    with pytest.raises(TypeError, match="is not of type"):
        build(Leaf, {"name": "a", "share": 0.5, "tags": [], "size": [1, 2]} | wrong)


@pytest.mark.parametrize("size", [[1], [1, 2, 3]])
def test_a_pair_has_two_parts(size):
    with pytest.raises(ValueError):
        build(Leaf, {"name": "a", "share": 0.5, "tags": [], "size": size})


@pytest.mark.parametrize("value", [[1], {"a": 1}])
def test_anything_is_a_plain_value(value):
    with pytest.raises(TypeError):
        build(Any, value)
