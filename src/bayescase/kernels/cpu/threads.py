"""Threads, each with a scratch of its own, and the ranges of rows that they work on."""

import itertools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np

from ...state import Data
from .tables import Scratch, make_scratch

Part: TypeAlias = tuple[int, int]  # rows lo .. hi - 1
BLOCK_CELLS = 1 << 16  # a block smaller than this costs more to hand to a thread than to run


class Threads:
    """Threads, with a scratch for as many as work at a time, and the number of blocks that one chain's rows are cut into."""

    def __init__(self, data: Data, S: int, n_jobs: int = 1, n_blocks: int = 1):
        self.n_blocks = n_blocks
        self.pool = ThreadPoolExecutor(n_jobs)
        self.free: SimpleQueue[Scratch] = SimpleQueue()
        for _ in range(n_jobs):
            self.free.put(make_scratch(data.book, S, data.cases.longest))

    def parts(self, n: int) -> list[Part]:
        """Ranges that cover 0 .. n - 1, one for each block."""
        return self.parts_of(np.arange(n + 1))

    def parts_of(self, first: np.ndarray) -> list[Part]:
        """Ranges of rows with about as many cells each; row i begins with cell first[i]."""
        n = len(first) - 1
        edges = np.linspace(first[0], first[-1], min(self.n_blocks, max(n, 1)) + 1).astype(int)
        rows = np.searchsorted(first, edges)
        rows[-1] = n  # also those at the end that have no cells
        return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(rows)]

    def each(
        self, parts: Sequence[Part], work: Callable[[Scratch, int, int], Any], collect: Callable[[Scratch], Any] | None = None
    ) -> None:
        """work(scratch, lo, hi) for every range; then collect(scratch), one at a time."""
        lock = threading.Lock()

        def task(lo: int, hi: int) -> None:
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

    def close(self) -> None:
        self.pool.shutdown()


def threads_for(data: Data, S: int, n_chains: int, n_jobs: int) -> Threads:
    """Chains run side by side if there are enough of them; else one after the other, its rows in blocks."""
    n_blocks = 1 if n_chains >= n_jobs else min(n_jobs, max(1, len(data.cells.codes) // BLOCK_CELLS))
    return Threads(data, S, n_jobs, n_blocks)
