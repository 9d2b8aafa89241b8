"""One file format for models and checkpoints: a zip of NumPy arrays and one JSON header. No pickle, so reading runs no code."""

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

VERSION = 1
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
    if header.get("kind") != kind:
        raise FileFormatError(f"{path!r} holds a {header.get('kind')}, not a {kind}.")
    return header
