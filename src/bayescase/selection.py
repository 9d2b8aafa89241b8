"""select_n_clusters: how many clusters the data support, by the probability of cases that the model has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from .errors import ParameterError, ParameterTypeError, Setting
from .estimator import BayesianCaseModel
from .parameters import Seed
from .reading.tables import TableLike, read
from .sampling.values import is_int

# The default model runs shorter than a fit for its own sake, with as many chains, since a better start helps more than a longer
# run: on 12 simulated tables (120 cases, 10 features, 3 or 5 planted clusters) 100 sweeps of 4 chains recommend the planted
# number 11 times, as do 100 of 8; 200 of 2, for the same time, 9 times; 200 of 8 10 times.
SWEEPS, CHAINS = 100, 4

Task: TypeAlias = tuple[int, int]  # number of clusters, fold


@dataclass(frozen=True)
class ClusterCount:
    """How well one number of clusters predicts cases that it has not seen."""

    n_clusters: int
    mean: float  # log probability of a held-out case
    standard_error: float
    fold_means: tuple[float, ...]
    loss: float  # mean of the best number minus this mean, case by case
    loss_standard_error: float

    @property
    def level_with_best(self) -> bool:
        """Is the loss within one standard error?"""
        return self.loss <= self.loss_standard_error


@dataclass(frozen=True)
class ClusterSelection:
    """The held-out curve of `select_n_clusters` and what it says."""

    curve: tuple[ClusterCount, ...]  # by number of clusters
    best: int  # the largest held-out mean
    recommended: int  # the smallest number that is level with the best
    recommendation: str  # in plain words

    @property
    def level(self) -> tuple[int, ...]:
        """The numbers within one standard error of the best. If there are several, the data do not decide between them."""
        return tuple(count.n_clusters for count in self.curve if count.level_with_best)

    def __str__(self) -> str:
        lines = ["clusters  held-out log probability  behind the best"]
        for count in self.curve:
            behind = "best" if count.n_clusters == self.best else f"{count.loss:.3f} ± {count.loss_standard_error:.3f}"
            lines.append(f"{count.n_clusters:8d}  {f'{count.mean:.3f} ± {count.standard_error:.3f}':>24}  {behind:>15}")
        return "\n".join([*lines, self.recommendation])


def select_n_clusters(
    X: TableLike,
    n_clusters: Iterable[int] = range(1, 9),
    *,
    model: BayesianCaseModel | None = None,
    candidates: TableLike | None = None,
    cv: int = 5,
    n_jobs: int | None = None,
    random_state: Seed = None,
) -> ClusterSelection:
    """Compare numbers of clusters by the probability they give to held-out cases.

    The cases are shuffled and cut into `cv` folds. Each number of clusters is fitted to all folds but one and scored on that
    one. Numbers are compared case by case, on the same folds, so what makes some cases hard for every model cancels.

    Parameters
    ----------
    X : array or table of shape (n_samples, n_features)
        As for `BayesianCaseModel.fit`.
    n_clusters : iterable of int, default=range(1, 9)
        The numbers to compare.
    model : BayesianCaseModel, default=None
        Settings of every fit, besides the number of clusters and the seed. If None, the default model with 100 sweeps of 4
        chains.
    candidates : table, default=None
        The catalogue that prototypes are chosen from, as for `BayesianCaseModel.fit`; the cases of each fit if None.
    cv : int, default=5
        Number of folds.
    n_jobs : int, default=None
        Fits at a time, in threads; -1 uses all processors. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffle and of the fits; that of `model` if None.

    Returns
    -------
    ClusterSelection
        The curve with standard errors, the best and the recommended number, and a recommendation in plain words.

    Notes
    -----
    A standard error is the larger of two: that over cases, and that over folds. The second also counts the luck of each fit,
    but is itself uncertain with a few folds. The recommended number is the smallest whose distance from the best is at most
    one standard error of that distance. A held-out cell with a value that no fitted case has is left out, for every number of
    clusters alike.

    Examples
    --------
    >>> import numpy as np
    >>> from bayescase import BayesianCaseModel, select_n_clusters
    >>> X = np.repeat([[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]], 20, axis=0)
    >>> short = BayesianCaseModel(n_iter=40, n_chains=2)
    >>> select_n_clusters(X, range(1, 5), model=short, cv=3, random_state=0).recommended
    3
    """
    table = read(X)
    numbers, model = check_numbers(n_clusters), check_model(model)
    check_folds(cv, table.n_cases, numbers[-1])
    rng = check_random_state(model.random_state if random_state is None else random_state)
    folds = list(KFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1)).split(np.empty(table.n_cases)))
    seeds = rng.randint(2**31 - 1, size=cv)

    def held_out(task: Task) -> np.ndarray:
        S, k = task
        fit, rest = (table.take(rows) for rows in folds[k])
        own = clone(model).set_params(n_clusters=S, random_state=int(seeds[k]))
        return own.fit(fit, candidates=candidates).score_samples(rest)

    scores = in_threads(held_out, [(S, k) for S in numbers for k in range(cv)], n_jobs)
    return compare({S: [scores[S, k] for k in range(cv)] for S in numbers})


def in_threads(held_out: Callable[[Task], np.ndarray], tasks: Sequence[Task], n_jobs: int | None) -> dict[Task, np.ndarray]:
    """Task → result. In threads of a pool: there, unlike in the main thread, Ctrl-C ends all, and not just one fit."""
    with warnings.catch_warnings(), ThreadPoolExecutor(effective_n_jobs(n_jobs)) as pool:
        warnings.simplefilter("ignore", UserWarning)  # a fold lacks rare values; every fit would say so
        return dict(zip(tasks, pool.map(held_out, tasks), strict=True))


def compare(scores: dict[int, list[np.ndarray]]) -> ClusterSelection:
    """A ClusterSelection from the held-out log probabilities: number of clusters → one array per fold."""
    mean = {S: float(np.concatenate(folds).mean()) for S, folds in scores.items()}
    best = max(mean, key=lambda S: (mean[S], -S))
    curve = []
    for S, folds in sorted(scores.items()):
        losses = [ours - theirs for ours, theirs in zip(scores[best], folds, strict=True)]
        fold_means = tuple(float(fold.mean()) for fold in folds)
        curve.append(ClusterCount(S, mean[S], standard_error(folds), fold_means, mean[best] - mean[S], standard_error(losses)))
    recommended = next(count.n_clusters for count in curve if count.level_with_best)
    return ClusterSelection(tuple(curve), best, recommended, in_words(curve, best, recommended))


def standard_error(folds: Sequence[np.ndarray]) -> float:
    """Of the mean over all cases: the larger of the standard errors over cases and over folds."""
    cases, means = np.concatenate(folds), np.array([fold.mean() for fold in folds])
    return float(max(values.std(ddof=1) / np.sqrt(len(values)) for values in (cases, means)))


def in_words(curve: Sequence[ClusterCount], best: int, recommended: int) -> str:
    level = [count.n_clusters for count in curve if count.level_with_best]
    numbers = [count.n_clusters for count in curve]
    words = "1 cluster: " if recommended == 1 else f"{recommended} clusters: "
    if len(numbers) == 1:
        return words + "the only number tried."
    if recommended == 1:
        words += "no larger number predicts held-out cases better by more than one standard error: the data show no clusters."
        if best != 1:
            words += f" {best} is best, but by less than that: more cases may decide."
    elif len(level) == 1:
        words += "it predicts held-out cases best, and every other number tried is worse by more than one standard error."
    else:
        words += (
            f"{listed(level)} predict held-out cases equally well, within one standard error, so the data do not decide "
            f"between them; {recommended} is the simplest."
        )
    if best == numbers[-1]:
        words += f" {best} is the largest number tried and the best: try larger ones."
    elif recommended == numbers[0] > 1:
        words += f" {recommended} is the smallest number tried: try smaller ones."
    return words


def listed(numbers: Iterable[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} and {last}"


# --- checks ---------------------------------------------------------------------------------------------------------------


def check_numbers(n_clusters: Any) -> list[int]:
    if not isinstance(n_clusters, Iterable) or isinstance(n_clusters, (str, bytes)):
        raise ParameterTypeError(
            "{parameter} must be the numbers to compare, such as range(1, 9), not {value!r}.",
            parameter="n_clusters",
            value=n_clusters,
        )
    numbers = list(n_clusters)
    if not numbers or not all(is_int(S) and S >= 1 for S in numbers):
        raise ParameterError(
            "{parameter} must be whole numbers of at least 1, such as range(1, 9), not {value!r}.",
            parameter="n_clusters",
            value=numbers,
        )
    return sorted({int(S) for S in numbers})


def check_model(model: Any) -> BayesianCaseModel:
    if model is None:
        return BayesianCaseModel(n_iter=SWEEPS, n_chains=CHAINS)
    if not isinstance(model, BayesianCaseModel):
        raise ParameterTypeError("{parameter} must be a BayesianCaseModel, not {value!r}.", parameter="model", value=model)
    if model.subspace_prior is not None:
        raise ParameterError(
            "{parameter} cannot be used here: it speaks of single clusters, and their number changes.",
            parameter="subspace_prior",
        )
    return model


def check_folds(cv: Any, N: int, most: int) -> None:
    if not is_int(cv) or cv < 2:
        raise ParameterError("{parameter} must be a whole number of at least 2, not {value!r}.", parameter="cv", value=cv)
    if cv > N:
        raise ParameterError(
            "{parameter} needs at least {cv} cases, but the data has {N}.", parameter=Setting("cv", cv), cv=cv, N=N
        )
    fewest = N - -(-N // cv)
    if most > fewest:
        raise ParameterError(
            "{parameter} goes up to {value}, but with {cv} some fits have {fewest} of the {N} cases: use fewer.",
            parameter="n_clusters",
            value=most,
            cv=Setting("cv", cv),
            fewest=fewest,
            N=N,
        )
