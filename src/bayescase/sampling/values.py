"""What values a parameter can have."""

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from ..errors import ParameterError, Setting
from .hyper import LARGEST


def is_int(value: Any) -> TypeGuard[int]:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and math.isfinite(value)


def is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def is_learned(value: Any) -> bool:
    return isinstance(value, str) and value == "learn"


def check_count(name: str, value: Any, auto: bool = False) -> None:
    if not (is_int(value) and value >= 1) and not (auto and is_auto(value)):
        raise ParameterError(
            "{parameter} must be {either}a whole number of at least 1, not {value!r}.",
            parameter=name,
            value=value,
            either="'auto' or " if auto else "",
        )


def check_positive(name: str, value: Any, least: str, zero: bool) -> None:
    if is_learned(value):
        return
    if not is_real(value) or value < 0 or (value == 0 and not zero):
        raise ParameterError(
            "{parameter} must be 'learn' or a number {least}, not {value!r}.", parameter=name, value=value, least=least
        )
    if value > LARGEST or 0 < value < 1 / LARGEST:
        raise ParameterError(
            "{setting} is beyond what can be computed exactly: use {low:g} to {high:g}.",
            parameter=name,
            value=value,
            setting=Setting(name, value),
            low=1 / LARGEST,
            high=LARGEST,
        )


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if not isinstance(value, str) or value not in choices:
        words = " or ".join(map(repr, choices))
        raise ParameterError("{parameter} must be {words}, not {value!r}.", parameter=name, value=value, words=words)


def numbers_of(values: Any, shapes: Mapping[tuple[int, ...], str], name: str) -> np.ndarray:
    """An array of one of these shapes, which come with a description for the error."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("{parameter} must be numbers, not {value!r}.", parameter=name, value=values) from None
    if array.shape not in shapes:
        raise ParameterError(
            "{parameter} has shape {shape}; it must be {wanted}.",
            parameter=name,
            shape=array.shape,
            wanted=" or ".join(shapes.values()),
        )
    return array
