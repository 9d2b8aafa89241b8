"""Work cut into parts: all of it done once, in order, and on no more threads than are allowed."""

import threading

import numpy as np
import pytest

from bayescase.parallel import LEAST, each, on_threads, portions


@pytest.mark.parametrize("n", [1, 2, 5])
def test_each_part_is_worked_on_once_and_results_are_in_order(n):
    with on_threads(n):
        assert each(lambda part: part**2, range(50)) == [part**2 for part in range(50)]
        assert each(lambda part: part, []) == []


def test_parts_run_at_the_same_time_on_the_threads_that_are_allowed():
    together = threading.Barrier(3, timeout=30)
    with on_threads(3):
        assert sorted(each(lambda _: together.wait(), range(3))) == [0, 1, 2]
        names = set(each(lambda _: threading.current_thread().name, range(200)))
        assert len(names) <= 3
    assert {thread.name for thread in threading.enumerate()}.isdisjoint(names)  # they end with it
    here = threading.current_thread().name
    assert set(each(lambda _: threading.current_thread().name, range(5))) == {here}  # without being allowed, none


def test_within_a_thread_nothing_is_cut_again():
    """Else threads would wait for each other."""

    def inner(_):
        name = threading.current_thread().name
        return set(each(lambda _: threading.current_thread().name, range(4))) == {name} and len(portions(10 * LEAST)) == 1

    with on_threads(2):
        assert all(each(inner, range(8)))


def test_the_first_error_is_raised():
    with on_threads(2), pytest.raises(ZeroDivisionError):
        each(lambda part: 1 // (part - 3), range(8))


@pytest.mark.parametrize("n", [0, 1, 7, LEAST - 1, LEAST, 5 * LEAST + 3])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_portions_cover_all(n, threads):
    with on_threads(threads):
        found = portions(n)
        assert len(found) == max(1, min(threads, n // LEAST))
        assert len(portions(n, least=1)) == max(1, min(threads, n))
    assert np.array_equal(np.concatenate([np.arange(n)[part] for part in found]), np.arange(n))
