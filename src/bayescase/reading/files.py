"""Files → tables: CSV and its kin, JSON lines, ARFF, NPZ, Parquet and Feather; text may be compressed by gzip, bzip2 or xz."""

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
import zipfile
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..storage import HEADER
from .tables import SparseColumn, Table, check_table, is_missing, listed, read, read_sparse

KNOWN = "CSV, TSV, JSON lines, ARFF, NPZ, Parquet or Feather"
DELIMITERS = ",\t;|"
SUSPECTS = ("?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "NONE", ".")  # words that often mean missing
INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)")  # 007 is a word: the zeros of a postcode mean something
NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = {sign + word for sign in ("", "+", "-") for word in ("nan", "inf", "infinity")}


class FileData(NamedTuple):
    """What a file holds."""

    table: Table  # `BayesianCaseModel.fit` takes it as it is
    beside: dict[str, np.ndarray]  # other arrays of an NPZ file with one entry per case

    def values(self, name: str, what: str = "column") -> list:
        """The values of a column, None where missing. `what` says who asks for it, if there is none."""
        if name in self.beside and name not in (self.table.names or ()):
            column = self.beside[name]
        else:
            column = self.table.columns[self.position(name, what)]
        column = column.dense() if isinstance(column, SparseColumn) else column
        values = column.tolist() if isinstance(column, np.ndarray) else column.to_list()
        return [None if is_missing(value) else value for value in values]

    def position(self, name: str, what: str = "column") -> int:
        """Of a column; ValueError with the likely meant one if there is none."""
        names = [self.table.name(j) for j in range(len(self.table.columns))]
        if name in names:
            return names.index(name)
        near = difflib.get_close_matches(name, [*names[:5000], *self.beside], n=1)
        meant = (
            f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:8]))}{' …' * (len(names) > 8)}."
        )
        raise ValueError(f"{what} names {name!r}, but the data has no such column; {meant}")


def read_file(
    path: Any,
    *,
    delimiter: str | None = None,
    header: bool = True,
    missing_values: Any = (),
    array: str | None = None,
    known: Any = (),
) -> FileData:
    """Read a table from a file; the kind of file is told from its content.

    Parameters
    ----------
    path : path or "-"
        The file; "-" is standard input.
    delimiter : str, default=None
        What separates the cells of a CSV file; guessed among comma, tab, semicolon and bar if None.
    header : bool, default=True
        Is the first row of a CSV file the names of its columns?
    missing_values : sequence of str, default=()
        Cells of a text file that mean missing, beside empty ones.
    array : str, default=None
        Name of the table in an NPZ file that holds several.
    known : sequence of str, default=()
        Features of a fitted model: an item of a list that no case in the file has is then a column, too.

    Returns
    -------
    FileData
    """
    name = "standard input" if str(path) == "-" else Path(path).name
    content = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    content = decompress(content, name)
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise ValueError(f"{name} is empty.")
    if array is not None and not content.startswith((b"PK\x03\x04", b"\x93NUMPY")):
        raise ValueError(f"{name} is no NPZ file, so it has no array {array!r}.")
    if content.startswith(b"PK\x03\x04"):
        return read_npz(content, name, array)
    if content.startswith(b"\x93NUMPY"):
        return FileData(dense_table(load_array(io.BytesIO(content), name), None, name), {})
    if content.startswith((b"PAR1", b"ARROW1", b"FEA1")):
        return FileData(read_arrow(content, name), {})
    text = decode(content, name)
    suffixes = Path(name).suffixes
    if ".arff" in map(str.lower, suffixes) or re.match(r"(?:\s*(?:%.*)?\n)*\s*@relation\b", text, re.I):
        return FileData(read_arff(text, name), {})
    if {".jsonl", ".json", ".ndjson"} & set(map(str.lower, suffixes)) or text.startswith(('{"', '[{"')):
        return FileData(read_json(text, name, known), {})
    return FileData(read_csv(text, name, delimiter, header, {"", *missing_values}), {})


def decompress(content, name):
    for magic, how in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ\x00", lzma.decompress)):
        if content.startswith(magic):
            try:
                return how(content)
            except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
                raise ValueError(f"{name} is compressed, but damaged ({error}).") from None
    return content


def decode(content, name):
    """UTF-8 if it is that, with or without a byte order mark; else UTF-16 by its mark, else Latin-1 with a warning."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError(f"{name} begins like UTF-16 text, but is not.") from None
    if b"\0" in content:
        raise ValueError(f"{name} is not a table that can be read: it must be {KNOWN}.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        warnings.warn(f"{name} is not UTF-8 (line {line}); read as Latin-1.", stacklevel=3)
        return content.decode("latin-1")


# --- CSV ----------------------------------------------------------------------------------------------------------------


def read_csv(text, name, delimiter, header, missing):
    guess = guess_delimiter(text)
    rows = records(text, name, delimiter or guess or ",")
    _, first = next(rows)
    if len(first) == 1 and delimiter not in (None, guess) and guess:
        raise ValueError(f"{name}: its cells are not separated by {delimiter!r}; try {guess!r}.")
    names, cases = (first if header else None), ([] if header else [first])
    for line, row in rows:
        if len(row) != len(first):
            what = "header" if header else "first row"
            raise ValueError(f"{name}, line {line}: {counted(len(row), 'cell')}, but the {what} has {len(first)}.")
        cases.append(row)
    if not cases:
        raise ValueError(f"{name} has a header, but no cases.")
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
    for word, where in sorted(suspects.items()):
        verb = "has" if len(where) == 1 else "have"
        warnings.warn(
            f"{listed('Column', where, 3)} {verb} the value {word!r}; if it means missing, name it in missing_values.",
            stacklevel=4,
        )
    return check_table(Table(names, columns, len(columns[0])))


def records(text, name, delimiter):
    """(line, cells) of every record that is not blank, cells without the space around them."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
    line = 1
    try:
        for row in reader:
            if row:
                yield line, [cell.strip() for cell in row]
            line = reader.line_num + 1
    except csv.Error as error:
        what = "a quoted cell that begins here does not end" if "end of data" in str(error) or "limit" in str(error) else error
        raise ValueError(f"{name}, line {line}: {what}.") from None


def guess_delimiter(text, most=50):
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


def check_header(names, columns, name):
    """Names that most columns have among their values are not names."""
    alike = sum(word in cells for word, cells in zip(names, columns, strict=True) if word)
    if 2 * alike > len(names):
        warnings.warn(
            f"The first row of {name} looks like a case, not like names; if it is one, say that the file has no header row.",
            stacklevel=4,
        )


def check_names(names, name):
    at: dict[str, int] = {}
    for j, word in enumerate(names):
        if word in at:
            raise ValueError(
                f"{name}: columns {at[word] + 1} and {j + 1} are both called {word!r}; rename one, or say that the file has no "
                "header row."
            )
        at[word] = j


def typed(cells, missing):
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


def counted(n, noun):
    return f"{n} {noun}{'s' * (n != 1)}"


# --- JSON ---------------------------------------------------------------------------------------------------------------


def read_json(text, name, known):
    """One object a line, or one list of objects. A column of lists becomes a column per item: absent or present."""
    if text.lstrip().startswith("["):
        found = [(f"{name}, entry {i + 1}", entry) for i, entry in enumerate(parse_json(text, name))]
    else:
        lines = ((f"{name}, line {i + 1}", line) for i, line in enumerate(text.split("\n")))
        found = [(where, parse_json(line, where)) for where, line in lines if line.strip()]
    for where, entry in found:
        if not isinstance(entry, dict):
            raise ValueError(f'{where}: a case must be an object such as {{"colour": "red"}}, not {json.dumps(entry)[:40]}.')
    cases = [entry for _, entry in found]
    names: list[str] = []
    columns: list[Any] = []
    for key in dict.fromkeys(key for case in cases for key in case):
        column = [case.get(key) for case in cases]
        new = {key: np.fromiter(column, dtype=object, count=len(column))}
        if any(isinstance(value, list) for value in column):
            new = items_of(column, key, name, [word for word in known if word.startswith(f"{key}: ")])
        names += new
        columns += new.values()
    check_names(names, name)
    return check_table(Table(names, columns, len(cases)))


def parse_json(text, where):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: this is not JSON ({error}).") from None


def items_of(column, key, name, known):
    rows: dict[str, list[int]] = {word: [] for word in known}
    for i, items in enumerate(column):
        if items is not None and not isinstance(items, list):
            raise ValueError(f"{name}, case {i}: {key!r} is a list in other cases, but {json.dumps(items)[:40]} here.")
        if any(isinstance(item, (list, dict)) for item in items or ()):
            raise ValueError(f"{name}, case {i}: {key!r} is a list of lists or objects; only words and numbers can be items.")
        for word in dict.fromkeys(f"{key}: {item}" for item in items or ()):
            rows.setdefault(word, []).append(i)
    at = {word: np.array(found, dtype=np.int64) for word, found in sorted(rows.items())}
    return {word: SparseColumn(found, np.ones(len(found), dtype=np.int8), len(column)) for word, found in at.items()}


# --- ARFF ---------------------------------------------------------------------------------------------------------------

WORD = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
ATTRIBUTE = re.compile(rf"@attribute\s+({WORD}|[^\s{{]+)\s*(.+)", re.I | re.S)
CELL = re.compile(rf"\s*+({WORD}|(?!['\"])[^,\t]*)\s*(?:[,\t]|$)")
ENTRY = re.compile(rf"\s*+([0-9]+)\s++({WORD}|(?!['\"])[^,]*)\s*(?:,|$)")


def read_arff(text, name):
    """Nominal and string attributes are words, the others numbers; `?` is missing. Sparse rows are read, too."""
    names: list[str] = []
    kinds: list[tuple | None] = []
    rows, in_data = [], False
    for n, line in enumerate(text.splitlines(), 1):
        line, where = line.strip(), f"{name}, line {n}"
        if not line or line.startswith("%"):
            continue
        if in_data:
            rows.append(sparse_row(line, kinds, where) if line.startswith("{") else dense_row(line, len(names), where))
        elif line.lower().startswith("@data"):
            in_data = True
        elif line.lower().startswith("@attribute"):
            match = ATTRIBUTE.fullmatch(line)
            if not match:
                raise ValueError(f"{where}: an attribute needs a name and a type.")
            names.append(unquoted(match[1])[0])
            kinds.append(attribute_kind(match[2].strip(), where))
        elif not line.lower().startswith("@relation"):
            raise ValueError(f"{where}: expected @attribute or @data, not {line[:40]!r}.")
    if not in_data or not rows or not names:
        raise ValueError(f"{name} has no {'@data' if not in_data else 'cases' if names else '@attribute'}.")
    check_names(names, name)
    columns = []
    for j, kind in enumerate(kinds):
        cells = [row[j] for row in rows]
        if kind is None:
            columns.append(np.array([to_number(cell, names[j], name) for cell in cells]))
        else:
            columns.append(np.array(cells, dtype=object))
    return check_table(Table(names, columns, len(rows)))


def attribute_kind(kind, where):
    """None for numbers, the declared values of a nominal attribute, () for any words."""
    if kind.startswith("{"):
        return tuple(dense_row(kind.strip("{} \t"), None, where))
    word = kind.split()[0].lower()
    if word not in ("numeric", "real", "integer", "string", "date"):
        raise ValueError(f"{where}: the type {kind[:40]!r} is not known; use numeric, string, date or {{a, b, …}}.")
    return () if word in ("string", "date") else None


def dense_row(line, width, where):
    cells, at = [], 0
    while True:
        match = CELL.match(line, at)
        if not match:
            raise ValueError(f"{where}: cannot read {line[at : at + 40]!r}; is a quote missing?")
        cells.append(cell_of(match[1]))
        at = match.end()
        if at >= len(line) and not match[0].endswith((",", "\t")):
            break
    if width is not None and len(cells) != width:
        raise ValueError(f"{where}: {counted(len(cells), 'cell')}, but there are {counted(width, 'attribute')}.")
    return cells


def sparse_row(line, kinds, where):
    """{index value, …}: what is not listed is zero, or the first value of a nominal attribute."""
    row, at, body = ["0" if kind is None else (kind or (None,))[0] for kind in kinds], 0, line.strip("{} \t")
    while at < len(body):
        match = ENTRY.match(body, at)
        if not match or int(match[1]) >= len(kinds):
            raise ValueError(f"{where}: cannot read {body[at : at + 40]!r} as an attribute's number and its value.")
        row[int(match[1])], at = cell_of(match[2]), match.end()
    return row


def cell_of(token):
    word, quoted = unquoted(token.strip())
    return None if word in ("?", "") and not quoted else word


def unquoted(token):
    if len(token) > 1 and token[0] in "'\"" and token[-1] == token[0]:
        return re.sub(r"\\(.)", r"\1", token[1:-1]), True
    return token, False


def to_number(cell, column, name):
    try:
        return np.nan if cell is None else float(cell)
    except ValueError:
        raise ValueError(f"{name}: {column!r} is declared numeric, but has the value {cell!r}.") from None


# --- arrays -------------------------------------------------------------------------------------------------------------


def read_npz(content, name, array):
    """A table called X or the only one there is; or the parts of a CSR or CSC matrix. Other arrays go beside it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.namelist()
    except zipfile.BadZipFile as error:
        raise ValueError(f"{name} is a damaged archive ({error}).") from None
    if HEADER in entries:
        raise ValueError(f"{name} is a bayescase model or checkpoint, not data.")
    if any(entry.startswith("xl/") for entry in entries):
        raise ValueError(f"{name} is a spreadsheet; save the sheet as CSV first.")
    if not any(entry.endswith(".npy") for entry in entries):
        raise ValueError(f"{name} is an archive without NumPy arrays; it must be {KNOWN}.")
    arrays = load_array(io.BytesIO(content), name)
    if array is None and {"indices", "indptr", "shape"} <= arrays.keys():
        table, used = sparse_table(arrays, name), {"data", "indices", "indptr", "shape", "format"}
    else:
        chosen = choose_array(arrays, name, array)
        table, used = dense_table(arrays[chosen], arrays, name), {chosen}
    beside = {key: value for key, value in arrays.items() if key not in used and value.shape == (table.n_cases,)}
    return FileData(table, beside)


def load_array(file, name):
    try:
        loaded = np.load(file, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except Exception as error:  # a damaged or hostile file can fail in many ways
        raise ValueError(f"{name} cannot be read as NumPy arrays ({error}).") from None


def choose_array(arrays, name, array):
    tables = [key for key, value in arrays.items() if value.ndim == 2]
    if array is not None:
        if array not in tables:
            raise ValueError(f"{name} has no table {array!r}; there are {', '.join(map(repr, tables)) or 'none'}.")
        return array
    if not tables:
        raise ValueError(f"{name} has no array of two dimensions, and no parts of a sparse matrix (indices, indptr, shape).")
    if len(tables) > 1 and "X" not in tables:
        raise ValueError(f"{name} has several tables: {', '.join(map(repr, tables))}; say which array to read.")
    return "X" if "X" in tables else tables[0]


def dense_table(values, arrays, name):
    if values.ndim != 2 or values.dtype.kind not in "biufUS":
        raise ValueError(f"{name} holds an array of {values.ndim} dimensions of type {values.dtype}; a table has two, of "
                         "numbers, booleans or words.")  # fmt: skip
    columns = [values[:, j] for j in range(values.shape[1])]
    return check_table(Table(column_names(arrays or {}, values.shape, name), columns, values.shape[0]))


def sparse_table(arrays, name):
    from scipy.sparse import csc_array, csr_array

    layout = str(arrays.get("format", np.array("csr")).astype(str))
    if layout not in ("csr", "csc"):
        raise ValueError(f"{name} holds a sparse matrix in the layout {layout!r}; convert it by .tocsr() first.")
    try:
        height, width = (int(n) for n in arrays["shape"])
        values = arrays.get("data", np.ones(len(arrays["indices"]), dtype=np.int8))
        indices = (
            arrays["indices"].astype(np.int64, casting="same_kind")
            if arrays["indices"].dtype.kind == "u"
            else arrays["indices"]
        )
        matrix = (csr_array if layout == "csr" else csc_array)((values, indices, arrays["indptr"]), shape=(height, width))
        matrix.check_format(full_check=True)
    except Exception as error:
        raise ValueError(f"{name}: data, indices, indptr and shape do not make a sparse matrix ({error}).") from None
    return read_sparse(matrix)._replace(names=column_names(arrays, (height, width), name))


def column_names(arrays, shape, name):
    """The array of words that has one for each column, such as `feature_names` or `vocabulary`, if there is one."""
    found = [key for key, value in arrays.items() if value.shape == shape[1:] and value.dtype.kind in "US"]
    if shape[0] == shape[1] or not found:
        found = [key for key in found if key in ("feature_names", "columns")]
    if not found:
        return None
    names = arrays[found[0]].astype(str).tolist()
    check_names(names, name)
    return names


def read_arrow(content, name):
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise ImportError(f"{name} needs pyarrow: pip install 'bayescase[files]'.") from None
    try:
        return read((parquet if content.startswith(b"PAR1") else feather).read_table(io.BytesIO(content)))
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{name} cannot be read ({error}).") from None
