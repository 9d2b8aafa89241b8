"""What the plots draw with: colours, sizes, a sheet in inches, labels that are cut to fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path
except ImportError as error:
    raise ImportError("Plots and reports need matplotlib; install it with: pip install 'bayescase[plots]'") from error

from ..words import clean, cut

__all__ = [
    "Axes",
    "Figure",
    "Line2D",
    "ListedColormap",
    "Path",
    "PathPatch",
    "Rectangle",
    "Sheet",
    "label_x",
    "label_y",
    "new_figure",
    "note_more",
    "tidy",
    "title",
]

# Hues that colour-blind people tell apart, and of different lightness; a shape or a word always says the same.
INK, ACCENT, GREY, FAINT = "#17375e", "#c04a00", "#595959", "#d4d4d4"
HEAT = "Blues"
SMALL, NORMAL, LARGE = 8.5, 10.0, 11.5  # points
LIKE_LINES = 12  # more than three names of 100 letters need, so that the sentence of which they are a part ends


@cache
def advance(letter: str, weight: str) -> float:
    """Width of a letter at a size of one point; kerning is left out."""
    font = get_font(findfont(FontProperties(weight=weight)))
    font.set_size(100, 72)
    if not font.get_char_index(ord(letter)):
        return 1.2  # the font lacks it: a box, or a letter of another font, hardly wider than it is high
    return float(font.load_char(ord(letter)).linearHoriAdvance / 65536 / 100)


class Sheet:
    """A figure with one set of axes in inches from the upper left corner, for pictures that are laid out by hand."""

    def __init__(self, width: float, height: float):
        self.figure = Figure(figsize=(width, height))
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set_axis_off()
        self.resize(width, height)

    def resize(self, width: float, height: float) -> None:
        self.figure.set_size_inches(width, height)
        self.ax.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)

    def trim(self, top: float) -> None:
        """Leave out so many inches above."""
        (left, right), (bottom, _) = self.ax.get_xlim(), self.ax.get_ylim()
        self.figure.set_size_inches(right - left, bottom - top)
        self.ax.set(ylim=(bottom, top))

    def width_of(self, words: str, size: float = NORMAL, weight: str = "normal") -> float:
        return sum(advance(letter, weight) for letter in words) * size / 72

    def cut(self, words: str, width: float, size: float = NORMAL, weight: str = "normal") -> str:
        words = clean(words)
        if self.width_of(words, size, weight) <= width:
            return words
        left = width - self.width_of("…", size, weight)
        fits = np.cumsum([advance(letter, weight) for letter in words]) * size / 72 <= left
        return words[: int(fits.sum())].rstrip() + "…"

    def write(
        self,
        x: float,
        y: float,
        words: str,
        *,
        fit: float | None = None,
        size: float = NORMAL,
        weight: str = "normal",
        **style: Any,
    ) -> None:
        words = clean(words) if fit is None else self.cut(words, fit, size, weight)
        self.ax.text(x, y, words, va="center", fontsize=size, fontweight=weight, parse_math=False, **style)

    def wrap(self, words: str, width: float, size: float, weight: str, most: int) -> list[str]:
        """Lines no wider than this; the last one is cut if there are too many."""
        lines = [""]
        for word in clean(words).split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.width_of(longer, size, weight) > width:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) > most:
            lines = [*lines[: most - 1], " ".join(lines[most - 1 :])]
        return [self.cut(line, width, size, weight) for line in lines]

    def flow(self, tokens: Sequence[tuple[str, bool]], width: float, most: int) -> list[list[tuple[float, str, bool]]]:
        """[[(x, words, boxed)]] line by line; tokens beyond `most` lines are counted in the last one."""
        rows: list[list[tuple[float, str, bool]]] = [[]]
        x, space = 0.0, 0.22
        for k, (token, boxed) in enumerate(tokens):
            words = self.cut(token, width - 0.9)
            wide = self.width_of(words)
            last = len(rows) == most
            room = width - (0.9 if last and k + 1 < len(tokens) else 0.0)
            if x and x + wide > room:
                if last:
                    rows[-1].append((x, f"+ {len(tokens) - k} more", False))
                    return rows
                rows.append([])
                x = 0.0
            rows[-1].append((x, words, boxed))
            x += wide + space
        return rows

    def box(self, x: float, y: float, wide: float, size: float) -> None:
        high = size / 72 * 1.55
        style = "round,pad=0,rounding_size=0.04"
        self.ax.add_patch(
            FancyBboxPatch((x - 0.06, y - high / 2), wide + 0.12, high, boxstyle=style, fill=False, ec=ACCENT, lw=1.6)
        )

    def bar(self, x: float, y: float, wide: float, share: float) -> None:
        self.ax.add_patch(Rectangle((x, y - 0.06), wide, 0.12, fc="#eeeeee", lw=0))
        self.ax.add_patch(Rectangle((x, y - 0.06), wide * share, 0.12, fc=INK, lw=0))

    def tick(self, x: float, y: float) -> None:
        self.ax.plot([x, x], [y - 0.095, y + 0.095], color=ACCENT, lw=2, solid_capstyle="butt")

    def square(self, x: float, y: float, side: float) -> None:
        self.ax.add_patch(Rectangle((x, y - side / 2), side, side, fc="black", lw=0))

    def frame(self, x: float, y: float, wide: float, high: float) -> None:
        self.ax.add_patch(Rectangle((x, y), wide, high, fill=False, ec=GREY, lw=0.8))

    def rule(self, x: float, y: float, wide: float) -> None:
        self.ax.plot([x, x + wide], [y, y], color=GREY, lw=0.6)

    def image(self, x: float, y: float, size: float, values: np.ndarray, cmap: Any = "Greys", low: float = 0.0) -> None:
        high, wide = (size * side / max(values.shape) for side in values.shape)
        limits = self.ax.get_xlim(), self.ax.get_ylim()
        where = (x, x + wide, y + high, y)
        self.ax.imshow(values, cmap=cmap, vmin=low, vmax=1, extent=where, interpolation="nearest", aspect="auto")
        self.ax.set(xlim=limits[0], ylim=limits[1])
        self.frame(x, y, wide, high)


def new_figure(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.07)  # type: ignore[union-attr,call-arg]
    return figure


def label_y(ax: Axes, words: Sequence[str], most: int) -> None:
    ax.set_yticks(range(len(words)), [cut(word, most) for word in words], fontsize=SMALL)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)


def label_x(ax: Axes, words: Sequence[str], most: int, rotation: float = 0.0) -> None:
    ax.set_xticks(range(len(words)), [cut(word, most) for word in words], fontsize=SMALL, rotation=rotation)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)


def title(ax: Axes, words: str, most: int, small: str = "") -> None:
    text = cut(words, most) + (f"\n{small}" if small else "")
    ax.set_title(text, loc="left", fontsize=NORMAL, parse_math=False)


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL, length=2)


def note_more(figure: Figure, n: int) -> None:
    if n > 0:
        figure.text(0.99, 0.995, f"{n} smaller clusters not shown", ha="right", va="top", fontsize=SMALL, color=GREY)
