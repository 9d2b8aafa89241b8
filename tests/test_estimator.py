"""BayesianCaseModel as a user meets it: the scikit-learn interface, what it learns, new cases, and bad input."""

import copy
import itertools
import pickle
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import bayescase
from bayescase import BayesianCaseModel
from bayescase.model import log_joint

from .helpers import split_settings

QUICK = {"n_iter": 40, "n_chains": 2, "random_state": 0}


def other_than_convergence(record):
    return [warning for warning in record if warning.category is not ConvergenceWarning]


def check_log_joint(model, hyper=None, **tolerance):
    """Every kept draw has the log joint of its z, p and ω."""
    draws, hyper = model.draws_, model.fitted_.hyper if hyper is None else hyper
    for c, d in np.ndindex(draws.log_joint.shape):
        again = log_joint(model.fitted_.data, hyper, draws.z[c, d], draws.p[c, d], draws.omega[c, d])
        assert again == pytest.approx(draws.log_joint[c, d], **tolerance or {"abs": 1e-6})


# --- scikit-learn --------------------------------------------------------------------------------------------------------


@parametrize_with_checks(
    [
        # With 40 sweeps a chain keeps 4 draws, too few for check_clustering, which asks for a good clustering of 50 points.
        # The checks of sparse data want as many columns as there are classes in their y, four.
        BayesianCaseModel(4, n_iter=300, n_chains=2),
        BayesianCaseModel(4, n_iter=300, n_chains=2, sampler="collapsed"),
    ]
)
@pytest.mark.filterwarnings("ignore:Rows? .* no value at all")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_parameters_survive_clone_and_pickle():
    model = BayesianCaseModel(4, alpha=0.2, q=[0.5, 0.6], init=np.array(["cells", "cases"]), sampler="collapsed", thin=2)
    params = model.get_params()
    assert params["n_clusters"] == 4
    assert params["q"] == [0.5, 0.6]
    assert clone(model).get_params()["sampler"] == "collapsed"
    assert pickle.loads(pickle.dumps(model)).get_params()["thin"] == 2
    assert set(params) == set(BayesianCaseModel().get_params())
    with pytest.raises(TypeError):
        BayesianCaseModel(4, 0.1)  # all but n_clusters by name


def test_pickle_and_deepcopy_keep_the_fit(fitted, mixed, same):
    for other in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        same(fitted, other)
        assert np.array_equal(fitted.transform(mixed[0]), other.transform(mixed[0]))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_set_output_names_the_clusters(frame, mixed):
    X = frame({name: list(column) for name, column in mixed[0].items()})
    model = BayesianCaseModel(3, **QUICK).set_output(transform="pandas").fit(X)
    out = model.transform(X)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(model.get_feature_names_out()) == [f"bayesiancasemodel{s}" for s in range(3)]
    assert type(model.predict_proba(X)) is np.ndarray
    assert type(model.predict(X)) is np.ndarray
    assert np.array_equal(out.to_numpy(), model.predict_proba(X))


def test_set_output_keeps_the_index(mixed):
    X = pd.DataFrame(mixed[0], index=[f"row {i}" for i in range(50)])
    out = BayesianCaseModel(2, **QUICK).set_output(transform="pandas").fit_transform(X)
    assert list(out.index) == list(X.index)


def test_fit_predict_and_fit_transform(planted):
    x, _ = planted()
    model = BayesianCaseModel(3, **QUICK)
    assert np.array_equal(model.fit_predict(x), model.labels_)
    assert np.array_equal(clone(model).fit_transform(x), model.transform(x))
    assert np.array_equal(model.predict(x), model.transform(x).argmax(axis=1))


def test_pipeline_and_grid_search_find_the_number_of_clusters(planted):
    x, _ = planted(N=150, P=10, S=3, seed=4, noise=0.1)
    pipeline = make_pipeline(FunctionTransformer(), BayesianCaseModel(**QUICK | {"n_iter": 100}))
    search = GridSearchCV(pipeline, {"bayesiancasemodel__n_clusters": [1, 3]}, cv=3).fit(x)
    assert search.best_params_ == {"bayesiancasemodel__n_clusters": 3}
    assert search.best_score_ == pytest.approx(search.cv_results_["mean_test_score"].max())
    assert search.best_estimator_.transform(x).shape == (150, 3)


@pytest.mark.parametrize("method", ["transform", "predict", "predict_proba", "score", "score_samples", "save"])
def test_methods_before_fit_say_so(method, planted):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(BayesianCaseModel(), method)(planted()[0])
    with pytest.raises(NotFittedError, match="not fitted"):
        BayesianCaseModel().sample()


def test_the_data_is_not_touched(mixed):
    X = pd.DataFrame(mixed[0])
    before = X.copy(deep=True)
    BayesianCaseModel(3, **QUICK).fit(X).transform(X)
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table, dict])
def test_every_kind_of_table_gives_the_same_model(make, mixed, same):
    columns = {name: list(column) for name, column in mixed[0].items()}
    columns["size"] = [None if value != value else value for value in columns["size"]]
    reference = BayesianCaseModel(3, **QUICK).fit(mixed[0])
    model = BayesianCaseModel(3, **QUICK).fit(make(columns))
    same(reference, model)
    assert list(model.feature_names_in_) == list(columns)
    assert np.array_equal(reference.transform(mixed[0]), model.transform(make(columns)))


# --- what is learned --------------------------------------------------------------------------------------------------


def test_shapes_and_ranges(fitted, mixed):
    N, P, S = 50, 5, 3
    assert fitted.n_features_in_ == P
    assert list(fitted.feature_names_in_) == list(mixed[0])
    assert fitted.memberships_.shape == (N, S)
    assert fitted.memberships_.min() >= 0
    np.testing.assert_allclose(fitted.memberships_.sum(axis=1), 1, atol=1e-5)
    assert np.array_equal(fitted.labels_, fitted.memberships_.argmax(axis=1))
    assert fitted.subspace_probabilities_.shape == (S, P)
    assert ((fitted.subspace_probabilities_ >= 0) & (fitted.subspace_probabilities_ <= 1)).all()
    assert np.array_equal(fitted.subspaces_, fitted.subspace_probabilities_ > 0.5)
    assert fitted.subspaces_.any()
    assert fitted.prototypes_.shape == (S,)
    assert fitted.log_joint_.shape == (3, 120)
    assert np.isfinite(fitted.log_joint_).all()
    assert fitted.chain_overlap_.shape == (3,)
    assert fitted.chain_overlap_.max() == pytest.approx(1)


def test_clusters_go_from_large_to_small(fitted, planted):
    assert (np.diff(fitted.memberships_.sum(axis=0)) <= 1e-9).all()
    for seed in (3, 7, 10, 16, 17):  # chains that agree are pooled, and the order must be that of the average
        x, _ = planted(N=40, S=4, seed=seed)
        model = BayesianCaseModel(4, n_iter=100, n_chains=4, random_state=seed).fit(x)
        assert (model.chain_overlap_ >= 0.9).sum() > 1
        assert (np.diff(model.memberships_.sum(axis=0)) <= 1e-9).all()


def test_value_probabilities_are_distributions_over_feature_values(fitted):
    assert len(fitted.value_probabilities_) == len(fitted.feature_values_) == 5
    for table, values in zip(fitted.value_probabilities_, fitted.feature_values_, strict=True):
        assert table.shape == (3, len(values))
        assert table.min() > 0
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-9)
    assert fitted.feature_values_[:3] == [("blue", "green", "red"), (0, 2, 4), (False, True)]


def test_prototypes_are_cases_of_the_data(fitted, mixed):
    for s, row in enumerate(fitted.prototypes_):
        for j, name in enumerate(mixed[0]):
            shown, value = fitted.prototype_cases_[s, j], mixed[0][name][row]
            if name == "size":
                assert shown is None if value != value else shown in fitted.feature_values_[j]
            else:
                assert shown == value


def test_prototype_probabilities_are_sorted_and_ties_are_complete(planted, sampler):
    x, _ = planted(N=80, P=4, V=2, S=3, seed=2)
    model = BayesianCaseModel(3, n_iter=200, n_chains=2, random_state=0, sampler=sampler).fit(x)
    assert len(model.prototype_probabilities_) == 3
    some_ties = False
    for s, ranked in enumerate(model.prototype_probabilities_):
        chance = [candidate.probability for candidate in ranked]
        assert chance == sorted(chance, reverse=True)
        assert all(c > 0 for c in chance)
        assert sum(chance) <= 1 + 1e-9
        assert ranked[0].row == model.prototypes_[s]
        for candidate in ranked:
            assert candidate.row == candidate.ties[0]
            assert list(candidate.ties) == list(np.flatnonzero((x == x[candidate.row]).all(axis=1)))
            some_ties |= len(candidate.ties) > 1
        assert len({candidate.row for candidate in ranked}) == len(ranked)
    assert some_ties


def test_labels_find_planted_clusters(planted, sampler):
    x, labels = planted(N=120, P=12, V=4, S=3, seed=3, noise=0.1)
    model = BayesianCaseModel(3, n_iter=200, n_chains=2, random_state=0, sampler=sampler).fit(x)
    assert adjusted_rand_score(labels, model.labels_) > 0.95
    assert adjusted_rand_score(labels, model.predict(x)) > 0.95


@pytest.mark.parametrize("thin", [1, 5, 7])
@pytest.mark.parametrize("burn_in", [None, 0, 29])
def test_how_many_draws_are_kept(planted, burn_in, thin):
    model = BayesianCaseModel(2, n_iter=30, burn_in=burn_in, thin=thin, n_chains=2, keep_draws=True, random_state=0)
    draws = model.fit(planted()[0]).draws_
    sweeps = list(range(15 if burn_in is None else burn_in, 30, thin))
    kept = len(sweeps)
    assert draws.z.shape == (2, kept, 60, 6)
    assert draws.p.shape == (2, kept, 2)
    assert draws.omega.shape == (2, kept, 2, 6)
    assert draws.log_joint.shape == (2, kept)
    assert np.array_equal(draws.log_joint, model.log_joint_[:, sweeps])


def test_every_draw_has_the_log_joint_of_its_z_p_and_omega(fitted):
    """Labels are permuted together: were z, p and omega not aligned with each other, the sum would differ."""
    assert (fitted.draws_.z[:, :, fitted.fitted_.data.x < 0] == 0).all()
    check_log_joint(fitted)


def test_labels_that_switch_within_a_chain_stay_aligned(planted, sampler):
    """On so few and noisy cases labels change places all the time; z, p and omega must change together."""
    x, _ = planted(N=8, P=3, V=2, noise=1.0)
    model = BayesianCaseModel(3, alpha=0.5, n_iter=200, n_chains=2, thin=3, sampler=sampler, keep_draws=True, random_state=0)
    check_log_joint(model.fit(x))


def test_averages_are_those_of_the_draws(fitted):
    """memberships_ is the mean of (α/S + n_is) / (α + n_i) over the draws of the pooled chains and over equal cases."""
    draws, x, S = fitted.draws_, fitted.fitted_.data.x, 3
    used = fitted.chain_overlap_ >= 0.9
    n = np.stack([((draws.z == s) & (x >= 0)).sum(axis=3) for s in range(S)], axis=-1)  # (C, D, N, S)
    pi = (fitted.alpha / S + n) / (fitted.alpha + n.sum(axis=-1, keepdims=True))
    equal = (x[:, None] == x[None]).all(axis=2)
    mean = (equal / equal.sum(axis=1, keepdims=True)) @ pi[used].mean(axis=(0, 1))
    np.testing.assert_allclose(fitted.memberships_, mean, atol=1e-5)
    for s in range(S):
        best = fitted.prototype_probabilities_[s][0]
        assert np.isin(draws.p[used][..., s], best.ties).mean() == pytest.approx(best.probability)
    # ω is averaged by its conditional probability, which differs from the share of draws by noise only.
    n_draws = used.sum() * draws.p.shape[1]
    share = draws.omega[used].mean(axis=(0, 1))
    assert np.abs(share - fitted.subspace_probabilities_).max() < 4 * 0.5 / np.sqrt(n_draws)


def test_refit_without_keep_draws_drops_the_draws(planted):
    model = BayesianCaseModel(2, keep_draws=True, **QUICK).fit(planted()[0])
    assert hasattr(model, "draws_")
    model.set_params(keep_draws=False).fit(planted()[0])
    assert not hasattr(model, "draws_")


def test_refit_on_an_array_forgets_the_names(planted, mixed):
    model = BayesianCaseModel(2, **QUICK).fit(mixed[0])
    model.fit(planted()[0])
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 6


def test_random_state(planted, sampler, same):
    x, _ = planted(seed=5, noise=0.6)
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(x)
    same(model, clone(model).fit(x))
    other = clone(model).set_params(random_state=1).fit(x)
    assert not np.array_equal(model.log_joint_, other.log_joint_)
    same(
        clone(model).set_params(random_state=np.random.RandomState(3)).fit(x),
        clone(model).set_params(random_state=np.random.RandomState(3)).fit(x),
    )
    shared = np.random.RandomState(3)
    first, second = (clone(model).set_params(random_state=None) for _ in range(2))
    first.random_state = second.random_state = shared
    assert not np.array_equal(first.fit(x).log_joint_, second.fit(x).log_joint_)


# --- catalogue, priors, starts, extreme settings ----------------------------------------------------------------------


def test_prototypes_come_from_the_catalogue(planted, sampler):
    x, _ = planted(seed=6)
    catalogue = np.vstack([np.full(6, 9), x[:3], x[10:12]])  # 9 occurs in no case
    model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(x, candidates=catalogue)
    assert set(model.prototypes_) <= set(range(1, 6))
    assert np.array_equal(model.prototype_cases_.astype(int), catalogue[model.prototypes_])
    assert [values[-1] for values in model.feature_values_] == [9] * 6  # a value that only the catalogue has
    assert all(table[:, -1].max() < 0.2 for table in model.value_probabilities_)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict])
def test_a_data_frame_as_catalogue(make, mixed):
    columns = {name: list(column) for name, column in mixed[0].items()}
    catalogue = make({name: column[20:30] for name, column in columns.items()})
    model = BayesianCaseModel(3, **QUICK).fit(make(columns), candidates=catalogue)
    assert model.prototypes_.max() < 10
    for s, row in enumerate(model.prototypes_):
        assert model.prototype_cases_[s, 0] == columns["colour"][20 + row]
        assert model.prototype_cases_[s, 4] == columns["home"][20 + row]


def test_a_catalogue_with_missing_cells(planted, sampler):
    x, _ = planted(seed=6)
    catalogue = x[:4].astype(float)
    catalogue[0] = np.nan
    catalogue[1, 2] = np.nan
    model = BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK).fit(x.astype(float), candidates=catalogue)
    check_log_joint(model)
    if 0 in model.prototypes_:
        assert (model.prototype_cases_[list(model.prototypes_).index(0)] == None).all()  # noqa: E711


def test_a_catalogue_column_without_values_does_not_change_the_features(planted):
    x = planted()[0] + 0.5
    catalogue = x[:8].astype(object)
    catalogue[:, 2] = None
    model = BayesianCaseModel(2, **QUICK).fit(x, candidates=catalogue)
    assert model.fitted_.encoding.features[2].type == "number"


def test_prototype_prior(planted, sampler):
    x, _ = planted(seed=7)
    weights = np.ones(60)
    weights[::2] = 0
    model = BayesianCaseModel(3, keep_draws=True, sampler=sampler, **QUICK).fit(x, prototype_prior=weights)
    assert (model.draws_.p % 2 == 1).all()
    assert (model.prototypes_ % 2 == 1).all()
    huge = np.ones(60)
    huge[17] = 1e200
    sure = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(x, prototype_prior=huge)
    assert [(ranked[0].row, ranked[0].probability) for ranked in sure.prototype_probabilities_] == [(17, 1.0)] * 3
    assert len(set(sure.prototypes_.tolist())) == 3  # but one case stands for one cluster
    assert BayesianCaseModel(3, **QUICK).fit(x, prototype_prior=np.full(60, 1e308)).prototypes_.min() >= 0


def test_a_candidate_of_weight_zero_is_not_named_even_as_a_tie(planted):
    """The catalogue holds every case twice; the first copies must not be chosen, whoever they are equal to."""
    x, _ = planted(seed=7)
    weights = np.repeat([0.0, 1.0], 60)
    model = BayesianCaseModel(3, **QUICK).fit(x, candidates=np.vstack([x, x]), prototype_prior=weights)
    for ranked in model.prototype_probabilities_:
        assert min(row for candidate in ranked for row in candidate.ties) >= 60
    assert model.prototypes_.min() >= 60


def test_equal_weights_are_no_weights(planted, same):
    x, _ = planted(seed=7)
    plain = BayesianCaseModel(3, **QUICK).fit(x)
    same(plain, BayesianCaseModel(3, **QUICK).fit(x, prototype_prior=np.full(60, 7.0)))


def test_q_per_feature(planted, sampler, same):
    x, _ = planted(seed=8)
    low = BayesianCaseModel(3, q=[0.8] * 5 + [1e-6], sampler=sampler, **QUICK | {"n_iter": 100}).fit(x)
    assert low.subspace_probabilities_[:, 5].max() < 0.01
    assert low.subspace_probabilities_[:, :5].max() > 0.5
    same(
        BayesianCaseModel(3, q=0.8, sampler=sampler, **QUICK).fit(x),
        BayesianCaseModel(3, q=np.full(6, 0.8), sampler=sampler, **QUICK).fit(x),
    )


def test_a_start_from_labels(planted, sampler):
    x, labels = planted(N=90, P=8, seed=9)
    half = np.where(np.arange(90) % 2, labels, -1)
    settings = {"n_iter": 30, "n_chains": 1, "random_state": 0, "sampler": sampler}
    starts = (labels, list(labels), pd.Series(labels))
    for init in (half, *starts) if sampler == "rows" else starts:  # cell by cell, half of the labels is a poor start
        model = BayesianCaseModel(3, **settings).fit(x, init=init)
        assert adjusted_rand_score(labels, model.labels_) > 0.8
    first = BayesianCaseModel(3, **settings | {"n_iter": 1}).fit(x, init=labels)
    unknown = BayesianCaseModel(3, **settings | {"n_iter": 1}).fit(x, init=np.full(90, -1))
    assert first.log_joint_[0, 0] > unknown.log_joint_[0, 0]


@pytest.mark.parametrize("init", ["seeded", "cases", "cells"])
def test_named_starts(planted, sampler, init):
    model = BayesianCaseModel(3, init=init, sampler=sampler, keep_draws=True, **QUICK | {"n_iter": 10}).fit(planted()[0])
    assert np.isfinite(model.log_joint_).all()
    assert model.draws_.z.max() <= 2


def test_c_zero_is_plain_allocation(planted, sampler):
    """With c = 0 a prototype explains nothing: subspaces and prototypes keep their prior."""
    x, _ = planted(seed=10)
    model = BayesianCaseModel(3, c=0, q=0.3, sampler=sampler, **QUICK).fit(x)
    np.testing.assert_allclose(model.subspace_probabilities_, 0.3)
    assert not model.subspaces_.any()


@pytest.mark.parametrize("init", ["seeded", "cases", "cells"])
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_alpha_zero_gives_one_label_per_case(planted, init, missing):
    x, _ = planted(N=200, P=20, seed=11)
    x = np.where(np.random.default_rng(0).random(x.shape) < missing, np.nan, x)
    x[:, 0] = np.nan_to_num(x[:, 0])  # no empty row
    model = BayesianCaseModel(3, alpha=0, init=init, keep_draws=True, **QUICK).fit(x)
    z = np.where(np.isnan(x), -1, model.draws_.z.astype(int))
    assert (np.where(z < 0, z.max(axis=3, keepdims=True), z) == z.max(axis=3, keepdims=True)).all()
    check_log_joint(model, model.fitted_.hyper._replace(alpha=1e-12), abs=1e-3)  # the limit from above


def test_alpha_zero_recovers_clusters_from_a_random_start(planted):
    x, labels = planted(N=80, P=10, seed=12, noise=0.1)
    model = BayesianCaseModel(3, alpha=0, init="cases", n_iter=200, n_chains=4, random_state=0).fit(x)
    assert adjusted_rand_score(labels, model.labels_) > 0.9


def exact_pairs(x, catalogue, S, lam, c, q):
    """P(z_i = z_k) at alpha = 0 for one feature of two values, summed over all labels, prototypes and subspaces."""
    total, pairs = 0.0, np.zeros((len(x), len(x)))
    for z in map(np.array, itertools.product(range(S), repeat=len(x))):
        weight = 1.0
        for s in range(S):
            n = np.bincount(x[z == s], minlength=2)
            g = lam * (1 + c * np.array([np.zeros(2), *(np.arange(2) == u for u in catalogue)]))
            log = (gammaln(g + n) - gammaln(g)).sum(axis=1) - gammaln(g.sum(axis=1) + n.sum()) + gammaln(g.sum(axis=1))
            weight *= (1 - q) * np.exp(log[0]) + q * np.exp(log[1:]).mean()
        total += weight
        pairs += weight * (z[:, None] == z[None, :])
    return pairs / total


@pytest.mark.parametrize("missing", [False, True], ids=["P=1", "missing"])
def test_alpha_zero_with_one_observed_cell_per_case(missing):
    x = np.array([0, 0, 0, 1, 1])
    table, catalogue = x[:, None], x
    if missing:  # of two features every case has one only; a candidate without a value copies nothing
        table = np.array([[0, np.nan]] * 3 + [[1, np.nan]] * 2 + [[np.nan, 7]])
        catalogue = np.append(x, -1)
    settings = {"alpha": 0, "lam": 1.0, "c": 5.0, "q": 0.5, "n_iter": 6000, "burn_in": 200, "thin": 1, "n_chains": 1}
    model = BayesianCaseModel(3, **settings, keep_draws=True, random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Feature 'x1' has one value only")
        z = model.fit(table).draws_.z[0, :, :5, 0]
    share = (z[:, :, None] == z[:, None, :]).mean(axis=0)
    np.testing.assert_allclose(share, exact_pairs(x, catalogue, 3, lam=1.0, c=5.0, q=0.5), atol=0.04)


def test_large_alpha_spreads_every_case(planted, sampler):
    x, _ = planted(seed=13)
    model = BayesianCaseModel(3, alpha=1e6, sampler=sampler, **QUICK).fit(x)
    np.testing.assert_allclose(model.memberships_, 1 / 3, atol=1e-3)
    np.testing.assert_allclose(model.transform(x), 1 / 3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 1), (2, 1), (1, 3), (5, 2)])
def test_one_cluster_and_tiny_data(sampler, shape):
    x = np.random.default_rng(0).integers(2, size=shape)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Feature.*one value only")
        model = BayesianCaseModel(1, sampler=sampler, keep_draws=True, **QUICK).fit(x)
    assert (model.labels_ == 0).all()
    assert (model.memberships_ == 1).all()
    assert (model.transform(x) == 1).all()
    assert np.isfinite(model.score(x))
    assert model.sample(3)[0].shape == (3, shape[1])


def test_as_many_clusters_as_cases(planted, sampler):
    x, _ = planted(N=7)
    model = BayesianCaseModel(7, sampler=sampler, **QUICK).fit(x)
    assert model.memberships_.shape == (7, 7)


def test_equal_cases(sampler):
    with pytest.warns(UserWarning, match="Features 'x0', 'x1', 'x2' have one value only"):
        model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(np.ones((9, 3)))
    assert model.prototype_probabilities_[0][0].ties == tuple(range(9))
    assert model.prototype_probabilities_[0][0].probability == 1


def test_constant_column_warns_and_names_it(mixed):
    with pytest.warns(UserWarning, match=r"Feature 'planet' has one value only") as record:
        model = BayesianCaseModel(2, **QUICK).fit(mixed[0] | {"planet": ["earth"] * 50})
    assert len(other_than_convergence(record)) == 1
    assert model.feature_values_[-1] == ("earth",)
    np.testing.assert_allclose(model.value_probabilities_[-1], 1)


def test_many_values_need_wider_codes(sampler):
    rng = np.random.default_rng(0)
    words = [f"w{i:03}" for i in rng.integers(300, size=700)]
    x = {"word": words, "bit": rng.integers(2, size=700)}
    model = BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK).fit(x)
    assert model.fitted_.data.x.dtype == np.int16
    assert len(model.feature_values_[0]) == len(set(words)) > 256
    check_log_joint(model)


def test_many_clusters_need_wider_labels(sampler):
    x = np.random.default_rng(0).integers(4, size=(320, 5))
    model = BayesianCaseModel(300, sampler=sampler, keep_draws=True, alpha=50.0, n_iter=6, n_chains=1, random_state=0).fit(x)
    assert model.draws_.z.dtype == np.uint16
    assert model.draws_.z.max() > 256
    check_log_joint(model)
    assert model.transform(x).shape == (320, 300)


def test_missing_cells_everywhere(planted, sampler):
    x, labels = planted(N=200, P=12, V=4, seed=14, noise=0.05)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.5, np.nan, x)
    model = BayesianCaseModel(3, sampler=sampler, n_iter=200, n_chains=2, random_state=0, keep_draws=True).fit(holes)
    assert adjusted_rand_score(labels, model.labels_) > 0.8
    assert (model.draws_.z[:, :, np.isnan(holes)] == 0).all()
    check_log_joint(model)


def test_an_empty_row_warns_and_belongs_to_every_cluster(planted, sampler):
    x = planted()[0].astype(float)
    x[7] = np.nan
    with pytest.warns(UserWarning, match="Row 7 has no value at all") as record:
        model = BayesianCaseModel(3, sampler=sampler, **QUICK).fit(x)
    assert len(other_than_convergence(record)) == 1
    np.testing.assert_allclose(model.memberships_[7], 1 / 3, atol=1e-6)
    np.testing.assert_allclose(model.transform(x[7:8]), 1 / 3)
    assert model.score_samples(x[7:8])[0] == pytest.approx(0, abs=1e-6)
    x[[9, 11, 12, 13, 14, 15, 16]] = np.nan
    with pytest.warns(UserWarning, match="Rows 7, 9, 11, 12, 13 and 3 more have no value"):
        BayesianCaseModel(3, sampler=sampler, **QUICK).fit(x)


# --- new cases --------------------------------------------------------------------------------------------------------


def test_a_case_gets_the_same_answer_in_any_company(fitted, mixed):
    table = mixed[0]
    one = {name: column[12:13] for name, column in table.items()}
    turned = {name: column[::-1] for name, column in table.items()}
    many = {name: np.tile(column, 30) for name, column in table.items()}
    for method in (fitted.transform, fitted.score_samples, fitted.predict):
        whole = method(table)
        assert np.array_equal(method(one)[0], whole[12])
        assert np.array_equal(method(turned)[::-1], whole)
        assert np.array_equal(method(many)[-50:], whole)


def test_new_cases_do_not_depend_on_n_jobs(fitted, mixed):
    other = copy.deepcopy(fitted).set_params(n_jobs=2)
    assert np.array_equal(fitted.transform(mixed[0]), other.transform(mixed[0]))


def test_transform_of_the_training_cases_is_close_to_their_memberships(planted):
    x, _ = planted(N=120, P=12, S=3, seed=3, noise=0.1)
    model = BayesianCaseModel(3, n_iter=200, n_chains=2, random_state=0).fit(x)
    again = model.transform(x)
    sure = model.memberships_.max(axis=1) > 0.99  # an unsure case was itself part of the few tables that it is folded into
    assert sure.mean() > 0.9
    np.testing.assert_allclose(again[sure], model.memberships_[sure], atol=0.1)
    assert np.abs(again - model.memberships_).mean() < 0.01
    np.testing.assert_allclose(again.sum(axis=1), 1)


def test_unseen_values_warn_once_and_count_as_missing(fitted, mixed):
    table = {name: list(column[:4]) for name, column in mixed[0].items()}
    strange = copy.deepcopy(table)
    strange["colour"][0], strange["legs"][0], strange["legs"][2] = "mauve", 5, 2.5
    missing = copy.deepcopy(table)
    missing["colour"][0] = missing["legs"][0] = missing["legs"][2] = None
    expected = fitted.transform(missing)
    with pytest.warns(UserWarning, match=r"^3 cells have values never seen in fit; counted as missing\.$") as record:
        seen = fitted.transform(strange)
    assert len(record) == 1
    assert np.array_equal(seen, expected)
    strange["legs"][0] = strange["legs"][2] = 2
    with pytest.warns(UserWarning, match=r"^1 cell has a value never seen in fit"):
        fitted.score(strange)


def test_words_where_numbers_were_are_unseen(fitted, mixed):
    strange = {name: list(column[:3]) for name, column in mixed[0].items()} | {"size": ["tall", "short", None]}
    with pytest.warns(UserWarning, match="^2 cells have values never seen"):
        assert np.isfinite(fitted.transform(strange)).all()


def test_numbers_outside_the_range_go_to_the_outer_bins(fitted, mixed):
    case = {name: list(column[:2]) for name, column in mixed[0].items()} | {"size": [-1e9, 1e9]}
    x = fitted._encode(case).x
    feature = fitted.fitted_.encoding.features[3]
    assert list(x[:, 3] - fitted.fitted_.encoding.offset[3]) == [0, len(feature.values) - 1]


def brute_force(model, x):
    """(log p(x_i), E[π_i]) for coded cases, by summing over all z for each table of φ."""
    S, P = model.fitted_.hyper.q.shape
    a = model.fitted_.hyper.alpha / S
    likelihood, mean = [], []
    for phi in model.fitted_.posterior.tables.astype(float):
        weights, pis = [], []
        for z in itertools.product(range(S), repeat=P):
            n = np.bincount(z, minlength=S)
            prior = (gammaln(a + n) - gammaln(a)).sum() + gammaln(S * a) - gammaln(S * a + P)
            weights.append(np.exp(prior) * np.prod([phi[x[:, j], z[j]] for j in range(P)], axis=0))
            pis.append((a + n) / (S * a + P))
        weights = np.array(weights)  # (S^P, N)
        likelihood.append(weights.sum(axis=0))
        mean.append((weights / weights.sum(axis=0)).T @ np.array(pis))
    return np.log(np.mean(likelihood, axis=0)), np.mean(mean, axis=0)


@pytest.fixture(scope="module")
def tiny(planted):
    x, _ = planted(N=40, P=3, V=3, S=2, seed=15, noise=0.5)
    model = BayesianCaseModel(2, alpha=1.0, c=5.0, n_iter=60, n_chains=1, random_state=0).fit(x)
    cases = np.array(list(itertools.product(range(3), repeat=3)))
    return model, cases, cases + model.fitted_.encoding.offset[:-1]


def repeated(model, method, cases, times):
    """The same estimate under other random numbers."""
    other, problem, out = copy.copy(model), model.fitted_.problem, []
    for seed in range(times):
        other.fitted_ = replace(model.fitted_, problem=problem._replace(plan=problem.plan._replace(seed=seed)))
        out.append(getattr(other, method)(cases))
    return np.array(out)


def test_score_against_brute_force(tiny):
    model, cases, coded = tiny
    exact, _ = brute_force(model, coded)
    estimates = np.exp(repeated(model, "score_samples", cases, 300))
    error = estimates.std(axis=0, ddof=1) / np.sqrt(300)
    z = (estimates.mean(axis=0) - np.exp(exact)) / np.maximum(error, 1e-6 * np.exp(exact))
    assert np.abs(z).max() < norm.isf(1e-4 / 2 / len(cases))
    assert np.exp(exact).sum() == pytest.approx(1, abs=1e-5)  # a distribution over all 27 cases


def test_transform_against_brute_force(tiny):
    model, cases, coded = tiny
    _, exact = brute_force(model, coded)
    estimates = repeated(model, "transform", cases, 300)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(300)
    assert (np.abs(estimates.mean(axis=0) - exact) < 4.5 * error + 1e-3).all()


def test_alpha_zero_score_and_transform_are_exact(planted):
    x, _ = planted(N=60, P=6, S=3, seed=16, noise=0.4)
    x = x.astype(float)
    x[3, 2] = x[5, :5] = np.nan
    model = BayesianCaseModel(3, alpha=0, n_iter=40, n_chains=3, random_state=0).fit(x)
    tables = model.fitted_.posterior.tables.astype(float)  # (T, ΣV, S)
    coded = model.fitted_.data.x
    joint = np.zeros((len(tables), len(x), 3))
    for j in range(6):
        seen = coded[:, j] >= 0
        joint[:, seen] += np.log(tables[:, coded[seen, j]])
    joint += np.log(1 / 3)
    score = logsumexp(joint, axis=2)  # log Σ_s β_s Π_j φ_sj, per table
    np.testing.assert_allclose(model.score_samples(x), logsumexp(score, axis=0) - np.log(len(tables)), atol=1e-4)
    np.testing.assert_allclose(model.transform(x), np.exp(joint - score[..., None]).mean(axis=0), atol=1e-4)
    assert model.score(x) == pytest.approx(model.score_samples(x).mean())


def test_score_prefers_cases_like_those_of_the_fit(fitted, mixed):
    rng = np.random.default_rng(0)
    shuffled = {name: rng.permutation(column) for name, column in mixed[0].items()}
    assert fitted.score(mixed[0]) > fitted.score(shuffled) + 0.1


def test_sample(fitted):
    x, y = fitted.sample(20_000, random_state=1)
    assert x.shape == (20_000, 5)
    assert set(y) == {0, 1, 2}
    tables, offset = fitted.fitted_.posterior.tables.astype(float), fitted.fitted_.encoding.offset
    for j, values in enumerate(fitted.feature_values_):
        share = np.array([(x[:, j] == value).mean() for value in values])
        assert share.sum() == pytest.approx(1)
        exact = tables[:, offset[j] : offset[j + 1]].mean(axis=(0, 2))  # Σ_s β_s φ_s(v), over the tables
        assert np.abs(share - exact).max() < 4.5 * 0.5 / np.sqrt(20_000)
        assert np.abs(share - fitted.value_probabilities_[j].mean(axis=0)).max() < 0.05
    assert np.array_equal(fitted.sample(5)[0], fitted.sample(5)[0])
    assert not np.array_equal(fitted.sample(20, random_state=1)[0], fitted.sample(20, random_state=2)[0])


def test_samples_at_alpha_zero_come_from_one_cluster_each(planted):
    x, _ = planted(N=100, P=8, V=4, S=2, seed=17, noise=0.02)
    model = BayesianCaseModel(2, alpha=0, **QUICK).fit(x)
    drawn, y = model.sample(2000, random_state=0)
    assert abs((y == 0).mean() - 0.5) < 0.06
    assert (model.predict(drawn.astype(int)) == y).mean() > 0.95


@pytest.mark.parametrize("n", [0, -1, 1.5, "3", True, None])
def test_sample_wants_a_positive_number(fitted, n):
    with pytest.raises(ValueError, match="n_samples must be a positive whole number"):
        fitted.sample(n)


@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_columns_of_new_cases_are_matched_by_name(fitted, mixed, make):
    turned = {name: mixed[0][name] for name in ("size", "legs", "colour", "home", "tame")}
    more = {"extra": ["so"] * 50} | turned
    expected = fitted.transform(mixed[0])
    assert np.array_equal(fitted.transform(make(turned)), expected)
    assert np.array_equal(fitted.transform(make(more)), expected)
    with pytest.raises(ValueError, match=r"^X has no columns 'tame', 'size', 'home'\.$"):
        fitted.transform(make({name: mixed[0][name] for name in ("legs", "colour")}))
    del more["home"]
    with pytest.raises(ValueError, match=r"^X has no column 'home'\.$"):
        fitted.score(make(more))


def test_names_on_one_side_only_warn(planted):
    x = planted()[0]
    names = [f"n{j}" for j in range(6)]
    named, unnamed = pd.DataFrame(x, columns=names), BayesianCaseModel(2, **QUICK).fit(x)
    with pytest.warns(UserWarning, match="X has feature names, but BayesianCaseModel was fitted without"):
        assert np.array_equal(unnamed.transform(named), unnamed.transform(x))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        BayesianCaseModel(2, **QUICK).fit(named).transform(x)


def test_new_cases_with_another_number_of_features(planted):
    x, _ = planted()
    model = BayesianCaseModel(2, **QUICK).fit(x)
    for method in (model.transform, model.score):
        with pytest.raises(ValueError, match="X has 5 features"):
            method(x[:, :5])
    with pytest.raises(ValueError, match="X has 1 features"):
        model.transform({"a": [1, 2]})
    with pytest.raises(ValueError, match=r"empty|minimum of 1"):
        model.transform(np.zeros((0, 6)))
    with pytest.raises(ValueError, match=r"1D array|2-dimensional"):
        model.transform(x[0])


# --- cases of the fit and their names ---------------------------------------------------------------------------------


def test_a_case_of_the_fit_is_explained_by_what_the_fit_found(planted):
    """Folding it in again may say something else: an unsure case was itself part of the clusters."""
    x, _ = planted(N=80, P=5, V=3, S=3, seed=1, noise=0.6)
    model = BayesianCaseModel(3, alpha=0.5, **QUICK).fit(x)
    assert (model.predict(x) != model.labels_).any()  # else nothing is tested
    for row in range(80):
        found = model.explain_case(row)
        assert found.cluster == model.labels_[row]
        assert {of.cluster: of.mean for of in found.memberships} == dict(enumerate(model.memberships_[row]))


@pytest.fixture(scope="module")
def named(planted):
    """A model of cases with names."""
    x, _ = planted(N=30, P=6, V=3, S=2, seed=2, noise=0.1)
    return BayesianCaseModel(2, n_iter=100, n_chains=2, random_state=0).fit(x, case_names=[f"Ms {i}" for i in range(30)]), x


def test_explanations_name_the_cases(named):
    model, _ = named
    first = model.explain().clusters[0]
    assert first.prototype.name == f"Ms {model.prototypes_[0]}"
    assert "Ms " in str(model.explain_case(0))
    assert model.explain_pair(0, 1).first.prototype.name == first.prototype.name
    assert {member.name for member in model.explain_agreement(0).members} <= set(model.case_names_)


def test_the_ribbon_and_the_report_name_the_cases(named, tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    from matplotlib.text import Text

    from bayescase import plots

    model, _ = named
    candidates = [f"Ms {row}" for row in model.prototypes_]
    shown = "\n".join(text.get_text() for text in plots.plot_ribbon(model.fitted_).findobj(Text))
    assert all(name in shown for name in candidates)
    assert "case " not in shown
    model.report(tmp_path / "report.html")
    _, ribbon = (tmp_path / "report.html").read_text("utf-8").split("<h3>Prototypes</h3>")
    assert all(name in ribbon for name in candidates)


def test_an_index_of_words_names_the_cases(named):
    """So does that of the catalogue, which has its own; numbers are no names."""
    _, x = named
    people, model = [f"Mr {i}" for i in range(30)], BayesianCaseModel(2, **QUICK)
    frame = pd.DataFrame(x, index=people, columns=list("abcdef"))
    assert model.fit(frame).case_names_ == people
    assert model.fit(frame, case_names=range(30)).case_names_ == [str(i) for i in range(30)]
    assert model.fit(frame, candidates=frame[:5]).case_names_ == people[:5]
    for numbered in (frame.reset_index(drop=True), pl.DataFrame(frame.to_dict("list"))):
        assert model.fit(numbered).case_names_ is None
        assert model.fit(frame, candidates=numbered).case_names_ is None


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = np.random.default_rng(0).integers(3, size=(20, 4))
INFINITE = np.where(np.arange(80).reshape(20, 4) == 9, np.inf, GOOD + 0.5)
NAMED = pd.DataFrame(GOOD, columns=list("abcd"))

BAD = [
    ("empty array", {}, np.zeros((0, 3)), ValueError, "0 sample"),
    ("no columns", {}, np.zeros((3, 0)), ValueError, "0 feature"),
    ("empty frame", {}, pd.DataFrame({"a": []}), ValueError, "empty: 0 cases, 1 features"),
    ("empty mapping", {}, {}, ValueError, "empty"),
    ("one dimension", {}, np.arange(5), ValueError, "2D"),
    ("unequal columns", {}, {"a": [1, 2, 1], "b": [1]}, ValueError, r"different lengths: \[1, 3\]"),
    ("a word", {}, "abc", ValueError, "There is no file or folder"),
    ("all-missing column", {}, NAMED.assign(b=np.nan), ValueError, "Column 'b' has no value at all; leave it out"),
    ("infinity", {}, INFINITE, ValueError, "Column 'x1' contains infinity"),
    ("words and infinity", {}, NAMED.assign(c=["a", np.inf] * 10), ValueError, "Column 'c' contains infinity"),
    ("names", {}, NAMED.assign(c=[f"n{i}" for i in range(20)]), ValueError, r"Column 'c' has as many values as cases \(20\)"),
    (
        "categorical names",
        {},
        NAMED.assign(c=pd.Categorical([f"n{i}" for i in range(20)])),
        ValueError,
        "Column 'c' has as many values as cases",
    ),
    ("row number", {}, NAMED.assign(c=range(1, 21)), ValueError, "Column 'c' has as many values as cases.*row number"),
    ("dates", {}, NAMED.assign(c=pd.Timestamp("2020-02-02")), ValueError, "Column 'c' holds dates"),
    ("complex", {}, GOOD + 1j, ValueError, "Complex data not supported"),
    ("n_clusters too many", {"n_clusters": 21}, GOOD, ValueError, "n_clusters=21 needs at least 21 cases.*n_samples=20"),
    ("n_clusters 0", {"n_clusters": 0}, GOOD, ValueError, "n_clusters must be 'auto' or a whole number of at least 1, not 0"),
    ("n_clusters 2.0", {"n_clusters": 2.0}, GOOD, ValueError, "n_clusters must be 'auto' or a whole number"),
    ("n_clusters True", {"n_clusters": True}, GOOD, ValueError, "n_clusters must be 'auto' or a whole number"),
    ("alpha", {"alpha": -0.1}, GOOD, ValueError, "alpha must be 'learn' or a number of at least 0, not -0.1"),
    ("alpha nan", {"alpha": np.nan}, GOOD, ValueError, "alpha must be"),
    ("alpha inf", {"alpha": np.inf}, GOOD, ValueError, "alpha must be"),
    ("alpha word", {"alpha": "auto"}, GOOD, ValueError, "alpha must be"),
    ("lam", {"lam": 0}, GOOD, ValueError, "lam must be 'learn' or a number above 0, not 0"),
    ("lam negative", {"lam": -1.0}, GOOD, ValueError, "lam must be"),
    ("c", {"c": -1}, GOOD, ValueError, "c must be 'learn' or a number of at least 0, not -1"),
    ("q 0", {"q": 0}, GOOD, ValueError, "q must lie strictly between 0 and 1, not 0"),
    ("q 1", {"q": 1.0}, GOOD, ValueError, "q must lie strictly between 0 and 1"),
    ("q nan", {"q": np.nan}, GOOD, ValueError, "q must lie strictly"),
    ("q word", {"q": "high"}, GOOD, ValueError, "q must be 'learn', a number between 0 and 1"),
    ("q too short", {"q": [0.5, 0.5]}, GOOD, ValueError, r"q has shape \(2,\); it must be one number or one per feature \(4\)"),
    ("q one wrong", {"q": [0.5, 0.5, 0.5, 1.5]}, GOOD, ValueError, "q must lie strictly"),
    ("q matrix", {"q": np.full((2, 4), 0.5)}, GOOD, ValueError, r"q has shape \(2, 4\); it must be"),
    ("sampler", {"sampler": "gibbs"}, GOOD, ValueError, "sampler must be 'rows' or 'collapsed', not 'gibbs'"),
    ("n_iter", {"n_iter": 0}, GOOD, ValueError, "n_iter must be 'auto' or a whole number of at least 1, not 0"),
    ("n_iter word", {"n_iter": "many"}, GOOD, ValueError, "n_iter must be 'auto' or a whole number of at least 1, not 'many'"),
    ("n_iter array", {"n_iter": np.array(["auto"])}, GOOD, ValueError, "n_iter must be 'auto' or a whole number"),
    ("max_iter", {"n_iter": "auto", "max_iter": 0}, GOOD, ValueError, "max_iter must be a whole number of at least 1, not 0"),
    ("max_iter None", {"max_iter": None}, GOOD, ValueError, "max_iter must be a whole number of at least 1, not None"),
    ("auto with burn_in", {"n_iter": "auto", "burn_in": 5}, GOOD, ValueError, "second half of the sweeps: leave burn_in=None"),
    ("burn_in", {"burn_in": 10}, GOOD, ValueError, "burn_in must be a whole number from 0 to n_iter - 1 = 9, not 10"),
    ("burn_in negative", {"burn_in": -1}, GOOD, ValueError, "burn_in must be"),
    ("thin", {"thin": 0}, GOOD, ValueError, "thin must be"),
    ("n_chains", {"n_chains": 0}, GOOD, ValueError, "n_chains must be"),
    ("bins", {"encoder": {"bins": 1}}, GOOD, ValueError, "bins must be a whole number of at least 2"),
    ("encoder", {"encoder": 5}, GOOD, TypeError, "encoder must be a CaseEncoder or a mapping of its parameters, not 5"),
    ("encoder bin", {"encoder": {"bin": 5}}, GOOD, ValueError, "encoder has no parameter 'bin'; there are bags, bins"),
    ("init name", {"init": "random"}, GOOD, ValueError, "init must be 'seeded', 'cases', 'cells' or 'mixed'.*not 'random'"),
    ("init length", {"init": [0, 1]}, GOOD, ValueError, r"init has labels of shape \(2,\), but there are 20 cases"),
    ("init range", {"init": [5] * 20}, GOOD, ValueError, "labels in init must be whole numbers from 0 to n_clusters - 1 = 1"),
    ("init -2", {"init": [-2] * 20}, GOOD, ValueError, "labels in init must be"),
    ("init floats", {"init": [0.0] * 20}, GOOD, ValueError, "labels in init must be"),
    ("init words", {"init": ["seeded", "a"]}, GOOD, ValueError, "init must be 'seeded'.*, or one of the first three.*not 'a'"),
    ("init mixed twice", {"init": ["mixed"]}, GOOD, ValueError, "one of the first three per chain, not 'mixed'"),
    ("init too many", {"init": ["cases", "cells"]}, GOOD, ValueError, "init names 2 starts, but n_chains=1: give one for each"),
    ("init words and labels", {"init": ["cells"] + [0] * 19}, GOOD, ValueError, "init must be|labels in init must be"),
    ("init nothing", {"init": None}, GOOD, ValueError, "init must be 'seeded'.*not None"),
    ("init empty", {"init": []}, GOOD, ValueError, r"init must be 'seeded'.*not \[\]"),
    ("names", {"case_names": ["a"]}, GOOD, ValueError, "case_names has 1 entries, but the catalogue has 20 rows"),
    ("callback", {"callback": 3}, GOOD, ValueError, "callback must be a function, not 3"),
    ("checkpoint", {"checkpoint": 5}, GOOD, ValueError, "checkpoint must be a path, not 5"),
    ("checkpoint nowhere", {"checkpoint": "/no/such/x"}, GOOD, ValueError, "cannot be written: there is no folder '/no/such'"),
    ("checkpoint folder", {"checkpoint": "/tmp"}, GOOD, ValueError, "'/tmp' is a folder"),
    ("candidates narrow", {"candidates": GOOD[:, :3]}, GOOD, ValueError, "candidates has 3 features, but the data has 4"),
    ("candidates empty", {"candidates": GOOD[:0]}, GOOD, ValueError, "0 sample"),
    (
        "candidates other",
        {"candidates": NAMED.rename(columns={"b": "z"})},
        NAMED,
        ValueError,
        r"candidates has no column 'b'\.",
    ),
    ("candidates infinite", {"candidates": INFINITE}, GOOD, ValueError, "Column 'x1' contains infinity"),
    (
        "weights length",
        {"prototype_prior": [1, 2]},
        GOOD,
        ValueError,
        "prototype_prior has shape .2,.; it must be one number per candidate",
    ),
    ("weights negative", {"prototype_prior": [-1] + [1] * 19}, GOOD, ValueError, "prototype_prior must be finite"),
    ("weights nan", {"prototype_prior": [np.nan] * 20}, GOOD, ValueError, "prototype_prior must be finite"),
    ("weights zero", {"prototype_prior": [0] * 20}, GOOD, ValueError, "not all 0"),
    ("weights words", {"prototype_prior": ["a"] * 20}, GOOD, ValueError, "prototype_prior must be numbers"),
    ("random_state", {"random_state": -1}, GOOD, ValueError, "[Ss]eed"),
    ("n_jobs", {"n_jobs": 0}, GOOD, ValueError, "n_jobs"),
]


@pytest.fixture(scope="module")
def before():
    return BayesianCaseModel(2, n_iter=10, n_chains=1, keep_draws=True, random_state=0).fit(NAMED)


@pytest.mark.parametrize(("params", "X", "error", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input_is_refused_and_leaves_the_fitted_model_alone(before, params, X, error, message):
    of_model, of_fit = split_settings(params)
    model = copy.copy(before).set_params(**of_model)
    kept = {name: value for name, value in vars(before).items() if name.endswith("_") or name.startswith("_")}
    with pytest.raises(error, match=message) as raised:
        model.fit(X, **of_fit)
    if Path(raised.traceback[-1].path).is_relative_to(Path(bayescase.__file__).parent):  # our own messages are one sentence
        assert "\n" not in str(raised.value)
        assert str(raised.value).endswith(".")
    after = {name: value for name, value in vars(model).items() if name.endswith("_") or name.startswith("_")}
    assert after.keys() == kept.keys()
    assert all(after[name] is kept[name] for name in kept)


def test_bad_input_leaves_an_unfitted_model_unfitted():
    model = BayesianCaseModel(2, alpha=-1)
    with pytest.raises(ValueError, match="alpha"):
        model.fit(GOOD)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_a_failing_callback_leaves_the_fitted_model_alone(before):
    def fail(report):
        raise RuntimeError("stop here")

    model = copy.copy(before)
    with pytest.raises(RuntimeError, match="stop here"):
        model.fit(GOOD, callback=fail)
    assert model.memberships_ is before.memberships_
    assert list(model.feature_names_in_) == list("abcd")


def test_lists_of_rows_with_words_and_gaps():
    """NumPy would make one array of words of such a list, and the word "nan" of its gaps."""
    rows = [["a", 1, None], ["b", 2, "u"], ["a", float("nan"), "v"], ["a", 1, "v"]] * 3
    model = BayesianCaseModel(2, **QUICK).fit(rows)
    assert model.feature_values_ == [("a", "b"), (1, 2), ("u", "v")]
    assert (model.fitted_.data.x < 0).sum() == 6
