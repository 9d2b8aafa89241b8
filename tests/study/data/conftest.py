"""Stores on both databases."""

from dataclasses import replace

import pytest

from bayescase.study.data.store import open_store

from ..designs import small_design
from ..opened_stores import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def opened(place, clock):
    """opened(**rules) → a store; all are closed in the end."""
    made = []

    def make(phase="live", design=None, **rules):
        design = design or small_design()
        folder, database = place(replace(design, rules=replace(design.rules, **rules)), f"study{len(made)}")
        made.append(open_store(folder, database, phase=phase, clock=clock))
        return made[-1]

    yield make
    for store in made:
        store.close()
