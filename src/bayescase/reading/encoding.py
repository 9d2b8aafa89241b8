"""A table of values ↔ global integer codes. Feature j owns the codes offset[j] .. offset[j + 1] - 1; -1 is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import Advice, ParameterError, Setting, TableWarning
from ..state import chunks
from .features import Feature, Learned, count_codes, learn_feature, local_codes
from .rules import TYPES, check_markers, is_whole, make_rules
from .tables import AnyColumn, Marker, SparseColumn, Table, Wanted, listed, plain


class Encoding:
    """The features of a model; learned once, then turns tables into codes and codes into values.

    `notes` are warnings about how the table was read, for whoever asked for it to give.
    """

    def __init__(
        self,
        features: Iterable[Feature],
        wanted: Wanted,
        markers: Sequence[Marker] = (),
        notes: Sequence[TableWarning] = (),
    ):
        self.features, self.wanted, self.markers, self.notes = tuple(features), wanted, tuple(markers), tuple(notes)
        self.offset = np.concatenate([[0], np.cumsum([len(f.values) for f in self.features])]).astype(np.int64)
        self.dtype = np.min_scalar_type(-max(int(self.offset[-1]), 1))  # signed: -1 is missing

    def find(self, key: Any, where: str) -> int:
        """The feature that a column's name or position means. `where` is the parameter that names it."""
        places: dict[Any, int] = {feature.name: j for j, feature in enumerate(self.features)}
        places |= {position: j for j, position in enumerate(self.wanted.positions)}
        if not (isinstance(key, str) or is_whole(key)) or key not in places:
            raise ParameterError(
                "{parameter} names the feature {column!r}, which the data does not have.", parameter=where, column=key
            )
        return places[key]

    @classmethod
    def learn(
        cls,
        table: Table,
        bins: Any = 5,
        catalogue: Table | None = None,
        *,
        feature_types: Any = None,
        missing_values: Any = None,
        top_values: Any = None,
        max_count: Any = 1,
    ) -> Encoding:
        """What the features of a table are. Values that only the catalogue has count too."""
        markers = check_markers(missing_values)
        rules = make_rules(table, bins, feature_types, top_values, max_count)
        kept = [j for j, rule in enumerate(rules) if rule.type != "drop"]
        wanted = Wanted(table.names, len(table.columns), kept)
        tables = [Table(wanted.names, [table.columns[j] for j in kept], table.n_cases)]
        if catalogue is not None:
            tables.append(catalogue.select(wanted, "candidates"))
        learned = [
            learn_feature(name, [part.columns[k] for part in tables], rules[j], markers)
            for k, (name, j) in enumerate(zip(wanted.names, kept, strict=True))
        ]
        return cls([each.feature for each in learned], wanted, markers, list(notes_on(learned, tables[0].columns)))

    def encode(self, table: Table) -> tuple[np.ndarray, int]:
        """(codes, number of cells with a value never seen). Unseen values are -1, like missing ones."""
        table = table.select(self.wanted, "X")
        x = np.empty((table.n_cases, len(self.features)), dtype=self.dtype)
        x[:] = self.offset[:-1]  # what a sparse column does not store
        unseen = 0
        for j, (feature, column) in enumerate(zip(self.features, table.columns, strict=True)):
            if isinstance(column, SparseColumn) and feature.type == "count":
                codes = count_codes(feature, column.values)
                unseen += int((codes < 0).sum())
                x[column.rows, j] = np.where(codes < 0, -1, codes + self.offset[j])
            else:
                read = plain(column, feature.name, self.markers)
                codes = local_codes(feature, read)
                unseen += int((codes[~read.missing] < 0).sum())
                x[:, j] = np.where(codes < 0, -1, codes + self.offset[j])
        return x, unseen

    def decode(self, x: np.ndarray) -> np.ndarray:
        """Codes back to values, None where missing."""
        out = np.full(x.shape, None, dtype=object)
        for j, feature in enumerate(self.features):
            values = np.empty(len(feature.values) + 1, dtype=object)
            values[:-1] = feature.values
            out[:, j] = values[np.where(x[:, j] < 0, -1, x[:, j] - self.offset[j])]
        return out

    @cached_property
    def optional(self) -> np.ndarray:
        """(P,) Does the feature say whether something is there, such as an ingredient? 0 and 1 do if all other features do."""
        clear = np.array([tells_presence(feature) for feature in self.features])
        zero_one = np.array([set(feature.values) <= {0, 1} for feature in self.features])
        return clear | zero_one if (clear | zero_one).all() else clear

    @cached_property
    def absent(self) -> np.ndarray:
        """(P,) The code that says that it is not there; -1 if there is none."""
        local = np.array([next((k for k, v in enumerate(f.values) if says_absent(v)), -1) for f in self.features])
        return np.where(self.optional & (local >= 0), self.offset[:-1] + local, -1)

    @property
    def is_set(self) -> bool:
        """Does the table say what is present, and nothing else?"""
        return bool(self.optional.all())

    def is_empty(self, x: np.ndarray) -> np.ndarray:
        """(N,) Is there nothing in a row: nothing observed, or nothing present?"""
        empty = np.empty(len(x), dtype=bool)
        for rows in chunks(*x.shape):
            empty[rows] = ((x[rows] < 0) | (x[rows] == self.absent)).all(axis=1)
        return empty

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs, as plain lists, words and numbers."""
        return {
            "features": [asdict(feature) for feature in self.features],
            "columns": self.wanted.columns,
            "positions": self.wanted.positions,
            "width": self.wanted.width,
            "missing_values": list(self.markers),
        }

    @classmethod
    def from_json(cls, parts: Any) -> Encoding:
        """The encoding that `to_json` wrote; ValueError if the parts do not fit together."""
        features = [Feature(f["name"], f["type"], tuple(f["values"]), tuple(f["edges"]), f["other"]) for f in parts["features"]]
        columns, positions, width = parts["columns"], parts["positions"], parts["width"]
        if not all(map(is_whole, (*positions, width))) or sorted({*positions, -1, width}) != [-1, *positions, width]:
            raise ValueError("positions")
        if columns is not None and (len(set(columns)) != width or not all(isinstance(name, str) for name in columns)):
            raise ValueError("columns")
        wanted = Wanted(columns, width, positions)
        if wanted.names != [f.name for f in features]:
            raise ValueError("features")
        if not all(map(fits, features)):
            raise ValueError("values")
        return cls(features, wanted, check_markers(parts["missing_values"]))


ABSENT = ("false", "absent")
PRESENT = ("true", "present")


def tells_presence(feature: Feature) -> bool:
    """Counts, True and False, and the words for these."""
    words = {str(value).lower() for value in feature.values}
    pairs = zip(ABSENT, PRESENT, strict=True)
    return feature.type == "count" or any(words <= set(pair) for pair in pairs)


def says_absent(value: Any) -> bool:
    """Does the value of an optional feature say that something is not there?"""
    return value == 0 or str(value).lower() in ABSENT


def fits(feature: Feature) -> bool:
    """Could `learn_feature` have made this? What is looked up by bisection must be sorted."""
    values, edges = feature.values, feature.edges
    types = {type(value) for value in values}
    if feature.type not in TYPES or not values or not types <= {str, bool, int, float} or not isinstance(feature.other, bool):
        return False
    if feature.type == "number":
        return (
            types == {str}
            and len(edges) == len(values) - 1
            and all(isinstance(edge, float) and math.isfinite(edge) for edge in edges)
            and all(low < high for low, high in pairwise(edges))
        )
    if feature.type == "integer":
        whole = [value for value in values if type(value) is int and abs(value) < 2**63]
        return len(whole) == len(values) and all(low < high for low, high in pairwise(whole))
    if feature.type == "count":
        return values == (False, True) or values == (*range(len(values) - 1), f"{len(values) - 1}+")
    return not edges


def notes_on(learned: Sequence[Learned], columns: Sequence[AnyColumn]) -> Iterator[TableWarning]:
    """What a person should know of features as they were read."""
    constant = [of.feature.name for of, column in zip(learned, columns, strict=True) if is_constant(of.feature, column)]
    if constant:
        yield TableWarning(
            "{features} {verb} one value only and cannot tell cases apart.",
            features=listed("Feature", constant),
            verb="has" if len(constant) == 1 else "have",
            column=constant[0],
        )
    cut = [of.feature for of in learned if of.doubtful]
    if cut:
        name, shown = cut[0].name, next((value for value in cut[0].values if " to " in str(value)), cut[0].values[0])
        yield TableWarning(
            "{columns} {verb} whole numbers that are cut into intervals, such as {column} = {value}.",
            Advice("if they are codes, say so with {}", Setting("feature_types", "category", column=name)),
            Advice("keep the intervals with {}", Setting("feature_types", "number", column=name)),
            columns=listed("Column", [feature.name for feature in cut]),
            verb="has" if len(cut) == 1 else "have",
            column=name,
            value=shown,
        )


def is_constant(feature: Feature, column: AnyColumn) -> bool:
    if not isinstance(column, SparseColumn) or feature.type != "count":
        return len(feature.values) == 1
    some_absent = len(column.rows) < column.n_cases
    return len(set(count_codes(feature, column.values).tolist()) | ({0} if some_absent else set())) == 1


# --- the features in words -----------------------------------------------------------------------------------------------


class FeatureSummary(NamedTuple):
    """One row of `describe_features`."""

    name: str
    type: str
    n_values: int
    missing: float  # share of the cases
    values: str  # the first few


class FeatureTable(tuple[FeatureSummary, ...]):
    """What `describe_features` returns: a FeatureSummary per feature, printed as a table."""

    def __repr__(self) -> str:
        rows = [
            ("feature", "type", "values", "missing", ""),
            *((f.name, f.type, str(f.n_values), f"{f.missing:.1%}", f.values) for f in self),
        ]
        wide = [max(len(row[k]) for row in rows) for k in range(4)]
        return "\n".join(
            f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}  {e}".rstrip() for a, b, c, d, e in rows
        )


def describe(encoding: Encoding, x: np.ndarray, most: int = 4) -> FeatureTable:
    """A FeatureTable of the features of an encoding, with the share of the cells that are missing in x."""
    missing = [float((x[:, j] < 0).mean()) for j in range(x.shape[1])]
    return FeatureTable(
        FeatureSummary(
            f.name, f.type, len(f.values), gone, ", ".join(map(str, f.values[:most])) + (", …" if len(f.values) > most else "")
        )
        for f, gone in zip(encoding.features, missing, strict=True)
    )


def types_in_words(encoding: Encoding) -> Iterator[str]:
    """A line per type of feature: how many there are, and which."""
    for type_ in TYPES:
        names = [f.name for f in encoding.features if f.type == type_]
        if names:
            yield f"{len(names)} {type_}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
