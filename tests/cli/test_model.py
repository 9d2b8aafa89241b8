"""Commands on a saved model: `explain`, `fold`, `predict`, `info`, `report` and `plot`."""

import csv
import io
import itertools
import json
import re

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.reading.files import read_file

from .calling import SHORT, call, refused


def test_a_terminal_gets_tables(folder):
    wide = {"env": {"FORCE_COLOR": "1", "COLUMNS": "120"}}
    model = folder / "model.bcm"
    for args in (
        ["explain", model],
        ["explain", model, "--row", 0],
        ["explain", model, "--pair", 0, 1],
        ["fold", model, "-k", 2],
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
    call("explain", tmp_path / "m", "--differences", env=env)
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
    assert call("explain", model, "--row", 3).stdout.strip() == str(fitted.explain_case(3))
    (new,) = itertools.islice(csv.DictReader(io.StringIO((folder / "data.csv").read_text())), 3, 4)
    new = {name: new[name] or None for name in new if name.startswith("f")}
    assert call("explain", model, "--case", folder / "data.csv", "--row", 3).stdout.strip() == str(fitted.explain_case(new))
    assert json.loads(call("explain", model, "--json").stdout) == fitted.explain().to_json()
    assert json.loads(call("explain", model, "--pair", 0, 2, "--json").stdout)["kind"] == "PairExplanation"
    (tmp_path / "one.csv").write_text("f5,f1,f2,f3,f4\nv1,v2,v3,v4,v1\n")
    assert json.loads(call("explain", model, "--case", tmp_path / "one.csv", "--json").stdout)["kind"] == "CaseExplanation"
    assert "There is no cluster 9" in refused("explain", model, "--pair", 0, 9)
    assert "There is no case '99': there are 40, with numbers from 0 to 39 and the names of --id" in refused(
        "explain", model, "--row", 99
    )
    assert "There is no case 'rex'" in refused("explain", model, "--row", "rex")
    assert "has 40 cases; choose one with --row" in refused("explain", model, "--case", folder / "data.csv")
    assert "There is no case '40': there are 40, with numbers from 0 to 39." in refused(
        "explain", model, "--case", folder / "data.csv", "--row", 40
    )
    assert "--pair cannot go with" in refused("explain", model, "--pair", 0, 1, "--row", 0, code=2)
    assert call("explain", model, "--differences").stdout.strip() == str(fitted.explain_differences())
    assert json.loads(call("explain", model, "--differences", "--json").stdout)["kind"] == "DifferencesExplanation"
    assert "--differences must stand alone" in refused("explain", model, "--differences", "--row", 0, code=2)


def test_fold(folder, tmp_path):
    model, fitted = folder / "model.bcm", BayesianCaseModel.load(folder / "model.bcm")
    shown = call("fold", model, "-k", 2, "-o", tmp_path / "two.bcm")
    assert shown.stdout.strip() == f"{fitted.explain_tree()}\n\n{fitted.fold(2).explain()}"
    assert "The folded model is saved in" in shown.stderr
    assert call("explain", tmp_path / "two.bcm").stdout.strip() == str(fitted.fold(2).explain())
    assert "2 clusters folded from 3" in call("info", tmp_path / "two.bcm").stdout
    assert "membership 1" in call("predict", tmp_path / "two.bcm", folder / "data.csv").stdout.splitlines()[0]
    found = json.loads(call("fold", model, "--tolerance", 0.999999, "--json").stdout)
    assert found["tree"]["number"] == len(found["folded"]["clusters"])
    assert found["saved"] is None
    assert len(found["labels"]) == 40
    assert "-k must be a whole number from 1 to 3" in refused("fold", model, "-k", 4)
    assert "--tolerance" in refused("fold", model, "--tolerance", 1, code=2)
    assert "is what is read" in refused("fold", model, "-o", model)


def test_a_name_that_is_almost_right(table, tmp_path):
    data = table("n,a,b\n" + "".join(f"Frog {i},{i % 2},{i % 3}\n" for i in range(12)))
    call("fit", data, "-k", 2, "--id", "n", *SHORT, "-o", tmp_path / "m")
    assert refused("explain", tmp_path / "m", "--row", "frog 7") == (
        "There is no case 'frog 7': there are 12, with numbers from 0 to 11 and the names of --id; did you mean 'Frog 7'?"
    )


def test_names_that_are_not_unique(table, tmp_path):
    data = table("n,a,b\n" + "".join(f"{'frog' if i < 2 else i},{i % 2},{i % 3}\n" for i in range(12)))
    call("fit", data, "-k", 2, "--id", "n", *SHORT, "-o", tmp_path / "m")
    assert "2 cases are called 'frog': give one of the numbers 0, 1" in refused("explain", tmp_path / "m", "--row", "frog")
    assert call("explain", tmp_path / "m", "--row", "frog (case 1)").stdout.startswith("frog (case 1): ")


def test_a_case_is_called_what_the_output_calls_it(table, tmp_path):
    """Without names it is "case 7"; with names that are numbers, the name goes before the number."""
    data = table("n,a,b\n" + "".join(f"{i + 5},{i % 2},{i % 3}\n" for i in range(12)))
    call("fit", data, "-k", 2, "--drop", "n", *SHORT, "-o", tmp_path / "m")
    assert call("explain", tmp_path / "m", "--row", "case 7").stdout == call("explain", tmp_path / "m", "--row", 7).stdout
    assert "There is no case 'case 12'" in refused("explain", tmp_path / "m", "--row", "case 12")
    new = ("explain", tmp_path / "m", "--case", data, "--row")
    assert call(*new, "case 7").stdout == call(*new, 7).stdout
    call("fit", data, "-k", 2, "--id", "n", *SHORT, "-o", tmp_path / "named")
    model = BayesianCaseModel.load(tmp_path / "named")
    assert call("explain", tmp_path / "named", "--row", 7).stdout.strip() == str(model.explain_case(2))
    assert call("explain", tmp_path / "named", "--row", 2).stdout.strip() == str(model.explain_case(2))


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


def test_predict_in_parts_writes_the_same(folder, tmp_path, monkeypatch):
    from bayescase.reading import batches

    monkeypatch.setattr(batches, "CSV_BYTES", 300)
    for name in ("whole.csv", "whole.jsonl"):
        call("predict", folder / "model.bcm", folder / "data.csv", "-o", tmp_path / name)
        parts = tmp_path / name.replace("whole", "parts")
        said = call("predict", folder / "model.bcm", folder / "data.csv", "--out-of-core", "-o", parts).stderr
        assert "40 cases are written to" in said
        assert parts.read_text() == (tmp_path / name).read_text()
    assert "needs -o FILE" in refused("predict", folder / "model.bcm", folder / "data.csv", "--out-of-core", code=2)
    stdin = refused("predict", folder / "model.bcm", "-", "--out-of-core", "-o", tmp_path / "x.csv", code=2)
    assert "cannot go with standard input" in stdin


def test_predict_takes_marks_and_items_from_the_model(table, tmp_path):
    cases = [{"id": str(i), "in": ["salt", "egg"] if i % 2 else ["milk"], "n": "?" if i < 2 else i % 3} for i in range(12)]
    data = table("\n".join(map(json.dumps, cases)), "data.jsonl")
    call("fit", data, "-k", 2, "--id", "id", "--missing", "?", "--type", "n=integer", *SHORT, "-o", tmp_path / "m")
    result = call("predict", tmp_path / "m", table('{"in": ["salt", "egg"], "n": "?"}', "new.jsonl"))
    assert result.stderr == ""  # "?" is missing, not a value never seen
    assert result.stdout.count("\n") == 2
    result = call("predict", tmp_path / "m", table('{"in": ["salt", "pepper"], "n": "?"}', "new.jsonl"))
    assert result.stderr == "Note: 1 value or item was never seen in fit and is left out.\n"


def test_info(folder):
    shown = call("info", folder / "model.bcm").stdout
    assert "40 cases with names, 5 features, 3 clusters" in shown
    assert "1 chain of 12 sweeps" in shown
    found = json.loads(call("info", folder / "model.bcm", "--json").stdout)
    assert found["parameters"]["n_iter"] == 12
    assert len(found["features"]) == 5
    assert found["diagnostics"]["n_chains"] == 1


def test_report_and_plots(folder, tmp_path):
    pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    pytest.importorskip("bayescase.explaining.render.figures")
    from bayescase.cli.model import PLOTS

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


def test_clusters_get_names_that_all_commands_use(table, tmp_path):
    data = table("n,a,b\n" + "".join(f"{i},{'xy'[i % 2]},{'uv'[i % 2]}\n" for i in range(20)))
    model, other = tmp_path / "m", tmp_path / "o"
    call("fit", data, "-k", 2, "--drop", "n", *SHORT, "-o", model)
    assert "Cluster 0, first of them: " in call("name", model, "0=first of them").stdout
    assert "Cluster 0: first of them" in call("explain", model).stdout
    assert "first of them" in call("predict", model, data).stdout
    found = json.loads(call("name", model, "1=second=b", "0=", "-o", other, "--json").stdout)
    assert found["saved"] == str(other)
    assert found["names"][1] == "second=b"
    assert "first" not in found["names"][0]
    assert "Cluster 0: first of them" in call("explain", model).stdout, "what is saved elsewhere changes nothing here"
    for words, message in (
        (["2=x"], "There is no cluster 2 to name: the model has 2, counted from 0."),
        (["x"], "'x' must be the number of a cluster and its name, such as 0=pasta."),
        (["0=x", "-o", data], "is there already, and this command did not write it"),
    ):
        assert message in refused("name", model, *words)
    assert "is not a whole bayescase file" in refused("name", data, "0=x")


def test_letters_that_the_font_of_a_picture_lacks_are_one_note(table, tmp_path):
    data = table("a,b\n" + "".join(f"{'漢字'[i % 2]},{'仮名'[i % 2]}\n" for i in range(20)))
    call("fit", data, "-k", 2, *SHORT, "-o", tmp_path / "m")
    said = call("plot", tmp_path / "m", "prototypes", "-o", tmp_path / "p.png").stderr
    assert said.count("Note: ") == 1
    assert "lacks some letters" in said
