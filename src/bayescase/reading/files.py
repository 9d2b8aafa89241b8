"""Files → tables: CSV and its kin, JSON lines, NPZ, Parquet and Feather; text may be compressed by gzip, bzip2 or xz."""

from __future__ import annotations

import bz2
import csv
import difflib
import gzip
import io
import json
import lzma
import re
import sys
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import Advice, Setting, TableError, TableWarning
from .arrays import ARROW, NUMPY, ZIP, read_arrow, read_npy, read_npz
from .tables import AnyColumn, SparseColumn, Table, check_table, is_missing, listed

KNOWN = "CSV, TSV, JSON lines, NPZ, Parquet or Feather"
DELIMITERS = ",\t;|"
SUSPECTS = ("?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "NONE", ".")  # words that often mean missing
INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")  # 007 is a word: the zeros of a postcode mean something
LONGEST_CELL = 2**31 - 1  # a cell may be a book; by default the reader of Python stops at 131,072 characters
NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = {sign + word for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")}


class FileData(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    table : Table
        The cases; `BayesianCaseModel.fit` and `CaseEncoder.fit` take it as it is.
    beside : dict of str to ndarray
        Other arrays of an NPZ file with one entry per case, such as labels.
    """

    table: Table
    beside: dict[str, np.ndarray]

    def values(self, name: str, asked_by: str = "The caller") -> list[Any]:
        """Get the values of a column, None where missing.

        Parameters
        ----------
        name : str
            Name of a column or of an array beside the table.
        asked_by : str, default="The caller"
            Who asks for it, for the error if there is none.

        Returns
        -------
        list
            A value per case.
        """
        column: Any
        if name in self.beside and name not in (self.table.names or ()):
            column = self.beside[name]
        else:
            column = self.table.columns[self.position(name, asked_by)]
        column = column.dense() if isinstance(column, SparseColumn) else column
        values = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        return [None if is_missing(value) else value for value in values]

    def case_names(self, name: str, asked_by: str = "The caller") -> list[str]:
        """Get the values of a column as names of the cases; "case 3" where one is missing.

        Parameters
        ----------
        name : str
            Name of a column or of an array beside the table.
        asked_by : str, default="The caller"
            Who asks for it, for the error if there is none.

        Returns
        -------
        list of str
            A name per case.
        """
        return [f"case {i}" if value is None else str(value) for i, value in enumerate(self.values(name, asked_by))]

    def position(self, name: str, asked_by: str = "The caller") -> int:
        """Find a column; a `TableError` names the likely meant one if there is none.

        Parameters
        ----------
        name : str
            Name of a column.
        asked_by : str, default="The caller"
            Who asks for it, for the error if there is none.

        Returns
        -------
        int
            The position of the column, from 0.
        """
        names = [self.table.name(j) for j in range(len(self.table.columns))]
        if name in names:
            return names.index(name)
        near = difflib.get_close_matches(name, [*names[:5000], *self.beside], n=1)
        there = f"there are {', '.join(map(repr, names[:8]))}{' …' * (len(names) > 8)}."
        raise TableError(
            "{asked_by} names {column!r}, but the data has no such column; {meant}",
            asked_by=asked_by,
            column=name,
            meant=f"did you mean {near[0]!r}?" if near else there,
        )


def read_file(
    path: str | PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool = True,
    missing_values: Sequence[str] = (),
    array: str | None = None,
) -> FileData:
    """Read a table from a file; the kind of file is told from its content.

    Parameters
    ----------
    path : path or "-"
        The file; "-" is standard input.
    delimiter : str, default=None
        What separates the cells of a CSV file; guessed among comma, tab, semicolon and bar if None.
    header : bool, default=True
        The first row of a CSV file has the names of its columns.
    missing_values : sequence of str, default=()
        Cells of a text file that mean missing, beside empty ones.
    array : str, default=None
        Name of the table in an NPZ file that holds several.

    Returns
    -------
    FileData
        The table, and what stands beside it.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel
    >>> from bayescase.reading.files import read_file
    >>> data = read_file("animals.csv", missing_values=["?"])  # doctest: +SKIP
    >>> model = BayesianCaseModel(5).fit(data.table)  # doctest: +SKIP
    """
    name = "standard input" if str(path) == "-" else Path(path).name
    content = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    content = decompress(content, name)
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError("{file} is empty.", file=name)
    if array is not None and not content.startswith((ZIP, NUMPY)):
        raise TableError("{file} is no NPZ file, so it has no array {value!r}.", file=name, parameter="array", value=array)
    if content.startswith(ZIP):
        return FileData(*read_npz(content, name, array))
    if content.startswith(NUMPY):
        return FileData(read_npy(content, name), {})
    if content.startswith(ARROW):
        return FileData(read_arrow(content, name), {})
    text = decode(content, name)
    suffixes = Path(name).suffixes
    if ".arff" in map(str.lower, suffixes) or re.match(r"(?:\s*(?:%.*)?\n)*\s*@relation\b", text, re.I):
        raise TableError("{file} is an ARFF file, which cannot be read; save it as CSV first.", file=name)
    if {".jsonl", ".json", ".ndjson"} & set(map(str.lower, suffixes)) or text.startswith(('{"', '[{"')):
        return FileData(read_json(text, name), {})
    return FileData(read_csv(text, name, delimiter, header, {"", *missing_values}), {})


def decompress(content: bytes, name: str) -> bytes:
    for magic, how in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ\x00", lzma.decompress)):
        if content.startswith(magic):
            try:
                return how(content)
            except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
                raise TableError("{file} is compressed, but damaged ({why}).", file=name, why=error) from None
    return content


def decode(content: bytes, name: str) -> str:
    """UTF-8 if it is that, with or without a byte order mark; else UTF-16 by its mark, else Latin-1 with a warning."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise TableError("{file} begins like UTF-16 text, but is not.", file=name) from None
    if b"\0" in content:
        raise TableError("{file} is not a table that can be read: it must be {known}.", file=name, known=KNOWN)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        warnings.warn(TableWarning("{file} is not UTF-8 (line {line}); read as Latin-1.", file=name, line=line), stacklevel=3)
        return content.decode("latin-1")


# --- CSV ----------------------------------------------------------------------------------------------------------------


def read_csv(text: str, name: str, delimiter: str | None, header: bool, missing: set[str]) -> Table:
    guess = guess_delimiter(text)
    rows = records(text, name, delimiter or guess or ",")
    _, first = next(rows)
    if len(first) == 1 and delimiter not in (None, guess) and guess:
        raise TableError(
            "{file}: its cells are not separated by {value!r}; try {guess!r}.",
            file=name,
            parameter="delimiter",
            value=delimiter,
            guess=guess,
        )
    names, cases = (first if header else None), ([] if header else [first])
    for line, row in rows:
        if len(row) != len(first):
            raise TableError(
                "{file}, line {line}: {cells}, but the {first} has {width}.",
                file=name,
                line=line,
                cells=counted(len(row), "cell"),
                first="header" if header else "first row",
                width=len(first),
            )
        cases.append(row)
    if not cases:
        raise TableError("{file} has a header, but no cases.", file=name)
    columns: list[Any] = list(zip(*cases, strict=True))
    del cases
    if names is not None and not names[-1] and len(names) > 1 and not any(columns[-1]):  # every line ends with a delimiter
        names, columns = names[:-1], columns[:-1]
    if names is not None:
        check_header(names, columns, name)
        names = [word or f"column {j + 1}" for j, word in enumerate(names)]
        check_names(names, name)
    suspects: dict[str, list[str]] = {}
    for j, cells in enumerate(columns):
        columns[j] = typed(cells, missing)
        if columns[j].dtype == object:
            for word in set(SUSPECTS).intersection(cells) - missing:
                suspects.setdefault(word, []).append(names[j] if names else f"x{j}")
    for note in notes_on_suspects(suspects):
        warnings.warn(note, stacklevel=4)
    return check_table(Table(names, columns, len(columns[0])))


def notes_on_suspects(suspects: Mapping[str, list[str]]) -> Iterator[TableWarning]:
    """Words that often mean missing, and the columns that have them."""
    for word, where in sorted(suspects.items()):
        yield TableWarning(
            "{columns} {verb} the value {value!r}.",
            Advice("if it means missing, say so with {}", Setting("missing_values", word)),
            columns=listed("Column", where, 3),
            verb="has" if len(where) == 1 else "have",
            column=where[0],
            value=word,
        )


def records(text: str, name: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of every record that is not blank, cells without the space around them."""
    ended = False

    def lines() -> Iterator[str]:
        nonlocal ended
        yield from io.StringIO(text, newline="")
        ended = True

    reader = csv.reader(lines(), delimiter=delimiter, skipinitialspace=True, strict=True)
    line, limit = 1, csv.field_size_limit(LONGEST_CELL)
    try:
        for row in reader:
            if row:
                yield line, [cell.strip() for cell in row]
            line = reader.line_num + 1
    except csv.Error as error:
        what = "a quoted cell that begins here does not end" if ended else error
        raise TableError("{file}, line {line}: {what}.", file=name, line=line, what=what) from None
    finally:
        csv.field_size_limit(limit)


def guess_delimiter(text: str, most: int = 50) -> str | None:
    """The delimiter that cuts the first lines into most equal numbers of cells; None if none cuts the first line."""
    found = []
    for delimiter in DELIMITERS:
        widths = []
        try:
            for row in csv.reader(io.StringIO(text[: 1 << 20], newline=""), delimiter=delimiter, skipinitialspace=True):
                if row:
                    widths.append(len(row))
                if len(widths) == most:
                    break
        except csv.Error:
            pass
        if widths and widths[0] > 1:
            found.append((widths.count(widths[0]) / len(widths), widths[0], delimiter))
    return max(found)[2] if found else None


def check_header(names: Sequence[str], columns: Sequence[Collection[str]], name: str) -> None:
    """Names that most columns have among their values are not names."""
    alike = sum(word in cells for word, cells in zip(names, columns, strict=True) if word)
    if 2 * alike > len(names):
        warnings.warn(
            TableWarning(
                "The first row of {file} looks like a case, not like names.",
                Advice("if it is one, say so with {}", Setting("header", False)),
                file=name,
            ),
            stacklevel=4,
        )


def check_names(names: Iterable[str], name: str) -> None:
    at: dict[str, int] = {}
    for j, word in enumerate(names):
        if word in at:
            raise TableError(
                "{file}: columns {first} and {second} are both called {column!r}.",
                Advice("rename one"),
                Advice("use {} if the file has no header row", Setting("header", False)),
                file=name,
                first=at[word] + 1,
                second=j + 1,
                column=word,
            )
        at[word] = j


def typed(cells: Sequence[str], missing: set[str]) -> np.ndarray:
    """A column of texts as whole numbers, numbers, booleans or words; what is missing is NaN or None."""
    distinct = set(cells)
    words = distinct - missing
    gone = len(words) < len(distinct)
    values: dict[str, Any] = dict.fromkeys(distinct & missing)
    if words and all(word.lower() in ("true", "false") for word in words):
        values |= {word: word.lower() == "true" for word in words}
        return np.array([values[cell] for cell in cells], dtype=object if gone else bool)
    numbers = {word for word in words if word.lower() not in NOT_FINITE}
    if numbers and all(NUMBER.fullmatch(word) for word in numbers):
        whole = {word: int(word) for word in numbers if len(word) < 25 and INTEGER.fullmatch(word)}
        if len(whole) == len(words) and not gone and all(abs(value) < 2**63 for value in whole.values()):
            return np.array([whole[cell] for cell in cells], dtype=np.int64)
        # Longer whole numbers are words: as floats, identifiers that differ would be the same.
        if all(abs(whole.get(word, 2**63)) < 2**63 for word in numbers if INTEGER.fullmatch(word)):
            values = dict.fromkeys(values, np.nan) | {word: float(word) for word in words}
            return np.array([values[cell] for cell in cells])
    return np.array([None if cell in missing else cell for cell in cells], dtype=object)


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


# --- JSON ---------------------------------------------------------------------------------------------------------------


def read_json(text: str, name: str, before: int = 0) -> Table:
    """One object a line, or one list of objects; a cell may be a list. So many lines of the file were before these."""
    if text.lstrip().startswith("["):
        found = [(f"{name}, entry {i + 1}", entry) for i, entry in enumerate(parse_json(text, name))]
    else:
        lines = ((f"{name}, line {i}", line) for i, line in enumerate(text.split("\n"), start=before + 1))
        found = [(where, parse_json(line, where)) for where, line in lines if line.strip()]
    for where, entry in found:
        if not isinstance(entry, dict):
            raise TableError(
                '{where}: a case must be an object such as {{"colour": "red"}}, not {value}.',
                where=where,
                value=json.dumps(entry)[:40],
            )
    cases = [entry for _, entry in found]
    keys = list(dict.fromkeys(key for case in cases for key in case))
    columns: list[AnyColumn] = [np.fromiter((case.get(key) for case in cases), object, count=len(cases)) for key in keys]
    return check_table(Table(keys, columns, len(cases)))


def parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TableError("{where}: this is not JSON ({why}).", where=where, why=error) from None
