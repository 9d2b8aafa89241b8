"""Other clusterings of discrete data beside this one, on labelled sets: agreement, held-out probability, time."""

import time
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from ..explaining.render.drawing import NORMAL, SMALL, new_figure, tidy
from . import digits
from .frame import Experiment, error, spread
from .methods import METHODS, SWEEPS, fit, is_here
from .sets import FILES, load, reachable

OURS = "bayescase"
HELD_OUT = 5  # every fifth case is set aside


def source(settings: dict, data: Path | None) -> str:
    names, lost = sets_of(settings, data)
    absent = [method.name for method in METHODS.values() if not is_here(method)]
    words = ", ".join(names).replace("digits", f"digits ({digits.source({'usps': True}, data)})")
    if lost:
        how = (
            "a folder of data or a network for openml.org"
            if settings.get("fetch", True)
            else "a folder of data in a quick run, which fetches nothing,"
        )
        words += f"; left out: {', '.join(lost)}, for which {how} is needed"
    if absent:
        words += f"; without {', '.join(absent)}, which pip install 'bayescase[peers]' would add"
    return words


def sets_of(settings, data):
    """(sets that can be had, the others)"""
    names = tuple(settings["sets"])
    found = reachable(names, data, settings.get("fetch", True))
    return found, [name for name in names if name not in found]


def run(seed: int, settings: dict, data: Path | None) -> dict:
    warm()
    numbers: dict = {"sets": {}, "seconds": {}}  # seconds are measured, so a second run has others
    for name in sets_of(settings, data)[0]:
        cases, plan = load(name, seed, data), settings["sets"][name]
        rows = np.random.default_rng(seed).permutation(len(cases.y))[: plan["cases"]]
        test, train = rows[: len(rows) // HELD_OUT], rows[len(rows) // HELD_OUT :]
        x, y, S = cases.x[train], cases.y[train], len(np.unique(cases.y))
        new = known_values(cases.x[test], x)
        fits, seconds = {}, {}
        for method in filter(is_here, METHODS.values()):
            start = time.process_time()
            made = fit(method, x, S, plan["starts"].get(method.name, 1), seed, settings)
            seconds[method.name] = time.process_time() - start
            fits[method.name] = {
                "nmi": float(normalized_mutual_info_score(y, made.labels)),
                "ari": float(adjusted_rand_score(y, made.labels)),
                "held_out": None if made.score is None else made.score(new),
            }
        numbers["sets"][name] = {"cases": len(x), "features": x.shape[1], "classes": S, "methods": fits}
        numbers["seconds"][name] = seconds
    return numbers


@cache
def warm():
    """Import and compile before the clock runs."""
    x = np.random.default_rng(0).integers(-1, 3, size=(40, 4))
    for method in filter(is_here, METHODS.values()):
        fit(method, x, 2, 1, 0, {"bayescase": {"n_iter": 4, "n_chains": 1}, "sweeps": 4})


def known_values(new, x):
    """New cases with gaps for values that no case of x has: no method knows their probability."""
    known = [np.isin(column, seen) for column, seen in zip(new.T, x.T, strict=True)]
    return np.where(np.column_stack(known), new, -1)


# --- the page -----------------------------------------------------------------------------------------------------------


def methods_in(results):
    first = next(iter(results[0]["sets"].values()))
    return list(first["methods"])


def values(results, what, name, method):
    """(seeds,) of a set and a method; none where the method does not have this number."""
    found = [
        result["seconds"][name][method] if what == "seconds" else result["sets"][name]["methods"][method][what]
        for result in results
    ]
    return np.array([value for value in found if value is not None])


def means(results, what="nmi", names=None):
    """method → (seeds,) mean over the sets, or over those named."""
    names = results[0]["sets"] if names is None else names
    return {method: np.mean([values(results, what, name, method) for name in names], axis=0) for method in methods_in(results)}


def gap(of):
    """(best method, how much better it is than ours, standard error of that): pairs of the same seed. of: method → (seeds,)"""
    best = max_of(of)
    return best, float((of[best] - of[OURS]).mean()), error(of[best] - of[OURS])


def verdict(results):
    """Where bayescase stands in agreement: over all sets, and set by set."""
    best, off, se = gap(means(results))
    if len(results) == 1:
        return f"{best} has the highest mean NMI over the sets{f', {off:.3f} above bayescase' if off else ''}, by one seed."
    words = f"{best} has the highest mean NMI over the sets"
    if best != OURS:
        near = "within" if off <= se else "not within"
        words += f"; bayescase is {near} one standard error of it ({off:.3f} below, ± {se:.3f})"
    lost = {}
    for name in results[0]["sets"]:
        best, off, se = gap({method: values(results, "nmi", name, method) for method in methods_in(results)})
        if off > se:
            lost[name] = f"{name} ({best} by {off:.3f})"
    n = len(results[0]["sets"])
    rest = f"; not on {', '.join(lost.values())}" if lost else ""
    words = f"{words}{without(results)}. {by_rand(results)}"
    words += f" On {n - len(lost)} of {n} sets bayescase is best or within one standard error of the best by NMI{rest}."
    return words + predicted(results, lost)


def without(results):
    """Does one set decide who is first?"""
    first, names = max_of(means(results)), list(results[0]["sets"])
    other = {name: max_of(means(results, names=[n for n in names if n != name])) for name in names if len(names) > 1}
    by = [f"without {name} {best} has" for name, best in other.items() if best != first]
    return f", but {', '.join(by)}" if by else ", also if any one set is left out" if other else ""


def by_rand(results):
    mean = means(results, "ari")
    best = max_of(mean)
    than = f", {mean[best].mean():.3f} against {mean[OURS].mean():.3f} of bayescase" if best != OURS else ""
    return f"By the adjusted Rand index {best} is first{than}."


def max_of(mean):
    return max(mean, key=lambda method: mean[method].mean())


def predicted(results, lost):
    """Of the sets with less agreement, those whose held-out cases bayescase still gives a higher probability than StepMix."""
    best = []
    for name in lost if "StepMix" in methods_in(results) else ():
        off = values(results, "held_out", name, OURS) - values(results, "held_out", name, "StepMix")
        if off.mean() > error(off):
            best.append(name)
    if not best:
        return ""
    return (
        " Of these sets, bayescase gives held-out cases a higher probability than StepMix, the only other method that gives "
        f"one, on {', '.join(best)}; part of that is smoothing, which StepMix does without."
    )


def tables(results: list[dict]) -> str:
    parts = [verdict(results) + "\n"]
    for what, words, places in (
        ("nmi", "Agreement of clusters and classes, NMI", 3),
        ("ari", "The same, adjusted Rand index", 3),
        ("held_out", "Held-out log probability per case", 2),
        ("seconds", "Processor seconds of the fit, all threads and starts", 1),
    ):
        parts += [f"**{words}**\n", table(results, what, places)]
    return "\n".join([*parts, had_time(results)])


def had_time(results):
    """Whether the others had at least the time of bayescase, set by set."""
    short = []
    for name in results[0]["sets"]:
        mean = {method: values(results, "seconds", name, method).mean() for method in methods_in(results)}
        short += [f"{method} on {name} ({own / mean[OURS]:.0%})" for method, own in mean.items() if own < mean[OURS]]
    return f"Less time than bayescase had: {', '.join(short)}." if short else "None had less time than bayescase on any set."


def table(results, what, places):
    names, methods = results[0]["sets"], methods_in(results)
    if what == "held_out":
        methods = [method for method in methods if any(len(values(results, what, name, method)) for name in names)]
    lines = [f"| set | cases × features, classes | {' | '.join(methods)} |", "|---|---|" + "---:|" * len(methods)]
    for name, of in names.items():
        size = f"{of['cases']:,} × {of['features']}, {of['classes']}"
        found = [values(results, what, name, method) for method in methods]
        lines.append(f"| {name} | {size} | {' | '.join(marked(found, what, places, spread))} |")
    if what in ("nmi", "ari"):
        over = list(means(results, what).values())
        lines.append(f"| mean ± standard error | | {' | '.join(marked(over, what, places, with_error))} |")
    return "\n".join(lines) + "\n"


def with_error(values, places):
    after = f" ± {error(values):.{places}f}" if len(values) > 1 else " (one seed)"
    return f"{values.mean():.{places}f}{after}"


def marked(found, what, places, write):
    """Cells with the best mean in bold."""
    best = max(found, key=lambda values: values.mean())
    cells = [write(values, places).replace("-", "−") for values in found]
    return [f"**{cell}**" if what != "seconds" and v is best else cell for cell, v in zip(cells, found, strict=True)]


COLOURS = ("#000000", "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00")  # of Okabe and Ito
MARKERS = ("D", "o", "s", "^", "v", "X")


def figures(results: list[dict]) -> dict:
    methods = methods_in(results)
    groups = {name: {m: values(results, "nmi", name, m) for m in methods} for name in results[0]["sets"]}
    groups["mean over sets"] = means(results)
    figure = new_figure(8.5, 0.55 * len(groups) + 1.2)
    ax = figure.subplots()
    tidy(ax)
    step = 0.8 / len(methods)
    for k, method in enumerate(methods):
        y = [row + step * (k - (len(methods) - 1) / 2) for row in range(len(groups))]
        mean = [of[method].mean() for of in groups.values()]
        sd = [of[method].std(ddof=1) if len(of[method]) > 1 else 0.0 for of in groups.values()]
        look = {"fmt": MARKERS[k], "color": COLOURS[k], "ms": 5, "elinewidth": 1, "lw": 0, "label": method}
        ax.errorbar(mean, y, xerr=sd, **look)
    for row in range(len(groups) - 1):
        ax.axhline(row + 0.5, color="#d4d4d4", lw=0.8 if row < len(groups) - 2 else 2)
    ax.set_yticks(range(len(groups)), list(groups), fontsize=NORMAL)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(groups) - 0.5, -0.5))
    ax.set_xlabel("agreement with the classes (NMI), mean and standard deviation over seeds", fontsize=SMALL)
    ax.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=SMALL)
    return {"Agreement with the classes by set and method": figure}


PEERS_IN_ORDER = ("StepMix", "k-modes", "k-medoids", "Gibbs LDA", "variational LDA")


def plan(cases, *starts):
    return {"cases": cases, "starts": dict(zip(PEERS_IN_ORDER, starts, strict=True))}


# Cases that a seed draws (None: all), and starts of each peer: as many as give it at least the time of bayescase on the machine
# where they were counted. They are fixed, not timed, so that the same seeds give the same numbers.
FULL = {
    "zoo": plan(None, 30, 120, 8000, 25, 12),
    "votes": plan(None, 45, 80, 2000, 15, 4),
    "soybean": plan(None, 2, 25, 2500, 8, 4),
    "mushroom": plan(1000, 18, 35, 350, 9, 2),
    "car": plan(None, 4, 60, 160, 11, 2),
    "nursery": plan(1000, 4, 65, 350, 10, 2),
    "breast cancer": plan(None, 15, 80, 1700, 26, 3),
    "digits": plan(400, 60, 16, 20000, 4, 9),
    "connect-4": plan(2000, 10, 18, 160, 3, 1),
    "subspaces": plan(None, 17, 26, 1600, 5, 3),
}

DRAWN = ", ".join(f"{plan['cases']:,} of {name}" for name, plan in FULL.items() if plan["cases"])
AT = "\n".join(f"- {method.name}: {method.settings}" for method in METHODS.values())
ABOUT = f"""\
Not in the paper: labelled sets, whose classes no method sees. Every method is told the number of classes and finds as many
clusters. Each seed draws cases ({DRAWN}, else all) and sets
a fifth of them aside. The methods are fitted to the others, and their clusters compared with the classes of these. The fifth
is for those that give a case a probability; a value not seen in the fit is missing there. LDA's probability is that of a bag
of words, so it is not comparable and left out. The set `subspaces` is simulated: 500 cases in five clusters, whose cases agree
on six of thirty features with probability 0.8; the rest is noise.

bayescase is fitted once. Of each other method the best of several starts counts, by its own objective, so many that it takes at
least as long. k-modes and k-medoids take a gap for one more value, the others leave it out.

{AT}"""

PEERS = Experiment(
    name="peers",
    title="Other clusterings of discrete data",
    paper=ABOUT,
    files=FILES,
    full={"sets": FULL, "bayescase": {}, "sweeps": SWEEPS},
    quick={
        "fetch": False,
        "sets": {name: plan(200, 3, 3, 3, 3, 3) for name in FULL},
        "bayescase": {"n_iter": 200, "n_chains": 2},
        "sweeps": 200,
    },
    source=source,
    run=run,
    figures=figures,
    tables=tables,
)
