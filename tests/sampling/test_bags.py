"""Everything that tables can do, bags and tables that mix both can do."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.metrics import normalized_mutual_info_score

from bayescase import BayescaseWarning, BayesianCaseClassifier, BayesianCaseModel, ParameterError
from bayescase.kernels import Threads
from bayescase.state import Cells, make_data

QUICK = {"n_iter": 40, "n_chains": 2, "random_state": 0}


def planted_bags(n=60, seed=0):
    """Three kinds of cases, each with items of its own, and some that all have."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n) % 3
    own = [[f"{'abc'[k]}{j}" for j in range(6)] for k in range(3)]
    common = [f"z{j}" for j in range(4)]
    bags = [
        [*rng.choice(own[k], size=rng.integers(3, 7)).tolist(), *rng.choice(common, size=2).tolist()] for k in kind
    ]  # fmt: skip
    colour = np.where(rng.random(n) < 0.9, np.array(["red", "green", "blue"])[kind], None)
    return {"colour": colour, "items": bags}, kind


@pytest.fixture(scope="module", params=["bags", "mixed"])
def table(request):
    columns, kind = planted_bags()
    return ({"items": columns["items"]} if request.param == "bags" else columns), kind


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize(
    "settings", [{}, {"alpha": 0}, {"c": "learn", "alpha": "learn", "lam": "learn", "q": "learn"}, {"base": "uniform"}]
)
def test_planted_kinds_are_found(table, sampler, settings):
    X, kind = table
    model = BayesianCaseModel(3, sampler=sampler, **settings, **QUICK | {"n_iter": 100, "n_chains": 3}).fit(X)
    assert normalized_mutual_info_score(kind, model.labels_) > 0.8
    assert model.subspaces_.shape == (3, len(model.fitted_.columns))
    assert set(model.hyperparameters_) == {name for name, value in settings.items() if value == "learn"}


def test_the_number_of_kinds_is_found(table):
    X, kind = table
    model = BayesianCaseModel("auto", max_clusters=8, **QUICK | {"n_iter": 200}).fit(X)
    assert model.n_clusters_ in (3, 4)
    assert normalized_mutual_info_score(kind, model.labels_) > 0.7


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_threads_files_checkpoints_and_longer_runs_change_nothing(table, sampler, tmp_path, same):
    X, _ = table
    one = BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK).fit(X)
    same(one, BayesianCaseModel(3, sampler=sampler, keep_draws=True, n_jobs=2, **QUICK).fit(X))
    one.save(tmp_path / "model")
    loaded = BayesianCaseModel.load(tmp_path / "model")
    same(one, loaded)
    assert np.array_equal(one.transform(X), loaded.transform(X))
    stopped = BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK)
    with pytest.warns(BayescaseWarning, match="Stopped after 17"):
        stopped.fit(X, checkpoint=tmp_path / "run", callback=lambda report: report.sweep == 17)
    same(one, BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK).fit(X, checkpoint=tmp_path / "run"))
    short = BayesianCaseModel(3, sampler=sampler, keep_draws=True, **QUICK | {"n_iter": 20})
    same(one, short.fit(X, checkpoint=tmp_path / "short").more(20, checkpoint=tmp_path / "short"))


def test_a_checkpoint_of_other_items_is_refused(table, tmp_path):
    X, _ = table
    BayesianCaseModel(3, **QUICK).fit(X, checkpoint=tmp_path / "run")
    other = X | {"items": [*X["items"][:-1], [*X["items"][-1][:-1], "a0"]]}
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        BayesianCaseModel(3, **QUICK).fit(other, checkpoint=tmp_path / "run")


def test_new_cases(table):
    X, _ = table
    model = BayesianCaseModel(3, **QUICK | {"n_iter": 100}).fit(X)
    new, new_kind = planted_bags(seed=1)
    assert normalized_mutual_info_score(new_kind, model.predict({name: new[name] for name in X})) > 0.8
    assert np.isfinite(model.score_samples(X)).all()
    shuffled = X | {"items": [items[::-1] for items in X["items"]]}
    assert np.array_equal(model.transform(X), model.transform(shuffled))
    empty = {name: [None] if name == "colour" else [[]] for name in X}
    assert model.transform(empty).sum() == pytest.approx(1)
    cases, labels = model.sample(40, random_state=0)
    assert cases.shape == (40, len(X))
    given_back = {name: cases[:, j].tolist() for j, name in enumerate(model.feature_types_)}
    assert (model.predict(given_back) == labels).mean() > 0.7


def test_the_probability_of_a_bag_of_one_item_is_its_share(table):
    """At α = 0 exactly Σ_s β_s φ_s(v), averaged over the tables."""
    X, _ = table
    model = BayesianCaseModel(3, alpha=0, **QUICK).fit({"items": X["items"]})
    post, names = model.fitted_.posterior, model.fitted_.columns.names
    beta = post.prior / post.prior.sum(axis=1, keepdims=True)
    share = np.einsum("tvs,ts->tv", post.tables.astype(float), beta).mean(axis=0)
    scores = model.score_samples({"items": [[name] for name in names]})
    np.testing.assert_allclose(np.exp(scores), share, rtol=1e-4)
    assert share.sum() == pytest.approx(1, rel=1e-5)


def test_pins_of_items_prototypes_and_cases(table):
    X, _ = table
    pins = {
        "prototypes": {0: 4},
        "subspaces": {0: {X["items"][4][0]: True, ("items", X["items"][4][1]): False}},
        "cases": {7: 2, 8: 2},
    }
    model = BayesianCaseModel(3, **QUICK).fit(X, pins=pins)
    names = model.fitted_.columns.names
    assert model.prototypes_[0] == 4
    assert model.subspace_probabilities_[0, names.index(X["items"][4][0])] == 1
    if X["items"][4][0] != X["items"][4][1]:
        assert model.subspace_probabilities_[0, names.index(X["items"][4][1])] == 0
    assert model.labels_[7] == model.labels_[8] == 2


def test_priors_have_a_number_per_feature_or_per_column(table):
    X, _ = table
    q = np.linspace(0.3, 0.6, len(X))
    model = BayesianCaseModel(3, q=q, **QUICK).fit(X)
    assert np.array_equal(np.unique(model.fitted_.hyper.q), np.unique(q))
    prior = np.full((3, len(model.fitted_.columns)), 0.2)
    BayesianCaseModel(3, subspace_prior=prior, **QUICK).fit(X)
    with pytest.raises(ParameterError, match="one number per cluster and feature or item"):
        BayesianCaseModel(3, subspace_prior=prior[:, 1:], **QUICK).fit(X)


@pytest.mark.filterwarnings("ignore:Rows? .* no value at all")
def test_an_empty_case_is_no_candidate():
    bags = [["a", "b"], [], ["c", "d"], ["a"], [], ["c"]] * 4
    model = BayesianCaseModel(2, **QUICK).fit({"items": bags})
    drawn = {c.row for ranked in model.prototype_probabilities_ for c in ranked}
    assert all(bags[row] for row in drawn)
    with pytest.raises(ParameterError, match=r"^pins\['prototypes'\] names the candidate 1, which has no value at all"):
        BayesianCaseModel(2, **QUICK).fit({"items": bags}, pins={"prototypes": {0: 1}})


@pytest.mark.filterwarnings("ignore:Rows? .* no value at all")
@pytest.mark.parametrize(
    "options", [{}, {"alpha": 0}, {"sampler": "collapsed"}, {"moves": "jumps", "n_init": 4}, {"moves": "clusters"}]
)
@pytest.mark.parametrize("n_clusters", [2, "auto"])
def test_empty_cases_at_the_end_are_in_every_cluster(options, n_clusters):
    """They have no cells, but are rows of the last block."""
    bags = [["a", "b"], ["c", "d"], ["a"], ["c"]] * 3 + [[]] * 12
    model = BayesianCaseModel(n_clusters, **QUICK | options).fit({"items": bags})
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1.0, atol=1e-6)
    assert (model.memberships_[12:] == model.memberships_[12]).all()
    assert all(bags[row] for row in model.prototypes_)


@pytest.mark.parametrize("n_blocks", [1, 2, 5])
def test_blocks_have_every_case(n_blocks):
    data = make_data(np.zeros((6, 0), dtype=int), [0, 2], bags=Cells(np.array([0, 1, 0]), np.array([0, 0, 1, 2, 3, 3, 3])))
    parts = Threads(data, 2, n_blocks=n_blocks).parts_of(data.cells.first)
    assert [row for lo, hi in parts for row in range(lo, hi)] == list(range(6))


def test_a_catalogue_of_bags(table):
    X, kind = table
    catalogue = {name: column[:9] for name, column in X.items()}
    model = BayesianCaseModel(3, **QUICK | {"n_iter": 100}).fit(X, candidates=catalogue)
    assert set(model.prototypes_) <= set(range(9))
    assert normalized_mutual_info_score(kind, model.labels_) > 0.8
    lists = [model.prototype_cases_[s, -1] for s in range(3)]
    assert all(set(items) == set(X["items"][row]) for items, row in zip(lists, model.prototypes_, strict=True))


def test_a_matrix_is_the_same_bag_as_lists():
    columns, _ = planted_bags()
    names = sorted({item for items in columns["items"] for item in items})
    counts = np.array([[items.count(name) for name in names] for items in columns["items"]])
    lists = BayesianCaseModel(3, **QUICK).fit({"items": columns["items"]})
    matrix = BayesianCaseModel(3, encoder={"feature_names": names}, **QUICK).fit(csr_matrix(counts))
    dense = BayesianCaseModel(3, encoder={"bags": "all", "feature_names": names}, **QUICK).fit(counts)
    for other in (matrix, dense):
        assert np.array_equal(lists.labels_, other.labels_)
        assert np.array_equal(lists.subspace_probabilities_, other.subspace_probabilities_)


def test_the_classifier(table):
    X, kind = table
    classifier = BayesianCaseClassifier(BayesianCaseModel(3, **QUICK | {"n_iter": 100}), by="prototype").fit(X, kind)
    assert classifier.score(X, kind) > 0.8
    why = classifier.explain(X)[0]
    assert all(value is True or name == "colour" for name, value in why.evidence[0].values.items())


def test_labels_to_start_from(table):
    X, kind = table
    model = BayesianCaseModel(3, **QUICK | {"n_iter": 4}).fit(X, init=kind)
    assert normalized_mutual_info_score(kind, model.labels_) > 0.9
    with pytest.raises(ParameterError, match="give one label per case"):
        BayesianCaseModel(3, **QUICK).fit(X, init=np.zeros((60, len(X)), dtype=int))


@pytest.mark.filterwarnings("ignore:Rows? .* no value at all")
def test_blanks_in_lists_are_no_items_and_spaces_around_items_do_not_count():
    model = BayesianCaseModel(2, **QUICK).fit({"b": [["milk", " ", ""], [" milk ", "tea"], [" "], ["tea", None]] * 3})
    assert model.encoder_.get_feature_names_out().tolist() == ["milk", "tea"]
    assert model.prototype_cases_.shape == (2, 1)


def test_a_matrix_without_an_item_is_not_told_to_leave_out_a_column():
    with pytest.raises(ValueError, match=r"has no item at all\.$"):
        BayesianCaseModel(2, **QUICK).fit(csr_matrix((5, 3)))
    with pytest.raises(ValueError, match="leave it out with"):
        BayesianCaseModel(2, **QUICK).fit({"a": ["x", "y"] * 3, "b": [[]] * 6})


def test_candidates_in_which_there_is_nothing_are_refused():
    bags = {"b": [["milk"], ["tea"]] * 6}
    with pytest.raises(ParameterError, match="No candidate has an item or a value"):
        BayesianCaseModel(2, **QUICK).fit(bags, candidates={"b": [[], []]})


def test_a_candidate_without_a_name_is_not_taken_for_a_case():
    model = BayesianCaseModel(2, **QUICK).fit({"b": [["milk"], ["tea"]] * 6}, candidates={"b": [["tea"], ["milk"]]})
    assert {cluster.prototype.name for cluster in model.explain().clusters} <= {"candidate 0", "candidate 1"}
    with pytest.raises(TypeError, match="explain_case takes the row of a case"):
        model.explain_case("case 3")
