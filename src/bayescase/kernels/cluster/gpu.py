"""The GPU of a worker: blocks of rows swept and scored by the kernels of `kernels/cuda`, with the integers of the processors.

Labels go to the device and back with every task, which must not change what it was given. Codes stay there for as long as the
worker has them.
"""

from __future__ import annotations

import weakref
from threading import Lock

import numpy as np

from ...errors import ParameterError
from ...state import Cells, Codes, Data, make_book, split_cells
from ..contract import Moved
from ..cpu.tables import Copies, Tables
from ..cuda.cells import DeviceCells
from ..cuda.engine import CudaCandidates, cut_rows, fits
from ..cuda.machine import Cuda, Machine, is_there, lost_memory
from ..cuda.rows import CudaRows
from .blocks import BlockRows, BlockState, Shape

OPEN: dict[str, Device | None] = {}  # devices of this process, by name
OPENING = Lock()


def device_of(name: str) -> Device | None:
    """The GPU of this worker, opened once; None if its processors are to be used."""
    with OPENING:
        if name not in OPEN:
            wanted = name != "cpu" and (name != "auto" or is_there())
            OPEN[name] = Device(Cuda("cuda" if name == "auto" else name)) if wanted else None
    return OPEN[name]


def refusal(name: str) -> str | None:
    """Why this worker cannot use the GPU: a sentence; None if it can."""
    try:
        device_of(name)
    except ParameterError as error:
        return str(error)
    return None


class Device:
    """A GPU, and codes of blocks that are there. One task at a time uses it."""

    def __init__(self, machine: Machine):
        self.machine, self.lock = machine, Lock()
        self.there: dict[tuple[int, int], tuple[Data, DeviceCells]] = {}

    def sweep(
        self, rows: BlockRows, state: BlockState, shape: Shape, tables: Tables, key: np.uint64, by_cell: bool
    ) -> tuple[BlockState, Moved]:
        with self.lock, lost_memory():
            data, cells = self.block(rows.cells, rows, shape, catalogue=False)
            there = CudaRows(self.machine, cells, data._replace(z_held=state.held), shape.S, rows.number)
            there.fill(there.z, state.z)
            there.fill(there.one, state.one)
            moved = there.update_z(tables, key, by_cell)
            return state._replace(z=there.copy_of(there.z), one=there.copy_of(there.one).astype(state.one.dtype)), moved

    def score(
        self, rows: BlockRows, shape: Shape, log_weight: np.ndarray, copies: Copies, key: np.uint64
    ) -> tuple[np.ndarray, np.ndarray]:
        """(score, row) of the best candidate of the block for each cluster."""
        with self.lock, lost_memory():
            data, cells = self.block(rows.once, rows, shape, catalogue=True)
            there = CudaCandidates(self.machine, cells, data._replace(log_weight=log_weight), shape.S, 1, rows.number)
            best, scores = there.find_best(copies, key)
        return scores, best + rows.number

    def block(self, of: Cells, rows: BlockRows, shape: Shape, catalogue: bool) -> tuple[Data, DeviceCells]:
        """The codes of a block on the device, or here, if it cannot hold them, to be lent to it part by part."""
        self.machine.use()
        key = (id(of.codes), shape.S)
        if key not in self.there:
            codes = Codes(of.codes.reshape(rows.size, rows.width)) if rows.width else split_cells(of, shape.n_single)
            book, none, weight = make_book(shape.offset, shape.n_single), np.zeros(0, dtype=np.int64), np.zeros((rows.size, 1))
            data = Data(codes.x, codes.x, book, weight, none, none.reshape(0, 0), codes.bags, codes.bags)
            if not fits(self.machine, data, shape.S, 1):
                self.there.clear()
            parts = [] if fits(self.machine, data, shape.S, 1) else cut_rows(self.machine, data, shape.S, 1, catalogue)
            found = DeviceCells(self.machine, codes, data.book, shape.S, parts, width=shape.longest)
            self.there[key] = (data, found)
            weakref.finalize(of.codes, self.there.pop, key, None)
        return self.there[key]
