"""A Problem as the parts of a file, and back, all of them checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..reading.encoding import Encoding
from ..state import Cells, Data, Hyper, make_book
from .hyper import LEARNED, Learn
from .plan import MOVES, Plan, Round
from .problem import STARTS, Problem
from .results import KeptDraws
from .values import is_int

NUMBERS = ("alpha", "lam", "c", "gamma")  # of Hyper; the rest are arrays


def problem_parts(problem: Problem) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
    """(header, arrays by part) of a problem, with which a run can go on."""
    data, hyper, learn, plan = problem.data, problem.hyper, problem.learn, problem.plan
    header = {
        **problem.encoding.to_json(),
        "plan": plan._asdict() | {"start": list(plan.start) if isinstance(plan.start, tuple) else None},
        "given": {name: getattr(hyper, name) for name in NUMBERS},
        "learn": {"names": learn.names, "beta": learn.beta},
        "own_cases": data.own_cases,
    }
    parts = {
        "data": {name: getattr(data, name) for name in ("x", "candidates", "log_weight", "z_held", "omega_held")},
        "book": {name: getattr(data.book, name) for name in ("base", "k_ptr", "k_idx", "k_val")},
        "given": {"beta": hyper.beta, "q": hyper.q, "q_free": learn.q_free, "n_i": problem.n_i},
    }
    if data.own_cases:
        del parts["data"]["candidates"]
    for name in ("bags", "candidate_bags"):
        of = getattr(data, name)
        if of is not None and not (name == "candidate_bags" and of is data.bags):
            parts["data"] |= {f"{name}/codes": of.codes, f"{name}/first": of.first}
    if not isinstance(plan.start, tuple):
        parts["given"]["start"] = plan.start
    return header, parts


def problem_from_parts(header: dict[str, Any], parts: dict[str, dict[str, np.ndarray]]) -> Problem:
    """The problem that `problem_parts` took apart."""
    if header["own_cases"]:
        parts["data"]["candidates"] = parts["data"]["x"]
    plan, given = header["plan"], parts["given"]
    start = given["start"] if plan["start"] is None else tuple(plan["start"])
    rounds, single_label = tuple(Round(*r) for r in plan["rounds"]), tuple(plan["single_label"])
    encoding = Encoding.from_json(header)
    return Problem(
        encoding=encoding,
        data=data_from_parts(parts, encoding),
        hyper=Hyper(**header["given"], beta=given["beta"], q=given["q"]),
        learn=Learn(tuple(header["learn"]["names"]), given["q_free"], header["learn"]["beta"]),
        plan=Plan(**plan | {"start": start, "rounds": rounds, "single_label": single_label}),
        n_i=given["n_i"],
    )


def data_from_parts(parts: dict[str, dict[str, np.ndarray]], encoding: Encoding) -> Data:
    """The arrays of the cases; bags are kept as codes and where each row begins."""
    found: dict[str, Any] = dict(parts["data"])
    for name in ("bags", "candidate_bags"):
        if f"{name}/codes" in found:
            found[name] = Cells(found.pop(f"{name}/codes"), found.pop(f"{name}/first"))
    if "bags" in found:
        found.setdefault("candidate_bags", found["bags"])
    book = parts["book"]
    similarity = (book["k_ptr"], book["k_idx"], book["k_val"])
    return Data(**found, book=make_book(encoding.offset, encoding.n_single, similarity, book["base"]))


def check_problem(problem: Problem, S: int) -> None:
    """What is needed to run on: S labels, of which some may not be in use."""
    data, hyper, learn, plan = problem.data, problem.hyper, problem.learn, problem.plan
    N, D, most = len(data.x), data.book.n_columns, data.cases.longest
    need(set(learn.names) <= set(LEARNED) and isinstance(learn.beta, bool), "learned")
    check_hyper(hyper, S, D)
    need_numbers(learn.q_free, (S, D))
    need_codes(problem.n_i, (most + 1,), 0, N + 1)
    if len(data.z_held):
        need_codes(data.z_held, (N,), -1, S)
    if len(data.omega_held):
        need_codes(data.omega_held, (S, D), -1, 2)
    need(plan.sampler in ("rows", "collapsed") and isinstance(plan.keep_draws, bool), "plan")
    need(is_int(plan.prototypes_every) and plan.prototypes_every > 0, "plan")
    need(plan.moves in MOVES and isinstance(plan.auto_moves, bool), "moves")
    need(is_int(plan.n_init) and plan.n_init > 0 and len(plan.rounds) > 0, "plan")
    need(all(is_int(n) for r in plan.rounds for n in r) and all(0 <= r.first < r.end for r in plan.rounds), "rounds")
    need(is_int(plan.n_chains) and len(plan.single_label) == plan.n_chains and all(map(is_int, plan.single_label)), "chains")
    if isinstance(plan.start, tuple):
        need(len(plan.start) == plan.n_chains and set(plan.start) <= set(STARTS), "starts")
    else:
        need_codes(plan.start, (N,) if plan.start.ndim == 1 else data.x.shape, -1, S)


def check_hyper(hyper: Hyper, S: int, D: int) -> None:
    need(all(isinstance(getattr(hyper, name), float) for name in NUMBERS), "hyperparameters")
    need(hyper.alpha >= 0 and hyper.lam > 0 and hyper.c >= 0 and bool((hyper.q > 0).all() and (hyper.q < 1).all()), "range")
    need_numbers(hyper.beta, (S,))
    need_numbers(hyper.q, (S, D))


def check_draws(draws: KeptDraws, kept: tuple[int, int], data: Data, S: int) -> None:
    """As many of each chain as were kept, of S labels."""
    cells = data.x.shape if data.bags is None else (len(data.cells.codes),)
    need_codes(draws.z, (*kept, *cells), 0, S)
    need_codes(draws.p, (*kept, S), 0, len(data.candidates))
    need_numbers(draws.omega, (*kept, S, data.book.n_columns))
    need_numbers(draws.log_joint, kept)


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
