"""Chains that jump call their clusters alike, whichever draws they begin with."""

import numpy as np

from bayescase.sampling import consensus as room
from bayescase.sampling.consensus import consensus, marks, names
from bayescase.sampling.posterior import AGREE, in_both, in_common, match

EITHER = np.zeros(3, dtype=int)  # labels that may all be permuted
ONE = np.repeat([0, 1, 2], [30, 20, 10])


def noisy(one, rng, share=0.1):
    return np.where(rng.random(len(one)) < share, rng.integers(3, size=len(one)), one)


def test_labels_that_are_permuted_are_named_alike():
    rng = np.random.default_rng(0)
    many = [rng.permutation(3)[noisy(ONE, rng)] for _ in range(40)]
    found = consensus(many, EITHER)
    assert found.sum(axis=1).tolist() == [40] * len(ONE)
    assert np.array_equal(found.argmax(axis=1), names(found, ONE, EITHER)[ONE])
    assert (found.max(axis=1) > 30).all()
    renamed = [names(found, one, EITHER)[one] for one in many]
    assert np.array_equal(sum(marks(one, 3) for one in renamed), found)


def three_ways(first):
    """Labellings of 80 cases in two, in three ways that are little alike, each called one thing or the opposite."""
    rng = np.random.default_rng(1)
    base = rng.integers(2, size=80)
    of_each = [np.where(rng.random(80) < 0.2, base, rng.integers(2, size=80)) for _ in range(3)]
    return [of_each[k] ^ int(rng.integers(2)) for k in [first, *rng.integers(3, size=59)]]


def mains():
    """What the consensus is for each of three that come first."""
    found = [consensus(three_ways(first), EITHER[:2]).argmax(axis=1) for first in range(3)]
    return {tuple(one ^ one[0]) for one in found}


def test_what_comes_first_makes_no_difference(monkeypatch):
    assert len(mains()) == 1
    monkeypatch.setattr(room, "BEGINNINGS", 1)
    monkeypatch.setattr(room, "TURNS", 1)
    assert len(mains()) > 1  # matched to the first alone


def test_labels_that_differ_in_their_priors_keep_their_names():
    many = [np.array([1, 2, 0])[ONE]] * 5
    assert np.array_equal(consensus(many, np.arange(3)).argmax(axis=1), many[0])
    assert np.array_equal(names(consensus([ONE], EITHER), many[0], np.array([0, 0, 1])), [1, 0, 2])


def overlap_of(ways):
    """What two chains share: ways[c] are the descriptions that chain c goes round, each draw in an order of its own."""
    rng = np.random.default_rng(2)
    draws = [[rng.permutation(3)[noisy(rng.choice(of), rng, 0.02)] for _ in range(60)] for of in ways]
    found = consensus([one for chain in draws for one in chain[:16]], EITHER)
    first, other = (np.mean([marks(names(found, one, EITHER)[one], 3) for one in chain], axis=0) for chain in draws)
    return in_common(first, other, np.argsort(match(in_both(first, other), EITHER)))


def test_chains_in_different_descriptions_still_differ():
    """Names in common make chains agree that go round the same, and no others."""
    elsewhere = np.where(np.arange(60) % 6 == 0, (ONE + 1) % 3, ONE)  # a sixth of the cases, in other clusters
    assert overlap_of([[ONE], [ONE]]) > AGREE
    assert overlap_of([[ONE, elsewhere], [ONE, elsewhere]]) > AGREE
    assert overlap_of([[ONE], [elsewhere]]) < AGREE
    assert overlap_of([[ONE, ONE[::-1]], [ONE]]) < AGREE
