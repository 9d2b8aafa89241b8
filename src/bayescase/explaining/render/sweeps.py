"""Pictures of a run: which case was the prototype at which sweep, and prototypes and subspaces over the sweeps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...errors import ParameterError, Setting
from ...fitted import Fitted
from ...sampling.posterior import AGREE
from ...sampling.values import is_int
from ..clusters import explain
from ..explanation import ClusterExplanation
from ..naming import shown_names
from ..words import counted, cut
from .checks import check_shape, check_sweeps, role_words
from .drawing import (
    ACCENT,
    FAINT,
    GREY,
    INK,
    NORMAL,
    SMALL,
    Axes,
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
from .images import APART, EMPTY, MARKED, PLAIN, empty_apart, image_key, pixels

MANY_CLUSTERS = 12  # strips or panels of a figure that has one per cluster
SHADES = ("#0b2545", "#3f6ca8", "#8fb3d9", "#c9dcee", "#f2f2f2")
RANKS = ("the prototype", "next", "third", "fourth", "another case")
NAME = 32  # letters of a name beside a strip
MANY_CHANGES = 40  # lines for changes of the prototype


def plot_ribbon(fitted: Fitted, *, made: bool = True) -> Figure:
    """Which case is the prototype of each cluster at each kept sweep, and the log joint probability below.

    Parameters
    ----------
    fitted : Fitted
        `model.fitted_`. The chains that its results rest on are shown, a strip for each.
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
    >>> figure = plots.plot_ribbon(model.fitted_)
    """
    check_sweeps(fitted)
    p = fitted.posterior.p  # (chains, draws, S)
    chains, draws, _ = p.shape
    used = np.flatnonzero(fitted.sizes)
    shown, first = used[:MANY_CLUSTERS].tolist(), fitted.kept.first
    strip = max(0.5, 0.13 * chains)
    figure = new_figure(10.0, len(shown) * (strip + 0.07) + 2.6)
    grid = figure.subplots(len(shown) + 1, 1, squeeze=False, sharex=True, height_ratios=[strip] * len(shown) + [1.35])[:, 0]
    names = shown_names(fitted, made)
    extent = (first, first + draws * fitted.plan.thin, chains, 0)
    for s, ax in zip(shown, grid, strict=False):
        draw_strip(ax, fitted, s, extent)
        ax.set_yticks([chains / 2], ["\n".join(filter(None, (f"cluster {s}", cut(names[s], NAME))))], fontsize=SMALL)
        ax.get_yticklabels()[0].set_parse_math(False)
    draw_log_joint(grid[-1], fitted)
    handles = [Rectangle((0, 0), 1, 1, fc=shade, ec=GREY) for shade in SHADES]
    figure.legend(handles, RANKS, loc="outside upper left", ncols=5, fontsize=SMALL, frameon=False)
    note_more(figure, len(used) - len(shown))
    return figure


def draw_strip(ax: Axes, fitted: Fitted, s: int, extent: tuple[float, float, float, float]) -> None:
    """The case that was the prototype of cluster s, sweep by sweep: the shown one, then the most probable others."""
    p = fitted.posterior.p[:, :, s]
    ranked = [fitted.prototype_ranking[s][0]]
    ranked += [c for c in fitted.candidates[s] if ranked[0].row not in c.ties][:3]
    ranks = np.full(p.shape, len(SHADES) - 1)
    for rank, candidate in reversed(list(enumerate(ranked))):
        ranks[np.isin(p, candidate.ties)] = rank
    ax.imshow(
        ranks,
        cmap=ListedColormap(SHADES),
        vmin=0,
        vmax=len(SHADES) - 1,
        aspect="auto",
        interpolation="nearest",
        extent=extent,
    )
    ax.axvspan(0, extent[0], color=FAINT, alpha=0.6, lw=0)
    ax.tick_params(length=0, labelbottom=False)
    words = "\n".join(f"{cut(fitted.name_of(c.row), 26)} {c.probability:.0%}" for c in ranked[:2])
    ax.text(1.01, 0.5, words, transform=ax.transAxes, va="center", fontsize=SMALL, parse_math=False)


def draw_log_joint(ax: Axes, fitted: Fitted) -> None:
    """The trace of the chains that the results rest on."""
    pooled, first, last = np.flatnonzero(fitted.posterior.overlap >= AGREE), fitted.kept.first, fitted.n_sweeps
    traces = fitted.trace["log_joint"][pooled]
    for k, trace in enumerate(traces):
        colour = (INK, ACCENT, GREY, "#7b3294")[k // 4 % 4 if len(pooled) > 4 else k % 4]
        ax.plot(np.arange(last), trace, lw=0.9, ls=("-", "--", ":", "-.")[k % 4], color=colour)
    if first:
        ax.axvspan(0, first, color=FAINT, alpha=0.6, lw=0)
        ax.text(0.01, 0.08, "burn-in", transform=ax.transAxes, fontsize=SMALL)
    settled = traces[:, min(first // 10, last - 1) :]
    margin = 0.08 * np.ptp(settled) or 1.0
    ax.set_ylim(settled.min() - margin, settled.max() + margin)
    ax.set_xlim(0, max(last, 1))
    ax.set_xlabel("sweep", fontsize=NORMAL)
    ax.set_ylabel("log joint", fontsize=SMALL)
    tidy(ax)


class History(NamedTuple):
    """The kept draws of the best chain."""

    p: np.ndarray  # (draws, S)
    omega: np.ndarray  # (draws, S, P)
    sweeps: np.ndarray  # (draws,) number of the sweep, from 0


def plot_history(fitted: Fitted, *, image_shape: tuple[int, int] | None = None, sweeps: int = 6, most: int = 15) -> Figure:
    """Prototypes and subspaces over the sweeps of the best chain, a row per cluster.

    The model must have been fitted with `keep_draws=True`; with `burn_in=0` the picture begins at the first sweep. Images are
    shown at a few sweeps, more of them early on. For other tables, strips show when the most telling features belonged
    to the subspace, and lines when the prototype changed.

    Parameters
    ----------
    fitted : Fitted
        `model.fitted_`.
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row.
    sweeps : int, default=6
        Sweeps that images are shown at.
    most : int, default=15
        Features per cluster of other tables.

    Returns
    -------
    matplotlib.figure.Figure
        Not shown and not saved: `figure.savefig` does that.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes, plots
    >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, keep_draws=True).fit(load_recipes().table)
    >>> figure = plots.plot_history(model.fitted_)
    """
    check_sweeps(fitted)
    if fitted.draws is None:
        raise ParameterError(
            "There is no history without every draw: fit with {keep_draws}, and with {burn_in} to see the start.",
            keep_draws=Setting("keep_draws", True),
            burn_in=Setting("burn_in", 0),
        )
    best = int(np.argmax(fitted.draws.log_joint.mean(axis=1)))
    at = fitted.kept.first + fitted.plan.thin * np.arange(fitted.draws.p.shape[1])
    history = History(fitted.draws.p[best], fitted.draws.omega[best], at)
    clusters = explain(fitted).clusters
    if image_shape is None:
        figure = history_strips(clusters[:MANY_CLUSTERS], history, most)
        note_more(figure, len(clusters) - MANY_CLUSTERS)
        return figure
    if not is_int(sweeps) or sweeps < 1:
        raise ParameterError("{parameter} must be a positive whole number, not {value!r}.", parameter="sweeps", value=sweeps)
    shape = check_shape(image_shape, len(fitted.encoding.features))
    return history_images(fitted, clusters, history, int(sweeps), shape)


def history_images(
    fitted: Fitted, clusters: tuple[ClusterExplanation, ...], history: History, sweeps: int, shape: tuple[int, int]
) -> Figure:
    draws = len(history.p)
    chosen = np.unique(np.round(np.geomspace(1, draws, min(sweeps, draws))).astype(int) - 1)
    size, gap, shown = 1.0, 0.12, clusters[:MANY_CLUSTERS]
    width = max(1.0 + len(chosen) * (size + gap) + 0.2, 6.8)
    more = len(clusters) - len(shown)
    sheet = Sheet(width, 1.0 + len(shown) * (size + gap) + (0.35 if more else 0.1))
    if more:
        words = f"{counted(more, 'smaller cluster')} not shown"
        sheet.write(1.0, 1.1 + len(shown) * (size + gap), words, size=SMALL, color=GREY)
    image_key(sheet, 0.2, 0.22, width)
    for k, draw in enumerate(chosen):
        sheet.write(1.0 + k * (size + gap), 0.8, f"sweep {history.sweeps[draw] + 1}", size=SMALL)
    places = np.maximum(np.diff(fitted.data.offset) - 1, 1)
    for row, cluster in enumerate(shown):
        s, y = cluster.cluster, 0.95 + row * (size + gap)
        sheet.write(0.15, y + size / 2, f"cluster {s}", size=SMALL)
        if cluster.named:
            sheet.write(0.15, y + size / 2 + 0.16, cluster.name, size=SMALL, fit=0.78)
        apart = [empty_apart(f) for f in cluster.features]
        for k, draw in enumerate(chosen):
            x = fitted.data.candidates[history.p[draw, s]].astype(np.int64)
            levels = np.where(x < 0, 0, x - fitted.data.offset[:-1]) / places
            roles = np.where(~history.omega[draw, s], PLAIN, np.where(levels > 0, MARKED, np.where(apart, APART, EMPTY)))
            pixels(sheet, 1.0 + k * (size + gap), y, size, levels.reshape(shape), roles.reshape(shape))
    return sheet.figure


def history_strips(clusters: tuple[ClusterExplanation, ...], history: History, most: int) -> Figure:
    features = [strip_features(cluster, most) for cluster in clusters]
    heights = [0.19 * len(of) + 0.5 for of in features]
    figure = new_figure(9.0, sum(heights) + 0.9)
    grid = figure.subplots(len(clusters), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    at = history.sweeps
    step = at[1] - at[0] if len(at) > 1 else 1
    for ax, cluster, shown in zip(grid, clusters, features, strict=True):
        s = cluster.cluster
        ax.imshow(
            history.omega[:, s, [cluster.features[j].column for j in shown]].T,
            cmap=ListedColormap(["white", INK]),
            vmin=0,
            vmax=1,
            aspect="auto",
            interpolation="nearest",
            extent=(at[0], at[-1] + step, len(shown) - 0.5, -0.5),
        )
        changes = np.flatnonzero(np.diff(history.p[:, s])) + 1
        if len(changes) <= MANY_CHANGES:
            ax.vlines(at[changes], -0.5, len(shown) - 0.5, color=ACCENT, lw=1, ls="--")
        label_y(ax, [role_words(cluster.features[j]) for j in shown], 30)
        title(ax, cluster.title, 60, f"{counted(len(changes), 'change')} of prototype")
        ax.tick_params(length=0, labelsize=SMALL)
    grid[-1].set_xlabel("sweep", fontsize=NORMAL)
    handles = [Rectangle((0, 0), 1, 1, color=INK), Line2D([], [], color=ACCENT, ls="--")]
    words = ["in the subspace", "another prototype"]
    figure.legend(handles, words, loc="outside upper left", ncols=2, fontsize=SMALL, frameon=False)
    return figure


def strip_features(cluster: ClusterExplanation, most: int) -> list[int]:
    """Key features and then what else the prototype has, the most telling first; all features if it has nothing."""
    features = cluster.features
    has = [j for j, f in enumerate(features) if f.key or f.value not in (None, False)] or list(range(len(features)))
    return sorted(has, key=lambda j: (features[j].value is False, not features[j].key, -features[j].bits))[:most]
