"""`bayescase study`: thin, every verb calls one function of its file. Imports of what is optional come late."""

import click

from . import study_data, study_design, study_people


@click.group()
def study() -> None:
    """Find out with people whether explanations are understood: a study in the browser, of a model or of your own files."""


for command in (*study_design.COMMANDS, *study_people.COMMANDS, *study_data.COMMANDS):
    study.add_command(command)
