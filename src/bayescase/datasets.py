"""Bundled data: smiley faces drawn from the model's own prior, and recipes."""

import csv
import itertools
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from .model import simulate
from .state import make_data, make_hyper


@dataclass(frozen=True)
class Dataset:
    """A table of cases, with what is known about them beside it."""

    table: dict[str, np.ndarray]  # name of the feature → its column; a BayesianCaseModel takes it as it is
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


def far_apart(faces, omega, rng):
    """Prototypes that differ wherever two clusters both care, so that the clusters can be told apart."""
    while True:
        p = rng.integers(len(faces), size=len(omega))
        same = faces[p][:, None, :] == faces[p][None, :, :]
        both = omega[:, None, :] & omega[None, :, :]
        if not (same & both)[~np.eye(len(omega), dtype=bool)].any():
            return p


def load_recipes() -> Dataset:
    """Eighty recipes of five families (pasta, chili, brownies, punch, curry): which ingredients each one uses."""
    text = files("bayescase").joinpath("data/recipes.csv").read_text(encoding="utf-8")
    recipes = list(csv.DictReader(text.splitlines()))
    used = [set(recipe["ingredients"].split(";")) for recipe in recipes]
    table = {name: np.array([name in ingredients for ingredients in used]) for name in sorted(set().union(*used))}
    return Dataset(
        table=table,
        names=np.array([recipe["name"] for recipe in recipes]),
        families=np.array([recipe["family"] for recipe in recipes]),
        description="Eighty recipes and the ingredients they use, in five families.",
    )
