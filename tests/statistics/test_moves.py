"""Level 3 for moves of many cases: labels drawn from the enumerated posterior still are after a few tries."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from bayescase.kernels import ClusterEvidence
from bayescase.sampling import hyper as hyper_
from bayescase.sampling import moves
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, pearson
from .mutants import break_function
from .problems import BAG_OFFSET, cells_of, enumerate_posterior, log_evidence, similarity_of, tables_of

DRAWS, TRIES = 1_500, 4
OFFSET = [0, 2, 5]


def table(alpha, held=False, gamma=0.0, S=3):
    """Cases in two kinds and one between, a gap, a K that is not symmetric, weights, q and β that differ by cluster."""
    x = np.array([[0, 2], [0, 2], [1, 4], [1, -1], [0, 4]] if alpha == 0 else [[0, 2], [0, -1], [1, 4], [-1, 4]])
    candidates = np.array([[0, 2], [1, -1], [0, 4], [1, 4]])
    more, weight, q = {}, np.array([1.0, 2.0, 1.0, 1.5]), np.array([0.6, 0.3])
    if held:
        q = np.array([[0.6, 0.3], [0.2, 0.8], [0.5, 0.4]])
        weight = np.array([[1.0, 0.5, 1.0], [2.0, 0.1, 0.0], [1.0, 0.3, 3.0], [1.5, 1.0, 1.0]])
        more = {"z_held": np.array([-1, 2] + [-1] * (len(x) - 2)), "omega_held": np.array([[-1, 1], [-1, -1], [0, -1]])}
    data = make_data(x, OFFSET, candidates, weight, similarity_of(np.random.default_rng(0), OFFSET, "table"), **more)
    hyper = make_hyper(S, 2, alpha, 0.7, 4.0, q, gamma)
    return data, hyper if gamma else hyper._replace(beta=np.array([0.5, 0.2, 0.3]))


def bags(alpha):
    """Bags beside a feature of two values."""
    items = [[0, 0], [0], [1, 2], [2]] if alpha == 0 else [[0, 0], [1], [2]]
    x = np.array([[0], [0], [1], [-1]])[: len(items)]
    lists = cells_of([[0, 1], [2], [0, 1], [1, 2]], 2)
    base = np.array([0.6, 1.4, 0.3, 1.9, 0.8])
    data = make_data(
        x,
        BAG_OFFSET,
        np.array([[0], [1], [0], [-1]]),
        [1.0, 2.0, 1.0, 1.5],
        bags=cells_of(items, 2),
        candidate_bags=lists,
        base=base,
    )
    return data, make_hyper(3, 4, alpha, 0.5, 12.0, [0.6, 0.3, 0.45, 0.7])


PROBLEMS = {
    "one label": lambda: table(0.0),
    "mixed": lambda: table(0.9),
    "held, one label": lambda: table(0.0, held=True),
    "held": lambda: table(0.9, held=True),
    "number of clusters": lambda: table(0.0, gamma=1.5),
    "number of clusters, mixed": lambda: table(0.9, gamma=1.5),
    "bags, one label": lambda: bags(0.0),
    "bags": lambda: bags(0.8),
}


def drawn_again(name, n, tries):
    """(p-value that z has the distribution that it had before, share of the tries that were accepted).

    tries(chain, hyper, rng) tries so often, and puts what was accepted: how often that was.
    """
    data, hyper = PROBLEMS[name]()
    exact = enumerate_posterior(data, hyper)
    rng = np.random.default_rng(3)
    chain = Bench(data, hyper, exact.z[0].astype(np.uint8).reshape(data.x.shape if data.bags is None else -1))
    observed = data.cells.codes >= 0
    power = 3 ** np.arange(observed.sum())
    places = {int(state[observed] @ power): k for k, state in enumerate(exact.z)}
    start = rng.choice(len(exact.z), n, p=exact.prob)
    seen, made = np.zeros(len(exact.z)), 0
    for k in start:
        z = exact.z[k]
        chain.put_labels(z.astype(np.uint8))
        if data.bags is not None:  # t is drawn given these
            chain.update_p_omega(np.uint64(rng.integers(1 << 63)))
        beta = hyper.beta
        if hyper.gamma:
            beta = beta_given(hyper, chain, rng)
        made += tries(chain, hyper._replace(beta=beta), rng)
        seen[places[int(chain.z.reshape(-1)[observed].astype(int) @ power)]] += 1
    return pearson(seen, n * exact.prob), made / (n * TRIES)


def moved(name, n=DRAWS):
    data, hyper = PROBLEMS[name]()
    mover = moves.Mover(data, len(hyper.beta))
    return drawn_again(
        name, n, lambda chain, hyper, rng: mover.sweep(chain.driver, chain.rows, hyper, chain.state, rng, TRIES).made
    )


def beta_given(hyper, chain, rng):
    """β given z, by a few turns of tables and β."""
    hyper = hyper._replace(beta=rng.dirichlet(np.ones(len(hyper.beta))))
    for _ in range(1 if hyper.alpha == 0 else 30):
        m = hyper_.count_tables(hyper, chain.state.n_rows, rng)
        hyper = hyper._replace(beta=hyper_.dirichlet(hyper.gamma / len(m) + m, rng))
    return hyper.beta


def test_evidence_of_a_cluster():
    """Against all prototypes and subspaces enumerated; of bags t is integrated out, by a fine grid."""
    for name in ("held", "mixed", "bags"):
        data, hyper = PROBLEMS[name]()
        chain = Bench(data, hyper, np.zeros(data.x.shape if data.bags is None else len(data.cells.codes), dtype=np.uint8))
        exact = ClusterEvidence(data, data.candidate_cells, chain.driver, hyper)
        n_sv = chain.state.n_sv[:, 0]
        subspaces = np.array(list(product((0, 1), repeat=data.book.n_columns)))
        t, none = (np.arange(4000) + 0.5) / 4000, np.zeros(len(chain.state.n_sv), dtype=int)
        for s in range(3):
            truth = [logsumexp(log_evidence(data, *tables_of(data, hyper, s, subspaces), n)) for n in (none, n_sv)]
            if data.bags is None:
                found = exact.of(s, n_sv, np.zeros(0)) - exact.of(s, none, np.zeros(0))
            else:
                found = logsumexp([exact.of(s, n_sv, np.log([value])) for value in t]) - np.log(len(t))
            assert found == pytest.approx(truth[1] - truth[0], abs=1e-8 if data.bags is None else 1e-3)


SLOW = {"one label", "held", "number of clusters", "bags, one label"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PROBLEMS])
def test_moves_leave_the_posterior(name):
    p, share = moved(name)
    assert share > 0.05, share
    assert p > REJECT_BELOW


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        pytest.param("moves: centres the wrong way", "mixed", marks=pytest.mark.slow),
        ("moves: no way back", "mixed"),
        ("moves: prior forgotten", "mixed"),
        ("moves: rough evidence stays", "mixed"),
        ("moves: no way back", "one label"),
        ("moves: prior forgotten", "one label"),
        pytest.param("moves: no way back", "number of clusters", marks=pytest.mark.slow),
        ("moves: prior forgotten", "number of clusters"),
        pytest.param("moves: rough evidence stays", "number of clusters", marks=pytest.mark.slow),
        pytest.param("moves: no second step", "bags, one label", marks=pytest.mark.slow),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    assert moved(name, n=(4 if "centres" in mutant else 2) * DRAWS)[0] < REJECT_BELOW


def test_held_cases_stay(monkeypatch):
    """A mover that takes them along meets states that the posterior does not have."""
    break_function(monkeypatch, "moves: held cases move")
    assert moved("held, one label")[0] < REJECT_BELOW / 100
