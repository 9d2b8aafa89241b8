"""Who sees what: a pure function of the design, its seed and the slot."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescase.study.design.design import Check
from bayescase.study.design.design_checks import problems
from bayescase.study.design.design_file import read_design, write_design
from bayescase.study.design.schedule import arranged, cells, orders, plan, shuffled

from ..designs import between, predicting, small_design, three_conditions

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


def test_three_conditions():
    design = three_conditions()
    assert not list(problems(design))
    every = cells(design)
    assert len(set(every)) == len(every) == 18
    for condition, name in itertools.product(design.labels, "ABC"):  # each set is as often in each condition
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


@pytest.mark.parametrize("design", [*MODES, three_conditions()], ids=["crossed", "paper", "three"])
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
    assert [ref for kind, ref in steps if kind == "ratings"] == ["0", "1"]
    assert steps.index(("ratings", "0")) == steps.index(("trial", "7")) + 1  # of a part, right after it
    assert steps[-3:] == [("ratings", "1"), ("questionnaire", ""), ("end", "")]
    bare = small_design(demographics=(), questionnaire=(), block_ratings=(), checks=())
    assert {step.kind for step in plan(bare, 0).steps} == {"instructions", "practice", "trial", "break", "end"}


def test_comprehension_comes_before_anything_counts():
    check = Check("task", "What are you asked?", ("this", "that"), 1, 0)
    steps = [step.kind for step in plan(small_design(checks=(check,)), 0).steps]
    assert steps[1:4] == ["instructions", "comprehension", "practice"]


def test_between_people_there_is_one_block_with_all_items():
    design = between()
    assert [str(cell) for cell in cells(design)] == ["bcm (A)", "lda (A)"]
    for slot in range(4):
        found = plan(design, slot)
        assert len(found.trials) == 16
        assert {trial.block for trial in found.trials} == {0}
        assert len({trial.condition for trial in found.trials}) == 1
    assert Counter(plan(design, slot).cell.order[0] for slot in range(10)) == {"bcm": 5, "lda": 5}


@pytest.mark.parametrize("k", [4, 5, 6, 7])
def test_many_conditions_are_balanced_in_place_and_in_what_comes_before(k):
    found = orders(tuple("abcdefg"[:k]))
    assert len(found) == (k if k % 2 == 0 else 2 * k)
    places = Counter((name, place) for order in found for place, name in enumerate(order))
    after = Counter(pair for order in found for pair in itertools.pairwise(order))
    assert len(places) == k * k
    assert len(after) == k * (k - 1)
    assert len(set(places.values())) == len(set(after.values())) == 1


# --- the order of words ---------------------------------------------------------------------------------------------------


def words(design, slot):
    """What each card shows, in its order."""
    shown = [explanation.stimulus for explanation in design.explanations] + [item.stimulus for item in design.items]
    return [[line.name for line in arranged(design, slot, stimulus).lines] for stimulus in shown]


def test_words_are_in_one_random_order_per_person_on_all_cards():
    design = small_design()
    places: dict = {}
    for slot in range(3):
        ranks: dict = {}
        for card in words(design, slot):
            for before, after in itertools.combinations(card, 2):  # no card contradicts another one
                assert ranks.setdefault(frozenset((before, after)), before) == before
        places[slot] = tuple(map(tuple, words(design, slot)))
        assert places[slot] == tuple(map(tuple, words(design, slot)))
    assert len(set(places.values())) == 3


def test_the_order_of_words_does_not_tell_the_condition():
    """Prototypes are made alphabetical, topics by weight; on the pages neither can be told from the other by its order."""

    def alphabetical(card):
        pairs = list(itertools.pairwise(card))
        return sum(a <= b for a, b in pairs) / len(pairs)

    design = small_design()
    of = {c: [s.stimulus for s in design.explanations if s.condition == c] for c in design.labels}
    given = {c: np.mean([alphabetical([line.name for line in s.lines]) for s in of[c]]) for c in of}
    assert given["bcm"] == 1 > given["lda"]  # what would be confounded
    shown = {}
    for c in of:
        cards = [arranged(design, slot, stimulus).lines for slot in range(200) for stimulus in of[c]]
        shown[c] = np.mean([alphabetical([line.name for line in card]) for card in cards])
    assert shown["bcm"] == pytest.approx(0.5, abs=0.03)
    assert shown["lda"] == pytest.approx(0.5, abs=0.03)


def test_words_can_be_alphabetical_or_as_given():
    assert all(card == sorted(card, key=str.casefold) for card in words(small_design(order="alphabetical"), 3))
    given = small_design(order="given")
    cards = [s.stimulus for s in given.explanations] + [item.stimulus for item in given.items]
    assert words(given, 3) == [[line.name for line in card.lines] for card in cards]


def test_bars_keep_their_weights_when_they_are_rearranged():
    design = predicting()
    stimulus = design.explanations[0].stimulus
    for slot in range(5):
        assert sorted(arranged(design, slot, stimulus).lines, key=str) == sorted(stimulus.lines, key=str)
