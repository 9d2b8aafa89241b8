"""Fits on a cluster of Dask, of processes: the integers of the same fit in memory, whatever happens to workers."""

import contextlib
import gc
import io
import logging
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet
from sklearn.base import clone

import bayescase.reading.partitions
from bayescase import BayesianCaseModel, ParameterError
from bayescase.errors import BayescaseWarning, TableError, TableTypeError
from bayescase.kernels.cluster import engine
from bayescase.reading import cache
from bayescase.sampling import places, stored

from ..cli.calling import call, refused
from ..kernels import host_machine
from .test_large import check_same, table

da = pytest.importorskip("dask.array")
dask_bag = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

QUICK = {"n_iter": 10, "thin": 2, "n_chains": 2, "random_state": 5}
OURS = "bayescase"  # in the names of all tasks of a run

# What Dask says while processes are killed, and of sockets that close with them.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(distributed|tornado|dask)"),
]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(cache, "BLOCK_CELLS", 300)
    monkeypatch.setattr(engine, "BUSY", 1)
    monkeypatch.setattr(engine, "STEPS", 8)


@pytest.fixture(scope="module")
def cluster():
    """Two workers, a process each."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as found:
        yield found


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster, set_as_default=False) as found:
        yield found


def ours(cluster):
    """Tasks of runs that the scheduler knows."""
    return [key for key in list(cluster.scheduler.tasks) if OURS in str(key)]


def wait_for(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.02)


def frame(n=400, **how):
    return table(n, **how).to_pandas()


# --- the same integers -----------------------------------------------------------------------------------------------------


def test_a_data_frame_whose_partitions_have_other_categories(client, cluster):
    cases = frame().assign(size=np.random.default_rng(1).normal(size=400))
    cases["f0"] = cases["f0"].astype("category")
    parts = [cases.iloc[:150], cases.iloc[150:150], cases.iloc[150:310], cases.iloc[310:]]
    parts = [part.assign(f0=part["f0"].cat.remove_unused_categories()) for part in parts]
    parts[-1] = parts[-1].assign(f1=np.full(90, None))  # without a value, and so without a type
    X = dd.from_map(lambda part: part, parts, meta=cases.iloc[:0])
    cases = pd.concat(parts).assign(f0=cases["f0"])
    wanted = BayesianCaseModel(3, **QUICK).fit(cases)
    found = BayesianCaseModel(3, client=client, **QUICK).fit(X)
    check_same(found, wanted)
    assert found.feature_values_ == wanted.feature_values_
    wait_for(lambda: not ours(cluster), 5)


def test_partitions_of_pyarrow_and_an_array(client):
    cases = frame(300)
    strings = dd.from_pandas(cases.astype("string[pyarrow]"), npartitions=3)
    check_same(BayesianCaseModel(3, client=client, **QUICK).fit(strings), BayesianCaseModel(3, **QUICK).fit(cases))
    numbers = np.random.default_rng(0).integers(4, size=(300, 5))
    found = BayesianCaseModel(3, client=client, **QUICK).fit(da.from_array(numbers, chunks=(70, -1)))
    check_same(found, BayesianCaseModel(3, **QUICK).fit(numbers))


@pytest.mark.filterwarnings("ignore:All ")
def test_bags_as_many_clusters_as_needed_and_tables_that_are_tasks(client, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "SMALL", 0)
    cases = table(200, bags=True)
    parquet.write_table(cases, tmp_path / "cases.parquet", row_group_size=60)
    settings = QUICK | {"n_clusters": "auto", "max_clusters": 5, "alpha": "learn", "n_iter": 6}
    found = BayesianCaseModel(client=client, **settings).fit(tmp_path / "cases.parquet")
    check_same(found, BayesianCaseModel(**settings).fit(cases))


def test_prototypes_in_every_second_sweep(client, tmp_path, seldom_prototypes):
    cases = table(200)
    parquet.write_table(cases, tmp_path / "cases.parquet", row_group_size=60)
    found = BayesianCaseModel(3, client=client, **QUICK).fit(tmp_path / "cases.parquet")
    assert found.fitted_.plan.prototypes_every == 2
    check_same(found, BayesianCaseModel(3, **QUICK).fit(cases))


def test_a_worker_is_killed_and_one_is_added(client, cluster):
    """SIGKILL while tasks run. The nanny starts another worker in its place; a third one comes later, and steals work."""
    X = frame(600)
    settings = QUICK | {"n_iter": 16}
    wanted = BayesianCaseModel(3, **settings).fit(X)
    before, killed = set(cluster.scheduler.workers), []

    def kill():
        wait_for(lambda: any(state.processing for state in cluster.scheduler.workers.values()))
        busy = next((w for w in list(cluster.workers.values()) if cluster.scheduler.workers[w.worker_address].processing), None)
        busy = busy or next(iter(cluster.workers.values()))
        killed.append(busy.worker_address)
        os.kill(busy.pid, signal.SIGKILL)

    def after(report):
        if report.sweep == 3:
            threads.append(threading.Thread(target=kill))
            threads[0].start()
        if report.sweep == 8:
            cluster.scale(3)
            client.wait_for_workers(3)

    threads = []
    assert "stealing" in cluster.scheduler.extensions
    found = BayesianCaseModel(3, client=client, **settings).fit(dd.from_pandas(X, npartitions=3), callback=after)
    threads[0].join()
    check_same(found, wanted)
    assert killed[0] in before
    assert killed[0] not in cluster.scheduler.workers
    assert len(cluster.scheduler.workers) == 3
    check_same(BayesianCaseModel(3, client=client, **settings).fit(dd.from_pandas(X, npartitions=3)), wanted)  # on three
    cluster.scale(2)


def test_a_run_goes_on_from_its_checkpoint_here_or_on_one_machine(client, tmp_path):
    cases = table(300)
    parquet.write_table(cases, tmp_path / "cases.parquet", row_group_size=80)
    wanted = BayesianCaseModel(3, **QUICK).fit(cases)
    for first, second in ((client, None), (None, client), (client, client)):
        stop = {"checkpoint": tmp_path / "run", "callback": lambda report: report.sweep == 7}
        with pytest.warns(BayescaseWarning, match="Stopped after 7"):
            BayesianCaseModel(3, client=first, **QUICK).fit(tmp_path / "cases.parquet", **stop)
        found = BayesianCaseModel(3, client=second, **QUICK).fit(tmp_path / "cases.parquet", checkpoint=tmp_path / "run")
        check_same(found, wanted)
        del found
        gc.collect()
        assert os.listdir(tmp_path) == ["cases.parquet"]


def test_few_candidates_and_many_cases_for_a_start(client, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "START_CASES", 100)
    cases = table(300, gaps=False)
    parquet.write_table(cases, tmp_path / "cases.parquet", row_group_size=80)
    for how in (QUICK, QUICK | {"n_init": 3}):
        found = BayesianCaseModel(3, client=client, **how).fit(tmp_path / "cases.parquet", candidates=50)
        check_same(found, BayesianCaseModel(3, **how).fit(cases, candidates=50))


@pytest.mark.skipif(host_machine.COMPILER is None, reason="no C++ compiler, g++ or clang++")
def test_gpus_of_workers(client, tmp_path):
    """The kernels for GPUs, compiled for this computer: a GPU in one worker, and none in the other."""
    cloudpickle.register_pickle_by_value(host_machine)
    machine, (first, second) = host_machine.HostMachine, client.scheduler_info()["workers"]
    used = tmp_path / "used"

    def give(device):
        from bayescase.kernels.cluster import gpu

        class Noted(machine):
            def compile(self, text):
                used.touch()
                return super().compile(text)

        gpu.OPEN.clear()
        gpu.OPEN |= {name: gpu.Device(Noted()) if device else None for name in ("auto", "cuda")}

    def take_back():
        from bayescase.kernels.cluster import gpu

        gpu.OPEN.clear()

    cases, settings = frame(300), QUICK | {"n_iter": 6}
    wanted = BayesianCaseModel(3, **settings).fit(cases)
    try:
        client.run(give, True, workers=[first])
        client.run(give, False, workers=[second])
        for device in ("auto", "cuda"):
            used.unlink(missing_ok=True)
            model = BayesianCaseModel(3, client=client, device=device, **settings).fit(dd.from_pandas(cases, npartitions=3))
            check_same(model, wanted)
            assert used.exists()
    finally:
        client.run(take_back)


# --- what is left behind ---------------------------------------------------------------------------------------------------


def test_many_sweeps_do_not_fill_the_scheduler(client, cluster, monkeypatch):
    monkeypatch.setattr(cache, "BLOCK_CELLS", 1 << 20)
    tasks, futures, groups = [], [], []

    def after(report):
        tasks.append(len(ours(cluster)))
        futures.append(len(client.futures))
        groups.append(sum(len(span.groups) for span in cluster.scheduler.extensions["spans"].spans.values()))

    X = dd.from_pandas(frame(60), npartitions=1)
    BayesianCaseModel(3, client=client, **QUICK | {"n_iter": 200, "n_chains": 1}).fit(X, candidates=10, callback=after)
    assert max(tasks[150:]) <= max(tasks[:150]) <= 4 * engine.STEPS + 12  # draws are kept from 100 on
    assert max(futures) <= 24  # about 12, and some that are not yet let go
    cuts = 2 * len(tasks) / engine.STEPS  # a sweep, and every second time a mean and cases that are drawn anew
    assert groups[-1] - groups[0] <= 3 * cuts + 3
    wait_for(lambda: not ours(cluster), 5)
    assert not client.futures


def test_two_fits_on_one_client(client, monkeypatch):
    """Wide tables: what does not travel with every task has a name, which must be of one run alone."""
    cases, settings = frame(150), QUICK | {"n_iter": 6, "n_chains": 1}
    cases = pd.concat([cases.add_prefix(f"{k} ") for k in range(6)], axis=1)
    monkeypatch.setattr(engine, "SMALL", 1 << 10)
    X, found = dd.from_pandas(cases, npartitions=2), {}

    def run(seed):
        found[seed] = BayesianCaseModel(4, client=client, **settings | {"random_state": seed}).fit(X)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, model in found.items():
        check_same(model, BayesianCaseModel(4, **settings | {"random_state": seed}).fit(cases))


def test_a_client_that_is_gone_leaves_nothing_behind(client, cluster, tmp_path, monkeypatch):
    parquet.write_table(table(300), tmp_path / "cases.parquet")
    code = (
        "import sys; from distributed import Client; from bayescase import BayesianCaseModel\n"
        "model = BayesianCaseModel(3, client=Client(sys.argv[1]), n_iter=100_000)\n"
        "model.fit(sys.argv[2])"
    )
    command = [sys.executable, "-c", code, cluster.scheduler_address, str(tmp_path / "cases.parquet")]
    process = subprocess.Popen(command, env=os.environ | {"TMPDIR": str(tmp_path)})
    wait_for(lambda: any("on_block" in str(key) for key in ours(cluster)))
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not ours(cluster))
    assert not any(state.has_what or state.processing for state in cluster.scheduler.workers.values())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (gone,) = tmp_path.glob("bayescase-*")
    place = places.Place(None, None)  # whoever comes next cleans up
    assert list(tmp_path.glob("bayescase-*")) == [place.results] != [gone]
    other = places.Place(None, None)
    assert place.results.exists()
    assert other.results.exists()


# --- new cases -------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_new_cases_stay_lazy(client):
    cases = frame(200)
    model = BayesianCaseModel(3, **QUICK).fit(cases)
    X = dd.from_pandas(cases, npartitions=3)
    labels, shares = model.predict(X), model.transform(X)
    assert isinstance(labels, dd.Series)
    assert isinstance(shares, dd.DataFrame)
    assert labels.divisions == shares.divisions == X.divisions
    assert np.array_equal(client.compute(labels).result(), model.predict(cases))
    assert np.array_equal(client.compute(shares).result(), model.transform(cases))
    assert list(shares.columns) == list(model.get_feature_names_out())
    array = X.to_dask_array(lengths=True)
    assert model.predict(array).chunks == array.chunks[:1]
    assert np.array_equal(model.transform(array).compute(scheduler="sync"), model.transform(cases))
    empty = dd.from_map(lambda part: part, [cases.iloc[:0], cases.iloc[:9]], meta=cases.iloc[:0])
    assert np.array_equal(model.predict(empty).compute(scheduler="sync"), model.predict(cases.iloc[:9]))
    scores = model.score_samples(X)
    assert isinstance(scores, dd.Series)
    assert np.array_equal(scores.compute(scheduler="sync"), model.score_samples(cases))
    assert model.score(X) == pytest.approx(model.score(cases))
    with pytest.raises(TableError, match="X has no column 'f3'"):
        model.predict(X.drop(columns="f3"))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.transform(array[:, :3])


# --- what is said ----------------------------------------------------------------------------------------------------------


def test_what_is_wrong_with_a_collection(client):
    model = BayesianCaseModel(3, client=client, **QUICK)
    numbers = np.zeros((40, 6), dtype=int)
    with pytest.raises(TableError, match=r"X has 2 chunks side by side; a case must lie within one: use X\.rechunk"):
        model.fit(da.from_array(numbers, chunks=(10, 3)))
    with pytest.raises(TableError, match="2D array"):
        model.fit(da.from_array(numbers[0], chunks=3))
    one, two = pd.DataFrame({"a": ["x", "y"] * 5}), pd.DataFrame({"a": [1.0, 2.0] * 5})
    mixed = dd.from_map(lambda part: part, [one, two], meta=one.iloc[:0])
    with pytest.raises(TableTypeError, match="Column 'a' should hold words, but holds numbers in partition 1; give"):
        model.fit(mixed)
    other = dd.from_map(lambda part: part, [one, two.rename(columns={"a": "b"})], meta=one.iloc[:0])
    with pytest.raises(TableError, match="Partition 1 of X does not have the columns of the others"):
        model.fit(other)
    for kind, wrong in (("Series", mixed["a"]), ("Bag", dask_bag.from_sequence([1, 2]))):
        with pytest.raises(TableTypeError, match=f"X is a {kind} of Dask, not a data frame or an array"):
            model.fit(wrong)
    with pytest.raises(TableError, match="The table is empty"):
        model.fit(dd.from_map(lambda part: part, [one.iloc[:0]], meta=one.iloc[:0]))


def test_what_is_wrong_with_workers(client, monkeypatch, tmp_path):
    X, worker = dd.from_pandas(frame(50), npartitions=1), next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ParameterError, match="there is no cluster to compute it"):
        BayesianCaseModel(3).fit(X)
    with pytest.raises(ParameterError, match="client is for a table that is read in parts"):
        BayesianCaseModel(3, client=client).fit(frame(50))
    with pytest.raises(ParameterError, match=r"Worker tcp://.* has no GPU to use: device='cuda:9'"):
        BayesianCaseModel(3, client=client, device="cuda:9").fit(X)

    def hide(hidden):
        if hidden:
            sys.kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "bayescase"}
            sys.modules["bayescase"] = None
        else:
            sys.modules.pop("bayescase")
            sys.modules.update(sys.kept)

    for wrong in ("tcp://127.0.0.1:8786", object()):
        with pytest.raises(TypeError, match=r"client must be a dask\.distributed\.Client"):
            BayesianCaseModel(3, client=wrong).fit(X)

    run = client.run_on_scheduler
    monkeypatch.setattr(client, "run_on_scheduler", lambda *_: (None, []))
    with pytest.raises(ParameterError, match="The scheduler does not have bayescase: install it on the scheduler and"):
        BayesianCaseModel(3, client=client).fit(X)
    monkeypatch.setattr(client, "run_on_scheduler", run)

    client.run(hide, True, workers=[worker])
    try:
        with pytest.raises(ParameterError, match=r"tcp://.* does not have bayescase: install it on the scheduler"):
            BayesianCaseModel(3, client=client).fit(X)
    finally:
        client.run(hide, False, workers=[worker])
    monkeypatch.setattr(bayescase.reading.partitions, "TOKEN", "gone/token")
    monkeypatch.setattr(places.Path, "write_text", lambda *_: None)
    monkeypatch.setattr(places.Path, "unlink", lambda *_, **__: None)
    with pytest.raises(ParameterError, match=r"does not see the folder .*: give a cache that it shares with this machine"):
        BayesianCaseModel(3, client=client).fit(X, cache=tmp_path)


def test_a_cluster_that_is_gone(client):
    class KilledWorker(Exception):
        pass

    class ClosedClientError(Exception):
        pass

    for gone in (KilledWorker, ClosedClientError):
        with (
            pytest.raises(ParameterError, match=r"lost too many workers.*with a checkpoint the run can go on"),
            places.lost_tasks(client),
        ):
            raise gone("a task")
    with pytest.raises(ParameterError, match="A worker that was added does not have bayescase"), places.lost_tasks(client):
        raise ModuleNotFoundError("No module named 'bayescase'", name="bayescase")


def test_on_the_command_line(client, cluster, tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    cases = table(120)
    for k in range(3):
        parquet.write_table(cases.slice(40 * k, 40), tmp_path / "parts" / f"{k}.parquet")
    monkeypatch.chdir(tmp_path)
    short = ("-k", 3, "--iterations", 10, "--chains", 2, "--candidates", 60)
    shown = call("fit", "parts", *short, "--out-of-core", "-o", "disk.bcm").stdout
    there = call("fit", "parts", *short, "--dask", cluster.scheduler_address, "-o", "cluster.bcm").stdout
    assert there == shown
    found, wanted = (BayesianCaseModel.load(name) for name in ("cluster.bcm", "disk.bcm"))
    check_same(found, wanted)
    assert found.client is None
    said = refused("fit", "parts", *short, "--dask", "nonsense://here")
    assert said.startswith("There is no scheduler of Dask at 'nonsense://here' (")
    assert "cannot go with standard input" in refused("fit", "-", *short, "--dask", cluster.scheduler_address, code=2)


def test_a_client_is_shared_by_clones_and_not_pickled(client):
    model = BayesianCaseModel(3, client=client)
    assert clone(model).client is client
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).client is None


def test_dask_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs Dask: pip install 'bayescase\[dask\]'"):
        BayesianCaseModel(3).fit(dd.from_pandas(frame(20), npartitions=1))


def test_the_page_about_clusters(cluster, tmp_path, monkeypatch):
    text, names = (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8"), {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cache, "BLOCK_CELLS", 1 << 22)
    for code, output in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.S):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code.replace("tcp://scheduler:8786", cluster.scheduler_address), "cluster.md", "exec"), names)
        assert not output or printed.getvalue() == output
    names["client"].close()
    assert (tmp_path / "orders.html").exists()
