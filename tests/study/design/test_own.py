"""Items and explanations that were made elsewhere become a study."""

import json

import pytest
from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.design.design import DesignError, Line, Stimulus
from bayescase.study.design.design_checks import problems
from bayescase.study.design.design_file import media_problems, read_design, write_design
from bayescase.study.design.own import make_own_design, stimulus_of_file
from bayescase.study.examples import EXAMPLES, explained_recipes, write_example

PNG = b"\x89PNG\r\n\x1a\n not a real one"


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def animals(folder, n=8, **more):
    """Items with a table each, two groups, two conditions that explain the groups."""
    rows = "".join(f"x{i},{('bird', 'fish')[i % 2]},{i},{'air' if i % 2 == 0 else 'sea'}\n" for i in range(n))
    files = {
        "items.csv": "id,answer,size,home\n" + rows,
        "explanations/words/bird.md": "It **flies**.",
        "explanations/words/fish.md": "It swims.",
        "explanations/words/about.txt": "Words: in a sentence",
        "explanations/cases/bird.csv": "feature,value\nhome,air\n",
        "explanations/cases/fish.csv": "feature,value\nhome,sea\n",
    }
    return write(folder, files | more)


def make(folder, **wishes):
    given = {"items": folder / "items.csv", "explanations": folder / "explanations", "contact": "A", "reviewed_by": "B"}
    return make_own_design(folder / "study", **(given | wishes))


def test_groups_are_explained(tmp_path):
    design = make(animals(tmp_path))
    assert not list(problems(design))
    assert [(c.id, c.label, c.about) for c in design.conditions] == [
        ("cases", "cases", "cases"),
        ("words", "Words", "in a sentence"),
    ]
    assert [group.label for group in design.groups] == ["bird", "fish"]
    assert design.explanation("words", 0).stimulus == Stimulus("text", text="It **flies**.")
    assert design.explanation("cases", 1).stimulus == Stimulus("table", (Line("home", "sea"),))
    item = design.item("x3")
    assert (item.correct, item.options) == (1, (0, 1))
    assert item.stimulus == Stimulus("table", (Line("size", "3"), Line("home", "sea")))
    assert len(design.of_set("A")) == len(design.of_set("B")) == 4
    for name in "AB":  # evenly over answers
        assert sorted(item.correct for item in design.of_set(name)) == [0, 0, 1, 1]
    assert design.plan.primary == "accuracy"
    assert "made elsewhere" not in design.texts.information


def test_items_have_their_own_explanations_in_the_other_tasks(tmp_path):
    more = {
        f"explanations/{c}/x{i}.csv": f"feature,value,weight\nsize,{i},{i - 3.5}\n" for c in ("up", "down") for i in range(8)
    }
    folder = animals(tmp_path, **more)
    for name in ("words", "cases"):
        for path in (folder / "explanations" / name).iterdir():
            path.unlink()
        (folder / "explanations" / name).rmdir()
    design = make(folder, task="predict", confidence=True)
    assert design.explains_items
    assert design.explanation("up", "x7").stimulus == Stimulus("bars", (Line("size", "7", False, 3.5),))
    assert [likert.id for likert in design.item_ratings] == ["confidence"]
    rated = make(folder, task="rate", layout="between")
    assert rated.plan.primary == rated.item_ratings[-1].id
    assert all(item.options == () for item in rated.items)
    assert len(rated.of_set("A")) == 8
    with pytest.raises(DesignError, match="named after no group"):
        make(folder, task="classify")


def test_every_kind_of_file_is_shown(tmp_path):
    folder = write(
        tmp_path,
        {
            "a.txt": "plain",
            "b.md": "# head\n\n- one\n- two",
            "c.csv": "feature\nonion\ngarlic\n",
            "d.csv": "rule,share\nif sea,0.9\nif air,0.1\n",
            "e.png": PNG,
            "e.alt.txt": "a fish\n",
            "f.json": json.dumps({"kind": "set", "lines": [{"name": "onion"}]}),
            "g.csv": "feature,weight\nonion,0.5\nsalt,-1\n",
        },
    )
    names = [path.name for path in sorted(folder.iterdir()) if path.name != "e.alt.txt"]
    shown = {name: stimulus_of_file(folder / name, tmp_path / "study") for name in names}
    assert shown["a.txt"] == Stimulus("text", text="plain")
    assert shown["c.csv"] == Stimulus("set", (Line("onion"), Line("garlic")))
    assert shown["d.csv"] == Stimulus("grid", rows=(("rule", "share"), ("if sea", "0.9"), ("if air", "0.1")))
    assert shown["e.png"].kind == "picture"
    assert shown["e.png"].text == "a fish"
    assert (tmp_path / "study/media" / shown["e.png"].file).read_bytes() == PNG
    assert shown["f.json"] == Stimulus("set", (Line("onion"),))
    assert shown["g.csv"].lines == (Line("onion", None, False, 0.5), Line("salt", None, False, -1.0))


def test_items_can_be_pictures_texts_and_of_given_sets(tmp_path):
    folder = animals(tmp_path, n=4)
    lines = ["id,answer,text,set,options", "x0,bird,It is small.,A,bird|fish", "x1,fish,,B,", "x2,bird,so,practice,"]
    lines += ["x3,fish,no,b,", "x4,bird,no,a,"]
    write(folder, {"items.csv": "\n".join(lines), "items/x1.jpg": b"jpeg"})
    design = make(folder)
    assert {item.id: item.item_set for item in design.items} == {"x0": "A", "x1": "B", "x2": "practice", "x3": "B", "x4": "A"}
    assert design.item("x0").stimulus == Stimulus("text", text="It is small.")
    assert design.item("x1").stimulus.kind == "picture"
    write_design(design, folder / "study")
    assert not list(media_problems(read_design(folder / "study"), folder / "study"))


@pytest.mark.parametrize(
    ("files", "wishes", "message"),
    [
        ({"items.csv": "answer\nbird\n"}, {}, "must have a column id"),
        ({"items.csv": "id,answer\n"}, {}, "has no rows"),
        ({"items.csv": "id,answer\n,bird\n"}, {}, "line 2: the id is empty"),
        ({"items.csv": "id,answer,size\nx1,bird,1\nx2,,2\n"}, {}, "x2 has no answer"),
        ({"items.csv": "id,answer,size\nx1,bird,1\nx2,fish,2\nx3,bird,2\n"}, {}, "need a multiple of 2"),
        ({"items.csv": "id,answer\nx1,bird\nx2,fish\n"}, {}, "x1 has nothing to show"),
        ({"items.csv": "id,answer,size,set\nx1,bird,1,A\nx2,fish,2,\n"}, {}, "x2 has none"),
        ({"items.csv": "id,answer,size\na b,bird,1\nx2,fish,2\n"}, {}, "other characters"),
        ({"items.csv": b"id,answer\n\xff\xfe,bird\n"}, {}, "not a text file in UTF-8"),
        ({"explanations/words/cat.md": "It purrs."}, {}, "named after no group; groups are bird and fish"),
        ({"explanations/more/bird.md": "x"}, {"layout": "between"}, "more has no file for fish"),
        ({"explanations/words/bird.pdf": "x"}, {}, "cannot be shown"),
        ({"explanations/cases/bird.csv": "feature,weight\nhome,much\n"}, {}, "line 2: the weight 'much' is not a number"),
        ({"explanations/cases/bird.json": "{"}, {}, "is not a card"),
        ({"items/x1.txt": "a", "items/x1.md": "b"}, {}, "keep one of them"),
        ({}, {"explanations": "nowhere"}, "is not a folder"),
        ({}, {"task": "guess"}, "task must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_sentence(tmp_path, files, wishes, message):
    folder = animals(tmp_path, **files)
    if "explanations/words/bird.pdf" in files:
        (folder / "explanations/words/bird.md").unlink()
    if "explanations/cases/bird.json" in files:
        (folder / "explanations/cases/bird.csv").unlink()
    with pytest.raises(DesignError, match=message) as caught:
        make(folder, **wishes)
    assert "\n" not in str(caught.value)


def test_one_condition_is_no_study(tmp_path):
    words = {"explanations/words/a.md": "x", "explanations/words/b.md": "y"}
    folder = write(tmp_path, {"items.csv": "id,answer,s\nx1,a,1\nx2,b,2\n"} | words)
    with pytest.raises(DesignError, match="two folders or more"):
        make(folder)


# --- examples -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_a_study(tmp_path, name):
    run = CliRunner().invoke
    shown = run(main, ["study", "example", name, "-o", str(tmp_path / "in")])
    assert shown.exit_code == 0, shown.output
    task = {"attributions": "predict", "styles": "rate"}[name]
    options = ["--items", tmp_path / "in/items.csv", "--explanations", tmp_path / "in/explanations", "--task", task]
    options += ["-o", tmp_path / "s"]
    options += ["--practice", 1] if name == "attributions" else ["--layout", "between"]
    shown = run(main, ["study", "new", *map(str, options)])
    assert shown.exit_code == 0, shown.output
    design = read_design(tmp_path / "s")
    assert "SHA-256" in design.made["items_file"]
    assert not list(problems(design))
    assert "not empty" in run(main, ["study", "example", name, "-o", str(tmp_path / "in")]).output
    with pytest.raises(DesignError, match="There are the examples"):
        write_example("other", tmp_path / "x")


def test_attributions_add_up_to_what_the_model_says():
    """Shapley values of a linear model: the ones shown are the largest, and speak for the answer on the whole."""
    for one in explained_recipes(12):
        sizes = [abs(weight) for _, weight in one.weights]
        assert sizes == sorted(sizes, reverse=True)
        assert {word for word, _ in one.weights} <= set(one.has)
        assert sum(weight for _, weight in one.weights) > 0
