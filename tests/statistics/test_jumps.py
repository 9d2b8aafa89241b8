"""Level 3 for jumps between descriptions: labels drawn from the enumerated posterior still are after a few of them."""

import numpy as np
import pytest

from bayescase.sampling import jumps
from bayescase.sampling.jumps import Switches
from bayescase.sampling.trying import WholeCases

from .chains import Bench
from .judge import REJECT_BELOW, pearson
from .mutants import break_function
from .problems import enumerate_posterior
from .test_moves import PROBLEMS, beta_given

DRAWS, TRIES = 1_500, 4
# The sides of three switches, of as many cases as a problem has: two of two labels, one of three that leaves cases out
SIDES = np.array(
    [[0, 0, 1, 1, 1], [0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [1, 1, 0, 1, 0], [0, 1, 2, -1, 2], [2, 2, 1, 0, -1]], dtype=np.int8
)


def jumped(name, n=DRAWS):
    """(p-value that z has the distribution that it had before, share of the tries that were accepted)."""
    data, hyper = PROBLEMS[name]()
    exact = enumerate_posterior(data, hyper)
    rng = np.random.default_rng(3)
    chain = Bench(data, hyper, exact.z[0].astype(np.uint8).reshape(data.x.shape if data.bags is None else -1))
    whole = WholeCases(data)
    switches = Switches(SIDES[:, : len(data.x)], np.array([0.3, 0.5, 0.2]))
    observed = data.cells.codes >= 0
    power = 3 ** np.arange(observed.sum())
    places = {int(state[observed] @ power): k for k, state in enumerate(exact.z)}
    seen, made = np.zeros(len(exact.z)), 0
    for k in rng.choice(len(exact.z), n, p=exact.prob):
        chain.put_labels(exact.z[k].astype(np.uint8))
        if data.bags is not None:  # t is drawn given these
            chain.update_p_omega(np.uint64(rng.integers(1 << 63)))
        beta = beta_given(hyper, chain, rng) if hyper.gamma else hyper.beta
        tries = jumps.Jumps(whole, switches, chain.driver, chain.rows, hyper._replace(beta=beta), chain.state, rng)
        for _ in range(TRIES):
            tries.go()
        chain.put_labels(tries.z)
        made += tries.made
        seen[places[int(chain.z.reshape(-1)[observed].astype(int) @ power)]] += 1
    return pearson(seen, n * exact.prob), made / (n * TRIES)


SLOW = {"held, one label", "number of clusters", "bags, one label", "held", "number of clusters, mixed"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROBLEMS])
def test_jumps_leave_the_posterior(name):
    p, share = jumped(name)
    assert share > 0.05, share
    assert p > REJECT_BELOW


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("jumps: no way back", "mixed"),
        ("jumps: the side is forgotten", "mixed"),
        ("jumps: prior forgotten", "mixed"),
        ("jumps: back to the same side", "one label"),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    assert jumped(name, n=2 * DRAWS)[0] < REJECT_BELOW
