"""Errors and warnings that a user can cause. They carry structure, so that each front end says them in its own words.

A message is a sentence with slots, and perhaps advice: ways out, each with the settings that take it.

    raise TableError(
        "Column {column!r} has as many values as cases ({n}).",
        Advice("leave it out with {}", Setting("feature_types", "drop", column=name)),
        Advice("insist with {}", Setting("feature_types", "category", column=name)),
        column=name,
        n=n,
    )

`str(error)` speaks Python: "Column 'id' has as many values as cases (9); leave it out with feature_types={'id': 'drop'}, or
insist with feature_types={'id': 'category'}." The command line renders the same error by `error.render(as_option)`, and says
`--drop id` and `--type id=category`. Advice with a setting that a front end does not have is left out there. Nobody parses a
message.

The slots `parameter`, `value`, `column` and `row` are attributes of the error, too. A parameter is a Setting, or its name:

    raise ParameterError("{parameter} must be a whole number, not {value!r}.", parameter="n_iter", value=n_iter)

Warnings work in the same way, `warnings.warn(TableWarning("…", column=name), stacklevel=2)`, and so does advice alone:

    advice = (Advice("run longer with {}", Setting("n_iter", 2000)), Advice("try another {}", Setting("n_clusters")))
    advise(advice)             # "Run longer with n_iter=2000, or try another n_clusters."
    advise(advice, as_option)  # "Run longer with --iterations 2000, or try another -k."
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

LONGEST = 60  # characters of a value that is quoted in a sentence


class Unset(Enum):
    """No value, where None is one."""

    UNSET = "unset"


UNSET: Any = Unset.UNSET
Words = Callable[["Setting"], str | None]  # a setting in the words of a front end; None if it has no such setting


@dataclass(frozen=True)
class Setting:
    """A parameter, or a parameter set to a value; of one column, if it has a value for each."""

    parameter: str
    value: Any = UNSET
    column: str | int | None = None
    of: str | None = None  # the parameter that this one is a part of, such as "encoder"; "" if it is a part of none

    def within(self, part: str) -> Setting:
        """The same setting as a part of the parameter `part`."""
        return replace(self, of=part) if self.of is None else self


@dataclass(frozen=True)
class ColumnOf:
    """A column of the user's table, as a value: X['id']."""

    name: str

    def __repr__(self) -> str:
        return f"X[{self.name!r}]"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, init=False)
class Advice:
    """One way out: words with a {} for each setting."""

    words: str
    settings: tuple[Setting, ...]

    def __init__(self, words: str, *settings: Setting):
        object.__setattr__(self, "words", words)
        object.__setattr__(self, "settings", settings)

    def render(self, words: Words) -> str | None:
        """None if one of the settings has no words."""
        said = [words(setting) for setting in self.settings]
        return None if None in said else self.words.format(*said)

    def within(self, part: str) -> Advice:
        return Advice(self.words, *(setting.within(part) for setting in self.settings))


def in_python(setting: Setting) -> str:
    """`n_iter`, `bins['age']`, `n_clusters=5`, `feature_types={'id': 'drop'}`, `encoder={'feature_types': {'id': 'drop'}}`."""
    if setting.value is UNSET:
        return setting.parameter + ("" if setting.column is None else f"[{setting.column!r}]")
    value = setting.value if setting.column is None else {setting.column: setting.value}
    return f"{setting.of}={ {setting.parameter: value}!r}" if setting.of else f"{setting.parameter}={value!r}"


class Message:
    """A sentence with slots, and advice.

    Parameters
    ----------
    template : str
        The sentence, with a slot such as {column!r} for each thing that it names.
    *advice : Advice
        Ways out.
    **slots : object
        What fills the slots.
    """

    def __init__(self, template: str, /, *advice: Advice, **slots: Any):
        if isinstance(slots.get("parameter"), str):
            slots["parameter"] = Setting(slots["parameter"])
        self.template, self.advice, self.slots = template, advice, slots

    def render(self, words: Words = in_python) -> str:
        """One line in the words of a front end.

        Parameters
        ----------
        words : callable, default=in_python
            Gives a setting in the words of the front end, or None if it has no such setting.

        Returns
        -------
        str
            The sentence and the advice.
        """
        said = {
            name: (words(slot) or in_python(slot)) if isinstance(slot, Setting) else slot for name, slot in self.slots.items()
        }
        problem = SENTENCE.vformat(self.template, (), said)
        ways = one_of(self.advice, words)
        return f"{problem.removesuffix('.')}; {ways}." if ways else problem

    def within(self, part: str) -> Self:
        """The same message about a parameter `part` that these settings belong to.

        Parameters
        ----------
        part : str
            The parameter, such as "encoder".

        Returns
        -------
        BayescaseError or BayescaseWarning
            A new message of the same class.
        """
        slots = {name: slot.within(part) if isinstance(slot, Setting) else slot for name, slot in self.slots.items()}
        return type(self)(self.template, *(way.within(part) for way in self.advice), **slots)

    def __str__(self) -> str:
        return self.render()

    @property
    def parameter(self) -> str | None:
        """The name of the parameter that is wrong."""
        setting = self.slots.get("parameter")
        return setting.parameter if isinstance(setting, Setting) else None

    @property
    def value(self) -> Any:
        """What was found in its place."""
        return self.slots.get("value")

    @property
    def column(self) -> str | int | None:
        """The column of the table that it is about."""
        return self.slots.get("column")

    @property
    def row(self) -> int | None:
        """The case that it is about, counted from 0."""
        return self.slots.get("row")


class BayescaseError(Message, ValueError):
    """What a user can cause: a ParameterError or a TableError."""


class ParameterError(BayescaseError):
    """A parameter has a value that it cannot have, or that does not fit the data or another parameter."""


class TableError(BayescaseError):
    """A table, or the file that it comes from, cannot be read as it is."""


class ParameterTypeError(ParameterError, TypeError):
    """A parameter is of the wrong type."""


class TableTypeError(TableError, TypeError):
    """A table, or a cell of it, is of a type that cannot be read."""


class BayescaseWarning(Message, UserWarning):
    """Something that a user may want to know or to change."""


class TableWarning(BayescaseWarning):
    """A table was read in a way that may not be the one meant."""


def one_of(advice: Iterable[Advice], words: Words = in_python) -> str:
    """Ways out in a sentence: "this, that, or the other"; those that a front end has no words for are left out."""
    *before, last = [said for way in advice if (said := way.render(words)) is not None] or [""]
    return ", ".join([*before, f"or {last}"]) if before else last


def advise(advice: Iterable[Advice], words: Words = in_python) -> str:
    """Ways out as a sentence of its own; "" if there are none."""
    ways = one_of(advice, words)
    return f"{ways[0].upper()}{ways[1:]}." if ways else ""


def brief(value: Any) -> str:
    """A value as it is quoted in a sentence: on one line, and cut if it is long."""
    text = repr(value)
    text = " ".join(text.split()) if "\n" in text else text
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


class _Sentence(string.Formatter):
    """`str.format`, but what is quoted by !r is brief."""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        return brief(value) if conversion == "r" else super().convert_field(value, conversion)


SENTENCE = _Sentence()
