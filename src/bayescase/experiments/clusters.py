"""How many clusters are found where the number is known, in tables of the model and in tables that it does not fit."""

import itertools
import warnings
from pathlib import Path

import numpy as np

from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import ACCENT, GREY, INK, NORMAL, SMALL, new_figure, tidy, title
from ..explaining.tree import TOLERANCE
from ..model import simulate
from ..state import make_data, make_hyper
from .frame import Experiment, seeds_in_words

VALUES, COPIES = 4, 50.0  # values of a feature; c of the cases
OWN = 1  # random numbers of these tables; the default tolerance was chosen on others
TRIES = 200  # of drawing clusters that lie apart
MISFITS = {"none": "none", "dependent": "dependent features", "noise": "10 % noise cells"}
TOLERANCES = (0.0, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5)


def plant(S: int, P: int, N: int, misfit: str, seed: int) -> tuple[np.ndarray, int]:
    """(cases, clusters in use): every cluster copies its prototype on one half of the features, the rest is its own noise.

    Of 200 draws of prototypes and subspaces the one is taken whose nearest clusters lie farthest apart. Then, by misfit: every
    third pair of neighbouring features is dependent, the second a copy of the first in one half of the cases, in all clusters
    alike; or one cell in ten is drawn anew, evenly from all values.
    """
    rng = np.random.default_rng([OWN, seed, S, P, N])
    offset = np.arange(P + 1) * VALUES
    drawn = [
        (rng.integers(VALUES, size=(S, P)), np.array([rng.permutation(P) < P // 2 for _ in range(S)])) for _ in range(TRIES)
    ]
    prototypes, omega = max(drawn, key=lambda of: nearest(*of))
    hyper = make_hyper(S, P, alpha=0.0, lam=1.0, c=COPIES, q=0.5)
    found = simulate(make_data(prototypes + offset[:-1], offset), hyper, rng, N, p=np.arange(S), omega=omega)
    x = found.x - offset[:-1]
    if misfit == "dependent":
        for j in range(0, 2 * max(P // 6, 1), 2):
            copied = rng.random(N) < 0.5
            x[copied, j + 1] = x[copied, j]
    if misfit == "noise":
        x = np.where(rng.random(x.shape) < 0.1, rng.integers(VALUES, size=x.shape), x)
    return x, len(np.unique(found.z[:, 0]))


def nearest(prototypes: np.ndarray, omega: np.ndarray) -> float:
    """How far the two nearest clusters lie apart: features that both copy and differ in, then those that one of them copies."""
    pairs = list(itertools.combinations(range(len(omega)), 2))
    differ = [prototypes[a] != prototypes[b] for a, b in pairs]
    both = [(d & omega[a] & omega[b]).sum() for d, (a, b) in zip(differ, pairs, strict=True)]
    one = [(d & (omega[a] | omega[b])).sum() for d, (a, b) in zip(differ, pairs, strict=True)]
    return 10.0 * min(both, default=0) + min(one, default=0)


def run(seed: int, settings: dict, data: Path | None) -> dict:
    found = []
    for N, P, S, misfit in itertools.product(settings["cases"], settings["features"], settings["clusters"], MISFITS):
        x, planted = plant(S, P, N, misfit, seed)
        model = BayesianCaseModel("auto", n_iter=settings["n_iter"], n_chains=settings["n_chains"], random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a feature with one value; all clusters in use
            model.fit(x)
        costs = [join.cost for join in model.fitted_.tree.joins]
        found.append({"N": N, "P": P, "S": S, "misfit": misfit, "planted": planted, "auto": model.n_clusters_, "costs": costs})
    return {"tables": found}


# --- the page -----------------------------------------------------------------------------------------------------------


def folded(one: dict, tolerance: float) -> int:
    """The number of clusters at a tolerance, as `Tree.number` has it."""
    return one["auto"] - sum(cost <= -np.log1p(-tolerance) for cost in one["costs"])


def near(found: list[dict], tolerance: float | None) -> float:
    """The share of tables with the planted number, or one more or less; by auto alone if the tolerance is None."""
    numbers = [one["auto"] if tolerance is None else folded(one, tolerance) for one in found]
    return float(np.mean([abs(n - one["planted"]) <= 1 for n, one in zip(numbers, found, strict=True)]))


def every_table(results: list[dict]) -> list[dict]:
    return [one for numbers in results for one in numbers["tables"]]


def chosen(found: list[dict], **where) -> list[dict]:
    return [one for one in found if all(one[name] == value for name, value in where.items())]


def tables(results: list[dict]) -> str:
    """The share of each kind of table, folded and by auto alone."""
    found = every_table(results)
    kinds = sorted({(one["N"], one["P"]) for one in found})
    lines = [
        f"In % of the tables, {seeds_in_words(len(results))} of each kind: the planted number ±1 by `auto` and `fold()`, and "
        "in brackets by `auto` alone.\n",
        "| misfit | clusters | " + " | ".join(f"{N:,} × {P}" for N, P in kinds) + " |",
        "|---|---|" + "---|" * len(kinds),
    ]
    for misfit, words in MISFITS.items():
        for S in sorted({one["S"] for one in found}):
            cells = [percent_of(chosen(found, misfit=misfit, S=S, N=N, P=P)) for N, P in kinds]
            lines.append(f"| {words} | {S} | {' | '.join(cells)} |")
        cells = [percent_of(chosen(found, misfit=misfit, N=N, P=P)) for N, P in kinds]
        lines.append(f"| **{words}** | **all** | {' | '.join(cells)} |")
    shares = [f"{tolerance:g}: {100 * near(found, tolerance):.0f} %" for tolerance in TOLERANCES]
    lines.append(
        f"\nAll kinds together: {percent_of(found)} %. By tolerance: {', '.join(shares)}; the default is {TOLERANCE:g}."
    )
    return "\n".join(lines)


def percent_of(found: list[dict]) -> str:
    return f"{100 * near(found, TOLERANCE):.0f} ({100 * near(found, None):.0f})" if found else "–"


def figures(results: list[dict]) -> dict:
    found = every_table(results)
    figure = new_figure(9.5, 3.2)
    looks = {"none": ("-", INK), "dependent": ("--", ACCENT), "noise": (":", GREY)}
    sizes = sorted({one["N"] for one in found})
    for ax, N in zip(figure.subplots(1, len(sizes), sharey=True, squeeze=False)[0], sizes, strict=True):
        for misfit, (style, colour) in looks.items():
            part = chosen(found, N=N, misfit=misfit)
            curve = [100 * near(part, tolerance) for tolerance in TOLERANCES]
            ax.plot(TOLERANCES, curve, ls=style, color=colour, marker="o", ms=3, label=f"misfit: {MISFITS[misfit]}")
        ax.axvline(TOLERANCE, color=GREY, lw=0.8)
        ax.set_xlabel("tolerance; the line is the default", fontsize=SMALL)
        title(ax, f"{N:,} cases", 40)
        tidy(ax)
    figure.axes[0].set_ylabel("planted number ±1, in %", fontsize=NORMAL)
    figure.axes[0].legend(fontsize=SMALL, frameon=False, loc="lower right")
    return {"How often the planted number is found, or one more or less, by the tolerance of fold": figure}


CLUSTERS = Experiment(
    name="clusters",
    title="How many clusters",
    paper="The paper fixes the number of clusters. Here tables with 1 to 10 planted clusters of equal weight and 6 to 100 "
    "features of four values, half of which every cluster copies from its prototype (c = 50, λ = 1), are fitted with "
    '`n_clusters="auto"` and its defaults, but 200 sweeps of 2 chains, and folded with the default tolerance. *Dependent '
    "features*: in every third pair of neighbouring features the second copies the first in one half of the cases. *Noise "
    "cells*: one cell in ten is drawn anew. Clusters are drawn 200 times, and the draw is taken whose nearest two lie "
    "farthest apart; with 10 clusters and 6 features they still overlap.",
    files=(),
    full={"clusters": [1, 2, 3, 5, 10], "features": [6, 12, 30, 100], "cases": [200, 2000], "n_iter": 200, "n_chains": 2},
    quick={"clusters": [1, 3], "features": [6, 12], "cases": [200], "n_iter": 60, "n_chains": 2},
    source=lambda settings, data: "simulated tables",
    run=run,
    figures=figures,
    tables=tables,
)
