"""The values of a fit's features as explanations show them, and which of them agree with a prototype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..fitted import Fitted
from ..reading.columns import Columns
from ..state import Codes, chunks
from .records import plain
from .words import phrase_of


class Values:
    """The values of columns in words. What says only whether something is there is shown as True and False."""

    def __init__(self, columns: Columns):
        self.features, self.offset, self.optional = columns.features, columns.offset, columns.optional.tolist()
        self.shown: list[tuple[Any, ...]] = [
            tuple(code != absent for code in range(first, first + len(feature.values)))
            if optional and len(feature.values) <= 2
            else tuple(plain(value) for value in feature.values)
            for feature, first, absent, optional in zip(
                self.features, columns.offset[:-1].tolist(), columns.absent.tolist(), self.optional, strict=True
            )
        ]

    def of(self, j: int, code: int) -> Any:
        """The value of feature j with this code; None if it is missing."""
        return None if code < 0 else self.shown[j][code - self.offset[j]]

    def words(self, j: int, codes: Sequence[int]) -> str:
        """Feature j and some of its values: "onion", "coat = long or curly"."""
        return phrase_of(self.features[j], [int(code - self.offset[j]) for code in codes], self.optional[j])


def agreeing_codes(fitted: Fitted, s: int) -> np.ndarray:
    """(codes of the columns,) Which values agree with those of the prototype of cluster s, by the model's similarity?"""
    book, columns, prototype = fitted.data.book, fitted.columns, fitted.prototype_codes[s]
    agrees = np.zeros(int(columns.offset[-1]), dtype=bool)
    single = prototype[: columns.n_single]
    for u in single[single >= 0]:
        agrees[book.k_idx[book.k_ptr[u] : book.k_ptr[u + 1]]] = True
    agrees[prototype[columns.n_single :]] = True  # where the prototype lacks an item, to lack it agrees
    return agrees


AGREES, DIFFERS, UNKNOWN = 1, 0, -1


def agreement(fitted: Fitted, s: int, cases: Codes, columns: np.ndarray) -> np.ndarray:
    """(N, columns) Do cases agree with the prototype of cluster s? UNKNOWN where one of the two has no value."""
    prototype, agrees = fitted.prototype_codes[s][columns], agreeing_codes(fitted, s).astype(np.int8)
    states = np.empty((cases.n_rows, len(columns)), dtype=np.int8)
    for rows in chunks(cases.n_rows, len(columns)):
        codes = fitted.columns.codes(cases.part(rows), columns)
        states[rows] = np.where((codes < 0) | (prototype < 0), UNKNOWN, agrees[codes])
    return states


def in_words(state: int) -> bool | None:
    """AGREES, DIFFERS or UNKNOWN as True, False or None."""
    return None if state == UNKNOWN else state == AGREES
