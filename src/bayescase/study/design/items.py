"""Which cases are asked about: those on which all agree, evenly over clusters, and which clusters each is offered with."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from ...errors import Advice, Setting
from ...explaining.words import counted, listed
from .coders import Coded
from .design import PRACTICE, SETS, Item, Stimulus, WishError
from .schedule import shuffled
from .source_model import SourceModel
from .stimuli import CaseView
from .topic_arm import TopicArm
from .wishes import MakingNotes, ModelWishes

CLEAR = 2 / 3  # a membership twice as large as all others together


class Candidate(NamedTuple):
    """A case that could be asked about."""

    case: int
    flags: tuple[str, ...]  # why a researcher should look at it


class Judges(NamedTuple):
    """Who besides the model says where a case belongs; None: nobody was asked."""

    topics: TopicArm | None
    coders: Coded | None


def choose_items(
    source: SourceModel, view: CaseView, prototypes: dict[int, Stimulus], judges: Judges, wishes: ModelWishes
) -> tuple[Item, ...]:
    """Cases on which all agree, at random, evenly over clusters; the others only where these do not suffice."""
    pool, k = candidates(source, view, prototypes, judges, wishes.seed), wishes.sets
    found, wanted = sum(map(len, pool.values())), k * wishes.items_per_block + wishes.practice
    if found < wanted:
        most = (found - wishes.practice) // k
        fewer = Advice("ask for fewer with {}", Setting("items_per_block", most))
        raise WishError(
            "The model has {cases} that can be asked about (no prototypes, no two alike), but {wanted} are wanted.",
            fewer if most > 0 else Advice("fit a model to more cases"),
            cases=counted(found),
            wanted=wanted,
        )
    taken = spread(pool, wanted)
    practice = []
    for _ in range(wishes.practice):
        s = max(taken, key=lambda s: (len(taken[s]), -s))
        practice.append((s, taken[s].pop()))
    rest = [(s, one) for s in sorted(taken) for one in taken[s]]  # dealt in this order, sets are even within clusters
    sets = {SETS[i]: shuffled(rest[i::k], f"{wishes.seed}/set/{i}") for i in range(k)}  # ids must not tell the cluster
    likeness = similarity(source, view, prototypes)

    def item(id, item_set, s, one):
        like = likeness(one.case)
        near = sorted((t for t in prototypes if t != s), key=lambda t: (-like[t], t))[: wishes.options - 1]
        picture = view.draw(source.cases[one.case])
        return Item(id, item_set, one.case, source.case_name(one.case), picture, s, tuple(sorted([s, *near])), one.flags)

    items = [item(f"{name.lower()}{n + 1}", name, *one) for name, chosen in sets.items() for n, one in enumerate(chosen)]
    return (*items, *(item(f"practice{n + 1}", PRACTICE, *one) for n, one in enumerate(practice)))


def candidates(source, view, prototypes, judges, seed) -> dict[int, list[Candidate]]:
    """By cluster, in random order: the cases that look like no prototype and like no other."""
    seen = {view.appearance(row) for row in source.prototypes}
    pool = defaultdict(list)
    for i in shuffled(range(len(source.labels)), f"{seed}/cases"):
        s, row = int(source.labels[i]), source.cases[i]
        if s not in prototypes or not len(view.drawn(row)) or view.appearance(row) in seen:
            continue
        seen.add(view.appearance(row))
        flags = []
        if source.memberships[i, s] < CLEAR:
            flags.append(f"only {source.memberships[i, s]:.0%} of it is in its cluster")
        if judges.topics is not None and (other := judges.topics.cluster_of(i)) != s:
            flags.append("LDA has it in no cluster that is shown" if other is None else f"LDA has it in cluster {other}")
        if judges.coders is not None:
            flags += judges.coders.flags(i, s)
        pool[s].append(Candidate(i, tuple(flags)))
    return pool


def spread(pool: dict[int, list[Candidate]], n: int) -> dict[int, list[Candidate]]:
    """n of the pool: those with fewer flags first, and among these always one of the cluster that has the fewest so far."""
    taken: dict[int, list[Candidate]] = {s: [] for s in sorted(pool)}
    for flags in sorted({len(one.flags) for some in pool.values() for one in some}):
        left = {s: [one for one in pool[s] if len(one.flags) == flags] for s in taken}
        while sum(map(len, taken.values())) < n and any(left.values()):
            s = min((s for s in left if left[s]), key=lambda s: (len(taken[s]), s))
            taken[s].append(left[s].pop(0))
    return taken


def similarity(source, view, prototypes):
    """How much a case looks like the members of a cluster: the share of them that have a word of it, on average."""
    share = {}
    for s in prototypes:
        members = source.cases[source.labels == s]
        codes = members[members >= 0].astype(np.intp)
        share[s] = np.bincount(codes, minlength=len(view.values)) / len(members)
    return lambda case: {s: float(share[s][view.drawn(source.cases[case])].mean()) for s in prototypes}


def tell_items(items: tuple[Item, ...], clusters: list[int], judges: Judges, wishes: ModelWishes, notes: MakingNotes) -> None:
    """What was chosen and how, in words."""
    agree = [f"the model has a share of {CLEAR:.2f} or more in one cluster"]
    agree += ["LDA in the same one"] if judges.topics is not None else []
    agree += ["both coders, too"] if judges.coders is not None else []
    notes.made["items"] = f"at random, evenly over clusters, among cases that look like no prototype, where {', '.join(agree)}"
    n = min(wishes.options, len(clusters))
    others = f"{n} of {len(clusters)}: the right one, and those whose members share most of the features of the case"
    notes.made["options"] = f"all {n} clusters" if n == len(clusters) else others
    if len(clusters) < wishes.options:
        few = f"There are only {len(clusters)} clusters to choose from, not {wishes.options}"
        notes.warnings.append(f"{few}: every question offers all of them.")
    flagged = [item for item in items if item.flags]
    if flagged:
        some = (f"{item.id} ({'; '.join(item.flags)})" for item in flagged)
        words = f"{counted(len(flagged), 'item')} must be looked at, as too few cases are clear: {listed(some, 5)}."
        notes.warnings.append(words)
    unasked = [str(s) for s in clusters if s not in {item.correct for item in items if item.item_set != PRACTICE}]
    if unasked:
        words = f"No question is about cluster {listed(unasked, len(unasked))}, as no case of it could be chosen."
        notes.warnings.append(words)
