"""What the commands print and write: text for a pipe, tables for a terminal, JSON for programs, files that are whole."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

Recogniser = Callable[[str], bool]  # is the file at a path one that the command wrote?


# --- printing -----------------------------------------------------------------------------------------------------------


def say(plain: object, rich: Callable[[], Any] | None = None) -> None:
    """Text for a pipe; for a terminal what rich() makes of it, if it makes anything."""
    from rich.console import Console

    console = Console()
    if rich is None or not console.is_terminal:
        click.echo(plain)
    else:
        console.print(rich())


def say_json(value: Any) -> None:
    """One JSON document. Numbers that JSON has no word for are null."""
    click.echo(json.dumps(as_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def as_plain(value: Any) -> Any:
    """NumPy's numbers and arrays as lists and numbers; what is not finite as None."""
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], path: str = "") -> str:
    """CSV, or TSV or JSON lines by the name of the file."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".jsonl", ".ndjson"):
        return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if suffix in (".tsv", ".tab") else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return text.getvalue()


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """A spinner on stderr."""
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield


# --- writing ------------------------------------------------------------------------------------------------------------


def check_output(
    path: str | None, *sources: str, text: bool = False, ours: Recogniser | None = None, force: bool = False
) -> None:
    """What cannot or should not be written is said before the work, not after it.

    `sources` are files that are read, `text` allows stdout, and `ours` recognises what may be replaced: without `force` nothing
    else is.
    """
    if path is None or (text and path == "-"):
        return
    if path == "-":
        raise ValueError("The output is no text, so it cannot go to stdout; give the path of a file.")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the path of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path} is not an ordinary file, which could be replaced; give another path.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: no permission in the folder {folder}.")
    for source in sources:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise ValueError(f"{path} is what is read; write to another file.")
    if ours is not None and not force and os.path.exists(path) and os.path.getsize(path) and not ours(path):
        raise ValueError(f"{path} is there already, and this command did not write it; give another path, or use --force.")


def is_model(path: str) -> bool:
    """Is the file a model that `fit` saved, of any version?"""
    from ..storage import kind_of

    return kind_of(path) == "model"


def is_signed(path: str) -> bool:
    """Is it a page or a picture with our name in it?"""
    with open(path, "rb") as file:
        return b"bayescase" in file.read()


def has_columns(*columns: str) -> Recogniser:
    """Recognises a table of cases by its first columns."""

    def recognise(path: str) -> bool:
        with open(path, errors="replace") as file:
            line = file.readline(1 << 20)
        if not line.startswith("{"):
            return line.startswith(tuple(delimiter.join(columns) for delimiter in (",", "\t")))
        try:
            return tuple(json.loads(line))[: len(columns)] == columns
        except ValueError:
            return False

    return recognise


def write_text(path: str, text: str, n: int) -> None:
    """Write n cases as text to a file or to stdout."""
    from ..storage import naming, replacing

    if path == "-":
        click.echo(text, nl=False)
        return
    with naming(path), replacing(path) as file:
        file.write(text.encode())
    click.echo(f"{n} case{'s are' if n > 1 else ' is'} written to {path}.", err=True)
