"""One HTML file that explains a fitted model to a person, with nothing to fetch."""

from __future__ import annotations

import base64
import io
import warnings
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ... import __version__
from ...sampling.diagnostics import in_words
from ...storage import replacing
from ..explanation import as_set, clean, counted, cut, listed, phrase, show
from . import figures as plots
from .cards import APART, EMPTY, MARKED, pixel_role
from .html import called, card, document, esc, percent, scroll, table

KEYS, OTHERS, AGREEMENTS = 25, 3, 8  # key features per cluster, clusters it is told from, clusters with a picture of agreement
DOTS = 120  # per inch


def write_report(
    model: Any, path: str | PathLike, *, names: Any = None, image_shape: tuple[int, int] | None = None, title: str | None = None
) -> None:
    """Write one HTML file that explains a fitted model; `model.report` calls this.

    Parameters
    ----------
    model : fitted BayesianCaseModel
    path : path
        File to write; one that is there is replaced.
    names : sequence of str, default=None
        Names of the rows of the catalogue.
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row.
    title : str, default=None
        Heading of the page.
    """
    check_is_fitted(model)
    file = Path(fspath(path))
    if not file.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(file.parent)!r} to write the report to.")
    html = page(model, names, image_shape, title)
    with replacing(file) as out:
        out.write(html.encode())


def page(model, names=None, image_shape=None, title=None) -> str:
    if image_shape is not None:
        image_shape = plots.check_shape(image_shape, len(model.feature_types_))
    explanation = model.explain(names)
    title = f"{counted(explanation.n_cases)} in {counted(len(explanation.clusters), 'cluster')}" if title is None else title
    parts = (
        ("short", "In short", in_short(explanation, image_shape)),
        ("clusters", "The clusters", clusters(model, explanation, names, image_shape)),
        ("apart", "What tells the clusters apart", apart(explanation)),
        ("members", "Which case belongs where", members(model)),
        ("sure", "How sure are prototypes and features?", how_sure(model, explanation, names)),
        ("trust", "Can it be trusted?", trust(model, explanation)),
    )
    made = f"Made by bayescase {esc(__version__)}, with the Bayesian Case Model of Kim, Rudin and Shah (NIPS 2014)."
    return document(esc(title), ABOUT, parts, made)


ABOUT = """Each cluster is shown by a <strong>prototype</strong>, a real case that stands for it, and by the features that
<strong>matter</strong>: those in which most of its cases are like the prototype. The rest of the prototype is as it happens to
be."""


def in_short(explanation, image_shape):
    about = f"{counted(explanation.n_cases)} with {counted(explanation.n_features, 'feature')}"
    about += f", {explanation.missing:.1%} of the cells missing" if explanation.missing else ""
    rows = [
        (
            c.cluster,
            c.prototype.name,
            f"{c.size:,}",
            percent(c.share),
            what_matters(c, image_shape),
        )
        for c in explanation.clusters
    ]
    head = ("cluster", "prototype", "cases", "share of all", "what matters, the most telling first")
    kind, words = ("verdict", "Trust it:") if explanation.converged else ("verdict bad", "Take care:")
    return (
        f"<p>{esc(about)}, in {counted(len(explanation.clusters), 'cluster')}.</p>"
        f'<p class="{kind}"><strong>{words}</strong> {esc(explanation.verdict)}</p>'
        + table("All clusters", head, rows, numbers=(2, 3))
    )


def what_matters(cluster, image_shape):
    keys = cluster.key_features
    if not keys:
        return "nothing for certain"
    if image_shape is None:
        return listed([phrase(cut(f.name, 40), f.value) for f in keys], 4)
    roles = [pixel_role(f) for f in keys]
    kinds = ((MARKED, "with ink"), (APART, "empty, unlike elsewhere"), (EMPTY, "empty, as elsewhere"))
    return f"{counted(len(keys), 'pixel')}: " + ", ".join(f"{roles.count(kind)} {words}" for kind, words in kinds)


# --- clusters ------------------------------------------------------------------------------------------------------------


def clusters(model, explanation, names, image_shape):
    text = []
    for c in explanation.clusters:
        name = f"cluster-{c.cluster}"
        if image_shape is None:
            shown = f"<p>{esc(c)}</p>{card(c)}"
        else:
            alt = f"Prototype {c.prototype.name}, the average member, and the pixels that matter."
            sentence = f"{called(c)}. What matters: {what_matters(c, image_shape)}."
            shown = figure(plots.plot_prototypes(c, image_shape=image_shape), alt, sentence, pixels(c, image_shape))
        heading = f"Cluster {c.cluster}: {cut(c.prototype.name, 80)}"
        more = key_table(c) + candidates(c) + contrasts(c) + criticisms(c)
        if c.cluster < AGREEMENTS and c.key_features and c.size:
            more += agreement(model.explain_agreement(c.cluster, names))
        text.append(
            f'<article class="card" aria-labelledby="{name}"><h3 id="{name}">{esc(heading)}</h3>{shown}'
            f'<details class="more"><summary>More about cluster {c.cluster}</summary>{more}</details></article>'
        )
    boxed = '<p>What the prototype has; what matters is in a <span class="boxed">box</span>.</p>'
    return (boxed if image_shape is None and as_set(explanation.clusters[0].features) else "") + "".join(text)


def pixels(cluster, shape):
    high, wide = shape
    rows = []
    for r in range(high):
        of = cluster.features[r * wide : (r + 1) * wide]
        rows.append((r, *(f"{show(f.value)}{'*' if f.key else ''}" for f in of)))
    return table("Values of the prototype; * matters", ("row", *(f"column {k}" for k in range(wide))), rows)


def key_table(cluster):
    keys = cluster.key_features
    rows = [
        (f.name, show(f.value), percent(f.share), percent(f.elsewhere), f"{f.probability:.2f}", f"{f.prior:.2f}")
        for f in keys[:KEYS]
    ]
    if not rows:
        return "<p>No feature matters for certain.</p>"
    left = f"; {counted(len(keys) - KEYS, 'more such feature')} not shown" if len(keys) > KEYS else ""
    head = ("feature", "value of the prototype", "share here", "elsewhere", "probability that it matters", "before the data")
    return "<h4>What matters</h4>" + table(f"Features that matter, the most telling first{left}", head, rows, (2, 3, 4, 5))


def candidates(cluster):
    ties = [f"{counted(len(c.ties))} with the same values" if len(c.ties) > 1 else "" for c in cluster.candidates]
    rows = [(c.name, percent(c.probability), tie) for c, tie in zip(cluster.candidates, ties, strict=True)]
    words = "The prototype is the most typical of the cases that are at least half as probable as the most probable one."
    head = ("case", "probability", "ties")
    return f"<h4>Who could be the prototype</h4><p>{words}</p>" + table("Candidates, the chosen one first", head, rows, (1,))


def contrasts(cluster):
    """The clusters that are hardest to tell from this one, and how to do it."""
    nearest = sorted(cluster.contrasts, key=lambda c: sum(d.weight for d in c.distinctions))[:OTHERS]
    rows = [
        (f"cluster {c.other}", phrase(cut(d.feature, 60), d.value), percent(d.here), percent(d.there))
        for c in nearest
        for d in c.distinctions[:OTHERS]
    ]
    if not rows:
        return ""
    return "<h4>How to tell it from others</h4>" + table(
        "The clusters that are most alike, and what is more common here", ("unlike", "has", "here", "there"), rows, (2, 3)
    )


def criticisms(cluster):
    rows = [
        (
            c.name,
            percent(c.membership),
            f"{c.agrees} of {c.of}",
            listed([phrase(cut(name, 40), value) for name, value in c.differs], 4),
        )
        for c in cluster.criticisms
    ]
    if not rows:
        return "<h4>Who fits badly</h4><p>No member differs from the prototype on a feature that matters.</p>"
    head = ("case", "membership", "agrees with the prototype on", "but has")
    return "<h4>Who fits badly</h4>" + table("Members that the prototype explains worst", head, rows, (1,))


def agreement(found):
    shown = found.features[:KEYS]
    rows = [(m.name, *("–" if a is None else "yes" if a else "no" for a in m.agrees[: len(shown)])) for m in found.members]
    data = table(
        f"Does a member agree with the prototype? {len(rows)} of {counted(found.size)}, from the most to the least alike",
        ("case", *(phrase(cut(f.name, 40), f.value) for f in shown)),
        rows,
    )
    alt = f"Matrix of members of cluster {found.cluster} by features that matter: dark where they agree with the prototype."
    return "<h4>Who agrees with the prototype</h4>" + figure(plots.plot_agreement(found, most=KEYS), alt, str(found), data)


# --- all clusters together -----------------------------------------------------------------------------------------------


def apart(explanation):
    values = plots.telling_values(explanation, 30)
    features = explanation.clusters[0].features
    rows = [
        (phrase(cut(features[j].name, 60), value), *(percent(share) for share in chances.tolist()))
        for j, value, chances in values
    ]
    head = ("value", *(f"cluster {c.cluster}" for c in explanation.clusters))
    best = max(values, key=lambda row: np.ptp(row[2]))
    sentence = (
        f"How common the most telling values are in each cluster. The clusters differ most in {name_of(features, best)}: "
    )
    sentence += f"{best[2].min():.0%} to {best[2].max():.0%}."
    alt = "Heat map: one row per value, one column per cluster, darker where the value is more common."
    return figure(
        plots.plot_values(explanation), alt, sentence, table("Share of each cluster", head, rows, range(1, len(head)))
    )


def name_of(features, row):
    return phrase(cut(features[row[0]].name, 60), row[1])


def members(model):
    member, labels = model.memberships_, model.labels_
    top = member.max(axis=1)
    rows = []
    for s in range(member.shape[1]):
        own = top[labels == s]
        sure, mixed = int((own >= 0.9).sum()), int((own < 0.9).sum())
        rows.append((f"cluster {s}", f"{len(own):,}", f"{sure:,}", f"{mixed:,}", percent(float(member[:, s].mean()))))
    head = ("main cluster", "cases", "at least 90 % in it", "less", "share of all memberships")
    mixed = int((top < 0.9).sum())
    sentence = f"{counted(len(top))}, of which {mixed:,} ({mixed / len(top):.0%}) have less than 90 % in one cluster."
    alt = "Heat map: one row per cluster, one column per case, dark where the case belongs to the cluster."
    return figure(plots.plot_memberships(model), alt, sentence, table("Cases by their main cluster", head, rows, (1, 2, 3, 4)))


def how_sure(model, explanation, names):
    shown = explanation.clusters[: plots.MANY_CLUSTERS]
    rows = [
        (
            f"cluster {c.cluster}",
            phrase(cut(f.name, 60), f.value),
            f"{f.probability:.2f}",
            f"{f.prior:.2f}",
            "yes" if f.key else "no",
        )
        for c in shown
        for f in plots.surest_features(c, 15)
    ]
    sure = sum(f.probability > 0.9 or f.probability < 0.1 for c in explanation.clusters for f in c.features)
    cells = len(explanation.clusters) * explanation.n_features
    sentence = (
        f"Whether a feature matters to a cluster is nearly certain (at most 10 % of doubt) in {sure / cells:.0%} of all pairs."
    )
    alt = "For each cluster, dots show how probable it is that a feature matters; short lines show the same before the data."
    head = ("cluster", "value", "probability that it matters", "before the data", "matters")
    text = "<h3>Features</h3>" + figure(
        plots.plot_subspaces(explanation), alt, sentence, table("How probably a feature matters", head, rows, (2, 3))
    )
    chosen = [(f"cluster {c.cluster}", p.name, percent(p.probability), len(p.ties)) for c in shown for p in c.candidates[:4]]
    surest = max(explanation.clusters, key=lambda c: c.prototype.probability)
    least = min(explanation.clusters, key=lambda c: c.prototype.probability)
    sentence = f"The prototype of cluster {surest.cluster} is the surest ({surest.prototype.probability:.0%} of the draws)"
    sentence += (
        f", that of cluster {least.cluster} the least sure ({least.prototype.probability:.0%})." if least is not surest else "."
    )
    alt = (
        "Ribbon: for each cluster the case that was the prototype at each sweep, darkest the chosen one; below, the log joint."
    )
    data = table("Candidates for prototype", ("cluster", "case", "probability", "cases with these values"), chosen, (2, 3))
    data += table(
        "Log joint probability after the burn-in",
        ("chain", "mean", "lowest", "highest"),
        [
            (k, f"{part.mean():.1f}", f"{part.min():.1f}", f"{part.max():.1f}")
            for k, part in enumerate(model.log_joint_[:, model._kept.first : model._kept.end])
        ],
        (1, 2, 3),
    )
    return text + "<h3>Prototypes</h3>" + figure(plots.plot_ribbon(model, names), alt, sentence, data)


def trust(model, explanation):
    found = model.diagnostics_
    advice = f"<p>{esc(found.advice)}</p>" if found.advice else ""
    rows = [
        (in_words(name), f"{of.mean:.5g}", f"{of.sd:.3g}", f"{of.r_hat:.3f}", f"{of.ess_bulk:.0f}", f"{of.ess_tail:.0f}")
        for name, of in found.quantities.items()
    ]
    head = ("quantity", "mean", "standard deviation", "R-hat", "effective draws", "in the tails")
    text = f"<p>{esc(explanation.verdict)}</p>{advice}" + table("Have the chains converged?", head, rows, (1, 2, 3, 4, 5))
    settings = [
        (name, f"{value:.4g}", "set") for name, value in explanation.hyperparameters.items() if name not in explanation.learned
    ]
    settings += [
        (name, f"{mean:.4g}", f"learned; 90 % between {low:.4g} and {high:.4g}")
        for name, (mean, low, high) in explanation.learned.items()
    ]
    text += table("Hyperparameters", ("name", "value", "how it was found"), settings, (1,))
    if explanation.n_clusters_probabilities:
        chances = [(k, percent(p)) for k, p in explanation.n_clusters_probabilities.items()]
        text += table("How many clusters?", ("clusters in use", "probability"), chances, (1,))
    return text + f"<p>{counted(explanation.chains, 'chain')} of {counted(explanation.sweeps, 'sweep')}.</p>"


# --- figures -------------------------------------------------------------------------------------------------------------


def figure(drawn, alt, sentence, data) -> str:
    """A picture, what it says, and its numbers."""
    wide, high = (round(inches * 84) for inches in drawn.get_size_inches())
    words = esc(f"{clean(alt)} The numbers are in the table below.")
    image = f'<img alt="{words}" width="{wide}" height="{high}" src="{png(drawn)}">'
    numbers = f"<details><summary>Numbers of this figure</summary>{data}</details>"
    return f"<figure>{scroll(f'Figure: {cut(alt, 100)}', image)}<figcaption>{esc(sentence)}</figcaption>{numbers}</figure>"


def png(drawn) -> str:
    """As a data URI, with few colours: a third of the size, and nobody sees it."""
    from PIL import Image

    raw, small = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks; it is in the table beside
        drawn.savefig(raw, format="png", dpi=DOTS)
    raw.seek(0)
    Image.open(raw).convert("RGB").quantize(96, method=Image.Quantize.MEDIANCUT).save(small, format="png", optimize=True)
    return "data:image/png;base64," + base64.b64encode(small.getvalue()).decode("ascii")
