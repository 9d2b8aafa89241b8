"""Level 3 for jumps between descriptions: labels drawn from the enumerated posterior still are after a few of them."""

import numpy as np
import pytest

from bayescase.sampling import jumps
from bayescase.sampling.jumps import Switches
from bayescase.sampling.trying import WholeCases

from .judge import REJECT_BELOW
from .mutants import break_function
from .test_moves import DRAWS, PROBLEMS, TRIES, drawn_again

# The sides of three switches, of as many cases as a problem has: two of two labels, one of three that leaves cases out
SIDES = np.array(
    [[0, 0, 1, 1, 1], [0, 1, 1, 0, 1], [1, 0, 0, 0, 1], [1, 1, 0, 1, 0], [0, 1, 2, -1, 2], [2, 2, 1, 0, -1]], dtype=np.int8
)


def jumped(name, n=DRAWS):
    data, _ = PROBLEMS[name]()
    whole, switches = WholeCases(data), Switches.between(SIDES[:, : len(data.x)])._replace(weight=np.array([0.3, 0.5, 0.2]))

    def jump(chain, hyper, rng):
        tries = jumps.Jumps(whole, switches, chain.driver, chain.rows, hyper, chain.state, rng)
        for _ in range(TRIES):
            tries.go()
        chain.put_labels(tries.z)
        return tries.made

    return drawn_again(name, n, jump)


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
        ("jumps: mixtures by their likelihood alone", "mixed"),
        pytest.param("jumps: no way back", "one label", marks=pytest.mark.slow),
        pytest.param("jumps: the side is forgotten", "one label", marks=pytest.mark.slow),
        ("jumps: prior forgotten", "one label"),
        pytest.param("jumps: no way back", "number of clusters", marks=pytest.mark.slow),
        pytest.param("jumps: the side is forgotten", "number of clusters", marks=pytest.mark.slow),
        ("jumps: tables forgotten", "number of clusters"),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    assert jumped(name, n=2 * DRAWS)[0] < REJECT_BELOW
