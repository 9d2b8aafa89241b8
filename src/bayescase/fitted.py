"""What a fit is: Fitted, frozen. Explanations, plots, reports, the classifier, studies and files see this and nothing else."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import __version__, storage
from .errors import Setting
from .kernels import row_hashes
from .parallel import each, portions
from .reading.columns import Columns
from .reading.encoding import Encoding
from .sampling import filing
from .sampling.diagnostics import TRACED, Diagnostics, at_the_cap, diagnose, stopped_early, to_arviz
from .sampling.differing import Differing, differing
from .sampling.filing import need, need_codes, need_numbers
from .sampling.folding import Folds
from .sampling.hyper import LEARNED
from .sampling.joining import Groups, join_posterior, order_groups
from .sampling.large import Sample, summarise_large
from .sampling.plan import Plan, Round
from .sampling.posterior import AGREE, Posterior, equal_hashes, summarise
from .sampling.problem import Problem
from .sampling.prototypes import NEVER, Candidate, Catalogue, prototype_posterior, rank_prototypes
from .sampling.results import KeptDraws, kept_draws, mean_hyper
from .sampling.run import Draws
from .sampling.structure import has_structure, without_structure
from .sampling.tree import Found, Tree, make_tree
from .sampling.values import is_int
from .state import Data, Hyper

FULL = 0.05  # if all clusters are in use with this probability, there may be more
PARTS = ("data", "book", "given", "posterior", "trace", "hyper", "draws", "sample")  # of a file


class Interval(NamedTuple):
    """Posterior mean of a number, and the interval that holds it with probability 0.9."""

    mean: float
    low: float
    high: float


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
    whole: Fitted | None = None  # the fit that this one is folded from
    groups: Groups = ()  # its clusters that are one here
    sample: Sample | None = None  # of which cases these are a sample, if the table was read in parts

    @classmethod
    def of_draws(
        cls, problem: Problem, draws: Draws, case_names: tuple[str, ...] | None = None, results: Path | None = None
    ) -> Fitted:
        """What the chains of a run have found. `results`: folder for those of all cases, if these are not in memory."""
        sample, hashes = None, None
        if results is not None:
            problem, posterior, sample = summarise_large(problem, draws.chains, results)
            if problem.data.own_cases and len(sample.rows) < sample.n_cases:
                case_names = tuple(f"case {row}" for row in sample.rows.tolist())
        else:
            hashes = row_hashes(problem.data.cells)
            posterior = summarise(draws.chains, equal_hashes(hashes, problem.data.z_held), prune=problem.learn.beta)
        fitted = cls(
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
        if hashes is not None and problem.data.own_cases and problem.data.bags is None:
            vars(fitted)["hashes"] = hashes  # which are those of the catalogue, too
        return fitted

    # --- sizes and names ----------------------------------------------------------------------------------------------

    @property
    def encoding(self) -> Encoding:
        """How the columns were read."""
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
        """The name of a row of the catalogue, with its number if others are called the same."""
        number = f"{'case' if self.data.own_cases else 'candidate'} {int(row)}"
        if self.case_names is None:
            return number
        name = self.case_names[int(row)]
        return f"{name} ({number})" if name in self.shared_names else name

    @cached_property
    def shared_names(self) -> frozenset[str]:
        """Those that several rows of the catalogue have."""
        return frozenset(name for name, times in Counter(self.case_names or ()).items() if times > 1)

    def name_of_case(self, row: int) -> str:
        """The name of a case: that of its row of the catalogue, if prototypes are chosen from the cases."""
        return self.name_of(row) if self.data.own_cases else f"case {self.table_row(row)}"

    def table_row(self, row: int | np.integer[Any], candidate: bool = False) -> int:
        """Which row of the table a case is, or a candidate; they differ if the cases are a sample."""
        here = self.sample is None or (candidate and not self.data.own_cases)
        return int(row if here or self.sample is None else self.sample.rows[row])

    def named(self, names: tuple[str, ...] | None) -> Fitted:
        """The same with other names of the rows of the catalogue."""
        return replace(self, case_names=names)

    def with_feature_names(self, names: Sequence[str]) -> Fitted:
        """The same with names for the columns of a table that had none."""
        problem = self.problem._replace(encoding=self.encoding.renamed(names))
        return replace(self, problem=problem, whole=None if self.whole is None else self.whole.with_feature_names(names))

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

    # --- fewer clusters -------------------------------------------------------------------------------------------------

    @cached_property
    def tree(self) -> Tree:
        """Which clusters may be told as one; of a folded fit, the tree of the whole."""
        if self.whole is not None:
            return self.whole.tree
        return make_tree(Found(self.data, self.hyper, self.labels, self.posterior.p, self.plan.seed))

    def folded(self, groups: Groups, names: tuple[str, ...] | None = None) -> Fitted:
        """The same with groups of clusters in place of clusters; what is folded already is unfolded first."""
        whole = self.whole or self
        groups = order_groups(groups, whole.posterior.memberships)
        posterior, data, hyper = join_posterior(whole.posterior, whole.data, whole.hyper, groups, whole.plan.seed)
        if names is None and whole.cluster_names is not None:
            names = tuple(" + ".join(filter(None, (whole.cluster_names[s] for s in group))) for group in groups)
        fewer = replace(whole, problem=whole.problem._replace(data=data), hyper=hyper, posterior=posterior, draws=None)
        sample = None if whole.sample is None else Sample(*whole.sample[:2])  # results of all cases have clusters, not groups
        return replace(fewer, cluster_names=names, case_names=self.case_names, whole=whole, groups=groups, sample=sample)

    # --- what was found -------------------------------------------------------------------------------------------------

    @cached_property
    def labels(self) -> np.ndarray:
        """(N,) The cluster with the largest membership; equal cases have equal memberships, so equal labels."""
        memberships = self.posterior.memberships
        return np.concatenate(each(lambda rows: memberships[rows].argmax(axis=1), portions(len(memberships))))

    @cached_property
    def known(self) -> np.ndarray:
        """(N,) Has the case a value?"""
        return self.data.cases.known

    @cached_property
    def main(self) -> np.ndarray:
        """(N,) The cluster that a case counts for: its label; NEVER if it has no value: nothing says where it belongs."""
        return np.where(self.known, self.labels, NEVER)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(S,) Cases whose main cluster it is."""
        return np.bincount(self.labels[self.known], minlength=self.n_clusters)

    @cached_property
    def cases_with(self) -> np.ndarray:
        """(codes of the columns, S) How many cases of each cluster have each value."""
        return self.columns.count(self.data.cases, self.main, self.n_clusters)

    @property
    def folds(self) -> Folds:
        """The clusters, as new cases are folded into them."""
        whole = self.whole or self
        return Folds(whole.posterior, whole.hyper, whole.data.book, whole.plan.seed, self.groups)

    @cached_property
    def candidates(self) -> list[tuple[Candidate, ...]]:
        """For each cluster the posterior of its prototype: every case that was drawn, the most probable first."""
        return prototype_posterior(self.posterior.p, self.hashes, self.data.log_weight)

    @cached_property
    def hashes(self) -> np.ndarray:
        """(M,) Of the rows of the catalogue: equal rows have equal ones."""
        return row_hashes(self.data.candidate_cells)

    @cached_property
    def prototype_ranking(self) -> list[tuple[Candidate, ...]]:
        """For each cluster the case that stands for it, and after it the other members that were drawn and could."""
        post, data = self.posterior, self.data
        bare, rows = np.full(len(self.homes), NEVER), np.flatnonzero(self.homes == NEVER)
        rows = rows[(data.catalogue.x[rows] >= 0).any(axis=1)]
        bare[rows] = self.belongs[rows]
        of = Catalogue(data.candidate_cells, data.log_weight, self.homes, bare, post.values, post.copied)
        return rank_prototypes(self.candidates, of)

    @cached_property
    def homes(self) -> np.ndarray:
        """(M,) `belongs`, but NEVER for rows in which there is nothing."""
        homes = self.belongs.copy()
        homes[self.columns.is_empty(self.data.catalogue)] = NEVER
        return homes

    @cached_property
    def belongs(self) -> np.ndarray:
        """(M,) The cluster that each row of the catalogue belongs to; NEVER for rows of a catalogue of its own never drawn.

        A case of the fit belongs to its main cluster. A row of a catalogue of its own is folded in.
        """
        catalogue = self.data.catalogue
        if self.data.own_cases:
            return self.main
        rows = np.unique(self.posterior.p)
        found = np.full(catalogue.n_rows, NEVER)
        found[rows] = np.argmax(self.folds.memberships(catalogue.take(rows)), axis=1)
        return found

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
        jumps = Setting("moves", "jumps") if self.problem.could_jump else None
        found = diagnose(self.trace, self.kept, self.posterior.overlap, longer, self.differing.counts, jumps)
        if not self.structured:
            found = without_structure(found, "max_clusters" if self.problem.learn.beta else "n_clusters")
        if self.capped:
            found = at_the_cap(found, self.n_labels, self.whole is not None, self.structured)
        return stopped_early(found, self.n_sweeps, most) if self.interrupted else found

    @cached_property
    def structured(self) -> bool:
        """Do the clusters tell cases apart?"""
        memberships = self.posterior.memberships
        memberships = memberships if self.known.all() else memberships[self.known]
        return has_structure(memberships, self.hyper.alpha, self.problem.n_i)

    @cached_property
    def differing(self) -> Differing:
        """Which clusters all chains found, and which cases, of those that have a value, are in another one elsewhere."""
        post, some = self.posterior, slice(None) if self.known.all() else self.known
        return differing(self.labels[some], post.chain_labels[:, some], self.n_clusters, post.overlap, self.whole is not None)

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
        """The probability of each number of clusters in use; None unless it was to be found."""
        if "clusters_in_use" not in self.trace:
            return None
        found, times = np.unique(self.pooled("clusters_in_use"), return_counts=True)
        return dict(zip(found.astype(int).tolist(), (times / times.sum()).tolist(), strict=True))

    @property
    def n_labels(self) -> int:
        """The most clusters that the run could find."""
        return len(self.problem.hyper.beta)

    @property
    def capped(self) -> bool:
        """May there be more clusters than the run was allowed? As many as there are cases are always enough."""
        probabilities = self.n_clusters_probabilities or {}
        return self.n_labels < self.n_cases and probabilities.get(self.n_labels, 0.0) >= FULL

    def to_arviz(self) -> Any:
        """The chains as ArviZ takes them; `BayesianCaseModel.to_arviz` says what they have."""
        S, draws, kept = self.n_clusters, self.draws, self.kept
        sweeps = np.arange(kept.first, kept.end, 1 if draws is None else self.plan.thin)
        more = {} if draws is None else {"prototype": draws.p[..., :S], "subspace": draws.omega[:, :, :S]}
        dims = {"prototype": ("cluster",), "subspace": ("cluster", "feature")}
        coords = {"cluster": np.arange(S), "feature": self.encoding.column_names}
        about = {"inference_library": "bayescase", "inference_library_version": __version__}
        return to_arviz(self.trace, sweeps, more, dims, coords, about)

    # --- files ----------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file: arrays and JSON, no pickle. Of a folded fit, the whole and how it is folded."""
        if self.whole is not None:
            fold = {"groups": [list(group) for group in self.groups], "cluster_names": self.cluster_names}
            replace(self.whole, case_names=self.case_names, settings=self.settings)._write(path, fold)
        else:
            self._write(path, None)

    def _write(self, path: str | os.PathLike[str], fold: dict[str, Any] | None) -> None:
        header, parts = filing.problem_parts(self.problem)
        header |= {
            "settings": self.settings,
            "fold": fold,
            "kept": list(self.kept),
            "interrupted": self.interrupted,
            "n_all": None if self.sample is None else self.sample.n_cases,
            "hyper": {name: getattr(self.hyper, name) for name in filing.NUMBERS},
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
                problem=filing.problem_from_parts(header, parts),
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
            fitted = refold(fitted, header["fold"])
        except Exception as error:  # whatever a damaged or hostile file leads to
            raise storage.FileFormatError(f"{os.fspath(path)!r} is not a whole bayescase model ({error!r}).") from error
        return fitted


def refold(fitted: Fitted, fold: dict[str, Any] | None) -> Fitted:
    """Fold the whole as it was when it was saved."""
    if fold is None:
        return fitted
    groups, names = tuple(tuple(group) for group in fold["groups"]), fold["cluster_names"]
    need(sorted(s for group in groups for s in group) == list(range(fitted.n_clusters)) and all(groups), "groups")
    need(names is None or (len(names) == len(groups) and all(isinstance(name, str) for name in names)), "names")
    return fitted.folded(groups, None if names is None else tuple(names))


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
    filing.check_problem(fitted.problem, labels)
    need(set(TRACED) <= set(trace) <= {*TRACED, *LEARNED, "clusters_in_use"}, "traces")
    need(is_int(plan.seed) and 0 <= plan.seed < 2**63, "seed")
    for names, n in ((fitted.case_names, M), (fitted.cluster_names, S)):
        need(names is None or (len(names) == n and all(isinstance(name, str) for name in names)), "names")
    need(is_int(first) and is_int(end) and is_int(plan.thin), "kept sweeps")
    need(0 <= first < end <= T and plan.thin > 0 and isinstance(fitted.interrupted, bool), "kept sweeps")
    filing.check_hyper(hyper, S, D)
    for whole, shape, low, high in (
        *(((data.x, (N, P), -1, V), (data.candidates, (M, P), -1, V)) if P else ()),
        (book.k_ptr, (V + 1,), 0, K + 1),
        (book.k_idx, (K,), 0, V),
        (post.p, (None, None, S), 0, M),
        (post.relabel, (C, labels), 0, labels),
        (post.chain_labels, (C, N), 0, labels),
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
        filing.check_draws(fitted.draws, (C, len(range(first, end, plan.thin))), data, labels)
