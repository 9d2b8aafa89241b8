"""`bayescase study`: while people take part, and rehearsals before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Pair = Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, float]]

FOLDER = click.Path(path_type=Path)
LONG = float("inf")
folder_argument = click.argument("folder", metavar="DIR", type=FOLDER)
database_option = click.option(
    "--database", metavar="URL", help="PostgreSQL, such as postgresql+psycopg://user@host/name; by default SQLite in DIR."
)
phase_option = click.option(
    "--phase", type=click.Choice(["live", "pilot"]), default="live", show_default=True, help="Of the study."
)


def need_server() -> None:
    """What the server is made of, or one sentence."""
    from importlib import import_module

    for name in (
        "alembic",
        "argon2",
        "httpx",
        "jinja2",
        "markdown_it",
        "python_multipart",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    ):
        try:
            import_module(name)
        except ImportError as error:
            raise ImportError(f"Studies need {name}; install what they need with: pip install 'bayescase[study]'") from error


@click.command()
@folder_argument
@click.option("--live", is_flag=True, help="Count people as live; without it, as pilot.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), show_default=True, help="Port to listen at.")
@click.option("--path", default="", help="Serve below a path, such as /taste, of a proxy that serves other things, too.")
@database_option
@click.option("--workers", default=1, type=click.IntRange(1, 64), show_default=True, help="Processes; several need --database.")
@click.option("--admin-password", "ask", is_flag=True, help="Ask for a new password of the monitor at /admin.")
def serve(folder: Path, live: bool, host: str, port: int, path: str, database: str | None, workers: int, ask: bool) -> None:
    """Run the study of DIR in the browser, until Ctrl-C.

    A design that is not frozen is shown as a preview, of which nothing is kept. The password of the monitor can also be
    given in the environment, as BAYESCASE_ADMIN_PASSWORD; an address that other machines can reach needs one. Behind a
    proxy that speaks HTTPS, stay at 127.0.0.1.
    """
    import os
    from contextlib import nullcontext
    from functools import partial

    need_server()
    from ..study.data.journal import heads
    from ..study.design.design_file import frozen_hash, read_design
    from ..study.pages.server import create_app, preview
    from ..web.password import AdminPassword
    from ..web.serving import check_address, clean_path, listen, serve_in_processes
    from ..web.serving import serve as serve_until_interrupted

    path = clean_path(path)
    read_design(folder)
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
    if workers > 1 and (database is None or not frozen):
        raise ValueError("Several --workers need a frozen design and --database: SQLite is right for one process.")
    kind = "live" if live else "pilot (use --live when the study begins)" if frozen else "a preview, of which nothing is kept"
    with nullcontext(folder) if frozen else preview(folder) as place, listen(host, port) as taken:
        made = partial(create_app, place, database if frozen else None, phase="live" if live else "pilot", path=path)
        app = made()  # what is wrong is said before anybody comes
        address = f"{f'[{host}]' if ':' in host else host}:{taken.getsockname()[1]}{path}"
        click.echo(f"Listening at http://{address} – {kind}. Stop with Ctrl-C.", err=True)
        if workers > 1:
            app.store.close()
            serve_in_processes(made, taken, workers)
        else:
            serve_until_interrupted(app, taken)
    if not frozen:
        click.echo("Stopped.", err=True)
        return
    click.echo("Stopped; everything that was answered is kept. Keep the head of the journal elsewhere:", err=True)
    click.echo("\n".join(heads(folder)), err=True)


def shares(what: str, most: float) -> Pair:
    """Options such as --right bcm=.86, one per condition: above 0, and up to `most`."""

    def read(context: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
        found = {}
        for pair in pairs:
            name, _, value = pair.partition("=")
            try:
                found[name] = float(value)
            except ValueError:
                raise click.BadParameter(f"{pair!r} must be CONDITION={what}, such as bcm=0.8.") from None
            if not 0 < found[name] <= most:
                raise click.BadParameter(f"{pair!r}: {what} must be above 0{f' and at most {most:g}' if most < LONG else ''}.")
        return found

    return read


@click.command()
@folder_argument
@click.option("--n", default=24, type=click.IntRange(1), show_default=True, help="People.")
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Folder. Default: DIR/rehearsals/1, 2, …")
@click.option(
    "--right", multiple=True, metavar="C=P", callback=shares("SHARE", 1), help="Share of right answers in condition C."
)
@click.option(
    "--seconds", multiple=True, metavar="C=S", callback=shares("SECONDS", LONG), help="Median seconds in condition C."
)
@click.option("--rating", multiple=True, metavar="C=R", callback=shares("PLACE", 1), help="Mean rating in condition C, 0 to 1.")
@click.option("--person-sd", default=0.8, type=click.FloatRange(0), show_default=True, help="SD between people, in log-odds.")
@click.option("--case-sd", default=0.8, type=click.FloatRange(0), show_default=True, help="SD between cases, in log-odds.")
@click.option(
    "--slopes", default=0.5, type=click.FloatRange(0), show_default=True, help="SD of effects over explanations, in log-odds."
)
@click.option("--dropout", default=0.0, type=click.FloatRange(0, 1), show_default=True, help="Share that leaves midway.")
@click.option("--at-once", default=24, type=click.IntRange(1, 1000), show_default=True, help="People at the same time.")
@click.option("--seed", default=0, type=click.IntRange(0, 2**31 - 1), show_default=True, help="Decides what they answer.")
@click.option("--url", help="Of a server that runs already; they then wait like people, and are not marked as simulated.")
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def simulate(
    folder: Path,
    n: int,
    output: Path | None,
    at_once: int,
    url: str | None,
    database: str | None,
    as_json: bool,
    slopes: float,
    **truth: Any,
) -> None:
    """Rehearse the study of DIR with simulated people, through the real pages.

    Each rehearsal goes into a folder of its own, apart from the data and from other rehearsals. One rehearsal shows that all
    works; whether so many people are enough is asked by `study power`.
    """
    import sys
    from dataclasses import asdict

    need_server()
    from ..study import simulate as simulation
    from ..study.design.design import DesignError
    from ..study.design.design_file import read_design
    from ..study.planted import Truth
    from .output import say_json

    known = read_design(folder).labels
    for name in sorted({name for what in ("right", "seconds", "rating") for name in truth[what]} - set(known)):
        raise DesignError(f"The study has no condition {name!r}; it has {', '.join(known)}.")
    how: dict[str, Any] = {
        "truth": Truth(explanation_slope_sd=slopes, **truth),
        "at_once": at_once,
        "database": database,
    }
    with click.progressbar(length=n, label="People", file=sys.stderr) as bar:
        how["progress"] = lambda: bar.update(1)
        if url is not None:
            done = simulation.simulate(folder, n, url=url, **how)
        else:
            done = simulation.rehearse(folder, n, output=output, **how)
    if as_json:
        say_json(asdict(done))
    else:
        people = f"{done.people} people: {done.complete} complete, {done.dropped} left midway"
        click.echo(f"{people}; {done.answers} answers in {done.seconds:.1f} s.")
        if done.folder:
            click.echo(f"Analyse it with: bayescase study analyse {done.folder} --phase pilot --simulated", err=True)
    if done.errors:
        raise ValueError(f"{len(done.errors)} requests failed, the first one: {done.errors[0]}")


@click.command()
@folder_argument
@database_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def monitor(folder: Path, database: str | None, as_json: bool) -> None:
    """Print how many people are where in the study of DIR, by phase and cell. Nothing is changed."""
    from dataclasses import asdict

    need_server()
    from ..study.data.monitor import COLUMNS, look
    from .output import say_json

    phases = look(folder, database)
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
        click.echo(f"  {'cell':<{wide}}  " + "  ".join(COLUMNS))
        for name, *counts in (*phase.cells, ("all", *(phase.total(column) for column in range(1, len(COLUMNS) + 1)))):
            shown = "  ".join(f"{n:>{len(column)}}" for n, column in zip(counts, COLUMNS, strict=True))
            click.echo(f"  {name:<{wide}}  {shown}")
        if phase.places:
            click.echo("  not complete: " + ", ".join(f"{name} {n}" for name, n in phase.places))
        for id, n, failed in phase.checks:
            if n:
                click.echo(f"  check {id}: {failed} of {n} failed")


@click.command()
@folder_argument
@click.argument("new", metavar="open|paused|closed", type=click.Choice(["open", "paused", "closed"]))
@database_option
def state(folder: Path, new: str, database: str | None) -> None:
    """Open, pause or close the study of DIR, also while it is served.

    Paused: nobody new is admitted, those who are in it go on. Closed: no more answers; the monitor is no longer blind.
    """
    need_server()
    from ..study.data.store import open_store

    store = open_store(folder, database)
    store.set_state(new)
    store.close()
    click.echo(f"The study is {new}.")


@click.command()
@folder_argument
@click.option("--n", type=click.IntRange(1, 100_000), help="Make so many codes, each for one person, and print them.")
@click.option("--ids", type=click.Path(path_type=Path, exists=True), metavar="FILE", help="Put ids of a CSV file on the list.")
@click.option("--column", help="Of that file; needed if it has several.")
@database_option
def invite(folder: Path, n: int | None, ids: Path | None, column: str | None, database: str | None) -> None:
    """Say who may take part in the study of DIR, where rules.admission.who of its design is invited.

    Ids are kept as hashes. A code is given to a person in the address, such as https://example.org/?id=CODE.
    """
    need_server()
    from ..study.data.reconcile import read_ids
    from ..study.data.store import open_store

    if (n is None) == (ids is None):
        raise ValueError("Give either --n or --ids.")
    store = open_store(folder, database)
    try:
        if n is not None:
            click.echo("\n".join(store.invite_codes(n)))
        elif ids is not None:
            click.echo(f"{store.invite(read_ids(ids, column))} ids are new on the list.")
    finally:
        store.close()


@click.command()
@folder_argument
@click.option("--id", "external", required=True, help="Of the person at the recruiting platform.")
@phase_option
@database_option
def receipt(folder: Path, external: str, phase: str, database: str | None) -> None:
    """Give a person of the study in DIR a new code to go on or to erase with, if you have made sure who asks.

    The old code is void.
    """
    need_server()
    from ..study.data.database import need_data
    from ..study.data.store import open_store

    need_data(folder, database)
    store = open_store(folder, database, phase=phase)
    code = store.new_receipt(external)
    store.close()
    if code is None:
        raise ValueError(f"Nobody with the id {external} is in the {phase} phase.")
    click.echo(code)


@click.command()
@folder_argument
@click.option("--receipt", "code", required=True, help="The code that the person was given.")
@database_option
def erase(folder: Path, code: str, database: str | None) -> None:
    """Delete everything that one person gave, by their receipt, in database and journal."""
    need_server()
    from ..study.data.database import need_data
    from ..study.data.store import open_store

    need_data(folder, database)
    store = open_store(folder, database)
    try:
        person = store.find_by_receipt(code)
        if person is None:
            raise ValueError("This receipt is not known here; nothing was deleted.")
        store.withdraw(person)
    finally:
        store.close()
    click.echo(f"Everything that {person.public_id} gave is deleted. Exports that were made before still have it.")


@click.command()
@folder_argument
@click.option("--all", "everyone", is_flag=True, help="Also of people whose days are not over.")
@database_option
def forget(folder: Path, everyone: bool, database: str | None) -> None:
    """Delete receipts and hashes of ids where rules.keep_days of the design are over. Answers stay.

    From then on nobody can tell whose answers are whose, or delete them by a receipt.
    """
    need_server()
    from ..study.data.database import milliseconds, need_data
    from ..study.data.store import open_store

    need_data(folder, database)
    store = open_store(folder, database)
    n = store.forget(milliseconds() + 1 if everyone else None)
    store.close()
    click.echo(f"{n} people are not known any more.")


@click.command()
@folder_argument
@click.argument("ids", metavar="FILE", type=click.Path(path_type=Path, exists=True))
@click.option("--column", help="Of FILE, with the ids; needed if it has several.")
@phase_option
@click.option("-o", "--output", metavar="FILE", help="Write a CSV file; by default the table is printed.")
@database_option
def reconcile(folder: Path, ids: Path, column: str | None, phase: str, output: str | None, database: str | None) -> None:
    """Compare a platform's list of people, FILE, with the study of DIR: who is complete, and who should be paid.

    Ids of the list are hashed to find them; none is stored.
    """
    need_server()
    from ..storage import replacing
    from ..study.data.database import opened, reading
    from ..study.data.export_folder import as_csv
    from ..study.data.reconcile import Reconciled, read_ids
    from ..study.data.reconcile import reconcile as compare
    from ..study.design.design_file import read_design
    from ..web.keys import read_keys
    from .output import check_output

    check_output(output, str(ids))
    rules = read_design(folder).rules
    codes = {"complete": rules.complete.code, "timed out": rules.timed_out.code, "screened out": rules.screened_out.code}
    with opened(folder, database) as engine, reading(engine) as connection:
        found = compare(connection, read_keys(folder), codes, read_ids(ids, column), phase)
    if output is not None:
        with replacing(output) as file:
            file.write(as_csv([row._asdict() for row in found.rows], list(Reconciled._fields)))
    else:
        for row in found.rows:
            click.echo(f"{row.id}\t{row.status}\t{row.code}")
    click.echo(f"{found.unlisted} people of the study are not on the list; {found.without_id} came without an id.", err=True)


COMMANDS = (serve, simulate, monitor, state, invite, receipt, erase, forget, reconcile)
