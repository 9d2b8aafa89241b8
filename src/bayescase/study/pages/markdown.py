"""Markdown of a researcher → HTML that can do nothing: no raw HTML, no links, no pictures from elsewhere."""

from functools import lru_cache

from markdown_it import MarkdownIt
from markupsafe import Markup


@lru_cache(4096)
def markdown(text: str) -> Markup:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
    made.disable(["link", "image", "autolink", "html_inline", "html_block", "reference"])
    return Markup(made.render(text))
