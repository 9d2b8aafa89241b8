"""A run on disk: written whole, every few seconds, and taken up again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import storage
from .plan import Plan, Round
from .problem import Problem

if TYPE_CHECKING:
    from .chain import Chain


DRAWS = 2  # one more whenever the draws of a run become others: what an earlier version began is not gone on with


class Stage(NamedTuple):
    """How far a run has come."""

    sweep: int = 0  # sweeps made
    apart: int = 0  # rounds in a row that ended with settled chains in different clusters
    finished: bool = False


def fingerprint(problem: Problem) -> str:
    """What a checkpoint must agree with: data, hyperparameters, which of them are learned, and the plan but for its length."""
    digest = hashlib.sha256()
    # A run that goes on is past its start; how that was searched may depend on the run's length, and so may what "auto" moves
    plan = problem.plan._replace(rounds=(), n_init=1, moves="", auto_moves=False)
    chooses = len(problem.plan.rounds) > 1  # its own length
    stored = () if problem.stored is None else problem.stored.identity
    for part in leaves((DRAWS, problem.data, problem.hyper, problem.learn, plan, chooses, stored)):
        array = np.ascontiguousarray(part) if isinstance(part, np.ndarray) else np.frombuffer(repr(part).encode(), np.uint8)
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def leaves(parts: Any) -> Iterator[Any]:
    """The values inside nested tuples."""
    for part in parts:
        if isinstance(part, tuple):
            yield from leaves(part)
        else:
            yield part


def seed_of(path: str | os.PathLike[str]) -> int | None:
    """The seed of the run that the checkpoint at `path` belongs to; None if there is no checkpoint."""
    return storage.read_header(path, "checkpoint")["seed"] if os.path.exists(path) else None


def save(path: str | os.PathLike[str], print_: str, problem: Problem, chains: list[Chain], stage: Stage) -> None:
    arrays = {f"{c}/{name}": value for c, chain in enumerate(chains) for name, value in chain.arrays(stage.sweep).items()}
    header = {name: getattr(problem.plan, name) for name in ("seed", "rounds", "moves", "auto_moves")} | stage._asdict()
    storage.write(path, "checkpoint", {"fingerprint": print_, **header}, arrays)


def resume(path: str | os.PathLike[str], print_: str, problem: Problem, chains: list[Chain]) -> tuple[Stage, Plan]:
    """Put the chains back where the checkpoint left them. A finished run goes on if the plan is longer.

    Returns the stage, and the plan with the moves that the run began with, if "auto" chose them.
    """
    header, arrays = storage.read(path, "checkpoint")
    stage = Stage(*(header[name] for name in Stage._fields))
    plan = problem.plan
    before, rounds = tuple(Round(*r) for r in header["rounds"]), plan.rounds
    longer = stage.sweep <= rounds[-1].first or (len(rounds) == len(before) and rounds[-1].first == before[-1].first)
    goes_on = rounds == before or (longer and stage.sweep <= rounds[-1].end)
    same_moves = header.get("moves") == plan.moves or (header.get("auto_moves") and plan.auto_moves)
    if header["fingerprint"] != print_ or not goes_on or not same_moves:
        raise ValueError(
            f"The checkpoint {os.fspath(path)!r} belongs to other data or settings; delete it or choose another path."
        )
    for c, chain in enumerate(chains):
        chain.restore({k.removeprefix(f"{c}/"): v for k, v in arrays.items() if k.startswith(f"{c}/")}, plan)
    stage = stage if rounds == before else stage._replace(finished=stage.sweep == rounds[-1].end)
    return stage, plan._replace(moves=header["moves"])
