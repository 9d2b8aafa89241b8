"""The ladder of exactness on a GPU: python -m tests.kernels.gpu_ladder [words in the names of rungs]

The integers of the CPU; long runs against the enumerated posterior of tiny problems; Geweke's test; and broken kernels, which
the last two must reject. Several processes share the GPU. pytest does not collect this file: it needs a GPU, and some minutes.
"""

import functools
import multiprocessing
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np

from bayescase.kernels.cpu.engine import CpuEngine
from bayescase.kernels.cuda.engine import CudaEngine
from bayescase.kernels.cuda.machine import Cuda
from bayescase.sampling.starts import init
from bayescase.state import make_data, make_hyper

from ..statistics import test_enumeration as enumeration
from ..statistics import test_geweke as geweke
from ..statistics.chains import Bench
from ..statistics.judge import REJECT_BELOW, smallest
from ..statistics.problems import enumerate_posterior, tiny
from .test_cuda import TABLES, mixed_data, table, trajectory

DRAWS, VARIANT_DRAWS, MUTANT_DRAWS, SWEEPS = 8_000, 2_500, 6_000, 12_000
LARGE = {
    "rows that stay": (20_000, 50, 5, 50, 0.0, 0.01, "cases"),
    "a million cells": (20_000, 50, 5, 10, 0.0, 0.01, "cases"),
    "a million mixed cells": (20_000, 50, 5, 10, 0.05, 0.5, "cells"),
}
VARIANTS = ("pinned", "pinned, one label", "number of clusters", "base", "bags", "mixed", "bags, held", "bags, one label")
BROKEN = {
    "p_k twice": ("r -= e[s];", "r -= 2.0 * e[s];"),
    "cell in its own counts": (
        "(u * (sigma + others * phi1) - sigma)",
        "(u * (sigma + (others + 1.0f) * phi1) - sigma)",
    ),
    "leaver in its own counts": (
        "row_weight(tables.a[own], n - 1.0, 1.0), u = uniform(row.key, 0)",
        "row_weight(tables.a[own], n + 1.0, 1.0), u = uniform(row.key, 0)",
    ),
    "prototypes without noise": ("offer(w - log(-log(", "offer(w - 0.0 * log(-log("),
    "groups take any label": (
        "exp_lane((float)((row.sum[s] + rise[s]) - own_weight)) : 0.0f",
        "exp_lane((float)(0.0 * ((row.sum[s] + rise[s]) - own_weight))) : 0.0f",
    ),
    "rows stay too often": ("double r = u * (leave + 1.0);", "double r = u * (leave + 2.0);"),
}


class Edited(Cuda):
    """A GPU whose kernels are changed."""

    def __init__(self, right="", wrong=""):
        super().__init__("cuda")
        self.right, self.wrong = right, wrong

    def compile(self, text):
        assert not self.right or text.count(self.right) == 1, self.right
        return super().compile(text.replace(self.right, self.wrong) if self.right else text)


class Seldom(Bench):
    """Moves single cells in every eighth sweep only: else they soon set right what a wrong relabelling of groups has done."""

    n_sweeps = 0

    def sweep(self, sampler, key, **how):
        self.n_sweeps += 1
        return super().sweep(sampler, key, cells=self.n_sweeps % 8 == 0, **how)


def on(machine, bench=Bench):
    """A Bench whose rows lie there; the mutants of the package are not for it."""
    return lambda data, hyper, z, mutant=None: bench(data, hyper, z, machine=machine)


def same_integers(name):
    """(sweeps, rows that differ from the CPU's at the end) of one table."""
    if name == "bags":
        data = mixed_data()
        S, P, alpha, start = 5, data.book.n_columns, 0.5, "cells"
    else:
        N, P, V, S, gaps, alpha, start = (TABLES | LARGE)[name]
        data = make_data(*table(N, P, V, S, gaps=gaps))
    hyper = make_hyper(S, P, alpha, 1.0, 10.0, 0.5)
    z = init(data, hyper, start, np.random.default_rng(0))
    ours = trajectory(CpuEngine(data, S, 1, 1), data, hyper, z)
    theirs = trajectory(CudaEngine(data, S, 1, 1, Cuda("cuda")), data, hyper, z)
    same = all(np.array_equal(a, b) for one, two in zip(ours, theirs, strict=True) for a, b in zip(one, two, strict=True))
    differ = int((ours[-1][0] != theirs[-1][0]).sum())
    return same, f"{len(ours)} sweeps of {len(data.x)} rows, {differ} cells differ"


def enumerated(name, broken=None, bench=Bench):
    data, hyper = tiny() if name == "plain" else enumeration.VARIANTS[name]()
    enumeration.Bench = on(Edited(*BROKEN.get(broken, ())), bench)
    draws = MUTANT_DRAWS if broken else DRAWS if name == "plain" else VARIANT_DRAWS
    found = enumeration.p_values(
        data, hyper, enumerate_posterior(data, hyper), enumeration.run(None, data, hyper, "rows", draws)
    )
    p, which = smallest(found)
    return (p < REJECT_BELOW) == (broken is not None), f"{draws} draws, smallest p of {len(found)}: {p:.2g} ({which})"


def joint(kernel, broken=None):
    problem = geweke.problem(kernel)
    geweke.Bench = on(Edited(*BROKEN.get(broken, ())))
    (p, which), found = geweke.verdict(geweke.prior_draws(*problem, SWEEPS), geweke.chain_draws(None, "rows", *problem, SWEEPS))
    return (p < REJECT_BELOW) == (broken is not None), f"{SWEEPS} sweeps, smallest p of {len(found)}: {p:.2g} ({which})"


def rungs():
    for name in (*TABLES, "bags", *LARGE):
        yield f"the CPU's integers: {name}", functools.partial(same_integers, name)
    for name in ("plain", *VARIANTS):
        yield f"enumeration: {name}", functools.partial(enumerated, name)
    yield "enumeration: plain, cells moved seldom", functools.partial(enumerated, "plain", None, Seldom)
    for kernel in (False, True):
        yield f"Geweke: {'similar values' if kernel else 'exact match'}", functools.partial(joint, kernel)
    for broken in ("p_k twice", "leaver in its own counts", "prototypes without noise"):
        yield f"enumeration rejects: {broken}", functools.partial(enumerated, "plain", broken)
    yield "enumeration rejects: groups take any label", functools.partial(enumerated, "plain", "groups take any label", Seldom)
    yield "enumeration rejects: rows stay too often", functools.partial(enumerated, "pinned, one label", "rows stay too often")
    yield "Geweke rejects: cell in its own counts", functools.partial(joint, False, "cell in its own counts")


def climb(name, task):
    started = time.perf_counter()
    try:
        good, words = task()
    except Exception as error:  # one rung that breaks must not take the others with it
        good, words = False, f"{type(error).__name__}: {error}"
    return good, f"{name}: {words}, {time.perf_counter() - started:.0f} s"


def main(processes=14):
    chosen = [rung for rung in rungs() if not sys.argv[1:] or any(word in rung[0] for word in sys.argv[1:])]
    n_good = 0
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for one in [pool.submit(climb, *rung) for rung in chosen]:
            good, words = one.result()
            print(f"{'passed' if good else 'FAILED'}  {words}", flush=True)
            n_good += good
    print(f"{n_good} of {len(chosen)} passed")
    return n_good < len(chosen)


if __name__ == "__main__":
    sys.exit(main())
