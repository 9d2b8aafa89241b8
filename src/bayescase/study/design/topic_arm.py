"""The condition "lda": LDA is fitted, or read, until the clusters are visible in its topics."""

from collections.abc import Iterable
from typing import NamedTuple

from ...errors import Advice, Setting
from ...explaining.words import counted, listed
from .design import DesignError, WishError
from .source_model import SourceModel
from .stimuli import CaseView
from .topics import SETTINGS, Match, Topics, fit_topics, match_topics, read_topics, top_words
from .wishes import OPTIONS, MakingNotes, ModelWishes


class TopicArm(NamedTuple):
    """Topics beside the clusters."""

    topics: Topics
    match: Match
    words: dict[int, list[int]]  # top words of each cluster's topic, as many as its prototype has

    @property
    def alike(self) -> bool:
        """Do two topics show the same words?"""
        return len({frozenset(words) for words in self.words.values()}) < len(self.words)

    @property
    def smallest_overlap(self) -> float:
        """Topics that show the same words are not told apart at all."""
        return 0.0 if self.alike else min(self.match.overlap.values())

    def only(self, clusters: Iterable[int]) -> "TopicArm":
        """Without the other clusters."""
        clusters = list(clusters)
        match = Match({s: self.match.topic[s] for s in clusters}, {s: self.match.overlap[s] for s in clusters})
        return TopicArm(self.topics, match, {s: self.words[s] for s in clusters})

    def visible(self, overlap: float) -> "TopicArm":
        """The clusters that overlap with their topics so much."""
        return self.only(s for s, share in self.match.overlap.items() if share >= overlap)

    def name(self, s: int) -> str:
        return self.topics.names[self.match.topic[s]]

    def cluster_of(self, case: int) -> int | None:
        """The cluster whose topic the case has; None if no cluster that is shown has it."""
        return next((s for s, topic in self.match.topic.items() if topic == self.topics.labels[case]), None)


def explain_by_topics(
    source: SourceModel, view: CaseView, clusters: list[int], wishes: ModelWishes, notes: MakingNotes
) -> TopicArm:
    """Topics for the clusters that are visible in them."""
    lengths = {s: len(view.drawn(source.prototypes[s])) for s in clusters}

    def matched(topics):
        match = match_topics(topics, source.labels, clusters)
        return TopicArm(topics, match, {s: top_words(view, topics.weights[match.topic[s]], lengths[s]) for s in clusters})

    if wishes.lda == "auto":
        runs = (matched(fit_topics(view, source.cases, len(clusters), wishes.seed + n)) for n in range(wishes.tries))
        chosen = until_visible(runs, wishes, notes)
    else:
        topics = read_topics(wishes.lda, view, source.cases)
        if len(topics.names) < len(clusters):
            number = counted(len(topics.names), "topic")
            raise DesignError(f"{wishes.lda} has {number}, but {len(clusters)} clusters are shown.")
        chosen = matched(topics)
        notes.made["lda"] = f"{len(topics.names)} topics, read from a file"
    check_topics(chosen, lengths, wishes.overlap)
    pairs = [f"{chosen.name(s)} is cluster {s} ({chosen.match.overlap[s]:.2f})" for s in sorted(chosen.words)]
    notes.made["lda_match"] = f"{listed(pairs, len(pairs))}; as many top words as the prototype has, the weightiest first"
    return chosen


def check_topics(arm: TopicArm, lengths: dict[int, int], overlap: float) -> None:
    for s, words in sorted(arm.words.items()):
        if len(words) < lengths[s]:
            raise DesignError(
                f"Topic {arm.name(s)!r} has {counted(len(words), 'word')}, but the prototype of its cluster {s} has "
                f"{lengths[s]}; give topics with as many words."
            )
        if arm.match.overlap[s] < overlap:
            raise WishError(
                "Cluster {s} and its topic {name!r} overlap by {share:.2f}, less than {overlap:g}.",
                Advice("allow less with {}", Setting("overlap")),
                Advice("give other topics"),
                s=s,
                name=arm.name(s),
                share=arm.match.overlap[s],
                overlap=overlap,
            )
    if arm.alike:
        raise DesignError("Two topics have the same top words, so that nobody could tell them apart; give other topics.")


def until_visible(runs: Iterable[TopicArm], wishes: ModelWishes, notes: MakingNotes) -> TopicArm:
    """The first run in which every cluster is visible, or the one with the most of them; what was tried is written down."""
    overlap, seed = wishes.overlap, wishes.seed
    tried: list[float] = []
    best, kept, at = None, None, 0
    for run in runs:
        tried.append(run.smallest_overlap)
        now = seed + len(tried) - 1
        notes.say(f"LDA with seed {now}: the smallest overlap of a cluster with its topic is {tried[-1]:.2f}.")
        shown = run.visible(overlap)
        if not shown.alike and (kept is None or len(shown.words) > len(kept.words)):
            best, kept, at = run, shown, len(tried) - 1
        if tried[-1] >= overlap:
            break
    if best is None or kept is None or len(kept.words) < min(OPTIONS[0], len(best.words)):
        raise WishError(
            "LDA did not show the clusters in {runs}: at best (seed {best}) the worst overlap of a cluster with its topic was "
            "{share:.2f}, less than {overlap:g}.",
            Advice("allow less with {}", Setting("overlap")),
            Advice("more runs with {}", Setting("tries")),
            Advice("use topics of another program with {}", Setting("lda", "FILE")),
            Advice("do without LDA with {}", Setting("arms", ("bcm", "subspace"))),
            runs=counted(len(tried), "run"),
            best=seed + tried.index(max(tried)),
            share=max(tried),
            overlap=overlap,
        )
    lost = {s: share for s, share in best.match.overlap.items() if s not in kept.words}
    for s, share in lost.items():
        less = f"it overlaps with its topic by {share:.2f} only, less than {overlap:g}"
        notes.warnings.append(f"Cluster {s} is left out: {less}.")
    how = "every cluster overlaps with its topic"
    if lost:
        how = f"{len(kept.words)} of {len(best.words)} clusters overlap with their topics, the most of all seeds,"
    notes.made["lda"] = (
        f"{len(best.topics.names)} topics by tomotopy ({SETTINGS}); seed {seed + at} is accepted, as {how} by {overlap:g} or "
        "more"
    )
    tally = ", ".join(f"{seed + n} ({least:.2f})" for n, least in enumerate(tried))
    notes.made["lda_seeds_tried"] = f"{tally}: seed and the smallest overlap of a cluster with its topic"
    return kept
