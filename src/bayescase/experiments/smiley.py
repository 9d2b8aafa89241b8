"""Table 1: smiley faces from the prior, told by LDA's words and by prototypes and subspaces."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.patches import Arc, Circle, Ellipse, Polygon
from sklearn.metrics import normalized_mutual_info_score

from ..datasets import FACE, FACE_SUBSPACES, load_smileys
from ..estimator import BayesianCaseModel
from ..explaining.render.drawing import GREY, LARGE, SMALL, Rectangle, Sheet
from ..lda import ABSENT, fit_lda, has_lda
from .frame import Experiment, Row, spread

SHOWN = 8  # faces of each cluster that are drawn
TOP = 3
S = len(FACE_SUBSPACES)


def source(settings: dict, data: Path | None) -> str:
    return f"{settings['n_cases']} faces drawn from the prior"


def run(seed: int, settings: dict, data: Path | None) -> dict:
    faces = load_smileys(settings["n_cases"], random_state=seed)
    table = np.column_stack(list(faces.table.values()))
    # The paper's α = 0.1 in every entry is a total of 0.3 for three clusters.
    model = BayesianCaseModel(
        S, alpha=0.3, lam=1.0, c=50.0, q=0.5, n_iter=settings["n_iter"], n_chains=settings["n_chains"], random_state=seed
    ).fit(faces.table)
    clusters = [
        {
            "planted": planted(faces.families[model.labels_ == s]),
            "size": int((model.labels_ == s).sum()),
            "faces": table[model.labels_ == s][:SHOWN].tolist(),
            "prototype": [str(value) for value in model.prototype_cases_[s]],
            "subspace": [name for name, key in zip(FACE, model.subspaces_[s], strict=True) if key],
        }
        for s in range(S)
    ]
    return {
        "clusters": clusters,
        "found": sum(cluster["planted"] == cluster["subspace"] for cluster in clusters),
        "nmi": float(normalized_mutual_info_score(faces.families, model.labels_)),
        "converged": bool(model.diagnostics_.converged),
        "lda": lda(table, faces.families, settings["n_iter"], seed) if has_lda() else None,
    }


def planted(families):
    """The subspace that most of these faces were drawn with; none if there are no faces."""
    names, counts = np.unique(families, return_counts=True)
    return str(names[counts.argmax()]).split("+") if len(names) else []


def lda(table, families, n_iter, seed):
    topics = fit_lda(table, S, alpha=0.3, lam=1.0, n_iter=n_iter, seed=seed)
    labels, names = topics.theta.argmax(axis=1), list(FACE)
    found = []
    for s in range(S):
        top = [
            (names[topics.words[w][0]], topics.words[w][1], float(topics.phi[s, w]))
            for w in topics.phi[s].argsort()[::-1][:TOP]
        ]
        found.append({"planted": planted(families[labels == s]), "top": top})
    return {
        "topics": found,
        "found": sum(set(topic["planted"]) == {name for name, _, _ in topic["top"][:2]} for topic in found),
        "nmi": float(normalized_mutual_info_score(families, labels)),
    }


# --- the page -----------------------------------------------------------------------------------------------------------


def rows(results: list[dict]) -> list[Row]:
    found = [result["found"] for result in results]
    short = sum(n < S for n in found)
    remark = f"Fewer than three in {short} of {len(found)} draws of the data{wider(results)}." if short else ""
    lines = [
        Row("subspaces of clusters that are the planted ones, of 3", "3", spread(found), remark),
        Row("agreement of clusters and planted clusters (NMI)", "not given", spread([r["nmi"] for r in results])),
        Row(
            "runs with a good verdict (chains agree, enough draws)",
            "not given",
            f"{sum(r['converged'] for r in results)} of {len(results)}",
        ),
    ]
    with_lda = [result["lda"] for result in results if result["lda"]]
    if not with_lda:
        return [*lines, Row("LDA", "top three values of each topic", "", ABSENT)]
    tops = [[probability for _, _, probability in topic["top"]] for topic in with_lda[0]["topics"]]
    return [
        *lines,
        Row(
            "topics of LDA whose top two values are of the planted features, of 3",
            "3",
            spread([x["found"] for x in with_lda]),
        ),
        Row("LDA's agreement (NMI)", "not given", spread([x["nmi"] for x in with_lda])),
        Row(
            "LDA's three highest probabilities in each topic (first seed)",
            ".26 .23 .12; .26 .24 .16; .35 .27 .15",
            "; ".join(" ".join(f"{p:.2f}".lstrip("0") for p in top) for top in tops),
            "Other faces are drawn here, so only the size of the numbers can be compared.",
        ),
    ]


def wider(results):
    """Are the subspaces that differ from the planted ones these and more?"""
    pairs = [(set(c["planted"]), set(c["subspace"])) for result in results for c in result["clusters"]]
    other = [planted < found for planted, found in pairs if planted != found]
    return f"; of the {len(other)} subspaces that differ, {sum(other)} have the planted features and one or more others"


def figures(results: list[dict]) -> dict:
    result, high, left = results[0], 1.7, 0.75 * SHOWN + 0.4
    topics = result["lda"]["topics"] if result["lda"] else []
    sheet = Sheet(left + 6.9, 0.6 + high * S)
    for x, words in ((0.2, "Cases of the cluster"), (left, "LDA: values and probabilities"), (left + 3.1, "BCM: prototype")):
        sheet.write(x, 0.3, words, size=LARGE, weight="bold")
    for s, cluster in enumerate(result["clusters"]):
        y = 0.6 + high * (s + 0.5)
        sheet.rule(0.2, 0.6 + high * s, left + 6.5)
        for k, face in enumerate(cluster["faces"]):
            draw_face(sheet.ax, 0.55 + 0.75 * k, y, 0.27, face)
        sheet.write(0.25, y + 0.62, f"drawn with: {', '.join(cluster['planted'])}", size=SMALL, color=GREY)
        # Topics have no order: the one of the same planted cluster stands beside it.
        top: list = next((topic["top"] for topic in topics if topic["planted"] == cluster["planted"]), [])
        for k, (name, value, probability) in enumerate(top):
            sheet.write(left, y + 0.3 * (k - 1), f"{name} {value}: {probability:.2f}")
        if not top:
            sheet.write(left, y, "no topic of its own" if topics else "tomotopy is not installed", size=SMALL, color=GREY)
        draw_face(sheet.ax, left + 3.7, y, 0.48, cluster["prototype"])
        values = dict(zip(FACE, cluster["prototype"], strict=True))
        sheet.write(left + 4.5, y - 0.15, "what matters:", size=SMALL, color=GREY)
        for k, name in enumerate(cluster["subspace"]):
            sheet.write(left + 4.5, y + 0.1 + 0.25 * k, f"{name} ({values[name]})")
    seed = f"first seed, {result['found']} of {S} subspaces as planted"
    return {f"Table 1 ({seed}): cases, LDA's values, and the prototypes and subspaces of BCM": sheet.figure}


COLOURS = {"green": "#4fae5b", "orange": "#f08c2e", "blue": "#5b9bd5", "yellow": "#f3d34a"}


def draw_face(ax, x, y, r, face):
    """A face around (x, y), in axes whose y points down."""
    colour, shape, eyes, mouth, ears = face
    ink: dict[str, Any] = {"ec": "black", "lw": 1.0}
    size = {"none": 0.0, "small": 0.16, "large": 0.3}[ears] * r
    if size:
        for side in (-1, 1):  # beside the head, which is narrower higher up if it is a triangle
            ax.add_patch(Circle((x + side * (0.62 * r if shape == "triangle" else r), y), size, fc=COLOURS[colour], **ink))
    outline = {
        "square": lambda: Rectangle((x - r, y - r), 2 * r, 2 * r, fc=COLOURS[colour], **ink),
        "round": lambda: Circle((x, y), r, fc=COLOURS[colour], **ink),
        "triangle": lambda: Polygon(
            [(x - 1.25 * r, y + r), (x + 1.25 * r, y + r), (x, y - 1.2 * r)], fc=COLOURS[colour], **ink
        ),
    }[shape]()
    ax.add_patch(outline)
    for side in (-1, 1):
        at = (x + side * 0.33 * r, y - 0.1 * r)
        if eyes == "sleepy" or (eyes == "winking" and side == 1):
            ax.add_patch(Arc(at, 0.36 * r, 0.24 * r, theta1=0, theta2=180, lw=1.3))
        elif eyes == "stars":
            ax.plot(*at, marker="*", color="black", markersize=26 * r, markeredgewidth=0)
        else:
            ax.add_patch(Circle(at, 0.1 * r, fc="black", lw=0))
    low = (x, y + 0.5 * r)
    if mouth == "smile":
        ax.add_patch(Arc((x, y + 0.35 * r), 0.8 * r, 0.6 * r, theta1=0, theta2=180, lw=1.5))
    elif mouth == "open":
        ax.add_patch(Ellipse(low, 0.4 * r, 0.5 * r, fc="black", lw=0))
    else:
        ax.plot([x - 0.35 * r, x + 0.35 * r], [low[1], low[1]], color="black", lw=1.5)


SMILEY = Experiment(
    name="smiley",
    title="Smiley faces (table 1)",
    paper="240 faces from the prior with α = 0.1 in every entry, q = .5, λ = 1, c = 50, in three clusters with two defining "
    "features each: colour and shape, colour and eyes, eyes and mouth.",
    files=(),
    full={"n_cases": 240, "n_iter": 1000, "n_chains": 8},
    quick={"n_cases": 240, "n_iter": 300, "n_chains": 4},
    source=source,
    run=run,
    figures=figures,
    rows=rows,
)
