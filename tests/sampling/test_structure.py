"""A table without clusters says so."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.sampling.structure import LEAST_TOLD, has_structure, told


def test_what_features_tell():
    certain = np.eye(4)[np.arange(40) % 4]
    assert told(certain) == 1.0
    assert told(np.full((40, 4), 0.25)) == pytest.approx(0.0)
    assert told(np.tile([0.9, 0.1, 0.0], (40, 1))) == pytest.approx(0.0)  # all in one cluster: none is told from another
    half = 0.5 * certain + 0.125
    assert LEAST_TOLD < told(half) < 1.0
    n_i = np.array([0, 0, 0, 0, 40])
    assert has_structure(half, 0.01, n_i)
    assert not has_structure(np.full((40, 4), 0.25), 0.01, n_i)
    assert has_structure(np.full((40, 4), 0.25), 5.0, n_i)  # as the prior has it
    assert has_structure(np.ones((40, 1)), 0.01, n_i)
    assert told(np.tile([1.0, 0.0], (40, 1))) == 1.0  # one in use


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_all_combinations_have_no_clusters():
    """Of five features with three values each; beside it the same features in two planted groups."""
    x = np.array(np.meshgrid(*[range(3)] * 5)).reshape(5, -1).T
    settings = {"n_clusters": 2, "n_iter": 150, "n_chains": 2, "alpha": 0.0, "random_state": 0}
    none = BayesianCaseModel(**settings).fit(x).diagnostics_
    assert none.verdict == "There are no clusters to speak of: all cases have about the same shares in them."
    assert not none.sound
    assert "n_clusters" in none.advice
    rng = np.random.default_rng(0)
    x = np.where(rng.random((80, 5)) < 0.2, rng.integers(3, size=(80, 5)), 2 * (np.arange(80) % 2)[:, None])
    assert "no clusters" not in BayesianCaseModel(**settings).fit(x).diagnostics_.verdict
