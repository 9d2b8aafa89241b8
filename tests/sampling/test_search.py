"""The search for a start: what is crossed, what wins, and that a run has the same numbers however it is made."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from bayescase import BayesianCaseModel
from bayescase.sampling import search, stored
from bayescase.sampling.search import MOST_RUNS, Short, crossed, few_groups, first_observed, how_many, most_groups, named_after
from bayescase.sampling.starts import few_cases
from bayescase.state import Cells, make_data, make_hyper

from .test_moves import cases

SETTINGS = {"n_clusters": 4, "n_iter": 12, "n_chains": 2, "n_init": 5, "random_state": 0}


def planted(n=60, P=10, S=4):
    rng = np.random.default_rng(0)
    labels = np.arange(n) % S
    x = np.where(rng.random((n, P)) < 0.1, rng.integers(3, size=(n, P)), rng.integers(3, size=(S, P))[labels])
    return make_data(x + 3 * np.arange(P), np.arange(P + 1) * 3), make_hyper(S, P, 0.01, 1.0, 50.0, 0.8), labels


def test_two_halves_make_a_whole():
    """One run has clusters 0 and 1 right, the other 2 and 3; their crossing has all."""
    data, hyper, truth = planted()
    first, second = np.where(truth < 2, truth, 2), np.where(truth < 2, 0, truth)
    found = crossed(data, hyper, first, second, 4)
    np.testing.assert_array_equal(named_after(truth, found, 4), truth)
    assert set(found[truth == 0]) == {0}  # named after the first of the two
    assert set(found[truth == 1]) == {1}


def test_small_groups_join_those_that_they_are_like():
    data, _, truth = planted()
    np.testing.assert_array_equal(few_groups(data, np.where(np.arange(60) < 8, 4 + np.arange(60), truth), np.arange(4)), truth)
    assert most_groups(data, 50) >= 100
    wide = data._replace(book=data.book._replace(offset=data.book.offset * 1000))
    assert most_groups(wide, 2) < most_groups(data, 2)


def test_the_best_is_left():
    """Of 5 runs and of what comes of them. Runs are crossed as soon as they can be."""
    made = []

    def start(k):
        return Short(np.array([k]), None, float(k))

    def cross(a, b):
        made.append((int(a.labels[0]), int(b.labels[0])))
        return Short(np.array([9]), None, 3.5)

    assert search.search(start, cross, 5).labels[0] == 4
    assert made == [(0, 1), (9, 2), (3, 4), (9, 4)]
    assert search.search(start, lambda a, b: Short(np.array([9]), None, 100.0), 5).score == 100.0
    assert search.search(start, cross, 1).labels[0] == 0


def test_first_observed_cells():
    cells = Cells(np.array([3, 4, -1, 2, -1, -1]), np.array([0, 2, 4, 4, 6]))
    np.testing.assert_array_equal(first_observed(cells), [0, 3, -1, -1])


def test_how_many_runs():
    assert [how_many("auto", n, 100, 10) for n in (10, 249, 250, 1000, 10**6)] == [1, 1, 16, MOST_RUNS, MOST_RUNS]
    assert how_many(7, 10, 100, 10) == how_many(7, 1000, 10**9, 10**5) == 7
    assert how_many("auto", 1000, 10**9, 10**5) == 1
    assert how_many("auto", 1000, 10**9, 10**7) == MOST_RUNS  # it searches in a sample


def test_a_sample_that_is_searched_has_a_candidate_for_every_cluster(monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 20)
    data, _, _ = planted()
    weight = np.full((60, 2), -np.log(60))
    missing = np.setdiff1d(np.arange(60), stored.sample_rows(60, 3))
    weight[:, 1] = -np.inf
    weight[missing[5], 1] = 0.0  # held there
    few = few_cases(data._replace(log_weight=weight, z_held=np.arange(60)), 60, 3)
    assert few.own_cases
    assert len(few.x) == 21
    assert missing[5] in few.z_held
    np.testing.assert_array_equal(few.log_weight, weight[few.z_held])
    assert few_cases(data, 20, 3).x.shape == (20, 10)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pins_outside_the_sample_that_is_searched(monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 20)
    model = BayesianCaseModel(**SETTINGS).fit(cases(), pins={"cases": {1: 2, 3: 0}, "prototypes": {1: 5, 2: 44}})
    assert (model.labels_[[1, 3]] == [2, 0]).all()
    assert (model.prototypes_[[1, 2]] == [5, 44]).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_clusters_of_a_sample_are_those_of_all(monkeypatch):
    """The search in a sixth of the cases finds them, and the others go where they are like."""
    x, truth = strangers()
    monkeypatch.setattr(stored, "START_CASES", 50)
    settings = {"n_clusters": 5, "n_iter": 2, "burn_in": 1, "n_chains": 1, "init": "cases", "random_state": 0}
    found, none = (BayesianCaseModel(**settings, n_init=n).fit(x) for n in (10, 1))
    assert adjusted_rand_score(truth, found.labels_) > 0.95
    assert adjusted_rand_score(truth, none.labels_) < 0.8


def strangers(n=300, P=12, S=5):
    rng = np.random.default_rng(4)
    truth = np.arange(n) % S
    x = np.where(rng.random((n, P)) < 0.1, rng.integers(4, size=(n, P)), rng.integers(4, size=(S, P))[truth])
    return x, truth


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "more", [{}, {"alpha": 0.0, "c": "learn"}, {"n_clusters": "auto", "max_clusters": 6}, {"moves": "clusters"}]
)
def test_threads_and_checkpoints_do_not_change_a_result(tmp_path, monkeypatch, more):
    table, path = cases(), tmp_path / "run"
    whole = BayesianCaseModel(**SETTINGS | more, n_jobs=1).fit(table)
    threads = BayesianCaseModel(**SETTINGS | more, n_jobs=2).fit(table)
    BayesianCaseModel(**SETTINGS | more).fit(table, checkpoint=path, callback=lambda report: report.sweep == 7)
    monkeypatch.setattr("bayescase.sampling.chain.search", None)  # what is taken up again has its start
    resumed = BayesianCaseModel(**SETTINGS | more).fit(table, checkpoint=path)
    for other in (threads, resumed):
        np.testing.assert_array_equal(whole.log_joint_, other.log_joint_)
        np.testing.assert_array_equal(whole.memberships_, other.memberships_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bags_pins_and_similarity():
    """A search with all of these; held cases stay where they are."""
    rng = np.random.default_rng(1)
    kinds = np.arange(40) % 2
    table = {
        "size": [int(3 * k + rng.integers(2)) for k in kinds],
        "items": [[f"{'ab'[k]}{i}" for i in rng.integers(4, size=3)] if k or i else [] for i, k in enumerate(kinds)],
    }
    model = BayesianCaseModel(2, n_iter=20, n_chains=2, n_init=4, similarity={"size": ("within", 1)}, random_state=0)
    model.fit(table, pins={"cases": {1: 0, 2: 1}, "subspaces": {0: {"size": True}}})
    np.testing.assert_array_equal(model.labels_[1:], 1 - kinds[1:])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_starts_that_are_given_are_not_searched():
    table, labels = cases(), np.arange(60) % 4

    def same(given=None, **more):
        plain, searched = (BayesianCaseModel(**SETTINGS | more | {"n_init": n}).fit(table, init=given) for n in (1, 5))
        return np.array_equal(plain.log_joint_, searched.log_joint_)

    assert not same()
    assert same(given=labels)
    assert same(init="cells", alpha=0.1)
    assert same(sampler="collapsed")


def test_wrong_numbers_of_runs():
    for wrong in (0, "many", 2.5):
        with pytest.raises(ValueError, match="n_init must be 'auto' or a whole number of at least 1"):
            BayesianCaseModel(n_init=wrong).fit(cases())
