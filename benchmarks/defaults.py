"""Evidence for the default hyperparameters: `python benchmarks/defaults.py --data DIR --out defaults.json`.

Held-out log probability per case, by three-fold cross-validation, for each setting on each set; no label is looked at to
choose. Agreement with the labels (NMI of the clusters of all cases) is shown beside it for tables. Results are added to the
file as they come, and a run that finds the file goes on where it stopped. DIR has the UCI sets as uci_zoo.csv and so on, class
first. With --bags the same for bags: recipes, tags and words of messages, without labels at all. --only
runs some of the settings.
"""

import argparse
import gzip
import json
import pathlib
import time
import warnings

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import KFold
from sklearn.preprocessing import MultiLabelBinarizer

from bayescase import BayesianCaseModel, load_recipes, model
from bayescase.state import make_data, make_hyper

MOST = 400  # cases of a table
MOST_BAGS, MOST_ITEMS = 900, 1000  # of a set of bags
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
    "frequency": {"base": "frequency"},
}
BAGS = {"alpha": 0.01, "lam": 0.5, "c": 5.0, "q": 0.5, "base": "frequency"}
BAG_SETTINGS = {
    "present": {},
    "alpha=0": {"alpha": 0},
    "alpha=0.1": {"alpha": 0.1},
    "alpha=0.5": {"alpha": 0.5},
    "alpha=1": {"alpha": 1.0},
    "alpha=3": {"alpha": 3.0},
    "alpha learned": {"alpha": "learn"},
    "lam=0.1": {"lam": 0.1},
    "lam=1": {"lam": 1.0},
    "lam=2": {"lam": 2.0},
    "c=2": {"c": 2.0},
    "c=10": {"c": 10.0},
    "q=0.2": {"q": 0.2},
    "q=0.8": {"q": 0.8},
    "all learned": {"alpha": "learn", "lam": "learn", "c": "learn", "q": "learn"},
    "uniform": {"base": "uniform"},
}
OTHER_GROUPS = ("comp.windows.x", "rec.sport.hockey", "sci.med", "talk.religion.misc")  # not those of the reproduction
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


def bag_sets(folder):
    """name → (lists of items, clusters)."""
    yield "recipes", load_recipes().table["ingredients"], 5
    if not folder:
        return
    folder, rng = pathlib.Path(folder), np.random.default_rng(0)
    with np.load(folder / "20news_bydate_counts.npz") as file:
        news = csr_matrix((file["data"].astype(int), file["indices"], file["indptr"]), shape=tuple(file["shape"]))
        words, group = file["vocabulary"], file["label_names"][file["label"]]
    written = np.flatnonzero(news.sum(axis=1).A1 > 0)
    four = written[np.isin(group[written], OTHER_GROUPS)]
    yield "messages, 4 groups", texts(news[rng.choice(four, MOST_BAGS, replace=False)], words), 4
    yield "messages, 20 groups", texts(news[rng.choice(written, MOST_BAGS, replace=False)], words), 20
    with np.load(folder / "epicurious_20052x672.npz") as file:
        ones = np.ones(len(file["indices"]), dtype=int)
        tags = csr_matrix((ones, file["indices"], file["indptr"]), shape=tuple(file["shape"]))[~file["is_duplicate"]]
        yield "epicurious", texts(tags[rng.choice(tags.shape[0], MOST_BAGS, replace=False)], file["tag_names"]), 10
    with gzip.open(folder / "whats_cooking_train.jsonl.gz", "rt", encoding="utf-8") as file:
        dishes = [json.loads(line)["ingredients"] for line in file]
    yield "what's cooking", [dishes[i] for i in rng.choice(len(dishes), MOST_BAGS, replace=False)], 20


def texts(counts, names):
    """Lists of the most frequent items, each as often as it occurs."""
    often = np.sort(np.argsort(-np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")[:MOST_ITEMS])
    counts, names = counts[:, often], names[often]
    return [np.repeat(names[row.indices], row.data).tolist() for row in counts]


def measure_bags(bags, S, setting):
    scores, start = np.zeros(len(bags)), time.process_time()
    for train, test in KFold(3, shuffle=True, random_state=0).split(bags):
        fitted = BayesianCaseModel(S, random_state=0, encoder={"min_cases": 2}, **LENGTH, **BAGS | setting)
        fitted.fit({"items": [bags[i] for i in train]})
        scores[test] = fitted.score_samples({"items": [bags[i] for i in test]})
    return {
        "held_out": float(scores.mean()),
        "held_out_each": scores.round(4).tolist(),
        "learned": {name: value._asdict() for name, value in fitted.hyperparameters_.items()},
        "seconds": time.process_time() - start,
    }


def completion(bags, S):
    """Are words better counted once, or as often as they occur? Half of the words of left-out messages, by the other half.

    Mean log probability of the words, each once, and as often as they occur; the same words are asked of both.
    """
    items, code = np.unique(np.concatenate(bags), return_inverse=True)
    counts = np.zeros((len(bags), len(items)), dtype=int)
    np.add.at(counts, (np.repeat(np.arange(len(bags)), [len(bag) for bag in bags]), code), 1)
    known, found = np.random.default_rng(0).random(counts.shape) < 0.5, {}
    for name, read in {"counted": counts, "once": np.minimum(counts, 1)}.items():
        found[name] = np.full((len(bags), 2), np.nan)
        for train, test in KFold(3, shuffle=True, random_state=0).split(counts):
            fitted = BayesianCaseModel(S, random_state=0, encoder={"feature_names": items}, **LENGTH)
            fitted.fit(csr_matrix(read[train]))
            seen = read[train].any(axis=0)  # others are left out
            log_p = np.log(fitted.transform(csr_matrix((read * known)[test])) @ fitted.fitted_.posterior.values.T)
            asked = (counts * ~known)[test][:, seen]
            for i, row, n in zip(test, log_p, asked, strict=True):
                if n.any():
                    found[name][i] = row[n > 0].mean(), (row * n).sum() / n.sum()
    gain = found["once"] - found["counted"]
    gain = gain[~np.isnan(gain[:, 0])]
    return [f"{g.mean():+.3f} ± {g.std(ddof=1) / np.sqrt(len(g)):.3f}" for g in gain.T]


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
    title = f"held-out log probability per case; then the difference from “{names[0]}” ± standard error; (NMI)"
    table = Table("set", *names, title=title)
    for name, of in results.items():
        base, row = np.array(of[names[0]]["held_out_each"]), [name]
        for setting in names:
            if setting not in of:
                row.append("")
                continue
            loss = np.array(of[setting]["held_out_each"]) - base
            error = loss.std(ddof=1) / np.sqrt(len(loss))
            first = f"{base.mean():.2f}" if setting == names[0] else f"{loss.mean():+.2f} ± {error:.2f}"
            row.append(f"{first} ({of[setting]['nmi']:.2f})" if "nmi" in of[setting] else first)
        table.add_row(*row)
    console.print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder with the labelled sets; without it only bundled and simulated ones")
    parser.add_argument("--out", default="defaults.json")
    parser.add_argument("--bags", action="store_true", help="bags in place of tables")
    parser.add_argument("--only", nargs="+", metavar="SETTING", help="these settings, and the first to compare them with")
    options = parser.parse_args()
    path = pathlib.Path(options.out)
    results = json.loads(path.read_text("utf-8")) if path.exists() else {}
    warnings.simplefilter("ignore")
    of, settings, found = (measure_bags, BAG_SETTINGS, bag_sets) if options.bags else (measure, SETTINGS, sets)
    if options.only:
        settings = {name: settings[name] for name in (next(iter(settings)), *options.only)}
    for name, *what in found(options.data):
        for setting, params in settings.items():
            if setting not in results.setdefault(name, {}):
                results[name][setting] = of(*what, params)
                path.write_text(json.dumps(results), "utf-8")
                print(name, setting, {k: v for k, v in results[name][setting].items() if k != "held_out_each"}, flush=True)
    show(results)
    for name, bags, S in bag_sets(options.data) if options.bags and not options.only else ():
        if name.startswith("messages"):
            print(f"{name}: words once, not counted; per word, per occurrence:", *completion(bags, S))


if __name__ == "__main__":
    main()
