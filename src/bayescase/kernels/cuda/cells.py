"""Codes of cases and candidates on a GPU, or lent to it block by block; and what kernels are compiled for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from ...state import Cells, Codebook, Codes, chunks, has_gaps, smallest_int
from ..cpu.tables import lanes_for
from .machine import SWEEPING, THREADS, Kind, Machine

FOR_TWO = 110 << 10  # bytes of shared memory of a block, so that two fit
BATCH = 1 << 26  # cells that are sent at a time
AT_ONCE = 2  # blocks on the device, if it has not all of them: one is copied while the kernels are at the other


class CodeBlock(NamedTuple):
    """Some neighbouring rows."""

    rows: slice
    cells: slice
    x: Any
    first: Any
    observed: Any


class DeviceCells:
    """Codes of cases or candidates: packed, feature by feature; or flat, if rows differ in length.

    They are on the device; or, if it cannot hold all of them, in `parts` here, each of which it gets when its turn comes.
    """

    def __init__(
        self,
        machine: Machine,
        codes: Codes,
        book: Codebook,
        S: int,
        parts: Sequence[slice] = (),
        sources: Sequence[str] = SWEEPING,
        gaps: bool | None = None,
        width: int | None = None,
    ):
        self.machine, self.n, self.book, self.resident = machine, codes.n_rows, book, not parts
        cells = codes.cells
        self.ragged, self.n_values = codes.bags is not None, int(book.offset[-1])
        self.width = codes.longest if width is None else width  # of the longest row, here or anywhere
        self.gaps = has_gaps(cells.codes) if gaps is None else gaps
        self.code_bits, self.base = (32, machine.xp.zeros(4, np.int32)) if self.ragged else self.layout()
        self.blocks = [self.block(codes, cells, rows) for rows in parts or [slice(0, self.n)]]
        self.launch = machine.compile(self.kind(machine, S).text(sources))

    def layout(self) -> tuple[int, Any]:
        """(bits of a code within its feature, the row of a table that code 0 of each feature is at)."""
        offset = self.book.offset[: self.width + 1]
        widest = int(np.diff(offset).max(initial=1)) + self.gaps
        base = np.zeros(max(-(-self.width // 4) * 4, 4), dtype=np.int32)
        base[: self.width] = offset[:-1] if self.gaps else offset[:-1] + 1
        return 8 if widest <= 1 << 8 else 16 if widest <= 1 << 16 else 32, self.machine.xp.asarray(base)

    def block(self, codes: Codes, cells: Cells, rows: slice) -> CodeBlock:
        """A part of the rows, made on the device."""
        xp, part = self.machine.xp, slice(int(cells.first[rows.start]), int(cells.first[rows.stop]))
        first, observed = xp.zeros(1, np.int64), xp.zeros(1, np.int32)
        if self.ragged:
            own = cells.part(rows)
            x, first = xp.asarray(own.codes.astype(np.int32)), xp.asarray(own.first.astype(np.int64))
            gone = np.searchsorted(own.first, np.flatnonzero(own.codes < 0), side="right") - 1
            observed = xp.asarray((own.sizes - np.bincount(gone, minlength=len(own.sizes))).astype(np.int32))
        else:
            x, observed = self.pack(codes.x[rows])
        if self.resident:
            return CodeBlock(rows, part, x, first, observed)
        return CodeBlock(rows, part, *(self.machine.park(array) for array in (x, first, observed)))

    def pack(self, x: np.ndarray) -> tuple[Any, Any]:
        """Codes within their features, several to a word; with gaps 0 is a missing one. Word w of row i is x[w, i]."""
        xp, (n, width) = self.machine.xp, x.shape
        padded = -(-width // 4) * 4
        code = np.dtype(f"uint{self.code_bits}")
        packed = xp.empty((padded * self.code_bits // 32, n), dtype=np.uint32)
        observed = xp.empty(n if self.gaps else 1, dtype=np.int32)
        first = xp.asarray(self.book.offset[:width].astype(np.int32))
        for rows in chunks(n, width, max(width, min(BATCH, self.machine.free_bytes() // 64))):
            part = xp.asarray(np.ascontiguousarray(x[rows]))
            codes = xp.zeros((len(part), padded), dtype=code)
            if self.gaps:
                codes[:, :width] = xp.where(part < 0, 0, part - first + 1)
                observed[rows] = (part >= 0).sum(axis=1)
            else:
                codes[:, :width] = part - first
            packed[:, rows] = codes.view(np.uint32).T
        return packed, observed

    def kind(self, machine: Machine, S: int) -> Kind:
        lanes, quads = lanes_for(S), -(-S // 4)
        stride = 4 * (quads + 1 - quads % 2)
        table, leave = (self.n_values + 1) * stride * 4, (self.n_values + 1) * S * 4
        counts, rest = S * (self.width + 1) * 4, S * 20 + 64 + (0 if self.ragged else self.width * 4 + 16)
        shared_table = not self.ragged and 2 * table + rest <= min(2 * FOR_TWO - 4096, machine.shared)
        by_bytes = shared_table and S <= 64 and not self.gaps  # as by_bytes() in single.cu
        shared_counts = counts <= 16 << 10
        words = -(-S // 16)
        costs = (self.n_values + 1) * 16 * (words + 1 - words % 2) + 16 if by_bytes else 0
        taken = table * shared_table + counts * shared_counts + rest + (costs if self.width <= 64 else 0)
        shared_leave = not self.ragged and taken + leave <= FOR_TWO
        self.score_bytes = (S * 20 + 15) // 16 * 16 + table * shared_table + costs + rest
        self.single_bytes = taken + leave * shared_leave
        self.pair_bytes = S * S * 4 if S * S * 4 <= FOR_TWO else 0
        a_row = -(-self.width // 4) * 64 + lanes * 24 + 64  # as Row::bytes
        self.row_bytes = a_row * THREADS // 32 if a_row * THREADS // 32 <= FOR_TWO else 0
        self.far_bytes = 0 if self.row_bytes else a_row * (machine.most_blocks * THREADS // 32)
        label = "unsigned char" if smallest_int(S) == np.uint8 else "unsigned short"
        return Kind(
            S,
            lanes,
            stride,
            self.ragged,
            self.gaps,
            self.code_bits,
            label,
            shared_table,
            shared_leave,
            shared_counts,
            self.pair_bytes > 0,
            self.row_bytes > 0,
        )

    def args(self, block: CodeBlock) -> tuple[Any, ...]:
        """What every kernel gets first, of rows that are on the device now."""
        x, first, observed = block.x, block.first, block.observed
        if not self.resident:
            x, first, observed = (self.machine.lend(array) for array in (x, first, observed))
        return x, first, self.base, observed, np.int64(block.rows.stop - block.rows.start), np.int32(self.width)


class Workers:
    """Whoever works on blocks: one if all are on the device; else several, each with a stream and a desk of its own."""

    def __init__(self, machine: Machine, cells: DeviceCells, make: Callable[[], Any]):
        self.machine, self.cells = machine, cells
        self.desks = [make() for _ in range(1 if cells.resident else AT_ONCE)]
        self.pool = ThreadPoolExecutor(len(self.desks))  # its threads go with it
        self.free: SimpleQueue[int] = SimpleQueue()
        for number in range(len(self.desks)):
            self.free.put(number)

    def each(self, work: Callable[[Any, CodeBlock], None]) -> None:
        """work(desk, block) for every block."""
        if self.cells.resident:
            work(self.desks[0], self.cells.blocks[0])
            return

        def task(block: CodeBlock) -> None:
            number = self.free.get()
            try:
                with self.machine.stream(number):
                    work(self.desks[number], block)
            finally:
                self.free.put(number)

        tasks = [self.pool.submit(task, block) for block in self.cells.blocks]
        wait(tasks)  # also for those beside one that fails
        for done in tasks:
            done.result()
