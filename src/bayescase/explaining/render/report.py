"""One HTML file that explains a fit to a person, with nothing to fetch."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

import numpy as np

from ... import __version__
from ...errors import advise, in_python
from ...fitted import Fitted
from ...sampling.diagnostics import in_words, short
from ...storage import replacing
from ..agreement import explain_agreement
from ..clusters import explain
from ..differences import explain_differences
from ..explanation import AgreementExplanation, ClusterExplanation, DifferencesExplanation, ModelExplanation
from ..naming import shown_names
from ..overall import FLOWS, in_chain
from ..parts import most_telling
from ..tree import explain_tree
from ..words import cluster_title, counted, cut, listed, percent, phrase, show
from . import figures as plots
from .blocks import (
    Article,
    Bar,
    Block,
    ClusterCard,
    Heading,
    More,
    Page,
    Picture,
    Section,
    Table,
    Text,
    Verdict,
    picture,
    table,
)
from .checks import check_shape
from .differences import draw_differences
from .html import render_page
from .images import APART, EMPTY, MARKED, image_title, pixel_role
from .sweeps import MANY_CLUSTERS, plot_ribbon
from .trees import draw_tree

FEATURES, OTHERS, AGREEMENTS, VALUES = 25, 3, 8, 30  # features of a table, clusters told apart, agreements drawn, values
MOVING = 60  # cases that chains disagree about
ABOUT = (
    "Each cluster is shown by a prototype, a real case that stands for it, and by what it has more often than the other "
    "clusters. Its key features, marked by a square, are those in which its cases copy the prototype. Beside a prototype and "
    "beside a feature stands how probable it is that it is the prototype, or a key feature."
)
MADE = f"Made by bayescase {__version__}, with the Bayesian Case Model of Kim, Rudin and Shah (NIPS 2014)."

Shape = tuple[int, int] | None


def write_report(fitted: Fitted, path: str | PathLike[str], *, image_shape: Shape = None, title: str | None = None) -> None:
    """Write one HTML file that explains a fit; `model.report` calls this.

    Parameters
    ----------
    fitted : Fitted
        `model.fitted_`.
    path : path
        File to write; one that is there is replaced.
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row.
    title : str, default=None
        Heading of the page.
    """
    file = Path(fspath(path))
    if not file.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(file.parent)!r} to write the report to.")
    html = render_page(make_page(fitted, image_shape, title))
    with replacing(file) as out:
        out.write(html.encode())


def make_page(fitted: Fitted, image_shape: Shape = None, title: str | None = None) -> Page:
    """The report, as blocks."""
    if image_shape is not None:
        image_shape = check_shape(image_shape, len(fitted.encoding.features))
    explained, differences = explain(fitted), explain_differences(fitted)
    title = f"{counted(explained.n_cases)} in {counted(len(explained.clusters), 'cluster')}" if title is None else title
    sections = (
        Section("short", "In short", in_short(fitted, explained, image_shape)),
        Section("clusters", "The clusters", clusters(fitted, explained, image_shape)),
        Section("apart", "What sets the clusters apart", apart(explained, image_shape is None)),
        *([Section("fold", "Which clusters may be told as one", (folds(fitted),))] if several(fitted) else []),
        Section("members", "Which case belongs where", (members(fitted, image_shape is None),)),
        *([Section("differences", "Where the chains differ", differ(differences))] if differences.ways else []),
        Section("sure", "How sure are prototypes and key features?", how_sure(fitted, explained, image_shape is None)),
        Section("trust", "Can it be trusted?", trust(fitted, explained)),
    )
    return Page(title, ABOUT, sections, MADE)


def advice(fitted: Fitted) -> str:
    """What to do, in Python's words; where chains differ is on the page."""
    return advise(fitted.diagnostics.remedies, lambda way: None if way.parameter == "explain_differences" else in_python(way))


def in_short(fitted: Fitted, explained: ModelExplanation, shape: Shape) -> tuple[Block, ...]:
    missing = f" {explained.missing:.1%} of the cells are missing." if explained.missing else ""
    trusted = "Trust the clusters:" if not explained.capped else "Trust the clusters, not their number:"
    strong = "Trust it:" if explained.converged else trusted if explained.sound else "Take care:"
    rows = [(c.cluster, apart_words(c, shape), f"{c.size:,}", c.like.removeprefix("like ")) for c in explained.clusters]
    head = ("cluster", "name" if shape is None else "what its cases share", "cases", "prototype, with its probability")
    return (
        Text(f"{explained.summary}{missing}"),
        Verdict((f"{explained.verdict} {advice(fitted)}".strip(),), strong, bad=not explained.sound),
        table("All clusters", head, rows, numbers=(2,)),
    )


def apart_words(cluster: ClusterExplanation, shape: Shape) -> str:
    """The name of a cluster; of images, which pixels are key."""
    if shape is None:
        return cluster.name or "–"
    roles = [pixel_role(f) for f in cluster.key_features]
    kinds = ((MARKED, "with ink"), (APART, "empty, unlike elsewhere"), (EMPTY, "empty, as elsewhere"))
    return f"{counted(len(roles), 'key pixel')}: " + ", ".join(f"{roles.count(kind)} {words}" for kind, words in kinds)


# --- clusters ------------------------------------------------------------------------------------------------------------


def clusters(fitted: Fitted, explained: ModelExplanation, shape: Shape) -> tuple[Block, ...]:
    found = []
    for place, c in enumerate(explained.clusters):
        shown: Block = ClusterCard(c.card())
        if shape is not None:
            alt = f"Prototype {c.prototype.name}, the average member, how it differs from elsewhere, and the key pixels."
            sentence = f"{c.card().size}, {c.like}. {apart_words(c, shape)}."
            shown = picture(plots.plot_prototypes(c, image_shape=shape), alt, sentence, pixel_table(c, shape))
        more: list[Block] = [*feature_table(c), *candidates(c), *contrasts(c, shape is None), *criticisms(c)]
        if place < AGREEMENTS and c.key_features:
            more += agreement(explain_agreement(fitted, c.cluster))
        title = cut(c.title if shape is None else image_title(c), 100)
        found.append(Article(f"cluster-{c.cluster}", title, (shown, More(f"More about cluster {c.cluster}", tuple(more)))))
    return tuple(found)


def pixel_table(cluster: ClusterExplanation, shape: tuple[int, int]) -> Table:
    high, wide = shape
    rows = []
    for r in range(high):
        of = cluster.features[r * wide : (r + 1) * wide]
        rows.append((r, *(f"{show(f.value)}{'*' if f.key else ''}" for f in of)))
    return table("Values of the prototype; * is a key pixel", ("row", *(f"column {k}" for k in range(wide))), rows)


def feature_table(cluster: ClusterExplanation) -> list[Block]:
    said = tuple(f for f in cluster.features if f.key or f.value is not False)
    shown = sorted(most_telling(said), key=lambda f: (f.value is False, not f.key))[:FEATURES]
    rows = [
        (
            f.name,
            show(f.value),
            "–" if f.share is None else Bar(f.share, f.elsewhere),
            percent(f.elsewhere),
            percent(f.probability),
            percent(f.subspace_probability),
        )
        for f in shown
    ]
    left = len(said) - len(shown)
    head = ("feature", "value of the prototype", "share here", "elsewhere", "key", "in the subspace")
    caption = "Features of the prototype: key features in bold, the most telling first, what it lacks last"
    caption += f"; {counted(left, 'feature')} not shown" if left else ""
    keys = [k for k, f in enumerate(shown) if f.key]
    unsaid = f"The subspace has {counted(cluster.unsaid, 'more feature')}, absent here as in most cases elsewhere."
    return [
        Heading("The prototype", 4),
        table(caption, head, rows, (2, 3, 4, 5), keys),
        *([Text(unsaid, soft=True)] if cluster.unsaid else []),
    ]


def candidates(cluster: ClusterExplanation) -> list[Block]:
    rows = [
        (c.name, percent(c.probability), f"{counted(len(c.ties))} with the same values" if len(c.ties) > 1 else "")
        for c in cluster.candidates
    ]
    words = "The prototype is the most probable member; of several that are as probable, the one from which most is copied."
    head = ("case", "probability", "ties")
    return [Heading("Who could be the prototype", 4), Text(words), table("Candidates, the chosen one first", head, rows, (1,))]


def contrasts(cluster: ClusterExplanation, made: bool) -> list[Block]:
    """The clusters that are hardest to tell from this one, and how to do it."""
    nearest = sorted(cluster.contrasts, key=lambda c: sum(d.bits for d in c.distinctions))[:OTHERS]
    rows = [
        (
            cluster_title(c.other, cut(c.name, 40) if made or cluster.named else ""),
            cut(d.words, 80),
            Bar(d.here, d.there),
            percent(d.there),
        )
        for c in nearest
        for d in c.distinctions[:OTHERS]
    ]
    if not rows:
        return []
    caption = "The clusters that are most alike, and what is more common here"
    return [Heading("How to tell it from others", 4), table(caption, ("unlike", "has", "here", "there"), rows, (2, 3))]


def criticisms(cluster: ClusterExplanation) -> list[Block]:
    rows = [
        (
            c.name,
            percent(c.membership),
            f"{c.agrees} of {c.of}",
            listed([phrase(cut(name, 40), value) for name, value in c.differs if value is not False], 4) or "–",
        )
        for c in cluster.criticisms
    ]
    heading = Heading("Who fits badly", 4)
    if not rows:
        return [heading, Text("No member differs from the prototype on a key feature.")]
    head = ("case", "membership", "agrees with the prototype on", "but has")
    return [heading, table("Members that the prototype explains worst", head, rows, (1,))]


def agreement(found: AgreementExplanation) -> list[Block]:
    shown = found.features[:FEATURES]
    rows = [(m.name, *("–" if a is None else "yes" if a else "no" for a in m.agrees[: len(shown)])) for m in found.members]
    numbers = table(
        f"Does a member agree with the prototype? {len(rows)} of {counted(found.size)}, from the most to the least alike",
        ("case", *(phrase(cut(f.name, 40), f.value) for f in shown)),
        rows,
    )
    alt = f"Matrix of members of cluster {found.cluster} by key features: dark where they agree with the prototype."
    return [
        Heading("Who agrees with the prototype", 4),
        picture(plots.plot_agreement(found, most=FEATURES), alt, str(found), numbers),
    ]


# --- all clusters together -----------------------------------------------------------------------------------------------


def short_title(cluster: ClusterExplanation, made: bool) -> str:
    """ "cluster 3 (pasta, parmesan)"."""
    return cluster_title(cluster.cluster, cut(cluster.name, 40) if made or cluster.named else "")


def apart(explained: ModelExplanation, made: bool) -> tuple[Block, ...]:
    values = explained.telling_values(VALUES)
    if not values:
        return (Text("No value is much more common in one cluster than in the others."),)
    head = ("value", *(short_title(c, made) for c in explained.clusters))
    rows = [(cut(value.words, 80), *map(percent, value.shares)) for value in values]
    best = max(values, key=lambda value: max(value.shares) - min(value.shares))
    sentence = "How common the most telling values are in each cluster. The clusters differ most in "
    sentence += f"{cut(best.words, 80)}: {percent(min(best.shares))} to {percent(max(best.shares))}."
    alt = "Heat map: one row per value, one column per cluster, darker where the value is more common."
    numbers = table("Share of each cluster", head, rows, range(1, len(head)))
    return (picture(plots.plot_values(explained, most=VALUES), alt, sentence, numbers),)


def several(fitted: Fitted) -> bool:
    """Is there more than one cluster that could be told as one with another?"""
    return int(np.count_nonzero((fitted.whole or fitted).sizes)) > 1


def folds(fitted: Fitted) -> Picture:
    tree = explain_tree(fitted)
    rows = [
        (
            k,
            " + ".join(cut(tree.nodes[part].title, 60) for part in node.parts),
            f"{node.size:,}",
            "–" if node.prototype is None else str(node.prototype),
            listed([d.words for d in node.has], 3) or "–",
            percent(node.less_probable),
            f"{node.loss:.3f} ± {node.error:.3f}",
            listed(node.together, 2) or "–",
        )
        for k, node in zip(range(tree.n_clusters - 1, 0, -1), tree.joins, strict=True)
    ]
    head = (
        "clusters left",
        "joined",
        "cases",
        "prototype",
        "has more often",
        "less probable",
        "loss of the two",
        "may go together",
    )
    caption = (
        "Joins, the cheapest first. “Less probable” are the cases of all clusters that are joined. The loss is of the mean log "
        "probability of the cases of the two, if two features may go together in them"
    )
    alt = "Tree: clusters on the left are joined step by step, to one on the right, with the case that then stands for them."
    return picture(draw_tree(tree), alt, tree.sentence, table(caption, head, rows, (0, 2, 5, 6)))


def members(fitted: Fitted, made: bool) -> Picture:
    """made: names that were made tell something, as those of pixels do not."""
    rows_of = np.flatnonzero(fitted.known)
    member, labels, names = fitted.posterior.memberships[rows_of], fitted.labels[rows_of], shown_names(fitted, made)
    top, rows = member.max(axis=1), []
    for s in np.flatnonzero(fitted.sizes).tolist():
        own = top[labels == s]
        sure = int((own >= 0.9).sum())
        rows.append(
            (
                cluster_title(s, names[s]),
                f"{len(own):,}",
                f"{sure:,}",
                f"{len(own) - sure:,}",
                percent(float(member[:, s].mean())),
            )
        )
    head = ("main cluster", "cases", "at least 90 % in it", "less", "share of all memberships")
    mixed = int((top < 0.9).sum())
    sentence = f"{counted(len(top))}, of which {mixed:,} ({percent(mixed / len(top))}) have less than 90 % in one cluster."
    alt = "Heat map: one row per cluster, one column per case, dark where the case belongs to the cluster."
    return picture(
        plots.plot_memberships(fitted, made=made), alt, sentence, table("Cases by their main cluster", head, rows, (1, 2, 3, 4))
    )


def differ(found: DifferencesExplanation) -> tuple[Block, ...]:
    about = "A chain is one search for the clusters, from a start of its own. Where chains end in different clusters, the data"
    about += " leave it open which cases belong together."
    moves = [(way.title, move) for way in found.ways for move in found.moves(way)[:FLOWS] or ("the same main clusters",)]
    heads = tuple(f"chain {c}" for c in range(found.n_chains))
    rows = [(case.name, f"cluster {case.cluster}", *map(in_chain, case.chains)) for case in found.cases[:MOVING]]
    left = len(found.cases) - len(rows)
    caption = "Cases that could as well be in another cluster; “other” is a cluster that is not shown"
    alike = [
        (found.title_of(c.cluster), "yes" if c.same else "no", *(percent(share) for share in c.alike)) for c in found.clusters
    ]
    alt = "Bands lead from the clusters that are shown to those of the other chains, coloured where cases change clusters."
    return (
        Text(about),
        picture(
            draw_differences(found),
            alt,
            found.sentence,
            table("What is otherwise in other chains", ("chains", "the largest differences"), moves),
            table("How much of each cluster the chains share", ("cluster", "the same in all", *heads), alike),
            table(caption + (f"; {counted(left)} not listed" if left else ""), ("case", "shown", *heads), rows),
        ),
    )


def how_sure(fitted: Fitted, explained: ModelExplanation, made: bool) -> tuple[Block, ...]:
    shown = explained.clusters[:MANY_CLUSTERS]
    rows = [
        (short_title(c, made), cut(f.words, 80), f"{f.subspace_probability:.2f}", f"{f.prior:.2f}", "yes" if f.key else "no")
        for c in shown
        for f in plots.surest_features(c, 15)
    ]
    sure = sum(abs(f.subspace_probability - 0.5) > 0.4 for c in explained.clusters for f in c.features)
    cells = max(sum(len(c.features) for c in explained.clusters), 1)
    sentence = "Whether a feature belongs to the subspace of a cluster is nearly certain (at most 10 % of doubt) in "
    sentence += f"{percent(sure / cells)} of all pairs."
    alt = "For each cluster, dots show how probably a feature belongs to the subspace; short lines show that before the data."
    head = ("cluster", "value", "probability", "before the data", "key feature")
    numbers = table("How probably a feature belongs to the subspace", head, rows, (2, 3))
    drawn = picture(plots.plot_subspaces(explained), alt, sentence, numbers)
    if fitted.whole is not None:  # its clusters were not drawn sweep by sweep
        return (drawn,)
    return Heading("Key features"), drawn, Heading("Prototypes"), ribbon(fitted, explained, made)


def ribbon(fitted: Fitted, explained: ModelExplanation, made: bool) -> Picture:
    shown = explained.clusters[:MANY_CLUSTERS]
    chosen = [(short_title(c, made), p.name, percent(p.probability), len(p.ties)) for c in shown for p in c.candidates[:4]]
    surest = max(explained.clusters, key=lambda c: c.prototype.probability)
    least = min(explained.clusters, key=lambda c: c.prototype.probability)
    sentence = f"The prototype of cluster {surest.cluster} is the surest ({percent(surest.prototype.probability)} of the draws)"
    sentence += (
        f", that of cluster {least.cluster} the least sure ({percent(least.prototype.probability)})."
        if least is not surest
        else "."
    )
    alt = (
        "Ribbon: for each cluster the case that was the prototype at each sweep, darkest the chosen one; below, the log joint."
    )
    kept = fitted.trace["log_joint"][:, fitted.kept.first : fitted.kept.end]
    trace = [(k, f"{part.mean():.1f}", f"{part.min():.1f}", f"{part.max():.1f}") for k, part in enumerate(kept)]
    return picture(
        plot_ribbon(fitted, made=made),
        alt,
        sentence,
        table("Candidates for prototype", ("cluster", "case", "probability", "cases with these values"), chosen, (2, 3)),
        table("Log joint probability after the burn-in", ("chain", "mean", "lowest", "highest"), trace, (1, 2, 3)),
    )


def trust(fitted: Fitted, explained: ModelExplanation) -> tuple[Block, ...]:
    found = fitted.diagnostics
    quantities = [
        (in_words(name), f"{of.mean:.5g}", f"{of.sd:.3g}", short(of.r_hat), f"{of.ess_bulk:.0f}", f"{of.ess_tail:.0f}")
        for name, of in found.quantities.items()
    ]
    head = ("quantity", "mean", "standard deviation", "R-hat", "effective draws", "in the tails")
    settings = [
        (name, f"{value:.4g}", "set") for name, value in explained.hyperparameters.items() if name not in explained.learned
    ]
    settings += [
        (name, f"{mean:.4g}", f"learned; 90 % between {low:.4g} and {high:.4g}")
        for name, (mean, low, high) in explained.learned.items()
    ]
    numbers = explained.n_clusters_probabilities
    how_many = [] if not numbers else [(k, percent(p)) for k, p in numbers.items()]
    return (
        Text(explained.verdict),
        *([Text(advice(fitted))] if found.remedies else []),
        table("Have the chains converged?", head, quantities, (1, 2, 3, 4, 5)),
        *([Text(found.details, soft=True)] if found.details else []),
        table("Hyperparameters", ("name", "value", "how it was found"), settings, (1,)),
        *([table("How many clusters?", ("clusters in use", "probability"), how_many, (1,))] if how_many else []),
        Text(f"{counted(explained.chains, 'chain')} of {counted(explained.sweeps, 'sweep')}."),
    )
