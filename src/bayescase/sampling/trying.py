"""What moves of many cases at once have in common: units that can be moved, their prior, and the exact evidence of a cluster.

A *unit* is all cells of a case whose label is among those of a move, if they share it. A move gives units other labels of its
own; cases that mix these labels, and cases that are held, stay. So the same move in reverse has the same units.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..kernels import ClusterEvidence, Driver, Rows, Units, collect
from ..state import Data, Hyper, State, has_gaps
from .hyper import dirichlet, log_tables, seat_rows


class Move(NamedTuple):
    """A proposal: its labels, its units, and the labels that these would have."""

    labels: list[int]
    units: Units
    stay: np.ndarray  # (ΣV, labels) counts of all else
    new: np.ndarray  # (U,) int8, which of the labels
    log_ratio: float  # log density of the proposal back over that forth, as far as it is known without `undo` and `back`
    back: tuple[int, int, int] | None  # the reverse chooses the last two as a pair, without the first; None if it does not


class WholeCases:
    """The cases of a table, as units see them; chains share it."""

    def __init__(self, data: Data):
        self.data, self.cells, self.candidates = data, data.cells, data.candidate_cells
        codes, first = self.cells
        self.sizes = np.diff(first)
        self.gaps = codes < 0 if has_gaps(codes) else None
        self.observed = self.sizes  # cells of each case
        if self.gaps is not None:
            self.observed = np.diff(np.concatenate([[0], np.cumsum(~self.gaps)])[first])
        self.some = np.flatnonzero(self.sizes > 0)


def one_label(cases: WholeCases, z: np.ndarray, S: int) -> np.ndarray:
    """(N,) The label of each case that has only one, -1 if it has more, -2 if it has no cells or is held."""
    low = high = z
    if cases.gaps is not None:
        low, high = np.where(cases.gaps, np.int64(S), z), np.where(cases.gaps, np.int64(-1), z)
    starts, one = cases.cells.first[cases.some], np.full(len(cases.observed), -2)
    least, most = np.minimum.reduceat(low, starts).astype(np.int64), np.maximum.reduceat(high, starts)
    one[cases.some] = np.where(least == most, least, -1)
    one[cases.observed == 0] = -2
    if len(cases.data.z_held):
        one[cases.data.z_held >= 0] = -2
    return one


class Trial:
    """Tries to move units, from the labels of the rows; z, one, n and m follow what is accepted."""

    def __init__(self, cases: WholeCases, driver: Driver, rows: Rows, hyper: Hyper, state: State, rng: np.random.Generator):
        driver.use(hyper)
        self.cases, self.driver, self.hyper, self.state, self.rng = cases, driver, hyper, state, rng
        self.exact = ClusterEvidence(cases.data, cases.candidates, driver, hyper)
        V, self.S = state.n_sv.shape
        self.z = rows.labels().copy()
        self.one = one_label(cases, self.z, self.S)
        self.m: np.ndarray | None = None
        if hyper.gamma > 0.0:
            self.m, alone = seat_rows(hyper, self.one, cases.observed, state.n_rows, rng)
            self.one[~alone] = -2
        self.n = np.zeros((V, self.S + 1), dtype=np.int32)  # the last is scratch
        self.n[:, : self.S] = state.n_sv
        lanes = len(driver.tables.rise) // state.n_rows.shape[1]
        self.rise = driver.tables.rise.reshape(-1, lanes)
        self.log_t: dict[int, np.ndarray] = {}
        self.sure: dict[int, float] = {}
        self.made = 0

    def after(self) -> Hyper:
        """The hyperparameters given what was accepted."""
        if self.m is None:
            return self.hyper
        return self.hyper._replace(beta=dirichlet(self.hyper.gamma / self.S + self.m, self.rng))

    def units(self, labels: list[int]) -> tuple[Units, np.ndarray]:
        """The units of these labels, and the counts of all else."""
        place = np.full(self.S + 2, -1)  # also of -1 and -2
        place[labels] = np.arange(len(labels))
        some = (place[self.one] >= 0) | (self.one == -1)
        N, cells = int(some.sum()), int(np.diff(self.cases.cells.first)[some].sum())
        room = Units(np.empty(cells, np.int32), np.zeros(N + 1, np.int64), np.empty(N, np.int64), np.empty(N, np.int8))
        n = np.zeros((len(self.n), len(labels)), dtype=np.int32)
        U = collect(*self.cases.cells, self.z, self.one, place, room, n)
        end = room.first[U]
        return Units(room.codes[:end], room.first[: U + 1], room.row[:U], room.at[:U]), self.n[:, labels] - n

    def take_over(self, move: Move) -> None:
        codes, first, row, _ = move.units
        new, sizes = np.array(move.labels)[move.new], np.diff(first)
        places = np.repeat(self.cases.cells.first[:-1][row] - first[:-1], sizes) + np.arange(first[-1])
        moving = codes >= 0
        self.z[places[moving]] = np.repeat(new, sizes)[moving]
        single = self.one[row] >= 0
        self.one[row[single]] = new[single]
        if self.m is not None:
            self.m = self.m + self.change_of_m(move)
        self.made += 1

    def change_of_m(self, move: Move) -> np.ndarray:
        change, L = np.zeros(self.S, dtype=np.int64), len(move.labels)
        change[move.labels] = np.bincount(move.new, minlength=L) - np.bincount(move.units.at, minlength=L)
        return change

    def log_prior(self, move: Move) -> float:
        """log p(z) there less that here; where β is integrated out, each unit has one table."""
        if self.m is not None:
            there = self.m + self.change_of_m(move)
            return float(log_tables(there, self.hyper.gamma) - log_tables(self.m, self.hyper.gamma))
        of, moved = np.array(move.labels), move.new != move.units.at
        size = np.add.reduceat(move.units.codes >= 0, move.units.first[:-1], dtype=np.int64)[moved]
        return float((self.rise[size, of[move.new[moved]]] - self.rise[size, of[move.units.at[moved]]]).sum())

    def below(self, n: int) -> int:
        return min(int(self.rng.random() * n), n - 1)

    # --- exact evidence -------------------------------------------------------------------------------------------------

    def exact_ratio(self, labels: list[int], n: np.ndarray) -> tuple[float, dict[int, float], dict[int, np.ndarray]]:
        """(log evidence of these labels, with counts n of each, less what it is now; that of each with n, and their t)."""
        proposed = {s: self.evidence_with(s, n[:, k]) for k, s in enumerate(labels)}
        for s in labels:
            if s not in self.sure:
                self.log_t[s], self.sure[s] = self.evidence_now(s)
        sure, log_t = {s: of for s, (_, of) in proposed.items()}, {s: of for s, (of, _) in proposed.items()}
        return sum(sure[s] - self.sure[s] for s in labels), sure, log_t

    # The log evidence of bags is that with some t, over the density that t is proposed with

    def evidence_with(self, s: int, n: np.ndarray) -> tuple[np.ndarray, float]:
        """(t of label s, the log evidence), with counts n."""
        log_t, density = self.exact.propose_t(s, n, self.rng) if self.driver.book.n_bags else (np.zeros(0), 0.0)
        return log_t, self.exact.of(s, n, log_t) - density

    def evidence_now(self, s: int) -> tuple[np.ndarray, float]:
        """(t, the log evidence) of a cluster as it is, t drawn given its prototype and subspace."""
        n, log_t, density = self.n[:, s], np.zeros(0), 0.0
        if self.driver.book.n_bags:
            log_t = self.exact.draw_t(s, self.state, self.rng)
            density = self.exact.log_density_t(s, n, log_t)
        return log_t, self.exact.of(s, n, log_t) - density


def unit_counts(units: Units, at: np.ndarray, V: int, L: int) -> np.ndarray:
    """(ΣV, labels) Counts of the units, by these labels."""
    keys = (units.codes + 1) * L + np.repeat(at, np.diff(units.first))
    return np.bincount(keys, minlength=(V + 1) * L).reshape(V + 1, L)[1:].astype(np.int32)
