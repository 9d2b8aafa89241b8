"""What the estimators share: checks at the door, warnings at the end, and parameters ↔ JSON."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .errors import Advice, BayescaseWarning, ParameterError, ParameterTypeError, Setting
from .fitted import Fitted
from .reading.encoder import CaseEncoder
from .reading.tables import is_missing

Seed: TypeAlias = int | np.random.RandomState | None  # a random_state of scikit-learn


def check_watch(checkpoint: Any, callback: Any) -> None:
    """A checkpoint that cannot be written should say so before the run, not after it."""
    if callback is not None and not callable(callback):
        raise ParameterTypeError("{parameter} must be a function, not {value!r}.", parameter="callback", value=callback)
    if checkpoint is None:
        return
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise ParameterTypeError("{parameter} must be a path, not {value!r}.", parameter="checkpoint", value=checkpoint)
    path = os.fspath(checkpoint)
    if os.path.isdir(path):
        raise ParameterError(
            "{parameter} is a folder; give the path of a file.", parameter=Setting("checkpoint", path), value=path
        )
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ParameterError(
            "{parameter} cannot be written: there is no folder {folder!r}.",
            parameter=Setting("checkpoint", path),
            folder=folder,
        )


def check_names(names: Sequence[Any] | None, M: int) -> tuple[str, ...] | None:
    """Names of the rows of the catalogue; "case 3" where there is none."""
    if names is None:
        return None
    names = tuple(f"case {i}" if is_missing(name) or not str(name).strip() else str(name) for i, name in enumerate(names))
    if len(names) != M:
        raise ParameterError(
            "{parameter} has {n} entries, but the catalogue has {M} rows: give one name each.",
            parameter="case_names",
            n=len(names),
            M=M,
        )
    return names


def check_few(candidates: Any) -> int:
    """How many of the cases may be prototypes."""
    if candidates < 1:
        raise ParameterError(
            "{parameter} must be a table or a number of cases of at least 1, not {value!r}.",
            parameter="candidates",
            value=candidates,
        )
    return int(candidates)


def names_at(names: tuple[str, ...] | None, rows: np.ndarray) -> tuple[str, ...]:
    """The names of some cases."""
    return tuple(f"case {row}" if names is None else names[row] for row in rows.tolist())


def check_names_of_large(names: Sequence[Any] | None, M: int | None) -> tuple[str, ...] | None:
    """Cases that are not in memory are called by their rows."""
    if names is not None and M is None:
        raise ParameterError(
            "{parameter} needs the table in memory, or {candidates}; cases on disk are called by their rows.",
            parameter="case_names",
            candidates=Setting("candidates"),
        )
    return None if M is None else check_names(names, M)


def warn_of_results(fitted: Fitted) -> None:
    """Say that the run was stopped, that there may be more clusters, or that its clusters are not settled."""
    if fitted.interrupted:
        n, made, plan = fitted.posterior.p.shape[1], fitted.n_sweeps, fitted.plan
        warnings.warn(
            BayescaseWarning(
                "Stopped after {made} of {most}{n_iter} sweeps; the results rest on {n} kept draw{s} per chain.",
                made=made,
                most="at most " * (len(plan.rounds) > 1),
                n_iter=plan.n_iter,
                n=n,
                s="s" * (n > 1),
            ),
            stacklevel=4,
        )
        return
    if fitted.capped:
        most = fitted.n_labels
        more = (Advice("allow more with {}", Setting("max_clusters", 2 * most)),) if fitted.structured else ()
        warnings.warn(
            BayescaseWarning(
                "All {most} clusters that {auto} may find are in use, so that their number is not known.",
                *more,
                Advice("tell them as fewer by {}", Setting("fold")),
                most=most,
                auto=Setting("n_clusters", "auto"),
            ),
            stacklevel=4,
        )
    if not fitted.diagnostics.sound:
        warnings.warn(f"{fitted.diagnostics.verdict} {fitted.diagnostics.advice}", ConvergenceWarning, stacklevel=4)


# --- parameters ↔ JSON -----------------------------------------------------------------------------------------------------


class Forgotten:
    """In place of a parameter that a file cannot hold. A model with it can be used, but not fitted again."""

    def __init__(self, what: str):
        self.what = what

    def __repr__(self) -> str:
        return f"<{self.what} that the file could not hold>"


def refuse_forgotten(params: Mapping[str, Any]) -> None:
    """Raise if a parameter was lost on the way through a file."""
    for name, value in params.items():
        if has_forgotten(value):
            raise ParameterError(
                "{parameter} had a function, which a file cannot hold: set it again by set_params before you fit.",
                parameter=name,
            )


def has_forgotten(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return isinstance(value, Forgotten) or any(map(has_forgotten, parts))


def params_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: to_json(value) for name, value in params.items()}


def params_from_json(params: Any) -> dict[str, Any]:
    return {name: from_json(value) for name, value in params.items()}


def to_json(value: Any) -> Any:
    """Words and numbers as they are; what JSON has no form for has the name of its kind. Mappings may have numbers as keys."""
    if isinstance(value, np.random.RandomState) or is_missing(value):
        return None  # the fit has moved a RandomState on
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, CaseEncoder):
        return {"encoder": params_to_json(value.get_params())}
    if isinstance(value, Mapping):
        return {"mapping": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [to_json(item) for item in value]}
    if callable(value) or isinstance(value, Forgotten):
        return {"forgotten": getattr(value, "what", "a function")}
    return {"array": np.asarray(value).tolist()}  # arrays, series, …


def from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    makers: dict[str, Callable[[Any], Any]] = {
        "mapping": lambda pairs: {from_json(key): from_json(item) for key, item in pairs},
        "list": lambda items: [from_json(item) for item in items],
        "tuple": lambda items: tuple(from_json(item) for item in items),
        "forgotten": lambda what: Forgotten(str(what)),
        "array": np.array,
        "encoder": lambda params: CaseEncoder(**params_from_json(params)),
    }
    return makers[kind](content)
