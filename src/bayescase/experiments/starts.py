"""Why the paper's own sampler gives less here than in figures 2a and 2b: the reading of its start, or of its α."""

from pathlib import Path

import numpy as np

from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import NORMAL, new_figure, tidy
from . import digits
from .accuracy import LAM, C, Q, band, pixels_as_they_are, svm
from .digits import PAPER_SD, PAPER_SVM, THIN, S, curve, first_half, sample
from .frame import Experiment, Row, spread

RANDOM_PIXELS = 0.1  # of all cells
FALLS = 0.01  # from the best sweep to the last, that is worth telling
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
    """The paper's sampler, one chain: the second half of its sweeps, its last draw alone, and the way there."""
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
        thin=settings["thin"],
        n_chains=1,
        keep_draws=True,
        encoder={"feature_types": "integer"},
        random_state=seed,
    )
    with pixels_as_they_are():
        model.fit(x, init=init)
        early = first_half((model,))
    last = np.stack([(model.draws_.z[0, -1] == s).mean(axis=1) for s in range(S)], axis=1)
    return {
        "svm": svm(model.memberships_, y, seed),
        "last": svm(last, y, seed),
        "unsupervised": float((y[model.prototypes_[model.labels_]] == y).mean()),
    } | curve(early, (model,), y)


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
            Row(f"label of the prototype: {words}", "figure only", spread([one["unsupervised"] for one in of]), by_sweep(of)),
        ]  # fmt: skip
    return lines


def by_sweep(of):
    """Figure 2b in words: where it begins, its best sweep if that is better than the end, and where it ends."""
    mean, sweeps = np.mean([one["curve"] for one in of], axis=0), of[0]["sweeps"]
    best = int(mean.argmax())
    told = [0, *([best] if mean[best] - max(mean[0], mean[-1]) >= FALLS else []), -1]
    return f"Draw by draw {', '.join(f'{mean[t]:.2f} at sweep {sweeps[t]}' for t in told)}."


COLOURS = {"label": "#17375e", "cells": "#c04a00", "entry": "#5b7f2b"}
MARKERS = {"label": "o", "cells": "s", "entry": "^"}


def figures(results: list[dict]) -> dict:
    """Left the end of figure 2a, right figure 2b, a colour for each reading."""
    figure = new_figure(11, 4.6)
    end, way = figure.subplots(1, 2, width_ratios=[1, 2.4], sharey=True)
    for k, name in enumerate(results[0]):
        of, colour = [result[name] for result in results], COLOURS[name]
        svms = [one["svm"] for one in of]
        sd = np.std(svms, ddof=1) if len(svms) > 1 else 0.0
        end.errorbar(k, np.mean(svms), sd, fmt=MARKERS[name], color=colour, capsize=3)
        band(way, of[0]["sweeps"], np.array([one["curve"] for one in of]), color=colour, label=READINGS[name][2])
    end.axhspan(PAPER_SVM - PAPER_SD, PAPER_SVM + PAPER_SD, color="#d9d9d9", zorder=0, label="the paper")
    for ax, title in ((end, "SVM on π (figure 2a)"), (way, "label of the prototype (figure 2b)")):
        tidy(ax)
        ax.set_title(title, loc="left", fontsize=NORMAL)
        ax.set_ylim(0, 1)
    end.set(xlim=(-0.6, len(results[0]) - 0.4), xticks=[], ylabel="accuracy")
    end.legend(fontsize=NORMAL, frameon=False, loc="lower left")
    way.set_xlabel("sweep", fontsize=NORMAL)
    figure.legend(*way.get_legend_handles_labels(), loc="outside lower center", fontsize=NORMAL, frameon=False)
    what = "the right end of figure 2a, and figure 2b, by reading of the paper's start and of its α"
    return {f"70 images of each digit, `collapsed`: {what}, mean and standard deviation over seeds": figure}


STARTS = Experiment(
    name="starts",
    title="Digits: readings of the paper's start and of its α",
    paper=f"Both models of the paper start with one half of the labels correct and reach {PAPER_SVM} with α = .01. That can be "
    "read in more than one way: a case's label may be wrong as a whole, or its cells may be mixed; and α = .01 may be the "
    "total or every entry of the Dirichlet parameter. With one wrong label per case and α/S = .001 a case stays where it is "
    "for hundreds of sweeps of the paper's sampler; each of the other two readings sets it free. 70 images of each digit, "
    "λ = 1, c = 50, q = .8, 1,000 sweeps of `collapsed`, one chain. “Label of the prototype” takes the mean of the second half "
    "of the sweeps and the prototypes that are shown, which are members of their clusters; “draw by draw” and figure 2b take "
    "each draw with the prototypes of that draw, of which some are not, and which are right less often.",
    files=(digits.FILE,),
    full={"usps": True, "size": 70, "n_iter": 1000, "thin": THIN, "readings": list(READINGS)},
    quick={"usps": False, "size": 20, "n_iter": 60, "thin": THIN, "readings": list(READINGS)},
    source=digits.source,
    run=run,
    rows=rows,
    figures=figures,
)
