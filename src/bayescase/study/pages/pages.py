"""What people see: a step of the flow → a page. Pure; nothing is kept here."""

from itertools import groupby
from pathlib import Path
from typing import Any

from starlette.responses import HTMLResponse

from ...web.templating import environment
from ..design.design import Design, Item, Stimulus
from ..design.language import catalogue
from ..design.schedule import Plan, Step, Trial, arranged
from .forms import NO_ANSWER
from .markdown import markdown

HERE = Path(__file__).parent
MOST_RATED = 3  # items that are shown with their explanations where a part is rated


class Pages:
    """Templates with the study's design at hand; `prefix` is the path that the study is served below."""

    def __init__(self, design: Design, prefix: str = ""):
        self.design, self.prefix, self.say = design, prefix, catalogue(design.language)
        self.templates = environment(HERE / "templates")
        self.templates.filters |= {"paragraphs": paragraphs, "picture": picture, "markdown": markdown, "bars": bars}
        self.templates.globals |= {"design": design, "t": self.say, "url": self.url, "NO_ANSWER": NO_ANSWER}

    def url(self, path: str) -> str:
        return self.prefix + path

    def show(self, name: str, status: int = 200, *, place: bool = False, **values: Any) -> HTMLResponse:
        """A page; `place` says that the person has a place in the study, so the ways out are offered."""
        return HTMLResponse(self.templates.get_template(f"{name}.html").render(place=place, **values), status)

    def message(self, status: int, place: bool = True, words: str | None = None) -> HTMLResponse:
        """What went wrong, by its number."""
        key = f"message.{status}" if f"message.{status}" in self.say.texts else "message.other"
        title, usual = self.say.list(key)
        return self.show("message", status, place=place, title=title, words=words or usual, ending=None, code=not place)

    def told(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page with a title and words of the catalogue."""
        usual = {"ending": None, "code": False, "place": False}
        words = {"title": self.say(f"{name}.title"), "words": self.say(f"{name}.words")}
        return self.show("message", status, **(usual | words | values))

    def step(self, plan: Plan, step: Step, form: dict[str, Any], status: int = 200, **values: Any) -> HTMLResponse:
        """The page of a step. `form`: hidden fields; `values`: errors, what was given, feedback, milliseconds to wait."""
        usual: dict[str, Any] = {"errors": {}, "given": {}, "feedback": None, "wait": 0, "again": False}
        values = usual | values | {"form": form, "place": True}
        if step.kind in ("trial", "practice"):
            return self.question(plan, step, status, values)
        if step.kind == "break":
            done = int(step.ref)
            before, after = plan.trials[done - 1 : done + 1]
            part = after.block + 1 if after.block > before.block else 0  # that begins here, or none
            values |= {"done": done, "total": len(plan.trials), "next_part": part}
        elif step.kind in ("check", "comprehension"):
            values["check"] = next(check for check in self.design.checks if check.id == step.ref)
            return self.show("check", status, **values)
        elif step.kind == "ratings":
            values |= {"part": int(step.ref) + 1, "rated": rated(self.design, plan, int(step.ref))}
        return self.show(step.kind, status, **values)

    def question(self, plan: Plan, step: Step, status: int, values: dict[str, Any]) -> HTMLResponse:
        trial = plan.trial(step)
        values |= question(self.design, plan, trial) | {"practice": step.kind == "practice", "total": len(plan.trials)}
        values |= {"part": trial.block + 1, "last_part": len(plan.cell.order)}
        if values["feedback"] is not None:  # practice only
            chosen, right = values["feedback"]["choice"], self.design.item(trial.item).correct
            places = [None if of is None or of not in trial.options else trial.options.index(of) for of in (chosen, right)]
            return self.show("feedback", status, chosen=places[0], right=places[1], **values)
        return self.show("question", status, number=trial.number + 1, **values)


def question(design: Design, plan: Plan, trial: Trial) -> dict[str, Any]:
    """All that a browser is told of a question: what is drawn. Not which case it is, nor what is right."""
    item = design.item(trial.item)

    def shown(of: int | str) -> Stimulus:
        return arranged(design, plan.slot, design.explanation(trial.condition, of).stimulus)

    labelled = design.task == "predict"
    found: dict[str, Any] = {
        "stimulus": arranged(design, plan.slot, item.stimulus),
        "explanation": None,
        "answer": None,
        "options": [None if design.explains_items else shown(group) for group in trial.options],
        "labels": [design.group(group).label if labelled else None for group in trial.options],
    }
    if design.explains_items:
        found["explanation"] = shown(item.id)
    elif design.task == "rate" and item.correct is not None:
        found["explanation"] = shown(item.correct)
    if design.task == "rate" and item.correct is not None:
        found["answer"] = design.group(item.correct).label
    return found


def rated(design: Design, plan: Plan, block: int) -> list[dict[str, Any]]:
    """What a part has shown: its groups with their explanations, or its last items with theirs."""
    trials = plan.of_block(block)
    condition = trials[0].condition

    def shown(of: int | str) -> Stimulus:
        return arranged(design, plan.slot, design.explanation(condition, of).stimulus)

    if design.explains_items:
        items = [design.item(trial.item) for trial in trials[-MOST_RATED:]]
        return [{"case": arranged(design, plan.slot, item.stimulus), "explanation": shown(item.id)} for item in items]
    groups = {group: None for trial in trials for group in groups_of(design.item(trial.item))}
    return [{"case": None, "explanation": shown(group)} for group in sorted(groups)]


def groups_of(item: Item) -> tuple[int, ...]:
    return item.options or ((item.correct,) if item.correct is not None else ())


def paragraphs(text: str) -> list[str]:
    return [part.strip() for part in text.split("\n\n") if part.strip()]


def bars(stimulus: Stimulus) -> list[dict[str, Any]]:
    """Weights as bars to the left and to the right: where each begins and how long it is, in hundredths of the width."""
    largest = max((abs(line.weight or 0.0) for line in stimulus.lines), default=0.0) or 1.0
    found = []
    for line in stimulus.lines:
        weight = line.weight or 0.0
        long = round(50 * abs(weight) / largest, 1)
        found.append({"line": line, "weight": weight, "x": 50 if weight >= 0 else round(50 - long, 1), "long": long})
    return found


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
