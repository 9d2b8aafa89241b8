"""Commands on a saved model: `explain`, `name`, `fold`, `predict`, `info`, `report` and `plot`."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

import click

from .cases import FileOptions, open_new_cases, read_new_cases, row_of
from .errors import as_option
from .options import FORCE, ID, IMAGE, JOBS, JSON, READING
from .output import as_text, check_output, has_columns, is_model, is_signed, say, say_json, write_parts, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np

    from ..estimator import BayesianCaseModel
    from ..reading.batches import Source

PLOTS = ("prototypes", "subspaces", "values", "tree", "differences", "memberships", "agreement", "case", "ribbon", "history")
ELSEWHERE = ("n_jobs", "device", "client", "verbose")  # parameters that say where a fit was made
PREDICTED = ("case", "cluster", "prototype")  # the first columns of a table of predictions


def load(path: str) -> BayesianCaseModel:
    from ..estimator import BayesianCaseModel

    return BayesianCaseModel.load(path)


@click.command()
@click.argument("model")
@click.option("--case", metavar="FILE", help="Explain a new case: the only one in the file, or that of --row.")
@click.option(
    "--row", metavar="N", help="Explain a case of the fit by its name, or its number from 0; with --case, of the file."
)
@click.option("--pair", nargs=2, type=int, metavar="S T", help="Explain how two clusters differ.")
@click.option(
    "--differences", is_flag=True, help="Explain where the chains differ: which cases could as well be in another cluster."
)
@READING
@JSON
def explain(
    model: str,
    case: str | None,
    row: str | None,
    pair: tuple[int, int] | None,
    differences: bool,
    as_json: bool,
    **reading: Any,
) -> None:
    """Explain the clusters of MODEL, one case, a pair of clusters, or where the chains differ."""
    from rich.console import Group
    from rich.markup import escape

    from ..explaining.render import terminal

    if pair and (case is not None or row is not None):
        raise click.UsageError("--pair cannot go with --case or --row.")
    if differences and (pair or case is not None or row is not None):
        raise click.UsageError("--differences must stand alone.")
    fitted = load(model)
    explained: Any
    table: Any
    if differences:
        explained, table = fitted.explain_differences(), terminal.differences_table
    elif pair:
        explained, table = fitted.explain_pair(*pair), terminal.pair_table
    elif case is not None:
        cases = read_new_cases(fitted, case, FileOptions(**reading)).table
        if row is None and cases.n_cases > 1:
            raise ValueError(f"{case} has {cases.n_cases} cases; choose one with --row, from 0 to {cases.n_cases - 1}.")
        chosen = 0 if row is None else row_of(row, cases.n_cases)
        explained, table = fitted.explain_case(cases.take([chosen])), terminal.case_table
    elif row is not None:
        chosen = row_of(row, len(fitted.labels_), fitted.case_names_)
        explained, table = fitted.explain_case(chosen), terminal.case_table
    else:
        explained, table = fitted.explain(), terminal.explanation_table
    if as_json:
        say_json(explained.to_json())
    elif table is terminal.differences_table:
        say(explained, lambda: Group(escape(explained.words), *([table(explained)] if explained.cases else [])))
    elif table is terminal.explanation_table:
        say(explained, lambda: Group(table(explained), escape(explained.verdict)))
    else:
        say(explained, lambda: Group(escape(str(explained)), table(explained)))


@click.command()
@click.argument("model")
@click.option(
    "-k", "--clusters", type=click.IntRange(1), metavar="N", help="Tell them as N; as many as --tolerance leaves otherwise."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.07,
    show_default=True,
    help="Clusters are one if that makes their cases less probable by no more than this share; that two features go together "
    "in them does not count.",
)
@click.option("-o", "--output", metavar="FILE", help="Save the folded model here; a model that is there is replaced.")
@FORCE
@JSON
def fold(model: str, clusters: int | None, tolerance: float, output: str | None, force: bool, as_json: bool) -> None:
    """Tell the clusters of MODEL as fewer, without a new fit.

    Those are joined that lose least. What is saved with -o can be explained, drawn and reported, and predicts, as any model.
    """
    from rich.console import Group
    from rich.markup import escape

    from ..explaining.render import terminal
    from ..storage import naming

    check_output(output, model, ours=is_model, force=force)
    fitted = load(model)
    tree, fewer = fitted.explain_tree(tolerance=tolerance), fitted.fold(clusters, tolerance=tolerance)
    explained = fewer.explain()
    if output is not None:
        with naming(output):
            fewer.save(output)
    if as_json:
        say_json({"tree": tree.to_json(), "folded": explained.to_json(), "labels": fewer.labels_.tolist(), "saved": output})
    else:
        tables = lambda: Group(terminal.tree_table(tree), terminal.explanation_table(explained), escape(explained.verdict))  # noqa: E731
        say(f"{tree}\n\n{explained}", tables)
    if output is not None:
        click.echo(f"The folded model is saved in {output}.", err=True)


@click.command()
@click.argument("model")
@click.argument("names", nargs=-1, required=True, metavar="S=NAME ...")
@click.option("-o", "--output", metavar="FILE", help="Save it here; in place of MODEL otherwise.")
@FORCE
@JSON
def name(model: str, names: tuple[str, ...], output: str | None, force: bool, as_json: bool) -> None:
    """Give clusters of MODEL names by their numbers, such as 0=pasta "4=cold drinks"; S= alone takes one back.

    All commands then use them; other clusters keep the names that they have.
    """
    from ..storage import naming

    if output is not None:
        check_output(output, model, ours=is_model, force=force)
    fitted = load(model)
    former = dict(enumerate(fitted.cluster_names_ or ()))
    fitted.name_clusters(former | dict(map(numbered, names)))
    where = output or model
    with naming(where):
        fitted.save(where)
    explained = fitted.explain()
    if as_json:
        say_json({"names": fitted.cluster_names_, "saved": where})
    else:
        say("\n".join(cluster.sentence for cluster in explained.clusters))
    click.echo(f"The model is saved in {where}.", err=True)


def numbered(text: str) -> tuple[int, str | None]:
    """The number and the name of a cluster; None for a name that is taken back."""
    number, equals, words = text.partition("=")
    if not equals or not number.strip().isdecimal():
        raise ValueError(f"{text!r} must be the number of a cluster and its name, such as 0=pasta.")
    return int(number), words.strip() or None


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", metavar="FILE", help="Write CSV, or TSV or JSON lines by the name of the file.")
@FORCE
@click.option("--out-of-core", is_flag=True, help="Read DATA, a file or a folder of files, in parts, and write it in parts.")
@ID
@JOBS
@READING
@JSON
def predict(
    model: str,
    data: str,
    output: str | None,
    force: bool,
    out_of_core: bool,
    id_column: str | None,
    jobs: int,
    as_json: bool,
    **reading: Any,
) -> None:
    """Cluster and memberships of every case in DATA, by a saved MODEL."""
    from ..explaining.render.terminal import plain_table

    if as_json and output == "-":
        raise click.UsageError("--json and -o - both write to stdout.")
    if out_of_core and (output in (None, "-") or as_json or id_column is not None):
        raise click.UsageError("--out-of-core needs -o FILE, and cannot go with --json or --id.")
    check_output(output, model, data, text=True, ours=has_columns(*PREDICTED), force=force)
    fitted = load(model).set_params(n_jobs=jobs)
    columns = [*PREDICTED, "name", *(f"membership {s}" for s in range(fitted.n_clusters_))]
    if out_of_core and output is not None:
        write_parts(output, columns, predict_parts(fitted, open_new_cases(data, FileOptions(**reading)), jobs))
        return
    cases = read_new_cases(fitted, data, FileOptions(**reading))
    names = range(cases.table.n_cases) if id_column is None else cases.case_names(id_column, "--id")
    rows = predicted(fitted, names, fitted.predict_proba(cases.table))
    if output is not None:
        write_text(output, as_text(columns, rows, output), len(rows))
    if as_json:
        say_json({"cases": [dict(zip(columns[:4], row, strict=False)) | {"memberships": row[4:]} for row in rows]})
    elif output is None:
        say(as_text(columns, rows).rstrip("\n"), lambda: plain_table("Predicted clusters", columns, rows))


def predicted(fitted: BayesianCaseModel, cases: Iterable[Any], shares: np.ndarray) -> list[list[Any]]:
    """Rows of the table of predictions."""
    from ..explaining.naming import shown_names

    prototypes, of_clusters = [fitted.fitted_.name_of(row) for row in fitted.prototypes_], shown_names(fitted.fitted_)
    return [
        [case, int(s), prototypes[s], of_clusters[s], *(round(float(p), 6) for p in share)]
        for case, s, share in zip(cases, shares.argmax(axis=1), shares, strict=True)
    ]


def predict_parts(fitted: BayesianCaseModel, source: Source, jobs: int) -> Iterator[list[list[Any]]]:
    """The same of a table that is read in parts, part by part."""
    from joblib import effective_n_jobs

    from .. import predicting
    from ..reading.cache import encode_source

    first = 0
    for cases in encode_source(fitted.fitted_.encoding, source):
        shares = predicting.memberships(fitted.fitted_, cases, effective_n_jobs(jobs))
        yield predicted(fitted, range(first, first + len(shares)), shares)
        first += len(shares)


@click.command()
@click.argument("model")
@JSON
def info(model: str, as_json: bool) -> None:
    """What is in the file MODEL: features, parameters, diagnostics."""
    from ..explaining.render.terminal import plain_table
    from ..explaining.words import counted
    from ..sampling.problem import BAG_DEFAULTS, DEFAULTS

    fitted = load(model)
    features, found, whole = fitted.describe_features(), fitted.diagnostics_, fitted.fitted_.whole
    shown = {name: value for name, value in fitted.get_params(deep=False).items() if name not in ELSEWHERE}
    chosen = BAG_DEFAULTS if fitted.encoder_.encoding_.bags else DEFAULTS
    params = {name: chosen.get(name) if value is None else value for name, value in shown.items()}
    params = {name: value for name, value in params.items() if value is not None}
    if as_json:
        say_json(
            {
                "path": model,
                "bytes": os.path.getsize(model),
                "cases": len(fitted.labels_),
                "clusters": fitted.n_clusters_,
                "folded_from": whole.n_clusters if whole else None,
                "named_cases": fitted.case_names_ is not None,
                "features": [feature._asdict() for feature in features],
                "parameters": params,
                "learned": {name: value._asdict() for name, value in fitted.hyperparameters_.items()},
                "sweeps": fitted.n_iter_,
                "diagnostics": found.to_json(as_option),
            }
        )
        return
    named = "with names" if fitted.case_names_ else "without names"
    sizes = f"{counted(len(fitted.labels_))} {named}, {counted(len(features), 'feature')}, "
    sizes += counted(fitted.n_clusters_, "cluster")
    sizes += f" folded from {whole.n_clusters}" if whole else ""
    click.echo(f"{model}: {sizes}, {os.path.getsize(model) / 1e6:.1f} MB")
    chains = len(fitted.log_joint_)
    click.echo(f"{chains} chain{'s' * (chains > 1)} of {fitted.n_iter_} sweeps")
    click.echo("Parameters: " + ", ".join(f"{name}={value!r}" for name, value in params.items()))
    for name, value in fitted.hyperparameters_.items():
        click.echo(f"Learned {name}: {value.mean:.4g} ({value.low:.4g} to {value.high:.4g})")
    rows = [(f.name, f.type, f.n_values, f"{f.missing:.1%}", f.values) for f in features]
    click.echo("")
    say(features, lambda: plain_table("Features", ("Feature", "Type", "Values", "Missing", ""), rows))
    click.echo("\n" + found.render(as_option))


@click.command()
@click.argument("model")
@click.option("-o", "--output", metavar="FILE", required=True, help="The HTML file to write.")
@FORCE
@click.option("--title", help="Heading of the page.")
@IMAGE
def report(model: str, output: str, force: bool, title: str | None, image: tuple[int, int] | None) -> None:
    """Write one HTML file that explains MODEL; it needs no network."""
    from ..storage import naming

    check_output(output, model, ours=is_signed, force=force)
    fitted = load(model)
    with naming(output):
        fitted.report(output, image_shape=image or None, title=title)
    click.echo(f"The report is in {output}.", err=True)


@click.command()
@click.argument("model")
@click.argument("kind", type=click.Choice(PLOTS))
@click.option("-o", "--output", metavar="FILE", required=True, help="A PNG, SVG or PDF file.")
@FORCE
@click.option("--cluster", type=int, default=0, show_default=True, help="For `agreement`: the cluster.")
@click.option("--row", metavar="N", default="0", show_default=True, help="For `case`: its name or number.")
@click.option("--image", nargs=2, type=int, metavar="HEIGHT WIDTH", help="For `prototypes` and `history`: features are pixels.")
def plot(model: str, kind: str, output: str, force: bool, cluster: int, row: str, image: tuple[int, int] | None) -> None:
    """Draw a picture of MODEL."""
    from ..explaining.render import figures as plots
    from ..storage import naming, replacing

    check_output(output, model, ours=is_signed, force=force)
    suffix = os.path.splitext(output)[1].lower().lstrip(".")
    if suffix not in ("png", "svg", "pdf"):
        raise ValueError(f"{output} must end with .png, .svg or .pdf, which says what to write.")
    fitted, shape = load(model), image or None
    figure = {
        "prototypes": lambda: plots.plot_prototypes(fitted.explain(), image_shape=shape),
        "subspaces": lambda: plots.plot_subspaces(fitted.explain()),
        "values": lambda: plots.plot_values(fitted.explain()),
        "tree": lambda: plots.plot_tree(fitted.explain_tree()),
        "differences": lambda: plots.plot_differences(fitted.explain_differences()),
        "memberships": lambda: plots.plot_memberships(fitted.fitted_),
        "agreement": lambda: plots.plot_agreement(fitted.explain_agreement(cluster)),
        "case": lambda: plots.plot_case(fitted.explain_case(row_of(row, len(fitted.labels_), fitted.case_names_))),
        "ribbon": lambda: plots.plot_ribbon(fitted.fitted_),
        "history": lambda: plots.plot_history(fitted.fitted_, image_shape=shape),
    }[kind]()
    signature = {"Software" if suffix == "png" else "Creator": "bayescase"}  # so that the next picture may replace it
    with naming(output), replacing(output) as file, warnings.catch_warnings(record=True) as caught:
        figure.savefig(file, format=suffix, bbox_inches="tight", metadata=signature)
    if any(str(warning.message).startswith("Glyph") for warning in caught):
        click.echo("Note: The font of the picture lacks some letters; they are drawn as boxes.", err=True)
    click.echo(f"The picture is in {output}.", err=True)
