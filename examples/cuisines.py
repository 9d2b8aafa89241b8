"""Recipes of twenty cuisines, by their ingredients alone: Kaggle's What's Cooking.

    python examples/cuisines.py FILE [FOLDER FOR PICTURES]

FILE is train.json as Kaggle has it, or one JSON object a line, perhaps gzipped.
"""

import gzip
import json
import sys
from pathlib import Path

from shared import show

from bayescase import BayesianCaseModel


def read(path: Path) -> list[dict]:
    text = (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8").read()
    return json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]


def main(path: Path, out: Path, n_clusters: int = 10, n_iter: int = 1000) -> None:
    recipes = read(path)
    table = {"ingredients": [recipe["ingredients"] for recipe in recipes]}
    model = BayesianCaseModel(n_clusters, encoder={"min_cases": 20}, n_iter=n_iter, n_chains=4, random_state=0)
    model.fit(table, case_names=[f"recipe {recipe['id']}" for recipe in recipes])
    show(model, "cuisines", out, [recipe["cuisine"] for recipe in recipes], "cuisine")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "."))
