"""What a study needs of a fitted model. The only file of the study that knows how a model keeps it."""

from typing import Any, NamedTuple

import numpy as np

from ...explaining.view import view_of
from ...explaining.words import clean, counted


class SourceModel(NamedTuple):
    """A fitted model, as far as a study shows it. Rows are codes of values, -1 where a value is missing."""

    cases: np.ndarray  # (N, P)
    labels: np.ndarray  # (N,) the cluster of each case
    memberships: np.ndarray  # (N, S)
    case_names: list[str] | None
    prototypes: np.ndarray  # (S, P)
    prototype_names: list[str]
    feature_names: list[str]
    feature_values: list[list[Any]]  # in the order of their codes
    subspaces: list[list[int]]  # key features of each cluster
    cases_are_sets: bool  # features say what is present, and nothing else

    @property
    def n_clusters(self) -> int:
        return len(self.prototypes)

    def case_name(self, row: int) -> str:
        return clean(self.case_names[row]) if self.case_names else f"case {row}"

    def __str__(self) -> str:
        sizes = ((len(self.labels), "case"), (len(self.feature_names), "feature"), (self.n_clusters, "cluster"))
        return ", ".join(counted(*size) for size in sizes)


def source_model(model: Any) -> SourceModel:
    """Of a fitted `BayesianCaseModel`."""
    fitted = model.fitted_
    data, columns, rows = fitted.data, fitted.columns, fitted.prototypes
    view, names = view_of(fitted), fitted.case_names
    sets = all(value in (0, 1) for values in view.values.shown for value in values)

    def seen(codes: np.ndarray) -> np.ndarray:
        """Beside a table, items of a bag that are absent are not shown."""
        hidden = (np.arange(len(columns)) >= columns.n_single) & (not sets)
        return np.where(hidden & (codes == columns.absent), -1, codes)

    return SourceModel(
        cases=seen(columns.codes(data.cases)),
        labels=fitted.labels,
        memberships=fitted.posterior.memberships,
        case_names=list(names) if names is not None and data.own_cases else None,
        prototypes=seen(columns.codes(data.catalogue.take(rows))),
        prototype_names=[clean(fitted.name_of(row)) for row in rows],
        feature_names=[clean(name) for name in columns.names],
        feature_values=[list(values) for values in view.values.shown],
        subspaces=[np.flatnonzero(view.keys(s)).tolist() for s in range(fitted.n_clusters)],
        cases_are_sets=sets,
    )
