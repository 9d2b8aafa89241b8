"""Figure 2c: how much the accuracy on handwritten digits depends on q, λ and c, one at a time."""

from pathlib import Path

import numpy as np

from ..explaining.render.drawing import NORMAL, new_figure, tidy
from . import accuracy, digits
from .accuracy import LAM, C, Q, band, values
from .frame import Experiment, Row, spread

PAPER = {"q": Q, "lam": LAM, "c": C}
SYMBOLS = {"q": "q", "lam": "λ", "c": "c"}
MEASURES = {"svm": "SVM on π", "unsupervised": "unsupervised accuracy"}
CLOSE = 0.03


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, labels = digits.load(settings, data)
    x, y, half, _ = digits.sample(images, labels, settings["size"], seed)
    base, _ = accuracy.fit(x, y, half, "rows", settings, seed)
    found = []
    for name, paper in PAPER.items():
        for value in settings[name]:
            made = base if value == paper else accuracy.fit(x, y, half, "rows", settings, seed, **{name: value})[0]
            numbers = {what: made[what] for what in MEASURES if what in made}
            found.append({"parameter": name, "value": value} | numbers)
    return {"fits": found, "size": settings["size"]}


# --- the page -----------------------------------------------------------------------------------------------------------


def means(results, name, what):
    """{value: mean over seeds} of a parameter, in the order of its values."""
    tried = sorted({fit["value"] for fit in results[0]["fits"] if fit["parameter"] == name and what in fit})
    return {value: float(np.mean(values(results, what, parameter=name, value=value))) for value in tried}


def good_range(found, paper):
    """The values next to the paper's, both ways, until the accuracy is more than CLOSE below that at the paper's."""
    tried, floor = list(found), found[paper] - CLOSE
    low = high = tried.index(paper)
    while low > 0 and found[tried[low - 1]] >= floor:
        low -= 1
    while high + 1 < len(tried) and found[tried[high + 1]] >= floor:
        high += 1
    return tried[low], tried[high]


def rows(results: list[dict]) -> list[Row]:
    size = results[0]["size"]
    lines = [
        Row(
            f"{words}, {size} per digit, at the paper's values",
            "0.77 ± 0.03" if what == "svm" else "figure only",
            spread(values(results, what, parameter="q", value=Q)),
        )
        for what, words in MEASURES.items()
    ]
    for name, symbol in SYMBOLS.items():
        for what, words in MEASURES.items():
            found = means(results, name, what)
            low, high = good_range(found, PAPER[name])
            good = f"{symbol} from {low:g} to {high:g}" if low < high else f"{symbol} = {low:g} alone"
            line = f"{words}: range of {symbol} that costs at most {CLOSE} beside {symbol} = {PAPER[name]:g}"
            ours = f"{good}, of {min(found):g} to {max(found):g}"
            lines.append(Row(line, "“not too sensitive”", ours, beyond(found, symbol, PAPER[name], low, high)))
    return lines


def beyond(found, symbol, paper, low, high):
    """Where it breaks, and where it is better."""
    said = [
        f"{found[value]:.2f} at {symbol} = {value:g}"
        for value in (max((v for v in found if v < low), default=None), min((v for v in found if v > high), default=None))
        if value is not None
    ]
    best = max(found, key=lambda value: found[value])
    parts = [f"Beyond: {' and '.join(said)}." if said else "It does not break where tried."]
    if found[best] > found[paper] + CLOSE:
        parts.append(f"Better than at the paper's value: {found[best]:.2f} at {symbol} = {best:g}.")
    return " ".join(parts)


COLOURS = {"svm": "#17375e", "unsupervised": "#c04a00"}
LOOKS = {"svm": "-", "unsupervised": "--"}


def figures(results: list[dict]) -> dict:
    figure = new_figure(11, 3.6)
    for ax, (name, symbol) in zip(figure.subplots(1, len(PAPER), sharey=True), SYMBOLS.items(), strict=True):
        tidy(ax)
        tried = list(means(results, name, "svm"))  # evenly spaced: the scales run over decades
        for what, words in MEASURES.items():
            found = {value: values(results, what, parameter=name, value=value) for value in means(results, name, what)}
            at = np.array([tried.index(value) for value in found])
            curves = np.array(list(found.values())).T
            band(ax, at, curves, color=COLOURS[what], ls=LOOKS[what], marker="o", ms=3, label=words)
        ax.axvline(tried.index(PAPER[name]), color="#595959", lw=0.8, ls=":", label="the paper's value")
        ax.set(xticks=range(len(tried)), ylim=(0, 1))
        ax.set_xticklabels([f"{value:g}" for value in tried])
        ax.set_title(symbol, loc="left", fontsize=NORMAL)
    figure.axes[0].set_ylabel("accuracy")
    figure.axes[0].legend(fontsize=7, frameon=False, loc="lower left")
    caption = "Figure 2c: accuracy by q, λ and c, the others at the paper's values, with standard deviations over seeds"
    return {caption: figure}


SENSITIVITY = Experiment(
    name="sensitivity",
    title="Sensitivity to the hyperparameters (figure 2c)",
    paper="Handwritten digits from one half of the labels correct, with q, λ and c varied, “not too sensitive within the range "
    "of reasonable choices”. Here one of them at a time, the others at the paper's q = .8, λ = 1 and c = 50, α = .01. "
    "300 sweeps, after which the labels of the start still help. The values tried stand evenly in the figure, whatever lies "
    "between them. At c = 0 prototypes play no part, so that there is no unsupervised accuracy.",
    files=(digits.FILE,),
    full={
        "usps": True,
        "size": 70,
        "q": [0.01, 0.1, 0.3, 0.5, 0.8, 0.95, 0.999],
        "lam": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0],
        "c": [0.0, 1.0, 5.0, 20.0, 50.0, 200.0, 1000.0, 5000.0],
        "n_iter": 300,
        "thin": 5,
    },
    quick={
        "usps": False,
        "size": 20,
        "q": [0.1, 0.8, 0.99],
        "lam": [0.1, 1.0, 10.0],
        "c": [0.0, 50.0, 1000.0],
        "n_iter": 100,
        "thin": 5,
    },
    source=digits.source,
    run=run,
    rows=rows,
    figures=figures,
)
