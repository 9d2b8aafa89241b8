"""A running application, and a visitor."""

import pytest

from ..designs import small_design
from ..people import visiting


@pytest.fixture
def visit(frozen):
    with visiting(frozen(small_design())) as found:
        yield found


@pytest.fixture
def ann(visit):
    return visit.visitor()
