"""Figures of an analysis. A colour never speaks alone: marks differ, too."""

import numpy as np

from ...explaining.render.drawing import ACCENT, FAINT, GREY, INK, NORMAL, SMALL, label_y, new_figure, tidy
from ...explaining.words import cut

COLOURS, MARKS = (INK, ACCENT, GREY, "#2b7a4b", "#7b3f98", "#9a7d0a"), ("o", "D", "s", "^", "v", "P")
SCALE = ("#b04300", "#e59a5f", "#c9c9c9", "#7da7d9", "#17375e")  # from disagreement to agreement


def plot_people(result, labels):
    """Slopes: a line per person, a thick one for the mean; equal lines are drawn thicker."""
    figure = new_figure(6.2, 4.2)
    ax = figure.subplots()
    conditions = list(labels)
    places = np.arange(len(conditions))
    rows = [[of.get(c, np.nan) for c in conditions] for of in result.by_person.values()]
    lines, times = np.unique(np.array(rows), axis=0, return_counts=True)
    for line, n in zip(lines, times, strict=True):
        ax.plot(places, line, color=GREY, lw=0.8 + 0.8 * (n - 1), alpha=0.55, marker="o", ms=3.5, solid_capstyle="round")
    mean = [np.mean([row[k] for row in rows if np.isfinite(row[k])] or [np.nan]) for k in range(len(conditions))]
    ax.plot(places, mean, color=ACCENT, lw=3.5, marker="D", ms=9, label="mean")
    ax.set(xlim=(-0.35, len(conditions) - 0.65), ylim=(-0.04, 1.04), xticks=places)
    ax.set_xticklabels([cut(labels[c], 24) for c in conditions], fontsize=NORMAL)
    percent_axis(ax.yaxis)
    ax.set_ylabel("right answers", fontsize=SMALL)
    ax.legend(frameon=False, fontsize=SMALL, loc="lower right")
    tidy(ax)
    return figure


def plot_tallies(tallies, labels):
    """A row per item or explanation, the hardest below."""
    conditions = list(labels)
    items = sorted(tallies, key=lambda name: sum(r for r, _ in tallies[name].values()))
    figure = new_figure(6.8, 1.1 + 0.24 * len(items))
    ax = figure.subplots()
    ax.hlines(range(len(items)), 0, 1, color=FAINT, lw=0.6, zorder=0)
    for k, c in enumerate(conditions):
        colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
        known = [(y, of[c][0] / of[c][1]) for y, of in enumerate(tallies[item] for item in items) if c in of]
        if known:
            y, x = zip(*known, strict=True)
            shift = 0.12 * (k - (len(conditions) - 1) / 2)
            ax.plot(
                x,
                np.array(y) + shift,
                mark,
                color=colour,
                ms=6,
                label=cut(labels[c], 30),
                clip_on=False,
            )
    label_y(ax, items, 24)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.7, len(items) - 0.3))
    percent_axis(ax.xaxis)
    ax.set_xlabel("right answers", fontsize=SMALL)
    ax.legend(frameon=False, fontsize=SMALL, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    tidy(ax)
    return figure


def plot_times(seconds, labels):
    names = list(seconds)
    figure = new_figure(6.8, 0.9 + 0.85 * len(names))
    ax = figure.subplots()
    rng = np.random.default_rng(0)  # spreads the dots, nothing more
    for k, c in enumerate(names):
        y = len(names) - 1 - k
        colour, mark = COLOURS[k % len(COLOURS)], MARKS[k % len(MARKS)]
        jitter = rng.uniform(-0.14, 0.14, len(seconds[c]))
        ax.plot(
            seconds[c],
            y - 0.27 + jitter * 0.8,
            mark,
            color=colour,
            ms=2.5,
            alpha=0.4,
            mew=0,
        )
        low, q1, middle, q3, high = np.quantile(seconds[c], (0.05, 0.25, 0.5, 0.75, 0.95))
        ax.plot([low, high], [y + 0.1] * 2, color=colour, lw=1.2)
        ax.plot([q1, q3], [y + 0.1] * 2, color=colour, lw=9, solid_capstyle="butt")
        ax.plot([middle], [y + 0.1], "|", color="white", ms=9, mew=2.5)
    ax.set_xscale("log")
    low, high = min(of.min() for of in seconds.values()) * 0.8, max(of.max() for of in seconds.values()) * 1.25
    ax.set(xlim=(low, high), ylim=(-0.65, len(names) - 0.45))
    ticks = [t for t in (0.1, 0.3, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 86400) if low <= t <= high]
    ax.set_xticks(ticks, [f"{t:g} s" if t < 60 else f"{t / 60:g} min" for t in ticks])
    ax.minorticks_off()
    label_y(ax, [labels[c] for c in reversed(names)], 24)
    tidy(ax)
    return figure


def plot_rating(rating, labels):
    """A bar per condition, divided by labels; the number of people stands in each part that has room."""
    names = [c for c, counts in rating.counts.items() if sum(counts)]
    figure = new_figure(6.8, 1.0 + 0.42 * len(names))
    ax = figure.subplots()
    colours = shades(len(rating.labels))
    for y, c in enumerate(reversed(names)):
        total, left = sum(rating.counts[c]), 0.0
        for k, n in enumerate(rating.counts[c]):
            ax.barh(
                y, n / total, left=left, height=0.62, color=colours[k], edgecolor="white", label=f"{k + 1}" if y == 0 else None
            )
            if n / total > 0.045:
                dark = luminance(colours[k]) < 0.4
                ax.text(
                    left + n / total / 2,
                    y,
                    str(n),
                    ha="center",
                    va="center",
                    fontsize=SMALL,
                    color="white" if dark else "black",
                )
            left += n / total
    label_y(ax, [labels[c] for c in reversed(names)], 24)
    ax.set_xlim(0, 1)
    percent_axis(ax.xaxis)
    ax.spines["left"].set_visible(False)
    words = [cut(label, 30) for label in rating.labels]
    handles = ax.get_legend_handles_labels()[0]
    columns = 3 if sum(map(len, words)) > 60 else len(words)
    ax.legend(handles, words, frameon=False, fontsize=SMALL, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns)
    tidy(ax)
    return figure


def shades(n):
    """n colours from SCALE's one end to its other."""
    stops = np.array([[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in SCALE]) / 255
    at = np.linspace(0, len(SCALE) - 1, n)
    return [tuple(np.interp(x, range(len(SCALE)), stops[:, k]) for k in range(3)) for x in at]


def luminance(colour):
    return 0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2]


def percent_axis(axis):
    ticks = np.linspace(0, 1, 5)
    axis.set_ticks(ticks, [f"{t:.0%}" for t in ticks])
