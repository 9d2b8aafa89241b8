"""Level 2: the random numbers and the draws built on them."""

import numpy as np
import pytest
from numba import njit
from scipy import stats

from bayescase.kernels import rng
from bayescase.kernels.cpu import cells
from bayescase.kernels.cpu.lanes_math import draw_log_gammas
from bayescase.kernels.cpu.newcases import fill_rows
from bayescase.kernels.cpu.tables import lanes_for, make_scratch, make_tables
from bayescase.state import make_book

from .judge import REJECT_BELOW, pearson
from .mutants import broken, outside, package

N = 1_000_000


def draw_many(categorical, uniform):
    @njit
    def run(w, n, key):
        counts = np.zeros(len(w), dtype=np.int64)
        for i in range(n):
            counts[categorical(w, len(w), uniform(key, i))] += 1
        return counts

    return run


def weights(K):
    random = np.random.default_rng(K)
    even, zeros, extreme = np.ones(K), random.random(K), 10.0 ** -np.arange(K)
    zeros[random.permutation(K)[: K // 2]] = 0.0
    return [even, zeros, extreme, extreme[::-1].copy(), 1e-300 * random.random(K), 1e300 * random.random(K) / K]


def check_categorical(module):
    run = draw_many(module.categorical, module.uniform)
    worst = 1.0
    for K in range(2, 11):
        for k, w in enumerate(weights(K)):
            counts = run(w, N, np.uint64(1000 * K + k))
            assert counts[w == 0].sum() == 0
            positive = w > 0
            if positive.sum() > 1:
                worst = min(worst, pearson(counts[positive], N * w[positive] / w.sum()))
    return worst


def test_categorical():
    assert check_categorical(package(None, "kernels.rng")) > REJECT_BELOW / 54


def test_categorical_mutant_is_rejected():
    assert check_categorical(package("p_k twice", "kernels.rng")) < 1e-12


def test_uniform():
    @njit
    def fill(key, n):
        out = np.empty(n)
        for i in range(n):
            out[i] = rng.uniform(key, i)
        return out

    u = fill(np.uint64(7), N)
    assert u.min() >= 0.0
    assert u.max() < 1.0
    assert stats.kstest(u, "uniform").pvalue > REJECT_BELOW
    joint = np.histogram2d(u[:-1], u[1:], bins=20, range=[[0, 1], [0, 1]])[0].ravel()
    assert pearson(joint, np.full(400, (N - 1) / 400)) > REJECT_BELOW


def test_streams_do_not_resemble_each_other():
    """First numbers of neighbouring keys, and of the sub-streams of neighbouring sweeps and rows."""
    uniform = outside(rng.uniform)
    u = np.array([uniform(rng.stream(3, 0, 1, sweep), row) for sweep in range(100) for row in range(100)])
    assert stats.kstest(u, "uniform").pvalue > REJECT_BELOW
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 4 / np.sqrt(len(u))
    grid = u.reshape(100, 100)
    assert abs(np.corrcoef(grid[:-1].ravel(), grid[1:].ravel())[0, 1]) < 4 / np.sqrt(len(u))
    assert len(np.unique(u)) == len(u)


def test_normal():
    @njit
    def fill(key, n):
        out = np.empty(n)
        for i in range(n):
            out[i] = rng.normal(rng.derive(key, i))
        return out

    x = fill(np.uint64(5), N)
    assert stats.kstest(x, "norm").pvalue > REJECT_BELOW
    tail = np.array([(np.abs(x) > t).sum() for t in (3.0, 3.5, 4.0)])
    expected = N * 2 * stats.norm.sf([3.0, 3.5, 4.0])
    assert (np.abs(tail - expected) < 4.5 * np.sqrt(expected)).all(), (tail, expected)


@pytest.mark.parametrize("shape", [0.01, 0.3, 1.0, 1.7, 50.0, 1e5])
def test_log_gamma(shape):
    @njit
    def fill(shape, key, n):
        out = np.empty(n)
        for i in range(n):
            out[i] = rng.log_gamma(shape, rng.derive(key, i))
        return out

    x = fill(shape, np.uint64(11), 200_000)
    assert np.isfinite(x).all()
    if shape >= 0.3:
        assert stats.kstest(np.exp(x), stats.gamma(shape).cdf).pvalue > REJECT_BELOW
    else:  # exp underflows: log Γ(a) = log Γ(a + 1) + log(U) / a, whose left tail is exponential with rate a
        assert stats.kstest(x, stats.loggamma(shape).cdf).pvalue > REJECT_BELOW


@njit
def run_lanes(draw, shapes, S, key, out):
    keys, numbers = np.empty(len(shapes), dtype=np.uint64), np.zeros(len(shapes), dtype=np.int64)
    for s in range(len(shapes)):
        keys[s] = rng.derive(key, s)
    for i in range(len(out)):
        draw(keys, numbers, i, shapes, S, out[i], 0)


def draw_lanes(draw, S=5):
    """(draws, S) Gamma draws on the log scale, and their shapes; lanes beyond S must be 0."""
    shapes = np.ones(16, dtype=np.float32)
    shapes[:S] = [0.3, 1.0, 1.7, 50.0, 1e5]
    out = np.empty((60_000, 16), dtype=np.float32)
    run_lanes(draw, shapes, S, np.uint64(3), out)
    assert (out[:, S:] == 0.0).all()
    return out[:, :S].astype(float), shapes[:S].astype(float)


def test_log_gammas_side_by_side():
    drawn, shapes = draw_lanes(draw_log_gammas)
    for x, shape in zip(drawn.T, shapes, strict=True):
        assert stats.kstest(np.exp(x), stats.gamma(shape).cdf).pvalue > REJECT_BELOW


def test_rejected_draws_that_are_kept_are_noticed():
    x, shapes = draw_lanes(broken("rejected draws kept").draw_log_gammas)
    assert stats.kstest(np.exp(x[:, 1]), stats.gamma(shapes[1]).cdf).pvalue < REJECT_BELOW


def move_one_by_one(x, z, u, phi, a):
    """The labels of a row's cells in turn, as `cells.move_cell` has it: the own label last, the others in order of use."""
    z, used = z.copy(), list(dict.fromkeys(z[x >= 0].tolist()))
    for j in np.flatnonzero(x >= 0):
        own = int(z[j])
        n = np.bincount(z[x >= 0], minlength=len(a))
        n[own] -= 1
        w, smooth = n * phi[x[j]].astype(float), float(np.float32((a * phi[x[j]].astype(float)).sum()))
        r, b = u[j] * (smooth + w.sum()), own
        if r < smooth:
            ends = np.cumsum([(a[s] * phi[x[j], s]) * (s != own) for s in range(len(a))])
            b = int(np.argmax(r < ends)) if r < ends[-1] else own
        elif r < smooth + w.sum() - w[own]:
            others = [s for s in used if s != own]
            b = others[min(int((r - smooth >= np.cumsum(w[others])).sum()), len(others) - 1)]
        if b != own and b not in used:
            used.append(b)
        if b != own and n[own] == 0:
            used[used.index(own)] = used[-1]
            used.pop()
        z[j] = b
        if len(used) == 2:
            return None  # two labels are drawn in another order
    return z


def check_rows_of_several_labels(cells):
    """How many rows of a few hundred differ from cells drawn one by one; fresh labels, gaps and emptied labels among them."""
    random, P, V, S = np.random.default_rng(0), 90, 4, 6
    book = make_book(np.arange(P + 1) * V, P)
    tables, scratch = make_tables(book, S, P), make_scratch(book, S, P)
    tables.a[:] = 0.1
    log_phi = np.zeros((P * V, lanes_for(S)), dtype=np.float32)
    log_phi[:, :S] = np.log(random.dirichlet(np.full(V, 0.7), size=(S, P)).transpose(1, 2, 0).reshape(P * V, S))
    fill_rows(tables, log_phi.reshape(-1), lanes_for(S))
    phi = tables.phi.reshape(-1, lanes_for(S))[1:, :S]

    move, row = outside(cells.move_cells), scratch.row
    wrong = compared = 0
    for i in range(300):
        x = (np.arange(P) * V + random.integers(V, size=P)).astype(np.int16)
        x[random.random(P) < 0.1] = -1
        z = random.choice(S, size=P, p=random.dirichlet(np.full(S, 0.5))).astype(np.uint8)
        used = list(dict.fromkeys(z[x >= 0].tolist()))
        if len(used) < 3:
            continue
        row.used[: len(used)], row.n[:] = used, np.bincount(z[x >= 0], minlength=S)
        before = z.copy()
        move(x, z, tables, lanes_for(S), np.uint64(i), len(used), row, scratch.tally.delta)
        expected = move_one_by_one(x, before, row.u[:P].astype(float), phi, tables.a)
        if expected is not None:
            compared, wrong = compared + 1, wrong + (z != expected).any()
    assert compared > 100
    return wrong


def test_rows_of_several_labels_are_drawn_as_if_cell_by_cell():
    assert check_rows_of_several_labels(cells) == 0


@pytest.mark.parametrize("mutant", ["several labels: moves forgotten", "several labels: own cell counted"])
def test_rows_of_several_labels_mutant_is_rejected(mutant):
    assert check_rows_of_several_labels(broken(mutant)) > 10
