"""Two coders, and kappa."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from bayescase.study.design.coders import cohen_kappa, read_coders
from bayescase.study.design.design import DesignError
from bayescase.study.design.making import make_design


def write_coders(path, first, second, cases=None):
    rows = [(i if cases is None else cases[i], a, b) for i, (a, b) in enumerate(zip(first, second, strict=True))]
    path.write_text("case,coder1,coder2\n" + "".join(f"{c},{a},{b}\n" for c, a, b in rows), "utf-8")
    return path


def test_kappa():
    assert cohen_kappa([("a", "a"), ("b", "b")]) == 1
    assert cohen_kappa([("a", "b"), ("b", "a")]) == -1
    assert cohen_kappa([("a", "a"), ("a", "a")]) is None
    # 20 both yes, 15 both no, 5 and 10 apart: (0.7 - 0.5) / 0.5
    assert cohen_kappa([("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15) == pytest.approx(0.4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=(2, 200))
    assert cohen_kappa(list(zip(a.tolist(), b.tolist(), strict=True))) == pytest.approx(cohen_kappa_score(a, b))


def test_coders_who_agree_with_the_model(meals, tmp_path):
    path = write_coders(tmp_path / "c.csv", meals.labels_, meals.labels_)
    design = make_design(meals, arms=("bcm", "subspace"), coders=path)
    assert "Cohen's kappa is 1.000" in design.made["coders"]
    assert not any(item.flags for item in design.items)


def test_words_mean_the_cluster_that_most_of_their_cases_are_in(meals, tmp_path):
    words = np.array(["soup", "cake", "tea", "bread", "pie"])[meals.labels_]
    words[np.flatnonzero(words == "soup")[0]] = "cake"
    coded = read_coders(write_coders(tmp_path / "c.csv", words, words, meals.case_names_), meals.case_names_, meals.labels_, 5)
    assert coded.cluster == {"soup": 0, "cake": 1, "tea": 2, "bread": 3, "pie": 4}
    assert coded.flags(int(np.flatnonzero(meals.labels_ == 0)[0]), 0) == ["coders say cake, which is cluster 1"]
    assert coded.flags(int(np.flatnonzero(meals.labels_ == 0)[1]), 0) == []


def test_numbers_from_one_are_words(meals, tmp_path):
    path = write_coders(tmp_path / "c.csv", meals.labels_ + 1, meals.labels_ + 1)
    coded = read_coders(path, None, meals.labels_, 5)
    assert coded.cluster == {str(s + 1): s for s in range(5)}


def test_items_on_which_coders_differ_are_avoided_and_flagged(meals, tmp_path):
    first, second = meals.labels_.astype(object), meals.labels_.astype(object)
    cases = np.random.default_rng(0).permutation(len(first))
    differ, both, blank = cases[:12], cases[12:20], cases[20:26]
    second[differ] = (second[differ] + 1) % 5
    first[both] = second[both] = (meals.labels_[both] + 2) % 5
    second[blank] = ""
    path = write_coders(tmp_path / "c.csv", first, second)
    design = make_design(meals, arms=("bcm", "subspace"), coders=path)
    assert not {item.case for item in design.items} & {*differ, *both, *blank}
    design = make_design(meals, arms=("bcm", "subspace"), coders=path, items_per_block=28)
    flags = {item.case: " ".join(item.flags) for item in design.items}
    assert all(bool(flags[i]) == (i in {*differ, *both, *blank}) for i in flags)
    assert all("coders differ" in flags[i] for i in differ if i in flags)
    assert all("coders say" in flags[i] for i in both if i in flags)
    assert all("not coded" in flags[i] for i in blank if i in flags)
    assert sum(map(bool, flags.values())) > 5


def test_one_label_only_has_no_kappa(meals, tmp_path):
    ones = np.zeros_like(meals.labels_)
    assert "not defined" in str(read_coders(write_coders(tmp_path / "c.csv", ones, ones), None, meals.labels_, 5))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case,coder1\n0,1\n", "three columns"),
        ("name,coder1,coder2\n0,1,1\n", "three columns"),
        ("case,coder1,coder2,coder3\n0,1,1,1\n", "three columns"),
        ("case,coder1,coder2\n500,1,1\n", "'500', which the model does not have"),
        ("case,coder1,coder2\nnobody,1,1\n", "'nobody'"),
        ("case,coder1,coder2\n0,1,1\n0,1,2\n", "'0' twice"),
        ("case,coder1,coder2\n0,,1\n1,1,\n", "no case with a label of both"),
    ],
)
def test_coders_that_cannot_be_used(meals, tmp_path, text, message):
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(DesignError, match=message):
        make_design(meals, arms=("bcm", "subspace"), coders=path)


def test_a_name_of_several_cases_is_no_name(meals, tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("case,coder1,coder2\nsame,1,1\n")
    with pytest.raises(DesignError, match="several cases"):
        read_coders(path, ["same"] * 70, meals.labels_, 5)
