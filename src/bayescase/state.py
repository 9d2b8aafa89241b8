"""The arrays of a run, named after the paper."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .parallel import each, portions


class Cells(NamedTuple):
    """Rows of codes of any length, one after the other: row i is codes[first[i] : first[i + 1]]."""

    codes: np.ndarray
    first: np.ndarray  # (rows + 1,)

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.first)

    def part(self, rows: slice) -> "Cells":
        """Some neighbouring rows, without a copy of their codes."""
        first = self.first[rows.start : rows.stop + 1]
        return Cells(self.codes[first[0] : first[-1]], first - first[0])

    def take(self, rows: Sequence[int] | np.ndarray) -> "Cells":
        """Some rows, in any order."""
        rows = np.asarray(rows, dtype=np.intp)
        sizes = self.sizes[rows]
        first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        where = np.repeat(self.first[rows] - first[:-1], sizes) + np.arange(first[-1])
        return Cells(self.codes[where], first)


class Codes(NamedTuple):
    """Rows of a table: single features, and the items of bags."""

    x: np.ndarray  # (N, P) global codes, -1 missing
    bags: Cells | None = None  # of the items, each as often as it occurs; None if there are no bags

    @property
    def n_rows(self) -> int:
        return len(self.x)

    @property
    def cells(self) -> Cells:
        """All cells: of each row its single features, then its items."""
        return join_cells(self.x, self.bags)

    @property
    def width(self) -> int:
        """Cells of every row, 0 if that differs."""
        return self.x.shape[1] if self.bags is None else 0

    @property
    def longest(self) -> int:
        """Cells of the longest row."""
        more = 0 if self.bags is None else int(self.bags.sizes.max(initial=0))
        return self.x.shape[1] + more if len(self.x) else 0

    @property
    def known(self) -> np.ndarray:
        """(rows,) Has a row a value?"""
        known = np.zeros(len(self.x), dtype=bool) if self.bags is None else self.bags.sizes > 0
        if self.x.shape[1] and not has_gaps(self.x):
            known[:] = True
            return known
        for rows in chunks(*self.x.shape):
            known[rows] |= (self.x[rows] >= 0).any(axis=1)
        return known

    def part(self, rows: slice) -> "Codes":
        """Some neighbouring rows."""
        return Codes(self.x[rows], None if self.bags is None else self.bags.part(rows))

    def take(self, rows: Sequence[int] | np.ndarray) -> "Codes":
        """Some rows, in any order."""
        return Codes(self.x[rows], None if self.bags is None else self.bags.take(rows))


class Codebook(NamedTuple):
    """Which codes there are: P single features, one value per case, then bags, any number of items. Every engine has a copy.

    ω has a column for each single feature and one for each item of a bag; D of them.
    """

    offset: np.ndarray  # (features + 1,) first code of each feature
    n_single: int  # P
    feature: np.ndarray  # (ΣV,) of each code
    column: np.ndarray  # (ΣV,) of ω, of each code
    base: np.ndarray  # (ΣV,) λ(v) / λ: 1 for every value in the paper; its mean over a feature is 1
    k_ptr: np.ndarray  # (ΣV + 1,) K_j(u, ·), the similarity of values, is k_idx, k_val at k_ptr[u] : k_ptr[u + 1]
    k_idx: np.ndarray
    k_val: np.ndarray

    @property
    def n_columns(self) -> int:
        """D: columns of ω."""
        return self.n_single + int(self.offset[-1] - self.offset[self.n_single])

    @property
    def n_bags(self) -> int:
        return len(self.offset) - 1 - self.n_single


class Data(NamedTuple):
    """The cases, the catalogue that prototypes are chosen from, and what is held fixed."""

    x: np.ndarray  # (N, P) global codes of single features, -1 missing
    candidates: np.ndarray  # (M, P) global codes, -1 missing
    book: Codebook
    log_weight: np.ndarray  # (M, 1) or (M, S) log prior probability of each candidate
    z_held: np.ndarray  # (N,) label that all cells of a case are held at, -1 free; (0,) if none is held
    omega_held: np.ndarray  # (S, D) 0 or 1 where ω is held, -1 free; (0, 0) if none is held
    bags: Cells | None = None  # items of the cases, each as often as it occurs; None if there are no bags
    candidate_bags: Cells | None = None  # items of the candidates, each once

    @property
    def offset(self) -> np.ndarray:
        return self.book.offset

    @property
    def own_cases(self) -> bool:
        """Are prototypes chosen from the cases themselves?"""
        return self.candidates is self.x

    @property
    def cases(self) -> Codes:
        return Codes(self.x, self.bags)

    @property
    def catalogue(self) -> Codes:
        return Codes(self.candidates, self.candidate_bags)

    @property
    def cells(self) -> Cells:
        """All cells of the cases. Labels z are in this order."""
        return self.cases.cells

    @property
    def candidate_cells(self) -> Cells:
        return self.catalogue.cells


def join_cells(x: np.ndarray, bags: Cells | None) -> Cells:
    """Rows of single features and rows of items as one; without a copy if there is only one kind."""
    N, P = x.shape
    if bags is None:
        return Cells(np.ascontiguousarray(x).reshape(-1), np.arange(N + 1, dtype=np.int64) * P)
    if P == 0:
        return bags
    first = bags.first + np.arange(N + 1, dtype=np.int64) * P
    codes = np.empty(int(first[-1]), dtype=np.result_type(x, bags.codes))
    single = (first[:-1, None] + np.arange(P)).reshape(-1)
    codes[single] = x.reshape(-1)
    items = np.ones(len(codes), dtype=bool)
    items[single] = False
    codes[items] = bags.codes
    return Cells(codes, first)


def split_cells(cells: Cells, P: int) -> Codes:
    """The other way round: the first P cells of every row are single features, the rest items of bags."""
    single = cells.first[:-1, None] + np.arange(P)
    items = np.ones(len(cells.codes), dtype=bool)
    items[single.reshape(-1)] = False
    return Codes(cells.codes[single], Cells(cells.codes[items], cells.first - P * np.arange(len(cells.first))))


class Hyper(NamedTuple):
    """π_i ~ Dirichlet(α β), with β = 1/S in the paper; λ, c; and q per cluster and feature."""

    alpha: float
    beta: np.ndarray  # (S,)
    lam: float
    c: float
    q: np.ndarray  # (S, D)
    gamma: float  # β ~ Dirichlet(γ/S) if the number of clusters is to be found, else 0


class State(NamedTuple):
    """What a chain has drawn beside z, which stays with the rows, and the counts of z. Updated in place."""

    p: np.ndarray  # (S,) row of the catalogue
    u: np.ndarray  # (S, P + most items) codes of the prototypes, p_sj and then their items; -1 is none
    omega: np.ndarray  # (S, D); of a bag only items of the prototype can be on
    omega_prob: np.ndarray  # (S, D) p(ω = 1 | rest) when ω was drawn
    n_sv: np.ndarray  # (ΣV, S) cells of cluster s with value v
    n_rows: np.ndarray  # (S, longest row + 1) number of rows with n_is = n: all that the prior of z needs


Similarity: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # k_ptr, k_idx, k_val of a Codebook


def exact_match(n_values: int) -> Similarity:
    """K = identity, the paper's g."""
    codes = np.arange(n_values + 1, dtype=np.int64)
    return codes, codes[:-1], np.ones(n_values)


def make_book(
    offset: ArrayLike, n_single: int | None = None, similarity: Similarity | None = None, base: ArrayLike | None = None
) -> Codebook:
    """All features are single, values match exactly, and the base measure is the paper's, unless said otherwise."""
    offset = np.asarray(offset, dtype=np.int64)
    n_single, V = len(offset) - 1 if n_single is None else int(n_single), int(offset[-1])
    feature = np.repeat(np.arange(len(offset) - 1), np.diff(offset))
    column = np.where(feature < n_single, feature, n_single + np.arange(V) - offset[n_single])
    base = np.ones(V) if base is None else np.asarray(base, dtype=float)
    return Codebook(offset, n_single, feature, column, base, *(similarity or exact_match(V)))


def make_data(
    x: np.ndarray,
    offset: ArrayLike,
    candidates: np.ndarray | None = None,
    weight: ArrayLike | None = None,
    similarity: Similarity | None = None,
    z_held: ArrayLike | None = None,
    omega_held: ArrayLike | None = None,
    *,
    bags: Cells | None = None,
    candidate_bags: Cells | None = None,
    base: ArrayLike | None = None,
) -> Data:
    """Fill in the defaults: the catalogue is x, every candidate is equally likely, values match exactly, nothing is held."""
    if candidates is None:
        candidates, candidate_bags = x, None if bags is None else distinct(bags)
    M = len(candidates)
    z_held = np.zeros(0, dtype=np.int64) if z_held is None else np.asarray(z_held, dtype=np.int64)
    omega_held = np.zeros((0, 0), dtype=np.int8) if omega_held is None else np.asarray(omega_held, dtype=np.int8)
    book = make_book(offset, x.shape[1], similarity, base)
    if weight is None:
        log_weight = np.full((M, 1), np.log(np.ones(1) / M)) if M else np.zeros((0, 1))
    else:
        log_weight = log_weights(np.asarray(weight, dtype=float).reshape(M, -1))
    return Data(x, candidates, book, log_weight, z_held, omega_held, bags, candidate_bags)


def distinct(bags: Cells) -> Cells:
    """The same rows, in order, each item once. The very same object if it is so already."""
    rows = np.repeat(np.arange(len(bags.first) - 1), bags.sizes)
    order = np.lexsort((bags.codes, rows))
    codes, rows = bags.codes[order], rows[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1])
    if new.all() and (order == np.arange(len(order))).all():
        return bags
    first = np.concatenate([[0], np.cumsum(np.bincount(rows[new], minlength=len(bags.first) - 1))])
    return Cells(codes[new], first.astype(np.int64))


def log_weights(weight: np.ndarray) -> np.ndarray:
    """Log prior probability of each candidate; one of weight zero is never chosen."""
    with np.errstate(divide="ignore"):
        return np.log(weight / weight.sum(axis=0))


def make_hyper(S: int, D: int, alpha: float, lam: float, c: float, q: ArrayLike, gamma: float = 0.0) -> Hyper:
    """The paper's symmetric prior; q is one number, one per column of ω, or one per cluster and column."""
    q = np.ascontiguousarray(np.broadcast_to(np.asarray(q, dtype=float), (S, D)))
    return Hyper(float(alpha), np.full(S, 1.0 / S), float(lam), float(c), q, float(gamma))


def new_state(data: Data, S: int) -> State:
    """Nothing drawn and nothing counted."""
    V, D = int(data.offset[-1]), data.book.n_columns
    state = State(
        p=np.zeros(S, dtype=np.int64),
        u=np.full((S, data.catalogue.longest), -1, dtype=np.int64),
        omega=np.zeros((S, D), dtype=np.bool_),
        omega_prob=np.zeros((S, D)),
        n_sv=np.zeros((V, S), dtype=np.int32),
        n_rows=np.zeros((S, data.cases.longest + 1), dtype=np.int64),
    )
    if len(data.omega_held):  # an item of a bag can be on only once a prototype has it
        state.omega[:, : data.book.n_single] = data.omega_held[:, : data.book.n_single] > 0
    return state


def spread(labels: np.ndarray, cells: Cells, width: int) -> np.ndarray:
    """(cells,) Labels, of each cell or, as (rows, 1), of each row. Rows have `width` cells, or any number if that is 0."""
    return labels if labels.ndim == 1 else np.repeat(labels[:, 0], width or cells.sizes)


def smallest_int(n: int) -> np.dtype:
    """The smallest unsigned type that holds 0 .. n - 1."""
    return np.min_scalar_type(max(n - 1, 0))


def has_gaps(x: np.ndarray) -> bool:
    """Is any cell missing?"""
    width = x.shape[1] if x.ndim > 1 else 1
    if not width:
        return False

    def lack(part: slice) -> bool:
        return any(bool(x[part][rows].min() < 0) for rows in chunks(part.stop - part.start, width))

    return any(each(lack, portions(len(x), max(1, AT_ONCE // width))))


def count_observed(x: np.ndarray, bags: Cells | None = None) -> np.ndarray:
    """(longest row + 1,) How many rows have n observed cells, for every n."""
    N, P = x.shape
    more = np.zeros(N, dtype=np.int64) if bags is None else bags.sizes
    histogram = np.zeros(P + int(more.max(initial=0)) + 1, dtype=np.int64)
    if not has_gaps(x):
        return histogram + np.bincount(P + more, minlength=len(histogram))
    for rows in chunks(N, P):
        histogram += np.bincount((x[rows] >= 0).sum(axis=1) + more[rows], minlength=len(histogram))
    return histogram


AT_ONCE = 1 << 20  # cells that are worth a thread
FEW = 1 << 14  # cells of a chunk where temporaries must be smaller still


def chunks(n: int, width: int, cells: int = 1 << 17) -> list[slice]:
    """Slices of n rows that hold about a hundred thousand cells each, so that temporaries stay small."""
    step = max(1, cells // max(width, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
