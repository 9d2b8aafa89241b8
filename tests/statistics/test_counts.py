"""Level 0: incremental counts equal a recount of z, exactly, after every kind of update."""

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels import cpu
from bayescase.kernels.rng import stream
from bayescase.starts import init
from bayescase.state import check, make_data, make_hyper, new_state

from .problems import random_problem


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("start", ["seeded", "cases", "cells"])
def test_counts_are_those_of_z(sampler, alpha, start):
    rng = np.random.default_rng(1)
    for S, P in ((1, 3), (2, 1), (5, 40), (17, 33)):
        offset = np.arange(P + 1) * 3
        x = offset[:-1] + rng.integers(3, size=(50, P))
        x[rng.random(x.shape) < 0.2] = -1
        data = make_data(x, offset)
        hyper = make_hyper(S, P, alpha, 0.5, 5.0, 0.5)
        state = new_state(data, init(data, S, start, rng), S)
        work = cpu.Work(data, hyper, state.z.dtype)
        moved = 0
        for t in range(6):
            before = state.z.copy()
            log_joint, info = cpu.sweeps[sampler](data, hyper, state, work, stream(t), heat=1.0 if t % 2 else 0.5, cells=t != 2)
            check(data, state)
            moved += int((before != state.z)[x >= 0].any())
            assert log_joint == pytest.approx(model.log_joint(data, hyper, state.z, state.p, state.omega), abs=1e-8)
            n_is = model.count(data, state.z, S)[1]
            some = n_is.sum(axis=1) > 0
            purity = (n_is[some].max(axis=1) / n_is[some].sum(axis=1)).sum()
            assert info[2] / 2**32 == pytest.approx(purity, abs=1e-6)
        assert S == 1 or moved, "nothing was tested: no label ever moved"


def test_check_notices_a_wrong_count():
    data, _ = random_problem(np.random.default_rng(0))
    state = new_state(data, init(data, 3, "cells", np.random.default_rng(0)), 3)
    check(data, state)
    state.n_sv[0, 0] += 1
    with pytest.raises(AssertionError, match="recount"):
        check(data, state)
