"""Who sees what: a pure function of the design, its seed and the slot."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescase.study.design.design_checks import problems
from bayescase.study.design.design_file import read_design, write_design
from bayescase.study.design.schedule import cells, plan, shuffled

from ..designs import small_design

MODES = [small_design(), small_design(mode="paper")]
KNOWN_SHUFFLE = (8, 9, 5, 1, 3, 2, 4, 7, 0, 6)
KNOWN_CELL = "bcm (B) then lda (A)"
KNOWN_ITEMS = "b8 b6 b7 b3 b1 b5 b4 b2 a2 a5 a7 a1 a8 a6 a3 a4"
KNOWN_OPTIONS = [(3, 0, 1, 2, 4), (0, 4, 1, 3, 2), (1, 4, 0, 3)]


@pytest.mark.parametrize("design", MODES, ids=["crossed", "paper"])
@settings(max_examples=30)
@given(n=st.integers(1, 60))
def test_cells_are_balanced_within_one_after_any_number_of_people(design, n):
    counts = Counter(plan(design, slot).cell for slot in range(n))
    numbers = [counts[cell] for cell in cells(design)]
    assert max(numbers) - min(numbers) <= 1


def test_cells_are_orders_and_assignments():
    assert {str(cell) for cell in cells(small_design())} == {
        "bcm (A) then lda (B)",
        "lda (B) then bcm (A)",
        "bcm (B) then lda (A)",
        "lda (A) then bcm (B)",
    }
    assert [str(cell) for cell in cells(small_design(mode="paper"))] == ["bcm (A) then lda (B)", "lda (B) then bcm (A)"]


def three_arms():
    design = small_design()
    more = tuple(replace(r, condition="subspace") for r in design.representations if r.condition == "bcm")
    third = tuple(replace(item, id=f"c{i}", item_set="C") for i, item in enumerate(design.of_set("A")))
    return replace(
        design,
        conditions=("bcm", "lda", "subspace"),
        representations=(*design.representations, *more),
        items=(*design.items, *third),
    )


def test_three_conditions():
    design = three_arms()
    assert not list(problems(design))
    every = cells(design)
    assert len(set(every)) == len(every) == 18
    for condition, name in itertools.product(design.conditions, "ABC"):  # each set is as often in each condition
        assert sum((condition, name) in zip(cell.order, cell.sets, strict=True) for cell in every) == 6
    counts = Counter(plan(design, slot).cell for slot in range(18 * 2))
    assert set(counts.values()) == {2}


def test_the_schedule_is_a_pure_function(tmp_path):
    write_design(small_design(), tmp_path)
    again = read_design(tmp_path)
    forwards = [plan(small_design(), slot) for slot in range(12)]
    backwards = [plan(again, slot) for slot in reversed(range(12))]
    assert forwards == backwards[::-1]


def test_designs_that_differ_have_different_schedules():
    def orders(design):
        return [[(trial.item, trial.options) for trial in plan(design, slot).trials] for slot in range(4)]

    assert orders(small_design()) != orders(small_design(seed=2))
    assert orders(small_design()) != orders(small_design(title="Meals"))
    first = orders(small_design())
    assert len({tuple(map(str, order)) for order in first}) == 4


def test_the_algorithm_is_what_it_was():
    """If this fails, the schedule of studies that are under way has changed."""
    assert shuffled(range(10), "key") == KNOWN_SHUFFLE
    design = small_design()
    design.__dict__["hash"] = "0" * 64  # whatever is in the design
    found = plan(design, 5)
    assert str(found.cell) == KNOWN_CELL
    assert " ".join(trial.item for trial in found.trials) == KNOWN_ITEMS
    assert [trial.options for trial in found.trials[:3]] == KNOWN_OPTIONS


@pytest.mark.parametrize("design", [*MODES, three_arms()], ids=["crossed", "paper", "three"])
def test_everybody_gets_every_item_of_their_sets_once(design):
    for slot in range(20):
        found = plan(design, slot)
        assert [trial.number for trial in found.trials] == list(range(len(found.trials)))
        for block, (condition, name) in enumerate(zip(found.cell.order, found.cell.sets, strict=True)):
            here = [trial for trial in found.trials if trial.block == block]
            assert {trial.condition for trial in here} == {condition}
            assert sorted(trial.item for trial in here) == sorted(item.id for item in design.of_set(name))
        for trial in (*found.trials, *found.practice):
            assert sorted(trial.options) == sorted(design.item(trial.item).options)
        assert {trial.condition for trial in found.practice} == {found.cell.order[0]}


def test_the_right_option_is_in_no_favourite_place():
    design = small_design()
    places = Counter()
    for slot in range(200):
        for trial in plan(design, slot).trials:
            if len(trial.options) == 5:
                places[trial.options.index(design.item(trial.item).correct)] += 1
    expected = sum(places.values()) / 5
    assert max(abs(places[k] - expected) for k in range(5)) < 5 * expected**0.5


def test_pages_come_in_order():
    steps = [tuple(step) for step in plan(small_design(), 0).steps]
    assert steps[:3] == [("demographics", ""), ("instructions", ""), ("practice", "practice")]
    assert [ref for kind, ref in steps if kind == "trial"] == [str(n) for n in range(16)]
    assert [ref for kind, ref in steps if kind == "break"] == ["4", "8", "12"]
    assert steps.index(("check", "check-1")) == steps.index(("trial", "5")) + 1
    assert steps[-2:] == [("questionnaire", ""), ("end", "")]
    bare = small_design(demographics=(), questionnaire=(), checks=())
    assert {step.kind for step in plan(bare, 0).steps} == {"instructions", "practice", "trial", "break", "end"}
