"""A form that comes back → what it says, and what is wrong with it. Pure; nothing is kept here."""

from collections.abc import Iterable
from typing import Any

from ..data.flow import LONGEST, Given, Timing
from ..design.design import Check, Design, Field, Likert
from ..design.language import Catalogue
from ..design.schedule import Plan, Step

LONGEST_TEXT = 500
NO_ANSWER = "no-answer"
Read = tuple[Any, dict[str, str]]  # what was given, what is wrong with it per field


def read_step(design: Design, plan: Plan, step: Step, form: dict[str, str], say: Catalogue) -> Read:
    """The form of a step."""
    if step.kind in ("trial", "practice"):
        return read_question(design, plan, step, form, say)
    if step.kind in ("check", "comprehension"):
        return read_check(next(check for check in design.checks if check.id == step.ref), form, say)
    if step.kind == "ratings":
        return read_ratings(design.block_ratings, form, say)
    if step.kind == "questionnaire":
        return read_ratings(design.questionnaire, form, say)
    if step.kind == "demographics":
        read = {field.id: read_field(field, form.get(field.id, ""), say) for field in design.demographics}
        return {id: value for id, (value, _) in read.items()}, {id: wrong for id, (_, wrong) in read.items() if wrong}
    if step.kind == "instructions":
        return read_device(form), {}
    return None, {}


def read_question(design: Design, plan: Plan, step: Step, form: dict[str, str], say: Catalogue) -> Read:
    ratings, wrong = read_ratings(design.item_ratings, form, say)
    place = None
    if design.task != "rate":
        place = number(form.get("choice", ""), len(plan.trial(step).options) - 1)
        if place is None:
            wrong = {"choice": say("question.choose")} | wrong
    return Given(place, ratings), wrong


def read_check(check: Check, form: dict[str, str], say: Catalogue) -> Read:
    place = number(form.get("choice", ""), len(check.options) - 1)
    wrong = {"choice": say("one-question.choose")} if place is None else {}
    return {"choice": place, "correct": place == check.correct}, wrong


def read_ratings(asked: Iterable[Likert], form: dict[str, str], say: Catalogue) -> Read:
    given, wrong = {}, {}
    for likert in asked:
        given[likert.id] = number(form.get(likert.id, ""), len(likert.labels) - 1)
        if given[likert.id] is None and form.get(likert.id) != NO_ANSWER:
            wrong[likert.id] = say("question.rate")
    return given, wrong


def read_field(field: Field, text: str, say: Catalogue) -> tuple[str | float | None, str | None]:
    text = text.strip()
    if not text:
        return None, None
    if field.kind == "choice":
        place = number(text, len(field.options) - 1)
        return (None, say("about.choice")) if place is None else (field.options[place], None)
    if field.kind == "number":
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            return None, say("about.number")
        if not 0 <= value <= 1e6:
            return None, say("about.range")
        return (int(value) if value.is_integer() else value), None
    return (None, say("about.long", n=LONGEST_TEXT)) if len(text) > LONGEST_TEXT else (text, None)


def read_device(form: dict[str, str]) -> dict[str, Any]:
    """Size of the window and the kind of pointer; nothing without JavaScript."""
    width, height = (number(form.get(name, ""), 100_000) for name in ("window_width", "window_height"))
    if width is None or height is None:
        return {}
    ratio = number(form.get("pixel_ratio", ""), 1000)  # in hundredths
    found: dict[str, Any] = {"window_width": width, "window_height": height}
    return found | {"pixel_ratio": None if ratio is None else ratio / 100, "touch": form.get("touch") == "1"}


def read_timing(form: dict[str, str]) -> Timing:
    return Timing(*(number(form.get(name, ""), LONGEST) for name in Timing._fields))


def number(text: str, most: int) -> int | None:
    """A whole number from 0 to `most`, in plain digits; else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most else None
