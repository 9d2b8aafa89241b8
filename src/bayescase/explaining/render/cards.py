"""Cards that show a cluster by its prototype: tables, sets of present features, images."""

import math

import numpy as np

from ..explanation import UNLIKE, FeatureRole, counted, show, telling
from .drawing import GREY, LACK, LARGE, NORMAL, SMALL, Sheet


def table_cards(clusters, most):
    wide, gap, line = 6.15, 0.4, 0.25
    columns = min(2, len(clusters))
    shown = [telling_features(cluster, most) for cluster in clusters]
    high = [0.85 + line * (len(features) + (1 if left else 0)) for features, left in shown]
    rows = [max(high[k : k + columns]) for k in range(0, len(clusters), columns)]
    sheet = Sheet(columns * (wide + gap) + gap, sum(rows) + gap * len(rows) + 0.75)
    sheet.write(gap, 0.35, "■ and bold: matters to the cluster", size=SMALL)
    sheet.bar(3.2, 0.35, 0.4, 0.4)
    sheet.write(3.7, 0.35, "share of the cluster", size=SMALL)
    sheet.tick(5.35, 0.35)
    sheet.write(5.45, 0.35, "elsewhere", size=SMALL)
    top = 0.75
    for k, cluster in enumerate(clusters):
        x, y = gap + (k % columns) * (wide + gap), top
        features, left = shown[k]
        sheet.frame(x, y, wide, rows[k // columns])
        heading(sheet, cluster, x + 0.15, y, wide - 0.3)
        y += 0.85
        for feature in features:
            ink = "black" if feature.key else GREY
            weight = "bold" if feature.key else "normal"
            if feature.key:
                sheet.square(x + 0.2, y, 0.1)
            sheet.write(x + 0.38, y, feature.name, fit=1.6, color=ink)
            sheet.write(x + 2.05, y, show(feature.value), fit=1.45, weight=weight, color=ink)
            if feature.key:
                sheet.bar(x + 3.6, y, 1.0, feature.share)
                sheet.tick(x + 3.6 + feature.elsewhere, y)
                sheet.write(x + 4.68, y, f"{feature.share:.0%}, elsewhere {feature.elsewhere:.0%}", size=SMALL)
            else:
                words = f"any; most often {show(feature.typical)} ({feature.typical_share:.0%})"
                sheet.write(x + 3.6, y, words, fit=2.3, size=SMALL, color=ink)
            y += line
        if left:
            sheet.write(x + 0.38, y, left, size=SMALL, color=GREY)
        if k % columns == columns - 1:
            top += rows[k // columns] + gap
    return sheet.figure


def telling_features(cluster, most):
    """(the key features and then the others, most telling first; what is left out, in words)."""
    keys = list(cluster.key_features)
    others = [f for f in cluster.features if not f.key]
    others.sort(key=lambda f: np.inf if f.share is None else -telling(f.share, f.elsewhere))
    shown = (keys + others)[:most]
    counts = [(len(keys) - sum(f.key for f in shown), "that matter"), (len(others) - sum(not f.key for f in shown), "others")]
    return shown, left_out(counts)


def left_out(counts):
    words = [f"{n} {what}" for n, what in counts if n > 0]
    return "not shown: " + " and ".join(words) if words else ""


def set_cards(clusters, wide=9.5, side=2.8):
    """As the paper's table of recipes: what the prototype has, in boxes what matters; below, what is absent and matters."""
    line, gap = 0.31, 0.14
    sheet = Sheet(wide, 1.0)
    cards = []
    for cluster in clusters:
        present = [(f.name, f.key) for f in cluster.features if f.value]
        present.sort(key=lambda token: (not token[1], token[0]))
        absent = [f for f in cluster.key_features if not f.value and f.value is not None]
        unlike = [f for f in absent if f.unlike]
        name = sheet.wrap(cluster.prototype.name, side - 0.35, NORMAL, "bold", 3)
        has = sheet.flow(present, wide - side - 0.2, 6)
        lacks = sheet.flow([(f.name, False) for f in unlike], wide - side - 0.2 - 0.9, 2) if unlike else []
        cards.append((cluster, name, has, lacks, len(absent) - len(unlike)))
    high = [
        max(0.3 + 0.22 * (len(name) + 1), line * (len(has) + len(lacks) + (1 if rest else 0)))
        for _, name, has, lacks, rest in cards
    ]
    sheet.resize(wide, 0.5 + sum(high) + 2 * gap * len(cards) + 0.1)
    sheet.box(0.15, 0.28, sheet.width_of("boxed", SMALL), SMALL)
    sheet.write(0.15, 0.28, "boxed", size=SMALL)
    also = ", and so does what follows “but no”" if any(lacks for *_, lacks, _ in cards) else ""
    sheet.write(0.65, 0.28, f"matters to the cluster{also}; the rest of the prototype is as it happens to be", size=SMALL)
    y = 0.5
    for (cluster, name, has, lacks, rest), tall in zip(cards, high, strict=True):
        sheet.rule(0.1, y, wide - 0.2)
        top = y + gap + 0.12
        sheet.write(0.15, top, f"Cluster {cluster.cluster}: {counted(cluster.size)}", color=GREY)
        for k, words in enumerate(name):
            sheet.write(0.15, top + 0.22 * (k + 1), words, weight="bold")
        for row in has:
            for x, words, boxed in row:
                if boxed:
                    sheet.box(side + x, top, sheet.width_of(words, NORMAL), NORMAL)
                sheet.write(side + x, top, words, color="black" if boxed else GREY)
            top += line
        for k, row in enumerate(lacks):
            if k == 0:
                sheet.write(side, top, "but no", color=LACK)
            for x, words, _ in row:
                sheet.write(side + 0.65 + x, top, words, color=LACK, style="italic")
            top += line
        if rest:
            more = "more " if lacks else ""
            sheet.write(side, top, f"and {rest} {more}absent as in most other clusters", size=SMALL, color=GREY)
        y += tall + 2 * gap
    return sheet.figure


def image_cards(clusters, shape):
    """The prototype, the members on average, and what matters of the prototype."""
    size, between, gap = 1.15, 0.08, 0.35
    wide = 3 * size + 2 * between
    columns = min(2, len(clusters))
    tall = size + 0.85
    width = max(columns * (wide + gap) + gap, 6.8)
    sheet = Sheet(width, math.ceil(len(clusters) / columns) * tall + 0.8)
    image_key(sheet, gap, 0.22, width)
    for k, cluster in enumerate(clusters):
        x, y = gap + (k % columns) * (wide + gap), 0.8 + (k // columns) * tall
        sheet.write(
            x, y, f"Cluster {cluster.cluster}: {counted(cluster.size)} like {cluster.prototype.name}", fit=wide, weight="bold"
        )
        values, roles = (np.array([of(f) for f in cluster.features]).reshape(shape) for of in (level, pixel_role))
        for n, words in enumerate(("prototype", "average member", "what matters")):
            sheet.write(x + n * (size + between), y + 0.23, words, size=SMALL, color=GREY, fit=size + between)
        sheet.image(x, y + 0.35, size, values)
        sheet.image(x + size + between, y + 0.35, size, np.array([mean_level(f) for f in cluster.features]).reshape(shape))
        pixels(sheet, x + 2 * (size + between), y + 0.35, size, values, roles)
    return sheet.figure


PLAIN, MARKED, APART, EMPTY = range(4)  # a pixel does not matter; has ink; is empty unlike elsewhere; is empty as elsewhere


def pixel_role(feature: FeatureRole):
    if not feature.key:
        return PLAIN
    if level(feature) > 0:
        return MARKED
    return APART if feature.unlike else EMPTY


def pixels(sheet, x, y, size, values, roles):
    """An image in which only the pixels that matter are drawn."""
    side = size / max(values.shape)
    shade = np.where(roles == MARKED, 0.65 + 0.35 * values, np.where(roles == PLAIN, 0.13 + 0.22 * values, 0.0))
    sheet.image(x, y, size, shade)
    for role, marker, scale in ((APART, "x", 0.55), (EMPTY, ".", 0.22)):
        r, c = np.nonzero(roles == role)
        points = (scale * side * 72) ** 2
        sheet.ax.scatter(
            x + (c + 0.5) * side, y + (r + 0.5) * side, s=points, marker=marker, color=LACK if role == APART else GREY,
            linewidths=min(1.6, max(0.6, side * 72 * 0.12)) if role == APART else 0,
        )  # fmt: skip


def image_key(sheet, x, y, width):
    kinds = (
        ("ink that matters", 1.0, MARKED),
        ("empty, which matters; elsewhere often ink", 0.0, APART),
        ("empty, which matters; also elsewhere", 0.0, EMPTY),
        ("ink or empty, does not matter", 0.0, PLAIN),
    )
    columns = 2
    step = max((width - x) / columns, max(sheet.width_of(words, SMALL) for words, _, _ in kinds) + 0.5)
    for k, (words, value, role) in enumerate(kinds):
        left, top = x + (k % columns) * step, y + 0.22 * (k // columns)
        pixels(sheet, left, top - 0.07, 0.14, np.array([[value]]), np.array([[role]]))
        if role == PLAIN:
            left += 0.18
            pixels(sheet, left, top - 0.07, 0.14, np.array([[1.0]]), np.array([[role]]))
        sheet.write(left + 0.22, top, words, size=SMALL)


def heading(sheet, cluster, x, y, width):
    sheet.write(x, y + 0.22, f"Cluster {cluster.cluster}: {counted(cluster.size)}, {cluster.share:.0%} of all", color=GREY)
    sheet.write(x, y + 0.5, f"like {cluster.prototype.name}", fit=width, weight="bold", size=LARGE)


def level(feature: FeatureRole) -> float:
    """How much ink: the place of the prototype's value among those of the feature, 0 for the first and for none."""
    values = [value for value, _, _ in feature.distribution]
    return 0.0 if feature.value is None or len(values) < 2 else values.index(feature.value) / (len(values) - 1)


def mean_level(feature: FeatureRole) -> float:
    """The same for the members on average."""
    n = len(feature.distribution)
    return sum(k * share for k, (_, share, _) in enumerate(feature.distribution)) / max(n - 1, 1)


def empty_apart(feature):
    _, here, elsewhere = feature.distribution[0]
    return here - elsewhere >= UNLIKE
