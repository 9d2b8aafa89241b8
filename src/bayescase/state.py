"""The arrays of a run, named after the paper."""

from typing import NamedTuple

import numpy as np


class Data(NamedTuple):
    """The cases, the catalogue that prototypes are chosen from, and the similarity K as a sparse table over codes."""

    x: np.ndarray  # (N, P) global codes, -1 missing
    candidates: np.ndarray  # (M, P) global codes, -1 missing
    offset: np.ndarray  # (P + 1,) first code of each feature
    log_weight: np.ndarray  # (M, 1) or (M, S) log prior probability of each candidate
    k_ptr: np.ndarray  # (ΣV + 1,) K_j(u, ·) is k_idx, k_val at k_ptr[u] : k_ptr[u + 1]
    k_idx: np.ndarray
    k_val: np.ndarray
    z_held: np.ndarray  # (N,) label that all cells of a case are held at, -1 free; (0,) if none is held
    omega_held: np.ndarray  # (S, P) 0 or 1 where ω_sj is held, -1 free; (0, 0) if none is held


class Hyper(NamedTuple):
    """π_i ~ Dirichlet(α β), with β = 1/S in the paper; λ, c; and q per cluster and feature."""

    alpha: float
    beta: np.ndarray  # (S,)
    lam: float
    c: float
    q: np.ndarray  # (S, P)
    gamma: float  # β ~ Dirichlet(γ/S) if the number of clusters is to be found, else 0


class State(NamedTuple):
    """What a chain samples, and the counts that follow from it. Updated in place."""

    z: np.ndarray  # (N, P)
    p: np.ndarray  # (S,)
    omega: np.ndarray  # (S, P)
    n_sv: np.ndarray  # (ΣV, S) cells of cluster s with value v
    n_rows: np.ndarray  # (S, P + 1) number of rows with n_is = n: all that the prior of z needs


def exact_match(n_values):
    """K = identity, the paper's g, as (k_ptr, k_idx, k_val)."""
    codes = np.arange(n_values + 1, dtype=np.int64)
    return codes, codes[:-1], np.ones(n_values)


def make_data(x, offset, candidates=None, weight=None, similarity=None, z_held=None, omega_held=None):
    """Fill in the defaults: the catalogue is x, every candidate is equally likely, values match exactly, nothing is held."""
    candidates = x if candidates is None else candidates
    offset = np.asarray(offset, dtype=np.int64)
    weight = np.ones((len(candidates), 1)) if weight is None else np.asarray(weight, dtype=float)
    weight = weight.reshape(len(candidates), -1)
    with np.errstate(divide="ignore"):  # a candidate of weight zero is never chosen
        log_weight = np.log(weight / weight.sum(axis=0))
    z_held = np.zeros(0, dtype=np.int64) if z_held is None else np.asarray(z_held, dtype=np.int64)
    omega_held = np.zeros((0, 0), dtype=np.int8) if omega_held is None else np.asarray(omega_held, dtype=np.int8)
    k_ptr, k_idx, k_val = similarity or exact_match(int(offset[-1]))
    return Data(x, candidates, offset, log_weight, k_ptr, k_idx, k_val, z_held, omega_held)


def make_hyper(S, P, alpha, lam, c, q, gamma=0.0):
    """The paper's symmetric prior; q is one number, one per feature, or one per cluster and feature."""
    q = np.ascontiguousarray(np.broadcast_to(np.asarray(q, dtype=float), (S, P)))
    return Hyper(float(alpha), np.full(S, 1.0 / S), float(lam), float(c), q, float(gamma))


def smallest_int(n):
    """The smallest unsigned type that holds 0 .. n - 1."""
    return np.min_scalar_type(max(n - 1, 0))


def new_state(data, z, S):
    """A state around the labels z: counts filled, prototypes and subspaces not yet drawn."""
    from .kernels.cpu.sweep import recount

    P = z.shape[1]
    state = State(
        z=z,
        p=np.zeros(S, dtype=np.int64),
        omega=data.omega_held > 0 if len(data.omega_held) else np.zeros((S, P), dtype=np.bool_),
        n_sv=np.zeros((data.offset[-1], S), dtype=np.int32),
        n_rows=np.zeros((S, P + 1), dtype=np.int64),
    )
    recount(data.x, z, state.n_sv, state.n_rows)
    return state


def check(data, state):
    """Raise if the counts are not those of z."""
    fresh = new_state(data, state.z, len(state.p))
    if not (np.array_equal(fresh.n_sv, state.n_sv) and np.array_equal(fresh.n_rows, state.n_rows)):
        raise AssertionError("the counts differ from a recount of z")


def count_observed(x):
    """n_i: observed cells of each row."""
    return np.concatenate([(x[rows] >= 0).sum(axis=1) for rows in chunks(*x.shape)])


FEW = 1 << 14  # cells of a chunk where temporaries must be smaller still


def chunks(n, width, cells=1 << 17):
    """Slices of n rows that hold about a hundred thousand cells each, so that temporaries stay small."""
    step = max(1, cells // max(width, 1))
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
