"""What a cluster is: the explanation says what the model says, and what can be counted."""

import dataclasses
import re

import numpy as np
import pytest

from bayescase import BayesianCaseModel, load_recipes
from bayescase.explaining.explanation import SHOWN, ClusterExplanation, ModelExplanation
from bayescase.explaining.parts import Prototype, as_set
from bayescase.explaining.render.figures import surest_features
from bayescase.explaining.words import percent

from ..helpers import fit_model

MODELS = ["table", "words", "recipes"]


def share(model, name, values, rows):
    """Share of some cases that have one of the values, of those that have a value."""
    j = [f.name for f in model.fitted_.encoding.features].index(name)
    known = [v for v in model.fitted_.encoding.decode(model.fitted_.data.x)[rows, j] if v is not None]
    return np.mean([v in values for v in known])


def copied(model, s, j, wanted):
    """Probability that the feature is in the subspace and the prototype has a value that is wanted."""
    first = int(model.fitted_.encoding.offset[j])
    values = model.feature_values_[j]
    return sum(model.fitted_.posterior.copied[first + k, s] for k, value in enumerate(values) if wanted(value))


@pytest.mark.parametrize("which", MODELS)
def test_distinctions_have_counted_shares_and_probabilities_of_the_subspace(which, request):
    model = request.getfixturevalue(which)
    names = [f.name for f in model.fitted_.encoding.features]
    for cluster in model.explain().clusters:
        s = cluster.cluster
        for d in (*cluster.more_often, *cluster.rare):
            j = names.index(d.feature)
            assert d.here == pytest.approx(share(model, d.feature, d.values, model.labels_ == s))
            assert d.there == pytest.approx(share(model, d.feature, d.values, model.labels_ != s))
            own = model.prototype_cases_[s, j]
            rare = d in cluster.rare
            assert (d.here < d.there) == rare
            assert d.like_prototype == (own is not None and ((own in d.values) != rare))
            expected = copied(model, s, j, lambda value, d=d, rare=rare: (value in d.values) != rare)
            assert d.probability == pytest.approx(expected)
            assert d.key == (d.probability > 0.5)
        for found in (cluster.more_often, cluster.rare):
            assert [d.bits for d in found] == sorted((d.bits for d in found), reverse=True)
        assert len({d.feature for d in (*cluster.more_often, *cluster.rare)}) == len(cluster.more_often) + len(cluster.rare)


def test_absent_items_are_never_listed(recipes):
    for cluster in recipes.explain().clusters:
        assert all(d.values == (True,) for d in (*cluster.more_often, *cluster.rare))
        assert " no " not in str(cluster)
        told = {d.feature for d in cluster.rare}
        assert all(f.value is True or f.name in told for f in cluster.key_features)
        lacked = [j for j, f in enumerate(cluster.features) if f.value is False and f.name not in told]
        assert cluster.unsaid == sum(copied(recipes, cluster.cluster, j, lambda value: not value) > 0.5 for j in lacked) > 50


def test_roles_are_the_public_attributes(table):
    for cluster in table.explain().clusters:
        s = cluster.cluster
        assert cluster.size == (table.labels_ == s).sum()
        assert cluster.share == pytest.approx(table.memberships_[:, s].mean())
        for j, role in enumerate(cluster.features):
            own = table.prototype_cases_[s, j]
            assert role.value == own
            assert role.subspace_probability == table.subspace_probabilities_[s, j]
            assert role.probability == pytest.approx(copied(table, s, j, lambda value, own=own: value == own))
            assert [value for value, _, _ in role.distribution] == list(table.feature_values_[j])
            for value, here, there in role.distribution:
                assert here == pytest.approx(share(table, role.name, [value], table.labels_ == s))
                assert there == pytest.approx(share(table, role.name, [value], table.labels_ != s))
            assert role.typical_share == max(here for _, here, _ in role.distribution)
            if own is not None:
                assert (role.share, role.elsewhere) == next(d[1:] for d in role.distribution if d[0] == own)
            assert role.key == (role.probability > 0.5 and (own is not False or role.bits > 0))


def test_key_features_come_most_telling_first(recipes):
    for cluster in recipes.explain().clusters:
        found = [f.bits for f in cluster.key_features]
        assert found == sorted(found, reverse=True)
        assert set(cluster.key_features) == {f for f in cluster.features if f.key}


def test_what_a_pair_and_a_contrast_say_is_the_same(words):
    clusters = words.explain().clusters
    for one in clusters:
        assert [c.other for c in one.contrasts] == [c.cluster for c in clusters if c is not one]
        for contrast in one.contrasts:
            pair = words.explain_pair(one.cluster, contrast.other)
            assert pair.first.more_often == contrast.distinctions
            for d in contrast.distinctions:
                assert d.here == pytest.approx(share(words, d.feature, d.values, words.labels_ == one.cluster))
                assert d.there == pytest.approx(share(words, d.feature, d.values, words.labels_ == contrast.other))


# --- prototypes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", MODELS)
def test_the_prototype_is_a_member_with_its_posterior_probability(which, request):
    model = request.getfixturevalue(which)
    clusters = model.explain().clusters
    assert len({c.prototype.row for c in clusters}) == len(clusters)
    for c in clusters:
        assert c.prototype.row == model.prototypes_[c.cluster]
        assert c.prototype.member
        assert model.labels_[c.prototype.row] == c.cluster
        drawn = np.isin(model.fitted_.posterior.p[..., c.cluster], c.prototype.ties).mean()
        assert c.prototype.probability == pytest.approx(drawn)
        assert c.candidates[0] == c.prototype
        assert all(model.labels_[candidate.row] == c.cluster for candidate in c.candidates)
        assert f"{c.prototype.name} ({percent(c.prototype.probability)})" in str(c)


def cluster_with(*probabilities, member=True):
    cases = tuple(Prototype(k, f"case {k}", p, (k,), member) for k, p in enumerate(probabilities))
    return ClusterExplanation(0, "x", False, 5, 9, 0.5, cases[0], cases, (), (), (), 0, (), ())


@pytest.mark.parametrize(
    ("probabilities", "words"),
    [
        ((0.6, 0.2), "like case 0 (60%)"),
        ((0.04, 0.05, 0.03, 0.03), "like case 0 (4%); case 1 (5%) or case 2 (3%) would do as well"),
        ((0.07, 0.12, 0.03), "like case 0 (7%); case 1 (12%) would do as well"),
        ((0.3, 0.32, 0.2), "like case 0 (30%); case 1 (32%) would do as well"),
        ((0.2, 0.02, 0.02), "like case 0 (20%)"),
        ((0.2, 0.4, 0.2), "like case 0 (20%); case 1 (40%) or case 2 (20%) would do as well"),
        ((0.3, 0.2, 0.2), "like case 0 (30%)"),
        ((0.0,), "like case 0 (0%), its most typical member; no draw chose one"),
    ],
)
def test_a_flat_posterior_is_said_in_words_and_shows_three(probabilities, words):
    """Nobody who is more probable is left out, and everybody has a probability of their own."""
    assert cluster_with(*probabilities).like == words


def test_the_sentence_says_briefly_that_others_would_do_as_well():
    said = [cluster_with(*of).sentence for of in ((0.6, 0.2), (0.02, 0.01), (0.02, 0.03, 0.01))]
    said.append(cluster_with(0.1, member=False).sentence)
    assert [words.split("like case 0 ")[1] for words in said] == [
        "(60%).", "(2%; another would do as well).", "(2%; others would do as well).", "(10%; not a member)."
    ]  # fmt: skip


def test_a_prototype_that_is_no_member_is_said_to_be_none():
    assert cluster_with(0.9, member=False).like == "like case 0 (90%), which is not a member"


# --- all clusters ---------------------------------------------------------------------------------------------------------


def test_clusters_of_nobody_are_not_explained_but_counted(unused):
    explained = unused.explain()
    used = np.flatnonzero(unused.fitted_.sizes).tolist()
    assert [c.cluster for c in explained.clusters] == used
    assert explained.n_unused == 4 - len(used) > 0
    assert re.search(r"; \d more clusters? (is|are) the main one of no case\.", explained.summary)
    empty = next(s for s in range(4) if s not in used)
    for ask in (lambda: unused.explain_agreement(empty), lambda: unused.explain_pair(used[0], empty)):
        with pytest.raises(ValueError, match=f"Cluster {empty} is the main one of no case"):
            ask()
    assert {m.cluster for m in unused.explain_case(0).memberships} == set(range(4))
    with pytest.raises(KeyError):
        explained.cluster(empty)
    assert explained.cluster(used[-1]) is explained.clusters[-1]


def test_a_single_cluster_shows_what_its_cases_share(alone):
    explained = alone.explain()
    assert isinstance(explained, ModelExplanation)
    (cluster,) = explained.clusters
    assert cluster.contrasts == cluster.rare == ()
    assert {d.feature for d in cluster.more_often} == {f.name for f in cluster.key_features}
    assert all(d.there is None and d.key and d.here == pytest.approx(0.75) for d in cluster.more_often)
    assert "elsewhere" not in "".join(str(cluster).splitlines()[3:])


def test_telling_values_give_every_cluster_its_turn(recipes):
    explained = recipes.explain()
    values = explained.telling_values(10)
    assert [sum(v.cluster == c.cluster for v in values) for c in explained.clusters] == [2] * 5
    for value in values:
        cluster = explained.cluster(value.cluster)
        assert value.words in [d.words for d in cluster.more_often[:2]]
        for c, counted_share, key in zip(explained.clusters, value.shares, value.keys, strict=True):
            assert counted_share == pytest.approx(share(recipes, value.feature, [True], recipes.labels_ == c.cluster))
            role = next(f for f in c.features if f.name == value.feature)
            assert key == (role.key and role.value is True)


def test_what_is_key_on_a_card_is_key_in_the_values_of_all_clusters():
    """Also where the case that is shown lacks it, because other cases were the prototype in most draws."""
    model = BayesianCaseModel(5, c=20, n_iter=60, n_chains=2, random_state=0)
    explained = model.fit(load_recipes().table).explain()
    place = {cluster.cluster: k for k, cluster in enumerate(explained.clusters)}
    lacking = 0
    for value in explained.values:
        told = next(d for d in explained.cluster(value.cluster).more_often if d.words == value.words)
        assert value.keys[place[value.cluster]] == told.key
        lacking += told.key and not told.like_prototype
    assert lacking, "there is such an item"


def test_no_pair_of_values_is_told_twice(table):
    values = table.explain().values
    assert len({value.words for value in values}) == len(values)


# --- words ----------------------------------------------------------------------------------------------------------------


def test_the_words_of_a_cluster_have_its_numbers(words):
    for cluster in words.explain().clusters:
        lines = str(cluster).splitlines()
        assert lines[0] == f"Cluster {cluster.cluster}: {cluster.name}"
        assert lines[1].startswith(f"  {cluster.size} of 60 cases, like text {cluster.prototype.row} (")
        assert lines[2] == "  more often than elsewhere:"
        first = cluster.more_often[0]
        line = re.sub(" +", " ", lines[3])
        assert line == (
            f" {'*' if first.key else ''} {first.words} {percent(first.here)}, elsewhere {percent(first.there)}; {first.role}"
        ).replace("  ", " ")
        left = len(cluster.more_often) - SHOWN
        assert (f"    and {left} more" in lines) == (left > 0)


def test_the_words_of_the_model_have_the_verdict_and_say_what_a_star_means(words):
    text = str(words.explain())
    assert words.diagnostics_.verdict in text
    assert text.startswith("60 cases, 12 features, 3 clusters.")
    assert "“key”: how probable it is that the cluster takes after its prototype in this, * if above 50%" in text


def test_nothing_is_claimed_where_nothing_sets_a_cluster_apart(keyless):
    for cluster in keyless.explain().clusters:
        assert not cluster.key_features
        assert not cluster.criticisms
        assert not any(d.key for d in cluster.more_often)
    plain = dataclasses.replace(keyless.explain().clusters[0], more_often=(), rare=())
    assert str(plain).endswith("nothing sets it apart for certain")
    assert plain.sentence.endswith(".")


def test_what_is_said_of_a_value_that_the_prototype_does_not_have():
    labels = np.repeat([0, 1], 20)
    columns = {
        "here": np.r_[[False], np.ones(19, bool), np.zeros(20, bool)],
        "kind": np.r_[["y"], ["x"] * 19, ["y"] * 20],
        "there": np.r_[[True], np.zeros(19, bool), np.ones(20, bool)],
    }
    pins = {"cases": dict(enumerate(labels.tolist())), "prototypes": {0: 0}}
    cluster = fit_model(columns, 2, n_iter=20, n_chains=1, random_state=0, pins=pins).explain().clusters[0]
    assert [d.words for d in cluster.more_often] == ["here", "kind = x"]
    assert [d.words for d in cluster.rare] == ["there"]
    for d in (*cluster.more_often, *cluster.rare):
        assert not d.like_prototype
        assert d.probability == 0
        assert not d.key


def test_a_value_of_one_prototype_among_many_is_not_key():
    """The subspace has the feature whichever case is the prototype, but a rare value of one prototype is seldom copied."""
    rng = np.random.default_rng(0)
    columns = {f"w{j}": rng.random(40) < 0.95 for j in range(6)}
    columns["odd"] = np.arange(40) == 7
    model = BayesianCaseModel(1, n_iter=60, n_chains=1, random_state=0).fit(columns)
    odd = 6
    assert model.subspaces_[0, odd]
    total = model.fitted_.posterior.copied[model.fitted_.encoding.offset[odd] :, 0]
    assert total.sum() == pytest.approx(model.subspace_probabilities_[0, odd])
    assert total[1] < 0.1 < 0.9 < total[0]


def test_sets_are_told_from_tables(words, table):
    assert as_set(words.explain().clusters[0].features)
    assert not as_set(table.explain().clusters[0].features)


def test_a_card_of_a_set_has_what_the_prototype_has(recipes):
    for cluster in recipes.explain().clusters:
        items = cluster.card(4).items
        row = {f.name: f for f in cluster.features}
        assert {name for name, _ in items} == {f.name for f in cluster.features if f.value}
        assert [key for _, key in items] == sorted((row[name].key for name, _ in items), reverse=True)
        assert len(cluster.card(4).has) <= 4
        assert cluster.card(4).more == max(len(cluster.more_often) - 4, 0)


def test_words_for_true_and_false_make_a_set():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=40)
    columns = {f"w{j}": np.where(rng.random(40) < np.where(kind == j % 2, 0.95, 0.05), "true", "false") for j in range(6)}
    explained = BayesianCaseModel(2, n_iter=60, n_chains=1, random_state=0).fit(columns).explain()
    for cluster in explained.clusters:
        assert as_set(cluster.features)
        assert all(d.words == d.feature for d in cluster.more_often)
        assert cluster.card().items


def test_an_only_cluster_has_key_features_and_nothing_more_often_than_elsewhere(alone):
    text = str(alone.explain())
    assert "key features, as there is no other cluster:" in text
    assert "elsewhere" not in text
    bare = dataclasses.replace(alone.explain().clusters[0], more_often=(), rare=(), features=())
    assert str(bare).endswith("there is no other cluster to set it apart from")


def test_a_case_with_nothing_present_that_stands_for_its_own_cluster_is_a_member():
    """Nothing else can: all members are like it."""
    model = fit_model(
        {"there": [True] * 20 + [False] * 20, "too": [True] * 20 + [False, None] * 10},
        2,
        n_iter=60,
        n_chains=1,
        alpha=0,
        random_state=0,
    )
    for cluster in model.explain().clusters:
        assert cluster.prototype.member
        assert model.labels_[cluster.prototype.row] == cluster.cluster
        assert "not a member" not in str(cluster)


@pytest.fixture(scope="module")
def animals():
    """Two kinds, of which one has little that the other has not."""
    kind = np.repeat([0, 1], [40, 20])
    columns = {
        "backbone": np.arange(60) % 20 > 0,
        "eyes": np.array(["one"] + ["two"] * 19)[np.arange(60) % 20],
        "fins": kind == 0,
        "fur": np.r_[np.zeros(40, bool), np.ones(20, bool)],
        "tail": kind == 0,
        "skin": np.array(["none", "scales"])[kind],
    }
    pins = {"cases": dict(enumerate(kind.tolist()))}
    return fit_model(columns, 2, n_iter=60, n_chains=1, random_state=0, pins=pins)


def test_key_features_that_are_as_common_elsewhere_are_on_the_card(animals):
    for cluster in animals.explain().clusters:
        card = cluster.card()
        told = {d.words for d in cluster.more_often}
        keys = {f.words for f in cluster.key_features if f.value is not False}
        assert {d.words for d in card.shared} == keys - told == {"backbone", "eyes = two"}
        assert all(d.key and (d.here, d.there) == (0.95, 0.95) for d in card.shared)
        assert str(card).index("more often") < str(card).index("also key, if less telling:\n  * ")
        few = cluster.card(len(card.has) + 1)
        assert (len(few.shared), few.more) == (1, 1)
        assert "    and 1 more\n  less often:" in str(few)
        assert (cluster.card(1).shared, cluster.card(1).more) == ((), len(card.has) - 1)


def test_what_is_absent_comes_last_and_introduces_nothing(animals):
    first, second = animals.explain().clusters
    assert [d.words for d in first.more_often] == ["fins", "tail", "skin = none"]
    assert (first.name, first.sentence.split("known by ")[1]) == ("fins, tail", "fins and tail.")
    for cluster in (first, second):
        lacking = [f.lacks for f in cluster.key_features]
        assert any(lacking)
        assert lacking == sorted(lacking)
        plotted = [f.value is False for f in surest_features(cluster, 15)]
        assert plotted == sorted(plotted)
        assert not any(f.lacks for f in surest_features(cluster, 2))


def test_a_cluster_that_only_lacks_things_has_no_name():
    labels = np.repeat([0, 1], 30)
    columns = {"fins": labels == 1, "tail": labels == 1, "skin": np.array(["none", "scales"])[labels]}
    pins = {"cases": dict(enumerate(labels.tolist()))}
    some = fit_model({name: columns[name] for name in ("fins", "tail")}, 2, n_iter=20, n_chains=1, random_state=0, pins=pins)
    first = some.explain().clusters[0]
    assert (first.name, first.title) == ("", "Cluster 0")
    assert first.sentence.endswith(" (100%).")
    table = fit_model(columns, 2, n_iter=20, n_chains=1, random_state=0, pins=pins)
    assert table.explain().clusters[0].name == "skin = none", "the value of a feature, where there is nothing else"


def test_prototypes_of_the_same_name_are_told_apart():
    names = ["frog", None, float("nan"), " ", "newt\nof the pond"] * 4
    model = fit_model({"kind": ["a"] * 10 + ["b"] * 10}, 2, n_iter=60, n_chains=1, alpha=0, random_state=0)
    model.name_cases(names)
    shown = [cluster.prototype.name for cluster in model.explain().clusters]
    assert len(set(shown)) == 2
    assert [model.fitted_.name_of(row) for row in (0, 1, 2, 3)] == ["frog (case 0)", "case 1", "case 2", "case 3"]


def test_a_long_name_is_cut_in_sentences_and_whole_in_numbers(table):
    cluster = table.explain().clusters[0]
    text = dataclasses.replace(cluster.prototype, name="dear all,\n" + "word " * 300)
    cluster = dataclasses.replace(cluster, prototype=text)
    assert all(len(line) < 200 for line in str(cluster).splitlines())
    assert "dear all, word" in cluster.sentence
    assert cluster.to_json()["prototype"]["name"] == text.name
