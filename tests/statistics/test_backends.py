"""Level 7: however the work is split or stored, the same integers."""

import numpy as np
import pytest
from numba import njit

from bayescase.kernels.cpu import engine
from bayescase.kernels.cpu.cells import move_cells, move_one_label
from bayescase.kernels.cpu.labels import row_labels
from bayescase.kernels.cpu.relabel import relabel_row, relabel_whole
from bayescase.kernels.cpu.sums import row_sums
from bayescase.kernels.cpu.tables import ROWS, Copies, Tables, lanes_for, make_scratch
from bayescase.kernels.cpu.threads import Threads
from bayescase.kernels.rng import derive, stream, uniform
from bayescase.sampling.starts import init
from bayescase.state import make_book, make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, pearson
from .mutants import break_function, broken, outside


def chain(x, offset, S, sampler, *, x_type=np.int64, z_type=None, n_blocks=1, threads=0, sweeps=6, alpha=0.3):
    data = make_data(x.astype(x_type), offset)
    hyper = make_hyper(S, x.shape[1], alpha, 0.7, 8.0, 0.5)
    z = init(data, hyper, "cases", np.random.default_rng(0))
    bench = Bench(data, hyper, z if z_type is None else z.astype(z_type), n_jobs=max(threads, 1), n_blocks=n_blocks)
    joint = [bench.sweep(sampler, stream(3, t))[0] for t in range(sweeps)]
    bench.threads.close()
    return np.where(x < 0, 0, bench.z), bench.state.p, bench.state.omega, joint


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
    rng, sum_rows = np.random.default_rng(S), outside(row_sums)
    for N, P in ((1, 1), (33, 31), (64, 32), (5, 100)):
        x, _ = table(N, P, 3)
        lanes = lanes_for(S)
        values = np.zeros((3 * P + 1, lanes), dtype=np.float32)
        values[1:, :S] = rng.normal(size=(3 * P, S))
        for lo in range(0, N, ROWS):
            hi = min(lo + ROWS, N)
            sums = np.full(ROWS * lanes, 99.0)
            sum_rows(values.ravel(), lanes, x.reshape(-1), P, lo, hi, sums)
            expected = values.astype(float)[x[lo:hi] + 1].sum(axis=1)
            np.testing.assert_allclose(sums[: (hi - lo) * lanes].reshape(-1, lanes), expected, atol=1e-4)


def plain_scores(data, copies, key, S):
    """(M, S) Log weight + evidence + Gumbel noise of every candidate, one after the other."""
    x, lanes = data.candidates.astype(int), lanes_for(S)
    score = copies.adds.reshape(-1, lanes)[x + 1, :S].astype(float).sum(axis=1) + data.log_weight
    score -= np.einsum("mj,js->ms", (x < 0).astype(float), copies.top)
    bits = [[derive(np.uint64(derive(key, m)), s) for s in range(S)] for m in range(len(x))]
    return score - np.log(-np.log((np.array(bits, dtype=np.uint64) >> np.uint64(11)) * 2.0**-53))


def best_candidates(S, spread, seed):
    """(rows that the engine finds, those of the plain scores); the larger `spread`, the fewer candidates can win."""
    x, offset = table(N=400, P=7, V=4)
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.ones(len(x)), size=S if seed % 2 else 1).T
    weight[::5] = 0.0
    data = make_data(x, offset, weight=weight)
    copies = Copies(np.zeros((int(offset[-1]) + 1, lanes_for(S)), dtype=np.float32), rng.normal(size=(7, S)))
    copies.adds[1:, :S] = -spread * rng.exponential(size=(int(offset[-1]), S))
    copies, key, threads = Copies(copies.adds.reshape(-1), copies.top), stream(5, seed), Threads(data, S, 1, 3)
    found = engine.CpuCandidates(threads, data).score(copies, key).row
    threads.close()
    with np.errstate(divide="ignore"):
        return found, plain_scores(data, copies, key, S).argmax(axis=0)


@pytest.mark.parametrize("S", [3, 16, 37])
@pytest.mark.parametrize("spread", [0.0, 0.3, 5.0])
def test_candidates_are_ruled_out_without_a_logarithm(S, spread):
    for seed in range(6):
        assert_same(*best_candidates(S, spread, seed))


def test_candidates_ruled_out_too_soon_are_noticed(monkeypatch):
    break_function(monkeypatch, "candidates ruled out too soon")
    pairs = [best_candidates(16, 0.3, seed) for seed in range(6)]
    assert any((found != plain).any() for found, plain in pairs)


def whole_rows(relabel, S):
    """Labels that rows of one label take, by the function for them and by that for all rows."""
    rng, lanes, P = np.random.default_rng(S), lanes_for(S), 6
    row = make_scratch(make_book(np.arange(P + 1)), S, P).row
    rise, sums = np.zeros((P + 1, lanes)), np.zeros((3000, lanes))
    rise[:, :S] = rng.normal(size=(P + 1, S))
    sums[:, :S] = rng.normal(size=(3000, S)) * rng.choice([0.1, 3.0, 200.0], size=(3000, 1))
    out = np.zeros((2, 3000), dtype=int)
    run_whole(relabel, rise.reshape(-1), sums.reshape(-1), lanes, rng.integers(S, size=3000), row, out)
    return out


@njit
def run_whole(relabel, rise, sums, lanes, own, row, out):
    x = np.zeros(6, dtype=np.int64)
    for i in range(len(own)):
        n, key = 1 + i % 6, derive(np.uint64(3), i)
        out[0, i] = relabel(rise, uniform(key, len(x)), sums, i * lanes, lanes, own[i], n, row)
        row.n[own[i]], row.used[0] = n, own[i]
        relabel_row(x, rise, key, sums, i * lanes, lanes, 1, row)
        out[1, i] = row.used[0]
        row.n[:] = 0


@pytest.mark.parametrize("S", [2, 16, 37])
def test_rows_of_one_label_are_relabelled_like_all_others(S):
    assert_same(*whole_rows(relabel_whole, S))


def test_relabelling_to_the_own_label_is_noticed():
    ours, general = whole_rows(broken("own label counted twice").relabel_whole, 16)
    assert (ours != general).any()


@pytest.mark.parametrize("start", [(1, 1, 1, 1, 1, 1), (1, 1, 1, 1, 3, 3), (1, 1, 0, 1, 3, 3), (0, 1, 2, 3, 4, 0)])
@pytest.mark.parametrize("alpha", [0.01, 0.5, 50.0])
def test_fast_paths_of_cell_moves(alpha, start):
    """Rows with one, two, three and five labels: a whole pass against the dense conditionals, composed exactly."""
    rng = np.random.default_rng(0)
    S, P, gap = 5, 6, 2
    phi = np.ones((S, P + 1), dtype=np.float32)
    phi[:, 1:] = rng.dirichlet(np.ones(S), size=P).T
    a = alpha * rng.dirichlet(np.ones(S) * 5)
    x = np.arange(P)
    smooth = (a[:, None] * phi).sum(axis=0).astype(np.float32)
    smooth[0] = 0
    leave = (smooth / phi - a[:, None]).astype(np.float32)
    leave[:, 0] = 0
    by_value = np.zeros((P + 1, lanes_for(S)), dtype=np.float32)
    by_value[1:, :S] = phi.T[1:]  # 0 for a missing cell, as in all tables
    for gaps in (False, True):
        x[gap] = -1 if gaps else gap
        cells = [j for j in range(P) if x[j] >= 0]
        # exact distribution of the row after one pass, by composing the conditionals
        states = {tuple(start[j] for j in cells): 1.0}
        for c, j in enumerate(cells):
            after = {}
            for state, prob in states.items():
                n = np.bincount([s for d, s in enumerate(state) if d != c], minlength=S)
                w = (a + n) * phi[:, x[j] + 1]
                for s in range(S):
                    new = (*state[:c], s, *state[c + 1 :])
                    after[new] = after.get(new, 0.0) + prob * w[s] / w.sum()
            states = after
        index = {state: k for k, state in enumerate(states)}
        counts, n_draws = np.zeros(len(states)), 60_000
        drawn = np.zeros((n_draws, P), dtype=int)
        none = np.zeros(0, dtype=np.float32)
        tables = Tables(by_value.ravel(), none, smooth, leave, a, none)
        scratch = make_scratch(make_book(np.arange(P + 1)), S, P)
        run(x, np.array(start), gaps, tables, lanes_for(S), scratch.row, scratch.tally.delta, drawn)
        for row in drawn:
            counts[index[tuple(row[cells])]] += 1
        assert pearson(counts, n_draws * np.array(list(states.values()))) > REJECT_BELOW


@njit
def run(x, start, gaps, tables, lanes, row, delta, out):
    for t in range(len(out)):
        z = start.copy()
        row.n[:] = 0
        k = row_labels(x, z, gaps, row.n, row.used)
        key = derive(np.uint64(7), t)
        if k == 1:
            own = row.used[0]
            move_one_label(x, z, own, row.n[own], tables, lanes, key, row, delta)
        else:
            move_cells(x, z, tables, lanes, key, k, row, delta)
        out[t] = z
