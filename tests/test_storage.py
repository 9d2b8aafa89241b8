"""Files: what was saved comes back, and nothing else is taken for it."""

import io
import json
import os
import pickle
import re
import stat
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayescase import BayesianCaseModel, CaseEncoder, FileFormatError, storage

from .helpers import check_refused, fit_model, npy, rewritten, split_settings


@pytest.fixture(scope="module")
def small(mixed, tmp_path_factory):
    """A fitted model with everything that a file can hold, and the bytes of its file."""
    table = {name: column[:12] for name, column in mixed[0].items()}
    model = BayesianCaseModel(2, n_iter=6, n_chains=2, keep_draws=True, random_state=0, q=[0.5, 0.6, 0.7, 0.8, 0.9])
    model.fit(table, pins={"cases": {0: 1}, "subspaces": {1: {"legs": True}}}, init=[1, 0] * 6)
    path = tmp_path_factory.mktemp("small") / "model"
    model.save(path)
    return model, path.read_bytes(), table


# --- round trip -------------------------------------------------------------------------------------------------------


def test_a_model_comes_back_whole(fitted, mixed, same, tmp_path):
    path = tmp_path / "model.bayescase"
    fitted.save(path)
    for again in (BayesianCaseModel.load(path), BayesianCaseModel.load(str(path))):
        same(fitted, again)
        assert again.get_params() == fitted.get_params()
        for method in ("transform", "predict", "score_samples"):
            assert np.array_equal(getattr(fitted, method)(mixed[0]), getattr(again, method)(mixed[0]))
        assert np.array_equal(fitted.sample(30)[0], again.sample(30)[0])
        same(fitted, again.fit(mixed[0]))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask()
    fitted.save(path)
    assert os.listdir(tmp_path) == ["model.bayescase"]


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


PARAMS = [
    {"q": (0.5, 0.6, 0.7)},
    {"q": np.array([0.5, 0.6, 0.7])},
    {"q": pd.Series([0.5, 0.6, 0.7])},
    {"init": ["cells"]},
    {"init": np.array(["cells"])},
    {"init": [np.int64(i % 2) for i in range(10)]},
    {"init": tuple(i % 2 for i in range(10))},
    {"alpha": np.float32(0.5), "n_iter": np.int64(7), "keep_draws": np.True_},
    {"subspace_prior": [[0.5, np.nan, 0.9], [0.1, 0.1, None]]},
    {"subspace_prior": pd.DataFrame(np.full((2, 3), np.nan))},
    {"similarity": "match"},
    {"similarity": ("within", 1)},
    {"similarity": np.tri(3)},
    {"similarity": np.tri(3).tolist()},
    {"similarity": {"x0": ("within", 1), 2: np.tri(3)}},
    {"encoder": {"feature_types": {"x0": "category", 1: "ordered"}, "missing_values": [9, None]}},
    {"encoder": CaseEncoder(feature_types={2: "category"}, missing_values=2)},
    {"candidates": np.tile([[0, 1, 2]], (4, 1)), "prototype_prior": [0, 1, 1, 1]},
    {"callback": lambda report: None, "checkpoint": "run"},
]


@pytest.mark.parametrize("params", PARAMS, ids=lambda value: re.sub(r" at 0x\w+", "", str(value)))
def test_a_model_from_a_file_is_fitted_like_the_first(params, same, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).integers(3, size=(10, 3))
    model = fit_model(x, 2, **{"n_iter": 6, "n_chains": 1, "random_state": 0} | params)
    model.save("model")
    again = BayesianCaseModel.load("model")
    same(model, again)
    assert np.array_equal(model.transform(x), again.transform(x))
    again.save("again")
    same(model, clone(BayesianCaseModel.load("again")).fit(x, **split_settings(params)[1]))


def test_the_state_of_a_generator_is_not_kept(tmp_path):
    """The fit has moved it on."""
    model = BayesianCaseModel(2, n_iter=6, n_chains=1, random_state=np.random.RandomState(0)).fit(np.eye(4))
    model.save(tmp_path / "model")
    assert BayesianCaseModel.load(tmp_path / "model").random_state is None


@pytest.mark.parametrize("wrap", [lambda way: way, lambda way: {"x1": way}], ids=["for all", "for one"])
def test_a_function_is_not_kept_and_asked_for_before_another_fit(wrap, same, tmp_path):
    x = np.random.default_rng(0).integers(3, size=(10, 3))
    similarity = wrap((lambda u, v: abs(u - v), 1))
    model = BayesianCaseModel(2, similarity=similarity, n_iter=6, n_chains=1, random_state=0).fit(x)
    model.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(model, again)
    assert np.array_equal(model.transform(x), again.transform(x))
    again.save(tmp_path / "again")
    for loaded in (again, BayesianCaseModel.load(tmp_path / "again")):
        assert "a function that the file could not hold" in repr(loaded.similarity)
        check_refused(x, r"similarity had a function, which a file cannot hold: set it again", **clone(loaded).get_params())
        same(model, loaded.set_params(similarity=similarity).fit(x))


def test_names_of_cases_are_kept(small, tmp_path):
    names = [f"[{i}]é" for i in range(12)]
    model = BayesianCaseModel(2, n_iter=6, n_chains=1, random_state=0).fit(small[2])
    assert model.case_names_ is None
    assert model.explain().clusters[0].prototype.name.startswith("case ")
    model.name_cases(names).save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    assert again.case_names_ == names
    assert again.explain() == model.explain()
    assert again.explain().clusters[0].prototype.name == names[again.prototypes_[0]]
    assert again.fit(small[2]).case_names_ is None  # a new fit may have other cases
    assert again.name_cases(names).name_cases(None).case_names_ is None
    with pytest.raises(ValueError, match="case_names has 2 entries, but the catalogue has 12 rows"):
        again.name_cases(["a", "b"])


def test_the_file_holds_no_pickle(small):
    with zipfile.ZipFile(io.BytesIO(small[1])) as archive:
        assert archive.testzip() is None
        header = json.loads(archive.read("bayescase.json"))
        assert (header["format"], header["version"], header["kind"]) == ("bayescase", 2, "model")
        for name in archive.namelist():
            if name != "bayescase.json":
                np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)


# --- damage -----------------------------------------------------------------------------------------------------------


def load(raw, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(raw)
    return BayesianCaseModel.load(path)


def refused(raw, tmp_path, message="is not a"):
    with pytest.raises(FileFormatError, match=message) as raised:
        load(raw, tmp_path)
    assert "file" in str(raised.value)


def test_truncated_files(small, tmp_path):
    raw = small[1]
    for n in {*range(0, len(raw), 97), 1, 3, 4, 21, 22, 23, len(raw) - 1, len(raw) - 22}:
        refused(raw[:n], tmp_path, "is not a whole bayescase file")


def test_flipped_bits(small, same, tmp_path):
    """A file with a wrong bit is refused, or, where the bit says nothing (a date, say), read as it was."""
    model, raw, table = small
    chance = np.random.default_rng(0)
    expected, n_refused = model.transform(table), 0
    for at in chance.choice(len(raw), size=400, replace=False):
        bad = bytearray(raw)
        bad[at] ^= 1 << chance.integers(8)
        try:
            again = load(bad, tmp_path)
        except FileFormatError:
            n_refused += 1
        else:
            same(model, again)
            assert np.array_equal(again.transform(table), expected)
    assert n_refused > 200


@pytest.mark.parametrize("n", [0, 1, 22, 1000, 100_000])
def test_random_bytes(n, tmp_path):
    refused(np.random.default_rng(n).bytes(n), tmp_path, "is not a whole bayescase file")


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        BayesianCaseModel.load(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        BayesianCaseModel.load(tmp_path)


def test_rewriting_alone_does_no_harm(small, same, tmp_path):
    same(small[0], load(rewritten(small[1]), tmp_path))


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return out.getvalue()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (zipped(), "not a whole bayescase file"),
        (zipped(hello__txt="hello"), "not a whole bayescase file"),
        (zipped(bayescase__json="{"), "not a whole bayescase file"),
        (zipped(bayescase__json=b"\xff\xfe"), "not a whole bayescase file"),
        (zipped(bayescase__json="[" * 100_000), "not a whole bayescase file"),
        (zipped(bayescase__json="[]"), "is not a bayescase file"),
        (zipped(bayescase__json="null"), "is not a bayescase file"),
        (zipped(bayescase__json='{"format": "other"}'), "is not a bayescase file"),
        (zipped(bayescase__json='{"format": "bayescase", "version": 2, "kind": "model"}'), "not a whole bayescase model"),
        (zipped(bayescase__json='{"format": "bayescase", "version": 2, "kind": "song"}'), "holds a song, not a model"),
        (zipped(bayescase__json='{"format": "bayescase", "version": 2}'), "holds a None, not a model"),
    ],
)
def test_foreign_zip_files(raw, message, tmp_path):
    refused(raw, tmp_path, message)


def test_a_file_of_an_earlier_development_version(small, tmp_path):
    refused(
        rewritten(small[1], {"version": 1}),
        tmp_path,
        "was written by an earlier development version of bayescase.*make it anew",
    )


@pytest.mark.parametrize("version", [3, 999])
def test_a_file_of_the_future(small, version, tmp_path):
    refused(rewritten(small[1], {"version": version}), tmp_path, rf"newer bayescase \(file version {version}, this one reads")


@pytest.mark.parametrize("version", [None, "2", 1.5])
def test_a_file_without_a_version(small, version, tmp_path):
    refused(rewritten(small[1], {"version": version}), tmp_path, "file")


class Bomb:
    """Unpickling this makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_a_pickle_inside_is_not_opened(small, tmp_path):
    sign = tmp_path / "the bomb went off"
    bomb = npy(np.array([Bomb(sign)], dtype=object), allow_pickle=True)
    for name in ("data/x", "posterior/p", "trace/log_joint", "draws/z"):
        refused(rewritten(small[1], arrays={name: bomb}), tmp_path, "not a whole bayescase")
    refused(rewritten(small[1], header=pickle.dumps(Bomb(sign))), tmp_path)
    refused(pickle.dumps(Bomb(sign)), tmp_path)
    assert not sign.exists()
    pickle.loads(pickle.dumps(Bomb(sign)))
    assert sign.exists()  # it would have


def of_plan(**changes):
    return lambda header: header["plan"].update(changes)


HEADERS = {
    "settings list": {"settings": []},
    "settings none": {"settings": None},
    "settings unknown": {"settings": {"colour": 1}},
    "settings of no kind": {"settings": {"q": {"colour": 1}}},
    "settings of two kinds": {"settings": {"q": {"list": [], "tuple": []}}},
    "settings with a wrong encoder": {"settings": {"encoder": 5}},
    "settings with an unknown encoder": {"settings": {"encoder": {"encoder": {"colour": 1}}}},
    "features none": {"features": None},
    "features short": {"features": []},
    "feature without values": {"features": [{"name": "a", "kind": "category", "values": [], "edges": []}] * 5},
    "feature of no kind": {"features": [{"name": "a", "kind": "?", "values": ["a"], "edges": []}] * 5},
    "columns number": {"columns": 3},
    "columns short": {"columns": ["a"]},
    "plan none": {"plan": None},
    "plan unknown": of_plan(colour=1),
    "seed word": of_plan(seed="x"),
    "seed negative": of_plan(seed=-1),
    "thin zero": of_plan(thin=0),
    "thin real": of_plan(thin=1.5),
    "no rounds": of_plan(rounds=[]),
    "rounds backwards": of_plan(rounds=[[5, 3]]),
    "rounds real": of_plan(rounds=[[0, 6.5]]),
    "sampler": of_plan(sampler="gibbs"),
    "chains": of_plan(n_chains=3),
    "chains word": of_plan(n_chains="two"),
    "single label": of_plan(single_label=["a", "b"]),
    "starts": of_plan(start=["cells", "?"]),
    "starts short": of_plan(start=["cells"]),
    "keep_draws": of_plan(keep_draws="yes"),
    "given missing": {"given": {}},
    "given negative": {"given": {"alpha": -1.0, "lam": 1.0, "c": 1.0, "gamma": 0.0}},
    "learned unknown": {"learn": {"names": ["colour"], "beta": False}},
    "learned word": {"learn": {"names": [], "beta": "yes"}},
    "kept missing": {"kept": None},
    "kept words": {"kept": ["a", "b"]},
    "kept one": {"kept": [0]},
    "kept none": {"kept": [3, 3]},
    "kept too many": {"kept": [3, 7]},
    "kept negative": {"kept": [-1, 6]},
    "kept other than the draws": {"kept": [0, 6]},
    "interrupted word": {"interrupted": "no"},
    "hyper missing": {"hyper": {}},
    "hyper words": {"hyper": {"alpha": "a", "lam": "b", "c": "c", "gamma": "d"}},
    "hyper negative": {"hyper": {"alpha": -1.0, "lam": 1.0, "c": 1.0, "gamma": 0.0}},
    "own_cases": {"own_cases": False},
    "case names short": {"case_names": ["a"]},
    "case names numbers": {"case_names": list(range(12))},
    "case names word": {"case_names": "twelve cases"},
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_headers_that_do_not_fit(small, header, tmp_path):
    refused(rewritten(small[1], header), tmp_path, "not a whole bayescase model")


ARRAYS = [
    *("data/x", "data/log_weight", "data/z_held", "data/omega_held", "book/base", "book/k_ptr", "book/k_idx", "book/k_val"),
    *("given/beta", "given/q", "given/q_free", "given/n_i", "given/start", "hyper/beta", "hyper/q"),
    *(
        "posterior/memberships",
        "posterior/values",
        "posterior/omega_prob",
        "posterior/copied",
        "posterior/p",
        "posterior/tables",
    ),
    *("posterior/prior", "posterior/relabel", "posterior/overlap", "posterior/chain_labels"),
    *("trace/log_joint", "trace/purity", "trace/cells_moved"),
    *("draws/z", "draws/p", "draws/omega", "draws/log_joint"),
]


def test_every_array_of_a_file_is_tested(small):
    with zipfile.ZipFile(io.BytesIO(small[1])) as archive:
        found = {name.removesuffix(".npy") for name in archive.namelist()} - {"bayescase.json"}
    assert {name for name in found if not name.startswith("trace/")} == {
        name for name in ARRAYS if not name.startswith("trace/")
    }


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit(small, name, tmp_path):
    """Compiled code trusts shapes and codes: with these it would read memory that is not its own."""
    for change in (
        lambda a: a[..., :-1],
        lambda a: a[: 1 if name.endswith("_held") else 0],  # an empty one says that nothing is held
        lambda a: a.reshape(-1, *a.shape),
        lambda a: np.full(a.shape, "word"),
        lambda a: a.astype(complex),
        lambda a: np.array(1.0),
    ):
        refused(rewritten(small[1], arrays={name: change}), tmp_path, "not a whole bayescase model")
    if not name.startswith("draws"):
        refused(rewritten(small[1], drop=[name]), tmp_path, "not a whole bayescase model")


@pytest.mark.parametrize(
    "name",
    [
        *("data/x", "data/z_held", "data/omega_held", "book/k_idx", "book/k_ptr", "given/n_i", "given/start"),
        *("posterior/p", "posterior/relabel", "posterior/chain_labels", "draws/p", "draws/z"),
    ],
)
@pytest.mark.parametrize("wrong", [100, -100])
def test_codes_out_of_range(small, name, wrong, tmp_path):
    def change(array):
        array = array.astype(np.int64)
        array.flat[0] = wrong
        return array

    refused(rewritten(small[1], arrays={name: change}), tmp_path, "not a whole bayescase model")


def test_an_array_that_claims_to_be_huge(small, tmp_path):
    head = npy(np.zeros(3))
    huge = head.replace(b"(3,), }" + b" " * 9, b"(3" + b"0" * 9 + b",), }")
    assert huge != head
    refused(rewritten(small[1], arrays={"trace/log_joint": huge}), tmp_path, "not a whole bayescase")


# --- writing ----------------------------------------------------------------------------------------------------------


class Power(BaseException):
    """The power fails."""


@pytest.mark.parametrize("where", ["json", "array", "last array", "fsync", "replace"])
def test_a_failed_write_leaves_the_old_file(where, tmp_path, monkeypatch):
    path = tmp_path / "file"
    storage.write(path, "model", {"n": 1}, {"a": np.arange(5), "b": np.arange(7)})
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise Power

    calls = []
    real = np.lib.format.write_array

    def fail_at_the_second(*args, **kwargs):
        calls.append(args)
        if len(calls) == 2:
            raise Power
        real(*args, **kwargs)

    target = {
        "json": (storage.json, "dumps", fail),
        "array": (np.lib.format, "write_array", fail),
        "last array": (np.lib.format, "write_array", fail_at_the_second),
        "fsync": (os, "fsync", fail),
        "replace": (os, "replace", fail),
    }[where]
    monkeypatch.setattr(*target)
    with pytest.raises(Power):
        storage.write(path, "model", {"n": 2}, {"a": np.arange(50), "b": np.arange(70)})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file"]
    header, arrays = storage.read(path, "model")
    assert header["n"] == 1
    assert arrays["b"].tolist() == list(range(7))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_ordinary_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not an ordinary file"):
        storage.write(tmp_path / "pipe", "model", {}, {})
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_objects_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="pickle"):
        storage.write(tmp_path / "file", "model", {}, {"a": np.array([object()])})
    assert os.listdir(tmp_path) == []


def test_arrays_of_every_shape_come_back(tmp_path):
    arrays = {
        "scalar": np.array(3),
        "empty": np.zeros((0, 4), dtype=np.int16),
        "bool": np.array([[True, False]]),
        "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "strided": np.arange(20)[::3],
        "deep/name": np.zeros((1, 2, 3), dtype=np.uint16),
    }
    storage.write(tmp_path / "file", "checkpoint", {"word": "é"}, arrays)
    header, again = storage.read(tmp_path / "file", "checkpoint")
    assert header["word"] == "é"
    assert again.keys() == arrays.keys()
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype
        assert np.array_equal(again[name], array)
        again[name][...] = 0  # a checkpoint is written to
