"""The paper's experiments: one loop, resumable, the same numbers from the same seeds, one page."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bayescase import cli

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from bayescase.experiments import EXPERIMENTS, digits, frame, peers, reproduce, write_page

DATA = Path(__file__).parents[2] / "shared/data"
TINY = {
    "smiley": {"n_cases": 40, "n_iter": 10, "n_chains": 1},
    "digits": {"usps": True, "sizes": [5, 6], "samplers": ["rows", "collapsed"], "n_iter": 6, "thin": 2, "n_chains": 2},
    "recipes": {"alphas": ["digits", "natural"], "n_iter": 10, "n_chains": 1},
    "peers": {
        "sets": {name: peers.plan(40, 2, 2, 2, 2, 2) for name in ("digits", "subspaces")},
        "bayescase": {"n_iter": 10, "n_chains": 1},
        "sweeps": 10,
    },
}


@pytest.fixture
def tiny():
    """Every experiment with tiny settings."""
    return [replace(one, full=TINY[one.name], quick=TINY[one.name]) for one in EXPERIMENTS.values()]


def counting(experiment, runs, fail_at=None):
    def run(seed, settings, data):
        if seed == fail_at:
            raise KeyboardInterrupt
        runs.append(seed)
        return {"seed": seed}

    return replace(experiment, run=run)


def quiet(*args, **kwargs):
    return reproduce(*args, **kwargs, n_jobs=1, say=lambda words: None)


def test_a_stopped_run_goes_on_and_a_finished_one_does_nothing(tmp_path):
    runs = []
    with pytest.raises(KeyboardInterrupt):
        quiet([counting(EXPERIMENTS["smiley"], runs, fail_at=2)], tmp_path, seeds=4)
    assert runs == [0, 1]
    whole = [counting(EXPERIMENTS["smiley"], runs)]
    assert quiet(whole, tmp_path, seeds=4) == {"smiley": [{"seed": seed} for seed in range(4)]}
    assert runs == [0, 1, 2, 3]
    assert len(quiet(whole, tmp_path, seeds=3)["smiley"]) == 3
    assert runs == [0, 1, 2, 3]
    assert len((tmp_path / "log.txt").read_text().splitlines()) == 4
    assert sorted(path.name for path in (tmp_path / "smiley").iterdir()) == [f"seed-{seed}.json" for seed in range(4)]


def test_results_of_other_settings_are_neither_mixed_in_nor_lost(tmp_path):
    one, runs = counting(EXPERIMENTS["smiley"], []), []
    quiet([one], tmp_path, seeds=1)
    before = (tmp_path / "smiley/seed-0.json").read_bytes()
    with pytest.raises(ValueError, match="other settings or data; give another --out"):
        quiet([counting(one, runs)], tmp_path, seeds=1, quick=True)
    assert not runs
    assert (tmp_path / "smiley/seed-0.json").read_bytes() == before
    (tmp_path / "smiley/seed-0.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"seed-0.json is not a result"):
        quiet([one], tmp_path, seeds=1)


def test_same_seeds_same_numbers_and_a_page(tiny, tmp_path):
    found = quiet(tiny, tmp_path / "a", seeds=2)
    assert found == quiet(tiny, tmp_path / "a", seeds=2)  # now from the files
    again = quiet(tiny, tmp_path / "b", seeds=2)
    for numbers in (*found["peers"], *again["peers"]):
        assert numbers.pop("seconds")  # are measured
    assert again == found
    for one in tiny:
        assert found[one.name][0] != found[one.name][1]
    page = write_page(tiny, tmp_path / "a")
    text = page.read_text("utf-8")
    assert page == tmp_path / "a.md"
    for one in tiny:
        assert f"## {one.title}" in text
        for row in one.rows(found[one.name]) if one.rows else ():
            assert all("\n" not in cell for cell in row)
            assert row.ours in text
        pictures = list((tmp_path / "a" / one.name).glob("*.png"))
        assert pictures
        assert all(f"(a/{one.name}/{picture.name})" in text for picture in pictures)


def test_without_tomotopy_the_page_says_so(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("bayescase.experiments.smiley.has_lda", lambda: False)
    smiley = [one for one in tiny if one.name == "smiley"]
    quiet(smiley, tmp_path / "a", seeds=1)
    text = write_page(tiny, tmp_path / "a").read_text("utf-8")
    assert "tomotopy is not installed" in text
    assert text.count("\n## ") == 1  # what has no results is not on the page


def test_bad_data_is_one_sentence(tmp_path):
    def call(*args):
        return CliRunner().invoke(cli.main, ["reproduce", "recipes", "--out", str(tmp_path / "out"), *map(str, args)])

    missing = call("--data", tmp_path / "nowhere")
    assert missing.exit_code == 1
    assert missing.stderr.endswith("nowhere.\n")
    assert missing.stderr.startswith("Error: --data: there is no folder")
    assert "has no bcm_recipes_56x147.csv" in call("--data", tmp_path).stderr
    assert not (tmp_path / "out").exists()
    (tmp_path / "bcm_recipes_56x147.csv").write_text("name,category,salt\nsoup,soups,often\n")
    broken = call("--data", tmp_path, "--seeds", 1)
    assert broken.exit_code == 1
    assert "is not the table of recipes" in broken.stderr
    assert not list((tmp_path / "out").rglob("*.json"))
    (tmp_path / "file").write_text("")
    assert "is a file; give a folder" in call("--out", tmp_path / "file").stderr


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    stopped = counting(EXPERIMENTS["smiley"], [], fail_at=0)
    monkeypatch.setitem(EXPERIMENTS, "smiley", stopped)
    done = CliRunner().invoke(cli.main, ["reproduce", "smiley", "--out", str(tmp_path / "out")])
    assert done.exit_code == cli.STOPPED
    assert done.stderr == "Stopped; the same command goes on after the seeds that are done.\n"


def test_damaged_digits_are_one_sentence(tmp_path):
    path = tmp_path / "usps_16x16.npz"
    for damage in (lambda: path.write_bytes(b"PK\x03\x04 and no more"), lambda: np.savez(path, X=np.zeros(3)), path.touch):
        path.unlink(missing_ok=True)
        damage()
        with pytest.raises(ValueError, match="does not have the arrays X_train"):
            EXPERIMENTS["digits"].run(0, TINY["digits"], tmp_path)


def test_half_of_the_labels_of_the_papers_start_are_wrong():
    y = np.repeat(np.arange(10), 7)
    start = digits.half_correct(y, np.random.default_rng(0))
    assert (start == y).sum() == 35
    assert set(start) <= set(range(10))


def test_starts_and_samplers_of_digits_are_told_apart():
    fits = EXPERIMENTS["digits"].run(0, TINY["digits"], None)["fits"]
    kinds = {(fit["size"], fit["start"], fit["sampler"], fit["model"]) for fit in fits}
    assert len(kinds) == len(fits)
    assert {start for _, start, _, _ in kinds} == set(digits.STARTS)
    assert {sampler for _, _, sampler, _ in kinds} >= {"rows", "collapsed"}
    assert all(0 <= fit["svm"] <= 1 for fit in fits)
    assert all(("curve" in fit) == (fit["model"] == "bcm") for fit in fits)


def test_the_command_knows_every_experiment():
    assert list(cli.REPRODUCED) == [*EXPERIMENTS, "all"]


def test_the_papers_recipes_are_read():
    if not (DATA / "bcm_recipes_56x147.csv").exists():
        pytest.skip("needs bcm_recipes_56x147.csv in ../shared/data, which is not here")
    numbers = EXPERIMENTS["recipes"].run(0, TINY["recipes"], DATA)
    assert numbers["families"] == ["brownie", "chili", "pasta", "punch"]
    assert [len(fit["prototypes"]) for fit in numbers["fits"].values()] == [4, 4]
    json.dumps(numbers, allow_nan=False)


def test_spread():
    assert frame.spread([0.5, 0.7]) == "0.60 ± 0.14"
    assert frame.spread([0.5]) == "0.50 (one seed)"
