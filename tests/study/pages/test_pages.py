"""What is drawn."""

from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")


from bayescase.study.design.design import Item, Line, Stimulus
from bayescase.study.design.schedule import plan
from bayescase.study.pages.pages import Pages, picture

from ..designs import small_design
from .visits import EVIL


def test_tables_and_images_are_drawn():
    table = Stimulus("table", (Line("legs", "4", True), Line("<tail>", None, False)), None, (), ())
    image = Stimulus("image", (), (2, 3), (0.0, 1.0, 1.0, None, 0.5, 0.0), (1, 2))
    design = small_design()
    items = tuple(replace(i, stimulus=table if i.item_set == "A" else image) for i in design.items)
    representations = tuple(replace(r, stimulus=image) for r in design.representations)
    design = replace(design, items=items, representations=representations)
    seen = plan(design, 0)
    text = "".join(Pages(design).step(seen, s, {}).body.decode() for s in seen.steps if s.kind == "trial")
    assert "&lt;tail&gt;" in text
    assert '<td><span>4</span><span class="hidden"> (boxed)</span></td>' in text
    drawn = picture(image)
    assert [(bar["x"], bar["y"], bar["n"], bar["ink"]) for bar in drawn["bars"]] == [
        (1, 0, 2, 1.0),
        (0, 1, 1, None),
        (1, 1, 1, 0.5),
    ]
    assert drawn["outline"] == "M1 0h1M1 1h1M1 0v1M2 0h1M2 1h1M3 0v1"


def test_hostile_texts_of_a_design_are_text():
    design = small_design(title=EVIL)
    design = replace(
        design,
        items=tuple(
            replace(i, stimulus=Stimulus("set", (Line(design.title, None, True),), None, (), ())) for i in design.items
        ),
    )
    assert isinstance(design.items[0], Item)
    for step in plan(design, 0).steps:
        text = Pages(design).step(plan(design, 0), step, {}, ending=design.rules.complete).body.decode()
        assert "<script>w" not in text
        assert "<img" not in text
