"""A chain without a run: what a sweep needs and nothing else, of the package or of a mutant of it."""

import numpy as np

from bayescase.state import count_observed, new_state, smallest_int

from .mutants import package


class Bench:
    """Rows, candidates, a driver and a state around labels z; `sweep` moves them."""

    def __init__(self, data, hyper, z, mutant=None, n_jobs=1, n_blocks=1):
        kernels = package(mutant, "kernels")
        self.data, self.hyper, S = data, hyper, len(hyper.beta)
        self.x = np.array(data.x)  # so that cases can be drawn anew
        self.z = np.ascontiguousarray(z, dtype=smallest_int(S)) if z.dtype == np.int64 else z
        self.threads = kernels.Threads(data.offset, S, n_jobs, n_blocks)
        self.rows = kernels.CpuRows(self.threads, self.x, self.z, data.z_held, S)
        self.candidates = kernels.CpuCandidates(self.threads, data.candidates, data.log_weight)
        self.driver = kernels.Driver(data.book, data.omega_held, count_observed(data.x), hyper, self.threads)
        self.sweeps = kernels.sweeps
        self.state = new_state(data, S)
        self.recount()

    def recount(self):
        self.state.n_sv[:], self.state.n_rows[:] = self.rows.recount(len(self.state.n_sv))

    def check(self):
        """The counts are those of z."""
        n_sv, n_rows = self.rows.recount(len(self.state.n_sv))
        assert np.array_equal(n_sv, self.state.n_sv), "the counts differ from a recount of z"
        assert np.array_equal(n_rows, self.state.n_rows), "the counts of rows differ from a recount of z"

    def put(self, p, omega):
        """Other prototypes and subspaces."""
        self.state.p[:], self.state.omega[:], self.state.u[:] = p, omega, self.data.candidates[p]

    def put_cases(self, x):
        """Other cases, with gaps where they were."""
        self.x[:] = x
        self.data = self.data._replace(x=self.x)
        self.recount()

    def update_p_omega(self, key, blocked=True):
        return self.driver.update_p_omega(self.hyper, self.state, self.candidates, key, blocked)

    def sweep(self, sampler, key, **how):
        return self.sweeps[sampler](self.driver, self.rows, self.candidates, self.hyper, self.state, key, **how)
