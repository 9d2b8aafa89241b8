"""`bayescase study`: making a study, before there are data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..study.design.design import Design

WHOLE = click.IntRange(1)
FOLDER = click.Path(path_type=Path)
OF_MODELS = ("arms", "lda", "overlap", "tries", "coders", "items_per_block", "options", "image_shape")
SEED = click.IntRange(0, 2**31 - 1)


@click.command()
@click.argument("model", required=False)
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=FOLDER, default="study", show_default=True, help="Folder of the study."
)
@click.option("--replace", is_flag=True, help="Make the design of the folder anew; what was edited in it is lost.")
@click.option("--items", type=click.Path(path_type=Path), metavar="FILE", help="Your own items: a CSV file with id and answer.")
@click.option(
    "--explanations",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Your own explanations: a folder per condition, a file per group or item.",
)
@click.option(
    "--task",
    type=click.Choice(["classify", "predict", "rate"]),
    help="Of your own items: which group is it, what will the model say, how good is the explanation. Default: classify.",
)
@click.option("--title", help="Heading of the pages.")
@click.option("--noun", help="What a case is called in the texts, such as recipe.")
@click.option("--language", default="en", show_default=True, help="Of the pages: en, de.")
@click.option(
    "--layout",
    default="within",
    show_default=True,
    help="within: everybody meets every condition; between: one condition per person.",
)
@click.option("--paper-mode", is_flag=True, help="As in the paper: item sets do not change conditions from person to person.")
@click.option("--order", default="random", show_default=True, help="Of words on every card: random, alphabetical, given.")
@click.option("--confidence", is_flag=True, help="Ask with every question how sure people are.")
@click.option("--contact", metavar="TEXT", help="Who answers questions of participants.")
@click.option("--reviewed-by", metavar="TEXT", help="Ethics committee, and the number of its decision.")
@click.option(
    "--platform", default="prolific", show_default=True, help="Who recruits: prolific, mturk, sona, cloudresearch, none."
)
@click.option("--admission", default="id", show_default=True, help="Who may take part: id, invited, open.")
@click.option("--quota", type=WHOLE, help="Complete people, after which nobody else is admitted.")
@click.option("--sample-size", type=WHOLE, help="Complete people that are planned for.")
@click.option("--hypothesis", "hypotheses", multiple=True, metavar="TEXT", help="What is expected; several may be given.")
@click.option("--stopping", metavar="TEXT", help="When the collection of data ends.")
@click.option("--keep-days", type=WHOLE, help="After so many days hashes of ids are to be deleted.")
@click.option("--practice", type=click.IntRange(0), help="Items to begin with that do not count. Default: 1 (own items: 0).")
@click.option("--break-every", default=4, show_default=True, help="Questions between two breaks.")
@click.option("--break-seconds", default=5, show_default=True, help="Length of a break.")
@click.option("--resume", default="resume", show_default=True, help="Or: resume within, restart block, refuse.")
@click.option("--seed", default=0, type=SEED, show_default=True, help="Decides all that is random.")
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
@click.option("--items-per-block", default=8, show_default=True, help="Of a model: questions in each condition.")
@click.option("--options", default=5, show_default=True, help="Clusters to choose from in each question, 4 to 6.")
@click.option(
    "--image", "image_shape", nargs=2, type=int, metavar="HEIGHT WIDTH", help="The features are the pixels of an image."
)
def new(
    model: str | None,
    folder: Path,
    replace: bool,
    items: Path | None,
    explanations: Path | None,
    task: str | None,
    **wishes: Any,
) -> None:
    """Make a study of MODEL, a file of `bayescase fit -o`, or of your own items and explanations.

    The folder then holds design.json: what is shown, asked and said, for you to read and edit. `study freeze` ends that.
    """
    from ..study.design.design import DesignError
    from ..study.design.design_file import DESIGN, FROZEN, unfinished, write_design

    if (folder / FROZEN).exists():
        raise DesignError(f"The design in {folder} is frozen; make a new study in another folder.")
    if (folder / DESIGN).exists() and not replace:
        raise DesignError(
            f"{folder} has a design already; choose another folder, or lose what was edited in it with --replace."
        )
    if folder.exists() and not folder.is_dir():
        raise DesignError(f"-o: {folder} is a file; give a folder.")
    if model is not None and items is None and explanations is None:
        design = of_model(model, task, wishes)
    elif model is None and items is not None and explanations is not None:
        design = of_own(folder, items, explanations, task, wishes)
    else:
        raise DesignError("Give either a MODEL, or both --items and --explanations.")
    write_design(design, folder)
    for name, words in design.made.items():
        click.echo(f"{name.replace('_', ' ')}: {words}")
    click.echo(f"The design is {folder / DESIGN}. Read it, edit it, then: bayescase study freeze {folder}", err=True)
    for where in unfinished(design):
        click.echo(f"Note: something is still to be filled in in {where}: look for [FILL IN.", err=True)


def of_model(path: str, task: str | None, wishes: dict[str, Any]) -> Design:
    from ..estimator import BayesianCaseModel
    from ..study.design.design import DesignError
    from ..study.design.making import make_design, traced

    if task not in (None, "classify"):
        raise DesignError(f"--task {task} is for your own items; of a model people are asked to classify.")
    lda, coders = wishes["lda"], wishes["coders"]
    design = make_design(
        BayesianCaseModel.load(path),
        say=lambda words: click.echo(words, err=True),
        **wishes
        | {
            "arms": tuple(arm.strip() for arm in wishes["arms"].split(",") if arm.strip()),
            "image_shape": wishes["image_shape"] or None,
            "practice": 1 if wishes["practice"] is None else wishes["practice"],
        },
    )
    return traced(design, {"model": path, "lda": None if lda == "auto" else lda, "coders": coders})


def of_own(folder: Path, items: Path, explanations: Path, task: str | None, wishes: dict[str, Any]) -> Design:
    from ..study.design.design import DesignError
    from ..study.design.making import traced
    from ..study.design.own import make_own_design

    context = click.get_current_context()
    for name in OF_MODELS:
        if context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            option = "--image" if name == "image_shape" else f"--{name.replace('_', '-')}"
            raise DesignError(f"{option} is about a MODEL; it says nothing of your own items.")
    kept = {name: value for name, value in wishes.items() if name not in OF_MODELS}
    kept |= {"practice": wishes["practice"] or 0, "task": task or "classify"}
    design = make_own_design(folder, items=items, explanations=explanations, **kept)
    return traced(design, {"items": items})


@click.command()
@click.argument("name", metavar="NAME")
@click.option("-o", "--output", "folder", metavar="DIR", type=FOLDER, required=True, help="Folder to make.")
def example(name: str, folder: Path) -> None:
    """Write items and explanations of an example: NAME is attributions or styles.

    They are what `study new --items --explanations` takes; docs/study-gallery.md goes on from here.
    """
    from ..study.examples import write_example

    write_example(name, folder)
    click.echo(f"{folder} has items.csv, items and explanations.", err=True)


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
def freeze(folder: Path) -> None:
    """End the editing of a design; data can be collected from now on.

    A frozen design that is changed is refused. Freezing twice changes nothing.
    """
    from ..study.design.design_file import freeze

    click.echo(f"Frozen: {freeze(folder)}")


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--people", default=24, type=click.IntRange(1, 100_000), show_default=True, help="Places to print.")
@click.option("-o", "--output", metavar="FILE", help="Write a row per question as CSV or TSV, or all of it as .json.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def schedule(folder: Path, people: int, output: str | None, as_json: bool) -> None:
    """Print who will see what.

    Each person takes a slot; a slot's cell, questions and their order follow from the frozen design and its seed alone.
    """
    import json

    from ..explaining.render.terminal import plain_table
    from ..storage import replacing
    from ..study.design.design_file import frozen_hash, read_design
    from ..study.design.schedule import as_plain, plan, question_rows
    from .output import as_text, check_output, say, say_json

    check_output(output)
    design = read_design(folder)
    plans = [plan(design, slot) for slot in range(people)]
    whole = {"design": design.hash, "frozen": frozen_hash(folder) is not None, "people": [as_plain(p) for p in plans]}
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


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("-o", "--output", metavar="FILE", help="Write the document there; by default it is printed.")
def preregister(folder: Path, output: str | None) -> None:
    """Write down what was decided before there are data: a document to register, with the hash of the design.

    Hypotheses, sample size, stopping rule and more are in `plan` of design.json.
    """
    from ..storage import replacing
    from ..study.design.design_file import frozen_hash, read_design
    from ..study.preregister import document
    from .output import check_output

    check_output(output)
    text = document(read_design(folder), frozen_hash(folder) is not None)
    if output is None:
        click.echo(text, nl=False)
        return
    with replacing(output) as file:
        file.write(text.encode())
    click.echo(f"The document is {output}.", err=True)


def numbers(kind: Callable[[str], Any], least: float | None = None) -> Callable[..., tuple[Any, ...]]:
    """A list such as 12,24,48."""

    def read(context: click.Context, option: click.Parameter, text: str) -> tuple[Any, ...]:
        try:
            found = tuple(kind(part) for part in str(text).split(",") if part.strip())
        except ValueError:
            raise click.BadParameter(f"{text!r} is not a list of numbers, such as 12,24,48.") from None
        if not found or (least is not None and min(found) < least):
            raise click.BadParameter(f"{text!r} needs numbers, each {least:g} or more.")
        return found

    return read


@click.command()
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--people", default="12,24,48,96", show_default=True, callback=numbers(int, 2), help="Numbers of people.")
@click.option(
    "--effects",
    callback=lambda c, o, v: None if v is None else numbers(float)(c, o, v),
    help="Of the first condition: in shares of right answers or of a scale, or ratios of times. Default: 0,0.05,0.1,0.2.",
)
@click.option(
    "--slopes",
    default="0,0.5",
    show_default=True,
    callback=numbers(float, 0.0),
    help="SD of the effect over explanations, in log-odds.",
)
@click.option("--base", type=float, help="Of the other conditions: share of right answers, seconds, or place on the scale.")
@click.option("--person-sd", default=0.8, type=click.FloatRange(0), show_default=True, help="SD between people, in log-odds.")
@click.option("--case-sd", default=0.8, type=click.FloatRange(0), show_default=True, help="SD between cases, in log-odds.")
@click.option("--studies", default=200, type=WHOLE, show_default=True, help="Simulated studies per combination.")
@click.option("--seed", default=0, type=SEED, show_default=True, help="Of the simulation.")
@click.option(
    "-o", "--output", metavar="DIR", type=FOLDER, help="Keep power.json and power.png there; a run that was stopped goes on."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def power(
    folder: Path,
    people: tuple[int, ...],
    effects: tuple[float, ...] | None,
    slopes: tuple[float, ...],
    base: float | None,
    studies: int,
    output: Path | None,
    as_json: bool,
    **truth: Any,
) -> None:
    """How many people does the study in DIR take? Simulated with its own schedule and its own analysis.

    Power is the share of studies that find an effect: for these explanations, and for explanations of their kind. How much
    effects differ from one explanation to the next (--slopes) decides most of it, and is seldom known: try several.
    """
    import sys

    from ..explaining.render.terminal import plain_table
    from ..study import power as powers
    from ..study.design.design_file import read_design
    from ..study.planted import Truth
    from .output import say, say_json

    design, how = read_design(folder), {"base": base} | truth
    usual = (1.0, 1.1, 1.2, 1.5) if design.plan.primary == "time" else (0.0, 0.05, 0.1, 0.2)
    known = [] if output is None else powers.read_cells(design, output, how)
    made = list(known)

    def done(cell: powers.PowerCell) -> None:
        made.append(cell)
        if output is not None:
            powers.write_cells(design, made, output, how)
        bar.update(1)

    total = len(people) * len(effects or usual) * len(slopes)
    with click.progressbar(length=total, label="Combinations", file=sys.stderr) as bar:
        cells = powers.run_power(
            design, people, effects or usual, slopes, studies=studies, base=base, truth=Truth(**truth), done=done, known=known
        )
    if as_json:
        say_json(powers.as_plain(design, cells, how))
    else:
        rows = powers.cell_rows(cells)
        text = "\n".join("\t".join(row) for row in (powers.HEAD, *rows))
        say(text, lambda: plain_table(f"Power, {studies} studies each", powers.HEAD, rows))
        for size in powers.sample_sizes(cells, powers.no_effect(design)):
            reach = "these explanations" if size.reach == "these" else "explanations of this kind"
            click.echo(f"80 % power, {reach}, effect {size.effect:g}, SD {size.slopes:g}: {size.words}")
    if output is not None:
        powers.plot_power(cells).savefig(output / "power.png", dpi=140)
        click.echo(f"{output} has power.json and power.png.", err=True)


COMMANDS = (new, example, freeze, schedule, preregister, power)
