"""Two people who sorted the cases by themselves: how far they agree, and what they say of each case."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import cohen_kappa_score

from ...reading.files import read_file
from .design import DesignError


class Coded(NamedTuple):
    """What the coders said of the cases that both of them coded."""

    labels: dict[int, tuple[str, str]]  # case → their words
    cluster: dict[str, int]  # that a word means
    kappa: float | None  # None: not defined, both used a single word
    by: tuple[str, str]

    def flags(self, case: int, cluster: int) -> list[str]:
        """Why a researcher should look at a case that the model has in this cluster."""
        if case not in self.labels:
            return ["not coded by both coders"]
        first, second = self.labels[case]
        if first != second:
            return [f"coders differ: {first} and {second}"]
        return [] if self.cluster[first] == cluster else [f"coders say {first}, which is cluster {self.cluster[first]}"]

    def __str__(self):
        agreed = sum(a == b for a, b in self.labels.values())
        kappa = "not defined, as both used one label only" if self.kappa is None else f"{self.kappa:.3f}"
        means = ", ".join(f"{word} is cluster {s}" for word, s in sorted(self.cluster.items()))
        return (
            f"{self.by[0]} and {self.by[1]} coded {len(self.labels)} cases and agreed on {agreed}; "
            f"Cohen's kappa is {kappa}; {means}"
        )


def read_coders(path: Any, names: list[str] | None, labels: np.ndarray, n_clusters: int) -> Coded:
    """A table with the column `case` (its name, or its number from 0) and one column of labels per coder.

    Labels are the numbers of clusters; if any of them is not, all are words, and mean the cluster that most of their cases
    are in.
    """
    where = Path(path).name
    data = read_file(path)
    columns = [data.table.name(j) for j in range(len(data.table.columns))]
    if "case" not in columns or len(columns) != 3:
        raise DesignError(f"{where} must have three columns, case and one for each of two coders, not {', '.join(columns)}.")
    by = [column for column in columns if column != "case"]
    given = dict(zip(columns, ([word(value) for value in data.values(column)] for column in columns), strict=True))
    found: dict[int, tuple[str, str]] = {}
    twice = {name for name, times in Counter(names or ()).items() if times > 1}
    rows = {str(i): i for i in range(len(labels))} | {" ".join(name.split()): i for i, name in enumerate(names or ())}
    seen = set()
    for case, first, second in zip(given["case"], given[by[0]], given[by[1]], strict=True):
        if case not in rows:
            raise DesignError(f"{where} names the case {case!r}, which the model does not have.")
        if case in twice:
            raise DesignError(f"{where} names {case!r}, but several cases are called so; give their numbers, from 0.")
        if rows[case] in seen:
            raise DesignError(f"{where} has the case {case!r} twice.")
        seen.add(rows[case])
        if first and second:
            found[rows[case]] = first, second
    if not found:
        raise DesignError(f"{where} has no case with a label of both coders.")
    return Coded(found, meanings(found, labels, n_clusters), cohen_kappa(list(found.values())), (by[0], by[1]))


def word(value) -> str:
    """A cell as a word; 3.0 is 3, as a column of numbers with a gap has it."""
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else " ".join(str(value).split())


def meanings(found, labels, n_clusters) -> dict[str, int]:
    words = sorted({label for pair in found.values() for label in pair})
    if all(label.isdecimal() and int(label) < n_clusters for label in words):
        return {label: int(label) for label in words}
    votes = {label: np.zeros(n_clusters, dtype=int) for label in words}
    for case, pair in found.items():
        for label in pair:
            votes[label][labels[case]] += 1
    return {label: int(counts.argmax()) for label, counts in votes.items()}


def cohen_kappa(pairs: list[tuple[str, str]]) -> float | None:
    """Agreement beyond what the coders' own rates give by chance; not defined if both used one label only."""
    first, second = zip(*pairs, strict=True)
    return None if len({*first, *second}) == 1 else float(cohen_kappa_score(first, second))
