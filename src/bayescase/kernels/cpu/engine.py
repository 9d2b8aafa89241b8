"""The CPU as an engine: rows and candidates in memory, cut into blocks that threads work on."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from ...state import chunks, smallest_int
from ..contract import Best, Counts, Moved
from .means import add_memberships, add_overlap, fill_counts
from .rows import score_p, update_z
from .tables import make_scratch

BLOCK_CELLS = 1 << 16  # a block smaller than this costs more to hand to a thread than to run


class Block(NamedTuple):
    """Rows side by side, `width` cells each: what kernels get of the data."""

    x: np.ndarray  # (cells,) codes, -1 missing
    z: np.ndarray  # (cells,) labels; (0,) of candidates
    held: np.ndarray  # (size,) or (0,)
    size: int
    width: int
    number: int  # of the first row among all: the keys of random numbers go by that
    gaps: bool  # is any cell missing?


def make_block(x, z=None, held=None, number=0):
    """A block from tables of codes and labels, whose memory it shares."""
    none = np.zeros(0, dtype=np.int64)
    z = none.astype(np.uint8) if z is None else z.reshape(-1)
    return Block(np.ascontiguousarray(x).reshape(-1), z, none if held is None else held, *x.shape, int(number), has_gaps(x))


def has_gaps(x):
    return any(bool((x[rows] < 0).any()) for rows in chunks(*x.shape))


class Threads:
    """Threads, with a scratch for as many as work at a time, and the number of blocks that one chain's rows are cut into."""

    def __init__(self, offset, S, n_jobs=1, n_blocks=1):
        self.n_blocks = n_blocks
        self.pool = ThreadPoolExecutor(n_jobs)
        self.free: SimpleQueue = SimpleQueue()
        for _ in range(n_jobs):
            self.free.put(make_scratch(offset, S, smallest_int(S)))

    def parts(self, n):
        """Ranges that cover 0 .. n - 1, one for each block."""
        edges = np.linspace(0, n, min(self.n_blocks, max(n, 1)) + 1).astype(int)
        return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(edges)]

    def each(self, parts, work, collect=None):
        """work(scratch, lo, hi) for every range; then collect(scratch), one at a time."""
        lock = threading.Lock()

        def task(lo, hi):
            scratch = self.free.get()
            try:
                work(scratch, lo, hi)
                if collect is not None:
                    with lock:
                        collect(scratch)
            finally:
                self.free.put(scratch)

        jobs = [self.pool.submit(task, *part) for part in parts[1:]]
        task(*parts[0])  # here: a thread that sleeps meanwhile is slow to wake
        for job in jobs:
            job.result()

    def close(self):
        self.pool.shutdown()


def threads_for(data, S, n_chains, n_jobs):
    """Chains run side by side if there are enough of them; else one after the other, its rows in blocks."""
    n_blocks = 1 if n_chains >= n_jobs else min(n_jobs, max(1, data.x.size // BLOCK_CELLS))
    return Threads(data.offset, S, n_jobs, n_blocks)


class CpuRows:
    """One chain's rows, in memory. `z` is (N, P), shared with whoever made it."""

    def __init__(self, threads, x, z, held, S, number=0):
        self.threads, self.S = threads, S
        self.x, self.z = x, z
        self.block = make_block(x, z, held, number)
        self.parts = threads.parts(len(x))
        self.memberships = np.zeros((len(x), S), dtype=np.float32)
        self.former: np.ndarray | None = None

    def recount(self, n_values):
        P = self.block.width
        counts = Counts(np.zeros((n_values, self.S), dtype=np.int32), np.zeros((self.S, P + 1), dtype=np.int64))
        fill_counts(self.block, *counts)
        return counts

    def update_z(self, tables, key, by_cell=True):
        moved = Moved.none(tables.phi.shape[1] - 1, self.S, self.block.width)
        self.threads.each(
            self.parts,
            lambda scratch, lo, hi: update_z(self.block, tables, by_cell, key, scratch, lo, hi),
            lambda scratch: moved.add(scratch.tally),
        )
        return moved

    def new_means(self, keep_former=False):
        self.former = self.memberships.astype(np.float16) if keep_former else None
        self.memberships[:] = 0.0

    def drop_former(self):
        self.former = None

    def former_memberships(self):
        mean = self.former.astype(np.float32)
        mean /= mean.sum(axis=1, keepdims=True)
        return mean

    def overlap(self):
        total = np.zeros((self.S, self.S))
        self.threads.each(
            [(0, self.block.size)], lambda scratch, *_: add_overlap(self.block, self.memberships, scratch.row, total)
        )
        return total

    def add_memberships(self, hyper, to, weight):
        self.threads.each(
            [(0, self.block.size)],
            lambda scratch, *_: add_memberships(self.block, hyper.alpha, hyper.beta, to, weight, scratch.row, self.memberships),
        )

    def take(self, rows):
        z = self.z[rows]
        return self.x[rows], z, self.block.held[rows] if len(self.block.held) else np.full(len(z), -1)

    def put(self, rows, z):
        self.z[rows] = z

    def hold(self, held):
        self.block = self.block._replace(held=held)
        few = np.flatnonzero(held >= 0)
        self.z[few] = held[few, None]


class CpuCandidates:
    """The catalogue, in memory."""

    def __init__(self, threads, x, log_weight, number=0):
        self.threads, self.x, self.log_weight = threads, x, log_weight
        self.block = make_block(x, number=number)
        self.parts = threads.parts(len(x))

    def score(self, copies, key):
        S = copies.top.shape[1]
        best = Best.none(S, self.x.shape[1])

        def collect(scratch):
            better = (scratch.best > best.score) | ((scratch.best == best.score) & (scratch.arg < best.row))
            best.score[better], best.row[better] = scratch.best[better], scratch.arg[better]

        self.threads.each(
            self.parts,
            lambda scratch, lo, hi: score_p(self.block, self.log_weight, copies, key, scratch, lo, hi),
            collect,
        )
        best.codes[:] = self.x[best.row]
        best.log_weight[:] = self.log_weight[best.row, np.arange(S) % self.log_weight.shape[1]]
        best.row[:] += self.block.number
        return best
