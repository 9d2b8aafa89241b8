"""The CPU as an engine: rows and candidates in memory, cut into blocks that threads work on."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...parallel import each, portions
from ...state import Cells, Data, Hyper, chunks, has_gaps, smallest_int, spread
from ..contract import Best, Candidates, Counts, Meanwhile, Moved
from .means import OVERLAP_UNIT, add_memberships, add_overlap, add_z_counts, find_single, spell_out
from .rows import score_p, update_z
from .tables import Copies, Scratch, Tables
from .threads import Threads, threads_for


class Block(NamedTuple):
    """Rows side by side: what kernels get of the data."""

    x: np.ndarray  # (cells,) codes, -1 missing
    z: np.ndarray  # (cells,) labels, of rows with several; (0,) of candidates
    one: np.ndarray  # (size,) label of the rows that have only one, -1 of the others; (0,) of candidates
    first: np.ndarray  # (size + 1,) first cell of each row; (0,) if all rows have `width` cells
    held: np.ndarray  # (size,) or (0,)
    size: int
    width: int  # 0 if rows differ in length
    number: int  # of the first row among all rows: random numbers are keyed by it
    gaps: bool  # is any cell missing?


NONE = np.zeros(0, dtype=np.int64)
START_CELLS = 1 << 20  # that get their first labels at a time


def make_block(cells: Cells, width: int, z: np.ndarray | None = None, held: np.ndarray = NONE, number: int = 0) -> Block:
    """A block of rows of `width` cells each, or of any length if that is 0; it shares the memory of cells and labels."""
    first = NONE if width else cells.first
    z = NONE.astype(np.uint8) if z is None else z.reshape(-1)
    one = np.full(len(cells.first) - 1 if len(z) else 0, -1, dtype=np.int16 if z.itemsize == 1 else np.int32)
    return Block(cells.codes, z, one, first, held, len(cells.first) - 1, width, int(number), has_gaps(cells.codes))


def width_of(data: Data) -> int:
    """Cells of every row, 0 if that differs."""
    return 0 if data.bags is not None else data.x.shape[1]


class CpuRows:
    """One chain's rows, in memory. `z` has a label for every cell, (N, P) or flat, shared with whoever made it."""

    device = "cpu"

    def __init__(self, threads: Threads, data: Data, z: np.ndarray, S: int, cells: Cells | None = None):
        cells = cells or data.cells
        self.threads, self.S, self.z = threads, S, z.reshape(-1)
        self.first, self.width = cells.first, data.cases.longest
        self.block = make_block(cells, width_of(data), z, data.z_held)
        self.parts = threads.parts_of(cells.first)
        self.memberships: np.ndarray = np.zeros((len(data.x), S), dtype=np.float32)
        self.former: np.ndarray | None = None

    def recount(self, n_values: int) -> Counts:
        counts = Counts.none(n_values, self.S, self.width)

        def work(scratch: Scratch, lo: int, hi: int) -> None:
            scratch.tally.clear()
            add_z_counts(self.block, scratch.row.n, scratch.tally.delta, scratch.tally.n_rows, lo, hi)

        self.threads.each(self.parts, work, lambda scratch: counts.add(scratch.tally))
        return counts

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        moved = Moved.none(tables.leave.shape[1] - 1, self.S, self.width)

        def work(scratch: Scratch, lo: int, hi: int) -> None:
            scratch.tally.clear()
            update_z(self.block, tables, by_cell, key, scratch.row, scratch.tally, scratch.sums, lo, hi)

        self.threads.each(self.parts, work, lambda scratch: moved.add(scratch.tally))
        return moved

    def new_means(self, keep_former: bool = False) -> None:
        former = np.empty(self.memberships.shape if keep_former else (0, 0), dtype=np.float16)
        if keep_former:
            each(lambda rows: np.copyto(former[rows], self.memberships[rows], "same_kind"), portions(len(former)))
        self.former = former if keep_former else None
        self.memberships = np.zeros(self.memberships.shape, dtype=np.float32)

    def drop_former(self) -> None:
        self.former = None

    def former_memberships(self) -> np.ndarray:
        assert self.former is not None
        mean = self.former.astype(np.float32)
        mean /= mean.sum(axis=1, keepdims=True)
        return mean

    def overlap(self) -> np.ndarray:
        totals: list[np.ndarray] = []

        def work(scratch: Scratch, lo: int, hi: int) -> None:
            totals.append(np.zeros((self.S, self.S), dtype=np.int64))
            add_overlap(self.block, self.memberships, scratch.row.n, scratch.row.used, totals[-1], lo, hi)

        self.threads.each(self.parts, work)
        return sum(totals) / OVERLAP_UNIT

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        def work(scratch: Scratch, lo: int, hi: int) -> None:
            n, used = scratch.row.n, scratch.row.used
            add_memberships(self.block, hyper.alpha, hyper.beta, to, weight, self.memberships, n, used, lo, hi)

        self.threads.each(self.parts, work)

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        spell_out(self.block)
        cells, places = take_cells(self.block.x, self.first, rows)
        held = self.block.held[rows] if len(self.block.held) else np.full(len(cells.first) - 1, -1)
        return cells, self.z[places], held

    def start(self, labels_of: Callable[[slice, Cells], np.ndarray]) -> None:
        cells, size = Cells(self.block.x, self.first), self.block.size
        single, whole = False, len(self.block.held) > 0  # clusters are named after the cases held in them
        for rows in [slice(0, size)] if whole else chunks(size, len(self.z) // max(size, 1), START_CELLS):
            labels = labels_of(rows, part := cells.part(rows))
            if single := labels.ndim == 2 and self.block.width > 0 and not self.block.gaps:  # no row without cells
                self.block.one[rows] = labels[:, 0]
            else:
                self.z[self.first[rows.start] : self.first[rows.stop]] = spread(labels, part, self.block.width)
        if not single:
            find_single(self.block)

    def single(self) -> np.ndarray:
        return self.block.one

    def labels(self) -> np.ndarray:
        spell_out(self.block)
        return self.z

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        _, places = take_cells(self.block.x, self.first, rows)
        self.z[places] = z
        find_single(self.block)

    def put_labels(self, z: np.ndarray) -> None:
        self.z[:] = z.reshape(-1)
        find_single(self.block)

    def hold(self, held: np.ndarray) -> None:
        self.block = self.block._replace(held=held)
        few = np.flatnonzero(held >= 0)
        _, places = take_cells(self.block.x, self.first, few)
        spell_out(self.block)
        self.z[places] = np.repeat(held[few], np.diff(self.first)[few])
        find_single(self.block)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"z": self.labels(), "memberships": self.memberships}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.put_labels(arrays["z"])
        self.memberships[:] = arrays["memberships"]


def take_cells(codes: np.ndarray, first: np.ndarray, rows: np.ndarray) -> tuple[Cells, np.ndarray]:
    """(cells of some rows, their places among all)."""
    sizes = np.diff(first)[rows]
    start = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(first[:-1][rows] - start[:-1], sizes) + np.arange(start[-1])
    return Cells(codes[places], start), places


class CpuCandidates:
    """The catalogue, in memory."""

    def __init__(self, threads: Threads, data: Data, number: int = 0):
        self.threads, self.cells, self.log_weight = threads, data.candidate_cells, data.log_weight
        width = 0 if data.candidate_bags is not None else data.candidates.shape[1]
        self.block = make_block(self.cells, width, number=number)
        self.parts = threads.parts_of(self.cells.first)
        self.most = data.catalogue.longest

    def weights_of(self, p: np.ndarray) -> np.ndarray:
        return self.log_weight[p - self.block.number, np.arange(len(p)) % self.log_weight.shape[1]]

    def score(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> Best:
        S = copies.top.shape[1]
        best = Best.none(S, self.most)

        self.threads.each(
            self.parts,
            lambda scratch, lo, hi: score_p(self.block, self.log_weight, copies, key, scratch.best, lo, hi),
            lambda scratch: best.offer(scratch.best.score, scratch.best.row),
        )
        codes, first = self.cells
        if self.block.width:
            best.codes[:] = codes.reshape(-1, self.most)[best.row]
        else:
            for s, m in enumerate(best.row):
                best.codes[s, : first[m + 1] - first[m]] = codes[first[m] : first[m + 1]]
        best.row[:] += self.block.number
        return best


class CpuEngine:
    """Rows and candidates of a run, in memory; chains side by side on threads, or the rows of one in blocks."""

    def __init__(self, data: Data, S: int, n_chains: int, n_jobs: int):
        self.data, self.S = data, S
        self.threads = threads_for(data, S, n_chains, n_jobs)
        self.chains_at_once = n_jobs if n_chains >= n_jobs else 1
        self.candidates: Candidates = CpuCandidates(self.threads, data)
        self.cells = data.cells  # once for all chains: they say where each row begins
        # Made here: memory that another thread frees is of no use to this one, which makes the results next.
        self.z = np.empty((n_chains, len(self.cells.codes)), dtype=smallest_int(S))

    def rows(self, chain: int) -> CpuRows:
        """The rows of a chain, whose labels are not yet set."""
        return CpuRows(self.threads, self.data, self.z[chain], self.S, self.cells)

    def close(self) -> None:
        self.threads.close()
        self.z = self.z[:0].copy()
