"""Where a run whose cases are not in memory keeps its files, and when they go; a bar for the passes that make them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import ParameterError, Setting
from ..reading.tallies import Progress
from ..storage import naming

PREFIX, ALIVE = "bayescase-", "alive"  # of temporary folders; a file in them that is locked while their process lives
ROWS = ".rows"  # a checkpoint and this is the folder beside it


class Place:
    """A folder with codes, labels and memberships: one that is given and stays, one beside a checkpoint, or a temporary one."""

    def __init__(self, cache: str | os.PathLike[str] | None, checkpoint: str | os.PathLike[str] | None):
        self.given = cache is not None
        remove_orphans()
        self.temporary = Path(tempfile.mkdtemp(prefix=PREFIX))  # goes with the model
        weakref.finalize(self, shutil.rmtree, self.temporary, ignore_errors=True)
        weakref.finalize(self, os.close, stay_alive(self.temporary))
        beside = None if checkpoint is None else f"{os.fspath(checkpoint)}{ROWS}"
        self.folder = Path(cache or beside or self.temporary).absolute()  # workers are in folders of their own
        self.results = self.folder if self.given else self.temporary
        self.checkpoint = checkpoint
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                "{parameter} cannot be made ({why}).",
                parameter=Setting("cache", os.fspath(self.folder)),
                why=error.strerror,
            ) from None
        self.unlock = weakref.finalize(self, os.close, lock(self.folder))

    def naming(self) -> AbstractContextManager[None]:
        """Errors of the disk name the folder, and say what is kept."""
        kept = self.given or self.checkpoint is not None
        return naming(self.folder, "; what is done is kept: make room, and start the same run again" if kept else "")

    def end(self, finished: bool) -> None:
        """Remove the files of a run that has ended. One that was stopped keeps them, if it can go on from a checkpoint."""
        self.unlock()
        if self.given or (not finished and self.checkpoint is not None):
            return
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.suffix != ".npy" and path.name != ALIVE:
                path.unlink()
        if self.checkpoint is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            Path(self.checkpoint).unlink(missing_ok=True)  # it is of no use without its rows


def stay_alive(folder: Path) -> int:
    """A file in a temporary folder, locked before it can be seen."""
    file = os.open(folder / "new", os.O_RDWR | os.O_CREAT)
    with suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(folder / "new", folder / ALIVE)
    return file


def remove_orphans() -> None:
    """Remove temporary folders whose process was killed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # in use, somebody else's, or just gone
            file = os.open(folder / ALIVE, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(file)


def lock(folder: Path) -> int:
    """A file, open and locked while a run uses the folder: two of them would write into each other's labels."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows does not let two processes write into a mapped file anyway
        pass
    except OSError:
        os.close(file)
        raise ParameterError(
            "Another run is using the folder {parameter}; give each run its own.", parameter=Setting("cache", os.fspath(folder))
        ) from None
    return file


LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "CancelledError")  # of Dask, in all its versions


@contextmanager
def lost_tasks(client: Any) -> Iterator[None]:
    """Say in a sentence that the cluster lost its workers, is gone, or has a worker without this package."""
    try:
        yield
    except ModuleNotFoundError as error:
        if client is None or (error.name or "").split(".")[0] != "bayescase":
            raise
        raise ParameterError("A worker that was added does not have bayescase: install it on every worker.") from error
    except Exception as error:
        if client is None or type(error).__name__ not in LOST:
            raise
        why = " ".join(str(error).split())[:200]
        raise ParameterError(
            "The cluster lost too many workers, or is gone ({why}); with a {parameter} the run can go on when it is back.",
            why=why,
            parameter="checkpoint",
        ) from error


@contextmanager
def passing(what: str, n_rows: int | None, verbose: int) -> Iterator[Progress]:
    """A bar on stderr that says what a pass over the rows does."""
    if not verbose:
        yield lambda n: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} rows"), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=n_rows)
        yield lambda n: bar.advance(task, n)
