"""What a participant sees of a model: sets of ingredients, tables of values, images; never a name.

A word is a value of a feature, as its code: "onion is present", "coat = long", "pixel 12 is black".
"""

from collections.abc import Iterable

import numpy as np

from ...errors import Setting
from ...explaining.words import clean, show
from .design import Line, Stimulus, WishError
from .source_model import SourceModel


class CaseView:
    """How the cases and prototypes of a model are shown. A row is the codes of a case."""

    def __init__(self, source: SourceModel, image_shape: tuple[int, int] | None = None):
        self.names, values = source.feature_names, source.feature_values
        if image_shape is not None and (min(image_shape) < 1 or image_shape[0] * image_shape[1] != len(values)):
            raise WishError(
                "{parameter} has {pixels} pixels, but the model has {features} features.",
                parameter=Setting("image_shape", tuple(image_shape)),
                pixels=image_shape[0] * image_shape[1],
                features=len(values),
            )
        self.kind = "image" if image_shape is not None else "set" if source.cases_are_sets else "table"
        self.shape = None if image_shape is None else (int(image_shape[0]), int(image_shape[1]))
        self.feature = np.repeat(np.arange(len(values)), [len(of) for of in values])  # of each code
        self.values = [value for of in values for value in of]
        self.ink = np.array([k / max(len(of) - 1, 1) for of in values for k in range(len(of))])  # place among the values
        present = np.array([value in (0, 1) and bool(value) for value in self.values])
        every = np.ones(len(self.values), dtype=bool)
        self.is_word = present if self.kind == "set" else every  # codes that a topic model reads
        self.is_drawn = {"set": present, "table": every, "image": self.ink > 0}[self.kind]  # codes that a person sees

    def words(self, row: np.ndarray) -> np.ndarray:
        """The codes of a row that a topic model reads."""
        codes = row[row >= 0].astype(np.intp)
        return codes[self.is_word[codes]]

    def drawn(self, row: np.ndarray) -> np.ndarray:
        """The codes of a row that a person sees; what is missing is none of them."""
        codes = row[row >= 0].astype(np.intp)
        return codes[self.is_drawn[codes]]

    def appearance(self, row: np.ndarray) -> bytes:
        """The same for two cases that nobody could tell apart."""
        return (row if self.shape else self.drawn(row)).tobytes()

    def draw(self, row: np.ndarray, marked: Iterable[int] = ()) -> Stimulus:
        """A case, or a prototype with the features of its subspace marked."""
        marked = list(marked)
        if self.shape is None:
            return self.as_lines(self.drawn(row), marked)
        ink = tuple(None if code < 0 else round(float(self.ink[code]), 4) for code in row)
        return Stimulus("image", (), self.shape, ink, tuple(int(j) for j in marked if row[j] >= 0))

    def draw_words(self, codes: Iterable[int]) -> Stimulus:
        """Words of a topic, the weightiest first; in an image these pixels are inked, and nothing is said of the others."""
        if self.shape is None:
            return self.as_lines(codes)
        ink: list[float | None] = [None] * len(self.names)
        for code in codes:
            ink[self.feature[code]] = round(float(self.ink[code]), 4)
        return Stimulus("image", (), self.shape, tuple(ink), ())

    def as_lines(self, codes: Iterable[int], marked: Iterable[int] = ()) -> Stimulus:
        def line(code):
            value = None if self.kind == "set" else clean(show(self.values[code]))
            return Line(self.names[self.feature[code]], value, bool(self.feature[code] in marked))

        return Stimulus(self.kind, tuple(line(code) for code in codes), None, (), ())

    def word(self, code: int) -> str:
        """In writing: "onion" or "coat=long"."""
        name = self.names[self.feature[code]]
        return name if self.kind == "set" else f"{name}={clean(show(self.values[code]))}"
