"""What a fit is: Fitted, frozen. Explanations, plots, reports, the classifier, studies and files see this and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import storage
from .errors import Setting
from .reading.columns import Columns
from .reading.encoding import Encoding
from .sampling.diagnostics import TRACED, Diagnostics, diagnose
from .sampling.folding import Folds
from .sampling.hyper import LEARNED, Learn
from .sampling.large import Sample, summarise_large
from .sampling.plan import Plan, Round
from .sampling.posterior import AGREE, Posterior, equal_cases, summarise
from .sampling.problem import STARTS, Problem, is_int
from .sampling.prototypes import NEVER, Candidate, Catalogue, prototype_posterior, rank_prototypes
from .sampling.run import Draws, Run
from .state import Cells, Data, Hyper, longest, make_book

NUMBERS = ("alpha", "lam", "c", "gamma")  # of Hyper; the rest are arrays
PARTS = ("data", "book", "given", "posterior", "trace", "hyper", "draws", "sample")  # of a file


class Interval(NamedTuple):
    """Posterior mean of a number, and the interval that holds it with probability 0.9."""

    mean: float
    low: float
    high: float


class KeptDraws(NamedTuple):
    """Every kept draw, labels aligned: the first axis is the chain, the second the draw.

    With n_clusters="auto" S is `max_clusters`; the labels from `n_clusters_` on are the main one of no case.
    """

    z: np.ndarray  # (chains, draws, N, P) cluster of each cell; 0 where it is missing; (chains, draws, cells) with bags
    p: np.ndarray  # (chains, draws, S) row of the catalogue
    omega: np.ndarray  # (chains, draws, S, columns)
    log_joint: np.ndarray  # (chains, draws)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit: the problem, the hyperparameters, the posterior, and the trace of the run."""

    problem: Problem
    hyper: Hyper  # posterior means for what was learned, for the clusters in use
    posterior: Posterior
    trace: dict[str, np.ndarray]  # name → (chains, sweeps)
    kept: Round  # the sweeps that the kept draws come from
    interrupted: bool = False
    draws: KeptDraws | None = None
    case_names: tuple[str, ...] | None = None  # of the rows of the catalogue
    cluster_names: tuple[str, ...] | None = None  # given by a person
    settings: Mapping[str, Any] | None = None  # the parameters of the estimator, as JSON takes them
    sample: Sample | None = None  # of which cases these are a sample, if the table was read in parts

    @classmethod
    def of_run(cls, run: Run, case_names: tuple[str, ...] | None = None, results: Path | None = None) -> Fitted:
        """What the chains of a run have found so far. `results`: where those of all cases go, if these are not in memory."""
        problem, draws, sample = run.problem, run.draws(), None
        if results is not None:
            problem, posterior, sample = summarise_large(problem, draws.chains, results)
            if problem.data.own_cases and len(sample.rows) < sample.n_cases:
                case_names = tuple(f"case {row}" for row in sample.rows.tolist())
        else:
            posterior = summarise(draws.chains, equal_cases(problem.data), prune=problem.learn.beta)
        return cls(
            problem=problem,
            hyper=mean_hyper(problem, posterior, draws),
            posterior=posterior,
            trace=draws.trace,
            kept=draws.kept,
            interrupted=draws.interrupted,
            draws=kept_draws(draws, posterior.relabel, problem.data) if problem.plan.keep_draws else None,
            case_names=case_names,
            sample=sample,
        )

    # --- sizes and names ----------------------------------------------------------------------------------------------

    @property
    def encoding(self) -> Encoding:
        """What the columns were."""
        return self.problem.encoding

    @cached_property
    def columns(self) -> Columns:
        """The columns of ω: single features, and items."""
        return Columns(self.encoding)

    @property
    def data(self) -> Data:
        """The cases and the catalogue as codes."""
        return self.problem.data

    @property
    def plan(self) -> Plan:
        return self.problem.plan

    @property
    def n_cases(self) -> int:
        return len(self.data.x)

    @property
    def n_clusters(self) -> int:
        return len(self.hyper.beta)

    @property
    def n_sweeps(self) -> int:
        return int(self.trace["log_joint"].shape[1])

    @property
    def n_chains(self) -> int:
        return len(self.trace["log_joint"])

    def name_of(self, row: int) -> str:
        """Of a row of the catalogue."""
        return f"case {int(row)}" if self.case_names is None else self.case_names[int(row)]

    def name_of_case(self, row: int) -> str:
        """Of a case; it has one of its own if prototypes are chosen from the cases themselves."""
        return self.name_of(row) if self.data.own_cases else f"case {int(row)}"

    def named(self, names: tuple[str, ...] | None) -> Fitted:
        """The same with other names of the rows of the catalogue."""
        return replace(self, case_names=names)

    def with_cluster_names(self, names: tuple[str, ...] | None) -> Fitted:
        """The same with other names of the clusters."""
        return replace(self, cluster_names=names)

    def with_sample(self, sample: Sample) -> Fitted:
        return replace(self, sample=sample)

    @property
    def scope(self) -> str:
        """What explanations rest on, if it is not all cases: a sentence."""
        if self.sample is None or len(self.sample.rows) == self.sample.n_cases:
            return ""
        return f"Sizes and shares are those of a sample: {len(self.sample.rows):,} of the {self.sample.n_cases:,} cases."

    def with_settings(self, settings: Mapping[str, Any]) -> Fitted:
        return replace(self, settings=settings)

    # --- what was found -------------------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> np.ndarray:
        """(N,) The cluster with the largest membership; equal cases have equal memberships, so equal labels."""
        labels: np.ndarray = np.argmax(self.posterior.memberships, axis=1)
        return labels

    @cached_property
    def sizes(self) -> np.ndarray:
        """(S,) Cases whose main cluster it is."""
        return np.bincount(self.labels, minlength=self.n_clusters)

    @cached_property
    def cases_with(self) -> np.ndarray:
        """(codes of the columns, S) How many cases of each cluster have each value."""
        return self.columns.count(self.data.cases, self.labels, self.n_clusters)

    @property
    def folds(self) -> Folds:
        """The clusters, as new cases are folded into them."""
        return Folds(self.posterior, self.hyper, self.data.book, self.plan.seed)

    @cached_property
    def candidates(self) -> list[tuple[Candidate, ...]]:
        """For each cluster the posterior of its prototype: every case that was drawn, the most probable first."""
        return prototype_posterior(self.posterior.p, self.data.candidate_cells, self.data.log_weight)

    @cached_property
    def prototype_ranking(self) -> list[tuple[Candidate, ...]]:
        """For each cluster the case that stands for it, and after it the other members that were drawn."""
        post, data = self.posterior, self.data
        n_draws = post.p.shape[0] * post.p.shape[1]
        of = Catalogue(data.candidate_cells, data.log_weight, self.homes, post.values, n_draws)
        return rank_prototypes(self.candidates, of)

    @cached_property
    def homes(self) -> np.ndarray:
        """(M,) The cluster that each row of the catalogue belongs to; NEVER for empty rows, and for others never drawn.

        A case of the fit belongs to its main cluster. A row of a catalogue of its own is folded in.
        """
        catalogue = self.data.catalogue
        if self.data.own_cases:
            homes = self.labels.copy()
        else:
            rows = np.unique(self.posterior.p)
            homes = np.full(catalogue.n_rows, NEVER)
            homes[rows] = np.argmax(self.folds.memberships(catalogue.take(rows)), axis=1)
        homes[self.columns.is_empty(catalogue)] = NEVER
        return homes

    @cached_property
    def prototypes(self) -> np.ndarray:
        """(S,) Row of the catalogue: a member of its cluster, and of no two clusters the same."""
        return np.array([ranked[0].row for ranked in self.prototype_ranking])

    @cached_property
    def prototype_values(self) -> np.ndarray:
        """(S, features) What the prototypes are like; None where a value is missing, and a tuple of items for a bag."""
        return self.encoding.decode(*self.data.catalogue.take(self.prototypes))

    @cached_property
    def prototype_codes(self) -> np.ndarray:
        """(S, D) The codes of the prototypes in all columns."""
        return self.columns.codes(self.data.catalogue.take(self.prototypes))

    @property
    def subspaces(self) -> np.ndarray:
        """(S, P) Does the feature matter to the cluster?"""
        return self.posterior.omega_prob > 0.5

    @cached_property
    def value_probabilities(self) -> list[np.ndarray]:
        """For each feature (S, V_j)."""
        return [part.T for part in np.split(self.posterior.values, self.encoding.offset[1:-1])]

    @cached_property
    def diagnostics(self) -> Diagnostics:
        name, most = "n_iter" if len(self.plan.rounds) == 1 else "max_iter", self.plan.n_iter
        longer = Setting(name, most if self.interrupted else 2 * most)
        return diagnose(self.trace, self.kept, self.posterior.overlap, longer)

    def pooled(self, name: str) -> np.ndarray:
        """A traced quantity over the kept sweeps of the chains that the results rest on."""
        return self.trace[name][self.posterior.overlap >= AGREE, self.kept.first : self.kept.end]

    @cached_property
    def hyperparameters(self) -> dict[str, Interval]:
        """Those that were learned."""
        learned = {name: self.pooled(name) for name in LEARNED if name in self.trace}
        return {
            name: Interval(float(values.mean()), *np.quantile(values, (0.05, 0.95)).tolist())
            for name, values in learned.items()
        }

    @cached_property
    def n_clusters_probabilities(self) -> dict[int, float] | None:
        """Of each number of clusters in use, if that was to be found."""
        if "clusters_in_use" not in self.trace:
            return None
        found, times = np.unique(self.pooled("clusters_in_use"), return_counts=True)
        return dict(zip(found.astype(int).tolist(), (times / times.sum()).tolist(), strict=True))

    # --- files ----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file: arrays and JSON, no pickle."""
        header, parts = problem_parts(self.problem)
        header |= {
            "settings": self.settings,
            "kept": list(self.kept),
            "interrupted": self.interrupted,
            "n_all": None if self.sample is None else self.sample.n_cases,
            "hyper": {name: getattr(self.hyper, name) for name in NUMBERS},
            "case_names": None if self.case_names is None else list(self.case_names),
            "cluster_names": None if self.cluster_names is None else list(self.cluster_names),
        }
        parts |= {
            "posterior": self.posterior._asdict(),
            "trace": self.trace,
            "hyper": {"beta": self.hyper.beta, "q": self.hyper.q},
            "draws": {} if self.draws is None else self.draws._asdict(),
            "sample": {} if self.sample is None else {"rows": self.sample.rows},
        }
        arrays = {f"{part}/{name}": value for part, of in parts.items() for name, value in of.items()}
        storage.write(path, "model", header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Fitted:
        """Read what `save` wrote. A damaged, foreign or newer file raises `FileFormatError`."""
        header, arrays = storage.read(path, "model")
        try:
            need(header["case_names"] is None or isinstance(header["case_names"], list), "names")
            parts: dict[str, dict[str, np.ndarray]] = {name: {} for name in PARTS}
            for name, value in arrays.items():
                kind, _, rest = name.partition("/")
                parts[kind][rest] = value
            names, of_clusters = header["case_names"], header["cluster_names"]
            of_hyper: dict[str, Any] = {**parts["hyper"]}
            fitted = cls(
                problem=problem_from_parts(header, parts),
                hyper=Hyper(**header["hyper"], **of_hyper),
                posterior=Posterior(**parts["posterior"]),
                trace=parts["trace"],
                kept=Round(*header["kept"]),
                interrupted=header["interrupted"],
                draws=KeptDraws(**parts["draws"]) if parts["draws"] else None,
                case_names=None if names is None else tuple(names),
                cluster_names=None if of_clusters is None else tuple(of_clusters),
                settings=header["settings"],
                sample=Sample(parts["sample"]["rows"], header["n_all"]) if parts["sample"] else None,
            )
            check(fitted)
        except Exception as error:  # whatever a damaged or hostile file leads to
            raise storage.FileFormatError(f"{os.fspath(path)!r} is not a whole bayescase model ({error!r}).") from error
        return fitted


def mean_hyper(problem: Problem, posterior: Posterior, draws: Draws) -> Hyper:
    """The hyperparameters, with posterior means for what was learned, for the clusters in use."""
    S, learn, hyper = posterior.memberships.shape[1], problem.learn, problem.hyper
    pooled = posterior.overlap >= AGREE
    mean = {name: float(draws.trace[name][pooled, draws.kept.first : draws.kept.end].mean()) for name in learn.names}
    q = np.where(learn.q_free, mean.pop("q", 0.5), hyper.q)[:S]
    beta = posterior.prior.mean(axis=0)
    return hyper._replace(**mean, beta=beta / beta.sum(), q=q)


def kept_draws(draws: Draws, relabel: np.ndarray, data: Data) -> KeptDraws:
    """Every kept draw, labels as in the posterior."""
    chains = [(chain.kept, order) for chain, order in zip(draws.chains, relabel, strict=True)]
    z, missing = [], data.x < 0 if data.bags is None else data.cells.codes < 0
    for kept, order in chains:
        labels = kept.of_draws("z")
        z.append(np.where(missing, 0, np.argsort(order).astype(labels.dtype)[labels]))
    return KeptDraws(
        z=np.stack(z),
        p=np.stack([kept.of_draws("p")[:, order] for kept, order in chains]),
        omega=np.stack([kept.of_draws("omega")[:, order] for kept, order in chains]),
        log_joint=np.stack([kept.of_draws("log_joint") for kept, _ in chains]),
    )


def problem_parts(problem: Problem) -> tuple[dict[str, Any], dict[str, dict[str, np.ndarray]]]:
    """(header, arrays by part) of a problem, with which a run can go on."""
    data, hyper, learn, plan = problem.data, problem.hyper, problem.learn, problem.plan
    header = {
        **problem.encoding.to_json(),
        "plan": plan._asdict() | {"start": list(plan.start) if isinstance(plan.start, tuple) else None},
        "given": {name: getattr(hyper, name) for name in NUMBERS},
        "learn": {"names": learn.names, "beta": learn.beta},
        "own_cases": data.own_cases,
    }
    parts = {
        "data": {name: getattr(data, name) for name in ("x", "candidates", "log_weight", "z_held", "omega_held")},
        "book": {name: getattr(data.book, name) for name in ("base", "k_ptr", "k_idx", "k_val")},
        "given": {"beta": hyper.beta, "q": hyper.q, "q_free": learn.q_free, "n_i": problem.n_i},
    }
    if data.own_cases:
        del parts["data"]["candidates"]
    for name in ("bags", "candidate_bags"):
        of = getattr(data, name)
        if of is not None and not (name == "candidate_bags" and of is data.bags):
            parts["data"] |= {f"{name}/codes": of.codes, f"{name}/first": of.first}
    if not isinstance(plan.start, tuple):
        parts["given"]["start"] = plan.start
    return header, parts


def problem_from_parts(header: dict[str, Any], parts: dict[str, dict[str, np.ndarray]]) -> Problem:
    """The problem that `problem_parts` took apart."""
    if header["own_cases"]:
        parts["data"]["candidates"] = parts["data"]["x"]
    plan, given = header["plan"], parts["given"]
    start = given["start"] if plan["start"] is None else tuple(plan["start"])
    rounds, single_label = tuple(Round(*r) for r in plan["rounds"]), tuple(plan["single_label"])
    encoding = Encoding.from_json(header)
    return Problem(
        encoding=encoding,
        data=data_from_parts(parts, encoding),
        hyper=Hyper(**header["given"], beta=given["beta"], q=given["q"]),
        learn=Learn(tuple(header["learn"]["names"]), given["q_free"], header["learn"]["beta"]),
        plan=Plan(**plan | {"start": start, "rounds": rounds, "single_label": single_label}),
        n_i=given["n_i"],
    )


def data_from_parts(parts: dict[str, dict[str, np.ndarray]], encoding: Encoding) -> Data:
    """The arrays of the cases; bags are kept as codes and where each row begins."""
    found: dict[str, Any] = dict(parts["data"])
    for name in ("bags", "candidate_bags"):
        if f"{name}/codes" in found:
            found[name] = Cells(found.pop(f"{name}/codes"), found.pop(f"{name}/first"))
    if "bags" in found:
        found.setdefault("candidate_bags", found["bags"])
    book = parts["book"]
    similarity = (book["k_ptr"], book["k_idx"], book["k_val"])
    return Data(**found, book=make_book(encoding.offset, encoding.n_single, similarity, book["base"]))


# --- what a file holds -----------------------------------------------------------------------------------------------------


def check(fitted: Fitted) -> None:
    """Raise unless the parts of a file fit together: compiled code trusts shapes and codes."""
    data, book, hyper, post, trace = fitted.data, fitted.data.book, fitted.hyper, fitted.posterior, fitted.trace
    (N, P), M, S, V = data.x.shape, len(data.candidates), len(hyper.beta), int(fitted.encoding.offset[-1])
    labels = post.relabel.shape[1]  # more than clusters, if their number was to be found
    (C, T), K, (first, end), plan = trace["log_joint"].shape, len(book.k_idx), fitted.kept, fitted.plan
    D = book.n_columns
    need(fitted.encoding.n_single == P == data.candidates.shape[1], "features")
    need((data.bags is None) == (data.candidate_bags is None) == (book.n_bags == 0), "bags")
    check_problem(fitted.problem, labels)
    need(set(TRACED) <= set(trace) <= {*TRACED, *LEARNED, "clusters_in_use"}, "traces")
    need(is_int(plan.seed) and 0 <= plan.seed < 2**63, "seed")
    for names, n in ((fitted.case_names, M), (fitted.cluster_names, S)):
        need(names is None or (len(names) == n and all(isinstance(name, str) for name in names)), "names")
    need(is_int(first) and is_int(end) and is_int(plan.thin), "kept sweeps")
    need(0 <= first < end <= T and plan.thin > 0 and isinstance(fitted.interrupted, bool), "kept sweeps")
    need(all(isinstance(value, float) for value in (hyper.alpha, hyper.lam, hyper.c, hyper.gamma)), "hyperparameters")
    need(hyper.alpha >= 0 and hyper.lam > 0 and hyper.c >= 0 and bool((hyper.q > 0).all() and (hyper.q < 1).all()), "range")
    for whole, shape, low, high in (
        *(((data.x, (N, P), -1, V), (data.candidates, (M, P), -1, V)) if P else ()),
        (book.k_ptr, (V + 1,), 0, K + 1),
        (book.k_idx, (K,), 0, V),
        (post.p, (None, None, S), 0, M),
        (post.relabel, (C, labels), 0, labels),
    ):
        need_codes(whole, shape, low, high)
    for bags, n in ((data.bags, N), (data.candidate_bags, M)):
        if bags is not None:
            need_codes(bags.codes, (None,), int(book.offset[P]), V)
            need_codes(bags.first, (n + 1,), 0, len(bags.codes) + 1)
            need(bags.first[0] == 0 and bags.first[-1] == len(bags.codes) and bool((bags.sizes >= 0).all()), "bags")
    need(labels >= S and bool((post.prior >= 0).all() and post.prior.any(axis=1).all()), "labels")
    for real, shape in (
        (data.log_weight, (M, 1 if data.log_weight.shape[1] == 1 else labels)),
        (book.k_val, (K,)),
        (book.base, (V,)),
        (hyper.beta, (S,)),
        (hyper.q, (S, D)),
        (post.memberships, (N, S)),
        (post.values, (V, S)),
        (post.omega_prob, (S, D)),
        (post.copied, (V, S)),
        (post.tables, (None, V, S)),
        (post.prior, (len(post.tables), S)),
        (post.overlap, (C,)),
        *((value, (C, T)) for value in trace.values()),
    ):
        need_numbers(real, shape)
    if fitted.sample is not None:
        need(is_int(fitted.sample.n_cases), "sample")
        need_codes(fitted.sample.rows, (N,), 0, fitted.sample.n_cases)
    if fitted.draws is not None:
        kept, draws = (C, len(range(first, end, plan.thin))), fitted.draws
        need_codes(draws.z, (*kept, N, P) if data.bags is None else (*kept, len(data.cells.codes)), 0, labels)
        need_codes(draws.p, (*kept, labels), 0, M)
        need_numbers(draws.omega, (*kept, labels, D))
        need_numbers(draws.log_joint, kept)


def check_problem(problem: Problem, S: int) -> None:
    """What is needed to run on: S labels, of which some may not be in use."""
    data, hyper, learn, plan = problem.data, problem.hyper, problem.learn, problem.plan
    N, D, most = len(data.x), data.book.n_columns, longest(data.cells)
    need(set(learn.names) <= set(LEARNED) and isinstance(learn.beta, bool), "learned")
    need(all(isinstance(getattr(hyper, name), float) for name in NUMBERS), "given hyperparameters")
    need(hyper.alpha >= 0 and hyper.lam > 0 and hyper.c >= 0 and bool((hyper.q > 0).all() and (hyper.q < 1).all()), "range")
    need_numbers(hyper.beta, (S,))
    need_numbers(hyper.q, (S, D))
    need_numbers(learn.q_free, (S, D))
    need_codes(problem.n_i, (most + 1,), 0, N + 1)
    if len(data.z_held):
        need_codes(data.z_held, (N,), -1, S)
    if len(data.omega_held):
        need_codes(data.omega_held, (S, D), -1, 2)
    need(plan.sampler in ("rows", "collapsed") and isinstance(plan.keep_draws, bool) and len(plan.rounds) > 0, "plan")
    need(all(is_int(n) for r in plan.rounds for n in r) and all(0 <= r.first < r.end for r in plan.rounds), "rounds")
    need(is_int(plan.n_chains) and len(plan.single_label) == plan.n_chains and all(map(is_int, plan.single_label)), "chains")
    if isinstance(plan.start, tuple):
        need(len(plan.start) == plan.n_chains and set(plan.start) <= set(STARTS), "starts")
    else:
        need_codes(plan.start, (N,) if plan.start.ndim == 1 else data.x.shape, -1, S)


def need(true: bool, what: str) -> None:
    if not true:
        raise ValueError(what)


def need_codes(array: np.ndarray, shape: tuple[int | None, ...], low: int, high: int) -> None:
    need(array.dtype.kind in "iu" and fits(array.shape, shape), "shape")
    need(array.size > 0 and array.min() >= low and array.max() < high, "codes")


def need_numbers(array: np.ndarray | None, shape: tuple[int | None, ...]) -> None:
    need(array is not None and array.dtype.kind in "fb" and fits(array.shape, shape), "shape")


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(n > 0 and want in (n, None) for n, want in zip(shape, wanted, strict=True))
