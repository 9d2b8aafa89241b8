"""Level 7: however the work is split or stored, the same integers."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

from bayescase.kernels.cpu import sweep as cpu
from bayescase.kernels.cpu.rows import move_cells, row_labels, row_sums
from bayescase.kernels.cpu.tables import ROWS, lanes_for
from bayescase.kernels.rng import derive, stream
from bayescase.sampling.starts import init
from bayescase.state import make_data, make_hyper, new_state

from .judge import REJECT_BELOW, pearson


def chain(x, offset, S, sampler, *, x_type=np.int64, z_type=None, n_blocks=1, threads=0, sweeps=6, alpha=0.3):
    data = make_data(x.astype(x_type), offset)
    hyper = make_hyper(S, x.shape[1], alpha, 0.7, 8.0, 0.5)
    z = init(data, hyper, "cases", np.random.default_rng(0))
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
        lanes = lanes_for(S)
        values = np.zeros((3 * P + 1, lanes), dtype=np.float32)
        values[1:, :S] = rng.normal(size=(3 * P, S))
        for lo in range(0, N, ROWS):
            hi = min(lo + ROWS, N)
            sums = np.full(ROWS * lanes, 99.0)
            row_sums(values.ravel(), lanes, x, P, lo, hi, sums)
            expected = values.astype(float)[x[lo:hi] + 1].sum(axis=1)
            np.testing.assert_allclose(sums[: (hi - lo) * lanes].reshape(-1, lanes), expected, atol=1e-4)


@pytest.mark.parametrize("start", [(1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 3, 3), (1, 1, 0, 1, 3, 3), (0, 1, 2, 3, 4, 0)])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 50.0])
def test_fast_paths_of_cell_moves(alpha, start):
    """Rows with one, two, three and five labels: a whole pass against the dense conditionals, composed exactly."""
    rng = np.random.default_rng(0)
    S, P, gap = 5, 6, 2
    phi = np.ones((S, P + 1), dtype=np.float32)
    phi[:, 1:] = rng.dirichlet(np.ones(S), size=P).T
    a = alpha * rng.dirichlet(np.ones(S) * 5)
    x = np.arange(P)[None, :].copy()
    smooth = (a[:, None] * phi).sum(axis=0).astype(np.float32)
    smooth[0] = 0
    for gaps in (False, True):
        x[0, gap] = -1 if gaps else gap
        cells = [j for j in range(P) if x[0, j] >= 0]
        often = (
            1.00001 * ((smooth - a[:, None] * phi) / ((P - 1) * phi + smooth))[:, 1:]
        )  # each cell has a feature of one value
        # exact distribution of the row after one pass, by composing the conditionals
        states = {tuple(start[j] for j in cells): 1.0}
        for c, j in enumerate(cells):
            after = {}
            for state, prob in states.items():
                n = np.bincount([s for d, s in enumerate(state) if d != c], minlength=S)
                w = (a + n) * phi[:, x[0, j] + 1]
                for s in range(S):
                    new = (*state[:c], s, *state[c + 1 :])
                    after[new] = after.get(new, 0.0) + prob * w[s] / w.sum()
            states = after
        index = {state: k for k, state in enumerate(states)}
        counts, n_draws = np.zeros(len(states)), 60_000
        drawn = np.zeros((n_draws, P), dtype=int)
        run(
            x,
            np.array([start]),
            phi,
            smooth,
            np.ascontiguousarray(often, dtype=np.float32),
            a,
            gaps,
            n_draws,
            drawn := np.zeros((n_draws, P), dtype=int),
        )
        for row in drawn:
            counts[index[tuple(row[cells])]] += 1
        assert pearson(counts, n_draws * np.array(list(states.values()))) > REJECT_BELOW


@njit
def run(x, start, phi, smooth, often, a, gaps, n_draws, out):
    S, P = phi.shape[0], x.shape[1]
    n, used, u, cut, rare, cells = (
        np.zeros(S),
        np.zeros(S, np.int64),
        np.zeros(P, np.float32),
        np.zeros(P, np.int32),
        np.zeros(P, np.bool_),
        np.zeros((3, P), np.float32),
    )
    where, old = np.zeros(P + 1, np.int64), np.zeros(P + 1, np.int64)
    for t in range(n_draws):
        z = start.copy()
        n[:] = 0
        k = row_labels(x, z, 0, P, gaps, n, used)
        move_cells(x, z, 0, P, phi, smooth, often, a, derive(np.uint64(7), t), u, cut, rare, cells, n, used, k, where, old)
        out[t] = z[0]
