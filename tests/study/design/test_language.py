"""The catalogues are complete, and the pages say nothing that is not in them."""

import re
import string
from pathlib import Path

import pytest

import bayescase.study.design.language as language_
from bayescase.study.design.language import catalogue, languages

SOURCE = Path(language_.__file__).parents[1]
OTHERS = [name for name in languages() if name != "en"]


def places(text):
    """The names in braces of a text, or of the forms of it."""
    parts = text.values() if isinstance(text, dict) else text if isinstance(text, list) else [text]
    return {name for part in parts for _, name, _, _ in string.Formatter().parse(part) if name}


def test_english_and_german_are_there():
    assert {"en", "de"} <= set(languages())


@pytest.mark.parametrize("language", OTHERS)
def test_a_catalogue_has_every_text_in_the_same_form(language):
    english, other = catalogue("en").texts, catalogue(language).texts
    assert other.keys() == english.keys()
    for key, text in english.items():
        assert type(other[key]) is type(text), key
        assert places(other[key]) <= places(text), key  # a language may do without a place, but cannot have another one
        if isinstance(text, dict):
            assert other[key].keys() == text.keys()
        if isinstance(text, list):
            assert len(other[key]) == len(text), key
        assert other[key] != text, f"{key} is not translated"
    assert ("[FILL IN" in other["new.contact"]) == ("[FILL IN" in other["new.reviewed"]) == True  # noqa: E712


def used_keys():
    """Keys that templates and code name; those that are put together end in *."""
    for path in [*SOURCE.rglob("*.html"), *SOURCE.rglob("*.py")]:
        text = path.read_text("utf-8")
        yield from re.findall(r"""\b(?:t|say|told|catalogue\(\w+\))\(f?"([a-z][\w.-]*(?:\{\w+\})?)""", text)
        yield from re.findall(r"""\.list\(f?"([a-z][\w.-]*(?:\{[\w.]+\})?)""", text)
        yield from re.findall(r"""\bt\("[\w.-]+" if [^)]*? else "([\w.-]+)"\)""", text)
        yield from re.findall(r"""say\("[\w.-]+" if [^)]*? else "([\w.-]+)"\)""", text)


def test_every_key_that_is_used_is_in_the_catalogue():
    known = catalogue("en").texts
    for key in used_keys():
        stem = re.split(r"\{", key)[0]
        assert key in known or any(one.startswith(stem) for one in known), key


def test_templates_for_participants_have_no_words_of_their_own():
    for path in (SOURCE / "pages/templates").glob("*.html"):
        if path.name.startswith("admin"):
            continue
        text = re.sub(r"\{[%#{].*?[%#}]\}", " ", path.read_text("utf-8"), flags=re.S)
        text = re.sub(r"<[^>]*>", " ", text)
        assert not re.search(r"[A-Za-z]{2,}", text), (path.name, re.search(r"[A-Za-z]{2,}", text))


def test_numbers_have_their_form():
    for language in languages():
        say = catalogue(language)
        assert say("break.left", n=1) != say("break.left", n=2)
    assert catalogue("de")("break.left", n=1).startswith("noch 1 Sekunde.")


def test_a_language_without_a_file_is_english_and_a_dialect_is_its_language():
    assert catalogue("xx").texts == catalogue("en").texts
    assert catalogue("../../etc/passwd").texts == catalogue("en").texts
    assert catalogue("de-AT").texts == catalogue("de").texts
