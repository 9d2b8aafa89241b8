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
    from ..study.design.design import DesignError
    from ..study.design.design_file import DESIGN, FROZEN, unfinished, write_design
    from ..study.design.making import make_design, traced

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
    from ..study.design.design_file import freeze, read_design, unfinished

    click.echo(f"Frozen: {freeze(Path(folder))}")
    names = unfinished(read_design(Path(folder)))
    if names:
        click.echo(
            f"Note: [FILL IN is still in the texts {', '.join(names)}: the study can be rehearsed, but not served with --live.",
            err=True,
        )


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

    from ..explaining.render.terminal import plain_table
    from ..storage import replacing
    from ..study.design.design_file import frozen_hash, read_design
    from ..study.design.schedule import as_plain, plan, question_rows
    from .output import as_text, check_output, say, say_json

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


# --- people: serve, simulate, monitor -------------------------------------------------------------------------------------

database_option = click.option(
    "--database", metavar="URL", help="PostgreSQL, such as postgresql+psycopg://user@host/name; by default SQLite in DIR."
)


def need_server():
    """What the server is made of, or one sentence."""
    from importlib import import_module

    for name in ("alembic", "argon2", "httpx", "jinja2", "python_multipart", "sqlalchemy", "starlette", "uvicorn"):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(f"Studies need {name}; install what they need with: pip install 'bayescase[study]'") from error


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("--live", is_flag=True, help="Count people as live; without it, as pilot.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), show_default=True, help="Port to listen at.")
@database_option
@click.option("--admin-password", "ask", is_flag=True, help="Ask for a new password of the monitor at /admin.")
def serve(folder, live, host, port, database, ask):
    """Run the study of DIR in the browser, until Ctrl-C.

    A design that is not frozen is shown as a preview, of which nothing is kept. The password of the monitor can also be
    given in the environment, as BAYESCASE_ADMIN_PASSWORD; an address that other machines can reach needs one. Behind a
    proxy that speaks HTTPS, stay at 127.0.0.1.
    """
    import os
    from contextlib import nullcontext

    need_server()
    from ..study.design.design_file import DESIGN, frozen_hash, read_design, unfinished
    from ..study.pages.server import create_app, preview
    from ..web.password import AdminPassword
    from ..web.serving import check_address, listen
    from ..web.serving import serve as serve_until_interrupted

    folder = Path(folder)
    design = read_design(folder)
    admin = AdminPassword(folder)
    password = os.environ.get("BAYESCASE_ADMIN_PASSWORD")
    if ask:
        password = click.prompt("New password of the monitor", hide_input=True, confirmation_prompt=True, err=True)
    if password:
        admin.set(password)
    check_address(host, admin)
    frozen = frozen_hash(folder) is not None
    if live and not frozen:
        raise ValueError(f"The design in {folder} is not frozen; do that before people come: bayescase study freeze {folder}")
    if live and unfinished(design):
        names = ", ".join(unfinished(design))
        raise ValueError(
            f"Something is still to be filled in in the texts {names}; people would read it. Copy "
            f"{folder / DESIGN} to a new folder, fill it in and freeze it there."
        )
    pilot = "pilot (use --live when the study begins)" if frozen else "a preview, of which nothing is kept"
    with nullcontext(folder) if frozen else preview(folder) as place, listen(host, port) as taken:
        app = create_app(place, database if frozen else None, phase="live" if live else "pilot")
        address = f"{f'[{host}]' if ':' in host else host}:{taken.getsockname()[1]}"
        click.echo(f"Listening at http://{address} – {'live' if live else pilot}. Stop with Ctrl-C.", err=True)
        serve_until_interrupted(app, taken)
    click.echo("Stopped; everything that was answered is kept." if frozen else "Stopped.", err=True)


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("--n", default=24, type=click.IntRange(1), show_default=True, help="People.")
@click.option("--p-bcm", default=0.86, type=click.FloatRange(0, 1), show_default=True, help="Correct with prototypes.")
@click.option("--p-lda", default=0.71, type=click.FloatRange(0, 1), show_default=True, help="Correct with topics.")
@click.option("--p-subspace", default=0.86, type=click.FloatRange(0, 1), show_default=True, help="Correct with subspaces.")
@click.option("--person-sd", default=0.0, type=click.FloatRange(0), show_default=True, help="SD between people, in log-odds.")
@click.option("--item-sd", default=0.0, type=click.FloatRange(0), show_default=True, help="SD between items, in log-odds.")
@click.option("--dropout", default=0.0, type=click.FloatRange(0, 1), show_default=True, help="Share that leaves midway.")
@click.option("--at-once", default=24, type=click.IntRange(1, 1000), show_default=True, help="People at the same time.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31 - 1), show_default=True, help="Decides what they answer.")
@click.option("--url", help="Of a server that runs already; they then wait like people, and are not marked as simulated.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def simulate(folder, p_bcm, p_lda, p_subspace, person_sd, item_sd, dropout, seed, as_json, **how):
    """Let simulated people take part in the study of DIR, through the real pages.

    They are kept in its pilot phase, marked as simulated. The probabilities hold for a person and an item of no effect.
    """
    import sys
    from dataclasses import asdict

    need_server()
    from ..study import simulate as simulation
    from .output import say_json

    p = {"bcm": p_bcm, "lda": p_lda, "subspace": p_subspace}
    rates = simulation.Rates(p, person_sd=person_sd, item_sd=item_sd, dropout=dropout, seed=seed)
    with click.progressbar(length=how["n"], label="People", file=sys.stderr) as bar:
        done = simulation.simulate(Path(folder), rates=rates, **how, progress=lambda: bar.update(1))
    if as_json:
        say_json(asdict(done))
    else:
        people = f"{done.people} people: {done.complete} complete, {done.dropped} left midway"
        click.echo(f"{people}; {done.answers} answers in {done.seconds:.1f} s.")
    if done.errors:
        raise ValueError(f"{len(done.errors)} requests failed, the first one: {done.errors[0]}")


@study.command()
@click.argument("folder", metavar="DIR")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def monitor(folder, database, as_json):
    """Print how many people are where in the study of DIR, by phase and cell. Nothing is changed."""
    from dataclasses import asdict

    need_server()
    from ..study.data.monitor import look
    from .output import say_json

    phases = look(Path(folder), database)
    if as_json:
        say_json([asdict(phase) for phase in phases])
        return
    for phase in phases:
        minutes = "" if phase.minutes is None else f"; median of the complete: {phase.minutes:.1f} minutes"
        click.echo(
            f"{phase.phase}: {phase.answers} answers, {phase.withdrawn} withdrew, {phase.declined} did not consent{minutes}"
        )
        if phase.simulated:
            click.echo(f"  {phase.simulated} people are simulated")
        wide = max(len(str(row[0])) for row in phase.cells)
        click.echo(f"  {'cell':<{wide}}  complete  active  silent  timed out")
        for name, *counts in (*phase.cells, ("all", *(phase.total(column) for column in range(1, 5)))):
            click.echo(f"  {name:<{wide}}  {counts[0]:>8}  {counts[1]:>6}  {counts[2]:>6}  {counts[3]:>9}")
        if phase.places:
            click.echo("  not complete: " + ", ".join(f"{name} {n}" for name, n in phase.places))


# --- data: export, analyse, verify, doctor --------------------------------------------------------------------------------


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("-o", "--output", metavar="DIR", required=True, help="Folder to make; one that has something in it is refused.")
@click.option("--identified", is_flag=True, help="Add exact times and hashes of external ids. Do not publish such an export.")
@database_option
def export(folder, output, identified, database):
    """Write the data of the study in DIR as tables, with a codebook and a manifest.

    One row per answer (answers.csv), per person (people.csv), per event and per other form; everything as data.json; the
    design. Anonymised by default: days instead of times of day, no hashes of external ids.
    """
    need_server()
    from ..study.data import export_folder
    from ..study.data.database import opened
    from ..study.design.design_file import read_design

    design = read_design(Path(folder))
    export_folder.check_empty(Path(output))
    with opened(Path(folder), database) as engine:
        manifest = export_folder.export(engine, design, Path(output), identified)
    for name, of in manifest["files"].items():
        if "rows" in of:
            click.echo(f"{name}: {of['rows']} rows")
    click.echo(f"Everything is in {output}; codebook.md explains it.", err=True)


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("-o", "--output", metavar="DIR", help="Write analysis.html and results.json there.")
@click.option(
    "--phase", type=click.Choice(["live", "pilot", "all"]), default="live", show_default=True, help="Whose answers count."
)
@click.option("--simulated", is_flag=True, help="Count simulated people, too.")
@click.option(
    "--times",
    type=click.Choice(["server", "browser"]),
    default="server",
    show_default=True,
    help="Whose clock: the server's has every answer, the browser's leaves out the network.",
)
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def analyse(folder, output, phase, simulated, times, database, as_json):
    """Analyse DIR, a study or an export of one: as recommended, and as in the paper.

    People who are complete count; failed attention checks only flag, and results are given with and without them.
    """
    need_server()
    from ..study.analysis import report
    from ..study.analysis.analyse import analyse
    from ..study.data.database import opened, reading
    from ..study.data.export import collect
    from ..study.data.export_folder import MANIFEST, read_export
    from ..study.design.design_file import read_design
    from .output import say, say_json

    folder = Path(folder)
    if output is not None and Path(output).exists() and not Path(output).is_dir():
        raise ValueError(f"-o: {output} is a file; give the path of a folder.")
    if (folder / MANIFEST).exists():
        design, tables = read_export(folder)
    else:
        design = read_design(folder)
        with opened(folder, database) as engine, reading(engine) as connection:
            tables = collect(connection, design)
    found = analyse(design, tables.answers, tables.people, phase=phase, simulated=simulated, times=times)
    if as_json:
        say_json(report.as_results(found))
    else:
        say(report.for_pipe(found), lambda: report.for_terminal(found))
    if output is not None:
        page, results = report.write_analysis(found, Path(output))
        click.echo(f"The page is {page}, the numbers are {results}.", err=True)


@study.command()
@click.argument("folder", metavar="DIR")
@click.option("--export", metavar="DIR", help="Also compare an export with its manifest and with the database.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(context, folder, export, database, as_json):
    """Check the data of the study in DIR: database against journal, answers against the schedule and the design.

    One sentence per problem, and exit code 1 if there is any.
    """
    need_server()
    from ..study.data.verify import verify
    from .output import say_json

    found = verify(Path(folder), database, None if export is None else Path(export))
    if as_json:
        say_json(found)
    else:
        click.echo("\n".join(found) or "Database, journal and schedule agree.")
    context.exit(1 if found else 0)


@study.command()
@click.argument("folder", metavar="DIR")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(context, folder, database, as_json):
    """Say whether the study in DIR is ready to go live.

    Each line is ok, a warning or a problem, with what to do; exit code 1 if there is a problem.
    """
    need_server()
    from ..explaining.render.terminal import plain_table
    from ..study.doctor import PROBLEM, examine
    from .output import say, say_json

    lines = examine(Path(folder), database)
    if as_json:
        say_json([line._asdict() for line in lines])
    else:
        text = "\n".join(f"{line.level:<8} {line.what}: {line.words}" for line in lines)
        say(text, lambda: plain_table(f"Is {folder} ready?", ("", "What", ""), lines))
    context.exit(1 if any(line.level == PROBLEM for line in lines) else 0)
