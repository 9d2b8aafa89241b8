"""Frozen dataclasses ↔ plain JSON, and what all explanations can do."""

from __future__ import annotations

import typing
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Self

import numpy as np


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's, tuples as lists, dataclasses as dictionaries."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def build(kind: Any, value: Any) -> Any:
    """The other way round, by the types of the fields; what has another type raises TypeError, what lacks a field KeyError."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is UnionType:
        return None if value is None else build(next(of for of in inner if of is not NoneType), value)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        given = {f.name: value[f.name] for f in fields(kind) if f.name in value or f.default is MISSING}
        return kind(**{name: build(hints[name], item) for name, item in given.items()})
    if origin is tuple and isinstance(value, list):
        of = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(build(part, item) for part, item in zip(of, value, strict=True))
    if origin is dict and isinstance(value, dict):
        return {key: build(inner[1], item) for key, item in value.items()}
    wanted = {Any: (NoneType, str, bool, int, float), float: (float, int)}.get(kind, (kind,))
    if origin is not None or type(value) not in wanted:
        raise TypeError(f"{value!r:.50} is not of type {kind}")
    return float(value) if kind is float else value  # an editor may write 1.0 as 1


class Explanation:
    """What all explanations can do."""

    def to_json(self) -> dict[str, Any]:
        """Plain lists, words and numbers, with the kind of each explanation.

        Returns
        -------
        dict
        """
        return {"kind": type(self).__name__, **plain(self)}

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The explanation that `to_json` made.

        Parameters
        ----------
        value : dict

        Returns
        -------
        Explanation
            Of the kind that was written.

        Raises
        ------
        ValueError
            If it is no explanation, or one of another kind than asked for.
        """
        try:
            kind = {kind.__name__: kind for kind in Explanation.__subclasses__()}[value["kind"]]
            if not issubclass(kind, cls):
                raise TypeError(f"a {value['kind']}, not a {cls.__name__}")
            found: Self = build(kind, value)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"This is not an explanation of bayescase ({error!r}).") from error
        return found
