"""Exported tables as a folder with a codebook and a manifest of hashes, and back. Whole, or not there."""

import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from ... import __version__
from ..design.design import Design, DesignError
from ..design.design_file import DESIGN, read_design, write_design
from .codebook import codebook, in_markdown
from .database import reading
from .export import ExportError, Rows, Tables, collect

FORMAT, VERSION = "bayescase study export", 1
DATA, MANIFEST = "data.json", "manifest.json"
RISKY = "=+\\-@＝＋－＠"  # at the beginning of a cell, a spreadsheet may run what follows
# A cell begins for us at the beginning of a text; for a spreadsheet with other separators also after each of them.
BEGINNING = r"(^|[,;|\t\r\n])([\s\"]*)"


def export(
    engine: Engine,
    design: Design,
    folder: str | os.PathLike,
    identified: bool = False,
    more: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Write the folder, which must be empty or new, and return its manifest; `more`: further files, by name."""
    folder = Path(folder)
    check_empty(folder)
    with reading(engine) as connection:
        tables = collect(connection, design, identified)
    return write(tables, design, folder, identified, more or {})


def check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ExportError(f"{folder} is there and not empty; an export goes into a new folder.")
    if not folder.absolute().parent.is_dir():
        raise ExportError(f"There is no folder {folder.absolute().parent} to put {folder.name} in.")


def write(tables: Tables, design: Design, folder: Path, identified: bool, more: dict[str, str]) -> dict[str, Any]:
    book = codebook(design, identified)
    named = {"answers": tables.answers, "people": tables.people, "events": tables.events, "responses": tables.responses}
    files = {f"{name}.csv": as_csv(rows, [column["name"] for column in book[f"{name}.csv"]]) for name, rows in named.items()}
    files[DATA] = as_json({"format": FORMAT, "version": VERSION, "identified": identified} | named)
    files["codebook.json"] = as_json(book)
    files["codebook.md"] = in_markdown(book, design, identified).encode()
    files |= {name: text.encode() for name, text in more.items()}
    with making(folder) as temporary:
        write_design(design, temporary)
        for name, content in files.items():
            with open(temporary / name, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        counts = {f"{name}.csv": len(rows) for name, rows in named.items()}
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "bayescase": __version__,
            "design_hash": design.hash,
            "identified": identified,
            "committed_answers": len(tables.answers),
            "files": {
                path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
                | ({"rows": counts[path.name]} if path.name in counts else {})
                for path in sorted(temporary.iterdir())
            },
        }
        (temporary / MANIFEST).write_bytes(as_json(manifest))
    return manifest


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """A folder that appears under its name once it is whole."""
    temporary = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name}."))
    try:
        yield temporary
        os.chmod(temporary, 0o700)
        os.rename(temporary, folder)  # onto an empty folder or nothing; anything else is an error
    except OSError as error:
        raise ExportError(f"{folder} could not be written ({error.strerror or error}).") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def as_json(value) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(rows: Rows, columns: list[str]) -> bytes:
    """UTF-8, commas, CRLF, every cell in quotes, as RFC 4180 has it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    writer.writerow(columns)
    writer.writerows([cell(row.get(column)) for column in columns] for row in rows)
    return out.getvalue().encode()


def cell(value) -> str:
    """Numbers as they are; what a spreadsheet might run gets an apostrophe in front, as does what has one there."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    return re.sub(f"{BEGINNING}(?=[{RISKY}'])", r"\1\2'", str(value))


def uncell(text: str) -> str:
    """The text of a cell as it was given."""
    return re.sub(f"{BEGINNING}'(?=[{RISKY}'])", r"\1\2", text)


# --- back -----------------------------------------------------------------------------------------------------------------


def read_export(folder: str | os.PathLike) -> tuple[Design, Tables]:
    """The design and the tables of an exported folder, if every file is as it was written."""
    folder = Path(folder)
    for wrong in export_problems(folder):
        raise ExportError(wrong)
    value = json.loads((folder / DATA).read_text("utf-8"))
    return read_design(folder), Tables(*(value[name] for name in ("answers", "people", "events", "responses")))


def export_problems(folder: Path) -> Iterator[str]:
    """How an exported folder differs from its manifest, one sentence each."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] != FORMAT or manifest["version"] != VERSION:
            raise ValueError("it is of another kind or version")
        files = {name: of["sha256"] for name, of in manifest["files"].items()}
    except FileNotFoundError:
        yield f"{folder} is not an export: there is no {MANIFEST} in it."
        return
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"{folder / MANIFEST} cannot be read ({error})."
        return
    for name, sha in files.items():
        path = folder / name
        if not path.is_file():
            yield f"{name} is missing from {folder}."
        elif hashlib.sha256(path.read_bytes()).hexdigest() != sha:
            yield f"{name} in {folder} was changed after the export."
    for name in (DATA, DESIGN):
        if name not in files:
            yield f"The manifest of {folder} does not name {name}."
    try:
        if (folder / DESIGN).is_file() and read_design(folder).hash != manifest.get("design_hash"):
            yield f"{DESIGN} in {folder} is not the design that the manifest names."
    except DesignError as error:
        yield str(error)
