"""Bundled data: smiley faces drawn from the model's own prior, and recipes."""

import csv
import itertools
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from .errors import ParameterError
from .model import simulate
from .state import make_data, make_hyper


@dataclass(frozen=True)
class Dataset:
    """A table of cases, with what is known about them beside it."""

    table: dict[str, Any]  # name of the feature → its column; a BayesianCaseModel takes it as it is
    names: np.ndarray  # (N,) a name for each case
    families: np.ndarray  # (N,) the group it belongs to; never shown to the model
    description: str


FACE = {
    "colour": ("green", "orange", "blue", "yellow"),
    "face shape": ("square", "round", "triangle"),
    "eyes": ("dots", "stars", "winking", "sleepy"),
    "mouth": ("smile", "open", "flat"),
    "ears": ("none", "small", "large"),
}
FACE_SUBSPACES = (("colour", "face shape"), ("colour", "eyes"), ("eyes", "mouth"))


def load_smileys(n_cases: int = 240, random_state: int = 0) -> Dataset:
    """Smiley faces in three clusters, drawn from the prior as in the paper's motivating example.

    λ = 1, c = 50, α = 0.1 in every entry, and two defining features per cluster: colour and shape, colour and eyes, eyes and
    mouth. The catalogue of possible prototypes is every face there is. `families` is the cluster most of a face comes from.

    Parameters
    ----------
    n_cases : int, default=240
        How many faces.
    random_state : int, default=0
        Seed of the draw.

    Returns
    -------
    Dataset
        With the faces as `table`, `names`, `families` and a `description`.

    Examples
    --------
    >>> from bayescase import load_smileys
    >>> list(load_smileys(n_cases=30).table)
    ['colour', 'face shape', 'eyes', 'mouth', 'ears']
    """
    rng = np.random.default_rng(random_state)
    names = list(FACE)
    offset = np.concatenate([[0], np.cumsum([len(values) for values in FACE.values()])])
    faces = np.stack(np.meshgrid(*(np.arange(lo, hi) for lo, hi in itertools.pairwise(offset))), axis=-1)
    data = make_data(faces.reshape(-1, len(names)), offset)
    omega = np.array([[name in subspace for name in names] for subspace in FACE_SUBSPACES])
    hyper = make_hyper(3, len(names), alpha=0.1 * 3, lam=1.0, c=50.0, q=0.5)
    drawn = simulate(data, hyper, rng, n_cases, p=far_apart(data.x, omega, rng), omega=omega)
    words = np.array([value for values in FACE.values() for value in values])
    table = {name: words[drawn.x[:, j]] for j, name in enumerate(names)}
    family = np.array([np.bincount(row, minlength=3).argmax() for row in drawn.z])
    return Dataset(
        table=table,
        names=np.array([f"face {i + 1}" for i in range(n_cases)]),
        families=np.array(["+".join(subspace) for subspace in FACE_SUBSPACES])[family],
        description="Smiley faces from the prior of the Bayesian Case Model: three clusters with two defining features each.",
    )


def far_apart(faces: np.ndarray, omega: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Prototypes that differ wherever two clusters both care, so that the clusters can be told apart."""
    while True:
        p = rng.integers(len(faces), size=len(omega))
        same = faces[p][:, None, :] == faces[p][None, :, :]
        both = omega[:, None, :] & omega[None, :, :]
        if not (same & both)[~np.eye(len(omega), dtype=bool)].any():
            return p


def simulate_cases(
    n_cases: int = 200,
    n_features: int = 10,
    n_values: int = 4,
    n_clusters: int = 4,
    *,
    alpha: float = 0.1,
    lam: float = 1.0,
    c: float = 50.0,
    q: float = 0.5,
    missing: float = 0.0,
    random_state: int = 0,
) -> Dataset:
    """A table drawn from the prior, with planted clusters: `families` is the cluster that most of a case comes from.

    Parameters
    ----------
    n_cases, n_features, n_values, n_clusters : int
        The size of the table, the number of values of each feature, and of clusters.
    alpha, lam, c, q : float
        As for `BayesianCaseModel`.
    missing : float
        Share of the cells that are then lost at random.
    random_state : int
    """
    sizes = {"n_cases": n_cases, "n_features": n_features, "n_values": n_values, "n_clusters": n_clusters}
    for name, size in sizes.items():
        if size < 1 + (name == "n_values"):
            raise ParameterError(
                "{parameter} must be at least {least}, not {value!r}.",
                parameter=name,
                least=1 + (name == "n_values"),
                value=size,
            )
    if not alpha >= 0 or not lam > 0 or not c >= 0 or not 0 < q < 1 or not 0 <= missing < 1:
        raise ParameterError("alpha and c must be at least 0, lam above 0, q between 0 and 1, missing at least 0 and below 1.")
    rng = np.random.default_rng(random_state)
    offset = np.arange(n_features + 1) * n_values
    data = make_data(offset[:-1] + rng.integers(n_values, size=(n_cases, n_features)), offset)
    hyper = make_hyper(n_clusters, n_features, alpha, lam, c, q)
    drawn = simulate(data, hyper, rng, n_cases)
    words = np.array([f"v{v + 1}" for v in range(n_values)], dtype=object)
    values = words[drawn.x % n_values]
    values[rng.random(drawn.x.shape) < missing] = None
    family = [np.bincount(row, minlength=n_clusters).argmax() for row in drawn.z]
    return Dataset(
        table={f"f{j + 1}": values[:, j] for j in range(n_features)},
        names=np.array([f"case {i + 1}" for i in range(n_cases)]),
        families=np.array([f"cluster {s + 1}" for s in family]),
        description=f"{n_cases} cases in {n_clusters} clusters, drawn from the prior of the Bayesian Case Model.",
    )


def load_recipes() -> Dataset:
    """Eighty recipes of five families (pasta, chili, brownies, punch, curry): each a bag of the ingredients that it uses.

    Returns
    -------
    Dataset
        With the ingredients as `table`, `names`, `families` and a `description`.

    Examples
    --------
    >>> from bayescase import load_recipes
    >>> recipes = load_recipes()
    >>> print(recipes.names[0], recipes.families[0], len(recipes.table["ingredients"][0]))
    Penne alla Norma pasta 9
    """
    text = files("bayescase").joinpath("data/recipes.csv").read_text(encoding="utf-8")
    recipes = list(csv.DictReader(text.splitlines()))
    return Dataset(
        table={"ingredients": [recipe["ingredients"].split(";") for recipe in recipes]},
        names=np.array([recipe["name"] for recipe in recipes]),
        families=np.array([recipe["family"] for recipe in recipes]),
        description="Eighty recipes and the ingredients they use, in five families.",
    )
