"""What is written is whole, and replaces only what the command wrote before."""

import os

import pytest

from .calling import SHORT, call, refused


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
    (tmp_path / "p.csv").write_text("case,cluster,prototype\n")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert refused("predict", model, data, "-o", tmp_path / "p.csv") == f"{tmp_path / 'p.csv'}: No space left on device."
    assert refused("simulate", "-o", tmp_path / "s.csv") == f"{tmp_path / 's.csv'}: No space left on device."
    assert (tmp_path / "p.csv").read_text() == "case,cluster,prototype\n"
    assert os.listdir(tmp_path) == ["p.csv"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(folder, tmp_path):
    tmp_path.chmod(0o500)
    assert "no permission" in refused("fit", folder / "data.csv", "-o", tmp_path / "m")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.jsonl"])
def test_a_command_replaces_what_it_wrote_and_nothing_else(folder, tmp_path, name):
    data, model, path = folder / "data.csv", folder / "model.bcm", tmp_path / name
    call("predict", model, data, "-o", path)
    written = path.read_bytes()
    call("predict", model, data, "-o", path)
    assert path.read_bytes() == written
    sentence = f"{path} is there already, and this command did not write it; give another path, or use --force."
    for content in ("id,age\n1,2\n", "case,cluster\n"):
        path.write_text(content)
        assert refused("predict", model, data, "-o", path) == sentence
        assert path.read_text() == content
    call("predict", model, data, "-o", path, "--force")
    assert path.read_bytes() == written
    path.write_bytes(b"")  # nothing to lose
    call("predict", model, data, "-o", path)
    assert "did not write it" in refused("simulate", "-o", path)


def test_a_model_replaces_a_model_only(folder, tmp_path):
    data, path = folder / "data.csv", tmp_path / "m"
    fitting = ("fit", data, "-k", 2, "--id", "case", *SHORT, "-o", path)
    assert call(*fitting).stderr.endswith(f"The model is saved in {path}.\n")
    assert call(*fitting).stderr.endswith(f"The model is saved in {path}, in place of the file that was there.\n")
    path.write_text("a,b\n1,2\n")
    assert "did not write it; give another path, or use --force" in refused(*fitting)
    call(*fitting, "--force", "--checkpoint", tmp_path / "run")
    assert "did not write it" in refused(*fitting[:-1], tmp_path / "run")


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "a.html"])
def test_pictures_and_pages_are_signed(folder, tmp_path, name):
    pytest.importorskip("matplotlib", reason="pip install 'bayescase[plots]'")
    path, model = tmp_path / name, folder / "model.bcm"
    drawing = ("report", model, "-o", path) if name == "a.html" else ("plot", model, "subspaces", "-o", path)
    call(*drawing)
    call(*drawing)
    path.write_bytes(b"a photograph")
    assert "did not write it" in refused(*drawing)
    call(*drawing, "--force")
