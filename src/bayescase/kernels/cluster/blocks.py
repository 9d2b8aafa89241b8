"""A block of rows in the memory of a worker: where it is read from, its codes, and what a chain has drawn for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...state import Cells, make_book
from ...storage import Mapped
from ..cpu.engine import Block
from ..cpu.tables import Scratch, make_scratch


class Where(NamedTuple):
    """A block of rows in files that every worker can read."""

    codes: Mapped
    first: Mapped | None  # of rows that differ in length
    candidate_codes: Mapped
    candidate_first: Mapped | None
    rows: tuple[int, int]
    cells: tuple[int, int]
    width: int
    gaps: bool


class BlockRows(NamedTuple):
    """The codes of a block, in the memory of a worker."""

    cells: Cells
    once: Cells  # as candidates: every item of a bag once
    number: int  # of the first row among all
    size: int
    width: int
    gaps: bool


class Shape(NamedTuple):
    """Sizes that tasks need."""

    offset: np.ndarray
    n_single: int
    S: int
    longest: int
    device: str = "cpu"  # of each worker, by its name there

    def scratch(self) -> Scratch:
        return make_scratch(make_book(self.offset, self.n_single), self.S, self.longest)


class BlockState(NamedTuple):
    """What a chain has drawn for the rows of a block, and the running means of their memberships."""

    z: np.ndarray
    one: np.ndarray
    mean: np.ndarray  # (size, S) float32
    former: np.ndarray  # the mean before, float16; (0, S) if there is none
    held: np.ndarray  # (size,) or (0,)

    def copy(self) -> BlockState:
        """One whose labels may be written: results of tasks are shared."""
        return self._replace(z=self.z.copy(), one=self.one.copy())

    def block(self, rows: BlockRows) -> Block:
        codes, first = map(writable, rows.cells)
        return Block(codes, self.z, self.one, first, self.held, rows.size, rows.width, rows.number, rows.gaps)


def writable(array: np.ndarray) -> np.ndarray:
    """What came from another process may be read only, and kernels are compiled for memory that can be written."""
    return array if array.flags.writeable else array.copy()
