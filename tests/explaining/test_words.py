"""Values, features, counts and lists in words."""

import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.words import (
    any_of,
    clean,
    counted,
    cut,
    join_values,
    listed,
    not_shown,
    percent,
    phrase,
    phrase_of,
    show,
)
from bayescase.reading.features import Feature, intervals


def test_values_and_phrases():
    assert [show(v) for v in (None, True, False, 3, 2.50, "x")] == ["missing", "yes", "no", "3", "2.5", "x"]
    assert [phrase("a", v) for v in (True, False, 1, None, "true", "False", "x")] == [
        "a", "no a", "a = 1", "a = missing", "a", "no a", "a = x"
    ]  # fmt: skip


def test_lists_and_counts():
    assert listed(["a"], 3) == "a"
    assert listed("abc", 3) == "a, b and c"
    assert listed("abcde", 3) == "a, b, c and 2 more"
    assert any_of("abc") == "a, b or c"
    assert any_of("a") == "a"
    assert [counted(n) for n in (1, 2000)] == ["1 case", "2,000 cases"]
    assert counted(2, "person") == "2 people"
    assert not_shown((0, "members"), (3, "key features")) == "not shown: 3 key features"
    assert not_shown((2, "members"), (3, "key features")) == "not shown: 2 members and 3 key features"
    assert not_shown((0, "members")) == ""


def test_text_is_cut_to_one_clean_line():
    assert cut("a  b\nc", 10) == "a b c"
    assert cut("abcdef", 4) == "abc…"
    assert clean("a\ud800\x00b").isprintable()


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0%"),
        (0.001, "<1%"),
        (0.005, "<1%"),
        (0.006, "1%"),
        (0.5, "50%"),
        (0.994, "99%"),
        (0.996, ">99%"),
        (1, "100%"),
        (None, "–"),
    ],
)
def test_all_and_nothing_are_said_only_where_they_are_true(share, words):
    assert percent(share) == words


AGE = Feature("age", "number", intervals((18.0, 30.0, 65.0), True), (18.0, 30.0, 65.0))
SIZE = Feature("size", "number", intervals((0.5, 1.5)), (0.5, 1.5))
GRADE = Feature("grade", "integer", (1, 2, 3, 5))
COAT = Feature("coat", "category", ("curly", "long", "short"))


@pytest.mark.parametrize(
    ("feature", "places", "words"),
    [
        (AGE, (0, 1), "below 30"),
        (AGE, (1, 2), "18 to 64"),
        (AGE, (2, 3), "30 or more"),
        (AGE, (0, 2), "below 18 or 30 to 64"),
        (SIZE, (0, 1), "below 1.5"),
        (SIZE, (1, 2), "0.5 or more"),
        (GRADE, (0, 1, 2), "1 to 3"),
        (GRADE, (1, 2), "2 or 3"),
        (GRADE, (0, 3), "1 or 5"),
        (COAT, (0, 1), "curly or long"),
        (COAT, (2, 0), "curly or short"),
    ],
)
def test_neighbours_on_a_scale_become_a_range(feature, places, words):
    assert join_values(feature, places) == words
    assert phrase_of(feature, places) == f"{feature.name} = {words}"


def test_what_is_there_is_its_name():
    onion, counts = Feature("onion", "count", (False, True)), Feature("onion", "count", (0, 1, "2+"))
    assert phrase_of(onion, [1], optional=True) == "onion"
    assert phrase_of(onion, [0], optional=True) == "no onion"
    assert phrase_of(counts, [1, 2], optional=True) == "onion"
    assert phrase_of(counts, [2], optional=True) == "onion = 2+"
    assert phrase_of(Feature("onion", "integer", (0, 1)), [1], optional=True) == "onion"


def test_no_sentence_has_a_control_character():
    """Neither of names nor of values; what is to be computed with stays as it is."""
    kinds, escape = ["\x1b[31mred\x07", "x\ny"], "\x1b[7mhot\x1b[0m"
    table = {escape: [kinds[i % 2] for i in range(20)], "things": [[f"{escape}{i % 2}", "z"] for i in range(20)]}
    model = BayesianCaseModel(2, n_iter=40, n_chains=1, random_state=0).fit(
        table, case_names=[f"\x1b[1m{i}\n" for i in range(20)]
    )
    explained = model.explain()
    texts = [str(explained), explained.summary, *(cluster.sentence for cluster in explained.clusters)]
    texts += [
        str(model.explain_case(0)),
        str(model.explain_pair(0, 1)),
        str(model.explain_agreement(0)),
        str(model.explain_tree()),
    ]
    assert any("�[31mred�" in text for text in texts)
    assert all(c.isprintable() or c == "\n" for text in texts for c in text)
    assert kinds[0] in {value for f in explained.clusters[0].features for value, _, _ in f.distribution}
