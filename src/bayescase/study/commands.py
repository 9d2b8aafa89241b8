"""`bayescase study`: thin, every verb calls one function of its file. Imports of what is optional come late."""

import click


@click.group()
def study():
    """Find out with people whether the explanations are understood: a study in the browser, from a fitted model."""
