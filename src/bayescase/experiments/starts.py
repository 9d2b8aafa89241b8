"""Why the paper's own sampler gives less here than in figures 2a and 2b: the reading of its start, or of its α."""

from pathlib import Path

import numpy as np

from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import NORMAL, new_figure, tidy
from . import digits
from .accuracy import LAM, C, Q, pixels_as_they_are, svm
from .digits import PAPER_SD, PAPER_SVM, THIN, S, sample
from .frame import Experiment, Row, spread

RANDOM_PIXELS = 0.1  # of all cells
READINGS = {  # name: (start, total α, in words)
    "label": ("label", 0.01, "a wrong label for half of the cases, α = .01 in all"),
    "cells": ("cells", 0.01, "half of the cases mixed cell by cell, and every tenth cell of all; α = .01 in all"),
    "entry": ("label", 0.1, "a wrong label for half of the cases, α = .01 in every entry"),
}


def mixed_cells(y, n_cells, rng):
    """Another reading of "half correct": every second case all cells random, every tenth cell of all, the rest right."""
    random = rng.integers(S, size=(len(y), n_cells))
    mixed = (rng.permutation(len(y)) < len(y) // 2)[:, None] | (rng.random((len(y), n_cells)) < RANDOM_PIXELS)
    return np.where(mixed, random, y[:, None])


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, labels = digits.load(settings, data)
    x, y, half, _ = sample(images, labels, settings["size"], seed)
    rng = np.random.default_rng((seed, settings["size"], 1))
    starts = {"label": half, "cells": mixed_cells(y, x.shape[1], rng)}
    return {name: fit(x, y, starts[READINGS[name][0]], READINGS[name][1], settings, seed) for name in settings["readings"]}


def fit(x, y, init, alpha, settings, seed):
    """The paper's sampler, one chain: the second half of its sweeps, and its last draw alone."""
    n_iter = settings["n_iter"]
    model = BayesianCaseModel(
        S,
        alpha=alpha,
        lam=LAM,
        c=C,
        q=Q,
        sampler="collapsed",
        n_iter=n_iter,
        burn_in=n_iter // 2,
        thin=THIN,
        n_chains=1,
        keep_draws=True,
        encoder={"feature_types": "integer"},
        random_state=seed,
    )
    with pixels_as_they_are():
        model.fit(x, init=init)
    last = np.stack([(model.draws_.z[0, -1] == s).mean(axis=1) for s in range(S)], axis=1)
    return {
        "svm": svm(model.memberships_, y, seed),
        "last": svm(last, y, seed),
        "unsupervised": float((y[model.prototypes_[model.labels_]] == y).mean()),
    }


def rows(results: list[dict]) -> list[Row]:
    lines = []
    for name in results[0]:
        words, of = READINGS[name][2], [result[name] for result in results]
        off = np.mean([one["svm"] for one in of]) - PAPER_SVM
        near = (
            "Within the paper's standard deviation."
            if abs(off) <= PAPER_SD
            else f"{abs(off):.2f} {'above' if off > 0 else 'below'} the paper."
        )
        lines += [
            Row(f"SVM on π: {words}", f"{PAPER_SVM} ± {PAPER_SD}", spread([one["svm"] for one in of]), near),
            Row(f"SVM on the last draw: {words}", "not given", spread([one["last"] for one in of])),
            Row(f"label of the prototype: {words}", "figure only", spread([one["unsupervised"] for one in of])),
        ]  # fmt: skip
    return lines


MEASURES = {"svm": ("SVM on π", "o", "#17375e"), "unsupervised": ("label of the prototype", "s", "#c04a00")}


def figures(results: list[dict]) -> dict:
    figure = new_figure(8.5, 0.8 + 0.7 * len(results[0]))
    ax = figure.subplots()
    tidy(ax)
    for k, name in enumerate(results[0]):
        for shift, (what, (words, marker, colour)) in zip((-0.12, 0.12), MEASURES.items(), strict=True):
            found = [result[name][what] for result in results]
            label = words if k == 0 else None
            ax.errorbar(np.mean(found), k + shift, xerr=np.std(found), fmt=marker, color=colour, capsize=3, label=label)
    ax.axvspan(PAPER_SVM - PAPER_SD, PAPER_SVM + PAPER_SD, color="#d9d9d9", zorder=0, label="the paper's SVM")
    ax.set_yticks(range(len(results[0])), [READINGS[name][2].replace("; ", ";\n") for name in results[0]], fontsize=NORMAL)
    ax.set_ylim(len(results[0]) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xlabel("accuracy", fontsize=NORMAL)
    figure.legend(loc="outside upper right", ncols=3, fontsize=NORMAL, frameon=False)
    what = "accuracy by reading of the paper's start and of its α, with standard deviations over seeds"
    return {f"More rows for figures 2a and 2b, 70 images of each digit, `collapsed`: {what}": figure}


STARTS = Experiment(
    name="starts",
    title="Digits: readings of the paper's start and of its α",
    paper=f"Both models of the paper start with one half of the labels correct and reach {PAPER_SVM} with α = .01. That can be "
    "read in more than one way: a case's label may be wrong as a whole, or its cells may be mixed; and α = .01 may be the "
    "total or every entry of the Dirichlet parameter. With one wrong label per case and α/S = .001 a case stays where it is "
    "for hundreds of sweeps of the paper's sampler; each of the other two readings sets it free. 70 images of each digit, "
    "λ = 1, c = 50, q = .8, 1,000 sweeps of `collapsed`, one chain.",
    files=(digits.FILE,),
    full={"usps": True, "size": 70, "n_iter": 1000, "readings": list(READINGS)},
    quick={"usps": False, "size": 20, "n_iter": 60, "readings": list(READINGS)},
    source=digits.source,
    run=run,
    rows=rows,
    figures=figures,
)
