"""Level 5: simulation-based calibration. The rank of the true value among posterior draws must be uniform."""

import numpy as np
import pytest
from scipy.stats import norm

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.sampling.starts import init
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, pearson, smallest
from .mutants import MUTANTS, ROWS_ONLY

pytestmark = pytest.mark.slow

RANKS, THIN, BURN = 19, 6, 60
S, N, P, V = 3, 6, 4, 3
NAMES = ("purity", "omega", "matches on", "n_sv squared", "log joint")


def problem():
    rng = np.random.default_rng(4)
    offset = np.arange(P + 1) * V
    candidates = offset[:-1] + rng.integers(V, size=(6, P))
    return make_data(np.zeros((N, P), dtype=int), offset, candidates), make_hyper(S, P, alpha=1.5, lam=0.5, c=12.0, q=0.4)


def quantities(data, hyper, z, p, omega):
    """Free of labels. The log joint sees whether z, p and ω belong together, as the last two mutants' do not."""
    n_sv, n_is = model.count(data, z, S)
    matches = sum(n_sv[data.candidates[p[s], j], s] for s in range(S) for j in range(P) if omega[s, j])
    return (n_is.max(axis=1) / P).mean(), omega.sum(), matches, (n_sv**2).sum(), model.log_joint(data, hyper, z, p, omega)


def ranks(mutant, sampler, n_data):
    """(n_data, quantities) ranks 0 … RANKS; ties are broken at random."""
    base, hyper = problem()
    rng = np.random.default_rng(8)
    out = np.empty((n_data, len(NAMES)), dtype=int)
    for d in range(n_data):
        drawn = model.simulate(base, hyper, rng, N)
        data = base._replace(x=drawn.x)
        truth = np.array(quantities(data, hyper, drawn.z, drawn.p, drawn.omega), dtype=float)
        chain = Bench(data, hyper, init(data, hyper, ("seeded", "cells")[d % 2], rng), mutant)
        chain.update_p_omega(stream(d))
        draws = np.empty((RANKS, len(NAMES)))
        for t in range(BURN + RANKS * THIN):
            chain.sweep(sampler, stream(d, t))
            if t >= BURN and (t - BURN) % THIN == THIN - 1:
                draws[(t - BURN) // THIN] = quantities(data, hyper, chain.z, chain.state.p, chain.state.omega)
        below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
        out[d] = below + rng.integers(0, equal + 1)
    return out


def verdict(mutant, sampler, n_data):
    found = ranks(mutant, sampler, n_data)
    expected = np.full(RANKS + 1, n_data / (RANKS + 1))
    p_values = {name: pearson(np.bincount(found[:, k], minlength=RANKS + 1), expected) for k, name in enumerate(NAMES)}
    # a small shift shows in the mean of the ranks before it shows in their histogram
    error = np.sqrt(((RANKS + 1) ** 2 - 1) / 12 / n_data)
    p_values |= {f"mean {name}": 2 * norm.sf(abs(found[:, k].mean() - RANKS / 2) / error) for k, name in enumerate(NAMES)}
    return smallest(p_values), p_values


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_ranks_are_uniform(sampler):
    (p, which), p_values = verdict(None, sampler, 1500)
    assert p > REJECT_BELOW, (which, p_values)


@pytest.mark.parametrize(
    ("sampler", "mutant"), [(s, m) for m in MUTANTS for s in ("rows", "collapsed") if s == "rows" or m not in ROWS_ONLY]
)
def test_mutant_is_rejected(sampler, mutant):
    (p, which), p_values = verdict(mutant, sampler, 5000)
    assert p < REJECT_BELOW, (which, p_values)
