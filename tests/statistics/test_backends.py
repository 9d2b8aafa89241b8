"""Level 7: however the work is split or stored, the same integers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bayescase.kernels import cpu
from bayescase.kernels.rng import stream
from bayescase.state import init, make_data, make_hyper, new_state

from .judge import REJECT_BELOW, pearson


def chain(x, offset, S, sampler, *, x_type=np.int64, z_type=None, n_blocks=1, threads=0, sweeps=6, alpha=0.3):
    data = make_data(x.astype(x_type), offset)
    hyper = make_hyper(S, x.shape[1], alpha, 0.7, 8.0, 0.5)
    z = init(data, S, "cases", np.random.default_rng(0))
    state = new_state(data, z if z_type is None else z.astype(z_type), S)
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        work = cpu.Work(data, hyper, state.z.dtype, pool if threads else None, n_blocks)
        joint = [cpu.sweeps[sampler](data, hyper, state, work, stream(3, t))[0] for t in range(sweeps)]
    return np.where(x < 0, 0, state.z), state.p.copy(), state.omega.copy(), joint


def table(N=203, P=45, V=5, gaps=0.1):
    rng = np.random.default_rng(1)
    offset = np.arange(P + 1) * V
    x = offset[:-1] + rng.integers(V, size=(N, P))
    x[rng.random(x.shape) < gaps] = -1
    return x, offset


def assert_same(a, b):
    for one, other in zip(a, b, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("how", [{"n_blocks": 2}, {"n_blocks": 7}, {"n_blocks": 300}, {"n_blocks": 5, "threads": 3}])
def test_blocks_and_threads(sampler, how):
    x, offset = table()
    assert_same(chain(x, offset, 4, sampler), chain(x, offset, 4, sampler, **how))


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_integer_types(sampler):
    x, offset = table()
    plain = chain(x, offset, 4, sampler)
    for x_type, z_type in ((np.int16, np.uint8), (np.int32, np.uint16), (np.int64, np.int64)):
        assert_same(plain, chain(x, offset, 4, sampler, x_type=x_type, z_type=z_type))


@pytest.mark.parametrize("S", [1, 15, 16, 17, 63, 64, 65, 130])
def test_row_sums_at_the_edges_of_the_lanes(S):
    """The vector sums against NumPy, for cluster counts around the vector width and rows around the tile."""
    rng = np.random.default_rng(S)
    for N, P in ((1, 1), (33, 31), (64, 32), (5, 100)):
        x, _ = table(N, P, 3)
        lanes = cpu.lanes_for(S)
        values = np.zeros((3 * P + 1, lanes), dtype=np.float32)
        values[1:, :S] = rng.normal(size=(3 * P, S))
        for lo in range(0, N, cpu.ROWS):
            hi = min(lo + cpu.ROWS, N)
            sums = np.full(cpu.ROWS * lanes, 99.0)
            cpu.row_sums(values.ravel(), lanes, x, lo, hi, sums)
            expected = values.astype(float)[x[lo:hi] + 1].sum(axis=1)
            np.testing.assert_allclose(sums[: (hi - lo) * lanes].reshape(-1, lanes), expected, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.01, 50.0])
def test_label_in_use_walk_equals_dense_weights(alpha):
    """Cell moves: frequencies of the split walk against the dense conditional, one cell at a time, all φ equal on the rest."""
    rng = np.random.default_rng(0)
    S, P = 5, 6
    phi = np.ones((S, P + 1), dtype=np.float32)
    phi[:, 1:] = rng.dirichlet(np.ones(S), size=P).T
    a = np.full(S, alpha / S)
    x = np.arange(P)[None, :]
    smooth = (a[:, None] * phi).sum(axis=0).astype(np.float32)
    smooth[0] = 0
    start = np.array([[1, 1, 1, 1, 3, 3]])
    n = np.array([0.0, 4, 0, 2, 0])
    n[1] -= 1
    expected = (a + n) * phi[:, 1]
    expected /= expected.sum()
    counts = np.zeros(S)
    n_draws = 40_000
    for t in range(n_draws):
        z, count, used, k = start.copy(), np.zeros(S), np.zeros(S, dtype=np.int64), 0
        k = cpu.row_labels(x, z, 0, P, count, used)
        cpu.move_cells(x, z, 0, P, phi, smooth, a, stream(t), np.zeros(P), count, used, k)
        counts[z[0, 0]] += 1
    assert pearson(counts, n_draws * expected) > REJECT_BELOW, (counts, n_draws * expected)
