"""What a user asks for, checked and as arrays: Settings and Given → Problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..errors import Advice, ParameterError, Setting
from ..reading.cache import Cached
from ..reading.encoding import Encoding
from ..reading.similarity import Ways, similarity_table
from ..reading.tables import Table
from ..state import Codes, Data, Hyper, count_observed, distinct, make_data, make_hyper
from .hyper import Learn, Learnable, gamma_of
from .jumps import MOST_CELLS as JUMP_CELLS
from .plan import MOST_CELLS, MOVES, SINGLE_LABEL, Plan, doubling, one_round, prototypes_every
from .search import FEWEST_SWEEPS, how_many
from .stored import Stored, sample_rows
from .values import check_choice, check_count, check_positive, is_auto, is_int, is_learned, numbers_of
from .weights import bar_empty, frequencies, warn_empty_rows, weigh_gaps

STARTS = ("seeded", "cases", "cells")
MIXED = ("seeded", "cases", "seeded", "seeded")  # of the chains 0, 1, 2, 3, and so on from the first
BASES = ("uniform", "frequency")
DEFAULTS: dict[str, Any] = {"lam": 1.0, "c": 50.0, "q": 0.8, "base": "uniform"}
BAG_DEFAULTS: dict[str, Any] = {"lam": 0.5, "c": 5.0, "q": 0.5, "base": "frequency"}  # if there is a bag
PINNED = ("prototypes", "subspaces", "cases")
Pins: TypeAlias = Mapping[str, Mapping[int, int] | Mapping[int, Mapping[Any, bool]]]  # as `BayesianCaseModel.fit` takes them


@dataclass(frozen=True)
class Settings:
    """The parameters of a model that decide its numbers; `BayesianCaseModel` says what they mean."""

    n_clusters: int | Literal["auto"]
    max_clusters: int
    alpha: Learnable
    lam: Learnable | None
    c: Learnable | None
    q: Learnable | ArrayLike | None
    base: Literal["uniform", "frequency"] | None
    similarity: Ways
    subspace_prior: ArrayLike | None
    sampler: Literal["rows", "collapsed"]
    n_iter: int | Literal["auto"]
    max_iter: int
    burn_in: int | None
    thin: int
    n_chains: int
    init: str | Sequence[str]
    keep_draws: bool
    moves: Literal["auto", "none", "cases", "clusters", "jumps"]
    n_init: int | Literal["auto"]

    def for_features(self, encoding: Encoding) -> Settings:
        """The same with defaults in place of None; they depend on whether there are bags."""
        chosen = BAG_DEFAULTS if encoding.bags else DEFAULTS
        return replace(self, **{name: value for name, value in chosen.items() if getattr(self, name) is None})

    @property
    def auto(self) -> bool:
        """Is the number of clusters to be found?"""
        return is_auto(self.n_clusters)

    def check(self) -> None:
        """Raise if a parameter has a value that is wrong for any data."""
        for name in ("n_clusters", "max_clusters", "n_iter", "max_iter", "thin", "n_chains", "n_init"):
            check_count(name, getattr(self, name), auto=name in ("n_clusters", "n_iter", "n_init"))
        for name, least in (("alpha", "of at least 0"), ("lam", "above 0"), ("c", "of at least 0")):
            if name == "alpha" or getattr(self, name) is not None:
                check_positive(name, getattr(self, name), least, zero=name != "lam")
        check_choice("sampler", self.sampler, ("rows", "collapsed"))
        if self.base is not None:
            check_choice("base", self.base, BASES)
        check_choice("moves", self.moves, ("auto", *MOVES))
        if self.moves in MOVES[1:] and self.sampler == "collapsed":
            raise ParameterError(
                "{parameter} needs {rows}.", parameter=Setting("moves", self.moves), rows=Setting("sampler", "rows")
            )
        if not isinstance(self.keep_draws, (bool, np.bool_)):
            raise ParameterError(
                "{parameter} must be True or False, not {value!r}.", parameter="keep_draws", value=self.keep_draws
            )
        if self.auto and self.subspace_prior is not None:
            raise one_number_of_clusters("subspace_prior")
        if self.burn_in is not None and is_auto(self.n_iter):
            raise ParameterError(
                "{n_iter} always keeps the second half of the sweeps: leave {none}, not {value!r}.",
                parameter="burn_in",
                value=self.burn_in,
                n_iter=Setting("n_iter", "auto"),
                none=Setting("burn_in", None),
            )
        if self.burn_in is not None and (not is_int(self.burn_in) or not 0 <= self.burn_in < self.n_iter):  # type: ignore[operator]
            raise ParameterError(
                "{parameter} must be a whole number from 0 to {n_iter} - 1 = {last}, not {value!r}.",
                parameter="burn_in",
                value=self.burn_in,
                n_iter=Setting("n_iter"),
                last=self.n_iter - 1,  # type: ignore[operator]
            )
        start_names(self.init, int(self.n_chains))


@dataclass(frozen=True)
class Given:
    """What belongs to the rows of one fit."""

    candidates: Table | int | None = None  # a catalogue, or how many of the cases
    pins: Pins | None = None
    prototype_prior: ArrayLike | None = None
    labels: ArrayLike | None = None  # to start from


class Problem(NamedTuple):
    """Everything that decides the numbers of a run."""

    encoding: Encoding
    data: Data
    hyper: Hyper
    learn: Learn
    plan: Plan
    n_i: np.ndarray  # (longest case + 1,) how many cases have n observed cells
    stored: Stored | None = None  # where the cases are, if `data` has a sample of them only

    @property
    def n_cases(self) -> int:
        return len(self.data.x) if self.stored is None else self.stored.n_cases

    @property
    def could_jump(self) -> bool:
        """Chains did not jump, but could have with moves="jumps"."""
        small = self.stored is None and len(self.data.cells.codes) <= JUMP_CELLS
        return self.plan.moves == "cases" and small and self.plan.searches


def prepare(table: Table, encoding: Encoding, settings: Settings, given: Given, seed: int) -> Problem:
    """A Problem from a table whose features are known."""
    settings, N = settings.for_features(encoding), table.n_cases
    S = count_labels(settings, N)
    cases = encoding.encode(table)[0]
    warn_empty_rows(cases)
    catalogue = encode_candidates(given.candidates, encoding, N, seed, cases)
    q, q_free = check_q(settings.q, settings.subspace_prior, S, encoding)
    held = check_prior_of_rows(given, settings, cases if catalogue is None else catalogue, q, N, encoding)
    base = frequencies(cases, encoding.offset) if settings.base == "frequency" else None
    data = put_together(encoding, settings, cases, catalogue, held, base)
    hyper, learn = make_priors(settings, q, q_free)
    if settings.auto:
        hyper = hyper._replace(gamma=gamma_of(data))
    labels = None if given.labels is None else check_labels(given.labels, cases, S)
    plan = make_plan(settings, labels, hyper.alpha == 0, seed, (len(data.cells.codes), N), data)
    return Problem(encoding, data, hyper, learn, plan, count_observed(cases.x, cases.bags))


def put_together(
    encoding: Encoding, settings: Settings, cases: Codes, catalogue: Codes | None, held: Held, base: np.ndarray | None
) -> Data:
    """The arrays of a run, from what is known of its cases and of the catalogue."""
    return make_data(
        cases.x,
        encoding.offset,
        None if catalogue is None else catalogue.x,
        held.weight,
        similarity_table(settings.similarity, encoding),
        held.z,
        held.omega,
        bags=cases.bags,
        candidate_bags=None if catalogue is None or catalogue.bags is None else distinct(catalogue.bags),
        base=base,
    )


def encode_candidates(given: Table | int | None, encoding: Encoding, N: int, seed: int, cases: Codes | Cached) -> Codes | None:
    """The catalogue: a table of its own, or a sample of the cases; None if it is all of them."""
    if isinstance(given, int):
        return cases.take(sample_rows(N, seed, given))
    return None if given is None else encoding.encode(given)[0]


def count_labels(settings: Settings, N: int) -> int:
    """S: the clusters asked for, or the most that there can be."""
    S = min(settings.max_clusters, N) if settings.auto else int(settings.n_clusters)
    if S > N:
        raise ParameterError(
            "{n_clusters} needs at least {S} cases, but the data has {n_samples}.",
            parameter="n_clusters",
            n_clusters=Setting("n_clusters", S),
            S=S,
            n_samples=Setting("n_samples", N),
        )
    return S


def make_priors(settings: Settings, q: np.ndarray, q_free: np.ndarray) -> tuple[Hyper, Learn]:
    """The hyperparameters, and which of them are learned."""
    values = {name: getattr(settings, name) for name in ("alpha", "lam", "c")}
    S, D = q.shape
    hyper = make_hyper(S, D, **{name: 1.0 if is_learned(value) else value for name, value in values.items()}, q=q)
    learned = tuple(name for name, value in {**values, "q": settings.q}.items() if is_learned(value))
    return hyper, Learn(learned, q_free, settings.auto)


def make_plan(
    settings: Settings, labels: np.ndarray | None, one_label: bool, seed: int, size: tuple[int, int], data: Data
) -> Plan:
    """one_label: every case has a single label throughout, as at α = 0. size: all cells and cases; `data` may lack most."""
    S, n_scored = count_labels(settings, size[1]), size[0] if data.own_cases else len(data.candidate_cells.codes)
    starts = start_names(settings.init, settings.n_chains)
    if one_label:
        starts = tuple("cases" if start == "cells" else start for start in starts)
    rounds = doubling(int(settings.max_iter)) if is_auto(settings.n_iter) else one_round(settings.n_iter, settings.burn_in)  # type: ignore[arg-type]
    whole_cases = min(SINGLE_LABEL, rounds[0].first)
    n_init = how_many(settings.n_init, rounds[-1].end, *size) if settings.sampler == "rows" else 1
    plan = Plan(
        sampler=settings.sampler,
        rounds=rounds,
        thin=int(settings.thin),
        n_chains=int(settings.n_chains),
        start=starts if labels is None else labels,
        single_label=tuple(whole_cases if labels is None and start != "cells" else 0 for start in starts),
        keep_draws=bool(settings.keep_draws),
        seed=seed,
        n_init=n_init,
        prototypes_every=prototypes_every(S, n_scored) if settings.sampler == "rows" else 1,
    )
    if settings.moves == "jumps":
        check_jumps(settings, size[0], plan)
    return plan._replace(moves=what_moves(settings, size[0], plan.searches), auto_moves=is_auto(settings.moves))


def check_jumps(settings: Settings, n_cells: int, plan: Plan) -> None:
    """Jumps go between descriptions that the search for the start has met."""
    if n_cells > JUMP_CELLS:
        raise ParameterError(
            f"{{parameter}} is for tables of at most {JUMP_CELLS:,} cells; these have {n_cells:,}.",
            parameter=Setting("moves", settings.moves),
        )
    if is_auto(settings.n_init) and plan.n_init == 1:
        raise ParameterError(
            f"{{parameter}} needs a search for the start, and by itself a run of fewer than {FEWEST_SWEEPS} sweeps makes none.",
            Advice("make it longer with {}", Setting("max_iter" if is_auto(settings.n_iter) else "n_iter", FEWEST_SWEEPS)),
            Advice("ask for one with {}", Setting("n_init", 4)),
            parameter=Setting("moves", settings.moves),
        )
    if not plan.searches:
        raise ParameterError(
            "{parameter} needs a search for the start: {n_init} of at least 2, and chains that start from cases or seeded.",
            parameter=Setting("moves", settings.moves),
            n_init=Setting("n_init"),
        )


def what_moves(settings: Settings, n_cells: int, searches: bool) -> str:
    """ "auto", by the sampler "rows": jumps in small tables, if there is a search for the start, cases in larger ones."""
    if settings.moves != "auto":
        return settings.moves
    if settings.sampler != "rows" or n_cells > MOST_CELLS:
        return "none"
    return "jumps" if searches and n_cells <= JUMP_CELLS else "cases"


# --- priors --------------------------------------------------------------------------------------------------------------


def check_q(q: Any, subspace_prior: Any, S: int, encoding: Encoding) -> tuple[np.ndarray, np.ndarray]:
    """(q, where it is to be learned), both (S, D)."""
    F, D = len(encoding.features), len(encoding.column_names)
    if isinstance(q, str) and not is_learned(q):
        raise ParameterError(
            "{parameter} must be 'learn', a number between 0 and 1, or one per feature, not {value!r}.", parameter="q", value=q
        )
    values = np.full((S, D), 0.5)
    if not is_learned(q):
        given = numbers_of(q, {(): "one number", (F,): f"one per feature ({F})"}, "q")
        times = [len(feature.values) if feature.is_bag else 1 for feature in encoding.features]  # all items of a bag have its q
        values[:] = np.repeat(given, times) if given.ndim else given
        if not ((values > 0) & (values < 1)).all():
            raise ParameterError("{parameter} must lie strictly between 0 and 1, not {value!r}.", parameter="q", value=q)
    free = np.full((S, D), is_learned(q))
    if subspace_prior is not None:
        what = "feature or item" if encoding.bags else "feature"
        given = numbers_of(subspace_prior, {(S, D): f"one number per cluster and {what}, ({S}, {D})"}, "subspace_prior")
        own = ~np.isnan(given)
        if not ((given[own] > 0) & (given[own] < 1)).all():
            raise ParameterError(
                "{parameter} must lie strictly between 0 and 1, or be NaN where {q} holds; use {pins} for certainty.",
                parameter="subspace_prior",
                q=Setting("q"),
                pins=Setting("pins"),
            )
        values[own], free[own] = given[own], False
    if is_learned(q) and not free.any():
        raise ParameterError(
            "{learned} has nothing to learn: {parameter} gives every feature of every cluster a number.",
            parameter="subspace_prior",
            learned=Setting("q", "learn"),
        )
    return values, free


class Held(NamedTuple):
    """What the user holds fixed, or makes more probable; None where there is nothing."""

    weight: np.ndarray | None  # (M, 1) or (M, S) of the candidates
    z: np.ndarray | None
    omega: np.ndarray | None


def check_prototype_prior(weights: Any, M: int, S: int, auto: bool) -> np.ndarray | None:
    """Weights of the candidates, (M, 1) or (M, S), or None if all are equal."""
    if weights is None:
        return None
    shapes: dict[tuple[int, ...], str] = {(M,): f"one number per candidate ({M})"}
    if not auto:
        shapes[S, M] = f"per cluster and candidate, ({S}, {M})"
    values = numbers_of(weights, shapes, "prototype_prior").reshape(-1, M).T
    if not np.isfinite(values).all() or (values < 0).any() or not values.any(axis=0).all():
        raise ParameterError(
            "{parameter} must be finite, at least 0, and not all 0 for any cluster.", parameter="prototype_prior", value=weights
        )
    relative: np.ndarray = values / values.max(axis=0)  # so that their sum stays finite
    return relative


def check_prior_of_rows(given: Given, settings: Settings, catalogue: Codes, q: np.ndarray, N: int, encoding: Encoding) -> Held:
    """Prior weights of the candidates, and pins."""
    S, M = len(q), catalogue.n_rows
    if settings.auto and given.pins is not None:
        raise one_number_of_clusters("pins")
    weight = check_prototype_prior(given.prototype_prior, M, S, settings.auto)
    weight = weigh_gaps(catalogue.x, q) if weight is None else weight
    if catalogue.bags is not None:
        weight = bar_empty(weight, (catalogue.bags.sizes == 0) & (catalogue.x < 0).all(axis=1))
    if given.pins is None:
        return Held(weight, None, None)
    pins = check_pins(given.pins)
    if pins["prototypes"]:
        weight = pin_prototypes(pins["prototypes"], np.ones((M, 1)) if weight is None else weight, S, catalogue)
    z_held = pin_cases(pins["cases"], N, S) if pins["cases"] else None
    return Held(weight, z_held, pin_subspaces(pins["subspaces"], S, encoding) if pins["subspaces"] else None)


def one_number_of_clusters(name: str) -> ParameterError:
    return ParameterError(
        "{parameter} speaks of single clusters, so {n_clusters} must be a number, not 'auto'.",
        parameter=name,
        n_clusters=Setting("n_clusters"),
    )


# --- pins ----------------------------------------------------------------------------------------------------------------


def check_pins(pins: Any) -> dict[str, Mapping[Any, Any]]:
    if not isinstance(pins, Mapping) or set(pins) - set(PINNED):
        raise ParameterError(
            "{parameter} must be a mapping with some of the keys 'prototypes', 'subspaces' and 'cases'.",
            parameter="pins",
            value=pins,
        )
    parts = {name: {} if pins.get(name) is None else pins[name] for name in PINNED}
    for name, part in parts.items():
        if not isinstance(part, Mapping):
            raise ParameterError(
                "{parameter} must be a mapping, not {value!r}.", parameter=Setting("pins", column=name), value=part
            )
    return parts


def pin_prototypes(prototypes: Mapping[Any, Any], weight: np.ndarray, S: int, catalogue: Codes) -> np.ndarray:
    """A pinned prototype is one of weight 1 among weights 0. It has a value, and is the prototype of one cluster."""
    M, of = len(weight), dict[int, int]()
    weight = np.repeat(weight, S // weight.shape[1], axis=1)
    for s, m in prototypes.items():
        cluster, row = index_of(s, S, "prototypes", "cluster"), index_of(m, M, "prototypes", "candidate")
        if not catalogue.take([row]).known[0]:
            raise ParameterError(
                "{parameter} names the candidate {value}, which has no value at all, so nothing could be copied from it.",
                parameter=Setting("pins", column="prototypes"),
                value=row,
            )
        if row in of:
            raise ParameterError(
                "{parameter} names the candidate {value} for the clusters {first} and {second}; each needs one of its own.",
                parameter=Setting("pins", column="prototypes"),
                value=row,
                first=of[row],
                second=cluster,
            )
        of[row] = cluster
        weight[:, cluster] = np.arange(M) == row
    return weight


def pin_cases(cases: Mapping[Any, Any], N: int, S: int) -> np.ndarray:
    z_held = np.full(N, -1)
    for i, s in cases.items():
        z_held[index_of(i, N, "cases", "case")] = index_of(s, S, "cases", "cluster")
    return z_held


def pin_subspaces(subspaces: Mapping[Any, Any], S: int, encoding: Encoding) -> np.ndarray:
    omega_held = np.full((S, len(encoding.column_names)), -1)
    for s, of in subspaces.items():
        index_of(s, S, "subspaces", "cluster")
        where = f"pins['subspaces'][{s!r}]"
        if not isinstance(of, Mapping):
            raise ParameterError(
                "{where} must be a mapping from features to True or False, not {value!r}.",
                parameter="pins",
                where=where,
                value=of,
            )
        for key, on in of.items():
            if not isinstance(on, (bool, np.bool_)):
                raise ParameterError(
                    "{where}[{key!r}] must be True or False, not {value!r}.", parameter="pins", where=where, key=key, value=on
                )
            j = encoding.find(key, where)
            if omega_held[s, j] >= 0:
                raise ParameterError(
                    "{where} has the feature {key!r} twice, by name and by position.", parameter="pins", where=where, key=key
                )
            omega_held[s, j] = on
    return omega_held


def index_of(value: Any, n: int, part: str, what: str) -> int:
    if not is_int(value) or not 0 <= value < n:
        raise ParameterError(
            "{parameter} names the {what} {value!r}; there are {n}, counted from 0.",
            parameter=Setting("pins", column=part),
            what=what,
            value=value,
            n=n,
        )
    return int(value)


# --- starts --------------------------------------------------------------------------------------------------------------


def start_names(init: Any, n_chains: int) -> tuple[str, ...]:
    """The kind of start of each chain."""
    names = [init] if isinstance(init, str) else list(init) if isinstance(init, (list, tuple, np.ndarray)) else [init]
    wrong = (
        [name for name in names if name not in STARTS and not (name == "mixed" and isinstance(init, str))] if names else [init]
    )
    if wrong:
        raise ParameterError(
            "{parameter} must be 'seeded', 'cases', 'cells' or 'mixed', or one of the first three per chain, not {value!r}.",
            parameter="init",
            value=wrong[0],
        )
    if isinstance(init, str):
        return tuple(MIXED[c % len(MIXED)] if init == "mixed" else init for c in range(n_chains))
    if len(names) != n_chains:
        raise ParameterError(
            "{parameter} names {n} starts, but {n_chains}: give one for each chain.",
            parameter="init",
            n=len(names),
            n_chains=Setting("n_chains", n_chains),
        )
    return tuple(names)


def check_labels(labels: Any, cases: Codes, S: int) -> np.ndarray:
    """Labels to start from: one per case, or one per case and feature; -1 for unknown."""
    found, (N, P) = np.asarray(labels), cases.x.shape
    if found.shape != (N,) and (found.shape != (N, P) or cases.bags is not None):
        raise ParameterError(
            "{parameter} has labels of shape {shape}, but there are {N} cases{and_features}: give one label per case{or_cell}.",
            parameter="init",
            shape=found.shape,
            N=N,
            and_features=f" of {P} features" if cases.bags is None else "",
            or_cell=", or one per case and feature" if cases.bags is None else "",
        )
    if found.dtype.kind not in "iu" or found.min() < -1 or found.max() >= S:
        raise ParameterError(
            "The labels in {parameter} must be whole numbers from 0 to {n_clusters} - 1 = {last}, or -1 for unknown.",
            parameter="init",
            n_clusters=Setting("n_clusters"),
            last=S - 1,
            value=labels,
        )
    return found.astype(np.int64)
