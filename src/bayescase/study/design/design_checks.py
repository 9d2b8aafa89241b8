"""Can a design be used? Everything that is wrong with it, one sentence each."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .design import ADMISSIONS, LAYOUTS, MODES, ORDERS, POLICIES, PRACTICE, SETS, TASKS, Design, DesignError, Stimulus

KINDS = ("set", "table", "image", "bars", "grid", "text", "picture")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")


def check(design: Design) -> None:
    """What a server or an analysis would stumble over later is said now."""
    for wrong in problems(design):
        raise DesignError(wrong)


def problems(design: Design) -> Iterator[str]:
    """Everything that is wrong, one sentence each."""
    if not 2 <= len(design.conditions) <= len(SETS):
        yield f"There must be two or more conditions, {len(SETS)} at most, not {len(design.conditions)}."
        return
    for name, text in (("title", design.title), ("consent text", design.texts.consent), ("question", design.texts.question)):
        if not text.strip():
            yield f"The {name} must not be empty."
    for name, known in (("task", TASKS), ("layout", LAYOUTS), ("mode", MODES), ("order", ORDERS)):
        if getattr(design, name) not in known:
            yield f"The {name} must be {or_(known)}, not {getattr(design, name)!r}."
            return
    if design.layout == "between" and design.mode == "paper":
        yield "The mode 'paper' is about people who meet every condition, and cannot be had between people."
    yield from id_problems(design)
    yield from explanation_problems(design)
    yield from item_problems(design)
    for stimulus in [item.stimulus for item in design.items] + [shown.stimulus for shown in design.explanations]:
        yield from stimulus_problems(stimulus)
    yield from question_problems(design)
    yield from rule_problems(design)
    yield from plan_problems(design)


def or_(words: tuple[str, ...]) -> str:
    return " or ".join(filter(None, [", ".join(map(repr, words[:-1])), repr(words[-1])]))


def id_problems(design: Design) -> Iterator[str]:
    asked = (*design.item_ratings, *design.block_ratings, *design.questionnaire)
    parts: tuple[Any, ...] = (*design.conditions, *design.items, *design.checks, *asked, *design.demographics)
    ids = [part.id for part in parts]
    for name, n in sorted(Counter(ids).items()):
        if n > 1:
            yield f"The id {name!r} is used twice."
    for name in ids:
        if not name or not name.isascii() or not name.replace("_", "").replace("-", "").isalnum() or len(name) > 64:
            yield f"The id {name!r} has other characters than letters, digits, - and _, or is too long."
    for number, n in Counter(group.id for group in design.groups).items():
        if n > 1:
            yield f"{n} groups have the id {number}."
    for label, n in Counter(group.label for group in design.groups).items():
        if n > 1:
            yield f"{n} groups are called {label!r}; reports could not tell them apart."


def explanation_problems(design: Design) -> Iterator[str]:
    """Every condition explains every group that is offered, or every item; all of them the one or the other."""
    groups, items = {group.id for group in design.groups}, {item.id for item in design.items}
    conditions = {condition.id for condition in design.conditions}
    shown = Counter((e.condition, e.group, e.item) for e in design.explanations)
    for (condition, group, item), n in shown.items():
        what = f"item {item}" if item is not None else f"group {group}"
        if condition not in conditions:
            yield f"An explanation of {what} is of the condition {condition!r}, which the study does not have."
        if (group is None) == (item is None):
            yield f"An explanation in condition {condition} must be of a group or of an item: one of the two."
        elif (item is not None and item not in items) or (group is not None and group not in groups):
            yield f"An explanation in condition {condition} is of {what}, which the study does not have."
        if n > 1:
            yield f"Condition {condition} explains {what} {n} times."
    by_item = {e.item is not None for e in design.explanations}
    if len(by_item) != 1:
        yield "Explanations must be all of groups, or all of items; and there must be some."
        return
    if design.task == "classify" and design.explains_items:
        yield "To classify, people choose between groups by their explanations, so explanations must be of groups."
    for one in design.items:
        offered = one.options or ((one.correct,) if one.correct is not None else ())
        for name in sorted(conditions):
            if design.explains_items and (name, None, one.id) not in shown:
                yield f"Item {one.id} has no explanation in condition {name}."
            for group in () if design.explains_items else offered:
                if (name, group, None) not in shown:
                    yield f"Item {one.id} offers group {group}, which has no explanation in condition {name}."


def item_problems(design: Design) -> Iterator[str]:
    sizes = {name: len(design.of_set(name)) for name in design.sets}
    if len(set(sizes.values())) > 1 or not min(sizes.values()):
        yield f"The item sets must have the same number of items, at least one: {sizes}."
    groups = {group.id for group in design.groups}
    for item in design.items:
        if item.item_set not in (*design.sets, PRACTICE):
            yield f"Item {item.id} is of the set {item.item_set!r}, not of {', '.join(design.sets)} or practice."
        for group in sorted({*item.options, *([] if item.correct is None else [item.correct])} - groups):
            yield f"Item {item.id} names group {group}, which the study does not have."
        if design.task == "rate":
            if item.options:
                yield f"Item {item.id} has options, but the task is to rate."
            continue
        if item.correct not in item.options:
            yield f"The correct group {item.correct} of item {item.id} is not among its options."
        if len(set(item.options)) < max(2, len(item.options)):
            yield f"Item {item.id} needs two or more different options."


def stimulus_problems(stimulus: Stimulus) -> Iterator[str]:
    if stimulus.kind not in KINDS:
        yield f"A stimulus is of the kind {stimulus.kind!r}; it must be {or_(KINDS)}."
    if stimulus.kind == "image" and (stimulus.shape is None or stimulus.shape[0] * stimulus.shape[1] != len(stimulus.ink)):
        yield "An image has another number of pixels than its shape says."
    if any(ink is not None and not 0 <= ink <= 1 for ink in stimulus.ink):
        yield "The ink of a pixel must be from 0 to 1, or null."
    if not all(0 <= j < len(stimulus.ink) for j in stimulus.marked):
        yield "An image marks a pixel that it does not have."
    if stimulus.kind == "bars" and (not stimulus.lines or any(line.weight is None for line in stimulus.lines)):
        yield "Bars need lines with a weight each."
    if stimulus.kind == "grid" and (len(stimulus.rows) < 2 or len({len(row) for row in stimulus.rows}) > 1):
        yield "A grid needs a head and one row or more, all of the same length."
    if stimulus.kind == "text" and not stimulus.text.strip():
        yield "A text must not be empty."
    if stimulus.kind == "picture" and not re.fullmatch(rf"[0-9a-f]{{64}}({'|'.join(map(re.escape, PICTURES))})", stimulus.file):
        yield f"A picture must be a file in the folder media that `study new` has put there, not {stimulus.file!r}."


def question_problems(design: Design) -> Iterator[str]:
    for check in design.checks:
        if not 0 <= check.correct < len(check.options):
            yield f"The check {check.id} has no option {check.correct}."
        if not 0 <= check.after <= design.questions:
            yield f"The check {check.id} comes after question {check.after}; there are {design.questions}."
    for likert in (*design.item_ratings, *design.block_ratings, *design.questionnaire):
        if len(likert.labels) < 2:
            yield f"The question {likert.id} needs two or more labels."
    if design.task == "rate" and not design.item_ratings:
        yield "To rate, there must be something in item_ratings."
    for field in design.demographics:
        if field.kind not in ("choice", "number", "text") or (field.kind == "choice" and not field.options):
            yield f"The field {field.id} must be a choice with options, a number or a text."


def rule_problems(design: Design) -> Iterator[str]:
    rules, admission = design.rules, design.rules.admission
    if rules.resume not in POLICIES:
        yield f"The resume policy must be {or_(POLICIES)}, not {rules.resume!r}."
    for name in ("complete", "no_consent", "timed_out", "screened_out"):
        address = getattr(rules, name).address
        if address is not None and not address.startswith(("https://", "http://")):
            yield f"The address of rules.{name} must begin with https://, or be null, not {address!r}."
    if rules.break_every < 1 or rules.break_seconds < 0 or rules.timeout_minutes < 1 or rules.resume_minutes < 1:
        yield "Breaks must come after one or more questions; times must be positive."
    if rules.comprehension_tries < 1 or (rules.keep_days is not None and rules.keep_days < 1):
        yield "rules.comprehension_tries and rules.keep_days must be at least 1."
    if admission.who not in ADMISSIONS:
        yield f"rules.admission.who must be {or_(ADMISSIONS)}, not {admission.who!r}."
    if not admission.id_parameter.strip():
        yield "rules.admission.id_parameter must name a parameter of the address, such as PROLIFIC_PID."
    if admission.per_minute < 1 or (admission.quota is not None and admission.quota < 1):
        yield "rules.admission.per_minute and quota must be at least 1."
    try:
        re.compile(admission.id_pattern)
    except re.error as error:
        yield f"rules.admission.id_pattern is not a regular expression ({error})."


def plan_problems(design: Design) -> Iterator[str]:
    plan = design.plan
    known = outcome_ids(design)
    if plan.primary not in known:
        yield f"The primary outcome of the plan must be {or_(known)}, not {plan.primary!r}."
    if plan.sample_size is not None and plan.sample_size < 2:
        yield "The sample size of the plan must be at least 2."
    if not plan.equal_within > 0 or not plan.equal_ratio > 1:
        yield "plan.equal_within must be above 0 and plan.equal_ratio above 1."
    for name in plan.leave_out:
        if name != "attention":
            yield f"plan.leave_out knows 'attention' only, not {name!r}."


def outcome_ids(design: Design) -> tuple[str, ...]:
    """What is compared between conditions."""
    answered = ("accuracy", "time") if design.task != "rate" else ("time",)
    return (*answered, *(likert.id for likert in (*design.item_ratings, *design.block_ratings)))
