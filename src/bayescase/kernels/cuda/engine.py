"""A GPU as an engine: rows and candidates in its memory, the kernels of `sweep.cu` on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np

from ...errors import Advice, ParameterError, Setting
from ...state import Cells, Codebook, Codes, Data, Hyper, chunks, longest, smallest_int
from ..contract import Best, Candidates, Counts, Moved
from ..cpu.engine import make_block, take_cells
from ..cpu.means import find_single
from ..cpu.tables import Copies, Tables, lanes_for
from ..cpu.threads import Threads
from .machine import THREADS, Bundle, Kind, Machine

MOVED = ("cells", "rows", "purity", "listed")
FOR_TWO = 110 << 10  # bytes of shared memory of a block, so that two fit
CHAINS_AT_ONCE = 2
LARGE_TABLES = 1 << 18  # entries: below, threads cost the driver more than they save
BATCH = 1 << 26  # cells that are sent at a time


class DeviceCells:
    """Codes of cases or candidates on the device: packed, feature by feature; or flat, if rows differ in length."""

    def __init__(self, machine: Machine, codes: Codes, book: Codebook, S: int):
        xp, self.n = machine.xp, codes.n_rows
        self.ragged, self.width = codes.bags is not None, longest(codes.cells)
        self.n_values = int(book.offset[-1])
        self.first, self.observed, self.base = xp.zeros(1, np.int64), xp.zeros(1, np.int32), xp.zeros(4, np.int32)
        if self.ragged:
            cells = codes.cells
            self.gaps, self.code_bits = bool((cells.codes < 0).any()), 32
            self.x, self.first = xp.asarray(cells.codes.astype(np.int32)), xp.asarray(cells.first.astype(np.int64))
            missing = np.bincount(
                np.searchsorted(cells.first, np.flatnonzero(cells.codes < 0), side="right") - 1, minlength=self.n
            )
            self.observed = xp.asarray((cells.sizes - missing).astype(np.int32))
        else:
            self.gaps = any(bool((codes.x[rows] < 0).any()) for rows in chunks(self.n, self.width))
            self.pack(machine, codes.x, book)
        self.launch = machine.compile(self.kind(machine, S).text())

    def pack(self, machine: Machine, x: np.ndarray, book: Codebook) -> None:
        """Codes within their features, several to a word; with gaps 0 is a missing one. Word w of row i is x[w, i]."""
        xp, offset = machine.xp, book.offset[: self.width]
        widest = int(np.diff(book.offset[: self.width + 1]).max(initial=1)) + self.gaps
        self.code_bits = 8 if widest <= 1 << 8 else 16 if widest <= 1 << 16 else 32
        padded = -(-self.width // 4) * 4
        code, n_words = np.dtype(f"uint{self.code_bits}"), padded * self.code_bits // 32
        base = np.zeros(max(padded, 4), dtype=np.int32)
        base[: self.width] = offset if self.gaps else offset + 1
        self.base, self.x = xp.asarray(base), xp.empty((n_words, self.n), dtype=np.uint32)
        if self.gaps:
            self.observed = xp.empty(self.n, dtype=np.int32)
        first = xp.asarray(offset.astype(np.int32))
        for rows in chunks(self.n, self.width, BATCH):
            part = xp.asarray(np.ascontiguousarray(x[rows]))
            codes = xp.zeros((len(part), padded), dtype=code)
            if self.gaps:
                codes[:, : self.width] = xp.where(part < 0, 0, part - first + 1)
                self.observed[rows] = (part >= 0).sum(axis=1)
            else:
                codes[:, : self.width] = part - first
            self.x[:, rows] = codes.view(np.uint32).T

    def kind(self, machine: Machine, S: int) -> Kind:
        lanes, quads = lanes_for(S), -(-S // 4)
        stride = 4 * (quads + 1 - quads % 2)
        table, leave = (self.n_values + 1) * stride * 4, (self.n_values + 1) * S * 4
        counts, rest = S * (self.width + 1) * 4, S * 20 + 64 + (0 if self.ragged else self.width * 4 + 16)
        shared_table = not self.ragged and 2 * table + rest <= min(2 * FOR_TWO - 4096, machine.shared)
        shared_counts = counts <= 16 << 10
        taken = table * shared_table + counts * shared_counts + rest
        shared_leave = not self.ragged and taken + leave <= FOR_TWO
        words = -(-S // 16)
        costs = (self.n_values + 1) * 16 * (words + 1 - words % 2) if 16 < S <= 64 and not self.gaps else 0
        self.score_bytes = (S * 20 + 15) // 16 * 16 + (table + costs) * shared_table + rest
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

    @property
    def args(self) -> tuple[Any, ...]:
        return self.x, self.first, self.base, self.observed, np.int64(self.n), np.int32(self.width)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (self.x, self.first, self.observed))


class CudaRows:
    """One chain's rows on the device."""

    def __init__(self, machine: Machine, cells: DeviceCells, data: Data, S: int, number: int = 0):
        machine.use()
        xp, host = machine.xp, data.cells
        self.machine, self.cells, self.data, self.S, self.number = machine, cells, data, S, number
        self.n, self.host = cells.n, host
        self.z = xp.zeros(len(host.codes), dtype=smallest_int(S))
        self.one = xp.full(self.n, -1, dtype=np.int16)
        self.list = xp.zeros(max(self.n, 1), dtype=np.uint32)
        self.far = xp.zeros(max(cells.far_bytes, 16), dtype=np.uint8)  # for rows too long for shared memory
        self.means = xp.zeros((self.n, S), dtype=np.float32)
        self.former: Any = None
        V, lanes, width = cells.n_values, lanes_for(S), cells.width
        by_value, f4, f8 = ((V + 1) * lanes,), np.float32, np.float64
        self.tables = Bundle(
            machine,
            {
                "phi": (by_value, f4),
                "log_phi": (by_value, f4),
                "smooth": ((V + 1,), f4),
                "leave": ((S, V + 1), f4),
                "a": ((S,), f8),
                "rise": (((width + 1) * lanes,), f8),
            },
        )
        self.moved = Bundle(
            machine,
            {
                "moved": ((4,), np.uint64),
                "delta": ((V, S), np.int32),
                "n_rows": ((S, width + 1), np.int32),
                "main": ((S,), np.int32),
            },
        )
        self.prior = Bundle(machine, {"a": ((S,), f8), "beta": ((S,), f8), "source": ((S,), np.int32)})
        self.pairs = Bundle(machine, {"pairs": ((S, S), np.uint64), "listed": ((1,), np.uint64)})
        self.put_held(data.z_held)

    def put_held(self, held: np.ndarray) -> None:
        self.machine.use()
        self.held_here = held
        self.held = self.machine.xp.asarray(held.astype(np.int16)) if len(held) else None

    def launch(self, kernel: str, threads: int, shared: int, *args: Any) -> None:
        self.cells.launch(kernel, threads, shared, *self.cells.args, *args)

    def recount(self, n_values: int) -> Counts:
        self.moved.clear()
        there = self.moved.there
        self.launch("recount", self.n, 0, self.z, self.one, there["delta"], there["n_rows"])
        found = self.moved.fetch()
        return Counts(found["delta"].copy(), found["n_rows"].astype(np.int64))

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        self.tables.send(**tables._asdict())
        self.moved.clear()
        t, m, cells = self.tables.there, self.moved.there, self.cells
        shared = (t["phi"], t["log_phi"], t["smooth"], t["leave"], t["a"], t["rise"], np.int64(self.number))
        n_values, cell_moves, key = np.int32(cells.n_values), np.int32(by_cell), np.uint64(key)
        out = (m["delta"], m["n_rows"], m["main"], m["moved"], self.list)
        self.launch("update_single", self.n, cells.single_bytes, *shared, n_values, self.one, self.held, cell_moves, key, *out)
        self.launch(
            "update_listed",
            32 * self.n,
            cells.row_bytes,
            *shared,
            n_values,
            self.z,
            self.one,
            self.held,
            cell_moves,
            key,
            *out,
            self.far,
        )
        found = self.moved.fetch()
        numbers = dict(zip(MOVED, found["moved"].astype(np.int64), strict=True))
        return Moved(
            delta=found["delta"].copy(),
            n_rows=found["n_rows"].astype(np.int64),
            main=found["main"].astype(np.int64),
            moved=np.array([numbers["cells"], numbers["rows"]]),
            purity_sum=np.array([numbers["purity"]]),
        )

    @property
    def memberships(self) -> np.ndarray:
        """(N, S) A copy."""
        mean = np.empty((self.n, self.S), dtype=np.float32)
        self.machine.fetch(self.means, mean)
        return mean

    def start(self, labels_of: Callable[[slice, Cells], np.ndarray]) -> None:
        self.put_labels(labels_of(slice(0, self.n), self.host))

    def arrays(self) -> dict[str, np.ndarray]:
        return {"z": self.labels(), "memberships": self.memberships}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.put_labels(arrays["z"])
        self.machine.send(np.ascontiguousarray(arrays["memberships"], dtype=np.float32), self.means)

    def new_means(self, keep_former: bool = False) -> None:
        self.machine.use()
        self.former = self.means.astype(np.float16) if keep_former else None
        self.means[:] = 0.0

    def drop_former(self) -> None:
        self.former = None

    def former_memberships(self) -> np.ndarray:
        half = np.empty((self.n, self.S), dtype=np.float16)
        self.machine.fetch(self.former, half)
        mean = half.astype(np.float32)
        mean /= mean.sum(axis=1, keepdims=True)
        return mean

    def overlap(self) -> np.ndarray:
        self.pairs.clear()
        pairs, listed, labels = self.pairs.there["pairs"], self.pairs.there["listed"], (self.z, self.one, self.means)
        self.launch("overlap", self.n, self.cells.pair_bytes, *labels, pairs)
        self.cells.launch("list_mixed", self.n, 0, np.int64(self.n), self.one, listed, self.list)
        each, shared = 32 * self.n, self.cells.pair_bytes + lanes_for(self.S) * THREADS // 8
        self.launch("overlap_mixed", each, shared, self.z, self.means, listed, self.list, pairs)
        return self.pairs.fetch()["pairs"].T / 2.0**16

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        self.prior.send(a=hyper.alpha * hyper.beta, beta=hyper.beta, source=np.argsort(to))
        prior = self.prior.there
        self.launch(
            "add_memberships",
            self.n * self.S,
            0,
            self.z,
            self.one,
            np.float64(hyper.alpha),
            prior["a"],
            prior["beta"],
            prior["source"],
            np.float64(weight),
            self.means,
        )

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        cells, places = take_cells(self.host.codes, self.host.first, rows)
        z, one = self.gather(self.z, places), self.gather(self.one, rows)
        single = np.repeat(one, cells.sizes)
        held = self.held_here[rows] if len(self.held_here) else np.full(len(rows), -1)
        return cells, np.where(single >= 0, single, z).astype(z.dtype), held

    def gather(self, there: Any, places: np.ndarray) -> np.ndarray:
        self.machine.use()
        part = there[self.machine.xp.asarray(places)]
        here = np.empty(len(places), dtype=there.dtype)
        self.machine.fetch(part, here)
        return here

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        xp = self.machine.xp
        self.machine.use()
        cells, places = take_cells(self.host.codes, self.host.first, rows)
        block = make_block(cells, 0, z)
        find_single(block)
        self.z[xp.asarray(places)] = xp.asarray(z.astype(self.z.dtype))
        self.one[xp.asarray(rows)] = xp.asarray(block.one.astype(np.int16))

    def labels(self) -> np.ndarray:
        self.launch("spell_out", self.n, 0, self.z, self.one)
        z = np.empty(len(self.host.codes), dtype=self.z.dtype)
        self.machine.fetch(self.z, z)
        return z

    def put_labels(self, z: np.ndarray) -> None:
        self.machine.send(np.ascontiguousarray(z.reshape(-1), dtype=self.z.dtype), self.z)
        self.launch("find_single", self.n, 0, self.z, self.one)

    def hold(self, held: np.ndarray) -> None:
        xp = self.machine.xp
        self.put_held(held)
        few = np.flatnonzero(held >= 0)
        if len(few):
            self.one[xp.asarray(few)] = xp.asarray(held[few].astype(np.int16))


class CudaCandidates:
    """The catalogue on the device."""

    def __init__(self, machine: Machine, cells: DeviceCells, data: Data, S: int, n_chains: int, number: int = 0):
        self.machine, self.cells, self.number, self.S = machine, cells, number, S
        self.host, self.most = data.candidate_cells, longest(data.candidate_cells)
        self.copies = Bundle(
            machine,
            {
                "adds": (((cells.n_values + 1) * lanes_for(S),), np.float32),
                "top": ((max(data.book.n_single, 1), S), np.float64),
                "guess": ((n_chains, S), np.int64),
            },
        )
        self.best = Bundle(machine, {"score": ((S,), np.float64), "row": ((S,), np.int64)})
        blocks = machine.most_blocks * S
        self.block_score = machine.xp.zeros(blocks, dtype=np.float64)
        self.block_row = machine.xp.zeros(blocks, dtype=np.int64)
        self.finished = machine.xp.zeros(1, dtype=np.uint32)
        self.guesses = deque([np.zeros(S, dtype=np.int64)] * n_chains, n_chains)  # the last prototypes of the chains
        self.lock = Lock()  # chains share these buffers
        self.log_weight = data.log_weight

    @property
    def log_weight(self) -> np.ndarray:
        return self._log_weight

    @log_weight.setter
    def log_weight(self, weight: np.ndarray) -> None:
        self._log_weight, self.most_weight = weight, weight.max()
        same = bool((weight == weight[0, 0]).all())
        self.weight_there = self.machine.xp.asarray(np.ascontiguousarray(weight[:1, :1] if same else weight))
        self.by_row, self.by_cluster = 0 if same else weight.shape[1], int(not same and weight.shape[1] > 1)

    def score(self, copies: Copies, key: np.uint64) -> Best:
        with self.lock:
            rows, scores = self.find_best(copies, key)
        best = Best.none(self.S, self.most)
        best.score[:], best.row[:] = scores, rows
        codes, first = self.host
        for s, m in enumerate(rows):
            best.codes[s, : first[m + 1] - first[m]] = codes[first[m] : first[m + 1]]
        best.log_weight[:] = self.log_weight[rows, np.arange(self.S) % self.log_weight.shape[1]]
        best.row[:] += self.number
        return best

    def find_best(self, copies: Copies, key: np.uint64) -> tuple[np.ndarray, np.ndarray]:
        """(rows, scores) of the best candidates."""
        top = {"top": copies.top} if len(copies.top) else {}
        self.copies.send(adds=copies.adds, guess=np.array(self.guesses), **top)
        there, out = self.copies.there, self.best.there
        self.cells.launch(
            "score",
            self.cells.n,
            self.cells.score_bytes,
            *self.cells.args,
            there["top"],
            self.weight_there,
            np.int64(self.by_row),
            np.int32(self.by_cluster),
            np.float64(self.most_weight),
            there["adds"],
            np.int64(self.number),
            np.int32(self.cells.n_values),
            there["guess"],
            np.int32(len(self.guesses)),
            np.uint64(key),
            self.block_score,
            self.block_row,
            out["score"],
            out["row"],
            self.finished,
        )
        found = self.best.fetch()
        self.guesses.append(found["row"].copy())
        return self.guesses[-1], found["score"].copy()


class CudaEngine:
    """Rows and candidates of a run on one GPU. While it sweeps one chain, the driver of another makes its tables."""

    def __init__(self, data: Data, S: int, n_chains: int, n_jobs: int, machine: Machine):
        self.machine, self.data, self.S = machine, data, S
        self.check_memory(n_chains)
        self.chains_at_once = min(n_chains, CHAINS_AT_ONCE)
        small = self.chains_at_once > 1 or data.offset[-1] * S < LARGE_TABLES
        self.threads = Threads(data, S, max(n_jobs, 2), 1 if small else n_jobs)
        self.cells = DeviceCells(machine, data.cases, data.book, S)
        same = data.candidates is data.x and data.candidate_bags is data.bags
        catalogue = self.cells if same else DeviceCells(machine, data.catalogue, data.book, S)
        self.candidates: Candidates = CudaCandidates(machine, catalogue, data, S, n_chains)

    def check_memory(self, n_chains: int) -> None:
        """Say at once if the rows do not fit."""
        need, free = bytes_needed(self.data, self.S, n_chains), self.machine.free_bytes()
        if need > free:
            raise ParameterError(
                "{n_chains} chains of this table need {need:.1f} GB of the GPU's memory, of which {free:.1f} GB are free.",
                Advice("run fewer at a time with {}", Setting("n_chains", 1)),
                Advice("use {}", Setting("device", "cpu")),
                n_chains=n_chains,
                need=need / 1e9,
                free=free / 1e9,
            )

    def rows(self, chain: int) -> CudaRows:
        """The rows of a chain, whose labels are not yet set."""
        return CudaRows(self.machine, self.cells, self.data, self.S)

    def close(self) -> None:
        self.threads.close()


def bytes_needed(data: Data, S: int, n_chains: int) -> int:
    """Memory on the device, but for small tables."""
    n_rows, n_cells = len(data.x), len(data.cells.codes)
    a_cell = 4 if data.bags is not None else -(-int(np.diff(data.offset).max(initial=1)).bit_length() // 8)
    shared = n_cells * a_cell + (0 if data.own_cases else data.candidates.size * a_cell) + 12 * min(BATCH, n_cells)
    a_chain = n_cells * smallest_int(S).itemsize + n_rows * (
        2 + 4 + 4 * S + 2 * S
    )  # z, single labels, list, means, former means
    return int(shared + n_chains * a_chain)


def fits(machine: Machine, data: Data, S: int, n_chains: int) -> bool:
    return bytes_needed(data, S, n_chains) <= machine.free_bytes()
