"""A disk as an engine: codes, labels and memberships in files, a block of rows in memory for each thread.

The kernels are those of the CPU, and a block knows the number of its first row: so the integers are those of a fit in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ...reading.cache import Cached
from ...state import Cells, Data, Hyper, smallest_int, spread
from ...storage import Mapped, copy_file
from ..contract import Best, Candidates, Counts, Meanwhile, Moved
from ..cpu.engine import NONE, Block, CpuCandidates
from ..cpu.means import OVERLAP_UNIT, add_memberships, add_overlap, add_z_counts, find_single, spell_out
from ..cpu.rows import score_p, update_z
from ..cpu.tables import Copies, Scratch, Tables
from ..cpu.threads import Part, Threads
from .blocks import NO_LABELS, cells_of, join_taken, put_held, put_rows, rows_of, take_rows


class DiskRows:
    """One chain's rows. `z` has a label for every cell, `one` that of each row with only one, or -1."""

    device = "cpu"

    def __init__(self, threads: Threads, cached: Cached, folder: Path, chain: int, sizes: tuple[int, int]):
        self.threads, self.cached, self.folder, self.chain = threads, cached, folder, chain
        self.S, self.longest = sizes
        self.held = NONE
        N, kind = len(cached), np.int16 if smallest_int(self.S).itemsize == 1 else np.int32
        self.z = Mapped.create(self.file("z"), smallest_int(self.S), (cached.about.n_cells,))
        self.one = Mapped.create(self.file("one"), kind, (N,))
        self.memberships = Mapped.create(self.file("memberships"), np.float32, (N, self.S))
        self.former: Mapped | None = None

    def file(self, name: str) -> Path:
        return self.folder / f"{self.chain}.{name}"

    @property
    def blocks(self) -> list[Part]:
        """One for each thread to take next."""
        return [(b, b + 1) for b in range(self.cached.n_blocks)]

    @contextmanager
    def block(self, b: int, changes: bool = False) -> Iterator[Block]:
        """The rows of a block; what changes in them is written back."""
        cached, rows = self.cached, self.cached.rows(b)
        cells, z, one = cached.cells(rows), self.z[cached.span(rows)], self.one[rows]
        labels = one.copy()
        held = self.held[rows] if len(self.held) else NONE
        yield Block(
            cells.codes,
            z,
            labels,
            cells.first,
            held,
            rows.stop - rows.start,
            cached.width,
            rows.start,
            cached.about.gaps[b],
        )
        if changes:
            one[:] = labels

    def each_block(self, work: Callable[[Block], None], changes: bool = False) -> None:
        """One block after the other, here."""
        for b in range(self.cached.n_blocks):
            with self.block(b, changes) as block:
                work(block)

    def recount(self, n_values: int) -> Counts:
        counts = Counts.none(n_values, self.S, self.longest)

        def work(scratch: Scratch, b: int, _: int) -> None:
            scratch.tally.clear()
            with self.block(b) as block:
                add_z_counts(block, scratch.row.n, scratch.tally.delta, scratch.tally.n_rows, 0, block.size)

        self.threads.each(self.blocks, work, lambda scratch: counts.add(scratch.tally))
        return counts

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        moved = Moved.none(tables.leave.shape[1] - 1, self.S, self.longest)

        def work(scratch: Scratch, b: int, _: int) -> None:
            scratch.tally.clear()
            with self.block(b, changes=True) as block:
                update_z(block, tables, by_cell, key, scratch.row, scratch.tally, scratch.sums, 0, block.size)

        self.threads.each(self.blocks, work, lambda scratch: moved.add(scratch.tally))
        return moved

    # --- means --------------------------------------------------------------------------------------------------------

    def new_means(self, keep_former: bool = False) -> None:
        self.drop_former()
        if keep_former:
            self.former = Mapped.create(self.file("former"), np.float16, self.memberships.shape)
        for b in range(self.cached.n_blocks):
            rows = self.cached.rows(b)
            if self.former is not None:
                self.former[rows] = self.memberships[rows]
            self.memberships[rows] = 0.0

    def drop_former(self) -> None:
        if self.former is not None:
            os.unlink(self.former.path)
        self.former = None

    def former_memberships(self) -> Mapped:
        assert self.former is not None
        shown = Mapped.create(self.file("shown"), np.float32, self.former.shape)
        for b in range(self.cached.n_blocks):
            rows = self.cached.rows(b)
            mean = self.former[rows].astype(np.float32)
            shown[rows] = mean / mean.sum(axis=1, keepdims=True)
        return shown

    def overlap(self) -> np.ndarray:
        totals: list[np.ndarray] = []

        def work(scratch: Scratch, b: int, _: int) -> None:
            total = np.zeros((self.S, self.S), dtype=np.int64)
            with self.block(b) as block:
                mean = self.memberships[rows_of(block)]
                add_overlap(block, mean, scratch.row.n, scratch.row.used, total, 0, block.size)
            totals.append(total)

        self.threads.each(self.blocks, work)
        return sum(totals) / OVERLAP_UNIT

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        def work(scratch: Scratch, b: int, _: int) -> None:
            n, used = scratch.row.n, scratch.row.used
            with self.block(b) as block:
                mean = self.memberships[rows_of(block)]
                add_memberships(block, hyper.alpha, hyper.beta, to, weight, mean, n, used, 0, block.size)

        self.threads.each(self.blocks, work)

    # --- labels -------------------------------------------------------------------------------------------------------

    def start(self, labels_of: Callable[[slice, Cells], np.ndarray]) -> None:
        def begin(block: Block) -> None:
            cells = cells_of(block)
            block.z[:] = spread(labels_of(rows_of(block), cells), cells, block.width)
            find_single(block)

        self.each_block(begin, changes=True)

    def single(self) -> np.ndarray:
        return np.asarray(self.one)

    def labels(self) -> np.ndarray:
        """All in memory."""
        self.each_block(spell_out)
        return np.asarray(self.z)

    def put_labels(self, z: np.ndarray) -> None:
        flat = z.reshape(-1)

        def put(block: Block) -> None:
            block.z[:] = flat[self.cached.span(rows_of(block))]
            find_single(block)

        self.each_block(put, changes=True)

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        order, found = np.argsort(rows, kind="stable"), []
        for b, some in self.cached.by_block(rows[order]):
            with self.block(b) as block:
                found.append(take_rows(block, some))
        cells, z = join_taken(found, order, self.cached.codes.dtype, self.z.dtype)
        return cells, z, self.held[rows] if len(self.held) else np.full(len(rows), -1)

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        order, sizes = np.argsort(rows, kind="stable"), self.take(rows)[0].sizes
        given, at = Cells(z, np.concatenate([[0], np.cumsum(sizes)])), 0
        for b, some in self.cached.by_block(rows[order]):
            with self.block(b, changes=True) as block:
                put_rows(block, some, given.take(order[at : at + len(some)]))
            at += len(some)

    def hold(self, held: np.ndarray) -> None:
        self.held = held

        self.each_block(put_held, changes=True)

    # --- what outlives the process --------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """Copies of the files, which a sweep changes in place; returns their number. Those of the checkpoint before stay."""
        numbers = self.snapshots()
        for number in numbers[:-1]:
            self.drop_snapshot(number)
        number = numbers[-1] + 1 if numbers else 0
        try:
            for name, array in self.kept().items():
                copy_file(array.path, self.file(f"{name}.{number}"))
        except BaseException:
            self.drop_snapshot(number)
            raise
        return {"snapshot": np.array(number)}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        number = int(arrays["snapshot"])
        for name, array in self.kept().items():
            source = self.file(f"{name}.{number}")
            if not source.exists() or source.stat().st_size != array.nbytes:
                raise ValueError(f"The rows of the checkpoint are not in {os.fspath(self.folder)!r}; delete the checkpoint.")
            copy_file(source, array.path)
        for other in self.snapshots():
            if other != number:
                self.drop_snapshot(other)

    def kept(self) -> dict[str, Mapped]:
        return {"z": self.z, "one": self.one, "memberships": self.memberships}

    def snapshots(self) -> list[int]:
        """Numbers of the copies that are there, in rising order."""
        names = (path.name.rpartition(".")[2] for path in self.folder.glob(f"{self.chain}.z.*"))
        return sorted(int(name) for name in names if name.isdecimal())

    def drop_snapshot(self, number: int) -> None:
        for name in self.kept():
            self.file(f"{name}.{number}").unlink(missing_ok=True)


class DiskCandidates:
    """All rows as a catalogue."""

    def __init__(self, threads: Threads, cached: Cached, log_weight: np.ndarray | Mapped, most: int):
        self.threads, self.cached, self.most = threads, cached, most
        self.log_weight = log_weight  # (N, 1), or (1, 1) if all are equal

    def weights_of(self, p: np.ndarray) -> np.ndarray:
        return np.array([self.weights(slice(m, m + 1))[0, 0] for m in p.tolist()])

    def score(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> Best:
        S, cached = copies.top.shape[1], self.cached
        best = Best.none(S, self.most)

        def work(scratch: Scratch, b: int, _: int) -> None:
            rows = cached.rows(b)
            cells, size = cached.candidate_cells(rows), rows.stop - rows.start
            gaps = cached.about.gaps[b]
            block = Block(cells.codes, NO_LABELS, NONE, cells.first, NONE, size, cached.width, rows.start, gaps)
            score_p(block, self.weights(rows), copies, key, scratch.best, 0, size)
            scratch.best.row[:] += rows.start

        blocks = [(b, b + 1) for b in range(cached.n_blocks)]
        self.threads.each(blocks, work, lambda scratch: best.offer(scratch.best.score, scratch.best.row))
        for s, m in enumerate(best.row.tolist()):
            codes = cached.candidate_cells(slice(m, m + 1)).codes
            best.codes[s, : len(codes)] = codes
        return best

    def weights(self, rows: slice) -> np.ndarray:
        if len(self.log_weight) == 1:
            return np.full((rows.stop - rows.start, 1), self.log_weight[:][0, 0])
        return self.log_weight[rows]


class DiskEngine:
    """Rows and candidates of a run in files; chains one after the other, the blocks of each on threads."""

    chains_at_once = 1

    def __init__(self, cached: Cached, data: Data, log_weight: np.ndarray | Mapped, folder: Path, S: int, n_jobs: int):
        self.cached, self.data, self.folder, self.S = cached, data, folder, S
        self.threads = Threads(data, S, n_jobs, n_jobs)
        self.candidates: Candidates = (
            DiskCandidates(self.threads, cached, log_weight, data.catalogue.longest)
            if data.own_cases
            else CpuCandidates(self.threads, data)
        )

    def rows(self, chain: int) -> DiskRows:
        """The rows of a chain, whose labels are not yet set."""
        return DiskRows(self.threads, self.cached, self.folder, chain, (self.S, self.data.cases.longest))

    def close(self) -> None:
        self.threads.close()
