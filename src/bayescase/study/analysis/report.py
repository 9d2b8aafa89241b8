"""The analysis for a terminal, for a pipe, and as files: one HTML page and results.json."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ... import __version__
from ...explaining.records import plain
from ...explaining.render.blocks import Table
from ...storage import replacing
from .report_page import page
from .report_tables import tables
from .results import Analysis
from .sentences import sentences

PAGE_FILE, RESULTS_FILE = "analysis.html", "results.json"
FORMAT, VERSION = "bayescase study analysis", 1


def all_tables(analysis: Analysis) -> Iterator[Table]:
    yield from tables(analysis, analysis.everyone)
    if analysis.attentive is not None:
        for table in tables(analysis, analysis.attentive):
            yield replace(table, caption=f"{table.caption}; without those who failed an attention check")


def for_terminal(analysis: Analysis):
    """Renderables for rich."""
    from rich.console import Group
    from rich.text import Text

    from ...explaining.render.terminal import plain_table

    return Group(
        *(Text(sentence) for sentence in sentences(analysis)),
        *(
            plain_table(table.caption, table.head, [tuple(map(str, row)) for row in table.rows])
            for table in all_tables(analysis)
        ),
    )


def for_pipe(analysis: Analysis) -> str:
    parts = ["\n".join(sentences(analysis))]
    for table in all_tables(analysis):
        parts.append("\n".join([table.caption, *("\t".join(str(cell) for cell in row) for row in (table.head, *table.rows))]))
    return "\n\n".join(parts)


def as_results(analysis: Analysis) -> dict:
    return {"format": FORMAT, "version": VERSION, "bayescase": __version__} | plain(analysis)


def write_analysis(analysis: Analysis, folder: Path) -> tuple[Path, Path]:
    """Write analysis.html and results.json; files that are there are replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give the path of a folder.")
    text, results = page(analysis), json.dumps(as_results(analysis), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in ((folder / PAGE_FILE, text), (folder / RESULTS_FILE, results)):
        with replacing(path) as file:
            file.write(content.encode())
    return folder / PAGE_FILE, folder / RESULTS_FILE
