"""`bayescase study`: thin, every verb calls one function of its file. Imports of what is optional come late."""

from collections import Counter
from pathlib import Path

import click


@click.group()
def study():
    """Find out with people whether the explanations are understood: a study in the browser, from a fitted model."""


@study.command()
@click.argument("model")
@click.option("-o", "--output", "folder", metavar="DIR", default="study", show_default=True, help="Folder of the study.")
@click.option("--replace", is_flag=True, help="Make the design of the folder anew; what was edited in it is lost.")
@click.option("--title", default="Which group?", show_default=True, help="Heading of the pages.")
@click.option("--noun", help="What a case is called in the texts, such as recipe.")
@click.option(
    "--arms",
    metavar="LIST",
    default="bcm,lda",
    show_default=True,
    help="Two or three of bcm (prototypes), lda (top words of topics), subspace (prototypes with what matters marked).",
)
@click.option(
    "--lda",
    metavar="auto|FILE",
    default="auto",
    show_default=True,
    help="Fit LDA until the clusters are visible, or read topics: CSV (topic, word, weight) or JSON {topic: {word: weight}}.",
)
@click.option("--overlap", default=0.5, show_default=True, help="The least overlap of a cluster with its topic.")
@click.option("--tries", default=50, show_default=True, help="Seeds of LDA to try.")
@click.option("--coders", metavar="FILE", help="A table with case and the labels of two coders, to check the items with.")
@click.option("--items-per-block", default=8, show_default=True, help="Questions in each condition.")
@click.option("--options", default=5, show_default=True, help="Clusters to choose from in each question, 4 to 6.")
@click.option("--practice", default=1, show_default=True, help="Items to begin with that do not count.")
@click.option(
    "--image", "image_shape", nargs=2, type=int, metavar="HEIGHT WIDTH", help="The features are the pixels of an image."
)
@click.option("--paper-mode", is_flag=True, help="As in the paper: item sets do not change conditions from person to person.")
@click.option("--break-every", default=4, show_default=True, help="Questions between two breaks.")
@click.option("--break-seconds", default=5, show_default=True, help="Length of a break.")
@click.option("--resume", default="resume", show_default=True, help="Or: resume within, restart block, refuse.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31 - 1), show_default=True, help="Decides all that is random.")
def new(model, folder, replace, arms, image_shape, **wishes):
    """Make a study of MODEL, a file of `bayescase fit -o`.

    The folder then holds design.json: what is shown, asked and said, for you to read and edit. `study freeze` ends that.
    """
    from ..estimator import BayesianCaseModel
    from .design import DESIGN, FROZEN, DesignError, unfinished, write_design
    from .making import make_design, traced

    folder = Path(folder)
    if (folder / FROZEN).exists():
        raise DesignError(f"The design in {folder} is frozen; make a new study in another folder.")
    if (folder / DESIGN).exists() and not replace:
        raise DesignError(
            f"{folder} has a design already; choose another folder, or lose what was edited in it with --replace."
        )
    if folder.exists() and not folder.is_dir():
        raise DesignError(f"-o: {folder} is a file; give a folder.")
    design = make_design(
        BayesianCaseModel.load(model),
        arms=tuple(arm.strip() for arm in arms.split(",") if arm.strip()),
        image_shape=image_shape or None,
        say=lambda words: click.echo(words, err=True),
        **wishes,
    )
    files = {"model": model, "lda": wishes["lda"] if wishes["lda"] != "auto" else None, "coders": wishes["coders"]}
    design = traced(design, files)
    write_design(design, folder)
    for name, words in design.made.items():
        click.echo(f"{name.replace('_', ' ')}: {words}")
    click.echo(f"The design is {folder / DESIGN}. Read it, edit it, then: bayescase study freeze {folder}", err=True)
    tell_unfinished(unfinished(design))


def tell_unfinished(names):
    if names:
        click.echo(f"Note: something is still to be filled in in the texts {', '.join(names)}: look for [FILL IN.", err=True)


@study.command()
@click.argument("folder", metavar="DIR")
def freeze(folder):
    """End the editing of a design; data can be collected from now on.

    A frozen design that is changed is refused. Freezing twice changes nothing.
    """
    from .design import freeze, read_design, unfinished

    click.echo(f"Frozen: {freeze(Path(folder))}")
    tell_unfinished(unfinished(read_design(Path(folder))))


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("--people", default=24, type=click.IntRange(1, 100_000), show_default=True, help="Places to print.")
@click.option("-o", "--output", metavar="FILE", help="Write a row per question as CSV or TSV, or all of it as .json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def schedule(folder, people, output, as_json):
    """Print who will see what.

    Each person takes a slot; a slot's cell, questions and their order follow from the frozen design and its seed alone.
    """
    import json

    from ..cli import as_text, check_output, say, say_json
    from ..storage import replacing
    from ..terminal import plain_table
    from .design import frozen_hash, read_design
    from .schedule import as_plain, plan, question_rows

    check_output(output)
    design = read_design(Path(folder))
    plans = [plan(design, slot) for slot in range(people)]
    whole = {"design": design.hash, "frozen": frozen_hash(Path(folder)) is not None, "people": [as_plain(p) for p in plans]}
    if output is not None:
        text = json.dumps(whole, indent=2) if output.lower().endswith(".json") else as_text(*question_rows(plans), output)
        with replacing(output) as file:
            file.write(text.encode())
        click.echo(f"The schedule of {people} people is in {output}.", err=True)
    if as_json:
        say_json(whole)
    elif output is None:
        columns = ("Slot", "Cell", "Questions")
        rows = [(str(p.slot), str(p.cell), " ".join(trial.item for trial in p.trials)) for p in plans]
        wide = [max(len(row[k]) for row in (columns, *rows)) for k in range(2)]
        lines = (f"{slot:>{wide[0]}}  {cell:<{wide[1]}}  {items}" for slot, cell, items in (columns, *rows))
        say("\n".join(lines), lambda: plain_table("Schedule", columns, rows))
        for cell, n in sorted(Counter(str(p.cell) for p in plans).items()):
            click.echo(f"{cell}: {n}")
    if not whole["frozen"]:
        click.echo(
            f"Note: the design is not frozen; every edit changes the schedule (bayescase study freeze {folder}).", err=True
        )
