"""A table of values ↔ global integer codes. Feature j owns the codes offset[j] .. offset[j + 1] - 1; -1 is missing."""

import math
import warnings
from dataclasses import asdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .features import KINDS, Feature, check_markers, count_codes, is_whole, learn_feature, local_codes, make_settings
from .tables import SparseColumn, Wanted, listed, plain


class Encoding:
    """The features of a model; learned once, then turns tables into codes and codes into values."""

    def __init__(self, features, wanted, markers=()):
        self.features, self.wanted, self.markers = tuple(features), wanted, tuple(markers)
        self.offset = np.concatenate([[0], np.cumsum([len(f.values) for f in self.features])]).astype(np.int64)
        self.dtype = np.min_scalar_type(-max(int(self.offset[-1]), 1))  # signed: -1 is missing

    @property
    def columns(self):
        """Names of the features, None if the table had none."""
        return self.wanted.names if self.wanted.named else None

    def find(self, key, where):
        """The feature that a column's name or position means."""
        places = {feature.name: j for j, feature in enumerate(self.features)}
        places |= {position: j for j, position in enumerate(self.wanted.positions)}
        if not (isinstance(key, str) or is_whole(key)) or key not in places:
            raise ValueError(f"{where} names the feature {key!r}, which the data does not have.")
        return places[key]

    @classmethod
    def learn(cls, table, bins=5, catalogue=None, *, feature_types=None, missing_values=None, top_values=None, max_count=1):
        """What the features of a table are. Values that only the catalogue has count too."""
        markers = check_markers(missing_values)
        settings = make_settings(table, bins, feature_types, top_values, max_count)
        kept = [j for j, setting in enumerate(settings) if setting.kind != "drop"]
        wanted = Wanted(table.names is not None, [table.name(j) for j in kept], kept, len(table.columns))
        tables = [table._replace(names=wanted.names, columns=[table.columns[j] for j in kept])]
        if catalogue is not None:
            tables.append(catalogue.select(wanted, "candidates"))
        features = [
            learn_feature(name, [part.columns[k] for part in tables], settings[j], markers)
            for k, (name, j) in enumerate(zip(wanted.names, kept, strict=True))
        ]
        constant = [f.name for f, column in zip(features, tables[0].columns, strict=True) if is_constant(f, column)]
        if constant:
            verb = "has" if len(constant) == 1 else "have"
            warnings.warn(f"{listed('Feature', constant)} {verb} one value only and cannot tell cases apart.", stacklevel=3)
        return cls(features, wanted, markers)

    def encode(self, table):
        """(codes, number of cells with a value never seen). Unseen values are -1, like missing ones."""
        table = table.select(self.wanted, "X")
        x = np.empty((table.n_cases, len(self.features)), dtype=self.dtype)
        x[:] = self.offset[:-1]  # what a sparse column does not store
        unseen = 0
        for j, (feature, column) in enumerate(zip(self.features, table.columns, strict=True)):
            if isinstance(column, SparseColumn) and feature.kind == "count":
                rows, codes = column.rows, count_codes(feature, column.values)
                unseen += int((codes < 0).sum())
            else:
                column = plain(column, feature.name, self.markers)
                rows, codes = slice(None), local_codes(feature, column)
                unseen += int((codes[~column.missing] < 0).sum())
            x[rows, j] = np.where(codes < 0, -1, codes + self.offset[j])
        return x, unseen

    def decode(self, x):
        """Codes back to values, None where missing."""
        out = np.full(x.shape, None, dtype=object)
        for j, feature in enumerate(self.features):
            values = np.empty(len(feature.values) + 1, dtype=object)
            values[:-1] = feature.values
            out[:, j] = values[np.where(x[:, j] < 0, -1, x[:, j] - self.offset[j])]
        return out

    def to_json(self):
        """What `from_json` needs, as plain lists, words and numbers."""
        return {
            "features": [asdict(feature) for feature in self.features],
            "columns": self.columns,
            "positions": self.wanted.positions,
            "width": self.wanted.width,
            "missing_values": list(self.markers),
        }

    @classmethod
    def from_json(cls, parts):
        """The encoding that `to_json` wrote; ValueError if the parts do not fit together."""
        features = [Feature(f["name"], f["kind"], tuple(f["values"]), tuple(f["edges"]), f["other"]) for f in parts["features"]]
        names, positions, width = [f.name for f in features], parts["positions"], parts["width"]
        if parts["columns"] not in (None, names) or len(positions) != len(names) or len(set(names)) != len(names):
            raise ValueError("features")
        if not all(map(is_whole, (*positions, width))) or sorted({*positions, -1, width}) != [-1, *positions, width]:
            raise ValueError("positions")
        if not all(isinstance(f.name, str) and fits(f) for f in features):
            raise ValueError("values")
        wanted = Wanted(parts["columns"] is not None, names, positions, width)
        return cls(features, wanted, check_markers(parts["missing_values"]))


def fits(feature):
    """Could `learn_feature` have made this? What is looked up by bisection must be sorted."""
    kind, values, edges = feature.kind, feature.values, feature.edges
    types = {type(value) for value in values}
    if kind not in KINDS or not values or not types <= {str, bool, int, float} or not isinstance(feature.other, bool):
        return False
    if kind == "number":
        return (
            types == {str}
            and len(edges) == len(values) - 1
            and all(isinstance(edge, float) and math.isfinite(edge) for edge in edges)
            and all(low < high for low, high in pairwise(edges))
        )
    if kind == "integer":
        return types == {int} and all(low < high for low, high in pairwise(values)) and max(map(abs, values)) < 2**63
    if kind == "count":
        return values == (False, True) or values == (*range(len(values) - 1), f"{len(values) - 1}+")
    return not edges


def is_constant(feature, column):
    if not isinstance(column, SparseColumn) or feature.kind != "count":
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


class FeatureTable(tuple):
    """What `describe_features` returns: a FeatureSummary per feature, printed as a table."""

    def __repr__(self):
        rows = [
            ("feature", "type", "values", "missing", ""),
            *((f.name, f.type, str(f.n_values), f"{f.missing:.1%}", f.values) for f in self),
        ]
        wide = [max(len(row[k]) for row in rows) for k in range(4)]
        return "\n".join(
            f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}  {e}".rstrip() for a, b, c, d, e in rows
        )


def describe(encoding, x, most=4):
    """A FeatureTable of the features of an encoding, with the share of the cells that are missing in x."""
    missing = [float((x[:, j] < 0).mean()) for j in range(x.shape[1])]
    return FeatureTable(
        FeatureSummary(
            f.name, f.kind, len(f.values), gone, ", ".join(map(str, f.values[:most])) + (", …" if len(f.values) > most else "")
        )
        for f, gone in zip(encoding.features, missing, strict=True)
    )


def kinds_in_words(encoding):
    """A line per kind of feature: how many there are, and which."""
    for kind in KINDS:
        names = [f.name for f in encoding.features if f.kind == kind]
        if names:
            yield f"{len(names)} {kind}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
