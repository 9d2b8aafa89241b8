"""BayesianCaseModel: the scikit-learn coat. Here, and only here, the paper's symbols get public words.

Long because everything public has its whole documentation; nothing is computed here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from os import PathLike, fspath
from os import path as os_path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from . import predicting
from .errors import BayescaseError, ParameterError, ParameterTypeError, Setting
from .explaining.agreement import explain_agreement
from .explaining.cases import explain_case
from .explaining.clusters import explain
from .explaining.differences import explain_differences
from .explaining.explanation import (
    AgreementExplanation,
    CaseExplanation,
    DifferencesExplanation,
    ModelExplanation,
    PairExplanation,
    TreeExplanation,
)
from .explaining.naming import check_cluster_names, make_names
from .explaining.pairs import explain_pair
from .explaining.tree import TOLERANCE, explain_tree, fold
from .fitted import Fitted, Interval
from .kernels import check_device, check_devices
from .parallel import on_threads
from .parameters import (
    Seed,
    check_few,
    check_names,
    check_names_of_large,
    check_watch,
    names_at,
    params_from_json,
    params_to_json,
    refuse_forgotten,
    warn_of_results,
)
from .reading.batches import Source, is_large, open_source
from .reading.cache import encode_source
from .reading.encoder import CaseEncoder, fit_encoder, known_encoder, new_codes, new_encoder, one_row
from .reading.encoding import FeatureTable, describe, types_in_words
from .reading.partitions import DaskCluster, check_workers, find_client, from_dask, is_dask, lazily
from .reading.similarity import Ways
from .reading.tables import Table, TableLike, index_names, read
from .sampling.checkpoint import seed_of
from .sampling.diagnostics import Diagnostics
from .sampling.hyper import Learnable
from .sampling.large import Sample, check_large, find_results, join_results, open_large, prepare_large, save_results
from .sampling.places import Place, Temporary, lost_tasks
from .sampling.problem import Given, Pins, Settings, prepare
from .sampling.prototypes import Candidate
from .sampling.results import KeptDraws
from .sampling.run import Report, Run, Watch, run_to_end
from .sampling.stored import sample_rows
from .sampling.values import is_int
from .state import Codes
from .storage import FileFormatError

if TYPE_CHECKING:
    from distributed import Client


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
    lam : float or "learn", default=None
        Pseudo-count of every value in every cluster; λ in the paper. If None, 1, and 0.5 if there are bags.
    c : float or "learn", default=None
        How strongly cases copy the prototype on the features of the subspace. 0 gives latent Dirichlet allocation with one
        distribution per feature. If None, 50, and 5 if there are bags.
    q : float, array of shape (n_features,) or "learn", default=None
        Prior probability that a feature, or an item of a bag that the prototype has, belongs to a subspace. If None, 0.8, and
        0.5 if there are bags. What is to be learned has a diffuse prior and is in `hyperparameters_` with its interval.
    base : {"uniform", "frequency"}, default=None
        How likely values are where nothing is copied: all alike, as in the paper; or as frequent as in all cases together, so
        that a subspace holds what is more common in its cluster than elsewhere. If None, "uniform", and
        "frequency" if there are bags.
    similarity : "match", ("within", ε), (function, ε), table or mapping, default="match"
        Which values of a case agree with the prototype's: equal ones; those at most ε away (in units of whole numbers, else in
        places on the scale of an ordered feature or in bins); those for which the function of two values is at most ε; or a
        table with an entry from 0 to 1 for the prototype's value (row) and the case's (column). A mapping sets it per feature.
    subspace_prior : array of shape (n_clusters, n_columns), default=None
        Prior probability that the feature, or item, belongs to the subspace of the cluster, in place of `q`; NaN where that
        holds.
    sampler : {"rows", "collapsed"}, default="rows"
        "rows" draws prototypes and subspaces in one block and whole rows in parallel; "collapsed" is the paper's sampler,
        cell by cell. Both sample the same posterior.
    moves : {"auto", "none", "cases", "clusters", "jumps"}, default="auto"
        What is moved between the sweeps of sampler="rows". "cases": cases are drawn anew as a whole, values integrated out, and
        two labels of a case jointly; chains mix many times better. "clusters": many cases at once as well, clusters are merged,
        split and split anew; that takes up to seven times as long, and seldom helps. "jumps": cases, and jumps between
        descriptions that the searches of all chains for their starts have met (`n_init`), in tables of at most 50,000 cells;
        where data can be told in several ways, chains then go to and fro between them. "auto": "jumps" for such tables if there
        is a search, else "cases" for tables of at most a million cells, "none" for larger ones. All sample the same posterior.
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
    init : {"seeded", "cases", "cells", "mixed"} or a list of the first three, default="mixed"
        Start of the chains: cases near seeds that lie far apart, a random label per case, or a random label per cell (per case
        at alpha = 0). A list names the start of each chain; "mixed" is "seeded", "cases", "seeded", and so on: chains that
        agree although they started differently can be trusted more. `fit` also takes labels to start from.
    n_init : int or "auto", default="auto"
        Short runs that each chain makes before its first sweep, on its own: ten sweeps each, from random labels, or every
        fourth from seeds if the chain's start is "seeded". Then runs are crossed two by two: of two runs and their child the
        best stays. The chain goes on from the last one. 1 makes none, nor do chains that start from "cells" or from labels, and
        sampler="collapsed". Of more than 131,072 cases a sample is searched. "auto" is n_iter / 15, at most 64, so that the
        search takes about as long as the sweeps, and 1 for fewer than 250 sweeps and for more than twenty million cells that
        would be searched; with n_iter="auto" it goes by max_iter.
    encoder : CaseEncoder or mapping, default=None
        How columns become features with a few values each: a `CaseEncoder`, or a mapping of its parameters as a short form,
        such as {"missing_values": "?", "bins": {"age": [18, 65]}}. It is cloned and fitted; `encoder_` is the result.
    keep_draws : bool, default=False
        Keep every draw in `draws_`; needs memory for n_chains × kept draws × X.
    warm_start : bool, default=False
        Keep the chains in memory after `fit`, so that `more` can go on from there. Without it `more` needs a checkpoint.
    n_jobs : int, default=None
        Threads; -1 uses all processors. The result does not depend on it.
    device : {"cpu", "cuda", "cuda:1", "auto"}, default="cpu"
        Where cases are swept, and new ones folded in if there are many: on the processors, on the first NVIDIA GPU, on another
        one by its number, or wherever a table of this size is swept sooner. A GPU needs CuPy (pip install 'bayescase[cuda13]'
        or 'bayescase[cuda12]'), and sampler="rows" for a fit. On a cluster it is the device of each worker; "auto" uses the
        GPUs of those that have one. Tables on disk are swept on processors.
        The result does not depend on it, and `save` does not keep it.
    client : distributed.Client, default=None
        The cluster of Dask that a path, or a collection of Dask, is fitted on. If None, a collection is fitted on the cluster
        that computes it, and a path on this machine. The result does not depend on it, and `save` does not keep it.
    random_state : int, RandomState instance or None, default=None
        Seed of the run.
    verbose : int, default=0
        1 shows how the columns are read, and a progress bar.

    Attributes
    ----------
    prototypes_ : ndarray of shape (n_clusters,)
        Row of the catalogue that is each cluster's prototype; p_s in the paper. It is the most probable member of the cluster,
        or, of several that are about as probable, the one from which most is copied; never an empty case. Clusters go from
        large to small. If no member may be chosen, it is the most probable candidate that stands for no other cluster.
    prototype_cases_ : ndarray of shape (n_clusters, n_features)
        The values of the prototypes; of a bag a tuple of its items.
    prototype_probabilities_ : list of tuples of Candidate
        For each cluster every case that was drawn as its prototype, members or not, with its posterior probability and the
        cases that tie with it, the most probable first.
    subspaces_ : ndarray of bool, shape (n_clusters, n_columns)
        The features that matter to each cluster: posterior probability above one half; ω_sj in the paper. Single features come
        first; every item of a bag is a column of its own, named in `encoder_.encoding_.column_names`.
    subspace_probabilities_ : ndarray of shape (n_clusters, n_columns)
        Posterior probability that the feature matters.
    memberships_ : ndarray of shape (n_samples, n_clusters)
        Posterior mean of the mixture weights of each case; π_i in the paper. Cases with the same values have the same.
    labels_ : ndarray of shape (n_samples,)
        The cluster with the largest membership.
    cluster_names_ : list of str or None
        Names that `name_clusters` gave to the clusters.
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
        Have the chains converged? `print(model.diagnostics_)` shows a verdict, R-hat and effective sample sizes. A fit whose
        clusters are not settled warns with a `ConvergenceWarning`.
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
        Names of the rows of the catalogue: of the cases, unless `fit` got `candidates`.
    interrupted_ : bool
        Was the run stopped, by Ctrl-C or a callback? Then the results rest on the second half of what was run.
    fitted_ : Fitted
        All of this in one frozen object, which explanations, plots and reports are made of.
    draws_ : KeptDraws
        All kept draws, if `keep_draws` is set.
    encoder_ : CaseEncoder
        The fitted encoder: how columns became features.
    n_features_in_ : int
        Number of columns of X, those that the encoder leaves out included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.

    References
    ----------
    Been Kim, Cynthia Rudin and Julie Shah (2014). The Bayesian Case Model: A Generative Approach for Case-Based Reasoning and
    Prototype Classification. Advances in Neural Information Processing Systems 27.

    Examples
    --------
    >>> from bayescase import BayesianCaseModel, load_recipes
    >>> recipes = load_recipes()
    >>> model = BayesianCaseModel(5, n_iter=200, random_state=0).fit(recipes.table, case_names=recipes.names)
    >>> model.memberships_.shape
    (80, 5)
    >>> print(model.explain().clusters[1].sentence)
    Cluster 1: 19 cases like Five Alarm Ranch Chili (...%), known by chili powder, cumin and onion.
    >>> model.predict({"ingredients": [["chili powder", "cumin", "onion"]]})
    array([1])
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 8,
        *,
        max_clusters: int = 20,
        alpha: Learnable = 0.01,
        lam: Learnable | None = None,
        c: Learnable | None = None,
        q: Learnable | ArrayLike | None = None,
        base: Literal["uniform", "frequency"] | None = None,
        similarity: Ways = "match",
        subspace_prior: ArrayLike | None = None,
        sampler: Literal["rows", "collapsed"] = "rows",
        moves: Literal["auto", "none", "cases", "clusters", "jumps"] = "auto",
        n_iter: int | Literal["auto"] = 1000,
        max_iter: int = 8000,
        burn_in: int | None = None,
        thin: int = 5,
        n_chains: int = 4,
        init: str | Sequence[str] = "mixed",
        n_init: int | Literal["auto"] = "auto",
        encoder: CaseEncoder | Mapping[str, Any] | None = None,
        keep_draws: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
        client: Client | None = None,
        random_state: Seed = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.max_clusters = max_clusters
        self.alpha = alpha
        self.lam = lam
        self.c = c
        self.q = q
        self.base = base
        self.similarity = similarity
        self.subspace_prior = subspace_prior
        self.sampler = sampler
        self.moves = moves
        self.n_iter = n_iter
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.thin = thin
        self.n_chains = n_chains
        self.init = init
        self.n_init = n_init
        self.encoder = encoder
        self.keep_draws = keep_draws
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.device = device
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ----------------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: TableLike,
        y: object = None,
        *,
        candidates: TableLike | int | None = None,
        pins: Pins | None = None,
        prototype_prior: ArrayLike | None = None,
        init: ArrayLike | None = None,
        case_names: Sequence[object] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        cache: str | PathLike[str] | None = None,
        callback: Callable[[Report], object] | None = None,
    ) -> BayesianCaseModel:
        """Infer clusters, prototypes and subspaces.

        A path, or a dataset of pyarrow, is read in parts and stays on disk, whatever its size; the result is that of the same
        table in memory. `labels_` and `memberships_` of all cases are then read from files as they are needed; explanations
        rest on a sample, and say so.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            Strings, categories, booleans, integers, numbers and missing cells (NaN, None, NA, null), as a NumPy array, a data
            frame (pandas, polars, pyarrow), a mapping of columns, or a SciPy sparse matrix, which is one bag. A column whose
            cells are lists is a bag, too. Or a path: of a Parquet, Feather, CSV or JSON lines file, or of a folder of such
            files; or a dataset of pyarrow; or a data frame or an array of Dask, with chunks by rows.
        y : object, default=None
            Ignored; scikit-learn wants it.
        candidates : table or int, default=None
            The catalogue that prototypes are chosen from, with the features of X, matched by name if both have names; a
            number is so many of the cases, chosen at random; the cases themselves if None.
        pins : mapping, default=None
            What is certain: {"prototypes": {cluster: row of the catalogue}, "subspaces": {cluster: {feature: True or False}},
            "cases": {row: cluster}}, each as far as needed. Clusters that are pinned keep their numbers.
        prototype_prior : array of shape (n_candidates,) or (n_clusters, n_candidates), default=None
            Prior weight of each candidate, for all clusters or for each. If None, candidates without gaps are equal, and one
            with gaps has the weight 1 − q for each: what it lacks cannot be a key feature. A case without any value, its bags
            empty, is no candidate.
        init : array of shape (n_samples,) or (n_samples, n_features), default=None
            Labels to start all chains from, one per case or one per cell, with -1 for unknown (drawn at random), in place of
            the parameter `init`. Cells of bags cannot be labelled one by one.
        case_names : sequence of str, default=None
            Names of the rows of the catalogue, which are the cases unless `candidates` is given. If None, the index of a
            pandas data frame, if it consists of words.
        checkpoint : path, default=None
            File that is written every few seconds and at the end. A run that finds it continues where it stopped and gives
            the same result as an uninterrupted one. If it cannot be written, there is a warning and the run goes on.
        cache : path, default=None
            Folder for the codes and labels of a table that is read in parts. It stays, so that another fit of the same table
            need not read it again. If None, it is beside the checkpoint, or else a temporary one, until the run has ended. All
            workers of a cluster must share it.
        callback : callable, default=None
            Called after each sweep with a `Report`; a true result stops the run.

        Returns
        -------
        BayesianCaseModel
            The model itself.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> recipes = load_recipes()
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0)
        >>> model = model.fit(recipes.table, case_names=recipes.names, pins={"cases": {0: 2, 1: 2}})
        >>> model.labels_[:2].tolist()
        [2, 2]
        """
        settings = Settings(**{name: getattr(self, name) for name in Settings.__dataclass_fields__})
        refuse_forgotten(self.get_params(deep=False))
        settings.check()
        check_device(self.device, self.sampler)
        check_watch(checkpoint, callback)
        few = check_few(candidates) if is_int(candidates) else None
        catalogue = None if candidates is None or few is not None else read(candidates)
        given, seed = Given(catalogue if few is None else few, pins, prototype_prior, init), self._choose_seed(checkpoint)
        if is_large(X) or is_dask(X):
            names = check_names_of_large(case_names, None if catalogue is None else catalogue.n_cases)
            return self._fit_large(X, settings, given, seed, names, Watch(callback, checkpoint, self.verbose), cache)
        for name, value in (("cache", cache), ("client", self.client)):
            if value is not None:
                raise ParameterError("{parameter} is for a table that is read in parts; give its path as X.", parameter=name)
        table = read(X)
        named = index_names(X if catalogue is None else candidates) if case_names is None else case_names
        names = check_names(named, (table if catalogue is None else catalogue).n_cases)
        if few is not None:
            names = names_at(names, sample_rows(table.n_cases, seed, few))
        n_jobs = effective_n_jobs(self.n_jobs)
        with on_threads(n_jobs, table.n_cases * len(table.columns)):
            encoding = fit_encoder(self.encoder, table, catalogue).encoding_
            if self.verbose:
                print(*types_in_words(encoding), sep="\n", file=sys.stderr)
            run = Run(prepare(table, encoding, settings, given, seed), n_jobs, self.device)
            return self._finish(run, names, Watch(callback, checkpoint, self.verbose))

    def _fit_large(
        self,
        X: Any,
        settings: Settings,
        given: Given,
        seed: int,
        names: tuple[str, ...] | None,
        watch: Watch,
        cache: str | PathLike[str] | None,
    ) -> BayesianCaseModel:
        """`fit` for a table that stays on disk."""
        client = find_client(self.client, X)
        source = X if isinstance(X, Source) else from_dask(X, client) if is_dask(X) else open_source(X)
        check_large(settings, given, self.device if client is None else "cpu")
        if client is not None and source.cluster is None:
            source = source._replace(cluster=DaskCluster(client))
        catalogue = given.candidates if isinstance(given.candidates, Table) else None
        place = Place(cache, watch.checkpoint)
        try:
            with place.naming(), lost_tasks(client):
                if client is not None:
                    check_workers(client, {place.codes, place.rows})
                    check_devices(client, self.device)
                try:
                    cached = open_large(source, new_encoder(self.encoder), catalogue, place, self.verbose)
                except BayescaseError as error:
                    raise error.within("encoder") from None
                if isinstance(given.candidates, int):
                    names = names_at(None, sample_rows(len(cached), seed, given.candidates))
                with on_threads(n_jobs := effective_n_jobs(self.n_jobs)):
                    problem = prepare_large(cached, settings, given, seed, place.rows, client)
                    self._finish(Run(problem, n_jobs, self.device), names, watch, place=place)
        except BaseException:
            place.end(finished=False)
            raise
        if not self.warm_start:
            place.end(finished=not self.interrupted_)
        return self

    def more(
        self, n_iter: int, *, checkpoint: str | PathLike[str] | None = None, callback: Callable[[Report], object] | None = None
    ) -> BayesianCaseModel:
        """Run longer: the result is that of one run of all the sweeps together, from the same starts.

        If there are at least as many new sweeps as there were, the second half of all is kept, as in one long run; if fewer,
        the burn-in stays as it was, as it does if `burn_in` is set.

        Parameters
        ----------
        n_iter : int
            Sweeps to add.
        checkpoint : path, default=None
            The checkpoint that `fit` wrote. Not needed right after a `fit` with warm_start=True.
        callback : callable, default=None
            As in `fit`.

        Returns
        -------
        BayesianCaseModel
            The model itself.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, warm_start=True, random_state=0).fit(load_recipes().table)
        >>> model.more(20).n_iter_
        60
        """
        check_is_fitted(self)
        check_watch(checkpoint, callback)
        if not is_int(n_iter) or n_iter < 1:
            raise ParameterError(
                "{parameter} must be a whole number of at least 1, not {value!r}.", parameter="n_iter", value=n_iter
            )
        if self.fitted_.whole is not None:
            raise ParameterError("A folded model cannot run longer: run the one that it was folded from, and fold it again.")
        run, n_jobs = self.__dict__.get("_run"), effective_n_jobs(self.n_jobs)
        if run is None:
            if checkpoint is None or not os_path.exists(checkpoint):
                raise ParameterError(
                    "There is no run to go on with: fit with {warm_start}, or give the {parameter} that fit wrote.",
                    parameter="checkpoint",
                    warm_start=Setting("warm_start", True),
                )
            if self.fitted_.sample is not None:
                raise ParameterError(
                    "The table was read in parts: fit again with a larger {n_iter}, its {parameter} and its {cache}, or with "
                    "{warm_start} to go on right after the fit.",
                    parameter="checkpoint",
                    n_iter=Setting("n_iter"),
                    cache=Setting("cache"),
                    warm_start=Setting("warm_start", True),
                )
            run = Run(self.fitted_.problem, n_jobs, self.device)
            run.resume(checkpoint)
        run.problem = run.problem._replace(encoding=self.fitted_.encoding)  # features may have been named since
        run.extend(n_iter, self.burn_in)
        watch = Watch(callback, checkpoint, self.verbose)
        with on_threads(n_jobs, len(run.problem.data.cells.codes)):
            return self._finish(run, self.fitted_.case_names, watch, place=self.__dict__.get("_place"), resume=False)

    def _finish(
        self,
        run: Run,
        names: tuple[str, ...] | None,
        watch: Watch,
        place: Place | None = None,
        resume: bool = True,
    ) -> BayesianCaseModel:
        """Run to the end, and show what was found. After an error the model is what it was."""
        try:
            if resume and watch.checkpoint is not None and os_path.exists(watch.checkpoint):
                run.resume(watch.checkpoint)
            run_to_end(run, watch)
            draws = run.draws()
            if not self.warm_start:
                run.close()  # labels take more memory than all results
            fitted = Fitted.of_draws(run.problem, draws, names, None if place is None else place.results)
        except BaseException:
            run.close()
            self.__dict__.pop("_run", None)
            raise
        for name in ("_run", "_place"):
            self.__dict__.pop(name, None)
        if place is not None:
            self._place: Any = place  # temporary files go with it
        if self.warm_start:
            self._run = run
        self._show(fitted)
        warn_of_results(fitted)
        return self

    def _choose_seed(self, checkpoint: str | PathLike[str] | None) -> int:
        """Without a random_state, a run that finds its checkpoint goes on with the seed that it had."""
        known = None if self.random_state is not None or checkpoint is None else seed_of(checkpoint)
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)) if known is None else known

    def _show(self, fitted: Fitted) -> None:
        """Give the results their public names; also what `load` calls."""
        encoding, posterior = fitted.encoding, fitted.posterior
        self.fitted_ = fitted
        self.encoder_ = known_encoder(self.encoder, encoding)
        self.n_features_in_ = self.encoder_.n_features_in_
        if hasattr(self.encoder_, "feature_names_in_"):
            self.feature_names_in_ = self.encoder_.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._n_features_out = fitted.n_clusters
        # In the paper these are p_s, ω_sj, π_i and φ_sj.
        self.prototype_probabilities_: list[tuple[Candidate, ...]] = fitted.candidates
        self.prototypes_ = fitted.prototypes
        self.memberships_, self.labels_ = posterior.memberships, fitted.labels
        if fitted.sample is not None:
            self._show_all(fitted, fitted.sample)
        self.prototype_cases_ = fitted.prototype_values
        self.subspace_probabilities_ = posterior.omega_prob
        self.subspaces_ = fitted.subspaces
        self.value_probabilities_ = fitted.value_probabilities
        self.feature_values_ = self.encoder_.feature_values_
        self.feature_types_ = self.encoder_.feature_types_
        self.log_joint_ = fitted.trace["log_joint"]
        self.chain_overlap_ = posterior.overlap
        self.n_clusters_ = fitted.n_clusters
        self.hyperparameters_: dict[str, Interval] = fitted.hyperparameters
        self.n_clusters_probabilities_: dict[int, float] | None = fitted.n_clusters_probabilities
        self.diagnostics_: Diagnostics = fitted.diagnostics
        self.n_iter_ = fitted.n_sweeps
        self.interrupted_ = fitted.interrupted
        self.case_names_: list[str] | None = None if fitted.case_names is None else list(fitted.case_names)
        self.cluster_names_: list[str] | None = None if fitted.cluster_names is None else list(fitted.cluster_names)
        if fitted.draws is not None:
            self.draws_: KeptDraws = fitted.draws
        elif hasattr(self, "draws_"):
            del self.draws_

    def _show_all(self, fitted: Fitted, sample: Sample) -> None:
        """Rows of the table in place of those of the sample; labels and memberships of all cases, read as they are needed."""
        if fitted.data.own_cases:
            rows = sample.rows
            self.prototypes_ = rows[fitted.prototypes]
            self.prototype_probabilities_ = [
                tuple(Candidate(int(rows[c.row]), c.probability, tuple(rows[list(c.ties)].tolist())) for c in found)
                for found in fitted.candidates
            ]
        if sample.labels is not None and sample.memberships is not None:
            self.labels_, self.memberships_ = sample.labels, sample.memberships

    def name_cases(self, names: Sequence[object] | None) -> BayesianCaseModel:
        """Give the cases names, which explanations then use and `save` keeps.

        Parameters
        ----------
        names : sequence of str or None
            Names of the rows of the catalogue, which are the cases unless `fit` got `candidates`. None forgets them.

        Returns
        -------
        BayesianCaseModel
            The model itself.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> model.name_cases(load_recipes().names).explain().clusters[0].prototype.name in load_recipes().names
        True
        """
        check_is_fitted(self)
        self._show(self.fitted_.named(check_names(names, len(self.fitted_.data.candidates))))
        return self

    def name_clusters(self, names: Sequence[object] | Mapping[int, object] | None = None) -> BayesianCaseModel:
        """Give the clusters names, which explanations, plots and reports then use and `save` keeps.

        Parameters
        ----------
        names : sequence of str, mapping of int to str, or None, default=None
            A name for each cluster, or for some of them by their number. None, a blank, and clusters that the mapping leaves
            out get short names made of what sets them apart; explanations use such names anyway.

        Returns
        -------
        BayesianCaseModel
            The model itself.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=200, random_state=0).fit(load_recipes().table)
        >>> model.name_clusters({0: "pasta"}).cluster_names_[0]
        'pasta'
        """
        check_is_fitted(self)
        made = make_names(self.fitted_)
        self._show(self.fitted_.with_cluster_names(made if names is None else check_cluster_names(names, made)))
        return self

    def name_features(self, names: Sequence[str]) -> BayesianCaseModel:
        """Give names to the columns of an X that had none, such as the words of a sparse matrix; `save` keeps them.

        Columns of a data frame have names already, so they are an error.

        Parameters
        ----------
        names : sequence of str
            A name for each column of X, those that were left out included.

        Returns
        -------
        BayesianCaseModel
            The model itself.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel
        >>> from sklearn.feature_extraction.text import CountVectorizer
        >>> from sklearn.pipeline import make_pipeline
        >>> texts = ["brakes of a bicycle", "bicycle chain", "brakes and chain", "camera lens", "a lens", "lens of a camera"]
        >>> pipe = make_pipeline(CountVectorizer(), BayesianCaseModel(2, n_iter=40, n_chains=1, random_state=0)).fit(texts)
        >>> model = pipe[-1].name_features(pipe[:-1].get_feature_names_out())
        >>> model.feature_values_
        [('and', 'bicycle', 'brakes', 'camera', 'chain', 'lens', 'of')]
        """
        check_is_fitted(self)
        self._show(self.fitted_.with_feature_names(names))
        return self

    def describe_features(self) -> FeatureTable:
        """How the columns were read: name, type, number of values, share of missing cells and the first values of each.

        Of a table that was read in parts the share is that of the sample that the model has.

        Returns
        -------
        FeatureTable
            A tuple with a `FeatureSummary` per feature, which prints as a table.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> print(model.describe_features())
        feature      type  values  missing
        ingredients  bag      110     0.0%  salt, garlic, onion, tomato, …
        """
        check_is_fitted(self)
        return describe(self.fitted_.encoding, self.fitted_.data.cases)

    # --- new cases ----------------------------------------------------------------------------------------------------

    def transform(self, X: TableLike) -> np.ndarray:
        """Fold cases into the fitted clusters: their memberships, the posterior mean of π.

        Of a collection of Dask it is one, too, with the same chunks, not yet computed.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            If the model was fitted to named columns, those of a table are found by name, in any order and among others; the
            columns of an array count by position. A path or a dataset of pyarrow is read in parts.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Memberships; each row sums to 1. `set_output` makes it a data frame.
        """
        return self.predict_proba(X)

    def predict_proba(self, X: TableLike) -> np.ndarray:
        """Fold cases into the fitted clusters, as `transform` does, but always into a plain array.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Memberships; each row sums to 1.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazily(X, predicting.Folding(self.fitted_, "memberships"), list(self.get_feature_names_out()))
        if is_large(X):
            return np.concatenate([*map(self._memberships, self._encode_parts(X)), np.zeros((0, self.n_clusters_))])
        return self._memberships(self._encode(X))

    def predict(self, X: TableLike) -> np.ndarray:
        """The cluster with the largest membership for each case; not yet computed for a collection of Dask.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of clusters, from 0.
        """
        check_is_fitted(self)
        if is_dask(X):
            return lazily(X, predicting.Folding(self.fitted_, "labels"), np.int64)
        if is_large(X):
            labels = (self._memberships(part).argmax(axis=1) for part in self._encode_parts(X))
            return np.concatenate([*labels, np.zeros(0, dtype=np.int64)])
        return np.argmax(self.predict_proba(X), axis=1)

    def score_samples(self, X: TableLike) -> np.ndarray:
        """Log predictive probability of each case, averaged over draws of φ. Missing cells are left out of a case.

        How many items a bag has is not drawn by the model, so it is given: the probability is that of the items. Of a
        collection of Dask they are not yet computed.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Natural logarithms.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> model.score_samples({"ingredients": [["pasta", "garlic"], ["rum", "ice"]]}).shape
        (2,)
        """
        check_is_fitted(self)
        n_jobs = effective_n_jobs(self.n_jobs)
        if is_dask(X):
            return lazily(X, predicting.Folding(self.fitted_, "scores"), np.float64)
        if is_large(X):
            scores = (predicting.log_probabilities(self.fitted_, part, n_jobs) for part in self._encode_parts(X))
            return np.concatenate([*scores, np.zeros(0)])
        return predicting.log_probabilities(self.fitted_, self._encode(X), n_jobs)

    def score(self, X: TableLike, y: object = None) -> float:
        """Mean log predictive probability of a case; larger is better.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `transform`.
        y : object, default=None
            Ignored; scikit-learn wants it.

        Returns
        -------
        float
            The mean of `score_samples`.
        """
        mean = self.score_samples(X).mean()
        return float(mean.compute() if is_dask(X) else mean)

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> tuple[np.ndarray, np.ndarray]:
        """New cases from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            How many cases.
        random_state : int, RandomState instance or None, default=None
            None goes on from the seed of the fit, so repeated calls give the same cases.

        Returns
        -------
        X : ndarray of object, shape (n_samples, n_features)
            Values as in `feature_values_`.
        y : ndarray of shape (n_samples,)
            The cluster that most cells of the case come from.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> cases, clusters = model.sample(3)
        >>> cases.shape, clusters.shape
        ((3, 1), (3,))
        """
        check_is_fitted(self)
        if not is_int(n_samples) or n_samples < 1:
            raise ParameterError(
                "{parameter} must be a positive whole number, not {value!r}.", parameter="n_samples", value=n_samples
            )
        seed = None if random_state is None else check_random_state(random_state).randint(2**31 - 1)
        cases, labels = predicting.sample(self.fitted_, n_samples, seed)
        return self.fitted_.encoding.decode(*cases), labels

    def _memberships(self, cases: Codes) -> np.ndarray:
        check_device(self.device, "rows")  # new cases move as rows, whatever the sampler of the fit
        return predicting.memberships(self.fitted_, cases, effective_n_jobs(self.n_jobs), self.device)

    def _encode(self, X: TableLike) -> Codes:
        check_is_fitted(self)
        return new_codes(self.fitted_.encoding, X, type(self).__name__)

    def _encode_parts(self, X: Any) -> Iterator[Codes]:
        check_is_fitted(self)
        return encode_source(self.fitted_.encoding, X if isinstance(X, Source) else open_source(X))

    # --- explanations -------------------------------------------------------------------------------------------------

    def explain(self) -> ModelExplanation:
        """What the clusters are: prototypes, key features, what tells them apart, and the members that fit badly.

        Returns
        -------
        ModelExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> print(model.explain().clusters[0].sentence)
        Cluster 0: 20 cases like case ... (...%), known by pasta, parmesan and olive oil.
        """
        check_is_fitted(self)
        return explain(self.fitted_)

    def explain_case(self, X: TableLike | int) -> CaseExplanation:
        """Where a case belongs and why: memberships, agreement with the prototype, and what speaks for this cluster.

        Parameters
        ----------
        X : table with one row, a mapping from features to values or lists of items, or an int
            The case; a number is the row of a case of the fit, which is explained by what the fit found.

        Returns
        -------
        CaseExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> case = model.explain_case({"ingredients": ["rum", "lime", "ice"]})
        >>> case.title_of(case.cluster)
        'cluster ... (ice, ...)'
        """
        check_is_fitted(self)
        if is_int(X):
            sample = self.fitted_.sample
            return explain_case(self.fitted_, int(X) if sample is None else sample.place_of(int(X)))
        if isinstance(X, str):
            raise ParameterTypeError("explain_case takes the row of a case, or a table with one case, not {value!r}.", value=X)
        case = self._encode(one_row(X, self.fitted_.encoding) if isinstance(X, Mapping) else X)
        if case.n_rows != 1:
            raise ParameterError("explain_case takes one case, not {n}.", n=case.n_rows)
        return explain_case(self.fitted_, case)

    def explain_pair(self, first: int, second: int) -> PairExplanation:
        """How two clusters differ.

        Parameters
        ----------
        first, second : int
            The clusters.

        Returns
        -------
        PairExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> model.explain_pair(0, 1).first.more_often[0].words
        'pasta'
        """
        check_is_fitted(self)
        return explain_pair(self.fitted_, first, second)

    def explain_tree(self, *, tolerance: float = TOLERANCE) -> TreeExplanation:
        """Which clusters may be told as one: a tree, joined where the probability of left-out cases loses least.

        A case is left out by taking it off the counts of its cluster; no fit is made anew. `plots.plot_tree` draws the tree,
        and `fold` cuts it.

        Parameters
        ----------
        tolerance : float, default=0.07
            As for `fold`; it decides which number of clusters is recommended.

        Returns
        -------
        TreeExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> len(model.explain_tree().joins)
        4
        """
        check_is_fitted(self)
        return explain_tree(self.fitted_, tolerance)

    def fold(self, n_clusters: int | None = None, *, tolerance: float = TOLERANCE) -> BayesianCaseModel:
        """The same model with fewer clusters, without a new fit: those are joined that lose least (`explain_tree`).

        The result explains, draws, reports, predicts and is saved as any other. A case belongs to a folded cluster as much as
        to its parts together; its prototype is a member, and its subspace is that of all its cases. Names that were given stay,
        joined by a plus.

        Parameters
        ----------
        n_clusters : int, default=None
            How many clusters; as many as the tolerance leaves if None.
        tolerance : float, default=0.07
            Small differences do not count: clusters are one if that makes their cases less probable by no more than this share.
            Nor does it count that two features go together in them.

        Returns
        -------
        BayesianCaseModel
            A new one with the same parameters. It cannot run `more`; folding it anew starts from all clusters.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=200, random_state=0).fit(load_recipes().table)
        >>> model.fold(2).n_clusters_
        2
        """
        check_is_fitted(self)
        fewer = type(self)(**self.get_params(deep=False))
        folded = fold(self.fitted_, n_clusters, tolerance)
        if folded.whole is not None and folded.whole.sample is not None:
            fewer._place = place = Temporary()  # goes with the model
            folded = folded.with_sample(join_results(folded.whole.sample, folded.groups, place.path))
        fewer._show(folded)
        return fewer

    def explain_differences(self) -> DifferencesExplanation:
        """Where the chains differ: which clusters all of them found, and which cases are in one or another.

        Clusters of two chains are matched so that as many cases as possible are in the same one (the Hungarian method). A table
        of the cases that move is `pandas.DataFrame(model.explain_differences().cases)`; `plots.plot_differences` draws them.

        Returns
        -------
        DifferencesExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> print(model.explain_differences().sentence)
        One chain alone found these clusters, so there is nothing to compare it with: run several chains.
        """
        check_is_fitted(self)
        return explain_differences(self.fitted_)

    def explain_agreement(self, cluster: int) -> AgreementExplanation:
        """Which members of a cluster agree with its prototype, key feature by key feature; `plots.plot_agreement` draws it.

        Parameters
        ----------
        cluster : int
            Its number.

        Returns
        -------
        AgreementExplanation
            Prints as text; `to_json` gives plain JSON.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> model.explain_agreement(0).features[0].name
        'pasta'
        """
        check_is_fitted(self)
        return explain_agreement(self.fitted_, cluster)

    def report(self, path: str | PathLike[str], image_shape: tuple[int, int] | None = None, title: str | None = None) -> None:
        """Write one HTML file that explains the model; needs the extra `plots`. It opens from disk and needs no network.

        Parameters
        ----------
        path : path
            File to write; one that is there is replaced.
        image_shape : (height, width), default=None
            The features are the pixels of an image, row by row.
        title : str, default=None
            Heading of the page.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(f"{folder}/recipes.html", title="Recipes")
        """
        from .explaining.render.report import write_report

        check_is_fitted(self)
        write_report(self.fitted_, path, image_shape=image_shape, title=title)

    def _html_cards(self, more: str) -> str:
        from .explaining.render.html import notebook

        return notebook(self.explain(), more) if hasattr(self, "fitted_") else more

    @property
    def _repr_html_(self) -> Callable[[], str]:  # as scikit-learn: an attribute only if its display is set to diagrams
        diagram = super()._repr_html_
        return lambda: self._html_cards(diagram())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._html_cards(bundle["text/html"])
        return bundle

    def to_arviz(self) -> Any:
        """The trace as ArviZ takes it, to plot and to summarise; needs the extra `arviz`.

        Group `posterior` has the label-free quantities of `diagnostics_` for every chain and every sweep after the burn-in.
        With `keep_draws` it has the kept sweeps only, and the prototypes and subspaces, too; their clusters are
        comparable among the chains with `chain_overlap_` of at least 0.9. Group `sample_stats` has the log joint as `lp` and
        the rates. The coordinate `draw` is the number of the sweep.

        Returns
        -------
        xarray.DataTree or arviz.InferenceData
            The first with ArviZ 1.x, the second with 0.x.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> model.to_arviz()["posterior"]["purity"].dims
        ('chain', 'draw')
        """
        check_is_fitted(self)
        return self.fitted_.to_arviz()

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to one file: arrays and JSON, no pickle.

        The results, the parameters and all that new cases need are kept. A `similarity` that is a function cannot be: the model
        that `load` returns asks for it before it is fitted again. Of a table that was read in parts the labels and memberships
        of all cases go into two files beside it, `model.labels.npy` and `model.memberships.npy` if it is `model.bcm`.

        Parameters
        ----------
        path : path
            File to write; one that is there is replaced once the new one is whole.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/recipes.bcm")
        """
        check_is_fitted(self)
        elsewhere = ("client", "device")  # where a fit is made is not part of the model
        params = {name: value for name, value in self.get_params(deep=False).items() if name not in elsewhere}
        self.fitted_.with_settings(params_to_json(params)).save(path)
        if self.fitted_.sample is not None:
            save_results(self.fitted_.sample, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> BayesianCaseModel:
        """Read a model that `save` wrote. A damaged, foreign or newer file raises `FileFormatError`.

        Parameters
        ----------
        path : path
            File to read.

        Returns
        -------
        BayesianCaseModel
            As it was, with all its parameters.

        Examples
        --------
        >>> from bayescase import BayesianCaseModel, load_recipes
        >>> model = BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0).fit(load_recipes().table)
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/recipes.bcm")
        ...     again = BayesianCaseModel.load(f"{folder}/recipes.bcm")
        >>> bool((again.labels_ == model.labels_).all())
        True
        """
        fitted = Fitted.load(path)
        if fitted.sample is not None:
            fitted = fitted.with_sample(find_results(fitted.sample, fitted.n_clusters, path))
        try:
            model = cls(**params_from_json(fitted.settings))
            model._show(fitted)
        except Exception as error:  # whatever a damaged or hostile file leads to
            raise FileFormatError(f"{fspath(path)!r} is not a whole bayescase model ({error!r}).") from error
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        # scikit-learn's sparse checks read this of everything that has predict_proba: more than two columns
        tags.classifier_tags = ClassifierTags(multi_class=True)
        return tags

    def __sklearn_clone__(self) -> BayesianCaseModel:
        alone: BayesianCaseModel = super(BayesianCaseModel, copy(self)).__sklearn_clone__()
        alone.client = self.client  # it stands for a cluster, and cannot be copied
        return alone

    def __getstate__(self) -> dict[str, Any]:
        kept = super().__getstate__().items()  # threads and files cannot be pickled
        return {name: None if name == "client" else value for name, value in kept if name not in ("_run", "_place")}
