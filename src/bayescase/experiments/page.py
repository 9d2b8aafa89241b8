"""Results → one page: the paper on the left, ours with its spread on the right, and where they differ."""

from collections.abc import Iterable
from pathlib import Path

from ..storage import replacing
from .frame import Experiment, as_kept, read_results, seeds_in_words

HEAD = """# The paper's experiments anew, and other methods

Made by `bayescase reproduce` and `bayescase bench quality` from the results in `{folder}/`. The same version with the same
seeds gives the same numbers, but for seconds. Draws change from version to version, and results stay as they were made;
`{folder}/log.txt` says when each of them was. ± is the standard deviation over seeds, unless it says otherwise; differences
are taken before rounding.

- **S**: the number of clusters. **π**: the memberships of a case, its share in each cluster. **c**: how much a prototype
  counts; at c = 0 it counts for nothing, and the model is LDA with one multinomial per feature.
- **α**: how mixed cases are, the sum over all clusters, so that each has α / S, unless it says “in every entry”.
- **rows**, **collapsed**: the samplers. `collapsed` is the paper's, cell by cell; `rows` is the default here. A **sweep** is
  one pass over the data, the paper's iteration.
- **start**: where a chain begins. The paper's knows one half of the labels. *Seeded* groups the cases around some that lie
  far apart; *random* draws labels. Neither of these knows a label.
- **unsupervised accuracy**: how many cases have the label of the prototype of their cluster. **SVM on π**: a linear
  classifier on the memberships, tested on cases that it was not trained on. From our reading of the paper's start both
  have seen labels: a chain that never moved would still be right for about one half of the cases.
- **figure only**: plotted in the paper, without a number. **NMI**: agreement of two groupings, 1 if they are the same.
"""

# In place of results that the present version would not make, and may not be able to read
OTHER = """## {title}

The results in `{folder}/{name}/` were made with settings that are not those of today, and are not shown. They are kept; once
that folder is moved away, `bayescase reproduce {name}` with the same `--out` makes them anew.
"""


def write_page(experiments: Iterable[Experiment], out: Path) -> Path:
    """The page, with every experiment that has results: beside their folder, under its name. Figures go into the folder."""
    page = out.with_name(out.name + ".md")
    parts = [HEAD.format(folder=out.name)]
    for experiment in experiments:
        head, numbers = read_results(experiment, out)
        if not numbers:
            continue
        if head["settings"] not in (as_kept(experiment.full), as_kept(experiment.quick)):
            parts.append(OTHER.format(title=experiment.title, folder=out.name, name=experiment.name))
            continue
        parts.append(section(experiment, head, numbers))
        for k, (caption, figure) in enumerate(experiment.figures(numbers).items()):
            path = out / experiment.name / f"figure-{k + 1}.png"
            with replacing(path) as file:
                figure.savefig(file, format="png", dpi=130, bbox_inches="tight")
            parts.append(f"![{caption}]({path.relative_to(page.parent).as_posix()})\n\n{caption}.\n")
    with replacing(page) as file:
        file.write("\n".join(parts).encode())
    return page


def section(experiment, head, numbers):
    pace = "" if head["settings"] == as_kept(experiment.full) else " A quick run: smaller and shorter than said above."
    lines = [
        f"## {experiment.title}\n",
        f"{experiment.paper}\n",
        f"Here: {head['source']}, {seeds_in_words(len(numbers))}.{pace}\n",
    ]
    if experiment.rows:
        lines += ["| what | the paper | here | remark |", "|---|---|---|---|"]
        lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in experiment.rows(numbers)]
    if experiment.tables:
        lines.append(experiment.tables(numbers))
    return "\n".join(lines) + "\n"
