"""How many clusters real tables have, by auto, by fold and by held-out probability."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ..errors import ParameterError
from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import ACCENT, GREY, INK, NORMAL, SMALL, new_figure, tidy, title
from ..selection import select_n_clusters
from . import sets
from .frame import Experiment

CODES = {"feature_types": "integer", "missing_values": -1}


def run(seed: int, settings: dict, data: Path | None) -> dict:
    found = []
    for name in sets.reachable(tuple(settings["sets"]), data, fetch=False):
        x, y = sets.load(name, seed, data)
        if len(x) > settings["most"]:
            chosen = np.random.default_rng(seed).choice(len(x), settings["most"], replace=False)
            x, y = x[chosen], y[chosen]
        found.append({"set": name} | numbers_of(x, y, settings["sets"][name], settings, seed))
    return {"tables": found}


def numbers_of(x: np.ndarray, y: np.ndarray, numbers: list[int], settings: dict, seed: int) -> dict:
    """What the three ways say of one table."""
    auto = {"max_clusters": settings["max_clusters"], "encoder": CODES, **settings["fit"]}
    model = BayesianCaseModel("auto", random_state=seed, **auto)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a feature with one value; all clusters in use
        model.fit(x)
    folded, classes = model.fold(), len(np.unique(y))
    as_classes = model.fold(min(classes, model.n_clusters_))
    selected = select_n_clusters(
        x, numbers, model=BayesianCaseModel(encoder=CODES, **settings["select"]), cv=settings["cv"], random_state=seed
    )
    return {
        "cases": len(x),
        "features": x.shape[1],
        "classes": classes,
        "auto": model.n_clusters_,
        "capped": model.fitted_.capped,
        "folded": folded.n_clusters_,
        "costs": [join.cost for join in model.fitted_.tree.joins],
        "recommended": selected.recommended,
        "best": selected.best,
        "tried": numbers,
        "nmi": [float(normalized_mutual_info_score(y, of.labels_)) for of in (model, folded, as_classes)],
        "ari": [float(adjusted_rand_score(y, of.labels_)) for of in (model, folded, as_classes)],
    }


# --- the page -----------------------------------------------------------------------------------------------------------


def tables(results: list[dict]) -> str:
    """A line per set; where seeds differ, all that they say."""
    lines = [
        "| set | cases × features | classes | `auto` | `fold()` | `select_n_clusters` "
        "| NMI with the classes: auto, folded, folded to as many as classes |",
        "|---|---|---|---|---|---|---|",
    ]
    for k, first in enumerate(results[0]["tables"]):
        same = [numbers["tables"][k] for numbers in results]
        auto = ", ".join(f"{one['auto']}{' (all)' if one['capped'] else ''}" for one in same)
        folded = ", ".join(str(one["folded"]) for one in same)
        selected = ", ".join(f"{one['recommended']} (best {one['best']})" for one in same)
        nmi = ", ".join(f"{np.mean([one['nmi'][way] for one in same]):.2f}" for way in range(3))
        size = f"{first['cases']:,} × {first['features']}"
        tried = f"of {', '.join(map(str, first['tried']))}"
        lines.append(f"| {first['set']} | {size} | {first['classes']} | {auto} | {folded} | {selected}, {tried} | {nmi} |")
    return "\n".join(lines)


def figures(results: list[dict]) -> dict:
    """What each join costs, by the number of clusters that it leaves."""
    found = results[0]["tables"]
    figure = new_figure(2.6 * len(found) + 0.6, 2.9)
    for ax, one in zip(figure.subplots(1, len(found), sharey=True, squeeze=False)[0], found, strict=True):
        left = np.arange(one["auto"] - 1, 0, -1)
        ax.plot(left, 100 * -np.expm1(-np.array(one["costs"])), "o-", color=INK, ms=3, lw=1)
        ax.axvline(one["folded"], color=ACCENT, ls="--", lw=1.2)
        ax.axvline(one["classes"], color=GREY, ls=":", lw=1.2)
        ax.set(xlabel="clusters left", ylim=(0, 103))
        title(ax, one["set"], 24)
        tidy(ax)
    figure.axes[0].set_ylabel("joined cases less\nprobable, in %", fontsize=NORMAL)
    for words, colour, style in (("fold()", ACCENT, "--"), ("classes", GREY, ":")):
        figure.axes[-1].plot([], [], label=words, color=colour, ls=style)
    figure.axes[-1].legend(fontsize=SMALL, frameon=False, loc="lower left")
    return {"What each join costs, seed 0: dashed where `fold()` stops, dotted the number of classes": figure}


def left_out(settings: dict, data: Path | None) -> ParameterError | None:
    if sets.reachable(tuple(settings["sets"]), data, fetch=False):
        return None
    return ParameterError("numbers needs a folder with public tables: give {parameter}.", parameter="data")


NUMBERS = Experiment(
    name="numbers",
    title="How many clusters real tables have",
    paper="The paper takes as many clusters as there are classes. Here the classes are not used, only counted: `auto` with "
    "`max_clusters=40`, 200 sweeps of 2 chains; `fold()` of that model with the default tolerance; and `select_n_clusters` by "
    "three folds, 100 sweeps of 2 chains each, with the recommended number (the smallest within one standard error of the "
    "best) and the best. Of a larger set 1,500 cases are drawn.",
    files=tuple(sets.PLACES[name].file for name in ("votes", "zoo", "breast cancer", "soybean", "mushroom")),
    full={
        "sets": {
            "votes": [1, 2, 3, 4, 6, 8, 10],
            "zoo": [1, 2, 3, 4, 5, 6, 7, 8, 10],
            "breast cancer": [1, 2, 3, 4, 6, 8],
            "soybean": [1, 4, 8, 12, 16, 20, 24],
            "mushroom": [1, 2, 4, 8, 12, 16, 20, 24],
        },
        "most": 1500,
        "max_clusters": 40,
        "fit": {"n_iter": 200, "n_chains": 2},
        "select": {"n_iter": 100, "n_chains": 2},
        "cv": 3,
    },
    quick={
        "sets": {"zoo": [1, 4, 8], "breast cancer": [1, 3]},
        "most": 300,
        "max_clusters": 20,
        "fit": {"n_iter": 60, "n_chains": 2},
        "select": {"n_iter": 30, "n_chains": 2},
        "cv": 2,
    },
    source=lambda settings, data: ", ".join(sets.reachable(tuple(settings["sets"]), data, fetch=False)),
    run=run,
    figures=figures,
    tables=tables,
    left_out=left_out,
)
