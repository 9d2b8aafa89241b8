"""The programs beside the package still run: benchmarks and examples, on small data."""

import gzip
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

ROOT = Path(__file__).parent.parent


@pytest.fixture
def beside(monkeypatch):
    """Makes the programs of a folder importable."""
    return lambda folder: monkeypatch.syspath_prepend(ROOT / folder)


def test_speed_takes_turns_and_counts_cells(beside, monkeypatch, tmp_path):
    beside("benchmarks")
    import speed

    monkeypatch.setattr(speed, "WARM", 1)
    monkeypatch.setattr(speed, "REPEATS", 2)
    table = speed.table_data(speed.planted(60, 4), feature_types="integer")
    np.savez(tmp_path / "words.npz", indices=[0, 1, 1, 2, 0], indptr=[0, 2, 4, 5], shape=[3, 3])
    for data, S in ((table, 3), (speed.text_data(tmp_path / "words.npz"), 2)):
        chain = speed.Ours(data, S, 1)
        seconds = speed.take_turns({"ours": chain}, least=0.0)
        chain.close()
        assert seconds["ours"].shape == (2,)
        assert chain.t == 1 + 2 + 2
        assert chain.state.n_sv.sum() == (data.cells.codes >= 0).sum()


def test_what_a_fit_takes_beside_its_sweeps(beside, monkeypatch, capsys):
    beside("benchmarks")
    import speed

    for name, value in (("ROWS", 300), ("COLUMNS", 3), ("TURNS", 1)):
        monkeypatch.setattr(speed, name, value)
    figures = speed.reading(None)
    assert set(figures) == {f"{kind} x{threads}" for kind in speed.INPUTS for threads in (1, 2)}
    assert all(figure["clock"] > 0 for figure in figures.values())
    assert "300 × 3" in capsys.readouterr().out


def test_how_much_of_the_machine_threads_reach(beside, monkeypatch, capsys):
    beside("benchmarks")
    import speed

    for name, value in (("CORES_ROWS", 60), ("CORES_TURNS", 1), ("CORES_SECONDS", 0.01)):
        monkeypatch.setattr(speed, name, value)
    monkeypatch.setattr(speed.os, "cpu_count", lambda: 2)
    figures = speed.cores(None)
    assert set(figures) == {f"S = {S}, {n} threads" for S in (10, 50) for n in (1, 2)}
    for of in figures.values():
        assert of["reached"] > 0
        assert of["ms"] == pytest.approx(sum(of["stages_ms"].values()))
    assert "60 × 50" in capsys.readouterr().out


def test_where_the_seconds_of_a_fit_went(beside, capsys, monkeypatch):
    beside("benchmarks")
    import gpu

    monkeypatch.setattr(gpu.Split.show, "__defaults__", (0.0,))
    gpu.report_fit("cpu", 260, 1, n_cases=60, chains=[1])
    first, *tree = capsys.readouterr().out.splitlines()
    assert first.startswith("fit of 260 sweeps, 1 chains: ")
    called = [line.split("×  ")[1] for line in tree]
    assert {"estimator.read", "Chain.search", "    Chain.find", "        chain.crossed", "Chain.step", "Fitted.of_draws"} <= {
        *called
    }
    assert called.index("Chain.search") < called.index("    Chain.find") < called.index("Chain.step")


@pytest.mark.parametrize(("clusters", "S"), [pytest.param("auto", 20, marks=pytest.mark.slow), ("known", 3), ("drawn", 6)])
def test_intervals_are_counted(beside, monkeypatch, capsys, clusters, S):
    beside("benchmarks")
    import intervals

    fit, drawn = intervals.fit, []
    for name, value in {"CASES": 20, "FEATURES": 4, "ROWS": 6}.items():
        monkeypatch.setattr(intervals, name, value)
    monkeypatch.setattr(intervals, "fit", lambda *given: drawn.append(fit(*given)) or drawn[-1])
    monkeypatch.setattr(sys, "argv", ["intervals", "--tables=2", "--sweeps=8", "--from-priors", f"--clusters={clusters}"])
    intervals.main()
    assert capsys.readouterr().out.startswith("   2 tables, all ")
    assert drawn[0][0] != drawn[1][0]
    for _, fitted in drawn:
        hyper = fitted.fitted_.problem.hyper
        assert len(hyper.beta) == S
        assert (hyper.gamma == intervals.GAMMA) == (clusters == "drawn")


def test_an_example_prints_and_draws(beside, tmp_path, capsys):
    beside("examples")
    import cuisines

    dishes = {"italian": ["pasta", "basil", "tomato"], "indian": ["rice", "curry", "ghee"]}
    recipes = [{"id": k, "cuisine": c, "ingredients": dishes[c]} for k, c in enumerate(["italian", "indian"] * 30)]
    with gzip.open(tmp_path / "train.json.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(recipes))
    cuisines.main(tmp_path / "train.json.gz", tmp_path, n_clusters=2, n_iter=60)
    printed = capsys.readouterr().out
    assert "pasta" in printed
    assert "NMI with cuisine: 1.00" in printed
    assert (tmp_path / "cuisines-cards.png").stat().st_size > 1000
    assert (tmp_path / "cuisines-classes.png").stat().st_size > 1000
    for name in ("cuisines", "shared"):
        del sys.modules[name]


def test_messages_are_read_with_each_word_once_and_their_prototypes_can_be_read(beside, tmp_path, capsys, monkeypatch):
    beside("examples")
    import newsgroups

    monkeypatch.setattr(newsgroups, "SHORTEST", 2)
    monkeypatch.setattr(newsgroups, "LONGEST", 3)
    car, space, rare = [5, 3, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 9, 1, 0, 0], [1, 1, 1, 1, 1, 1, 1, 0]
    counts = csr_matrix(np.array([car, space] * 30 + [rare, np.eye(8, dtype=int)[7]]))
    np.savez(
        tmp_path / "counts.npz",
        data=counts.data,
        indices=counts.indices,
        indptr=counts.indptr,
        shape=counts.shape,
        vocabulary=np.array(["car", "wheel", "oil", "orbit", "moon", "nasa", "rare", "rarer"]),
        label=np.array([0, 1] * 30 + [0, 1]),
        label_names=np.array(["autos", "space"]),
        doc_id=np.arange(500, 562),
    )
    has, words, groups, _ = newsgroups.read(tmp_path / "counts.npz")
    assert has.max() == 1
    assert (len(words), groups[1]) == (8, "space")
    newsgroups.main(tmp_path / "counts.npz", tmp_path, n_clusters=2, n_iter=60)
    printed = capsys.readouterr().out
    assert printed.startswith("61 messages, 6 words; half of the messages have 3 words or fewer\n60 messages of 2 to 3 words")
    assert "like autos 5" in printed
    assert (tmp_path / "newsgroups-cards.png").stat().st_size > 1000
    for name in ("newsgroups", "shared"):
        del sys.modules[name]


def test_engines_take_turns_and_draw_the_same(beside, tmp_path):
    """Without a cluster the third run is on disk, too."""
    beside("benchmarks")
    import cluster

    cluster.write_table(tmp_path / "table.parquet", 3_000, 3, S=2)
    engines = cluster.Engines(tmp_path / "table.parquet", tmp_path, SimpleNamespace(client=None), 1, 2, 2, n_init=1)
    for run in engines.runs.values():
        run.advance(2)
    engines.check()
    assert engines.runs["disk"].stage.sweep == 2
    for run in engines.runs.values():
        run.close()


def test_a_larger_cluster_is_worked_out_from_measured_parts(beside):
    beside("benchmarks")
    import cluster

    parts = {"workers": 2.0, "chains": 2, "cells": 10**8, "blocks": 3, "tasks": 10.2, "scheduler_per_task": 0.001, "state": 3e8}
    few, many = (cluster.worked_out(parts, 2 * 10**9, n_threads) for n_threads in (8, 8000))
    assert few["workers"] == pytest.approx(4 * 2e9 * 1e-8 / 8)  # all threads are busy
    assert few["scheduler"] == pytest.approx(4 * few["blocks"] * 3.4 * 0.001)
    assert many["blocks"] < 100  # more threads than the scheduler can look after do not get more blocks
    assert many["scheduler"] > many["workers"]
    assert few["files"] == many["files"]
