"""Do the parts of a problem that was read from a file fit together? Compiled code trusts shapes and codes."""

from __future__ import annotations

import numpy as np

from ..state import longest
from .hyper import LEARNED
from .problem import STARTS, Problem, is_int

NUMBERS = ("alpha", "lam", "c", "gamma")  # of Hyper; the rest are arrays


def check_problem(problem: Problem, S: int) -> None:
    """What is needed to run on: S labels, of which some may not be in use."""
    data, hyper, learn, plan = problem.data, problem.hyper, problem.learn, problem.plan
    N, D, most = len(data.x), data.book.n_columns, longest(data.cells)
    need(set(learn.names) <= set(LEARNED) and isinstance(learn.beta, bool), "learned")
    need(all(isinstance(getattr(hyper, name), float) for name in NUMBERS), "given hyperparameters")
    need(hyper.alpha >= 0 and hyper.lam > 0 and hyper.c >= 0 and bool((hyper.q > 0).all() and (hyper.q < 1).all()), "range")
    need_numbers(hyper.beta, (S,))
    need_numbers(hyper.q, (S, D))
    need_numbers(learn.q_free, (S, D))
    need_codes(problem.n_i, (most + 1,), 0, N + 1)
    if len(data.z_held):
        need_codes(data.z_held, (N,), -1, S)
    if len(data.omega_held):
        need_codes(data.omega_held, (S, D), -1, 2)
    need(plan.sampler in ("rows", "collapsed") and isinstance(plan.keep_draws, bool) and len(plan.rounds) > 0, "plan")
    need(all(is_int(n) for r in plan.rounds for n in r) and all(0 <= r.first < r.end for r in plan.rounds), "rounds")
    need(is_int(plan.n_chains) and len(plan.single_label) == plan.n_chains and all(map(is_int, plan.single_label)), "chains")
    if isinstance(plan.start, tuple):
        need(len(plan.start) == plan.n_chains and set(plan.start) <= set(STARTS), "starts")
    else:
        need_codes(plan.start, (N,) if plan.start.ndim == 1 else data.x.shape, -1, S)


def need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(what)


def need_codes(array: np.ndarray, shape: tuple[int | None, ...], low: int, high: int) -> None:
    need(array.dtype.kind in "iu" and fits(array.shape, shape), "shape")
    need(array.size > 0 and array.min() >= low and array.max() < high, "codes")


def need_numbers(array: np.ndarray | None, shape: tuple[int | None, ...]) -> None:
    need(array is not None and array.dtype.kind in "fb" and fits(array.shape, shape), "shape")


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(n > 0 and want in (n, None) for n, want in zip(shape, wanted, strict=True))
