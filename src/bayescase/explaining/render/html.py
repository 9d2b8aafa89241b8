"""Pages and cards as HTML, from Jinja2 templates that escape whatever is put into them."""

from __future__ import annotations

from functools import cache
from itertools import count
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..explanation import ModelExplanation
from ..words import clean, counted, cut, percent
from .blocks import Page

MANY_CARDS = 12
NOTEBOOK_LINES = 5  # distinctions of a card in a notebook
NOTEBOOK = count()  # several models on one page must not share an id


@cache
def environment() -> Environment:
    """The templates of this room."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clean": clean, "cut": cut, "percent": percent}
    return found


def render_page(page: Page) -> str:
    """A page as one HTML document.

    Parameters
    ----------
    page : Page

    Returns
    -------
    str
    """
    return environment().get_template("page.html").render(page=page)


def notebook(explanation: ModelExplanation, more: str = "") -> str:
    """A small card per cluster, for notebooks.

    Parameters
    ----------
    explanation : ModelExplanation
    more : str, default=""
        Ready HTML that is shown below, folded away.

    Returns
    -------
    str
        HTML.
    """
    shown = explanation.clusters[:MANY_CARDS]
    left = len(explanation.clusters) - len(shown)
    return (
        environment()
        .get_template("notebook.html")
        .render(
            summary=explanation.summary,
            verdict=explanation.verdict,
            cards=[(f"bayescase-{next(NOTEBOOK)}", cluster.card(NOTEBOOK_LINES)) for cluster in shown],
            left=f"{counted(left, 'smaller cluster')} not shown." if left else "",
            more=Markup(more),
        )
    )
