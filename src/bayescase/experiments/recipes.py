"""Figure 4b: prototypes of recipes, with the ingredients that matter in boxes."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from ..datasets import Dataset, load_recipes
from ..estimator import BayesianCaseModel
from ..explanation import ModelExplanation
from ..plots import plot_prototypes
from .frame import Experiment, Row, local_file, spread

FILE = "bcm_recipes_56x147.csv"
PAPER = {
    "pasta": "Herbs and Tomato in Pasta",
    "chili": "Generic chili recipe",
    "brownie": "Microwave brownies",
    "punch": "Spiced-punch",
}


def source(settings: dict, data: Path | None) -> str:
    return "the paper's 56 recipes × 147 ingredients" if local_file(data, FILE) else "the bundled 80 recipes of five families"


def load(data):
    path = local_file(data, FILE)
    if path is None:
        return load_recipes()
    try:
        with open(path, encoding="utf-8", newline="") as file:
            head, *cases = csv.reader(file)
        names, families, *columns = zip(*cases, strict=True)
        table = {name: np.array(column, dtype=int) == 1 for name, column in zip(head[2:], columns, strict=True)}
    except ValueError as error:
        raise ValueError(
            f"--data: {path} is not the table of recipes with name, category and 0 or 1 per ingredient."
        ) from error
    return Dataset(table, np.array(names), np.array(families), "The recipes of the paper.")


def run(seed: int, settings: dict, data: Path | None) -> dict:
    recipes = load(data)
    families = np.unique(recipes.families)
    model = BayesianCaseModel(
        len(families), n_iter=settings["n_iter"], n_chains=settings["n_chains"], random_state=seed
    ).fit(recipes.table)  # fmt: skip
    explained = model.name_cases(recipes.names).explain()
    briefly = [
        replace(cluster, contrasts=(), criticisms=(), candidates=cluster.candidates[:1]) for cluster in explained.clusters
    ]
    return {
        "prototypes": recipes.names[model.prototypes_].tolist(),
        "families": recipes.families[model.prototypes_].tolist(),
        "all": families.tolist(),
        "nmi": float(normalized_mutual_info_score(recipes.families, model.labels_)),
        "converged": bool(model.diagnostics_.converged),
        "explanation": replace(explained, clusters=tuple(briefly)).to_json(),
    }


def each_once(result):
    return sorted(result["families"]) == sorted(result["all"])


def rows(results: list[dict]) -> list[Row]:
    families, n = results[0]["all"], len(results)
    good = sum(map(each_once, results))
    remark = "" if good == n else f"In {n - good} of {n}, clusters share a family: " + seen(results) + "."
    lines = [
        Row(
            f"seeds whose {len(families)} prototypes are of the {len(families)} families",
            "the run shown",
            f"{good} of {n}",
            remark,
        ),
        Row("agreement of clusters and families (NMI)", "not given", spread([r["nmi"] for r in results])),
        Row("runs whose chains agree", "not given", f"{sum(r['converged'] for r in results)} of {n}"),
    ]
    for family in families:
        chosen = [name for r in results for name, kind in zip(r["prototypes"], r["families"], strict=True) if kind == family]
        names, counts = np.unique(chosen, return_counts=True)
        best = [f"{names[k]} ({counts[k]})" for k in np.argsort(-counts, kind="stable")[:3]]
        lines.append(Row(f"prototypes: {family}", PAPER.get(family, ""), ", ".join(best) or "none"))
    return lines


def seen(results):
    """The families of the prototypes of the seeds that miss one."""
    return "; ".join(sorted({", ".join(sorted(r["families"])) for r in results if not each_once(r)}))


def figures(results: list[dict]) -> dict:
    k = next((k for k, result in enumerate(results) if each_once(result)), 0)
    explained = ModelExplanation.from_json(results[k]["explanation"])
    assert isinstance(explained, ModelExplanation)
    return {f"Figure 4b, seed {k}: prototypes, with what matters in a box": plot_prototypes(explained)}


RECIPES = Experiment(
    name="recipes",
    title="Recipes (figure 4b)",
    paper="Recipes of the Computer Cooking Contest by their ingredients; the paper shows one run, whose prototypes are of "
    "pasta, chili, brownie and punch. It does not say the settings; here they are those of its digits, α = .01, λ = 1, "
    "c = 50, q = .8.",
    files=(FILE,),
    full={"n_iter": 1000, "n_chains": 4},
    quick={"n_iter": 200, "n_chains": 4},
    source=source,
    run=run,
    rows=rows,
    figures=figures,
)
