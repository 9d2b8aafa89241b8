"""The command line. Thin: every verb calls one function of the package.

Results go to stdout, as tables in a terminal, as plain text in a pipe, as one JSON document with --json; notes and progress go
to stderr. Exit codes: 0 good, 1 bad input, 2 bad usage, 130 stopped by Ctrl-C.
"""

import csv
import errno
import io
import json
import math
import os
import re
import shlex
import sys
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path

import click

from .. import __version__
from ..errors import Message
from . import errors
from .study import study

STOPPED = 130
PLOTS = ("prototypes", "subspaces", "values", "memberships", "agreement", "case", "ribbon", "history")
REPRODUCED = ("smiley", "digits", "agreement", "newsgroups", "sensitivity", "recipes", "peers", "all")
KINDS = ("category", "ordered", "integer", "number", "count")

# Advice of the package in the words of the command line.
OPTIONS = (
    (r"feature_types=\{'(.+?)': 'drop'\}", lambda m: f"--drop {shlex.quote(m[1])}"),
    (r"feature_types=\{'(.+?)': '(\w+)'\}", lambda m: f"--type {shlex.quote(f'{m[1]}={m[2]}')}"),
    (r"top_values=\{'(.+?)': (\d+)\}", lambda m: f"--top {shlex.quote(f'{m[1]}={m[2]}')}"),
    (r"feature_types drops every column", "--drop leaves no column"),
    (r"\bleave it out with feature_types\b", "leave it out with --drop"),
    (r"or insist with 'number'", "or insist with --type and 'number'"),
    (r"has no value at all; drop it", "has no value at all; leave it out with --drop"),
    (r"name it in missing_values|add it to missing_values", "say so with --missing"),
    (r"or say that the file has no header row", "or use --no-header if the file has no header row"),
    (r"say that the file has no header row", "use --no-header"),
    (r"say which array to read", "choose one with --array"),
    (r"\bn_clusters=(?=\d)", "-k "),
    (r"\bn_samples=", "only "),
    (r"\bkeep_draws=True\b", "--keep-draws"),
    (r"\bburn_in=(?=\d)", "--burn-in "),
    (r"(?<![\w'])(alpha|lam|c|q|bins|sampler|checkpoint)(?==|\[| must| has| can)", r"--\1"),
)
WORDS = {
    "missing_values": "--missing",
    "image_shape": "--image",
    "max_count": "--max-count",
    "n_clusters": "-k",
    "n_iter": "--iterations",
    "max_iter": "--max-iterations",
    "n_chains": "--chains",
    "burn_in": "--burn-in",
    "feature_types": "--type",
    "top_values": "--top",
}


def in_options(message):
    """One line, with the options of the command line in place of the parameters of the estimator."""
    if isinstance(message, Message):
        return errors.in_options(message)
    message = " ".join(str(message).split())
    for pattern, option in OPTIONS:
        message = re.sub(pattern, option, message)
    return re.sub(r"(?<![\w'])[a-z_]+(?![\w'])", lambda m: WORDS.get(m[0], m[0]), message)  # what is quoted stays


# --- how every command behaves ------------------------------------------------------------------------------------------


class Commands(click.Group):
    """Wrong input is one sentence on stderr and exit code 1; warnings are notes."""

    def invoke(self, ctx):
        try:
            with notes() as ctx.obj:
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
def notes():
    """Warnings of the package appear as one-line notes on stderr, those for programmers do not; yields the notes so far."""
    seen = []

    def note(message, category, *_, **__):
        seen.append(str(message))
        click.echo(f"Note: {in_options(message)}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = note
        yield seen


def say(plain, rich=None):
    """Text for a pipe; for a terminal what rich() makes of it, if it makes anything."""
    from rich.console import Console

    console = Console()
    if rich is None or not console.is_terminal:
        click.echo(plain)
    else:
        console.print(rich())


def say_json(value):
    """One JSON document. Numbers that JSON has no word for are null."""

    def plain(value):
        if isinstance(value, dict):
            return {str(key): plain(item) for key, item in value.items()}
        value = value.tolist() if hasattr(value, "tolist") else value  # NumPy's numbers and arrays
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    click.echo(json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def check_output(path, *sources, text=False):
    """What cannot be written should be said before the work, not after it."""
    if path is None or (text and path == "-"):
        return
    if path == "-":
        raise ValueError("The output is no text, so it cannot go to stdout; give the path of a file.")
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give the path of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"{path} is not an ordinary file, which could be replaced; give another path.")
    if not os.path.isdir(folder):
        raise ValueError(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{path} cannot be written: no permission in the folder {folder}.")
    for source in sources:
        if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise ValueError(f"{path} is what is read; write to another file.")


# --- options ------------------------------------------------------------------------------------------------------------


class NumberOr(click.ParamType):
    """A number, or one word."""

    def __init__(self, word, number=float):
        self.word, self.number, self.name = word, number, f"{'number' if number is float else 'integer'}|{word}"

    def convert(self, value, param, ctx):
        if value == self.word or isinstance(value, (int, float)):
            return value
        try:
            return self.number(value)
        except ValueError:
            self.fail(f"{value!r} is neither a {'whole ' * (self.number is int)}number nor {self.word!r}.", param, ctx)


def by_column(option, pairs, convert):
    """{column: value} from COLUMN=VALUE, …; a value alone is for all columns."""
    found = {}
    for text in pairs:
        column, equals, value = text.rpartition("=")
        try:
            value = convert(value)
        except ValueError as error:
            raise click.BadParameter(str(error) or f"cannot read {text!r}.", param_hint=option) from None
        if not equals:
            if len(pairs) > 1:
                raise click.BadParameter("a value for all columns must stand alone.", param_hint=option)
            return value
        found[column] = value
    return found or None


def one_kind(text):
    if text not in KINDS:
        raise ValueError(f"{text!r} is not one of {', '.join(KINDS)}.")
    return text


def one_top(text):
    if not text.isdecimal():
        raise ValueError(f"{text!r} is not a whole number.")
    return int(text)


def one_bins(text):
    """5, uniform:5, quantile:5, or edges such as 18,65 (a single edge is written 18,)."""
    way, _, n = text.partition(":")
    if n:
        return way, one_top(n)
    if "," in text:
        return [float(edge) for edge in text.split(",") if edge.strip()]
    return one_top(text)


def check_jobs(context, option, jobs):
    if jobs == 0:
        raise click.BadParameter("0 threads cannot do anything.")
    return jobs


def options(*all_of_them):
    """Several options as one decorator."""

    def decorate(function):
        for option in reversed(all_of_them):
            function = option(function)
        return function

    return decorate


def learnable(name, default, words):
    return click.option(name, type=NumberOr("learn"), metavar="NUMBER|learn", default=default, show_default=True, help=words)


SEED = click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True, help="Seed of the run.")
JOBS = click.option("--jobs", default=-1, callback=check_jobs, show_default=True, help="Threads; -1 uses all processors.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
ID = click.option("--id", "id_column", metavar="COLUMN", help="Names of the cases; not a feature.")
READING = options(
    click.option("--delimiter", metavar="CHARACTER", help="What separates cells of a CSV file; guessed otherwise."),
    click.option("--no-header", is_flag=True, help="The first row of a CSV file is a case; columns are x0, x1, …"),
    click.option("--array", metavar="NAME", help="Which table of an NPZ file, if it has several."),
)
MODELLING = options(
    learnable("--alpha", 0.01, "How much cases mix clusters."),
    learnable("--lam", 1.0, "Pseudo-count of every value."),
    learnable("--c", 50.0, "How strongly cases copy prototypes."),
    learnable("--q", 0.8, "Prior probability that a feature matters."),
    click.option(
        "--sampler",
        type=click.Choice(["rows", "collapsed"]),
        default="rows",
        show_default=True,
        help="Fast, or the paper's; the same posterior.",
    ),
    click.option("--missing", multiple=True, metavar="MARK", help="A value such as ? that means missing; repeatable."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."),
    click.option(
        "--type",
        "types",
        multiple=True,
        metavar="[COLUMN=]KIND",
        help=f"How to read a column, or all: {', '.join(KINDS)}; repeatable.",
    ),
    click.option(
        "--top", multiple=True, metavar="[COLUMN=]K", help="Keep the K most frequent values, the rest is 'other'; repeatable."
    ),
    click.option(
        "--bins",
        multiple=True,
        metavar="[COLUMN=]BINS",
        help="Cut numbers, of a column or all, into 5 (at quantiles), uniform:5, or at edges 18,65; repeatable.",
    ),
    click.option(
        "--max-count", default=1, type=click.IntRange(1), show_default=True, help="Largest count told apart in sparse data."
    ),
)


def read_data(path, delimiter, no_header, array, missing=(), known=()):
    from ..reading.files import read_file

    if delimiter is not None:
        delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise click.BadParameter(f"it must be one character, not {delimiter!r}.", param_hint="--delimiter")
    return read_file(
        path, delimiter=delimiter, header=not no_header, missing_values=tuple(map(str, missing)), array=array, known=known
    )


def read_to_fit(path, label, id_column, delimiter, no_header, array, missing, drop, types, top, bins, max_count, **more):
    """(cases, parameters of the estimator): columns by name, label and identifier left out, and `more` as it is."""
    cases = read_data(path, delimiter, no_header, array, missing)
    kinds, tops, cuts = (
        by_column("--type", types, one_kind),
        by_column("--top", top, one_top),
        by_column("--bins", bins, one_bins),
    )
    for option, given in (("--type", kinds), ("--top", tops), ("--bins", cuts)):
        for column in given if isinstance(given, dict) else ():
            cases.position(column, option)
    if isinstance(kinds, str):  # for all columns but those left out
        kinds = dict.fromkeys(map(cases.table.name, range(len(cases.table.columns))), kinds)
    kinds = dict(kinds or {})
    for option, column in (*(("--drop", column) for column in drop), ("--label", label), ("--id", id_column)):
        if column is not None and (option == "--drop" or column not in cases.beside):
            cases.position(column, option)
            kinds[column] = "drop"
    encoder = {"feature_types": kinds or None, "top_values": tops, "bins": cuts, "missing_values": marks(missing)}
    encoder |= {"max_count": None if max_count == 1 else max_count}
    return cases, {"encoder": {name: value for name, value in encoder.items() if value is not None} or None} | more


def marks(missing):
    """A mark that spells a number means the number, too."""
    found = list(missing)
    for mark in missing:
        try:
            found.append(int(mark) if mark.lstrip("+-").isdecimal() else float(mark))
        except ValueError:
            continue
    return [mark for mark in found if mark == mark] or None


def case_names(data, id_column):
    """A name for each case; where there is none its number."""
    if id_column is None:
        return None
    return [f"case {i}" if name is None else str(name) for i, name in enumerate(data.values(id_column, "--id"))]


# --- the commands -------------------------------------------------------------------------------------------------------


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="bayescase")
def main():
    """Clusters of discrete data, each explained by a prototype (a real case) and a subspace (the features that matter)."""


@main.command()
@SEED
@JOBS
def demo(seed, jobs):
    """Fit the bundled recipes and smileys and print the clusters."""
    from rich.console import Console
    from sklearn.exceptions import ConvergenceWarning

    from ..datasets import load_recipes, load_smileys
    from ..estimator import BayesianCaseModel
    from ..explaining.render.terminal import explanation_table

    console = Console()
    # The faces are drawn with α = 0.1 in every entry and q = 0.5, so that is what they are fitted with.
    for title, dataset, settings in (
        ("Recipes", load_recipes(), {"n_clusters": 5}),
        ("Smiley faces", load_smileys(), {"n_clusters": 3, "alpha": 0.3, "q": 0.5}),
    ):
        model = BayesianCaseModel(**settings, n_chains=8, n_jobs=jobs, random_state=seed, verbose=int(sys.stderr.isatty()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict stands below the table
            model.fit(dataset.table, case_names=dataset.names)
        console.print(explanation_table(model.explain(), title))
        console.print(model.diagnostics_.verdict, highlight=False)


@main.command()
@click.argument("data")
@click.option(
    "-k", "--clusters", type=NumberOr("auto", int), metavar="N|auto", default=8, show_default=True, help="Number of clusters."
)
@click.option("-o", "--output", metavar="FILE", help="Save the model here.")
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
@click.option("--keep-draws", is_flag=True, help="Keep every draw in the model, as `plot history` needs.")
@click.option("--checkpoint", metavar="FILE", help="Written every few seconds; a run that finds it goes on from there.")
@SEED
@JOBS
@READING
@JSON
def fit(data, clusters, output, label, id_column, iterations, chains, keep_draws, checkpoint, seed, jobs, as_json, **more):
    """Find the clusters of DATA and print them.

    DATA is a CSV or TSV file, JSON lines, NPZ, Parquet or Feather; text may be compressed; - is standard input. Ctrl-C
    ends the run early and keeps what there is.
    """
    from rich.console import Group
    from rich.markup import escape
    from sklearn.exceptions import ConvergenceWarning

    from ..estimator import BayesianCaseModel
    from ..explaining.render.terminal import explanation_table

    check_output(output, data)
    cases, settings = read_to_fit(data, label, id_column, **more)
    known = None if label is None else cases.values(label)
    if known is not None and all(value is None for value in known):
        raise ValueError(f"Column {label!r} of --label has no value at all.")
    names = case_names(cases, id_column)
    model = BayesianCaseModel(
        clusters,
        **settings,
        n_iter=iterations,
        n_chains=chains,
        keep_draws=keep_draws,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(sys.stderr.isatty()),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict is printed
        model.fit(cases.table, case_names=names, checkpoint=checkpoint)
    stopped = model.interrupted_
    if output is not None:
        model.save(output)
    scores = None if known is None else agreement(known, model.labels_)
    explained = model.explain()
    if as_json:
        say_json(explained.to_json() | {"labels": model.labels_.tolist(), "scores": scores, "saved": output})
    else:
        say(
            explained,
            lambda: Group(explanation_table(explained, os.path.basename(data)), escape(explained.verdict)),
        )
        if not stopped and not explained.converged:
            click.echo(in_options(model.diagnostics_.advice))
        if scores:
            click.echo(f"Compared with {label}: NMI {scores['nmi']:.3f}, ARI {scores['ari']:.3f} ({scores['cases']} cases).")
    saved = f"saved in {output}" if output else "not saved: name a file with -o to keep it"
    click.echo(f"The model{', as far as it came,' if stopped else ''} is {saved}.", err=True)
    if stopped:
        click.get_current_context().exit(STOPPED)


def agreement(known, labels):
    """NMI and ARI of the clusters and a known grouping, over the cases that have one."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    kept = [(str(value), int(s)) for value, s in zip(known, labels, strict=True) if value is not None]
    groups, clusters = zip(*kept, strict=True)
    return {
        "nmi": float(normalized_mutual_info_score(groups, clusters)),
        "ari": float(adjusted_rand_score(groups, clusters)),
        "cases": len(kept),
    }


def load(path):
    from ..estimator import BayesianCaseModel

    return BayesianCaseModel.load(path)


def read_for(model, path, **reading):
    """New cases for a model: its marks for missing cells, and its columns."""
    return read_data(path, **reading, missing=model.fitted_.encoding.markers, known=list(model.feature_types_))


def row_of(model, row):
    """The number of a case of the fit, given by number or by name."""
    if row.isdecimal():
        return int(row)
    found = [i for i, name in enumerate(model.case_names_ or ()) if name == row]
    if not found:
        raise ValueError(f"There is no case called {row!r}; cases have numbers from 0 to {len(model.labels_) - 1}"
                         f"{' and the names of --id' if model.case_names_ else ''}.")  # fmt: skip
    if len(found) > 1:
        raise ValueError(f"{len(found)} cases are called {row!r}: give one of the numbers {', '.join(map(str, found[:8]))}.")
    return found[0]


@main.command()
@click.argument("model")
@click.option("--case", metavar="FILE", help="Explain a new case: the only one in the file, or that of --row.")
@click.option(
    "--row", metavar="N", help="Explain a case of the fit by its number from 0, or its name; with --case, of the file."
)
@click.option("--pair", nargs=2, type=int, metavar="S T", help="Explain how two clusters differ.")
@READING
@JSON
def explain(model, case, row, pair, as_json, **reading):
    """Explain the clusters of MODEL, one case, or a pair of clusters."""
    from rich.console import Group
    from rich.markup import escape

    from ..explaining.render import terminal

    if pair and (case is not None or row is not None):
        raise click.UsageError("--pair cannot go with --case or --row.")
    model = load(model)
    if pair:
        explained, table = model.explain_pair(*pair), terminal.pair_table
    elif case is not None:
        table = read_for(model, case, **reading).table
        if row is None and table.n_cases > 1:
            raise ValueError(f"{case} has {table.n_cases} cases; choose one with --row, from 0 to {table.n_cases - 1}.")
        if row is not None and not (row.isdecimal() and int(row) < table.n_cases):
            raise ValueError(f"{case} has no case {row!r}: it has {table.n_cases}, counted from 0.")
        explained, table = model.explain_case(table.take([int(row or 0)])), terminal.case_table
    elif row is not None:
        explained, table = model.explain_case(row_of(model, row)), terminal.case_table
    else:
        explained, table = model.explain(), terminal.explanation_table
    if as_json:
        say_json(explained.to_json())
        return
    if table is terminal.explanation_table:
        say(explained, lambda: Group(table(explained), escape(explained.verdict)))
    else:
        say(explained, lambda: Group(escape(str(explained)), table(explained)))


@main.command()
@click.argument("model")
@click.argument("data")
@click.option("-o", "--output", metavar="FILE", help="Write CSV, or TSV or JSON lines by the name of the file.")
@ID
@JOBS
@READING
@JSON
def predict(model, data, output, id_column, jobs, as_json, **reading):
    """Cluster and memberships of every case in DATA, by a saved MODEL."""
    from ..explaining.render.terminal import plain_table

    if as_json and output == "-":
        raise click.UsageError("--json and -o - both write to stdout.")
    check_output(output, model, data, text=True)
    model = load(model).set_params(n_jobs=jobs)
    cases = read_for(model, data, **reading)
    names = case_names(cases, id_column) or list(range(cases.table.n_cases))
    shares = model.predict_proba(cases.table)
    prototypes = [model.case_names_[row] if model.case_names_ else f"case {row}" for row in model.prototypes_]
    columns = ["case", "cluster", "prototype", *(f"membership {s}" for s in range(model.n_clusters_))]
    rows = [
        [name, int(s), prototypes[s], *(round(float(p), 6) for p in share)]
        for name, s, share in zip(names, shares.argmax(axis=1), shares, strict=True)
    ]
    if output is not None:
        write_text(output, as_text(columns, rows, output), len(rows))
    if as_json:
        say_json({"cases": [dict(zip(columns[:3], row, strict=False)) | {"memberships": row[3:]} for row in rows]})
    elif output is None:
        say(as_text(columns, rows).rstrip("\n"), lambda: plain_table("Predicted clusters", columns, rows))


def as_text(columns, rows, path=""):
    """CSV, or TSV or JSON lines by the name of the file."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix in (".jsonl", ".ndjson"):
        return "".join(json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if suffix in (".tsv", ".tab") else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return text.getvalue()


def write_text(path, text, n):
    from ..storage import replacing

    if path == "-":
        click.echo(text, nl=False)
        return
    with replacing(path) as file:
        file.write(text.encode())
    click.echo(f"{n} case{'s are' if n > 1 else ' is'} written to {path}.", err=True)


@main.command()
@click.argument("model")
@JSON
def info(model, as_json):
    """What is in the file MODEL: features, parameters, diagnostics."""
    from ..explaining.render.terminal import plain_table

    path, model = model, load(model)
    features, found = model.describe_features(), model.diagnostics_
    shown = {name: value for name, value in model.get_params(deep=False).items() if name not in ("n_jobs", "verbose")}
    params = {name: value for name, value in shown.items() if value is not None}
    if as_json:
        say_json(
            {
                "path": path,
                "bytes": os.path.getsize(path),
                "cases": len(model.labels_),
                "clusters": model.n_clusters_,
                "named_cases": model.case_names_ is not None,
                "features": [feature._asdict() for feature in features],
                "parameters": params,
                "learned": {name: value._asdict() for name, value in model.hyperparameters_.items()},
                "sweeps": model.n_iter_,
                "diagnostics": asdict(found) | {"quantities": {k: v._asdict() for k, v in found.quantities.items()}},
            }
        )
        return
    named = "with names" if model.case_names_ else "without names"
    sizes = f"{len(model.labels_)} cases {named}, {len(model.feature_types_)} features, {model.n_clusters_} clusters"
    click.echo(f"{path}: {sizes}, {os.path.getsize(path) / 1e6:.1f} MB")
    chains = len(model.log_joint_)
    click.echo(f"{chains} chain{'s' * (chains > 1)} of {model.n_iter_} sweeps")
    click.echo("Parameters: " + ", ".join(f"{name}={value!r}" for name, value in params.items()))
    for name, value in model.hyperparameters_.items():
        click.echo(f"Learned {name}: {value.mean:.4g} ({value.low:.4g} to {value.high:.4g})")
    rows = [(f.name, f.type, f.n_values, f"{f.missing:.1%}", f.values) for f in features]
    click.echo("")
    say(features, lambda: plain_table("Features", ("Feature", "Type", "Values", "Missing", ""), rows))
    click.echo("\n" + (str(found).replace(found.advice, in_options(found.advice)) if found.advice else str(found)))


@main.command()
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
@READING
@JSON
def select(data, least, most, folds, label, id_column, iterations, chains, seed, jobs, as_json, **more):
    """Compare numbers of clusters for DATA.

    Each number is judged by the probability that it gives to cases held out of the fit.
    """
    from sklearn.exceptions import ConvergenceWarning

    from ..estimator import BayesianCaseModel
    from ..selection import select_n_clusters

    if least > most:
        raise click.UsageError(f"--from {least} is larger than --to {most}.")
    cases, settings = read_to_fit(data, label, id_column, **more)
    model = BayesianCaseModel(**settings, n_iter=iterations, n_chains=chains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = select_n_clusters(cases.table, range(least, most + 1), model=model, cv=folds, n_jobs=jobs, random_state=seed)
    if as_json:
        say_json(asdict(found))
        return
    say(found)


@main.command()
@click.argument("model")
@click.option("-o", "--output", metavar="FILE", required=True, help="The HTML file to write.")
@click.option("--title", help="Heading of the page.")
@click.option("--image", nargs=2, type=int, metavar="HEIGHT WIDTH", help="The features are the pixels of an image, row by row.")
def report(model, output, title, image):
    """Write one HTML file that explains MODEL; it needs no network."""
    check_output(output, model)
    load(model).report(output, image_shape=image or None, title=title)
    click.echo(f"The report is in {output}.", err=True)


@main.command()
@click.argument("model")
@click.argument("kind", type=click.Choice(PLOTS))
@click.option("-o", "--output", metavar="FILE", required=True, help="A PNG, SVG or PDF file.")
@click.option("--cluster", type=int, default=0, show_default=True, help="For `agreement`: the cluster.")
@click.option("--row", metavar="N", default="0", show_default=True, help="For `case`: its number or name.")
@click.option("--image", nargs=2, type=int, metavar="HEIGHT WIDTH", help="For `prototypes` and `history`: features are pixels.")
def plot(model, kind, output, cluster, row, image):
    """Draw a picture of MODEL."""
    from ..explaining.render import figures as plots
    from ..storage import replacing

    check_output(output, model)
    suffix = os.path.splitext(output)[1].lower().lstrip(".")
    if suffix not in ("png", "svg", "pdf"):
        raise ValueError(f"{output} must end with .png, .svg or .pdf, which says what to write.")
    model, shape = load(model), image or None
    figure = {
        "prototypes": lambda: plots.plot_prototypes(model.explain(), image_shape=shape),
        "subspaces": lambda: plots.plot_subspaces(model.explain()),
        "values": lambda: plots.plot_values(model.explain()),
        "memberships": lambda: plots.plot_memberships(model),
        "agreement": lambda: plots.plot_agreement(model.explain_agreement(cluster)),
        "case": lambda: plots.plot_case(model.explain_case(row_of(model, row))),
        "ribbon": lambda: plots.plot_ribbon(model),
        "history": lambda: plots.plot_history(model, image_shape=shape),
    }[kind]()
    with replacing(output) as file:
        figure.savefig(file, format=suffix, bbox_inches="tight")
    click.echo(f"The picture is in {output}.", err=True)


@main.command()
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
def simulate(cases, features, values, clusters, seed, output, **prior):
    """Draw a table from the prior of the model, with planted clusters.

    Its columns are `case`, `cluster` and the features: `bayescase fit FILE --id case --label cluster` should find them again.
    """
    from ..datasets import simulate_cases

    check_output(output, text=True)
    drawn = simulate_cases(cases, features, values, clusters, **prior, random_state=seed)
    columns = ["case", "cluster", *drawn.table]
    rows = zip(drawn.names.tolist(), drawn.families.tolist(), *drawn.table.values(), strict=True)
    write_text(output, as_text(columns, rows, output), cases)


class Bench(click.Group):
    """Without the name of a command it is `speed`."""

    def parse_args(self, ctx, args):
        named = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["speed", *args])


@main.group(cls=Bench)
def bench():
    """Measure how fast the sampler is here, and how good its clusters are.

    Without the name of a command it measures the speed.
    """


@bench.command()
@click.option("--seconds", default=1.0, type=click.FloatRange(0.01, 60), show_default=True, help="Time for each size.")
@JOBS
@JSON
def speed(seconds, jobs, as_json):
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
def quality(**options):
    """Compare the clusters with those of other methods, on labelled sets.

    The same as `bayescase reproduce peers`. The other methods are installed by pip install 'bayescase[peers]'; those that are
    absent are left out, as are sets that are neither in the folder nor within reach.
    """
    run_experiments("peers", **options)


@main.command()
@click.argument("experiment", type=click.Choice(REPRODUCED))
@click.option(
    "--data",
    metavar="DIR",
    help="Folder of public data; without it, what is bundled, in scikit-learn, or (peers) on openml.org.",
)
@EXPERIMENTING
def reproduce(experiment, **options):
    """Make the tables and figures of the paper anew, and compare with other methods (peers).

    A seed whose result is in the folder is not run again, so a run that was stopped goes on. The same seeds give the same
    numbers.
    """
    run_experiments(experiment, **options)


def run_experiments(experiment, data, out, quick, seeds, jobs):
    from .. import experiments

    out, data = os.path.abspath(out), None if data is None else Path(data)
    if os.path.exists(out) and not os.path.isdir(out):
        raise ValueError(f"--out: {out} is a file; give a folder.")
    chosen = [one for name, one in experiments.EXPERIMENTS.items() if experiment in (name, "all")]
    try:
        experiments.reproduce(
            chosen, Path(out), data, quick=quick, seeds=seeds, n_jobs=jobs, say=lambda words: click.echo(words, err=True)
        )
    except KeyboardInterrupt:
        click.echo("Stopped; the same command goes on after the seeds that are done.", err=True)
        raise click.exceptions.Exit(STOPPED) from None
    click.echo(f"The page is {experiments.write_page(experiments.EXPERIMENTS.values(), Path(out))}.")


main.add_command(study)


@contextmanager
def waiting(words):
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield
