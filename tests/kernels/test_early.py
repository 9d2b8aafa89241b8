"""What the driver draws before its turn, while an engine is busy, is what it draws in its turn."""

import numpy as np
import pytest

from bayescase.kernels import Driver, Threads, stream
from bayescase.kernels.cpu.omega import Bits, guess_omega, no_bits, update_omega
from bayescase.kernels.cpu.tables import Subspaces
from bayescase.state import make_data, make_hyper, new_state

N, P, V = 60, 7, 4
KEY = stream(5, 1)


def problem(S, similar):
    """(driver, hyper, state) with counts and prototypes at random, some of whose values are missing."""
    rng, offset = np.random.default_rng(S), np.arange(P + 1) * V
    similarity = None
    if similar:  # values next to each other are alike
        pairs = [(v, w) for v in range(P * V) for w in range(P * V) if v // V == w // V and abs(v - w) < 2]
        left, right = np.array(pairs).T
        ptr = np.searchsorted(left, np.arange(P * V + 1))
        similarity = (ptr, right, np.where(left == right, 1.0, 0.4))
    x = (rng.integers(V, size=(N, P)) + offset[:-1]).astype(np.int16)
    data, hyper = make_data(x, offset, similarity=similarity), make_hyper(S, P, 0.1, 0.7, 10.0, 0.4)
    state = new_state(data, S)
    state.n_sv[:] = rng.integers(50, size=state.n_sv.shape) * (rng.random(state.n_sv.shape) < 0.8)
    state.omega[:] = rng.random(state.omega.shape) < 0.6
    state.u[:] = np.where(rng.random((S, P)) < 0.1, -1, rng.integers(V, size=(S, P)) + offset[:-1])
    n_i = np.zeros(P + 1, dtype=np.int64)
    n_i[P] = N
    return Driver(data, n_i, hyper, Threads(data, S, 2, 2)), hyper, state


def tables_of(driver, hyper, state, key):
    driver.update_phi(hyper, state, key)
    return [table.copy() for table in driver.tables]


@pytest.mark.parametrize("S", [1, 5, 16, 21])
@pytest.mark.parametrize("similar", [False, True])
def test_phi(S, similar):
    driver, hyper, state = problem(S, similar)
    exact = tables_of(driver, hyper, state, KEY)
    driver.draw_early(hyper, state.n_sv, KEY)
    for one, two in zip(exact, tables_of(driver, hyper, state, KEY), strict=True):
        assert np.array_equal(one, two)
    driver.early.log_gamma[:] += np.random.default_rng(0).random(driver.early.log_gamma.shape)  # it is used
    assert not np.array_equal(exact[0], tables_of(driver, hyper, state, KEY)[0])


@pytest.mark.parametrize("change", ["key", "counts", "hyper"])
def test_phi_is_drawn_in_its_turn_if_something_has_changed(change):
    driver, hyper, state = problem(5, similar=False)
    driver.draw_early(hyper, state.n_sv, KEY)
    key = stream(5, 2) if change == "key" else KEY
    hyper = hyper._replace(lam=0.9) if change == "hyper" else hyper
    if change == "counts":
        state.n_sv[3, 2] += 1
    found = tables_of(driver, hyper, state, key)
    driver.early = None
    for one, two in zip(found, tables_of(driver, hyper, state, key), strict=True):
        assert np.array_equal(one, two)


@pytest.mark.parametrize("holds", [False, True])
def test_omega(holds):
    """Guessed by prototypes of which half come true."""
    _, hyper, state = problem(5, similar=False)
    rng = np.random.default_rng(1)
    evidence, guess = rng.normal(size=(P * V, 5)) * 3, state.u.copy()
    guess[rng.random(guess.shape) < 0.5] = 0
    held = rng.integers(-1, 2, size=(5, P)).astype(np.int8) if holds else np.zeros((0, 0), np.int8)
    found = []
    for bits in (no_bits(5, P), no_bits(5, P), None):
        omega, prob = np.zeros((5, P), dtype=np.bool_), np.zeros((5, P))
        subspaces, guessed = Subspaces(omega, held, hyper.q, True), len(found) > 0
        bits = no_bits(5, P) if bits is None else bits
        if guessed:
            guess_omega(P, guess, evidence, subspaces, KEY, bits)
        if len(found) == 2:  # a wrong guess where the prototype is right: it is used
            bits = Bits(bits.u, bits.logit + 1.0, 1.0 - bits.prob, ~bits.omega)
        total = update_omega(P, state.u, evidence, subspaces, KEY, prob, bits)
        found.append((total, omega, prob))
        assert (bits.u < -1).all()  # nothing is left for the next sweep
    for one, two, wrong in zip(*found, strict=True):
        assert np.array_equal(one, two)
        assert not np.array_equal(one, wrong)
