"""The arrays of a run, named after the paper."""

from typing import NamedTuple

import numpy as np


class Codebook(NamedTuple):
    """Which codes there are, and K, the similarity of values, as a sparse table over codes. Every engine has a copy."""

    offset: np.ndarray  # (P + 1,) first code of each feature
    k_ptr: np.ndarray  # (ΣV + 1,) K_j(u, ·) is k_idx, k_val at k_ptr[u] : k_ptr[u + 1]
    k_idx: np.ndarray
    k_val: np.ndarray


class Data(NamedTuple):
    """The cases, the catalogue that prototypes are chosen from, and what is held fixed."""

    x: np.ndarray  # (N, P) global codes, -1 missing
    candidates: np.ndarray  # (M, P) global codes, -1 missing
    book: Codebook
    log_weight: np.ndarray  # (M, 1) or (M, S) log prior probability of each candidate
    z_held: np.ndarray  # (N,) label that all cells of a case are held at, -1 free; (0,) if none is held
    omega_held: np.ndarray  # (S, P) 0 or 1 where ω_sj is held, -1 free; (0, 0) if none is held

    @property
    def offset(self) -> np.ndarray:
        return self.book.offset

    @property
    def own_cases(self) -> bool:
        """Are prototypes chosen from the cases themselves?"""
        return self.candidates is self.x


class Hyper(NamedTuple):
    """π_i ~ Dirichlet(α β), with β = 1/S in the paper; λ, c; and q per cluster and feature."""

    alpha: float
    beta: np.ndarray  # (S,)
    lam: float
    c: float
    q: np.ndarray  # (S, P)
    gamma: float  # β ~ Dirichlet(γ/S) if the number of clusters is to be found, else 0


class State(NamedTuple):
    """What a chain has drawn beside z, which stays with the rows, and the counts of z. Updated in place."""

    p: np.ndarray  # (S,) row of the catalogue
    u: np.ndarray  # (S, P) p_sj, the codes of the prototypes
    omega: np.ndarray  # (S, P)
    omega_prob: np.ndarray  # (S, P) p(ω_sj = 1 | rest) when ω was drawn
    n_sv: np.ndarray  # (ΣV, S) cells of cluster s with value v
    n_rows: np.ndarray  # (S, P + 1) number of rows with n_is = n: all that the prior of z needs


def exact_match(n_values: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K = identity, the paper's g, as (k_ptr, k_idx, k_val)."""
    codes = np.arange(n_values + 1, dtype=np.int64)
    return codes, codes[:-1], np.ones(n_values)


def make_data(x, offset, candidates=None, weight=None, similarity=None, z_held=None, omega_held=None) -> Data:
    """Fill in the defaults: the catalogue is x, every candidate is equally likely, values match exactly, nothing is held."""
    candidates = x if candidates is None else candidates
    offset = np.asarray(offset, dtype=np.int64)
    weight = np.ones((len(candidates), 1)) if weight is None else np.asarray(weight, dtype=float)
    z_held = np.zeros(0, dtype=np.int64) if z_held is None else np.asarray(z_held, dtype=np.int64)
    omega_held = np.zeros((0, 0), dtype=np.int8) if omega_held is None else np.asarray(omega_held, dtype=np.int8)
    book = Codebook(offset, *(similarity or exact_match(int(offset[-1]))))
    return Data(x, candidates, book, log_weights(weight.reshape(len(candidates), -1)), z_held, omega_held)


def log_weights(weight: np.ndarray) -> np.ndarray:
    """Log prior probability of each candidate; one of weight zero is never chosen."""
    with np.errstate(divide="ignore"):
        return np.log(weight / weight.sum(axis=0))


def make_hyper(S, P, alpha, lam, c, q, gamma=0.0) -> Hyper:
    """The paper's symmetric prior; q is one number, one per feature, or one per cluster and feature."""
    q = np.ascontiguousarray(np.broadcast_to(np.asarray(q, dtype=float), (S, P)))
    return Hyper(float(alpha), np.full(S, 1.0 / S), float(lam), float(c), q, float(gamma))


def new_state(data: Data, S: int) -> State:
    """Nothing drawn and nothing counted."""
    P, V = data.x.shape[1], int(data.offset[-1])
    return State(
        p=np.zeros(S, dtype=np.int64),
        u=np.full((S, P), -1, dtype=np.int64),
        omega=data.omega_held > 0 if len(data.omega_held) else np.zeros((S, P), dtype=np.bool_),
        omega_prob=np.zeros((S, P)),
        n_sv=np.zeros((V, S), dtype=np.int32),
        n_rows=np.zeros((S, P + 1), dtype=np.int64),
    )


def smallest_int(n: int) -> np.dtype:
    """The smallest unsigned type that holds 0 .. n - 1."""
    return np.min_scalar_type(max(n - 1, 0))


def count_observed(x: np.ndarray) -> np.ndarray:
    """(P + 1,) How many rows have n observed cells, for every n."""
    N, P = x.shape
    histogram = np.zeros(P + 1, dtype=np.int64)
    for rows in chunks(N, P):
        histogram += np.bincount((x[rows] >= 0).sum(axis=1), minlength=P + 1)
    return histogram


FEW = 1 << 14  # cells of a chunk where temporaries must be smaller still


def chunks(n: int, width: int, cells: int = 1 << 17) -> list[slice]:
    """Slices of n rows that hold about a hundred thousand cells each, so that temporaries stay small."""
    step = max(1, cells // max(width, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
