"""What values say that nothing is there."""

import pytest

from bayescase.reading.columns import lacks


@pytest.mark.parametrize("value", [False, 0, "0", "no", "None", " absent ", "n/a", "unknown", "?", "dna"])
def test_a_value_that_says_that_nothing_is_there(value):
    assert lacks(value)


@pytest.mark.parametrize("value", [True, 1, "yes", "DNA", "RNA", "north", "norm", None, ""])
def test_a_value_that_says_what_is_there(value):
    assert not lacks(value)
