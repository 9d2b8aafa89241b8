"""What sets a group of cases apart: counted shares, bits, sets of values, and never an absence."""

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from bayescase import BayesianCaseModel
from bayescase.explaining.telling import COMMON, LEAST, bits, group, rest, tell_apart

from ..helpers import fit_model


def of_labels(columns, labels, **settings):
    """A fit whose clusters are these labels."""
    S = int(max(labels)) + 1
    pins = {"cases": dict(enumerate(map(int, labels)))}
    return fit_model(columns, S, n_iter=10, n_chains=1, random_state=0, pins=pins, **settings).fitted_


def told_of(fitted, s):
    """[(words of the feature, values, here, there, rare)] of a cluster, the most telling first."""
    told = tell_apart(fitted, group(fitted, [s]), rest(fitted, s))
    found = []
    for rare in (False, True):
        for j in told.order(rare):
            feature, first = fitted.encoding.features[j], fitted.encoding.offset[j]
            values = {v for k, v in enumerate(feature.values) if told.chosen[first + k]}
            found.append((feature.name, values, float(told.here[j]), float(told.there[j]), rare))
    return found


@pytest.mark.parametrize(("here", "there"), [(0.75, 0.02), (1, 0), (0.3, 0.3), (0, 0.6), (1, 0.96)])
def test_bits_are_the_divergence_of_jensen_and_shannon(here, there):
    expected = jensenshannon([here, 1 - here], [there, 1 - there], base=2) ** 2
    assert bits(np.array(here), np.array(there)) == pytest.approx(expected, abs=1e-12)


def test_what_is_common_here_and_rare_elsewhere_ranks_above_what_is_common_everywhere():
    labels = np.repeat([0, 1], 100)
    columns = {
        "everywhere": np.r_[np.arange(100) < 97, np.arange(100) < 94],
        "here": np.r_[np.arange(100) < 75, np.arange(100) < 2],
        "exclusive": np.r_[np.arange(100) < 12, np.zeros(100, bool)],
        "half": np.r_[np.ones(100, bool), np.arange(100) < 50],
    }
    found = told_of(of_labels(columns, labels), 0)
    assert [name for name, *_ in found] == ["here", "half", "exclusive"]
    assert found[0][2:] == (0.75, 0.02, False)


def test_shares_are_those_of_a_count_by_hand(mixed):
    columns, labels = mixed
    fitted = of_labels(columns, labels)
    x = fitted.encoding.decode(fitted.data.x)
    for s in range(3):
        for name, values, here, there, _ in told_of(fitted, s):
            j = [f.name for f in fitted.encoding.features].index(name)
            for share, rows in ((here, labels == s), (there, labels != s)):
                known = [v for v in x[rows, j] if v is not None]
                assert share == pytest.approx(np.mean([v in values for v in known]))


def test_a_set_of_values_is_the_most_telling_one_of_all():
    """Every subset of the values that are each more common here than by chance is tried."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    shares = ([0.3, 0.3, 0.2, 0.1, 0.1], [0.1, 0.05, 0.25, 0.3, 0.3])
    x = np.concatenate([rng.choice(5, 300, p=p) for p in shares])
    fitted = of_labels({"a": np.array(list("vwxyz"))[x]}, labels)
    ((_, values, here, there, _),) = told_of(fitted, 0)
    a, b = (np.bincount(x[labels == s], minlength=5) / 300 for s in (0, 1))
    subsets = [np.array([(n >> k) & 1 for k in range(5)], bool) for n in range(1, 31)]
    best = max(bits(a[s].sum(), b[s].sum()) for s in subsets if (a[s] > b[s]).all())
    assert bits(np.array(here), np.array(there)) == pytest.approx(best)
    assert values == {"v", "w"}


def test_a_value_that_chance_may_have_brought_is_not_said():
    labels = np.repeat([0, 1], [4, 100])
    columns = {"chance": np.r_[[True, True, False, False], np.arange(100) < 30], "sure": np.r_[[True] * 4, np.arange(100) < 5]}
    assert [name for name, *_ in told_of(of_labels(columns, labels), 0)] == ["sure"]


def test_many_values_with_a_case_each_are_no_news():
    labels = np.repeat([0, 1], 40)
    numbers = np.arange(80)
    fitted = of_labels(
        {"id": [f"n{i}" for i in numbers], "b": labels == 0}, labels, encoder={"feature_types": {"id": "category"}}
    )
    assert [name for name, *_ in told_of(fitted, 0)] == ["b"]


def test_absence_is_never_said_and_rarity_only_of_what_most_others_have():
    labels = np.repeat([0, 1], 50)
    columns = {
        "common elsewhere": np.r_[np.zeros(50, bool), np.arange(50) < 30],
        "less common elsewhere": np.r_[np.zeros(50, bool), np.arange(50) < 20],
        "as a word": np.array(["false"] * 50 + ["true"] * 50),
        "as another": np.array(["absent"] * 50 + ["present"] * 50),
        "kind": np.array(["x"] * 50 + ["y"] * 50),
    }
    found = told_of(of_labels(columns, labels), 0)
    assert all(rare == (name != "kind") for name, *_, rare in found)
    assert [name for name, *_ in found] == ["kind", "as a word", "as another", "common elsewhere"]
    assert all(there >= COMMON for *_, there, rare in found if rare)
    assert ("kind", {"x"}, 1.0, 0.0, False) in found


def test_zeros_and_ones_are_presence_only_if_all_columns_are():
    labels = np.repeat([0, 1], 30)
    flag = np.repeat([0, 1], 30)
    alone = of_labels({"a": flag, "b": 1 - flag}, labels)
    assert {(name, rare) for name, *_, rare in told_of(alone, 0)} == {("a", True), ("b", False)}
    among = of_labels({"a": flag, "b": np.where(flag, "x", "y")}, labels)
    assert [told[:2] for told in told_of(among, 0)] == [("b", {"y"}), ("a", {0})]


def test_that_nothing_is_there_is_told_after_all_else():
    labels = np.repeat([0, 1, 2], 30)
    columns = {
        "halo": np.array(["Absent"] * 30 + ["yellow", "brown"] * 30),
        "legs": np.repeat([0, 2, 4], 30),
        "margin": np.array(["none"] * 30 + ["wavy"] * 60),
        "kind": np.array((["x"] * 20 + ["y"] * 10) * 2 + ["y"] * 30),
    }
    fitted = of_labels(columns, labels, encoder={"feature_types": {"legs": "category"}})
    assert [told[:2] for told in told_of(fitted, 0)] == [
        ("kind", {"x"}), ("halo", {"Absent"}), ("legs", {0}), ("margin", {"none"})
    ]  # fmt: skip
    assert [told[0] for told in told_of(fitted, 2)] == ["legs", "kind", "halo", "margin"]


def test_a_value_that_few_cases_here_have_is_not_what_they_are_known_by():
    """Of a table; an item, or an ingredient in a column of its own, is one of many that a case has, and may be rarer."""
    labels = np.repeat([0, 1], 100)
    legs, venom = np.repeat([8, 4, 8, 4], [20, 80, 1, 99]), np.repeat([True, False, True, False], [20, 80, 1, 99])
    kind = np.array(["x"] * 100 + ["y"] * 100)
    table = of_labels({"legs": legs, "venom": venom, "kind": kind}, labels, encoder={"feature_types": {"legs": "category"}})
    assert [told[0] for told in told_of(table, 0)] == ["kind"]
    of_things = of_labels({"venom": venom, "x": kind == "x"}, labels)
    assert [told[0] for told in told_of(of_things, 0)] == ["x", "venom"]
    more = np.repeat(["a", "b", "c", "a", "c"], [20, 20, 60, 1, 99])
    (told,) = told_of(of_labels({"many": more}, labels), 0)
    assert told[1] == {"a", "b"}, "together they are a fair part"


def test_what_few_cases_have_a_value_for_tells_less():
    labels = np.repeat([0, 1], 40)
    full = np.array(["x"] * 40 + ["y"] * 40, dtype=object)
    gaps = full.copy()
    gaps[10:40] = None
    fitted = of_labels({"gaps": gaps, "full": full}, labels)
    told = tell_apart(fitted, group(fitted, [0]), rest(fitted, 0))
    assert told.bits.tolist() == pytest.approx([0.25, 1.0])
    assert told.here.tolist() == [1.0, 1.0]


def test_without_others_nothing_is_told():
    fitted = of_labels({"a": ["x", "y", "x"], "b": [True, True, False]}, [0, 0, 0])
    assert told_of(fitted, 0) == []


def test_equal_groups_tell_nothing():
    x = np.tile([[0, 1, 2], [1, 0, 0]], (20, 1))
    fitted = of_labels({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]}, np.arange(40) // 20)
    assert told_of(fitted, 0) == told_of(fitted, 1) == []


def test_the_least_that_is_told():
    n = 10_000
    labels = np.repeat([0, 1], n)
    for share in np.linspace(0.5, 0.8, 16):
        columns = {"a": np.r_[np.arange(n) < share * n, np.arange(n) < 0.5 * n]}
        told = told_of(of_labels(columns, labels, alpha=0), 0)
        assert bool(told) == (bits(np.array(share), np.array(0.5)) >= LEAST)


def test_a_few_telling_items_among_thousands_come_first():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], 25)
    x = rng.random((100, 3000)) < 0.1
    x[labels == 2, :5] = True
    model = BayesianCaseModel(4, n_iter=4, n_chains=1, random_state=0).fit(x, pins={"cases": dict(enumerate(labels.tolist()))})
    found = told_of(model.fitted_, 2)
    assert {name for name, *_ in found[:5]} == {f"x{j}" for j in range(5)}
    assert max(here for _, _, here, _, _ in found[5:]) < 0.5
