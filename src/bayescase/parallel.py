"""Work cut into parts, on as many threads as a caller allows. What comes out does not depend on how many there are."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")
LEAST = 1 << 12  # rows: fewer take less time than handing them to a thread


class Allowed(NamedTuple):
    """The threads that parts may be worked on."""

    pool: ThreadPoolExecutor
    n: int


allowed: ContextVar[Allowed | None] = ContextVar("allowed", default=None)  # nothing within the threads: no part is cut


WORTH = 1 << 24  # cells of a table: of smaller ones the memory that threads keep costs more than they save


@contextmanager
def on_threads(n: int, cells: int | None = None) -> Iterator[None]:
    """Within, `each` works on n threads; on none if the table has few cells."""
    n = n if cells is None or cells >= WORTH else 1
    with ThreadPoolExecutor(n) as pool:
        before = allowed.set(Allowed(pool, n) if n > 1 else None)
        try:
            yield
        finally:
            allowed.reset(before)


def each(work: Callable[[Part], Result], parts: Collection[Part]) -> list[Result]:
    """[work(part) for part in parts]; the parts in any order, or at the same time."""
    now = allowed.get()
    return [work(part) for part in parts] if now is None or len(parts) < 2 else list(now.pool.map(work, parts))


def portions(n: int, least: int = LEAST) -> list[slice]:
    """0 .. n - 1 in slices, one for every thread, of at least so many."""
    now = allowed.get()
    k = 1 if now is None else max(1, min(now.n, n // least))
    return [slice(n * i // k, n * (i + 1) // k) for i in range(k)]
