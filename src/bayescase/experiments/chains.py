"""Do chains meet? How many of them find the same clusters, how exact their means are, and how long that takes."""

import time
import warnings
from pathlib import Path

import numpy as np

from ..datasets import load_recipes
from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import ACCENT, GREY, INK, NORMAL, SMALL, new_figure, tidy
from ..sampling.diagnostics import ess_bulk
from ..sampling.structure import LEAST_TOLD, told
from . import sets
from .frame import Experiment, seeds_in_words
from .numbers import CODES

WAYS = {"plain sweeps": {"n_init": 1, "moves": "none"}, "without jumps": {"moves": "cases"}, "defaults": {}}
RECIPES = "recipes"
# The share of chains that agree with the best as the work on this began, before there was a search, cases drawn anew or
# jumps: 4 chains of 1,000 sweeps, 3 seeds. Measured then, by sweeps that were other code; not measured again here.
AT_FIRST = {"votes": 1.00, "mushroom": 0.92, "breast cancer": 0.83, "zoo": 0.50, "soybean": 0.25, "car": 0.25}
# What was aimed at.
GOOD_OF_TEN = 8  # seeds with a good verdict
LONGEST = 2.0  # times the time of plain sweeps
FASTER, TO_BE_FASTER = 10.0, ("zoo", "soybean")  # times the effective draws a second of plain sweeps
NO_CLUSTERS = ("car",)  # all combinations of its features: there the verdict should say so


def run(seed: int, settings: dict, data: Path | None) -> dict:
    found = []
    for name in reachable(settings, data):
        table, n_clusters, more = cases_of(name, seed, settings, data)
        fit_one(table, n_clusters, more | {"n_iter": 20, "n_init": 2}, seed)  # so that all is compiled
        for way, how in settings["ways"].items():
            found.append({"set": name, "way": way} | measure(table, n_clusters, more | how, seed, settings))
    return {"fits": found}


def reachable(settings: dict, data: Path | None) -> list[str]:
    """Those of the sets that can be had without a network."""
    there = sets.reachable(tuple(name for name in settings["sets"] if name != RECIPES), data, fetch=False)
    return [name for name in settings["sets"] if name == RECIPES or name in there]


def cases_of(name: str, seed: int, settings: dict, data: Path | None) -> tuple:
    """(cases, as many clusters as classes, how they are read)."""
    if name == RECIPES:
        recipes = load_recipes()
        return recipes.table, len(np.unique(recipes.families)), {}
    x, y = sets.load(name, seed, data)
    if len(x) > settings["most"]:
        x, y = (of[np.random.default_rng(0).choice(len(x), settings["most"], replace=False)] for of in (x, y))
    return x, len(np.unique(y)), {"encoder": CODES}


def fit_one(table, n_clusters: int, how: dict, seed: int) -> tuple[BayesianCaseModel, float]:
    """(the fit, seconds of all processors together)."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a feature with one value; chains that differ
        model = BayesianCaseModel(n_clusters, random_state=seed, n_jobs=1, **how).fit(table)
    return model, time.process_time() - begun


def measure(table, n_clusters: int, how: dict, seed: int, settings: dict) -> dict:
    """A fit at the defaults, and one that goes on until its verdict is good."""
    model, seconds = fit_one(table, n_clusters, how | settings["fit"], seed)
    found = model.diagnostics_
    numbers = {
        "agree": found.n_agreeing / found.n_chains,
        "sound": bool(found.sound),
        "good": bool(found.converged),
        "told": told(model.memberships_),
        "ess": float(found.quantities["log_joint"].ess_bulk),
        "ess_of_all": float(ess_bulk(model.log_joint_[:, model.n_iter_ // 2 :])),
        "best": float(max(model.log_joint_[:, model.n_iter_ // 2 :].mean(axis=1))),
        "seconds": seconds,
    }
    if seed < settings["waits"]:
        until, waited = fit_one(table, n_clusters, how | settings["until"], seed)
        numbers |= {"waited": waited, "came": bool(until.diagnostics_.converged)}
    return numbers


# --- the page -----------------------------------------------------------------------------------------------------------


def by_set(results: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """name → way → the fits of all seeds."""
    found: dict[str, dict[str, list[dict]]] = {}
    for one in (fit for numbers in results for fit in numbers["fits"]):
        found.setdefault(one["set"], {}).setdefault(one["way"], []).append(one)
    return found


def tables(results: list[dict]) -> str:
    """A line per set, a column per figure with all ways side by side."""
    found = by_set(results)
    ways = ways_of(found)
    lines = [
        f"{seeds_in_words(len(results))}; in each cell: {', '.join(ways)}.\n",
        "| set | chains that agree | seeds with sound clusters | seeds with a good verdict | best chain, nats above the first "
        "| ESS of the log joint per second | the same of all chains, agreeing or not | seconds | seconds to a good verdict |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, of in found.items():
        cells = [
            [f"{np.mean([one['agree'] for one in fits]):.2f}" for fits in of.values()],
            [str(sum(one["sound"] for one in fits)) for fits in of.values()],
            [str(sum(one["good"] for one in fits)) for fits in of.values()],
            [f"{above(fits, of[ways[0]]):.0f}" for fits in of.values()],
            [f"{np.median([one['ess'] / one['seconds'] for one in fits]):.1f}" for fits in of.values()],
            [f"{np.median([one['ess_of_all'] / one['seconds'] for one in fits]):.1f}" for fits in of.values()],
            [f"{np.median([one['seconds'] for one in fits]):.1f}" for fits in of.values()],
            [until_good(fits) for fits in of.values()],
        ]
        lines.append(f"| {name} | " + " | ".join(", ".join(cell) for cell in cells) + " |")
    return "\n".join([*lines, "", *beside_the_aims(found, ways[0], ways[-1])])


def beside_the_aims(found: dict[str, dict[str, list[dict]]], first: str, last: str) -> list[str]:
    """A line per set: where the work began, what it came to, and what of the aims is reached."""
    lines = [
        f"Where this began, and what was aimed at, {last} beside {first}; ratios are of medians.\n",
        "| set | chains that agree: at the beginning → now | good verdict, aim 8 of 10 seeds | seconds, aim at most 2 times "
        "| ESS per second, aim 10 times on zoo and soybean | the same of all chains, agreeing or not |",
        "|---|---|---|---|---|---|",
    ]
    for name, of in ((name, of) for name, of in found.items() if first in of and last in of):
        begun = f"{AT_FIRST[name]:.2f}" if name in AT_FIRST else "–"
        now, before = of[last], of[first]
        longer = median_of(now, "seconds") / median_of(before, "seconds")
        cells = [f"{begun} → {np.mean([one['agree'] for one in now]):.2f}", verdicts(name, now)]
        cells.append(f"{longer:.1f}, {reached(longer <= LONGEST)}")
        for ess in ("ess", "ess_of_all"):
            times = median_of(now, ess, "seconds") / median_of(before, ess, "seconds")
            cells.append(f"{times:.1f}" + (f", {reached(times >= FASTER)}" if name in TO_BE_FASTER else ""))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def verdicts(name: str, fits: list[dict]) -> str:
    """How many seeds have the verdict that was aimed at; is that enough; how many say that there are no clusters."""
    none, good = sum(one["told"] < LEAST_TOLD for one in fits), sum(one["good"] for one in fits)
    n, empty = len(fits), f"{none} of {len(fits)} say that there are no clusters"
    if name in NO_CLUSTERS:
        return f"{empty}, as they should: {reached(10 * none >= GOOD_OF_TEN * n)}"
    words = f"{good} of {n}, {reached(10 * good >= GOOD_OF_TEN * n)}"
    return f"{words}; {empty}" if none else words


def reached(is_so: bool) -> str:
    return "reached" if is_so else "**missed**"


def median_of(fits: list[dict], what: str, per: str | None = None) -> float:
    return float(np.median([one[what] / (one[per] if per else 1.0) for one in fits]))


def ways_of(found: dict[str, dict[str, list[dict]]]) -> list[str]:
    """Those of the set that has most."""
    return max((list(of) for of in found.values()), key=len)


def above(fits: list[dict], first: list[dict]) -> float:
    return float(np.mean([one["best"] - other["best"] for one, other in zip(fits, first, strict=True)]))


def until_good(fits: list[dict]) -> str:
    """Median, if most came to one; else how many did."""
    waited = [one for one in fits if "waited" in one]
    came = [one["waited"] for one in waited if one["came"]]
    if not waited:
        return "–"
    return f"{np.median(came):.1f}" if 2 * len(came) > len(waited) else f"{len(came)} of {len(waited)} came"


def figures(results: list[dict]) -> dict:
    """The share of the chains that agree, by set and way."""
    found = by_set(results)
    figure = new_figure(8.5, 0.42 * len(found) + 1.2)
    ax = figure.subplots()
    ways = ways_of(found)
    height = 0.8 / len(ways)
    for k, way in enumerate(ways):
        shares = [np.mean([one["agree"] for one in of[way]]) if way in of else np.nan for of in found.values()]
        colour = (GREY, ACCENT, INK)[k]
        ax.barh(np.arange(len(found)) + (k - (len(ways) - 1) / 2) * height, shares, 0.9 * height, color=colour, label=way)
    ax.set_yticks(range(len(found)), list(found), fontsize=NORMAL)
    ax.invert_yaxis()
    ax.set(xlim=(0, 1), xlabel="share of the chains that found the clusters of the best")
    tidy(ax)
    ax.legend(fontsize=SMALL, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"Chains that agree": figure}


NAMES = ("votes", "mushroom", "breast cancer", "zoo", "soybean", "nursery", "connect-4", RECIPES, "car")
CHAINS = Experiment(
    name="chains",
    title="Do chains meet?",
    paper="Not in the paper. Four chains, with as many clusters as there are classes, of which no more is used; of a larger "
    "set 2,000 cases. Plain sweeps from plain starts; a search for the start and cases drawn anew between sweeps; and the "
    "defaults, which jump as well, in tables of at most 50,000 cells. Chains agree if they share 0.9 of the memberships with "
    "the best one. Clusters are sound if all chains agree and probabilities are exact to about 0.1; a verdict is good if there "
    "are 100 effective draws, too. Seconds are those of all processors together, medians over seeds. The last column is of "
    'fits with `n_iter="auto"` and at most 2,000 sweeps, of the first three seeds. The aims, at the defaults: a good verdict '
    "in at least 8 of 10 seeds, and on car, which has no clusters, one that says so; at most twice the time of plain sweeps at "
    "the beginning; on soybean and zoo ten times their effective draws of the log joint a second. Times are held against plain "
    "sweeps of today, measured beside them. The agreement at the beginning is of 4 chains of 1,000 sweeps in 3 seeds, before "
    "there was a search, cases drawn anew or jumps.",
    files=tuple(sets.PLACES[name].file for name in NAMES if name in sets.PLACES),
    full={
        "sets": list(NAMES),
        "most": 2000,
        "ways": WAYS,
        "fit": {},
        "until": {"n_iter": "auto", "max_iter": 2000},
        "waits": 3,
    },
    quick={
        "sets": ["zoo", RECIPES],
        "most": 300,
        "ways": WAYS,
        "fit": {"n_iter": 120, "n_init": 4},
        "until": {"n_iter": "auto", "max_iter": 250, "n_init": 4},
        "waits": 1,
    },
    source=lambda settings, data: ", ".join(reachable(settings, data)),
    run=run,
    figures=figures,
    tables=tables,
)
