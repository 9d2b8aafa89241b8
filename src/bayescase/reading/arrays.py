"""NumPy and Arrow files → tables."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from ..errors import Advice, Setting, TableError
from ..storage import HEADER
from .tables import AnyColumn, Table, check_table, read, read_sparse

ZIP, NUMPY, ARROW = b"PK\x03\x04", b"\x93NUMPY", (b"PAR1", b"ARROW1", b"FEA1")  # how such files begin


def read_npz(content: bytes, name: str, array: str | None) -> tuple[Table, dict[str, np.ndarray]]:
    """(a table called X, or the only one, or a CSR or CSC matrix in parts; other arrays with one entry per case)."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.namelist()
    except zipfile.BadZipFile as error:
        raise TableError("{file} is a damaged archive ({why}).", file=name, why=error) from None
    if HEADER in entries:
        raise TableError("{file} is a bayescase model or checkpoint, not data.", file=name)
    if any(entry.startswith("xl/") for entry in entries):
        raise TableError("{file} is a spreadsheet; save the sheet as CSV first.", file=name)
    if not any(entry.endswith(".npy") for entry in entries):
        raise TableError("{file} is an archive without NumPy arrays, so it is no table that can be read.", file=name)
    arrays = load_array(io.BytesIO(content), name)
    if array is None and {"indices", "indptr", "shape"} <= arrays.keys():
        table, used = sparse_table(arrays, name), {"data", "indices", "indptr", "shape", "format"}
    else:
        chosen = choose_array(arrays, name, array)
        table, used = dense_table(arrays[chosen], arrays, name), {chosen}
    beside = {key: value for key, value in arrays.items() if key not in used and value.shape == (table.n_cases,)}
    return table, beside


def load_array(file: io.BytesIO, name: str) -> Any:
    try:
        loaded = np.load(file, allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else {key: loaded[key] for key in loaded.files}
    except Exception as error:  # a damaged or hostile file can fail in many ways
        raise TableError("{file} cannot be read as NumPy arrays ({why}).", file=name, why=error) from None


def choose_array(arrays: dict[str, np.ndarray], name: str, array: str | None) -> str:
    tables = [key for key, value in arrays.items() if value.ndim == 2]
    if array is not None:
        if array not in tables:
            raise TableError(
                "{file} has no table {value!r}; there are {tables}.",
                file=name,
                parameter="array",
                value=array,
                tables=", ".join(map(repr, tables)) or "none",
            )
        return array
    if not tables:
        raise TableError(
            "{file} has no array of two dimensions, and no parts of a sparse matrix (indices, indptr, shape).", file=name
        )
    if len(tables) > 1 and "X" not in tables:
        raise TableError(
            "{file} has several tables: {tables}.",
            Advice("choose one with {}", Setting("array", tables[0])),
            file=name,
            tables=", ".join(map(repr, tables)),
        )
    return "X" if "X" in tables else tables[0]


def dense_table(values: np.ndarray, arrays: dict[str, np.ndarray], name: str) -> Table:
    if values.ndim != 2 or values.dtype.kind not in "biufUS":
        raise TableError(
            "{file} holds an array of {n} dimensions of type {dtype}; a table has two, of numbers, booleans or words.",
            file=name,
            n=values.ndim,
            dtype=values.dtype,
        )
    height, width = values.shape
    columns: list[AnyColumn] = [values[:, j] for j in range(width)]
    return check_table(Table(column_names(arrays, (height, width)), columns, height))


def sparse_table(arrays: dict[str, np.ndarray], name: str) -> Table:
    from scipy.sparse import csc_array, csr_array

    layout = str(arrays.get("format", np.array("csr")).astype(str))
    if layout not in ("csr", "csc"):
        raise TableError(
            "{file} holds a sparse matrix in the layout {layout!r}; convert it by .tocsr() first.", file=name, layout=layout
        )
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
        raise TableError(
            "{file}: data, indices, indptr and shape do not make a sparse matrix ({why}).", file=name, why=error
        ) from None
    return check_table(read_sparse(matrix)._replace(names=column_names(arrays, (height, width))))


def column_names(arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> list[str] | None:
    """The array of words that has one for each column, such as `feature_names` or `vocabulary`, if there is one."""
    found = [key for key, value in arrays.items() if value.shape == shape[1:] and value.dtype.kind in "US"]
    if shape[0] == shape[1] or not found:
        found = [key for key in found if key in ("feature_names", "columns")]
    if not found:
        return None
    names: list[str] = arrays[found[0]].astype(str).tolist()
    return names


def read_npy(content: bytes, name: str) -> Table:
    return dense_table(load_array(io.BytesIO(content), name), {}, name)


def read_arrow(content: bytes, name: str) -> Table:
    try:
        import pyarrow
        from pyarrow import feather, parquet
    except ImportError:
        raise ImportError(f"{name} needs pyarrow: pip install 'bayescase[files]'.") from None
    try:
        return read((parquet if content.startswith(b"PAR1") else feather).read_table(io.BytesIO(content)))
    except (pyarrow.ArrowException, OSError) as error:
        raise TableError("{file} cannot be read ({why}).", file=name, why=error) from None
