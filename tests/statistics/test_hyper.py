"""Levels 1 and 2 for what is learned: likelihoods from histograms against the log joint, and the draws made from them."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from bayescase import model
from bayescase.sampling import hyper as hyper_
from bayescase.state import count_observed

from .chains import Bench
from .judge import REJECT_BELOW, pearson, same_mean, smallest
from .mutants import break_function
from .problems import random_problem, seatings
from .test_conditionals import normalised, state_of

CLOSE = {"rtol": 1e-9, "atol": 1e-9}
GRID = [1e-5, 0.01, 0.3, 1.0, 7.0, 300.0, 1e5]


def problems(**given):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        kernel = (None, "within", "table")[seed % 3]
        data, hyper = random_problem(rng, S=2 + seed % 3, N=12, kernel=kernel, held=seed >= 3, **given)
        z, p, omega = state_of(rng, data, hyper)
        chain = Bench(data, hyper, z.astype(np.uint8))
        chain.put(p, omega)
        yield rng, data, hyper, chain


def log_joint(data, hyper, chain):
    return model.log_joint(data, hyper, chain.z, chain.state.p, chain.state.omega)


# --- level 1 -------------------------------------------------------------------------------------------------------------


def check_alpha():
    for _, data, hyper, chain in problems():
        n_i = count_observed(data.x)
        truth = [log_joint(data, hyper._replace(alpha=a), chain) for a in GRID]
        ours = [hyper_.log_z(a, hyper.beta, chain.state.n_rows, n_i) for a in GRID]
        np.testing.assert_allclose(np.diff(ours), np.diff(truth), **CLOSE)


def check_lam_and_c():
    """At α > 0 and at α = 0: the prior of z does not matter."""
    for alpha in (None, 0.0):
        for _, data, hyper, chain in problems(alpha=alpha):
            counts = hyper_.Counts(data.book, chain.state)
            pairs = [(lam, c) for lam in GRID[:-1] for c in (0.0, *GRID[:-1])]
            truth = [log_joint(data, hyper._replace(lam=lam, c=c), chain) for lam, c in pairs]
            np.testing.assert_allclose(np.diff([counts.log_x(*pair) for pair in pairs]), np.diff(truth), **CLOSE)


def check_q(n=4000):
    """q | ω is Beta: mean and spread of what `update` draws, against exp(log joint) over a fine grid of q.

    Label 0 is taken off the cells of every other problem: the bits of a cluster without cells are drawn with q.
    """
    grid = (np.arange(400) + 0.5) / 400
    for k, (rng, data, hyper, chain) in enumerate(problems()):
        if k % 2 and not len(data.z_held):
            chain.put_labels(np.maximum(chain.z, 1))
        free = rng.random(hyper.q.shape) < 0.7
        learn = hyper_.Learn(("q",), free)
        n_i = np.zeros(data.x.shape[1] + 1, dtype=int)
        idle = free & ~chain.state.n_sv.any(axis=0)[:, None]
        if len(data.omega_held):
            idle &= data.omega_held < 0
        bits = chain.state.omega[idle]
        there = [log_joint(data, hyper._replace(q=np.where(free, q, hyper.q)), chain) for q in grid]
        weight = normalised(
            np.array([v - np.where(bits, np.log(q), np.log1p(-q)).sum() for v, q in zip(there, grid, strict=True)])
        )
        drawn, on = [], 0
        for _ in range(n):
            drawn.append(hyper_.update(chain.driver, chain.rows, hyper, learn, chain.state, n_i, rng))
            on += chain.state.omega[idle].sum()
        assert all(np.array_equal(h.q[~free], hyper.q[~free]) for h in drawn[:5])
        values = np.array([h.q[free][0] for h in drawn])
        if idle.any():
            expected = idle.sum() * values.sum()
            assert abs(on - expected) < 4.5 * np.sqrt(idle.sum() * (values * (1 - values)).sum()), "bits of empty clusters"
        mean, square = weight @ grid, weight @ grid**2
        assert abs(values.mean() - mean) < 4.5 * np.sqrt((square - mean**2) / n), "mean of q"
        assert stats.kstest(values, lambda v: np.interp(v, grid + 0.5 / 400, weight.cumsum())).pvalue > REJECT_BELOW / 6, "q"


def check_reseat(steps=2000):
    """The label of one case with φ and β integrated out, by feeding evenly spaced numbers for the uniform ones."""
    for alpha in (None, 0.0):
        for rng, data, hyper, chain in problems(alpha=alpha):
            i = int(np.flatnonzero((data.x >= 0).any(axis=1))[rng.integers(5)])
            labels = chain.z.copy()
            labels[i] = labels[i, 0]
            chain.put_labels(labels)
            S, state = len(hyper.beta), chain.state
            n_is = model.count(data, chain.z, S)[1]
            m = np.minimum((n_is > 0).sum(axis=0) + rng.integers(3, size=S), n_is.sum(axis=0))
            own = chain.z[i, 0]
            truth = np.empty(S)
            for s in range(S):
                z = chain.z.copy()
                z[i] = s
                tables = m - (np.arange(S) == own) + (np.arange(S) == s)
                prior = model.log_prior_z(hyper, model.count(data, z, S)[1])
                truth[s] = model.log_joint(data, hyper, z, state.p, state.omega) - prior
                truth[s] += gammaln(hyper.gamma / S + tables).sum()
            seen = np.zeros(S)
            for u in (np.arange(steps) + 0.5) / steps:
                other, after = state._replace(n_sv=state.n_sv.copy(), n_rows=state.n_rows.copy()), m.copy()
                chain.driver.reseat(hyper, other, chain.rows, np.array([i]), np.array([u]), after)
                b = int(chain.z[i, 0])
                chain.rows.put_labels(labels)
                seen[b] += 1 / steps
                assert np.array_equal(after, m - (np.arange(S) == own) + (np.arange(S) == b))
            np.testing.assert_allclose(seen, normalised(truth), atol=1.01 / steps)


def check_log_tables():
    """log p(m | γ): the sum over all m of a row of labels, with their multinomial coefficients, is one."""
    for gamma in (1e-8, 0.4, 1.5, 30.0):
        n = 5
        every = [np.array([a, b, n - a - b]) for a in range(n + 1) for b in range(n + 1 - a)]
        coefficient = [gammaln(n + 1) - gammaln(m + 1).sum() for m in every]
        total = logsumexp([hyper_.log_tables(m, gamma) + k for m, k in zip(every, coefficient, strict=True)])
        assert total == pytest.approx(0.0, abs=1e-8)


LEVEL_1 = {
    "alpha": check_alpha,
    "lam and c": check_lam_and_c,
    "q": check_q,
    "reseat": check_reseat,
    "log tables": check_log_tables,
}


@pytest.mark.parametrize("name", LEVEL_1)
def test_conditional(name):
    LEVEL_1[name]()


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("alpha without n_i", "alpha"),
        ("alpha without beta", "alpha"),
        ("lam and c without totals", "lam and c"),
        ("c without K", "lam and c"),
        ("Beta without its prior", "q"),
        ("bits of empty clusters stay", "q"),
        ("reseat: case in its own counts", "reseat"),
        ("reseat: case at its own table", "reseat"),
        ("reseat without gamma", "reseat"),
    ],
)
def test_mutant_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError):
        LEVEL_1[name]()


# --- level 2 -------------------------------------------------------------------------------------------------------------


def check_slice(n=3000, thin=5):
    """A normal likelihood of the logarithm: the posterior is normal, cut off at the limits. Narrow, wide, flat, at a limit.

    The spread is also judged on all draws, thinned or not: an interval that is laid out wrongly shows there first.
    """
    worst = 1.0
    far = np.log(hyper_.LARGEST)
    for k, (name, at, sd) in enumerate([("lam", 1.0, 0.02), ("c", -1.0, 1.5), ("alpha", 4.0, 1e9), ("lam", 30.0, 2.0)]):
        rng = np.random.default_rng(k)
        mean, prior_sd = hyper_.PRIORS[name]
        precision = 1 / prior_sd**2 + 1 / sd**2
        centre, spread = (mean / prior_sd**2 + at / sd**2) / precision, precision**-0.5
        truth = stats.truncnorm((-far - centre) / spread, (far - centre) / spread, centre, spread)
        value, drawn = float(np.exp(mean)), np.empty(n * thin)
        for t in range(-20, n * thin):
            value = hyper_.slice_log(name, value, lambda v: -0.5 * ((np.log(v) - at) / sd) ** 2, rng)
            if t >= 0:
                drawn[t] = np.log(value)
        assert (np.abs(drawn) <= far).all()
        direct = truth.rvs(size=n * thin, random_state=rng)
        p_values = {"all": stats.kstest(drawn[::thin], truth.cdf).pvalue, "mean": same_mean(drawn, direct)}
        p_values["spread"] = same_mean((drawn - centre) ** 2, (direct - centre) ** 2)
        worst = min(worst, 4 * smallest(p_values)[0])
    return worst


def check_tables(n=20_000):
    """Tables of a few rows against brute force over all seatings of their customers."""
    rng = np.random.default_rng(0)
    _, hyper = random_problem(rng, S=3, alpha=1.7)
    n_is = np.array([[4, 0, 2], [1, 5, 0], [3, 2, 1]])  # rows × labels
    n_rows = np.zeros((3, 7), dtype=int)
    for counts in n_is:
        for s, count in enumerate(counts):
            n_rows[s, count] += count > 0
    drawn = np.array([hyper_.count_tables(hyper, n_rows, rng) for _ in range(n)])
    worst = 1.0
    for s in range(3):
        ways = np.ones(1)
        for count in n_is[:, s]:
            ways = np.convolve(ways, seatings(hyper.alpha * hyper.beta[s], count))
        seen = np.bincount(drawn[:, s], minlength=len(ways))
        possible = ways > 0
        if seen[len(ways) :].any() or seen[: len(ways)][~possible].any():
            return 0.0
        worst = min(worst, 3 * pearson(seen[possible], n * ways[possible] / ways.sum()))
    one = hyper_.count_tables(hyper._replace(alpha=0.0), n_rows, rng)
    assert np.array_equal(one, (n_is > 0).sum(axis=0))
    return worst


def test_slice_sampler():
    assert check_slice() > REJECT_BELOW


@pytest.mark.parametrize(
    "mutant",
    [
        "slice without the prior",
        "slice with another Jacobian",
        "slice at the old height",
        "slice that steps out one way",
    ],
)
def test_slice_mutant_is_rejected(monkeypatch, mutant):
    break_function(monkeypatch, mutant)
    assert check_slice() < REJECT_BELOW


def test_count_tables():
    assert check_tables() > REJECT_BELOW


def test_count_tables_mutant_is_rejected(monkeypatch):
    break_function(monkeypatch, "tables from l = 1")
    assert check_tables() < REJECT_BELOW


def test_dirichlet():
    """Marginals are Beta; at shapes so small that all mass sits on one entry, entry s has it with its share of the shapes."""
    rng = np.random.default_rng(0)
    shape = np.array([0.3, 1.0, 4.5])
    drawn = np.array([hyper_.dirichlet(shape, rng) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.sum(axis=1), 1.0)
    for s in range(3):
        p = stats.kstest(drawn[:, s], stats.beta(shape[s], shape.sum() - shape[s]).cdf).pvalue
        assert p > REJECT_BELOW / 3
    tiny = np.array([1e-6, 2e-6, 5e-6])
    largest = np.bincount([hyper_.dirichlet(tiny, rng).argmax() for _ in range(8000)], minlength=3)
    assert pearson(largest, 8000 * tiny / tiny.sum()) > REJECT_BELOW
    beta = hyper_.dirichlet(np.array([1e-250, 3.0]), rng)
    assert beta.min() > 0
    assert np.isfinite(np.log(beta)).all()


def test_prior_draws():
    """`draw_prior` draws what `slice_log` and `log_prior` take for the prior."""
    rng = np.random.default_rng(1)
    _, hyper = random_problem(rng, S=3, P=4)
    learn = hyper_.Learn(hyper_.LEARNED, np.ones((3, 4), dtype=bool), beta=True)
    drawn = [hyper_.draw_prior(hyper, learn, rng) for _ in range(6000)]
    for name in ("alpha", "lam", "c"):
        values = np.log([getattr(h, name) for h in drawn])
        assert stats.kstest(values, stats.norm(*hyper_.PRIORS[name]).cdf).pvalue > REJECT_BELOW / 5
    assert stats.kstest([h.q[0, 0] for h in drawn], "uniform").pvalue > REJECT_BELOW / 5
    share = stats.beta(hyper.gamma / 3, hyper.gamma * 2 / 3)
    assert stats.kstest([h.beta[1] for h in drawn], share.cdf).pvalue > REJECT_BELOW / 5
    a, b = drawn[:2]
    density = [sum(stats.norm(*hyper_.PRIORS[n]).logpdf(np.log(getattr(h, n))) for n in ("alpha", "lam", "c")) for h in (a, b)]
    assert hyper_.log_prior(a, learn) - hyper_.log_prior(b, learn) == pytest.approx(density[0] - density[1])
