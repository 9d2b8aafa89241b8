"""Where a case belongs and why."""

import dataclasses
import warnings

import numpy as np
import pytest

from bayescase import BayescaseWarning
from bayescase.explaining.words import phrase

from ..helpers import fit_model


def log_phi(model, j):
    """log φ of feature j by value and cluster, from the public attributes only."""
    return {value: np.log(model.value_probabilities_[j][:, v]) for v, value in enumerate(model.feature_values_[j])}


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


def test_a_case_of_the_fit_is_explained_by_what_the_fit_found(table, words):
    for model in (table, words):
        for i in range(len(model.labels_)):
            case = model.explain_case(i)
            assert case.cluster == model.labels_[i]
            assert {m.cluster: m.mean for m in case.memberships} == dict(enumerate(model.memberships_[i]))
            assert case.name == model.fitted_.name_of(i)
            assert case.prototype.row == model.prototypes_[case.cluster]


def test_neighbours_share_most_key_values(words):
    keys = {c.cluster: [f.key for f in c.features] for c in words.explain().clusters}
    for i in range(6):
        case = words.explain_case(i)
        x, key = words.fitted_.data.x, np.flatnonzero(keys[case.cluster])
        same = (x[:, key] == x[i, key]).sum(axis=1)
        assert case.neighbours[0].agrees == case.neighbours[0].of == len(key)  # the case itself is one
        assert [n.agrees for n in case.neighbours] == sorted(same, reverse=True)[:5]
        assert all(n.agrees == same[n.row] for n in case.neighbours)


def test_the_sentence_of_a_case_has_its_numbers(table):
    case = table.explain_case(0)
    first, (agrees, of) = case.memberships[0], case.agreement
    assert str(case).startswith(f"case 0: {first.mean:.0%} in cluster {case.cluster} ({first.name})")
    assert f"between {first.low:.0%} and {first.high:.0%}" in str(case)
    assert f"agrees on {agrees} of {of} key feature" in str(case)
    best = next(c for c in case.reasons[0].contributions if c.weight > 0)
    assert f"Not in {case.title_of(case.reasons[0].there)}, mostly because of {phrase(best.feature, best.value)}" in str(case)


def test_a_new_case_has_no_name(table, mixed):
    case = table.explain_case({name: column[7:8] for name, column in mixed[0].items()})
    assert case.name is None
    assert str(case)[0].isdigit() or str(case)[0] in "<>"


def test_an_only_cluster_and_no_key_features(alone, keyless):
    assert alone.explain_case(0).reasons == ()
    assert alone.explain_case(0).memberships[0].mean == 1
    assert "Not in cluster" not in str(alone.explain_case(0))
    assert "agrees on" not in str(keyless.explain_case(0))


def test_the_sentence_of_a_case_names_nothing_that_it_lacks():
    labels = np.repeat([0, 1], 30)
    columns = dict.fromkeys(("fins", "tail", "gills"), labels == 1) | {"fur": labels == 0, "legs": labels == 0}
    pins = {"cases": dict(enumerate(labels.tolist()))}
    case = fit_model(columns, 2, n_iter=40, n_chains=1, random_state=0, pins=pins).explain_case(0)
    assert case.because == "partly because of fur and legs"
    assert f"Like {case.prototype}: agrees on" in str(case)
    (reason,) = case.reasons
    lacking = tuple(c for c in reason.contributions if c.value is False)
    having = tuple(c for c in reason.contributions if c.value)
    of = lambda found: dataclasses.replace(case, reasons=(dataclasses.replace(reason, contributions=found),)).because  # noqa: E731
    assert of(lacking) == "because of what it lacks"
    assert of(having) == "mostly because of fur and legs"
    assert of(()) == ""


def test_rows_are_checked(words):
    for wrong in (-1, 60):
        with pytest.raises(ValueError, match=f"There is no case {wrong}: the model was fitted to 60"):
            words.explain_case(wrong)


def test_a_case_without_a_value_is_said_to_have_none(bags):
    for empty in ({"ingredients": [[]]}, {"ingredients": [["never seen"]]}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BayescaseWarning)
            found = bags.explain_case(empty)
        assert found.is_empty
        assert "nothing says where it belongs" in str(found)
        assert "agrees on" not in str(found)
    assert not bags.explain_case(0).is_empty
