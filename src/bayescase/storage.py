"""Files: models and checkpoints, a zip of NumPy arrays and one JSON header; and arrays that stay on disk.

No pickle, so reading runs no code.
"""

import io
import json
import math
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

VERSION = 2
HEADER = "bayescase.json"


class FileFormatError(ValueError):
    """The file is not one that this version of bayescase can read."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that becomes the one at `path` once it is whole; until then, and after an error, the old one stands."""
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ValueError(f"{path!r} is not an ordinary file, so it is not replaced.")  # such as /dev/null
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(path)}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp is private; a saved model is an ordinary file
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says of a full disk does not say which file was to be written."""
    try:
        yield
    except OSError as error:
        if error.errno is None or isinstance(error, FileNotFoundError):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def write(path: str | os.PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write atomically: the file at `path` is the old one or the new one, whole, whatever happens meanwhile."""
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps({"format": "bayescase", "version": VERSION, "kind": kind, **header}))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def read(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(header, arrays) of a file of this kind, or FileFormatError in one sentence."""
    return _read(path, kind, with_arrays=True)


def read_header(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """The header alone."""
    return _read(path, kind, with_arrays=False)[0]


def kind_of(path: str | os.PathLike[str]) -> str | None:
    """The kind of a file of ours, of any version; None if it is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(HEADER))
        return str(header["kind"]) if header["format"] == "bayescase" else None
    except Exception:  # as in `_read`
        return None


def _read(path: str | os.PathLike[str], kind: str, with_arrays: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    path = os.fspath(path)
    with open(path, "rb") as file:
        if file.read(4) not in (b"PK\x03\x04", b""):
            raise FileFormatError(f"{path!r} is not a whole bayescase file (it does not begin like one).")
        try:
            with zipfile.ZipFile(file) as archive:
                header = check_header(path, json.loads(archive.read(HEADER)), kind)
                arrays = {}
                for name in archive.namelist() if with_arrays else ():
                    if name.endswith(".npy"):
                        entry = io.BytesIO(archive.read(name))  # checks the CRC
                        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(entry, allow_pickle=False)
        except FileFormatError:
            raise
        except Exception as error:  # zipfile, zlib, json and NumPy have many ways to say that bytes are damaged
            raise FileFormatError(f"{path!r} is not a whole bayescase file ({error}).") from error
    return header, arrays


def check_header(path: str, header: Any, kind: str) -> dict[str, Any]:
    if not isinstance(header, dict) or header.get("format") != "bayescase":
        raise FileFormatError(f"{path!r} is not a bayescase file.")
    if not isinstance(header.get("version"), int) or header["version"] > VERSION:
        raise FileFormatError(
            f"{path!r} was written by a newer bayescase (file version {header.get('version')}, this one reads up to "
            f"{VERSION}); upgrade bayescase to read it."
        )
    if header["version"] < VERSION:
        raise FileFormatError(
            f"{path!r} was written by an earlier development version of bayescase, which this one cannot read; make it anew."
        )
    if header.get("kind") != kind:
        raise FileFormatError(f"{path!r} holds a {header.get('kind')}, not a {kind}.")
    return header


# --- arrays that stay on disk ----------------------------------------------------------------------------------------------


class Mapped:
    """An array in a file, mapped into memory a part at a time: `array[rows]` for a slice of its first axis.

    A part is a view of the file for as long as somebody holds it. What is written into it is in the file, unless the array was
    opened to be read.
    """

    def __init__(
        self, path: str | os.PathLike[str], dtype: Any, shape: tuple[int, ...], *, writable: bool = False, at: int = 0
    ):
        self.path, self.dtype, self.shape, self.at = os.fspath(path), np.dtype(dtype), shape, at
        self.mode: Any = (
            "r+" if writable else "c"
        )  # a private copy of what is written: kernels are compiled for writable memory

    @classmethod
    def create(cls, path: str | os.PathLike[str], dtype: Any, shape: tuple[int, ...]) -> "Mapped":
        """A new file of zeros. All of it is allocated now: a mapped file on a full disk would end the process."""
        array = cls(path, dtype, shape, writable=True)
        allocate(path, array.nbytes)
        return array

    @property
    def nbytes(self) -> int:
        size: int = math.prod(self.shape) * self.dtype.itemsize
        return size

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> np.ndarray:
        lo, hi, _ = rows.indices(len(self))
        shape = (max(hi - lo, 0), *self.shape[1:])
        if not math.prod(shape):
            return np.zeros(shape, dtype=self.dtype)
        at = self.at + lo * math.prod(self.shape[1:]) * self.dtype.itemsize
        return np.asarray(np.memmap(self.path, self.dtype, self.mode, at, shape))

    def __setitem__(self, rows: slice, values: Any) -> None:
        self[rows][...] = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self[:], dtype=dtype)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Some rows, in rising order, in memory."""
        found = np.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        for part, (lo, hi) in self.parts_with(rows):
            found[lo:hi] = self[part][rows[lo:hi] - part.start]
        return found

    def put(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Write some rows, in rising order."""
        for part, (lo, hi) in self.parts_with(rows):
            self[part][rows[lo:hi] - part.start] = values[lo:hi]

    def parts_with(self, rows: np.ndarray) -> Iterator[tuple[slice, tuple[int, int]]]:
        """(part of the array, which of these rows lie in it), part by part."""
        step = max(1, PART_BYTES // max(self.nbytes // max(len(self), 1), 1))
        for start in range(0, len(self), step):
            lo, hi = np.searchsorted(rows, (start, start + step))
            if lo < hi:
                yield slice(start, min(start + step, len(self))), (int(lo), int(hi))


PART_BYTES = 1 << 25  # of an array on disk that are mapped at a time, where a part is not given


def allocate(path: str | os.PathLike[str], size: int) -> None:
    """A file of zeros of this size, with its place on the disk; nothing is left of it if the disk is full."""
    try:
        with naming(path), open(path, "wb") as file:
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
    except OSError:
        if os.path.exists(path):
            os.unlink(path)
        raise


def copy_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """A copy that is on the disk when this returns; nothing is left of it after an error."""
    try:
        shutil.copyfile(source, target)
        with open(target, "rb") as file:
            os.fsync(file.fileno())
    except BaseException:
        if os.path.exists(target):
            os.unlink(target)
        raise
