"""A design is one readable file, hashed, and frozen so that nobody can change it afterwards."""

import hashlib
import json
import re
from dataclasses import FrozenInstanceError, replace

import pytest

from bayescase.study.design.design import Check, Condition, DesignError, Stimulus
from bayescase.study.design.design_checks import problems
from bayescase.study.design.design_file import (
    add_picture,
    copy_design,
    freeze,
    frozen_hash,
    media_problems,
    read_design,
    unfinished,
    write_design,
)

from ..designs import between, predicting, rating_design, small_design, three_conditions


def test_there_and_back(tmp_path):
    design = small_design()
    write_design(design, tmp_path / "a" / "b")
    assert read_design(tmp_path / "a" / "b") == design


def test_the_hash_is_of_the_content_not_of_the_layout(tmp_path):
    design = small_design()
    write_design(design, tmp_path)
    path = tmp_path / "design.json"

    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(part) for part in value] if isinstance(value, list) else value

    path.write_text(json.dumps(turned(json.loads(path.read_text("utf-8"))), indent=7), "utf-8")
    assert read_design(tmp_path).hash == design.hash


def test_an_editor_may_change_how_numbers_and_marks_are_written(tmp_path):
    design = small_design()
    image = Stimulus("image", (), (1, 2), (0.0, 1.0), ())
    design = replace(design, items=(replace(design.items[0], stimulus=image), *design.items[1:]))
    write_design(design, tmp_path)
    freeze(tmp_path)
    text = (tmp_path / "design.json").read_text("utf-8")
    assert "[0.0, 1.0]" in text
    (tmp_path / "design.json").write_text("\ufeff" + text.replace("[0.0, 1.0]", "[0, 1]"), "utf-8")
    assert read_design(tmp_path) == design


KNOWN_HASH = "b7fee438d1fbe10d60065f5ebb456ade3417842892b4b68f852fd067a1a5baba"


def test_the_hash_is_what_it_was():
    """If this fails, studies that were frozen before can no longer be read."""
    assert small_design().hash == KNOWN_HASH


def test_any_change_changes_the_hash():
    design = small_design()
    others = [small_design(seed=2), small_design(title="Meals"), small_design(made={}), small_design(mode="paper")]
    others += [replace(design, rules=replace(design.rules, break_seconds=6))]
    others += [replace(design, items=design.items[::-1])]
    assert len({one.hash for one in (design, *others)}) == 1 + len(others)


def test_the_file_is_for_people(tmp_path):
    write_design(small_design(), tmp_path)
    lines = (tmp_path / "design.json").read_text("utf-8").splitlines()
    assert '{"name": "beans"}' in "".join(lines)
    assert max(map(len, lines)) <= 128
    assert any("“blue”" in line for line in lines)  # not escaped


def test_a_design_in_memory_cannot_be_edited():
    with pytest.raises(FrozenInstanceError):
        small_design().title = "another"


def test_a_frozen_design_is_not_replaced(tmp_path):
    write_design(small_design(), tmp_path)
    write_design(small_design(title="edited"), tmp_path)  # not yet frozen
    before = freeze(tmp_path), (tmp_path / "design.json").read_bytes()
    with pytest.raises(DesignError, match="is frozen"):
        write_design(small_design(), tmp_path)
    assert (frozen_hash(tmp_path), (tmp_path / "design.json").read_bytes()) == before
    assert read_design(tmp_path).title == "edited"


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value["texts"].update(question="?"),
        lambda value: value["items"][0].update(correct=value["items"][0]["options"][-1]),
        lambda value: value["rules"].update(break_seconds=0),
        lambda value: value.update(seed=99),
        lambda value: value["made"].update(by="nobody"),
    ],
)
def test_a_frozen_design_that_was_edited_is_refused(tmp_path, edit):
    write_design(small_design(), tmp_path)
    path = tmp_path / "design.json"
    value = json.loads(path.read_text("utf-8"))
    edit(value)
    path.write_text(json.dumps(value), "utf-8")
    read_design(tmp_path)  # a good design: without the freezing, nobody would mind
    write_design(small_design(), tmp_path)
    first = freeze(tmp_path)
    path.write_text(json.dumps(value), "utf-8")
    for read in (read_design, freeze):
        with pytest.raises(DesignError, match="changed after it was frozen"):
            read(tmp_path)
    assert frozen_hash(tmp_path) == first  # freezing again does not bless the change


def test_freezing_twice_changes_nothing(tmp_path):
    write_design(small_design(), tmp_path)
    assert freeze(tmp_path) == small_design().hash
    seal = json.loads((tmp_path / "frozen.json").read_text("utf-8")) | {"at": "2001-01-01T00:00:00Z"}  # long ago
    (tmp_path / "frozen.json").write_text(json.dumps(seal))
    before = (tmp_path / "frozen.json").read_bytes()
    assert freeze(tmp_path) == small_design().hash
    assert (tmp_path / "frozen.json").read_bytes() == before


@pytest.mark.parametrize("words", ["", "[]", "{}", "nonsense", '{"hash": '])
def test_a_damaged_seal_does_not_open_the_design(tmp_path, words):
    write_design(small_design(), tmp_path)
    freeze(tmp_path)
    (tmp_path / "frozen.json").write_text(words)
    for use in (read_design, freeze, lambda folder: write_design(small_design(), folder)):
        with pytest.raises(DesignError):
            use(tmp_path)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda value: value.pop("seed"), "'seed' is not there"),
        (lambda value: value.update(version=2), "not a study of this version"),
        (lambda value: value.update(seed="1"), "not of type"),
        (lambda value: value.update(sead=1), "'sead' .* misspelt"),
        (lambda value: value["rules"]["complete"].update(address="javascript:alert(1)"), "rules.complete must begin"),
        (lambda value: value["rules"]["timed_out"].update(address="app.example.org/x"), "rules.timed_out must begin"),
        (lambda value: value["items"][2].update(colour="red"), "'colour' .* misspelt"),
        (lambda value: value["items"][0].update(correct=77), "group 77, which the study does not have"),
        (lambda value: value["items"][0].update(correct=4), "not among its options"),
        (lambda value: value["items"][0].update(options=[0, 0, 1]), "different options"),
        (lambda value: value["groups"][1].update(label=value["groups"][0]["label"]), "2 groups are called 'chilli'"),
        (lambda value: value["items"][0].update(options=[0, 9]), "group 9, which has no explanation"),
        (lambda value: value["explanations"].pop(), "group 4, which has no explanation in condition lda"),
        (lambda value: value["explanations"].append(value["explanations"][0]), "explains group 0 2 times"),
        (lambda value: value["explanations"][0].update(item="a1"), "a group or of an item"),
        (lambda value: value["explanations"][0].update(condition="x"), "condition 'x', which the study does not have"),
        (lambda value: value["groups"].pop(), "which the study does not have"),
        (lambda value: value.update(task="guess"), "The task must be 'classify', 'predict' or 'rate'"),
        (lambda value: value.update(layout="between"), "not of A or practice"),
        (lambda value: value.update(layout="between", mode="paper"), "cannot be had between people"),
        (lambda value: value.update(order="none"), "The order must be"),
        (lambda value: value["rules"]["admission"].update(who="friends"), "rules.admission.who"),
        (lambda value: value["rules"]["admission"].update(id_pattern="["), "not a regular expression"),
        (lambda value: value["rules"]["admission"].update(quota=0), "at least 1"),
        (lambda value: value["rules"].update(comprehension_tries=0), "at least 1"),
        (lambda value: value["plan"].update(primary="beauty"), "primary outcome"),
        (lambda value: value["plan"].update(sample_size=1), "sample size"),
        (lambda value: value["plan"].update(leave_out=["left-handed"]), "leave_out"),
        (lambda value: value["plan"].update(equal_ratio=0.9), "equal_ratio"),
        (lambda value: value["items"].pop(0), "same number of items"),
        (lambda value: value["items"][0].update(id="b1"), "'b1' is used twice"),
        (lambda value: value["items"][0].update(id="a 1/2"), "other characters"),
        (lambda value: value["checks"][0].update(after=17), "there are 16"),
        (lambda value: value["checks"][0].update(correct=3), "no option 3"),
        (lambda value: value["rules"].update(resume="maybe"), "resume policy"),
        (lambda value: value["rules"].update(break_every=0), "Breaks"),
        (lambda value: value.update(mode="other"), "mode"),
        (lambda value: value.update(title=" "), "title must not be empty"),
        (lambda value: value["texts"].update(consent=""), "consent text must not be empty"),
        (lambda value: value["conditions"].pop(), "conditions"),
        (lambda value: value["questionnaire"][0].update(labels=["yes"]), "labels"),
        (lambda value: value["demographics"][1].update(options=[]), "choice with options"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path, edit, message):
    write_design(small_design(), tmp_path)
    path = tmp_path / "design.json"
    value = json.loads(path.read_text("utf-8"))
    edit(value)
    path.write_text(json.dumps(value), "utf-8")
    with pytest.raises(DesignError, match=message):
        read_design(tmp_path)


@pytest.mark.parametrize("words", ["", "nonsense", "[]", "3", '{"format": "bayescase study", "version": 1, "seed": NaN}'])
def test_what_is_no_design(tmp_path, words):
    (tmp_path / "design.json").write_text(words)
    with pytest.raises(DesignError, match=r"design\.json"):
        read_design(tmp_path)


def test_images_are_checked():
    design = small_design()
    image = Stimulus("image", (), (1, 2), (0.0, None), ())
    assert not list(problems(replace(design, items=(replace(design.items[0], stimulus=image), *design.items[1:]))))
    for wrong in (
        replace(image, ink=(0.0,)),
        replace(image, ink=(0.0, 1.5)),
        replace(image, marked=(2,)),
        replace(image, kind="x"),
    ):
        assert list(problems(replace(design, items=(replace(design.items[0], stimulus=wrong), *design.items[1:]))))


# --- what is still to be filled in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"title": "[FILL IN: title]"},
        {"texts": replace(small_design().texts, contact="Ask [FILL IN: name]")},
        {"checks": (Check("c", "[FILL IN] a question", ("a", "b"), 0, 1),)},
        {"made": {"by": "[FILL IN: me]"}},
    ],
    ids=["title", "texts.contact", "checks[0].text", "made.by"],
)
def test_a_design_in_which_something_is_to_be_filled_in_is_not_frozen(tmp_path, change, request):
    design, where = small_design(**change), request.node.callspec.id
    assert unfinished(design) == (where,)
    write_design(design, tmp_path)
    with pytest.raises(DesignError, match=re.escape(f"look for [FILL IN in {where} of")):
        freeze(tmp_path)
    assert frozen_hash(tmp_path) is None
    freeze(tmp_path, finished=False)  # only to try it out


# --- pictures -------------------------------------------------------------------------------------------------------------


def with_picture(folder, content=b"\x89PNG not really"):
    folder.mkdir(exist_ok=True)
    (folder.parent / "a.PNG").write_bytes(content)
    name = add_picture(folder.parent / "a.PNG", folder)
    design = small_design()
    picture = Stimulus("picture", text="a dish", file=name)
    return replace(design, items=(replace(design.items[0], stimulus=picture), *design.items[1:])), name


def test_pictures_belong_to_the_frozen_design(tmp_path):
    design, name = with_picture(tmp_path / "study")
    assert name == hashlib.sha256(b"\x89PNG not really").hexdigest() + ".png"
    write_design(design, tmp_path / "study")
    freeze(tmp_path / "study")
    copy_design(tmp_path / "study", tmp_path / "copy")
    assert (tmp_path / "copy" / "media" / name).read_bytes() == b"\x89PNG not really"
    assert not list(media_problems(design, tmp_path / "study"))
    (tmp_path / "study" / "media" / name).write_bytes(b"another")
    assert "was changed" in next(media_problems(design, tmp_path / "study"))
    (tmp_path / "study" / "media" / name).unlink()
    assert "is not there" in next(media_problems(design, tmp_path / "study"))
    elsewhere = replace(design.items[0], stimulus=Stimulus("picture", file="../x.png"))
    assert list(problems(replace(design, items=(elsewhere, *design.items[1:]))))


def test_a_design_without_its_pictures_is_not_frozen(tmp_path):
    design, name = with_picture(tmp_path / "study")
    write_design(design, tmp_path / "study")
    (tmp_path / "study" / "media" / name).unlink()
    with pytest.raises(DesignError, match="is not there"):
        freeze(tmp_path / "study")


# --- tasks and layouts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [small_design, three_conditions, between, predicting, rating_design])
def test_every_kind_of_design_is_good_and_comes_back(tmp_path, make):
    assert not list(problems(make()))
    write_design(make(), tmp_path)
    assert read_design(tmp_path) == make()


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (replace(predicting(), task="classify"), "must be of groups"),
        (replace(rating_design(), item_ratings=()), "something in item_ratings"),
        (replace(rating_design(), items=small_design().items), "the task is to rate"),
        (replace(predicting(), explanations=predicting().explanations[1:]), "Item a1 has no explanation in condition bcm"),
        (replace(small_design(), conditions=(Condition("a", "A", "a"),)), "two or more conditions"),
    ],
)
def test_tasks_need_what_belongs_to_them(design, words):
    assert any(words in wrong for wrong in problems(design))
