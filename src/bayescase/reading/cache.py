"""The second pass over a table that is read in parts: its codes in files, which are read a block of rows at a time."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from ..state import Cells, Codes, distinct, join_cells, split_cells
from ..storage import VERSION, Mapped, replacing
from .bags import count_items, to_cells
from .batches import Part, PartColumn, Source
from .encoding import Encoding
from .features import Feature, local_codes, to_numbers
from .rules import Asked
from .tables import Column, Table, plain
from .tallies import Progress, learn_source

BLOCK_CELLS = 1 << 22  # of a block: a few megabytes of codes, and as many of labels
FEATURES, ABOUT = "features.json", "about.json"  # after the first pass, and after the second
CODES, FIRST, CANDIDATES, CANDIDATE_FIRST = "codes", "first", "candidates", "candidate_first"
SHOWN = 6  # empty rows that are named


class About(NamedTuple):
    """What the second pass has found."""

    n_rows: int
    n_cells: int
    n_candidate_cells: int
    edges: list[int]  # first row of each block, and the number of rows
    gaps: list[bool]  # has the block a missing cell?
    n_i: list[int]  # rows with n observed cells
    counts: list[int]  # cells with each code
    longest: tuple[int, int]  # the row with most cells, and the one with most different ones
    empty: list[int]  # rows without any value: the first few
    n_empty: int


class Cached:
    """The codes of a table, in the files of a folder."""

    def __init__(self, folder: Path, encoding: Encoding, about: About):
        self.folder, self.encoding, self.about = folder, encoding, about
        P, has_bags = encoding.n_single, bool(encoding.bags)
        self.width = 0 if has_bags else P
        self.codes = Mapped(folder / CODES, encoding.dtype, (about.n_cells,))
        self.first = Mapped(folder / FIRST, np.int64, (about.n_rows + 1,)) if has_bags else None
        own = about.n_candidate_cells == about.n_cells
        self.candidate_codes = self.codes if own else Mapped(folder / CANDIDATES, encoding.dtype, (about.n_candidate_cells,))
        self.candidate_first = self.first if own else Mapped(folder / CANDIDATE_FIRST, np.int64, (about.n_rows + 1,))

    def __len__(self) -> int:
        return self.about.n_rows

    @property
    def files(self) -> list[Mapped]:
        return [array for array in (self.codes, self.first, self.candidate_codes, self.candidate_first) if array is not None]

    @property
    def n_blocks(self) -> int:
        return len(self.about.edges) - 1

    def rows(self, block: int) -> slice:
        return slice(self.about.edges[block], self.about.edges[block + 1])

    def span(self, rows: slice) -> slice:
        """The cells of some neighbouring rows."""
        if self.first is None:
            return slice(rows.start * self.width, rows.stop * self.width)
        return slice(int(self.first[rows.start : rows.start + 1][0]), int(self.first[rows.stop : rows.stop + 1][0]))

    def cells(self, rows: slice) -> Cells:
        """The cells of some neighbouring rows; `first` is left empty if all rows have the same number."""
        return self.read(self.codes, self.first, rows)

    def candidate_cells(self, rows: slice) -> Cells:
        """The same with every item once."""
        return self.read(self.candidate_codes, self.candidate_first, rows)

    def read(self, codes: Mapped, first: Mapped | None, rows: slice) -> Cells:
        if first is None:
            return Cells(codes[self.span(rows)], np.zeros(0, dtype=np.int64))
        starts = first[rows.start : rows.stop + 1]
        return Cells(codes[int(starts[0]) : int(starts[-1])], starts - starts[0])

    def take(self, rows: np.ndarray) -> Codes:
        """Some rows, in rising order, in memory."""
        found = [self.as_codes(self.rows(b)).take(some) for b, some in self.by_block(rows)]
        x = np.concatenate([part.x for part in found])
        if not self.encoding.bags:
            return Codes(x)
        bags = [part.bags for part in found if part.bags is not None]
        sizes = np.concatenate([part.sizes for part in bags])
        return Codes(x, Cells(np.concatenate([part.codes for part in bags]), np.concatenate([[0], np.cumsum(sizes)])))

    def by_block(self, rows: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """(block, which of its rows), of rows in rising order."""
        at = np.searchsorted(rows, self.about.edges)
        for b in np.flatnonzero(np.diff(at)).tolist():
            yield b, rows[at[b] : at[b + 1]] - self.about.edges[b]

    def as_codes(self, rows: slice) -> Codes:
        """Neighbouring rows as single features and items."""
        P, n = self.encoding.n_single, rows.stop - rows.start
        cells = self.cells(rows)
        return Codes(cells.codes.reshape(n, P)) if self.first is None else split_cells(cells, P)


# --- making it -----------------------------------------------------------------------------------------------------------


def print_of(source: Source, asked: Asked, catalogue: Table | None) -> str:
    """What a cache must agree with; "" if the source cannot be recognised."""
    if source.print is None:
        return ""
    digest = hashlib.sha256(f"{VERSION} {source.print} {asked!r}".encode())
    for column in catalogue.columns if catalogue is not None else ():
        digest.update(repr(column.to_list() if isinstance(column, nw.Series) else list(column)).encode())
    return digest.hexdigest()


def known_features(folder: Path, print_: str) -> Encoding | None:
    """What the first pass over the same table has found, if the folder has it."""
    known = read_json(folder / FEATURES, print_)
    return None if known is None else Encoding.from_json(known)


def learn(folder: Path, source: Source, asked: Asked, catalogue: Table | None, progress: Progress) -> Encoding:
    """The features: the first pass."""
    for name in (ABOUT, FEATURES):
        (folder / name).unlink(missing_ok=True)
    encoding = learn_source(source, asked, catalogue, progress)
    write_json(folder / FEATURES, print_of(source, asked, catalogue), encoding.to_json())
    return encoding


def known_codes(folder: Path, encoding: Encoding, print_: str) -> Cached | None:
    """The codes that the second pass has written, if the folder has them all."""
    known = read_json(folder / ABOUT, print_)
    found = None if known is None else Cached(folder, encoding, About(**known))
    return found if found is not None and all(map(is_whole, found.files)) else None


def cache(folder: Path, source: Source, encoding: Encoding, print_: str, progress: Progress) -> Cached:
    """The codes of a table: the second pass."""
    (folder / ABOUT).unlink(missing_ok=True)
    about = write_codes(folder, source, encoding, progress)
    write_json(folder / ABOUT, print_, about._asdict())
    return Cached(folder, encoding, about)


def is_whole(array: Mapped) -> bool:
    return os.path.exists(array.path) and os.path.getsize(array.path) == array.nbytes


def read_json(path: Path, print_: str) -> Any:
    """What `write_json` wrote for the same table; None if there is no such file."""
    try:
        stored = json.loads(path.read_text("utf-8"))
        return stored["content"] if print_ and stored["print"] == print_ else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or a damaged one: it is made anew
        return None


def write_json(path: Path, print_: str, content: Any) -> None:
    with replacing(path) as file:
        file.write(json.dumps({"print": print_, "content": content}).encode())


def write_codes(folder: Path, source: Source, encoding: Encoding, progress: Progress) -> About:
    """Codes to files, one after the other, so that a full disk is an error and not the end."""
    with open(folder / CODES, "wb") as codes, open(folder / CANDIDATES, "wb") as candidates:
        writer = Writer(encoding, codes, candidates, *firsts(folder, encoding))
        for codes_of_part in source.map(partial(encode_part, encoding, source.words)):
            writer.add(codes_of_part)
            progress(codes_of_part.n_rows)
        about = writer.finish()
    if about.n_candidate_cells == about.n_cells:
        for name in (CANDIDATES, CANDIDATE_FIRST):
            (folder / name).unlink(missing_ok=True)
    return about


def firsts(folder: Path, encoding: Encoding) -> tuple[BinaryIO | None, BinaryIO | None]:
    if not encoding.bags:
        return None, None
    files: tuple[BinaryIO, BinaryIO] = open(folder / FIRST, "wb"), open(folder / CANDIDATE_FIRST, "wb")  # noqa: SIM115  closed by `finish`
    for file in files:
        file.write(np.zeros(1, dtype=np.int64).data)
    return files


class Writer:
    """Codes, part by part, to files; and what there is to know about them."""

    def __init__(
        self,
        encoding: Encoding,
        codes: BinaryIO,
        candidates: BinaryIO,
        first: BinaryIO | None,
        candidate_first: BinaryIO | None,
    ):
        self.encoding, self.codes, self.candidates = encoding, codes, candidates
        self.first, self.candidate_first = first, candidate_first
        self.n_rows = self.n_cells = self.n_candidate_cells = 0
        self.edges, self.gaps, self.in_block = [0], [False], 0
        self.n_i, self.counts = np.zeros(1, dtype=np.int64), np.zeros(int(encoding.offset[-1]) + 1, dtype=np.int64)
        self.most, self.longest = [-1, -1], [0, 0]
        self.empty: list[int] = []
        self.n_empty = 0

    def add(self, part: Codes) -> None:
        cells = part.cells
        once = cells if part.bags is None else join_cells(part.x, distinct(part.bags))
        self.cut(cells)
        self.note(part, cells, once)
        self.codes.write(cells.codes.astype(self.encoding.dtype, copy=False).data)
        if self.first is not None and self.candidate_first is not None:
            self.first.write((self.n_cells + cells.first[1:]).data)
            self.candidates.write(once.codes.astype(self.encoding.dtype, copy=False).data)
            self.candidate_first.write((self.n_candidate_cells + once.first[1:]).data)
        self.n_rows += part.n_rows
        self.n_cells += len(cells.codes)
        self.n_candidate_cells += len(once.codes)

    def cut(self, cells: Cells) -> None:
        """Where blocks begin, and which of them have gaps."""
        gap = np.concatenate([[0], np.cumsum(cells.codes < 0)])[cells.first]
        row, n = 0, len(cells.first) - 1
        while row < n:
            room = BLOCK_CELLS - self.in_block
            end = int(np.searchsorted(cells.first, cells.first[row] + room, side="right")) - 1
            end = min(max(end, row + (self.in_block == 0)), n)
            self.gaps[-1] |= bool(gap[end] > gap[row])
            self.in_block += int(cells.first[end] - cells.first[row])
            row = end
            if row < n:
                self.edges.append(self.n_rows + row)
                self.gaps.append(False)
                self.in_block = 0

    def note(self, part: Codes, cells: Cells, once: Cells) -> None:
        self.counts += np.bincount(cells.codes.astype(np.int64) + 1, minlength=len(self.counts))
        rows = np.repeat(np.arange(part.n_rows), cells.sizes)
        n_i = np.bincount(rows[cells.codes >= 0], minlength=part.n_rows)
        histogram = np.bincount(n_i, minlength=int(cells.sizes.max()) + 1)
        size = max(len(histogram), len(self.n_i))
        self.n_i = np.pad(self.n_i, (0, size - len(self.n_i))) + np.pad(histogram, (0, size - len(histogram)))
        for k, sizes in enumerate((cells.sizes, once.sizes)):
            if sizes.max() > self.most[k]:
                self.most[k], self.longest[k] = int(sizes.max()), self.n_rows + int(sizes.argmax())
        empty = np.flatnonzero(n_i == 0)
        self.n_empty += len(empty)
        self.empty += (self.n_rows + empty[: SHOWN - len(self.empty)]).tolist()

    def finish(self) -> About:
        for file in (self.codes, self.candidates, self.first, self.candidate_first):
            if file is not None:
                file.flush()
                os.fsync(file.fileno())
        for file in (self.first, self.candidate_first):
            if file is not None:
                file.close()
        edges, longest = [*self.edges, self.n_rows], (self.longest[0], self.longest[1])
        counts, n_i = self.counts[1:].tolist(), self.n_i.tolist()
        sizes = (self.n_rows, self.n_cells, self.n_candidate_cells)
        return About(*sizes, edges, self.gaps, n_i, counts, longest, self.empty, self.n_empty)


# --- codes of a part -----------------------------------------------------------------------------------------------------


def encode_part(encoding: Encoding, words: bool, part: Part) -> Codes:
    """The codes of some rows. Values are looked up once each, not once a row."""
    positions, n = encoding.wanted.positions, encoding.n_single
    x = np.empty((part.n_rows, n), dtype=encoding.dtype)
    for j, feature in enumerate(encoding.features[:n]):
        cells, which = part.columns[positions[j]]
        read = spelled_column(feature, cells, encoding.markers) if words else plain(cells, feature.name, encoding.markers)
        codes = local_codes(feature, read)
        codes = np.append(np.where(codes < 0, -1, codes + encoding.offset[j]), -1)
        x[:, j] = codes[:-1] if which is None else codes[which]
    if not encoding.bags:
        return Codes(x)
    counted, at = [], n
    for feature in encoding.bags:
        columns: list[PartColumn] = [part.columns[j] for j in positions[at : at + feature.width]]
        counted.append(count_items(feature, [column.whole() for column in columns], encoding.markers)[0])
        at += feature.width
    return Codes(x, to_cells(counted, encoding.first_item, encoding.dtype))


def encode_source(encoding: Encoding, source: Source) -> Iterator[Codes]:
    """The codes of new cases, part by part; columns are found by name if there are names."""
    wanted = encoding.wanted
    whole = Table(source.names, [np.array(j) for j in range(source.n_columns)], 0).select(wanted, "X")
    found = [int(position) for position in whole.columns]  # type: ignore[arg-type]
    at = dict(zip(wanted.positions, found, strict=True))
    order = [at.get(j, 0) for j in range(wanted.width)]
    return source.map(partial(encode_in_order, encoding, source.words, order))


def encode_in_order(encoding: Encoding, words: bool, order: list[int], part: Part) -> Codes:
    return encode_part(encoding, words, Part([part.columns[j] for j in order], part.n_rows))


def spelled_column(feature: Feature, cells: Any, markers: Any) -> Column:
    """Words of a text file as what the whole column turned out to be."""
    words = np.fromiter((cell.strip() for cell in cells.to_list()), dtype=object, count=len(cells))
    marks = {"", *(marker for marker in markers if isinstance(marker, str))}
    column = Column(words, np.fromiter((word in marks for word in words), dtype=bool, count=len(words)))
    kinds = {type(value) for value in feature.values[: len(feature.values) - feature.other]}
    if feature.type in ("category", "ordered") and kinds == {bool}:
        flags = np.fromiter((word.lower() == "true" for word in words), dtype=object, count=len(words))
        return Column(flags, column.missing, (False, True))
    if feature.type in ("category", "ordered") and kinds <= {str}:
        return column
    numbers = to_numbers(column)
    marked = np.isin(numbers.values, [marker for marker in markers if not isinstance(marker, str)])
    return Column(numbers.values, numbers.missing | marked)
