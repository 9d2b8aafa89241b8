"""Explanations say what the model says: in numbers, in words, and after a trip through JSON."""

import json
import re
from types import NoneType

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.explanation import (
    CaseExplanation,
    Explanation,
    ModelExplanation,
    as_set,
    clean,
    counted,
    cut,
    listed,
    phrase,
    show,
)


@pytest.fixture(scope="module")
def table(mixed):
    """Columns of every kind, with gaps."""
    return BayesianCaseModel(3, alpha=0.5, n_iter=120, n_chains=2, random_state=0).fit(mixed[0])


@pytest.fixture(scope="module")
def words():
    """Present and absent words, with a catalogue of the cases themselves."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=60)
    chance = np.where(rng.random((3, 12)) < 0.4, 0.9, 0.1)
    table = {f"w{j}": rng.random(60) < chance[kinds, j] for j in range(12)}
    return BayesianCaseModel(3, n_iter=100, n_chains=2, random_state=0).fit(table)


@pytest.fixture(scope="module")
def alone():
    """One cluster only."""
    table = {"a": ["x", "y", "x", "x"], "b": [1, 2, 1, 1], "c": [True, False, True, True]}
    return BayesianCaseModel(1, n_iter=40, n_chains=1, random_state=0).fit(table)


@pytest.fixture(scope="module")
def keyless(planted):
    """No feature belongs to a subspace, and the cases are not the catalogue."""
    x, _ = planted(N=30, P=4)
    return BayesianCaseModel(2, q=0.001, c=0.01, n_iter=40, n_chains=1, random_state=0).fit(x, candidates=x[:7])


def log_phi(model, j):
    """log φ of feature j by value and cluster, from the public attributes only."""
    return {value: np.log(model.value_probabilities_[j][:, v]) for v, value in enumerate(model.feature_values_[j])}


# --- numbers --------------------------------------------------------------------------------------------------------------


def test_contributions_add_up_to_the_difference_of_the_log_likelihoods(table):
    for i in (0, 3, 5, 17):  # 3, 5 and 17 have missing cells
        case = table.explain_case(i)
        log_likelihood = np.zeros(table.n_clusters_)
        for j, feature in enumerate(case.features):
            if feature.value is not None:
                log_likelihood += log_phi(table, j)[feature.value]
        assert len(case.reasons) == table.n_clusters_ - 1
        for reason in case.reasons:
            assert reason.here == case.cluster
            assert reason.total == pytest.approx(log_likelihood[reason.here] - log_likelihood[reason.there])
            sizes = [abs(c.weight) for c in reason.contributions]
            assert sizes == sorted(sizes, reverse=True)
            assert len(sizes) == sum(f.value is not None for f in case.features)


def test_a_contribution_is_the_log_ratio_of_its_value(table):
    case = table.explain_case(0)
    names = [feature.name for feature in case.features]
    for reason in case.reasons:
        for c in reason.contributions:
            by_cluster = log_phi(table, names.index(c.feature))[c.value]
            assert c.weight == pytest.approx(by_cluster[reason.here] - by_cluster[reason.there])


def test_memberships_of_a_case_are_those_of_predict_proba(table, mixed):
    row = {name: column[7:8] for name, column in mixed[0].items()}
    case = table.explain_case(row)
    shares = np.zeros(table.n_clusters_)
    for m in case.memberships:
        assert 0 <= m.low <= m.high <= 1
        shares[m.cluster] = m.mean
    np.testing.assert_allclose(shares, table.predict_proba(row)[0])
    assert case.cluster == table.predict(row)[0]
    assert [m.mean for m in case.memberships] == sorted(shares, reverse=True)


def test_roles_are_the_public_attributes(table):
    weights = table.memberships_.sum(axis=0)
    for s, cluster in enumerate(table.explain().clusters):
        assert cluster.size == (table.labels_ == s).sum()
        assert cluster.share == pytest.approx(table.memberships_[:, s].mean())
        others = np.delete(np.arange(table.n_clusters_), s)
        for j, role in enumerate(cluster.features):
            phi = table.value_probabilities_[j]
            values = [value for value, _, _ in role.distribution]
            assert values == list(table.feature_values_[j])
            np.testing.assert_allclose([here for _, here, _ in role.distribution], phi[s])
            elsewhere = weights[others] @ phi[others] / weights[others].sum()
            np.testing.assert_allclose([there for _, _, there in role.distribution], elsewhere)
            assert role.probability == table.subspace_probabilities_[s, j]
            assert role.typical == values[int(np.argmax(phi[s]))]
            own = table.prototype_cases_[s, j]
            assert role.value == own
            assert role.key == (table.subspaces_[s, j] and own is not None)
            if own is not None:
                assert role.share == pytest.approx(phi[s][values.index(own)])
                assert role.elsewhere == pytest.approx(elsewhere[values.index(own)])
                assert role.unlike == (role.share - role.elsewhere >= 0.15)
        assert set(cluster.key_features) == {role for role in cluster.features if role.key}


def brute_agreement(model, s, i):
    """(agreeing, comparable) key features of case i, value by value."""
    own, case = model.prototype_cases_[s], model.fitted_.encoding.decode(model.fitted_.data.x[i : i + 1])[0]
    keys = [j for j in np.flatnonzero(model.subspaces_[s]) if own[j] is not None and case[j] is not None]
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
        s, keys = cluster.cluster, np.flatnonzero(model.subspaces_[cluster.cluster])
        fit = {}
        for i in np.flatnonzero(model.labels_ == s):
            agrees, of = brute_agreement(model, s, i)
            if agrees < of:
                case = model.fitted_.encoding.decode(model.fitted_.data.x[i : i + 1])[0]
                fit[i] = sum(log_phi(model, j)[case[j]][s] for j in keys if case[j] is not None)
        worst = sorted(fit.values())[:5]
        np.testing.assert_allclose([fit[c.row] for c in cluster.criticisms], worst)


def test_neighbours_share_most_key_values(words):
    for i in range(6):
        case = words.explain_case(i)
        x, keys = words.fitted_.data.x, np.flatnonzero(words.subspaces_[case.cluster])
        same = (x[:, keys] == x[i, keys]).sum(axis=1)
        assert case.neighbours[0].agrees == case.neighbours[0].of == len(keys)  # the case itself is one
        assert [n.agrees for n in case.neighbours] == sorted(same, reverse=True)[:5]
        assert all(n.agrees == same[n.row] for n in case.neighbours)


def test_distinctions_are_divergences(words):
    pair = words.explain_pair(0, 2)
    for s, t, found in ((0, 2, pair.first_against_second), (2, 0, pair.second_against_first)):
        divergence = {}
        for j, name in enumerate(words.feature_names_in_):
            here, there = words.value_probabilities_[j][[s, t]]
            divergence[name] = float(np.sum(here * np.log(here / there)))
        assert [d.feature for d in found] == sorted(divergence, key=lambda name: -divergence[name])[:5]
        for d in found:
            assert d.weight == pytest.approx(divergence[d.feature])


# --- words ----------------------------------------------------------------------------------------------------------------


def test_the_sentence_of_a_cluster_has_its_numbers(words):
    for cluster in words.explain([f"text {i}" for i in range(60)]).clusters:
        text = str(cluster)
        assert f"Cluster {cluster.cluster}: {counted(cluster.size)} like {cluster.prototype.name}" in text
        assert cluster.prototype.name == f"text {cluster.prototype.row}"
        first = cluster.key_features[0]
        said = f"{'' if first.value else 'no '}{first.name} ({first.share:.0%}, elsewhere {first.elsewhere:.0%})"
        assert f"which share {said}" in text
        more = re.search(r"and (\d+) more", text)
        assert (int(more[1]) if more else 0) == max(len(cluster.key_features) - 6, 0)


def test_the_sentence_of_a_case_has_its_numbers(table):
    case = table.explain_case(0)
    first, (agrees, of) = case.memberships[0], case.agreement
    assert str(case).startswith(f"{first.mean:.0%} in cluster {case.cluster} (between {first.low:.0%} and {first.high:.0%})")
    assert f"agrees on {agrees} of {of} key features" in str(case)
    best = next(c for c in case.reasons[0].contributions if c.weight > 0)
    assert f"Not in cluster {case.reasons[0].there}, mostly because of {phrase(best.feature, best.value)}" in str(case)


def test_the_sentence_of_an_agreement_names_the_extremes(words):
    found = words.explain_agreement(0)
    shares = {f.name: f.agreeing for f in found.features}
    text = str(found)
    assert f"{np.mean(list(shares.values())):.0%} of its key features" in text
    most, least = re.search(r"most on (?:no )?(\S+) \(.*least on (?:no )?(\S+) \(", text).groups()
    assert (shares[most], shares[least]) == (max(shares.values()), min(shares.values()))


def test_without_key_features_the_sentences_say_so(keyless):
    for cluster in keyless.explain().clusters:
        assert not cluster.key_features
        assert not cluster.criticisms
        assert str(cluster).endswith("No feature is shared by most of them.")
        assert "no key features" in str(keyless.explain_agreement(cluster.cluster))
    assert "agrees on 0 of 0 key features" in str(keyless.explain_case(0))


def test_words():
    assert [show(v) for v in (None, True, False, 3, 2.50, "x")] == ["missing", "yes", "no", "3", "2.5", "x"]
    assert [phrase("a", v) for v in (True, False, 1, None)] == ["a", "no a", "a = 1", "a = missing"]
    assert listed(["a"], 3) == "a"
    assert listed("abc", 3) == "a, b and c"
    assert listed("abcde", 3) == "a, b, c and 2 more"
    assert cut("a  b\nc", 10) == "a b c"
    assert cut("abcdef", 4) == "abc…"
    assert clean("a\ud800\x00b").isprintable()


def test_sets_are_told_from_tables(words, table):
    assert as_set(words.explain().clusters[0].features)
    assert not as_set(table.explain().clusters[0].features)


# --- JSON -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["table", "words", "alone", "keyless"])
def test_json_and_back(which, request):
    model = request.getfixturevalue(which)
    found = [model.explain(), *(model.explain_case(i) for i in range(4)), model.explain_agreement(0)]
    if model.n_clusters_ > 1:
        found.append(model.explain_pair(0, 1))
    found.extend(found[0].clusters)
    for explanation in found:
        text = json.dumps(explanation.to_json(), allow_nan=False)
        back = Explanation.from_json(json.loads(text))
        assert back == explanation
        assert type(back) is type(explanation)
        assert str(back) == str(explanation)
        assert json.dumps(back.to_json()) == text


def test_json_keeps_the_types_of_values():
    table = {
        "word": ["a", "b", "a", None] * 4,
        "yes": [True, False, True, True] * 4,
        "whole": [1, 2, 1, 1] * 4,
        "half": [0.5, 1.5, 0.5, np.nan] * 4,
    }
    encoder = {"feature_types": {"half": "category"}}
    model = BayesianCaseModel(2, encoder=encoder, n_iter=30, n_chains=1, random_state=0).fit(table)
    case = Explanation.from_json(json.loads(json.dumps(model.explain_case(0).to_json())))
    assert isinstance(case, CaseExplanation)
    assert [type(f.value) for f in case.features] == [type(f.value) for f in model.explain_case(0).features]
    gap = Explanation.from_json(json.loads(json.dumps(model.explain_case(3).to_json())))
    assert gap.features[0].value is None
    assert gap.features[0].cluster is None
    assert gap.features[0].agrees is None


def test_a_single_cluster_is_explained(alone):
    explanation = alone.explain()
    assert isinstance(explanation, ModelExplanation)
    assert explanation.clusters[0].contrasts == ()
    assert alone.explain_case(0).reasons == ()
    assert alone.explain_case(0).memberships[0].mean == 1
    assert "Not in cluster" not in str(alone.explain_case(0))


KINDS = ("nonsense", ["ClusterExplanation"], "ModelExplanation", "Prototype", "__class__", None)
HOSTILE = [None, 3, "x", [], {}, *({"kind": kind} for kind in KINDS), {"kind": "PairExplanation", "first": 0}]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_hostile_json_is_refused(value):
    with pytest.raises(ValueError, match="not an explanation of bayescase"):
        Explanation.from_json(value)


def wrong_part(value, where):
    for key in where:
        value = value[key]
    return value


def damaged(value, path=()):
    """(where, copy of the value with one part of another type) for every part that has a type of its own."""
    items = value.items() if isinstance(value, dict) else list(enumerate(value[:1])) if isinstance(value, list) else ()
    for key, item in items:
        for wrong in ([{"a": 1}], {"b": []}, "text", 7, None):
            if type(wrong) is not type(item):
                yield (*path, key), {**value, key: wrong} if isinstance(value, dict) else [wrong, *value[1:]]
        for where, copy in damaged(item, (*path, key)):
            yield where, {**value, key: copy} if isinstance(value, dict) else [copy, *value[1:]]


def test_json_with_a_part_of_another_type_is_refused(table):
    for explanation in (table.explain_agreement(0), table.explain_case(0), table.explain_pair(0, 1)):
        for where, wrong in damaged(explanation.to_json()):
            part = wrong_part(wrong, where)
            of_a_feature = where[0] == "features"
            anything = where[-1] == "value" or (of_a_feature and where[-1] == "prototype")
            gap = part is None and of_a_feature and where[-1] in ("cluster", "cluster_probability", "agrees")
            gap |= part is None and where[-2:-1] == ("agrees",)
            whole = part == 7 and isinstance(wrong_part(explanation.to_json(), where), float)
            if gap or (anything and isinstance(part, (str, int, NoneType))) or whole:
                assert Explanation.from_json(wrong) != explanation
            else:
                with pytest.raises(ValueError, match="not an explanation"):
                    Explanation.from_json(wrong)


def test_json_of_another_kind_is_refused(table):
    assert isinstance(CaseExplanation.from_json(table.explain_case(0).to_json()), CaseExplanation)
    with pytest.raises(ValueError, match="not an explanation"):
        CaseExplanation.from_json(table.explain_pair(0, 1).to_json())


def test_names_and_clusters_are_checked(words):
    with pytest.raises(ValueError, match="names has 2 entries, but the catalogue has 60 rows"):
        words.explain(["a", "b"])
    for wrong in (-1, 3, True, "0", 1.0, None):
        with pytest.raises(ValueError, match="There is no cluster"):
            words.explain_agreement(wrong)
    with pytest.raises(ValueError, match="names has"):
        words.explain_agreement(0, ["a"])
