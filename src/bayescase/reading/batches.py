"""Tables too large for memory → parts: files, folders and pyarrow's datasets, some rows at a time.

Arrow's columns have types of their own. Cells of CSV are words until all are known, as when a file is read as a whole; cells of
JSON are whatever they are.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import os
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
    return isinstance(X, (str, os.PathLike, Source)) or type(X).__module__.startswith("pyarrow._dataset")


def open_source(X: Any, delimiter: str | None = None, header: bool = True) -> Source:
    """The parts of a path or of a dataset of pyarrow."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ImportError("Reading tables in parts needs pyarrow: pip install 'bayescase[files]'.") from None
    if not isinstance(X, (str, os.PathLike)):
        return from_dataset(X, "The dataset", print_of(getattr(X, "files", None), ()))
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

    schema = data.schema
    check_unique(schema.names)
    try:
        check_schemas(data, name)
        n_rows = data.count_rows()
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=name, why=one_line(error)) from None

    fragments = (part for fragment in data.get_fragments() for part in row_groups(fragment))
    pieces = [partial(read_fragment, fragment, schema, name, PART_ROWS) for fragment in fragments]
    return Source(names_of(schema.names), len(schema.names), pieces, False, print_, n_rows)


def row_groups(fragment: Any) -> list[Any]:
    """The parts of a Parquet file that can be read by themselves; other fragments as they are."""
    split = getattr(fragment, "split_by_row_group", None)
    return [fragment] if split is None else split()


def read_fragment(fragment: Any, schema: Any, name: str, n_rows: int) -> Iterator[Part]:
    import pyarrow as pa

    try:
        for batch in fragment.to_batches(schema=schema, batch_size=n_rows, use_threads=False, batch_readahead=1):
            if batch.num_rows:
                yield Part([arrow_column(column) for column in batch.columns], batch.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=name, why=one_line(error)) from None


def check_schemas(data: Any, name: str) -> None:
    """Files of one table must have the same columns of the same types."""
    types = {field.name: field.type for field in data.schema}
    for fragment in data.get_fragments():
        own = fragment.physical_schema
        for field in own:
            if field.name in types and field.type != types[field.name] and not both_words(field.type, types[field.name]):
                raise TableTypeError(
                    "Column {column!r} is {one} in some files of {file} and {other} in {path}; write it with one type.",
                    column=field.name,
                    one=types[field.name],
                    other=field.type,
                    file=name,
                    path=os.path.basename(getattr(fragment, "path", "others")),
                )


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
    names = how.names(files[0])
    check_names(names, files[0].name)
    for file in files[1:]:
        if how.names(file) != names:
            raise TableError("{file} does not have the columns of {first}.", file=file.name, first=files[0].name)
    called = [word or f"column {j + 1}" for j, word in enumerate(names)] if header else None
    return Source(called, len(names), [partial(how.parts, file, names) for file in files], True, print_, None)


class CsvFile(NamedTuple):
    """How CSV files are read."""

    delimiter: str
    header: bool
    block_size: int

    def open(self, file: Path, names: Sequence[str]) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        how = csv.ReadOptions(block_size=self.block_size, autogenerate_column_names=not self.header, use_threads=False)
        words = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        parsing = csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        return csv.open_csv(pa.input_stream(os.fspath(file), compression="detect"), how, parsing, words)

    def names(self, file: Path) -> list[str]:
        with self.saying(file), self.open(file, ()) as reader:
            return list(reader.schema.names)

    def parts(self, file: Path, names: Sequence[str]) -> Iterator[Part]:
        with self.saying(file), self.open(file, names) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield Part([arrow_column(column) for column in batch.columns], batch.num_rows)

    @contextmanager
    def saying(self, file: Path) -> Iterator[None]:
        """What is wrong with a file, in a sentence."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise TableError("{file} cannot be read as CSV ({why}).", file=file.name, why=one_line(error)) from None


def first_lines(file: Path) -> str:
    import pyarrow as pa

    try:
        return pa.input_stream(os.fspath(file), compression="detect").read(1 << 20).decode("utf-8", "replace")  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=file.name, why=one_line(error)) from None


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
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        line = 0
        while some := list(itertools.islice(lines, n_lines)):
            if "".join(some).strip():
                yield read_json("".join(some), f"{file.name}, from line {line + 1}")
            line += len(some)


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
