"""The tree of clusters, drawn: which are told as one when there are to be fewer, and which case then stands for them."""

from __future__ import annotations

from ..explanation import TreeExplanation
from ..parts import TreeNode
from ..words import counted, percent
from .checks import check_kind, empty_figure
from .drawing import ACCENT, GREY, INK, NORMAL, SMALL, Figure, Line2D, Sheet

LEFT, TOP, ROW = 3.7, 0.95, 0.44  # inches: words of the clusters, head, a line of the tree
WIDE, NARROW, EARLY = 1.45, 0.42, 5.0  # a join with its prototype, one without at most, all of these together at most
LABELLED = 6  # the last joins have room for a prototype
LEAST = 0.8  # inches of a line that has room for one, too


def plot_tree(tree: TreeExplanation) -> Figure:
    """Which clusters are told as one when there are fewer and fewer of them, with the case that then stands for them.

    A column for each number of clusters, from all of them to one. Above it stands by how much the cases of the clusters that
    are joined there become less probable. A dashed line marks the number that the tolerance leaves.

    Parameters
    ----------
    tree : TreeExplanation
        From `model.explain_tree()`.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_tree(model.explain_tree())
    """
    check_kind(tree, TreeExplanation, "model.explain_tree()")
    return draw_tree(tree, tree.sentence) if tree.n_clusters > 1 else empty_figure("There is one cluster only.")


def draw_tree(tree: TreeExplanation, sentence: str = "") -> Figure:
    """The same of several clusters, with a sentence above it or none."""
    S = tree.n_clusters
    at = columns_of(S)
    sheet = Sheet(at[1] + WIDE + 0.15, TOP + ROW * S + 0.3)
    y = rows_of(tree)
    x = {node.node: at[S] for node in tree.nodes[:S]}
    for node in tree.nodes[:S]:
        draw_leaf(sheet, node, y[node.node])
    for k, node in zip(range(S - 1, 0, -1), tree.joins, strict=True):
        x[node.node] = at[k]
        draw_join(sheet, node, x, y)
    ends = {part: x[node.node] for node in tree.joins for part in node.parts}
    for node in tree.joins:
        draw_prototype(sheet, node, x[node.node], y[node.node], ends.get(node.node, at[1] + WIDE) - x[node.node])
    draw_head(sheet, tree, at)
    if sentence:
        sheet.write(0.15, 0.24, sentence, fit=at[1] + WIDE - 0.15, size=NORMAL)
    else:
        sheet.trim(0.34)
    return sheet.figure


def columns_of(S: int) -> dict[int, float]:
    """Number of clusters → inches from the left."""
    narrow = min(NARROW, EARLY / max(S - LABELLED, 1))
    at = {S: LEFT}
    for k in range(S - 1, 0, -1):
        at[k] = at[k + 1] + (WIDE if k < LABELLED else narrow)
    return at


def rows_of(tree: TreeExplanation) -> dict[int, float]:
    """Node → inches from the top: clusters that are joined are neighbours, and a join is halfway between its parts."""
    order: list[int] = []
    left = [tree.nodes[-1]]
    while left:
        node = left.pop()
        if node.parts:
            left += [tree.nodes[part] for part in reversed(node.parts)]
        else:
            order.append(node.node)
    y = {node: TOP + ROW * (place + 0.5) for place, node in enumerate(order)}
    for node in tree.joins:
        y[node.node] = sum(y[part] for part in node.parts) / 2
    return y


def draw_leaf(sheet: Sheet, node: TreeNode, y: float) -> None:
    sheet.write(0.15, y - 0.085, node.title, fit=LEFT - 0.35, weight="bold", size=SMALL)
    like = "no case" if node.prototype is None else named(sheet, node, f"{counted(node.size)} like ", LEFT - 0.35)
    sheet.write(0.15, y + 0.085, like, size=SMALL, color=GREY)


def draw_join(sheet: Sheet, node: TreeNode, x: dict[int, float], y: dict[int, float]) -> None:
    here = x[node.node]
    for part in node.parts:
        sheet.ax.plot([x[part], here], [y[part]] * 2, color=INK, lw=1.4, solid_capstyle="butt")
    sheet.ax.plot([here] * 2, sorted(y[part] for part in node.parts), color=INK, lw=1.4, solid_capstyle="projecting")
    sheet.ax.plot([here], [y[node.node]], "o", color=INK, ms=5)


def draw_prototype(sheet: Sheet, node: TreeNode, x: float, y: float, room: float) -> None:
    """On the line that leads on from the join, if it is long enough: who stands for it above, how many cases below."""
    if node.prototype is not None and room >= LEAST:
        sheet.write(x + 0.09, y - 0.1, named(sheet, node, "", room - 0.14), size=SMALL)
        sheet.write(x + 0.09, y + 0.1, counted(node.size), fit=room - 0.14, size=SMALL, color=GREY)


def named(sheet: Sheet, node: TreeNode, before: str, fit: float) -> str:
    """The prototype of a node with its probability; its name is cut to fit."""
    assert node.prototype is not None
    sure = f" {node.prototype.sure}"
    return sheet.cut(before + node.prototype.name, fit - sheet.width_of(sure, SMALL), SMALL) + sure


def draw_head(sheet: Sheet, tree: TreeExplanation, at: dict[int, float]) -> None:
    """The number of clusters of each column, what it costs, and the number that the tolerance leaves."""
    S, bottom = tree.n_clusters, TOP + ROW * tree.n_clusters
    sheet.write(0.15, 0.58, "clusters", size=SMALL, weight="bold")
    sheet.write(0.15, 0.78, "joined cases less probable by", size=SMALL, color=GREY)
    sheet.write(at[S], 0.58, str(S), size=SMALL, weight="bold", ha="center")
    free = at[S] + NARROW - 0.01  # what is written above one column must not run into the next
    for k, node in zip(range(S - 1, 0, -1), tree.joins, strict=True):
        if at[k] >= free:
            sheet.write(at[k], 0.58, str(k), size=SMALL, weight="bold", ha="center")
            sheet.write(at[k], 0.78, f"{node.less_probable:.0%}", size=SMALL, color=GREY, ha="center")
            free = at[k] + NARROW - 0.01
    x = at[tree.number]
    sheet.ax.add_line(Line2D([x, x], [0.88, bottom + 0.1], color=ACCENT, lw=1.4, ls="--", zorder=0.5))
    words = f"{counted(tree.number, 'cluster')}: the next join would cost more than {percent(tree.tolerance)}"
    if tree.number == 1:
        words = f"no join costs more than {percent(tree.tolerance)}"
    wide = sheet.width_of(words, SMALL)
    sheet.write(
        min(max(x, 0.15 + wide / 2), at[1] + WIDE - wide / 2), bottom + 0.18, words, size=SMALL, color=ACCENT, ha="center"
    )
