"""What an engine must offer, and what goes in and out of it.

The driver (`kernels.driver`) holds what is small: p, ω, φ, hyperparameters and tables of S × ΣV. An engine holds rows, in
memory (`kernels.cpu`) or wherever else they fit. Tables go out, integers come back; they add up in any order, and the random
numbers of a row depend on the seed, the chain, the sweep and the number of the row alone. So every engine and every split
into blocks gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from ..state import Cells, Hyper
    from ..storage import Mapped
    from .cpu.tables import Copies, Tables, Tally
    from .cpu.threads import Threads


class Counts(NamedTuple):
    """The counts of z."""

    n_sv: np.ndarray  # (ΣV, S) cells of cluster s with value v
    n_rows: np.ndarray  # (S, longest row + 1) rows with n_is = n

    @classmethod
    def none(cls, V: int, S: int, width: int) -> Counts:
        return cls(np.zeros((V, S), np.int32), np.zeros((S, width + 1), np.int64))

    def add(self, block: Tally) -> None:
        """Those of one more block of rows, of which nothing was counted before."""
        np.add(self.n_sv, block.delta, out=self.n_sv)
        np.add(self.n_rows, block.n_rows, out=self.n_rows)


class Moved(NamedTuple):
    """What an update of z changed."""

    delta: np.ndarray  # (ΣV, S) change of n_sv
    n_rows: np.ndarray  # (S, longest row + 1) rows with n_is = n, after it
    main: np.ndarray  # (S,) rows most of whose cells have label s
    moved: np.ndarray  # (2,) cells moved, rows relabelled
    purity_sum: np.ndarray  # (1,) Σ_i max_s n_is / n_i in units of 2⁻³²: an integer adds up in any order

    @classmethod
    def none(cls, V: int, S: int, width: int) -> Moved:
        return cls(np.zeros((V, S), np.int32), *(np.zeros(shape, np.int64) for shape in ((S, width + 1), S, 2, 1)))

    def add(self, block: Tally | Moved) -> None:
        """The statistics of one more block of rows."""
        for total, part in zip(self, block, strict=True):
            total += part

    @property
    def cells(self) -> int:
        return int(self.moved[0])

    @property
    def rows(self) -> int:
        return int(self.moved[1])

    @property
    def purity(self) -> float:
        """Σ_i max_s n_is / n_i."""
        return self.purity_sum[0] / 2**32

    @property
    def clusters_in_use(self) -> int:
        """Clusters that are the main one of some row."""
        return int((self.main > 0).sum())


class Best(NamedTuple):
    """For each cluster the candidate with the best score: with Gumbel noise in the scores, a draw."""

    score: np.ndarray  # (S,)
    row: np.ndarray  # (S,) its number in the catalogue
    codes: np.ndarray  # (S, longest candidate) padded with -1

    @classmethod
    def none(cls, S: int, most: int) -> Best:
        return cls(np.full(S, -np.inf), np.zeros(S, np.int64), np.full((S, most), -1))

    def offer(self, score: np.ndarray, row: np.ndarray) -> None:
        """Take in the best of one more block of candidates; the first of equals wins."""
        score = score[: len(row)]
        better = (score > self.score) | ((score == self.score) & (row < self.row))
        self.score[better], self.row[better] = score[better], row[better]


Meanwhile: TypeAlias = Callable[[], object] | None


class Rows(Protocol):
    """One chain's rows and their labels z, wherever they live, with the running mean of their memberships."""

    device: str  # where a sample of them is best swept

    def recount(self, n_values: int) -> Counts:
        """Count z from scratch."""

    def update_z(self, tables: Tables, key: np.uint64, by_cell: bool = True) -> Moved:
        """Draw the labels of all rows given φ: relabel moves, and cell moves if `by_cell`."""

    @property
    def memberships(self) -> np.ndarray | Mapped:
        """(N, S) Their mean so far, label by label."""

    def new_means(self, keep_former: bool = False) -> None:
        """Restart the mean of the memberships; `keep_former` keeps the old one, at half precision."""

    def drop_former(self) -> None:
        """Forget the former mean."""

    def former_memberships(self) -> np.ndarray | Mapped:
        """(N, S) The former mean."""

    def overlap(self) -> np.ndarray:
        """(S, S) Σ_i mean[i, r] n_is / n_i: how much label s of z lies on label r of the mean so far."""

    def add_memberships(self, hyper: Hyper, to: np.ndarray, weight: float) -> None:
        """mean += weight (E[π | z] − mean), label s counted as to[s]."""

    def take(self, rows: np.ndarray) -> tuple[Cells, np.ndarray, np.ndarray]:
        """(cells, their labels, the label that each row is held at or -1) of some rows."""

    def put(self, rows: np.ndarray, z: np.ndarray) -> None:
        """Give the cells of some rows other labels. The caller updates the counts."""

    def start(self, labels_of: Callable[[slice, Cells], np.ndarray]) -> None:
        """Give all cells labels: labels_of(rows, their cells), part by part, in order; (cells,), or one per row, (rows, 1)."""

    def labels(self) -> np.ndarray:
        """The labels of all cells."""

    def single(self) -> np.ndarray:
        """(N,) The label of each row that has only one, -1 of the others."""

    def put_labels(self, z: np.ndarray) -> None:
        """Give all cells other labels. The caller counts again."""

    def hold(self, held: np.ndarray) -> None:
        """Hold rows at these labels, -1 free, and no others; (0,) holds none. The caller counts again."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Labels and memberships as a checkpoint keeps them, by name."""

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what `arrays` gave. The caller counts again."""


class Candidates(Protocol):
    """The catalogue that prototypes are chosen from."""

    log_weight: np.ndarray  # (M, 1) or (M, S) log prior probability of each candidate

    def weights_of(self, p: np.ndarray) -> np.ndarray:
        """(S,) Log prior probability of candidate p_s for cluster s."""

    def score(self, copies: Copies, key: np.uint64, meanwhile: Meanwhile = None) -> Best:
        """The best candidate of each cluster, by log weight plus evidence plus Gumbel noise.

        An engine that only waits for it may call `meanwhile` once. It must not touch what candidates are scored by.
        """


class Engine(Protocol):
    """The rows and candidates of a run, and the threads that the driver makes its tables with."""

    threads: Threads
    candidates: Candidates
    chains_at_once: int  # chains that are swept side by side

    def rows(self, chain: int) -> Rows:
        """The rows of a chain, whose labels are not yet set."""

    def close(self) -> None:
        """Give back threads, memory and files."""
