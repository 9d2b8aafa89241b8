"""K_j(u, v): how much of the prototype's pseudo-counts value v gets if the prototype has value u. The paper's generalised g.

The result is a sparse table over codes, as `state.Data` wants it: K_j(u, ·) is k_idx, k_val at k_ptr[u] : k_ptr[u + 1].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Advice, ParameterError, Setting
from ..state import Similarity, exact_match
from .encoding import Encoding
from .features import Feature, Value

# Of one feature, and of all or by feature
Way: TypeAlias = Literal["match"] | tuple[Literal["within"], float] | tuple[Callable[[Any, Any], float], float] | ArrayLike
Ways: TypeAlias = Way | Mapping[Any, Way]

WAYS = "'match', ('within', ε), (a function of two values, ε), or a table with a row and a column per value"


def similarity_table(similarity: Ways, encoding: Encoding) -> Similarity:
    """(k_ptr, k_idx, k_val) for one way for all features, or a mapping from features to ways; the rest match exactly."""
    singles = encoding.features[: encoding.n_single]
    ways = ways_of(similarity, encoding)
    first, n_items = encoding.first_item, int(encoding.offset[-1]) - encoding.first_item
    if all(isinstance(way, str) for way in ways):
        return exact_match(first + n_items)
    sizes, indices, values = [], [], []
    for way, feature, start in zip(ways, singles, encoding.offset[: len(singles)], strict=True):
        K = table_of(way, feature)
        sizes.append((K > 0).sum(axis=1))
        indices.append(start + np.nonzero(K)[1])
        values.append(K[K > 0])
    k_ptr = np.concatenate([[0], np.cumsum(np.concatenate([*sizes, np.ones(n_items, dtype=np.int64)]))])  # items match
    k_idx = np.concatenate([*indices, first + np.arange(n_items)])
    return k_ptr.astype(np.int64), k_idx.astype(np.int64), np.concatenate([*values, np.ones(n_items)])


def ways_of(similarity: Any, encoding: Encoding) -> list[Any]:
    """The way of each single feature. ("within", ε) for all leaves out categories without an order: they match."""
    features = encoding.features[: encoding.n_single]
    if not isinstance(similarity, Mapping):
        check_way(similarity, Setting("similarity"))
        if is_pair(similarity) and isinstance(similarity[0], str):
            return [similarity if feature.ordered else "match" for feature in features]
        return [similarity] * len(features)
    ways: list[Any] = ["match"] * len(features)
    named: set[int] = set()
    for key, way in similarity.items():
        j = encoding.find(key, "similarity")
        if j >= len(features):
            raise ParameterError(
                "{parameter} names {column!r}, an item of a bag; items agree only with themselves.",
                parameter="similarity",
                column=key,
            )
        if j in named:
            raise ParameterError(
                "{parameter} has the feature {column!r} twice, by name and by position.", parameter="similarity", column=key
            )
        named.add(j)
        check_way(way, Setting("similarity", column=key))
        if is_pair(way) and isinstance(way[0], str) and not features[j].ordered:
            raise ParameterError(
                "{parameter} is ('within', ε), but the values of {column!r} have no order.",
                Advice("say that they have one with {}", Setting("feature_types", "ordered", column=key, of="encoder")),
                Advice("give a table"),
                parameter=Setting("similarity", column=key),
                column=key,
            )
        ways[j] = way
    return ways


def is_pair(way: Any) -> bool:
    return isinstance(way, tuple) and len(way) == 2


def is_table(way: Any) -> bool:
    return np.ndim(np.asarray(way, dtype=object)) == 2


def check_way(way: Any, parameter: Setting) -> None:
    if isinstance(way, str) and way == "match":
        return
    if is_pair(way) and (way[0] == "within" or callable(way[0])):
        if not isinstance(way[1], Real) or isinstance(way[1], bool) or not float(way[1]) >= 0:
            raise ParameterError(
                "{parameter} has ε = {value!r}; it must be a number of at least 0.", parameter=parameter, value=way[1]
            )
        return
    if isinstance(way, (str, tuple)) or callable(way) or not is_table(way):
        raise ParameterError("{parameter} must be {ways}, not {value!r}.", parameter=parameter, ways=WAYS, value=way)


def table_of(way: Any, feature: Feature) -> np.ndarray:
    """K of one feature, (V, V): row u is the prototype's value."""
    V, parameter = len(feature.values), Setting("similarity", column=feature.name)
    if isinstance(way, str):
        return np.eye(V)
    if is_pair(way):
        loss, epsilon = way
        if isinstance(loss, str):
            scale = np.array(feature.values, dtype=float) if feature.type == "integer" else np.arange(V)
            return np.asarray(np.abs(scale[:, None] - scale) <= epsilon, dtype=float)
        return np.array([[float(loss_of(loss, u, v, feature) <= epsilon) for v in feature.values] for u in feature.values])
    try:
        K = np.asarray(way, dtype=float)
    except (TypeError, ValueError):
        raise ParameterError("{parameter} must be a table of numbers.", parameter=parameter, column=feature.name) from None
    if K.shape != (V, V):
        raise ParameterError(
            "{parameter} is a table of shape {shape}, but the feature has {n} values: {values}.",
            parameter=parameter,
            column=feature.name,
            shape=K.shape,
            n=V,
            values=", ".join(map(str, feature.values[:10])) + ", …" * (V > 10),
        )
    if not ((K >= 0) & (K <= 1)).all():
        raise ParameterError("{parameter} must be a table with entries from 0 to 1.", parameter=parameter, column=feature.name)
    return K


def loss_of(loss: Callable[[Any, Any], Any], u: Value, v: Value, feature: Feature) -> float:
    try:
        value = float(loss(u, v))
    except Exception as error:
        raise ParameterError(
            "The loss function of {parameter} failed for the values {first!r} and {second!r}: {why}.",
            parameter=Setting("similarity", column=feature.name),
            first=u,
            second=v,
            why=error,
        ) from error
    if np.isnan(value):
        raise ParameterError(
            "The loss function of {parameter} is not a number for the values {first!r} and {second!r}.",
            parameter=Setting("similarity", column=feature.name),
            first=u,
            second=v,
        )
    return value
