"""How many people it takes, and what is decided before there are data."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bayescase.cli.main import main
from bayescase.study.design.design import DesignError
from bayescase.study.design.design_file import freeze, write_design
from bayescase.study.planted import SimulatedMind, Truth, World, rows
from bayescase.study.power import PowerCell, Setting, needed, run_power, sample_size, truth_of
from bayescase.study.preregister import document, lacks

from .designs import between, predicting, rating_design, small_design

QUIET = Truth(person_slope_sd=0.0, case_slope_sd=0.0)


def call(*arguments, code=0):
    shown = CliRunner().invoke(main, ["study", *map(str, arguments)])
    assert shown.exit_code == code, shown.output
    return shown


def test_more_people_and_larger_effects_are_found_more_often():
    cells = run_power(small_design(), (8, 40), (0.0, 0.2), (0.0,), studies=12, truth=QUIET)
    share = {(cell.people, cell.effect): cell.share("these") for cell in cells}
    assert share[40, 0.2] > 0.9
    assert share[40, 0.2] >= share[8, 0.2] > share[8, 0.0] - 0.2
    assert share[40, 0.0] < 0.5


def test_what_explanations_differ_in_costs_power_for_their_kind():
    """With effects that differ by 2 logits over five explanations, hardly any study can speak of their kind."""
    even, wide = run_power(small_design(), (40,), (0.15,), (0.0, 2.0), studies=12, truth=QUIET)
    assert even.share("kind") > wide.share("kind") + 0.3


@pytest.mark.parametrize("make", [between, predicting, rating_design])
def test_every_kind_of_design_has_power(make):
    effect = 0.3 if make is rating_design else 0.2
    (cell,) = run_power(make(), (60,), (effect,), (0.0,), studies=6, truth=QUIET)
    assert cell.these >= 4
    assert cell.wrong == 0


def test_effects_are_of_the_primary_outcome():
    design = small_design()
    assert truth_of(design, Setting(0.1, 0.5), 0.6, Truth()).right == {"bcm": 0.7, "lda": 0.6}
    timed = replace(design, plan=replace(design.plan, primary="time"))
    assert truth_of(timed, Setting(1.5, 0.5), 20, Truth()).seconds == {"bcm": 30.0, "lda": 20}
    assert truth_of(rating_design(), Setting(0.1, 0.5), 0.5, Truth()).rating == {"bcm": 0.6, "lda": 0.5}
    for wrong, words in ((Setting(0.6, 0.0), "do not go together"),):
        with pytest.raises(DesignError, match=words):
            truth_of(design, wrong, None, Truth())
    with pytest.raises(DesignError, match="a ratio"):
        truth_of(timed, Setting(0.0, 0.0), None, Truth())
    with pytest.raises(DesignError, match="no verdicts"):
        run_power(small_design(mode="paper"), (8,), (0.1,), (0.0,), studies=1)


def test_the_number_of_people_has_its_uncertainty():
    n = np.array([10.0, 20, 40, 80])
    true = np.array([0.3, 0.5, 0.8, 0.97])
    grid = list(zip(n.astype(int).tolist(), true, strict=True))
    assert needed(n, 1000 * true, np.full(4, 1000.0)) == pytest.approx(40, abs=4)
    few, many = (
        sample_size([PowerCell(k, 0.1, 0.0, s, round(s * p), round(s * p), 0) for k, p in grid], 0.1, 0.0, "kind")
        for s in (50, 1000)
    )
    assert many.low <= many.people <= many.high
    assert few.high - few.low > 2 * (many.high - many.low)
    flat = [PowerCell(int(k), 0.1, 1.0, 100, 70, 30, 0) for k in n]
    assert "more explanations would help" in sample_size(flat, 0.1, 1.0, "kind").words
    sure = [PowerCell(int(k), 0.1, 1.0, 100, 100, 100, 0) for k in n]
    assert sample_size(sure, 0.1, 1.0, "kind").words == "10 people or fewer"


def test_power_on_the_command_line_goes_on_where_it_was(tmp_path):
    write_design(small_design(), tmp_path / "s")
    freeze(tmp_path / "s")
    common = ("power", tmp_path / "s", "--effects", "0,0.2", "--slopes", "0", "--studies", 4, "-o", tmp_path / "out")
    call(*common, "--people", "8")
    first = json.loads((tmp_path / "out/power.json").read_text())
    shown = call(*common, "--people", "8,12")
    second = json.loads((tmp_path / "out/power.json").read_text())
    assert [cell["people"] for cell in second["cells"]] == [8, 8, 12, 12]
    assert second["cells"][:2] == first["cells"]
    assert "80 % power, these explanations, effect 0.2" in shown.stdout
    assert (tmp_path / "out/power.png").stat().st_size > 10_000
    assert json.loads(call(*common, "--people", "8", "--json").stdout)["cells"] == first["cells"]
    call(*common, "--people", "8", "--person-sd", "3")  # something else is planted, so nothing of the earlier run is taken
    third = json.loads((tmp_path / "out/power.json").read_text())
    assert third["planted"]["person_sd"] == 3
    assert [cell["people"] for cell in third["cells"]] == [8, 8]
    (tmp_path / "out/power.json").write_text("{}")
    assert "give another folder" in call(*common, "--people", "8", code=1).stderr
    assert "not a list of numbers" in call("power", tmp_path / "s", "--people", "many", code=2).stderr


# --- what is planted ------------------------------------------------------------------------------------------------------


def test_planted_slopes_have_their_standard_deviations():
    design = small_design()
    truth = Truth(explanation_slope_sd=1.0, case_slope_sd=0.5, case_sd=2.0)
    worlds = [World(design, truth, draw) for draw in range(300)]
    slopes = [w.explanation_slope["chilli", "bcm"] - w.explanation_slope["chilli", "lda"] for w in worlds]
    assert np.std(slopes) == pytest.approx(1.0, abs=0.12)
    assert np.mean(slopes) == pytest.approx(0.0, abs=0.2)
    cases = [w.case_slope["a1", "bcm"] - w.case_slope["a1", "lda"] for w in worlds]
    assert np.std(cases) == pytest.approx(0.5, abs=0.07)
    assert np.std([w.case["a1"] for w in worlds]) == pytest.approx(2.0, abs=0.25)
    minds = [SimulatedMind(worlds[0], k) for k in range(300)]
    assert np.std([m.slope["bcm"] - m.slope["lda"] for m in minds]) == pytest.approx(0.3, abs=0.04)


def test_planted_rows_are_what_an_analysis_needs():
    design = rating_design()
    answers, who = rows(design, 4, World(design, Truth(rating={"bcm": 1.0, "lda": 0.0}, rating_sd=0.0)))
    assert len(answers) == 64
    assert {row["correct"] for row in answers} == {None}
    assert all(row["rating_trust"] == (4 if row["condition"] == "bcm" else 0) for row in answers)
    assert all(person["rating_clear_bcm"] == 4 for person in who)
    again, _ = rows(design, 4, World(design, Truth(rating={"bcm": 1.0, "lda": 0.0}, rating_sd=0.0)))
    assert answers == again


# --- what is decided before -----------------------------------------------------------------------------------------------


def test_a_preregistration_has_all_that_was_decided(tmp_path):
    design = small_design()
    text = document(design, frozen=True)
    for words in (
        design.hash,
        "1. BCM is better.",
        "24 complete people",
        "After 24 people.",
        "**primary**: right answers",
        "Holm",
        "±5",
    ):
        assert words in text
    assert "NOT FROZEN" not in text
    assert "NOT FROZEN" in document(design, frozen=False)
    assert "no verdict is given" in document(small_design(mode="paper"), True)
    assert "Each person meets one condition" in document(between(), True)
    write_design(design, tmp_path)
    freeze(tmp_path)
    call("preregister", tmp_path, "-o", tmp_path / "registered.md")
    assert (tmp_path / "registered.md").read_text("utf-8") == text
    assert call("preregister", tmp_path).stdout == text


def test_what_is_not_decided_is_not_registered():
    design = small_design()
    open_ = replace(design, plan=replace(design.plan, hypotheses=(), sample_size=None))
    assert lacks(open_) == ["hypotheses", "sample_size"]
    with pytest.raises(DesignError, match="lacks hypotheses, sample_size"):
        document(open_, True)
