"""select_n_clusters: the planted number is found, and what is not decided is called so."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from scipy.stats import binom
from sklearn.base import clone

from bayescase import BayesianCaseModel, select_n_clusters
from bayescase.model import simulate
from bayescase.selection import compare
from bayescase.state import make_data, make_hyper

SHORT = BayesianCaseModel(n_iter=80, n_chains=2)


def simulated(S, seed, N=120, P=10, V=4):
    """Cases from the prior, with prototypes that differ in at least three key features."""
    rng = np.random.default_rng(seed)
    offset = np.arange(P + 1) * V
    catalogue = rng.integers(V, size=(200, P)) + offset[:-1]
    data, hyper = make_data(catalogue, offset), make_hyper(S, P, alpha=0.01, lam=1.0, c=50.0, q=0.8)
    while True:
        drawn = simulate(data, hyper, rng, N)
        apart = [
            ((catalogue[drawn.p[a]] != catalogue[drawn.p[b]]) & (drawn.omega[a] | drawn.omega[b])).sum()
            for a in range(S)
            for b in range(a)
        ]
        if min(apart, default=P) >= 3:
            return drawn.x - offset[:-1]


def test_the_planted_number_is_recommended():
    """For 2, 3 and 5 clusters and seeds 0 and 1.

    Measured with seeds 0 to 7: 22 of 24 tables, all of those with 2 or 3 clusters and 6 of 8 with 5; once 4 and once 6 are
    recommended instead. Required: what chance leaves of this rate in all but one of a thousand runs, and never off by more
    than one.
    """
    right = 0
    for S in (2, 3, 5):
        for seed in range(2):
            result = select_n_clusters(simulated(S, seed), range(1, S + 3), random_state=seed)
            assert abs(result.recommended - S) <= 1, result
            assert result.recommendation.startswith(f"{result.recommended} clusters: ")
            assert result.curve[0].loss > 5 * result.curve[0].loss_standard_error
            right += result.recommended == S
    assert right >= binom.ppf(0.001, 6, 22 / 24)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_data_without_clusters(seed):
    X = np.random.default_rng(seed).integers(4, size=(100, 8))
    result = select_n_clusters(X, range(1, 5), model=SHORT, random_state=seed)
    assert result.recommended == 1
    assert "the data show no clusters" in result.recommendation


def test_undecided_data_are_called_so():
    """Two clusters close together in twenty cases: three are no worse, and the answer says so."""
    rng = np.random.default_rng(1)
    prototypes = np.array([[0] * 6, [1] * 6])
    X = np.where(rng.random((24, 6)) < 0.25, rng.integers(3, size=(24, 6)), prototypes[rng.integers(2, size=24)])
    result = select_n_clusters(X, range(1, 5), random_state=0)
    assert len(result.level) > 1
    assert result.recommended == min(result.level)
    assert result.recommended > 1
    assert "the data do not decide between them" in result.recommendation
    assert all(str(S) in result.recommendation for S in result.level)


# --- arithmetic ----------------------------------------------------------------------------------------------------------


def test_curve_by_hand():
    scores = {1: [np.array([-3.0, -5.0]), np.array([-4.0, -4.0])], 2: [np.array([-1.0, -3.0]), np.array([-3.0, -3.0])]}
    result = compare(scores)
    one, two = result.curve
    assert (one.mean, two.mean) == (-4.0, -2.5)
    assert one.fold_means == (-4.0, -4.0)
    assert one.standard_error == pytest.approx(np.std([3, 5, 4, 4], ddof=1) / 2)  # over cases; over folds it is 0
    assert two.standard_error == pytest.approx(0.5)  # over the folds' -2 and -3; over cases it is also 0.5
    assert one.loss == 1.5
    assert one.loss_standard_error == pytest.approx(0.5)  # the folds' losses are 2 and 1
    assert (two.loss, two.loss_standard_error) == (0.0, 0.0)
    assert (result.best, result.recommended, result.level) == (2, 2, (2,))


def curve(**losses):
    """Means below 0 by `losses`, in thousandths, each loss with a standard error of one."""
    noise = np.array([-1.0, 1.0, -1.0, 1.0]) * 1e-3 * np.sqrt(3)
    result = {}
    for name, loss in losses.items():
        cases = -1e-3 * loss + (noise if loss else 0)
        result[int(name[1:])] = [np.broadcast_to(cases, 4)[:2], np.broadcast_to(cases, 4)[2:]]
    return compare(result)


@pytest.mark.parametrize(
    ("losses", "recommended", "words"),
    [
        ({"n1": 9, "n2": 0, "n3": 2}, 2, "2 clusters: it predicts held-out cases best, and every other number tried is worse"),
        (
            {"n1": 9, "n2": 0.5, "n3": 0, "n4": 2},
            2,
            "2 and 3 predict .* equally well, .* not decide between them; 2 is the simp",
        ),
        ({"n1": 9, "n2": 0, "n3": 0.5, "n4": 0.5}, 2, "2, 3 and 4 predict held-out cases equally well"),
        ({"n1": 0, "n2": 3, "n3": 3}, 1, "1 cluster: no larger number .* the data show no clusters.$"),
        ({"n1": 0.5, "n2": 0, "n3": 3}, 1, "show no clusters. 2 is best, but by less than that: more cases may decide"),
        ({"n1": 9, "n2": 5, "n3": 0}, 3, "3 is the largest number tried and the best: try larger ones"),
        ({"n3": 0, "n4": 5}, 3, "3 is the smallest number tried: try smaller ones"),
        ({"n4": 0}, 4, "4 clusters: the only number tried"),
    ],
)
def test_recommendation_in_words(losses, recommended, words):
    result = curve(**losses)
    assert result.recommended == recommended
    assert re.search(words, result.recommendation), result.recommendation
    assert str(result).endswith(result.recommendation)
    assert len(str(result).splitlines()) == len(losses) + 2


# --- use -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_every_kind_of_table_gives_the_same_curve(make, mixed):
    columns = {name: list(column) for name, column in mixed[0].items()}
    columns["size"] = [None if value != value else value for value in columns["size"]]
    reference = select_n_clusters(mixed[0], [1, 2], model=SHORT, cv=3, random_state=0)
    assert select_n_clusters(make(columns), [2, 1, 2], model=SHORT, cv=3, random_state=0, n_jobs=2) == reference
    assert [count.n_clusters for count in reference.curve] == [1, 2]
    assert all(len(count.fold_means) == 3 for count in reference.curve)


def test_columns_keep_their_types(mixed):
    """Sparse, ordered and mixed columns, also without names, come to the fits as what they are."""
    rng = np.random.default_rng(0)
    dense = rng.integers(3, size=(40, 5))
    model = clone(SHORT).set_params(encoder={"feature_types": "count"})
    sparse = select_n_clusters(scipy.sparse.csr_array(dense), [1, 2], model=model, cv=3, random_state=0)
    assert sparse == select_n_clusters(dense > 0, [1, 2], model=SHORT, cv=3, random_state=0)
    words = ["low", "middle", "high"]
    typed = pd.DataFrame({0: pd.Categorical(np.array(words)[dense[:, 0]], words, ordered=True), 1: dense[:, 1]})
    near = clone(SHORT).set_params(similarity={0: ("within", 1)})  # refused unless the order is known
    assert len(select_n_clusters(typed, [1, 2], model=near, cv=3, random_state=0).curve) == 2


def test_a_model_that_would_find_the_number_itself(planted):
    model = BayesianCaseModel("auto", alpha="learn", init=["cases", "cells"], n_iter=20, n_chains=2)
    result = select_n_clusters(planted()[0], [1, 3], model=model, cv=2, random_state=0)
    assert [count.n_clusters for count in result.curve] == [1, 3]


def test_prototypes_can_come_from_a_catalogue(planted):
    x, labels = planted(N=60, P=8, S=3, seed=4, noise=0.1)
    one_each = x[[np.flatnonzero(labels == s)[0] for s in range(3)]]
    good, bad = (
        select_n_clusters(x, [3], model=SHORT, candidates=catalogue, cv=2, random_state=0)
        for catalogue in (one_each, one_each[[0, 0, 0]])
    )
    assert good.curve[0].mean > bad.curve[0].mean


def test_seeds(planted):
    x, _ = planted()
    first = select_n_clusters(x, [2], model=SHORT, cv=2, random_state=1)
    assert first == select_n_clusters(x, [2], model=BayesianCaseModel(n_iter=80, n_chains=2, random_state=1), cv=2)
    assert first != select_n_clusters(x, [2], model=SHORT, cv=2, random_state=2)
    assert SHORT.random_state is None
    assert not hasattr(SHORT, "prototypes_")


def test_cases_are_shuffled(planted):
    """Sorted by cluster, folds without shuffling would each lack a cluster."""
    x, labels = planted(N=90, P=8, S=3, seed=4, noise=0.1)
    result = select_n_clusters(x[np.argsort(labels)], [1, 3], model=SHORT, cv=3, random_state=0)
    assert result.curve[1].mean > result.curve[0].mean + 2


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_clusters": 3}, TypeError, "such as range"),
        ({"n_clusters": []}, ValueError, "such as range"),
        ({"n_clusters": "34"}, TypeError, "such as range"),
        ({"n_clusters": [0, 1]}, ValueError, "at least 1"),
        ({"n_clusters": [1, 2.5]}, ValueError, "whole numbers"),
        ({"n_clusters": [1, 49]}, ValueError, "n_clusters goes up to 49, but with cv=5 some fits have 48 of the 60 cases"),
        ({"cv": 1}, ValueError, "cv must be a whole number of at least 2"),
        ({"cv": 61}, ValueError, "cv=61 needs at least 61 cases, but the data has 60"),
        ({"model": "bcm"}, TypeError, "model must be a BayesianCaseModel"),
        ({"model": BayesianCaseModel(init=np.zeros(60, dtype=int))}, ValueError, "init must be 'seeded'"),
        ({"model": BayesianCaseModel(subspace_prior=[[0.5] * 6])}, ValueError, "subspace_prior cannot be used here"),
        ({"candidates": np.ones((3, 5))}, ValueError, "candidates has 5 features, but the data has 6"),
        ({"model": BayesianCaseModel(alpha=-1)}, ValueError, "alpha must be"),
    ],
)
def test_bad_input(arguments, error, message, planted):
    with pytest.raises(error, match=message):
        select_n_clusters(planted()[0], **arguments)
