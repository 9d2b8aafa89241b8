"""What figures 2a to 2c share: a fit from a start, how well it tells the classes apart, and panels by start.

Starts are always told apart: `half` is the paper's, one half of the labels correct and the other half wrong; `seeded` and
`random` know no label. The same-start comparison with LDA is this model at c = 0.
"""

import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import NORMAL, new_figure, tidy

ALPHA, LAM, C, Q = 0.01, 1.0, 50.0, 0.8
FOLDS = 5
POINTS = 40  # of a curve over sweeps
MODELS = {"bcm": C, "lda at c = 0": 0.0}
SHORT = {"bcm": "BCM", "lda at c = 0": "LDA (BCM at c = 0)", "lda": "LDA"}
STARTS = {"half": "half of the labels correct", "seeded": "seeded, no label", "random": "random, no label"}


class Chain(NamedTuple):
    """The chain that is reported: every draw that was kept, from the first sweep on."""

    sweep: np.ndarray  # (draws,)
    p: np.ndarray  # (draws, S)
    omega: np.ndarray  # (draws, S, P)
    labels: np.ndarray  # (N,) the cluster with the largest membership


def half_correct(y, rng):
    """Our reading of the paper's start: one half of the labels are wrong, the others right."""
    S = int(y.max()) + 1
    wrong = rng.permutation(len(y)) < len(y) // 2
    return np.where(wrong, (y + rng.integers(1, S, size=len(y))) % S, y)


def fit(x, y, init, sampler, settings, seed, *, c=C, lam=LAM, q=Q):
    """(numbers, chain) of one fit with as many clusters as classes: of the best chain, after half of its sweeps."""
    S = int(y.max()) + 1
    length = {"n_iter": settings["n_iter"], "burn_in": 0, "thin": settings["thin"]}
    n_chains = 1 if isinstance(init, np.ndarray) else settings["n_chains"]
    with pixels_as_they_are():
        model = fit_from(init, S, x, sampler, seed, c=c, lam=lam, q=q, n_chains=n_chains, **length)
    draws, late = model.draws_, len(model.draws_.p[0]) // 2
    best = int(draws.log_joint[:, late:].mean(axis=1).argmax())  # no label is looked at
    z, p, omega = draws.z[best], draws.p[best], draws.omega[best]
    n = cell_counts(z, S)
    pi = ((n[late:] + ALPHA / S) / (x.shape[1] + ALPHA)).mean(axis=0)
    prototypes = np.array([np.bincount(p[late:, s]).argmax() for s in range(S)])
    # A case has the label of the prototype that most of it comes from: on average over the draws, and draw by draw.
    same = float((y[prototypes][pi.argmax(axis=1)] == y).mean())
    right = accuracies(n, p, y)
    at = np.unique(np.linspace(0, len(p) - 1, min(POINTS, len(p))).round().astype(int))
    sweep = 1 + settings["thin"] * np.arange(len(p))
    made = {"svm": svm(pi, y, seed)}
    if c > 0:  # without copying, any case is as good a prototype
        made |= {"unsupervised": same, "sweeps": sweep[at].tolist(), "curve": right[at].tolist()}
    return made, Chain(sweep, p, omega, pi.argmax(axis=1))


def fit_from(init, S, x, sampler, seed, *, c=C, lam=LAM, q=Q, n_chains=1, **more):
    """The paper's model from a kind of start or from labels, every draw kept; `more` are other parameters of it."""
    kept = {"keep_draws": True, "encoder": {"feature_types": "integer"}, "random_state": seed}
    labels, start = (init, {}) if isinstance(init, np.ndarray) else (None, {"init": init})
    model = BayesianCaseModel(
        S, alpha=ALPHA, lam=lam, c=c, q=q, sampler=sampler, n_chains=n_chains, **start, **more, **kept
    )  # fmt: skip
    return model.fit(x, init=labels)


@contextmanager
def pixels_as_they_are():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Features? .* one value only")  # at the edge
        warnings.filterwarnings("ignore", message=".* never seen in fit")  # the same cells for every chain
        yield


def cell_counts(z, S):
    """(draws, cases, clusters) How many cells of a case have each label."""
    return np.stack([(z == s).sum(axis=2) for s in range(S)], axis=2)


def accuracies(n, p, y):
    """(draws,) How many cases have the label of the prototype that most of them comes from, by the counts n."""
    return np.array([(y[p[t][n[t].argmax(axis=1)]] == y).mean() for t in range(len(p))])


def svm(pi, y, seed):
    """Accuracy of a linear SVM on the memberships, cross-validated."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    return float(cross_val_score(SVC(kernel="linear"), pi, y, cv=folds).mean())


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


def has_tomotopy(results):
    return any(fit["sampler"] == "tomotopy" for fit in results[0]["fits"])


def called(start, sampler, model):
    return f"{SHORT[model]}, start: {STARTS[start]}, sampler: {sampler}"


COLOURS = {"bcm": "#17375e", "lda at c = 0": "#c04a00", "lda": "#595959"}
STYLES = {"rows": "-", "collapsed": "--", "tomotopy": ":"}
MARKERS = {"rows": "o", "collapsed": "s", "tomotopy": "^"}


def panels():
    """A figure with a panel per start: they are never mixed."""
    figure = new_figure(11, 3.8)
    axes = figure.subplots(1, len(STARTS), sharey=True)
    for ax, words in zip(axes, STARTS.values(), strict=True):
        tidy(ax)
        ax.set_title(f"start: {words}", loc="left", fontsize=NORMAL)
        ax.set_ylim(0, 1)
    return figure, dict(zip(STARTS, axes, strict=True))


def band(ax, at, curves, *, color, **look):
    """A line at the mean over seeds, and a band of one standard deviation; curves are (seeds, points)."""
    mean, sd = curves.mean(axis=0), curves.std(axis=0, ddof=1) if len(curves) > 1 else 0.0
    ax.plot(at, mean, color=color, lw=1.4, **look)
    ax.fill_between(at, mean - sd, mean + sd, color=color, alpha=0.15, lw=0)


def svm_figure(results, per, **where):
    """Accuracy of the SVM by the number of cases `per` class."""
    figure, axes = panels()
    widest = max(values(results[:1], "size", **where))
    for start, ax in axes.items():
        for _, sampler, model in kinds(results, start=start, **where):
            kind = {"start": start, "sampler": sampler, "model": model, **where}
            sizes = sorted(set(values(results[:1], "size", **kind)))
            found = [values(results, "svm", size=n, **kind) for n in sizes]
            means, sds = [np.mean(v) for v in found], [np.std(v, ddof=1) if len(v) > 1 else 0.0 for v in found]
            look = {"color": COLOURS[model], "ls": STYLES[sampler], "marker": MARKERS[sampler]}
            look |= {"mfc": "none" if sampler == "collapsed" else COLOURS[model], "label": f"{SHORT[model]}, {sampler}"}
            if len(sizes) < 3:
                look["ls"] = "none"  # two points are no trend
            aside = widest * 0.02 * (1 + (model != "bcm")) * (sampler == "collapsed")  # so that no marker hides another
            ax.errorbar(np.array(sizes) + aside, means, sds, capsize=2, ms=4, lw=1.4, **look)
        ax.set(xlabel=f"cases per {per}", xticks=sorted(set(values(results[:1], "size", **where))))
        ax.legend(fontsize=7, frameon=False, loc="lower right")
    axes["half"].set_ylabel("accuracy, SVM on π")
    return figure


def curve_figure(results, per, **where):
    """Unsupervised accuracy by sweep, at the largest size that a sampler was run on."""
    figure, axes = panels()
    for start, ax in axes.items():
        for _, sampler, model in kinds(results, start=start, model="bcm", **where):
            kind = {"start": start, "sampler": sampler, "model": model, **where}
            size = max(values(results[:1], "size", **kind))
            sweeps = values(results, "sweeps", size=size, **kind)[0]
            curves = np.array(values(results, "curve", size=size, **kind))
            band(ax, sweeps, curves, color=COLOURS[model], ls=STYLES[sampler], label=f"{sampler}, {size} per {per}")
        ax.set_xlabel("sweep")
        ax.legend(fontsize=7, frameon=False, loc="lower right")
    axes["half"].set_ylabel("unsupervised accuracy")
    return figure
