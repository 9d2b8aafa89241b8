"""What a worker does with a block of rows: pure functions, (codes, labels, tables, key) → (labels, counts).

A task may run on any worker, and twice: it depends on its arguments alone, and gives the same integers everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...state import Cells, Hyper, smallest_int, spread
from ...storage import Mapped
from ..contract import Counts, Moved
from ..cpu.engine import NONE, Block
from ..cpu.means import add_memberships, add_overlap, add_z_counts, find_single, spell_out
from ..cpu.rows import score_p, update_z
from ..cpu.tables import Copies, Tables
from ..disk.blocks import NO_LABELS, put_held, put_rows, take_rows
from .blocks import BlockRows, BlockState, Shape, Where, writable
from .gpu import device_of


def read_rows(where: Where) -> BlockRows:
    lo, hi = where.rows
    cells = read_cells(where, where.codes, where.first)
    own = where.candidate_codes.path == where.codes.path
    once = cells if own else read_cells(where, where.candidate_codes, where.candidate_first)
    return BlockRows(cells, once, lo, hi - lo, where.width, where.gaps)


def read_cells(where: Where, codes: Mapped, first: Mapped | None) -> Cells:
    """Read, not mapped: they stay in memory, whatever becomes of the file."""
    lo, hi = where.rows
    if first is None:
        return Cells(read_part(codes, *where.cells), NONE)
    starts = read_part(first, lo, hi + 1)
    return Cells(read_part(codes, int(starts[0]), int(starts[-1])), starts - starts[0])


def on_block(what: Callable[..., Any], shared: tuple[Any, ...], rows: BlockRows, given: Any, own: tuple[Any, ...]) -> Any:
    """What a function of this file makes of a block: its result, or (new state, result) if it changes labels or means."""
    shape, *args = shared
    return what(rows, state_of(given), shape, *args, *own)


def result_of(changed: tuple[BlockState, Any]) -> Any:
    return changed[1]


def state_of(given: Any) -> BlockState:
    """A state, alone or with the result of the task that made it."""
    return BlockState(*map(writable, given if isinstance(given, BlockState) else given[0]))


# --- labels ----------------------------------------------------------------------------------------------------------------


def begin(rows: BlockRows, shape: Shape, labels_of: Callable[[slice, Cells], np.ndarray]) -> BlockState:
    """The first labels of a block."""
    cells = Cells(*map(writable, rows.cells))
    if rows.width:
        cells = cells._replace(first=np.arange(rows.size + 1, dtype=np.int64) * rows.width)
    labels = labels_of(slice(rows.number, rows.number + rows.size), cells)
    z = spread(labels, cells, rows.width).astype(smallest_int(shape.S), copy=False)
    none = np.zeros((0, shape.S), dtype=np.float16)
    return with_labels(rows, BlockState(z, NONE, np.zeros((rows.size, shape.S), dtype=np.float32), none, NONE), z)


def with_labels(rows: BlockRows, state: BlockState, z: np.ndarray) -> BlockState:
    state = state._replace(z=writable(z), one=np.full(rows.size, -1))
    find_single(state.block(rows))
    return state


def sweep(rows: BlockRows, state: BlockState, shape: Shape, tables: Tables, key: np.uint64, by_cell: bool) -> tuple[Any, Moved]:
    device = device_of(shape.device)
    if device is not None:
        return device.sweep(rows, state, shape, tables, key, by_cell)
    state, scratch = state.copy(), shape.scratch()
    block, tables = state.block(rows), Tables(*map(writable, tables))
    update_z(block, tables, by_cell, key, scratch.row, scratch.tally, scratch.sums, 0, block.size)
    return state, Moved(*scratch.tally)


def count(rows: BlockRows, state: BlockState, shape: Shape, n_values: int) -> Counts:
    counts = Counts.none(n_values, shape.S, shape.longest)
    add_z_counts(state.block(rows), np.zeros(shape.S, np.int64), *counts, 0, rows.size)
    return counts


def labels(rows: BlockRows, state: BlockState, shape: Shape) -> np.ndarray:
    state = state.copy()
    spell_out(state.block(rows))
    return state.z


def single(rows: BlockRows, state: BlockState, shape: Shape) -> np.ndarray:
    return state.one


def put_all(rows: BlockRows, state: BlockState, shape: Shape, z: np.ndarray) -> tuple[BlockState, None]:
    return with_labels(rows, state, z), None


def take(rows: BlockRows, state: BlockState, shape: Shape, some: np.ndarray) -> tuple[Cells, np.ndarray]:
    return take_rows(state.block(rows), some)


def put(rows: BlockRows, state: BlockState, shape: Shape, some: np.ndarray, z: Cells) -> tuple[BlockState, None]:
    state = state.copy()
    put_rows(state.block(rows), some, Cells(*map(writable, z)))
    return state, None


def hold(rows: BlockRows, state: BlockState, shape: Shape, held: np.ndarray) -> tuple[BlockState, None]:
    state = state.copy()._replace(held=writable(held))
    put_held(state.block(rows))
    return state, None


# --- means -----------------------------------------------------------------------------------------------------------------


def new_mean(rows: BlockRows, state: BlockState, shape: Shape, keep_former: bool) -> tuple[BlockState, None]:
    former = state.mean.astype(np.float16) if keep_former else state.former[:0]
    return state._replace(mean=np.zeros_like(state.mean), former=former), None


def drop_former(rows: BlockRows, state: BlockState, shape: Shape) -> tuple[BlockState, None]:
    return state._replace(former=state.former[:0]), None


def overlap(rows: BlockRows, state: BlockState, shape: Shape) -> np.ndarray:
    total = np.zeros((shape.S, shape.S), dtype=np.int64)
    n, used = np.zeros((2, shape.S), np.int64)
    add_overlap(state.block(rows), state.mean, n, used, total, 0, rows.size)
    return total


def add_mean(rows: BlockRows, state: BlockState, shape: Shape, hyper: Hyper, to: np.ndarray, weight: float) -> tuple[Any, None]:
    state = state._replace(mean=state.mean.copy())
    block, (n, used) = state.block(rows), np.zeros((2, shape.S), np.int64)
    beta, to = writable(hyper.beta), writable(to)
    add_memberships(block, hyper.alpha, beta, to, weight, state.mean, n, used, 0, block.size)
    return state, None


# --- candidates ------------------------------------------------------------------------------------------------------------


def score(shared: tuple[Any, ...], rows: BlockRows) -> tuple[np.ndarray, np.ndarray]:
    """(score, row) of the best candidate of the block for each cluster."""
    shape, log_weight, copies, key = shared
    lo, hi, device = rows.number, rows.number + rows.size, device_of(shape.device)
    weight = np.full((rows.size, 1), log_weight[0, 0]) if len(log_weight) == 1 else log_weight[lo:hi]
    if device is not None:
        return device.score(rows, shape, weight, copies, key)
    best = shape.scratch().best
    codes, first = map(writable, rows.once)
    block = Block(codes, NO_LABELS, NONE, first, NONE, rows.size, rows.width, lo, rows.gaps)
    score_p(block, weight, Copies(*map(writable, copies)), key, best, 0, block.size)
    return best.score, best.row + lo


# --- what outlives workers -------------------------------------------------------------------------------------------------


class Files(NamedTuple):
    """Arrays of all rows, in which every block has its place: labels, single labels, means, former means if there are any."""

    z: Mapped
    one: Mapped
    mean: Mapped
    former: Mapped | None


def store(rows: BlockRows, state: BlockState, shape: Shape, files: Files, synced: bool, first_cell: int) -> None:
    """The state of a block to its place in files; from there it goes on without what it was made of."""
    lo = rows.number
    write_part(files.z, first_cell, state.z, synced)
    write_part(files.one, lo, state.one, synced)
    write_part(files.mean, lo, state.mean, synced)
    if files.former is not None:
        write_part(files.former, lo, state.former, synced)


def fetch(files: Files, rows: tuple[int, int], cells: tuple[int, int], held: np.ndarray) -> BlockState:
    mean = read_part(files.mean, *rows)
    former = np.zeros((0, mean.shape[1]), dtype=np.float16) if files.former is None else read_part(files.former, *rows)
    return BlockState(read_part(files.z, *cells), read_part(files.one, *rows).astype(np.int64), mean, former, held)


def write_mean(rows: BlockRows, state: BlockState, shape: Shape, mean: Mapped, former: bool) -> None:
    """The means of the rows to their place in a file."""
    shares = state.mean
    if former:
        shares = state.former.astype(np.float32)
        shares /= shares.sum(axis=1, keepdims=True)
    write_part(mean, rows.number, shares, False)


def write_part(to: Mapped, first: int, values: np.ndarray, synced: bool) -> None:
    """Written, not mapped: neighbours are written from other machines."""
    with open(to.path, "r+b") as file:
        file.seek(first * row_bytes(to))
        file.write(np.ascontiguousarray(values, dtype=to.dtype).data)
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_part(of: Mapped, lo: int, hi: int) -> np.ndarray:
    with open(of.path, "rb") as file:
        file.seek(of.at + lo * row_bytes(of))
        found = np.fromfile(file, of.dtype, (hi - lo) * row_bytes(of) // of.dtype.itemsize)
    return found.reshape(hi - lo, *of.shape[1:])


def row_bytes(array: Mapped) -> int:
    return array.nbytes // max(len(array), 1)
