"""Explanations of bags: items that are there, counted in cases, never what is lacking."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel, load_recipes
from bayescase.explaining.explanation import ModelExplanation


@pytest.fixture(scope="module")
def lists():
    return [set(items) for items in load_recipes().table["ingredients"]]


@pytest.fixture(scope="module")
def mixed_bags(lists):
    """Beside the ingredients a feature that says nothing, with gaps, and a second bag."""
    rng = np.random.default_rng(0)
    season = np.where(rng.random(80) < 0.1, None, rng.choice(["summer", "winter"], size=80))
    tags = [["quick", "quick"] if "pasta" in items else ["slow", "onion"] for items in lists]
    table = {"season": season, "ingredients": [sorted(items) for items in lists], "tags": tags}
    return BayesianCaseModel(3, n_iter=60, n_chains=2, random_state=0).fit(table)


def test_shares_are_those_of_the_cases_that_have_the_item(bags, lists):
    for cluster in bags.explain().clusters:
        own = bags.labels_ == cluster.cluster
        for d in (*cluster.more_often, *cluster.rare):
            has = np.array([d.feature in items for items in lists])
            assert d.values == (True,)
            assert d.words == d.feature
            assert d.here == pytest.approx(has[own].mean())
            assert d.there == pytest.approx(has[~own].mean())


def test_key_items_are_items_of_the_prototype_that_the_subspace_has(bags, lists):
    names = bags.fitted_.columns.names
    for cluster in bags.explain().clusters:
        prototype = lists[cluster.prototype.row]
        assert bags.labels_[cluster.prototype.row] == cluster.cluster
        assert cluster.key_features
        for role in cluster.features:
            assert role.value is (role.name in prototype)
            assert names[role.column] == role.name
            assert role.subspace_probability == bags.subspace_probabilities_[cluster.cluster, role.column]
            assert not role.key or role.value
        assert {role.name for role in cluster.features} >= prototype
        assert cluster.unsaid == 0
        assert {name for name, _ in cluster.card().items} == prototype


def test_what_is_absent_is_not_listed(bags):
    text = str(bags.explain())
    assert " no " not in text
    assert "= False" not in text
    assert "110 items in ingredients" in text


def test_prototypes_are_the_items_of_a_case(bags, lists):
    for row, (items,) in zip(bags.prototypes_, bags.prototype_cases_, strict=True):
        assert set(items) == lists[row]


def test_a_case_shows_its_items_and_the_key_ones_that_it_lacks(bags, lists):
    for i in (0, 30, 79):
        case = bags.explain_case(i)
        keys = {f.name for f in bags.explain().cluster(case.cluster).key_features}
        assert {f.name for f in case.features} == lists[i] | keys
        for f in case.features:
            assert f.value is (f.name in lists[i])
            assert (f.cluster is None) == (not f.value)
            assert f.agrees is (f.value == f.prototype)
        for reason in case.reasons:
            assert {c.feature for c in reason.contributions} == lists[i]
        assert case.neighbours[0].agrees == len(keys) or case.neighbours[0].row != i


def test_a_new_case_is_explained_like_an_old_one(bags, lists):
    new = bags.explain_case({"ingredients": [sorted(lists[3])]})
    assert new.cluster == bags.labels_[3]
    assert {f.name for f in new.features if f.value} == lists[3]
    for way in (sorted(lists[3]), tuple(lists[3]), lists[3]):  # the items of the one case, however they come
        assert bags.explain_case({"ingredients": way}) == new


def test_an_item_that_occurs_twice_weighs_twice():
    table = {"words": [["a", "b"], ["a", "a", "c"], ["d", "e"], ["d", "d", "f"]] * 5}
    model = BayesianCaseModel(2, n_iter=60, n_chains=1, random_state=0).fit(table)
    once, twice = (model.explain_case({"words": [items]}).reasons[0] for items in (["a"], ["a", "a"]))
    assert twice.contributions[0].weight == pytest.approx(2 * once.contributions[0].weight)


def test_single_features_and_several_bags_side_by_side(mixed_bags):
    explained = mixed_bags.explain()
    assert "1 feature, 110 items in ingredients, 3 items in tags" in explained.summary
    told = {d.words for cluster in explained.clusters for d in cluster.more_often}
    assert "ingredients: pasta" in told
    assert "tags: quick" in told
    case = mixed_bags.explain_case(0)
    assert case.features[0].name == "season"
    assert ModelExplanation.from_json(explained.to_json()) == explained


def test_cases_without_any_item_count_for_no_cluster():
    full = [["onion", "garlic"], ["garlic"], ["onion", "onion"], ["rice"], ["rice", "pea"]] * 3
    settings = {"n_iter": 60, "n_chains": 2, "random_state": 0}
    with pytest.warns(UserWarning, match="Rows 15, 16, 17, 18, 19 and 4 more have no value at all"):
        model = BayesianCaseModel(2, **settings).fit({"things": full + [[]] * 9})
    explained = model.explain()
    assert sorted(cluster.size for cluster in explained.clusters) == [6, 9]
    assert explained.summary.endswith("2 clusters; 9 cases without any value are not counted.")
    for cluster in explained.clusters:
        first = cluster.more_often[0]
        assert (first.words in cluster.name, first.there) == (True, 0.0)
        assert first.here == pytest.approx(
            np.mean([first.words in full[i] for i in np.flatnonzero(model.labels_[:15] == cluster.cluster)])
        )
        assert all(member.row < 15 for member in model.explain_agreement(cluster.cluster).members)
    assert model.labels_[15:].tolist() == [0] * 9, "as scikit-learn has it: the first of equals"
    assert model.explain_differences().n_cases == 15
    assert "no value that the model knows" in str(model.explain_case(20))
    assert explained == ModelExplanation.from_json(explained.to_json())


def test_members_agree_on_items(bags, lists):
    for s in range(5):
        found = bags.explain_agreement(s)
        for member in found.members:
            assert member.agrees == tuple(f.name in lists[member.row] for f in found.features)
        for criticism in bags.explain().cluster(s).criticisms:
            assert all(value is False for _, value in criticism.differs)


def test_every_plot_and_the_report(bags, mixed_bags, tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    from bayescase import plots

    plots.plot_prototypes(bags.explain())
    plots.plot_history(bags.fitted_)
    for model in (bags, mixed_bags):
        model.report(tmp_path / "report.html")
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert "items in ingredients" in text
