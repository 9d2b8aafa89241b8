"""Some rows of a block that is at hand for a moment: taken out of it, and put into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...state import Cells
from ..cpu.engine import Block, make_block
from ..cpu.means import find_single, spell_out

NO_LABELS = np.zeros(0, dtype=np.uint8)  # of candidates


def rows_of(block: Block) -> slice:
    return slice(block.number, block.number + block.size)


def cells_of(block: Block) -> Cells:
    """The cells of a block, with their places."""
    return Cells(block.x, block.first if not block.width else np.arange(block.size + 1, dtype=np.int64) * block.width)


def take_rows(block: Block, some: np.ndarray) -> tuple[Cells, np.ndarray]:
    """(cells, their labels) of some rows, counted within the block."""
    places = cells_of(block)
    cells, labels = places.take(some), Cells(block.z, places.first).take(some).codes
    one = np.repeat(block.one[some], cells.sizes)
    return cells, np.where(one >= 0, one, labels).astype(labels.dtype)


def put_rows(block: Block, some: np.ndarray, labels: Cells) -> None:
    """Give the cells of some rows other labels."""
    places = cells_of(block)
    few = make_block(places.take(some), 0, labels.codes)
    find_single(few)
    block.one[some] = few.one
    at = np.repeat(places.first[some] - labels.first[:-1], labels.sizes) + np.arange(len(labels.codes))
    block.z[at] = labels.codes


def put_held(block: Block) -> None:
    """Give rows that are held the labels that they are held at."""
    spell_out(block)
    if len(block.held):
        held = np.repeat(block.held, cells_of(block).sizes)
        block.z[held >= 0] = held[held >= 0]
    find_single(block)


def join_taken(
    found: Sequence[tuple[Cells, np.ndarray]], order: np.ndarray, codes_type: Any, labels_type: Any
) -> tuple[Cells, np.ndarray]:
    """(cells, labels) of rows that were taken block by block; row order[k] is the k-th of them."""
    sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(cells.sizes for cells, _ in found)])
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    codes = np.concatenate([np.zeros(0, dtype=codes_type), *(cells.codes for cells, _ in found)])
    labels = np.concatenate([np.zeros(0, dtype=labels_type), *(z for _, z in found)])
    back = np.argsort(order, kind="stable")
    return Cells(codes, first).take(back), Cells(labels, first).take(back).codes
