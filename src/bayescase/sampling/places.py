"""Where a run whose cases are not in memory keeps its files, and when they go; a bar for the passes that make them."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import ParameterError, Setting
from ..reading.tallies import Progress

PREFIX, ALIVE = "bayescase-", "alive"  # of temporary folders; a file in them that is locked while their process lives
LOCK = "lock"  # a file in any folder that is used
ROWS = ".rows"  # a checkpoint and this is the folder beside it
FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


class Temporary:
    """A folder that goes with this object, or, if the process was killed, when the next one is made there."""

    def __init__(self, within: Path | None = None):
        parent = Path(tempfile.gettempdir()) if within is None else within
        remove_orphans(parent)
        hidden = "" if within is None else "."
        self.path = Path(tempfile.mkdtemp(prefix=f"{hidden}{PREFIX}", dir=parent))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        weakref.finalize(self, os.close, stay_alive(self.path))


class Place:
    """Where a run keeps its files: codes in a folder that is given and stays, the rows of its chains beside its checkpoint.

    What has no such place is in a temporary folder, on the same disk as the rest, and so are the results, which go with the
    model.
    """

    def __init__(self, cache: str | os.PathLike[str] | None, checkpoint: str | os.PathLike[str] | None):
        self.given, self.checkpoint = cache is not None, None if checkpoint is None else Path(checkpoint).absolute()
        beside = None if self.checkpoint is None else Path(f"{self.checkpoint}{ROWS}")
        given = None if cache is None else Path(cache).absolute()  # workers are in folders of their own
        for folder in filter(None, (given, beside)):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                name = "cache" if folder == given else "checkpoint"
                raise ParameterError(
                    "{parameter} cannot be made ({why}).", parameter=Setting(name, os.fspath(folder)), why=error.strerror
                ) from None
        self.temporary = Temporary(given or (None if beside is None else beside.parent))
        self.rows = beside or self.temporary.path
        self.codes = given or self.rows
        self.locks = [Lock(self.rows, alone=True)]
        if self.codes != self.rows:
            self.locks.append(Lock(self.codes, alone=False))

    @property
    def results(self) -> Path:
        return self.temporary.path

    @contextmanager
    def writing_codes(self) -> Iterator[None]:
        """Nobody else may use the codes while they are written; afterwards several runs may read them."""
        self.locks[-1].take(alone=True)
        yield
        self.locks[-1].take(alone=self.codes == self.rows)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """What the system says of a full disk, and that nothing is lost."""
        try:
            yield
        except OSError as error:
            if error.errno not in FULL:
                raise
            kept = "; what is done is kept: make room, and start the same run again"
            words = f"{error.strerror}{kept if self.given or self.checkpoint is not None else ''}"
            raise OSError(error.errno, words, os.fspath(self.rows)) from error

    def end(self, finished: bool) -> None:
        """Remove what a run that has ended needs no more; one that was stopped can go on from its checkpoint."""
        for lock in self.locks:
            lock.release()
        for path in self.temporary.path.iterdir():
            if path.suffix != ".npy" and path.name != ALIVE:
                path.unlink()
        if self.checkpoint is None:
            return
        if finished and not self.given:
            self.checkpoint.unlink(missing_ok=True)  # first: without its rows nothing can go on from it
        if (finished and not self.given) or os.listdir(self.rows) == [LOCK]:
            shutil.rmtree(self.rows, ignore_errors=True)


def stay_alive(folder: Path) -> int:
    """A file in a temporary folder, locked before it can be seen."""
    file = os.open(folder / "new", os.O_RDWR | os.O_CREAT)
    with suppress(ImportError):
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
    os.rename(folder / "new", folder / ALIVE)
    return file


def remove_orphans(parent: Path) -> None:
    """Remove temporary folders whose process was killed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    for folder in itertools.chain(parent.glob(f"{PREFIX}*"), parent.glob(f".{PREFIX}*")):
        with suppress(OSError):  # in use, somebody else's, or just gone
            file = os.open(folder / ALIVE, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(file)


class Lock:
    """A file that is locked while a run uses the folder: two of them would write into each other's labels."""

    def __init__(self, folder: Path, alone: bool):
        self.folder, self.file = folder, os.open(folder / LOCK, os.O_RDWR | os.O_CREAT)
        self.release = weakref.finalize(self, os.close, self.file)
        self.take(alone)

    def take(self, alone: bool) -> None:
        """Use the folder alone, or with others that do not write into it."""
        try:
            import fcntl

            fcntl.flock(self.file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except ImportError:  # Windows does not let two processes write into a mapped file anyway
            pass
        except OSError:
            raise ParameterError(
                "Another run is using the folder {parameter}; give each run its own.",
                parameter=Setting("cache", os.fspath(self.folder)),
            ) from None


LOST = ("KilledWorker", "CommClosedError", "FutureCancelledError", "CancelledError", "ClosedClientError")  # of Dask


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
