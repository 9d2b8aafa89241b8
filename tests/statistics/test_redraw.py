"""Level 3 for cases drawn anew between sweeps: states drawn from the enumerated posterior still are after it."""

import numpy as np
import pytest

from bayescase.kernels import driver
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, pearson
from .mutants import REDRAW, break_function, broken_module
from .problems import enumerate_posterior
from .test_moves import PROBLEMS as SMALL

DRAWS = 4_000


def wide():
    """Two cases of four features, one with a gap: three cells and four that may have two labels."""
    x = np.array([[0, 2, 4, 6], [1, 2, -1, 7]])
    data = make_data(x, [0, 2, 4, 6, 8], np.array([[0, 2, 4, 6], [1, 3, 5, 7]]), [1.0, 2.0])
    return data, make_hyper(3, 4, 0.6, 0.5, 6.0, [0.6, 0.3, 0.5, 0.7])._replace(beta=np.array([0.5, 0.2, 0.3]))


PROBLEMS = {name: make for name, make in SMALL.items() if "number" not in name} | {"wide": wide}


def redrawn(name, n=DRAWS):
    """(p-value that z has the distribution that it had before, share of the cells that have another label)."""
    data, hyper = PROBLEMS[name]()
    exact = enumerate_posterior(data, hyper)
    rng = np.random.default_rng(3)
    S, M, W = exact.cluster.shape[1:]
    chain = Bench(data, hyper, exact.z[0].astype(np.uint8).reshape(data.x.shape if data.bags is None else -1))
    observed = data.cells.codes >= 0
    power = S ** np.arange(observed.sum())
    places = {int(state[observed] @ power): k for k, state in enumerate(exact.z)}
    seen, moved = np.zeros(len(exact.z)), 0
    for k in rng.choice(len(exact.z), n, p=exact.prob):
        chain.put_labels(exact.z[k].astype(np.uint8))
        p, w = np.divmod([rng.choice(M * W, p=of.ravel() / of.sum()) for of in exact.cluster[k]], W)
        chain.put(p, exact.subspaces[w])
        z = chain.rows.labels()
        chain.driver.redraw(hyper, chain.state, data.cells, z, data.z_held, np.uint64(rng.integers(1 << 63)))
        seen[places[int(z[observed].astype(int) @ power)]] += 1
        moved += (z[observed] != exact.z[k][observed]).sum()
    return pearson(seen, n * exact.prob), moved / (n * observed.sum())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_posterior_stays(name):
    p, share = redrawn(name)
    assert share > 0.1
    assert p > REJECT_BELOW


def test_long_rows_in_parts(monkeypatch):
    """Of more cells than are drawn jointly, the others stay."""
    parts = broken_module("two cells at a time", REDRAW, "MOST = 256", "MOST = 2")
    monkeypatch.setattr(driver, "draw_pairs", parts.draw_pairs)
    p, share = redrawn("wide")
    assert share > 0.05
    assert p > REJECT_BELOW


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("pairs without their prior", "wide"),
        ("pairs chosen by their labels", "wide"),
        ("pairs: cells by the wrong number", "wide"),
        ("cases: totals forgotten", "one label"),
        ("cases without their prior", "one label"),
        ("cases: held ones move", "held, one label"),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    assert redrawn(name)[0] < REJECT_BELOW / 100
