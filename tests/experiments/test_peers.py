"""Other methods beside this one: sets, methods, what is said of the results."""

import json
from dataclasses import replace
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.metrics import normalized_mutual_info_score

from bayescase.cli import bench
from bayescase.cli import main as cli

pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
from bayescase.experiments import methods, peers, reproduce, sets, write_page
from bayescase.experiments.peers import FULL, PEERS, plan

SHORT = {"bayescase": {"n_iter": 40, "n_chains": 2}, "sweeps": 40}
HERE = [method for method in methods.METHODS.values() if methods.is_here(method)]


@pytest.fixture
def folder(tmp_path):
    """A folder with the zoo and connect-4 in small, in the layout of the public files."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    x = np.where(rng.random((40, 4)) < 0.9, y[:, None], rng.integers(3, size=(40, 4)))
    lines = ["class,animal,legs,wings,fins,teeth"]
    for i, row in enumerate(x):
        lines.append(f"c{y[i]},a{i}," + ",".join("?" if i % 9 == v else f"v{v}" for v in row))
    (tmp_path / "uci_zoo.csv").write_text("\n".join(lines) + "\n")
    np.savez(tmp_path / "connect4_67557x42.npz", X=x.astype(np.uint8), y=np.array(["win", "loss"])[y])
    sets.reachable.cache_clear()
    return tmp_path


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    def fail(*_, **__):
        raise URLError("no route")

    monkeypatch.setattr("sklearn.datasets._openml.urlopen", fail)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "kept"))  # what was fetched before would be found
    sets.reachable.cache_clear()
    sets.from_openml.cache_clear()


# --- sets ---------------------------------------------------------------------------------------------------------------


def test_files_are_read(folder):
    zoo = sets.load("zoo", 0, folder)
    assert zoo.x.shape == (40, 4)  # the name is no feature
    assert (zoo.x == -1).any()
    assert set(np.unique(zoo.x)) <= {-1, 0, 1, 2}
    assert set(zoo.y) == {0, 1}
    assert sets.load("zoo", 1, folder) is zoo
    connect = sets.load("connect-4", 0, folder)
    assert connect.x.shape == (40, 4)
    assert connect.y[:2].tolist() == [1, 0]  # in the order of the alphabet


@pytest.mark.parametrize("damage", ["", "class,a\n", "class,a\nx,1\ny\n", "class\nx\n"])
def test_a_damaged_file_is_one_sentence(damage, tmp_path):
    (tmp_path / "uci_car.csv").write_text(damage)
    with pytest.raises(ValueError, match=r"data: .*uci_car.csv is not a table with the class in the first column"):
        sets.load("car", 0, tmp_path)


def test_openml_gives_codes_and_gaps(no_network, monkeypatch):
    answer = SimpleNamespace(
        data=np.array([[0.0, 7.0, np.nan], [1.0, 8.0, 2.0]]),
        feature_names=["hair", "animal", "legs"],
        target=np.array(["bird", "ant"], dtype=object),
    )
    monkeypatch.setattr(sets, "fetch_openml", lambda data_id, **_: {62: answer}[data_id])
    assert sets.load("zoo", 0, None).x.tolist() == [[0, -1], [1, 2]]
    assert sets.load("zoo", 0, None).y.tolist() == [1, 0]
    sets.from_openml.cache_clear()


def test_without_a_network_what_is_there_is_used_and_the_rest_named(no_network, folder):
    settings = {"sets": {name: FULL[name] for name in ("zoo", "votes", "subspaces")}}
    assert "left out: votes, for which a folder of data or a network for openml.org is needed" in peers.source(settings, folder)
    assert peers.sets_of(settings, folder) == (("zoo", "subspaces"), ["votes"])
    assert peers.sets_of(settings, None) == (("subspaces",), ["zoo", "votes"])


def test_planted_cases_agree_on_their_subspace_only():
    x, y = sets.plant_subspaces(3)
    assert x.shape == (500, 30)
    shares = np.array([[np.bincount(column[y == s], minlength=4) / (y == s).sum() for column in x.T] for s in range(5)])
    overall = np.array([np.bincount(column, minlength=4) / len(column) for column in x.T])
    apart = np.abs(shares - overall).max(axis=2) > 0.2  # a value that this cluster has much more often, or less
    assert (apart.sum(axis=1) <= 6 + 3).all()  # its own, and few that others have pulled away
    assert apart.sum() >= 15
    assert not np.array_equal(x, sets.plant_subspaces(4).x)


# --- methods ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", HERE, ids=lambda method: method.name)
def test_every_method_finds_plain_clusters_also_with_gaps(method):
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=90)
    x = np.where(rng.random((90, 12)) < 0.9, (y[:, None] + np.arange(12)) % 3, rng.integers(3, size=(90, 12)))
    x[rng.random(x.shape) < 0.05] = -1
    x[7] = -1  # a case that says nothing
    made = methods.fit(method, x, 3, 4, 0, SHORT)
    assert made.labels.shape == y.shape
    assert normalized_mutual_info_score(np.delete(y, 7), np.delete(made.labels, 7)) > 0.9
    assert made.objective >= methods.fit(method, x, 3, 1, 0, SHORT).objective  # the first start is one of the four
    if made.score:
        good, bad = made.score(x[:20]), made.score(rng.integers(3, size=(20, 12)))
        assert bad < good < 0


def test_score_of_latent_classes_is_stepmix_own():
    pytest.importorskip("stepmix", reason="pip install 'bayescase[peers]'")
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=(60, 5))
    for gaps in (0.0, 0.1):
        x[rng.random(x.shape) < gaps] = -1
        made = methods.fit(methods.METHODS["StepMix"], x, 2, 1, 0, SHORT)
        assert made.score(x) == pytest.approx(made.objective)  # which is StepMix.score


def test_values_without_a_case_are_gaps():
    new = np.array([[0, 1], [2, 0], [1, -1]])
    assert peers.known_values(new, np.array([[0, 0], [1, 0]])).tolist() == [[0, -1], [-1, 0], [1, -1]]


# --- results ------------------------------------------------------------------------------------------------------------


def made_up(nmi):
    """Results with these NMI: {set: {method: (seeds,)}}."""
    n = len(next(iter(next(iter(nmi.values())).values())))
    return [
        {
            "sets": {
                name: {
                    "cases": 10,
                    "features": 2,
                    "classes": 2,
                    "methods": {
                        m: {"nmi": v[k], "ari": v[k], "held_out": None if m == "k-modes" else -v[k]} for m, v in of.items()
                    },
                }
                for name, of in nmi.items()
            },
            "seconds": {name: {m: 1.0 + (m == "k-modes") for m in of} for name, of in nmi.items()},
        }
        for k in range(n)
    ]


def test_the_verdict_follows_the_numbers():
    best = made_up(
        {"zoo": {"bayescase": [0.8, 0.9], "k-modes": [0.7, 0.7]}, "car": {"bayescase": [0.1, 0.1], "k-modes": [0.2, 0.2]}}
    )
    assert peers.verdict(best) == (
        "bayescase has the highest mean NMI over the sets, but without zoo k-modes has. By the adjusted Rand index bayescase "
        "is first. On 1 of 2 sets bayescase is best or within one standard error of the best by NMI; not on car (k-modes by "
        "0.100)."
    )
    for score, said in ((-3.0, True), (-1.0, False)):
        other = made_up({"zoo": {"bayescase": [0.5, 0.5], "StepMix": [0.7, 0.6]}})
        for k, result in enumerate(other):
            result["sets"]["zoo"]["methods"]["bayescase"]["held_out"] = -2.0
            result["sets"]["zoo"]["methods"]["StepMix"]["held_out"] = score + k / 10
        assert (
            "higher probability than StepMix, the only other method that gives one, on zoo;" in peers.verdict(other)
        ) == said
    near = made_up({"zoo": {"bayescase": [0.5, 0.7], "k-modes": [0.7, 0.6]}})
    assert "bayescase is within one standard error of it (0.050 below, ± 0.150)" in peers.verdict(near)
    far = made_up({"zoo": {"bayescase": [0.5, 0.5], "k-modes": [0.7, 0.6]}})
    assert "bayescase is not within one standard error of it (0.150 below, ± 0.050)" in peers.verdict(far)
    assert peers.verdict(far[:1]) == "k-modes has the highest mean NMI over the sets, 0.200 above bayescase, by one seed."


def test_tables_mark_the_best_and_leave_out_what_is_not_defined():
    text = peers.tables(made_up({"zoo": {"bayescase": [0.8, 0.9], "k-modes": [0.7, 0.7]}}))
    nmi, ari, held_out, seconds = text.split("**\n\n|")[1:]
    assert "| zoo | 10 × 2, 2 | **0.850 ± 0.071** | 0.700 ± 0.000 |" in nmi
    assert "| mean ± standard error | | **0.850 ± 0.050** | 0.700 ± 0.000 |" in ari
    assert "k-modes" not in held_out
    assert "| zoo | 10 × 2, 2 | 1.0 ± 0.0 | 2.0 ± 0.0 |" in seconds
    assert "None had less time than bayescase on any set." in text
    slow = made_up({"zoo": {"bayescase": [0.8], "StepMix": [0.7]}})
    slow[0]["seconds"]["zoo"]["StepMix"] = 0.5
    assert "Less time than bayescase had: StepMix on zoo (50%)." in peers.tables(slow)


def test_one_seed_and_absent_methods(no_network, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "is_here", lambda method: method.name in ("bayescase", "variational LDA"))
    tiny = {"sets": {name: plan(30, 1, 1, 1, 1, 2) for name in ("zoo", "connect-4")}, **SHORT}
    one = replace(PEERS, full=tiny)
    found = reproduce([one], tmp_path / "out", folder, seeds=1, n_jobs=1, say=lambda words: None)["peers"]
    assert list(found[0]["sets"]["zoo"]["methods"]) == ["bayescase", "variational LDA"]
    assert found[0]["sets"]["zoo"]["cases"] == 24
    assert found[0]["sets"]["zoo"]["classes"] == 2
    page = write_page([one], tmp_path / "out").read_text("utf-8")
    assert "without StepMix, k-modes, k-medoids, Gibbs LDA, which pip install 'bayescase[peers]' would add" in page
    assert "(one seed)" in page
    assert "nan" not in page
    json.dumps(found, allow_nan=False)


# --- the command --------------------------------------------------------------------------------------------------------


def test_quality_is_the_same_experiment(folder, monkeypatch, tmp_path):
    called = []
    monkeypatch.setattr(bench, "run_experiments", lambda name, **options: called.append((name, options)))
    for command in (["bench", "quality"], ["reproduce", "peers"]):
        done = CliRunner().invoke(cli.main, [*command, "--data", str(folder), "--seeds", "3", "--quick"])
        assert done.exit_code == 0, done.output
    assert called[0] == called[1]
    assert called[0][0] == "peers"


def test_quality_says_what_is_wrong_with_the_folder(tmp_path):
    done = CliRunner().invoke(cli.main, ["bench", "quality", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 1
    assert "has no uci_zoo.csv" in done.stderr
    assert not (tmp_path / "out").exists()


def test_settings_cover_every_method_and_set():
    assert set(FULL) == {*sets.PLACES, "digits", "subspaces"}
    for one in FULL.values():
        assert {"bayescase", *one["starts"]} == set(methods.METHODS)
