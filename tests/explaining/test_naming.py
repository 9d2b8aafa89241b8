"""Names of clusters: made of what sets them apart, given by hand, kept and used everywhere."""

import copy

import numpy as np
import pytest

from bayescase import BayesianCaseModel, ParameterError
from bayescase.explaining.naming import SHORT, make_names, short_name


def test_made_names_are_short_distinct_and_of_what_sets_the_clusters_apart(recipes):
    names = make_names(recipes.fitted_)
    assert len(set(names)) == len(names) == 5
    for cluster in recipes.explain().clusters:
        assert names[cluster.cluster] == cluster.name
        assert cluster.name.startswith(cluster.more_often[0].words)
        assert not cluster.named


def test_a_name_has_as_many_words_as_fit():
    assert short_name(["a" * 12, "b" * 12, "c" * 12], 1) == f"{'a' * 12}, {'b' * 12}"
    assert short_name(["a" * 12, "b" * SHORT, "c" * 12], 1) == f"{'a' * 12}, {'c' * 12}"
    assert short_name(["a" * SHORT, "b"], 1) == "a" * SHORT
    assert short_name(["a" * SHORT, "b"], 2) == f"{'a' * SHORT}, b"
    assert short_name([], 1) == ""


def test_clusters_that_share_their_most_telling_value_get_longer_names():
    long = "a feature with a name of some length"
    labels = np.repeat([0, 1, 2], 30)
    columns = {long: labels < 2, "b": labels == 1, "c": np.r_[np.ones(45, bool), np.zeros(45, bool)]}
    pins = {"cases": dict(enumerate(labels.tolist()))}
    names = make_names(BayesianCaseModel(3, n_iter=10, n_chains=1, random_state=0).fit(columns, pins=pins).fitted_)
    assert len(set(names)) == 3


def test_names_that_would_be_equal_go_on_with_what_the_others_do_not_have():
    """Not with a number."""
    labels = np.repeat([0, 1, 2, 3], 30)
    long = "a feature with a rather long name"
    rng = np.random.default_rng(0)
    columns = {long: labels < 2, "b": (labels < 2) & (rng.random(120) < 0.9), "c": (labels < 2) & (rng.random(120) < 0.9)}
    columns |= {"d": (labels < 2) & (rng.random(120) < 0.9), "e": (labels == 1) & (rng.random(120) < 0.8), "f": labels == 2}
    pins = {"cases": dict(enumerate(labels.tolist()))}
    names = make_names(BayesianCaseModel(4, n_iter=10, n_chains=1, random_state=0).fit(columns, pins=pins).fitted_)
    assert names[1] == f"{names[0]}, e"
    assert len(set(names)) == 4
    assert names[2:] == ("f", "")


def test_clusters_without_cases_or_without_anything_telling_have_no_made_name(unused, alone):
    names = make_names(unused.fitted_)
    assert [bool(name) for name in names] == (unused.fitted_.sizes > 0).tolist()
    assert make_names(alone.fitted_) == ("",)


def test_names_by_hand_are_used_everywhere(words, tmp_path):
    model = BayesianCaseModel(3, n_iter=100, n_chains=2, random_state=0)
    model.fit({f"w{j}": column for j, column in enumerate(words.fitted_.encoding.decode(words.fitted_.data.x).T)})
    made = make_names(model.fitted_)
    assert model.cluster_names_ is None
    model.name_clusters({1: "short  texts"})
    assert model.cluster_names_ == [made[0], "short texts", made[2]]
    assert [c.name for c in model.explain().clusters] == model.cluster_names_
    assert all(c.named == (c.cluster == 1) for c in model.explain().clusters)
    assert "Cluster 1: short texts" in str(model.explain())
    row = int(np.flatnonzero(model.labels_ == 1)[0])
    assert "in cluster 1 (short texts)" in str(model.explain_case(row))
    assert "in cluster 1 (short texts): " in str(model.explain_pair(0, 1))
    assert model.explain_agreement(1).name == "short texts"
    assert "short texts" in model._repr_html_()
    model.save(tmp_path / "m")
    assert BayesianCaseModel.load(tmp_path / "m").cluster_names_ == model.cluster_names_
    model.name_clusters(["a", "b", "c"])
    assert [c.name for c in model.explain().clusters] == ["a", "b", "c"]
    assert model.name_clusters().cluster_names_ == list(made)
    assert model.name_clusters(["", "b", " \n"]).cluster_names_ == [made[0], "b", made[2]], "a blank is no name"
    assert model.name_clusters({1: ""}).cluster_names_ == list(made)


def test_names_of_cases_do_not_forget_those_of_clusters(words):
    named = words.fitted_.with_cluster_names(("a", "b", "c"))
    assert named.named(None).cluster_names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b"], "There are 2 names, but the model has 3 clusters"),
        ({3: "a"}, "There is no cluster 3 to name"),
        ({"a": "b"}, "There is no cluster 'a' to name"),
        ({True: "b"}, "There is no cluster True to name"),
        ("abc", "must be a list or a mapping"),
        (7, "must be a list or a mapping"),
    ],
)
def test_wrong_names_are_refused(words, names, message):
    with pytest.raises(ParameterError, match=message):
        words.name_clusters(names)
    assert words.cluster_names_ is None


def test_only_names_that_a_person_gave_are_said_twice(words):
    """A made name is what a sentence says the cluster is known by."""
    model = copy.copy(words)
    assert not any(c.named for c in model.name_clusters().explain().clusters)
    model.name_clusters({1: "mine", 2: None})
    assert [c.cluster for c in model.explain().clusters if c.named] == [1]
    made = [c.name for c in words.explain().clusters]
    model.name_clusters([None, "mine", None])
    assert [c.name for c in model.explain().clusters] == [made[0], "mine", made[2]]
    assert model.explain().clusters[0].sentence == words.explain().clusters[0].sentence
