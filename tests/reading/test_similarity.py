"""Which values agree with the prototype's: all the ways to say it, and what they do."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from bayescase import BayesianCaseClassifier, BayesianCaseModel

from ..helpers import check_refused, fit_model

QUICK = {"n_iter": 40, "n_chains": 2, "keep_draws": True, "random_state": 0}
NEAR = (np.abs(np.subtract.outer(range(4), range(4))) <= 1).astype(float)


@pytest.fixture(scope="module")
def x(planted):
    return planted(N=60, P=5, V=4, S=3, seed=3)[0]


def fit(X, similarity, sampler="rows", **params):
    return fit_model(X, 3, similarity=similarity, sampler=sampler, **QUICK | params)


def table_of(model, j):
    """K of feature j as a matrix, from the sparse table."""
    data = model.fitted_.data
    codes = range(data.offset[j], data.offset[j + 1])
    K = np.zeros((len(codes), len(codes)))
    for u in codes:
        part = slice(data.book.k_ptr[u], data.book.k_ptr[u + 1])
        K[u - codes.start, data.book.k_idx[part] - codes.start] = data.book.k_val[part]
    return K


# --- equal ways ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "similarity",
    [
        {},
        ("within", 0),
        ("within", 0.5),
        (lambda u, v: u != v, 0),
        np.eye(4),
        np.eye(4).tolist(),
        {"x0": "match", 3: ("within", 0), "x4": np.eye(4)},
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_ways_to_say_match(x, sampler, similarity, same):
    same(fit(x, "match", sampler), fit(x, similarity, sampler))


@pytest.mark.parametrize(
    "similarity",
    [(lambda u, v: abs(u - v), 1), NEAR, dict.fromkeys(range(5), ("within", 1.0))],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_ways_to_say_within_one(x, sampler, similarity, same):
    within = fit(x, ("within", 1), sampler)
    same(within, fit(x, similarity, sampler))
    assert not np.array_equal(within.log_joint_, fit(x, "match", sampler).log_joint_)


def test_the_same_scale_in_other_words(x, sampler, same):
    """Integers, ordered categories, numbers binned one by one, and categories with a table are four codings of one table."""
    words = np.array(["low", "middle", "high", "top"])
    ordered = pd.DataFrame({f"x{j}": pd.Categorical(words[x[:, j]], words, ordered=True) for j in range(5)})
    binned = pd.DataFrame(x + 0.25, columns=[f"x{j}" for j in range(5)])
    by_letter = pd.DataFrame(np.array(list("abcd"))[x], columns=[f"x{j}" for j in range(5)])
    integers = fit(x, ("within", 1), sampler)
    for X, similarity, more in (
        (ordered, ("within", 1), {}),
        (binned, ("within", 1), {"encoder": {"bins": [1, 2, 3]}}),
        (by_letter, NEAR, {}),
        (by_letter, (lambda u, v: abs(ord(u) - ord(v)), 1), {}),
    ):
        other = fit(X, similarity, sampler, **more)
        assert np.array_equal(integers.log_joint_, other.log_joint_)
        assert np.array_equal(integers.memberships_, other.memberships_)
        assert np.array_equal(integers.prototypes_, other.prototypes_)
        assert np.array_equal(integers.subspace_probabilities_, other.subspace_probabilities_)


def test_agreeing_with_nothing_is_not_copying(x, sampler):
    nothing, no_copies = fit(x, np.zeros((4, 4)), sampler), fit(x, "match", sampler, c=0)
    assert np.allclose(nothing.log_joint_, no_copies.log_joint_, rtol=1e-9)
    assert np.array_equal(nothing.memberships_, no_copies.memberships_)


def test_half_a_match_is_half_of_c(x, sampler):
    half, smaller = fit(x, np.eye(4) / 2, sampler, c=64), fit(x, "match", sampler, c=32)
    assert np.allclose(half.log_joint_, smaller.log_joint_, rtol=1e-9)
    assert np.allclose(half.memberships_, smaller.memberships_)


# --- which values agree ------------------------------------------------------------------------------------------------------


def test_within_on_every_kind_of_feature():
    """Integers by their distance; ordered categories, bins and counts by their places; categories and booleans match."""
    rng = np.random.default_rng(0)
    pick = rng.integers(4, size=40)
    pick[:4] = range(4)
    words = ["small", "medium", "large", "huge"]
    X = pd.DataFrame(
        {
            "integer": np.array([0, 1, 3, 10])[pick],
            "ordered": pd.Categorical(np.array(words)[pick], words, ordered=True),
            "binned": np.array([0.5, 1.5, 20.5, 300.5])[pick],
            "category": np.array(list("abcd"))[pick],
            "flag": pick > 1,
        }
    )
    model = fit(X, ("within", 2), encoder={"bins": {"binned": [1, 10, 100]}})
    assert model.feature_types_ == {
        "integer": "integer",
        "ordered": "ordered",
        "binned": "number",
        "category": "category",
        "flag": "category",
    }
    places = np.abs(np.subtract.outer(range(4), range(4))) <= 2
    assert np.array_equal(table_of(model, 0), np.abs(np.subtract.outer([0, 1, 3, 10], [0, 1, 3, 10])) <= 2)
    assert np.array_equal(table_of(model, 1), places)
    assert np.array_equal(table_of(model, 2), places)
    assert np.array_equal(table_of(model, 3), np.eye(4))
    assert np.array_equal(table_of(model, 4), np.eye(2))


def test_within_on_counts():
    X = scipy.sparse.csr_array(np.random.default_rng(0).integers(5, size=(40, 3)))
    model = fit(X, ("within", 1), encoder={"max_count": 3})
    assert model.feature_values_[0] == (0, 1, 2, "3+")
    assert np.array_equal(table_of(model, 0), NEAR)


def test_a_loss_function_sees_the_values_that_are_shown(mixed):
    seen = set()

    def loss(u, v):
        seen.add(u)
        return 0 if u == v else 1

    model = fit(mixed[0], (loss, 0.5))
    assert seen == {value for values in model.feature_values_ for value in values}


def test_rows_are_the_prototypes_values(sampler):
    """With everything pinned, φ is (λ (1 + c K) + n) / its sum, so that the table shows."""
    x = np.tile([[0], [1], [2]], (4, 1))
    K = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.25], [0.75, 0.0, 0.0]])
    for prototype in range(3):
        pins = {
            "prototypes": {0: prototype, 1: 3},
            "subspaces": {0: {0: True}, 1: {0: False}},
            "cases": dict.fromkeys(range(12), 1) | {0: 0},
        }
        model = BayesianCaseModel(2, lam=2.0, c=10.0, similarity=K, sampler=sampler, **QUICK).fit(x, pins=pins)
        expected = 2.0 * (1 + 10.0 * K[prototype]) + [1, 0, 0]
        assert np.allclose(model.value_probabilities_[0][0], expected / expected.sum())
        assert np.allclose(model.value_probabilities_[0][1], (2.0 + np.array([3, 4, 4])) / (6 + 11))


def test_neighbours_make_a_feature_matter(sampler):
    """Clusters of ratings that scatter by one around their prototype: as matches they look like noise."""
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    x = np.where(labels, 2, 7)[:, None] + rng.integers(-1, 2, size=(120, 6))
    settings = {"lam": 0.5, "n_iter": 100, "sampler": sampler}
    matches, near = (BayesianCaseModel(2, similarity=s, **QUICK | settings).fit(x) for s in ("match", ("within", 1)))
    assert near.subspace_probabilities_.mean() > matches.subspace_probabilities_.mean() + 0.2
    assert near.subspaces_.sum(axis=1).min() >= 4
    assert set(near.prototype_cases_[near.subspaces_]) == {2, 7}  # the centre reaches both sides


def test_a_mapping_leaves_the_rest_alone(x):
    model = fit(x, {"x1": ("within", 1), 3: np.ones((4, 4))})
    assert [table_of(model, j).sum() for j in range(5)] == [4, 10, 4, 16, 4]


def test_positions_are_those_of_the_columns(x):
    model = fit(x, {3: ("within", 1)}, encoder={"feature_types": {0: "drop"}})
    assert [table_of(model, j).sum() for j in range(4)] == [4, 4, 10, 4]


def test_explanations_agree_as_the_model_does(x):
    """A case within reach of the prototype agrees with it."""
    model = BayesianCaseModel(3, similarity={0: ("within", 3)}, **QUICK)
    pins = {"subspaces": {s: {0: True} for s in range(3)}}
    classifier = BayesianCaseClassifier(model, by="prototype").fit(x, x[:, 1], pins=pins)
    for explanation in classifier.explain(x):
        assert all(evidence.agrees["x0"] is True for evidence in explanation.evidence)
    missing = np.where(np.arange(5) == 0, np.nan, x[:1])
    assert classifier.explain(missing)[0].evidence[0].agrees["x0"] is None


# --- the rest of the package -------------------------------------------------------------------------------------------------


def test_new_cases_files_and_threads(x, sampler, same, tmp_path):
    model = fit(x, ("within", 1), sampler, checkpoint=tmp_path / "run")
    same(model, fit(x, ("within", 1), sampler, n_jobs=2))
    same(model, fit(x, ("within", 1), sampler, checkpoint=tmp_path / "run"))
    model.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(model, again)
    assert np.array_equal(model.score_samples(x), again.score_samples(x))
    assert np.allclose(model.transform(x).sum(axis=1), 1)
    with pytest.raises(ValueError, match="belongs to other data or settings"):
        fit(x, ("within", 2), sampler, checkpoint=tmp_path / "run")


# --- wrong input -------------------------------------------------------------------------------------------------------------

WAYS = r"must be 'match', \('within', ε\), \(a function of two values, ε\), or a table"
WRONG = [
    ("within", f"similarity {WAYS}.*, not 'within'"),
    (None, f"similarity {WAYS}.*, not None"),
    (1, f"similarity {WAYS}"),
    (["within", 1], f"similarity {WAYS}"),
    (("within", 1, 2), f"similarity {WAYS}"),
    (("near", 1), f"similarity {WAYS}"),
    (abs, f"similarity {WAYS}"),
    (np.ones(4), f"similarity {WAYS}"),
    ([[1, 0], [0]], f"similarity {WAYS}"),
    ({"a": None}, rf"similarity\['a'\] {WAYS}"),
    ({"a": {"b": "match"}}, rf"similarity\['a'\] {WAYS}"),
    (("within", -1), "similarity has ε = -1; it must be a number of at least 0"),
    (("within", "1"), "similarity has ε = '1'"),
    (("within", np.nan), "similarity has ε = nan"),
    ((abs, None), "similarity has ε = None"),
    ({"z": "match"}, "similarity names the feature 'z', which the data does not have"),
    ({7: "match"}, "similarity names the feature 7"),
    ({True: "match"}, "similarity names the feature True"),
    ({"a": "match", 0: ("within", 1)}, "similarity has the feature 0 twice"),
    (
        {"w": ("within", 1)},
        r"similarity\['w'\] is .* no order; say .* with encoder=\{'feature_types': \{'w': 'ordered'\}\}, or give a table\.",
    ),
    ({"a": np.eye(3)}, r"similarity\['a'\] is a table of shape \(3, 3\), but the feature has 4 values: 0, 1, 2, 3\."),
    ({"a": np.eye(4) * 2}, r"similarity\['a'\] must be a table with entries from 0 to 1"),
    ({"a": -np.eye(4)}, "from 0 to 1"),
    ({"a": np.full((4, 4), np.nan)}, "from 0 to 1"),
    ({"a": np.full((4, 4), "x")}, r"similarity\['a'\] must be a table of numbers"),
    ({"a": (lambda u: 0, 1)}, r"loss function of similarity\['a'\] failed for the values 0 and 0: .*positional argument"),
    ({"w": (lambda u, v: u - v, 1)}, r"loss function of similarity\['w'\] failed for the values 'no' and 'no'"),
    ({"a": (lambda u, v: None, 1)}, "loss function of .* failed"),
    ({"a": (lambda u, v: float("nan"), 1)}, r"loss function of similarity\['a'\] is not a number for the values 0 and 0"),
]


@pytest.mark.parametrize(("similarity", "message"), WRONG, ids=range(len(WRONG)))
def test_wrong_input_is_refused_in_one_sentence(x, similarity, message):
    X = pd.DataFrame(x[:, :2], columns=["a", "b"]).assign(w=np.where(x[:, 2] > 1, "yes", "no"))
    check_refused(X, message, 3, similarity=similarity, **QUICK)
