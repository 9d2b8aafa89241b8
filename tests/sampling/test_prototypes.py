"""Which case stands for a cluster: a member, never an empty one, never one for two clusters; the raw posterior stays."""

import itertools

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.kernels import row_hashes, row_means
from bayescase.parallel import LEAST, on_threads
from bayescase.sampling.posterior import equal_hashes
from bayescase.sampling.prototypes import NEVER, Candidate, Catalogue, copied_if_had, prototype_posterior, rank_prototypes
from bayescase.state import Cells, join_cells

from ..helpers import fit_model

QUICK = {"n_iter": 60, "n_chains": 2, "random_state": 0}


def catalogue_of(home, values=None, log_weight=None):
    """Candidates with one feature, whose values are their own numbers."""
    M = len(home)
    values = np.full((M, 2), 0.5) if values is None else np.asarray(values, dtype=float)
    weight = np.zeros((M, 1)) if log_weight is None else np.asarray(log_weight, dtype=float).reshape(M, -1)
    cells, bare = join_cells(np.arange(M)[:, None], None), np.full(M, NEVER)
    return Catalogue(cells, weight, np.asarray(home), bare, values, np.full(values.shape, 0.5))


def drawn(*pairs):
    return tuple(Candidate(row, p, (row,)) for row, p in pairs)


def chosen(posterior, of):
    return [ranked[0].row for ranked in rank_prototypes(posterior, of)]


def test_a_member_is_chosen_even_if_another_case_is_more_probable():
    posterior = [drawn((3, 0.7), (0, 0.2), (1, 0.1)), drawn((2, 1.0))]
    of = catalogue_of([0, 0, 1, 1])
    assert chosen(posterior, of) == [0, 2]
    assert [c.row for c in rank_prototypes(posterior, of)[0]] == [0, 1]


def test_of_members_that_are_as_probable_the_most_typical_is_chosen():
    posterior = [drawn((0, 0.4), (1, 0.396), (2, 0.204))]
    of = catalogue_of([0, 0, 0], values=[[0.1], [0.3], [0.6]])
    assert chosen(posterior, of) == [1]  # 2 is more typical, but clearly less probable
    assert chosen([drawn((0, 0.4), (1, 0.39), (2, 0.21))], of) == [0]  # a point less would be seen
    flat = [drawn((0, 0.004), (1, 0.0035), (2, 0.003))]
    assert chosen(flat, of) == [1]  # 2 has less than 0.8 of the most
    assert [c.row for c in rank_prototypes(flat, of)[0]] == [1, 0, 2]


def texts(copied, *words):
    """Members of cluster 0: texts of these words, of which the first is the most common there."""
    first = np.cumsum([0, *map(len, words)])
    cells = Cells(np.concatenate(words).astype(np.int16), first)
    V, M = len(copied), len(words)
    values = np.linspace(0.9, 0.1, V)[:, None]
    nowhere = np.full(M, NEVER)
    return Catalogue(cells, np.zeros((M, 1)), np.zeros(M, int), nowhere, values, np.array(copied)[:, None])


def test_of_texts_as_probable_the_one_that_has_most_of_what_is_copied_is_chosen():
    """A text of one common word has the largest mean of log φ."""
    of = texts([0.03, 0.08, 0.04, 0.04, 0.0], [0], [1, 2], [1, 3, 4], [0, 1])
    posterior = [drawn((0, 0.05), (1, 0.05), (2, 0.04), (3, 0.04))]
    assert copied_if_had(0, posterior[0], of).tolist() == pytest.approx([0.03 / 0.09, 0.08 / 0.13, 0.8, 1.0, 0.0])
    near = [drawn((0, 0.05), (1, 0.05), (2, 0.046), (3, 0.046))]
    assert chosen(near, of) == [1]  # 2 has as much, but a word that says nothing besides
    assert chosen([drawn((3, 0.05), (0, 0.05))], of) == [3]


def test_a_text_of_which_nothing_is_copied_is_passed_over_though_it_is_more_probable():
    of = texts([0.01, 0.1], [0], [1, 0])
    posterior = [drawn((0, 0.8), (1, 0.1))]
    assert chosen(posterior, of) == [1]
    assert [c.row for c in rank_prototypes(posterior, of)[0]] == [1], "nor would it do as well"
    assert chosen([drawn((0, 0.9))], of) == [0]  # no other member was drawn


def test_if_none_was_drawn_the_member_with_most_of_what_is_copied_is_chosen():
    of = texts([0.9, 0.9, 0.1, 0.1], [2], [0, 1, 3], [0, 3], [0, 1])._replace(home=np.array([0, 0, 0, 1]))
    (ranked,) = rank_prototypes([drawn((3, 1.0))], of)
    assert ranked == (Candidate(1, 0.0, (1,)),)


def test_empty_cases_stand_for_nothing():
    posterior = [drawn((0, 0.9), (1, 0.1)), drawn((0, 0.8), (2, 0.2))]
    assert chosen(posterior, catalogue_of([NEVER, 0, 1])) == [1, 2]


def test_a_member_with_nothing_present_stands_for_a_cluster_of_such_cases_only():
    """Before a case of another cluster does; a case without any value never does."""
    posterior = [drawn((0, 0.9), (1, 0.1)), drawn((2, 0.8), (1, 0.2))]
    of = catalogue_of([NEVER, 0, NEVER, NEVER])._replace(bare=np.array([0, NEVER, NEVER, 1]))
    assert chosen(posterior, of) == [1, 3]


def test_if_no_member_was_drawn_the_most_typical_one_stands_for_the_cluster():
    posterior = [drawn((3, 1.0)), drawn((3, 1.0))]
    of = catalogue_of([0, 0, 0, 1], values=[[0.1, 0.1], [0.6, 0.1], [0.2, 0.1], [0.1, 0.7]])
    ranking = rank_prototypes(posterior, of)
    assert ranking[0] == (Candidate(1, 0.0, (1,)),)
    assert ranking[1][0].row == 3


def test_a_cluster_without_members_takes_the_most_probable_case_that_is_free():
    posterior = [drawn((0, 1.0)), drawn((0, 0.6), (1, 0.3), (2, 0.1)), drawn((0, 0.9), (1, 0.1))]
    assert chosen(posterior, catalogue_of([0, 0, 0], values=np.full((3, 3), 0.5))) == [0, 1, 0]  # nothing else was drawn


@pytest.mark.filterwarnings("ignore:Features .* have one value only")
def test_clusters_without_members_show_other_ties():
    equal = (Candidate(0, 1.0, (0, 1, 2)),)
    assert chosen([equal, equal, equal], catalogue_of([0, 0, 0], values=np.full((3, 3), 0.5))) == [0, 1, 2]
    assert chosen([equal] * 4, catalogue_of([0, 0, 0], values=np.full((3, 4), 0.5))) == [0, 1, 2, 0]  # there are no more
    model = BayesianCaseModel(3, n_iter=20, n_chains=1, random_state=0).fit(np.ones((20, 3), dtype=int))
    assert len(set(model.prototypes_.tolist())) == 3
    assert [c.prototype.row for c in model.explain().clusters] == [model.prototypes_[0]]  # the others have no cases


def test_a_pinned_prototype_stays_though_it_belongs_elsewhere():
    weight = np.full((3, 2), 0.0)
    weight[:, 0] = [-np.inf, -np.inf, 0.0]
    posterior = [drawn((2, 1.0)), drawn((1, 1.0))]
    assert chosen(posterior, catalogue_of([0, 0, 1], log_weight=weight)) == [2, 1]
    x = np.repeat([[0, 0, 0], [1, 1, 1]], 10, axis=0)
    model = fit_model(x, 2, **QUICK, pins={"prototypes": {0: 15}, "cases": {i: int(i >= 10) for i in range(20)}})
    assert model.prototypes_[0] == 15
    assert not model.explain().clusters[0].prototype.member


def test_the_posterior_is_counted_and_equal_cases_are_one():
    catalogue = row_hashes(join_cells(np.array([[0, 1], [0, 1], [2, 3], [0, 3]]), None))
    p = np.array([[[0], [1], [1], [2]]])
    ((first, second),) = prototype_posterior(p, catalogue, np.zeros((4, 1)))
    assert first == Candidate(0, 0.75, (0, 1))
    assert second == Candidate(2, 0.25, (2,))
    ((first, _),) = prototype_posterior(p[:, 1:], catalogue, np.log([[0.1], [0.5], [0.2], [0.2]]))
    assert first == Candidate(1, 2 / 3, (1, 0))  # the larger weight first
    with np.errstate(divide="ignore"):
        ((first, _),) = prototype_posterior(p[:, 1:], catalogue, np.log([[0.0], [0.5], [0.3], [0.2]]))
    assert first.ties == (1,)  # a case of weight zero is no tie


# --- fits -----------------------------------------------------------------------------------------------------------------


def test_prototypes_are_members_and_no_two_are_the_same(planted):
    for seed in range(5):
        x, _ = planted(N=40, P=5, V=3, S=4, seed=seed, noise=0.4)
        model = BayesianCaseModel(6, n_iter=40, n_chains=1, alpha=2.0, random_state=seed).fit(x)
        used = np.flatnonzero(np.bincount(model.labels_, minlength=6))
        assert np.array_equal(model.labels_[model.prototypes_[used]], used)
        assert len(set(model.prototypes_[used])) == len(used)


def test_a_recipe_without_ingredients_is_no_prototype():
    """Coded as absences, an empty case agrees with everything that a cluster lacks."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 30)
    x = rng.random((60, 30)) < np.where(np.arange(30) % 2 == kind[:, None], 0.25, 0.01)
    x[[5, 40]] = False
    model = BayesianCaseModel(2, **QUICK).fit(x)
    empty = set(np.flatnonzero(~x.any(axis=1)).tolist())
    assert any(c.row in empty for ranked in model.prototype_probabilities_ for c in ranked)  # the posterior likes them
    assert not empty & set(model.prototypes_.tolist())
    assert not any(p.row in empty for c in model.explain().clusters for p in c.candidates)


def test_the_raw_posterior_has_every_case_that_was_drawn(planted):
    model = BayesianCaseModel(3, **QUICK).fit(planted(N=40, P=5, noise=0.5)[0])
    for s, ranked in enumerate(model.prototype_probabilities_):
        p = model.fitted_.posterior.p[..., s]
        assert sum(c.probability for c in ranked) == pytest.approx(1)
        assert [c.probability for c in ranked] == sorted((c.probability for c in ranked), reverse=True)
        for c in ranked:
            assert np.isin(p, c.ties).mean() == pytest.approx(c.probability)
        assert set(np.unique(p)) <= {row for c in ranked for row in c.ties}


def test_a_candidate_of_a_catalogue_belongs_where_it_is_folded_in(planted):
    x, _ = planted(N=60, P=6, V=3, S=2, seed=4, noise=0.15)
    catalogue = np.vstack([x[:6], np.full((1, 6), 2)])
    model = BayesianCaseModel(2, **QUICK).fit(x, candidates=catalogue)
    home = model.predict(catalogue)
    for s, cluster in ((c.cluster, c) for c in model.explain().clusters):
        row = model.prototypes_[s]
        assert cluster.prototype.member == (home[row] == s)
        if any(home[c.row] == s for c in model.prototype_probabilities_[s]):
            assert home[row] == s


def test_a_catalogue_whose_cases_all_belong_to_one_cluster():
    """The other cluster shows one of them, and says that it is no member."""
    x = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1]], 15, axis=0)
    model = BayesianCaseModel(2, **QUICK).fit(x, candidates=[[0, 0, 0, 0], [0, 0, 0, 1]])
    members = [c.prototype.member for c in model.explain().clusters]
    assert sorted(members) == [False, True]
    assert len(set(model.prototypes_.tolist())) == 2


# --- equal cases ----------------------------------------------------------------------------------------------------------


def test_equal_cases_have_equal_memberships_and_labels():
    """A case between two clusters, thirty times: each copy's own draws would send it here or there."""
    rng = np.random.default_rng(0)
    x = np.vstack([np.zeros((30, 8)), np.ones((30, 8)), np.tile([0, 0, 0, 0, 1, 1, 1, 1], (30, 1))]).astype(int)
    x = x[rng.permutation(90)]
    model = BayesianCaseModel(2, alpha=1.0, n_iter=60, n_chains=2, random_state=0).fit(x)
    for row in np.unique(x, axis=0):
        same = (x == row).all(axis=1)
        assert len(np.unique(model.memberships_[same], axis=0)) == 1
        assert len(set(model.labels_[same])) == 1
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1)
    assert np.array_equal(model.labels_, model.memberships_.argmax(axis=1))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_groups_of_equal_hashes(threads):
    rng = np.random.default_rng(2)
    for distinct in (3, 4000, 2**40):
        hashes = rng.integers(distinct, size=5 * LEAST).astype(np.uint64) * np.uint64(2**64 // distinct)
        held = rng.integers(-1, 2, size=len(hashes))
        for labels in (np.zeros(0, int), held):
            with on_threads(threads):
                rows, first = equal_hashes(hashes, labels)
            apart, expected = labels if len(labels) else np.zeros_like(held), {}
            for row, key in enumerate(zip(hashes.tolist(), apart.tolist(), strict=True)):
                expected.setdefault(key, []).append(row)
            expected = [expected[key] for key in sorted(expected) if len(expected[key]) > 1]
            assert [group.tolist() for group in np.split(rows, first[1:]) if len(group)] == expected
    assert [len(part) for part in equal_hashes(np.zeros(0, np.uint64), np.zeros(0, int))] == [0, 0]


def test_equal_cases_that_are_held_apart_stay_apart():
    x = np.repeat([[0, 0, 1], [1, 1, 0]], 10, axis=0)
    model = fit_model(x, 2, **QUICK, pins={"cases": {0: 0, 1: 1}})
    assert model.labels_[:2].tolist() == [0, 1]
    free = model.memberships_[2:10]
    assert len(np.unique(free, axis=0)) == 1


def test_without_equal_cases_memberships_are_the_mean_of_the_draws(planted):
    x, _ = planted(N=40, P=12, V=4, seed=2, noise=0.5)
    assert len(np.unique(x, axis=0)) == 40
    model = BayesianCaseModel(2, **QUICK, keep_draws=True).fit(x)
    pooled = model.chain_overlap_ >= 0.9
    share = (model.draws_.z[pooled][..., None] == np.arange(2)).mean(axis=(0, 1, 3))
    assert abs(model.memberships_ - share).max() < 0.01


# --- what is copied -------------------------------------------------------------------------------------------------------


def test_a_value_is_copied_if_the_prototype_has_it_and_the_feature_is_in_the_subspace(planted):
    x, _ = planted(N=40, P=6, V=3, noise=0.3)
    model = BayesianCaseModel(3, n_iter=80, thin=1, n_chains=2, keep_draws=True, random_state=0).fit(x)
    fitted = model.fitted_
    by_feature = np.add.reduceat(fitted.posterior.copied, fitted.encoding.offset[:-1])
    np.testing.assert_allclose(by_feature, fitted.posterior.omega_prob.T)  # no prototype has a gap
    pooled = model.chain_overlap_ >= 0.9
    codes, omega = fitted.data.candidates[model.draws_.p[pooled]], model.draws_.omega[pooled]
    for s in range(3):
        for code in range(int(fitted.encoding.offset[-1])):
            drawn = ((codes[:, :, s] == code) & omega[:, :, s]).any(axis=-1).mean()
            assert abs(fitted.posterior.copied[code, s] - drawn) < 0.2


def test_what_a_prototype_lacks_is_not_copied(mixed):
    model = BayesianCaseModel(2, n_iter=40, n_chains=1, random_state=0).fit(mixed[0], pins={"prototypes": {0: 3}})  # no colour
    copied = np.add.reduceat(model.fitted_.posterior.copied, model.fitted_.encoding.offset[:-1])
    assert copied[0, 0] == 0 < copied[1:, 0].max()


# --- what it takes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[5] * 11, [0, 1, 2, 3, 2, 2, 2, 2, 0, 0, 0, 0, 3], [2, 1, 3, 2, 2, 1, 3, 2]])
def test_a_hash_depends_on_the_row_alone(sizes):
    """Rows are hashed four at a time where they are of one length."""
    rng = np.random.default_rng(0)
    first = np.concatenate([[0], np.cumsum(sizes)])
    codes = rng.integers(-1, 3, size=first[-1]).astype(np.int16)
    cells = Cells(codes, first)
    alone = [row_hashes(cells.take([i]))[0] for i in range(len(sizes))]
    assert row_hashes(cells).tolist() == alone
    rows = {tuple(codes[a:b]) for a, b in itertools.pairwise(first)}
    assert len(set(alone)) == len(rows)


def test_the_mean_over_the_observed_cells_of_rows():
    x = np.array([[0, 3, -1], [-1, -1, -1], [2, 4, 5]], dtype=np.int16)
    of_code = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert row_means(join_cells(x, None), np.array([2, 0, 1]), of_code).tolist() == [52 / 3, 4.5, 0.0]
