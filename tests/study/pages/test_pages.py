"""What is drawn."""

import re
from dataclasses import replace

import pytest

pytest.importorskip("starlette", reason="pip install 'bayescase[study]'")


from bayescase.study.design.design import Item, Line, Stimulus
from bayescase.study.design.schedule import plan
from bayescase.study.pages.pages import Pages, bars, picture

from ..designs import predicting, small_design
from .visits import EVIL


def test_tables_and_images_are_drawn():
    table = Stimulus("table", (Line("legs", "4", True), Line("<tail>", None, False)), None, (), ())
    image = Stimulus("image", (), (2, 3), (0.0, 1.0, 1.0, None, 0.5, 0.0), (1, 2))
    design = small_design()
    items = tuple(replace(i, stimulus=table if i.item_set == "A" else image) for i in design.items)
    explanations = tuple(replace(r, stimulus=image) for r in design.explanations)
    design = replace(design, items=items, explanations=explanations)
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
        text = Pages(design).step(plan(design, 0), step, {}, ending=design.rules.complete, receipt=EVIL).body.decode()
        assert "<script>w" not in text
        assert "<img" not in text


LINKS = "[a link](https://evil.test) ![x](https://evil.test/x.png) <https://evil.test>"


@pytest.mark.parametrize(
    ("stimulus", "words"),
    [
        (Stimulus("text", text=f"# {EVIL}\n\n**bold** {LINKS}\n\n<b>raw</b>"), "<strong>bold</strong>"),
        (Stimulus("grid", rows=(("a", EVIL), ("1", EVIL))), '<th scope="col">a</th>'),
        (Stimulus("bars", (Line(EVIL, EVIL, False, 1.0), Line("b", None, False, -2.0))), "−2.00"),
        (Stimulus("picture", text=EVIL, file="0" * 64 + ".png"), "/media/000"),
    ],
    ids=["text", "grid", "bars", "picture"],
)
def test_what_is_brought_along_can_do_nothing(stimulus, words):
    design = predicting()
    design = replace(design, explanations=tuple(replace(e, stimulus=stimulus) for e in design.explanations))
    seen = plan(design, 0)
    text = "".join(Pages(design).step(seen, step, {}).body.decode() for step in seen.steps if step.kind != "end")
    assert words.replace("−", "-") in text
    assert "<script>w" not in text
    assert "onerror=alert(1)>" not in text.replace("&gt;", "")
    assert "<img src=x" not in text
    assert not re.search(r'(?:href|src)="https?://', text)
    assert "<b>raw" not in text


def test_bars_are_as_long_as_their_weights():
    found = bars(Stimulus("bars", (Line("a", None, False, 2.0), Line("b", None, False, -1.0), Line("c", None, False, 0.0))))
    assert [(bar["x"], bar["long"]) for bar in found] == [(50, 50.0), (25.0, 25.0), (50, 0.0)]
