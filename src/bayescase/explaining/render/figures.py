"""Pictures of a fitted model: functions of an explanation, or of the model where its draws are needed, that return a Figure.

No function touches pyplot or any other global state: save a figure with `figure.savefig(path)`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ParameterError, ParameterTypeError, Setting
from ...fitted import Fitted
from ...sampling.posterior import AGREE
from ...sampling.problem import is_int
from ..explanation import (
    AgreementExplanation,
    CaseExplanation,
    ClusterExplanation,
    FeatureRole,
    ModelExplanation,
    as_set,
    counted,
    cut,
    explain,
    phrase,
)
from .cards import (
    APART,
    EMPTY,
    MARKED,
    PLAIN,
    empty_apart,
    image_cards,
    image_key,
    left_out,
    pixels,
    set_cards,
    table_cards,
    telling_features,
)
from .drawing import (
    FAINT,
    GREY,
    HEAT,
    INK,
    LACK,
    NORMAL,
    SMALL,
    Figure,
    Line2D,
    ListedColormap,
    Rectangle,
    Sheet,
    label_y,
    new_figure,
    note_more,
    tidy,
    title,
)

MANY_CLUSTERS = 12  # panels of a figure that has one per cluster


# --- prototypes -----------------------------------------------------------------------------------------------------------


def plot_prototypes(
    explanation: ModelExplanation | ClusterExplanation, *, image_shape: tuple[int, int] | None = None, most: int = 10
) -> Figure:
    """A card per cluster: its prototype, the features that matter, and how common their values are.

    Parameters
    ----------
    explanation : ModelExplanation or ClusterExplanation
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row. Else a table of present and absent features is shown as sets,
        with what matters in a box, and any other table as a list of values.
    most : int, default=10
        Features that a card of a table lists; the rest are counted.

    Returns
    -------
    matplotlib.figure.Figure
    """
    clusters = clusters_of(explanation)
    if image_shape is not None:
        return image_cards(clusters, check_shape(image_shape, len(clusters[0].features)))
    return set_cards(clusters) if as_set(clusters[0].features) else table_cards(clusters, most)


# --- subspaces, values, memberships ------------------------------------------------------------------------------------------


def plot_subspaces(explanation: ModelExplanation | ClusterExplanation, *, most: int = 15) -> Figure:
    """How probable it is that a feature matters, beside the prior: a panel per cluster, the surest features first.

    Parameters
    ----------
    explanation : ModelExplanation or ClusterExplanation
    most : int, default=15
        Features per cluster: the key ones, the most telling first, and then the nearest to being one.

    Returns
    -------
    matplotlib.figure.Figure
    """
    clusters, more = first_clusters(explanation)
    columns = min(3, len(clusters))
    rows = math.ceil(len(clusters) / columns)
    lines = min(most, len(clusters[0].features))
    figure = new_figure(max(4.2 * columns, 5.0), rows * (0.23 * lines + 0.85) + 0.55)
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.flat[len(clusters) :]:
        ax.set_axis_off()
    for ax, cluster in zip(grid.flat, clusters, strict=False):
        shown = surest_features(cluster, most)
        y = np.arange(len(shown))
        ax.hlines(y, [f.prior for f in shown], [f.probability for f in shown], color=FAINT, lw=2, zorder=1)
        ax.scatter([f.prior for f in shown], y, marker="|", s=60, color=GREY, zorder=2, label="before the data (q)")
        for key, style, word in (
            (True, {"color": INK}, "matters"),
            (False, {"facecolor": "white", "edgecolor": INK}, "does not"),
        ):
            at = [k for k, f in enumerate(shown) if f.key == key]
            ax.scatter([shown[k].probability for k in at], at, s=34, zorder=3, label=word, **style)
        label_y(ax, [role_words(f) for f in shown], 30)
        ax.axvline(0.5, color=GREY, lw=0.8, ls=":")
        ax.set_xlim(-0.03, 1.03)
        ax.set_ylim(lines - 0.5, -0.5)
        hidden = len(cluster.features) - len(shown)
        title(
            ax,
            f"Cluster {cluster.cluster}, like {cluster.prototype.name}",
            44,
            f"{hidden} features not shown" if hidden else "",
        )
        tidy(ax)
    for ax in grid.flat[max(len(clusters) - columns, 0) : len(clusters)]:
        ax.set_xlabel("probability that the feature matters", fontsize=SMALL)
    handles, words = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, words, loc="outside upper left", ncols=3, fontsize=SMALL, frameon=False)
    note_more(figure, more)
    return figure


def surest_features(cluster, most):
    others = sorted((f for f in cluster.features if not f.key), key=lambda f: -f.probability)
    return [*cluster.key_features, *others][:most]


def plot_values(explanation: ModelExplanation, *, most: int = 30) -> Figure:
    """How common the most telling values are in each cluster, as a heat map; the prototype's values are in boxes.

    Parameters
    ----------
    explanation : ModelExplanation
    most : int, default=30
        Values (rows) shown, those that tell a cluster best from the rest first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = telling_values(explanation, most)
    S = len(explanation.clusters)
    numbers = S <= 16
    figure = new_figure(max(3.6 + (0.52 if numbers else 0.3) * S, 6.0), 0.24 * len(rows) + 1.5)
    ax = figure.subplots()
    share = np.array([row[2] for row in rows])
    picture = ax.imshow(share, cmap=HEAT, vmin=0, vmax=1, aspect="auto")
    for r, (j, value, chances) in enumerate(rows):
        for s, cluster in enumerate(explanation.clusters):
            if numbers:
                ink = "white" if chances[s] > 0.55 else "black"
                ax.text(s, r, f"{100 * chances[s]:.0f}", ha="center", va="center", fontsize=SMALL, color=ink)
            role = cluster.features[j]
            if role.key and role.value == value:
                ax.add_patch(Rectangle((s - 0.46, r - 0.46), 0.92, 0.92, fill=False, ec=LACK, lw=1.8))
    features = explanation.clusters[0].features
    label_y(ax, [value_words(features[j].name, value) for j, value, _ in rows], 38)
    ax.set_xticks(range(S), [str(cluster.cluster) for cluster in explanation.clusters], fontsize=SMALL)
    ax.set_xlabel("cluster", fontsize=NORMAL)
    hidden = explanation.n_features - len({j for j, _, _ in rows})
    title(ax, "Share of the cluster with this value, in %", 60, f"{hidden} features not shown" if hidden else "")
    ax.tick_params(length=0)
    bar = figure.colorbar(picture, ax=ax, shrink=0.7, aspect=25, ticks=[0, 0.5, 1])
    bar.ax.set_yticklabels(["0 %", "50 %", "100 %"], fontsize=SMALL)
    handle = Rectangle((0, 0), 1, 1, fill=False, ec=LACK, lw=1.8)
    figure.legend([handle], ["the prototype has it, and it matters"], loc="outside lower left", fontsize=SMALL, frameon=False)
    return figure


def telling_values(explanation, most):
    """[(feature, value, share in each cluster)]: in turn the most telling values of each cluster, by cluster."""
    clusters = explanation.clusters
    weights = np.array([cluster.share for cluster in clusters])
    table = {}
    for j, first in enumerate(clusters[0].features):
        for v, (value, _, _) in enumerate(first.distribution):
            table[j, v] = (value, np.array([cluster.features[j].distribution[v][1] for cluster in clusters]))
    keys, share = list(table), np.array([chances for _, chances in table.values()])
    rest = (share @ weights)[:, None] - share * weights
    elsewhere = rest / np.maximum(1 - weights, 1e-12)
    score = share * np.log(np.maximum(share, 1e-300) / np.maximum(elsewhere, 1e-300)) if len(clusters) > 1 else share
    ranked = np.argsort(-score, axis=0, kind="stable")  # (values, S)
    chosen: dict[int, int] = {}
    for place in range(len(keys)):
        for s in range(len(clusters)):
            if len(chosen) < min(most, len(keys)):
                chosen.setdefault(int(ranked[place, s]), s)
    order = sorted(chosen, key=lambda k: (int(np.argmax(score[k])), -score[k].max()))
    return [(keys[k][0], table[keys[k]][0], share[k]) for k in order]


def plot_memberships(model: Any) -> Figure:
    """How much of each case belongs to each cluster: cases side by side, by main cluster, the surest first.

    Parameters
    ----------
    model : fitted BayesianCaseModel

    Returns
    -------
    matplotlib.figure.Figure
    """
    fitted = fitted_of(model)
    member = fitted.posterior.memberships
    N, S = member.shape
    order = np.lexsort((-member.max(axis=1), fitted.labels))
    bins = np.array_split(order, min(N, 1200))  # more cases than pixels: neighbours are averaged
    picture = np.stack([member[rows].mean(axis=0) for rows in bins], axis=1)
    figure = new_figure(9.0, max(0.3 * S, 0.6) + 1.25)
    ax = figure.subplots()
    image = ax.imshow(picture, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest", extent=(0, N, S - 0.5, -0.5))
    sizes = np.bincount(fitted.labels, minlength=S)
    for edge in np.cumsum(sizes)[:-1]:
        ax.axvline(edge, color=LACK, lw=0.8)
    label_y(ax, [f"cluster {s}: {counted(sizes[s])}" for s in range(S)], 40)
    mixed = float((member.max(axis=1) < 0.9).mean())
    title(ax, f"Memberships of {counted(N)}", 60, f"{mixed:.0%} have less than 90 % in one cluster")
    ax.set_xlabel("cases, by main cluster, the surest first", fontsize=NORMAL)
    bar = figure.colorbar(image, ax=ax, ticks=[0, 0.5, 1], fraction=0.03, aspect=max(0.3 * S, 0.6) / 0.18)
    bar.ax.set_yticklabels(["0 %", "50 %", "100 %"], fontsize=SMALL)
    ax.tick_params(labelsize=SMALL, length=2)
    return figure


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
    """
    shown = agreement.features[:most]
    rows = agreement.members
    if not shown or not rows:
        figure = new_figure(6.0, 1.2)
        figure.text(
            0.03, 0.5, f"Cluster {agreement.cluster} has no key features that its members could agree on.", fontsize=NORMAL
        )
        return figure
    longest = max(len(value_words(f.name, f.value)) for f in shown)
    figure = new_figure(max(3.2 + 0.3 * len(shown), 6.2), 0.21 * len(rows) + 1.35 + 0.075 * min(longest, 28))
    ax = figure.subplots()
    cells = np.array([[2 if a is None else int(a) for a in row.agrees[: len(shown)]] for row in rows])
    ax.imshow(cells, cmap=ListedColormap(["white", INK, FAINT]), vmin=0, vmax=2, aspect="auto")
    for state, marker, colour in ((0, "x", LACK), (2, "$?$", GREY)):
        r, c = np.nonzero(cells == state)
        ax.scatter(c, r, marker=marker, s=24, color=colour, linewidths=1.2 if state == 0 else 0)
    ax.hlines(np.arange(len(rows) + 1) - 0.5, -0.5, len(shown) - 0.5, color=FAINT, lw=0.6)
    ax.vlines(np.arange(len(shown) + 1) - 0.5, -0.5, len(rows) - 0.5, color=FAINT, lw=0.6)
    ax.set_xlim(-0.5, max(len(shown), 12) - 0.5)
    ax.spines[:].set_visible(False)
    ax.tick_params(which="both", length=0)
    label_y(ax, [row.name for row in rows], 30)
    words = [f"{cut(value_words(f.name, f.value), 28)}  {f.agreeing:.0%}" for f in shown]
    ax.set_xticks(range(len(shown)), words, rotation=90, fontsize=SMALL)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
    left = left_out([(agreement.size - len(rows), "members"), (len(agreement.features) - len(shown), "key features")])
    title(ax, f"Cluster {agreement.cluster}: who agrees with {agreement.prototype.name}", 70, left)
    handles = [
        Rectangle((0, 0), 1, 1, color=INK),
        ax.scatter([], [], marker="x", color=LACK, s=24),
        ax.scatter([], [], marker="$?$", color=GREY, s=24),
    ]
    words = ["agrees", "differs", "one of the two is missing"]
    figure.legend(handles, words, loc="outside lower left", ncols=3, fontsize=SMALL, frameon=False)
    return figure


def plot_case(case: CaseExplanation, *, most: int = 12) -> Figure:
    """Where a case belongs, with the range over draws, and which of its values speak for and against its main cluster.

    Parameters
    ----------
    case : CaseExplanation
    most : int, default=12
        Values and clusters shown, the weightiest first.

    Returns
    -------
    matplotlib.figure.Figure
    """
    members = case.memberships[:most]
    parts = case.reasons[0].contributions[:most] if case.reasons else ()
    tall = max(0.27 * max(len(parts), len(members)) + 1.3, 2.2)
    figure = new_figure(10.0 if parts else 5.5, tall)
    axes = np.atleast_1d(figure.subplots(1, 2 if parts else 1))
    ax, y = axes[0], np.arange(len(members))
    ax.barh(y, [m.mean for m in members], color=INK, height=0.55)
    ax.hlines(y, [m.low for m in members], [m.high for m in members], color=LACK, lw=2.5)
    ax.set_xlim(0, 1.03)
    ax.invert_yaxis()
    label_y(ax, [f"cluster {m.cluster}" for m in members], 30)
    ax.set_xlabel("membership; line: 90 % of the draws", fontsize=SMALL)
    title(ax, f"Like {case.prototype.name}", 44, left_out([(len(case.memberships) - len(members), "clusters")]))
    tidy(ax)
    if parts:
        ax, y, reason = axes[1], np.arange(len(parts)), case.reasons[0]
        weight = np.array([c.weight for c in parts])
        bars = ax.barh(y, weight, height=0.6, color=np.where(weight >= 0, INK, "white").tolist())
        for bar, w in zip(bars, weight, strict=True):
            if w < 0:
                bar.set(edgecolor=LACK, hatch="////", linewidth=1.2)
        ax.axvline(0, color="black", lw=0.8)
        ax.invert_yaxis()
        label_y(ax, [value_words(c.feature, c.value) for c in parts], 34)
        ax.set_xlabel(f"← speaks for cluster {reason.there}    log odds    for cluster {reason.here} →", fontsize=SMALL)
        smaller = len(reason.contributions) - len(parts)
        together = f"together {reason.total:+.1f}" + (f" with {smaller} smaller ones" if smaller else "")
        title(ax, f"Why cluster {reason.here} and not {reason.there}", 44, together)
        tidy(ax)
    return figure


# --- over the sweeps ---------------------------------------------------------------------------------------------------------


def plot_ribbon(model: Any) -> Figure:
    """Which case is the prototype of each cluster at each kept sweep, and the log joint probability below.

    Parameters
    ----------
    model : fitted BayesianCaseModel
        The chains that its results rest on are shown, a strip for each.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fitted = fitted_of(model)
    p = fitted.posterior.p  # (chains, draws, S)
    chains, draws, S = p.shape
    shown = min(S, MANY_CLUSTERS)
    ranks = np.full((shown, chains, draws), 4)
    labels = []
    for s in range(shown):
        ranked = fitted.candidates[s]
        for rank, candidate in reversed(list(enumerate(ranked[:4]))):
            ranks[s][np.isin(p[:, :, s], candidate.ties)] = rank
        words = [f"{cut(fitted.name_of(c.row), 26)} {c.probability:.0%}" for c in ranked[:2]]
        labels.append("\n".join(words))
    first, last = fitted.kept.first, fitted.n_sweeps
    strip = max(0.5, 0.13 * chains)
    figure = new_figure(10.0, shown * (strip + 0.07) + 2.6)
    grid = figure.subplots(shown + 1, 1, squeeze=False, sharex=True, height_ratios=[strip] * shown + [1.35])[:, 0]
    shades = ["#0b2545", "#3f6ca8", "#8fb3d9", "#c9dcee", "#f2f2f2"]
    end = first + draws * fitted.plan.thin
    for s, ax in enumerate(grid[:-1]):
        ax.imshow(
            ranks[s],
            cmap=ListedColormap(shades),
            vmin=0,
            vmax=4,
            aspect="auto",
            interpolation="nearest",
            extent=(first, end, chains, 0),
        )
        ax.axvspan(0, first, color=FAINT, alpha=0.6, lw=0)
        ax.set_yticks([chains / 2], [f"cluster {s}"], fontsize=SMALL)
        ax.tick_params(length=0, labelbottom=False)
        ax.text(1.01, 0.5, labels[s], transform=ax.transAxes, va="center", fontsize=SMALL, parse_math=False)
    ax = grid[-1]
    pooled = np.flatnonzero(fitted.posterior.overlap >= AGREE)
    for k, c in enumerate(pooled):
        ax.plot(
            np.arange(fitted.n_sweeps),
            fitted.trace["log_joint"][c],
            lw=0.9,
            ls=("-", "--", ":", "-.")[k % 4],
            color=(INK, LACK, GREY, "#7b3294")[k // 4 % 4 if len(pooled) > 4 else k % 4],
        )
    if first:
        ax.axvspan(0, first, color=FAINT, alpha=0.6, lw=0)
        ax.text(0.01, 0.08, "burn-in", transform=ax.transAxes, fontsize=SMALL)
    settled = fitted.trace["log_joint"][pooled][:, min(first // 10, last - 1) :]
    margin = 0.08 * np.ptp(settled) or 1.0
    ax.set_ylim(settled.min() - margin, settled.max() + margin)
    ax.set_xlim(0, max(last, 1))
    ax.set_xlabel("sweep", fontsize=NORMAL)
    ax.set_ylabel("log joint", fontsize=SMALL)
    tidy(ax)
    handles = [Rectangle((0, 0), 1, 1, fc=shade, ec=GREY) for shade in shades]
    words = ["the prototype", "second", "third", "fourth", "another case"]
    figure.legend(handles, words, loc="outside upper left", ncols=5, fontsize=SMALL, frameon=False)
    note_more(figure, S - shown)
    return figure


def plot_history(model: Any, *, image_shape: tuple[int, int] | None = None, sweeps: int = 6, most: int = 15) -> Figure:
    """Prototypes and subspaces over the sweeps of the best chain, a row per cluster.

    The model must have been fitted with `keep_draws=True`; with `burn_in=0` the picture begins at the first sweep. Images are
    shown at a few sweeps, more of them early on. For other tables, strips show when the most telling features belonged
    to the subspace, and lines when the prototype changed.

    Parameters
    ----------
    model : fitted BayesianCaseModel
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row.
    sweeps : int, default=6
        Sweeps that images are shown at.
    most : int, default=15
        Features per cluster of other tables.

    Returns
    -------
    matplotlib.figure.Figure
    """
    fitted = fitted_of(model)
    if fitted.draws is None:
        raise ParameterError(
            "There is no history without every draw: fit with {keep_draws}, and with {burn_in} to see the start.",
            keep_draws=Setting("keep_draws", True),
            burn_in=Setting("burn_in", 0),
        )
    best = int(np.argmax(fitted.draws.log_joint.mean(axis=1)))
    p, omega = fitted.draws.p[best], fitted.draws.omega[best]
    at = fitted.kept.first + fitted.plan.thin * np.arange(len(p))
    shown = min(fitted.n_clusters, MANY_CLUSTERS)
    explained = explain(fitted)
    if image_shape is None:
        figure = history_strips(explained.clusters[:shown], p, omega, at, most)
        note_more(figure, fitted.n_clusters - shown)
    else:
        if not is_int(sweeps) or sweeps < 1:
            raise ParameterError(
                "{parameter} must be a positive whole number, not {value!r}.", parameter="sweeps", value=sweeps
            )
        shape = check_shape(image_shape, explained.n_features)
        chosen = np.unique(np.round(np.geomspace(1, len(p), min(int(sweeps), len(p)))).astype(int) - 1)
        figure = history_images(fitted, explained.clusters[:shown], p, omega, at, chosen, shape)
    return figure


def history_images(fitted, clusters, p, omega, at, chosen, shape):
    size, gap = 1.0, 0.12
    width = max(1.0 + len(chosen) * (size + gap) + 0.2, 6.8)
    more = fitted.n_clusters - len(clusters)
    sheet = Sheet(width, 1.0 + len(clusters) * (size + gap) + (0.35 if more else 0.1))
    if more:
        sheet.write(1.0, 1.1 + len(clusters) * (size + gap), f"{more} smaller clusters not shown", size=SMALL, color=GREY)
    image_key(sheet, 0.2, 0.22, width)
    for k, draw in enumerate(chosen):
        sheet.write(1.0 + k * (size + gap), 0.8, f"sweep {at[draw] + 1}", size=SMALL)
    codes, offset = fitted.data.candidates, fitted.data.offset
    places = np.maximum(np.diff(offset) - 1, 1)
    for s, cluster in enumerate(clusters):
        y = 0.95 + s * (size + gap)
        sheet.write(0.15, y + size / 2, f"cluster {s}", size=SMALL)
        for k, draw in enumerate(chosen):
            x = codes[p[draw, s]].astype(np.int64)
            values = np.where(x < 0, 0, x - offset[:-1]) / places
            apart = [empty_apart(f) for f in cluster.features]
            roles = np.where(~omega[draw, s], PLAIN, np.where(values > 0, MARKED, np.where(apart, APART, EMPTY)))
            pixels(sheet, 1.0 + k * (size + gap), y, size, values.reshape(shape), roles.reshape(shape))
    return sheet.figure


def history_strips(clusters, p, omega, at, most):
    lines = min(most, len(clusters[0].features))
    figure = new_figure(9.0, len(clusters) * (0.19 * lines + 0.5) + 0.9)
    grid = figure.subplots(len(clusters), 1, squeeze=False, sharex=True)[:, 0]
    step = at[1] - at[0] if len(at) > 1 else 1
    for s, (ax, cluster) in enumerate(zip(grid, clusters, strict=True)):
        shown, left = telling_features(cluster, most)
        shown = [f for f in shown if f.value is not None] or shown  # unless the prototype has no value at all
        at_j = [next(j for j, f in enumerate(cluster.features) if f is role) for role in shown]
        ax.imshow(
            omega[:, s, at_j].T,
            cmap=ListedColormap(["white", INK]),
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            extent=(at[0], at[-1] + step, len(shown) - 0.5, -0.5),
        )
        changes = np.flatnonzero(np.diff(p[:, s])) + 1
        if len(changes) <= 40:
            ax.vlines(at[changes], -0.5, len(shown) - 0.5, color=LACK, lw=1, ls="--")
        label_y(ax, [role_words(f) for f in shown], 30)
        title(
            ax,
            f"Cluster {s}, like {cluster.prototype.name}",
            60,
            f"{len(changes)} changes of prototype" + (f"; {left}" if left else ""),
        )
        ax.tick_params(length=0, labelsize=SMALL)
    grid[-1].set_xlabel("sweep", fontsize=NORMAL)
    handles = [Rectangle((0, 0), 1, 1, color=INK), Line2D([], [], color=LACK, ls="--")]
    figure.legend(
        handles, ["in the subspace", "another prototype"], loc="outside upper left", ncols=2, fontsize=SMALL, frameon=False
    )
    return figure


# --- words and checks ---


def role_words(role: FeatureRole):
    return value_words(role.name, role.value)


def value_words(name, value):
    return phrase(cut(name, 26), value)


def fitted_of(model) -> Fitted:
    """Of a fitted estimator, or what is one already."""
    return model if isinstance(model, Fitted) else model.fitted_


def clusters_of(explanation) -> tuple[ClusterExplanation, ...]:
    if isinstance(explanation, ClusterExplanation):
        return (explanation,)
    if isinstance(explanation, ModelExplanation):
        return explanation.clusters
    raise ParameterTypeError(
        "This takes what model.explain() returns, or one of its clusters, not {kind}.", kind=type(explanation).__name__
    )


def first_clusters(explanation):
    """(the clusters that a figure with a panel for each shows, how many it leaves out)."""
    clusters = clusters_of(explanation)
    return clusters[:MANY_CLUSTERS], max(len(clusters) - MANY_CLUSTERS, 0)


def check_shape(shape, n_features):
    if not isinstance(shape, (tuple, list)) or len(shape) != 2 or not all(is_int(n) and n > 0 for n in shape):
        raise ParameterError(
            "{parameter} must be two positive whole numbers, height and width, not {value!r}.",
            parameter="image_shape",
            value=shape,
        )
    if shape[0] * shape[1] != n_features:
        raise ParameterError(
            "{parameter} has {pixels} pixels, but the model has {n} features.",
            parameter=Setting("image_shape", tuple(shape)),
            pixels=shape[0] * shape[1],
            n=n_features,
        )
    return int(shape[0]), int(shape[1])
