"""A chain without a run: what a sweep needs and nothing else, of the package or of a mutant of it."""

import numpy as np

from bayescase.kernels.cuda.engine import CudaEngine
from bayescase.state import count_observed, new_state, smallest_int

from .mutants import package


class Bench:
    """Rows, candidates, a driver and a state around labels z; `sweep` moves them. With a `machine`, the rows lie there."""

    def __init__(self, data, hyper, z, mutant=None, n_jobs=1, n_blocks=1, machine=None):
        kernels, cpu = package(mutant, "kernels"), package(mutant, "kernels.cpu.engine")
        self.data, self.hyper, S = data, hyper, len(hyper.beta)
        labels = np.ascontiguousarray(z, dtype=smallest_int(S)) if z.dtype == np.int64 else z
        self.shape, self.machine = z.shape, machine
        if machine is None:
            self.threads = kernels.Threads(data, S, n_jobs, n_blocks)
            self.rows = cpu.CpuRows(self.threads, data, labels, S)
            self.rows.block = self.rows.block._replace(x=np.array(self.rows.block.x))  # so that cases can be drawn anew
            self.candidates = cpu.CpuCandidates(self.threads, data)
        else:
            engine = CudaEngine(data, S, 1, n_jobs, machine)
            self.threads, self.rows, self.candidates = engine.threads, engine.rows(0), engine.candidates
        self.rows.put_labels(labels)
        self.n_i = count_observed(data.x, data.bags)
        self.driver = kernels.Driver(data, self.n_i, hyper, self.threads)
        self.sweeps = kernels.sweeps
        self.state = new_state(data, S)
        self.recount()

    @property
    def z(self):
        """The labels of all cells, (N, P) or flat; to change them, `put_labels`."""
        return self.rows.labels().reshape(self.shape)

    def put_labels(self, z):
        self.rows.put_labels(z)
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
        self.state.p[:], self.state.omega[:], self.state.u[:] = p, omega, -1
        codes, first = self.data.candidate_cells
        for s, m in enumerate(p):
            self.state.u[s, : first[m + 1] - first[m]] = codes[first[m] : first[m + 1]]

    def put_cases(self, x, bags=None):
        """Other cases, with gaps where they were and bags as large as they were."""
        self.data = self.data._replace(x=x, bags=bags)
        if self.machine is None:
            self.rows.block.x[:] = self.data.cells.codes
        else:
            there = self.rows.cells
            there.blocks = [there.block(self.data.cases, self.data.cells, slice(0, len(x)))]
        self.recount()

    def update_p_omega(self, key, blocked=True):
        return self.driver.update_p_omega(self.hyper, self.state, self.candidates, key, blocked)

    def sweep(self, sampler, key, **how):
        return self.sweeps[sampler](self.driver, self.rows, self.candidates, self.hyper, self.state, key, **how)
