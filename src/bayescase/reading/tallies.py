"""The first pass over a table that is read in parts: what values its columns have, and what features they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import Advice, Setting, TableError, TableWarning
from .bags import ItemTally
from .batches import Part, PartColumn, Source
from .encoding import Encoding, Layout, lay_out
from .features import Learned, learn_seen
from .files import SUSPECTS, notes_on_suspects, typed
from .notes import Refusals
from .rules import Asked
from .seen import Seen, seen
from .tables import AnyColumn, Column, Marker, Table, plain
from .tables import word as as_word

MOST_NUMBERS = 1 << 24  # different numbers that all columns together may hold
MOST_WORDS = 1 << 22  # different words
LEAST = 1 << 16  # of each column, in any case
MIX = np.uint64(0x9E3779B97F4A7C15)

Progress = Callable[[int], Any]  # is told how many rows were read


class NumberTally:
    """Different numbers and how often each occurs. Of too many it keeps those whose hash is small, with all their cases."""

    def __init__(self, most: int):
        self.most, self.bits = most, 0  # one number in 2^bits is kept
        self.parts: list[tuple[np.ndarray, np.ndarray]] = []
        self.size = 0  # of the first part, which is merged

    def add(self, values: np.ndarray, times: np.ndarray) -> None:
        self.parts.append((values, times))
        if sum(len(values) for values, _ in self.parts[1:]) > max(self.size, 1 << 16):
            self.merge()

    def merge_with(self, other: NumberTally) -> None:
        self.bits = max(self.bits, other.bits)
        for values, times in other.parts:
            self.add(values, times)

    def merge(self) -> tuple[np.ndarray, np.ndarray]:
        """All parts as one: numbers from low to high."""
        values, which = np.unique(np.concatenate([values for values, _ in self.parts]), return_inverse=True)
        times = np.zeros(len(values), dtype=np.int64)
        np.add.at(times, which.reshape(-1), np.concatenate([times for _, times in self.parts]))
        kept = self.kept(values)
        while kept.sum() > self.most:
            self.bits += 1
            kept = self.kept(values)
        self.parts = [(values[kept], times[kept])]
        self.size = len(self.parts[0][0])
        return self.parts[0]

    def kept(self, values: np.ndarray) -> np.ndarray:
        """By a hash of the number; the two lowest and the highest always."""
        if not self.bits:
            return np.ones(len(values), dtype=bool)
        h = values.astype(float).view(np.uint64) * MIX
        h = (h ^ (h >> np.uint64(29))) * MIX
        kept = (h >> np.uint64(64 - self.bits)) == 0
        kept[[0, 1, -1]] = True
        return np.asarray(kept)


class ColumnTally:
    """What a single column holds, as it is read."""

    def __init__(self, name: str, markers: Sequence[Marker], words: bool, n_columns: int):
        self.name, self.markers = name, markers
        self.spelled = words  # are cells words that may spell numbers?
        self.numbers = NumberTally(max(LEAST, MOST_NUMBERS // n_columns))
        self.most_words = max(LEAST, MOST_WORDS // n_columns)
        self.counted: Counter[Any] = Counter()
        self.categories: dict[Any, None] = {}
        self.declared, self.ordered = False, False

    def add(self, part: PartColumn, n_rows: int) -> None:
        if part.which is None:
            times = np.ones(n_rows, dtype=np.int64)
        else:
            times = np.bincount(part.which + 1, minlength=len(part.cells) + 1)[1:]
        if self.spelled:
            self.add_words(part.cells, times)
        else:
            self.add_column(plain(part.cells, self.name, self.markers), times)

    def merge(self, other: ColumnTally) -> None:
        """Take over what another part of the column holds."""
        self.counted.update(other.counted)
        self.numbers.merge_with(other.numbers)
        self.categories |= other.categories
        self.declared, self.ordered = self.declared or other.declared, self.ordered or other.ordered
        if self.spelled:
            self.check_words()
        elif len(self.counted) > self.most_words:
            raise self.too_many()

    def add_words(self, cells: AnyColumn, times: np.ndarray) -> None:
        """Words of a text file."""
        assert isinstance(cells, nw.Series)
        for cell, n in zip(cells.to_list(), times.tolist(), strict=True):
            self.counted[cell.strip()] += n
        self.check_words()

    def check_words(self) -> None:
        """If there are too many, and all spell numbers, they are numbers from then on."""
        if not self.counted:
            return
        if len(self.counted) > self.most_words or self.numbers.parts:
            found = self.of_words()
            if not found.column.numeric:
                raise self.too_many()
            self.numbers.add(found.column.values, found.times)
            self.counted.clear()

    def add_column(self, column: Column, times: np.ndarray) -> None:
        there = ~column.missing & (times > 0)
        if column.categories is not None:
            self.declared, self.ordered = True, self.ordered or column.ordered
            self.categories |= dict.fromkeys(column.categories)
        if column.numeric:
            self.numbers.add(column.values[there], times[there])
        else:
            for value, n in zip(column.values[there].tolist(), times[there].tolist(), strict=True):
                self.counted[value] += n
            if len(self.counted) > self.most_words:
                raise self.too_many()

    def of_words(self) -> Seen:
        """What the words mean, all of them together."""
        marks = {"", *(marker for marker in self.markers if isinstance(marker, str))}
        cells = list(self.counted)
        column = plain(typed(cells, marks), self.name, self.markers)
        times = np.fromiter(self.counted.values(), np.int64, count=len(cells))[~column.missing]
        here = column._replace(values=column.observed, missing=np.zeros(len(times), dtype=bool))
        return Seen(here, times)

    def seen(self) -> Seen:
        """What the whole column holds."""
        if self.spelled and not self.numbers.parts:
            return self.of_words()
        if self.spelled and self.counted:  # the last ones
            last = self.of_words()
            self.numbers.add(last.column.values, last.times)
            self.counted.clear()
        if self.numbers.parts and not self.counted and len(self.numbers.merge()[0]):
            values, times = self.numbers.merge()
            return Seen(Column(values, np.zeros(len(values), dtype=bool)), times, 0.5**self.numbers.bits)
        if self.numbers.parts:  # numbers beside words are words
            for value, n in zip(*(part.tolist() for part in self.numbers.merge()), strict=True):
                self.counted[as_word(value)] += n
        kinds = {isinstance(value, bool) for value in self.counted}
        if len(kinds) > 1:
            self.declared = False
            mixed, self.counted = self.counted, Counter()
            for value, n in mixed.items():
                self.counted[as_word(value)] += n
        values = np.fromiter(self.counted, object, count=len(self.counted))
        categories = tuple(self.categories) if self.declared else None
        column = Column(values, np.zeros(len(values), dtype=bool), categories, self.ordered)
        return Seen(column, np.fromiter(self.counted.values(), np.int64, count=len(values)))

    def too_many(self) -> TableError:
        return TableError(
            "Column {column!r} has more than {n:,} different words, too many to tell cases apart.",
            Advice("leave it out with {}", Setting("feature_types", "drop", column=self.name)),
            column=self.name,
            n=self.most_words,
        )


class Bag:
    """The items of a bag, as they are read."""

    def __init__(self, tally: ItemTally):
        self.tally, self.cases = tally, np.zeros(0, dtype=np.int64)

    def add(self, columns: Sequence[PartColumn]) -> None:
        self.more(self.tally.count([column.whole() for column in columns]))

    def more(self, found: np.ndarray) -> None:
        size = max(len(found), len(self.cases))
        self.cases = np.pad(self.cases, (0, size - len(self.cases))) + np.pad(found, (0, size - len(found)))

    def merge(self, other: Bag) -> None:
        """Take over what another part holds."""
        if self.tally.how.source == "columns":
            self.more(other.cases)
            return
        codes = np.array([self.tally.code[item] for item in other.tally.code], dtype=np.int64)
        self.more(np.bincount(codes, weights=other.cases, minlength=len(self.tally.code)).astype(np.int64))


def learn_source(source: Source, asked: Asked, catalogue: Table | None, progress: Progress) -> Encoding:
    """What the features of a table are: the same as if it were in memory."""
    layout = lay_out(source.sample(), asked)
    singles, bags = new_tallies(layout, source.words)
    for n_rows, of_singles, of_bags in source.map(partial(tally_part, layout, source.words)):
        for tally, column in zip(singles, of_singles, strict=True):
            tally.merge(column)
        for bag, items in zip(bags, of_bags, strict=True):
            bag.merge(items)
        progress(n_rows)
    return finish(layout, singles, bags, [] if catalogue is None else layout.columns_of(catalogue, "candidates"))


def new_tallies(layout: Layout, words: bool) -> tuple[list[ColumnTally], list[Bag]]:
    singles = [ColumnTally(name, layout.markers, words, len(layout.singles)) for name, _ in layout.singles]
    return singles, [Bag(ItemTally(bag.how, bag.names, bag.wishes)) for bag in layout.bags]


def tally_part(layout: Layout, words: bool, part: Part) -> tuple[int, list[ColumnTally], list[Bag]]:
    """(rows, what single columns hold, what bags hold) of a part."""
    singles, bags = new_tallies(layout, words)
    for tally, j in zip(singles, layout.wanted.positions, strict=False):
        tally.add(part.columns[j], part.n_rows)
    for bag, of in zip(bags, layout.bags, strict=True):
        bag.add([part.columns[j] for j in layout.wanted.positions[of.part]])
    return part.n_rows, singles, bags


def finish(layout: Layout, singles: Sequence[ColumnTally], bags: Sequence[Bag], catalogue: Sequence[AnyColumn]) -> Encoding:
    """The features, when all parts were read; `catalogue` has the wanted columns of another table, or none."""
    learned: list[Learned] = []
    notes: list[TableWarning] = []
    suspects: dict[str, list[str]] = {}
    refusals = Refusals()
    for k, (tally, (name, rule)) in enumerate(zip(singles, layout.singles, strict=True)):
        parts = [tally.seen()] + ([seen(plain(catalogue[k], name, layout.markers))] if catalogue else [])
        learned.append(refusals.each(learn_seen, name, parts, rule))
        for word in set(SUSPECTS).intersection(tally.counted if tally.spelled and not parts[0].column.numeric else ()):
            if word not in layout.markers:
                suspects.setdefault(word, []).append(name)
        if parts[0].share < 1.0 and learned[-1].feature.type == "number":
            notes.append(
                TableWarning(
                    "Column {column!r} has too many different numbers to hold: its intervals rest on one in {n} of them.",
                    column=name,
                    n=round(1 / parts[0].share),
                )
            )
    refusals.say([name for name, _ in layout.singles])
    of_bags = []
    for bag, of in zip(bags, layout.bags, strict=True):
        cases = [bag.cases] + ([bag.tally.count(catalogue[of.part])] if catalogue else [])
        of_bags.append(bag.tally.learned(cases))
    dense = [np.zeros(0) for _ in learned]
    encoding = Encoding.of(layout, learned, of_bags, dense)
    encoding.notes += (*notes, *notes_on_suspects(suspects))
    return encoding
