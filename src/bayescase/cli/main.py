"""The command line. Thin: every verb calls one function of the package.

Results go to stdout, as tables in a terminal, as plain text in a pipe, as one JSON document with --json; notes and progress go
to stderr. Exit codes: 0 good, 1 bad input, 2 bad usage, 130 stopped by Ctrl-C. Imports of what takes long come late.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from .. import __version__
from .bench import bench, demo, reproduce, simulate
from .errors import STOPPED, in_options
from .fit import fit, select
from .model import explain, fold, info, name, plot, predict, report
from .study import study


class Commands(click.Group):
    """Wrong input is one sentence on stderr and exit code 1; warnings are notes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with notes():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("Stopped; nothing was written.", err=True)
            ctx.exit(STOPPED)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader has seen enough
                raise
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{where}{error.strerror or error}.") from error
        except (ValueError, TypeError, ImportError, MemoryError) as error:
            raise click.ClickException(in_options(error) or type(error).__name__) from error


@contextmanager
def notes() -> Iterator[None]:
    """Warnings of the package appear as one-line notes on stderr, those for programmers do not."""

    def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        click.echo(f"Note: {in_options(message)}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="bayescase")
def main() -> None:
    """Clusters of discrete data, each explained by a prototype (a real case) and a subspace (the features that matter)."""


for command in (demo, fit, explain, name, fold, predict, info, select, report, plot, simulate, bench, reproduce, study):
    main.add_command(command)
