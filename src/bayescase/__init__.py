"""bayescase: clusters of discrete data that a person can explain, by one real case and the features that matter.

Reading order: rooms, each using only those before it (docs/architecture.md has their files).

    errors       what a user can do wrong, said in Python's words or in those of the command line
    parallel     work cut into parts, on threads
    state        the arrays of a run
    model        the paper, one equation per function; the joint probability; the simulator
    storage      one file format for models and checkpoints
    lda          latent Dirichlet allocation, to compare with
    reading      any table or file → integer codes, and back
    kernels      the equations compiled, and the engines that run them
    sampling     what is asked as a Problem, chains in motion as a Run; posterior and verdict
    fitted       what a fit is: Fitted, frozen, which all that follows is made of
    predicting   new cases, and cases that never were
    parameters   what the estimators share: checks at the door, warnings, parameters ↔ JSON
    explaining   what clusters, cases and differences are, in words and numbers; how they are shown
    datasets     bundled data
    estimator    BayesianCaseModel, the scikit-learn coat
    classifier   BayesianCaseClassifier: labels from memberships, explained by prototypes
    selection    select_n_clusters: the held-out curve
    web          what every page of ours needs: guard, keys, forms, templates, serving
    study        an experiment with people, in the browser
    experiments  the paper's tables and figures, made anew; speed
    cli          the command line
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .classifier import BayesianCaseClassifier
    from .datasets import load_recipes, load_smileys
    from .errors import BayescaseError, BayescaseWarning, ParameterError, TableError
    from .estimator import BayesianCaseModel
    from .reading.encoder import CaseEncoder
    from .selection import select_n_clusters
    from .storage import FileFormatError

__version__ = "0.1.0"
__all__ = [
    "BayescaseError",
    "BayescaseWarning",
    "BayesianCaseClassifier",
    "BayesianCaseModel",
    "CaseEncoder",
    "FileFormatError",
    "ParameterError",
    "TableError",
    "load_recipes",
    "load_smileys",
    "select_n_clusters",
]

_HOME = {
    "BayescaseError": "errors",
    "BayescaseWarning": "errors",
    "BayesianCaseClassifier": "classifier",
    "BayesianCaseModel": "estimator",
    "CaseEncoder": "reading.encoder",
    "FileFormatError": "storage",
    "ParameterError": "errors",
    "TableError": "errors",
    "load_recipes": "datasets",
    "load_smileys": "datasets",
    "select_n_clusters": "selection",
}


@contextmanager
def _uncollected() -> Iterator[None]:
    """Modules stay: the garbage collector would look through them again and again while there are more and more."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def __getattr__(name: str) -> Any:  # scikit-learn and numba take seconds to import: only when first needed
    if name == "plots":
        return import_module(".explaining.render.figures", __name__)
    if name in _HOME:
        with _uncollected():
            return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME, "plots"])
