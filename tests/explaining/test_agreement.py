"""Who agrees with a prototype, on what, and who fits worst."""

import re

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.words import percent


def brute_agreement(model, s, i):
    """(agreeing, comparable) key features of case i, value by value."""
    own, case = model.prototype_cases_[s], model.fitted_.encoding.decode(model.fitted_.data.x[i : i + 1])[0]
    keys = [j for j, f in enumerate(model.explain().cluster(s).features) if f.key and case[j] is not None]
    return sum(own[j] == case[j] for j in keys), len(keys)


@pytest.mark.parametrize("which", ["table", "words"])
def test_agreement_is_that_of_a_count_by_hand(which, request):
    model = request.getfixturevalue(which)
    for cluster in model.explain().clusters:
        for criticism in cluster.criticisms:
            assert (criticism.agrees, criticism.of) == brute_agreement(model, cluster.cluster, criticism.row)
            assert len(criticism.differs) == criticism.of - criticism.agrees > 0
        found = model.explain_agreement(cluster.cluster)
        assert found.size == cluster.size
        assert [f.name for f in found.features] == [f.name for f in cluster.key_features]
        assert all(len(member.agrees) == len(found.features) for member in found.members)
        for member in found.members:
            known = [a for a in member.agrees if a is not None]
            assert (sum(known), len(known)) == brute_agreement(model, cluster.cluster, member.row)
        if len(found.members) == found.size:  # all of them are shown, so the shares can be counted
            for k, f in enumerate(found.features):
                column = [m.agrees[k] for m in found.members if m.agrees[k] is not None]
                assert f.agreeing == pytest.approx(np.mean(column))
    for i in range(10):
        case = model.explain_case(i)
        assert case.agreement == brute_agreement(model, case.cluster, i)


def test_members_go_from_most_to_least_agreeing_and_include_both_ends(words):
    for s in range(words.n_clusters_):
        found = words.explain_agreement(s)
        agreeing = [sum(map(bool, m.agrees)) for m in found.members]
        assert agreeing == sorted(agreeing, reverse=True)
        everyone = [brute_agreement(words, s, i)[0] for i in np.flatnonzero(words.labels_ == s)]
        assert (agreeing[0], agreeing[-1]) == (max(everyone), min(everyone))


def test_agreement_follows_the_similarity_of_the_model():
    x = np.array([[1], [2], [3], [9]] * 5)
    pins = {"prototypes": {0: 1}, "subspaces": {0: {"x0": True}}}
    model = BayesianCaseModel(1, similarity=("within", 1), n_iter=20, n_chains=1, random_state=0).fit(x, pins=pins)
    found = model.explain_agreement(0)
    assert found.features[0].agreeing == pytest.approx(0.75)  # 1, 2 and 3 are within 1 of 2
    assert {m.agrees for m in found.members} == {(True,), (False,)}


@pytest.mark.parametrize("which", ["table", "words"])
def test_criticisms_are_the_worst_members_that_differ(which, request):
    model = request.getfixturevalue(which)
    for cluster in model.explain().clusters:
        s, keys = cluster.cluster, [j for j, f in enumerate(cluster.features) if f.key]
        fit = {}
        for i in np.flatnonzero(model.labels_ == s):
            agrees, of = brute_agreement(model, s, i)
            if agrees < of:
                case = model.fitted_.encoding.decode(model.fitted_.data.x[i : i + 1])[0]
                phi = [
                    model.value_probabilities_[j][s, model.feature_values_[j].index(case[j])]
                    for j in keys
                    if case[j] is not None
                ]
                fit[i] = np.log(phi).sum()
        worst = sorted(fit.values())[:5]
        np.testing.assert_allclose([fit[c.row] for c in cluster.criticisms], worst)


def test_the_sentence_of_an_agreement_names_the_extremes(words):
    found = words.explain_agreement(0)
    shares = {f.name: f.agreeing for f in found.features}
    text = str(found)
    assert f"{percent(float(np.mean(list(shares.values()))))} of its key features" in text
    most, least = re.search(r"most on (?:no )?(\S+) \(.*least on (?:no )?(\S+) \(", text).groups()
    assert (shares[most], shares[least]) == (max(shares.values()), min(shares.values()))


def test_without_key_features_it_says_so(keyless):
    for cluster in keyless.explain().clusters:
        assert "no key features" in str(keyless.explain_agreement(cluster.cluster))


def test_clusters_are_checked(words):
    for wrong in (-1, 3, True, "0", 1.0, None):
        with pytest.raises(ValueError, match="There is no cluster"):
            words.explain_agreement(wrong)
