"""Commands to try the model and to measure it: `demo`, `simulate`, `bench` and `reproduce`."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from .errors import STOPPED, in_options
from .options import FORCE, JOBS, JSON, SEED, options
from .output import as_text, check_output, has_columns, say, say_json, waiting, write_text

REPRODUCED = (
    "smiley",
    "digits",
    "starts",
    "agreement",
    "modes",
    "newsgroups",
    "sensitivity",
    "recipes",
    "bags",
    "peers",
    "clusters",
    "numbers",
    "chains",
    "all",
)
DRAWN = ("case", "cluster")  # the first columns of a simulated table, before those of the features


@click.command()
@SEED
@JOBS
def demo(seed: int, jobs: int) -> None:
    """Fit the bundled recipes and smileys and print the clusters."""
    from rich.console import Console
    from sklearn.exceptions import ConvergenceWarning

    from ..datasets import load_recipes, load_smileys
    from ..estimator import BayesianCaseModel
    from ..explaining.render.terminal import explanation_table

    console = Console()
    # The faces are drawn with α = 0.1 in every entry and q = 0.5, so that is what they are fitted with.
    for title, dataset, settings in (
        ("Recipes", load_recipes(), {"n_clusters": 5, "n_iter": "auto"}),
        ("Smiley faces", load_smileys(), {"n_clusters": 3, "alpha": 0.3, "q": 0.5, "n_chains": 8}),
    ):
        model = BayesianCaseModel(**settings, n_jobs=jobs, random_state=seed, verbose=int(sys.stderr.isatty()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict stands below the table
            model.fit(dataset.table, case_names=list(dataset.names))
        console.print(explanation_table(model.explain(), title))
        console.print(model.diagnostics_.verdict, highlight=False)


@click.command()
@click.option("-n", "--cases", default=200, type=click.IntRange(1), show_default=True, help="Number of cases.")
@click.option("-p", "--features", default=10, type=click.IntRange(1), show_default=True, help="Number of features.")
@click.option("--values", default=4, type=click.IntRange(2), show_default=True, help="Values of each feature.")
@click.option("-k", "--clusters", default=4, type=click.IntRange(1), show_default=True, help="Number of clusters.")
@click.option("--alpha", default=0.1, type=click.FloatRange(0), show_default=True, help="How much cases mix clusters.")
@click.option(
    "--lam", default=1.0, type=click.FloatRange(0, min_open=True), show_default=True, help="Pseudo-count of every value."
)
@click.option("--c", default=50.0, type=click.FloatRange(0), show_default=True, help="How strongly cases copy prototypes.")
@click.option(
    "--q",
    default=0.5,
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    show_default=True,
    help="Share of features that matter.",
)
@click.option(
    "--missing", default=0.0, type=click.FloatRange(0, 1, max_open=True), show_default=True, help="Share of lost cells."
)
@click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True, help="Seed of the draw.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="-",
    help="Write CSV, or TSV or JSON lines by the name of the file; else to stdout.",
)
@FORCE
def simulate(
    cases: int, features: int, values: int, clusters: int, seed: int, output: str, force: bool, **prior: float
) -> None:
    """Draw a table from the prior of the model, with planted clusters.

    Its columns are `case`, `cluster` and the features: `bayescase fit FILE --id case --label cluster` should find them again.
    """
    from ..datasets import simulate_cases

    check_output(output, text=True, ours=has_columns(*DRAWN, "f1"), force=force)
    drawn = simulate_cases(cases, features, values, clusters, **prior, random_state=seed)
    columns = [*DRAWN, *drawn.table]
    rows = zip(drawn.names.tolist(), drawn.families.tolist(), *drawn.table.values(), strict=True)
    write_text(output, as_text(columns, rows, output), cases)


class Bench(click.Group):
    """Without the name of a command it is `speed`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["speed", *args])


@click.group(cls=Bench)
def bench() -> None:
    """Measure how fast the sampler is here, and how good its clusters are.

    Without the name of a command it measures the speed.
    """


@bench.command()
@click.option("--seconds", default=1.0, type=click.FloatRange(0.01, 60), show_default=True, help="Time for each size.")
@JOBS
@JSON
def speed(seconds: float, jobs: int, as_json: bool) -> None:
    """Measure the speed of the sampler on this machine."""
    from ..experiments.speed import measure
    from ..explaining.render.terminal import plain_table

    with nullcontext() if as_json or not sys.stderr.isatty() else waiting("Measuring"):
        found = measure(seconds, jobs)
    if as_json:
        say_json([asdict(speed) for speed in found])
        return
    columns = ("Cases", "Features", "Values", "Clusters", "Threads", "Million cells per second")
    rows = [(s.n_cases, s.n_features, s.n_values, s.n_clusters, s.threads, f"{s.cells_per_second / 1e6:.1f}") for s in found]
    lines = ("  ".join(f"{cell!s:>{len(head)}}" for cell, head in zip(row, columns, strict=True)) for row in (columns, *rows))
    say("\n".join(lines), lambda: plain_table("Speed", columns, rows))


EXPERIMENTING = options(
    click.option(
        "--out",
        metavar="DIR",
        default="reproduction",
        show_default=True,
        help="Folder of results, figures and log; the page is beside it, DIR.md.",
    ),
    click.option("--quick", is_flag=True, help="Fewer sweeps and seeds: minutes, not hours."),
    click.option(
        "--seeds", type=click.IntRange(1), metavar="N", help="Seeds 0 to N - 1; 10 of them otherwise, 2 with --quick."
    ),
    JOBS,
)


@bench.command()
@click.option("--data", metavar="DIR", help="Folder of public data; what it lacks is fetched from openml.org.")
@EXPERIMENTING
def quality(**options: Any) -> None:
    """Compare the clusters with those of other methods, on labelled sets.

    The same as `bayescase reproduce peers`. The other methods are installed by pip install 'bayescase[peers]'; those that are
    absent are left out, as are sets that are neither in the folder nor within reach.
    """
    run_experiments("peers", **options)


@bench.command("clusters")
@EXPERIMENTING
def clusters_found(**options: Any) -> None:
    """Count how often a planted number of clusters is found.

    The same as `bayescase reproduce clusters`: simulated tables, of the model and of kinds that it does not fit.
    """
    run_experiments("clusters", data=None, **options)


@bench.command("chains")
@click.option("--data", metavar="DIR", help="Folder of public data; without it, the bundled recipes.")
@EXPERIMENTING
def chains_meet(**options: Any) -> None:
    """Count how often chains find the same clusters, and how long that takes.

    The same as `bayescase reproduce chains`: public tables with plain sweeps, without jumps, and at the defaults.
    """
    run_experiments("chains", **options)


@click.command()
@click.argument("experiment", type=click.Choice(REPRODUCED))
@click.option(
    "--data",
    metavar="DIR",
    help="Folder of public data; without it, what is bundled, in scikit-learn, or (peers) on openml.org.",
)
@EXPERIMENTING
def reproduce(experiment: str, **options: Any) -> None:
    """Make the tables and figures of the paper anew, and compare with other methods (peers).

    A seed whose result is in the folder is not run again, so a run that was stopped goes on. The same seeds give the same
    numbers.
    """
    run_experiments(experiment, **options)


def run_experiments(experiment: str, data: str | None, out: str, quick: bool, seeds: int | None, jobs: int) -> None:
    from .. import experiments

    folder, source = Path(os.path.abspath(out)), None if data is None else Path(data)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--out: {folder} is a file; give a folder.")
    chosen = [one for name, one in experiments.EXPERIMENTS.items() if experiment in (name, "all")]
    try:
        experiments.reproduce(
            chosen,
            folder,
            source,
            quick=quick,
            seeds=seeds,
            n_jobs=jobs,
            say=lambda words: click.echo(in_options(words), err=True),
        )
    except KeyboardInterrupt:
        click.echo("Stopped; the same command goes on after the seeds that are done.", err=True)
        raise click.exceptions.Exit(STOPPED) from None
    click.echo(f"The page is {experiments.write_page(experiments.EXPERIMENTS.values(), folder)}.")
