"""What a study is: items, explanations, questions, texts and rules."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...explaining.records import plain

CONDITIONS = ("bcm", "lda", "subspace")
SETS = "ABC"
POLICIES = ("resume", "resume within", "restart block", "refuse")
PLACEHOLDER = "[FILL IN"  # begins what only the researcher knows


@dataclass(frozen=True)
class Line:
    """A feature as a person sees it: an ingredient (no value), or a feature and its value."""

    name: str
    value: str | None
    marked: bool  # boxed: it belongs to the subspace; only in the condition that shows it


@dataclass(frozen=True)
class Stimulus:
    """What is drawn: a list of ingredients, a table of values, or an image."""

    kind: str  # "set", "table" or "image"
    lines: tuple[Line, ...]  # empty for an image
    shape: tuple[int, int] | None  # of an image: height, width
    ink: tuple[float | None, ...]  # 0 to 1 per pixel, row by row; None: nothing is said of this pixel
    marked: tuple[int, ...]  # pixels of the subspace


@dataclass(frozen=True)
class Representation:
    """How a condition explains a cluster."""

    condition: str
    cluster: int
    source: str  # where it comes from: the prototype's name, or the topic
    stimulus: Stimulus


@dataclass(frozen=True)
class Item:
    """A question: a case, and the clusters that it could belong to."""

    id: str
    item_set: str  # "A", "B" or "C"; "practice"
    case: int  # row of the model's table
    name: str  # never shown to participants
    stimulus: Stimulus
    correct: int  # cluster
    options: tuple[int, ...]  # clusters, the correct one among them
    flags: tuple[str, ...]  # why a researcher should look at it


@dataclass(frozen=True)
class Check:
    """An attention check: it flags a participant, and never ends anything."""

    id: str
    text: str
    options: tuple[str, ...]
    correct: int
    after: int  # asked after so many questions


@dataclass(frozen=True)
class Likert:
    id: str
    text: str
    labels: tuple[str, ...]  # from the least to the most


@dataclass(frozen=True)
class Field:
    """A question of the demographics page; every one may be left empty."""

    id: str
    label: str
    kind: str  # "choice", "number" or "text"
    options: tuple[str, ...]


@dataclass(frozen=True)
class Ending:
    """What a person gets at the end: a code, and where to go with it."""

    code: str
    address: str | None


@dataclass(frozen=True)
class Rules:
    break_every: int  # questions
    break_seconds: int
    resume: str  # one of POLICIES
    resume_minutes: int  # for "resume within"
    timeout_minutes: int  # without a request: the slot is given to the next person
    unique_people: bool  # one external id takes part once
    complete: Ending
    no_consent: Ending
    timed_out: Ending


@dataclass(frozen=True)
class Texts:
    """Plain text; an empty line begins a paragraph."""

    information: str
    consent: str
    instructions: str
    question: str
    debrief: str
    contact: str


@dataclass(frozen=True)
class Design:
    title: str
    language: str
    seed: int
    mode: str  # "crossed": item sets change conditions from person to person; "paper": they do not
    conditions: tuple[str, ...]
    representations: tuple[Representation, ...]
    items: tuple[Item, ...]
    checks: tuple[Check, ...]
    questionnaire: tuple[Likert, ...]
    demographics: tuple[Field, ...]
    texts: Texts
    rules: Rules
    made: dict[str, Any]  # how it was made: a text per key; nothing here is shown

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the design as JSON with sorted keys."""
        return hashlib.sha256(canonical(self).encode()).hexdigest()

    def item(self, id: str) -> Item:
        return next(item for item in self.items if item.id == id)

    def of_set(self, item_set: str) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.item_set == item_set)

    def representation(self, condition: str, cluster: int) -> Representation:
        return next(r for r in self.representations if (r.condition, r.cluster) == (condition, cluster))


class DesignError(ValueError):
    """The design cannot be used, in one sentence."""


def canonical(design: Design) -> str:
    return json.dumps(plain(design), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
