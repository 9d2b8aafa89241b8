"""Runs: threads and blocks that change nothing, callbacks, interruption, checkpoints, the progress bar."""

import contextlib
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
import weakref

import numpy as np
import pytest
from sklearn.base import clone

import bayescase.kernels.cpu.engine
import bayescase.parallel
import bayescase.sampling.checkpoint
import bayescase.sampling.diagnostics
import bayescase.sampling.plan
import bayescase.sampling.problem
import bayescase.sampling.run
from bayescase import BayescaseWarning, BayesianCaseModel, FileFormatError
from bayescase.fitted import Fitted
from bayescase.model import log_joint
from bayescase.parallel import LEAST
from bayescase.sampling.plan import Plan, Round, doubling, one_round, prototypes_every
from bayescase.sampling.run import Run

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


def test_threads_that_share_the_start_and_the_results_change_nothing(planted, same, monkeypatch):
    """A table that is long enough to be cut, with equal cases and gaps."""
    monkeypatch.setattr(bayescase.parallel, "WORTH", 0)
    x, _ = planted(N=3 * LEAST, P=6, V=3, S=3, seed=2, noise=0.4)
    holes = np.where(np.random.default_rng(0).random(x.shape) < 0.02, np.nan, x)
    settings = {"n_iter": 6, "n_chains": 1, "init": "seeded", "alpha": 0.3, "random_state": 0}
    for table in (x, holes):
        one = BayesianCaseModel(3, n_jobs=1, **settings).fit(table)
        same(one, clone(one).set_params(n_jobs=3).fit(table))


@pytest.mark.parametrize("cells", [1, 50, 300])
def test_the_split_into_blocks_changes_nothing(holes, sampler, cells, same, monkeypatch):
    whole = BayesianCaseModel(3, sampler=sampler, **SETTINGS | {"n_chains": 1}).fit(holes)
    blocks = []
    prepare = bayescase.kernels.cpu.engine.Threads.__init__

    def spy(self, offset, S, n_jobs=1, n_blocks=1):
        blocks.append(n_blocks)
        prepare(self, offset, S, n_jobs, n_blocks)

    monkeypatch.setattr(bayescase.kernels.cpu.threads, "BLOCK_CELLS", cells)
    monkeypatch.setattr(bayescase.kernels.cpu.engine.Threads, "__init__", spy)
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


# --- callback ---------------------------------------------------------------------------------------------------------


def test_the_callback_sees_every_sweep(holes, sampler):
    seen = []
    model = BayesianCaseModel(3, sampler=sampler, **SETTINGS).fit(holes, callback=seen.append)
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
    np.testing.assert_allclose(model.fitted_.trace["purity"][:, 20::5], purity, atol=1e-6)
    assert np.array_equal(model.fitted_.trace["subspace_size"][:, 20::5], model.draws_.omega.sum(axis=(2, 3)))


@pytest.mark.parametrize(
    ("stop", "sweeps"),
    [(1, [0]), (4, [0]), (7, [5]), (12, [5, 10]), (20, [10, 15]), (21, [10, 15]), (26, [20, 25]), (39, [20, 25, 30, 35])],
)
def test_the_callback_can_stop_the_run(holes, sampler, stop, sweeps):
    """The results rest on the second half of what was run: of the burn-in, until as much has been kept after it."""
    full, kept = BayesianCaseModel(3, sampler=sampler, **SETTINGS).fit(holes), len(sweeps)
    model = clone(full)
    assert not full.interrupted_
    with pytest.warns(UserWarning, match=rf"Stopped after {stop} of 40 sweeps.* {kept} kept draw{'s' * (kept > 1)} per chain"):
        model.fit(holes, callback=lambda report: report.sweep == stop)
    assert model.interrupted_
    assert np.array_equal(model.draws_.log_joint, full.log_joint_[:, sweeps])
    assert np.array_equal(model.log_joint_, full.log_joint_[:, :stop])
    assert model.draws_.z.shape[1] == kept
    np.testing.assert_allclose(model.memberships_.sum(axis=1), 1, atol=1e-5)
    assert model.transform(holes).shape == (90, 3)
    for c, d in np.ndindex(model.draws_.log_joint.shape):
        draw = (model.draws_.z[c, d], model.draws_.p[c, d], model.draws_.omega[c, d])
        assert log_joint(model.fitted_.data, model.fitted_.hyper, *draw) == pytest.approx(
            model.draws_.log_joint[c, d], abs=1e-6
        )


def test_stopping_at_the_last_sweep_is_a_whole_run(holes, same):
    full = BayesianCaseModel(3, **SETTINGS).fit(holes)
    same(full, clone(full).fit(holes, callback=lambda report: report.sweep == 40))  # and no warning


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------------


def test_ctrl_c_returns_what_has_been_drawn(holes, sampler):
    before = signal.getsignal(signal.SIGINT)

    def interrupt(report):
        if report.sweep == 30:
            signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, sampler=sampler, **SETTINGS)
    with pytest.warns(UserWarning, match="Stopped after 30 of 40 sweeps"):
        model.fit(holes, callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    full = clone(model).fit(holes)
    assert np.array_equal(model.log_joint_, full.log_joint_[:, :30])


def test_a_second_ctrl_c_does_not_wait(holes):
    before = signal.getsignal(signal.SIGINT)

    def interrupt(report):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, **SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.fit(holes, callback=interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    assert not hasattr(model, "labels_")


def test_ctrl_c_before_the_first_sweep_keeps_nothing(holes, tmp_path, monkeypatch):
    """Chains that search for their starts have no state before that."""
    model = BayesianCaseModel(3, **SETTINGS | {"n_init": 2})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(bayescase.sampling.run, "patience", lambda: contextlib.nullcontext(lambda: True))
        model.fit(holes, checkpoint=tmp_path / "run")
    assert os.listdir(tmp_path) == []
    assert not hasattr(model, "labels_")


# --- checkpoints ------------------------------------------------------------------------------------------------------


def stopped(model, holes, at, path):
    """Run until sweep `at`, with a checkpoint at the end."""
    with pytest.warns(UserWarning, match="Stopped after"):
        return model.fit(holes, checkpoint=path, callback=lambda report: report.sweep == at)


@pytest.mark.parametrize("at", [1, 19, 20, 21, 33, 39])
@pytest.mark.parametrize("keep_draws", [False, True])
def test_a_run_continues_where_it_stopped(holes, sampler, at, keep_draws, same, tmp_path):
    full = BayesianCaseModel(3, sampler=sampler, **SETTINGS | {"keep_draws": keep_draws}).fit(holes)
    model = stopped(clone(full), holes, at, tmp_path / "run")
    sweeps = []
    model.set_params(n_jobs=2).fit(holes, checkpoint=tmp_path / "run", callback=lambda report: sweeps.append(report.sweep))
    assert sweeps == list(range(at + 1, 41))
    same(full, model)
    assert np.array_equal(full.transform(holes), model.transform(holes))
    assert os.listdir(tmp_path) == ["run"]  # nothing left lying about


def test_a_finished_run_is_read_not_run(holes, sampler, same, tmp_path):
    path = str(tmp_path / "run")
    first = BayesianCaseModel(3, sampler=sampler, **SETTINGS).fit(holes, checkpoint=path)
    sweeps = []
    same(first, clone(first).fit(holes, checkpoint=path, callback=sweeps.append))
    assert sweeps == []


def test_a_run_that_the_callback_ends_at_the_last_sweep_is_saved(holes, tmp_path):
    path = tmp_path / "run"
    BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=path, callback=lambda report: report.sweep == 40)
    assert path.exists()


def test_checkpoints_are_written_on_the_way(holes, tmp_path, monkeypatch):
    monkeypatch.setattr(bayescase.sampling.run, "CHECKPOINT_SECONDS", 0.0)
    path, seen = tmp_path / "run", []
    BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=path, callback=lambda report: seen.append(path.exists()))
    assert seen == [False] + [True] * 39


CHANGES = {
    "alpha": {"alpha": 0.31},
    "lam": {"lam": 1.1},
    "c": {"c": 49.0},
    "q": {"q": 0.7},
    "q per feature": {"q": [0.8] * 6 + [0.7]},
    "seed": {"random_state": 1},
    "auto": {"n_iter": "auto"},
    "burn_in": {"burn_in": 21},
    "thin": {"thin": 4},
    "n_chains": {"n_chains": 3},
    "sampler": {"sampler": "collapsed"},
    "init": {"init": "cases"},
    "one init": {"init": ["seeded", "cells"]},
    "keep_draws": {"keep_draws": False},
    "n_clusters": {"n_clusters": 4},
}
ROW_CHANGES = {
    "labels": {"init": [0] * 90},
    "weights": {"prototype_prior": [2.0] + [1.0] * 89},
    "candidates": {"candidates": np.zeros((4, 7))},
    "pins": {"pins": {"cases": {3: 1}}},
}


@pytest.mark.parametrize("change", (CHANGES | ROW_CHANGES).values(), ids=CHANGES | ROW_CHANGES)
def test_a_checkpoint_of_other_settings_is_refused(holes, change, tmp_path):
    path = tmp_path / "run"
    model = BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="belongs to other data or settings; delete it or choose another path"):
        of_rows = change if change in ROW_CHANGES.values() else {}
        model.set_params(**{} if of_rows else change).fit(holes, checkpoint=path, **of_rows)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused(holes, tmp_path):
    model = BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=tmp_path / "run")
    other = holes.copy()
    i, j = np.argwhere(~np.isnan(other))[0]
    other[i, j] = np.nan
    for X in (other, holes[:-1], holes[:, :-1]):
        with pytest.raises(ValueError, match="belongs to other data or settings"):
            model.fit(X, checkpoint=tmp_path / "run")


def test_a_checkpoint_without_a_seed_continues_too(holes, tmp_path):
    """random_state=None is the default; a run that was killed must not be lost for it."""
    model = stopped(BayesianCaseModel(3, **SETTINGS | {"random_state": None}), holes, 30, tmp_path / "run")
    part = model.log_joint_
    model.fit(holes, checkpoint=tmp_path / "run")
    assert np.array_equal(model.log_joint_[:, :30], part)


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"", lambda raw: b"not a checkpoint"])
def test_a_damaged_checkpoint_is_refused(holes, damage, tmp_path):
    path = tmp_path / "run"
    model = BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=path)
    path.write_bytes(damage(path.read_bytes()))
    labels = model.labels_
    with pytest.raises(FileFormatError, match="not a whole bayescase file"):
        model.fit(holes, checkpoint=path)
    assert model.labels_ is labels


def test_a_model_is_no_checkpoint_and_the_reverse(holes, tmp_path):
    model = BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=tmp_path / "run")
    model.save(tmp_path / "model")
    with pytest.raises(FileFormatError, match="holds a model, not a checkpoint"):
        model.fit(holes, checkpoint=tmp_path / "model")
    with pytest.raises(FileFormatError, match="holds a checkpoint, not a model"):
        BayesianCaseModel.load(tmp_path / "run")


def test_a_checkpoint_that_cannot_be_written_does_not_end_the_run(holes, same, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bayescase.sampling.run, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(bayescase.sampling.checkpoint.storage, "write", full)
    model = BayesianCaseModel(3, **SETTINGS)
    with pytest.warns(BayescaseWarning, match="run could not be written .No space left on device.; the run goes on") as warned:
        model.fit(holes, checkpoint=tmp_path / "run")
    assert sum("could not be written" in str(one.message) for one in warned) == 1
    same(BayesianCaseModel(3, **SETTINGS).fit(holes), model)


# --- longer runs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "more", "burn_in"), [(20, 20, None), (40, 61, None), (40, 13, 20), (40, 39, 20)])
@pytest.mark.parametrize("way", ["memory", "checkpoint", "saved"])
def test_running_longer_is_one_long_run(holes, sampler, first, more, burn_in, way, same, tmp_path):
    """As many sweeps again or more: the second half of all is kept. Fewer: the burn-in stays."""
    settings = SETTINGS | {"sampler": sampler}
    long = BayesianCaseModel(3, **settings | {"n_iter": first + more, "burn_in": burn_in}).fit(holes)
    path = None if way == "memory" else tmp_path / "run"
    model = BayesianCaseModel(3, warm_start=way == "memory", **settings | {"n_iter": first}).fit(holes, checkpoint=path)
    if way == "saved":
        model.save(tmp_path / "model")
        model = BayesianCaseModel.load(tmp_path / "model")
    assert model.more(more, checkpoint=path) is model
    same(long, model)
    assert np.array_equal(long.transform(holes), model.transform(holes))
    assert model.n_iter_ == first + more


def test_a_fit_with_more_sweeps_goes_on_from_the_checkpoint_of_one_with_fewer(holes, same, tmp_path):
    BayesianCaseModel(3, **SETTINGS).fit(holes, checkpoint=tmp_path / "run")
    sweeps, long = [], BayesianCaseModel(3, **SETTINGS | {"n_iter": 90})
    same(clone(long).fit(holes), long.fit(holes, checkpoint=tmp_path / "run", callback=lambda r: sweeps.append(r.sweep)))
    assert sweeps == list(range(41, 91))


def test_a_run_that_was_stopped_can_go_on(holes, tmp_path):
    model = stopped(BayesianCaseModel(3, **SETTINGS), holes, 12, tmp_path / "run")
    model.more(30, checkpoint=tmp_path / "run")
    assert not model.interrupted_
    full = BayesianCaseModel(3, **SETTINGS | {"n_iter": 42}).fit(holes)
    assert np.array_equal(model.log_joint_, full.log_joint_)
    assert np.array_equal(model.memberships_, full.memberships_)


def test_a_run_that_was_stopped_while_burning_in_keeps_the_burn_in_that_was_asked_for(holes, same, tmp_path):
    full = BayesianCaseModel(3, burn_in=20, **SETTINGS).fit(holes)
    model = stopped(clone(full), holes, 5, tmp_path / "run")
    same(full, model.more(35, checkpoint=tmp_path / "run"))


def test_what_was_shown_of_a_stopped_run_is_forgotten_when_it_goes_on(holes, same):
    """After two sweeps of the kept half its burn-in is shown, which is longer; another eight make it a run of 30."""
    model = BayesianCaseModel(3, warm_start=True, burn_in=20, **SETTINGS)
    with pytest.warns(UserWarning, match="Stopped after 22 of 40 sweeps; the results rest on 2 kept draws"):
        model.fit(holes, callback=lambda report: report.sweep == 22)
    assert model.fitted_.kept == (10, 20)
    same(BayesianCaseModel(3, burn_in=20, **SETTINGS | {"n_iter": 30}).fit(holes), model.more(8))


@pytest.mark.usefixtures("short_rounds")
def test_an_auto_run_can_go_on(holes):
    model = BayesianCaseModel(3, warm_start=True, **AUTO).fit(holes)
    before = model.log_joint_
    model.more(160)
    assert model.fitted_.kept == (160, 320)
    assert np.array_equal(model.log_joint_[:, :160], before)
    model.more(10)
    assert model.fitted_.kept == (160, 330)


def test_without_a_run_there_is_nothing_to_go_on_with(holes, tmp_path):
    model = BayesianCaseModel(3, **SETTINGS).fit(holes)
    for path in (None, tmp_path / "nothing"):
        with pytest.raises(ValueError, match="There is no run to go on with: fit with warm_start=True, or give the checkpoint"):
            model.more(10, checkpoint=path)
    with pytest.raises(ValueError, match="n_iter must be a whole number of at least 1"):
        model.more(0)


def test_plans_are_extended_as_one_long_run_would_be_made():
    plan = Plan("rows", one_round(100, None), 5, 1, ("cases",), (0,), False, 0)
    assert plan.extended(100).rounds == one_round(200, None)
    assert plan.extended(300).rounds == one_round(400, None)
    assert plan.extended(99).rounds == one_round(199, 50)
    assert plan.extended(300, burn_in=50).rounds == one_round(400, 50)
    assert plan._replace(rounds=(Round(5, 5),)).extended(30, burn_in=20).rounds == one_round(35, 20)
    assert plan._replace(rounds=(Round(5, 5),)).extended(3, burn_in=20).rounds == one_round(8, 7)
    auto = plan._replace(rounds=doubling(1000))
    assert auto.extended(1000).rounds == (*doubling(1000), Round(1000, 2000))


# --- a run by hand ----------------------------------------------------------------------------------------------------


def problem_of(holes, pins=None, **settings):
    model = BayesianCaseModel(3, **SETTINGS | settings).fit(holes, pins=pins)
    return model, model.fitted_.problem


def test_a_run_advances_step_by_step(holes, sampler):
    model, problem = problem_of(holes, sampler=sampler)
    with Run(problem, n_jobs=2) as run:
        assert not run.advance(7)
        assert not run.advance(13)
        assert run.stage.sweep == 20
        assert run.advance(100)
        assert run.advance(5)  # there is nothing more to do
        assert np.array_equal(run.draws().trace["log_joint"], model.log_joint_)


def test_what_a_run_shows_on_the_way_does_not_change_it(holes):
    model, problem = problem_of(holes)
    with Run(problem) as run:
        while not run.advance(2):  # also right after the burn-in
            shown = run.draws()
            assert shown.interrupted
            assert shown.trace["log_joint"].shape == (2, run.stage.sweep)
        found = run.draws()
    assert np.array_equal(found.chains[0].memberships, chain_memberships(problem, 0))
    assert np.array_equal(found.trace["log_joint"], model.log_joint_)


def test_labels_are_given_back_before_results_are_made(holes, same, monkeypatch):
    """They take more memory than all results; what is to be run longer keeps them."""
    labels, there = [], []
    open_engine, of_draws = bayescase.sampling.run.open_engine, Fitted.of_draws

    def note(*args):
        engine = open_engine(*args)
        labels.append(weakref.ref(engine.z))
        return engine

    def look(*args):
        there.append(labels[-1]() is not None)
        return of_draws(*args)

    monkeypatch.setattr(bayescase.sampling.run, "open_engine", note)
    monkeypatch.setattr(Fitted, "of_draws", look)
    one = BayesianCaseModel(3, n_jobs=2, **SETTINGS).fit(holes)
    same(one, clone(one).set_params(warm_start=True).fit(holes))
    assert there == [False, True]


def test_after_an_error_there_is_no_run_to_go_on_with(holes, monkeypatch):
    model = BayesianCaseModel(3, warm_start=True, **SETTINGS).fit(holes)
    before = model.fitted_
    monkeypatch.setattr(Fitted, "of_draws", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.more(5)
    assert model.fitted_ is before
    with pytest.raises(ValueError, match="There is no run to go on with"):
        model.more(5)


def chain_memberships(problem, c):
    with Run(problem) as run:
        run.advance()
        return run.draws().chains[c].memberships.copy()


def test_pins_can_change_while_a_run_goes_on(holes, sampler):
    """What is pinned holds from then on, what was kept is forgotten, and the counts stay those of z."""
    pins = {"cases": {3: 1, 4: 1, 50: 2}, "prototypes": {0: 7}, "subspaces": {1: {2: True, 3: False}}}
    _, pinned = problem_of(holes, pins, sampler=sampler)
    _, free = problem_of(holes, sampler=sampler)
    with Run(free) as run:
        run.advance(10)
        run.repin(pinned)
        run.advance(20)
        for chain in run.chains:
            cells, z, _ = chain.rows.take(slice(None))
            codes, z = cells.codes.reshape(holes.shape), z.reshape(holes.shape)
            for row, s in pins["cases"].items():
                assert (z[row][codes[row] >= 0] == s).all()
            assert chain.state.p[0] == 7
            assert chain.state.omega[1, 2]
            assert not chain.state.omega[1, 3]
            again = chain.rows.recount(len(chain.state.n_sv))
            assert np.array_equal(again.n_sv, chain.state.n_sv)
            assert np.array_equal(again.n_rows, chain.state.n_rows)
        assert run.draws().kept.first >= 10
        run.repin(free)
        run.advance()
        assert run.stage.finished


# --- prototypes that are not drawn in every sweep ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("S", "n_cells", "every"),
    [(16, 1 << 30, 1), (17, (1 << 17) - 1, 1), (17, 1 << 17, 2), (32, 1 << 17, 2), (33, 1 << 17, 3), (110, 1 << 24, 3)],
)
def test_by_the_size_of_a_problem(S, n_cells, every):
    assert prototypes_every(S, n_cells) == every


def test_prototypes_stay_in_every_second_sweep(holes, seldom_prototypes):
    _, problem = problem_of(holes, moves="none")
    assert problem.plan.prototypes_every == 2
    p = []
    with Run(problem) as run:
        run.advance(after=lambda run: p.append(np.array([chain.state.p for chain in run.chains])))
    assert all(np.array_equal(p[t], p[t - 1]) for t in range(1, 40, 2))
    assert not all(np.array_equal(p[t], p[t - 1]) for t in range(2, 40, 2))
    assert problem_of(holes, sampler="collapsed")[1].plan.prototypes_every == 1


def test_the_share_of_changed_prototypes_is_that_of_the_sweeps_that_draw_them(holes, seldom_prototypes):
    _, problem = problem_of(holes, moves="none")
    p, told = [], []

    def note(run):
        p.append(np.array([chain.state.p for chain in run.chains]))
        told.append(run.report().prototypes_changed)

    with Run(problem) as run:
        run.advance(after=note)
        draws = run.draws()
    drawn = np.array([(p[t] != p[t - 2]).mean(axis=1) for t in range(20, 40, 2)])
    assert np.array_equal(told[20:], np.repeat(drawn, 2, axis=0))
    found = bayescase.sampling.diagnostics.diagnose(draws.trace, draws.kept, np.ones(2))
    assert found.rates["prototypes_changed"] == pytest.approx(drawn.mean())
    assert drawn.mean() > 0.5


@pytest.mark.parametrize("at", [21, 33])
def test_a_checkpoint_keeps_the_turn(holes, seldom_prototypes, at, same, tmp_path):
    full = BayesianCaseModel(3, **SETTINGS).fit(holes)
    model = stopped(clone(full), holes, at, tmp_path / "run")
    same(full, model.set_params(n_jobs=2).fit(holes, checkpoint=tmp_path / "run"))
    longer = BayesianCaseModel(3, warm_start=True, **SETTINGS | {"n_iter": at}).fit(holes)
    same(BayesianCaseModel(3, **SETTINGS | {"n_iter": 3 * at}).fit(holes), longer.more(2 * at))


@pytest.mark.parametrize("moves", ["clusters", "jumps"])
def test_prototypes_that_stay_beside_moves_of_clusters(planted, seldom_prototypes, moves):
    """The log joint is that of the state, whatever was drawn when."""
    x, _ = planted(N=90, P=7, V=4, S=3, seed=20, noise=0.5)
    _, problem = problem_of(x, moves=moves, n_init=4)
    with Run(problem) as run:
        for _ in range(3):
            run.advance(7)
            for chain, joint in zip(run.chains, run.report().log_joint, strict=True):
                z = chain.rows.labels().reshape(x.shape)
                truth = log_joint(problem.data, problem.hyper, z, chain.state.p, chain.state.omega)
                assert joint == pytest.approx(truth, abs=1e-7)


def test_other_pins_find_prototypes_of_their_own(holes, seldom_prototypes):
    """Also before a sweep that would draw none."""
    _, free = problem_of(holes)
    _, pinned = problem_of(holes, {"prototypes": {0: 7}})
    with Run(free) as run:
        run.advance(11)
        run.repin(pinned)
        run.advance(1)
        assert all(chain.state.p[0] == 7 for chain in run.chains)
        assert np.isfinite(run.report().log_joint).all()


# --- n_iter="auto" ----------------------------------------------------------------------------------------------------

AUTO = SETTINGS | {"n_iter": "auto", "max_iter": 160}


@pytest.fixture
def short_rounds(monkeypatch):
    """Rounds that end after 20, 40, 80 and 160 sweeps."""
    monkeypatch.setattr(bayescase.sampling.plan, "FIRST_ROUND", 20)


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
    full = BayesianCaseModel(3, **AUTO).fit(holes)
    assert full.n_iter_ == 160
    model = stopped(clone(full), holes, at, tmp_path / "run")
    sweeps = []
    model.fit(holes, checkpoint=tmp_path / "run", callback=lambda report: sweeps.append(report.sweep))
    assert sweeps == list(range(at + 1, 161))
    same(full, model)
    same(full, model.fit(holes, checkpoint=tmp_path / "run"))  # a finished run is read, not run
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
        model, path = clone(full), tmp_path / f"run {at}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Stopped after")
            model.fit(holes, checkpoint=path, callback=lambda report, at=at: report.sweep == at)
        assert model.n_iter_ == at
        same(full, model.fit(holes, checkpoint=path))


@pytest.mark.usefixtures("short_rounds")
def test_ctrl_c_in_an_auto_run(holes):
    def interrupt(report):
        if report.sweep == 70:
            signal.raise_signal(signal.SIGINT)

    model = BayesianCaseModel(3, **AUTO)
    with pytest.warns(UserWarning, match="Stopped after 70 of at most 160 sweeps; the results rest on 6 kept draws"):
        model.fit(holes, callback=interrupt)
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
    import bayescase.sampling.plan, bayescase.sampling.run
    from bayescase import BayesianCaseModel

    data, path, result, sampler, keep, seconds, n_iter, more = sys.argv[1:]
    bayescase.sampling.plan.FIRST_ROUND = 15  # with "auto" rounds end after 15, 30, 60 and 120 sweeps
    bayescase.sampling.run.CHECKPOINT_SECONDS = 0.0  # every sweep: a kill is likely to hit the middle of a write

    def slowly(report):
        print(report.sweep, flush=True)
        time.sleep(float(seconds))

    model = BayesianCaseModel(
        **{"n_clusters": 3, "alpha": 0.3} | json.loads(more),
        n_iter="auto" if n_iter == "auto" else int(n_iter), max_iter=120, n_chains=2, random_state=0,
        keep_draws=keep == "keep", sampler=sampler,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(np.load(data), callback=slowly, checkpoint=None if path == "none" else path)
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
    ("sampler", "keep", "n_iter", "kills", "more"),
    [
        ("rows", "keep", 120, 3, {}),
        ("rows", "drop", 120, 1, {}),
        ("collapsed", "keep", 120, 1, {}),
        ("rows", "keep", "auto", 1, {}),
        ("rows", "keep", 120, 1, FOUND),
        ("collapsed", "drop", 120, 1, FOUND),
    ],
)
def test_a_killed_run_ends_like_an_uninterrupted_one(
    holes, sampler, keep, n_iter, kills, more, child, same, tmp_path, monkeypatch
):
    dice = random.Random(f"{sampler} {keep}")
    path, result = tmp_path / "run", tmp_path / "result"
    firsts = []
    for life in range(kills + 1):
        process = child(path, result, sampler, keep, 0.01, n_iter, **more)
        try:
            first = process.stdout.readline().strip()
            assert first.isdigit(), process.stderr.read()
            firsts.append(int(first))
            if life < kills:
                for _ in range(dice.randrange(1, 25)):  # the next sweep is shown after the last one is saved
                    process.stdout.readline()
                time.sleep(dice.uniform(0, 0.02))
                process.send_signal(signal.SIGKILL)
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()
        assert process.returncode == (-signal.SIGKILL if life < kills else 0), err
    assert out.endswith("done\n")
    assert "warning" not in out
    assert firsts[0] == 1
    assert (np.diff(firsts) > 0).all(), firsts  # each process went on from the one before
    monkeypatch.setattr(bayescase.sampling.plan, "FIRST_ROUND", 15)
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
