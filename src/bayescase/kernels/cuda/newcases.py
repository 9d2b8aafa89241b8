"""New cases on a GPU: their memberships given tables of φ."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ...state import Codebook, Codes, Hyper, chunks, has_gaps
from ..cpu.newcases import BURN, KEEP, make_fold
from ..cpu.tables import lanes_for
from .cells import DeviceCells
from .machine import FOLDING, Bundle, Machine

CELLS = 1 << 27  # of new cases that are there at a time


def fold_there(
    machine: Machine, cases: Codes, book: Codebook, given: Iterable[tuple[Hyper, np.ndarray]], seed: np.uint64
) -> np.ndarray:
    """(N, S) Σ_d E[π_i | x_i, φ_d] of cases, given (α and β, φ) of each table d: what `fold_in` gives on the processors."""
    machine.use()
    xp, tables = machine.xp, list(given)
    S, width, gaps = tables[0][1].shape[1], cases.longest, has_gaps(cases.cells.codes)
    mean = np.empty((cases.n_rows, S))
    V, f4, f8 = int(book.offset[-1]), np.float32, np.float64
    by_value = ((V + 1) * lanes_for(S),)
    shapes = {
        "phi": (by_value, f4),
        "log_phi": (by_value, f4),
        "smooth": ((V + 1,), f4),
        "leave": ((S, V + 1), f4),
        "a": ((S,), f8),
        "rise": (((width + 1) * lanes_for(S),), f8),
        "beta": ((S,), f8),
    }
    bundles = []
    for hyper, phi in tables:
        bundles.append(Bundle(machine, shapes))
        bundles[-1].send(**make_fold(book, hyper, phi, width).tables._asdict(), beta=hyper.beta)
    most = max(width, min(CELLS, machine.free_bytes() // 32))
    for rows in chunks(cases.n_rows, max(width, S), most):
        cells = DeviceCells(machine, cases.part(rows), book, S, sources=FOLDING, gaps=gaps)
        there, n = xp.zeros((rows.stop - rows.start, S), dtype=f8), rows.stop - rows.start
        far = xp.zeros(max(cells.far_bytes, 16), dtype=np.uint8)
        for (hyper, _), bundle in zip(tables, bundles, strict=True):
            numbers = (np.float64(hyper.alpha), bundle.there["beta"], np.int32(BURN), np.int32(KEEP), np.uint64(seed))
            drawn = [bundle.there[name] for name in ("phi", "log_phi", "smooth", "leave", "a", "rise")]
            cells.launch("fold_in", 32 * n, cells.row_bytes, *cells.args(cells.blocks[0]), *drawn, *numbers, there, far)
        machine.fetch(there, mean[rows])
    return mean
