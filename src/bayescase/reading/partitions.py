"""Dask: collections and files that the workers of a cluster read, and new cases that stay lazy."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from ..errors import ParameterError, ParameterTypeError, Setting, TableError, TableTypeError
from .batches import Part, PartColumn, Source, T, arrow_column, object_column, one_line
from .tables import check_unique, names_of

MISSING = "A fit on a cluster needs Dask: pip install 'bayescase[dask]'."
TOKEN = "seen-by-all"  # a file by which workers are asked whether they share a folder


def is_dask(X: Any) -> bool:
    """Is it a collection of Dask?"""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def find_client(client: Any, X: Any) -> Any:
    """The client of a cluster: the one that is given, or the one that a collection is computed by; None if none is needed."""
    if client is not None:
        return check_client(client)
    if not is_dask(X):
        return None
    try:
        from distributed import default_client
    except ImportError:
        raise ImportError(MISSING) from None
    try:
        return default_client()  # type: ignore[no-untyped-call]
    except ValueError:
        raise ParameterError(
            "X is a collection of Dask, but there is no cluster to compute it: start one with dask.distributed.Client(), or "
            "give its {parameter}.",
            parameter="client",
        ) from None


def check_client(client: Any) -> Any:
    if not hasattr(client, "run_on_scheduler") or client.asynchronous:
        raise ParameterTypeError(
            "{parameter} must be a dask.distributed.Client that is not asynchronous, not {value!r}.",
            parameter="client",
            value=client,
        )
    return client


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """A client of the scheduler at an address such as tcp://host:8786, until the end; None if there is none."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(MISSING) from None
    try:
        client = Client(address, timeout=10, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        raise ParameterError(
            "There is no scheduler of Dask at {value!r} ({why}).", value=address, why=one_line(error)
        ) from None
    with client:
        yield client


def check_workers(client: Any, folders: Collection[Path]) -> None:
    """Every worker must have the package, and see the folders of the run."""
    tokens = [folder / TOKEN for folder in folders]

    def probe(paths: list[str]) -> tuple[str | None, list[bool]]:  # travels by value: it needs nothing of the package
        import os
        from importlib.metadata import PackageNotFoundError, version
        from importlib.util import find_spec

        try:
            found = version("bayescase") if find_spec("bayescase") else None
        except PackageNotFoundError:
            found = "unknown"
        return found, [os.path.exists(path) for path in paths]

    for token in tokens:
        token.write_text("")
    try:
        answers = client.run(probe, [os.fspath(token) for token in tokens])
        scheduler = client.run_on_scheduler(probe, [])
    finally:
        for token in tokens:
            token.unlink()
    if not answers:
        raise ParameterError("The cluster of {parameter} has no worker.", parameter="client")
    ours = probe([])[0]
    for who, (found, shared) in {
        "The scheduler": scheduler,
        **{f"Worker {at}": answer for at, answer in answers.items()},
    }.items():
        if found is None:
            raise ParameterError("{who} does not have bayescase: install it on the scheduler and on every worker.", who=who)
        if found != ours:
            raise ParameterError(
                "{who} has bayescase {found}, and this machine has {ours}: install the same on all.",
                who=who,
                found=found,
                ours=ours,
            )
        for token, there in zip(tokens, shared, strict=False):
            if not there:
                raise ParameterError(
                    "{who} does not see the folder {folder!r}: give a {parameter} that it shares with this machine.",
                    who=who,
                    folder=os.fspath(token.parent),
                    parameter=Setting("cache"),
                )


class DaskCluster:
    """Reads pieces on the workers."""

    def __init__(self, client: Any):
        self.client = client

    def map(self, function: Callable[[Part], T], pieces: Sequence[Any]) -> Iterator[T]:
        """Files: a few more at a time than there are threads. Partitions, which may be made of one another: all at once."""
        from dask import delayed
        from dask.delayed import Delayed

        if pieces and isinstance(pieces[0], Delayed):
            waiting = self.client.compute([delayed(read_piece, pure=False)(piece, function) for piece in pieces])
            while waiting:
                yield from waiting.pop(0).result()
            return
        ahead = 2 * max(1, sum(self.client.nthreads().values()))
        waiting = []
        for piece in [*pieces, *[None] * (ahead + 1)]:
            if piece is not None:
                key = f"read_piece-bayescase-{uuid.uuid4().hex}"
                waiting.append(self.client.submit(read_piece, piece, function, key=key))
            if waiting and (piece is None or len(waiting) > ahead):
                yield from waiting.pop(0).result()


def read_piece(piece: Any, function: Callable[[Part], T]) -> list[T]:
    """function(part) of every part of a piece: what reads a file, or a partition and what it should be like."""
    return [function(part) for part in piece()]


# --- collections -----------------------------------------------------------------------------------------------------------


def is_frame(X: Any) -> bool:
    """Is it a data frame, not an array? Raises if it is neither."""
    if not hasattr(X, "ndim") or (hasattr(X, "_meta") and not hasattr(X, "chunks") and X.ndim != 2):
        raise TableTypeError("X is a {kind} of Dask, not a data frame or an array.", kind=type(X).__name__)
    return hasattr(X, "columns")


def from_dask(X: Any, client: Any) -> Source:
    """The partitions of a data frame, or the blocks of rows of an array."""
    from dask import delayed
    from dask.base import tokenize

    if is_frame(X):
        names = list(X.columns)
        check_unique(names)
        expected = kinds_of(X._meta)
        pieces = [delayed(Partition, pure=False)(part, number, expected) for number, part in enumerate(X.to_delayed())]
        return Source(names_of(names), len(names), pieces, False, tokenize(X), None, DaskCluster(client))
    check_chunks(X)
    pieces = [delayed(Partition, pure=False)(part, number, None) for number, part in enumerate(X.to_delayed().ravel())]
    return Source(None, X.shape[1], pieces, False, tokenize(X), None, DaskCluster(client))


def kinds_of(frame: Any) -> dict[str, str]:
    """What each column of a data frame holds, roughly."""
    return {name: kind_of(dtype) for name, dtype in nw.from_native(frame).collect_schema().items()}


def kind_of(dtype: Any) -> str:
    if dtype.is_numeric():
        return "numbers"
    if dtype in (nw.Categorical, nw.Enum):
        return "categories"
    return {nw.Boolean: "booleans", nw.String: "words", nw.Object: "words"}.get(type(dtype), str(dtype))


class Partition(NamedTuple):
    """A partition that a worker has computed, and what its columns should hold."""

    content: Any
    number: int
    expected: dict[str, str] | None  # None of an array

    def __call__(self) -> Iterator[Part]:
        if not len(self.content):
            return
        if self.expected is None:
            array = np.asarray(self.content)
            yield Part([array_column(array[:, j]) for j in range(array.shape[1])], len(array))
            return
        frame = nw.from_native(self.content, eager_only=True)
        self.check(frame, kinds_of(self.content))
        yield Part([series_column(frame.get_column(name)) for name in self.expected], len(frame))

    def check(self, frame: nw.DataFrame[Any], kinds: dict[str, str]) -> None:
        assert self.expected is not None
        if list(kinds) != list(self.expected):
            raise TableError("Partition {n} of X does not have the columns of the others.", n=self.number)
        for name, kind in self.expected.items():
            if kinds[name] != kind and frame.get_column(name).null_count() < len(frame):
                raise TableTypeError(
                    "Column {column!r} should hold {kind}, but holds {other} in partition {n}; give it one type with astype.",
                    column=name,
                    kind=kind,
                    other=kinds[name],
                    n=self.number,
                )


def array_column(values: np.ndarray) -> PartColumn:
    import pyarrow as pa

    return object_column(values.astype(object)) if values.dtype.kind not in "biuf" else arrow_column(pa.array(values))


def series_column(series: nw.Series[Any]) -> PartColumn:
    """A column of a partition; one of objects that Arrow has no type for, cell by cell."""
    import pyarrow as pa

    try:
        return arrow_column(series.to_arrow())
    except pa.ArrowException:
        cells = series.to_list()
        return object_column(np.fromiter(cells, dtype=object, count=len(cells)))


# --- new cases -------------------------------------------------------------------------------------------------------------


def lazily(X: Any, function: Any, kind: Sequence[str] | type) -> Any:
    """function of every partition, not yet computed: a series or a data frame, or an array, with the chunks of X.

    kind: names of the columns that come out; the type of what comes out if that is one number per case. What is wrong with the
    columns of X is said now, by function.check.
    """
    if is_frame(X):
        function.check(names_of(list(X.columns)), len(X.columns))
        return X.map_partitions(partial(framed, function, kind), meta=framed(function, kind, X._meta))
    check_chunks(X)
    function.check(None, X.shape[1])
    if isinstance(kind, type):
        return X.map_blocks(partial(of_rows, function, kind), drop_axis=1, dtype=kind)
    return X.map_blocks(partial(of_rows, function, kind), dtype=float, chunks=(X.chunks[0], (len(kind),)))


def check_chunks(X: Any) -> None:
    if X.ndim != 2:
        raise TableError("Expected a 2D array of Dask, got one of {n} dimensions.", n=X.ndim)
    if X.numblocks[1] != 1:
        raise TableError(
            "X has {n} chunks side by side; a case must lie within one: use X.rechunk({{1: -1}}) first.", n=X.numblocks[1]
        )


def of_rows(function: Callable[[Any], np.ndarray], kind: Sequence[str] | type, block: Any) -> np.ndarray:
    if len(block):
        return function(block)
    return np.zeros(0, dtype=kind) if isinstance(kind, type) else np.zeros((0, len(kind)))


def framed(function: Callable[[Any], np.ndarray], kind: Sequence[str] | type, frame: Any) -> Any:
    import pandas as pd

    values = of_rows(function, kind, frame)
    if isinstance(kind, type):
        return pd.Series(values, index=frame.index)
    return pd.DataFrame(values, index=frame.index, columns=list(kind))
