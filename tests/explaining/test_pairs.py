"""How two clusters differ."""

import numpy as np
import pytest

from bayescase.explaining.telling import bits
from bayescase.explaining.words import percent


def test_a_pair_has_what_each_has_more_often(words):
    pair = words.explain_pair(0, 2)
    assert (pair.first.cluster, pair.second.cluster) == (0, 2)
    assert pair.first.prototype.row == words.prototypes_[0]
    for side in (pair.first, pair.second):
        assert all(d.here > d.there for d in side.more_often)
        expected = [float(bits(np.array(d.here), np.array(d.there))) for d in side.more_often]
        assert [d.bits for d in side.more_often] == pytest.approx(expected)
        assert [d.bits for d in side.more_often] == sorted((d.bits for d in side.more_often), reverse=True)
    mirrored = words.explain_pair(2, 0)
    assert (mirrored.first, mirrored.second) == (pair.second, pair.first)


def test_the_sentence_of_a_pair_has_its_numbers(words):
    pair = words.explain_pair(0, 1)
    for side in (pair.first, pair.second):
        d = side.more_often[0]
        words_of_it = (
            f"More often in cluster {side.cluster} ({side.name}): {d.words} ({percent(d.here)} against {percent(d.there)})"
        )
        assert words_of_it in str(pair)


def test_two_different_clusters_are_needed(words):
    with pytest.raises(ValueError, match="two different clusters, not 1 twice"):
        words.explain_pair(1, 1)
    with pytest.raises(ValueError, match="There is no cluster 3"):
        words.explain_pair(0, 3)
