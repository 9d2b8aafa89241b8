"""The options that several commands share, and what their values mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

TYPES = ("category", "ordered", "integer", "number", "count")  # those of reading.rules, which takes long to import, but bags
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")


class NumberOr(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A number, or one word."""

    def __init__(self, word: str, number: type[int] | type[float] = float):
        self.word, self.number, self.name = word, number, f"{'number' if number is float else 'integer'}|{word}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == self.word or isinstance(value, (int, float)):
            return value
        try:
            return self.number(value)
        except ValueError:
            self.fail(f"{value!r} is neither a {'whole ' * (self.number is int)}number nor {self.word!r}.", param, ctx)


# --- values for single columns --------------------------------------------------------------------------------------------


def by_column(option: str, pairs: tuple[str, ...], convert: Callable[[str], T]) -> tuple[T | None, dict[str, T]]:
    """(the value for all columns, {column: value}) from VALUE and COLUMN=VALUE."""
    every: list[T] = []
    some: dict[str, T] = {}
    for text in pairs:
        column, equals, value = text.rpartition("=")
        try:
            found = convert(value)
        except ValueError as error:
            raise click.BadParameter(str(error) or f"cannot read {text!r}.", param_hint=option) from None
        if equals:
            some[column] = found
        else:
            every.append(found)
    if len(every) > 1:
        raise click.BadParameter("there can be only one value for all columns.", param_hint=option)
    return (every[0] if every else None), some


def all_or_some(option: str, pairs: tuple[str, ...], convert: Callable[[str], T]) -> T | dict[str, T] | None:
    """The same for what cannot have both."""
    every, some = by_column(option, pairs, convert)
    if every is not None and some:
        raise click.BadParameter("a value for all columns must stand alone.", param_hint=option)
    return some or every


def one_type(text: str) -> str:
    if text not in TYPES:
        raise ValueError(f"{text!r} is not one of {', '.join(TYPES)}.")
    return text


def one_number(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number.")
    return int(text)


def one_bins(text: str) -> int | tuple[str, int] | list[float]:
    """5, uniform:5, quantile:5, or edges such as 18,65 (a single edge is written 18,)."""
    way, _, n = text.partition(":")
    try:
        if n:
            return way, one_number(n)
        if "," in text:
            return [float(edge) for edge in text.split(",") if edge.strip()]
        return one_number(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number of intervals, 5 or uniform:5, nor edges, 18,65.") from None


# --- options --------------------------------------------------------------------------------------------------------------


def check_jobs(context: click.Context, option: click.Parameter, jobs: int) -> int:
    if jobs == 0:
        raise click.BadParameter("0 threads cannot do anything.")
    return jobs


def options(*all_of_them: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator."""

    def decorate(function: F) -> F:
        for option in reversed(all_of_them):
            function = option(function)
        return function

    return decorate


def learnable(name: str, default: float | None, words: str) -> Callable[[F], F]:
    """default: None if it depends on the table."""
    shown = default is not None
    return click.option(name, type=NumberOr("learn"), metavar="NUMBER|learn", default=default, show_default=shown, help=words)


SEED = click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True, help="Seed of the run.")
JOBS = click.option("--jobs", default=-1, callback=check_jobs, show_default=True, help="Threads; -1 uses all processors.")
DEVICE = click.option(
    "--device", default="cpu", metavar="cpu|cuda|cuda:N|auto", show_default=True, help="Where cases are swept: a GPU is cuda."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
ID = click.option("--id", "id_column", metavar="COLUMN", help="Names of the cases; not a feature.")
FORCE = click.option("--force", is_flag=True, help="Replace the output file even if this command did not write it.")
IMAGE = click.option(
    "--image", nargs=2, type=int, metavar="HEIGHT WIDTH", help="The features are the pixels of an image, row by row."
)
READING = options(
    click.option("--delimiter", metavar="CHARACTER", help="What separates cells of a CSV file; guessed otherwise."),
    click.option("--no-header", is_flag=True, help="The first row of a CSV file is a case; columns are x0, x1, …"),
    click.option("--array", metavar="NAME", help="Which table of an NPZ file, if it has several."),
)
MODELLING = options(
    learnable("--alpha", 0.01, "How much cases mix clusters."),
    learnable("--lam", None, "Pseudo-count of every value; 1, with bags 0.5."),
    learnable("--c", None, "How strongly cases copy prototypes; 50, with bags 5."),
    learnable("--q", None, "Prior probability that a feature matters; 0.8, with bags 0.5."),
    click.option(
        "--base",
        type=click.Choice(["uniform", "frequency"]),
        help="Values that nobody copies are all as likely, or as frequent as in all cases, as they are with bags.",
    ),
    click.option(
        "--sampler",
        type=click.Choice(["rows", "collapsed"]),
        default="rows",
        show_default=True,
        help="Fast, or the paper's; the same posterior.",
    ),
    click.option(
        "--moves",
        type=click.Choice(["auto", "none", "cases", "clusters", "jumps"]),
        default="auto",
        show_default=True,
        help="What is moved between sweeps. Jumps: to and fro between ways to tell the data, in small tables. Auto: those, in "
        "larger tables cases. Clusters: slower, seldom better.",
    ),
    click.option("--missing", multiple=True, metavar="MARK", help="A value such as ? that means missing; repeatable."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."),
    click.option(
        "--type",
        "types",
        multiple=True,
        metavar="[COLUMN=]TYPE",
        help=f"How to read a column, or all others: {', '.join(TYPES)}; repeatable.",
    ),
    click.option(
        "--top", multiple=True, metavar="[COLUMN=]K", help="Keep the K most frequent values, the rest is 'other'; repeatable."
    ),
    click.option(
        "--bins",
        multiple=True,
        metavar="[COLUMN=]BINS",
        help="Cut numbers, of a column or all, into 5 (at quantiles), uniform:5, or at edges 18,65; repeatable.",
    ),
    click.option(
        "--max-count",
        default=1,
        type=click.IntRange(1),
        show_default=True,
        help="Largest count told apart in columns of type count; above 1, those of a sparse matrix.",
    ),
    click.option(
        "--bag",
        multiple=True,
        metavar="COLUMN|all",
        help="A column of lists such as onion;garlic; or all: every column counts an item, with 0 and 1 or more; repeatable.",
    ),
    click.option("--separator", metavar="TEXT", help="What separates the items of --bag; guessed among ; | and , otherwise."),
    click.option("--text", multiple=True, metavar="COLUMN", help="A column of texts, read as bags of words; repeatable."),
    click.option("--stop-words", metavar="english|FILE", help="Words of texts to leave out; a file has one in each line."),
    click.option(
        "--min-cases",
        multiple=True,
        metavar="[BAG=]N",
        help="Leave out items in fewer cases, of one bag or all; repeatable.",
    ),
)
