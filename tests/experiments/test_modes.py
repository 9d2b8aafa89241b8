"""Descriptions of the digits, and what the way from one to the other costs."""

import itertools

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from bayescase import BayesianCaseModel, model
from bayescase.experiments import crossing, modes

ALPHA = 0.6


def crossed(seed=0):
    """Twelve cases of five features in three clusters; cases 0 to 3 are those that differ."""
    rng = np.random.default_rng(seed)
    x = rng.integers(3, size=(12, 5))
    x[0], x[1], x[2] = 0, 1, 2  # so that all values are there
    fit = BayesianCaseModel(
        3, alpha=ALPHA, lam=1.0, c=5.0, q=0.5, n_iter=20, n_chains=1, random_state=seed, encoder={"feature_types": "integer"}
    ).fit(x)
    z = rng.integers(3, size=(12, 5))
    z[:4] = 0
    sets = crossing.Sets([0, 1, 2, 3], [(0,)] * 4, [(1,)] * 4, [(1, 2)] * 4, np.arange(4), np.arange(4))
    return crossing.Crossing(fit.fitted_.problem, z, sets, seed)


def whole_z(way):
    """The labels of all cells."""
    z = way.chain.rows.labels().reshape(way.x.shape).astype(int)
    for i in way.cases:
        z[i] = way.z[i]
    return z


def log_joint(way, z):
    data = way.chain.data._replace(x=way.x)
    return model.log_joint(data, way.chain.hyper, z, way.chain.state.p, way.chain.state.omega)


def test_the_work_of_a_step_is_the_difference_of_the_joint_probability():
    way = crossed()
    with way.run:
        before = log_joint(way, whole_z(way))
        work = way.draw(2, (1,))
        assert work == pytest.approx(log_joint(way, whole_z(way)) - before, abs=1e-9)
        assert way.draw(2, (0,)) == pytest.approx(-work, abs=1e-9)


def test_two_labels_are_summed_out_and_drawn_by_their_probabilities():
    way = crossed(1)
    with way.run:
        states = np.array(list(itertools.product((1, 2), repeat=5)))
        z, joint = whole_z(way), []
        for state in states:
            z[3] = state
            joint.append(log_joint(way, z))
        z[3] = 0
        alone = log_joint(way, z)
        way.add(3, -1)
        values = way.values(3)
        one, two = way.weigh(values, (0,))[0], way.weigh(values, (1, 2))[0]
        prob = np.exp(np.array(joint) - alone)
        assert two - one == pytest.approx(np.log(prob.sum()), abs=1e-9)
        rng_draws = [tuple(way.weigh(values, (1, 2))[1]) for _ in range(4000)]
        seen = np.array([rng_draws.count(tuple(state)) for state in states])
        expected = 4000 * prob / prob.sum()
        big = expected > 5
        chi = ((seen - expected)[big] ** 2 / expected[big]).sum()
        assert chi < big.sum() + 5 * np.sqrt(2 * big.sum())


def test_counts_follow_the_cases_on_the_way():
    way = crossed(2)
    with way.run:
        way.draw(1, (1, 2))
        way.go_on()
        way.draw(0, (2,))
        n_sv, _ = model.count(way.chain.data._replace(x=way.x), whole_z(way), 3)
        assert (way.chain.state.n_sv == n_sv).all()
        assert set(way.z[1]) <= {1, 2}
        assert set(way.z[0]) == {2}


def test_a_case_has_the_labels_of_most_of_its_draws():
    assert crossing.label_set(np.array([[0, 0], [0, 1], [1, 1], [2, 2]])) == (0, 1)
    assert crossing.label_set(np.array([[0, 0, 0, 1, 2, 1]])) == (0, 1)  # three labels in every draw: the largest two


def test_cases_leave_the_cluster_and_join_it_in_order():
    a = np.array([[0.0, 0.2, 0.8], [0.1, 0.0, 0.9], [1.0, 0.0, 0.0], [0.95, 0.05, 0.0]])
    b = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.95, 0.05, 0.0]])
    z_a, z_b = (np.repeat(of.argmax(axis=1)[:, None], 4, axis=1)[None] for of in (a, b))
    sets = crossing.make_sets(z_a, z_b, 2, a, b, 0.1)
    assert sets.cases == [0, 1, 2]
    assert sets.leave.tolist() == [0, 1]
    assert sets.join.tolist() == [2]
    assert sets.way == [(1,), (0,), (0,)]


def test_flows_hold_all_cases_of_both_sides():
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet([0.2] * 4, size=30), rng.dirichlet([0.2] * 4, size=30)
    found = modes.flows(a, b)
    assert found.sum(axis=1) == pytest.approx(a.sum(axis=0))
    assert found.sum(axis=0) == pytest.approx(b.sum(axis=0))
    assert np.diag(modes.flows(a, a)) == pytest.approx(a.sum(axis=0))


def test_chains_that_share_their_clusters_have_one_letter():
    assert modes.modes_of(np.array([[1.0, 0.95, 0.8], [0.95, 1.0, 0.8], [0.8, 0.8, 1.0]])) == [0, 0, 1]
