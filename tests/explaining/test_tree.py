"""Clusters told as fewer: folded models, and the tree that says which."""

import numpy as np
import pytest

from bayescase import BayesianCaseModel, FileFormatError, ParameterError
from bayescase.explaining.explanation import TreeExplanation

KINDS = ("table", "words", "recipes", "bags", "keyless", "unused")


@pytest.fixture(params=KINDS)
def model(request):
    return request.getfixturevalue(request.param)


def test_a_case_belongs_to_a_group_as_to_its_clusters(model):
    fewer = model.fold(2)
    groups = fewer.fitted_.groups
    assert fewer.n_clusters_ == len(groups) == 2
    for k, group in enumerate(groups):
        np.testing.assert_allclose(fewer.memberships_[:, k], model.memberships_[:, list(group)].sum(axis=1))
    assert np.diff(fewer.memberships_.sum(axis=0)) <= 0
    np.testing.assert_allclose(np.concatenate([v.sum(axis=1) for v in fewer.value_probabilities_]), 1.0)


def test_prototypes_are_members_and_subspaces_probabilities(model):
    for k in range(1, min(model.n_clusters_, 4) + 1):
        fewer = model.fold(k).fitted_
        if fewer.data.own_cases:
            used = np.flatnonzero(fewer.sizes)
            assert (fewer.labels[fewer.prototypes[used]] == used).all()
        assert len(set(fewer.prototypes[fewer.sizes > 0].tolist())) == np.count_nonzero(fewer.sizes)
        assert (fewer.posterior.omega_prob >= 0).all()
        assert (fewer.posterior.omega_prob <= 1).all()
        assert (fewer.posterior.copied <= 1).all()


def test_all_clusters_are_as_they_were(model):
    same = model.fold(model.n_clusters_)
    assert str(same.explain()).split("\n\n", 1)[1] == str(model.explain()).split("\n\n", 1)[1]
    assert np.array_equal(same.labels_, model.labels_)


def test_folding_again_starts_from_all_clusters(bags):
    assert str(bags.fold(4).fold(2).explain()) == str(bags.fold(2).explain())
    assert bags.fold(2).fold(5).n_clusters_ == 5


def test_everything_explains_a_folded_model(model):
    fewer = model.fold(2)
    explained = fewer.explain()
    assert explained.folded_from == model.n_clusters_
    assert f"folded from {model.n_clusters_}" in explained.summary
    assert sum(cluster.size for cluster in explained.clusters) == len(model.labels_)
    assert fewer.explain_case(0).cluster == fewer.labels_[0]
    if (np.bincount(fewer.labels_, minlength=2) > 0).all():
        assert "More often in" in str(fewer.explain_pair(0, 1))
    str(fewer.explain_agreement(0))
    fewer.diagnostics_.render()


def test_new_cases(mixed, table):
    fewer, frame = table.fold(2), mixed[0]
    groups = fewer.fitted_.groups
    shares = table.transform(frame)
    for k, group in enumerate(groups):
        np.testing.assert_allclose(fewer.transform(frame)[:, k], shares[:, list(group)].sum(axis=1))
    assert np.array_equal(fewer.score_samples(frame), table.score_samples(frame))
    cases, labels = fewer.sample(40, random_state=0)
    assert np.array_equal(cases, table.sample(40, random_state=0)[0])
    assert set(labels.tolist()) <= {0, 1}
    assert list(fewer.get_feature_names_out()) == ["bayesiancasemodel0", "bayesiancasemodel1"]


def test_a_folded_model_comes_back_from_its_file(model, same, tmp_path):
    fewer = model.fold(2)
    fewer.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(fewer, again)
    assert str(again.explain()) == str(fewer.explain())
    assert again.fold(model.n_clusters_).n_clusters_ == model.n_clusters_
    assert again.explain_tree() == model.explain_tree()


def test_a_file_with_other_groups_is_refused(bags, tmp_path):
    fewer = bags.fold(2).fitted_
    for groups in (((0, 1), (2, 3)), ((0, 1, 2, 3, 4), ()), ((0, 0, 1), (2, 3, 4))):
        broken = fewer.with_settings({})
        object.__setattr__(broken, "groups", groups)
        broken.save(tmp_path / "model")
        with pytest.raises(FileFormatError, match="not a whole bayescase model"):
            BayesianCaseModel.load(tmp_path / "model")


def test_names_stay(bags, tmp_path):
    named = BayesianCaseModel.load(save(bags, tmp_path)).name_clusters(["a", "b", "c", "d", "e"])
    fewer = named.fold(3)
    groups = fewer.fitted_.groups
    assert fewer.cluster_names_ == [" + ".join("abcde"[s] for s in group) for group in groups]
    assert bags.fold(3).cluster_names_ is None
    assert len({cluster.name for cluster in bags.fold(3).explain().clusters}) == 3
    fewer.name_clusters({0: "stews"}).name_cases([f"dish {i}" for i in range(80)])
    fewer.save(tmp_path / "named")
    again = BayesianCaseModel.load(tmp_path / "named")
    assert again.cluster_names_ == fewer.cluster_names_
    assert again.cluster_names_[0] == "stews"
    assert again.case_names_[0] == "dish 0"


def save(model, folder):
    model.save(folder / "whole")
    return folder / "whole"


def test_similarity_and_candidates(planted):
    x, _ = planted(N=50, P=6, V=5, S=3, seed=0)
    model = BayesianCaseModel(4, similarity=("within", 1), n_iter=60, n_chains=2, random_state=0).fit(x, candidates=x[:20])
    fewer = model.fold(2)
    assert (fewer.prototypes_ < 20).all()
    assert fewer.explain().folded_from == 4


def test_pins_stay(planted):
    x, _ = planted(N=40, P=5, S=3, seed=0)
    pins = {"prototypes": {0: 3}, "subspaces": {0: {"x1": True}, 1: {"x1": True}}}
    model = BayesianCaseModel(3, n_iter=60, n_chains=2, random_state=0)
    fitted = model.fit({f"x{j}": column for j, column in enumerate(x.T)}, pins=pins)
    for k in (3, 2, 1):
        fewer = fitted.fold(k)
        for s, group in enumerate(fewer.fitted_.groups):
            if set(group) <= {0, 1}:
                assert fewer.subspaces_[s, 1]
            if group == (0,):
                assert fewer.prototypes_[s] == 3


def test_the_tree_in_words_and_as_json(bags):
    tree = bags.explain_tree()
    assert TreeExplanation.from_json(tree.to_json()) == tree
    assert [node.node for node in tree.nodes] == list(range(9))
    assert tree.nodes[-1].size == 80
    assert tree.nodes[-1].clusters == (0, 1, 2, 3, 4)
    for k in range(1, 6):
        groups, clusters = tree.groups(k), bags.fold(k).explain().clusters
        assert [node.size for node in groups] == [cluster.size for cluster in clusters]
        assert [node.prototype for node in groups] == [cluster.prototype for cluster in clusters]
    assert str(tree).startswith(tree.sentence)
    assert len(str(tree).splitlines()) == 3 + 4
    assert bags.explain_tree(tolerance=0.9999).number < 5
    assert bags.fold(tolerance=0.9999).n_clusters_ == bags.explain_tree(tolerance=0.9999).number


def test_one_cluster_is_one(alone):
    tree = alone.explain_tree()
    assert tree.number == 1
    assert tree.joins == ()
    assert str(tree) == "There is only one cluster, so there is nothing to fold."
    assert alone.fold().n_clusters_ == 1


@pytest.mark.parametrize("k", [0, 6, 2.0, "3", True])
def test_a_number_that_cannot_be(bags, k):
    with pytest.raises(ParameterError, match="n_clusters must be a whole number from 1 to 5"):
        bags.fold(k)


@pytest.mark.parametrize("tolerance", [-0.1, 1, float("nan"), "some"])
def test_a_tolerance_that_cannot_be(bags, tolerance):
    with pytest.raises(ParameterError, match="tolerance must be a share of at least 0 and below 1"):
        bags.fold(tolerance=tolerance)
    with pytest.raises(ParameterError, match="tolerance must be a share"):
        bags.explain_tree(tolerance=tolerance)


def test_folding_answers_a_cap(planted):
    x, _ = planted(N=60, P=10, V=4, S=5, seed=1, noise=0.05)
    with pytest.warns(UserWarning, match="tell them as fewer by fold"):
        model = BayesianCaseModel("auto", max_clusters=4, n_iter=40, n_chains=2, random_state=0).fit(x)
    fewer = model.fold(2)
    assert fewer.explain().summary == "60 cases, 10 features, 2 clusters, folded from 4, as many as were allowed."
    assert "fold" in model.diagnostics_.advice
    assert "fold" not in fewer.diagnostics_.advice


def test_a_folded_model_cannot_run_longer(bags):
    with pytest.raises(ParameterError, match="A folded model cannot run longer"):
        bags.fold(2).more(10)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_unused_cluster_of_bags_is_joined_first():
    baskets = {"basket": [["a", "b"]] * 12 + [["c"]] * 12}
    model = BayesianCaseModel(4, n_iter=40, n_chains=2, n_init=1, alpha=0, random_state=0).fit(baskets)
    tree, used = model.explain_tree(), int((model.fitted_.sizes > 0).sum())
    assert used < 4, "there is an unused cluster to join"
    assert all(np.isfinite(node.cost) for node in tree.nodes)
    two = model.fold(2)
    assert len(set(two.labels_[:12])) == len(set(two.labels_[12:])) == 1
    assert two.labels_[0] != two.labels_[-1]
