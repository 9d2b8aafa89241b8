"""Inputs of complete studies, as somebody would make them elsewhere: items and explanations in files, of a model of recipes.

The model is scikit-learn's logistic regression of a recipe's family on its ingredients. For a linear model the Shapley value of
an ingredient is its weight times how far the recipe is from the mean, so the attributions are exact.
"""

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression

from ..datasets import load_recipes
from .design.design import DesignError

EXAMPLES = {
    "attributions": "forward simulation: attributions against prototypes, within people",
    "styles": "trust: rules, examples and weights, between people",
}
ITEMS, PRACTICE, TOP = {"attributions": 16, "styles": 12}, {"attributions": 1, "styles": 0}, 6


class Explained(NamedTuple):
    """A recipe that people are asked about, and what the model makes of it."""

    id: str
    has: list[str]  # ingredients
    answer: str  # of the model
    weights: list[tuple[str, float]]  # ingredient, Shapley value for the answer; the weightiest first
    like: list[str]  # ingredients of the recipe that the model knows, says the same of, and that is most alike


def explained_recipes(n: int) -> list[Explained]:
    """Recipes that the model has not seen, evenly over its answers."""
    recipes = load_recipes()
    used = [set(has) for has in recipes.table["ingredients"]]
    words = np.array(sorted(set().union(*used)))
    x = np.array([[word in has for word in words] for has in used], dtype=float)
    order = np.random.default_rng(7).permutation(len(x))
    known, new = order[: len(x) // 2], order[len(x) // 2 :]
    model = LogisticRegression(C=3.0, max_iter=2000).fit(x[known], recipes.families[known])
    says, says_known = model.predict(x[new]), model.predict(x[known])
    mean = x[known].mean(axis=0)
    queues = {answer: [int(i) for i in new[says == answer]] for answer in model.classes_}
    chosen: list[int] = []
    while len(chosen) < n and any(queues.values()):
        chosen += [queue.pop(0) for queue in queues.values() if queue][: n - len(chosen)]
    found = []
    for number, i in enumerate(chosen, 1):
        answer = says[list(new).index(i)]
        values = model.coef_[list(model.classes_).index(answer)] * (x[i] - mean)
        has = np.flatnonzero(x[i])
        weights = [(str(words[j]), round(float(values[j]), 3)) for j in has[np.argsort(-np.abs(values[has]))][:TOP]]
        same = known[says_known == answer]
        nearest = same[np.argmax([(x[i] * x[k]).sum() / np.maximum(x[i], x[k]).sum() for k in same])]
        like = [str(words[j]) for j in np.flatnonzero(x[nearest])]
        found.append(Explained(f"r{number:02}", [str(words[j]) for j in has], str(answer), weights, like))
    return found


def write_example(name: str, folder: Path) -> None:
    """items.csv, items/ and explanations/ of an example, in a new folder."""
    if name not in EXAMPLES:
        raise DesignError(f"There are the examples {', '.join(EXAMPLES)}, not {name!r}.")
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DesignError(f"{folder} is there and not empty; give a new folder.")
    recipes = explained_recipes(ITEMS[name] + PRACTICE[name])
    (folder / "items").mkdir(parents=True)
    rows = [(one.id, one.answer) for one in recipes]
    write_table(folder / "items.csv", ("id", "answer"), rows)
    for one in recipes:
        write_table(folder / "items" / f"{one.id}.csv", ("feature",), [(word,) for word in one.has])
        for condition, (about, file, content) in explanations(name, one).items():
            place = folder / "explanations" / condition
            place.mkdir(parents=True, exist_ok=True)
            (place / "about.txt").write_text(about + "\n", "utf-8")
            if isinstance(content, str):
                (place / f"{one.id}{file}").write_text(content + "\n", "utf-8")
            else:
                write_table(place / f"{one.id}{file}", *content)


def explanations(name: str, one: Explained) -> dict[str, tuple]:
    """condition → (label: how it explains, ending of the file, its content)"""
    bars = (".csv", (("feature", "weight"), one.weights))
    example = (".csv", (("feature",), [(word,) for word in one.like]))
    if name == "attributions":
        return {
            "attributions": ("Attributions: by how much each ingredient speaks for the answer", *bars),
            "prototypes": ("Prototypes: by the recipe most like it of which the model says the same", *example),
        }
    speaking = [word for word, value in one.weights if value > 0][:3] or [one.weights[0][0]]
    rule = f"The model looks for **{'**, **'.join(speaking)}**. This recipe has them."
    return {
        "examples": ("Examples: by a recipe of which the model says the same", *example),
        "rules": ("Rules: by what the model looks for", ".md", rule),
        "weights": ("Weights: by how much each ingredient speaks for the answer", *bars),
    }


def write_table(path: Path, head: tuple[str, ...], rows: list) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
