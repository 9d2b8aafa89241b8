"""Level 1: every conditional equals the normalised exp(log joint) over its values. No randomness."""

import numpy as np
import pytest
from scipy.special import expit, gammaln, logsumexp

from bayescase import model
from bayescase.kernels import driver as driver_
from bayescase.kernels.cpu import collapsed
from bayescase.kernels.cpu.tables import lanes_for, make_scratch

from .chains import Bench
from .mutants import break_function, outside, package
from .problems import random_problem

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


def state_of(rng, data, hyper):
    """Any state that is possible: what is held is where it is held; at α = 0 a case has one label."""
    S, book, rows = len(hyper.beta), data.book, np.repeat(np.arange(len(data.x)), data.cells.sizes)
    z = rng.integers(S, size=len(rows))
    if hyper.alpha == 0.0:
        z = rng.integers(S, size=len(data.x))[rows]
    p = np.array([rng.choice(np.flatnonzero(np.isfinite(log_weight))) for log_weight in data.log_weight.T])
    omega = rng.random(hyper.q.shape) < 0.5
    if len(data.z_held):
        z = np.where(data.z_held[rows] >= 0, data.z_held[rows], z)
        omega = np.where(data.omega_held >= 0, data.omega_held > 0, omega)
    for s, m in enumerate(p):
        omega[s, np.setdiff1d(np.arange(book.n_single, book.n_columns), book.column[model.items_of(data, m)])] = False
    return z if data.bags is not None else z.reshape(data.x.shape), p, omega


def problems(alpha=None):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        kernel, held = (None, "within", "table")[seed % 3], seed >= 3
        data, hyper = random_problem(rng, S=2 + seed % 3, kernel=kernel, alpha=alpha, held=held)
        yield rng, data, hyper


def normalised(log_weights):
    return np.exp(log_weights - logsumexp(log_weights))


def check_z(mutant):
    """4.2: one cell, φ and π integrated out."""
    z_weight = outside(package(mutant, "kernels.equations").z_weight)
    for rng, data, hyper in problems():
        z, p, omega = state_of(rng, data, hyper)
        g_sv = model.g_table(data, hyper, p, omega)
        for i, j in np.argwhere(data.x >= 0)[:8]:
            truth = np.empty(len(p))
            for s in range(len(p)):
                z[i, j] = s
                truth[s] = model.log_joint(data, hyper, z, p, omega)
            n_sv, n_is = model.count(data, z, len(p))
            v, a = data.x[i, j], z[i, j]
            n_sv[v, a] -= 1
            n_is[i, a] -= 1
            span = slice(data.offset[j], data.offset[j + 1])
            w = [
                z_weight(
                    hyper.alpha * hyper.beta[s], n_is[i, s], g_sv[v, s], n_sv[v, s], g_sv[span, s].sum(), n_sv[span, s].sum()
                )
                for s in range(len(p))
            ]
            np.testing.assert_allclose(np.array(w) / np.sum(w), normalised(truth), **CLOSE)


def evidence_of(mutant, data, hyper, z, omega, blocked):
    """The driver of a chain, its tables made."""
    chain = Bench(data, hyper, z, mutant)
    chain.state.omega[:] = omega
    chain.update_p_omega(np.uint64(0), blocked)
    return chain.driver


def check_omega(mutant):
    """4.3: ω_sj given p, through the evidence table."""
    omega_logit = outside(package(mutant, "kernels.equations").omega_logit)
    for rng, data, hyper in problems():
        z, p, omega = state_of(rng, data, hyper)
        evidence = evidence_of(mutant, data, hyper, z, omega, True).evidence
        for s in range(len(p)):
            for j in range(data.x.shape[1]):
                if len(data.omega_held) and data.omega_held[s, j] >= 0:
                    continue
                truth = np.empty(2)
                for on in (0, 1):
                    omega[s, j] = on
                    truth[on] = model.log_joint(data, hyper, z, p, omega)
                u = data.candidates[p[s], j]
                e = evidence[u, s] if u >= 0 else 0.0
                np.testing.assert_allclose(expit(omega_logit(hyper.q[s, j], e)), normalised(truth)[1], **CLOSE)


def check_p(mutant, blocked):
    """4.3: p_s given ω, or with ω_s summed out as far as it is not held; the kernel's float32 table must agree, too."""
    log_copy = outside(package(mutant, "kernels.equations").log_copy)
    for rng, data, hyper in problems():
        P, S, M = data.x.shape[1], len(hyper.beta), len(data.candidates)
        z, p, omega = state_of(rng, data, hyper)
        driver = evidence_of(mutant, data, hyper, z, omega, blocked)
        evidence, copies, lanes = driver.evidence, driver.copies, lanes_for(S)
        patterns = np.array(np.meshgrid(*[[False, True]] * P, indexing="ij")).reshape(P, -1).T
        for s in range(S):
            held = data.omega_held[s] if len(data.omega_held) else np.full(P, -1)
            truth, ours, table, here = np.empty(M), np.zeros(M), np.zeros(M), p[s]
            for m in range(M):
                p[s] = m
                if blocked:
                    values = []
                    for omega[s] in patterns[((held < 0) | (patterns == held)).all(axis=1)]:
                        values.append(model.log_joint(data, hyper, z, p, omega))
                    truth[m] = logsumexp(values)
                else:
                    truth[m] = model.log_joint(data, hyper, z, p, omega)
                for j in range(P):
                    u = data.candidates[m, j]
                    e = evidence[u, s] if u >= 0 else 0.0
                    ours[m] += log_copy(hyper.q[s, j], e) if blocked and held[j] < 0 else omega[s, j] * e
                    table[m] += copies.adds[(u + 1) * lanes + s] + (copies.top[j, s] if u >= 0 else 0.0)
                ours[m] += data.log_weight[m, s]
                table[m] += data.log_weight[m, s]
            p[s] = here
            np.testing.assert_allclose(normalised(ours), normalised(truth), **CLOSE)
            np.testing.assert_allclose(normalised(table), normalised(truth), rtol=1e-5, atol=1e-7)


def check_rows(mutant):
    """4.4: given φ, one cell; and a whole group moved to a label that the row does not use."""
    row_weight = outside(package(mutant, "kernels.equations").row_weight)
    for rng, data, hyper in problems():
        S = len(hyper.beta)
        a = hyper.alpha * hyper.beta
        phi = rng.dirichlet(np.ones(S), size=int(data.offset[-1]))  # any positive numbers will do
        z = rng.integers(S, size=data.x.shape)

        def log_row(i, labels):
            seen = data.x[i] >= 0
            n = np.bincount(labels[seen], minlength=S)
            return (gammaln(a + n) - gammaln(a)).sum() + np.log(phi[data.x[i][seen], labels[seen]]).sum()

        rise = driver_.row_rises(hyper, data.x.shape[1])
        for i, j in np.argwhere(data.x >= 0)[:8]:
            truth = np.array([log_row(i, np.where(np.arange(len(z[i])) == j, s, z[i])) for s in range(S)])
            others = (data.x[i] >= 0) & (np.arange(len(z[i])) != j)
            n = np.bincount(z[i][others], minlength=S)
            w = np.array([row_weight(a[s], n[s], phi[data.x[i, j], s]) for s in range(S)])
            np.testing.assert_allclose(w / w.sum(), normalised(truth), **CLOSE)
            group = (z[i] == z[i, j]) & (data.x[i] >= 0)
            free = [s for s in range(S) if s == z[i, j] or s not in z[i][data.x[i] >= 0]]
            truth = np.array([log_row(i, np.where(group, s, z[i])) for s in free])
            w = np.array([np.log(phi[data.x[i][group], s]).sum() + rise[group.sum(), s] for s in free])
            np.testing.assert_allclose(normalised(w), normalised(truth), **CLOSE)


def check_case(mutant):
    """4.5, α = 0: a case as a whole, φ integrated out. The weights that it is drawn by are left in w."""
    for rng, data, hyper in problems(alpha=0.0):
        z, p, omega = state_of(rng, data, hyper)
        S = len(p)
        g_sv = model.g_table(data, hyper, p, omega)
        starts = data.offset[:-1]
        for i in range(len(z)):
            seen = np.flatnonzero(data.x[i] >= 0)
            truth = np.array(
                [model.log_joint(data, hyper, np.where(np.arange(len(z))[:, None] == i, s, z), p, omega) for s in range(S)]
            )
            n_sv, n_is = model.count(data, z, S)
            scratch = make_scratch(data.book, S, data.x.shape[1])
            n, w, n_sj = scratch.row.n, scratch.weight, np.add.reduceat(n_sv, starts)
            n[:] = n_is[i]
            weights = collapsed.Weights(g_sv, np.add.reduceat(g_sv, starts), n_sj, np.log(hyper.beta), np.zeros(S))
            collapsed.move_case(data.x[i], z[i], data.book, n_sv, n_sj, weights, rng.random(), w, n)
            w = w[:S]
            if len(seen):
                np.testing.assert_allclose(w / w.sum(), normalised(truth), **CLOSE)
                again = model.count(data, z, S)
                assert np.array_equal(n_sv, again[0])
                assert np.array_equal(n, again[1][i])


def check_row_at_zero(mutant):
    """4.5, α = 0, given φ: the relabel move's weight of a whole row."""
    for _, data, hyper in problems(alpha=0.0):
        P, S = data.x.shape[1], len(hyper.beta)
        rise = driver_.row_rises(hyper, P)
        for n in range(P + 1):
            truth = [model.log_prior_z(hyper, n * np.eye(S, dtype=int)[[s]]) for s in range(S)]
            np.testing.assert_allclose(rise[n], truth, **CLOSE)


CHECKS = {
    "z": check_z,
    "omega": check_omega,
    "p given omega": lambda mutant: check_p(mutant, False),
    "p, omega summed out": lambda mutant: check_p(mutant, True),
    "rows": check_rows,
    "case": check_case,
    "row at alpha = 0": check_row_at_zero,
}


@pytest.mark.parametrize("name", CHECKS)
def test_conditional(name):
    CHECKS[name](None)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("1 - q misprinted", "omega"),
        ("1 - q misprinted", "p, omega summed out"),
        ("g without c", "omega"),
        ("g without c", "p given omega"),
    ],
)
def test_mutant_is_rejected(mutant, name):
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        CHECKS[name](mutant)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("K transposed", "p given omega"),
        ("K transposed", "omega"),
        ("K without fractions", "p, omega summed out"),
        ("beta forgotten, rows", "row at alpha = 0"),
        ("case in its own counts", "case"),
        ("held omega summed out", "p, omega summed out"),
    ],
)
def test_broken_function_is_rejected(monkeypatch, mutant, name):
    break_function(monkeypatch, mutant)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        CHECKS[name](None)


def test_leaf_at_extremes():
    """No overflow where evidence is overwhelming: log(q e^E + 1 − q) → E + log q, and log(1 − q)."""
    assert model.log_copy(0.3, 5000.0) == pytest.approx(5000.0 + np.log(0.3))
    assert model.log_copy(0.3, -5000.0) == pytest.approx(np.log(0.7))
    assert model.log_copy(0.3, 0.0) == pytest.approx(0.0, abs=1e-15)
