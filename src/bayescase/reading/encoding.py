"""A table of values ↔ global integer codes. Feature j owns the codes offset[j] .. offset[j + 1] - 1; -1 is missing.

ω has a column for each single feature, then one for each item of a bag.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import ParameterError, TableError, TableWarning
from ..state import Cells, Codes
from .bags import LearnedBag, Wishes, count_items, items_of_rows, learn_bag, select_codes, to_cells
from .features import Feature, Learned, count_codes, learn_feature, local_codes
from .notes import Refusals, notes_on
from .rules import (
    SOURCES,
    TYPES,
    Asked,
    Items,
    Rule,
    check_column_names,
    check_markers,
    check_min_cases,
    check_stop_words,
    is_whole,
    make_rules,
    with_names,
)
from .seen import OF_MATRIX, Coded, as_matrix, by_column, code_columns, count_values, in_parts
from .tables import AnyColumn, Marker, SparseColumn, Table, Wanted, has_lists, plain

AMBIGUOUS = -1  # items of several bags are called so


class BagLayout(NamedTuple):
    """The columns that a bag is made of, and what is asked of it."""

    how: Items
    names: list[str]
    part: slice  # of the columns that are wanted
    wishes: Wishes


class Layout(NamedTuple):
    """Which columns of a table are read, and how: single features first, then those of bags."""

    wanted: Wanted
    singles: list[tuple[str, Rule]]
    bags: list[BagLayout]
    markers: tuple[Marker, ...]

    def columns_of(self, table: Table, what: str) -> list[AnyColumn]:
        """The columns that are wanted, of the table itself or of another one."""
        return table.select(self.wanted, what).columns


def lay_out(table: Table, asked: Asked) -> Layout:
    """What is to be learned of a table, of which a few rows are enough."""
    own_names, table = table.names is not None, with_names(table, asked.feature_names)
    markers, rules = check_markers(asked.missing_values), make_rules(table, asked)
    singles = [j for j, rule in enumerate(rules) if rule.type not in ("drop", "bag")]
    bags: dict[Items, list[int]] = {}
    for j, rule in enumerate(rules):
        if rule.items is not None:
            bags.setdefault(rule.items, []).append(j)
    wishes = wishes_of(asked, list(bags), markers)
    wanted = Wanted(table.names, len(table.columns), [*singles, *chain(*bags.values())], own_names)
    of_bags, at = [], len(singles)
    for how, own in bags.items():
        part = slice(at, at + len(own))
        of_bags.append(BagLayout(how, wanted.names[part], part, wishes[how.bag]))
        at = part.stop
    return Layout(wanted, [(table.name(j), rules[j]) for j in singles], of_bags, markers)


class CodeTable(NamedTuple):
    """How the cells of a column become codes."""

    j: int  # column of x
    column: Coded
    table: np.ndarray  # the code of each of its values, -1 for none
    strange: np.ndarray  # which of them were never seen
    more: np.ndarray | None  # (1,) by how much codes are larger than cells, if that is so of all but the first

    def look_up(self, rows: slice, x: np.ndarray) -> int:
        """The codes of some rows, into x. Returns how many have a value never seen."""
        j, column, table, strange, more = self
        cells = column.cells[rows]
        if more is not None and (table[0] >= 0 or cells.min() > column.low):
            np.add(cells, more, out=x[rows, j], casting="unsafe")
            return 0
        places = column.places(rows)
        x[rows, j] = found = table.take(places)
        return int(strange.take(places).sum()) if strange.any() and found.min() < 0 else 0


def difference(column: Coded, table: np.ndarray) -> np.ndarray | None:
    """By how much codes are larger than cells, but for the first perhaps, which has none: modulo 2 to the bits of a code."""
    first = int(table[0] < 0)
    if column.cells.dtype.kind not in "iu" or column.cells.dtype == np.uint64 or first == len(table):
        return None
    if table[first] < 0 or (np.diff(table[first:]) != 1).any():
        return None
    return np.array(int(table[first]) - column.low - first).astype(table.dtype).reshape(1)


class Encoding:
    """The features of a model; learned once, then turns tables into codes and codes into values.

    Single features, with one value per case, come first, then bags. `notes` are warnings about how the table was read, for
    whoever asked for it to give.
    """

    def __init__(
        self,
        features: Iterable[Feature],
        wanted: Wanted,
        markers: Sequence[Marker] = (),
        notes: Sequence[TableWarning] = (),
    ):
        self.features, self.wanted, self.markers, self.notes = tuple(features), wanted, tuple(markers), tuple(notes)
        self.n_single = sum(not feature.is_bag for feature in self.features)
        self.offset = np.concatenate([[0], np.cumsum([len(f.values) for f in self.features])]).astype(np.int64)
        self.dtype = np.min_scalar_type(-max(int(self.offset[-1]), 1))  # signed: -1 is missing
        self.column_names = name_columns(self.features)

    @property
    def bags(self) -> tuple[Feature, ...]:
        return self.features[self.n_single :]

    @property
    def first_item(self) -> int:
        """The code of the first item of the first bag."""
        return int(self.offset[self.n_single])

    @classmethod
    def learn(cls, table: Table, asked: Asked, catalogue: Table | None = None) -> Encoding:
        """What the features of a table are. Values that only the catalogue has count too."""
        layout = lay_out(table, asked)
        tables = [layout.columns_of(table, "X")]
        if catalogue is not None:
            tables.append(layout.columns_of(catalogue, "candidates"))
        names = [name for name, _ in layout.singles]
        known = [count_values(code_columns(columns[: len(names)], names, layout.markers)) for columns in tables]
        refusals = Refusals()

        def learn(k: int) -> Learned:
            name, rule = layout.singles[k]
            return refusals.each(learn_feature, name, [of[k] for of in tables], rule, layout.markers, [of[k] for of in known])

        singles = by_column(learn, range(len(names)), table.n_cases)
        refusals.say(names)
        bags = [learn_bag(bag.how, bag.names, [columns[bag.part] for columns in tables], bag.wishes) for bag in layout.bags]
        return cls.of(layout, singles, bags, tables[0])

    @classmethod
    def of(
        cls, layout: Layout, singles: Sequence[Learned], bags: Sequence[LearnedBag], columns: Sequence[AnyColumn]
    ) -> Encoding:
        """The features as they were learned; `columns` of the single ones tell sparse ones that are constant."""
        features, positions = [each.feature for each in singles], layout.wanted.positions[: len(singles)]
        notes = list(notes_on(singles, columns[: len(singles)]))
        for of, bag in zip(layout.bags, bags, strict=True):
            features.append(bag.feature)
            positions += [layout.wanted.positions[of.part][k] for k in bag.kept]
            notes += [] if bag.note is None else [bag.note]
        check_names(features)
        return cls(features, layout.wanted._replace(positions=positions), layout.markers, notes)

    # --- tables and codes -------------------------------------------------------------------------------------------------

    def encode(self, table: Table) -> tuple[Codes, int]:
        """(codes, number of cells with a value never seen). Unseen values are -1, like missing ones; unseen items are none."""
        parts = self.columns_of(table)
        x = np.empty((table.n_cases, self.n_single), dtype=self.dtype)
        single = [(feature, columns[0]) for feature, columns in parts[: self.n_single]]
        coded = code_columns([column for _, column in single], [feature.name for feature, _ in single], self.markers)
        unseen = self.look_up(coded, x)

        def encode_one(j: int) -> int:
            feature, column = single[j]
            if isinstance(column, SparseColumn) and feature.type == "count":
                codes = count_codes(feature, column.values)
                x[:, j] = self.offset[j]  # what is not stored
                x[column.rows, j] = np.where(codes < 0, -1, codes + self.offset[j])
                return int((codes < 0).sum())
            read = plain(column, feature.name, self.markers)
            codes = local_codes(feature, read)
            x[:, j] = np.where(codes < 0, -1, codes + self.offset[j])
            return int((codes[~read.missing] < 0).sum())

        unseen += sum(by_column(encode_one, [j for j, column in enumerate(coded) if column is None], table.n_cases))
        if not self.bags:
            return Codes(x), unseen
        counted = [count_items(feature, columns, self.markers) for feature, columns in parts[self.n_single :]]
        cells = to_cells([counts for counts, _ in counted], self.first_item, self.dtype)
        return Codes(x, cells), unseen + sum(new for _, new in counted)

    def look_up(self, coded: Sequence[Coded | None], x: np.ndarray) -> int:
        """The codes of columns of few values, into x. Returns the number of cells with a value never seen."""
        tables = []
        for j, column in enumerate(coded):
            if column is not None:
                codes = local_codes(self.features[j], column.values)
                table = np.where(codes < 0, -1, codes + self.offset[j]).astype(self.dtype)
                tables.append(CodeTable(j, column, table, (codes < 0) & ~column.values.missing, difference(column, table)))
        matrix = as_matrix([of.column.cells for of in tables]) if len(tables) == x.shape[1] > 0 else None
        differences = [of.more for of in tables if of.more is not None and of.table[0] >= 0]
        if matrix is not None and len(differences) == len(tables):
            more = np.concatenate(differences)
            in_parts(lambda rows: np.add(matrix[rows].astype(x.dtype), more, out=x[rows]), len(x), x.shape[1], OF_MATRIX)
            return 0
        return sum(in_parts(lambda rows: sum(of.look_up(rows, x) for of in tables), len(x), len(tables)))

    def columns_of(self, table: Table) -> list[tuple[Feature, list[AnyColumn]]]:
        """Each feature with its columns."""
        wanted, as_lists = self.wanted_of(table)
        chosen = iter(table.select(wanted, "X").columns if wanted.positions else ())
        return [
            (replace(feature, source="lists"), [as_lists[feature.name]])
            if feature.name in as_lists
            else (feature, list(islice(chosen, feature.width)))
            for feature in self.features
        ]

    def wanted_of(self, table: Table) -> tuple[Wanted, dict[str, AnyColumn]]:
        """(columns that a table must bring, columns of lists that it brings in place of the columns of a bag, by its name)."""
        at = {name: j for j, name in enumerate(table.names or ())}
        taken = set(self.wanted.columns or ())
        as_lists = {
            feature.name: table.columns[at[feature.name]]
            for feature in self.bags
            if feature.source == "columns" and feature.name in at.keys() - taken and has_lists(table.columns[at[feature.name]])
        }
        positions, needed = iter(self.wanted.positions), list[int]()
        for feature in self.features:
            own = list(islice(positions, feature.width))
            if feature.name not in as_lists:
                needed += own
        return self.wanted._replace(positions=needed), as_lists

    def decode(self, x: np.ndarray, bags: Cells | None = None) -> np.ndarray:
        """Codes back to values, None where missing; of a bag a tuple of its items, as often as they occur."""
        out = np.full((len(x), len(self.features)), None, dtype=object)
        for j, feature in enumerate(self.features[: self.n_single]):
            values = np.empty(len(feature.values) + 1, dtype=object)
            values[:-1] = feature.values
            out[:, j] = values[np.where(x[:, j] < 0, -1, x[:, j] - self.offset[j])]
        for j, feature in enumerate(self.bags, start=self.n_single):
            assert bags is not None
            for i, items in enumerate(items_of_rows(bags, feature.items, int(self.offset[j]))):
                out[i, j] = items
        return out

    # --- names ------------------------------------------------------------------------------------------------------------

    def find(self, key: Any, where: str) -> int:
        """The column of ω that a name, a position, an item or (bag, item) means. `where` is the parameter that names it."""
        j = self._places.get(key) if isinstance(key, (str, tuple)) or is_whole(key) else None
        if j is not None and j != AMBIGUOUS:
            return j
        holders = [bag for bag in self.bags if isinstance(key, str) and (key == bag.name or key in bag.items)]
        if not holders:
            raise ParameterError(
                "{parameter} names the feature {column!r}, which the data does not have.", parameter=where, column=key
            )
        raise ParameterError(
            "{parameter} names {column!r}, which is {what}; name an item and its bag, such as {example!r}.",
            parameter=where,
            column=key,
            what="a bag" if j is None else f"an item of {' and '.join(repr(bag.name) for bag in holders)}",
            example=(holders[0].name, holders[0].items[0] if j is None else key),
        )

    def named(self, names: Sequence[str]) -> Encoding:
        """The same features for a table whose columns are called so."""
        wanted = self.wanted._replace(columns=list(names))
        called, features = iter(wanted.names), []
        for feature in self.features:
            own = tuple(islice(called, feature.width))
            features.append(replace(feature, values=own) if feature.source == "columns" else replace(feature, name=own[0]))
        return Encoding(features, wanted, self.markers)

    def renamed(self, names: Any) -> Encoding:
        """The same under names that a person gives to columns that have none in the table."""
        if self.wanted.own_names:
            raise ParameterError("The columns of X have names; rename them there, and fit again.")
        encoding = self.named(check_column_names("names", names, self.wanted.width))
        check_names(encoding.features)
        return encoding

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The columns of ω by all that they may be called."""
        found: dict[Any, int] = {}
        positions = iter(self.wanted.positions)
        j = 0
        for feature in self.features:
            own = list(islice(positions, feature.width))
            if not feature.is_bag or feature.source == "columns":
                found |= {position: j + k for k, position in enumerate(own)}
            for k, item in enumerate(feature.items):
                found[item] = AMBIGUOUS if item in found else j + k
                found[feature.name, item] = found[f"{feature.name}: {item}"] = j + k
            j += len(feature.items) if feature.is_bag else 1
        return found | {name: j for j, name in enumerate(self.column_names)}

    # --- JSON -------------------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs, as plain lists, words and numbers."""
        return {
            "features": [asdict(feature) for feature in self.features],
            "columns": self.wanted.columns,
            "positions": self.wanted.positions,
            "width": self.wanted.width,
            "own_names": self.wanted.own_names,
            "missing_values": list(self.markers),
        }

    @classmethod
    def from_json(cls, parts: Any) -> Encoding:
        """The encoding that `to_json` wrote; ValueError if the parts do not fit together."""
        features = [feature_from_json(each) for each in parts["features"]]
        columns, positions, width, own_names = (parts[name] for name in ("columns", "positions", "width", "own_names"))
        if not all(map(is_whole, (*positions, width))) or len({*positions, -1, width}) != len(positions) + 2:
            raise ValueError("positions")
        if not all(0 <= position < width for position in positions):
            raise ValueError("positions")
        if columns is not None and (len(set(columns)) != width or not all(isinstance(name, str) for name in columns)):
            raise ValueError("columns")
        if not isinstance(own_names, bool):
            raise ValueError("own names")
        if not all(map(fits, features)):
            raise ValueError("values")
        wanted = Wanted(columns, width, positions, own_names)
        if wanted.names != [name for f in features for name in (f.items if f.source == "columns" else (f.name,))]:
            raise ValueError("features")
        if [f.is_bag for f in features] != sorted(f.is_bag for f in features):
            raise ValueError("order")
        check_names(features)
        return cls(features, wanted, check_markers(parts["missing_values"]))


def feature_from_json(parts: Any) -> Feature:
    known, several = {field.name for field in fields(Feature)}, ("values", "edges", "left_out")
    if set(parts) != known or any(isinstance(part, (list, tuple)) != (name in several) for name, part in parts.items()):
        raise ValueError("parts of a feature")
    given: dict[str, Any] = {name: tuple(part) if name in several else part for name, part in parts.items()}
    return Feature(**given)


def fits(feature: Feature) -> bool:
    """Could `learn_feature` or `learn_bag` have made this? What is looked up by bisection must be sorted."""
    values, edges = feature.values, feature.edges
    types = {type(value) for value in values}
    if feature.type not in TYPES or not values or not types <= {str, bool, int, float} or not isinstance(feature.other, bool):
        return False
    if feature.type == "bag":
        return types == {str} and not edges and not feature.other and fits_bag(feature)
    if (feature.source, feature.separator, feature.left_out) != ("", "", ()):
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


def fits_bag(bag: Feature) -> bool:
    words = [bag.name, bag.separator, *bag.left_out]
    every = [*bag.values, *bag.left_out]
    only_lists = bag.source == "lists" or not (bag.separator or bag.left_out)
    return (
        bag.source in SOURCES and all(isinstance(word, str) for word in words) and len(set(every)) == len(every) and only_lists
    )


def name_columns(features: Sequence[Feature]) -> list[str]:
    """The names of the columns of ω: an item's is its own, or "bag: item" if it could mean something else."""
    singles, bags = [f.name for f in features if not f.is_bag], [f for f in features if f.is_bag]
    alone = len(bags) == 1 and not set(singles).intersection(bags[0].items)
    return singles + [item if alone else f"{bag.name}: {item}" for bag in bags for item in bag.items]


def check_names(features: Sequence[Feature]) -> None:
    twice = [name for name, times in Counter(name_columns(features)).items() if times > 1]
    if twice:
        raise TableError(
            "Two columns are called {column!r}: a feature, and an item of a bag, or items of two bags; rename one.",
            column=twice[0],
        )


def wishes_of(asked: Asked, bags: Sequence[Items], markers: Sequence[Marker]) -> dict[str, Wishes]:
    """What is asked of each bag, by its name."""
    stop_words = check_stop_words(asked.stop_words, any(items.source == "texts" for items in bags))
    least = check_min_cases(asked.min_cases, [items.bag for items in bags])
    return {items.bag: Wishes(least[items.bag], stop_words, markers) for items in bags}


# --- the features in words -----------------------------------------------------------------------------------------------


class FeatureSummary(NamedTuple):
    """One row of `describe_features`."""

    name: str
    type: str
    n_values: int
    missing: float  # share of the cases; of a bag, of those without any item
    values: str  # the first few; of a bag the most frequent


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


def describe(encoding: Encoding, codes: Codes, most: int = 4) -> FeatureTable:
    """A FeatureTable of the features of an encoding, with the share of the cells that are missing in these cases."""
    missing, shown = [float((column < 0).mean()) for column in codes.x.T], [f.values for f in encoding.features]
    for j, feature in enumerate(encoding.bags, start=encoding.n_single):
        assert codes.bags is not None
        bag = select_codes(codes.bags, int(encoding.offset[j]), len(feature.values))
        times = np.bincount(bag.codes, minlength=len(feature.values))
        missing.append(float((bag.sizes == 0).mean()))
        shown[j] = tuple(feature.values[k] for k in np.argsort(-times, kind="stable"))
    return FeatureTable(
        FeatureSummary(f.name, f.type, len(f.values), gone, ", ".join(map(str, values[:most])) + ", …" * (len(values) > most))
        for f, gone, values in zip(encoding.features, missing, shown, strict=True)
    )


def types_in_words(encoding: Encoding) -> Iterator[str]:
    """A line per type of feature: how many there are, and which."""
    for type_ in TYPES:
        names = [f"{f.name} ({len(f.values):,} items)" if f.is_bag else f.name for f in encoding.features if f.type == type_]
        if names:
            yield f"{len(names)} {type_}: {', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
