"""Fits of tables that stay on disk: the integers of the same fit in memory, checkpoints, results in files."""

import copy
import errno
import gc
import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

import bayescase.sampling.run
from bayescase import BayesianCaseModel, ParameterError, TableError
from bayescase.errors import BayescaseWarning
from bayescase.kernels.disk import engine
from bayescase.reading import batches, cache
from bayescase.sampling import large, stored

QUICK = {"n_iter": 14, "thin": 2, "random_state": 5}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(batches, "PART_ROWS", 100)
    monkeypatch.setattr(cache, "BLOCK_CELLS", 700)


def table(n=500, gaps=True, bags=False, seed=0):
    """Three clusters, cases that occur twice, and missing cells."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    columns = {}
    for j in range(6):
        value = np.where(rng.random(n) < 0.8, group, rng.integers(4, size=n))
        columns[f"f{j}"] = [None if gaps and u < 0.05 else f"v{v}" for u, v in zip(rng.random(n), value, strict=True)]
    if bags:
        columns["items"] = [rng.choice(list("abcdefgh")[2 * g :], size=rng.integers(0, 6)).tolist() for g in group]
    return pa.table(columns)


def written(table, folder):
    path = folder / "cases.parquet"
    parquet.write_table(table, path, row_group_size=77)
    return path


def check_same(found, wanted):
    """All that is drawn, bit for bit, and all that is made of it."""
    for name, values in wanted.fitted_.trace.items():
        assert np.array_equal(found.fitted_.trace[name], values), name
    assert np.array_equal(found.prototypes_, wanted.prototypes_)
    assert np.array_equal(found.subspaces_, wanted.subspaces_)
    assert np.array_equal(found.labels_, wanted.labels_)
    assert np.array_equal(found.subspace_probabilities_, wanted.subspace_probabilities_)
    np.testing.assert_allclose(found.memberships_, wanted.memberships_, atol=1e-7)


# --- the same integers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cells", [7, 300, 1 << 22])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_any_block_size_and_any_number_of_threads(cells, n_jobs, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "BLOCK_CELLS", cells)
    cases = table(60 if cells == 7 else 500)  # a block for each row
    model = BayesianCaseModel(3, n_chains=2, n_jobs=n_jobs, **QUICK)
    wanted = BayesianCaseModel(3, n_chains=2, **QUICK).fit(cases)
    check_same(model.fit(written(cases, tmp_path)), wanted)
    assert np.array_equal(model.fitted_.posterior.memberships, wanted.memberships_)  # the sample is the table


@pytest.mark.filterwarnings("ignore:All ")
@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.0, "init": "cases"},
        {"init": "cells", "alpha": 0.5},
        {"alpha": "learn", "lam": "learn", "q": "learn"},
        {"n_clusters": "auto", "max_clusters": 6},
        {"n_iter": "auto", "max_iter": 40},
    ],
    ids=str,
)
def test_any_settings(settings, tmp_path):
    cases = table(200)
    settings = {"n_clusters": 3, "n_chains": 2} | QUICK | settings
    check_same(BayesianCaseModel(**settings).fit(written(cases, tmp_path)), BayesianCaseModel(**settings).fit(cases))


@pytest.mark.filterwarnings("ignore:All ")
@pytest.mark.parametrize("settings", [{}, {"n_clusters": "auto", "max_clusters": 5}], ids=str)
def test_bags(settings, tmp_path):
    cases = table(200, bags=True)
    settings = {"n_clusters": 3, "n_chains": 2} | QUICK | settings
    check_same(BayesianCaseModel(**settings).fit(written(cases, tmp_path)), BayesianCaseModel(**settings).fit(cases))


@pytest.mark.parametrize("bags", [False, True], ids=["table", "bags"])
def test_prototypes_in_every_second_sweep(bags, tmp_path, seldom_prototypes):
    cases = table(200, bags=bags)
    wanted = BayesianCaseModel(3, n_chains=2, **QUICK).fit(cases)
    assert wanted.fitted_.plan.prototypes_every == 2
    check_same(BayesianCaseModel(3, n_chains=2, **QUICK).fit(written(cases, tmp_path)), wanted)


def test_a_catalogue_and_a_sample_of_the_cases(tmp_path):
    cases = table(200)
    model = BayesianCaseModel(3, n_chains=1, **QUICK)
    path = written(cases, tmp_path)
    for candidates in (table(30, seed=9), 40):
        wanted = BayesianCaseModel(3, n_chains=1, **QUICK).fit(cases, candidates=candidates)
        check_same(model.fit(path, candidates=candidates), wanted)
        assert model.case_names_ == wanted.case_names_
    rows = stored.sample_rows(200, wanted.fitted_.plan.seed, 40)
    assert model.case_names_ == [f"case {row}" for row in rows]


def test_more_cases_than_a_start_looks_at(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 100)
    cases = table(400)
    settings = {"n_chains": 2, "init": "seeded"} | QUICK
    wanted = BayesianCaseModel(3, **settings).fit(cases)
    found = BayesianCaseModel(3, **settings).fit(written(cases, tmp_path))
    sample = found.fitted_.sample
    assert np.array_equal(found.log_joint_, wanted.log_joint_)
    assert np.array_equal(found.labels_, wanted.labels_)
    assert np.array_equal(sample.rows[found.fitted_.posterior.p], wanted.fitted_.posterior.p)
    assert 100 <= len(sample.rows) < 200
    assert found.labels_.shape == (400,)
    np.testing.assert_allclose(found.fitted_.posterior.memberships, wanted.memberships_[sample.rows], atol=1e-12)
    assert found.prototype_probabilities_[0][0].row in range(400)
    assert found.fitted_.case_names[5] == f"case {sample.rows[5]}"


@pytest.mark.filterwarnings("ignore:All ")
@pytest.mark.parametrize("most", [60, 200], ids=["in a sample", "in all cases"])
@pytest.mark.parametrize("settings", [{"q": "learn"}, {"n_clusters": "auto", "max_clusters": 6}, {"bags": True}], ids=str)
def test_starts_are_searched_as_in_memory(settings, most, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", most)
    cases = table(200, bags="bags" in settings)
    settings = {"n_clusters": 3, "n_chains": 2, "n_init": 4} | QUICK | {k: v for k, v in settings.items() if k != "bags"}
    wanted = BayesianCaseModel(**settings).fit(cases)
    found = BayesianCaseModel(**settings, n_jobs=2).fit(written(cases, tmp_path))
    for name, values in wanted.fitted_.trace.items():
        assert np.array_equal(found.fitted_.trace[name], values), name
    assert np.array_equal(found.labels_, wanted.labels_)
    plain = BayesianCaseModel(**settings | {"n_init": 1}).fit(cases)
    assert not np.array_equal(plain.log_joint_, wanted.log_joint_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_chains_jump_as_in_memory(tmp_path):
    """Cases that fall in two by the first features, or by the others."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.integers(2, size=(60, 1)), 4, axis=1)
    x = np.where(rng.random(x.shape) < 0.15, 1 - x, x)
    cases = pa.table({f"f{j}": values.astype(str) for j, values in enumerate(np.concatenate([x, x[::-1]], axis=1).T)})
    settings = {"n_clusters": 2, "n_chains": 2, "n_init": 8} | QUICK | {"n_iter": 40}
    wanted = BayesianCaseModel(**settings).fit(cases)
    path = written(cases, tmp_path)
    check_same(BayesianCaseModel(**settings, n_jobs=2).fit(path), wanted)
    check_same(BayesianCaseModel(**settings, moves="jumps").fit(path), wanted)
    drawn_anew = BayesianCaseModel(**settings, moves="cases").fit(cases)
    check_same(BayesianCaseModel(**settings, moves="cases").fit(path), drawn_anew)
    assert not np.array_equal(drawn_anew.log_joint_, wanted.log_joint_)


def test_equal_cases_have_equal_memberships_however_few_are_compared_at_a_time(tmp_path, monkeypatch):
    cases = pa.concat_tables([table(150)] * 3)
    monkeypatch.setattr(large, "EQUALS_BYTES", 2000)
    wanted = BayesianCaseModel(3, n_chains=2, **QUICK).fit(cases)
    found = BayesianCaseModel(3, n_chains=2, **QUICK).fit(written(cases, tmp_path))
    check_same(found, wanted)
    assert np.array_equal(found.memberships_[:150], found.memberships_[300:])


def test_rows_are_taken_put_and_held_as_in_memory(tmp_path):
    """What moves of single cases use."""
    model = BayesianCaseModel(3, n_chains=1, warm_start=True, **QUICK)
    cases = table(200, bags=True)
    model.fit(written(cases, tmp_path))
    memory = BayesianCaseModel(3, n_chains=1, warm_start=True, **QUICK).fit(cases)
    found, wanted = (each._run.chains[0].rows for each in (model, memory))
    assert isinstance(found, engine.DiskRows)
    some = np.array([150, 3, 77, 4])
    for mine, other in zip(found.take(some), wanted.take(some), strict=True):
        for a, b in zip(mine, other, strict=True) if isinstance(mine, tuple) else [(mine, other)]:
            assert np.array_equal(a, b)
    z = np.arange(len(found.take(some)[1]), dtype=np.uint8) % 3
    held = np.full(200, -1)
    held[[0, 199]] = 2
    for rows in (found, wanted):
        rows.put(some, z)
    assert np.array_equal(found.labels(), wanted.labels())
    for rows in (found, wanted):
        rows.hold(held)
    assert np.array_equal(found.labels(), wanted.labels())
    V = len(model._run.chains[0].state.n_sv)
    for a, b in zip(found.recount(V), wanted.recount(V), strict=True):
        assert np.array_equal(a, b)


# --- results and files ---------------------------------------------------------------------------------------------------


def test_results_are_read_from_files_and_saved_beside_the_model(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 60)
    cases = table(300)
    model = BayesianCaseModel(3, n_chains=1, **QUICK).fit(written(cases, tmp_path))
    assert isinstance(model.labels_, np.memmap)
    assert isinstance(model.memberships_, np.memmap)
    model.save(tmp_path / "model.bcm")
    assert np.array_equal(np.load(tmp_path / "model.labels.npy"), model.labels_)
    again = BayesianCaseModel.load(tmp_path / "model.bcm")
    assert isinstance(again.memberships_, np.memmap)
    assert np.array_equal(again.memberships_, model.memberships_)
    assert np.array_equal(again.prototypes_, model.prototypes_)
    assert "sample" in again.explain().verdict
    assert again.explain().verdict.endswith(f"{len(again.fitted_.sample.rows)} of the 300 cases.")
    (tmp_path / "model.labels.npy").unlink()
    with pytest.warns(BayescaseWarning, match=r"model.labels.npy and model.memberships.npy are not beside"):
        lonely = BayesianCaseModel.load(tmp_path / "model.bcm")
    assert len(lonely.labels_) == len(lonely.fitted_.sample.rows)
    np.save(tmp_path / "model.labels.npy", model.labels_)
    (tmp_path / "model.memberships.npy").write_bytes(b"nothing")
    with pytest.warns(BayescaseWarning, match="are not beside"):
        assert len(BayesianCaseModel.load(tmp_path / "model.bcm").labels_) == len(lonely.labels_)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_have_the_results_of_all_cases(way, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 60)
    model = BayesianCaseModel(3, n_chains=1, **QUICK).fit(written(table(300), tmp_path))
    labels, other = np.array(model.labels_), way(model)
    del model
    gc.collect()
    assert np.array_equal(other.name_clusters().labels_, labels)
    other.save(tmp_path / "model.bcm")
    assert np.array_equal(BayesianCaseModel.load(tmp_path / "model.bcm").labels_, labels)


def test_a_folded_model_has_folded_results_of_all_cases(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 60)
    model = BayesianCaseModel(4, n_chains=1, **QUICK).fit(written(table(300), tmp_path))
    fewer = model.fold(2)
    groups = fewer.fitted_.groups
    joined = np.stack([model.memberships_[:, list(group)].sum(axis=1) for group in groups], axis=1)
    np.testing.assert_allclose(fewer.memberships_, joined, atol=1e-6)
    assert np.array_equal(fewer.labels_, joined.argmax(axis=1))
    fewer.save(tmp_path / "fewer.bcm")
    again = BayesianCaseModel.load(tmp_path / "fewer.bcm")
    assert np.array_equal(again.labels_, fewer.labels_)
    assert again.memberships_.shape == (300, 2)


def test_explanations_reports_and_predictions(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 60)
    cases = table(300)
    path = written(cases, tmp_path)
    model = BayesianCaseModel(3, n_chains=1, **QUICK).fit(path)
    inside = int(model.fitted_.sample.rows[3])
    assert model.explain_case(inside).name == f"case {inside}"
    with pytest.raises(ParameterError, match="There is no case 300: the table has 300"):
        model.explain_case(300)
    for explained in (model.explain_tree(), model.explain_differences(), model.explain_pair(0, 1), model.explain_agreement(0)):
        assert str(explained).endswith("of the 300 cases.")
    cluster = model.explain().clusters[0]
    assert cluster.prototype.row == model.prototypes_[0]
    for case in (cluster.prototype, *cluster.criticisms, *model.explain_agreement(0).members):
        assert case.name == f"case {case.row}"
    outside = next(row for row in range(300) if row not in model.fitted_.sample.rows)
    with pytest.raises(ParameterError, match=f"case {outside} is not among them"):
        model.explain_case(outside)
    assert np.array_equal(model.predict(path), model.predict(cases))
    assert np.array_equal(model.transform(path), model.transform(cases))
    assert np.array_equal(model.score_samples(ds.dataset(path)), model.score_samples(cases))
    parquet.write_table(cases.slice(0, 0), tmp_path / "none.parquet")
    assert model.predict(tmp_path / "none.parquet").shape == (0,)
    assert model.transform(tmp_path / "none.parquet").shape == (0, 3)
    model.report(tmp_path / "report.html")
    assert "of the 300 cases" in (tmp_path / "report.html").read_text()


def test_columns_of_new_files_are_found_by_name(tmp_path):
    cases = table(100)
    model = BayesianCaseModel(3, n_chains=1, **QUICK).fit(cases)
    other = cases.select(cases.column_names[::-1]).append_column("more", pa.array(["x"] * 100))
    assert np.array_equal(model.predict(written(other, tmp_path)), model.predict(cases))


@pytest.mark.parametrize(
    ("settings", "given", "words"),
    [
        ({"sampler": "collapsed"}, {}, "sampler='collapsed' needs the table in memory"),
        ({"device": "cuda"}, {}, "device='cuda' needs the table in memory"),
        ({"keep_draws": True}, {}, "keep_draws=True needs the table in memory"),
        ({"moves": "clusters"}, {}, "moves='clusters' needs the table in memory"),
        ({}, {"prototype_prior": [1.0]}, "prototype_prior needs the table in memory"),
        ({}, {"pins": {"cases": {0: 1}}}, r"pins\['cases'\] needs the table in memory"),
        ({}, {"case_names": ["a"]}, "case_names needs the table in memory"),
        ({}, {"candidates": 0}, "candidates must be a table or a number of cases"),
        ({"n_clusters": 101}, {}, "needs at least 101 cases"),
    ],
)
def test_what_needs_memory_is_refused(settings, given, words, tmp_path):
    path = written(table(100), tmp_path)
    with pytest.raises(ParameterError, match=words):
        BayesianCaseModel(**({"n_clusters": 3, "n_chains": 1} | QUICK | settings)).fit(path, **given)


def test_cases_of_many_cells_are_not_drawn_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "MOST_CELLS", 599)
    words = "moves='cases' has all cells in memory, so a table that is read in parts may have at most 599, not 600"
    with pytest.raises(ParameterError, match=words):
        BayesianCaseModel(3, moves="cases", n_chains=1, **QUICK).fit(written(table(100), tmp_path))


def test_a_cache_is_for_tables_on_disk(tmp_path):
    with pytest.raises(ParameterError, match="cache is for a table that is read in parts"):
        BayesianCaseModel(3, **QUICK).fit(table(50), cache=tmp_path)


# --- stopping and going on -----------------------------------------------------------------------------------------------


def test_files_go_with_the_run_unless_they_are_kept(tmp_path):
    path, kept = written(table(100), tmp_path), tmp_path / "kept"
    model = BayesianCaseModel(3, n_chains=1, **QUICK)
    model.fit(path, checkpoint=tmp_path / "run")
    results = model._place.results
    assert sorted(file.name for file in results.iterdir()) == ["alive", "labels.npy", "memberships.npy"]
    assert sorted(tmp_path.iterdir()) == [results, path]  # on the disk of the checkpoint, which is gone
    model.fit(path, cache=kept)
    assert not results.exists()
    assert {file.name for file in kept.glob("[!.]*")} == {"about.json", "codes", "features.json", "lock"}
    del model
    gc.collect()
    assert not list(kept.glob(".bayescase-*"))


def test_models_of_one_cache_keep_their_own_results(tmp_path):
    path = written(table(200), tmp_path)
    one, two = (
        BayesianCaseModel(4, n_chains=1, **QUICK | {"random_state": seed}).fit(path, cache=tmp_path / "kept") for seed in (1, 2)
    )
    labels = np.array(one.labels_)
    assert not np.array_equal(labels, two.labels_)
    one.save(tmp_path / "one.bcm")
    assert np.array_equal(BayesianCaseModel.load(tmp_path / "one.bcm").labels_, labels)
    assert np.array_equal(one.name_clusters().labels_, labels)


def test_runs_of_one_cache_keep_their_own_rows(tmp_path):
    path = written(table(200), tmp_path)
    settings = [QUICK | {"random_state": seed, "n_chains": 1} for seed in (1, 2)]
    for k, how in enumerate(settings):
        with pytest.warns(BayescaseWarning, match="Stopped after 9"):
            BayesianCaseModel(3, **how).fit(
                path, cache=tmp_path / "kept", checkpoint=tmp_path / f"run{k}", callback=lambda report: report.sweep == 9
            )
    for k, how in enumerate(settings):
        found = BayesianCaseModel(3, **how).fit(path, cache=tmp_path / "kept", checkpoint=tmp_path / f"run{k}")
        check_same(found, BayesianCaseModel(3, **how).fit(path))


def test_a_cache_is_read_by_several_runs_and_written_by_one(tmp_path):
    path, kept = written(table(100), tmp_path), tmp_path / "kept"
    first = BayesianCaseModel(3, n_chains=1, warm_start=True, **QUICK).fit(path, cache=kept)
    check_same(BayesianCaseModel(3, n_chains=1, **QUICK).fit(path, cache=kept), first)
    with pytest.raises(ParameterError, match="Another run is using the folder"):
        BayesianCaseModel(3, n_chains=1, encoder={"top_values": 2}, **QUICK).fit(path, cache=kept)


@pytest.mark.parametrize("harm", [lambda file: file.write_bytes(b"{"), lambda file: file.unlink()])
@pytest.mark.parametrize("name", ["about.json", "features.json", "codes"])
def test_a_damaged_cache_is_made_anew(name, harm, tmp_path):
    path, kept = written(table(100), tmp_path), tmp_path / "kept"
    model = BayesianCaseModel(3, n_chains=1, **QUICK)
    wanted = model.fit(path, cache=kept).log_joint_
    harm(kept / name)
    assert np.array_equal(model.fit(path, cache=kept).log_joint_, wanted)


def test_an_error_leaves_nothing_beside_a_checkpoint(tmp_path):
    path = written(table(50).append_column("id", pa.array([f"n{i}" for i in range(50)])), tmp_path)
    with pytest.raises(TableError, match="as many values as cases"):
        BayesianCaseModel(3, **QUICK).fit(path, checkpoint=tmp_path / "run")
    gc.collect()
    assert list(tmp_path.iterdir()) == [path]


def test_a_run_that_was_stopped_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(bayescase.sampling.run, "CHECKPOINT_SECONDS", 0.0)
    cases = table(200)
    path, checkpoint = written(cases, tmp_path), tmp_path / "run"
    model = BayesianCaseModel(3, n_chains=2, **QUICK)
    with pytest.warns(BayescaseWarning, match="Stopped after 9"):
        model.fit(path, checkpoint=checkpoint, callback=lambda report: report.sweep == 9)
    assert (tmp_path / "run.rows" / "codes").exists()
    monkeypatch.setattr(cache, "write_codes", None)  # not needed again
    check_same(model.fit(path, checkpoint=checkpoint), BayesianCaseModel(3, n_chains=2, **QUICK).fit(cases))


def test_a_larger_n_iter_goes_on_from_a_run_that_did_not_search(tmp_path):
    """With a cache files stay when a run has ended. By default one of 250 sweeps searches."""
    cases = table(200)
    path, kept = written(cases, tmp_path), {"cache": tmp_path / "kept", "checkpoint": tmp_path / "run"}
    settings = QUICK | {"n_chains": 1}
    BayesianCaseModel(3, **settings | {"n_iter": 40}).fit(path, **kept)
    found = BayesianCaseModel(3, **settings | {"n_iter": 260}).fit(path, **kept)
    check_same(found, BayesianCaseModel(3, **settings | {"n_iter": 260, "n_init": 1}).fit(cases))


def test_more_sweeps_from_memory(tmp_path):
    cases = table(200)
    settings = QUICK | {"n_chains": 2, "n_iter": 20}
    model = BayesianCaseModel(3, warm_start=True, **settings).fit(written(cases, tmp_path)).more(20)
    check_same(model, BayesianCaseModel(3, **settings | {"n_iter": 40}).fit(cases))
    model.set_params(warm_start=False).fit(tmp_path / "cases.parquet")
    with pytest.raises(ParameterError, match="There is no run to go on with"):
        model.more(3)


SCRIPT = """
import sys
import bayescase.sampling.run
from bayescase import BayesianCaseModel
from bayescase.reading import batches, cache
bayescase.sampling.run.CHECKPOINT_SECONDS = 0.0  # every sweep: a kill is likely to hit the middle of a write
batches.PART_ROWS, cache.BLOCK_CELLS = 100, 700
model = BayesianCaseModel(3, n_iter=60, n_chains=2, random_state=5)
model.fit(sys.argv[1], checkpoint=sys.argv[2], callback=lambda report: print(report.sweep, flush=True))
"""


def test_kill_9_at_any_time(tmp_path):
    cases = table(200)
    path, checkpoint = written(cases, tmp_path), tmp_path / "run"
    seen = []
    for least in (5, 25):
        command = [sys.executable, "-W", "ignore", "-c", SCRIPT, path, checkpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                seen.append(int(line))
                if seen[-1] >= least:
                    break
            time.sleep(0.005 * least % 0.02)
            os.kill(process.pid, signal.SIGKILL)
    assert seen.count(1) == 1  # the second went on
    model = BayesianCaseModel(3, n_iter=60, n_chains=2, random_state=5).fit(path, checkpoint=checkpoint)
    check_same(model, BayesianCaseModel(3, n_iter=60, n_chains=2, random_state=5).fit(cases))


def test_a_full_disk_is_one_sentence_and_a_run_that_can_go_on(tmp_path, monkeypatch):
    cases = table(200)
    path, checkpoint = written(cases, tmp_path), tmp_path / "run"
    model = BayesianCaseModel(3, n_chains=1, **QUICK)
    allocate = engine.Mapped.create

    def full(file, *args):
        if "memberships" in os.fspath(file):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(file))
        return allocate(file, *args)

    with monkeypatch.context() as patch:
        patch.setattr(engine.Mapped, "create", full)
        with pytest.raises(OSError, match="No space left on device; what is done is kept: make room, and start") as error:
            model.fit(path, checkpoint=checkpoint)
    assert error.value.filename == str(tmp_path / "run.rows")
    monkeypatch.setattr(cache, "write_codes", None)  # they are there
    check_same(model.fit(path, checkpoint=checkpoint), BayesianCaseModel(3, n_chains=1, **QUICK).fit(cases))


def test_a_checkpoint_that_does_not_fit_on_the_disk_does_not_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(bayescase.sampling.run, "CHECKPOINT_SECONDS", 0.0)

    def full(source, target):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(engine, "copy_file", full)
    with pytest.warns(BayescaseWarning, match="could not be written .No space left on device.; the run goes on"):
        BayesianCaseModel(3, n_chains=1, **QUICK).fit(written(table(100), tmp_path), checkpoint=tmp_path / "run")


def test_two_runs_do_not_share_a_folder(tmp_path):
    path = written(table(100), tmp_path)
    model = BayesianCaseModel(3, n_chains=1, warm_start=True, **QUICK).fit(path, checkpoint=tmp_path / "run")
    with pytest.raises(ParameterError, match="Another run is using the folder"):
        BayesianCaseModel(3, n_chains=1, **QUICK).fit(path, checkpoint=tmp_path / "run")
    assert model.more(2).n_iter_ == 16
