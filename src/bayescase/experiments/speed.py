"""How fast the sampler runs on this machine."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs

SIZES = ((1_000, 20, 4, 5), (10_000, 50, 8, 10), (2_000, 500, 2, 10))
WARM = 50  # sweeps before the clock starts: compiling, and a start that is far from typical


@dataclass(frozen=True)
class Speed:
    """Complete sweeps of one chain per thread, on a table with planted clusters."""

    n_cases: int
    n_features: int
    n_values: int
    n_clusters: int
    threads: int
    sweeps: int
    cells_per_second: float  # all threads together


def measure(seconds: float = 1.0, n_jobs: int | None = None, sizes=SIZES) -> list[Speed]:
    """Cells per second for a few sizes of tables, each measured for so many seconds."""
    from ..estimator import BayesianCaseModel

    threads, found = effective_n_jobs(n_jobs), []
    for N, P, V, S in sizes:
        rng = np.random.default_rng(0)
        centres = rng.integers(V, size=(S, P))
        cases = np.where(rng.random((N, P)) < 0.3, rng.integers(V, size=(N, P)), centres[rng.integers(S, size=N)])
        clock: dict[str, float] = {}

        def watch(report, clock=clock):
            if report.sweep == WARM:
                clock["start"] = time.perf_counter()
            elif report.sweep > WARM:
                clock["end"], clock["sweeps"] = time.perf_counter(), report.sweep - WARM
                return clock["end"] - clock["start"] >= seconds
            return False

        # without a search for starts: it would take 1,270 sweeps before the first one that counts
        settings = {"n_iter": 100_000, "burn_in": 0, "thin": 100, "n_chains": threads, "n_init": 1, "random_state": 0}
        model = BayesianCaseModel(S, **settings, n_jobs=threads, encoder={"feature_types": "integer"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it was stopped
            model.fit(cases, callback=watch)
        rate = N * P * threads * clock["sweeps"] / (clock["end"] - clock["start"])
        found.append(Speed(N, P, V, S, threads, int(clock["sweeps"]), rate))
    return found
