"""What the examples share: one fit, its pictures, and a table of clusters against what the data call their cases."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from bayescase import BayesianCaseModel, plots


def show(model: BayesianCaseModel, name: str, out: Path, classes: np.ndarray | None = None, what: str = "") -> None:
    """Print a sentence per cluster; draw the cards and, if the cases have classes, where each class went."""
    explanation = model.explain()
    for cluster in explanation.clusters:
        print(cluster.sentence)
    print(model.diagnostics_.verdict)
    save(plots.plot_prototypes(explanation), out / f"{name}-cards.png")
    if classes is not None:
        print(f"NMI with {what}: {normalized_mutual_info_score(classes, model.labels_):.2f}")
        titles = {cluster.cluster: cluster.title for cluster in explanation.clusters}
        save(cross(model.labels_, classes, titles, what), out / f"{name}-classes.png")


def save(figure: plt.Figure, path: Path) -> None:
    figure.savefig(path, dpi=75, bbox_inches="tight")
    plt.close(figure)


def cross(labels: np.ndarray, classes: np.ndarray, titles: dict[int, str], what: str) -> plt.Figure:
    """Of each class the share that lies in each cluster: rows are classes, columns clusters, ordered so that they meet."""
    names, of_case = np.unique(classes, return_inverse=True)
    used = np.array(sorted(titles))
    share = np.array([[np.mean(labels[of_case == k] == s) for s in used] for k in range(len(names))])
    columns = np.argsort(share.argmax(axis=0), kind="stable")
    rows = np.argsort(np.argsort(columns)[share.argmax(axis=1)], kind="stable")
    share = share[np.ix_(rows, columns)]
    figure, ax = plt.subplots(figsize=(0.62 * len(used) + 3.2, 0.34 * len(names) + 2.6))
    image = ax.imshow(share, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    for (i, j), value in np.ndenumerate(share):
        if value >= 0.1:
            ax.text(j, i, f"{value:.0%}", ha="center", va="center", fontsize=8, color="white" if value > 0.6 else "black")
    ax.set_yticks(range(len(names)), names[rows])
    ax.set_xticks(range(len(used)), [titles[s] for s in used[columns]], rotation=40, ha="right", rotation_mode="anchor")
    ax.set_ylabel(what)
    figure.colorbar(image, label=f"share of the {what}", shrink=0.7)
    return figure
