"""Level 0: incremental counts equal a recount of z, exactly, after every kind of update."""

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.sampling import hyper as hyper_
from bayescase.sampling.starts import init
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .mutants import break_function
from .problems import random_problem


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("start", ["seeded", "cases", "cells"])
def test_counts_are_those_of_z(sampler, alpha, start):
    rng = np.random.default_rng(1)
    for S, P in ((1, 3), (2, 1), (5, 40), (17, 33)):
        offset = np.arange(P + 1) * 3
        x = offset[:-1] + rng.integers(3, size=(50, P))
        x[rng.random(x.shape) < 0.2] = -1
        data = make_data(x, offset)
        hyper = make_hyper(S, P, alpha, 0.5, 5.0, 0.5)
        chain = Bench(data, hyper, init(data, hyper, start, rng))
        state, moves = chain.state, 0
        for t in range(6):
            before = chain.z.copy()
            log_joint, moved = chain.sweep(sampler, stream(t), cells=t != 2, draw_p=t != 4)
            chain.check()
            moves += int((before != chain.z)[x >= 0].any())
            assert log_joint == pytest.approx(model.log_joint(data, hyper, chain.z, state.p, state.omega), abs=1e-8)
            assert np.array_equal(state.u, data.candidates[state.p])
            n_is = model.count(data, chain.z, S)[1]
            some = n_is.sum(axis=1) > 0
            purity = (n_is[some].max(axis=1) / n_is[some].sum(axis=1)).sum()
            assert moved.purity == pytest.approx(purity, abs=1e-6)
        assert S == 1 or moves, "nothing was tested: no label ever moved"


def held_problem(alpha, seed=0):
    """Everything at once: a K that is not symmetric, held cases, held ω, held prototypes, priors per cluster, gaps."""
    return random_problem(np.random.default_rng(seed), S=4, N=40, P=9, M=12, kernel="table", alpha=alpha, held=True)


def check_held(sampler, alpha):
    data, hyper = held_problem(alpha)
    S, seen = len(hyper.beta), data.x >= 0
    chain = Bench(data, hyper, init(data, hyper, "cases", np.random.default_rng(0)))
    chain.update_p_omega(stream(99))
    state = chain.state
    moves = {"z": False, "p": False, "omega": False}
    cases, cells = data.z_held >= 0, data.omega_held >= 0
    for t in range(30):
        before = chain.z.copy(), state.p.copy(), state.omega.copy()
        log_joint, moved = chain.sweep(sampler, stream(t), draw_p=t % 3 != 1)
        chain.check()
        assert log_joint == pytest.approx(model.log_joint(data, hyper, chain.z, state.p, state.omega), abs=1e-8)
        assert (chain.z[cases] == data.z_held[cases, None])[seen[cases]].all(), "a held case moved"
        assert (state.omega[cells] == data.omega_held[cells]).all(), "a held ω moved"
        assert state.p[0] == 2, "a held prototype moved"
        assert np.isin(state.omega_prob[cells], [0, 1]).all()
        n_is = model.count(data, chain.z, S)[1]
        assert alpha > 0 or ((n_is > 0).sum(axis=1) <= 1).all(), "at α = 0 a case has one label"
        main = n_is[n_is.any(axis=1)]
        if alpha == 0:  # else two labels may tie
            assert moved.clusters_in_use == len(np.unique(main.argmax(axis=1)))
        for name, old, new in zip(moves, before, (chain.z, state.p, state.omega), strict=True):
            moves[name] |= bool((old != new).any())
    assert all(moves.values()), f"nothing was tested: {moves}"


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_what_is_held_stays_and_counts(sampler, alpha):
    check_held(sampler, alpha)


@pytest.mark.parametrize(
    ("sampler", "mutant"),
    [("rows", "held rows move, rows"), pytest.param("collapsed", "held rows move, collapsed", marks=pytest.mark.slow)],
)
def test_mutant_is_rejected(monkeypatch, sampler, mutant):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError):
        check_held(sampler, 0.5)


def check_reseat(alpha, held):
    """Reseating keeps n_sv, n_rows and the tables m; held cases and cases with several labels stay."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        data, hyper = random_problem(rng, S=4, N=90, P=5, kernel="within", alpha=alpha, held=held)
        S = len(hyper.beta)
        chain = Bench(data, hyper, init(data, hyper, "cases", rng))
        chain.sweep("rows", stream(seed))
        before = chain.z.copy()
        m = hyper_.reseat_some(chain.driver, chain.rows, hyper, chain.state, rng)
        chain.check()
        n_is = model.count(data, chain.z, S)[1]
        assert ((n_is > 0).sum(axis=0) <= m).all()
        assert (m <= n_is.sum(axis=0)).all()
        if alpha == 0:
            assert np.array_equal(m, (n_is > 0).sum(axis=0))
        rows = ((before != chain.z) & (data.x >= 0)).any(axis=1)
        assert 0 < rows.sum() <= hyper_.RESEATED
        assert ((n_is[rows] > 0).sum(axis=1) == 1).all()
        assert (model.count(data, before, S)[1][rows].max(axis=1) == n_is[rows].max(axis=1)).all()
        if held:
            assert (data.z_held[rows] < 0).all(), "a held case moved"


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_reseat_keeps_the_counts(alpha, held):
    check_reseat(alpha, held)


@pytest.mark.parametrize("mutant", ["reseat: counts of rows not kept", "reseat held rows"])
def test_reseat_mutant_is_rejected(monkeypatch, mutant):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError):
        check_reseat(0.0, True)


def test_check_notices_a_wrong_count():
    data, hyper = random_problem(np.random.default_rng(0))
    chain = Bench(data, hyper, init(data, hyper, "cells", np.random.default_rng(0)))
    chain.check()
    chain.state.n_sv[0, 0] += 1
    with pytest.raises(AssertionError, match="recount"):
        chain.check()
