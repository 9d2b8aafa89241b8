"""How people used the scales: counts of labels."""

from collections.abc import Sequence

import numpy as np

from ..design.design import Design, Likert
from .answers_table import AnswerTable, Row
from .results import Rating


def ratings(design: Design, table: AnswerTable, people: Sequence[Row]) -> tuple[Rating, ...]:
    found = []
    for likert in design.item_ratings:
        values = table.rated[likert.id]
        counts = {
            name: counted(values[(table.condition == c) & np.isfinite(values)].tolist(), likert)
            for c, name in enumerate(table.conditions)
        }
        found.append(Rating(likert.id, likert.text, likert.labels, "answer", counts))
    for likert in design.block_ratings:
        columns = {condition.id: f"rating_{likert.id}_{condition.id}" for condition in design.conditions}
        counts = {id: counted([person.get(column) for person in people], likert) for id, column in columns.items()}
        found.append(Rating(likert.id, likert.text, likert.labels, "part", counts))
    for likert in design.questionnaire:
        counts = {"all": counted([person.get(f"likert_{likert.id}") for person in people], likert)}
        found.append(Rating(likert.id, likert.text, likert.labels, "person", counts))
    return tuple(found)


def counted(values: Sequence[float | None], likert: Likert) -> tuple[int, ...]:
    return tuple(sum(value == i for value in values) for i in range(len(likert.labels)))
