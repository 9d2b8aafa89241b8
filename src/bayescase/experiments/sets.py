"""Labelled sets of discrete data as integer codes: from a folder, from OpenML, from scikit-learn, or simulated."""

import csv
import warnings
import zipfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import fetch_openml

from ..errors import ParameterError
from . import digits
from .frame import local_file

GAP = "?"


class Cases(NamedTuple):
    x: np.ndarray  # (N, P) codes of the values; -1 where missing
    y: np.ndarray  # (N,) classes


class Place(NamedTuple):
    """Where a set is: a file of the folder of data, or a number of openml.org."""

    file: str
    openml: int
    drop: tuple[str, ...] = ()  # columns that are no features


PLACES = {
    "zoo": Place("uci_zoo.csv", 62, ("animal",)),
    "votes": Place("uci_house_votes_84.csv", 56),
    "soybean": Place("uci_soybean_large.csv", 42),
    "mushroom": Place("uci_mushroom.csv", 24),
    "car": Place("uci_car.csv", 21),
    "nursery": Place("uci_nursery.csv", 26),
    "breast cancer": Place("uci_breast_cancer.csv", 13),
    "connect-4": Place("connect4_67557x42.npz", 40668),
}
FILES = (*(place.file for place in PLACES.values()), digits.FILE)


def load(name: str, seed: int, data: Path | None) -> Cases:
    """The cases of a set; the seed decides about simulated ones only."""
    if name == "subspaces":
        return plant_subspaces(seed)
    if name == "digits":
        return Cases(*digits.load({"usps": True}, data))
    path = local_file(data, PLACES[name].file)
    return from_openml(name) if path is None else from_file(path, PLACES[name].drop)


@cache
def reachable(names: tuple[str, ...], data: Path | None, fetch: bool) -> tuple[str, ...]:
    """Those that can be had: without a network, or if nothing is to be fetched, those that are in the folder or need none."""
    remote = [name for name in names if name in PLACES and local_file(data, PLACES[name].file) is None]
    try:
        for name in remote if fetch else ():
            from_openml(name)
    except OSError:
        fetch = False
    return names if fetch else tuple(name for name in names if name not in remote)


@cache
def from_file(path, drop):
    """CSV with the class first and ? for a gap, or NPZ with the arrays X and y."""
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as file:
                x, y = file["X"].astype(int), file["y"]
                return Cases(np.column_stack([codes(column, None) for column in x.T]), codes(y, None))
        with open(path, encoding="utf-8", newline="") as opened:
            head, *rows = csv.reader(opened)
        columns = dict(zip(head, map(np.array, zip(*rows, strict=True)), strict=True))
        y, *features = (codes(column, GAP) for name, column in columns.items() if name not in drop)
        return Cases(np.column_stack(features), y)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ParameterError(
            "{parameter}: {path} is not a table with the class in the first column (NPZ: arrays X and y).",
            parameter="data",
            path=path,
        ) from error


def codes(column, gap):
    """Values → 0, 1, …; a gap → -1."""
    seen = column != gap if gap is not None else np.ones(len(column), dtype=bool)
    values = np.unique(column[seen])
    return np.where(seen, np.searchsorted(values, column), -1)


@cache
def from_openml(name):
    """The set from openml.org; scikit-learn keeps what it has fetched. OSError without a network."""
    place = PLACES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it tries again
        found = fetch_openml(data_id=place.openml, as_frame=False, parser="liac-arff", n_retries=1, delay=0.1)
    kept = [j for j, column in enumerate(found.feature_names) if column not in place.drop]
    x = found.data[:, kept]  # nominal values as codes, gaps as NaN
    return Cases(np.where(np.isnan(x), -1, np.nan_to_num(x)).astype(int), codes(found.target, None))


# --- simulated ----------------------------------------------------------------------------------------------------------


def plant_subspaces(seed: int, n_cases=500, n_features=30, n_values=4, n_clusters=5, size=6, agree=0.8) -> Cases:
    """Clusters whose cases agree on `size` features of their own; all else is noise, with the same frequencies everywhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_clusters, size=n_cases)
    noise = [rng.choice(n_values, n_cases, p=rng.dirichlet(np.ones(n_values))) for _ in range(n_features)]
    centres = rng.integers(n_values, size=(n_clusters, n_features))
    subspaces = np.array([rng.permutation(n_features) < size for _ in range(n_clusters)])
    copied = subspaces[y] & (rng.random((n_cases, n_features)) < agree)
    return Cases(np.where(copied, centres[y], np.column_stack(noise)), y)
