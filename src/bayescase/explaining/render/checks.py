"""What a plot was given: checked, with a sentence if it is something else; and words that labels share."""

from __future__ import annotations

from typing import Any

from ...errors import ParameterError, ParameterTypeError, Setting
from ...fitted import Fitted
from ...sampling.values import is_int
from ..explanation import ClusterExplanation, ModelExplanation
from ..parts import FeatureRole
from ..words import cut, phrase
from .drawing import NORMAL, Figure, Sheet


def role_words(role: FeatureRole) -> str:
    return phrase(cut(role.name, 26), role.value)


def empty_figure(words: str) -> Figure:
    """A sentence in place of a picture."""
    sheet = Sheet(6.5, 1.2)
    lines = sheet.wrap(words, 6.1, NORMAL, "normal", 4)
    for k, line in enumerate(lines):
        sheet.write(0.2, 0.6 + 0.2 * (k - (len(lines) - 1) / 2), line)
    return sheet.figure


def clusters_of(explanation: ModelExplanation | ClusterExplanation) -> tuple[ClusterExplanation, ...]:
    if isinstance(explanation, ClusterExplanation):
        return (explanation,)
    check_kind(explanation, ModelExplanation, "model.explain(), or one of its clusters")
    return explanation.clusters


def check_kind(explanation: Any, kind: type, made_by: str) -> None:
    if not isinstance(explanation, kind):
        raise ParameterTypeError(
            "This takes what {made_by} returns, not {other}.", made_by=made_by, other=type(explanation).__name__
        )


def check_fitted(fitted: Any) -> None:
    if not isinstance(fitted, Fitted):
        raise ParameterTypeError("This takes model.fitted_, not {other}.", other=type(fitted).__name__)


def check_sweeps(fitted: Any) -> None:
    check_fitted(fitted)
    if fitted.whole is not None:
        raise ParameterError("A folded model has no sweeps of its own to draw: draw those of the one that it was folded from.")


def check_shape(shape: Any, n_features: int) -> tuple[int, int]:
    if not isinstance(shape, (tuple, list)) or len(shape) != 2 or not all(is_int(n) and n > 0 for n in shape):
        raise ParameterError(
            "{parameter} must be two positive whole numbers, height and width, not {value!r}.",
            parameter="image_shape",
            value=shape,
        )
    if shape[0] * shape[1] != n_features:
        raise ParameterError(
            "{parameter} has {pixels} pixels, but the model has {n} features.",
            parameter=Setting("image_shape", tuple(shape)),
            pixels=shape[0] * shape[1],
            n=n_features,
        )
    return int(shape[0]), int(shape[1])
