"""Twenty thousand recipes with their names, by 672 tags: Epicurious.

    python examples/menus.py FILE [FOLDER FOR PICTURES]

FILE is epi_r.csv of the Kaggle data set "Epicurious - Recipes with Rating and Nutrition", or its tags as a sparse matrix in a
.npz file with `indices`, `indptr`, `shape`, `title`, `tag_names` and `is_duplicate`.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from shared import show

from bayescase import BayesianCaseModel

NUMBERS = ["rating", "calories", "protein", "fat", "sodium"]
DIETS = {  # labels of diets and of magazines, which say how a recipe was filed rather than what it is
    "bon appétit", "gourmet", "house & garden", "peanut free", "soy free", "tree nut free", "wheat/gluten-free", "dairy free",
    "no sugar added", "sugar conscious", "kidney friendly", "low cal", "low fat", "low sodium", "low/no sugar",
    "low cholesterol", "high fiber", "kosher", "kosher for passover", "pescatarian", "vegetarian", "vegan", "paleo",
    "healthy", "raw",
}  # fmt: skip


def read(path: Path) -> tuple[csr_matrix, list[str], list[str]]:
    """(tags, names of recipes, names of tags), every recipe once."""
    if path.suffix == ".npz":
        file = np.load(path)
        tags = csr_matrix((np.ones(len(file["indices"]), int), file["indices"], file["indptr"]), shape=file["shape"])
        keep = np.flatnonzero(~file["is_duplicate"].astype(bool))
        return tags[keep], [str(title) for title in file["title"][keep]], [str(name) for name in file["tag_names"]]
    table = pd.read_csv(path).drop_duplicates()
    tags = table.drop(columns=["title", *NUMBERS])
    return csr_matrix(tags.to_numpy(int)), table["title"].str.strip().tolist(), list(tags.columns)


def main(path: Path, out: Path) -> None:
    tags, titles, names = read(path)
    kept = [k for k, name in enumerate(names) if name not in DIETS]
    tags, names = tags[:, kept], [names[k] for k in kept]
    some = np.flatnonzero(np.asarray(tags.sum(axis=1)).reshape(-1) > 0)
    tags, titles = tags[some], [titles[k] for k in some]
    model = BayesianCaseModel(12, encoder={"feature_names": names, "min_cases": 10}, n_iter=1000, n_chains=4, random_state=0)
    model.fit(tags, case_names=titles)
    show(model, "menus", out)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "."))
