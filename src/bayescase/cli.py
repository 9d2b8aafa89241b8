"""The command line. Thin: every verb calls one function of the package."""

import sys
import warnings

import click
import numpy as np

from . import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bayescase")
def main():
    """Clusters of discrete data, each explained by a prototype (a real case) and a subspace (the features that matter)."""


def check_jobs(context, option, jobs):
    if jobs == 0:
        raise click.BadParameter("0 threads cannot do anything.")
    return jobs


@main.command()
@click.option("--seed", default=0, type=click.IntRange(0, 2**32 - 1), show_default=True, help="Seed of the run.")
@click.option("--jobs", default=-1, callback=check_jobs, show_default=True, help="Threads; -1 uses all processors.")
def demo(seed, jobs):
    """Fit the bundled recipes and smiley faces and print their clusters."""
    from rich.console import Console
    from sklearn.exceptions import ConvergenceWarning

    from .datasets import load_recipes, load_smileys
    from .estimator import BayesianCaseModel

    console = Console()
    # The faces are drawn with α = 0.1 in every entry and q = 0.5, so that is what they are fitted with.
    for title, dataset, settings in (
        ("Recipes", load_recipes(), {"n_clusters": 5}),
        ("Smiley faces", load_smileys(), {"n_clusters": 3, "alpha": 0.3, "q": 0.5}),
    ):
        model = BayesianCaseModel(**settings, n_chains=8, n_jobs=jobs, random_state=seed, verbose=int(sys.stderr.isatty()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the verdict stands below the table
            model.fit(dataset.table)
        console.print(clusters_table(title, model, dataset))
        console.print(model.diagnostics_.verdict, highlight=False)


def clusters_table(title, model, dataset):
    """A rich table: one row per cluster, with its prototype and its subspace."""
    from rich.table import Table

    described = f"{title}: {len(dataset.names)} cases, {model.n_features_in_} features, {model.n_clusters} clusters"
    table = Table(title=described, title_justify="left", show_lines=True)
    table.add_column("Cases", justify="right")
    table.add_column("Prototype")
    table.add_column("What matters, and how surely")
    sizes = np.bincount(model.labels_, minlength=model.n_clusters)
    for s, best in enumerate(ranked[0] for ranked in model.prototype_probabilities_):
        ties = f"\none of {len(best.ties)} equal cases" if len(best.ties) > 1 else ""
        table.add_row(
            str(sizes[s]), f"[bold]{dataset.names[best.row]}[/]\nprobability {best.probability:.2f}{ties}", subspace(model, s)
        )
    return table


def subspace(model, s, most=8):
    """The features that matter to a cluster in words, those first that set it apart from the average of the clusters."""
    case, chance = model.prototype_cases_[s], model.subspace_probabilities_[s]

    def apart(j):
        k = model.feature_values_[j].index(case[j])
        share = model.value_probabilities_[j][:, k]
        return share[s] - share.mean()

    known = [j for j in np.flatnonzero(model.subspaces_[s]) if case[j] is not None]
    chosen = sorted(known, key=apart, reverse=True)
    words = [f"{in_words(model.feature_names_in_[j], case[j])} [dim]{chance[j]:.2f}[/]" for j in chosen[:most]]
    more = f" … and {len(chosen) - most} more" if len(chosen) > most else ""
    return ", ".join(words) + more if chosen else "no feature for certain"


def in_words(name, value):
    """A feature and its value; a yes/no feature is named or denied."""
    if value is True:
        return f"[bold]{name}[/]"
    if value is False:
        return f"no {name}"
    return f"{name} [bold]{value}[/]"
