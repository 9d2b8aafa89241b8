"""What the posterior supports on handwritten digits: our reading of the paper's start and one without labels, both run on."""

from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from ..explaining.render.drawing import NORMAL, new_figure, tidy
from ..sampling.diagnostics import LARGEST_R_HAT, r_hat
from ..sampling.posterior import in_common, match
from . import accuracy, digits
from .accuracy import POINTS, STARTS, band, pixels_as_they_are, values
from .frame import Experiment, Row, error, spread

LABELS = {"half": "with labels", "seeded": "without labels"}
MEETING = ("log_joint", "purity")  # of no label: to be the same from both starts


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, labels = digits.load(settings, data)
    x, y, half, held_out = digits.sample(images, labels, settings["size"], seed)
    n_iter = settings["n_iter"]

    def chain(k, init):
        length = {"n_iter": n_iter, "burn_in": n_iter // 2, "thin": settings["thin"]}
        model = accuracy.fit_from(init, digits.S, x, "rows", seed * digits.MANY + k, n_jobs=1, **length)
        chosen = (model, float(model.score(held_out)))
        return model, digits.measure(chosen, y, seed) | digits.curve(digits.first_half(chosen), chosen, y)

    with pixels_as_they_are():
        found = Parallel(prefer="threads")(delayed(chain)(k, init) for k, init in enumerate((half, "seeded")))
    models = [model for model, _ in found]
    at = np.unique(np.geomspace(1, n_iter, min(POINTS, n_iter)).round().astype(int) - 1)
    return {
        "fits": [
            {"start": start, "at": (at + 1).tolist(), "log_joint": model.log_joint_[0, at].tolist()} | numbers
            for start, (model, numbers) in zip(LABELS, found, strict=True)
        ],
        "shared": shared(*(model.memberships_ for model in models)),
        "r_hat": {name: float(r_hat(np.array([m.fitted_.trace[name][0, n_iter // 2 :] for m in models]))) for name in MEETING},
        "size": settings["size"],
        "n_iter": n_iter,
    }


def shared(a, b):
    """The membership that two chains have in common, clusters matched."""
    return float(in_common(a, b, np.argsort(match(a.T @ b, np.zeros(a.shape[1])))))


# --- the page -----------------------------------------------------------------------------------------------------------


def rows(results: list[dict]) -> list[Row]:
    size, n_iter = results[0]["size"], results[0]["n_iter"]
    when = f"{size} per digit, sweeps {n_iter // 2:,} to {n_iter:,}"
    lines = []
    for what, words, places in (
        ("unsupervised", "unsupervised accuracy", 2),
        ("svm", "SVM on π", 2),
        ("held_out", "log probability of a held-out image", 1),
    ):
        for start in LABELS:
            numbers = values(results, what, start=start)
            remark = beside(results, what, places) if start == "half" else ""
            lines.append(Row(f"{words}, {when}, start: {STARTS[start]}", "not done", spread(numbers, places), remark))
    both = [result["shared"] for result in results]
    lines.append(Row("share of the memberships that the two chains have in common", "not done", spread(both)))
    for name in MEETING:
        found = [result["r_hat"][name] for result in results]
        apart = sum(value > LARGEST_R_HAT for value in found)
        words = f"R-hat of the {name.replace('_', ' ')} over the two chains, median"
        remark = f"Above {LARGEST_R_HAT} for {apart} of {len(found)} seeds: there the chains have not met." if apart else ""
        lines.append(Row(words, "not done", f"{np.median(found):.2f}", remark))
    ends = sorted(np.mean(values(results, "unsupervised", start=start)) for start in LABELS)
    words = "so, unsupervised accuracy that the posterior supports, as far as the chains tell"
    return [*lines, Row(words, "figure only", f"{ends[0]:.2f} to {ends[1]:.2f}")]


def beside(results, what, places):
    """Is it still another than without labels? Pairs of the same seed."""
    off = np.subtract(values(results, what, start="half"), values(results, what, start="seeded"))
    by = f"{abs(off.mean()):.{places + 1}f} {'above' if off.mean() > 0 else 'below'} the start without labels"
    if len(off) < 2:
        return f"{by}, one seed."
    se = error(off)
    return f"{by}, ± {se:.{places + 1}f} (standard error){': no difference seen' if abs(off.mean()) <= 2 * se else ''}."


COLOURS = {"half": "#17375e", "seeded": "#c04a00"}
LOOKS = {"half": "-", "seeded": "--"}


def figures(results: list[dict]) -> dict:
    figure = new_figure(11, 3.8)
    joint, right = figure.subplots(1, 2)
    late = np.array(results[0]["fits"][1]["at"]) > results[0]["n_iter"] // 2
    end = [np.array(result["fits"][1]["log_joint"])[late].mean() for result in results]
    for start, words in LABELS.items():
        at, sweeps = values(results, "at", start=start)[0], values(results, "sweeps", start=start)[0]
        level = np.array(values(results, "log_joint", start=start)) - np.array(end)[:, None]
        for ax, places, curves in ((joint, at, level), (right, sweeps, np.array(values(results, "curve", start=start)))):
            band(ax, places, curves, color=COLOURS[start], ls=LOOKS[start], label=f"start {words}")
    for ax, title in ((joint, "log joint, less that of the second half without labels"), (right, "unsupervised accuracy")):
        tidy(ax)
        ax.set_title(title, loc="left", fontsize=NORMAL)
        ax.set_xlabel("sweep")
        ax.legend(fontsize=7, frameon=False, loc="upper right")
    joint.set_xscale("log")
    right.set_ylim(0, 1)
    return {"The same images from both starts, mean and standard deviation over seeds": figure}


AGREEMENT = Experiment(
    name="agreement",
    title="Handwritten digits, run on from both kinds of start",
    paper="Not in the paper: does what the chain knows about the digits come from the model or from the labels that it started "
    "with? The same 70 images of each digit and settings as above, ten times as many sweeps, once from one half of the labels "
    "correct and once seeded without any, one chain each. Where the two have met, that is what the posterior supports; R-hat "
    "says whether they have, of quantities that know no label. Purity is the share of a case in its main cluster. The log "
    "joint falls at first because a start has one label per case, which is more probable than any mixed case, but there are "
    "far more of these.",
    files=(digits.FILE,),
    full={"usps": True, "size": 70, "n_iter": 10_000, "thin": 50},
    quick={"usps": False, "size": 20, "n_iter": 200, "thin": 5},
    source=digits.source,
    run=run,
    rows=rows,
    figures=figures,
)
