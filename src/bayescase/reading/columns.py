"""A table as it is explained: a column for each single feature, and for each item of a bag one that says whether it is there.

The columns are those of ω. Codes of single features are the global ones; an item has two, absent and present.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..state import Codes, chunks, distinct, has_gaps
from .encoding import Encoding
from .features import Feature

ABSENT = ("false", "absent")
PRESENT = ("true", "present")
# Words of a value that says that nothing is there, that the question does not apply, or that nothing is known
NOTHING = (*ABSENT, "0", "no", "none", "nothing", "n/a", "unknown", "missing", "?")
DOES_NOT_APPLY = "dna"  # so in lower case; in capitals it is DNA


class Columns:
    """The columns of an encoding, and rows of codes as rows of columns."""

    def __init__(self, encoding: Encoding):
        self.n_single, self.first_item = encoding.n_single, encoding.first_item
        self.n_items = int(encoding.offset[-1]) - self.first_item
        self.single_offset = encoding.offset[: self.n_single + 1]
        items = (Feature(name, "count", (False, True)) for name in encoding.column_names[self.n_single :])
        self.features = (*encoding.features[: self.n_single], *items)
        self.bag = np.repeat(np.arange(len(encoding.bags)), [len(bag.values) for bag in encoding.bags])  # of each item

    def __len__(self) -> int:
        return len(self.features)

    @cached_property
    def names(self) -> list[str]:
        return [feature.name for feature in self.features]

    @cached_property
    def offset(self) -> np.ndarray:
        """(D + 1,) The first code of each column."""
        return np.concatenate([self.single_offset, self.first_item + 2 * np.arange(1, self.n_items + 1)])

    @cached_property
    def column(self) -> np.ndarray:
        """(codes,) The column of each code."""
        return np.repeat(np.arange(len(self)), np.diff(self.offset))

    @cached_property
    def optional(self) -> np.ndarray:
        """(D,) Does the column say whether something is there, such as an ingredient? 0 and 1 do if all other columns do."""
        single = self.features[: self.n_single]
        clear = np.array([tells_presence(feature) for feature in single], dtype=bool)
        zero_one = np.array([set(feature.values) <= {0, 1} for feature in single], dtype=bool)
        found = clear | zero_one if (clear | zero_one).all() else clear
        return np.concatenate([found, np.ones(self.n_items, dtype=bool)])

    @cached_property
    def absent(self) -> np.ndarray:
        """(D,) The code that says that it is not there; -1 if there is none."""
        single = self.features[: self.n_single]
        local = np.array([next((k for k, v in enumerate(f.values) if says_absent(v)), -1) for f in single], dtype=np.int64)
        of_single = np.where(self.optional[: self.n_single] & (local >= 0), self.single_offset[:-1] + local, -1)
        return np.concatenate([of_single, self.offset[self.n_single : -1]])

    @cached_property
    def lacks(self) -> np.ndarray:
        """(codes,) Does the value say that nothing is there, or known?"""
        return np.array([lacks(value) for feature in self.features for value in feature.values], dtype=bool)

    @cached_property
    def one_of_many(self) -> np.ndarray:
        """(D,) Is it one of many things that a case may have: an item, or a column of a table that says what is present?"""
        return self.optional & ((np.arange(len(self)) >= self.n_single) | bool(self.optional[: self.n_single].all()))

    @property
    def is_set(self) -> bool:
        """Does the table say what is present, and nothing else?"""
        return bool(self.optional.all())

    def present(self, items: np.ndarray) -> np.ndarray:
        """The codes that say that items, given by their global codes, are there."""
        return np.asarray(2 * np.asarray(items, dtype=np.int64) - self.first_item + 1)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """A number for each value and each item → one for each code, 0 for what is absent."""
        out = np.zeros((int(self.offset[-1]), *values.shape[1:]))
        out[: self.first_item] = values[: self.first_item]
        out[self.first_item + 1 :: 2] = values[self.first_item :]
        return out

    def codes(self, of: Codes, columns: np.ndarray | None = None) -> np.ndarray:
        """(rows, columns) The codes of rows in some columns, in all if None."""
        columns = np.arange(len(self)) if columns is None else np.asarray(columns, dtype=np.int64)
        single = columns < self.n_single
        out = np.empty((of.n_rows, len(columns)), dtype=np.int64)
        out[:, single] = of.x[:, columns[single]]
        if of.bags is not None and not single.all():
            out[:, ~single] = self.offset[columns[~single]]
            place = np.full(self.n_items, -1)
            place[columns[~single] - self.n_single] = np.flatnonzero(~single)
            where = place[of.bags.codes.astype(np.int64) - self.first_item]
            rows = np.repeat(np.arange(of.n_rows), of.bags.sizes)
            out[rows[where >= 0], where[where >= 0]] = self.present(of.bags.codes[where >= 0])
        return out

    def count(self, of: Codes, labels: np.ndarray, n_groups: int) -> np.ndarray:
        """(codes, groups) How many rows of each group have each code; rows with a label below 0 have no value."""
        n = np.zeros((int(self.offset[-1]), n_groups), dtype=np.int64)
        for rows in chunks(*of.x.shape):
            for column in of.x[rows].T:
                known = column >= 0
                np.add.at(n, (column[known].astype(np.int64), labels[rows][known]), 1)
        if of.bags is not None:
            once = distinct(of.bags)
            np.add.at(n, (self.present(once.codes), np.repeat(labels, once.sizes)), 1)
            sizes = np.bincount(labels[labels >= 0], minlength=n_groups)
            n[self.first_item :: 2] = sizes - n[self.first_item + 1 :: 2]
        return n

    def is_empty(self, of: Codes) -> np.ndarray:
        """(rows,) Is there nothing in a row: nothing observed, or nothing present?"""
        empty = np.ones(of.n_rows, dtype=bool) if of.bags is None else of.bags.sizes == 0
        absent = self.absent[: self.n_single]
        if (absent < 0).any() and not has_gaps(of.x):
            return np.zeros(of.n_rows, dtype=bool)  # a column without gaps in which nothing is absent
        for rows in chunks(*of.x.shape):
            empty[rows] &= ((of.x[rows] < 0) | (of.x[rows] == absent)).all(axis=1)
        return empty


def tells_presence(feature: Feature) -> bool:
    """Counts, True and False, and the words for these."""
    words = {str(value).lower() for value in feature.values}
    pairs = zip(ABSENT, PRESENT, strict=True)
    return feature.type == "count" or any(words <= set(pair) for pair in pairs)


def lacks(value: Any) -> bool:
    """Does the value of any feature say that nothing is there, or known?"""
    if value is None:
        return False
    word = str(value).strip()
    return value == 0 or word == DOES_NOT_APPLY or word.lower() in NOTHING


def says_absent(value: Any) -> bool:
    """Does the value of an optional feature say that something is not there?"""
    return value == 0 or str(value).lower() in ABSENT
