"""Clusters joined: prototypes and subspaces given cases, and the tree of joins."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from bayescase import BayesianCaseModel
from bayescase.model import g_table, items_of, log_joint
from bayescase.sampling.joining import (
    Prior,
    copying,
    order_groups,
    prior_of,
    pseudo_counts,
    tell,
    value_counts,
)
from bayescase.sampling.tree import Found, Join, LeftOut, Tree, make_tree
from bayescase.state import Cells, make_data, make_hyper

from ..statistics.problems import random_problem


def exact(data, hyper):
    """p(p) and p(ω = 1 | p) of one cluster with all cases, by enumeration of the log joint."""
    z, D = np.zeros(len(data.cells.codes), dtype=int), data.book.n_columns
    z = z.reshape(data.x.shape) if data.bags is None else z
    score, on = [], []
    for m in range(len(data.candidates)):
        has = [j for j in range(data.book.n_single) if data.candidates[m, j] >= 0]
        has += [int(data.book.column[v]) for v in items_of(data, m)]
        found = []
        for bits in itertools.product([False, True], repeat=len(has)):
            omega = np.zeros((1, D), dtype=bool)
            omega[0, has] = bits
            lacking = np.setdiff1d(np.arange(data.book.n_single), has)  # such a bit changes nothing: summed out
            found.append((log_joint(data, hyper, z, np.array([m]), omega) - np.log1p(-hyper.q[0, lacking]).sum(), omega[0]))
        values = np.array([value for value, _ in found])
        score.append(logsumexp(values))
        on.append(np.exp(values - score[-1]) @ np.array([omega for _, omega in found]))
    score = np.array(score)
    return np.exp(score - logsumexp(score)), np.array(on)


@pytest.mark.parametrize("kernel", [None, "within", "table"])
def test_prototype_and_subspace_of_known_cases_are_exact(kernel):
    for seed in range(3):
        data, hyper = random_problem(np.random.default_rng(seed), S=1, N=7, P=3, kernel=kernel)
        data = data._replace(z_held=np.zeros(0, dtype=int), omega_held=np.zeros((0, 0), dtype=np.int8))
        weights, on = exact(data, hyper)
        prior = prior_of([0], data, hyper)
        counts = value_counts(data.cells, np.ones((7, 1)), len(data.book.base))[:, 0]
        of = tell(copying(counts, data.book, prior), prior.log_weight, data.candidate_cells)
        np.testing.assert_allclose(of.weights, weights, atol=1e-9)
        for m, row in enumerate(data.candidates):
            known = row >= 0
            np.testing.assert_allclose(of.omega_prob[row[known]], on[m][: data.book.n_single][known], atol=1e-9)


def test_prototypes_of_bags_are_exact():
    """The bits of items share one total, which is summed out over a grid."""
    rng = np.random.default_rng(0)
    lists = [sorted(rng.choice(6, size=rng.integers(1, 5), replace=False)) for _ in range(8)]
    bags = Cells(np.concatenate(lists).astype(int), np.concatenate([[0], np.cumsum([len(of) for of in lists])]))
    data = make_data(np.zeros((8, 0), dtype=int), [0, 6], bags=bags)
    hyper = make_hyper(1, 6, alpha=0.0, lam=0.5, c=5.0, q=0.5)
    weights, on = exact(data, hyper)
    prior = prior_of([0], data, hyper)
    of = tell(
        copying(value_counts(data.cells, np.ones((8, 1)), 6)[:, 0], data.book, prior), prior.log_weight, data.candidate_cells
    )
    np.testing.assert_allclose(of.weights, weights, atol=1e-3)
    np.testing.assert_allclose(of.copied, weights @ on, atol=1e-3)
    items = items_of(data, of.best)
    np.testing.assert_allclose(of.omega_prob[items], on[of.best][items], atol=1e-3)


def test_what_is_held_stays():
    data, hyper = random_problem(np.random.default_rng(0), S=2, N=7, P=3)
    held = np.array([[1, 0, -1], [1, -1, -1]], dtype=np.int8)
    data = data._replace(omega_held=held)
    assert prior_of([0], data, hyper).held.tolist() == [1, 0, -1]
    assert prior_of([0, 1], data, hyper).held.tolist() == [1, -1, -1]
    of = copying(np.zeros(len(data.book.base)), data.book, prior_of([0], data, hyper))  # no cases
    first, second = (data.book.feature == j for j in (0, 1))
    assert (of.omega_prob[first] == 1).all()
    assert (of.omega_prob[second] == 0).all()
    assert (of.log_copy[second] == 0).all()


@pytest.fixture(scope="module")
def six(planted):
    """Six clusters for three kinds of cases."""
    x, labels = planted(N=90, P=10, V=4, S=3, seed=3, noise=0.1)
    return BayesianCaseModel(6, n_iter=120, n_chains=2, random_state=0).fit(x), labels


def found(model):
    fitted = model.fitted_
    return Found(fitted.data, fitted.hyper, fitted.labels, fitted.posterior.p, fitted.plan.seed)


def test_a_case_is_left_out_of_its_own_cluster(six):
    """Against counts that are made anew without it, and pseudo-counts by the model's own equation."""
    of = found(six[0])
    left_out, data = LeftOut(of), of.data
    group = (0, 2)
    node = left_out.node(group)
    for i in (0, 11, 40, 77):
        others = np.isin(of.labels, group)
        others[i] = False
        n = np.bincount(data.x[others].reshape(-1), minlength=len(data.book.base))
        everyone = np.isin(of.labels, group)
        counts = np.bincount(data.x[everyone].reshape(-1), minlength=len(data.book.base))
        prior = prior_of(list(group), data, of.hyper)
        worth = copying(counts, data.book, prior)
        drawn = np.unique(of.p[..., list(group)])
        scores = [prior.log_weight[m] + worth.log_copy[data.candidates[m]].sum() for m in drawn]
        best = drawn[int(np.argmax(scores))]
        told = tell(worth, prior.log_weight[drawn], data.catalogue.take(drawn).cells)
        g = np.full(len(n), of.hyper.lam)
        for u in data.candidates[best] if best != i else ():
            g[u] += of.hyper.lam * of.hyper.c * told.omega_prob[u]
        total = np.add.reduceat(n + g, data.offset[:-1])
        expected = np.log((n + g)[data.x[i]] / total).sum()
        expected += np.log((others.sum() + of.hyper.beta[list(group)].sum()) / 90)
        assert node.log_share[i] == pytest.approx(expected)
    certain = told._replace(omega_prob=np.ones(len(n)))
    table = g_table(data, of.hyper, np.array([best]), np.ones((1, data.x.shape[1]), dtype=bool))[:, 0]
    np.testing.assert_allclose(of.hyper.lam + pseudo_counts(data.candidates[best], certain, data.book, prior), table)


def test_a_cluster_of_one_does_not_predict_its_case():
    """It copies nobody but itself, so that left out it is a case like any other."""
    x = np.vstack([np.zeros((20, 6), dtype=int), np.full((1, 6), 3), np.arange(12).reshape(2, 6) % 4])
    labels = np.array([0] * 20 + [1] + [0] * 2)
    offset = np.arange(7) * 4
    data = make_data(x + offset[:-1], offset)
    hyper = make_hyper(2, 6, alpha=0.0, lam=1.0, c=50.0, q=0.8)
    p = np.tile([0, 20], (1, 5, 1))
    left_out = LeftOut(Found(data, hyper, labels, p, 0))
    assert left_out.node((1,)).log_share[20] == pytest.approx(6 * np.log(1 / 4) + np.log(0.5 / 23))
    assert left_out.node((0,)).log_share[1] > left_out.node((0,)).log_share[0]  # case 0 is the prototype of the others


def test_the_tree_joins_what_was_one(six):
    model, labels = six
    tree = make_tree(found(model))
    assert len(tree.joins) == 5
    for k in range(1, 7):
        groups = tree.groups(k)
        assert sorted(s for group in groups for s in group) == list(range(6))
        assert len(groups) == k
    place = {s: k for k, group in enumerate(tree.groups(3)) for s in group}
    assert adjusted_rand_score(labels, [place[s] for s in model.labels_]) > 0.95
    assert sorted(tree.leaves(10)) == list(range(6))
    assert tree.number(0.0) >= tree.number(0.25) >= tree.number(0.999)
    assert tree.number(0.25) == 3


def test_losses_add_up(six):
    """The mean log probability with one cluster is that with all of them less every loss."""
    of = found(six[0])
    tree, left_out = make_tree(of), LeftOut(of)
    alone = left_out.node(tuple(range(6))).log_share.mean()
    assert tree.log_probability - sum(join.loss for join in tree.joins) == pytest.approx(alone)


def test_the_tolerance_stops_at_the_first_join_that_costs_more():
    joins = tuple(Join(a, b, 0.0, 0.0, (1, 1), cost) for a, b, cost in ((0, 1, 0.1), (2, 3, 0.5), (4, 5, 0.2)))
    tree = Tree(4, joins, 0.0)
    assert [tree.number(of) for of in (0.0, 0.09, 0.1, 0.39, 0.4)] == [4, 4, 3, 3, 1]
    assert tree.groups(2) == ((0, 1), (2, 3))


def test_many_cases_are_left_out_in_part(six, monkeypatch):
    monkeypatch.setattr("bayescase.sampling.tree.MOST_CELLS", 300)
    left_out = LeftOut(found(six[0]))
    assert len(left_out.rows) == 30
    assert left_out.counts.sum() == 900
    assert len(make_tree(found(six[0])).joins) == 5


def test_groups_go_from_large_to_small():
    memberships = np.array([[0.6, 0.1, 0.3], [0.0, 0.2, 0.8]])
    assert order_groups(((1,), (2,), (0,)), memberships) == ((2,), (0,), (1,))
    assert order_groups(((0, 1), (2,)), memberships) == ((2,), (0, 1))


def test_priors_of_single_clusters_are_averaged():
    data, hyper = random_problem(np.random.default_rng(0), S=2, N=5, P=3)
    weight = np.array([[0.5, 0.1], [0.5, 0.9]])
    data = data._replace(candidates=data.candidates[:2], log_weight=np.log(weight))
    prior = prior_of([0, 1], data, hyper)
    assert isinstance(prior, Prior)
    np.testing.assert_allclose(np.exp(prior.log_weight), [0.3, 0.7])
    np.testing.assert_allclose(prior.q, hyper.q.mean(axis=0))
