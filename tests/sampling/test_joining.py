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
from bayescase.sampling.tree import Found, Join, LeftOut, in_order, make_tree
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


@pytest.mark.parametrize("cells", [0.0, 1e-12, 1e-6])
def test_a_bag_in_which_a_cluster_has_nothing_is_told_by_the_prior(cells):
    """t is 1 then, which is where a grid of t has no width."""
    bags = Cells(np.array([0, 1, 2]), np.arange(4))
    data = make_data(np.zeros((3, 0), dtype=int), [0, 3], bags=bags)
    hyper = make_hyper(1, 3, alpha=0.0, lam=0.5, c=5.0, q=0.5)
    prior = prior_of([0], data, hyper)
    of = tell(copying(np.full(3, cells / 3), data.book, prior), prior.log_weight, data.candidate_cells)
    np.testing.assert_allclose(of.weights, 1 / 3, atol=1e-4)
    np.testing.assert_allclose(of.omega_prob[of.best], 0.5, atol=1e-4)


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
    log_f = left_out.parts(left_out.node(group), left_out.cases).log_f
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
        assert log_f[i] == pytest.approx(expected)
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
    most, one = (left_out.parts(left_out.node((s,)), left_out.cases).log_f for s in (0, 1))
    assert one[20] == pytest.approx(6 * np.log(1 / 4) + np.log(0.5 / 23))
    assert most[1] > most[0]  # case 0 is the prototype of the others


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
    assert tree.number(0.0) >= tree.number(0.07) >= tree.number(0.999)
    assert tree.number(0.07) == 3
    costs = [join.cost for join in tree.joins]
    assert costs == sorted(costs)


def lost_by_pair(left_out, a, b, pair):
    """(cases,) What the cases of two nodes lose as one, if it keeps how two columns go together: by the definition."""
    cases = left_out.cases.of(a.clusters + b.clusters)
    column = left_out.of.data.book.column[cases.codes]
    parts = [left_out.parts(node, cases) for node in (a, b, left_out.node(a.clusters + b.clusters))]
    weight = [of.log_weight for of in parts]
    of_pair = [np.bincount(cases.row, np.where(np.isin(column, pair), of.log_phi, 0.0)) for of in parts]
    others = [of.log_f - of.log_weight - two for of, two in zip(parts, of_pair, strict=True)]
    together = np.logaddexp(weight[0] + of_pair[0], weight[1] + of_pair[1])  # in place of both in the product
    return np.logaddexp(parts[0].log_f, parts[1].log_f) - together - others[2]


def test_the_loss_of_a_join_is_that_of_its_best_pair(six):
    left_out = LeftOut(found(six[0]))
    for a, b in itertools.combinations([left_out.node((s,)) for s in range(6)], 2):
        join = left_out.join(a, b)
        each = {pair: lost_by_pair(left_out, a, b, pair) for pair in itertools.combinations(range(10), 2)}
        if join.pair:
            assert join.loss == pytest.approx(each[join.pair].mean())
            assert join.error == pytest.approx(each[join.pair].std() / np.sqrt(len(each[join.pair])))
        apart = [left_out.parts(node, left_out.cases.of(a.clusters + b.clusters)).log_f for node in (a, b)]
        one = left_out.parts(left_out.node(a.clusters + b.clusters), left_out.cases.of(a.clusters + b.clusters)).log_f
        alone = (np.logaddexp(*apart) - one).mean()
        assert join.loss <= alone + 1e-12
        least = min(alone, *(of.mean() for of in each.values()))
        assert join.loss - least <= 0.1 * (alone - least) + 1e-9  # the best pair is found, or nearly


def test_two_features_that_go_together_are_no_clusters():
    """One cluster of cases, cut in four by the value of a feature that another copies; then a third copies it, too."""
    rng = np.random.default_rng(0)
    x = rng.integers(4, size=(600, 8))
    x[:, 1] = np.where(rng.random(600) < 0.7, x[:, 0], x[:, 1])
    for table, pair_is_all in ((x, True), (np.column_stack([x, np.where(rng.random(600) < 0.7, x[:, 0], 3)]), False)):
        offset = np.arange(table.shape[1] + 1) * 4
        hyper = make_hyper(4, table.shape[1], alpha=0.0, lam=1.0, c=50.0, q=0.5)
        p = np.array([[[np.flatnonzero(x[:, 0] == v)[k] for v in range(4)] for k in range(5)]])
        of = Found(make_data(table + offset[:-1], offset), hyper, x[:, 0], p, 0)
        tree = make_tree(of)
        assert tree.number(0.07) == (1 if pair_is_all else 4)
        if pair_is_all:
            assert tree.joins[-1].pair == (0, 1)
            left_out = LeftOut(of)
            nodes = [left_out.node((s,)) for s in range(4)]
            # without the pair every join would cost more than the tolerance
            assert min(lost_by_pair(left_out, a, b, ()).mean() for a, b in itertools.combinations(nodes, 2)) > 0.15


def test_a_table_of_two_features_is_one_cluster():
    """There is nothing in it but how the two go together."""
    x = np.repeat([[0, 0], [1, 1], [2, 2]], 20, axis=0)
    data = make_data(x + np.array([0, 3]), np.array([0, 3, 6]))
    hyper = make_hyper(3, 2, alpha=0.0, lam=1.0, c=50.0, q=0.5)
    tree = make_tree(Found(data, hyper, x[:, 0], np.tile([0, 20, 40], (1, 4, 1)), 0))
    assert [join.loss for join in tree.joins] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert tree.number(1e-6) == 1


def test_joins_are_in_the_order_of_what_their_groups_cost():
    """Two small clusters differ, but both belong to a large one: all three cost little per case, and are one at once."""
    sizes = {0: 100, 1: 100, 2: 1, 3: 1, 4: 2, 5: 102, 6: 202}
    made = ((2, 3, 0.5), (0, 4, 0.02), (1, 5, 0.4))
    joins = [Join(a, b, (sizes[a], sizes[b]), (), loss, 0.0, np.nan) for a, b, loss in made]
    tree = in_order(4, joins)
    small, all_of_them = (0.5 * 2 + 0.02 * 102) / 102, (0.5 * 2 + 0.02 * 102 + 0.4 * 202) / 202
    assert [join.cost for join in tree.joins] == pytest.approx([small, small, all_of_them])
    assert [tree.number(-np.expm1(-of)) for of in (0.0, small - 1e-9, small + 1e-9, 0.4, 0.5)] == [4, 4, 2, 2, 1]
    assert tree.groups(2) == ((1,), (0, 2, 3))
    gained = [joins[0], Join(0, 1, (100, 100), (), -0.1, 0.0, np.nan), Join(4, 5, (2, 200), (), 0.3, 0.0, np.nan)]
    tree = in_order(4, gained)
    last = (0.5 * 2 + 0.3 * 202) / 202  # what is gained makes up for no loss
    assert [join.cost for join in tree.joins] == pytest.approx([0.0, last, last])
    assert [(join.first, join.second) for join in tree.joins] == [(0, 1), (2, 3), (5, 4)]


def test_many_cases_are_left_out_in_part(six, monkeypatch):
    monkeypatch.setattr("bayescase.sampling.tree.MOST_CELLS", 300)
    left_out = LeftOut(found(six[0]))
    assert len(left_out.cases.rows) == 30
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
