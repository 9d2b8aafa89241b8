"""bayescase: clusters of discrete data that a person can explain, by one real case and the features that matter.

Reading order, each file using only those before it:

    tables       any table → columns of plain NumPy, missing cells known
    features     what a column's feature is: its kind, its values, its bins
    encoding     a table of values ↔ global integer codes
    model        the paper, one equation per function; the joint probability; the simulator
    state        the arrays of a run
    datasets     bundled data
    similarity   which values agree with the prototype's
    hyper        the hyperparameters that are learned, and the number of clusters
    kernels      the equations compiled: random numbers, vector lanes, the two samplers, new cases
    starts       the starts of a chain
    storage      one file format for models and checkpoints
    files        CSV, JSON lines, ARFF, NPZ, Parquet, Feather → tables
    posterior    draws → averages, labels aligned
    diagnostics  R-hat, effective draws and a verdict; ArviZ
    sampling     the only loop: chains × sweeps
    checks       what a user gives and what a file holds, checked
    records      frozen dataclasses ↔ plain JSON
    explanation  what clusters, cases and differences are, in words and numbers
    drawing      what plots are drawn with
    cards        clusters drawn by their prototypes
    plots        explanations and draws → figures
    markup       explanations → HTML
    report       one HTML page that explains a model
    estimator    BayesianCaseModel, the scikit-learn coat
    classifier   BayesianCaseClassifier: labels from memberships, explained by prototypes
    selection    select_n_clusters: the held-out curve
    speed        how fast the sampler runs on this machine
    terminal     tables for a terminal
    experiments  the paper's tables and figures, made anew
    study        an experiment with people, in the browser
    cli          the command line
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .classifier import BayesianCaseClassifier
    from .datasets import load_recipes, load_smileys
    from .estimator import BayesianCaseModel
    from .selection import select_n_clusters
    from .storage import FileFormatError

__version__ = "0.1.0"
__all__ = [
    "BayesianCaseClassifier",
    "BayesianCaseModel",
    "FileFormatError",
    "load_recipes",
    "load_smileys",
    "select_n_clusters",
]

_HOME = {
    "BayesianCaseClassifier": "classifier",
    "BayesianCaseModel": "estimator",
    "FileFormatError": "storage",
    "load_recipes": "datasets",
    "load_smileys": "datasets",
    "select_n_clusters": "selection",
}


def __getattr__(name):  # scikit-learn and numba take seconds to import: only when first needed
    if name in _HOME:
        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_HOME])
