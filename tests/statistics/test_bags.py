"""Levels 0, 1, 4 and 7 for bags and for tables that mix them with single features."""

import numpy as np
import pytest
from numba import njit
from scipy.special import expit, gammaln, logsumexp

from bayescase import model
from bayescase.kernels.cpu.bags import lane_rises, log_copy_lanes
from bayescase.kernels.cpu.intrinsics import WIDTH, load, store, wide_load, wide_store
from bayescase.kernels.cpu.tables import Subspaces, lanes_for
from bayescase.kernels.cpu.threads import Threads
from bayescase.kernels.driver import Driver
from bayescase.kernels.rng import stream
from bayescase.sampling import hyper as hyper_
from bayescase.sampling.starts import init
from bayescase.state import Cells, count_observed, make_data, make_hyper, new_state

from .chains import Bench
from .judge import REJECT_BELOW, same_mean, smallest
from .mutants import break_function, broken
from .problems import cells_of, random_bags, similarity_of
from .test_conditionals import normalised, state_of

CLOSE = {"rtol": 1e-9, "atol": 1e-11}


# --- level 0 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("start", ["seeded", "cells"])
@pytest.mark.parametrize("held", [False, True])
def test_counts_and_log_joint(sampler, alpha, start, held):
    for seed, P in ((0, 2), (1, 0)):
        data, hyper = random_bags(np.random.default_rng(seed), S=4, N=30, M=9, P=P, alpha=alpha, held=held)
        chain = Bench(data, hyper, init(data, hyper, start if alpha else "cases", np.random.default_rng(1)))
        state, moves, rows = chain.state, 0, np.repeat(np.arange(len(data.x)), data.cells.sizes)
        for t in range(12):
            before = chain.z.copy()
            log_joint, _ = chain.sweep(sampler, stream(t), draw_p=t % 3 != 1)
            chain.check()
            assert log_joint == pytest.approx(model.log_joint(data, hyper, chain.z, state.p, state.omega), abs=1e-8)
            for s, m in enumerate(state.p):
                items = data.book.column[model.items_of(data, m)]
                others = np.setdiff1d(np.arange(P, data.book.n_columns), items)
                assert not state.omega[s, others].any(), "an item that the prototype lacks is on"
                if held:
                    known = items[data.omega_held[s, items] >= 0]
                    assert np.array_equal(state.omega[s, known], data.omega_held[s, known])
            if held:
                fixed = data.z_held[rows] >= 0
                seen = data.cells.codes >= 0
                assert (chain.z[fixed & seen] == data.z_held[rows][fixed & seen]).all(), "a held case moved"
            moves += int((before != chain.z).any())
        assert moves, "nothing was tested: no label ever moved"


def test_large_pseudo_counts():
    """λ = 10⁶, and items that are a quarter of all: λ(v) = 10¹⁰ in a vocabulary of 40,000."""
    base = np.full(40_000, 1e-3)
    base[:4] = 1e4
    bags = Cells(np.tile(np.arange(4), 24), np.arange(25) * 4)
    data = make_data(np.zeros((24, 0), int), [0, len(base)], bags=bags, base=base)
    hyper = make_hyper(3, len(base), 0.5, 1e6, 5.0, 0.5)
    chain = Bench(data, hyper, np.repeat(np.arange(24) % 3, 4))
    for draw_p in (True, False):
        joint = chain.driver.update_p_omega(hyper, chain.state, chain.candidates, stream(1), draw_p=draw_p)
        truth = model.log_joint(data, hyper, chain.z, chain.state.p, chain.state.omega)  # log Γ has lost its last digits
        assert joint == pytest.approx(truth, abs=0.5), draw_p


# --- level 1 -------------------------------------------------------------------------------------------------------------


def check_given_t(blocked=True):
    """p and ω given t: against the joint of counts, p, ω and t, Π_v rise(g(v), n_v) · t^G, over every candidate and ω."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        data, hyper = random_bags(rng, S=2, P=seed % 2, held=seed >= 2)
        z, p, omega = state_of(rng, data, hyper)
        chain = Bench(data, hyper, z)
        chain.put(p, omega)
        chain.update_p_omega(np.uint64(seed), blocked)
        book, P, S, driver = data.book, data.book.n_single, len(p), chain.driver
        n_sv = model.count(data, chain.z, S)[0]
        held = data.omega_held if len(data.omega_held) else np.full((S, book.n_columns), -1)
        for s in range(S):
            log_t = driver.bags.log_t[:, s]
            for m in range(len(data.candidates)):
                items = model.items_of(data, m)
                ours = sum(
                    held[s, d] * driver.evidence[v, s]
                    if held[s, d] >= 0
                    else model.log_copy(hyper.q[s, d], driver.evidence[v, s])
                    for v, d in zip(items, book.column[items], strict=True)
                )
                truth = 0.0
                for v, d in zip(items, book.column[items], strict=True):
                    each = []
                    for on in (0, 1):
                        lam = hyper.lam * book.base[v]
                        g = model.g(lam, hyper.c, on, 1.0)
                        value = gammaln(g + n_sv[v, s]) - gammaln(g) - (gammaln(lam + n_sv[v, s]) - gammaln(lam))
                        value += (g - lam) * log_t[book.feature[v] - P]
                        value += 0.0 if held[s, d] >= 0 else np.log(hyper.q[s, d] if on else 1 - hyper.q[s, d])
                        each.append(value if held[s, d] in (-1, on) else -np.inf)
                    truth += logsumexp(each)
                    if held[s, d] < 0:
                        np.testing.assert_allclose(
                            expit(model.omega_logit(hyper.q[s, d], driver.evidence[v, s])),
                            normalised(np.array(each))[1],
                            **CLOSE,
                        )
                np.testing.assert_allclose(ours, truth, **CLOSE)
                adds = driver.copies.adds.reshape(-1, lanes_for(S))[items + 1, s]
                np.testing.assert_allclose(adds.sum(), truth, rtol=1e-5, atol=1e-5)


def test_log_copy_of_sixteen_clusters():
    @njit
    def fill(q, e, out):
        for k in range(0, len(out), WIDTH):
            store(out, k, log_copy_lanes(load(q, k), load(e, k)))

    q, e = (
        part.ravel().astype(np.float32) for part in np.meshgrid([2e-5, 0.3, 0.5, 1 - 2e-5], [-5000, -90, -3, 0, 2, 90, 5000, 1])
    )
    out = np.zeros(len(q), dtype=np.float32)
    fill(q, e, out)
    np.testing.assert_allclose(
        out, [model.log_copy(*pair) for pair in zip(q.astype(float), e.astype(float), strict=True)], rtol=1e-5, atol=1e-6
    )


@njit
def run_rises(rises, plain, copied, log_gamma, n, out):
    for k in range(0, len(n), WIDTH):
        high, low = rises(plain, copied, log_gamma, wide_load(n, k, len(n) - k))
        wide_store(out[0], k, high, len(n) - k)
        wide_store(out[1], k, low, len(n) - k)


def check_rises(rises):
    """rise(a, n) of counts that are multiplied out, of others, and of both side by side."""
    for n in ([0] * 20, np.arange(40), np.arange(8, -1, -1), [0, 9, 100, 30_000, 2_000_000]):
        for plain, copied in ((1e-4, 5e-4), (0.5, 25.5), (300.0, 1800.0)):
            n, out = np.asarray(n, dtype=np.int32), np.full((2, len(n)), np.nan)
            run_rises(rises, plain, copied, np.full(2, np.nan), n, out)
            truth = [gammaln(a + n) - gammaln(a) for a in (copied, plain)]
            np.testing.assert_allclose(out, truth, rtol=1e-12, atol=1e-12)


def test_rises_of_sixteen_clusters():
    check_rises(lane_rises)


def test_a_wrong_term_of_the_series_is_rejected():
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_rises(broken("a term of Stirling's series").lane_rises)


def test_what_is_kept_of_items_goes_with_the_hyperparameters():
    """log Γ of an item is kept from sweep to sweep, and made anew when λ or c changes."""
    first, items = np.arange(4) * 30, np.tile(np.arange(30, dtype=np.int32), 3)
    data = make_data(np.zeros((3, 0), np.int32), [0, 30], bags=Cells(items, first), base=np.linspace(0.1, 1.9, 30))
    threads, n_i = Threads(data, 2), count_observed(data.x, data.bags)
    found = []
    for used in ([(0.5, 5.0), (0.7, 5.0), (0.7, 2.0)], [(0.7, 2.0)]):
        hypers = [make_hyper(2, 30, alpha=0.1, lam=lam, c=c, q=0.5) for lam, c in used]
        driver, state = Driver(data, n_i, hypers[0], threads), new_state(data, 2)
        state.n_sv[:] = np.arange(60).reshape(30, 2)
        for hyper in hypers:
            driver.use(hyper)
            driver.draw_t(hyper, state, np.uint64(1))
            driver.update_evidence(hyper, state, Subspaces(state.omega, driver.omega_held, hyper.q, True))
        found.append(driver.evidence.copy())
    threads.close()
    np.testing.assert_array_equal(*found)


def test_given_t():
    check_given_t()


@pytest.mark.parametrize("mutant", ["t forgotten", "items: base forgotten"])
def test_given_t_mutant_is_rejected(monkeypatch, mutant):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_given_t()


def test_likelihood_of_lam_and_c():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        data, hyper = random_bags(rng, S=3, P=seed % 3)
        z, p, omega = state_of(rng, data, hyper)
        chain = Bench(data, hyper, z)
        chain.put(p, omega)
        counts = hyper_.Counts(data.book, chain.state)
        pairs = [(lam, c) for lam in (0.01, 0.7, 30.0) for c in (0.0, 0.3, 50.0)]
        truth = [model.log_joint(data, hyper._replace(lam=lam, c=c), z, p, omega) for lam, c in pairs]
        np.testing.assert_allclose(np.diff([counts.log_x(*pair) for pair in pairs]), np.diff(truth), rtol=1e-9, atol=1e-9)


def test_bits_of_items_that_no_prototype_has_teach_nothing_about_q():
    rng = np.random.default_rng(0)
    data, hyper = random_bags(rng, S=3, P=2)
    z, p, omega = state_of(rng, data, hyper)
    chain = Bench(data, hyper, z)
    chain.put(p, omega)
    there = hyper_.bits_there(data.book, chain.state)
    own = np.zeros(hyper.q.shape, dtype=bool)
    own[:, :2] = True
    for s, m in enumerate(p):
        own[s, data.book.column[model.items_of(data, m)]] = True
    assert np.array_equal(there, own)
    assert not omega[~there].any()


# --- level 4 -------------------------------------------------------------------------------------------------------------

S, N = 2, 5


def problem(alpha):
    """Two single features, one of them with neighbours that are half alike, and a bag of four items."""
    rng = np.random.default_rng(3)
    offset = np.array([0, 2, 5, 9])
    candidates = offset[:2] + (rng.random((4, 2)) * np.diff(offset[:3])).astype(int)
    candidates[1, 1] = -1
    bags, lists = cells_of([[0, 1, 2], [0], [1, 1], [], [3, 2]], 5), cells_of([[0, 1], [2], [1, 2, 3], [0, 3]], 5)
    base = np.array([1.0, 1.0, 0.4, 1.6, 1.0, 0.2, 1.7, 0.5, 1.6])
    weight = [1.0, 3.0, 1.0, 2.0]
    similarity = similarity_of(rng, offset[:3], "within", offset[-1])
    x = np.zeros((N, 2), dtype=int)
    data = make_data(x, offset, candidates, weight, similarity, bags=bags, candidate_bags=lists, base=base)
    return data, make_hyper(S, 6, alpha, lam=0.6, c=6.0, q=[0.5, 0.2, 0.7, 0.4, 0.6, 0.3])


def quantities(data, hyper, z, p, omega):
    """Label-free functions of the joint state."""
    n_sv, n_is = model.count(data, z, S)
    size, bag = n_is.sum(axis=0), n_sv[5:].sum(axis=0)
    on = ((model.g_table(data, hyper._replace(lam=1.0, c=1.0), p, omega) - data.book.base[:, None]) * n_sv).sum(axis=0)
    mine = [n_sv[model.items_of(data, m), s].sum() for s, m in enumerate(p)]
    found = {
        "purity": (n_is.max(axis=1) / np.maximum(n_is.sum(axis=1), 1)).mean(),
        "largest": size.max(),
        "bag squared": (bag**2).sum(),
        "omega": omega.sum(),
        "items on": omega[:, 2:].sum(),
        "copied": on.sum(),
        "items of the prototype": sum(mine),
        "n_sv squared": (n_sv**2).sum(),
        "size omega": size @ omega.sum(axis=1),
        "size p": size @ (p == 2),
        "first item": n_sv[5].sum(),
        "second item squared": (n_sv[6] ** 2).sum(),
        "c": np.log(hyper.c),
        "c copied": np.log(hyper.c) * on.sum(),
        "q": hyper.q[0, 0],
        "q omega": hyper.q[0, 0] * omega.sum(),
    }
    return {name: float(value) for name, value in found.items()}


LEARNED = {"plain": (), "learned": ("c", "q")}


def learn_of(name):
    return hyper_.Learn(LEARNED[name], np.ones((S, 6), dtype=bool))


def prior_draws(alpha, name, n):
    rng, (data, start), out = np.random.default_rng(1), problem(alpha), []
    for _ in range(n):
        hyper = hyper_.draw_prior(start, learn_of(name), rng)
        drawn = model.simulate(data, hyper, rng, N)
        out.append(quantities(data._replace(x=drawn.x, bags=drawn.bags), hyper, drawn.z, drawn.p, drawn.omega))
    return out


def chain_draws(sampler, alpha, name, n):
    rng, (data, hyper), learn, out = np.random.default_rng(2), problem(alpha), learn_of(name), []
    hyper = hyper_.draw_prior(hyper, learn, rng)
    drawn = model.simulate(data, hyper, rng, N)
    chain = Bench(data._replace(x=drawn.x, bags=drawn.bags), hyper, drawn.z.astype(np.uint8))
    chain.put(drawn.p, drawn.omega)
    state = chain.state
    for t in range(n):
        chain.hyper = hyper_.update(chain.driver, chain.rows, chain.hyper, learn, state, chain.n_i, rng)
        chain.sweep(sampler, stream(9, t))
        out.append(quantities(chain.data, chain.hyper, chain.z, state.p, state.omega))
        again = model.simulate(data, chain.hyper, rng, N, p=state.p, omega=state.omega, z=chain.z.astype(int))
        chain.put_cases(again.x, again.bags)
    return out


PRIORS: dict = {}


def verdict(sampler, alpha, name, n=5000):
    if (alpha, name) not in PRIORS:
        PRIORS[alpha, name] = prior_draws(alpha, name, n)
    prior, chain = PRIORS[alpha, name], chain_draws(sampler, alpha, name, n)
    p_values = {}
    for quantity in prior[0]:
        a, b = (np.array([draw[quantity] for draw in draws]) for draws in (prior, chain))
        if a.std() > 1e-9:
            p_values[quantity], p_values[quantity + " squared"] = same_mean(a, b), same_mean(a**2, b**2)
    return *smallest(p_values), p_values


@pytest.mark.parametrize(
    ("sampler", "alpha", "name"),
    [
        ("rows", 0.8, "plain"),
        ("collapsed", 0.8, "learned"),
        ("rows", 0.0, "learned"),
        pytest.param("collapsed", 0.8, "plain", marks=pytest.mark.slow),
        pytest.param("rows", 0.8, "learned", marks=pytest.mark.slow),
        pytest.param("collapsed", 0.0, "plain", marks=pytest.mark.slow),
    ],
)
def test_joint_distribution(sampler, alpha, name):
    p, which, p_values = verdict(sampler, alpha, name)
    assert p > REJECT_BELOW, (which, p_values)


@pytest.mark.parametrize(
    ("sampler", "alpha", "mutant"),
    [
        ("rows", 0.8, "t without its cells"),
        pytest.param("collapsed", 0.8, "t forgotten", marks=pytest.mark.slow),
        pytest.param("rows", 0.8, "items: base forgotten", marks=pytest.mark.slow),
        pytest.param("collapsed", 0.0, "items of a bag not counted", marks=pytest.mark.slow),
    ],
)
def test_mutant_is_rejected(monkeypatch, sampler, alpha, mutant):
    break_function(monkeypatch, mutant)
    p, which, p_values = verdict(sampler, alpha, "plain")
    assert p < REJECT_BELOW, (which, p_values)


# --- level 7 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("how", [{"n_blocks": 2}, {"n_blocks": 7}, {"n_blocks": 5, "n_jobs": 3}])
def test_blocks_and_threads(sampler, how):
    """More items than a chunk has, so that there are several."""
    rng = np.random.default_rng(0)
    lists = [rng.integers(1300, size=rng.integers(0, 40)) for _ in range(90)]
    data = make_data(np.zeros((90, 0), dtype=int), [0, 1300], bags=cells_of(lists), base=rng.dirichlet(np.ones(1300)) * 1300)
    hyper = make_hyper(17, 1300, 0.3, 0.5, 5.0, 0.5)
    found = []
    for more in ({}, how):
        chain = Bench(data, hyper, init(data, hyper, "seeded", np.random.default_rng(1)), **more)
        joint = [chain.sweep(sampler, stream(3, t))[0] for t in range(6)]
        found.append((chain.z, chain.state.p, chain.state.omega, joint))
        chain.threads.close()
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
