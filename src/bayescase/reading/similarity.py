"""K_j(u, v): how much of the prototype's pseudo-counts value v gets if the prototype has value u. The paper's generalised g.

The result is a sparse table over codes, as `state.Data` wants it: K_j(u, ·) is k_idx, k_val at k_ptr[u] : k_ptr[u + 1].
"""

from collections.abc import Mapping
from numbers import Real

import numpy as np

from ..state import exact_match

WAYS = "'match', ('within', ε), (a function of two values, ε), or a table with a row and a column per value"


def similarity_table(similarity, encoding):
    """(k_ptr, k_idx, k_val) for one way for all features, or a mapping from features to ways; the rest match exactly."""
    features = encoding.features
    ways = ways_of(similarity, encoding)
    if all(isinstance(way, str) for way in ways):
        return exact_match(sum(len(feature.values) for feature in features))
    sizes, indices, values, first = [], [], [], 0
    for way, feature in zip(ways, features, strict=True):
        K = table_of(way, feature)
        sizes.append((K > 0).sum(axis=1))
        indices.append(first + np.nonzero(K)[1])
        values.append(K[K > 0])
        first += len(feature.values)
    k_ptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    return k_ptr.astype(np.int64), np.concatenate(indices).astype(np.int64), np.concatenate(values)


def ways_of(similarity, encoding):
    """The way of each feature. ("within", ε) for all leaves out categories without an order: they match."""
    features = encoding.features
    if not isinstance(similarity, Mapping):
        check_way(similarity, "similarity")
        if is_pair(similarity) and isinstance(similarity[0], str):
            return [similarity if feature.ordered else "match" for feature in features]
        return [similarity] * len(features)
    ways, named = ["match"] * len(features), set()
    for key, way in similarity.items():
        j = encoding.find(key, "similarity")
        if j in named:
            raise ValueError(f"similarity has the feature {key!r} twice, by name and by position.")
        named.add(j)
        check_way(way, f"similarity of {key!r}")
        if is_pair(way) and isinstance(way[0], str) and not features[j].ordered:
            raise ValueError(
                f"similarity of {key!r} is ('within', ε), but its values have no order: set "
                f"feature_types={{{key!r}: 'ordered'}}, or give a table."
            )
        ways[j] = way
    return ways


def is_pair(way):
    return isinstance(way, tuple) and len(way) == 2


def is_table(way):
    return np.ndim(np.asarray(way, dtype=object)) == 2


def check_way(way, what):
    if isinstance(way, str) and way == "match":
        return
    if is_pair(way) and (way[0] == "within" or callable(way[0])):
        if not isinstance(way[1], Real) or isinstance(way[1], bool) or not way[1] >= 0:
            raise ValueError(f"{what} has ε = {way[1]!r}; it must be a number of at least 0.")
        return
    if isinstance(way, (str, tuple)) or callable(way) or not is_table(way):
        raise ValueError(f"{what} must be {WAYS}, not {way!r}.")


def table_of(way, feature):
    """K of one feature, (V, V): row u is the prototype's value."""
    V = len(feature.values)
    if isinstance(way, str):
        return np.eye(V)
    if is_pair(way):
        loss, epsilon = way
        if isinstance(loss, str):
            scale = np.array(feature.values, dtype=float) if feature.kind == "integer" else np.arange(V)
            return (np.abs(scale[:, None] - scale) <= epsilon).astype(float)
        return np.array([[float(loss_of(loss, u, v, feature) <= epsilon) for v in feature.values] for u in feature.values])
    try:
        K = np.asarray(way, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"The similarity table of {feature.name!r} must hold numbers.") from None
    if K.shape != (V, V):
        raise ValueError(
            f"The similarity table of {feature.name!r} has shape {K.shape}, but the feature has {V} values: "
            f"{', '.join(map(str, feature.values[:10]))}{', …' * (V > 10)}."
        )
    if not ((K >= 0) & (K <= 1)).all():
        raise ValueError(f"The similarity table of {feature.name!r} must have entries from 0 to 1.")
    return K


def loss_of(loss, u, v, feature):
    try:
        value = float(loss(u, v))
    except Exception as error:
        raise ValueError(f"The loss function failed for the values {u!r} and {v!r} of {feature.name!r}: {error}.") from error
    if np.isnan(value):
        raise ValueError(f"The loss function is not a number for the values {u!r} and {v!r} of {feature.name!r}.")
    return value
