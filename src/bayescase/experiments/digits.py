"""Figures 2a, 2b and 4a: handwritten digits, by an SVM on the memberships and by the prototypes' own labels."""

import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ..cards import EMPTY, MARKED, PLAIN, pixels
from ..drawing import SMALL, Sheet
from . import accuracy
from .accuracy import ALPHA, LAM, MODELS, STARTS, called, half_correct, has_tomotopy, kinds, values
from .frame import Experiment, Row, local_file, spread
from .lda import ABSENT, fit_lda, has_lda

FILE = "usps_16x16.npz"
S, BINS = 10, 7
SHOWN = 5  # sweeps at which prototypes are drawn
PAPER_SVM, PAPER_SD = 0.77, 0.03


def source(settings: dict, data: Path | None) -> str:
    return (
        "USPS digits of 16 × 16 pixels" if path_of(settings, data) else "scikit-learn's digits of 8 × 8 pixels, not the paper's"
    )


def path_of(settings, data):
    return local_file(data, FILE) if settings["usps"] else None


def load(settings, data):
    """Images in seven bins, and their digits."""
    path = path_of(settings, data)
    if path is None:
        digits = load_digits()
        return (digits.data * BINS / 17).astype(int), digits.target
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            x, y = file["X_train"], file["y_train"]
            return (x.reshape(len(y), 256).astype(int) * BINS // 256), y.astype(int)
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"--data: {path} does not have the arrays X_train (cases × 256) and y_train.") from error


def sample(images, digits, size, seed):
    """(cases, digits, labels of the paper's start): as many of every digit."""
    rng = np.random.default_rng((seed, size))
    rows = np.concatenate([rng.choice(np.flatnonzero(digits == digit), size, replace=False) for digit in range(S)])
    return images[rows], digits[rows], half_correct(digits[rows], rng)


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, digits = load(settings, data)
    found = []
    for size in settings["sizes"]:
        x, y, half = sample(images, digits, size, seed)
        for start in STARTS:
            for sampler in settings["samplers"]:
                for model, c in MODELS.items():
                    init = {"half": half, "seeded": "seeded", "random": "cells"}[start]
                    made, chain = accuracy.fit(x, y, init, sampler, settings, seed, c=c)
                    found.append({"size": size, "start": start, "sampler": sampler, "model": model} | made)
                    if (start, sampler, model) == ("half", settings["samplers"][0], "bcm"):
                        history = pictures(x, chain)  # of the largest sample in the end
        if has_lda():
            topics = fit_lda(x, S, alpha=ALPHA, lam=LAM, n_iter=settings["n_iter"], seed=seed)
            made = {"size": size, "start": "random", "sampler": "tomotopy", "model": "lda"}
            found.append(made | {"svm": accuracy.svm(topics.theta, y, seed)})
    return {"fits": found, "history": history, "shape": [int(images.shape[1] ** 0.5)] * 2}


def pictures(x, chain):
    """Prototypes and subspaces at a few sweeps."""
    sweep, p, omega, _ = chain
    shown = np.unique(np.geomspace(1, len(p), min(SHOWN, len(p))).round().astype(int) - 1)
    return [{"sweep": int(sweep[t]), "prototypes": as_text(x[p[t]]), "subspaces": as_text(omega[t].astype(int))} for t in shown]


def as_text(rows):
    """A digit per pixel: pictures take little room in JSON."""
    return ["".join(map(str, row)) for row in rows.tolist()]


# --- the page -----------------------------------------------------------------------------------------------------------


def rows(results: list[dict]) -> list[Row]:
    size = max(fit["size"] for fit in results[0]["fits"])
    lines = []
    for start, sampler, model in kinds(results):
        svms = values(results, "svm", size=size, start=start, sampler=sampler, model=model)
        paper, remark = ("figure only" if start == "half" else "not done"), ""
        if model == "bcm" and start == "half":
            paper, remark = f"{PAPER_SVM} ± {PAPER_SD} (70 per digit)", beside_paper(svms, size, results[0]["shape"])
        lines.append(Row(f"SVM on π, {size} per digit, {called(start, sampler, model)}", paper, spread(svms), remark))
    for start, sampler, model in kinds(results, model="bcm"):
        paper = "figure only" if start == "half" else "not done"
        right = values(results, "unsupervised", size=size, start=start, sampler=sampler, model=model)
        lines.append(Row(f"unsupervised accuracy, {size} per digit, {called(start, sampler, model)}", paper, spread(right)))
    return lines if has_tomotopy(results) else [*lines, Row("LDA of tomotopy", "", "", ABSENT)]


def beside_paper(svms, size, shape):
    if shape != [16, 16]:
        return "Other images than the paper's."
    if size != 70:
        return f"Fewer cases than the paper's 70 per digit: {size}."
    off = np.mean(svms) - PAPER_SVM
    where = f"{abs(off):.2f} {'above' if off > 0 else 'below'} the paper"
    return "" if abs(off) <= PAPER_SD else f"{where}, more than its standard deviation."


def figures(results: list[dict]) -> dict:
    return {
        "Figure 2a: accuracy of a linear SVM on the memberships, with standard deviations over seeds": accuracy.svm_figure(
            results, "digit"
        ),
        "Figure 2b: unsupervised accuracy by sweep, mean over seeds": accuracy.curve_figure(results, "digit"),
        "Figure 4a: prototypes and subspaces over the sweeps, from the paper's start (first seed)": history_figure(results[0]),
    }


def history_figure(result):
    size, step, shape, history = 0.8, 0.9, result["shape"], result["history"]
    sheet = Sheet(1.2 + step * S, 0.5 + step * len(history))
    sheet.write(1.1, 0.2, "Dark: ink that matters; dots: empty pixels that matter; grey: does not matter", size=SMALL)
    for k, draw in enumerate(history):
        y = 0.4 + step * k
        sheet.write(0.15, y + size / 2, f"sweep {draw['sweep']}", size=SMALL)
        for s, (image, subspace) in enumerate(zip(draw["prototypes"], draw["subspaces"], strict=True)):
            ink = np.array([int(v) for v in image]) / (BINS - 1)
            key = np.array([v == "1" for v in subspace])
            roles = np.where(~key, PLAIN, np.where(ink > 0, MARKED, EMPTY))
            pixels(sheet, 1.1 + step * s, y, size, ink.reshape(shape), roles.reshape(shape))
    return sheet.figure


DIGITS = Experiment(
    name="digits",
    title="Handwritten digits (figures 2a, 2b and 4a)",
    paper="10 to 70 images of each digit in seven bins, S = 10, α = .01, λ = 1, c = 50, q = .8, 1,000 iterations. Both "
    "models of the paper start with one half of the labels correct. The accuracy on π is that of a linear SVM, here "
    "cross-validated in five folds; the unsupervised accuracy gives each case the label of its prototype. Without labels, "
    "the chain with the highest mean log joint is reported.",
    files=(FILE,),
    full={
        "usps": True,
        "sizes": [10, 20, 30, 40, 50, 60, 70],
        "samplers": ["rows", "collapsed"],
        "n_iter": 1000,
        "thin": 5,
        "n_chains": 4,
    },
    quick={"usps": False, "sizes": [10, 30], "samplers": ["rows", "collapsed"], "n_iter": 100, "thin": 2, "n_chains": 2},
    source=source,
    run=run,
    rows=rows,
    figures=figures,
)
