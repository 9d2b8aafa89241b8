"""The kernels for GPUs, compiled for this computer: the same integers as the CPU's, row by row. No GPU is needed.

With a GPU, `python -m tests.kernels.gpu_ladder` runs the same comparisons, and the statistical tests, on it.
"""

import builtins
import gc
import pickle
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.errors import ParameterError
from bayescase.kernels import Driver, opening, stream, sweeps
from bayescase.kernels.cluster import gpu, tasks
from bayescase.kernels.cpu.engine import CpuEngine
from bayescase.kernels.cuda import engine as engine_room
from bayescase.kernels.cuda import machine
from bayescase.kernels.cuda.engine import CudaEngine
from bayescase.sampling import run as run_room
from bayescase.sampling.starts import init
from bayescase.state import Cells, count_observed, make_data, make_hyper, new_state

from .host_machine import COMPILER, HostMachine

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler, g++ or clang++"),
    pytest.mark.filterwarnings("ignore:Rows? .* no value at all"),
]


def table(N, P, V, S, *, gaps=0.0, seed=1):
    """Cases around S prototypes."""
    rng = np.random.default_rng(seed)
    truth, prototypes, offset = rng.integers(S, size=N), rng.integers(V, size=(S, P)), np.arange(P + 1) * V
    x = np.where(rng.random((N, P)) < 0.4, rng.integers(V, size=(N, P)), prototypes[truth]) + offset[:-1]
    x[rng.random(x.shape) < gaps] = -1
    return x.astype(np.int16), offset


def bags(N, items, longest, seed=2):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(longest + 1, size=N)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Cells(np.minimum(rng.geometric(0.2, size=first[-1]), items) - 1, first)


ITEMS = [["a", "b"], ["b", "c", "c"], ["a"], ["d", "a", "e"], [], ["c"]]
BAGS = {"items": ITEMS * 6, "kind": ["u", "v", "u", "v", None, "w"] * 6}


def mixed_data(N=150, P=3, items=30, gaps=0.1):
    x, offset = table(N, P, 4, 3, gaps=gaps)
    found = bags(N, items, 40)
    return make_data(x, [*offset, offset[-1] + items], bags=Cells(found.codes + offset[-1], found.first))


def trajectory(engine, data, hyper, z, n_sweeps=4, by_cell=True):
    """All that an engine has drawn and counted, sweep by sweep."""
    S, draws = len(hyper.beta), []
    driver = Driver(data, count_observed(data.x, data.bags), hyper, engine.threads)
    rows, state = engine.rows(0), new_state(data, S)
    rows.put_labels(z)
    state.n_sv[:], state.n_rows[:] = rows.recount(len(state.n_sv))
    for t in range(n_sweeps):
        then = stream(3, t + 1) if t % 3 else None
        joint, moved = sweeps["rows"](driver, rows, engine.candidates, hyper, state, stream(3, t), by_cell, then, t != 2)
        overlap = rows.overlap()
        rows.add_memberships(hyper, np.roll(np.arange(S), t), 1 / (t + 1))
        labels = np.where(data.cells.codes < 0, 0, rows.labels())
        counts = rows.recount(len(state.n_sv))
        assert np.array_equal(counts.n_sv, state.n_sv)
        assert np.array_equal(counts.n_rows, state.n_rows)
        exact = [labels, state.p, state.omega, joint, *moved, rows.memberships, state.n_sv, overlap]
        draws.append([np.array(value) for value in exact])
    engine.close()
    return draws


def assert_same(data, hyper, start="cases", host=None, **how):
    z = init(data, hyper, start, np.random.default_rng(0))
    S = len(hyper.beta)
    ours = trajectory(CpuEngine(data, S, 1, 1), data, hyper, z, **how)
    theirs = trajectory(CudaEngine(data, S, 1, 1, host or HostMachine()), data, hyper, z, **how)
    for exact, found in zip(ours, theirs, strict=True):
        for one, two in zip(exact, found, strict=True):
            assert np.array_equal(one, two)


TABLES = {  # N, P, V, S, gaps, α, start
    "a tile and a half": (400, 50, 5, 10, 0.0, 0.01, "cases"),
    "mixed rows": (200, 50, 5, 10, 0.0, 0.5, "cells"),
    "gaps": (200, 33, 4, 3, 0.3, 1.0, "cells"),
    "one label": (200, 20, 4, 5, 0.1, 0.0, "cases"),
    "two chunks of labels": (150, 37, 3, 20, 0.05, 0.1, "cells"),
    "four chunks of labels": (150, 50, 5, 50, 0.0, 0.05, "cases"),
    "pairs after single sums": (100, 70, 3, 70, 0.0, 0.1, "cells"),
    "codes of two bytes": (100, 9, 300, 4, 0.1, 0.1, "cases"),
    "labels of two bytes": (300, 6, 3, 300, 0.0, 0.1, "cases"),
    "one cluster": (50, 9, 5, 1, 0.0, 0.1, "cases"),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_same_integers_as_the_cpu(name):
    N, P, V, S, gaps, alpha, start = TABLES[name]
    x, offset = table(N, P, V, S, gaps=gaps)
    assert_same(make_data(x, offset), make_hyper(S, P, alpha, 1.0, 10.0, 0.5), start)


def test_held_rows_pins_and_a_catalogue():
    """Held labels, candidates with weights of their own for every cluster, an uneven β, and rows that move as a whole only."""
    x, offset = table(200, 12, 4, 4, gaps=0.1)
    rng = np.random.default_rng(4)
    held = np.where(rng.random(200) < 0.2, rng.integers(4, size=200), -1)
    data = make_data(x, offset, candidates=x[:60], weight=rng.random((60, 4)), z_held=held)
    hyper = make_hyper(4, 12, 0.3, 1.0, 10.0, 0.5)._replace(beta=np.array([0.5, 0.3, 0.15, 0.05]))
    assert_same(data, hyper)
    assert_same(data, hyper, by_cell=False)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 1.0])
def test_bags(alpha):
    data = mixed_data()
    assert_same(data, make_hyper(5, data.book.n_columns, alpha, 1.0, 10.0, 0.5), "cells" if alpha else "cases")


def test_without_room_in_shared_memory():
    x, offset = table(150, 20, 5, 20)
    assert_same(make_data(x, offset), make_hyper(20, 20, 0.1, 1.0, 10.0, 0.5), host=HostMachine(shared=1 << 10))


BLOCKS = {  # bytes that are free, rows, and how the table is made
    "rows with one label": (260_000, 400, {"P": 50, "V": 5, "S": 10, "alpha": 0.01, "start": "cases"}),
    "mixed rows and gaps": (180_000, 600, {"P": 33, "V": 4, "S": 3, "alpha": 1.0, "start": "cells", "gaps": 0.3}),
    "bags": (60_000, 150, {}),
}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(engine_room, "LEAST_ROWS", 16)


@pytest.mark.parametrize("name", BLOCKS)
def test_a_table_that_does_not_fit_goes_through_in_blocks(name, small_blocks):
    """Labels and memberships stay here, the device gets them block by block: the same integers."""
    free, N, how = BLOCKS[name]
    if how:
        x, offset = table(N, how["P"], how["V"], how["S"], gaps=how.get("gaps", 0.0))
        held, weight = np.where(np.arange(N) % 7 == 0, 1, -1), np.linspace(1, 2, N)
        data, S, P = make_data(x, offset, weight=weight, z_held=held), how["S"], how["P"]
    else:
        data = mixed_data(N)
        S, P = 5, data.book.n_columns
    host = HostMachine(free=free)
    engine = CudaEngine(data, S, 1, 1, host)
    assert not engine.cells.resident
    assert len(engine.cells.blocks) >= 3
    assert_same(data, make_hyper(S, P, how.get("alpha", 0.5), 1.0, 10.0, 0.5), how.get("start", "cells"), host=host)


def test_a_fit_in_blocks_is_that_of_the_cpu(host, small_blocks):
    """With everything that a run asks of its rows: pins, moves of many, draws, what is kept and forgotten."""
    X, _ = table(400, 5, 3, 3, gaps=0.1)
    X = np.where(X < 0, np.nan, X % 3)
    host.free = 40_000
    settings = {"pins": {"cases": {0: 1, 5: 0}}, "alpha": "learn", "moves": "clusters", "keep_draws": True}
    assert_same_fit(fit(X, "cpu", **settings), fit(X, "cuda", **settings))
    assert len(host.engines[0].cells.blocks) >= 3


# --- new cases --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_new_cases_belong_where_the_cpu_puts_them(host, monkeypatch, alpha):
    monkeypatch.setattr(opening, "FEW_NEW", 0)
    X, _ = table(300, 7, 4, 4, gaps=0.1)
    X = np.where(X < 0, np.nan, X % 4)
    model = fit(X[:150], "cpu", n_clusters=4, alpha=alpha)
    here = model.predict_proba(X)
    for free in (1 << 40, 40_000):  # all at once; in parts
        host.free = free
        there = model.set_params(device="cuda").predict_proba(X)
        np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-15)
        assert np.array_equal(model.transform(X), there)
    assert np.array_equal(model.predict(X), here.argmax(axis=1))


def test_new_bags_belong_where_the_cpu_puts_them(host, monkeypatch):
    monkeypatch.setattr(opening, "FEW_NEW", 0)
    model = fit(BAGS, "cpu", alpha=0.5)
    here = model.predict_proba(BAGS)
    np.testing.assert_allclose(model.set_params(device="auto").predict_proba(BAGS), here, rtol=1e-12, atol=1e-15)


def test_few_new_cases_stay_on_the_cpu(monkeypatch):
    X, _ = table(60, 5, 3, 3)
    model = fit(X, "cpu")
    monkeypatch.setattr(opening, "Cuda", lambda name: pytest.fail("a GPU was asked for"))
    model.set_params(device="cuda").predict(X)


BROKEN = {  # one line of the kernels each: a comparison that does not notice it is worth nothing
    "key of a row": (
        "const u64 row_key = derive(key, (u64)(number + i));",
        "const u64 row_key = derive(key, (u64)(number + i + 1));",
    ),
    "exp": ("power.value * r + c[k]", "power.value * r + 1.5f * c[k]"),
    "half of a sum": ("in_pairs(S0) ? a[k] + b[k] : a[k]", "in_pairs(S0) ? a[k] : a[k]"),
    "cell in its own counts": ("m = row.n[s0] + row.n[s1] - 1;", "m = row.n[s0] + row.n[s1];"),
    "held rows move": ("if (!held || held[i] < 0) {\n                if (row.k", "if (true) {\n                if (row.k"),
    "rows that may leave": ("- logf((float)S) - 0.2f;", "- logf((float)S) + 20.0f;"),
    "no noise": ("offer(w - log(-log(", "offer(w - 0.0 * log(-log("),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_kernel_is_noticed(name):
    right, wrong = BROKEN[name]

    def edit(text):
        assert text.count(right) == 1
        return text.replace(right, wrong)

    x, offset = table(300, 50, 4, 4, gaps=0.0 if name == "rows that may leave" else 0.02)
    data, hyper = make_data(x, offset, z_held=np.where(np.arange(300) < 60, 1, -1)), make_hyper(4, 50, 0.3, 1.0, 10.0, 0.5)
    z = init(data, hyper, "cases", np.random.default_rng(0)).reshape(300, -1)
    z[:90] = np.random.default_rng(1).integers(4, size=(90, 50))  # rows with several labels, most of them held
    ours = trajectory(CpuEngine(data, 4, 1, 1), data, hyper, z, 3)
    try:
        theirs = trajectory(CudaEngine(data, 4, 1, 1, HostMachine(edit=edit)), data, hyper, z, 3)
    except AssertionError:
        return  # its counts are not those of its labels
    assert not all(np.array_equal(a[k], b[k]) for a, b in zip(ours, theirs, strict=True) for k in range(len(a)))


# --- whole fits -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def host(monkeypatch):
    """`device="cuda"` is this computer; `engines` that were made for it."""
    found = HostMachine()
    found.engines = []
    monkeypatch.setattr(opening, "Cuda", lambda name: found)
    monkeypatch.setattr(opening, "CudaEngine", lambda *args: found.engines.append(CudaEngine(*args)) or found.engines[-1])
    monkeypatch.setattr(opening, "is_there", lambda: True)
    return found


def fit(X, device, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = {name: settings.pop(name) for name in ("pins", "checkpoint", "callback") if name in settings}
        settings = {"n_clusters": 3, "n_iter": 12, "n_chains": 2, "random_state": 0} | settings
        return BayesianCaseModel(**settings, device=device).fit(X, **given)


def assert_same_fit(one, two):
    assert np.array_equal(one.memberships_, two.memberships_)
    assert np.array_equal(one.log_joint_, two.log_joint_)
    assert np.array_equal(one.prototypes_, two.prototypes_)
    assert np.array_equal(one.subspace_probabilities_, two.subspace_probabilities_)
    assert str(one.diagnostics_) == str(two.diagnostics_)


FITS = {
    "learned": {"alpha": "learn", "lam": "learn", "c": "learn", "q": "learn"},
    "number of clusters": {"n_clusters": "auto", "max_clusters": 6},
    "pins": {"pins": {"cases": {0: 1, 5: 0}, "prototypes": {2: 7}, "subspaces": {0: {"x1": True}}}},
    "draws": {"keep_draws": True, "alpha": 0.0},
    "similarity": {"similarity": {"x0": [[1.0, 0.5, 0.0], [0.5, 1.0, 0.5], [0.0, 0.5, 1.0]], "x1": ("within", 1)}},
    "rounds": {"n_iter": "auto", "max_iter": 48},
}


@pytest.mark.parametrize("name", FITS)
def test_a_fit_is_that_of_the_cpu(host, name, monkeypatch):
    monkeypatch.setattr("bayescase.sampling.plan.FIRST_ROUND", 12)
    X, _ = table(60, 5, 3, 3, gaps=0.1)
    X = np.where(X < 0, np.nan, X % 3)
    one, two = (fit(X, device, **FITS[name]) for device in ("cpu", "cuda"))
    assert_same_fit(one, two)
    assert len(one.fitted_.plan.rounds) == (3 if name == "rounds" else 1)


@pytest.mark.parametrize(("free", "n_blocks"), [(1 << 40, 1), (52_000, 3)], ids=["on the device", "in blocks"])
def test_chains_that_search_and_jump_do_as_on_the_cpu(host, small_blocks, monkeypatch, free, n_blocks):
    switches, find = [], run_room.Run.find_switches

    def note(run, *args):
        find(run, *args)
        switches.append(len(run.chains[0].switches.weight))

    monkeypatch.setattr(run_room.Run, "find_switches", note)
    host.free = free
    rng = np.random.default_rng(0)
    x = np.repeat(rng.integers(3, size=(150, 2)), 6, axis=1)  # told by the first six, or by the others
    x = np.where(rng.random(x.shape) < 0.2, rng.integers(3, size=x.shape), x)
    assert_same_fit(*(fit(x, device, n_init=4, n_iter=40) for device in ("cpu", "cuda")))
    assert switches[0] == switches[1] > 0
    assert len(host.engines[0].cells.blocks) >= n_blocks


@pytest.mark.parametrize(("name", "every"), [("learned", 2), ("number of clusters", 3), ("bags", 2), ("blocks", 2)])
def test_prototypes_that_stay_are_those_of_the_cpu(host, seldom_prototypes, small_blocks, name, every):
    X, _ = table(200, 5, 3, 3, gaps=0.1)
    X = BAGS if name == "bags" else np.where(X < 0, np.nan, X % 3)
    host.free = 40_000 if name == "blocks" else host.free
    one, two = (fit(X, device, **FITS.get(name, {})) for device in ("cpu", "cuda"))
    assert_same_fit(one, two)
    assert one.fitted_.plan.prototypes_every == every
    assert (len(host.engines[0].cells.blocks) >= 3) == (name == "blocks")


def test_a_fit_of_bags_is_that_of_the_cpu(host):
    assert_same_fit(fit(BAGS, "cpu"), fit(BAGS, "cuda"))


def test_a_checkpoint_goes_from_one_to_the_other(host, tmp_path):
    X, _ = table(60, 5, 3, 3)
    whole = fit(X, "cpu")
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        path = tmp_path / first
        fit(X, first, checkpoint=path, callback=lambda report: report.sweep == 7)
        assert_same_fit(whole, fit(X, second, checkpoint=path))


def test_auto_takes_the_gpu_for_large_tables(host, monkeypatch):
    X, offset = table(60, 5, 3, 3)
    data = make_data(X, offset)
    assert isinstance(opening.open_engine(data, 3, 1, 1, "auto"), CpuEngine)
    monkeypatch.setattr(opening, "SMALL", 100)
    assert isinstance(opening.open_engine(data, 3, 1, 1, "auto"), CudaEngine)
    assert isinstance(opening.open_engine(data, 3, 1, 1, "auto", "collapsed"), CpuEngine)
    host.free = 1000
    assert isinstance(opening.open_engine(data, 3, 1, 1, "auto"), CpuEngine)


def test_the_device_is_not_saved(host, tmp_path):
    X, _ = table(40, 4, 3, 3)
    model = fit(X, "cuda")
    model.save(tmp_path / "model")
    assert BayesianCaseModel.load(tmp_path / "model").device == "cpu"


# --- what can go wrong ------------------------------------------------------------------------------------------------------


def attributes(model):
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def refusal(data, S, n_chains, free):
    """What a GPU with so much memory says of a table; None if it takes it."""
    try:
        CudaEngine(data, S, n_chains, 1, HostMachine(free=free)).close()
    except ParameterError as error:
        return error
    return None


@pytest.mark.parametrize(("N", "V", "S"), [(40, 3000, 40), (5000, 3, 9)], ids=["many values", "many rows"])
@pytest.mark.parametrize("n_chains", [1, 3])
def test_what_is_said_to_be_needed_is_enough(N, V, S, n_chains):
    x, offset = table(N, 5, V, S)
    data = make_data(x, offset)
    need = engine_room.least_bytes(data, S, n_chains)
    assert refusal(data, S, n_chains, need) is None
    seen = set()
    for free in (need - 1, need // 2, need // 5):
        error = refusal(data, S, n_chains, free)
        assert str(error).startswith("1 chain of this table needs" if n_chains == 1 else "3 chains of this table need")
        for way in error.advice:
            ((name, most),) = [(setting.parameter, setting.value) for setting in way.settings]
            seen.add(name)
            asked = {"S": S, "n_chains": n_chains, "free": free}
            if name != "device":
                asked_for = {"n_clusters": "S"}.get(name, name)
                assert refusal(data, **asked | {asked_for: most}) is None
                assert refusal(data, **asked | {asked_for: most + 1}) is not None
    assert seen == {"device", "n_clusters"} | ({"n_chains"} if n_chains > 1 else set())


def test_too_little_memory_in_words():
    """Tables of 15,001 values in 48 lanes, 44 bytes an entry."""
    data = make_data(*table(40, 5, 3000, 40))
    said = "1 chain of this table needs at least 31.7 MB of the GPU's memory, of which {}, or use device='cpu'."
    ask = "15.0 MB are free; ask for fewer clusters with n_clusters=16"
    assert str(refusal(data, 40, 1, 15_099_999)) == said.format(ask)
    assert str(refusal(data, 40, 1, 999)) == said.replace(", or", ";").format("0.9 kB are free")


def test_too_little_memory_changes_nothing(host):
    X, _ = table(60, 5, 3, 3)
    model = fit(X, "cpu")
    host.free, before = 1000, attributes(model)
    with pytest.raises(ParameterError, match=r"2 chains of this table need at least .*device='cpu'"):
        model.set_params(device="cuda", random_state=1).fit(X)
    assert all(value is before[name] for name, value in attributes(model).items())
    assert_same_fit(model.set_params(device="cpu").fit(X), fit(X, "cpu", random_state=1))


FULL = r"The GPU has no memory left \(Out of memory allocating 33,554,432 bytes\); {}, or use device='cpu'\."


@pytest.mark.parametrize(
    ("free", "seconds", "again", "then"),
    [(1 << 40, 0.0, 7, "cpu"), (1 << 40, 1e9, 6, "cuda"), (40_000, 0.0, 7, "cuda"), (40_000, 1e9, 6, "cpu")],
    ids=["while it is saved", "in a sweep", "in blocks, while it is saved", "in blocks, in a sweep"],
)
def test_memory_that_another_process_takes(host, small_blocks, monkeypatch, tmp_path, free, seconds, again, then):
    """The run goes on from its checkpoint, here or there, and ends with the same numbers."""
    X, _ = table(400, 5, 3, 3)
    host.free, path = free, tmp_path / "run"
    model = fit(X, "cpu")
    before = attributes(model)
    fit(X, "cuda", random_state=1, checkpoint=path, callback=lambda report: report.sweep == 5)

    def take(report):
        host.full = report.sweep == 7

    monkeypatch.setattr(run_room, "CHECKPOINT_SECONDS", seconds)
    words = FULL.format("start again later, which goes on from the checkpoint if there is one")
    with pytest.raises(ParameterError, match=words):
        model.set_params(device="cuda", random_state=1).fit(X, checkpoint=path, callback=take)
    assert all(value is before[name] for name, value in attributes(model).items())
    sweeps, host.full = [], False
    found = fit(X, then, random_state=1, checkpoint=path, callback=lambda report: sweeps.append(report.sweep))
    assert sweeps[0] == again
    assert_same_fit(found, fit(X, "cpu", random_state=1))


def test_new_cases_find_no_memory(host, monkeypatch):
    monkeypatch.setattr(opening, "FEW_NEW", 0)
    X, _ = table(60, 5, 3, 3)
    model, host.full = fit(X, "cpu"), True
    with pytest.raises(ParameterError, match=FULL.format("try again later")):
        model.set_params(device="cuda").predict_proba(X)
    assert model.set_params(device="cpu").predict_proba(X).shape == (60, 3)


def test_a_gpu_that_is_full_from_the_beginning(monkeypatch):
    def use():
        raise RuntimeError("cudaErrorMemoryAllocation: out of memory")

    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=RuntimeError)
    cuda = SimpleNamespace(runtime=runtime, Device=lambda number: SimpleNamespace(use=use))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))
    assert not machine.is_there()  # so that "auto" takes the processors
    with pytest.raises(ParameterError, match=r"left \(cudaErrorMemoryAllocation: out of memory\); use device='cpu'\."):
        machine.Cuda("cuda")


def test_other_errors_are_not_of_memory():
    with pytest.raises(MemoryError, match="of this computer"), machine.lost_memory():
        raise MemoryError("of this computer")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "gpu"}, "device must be 'cpu', 'cuda', 'cuda:1'"),
        ({"device": 1}, "device must be"),
        ({"device": "cuda", "sampler": "collapsed"}, "one cell at a time, which device='cuda' cannot do"),
    ],
)
def test_a_device_that_cannot_be(settings, words):
    with pytest.raises(ParameterError, match=words):
        fit(np.eye(4), settings.pop("device"), **settings)


def test_without_cupy(monkeypatch):
    there = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "cupy":
            raise ImportError(name)
        return there(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert not machine.is_there()
    with pytest.raises(ParameterError, match=r"device='cuda' needs CuPy: pip install 'bayescase\[cuda13\]'"):
        fit(np.eye(4), "cuda")


# --- blocks of a cluster's workers ---------------------------------------------------------------------------------------


def block_of(data, rows, S, alpha, held=()):
    """(codes, state) of some neighbouring rows as a worker has them."""
    cases, once = data.cases.part(rows), data.catalogue.part(rows)
    size, width = rows.stop - rows.start, data.cases.width
    cells = [each.cells._replace(first=tasks.NONE) if width else each.cells for each in (cases, once)]
    block = tasks.BlockRows(*cells, rows.start, size, width, bool((cases.cells.codes < 0).any()))
    rng, sizes = np.random.default_rng(rows.start), cases.cells.sizes
    labels = rng.integers(S, size=sizes.sum()) if alpha else np.repeat(rng.integers(S, size=size), sizes)
    state = tasks.BlockState(*(np.zeros(0),) * 5)._replace(held=np.asarray(held, dtype=np.int64))
    return block, tasks.with_labels(block, state, labels.astype(np.uint8))


@pytest.mark.parametrize("free", [1 << 40, 40_000], ids=["on the device", "in parts"])
@pytest.mark.parametrize("name", ["gaps", "one label", "bags", "held"])
def test_blocks_of_a_cluster(name, free, monkeypatch):
    """Tasks on blocks, whose first row is any one, on a GPU and on processors."""
    x, offset = table(200, 12, 4, 4, gaps=0.1)
    data, S, alpha = mixed_data() if name == "bags" else make_data(x, offset), 4, 0.0 if name == "one label" else 0.5
    hyper = make_hyper(S, data.book.n_columns, alpha, 1.0, 10.0, 0.5)
    most = int(data.cells.sizes.max())
    monkeypatch.setattr(gpu, "OPEN", {"cuda": gpu.Device(HostMachine(free=free))})
    monkeypatch.setattr(engine_room, "LEAST_ROWS", 1)
    monkeypatch.setattr(engine_room, "small_bytes", lambda *_: 0)
    here, there = (tasks.Shape(data.offset, data.book.n_single, S, most, device) for device in ("cpu", "cuda"))
    engine = CpuEngine(data, S, 1, 1)
    driver = Driver(data, count_observed(data.x, data.bags), hyper, engine.threads)
    state = new_state(data, S)
    for rows in (slice(0, 60), slice(60, 150)):
        held = np.arange(rows.stop - rows.start) % 7 - 3 if name == "held" else ()
        block, first = block_of(data, rows, S, alpha, held)
        state.n_sv[:], state.n_rows[:] = tasks.count(block, first, here, len(state.n_sv))
        driver.update_p_omega(hyper, state, engine.candidates, stream(1))
        weight = np.log(np.random.default_rng(0).random((len(data.x), 1)))
        for t in range(3):
            driver.update_phi(hyper, state, stream(2, t))
            found = [tasks.sweep(block, first, shape, driver.tables, stream(3, t), t > 0) for shape in (here, there)]
            for one, two in zip(found[0][1], found[1][1], strict=True):
                assert np.array_equal(one, two)
            (first, _), (other, _) = found
            known = block.cells.codes >= 0
            labels = [tasks.labels(block, each, here)[known] for each in (first, other)]
            assert np.array_equal(*labels)
            assert np.array_equal(first.one, other.one)
            state.n_sv[:], state.n_rows[:] = tasks.count(block, first, here, len(state.n_sv))
            driver.update_p_omega(hyper, state, engine.candidates, stream(4, t))
            assert len(gpu.OPEN["cuda"].there) <= 2
            best = [tasks.score((shape, weight, driver.copies, stream(5, t)), block) for shape in (here, there)]
            assert np.array_equal(best[0][1], best[1][1])
            assert np.array_equal(best[0][0][:S], best[1][0])
    del block
    gc.collect()
    assert not gpu.OPEN["cuda"].there  # codes go with their block
    engine.close()


def test_a_worker_whose_gpu_is_full(monkeypatch):
    """Its sentence can travel."""
    host = HostMachine()
    host.full = True
    data = make_data(*table(60, 5, 3, 3))
    block, state = block_of(data, slice(0, 60), 3, 0.5)
    monkeypatch.setattr(gpu, "OPEN", {"cuda": gpu.Device(host)})
    shape = tasks.Shape(data.offset, data.book.n_single, 3, 5, "cuda")
    with pytest.raises(ParameterError, match="The GPU has no memory left") as raised:
        tasks.sweep(block, state, shape, None, stream(1), True)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_workers_without_a_gpu(monkeypatch):
    monkeypatch.setattr(gpu, "OPEN", {})
    monkeypatch.setattr(gpu, "is_there", lambda: False)
    assert gpu.device_of("cpu") is gpu.device_of("auto") is None
    monkeypatch.setattr(machine, "INSTALL", "pip install it")
    assert gpu.refusal("cpu") is None
    assert "device='cuda'" in gpu.refusal("cuda")
