"""A table on disk → a Problem whose `data` is a sample; its chains → the posterior of the sample, and results of all cases."""

from __future__ import annotations

import mmap
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import BayescaseWarning, ParameterError, Setting
from ..kernels import row_hashes
from ..reading.batches import Source
from ..reading.cache import Cached, cache, known_codes, known_features, learn, print_of
from ..reading.encoder import CaseEncoder
from ..reading.encoding import types_in_words
from ..reading.rules import Asked
from ..reading.tables import Table
from ..state import Cells, Codes, chunks, count_observed, distinct, smallest_int
from ..storage import Mapped, replacing
from .hyper import gamma_by_counts
from .joining import Groups
from .places import Place, passing
from .plan import MOST_CELLS
from .posterior import PART, ChainDraws, Posterior, equal_cases, equal_hashes, main_labels, summarise
from .problem import (
    Given,
    Problem,
    Settings,
    check_pins,
    check_prior_of_rows,
    check_q,
    count_labels,
    encode_candidates,
    make_plan,
    make_priors,
    put_together,
)
from .stored import Stored, sample_rows
from .weights import base_of, cost_of_gaps, warn_empty

EQUALS_BYTES = 1 << 27  # of memberships of cases that are compared at a time
LABELS, MEMBERSHIPS = "labels.npy", "memberships.npy"


def open_large(source: Source, encoder: CaseEncoder, catalogue: Table | None, place: Place, verbose: int) -> Cached:
    """The codes of a table that is read in parts: two passes, unless an earlier run has made them."""
    asked, folder = Asked(**encoder.get_params(deep=False)), place.codes
    print_ = print_of(source, asked, catalogue)
    encoding = known_features(folder, print_)
    cached = None if encoding is None else known_codes(folder, encoding, print_)
    with nullcontext() if cached is not None else place.writing_codes():
        if encoding is None:
            with passing("reading values", source.n_rows, verbose) as progress:
                encoding = learn(folder, source, asked, catalogue, progress)
        if verbose:
            print(*types_in_words(encoding), sep="\n", file=sys.stderr)
        for note in encoding.notes:
            warnings.warn(note.within("encoder"), stacklevel=4)
        if cached is None:
            with passing("writing codes", source.n_rows, verbose) as progress:
                cached = cache(folder, source, encoding, print_, progress)
    return cached


# --- before ----------------------------------------------------------------------------------------------------------------


def check_large(settings: Settings, given: Given, device: str) -> None:
    """Raise if something is asked for that needs all cases in memory."""
    asked = {
        Setting("sampler", settings.sampler): settings.sampler != "rows",
        Setting("keep_draws", True): settings.keep_draws,
        Setting("moves", settings.moves): settings.moves == "clusters",
        Setting("device", device): device.startswith("cuda"),
        Setting("prototype_prior"): given.prototype_prior is not None,
        Setting("init"): given.labels is not None,
    }
    if given.pins is not None:
        pins = check_pins(given.pins)
        asked |= {Setting("pins", column=part): bool(pins[part]) for part in ("prototypes", "cases")}
    for setting, wanted in asked.items():
        if wanted:
            raise ParameterError("{parameter} needs the table in memory; here it is read in parts.", parameter=setting)


def prepare_large(cached: Cached, settings: Settings, given: Given, seed: int, folder: Path, client: Any = None) -> Problem:
    """A Problem from the codes of a table on disk: that of the same table in memory, but for where the cases are."""
    encoding, about = cached.encoding, cached.about
    settings, N = settings.for_features(encoding), len(cached)
    if settings.moves == "cases" and about.n_cells > MOST_CELLS:
        raise ParameterError(
            f"{{parameter}} has all cells in memory, so a table that is read in parts may have at most {MOST_CELLS:,}, not "
            f"{about.n_cells:,}.",
            parameter=Setting("moves", settings.moves),
        )
    S = count_labels(settings, N)
    warn_empty(about.empty, about.n_empty)
    some = sample_rows(N, seed)
    rows = np.concatenate([some, np.setdiff1d(np.array(about.longest), some)])  # what is sized by the longest row must fit
    cases = take(cached, rows)
    catalogue = encode_candidates(given.candidates, encoding, N, seed, cached)
    q, q_free = check_q(settings.q, settings.subspace_prior, S, encoding)
    held = check_prior_of_rows(given, settings, cases if catalogue is None else catalogue, q, N, encoding)
    counts = np.array(about.counts)
    base = base_of(counts, encoding.offset) if settings.base == "frequency" else None
    data = put_together(encoding, settings, cases, catalogue, held, base)
    log_weight: np.ndarray | Mapped = data.log_weight
    if data.own_cases:
        log_weight = weigh_stored(cached, q, folder)
        data = data._replace(log_weight=weights_of(log_weight, rows))
    hyper, learn = make_priors(settings, q, q_free)
    if settings.auto:
        hyper = hyper._replace(gamma=gamma_by_counts(counts, encoding.offset, N, N if data.own_cases else len(data.candidates)))
    plan = make_plan(settings, None, hyper.alpha == 0, seed, (about.n_cells, N), data)
    return Problem(encoding, data, hyper, learn, plan, np.array(about.n_i), Stored(cached, folder, log_weight, rows, client))


def take(cached: Cached, rows: np.ndarray) -> Codes:
    """Some rows, in any order."""
    order = np.argsort(rows, kind="stable")
    return cached.take(rows[order]).take(np.argsort(order, kind="stable"))


def weights_of(log_weight: np.ndarray | Mapped, rows: np.ndarray) -> np.ndarray:
    """(rows, 1) The log weights of some candidates."""
    if len(log_weight) == 1:
        return np.full((len(rows), 1), log_weight[:][0, 0])
    assert isinstance(log_weight, Mapped)
    order = np.argsort(rows, kind="stable")
    found: np.ndarray = log_weight.take(rows[order])[np.argsort(order, kind="stable")]
    return found


def weigh_stored(cached: Cached, q: np.ndarray, folder: Path) -> np.ndarray | Mapped:
    """(N, 1) Log weights of all cases as candidates, in a file; (1, 1) if they are equal. See `weights.weigh_gaps`."""
    N, P = len(cached), cached.encoding.n_single
    if not any(cached.about.gaps) and not cached.encoding.bags:
        return np.log(np.full((1, 1), 1.0) / N)
    weight = Mapped.create(folder / "log_weight", float, (N, 1))
    cost, parts, largest = cost_of_gaps(q, P), chunks(N, P), -np.inf
    empty = Mapped.create(folder / "empty", bool, (N, 1))
    some_empty, all_empty = False, True
    for rows in parts:
        codes = cached.as_codes(rows)
        weight[rows] = ((codes.x < 0) @ cost)[:, None]
        largest = max(largest, float(weight[rows].max()))
        if codes.bags is not None:
            gone = (codes.bags.sizes == 0) & (codes.x < 0).all(axis=1)
            empty[rows] = gone[:, None]
            some_empty, all_empty = some_empty or bool(gone.any()), all_empty and bool(gone.all())
    for rows in parts:
        weight[rows] = np.exp(weight[rows] - largest)
        if some_empty and not all_empty:
            weight[rows] = np.where(empty[rows], 0.0, weight[rows])
    os.unlink(empty.path)
    total = weight[:].sum(axis=0)  # at once, since sums of floats depend on their order
    with np.errstate(divide="ignore"):
        for rows in parts:
            weight[rows] = np.log(weight[rows] / total)
    return weight


# --- after -----------------------------------------------------------------------------------------------------------------


class Sample(NamedTuple):
    """The cases that a Fitted has, if they are some of many, and where the results of all are."""

    rows: np.ndarray  # of the table
    n_cases: int  # of the table
    labels: np.ndarray | None = None  # of all cases, read from a file as they are needed; None if there is none
    memberships: np.ndarray | None = None

    def place_of(self, row: int) -> int:
        """Where a row of the table is in the sample."""
        if not 0 <= row < self.n_cases:
            raise ParameterError("There is no case {row}: the table has {n}, counted from 0.", row=row, n=self.n_cases)
        found = int(np.searchsorted(self.rows, row))
        if found == len(self.rows) or self.rows[found] != row:
            raise ParameterError(
                "The model has {n} of the {all} cases at hand, and case {row} is not among them: give its values instead.",
                n=len(self.rows),
                all=self.n_cases,
                row=row,
            )
        return found


def summarise_large(problem: Problem, chains: list[ChainDraws], folder: Path) -> tuple[Problem, Posterior, Sample]:
    """(the problem of a sample, its posterior, what it is a sample of). The results of all cases go to the folder."""
    stored = problem.stored
    assert stored is not None
    pooled = Mapped.create(stored.folder / "pooled", float, chains[0].memberships.shape)
    equals = StoredEquals(stored.cached, stored.folder)
    posterior = summarise(chains, equals, problem.learn.beta, out=pooled)
    results = write_results(pooled, posterior.memberships.shape[1], folder)
    data, rows = problem.data, np.arange(stored.n_cases)
    if len(data.x) < stored.n_cases or not np.array_equal(stored.rows, rows):
        drawn = posterior.p if data.own_cases else np.zeros(0, dtype=np.int64)
        rows = np.unique(np.concatenate([stored.rows, drawn.reshape(-1)]))
        cases = stored.cached.take(rows)
        again = data._replace(x=cases.x, bags=cases.bags)
        if data.own_cases:
            once = None if cases.bags is None else distinct(cases.bags)
            again = again._replace(candidates=cases.x, candidate_bags=once, log_weight=weights_of(stored.log_weight, rows))
            posterior = posterior._replace(p=np.searchsorted(rows, posterior.p))
        data = again
    member = pooled.take(rows)[:, : posterior.memberships.shape[1]]
    labels = main_labels(chains, posterior.relabel, equal_cases(data), rows)
    os.unlink(pooled.path)
    problem = problem._replace(data=data, n_i=count_observed(data.x, data.bags), stored=None)
    return problem, posterior._replace(memberships=member, chain_labels=labels), Sample(rows, stored.n_cases, *results)


class StoredEquals:
    """Cases on disk that nothing tells apart, found by the hashes of their values, some of the hashes at a time."""

    def __init__(self, cached: Cached, folder: Path):
        self.cached, self.folder = cached, folder

    def average(self, memberships: Mapped) -> None:
        """Give equal cases the mean of their memberships, in place."""
        hashes = self.hash_rows()
        bits = max(0, int(np.ceil(np.log2(max(memberships.nbytes / EQUALS_BYTES, 1.0)))))
        for part in range(1 << bits):
            rows, own = self.rows_with(hashes, bits, part)
            equals = equal_hashes(own, np.zeros(0, dtype=np.int64))
            some = np.sort(equals.rows)
            if len(some):
                found = memberships.take(rows[some])
                equals._replace(rows=np.searchsorted(some, equals.rows)).average(found)
                memberships.put(rows[some], found)
        os.unlink(hashes.path)

    def hash_rows(self) -> Mapped:
        hashes = Mapped.create(self.folder / "hashes", np.uint64, (len(self.cached),))
        for b in range(self.cached.n_blocks):
            rows = self.cached.rows(b)
            cells, width = self.cached.cells(rows), self.cached.width
            first = np.arange(rows.stop - rows.start + 1, dtype=np.int64) * width if width else cells.first
            hashes[rows] = row_hashes(Cells(cells.codes, first))
        return hashes

    def rows_with(self, hashes: Mapped, bits: int, part: int) -> tuple[np.ndarray, np.ndarray]:
        """(rows, their hashes) whose hash begins with these bits."""
        rows, own = [], []
        for few in chunks(len(hashes), 1, PART):
            here = hashes[few]
            found = np.flatnonzero(here >> np.uint64(64 - bits) == part) if bits else np.arange(len(here))
            rows.append(few.start + found)
            own.append(here[found])
        return np.concatenate(rows), np.concatenate(own)


def write_results(memberships: Any, S: int, folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(labels, memberships) of all cases, in .npy files, of which they are read as they are needed."""
    N = len(memberships)

    def write(name: str, dtype: np.dtype[Any], shape: tuple[int, ...], of: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        write_array(folder / name, dtype, shape, (of(memberships[part][:, :S]) for part in chunks(N, S, PART)))
        return np.load(folder / name, mmap_mode="r")

    labels = write(LABELS, smallest_int(S), (N,), lambda shares: shares.argmax(axis=1))
    return labels, write(MEMBERSHIPS, np.dtype(np.float32), (N, S), lambda shares: shares)


def write_array(path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], parts: Iterable[np.ndarray]) -> None:
    """An .npy file, part by part."""
    with replacing(path) as file:
        about: Any = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, about)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype=dtype).data)


def join_results(sample: Sample, groups: Groups, folder: Path) -> Sample:
    """The sample with the results of all cases, groups of clusters in place of clusters."""
    if sample.memberships is None:
        return sample
    labels, memberships = write_results(Joined(sample.memberships, groups), len(groups), folder)
    return sample._replace(labels=labels, memberships=memberships)


class Joined:
    """Memberships of groups of clusters, some rows at a time."""

    def __init__(self, memberships: np.ndarray, groups: Groups):
        self.memberships, self.groups = memberships, groups

    def __len__(self) -> int:
        return len(self.memberships)

    def __getitem__(self, rows: slice) -> np.ndarray:
        here = read_rows(self.memberships, rows)
        return np.stack([here[:, list(group)].sum(axis=1) for group in self.groups], axis=1)


def beside(path: str | os.PathLike[str], name: str) -> Path:
    """model.bcm → model.labels.npy."""
    return Path(path).with_suffix(f".{name}")


def save_results(sample: Sample, path: str | os.PathLike[str]) -> None:
    """Write the results of all cases to where the model is."""
    for array, name in ((sample.labels, LABELS), (sample.memberships, MEMBERSHIPS)):
        if array is not None:
            write_array(beside(path, name), array.dtype, array.shape, (read_rows(array, rows) for rows in rows_of(array)))


def rows_of(array: np.ndarray) -> list[slice]:
    return chunks(len(array), array.size // max(len(array), 1), PART)


def read_rows(array: np.ndarray, rows: slice) -> np.ndarray:
    """A copy of some rows. What is read of a mapped file is given back, so that memory does not grow with the table."""
    found, mapped = np.array(array[rows]), getattr(array, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
    return found


def find_results(sample: Sample, S: int, path: str | os.PathLike[str]) -> Sample:
    """The sample with the results of all cases that lie beside a model; if they do not, those of the sample must do."""
    names, found = [beside(path, name) for name in (LABELS, MEMBERSHIPS)], []
    with suppress(OSError, ValueError):  # not there, or not whole
        found = [np.load(name, mmap_mode="r", allow_pickle=False) for name in names]
    if [array.shape for array in found] == [(sample.n_cases,), (sample.n_cases, S)]:
        return sample._replace(labels=found[0], memberships=found[1])
    warnings.warn(
        BayescaseWarning(
            "{labels} and {memberships} are not beside the model: its labels and memberships are those of a sample.",
            labels=names[0].name,
            memberships=names[1].name,
        ),
        stacklevel=4,
    )
    return sample
