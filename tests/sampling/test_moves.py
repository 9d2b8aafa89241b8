"""Moves within a run: the same numbers for any number of threads, and after a checkpoint."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.sampling import problem
from bayescase.sampling.moves import MOST_CELLS, how_often


def cases(seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.integers(3, size=(4, 8))
    x = np.where(rng.random((60, 8)) < 0.2, rng.integers(3, size=(60, 8)), centres[rng.integers(4, size=60)])
    return {f"f{j}": [None if rng.random() < 0.05 else f"v{v}" for v in column] for j, column in enumerate(x.T)}


SETTINGS = {"n_clusters": 4, "n_iter": 24, "n_chains": 2, "moves": "clusters", "random_state": 0}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"alpha": 0.0, "c": "learn"},
        {"n_clusters": "auto", "max_clusters": 6},
        {"moves": "cases", "alpha": 0.3},
        {"moves": "cases", "n_clusters": "auto", "max_clusters": 6},
    ],
)
def test_threads_and_checkpoints_do_not_change_a_result(tmp_path, more):
    table, path = cases(), tmp_path / "run"
    whole = BayesianCaseModel(**SETTINGS | more, n_jobs=1).fit(table)
    threads = BayesianCaseModel(**SETTINGS | more, n_jobs=2).fit(table)
    BayesianCaseModel(**SETTINGS | more).fit(table, checkpoint=path, callback=lambda report: report.sweep == 13)
    resumed = BayesianCaseModel(**SETTINGS | more).fit(table, checkpoint=path)
    for other in (threads, resumed):
        np.testing.assert_array_equal(whole.log_joint_, other.log_joint_)
        np.testing.assert_array_equal(whole.memberships_, other.memberships_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_moves_are_made_and_held_cases_stay():
    table = cases()
    plain, moved = (
        BayesianCaseModel(**SETTINGS | {"moves": moves, "alpha": 0.0}).fit(table, pins={"cases": {0: 2}})
        for moves in ("none", "clusters")
    )
    assert not np.array_equal(plain.log_joint_, moved.log_joint_)
    assert moved.labels_[0] == 2
    with pytest.raises(ValueError, match="moves must be"):
        BayesianCaseModel(moves="yes").fit(table)
    with pytest.raises(ValueError, match=r"moves='cases' needs sampler='rows'"):
        BayesianCaseModel(moves="cases", sampler="collapsed").fit(table)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_cases_are_drawn_anew_by_default_unless_the_table_is_large(monkeypatch):
    def log_joint(**more):
        return BayesianCaseModel(**SETTINGS | more).fit(cases()).log_joint_

    by_default = log_joint(moves="auto")
    np.testing.assert_array_equal(by_default, log_joint(moves="cases"))
    assert not np.array_equal(by_default, log_joint(moves="none"))
    monkeypatch.setattr(problem, "MOST_CELLS", 100)
    np.testing.assert_array_equal(log_joint(moves="auto"), log_joint(moves="none"))


def test_large_tables_go_without():
    assert how_often(MOST_CELLS + 1, 1000, 100, 5) == (0, 0)
    assert how_often(1000, 100, 30, 1) == (0, 0)
    assert min(how_often(1000, 100, 30, 3)) >= 1
