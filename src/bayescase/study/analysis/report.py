"""The analysis for a terminal, for a pipe, and as files: one HTML page and results.json."""

import json
from pathlib import Path

from ... import __version__
from ...explaining.records import plain
from ...explaining.words import counted
from ...storage import replacing
from .report_page import page
from .report_tables import (
    ARM_HEAD,
    EFFECT_HEAD,
    TEST_HEAD,
    arm_rows,
    effect_rows,
    paper_rows,
    rating_rows,
    rating_test_rows,
    test_rows,
    title_of,
    without_holm,
)
from .results import Analysis
from .sentences import in_short, who_is_counted

PAGE_FILE, RESULTS_FILE = "analysis.html", "results.json"
FORMAT, VERSION = "bayescase study analysis", 1


def blocks(analysis: Analysis):
    """(title, head, rows) of every table."""
    groups = [("", analysis.everyone)]
    if analysis.attentive is not None:
        groups.append(("; without those who failed an attention check", analysis.attentive))
    for words, result in groups:
        if not result.answers:
            continue
        yield f"Answers{words}", ARM_HEAD, arm_rows(result)
        for pair in result.pairs:
            yield f"{title_of(pair)}: recommended{words}", EFFECT_HEAD, effect_rows(pair)
            yield f"{title_of(pair)}: tests within participants{words}", TEST_HEAD, test_rows(pair)
            yield f"{title_of(pair)}: as in the paper, which treats answers as independent{words}", TEST_HEAD, paper_rows(pair)
        if result.ratings:
            yield f"Ratings{words}", ("question", "condition", "people", "median"), rating_rows(result)
        if rating_test_rows(result):
            yield f"Ratings compared{words}", TEST_HEAD, rating_test_rows(result)


def sentences(analysis: Analysis) -> list[str]:
    found = [who_is_counted(analysis), *in_short(analysis.everyone, analysis.mode), *analysis.everyone.notes]
    if analysis.attentive is not None:
        n = analysis.flagged
        found.append(f"{counted(n, 'person')} failed an attention check; without them: ")
        found[-1] += " ".join(in_short(analysis.attentive, analysis.mode))
    return found


def for_terminal(analysis: Analysis):
    """Renderables for rich."""
    from rich.console import Group
    from rich.text import Text

    from ...explaining.render.terminal import plain_table

    return Group(
        *(Text(sentence) for sentence in sentences(analysis)),
        *(plain_table(title, *without_holm(head, rows)) for title, head, rows in blocks(analysis)),
    )


def for_pipe(analysis: Analysis) -> str:
    parts = ["\n".join(sentences(analysis))]
    for title, head, rows in blocks(analysis):
        head, rows = without_holm(head, rows)
        parts.append("\n".join([title, *("\t".join(str(cell) for cell in row) for row in (head, *rows))]))
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
