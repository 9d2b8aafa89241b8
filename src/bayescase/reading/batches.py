"""Tables too large for memory → parts: files, folders and pyarrow's datasets, some rows at a time.

Arrow's columns have types of their own. Cells of CSV are words until all are known, as when a file is read as a whole; cells of
JSON are whatever they are.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import itertools
import lzma
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import TableError, TableTypeError
from .arrays import ARROW
from .files import KNOWN, check_names, guess_delimiter, read_json
from .tables import LISTS, AnyColumn, Table, check_unique, names_of

PART_ROWS = 1 << 17  # rows that are read at a time
CSV_BYTES = 1 << 24
COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}  # by how files begin
UNREADABLE = (OSError, EOFError, UnicodeDecodeError, lzma.LZMAError, zlib.error)
TEXTS = {"csv": (".csv", ".txt"), "tsv": (".tsv", ".tab"), "json": (".jsonl", ".ndjson", ".json")}
SUFFIXES = {suffix: kind for kind, suffixes in TEXTS.items() for suffix in suffixes} | {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
}


class PartColumn(NamedTuple):
    """A column of some rows: its different cells, and which of them each row has."""

    cells: AnyColumn  # different ones; all of them, in the order of the rows, if `which` is None
    which: np.ndarray | None  # (rows,) -1 where there is none

    def whole(self) -> AnyColumn:
        """The cells in the order of the rows, None where there is none."""
        if self.which is None:
            return self.cells
        cells: list[Any] = self.cells.to_list() if isinstance(self.cells, nw.Series) else self.cells.tolist()  # type: ignore[union-attr]
        each = np.fromiter([*cells, None], dtype=object, count=len(cells) + 1)
        found: np.ndarray = each[self.which]
        return found


class Part(NamedTuple):
    """Some neighbouring rows of a table."""

    columns: list[PartColumn]
    n_rows: int


class Source(NamedTuple):
    """A table that is read in parts, as often as needed."""

    names: list[str] | None
    n_columns: int
    pieces: Sequence[Piece]  # one after the other
    words: bool  # are all cells words, whose types are found when all are known?
    print: str | None  # a hash of what it is; None if the same table cannot be recognised
    n_rows: int | None  # if that is known beforehand
    cluster: Cluster | None = None  # that reads the pieces

    def map(self, function: Callable[[Part], T]) -> Iterator[T]:
        """function(part) of every part, in order: here, or wherever its piece is read."""
        if self.cluster is not None:
            return self.cluster.map(function, self.pieces)
        return (function(part) for piece in self.pieces for part in piece())

    def sample(self) -> Table:
        """The first rows as a table: enough to tell columns of lists from others."""
        part = next((part for piece in self.pieces for part in itertools.islice(self.few(piece), 1)), None)
        if part is None or not self.n_columns:
            raise TableError("The table is empty: {cases} cases, {features} features.", cases=0, features=self.n_columns)
        return Table(self.names, [column.cells for column in part.columns], part.n_rows)

    def few(self, piece: Piece) -> Iterator[Part]:
        """The parts of a piece, here."""
        return piece() if self.cluster is None else self.cluster.map(itself, [piece])


Piece: TypeAlias = Callable[[], Iterator[Part]]  # some neighbouring rows that are read together, such as those of a file
T = TypeVar("T")


class Cluster(Protocol):
    """Somewhere else where pieces are read."""

    def map(self, function: Callable[[Part], T], pieces: Sequence[Any]) -> Iterator[T]:
        """function(part) of every part of every piece, in order."""


def itself(part: Part) -> Part:
    return part


def is_large(X: Any) -> bool:
    """Is it something to read in parts: a path, or a dataset of pyarrow?"""
    return isinstance(X, (str, os.PathLike, Source)) or (
        type(X).__module__.startswith("pyarrow._dataset") and hasattr(X, "get_fragments")
    )


def open_source(X: Any, delimiter: str | None = None, header: bool = True) -> Source:
    """The parts of a path or of a dataset of pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("Reading tables in parts needs pyarrow: pip install 'bayescase[files]'.") from None
    if not isinstance(X, (str, os.PathLike)):
        return from_dataset(X, "The dataset", print_of(getattr(X, "files", None), (str(X.schema),)))
    path = Path(X)
    if not path.exists():
        raise TableError("There is no file or folder {path!r}.", path=os.fspath(path))
    path = path.absolute()  # workers have folders of their own that they are in
    files = files_in(path) if path.is_dir() else [path]
    kinds = {kind_of(file) for file in files}
    if len(kinds) > 1:
        raise TableError("{file} has files of several kinds: {kinds}.", file=path.name, kinds=", ".join(sorted(kinds)))
    (kind,) = kinds
    print_ = print_of(files, (kind, delimiter, header))
    if kind in ("parquet", "feather"):
        return from_arrow_files(path, files, kind, print_)
    if kind == "json":
        return from_json(files, print_)
    return from_csv(files, "\t" if kind == "tsv" and delimiter is None else delimiter, header, print_)


def files_in(folder: Path) -> list[Path]:
    """All data files in a folder and the folders in it, by name."""
    found = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    if not found:
        raise TableError("The folder {file} has no file.", file=os.fspath(folder))
    return found


def kind_of(file: Path) -> str:
    with open(file, "rb") as opened:
        begin = opened.read(8)
    if begin.startswith(ARROW):
        return "parquet" if begin.startswith(b"PAR1") else "feather"
    suffixes = [suffix for suffix in map(str.lower, file.suffixes) if suffix in SUFFIXES]
    if suffixes and SUFFIXES[suffixes[-1]] in TEXTS:
        return SUFFIXES[suffixes[-1]]
    if begin.startswith(b"{"):
        return "json"
    raise TableError("{file} is not a table that can be read in parts: it must be {known}.", file=file.name,
                     known=KNOWN.replace("NPZ, ", ""))  # fmt: skip


def print_of(files: Any, more: Sequence[Any]) -> str | None:
    """A hash of the paths, sizes and times of files."""
    if files is None:
        return None
    digest = hashlib.sha256(repr(tuple(more)).encode())
    for file in files:
        if not os.path.exists(file):  # on another file system, of which pyarrow knows
            return None
        status = os.stat(file)
        digest.update(f"{os.path.abspath(file)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


# --- Arrow ---------------------------------------------------------------------------------------------------------------


def from_arrow_files(path: Path, files: list[Path], kind: str, print_: str | None) -> Source:
    import pyarrow as pa
    from pyarrow import dataset as ds

    try:
        partitioning = ds.partitioning(flavor="hive") if path.is_dir() else None
        base = os.fspath(path) if path.is_dir() else None
        data = ds.dataset([os.fspath(file) for file in files], format=kind, partitioning=partitioning, partition_base_dir=base)
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=path.name, why=one_line(error)) from None
    return from_dataset(data, path.name, print_)


def from_dataset(data: Any, name: str, print_: str | None) -> Source:
    """The fragments of a dataset, one after the other, in batches."""
    import pyarrow as pa

    check_unique(data.schema.names)
    try:
        fragments = list(data.get_fragments())
    except ValueError:  # one that was filtered, which is read as a whole
        pieces: list[Piece] = [partial(read_fragment, data, None, name, PART_ROWS)]
        return Source(names_of(data.schema.names), len(data.schema.names), pieces, False, None, None)
    try:
        schema = common_schema(data.schema, fragments, name)
        n_rows = data.count_rows()
        groups = [group for fragment in fragments for group in row_groups(fragment)]
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=name, why=one_line(error)) from None
    pieces = [partial(read_fragment, group, schema, name, PART_ROWS) for group in groups]
    return Source(names_of(schema.names), len(schema.names), pieces, False, print_, n_rows)


def row_groups(fragment: Any) -> list[Any]:
    """The parts of a Parquet file that can be read by themselves; other fragments as they are."""
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else split()


def read_fragment(fragment: Any, schema: Any, name: str, n_rows: int) -> Iterator[Part]:
    import pyarrow as pa

    how = {} if schema is None else {"schema": schema}
    try:
        for batch in fragment.to_batches(batch_size=n_rows, use_threads=False, batch_readahead=1, **how):
            if batch.num_rows:
                yield Part([arrow_column(column) for column in batch.columns], batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=name, why=one_line(error)) from None


def common_schema(first: Any, fragments: Sequence[Any], name: str) -> Any:
    """The columns of all files of a table, which some of them may lack, each of one type."""
    import pyarrow as pa

    types = {field.name: field.type for field in first}
    for fragment in fragments:
        for field in fragment.physical_schema:
            known = types.setdefault(field.name, field.type)
            common = common_type(known, field.type)
            if common is None:
                raise TableTypeError(
                    "Column {column!r} is {one} in some files of {file} and {other} in {path}; write it with one type.",
                    column=field.name,
                    one=known,
                    other=field.type,
                    file=name,
                    path=os.path.basename(getattr(fragment, "path", "others")),
                )
            types[field.name] = common
    return pa.schema(types)


def common_type(one: Any, other: Any) -> Any:
    """What cells of both types can be read as; None if they are not alike."""
    import pyarrow as pa

    if one == other or pa.types.is_null(other) or both_words(one, other):
        return one
    if pa.types.is_null(one):
        return other
    if all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in (one, other)):
        return pa.float64() if pa.types.is_floating(one) or pa.types.is_floating(other) else pa.int64()
    return None


def both_words(one: Any, other: Any) -> bool:
    import pyarrow as pa

    def is_word(kind: Any) -> bool:
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))

    return is_word(one) and is_word(other)


def arrow_column(column: Any) -> PartColumn:
    """The different cells of an Arrow array, but all of them of one of lists."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return PartColumn(as_series(column), None)
    if pa.types.is_dictionary(kind):
        return PartColumn(as_series(pa.DictionaryArray.from_arrays(
            pa.array(np.arange(len(column.dictionary), dtype=np.int32)), column.dictionary, ordered=kind.ordered,
        )), filled(column.indices))  # fmt: skip
    coded = column.dictionary_encode()
    return PartColumn(as_series(coded.dictionary), filled(coded.indices))


def filled(indices: Any) -> np.ndarray:
    numbers: np.ndarray = (indices.fill_null(-1) if indices.null_count else indices).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int32, copy=False)


def as_series(array: Any) -> AnyColumn:
    import pyarrow as pa

    series: AnyColumn = nw.from_native(pa.chunked_array([array]), series_only=True)
    return series


def one_line(error: object) -> str:
    return " ".join(str(error).split())[:200]


# --- CSV -----------------------------------------------------------------------------------------------------------------


def from_csv(files: list[Path], delimiter: str | None, header: bool, print_: str | None) -> Source:
    """All cells as words: what they mean is known when all of them are."""
    how = CsvFile(delimiter or guess_delimiter(first_lines(files[0])) or ",", header, CSV_BYTES)
    names = [word.strip() for word in how.names(files[0])]
    check_names(names, files[0].name)
    for file in files[1:]:
        if [word.strip() for word in how.names(file)] != names:
            raise TableError("{file} does not have the columns of {first}.", file=file.name, first=files[0].name)
    called = [word or f"column {j + 1}" for j, word in enumerate(names)] if header else None
    return Source(called, len(names), [partial(how.parts, file) for file in files], True, print_, None)


class CsvFile(NamedTuple):
    """How CSV files are read."""

    delimiter: str
    header: bool
    block_size: int

    def open(self, file: Path, names: Sequence[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        content, encoding = open_text(file)
        how = csv.ReadOptions(
            block_size=self.block_size, autogenerate_column_names=not self.header, use_threads=False, encoding=encoding
        )
        words = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        parsing = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        return csv.open_csv(content, how, parsing, words)

    def names(self, file: Path) -> list[str]:
        with self.saying(file), self.open(file, ()) as reader:
            return list(reader.schema.names)

    def parts(self, file: Path) -> Iterator[Part]:
        with self.saying(file), self.open(file, self.names(file)) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield Part([arrow_column(column) for column in batch.columns], batch.num_rows)

    @contextmanager
    def saying(self, file: Path) -> Iterator[None]:
        """What is wrong with a file, in a sentence."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, *UNREADABLE) as error:
            if "UTF8" in str(error) or isinstance(error, UnicodeDecodeError):
                raise not_text(file) from None
            raise TableError("{file} cannot be read as CSV ({why}).", file=file.name, why=one_line(error)) from None


def first_lines(file: Path) -> str:
    try:
        content, encoding = open_text(file)
        with content:
            return content.read(1 << 20).decode(encoding, "replace")  # type: ignore[no-any-return]
    except UNREADABLE as error:
        raise TableError("{file} cannot be read ({why}).", file=file.name, why=one_line(error)) from None


def open_text(file: Path) -> tuple[Any, str]:
    """(its content, how that is encoded): a text file, which may be compressed. UTF-16 is known by its mark."""
    import pyarrow as pa

    with open(file, "rb") as start:
        begin = start.read(6)
    how = next((how for magic, how in COMPRESSED.items() if begin.startswith(magic)), None)
    with (how or open)(file, "rb") as start:
        marked = start.read(2) in (b"\xff\xfe", b"\xfe\xff")
    return pa.input_stream(os.fspath(file)) if how is None else how(file, "rb"), "utf-16" if marked else "utf-8"


def not_text(file: Path) -> TableError:
    return TableError("{file} is not UTF-8 text; write it as that first.", file=file.name)


# --- JSON lines ----------------------------------------------------------------------------------------------------------


def from_json(files: list[Path], print_: str | None) -> Source:
    """One object a line. A first look finds the keys, which later lines may lack."""
    names: dict[str, None] = {}
    for file in files:
        for table in json_tables(file, PART_ROWS // 4):
            names |= dict.fromkeys(table.names or ())
    pieces = [partial(json_parts, file, list(names), PART_ROWS // 4) for file in files]
    return Source(list(names), len(names), pieces, False, print_, None)


def json_tables(file: Path, n_lines: int) -> Iterator[Table]:
    try:
        content, encoding = open_text(file)
        with io.TextIOWrapper(content, encoding="utf-8-sig" if encoding == "utf-8" else encoding) as lines:
            line = 0
            while some := list(itertools.islice(lines, n_lines)):
                if "".join(some).strip():
                    yield read_json("".join(some), file.name, line)
                line += len(some)
    except UnicodeDecodeError:
        raise not_text(file) from None
    except UNREADABLE as error:
        raise TableError("{file} cannot be read ({why}).", file=file.name, why=one_line(error)) from None


def json_parts(file: Path, names: list[str], n_lines: int) -> Iterator[Part]:
    for table in json_tables(file, n_lines):
        own = dict(zip(table.names or (), table.columns, strict=True))
        gone = np.full(table.n_cases, None, dtype=object)
        yield Part([object_column(np.asarray(own.get(name, gone))) for name in names], table.n_cases)


def object_column(cells: np.ndarray) -> PartColumn:
    if any(isinstance(cell, (dict, *LISTS)) for cell in cells):
        return PartColumn(cells, None)
    code: dict[tuple[type, Any], int] = {}  # True, 1 and 1.0 are not the same here
    index = np.fromiter((code.setdefault((type(cell), cell), len(code)) for cell in cells), np.int32, count=len(cells))
    return PartColumn(np.fromiter((cell for _, cell in code), dtype=object, count=len(code)), index)
