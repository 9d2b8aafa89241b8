"""What a study is: conditions, explanations, items, questions, texts and rules."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from ...errors import ParameterError
from ...explaining.records import plain

SETS = ascii_uppercase  # item sets, one per condition that a person meets
PRACTICE = "practice"
TASKS = ("classify", "predict", "rate")
LAYOUTS = ("within", "between")
MODES = ("crossed", "paper")
ORDERS = ("random", "alphabetical", "given")
POLICIES = ("resume", "resume within", "restart block", "refuse")
ADMISSIONS = ("open", "id", "invited")
PLACEHOLDER = "[FILL IN"  # begins what only the researcher knows


@dataclass(frozen=True)
class Line:
    """A feature as a person sees it: an ingredient (no value), or a feature and its value."""

    name: str
    value: str | None = None
    marked: bool = False  # boxed: it belongs to the subspace; only in the condition that shows it
    weight: float | None = None  # of "bars": how much it speaks for (above zero) or against


@dataclass(frozen=True)
class Stimulus:
    """What is drawn. Which of the fields say it depends on the kind."""

    kind: str  # "set", "table", "image" (pixels), "bars" (weights of features), "grid", "text" or "picture" (a file)
    lines: tuple[Line, ...] = ()  # of a set, a table, bars
    shape: tuple[int, int] | None = None  # of an image: height, width
    ink: tuple[float | None, ...] = ()  # of an image: 0 to 1 per pixel, row by row; None: nothing is said of this pixel
    marked: tuple[int, ...] = ()  # of an image: pixels of the subspace
    rows: tuple[tuple[str, ...], ...] = ()  # of a grid: the first one is its head
    text: str = ""  # Markdown; of a picture: what it shows, for people who cannot see it
    file: str = ""  # of a picture: its name in the folder media


@dataclass(frozen=True)
class Condition:
    """A way to explain."""

    id: str
    label: str  # in reports
    about: str  # in reports and in the debriefing: "by a typical member of the group"


@dataclass(frozen=True)
class Group:
    """What can be chosen: a cluster, or a class of a model."""

    id: int
    label: str  # shown where the task is to predict; else only in data and reports


@dataclass(frozen=True)
class ShownExplanation:
    """How a condition explains a group, or the answer of a model to one item."""

    condition: str
    group: int | None
    item: str | None
    source: str  # where it comes from: the prototype's name, the topic, the file
    stimulus: Stimulus


@dataclass(frozen=True)
class Item:
    """A question: a case, and the groups that it could belong to."""

    id: str
    item_set: str  # "A", "B", …; "practice"
    case: int | None  # row of the model's table
    name: str  # never shown to participants
    stimulus: Stimulus
    correct: int | None  # group; None where nothing is right or wrong
    options: tuple[int, ...]  # groups, the correct one among them
    flags: tuple[str, ...]  # why a researcher should look at it


@dataclass(frozen=True)
class Check:
    """An attention check flags a participant; a comprehension check must be passed. Neither is an item."""

    id: str
    text: str
    options: tuple[str, ...]
    correct: int
    after: int  # asked after so many questions; 0: a comprehension check, after the instructions


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
class Admission:
    """Who may take part in the live phase. Ids come with the address, as a recruiting platform sends people."""

    who: str  # "open"; "id": whoever brings an id; "invited": whose id, or code, is on the list of `study invite`
    id_parameter: str  # of the address: PROLIFIC_PID
    id_pattern: str  # a regular expression that an id must match as a whole
    other_parameters: tuple[str, ...]  # kept as hashes with the consent
    quota: int | None  # complete people, after which nobody is admitted; None: no end
    per_minute: int  # new people at most


@dataclass(frozen=True)
class Rules:
    break_every: int  # questions
    break_seconds: int
    resume: str  # one of POLICIES
    resume_minutes: int  # for "resume within"
    timeout_minutes: int  # without a request: the slot is given to the next person
    unique_people: bool  # one id takes part once
    comprehension_tries: int  # wrong answers to comprehension checks, after which the study ends for a person
    keep_days: int | None  # after the consent: then receipts and hashes of ids are deleted; None: kept
    admission: Admission
    complete: Ending
    no_consent: Ending
    timed_out: Ending
    screened_out: Ending


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
class AnalysisPlan:
    """What is concluded from which outcome, decided before there are data."""

    hypotheses: tuple[str, ...]
    primary: str  # the outcome: "accuracy", "time" or the id of a rating
    sample_size: int | None  # complete people
    stopping: str
    leave_out: tuple[str, ...]  # "attention": who failed an attention check
    equal_within: float  # a difference in shares of right answers, or in ratings per step of their scale, too small to matter
    equal_ratio: float  # a ratio of times, too near 1 to matter: 1.1 is from 1/1.1 to 1.1


@dataclass(frozen=True)
class Design:
    title: str
    language: str
    seed: int
    task: str  # one of TASKS
    layout: str  # "within": everybody meets every condition, one per block; "between": one condition per person
    mode: str  # within: "crossed": item sets change conditions from person to person; "paper": they do not
    order: str  # of the lines on every card: one of ORDERS
    conditions: tuple[Condition, ...]
    groups: tuple[Group, ...]
    explanations: tuple[ShownExplanation, ...]
    items: tuple[Item, ...]
    checks: tuple[Check, ...]
    item_ratings: tuple[Likert, ...]  # asked with every question
    block_ratings: tuple[Likert, ...]  # asked after every block, of its explanations
    questionnaire: tuple[Likert, ...]  # asked at the end, of the study as a whole
    demographics: tuple[Field, ...]
    texts: Texts
    plan: AnalysisPlan
    rules: Rules
    made: dict[str, Any]  # how it was made: a text per key; nothing here is shown

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the design as JSON with sorted keys."""
        return hashlib.sha256(canonical(self).encode()).hexdigest()

    @cached_property
    def labels(self) -> dict[str, str]:
        """What a condition is called in reports."""
        return {condition.id: condition.label for condition in self.conditions}

    @property
    def blocks(self) -> int:
        return len(self.conditions) if self.layout == "within" else 1

    @property
    def sets(self) -> tuple[str, ...]:
        """The item sets; between people there is one, which everybody gets."""
        return tuple(SETS[: self.blocks])

    @property
    def questions(self) -> int:
        """That a person answers."""
        return sum(len(self.of_set(name)) for name in self.sets)

    @cached_property
    def explains_items(self) -> bool:
        """Has each item an explanation of its own?"""
        return any(shown.item is not None for shown in self.explanations)

    @cached_property
    def _items(self) -> dict[str, Item]:
        return {item.id: item for item in self.items}

    @cached_property
    def _shown(self) -> dict[tuple[str, int | str | None], ShownExplanation]:
        return {(shown.condition, shown.group if shown.item is None else shown.item): shown for shown in self.explanations}

    def item(self, id: str) -> Item:
        return self._items[id]

    def of_set(self, item_set: str) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.item_set == item_set)

    def explanation(self, condition: str, of: int | str) -> ShownExplanation:
        """Of a group, or of an item by its id."""
        return self._shown[condition, of]

    def group(self, id: int) -> Group:
        return next(group for group in self.groups if group.id == id)

    def explanation_behind(self, item: Item) -> str:
        """Which explanation an answer to this item depends on: its own, or that of the right group."""
        return item.id if self.explains_items or item.correct is None else self.group(item.correct).label


class DesignError(ValueError):
    """The design cannot be used, in one sentence."""


class WishError(ParameterError, DesignError):
    """A study cannot be made as it was wished for; names the wish, as the errors of the package do."""


def canonical(design: Design) -> str:
    return json.dumps(plain(design), sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
