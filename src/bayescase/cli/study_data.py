"""`bayescase study`: when there are data."""

from pathlib import Path

import click

from .study_people import FOLDER, database_option, folder_argument, need_server


@click.command()
@folder_argument
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=FOLDER,
    required=True,
    help="Folder to make; one that has something in it is refused.",
)
@click.option("--identified", is_flag=True, help="Add exact times and hashes of external ids. Do not publish such an export.")
@database_option
def export(folder: Path, output: Path, identified: bool, database: str | None) -> None:
    """Write the data of the study in DIR as tables, with a codebook, a manifest and a script for R.

    One row per answer (answers.csv), per person (people.csv), per event and per other form; everything as data.json; the
    design. Anonymised by default: days instead of times of day, no hashes of external ids.
    """
    need_server()
    from ..study.analysis.r_script import r_script
    from ..study.data import export_folder
    from ..study.data.database import opened
    from ..study.design.design_file import read_design

    design = read_design(folder)
    export_folder.check_empty(output)
    with opened(folder, database) as engine:
        manifest = export_folder.export(engine, design, output, identified, more={"analysis.R": r_script(design)})
    for name, of in manifest["files"].items():
        if "rows" in of:
            click.echo(f"{name}: {of['rows']} rows")
    click.echo(f"Everything is in {output}; codebook.md explains it.", err=True)


@click.command()
@folder_argument
@click.option("-o", "--output", metavar="DIR", type=FOLDER, help="Write analysis.html and results.json there.")
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
def analyse(
    folder: Path, output: Path | None, phase: str, simulated: bool, times: str, database: str | None, as_json: bool
) -> None:
    """Analyse DIR, a study, a rehearsal or an export of one: as recommended, and as in the paper.

    People who are complete count; failed attention checks only flag, unless the plan of the design leaves such people out.
    """
    need_server()
    from ..study.analysis import report
    from ..study.analysis.analyse import analyse
    from ..study.data.database import opened, reading
    from ..study.data.export import collect
    from ..study.data.export_folder import MANIFEST, read_export
    from ..study.design.design_file import read_design
    from .output import say, say_json

    if output is not None and output.exists() and not output.is_dir():
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
        page, results = report.write_analysis(found, output)
        click.echo(f"The page is {page}, the numbers are {results}.", err=True)


@click.command()
@folder_argument
@click.option(
    "--export",
    metavar="DIR",
    type=FOLDER,
    help="Also compare an export with its manifest and with the database.",
)
@click.option("--head", "heads", multiple=True, metavar="HEAD", help="A head of the journal that was kept elsewhere.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(
    context: click.Context, folder: Path, export: Path | None, heads: tuple[str, ...], database: str | None, as_json: bool
) -> None:
    """Check the data of the study in DIR: database against journal, answers against the schedule and the design.

    One sentence per problem, and exit code 1 if there is any. Whoever can write to the folder can change all copies; only a
    head that was kept elsewhere (`study head`) shows that.
    """
    need_server()
    from ..study.data.verify import verify
    from .output import say_json

    found = verify(folder, database, export, heads)
    if as_json:
        say_json(found)
    else:
        click.echo("\n".join(found) or "Database, journal and schedule agree.")
    context.exit(1 if found else 0)


@click.command()
@folder_argument
def head(folder: Path) -> None:
    """Print the head of the journal of DIR, to be kept elsewhere: `study verify --head` then notices if it was rewritten."""
    from ..study.data.journal import heads

    found = heads(folder)
    if not found:
        raise ValueError(f"{folder} has no journal yet.")
    click.echo("\n".join(found))


@click.command()
@folder_argument
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def doctor(context: click.Context, folder: Path, database: str | None, as_json: bool) -> None:
    """Say whether the study in DIR is ready to go live.

    Each line is ok, a warning or a problem, with what to do; exit code 1 if there is a problem.
    """
    need_server()
    from ..explaining.render.terminal import plain_table
    from ..study.doctor import PROBLEM, examine
    from .output import say, say_json

    lines = examine(folder, database)
    if as_json:
        say_json([line._asdict() for line in lines])
    else:
        text = "\n".join(f"{line.level:<8} {line.what}: {line.words}" for line in lines)
        say(text, lambda: plain_table(f"Is {folder} ready?", ("", "What", ""), lines))
    context.exit(1 if any(line.level == PROBLEM for line in lines) else 0)


COMMANDS = (export, analyse, verify, head, doctor)
