"""What is drawn of a case and of a prototype."""

import numpy as np
import pytest

from bayescase.study.design.design import DesignError, Line
from bayescase.study.design.making import make_design
from bayescase.study.design.source_model import source_model

from .models import dishes, fit, view_of


def test_a_set_is_what_a_case_has(meals):
    view, cases = view_of(meals)
    shown = view.draw(cases[0])
    table, _ = dishes()
    assert [line.name for line in shown.lines] == [name for name in table if table[name][0]]
    assert all(line == Line(line.name, None, False) for line in shown.lines)
    assert (shown.kind, shown.shape, shown.ink, shown.marked) == ("set", None, (), ())


def test_a_table_is_features_with_values_and_nothing_that_is_missing(animals):
    view, cases = view_of(animals)
    gaps = np.flatnonzero((cases < 0).any(axis=1))
    for i in (*gaps[:5], 0):
        shown = view.draw(cases[i])
        assert shown.kind == "table"
        assert [line.name for line in shown.lines] == [
            name for name, code in zip(animals.feature_types_, cases[i], strict=True) if code >= 0
        ]
    assert {line.value for line in shown.lines} & {"yes", "no", "fur", "scales", "feathers"}


def test_an_image_is_ink(digits):
    view, cases = view_of(digits, (8, 8))
    shown = view.draw(cases[0], marked=[0, 5])
    assert (shown.kind, shown.shape, shown.lines, shown.marked) == ("image", (8, 8), (), (0, 5))
    several = [len(values) > 1 for values in source_model(digits).feature_values]
    assert list(shown.ink) == [float(view.values[code]) if more else 0.0 for code, more in zip(cases[0], several, strict=True)]
    topic = view.draw_words(view.drawn(cases[0])[:3])
    assert sum(ink is not None for ink in topic.ink) == 3
    assert all(ink is None or ink > 0 for ink in topic.ink)


def test_grey_images_have_grey_ink():
    rng = np.random.default_rng(0)
    grey = rng.integers(3, size=(40, 4))
    grey[:20, 0], grey[20:, 0] = 0, 2
    view, cases = view_of(fit(grey, 2), (2, 2))
    shown = view.draw(cases[0])
    assert set(shown.ink) <= {0.0, 0.5, 1.0}


def test_an_image_needs_its_pixels(meals):
    with pytest.raises(DesignError, match=r"image_shape=\(4, 4\) has 16 pixels, but the model has 30 features"):
        make_design(meals, image_shape=(4, 4))
