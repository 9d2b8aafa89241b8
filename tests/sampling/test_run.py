"""Runs: threads and blocks that change nothing, callbacks, interruption, checkpoints, the progress bar."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import bayescase.kernels.cpu.sweep
import bayescase.sampling.run
from bayescase import BayesianCaseModel, FileFormatError
from bayescase.model import log_joint
from bayescase.sampling.run import Plan, doubling, heat_at, one_round

SETTINGS = {"alpha": 0.3, "n_iter": 40, "n_chains": 2, "keep_draws": True, "random_state": 0}


@pytest.fixture(scope="module")
def holes(planted):
    x, _ = planted(N=90, P=7, V=4, S=3, seed=20, noise=0.5)
    return np.where(np.random.default_rng(0).random(x.shape) < 0.1, np.nan, x)


# --- threads and blocks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_chains", [1, 2, 3])
def test_the_number_of_threads_changes_nothing(holes, sampler, n_chains, same):
    one = BayesianCaseModel(3, sampler=sampler, n_jobs=1, **SETTINGS | {"n_chains": n_chains}).fit(holes)
    for n_jobs in (2, 3, -1):
        same(one, clone(one).set_params(n_jobs=n_jobs).fit(holes))


@pytest.mark.parametrize("cells", [1, 50, 300])
def test_the_split_into_blocks_changes_nothing(holes, sampler, cells, same, monkeypatch):
    whole = BayesianCaseModel(3, sampler=sampler, **SETTINGS | {"n_chains": 1}).fit(holes)
    blocks = []
    prepare = bayescase.kernels.cpu.sweep.Work.__init__

    def spy(self, data, hyper, z_type, pool=None, n_blocks=1, rises=None):
        blocks.append(n_blocks)
        prepare(self, data, hyper, z_type, pool, n_blocks, rises)

    monkeypatch.setattr(bayescase.sampling.run, "BLOCK_CELLS", cells)
    monkeypatch.setattr(bayescase.kernels.cpu.sweep.Work, "__init__", spy)
    same(whole, clone(whole).set_params(n_jobs=3).fit(holes))
    assert blocks[0] > 1  # else nothing was tested


def test_a_chain_does_not_depend_on_the_others(holes, sampler):
    one = BayesianCaseModel(3, sampler=sampler, **SETTINGS | {"n_chains": 1}).fit(holes)
    three = BayesianCaseModel(3, sampler=sampler, **SETTINGS | {"n_chains": 3}).fit(holes)
    assert np.array_equal(one.log_joint_[0], three.log_joint_[0])
    assert not np.array_equal(three.log_joint_[0], three.log_joint_[1])


def test_a_fit_in_another_thread(holes, same):
    reference = BayesianCaseModel(3, **SETTINGS).fit(holes)
    models = [clone(reference) for _ in range(3)]
    threads = [threading.Thread(target=model.fit, args=(holes,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for model in models:
        same(reference, model)


# --- heat -------------------------------------------------------------------------------------------------------------


def test_heat_is_gone_before_the_first_kept_draw(holes, sampler):
    hot = BayesianCaseModel(3, sampler=sampler, heat=0.1, **SETTINGS).fit(holes)
    cold = clone(hot).set_params(heat=1.0).fit(holes)
    assert not np.array_equal(hot.log_joint_, cold.log_joint_)
    for c, d in np.ndindex(hot.draws_.log_joint.shape):
        draw = (hot.draws_.z[c, d], hot.draws_.p[c, d], hot.draws_.omega[c, d])
        assert log_joint(hot._data, hot._hyper, *draw) == pytest.approx(hot.draws_.log_joint[c, d], abs=1e-6)


def test_heat_rises_to_one_by_the_middle_of_the_burn_in():
    plan = Plan("rows", one_round(100, 40), 5, 1, ("cases",), (0,), 0.2, False, 0)
    heat = [heat_at(plan, t) for t in range(100)]
    assert heat[0] == 0.2
    assert (np.diff(heat) >= 0).all()
    assert heat[19] < 1
    assert set(heat[20:]) == {1.0}
    assert {heat_at(plan._replace(rounds=one_round(100, burn_in)), 0) for burn_in in (0, 1)} == {1.0}


# --- callback ---------------------------------------------------------------------------------------------------------


def test_the_callback_sees_every_sweep(holes, sampler):
    seen = []
    model = BayesianCaseModel(3, sampler=sampler, callback=seen.append, **SETTINGS).fit(holes)
    assert [report.sweep for report in seen] == list(range(1, 41))
    assert {report.n_iter for report in seen} == {40}
    assert np.array_equal(np.array([report.log_joint for report in seen]).T, model.log_joint_)
    for report in seen:
        for share in (report.cells_moved, report.cases_relabelled, report.purity, report.prototypes_changed):
            assert share.shape == (2,)
            assert ((share >= 0) & (share <= 1)).all()
    assert max(report.cells_moved.max() for report in seen) > 0


def test_reported_purity_is_that_of_the_draws(holes, sampler):
    model = BayesianCaseModel(3, sampler=sampler, **SETTINGS).fit(holes)
    observed = ~np.isnan(holes)
    n = np.stack([((model.draws_.z == s) & observed).sum(axis=3) for s in range(3)], axis=-1)
    purity = (n.max(axis=-1) / n.sum(axis=-1)).mean(axis=2)
    np.testing.assert_allclose(model._trace["purity"][:, 20::5], purity, atol=1e-6)
    assert np.array_equal(model._trace["subspace_size"][:, 20::5], model.draws_.omega.sum(axis=(2, 3)))


@pytest.mark.parametrize(("stop", "kept"), [(1, 1), (7, 1), (21, 1), (22, 1), (26, 2), (39, 4)])
def test_the_callback_can_stop_the_run(holes, sampler, stop, kept):
    full = BayesianCaseModel(3, sampler=sampler, **SETTINGS).fit(holes)
    model = clone(full).set_params(callback=lambda report: report.sweep == stop)
    with pytest.warns(UserWarning, match=rf"Stopped after {stop} of 40 sweeps.* {kept} kept draw{'s' * (kept > 1)} per chain"):
        model.fit(holes)
    assert np.array_equal(model.log_joint_, full.log_joint_[:, :stop])
    assert model.draws_.z.shape[1] == kept
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1, atol=1e-5)
    assert model.transform(holes).shape == (90, 3)
    for c, d in np.ndindex(model.draws_.log_joint.shape):
        draw = (model.draws_.z[c, d], model.draws_.p[c, d], model.draws_.omega[c, d])
        assert log_joint(model._data, model._hyper, *draw) == pytest.approx(model.draws_.log_joint[c, d], abs=1e-6)


def test_stopping_at_the_last_sweep_is_a_whole_run(holes, same):
    full = BayesianCaseModel(3, **SETTINGS).fit(holes)
    same(full, clone(full).set_params(callback=lambda report: report.sweep == 40).fit(holes))  # and no warning


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------------


def test_ctrl_c_returns_what_has_been_drawn(holes, sampler):
    before = signal.getsignal(signal.SIGINT)

    def interrupt(report):
        if report.sweep == 30:
            signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, sampler=sampler, callback=interrupt, **SETTINGS)
    with pytest.warns(UserWarning, match="Stopped after 30 of 40 sweeps"):
        model.fit(holes)
    assert signal.getsignal(signal.SIGINT) is before
    full = clone(model).set_params(callback=None).fit(holes)
    assert np.array_equal(model.log_joint_, full.log_joint_[:, :30])


def test_a_second_ctrl_c_does_not_wait(holes):
    before = signal.getsignal(signal.SIGINT)

    def interrupt(report):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, callback=interrupt, **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(holes)
    assert signal.getsignal(signal.SIGINT) is before
    assert not hasattr(model, "labels_")


# --- checkpoints ------------------------------------------------------------------------------------------------------


def stopped(model, holes, at):
    """Run until sweep `at`, with a checkpoint at the end."""
    model.set_params(callback=lambda report: report.sweep == at)
    with pytest.warns(UserWarning, match="Stopped after"):
        model.fit(holes)
    return model.set_params(callback=None)


@pytest.mark.parametrize("at", [1, 19, 20, 21, 33, 39])
@pytest.mark.parametrize("keep_draws", [False, True])
def test_a_run_continues_where_it_stopped(holes, sampler, at, keep_draws, same, tmp_path):
    full = BayesianCaseModel(3, sampler=sampler, heat=0.5, **SETTINGS | {"keep_draws": keep_draws}).fit(holes)
    model = stopped(clone(full).set_params(checkpoint=tmp_path / "run"), holes, at)
    sweeps = []
    model.set_params(callback=lambda report: sweeps.append(report.sweep), n_jobs=2).fit(holes)
    assert sweeps == list(range(at + 1, 41))
    same(full, model)
    assert np.array_equal(full.transform(holes), model.transform(holes))
    assert os.listdir(tmp_path) == ["run"]  # nothing left lying about


def test_a_finished_run_is_read_not_run(holes, sampler, same, tmp_path):
    path = str(tmp_path / "run")
    first = BayesianCaseModel(3, sampler=sampler, checkpoint=path, **SETTINGS).fit(holes)
    sweeps = []
    same(first, clone(first).set_params(callback=sweeps.append).fit(holes))
    assert sweeps == []


def test_a_run_that_the_callback_ends_at_the_last_sweep_is_saved(holes, tmp_path):
    path = tmp_path / "run"
    BayesianCaseModel(3, checkpoint=path, callback=lambda report: report.sweep == 40, **SETTINGS).fit(holes)
    assert path.exists()


def test_checkpoints_are_written_on_the_way(holes, tmp_path, monkeypatch):
    monkeypatch.setattr(bayescase.sampling.run, "CHECKPOINT_SECONDS", 0.0)
    path, seen = tmp_path / "run", []
    BayesianCaseModel(3, checkpoint=path, callback=lambda report: seen.append(path.exists()), **SETTINGS).fit(holes)
    assert seen == [False] + [True] * 39


CHANGES = {
    "alpha": {"alpha": 0.31},
    "lam": {"lam": 1.1},
    "c": {"c": 49.0},
    "q": {"q": 0.7},
    "q per feature": {"q": [0.8] * 6 + [0.7]},
    "seed": {"random_state": 1},
    "n_iter": {"n_iter": 41},
    "auto": {"n_iter": "auto"},
    "burn_in": {"burn_in": 21},
    "thin": {"thin": 4},
    "n_chains": {"n_chains": 3},
    "sampler": {"sampler": "collapsed"},
    "init": {"init": "cases"},
    "one init": {"init": ["seeded", "cells"]},
    "labels": {"init": [0] * 90},
    "heat": {"heat": 0.9},
    "keep_draws": {"keep_draws": False},
    "n_clusters": {"n_clusters": 4},
    "weights": {"prototype_prior": [2.0] + [1.0] * 89},
    "candidates": {"candidates": np.zeros((4, 7))},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_checkpoint_of_other_settings_is_refused(holes, change, tmp_path):
    path = tmp_path / "run"
    model = BayesianCaseModel(3, checkpoint=path, **SETTINGS).fit(holes)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="belongs to other data or settings; delete it or choose another path"):
        model.set_params(**change).fit(holes)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused(holes, tmp_path):
    model = BayesianCaseModel(3, checkpoint=tmp_path / "run", **SETTINGS).fit(holes)
    other = holes.copy()
    i, j = np.argwhere(~np.isnan(other))[0]
    other[i, j] = np.nan
    for X in (other, holes[:-1], holes[:, :-1]):
        with pytest.raises(ValueError, match="belongs to other data or settings"):
            model.fit(X)


def test_a_checkpoint_without_a_seed_continues_too(holes, tmp_path):
    """random_state=None is the default; a run that was killed must not be lost for it."""
    model = BayesianCaseModel(3, checkpoint=tmp_path / "run", **SETTINGS | {"random_state": None})
    stopped(model, holes, 30)
    part = model.log_joint_
    model.fit(holes)
    assert np.array_equal(model.log_joint_[:, :30], part)


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"not a checkpoint"])
def test_a_damaged_checkpoint_is_refused(holes, damage, tmp_path):
    path = tmp_path / "run"
    model = BayesianCaseModel(3, checkpoint=path, **SETTINGS).fit(holes)
    path.write_bytes(damage(path.read_bytes()))
    labels = model.labels_
    with pytest.raises(FileFormatError, match="not a whole bayescase file"):
        model.fit(holes)
    assert model.labels_ is labels


def test_a_model_is_no_checkpoint_and_the_reverse(holes, tmp_path):
    model = BayesianCaseModel(3, checkpoint=tmp_path / "run", **SETTINGS).fit(holes)
    model.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match="holds a model, not a checkpoint"):
        model.set_params(checkpoint=tmp_path / "model").fit(holes)
    with pytest.raises(FileFormatError, match="holds a checkpoint, not a model"):
        BayesianCaseModel.load(tmp_path / "run")


# --- n_iter="auto" ----------------------------------------------------------------------------------------------------

AUTO = SETTINGS | {"n_iter": "auto", "max_iter": 160}


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds that end after 20, 40, 80 and 160 sweeps."""
    monkeypatch.setattr(bayescase.sampling.run, "FIRST_ROUND", 20)


@pytest.mark.parametrize(
    ("max_iter", "rounds"),
    [
        (8000, [(125, 250), (250, 500), (500, 1000), (1000, 2000), (2000, 4000), (4000, 8000)]),
        (1501, [(187, 375), (375, 750), (750, 1501)]),
        (500, [(125, 250), (250, 500)]),
        (499, [(249, 499)]),
        (1, [(0, 1)]),
    ],
)
def test_rounds_double_and_end_at_the_budget(max_iter, rounds):
    assert list(doubling(max_iter)) == rounds


@pytest.mark.usefixtures("short_rounds")
def test_threads_change_nothing_with_auto(holes, sampler, same):
    one = BayesianCaseModel(3, sampler=sampler, n_jobs=1, **AUTO).fit(holes)
    assert one.n_iter_ > 20  # else nothing was tested
    for n_jobs in (2, 3):
        same(one, clone(one).set_params(n_jobs=n_jobs).fit(holes))


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("at", [1, 10, 19, 20, 21, 39, 40, 41, 79, 80, 100])
def test_an_auto_run_continues_where_it_stopped(holes, at, same, tmp_path):
    full = BayesianCaseModel(3, heat=0.5, **AUTO).fit(holes)
    assert full.n_iter_ == 160
    model = stopped(clone(full).set_params(checkpoint=tmp_path / "run"), holes, at)
    sweeps = []
    model.set_params(callback=lambda report: sweeps.append(report.sweep)).fit(holes)
    assert sweeps == list(range(at + 1, 161))
    same(full, model)
    same(full, model.fit(holes))  # a finished run is read, not run
    assert len(sweeps) == 160 - at


@pytest.mark.usefixtures("short_rounds")
@pytest.mark.parametrize("apart", [False, True], ids=["good", "apart"])
def test_what_ended_an_auto_run_is_remembered(holes, apart, same, tmp_path, monkeypatch):
    """Stopped at the sweep that decides, or at the first of the two rounds that do, a run ends where it would have."""
    real = bayescase.sampling.run.diagnose

    def judge(trace, of, overlap):
        found = real(trace, of, overlap)
        return dataclasses.replace(found, converged=not apart and of.end == 40, n_agreeing=1 if apart else 2)

    monkeypatch.setattr(bayescase.sampling.run, "diagnose", judge)
    monkeypatch.setattr(bayescase.sampling.run, "is_settled", lambda trace, of: True)
    full = BayesianCaseModel(3, **AUTO).fit(holes)
    assert full.n_iter_ == 40
    for at in (20, 39, 40):
        model = clone(full).set_params(checkpoint=tmp_path / f"run {at}", callback=lambda report, at=at: report.sweep == at)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Stopped after")
            model.fit(holes)
        assert model.n_iter_ == at
        same(full, model.set_params(callback=None).fit(holes))


@pytest.mark.usefixtures("short_rounds")
def test_ctrl_c_in_an_auto_run(holes):
    def interrupt(report):
        if report.sweep == 70:
            signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, callback=interrupt, **AUTO)
    with pytest.warns(UserWarning, match="Stopped after 70 of at most 160 sweeps; the results rest on 6 kept draws"):
        model.fit(holes)
    assert np.array_equal(model.draws_.log_joint, model.log_joint_[:, 40:70:5])


@pytest.mark.usefixtures("short_rounds")
def test_the_progress_bar_of_an_auto_run(holes, capfd):
    BayesianCaseModel(3, verbose=1, **AUTO).fit(holes)
    out, err = capfd.readouterr()
    assert out == ""
    assert "160/160" in err


# --- real processes ---------------------------------------------------------------------------------------------------

CHILD = """
    import json, sys, time, warnings
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    import bayescase.sampling.run
    from bayescase import BayesianCaseModel

    data, path, result, sampler, keep, seconds, n_iter, more = sys.argv[1:]
    bayescase.sampling.run.FIRST_ROUND = 15  # with "auto" rounds end after 15, 30, 60 and 120 sweeps
    bayescase.sampling.run.CHECKPOINT_SECONDS = 0.0  # every sweep: a kill is likely to hit the middle of a write

    def slowly(report):
        print(report.sweep, flush=True)
        time.sleep(float(seconds))

    model = BayesianCaseModel(
        **{"n_clusters": 3, "alpha": 0.3} | json.loads(more),
        n_iter="auto" if n_iter == "auto" else int(n_iter), max_iter=120, n_chains=2, random_state=0,
        keep_draws=keep == "keep", sampler=sampler, callback=slowly, checkpoint=None if path == "none" else path,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.load(data))
    for warning in caught:
        print("warning:", warning.message, flush=True)
    model.save(result)
    print("done", flush=True)
"""


@pytest.fixture(scope="module")
def child(tmp_path_factory, holes):
    """child(*args) starts a process that fits `holes` slowly and says which sweep it has reached."""
    folder = tmp_path_factory.mktemp("child")
    (folder / "child.py").write_text(textwrap.dedent(CHILD))
    np.save(folder / "data.npy", holes)

    def start(*args, **more):
        command = [sys.executable, str(folder / "child.py"), str(folder / "data.npy"), *map(str, args), json.dumps(more)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return start


FOUND = {"n_clusters": "auto", "max_clusters": 12, "alpha": "learn", "lam": "learn", "c": "learn", "q": "learn"}


@pytest.mark.parametrize(
    ("sampler", "keep", "n_iter", "more"),
    [
        ("rows", "keep", 120, {}),
        ("rows", "drop", 120, {}),
        ("collapsed", "keep", 120, {}),
        ("rows", "keep", "auto", {}),
        ("rows", "keep", 120, FOUND),
        ("collapsed", "drop", 120, FOUND),
    ],
)
def test_a_killed_run_ends_like_an_uninterrupted_one(holes, sampler, keep, n_iter, more, child, same, tmp_path, monkeypatch):
    chance = random.Random(f"{sampler} {keep}")
    path, result = tmp_path / "run", tmp_path / "result"
    firsts = []
    for kills in range(12):
        process = child(path, result, sampler, keep, 0.01, n_iter, **more)
        try:
            first = process.stdout.readline().strip()
            assert first.isdigit(), process.stderr.read()
            firsts.append(int(first))
            if kills < 3:
                for _ in range(chance.randrange(1, 25)):  # the next sweep is shown after the last one is saved
                    process.stdout.readline()
                time.sleep(chance.uniform(0, 0.02))
                process.send_signal(signal.SIGKILL)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, err
    assert out.endswith("done\n")
    assert "warning" not in out
    assert len(firsts) == 4
    assert firsts[0] == 1
    assert (np.diff(firsts) > 0).all(), firsts  # each process went on from the one before
    monkeypatch.setattr(bayescase.sampling.run, "FIRST_ROUND", 15)
    settings = SETTINGS | {"n_clusters": 3, "n_iter": n_iter, "max_iter": 120, "keep_draws": keep == "keep"} | more
    full = BayesianCaseModel(sampler=sampler, **settings).fit(holes)
    assert full.n_iter_ == 120
    resumed = BayesianCaseModel.load(result)
    same(full, resumed)
    assert np.array_equal(full.transform(holes), resumed.transform(holes))


def test_ctrl_c_in_a_real_process(holes, child, tmp_path):
    process = child("none", tmp_path / "result", "rows", "keep", 0.02, 120)
    try:
        for line in process.stdout:
            if line.strip() == "70":
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, err
    assert out.endswith("done\n")
    model = BayesianCaseModel.load(tmp_path / "result")
    full = BayesianCaseModel(3, **SETTINGS | {"n_iter": 120}).fit(holes)
    n = model.log_joint_.shape[1]
    assert 70 <= n < 120
    assert f"warning: Stopped after {n} of 120 sweeps" in out
    assert np.array_equal(model.log_joint_, full.log_joint_[:, :n])


# --- progress ---------------------------------------------------------------------------------------------------------


def test_the_progress_bar_goes_to_stderr_only(holes, capfd, same):
    silent = BayesianCaseModel(3, **SETTINGS).fit(holes)
    assert capfd.readouterr() == ("", "")
    loud = clone(silent).set_params(verbose=1).fit(holes)
    out, err = capfd.readouterr()
    assert out == ""
    assert "40/40" in err
    assert "log joint" in err
    same(silent, loud)
