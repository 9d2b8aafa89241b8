"""The paper's experiments: one loop, resumable, the same numbers from the same seeds, one page."""

import json
import lzma
import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.utils import Bunch

from bayescase import BayesianCaseModel, load_recipes
from bayescase.cli import bench
from bayescase.cli import main as cli
from bayescase.explaining.explanation import Explanation

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from bayescase.experiments import (
    EXPERIMENTS,
    accuracy,
    agreement,
    bags,
    chains,
    digits,
    frame,
    newsgroups,
    page,
    peers,
    recipes,
    reproduce,
    sensitivity,
    smiley,
    starts,
    write_page,
)

DATA = Path(__file__).parents[3] / "shared/data"
TINY = {
    "smiley": {"n_cases": 40, "n_iter": 10, "n_chains": 1},
    "digits": {
        "usps": True,
        "sizes": [5, 6],
        "fewer_sizes": [6],
        "fits": digits.FITS,
        "n_iter": 12,
        "chains": {"half": 1, "seeded": 2, "random": 1},
    },
    "agreement": {"usps": True, "size": 6, "n_iter": 20, "thin": 5},
    "modes": {"usps": True, "size": 6, "n_iter": 20, "thin": 5, "chains": {"half": 1, "seeded": 2}, "rounds": 1},
    "newsgroups": {"fetch": False, "sizes": [8, 10], "words": 20, "drawn": 4, "n_iter": 6, "thin": 2, "n_chains": 2}
    | {"topics": 5, "lda_iter": 5},
    "sensitivity": {"usps": True, "size": 5, "q": [0.1, 0.8], "lam": [1.0, 9.0], "c": [0.0, 50.0], "n_iter": 6, "thin": 2},
    "recipes": {"alphas": ["digits", "natural"], "n_iter": 10, "n_chains": 1},
    "starts": {"usps": True, "size": 5, "n_iter": 6, "thin": 1, "readings": list(starts.READINGS)},
    "bags": {"fetch": False, "size": 10, "words": 20, "n_iter": 10, "n_chains": 1, "lda_iter": 5}
    | {"all_seeds": 1, "all_clusters": [5], "all_iter": 6, "all_chains": 1},
    "numbers": {"sets": {"zoo": [1, 3]}, "most": 60, "max_clusters": 4, "cv": 2}
    | {"fit": {"n_iter": 10, "n_chains": 1}, "select": {"n_iter": 6, "n_chains": 1}},
    "clusters": {"clusters": [1, 2], "features": [6], "cases": [30], "n_iter": 10, "n_chains": 1},
    "chains": {"sets": ["zoo", "recipes"], "most": 60, "ways": {"plain starts": {"n_init": 1}, "searched": {"n_init": 3}}}
    | {"fit": {"n_iter": 20, "n_chains": 2}, "until": {"n_iter": "auto", "max_iter": 20, "n_chains": 2}, "waits": 1},
    "peers": {
        "sets": {name: peers.plan(40, 2, 2, 2, 2, 2) for name in ("digits", "subspaces")},
        "bayescase": {"n_iter": 10, "n_chains": 1},
        "sweeps": 10,
    },
}
LETTERS = "abcdefgh"


def messages():
    """Made-up messages of four groups: [(split, group, number, text)], in the order of the files."""
    rng, made = np.random.default_rng(0), []
    words = [a + b + "x" for a in LETTERS for b in LETTERS]
    for split in ("train", "test"):
        for g, group in enumerate(newsgroups.GROUPS):
            chances = np.where(np.arange(64) // 16 == g, 4.0, 1.0)
            texts = (" ".join(rng.choice(words, 24, p=chances / chances.sum())) for _ in range(12))
            made += [(split, group, 90 + k, text) for k, text in enumerate(texts)]
    return made


@pytest.fixture
def folder(tmp_path):
    """A folder of data with such messages, raw and counted, two of them without a word, and a table of made-up animals."""
    path = tmp_path / "data"
    path.mkdir()
    rng = np.random.default_rng(0)
    animals = [
        f"{kind},pet {i},{','.join(map(str, (rng.integers(2, size=6) + kind) % 3))}" for i, kind in enumerate([0, 1] * 20)
    ]
    (path / "uci_zoo.csv").write_text("\n".join(["type,animal,a,b,c,d,e,f", *animals]) + "\n")
    with lzma.open(path / newsgroups.RAW, "wt", encoding="utf-8") as file:
        for split, group, number, text in messages():
            file.write(json.dumps({"split": split, "group": group, "id": number, "text": text}) + "\n")
    news = newsgroups.read_raw(path / newsgroups.RAW)
    counts = news.counts.toarray()
    counts[[0, -1]] = 0
    write_counts(path, counts, news)
    return path


def write_counts(path, counts, news, **instead):
    x = newsgroups.csr_array(counts)
    about = {"label": news.label, "is_train": news.is_train, "vocabulary": news.vocabulary, "label_names": news.label_names}
    parts = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": x.shape}
    np.savez(path / newsgroups.COUNTS, **(parts | about | instead))


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
    with pytest.raises(ValueError, match="other settings or data; give another out"):
        quiet([counting(one, runs)], tmp_path, seeds=1, quick=True)
    assert not runs
    assert (tmp_path / "smiley/seed-0.json").read_bytes() == before
    (tmp_path / "smiley/seed-0.json").write_text("[1]")
    with pytest.raises(ValueError, match=r"seed-0.json is not a result"):
        quiet([one], tmp_path, seeds=1)


@pytest.mark.filterwarnings("ignore:Rows? .* no value at all")
def test_same_seeds_same_numbers_and_a_page(tiny, folder, tmp_path):
    found = quiet(tiny, tmp_path / "a", folder, seeds=2)
    assert found == quiet(tiny, tmp_path / "a", folder, seeds=2)  # now from the files
    again = quiet(tiny, tmp_path / "b", folder, seeds=1)
    for numbers in (*found["peers"], *again["peers"]):
        assert numbers.pop("seconds")  # are measured
    for fit in (fit for numbers in (*found["chains"], *again["chains"]) for fit in numbers["fits"]):
        assert fit.pop("seconds")
        assert fit.pop("waited", 1.0)
    assert again == {name: results[:1] for name, results in found.items()}
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
    start = accuracy.half_correct(y, np.random.default_rng(0))
    assert (start == y).sum() == 35
    assert set(start) <= set(range(10))


def test_starts_and_samplers_of_digits_are_told_apart():
    fits = EXPERIMENTS["digits"].run(0, TINY["digits"], None)["fits"]
    kinds = {(fit["size"], fit["start"], fit["sampler"], fit["model"]) for fit in fits}
    assert len(kinds) == len(fits)
    assert {start for _, start, _, _ in kinds} == set(accuracy.STARTS)
    assert {sampler for _, _, sampler, _ in kinds} >= {"rows", "collapsed"}
    assert all(0 <= fit["svm"] <= 1 for fit in fits)
    assert all(("curve" in fit) == (fit["model"] == "bcm" and fit["size"] == 6) for fit in fits)


@pytest.mark.parametrize("start", ["seeded", "half"])
def test_the_first_half_of_a_chain_is_the_same_chain(start):
    """A seeded chain begins with sweeps that move whole cases only: how many depends on the burn-in."""
    images, numbers = digits.load(TINY["digits"], None)
    x, _, half, held_out = digits.sample(images, numbers, 8, 0)
    late = digits.best_chain(x, half if start == "half" else start, "rows", 50.0, 60, 1, 3, held_out)
    chain, early = late[0].log_joint_[0], digits.first_half(late).log_joint[0]
    assert np.array_equal(early, chain[: 30 : digits.THIN])
    assert np.array_equal(late[0].draws_.log_joint[0], chain[30 :: digits.THIN])


def test_newsgroups_are_left_out_of_a_quick_run_without_data(folder, tmp_path):
    said, runs = [], []
    both = [counting(EXPERIMENTS[name], runs) for name in ("newsgroups", "smiley")]
    assert list(reproduce(both, tmp_path / "a", quick=True, seeds=1, say=said.append)) == ["smiley"]
    assert str(said[0]).startswith("newsgroups: left out of a quick run")
    assert list(quiet(both, tmp_path / "b", folder, quick=True, seeds=1)) == ["newsgroups", "smiley"]
    alone = CliRunner().invoke(cli.main, ["reproduce", "newsgroups", "--quick", "--out", str(tmp_path / "c")])
    assert alone.exit_code == 1
    assert alone.stderr.endswith("give --data DIR with 20news_bydate_counts.npz.\n")


def test_downloaded_newsgroups_are_those_of_the_file(folder, monkeypatch):
    def fetch(subset, remove, shuffle):
        own = [(group, number, text) for split, group, number, text in reversed(messages()) if split == subset]
        target = np.array([newsgroups.GROUPS.index(group) for group, _, _ in own])
        names = [f"somewhere/{group}/{number}" for group, number, _ in own]
        texts = [text for _, _, text in own]
        return Bunch(data=texts, target=target, filenames=np.array(names), target_names=list(newsgroups.GROUPS))

    monkeypatch.setattr(newsgroups, "fetch_20newsgroups", fetch)
    downloaded, read = newsgroups.download("full"), newsgroups.read_raw(folder / newsgroups.RAW)
    assert np.array_equal(downloaded.counts.toarray(), read.counts.toarray())
    for name in ("label", "is_train", "vocabulary", "label_names"):
        assert np.array_equal(getattr(downloaded, name), getattr(read, name))


def test_newsgroups_without_a_network_are_one_sentence(monkeypatch):
    def fetch(**kwargs):
        raise URLError("no route")

    monkeypatch.setattr(newsgroups, "fetch_20newsgroups", fetch)
    with pytest.raises(ValueError, match=r"could not be downloaded \(.*no route.*\); give data='DIR' with 20news"):
        newsgroups.load(None)


def test_damaged_newsgroups_are_one_sentence(folder):
    news = newsgroups.load(folder)["stripped"]
    counts = news.counts.toarray()
    write_counts(folder, counts, news, label_names=["comp.graphics", "a", "b", "c"])
    with pytest.raises(ValueError, match=r"does not have the group rec.autos"):
        newsgroups.load(folder)
    write_counts(folder, counts[:20], news)
    with pytest.raises(ValueError, match="does not have the word counts"):
        newsgroups.load(folder)
    (folder / newsgroups.COUNTS).write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match="does not have the word counts"):
        newsgroups.load(folder)
    write_counts(folder, counts, news)
    (folder / newsgroups.RAW).write_bytes(lzma.compress(b'{"text": "half a'))
    with pytest.raises(ValueError, match="a message with split, group and text"):
        newsgroups.load(folder)
    (folder / newsgroups.RAW).unlink()
    assert list(newsgroups.load(folder)) == ["stripped"]


def test_documents_that_are_drawn(folder):
    news, rng = newsgroups.load(folder)["stripped"], np.random.default_rng(0)
    x, y, bags = newsgroups.sample(news, "equal", 8, TINY["newsgroups"], rng)
    assert x.shape == (32, 20)
    assert set(x.sum(axis=1)) == {4}
    assert [len(bag) for bag in bags] == [4] * 32
    assert np.bincount(y).tolist() == [8] * 4
    x, _, bags = newsgroups.sample(news, "whole", 23, TINY["newsgroups"], rng)
    assert min(map(len, bags)) > 0  # empty ones are not drawn
    assert len(set(x.sum(axis=1))) > 1
    with pytest.raises(ValueError, match=r"23 documents of comp.graphics to draw from, but 24 are needed"):
        newsgroups.sample(news, "whole", 24, TINY["newsgroups"], rng)


def test_what_is_said_of_clusters_of_documents():
    labels = np.array([0, 0, 1, 1])
    assert newsgroups.explained(np.array([1.0, 1.0, 3.0, 3.0]), labels) == 1
    assert newsgroups.explained(np.array([1.0, 3.0, 1.0, 3.0]), labels) == 0
    assert newsgroups.explained(np.ones(4), labels) == 0
    x, y = np.array([[1, 0], [0, 0], [1, 1], [0, 1]]), np.array([0, 0, 1, 1])
    p = np.array([[0, 0, 1, 1]])  # the last two clusters are empty and do not count
    chain = accuracy.Chain(np.array([1]), p, np.ones((1, 4, 2), dtype=bool), labels)
    assert newsgroups.about_prototypes(x, y, chain) == {"own": 0.5, "absent": 0.5}


def test_a_sampler_that_stays_at_its_start_is_named():
    fits = [{"start": "half", "kept": 0.95}, {"start": "random", "svm": 0.5}]
    assert "hardly left its start (NMI 0.95)" in newsgroups.about_start([{"fits": fits}], {"start": "half"})
    assert newsgroups.about_start([{"fits": fits}], {"start": "random"}) == ""


def test_the_newsgroups_are_read():
    if not (DATA / newsgroups.COUNTS).exists():
        pytest.skip(f"needs {newsgroups.COUNTS} in ../shared/data, which is not here")
    news = newsgroups.load(DATA)["stripped"]
    assert (news.counts.shape, len(news.label_names), news.is_train.sum()) == ((18846, 12871), 20, 11314)
    settings = EXPERIMENTS["newsgroups"].full
    x, _, _ = newsgroups.sample(news, "equal", 450, settings, np.random.default_rng(0))
    assert x.shape == (1800, 1000)
    with pytest.raises(ValueError, match="are needed"):  # so 15 is the most, in steps of five
        newsgroups.sample(news, "equal", 450, settings | {"drawn": 20}, np.random.default_rng(0))


def test_results_of_other_settings_are_not_shown_and_not_lost(tmp_path):
    """They may lack what tables are made of now."""
    one, kept = EXPERIMENTS["smiley"], tmp_path / "out/chains/seed-0.json"
    kept.parent.mkdir(parents=True)
    kept.write_text(json.dumps({"experiment": "chains", "settings": {}, "source": "zoo", "numbers": {"fits": []}}))
    quiet([replace(one, full=TINY["smiley"])], tmp_path / "out", seeds=1)
    before = kept.read_bytes()
    text = write_page([replace(one, full=TINY["smiley"]), EXPERIMENTS["chains"]], tmp_path / "out").read_text("utf-8")
    assert f"## {one.title}\n\n{one.paper}" in text  # others are as they were
    assert text.index("## Do chains meet?") < text.index("`bayescase reproduce chains` with the same `--out` makes them anew")
    assert "10 seeds" not in text.partition("## Do chains meet?")[2]
    assert kept.read_bytes() == before
    assert not (tmp_path / "out/chains/figure-1.png").exists()


def test_the_page_in_the_documents_is_what_its_results_give(tmp_path):
    docs = Path(__file__).parents[2] / "docs"
    shutil.copytree(docs / "reproduction", tmp_path / "reproduction", ignore=shutil.ignore_patterns("*.png"))
    page = write_page(EXPERIMENTS.values(), tmp_path / "reproduction")
    assert page.read_text("utf-8") == (docs / "reproduction.md").read_text("utf-8")
    figures = re.findall(r"^!\[.*\]\((.*)\)$", page.read_text("utf-8"), re.MULTILINE)
    assert figures
    assert all((docs / figure).exists() for figure in figures)


def test_the_range_of_good_values():
    found = {1.0: 0.7, 2.0: 0.5, 3.0: 0.69, 4.0: 0.7, 5.0: 0.75, 6.0: 0.6}
    assert sensitivity.good_range(found, 4.0) == (3.0, 5.0)
    words = sensitivity.beyond(found, "q", 4.0, 3.0, 5.0)
    assert words == "Beyond: 0.50 at q = 2 and 0.60 at q = 6. Better than at the paper's value: 0.75 at q = 5."
    assert sensitivity.beyond({1.0: 0.7}, "q", 1.0, 1.0, 1.0) == "It does not break where tried."


def test_chains_in_the_same_clusters_share_their_memberships_whatever_the_labels():
    a = np.random.default_rng(0).dirichlet([0.1] * 3, size=40)
    assert agreement.shared(a, a[:, [2, 0, 1]]) == pytest.approx(1.0)
    assert agreement.shared(a, np.roll(a, 1, axis=0)) < 0.9


def chain_fits(name, good, **more):
    """Ten seeds of a set at plain sweeps and at the defaults, as the experiment keeps them."""
    plain = {
        "agree": 0.25,
        "sound": False,
        "good": False,
        "told": 0.9,
        "ess": 10.0,
        "ess_of_all": 5.0,
        "best": -9.0,
        "seconds": 1.0,
    }
    now = plain | {"agree": 1.0, "ess": 300.0, "ess_of_all": 30.0, "seconds": 2.5} | more
    ways = (("plain sweeps", plain, 0), ("defaults", now, good))
    return [{"fits": [{"set": name, "way": way, **of, "good": k < n} for way, of, n in ways]} for k in range(10)]


def test_chains_stand_beside_where_they_began_and_what_was_aimed_at():
    def line(results):
        return chains.tables(results).splitlines()[-1]

    assert (
        line(chain_fits("zoo", 8))
        == "| zoo | 0.50 → 1.00 | 8 of 10, reached | 2.5, **missed** | 12.0, reached | 2.4, **missed** |"
    )
    assert "| 7 of 10, **missed** | 2.0, reached | 15.0 | 3.0 |" in line(chain_fits("votes", 7, seconds=2.0))
    assert line(chain_fits("nursery", 0, told=0.1)).startswith(
        "| nursery | – → 1.00 | 0 of 10, **missed**; 10 of 10 say that there are no clusters |"
    )
    assert "| 10 of 10 say that there are no clusters, as they should: reached |" in line(chain_fits("car", 0, told=0.1))
    assert "| 0 of 10 say that there are no clusters, as they should: **missed** |" in line(chain_fits("car", 10))


def test_a_difference_between_the_starts_is_told_with_its_error():
    def made(pairs):
        return [{"fits": [{"start": "half", "svm": a}, {"start": "seeded", "svm": b}]} for a, b in pairs]

    told = agreement.beside(made([(0.8, 0.7), (0.9, 0.8)]), "svm", 2)
    assert told == "0.100 above the start without labels, ± 0.000 (standard error)."
    same = agreement.beside(made([(0.8, 0.7), (0.6, 0.8)]), "svm", 2)
    assert same == "0.050 below the start without labels, ± 0.150 (standard error): no difference seen."


def test_subspaces_that_are_not_the_planted_ones_are_counted():
    pairs = [(["a", "b"], ["a", "b"]), (["a", "b"], ["a", "b", "c"]), (["a", "b"], ["a"])]
    results = [{"clusters": [{"planted": planted, "subspace": subspace} for planted, subspace in pairs]}]
    assert smiley.wider(results) == "; of the 2 subspaces that differ, 1 have the planted features and one or more others"


def test_bags_say_which_of_the_papers_prototypes_come_back_and_how_far_seeds_are_apart():
    assert bags.come_back(["Generic Chili Recipe", "Microwave Brownies", "Rum"]).startswith(
        "Of the paper's prototypes Generic chili recipe, Microwave brownies alone."
    )
    assert bags.come_back(["Rum"]).startswith("None of the paper's prototypes comes back.")
    assert not bags.come_back(recipes.PAPER.values())
    assert bags.seed_by_seed([0.5, 0.62, 0.5, 0.6]) == "Mean 0.555, from 0.500 (in 2 of 4 seeds) to 0.620."
    assert not bags.seed_by_seed([0.6, 0.61])


def test_bags_are_set_beside_lda_and_one_seed_is_said_to_be_one():
    one = {"bcm": 0.57, "lda": 0.59, "lda_counted": 0.6}
    assert bags.beside_lda([one]) == (
        "0.02 below LDA with each word once and 0.03 below LDA with words as often as they occur."
        " How much of that is chance, one seed does not say."
    )
    assert bags.beside_lda([{"bcm": 0.5, "lda": 0.4}, {"bcm": 0.5, "lda": 0.5}]) == "0.05 above LDA with each word once."
    assert not bags.beside_lda([{"bcm": 0.5}])


def test_the_way_of_a_reading_is_told_from_its_first_sweep_to_its_last():
    rising = {"sweeps": [1, 6, 11], "curve": [0.5, 0.6, 0.7]}
    assert starts.by_sweep([rising, rising]) == "Draw by draw 0.50 at sweep 1, 0.70 at sweep 11."
    falling = starts.by_sweep([rising | {"curve": [0.5, 0.9, 0.7]}])
    assert falling == "Draw by draw 0.50 at sweep 1, 0.90 at sweep 6, 0.70 at sweep 11."


def test_the_papers_values_are_among_those_tried():
    for settings in (EXPERIMENTS["sensitivity"].full, EXPERIMENTS["sensitivity"].quick):
        assert all(value in settings[name] for name, value in sensitivity.PAPER.items())


def test_the_command_knows_every_experiment():
    assert list(bench.REPRODUCED) == [*EXPERIMENTS, "all"]


def test_what_is_stored_of_recipes_does_not_take_each_cluster_for_the_only_one():
    fitted = [BayesianCaseModel(S, n_iter=20, n_chains=1, random_state=0).fit(load_recipes().table) for S in (5, 1)]
    several, one = (Explanation.from_json(recipes.briefly(model.explain()).to_json()) for model in fitted)
    assert {cluster.card().heading for cluster in several.clusters} == {"more often than elsewhere:"}
    assert [str(cluster) for cluster in several.clusters] == [str(cluster) for cluster in fitted[0].explain().clusters]
    assert "there is no other cluster to set it apart from" in str(one.clusters[0])


def test_the_papers_recipes_are_read():
    if not (DATA / "bcm_recipes_56x147.csv").exists():
        pytest.skip("needs bcm_recipes_56x147.csv in ../shared/data, which is not here")
    numbers = EXPERIMENTS["recipes"].run(0, TINY["recipes"], DATA)
    assert numbers["families"] == ["brownie", "chili", "pasta", "punch"]
    assert [len(fit["prototypes"]) for fit in numbers["fits"].values()] == [4, 4]
    json.dumps(numbers, allow_nan=False)


@pytest.mark.parametrize("settings", ["tiny", pytest.param("quick", marks=pytest.mark.slow)])
def test_a_quick_run_of_everything_needs_no_data(tmp_path, monkeypatch, settings):
    """Smileys, scikit-learn's digits, the bundled recipes, simulated subspaces: what is always there."""
    for name, one in EXPERIMENTS.items() if settings == "tiny" else ():
        places = {key: one.quick[key] for key in ("usps", "fetch") if key in one.quick}
        monkeypatch.setitem(EXPERIMENTS, name, replace(one, quick=TINY[name] | places))
    found = CliRunner().invoke(cli.main, ["reproduce", "all", "--quick", "--out", str(tmp_path / "quick")])
    assert found.exit_code == 0, found.output
    assert "newsgroups: left out" in found.stderr
    page = (tmp_path / "quick.md").read_text("utf-8")
    for name, experiment in EXPERIMENTS.items():
        assert (f"## {experiment.title}" in page) == (name not in ("newsgroups", "bags", "numbers"))
    for figure in re.findall(r"\((quick/[^)]*png)\)", page):
        assert (tmp_path / figure).stat().st_size > 5000


def test_a_column_stays_with_what_looks_alike():
    first, then = ["0011", "1100", "0101"], ["0101", "0111", "1100"]
    drawn = digits.in_columns([{"prototypes": rows, "subspaces": [row[::-1] for row in rows]} for rows in (first, then)])
    assert drawn[1]["prototypes"] == ["0111", "1100", "0101"]
    assert drawn[1]["subspaces"] == ["1110", "0011", "1010"]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_only_a_quick_run_is_called_so(name):
    experiment = replace(EXPERIMENTS[name], rows=None, tables=lambda results: "")
    for settings, said in ((experiment.full, False), (experiment.quick, True)):
        head = json.loads(json.dumps({"settings": settings, "source": "cases"}))  # as a result is read
        assert ("A quick run" in page.section(experiment, head, [{}])) == said


def test_spread():
    assert frame.spread([0.5, 0.7]) == "0.60 ± 0.14"
    assert frame.spread([0.5]) == "0.50 (one seed)"
