"""What the plots draw with: colours, sizes, a sheet in inches, labels that are cut to fit."""

from functools import cache

import numpy as np

try:
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties, findfont, get_font
    from matplotlib.lines import Line2D
    from matplotlib.patches import FancyBboxPatch, Rectangle
except ImportError as error:
    raise ImportError("Plots and reports need matplotlib; install it with: pip install 'bayescase[plots]'") from error

from ..explanation import clean, cut

__all__ = ["Figure", "Line2D", "ListedColormap", "Rectangle", "Sheet", "label_y", "new_figure", "note_more", "tidy", "title"]

# Hues that colour-blind people tell apart, and of different lightness; a shape or a word always says the same.
INK, LACK, GREY, FAINT = "#17375e", "#c04a00", "#595959", "#d4d4d4"
HEAT = "Blues"
SMALL, NORMAL, LARGE = 8.5, 10.0, 11.5  # points


@cache
def advance(letter, weight):
    """Width of a letter at a size of one point; kerning is left out."""
    font = get_font(findfont(FontProperties(weight=weight)))
    font.set_size(100, 72)
    return font.load_char(ord(letter)).linearHoriAdvance / 65536 / 100


class Sheet:
    """A figure with one set of axes in inches from the upper left corner, for pictures that are laid out by hand."""

    def __init__(self, width, height):
        self.figure = Figure(figsize=(width, height))
        self.ax = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set_axis_off()
        self.resize(width, height)

    def resize(self, width, height):
        self.figure.set_size_inches(width, height)
        self.ax.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)

    def width_of(self, words, size=NORMAL, weight="normal"):
        return sum(advance(letter, weight) for letter in words) * size / 72

    def cut(self, words, width, size, weight):
        words = clean(words)
        if self.width_of(words, size, weight) <= width:
            return words
        left = width - self.width_of("…", size, weight)
        fits = np.cumsum([advance(letter, weight) for letter in words]) * size / 72 <= left
        return words[: int(fits.sum())].rstrip() + "…"

    def write(self, x, y, words, *, fit=None, size=NORMAL, weight="normal", **style):
        words = clean(words) if fit is None else self.cut(words, fit, size, weight)
        self.ax.text(x, y, words, va="center", fontsize=size, fontweight=weight, parse_math=False, **style)

    def wrap(self, words, width, size, weight, most):
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

    def flow(self, tokens, width, most):
        """[[(x, words, boxed)]] line by line; tokens beyond `most` lines are counted in the last one."""
        rows, x, space = [[]], 0.0, 0.22
        for k, (words, boxed) in enumerate(tokens):
            words = self.cut(words, width - 0.9, NORMAL, "normal")
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

    def box(self, x, y, wide, size):
        high = size / 72 * 1.55
        style = "round,pad=0,rounding_size=0.04"
        self.ax.add_patch(
            FancyBboxPatch((x - 0.06, y - high / 2), wide + 0.12, high, boxstyle=style, fill=False, ec=LACK, lw=1.6)
        )

    def bar(self, x, y, wide, share, colour=INK):
        self.ax.add_patch(Rectangle((x, y - 0.06), wide, 0.12, fc="#eeeeee", lw=0))
        self.ax.add_patch(Rectangle((x, y - 0.06), wide * share if share <= 1 else wide, 0.12, fc=colour, lw=0))

    def tick(self, x, y):
        self.ax.plot([x, x], [y - 0.095, y + 0.095], color=LACK, lw=2, solid_capstyle="butt")

    def square(self, x, y, side):
        self.ax.add_patch(Rectangle((x, y - side / 2), side, side, fc="black", lw=0))

    def frame(self, x, y, wide, high):
        self.ax.add_patch(Rectangle((x, y), wide, high, fill=False, ec=GREY, lw=0.8))

    def rule(self, x, y, wide):
        self.ax.plot([x, x + wide], [y, y], color=GREY, lw=0.6)

    def image(self, x, y, size, values):
        high, wide = (size * side / max(values.shape) for side in values.shape)
        limits = self.ax.get_xlim(), self.ax.get_ylim()
        where = (x, x + wide, y + high, y)
        self.ax.imshow(values, cmap="Greys", vmin=0, vmax=1, extent=where, interpolation="nearest", aspect="auto")
        self.ax.set(xlim=limits[0], ylim=limits[1])
        self.frame(x, y, wide, high)


def new_figure(width, height):
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.07)
    return figure


def label_y(ax, words, most):
    ax.set_yticks(range(len(words)), [cut(word, most) for word in words], fontsize=SMALL)
    for label in ax.get_yticklabels():
        label.set_parse_math(False)


def title(ax, words, most, small=""):
    text = cut(words, most) + (f"\n{small}" if small else "")
    ax.set_title(text, loc="left", fontsize=NORMAL, parse_math=False)


def tidy(ax):
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=SMALL, length=2)


def note_more(figure, n):
    if n > 0:
        figure.text(0.99, 0.995, f"{n} smaller clusters not shown", ha="right", va="top", fontsize=SMALL, color=GREY)
