"""LDA beside the clusters, fitted and read."""

import csv
import json

import numpy as np
import pytest

from bayescase.study.design import topic_arm
from bayescase.study.design.design import DesignError
from bayescase.study.design.making import make_design
from bayescase.study.design.topics import Topics, fit_topics, match_topics, read_topics, top_words

from .models import dishes, fit, twisted, view_of, write_topics


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
    view, _ = view_of(digits, (8, 8))
    weights = np.linspace(1, 2, len(view.values))
    words = top_words(view, weights, 10)
    assert len({int(view.feature[code]) for code in words}) == 10
    assert all(view.ink[code] > 0 for code in words)
    assert [weights[code] for code in words] == sorted((weights[code] for code in words), reverse=True)


def test_lda_is_run_anew_until_the_clusters_are_visible(meals, monkeypatch):
    good, asked = meals.labels_, []

    def fake(view, cases, n_topics, seed):
        asked.append(seed)
        labels = good if seed == 9 else np.zeros_like(good)
        weights = np.array(
            [[1.0 + (good == s)[cases_with(cases, code)].sum() for code in range(len(view.values))] for s in range(5)]
        )
        return Topics(tuple("vwxyz"), weights, labels)

    def cases_with(cases, code):
        return (cases == code).any(axis=1)

    monkeypatch.setattr(topic_arm, "fit_topics", fake)
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

    def fake(view, cases, n_topics, seed):
        labels = meals.labels_.copy()
        labels[labels == 4] = 0
        said = [[1.0 + (labels == s)[(cases == code).any(axis=1)].sum() for code in range(len(view.values))] for s in range(5)]
        return Topics(tuple("vwxyz"), np.array(said), labels)

    monkeypatch.setattr(topic_arm, "fit_topics", fake)
    design = make_design(meals, seed=7, tries=2)
    assert {r.group for r in design.explanations} == {0, 1, 2, 3}
    assert {item.correct for item in design.items} <= {0, 1, 2, 3}
    assert all(set(item.options) <= {0, 1, 2, 3} for item in design.items)
    assert "seed 7 is accepted, as 4 of 5 clusters" in design.made["lda"]
    assert any("Cluster 4 is left out: it overlaps with its topic by 0.00 only" in str(note) for note in design.made.values())


def test_lda_finds_the_families(meals, lda):
    view, cases = view_of(meals)
    topics = fit_topics(view, cases, 5, seed=1)
    again = fit_topics(view, cases, 5, seed=1)
    assert np.array_equal(topics.weights, again.weights)
    assert np.array_equal(topics.labels, again.labels)
    assert not topics.weights[:, ~view.is_word].any()  # absent ingredients are no words


def test_lda_and_cases_without_words(lda):
    table, _ = dishes(S=3)
    table = {name: np.concatenate([column, [False]]) for name, column in table.items()}
    model = fit(table, 3)
    topics = fit_topics(*view_of(model), 3, seed=0)
    assert topics.labels[-1] == -1
    assert (topics.labels[:-1] >= 0).all()


def test_topics_of_another_program(meals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", meals, meals.labels_)
    design = make_design(meals, lda=path)
    assert {r.source for r in design.explanations if r.condition == "lda"} == {f"T{s}" for s in range(5)}
    assert [design.explanation("lda", s).source for s in range(5)] == [f"T{s}" for s in range(5)]
    for s in range(5):
        words = design.explanation("lda", s).stimulus.lines
        assert len(words) == len(design.explanation("bcm", s).stimulus.lines)
    rows = list(csv.DictReader(path.read_text("utf-8").splitlines()))
    topics: dict = {}
    for row in rows:
        topics.setdefault(row["topic"], {})[row["word"]] = int(row["weight"])
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    other = make_design(meals, lda=tmp_path / "topics.json")
    assert other.explanations == design.explanations


def test_topics_of_a_table(animals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", animals, animals.labels_)
    path.write_text(path.read_text("utf-8").replace("coat=", "coat  = "), "utf-8")
    design = make_design(animals, lda=path, items_per_block=4)
    assert all(line.value for r in design.explanations for line in r.stimulus.lines)


def test_items_on_which_lda_differs_are_avoided_and_flagged(meals, tmp_path):
    path = write_topics(tmp_path / "topics.csv", meals, meals.labels_)
    topics = read_topics(path, *view_of(meals))
    wrong = np.flatnonzero(topics.labels != meals.labels_)
    labels = meals.labels_.copy()  # as if the model had other opinions on some cases
    other = [i for s in range(5) for i in np.flatnonzero(meals.labels_ == s)[:2] if i not in meals.prototypes_]
    labels[other] = (labels[other] + 1) % 5
    memberships = np.eye(5)[labels]
    model = twisted(meals, labels=labels, memberships=memberships)
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
