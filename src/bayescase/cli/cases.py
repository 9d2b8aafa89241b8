"""Cases for a command: a file and what the options say about its columns."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .options import all_or_some, by_column, one_bins, one_number, one_type

if TYPE_CHECKING:
    from ..estimator import BayesianCaseModel
    from ..reading.batches import Source
    from ..reading.files import FileData


TABS = {"\\t": "\t", "tab": "\t"}


class FileOptions(NamedTuple):
    """How to read a file: the options of READING."""

    delimiter: str | None = None
    no_header: bool = False
    array: str | None = None


class ColumnOptions(NamedTuple):
    """How to read columns: options of MODELLING, and columns that are no features."""

    missing: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    top: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    max_count: int = 1
    bag: tuple[str, ...] = ()
    separator: str | None = None
    text: tuple[str, ...] = ()
    stop_words: str | None = None
    min_cases: tuple[str, ...] = ()
    label: str | None = None
    id_column: str | None = None


def part_of(options: dict[str, Any], kind: Any) -> Any:
    """A tuple of some of the options, which are then no more among them."""
    return kind(**{name: options.pop(name) for name in kind._fields if name in options})


def delimiter_of(how: FileOptions) -> str | None:
    delimiter = TABS.get(how.delimiter or "", how.delimiter)
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise click.BadParameter(f"it must be one character, not {delimiter!r}.", param_hint="--delimiter")
    return delimiter


def read_cases(path: str, how: FileOptions, missing: Sequence[Any] = ()) -> FileData:
    from ..reading.files import read_file

    marks = tuple(map(str, missing))
    return read_file(path, delimiter=delimiter_of(how), header=not how.no_header, missing_values=marks, array=how.array)


def read_new_cases(model: BayesianCaseModel, path: str, how: FileOptions) -> FileData:
    """New cases for a model, with its marks for missing cells."""
    return read_cases(path, how, model.encoder_.encoding_.markers)


def read_to_fit(path: str, options: dict[str, Any]) -> tuple[FileData, dict[str, Any]]:
    """(cases, parameters of the estimator): what is said about files and columns is taken out of the options."""
    how, columns = part_of(options, FileOptions), part_of(options, ColumnOptions)
    cases = read_cases(path, how, columns.missing)
    return cases, {"encoder": encoder_of(cases, columns) or None, **options}


def open_to_fit(path: str, options: dict[str, Any]) -> tuple[Source, dict[str, Any]]:
    """The same for a file or a folder that is read in parts; options are checked by its first cases."""
    from ..reading.batches import open_source
    from ..reading.files import FileData

    how, columns = part_of(options, FileOptions), part_of(options, ColumnOptions)
    for option, column in (("--label", columns.label), ("--id", columns.id_column)):
        if column is not None:
            raise click.UsageError(f"{option} needs the table in memory; with --out-of-core leave the column out with --drop.")
    check_parts(path, how)
    source = open_source(path, delimiter_of(how), not how.no_header)
    return source, {"encoder": encoder_of(FileData(source.sample(), {}), columns) or None, **options}


def open_new_cases(path: str, how: FileOptions) -> Source:
    """New cases that are read in parts."""
    from ..reading.batches import open_source

    check_parts(path, how)
    return open_source(path, delimiter_of(how), not how.no_header)


def check_parts(path: str, how: FileOptions) -> None:
    if path == "-" or how.array is not None:
        raise click.UsageError(f"--out-of-core cannot go with {'standard input' if path == '-' else '--array'}.")


def encoder_of(cases: FileData, columns: ColumnOptions) -> dict[str, Any]:
    """Parameters of a CaseEncoder; columns that are not there are named with their option."""
    every_type, types = by_column("--type", columns.types, one_type)
    top = all_or_some("--top", columns.top, one_number)
    bins = all_or_some("--bins", columns.bins, one_bins)
    for option, given in (("--type", types), ("--top", top), ("--bins", bins)):
        for column in given if isinstance(given, dict) else ():
            cases.position(column, option)
    bags = bags_of(cases, columns)
    if every_type is not None:  # for all columns of which nothing else is said
        said = {*types, *columns.bag, *columns.text}
        said |= {*(top if isinstance(top, dict) else ()), *(bins if isinstance(bins, dict) else ())}
        names = map(cases.table.name, range(len(cases.table.columns)))
        types |= {name: every_type for name in names if name not in said}
    no_features: list[tuple[str, str | None]] = [("--drop", name) for name in columns.drop]
    no_features += [("--label", columns.label), ("--id", columns.id_column)]
    for option, name in no_features:
        if option != "--drop" and name is not None and name in (*columns.text, *columns.bag):
            also = "--text" if name in columns.text else "--bag"
            raise ValueError(f"Column {name!r} is in {also} and in {option}: give it to one of them.")
        if name is not None and (option == "--drop" or name not in cases.beside):
            cases.position(name, option)
            types[name] = "drop"
    found: dict[str, Any] = {
        "feature_types": types or None,
        "top_values": top,
        "bins": bins,
        "missing_values": marks(columns.missing),
        "max_count": None if columns.max_count == 1 else columns.max_count,
        "bags": bags or None,
        "texts": list(columns.text) or None,
        "stop_words": stop_words_of(columns.stop_words),
        "min_cases": all_or_some("--min-cases", columns.min_cases, one_number),
    }
    return {name: value for name, value in found.items() if value is not None}


def bags_of(cases: FileData, columns: ColumnOptions) -> str | dict[str, str]:
    """The encoder's parameter `bags`; a separator that is not said is guessed."""
    from ..reading.bags import guess_separator
    from ..reading.tables import has_lists

    for column in columns.text:
        cases.position(column, "--text")
    separator = TABS.get(columns.separator or "", columns.separator)
    if separator is not None and not (columns.bag and separator):
        raise click.BadParameter("it needs --bag, and must not be empty.", param_hint="--separator")
    if "all" in columns.bag and "all" not in (cases.table.names or ()):
        if len(columns.bag) > 1 or separator is not None:
            raise click.BadParameter("all must stand alone: every column counts an item.", param_hint="--bag")
        return "all"
    bags = {}
    for column in columns.bag:
        cells = cases.table.columns[cases.position(column, "--bag")]
        bags[column] = separator if separator is not None else guess_separator(cells)
        if not bags[column] and not has_lists(cells):
            raise ValueError(f"Column {column!r} of --bag holds no lists; if columns count items, use --bag all.")
    return {column: between for column, between in bags.items() if between}


def stop_words_of(given: str | None) -> str | list[str] | None:
    """The words in a file, one in each line, unless it is the list that scikit-learn has."""
    if given in (None, "english"):
        return given
    with open(str(given), encoding="utf-8") as file:
        return [word for word in map(str.strip, file) if word]


def marks(missing: Sequence[str]) -> list[str | int | float] | None:
    """A mark that spells a number means the number, too."""
    found: list[str | int | float] = list(missing)
    for mark in missing:
        try:
            found.append(int(mark) if mark.lstrip("+-").isdecimal() else float(mark))
        except ValueError:
            continue
    return [mark for mark in found if mark == mark] or None


def row_of(text: str, n: int, names: Sequence[str] | None = None) -> int:
    """The case that is called so, "frog" or "frog (case 3)"; else the one with that number, 83 or "case 83"."""
    found = [i for i, name in enumerate(names or ()) if name == text or (text.endswith(")") and f"{name} (case {i})" == text)]
    if len(found) > 1:
        raise ValueError(f"{len(found)} cases are called {text!r}: give one of the numbers {', '.join(map(str, found[:8]))}.")
    number = text.removeprefix("case ").strip()
    if not found and (not number.isdecimal() or int(number) >= n):
        near = difflib.get_close_matches(text.lower(), {name.lower(): name for name in names or ()}, n=1)
        also = " and the names of --id" if names else ""
        meant = next(f"; did you mean {name!r}?" for name in names or () if name.lower() == near[0]) if near else "."
        raise ValueError(f"There is no case {text!r}: there are {n}, with numbers from 0 to {n - 1}{also}{meant}")
    return found[0] if found else int(number)
