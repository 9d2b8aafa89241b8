"""A cluster of Dask as an engine: tasks on blocks of rows, whose codes and labels stay with the workers.

What a worker takes with it when it goes is computed again from what it was made of. Every few steps the labels go to files that
all workers can read, so that there is little to compute again and little for the scheduler to remember.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...reading.cache import Cached
from ...state import Cells, Data, Hyper, smallest_int
from ...storage import Mapped
from ..contract import Best, Candidates, Counts, Meanwhile, Moved
from ..cpu.engine import CpuCandidates
from ..cpu.means import OVERLAP_UNIT
from ..cpu.tables import Copies, Tables
from ..cpu.threads import Threads
from ..disk.blocks import join_taken
from . import tasks
from .blocks import Shape, Where
from .tasks import Files

Each: TypeAlias = "dict[int, tuple[Any, ...]] | None"  # arguments by block
STEPS = 64  # tasks on a block, one after the other, before its labels go to a file
BLOCKS_PER_THREAD = 3  # of all chains that are swept side by side, so that nobody waits long for the last one
LARGEST = 1 << 27  # cells of a block
BUSY = 1 << 19  # cells that a worker sweeps while the scheduler looks after the tasks of a block
SMALL = 1 << 18  # bytes that travel with the tasks of a step; more become a task of their own, fetched once by each worker
CHAINS_AT_ONCE = 4  # while the tables of one are made, the workers have others


class Workers:
    """The client of a cluster, the codes of the rows there, and names for the tasks of one run, which no other run has.

    `last` has some of the last tasks of each kind: Dask would forget their group with the last of them, make another one with
    the next, and keep all groups for its statistics.
    """

    def __init__(self, client: Any, cached: Cached, shape: Shape, n_chains: int):
        self.client, self.shape, self.name, self.step = client, shape, f"bayescase-{uuid.uuid4().hex}", 0
        self.last: deque[Any] = deque(maxlen=8 * n_chains)
        self.cached = regroup(cached, n_blocks(cached.about.n_cells, sum(client.nthreads().values()), n_chains))
        about, files = cached.about, (cached.codes, cached.first, cached.candidate_codes, cached.candidate_first)
        self.blocks = [
            Where(*files, (rows.start, rows.stop), (cells.start, cells.stop), cached.width, gaps)
            for rows, cells, gaps in zip(self.rows, self.cells, self.cached.about.gaps, strict=True)
        ]
        self.n_cells = about.n_cells
        self.codes = self.submit(tasks.read_rows, self.every, self.blocks)

    @property
    def every(self) -> range:
        return range(self.cached.n_blocks)

    @property
    def rows(self) -> list[slice]:
        """Those of each block."""
        return [self.cached.rows(b) for b in self.every]

    @property
    def cells(self) -> list[slice]:
        return [self.cached.span(rows) for rows in self.rows]

    def submit(self, function: Callable[..., Any], which: Iterable[int], *each: Sequence[Any]) -> list[Any]:
        """Futures of function(…) for some blocks. No keywords: Dask would make large ones tasks with names that others have."""
        self.step += 1
        keys = [f"{function.__name__}-{self.name}-{self.step}-{b}" for b in which]
        futures: list[Any] = self.client.map(function, *each, key=keys)
        if function in (tasks.result_of, tasks.score):
            self.last.append(futures[0])
        return futures

    def share(self, *args: Any) -> Any:
        """Sizes and arguments that are the same for all blocks."""
        from dask.sizeof import sizeof

        shared = (self.shape, *args)
        if sizeof(shared) * len(self.blocks) < SMALL:
            return shared
        self.step += 1
        future = self.client.submit(tuple, shared, key=f"tables-{self.name}-{self.step}")
        self.last.append(future)
        return future

    def gather(self, futures: list[Any]) -> list[Any]:
        results: list[Any] = self.client.gather(futures)
        return results


def n_blocks(n_cells: int, n_threads: int, n_chains: int) -> int:
    """Enough for all threads, but no more than the scheduler can look after while n blocks are swept by n workers."""
    enough = -(-BLOCKS_PER_THREAD * n_threads // n_chains)
    return max(1, -(-n_cells // LARGEST), min(enough, int(np.sqrt(n_cells / BUSY))))


def regroup(cached: Cached, n: int) -> Cached:
    """Neighbouring blocks as one: about n of about one size."""
    about = cached.about
    middle = [(span.start + span.stop) // 2 for span in (cached.span(cached.rows(b)) for b in range(cached.n_blocks))]
    begins = np.flatnonzero(np.diff(np.array(middle) * n // max(about.n_cells, 1), prepend=-1))
    gaps = np.logical_or.reduceat(about.gaps, begins).tolist()
    edges = [*(about.edges[b] for b in begins.tolist()), about.n_rows]
    return Cached(cached.folder, cached.encoding, about._replace(edges=edges, gaps=gaps))


class ClusterRows:
    """One chain's rows: a future of the state of each block."""

    device = "cpu"

    def __init__(self, workers: Workers, folder: Path, chain: int):
        self.workers, self.folder, self.chain = workers, folder, chain
        self.cached, self.S, self.n_steps, self.number = workers.cached, workers.shape.S, 0, -1
        self.states: list[Any] = []
        self.held, self.has_former = np.zeros(0, dtype=np.int64), False
        self.last = self.kept = self.stored()  # numbers of files that the last checkpoint, or the one before it, may speak of

    # --- tasks ----------------------------------------------------------------------------------------------------------

    def ask(self, function: Callable[..., Any], args: tuple[Any, ...], each: Each) -> tuple[list[int], list[Any]]:
        """(blocks, futures) of a function of `tasks`, of all blocks or of those that have arguments of their own."""
        workers = self.workers
        which = list(workers.every) if each is None else list(each)
        own: list[tuple[Any, ...]] = [() if each is None else each[b] for b in which]
        codes, states = [workers.codes[b] for b in which], [self.states[b] for b in which]
        same = [[function] * len(which), [workers.share(*args)] * len(which)]
        return which, workers.submit(tasks.on_block, which, *same, codes, states, own)

    def change(self, function: Callable[..., Any], *args: Any, each: Each = None, wanted: bool = False) -> list[Any]:
        """Change the states of blocks. The results are waited for if they are wanted."""
        which, changed = self.ask(function, args, each)
        results = self.workers.gather(self.workers.submit(tasks.result_of, which, changed)) if wanted else []
        for b, future in zip(which, changed, strict=True):
            self.states[b] = future
        self.n_steps += 1
        if self.n_steps >= STEPS:
            self.cut()
        return results

    def look(self, function: Callable[..., Any], *args: Any, each: Each = None) -> list[Any]:
        """Results of a function that changes nothing."""
        return self.workers.gather(self.ask(function, args, each)[1])

    def cut(self, synced: bool = False) -> None:
        """Go on from files: what the states were made of may be forgotten."""
        self.number = next(n for n in itertools.count() if n not in (self.number, *self.kept))
        files = self.files(self.number)
        for array in files:
            if array is not None and not is_there(array):
                Mapped.create(array.path, array.dtype, array.shape)
        self.look(tasks.store, files, synced, each={b: (span.start,) for b, span in enumerate(self.workers.cells)})
        self.go_on()

    def go_on(self) -> None:
        """From the files."""
        workers, files, held = self.workers, self.files(self.number), self.held
        rows, cells = ([(part.start, part.stop) for part in parts] for parts in (workers.rows, workers.cells))
        of_blocks = [held[lo:hi] if len(held) else held for lo, hi in rows]
        self.states = workers.submit(tasks.fetch, workers.every, [files] * len(rows), rows, cells, of_blocks)
        self.n_steps = 0

    def files(self, number: int) -> Files:
        """As those on one machine's disk are, so that a run that was begun here can go on there."""
        N, single = len(self.cached), np.int16 if self.S < 2**15 else np.int32
        return Files(
            Mapped(self.file("z", number), smallest_int(self.S), (self.workers.n_cells,), writable=True),
            Mapped(self.file("one", number), single, (N,), writable=True),
            Mapped(self.file("memberships", number), np.float32, (N, self.S), writable=True),
            Mapped(self.file("former", number), np.float16, (N, self.S), writable=True) if self.has_former else None,
        )

    def file(self, name: str, number: int) -> Path:
        return self.folder / f"{self.chain}.{name}.{number}"

    def stored(self) -> list[int]:
        """Numbers of the files that are there."""
        names = (path.name.rpartition(".")[2] for path in self.folder.glob(f"{self.chain}.z.*"))
        return [int(name) for name in names if name.isdecimal()]

    # --- labels -----------------------------------------------------------------------------------------------------------

    def start(self, labels_of: Any) -> None:
        """`labels_of` must have `portion`: the same for some rows alone, for a worker."""
        workers = self.workers
        sizes = [span.stop - span.start for span in workers.cells]
        portions = [labels_of.portion(rows, n) for rows, n in zip(workers.rows, sizes, strict=True)]
        self.states = workers.submit(tasks.begin, workers.every, workers.codes, [workers.shape] * len(sizes), portions)
        self.cut()

    def recount(self, n_values: int) -> Counts:
        parts = self.look(tasks.count, n_values)
        return Counts(*(np.sum(part, axis=0, dtype=part[0].dtype) for part in zip(*parts, strict=True)))

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        moved = Moved.none(tables.leave.shape[1] - 1, self.S, self.workers.shape.longest)
        for part in self.change(tasks.sweep, tables, key, by_cell, wanted=True):
            moved.add(part)
        return moved

    def labels(self) -> np.ndarray:
        return np.concatenate(self.look(tasks.labels))

    def single(self) -> np.ndarray:
        return np.concatenate(self.look(tasks.single))

    def put_labels(self, z: np.ndarray) -> None:
        flat = z.reshape(-1)
        self.change(tasks.put_all, each={b: (flat[span],) for b, span in enumerate(self.workers.cells)})

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        order = np.argsort(rows, kind="stable")
        each: Each = {b: (some,) for b, some in self.cached.by_block(rows[order])}
        found = self.look(tasks.take, each=each) if each else []
        cells, z = join_taken(found, order, self.cached.codes.dtype, smallest_int(self.S))
        return cells, z, self.held[rows] if len(self.held) else np.full(len(rows), -1)

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        order, sizes = np.argsort(rows, kind="stable"), self.take(rows)[0].sizes
        given, at, each = Cells(z, np.concatenate([[0], np.cumsum(sizes)])), 0, {}
        for b, some in self.cached.by_block(rows[order]):
            each[b] = (some, given.take(order[at : at + len(some)]))
            at += len(some)
        if each:
            self.change(tasks.put, each=each)

    def hold(self, held: np.ndarray) -> None:
        self.held = held
        self.change(tasks.hold, each={b: (held[rows] if len(held) else held,) for b, rows in enumerate(self.workers.rows)})

    # --- means ------------------------------------------------------------------------------------------------------------

    @property
    def memberships(self) -> Mapped:
        """In a file, which the workers write now."""
        return self.written("memberships", former=False)

    def former_memberships(self) -> Mapped:
        return self.written("shown", former=True)

    def written(self, name: str, former: bool) -> Mapped:
        mean = Mapped.create(self.folder / f"{self.chain}.{name}", np.float32, (len(self.cached), self.S))
        self.look(tasks.write_mean, mean, former)
        return mean

    def new_means(self, keep_former: bool = False) -> None:
        self.has_former = keep_former
        self.change(tasks.new_mean, keep_former)

    def drop_former(self) -> None:
        if self.has_former:
            self.has_former = False
            self.change(tasks.drop_former)

    def overlap(self) -> np.ndarray:
        total: np.ndarray = np.sum(self.look(tasks.overlap), axis=0) / OVERLAP_UNIT
        return total

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        self.change(tasks.add_mean, hyper, to, weight)

    # --- checkpoints ------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The number of the files that have the states. Those of the checkpoint before stay until the next one."""
        self.cut(synced=True)
        self.kept = [*self.last, self.number]
        self.last = [self.number]
        return {"snapshot": np.array(self.number)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.number, self.has_former = int(arrays["snapshot"]), False
        self.kept = self.last = [self.number]
        for array in self.files(self.number):
            if array is not None and not is_there(array):
                raise ValueError(f"The rows of the checkpoint are not in {os.fspath(self.folder)!r}; delete the checkpoint.")
        self.go_on()


def is_there(array: Mapped) -> bool:
    return os.path.exists(array.path) and os.path.getsize(array.path) == array.nbytes


class ClusterCandidates:
    """All rows as a catalogue: a task for each block."""

    def __init__(self, workers: Workers, log_weight: np.ndarray | Mapped, most: int):
        self.workers, self.cached, self.most = workers, workers.cached, most
        self.log_weight = log_weight  # (N, 1), or (1, 1) if all are equal

    def weights_of(self, p: np.ndarray) -> np.ndarray:
        if len(self.log_weight) == 1:
            return np.full(len(p), self.log_weight[:][0, 0])
        return np.array([self.log_weight[m : m + 1][0, 0] for m in p.tolist()])

    def score(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> Best:
        workers, S = self.workers, copies.top.shape[1]
        best = Best.none(S, self.most)
        shared = workers.share(self.log_weight, copies, key)
        for score, row in workers.gather(
            workers.submit(tasks.score, workers.every, [shared] * len(workers.codes), workers.codes)
        ):
            best.offer(score, row)
        for s, m in enumerate(best.row.tolist()):
            codes = self.cached.candidate_cells(slice(m, m + 1)).codes
            best.codes[s, : len(codes)] = codes
        return best


class ClusterEngine:
    """Rows and candidates of a run on the workers of a cluster, on their processors or GPUs; tables are made here."""

    def __init__(
        self,
        client: Any,
        cached: Cached,
        data: Data,
        log_weight: np.ndarray | Mapped,
        folder: Path,
        S: int,
        n_chains: int,
        device: str = "cpu",
    ):
        self.folder, self.chains_at_once = folder, min(n_chains, CHAINS_AT_ONCE)
        self.threads = Threads(data, S, self.chains_at_once)
        shape = Shape(data.offset, data.book.n_single, S, data.cases.longest, device)
        self.workers = Workers(client, cached, shape, self.chains_at_once)
        self.candidates: Candidates = (
            ClusterCandidates(self.workers, log_weight, data.catalogue.longest)
            if data.own_cases
            else CpuCandidates(self.threads, data)
        )
        self.chains: list[ClusterRows] = []

    def rows(self, chain: int) -> ClusterRows:
        """The rows of a chain, whose labels are not yet set."""
        self.chains.append(ClusterRows(self.workers, self.folder, chain))
        return self.chains[-1]

    def close(self) -> None:
        """Nothing of the run stays with the workers."""
        self.threads.close()
        self.workers.codes = []
        self.workers.last.clear()
        for rows in self.chains:
            rows.states = []
