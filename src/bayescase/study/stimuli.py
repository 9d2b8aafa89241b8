"""What a participant sees of a model: sets of ingredients, tables of values, images; never a name.

A word is a value of a feature, as its code: "onion is present", "coat = long", "pixel 12 is black".
"""

from typing import Any

import numpy as np

from ..explaining.explanation import as_set, clean, feature_roles, show
from .design import DesignError, Line, Stimulus


class Sight:
    """How the cases and prototypes of a model are shown. A row is the codes of a case, as in the model."""

    def __init__(self, model: Any, image_shape: Any = None):
        features, roles = model._encoding.features, feature_roles(model, 0)
        if image_shape is not None and (min(image_shape) < 1 or image_shape[0] * image_shape[1] != len(features)):
            height, width = image_shape
            raise DesignError(
                f"--image {height} {width} has {height * width} pixels, but the model has {len(features)} features."
            )
        self.kind = "image" if image_shape is not None else "set" if as_set(roles) else "table"
        self.shape = None if image_shape is None else (int(image_shape[0]), int(image_shape[1]))
        self.names = [clean(feature.name) for feature in features]
        self.feature = np.repeat(np.arange(len(features)), [len(feature.values) for feature in features])
        self.values = [value for feature in features for value in feature.values]
        places = [k / max(len(feature.values) - 1, 1) for feature in features for k in range(len(feature.values))]
        self.level = np.array(places)  # how much ink: the place of a value among those of its pixel
        present = np.array([value in (0, 1) and bool(value) for value in self.values])
        everything = np.ones(len(self.values), dtype=bool)
        self.spoken = present if self.kind == "set" else everything  # what a topic model reads of a case
        self.drawn = {"set": present, "table": everything, "image": self.level > 0}[self.kind]  # what a person sees of it

    def words(self, row, of=None) -> np.ndarray:
        """The codes of a row that are drawn, or those `of` another kind; what is missing is none."""
        codes = row[row >= 0].astype(np.intp)
        return codes[(self.drawn if of is None else of)[codes]]

    def look(self, row) -> bytes:
        """The same for two cases that nobody could tell apart."""
        return (row if self.shape else self.words(row)).tobytes()

    def draw(self, row, marked=()) -> Stimulus:
        """A case, or a prototype with the features of its subspace marked."""
        if self.shape is None:
            return self.listed(self.words(row), marked)
        ink = tuple(None if code < 0 else round(float(self.level[code]), 4) for code in row)
        return Stimulus("image", (), self.shape, ink, tuple(int(j) for j in marked if row[j] >= 0))

    def draw_words(self, codes) -> Stimulus:
        """Words of a topic, the weightiest first; in an image these pixels are inked, and nothing is said of the others."""
        if self.shape is None:
            return self.listed(codes)
        ink: list[float | None] = [None] * len(self.names)
        for code in codes:
            ink[self.feature[code]] = round(float(self.level[code]), 4)
        return Stimulus("image", (), self.shape, tuple(ink), ())

    def listed(self, codes, marked=()) -> Stimulus:
        value = (lambda code: None) if self.kind == "set" else (lambda code: clean(show(self.values[code])))
        lines = (Line(self.names[self.feature[code]], value(code), bool(self.feature[code] in marked)) for code in codes)
        return Stimulus(self.kind, tuple(lines), None, (), ())

    def word(self, code) -> str:
        """In writing: "onion" or "coat=long"."""
        name = self.names[self.feature[code]]
        return name if self.kind == "set" else f"{name}={clean(show(self.values[code]))}"
