"""Where chains differ: clusters matched, cases that move, chains that found the same."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.sampling.differing import differing

SHOWN = np.repeat([0, 1, 2, 3], [20, 15, 10, 8])


def found(*chains, overlap=None, **settings):
    overlap = np.array([1.0] + [0.5] * (len(chains) - 1)) if overlap is None else np.array(overlap)
    return differing(SHOWN, np.stack(chains), 4, overlap, **settings)


def test_names_of_clusters_do_not_matter():
    of = found(SHOWN, np.array([3, 0, 2, 1])[SHOWN], overlap=[1, 1])
    assert np.array_equal(of.labels, [SHOWN, SHOWN])
    assert (of.alike == 1).all()
    assert of.same.all()
    assert of.counts == (4, 4, 0, 53)
    assert of.way.tolist() == [0, 0]


def test_cases_that_go_from_one_cluster_to_another():
    other = SHOWN.copy()
    other[:5] = 1
    of = found(SHOWN, other)
    assert of.same.tolist() == [False, False, True, True]
    assert np.flatnonzero(of.moving).tolist() == list(range(5))
    assert of.alike[1].tolist() == [15 / 20, 15 / 20, 1, 1]
    assert of.counts == (2, 4, 5, 53)


def test_two_that_are_one_and_one_that_is_two():
    """Clusters 2 and 3 are one there; half of cluster 0 is a cluster that is none of those shown, whatever its number."""
    other = np.where(SHOWN == 3, 2, SHOWN)
    other[:9] = 3
    of = found(SHOWN, other)
    assert (of.labels[1, :9] == 4).all()
    assert (of.labels[1, SHOWN == 3] == 2).all()
    assert of.same.tolist() == [False, True, False, False]
    assert of.alike[1].tolist() == [11 / 20, 1, 10 / 18, 0]
    assert of.counts.moving == 17


def test_folded_clusters_are_those_that_most_cases_are_in():
    """What is one cluster here is two in the chains."""
    fewer = np.minimum(SHOWN, 2)
    of = differing(fewer, np.stack([SHOWN, np.array([0, 1, 3, 2])[SHOWN]]), 3, np.array([1.0, 0.5]), folded=True)
    assert np.array_equal(of.labels, [fewer, fewer])
    assert of.same.all()
    assert not of.moving.any()


def test_clusters_without_cases_are_none_that_could_be_the_same():
    shown = np.where(SHOWN == 3, 2, SHOWN)
    of = differing(shown, np.stack([shown, shown]), 4, np.ones(2))
    assert of.same.tolist() == [True, True, True, False]
    assert np.isnan(of.alike[:, 3]).all()
    assert of.counts == (3, 3, 0, 53)


def test_chains_that_found_the_same_are_told_once():
    other = np.roll(SHOWN, 12)
    swapped = np.array([1, 0, 3, 2])[other]
    assert found(SHOWN, other, SHOWN, swapped, np.roll(SHOWN, 25), overlap=[1, 0.4, 1, 0.4, 0.3]).way.tolist() == [
        0,
        1,
        0,
        1,
        2,
    ]


@pytest.mark.parametrize("n_clusters", [3, "auto"])
def test_labels_of_chains_are_those_of_their_memberships(n_clusters, planted):
    """Of one chain, and of one of several that agree, they are the labels that are shown."""
    x, _ = planted(N=40, P=6, noise=0.05)
    alone = BayesianCaseModel(n_clusters, n_iter=40, n_chains=1, random_state=0).fit(x).fitted_
    assert np.array_equal(alone.posterior.chain_labels, [alone.labels])
    several = BayesianCaseModel(n_clusters, n_iter=40, n_chains=3, random_state=0).fit(x).fitted_
    assert several.posterior.chain_labels.shape == (3, 40)
    assert (several.posterior.overlap >= 0.9).all()
    assert (several.posterior.chain_labels == several.labels).mean() > 0.95
