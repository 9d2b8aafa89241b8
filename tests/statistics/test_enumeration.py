"""Level 3: a long run against the enumerated posterior of a tiny problem, both samplers.

The plain problem judges the mutants of the samplers; the variants are all that has been added to the model since.
"""

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.sampling import hyper as hyper_
from bayescase.sampling.starts import init

from .chains import Bench
from .judge import REJECT_BELOW, assert_rejected, pearson, smallest
from .mutants import MUTANTS, ROWS_ONLY, break_function
from .problems import enumerate_posterior, log_prior_of_rows, tiny, tiny_bags, tiny_pinned

THIN = 8
MUTANT_DRAWS = 18_000
VARIANT_DRAWS = 2_500


def uneven(problem):
    data, hyper = problem
    return data, hyper._replace(beta=np.array([0.6, 0.1, 0.3]))


def tiny_base():
    """The plain problem with a base measure that is not flat."""
    data, hyper = tiny("table")
    return data._replace(book=data.book._replace(base=np.array([0.2, 1.8, 0.1, 2.5, 0.4]))), hyper


VARIANTS = {  # the pinned ones also have a K that is not symmetric
    "pinned": lambda: uneven(tiny_pinned()),
    "pinned, one label": lambda: uneven(tiny_pinned(alpha=0.0)),
    "number of clusters": lambda: tiny(gamma=1.5),
    "number of clusters, one label": lambda: tiny_pinned(alpha=0.0, gamma=1.5),
    "base": lambda: tiny_base(),
    "bags": lambda: tiny_bags("frequency"),
    "mixed": lambda: tiny_bags("frequency", single=True, alpha=0.8),
    "bags, held": lambda: uneven(tiny_bags("frequency", held=True)),
    "bags, one label": lambda: tiny_bags("frequency", single=True, alpha=0.0),
    "bags, number of clusters": lambda: tiny_bags(gamma=1.5),
}


@pytest.fixture(scope="module")
def exact():
    data, hyper = tiny()
    return data, hyper, enumerate_posterior(data, hyper)


@pytest.fixture(scope="module")
def variants():
    return {name: (*make(), enumerate_posterior(*make())) for name, make in VARIANTS.items()}


def run(mutant, data, hyper, sampler, n_draws, seed=5, every=1):
    """every: sweeps from one in which prototypes are drawn to the next."""
    S = len(hyper.beta)
    rng = np.random.default_rng(seed)
    chain = Bench(data, hyper, init(data, hyper, "cells" if hyper.alpha > 0 else "cases", rng), mutant)
    state = chain.state
    learn = hyper_.Learn(beta=hyper.gamma > 0)
    codes = data.cells.codes
    z, p = np.empty((n_draws, len(codes)), dtype=int), np.empty((n_draws, S), dtype=int)
    omega = np.empty((n_draws, S, data.book.n_columns), dtype=int)
    for t in range(-50, n_draws * THIN):
        if learn:
            chain.hyper = hyper_.update(chain.driver, chain.rows, chain.hyper, learn, state, chain.n_i, rng)
        chain.sweep(sampler, stream(seed, t + 50), draw_p=t % every == 0)
        if t >= 0 and t % THIN == THIN - 1:
            k = t // THIN
            z[k], p[k], omega[k] = np.where(codes < 0, 0, chain.z.reshape(-1)), state.p, state.omega
    return z, p, omega


def p_values(data, hyper, exact, draws):
    """All states of z; prototype, subspace and size of the cluster that owns the first cell; p and ω label by label."""
    z, p, omega = draws
    n, S, M, W = len(z), len(hyper.beta), len(data.candidates), len(exact.subspaces)
    observed = data.cells.codes >= 0
    power = S ** np.arange(observed.sum())
    code = {int(state[observed] @ power): k for k, state in enumerate(exact.z)}
    seen = np.bincount([code[int(state[observed] @ power)] for state in z], minlength=len(exact.z))
    result = {"z": frequencies(seen, n * exact.prob)}

    sizes = observed.sum() + 1
    expected = np.zeros((sizes, M, W))
    for state, prob, cluster in zip(exact.z, exact.prob, exact.cluster, strict=True):
        s = state[0]
        expected[(state[observed] == s).sum()] += prob * cluster[s]
    found, of_label = np.zeros_like(expected), np.zeros((S, M, W))
    for state, proto, sub in zip(z, p, omega, strict=True):
        w = [int(np.flatnonzero((exact.subspaces == on).all(axis=1))[0]) for on in sub]
        s = state[0]
        found[(state[observed] == s).sum(), proto[s], w[s]] += 1
        of_label[np.arange(S), proto, w] += 1
    result["p, omega, size"] = frequencies(found, n * expected)
    marginal = np.einsum("k,ksmw->smw", exact.prob, exact.cluster)
    return result | {f"p, omega of {s}": frequencies(of_label[s], n * marginal[s]) for s in range(S)}


def frequencies(seen, expected):
    seen, expected = seen.ravel(), expected.ravel()
    possible = expected > 0
    return 0.0 if seen[~possible].any() else pearson(seen[possible], expected[possible])


@pytest.mark.parametrize("name", ["plain", *(name for name in VARIANTS if "number" not in name)])
def test_enumeration_agrees_with_log_joint(exact, variants, name):
    """The exact answer is made without the package's evidence code; here it is tied to `log_joint`."""
    data, hyper, answer = exact if name == "plain" else variants[name]
    rng = np.random.default_rng(0)
    S = len(hyper.beta)
    ours, theirs = [], []
    possible = np.flatnonzero(answer.prob)
    while len(ours) < 40:
        k, p, w = (
            rng.choice(possible),
            rng.integers(len(data.candidates), size=S),
            rng.integers(len(answer.subspaces), size=S),
        )
        each = answer.cluster[k, np.arange(S), p, w]
        if each.all():
            ours.append(model.log_joint(data, hyper, answer.z[k], p, answer.subspaces[w]))
            theirs.append(np.log(answer.prob[k]) + np.log(each).sum())
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), atol=1e-9)


def test_enumeration_without_beta(variants):
    """β integrated out by sums over tables agrees with an average over β."""
    data, hyper, answer = variants["number of clusters"]
    rng = np.random.default_rng(0)
    total, n = np.zeros(len(answer.z)), 400
    flat = hyper._replace(gamma=0.0)
    n_is = np.array([model.count(data, z, 3)[1] for z in answer.z])
    evidence = np.exp(np.array([np.log(answer.prob[k]) - log_prior_of_rows(hyper, n_is[k]) for k in range(len(n_is))]))
    for _ in range(n):
        beta = rng.dirichlet(np.full(3, hyper.gamma / 3))
        total += [np.exp(log_prior_of_rows(flat._replace(beta=beta), rows)) for rows in n_is]
    estimate = total * evidence / (total * evidence).sum()
    assert np.abs(estimate - answer.prob).max() < 0.1 * answer.prob.max()
    assert np.corrcoef(estimate, answer.prob)[0, 1] > 0.99


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_long_run(exact, sampler):
    data, hyper, answer = exact
    result = p_values(data, hyper, answer, run(None, data, hyper, sampler, 30_000))
    assert smallest(result)[0] > REJECT_BELOW, result


@pytest.mark.parametrize(
    ("sampler", "mutant"), [(s, m) for m in MUTANTS for s in ("rows", "collapsed") if s == "rows" or m not in ROWS_ONLY]
)
def test_mutant_is_rejected(exact, sampler, mutant):
    data, hyper, answer = exact
    assert_rejected(lambda n: p_values(data, hyper, answer, run(mutant, data, hyper, sampler, n)), MUTANT_DRAWS)


LONG = {("collapsed", "number of clusters"), ("rows", "number of clusters, one label")}  # each number once a day


@pytest.mark.parametrize(
    ("sampler", "name"),
    [
        pytest.param(sampler, name, marks=pytest.mark.slow if (sampler, name) in LONG else ())
        for sampler in ("rows", "collapsed")
        for name in VARIANTS
    ],
)
def test_variant(variants, sampler, name):
    data, hyper, answer = variants[name]
    result = p_values(data, hyper, answer, run(None, data, hyper, sampler, VARIANT_DRAWS))
    assert smallest(result)[0] > REJECT_BELOW, result


@pytest.mark.parametrize(
    ("name", "sampler", "mutant"),
    [
        ("pinned", "rows", "K transposed"),
        ("pinned", "collapsed", "K without fractions"),
        ("pinned", "rows", "held omega summed out"),
        ("pinned, one label", "rows", "beta forgotten, rows"),
        ("pinned, one label", "collapsed", "beta forgotten, collapsed"),
        pytest.param("number of clusters", "rows", "beta without gamma", marks=pytest.mark.slow),
        ("number of clusters, one label", "collapsed", "gamma not divided"),
        ("bags", "rows", "t without its cells"),
        ("bags", "collapsed", "t forgotten"),
        ("bags", "rows", "items not copied"),
        ("bags, held", "rows", "held items summed out"),
        ("base", "rows", "base forgotten"),
        ("bags, one label", "collapsed", "items of a bag not counted"),
    ],
)
def test_variant_mutant_is_rejected(variants, monkeypatch, name, sampler, mutant):
    data, hyper, answer = variants[name]
    break_function(monkeypatch, mutant)
    assert_rejected(lambda n: p_values(data, hyper, answer, run(None, data, hyper, sampler, n)), 2 * VARIANT_DRAWS)


# --- prototypes that are not drawn in every sweep ------------------------------------------------------------------------

EVERY = 3  # sweeps; draws that are kept are THIN apart, so that they come from all three


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("name", ["plain", "pinned", "bags", "mixed", "bags, held", "bags, one label"])
def test_prototypes_in_every_third_sweep(exact, variants, sampler, name):
    data, hyper, answer = exact if name == "plain" else variants[name]
    result = p_values(data, hyper, answer, run(None, data, hyper, sampler, VARIANT_DRAWS, every=EVERY))
    assert smallest(result)[0] > REJECT_BELOW, result


@pytest.mark.parametrize(
    ("name", "sampler", "mutant"),
    [
        ("plain", "rows", "own evidence of an earlier sweep"),
        ("plain", "collapsed", "own evidence of an earlier sweep"),
        ("bags", "rows", "own items of an earlier sweep"),
        ("bags", "collapsed", "own items: t forgotten"),
    ],
)
def test_wrong_evidence_of_prototypes_that_stay_is_rejected(exact, variants, monkeypatch, name, sampler, mutant):
    data, hyper, answer = exact if name == "plain" else variants[name]
    break_function(monkeypatch, mutant)
    assert_rejected(lambda n: p_values(data, hyper, answer, run(None, data, hyper, sampler, n, every=EVERY)), 2 * VARIANT_DRAWS)


def test_a_scan_that_depends_on_the_state_is_rejected(exact, monkeypatch):
    """Prototypes drawn only when most cells have label 0."""
    data, hyper, answer = exact
    sweep = Bench.sweep

    def by_state(self, sampler, key, **_):
        return sweep(self, sampler, key, draw_p=(self.z == 0).mean() > 0.5)

    monkeypatch.setattr(Bench, "sweep", by_state)
    assert_rejected(lambda n: p_values(data, hyper, answer, run(None, data, hyper, "rows", n)), MUTANT_DRAWS)
