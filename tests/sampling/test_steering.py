"""What a user holds fixed or makes likely: pins, and priors of prototypes and subspaces."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from bayescase import BayesianCaseModel

from ..helpers import check_refused, fit_model

QUICK = {"n_iter": 40, "n_chains": 3, "keep_draws": True, "random_state": 0}


@pytest.fixture(scope="module")
def table(planted):
    """Named columns, some cells missing, three clusters."""
    x, labels = planted(N=60, P=6, V=4, S=3, seed=5)
    X = pd.DataFrame(x, columns=list("abcdef")).astype(float)
    X.iloc[3, 2] = X.iloc[40, 0] = np.nan
    return X, labels


def cells_of(model, row):
    """Labels of the observed cells of a case, in every kept draw of every chain."""
    return model.draws_.z[:, :, row, model.fitted_.data.x[row] >= 0]


# --- pins ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0, 0.1, 5.0, "learn"])
@pytest.mark.parametrize("init", ["mixed", "cells", "labels"])
def test_what_is_pinned_holds_in_every_draw(table, sampler, alpha, init):
    X, labels = table
    pins = {
        "prototypes": {2: 7, 0: 9},
        "subspaces": {1: {"a": True, "b": False}, 2: {5: True}},
        "cases": {0: 2, 3: 1, 4: 1, 59: 0},
    }
    start = labels if init == "labels" else init
    model = fit_model(X, 3, alpha=alpha, sampler=sampler, pins=pins, init=start, **QUICK)
    p, omega = model.draws_.p, model.draws_.omega
    assert (p[..., 2] == 7).all()
    assert (p[..., 0] == 9).all()
    assert omega[:, :, 1, 0].all()
    assert not omega[:, :, 1, 1].any()
    assert omega[:, :, 2, 5].all()
    assert len(np.unique(p[..., 1])) > 1  # what is free moves
    assert 0 < omega[:, :, 0].mean() < 1
    for row, cluster in pins["cases"].items():
        assert (cells_of(model, row) == cluster).all()
    # and so do the results, under the same numbers
    assert model.prototypes_[2] == 7
    assert model.prototypes_[0] == 9
    assert [candidate.probability for candidate in model.prototype_probabilities_[2]] == [1.0]
    assert model.subspace_probabilities_[1, :2].tolist() == [1.0, 0.0]
    assert model.labels_[[0, 3, 4, 59]].tolist() == [2, 1, 1, 0]


def test_pins_bring_clusters_to_their_numbers(planted, sampler):
    """One case of each planted cluster is enough to number them, whatever the sizes of the clusters."""
    x, labels = planted(N=90, P=10, V=4, S=3, seed=2, noise=0.1)
    for order in ([0, 1, 2], [2, 0, 1], [1, 0, 2]):
        pins = {"cases": {int(np.flatnonzero(labels == s)[0]): order[s] for s in range(3)}}
        model = BayesianCaseModel(3, sampler=sampler, n_iter=60, n_chains=2, random_state=1).fit(x, pins=pins)
        assert (model.labels_ == np.array(order)[labels]).mean() > 0.9


def test_pinned_prototypes_number_the_clusters(planted, sampler):
    x, labels = planted(N=90, P=10, V=4, S=3, seed=2, noise=0.1)
    pins = {"prototypes": {s: int(np.flatnonzero(labels == (s + 1) % 3)[0]) for s in range(3)}}
    model = BayesianCaseModel(3, sampler=sampler, n_iter=60, n_chains=2, random_state=1).fit(x, pins=pins)
    assert ((model.labels_ + 1) % 3 == labels).mean() > 0.9


def test_free_clusters_go_from_large_to_small_in_the_places_that_are_left(planted):
    x, _ = planted(N=90, P=10, V=4, S=4, seed=3, noise=0.1)
    model = BayesianCaseModel(4, n_iter=60, n_chains=2, random_state=1).fit(x, pins={"cases": {5: 1}})
    size = model.memberships_.sum(axis=0)
    assert size[0] >= size[2] >= size[3]
    assert model.labels_[5] == 1


def test_everything_pinned(table, sampler):
    """All that is left to draw are the values; the log joint never changes."""
    X, labels = table
    pins = {
        "prototypes": {0: 0, 1: 1, 2: 2},
        "subspaces": {s: {name: (s + j) % 2 == 0 for j, name in enumerate("abcdef")} for s in range(3)},
        "cases": dict(enumerate(labels.tolist())),
    }
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, pins=pins)
    assert np.ptp(model.log_joint_) < 1e-6
    assert np.array_equal(model.labels_, labels)
    assert model.prototypes_.tolist() == [0, 1, 2]
    assert model.subspaces_.tolist() == [[(s + j) % 2 == 0 for j in range(6)] for s in range(3)]


def test_nothing_pinned_is_no_pins(table, sampler, same):
    X = table[0]
    plain = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X)
    for pins in ({}, {"cases": {}}, {"cases": None, "subspaces": {}, "prototypes": {}}, {"subspaces": {1: {}}}):
        same(plain, BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, pins=pins))


def test_pins_against_labels_of_the_start(table, sampler):
    """A pin is certain, a start is only a start."""
    X = table[0]
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, pins={"cases": {8: 2}}, init=np.zeros(60, dtype=int))
    assert (cells_of(model, 8) == 2).all()


def test_pins_with_a_catalogue(table, sampler):
    X = table[0]
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, candidates=X.iloc[:5], pins={"prototypes": {1: 4}})
    assert (model.draws_.p[..., 1] == 4).all()
    assert set(np.unique(model.draws_.p)) <= set(range(5))


def test_pins_of_sparse_data(sampler):
    X = scipy.sparse.random_array((40, 6), density=0.4, rng=np.random.default_rng(0))
    pins = {"subspaces": {0: {"x1": True, 2: False}}, "cases": {3: 1}}
    model = BayesianCaseModel(2, sampler=sampler, encoder={"feature_types": "count"}, **QUICK).fit(X, pins=pins)
    assert model.draws_.omega[:, :, 0, 1].all()
    assert not model.draws_.omega[:, :, 0, 2].any()
    assert (cells_of(model, 3) == 1).all()


def test_positions_are_those_of_the_columns(table):
    """Also when a column before them is left out, as in bins and feature_types."""
    X = table[0]
    pins = {"subspaces": {0: {2: False, "d": True}}}
    model = BayesianCaseModel(2, encoder={"feature_types": {"a": "drop"}}, **QUICK).fit(X, pins=pins)
    assert list(model.feature_types_) == list("bcdef")
    assert not model.draws_.omega[:, :, 0, 1].any()
    assert model.draws_.omega[:, :, 0, 2].all()


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_pins_do_not_depend_on_threads(table, sampler, n_jobs, same):
    X = table[0]
    pins = {"prototypes": {2: 7}, "subspaces": {1: {"a": True}}, "cases": {0: 2, 3: 1}}
    one, more = (BayesianCaseModel(3, sampler=sampler, n_jobs=n, **QUICK).fit(X, pins=pins) for n in (1, n_jobs))
    same(one, more)


def test_a_checkpoint_of_other_pins_is_refused(table, tmp_path):
    X = table[0]
    model = BayesianCaseModel(3, **QUICK).fit(X, pins={"cases": {0: 1}}, checkpoint=tmp_path / "run")
    for pins in (None, {"cases": {0: 2}}, {"cases": {1: 1}}, {"cases": {0: 1}, "subspaces": {0: {"a": True}}}):
        with pytest.raises(ValueError, match="belongs to other data or settings"):
            model.fit(X, pins=pins, checkpoint=tmp_path / "run")


def test_steered_models_in_files(table, sampler, same, tmp_path):
    X = table[0]
    prior = np.full((3, 6), np.nan)
    prior[1, 2] = 0.99
    pins = {"prototypes": {np.int64(2): np.int64(7)}, "subspaces": {1: {"a": True, 3: False}}, "cases": {0: 2, 3: 1}}
    model = BayesianCaseModel(3, subspace_prior=prior, sampler=sampler, **QUICK).fit(X, pins=pins)
    model.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(model, again)
    assert np.array_equal(model.transform(X), again.transform(X))
    same(model, again.fit(X, pins=pins))  # the prior came along


# --- priors --------------------------------------------------------------------------------------------------------------


def test_a_prototype_prior_per_cluster(table, sampler):
    X = table[0]
    prior = np.zeros((3, 60))
    prior[0, :10], prior[1, 10:20], prior[2, [50, 55]] = 1.0, 2.0, [1e-300, 1.0]
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, prototype_prior=prior)
    p = model.draws_.p
    assert set(np.unique(p[..., 0])) <= set(range(10))
    assert set(np.unique(p[..., 1])) <= set(range(10, 20))
    assert set(np.unique(p[..., 2])) == {55}
    for s, allowed in enumerate((range(10), range(10, 20), [55])):
        assert set(model.prototype_probabilities_[s][0].ties) <= set(allowed)


def test_one_prototype_prior_for_all_is_the_same_for_each(table, sampler, same):
    X = table[0]
    weight = np.arange(1.0, 61.0)
    for_all = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, prototype_prior=weight)
    same(for_all, BayesianCaseModel(3, sampler=sampler, **QUICK).fit(X, prototype_prior=np.tile(weight, (3, 1))))


def test_a_pin_outweighs_the_prototype_prior(table, sampler):
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(
        table[0], prototype_prior=np.eye(60)[3], pins={"prototypes": {1: 8}}
    )
    assert (model.draws_.p == [3, 8, 3]).all()


def test_a_subspace_prior_moves_the_posterior(table, sampler):
    X = table[0]
    prior = np.full((3, 6), np.nan)
    prior[0], prior[2] = 1e-6, 1 - 1e-6
    model = BayesianCaseModel(3, subspace_prior=prior, q=0.5, sampler=sampler, **QUICK).fit(X)
    assert model.subspace_probabilities_[0].max() < 0.5 < model.subspace_probabilities_[2].min()


def test_a_subspace_prior_of_nothing_is_q(table, sampler, same):
    X, q = table[0], [0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    plain = BayesianCaseModel(3, q=q, sampler=sampler, **QUICK).fit(X)
    for prior in (np.full((3, 6), np.nan), np.tile(q, (3, 1)), pd.DataFrame(np.full((3, 6), np.nan))):
        same(plain, BayesianCaseModel(3, q=q, subspace_prior=prior, sampler=sampler, **QUICK).fit(X))


def test_q_is_learned_where_the_subspace_prior_is_silent(planted, sampler):
    """Features that are noise are given as certain, so that the rest, which all matter, show in q."""
    x, _ = planted(N=120, P=10, V=4, S=2, seed=1, noise=0.05)
    noise = np.random.default_rng(0).integers(4, size=(120, 10))
    prior = np.full((2, 20), np.nan)
    model = BayesianCaseModel(2, q="learn", sampler=sampler, n_iter=100, n_chains=2, random_state=0)
    everything = model.fit(np.hstack([x, noise])).hyperparameters_["q"]
    prior[:, 10:] = 0.01
    rest = model.set_params(subspace_prior=prior).fit(np.hstack([x, noise])).hyperparameters_["q"]
    assert everything.high < rest.mean


# --- wrong input -----------------------------------------------------------------------------------------------------------

HALF = np.full((3, 6), 0.5)
WRONG = [
    ({"pins": []}, "pins must be a mapping with some of the keys 'prototypes', 'subspaces' and 'cases'"),
    ({"pins": "cases"}, "pins must be a mapping"),
    ({"pins": {"case": {0: 1}}}, "pins must be a mapping with some of the keys"),
    ({"pins": {"cases": 0}}, r"pins\['cases'\] must be a mapping, not 0"),
    ({"pins": {"cases": np.zeros(60)}}, r"pins\['cases'\] must be a mapping, not array"),
    ({"pins": {"cases": {60: 0}}}, r"pins\['cases'\] names the case 60; there are 60, counted from 0"),
    ({"pins": {"cases": {-1: 0}}}, "names the case -1"),
    ({"pins": {"cases": {"a": 0}}}, "names the case 'a'"),
    ({"pins": {"cases": {0: 3}}}, "names the cluster 3; there are 3"),
    ({"pins": {"cases": {0: True}}}, "names the cluster True"),
    ({"pins": {"prototypes": {0: 60}}}, r"pins\['prototypes'\] names the candidate 60"),
    ({"pins": {"prototypes": {0: [1, 2]}}}, r"names the candidate \[1, 2\]"),
    ({"pins": {"prototypes": {3: 0}}}, "names the cluster 3"),
    ({"pins": {"prototypes": {2: 7, 0: 7}}}, "the candidate 7 for the clusters 2 and 0; each needs one of its own"),
    (
        {"pins": {"prototypes": {0: 1}}, "candidates": pd.DataFrame({name: [0, np.nan] for name in "abcdef"})},
        r"^pins\['prototypes'\] names the candidate 1, which has no value at all",
    ),
    ({"pins": {"prototypes": [5, 6, 7]}}, r"pins\['prototypes'\] must be a mapping"),
    (
        {"pins": {"prototypes": {0: 5}}, "candidates": pd.DataFrame({name: [0, 1] for name in "abcdef"})},
        "candidate 5; there are 2",
    ),
    ({"pins": {"subspaces": {0: ["a"]}}}, r"pins\['subspaces'\]\[0\] must be a mapping from features to True or False"),
    ({"pins": {"subspaces": {0: {"z": True}}}}, r"pins\['subspaces'\]\[0\] names the feature 'z', which the data does not"),
    ({"pins": {"subspaces": {0: {6: True}}}}, "names the feature 6"),
    ({"pins": {"subspaces": {0: {None: True}}}}, "names the feature None"),
    ({"pins": {"subspaces": {0: {"a": 1}}}}, r"pins\['subspaces'\]\[0\]\['a'\] must be True or False, not 1"),
    ({"pins": {"subspaces": {0: {"a": True, 0: False}}}}, "has the feature 0 twice, by name and by position"),
    ({"pins": {"subspaces": {"a": {0: True}}}}, "names the cluster 'a'"),
    ({"pins": {"cases": {0: 1}}, "n_clusters": "auto"}, "pins speaks of single clusters, so n_clusters must be a number"),
    ({"subspace_prior": HALF, "n_clusters": "auto"}, "subspace_prior speaks of single clusters"),
    ({"subspace_prior": HALF.T}, r"subspace_prior has shape \(6, 3\); it must be one number per cluster and feature, \(3, 6\)"),
    ({"subspace_prior": 0.5}, r"subspace_prior has shape \(\)"),
    ({"subspace_prior": "high"}, "subspace_prior must be numbers, not 'high'"),
    ({"subspace_prior": 2 * HALF}, "subspace_prior must lie strictly between 0 and 1, or be NaN .*; use pins for certainty"),
    ({"subspace_prior": HALF, "q": "learn"}, "q='learn' has nothing to learn"),
    (
        {"prototype_prior": np.ones((60, 3))},
        r"prototype_prior has shape \(60, 3\); it must be one number per candidate \(60\) or",
    ),
    ({"prototype_prior": np.eye(3, 60)[[0, 0, 0]] * [[1], [1], [0]]}, "not all 0 for any cluster"),
    ({"prototype_prior": np.ones((3, 60)), "n_clusters": "auto"}, r"it must be one number per candidate \(60\)\.$"),
]


@pytest.mark.parametrize(("params", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_input_is_refused_in_one_sentence(table, params, message):
    check_refused(table[0], message, **{"n_clusters": 3} | QUICK | params)
