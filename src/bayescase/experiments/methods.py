"""Clusterings of discrete data, each at its documented settings, the best of several starts by its own objective."""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from ..estimator import BayesianCaseModel
from ..lda import main_topics, train_lda

FIRST = 100_000  # seeds of the starts lie together, those of other seeds elsewhere
SWEEPS = 1000


class Fit(NamedTuple):
    objective: float  # the method's own; higher is better
    labels: np.ndarray  # (N,)
    score: Callable[[np.ndarray], float] | None = None  # new cases → mean log probability of a case, if it has one


class Method(NamedTuple):
    name: str
    package: str  # what is imported
    settings: str  # in words
    prepare: Callable[[np.ndarray, int, dict], Callable[[int], Fit]]  # (codes, clusters, settings) → (seed → fit)


def is_here(method: Method) -> bool:
    return find_spec(method.package) is not None


def fit(method: Method, x: np.ndarray, n_clusters: int, starts: int, seed: int, settings: dict) -> Fit:
    """The best of the starts by the method's own objective. x has codes from 0 on, and -1 for gaps."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs, of newer NumPy and of ends of iterations; ours of features with one value
        one = method.prepare(x, n_clusters, settings)
        made = [one(FIRST * seed + start) for start in range(starts)]
    return max(made, key=lambda fit: fit.objective if np.isfinite(fit.objective) else -np.inf)


def bayescase(x, n_clusters, settings):
    def one(seed):
        encoder = {"feature_types": "integer", "missing_values": -1}
        model = BayesianCaseModel(n_clusters, **settings.get("bayescase", {}), encoder=encoder, random_state=seed).fit(x)
        return Fit(float(model.log_joint_.mean()), model.labels_, model.score)

    return one


def k_modes(x, n_clusters, settings):
    from kmodes.kmodes import KModes

    def one(seed):
        model = KModes(n_clusters, init="Huang", n_init=1, random_state=seed).fit(x)
        return Fit(-float(model.cost_), model.labels_)

    return one


def k_medoids(x, n_clusters, settings):
    import kmedoids

    far = np.zeros((len(x), len(x)), dtype=np.float32)
    for column in x.T:
        far += column[:, None] != column

    def one(seed):
        found = kmedoids.fasterpam(far, n_clusters, random_state=seed, n_cpu=1)
        return Fit(-float(found.loss), found.labels.astype(int))

    return one


def latent_classes(x, n_clusters, settings):
    from stepmix.stepmix import StepMix

    cases = np.where(x < 0, np.nan, x)
    kind = "categorical_nan" if (x < 0).any() else "categorical"

    def one(seed):
        model = StepMix(n_clusters, measurement=kind, random_state=seed, progress_bar=0).fit(cases)
        return Fit(float(model.score(cases)), model.predict(cases), lambda new: class_score(model, new))

    return one


def class_score(model, new):
    """StepMix.score, which has no room for a gap in a column that had none in the fit."""
    found = model.get_parameters()
    values = np.log(np.clip(found["measurement"]["pis"], 1e-15, None))  # (clusters, features · values), as StepMix clips
    width = values.shape[1] // new.shape[1]
    each = np.where(new < 0, 0.0, values[:, np.arange(new.shape[1]) * width + np.maximum(new, 0)])
    return float(logsumexp(each.sum(axis=2).T, b=found["weights"], axis=1).mean())


def lda_gibbs(x, n_clusters, settings):
    filled = np.flatnonzero((x >= 0).any(axis=1))  # tomotopy leaves out documents without words
    documents = [[f"{j}={v}" for j, v in enumerate(row) if v >= 0] for row in x[filled]]

    def one(seed):
        model = train_lda(documents, n_clusters, eta=1.0, n_iter=settings["sweeps"], seed=seed)
        labels = np.zeros(len(x), dtype=int)
        labels[filled] = main_topics(model)
        return Fit(float(model.ll_per_word), labels)

    return one


def lda_variational(x, n_clusters, settings):
    from sklearn.decomposition import LatentDirichletAllocation

    words = np.column_stack([column == value for column in x.T for value in range(column.max() + 1)]).astype(float)

    def one(seed):
        model = LatentDirichletAllocation(n_clusters, random_state=seed).fit(words)
        return Fit(float(model.score(words)), model.transform(words).argmax(axis=1))

    return one


GIBBS = (
    f"{SWEEPS:,} sweeps, a word for every value of every feature; α = 0.1 in every entry, its default, but not learned, since "
    "on several sets the most probable start then had nearly all words in one topic; η = 1, as the paper has it, not 0.01, "
    "which agreed less with the classes on most of the sets tried"
)
METHODS = {
    method.name: method
    for method in (
        Method("bayescase", "bayescase", "its defaults", bayescase),
        Method("StepMix", "stepmix", "latent class analysis at its defaults, categorical measurement", latent_classes),
        Method("k-modes", "kmodes", "Huang's starts", k_modes),
        Method("k-medoids", "kmedoids", "FasterPAM from random medoids, on Hamming distances", k_medoids),
        Method("Gibbs LDA", "tomotopy", GIBBS, lda_gibbs),
        Method("variational LDA", "sklearn", "scikit-learn's defaults, the same words", lda_variational),
    )
}
