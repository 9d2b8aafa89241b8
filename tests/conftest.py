"""Data and fitted models that many tests share."""

import dataclasses
import shutil
import tempfile
from pathlib import Path

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=200)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(scope="session")
def planted():
    """planted(N, P, V, S, seed) → (cases, true labels): every case copies most values of its cluster's prototype."""

    def make(N=60, P=6, V=4, S=3, seed=0, noise=0.2):
        rng = np.random.default_rng(seed)
        prototypes = rng.integers(V, size=(S, P))
        labels = rng.integers(S, size=N)
        x = np.where(rng.random((N, P)) < noise, rng.integers(V, size=(N, P)), prototypes[labels])
        return x, labels

    return make


@pytest.fixture(scope="session")
def mixed(planted):
    """A table with every kind of column: words, integers, booleans, numbers, and missing cells."""
    x, labels = planted(N=50, P=5, V=3, S=3, seed=1)
    colour = np.array(["red", "green", "blue"], dtype=object)[x[:, 0]]
    colour[[3, 17]] = None
    size = x[:, 3] + np.linspace(0, 0.5, len(x))
    size[5] = np.nan
    return {
        "colour": colour,
        "legs": x[:, 1] * 2,
        "tame": x[:, 2] > 0,
        "size": size,
        "home": np.array(["sea", "land", "air"])[x[:, 4]],
    }, labels


@pytest.fixture(scope="session", params=["rows", "collapsed"])
def sampler(request):
    return request.param


@pytest.fixture(scope="session")
def fitted(sampler, mixed):
    """A model of the mixed table with all its draws, for each sampler. Tests must not change it."""
    from bayescase import BayesianCaseModel

    model = BayesianCaseModel(3, alpha=0.5, sampler=sampler, n_iter=120, n_chains=3, keep_draws=True, random_state=0)
    return model.fit(mixed[0])


@pytest.fixture(scope="session")
def same():
    """same(a, b): every learned attribute of two models is equal, bit for bit."""

    def learned(model):
        whole = ("fitted_", "encoder_")  # what the others are made of
        names = [name for name in vars(model) if name.endswith("_") and not name.startswith("_") and name not in whole]
        found = {name: getattr(model, name) for name in names}
        if hasattr(model, "fitted_"):
            posterior, trace = model.fitted_.posterior._asdict(), model.fitted_.trace
            found |= {"features": model.encoder_.features_, "kept": model.fitted_.kept, "trace": trace, "posterior": posterior}
        return found

    def equal(a, b):
        if hasattr(a, "encoding_"):
            return a.encoding_.to_json() == b.encoding_.to_json()
        if dataclasses.is_dataclass(a):
            return equal(vars(a), vars(b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
        if isinstance(a, (list, tuple)):
            return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, np.ndarray):
            return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        return a == b or (a != a and b != b)

    def compare(first, second, but=()):
        a, b = learned(first), learned(second)
        assert a.keys() == b.keys()
        different = [name for name in a if name not in but and not equal(a[name], b[name])]
        assert not different, f"these differ: {different}"

    return compare


# --- studies --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres():
    """new() → the address of an empty PostgreSQL database. A server of our own, on loopback, as an ordinary user."""
    pytest.importorskip("psycopg", reason="pip install 'bayescase[postgres]'")
    from .study.databases import postgresql

    with postgresql() as new:
        yield new


@pytest.fixture
def seldom_prototypes(monkeypatch):
    """Prototypes of more than two clusters are drawn in every second sweep, however few candidates there are."""
    monkeypatch.setattr("bayescase.sampling.plan.MANY_CLUSTERS", 2)
    monkeypatch.setattr("bayescase.sampling.plan.MANY_CELLS", 0)


@pytest.fixture
def frozen():
    """frozen(design) → a folder with it, in memory where that is possible: most tests write far more than they compute."""
    from bayescase.study.design.design_file import freeze, write_design

    from .study.databases import MEMORY

    with tempfile.TemporaryDirectory(prefix="bayescase-study-", dir=MEMORY) as root:

        def make(design, name="study"):
            folder = Path(root) / name
            write_design(design, folder)
            freeze(folder)
            return folder

        yield make


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, frozen):
    """place(design) → (folder with that design frozen, address of the database): on both databases."""

    def make(design, name="study"):
        return frozen(design, name), request.getfixturevalue("postgres")() if request.param == "postgresql" else None

    return make


@pytest.fixture(scope="module")
def browser():
    """A real Chromium."""
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    args += ["--disable-background-networking", "--disable-component-update"]
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=args)
        yield started
        started.close()


@pytest.fixture(scope="module")
def axe():
    """The script that finds what people with disabilities stumble over."""
    path = Path(__file__).parents[1] / "node_modules/axe-core/axe.min.js"
    if not path.exists():
        pytest.skip("needs axe-core: npm install --no-save axe-core")
    return path
