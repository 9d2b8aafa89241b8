"""What a study is: items, explanations, questions, texts and rules. One readable file, hashed and frozen before any answer.

A folder holds `design.json` and, once frozen, `frozen.json` with its hash.
"""

import hashlib
import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ..explaining.records import build, plain
from ..storage import replacing

FORMAT, VERSION = "bayescase study", 1
DESIGN, FROZEN = "design.json", "frozen.json"
WIDE = 120
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


def write_design(design: Design, folder: Path) -> None:
    """Make or replace the design of a folder, unless it is frozen."""
    folder = Path(folder)
    if (folder / FROZEN).exists():
        raise DesignError(f"The design in {folder} is frozen; make a new study in another folder.")
    check(design)
    folder.mkdir(parents=True, exist_ok=True)
    words = readable({"format": FORMAT, "version": VERSION} | plain(design))
    with replacing(folder / DESIGN) as file:
        file.write((words + "\n").encode())


def readable(value, margin="") -> str:
    """JSON in lines as long as a person reads; the numbers of an image stay in one."""
    line = json.dumps(value, ensure_ascii=False, allow_nan=False)
    numbers = isinstance(value, list) and all(part is None or isinstance(part, (int, float)) for part in value)
    if not isinstance(value, (dict, list)) or numbers or len(margin) + len(line) <= WIDE:
        return line
    inner, named = margin + "  ", isinstance(value, dict)
    parts = [
        inner + (f"{json.dumps(key, ensure_ascii=False)}: {readable(value[key], inner)}" if named else readable(key, inner))
        for key in value
    ]
    return "\n".join([line[0], ",\n".join(parts), margin + line[-1]])


def read_design(folder: Path) -> Design:
    """The design of a folder, checked; if it is frozen, it is the one that was frozen."""
    path = Path(folder) / DESIGN
    if not path.exists():
        raise DesignError(f"There is no {DESIGN} in {folder}; make one with: bayescase study new MODEL -o {folder}")
    try:
        value = json.loads(path.read_text("utf-8-sig"), parse_constant=not_a_number)
        if not isinstance(value, dict):
            raise DesignError(f"{path} is not a design: it must be what `bayescase study new` writes.")
        if value["format"] != FORMAT or value["version"] != VERSION:
            raise DesignError(f"{path} is not a study of this version of bayescase.")
        design = build(Design, value)
        for name in strangers(value, {"format": FORMAT, "version": VERSION} | plain(design)):
            raise DesignError(f"{path} has an entry {name!r} that a study does not have; is it misspelt?")
    except DesignError:
        raise
    except UnicodeDecodeError:
        raise DesignError(f"{path} is not a text file in UTF-8.") from None
    except KeyError as error:
        raise DesignError(f"{path} is not a whole design: the entry {error} is not there.") from error
    except (ValueError, TypeError) as error:
        raise DesignError(f"{path} is not a whole design ({error}).") from error
    check(design)
    frozen = frozen_hash(folder)
    if frozen is not None and frozen != design.hash:
        raise DesignError(f"{path} was changed after it was frozen: undo the change, or make a new study in another folder.")
    return design


def not_a_number(word):
    raise ValueError(f"{word} is not a number")


def strangers(value, known):
    """Keys of the file that no field has taken; without this, a misspelt one would silently do nothing."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in known:
                yield key
            else:
                yield from strangers(part, known[key])
    elif isinstance(value, list):
        for part, other in zip(value, known, strict=True):
            yield from strangers(part, other)


def frozen_hash(folder: Path) -> str | None:
    path = Path(folder) / FROZEN
    if not path.exists():
        return None
    try:
        return str(json.loads(path.read_text("utf-8"))["hash"])
    except (ValueError, KeyError, TypeError) as error:
        raise DesignError(f"{path} is damaged ({error}).") from error


def freeze(folder: Path) -> str:
    """From now on the design cannot be edited. Freezing twice changes nothing."""
    design = read_design(folder)
    if frozen_hash(folder) is None:
        words = json.dumps({"hash": design.hash, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        with replacing(Path(folder) / FROZEN) as file:
            file.write((words + "\n").encode())
    return design.hash


def unfinished(design: Design) -> tuple[str, ...]:
    """Names of the texts in which something is still to be filled in."""
    return tuple(name for name, text in plain(design.texts).items() if PLACEHOLDER in text)


# --- checks ---------------------------------------------------------------------------------------------------------------


def check(design: Design) -> None:
    """What a server or an analysis would stumble over later is said now."""
    for wrong in problems(design):
        raise DesignError(wrong)


def problems(design):
    """Everything that is wrong, one sentence each."""
    k = len(design.conditions)
    if not 2 <= k <= len(CONDITIONS) or len(set(design.conditions)) < k or not set(design.conditions) <= set(CONDITIONS):
        yield f"The conditions must be two or three of {', '.join(CONDITIONS)}, not {', '.join(design.conditions)}."
        return
    for name, text in (("title", design.title), ("consent text", design.texts.consent), ("question", design.texts.question)):
        if not text.strip():
            yield f"The {name} must not be empty."
    if design.mode not in ("crossed", "paper"):
        yield f"The mode must be 'crossed' or 'paper', not {design.mode!r}."
    ids = [part.id for part in (*design.items, *design.checks, *design.questionnaire, *design.demographics)]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"The id {name!r} is used twice."
    for name in ids:
        if not name or not name.isascii() or not name.replace("_", "").replace("-", "").isalnum():
            yield f"The id {name!r} has other characters than letters, digits, - and _."
    shown = {(r.condition, r.cluster) for r in design.representations}
    if len(shown) < len(design.representations):
        yield "A cluster has two representations in the same condition."
    sizes = {name: len(design.of_set(name)) for name in SETS[:k]}
    if len(set(sizes.values())) > 1 or not min(sizes.values()):
        yield f"The item sets must have the same number of items, at least one: {sizes}."
    for item in design.items:
        if item.item_set not in (*SETS[:k], "practice"):
            yield f"Item {item.id} is of the set {item.item_set!r}, not of {', '.join(SETS[:k])} or practice."
        if item.correct not in item.options:
            yield f"The correct cluster {item.correct} of item {item.id} is not among its options."
        if len(set(item.options)) < max(2, len(item.options)):
            yield f"Item {item.id} needs two or more different options."
        for condition in design.conditions:
            for cluster in item.options:
                if (condition, cluster) not in shown:
                    yield f"Item {item.id} offers cluster {cluster}, which has no representation in condition {condition}."
    for stimulus in (part.stimulus for part in (*design.items, *design.representations)):
        if stimulus.kind not in ("set", "table", "image"):
            yield f"A stimulus is of the kind {stimulus.kind!r}; it must be set, table or image."
        if stimulus.kind == "image" and (stimulus.shape is None or stimulus.shape[0] * stimulus.shape[1] != len(stimulus.ink)):
            yield "An image has another number of pixels than its shape says."
        if any(ink is not None and not 0 <= ink <= 1 for ink in stimulus.ink):
            yield "The ink of a pixel must be from 0 to 1, or null."
        if not all(0 <= j < len(stimulus.ink) for j in stimulus.marked):
            yield "An image marks a pixel that it does not have."
    questions = sum(sizes.values())
    for question in design.checks:
        if not 0 <= question.correct < len(question.options):
            yield f"The attention check {question.id} has no option {question.correct}."
        if not 1 <= question.after <= questions:
            yield f"The attention check {question.id} comes after question {question.after}; there are {questions}."
    for question in design.questionnaire:
        if len(question.labels) < 2:
            yield f"The question {question.id} needs two or more labels."
    for field in design.demographics:
        if field.kind not in ("choice", "number", "text") or (field.kind == "choice" and not field.options):
            yield f"The field {field.id} must be a choice with options, a number or a text."
    rules = design.rules
    if rules.resume not in POLICIES:
        yield f"The resume policy must be one of {', '.join(POLICIES)}, not {rules.resume!r}."
    for name in ("complete", "no_consent", "timed_out"):
        address = getattr(rules, name).address
        if address is not None and not address.startswith(("https://", "http://")):
            yield f"The address of rules.{name} must begin with https://, or be null, not {address!r}."
    if rules.break_every < 1 or rules.break_seconds < 0 or rules.timeout_minutes < 1 or rules.resume_minutes < 1:
        yield "Breaks must come after one or more questions; times must be positive."
