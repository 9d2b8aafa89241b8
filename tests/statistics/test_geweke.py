"""Level 4: Geweke's joint-distribution test. Prior draws, and a chain that alternates sweep and new data, must agree.

The catalogue is fixed, so redrawing x leaves the prior of p alone; all quantities are free of labels.
"""

import itertools

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.state import Data, make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, assert_rejected, same_mean, smallest
from .mutants import MUTANTS, ROWS_ONLY

N_DRAWS = 12_000


def problem(kernel=False):
    rng = np.random.default_rng(3)
    offset = np.array([0, 2, 5, 8])
    candidates = offset[:-1] + (rng.random((4, 3)) * np.diff(offset)).astype(int)
    candidates[1, 1] = -1
    gaps = np.zeros((5, 3), dtype=bool)
    gaps[0, 2] = gaps[3, 0] = True
    similarity = None
    if kernel:  # neighbours are half as similar
        ptr, idx, val = [0], [], []
        for lo, hi in itertools.pairwise(offset):
            for u in range(lo, hi):
                near = [v for v in range(lo, hi) if abs(u - v) <= 1]
                idx += near
                val += [1.0 if u == v else 0.5 for v in near]
                ptr.append(len(idx))
        similarity = np.array(ptr), np.array(idx), np.array(val)
    x = np.zeros((5, 3), dtype=int)
    data = make_data(x, offset, candidates, [1.0, 3.0, 1.0, 2.0], similarity)
    return data, make_hyper(2, 3, alpha=0.8, lam=0.6, c=6.0, q=[0.5, 0.2, 0.7]), gaps


def quantities(data: Data, hyper, z, p, omega):
    """Label-free functions of the joint state: sorted or symmetric over clusters."""
    S = len(p)
    n_sv, n_is = model.count(data, z, S)
    n_i = np.maximum(n_is.sum(axis=1), 1)
    proto = data.candidates[p]
    matches = sum(n_sv[u, s] for s in range(S) for j, u in enumerate(proto[s]) if u >= 0)
    matches_on = sum(n_sv[u, s] for s in range(S) for j, u in enumerate(proto[s]) if u >= 0 and omega[s, j])
    size = n_is.sum(axis=0)
    return (
        (n_is.max(axis=1) / n_i).mean(),
        float(size.max()),
        float(omega.sum()),
        float(matches),
        float(matches_on),
        float((n_sv**2).sum()),
        float((proto[0] == proto[1]).sum()),
        float(size @ omega.sum(axis=1)),
        float((data.x == 0).sum()),
        float((p == 1).sum()),
        float(size @ (p == 1)),
    )


NAMES = ("purity", "largest", "omega", "matches", "matches on", "n_sv squared", "same", "size omega", "x", "p", "size p")


def prior_draws(data, hyper, gaps, n):
    rng = np.random.default_rng(1)
    out = []
    for _ in range(n):
        drawn = model.simulate(data, hyper, rng, len(gaps))
        here = data._replace(x=np.where(gaps, -1, drawn.x))
        out.append(quantities(here, hyper, drawn.z, drawn.p, drawn.omega))
    return np.array(out)


def chain_draws(mutant, sampler, data, hyper, gaps, n, every=1):
    rng = np.random.default_rng(2)
    drawn = model.simulate(data, hyper, rng, len(gaps))
    here = data._replace(x=np.where(gaps, -1, drawn.x))
    chain = Bench(here, hyper, drawn.z.astype(np.uint8), mutant)
    chain.put(drawn.p, drawn.omega)
    state = chain.state
    out = []
    for t in range(n):
        chain.sweep(sampler, stream(9, t), draw_p=t % every == 0)
        out.append(quantities(chain.data, hyper, chain.z, state.p, state.omega))
        again = model.simulate(data, hyper, rng, len(gaps), p=state.p, omega=state.omega, z=chain.z.astype(int))
        chain.put_cases(np.where(gaps, -1, again.x))
    return np.array(out)


@pytest.fixture(scope="module")
def prior():
    return {kernel: prior_draws(*problem(kernel), N_DRAWS) for kernel in (False, True)}


def verdict(prior, chain):
    p_values = {}
    for k, name in enumerate(NAMES):
        p_values[name] = same_mean(prior[:, k], chain[:, k])
        p_values[name + " squared"] = same_mean(prior[:, k] ** 2, chain[:, k] ** 2)
    return smallest(p_values), p_values


@pytest.mark.parametrize("kernel", [False, True], ids=["exact match", "kernel"])
@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_joint_distribution(prior, sampler, kernel):
    chain = chain_draws(None, sampler, *problem(kernel), N_DRAWS)
    (p, which), p_values = verdict(prior[kernel], chain)
    means = {name: (prior[kernel][:, k].mean(), chain[:, k].mean()) for k, name in enumerate(NAMES)}
    assert p > REJECT_BELOW, (which, p_values, means)


def test_prototypes_in_every_other_sweep(prior):
    (p, which), p_values = verdict(prior[True], chain_draws(None, "rows", *problem(True), N_DRAWS, every=2))
    assert p > REJECT_BELOW, (which, p_values)


DAILY = {"alpha/S twice", "cell in its own counts", "phi before p and omega"}  # the enumeration rejects all of them every day


@pytest.mark.parametrize(
    ("sampler", "mutant"),
    [
        pytest.param(s, m, marks=() if s == "rows" and m in DAILY else pytest.mark.slow)
        for m in MUTANTS
        for s in ("rows", "collapsed")
        if s == "rows" or m not in ROWS_ONLY
    ],
)
def test_mutant_is_rejected(prior, sampler, mutant):
    assert_rejected(lambda n: verdict(prior[False], chain_draws(mutant, sampler, *problem(), n))[1], 2 * N_DRAWS)
