"""Where chains differ, drawn: clusters on the left, another way to cluster the cases on the right, bands of cases between."""

from __future__ import annotations

from typing import NamedTuple

from ..overall import DifferencesExplanation, Flow, Way
from ..words import counted
from .checks import check_kind, empty_figure
from .drawing import ACCENT, FAINT, GREY, INK, NORMAL, SMALL, Figure, Path, PathPatch, Rectangle, Sheet

LEFT, BANDS, RIGHT, THICK = 3.0, 1.7, 2.6, 0.07  # inches: words, bands, words, a bar
HEAD, FOOT, GAP = 0.27, 0.3, 0.07  # the title of a panel, below it, between bars
LEAST, TALL, LINE = 0.19, 2.4, 0.14  # inches of a bar at least, of all bars together, about, and of a line of words
MOST_WAYS = 3


class Bar(NamedTuple):
    """The cases of a cluster on one side."""

    top: float
    high: float
    size: int


def plot_differences(differences: DifferencesExplanation) -> Figure:
    """Which clusters all chains found, and which cases are in one or another.

    A panel for each other way to cluster the cases, three at most. Clusters that are shown stand on the left, those of the
    other chains on the right, with a bar as high as they are large. Bands lead from where cases are shown to where they are
    there: grey if it is the same cluster, coloured and counted if it is not.

    Parameters
    ----------
    differences : DifferencesExplanation
        From `model.explain_differences()`.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=2, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_differences(model.explain_differences())
    """
    check_kind(differences, DifferencesExplanation, "model.explain_differences()")
    return draw_differences(differences, differences.sentence) if differences.ways else empty_figure(differences.sentence)


def draw_differences(differences: DifferencesExplanation, sentence: str = "") -> Figure:
    """The same, of chains that do differ, with a sentence above it or none."""
    ways, wide = differences.ways[:MOST_WAYS], LEFT + BANDS + RIGHT
    sheet = Sheet(wide, 1.0)
    lines = sheet.wrap(sentence, wide - 0.3, NORMAL, "normal", 3) if sentence else []
    for k, line in enumerate(lines):
        sheet.write(0.15, 0.25 + 0.2 * k, line)
    top = 0.25 + (0.3 + 0.2 * len(lines) if lines else 0.0)
    for way in ways:
        top = draw_way(sheet, differences, way, top)
    hidden = len(differences.ways) - len(ways)
    if hidden:
        sheet.write(0.15, top, f"not shown: {counted(hidden, 'more way')} to cluster the cases", size=SMALL, color=GREY)
        top += 0.25
    sheet.resize(wide, top)
    return sheet.figure


def draw_way(sheet: Sheet, differences: DifferencesExplanation, way: Way, top: float) -> float:
    """One panel; returns where the next one begins."""
    sheet.write(LEFT - 0.1, top, "Shown", size=SMALL, weight="bold", ha="right")
    sheet.write(LEFT + BANDS + 0.15, top, way.title, fit=RIGHT - 0.25, size=SMALL, weight="bold")
    top += HEAD
    here, there = (bars(sizes(way.flows, side), top) for side in ("cluster", "part"))
    for s, bar in here.items():
        same = all(flow.to == s for flow in way.flows if flow.cluster == s) and bar.size == there.get(s, bar).size
        cases = f": {counted(bar.size)}"
        words = sheet.cut(differences.title_of(s), LEFT - 0.25 - sheet.width_of(cases, SMALL), SMALL) + cases
        sheet.write(LEFT - 0.1, middle(bar), words, size=SMALL, ha="right", color=GREY if same else "black")
        draw_bar(sheet, LEFT, bar)
    for t, bar in there.items():
        to = next(flow.to for flow in way.flows if flow.part == t)
        words = f"{'none of these' if to is None else f'cluster {to}'}: {counted(bar.size)}"
        sheet.write(LEFT + BANDS + 0.15, middle(bar), words, fit=RIGHT - 0.25, size=SMALL)
        draw_bar(sheet, LEFT + BANDS, bar)
    draw_bands(sheet, way, here, there)
    return max(bar.top + bar.high for bar in (*here.values(), *there.values())) + FOOT


def sizes(flows: tuple[Flow, ...], side: str) -> dict[int, int]:
    """Cluster → its cases, on one side, in the order of their numbers."""
    found: dict[int, int] = {}
    for flow in sorted(flows, key=lambda f: int(getattr(f, side))):
        found[getattr(flow, side)] = found.get(getattr(flow, side), 0) + flow.size
    return found


def bars(size: dict[int, int], top: float) -> dict[int, Bar]:
    """Bars one below the other; the smallest are high enough for a line of words."""
    found, total = {}, sum(size.values())
    for s, n in size.items():
        found[s] = Bar(top, max(TALL * n / total, LEAST), n)
        top += found[s].high + GAP
    return found


def middle(bar: Bar) -> float:
    return bar.top + bar.high / 2


def draw_bar(sheet: Sheet, x: float, bar: Bar) -> None:
    sheet.ax.add_patch(Rectangle((x - THICK / 2, bar.top), THICK, bar.high, fc=INK, lw=0, zorder=3))


def draw_bands(sheet: Sheet, way: Way, here: dict[int, Bar], there: dict[int, Bar]) -> None:
    """From left to right, those of a bar one below the other in the order of the other side."""
    left, right = ({s: bar.top for s, bar in side.items()} for side in (here, there))
    starts: dict[Flow, float] = {}
    for flow in sorted(way.flows, key=lambda f: (f.cluster, f.part)):
        starts[flow] = left[flow.cluster]
        left[flow.cluster] += here[flow.cluster].high * flow.size / here[flow.cluster].size
    write_counts(sheet, way, here, starts)
    for flow in sorted(way.flows, key=lambda f: (f.part, f.cluster)):
        a, b = starts[flow], right[flow.part]
        a_high, b_high = (bar.high * flow.size / bar.size for bar in (here[flow.cluster], there[flow.part]))
        right[flow.part] += b_high
        sheet.ax.add_patch(band(a, a + a_high, b, b + b_high, flow.to != flow.cluster))


def write_counts(sheet: Sheet, way: Way, here: dict[int, Bar], starts: dict[Flow, float]) -> None:
    """How many cases move, where their bands begin; the largest first, and none that would run into another."""
    written: list[float] = []
    for flow in sorted((f for f in way.flows if f.to != f.cluster), key=lambda f: -f.size):
        y = starts[flow] + here[flow.cluster].high * flow.size / here[flow.cluster].size / 2
        if all(abs(y - other) >= LINE for other in written):
            written.append(y)
            sheet.write(LEFT + 0.1, y, f"{flow.size:,}", size=SMALL, zorder=4)


def band(a: float, a_end: float, b: float, b_end: float, moves: bool) -> PathPatch:
    x, y, bend = LEFT, LEFT + BANDS, BANDS / 2
    points = [
        (x, a),
        (x + bend, a),
        (y - bend, b),
        (y, b),
        (y, b_end),
        (y - bend, b_end),
        (x + bend, a_end),
        (x, a_end),
        (x, a),
    ]
    curve = [Path.CURVE4] * 3
    codes = [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY]
    style = {"fc": ACCENT, "alpha": 0.55, "zorder": 2} if moves else {"fc": FAINT, "zorder": 1}
    return PathPatch(Path(points, codes), lw=0, **style)
