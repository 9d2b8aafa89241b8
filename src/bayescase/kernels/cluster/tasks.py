"""What a worker does with a block of rows: pure functions, (codes, labels, tables, key) → (labels, counts).

A task may run on any worker, and twice: it depends on its arguments alone, and gives the same integers everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...state import Cells, Hyper, make_book, smallest_int
from ...storage import Mapped, replacing
from ..contract import Counts, Moved
from ..cpu.engine import NONE, Block
from ..cpu.means import add_memberships, add_overlap, fill_counts, find_single, spell_out
from ..cpu.rows import score_p, update_z
from ..cpu.tables import Copies, Scratch, Tables, make_scratch
from ..disk.blocks import NO_LABELS, put_held, put_rows, take_rows


class Where(NamedTuple):
    """A block of rows in files that every worker can read."""

    codes: Mapped
    first: Mapped | None  # of rows that differ in length
    candidate_codes: Mapped
    candidate_first: Mapped | None
    rows: tuple[int, int]
    width: int
    gaps: bool

    @property
    def size(self) -> int:
        return self.rows[1] - self.rows[0]

    def cells(self, candidates: bool = False) -> Cells:
        codes, first = (self.candidate_codes, self.candidate_first) if candidates else (self.codes, self.first)
        lo, hi = self.rows
        if first is None:
            return Cells(codes[lo * self.width : hi * self.width], NONE)
        starts = first[lo : hi + 1]
        return Cells(codes[int(starts[0]) : int(starts[-1])], starts - starts[0])


class Shape(NamedTuple):
    """Sizes that tasks need."""

    offset: np.ndarray
    n_single: int
    S: int
    longest: int

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

    def block(self, where: Where) -> Block:
        (codes, first), lo = where.cells(), where.rows[0]
        return Block(codes, self.z, self.one, first, self.held, where.size, where.width, lo, where.gaps)


def on_block(where: Where, state: Any, args: tuple[Any, ...], what: Callable[..., Any], shape: Shape) -> Any:
    """What a function of this file makes of a block: its result, or (new state, result) if it changes labels or means."""
    return what(where, state, shape, *args)


def result_of(changed: tuple[BlockState, Any]) -> Any:
    return changed[1]


def state_of(given: Any) -> BlockState:
    """A state, alone or with the result of the task that made it."""
    return BlockState(*map(writable, given if isinstance(given, BlockState) else given[0]))


def writable(array: np.ndarray) -> np.ndarray:
    """What came from another process cannot be written, and kernels are compiled for memory that can."""
    return array if array.flags.writeable else array.copy()


# --- labels ----------------------------------------------------------------------------------------------------------------


def begin(where: Where, shape: Shape, labels_of: Callable[[slice, Cells], np.ndarray]) -> BlockState:
    """The first labels of a block."""
    cells = where.cells()
    if where.width:
        cells = Cells(cells.codes, np.arange(where.size + 1, dtype=np.int64) * where.width)
    z = labels_of(slice(*where.rows), cells).astype(smallest_int(shape.S), copy=False)
    return with_labels(where, shape, z, np.zeros((where.size, shape.S), dtype=np.float32))


def with_labels(where: Where, shape: Shape, z: np.ndarray, mean: np.ndarray) -> BlockState:
    none = np.zeros((0, shape.S), dtype=np.float16)
    state = BlockState(z, np.full(where.size, -1), mean, none, NONE)
    find_single(state.block(where))
    return state


def sweep(where: Where, given: Any, shape: Shape, tables: Tables, key: np.uint64, by_cell: bool) -> tuple[BlockState, Moved]:
    state, scratch = state_of(given).copy(), shape.scratch()
    block, tables = state.block(where), Tables(*map(writable, tables))
    update_z(block, tables, by_cell, key, scratch.row, scratch.tally, scratch.sums, 0, block.size)
    return state, Moved(*scratch.tally)


def count(where: Where, given: Any, shape: Shape, n_values: int) -> Counts:
    counts = Counts(np.zeros((n_values, shape.S), dtype=np.int32), np.zeros((shape.S, shape.longest + 1), dtype=np.int64))
    fill_counts(state_of(given).block(where), *counts)
    return counts


def labels(where: Where, given: Any, shape: Shape) -> np.ndarray:
    state = state_of(given).copy()
    spell_out(state.block(where))
    return state.z


def put_all(where: Where, given: Any, shape: Shape, z: np.ndarray) -> tuple[BlockState, None]:
    return with_labels(where, shape, z, state_of(given).mean), None


def take(where: Where, given: Any, shape: Shape, some: np.ndarray) -> tuple[Cells, np.ndarray]:
    return take_rows(state_of(given).block(where), some)


def put(where: Where, given: Any, shape: Shape, some: np.ndarray, z: Cells) -> tuple[BlockState, None]:
    state = state_of(given).copy()
    put_rows(state.block(where), some, z)
    return state, None


def hold(where: Where, given: Any, shape: Shape, held: np.ndarray) -> tuple[BlockState, None]:
    state = state_of(given).copy()._replace(held=held)
    put_held(state.block(where))
    return state, None


# --- means -----------------------------------------------------------------------------------------------------------------


def new_mean(where: Where, given: Any, shape: Shape, keep_former: bool) -> tuple[BlockState, None]:
    state = state_of(given)
    former = state.mean.astype(np.float16) if keep_former else state.former[:0]
    return state._replace(mean=np.zeros_like(state.mean), former=former), None


def drop_former(where: Where, given: Any, shape: Shape) -> tuple[BlockState, None]:
    state = state_of(given)
    return state._replace(former=state.former[:0]), None


def overlap(where: Where, given: Any, shape: Shape) -> np.ndarray:
    state, total = state_of(given), np.zeros((shape.S, shape.S))
    add_overlap(state.block(where), state.mean, total)
    return total


def add_mean(where: Where, given: Any, shape: Shape, hyper: Hyper, to: np.ndarray, weight: float) -> tuple[BlockState, None]:
    state = state_of(given)
    state = state._replace(mean=state.mean.copy())
    block = state.block(where)
    add_memberships(block, hyper.alpha, writable(hyper.beta), writable(to), weight, state.mean, 0, block.size)
    return state, None


def write_mean(where: Where, given: Any, shape: Shape, path: str, former: bool) -> None:
    """The means of the rows to their place in a file. Written, not mapped: neighbours are written from other machines."""
    state = state_of(given)
    mean = state.mean
    if former:
        mean = state.former.astype(np.float32)
        mean /= mean.sum(axis=1, keepdims=True)
    with open(path, "r+b") as file:
        file.seek(where.rows[0] * shape.S * mean.itemsize)
        file.write(np.ascontiguousarray(mean).data)


# --- candidates ------------------------------------------------------------------------------------------------------------


def score(where: Where, shape: Shape, log_weight: Any, copies: Copies, row_key: np.uint64) -> tuple[np.ndarray, np.ndarray]:
    """(score, row) of the best candidate of the block for each cluster."""
    cells, best = where.cells(candidates=True), shape.scratch().best
    lo, hi = where.rows
    weight = np.full((hi - lo, 1), log_weight[:][0, 0]) if len(log_weight) == 1 else log_weight[lo:hi]
    block = Block(cells.codes, NO_LABELS, NONE, cells.first, NONE, hi - lo, where.width, lo, where.gaps)
    score_p(block, weight, Copies(*map(writable, copies)), row_key, best, 0, block.size)
    return best.score, best.row + lo


# --- what outlives workers -------------------------------------------------------------------------------------------------


def store(where: Where, given: Any, shape: Shape, path: str) -> str:
    """The state of a block in a file; from there it goes on without what it was made of."""
    state = state_of(given)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with replacing(Path(path)) as file:
        for array in state:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
    return path


def fetch(path: str) -> BlockState:
    with open(path, "rb") as file:
        return BlockState(*(np.lib.format.read_array(file, allow_pickle=False) for _ in BlockState._fields))
