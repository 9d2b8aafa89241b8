"""What the answers say: as in the paper, and as recommended. Pure functions of the exported tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ..design.design import Design
from . import mixed
from .answers_table import AnswerTable
from .paired import chi_square, holm, pooled_t, within
from .ratings import ratings
from .results import LABELS, Analysis, Arm, Estimate, Odds, Pair, Result

LONG = 600  # seconds; nobody thinks so long about a question
Row = Mapping[str, Any]


def analyse(
    design: Design,
    answers: Sequence[Row],
    people: Sequence[Row],
    *,
    phase: str = "live",
    simulated: bool = False,
    times: str = "server",
) -> Analysis:
    """Analyse the exported tables.

    Parameters
    ----------
    design : Design
    answers, people : sequences of mappings
        Rows as in `answers.csv` and `people.csv`.
    phase : {"live", "pilot", "all"}, default="live"
    simulated : bool, default=False
        Count simulated people, too.
    times : {"server", "browser"}, default="server"
        The server's time runs from the first sending of a question to its answer, reloads and the network included; the
        browser's from the last showing.
    """
    if phase not in ("live", "pilot", "all"):
        raise ValueError(f"phase must be 'live', 'pilot' or 'all', not {phase!r}.")
    if times not in ("server", "browser"):
        raise ValueError(f"times must be 'server' or 'browser', not {times!r}.")
    kept: list[Row] = []
    left_out: dict[str, int] = {}
    for person in people:
        why = reason_to_leave_out(person, phase, simulated)
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        else:
            kept.append(person)
    names = {person["participant"] for person in kept}
    counted = [row for row in answers if row["participant"] in names and not row["superseded"]]
    attentive = [person for person in kept if not person["checks_failed"]]
    flagged = len(kept) - len(attentive)
    names = {person["participant"] for person in attentive}
    without = [row for row in counted if row["participant"] in names]
    return Analysis(
        design.title,
        design.hash,
        design.mode,
        design.conditions,
        phase,
        sum(bool(person["simulated"]) for person in kept),
        times,
        left_out,
        result(design, counted, kept, times),
        flagged,
        result(design, without, attentive, times) if flagged else None,
    )


def reason_to_leave_out(person, phase, simulated):
    if person["simulated"] and not simulated:
        return "simulated"
    if phase != "all" and person["phase"] != phase:
        return f"{person['phase']} phase"
    return "" if person["status"] == "complete" else str(person["status"])


def result(design, answers, people, times):
    column = "seconds" if times == "server" else "browser_seconds"
    table = AnswerTable(design, answers, column)
    pairs = [pair(table, a, b, design) for a, b in combinations(range(len(design.conditions)), 2)]
    return Result(
        len(people),
        len(answers),
        tuple(arm(table, c) for c in range(len(design.conditions))),
        adjusted(pairs),
        ratings(design, people),
        {who: shares(table, i) for i, who in enumerate(table.people)},
        {what: tallies(table, table.item == i) for i, what in enumerate(table.items)},
        {name: tuple(table.seconds[(table.condition == c) & table.timed].tolist()) for c, name in enumerate(table.conditions)},
        tuple(remarks(design, table)),
    )


def remarks(design, table):
    """What a reader should know before the numbers."""
    if design.mode == "paper":
        yield (
            "Every person saw the same items in the same condition, so a difference between items looks like one between "
            "conditions; only the model with item effects takes account of it."
        )
    long = int((table.seconds > LONG).sum())
    if long:
        yield f"{long} answers took longer than {LONG // 60} minutes; they are counted. Logarithms suffer less from them."
    missing = int((~table.timed).sum())
    if missing:
        yield f"{missing} answers have no time and are left out of the comparison of times."
    if 0 < len(table.people) < 6:
        yield "With fewer than six people no test within participants can reach p < 0.05 by flipping signs."


def arm(table, c):
    keep = table.condition == c
    n, right = int(keep.sum()), int(table.right[keep].sum())
    seconds = table.seconds[keep & table.timed]
    mean, median = (float(np.mean(seconds)), float(np.median(seconds))) if len(seconds) else (None, None)
    return Arm(table.conditions[c], n, right, right / n if n else None, mean, median)


def shares(table, i):
    own = table.person == i
    return {name: float(table.right[own & (table.condition == c)].mean()) for c, name in met(table, own)}


def tallies(table, keep):
    found = {name: table.right[keep & (table.condition == c)] for c, name in met(table, keep)}
    return {name: (int(right.sum()), len(right)) for name, right in found.items()}


def met(table, keep):
    return [(c, name) for c, name in enumerate(table.conditions) if (keep & (table.condition == c)).any()]


# --- two conditions -------------------------------------------------------------------------------------------------------


def pair(table, a, b, design) -> Pair:
    log = np.log(np.where(table.timed, table.seconds, 1.0))
    everyone = np.ones(len(table.right), bool)
    return Pair(
        table.conditions[a],
        table.conditions[b],
        chi_square(table, a, b),
        pooled_t(table, a, b),
        within(table, table.right.astype(float), everyone, a, b, ratio=False),
        within(table, log, table.timed, a, b, ratio=True),
        odds(table, a, b),
    )


def adjusted(pairs):
    """Holm's p values over the pairs, for each kind of test."""
    if len(pairs) < 2:
        return tuple(pairs)
    for path in (
        ("pooled_accuracy",),
        ("pooled_time",),
        ("accuracy", "t"),
        ("accuracy", "flip"),
        ("time", "t"),
        ("time", "flip"),
    ):
        p = holm([get(pair, path).p for pair in pairs])
        pairs = [put(pair, path, replace(get(pair, path), holm=value)) for pair, value in zip(pairs, p, strict=True)]
    return tuple(pairs)


def get(record, path):
    for name in path:
        record = getattr(record, name)
    return record


def put(record, path, value):
    name, *rest = path
    return replace(record, **{name: put(getattr(record, name), rest, value) if rest else value})


def odds(table, a, b) -> Odds:
    """The logistic model of all conditions, with the block as a further effect (practice)."""
    k = len(table.conditions)
    for c in (a, b):
        if not (table.condition == c).any():
            return Odds(None, None, None, None, f"There are no answers in {LABELS[table.conditions[c]]}.")
    c = np.zeros(2 * k - 1)
    for which, sign in ((a, 1.0), (b, -1.0)):
        if which:
            c[which] = sign
    posterior = table_posterior(table)
    middle, low, high, above = posterior.contrast(c)
    ratio = Estimate(*(float(np.exp(x)) for x in (middle, low, high)))
    person, item = posterior.spread()
    return Odds(ratio, above, person, item, "Bayesian logistic model with effects of condition, block, person and item")


def table_posterior(table):
    """Fitted once per table of answers."""
    if not hasattr(table, "posterior"):
        k = len(table.conditions)
        X = np.c_[np.ones(len(table.right)), np.eye(k)[table.condition][:, 1:], np.eye(k)[table.block][:, 1:]]
        table.posterior = mixed.fit(table.right, X, table.person, table.item)
    return table.posterior
