"""Cards of clusters, drawn: what sets each apart, with shares, and what the prototype of a set has."""

from __future__ import annotations

from collections.abc import Sequence

from ..parts import Card, Distinction
from .drawing import GREY, LARGE, LIKE_LINES, NORMAL, SMALL, Figure, Sheet

WIDE, GAP, LINE, TOKENS = 6.2, 0.35, 0.25, 0.31  # inches: a card, between cards, a line, a line of tokens
INSIDE = WIDE - 0.4
TOKEN_LINES = 5


class Layout:
    """Where the parts of a card go."""

    def __init__(self, sheet: Sheet, card: Card):
        self.card = card
        self.like = sheet.wrap(f"{card.size}, {card.like}", INSIDE, NORMAL, "normal", LIKE_LINES)
        self.items = sheet.flow(card.items, INSIDE, TOKEN_LINES) if card.items else []
        lines = sum(len(found) + (found is not card.has) + bool(more) for _, found, more in card.sections) + bool(card.nothing)
        tokens = (LINE + TOKENS * len(self.items)) if self.items else 0.0
        self.height = 0.42 + 0.21 * len(self.like) + 0.12 + LINE * lines + tokens + 0.12


def draw_cards(cards: Sequence[Card]) -> Figure:
    """A card per cluster, two side by side."""
    columns = min(2, len(cards))
    sheet = Sheet(columns * (WIDE + GAP) + GAP, 1.0)
    layouts = [Layout(sheet, card) for card in cards]
    rows = [layouts[k : k + columns] for k in range(0, len(cards), columns)]
    heights = [max(of.height for of in row) for row in rows]
    sheet.resize(columns * (WIDE + GAP) + GAP, 0.7 + sum(heights) + GAP * len(rows))
    draw_key(sheet, any(card.items for card in cards))
    top = 0.7
    for row, high in zip(rows, heights, strict=True):
        for k, of in enumerate(row):
            draw_card(sheet, of, GAP + k * (WIDE + GAP), top, high)
        top += high + GAP
    return sheet.figure


def draw_key(sheet: Sheet, tokens: bool) -> None:
    """What the signs mean."""
    x = GAP
    sheet.square(x, 0.3, 0.1)
    sheet.write(x + 0.18, 0.3, "key feature: cases copy the prototype", size=SMALL)
    sheet.bar(x + 2.75, 0.3, 0.3, 0.3)
    sheet.write(x + 3.12, 0.3, "share of the cluster", size=SMALL)
    sheet.tick(x + 4.6, 0.3)
    sheet.write(x + 4.7, 0.3, "elsewhere", size=SMALL)
    if tokens:
        sheet.box(x + 5.5, 0.3, sheet.width_of("key", SMALL), SMALL)
        sheet.write(x + 5.5, 0.3, "key", size=SMALL)


def draw_card(sheet: Sheet, of: Layout, x: float, y: float, high: float) -> None:
    card, left = of.card, x + 0.2
    sheet.frame(x, y, WIDE, high)
    y += 0.24
    sheet.write(left, y, card.title, fit=INSIDE, weight="bold", size=LARGE)
    y += 0.05
    for words in of.like:
        y += 0.21
        sheet.write(left, y, words, color=GREY)
    y += 0.29
    if card.nothing:
        sheet.write(left, y, card.nothing, color=GREY)
        y += LINE
    for heading, found, more in card.sections:
        if found is not card.has:
            sheet.write(left, y, heading, size=SMALL, color=GREY)
            y += LINE
        for distinction in found:
            draw_line(sheet, distinction, left, y)
            y += LINE
        if more:
            sheet.write(left + 0.18, y, f"and {more} more", size=SMALL, color=GREY)
            y += LINE
    if of.items:
        sheet.write(left, y, "the prototype has:", size=SMALL, color=GREY)
        draw_tokens(sheet, of, left, y + 0.29)


def draw_line(sheet: Sheet, d: Distinction, x: float, y: float) -> None:
    if d.key:
        sheet.square(x, y, 0.1)
    sheet.write(x + 0.18, y, d.words, fit=2.5, weight="bold" if d.key else "normal")
    sheet.bar(x + 2.75, y, 0.8, d.here)
    if d.there is not None:
        sheet.tick(x + 2.75 + 0.8 * d.there, y)
    sheet.write(x + 3.63, y, d.shares, size=SMALL)
    sheet.write(x + 5.09, y, d.role, size=SMALL, color=GREY, fit=INSIDE - 5.09)


def draw_tokens(sheet: Sheet, of: Layout, x: float, y: float) -> None:
    """What the prototype has, key features in boxes, as in the paper."""
    for row in of.items:
        for at, words, boxed in row:
            if boxed:
                sheet.box(x + at, y, sheet.width_of(words), NORMAL)
            sheet.write(x + at, y, words, color="black" if boxed else GREY)
        y += TOKENS
