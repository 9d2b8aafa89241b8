"""Which descriptions of the handwritten digits chains end in, where these differ, and what lies between them."""

from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from ..explaining.render.drawing import ACCENT, GREY, INK, NORMAL, SMALL, Sheet, new_figure, tidy
from ..sampling.diagnostics import LARGEST_R_HAT, r_hat
from ..sampling.posterior import AGREE, match
from . import accuracy, digits
from .accuracy import STARTS, cell_counts, pixels_as_they_are
from .agreement import shared
from .crossing import cross, make_sets
from .digits import S, as_text
from .frame import Experiment

WORDS = {"half": STARTS["half"], "seeded": STARTS["seeded"], "cases": "random labels of whole cases, no label"}
ALIKE = 0.5  # of a cluster that both sides have, from which on it counts as the same
LEAST = 0.1  # of a case in the cluster that differs: a smaller share stays as it is


def run(seed: int, settings: dict, data: Path | None) -> dict:
    images, labels = digits.load(settings, data)
    x, y, half, _ = digits.sample(images, labels, settings["size"], seed)
    n_iter, kinds = settings["n_iter"], [kind for kind, many in settings["chains"].items() for _ in range(many)]
    length = {"n_iter": n_iter, "burn_in": n_iter // 2, "thin": settings["thin"]}

    def chain(k, kind):
        return accuracy.fit_from(half if kind == "half" else kind, S, x, "rows", seed * digits.MANY + k, n_jobs=1, **length)

    with pixels_as_they_are():
        models = Parallel(prefer="threads")(delayed(chain)(k, kind) for k, kind in enumerate(kinds))
    shares = [cell_counts(model.draws_.z[0], S).mean(axis=0) / x.shape[1] for model in models]
    traces = np.array([model.fitted_.trace["log_joint"][0, n_iter // 2 :] for model in models])
    common = [[shared(a, b) for b in shares] for a in shares]
    mode = modes_of(np.array(common))
    a, b = 0, int(np.argmin(common[0]))
    return {
        "chains": [
            {"start": kind, "log_joint": float(trace.mean()), "sd": float(trace.std()), "mode": mode[k]}
            for k, (kind, trace) in enumerate(zip(kinds, traces, strict=True))
        ],
        "shared": common,
        "r_hat": [[float(r_hat(np.array([s, t]))) if s is not t else 1.0 for s in traces] for t in traces],
        "shape": [int(x.shape[1] ** 0.5)] * 2,
        **between((models[a], shares[a]), (models[b], shares[b]), x, y, seed, settings["rounds"]),
        "pair": [a, b],
        "n_iter": n_iter,
        "size": settings["size"],
    }


def modes_of(common):
    """Which description each chain found: that of the first chain that it agrees with."""
    found: list[int] = []
    first: list[int] = []
    for of in common:
        near = [m for m, k in enumerate(first) if of[k] >= AGREE]
        if not near:
            first.append(len(found))
        found.append(near[0] if near else len(first) - 1)
    return found


def between(one, other, x, y, seed, rounds):
    """Two chains, clusters matched, from the most alike to the one that differs: their clusters, and the way over."""
    (a, of_a), (_, of_b) = one, other
    to = match(of_a.T @ of_b, np.zeros(S))  # label of b → label of a
    matched = of_b[:, np.argsort(to)]
    same = np.minimum(of_a, matched).sum(axis=0) / np.maximum(of_a.sum(axis=0), matched.sum(axis=0))
    order = np.argsort(-same)
    place = np.argsort(order)
    names = (place, place[to])
    sides = [side(model, name, x, y) for (model, _), name in zip((one, other), names, strict=True)]
    shares = [of[:, np.argsort(name)] for of, name in zip((of_a, of_b), names, strict=True)]
    draws = [name[model.draws_.z[0]] for (model, _), name in zip((one, other), names, strict=True)]
    sets = [make_sets(draws[i], draws[1 - i], S - 1, shares[i], shares[1 - i], LEAST) for i in (0, 1)]
    ways = Parallel()(delayed(cross)(a.fitted_.problem, draws[i][-1], sets[i], seed * digits.MANY + i, rounds) for i in (0, 1))
    return {
        "sides": sides,
        "same": same[order].tolist(),
        "flows": flows(*shares).tolist(),
        "ways": [{"work": work, "out": out} for work, out in ways],
    }


def side(model, name, x, y):
    """The clusters of a chain as they are named: prototypes, average members, sizes, digits."""
    names = np.argsort(name)
    draws = model.draws_
    p = np.array([np.bincount(draws.p[0][:, s]).argmax() for s in names])
    of = (cell_counts(draws.z[0], S).mean(axis=0) / x.shape[1])[:, names]
    z, mean = draws.z[0], np.zeros((S, x.shape[1]))
    for k, s in enumerate(names):
        weight = (z == s).mean(axis=0)
        mean[k] = (weight * x).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-9)
    return {
        "prototypes": as_text(x[p]),
        "digits": y[p].tolist(),
        "means": as_text(mean.round().astype(int)),
        "sizes": of.sum(axis=0).tolist(),
    }


def flows(a, b):
    """[r, s] How much of all cases is in cluster r of the one side and in s of the other; what both have is on the diagonal."""
    both = np.minimum(a, b)
    less, more = a - both, b - both
    return np.diag(both.sum(axis=0)) + (less / np.maximum(less.sum(axis=1, keepdims=True), 1e-9)).T @ more


# --- the page -----------------------------------------------------------------------------------------------------------


def tables(results: list[dict]) -> str:
    lines = ["| seed | " + " | ".join(f"start: {words}" for words in WORDS.values()) + " |", "|---|" + "---|" * len(WORDS)]
    for seed, result in enumerate(results):
        cells = []
        for kind in WORDS:
            of = [chain for chain in result["chains"] if chain["start"] == kind]
            cells.append(", ".join(f"{'ABCDEFGHIJ'[c['mode']]} {c['log_joint']:,.0f}" for c in of))
        lines.append(f"| {seed} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *said(results)])


def said(results):
    """What the numbers come to, in sentences."""
    pairs = [
        (result["chains"][i]["mode"] == result["chains"][j]["mode"], result["r_hat"][i][j], result["shared"][i][j])
        for result in results
        for i, j in zip(*np.triu_indices(len(result["chains"]), 1), strict=True)
    ]
    n_iter = results[0]["n_iter"]
    lines = [
        f"Letters are descriptions: chains with the same letter of a seed share at least {AGREE:.0%} of the memberships with "
        f"its first chain. Numbers are mean log joints of sweeps {n_iter // 2:,} to {n_iter:,}.\n",
    ]
    for words, alike in (("the same description", True), ("different ones", False)):
        if of := [(r, common) for same, r, common in pairs if same == alike]:
            r, common = np.array(of).T
            lines.append(
                f"- Two chains in {words}: they share {common.mean():.2f} of the memberships; R-hat of the log joint "
                f"{np.median(r):.2f} (median), below {LARGEST_R_HAT} for {(r < LARGEST_R_HAT).sum()} of {len(r)} pairs."
            )
    return [*lines, *(f"- Seed {seed}: {of_seed(result)}" for seed, result in enumerate(results))]


def of_seed(result):
    """Where two chains of a seed differ, and what the ways between them cost."""
    a, b = result["sides"]
    alike = sum(same >= ALIKE for same in result["same"])
    there, back = (way["work"] for way in result["ways"])
    return (
        f"{alike} of {S} clusters are alike on both sides. The one that differs most has the prototype of a {a['digits'][-1]} "
        f"and {a['sizes'][-1]:.0f} cases on one side, of a {b['digits'][-1]} and {b['sizes'][-1]:.0f} on the other. "
        f"The way over, in {len(there) - 1} steps, goes {-min(there):,.0f} nats down and ends at {there[-1]:,.0f}; "
        f"the way back goes {-min(back):,.0f} down and ends at {back[-1]:,.0f}."
    )


def figures(results: list[dict]) -> dict:
    return {
        "The clusters of two chains, seed 0: the prototype and the average member of each": clusters_figure(results[0]),
        "Seed 0. Left: the share of the memberships that two chains have in common. Middle: in which clusters of the one chain "
        "and of the other cases are. Right: the work of the way over, step by step": ways_figure(results[0]),
    }


def clusters_figure(result):
    side_words = [WORDS[result["chains"][k]["start"]] for k in result["pair"]]
    size, gap, left = 0.82, 0.1, 1.55
    sheet = Sheet(left + S * (size + gap) + 0.2, 4 * (size + gap) + 1.25)
    for k in range(S):
        x = left + k * (size + gap)
        sheet.write(x + size / 2, 0.25, f"{result['same'][k]:.0%}", ha="center", weight="bold", color=colour(result["same"][k]))
    sheet.write(0.1, 0.25, "in common", size=NORMAL)
    y = 0.45
    for words, of in zip(side_words, result["sides"], strict=True):
        for row, what in enumerate(("prototypes", "means")):
            for k, text in enumerate(of[what]):
                values = np.array(list(text), dtype=float).reshape(result["shape"]) / (digits.BINS - 1)
                sheet.image(left + k * (size + gap), y, size, values)
            sheet.write(0.1, y + size / 2, ("prototype", "average member")[row], size=SMALL)
            if row == 0:
                for n, line in enumerate(sheet.wrap(f"start: {words}", left - 0.2, SMALL, "bold", 2)):
                    sheet.write(0.1, y + 0.1 + 0.14 * n, line, size=SMALL, weight="bold")
            y += size + gap
        for k, cases in enumerate(of["sizes"]):
            sheet.write(left + k * (size + gap) + size / 2, y + 0.04, f"{cases:.0f} cases", ha="center", size=SMALL, color=GREY)
        y += 0.35
    return sheet.figure


def colour(same):
    return INK if same >= ALIKE else ACCENT


def ways_figure(result):
    figure = new_figure(13, 4.3)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1.15, 1.25))
    names = [f"{chain['start']} {'ABCDEFGHIJ'[chain['mode']]}" for chain in result["chains"]]
    heat(left, np.array(result["shared"]), names, names, "{:.2f}", (0.5, 1.0))
    left.set_title("memberships in common", loc="left", fontsize=NORMAL)
    one, other = (
        [f"{digit}{'*' * (same < ALIKE)}" for digit, same in zip(of["digits"], result["same"], strict=True)]
        for of in result["sides"]
    )
    flow = np.array(result["flows"])
    heat(middle, flow, one, other, "{:.0f}", (0.0, 0.6 * float(flow.max())))
    starts = [result["chains"][k]["start"] for k in result["pair"]]
    middle.set_ylabel(f"cluster of the chain “{starts[0]}”, by its prototype", fontsize=SMALL)
    middle.set_xlabel(f"cluster of the chain “{starts[1]}”", fontsize=SMALL)
    middle.set_title("cases in both (* differs)", loc="left", fontsize=NORMAL)
    tidy(right)
    for way, ways, colour_of, look in zip(result["ways"], (starts, starts[::-1]), (INK, ACCENT), ("-", "--"), strict=True):
        work = np.array(way["work"])
        right.plot(work, look, color=colour_of, lw=1.5, label=f"from “{ways[0]}” to “{ways[1]}”")
        right.plot(way["out"], work[way["out"]], "o", color=colour_of, ms=4)
    right.axhline(0, color=GREY, lw=0.6)
    right.set_title("log probability against the start, nats", loc="left", fontsize=NORMAL)
    right.set_xlabel("cases that have taken other labels (dot: the cluster is empty)", fontsize=SMALL)
    right.legend(fontsize=7, frameon=False, loc="lower left")
    return figure


def heat(ax, values, rows, columns, form, limits):
    ax.imshow(values, cmap="Blues", vmin=limits[0], vmax=limits[1], aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        if value >= 0.5:
            dark = value > (limits[0] + 2 * limits[1]) / 3
            ax.text(j, i, form.format(value), ha="center", va="center", fontsize=7, color="white" if dark else "black")
    ax.set_yticks(range(len(rows)), rows, fontsize=SMALL)
    ax.set_xticks(range(len(columns)), columns, fontsize=SMALL, rotation=90 if max(map(len, columns)) > 2 else 0)
    ax.tick_params(length=0)


MODES = Experiment(
    name="modes",
    title="Handwritten digits: which descriptions there are",
    paper="Not in the paper: why chains from our reading of the paper's start and chains that know no label do not meet. The "
    "same 70 images of each digit and settings as above, chains of three kinds of start. A way from one description to "
    "the other takes the cases of the cluster that differs out of it, one after the other, and then puts in those that "
    "it has on the other side. After every step all cases are drawn anew, those on the way within the one or two labels "
    "that they have by then. The work of a step is the change of the log probability, the labels of the case and φ "
    "summed out. A slower way costs less.",
    files=(digits.FILE,),
    full={"usps": True, "size": 70, "n_iter": 2_000, "thin": 20, "chains": {"half": 2, "seeded": 2, "cases": 1}, "rounds": 1},
    quick={"usps": False, "size": 20, "n_iter": 200, "thin": 5, "chains": {"half": 1, "seeded": 1, "cases": 1}, "rounds": 1},
    source=digits.source,
    run=run,
    tables=tables,
    figures=figures,
)
