"""Level 3 for cases drawn anew between sweeps: states drawn from the enumerated posterior still are after it.

And level 1 for a learned α with two labels of each case summed out, against a sum over all of their cells.
"""

import itertools

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels import driver
from bayescase.kernels.cpu.engine import make_block
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, pearson
from .mutants import ANEW, LIKELY, REDRAW, break_function, broken_through
from .problems import enumerate_posterior, random_problem
from .test_conditionals import state_of
from .test_moves import PROBLEMS as SMALL

DRAWS = 4_000


def wide():
    """Two cases of four features, one with a gap: three cells and four that may have two labels."""
    x = np.array([[0, 2, 4, 6], [1, 2, -1, 7]])
    data = make_data(x, [0, 2, 4, 6, 8], np.array([[0, 2, 4, 6], [1, 3, 5, 7]]), [1.0, 2.0])
    return data, make_hyper(3, 4, 0.6, 0.5, 6.0, [0.6, 0.3, 0.5, 0.7])._replace(beta=np.array([0.5, 0.2, 0.3]))


def unequal_bags():
    """One label per case, and clusters that are not equally likely."""
    data, hyper = SMALL["bags, one label"]()
    return data, hyper._replace(beta=np.arange(1.0, 1.0 + len(hyper.beta)) / np.arange(1.0, 1.0 + len(hyper.beta)).sum())


PROBLEMS = {name: make for name, make in SMALL.items() if "number" not in name} | {"wide": wide, "unequal bags": unequal_bags}


def redrawn(name, n=DRAWS, pairs=False):
    """(p-value that z has the distribution that it had before, share of the cells that have another label).

    pairs: given φ, too, which tables without bags are only if α is learned; here α stays what it is.
    """
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
        key, same_alpha = np.uint64(rng.integers(1 << 63)), (lambda log_z: hyper.alpha) if pairs else None
        chain.driver.redraw(hyper, chain.state, data.cells, z, data.z_held, key, same_alpha)
        seen[places[int(z[observed].astype(int) @ power)]] += 1
        moved += (z[observed] != exact.z[k][observed]).sum()
    return pearson(seen, n * exact.prob), moved / (n * observed.sum())


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_posterior_stays(name):
    p, share = redrawn(name)
    assert share > 0.1
    assert p > REJECT_BELOW


def test_the_posterior_stays_if_alpha_is_drawn():
    p, share = redrawn("wide", pairs=True)
    assert share > 0.1
    assert p > REJECT_BELOW


@pytest.mark.parametrize("file", [REDRAW, ANEW])
def test_long_rows_in_parts(monkeypatch, file):
    """Of more cells than are drawn jointly, the others stay."""
    parts = broken_through("two cells at a time", REDRAW, "MOST = 256", "MOST = 2", *([] if file == REDRAW else [file]))
    function = "draw_pairs" if file == REDRAW else "draw_cases"
    monkeypatch.setattr(driver, function, getattr(parts, function))
    p, share = redrawn("wide", pairs=file == REDRAW)
    assert share > 0.05
    assert p > REJECT_BELOW


def test_products_that_are_too_small(monkeypatch):
    """Weights are made of logarithms then, and nothing but the label of a whole case, or of two, is drawn."""
    tiny = broken_through("logarithms", LIKELY, "TINY = 1e-200\n", "TINY = 1e200\n", ANEW)
    monkeypatch.setattr(driver, "draw_cases", tiny.draw_cases)
    p, share = redrawn("wide")
    assert share > 0.05
    assert p > REJECT_BELOW


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("pairs without their prior", "wide"),
        ("pairs chosen by their labels", "wide"),
        ("pairs: cells by the wrong number", "wide"),
        ("cases of bags: totals forgotten", "bags, one label"),
        ("cases of bags without their prior", "unequal bags"),
        pytest.param("cases: own cells counted", "one label", marks=pytest.mark.slow),
        ("cases: own cells counted", "wide"),
        ("cases without their prior", "one label"),
        ("cases: held ones move", "held, one label"),
        ("cases: mixtures without their prior", "wide"),
        ("cases: any state is in reach", "wide"),
        ("cases: no bound for mixtures", "wide"),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    assert redrawn(name, pairs=mutant.startswith("pairs"))[0] < REJECT_BELOW / 100


@pytest.mark.parametrize(
    ("mutant", "draws"),
    [
        ("two labels of what cannot mix otherwise", 16_000),
        ("prior of two labels the wrong way", 16_000),
        pytest.param("second label by the cells", 100_000, marks=pytest.mark.slow),
    ],
)
def test_mutant_of_what_few_cases_do_is_rejected(monkeypatch, mutant, draws):
    break_function(monkeypatch, f"cases: {mutant}")
    assert redrawn("wide", draws)[0] < REJECT_BELOW / 100


def summed_out(data, hyper, chain, label, alpha):
    """log Σ p(z | α) Π φ over the labels of the cells that have one of the two of their row, row by row."""
    phi = chain.driver.tables.phi.reshape(data.offset[-1] + 1, -1).astype(float)
    total, tried = 0.0, hyper._replace(alpha=alpha)
    for x, z, pair in zip(data.x, chain.z.astype(int), label, strict=True):
        cells = np.flatnonzero((x >= 0) & np.isin(z, pair)) if pair[0] != pair[1] else []
        chance = phi[x[cells] + 1][:, pair] if len(cells) else np.ones((0, 2))
        chance /= chance.sum(axis=1, keepdims=True)
        ways = []
        for second in itertools.product((0, 1), repeat=len(cells)):
            z[cells] = pair[list(second)]
            n_is = np.bincount(z[x >= 0], minlength=len(hyper.beta))[None]
            ways.append(model.log_prior_z(tried, n_is) + np.log(chance[range(len(cells)), second]).sum())
        total += np.logaddexp.reduce(ways)
    return total


def check_alpha():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        data, hyper = random_problem(rng, S=3 + seed % 2, N=12, P=5)
        z, p, omega = state_of(rng, data, hyper)
        chain = Bench(data, hyper, z.astype(np.uint8))
        chain.put(p, omega)
        chain.driver.update_phi(hyper, chain.state, np.uint64(seed))
        label = np.array([rng.choice(len(hyper.beta), 2, replace=i % 4 == 0) for i in range(len(z))])
        log_z = chain.driver.weigh(hyper, make_block(data.cells, data.x.shape[1], chain.rows.labels()), label, np.uint64(1))
        grid = (1e-3, 0.2, 1.0, 30.0)
        truth = [summed_out(data, hyper, chain, label, alpha) for alpha in grid]
        np.testing.assert_allclose(np.diff([log_z(alpha) for alpha in grid]), np.diff(truth), rtol=1e-9, atol=1e-9)


def test_alpha_is_weighed():
    check_alpha()


@pytest.mark.parametrize("mutant", ["alpha: other labels forgotten", "alpha: labels as they are", "alpha: chances forgotten"])
def test_mutant_of_alpha_is_rejected(monkeypatch, mutant):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError):
        check_alpha()
