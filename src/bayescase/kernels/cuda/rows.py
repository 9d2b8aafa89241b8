"""One chain's rows on a GPU, or lent to it block by block: their labels, and the running mean of their memberships."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...state import Cells, Data, Hyper, smallest_int, spread
from ..contract import Counts, Moved
from ..cpu.engine import make_block, take_cells
from ..cpu.means import find_single
from ..cpu.tables import Tables, lanes_for
from .cells import CodeBlock, DeviceCells, Workers
from .machine import THREADS, Bundle, Machine


class Desk:
    """What the kernels write beside the rows."""

    def __init__(self, machine: Machine, cells: DeviceCells, S: int):
        V, width, most = cells.n_values, cells.width, max(block.rows.stop - block.rows.start for block in cells.blocks)
        self.list = machine.xp.zeros(max(most, 1), dtype=np.uint32)
        self.far = machine.xp.zeros(max(cells.far_bytes, 16), dtype=np.uint8)  # for rows too long for shared memory
        self.moved = Bundle(
            machine,
            {
                "moved": ((4,), np.uint64),  # cells, rows, purity, rows listed
                "delta": ((V, S), np.int32),
                "n_rows": ((S, width + 1), np.int32),
                "main": ((S,), np.int32),
            },
        )
        self.is_clear = True  # is `moved` on the device zero?
        self.pairs = Bundle(machine, {"pairs": ((S, S), np.uint64), "listed": ((1,), np.uint64)})


class CudaRows:
    """One chain's rows. Whole arrays are on the device, or here if it cannot hold them."""

    def __init__(self, machine: Machine, cells: DeviceCells, data: Data, S: int, number: int = 0):
        machine.use()
        self.machine, self.cells, self.data, self.S, self.number = machine, cells, data, S, number
        self.device = machine.name if cells.resident else "cpu"
        self.n, self.host = cells.n, data.cells
        self.home = machine.xp if cells.resident else np
        self.z = self.zeros((len(self.host.codes),), smallest_int(S))
        self.one = self.zeros((self.n,), np.int16)
        self.one[:] = -1
        self.means = self.zeros((self.n, S), np.float32)
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
        self.prior = Bundle(machine, {"a": ((S,), f8), "beta": ((S,), f8), "source": ((S,), np.int32)})
        self.workers = Workers(machine, cells, lambda: Desk(machine, cells, S))
        self.put_held(data.z_held)

    # --- arrays of all rows -----------------------------------------------------------------------------------------------

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        if self.cells.resident:
            return self.machine.xp.zeros(shape, dtype=dtype)
        array = self.machine.pinned(int(np.prod(shape)) * np.dtype(dtype).itemsize).view(dtype).reshape(shape)
        array[:] = 0
        return array

    def fill(self, array: Any, values: np.ndarray) -> None:
        if self.cells.resident:
            self.machine.send(np.ascontiguousarray(values, dtype=array.dtype), array)
        else:
            array[:] = values

    def copy_of(self, array: Any) -> np.ndarray:
        here = np.empty(array.shape, dtype=array.dtype)
        if self.cells.resident:
            self.machine.fetch(array, here)
        else:
            here[:] = array
        return here

    def gather(self, array: Any, places: np.ndarray) -> np.ndarray:
        self.machine.use()
        return self.copy_of(array[self.home.asarray(places)])

    def put_held(self, held: np.ndarray) -> None:
        self.machine.use()
        self.held_here = held
        self.held = self.home.asarray(held.astype(np.int16)) if len(held) else None

    # --- kernels, block by block ------------------------------------------------------------------------------------------

    def each(self, needs: str, changes: str, work: Callable[..., None]) -> None:
        """work(desk, number, codes, *arrays) for every block; what it changes goes back to where it came from."""
        names = needs.split()

        def task(desk: Desk, block: CodeBlock) -> None:
            whole = [getattr(self, name) for name in names]
            number = np.int64(self.number + block.rows.start)
            if self.cells.resident:
                work(desk, number, self.cells.args(block), *whole)
                return
            spans = [block.cells if name == "z" else block.rows for name in names]
            parts = [None if array is None else array[span] for array, span in zip(whole, spans, strict=True)]
            there = [None if part is None else self.machine.lend(part) for part in parts]
            work(desk, number, self.cells.args(block), *there)
            for name, part, array in zip(names, parts, there, strict=True):
                if name in changes.split():
                    self.machine.fetch(array, part)

        self.workers.each(task)

    def launch(self, kernel: str, threads: int, shared: int, codes: tuple[Any, ...], *args: Any) -> None:
        self.cells.launch(kernel, threads, shared, *codes, *args)

    def recount(self, n_values: int) -> Counts:
        def work(desk: Desk, _: np.int64, codes: Any, z: Any, one: Any) -> None:
            there = desk.moved.there
            self.launch("recount", int(codes[-2]), 0, codes, z, one, there["delta"], there["n_rows"])

        moved = self.moved_by("z one", "", work)
        return Counts(moved.delta, moved.n_rows)

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        self.tables.send(**tables._asdict())
        t, cells = self.tables.there, self.cells
        drawn = [t[name] for name in ("phi", "log_phi", "smooth", "leave", "a", "rise")]
        n_values, cell_moves, key = np.int32(cells.n_values), np.int32(by_cell), np.uint64(key)

        def work(desk: Desk, number: np.int64, codes: Any, z: Any, one: Any, held: Any) -> None:
            m, n = desk.moved.there, int(codes[-2])
            if not cells.resident:
                m["moved"][3:] = 0
            same, out = (number, n_values), (m["delta"], m["n_rows"], m["main"], m["moved"], desk.list)
            self.launch("update_single", n, cells.single_bytes, codes, *drawn, *same, one, held, cell_moves, key, *out)
            rest = (z, one, held, cell_moves, key, *out, desk.far)
            self.launch("update_listed", 32 * n, cells.row_bytes, codes, *drawn, *same, *rest)

        return self.moved_by("z one held", "z one", work)

    def moved_by(self, needs: str, changes: str, work: Callable[..., None]) -> Moved:
        """What kernels have counted at all desks."""
        for desk in self.workers.desks:
            if not desk.is_clear:
                desk.moved.clear()
            desk.is_clear = False
        self.each(needs, changes, work)
        parts = [self.counted(desk) for desk in self.workers.desks]
        if len(parts) == 1:
            return parts[0]
        total = Moved.none(self.cells.n_values, self.S, self.cells.width)
        for part in parts:
            total.add(part)
        return total

    def counted(self, desk: Desk) -> Moved:
        desk.moved.ask(clear=True)
        found = desk.moved.wait()
        desk.is_clear = True
        whole = found["moved"].astype(np.int64)
        n_rows, main = found["n_rows"].astype(np.int64), found["main"].astype(np.int64)
        return Moved(found["delta"].copy(), n_rows, main, whole[:2], whole[2:3])

    def overlap(self) -> np.ndarray:
        def work(desk: Desk, _: np.int64, codes: Any, z: Any, one: Any, means: Any) -> None:
            pairs, listed, n = desk.pairs.there["pairs"], desk.pairs.there["listed"], int(codes[-2])
            if not self.cells.resident:
                listed[:] = 0
            self.launch("overlap", n, self.cells.pair_bytes, codes, z, one, means, pairs)
            self.cells.launch("list_mixed", n, 0, np.int64(n), one, listed, desk.list)
            shared = self.cells.pair_bytes + lanes_for(self.S) * THREADS // 8
            self.launch("overlap_mixed", 32 * n, shared, codes, z, means, listed, desk.list, pairs)

        for desk in self.workers.desks:
            desk.pairs.clear()
        self.each("z one means", "", work)
        pairs = np.array([desk.pairs.fetch()["pairs"] for desk in self.workers.desks]).sum(axis=0)
        return np.asarray(pairs.T / 2.0**16)

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        self.prior.send(a=hyper.alpha * hyper.beta, beta=hyper.beta, source=np.argsort(to))
        prior = [self.prior.there[name] for name in ("a", "beta", "source")]

        def work(_: Desk, __: np.int64, codes: Any, z: Any, one: Any, means: Any) -> None:
            numbers = (np.float64(hyper.alpha), *prior, np.float64(weight))
            self.launch("add_memberships", int(codes[-2]) * self.S, 0, codes, z, one, *numbers, means)

        self.each("z one means", "means", work)

    # --- labels and memberships, for others -------------------------------------------------------------------------------

    @property
    def memberships(self) -> np.ndarray:
        """(N, S) A copy."""
        return self.copy_of(self.means)

    def start(self, labels_of: Callable[[slice, Cells], np.ndarray]) -> None:
        labels, cells = labels_of(slice(0, self.n), self.host), self.cells
        if labels.ndim == 2 and not cells.ragged and not cells.gaps:  # no row without cells
            self.fill(self.one, labels[:, 0])
        else:
            self.put_labels(spread(labels, self.host, 0 if cells.ragged else cells.width))

    def single(self) -> np.ndarray:
        return self.copy_of(self.one)

    def arrays(self) -> dict[str, np.ndarray]:
        return {"z": self.labels(), "memberships": self.memberships}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.put_labels(arrays["z"])
        self.fill(self.means, arrays["memberships"])

    def new_means(self, keep_former: bool = False) -> None:
        self.machine.use()
        self.former = self.means.astype(np.float16) if keep_former else None
        self.means[:] = 0.0

    def drop_former(self) -> None:
        self.former = None

    def former_memberships(self) -> np.ndarray:
        mean = self.copy_of(self.former).astype(np.float32)
        mean /= mean.sum(axis=1, keepdims=True)
        return mean

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        cells, places = take_cells(self.host.codes, self.host.first, rows)
        z, one = self.gather(self.z, places), self.gather(self.one, rows)
        single = np.repeat(one, cells.sizes)
        held = self.held_here[rows] if len(self.held_here) else np.full(len(rows), -1)
        return cells, np.where(single >= 0, single, z).astype(z.dtype), held

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        here = self.home.asarray
        self.machine.use()
        cells, places = take_cells(self.host.codes, self.host.first, rows)
        block = make_block(cells, 0, z)
        find_single(block)
        self.z[here(places)] = here(z.astype(self.z.dtype))
        self.one[here(rows)] = here(block.one.astype(np.int16))

    def labels(self) -> np.ndarray:
        self.each("z one", "z", lambda _, __, codes, z, one: self.launch("spell_out", int(codes[-2]), 0, codes, z, one))
        return self.copy_of(self.z)

    def put_labels(self, z: np.ndarray) -> None:
        self.fill(self.z, z.reshape(-1))
        self.each("z one", "one", lambda _, __, codes, z, one: self.launch("find_single", int(codes[-2]), 0, codes, z, one))

    def hold(self, held: np.ndarray) -> None:
        here = self.home.asarray
        self.put_held(held)
        few = np.flatnonzero(held >= 0)
        if len(few):
            self.one[here(few)] = here(held[few].astype(np.int16))
