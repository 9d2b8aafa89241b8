"""A fitted model → a study: clusters that can be shown, their explanations, items on which all agree, and what is asked."""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..explaining.explanation import clean, counted, feature_roles, listed
from .coders import read_coders
from .design import (
    CONDITIONS,
    POLICIES,
    SETS,
    Design,
    DesignError,
    Ending,
    Item,
    Representation,
    Rules,
    Stimulus,
    canonical,
    check,
)
from .schedule import shuffled
from .stimuli import Sight
from .topics import SETTINGS, Match, Topics, fit_topics, match_topics, read_topics, top_words
from .wording import DEMOGRAPHICS, checks, ratings, texts

CLEAR = 2 / 3  # a membership twice as large as all others together
SMALLEST = 3  # cases of a cluster that is shown
OPTIONS = (4, 6)


def make_design(
    model: Any,
    *,
    title: str = "Which group?",
    noun: str | None = None,
    arms: tuple[str, ...] = ("bcm", "lda"),
    lda: Any = "auto",
    overlap: float = 0.5,
    tries: int = 50,
    coders: Any = None,
    items_per_block: int = 8,
    options: int = 5,
    practice: int = 1,
    image_shape: tuple[int, int] | None = None,
    paper_mode: bool = False,
    break_every: int = 4,
    break_seconds: int = 5,
    resume: str = "resume",
    seed: int = 0,
    say: Callable[[str], Any] = lambda words: None,
) -> Design:
    """Make a study of a fitted model; all of it can be edited before it is frozen.

    Parameters
    ----------
    model : BayesianCaseModel
        Fitted.
    title : str
        Heading of the pages.
    noun : str, default=None
        What a case is called in the texts: recipe, animal. "image" or "case" if None.
    arms : tuple of str
        Two or three of "bcm" (the prototype), "lda" (the top words of a topic) and "subspace" (the prototype with its
        subspace marked).
    lda : "auto" or path
        Fit LDA, or read topics from a file (see `read_topics`).
    overlap : float
        Topics are accepted if the cases of every cluster and of its topic overlap by this share at least.
    tries : int
        Seeds of LDA to try.
    coders : path, default=None
        What two people say of the cases (see `read_coders`).
    items_per_block : int
        Questions in each condition.
    options : int
        Clusters to choose from, 4 to 6; all of them if there are fewer.
    practice : int
        Items to begin with that do not count.
    image_shape : (height, width), default=None
        The features are the pixels of an image, row by row.
    paper_mode : bool
        Only the order of the blocks changes from person to person; otherwise also which items go with which condition.
    break_every, break_seconds : int
        How often and how long to rest.
    resume : str
        One of "resume", "resume within", "restart block", "refuse": what happens when a person comes back.
    seed : int
        Decides everything that is random: LDA, which cases are asked about, later the schedule.
    say : callable
        Called with a sentence after every run of LDA.
    """
    arms = check_wishes(arms, overlap, tries, items_per_block, options, practice, break_every, break_seconds, resume)
    sight = Sight(model, image_shape)
    made: dict[str, Any] = {"model": about(model)}
    notes: list[str] = []
    prototypes = shown_clusters(model, sight, notes)
    clusters = sorted(prototypes)
    pictures = {(arm, s): prototypes[s] for arm in arms if arm != "lda" for s in clusters}
    topics, match = None, None
    if "lda" in arms:
        topics, match, words = explain_by_topics(model, sight, clusters, lda, overlap, tries, seed, made, notes, say)
        clusters = sorted(words)
        prototypes = {s: prototypes[s] for s in clusters}
        pictures = {(arm, s): pictures[arm, s] for arm, s in pictures if s in prototypes}
        pictures |= {("lda", s): sight.draw_words(words[s]) for s in clusters}
    elif lda != "auto":
        raise DesignError("--lda names a file, but lda is not one of --arms.")
    if "subspace" in arms:
        pictures |= {("subspace", s): marked(model, sight, s, notes) for s in clusters}
    coded = None
    if coders is not None:
        coded = read_coders(coders, own_names(model), model.labels_, model.n_clusters_)
        made["coders"] = str(coded)
    items = choose_items(model, sight, prototypes, topics, match, coded, len(arms), items_per_block, options, practice, seed)
    tell_items(items, clusters, options, coded, made, notes)
    questions, pixels = items_per_block * len(arms), sight.shape is not None
    design = Design(
        title=clean(title),
        language="en",
        seed=int(seed),
        mode="paper" if paper_mode else "crossed",
        conditions=arms,
        representations=tuple(
            Representation(arm, s, source(model, topics, match, arm, s), pictures[arm, s]) for arm in arms for s in clusters
        ),
        items=items,
        checks=checks(questions),
        questionnaire=ratings(len(arms)),
        demographics=DEMOGRAPHICS,
        texts=texts(noun or ("image" if pixels else "case"), arms, pixels, questions, practice, break_every, break_seconds),
        rules=Rules(
            break_every=break_every,
            break_seconds=break_seconds,
            resume=resume,
            resume_minutes=60,
            timeout_minutes=60,
            unique_people=True,
            complete=Ending("", None),
            no_consent=Ending("", None),
            timed_out=Ending("", None),
        ),
        made=made | {f"note_{k + 1}": note for k, note in enumerate(notes)},
    )
    design = replace(design, rules=with_codes(design))
    check(design)
    return design


def check_wishes(
    arms, overlap, tries, items_per_block, options, practice, break_every, break_seconds, resume
) -> tuple[str, ...]:
    arms = tuple(arms)
    if not 2 <= len(arms) <= len(CONDITIONS) or len(set(arms)) < len(arms) or not set(arms) <= set(CONDITIONS):
        raise DesignError(f"--arms must be two or three of {', '.join(CONDITIONS)}, not {', '.join(arms) or 'none'}.")
    if not OPTIONS[0] <= options <= OPTIONS[1]:
        raise DesignError(f"--options must be from {OPTIONS[0]} to {OPTIONS[1]}, not {options}.")
    if not 0 < overlap <= 1:
        raise DesignError(f"--overlap must be above 0 and at most 1, not {overlap:g}.")
    if tries < 1 or items_per_block < 1 or practice < 0:
        raise DesignError("--tries and --items-per-block must be at least 1, --practice at least 0.")
    if break_every < 1 or break_seconds < 0:
        raise DesignError("--break-every must be at least 1, --break-seconds at least 0.")
    if resume not in POLICIES:
        raise DesignError(f"--resume must be one of {', '.join(POLICIES)}, not {resume!r}.")
    return tuple(arm for arm in CONDITIONS if arm in arms)


def about(model) -> str:
    features, clusters = counted(len(model.feature_types_), "feature"), counted(model.n_clusters_, "cluster")
    return f"{counted(len(model.labels_))}, {features}, {clusters}"


def traced(design: Design, files: dict[str, Any]) -> Design:
    """With the name and the hash of the files that it was made of, and the version of what made it."""
    made = dict(design.made)
    for name, path in files.items():
        if path is not None:
            made[f"{name}_file"] = f"{Path(path).name}, SHA-256 {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    return replace(design, made=made | {"bayescase": __version__})


def own_names(model) -> list[str] | None:
    """Names of the cases, unless the model has a separate catalogue of prototypes, whose names they then are."""
    return model.case_names_ if model._data.x is model._data.candidates else None


def with_codes(design: Design) -> Rules:
    """Codes that a participant cannot guess, but that the same design always has."""

    def code(end):
        return hashlib.sha256(f"{end}/{canonical(design)}".encode()).hexdigest()[:8].upper()

    ends = {end: replace(getattr(design.rules, end), code=code(end)) for end in ("complete", "no_consent", "timed_out")}
    return replace(design.rules, **ends)


# --- clusters and their explanations --------------------------------------------------------------------------------------


def shown_clusters(model, sight, notes) -> dict[int, Stimulus]:
    """The clusters that people can be asked about, and their prototypes: enough cases, something to see, none twice."""
    sizes = np.bincount(model.labels_, minlength=model.n_clusters_)
    shown: dict[int, Stimulus] = {}
    for s in np.argsort(-sizes, kind="stable").tolist():
        row = prototype_of(model, s)
        twin = next((t for t in shown if sight.look(prototype_of(model, t)) == sight.look(row)), None)
        why = None
        if sizes[s] < SMALLEST:
            why = f"it has {counted(int(sizes[s]))}, fewer than {SMALLEST}"
        elif not len(sight.words(row)):
            why = "its prototype has nothing that could be shown"
        elif twin is not None:
            why = f"its prototype looks like that of cluster {twin}"
        if why is None:
            shown[s] = sight.draw(row)
        else:
            notes.append(f"Cluster {s} is left out: {why}.")
    if len(shown) < 2:
        why = f" {' '.join(notes)}" if notes else ""
        raise DesignError(f"A study needs two or more clusters that can be told apart, and this model has {len(shown)}.{why}")
    return shown


def prototype_of(model, s):
    """Its codes."""
    return model._data.candidates[model.prototypes_[s]]


def marked(model, sight, s, notes) -> Stimulus:
    """The prototype with its subspace marked."""
    keys = [j for j, role in enumerate(feature_roles(model, s)) if role.key]
    picture = sight.draw(prototype_of(model, s), keys)
    if not picture.marked and not any(line.marked for line in picture.lines):
        notes.append(f"Nothing that is shown of the prototype of cluster {s} belongs to its subspace, so nothing is marked.")
    return picture


def source(model, topics, match, arm, s) -> str:
    if arm == "lda":
        return topics.names[match.topic[s]]
    row = model.prototypes_[s]
    return clean(model.case_names_[row]) if model.case_names_ else f"case {row}"


class Found(NamedTuple):
    """Topics beside the clusters."""

    topics: Topics
    match: Match
    words: dict[int, list[int]]  # top words of each cluster's topic, as many as its prototype has

    @property
    def alike(self) -> bool:
        return len({frozenset(words) for words in self.words.values()}) < len(self.words)

    @property
    def least(self) -> float:
        """The smallest overlap; topics that show the same words are not told apart at all."""
        return 0.0 if self.alike else min(self.match.overlap.values())

    def only(self, clusters) -> "Found":
        """Without the other clusters."""
        match = Match({s: self.match.topic[s] for s in clusters}, {s: self.match.overlap[s] for s in clusters})
        return Found(self.topics, match, {s: self.words[s] for s in clusters})

    def visible(self, overlap) -> "Found":
        """The clusters that overlap with their topics so much."""
        return self.only([s for s, share in self.match.overlap.items() if share >= overlap])


def explain_by_topics(model, sight, clusters, lda, overlap, tries, seed, made, notes, say) -> Found:
    """Topics for the clusters that are visible in them."""
    lengths = {s: len(sight.words(prototype_of(model, s))) for s in clusters}

    def found(topics):
        match = match_topics(topics, model.labels_, clusters)
        return Found(topics, match, {s: top_words(sight, topics.weights[match.topic[s]], lengths[s]) for s in clusters})

    if lda == "auto":
        runs = (found(fit_topics(sight, model._data.x, len(clusters), seed + n)) for n in range(tries))
        chosen = until_visible(runs, overlap, seed, made, notes, say)
        clusters = sorted(chosen.words)
    else:
        topics = read_topics(lda, sight, model._data.x)
        if len(topics.names) < len(clusters):
            raise DesignError(f"{lda} has {counted(len(topics.names), 'topic')}, but {len(clusters)} clusters are shown.")
        chosen = found(topics)
        made["lda"] = f"{len(topics.names)} topics, read from a file"
    topics, match, words = chosen
    for s in clusters:
        name = topics.names[match.topic[s]]
        if len(words[s]) < lengths[s]:
            raise DesignError(
                f"Topic {name!r} has {counted(len(words[s]), 'word')}, but the prototype of its cluster {s} has {lengths[s]}; "
                "give topics with as many words."
            )
        if match.overlap[s] < overlap:
            raise DesignError(
                f"Cluster {s} and its topic {name!r} overlap by {match.overlap[s]:.2f}, less than {overlap:g}; allow less with "
                "--overlap, or give other topics."
            )
    if chosen.alike:
        raise DesignError("Two topics have the same top words, so that nobody could tell them apart; give other topics.")
    pairs = (f"{topics.names[match.topic[s]]} is cluster {s} ({match.overlap[s]:.2f})" for s in clusters)
    made["lda_match"] = f"{listed(pairs, len(clusters))}; as many top words as the prototype has, the weightiest first"
    return chosen


def until_visible(runs, overlap, seed, made, notes, say) -> Found:
    """The first run in which every cluster is visible, or the one with the most of them; what was tried is written down."""
    tried: list[float] = []
    best, kept, at = None, None, 0
    for run in runs:
        tried.append(run.least)
        say(f"LDA with seed {seed + len(tried) - 1}: the smallest overlap of a cluster with its topic is {run.least:.2f}.")
        shown = run.visible(overlap)
        if not shown.alike and (kept is None or len(shown.words) > len(kept.words)):
            best, kept, at = run, shown, len(tried) - 1
        if run.least >= overlap:
            break
    if best is None or kept is None or len(kept.words) < min(OPTIONS[0], len(best.words)):
        raise DesignError(
            f"LDA did not show the clusters in {counted(len(tried), 'run')}: at best (seed {seed + tried.index(max(tried))}) "
            f"the worst overlap of a cluster with its topic was {max(tried):.2f}, less than {overlap:g}; allow less with "
            "--overlap, more runs with --tries, use --lda FILE, or do without: --arms bcm,subspace."
        )
    lost = {s: share for s, share in best.match.overlap.items() if s not in kept.words}
    for s, share in lost.items():
        notes.append(f"Cluster {s} is left out: it overlaps with its topic by {share:.2f} only, less than {overlap:g}.")
    how = "every cluster overlaps with its topic"
    if lost:
        how = f"{len(kept.words)} of {len(best.words)} clusters overlap with their topics, the most of all seeds,"
    made["lda"] = f"{len(best.topics.names)} topics by tomotopy ({SETTINGS}); seed {seed + at} is accepted, as {how} "
    made["lda"] += f"by {overlap:g} or more"
    tally = ", ".join(f"{seed + n} ({least:.2f})" for n, least in enumerate(tried))
    made["lda_seeds_tried"] = f"{tally}: seed and the smallest overlap of a cluster with its topic"
    return kept


# --- items ----------------------------------------------------------------------------------------------------------------


def choose_items(model, sight, prototypes, topics, match, coded, k, per_block, options, practice, seed) -> tuple[Item, ...]:
    """Cases on which all agree, at random, evenly over clusters; the others only where these do not suffice."""
    pool = candidates(model, sight, prototypes, topics, match, coded, seed)
    wanted = k * per_block + practice
    if sum(map(len, pool.values())) < wanted:
        most = (sum(map(len, pool.values())) - practice) // k
        way = f"ask for fewer with --items-per-block {most}" if most > 0 else "fit a model to more cases"
        raise DesignError(
            f"The model has {counted(sum(map(len, pool.values())))} that can be asked about (no prototypes, no two alike), but "
            f"{wanted} are wanted; {way}."
        )
    taken = spread(pool, wanted)
    first = []
    for _ in range(practice):
        s = max(taken, key=lambda s: (len(taken[s]), -s))
        first.append((s, *taken[s].pop()))
    rest = [(s, *one) for s in sorted(taken) for one in taken[s]]  # dealt in this order, sets are even within clusters
    sets = {SETS[i]: shuffled(rest[i::k], f"{seed}/set/{i}") for i in range(k)}  # ids must not tell the cluster
    likeness = similarity(model, sight, prototypes)

    def item(id, name, s, row, flags):
        like = likeness(row)
        near = sorted((t for t in prototypes if t != s), key=lambda t: (-like[t], t))[: options - 1]
        picture = sight.draw(model._data.x[row])
        return Item(id, name, row, name_of(model, row), picture, s, tuple(sorted([s, *near])), flags)

    items = [item(f"{name.lower()}{n + 1}", name, *one) for name, chosen in sets.items() for n, one in enumerate(chosen)]
    return (*items, *(item(f"practice{n + 1}", "practice", *one) for n, one in enumerate(first)))


def candidates(model, sight, prototypes, topics, match, coded, seed):
    """{cluster: [(row, flags), …]} in random order: the cases that look like no prototype and like no other."""
    every = {sight.look(row) for row in model._data.candidates[model.prototypes_]}
    cluster_of = {} if match is None else {t: s for s, t in match.topic.items()}
    pool = defaultdict(list)
    for i in shuffled(range(len(model.labels_)), f"{seed}/cases"):
        s, row = int(model.labels_[i]), model._data.x[i]
        if s not in prototypes or not len(sight.words(row)) or sight.look(row) in every:
            continue
        every.add(sight.look(row))
        flags = []
        if model.memberships_[i, s] < CLEAR:
            flags.append(f"only {model.memberships_[i, s]:.0%} of it is in its cluster")
        if topics is not None and (other := cluster_of.get(int(topics.labels[i]))) != s:
            flags.append("LDA has it in no cluster that is shown" if other is None else f"LDA has it in cluster {other}")
        if coded is not None:
            flags += coded.flags(i, s)
        pool[s].append((i, tuple(flags)))
    return pool


def spread(pool, n):
    """n of the pool: those with fewer flags first, and among these always one of the cluster that has the fewest so far."""
    taken: dict[int, list] = {s: [] for s in sorted(pool)}
    for flags in sorted({len(one[1]) for some in pool.values() for one in some}):
        left = {s: [one for one in pool[s] if len(one[1]) == flags] for s in taken}
        while sum(map(len, taken.values())) < n and any(left.values()):
            s = min((s for s in left if left[s]), key=lambda s: (len(taken[s]), s))
            taken[s].append(left[s].pop(0))
    return taken


def similarity(model, sight, prototypes):
    """How much a case looks like the members of a cluster: the share of them that have a word of it, on average."""
    x, n = model._data.x, len(sight.values)
    share = {}
    for s in prototypes:
        members = x[model.labels_ == s]
        share[s] = np.bincount(members[members >= 0].astype(np.intp), minlength=n) / len(members)
    return lambda row: {s: float(share[s][sight.words(x[row])].mean()) for s in prototypes}


def name_of(model, row) -> str:
    names = own_names(model)
    return clean(names[row]) if names else f"case {row}"


def tell_items(items, clusters, options, coded, made, notes) -> None:
    """What was chosen and how, in words."""
    agree = [f"the model has a share of {CLEAR:.2f} or more in one cluster"]
    agree += ["LDA in the same one"] if "lda" in made else []
    agree += ["both coders, too"] if coded is not None else []
    made["items"] = f"at random, evenly over clusters, among cases that look like no prototype, where {', '.join(agree)}"
    n = min(options, len(clusters))
    others = f"{n} of {len(clusters)}: the right one, and those whose members share most of the features of the case"
    made["options"] = f"all {n} clusters" if n == len(clusters) else others
    if len(clusters) < options:
        notes.append(
            f"There are only {len(clusters)} clusters to choose from, not {options}: every question offers all of them."
        )
    flagged = [item for item in items if item.flags]
    if flagged:
        some = (f"{item.id} ({'; '.join(item.flags)})" for item in flagged)
        notes.append(f"{counted(len(flagged), 'item')} must be looked at, as too few cases are clear: {listed(some, 5)}.")
    idle = [str(s) for s in clusters if s not in {item.correct for item in items if item.item_set != "practice"}]
    if idle:
        notes.append(f"No question is about cluster {listed(idle, len(idle))}, as no case of it could be chosen.")
