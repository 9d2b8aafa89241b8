"""A model becomes a study: what is shown, who sees it, and that nobody can change it afterwards."""

import csv
import itertools
import json
import warnings
from collections import Counter
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from bayescase import BayesianCaseModel
from bayescase.cli.main import main
from bayescase.study import design as designs
from bayescase.study import making
from bayescase.study.coders import cohen_kappa, read_coders
from bayescase.study.design import (
    Check,
    DesignError,
    Line,
    freeze,
    frozen_hash,
    problems,
    read_design,
    unfinished,
    write_design,
)
from bayescase.study.making import make_design
from bayescase.study.schedule import cells, plan, shuffled
from bayescase.study.stimuli import Sight
from bayescase.study.topics import Topics, fit_topics, match_topics, read_topics, top_words

from .designs import small_design


@pytest.fixture(scope="module")
def lda():
    return pytest.importorskip("tomotopy", reason="pip install 'bayescase[study]'")


def fit(table, k, **settings):
    return BayesianCaseModel(k, n_iter=60, n_chains=2, n_jobs=1, random_state=0, **settings).fit(table)


def dishes(S=5, own=6, each=14, seed=0):
    """Sets: a dish has most of its family's ingredients, and now and then one of another family."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(S), each)
    has = rng.random((S * each, S * own)) < np.where(family[:, None] == np.arange(S * own) // own, 0.8, 0.04)
    return {f"{'abcdefgh'[j // own]}{j % own}": has[:, j] for j in range(S * own)}, family


@pytest.fixture(scope="module")
def meals():
    """A model of five families. Tests must not change it."""
    table, family = dishes()
    model = fit(table, 5)
    sizes = Counter(model.labels_)
    assert len(sizes) == 5  # the families are found
    assert min(sizes.values()) >= 12
    return model.name_cases([f"dish {i} of {family[i]}" for i in range(len(family))])


@pytest.fixture(scope="module")
def animals():
    """A table of words and numbers with missing cells, in three clusters."""
    rng = np.random.default_rng(3)
    label = np.arange(60) % 3
    own = {
        "coat": ("fur", "scales", "feathers"),
        "legs": (4, 0, 2),
        "home": ("land", "sea", "air"),
        "eats": ("meat", "algae", "corn"),
    }
    table = {}
    for name, values in own.items():
        column = np.array(values, dtype=object)[np.where(rng.random(60) < 0.1, rng.integers(3, size=60), label)]
        column[rng.random(60) < 0.1] = None
        table[name] = column
    table["size"] = label + rng.random(60) * 0.8
    table["tame"] = np.array([True, False, None], dtype=object)[rng.choice(3, size=60, p=[0.5, 0.4, 0.1])]
    return fit(table, 3)


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    data = load_digits(n_class=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pixels are never inked
        return fit((data.data[:250] > 7).astype(int), 5)


def write_topics(path, model, labels, n_words=None):
    """Topics as another program might give them: how often a word is in a group."""
    sight, cases = Sight(model), model._data.x
    lines = [["topic", "word", "weight"]]
    for t in np.unique(labels):
        codes = np.concatenate([sight.words(row, sight.spoken) for row in cases[labels == t]])
        for code, n in Counter(codes.tolist()).most_common(n_words):
            lines.append([f"T{t}", sight.word(code), n])
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    return path


# --- the design: one readable file, hashed and frozen ---------------------------------------------------------------------


def test_there_and_back(tmp_path):
    design = small_design()
    write_design(design, tmp_path / "a" / "b")
    assert read_design(tmp_path / "a" / "b") == design


def test_the_hash_is_of_the_content_not_of_the_layout(tmp_path):
    design = small_design()
    write_design(design, tmp_path)
    path = tmp_path / "design.json"

    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(part) for part in value] if isinstance(value, list) else value

    path.write_text(json.dumps(turned(json.loads(path.read_text("utf-8"))), indent=7), "utf-8")
    assert read_design(tmp_path).hash == design.hash


def test_an_editor_may_change_how_numbers_and_marks_are_written(tmp_path):
    design = small_design()
    image = designs.Stimulus("image", (), (1, 2), (0.0, 1.0), ())
    design = replace(design, items=(replace(design.items[0], stimulus=image), *design.items[1:]))
    write_design(design, tmp_path)
    freeze(tmp_path)
    text = (tmp_path / "design.json").read_text("utf-8")
    assert "[0.0, 1.0]" in text
    (tmp_path / "design.json").write_text("\ufeff" + text.replace("[0.0, 1.0]", "[0, 1]"), "utf-8")
    assert read_design(tmp_path) == design


def test_the_hash_is_what_it_was():
    """If this fails, studies that were frozen before can no longer be read."""
    assert small_design().hash == "6e1664ca57f5af9ccbea5908fdb69b2eab3916047d4e15ac07a6ab169f341d91"


def test_any_change_changes_the_hash():
    design = small_design()
    others = [small_design(seed=2), small_design(title="Meals"), small_design(made={}), small_design(mode="paper")]
    others += [replace(design, rules=replace(design.rules, break_seconds=6))]
    others += [replace(design, items=design.items[::-1])]
    assert len({one.hash for one in (design, *others)}) == 1 + len(others)


def test_the_file_is_for_people(tmp_path):
    write_design(small_design(), tmp_path)
    lines = (tmp_path / "design.json").read_text("utf-8").splitlines()
    assert '{"name": "beans", "value": null, "marked": false}' in "".join(lines)
    assert max(map(len, lines)) <= 128
    assert any("“blue”" in line for line in lines)  # not escaped


def test_a_design_in_memory_cannot_be_edited():
    with pytest.raises(FrozenInstanceError):
        small_design().title = "another"


def test_a_frozen_design_is_not_replaced(tmp_path):
    write_design(small_design(), tmp_path)
    write_design(small_design(title="edited"), tmp_path)  # not yet frozen
    before = freeze(tmp_path), (tmp_path / "design.json").read_bytes()
    with pytest.raises(DesignError, match="is frozen"):
        write_design(small_design(), tmp_path)
    assert (frozen_hash(tmp_path), (tmp_path / "design.json").read_bytes()) == before
    assert read_design(tmp_path).title == "edited"


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value["texts"].update(question="?"),
        lambda value: value["items"][0].update(correct=value["items"][0]["options"][-1]),
        lambda value: value["rules"].update(break_seconds=0),
        lambda value: value.update(seed=99),
        lambda value: value["made"].update(by="nobody"),
    ],
)
def test_a_frozen_design_that_was_edited_is_refused(tmp_path, edit):
    write_design(small_design(), tmp_path)
    path = tmp_path / "design.json"
    value = json.loads(path.read_text("utf-8"))
    edit(value)
    path.write_text(json.dumps(value), "utf-8")
    read_design(tmp_path)  # a good design: without the freezing, nobody would mind
    write_design(small_design(), tmp_path)
    first = freeze(tmp_path)
    path.write_text(json.dumps(value), "utf-8")
    for read in (read_design, freeze):
        with pytest.raises(DesignError, match="changed after it was frozen"):
            read(tmp_path)
    assert frozen_hash(tmp_path) == first  # freezing again does not bless the change


def test_freezing_twice_changes_nothing(tmp_path):
    write_design(small_design(), tmp_path)
    assert freeze(tmp_path) == small_design().hash
    seal = json.loads((tmp_path / "frozen.json").read_text("utf-8")) | {"at": "2001-01-01T00:00:00Z"}  # long ago
    (tmp_path / "frozen.json").write_text(json.dumps(seal))
    before = (tmp_path / "frozen.json").read_bytes()
    assert freeze(tmp_path) == small_design().hash
    assert (tmp_path / "frozen.json").read_bytes() == before


@pytest.mark.parametrize("words", ["", "[]", "{}", "nonsense", '{"hash": '])
def test_a_damaged_seal_does_not_open_the_design(tmp_path, words):
    write_design(small_design(), tmp_path)
    freeze(tmp_path)
    (tmp_path / "frozen.json").write_text(words)
    for use in (read_design, freeze, lambda folder: write_design(small_design(), folder)):
        with pytest.raises(DesignError):
            use(tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda value: value.pop("seed"), "'seed' is not there"),
        (lambda value: value.update(version=2), "not a study of this version"),
        (lambda value: value.update(seed="1"), "not of type"),
        (lambda value: value.update(sead=1), "'sead' .* misspelt"),
        (lambda value: value["rules"]["complete"].update(address="javascript:alert(1)"), "rules.complete must begin"),
        (lambda value: value["rules"]["timed_out"].update(address="app.example.org/x"), "rules.timed_out must begin"),
        (lambda value: value["items"][2].update(colour="red"), "'colour' .* misspelt"),
        (lambda value: value["items"][0].update(correct=77), "not among its options"),
        (lambda value: value["items"][0].update(options=[0, 0, 1]), "different options"),
        (lambda value: value["items"][0].update(options=[0, 9]), "cluster 9, which has no representation"),
        (lambda value: value["items"].pop(0), "same number of items"),
        (lambda value: value["items"][0].update(id="b1"), "'b1' is used twice"),
        (lambda value: value["items"][0].update(id="a 1/2"), "other characters"),
        (lambda value: value["checks"][0].update(after=17), "there are 16"),
        (lambda value: value["checks"][0].update(correct=3), "no option 3"),
        (lambda value: value["rules"].update(resume="maybe"), "resume policy"),
        (lambda value: value["rules"].update(break_every=0), "Breaks"),
        (lambda value: value.update(mode="other"), "mode"),
        (lambda value: value.update(title=" "), "title must not be empty"),
        (lambda value: value["texts"].update(consent=""), "consent text must not be empty"),
        (lambda value: value.update(conditions=["bcm"]), "conditions"),
        (lambda value: value["questionnaire"][0].update(labels=["yes"]), "labels"),
        (lambda value: value["demographics"][1].update(options=[]), "choice with options"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path, edit, message):
    write_design(small_design(), tmp_path)
    path = tmp_path / "design.json"
    value = json.loads(path.read_text("utf-8"))
    edit(value)
    path.write_text(json.dumps(value), "utf-8")
    with pytest.raises(DesignError, match=message):
        read_design(tmp_path)


@pytest.mark.parametrize("words", ["", "nonsense", "[]", "3", '{"format": "bayescase study", "version": 1, "seed": NaN}'])
def test_what_is_no_design(tmp_path, words):
    (tmp_path / "design.json").write_text(words)
    with pytest.raises(DesignError, match=r"design\.json"):
        read_design(tmp_path)


def test_images_are_checked():
    design = small_design()
    image = designs.Stimulus("image", (), (1, 2), (0.0, None), ())
    assert not list(problems(replace(design, items=(replace(design.items[0], stimulus=image), *design.items[1:]))))
    for wrong in (
        replace(image, ink=(0.0,)),
        replace(image, ink=(0.0, 1.5)),
        replace(image, marked=(2,)),
        replace(image, kind="x"),
    ):
        assert list(problems(replace(design, items=(replace(design.items[0], stimulus=wrong), *design.items[1:]))))


# --- who sees what --------------------------------------------------------------------------------------------------------

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


# --- stimuli --------------------------------------------------------------------------------------------------------------


def test_a_set_is_what_a_case_has(meals):
    sight, row = Sight(meals), meals._data.x[0]
    shown = sight.draw(row)
    table, _ = dishes()
    assert [line.name for line in shown.lines] == [name for name in table if table[name][0]]
    assert all(line == Line(line.name, None, False) for line in shown.lines)
    assert (shown.kind, shown.shape, shown.ink, shown.marked) == ("set", None, (), ())


def test_a_table_is_features_with_values_and_nothing_that_is_missing(animals):
    sight = Sight(animals)
    gaps = np.flatnonzero((animals._data.x < 0).any(axis=1))
    for i in (*gaps[:5], 0):
        values = animals._encoding.decode(animals._data.x[i : i + 1])[0]
        shown = sight.draw(animals._data.x[i])
        assert shown.kind == "table"
        assert [line.name for line in shown.lines] == [
            f.name for f, value in zip(animals._encoding.features, values, strict=True) if value is not None
        ]
    assert {line.value for line in shown.lines} & {"yes", "no", "fur", "scales", "feathers"}


def test_an_image_is_ink(digits):
    sight, row = Sight(digits, (8, 8)), digits._data.x[0]
    shown = sight.draw(row, marked=[0, 5])
    assert (shown.kind, shown.shape, shown.lines, shown.marked) == ("image", (8, 8), (), (0, 5))
    values = digits._encoding.decode(row[None])[0]
    assert list(shown.ink) == [float(value) if len(f.values) > 1 else 0.0
                               for f, value in zip(digits._encoding.features, values, strict=True)]  # fmt: skip
    topic = sight.draw_words(sight.words(row)[:3])
    assert sum(ink is not None for ink in topic.ink) == 3
    assert all(ink is None or ink > 0 for ink in topic.ink)


def test_grey_images_have_grey_ink():
    rng = np.random.default_rng(0)
    grey = rng.integers(3, size=(40, 4))
    grey[:20, 0], grey[20:, 0] = 0, 2
    shown = Sight(model := fit(grey, 2), (2, 2)).draw(model._data.x[0])
    assert set(shown.ink) <= {0.0, 0.5, 1.0}


def test_an_image_needs_its_pixels(meals):
    with pytest.raises(DesignError, match="--image 4 4 has 16 pixels, but the model has 30 features"):
        make_design(meals, image_shape=(4, 4))


# --- from a model ---------------------------------------------------------------------------------------------------------


def test_recipes_like_the_paper(meals, lda):
    design = make_design(meals, noun="dish")
    assert design.conditions == ("bcm", "lda")
    assert {name: len(design.of_set(name)) for name in ("A", "B", "practice")} == {"A": 8, "B": 8, "practice": 1}
    assert (design.rules.break_every, design.rules.break_seconds, design.mode) == (4, 5, "crossed")
    words = json.dumps([str(item.stimulus) for item in (*design.items, *design.representations)])
    assert "dish" not in words  # no names
    assert "dish" in design.texts.question
    assert "as quickly and as accurately as possible" in design.texts.instructions
    for s in range(5):
        prototype = {name for name, value in zip(meals.feature_types_, meals.prototype_cases_[s], strict=True) if value}
        shown = design.representation("bcm", s).stimulus
        assert {line.name for line in shown.lines} == prototype
        assert not any(line.marked for line in shown.lines)
        topic = design.representation("lda", s).stimulus
        assert len(topic.lines) == len(prototype)  # the length is matched
        family = Counter(line.name[0] for line in topic.lines).most_common(1)[0][0]
        assert family == Counter(name[0] for name in prototype).most_common(1)[0][0]  # and so is the cluster
    assert not list(problems(design))


def test_the_same_call_makes_the_same_design(meals, lda):
    assert make_design(meals, seed=3).hash == make_design(meals, seed=3).hash
    assert [item.case for item in make_design(meals, seed=3).items] != [item.case for item in make_design(meals, seed=4).items]


def test_items(meals, lda):
    design = make_design(meals)
    prototypes = {design.representation("bcm", s).stimulus for s in range(5)}
    assert len({item.case for item in design.items}) == len({item.stimulus for item in design.items}) == 17
    for item in design.items:
        assert item.correct == meals.labels_[item.case]
        assert meals.memberships_[item.case, item.correct] >= making.CLEAR
        assert item.case not in meals.prototypes_
        assert item.stimulus not in prototypes
        assert item.name == meals.case_names_[item.case]
        assert item.flags == ()
    counts = Counter(item.correct for item in design.items if item.item_set != "practice")
    assert max(counts.values()) - min(counts.values()) <= 1
    for s in range(5):
        parts = [sum(item.correct == s for item in design.of_set(name)) for name in "AB"]
        assert max(parts) - min(parts) <= 1


@pytest.mark.parametrize("n", [4, 5, 6])
def test_four_to_six_options(n):
    model = fit(dishes(S=7)[0], 7)
    design = make_design(model, arms=("bcm", "subspace"), options=n, items_per_block=6)
    shown = len({r.cluster for r in design.representations})
    assert shown >= 6
    assert {len(item.options) for item in design.items} == {n}
    assert f"{n} of {shown}" in design.made["options"] or n == shown


def test_the_other_options_are_those_most_like_the_case():
    table, family = dishes(S=6)
    rng = np.random.default_rng(1)
    for k in range(6):  # what families 0 to 3 share, so that 4 and 5 are never among four options for them
        table[f"shared{k}"] = np.where(family < 4, rng.random(len(family)) < 0.9, rng.random(len(family)) < 0.02)
    model = fit(table, 6)
    design = make_design(model, arms=("bcm", "subspace"), options=4)
    alike = {s for s in range(6) if (family[model.labels_ == s] < 4).mean() > 0.9}
    assert len(alike) == 4
    for item in design.items:
        if item.correct in alike:
            assert set(item.options) == alike


def test_few_clusters_offer_all_of_them(animals):
    design = make_design(animals, arms=("bcm", "subspace"), items_per_block=4)
    assert {item.options for item in design.items} == {(0, 1, 2)}
    assert any("every question offers all" in words for words in design.made.values())


def test_tables_with_gaps(animals, lda):
    design = make_design(animals, items_per_block=4, overlap=0.4)
    for s in range(3):
        bcm, topic = (design.representation(arm, s).stimulus for arm in ("bcm", "lda"))
        assert bcm.kind == topic.kind == "table"
        assert len(bcm.lines) == len(topic.lines) == sum(value is not None for value in animals.prototype_cases_[s])
        assert all(line.value for line in (*bcm.lines, *topic.lines))


def test_digits(digits, lda):
    design = make_design(digits, arms=("bcm", "lda", "subspace"), image_shape=(8, 8), items_per_block=5, overlap=0.3)
    assert {len(design.of_set(name)) for name in "ABC"} == {5}
    for s in {r.cluster for r in design.representations}:
        bcm, topic, subspace = (design.representation(arm, s).stimulus for arm in ("bcm", "lda", "subspace"))
        inked = sum(1 for ink in bcm.ink if ink)
        assert inked == sum(ink is not None for ink in topic.ink)
        assert all(ink is None or ink > 0 for ink in topic.ink)
        assert bcm.marked == topic.marked == ()
        assert subspace.ink == bcm.ink
        assert subspace.marked == tuple(np.flatnonzero(digits.subspaces_[s]))
    assert "image" in design.texts.question


def test_the_subspace_is_marked_in_its_own_condition_only(meals):
    design = make_design(meals, arms=("subspace", "bcm"))
    assert design.conditions == ("bcm", "subspace")
    for s in range(5):
        plain, boxed = (design.representation(arm, s).stimulus for arm in ("bcm", "subspace"))
        keys = {name for name, key in zip(meals.feature_types_, meals.subspaces_[s], strict=True) if key}
        assert [line.name for line in plain.lines] == [line.name for line in boxed.lines]
        assert [line.marked for line in boxed.lines] == [line.name in keys for line in boxed.lines]
        assert not any(line.marked for line in plain.lines)


def test_a_number_of_clusters_that_was_found():
    model = fit(dishes(S=4)[0], "auto")
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert {r.cluster for r in design.representations} <= set(range(model.n_clusters_))
    assert not list(problems(design))


def test_a_separate_catalogue():
    table, _ = dishes(S=3)
    catalogue = {name: column[::2] for name, column in table.items()}
    model = fit(table, 3, candidates=catalogue).name_cases([f"entry {i}" for i in range(21)])
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert all(r.source.startswith("entry ") for r in design.representations)
    assert all(item.name == f"case {item.case}" for item in design.items)
    shown = {r.stimulus for r in design.representations}
    assert not shown & {item.stimulus for item in design.items}


class Twisted:
    """A model with some of its results replaced."""

    def __init__(self, model, **changes):
        self.__dict__ |= vars(model) | changes


def test_clusters_that_cannot_be_shown_are_left_out(meals):
    prototypes = meals.prototypes_.copy()
    prototypes[1] = prototypes[0]
    design = make_design(Twisted(meals, prototypes_=prototypes), arms=("bcm", "subspace"), items_per_block=4)
    gone = {0, 1} - {r.cluster for r in design.representations}
    assert len(gone) == 1
    assert gone.isdisjoint(itertools.chain.from_iterable(item.options for item in design.items))
    assert any(f"Cluster {min(gone)} is left out: its prototype looks like" in words for words in design.made.values())

    labels = meals.labels_.copy()
    labels[np.flatnonzero(labels == 2)[2:]] = 3
    design = make_design(Twisted(meals, labels_=labels), arms=("bcm", "subspace"), items_per_block=4)
    assert {r.cluster for r in design.representations} == {0, 1, 3, 4}
    assert any("Cluster 2 is left out: it has 2 cases" in words for words in design.made.values())


def test_an_empty_prototype_is_left_out_and_an_empty_case_is_not_asked_about():
    table, _ = dishes(S=4)
    table = {name: np.concatenate([column, np.zeros(12, dtype=bool)]) for name, column in table.items()}
    model = fit(table, 5)
    empty = [s for s in range(5) if not any(model.prototype_cases_[s])]
    assert empty, "this test needs the cluster of nothing"
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert set(empty).isdisjoint(r.cluster for r in design.representations)
    assert all(item.stimulus.lines for item in design.items)
    assert any("nothing that could be shown" in words for words in design.made.values())


def test_one_cluster_is_no_study():
    with pytest.raises(DesignError, match="two or more clusters"):
        make_design(fit(dishes(S=2)[0], 1), arms=("bcm", "subspace"))


def test_too_few_cases(meals):
    with pytest.raises(DesignError, match=r"but 101 are wanted; ask for fewer with --items-per-block (\d+)") as refusal:
        make_design(meals, arms=("bcm", "subspace"), items_per_block=50)
    most = int(str(refusal.value).rstrip(".").split()[-1])
    assert len(make_design(meals, arms=("bcm", "subspace"), items_per_block=most).items) == 2 * most + 1
    with pytest.raises(DesignError):
        make_design(meals, arms=("bcm", "subspace"), items_per_block=most + 1)


def test_unclear_cases_are_used_only_if_there_are_not_enough_others(meals):
    memberships = meals.memberships_.copy()
    clear = [i for s in range(5) for i in np.flatnonzero(meals.labels_ == s)[:5]]
    for i in set(range(len(memberships))) - set(clear):
        memberships[i] = 0.1
        memberships[i, meals.labels_[i]] = 0.6
    model = Twisted(meals, memberships_=memberships)
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=6)
    assert {item.case for item in design.items} <= set(clear)
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=14)
    flagged = {item.case for item in design.items if item.flags}
    assert flagged == {item.case for item in design.items} - set(clear) != set()
    assert all(item.flags == ("only 60% of it is in its cluster",) for item in design.items if item.case in flagged)
    assert any("must be looked at" in words for words in design.made.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"arms": ("bcm",)}, "--arms must be two or three"),
        ({"arms": ("bcm", "bcm")}, "--arms"),
        ({"arms": ("bcm", "svm")}, "bcm, svm"),
        ({"arms": ()}, "not none"),
        ({"options": 3}, "--options must be from 4 to 6, not 3"),
        ({"options": 7}, "--options"),
        ({"items_per_block": 0}, "--items-per-block"),
        ({"practice": -1}, "--practice"),
        ({"overlap": 0}, "--overlap"),
        ({"overlap": float("nan")}, "--overlap"),
        ({"tries": 0}, "--tries"),
        ({"resume": "sometimes"}, "--resume"),
        ({"break_every": 0}, "--break-every"),
        ({"break_seconds": -1}, "--break-seconds"),
        ({"arms": ("bcm", "subspace"), "lda": "topics.csv"}, "lda is not one of --arms"),
    ],
)
def test_wrong_wishes(meals, wrong, message):
    with pytest.raises(DesignError, match=message):
        make_design(meals, **wrong)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_attention_checks_come_within_any_number_of_questions(meals, n):
    design = make_design(meals, arms=("bcm", "subspace"), items_per_block=n, practice=0)
    assert len(design.checks) == 2
    assert sum(step.kind == "check" for step in plan(design, 0).steps) == 2
    assert design.of_set("practice") == ()


def test_what_is_to_be_filled_in_is_known(meals):
    design = make_design(meals, arms=("bcm", "subspace"))
    assert unfinished(design) == ("information", "contact")
    assert unfinished(small_design()) == ()


def test_every_part_is_rated_by_the_same_questions(meals):
    design = make_design(meals, arms=("bcm", "subspace"))
    stems = [question.id.removesuffix("_first") for question in design.questionnaire if question.id.endswith("_first")]
    assert len(stems) == 4
    assert {question.id for question in design.questionnaire} == {
        f"{stem}_{part}" for stem in stems for part in ("first", "second")
    }


def test_endings_have_codes(meals):
    rules = make_design(meals, arms=("bcm", "subspace")).rules
    codes = [end.code for end in (rules.complete, rules.no_consent, rules.timed_out)]
    assert len(set(codes)) == 3
    assert all(len(code) == 8 for code in codes)


# --- topics ---------------------------------------------------------------------------------------------------------------


def test_topics_are_matched_by_the_hungarian_method():
    labels = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    topics = Topics(("x", "y", "z"), np.eye(3), np.array([2, 2, 2, 0, 0, 2, 1, 1, 0]))
    match = match_topics(topics, labels, [0, 1, 2])
    assert match.topic == {0: 2, 1: 0, 2: 1}
    assert match.overlap == {0: 3 / 4, 1: 2 / 4, 2: 2 / 3}


def test_a_topic_belongs_to_one_cluster_even_if_two_like_it_best():
    labels = np.array([0] * 6 + [1] * 4)
    topics = Topics(("x", "y"), np.eye(2), np.array([0] * 9 + [1]))
    assert match_topics(topics, labels, [0, 1]).topic == {0: 0, 1: 1}


def test_top_words_of_an_image_are_of_different_pixels(digits):
    sight = Sight(digits, (8, 8))
    weights = np.linspace(1, 2, len(sight.values))
    words = top_words(sight, weights, 10)
    assert len({int(sight.feature[code]) for code in words}) == 10
    assert all(sight.level[code] > 0 for code in words)
    assert [weights[code] for code in words] == sorted((weights[code] for code in words), reverse=True)


def test_lda_is_run_anew_until_the_clusters_are_visible(meals, monkeypatch):
    good, asked = meals.labels_, []

    def fake(sight, cases, n_topics, seed):
        asked.append(seed)
        labels = good if seed == 9 else np.zeros_like(good)
        weights = np.array(
            [[1.0 + (good == s)[sight_case(cases, code)].sum() for code in range(len(sight.values))] for s in range(5)]
        )
        return Topics(tuple("vwxyz"), weights, labels)

    def sight_case(cases, code):
        return (cases == code).any(axis=1)

    monkeypatch.setattr(making, "fit_topics", fake)
    said = []
    design = make_design(meals, seed=7, say=said.append)
    assert asked == [7, 8, 9]
    assert len(said) == 3
    assert design.made["lda_seeds_tried"].startswith("7 (0.00), 8 (0.00), 9 (1.00)")
    assert "seed 9 is accepted" in design.made["lda"]
    with pytest.raises(DesignError, match=r"in 2 runs: at best \(seed 7\)"):
        make_design(meals, seed=7, tries=2)


def test_clusters_that_lda_does_not_show_are_left_out(meals, monkeypatch):
    """Two of five clusters share a topic: a study can be made of four."""

    def fake(sight, cases, n_topics, seed):
        labels = meals.labels_.copy()
        labels[labels == 4] = 0
        said = [[1.0 + (labels == s)[(cases == code).any(axis=1)].sum() for code in range(len(sight.values))] for s in range(5)]
        return Topics(tuple("vwxyz"), np.array(said), labels)

    monkeypatch.setattr(making, "fit_topics", fake)
    design = make_design(meals, seed=7, tries=2)
    assert {r.cluster for r in design.representations} == {0, 1, 2, 3}
    assert {item.correct for item in design.items} <= {0, 1, 2, 3}
    assert all(set(item.options) <= {0, 1, 2, 3} for item in design.items)
    assert "seed 7 is accepted, as 4 of 5 clusters" in design.made["lda"]
    assert any("Cluster 4 is left out: it overlaps with its topic by 0.00 only" in str(note) for note in design.made.values())


def test_lda_finds_the_families(meals, lda):
    sight = Sight(meals)
    topics = fit_topics(sight, meals._data.x, 5, seed=1)
    again = fit_topics(sight, meals._data.x, 5, seed=1)
    assert np.array_equal(topics.weights, again.weights)
    assert np.array_equal(topics.labels, again.labels)
    assert not topics.weights[:, ~sight.spoken].any()  # absent ingredients are no words


def test_lda_and_cases_without_words(lda):
    table, _ = dishes(S=3)
    table = {name: np.concatenate([column, [False]]) for name, column in table.items()}
    model = fit(table, 3)
    topics = fit_topics(Sight(model), model._data.x, 3, seed=0)
    assert topics.labels[-1] == -1
    assert (topics.labels[:-1] >= 0).all()


def test_topics_of_another_program(meals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", meals, meals.labels_)
    design = make_design(meals, lda=path)
    assert {r.source for r in design.representations if r.condition == "lda"} == {f"T{s}" for s in range(5)}
    assert [design.representation("lda", s).source for s in range(5)] == [f"T{s}" for s in range(5)]
    for s in range(5):
        words = design.representation("lda", s).stimulus.lines
        assert len(words) == len(design.representation("bcm", s).stimulus.lines)
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    topics: dict = {}
    for row in rows:
        topics.setdefault(row["topic"], {})[row["word"]] = int(row["weight"])
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    other = make_design(meals, lda=tmp_path / "topics.json")
    assert other.representations == design.representations


def test_topics_of_a_table(animals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", animals, animals.labels_)
    path.write_text(path.read_text("utf-8").replace("coat=", "coat  = "), "utf-8")
    design = make_design(animals, lda=path, items_per_block=4)
    assert all(line.value for r in design.representations for line in r.stimulus.lines)


def test_items_on_which_lda_differs_are_avoided_and_flagged(meals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", meals, meals.labels_)
    topics = read_topics(path, Sight(meals), meals._data.x)
    wrong = np.flatnonzero(topics.labels != meals.labels_)
    labels = meals.labels_.copy()  # as if the model had other opinions on some cases
    other = [i for s in range(5) for i in np.flatnonzero(meals.labels_ == s)[:2] if i not in meals.prototypes_]
    labels[other] = (labels[other] + 1) % 5
    memberships = np.eye(5)[labels]
    model = Twisted(meals, labels_=labels, memberships_=memberships)
    design = make_design(model, lda=path)
    assert not {item.case for item in design.items} & {*other, *wrong}
    design = make_design(model, lda=path, items_per_block=30)
    flagged = {item.case: item.flags for item in design.items if item.flags}
    assert flagged.keys() <= {*other, *wrong}
    assert flagged
    assert all(flags[0].startswith("LDA has it in cluster") for flags in flagged.values())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns topic, word and weight"),
        ("topic,word\n1,a0\n", "columns topic, word and weight"),
        ("topic,word,weight\n", "no topics"),
        ("topic,word,weight\n1,a00,1\n", "no such word; did you mean"),
        ("topic,word,weight\n1,qqqq,1\n", "no such word; words look like 'a0'"),
        ("topic,word,weight\n1,a0,much\n", "line 2: the weight 'much' is not a number"),
        ("topic,word,weight\n1,a0\n", "line 2: the weight None"),
        ("topic,word,weight\n1,a0,-1\n", "not negative"),
        ("topic,word,weight\n1,a0,nan\n", "not negative"),
        ("topic,word,weight\n1,a0,1\n1,a0,2\n", "twice"),
        ("topic,word,weight\n1,a0,0\n", "all weights are 0"),
        ("topic,word,weight\n1,a0,1\n2,b0,1\n", "2 topics, but 5 clusters"),
        ("{", "not JSON"),
        ("[1]", "must be {topic"),
        ('{"1": 3}', "must be {topic"),
        ('{"1": {"a0": "x"}}', "must be a number"),
        ('{"1": {"a0": true}}', "must be a number"),
        ("".join(["topic,word,weight\n", *(f"{s},{'abcde'[s]}0,1\n" for s in range(5))]), "has 1 word, but the prototype"),
    ],
)
def test_topics_that_cannot_be_used(meals, tmp_path, text, message):
    path = tmp_path / "topics.csv"
    path.write_text(text)
    with pytest.raises(DesignError, match=message):
        make_design(meals, lda=path)


def test_topics_that_do_not_show_the_clusters(meals, tmp_path):
    mixed = np.arange(len(meals.labels_)) % 5
    path = write_topics(tmp_path / "topics.csv", meals, mixed)
    with pytest.raises(DesignError, match="overlap by"):
        make_design(meals, lda=path)


# --- coders ---------------------------------------------------------------------------------------------------------------


def write_coders(path, first, second, cases=None):
    rows = [(i if cases is None else cases[i], a, b) for i, (a, b) in enumerate(zip(first, second, strict=True))]
    path.write_text("case,coder1,coder2\n" + "".join(f"{c},{a},{b}\n" for c, a, b in rows), "utf-8")
    return path


def test_kappa():
    assert cohen_kappa([("a", "a"), ("b", "b")]) == 1
    assert cohen_kappa([("a", "b"), ("b", "a")]) == -1
    assert cohen_kappa([("a", "a"), ("a", "a")]) is None
    # 20 both yes, 15 both no, 5 and 10 apart: (0.7 - 0.5) / 0.5
    assert cohen_kappa([("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15) == pytest.approx(0.4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=(2, 200))
    assert cohen_kappa(list(zip(a.tolist(), b.tolist(), strict=True))) == pytest.approx(cohen_kappa_score(a, b))


def test_coders_who_agree_with_the_model(meals, tmp_path):
    path = write_coders(tmp_path / "c.csv", meals.labels_, meals.labels_)
    design = make_design(meals, arms=("bcm", "subspace"), coders=path)
    assert "Cohen's kappa is 1.000" in design.made["coders"]
    assert not any(item.flags for item in design.items)


def test_words_mean_the_cluster_that_most_of_their_cases_are_in(meals, tmp_path):
    words = np.array(["soup", "cake", "tea", "bread", "pie"])[meals.labels_]
    words[np.flatnonzero(words == "soup")[0]] = "cake"
    coded = read_coders(write_coders(tmp_path / "c.csv", words, words, meals.case_names_), meals.case_names_, meals.labels_, 5)
    assert coded.cluster == {"soup": 0, "cake": 1, "tea": 2, "bread": 3, "pie": 4}
    assert coded.flags(int(np.flatnonzero(meals.labels_ == 0)[0]), 0) == ["coders say cake, which is cluster 1"]
    assert coded.flags(int(np.flatnonzero(meals.labels_ == 0)[1]), 0) == []


def test_numbers_from_one_are_words(meals, tmp_path):
    path = write_coders(tmp_path / "c.csv", meals.labels_ + 1, meals.labels_ + 1)
    coded = read_coders(path, None, meals.labels_, 5)
    assert coded.cluster == {str(s + 1): s for s in range(5)}


def test_items_on_which_coders_differ_are_avoided_and_flagged(meals, tmp_path):
    first, second = meals.labels_.astype(object), meals.labels_.astype(object)
    cases = np.random.default_rng(0).permutation(len(first))
    differ, both, blank = cases[:12], cases[12:20], cases[20:26]
    second[differ] = (second[differ] + 1) % 5
    first[both] = second[both] = (meals.labels_[both] + 2) % 5
    second[blank] = ""
    path = write_coders(tmp_path / "c.csv", first, second)
    design = make_design(meals, arms=("bcm", "subspace"), coders=path)
    assert not {item.case for item in design.items} & {*differ, *both, *blank}
    design = make_design(meals, arms=("bcm", "subspace"), coders=path, items_per_block=28)
    flags = {item.case: " ".join(item.flags) for item in design.items}
    assert all(bool(flags[i]) == (i in {*differ, *both, *blank}) for i in flags)
    assert all("coders differ" in flags[i] for i in differ if i in flags)
    assert all("coders say" in flags[i] for i in both if i in flags)
    assert all("not coded" in flags[i] for i in blank if i in flags)
    assert sum(map(bool, flags.values())) > 5


def test_one_label_only_has_no_kappa(meals, tmp_path):
    ones = np.zeros_like(meals.labels_)
    assert "not defined" in str(read_coders(write_coders(tmp_path / "c.csv", ones, ones), None, meals.labels_, 5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case,coder1\n0,1\n", "three columns"),
        ("name,coder1,coder2\n0,1,1\n", "three columns"),
        ("case,coder1,coder2,coder3\n0,1,1,1\n", "three columns"),
        ("case,coder1,coder2\n500,1,1\n", "'500', which the model does not have"),
        ("case,coder1,coder2\nnobody,1,1\n", "'nobody'"),
        ("case,coder1,coder2\n0,1,1\n0,1,2\n", "'0' twice"),
        ("case,coder1,coder2\n0,,1\n1,1,\n", "no case with a label of both"),
    ],
)
def test_coders_that_cannot_be_used(meals, tmp_path, text, message):
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(DesignError, match=message):
        make_design(meals, arms=("bcm", "subspace"), coders=path)


def test_a_name_of_several_cases_is_no_name(meals, tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("case,coder1,coder2\nsame,1,1\n")
    with pytest.raises(DesignError, match="several cases"):
        read_coders(path, ["same"] * 70, meals.labels_, 5)


# --- the command line -----------------------------------------------------------------------------------------------------


def call(*args, code=0):
    result = CliRunner().invoke(main, ["study", *map(str, args)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def saved(meals, tmp_path):
    meals.save(tmp_path / "meals.bcm")
    return tmp_path / "meals.bcm"


def test_new_freeze_and_schedule(saved, tmp_path):
    folder = tmp_path / "study"
    made = call("new", saved, "-o", folder, "--arms", "bcm, subspace", "--noun", "dish", "--paper-mode")
    design = read_design(folder)
    assert design.mode == "paper"
    assert "SHA-256" in design.made["model_file"]
    assert "FILL IN" in made.stderr
    assert "items:" in made.stdout
    assert "not frozen" in call("schedule", folder).stderr
    assert call("freeze", folder).stdout == f"Frozen: {design.hash}\n"
    shown = call("schedule", folder, "--people", 6)
    assert "not frozen" not in shown.stderr
    lines = shown.stdout.splitlines()
    for slot in range(6):
        found = plan(design, slot)
        assert lines[1 + slot].split(maxsplit=1)[0] == str(slot)
        assert str(found.cell) in lines[1 + slot]
        assert lines[1 + slot].endswith(" ".join(trial.item for trial in found.trials))
    assert lines[-2:] == ["bcm (A) then subspace (B): 3", "subspace (B) then bcm (A): 3"]


def test_schedules_in_files(tmp_path):
    write_design(small_design(), tmp_path / "s")
    whole = json.loads(call("schedule", tmp_path / "s", "--people", 3, "--json").stdout)
    assert [person["slot"] for person in whole["people"]] == [0, 1, 2]
    assert whole["design"] == small_design().hash
    assert whole["frozen"] is False
    call("schedule", tmp_path / "s", "--people", 3, "-o", tmp_path / "s.json")
    assert json.loads((tmp_path / "s.json").read_text("utf-8")) == whole
    call("schedule", tmp_path / "s", "--people", 3, "-o", tmp_path / "s.csv")
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text("utf-8").splitlines()))
    assert len(rows) == 48
    trial = plan(small_design(), 1).trials[0]
    assert rows[16]["item"] == trial.item
    assert rows[16]["options"] == " ".join(map(str, trial.options))


def test_edits_are_not_lost_by_accident(saved, tmp_path):
    folder = tmp_path / "study"
    wishes = (saved, "-o", folder, "--arms", "bcm,subspace")
    call("new", *wishes)
    edited = replace(read_design(folder), title="Mine")
    write_design(edited, folder)
    assert "--replace" in call("new", *wishes, code=1).stderr
    assert read_design(folder).title == "Mine"
    call("new", *wishes, "--replace")
    assert read_design(folder).title != "Mine"
    call("freeze", folder)
    assert "is frozen" in call("new", *wishes, "--replace", code=1).stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("new", "nothing.bcm"), "No such file"),
        (("new", "MODEL", "--arms", "bcm"), "--arms must be"),
        (("new", "MODEL", "--image", 2, 2), "--image 2 2 has 4 pixels"),
        (("new", "MODEL", "--lda", "nothing.csv"), "No such file"),
        (("new", "MODEL", "--options", 9), "--options must be from 4 to 6"),
        (("new", "MODEL", "--arms", "bcm,subspace", "--coders", "nothing.csv"), "No such file"),
        (("new", "MODEL", "-o", "MODEL"), "is a file; give a folder"),
        (("freeze", "nowhere"), "There is no design.json"),
        (("schedule", "nowhere"), "There is no design.json"),
    ],
)
def test_wrong_input_is_one_sentence(saved, tmp_path, monkeypatch, args, message):
    monkeypatch.chdir(tmp_path)
    error = call(*(saved if arg == "MODEL" else arg for arg in args), code=1).stderr
    assert error.startswith("Error: ")
    assert message in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "study").exists()


def test_a_design_made_by_the_command_can_be_extended_by_hand(saved, tmp_path):
    folder = tmp_path / "study"
    call("new", saved, "-o", folder, "--arms", "bcm,subspace")
    value = json.loads((folder / "design.json").read_text("utf-8"))
    value["checks"].append({"id": "mine", "text": "Two?", "options": ["one", "two"], "correct": 1, "after": 2})
    (folder / "design.json").write_text(json.dumps(value), "utf-8")
    assert Check("mine", "Two?", ("one", "two"), 1, 2) in read_design(folder).checks
