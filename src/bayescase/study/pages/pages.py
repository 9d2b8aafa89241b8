"""What people see: a step of the flow → a page. Pure; nothing is kept here."""

from itertools import groupby
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from ...web.templating import environment
from ..design.design import Design, Stimulus
from ..design.schedule import Plan, Step, Trial
from .forms import NO_ANSWER

HERE = Path(__file__).parent
MESSAGES = {
    400: ("The form could not be read", "Nothing was changed."),
    403: (
        "This form was not accepted",
        "It did not come from a page of this study that is open in this browser. Nothing was changed.",
    ),
    404: ("There is no such page", "The address may have been typed or copied wrongly."),
    405: ("This address does not take that kind of request", "Nothing was changed."),
    409: ("Not now", "Nothing was changed."),
    413: ("The form is too large", "Please write less. Nothing was changed."),
    429: ("Too many attempts", "Please wait a minute and try again."),
    500: ("Something went wrong on our side", "Everything that you had answered is kept. Please try again in a moment."),
}


class Pages:
    """Templates with the study's design at hand."""

    def __init__(self, design: Design):
        self.design = design
        self.templates = environment(HERE / "templates")
        self.templates.filters |= {"paragraphs": paragraphs, "picture": picture}
        self.templates.globals |= {"design": design, "NO_ANSWER": NO_ANSWER}

    def show(self, name: str, status: int = 200, *, place: bool = False, **values: Any) -> HTMLResponse:
        """A page; `place` says that the person has a place in the study, so the ways out are offered."""
        return HTMLResponse(self.templates.get_template(f"{name}.html").render(place=place, **values), status)

    def message(self, status: int, place: bool = True, words: str | None = None) -> HTMLResponse:
        title, usual = MESSAGES.get(status, ("This did not work", "Nothing was changed."))
        return self.show("message", status, place=place, title=title, words=words or usual, ending=None)

    def step(self, plan: Plan, step: Step, form: dict[str, Any], status: int = 200, **values: Any) -> HTMLResponse:
        """The page of a step. `form`: hidden fields; `values`: errors, what was given, feedback, milliseconds to wait."""
        values = {"errors": {}, "given": {}, "feedback": None, "wait": 0} | values | {"form": form, "place": True}
        if step.kind in ("trial", "practice"):
            trial = plan.trial(step)
            values |= question(self.design, trial) | {"practice": step.kind == "practice", "total": len(plan.trials)}
            values |= {"part": trial.block + 1, "last_part": len(plan.cell.order)}
            if values["feedback"] is not None:  # practice only
                chosen, right = values["feedback"]["choice"], self.design.item(trial.item).correct
                values |= {"chosen": trial.options.index(chosen), "right": trial.options.index(right)}
                return self.show("feedback", status, **values)
            return self.show("question", status, number=trial.number + 1, **values)
        if step.kind == "break":
            done = int(step.ref)
            before, after = plan.trials[done - 1 : done + 1]
            part = after.block + 1 if after.block > before.block else 0  # that begins here, or none
            values |= {"done": done, "total": len(plan.trials), "next_part": part}
        elif step.kind == "check":
            values["check"] = next(check for check in self.design.checks if check.id == step.ref)
        return self.show(step.kind, status, **values)


def question(design: Design, trial: Trial) -> dict[str, Any]:
    """All that a browser is told of a question: what is drawn. Not which case it is, nor what is right."""
    return {
        "stimulus": design.item(trial.item).stimulus,
        "options": [design.representation(trial.condition, cluster).stimulus for cluster in trial.options],
    }


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]


def picture(stimulus: Stimulus) -> dict[str, Any]:
    """An image as few rectangles: pixels of the same ink side by side are one. What is marked gets an outline."""
    height, width = stimulus.shape or (0, 0)
    bars = []
    for y in range(height):
        x = 0
        for ink, pixels in groupby(stimulus.ink[y * width : (y + 1) * width], key=lambda v: v if v is None else round(v, 2)):
            n = len(list(pixels))
            if ink is None or ink > 0:
                bars.append({"x": x, "y": y, "n": n, "ink": ink})
            x += n
    marked, edges = set(stimulus.marked), []
    for pixel in sorted(marked):
        y, x = divmod(pixel, width)
        edges += [f"M{x} {y}h1"] if pixel - width not in marked else []
        edges += [f"M{x} {y + 1}h1"] if pixel + width not in marked else []
        edges += [f"M{x} {y}v1"] if x == 0 or pixel - 1 not in marked else []
        edges += [f"M{x + 1} {y}v1"] if x == width - 1 or pixel + 1 not in marked else []
    return {"width": width, "height": height, "bars": bars, "outline": "".join(edges)}
