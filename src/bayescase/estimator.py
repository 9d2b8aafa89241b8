"""BayesianCaseModel: the scikit-learn coat. Here, and only here, the paper's symbols get public words."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from . import __version__, storage
from .explaining.explanation import (
    AgreementExplanation,
    CaseExplanation,
    ModelExplanation,
    PairExplanation,
    explain,
    explain_agreement,
    explain_case,
    explain_pair,
)
from .reading.encoder import CaseEncoder, fit_encoder, known_encoder, new_codes
from .reading.encoding import Encoding, FeatureTable, describe, types_in_words
from .reading.similarity import similarity_table
from .reading.tables import is_missing, read
from .sampling.checks import (
    check_cluster,
    check_fitted,
    check_names,
    check_parameters,
    check_pins,
    check_prototype_prior,
    check_q,
    check_start,
    is_auto,
    is_int,
    is_learned,
    warn_empty_rows,
)
from .sampling.diagnostics import Diagnostics, Round, diagnose, to_arviz
from .sampling.hyper import LEARNED, Learn, gamma_of
from .sampling.posterior import AGREE, Candidate, summarise, top_candidates
from .sampling.run import Plan, Report, doubling, one_round, run, seed_of
from .state import Data, Hyper, chunks, make_data, make_hyper

SINGLE_LABEL = 100  # sweeps at the start of a seeded chain that move whole cases only
TOP_CANDIDATES = 10
FULL = 0.05  # from this probability of max_clusters clusters on, there may be more
FOLD, SCORE, DRAW = 1 << 20, 1 << 21, 1 << 22  # streams of random numbers beside those of the chains 0, 1, 2, …


class Interval(NamedTuple):
    """Posterior mean of a number, and the interval that holds it with probability 0.9."""

    mean: float
    low: float
    high: float


class KeptDraws(NamedTuple):
    """Every kept draw, labels aligned: the first axis is the chain, the second the draw.

    With n_clusters="auto" S is `max_clusters`; the labels from `n_clusters_` on are the main one of no case.
    """

    z: np.ndarray  # (chains, draws, N, P) cluster of each cell; 0 where the cell is missing
    p: np.ndarray  # (chains, draws, S) row of the catalogue
    omega: np.ndarray  # (chains, draws, S, P)
    log_joint: np.ndarray  # (chains, draws)


class BayesianCaseModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """Clusters of discrete data, each explained by a prototype and a subspace.

    The Bayesian Case Model of Kim, Rudin and Shah (NIPS 2014): every cluster has a prototype, a real case, and a subspace,
    the features in which cases copy the prototype. Clusters, prototypes and subspaces are inferred together by Gibbs
    sampling, so each comes with a posterior probability.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; S in the paper. "auto" finds it: a hierarchical Dirichlet process, truncated at `max_clusters`. The
        results then have the clusters in use, and `n_clusters_probabilities_` says how sure their number is.
    max_clusters : int, default=20
        The most clusters that n_clusters="auto" can find.
    alpha : float or "learn", default=0.01
        Total concentration of a case's mixture weights; each cluster gets alpha / n_clusters. Small values give cases that
        belong to one cluster; 0 makes that exact, and is faster.
    lam : float or "learn", default=1.0
        Pseudo-count of every value in every cluster; λ in the paper.
    c : float or "learn", default=50.0
        How strongly cases copy the prototype on the features of the subspace. 0 gives latent Dirichlet allocation with one
        distribution per feature.
    q : float, array of shape (n_features,) or "learn", default=0.8
        Prior probability that a feature belongs to a subspace. What is to be learned has a diffuse prior and is in
        `hyperparameters_` with its interval.
    similarity : "match", ("within", ε), (function, ε), table or mapping, default="match"
        Which values of a case agree with the prototype's: equal ones; those at most ε away (in units of whole numbers, else in
        places on the scale of an ordered feature or in bins); those for which the function of two values is at most ε; or a
        table with an entry from 0 to 1 for the prototype's value (row) and the case's (column). A mapping sets it per feature.
    pins : mapping, default=None
        What is certain: {"prototypes": {cluster: row of the catalogue}, "subspaces": {cluster: {feature: True or False}},
        "cases": {row: cluster}}, each as far as needed. Clusters that are pinned keep their numbers.
    prototype_prior : array of shape (n_candidates,) or (n_clusters, n_candidates), default=None
        Prior weight of each candidate, for all clusters or for each. If None, candidates without gaps are equal, and one with
        gaps has the weight 1 − q for each: what it lacks cannot be a key feature.
    subspace_prior : array of shape (n_clusters, n_features), default=None
        Prior probability that the feature belongs to the subspace of the cluster, in place of `q`; NaN where `q` holds.
    sampler : {"rows", "collapsed"}, default="rows"
        "rows" draws prototypes and subspaces in one block and whole rows in parallel; "collapsed" is the paper's sampler,
        cell by cell. Both sample the same posterior.
    n_iter : int or "auto", default=1000
        Sweeps of each chain, burn-in included. "auto" goes on until `diagnostics_` finds no fault: it asks after max_iter / 2ᵏ
        sweeps, first between 250 and 500, then after twice as many, and so on, always about the second half of the sweeps so
        far, which alone is kept. It also ends where more sweeps will not help: when two such rounds in a row find every chain
        settled, but not all of them in the same clusters.
    max_iter : int, default=8000
        The most sweeps of each chain if `n_iter` is "auto".
    burn_in : int, default=None
        Sweeps that are not kept; half of them if None, as always if `n_iter` is "auto".
    thin : int, default=5
        Keep every `thin`-th sweep after the burn-in.
    n_chains : int, default=4
        Independent chains, each with a start of its own.
    init : {"seeded", "cases", "cells", "mixed"}, a list of these or array of shape (n_samples,), default="mixed"
        Start of the chains: cases near seeds that lie far apart, a random label per case, a random label per cell (per case
        at alpha = 0), or given labels, with -1 for unknown (drawn at random). A list names the start of each chain; "mixed"
        is "seeded", "cases", "seeded", and so on: chains that agree although they started differently can be trusted more.
    candidates : table, default=None
        The catalogue that prototypes are chosen from, with the features of X, matched by name if both have names; the cases
        themselves if None.
    encoder : CaseEncoder or mapping, default=None
        How columns become features with a few values each: a `CaseEncoder`, or a mapping of its parameters as a short form,
        such as {"missing_values": "?", "bins": {"age": [18, 65]}}. It is cloned and fitted; `encoder_` is the result.
    heat : float, default=1.0
        Power of the likelihood at the first sweep, between 0 and 1; it rises to 1 by the middle of the burn-in. Kept draws
        are never heated.
    keep_draws : bool, default=False
        Keep every draw in `draws_`; needs memory for n_chains × kept draws × X.
    callback : callable, default=None
        Called after each sweep with a `Report`; a true result stops the run.
    checkpoint : path, default=None
        File that is written every few seconds and at the end. A run that finds it continues where it stopped and gives the
        same result as an uninterrupted one.
    n_jobs : int, default=None
        Threads; -1 uses all processors. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the run.
    verbose : int, default=0
        1 shows how the columns are read, and a progress bar.

    Attributes
    ----------
    prototypes_ : ndarray of shape (n_clusters,)
        Row of the catalogue that is each cluster's prototype; p_s in the paper. Of the cases at least half as probable as the
        most probable one it is the most typical. Clusters go from large to small.
    prototype_cases_ : ndarray of shape (n_clusters, n_features)
        The values of the prototypes.
    prototype_probabilities_ : list of tuples of Candidate
        For each cluster its prototype and after it the most probable others, with their posterior probability and the cases
        that tie with them.
    subspaces_ : ndarray of bool, shape (n_clusters, n_features)
        The features that matter to each cluster: posterior probability above one half; ω_sj in the paper.
    subspace_probabilities_ : ndarray of shape (n_clusters, n_features)
        Posterior probability that the feature matters.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Posterior mean of the mixture weights of each case; π_i in the paper.
    labels_ : ndarray of shape (n_samples,)
        The cluster with the largest membership.
    value_probabilities_ : list of ndarrays of shape (n_clusters, n_values)
        For each feature the posterior mean distribution of its values in each cluster; φ_sj in the paper.
    feature_values_ : list of tuples
        The values of each feature, in the order of `value_probabilities_`; intervals for binned numbers.
    feature_types_ : dict
        How each feature was read, by name ("x0", "x1", … if X has no names); `describe_features` shows more.
    log_joint_ : ndarray of shape (n_chains, n_sweeps)
        Log joint probability of data and latent variables after each sweep.
    chain_overlap_ : ndarray of shape (n_chains,)
        How much of the memberships each chain shares with the best chain, the one with the highest mean log joint. Results
        are averages over the chains that share at least 0.9, the best one included; the others found other clusters.
    diagnostics_ : Diagnostics
        Have the chains converged? `print(model.diagnostics_)` shows a verdict, R-hat and effective sample sizes. A fit that has
        not converged warns with a `ConvergenceWarning`.
    n_iter_ : int
        Sweeps that each chain has made.
    n_clusters_ : int
        Number of clusters.
    n_clusters_probabilities_ : dict of int to float
        With n_clusters="auto", the posterior probability of each number of clusters in use, those that are the main one of at
        least one case; else None.
    hyperparameters_ : dict of str to Interval
        Posterior mean and 90 % interval of each hyperparameter that was learned.
    case_names_ : list of str or None
        Names of the rows of the catalogue, if `name_cases` has given them.
    draws_ : KeptDraws
        All kept draws, if `keep_draws` is set.
    encoder_ : CaseEncoder
        The fitted encoder: how columns became features.
    n_features_in_ : int
        Number of columns of X, those that the encoder leaves out included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if it has names.
    """

    def __init__(
        self,
        n_clusters: Any = 8,
        *,
        max_clusters: int = 20,
        alpha: Any = 0.01,
        lam: Any = 1.0,
        c: Any = 50.0,
        q: Any = 0.8,
        similarity: Any = "match",
        pins: Mapping | None = None,
        prototype_prior: Any = None,
        subspace_prior: Any = None,
        sampler: str = "rows",
        n_iter: Any = 1000,
        max_iter: int = 8000,
        burn_in: int | None = None,
        thin: int = 5,
        n_chains: int = 4,
        init: Any = "mixed",
        candidates: Any = None,
        encoder: CaseEncoder | Mapping[str, Any] | None = None,
        heat: float = 1.0,
        keep_draws: bool = False,
        callback: Callable[[Report], Any] | None = None,
        checkpoint: str | PathLike | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.alpha = alpha
        self.lam = lam
        self.c = c
        self.q = q
        self.similarity = similarity
        self.pins = pins
        self.prototype_prior = prototype_prior
        self.subspace_prior = subspace_prior
        self.sampler = sampler
        self.n_iter = n_iter
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.init = init
        self.candidates = candidates
        self.encoder = encoder
        self.heat = heat
        self.keep_draws = keep_draws
        self.callback = callback
        self.checkpoint = checkpoint
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> BayesianCaseModel:
        """Infer clusters, prototypes and subspaces.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Strings, categories, booleans, integers, numbers and missing cells (NaN, None, NA, null), as a NumPy array, a data
            frame (pandas, polars, pyarrow), a mapping of columns, or a SciPy sparse matrix.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        table = read(X)
        N, auto = table.n_cases, is_auto(self.n_clusters)
        S = min(self.max_clusters, N) if auto else self.n_clusters
        if S > N:
            raise ValueError(f"n_clusters={S} needs at least {S} cases, but the data has n_samples={N}.")
        catalogue = None if self.candidates is None else read(self.candidates)
        encoder = fit_encoder(self.encoder, table, catalogue)
        encoding = encoder.encoding_
        if self.verbose:
            print(*types_in_words(encoding), sep="\n", file=sys.stderr)
        P = len(encoding.features)
        x, _ = encoding.encode(table)
        warn_empty_rows(x)
        candidates = None if catalogue is None else encoding.encode(catalogue)[0]
        n_candidates = N if candidates is None else len(candidates)
        q, q_free = check_q(self.q, self.subspace_prior, S, P)
        weight = check_prototype_prior(self.prototype_prior, n_candidates, S, auto)
        weight = weigh_gaps(x if candidates is None else candidates, q) if weight is None else weight
        weight, z_held, omega_held = check_pins(self.pins, weight, S, N, n_candidates, encoding)
        similarity = similarity_table(self.similarity, encoding)
        data = make_data(x, encoding.offset, candidates, weight, similarity, z_held, omega_held)
        given = {name: getattr(self, name) for name in ("alpha", "lam", "c")}
        hyper = make_hyper(S, P, **{name: 1.0 if is_learned(value) else value for name, value in given.items()}, q=q)
        if auto:
            hyper = hyper._replace(gamma=gamma_of(data))
        names = [name for name, value in {**given, "q": self.q}.items() if is_learned(value)]
        learn = Learn(tuple(names), q_free, auto)
        start = check_start(self.init, N, S, self.n_chains)
        if hyper.alpha == 0 and isinstance(start, tuple):  # every case has one label, from the start to the end
            start = tuple("cases" if kind == "cells" else kind for kind in start)
        rounds = doubling(int(self.max_iter)) if is_auto(self.n_iter) else one_round(self.n_iter, self.burn_in)
        kinds = start if isinstance(start, tuple) else ("labels",) * self.n_chains
        whole_cases = min(SINGLE_LABEL, rounds[0].first // 2)
        plan = Plan(
            sampler=self.sampler,
            rounds=rounds,
            thin=int(self.thin),
            n_chains=self.n_chains,
            start=start,
            single_label=tuple(whole_cases if kind in ("seeded", "cases") else 0 for kind in kinds),
            heat=float(self.heat),
            keep_draws=bool(self.keep_draws),
            seed=self._choose_seed(),
        )
        draws = run(
            data,
            hyper,
            plan,
            learn,
            n_jobs=effective_n_jobs(self.n_jobs),
            callback=self.callback,
            verbose=self.verbose,
            checkpoint=self.checkpoint,
        )
        posterior = summarise(draws.chains, prune=auto)
        hyper = mean_hyper(hyper, learn, posterior, draws)
        self._set_results(encoder, data, hyper, plan.seed, posterior._asdict(), draws.trace, draws.kept, plan.thin)
        if self.keep_draws:
            self.draws_ = keep(draws, posterior.relabel)
        elif hasattr(self, "draws_"):
            del self.draws_
        if draws.interrupted:
            return self
        if auto and S < N and self.n_clusters_probabilities_.get(S, 0.0) >= FULL:
            warnings.warn(f"All max_clusters={S} clusters are in use: raise max_clusters.", stacklevel=2)
        if not self.diagnostics_.converged:
            warnings.warn(f"{self.diagnostics_.verdict} {self.diagnostics_.advice}", ConvergenceWarning, stacklevel=2)
        return self

    def _choose_seed(self):
        """Without a random_state, a run that finds its checkpoint goes on with the seed that it had."""
        known = None if self.random_state is not None or self.checkpoint is None else seed_of(self.checkpoint)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if known is None else known

    def _set_results(self, encoder, data, hyper, seed, posterior, trace, kept, thin):
        """Give the results their public names; also what `load` calls."""
        self.encoder_, encoding = encoder, encoder.encoding_
        self.n_features_in_ = encoder.n_features_in_
        if hasattr(encoder, "feature_names_in_"):
            self.feature_names_in_ = encoder.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._encoding, self._data, self._hyper, self._seed = encoding, data, hyper, seed
        self._posterior, self._trace, self._kept, self._thin = posterior, trace, kept, thin
        self._n_features_out = len(hyper.beta)
        # In the paper these are p_s, ω_sj, π_i and φ_sj.
        self.prototype_probabilities_: list[tuple[Candidate, ...]] = top_candidates(
            posterior["p"], data.candidates, data.log_weight, posterior["values"], TOP_CANDIDATES
        )
        self.prototypes_ = np.array([ranked[0].row for ranked in self.prototype_probabilities_])
        self.prototype_cases_ = encoding.decode(data.candidates[self.prototypes_])
        self.subspace_probabilities_ = posterior["chance"]
        self.subspaces_ = self.subspace_probabilities_ > 0.5
        self.memberships_ = posterior["memberships"]
        self.labels_ = np.argmax(self.memberships_, axis=1)
        self.value_probabilities_ = [part.T for part in np.split(posterior["values"], encoding.offset[1:-1])]
        self.feature_values_ = encoder.feature_values_
        self.feature_types_ = encoder.feature_types_
        self.log_joint_ = trace["log_joint"]
        self.chain_overlap_ = posterior["overlap"]
        self.n_clusters_ = len(hyper.beta)
        pooled = {name: trace[name][self.chain_overlap_ >= AGREE, kept.first : kept.end] for name in trace}
        self.hyperparameters_ = {
            name: Interval(float(pooled[name].mean()), *np.quantile(pooled[name], (0.05, 0.95)).tolist())
            for name in LEARNED
            if name in pooled
        }
        self.n_clusters_probabilities_: Any = None
        if "clusters_in_use" in pooled:
            numbers, times = np.unique(pooled["clusters_in_use"], return_counts=True)
            self.n_clusters_probabilities_ = dict(
                zip(numbers.astype(int).tolist(), (times / times.sum()).tolist(), strict=True)
            )
        self.diagnostics_: Diagnostics = diagnose(trace, kept, self.chain_overlap_)
        self.n_iter_ = self.log_joint_.shape[1]
        self.case_names_: list[str] | None = None  # of these cases; a new fit has others

    def name_cases(self, names: Any) -> BayesianCaseModel:
        """Give the cases names, which explanations then use and `save` keeps.

        Parameters
        ----------
        names : sequence of str or None
            Names of the rows of the catalogue, which are the cases unless `candidates` was given. None forgets them.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.case_names_ = check_names(names, len(self._data.candidates))
        return self

    def _names(self, names):
        return self.case_names_ if names is None else check_names(names, len(self._data.candidates))

    def describe_features(self) -> FeatureTable:
        """How the columns were read: name, type, number of values, share of missing cells and the first values of each.

        Returns
        -------
        FeatureTable
            A tuple with a `FeatureSummary` per feature, which prints as a table.
        """
        check_is_fitted(self)
        return describe(self._encoding, self._data.x)

    # --- new cases ----------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Memberships of cases: the posterior mean of π, each case folded into the fitted clusters.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            If the model was fitted to named columns, those of a table are found by name, in any order and among others; the
            columns of an array count by position.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        return self.predict_proba(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Memberships of cases, as `transform` gives them, but always a plain array."""
        from .kernels.cpu.newcases import fold_in

        x = self._encode(X)
        mean = np.zeros((len(x), self._n_features_out))
        self._fold(x, FOLD, lambda rows, d, fold, seed: fold_in(x[rows], fold, seed, mean[rows]))
        return mean / mean.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The cluster with the largest membership for each case."""
        return np.argmax(self.predict_proba(X), axis=1)

    def score_samples(self, X: Any) -> np.ndarray:
        """Log predictive probability of each case, averaged over draws of φ. Missing cells are left out of a case.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        from .kernels.cpu.newcases import PARTICLES, log_probability

        x = self._encode(X)
        value = np.zeros((len(self._posterior["tables"]), len(x), PARTICLES))
        self._fold(x, SCORE, lambda rows, d, fold, seed: log_probability(x[rows], fold, seed, value[d, rows]))
        return logsumexp(value, axis=(0, 2)) - np.log(len(value) * PARTICLES)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log predictive probability of a case; larger is better.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """New cases from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, RandomState instance or None, default=None
            None goes on from the seed of the fit, so repeated calls give the same cases.

        Returns
        -------
        X : ndarray of object, shape (n_samples, n_features)
            Values as in `feature_values_`.
        y : ndarray of shape (n_samples,)
            The cluster that most cells of the case come from.
        """
        check_is_fitted(self)
        if not is_int(n_samples) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive whole number, not {n_samples!r}.")
        seed = [self._seed, DRAW] if random_state is None else check_random_state(random_state).randint(2**31 - 1)
        rng = np.random.default_rng(seed)
        tables, prior, offset = self._posterior["tables"], self._posterior["prior"], self._encoding.offset
        S, P = self._hyper.q.shape
        which = rng.integers(len(tables), size=n_samples)
        mixed = self._hyper.alpha > 0
        pi = np.exp(log_dirichlet(prior[which], rng)) if mixed else np.eye(S)[pick(prior[which], rng)]
        x = np.empty((n_samples, P), dtype=np.int64)
        z = np.empty((n_samples, P), dtype=np.int64)
        for j in range(P):
            z[:, j] = pick(pi, rng)
            x[:, j] = offset[j] + pick(tables[which, offset[j] : offset[j + 1], z[:, j]].astype(float), rng)
        most = (z[:, :, None] == np.arange(S)).sum(axis=1).argmax(axis=1)
        return self._encoding.decode(x), most

    # --- explanations -------------------------------------------------------------------------------------------------

    def explain(self, names: Any = None) -> ModelExplanation:
        """What the clusters are: prototypes, key features, what tells them apart, and the members that fit badly.

        Parameters
        ----------
        names : sequence of str, default=None
            Names of the rows of the catalogue, which are the cases unless `candidates` was given; `case_names_` if None.

        Returns
        -------
        ModelExplanation
            Prints as text; `to_json` gives plain JSON.
        """
        check_is_fitted(self)
        return explain(self, self._names(names))

    def explain_case(self, X: Any, names: Any = None) -> CaseExplanation:
        """Where a case belongs and why: memberships, agreement with the prototype, and what speaks for this cluster.

        Parameters
        ----------
        X : table with one row, a mapping from features to values, or an int
            The case; a number is the row of a case of the fit.
        names : sequence of str, default=None
            Names of the rows of the catalogue; `case_names_` if None.

        Returns
        -------
        CaseExplanation
        """
        from .kernels.cpu.newcases import fold_in

        check_is_fitted(self)
        names = self._names(names)
        if is_int(X):
            if not 0 <= X < len(self._data.x):
                raise ValueError(f"There is no case {X}: the model was fitted to {len(self._data.x)}, counted from 0.")
            x = self._data.x[int(X) : int(X) + 1]
        else:
            if isinstance(X, Mapping):
                X = {name: [value] if np.ndim(value) == 0 else value for name, value in X.items()}
            x = self._encode(X)
            if len(x) != 1:
                raise ValueError(f"explain_case takes one case, not {len(x)}.")
        tables = np.zeros((len(self._posterior["tables"]), 1, self._n_features_out))
        self._fold(x, FOLD, lambda rows, d, fold, seed: fold_in(x[rows], fold, seed, tables[d, rows]))
        return explain_case(self, x[0], tables[:, 0] / tables[:, 0].sum(axis=1, keepdims=True), names)

    def explain_pair(self, first: int, second: int, names: Any = None) -> PairExplanation:
        """How two clusters differ.

        Parameters
        ----------
        first, second : int
            The clusters.
        names : sequence of str, default=None
            Names of the rows of the catalogue; `case_names_` if None.

        Returns
        -------
        PairExplanation
        """
        check_is_fitted(self)
        for s in (first, second):
            check_cluster(self, s)
        if first == second:
            raise ValueError(f"explain_pair needs two different clusters, not {first} twice.")
        return explain_pair(self, int(first), int(second), self._names(names))

    def explain_agreement(self, cluster: int, names: Any = None) -> AgreementExplanation:
        """Which members of a cluster agree with its prototype, key feature by key feature; `plots.plot_agreement` draws it.

        Parameters
        ----------
        cluster : int
        names : sequence of str, default=None
            Names of the rows of the catalogue.

        Returns
        -------
        AgreementExplanation
        """
        check_is_fitted(self)
        check_cluster(self, cluster)
        return explain_agreement(self, int(cluster), self._names(names))

    def report(self, path: str | PathLike, names: Any = None, image_shape: Any = None, title: str | None = None) -> None:
        """Write one HTML file that explains the model; needs the extra `plots`. It opens from disk and needs no network.

        Parameters
        ----------
        path : path
            File to write; one that is there is replaced.
        names : sequence of str, default=None
            Names of the rows of the catalogue.
        image_shape : (height, width), default=None
            The features are the pixels of an image, row by row.
        title : str, default=None
            Heading of the page.
        """
        from .explaining.render.report import write_report

        write_report(self, path, names=names, image_shape=image_shape, title=title)

    def _html_cards(self, more):
        from .explaining.render.html import notebook

        return notebook(self.explain(), more) if hasattr(self, "_posterior") else more

    @property
    def _repr_html_(self):  # as scikit-learn: an attribute only if its display is set to diagrams
        diagram = super()._repr_html_
        return lambda: self._html_cards(diagram())

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._html_cards(bundle["text/html"])
        return bundle

    def _encode(self, X):
        check_is_fitted(self)
        return new_codes(self._encoding, X, type(self).__name__)

    def _fold(self, x, purpose, kernel):
        """kernel(rows, d, fold, seed) for every kept table d of φ and every block of rows, a block per thread."""
        from .kernels.cpu.newcases import make_fold
        from .kernels.cpu.sweep import split
        from .kernels.rng import stream

        seed = stream(self._seed, purpose)

        def block(rows):
            for d, (phi, prior) in enumerate(zip(self._posterior["tables"], self._posterior["prior"], strict=True)):
                total = float(prior.sum())
                hyper = self._hyper._replace(alpha=total if self._hyper.alpha > 0 else 0.0, beta=prior / total)
                kernel(slice(*rows), d, make_fold(self._data, hyper, phi), seed)

        n_jobs = effective_n_jobs(self.n_jobs)
        with ThreadPoolExecutor(n_jobs) as pool:
            list(pool.map(block, split(len(x), n_jobs)))

    def to_arviz(self) -> Any:
        """The trace as ArviZ takes it, to plot and to summarise; needs the extra `arviz`.

        Group `posterior` has the label-free quantities of `diagnostics_` for every chain and every sweep after the burn-in.
        With `keep_draws` it has the kept sweeps only, and the prototypes and subspaces, too; their clusters are
        comparable among the chains with `chain_overlap_` of at least 0.9. Group `sample_stats` has the log joint as `lp` and
        the rates. The coordinate `draw` is the number of the sweep.

        Returns
        -------
        xarray.DataTree with ArviZ 1.x, arviz.InferenceData with 0.x
        """
        check_is_fitted(self)
        sweeps = np.arange(self._kept.first, self._kept.end, self._thin if hasattr(self, "draws_") else 1)
        more, names = {}, [feature.name for feature in self._encoding.features]
        if hasattr(self, "draws_"):
            more = {
                "prototype": self.draws_.p[..., : self.n_clusters_],
                "subspace": self.draws_.omega[:, :, : self.n_clusters_],
            }
        dims = {"prototype": ("cluster",), "subspace": ("cluster", "feature")}
        coords = {"cluster": np.arange(self._n_features_out), "feature": names}
        about = {"inference_library": "bayescase", "inference_library_version": __version__}
        return to_arviz(self._trace, sweeps, more, dims, coords, about)

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike) -> None:
        """Write the fitted model to one file: arrays and JSON, no pickle.

        The results and all that new cases need are kept. Of the parameters, `candidates`, `prototype_prior`, `similarity`,
        `callback` and `checkpoint` are not: give them again before you fit again.
        """
        check_is_fitted(self)
        header = {
            "params": {name: json_value(value) for name, value in self.get_params(deep=False).items() if name not in UNSAVED},
            **self._encoding.to_json(),
            "seed": self._seed,
            "kept": list(self._kept),
            "thin": self._thin,
            "hyper": {name: getattr(self._hyper, name) for name in ("alpha", "lam", "c", "gamma")},
            "own_cases": self._data.candidates is self._data.x,
            "case_names": self.case_names_,
        }
        arrays = {f"posterior/{name}": value for name, value in self._posterior.items()}
        arrays |= {f"trace/{name}": value for name, value in self._trace.items()}
        arrays |= {f"data/{name}": value for name, value in self._data._asdict().items() if not name.endswith("_held")}
        arrays |= {"hyper/beta": self._hyper.beta, "hyper/q": self._hyper.q}
        if header["own_cases"]:
            del arrays["data/candidates"]
        if hasattr(self, "draws_"):
            arrays |= {f"draws/{name}": value for name, value in self.draws_._asdict().items()}
        storage.write(path, "model", header, arrays)

    @classmethod
    def load(cls, path: str | PathLike) -> BayesianCaseModel:
        """Read a model that `save` wrote. A damaged, foreign or newer file raises `FileFormatError`."""
        header, arrays = storage.read(path, "model")
        try:
            group: dict[str, dict] = {name: {} for name in ("posterior", "trace", "data", "hyper", "draws")}
            for name, value in arrays.items():
                kind, _, rest = name.partition("/")
                group[kind][rest] = value
            if header["own_cases"]:
                group["data"]["candidates"] = group["data"]["x"]
            model = cls(**{name: from_json_value(value) for name, value in header["params"].items()})
            encoding, data = Encoding.from_json(header), Data(**group["data"], **NOTHING_HELD)
            hyper = Hyper(**header["hyper"], **group["hyper"])
            check_fitted(header, encoding, data, hyper, group["posterior"], group["trace"], group["draws"])
            model._set_results(
                known_encoder(model.encoder, encoding),
                data,
                hyper,
                header["seed"],
                group["posterior"],
                group["trace"],
                Round(*header["kept"]),
                header["thin"],
            )
            model.case_names_ = header.get("case_names")
            if group["draws"]:
                model.draws_ = KeptDraws(**group["draws"])
        except Exception as error:  # whatever a damaged or hostile file leads to
            raise storage.FileFormatError(f"{path!r} is not a whole bayescase model ({error!r}).") from error
        return model

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        # scikit-learn's sparse checks read this of everything that has predict_proba: more than two columns
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags


UNSAVED = (
    "candidates",
    "prototype_prior",
    "similarity",
    "callback",
    "checkpoint",
)  # not needed after the fit, and not always JSON
NOTHING_HELD: dict[str, Any] = {"z_held": np.zeros(0, dtype=np.int64), "omega_held": np.zeros((0, 0), dtype=np.int8)}


def weigh_gaps(candidates, q):
    """Π_j (1 − q_j) over the features that a candidate lacks, as (M, 1), or None if none has gaps.

    Without it a gap would be an advantage: a value that the cluster does not share costs 1 − q, a missing one nothing.
    """
    cost = np.log1p(-q.mean(axis=0))
    log_weight = np.concatenate([(candidates[rows] < 0) @ cost for rows in chunks(*candidates.shape)])
    return np.exp(log_weight - log_weight.max())[:, None] if log_weight.any() else None


def mean_hyper(hyper, learn, posterior, draws):
    """The hyperparameters, with posterior means for what was learned, for the clusters in use."""
    S = posterior.memberships.shape[1]
    pooled = posterior.overlap >= AGREE
    mean = {name: float(draws.trace[name][pooled, draws.kept.first : draws.kept.end].mean()) for name in learn.names}
    q = np.where(learn.q_free, mean.pop("q", 0.5), hyper.q)[:S]
    beta = posterior.prior.mean(axis=0)
    return hyper._replace(**mean, beta=beta / beta.sum(), q=q)


def log_dirichlet(shape, rng):
    """Dirichlet draws, one per row, on the log scale: small shapes underflow."""
    log_gamma = np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
    return log_gamma - logsumexp(log_gamma, axis=1, keepdims=True)


def json_value(value):
    """A parameter as JSON; mappings as pairs, since their keys may be numbers."""
    if isinstance(value, np.random.RandomState) or is_missing(value):
        return None  # the fit has moved a RandomState on
    if isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, CaseEncoder):
        value = value.get_params(deep=False)
    if isinstance(value, Mapping):
        return {"pairs": [[json_value(key), json_value(item)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    return np.asarray(value).tolist()  # arrays, series, NumPy's numbers, …


def from_json_value(value):
    if isinstance(value, dict):
        return {key: from_json_value(item) for key, item in value["pairs"]}
    if isinstance(value, list) and not any(isinstance(item, (str, dict)) or item is None for item in value):
        return np.array(value)
    return value


def pick(weights, rng):
    """One index per row, ∝ its weights."""
    edges = np.cumsum(weights, axis=1)
    return (edges < rng.random((len(weights), 1)) * edges[:, -1:]).sum(axis=1)


def keep(draws, relabel):
    """Every kept draw, labels as in the posterior."""
    chains, n = draws.chains, draws.chains[0].n
    z = []
    for chain, order in zip(chains, relabel, strict=True):
        to = np.argsort(order).astype(chain.z.dtype)
        z.append(np.where(chain.data.x < 0, 0, to[chain.z[:n]]))
    omega = [chain.omega[:n][:, order] for chain, order in zip(chains, relabel, strict=True)]
    p = [chain.p[:n][:, order] for chain, order in zip(chains, relabel, strict=True)]
    return KeptDraws(np.stack(z), np.stack(p), np.stack(omega), np.stack([chain.log_joint[:n] for chain in chains]))
