"""Templates that escape whatever is put into them."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
STATIC = HERE / "static"


def environment(templates: Path) -> Environment:
    """The templates of a folder, which may extend `page.html` of this room."""
    loader = FileSystemLoader([templates, HERE / "templates"])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
