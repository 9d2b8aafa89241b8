"""Pictures: functions of an explanation, or of a Fitted where its draws are needed, that return a Figure.

No function touches pyplot or any other global state: save a figure with `figure.savefig(path)`.
"""

from __future__ import annotations

import math

import numpy as np

from ...fitted import Fitted
from ..explanation import AgreementExplanation, CaseExplanation, ClusterExplanation, ModelExplanation
from ..naming import shown_names
from ..parts import FeatureRole, most_telling
from ..words import cluster_title, counted, cut, not_shown, phrase
from .cards import draw_cards
from .checks import check_fitted, check_kind, check_shape, clusters_of, empty_figure, role_words
from .differences import plot_differences
from .drawing import (
    ACCENT,
    FAINT,
    GREY,
    HEAT,
    INK,
    NORMAL,
    SMALL,
    Axes,
    Figure,
    ListedColormap,
    Rectangle,
    label_x,
    label_y,
    new_figure,
    note_more,
    tidy,
    title,
)
from .images import image_cards
from .sweeps import MANY_CLUSTERS, plot_history, plot_ribbon
from .trees import plot_tree

__all__ = [
    "plot_agreement",
    "plot_case",
    "plot_differences",
    "plot_history",
    "plot_memberships",
    "plot_prototypes",
    "plot_ribbon",
    "plot_subspaces",
    "plot_tree",
    "plot_values",
]

COLUMNS = 1200  # of the picture of memberships
HEAD, NAME = 36, 32  # letters of a name below a column, and beside a row


def plot_prototypes(
    explanation: ModelExplanation | ClusterExplanation, *, image_shape: tuple[int, int] | None = None, most: int = 8
) -> Figure:
    """A card per cluster: its prototype, and what sets it apart with the two shares and the probability of a key feature.

    Parameters
    ----------
    explanation : ModelExplanation or ClusterExplanation
        From `model.explain()`.
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row. Else a table of present and absent features also shows what
        the prototype has, with the key features in a box.
    most : int, default=8
        Values that a card lists; the rest are counted.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_prototypes(model.explain())
    """
    clusters = clusters_of(explanation)
    if image_shape is not None:
        return image_cards(clusters, check_shape(image_shape, len(clusters[0].features)))
    return draw_cards([cluster.card(most) for cluster in clusters])


# --- subspaces and values ----------------------------------------------------------------------------------------------------


def plot_subspaces(explanation: ModelExplanation | ClusterExplanation, *, most: int = 15) -> Figure:
    """How probable it is that a feature belongs to the subspace, beside the prior: a panel per cluster.

    Parameters
    ----------
    explanation : ModelExplanation or ClusterExplanation
        From `model.explain()`.
    most : int, default=15
        Features per cluster: the key features, the most telling first, and then the nearest to being one.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_subspaces(model.explain())
    """
    clusters = clusters_of(explanation)
    shown = clusters[:MANY_CLUSTERS]
    columns = min(3, len(shown))
    rows = math.ceil(len(shown) / columns)
    lines = max(len(surest_features(cluster, most)) for cluster in shown) or 1
    figure = new_figure(max(5.1 * columns, 5.6), rows * (0.23 * lines + 0.85) + 0.55)
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(shown) :]:
        ax.set_axis_off()
    for ax, cluster in zip(grid.flat, shown, strict=False):
        draw_subspace(ax, cluster, most)
        ax.set_ylim(lines - 0.5, -0.5)
    for ax in grid.flat[max(len(shown) - columns, 0) : len(shown)]:
        ax.set_xlabel("probability that it belongs to the subspace", fontsize=SMALL)
    handles, words = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside upper left", ncols=3, fontsize=SMALL, frameon=False)
    note_more(figure, len(clusters) - len(shown))
    return figure


def draw_subspace(ax: Axes, cluster: ClusterExplanation, most: int) -> None:
    """One panel of `plot_subspaces`."""
    shown = surest_features(cluster, most)
    y = np.arange(len(shown))
    ax.hlines(y, [f.prior for f in shown], [f.subspace_probability for f in shown], color=FAINT, lw=2, zorder=1)
    ax.scatter([f.prior for f in shown], y, marker="|", s=60, color=GREY, zorder=2, label="before the data (q)")
    for key, style, word in (
        (True, {"color": INK}, "key feature"),
        (False, {"facecolor": "white", "edgecolor": INK}, "no key feature"),
    ):
        at = [k for k, f in enumerate(shown) if f.key == key]
        ax.scatter([shown[k].subspace_probability for k in at], at, s=34, zorder=3, label=word, **style)  # type: ignore[arg-type]
    label_y(ax, [role_words(f) for f in shown], 30)
    ax.axvline(0.5, color=GREY, lw=0.8, ls=":")
    ax.set_xlim(-0.03, 1.03)
    hidden = sum(f.value is not False or f.key for f in cluster.features) - len(shown)
    title(ax, cluster.title, 36, not_shown((hidden, "features of the prototype")))
    tidy(ax)


def surest_features(cluster: ClusterExplanation, most: int) -> list[FeatureRole]:
    """The key features, the most telling first, then what the prototype has that is nearest to it; what it lacks last."""
    keys = cluster.key_features
    others = [f for f in most_telling(cluster.features) if not f.key and f.value is not False]
    others = sorted(others, key=lambda f: (f.value is None, -f.subspace_probability))
    return sorted([*keys, *others], key=lambda f: f.value is False)[:most]


def plot_values(explanation: ModelExplanation, *, most: int = 30) -> Figure:
    """How common the most telling values are in each cluster, as a heat map; key features of a cluster are in boxes.

    Parameters
    ----------
    explanation : ModelExplanation
        From `model.explain()`.
    most : int, default=30
        Values (rows) shown: in turn the most telling of each cluster.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_values(model.explain())
    """
    clusters, rows = clusters_of(explanation), explanation.telling_values(most)
    if not rows:
        return empty_figure("No value is much more common in one cluster than in the others.")
    S = len(clusters)
    numbers = S <= 16
    heads = [f"{cluster.cluster}  {cluster.name}".rstrip() for cluster in clusters]
    below = 0.075 * min(max(map(len, heads)), HEAD)
    figure = new_figure(max(3.6 + (0.52 if numbers else 0.3) * S, 6.0), 0.24 * len(rows) + 1.4 + below)
    ax = figure.subplots()
    image = ax.imshow(np.array([row.shares for row in rows]), cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    for r, row in enumerate(rows):
        for s, (share, key) in enumerate(zip(row.shares, row.keys, strict=True)):
            if numbers:
                ink = "white" if share > 0.55 else "black"
                ax.text(s, r, f"{100 * share:.0f}", ha="center", va="center", fontsize=SMALL, color=ink)
            if key:
                ax.add_patch(Rectangle((s - 0.46, r - 0.46), 0.92, 0.92, fill=False, ec=ACCENT, lw=1.8))
    label_y(ax, [row.words for row in rows], 40)
    label_x(ax, heads, HEAD, rotation=90)
    ax.set_xlabel("cluster", fontsize=NORMAL)
    hidden = len(explanation.values) - len(rows)
    title(ax, "Share of the cluster with this value, in %", 60, f"{counted(hidden, 'value')} not shown" if hidden else "")
    ax.tick_params(length=0)
    bar = figure.colorbar(image, ax=ax, shrink=0.7, aspect=25, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels(["0 %", "50 %", "100 %"], fontsize=SMALL)
    handle = Rectangle((0, 0), 1, 1, fill=False, ec=ACCENT, lw=1.8)
    figure.legend([handle], ["key feature"], loc="outside lower left", fontsize=SMALL, frameon=False)
    return figure


# --- cases -------------------------------------------------------------------------------------------------------------------


def plot_memberships(fitted: Fitted, *, made: bool = True) -> Figure:
    """How much of each case belongs to each cluster: cases side by side, by main cluster, the surest first.

    Parameters
    ----------
    fitted : Fitted
        `model.fitted_`.
    made : bool, default=True
        Show names that were made of what sets clusters apart; names that a person gave are always shown.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_memberships(model.fitted_)
    """
    check_fitted(fitted)
    member, sizes = fitted.posterior.memberships, fitted.sizes
    used = np.flatnonzero(sizes)
    rows = np.flatnonzero(fitted.known)
    order = rows[np.lexsort((-member[rows].max(axis=1), fitted.labels[rows]))]
    N, S = len(order), len(used)
    figure = new_figure(9.0, max(0.3 * S, 0.6) + 1.25)
    ax = figure.subplots()
    image = ax.imshow(
        averaged(member[:, used], order, COLUMNS).T,
        cmap=HEAT,
        vmin=0,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
        extent=(0, N, S - 0.5, -0.5),
    )
    for edge in np.cumsum(sizes[used])[:-1]:
        ax.axvline(edge, color=ACCENT, lw=0.8)
    names = shown_names(fitted, made)
    label_y(ax, [f"{cluster_title(s, cut(names[s], NAME))}: {counted(int(sizes[s]))}" for s in used.tolist()], 70)
    mixed = float((member[rows].max(axis=1) < 0.9).mean())
    title(ax, f"Memberships of {counted(N)}", 60, f"{mixed:.0%} have less than 90 % in one cluster")
    ax.set_xlabel("cases, by main cluster, the surest first", fontsize=NORMAL)
    bar = figure.colorbar(image, ax=ax, ticks=[0, 0.5, 1], fraction=0.03, aspect=max(0.3 * S, 0.6) / 0.18)
    bar.ax.set_yticklabels(["0 %", "50 %", "100 %"], fontsize=SMALL)
    ax.tick_params(labelsize=SMALL, length=2)
    return figure


def averaged(member: np.ndarray, order: np.ndarray, most: int) -> np.ndarray:
    """(columns, S) Memberships in order, at most so many columns of equal width; a case between two is shared by them."""
    N, S = len(order), member.shape[1]
    if most >= N:
        return np.asarray(member[order])
    edges = np.linspace(0, N, most + 1)
    whole = np.floor(edges).astype(int)
    picture = np.empty((most, S))
    for s in range(S):
        column = np.append(member[order, s], 0.0)
        sums = np.append(0.0, np.cumsum(column))
        picture[:, s] = np.diff(sums[whole] + (edges - whole) * column[whole]) * most / N
    return picture


def plot_agreement(agreement: AgreementExplanation, *, most: int = 25) -> Figure:
    """Which members agree with the prototype on which key features.

    Parameters
    ----------
    agreement : AgreementExplanation
        From `model.explain_agreement(cluster)`.
    most : int, default=25
        Key features shown, the most telling first.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_agreement(model.explain_agreement(0))
    """
    check_kind(agreement, AgreementExplanation, "model.explain_agreement(cluster)")
    shown, rows = agreement.features[:most], agreement.members
    if not shown or not rows:
        return empty_figure(str(agreement))
    words = [f"{cut(phrase(cut(f.name, 26), f.value), 28)}  {f.agreeing:.0%}" for f in shown]
    figure = new_figure(max(3.2 + 0.3 * len(shown), 7.4), 0.21 * len(rows) + 1.35 + 0.075 * max(map(len, words)))
    ax = figure.subplots()
    cells = np.array([[2 if a is None else int(a) for a in row.agrees[: len(shown)]] for row in rows])
    ax.imshow(cells, cmap=ListedColormap(["white", INK, FAINT]), vmin=0, vmax=2, aspect="auto")
    for state, marker, colour in ((0, "x", ACCENT), (2, "$?$", GREY)):
        r, c = np.nonzero(cells == state)
        ax.scatter(c, r, marker=marker, s=24, color=colour, linewidths=1.2 if state == 0 else 0)
    ax.hlines(np.arange(len(rows) + 1) - 0.5, -0.5, len(shown) - 0.5, color=FAINT, lw=0.6)
    ax.vlines(np.arange(len(shown) + 1) - 0.5, -0.5, len(rows) - 0.5, color=FAINT, lw=0.6)
    ax.set_xlim(-0.5, max(len(shown), 12) - 0.5)
    ax.spines[:].set_visible(False)
    ax.tick_params(which="both", length=0)
    label_y(ax, [row.name for row in rows], 30)
    label_x(ax, words, 40, rotation=90)
    left = not_shown((agreement.size - len(rows), "members"), (len(agreement.features) - len(shown), "key features"))
    who = f"who agrees with {cut(agreement.prototype.name, 40)} {agreement.prototype.sure}"
    title(ax, f"C{agreement.title[1:]}", 60, "\n".join(filter(None, (who, left))))
    handles = [
        Rectangle((0, 0), 1, 1, color=INK),
        ax.scatter([], [], marker="x", color=ACCENT, s=24),
        ax.scatter([], [], marker="$?$", color=GREY, s=24),
    ]
    meaning = ["agrees", "differs", "one of the two is missing"]
    figure.legend(handles, meaning, loc="outside lower left", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def plot_case(case: CaseExplanation, *, most: int = 12) -> Figure:
    """Where a case belongs, with the range over draws, and which of its values speak for and against its main cluster.

    Parameters
    ----------
    case : CaseExplanation
        From `model.explain_case(case)`.
    most : int, default=12
        Values and clusters shown, the weightiest first.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
    >>> figure = plots.plot_case(model.explain_case({"ingredients": ["rum", "lime", "ice"]}))
    """
    check_kind(case, CaseExplanation, "model.explain_case(case)")
    members = case.memberships[:most]
    parts = case.reasons[0].contributions[:most] if case.reasons else ()
    tall = max(0.27 * max(len(parts), len(members)) + 1.3, 2.2)
    figure = new_figure(11.5 if parts else 6.0, tall)
    axes = figure.subplots(1, 2 if parts else 1, squeeze=False)[0]
    ax, y = axes[0], np.arange(len(members))
    ax.barh(y, [m.mean for m in members], color=INK, height=0.55)
    ax.hlines(y, [m.low for m in members], [m.high for m in members], color=ACCENT, lw=2.5)
    ax.set_xlim(0, 1.03)
    ax.invert_yaxis()
    label_y(ax, [case.title_of(m.cluster) for m in members], 30)
    ax.set_xlabel("membership; line: 90 % of the draws", fontsize=SMALL)
    like = "without a known value" if case.is_empty else f"like {cut(case.prototype.name, 34)} {case.prototype.sure}"
    left = not_shown((len(case.memberships) - len(members), "clusters"))
    title(ax, case.name or "A case", 44, "\n".join(filter(None, (like, left))))
    tidy(ax)
    if parts:
        draw_reason(axes[1], case, len(parts))
    return figure


def draw_reason(ax: Axes, case: CaseExplanation, most: int) -> None:
    """What speaks for the main cluster of a case, and not for the nearest other one."""
    reason = case.reasons[0]
    parts, y = reason.contributions[:most], np.arange(most)
    weight = np.array([c.weight for c in parts])
    bars = ax.barh(y, weight, height=0.6, color=np.where(weight >= 0, INK, "white").tolist())
    for bar, w in zip(bars, weight, strict=True):
        if w < 0:
            bar.set(edgecolor=ACCENT, hatch="////", linewidth=1.2)
    ax.axvline(0, color="black", lw=0.8)
    ax.invert_yaxis()
    label_y(ax, [phrase(cut(c.feature, 26), c.value) for c in parts], 34)
    ax.set_xlabel(f"← speaks for cluster {reason.there}    log odds    for cluster {reason.here} →", fontsize=SMALL)
    smaller = len(reason.contributions) - len(parts)
    together = f"together {reason.total:+.1f}" + (f" with {counted(smaller, 'smaller one')}" if smaller else "")
    title(ax, f"Why cluster {reason.here} and not {reason.there}", 44, together)
    tidy(ax)
