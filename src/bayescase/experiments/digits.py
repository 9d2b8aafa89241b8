"""Figures 2a, 2b and 4a: handwritten digits, by an SVM on the memberships and by the prototypes' own labels.

Starts are always told apart: `half` is the paper's, one half of the labels correct and the other half wrong; `seeded` and
`random` (a label per cell) know no label. The same-start comparison with LDA is this model at c = 0.
"""

import warnings
import zipfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from ..cards import EMPTY, MARKED, PLAIN, pixels
from ..drawing import NORMAL, SMALL, Sheet, new_figure, tidy
from ..estimator import BayesianCaseModel
from .frame import Experiment, Row, local_file, spread
from .lda import ABSENT, fit_lda, has_lda

FILE = "usps_16x16.npz"
S, BINS, FOLDS = 10, 7, 5
ALPHA, LAM, Q = 0.01, 1.0, 0.8
MODELS = {"bcm": 50.0, "lda at c = 0": 0.0}
SHORT = {"bcm": "BCM", "lda at c = 0": "LDA (BCM at c = 0)", "lda": "LDA"}
STARTS = {"half": "half of the labels correct", "seeded": "seeded, no label", "random": "random, no label"}
POINTS = 40  # of a curve over sweeps
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


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, digits = load(settings, data)
    found = []
    for size in settings["sizes"]:
        rng = np.random.default_rng((seed, size))
        rows = np.concatenate([rng.choice(np.flatnonzero(digits == digit), size, replace=False) for digit in range(S)])
        x, y = images[rows], digits[rows]
        half = half_correct(y, rng)
        for start in STARTS:
            for sampler in settings["samplers"]:
                for model, c in MODELS.items():
                    init = {"half": half, "seeded": "seeded", "random": "cells"}[start]
                    made, drawn = fit(x, y, init, sampler, c, settings, seed)
                    found.append({"size": size, "start": start, "sampler": sampler, "model": model} | made)
                    if (start, sampler, model) == ("half", settings["samplers"][0], "bcm"):
                        history = drawn  # of the largest sample in the end
        if has_lda():
            topics = fit_lda(x, S, alpha=ALPHA, lam=LAM, n_iter=settings["n_iter"], seed=seed)
            made = {"size": size, "start": "random", "sampler": "tomotopy", "model": "lda"}
            found.append(made | {"svm": svm(topics.theta, y, seed)})
    return {"fits": found, "history": history, "shape": [int(images.shape[1] ** 0.5)] * 2}


def half_correct(y, rng):
    """The paper's start: one half of the labels are wrong, the others right."""
    wrong = rng.permutation(len(y)) < len(y) // 2
    return np.where(wrong, (y + rng.integers(1, S, size=len(y))) % S, y)


def fit(x, y, init, sampler, c, settings, seed):
    """(numbers, pictures) of one fit, every draw kept from the first sweep on: of the best chain, after half of its sweeps."""
    model = BayesianCaseModel(
        S,
        alpha=ALPHA,
        lam=LAM,
        c=c,
        q=Q,
        sampler=sampler,
        n_iter=settings["n_iter"],
        burn_in=0,
        thin=settings["thin"],
        n_chains=1 if isinstance(init, np.ndarray) else settings["n_chains"],
        init=init,
        feature_types="integer",
        keep_draws=True,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Features? .* one value only")  # pixels at the edge
        model.fit(x)
    draws, late = model.draws_, len(model.draws_.p[0]) // 2
    best = int(draws.log_joint[:, late:].mean(axis=1).argmax())  # no label is looked at
    z, p, omega = draws.z[best], draws.p[best], draws.omega[best]
    n = np.stack([(z == s).sum(axis=2) for s in range(S)], axis=2)  # (draws, cases, clusters)
    pi = ((n[late:] + ALPHA / S) / (x.shape[1] + ALPHA)).mean(axis=0)
    # A case has the label of the prototype that most of it comes from.
    right = np.array([(y[p[t][n[t].argmax(axis=1)]] == y).mean() for t in range(len(p))])
    at = np.unique(np.linspace(0, len(p) - 1, min(POINTS, len(p))).round().astype(int))
    shown = np.unique(np.geomspace(1, len(p), min(SHOWN, len(p))).round().astype(int) - 1)
    sweep = 1 + settings["thin"] * np.arange(len(p))
    made = {"svm": svm(pi, y, seed)}
    if c > 0:  # without copying, any case is as good a prototype
        made |= {"unsupervised": float(right[late:].mean()), "sweeps": sweep[at].tolist(), "curve": right[at].tolist()}
    return made, [
        {"sweep": int(sweep[t]), "prototypes": as_text(x[p[t]]), "subspaces": as_text(omega[t].astype(int))} for t in shown
    ]


def svm(pi, y, seed):
    """Accuracy of a linear SVM on the memberships, cross-validated."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(SVC(kernel="linear"), pi, y, cv=folds).mean())


def as_text(rows):
    """A digit per pixel: pictures take little room in JSON."""
    return ["".join(map(str, row)) for row in rows.tolist()]


# --- the page -----------------------------------------------------------------------------------------------------------


def values(results, what, **where):
    """This number of every seed, of the fits that have it and match."""
    fits = (fit for result in results for fit in result["fits"])
    return [fit[what] for fit in fits if what in fit and all(fit[name] == value for name, value in where.items())]


def kinds(results, **where):
    """The (start, sampler, model) that there are, in the order in which they were run."""
    fits = results[0]["fits"]
    found = dict.fromkeys((f["start"], f["sampler"], f["model"]) for f in fits if all(f[k] == v for k, v in where.items()))
    return list(found)


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


def has_tomotopy(results):
    return any(fit["sampler"] == "tomotopy" for fit in results[0]["fits"])


def beside_paper(svms, size, shape):
    if shape != [16, 16]:
        return "Other images than the paper's."
    if size != 70:
        return f"Fewer cases than the paper's 70 per digit: {size}."
    off = np.mean(svms) - PAPER_SVM
    where = f"{abs(off):.2f} {'above' if off > 0 else 'below'} the paper"
    return "" if abs(off) <= PAPER_SD else f"{where}, more than its standard deviation."


def called(start, sampler, model):
    return f"{SHORT[model]}, start: {STARTS[start]}, sampler: {sampler}"


def figures(results: list[dict]) -> dict:
    return {
        "Figure 2a: accuracy of a linear SVM on the memberships, with standard deviations over seeds": svm_figure(results),
        "Figure 2b: unsupervised accuracy by sweep, mean over seeds": curve_figure(results),
        "Figure 4a: prototypes and subspaces over the sweeps, from the paper's start (first seed)": history_figure(results[0]),
    }


COLOURS = {"bcm": "#17375e", "lda at c = 0": "#c04a00", "lda": "#595959"}
STYLES = {"rows": "-", "collapsed": "--", "tomotopy": ":"}


def panels():
    """A figure with a panel per start: they are never mixed."""
    figure = new_figure(11, 3.8)
    axes = figure.subplots(1, len(STARTS), sharey=True)
    for ax, words in zip(axes, STARTS.values(), strict=True):
        tidy(ax)
        ax.set_title(f"start: {words}", loc="left", fontsize=NORMAL)
        ax.set_ylim(0, 1)
    return figure, dict(zip(STARTS, axes, strict=True))


def svm_figure(results):
    sizes = sorted({fit["size"] for fit in results[0]["fits"]})
    figure, axes = panels()
    for start, ax in axes.items():
        for _, sampler, model in kinds(results, start=start):
            found = [values(results, "svm", size=n, start=start, sampler=sampler, model=model) for n in sizes]
            means, sds = [np.mean(v) for v in found], [np.std(v, ddof=1) if len(v) > 1 else 0.0 for v in found]
            look = {"color": COLOURS[model], "ls": STYLES[sampler], "label": f"{SHORT[model]}, {sampler}", "marker": "o"}
            ax.errorbar(sizes, means, sds, capsize=2, ms=3, lw=1.4, **look)
        ax.set(xlabel="cases per digit", xticks=sizes)
        ax.legend(fontsize=7, frameon=False, loc="lower right")
    axes["half"].set_ylabel("accuracy, SVM on π")
    return figure


def curve_figure(results):
    size = max(fit["size"] for fit in results[0]["fits"])
    figure, axes = panels()
    for start, ax in axes.items():
        for _, sampler, model in kinds(results, start=start, model="bcm"):
            where = {"size": size, "start": start, "sampler": sampler, "model": model}
            sweeps, curves = values(results, "sweeps", **where)[0], np.array(values(results, "curve", **where))
            mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1) if len(curves) > 1 else 0.0
            ax.plot(sweeps, mean, color=COLOURS[model], ls=STYLES[sampler], lw=1.4, label=sampler)
            ax.fill_between(sweeps, mean - sd, mean + sd, color=COLOURS[model], alpha=0.15, lw=0)
        ax.set_xlabel("sweep")
        ax.legend(fontsize=7, frameon=False, loc="lower right", title=f"{size} per digit", title_fontsize=7)
    axes["half"].set_ylabel("unsupervised accuracy")
    return figure


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
    figures=figures,
    rows=rows,
)
