"""A model becomes a study: what is shown, what is asked."""

import itertools
import json
from collections import Counter

import numpy as np
import pytest

from bayescase.study.design import items as choosing
from bayescase.study.design.design import DesignError
from bayescase.study.design.design_checks import problems
from bayescase.study.design.design_file import unfinished
from bayescase.study.design.making import make_design
from bayescase.study.design.schedule import plan

from ..designs import small_design
from .models import dishes, fit, twisted


def test_recipes_like_the_paper(meals, lda):
    design = make_design(meals, noun="dish")
    assert tuple(design.labels) == ("bcm", "lda")
    assert {name: len(design.of_set(name)) for name in ("A", "B", "practice")} == {"A": 8, "B": 8, "practice": 1}
    assert (design.rules.break_every, design.rules.break_seconds, design.mode) == (4, 5, "crossed")
    words = json.dumps([str(item.stimulus) for item in (*design.items, *design.explanations)])
    assert "dish" not in words  # no names
    assert "dish" in design.texts.question
    assert "as quickly and as accurately as possible" in design.texts.instructions
    for s in range(5):
        prototype = {name for name, value in zip(meals.feature_types_, meals.prototype_cases_[s], strict=True) if value}
        shown = design.explanation("bcm", s).stimulus
        assert {line.name for line in shown.lines} == prototype
        assert not any(line.marked for line in shown.lines)
        topic = design.explanation("lda", s).stimulus
        assert len(topic.lines) == len(prototype)  # the length is matched
        family = Counter(line.name[0] for line in topic.lines).most_common(1)[0][0]
        assert family == Counter(name[0] for name in prototype).most_common(1)[0][0]  # and so is the cluster
    assert not list(problems(design))


def test_the_same_call_makes_the_same_design(meals, lda):
    assert make_design(meals, seed=3).hash == make_design(meals, seed=3).hash
    assert [item.case for item in make_design(meals, seed=3).items] != [item.case for item in make_design(meals, seed=4).items]


def test_items(meals, lda):
    design = make_design(meals)
    prototypes = {design.explanation("bcm", s).stimulus for s in range(5)}
    assert len({item.case for item in design.items}) == len({item.stimulus for item in design.items}) == 17
    for item in design.items:
        assert item.correct == meals.labels_[item.case]
        assert meals.memberships_[item.case, item.correct] >= choosing.CLEAR
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
    shown = len({r.group for r in design.explanations})
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
        bcm, topic = (design.explanation(arm, s).stimulus for arm in ("bcm", "lda"))
        assert bcm.kind == topic.kind == "table"
        assert len(bcm.lines) == len(topic.lines) == sum(value is not None for value in animals.prototype_cases_[s])
        assert all(line.value for line in (*bcm.lines, *topic.lines))


def test_digits(digits, lda):
    design = make_design(digits, arms=("bcm", "lda", "subspace"), image_shape=(8, 8), items_per_block=5, overlap=0.3)
    assert {len(design.of_set(name)) for name in "ABC"} == {5}
    for s in {r.group for r in design.explanations}:
        bcm, topic, subspace = (design.explanation(arm, s).stimulus for arm in ("bcm", "lda", "subspace"))
        inked = sum(1 for ink in bcm.ink if ink)
        assert inked == sum(ink is not None for ink in topic.ink)
        assert all(ink is None or ink > 0 for ink in topic.ink)
        assert bcm.marked == topic.marked == ()
        assert subspace.ink == bcm.ink
        keys = tuple(j for j, feature in enumerate(digits.explain().cluster(s).features) if feature.key)
        assert subspace.marked == keys != ()
    assert "image" in design.texts.question


def test_the_subspace_is_marked_in_its_own_condition_only(meals):
    design = make_design(meals, arms=("subspace", "bcm"))
    assert tuple(design.labels) == ("bcm", "subspace")
    for s in range(5):
        plain, boxed = (design.explanation(arm, s).stimulus for arm in ("bcm", "subspace"))
        keys = {feature.name for feature in meals.explain().cluster(s).features if feature.key}  # what is shown is copied, too
        assert keys < {name for name, part in zip(meals.feature_types_, meals.subspaces_[s], strict=True) if part}
        assert [line.name for line in plain.lines] == [line.name for line in boxed.lines]
        assert [line.marked for line in boxed.lines] == [line.name in keys for line in boxed.lines]
        assert any(line.marked for line in boxed.lines)
        assert not any(line.marked for line in plain.lines)


def test_a_number_of_clusters_that_was_found():
    model = fit(dishes(S=4)[0], "auto")
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert {r.group for r in design.explanations} <= set(range(model.n_clusters_))
    assert not list(problems(design))


def test_a_separate_catalogue():
    table, _ = dishes(S=3)
    catalogue = {name: column[::2] for name, column in table.items()}
    model = fit(table, 3, candidates=catalogue, case_names=[f"entry {i}" for i in range(21)])
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert all(r.source.startswith("entry ") for r in design.explanations)
    assert all(item.name == f"case {item.case}" for item in design.items)
    shown = {r.stimulus for r in design.explanations}
    assert not shown & {item.stimulus for item in design.items}


def test_bags_are_shown_as_sets():
    table, _ = dishes(S=3)
    bags = [[name for name in table if table[name][i]] for i in range(42)]
    design = make_design(fit({"dish": bags}, 3), arms=("bcm", "subspace"), items_per_block=4)
    for item in design.items:
        assert (item.stimulus.kind, {line.name for line in item.stimulus.lines}) == ("set", set(bags[item.case]))
    assert all(line.value is None for shown in design.explanations for line in shown.stimulus.lines)
    assert any(line.marked for shown in design.explanations for line in shown.stimulus.lines)


def test_beside_a_table_only_items_that_are_there_are_shown():
    table, family = dishes(S=3)
    bags = [[name for name in table if table[name][i]] for i in range(42)]
    mixed = {"course": np.array(["soup", "main", "sweet"])[family], "dish": bags}
    design = make_design(fit(mixed, 3), arms=("bcm", "subspace"), items_per_block=4)
    for item in design.items:
        assert item.stimulus.kind == "table"
        assert {line.name for line in item.stimulus.lines} == {"course", *bags[item.case]}


def test_clusters_that_cannot_be_shown_are_left_out(meals):
    prototypes = meals.prototypes_.copy()
    prototypes[1] = prototypes[0]
    design = make_design(twisted(meals, prototypes=prototypes), arms=("bcm", "subspace"), items_per_block=4)
    gone = {0, 1} - {r.group for r in design.explanations}
    assert len(gone) == 1
    assert gone.isdisjoint(itertools.chain.from_iterable(item.options for item in design.items))
    assert any(f"Cluster {min(gone)} is left out: its prototype looks like" in words for words in design.made.values())

    labels = meals.labels_.copy()
    labels[np.flatnonzero(labels == 2)[2:]] = 3
    design = make_design(twisted(meals, labels=labels), arms=("bcm", "subspace"), items_per_block=4)
    assert {r.group for r in design.explanations} == {0, 1, 3, 4}
    assert any("Cluster 2 is left out: it has 2 cases" in words for words in design.made.values())


def test_an_empty_prototype_is_left_out_and_an_empty_case_is_not_asked_about():
    table, _ = dishes(S=4)
    table = {name: np.concatenate([column, np.zeros(12, dtype=bool)]) for name, column in table.items()}
    model = fit(table, 5)
    empty = [s for s in range(5) if not any(model.prototype_cases_[s])]
    assert empty, "this test needs the cluster of nothing"
    design = make_design(model, arms=("bcm", "subspace"), items_per_block=4)
    assert set(empty).isdisjoint(r.group for r in design.explanations)
    assert all(item.stimulus.lines for item in design.items)
    assert any("nothing that could be shown" in words for words in design.made.values())


def test_one_cluster_is_no_study():
    with pytest.raises(DesignError, match="two or more clusters"):
        make_design(fit(dishes(S=2)[0], 1), arms=("bcm", "subspace"))


def test_too_few_cases(meals):
    with pytest.raises(DesignError, match=r"but 101 are wanted; ask for fewer with items_per_block=(\d+)") as refusal:
        make_design(meals, arms=("bcm", "subspace"), items_per_block=50)
    most = int(str(refusal.value).rstrip(".").split("=")[-1])
    assert len(make_design(meals, arms=("bcm", "subspace"), items_per_block=most).items) == 2 * most + 1
    with pytest.raises(DesignError):
        make_design(meals, arms=("bcm", "subspace"), items_per_block=most + 1)


def test_unclear_cases_are_used_only_if_there_are_not_enough_others(meals):
    memberships = meals.memberships_.copy()
    clear = [i for s in range(5) for i in np.flatnonzero(meals.labels_ == s)[:5]]
    for i in set(range(len(memberships))) - set(clear):
        memberships[i] = 0.1
        memberships[i, meals.labels_[i]] = 0.6
    model = twisted(meals, memberships=memberships)
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
        ({"arms": ("bcm",)}, "arms must be two or three"),
        ({"arms": ("bcm", "bcm")}, "arms"),
        ({"arms": ("bcm", "svm")}, "bcm, svm"),
        ({"arms": ()}, "not none"),
        ({"options": 3}, "options must be from 4 to 6, not 3"),
        ({"options": 7}, "options"),
        ({"items_per_block": 0}, "items_per_block"),
        ({"practice": -1}, "practice"),
        ({"overlap": 0}, "overlap"),
        ({"overlap": float("nan")}, "overlap"),
        ({"tries": 0}, "tries"),
        ({"resume": "sometimes"}, "resume"),
        ({"break_every": 0}, "break_every"),
        ({"break_seconds": -1}, "break_seconds"),
        ({"layout": "mixed"}, "layout must be one of within, between"),
        ({"layout": "between", "paper_mode": True}, "paper_mode"),
        ({"order": "by length"}, "order"),
        ({"language": "tlh"}, "language must be one of de, en"),
        ({"platform": "friends"}, "platform must be one of prolific"),
        ({"admission": "all"}, "admission"),
        ({"quota": 0}, "quota must be at least 1"),
        ({"arms": ("bcm", "subspace"), "lda": "topics.csv"}, "lda is not one of arms"),
    ],
)
def test_wrong_wishes(meals, wrong, message):
    with pytest.raises(DesignError, match=message):
        make_design(meals, **wrong)


@pytest.mark.parametrize("n", [1, 2, 8])
def test_attention_checks_come_within_any_number_of_questions(meals, n):
    design = make_design(meals, arms=("bcm", "subspace"), items_per_block=n, practice=0)
    assert [check.after > 0 for check in design.checks] == [False, True, True]  # comprehension, and two of attention
    assert sum(step.kind == "check" for step in plan(design, 0).steps) == 2
    assert design.of_set("practice") == ()


def test_what_is_to_be_filled_in_is_known(meals):
    design = make_design(meals, arms=("bcm", "subspace"))
    assert unfinished(design) == ("texts.information", "texts.contact")
    whole = make_design(meals, arms=("bcm", "subspace"), contact="Ann", reviewed_by="board 1")
    assert unfinished(whole) == ()
    assert "reviewed by board 1" in whole.texts.information
    assert unfinished(small_design()) == ()


def test_every_part_is_rated_after_it(meals):
    design = make_design(meals, arms=("bcm", "subspace"))
    assert len(design.block_ratings) == 4
    assert [step.ref for step in plan(design, 0).steps if step.kind == "ratings"] == ["0", "1"]


def test_wishes_reach_the_design(meals):
    design = make_design(
        meals, arms=("bcm", "subspace"), language="de", layout="between", order="alphabetical", confidence=True, quota=30,
        sample_size=28, keep_days=90, admission="invited", platform="sona", hypotheses=("one", "two"), stopping="then",
    )  # fmt: skip
    assert (design.language, design.layout, design.order) == ("de", "between", "alphabetical")
    assert design.texts.question == "Zu welcher Gruppe gehört dieses Beispiel?"
    assert [likert.id for likert in design.item_ratings] == ["confidence"]
    assert design.rules.keep_days == 90
    assert "90 Tagen" in design.texts.information
    rule = design.rules.admission
    assert (rule.who, rule.id_parameter, rule.quota) == ("invited", "id", 30)
    assert (design.plan.sample_size, design.plan.hypotheses, design.plan.stopping) == (28, ("one", "two"), "then")
    assert len(design.of_set("A")) == 8
    assert not design.of_set("B")


def test_endings_have_codes(meals):
    rules = make_design(meals, arms=("bcm", "subspace")).rules
    endings = (rules.complete, rules.no_consent, rules.timed_out, rules.screened_out)
    codes = [end.code for end in endings]
    assert len(set(codes)) == 4
    assert all(end.address == f"https://app.prolific.com/submissions/complete?cc={end.code}" for end in endings)
    assert all(len(code) == 8 for code in codes)
