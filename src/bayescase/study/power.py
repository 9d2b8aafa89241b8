"""How many people does it take? Many studies are simulated by the design's own schedule and judged by its own analysis.

Pages are left out, so that thousands of studies take minutes. Power is the share of studies in which the primary outcome gets a
verdict: for these explanations, and for explanations of their kind. The second is limited by the number of explanations, and no
number of people makes up for it.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from ..storage import replacing
from .analysis.answers_table import AnswerTable, outcomes
from .analysis.compare import compare, judged
from .design.design import Design, DesignError
from .planted import Truth, World, rows

GOAL = 0.8
REACHES = ("these", "kind")
FILE = "power.json"


class Setting(NamedTuple):
    """What is true in a simulated study."""

    effect: float  # of the first condition on the primary outcome
    slopes: float  # standard deviation of the effect over explanations, in logits


@dataclass(frozen=True)
class PowerCell:
    """So many people, so large an effect: how many studies found it."""

    people: int
    effect: float
    slopes: float
    studies: int
    these: int  # studies with a verdict for these explanations, or for their kind
    kind: int  # with one for the kind
    wrong: int  # with a verdict in the wrong direction

    def share(self, reach: str) -> float:
        return getattr(self, reach) / self.studies if self.studies else math.nan

    def interval(self, reach: str) -> tuple[float, float]:
        """Wilson's, 95 %."""
        found = stats.binomtest(getattr(self, reach), self.studies).proportion_ci(method="wilson")
        return float(found.low), float(found.high)


@dataclass(frozen=True)
class SampleSize:
    """People that it takes for a power of GOAL; None: more than were tried, or no number is enough."""

    effect: float
    slopes: float
    reach: str
    people: int | None
    low: int | None
    high: int | None
    words: str


def truth_of(design: Design, setting: Setting, base: float | None, usual: Truth) -> Truth:
    """The first condition has an effect on the primary outcome, the others have none."""
    first, others = design.conditions[0].id, [condition.id for condition in design.conditions[1:]]
    truth = replace(usual, explanation_slope_sd=setting.slopes)
    if design.plan.primary == "accuracy":
        share = Truth.USUAL_RIGHT if base is None else base
        if not 0 < share + setting.effect < 1:
            raise DesignError(
                f"A share of right answers of {share:g} and a difference of {setting.effect:g} do not go together."
            )
        return replace(truth, right={first: share + setting.effect} | dict.fromkeys(others, share))
    if design.plan.primary == "time":
        median = Truth.USUAL_SECONDS if base is None else base
        if setting.effect <= 0:
            raise DesignError("Where time is the primary outcome, an effect is a ratio, such as 1.2.")
        return replace(truth, seconds={first: median * setting.effect} | dict.fromkeys(others, median))
    mean = Truth.USUAL_RATING if base is None else base
    return replace(truth, rating={first: mean + setting.effect} | dict.fromkeys(others, mean))


def no_effect(design: Design) -> float:
    return 1.0 if design.plan.primary == "time" else 0.0


def one_study(design: Design, people: int, truth: Truth, draw: int) -> tuple[bool, bool, bool]:
    """(a verdict for these explanations or their kind, one for the kind, one in the wrong direction) of the first condition."""
    answers, who = rows(design, people, World(design, truth, draw))
    table, primary = AnswerTable(design, answers), outcomes(design)[0]
    pairs = combinations(range(len(design.conditions)), 2)
    found = judged([compare(table, who, primary, a, b, flips=1) for a, b in pairs], [primary], design)[0]
    wrong = found.verdict in REACHES and found.better != design.conditions[0].id
    return found.verdict in REACHES, found.verdict == "kind", wrong


def run_power(
    design: Design,
    people: Iterable[int],
    effects: Iterable[float],
    slopes: Iterable[float],
    *,
    studies: int = 200,
    base: float | None = None,
    truth: Truth | None = None,
    done: Callable[[PowerCell], Any] = lambda cell: None,
    known: Iterable[PowerCell] = (),
) -> list[PowerCell]:
    """A cell for each combination; `done` is called after each, `known` ones are not made again."""
    if design.mode == "paper":
        raise DesignError("With item sets that are fixed to conditions there are no verdicts, so there is no power to compute.")
    usual = truth or Truth()
    have = {(cell.people, cell.effect, cell.slopes, cell.studies): cell for cell in known}
    found = []
    truths = {(effect, sd): truth_of(design, Setting(effect, sd), base, usual) for effect, sd in product(effects, slopes)}
    for n, (effect, sd) in product(people, truths):
        cell = have.get((n, effect, sd, studies))
        if cell is None:
            outcomes_of = [one_study(design, n, truths[effect, sd], draw) for draw in range(studies)]
            these, kind, wrong = (sum(of[k] for of in outcomes_of) for k in range(3))
            cell = PowerCell(n, effect, sd, studies, these, kind, wrong)
            done(cell)
        found.append(cell)
    return found


# --- the number of people -------------------------------------------------------------------------------------------------


def sample_sizes(cells: list[PowerCell], nothing: float) -> Iterator[SampleSize]:
    """For each effect and spread, and each reach; not for no effect."""
    for effect, slopes in dict.fromkeys((cell.effect, cell.slopes) for cell in cells):
        if effect == nothing:
            continue
        own = sorted((cell for cell in cells if (cell.effect, cell.slopes) == (effect, slopes)), key=lambda c: c.people)
        for reach in REACHES:
            yield sample_size(own, effect, slopes, reach)


def sample_size(own: list[PowerCell], effect: float, slopes: float, reach: str) -> SampleSize:
    """Power as a smooth function of √n: Φ(a + b√n), by maximum likelihood; the interval by simulating the counts anew."""
    n = np.array([cell.people for cell in own], float)
    found = np.array([getattr(cell, reach) for cell in own], float)
    studies = np.array([cell.studies for cell in own], float)
    tried = f"{own[0].people} to {own[-1].people}" if len(own) > 1 else str(own[0].people)
    best = max(cell.share(reach) for cell in own)
    if own[0].share(reach) >= GOAL:
        return SampleSize(effect, slopes, reach, own[0].people, None, own[0].people, f"{own[0].people} people or fewer")
    middle = needed(n, found, studies)
    if len(own) < 2 or middle is None or middle > 4 * n[-1]:
        why = f"not reached with {tried} people, where it is {best:.0%} at most"
        if reach == "kind" and own[-1].share("these") - own[-1].share("kind") > 0.2:
            why += "; more explanations would help more than more people"
        return SampleSize(effect, slopes, reach, None, None, None, why)
    rng = np.random.default_rng(2014)
    drawn = rng.binomial(studies.astype(int), found / studies, (200, len(n))).astype(float)
    again = [needed(n, counts, studies) for counts in drawn]
    known = [math.inf if one is None else one for one in again]
    low, high = (float(np.quantile(known, q, method="nearest")) for q in (0.025, 0.975))
    ends = [None if not math.isfinite(end) else math.ceil(end) for end in (low, high)]
    words = f"{math.ceil(middle)} people (95 %: {ends[0]} to {ends[1] or 'no limit'})"
    return SampleSize(effect, slopes, reach, math.ceil(middle), ends[0], ends[1], words)


def needed(n: np.ndarray, found: np.ndarray, studies: np.ndarray) -> float | None:
    """Where the fitted curve reaches GOAL; None if it does not rise."""
    root = np.sqrt(n)

    def cost(ab):
        p = np.clip(stats.norm.cdf(ab[0] + ab[1] * root), 1e-9, 1 - 1e-9)
        return -float(found @ np.log(p) + (studies - found) @ np.log1p(-p))

    fit = optimize.minimize(cost, (-1.0, 0.2), method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-8, "maxiter": 2000})
    a, b = fit.x
    goal = float(stats.norm.ppf(GOAL))
    return None if b <= 1e-6 or goal < a else float(((goal - a) / b) ** 2)


# --- in print -------------------------------------------------------------------------------------------------------------


def cell_rows(cells: list[PowerCell]) -> list[tuple[str, ...]]:
    def shown(cell, reach):
        low, high = cell.interval(reach)
        return f"{cell.share(reach):.0%} ({low:.0%} to {high:.0%})"

    return [
        (str(cell.people), f"{cell.effect:g}", f"{cell.slopes:g}", shown(cell, "these"), shown(cell, "kind"), str(cell.wrong))
        for cell in cells
    ]


HEAD = ("people", "effect", "SD over explanations", "these explanations", "explanations of this kind", "wrong direction")


def as_plain(design: Design, cells: list[PowerCell], how: dict[str, Any]) -> dict[str, Any]:
    """`how`: what else was planted, by name."""
    sizes = [asdict(size) for size in sample_sizes(cells, no_effect(design))]
    head = {"design": design.hash, "primary": design.plan.primary, "planted": how}
    return head | {"cells": [asdict(cell) for cell in cells], "sizes": sizes}


def read_cells(design: Design, folder: Path, how: dict[str, Any]) -> list[PowerCell]:
    """What an earlier run has found, if it was of this design and planted the same."""
    path = folder / FILE
    if not path.exists():
        return []
    try:
        value = json.loads(path.read_text("utf-8"))
        same = (value["design"], value["planted"]) == (design.hash, how)
        return [PowerCell(**cell) for cell in value["cells"]] if same else []
    except (ValueError, KeyError, TypeError) as error:
        raise DesignError(f"{path} is not what an earlier run has left; give another folder.") from error


def write_cells(design: Design, cells: list[PowerCell], folder: Path, how: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / FILE) as file:
        file.write((json.dumps(as_plain(design, cells, how), indent=1) + "\n").encode())


def plot_power(cells: list[PowerCell]) -> Any:
    """Power by people, a line per effect; a column per spread, a row per reach."""
    from ..explaining.render.drawing import GREY, SMALL, new_figure, tidy
    from .analysis.plots import COLOURS, MARKS, percent_axis

    spreads, effects = (list(dict.fromkeys(getattr(cell, name) for cell in cells)) for name in ("slopes", "effect"))
    figure = new_figure(2.2 + 2.9 * len(spreads), 5.6)
    axes = figure.subplots(2, len(spreads), sharex=True, sharey=True, squeeze=False)
    for (row, reach), (column, sd) in product(enumerate(REACHES), enumerate(spreads)):
        ax = axes[row][column]
        ax.axhline(GOAL, color=GREY, lw=0.8, ls=":")
        for k, effect in enumerate(effects):
            own = sorted((c for c in cells if (c.slopes, c.effect) == (sd, effect)), key=lambda c: c.people)
            ends = np.array([c.interval(reach) for c in own]).T
            middle = np.array([c.share(reach) for c in own])
            colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
            spread = np.abs(ends - middle)
            style = {"color": colour, "marker": mark, "ms": 5, "capsize": 2, "label": f"{effect:g}"}
            ax.errorbar([c.people for c in own], middle, yerr=spread, **style)
        what = "these explanations" if reach == "these" else "explanations of this kind"
        ax.set_title(f"{what}; SD {sd:g}", fontsize=SMALL, loc="left")
        ax.set_xticks(sorted({c.people for c in cells}))
        ax.set_ylim(-0.03, 1.03)
        percent_axis(ax.yaxis)
        tidy(ax)
    for ax in axes[-1]:
        ax.set_xlabel("people", fontsize=SMALL)
    for ax in axes[:, 0]:
        ax.set_ylabel("power", fontsize=SMALL)
    names = axes[0][0].get_legend_handles_labels()
    figure.legend(*names, title="effect", frameon=False, fontsize=SMALL, title_fontsize=SMALL, loc="outside right center")
    return figure
