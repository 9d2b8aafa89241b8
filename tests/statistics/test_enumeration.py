"""Level 3: a long run against the enumerated posterior of a tiny problem, both samplers."""

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.starts import init
from bayescase.state import new_state

from .judge import REJECT_BELOW, pearson, smallest
from .mutants import MUTANTS, ROWS_ONLY, kernels
from .problems import enumerate_posterior, tiny

THIN = 8
MUTANT_DRAWS = 12_000


@pytest.fixture(scope="module")
def exact():
    data, hyper = tiny()
    return data, hyper, enumerate_posterior(data, hyper)


def run(cpu, data, hyper, sampler, n_draws, seed=5):
    S = len(hyper.beta)
    state = new_state(data, init(data, S, "cells", np.random.default_rng(seed)), S)
    work = cpu.Work(data, hyper, state.z.dtype)
    z = np.empty((n_draws, *data.x.shape), dtype=int)
    p = np.empty((n_draws, S), dtype=int)
    omega = np.empty((n_draws, S, data.x.shape[1]), dtype=int)
    for t in range(-50, n_draws * THIN):
        cpu.sweeps[sampler](data, hyper, state, work, stream(seed, t + 50))
        if t >= 0 and t % THIN == THIN - 1:
            k = t // THIN
            z[k], p[k], omega[k] = np.where(data.x < 0, 0, state.z), state.p, state.omega
    return z, p, omega


def p_values(data, hyper, exact, draws):
    """Two tables: all states of z; and prototype, subspace and size of the cluster that owns the first cell."""
    z, p, omega = draws
    n, S, M, W = len(z), len(hyper.beta), len(data.candidates), len(exact.subspaces)
    observed = data.x >= 0
    power = S ** np.arange(observed.sum())
    code = {int(state[observed] @ power): k for k, state in enumerate(exact.z)}
    seen = np.bincount([code[int(state[observed] @ power)] for state in z], minlength=len(exact.z))
    result = {"z": pearson(seen, n * exact.prob)}

    sizes = observed.sum() + 1
    expected = np.zeros((sizes, M, W))
    for state, prob, cluster in zip(exact.z, exact.prob, exact.cluster, strict=True):
        s = state[0, 0]
        expected[(state[observed] == s).sum()] += prob * cluster[s]
    found = np.zeros_like(expected)
    for state, proto, sub in zip(z, p, omega, strict=True):
        s = state[0, 0]
        w = int(np.flatnonzero((exact.subspaces == sub[s]).all(axis=1))[0])
        found[(state[observed] == s).sum(), proto[s], w] += 1
    possible = expected.ravel() > 0
    assert found.ravel()[~possible].sum() == 0
    result["p, omega, size"] = pearson(found.ravel()[possible], n * expected.ravel()[possible])
    return result


def test_enumeration_agrees_with_log_joint(exact):
    """The exact answer is made without the package's evidence code; here it is tied to `log_joint`."""
    data, hyper, answer = exact
    rng = np.random.default_rng(0)
    S = len(hyper.beta)
    ours, theirs = [], []
    for _ in range(40):
        k, p, w = (
            rng.integers(len(answer.z)),
            rng.integers(len(data.candidates), size=S),
            rng.integers(len(answer.subspaces), size=S),
        )
        ours.append(model.log_joint(data, hyper, answer.z[k], p, answer.subspaces[w]))
        theirs.append(np.log(answer.prob[k]) + np.log(answer.cluster[k, np.arange(S), p, w]).sum())
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=1e-9)


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_long_run(exact, sampler):
    data, hyper, answer = exact
    result = p_values(data, hyper, answer, run(kernels(), data, hyper, sampler, 30_000))
    assert smallest(result)[0] > REJECT_BELOW, result


@pytest.mark.parametrize(
    ("sampler", "mutant"), [(s, m) for m in MUTANTS for s in ("rows", "collapsed") if s == "rows" or m not in ROWS_ONLY]
)
def test_mutant_is_rejected(exact, sampler, mutant):
    data, hyper, answer = exact
    result = p_values(data, hyper, answer, run(kernels(mutant), data, hyper, sampler, MUTANT_DRAWS))
    assert smallest(result)[0] < REJECT_BELOW / 100, result
