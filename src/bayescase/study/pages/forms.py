"""A form that comes back → what it says, and what is wrong with it. Pure; nothing is kept here."""

from typing import Any

from ..data.store import LONGEST, Timing
from ..design.design import Design, Field
from ..design.schedule import Plan, Step

LONGEST_TEXT = 500
NO_ANSWER = "no-answer"


def read_step(design: Design, plan: Plan, step: Step, form: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """(what was given, what is wrong with it per field) of the form of a step."""
    if step.kind in ("trial", "practice"):
        place = number(form.get("choice", ""), len(plan.trial(step).options) - 1)
        return place, {} if place is not None else {"choice": "Choose one of the groups."}
    if step.kind == "check":
        check = next(check for check in design.checks if check.id == step.ref)
        place = number(form.get("choice", ""), len(check.options) - 1)
        return {"choice": place, "correct": place == check.correct}, {} if place is not None else {
            "choice": "Choose one answer."
        }
    if step.kind == "questionnaire":
        given, wrong = {}, {}
        for likert in design.questionnaire:
            given[likert.id] = number(form.get(likert.id, ""), len(likert.labels) - 1)
            if given[likert.id] is None and form.get(likert.id) != NO_ANSWER:
                wrong[likert.id] = "Choose one answer, or “prefer not to say”."
        return given, wrong
    if step.kind == "demographics":
        read = {field.id: read_field(field, form.get(field.id, "")) for field in design.demographics}
        return {id: value for id, (value, _) in read.items()}, {id: wrong for id, (_, wrong) in read.items() if wrong}
    return None, {}


def read_field(field: Field, text: str) -> tuple[str | float | None, str | None]:
    text = text.strip()
    if not text:
        return None, None
    if field.kind == "choice":
        place = number(text, len(field.options) - 1)
        return (None, "Choose one of the answers, or none.") if place is None else (field.options[place], None)
    if field.kind == "number":
        try:
            value = float(text)
        except ValueError:
            return None, "Write a number, such as 42, or leave it empty."
        if not 0 <= value <= 1e6:
            return None, "Write a number from 0 to 1,000,000, or leave it empty."
        return (int(value) if value.is_integer() else value), None
    return (None, f"Write at most {LONGEST_TEXT} characters.") if len(text) > LONGEST_TEXT else (text, None)


def read_timing(form: dict[str, str]) -> Timing:
    return Timing(*(number(form.get(name, ""), LONGEST) for name in Timing._fields))


def number(text: str, most: int) -> int | None:
    """A whole number from 0 to `most`, in plain digits; else None."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= most else None
