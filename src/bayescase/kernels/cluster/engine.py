"""A cluster of Dask as an engine: tasks on blocks of rows, whose labels stay with the workers.

Results that a worker takes with it are computed again from what they were made of. Every few steps the labels go to files that all
workers can read, so that there is little to compute again and little for the scheduler to remember.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ...reading.cache import Cached
from ...state import Cells, Data, Hyper, longest, smallest_int
from ...storage import Mapped
from ..contract import Best, Candidates, Counts, Moved
from ..cpu.engine import CpuCandidates
from ..cpu.tables import Copies, Tables
from ..cpu.threads import Threads
from ..disk.blocks import join_taken
from . import tasks
from .tasks import Shape, Where

Each: TypeAlias = "dict[int, tuple[Any, ...]] | None"  # arguments by block
STEPS = 16  # tasks on a block, one after the other, before its labels go to a file


class Workers:
    """The client of a cluster, and names for the tasks of one run, which no other run has."""

    def __init__(self, client: Any, cached: Cached, shape: Shape):
        self.client, self.shape, self.name, self.step = client, shape, f"bayescase-{uuid.uuid4().hex[:12]}", 0
        about = cached.about
        files = (cached.codes, cached.first, cached.candidate_codes, cached.candidate_first)
        edges = zip(about.edges[:-1], about.edges[1:], about.gaps, strict=True)
        self.blocks = [Where(*files, (lo, hi), cached.width, gaps) for lo, hi, gaps in edges]

    def submit(self, function: Callable[..., Any], which: Iterable[int], *each: Sequence[Any], **same: Any) -> list[Any]:
        """Futures of function(…) for some blocks, with arguments that differ and others that do not."""
        self.step += 1
        keys = [f"{function.__name__}-{self.name}-{self.step}-{b}" for b in which]
        futures: list[Any] = self.client.map(function, *each, key=keys, pure=False, **same)
        return futures

    def gather(self, futures: list[Any]) -> list[Any]:
        results: list[Any] = self.client.gather(futures)
        return results


class ClusterRows:
    """One chain's rows: a future of the state of each block."""

    def __init__(self, workers: Workers, cached: Cached, folder: Path, chain: int):
        self.workers, self.cached, self.folder, self.chain = workers, cached, folder, chain
        self.S, self.n_steps, self.number = workers.shape.S, 0, 0
        self.states: list[Any] = []

    # --- tasks ----------------------------------------------------------------------------------------------------------

    def ask(self, function: Callable[..., Any], args: tuple[Any, ...], each: Each) -> tuple[list[int], list[Any]]:
        """(blocks, futures) of a function of `tasks`, of all blocks or of those that have arguments of their own."""
        which = list(range(len(self.states))) if each is None else list(each)
        of_each = [args if each is None else each[b] for b in which]
        blocks, states = [self.workers.blocks[b] for b in which], [self.states[b] for b in which]
        same = {"what": function, "shape": self.workers.shape}
        return which, self.workers.submit(tasks.on_block, which, blocks, states, of_each, **same)

    def change(self, function: Callable[..., Any], *args: Any, each: Each = None) -> list[Any]:
        """Results of a function that changes the states of blocks."""
        which, changed = self.ask(function, args, each)
        results = self.workers.gather(self.workers.submit(tasks.result_of, which, changed))
        for b, future in zip(which, changed, strict=True):
            self.states[b] = future
        self.n_steps += 1
        if self.n_steps >= STEPS:
            self.cut()
        return results

    def look(self, function: Callable[..., Any], *args: Any, each: Each = None) -> list[Any]:
        """Results of a function that changes nothing."""
        return self.workers.gather(self.ask(function, args, each)[1])

    def cut(self) -> None:
        """Go on from files: what the states were made of may be forgotten."""
        before = self.number
        self.store()
        self.go_on_from(self.number)
        self.drop(before, but=self.kept)

    def store(self) -> None:
        self.number += 1
        self.look(tasks.store, each={b: (self.path(b, self.number),) for b in range(len(self.states))})

    def go_on_from(self, number: int) -> None:
        paths = [self.path(b, number) for b in range(len(self.workers.blocks))]
        self.states = self.workers.submit(tasks.fetch, range(len(paths)), paths)
        self.n_steps = 0

    kept = -1  # the number of the files that the checkpoint speaks of

    def path(self, b: int, number: int) -> str:
        return str(self.folder / f"{self.chain}.states.{number}" / str(b))

    def drop(self, number: int, but: int) -> None:
        if number != but:
            shutil.rmtree(self.folder / f"{self.chain}.states.{number}", ignore_errors=True)

    # --- labels -----------------------------------------------------------------------------------------------------------

    def start(self, labels_of: Any) -> None:
        """`labels_of` must have `portion`: the same for some rows alone, for a worker."""
        blocks = self.workers.blocks
        spans = [self.cached.span(slice(*where.rows)) for where in blocks]
        portions = [
            labels_of.portion(slice(*where.rows), span.stop - span.start) for where, span in zip(blocks, spans, strict=True)
        ]
        self.states = self.workers.submit(tasks.begin, range(len(blocks)), blocks, [self.workers.shape] * len(blocks), portions)
        self.cut()

    def recount(self, n_values: int) -> Counts:
        parts = self.look(tasks.count, n_values)
        return Counts(*(np.sum(part, axis=0, dtype=part[0].dtype) for part in zip(*parts, strict=True)))

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        moved = Moved.none(tables.leave.shape[1] - 1, self.S, self.workers.shape.longest)
        for part in self.change(tasks.sweep, tables, key, by_cell):
            moved.add(part)
        return moved

    def labels(self) -> np.ndarray:
        return np.concatenate(self.look(tasks.labels))

    def put_labels(self, z: np.ndarray) -> None:
        flat = z.reshape(-1)
        spans = [self.cached.span(slice(*where.rows)) for where in self.workers.blocks]
        self.change(tasks.put_all, each={b: (flat[span],) for b, span in enumerate(spans)})

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        order = np.argsort(rows, kind="stable")
        found = self.look(tasks.take, each={b: (some,) for b, some in self.cached.by_block(rows[order])})
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

    held = np.zeros(0, dtype=np.int64)

    def hold(self, held: np.ndarray) -> None:
        self.held = held
        rows = [slice(*where.rows) for where in self.workers.blocks]
        self.change(tasks.hold, each={b: (held[some] if len(held) else held,) for b, some in enumerate(rows)})

    # --- means ------------------------------------------------------------------------------------------------------------

    @property
    def memberships(self) -> Mapped:
        """In a file, which the workers write now."""
        return self.written("memberships", former=False)

    def former_memberships(self) -> Mapped:
        return self.written("shown", former=True)

    def written(self, name: str, former: bool) -> Mapped:
        mean = Mapped.create(self.folder / f"{self.chain}.{name}", np.float32, (len(self.cached), self.S))
        self.look(tasks.write_mean, mean.path, former)
        return mean

    def new_means(self, keep_former: bool = False) -> None:
        self.change(tasks.new_mean, keep_former)

    def drop_former(self) -> None:
        self.change(tasks.drop_former)

    def overlap(self) -> np.ndarray:
        return np.sum(self.look(tasks.overlap), axis=0)

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        self.change(tasks.add_mean, hyper, to, weight)

    # --- checkpoints ------------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """The number of the files that have the states. Those of the checkpoint before stay until the next one."""
        before = self.kept
        self.cut()
        for path in self.folder.glob(f"{self.chain}.states.*"):
            number = int(path.name.rpartition(".")[2])
            self.drop(number, but=before if number != self.number else number)
        self.kept = self.number
        return {"snapshot": np.array(self.number)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.number = self.kept = int(arrays["snapshot"])
        if not Path(self.path(0, self.number)).exists():
            raise ValueError(f"The rows of the checkpoint are not in {str(self.folder)!r}; delete the checkpoint.")
        self.go_on_from(self.number)


class ClusterCandidates:
    """All rows as a catalogue: a task for each block."""

    def __init__(self, workers: Workers, cached: Cached, log_weight: np.ndarray | Mapped, most: int):
        self.workers, self.cached, self.most = workers, cached, most
        self.log_weight = log_weight  # (N, 1), or (1, 1) if all are equal

    def score(self, copies: Copies, key: np.uint64) -> Best:
        workers, S = self.workers, copies.top.shape[1]
        best = Best.none(S, self.most)
        n = len(workers.blocks)
        same = {"shape": workers.shape, "log_weight": self.log_weight, "copies": copies, "row_key": key}
        for score, row in workers.gather(workers.submit(tasks.score, range(n), workers.blocks, **same)):
            better = (score > best.score) | ((score == best.score) & (row < best.row))
            best.score[better], best.row[better] = score[better], row[better]
        for s, m in enumerate(best.row.tolist()):
            codes = self.cached.candidate_cells(slice(m, m + 1)).codes
            best.codes[s, : len(codes)] = codes
            best.log_weight[s] = self.log_weight[:][0, 0] if len(self.log_weight) == 1 else self.log_weight[m : m + 1][0, 0]
        return best


class ClusterEngine:
    """Rows and candidates of a run on the workers of a cluster; tables are made here."""

    chains_at_once = 1

    def __init__(self, client: Any, cached: Cached, data: Data, log_weight: np.ndarray | Mapped, folder: Path, S: int):
        self.cached, self.folder = cached, folder
        self.threads = Threads(data, S)
        self.workers = Workers(client, cached, Shape(data.offset, data.book.n_single, S, longest(data.cells)))
        self.candidates: Candidates = (
            ClusterCandidates(self.workers, cached, log_weight, longest(data.candidate_cells))
            if data.own_cases
            else CpuCandidates(self.threads, data)
        )

    def rows(self, chain: int) -> ClusterRows:
        """The rows of a chain, whose labels are not yet set."""
        return ClusterRows(self.workers, self.cached, self.folder, chain)

    def close(self) -> None:
        self.threads.close()
