"""`fit` and `select`: options reach the model, wrong ones are explained, nothing is lost."""

import csv
import io
import json
import os
import re
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayescase import BayesianCaseModel
from bayescase.sampling.run import Run

from .calling import SHORT, call, refused


def test_fit_prints_the_clusters_and_compares_them(folder):
    shown = (folder / "shown").read_text()
    assert shown.startswith("40 cases, 5 features, 3 clusters.\n")
    assert re.search(r"^Cluster 2: .+\n  \d+ of 40 cases, like case \d+ \(", shown, re.M)
    score = re.search(r"^Compared with cluster: NMI (\d\.\d+), ARI (-?\d\.\d+) \(40 cases\)\.$", shown, re.M)
    assert float(score[1]) > 0.1


def test_the_model_is_that_of_the_library(folder, same):
    model = BayesianCaseModel.load(folder / "model.bcm")
    data = list(csv.DictReader(io.StringIO((folder / "data.csv").read_text())))
    x = {name: np.array([row[name] or None for row in data], dtype=object) for name in data[0] if name.startswith("f")}
    other = BayesianCaseModel(3, n_iter=12, n_chains=1, random_state=0, keep_draws=True).fit(x)
    assert model.case_names_ == [row["case"] for row in data]
    of_the_file = ("case_names_", "fitted_", "encoder_", "n_features_in_", "feature_names_in_")  # it has more columns
    same(model, other, but=of_the_file)
    assert model.feature_values_ == other.feature_values_


def test_fit_to_json_and_nothing_else(folder):
    shown = call("fit", folder / "data.csv", "-k", 2, "--drop", "case", "--label", "cluster", *SHORT, "--json")
    found = json.loads(shown.stdout)
    assert found["kind"] == "ModelExplanation"
    assert len(found["labels"]) == 40
    assert 0 <= found["scores"]["nmi"] <= 1
    assert found["saved"] is None
    assert "not saved: name a file with -o" in shown.stderr


def test_all_settings_reach_the_model(folder, tmp_path):
    given = (
        "--alpha",
        "learn",
        "--lam",
        0.5,
        "--c",
        20,
        "--q",
        "learn",
        "--sampler",
        "collapsed",
        "--seed",
        7,
        "--missing",
        "v1",
    )
    columns = (
        "--type",
        "f1=ordered",
        "--top",
        "f2=2",
        "--drop",
        "f3",
        "--missing",
        "-1",
        "--max-count",
        2,
        "--burn-in",
        3,
        "--short-runs",
        2,
    )
    call("fit", folder / "data.csv", "-k", "auto", "--id", "case", "--drop", "cluster", *given, *columns, *SHORT,
         "-o", tmp_path / "m", "--checkpoint", tmp_path / "run")  # fmt: skip
    model = BayesianCaseModel.load(tmp_path / "m")
    want = {
        "n_clusters": "auto",
        "alpha": "learn",
        "lam": 0.5,
        "c": 20.0,
        "q": "learn",
        "sampler": "collapsed",
        "random_state": 7,
    }
    want |= {
        "n_iter": 12,
        "burn_in": 3,
        "n_chains": 1,
        "n_init": 2,
        "encoder": {
            "max_count": 2,
            "top_values": {"f2": 2},
            "missing_values": ["v1", "-1", -1],
            "feature_types": {"f1": "ordered", "f3": "drop", "case": "drop", "cluster": "drop"},
        },
    }
    params = model.get_params()
    assert {name: params[name] for name in want} == want
    assert model.feature_types_["f1"] == "ordered"
    assert "f3" not in model.feature_types_
    assert not any("v1" in values for values in model.feature_values_)
    assert (tmp_path / "run").exists()


def test_a_setting_for_all_columns(table, tmp_path):
    data = table("id,a,b\n" + "".join(f"n{i},{i % 7},{i % 5}\n" for i in range(40)))
    call("fit", data, "-k", 2, "--id", "id", "--type", "category", "--top", 3, *SHORT, "-o", tmp_path / "m")
    model = BayesianCaseModel.load(tmp_path / "m")
    assert model.feature_types_ == {"a": "category", "b": "category"}
    assert [len(values) for values in model.feature_values_] == [4, 4]


def test_a_type_for_all_columns_but_those_of_which_more_is_said(table, tmp_path):
    rows = "".join(f"n{i},{i % 7},{i % 5},{i * 37 % 90}\n" for i in range(40))
    data = table("id,a,b,AGE\n" + rows)
    more = ("--bins", "AGE=18,30", "--top", "b=2", "-o", tmp_path / "m")
    call("fit", data, "-k", 2, "--id", "id", "--type", "category", *SHORT, *more)
    model = BayesianCaseModel.load(tmp_path / "m")
    assert model.feature_types_ == {"a": "category", "b": "category", "AGE": "number"}
    assert model.feature_values_[2] == ("below 18", "18 to 29", "30 or more")
    assert len(model.feature_values_[1]) == 3
    call("fit", data, "-k", 2, "--drop", "id", "--type", "category", "--type", "AGE=number", *SHORT, "-o", tmp_path / "m")
    assert BayesianCaseModel.load(tmp_path / "m").feature_types_ == {"a": "category", "b": "category", "AGE": "number"}
    twice = refused("fit", data, "--type", "category", "--type", "integer", code=2)
    assert "only one value for all columns" in twice


def test_codes_that_are_cut_are_noted_with_the_option(table):
    data = table("RACE,b\n" + "".join(f"{i % 24 + 1},{i % 2}\n" for i in range(240)))
    (note,) = [line for line in call("fit", data, "-k", 2, *SHORT).stderr.splitlines() if line.startswith("Note: ")]
    assert note == (
        "Note: Column 'RACE' has whole numbers that are cut into intervals, such as RACE = 5 to 9; if they are codes, say so "
        "with --type RACE=category, or keep the intervals with --type RACE=number."
    )
    assert "Note" not in call("fit", data, "-k", 2, "--type", "RACE=category", *SHORT).stderr


def test_an_identifier_can_be_the_names_of_the_cases(table):
    data = table("chip,b\n" + "".join(f"C{i},{i % 2}\n" for i in range(12)))
    assert "name the cases by it, too, with --id chip" in refused("fit", data, "-k", 2, *SHORT)
    data = table("n,b\n" + "".join(f"{i},{i % 2}\n" for i in range(12)))
    assert "leave it out with --drop n, name the cases by it, too, with --id n, or insist" in refused("fit", data, *SHORT)


def test_sparse_and_arrow_files(tmp_path):
    """Every command that reads cases takes tables that are not NumPy's."""
    pa = pytest.importorskip("pyarrow", reason="pip install 'bayescase[files]'")
    from pyarrow import parquet

    words = np.random.default_rng(0).integers(2, size=(20, 4)) * (np.arange(20) % 2 + 1)[:, None]
    parts = {name: getattr(csr_array(words), name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "a.npz", **parts, vocabulary=np.array(["w", "x", "y", "z"]), who=np.arange(20))
    parquet.write_table(
        pa.table({"who": [f"n{i}" for i in range(20)]} | dict(zip("wxyz", words.T, strict=True))), tmp_path / "a.parquet"
    )
    for name in ("a.npz", "a.parquet"):
        data, model = tmp_path / name, tmp_path / f"{name}.bcm"
        counts = ("--type", "count")
        call("fit", data, "-k", 2, "--id", "who", *counts, *SHORT, "-o", model)
        assert list(BayesianCaseModel.load(model).feature_types_) == list("wxyz")
        assert call("predict", model, data, "--id", "who").stdout.count("\n") == 21
        assert "cluster" in call("explain", model, "--case", data, "--row", 5).stdout
        assert (
            "clusters: "
            in call(
                "select", data, "--drop" if name == "a.parquet" else "--label", "who", *counts, "--from", 2, "--to", 2, *SHORT
            ).stdout
        )


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (["--bins", "2"], ("below 50", "50 or more")),
        (["--bins", "a=18,65"], ("below 18", "18 to 64", "65 or more")),
        (["--bins", "a=uniform:2"], ("below 49.5", "49.5 or more")),
        (["--bins", "a=18,"], ("below 18", "18 or more")),
    ],
    ids=str,
)
def test_bins(table, tmp_path, given, values):
    data = table("a,b\n" + "".join(f"{i * 37 % 100},{'xyz'[i % 3]}\n" for i in range(100)))
    call("fit", data, "-k", 2, *SHORT, *given, "--type", "a=number", "-o", tmp_path / "m")
    assert BayesianCaseModel.load(tmp_path / "m").feature_values_[0] == values


def test_select(folder):
    args = ("select", folder / "data.csv", "--id", "case", "--label", "cluster", "--from", 2, "--to", 3, "--folds", 2, *SHORT)
    found = json.loads(call(*args, "--json").stdout)
    assert [count["n_clusters"] for count in found["curve"]] == [2, 3]
    assert found["recommendation"] in call(*args).stdout
    assert "--from 3 is larger" in refused("select", folder / "data.csv", "--from", 3, "--to", 2, code=2)


@pytest.mark.parametrize(
    ("text", "args", "message"),
    [
        ("", [], "table.csv is empty."),
        ("a,b\n", [], "table.csv has a header, but no cases."),
        ("a,b\n1,2\n1\n", [], "table.csv, line 3: 1 cell, but the header has 2."),
        (
            "a,a\n1,2\n",
            [],
            "columns 1 and 2 are both called 'a'; rename one, or use --no-header if the file has no header row.",
        ),
        ("a,b\n1,2\n3,4\n", ["--delimiter", ";"], "not separated by ';'; try ','."),
        ("a,b\n1,\n3,\n", ["-k", "2"], "Column 'b' has no value at all; leave it out with --drop b."),
        ("a,b\n1,2\n3,4\n", ["-k", "3"], "-k 3 needs at least 3 cases, but the data has 2."),
        ("a,b\n1,2\n3,4\n", ["-k", "0"], "-k must be 'auto' or a whole number of at least 1, not 0."),
        ("a,b\n1,2\n3,4\n", ["--c", "-1"], "--c must be 'learn' or a number of at least 0, not -1.0."),
        ("a,b\n1,2\n3,4\n", ["-k", "2", "--q", "2"], "--q must lie strictly between 0 and 1, not 2.0."),
        (
            "colour,b\n1,2\n",
            ["--label", "color"],
            "--label names 'color', but the data has no such column; did you mean 'colour'?",
        ),
        ("colour,b\n1,2\n", ["--id", "name"], "--id names 'name', but the data has no such column; there are 'colour', 'b'."),
        ("a,b\n1,\n2,\n", ["-k", "2", "--label", "b"], "Column 'b' of --label has no value at all."),
        ("colour,b\n1,2\n", ["--type", "c=number"], "--type names 'c'"),
        ("colour,b\n1,2\n", ["--top", "c=3"], "--top names 'c'"),
        ("colour,b\n1,2\n", ["--bins", "c=3"], "--bins names 'c'"),
        ("colour,b\n1,2\n", ["--drop", "c"], "--drop names 'c'"),
        ("a,b\n1,2\n3,4\n", ["-k", "2", "--drop", "a", "--drop", "b"], "Every column is left out; keep at least one."),
        ("a,b\n1,2\n3,4\n", ["-k", "2", "--bins", "0"], "--bins must be a whole number of at least 2"),
        ("a,b\n1,2\n3,4\n", ["--array", "X"], "table.csv is no NPZ file"),
        (
            "a b,c\nx,1\ny,1\nz,1\n",
            ["-k", "2"],
            "leave it out with --drop 'a b', name the cases by it, too, with --id 'a b', keep its most frequent values",
        ),
    ],
    ids=str,
)
def test_bad_data_is_explained_and_ends_with_1(table, text, args, message):
    assert message in refused("fit", table(text), *args, *SHORT)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-k", "few"], "'few' is neither a whole number nor 'auto'"),
        (["--iterations", "1.5"], "neither a whole number nor 'auto'"),
        (["--alpha", "much"], "neither a number nor 'learn'"),
        (["--chains", "0"], "--chains"),
        (["--sampler", "magic"], "--sampler"),
        (["--type", "a=word"], "'word' is not one of"),
        (["--top", "a=few"], "'few' is not a whole number"),
        (["--bins", "a=few,many"], "'few,many' is neither a number of intervals, 5 or uniform:5, nor edges, 18,65."),
        (["--bins", "auto"], "'auto' is neither a number of intervals"),
        (["--bins", "3", "--bins", "a=4"], "must stand alone"),
        (["--delimiter", "::"], "one character"),
        (["--jobs", "0"], "--jobs"),
    ],
    ids=str,
)
def test_bad_options_are_explained_and_end_with_2(table, args, message):
    assert message in refused("fit", table("a,b\n1,2\n3,4\n"), *args, code=2)


def test_a_wide_table(table, tmp_path):
    rows = [",".join(str((i + j) % 2) for j in range(3000)) for i in range(4)]
    data = table(",".join(f"f{j}" for j in range(3000)) + "\n" + "\n".join(rows) + "\n")
    assert "4 cases, 3,000 features, 2 clusters" in call("fit", data, "-k", 2, *SHORT).stdout


def test_ctrl_c_keeps_what_there_is(folder, tmp_path, monkeypatch):
    def interrupted(run, report=Run.report):
        if run.stage.sweep == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return report(run)

    monkeypatch.setattr(Run, "report", interrupted)
    result = call("fit", folder / "data.csv", "-k", 2, "--id", "case", *SHORT, "-o", tmp_path / "m", code=130)
    assert re.match(r"Note: Stopped after [56] of 12 sweeps", result.stderr)
    assert f"The model, as far as it came, is saved in {tmp_path / 'm'}." in result.stderr
    assert BayesianCaseModel.load(tmp_path / "m").n_iter_ < 12


def fill(monkeypatch, folders):
    """Disks that are full: nothing can be written to these folders."""

    def fsync(handle, sync=os.fsync):
        path = os.path.realpath(f"/proc/self/fd/{handle}")
        if any(path.startswith(f"{folder}/") for folder in folders):
            raise OSError(28, "No space left on device")
        return sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to tell files apart")
def test_a_full_disk_does_not_lose_the_run(folder, tmp_path, monkeypatch):
    full, home = tmp_path / "full", tmp_path / "home"
    full.mkdir()
    home.mkdir()
    monkeypatch.chdir(full)
    monkeypatch.setenv("HOME", str(home))
    fill(monkeypatch, [full])
    args = ("fit", folder / "data.csv", "-k", 2, "--id", "case", *SHORT, "-o", full / "m.bcm")
    shown = call(*args, code=1)
    assert shown.stdout.startswith("40 cases, 6 features, 2 clusters")  # printed all the same
    *_, last = shown.stderr.splitlines()
    (saved,) = home.iterdir()
    problem = f"{full / 'm.bcm'} could not be written: No space left on device"
    assert last == f"Error: {problem}. The model is saved in {saved} instead."
    assert BayesianCaseModel.load(saved).n_clusters_ == 2
    assert list(full.iterdir()) == []
    assert json.loads(call(*args, "--json", code=1).stdout)["saved"] in map(str, home.iterdir())
    fill(monkeypatch, [full, home, tempfile.gettempdir()])
    assert f"{problem}, and neither could a file elsewhere, so the model is lost." in call(*args, code=1).stderr


# --- running longer -----------------------------------------------------------------------------------------------------


def test_more_sweeps_of_a_saved_model_are_one_long_run(folder, tmp_path, same):
    run = ("--checkpoint", tmp_path / "run")
    fit = ("fit", folder / "data.csv", "-k", "3", "--drop", "case", "--chains", "2")
    call(*fit, "--iterations", "20", *run, "-o", tmp_path / "short")
    shown = call("fit", tmp_path / "short", "--more", "20", *run, "-o", tmp_path / "longer").stdout
    whole = call(*fit, "--iterations", "40", "-o", tmp_path / "long").stdout
    assert shown == whole
    same(*(BayesianCaseModel.load(tmp_path / name) for name in ("longer", "long")))
    call("fit", tmp_path / "longer", "--more", "5", *run, "-o", tmp_path / "longer")  # it may take its own place
    assert BayesianCaseModel.load(tmp_path / "longer").n_iter_ == 45


def test_more_needs_the_run_and_takes_nothing_else(folder, tmp_path):
    model = folder / "model.bcm"
    assert "--more needs the --checkpoint that the run wrote" in refused("fit", model, "--more", "5", code=2)
    assert "leave out --alpha" in refused("fit", model, "--more", "5", "--alpha", "1", code=2)
    assert "leave out -k" in refused("fit", model, "--more", "5", "-k", "3", code=2)
    assert "is not a whole bayescase file" in refused("fit", folder / "data.csv", "--more", "5", "--checkpoint", tmp_path / "x")
    assert "--checkpoint" in refused("fit", model, "--more", "5", "--checkpoint", tmp_path / "x")


def test_auto_that_reaches_its_cap(folder):
    result = call("fit", folder / "data.csv", "-k", "auto", "--max-clusters", 2, "--id", "case", "--drop", "cluster", *SHORT)
    assert "2 clusters, as many as were allowed" in result.stdout
    assert "All 2 clusters that were allowed are in use" in result.stdout
    assert "Allow more with --max-clusters 4, tell them as fewer by `bayescase fold`" in result.stdout
    assert "Note: All 2 clusters that -k auto may find are in use" in result.stderr


# --- larger than memory --------------------------------------------------------------------------------------------------


def test_out_of_core_is_the_same_model(folder, tmp_path):
    options = ("-k", 3, "--drop", "case", "--drop", "cluster", *SHORT)
    shown = call("fit", folder / "data.csv", *options, "-o", tmp_path / "small.bcm").stdout
    large = call("fit", folder / "data.csv", *options, "--out-of-core", "-o", tmp_path / "large.bcm")
    assert large.stdout == shown
    small, model = (BayesianCaseModel.load(tmp_path / name) for name in ("small.bcm", "large.bcm"))
    assert np.array_equal(model.log_joint_, small.log_joint_)
    assert np.array_equal(np.load(tmp_path / "large.labels.npy"), small.labels_)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["large.bcm", "large.labels.npy", "large.memberships.npy", "small.bcm"]


def test_out_of_core_reads_a_folder_and_keeps_its_cache(folder, tmp_path):
    (tmp_path / "parts").mkdir()
    lines = (folder / "data.csv").read_text().splitlines(keepends=True)
    for k, part in enumerate((lines[1:20], lines[20:])):
        (tmp_path / "parts" / f"{k}.csv").write_text(lines[0] + "".join(part))
    options = ("-k", 2, "--drop", "case", "--drop", "cluster", *SHORT, "--out-of-core", "--cache", tmp_path / "cache")
    found = json.loads(call("fit", tmp_path / "parts", *options, "--candidates", 10, "--json").stdout)
    assert found["n_cases"] == 40
    assert found["labels"] is None
    assert (tmp_path / "cache" / "codes").exists()


def test_out_of_core_says_what_it_cannot_do(folder):
    data = folder / "data.csv"
    assert "--label needs the table in memory" in refused("fit", data, "--label", "cluster", "--out-of-core", code=2)
    assert "--id needs the table in memory" in refused("fit", data, "--id", "case", "--out-of-core", code=2)
    assert "cannot go with standard input" in refused("fit", "-", "--out-of-core", code=2)
    assert "--cache needs --out-of-core or --dask" in refused("fit", data, "--cache", "here", code=2)
    assert refused("fit", folder / "nothing.csv", "--out-of-core").startswith("There is no file or folder")
    collapsed = refused("fit", data, "--drop", "case", "--sampler", "collapsed", "--out-of-core")
    assert collapsed == "--sampler collapsed needs the table in memory; here it is read in parts."
