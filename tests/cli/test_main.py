"""The command line: the installed command in a process of its own, and most of the rest within this one."""

import csv
import io
import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_array

import bayescase
from bayescase import BayesianCaseModel
from bayescase.cli.main import in_options, main
from bayescase.reading.files import read_file
from bayescase.sampling import run as sampling

COMMAND = shutil.which("bayescase", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def run(*args, command=None):
    settings = {"capture_output": True, "text": True, "timeout": 300, "stdin": subprocess.DEVNULL}
    return subprocess.run([*(command or [COMMAND]), *args], **settings, env=os.environ | {"COLUMNS": "120"})


def test_the_command_is_installed():
    assert COMMAND is not None


@pytest.mark.parametrize("command", [[COMMAND], [sys.executable, "-m", "bayescase"]], ids=["command", "module"])
def test_help_and_version(command):
    for option in ("--help", "-h"):
        shown = run(option, command=command)
        assert shown.returncode == 0
        assert "Clusters of discrete data" in shown.stdout
        assert "demo" in shown.stdout
    version = run("--version", command=command)
    assert version.returncode == 0
    assert version.stdout.strip() == f"bayescase, version {bayescase.__version__}"


def test_help_of_demo():
    shown = run("demo", "--help")
    assert shown.returncode == 0
    assert "--seed" in shown.stdout
    assert "--jobs" in shown.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--colour"], "No such option"),
        (["fly"], "No such command"),
        (["demo", "--colour"], "No such option"),
        (["demo", "--seed", "many"], "--seed"),
        (["demo", "--seed", "-1"], "--seed"),
        (["demo", "--seed", str(2**32)], "--seed"),
        (["demo", "--jobs", "0"], "--jobs"),
        (["demo", "--jobs", "two"], "--jobs"),
        (["demo", "extra"], "unexpected extra argument"),
    ],
)
def test_bad_use_is_explained_and_ends_with_2(args, message):
    shown = run(*args)
    assert shown.returncode == 2
    assert message in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


@pytest.fixture(scope="module")
def demo():
    return run("demo", "--seed", "3", "--jobs", "2")


def test_demo_shows_the_clusters(demo):
    assert demo.returncode == 0, demo.stderr
    assert "Recipes: 80 cases" in demo.stdout
    assert "5 clusters" in demo.stdout
    assert "Smiley faces: 240 cases, 5 features, 3 clusters" in demo.stdout
    recipes, faces = demo.stdout.split("Smiley faces")
    assert sum(int(n) for n in re.findall(r"^│ +(\d+) │", recipes, flags=re.M)) == 80
    assert sum(int(n) for n in re.findall(r"^│ +(\d+) │", faces, flags=re.M)) == 240
    names = set(bayescase.load_recipes().names)
    assert sum(name in recipes for name in names) >= 5
    assert "colour" in faces
    assert len(re.findall(r"^(?:Good|The chains)", demo.stdout, flags=re.M)) == 2  # a verdict on each fit
    assert demo.stderr == ""  # no warning, and no progress bar where nobody looks


def test_demo_is_the_same_with_one_thread(demo):
    assert run("demo", "--seed", "3", "--jobs", "1").stdout == demo.stdout


def test_importing_is_light():
    """scikit-learn and numba are imported when first needed."""
    code = (
        "import sys, bayescase; print([name for name in ('numba', 'sklearn', 'scipy') if name in sys.modules], dir(bayescase))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("[] ")
    assert "BayesianCaseModel" in shown.stdout
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bayescase.nothing  # noqa: B018


def test_no_kernel_is_compiled_twice_for_a_constant():
    """A literal 0 has a type of its own, and the first fit would wait for a second copy of the function."""
    code = """
        import sys
        from numba import types
        from numba.core.dispatcher import Dispatcher
        from bayescase import BayesianCaseModel
        BayesianCaseModel(2, n_iter=4, n_chains=1, random_state=0).fit([[0, 1], [1, 0], [1, 1], [0, 0]])
        for name in [name for name in sys.modules if name.startswith("bayescase")]:
            for kernel in vars(sys.modules[name]).values():
                if isinstance(kernel, Dispatcher):
                    plain = {tuple(types.unliteral(kind) for kind in signature) for signature in kernel.signatures}
                    print(kernel.__name__, len(kernel.signatures) - len(plain))
    """
    shown = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    twice = dict(line.split() for line in shown.stdout.splitlines())
    assert twice["update_z"] == "0"
    assert [name for name, more in twice.items() if more != "0"] == []


# --- within this process --------------------------------------------------------------------------------------------------

SHORT = ("--iterations", "12", "--chains", "1", "--jobs", "1")


def call(*args, code=0, **settings):
    """Run a command; whatever happens there is no traceback."""
    result = CliRunner().invoke(main, [str(arg) for arg in args], **settings)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result


def refused(*args, code=1, **settings):
    """The one sentence that a command refuses with."""
    result = call(*args, code=code, **settings)
    assert result.stdout == ""
    *before, last = result.stderr.strip().splitlines()
    assert last.startswith("Error: ")
    assert all(line.startswith("Note: ") for line in before) or code == 2
    return last.removeprefix("Error: ")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """data.csv with planted clusters, and model.bcm fitted to it."""
    folder = tmp_path_factory.mktemp("cli")
    call("simulate", "-n", 40, "-p", 5, "-k", 3, "--missing", 0.05, "-o", folder / "data.csv")
    fitted = ("-k", 3, "--id", "case", "--label", "cluster", *SHORT, "--keep-draws")
    shown = call("fit", folder / "data.csv", "-o", folder / "model.bcm", *fitted)
    (folder / "shown").write_text(shown.stdout)
    return folder


@pytest.fixture
def table(tmp_path):
    """table(text) writes a CSV file."""

    def make(text, name="table.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return make


def test_fit_prints_the_clusters_and_compares_them(folder):
    shown = (folder / "shown").read_text()
    assert shown.startswith("40 cases, 5 features, 3 clusters. ")
    assert re.search(r"^Cluster 2: \d+ cases like case \d+", shown, re.M)
    score = re.search(r"^Compared with cluster: NMI (\d\.\d+), ARI (-?\d\.\d+) \(40 cases\)\.$", shown, re.M)
    assert float(score[1]) > 0.1


def test_the_model_is_that_of_the_library(folder, same):
    model = BayesianCaseModel.load(folder / "model.bcm")
    data = list(csv.DictReader(io.StringIO((folder / "data.csv").read_text())))
    x = {name: np.array([row[name] or None for row in data], dtype=object) for name in data[0] if name.startswith("f")}
    other = BayesianCaseModel(3, n_iter=12, n_chains=1, random_state=0, keep_draws=True).fit(x)
    assert model.case_names_ == [row["case"] for row in data]
    same(model, other, but=("case_names_", "encoder_", "n_features_in_", "feature_names_in_"))  # the file has more columns
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
    columns = ("--type", "f1=ordered", "--top", "f2=2", "--drop", "f3", "--missing", "-1", "--max-count", 2, "--burn-in", 3)
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
        call("fit", data, "-k", 2, "--id", "who", *SHORT, "-o", model)
        assert list(BayesianCaseModel.load(model).feature_types_) == list("wxyz")
        assert call("predict", model, data, "--id", "who").stdout.count("\n") == 21
        assert "cluster" in call("explain", model, "--case", data, "--row", 5).stdout
        assert (
            "clusters: "
            in call(
                "select", data, "--drop" if name == "a.parquet" else "--label", "who", "--from", 2, "--to", 2, *SHORT
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


def test_a_terminal_gets_tables(folder):
    wide = {"env": {"FORCE_COLOR": "1", "COLUMNS": "120"}}
    model = folder / "model.bcm"
    for args in (
        ["explain", model],
        ["explain", model, "--row", 0],
        ["explain", model, "--pair", 0, 1],
        ["predict", model, folder / "data.csv"],
        ["info", model],
        ["fit", folder / "data.csv", "-k", 2, "--id", "case", "--drop", "cluster", *SHORT],
        ["bench", "--seconds", 0.01, "--jobs", 1],
    ):
        assert "━━" in call(*args, **wide).stdout
        assert "━" not in call(*args).stdout


def test_names_and_values_are_no_markup(table, tmp_path):
    data = table("id,[bold]a,b\n" + "".join(f"[/]{i},[red]{i % 2},{'[/x]' if i % 2 else '[]'}\n" for i in range(12)))
    env = {"FORCE_COLOR": "1", "COLUMNS": "120", "NO_COLOR": "1"}
    assert "[bold]a" in call("fit", data, "-k", 2, "--id", "id", *SHORT, "-o", tmp_path / "m", env=env).stdout
    for more in ([], ["--row", 0], ["--pair", 0, 1]):
        shown = call("explain", tmp_path / "m", *more, env=env).stdout
        assert "[/]" in shown
        assert "[red]" in shown
    assert "[bold]a" in call("info", tmp_path / "m", env=env).stdout


def test_explain(folder, tmp_path):
    model = folder / "model.bcm"
    fitted = BayesianCaseModel.load(model)
    assert call("explain", model).stdout.strip() == str(fitted.explain())
    assert "like case " in call("explain", model).stdout
    assert call("explain", model, "--row", 3).stdout == call("explain", model, "--row", "case 4").stdout
    assert call("explain", model, "--case", folder / "data.csv", "--row", 3).stdout.strip() == str(fitted.explain_case(3))
    assert json.loads(call("explain", model, "--json").stdout) == fitted.explain().to_json()
    assert json.loads(call("explain", model, "--pair", 0, 2, "--json").stdout)["kind"] == "PairExplanation"
    (tmp_path / "one.csv").write_text("f5,f1,f2,f3,f4\nv1,v2,v3,v4,v1\n")
    assert json.loads(call("explain", model, "--case", tmp_path / "one.csv", "--json").stdout)["kind"] == "CaseExplanation"
    assert "There is no cluster 9" in refused("explain", model, "--pair", 0, 9)
    assert "There is no case 99" in refused("explain", model, "--row", 99)
    assert "There is no case called 'rex'" in refused("explain", model, "--row", "rex")
    assert "has 40 cases; choose one with --row" in refused("explain", model, "--case", folder / "data.csv")
    assert "has no case '40'" in refused("explain", model, "--case", folder / "data.csv", "--row", 40)
    assert "--pair cannot go with" in refused("explain", model, "--pair", 0, 1, "--row", 0, code=2)


def test_names_that_are_not_unique(table, tmp_path):
    data = table("n,a,b\n" + "".join(f"{'frog' if i < 2 else i},{i % 2},{i % 3}\n" for i in range(12)))
    call("fit", data, "-k", 2, "--id", "n", *SHORT, "-o", tmp_path / "m")
    assert "2 cases are called 'frog': give one of the numbers 0, 1" in refused("explain", tmp_path / "m", "--row", "frog")


def test_predict(folder, tmp_path):
    model, data = folder / "model.bcm", folder / "data.csv"
    shares = BayesianCaseModel.load(model).predict_proba(read_file(data).table)
    rows = list(csv.DictReader(io.StringIO(call("predict", model, data, "--id", "case").stdout)))
    assert [row["case"] for row in rows] == [f"case {i + 1}" for i in range(40)]
    assert [int(row["cluster"]) for row in rows] == shares.argmax(axis=1).tolist()
    assert np.allclose([[float(row[f"membership {s}"]) for s in range(3)] for row in rows], shares, atol=1e-6)
    assert re.fullmatch(r"case \d+", rows[0]["prototype"])
    for name in ("p.csv", "p.tsv", "p.jsonl"):
        assert call("predict", model, data, "-o", tmp_path / name).stdout == ""
        again = read_file(tmp_path / name)
        assert again.values("cluster") == shares.argmax(axis=1).tolist()
    found = json.loads(call("predict", model, data, "--json").stdout)["cases"]
    assert np.allclose([case["memberships"] for case in found], shares, atol=1e-6)
    assert found[0]["case"] == 0


def test_predict_takes_marks_and_items_from_the_model(table, tmp_path):
    cases = [{"id": str(i), "in": ["salt", "egg"] if i % 2 else ["milk"], "n": "?" if i < 2 else i % 3} for i in range(12)]
    data = table("\n".join(map(json.dumps, cases)), "data.jsonl")
    call("fit", data, "-k", 2, "--id", "id", "--missing", "?", "--type", "n=integer", *SHORT, "-o", tmp_path / "m")
    new = table('{"in": ["salt", "pepper"], "n": "?"}', "new.jsonl")
    result = call("predict", tmp_path / "m", new)
    assert result.stderr == ""  # "?" is missing, not a value never seen
    assert result.stdout.count("\n") == 2


def test_info(folder):
    shown = call("info", folder / "model.bcm").stdout
    assert "40 cases with names, 5 features, 3 clusters" in shown
    assert "1 chain of 12 sweeps" in shown
    found = json.loads(call("info", folder / "model.bcm", "--json").stdout)
    assert found["parameters"]["n_iter"] == 12
    assert len(found["features"]) == 5
    assert found["diagnostics"]["n_chains"] == 1


def test_select(folder):
    args = ("select", folder / "data.csv", "--id", "case", "--label", "cluster", "--from", 2, "--to", 3, "--folds", 2, *SHORT)
    found = json.loads(call(*args, "--json").stdout)
    assert [count["n_clusters"] for count in found["curve"]] == [2, 3]
    assert found["recommendation"] in call(*args).stdout
    assert "--from 3 is larger" in refused("select", folder / "data.csv", "--from", 3, "--to", 2, code=2)


def test_simulate(tmp_path):
    shown = call("simulate", "-n", 7, "-p", 3, "--values", 2, "-k", 2, "--alpha", 0, "--seed", 5)
    rows = list(csv.reader(io.StringIO(shown.stdout)))
    assert rows[0] == ["case", "cluster", "f1", "f2", "f3"]
    assert len(rows) == 8
    assert {cell for row in rows[1:] for cell in row[2:]} == {"v1", "v2"}
    assert call("simulate", "-n", 7, "-p", 3, "--values", 2, "-k", 2, "--alpha", 0, "--seed", 5).stdout == shown.stdout
    assert shown.stderr == ""


def test_bench():
    found = json.loads(call("bench", "--seconds", 0.01, "--jobs", 1, "--json").stdout)
    assert all(speed["cells_per_second"] > 0 and speed["sweeps"] > 0 for speed in found)
    assert json.loads(call("bench", "speed", "--seconds", 0.01, "--jobs", 1, "--json").stdout)
    assert "quality" in call("bench", "--help").stdout
    assert "No such command 'fast'" in CliRunner().invoke(main, ["bench", "fast"]).stderr


def test_report_and_plots(folder, tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    pytest.importorskip("bayescase.explaining.render.figures")
    from bayescase.cli.main import PLOTS

    for kind in PLOTS:
        call("plot", folder / "model.bcm", kind, "-o", tmp_path / f"{kind}.png")
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert "must end with .png" in refused("plot", folder / "model.bcm", "values", "-o", tmp_path / "a.doc")
    assert "There is no cluster 9" in refused(
        "plot", folder / "model.bcm", "agreement", "--cluster", 9, "-o", tmp_path / "a.png"
    )
    call("report", folder / "model.bcm", "-o", tmp_path / "r.html", "--title", "<b>Cases</b>")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "&lt;b&gt;Cases" in page
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*(f"{kind}.png" for kind in PLOTS), "r.html"])


# --- wrong input ----------------------------------------------------------------------------------------------------------


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
        ("a,b\n1,2\n3,4\n", ["-k", "3"], "-k 3 needs at least 3 cases, but the data has only 2."),
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
        (["--bins", "a=few,many"], "could not convert"),
        (["--bins", "3", "--bins", "a=4"], "must stand alone"),
        (["--delimiter", "::"], "one character"),
        (["--jobs", "0"], "--jobs"),
    ],
    ids=str,
)
def test_bad_options_are_explained_and_end_with_2(table, args, message):
    assert message in refused("fit", table("a,b\n1,2\n3,4\n"), *args, code=2)


def test_files_that_are_not_there_or_not_what_they_should_be(folder, tmp_path):
    data, model = folder / "data.csv", folder / "model.bcm"
    assert refused("fit", tmp_path / "none.csv") == f"{tmp_path / 'none.csv'}: No such file or directory."
    assert refused("explain", tmp_path / "none.bcm") == f"{tmp_path / 'none.bcm'}: No such file or directory."
    assert refused("fit", tmp_path) == f"{tmp_path}: Is a directory."
    assert "model.bcm is a bayescase model or checkpoint, not data" in refused("fit", model)
    assert "is not a whole bayescase file" in refused("explain", data)
    (tmp_path / "half.bcm").write_bytes(model.read_bytes()[:-900])
    for command in (["explain"], ["info"], ["predict"]):
        more = [data] if command == ["predict"] else []
        assert "is not a whole bayescase" in refused(*command, tmp_path / "half.bcm", *more)
    (tmp_path / "other.csv").write_text("f1,f2\nv1,v1\n")
    assert "X has no columns 'f3', 'f4', 'f5'" in refused("predict", model, tmp_path / "other.csv")


def test_outputs_are_whole_or_not_there(folder, tmp_path, monkeypatch):
    data, model = folder / "data.csv", folder / "model.bcm"
    before = data.read_bytes()
    assert "there is no folder" in refused("fit", data, "-o", tmp_path / "none" / "m")
    assert "is a folder" in refused("fit", data, "-o", tmp_path)
    assert "is what is read" in refused("fit", data, "-o", data)
    assert "is what is read" in refused("predict", model, data, "-o", model)
    assert "/dev/null is not an ordinary file" in refused("fit", data, "-o", "/dev/null")
    assert "cannot go to stdout" in refused("fit", data, "-o", "-")
    assert "both write to stdout" in refused("predict", model, data, "-o", "-", "--json", code=2)
    assert call("predict", model, data, "-o", "-").stdout == call("predict", model, data).stdout
    assert data.read_bytes() == before
    (tmp_path / "p.csv").write_text("old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refused("predict", model, data, "-o", tmp_path / "p.csv") == "No space left on device."
    assert refused("simulate", "-o", tmp_path / "s.csv") == "No space left on device."
    assert (tmp_path / "p.csv").read_text() == "old"
    assert os.listdir(tmp_path) == ["p.csv"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(folder, tmp_path):
    tmp_path.chmod(0o500)
    assert "no permission" in refused("fit", folder / "data.csv", "-o", tmp_path / "m")
    tmp_path.chmod(0o700)


def test_warnings_are_notes(table):
    data = table("a,b\n" + "".join(f"{i % 3},one\n" for i in range(9)) + "?,one\n")
    lines = call("fit", data, "-k", 2, *SHORT).stderr.splitlines()
    assert lines[0] == "Note: Column 'a' has the value '?'; if it means missing, say so with --missing '?'."
    assert lines[1] == "Note: Feature 'b' has one value only and cannot tell cases apart."
    assert len(lines) == 3


def test_a_wide_table(table, tmp_path):
    rows = [",".join(str((i + j) % 2) for j in range(3000)) for i in range(4)]
    data = table(",".join(f"f{j}" for j in range(3000)) + "\n" + "\n".join(rows) + "\n")
    assert "4 cases, 3,000 features, 2 clusters" in call("fit", data, "-k", 2, *SHORT).stdout


def test_ctrl_c_keeps_what_there_is(folder, tmp_path, monkeypatch):
    def interrupted(plan, chains, t, make_report=sampling.make_report):
        if t == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return make_report(plan, chains, t)

    monkeypatch.setattr(sampling, "make_report", interrupted)
    result = call("fit", folder / "data.csv", "-k", 2, "--id", "case", *SHORT, "-o", tmp_path / "m", code=130)
    assert re.match(r"Note: Stopped after [56] of 12 sweeps", result.stderr)
    assert f"The model, as far as it came, is saved in {tmp_path / 'm'}." in result.stderr
    assert BayesianCaseModel.load(tmp_path / "m").n_iter_ < 12


def test_ctrl_c_while_reading(folder, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("bayescase.reading.files.read_file", interrupted)
    result = call("fit", folder / "data.csv", "-o", tmp_path / "m", code=130)
    assert result.stderr == "Stopped; nothing was written.\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("n_clusters=5 needs", "-k 5 needs"),
        ("raise n_iter, or max_iter if n_iter is 'auto'", "raise --iterations, or --max-iterations if --iterations is 'auto'"),
        ("with feature_types={'a b': 'drop'}", "with --drop 'a b'"),
        ("with feature_types={'a': 'category'}", "with --type a=category"),
        ("two\nlines", "two lines"),
        ("bins['a'] must be", "--bins['a'] must be"),
        ("Column 'n_iter' has no value", "Column 'n_iter' has no value"),
        ("Column 'c' has no value", "Column 'c' has no value"),
        ("fit with keep_draws=True and burn_in=0", "fit with --keep-draws and --burn-in 0"),
        ("a sparse matrix can be bad", "a sparse matrix can be bad"),
    ],
)
def test_advice_is_in_the_words_of_the_command_line(message, words):
    assert in_options(message) == words


# --- in a process of its own ------------------------------------------------------------------------------------------------


def test_a_pipe_from_end_to_end(tmp_path):
    drawn = run("simulate", "-n", "30", "-p", "4", "-k", "2")
    assert drawn.returncode == 0
    fitting = [
        COMMAND,
        "fit",
        "-",
        "-k",
        "2",
        "--id",
        "case",
        "--label",
        "cluster",
        *SHORT,
        "--json",
        "-o",
        str(tmp_path / "m"),
    ]
    fitted = subprocess.run(fitting, input=drawn.stdout, capture_output=True, text=True, timeout=300)
    assert fitted.returncode == 0, fitted.stderr
    assert len(json.loads(fitted.stdout)["labels"]) == 30
    assert run("explain", str(tmp_path / "m")).stdout.startswith("30 cases")


def test_pandas_and_its_kin_are_not_needed(table):
    data = table("a,b\n" + "x,1\ny,2\n" * 4)
    code = "import sys; sys.modules.update(pandas=None, polars=None, pyarrow=None); from bayescase.cli.main import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", code, "fit", data, "-k", "2", *SHORT], capture_output=True, text=True, timeout=300
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.startswith("8 cases, 2 features, 2 clusters")


def test_a_reader_that_has_seen_enough():
    lines = subprocess.run(
        f"'{COMMAND}' simulate -n 20000 | head -n 1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=300,
        executable="/bin/bash",
    )
    assert lines.stdout.startswith("case,cluster,f1")
    assert "Traceback" not in lines.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell):
    settings = {"capture_output": True, "text": True, "timeout": 300}
    words = {"COMP_WORDS": "bayescase si", "COMP_CWORD": "1" if shell != "fish" else "si"}
    shown = subprocess.run([COMMAND], env=os.environ | words | {"_BAYESCASE_COMPLETE": f"{shell}_complete"}, **settings)
    assert "simulate" in shown.stdout
    assert "select" not in shown.stdout


def test_the_reference_is_fresh():
    """docs/cli.md has what `scripts/docs` would write."""
    root = Path(__file__).parents[2]
    text = (root / "docs/cli.md").read_text("utf-8")
    assert runpy.run_path(str(root / "scripts/docs"))["with_reference"](text) == text
    for name in main.commands:
        assert f"### `bayescase {name}" in text
