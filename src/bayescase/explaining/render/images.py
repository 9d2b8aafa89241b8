"""Clusters of images: the prototype, the average member, what sets it apart, and the key pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..explanation import ClusterExplanation
from ..parts import FeatureRole
from .drawing import ACCENT, GREY, LIKE_LINES, SMALL, Figure, ListedColormap, Sheet

PLAIN, MARKED, APART, EMPTY = range(4)  # no key pixel; one with ink; one empty unlike elsewhere; one empty as elsewhere
KINDS = (
    ("key pixel with ink", 1.0, MARKED),
    ("key pixel, empty; elsewhere often ink", 0.0, APART),
    ("key pixel, empty; also elsewhere", 0.0, EMPTY),
    ("no key pixel", 0.0, PLAIN),
)
LESS_MORE = ListedColormap(
    np.vstack([np.linspace((0.75, 0.29, 0.0, 1.0), (1, 1, 1, 1), 64), np.linspace((1, 1, 1, 1), (0.05, 0.15, 0.33, 1.0), 64)])
)  # orange, white, blue
PANELS = ("prototype", "average member", "unlike elsewhere", "key pixels")


def image_cards(clusters: Sequence[ClusterExplanation], shape: tuple[int, int]) -> Figure:
    """Four images per cluster."""
    size, between, gap = 1.15, 0.1, 0.4
    wide = len(PANELS) * (size + between) - between
    columns = min(2, len(clusters))
    width = max(columns * (wide + gap) + gap, 6.8)
    sheet = Sheet(width, 1.0)
    like = [sheet.wrap(f"{c.card().size}, {c.like}", wide, SMALL, "normal", LIKE_LINES) for c in clusters]
    said = 0.16 * max(2, *map(len, like))  # room for the longest
    tall = size + 0.85 + said
    sheet.resize(width, math.ceil(len(clusters) / columns) * tall + 1.0)
    image_key(sheet, gap, 0.22, width)
    sheet.image(gap, 0.59, 0.14, np.array([[1.0, -1.0]]), LESS_MORE, -1.0)
    sheet.write(gap + 0.24, 0.63, "blue: more ink than elsewhere, orange: less", size=SMALL)
    for k, cluster in enumerate(clusters):
        x, y = gap + (k % columns) * (wide + gap), 1.05 + (k // columns) * tall
        sheet.write(x, y, image_title(cluster), fit=wide, weight="bold")
        for row, words in enumerate(like[k]):
            sheet.write(x, y + 0.2 + 0.16 * row, words, size=SMALL, color=GREY)
        levels, roles, mean, elsewhere = (
            np.array([of(f) for f in cluster.features]).reshape(shape)
            for of in (level, pixel_role, mean_level, level_elsewhere)
        )
        for n, words in enumerate(PANELS):
            sheet.write(x + n * (size + between), y + 0.25 + said, words, size=SMALL, color=GREY, fit=size + between)
        top = y + 0.36 + said
        at = [x + n * (size + between) for n in range(len(PANELS))]
        sheet.image(at[0], top, size, levels)
        sheet.image(at[1], top, size, mean)
        sheet.image(at[2], top, size, mean - elsewhere, LESS_MORE, -1.0)
        pixels(sheet, at[3], top, size, levels, roles)
    return sheet.figure


def image_title(cluster: ClusterExplanation) -> str:
    """A name that was made of pixels tells nobody anything."""
    return cluster.title if cluster.named else f"Cluster {cluster.cluster}"


def pixel_role(feature: FeatureRole) -> int:
    if not feature.key:
        return PLAIN
    if level(feature) > 0:
        return MARKED
    return APART if feature.sets_apart else EMPTY


def pixels(sheet: Sheet, x: float, y: float, size: float, levels: np.ndarray, roles: np.ndarray) -> None:
    """An image in which the key pixels stand out."""
    side = size / max(levels.shape)
    shade = np.where(roles == MARKED, 0.65 + 0.35 * levels, np.where(roles == PLAIN, 0.13 + 0.22 * levels, 0.0))
    sheet.image(x, y, size, shade)
    for role, marker, scale in ((APART, "x", 0.55), (EMPTY, ".", 0.22)):
        r, c = np.nonzero(roles == role)
        sheet.ax.scatter(
            x + (c + 0.5) * side,
            y + (r + 0.5) * side,
            s=(scale * side * 72) ** 2,
            marker=marker,
            color=ACCENT if role == APART else GREY,
            linewidths=min(1.6, max(0.6, side * 72 * 0.12)) if role == APART else 0,
        )


def image_key(sheet: Sheet, x: float, y: float, width: float) -> None:
    """What the pixels mean."""
    columns = 2
    step = max((width - x) / columns, max(sheet.width_of(words, SMALL) for words, _, _ in KINDS) + 0.5)
    for k, (words, value, role) in enumerate(KINDS):
        left, top = x + (k % columns) * step, y + 0.2 * (k // columns)
        pixels(sheet, left, top - 0.07, 0.14, np.array([[value]]), np.array([[role]]))
        if role == PLAIN:
            left += 0.18
            pixels(sheet, left, top - 0.07, 0.14, np.array([[1.0]]), np.array([[role]]))
        sheet.write(left + 0.22, top, words, size=SMALL)


def level(feature: FeatureRole) -> float:
    """How much ink: the place of the prototype's value among those of the feature, 0 for the first and for none."""
    values = [value for value, _, _ in feature.distribution]
    return 0.0 if feature.value is None or len(values) < 2 else values.index(feature.value) / (len(values) - 1)


def mean_level(feature: FeatureRole) -> float:
    """The same for the members on average."""
    return sum(k * share for k, (_, share, _) in enumerate(feature.distribution)) / max(len(feature.distribution) - 1, 1)


def level_elsewhere(feature: FeatureRole) -> float:
    """The same for all other cases on average; that of the members if there are none."""
    shares = [share if there is None else there for _, share, there in feature.distribution]
    return sum(k * share for k, share in enumerate(shares)) / max(len(shares) - 1, 1)


def empty_apart(feature: FeatureRole) -> bool:
    """Is it telling that the pixel is empty?"""
    _, here, elsewhere = feature.distribution[0]
    return feature.bits > 0 and here > (elsewhere or 0.0)
