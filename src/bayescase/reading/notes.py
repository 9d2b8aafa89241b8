"""What a person should know of columns: those that cannot be used, words among numbers, values spelled in two ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..errors import Advice, Setting, TableError, TableWarning
from .features import Feature, Learned, count_codes
from .tables import AnyColumn, SparseColumn, listed


class Refusals:
    """Columns that cannot be used as they are: all of them are named at once, when every column was looked at."""

    def __init__(self) -> None:
        self.found: dict[str, TableError] = {}

    def each(self, learn: Callable[..., Learned], name: str, *args: object) -> Learned:
        """What is learned of a column; of one that is refused, nothing."""
        try:
            return learn(name, *args)
        except TableError as error:
            self.found[name] = error
            return Learned(Feature(name, "category", ()))

    def say(self, names: Sequence[str]) -> None:
        """Raise if there are any; they are named in this order."""
        if self.found:
            raise together([self.found[name] for name in names if name in self.found])


def together(errors: Sequence[TableError]) -> TableError:
    """One error about several columns: which they are, how to leave all of them out, and what is wrong with the first."""
    first, names = errors[0], [error.column for error in errors]
    if len(errors) == 1 or any(type(error) is not TableError or error.column is None for error in errors):
        return first
    drop = Setting("feature_types", dict.fromkeys(names, "drop"))
    return TableError(
        "{columns} cannot be used as they are. " + first.template,
        Advice("leave all of them out with {}", drop),
        *(way for way in first.advice if Setting("feature_types", "drop", column=first.column) not in way.settings),
        **first.slots,
        columns=listed("Column", names),
    )


def notes_on(learned: Sequence[Learned], columns: Sequence[AnyColumn]) -> Iterator[TableWarning]:
    """What a person should know of features as they were read."""
    constant = [of.feature.name for of, column in zip(learned, columns, strict=True) if is_constant(of.feature, column)]
    if constant:
        yield TableWarning(
            "{features} {verb} one value only and cannot tell cases apart.",
            features=listed("Feature", constant),
            verb="has" if len(constant) == 1 else "have",
            column=constant[0],
        )
    cut = [of.feature for of in learned if of.doubtful]
    if cut:
        name, shown = cut[0].name, next((value for value in cut[0].values if " to " in str(value)), cut[0].values[0])
        yield TableWarning(
            "{columns} {verb} whole numbers that are cut into intervals, such as {column} = {value}.",
            Advice("if they are codes, say so with {}", Setting("feature_types", "category", column=name)),
            Advice("keep the intervals with {}", Setting("feature_types", "number", column=name)),
            columns=listed("Column", [feature.name for feature in cut]),
            verb="has" if len(cut) == 1 else "have",
            column=name,
            value=shown,
        )
    yield from notes_on_words(learned)


def is_constant(feature: Feature, column: AnyColumn) -> bool:
    if not isinstance(column, SparseColumn) or feature.type != "count":
        return len(feature.values) == 1
    some_absent = len(column.rows) < column.n_cases
    return len(set(count_codes(feature, column.values).tolist()) | ({0} if some_absent else set())) == 1


def notes_on_words(learned: Sequence[Learned]) -> Iterator[TableWarning]:
    """Numbers that were read as words because of one that is none, and words that may be one."""
    for of in learned:
        if of.stray is not None:
            yield TableWarning(
                "Column {column!r} is read as words: most of its values are numbers, but {value!r} is none.",
                Advice("if it means missing, say so with {}", Setting("missing_values", of.stray)),
                column=of.feature.name,
                value=of.stray,
            )
    alike = {of.feature.name: pair for of in learned if (pair := spelled_twice(of.feature))}
    if alike:
        name, (one, other) = next(iter(alike.items()))
        yield TableWarning(
            "{columns} {verb} values that differ in capital letters only, such as {one!r} and {other!r}: they count as two.",
            columns=listed("Column", list(alike)),
            verb="has" if len(alike) == 1 else "have",
            column=name,
            one=one,
            other=other,
        )


def spelled_twice(feature: Feature) -> tuple[str, str] | None:
    """Two words of a category that are the same but for capital letters."""
    seen: dict[str, str] = {}
    for value in feature.values if feature.type == "category" else ():
        if isinstance(value, str) and seen.setdefault(value.casefold(), value) != value:
            return seen[value.casefold()], value
    return None
