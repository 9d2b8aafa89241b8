"""Results → one page: the paper on the left, ours with its spread on the right, and where they differ."""

from pathlib import Path

from ..storage import replacing
from .frame import Experiment, seeds_in_words

HEAD = """# The paper's tables and figures

Made by `bayescase reproduce` from the results in `{folder}/`; a second run with the same seeds gives the same numbers. ± is the
standard deviation over seeds.
"""


def write_page(
    experiments: list[Experiment], results: dict[str, list[dict]], out: Path, quick: bool, data: Path | None
) -> Path:
    """The page beside the folder of results, under the same name, and its figures within."""
    page = out.with_name(out.name + ".md")
    parts = [HEAD.format(folder=out.name)]
    for experiment in experiments:
        numbers = results[experiment.name]
        source = experiment.source(experiment.quick if quick else experiment.full, data)
        parts.append(section(experiment, numbers, source, quick))
        for k, (caption, figure) in enumerate(experiment.figures(numbers).items()):
            path = out / experiment.name / f"figure-{k + 1}.png"
            with replacing(path) as file:
                figure.savefig(file, format="png", dpi=130, bbox_inches="tight")
            parts.append(f"![{caption}]({path.relative_to(page.parent).as_posix()})\n\n{caption}.\n")
    with replacing(page) as file:
        file.write("\n".join(parts).encode())
    return page


def section(experiment, numbers, source, quick):
    pace = " A quick run: fewer sweeps than the paper's." if quick else ""
    lines = [
        f"## {experiment.title}\n",
        f"{experiment.paper}\n",
        f"Here: {source}, {seeds_in_words(len(numbers))}.{pace}\n",
        "| | the paper | here | |",
        "|---|---|---|---|",
        *("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in experiment.rows(numbers)),
    ]
    return "\n".join(lines) + "\n"
