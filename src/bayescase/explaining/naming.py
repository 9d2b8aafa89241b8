"""Names of clusters: by hand, or of what sets them apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ParameterError
from ..fitted import Fitted
from ..sampling.values import is_int
from .telling import Told, tell_all
from .values import Values
from .words import clean, cut

SHORT = 32  # letters of a name that is made
MOST_PARTS = 3


def make_names(fitted: Fitted) -> tuple[str, ...]:
    """Names made of what sets the clusters apart."""
    return names_of(fitted, Values(fitted.columns), tell_all(fitted))


def shown_names(fitted: Fitted, made: bool = True) -> tuple[str, ...]:
    """Those that a person gave, or else made ones; "" for all if made ones would tell nothing, as those of pixels."""
    return fitted.cluster_names or (make_names(fitted) if made else ("",) * fitted.n_clusters)


def names_of(fitted: Fitted, values: Values, told: Sequence[Told]) -> tuple[str, ...]:
    """Short and distinct: the most telling values of each cluster. "" if it has nothing more often, or it has no cases.

    A name has as many of the first values as fit. Of clusters that would have the same one, each has the first of them and
    then the most telling value that sets none of the others apart.
    """
    parts = [telling_words(values, of) if size else [] for of, size in zip(told, fitted.sizes.tolist(), strict=True)]
    names = [short_name(words[:MOST_PARTS], 1) for words in parts]
    times = Counter(names)
    for name in (name for name, n in times.items() if name and n > 1):
        same = [s for s, other in enumerate(names) if other == name]
        for s in same:
            others = {word for t in same if t != s for word in parts[t]}
            own = next((word for word in parts[s] if word not in others), None)
            names[s] = name if own is None else f"{parts[s][0]}, {own}"
    seen: Counter[str] = Counter()
    for s, name in enumerate(names):
        seen[name] += 1
        if name and seen[name] > 1:
            names[s] = f"{name} ({seen[name]})"
    return tuple(names)


def telling_words(values: Values, told: Told) -> list[str]:
    """What a cluster has more often, the most telling first; that nothing is there only if it has nothing else."""
    order = told.order(rare=False)
    order, words = order[~told.lacks[order]] if not told.lacks[order].all() else order, []
    for j in order.tolist():
        first, last = values.offset[j], values.offset[j + 1]
        words.append(cut(values.words(j, (first + np.flatnonzero(told.chosen[first:last])).tolist()), SHORT))
    return words


def short_name(words: Sequence[str], least: int) -> str:
    """As many of the words as fit, but at least so many."""
    name = ", ".join(words[:least])
    for word in words[least:]:
        if len(name) + 2 + len(word) <= SHORT:
            name += f", {word}"
    return name


def check_cluster_names(names: Any, made: Sequence[str]) -> tuple[str, ...]:
    """The names that a person gives, a list or {cluster: name}; where there is none, or None, the one that was made."""
    S = len(made)
    if isinstance(names, Mapping):
        wrong = [s for s in names if not is_int(s) or not 0 <= s < S]
        if wrong:
            raise ParameterError("There is no cluster {s!r} to name: the model has {n}, counted from 0.", s=wrong[0], n=S)
        return tuple(name_or(names.get(s), made[s]) for s in range(S))
    if isinstance(names, str) or not (isinstance(names, Sequence) or hasattr(names, "__array__")):
        raise ParameterError(
            "names of clusters must be a list or a mapping from clusters to names, not {value!r}.", value=names
        )
    if len(names) != S:
        raise ParameterError("There are {n} names, but the model has {S} clusters.", n=len(names), S=S)
    return tuple(name_or(name, own) for name, own in zip(names, made, strict=True))


def name_or(name: object, made: str) -> str:
    """A blank is no name."""
    return (clean(name) if name is not None else "") or made
