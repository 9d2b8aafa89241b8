"""A fitted model → a study: clusters that can be shown, their explanations, items on which all agree, and what is asked."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...explaining.words import clean, counted
from .coders import read_coders
from .design import Design, DesignError, Group, ShownExplanation, Stimulus
from .design_checks import check
from .items import Judges, choose_items, tell_items
from .language import catalogue
from .source_model import SourceModel, source_model
from .stimuli import CaseView
from .topic_arm import TopicArm, explain_by_topics
from .wishes import MakingNotes, ModelWishes
from .wording import (
    Wanted,
    arm_condition,
    block_ratings,
    checks,
    confidence,
    demographics,
    plan,
    rules,
    texts,
    with_codes,
)

SMALLEST = 3  # cases of a cluster that is shown


def make_design(model: Any, say: Callable[[str], Any] = lambda words: None, **wishes: Any) -> Design:
    """Make a study of a fitted model; all of it can be edited before it is frozen.

    Parameters
    ----------
    model : BayesianCaseModel
        Fitted.
    say : callable
        Called with a sentence after every run of LDA.
    **wishes
        See `ModelWishes`.
    """
    return design_of(source_model(model), ModelWishes(**wishes), MakingNotes(say))


def design_of(source: SourceModel, wishes: ModelWishes, notes: MakingNotes) -> Design:
    view, arms, language = CaseView(source, wishes.image_shape), wishes.arms, wishes.language
    notes.made["model"] = str(source)
    prototypes = shown_clusters(source, view, notes)
    topics = None
    if "lda" in arms:
        topics = explain_by_topics(source, view, sorted(prototypes), wishes, notes)
        prototypes = {s: prototypes[s] for s in sorted(topics.words)}
    clusters = sorted(prototypes)
    explanations = tuple(explanation(source, view, topics, prototypes, arm, s, notes) for arm in arms for s in clusters)
    coded = None
    if wishes.coders is not None:
        coded = read_coders(wishes.coders, source.case_names, source.labels, source.n_clusters)
        notes.made["coders"] = str(coded)
    judges = Judges(topics, coded)
    items = choose_items(source, view, prototypes, judges, wishes)
    tell_items(items, clusters, judges, wishes, notes)
    conditions = tuple(arm_condition(arm, language) for arm in arms)
    questions = wishes.items_per_block * wishes.sets
    wanted = Wanted(
        "classify", questions, wishes.sets, tuple(condition.about for condition in conditions), wishes.practice,
        images=view.shape is not None, boxed="subspace" in arms, unsaid=view.shape is not None and "lda" in arms,
    )  # fmt: skip
    design = Design(
        title=clean(wishes.title or catalogue(language)("new.title.classify")),
        language=language,
        seed=int(wishes.seed),
        task="classify",
        layout=wishes.layout,
        mode="paper" if wishes.paper_mode else "crossed",
        order=wishes.order,
        conditions=conditions,
        groups=tuple(Group(s, f"cluster {s}") for s in clusters),
        explanations=explanations,
        items=items,
        checks=checks(language, "classify", questions),
        item_ratings=(confidence(language),) if wishes.confidence else (),
        block_ratings=block_ratings(language),
        questionnaire=(),
        demographics=demographics(language),
        texts=texts(wishes, wanted),
        plan=plan(wishes, "accuracy"),
        rules=rules(wishes),
        made=notes.as_made(),
    )
    design = with_codes(design, wishes.platform)
    check(design)
    return design


def traced(design: Design, files: dict[str, Any]) -> Design:
    """With the name and the hash of the files that it was made of, and the version of what made it."""
    made = dict(design.made)
    for name, path in files.items():
        if path is not None:
            made[f"{name}_file"] = f"{Path(path).name}, SHA-256 {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    return replace(design, made=made | {"bayescase": __version__})


# --- clusters and their explanations --------------------------------------------------------------------------------------


def shown_clusters(source: SourceModel, view: CaseView, notes: MakingNotes) -> dict[int, Stimulus]:
    """The clusters that people can be asked about, and their prototypes: enough cases, something to see, none twice."""
    sizes = np.bincount(source.labels, minlength=source.n_clusters)
    shown: dict[int, Stimulus] = {}
    for s in np.argsort(-sizes, kind="stable").tolist():
        row = source.prototypes[s]
        twin = next((t for t in shown if view.appearance(source.prototypes[t]) == view.appearance(row)), None)
        why = None
        if sizes[s] < SMALLEST:
            why = f"it has {counted(int(sizes[s]))}, fewer than {SMALLEST}"
        elif not len(view.drawn(row)):
            why = "its prototype has nothing that could be shown"
        elif twin is not None:
            why = f"its prototype looks like that of cluster {twin}"
        if why is None:
            shown[s] = view.draw(row)
        else:
            notes.warnings.append(f"Cluster {s} is left out: {why}.")
    if len(shown) < 2:
        why = f" {' '.join(notes.warnings)}" if notes.warnings else ""
        raise DesignError(f"A study needs two or more clusters that can be told apart, and this model has {len(shown)}.{why}")
    return shown


def explanation(
    source: SourceModel,
    view: CaseView,
    topics: TopicArm | None,
    prototypes: dict[int, Stimulus],
    arm: str,
    s: int,
    notes: MakingNotes,
) -> ShownExplanation:
    """How an arm explains a cluster."""
    if arm == "lda" and topics is not None:
        return ShownExplanation(arm, s, None, topics.name(s), view.draw_words(topics.words[s]))
    picture = prototypes[s]
    if arm == "subspace":
        picture = view.draw(source.prototypes[s], source.subspaces[s])
        if not picture.marked and not any(line.marked for line in picture.lines):
            notes.warnings.append(
                f"Nothing that is shown of the prototype of cluster {s} belongs to its subspace, so nothing is marked."
            )
    return ShownExplanation(arm, s, None, source.prototype_names[s], picture)
