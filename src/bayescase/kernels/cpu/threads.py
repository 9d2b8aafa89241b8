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
SHARES = 4  # parts of a large block: whoever is done first takes the next
SHARE_CELLS = 1 << 18  # of each of them, at least
TABLE_ENTRIES = 1 << 10  # of small tables that are worth a thread


class Threads:
    """Threads, with a scratch for as many as work at a time, and the number of blocks that one chain's rows are cut into."""

    def __init__(self, data: Data, S: int, n_jobs: int = 1, n_blocks: int = 1):
        self.n_jobs, self.n_blocks = n_jobs, n_blocks
        self.pool = ThreadPoolExecutor(n_jobs)
        self.free: SimpleQueue[Scratch] = SimpleQueue()
        for _ in range(n_jobs):
            self.free.put(make_scratch(data.book, S, data.cases.longest))

    def parts(self, n: int, entries: int | None = None) -> list[Part]:
        """Ranges that cover 0 .. n - 1, one for each block, or fewer if tables have so few entries."""
        most = self.n_blocks if entries is None else max(1, min(self.n_blocks, entries // TABLE_ENTRIES))
        return cut(np.arange(n + 1), most)

    def parts_of(self, first: np.ndarray) -> list[Part]:
        """Ranges of rows with about as many cells each; row i begins with cell first[i]. Large blocks are several."""
        shares = int(first[-1] - first[0]) // (self.n_blocks * SHARE_CELLS) if self.n_blocks > 1 else 1
        return cut(first, self.n_blocks * max(1, min(shares, SHARES)))

    def each(
        self, parts: Sequence[Part], work: Callable[[Scratch, int, int], Any], collect: Callable[[Scratch], Any] | None = None
    ) -> None:
        """work(scratch, lo, hi) for every range; then collect(scratch), one at a time."""
        lock, left = threading.Lock(), iter(parts)

        def task() -> None:
            scratch = self.free.get()
            try:
                with lock:
                    part = next(left, None)
                while part is not None:
                    work(scratch, *part)
                    with lock:
                        if collect is not None:
                            collect(scratch)
                        part = next(left, None)
            finally:
                self.free.put(scratch)

        jobs = [self.pool.submit(task) for _ in range(min(len(parts), self.n_jobs) - 1)]
        task()  # here: a thread that sleeps meanwhile is slow to wake
        for job in jobs:
            job.result()

    def close(self) -> None:
        self.pool.shutdown()


def cut(first: np.ndarray, n: int) -> list[Part]:
    """n ranges of rows with about as many cells each, or one for each row."""
    edges = np.linspace(first[0], first[-1], min(n, max(len(first) - 1, 1)) + 1).astype(int)
    rows = np.searchsorted(first, edges)
    rows[-1] = len(first) - 1  # also those at the end that have no cells
    return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(rows)]


def threads_for(data: Data, S: int, n_chains: int, n_jobs: int) -> Threads:
    """Chains run side by side if there are enough of them; else one after the other, its rows in blocks."""
    n_blocks = 1 if n_chains >= n_jobs else min(n_jobs, max(1, len(data.cells.codes) // BLOCK_CELLS))
    return Threads(data, S, n_jobs, n_blocks)
