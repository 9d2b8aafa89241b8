"""Can a design be used? Everything that is wrong with it, one sentence each."""

from collections.abc import Iterator
from typing import Any

from .design import CONDITIONS, POLICIES, SETS, Design, DesignError, Stimulus


def check(design: Design) -> None:
    """What a server or an analysis would stumble over later is said now."""
    for wrong in problems(design):
        raise DesignError(wrong)


def problems(design: Design) -> Iterator[str]:
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
    yield from id_problems(design)
    yield from item_problems(design)
    for stimulus in [item.stimulus for item in design.items] + [r.stimulus for r in design.representations]:
        yield from stimulus_problems(stimulus)
    yield from question_problems(design)
    yield from rule_problems(design)


def id_problems(design: Design) -> Iterator[str]:
    parts: tuple[Any, ...] = (*design.items, *design.checks, *design.questionnaire, *design.demographics)
    ids = [part.id for part in parts]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"The id {name!r} is used twice."
    for name in ids:
        if not name or not name.isascii() or not name.replace("_", "").replace("-", "").isalnum():
            yield f"The id {name!r} has other characters than letters, digits, - and _."


def item_problems(design: Design) -> Iterator[str]:
    sets = SETS[: len(design.conditions)]
    shown = {(r.condition, r.cluster) for r in design.representations}
    if len(shown) < len(design.representations):
        yield "A cluster has two representations in the same condition."
    sizes = {name: len(design.of_set(name)) for name in sets}
    if len(set(sizes.values())) > 1 or not min(sizes.values()):
        yield f"The item sets must have the same number of items, at least one: {sizes}."
    for item in design.items:
        if item.item_set not in (*sets, "practice"):
            yield f"Item {item.id} is of the set {item.item_set!r}, not of {', '.join(sets)} or practice."
        if item.correct not in item.options:
            yield f"The correct cluster {item.correct} of item {item.id} is not among its options."
        if len(set(item.options)) < max(2, len(item.options)):
            yield f"Item {item.id} needs two or more different options."
        for condition in design.conditions:
            for cluster in item.options:
                if (condition, cluster) not in shown:
                    yield f"Item {item.id} offers cluster {cluster}, which has no representation in condition {condition}."


def stimulus_problems(stimulus: Stimulus) -> Iterator[str]:
    if stimulus.kind not in ("set", "table", "image"):
        yield f"A stimulus is of the kind {stimulus.kind!r}; it must be set, table or image."
    if stimulus.kind == "image" and (stimulus.shape is None or stimulus.shape[0] * stimulus.shape[1] != len(stimulus.ink)):
        yield "An image has another number of pixels than its shape says."
    if any(ink is not None and not 0 <= ink <= 1 for ink in stimulus.ink):
        yield "The ink of a pixel must be from 0 to 1, or null."
    if not all(0 <= j < len(stimulus.ink) for j in stimulus.marked):
        yield "An image marks a pixel that it does not have."


def question_problems(design: Design) -> Iterator[str]:
    questions = sum(len(design.of_set(name)) for name in SETS[: len(design.conditions)])
    for check in design.checks:
        if not 0 <= check.correct < len(check.options):
            yield f"The attention check {check.id} has no option {check.correct}."
        if not 1 <= check.after <= questions:
            yield f"The attention check {check.id} comes after question {check.after}; there are {questions}."
    for likert in design.questionnaire:
        if len(likert.labels) < 2:
            yield f"The question {likert.id} needs two or more labels."
    for field in design.demographics:
        if field.kind not in ("choice", "number", "text") or (field.kind == "choice" and not field.options):
            yield f"The field {field.id} must be a choice with options, a number or a text."


def rule_problems(design: Design) -> Iterator[str]:
    rules = design.rules
    if rules.resume not in POLICIES:
        yield f"The resume policy must be one of {', '.join(POLICIES)}, not {rules.resume!r}."
    for name in ("complete", "no_consent", "timed_out"):
        address = getattr(rules, name).address
        if address is not None and not address.startswith(("https://", "http://")):
            yield f"The address of rules.{name} must begin with https://, or be null, not {address!r}."
    if rules.break_every < 1 or rules.break_seconds < 0 or rules.timeout_minutes < 1 or rules.resume_minutes < 1:
        yield "Breaks must come after one or more questions; times must be positive."
