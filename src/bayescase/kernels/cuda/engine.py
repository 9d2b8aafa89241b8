"""A GPU as an engine: rows and candidates in its memory, or lent to it block by block; the kernels of `sweep.cu` on them."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from ...errors import Advice, ParameterError, Setting
from ...state import Data, smallest_int
from ..contract import Best, Candidates, Meanwhile
from ..cpu.tables import Copies, lanes_for
from ..cpu.threads import Threads
from .cells import AT_ONCE, BATCH, CodeBlock, DeviceCells, Workers
from .machine import Bundle, Machine
from .rows import CudaRows

CHAINS_AT_ONCE = 2
FOR_A_THREAD = 1 << 12  # entries of the driver's tables: with fewer, a thread costs more than it saves
LEAST_ROWS = 1 << 10  # of a block, unless there are fewer


class Desk:
    """What `score` writes."""

    def __init__(self, machine: Machine, S: int):
        self.best = Bundle(machine, {"score": ((S,), np.float64), "row": ((S,), np.int64)})
        self.block_score = machine.xp.zeros(machine.most_blocks * S, dtype=np.float64)
        self.block_row = machine.xp.zeros(machine.most_blocks * S, dtype=np.int64)
        self.finished = machine.xp.zeros(1, dtype=np.uint32)


class CudaCandidates:
    """The catalogue, on the device or lent to it."""

    def __init__(self, machine: Machine, cells: DeviceCells, data: Data, S: int, n_chains: int, number: int = 0):
        self.machine, self.cells, self.number, self.S = machine, cells, number, S
        self.host, self.most = data.candidate_cells, data.catalogue.longest
        self.copies = Bundle(
            machine,
            {
                "adds": (((cells.n_values + 1) * lanes_for(S),), np.float32),
                "top": ((max(data.book.n_single, 1), S), np.float64),
                "guess": ((len(cells.blocks), n_chains, S), np.int64),
            },
        )
        self.workers = Workers(machine, cells, lambda: Desk(machine, S))
        self.guesses = np.zeros_like(self.copies.here["guess"])  # the last prototypes of the chains, in every block
        self.number_of = {block.rows.start: b for b, block in enumerate(cells.blocks)}
        self.alone = False  # is there one chain at a time?
        self.n_scored = 0
        self.lock = Lock()  # chains share these buffers
        self.log_weight = data.log_weight

    @property
    def log_weight(self) -> np.ndarray:
        return self._log_weight

    @log_weight.setter
    def log_weight(self, weight: np.ndarray) -> None:
        self._log_weight, self.most_weight = weight, weight.max()
        same = bool((weight == weight[0, 0]).all())
        self.by_row, self.by_cluster = 0 if same else weight.shape[1], int(not same and weight.shape[1] > 1)
        lent = same or self.cells.resident
        self.weight_there = self.machine.xp.asarray(np.ascontiguousarray(weight[:1, :1] if same else weight)) if lent else None

    def weight_of(self, block: CodeBlock) -> Any:
        """The weights of the candidates of a block, on the device."""
        if self.weight_there is not None:
            return self.weight_there
        return self.machine.lend(np.ascontiguousarray(self.log_weight[block.rows]))

    def weights_of(self, p: np.ndarray) -> np.ndarray:
        return self.log_weight[p - self.number, np.arange(self.S) % self.log_weight.shape[1]]

    def score(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> Best:
        with self.lock:
            rows, scores = self.find_best(copies, key, meanwhile if self.alone else None)
        codes, first = self.host
        if self.cells.ragged:
            found = np.full((self.S, self.most), -1)
            for s, m in enumerate(rows):
                found[s, : first[m + 1] - first[m]] = codes[first[m] : first[m + 1]]
        else:
            found = codes.reshape(-1, self.most)[rows]
        return Best(scores, rows + self.number, found)

    def find_best(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> tuple[np.ndarray, np.ndarray]:
        """(rows, scores) of the best candidates."""
        top, blocks = {"top": copies.top} if len(copies.top) else {}, self.cells.blocks
        self.copies.send(adds=copies.adds, guess=self.guesses, **top)
        there = self.copies.there
        rows, scores = np.zeros((len(blocks), self.S), dtype=np.int64), np.empty((len(blocks), self.S))

        def work(desk: Desk, block: CodeBlock) -> None:
            b, out = self.number_of[block.rows.start], desk.best.there
            self.cells.launch(
                "score",
                block.rows.stop - block.rows.start,
                self.cells.score_bytes,
                *self.cells.args(block),
                there["top"],
                self.weight_of(block),
                np.int64(self.by_row),
                np.int32(self.by_cluster),
                np.float64(self.most_weight),
                there["adds"],
                np.int64(self.number + block.rows.start),
                np.int32(self.cells.n_values),
                there["guess"][b],
                np.int32(self.guesses.shape[1]),
                np.uint64(key),
                desk.block_score,
                desk.block_row,
                out["score"],
                out["row"],
                desk.finished,
            )
            desk.best.ask()
            if meanwhile is not None and self.cells.resident:
                meanwhile()
            found = desk.best.wait()
            rows[b], scores[b] = found["row"], found["score"]

        self.workers.each(work)
        self.guesses[:, self.n_scored % self.guesses.shape[1]] = rows
        self.n_scored += 1
        best = scores.argmax(axis=0)  # the first of equal ones
        starts, every = np.array([block.rows.start for block in blocks]), np.arange(self.S)
        return starts[best] + rows[best, every], scores[best, every]


class CudaEngine:
    """Rows and candidates of a run on one GPU. While it sweeps one chain, the driver of another makes its tables.

    If they do not fit into its memory, they stay here, and it gets them block by block.
    """

    def __init__(self, data: Data, S: int, n_chains: int, n_jobs: int, machine: Machine):
        self.machine, self.data, self.S = machine, data, S
        parts = [] if fits(machine, data, S, n_chains) else cut_rows(machine, data, S, n_chains)
        self.chains_at_once = 1 if parts else min(n_chains, CHAINS_AT_ONCE)
        n_blocks = 1 if self.chains_at_once > 1 else max(1, min(n_jobs, int(data.offset[-1]) * S // FOR_A_THREAD))
        self.threads = Threads(data, S, max(n_jobs, 2), n_blocks)
        self.cells = DeviceCells(machine, data.cases, data.book, S, parts)
        same = data.candidates is data.x and data.candidate_bags is data.bags
        of_catalogue = cut_rows(machine, data, S, n_chains, catalogue=True) if parts and not same else []
        catalogue = self.cells if same else DeviceCells(machine, data.catalogue, data.book, S, of_catalogue)
        candidates = CudaCandidates(machine, catalogue, data, S, n_chains)
        candidates.alone = self.chains_at_once == 1
        self.candidates: Candidates = candidates

    def rows(self, chain: int) -> CudaRows:
        """The rows of a chain, whose labels are not yet set."""
        return CudaRows(self.machine, self.cells, self.data, self.S)

    def close(self) -> None:
        self.threads.close()


def code_bytes(data: Data) -> int:
    """Bytes of a cell's code on the device."""
    return 4 if data.bags is not None else -(-int(np.diff(data.offset).max(initial=1)).bit_length() // 8)


def bytes_needed(data: Data, S: int, n_chains: int) -> int:
    """Memory on the device, but for small tables."""
    n_rows, n_cells, a_cell = len(data.x), len(data.cells.codes), code_bytes(data)
    shared = n_cells * a_cell + (0 if data.own_cases else data.candidates.size * a_cell) + 12 * min(BATCH, n_cells)
    a_row = 2 + 4 + 4 * S + 2 * S  # single labels, list, means, former means
    return int(shared + n_chains * (n_cells * smallest_int(S).itemsize + n_rows * a_row))


def fits(machine: Machine, data: Data, S: int, n_chains: int) -> bool:
    return bytes_needed(data, S, n_chains) + small_bytes(data, S, n_chains) <= machine.free_bytes()


def small_bytes(data: Data, S: int, n_chains: int) -> int:
    """Memory for tables and counts, which are on the device in any case."""
    entries = (int(data.offset[-1]) + 1) * lanes_for(S)
    return (n_chains * (20 + 4 * AT_ONCE) + 16) * entries


def least_bytes(data: Data, S: int, n_chains: int) -> int:
    """Memory that a device needs to sweep the table at all, whole or in blocks."""
    n_rows = max(min(len(data.x), LEAST_ROWS), 1)
    return small_bytes(data, S, n_chains) + min(bytes_needed(data, S, n_chains), n_rows * bytes_of_row(data, S))


def bytes_of_row(data: Data, S: int) -> int:
    """Memory for a row of each block that is on the device, and as much again for what is being made of it."""
    width = max(data.cases.longest, data.catalogue.longest)
    return 2 * AT_ONCE * (width * (code_bytes(data) + smallest_int(S).itemsize) + 4 * S + 8 * data.log_weight.shape[1] + 32)


def cut_rows(machine: Machine, data: Data, S: int, n_chains: int, catalogue: bool = False) -> list[slice]:
    """Blocks of rows that go through the device one after the other. Say at once if not even these fit."""
    free, n = machine.free_bytes(), len(data.candidates if catalogue else data.x)
    if least_bytes(data, S, n_chains) > free:
        raise too_large(data, S, n_chains, free)
    most = max(int((free - small_bytes(data, S, n_chains)) // bytes_of_row(data, S)), min(n, LEAST_ROWS), 1)
    return [slice(lo, min(lo + most, n)) for lo in range(0, n, most)]


def too_large(data: Data, S: int, n_chains: int, free: int) -> ParameterError:
    """What a table would need, and what there could be less of."""
    chains = bisect_right(range(1, n_chains), free, key=lambda n: least_bytes(data, S, n))
    clusters = bisect_right(range(1, S), free, key=lambda s: least_bytes(data, s, n_chains))
    fewer = {"n_chains": ("run fewer chains with {}", chains), "n_clusters": ("ask for fewer clusters with {}", clusters)}
    need = least_bytes(data, S, n_chains)
    return ParameterError(
        "{chains} of this table {need} at least {bytes} of the GPU's memory, of which {free} are free.",
        *(Advice(words, Setting(name, most)) for name, (words, most) in fewer.items() if most),
        Advice("use {}", Setting("device", "cpu")),
        parameter="device",
        chains="1 chain" if n_chains == 1 else f"{n_chains} chains",
        need="needs" if n_chains == 1 else "need",
        bytes=in_words(need, math.ceil),
        free=in_words(free, math.floor),
    )


def in_words(n: int, whole: Callable[[float], int]) -> str:
    """Bytes with one decimal, rounded to one side."""
    size, unit = next(((10**k, unit) for k, unit in ((9, "GB"), (6, "MB")) if n >= 10**k), (1000, "kB"))
    return f"{whole(10 * n / size) / 10:.1f} {unit}"
