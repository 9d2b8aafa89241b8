"""Commands that fit: `fit` and `select`."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from ..errors import advise
from .cases import open_to_fit, read_to_fit
from .errors import STOPPED, as_option
from .options import DEVICE, FORCE, ID, JOBS, JSON, MODELLING, READING, SEED, NumberOr
from .output import check_output, is_model, say, say_json

if TYPE_CHECKING:
    from ..estimator import BayesianCaseModel


@click.command()
@click.argument("data")
@click.option(
    "-k", "--clusters", type=NumberOr("auto", int), metavar="N|auto", default=8, show_default=True, help="Number of clusters."
)
@click.option(
    "--max-clusters", default=20, type=click.IntRange(1), show_default=True, help="The most clusters that `auto` finds."
)
@click.option("-o", "--output", metavar="FILE", help="Save the model here; a model that is there is replaced.")
@FORCE
@click.option("--label", metavar="COLUMN", help="A known grouping: not a feature, compared with the clusters afterwards.")
@ID
@MODELLING
@click.option(
    "--iterations", type=NumberOr("auto", int), metavar="N|auto", default=1000, show_default=True, help="Sweeps of each chain."
)
@click.option(
    "--max-iterations", "max_iter", default=8000, type=click.IntRange(1), show_default=True, help="The most sweeps of `auto`."
)
@click.option("--burn-in", type=click.IntRange(0), metavar="N", help="First sweeps that are not kept; half of them otherwise.")
@click.option("--chains", default=4, type=click.IntRange(1), show_default=True, help="Independent chains.")
@click.option(
    "--short-runs",
    "n_init",
    type=NumberOr("auto", int),
    metavar="N|auto",
    default="auto",
    show_default=True,
    help="Runs that each chain makes and crosses to find its start; 1 for none.",
)
@click.option("--keep-draws", is_flag=True, help="Keep every draw in the model, as `plot history` needs.")
@click.option("--checkpoint", metavar="FILE", help="Written every few seconds; a run that finds it goes on from there.")
@click.option(
    "--out-of-core",
    is_flag=True,
    help="Read DATA, a file or a folder of files, in parts, and keep it on disk: for tables larger than memory.",
)
@click.option("--cache", metavar="FOLDER", help="Where --out-of-core and --dask keep codes and labels, also for the next run.")
@click.option(
    "--dask", metavar="ADDRESS", help="Read and fit DATA on a cluster of Dask, tcp://host:8786, whose workers see it."
)
@click.option("--candidates", type=click.IntRange(1), metavar="N", help="Choose prototypes among N cases, drawn at random.")
@click.option(
    "--more", type=click.IntRange(1), metavar="N", help="DATA is a saved model: run N sweeps more from its --checkpoint."
)
@SEED
@JOBS
@DEVICE
@READING
@JSON
def fit(
    data: str,
    clusters: int | Literal["auto"],
    output: str | None,
    force: bool,
    iterations: int | Literal["auto"],
    chains: int,
    checkpoint: str | None,
    out_of_core: bool,
    cache: str | None,
    dask: str | None,
    candidates: int | None,
    more: int | None,
    seed: int,
    jobs: int,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the clusters of DATA and print them.

    DATA is a CSV or TSV file, JSON lines, NPZ, Parquet or Feather; text may be compressed; - is standard input. Ctrl-C ends the
    run early and keeps what there is.
    """
    from sklearn.exceptions import ConvergenceWarning

    from ..estimator import BayesianCaseModel
    from ..reading.partitions import connected

    if more is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed
            longer = run_longer(data, more, checkpoint, output, {"n_jobs": jobs, "device": device})
        finish(longer, data, output, as_json)
        return
    check_output(output, data, ours=is_model, force=force)
    if cache is not None and not out_of_core and dask is None:
        raise click.UsageError("--cache needs --out-of-core or --dask.")
    label = options["label"]
    X, settings, names, known = what_to_fit(data, options, out_of_core or dask is not None)
    model = BayesianCaseModel(
        clusters,
        **settings,
        n_iter=iterations,
        n_chains=chains,
        random_state=seed,
        n_jobs=jobs,
        device=device,
        verbose=int(sys.stderr.isatty()),
    )
    with warnings.catch_warnings(), connected(dask) as model.client:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed
        model.fit(X, case_names=names, checkpoint=checkpoint, cache=cache, candidates=candidates)
    finish(model, data, output, as_json, None if known is None else (label, known))


def what_to_fit(data: str, options: dict[str, Any], out_of_core: bool) -> tuple[Any, dict[str, Any], Any, Any]:
    """(the table, settings of a model, names of the cases, their known labels)."""
    if out_of_core:
        return *open_to_fit(data, options), None, None
    label, id_column = options["label"], options["id_column"]
    cases, settings = read_to_fit(data, options)
    known = None if label is None else cases.values(label)
    names = None if id_column is None else cases.case_names(id_column, "--id")
    if known is not None and all(value is None for value in known):
        raise ValueError(f"Column {label!r} of --label has no value at all.")
    return cases.table, settings, names, known


def run_longer(path: str, more: int, checkpoint: str | None, output: str | None, where: dict[str, Any]) -> BayesianCaseModel:
    """A saved model and its checkpoint, run on."""
    from ..estimator import BayesianCaseModel

    context = click.get_current_context()
    allowed = {"data", "more", "checkpoint", "output", "force", "jobs", "device", "as_json"}
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if given and option.name not in allowed:
            raise click.UsageError(f"--more goes on with the run as it was: leave out {option.opts[0]}.")
    if checkpoint is None:
        raise click.UsageError("--more needs the --checkpoint that the run wrote.")
    check_output(output, "", ours=is_model, force=context.params["force"])
    model = BayesianCaseModel.load(path)
    model.set_params(**where, verbose=int(sys.stderr.isatty()))
    return model.more(more, checkpoint=checkpoint)


def finish(
    model: BayesianCaseModel, data: str, output: str | None, as_json: bool, label: tuple[str, Sequence[Any]] | None = None
) -> None:
    """Save the model, print it, and compare it with a known grouping, if there is one."""
    former = output is not None and os.path.exists(output) and os.path.getsize(output) > 0
    saved, problem = save(model, output)
    scores = None if label is None else agreement(label[1], model.labels_)
    if as_json:
        labels = model.labels_.tolist() if model.fitted_.sample is None else None  # else they are in a file beside the model
        say_json(model.explain().to_json() | {"labels": labels, "scores": scores, "saved": saved})
    else:
        show(model, os.path.basename(data))
        if scores and label:
            words = f"NMI {scores['nmi']:.3f}, ARI {scores['ari']:.3f} ({scores['cases']} cases)"
            click.echo(f"Compared with {label[0]}: {words}.")
    if problem is not None:
        raise ValueError(problem)
    as_far = ", as far as it came," if model.interrupted_ else ""
    where = f"saved in {saved}{', in place of the file that was there' if former else ''}"
    click.echo(f"The model{as_far} is {where if saved else 'not saved: name a file with -o to keep it'}.", err=True)
    if model.interrupted_:
        click.get_current_context().exit(STOPPED)


def save(model: BayesianCaseModel, path: str | None) -> tuple[str | None, str | None]:
    """(where the model is, what went wrong). A run must not be lost to a full disk: if need be the model goes elsewhere."""
    if path is None:
        return None, None
    try:
        model.save(path)
        return path, None
    except OSError as error:
        problem = f"{path} could not be written: {error.strerror or error}"
    for folder in (os.getcwd(), os.path.expanduser("~"), tempfile.gettempdir()):
        other = None
        try:
            handle, other = tempfile.mkstemp(prefix="bayescase-", suffix=f"-{os.path.basename(path)}", dir=folder)
            os.close(handle)
            model.save(other)
        except OSError:
            if other is not None:
                os.unlink(other)
            continue
        return other, f"{problem}. The model is saved in {other} instead."
    return None, f"{problem}, and neither could a file elsewhere, so the model is lost."


def show(model: BayesianCaseModel, title: str) -> None:
    """Print the clusters, and what to do if the run cannot be trusted yet."""
    from rich.console import Group
    from rich.markup import escape

    from ..explaining.render.terminal import explanation_table

    explained = model.explain()
    say(explained, lambda: Group(explanation_table(explained, title), escape(explained.verdict)))
    if not model.interrupted_ and not explained.converged:
        click.echo(advise(model.diagnostics_.remedies, as_option))


def agreement(known: Sequence[Any], labels: Iterable[int]) -> dict[str, Any]:
    """NMI and ARI of the clusters and a known grouping, over the cases that have one."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    kept = [(str(value), int(s)) for value, s in zip(known, labels, strict=True) if value is not None]
    groups, clusters = zip(*kept, strict=True)
    return {
        "nmi": float(normalized_mutual_info_score(groups, clusters)),
        "ari": float(adjusted_rand_score(groups, clusters)),
        "cases": len(kept),
    }


@click.command()
@click.argument("data")
@click.option("--from", "least", default=1, type=click.IntRange(1), show_default=True, help="Smallest number of clusters.")
@click.option("--to", "most", default=8, type=click.IntRange(1), show_default=True, help="Largest number of clusters.")
@click.option("--folds", default=5, type=click.IntRange(2), show_default=True, help="Parts that the cases are cut into.")
@click.option("--label", metavar="COLUMN", help="A column that is not a feature.")
@ID
@MODELLING
@click.option(
    "--iterations", type=NumberOr("auto", int), metavar="N|auto", default=100, show_default=True, help="Sweeps of each chain."
)
@click.option("--chains", default=4, type=click.IntRange(1), show_default=True, help="Independent chains of each fit.")
@SEED
@JOBS
@DEVICE
@READING
@JSON
def select(
    data: str,
    least: int,
    most: int,
    folds: int,
    iterations: int | Literal["auto"],
    chains: int,
    seed: int,
    jobs: int,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare numbers of clusters for DATA.

    Each number is judged by the probability that it gives to cases held out of the fit.
    """
    from sklearn.exceptions import ConvergenceWarning

    from ..estimator import BayesianCaseModel
    from ..selection import select_n_clusters

    if least > most:
        raise click.UsageError(f"--from {least} is larger than --to {most}.")
    cases, settings = read_to_fit(data, options)
    model = BayesianCaseModel(**settings, n_iter=iterations, n_chains=chains, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = select_n_clusters(cases.table, range(least, most + 1), model=model, cv=folds, n_jobs=jobs, random_state=seed)
    if as_json:
        say_json(asdict(found))
        return
    say(found)
