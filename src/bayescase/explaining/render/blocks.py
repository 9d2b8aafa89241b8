"""What a page consists of, without a word of HTML: the templates know how each block looks."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ..parts import Card
from ..words import clean, cut, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS = 120  # per inch of a picture
SCREEN = 84  # points of a page per inch of a picture


@dataclass(frozen=True)
class Block:
    """A part of a page."""

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class Text(Block):
    """A paragraph; `strong` are words in bold before it."""

    kind: ClassVar[str] = "text"
    words: str
    strong: str = ""
    soft: bool = False


@dataclass(frozen=True)
class Verdict(Block):
    """The main message, in a box; `bad` marks a warning."""

    kind: ClassVar[str] = "verdict"
    paragraphs: tuple[str, ...]
    strong: str = ""
    bad: bool = False


@dataclass(frozen=True)
class Heading(Block):
    kind: ClassVar[str] = "heading"
    words: str
    level: int = 3


@dataclass(frozen=True)
class Definitions(Block):
    """Words and what they mean."""

    kind: ClassVar[str] = "definitions"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Bar:
    """A share in a cell of a table, drawn as a bar; a line marks the share elsewhere."""

    share: float
    elsewhere: float | None = None

    @property
    def words(self) -> str:
        return percent(self.share)


@dataclass(frozen=True)
class Table(Block):
    """The first cell of a row heads it. `numbers`: columns to align right; `keys`: rows in bold."""

    kind: ClassVar[str] = "table"
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    numbers: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Iterable[int] = (),
    keys: Iterable[int] = (),
) -> Table:
    """A table of any rows."""
    return Table(caption, tuple(head), tuple(map(tuple, rows)), tuple(numbers), tuple(keys))


@dataclass(frozen=True)
class Picture(Block):
    """A picture, what it says in a sentence, and its numbers."""

    kind: ClassVar[str] = "picture"
    source: str
    width: int
    height: int
    alt: str
    sentence: str
    numbers: tuple[Table, ...]


def picture(drawn: Figure, alt: str, sentence: str, *numbers: Table) -> Picture:
    """A picture of a figure."""
    wide, high = (round(inches * SCREEN) for inches in drawn.get_size_inches())
    return Picture(as_png(drawn), wide, high, f"{clean(alt)} The numbers are in the table below.", sentence, numbers)


def as_png(drawn: Figure) -> str:
    """As a data URI, with few colours: a third of the size, and no visible difference."""
    from PIL import Image

    raw, small = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks; it is in the table beside
        drawn.savefig(raw, format="png", dpi=DOTS)
    raw.seek(0)
    Image.open(raw).convert("RGB").quantize(96, method=Image.Quantize.MEDIANCUT).save(small, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode("ascii")


@dataclass(frozen=True)
class ClusterCard(Block):
    """A card of a cluster, without its title."""

    kind: ClassVar[str] = "card"
    card: Card


@dataclass(frozen=True)
class More(Block):
    """What is folded away until someone asks."""

    kind: ClassVar[str] = "more"
    summary: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Article(Block):
    """A part with a frame and a title."""

    kind: ClassVar[str] = "article"
    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True)
class Page:
    """A page of its own: it opens from disk and fetches nothing."""

    title: str
    about: str
    sections: tuple[Section, ...]
    made: str

    @property
    def short_title(self) -> str:
        return cut(self.title, 200)
