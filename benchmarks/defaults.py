"""Evidence for the default hyperparameters: `python benchmarks/defaults.py --data DIR --out defaults.json`.

Held-out log probability per case, by three-fold cross-validation, for each setting on each set; no label is looked at to
choose. Agreement with the labels (NMI of the clusters of all cases) is shown beside it. Results are added to the file as they
come, and a run that finds the file goes on where it stopped. DIR has the UCI sets as uci_zoo.csv and so on, class first.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import MultiLabelBinarizer

from bayescase import BayesianCaseModel, load_recipes, model
from bayescase.state import make_data, make_hyper

MOST = 400  # cases of a set
PAPER = {"alpha": 0.01, "lam": 1.0, "c": 50.0, "q": 0.8}
SETTINGS = {
    "paper": {},
    "alpha=0": {"alpha": 0},
    "alpha=0.1": {"alpha": 0.1},
    "alpha=1": {"alpha": 1.0},
    "lam=0.1": {"lam": 0.1},
    "c=10": {"c": 10.0},
    "c=200": {"c": 200.0},
    "q=0.5": {"q": 0.5},
    "alpha learned": {"alpha": "learn"},
    "q learned": {"q": "learn"},
    "all learned": {"alpha": "learn", "lam": "learn", "c": "learn", "q": "learn"},
}
LENGTH = {"n_iter": 300, "n_chains": 2}


def sets(folder):
    """name → (table, labels, clusters); at most MOST cases each, drawn at random."""
    import pandas as pd

    recipes = load_recipes()
    binarizer = MultiLabelBinarizer()
    used = binarizer.fit_transform(recipes.table["ingredients"]) == 1
    found = {"recipes": (pd.DataFrame(used, columns=binarizer.classes_), np.array(recipes.families), 5)}
    digits = load_digits()
    found["digits 8x8"] = (pd.DataFrame(digits.data.astype(int) // 6), digits.target, 10)
    for seed, S in ((0, 3), (1, 6)):
        rng = np.random.default_rng(seed)
        offset = np.arange(26) * 4
        catalogue = rng.integers(4, size=(60, 25)) + offset[:-1]
        drawn = model.simulate(make_data(catalogue, offset), make_hyper(S, 25, 0.05, 1.0, 50.0, 0.5), rng, 300)
        labels = np.array([np.bincount(row).argmax() for row in drawn.z])
        found[f"simulated, {S}"] = (pd.DataFrame(drawn.x - offset[:-1]), labels, S)
    if folder:
        for name in ("zoo", "house_votes_84", "soybean_large", "mushroom", "breast_cancer", "car"):
            frame = pd.read_csv(pathlib.Path(folder) / f"uci_{name}.csv", na_values="?")
            labels = frame.pop(frame.columns[0]).to_numpy()
            frame = frame.drop(columns=["animal"], errors="ignore").astype(object)
            found[name] = (frame, labels, len(np.unique(labels)))
    for name, (frame, labels, S) in found.items():
        rows = np.random.default_rng(0).permutation(len(frame))[:MOST]
        yield name, frame.iloc[rows].reset_index(drop=True), labels[rows], S


def measure(frame, labels, S, setting):
    scores, start = [], time.perf_counter()
    for train, test in KFold(3, shuffle=True, random_state=0).split(frame):
        kept = [c for c in frame if frame[c].iloc[train].notna().any()]
        fitted = BayesianCaseModel(S, random_state=0, **LENGTH, **PAPER | setting).fit(frame[kept].iloc[train])
        scores.append(fitted.score_samples(frame[kept].iloc[test]))
    fitted = BayesianCaseModel(S, random_state=0, **LENGTH, **PAPER | setting).fit(frame)
    each = np.concatenate(scores)
    return {
        "held_out": float(each.mean()),
        "held_out_each": each.round(4).tolist(),
        "nmi": float(normalized_mutual_info_score(labels, fitted.labels_)),
        "agreeing_chains": int((fitted.chain_overlap_ >= 0.9).sum()),
        "learned": {name: value._asdict() for name, value in fitted.hyperparameters_.items()},
        "seconds": time.perf_counter() - start,
    }


def show(results):
    console = Console(width=160)
    names = list(next(iter(results.values())))
    table = Table(
        "set", *names, title="held-out log probability per case: difference from the paper's settings ± standard error; (NMI)"
    )
    for name, of in results.items():
        base, row = np.array(of["paper"]["held_out_each"]), [name]
        for setting in names:
            if setting not in of:
                row.append("")
                continue
            loss = np.array(of[setting]["held_out_each"]) - base
            error = loss.std(ddof=1) / np.sqrt(len(loss))
            first = f"{base.mean():.2f}" if setting == "paper" else f"{loss.mean():+.2f} ± {error:.2f}"
            row.append(f"{first} ({of[setting]['nmi']:.2f})")
        table.add_row(*row)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the labelled sets; without it only bundled and simulated ones")
    parser.add_argument("--out", default="defaults.json")
    options = parser.parse_args()
    path = pathlib.Path(options.out)
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    warnings.simplefilter("ignore")
    for name, frame, labels, S in sets(options.data):
        for setting, params in SETTINGS.items():
            if setting not in results.setdefault(name, {}):
                results[name][setting] = measure(frame, labels, S, params)
                path.write_text(json.dumps(results), "utf-8")
                print(name, setting, {k: v for k, v in results[name][setting].items() if k != "held_out_each"}, flush=True)
    show(results)


if __name__ == "__main__":
    main()
