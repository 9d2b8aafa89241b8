"""Figures 2a, 2b and 4a: handwritten digits, by an SVM on the memberships and by the prototypes' own labels."""

import zipfile
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_digits

from ..errors import ParameterError
from ..explaining.render.drawing import SMALL, Sheet
from ..explaining.render.images import EMPTY, MARKED, PLAIN, pixels
from ..fitted import Fitted
from ..lda import ABSENT, fit_lda, has_lda
from ..sampling.plan import one_round
from ..sampling.run import Run
from . import accuracy
from .accuracy import (
    ALPHA,
    LAM,
    MODELS,
    POINTS,
    accuracies,
    called,
    cell_counts,
    half_correct,
    has_tomotopy,
    kinds,
    pixels_as_they_are,
    svm,
    values,
)
from .frame import Experiment, Row, local_file, spread

FILE = "usps_16x16.npz"
S, BINS = 10, 7
FITS = [  # (start, sampler, model), each told apart
    ("half", "rows", "bcm"),
    ("half", "rows", "lda at c = 0"),
    ("half", "collapsed", "bcm"),
    ("seeded", "rows", "bcm"),
    ("seeded", "collapsed", "bcm"),
    ("random", "rows", "bcm"),
    ("random", "collapsed", "bcm"),
]
HELD_OUT = 300  # images of which no label is known, to choose a chain by
SLOW_CHAINS = 2  # of the paper's sampler
MANY = 1000  # seeds apart
THIN = 5
NEAR = 0.5  # nats
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
        raise ParameterError(
            "{parameter}: {path} does not have the arrays X_train (cases × 256) and y_train.", parameter="data", path=path
        ) from error


def sample(images, digits, size, seed):
    """As many of every digit: (cases, digits, labels of our reading of the paper's start, other images)."""
    rng = np.random.default_rng((seed, size))
    rows = np.concatenate([rng.choice(np.flatnonzero(digits == digit), size, replace=False) for digit in range(S)])
    half, others = half_correct(digits[rows], rng), np.setdiff1d(np.arange(len(images)), rows)
    return images[rows], digits[rows], half, images[rng.choice(others, min(HELD_OUT, len(others)), replace=False)]


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, digits = load(settings, data)
    largest, found, history = max(settings["sizes"]), [], []
    for size in settings["sizes"]:
        x, y, half, held_out = sample(images, digits, size, seed)
        for start, sampler, model in settings["fits"]:
            if size not in settings["sizes" if start == "half" and sampler == "rows" else "fewer_sizes"]:
                continue
            init = {"half": half, "seeded": "seeded", "random": "cells"}[start]
            chains = settings["chains"][start] if sampler == "rows" else min(settings["chains"][start], SLOW_CHAINS)
            chosen = best_chain(x, init, sampler, MODELS[model], settings["n_iter"], chains, seed, held_out)
            made = {"size": size, "start": start, "sampler": sampler, "model": model} | measure(chosen, y, seed)
            if size == largest and model == "bcm":
                early = first_half(chosen)
                made |= curve(early, chosen, y)
                if (start, sampler) == ("half", "rows"):
                    history = pictures(early, chosen, x)
            found.append(made)
        if has_lda():
            topics = fit_lda(x, S, alpha=ALPHA, lam=LAM, n_iter=settings["n_iter"], seed=seed)
            made = {"size": size, "start": "random", "sampler": "tomotopy", "model": "lda"}
            found.append(made | {"svm": svm(topics.theta, y, seed)})
    return {"fits": found, "history": history, "shape": [int(images.shape[1] ** 0.5)] * 2}


def best_chain(x, init, sampler, c, n_iter, n_chains, seed, held_out):
    """(model, held-out log probability) of the chain that predicts other images best: no label is looked at."""

    def chain(k):
        length = {"n_iter": n_iter, "burn_in": n_iter // 2, "thin": THIN}
        threads = 1 if n_chains > 1 else None  # for the chains, or within the only one
        model = accuracy.fit_from(init, S, x, sampler, seed * MANY + k, c=c, n_jobs=threads, **length)
        return model, float(model.score(held_out))

    with pixels_as_they_are():
        return max(Parallel(prefer="threads")(delayed(chain)(k) for k in range(n_chains)), key=lambda found: found[1])


def measure(chosen, y, seed):
    model, held_out = chosen
    made = {"svm": svm(model.memberships_, y, seed), "held_out": held_out}
    if model.c > 0:  # without copying, any case is as good a prototype
        made |= {"unsupervised": float((y[model.prototypes_[model.labels_]] == y).mean())}
    return made


def first_half(chosen):
    """The draws of the sweeps before those that were kept, of the same chain: it is run again, and they are kept."""
    model = chosen[0]
    problem, (half, _) = model.fitted_.problem, model.fitted_.kept
    plan = problem.plan._replace(rounds=one_round(half, 0))
    with Run(problem._replace(plan=plan), effective_n_jobs(model.n_jobs)) as run:
        run.advance()
        return Fitted.of_draws(run.problem, run.draws()).draws


def curve(early, chosen, y):
    """How many cases have the label of the prototype that most of them comes from, sweep by sweep."""
    halves = (early, chosen[0].draws_)
    right = np.concatenate([accuracies(cell_counts(half.z[0], S), half.p[0], y) for half in halves])
    at = np.unique(np.linspace(0, len(right) - 1, min(POINTS, len(right))).round().astype(int))
    return {"sweeps": (1 + chosen[0].thin * at).tolist(), "curve": right[at].tolist()}


def pictures(early, chosen, x):
    draws = [(d.p[0][t], d.omega[0][t]) for d in (early, chosen[0].draws_) for t in range(len(d.p[0]))]
    shown = np.unique(np.geomspace(1, len(draws), min(SHOWN, len(draws))).round().astype(int) - 1)
    return [
        {
            "sweep": int(1 + THIN * t),
            "prototypes": as_text(x[draws[t][0]]),
            "subspaces": as_text(draws[t][1].astype(int)),
        }
        for t in shown
    ]


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
            paper, remark = f"{PAPER_SVM} ± {PAPER_SD} (70 per digit)", beside_paper(svms, size, results[0]["shape"], sampler)
        lines.append(Row(f"SVM on π, {size} per digit, {called(start, sampler, model)}", paper, spread(svms), remark))
    for start, sampler, model in kinds(results, model="bcm"):
        paper = "figure only" if start == "half" else "not done"
        right = values(results, "unsupervised", size=size, start=start, sampler=sampler, model=model)
        lines.append(Row(f"unsupervised accuracy, {size} per digit, {called(start, sampler, model)}", paper, spread(right),
                         beside_rows(results, right, size, start, sampler)))  # fmt: skip
    for start, sampler, model in kinds(results, model="bcm"):
        score = values(results, "held_out", size=size, start=start, sampler=sampler, model=model)
        lines.append(Row(f"log probability of a held-out image, {called(start, sampler, model)}", "not done", spread(score, 1),
                         beside_half(results, score, size, start, sampler)))  # fmt: skip
    return lines if has_tomotopy(results) else [*lines, Row("LDA of tomotopy", "", "", ABSENT)]


def beside_paper(svms, size, shape, sampler):
    if shape != [16, 16]:
        return "Other images than the paper's."
    if size != 70:
        return f"Fewer cases than the paper's 70 per digit: {size}."
    off = np.mean(svms) - PAPER_SVM
    where = f"{abs(off):.2f} {'above' if off > 0 else 'below'} the paper"
    if abs(off) <= PAPER_SD:
        return ""
    own = (
        " It is the paper's sampler; other readings of its start and α come further, see below."
        if sampler == "collapsed" and off < 0
        else ""
    )
    return f"{where}, more than its standard deviation.{own}"


def beside_rows(results, right, size, start, sampler):
    """The posterior is the same: where the samplers differ, at least one has not reached it."""
    kind = {"size": size, "start": start, "model": "bcm"}
    if sampler == "rows":
        return falls(values(results, "curve", sampler=sampler, **kind), results)
    off = np.mean(values(results, "unsupervised", sampler="rows", **kind)) - np.mean(right)
    if off <= 0.03:
        return ""
    ours, other = (np.mean(values(results, "held_out", sampler=name, **kind)) for name in (sampler, "rows"))
    if ours > other - NEAR:
        return f"{off:.2f} below `rows`, though held-out images are as probable: other clusters, to the model as good."
    return f"{off:.2f} below `rows`: the sampler has not come as far in these sweeps."


def falls(curves, results):
    """Is it lower in the end than it was? Then the chain leaves labels that it was started with."""
    mean, sweeps = np.mean(curves, axis=0), values(results, "sweeps")[0]
    best = int(mean.argmax())
    if mean[best] - mean[-1] <= 0.03:
        return ""
    return f"Sweep by sweep {mean[best]:.2f} at sweep {sweeps[best]} and {mean[-1]:.2f} in the end: the chain forgets labels."


def beside_half(results, score, size, start, sampler):
    """Are the clusters that are the digits those that predict best?"""
    if start == "half":
        return ""
    off = np.mean(score) - np.mean(values(results, "held_out", size=size, start="half", sampler=sampler, model="bcm"))
    how = f"{abs(off):.1f} nats {'better' if off > 0 else 'worse'} than" if abs(off) > NEAR else "As good as"
    return f"{how} the one chain with labels; the best of several chains, chosen by this number."


def figures(results: list[dict]) -> dict:
    return {
        "Figure 2a: accuracy of a linear SVM on the memberships, with standard deviations over seeds": accuracy.svm_figure(
            results, "digit"
        ),
        "Figure 2b: unsupervised accuracy by sweep, mean and standard deviation over seeds": accuracy.curve_figure(
            results, "digit"
        ),
        "Figure 4a: prototypes and subspaces over the sweeps, from our reading of its start (first seed)": history_figure(
            results[0]
        ),
    }


def in_columns(history):
    """Clusters are numbered anew by size in each half of the chain; here a column stays with what looks alike."""
    drawn: list[dict] = []
    for draw in history:
        images = np.array([list(image) for image in draw["prototypes"]])
        order = np.arange(len(images))
        if drawn:
            before = np.array([list(image) for image in drawn[-1]["prototypes"]])
            order = linear_sum_assignment((before[:, None] == images[None]).sum(axis=2), maximize=True)[1]
        drawn.append(draw | {name: [draw[name][s] for s in order] for name in ("prototypes", "subspaces")})
    return drawn


def history_figure(result):
    size, step, shape, history = 0.8, 0.9, result["shape"], result["history"]
    sheet = Sheet(1.2 + step * S, 0.5 + step * len(history))
    sheet.write(1.1, 0.2, "Dark: ink that matters; dots: empty pixels that matter; grey: does not matter", size=SMALL)
    for k, draw in enumerate(in_columns(history)):
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
    "cross-validated in five folds; the unsupervised accuracy gives each case the label of its prototype. Where there are "
    "several chains, the one that gives other images (300, without their labels) the highest probability is reported: of 8 "
    "chains seeded, 2 at random, and 2 of the paper's sampler; one chain from our reading of its start, which alone with "
    "`rows` was run at all sizes.",
    files=(FILE,),
    full={
        "usps": True,
        "sizes": [10, 20, 30, 40, 50, 60, 70],
        "fewer_sizes": [10, 70],  # for what the paper has not
        "fits": FITS,
        "n_iter": 1000,
        "chains": {"half": 1, "seeded": 8, "random": 2},
    },
    quick={
        "usps": False,
        "sizes": [10, 30],
        "fewer_sizes": [10, 30],
        "fits": FITS,
        "n_iter": 100,
        "chains": {"half": 1, "seeded": 2, "random": 2},
    },
    source=source,
    run=run,
    figures=figures,
    rows=rows,
)
