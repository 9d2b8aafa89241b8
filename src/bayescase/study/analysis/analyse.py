"""What the answers say: as in the paper, and as recommended. Pure functions of the exported tables."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ..design.design import Design
from . import mixed
from .answers_table import AnswerTable, Row, outcomes
from .compare import compare, judged
from .mixed import Term
from .paired import pooled
from .ratings import ratings
from .results import Analysis, Arm, Estimate, Odds, Result

LONG = 600  # seconds; nobody thinks so long about a question
BY_EXPLANATION = "explanation by condition"


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
    kept, left_out = counted_people(design, people, phase, simulated)
    attentive = [person for person in kept if not person["checks_failed"]]
    return Analysis(
        title=design.title,
        design_hash=design.hash,
        task=design.task,
        layout=design.layout,
        mode=design.mode,
        labels=design.labels,
        abouts={condition.id: condition.about for condition in design.conditions},
        primary=design.plan.primary,
        phase=phase,
        simulated=sum(bool(person["simulated"]) for person in kept),
        times=times,
        left_out=left_out,
        everyone=result(design, answers, kept, times),
        flagged=len(kept) - len(attentive),
        attentive=result(design, answers, attentive, times) if len(attentive) < len(kept) else None,
        planned=design.plan.sample_size,
    )


def counted_people(design: Design, people: Sequence[Row], phase: str, simulated: bool) -> tuple[list[Row], dict[str, int]]:
    """(those who count, why the others do not → how many)"""
    kept: list[Row] = []
    left_out: dict[str, int] = {}
    for person in people:
        why = reason_to_leave_out(design, person, phase, simulated)
        if why:
            left_out[why] = left_out.get(why, 0) + 1
        else:
            kept.append(person)
    return kept, left_out


def reason_to_leave_out(design: Design, person: Row, phase: str, simulated: bool) -> str:
    if person["simulated"] and not simulated:
        return "simulated"
    if phase != "all" and person["phase"] != phase:
        return f"{person['phase']} phase"
    if person["status"] != "complete":
        return str(person["status"])
    return "failed an attention check" if "attention" in design.plan.leave_out and person["checks_failed"] else ""


def result(design: Design, answers: Sequence[Row], people: Sequence[Row], times: str) -> Result:
    names = {person["participant"] for person in people}
    own = [row for row in answers if row["participant"] in names and not row["superseded"]]
    table = AnswerTable(design, own, "seconds" if times == "server" else "browser_seconds")
    compared = outcomes(design)
    pairs = list(combinations(range(len(design.conditions)), 2))
    found = [compare(table, people, outcome, a, b) for outcome in compared for a, b in pairs]
    return Result(
        people=len(people),
        answers=len(own),
        arms=tuple(arm(table, c) for c in range(len(design.conditions))),
        outcomes=compared,
        comparisons=judged(found, compared, design),
        odds=tuple(odds(table, a, b) for a, b in pairs) if design.task != "rate" else (),
        pooled=tuple(pooled(table, a, b) for a, b in pairs) if design.task != "rate" else (),
        ratings=ratings(design, table, people),
        by_person={who: shares(table, i) for i, who in enumerate(table.people)},
        by_item={what: tallies(table, table.item == i) for i, what in enumerate(table.items)},
        by_explanation={what: tallies(table, table.explanation == i) for i, what in enumerate(table.explanations)},
        seconds={
            name: tuple(table.seconds[(table.condition == c) & table.timed].tolist()) for c, name in enumerate(table.conditions)
        },
        notes=tuple(remarks(design, table)),
    )


def remarks(design: Design, table: AnswerTable):
    """What a reader should know before the numbers."""
    if design.mode == "paper":
        yield (
            "Every person saw the same items in the same condition, so a difference between items looks like one between "
            "conditions. No test of such data can tell the two apart, so there are no verdicts."
        )
    long = int((table.seconds > LONG).sum())
    if long:
        yield f"{long} answers took longer than {LONG // 60} minutes; they are counted. Logarithms suffer less from them."
    missing = int((~table.timed).sum())
    if missing:
        yield f"{missing} answers have no time and are left out of the comparison of times."


def arm(table: AnswerTable, c: int) -> Arm:
    keep = table.condition == c
    judged = keep & table.judged
    n, right = int(judged.sum()), int(table.right[judged].sum())
    seconds = table.seconds[keep & table.timed]
    mean, median = (float(np.mean(seconds)), float(np.median(seconds))) if len(seconds) else (None, None)
    people = len(np.unique(table.person[keep]))
    return Arm(table.conditions[c], people, int(keep.sum()), right, right / n if n else None, mean, median)


def shares(table: AnswerTable, i: int) -> dict[str, float]:
    own = (table.person == i) & table.judged
    return {name: float(table.right[own & (table.condition == c)].mean()) for c, name in met(table, own)}


def tallies(table: AnswerTable, keep: np.ndarray) -> dict[str, tuple[int, int]]:
    keep = keep & table.judged
    found = {name: table.right[keep & (table.condition == c)] for c, name in met(table, keep)}
    return {name: (int(right.sum()), len(right)) for name, right in found.items()}


def met(table: AnswerTable, keep: np.ndarray) -> list[tuple[int, str]]:
    return [(c, name) for c, name in enumerate(table.conditions) if (keep & (table.condition == c)).any()]


# --- odds -----------------------------------------------------------------------------------------------------------------


def odds(table: AnswerTable, a: int, b: int) -> Odds:
    """The logistic model of all conditions, with the block as a further effect (practice)."""
    first, second = table.conditions[a], table.conditions[b]
    for c in (a, b):
        if not ((table.condition == c) & table.judged).any():
            return Odds(first, second, None, None, {}, f"There are no answers in {table.design.labels[table.conditions[c]]}.")
    posterior, columns = table_posterior(table)
    contrast = np.zeros(columns)
    for which, sign in ((a, 1.0), (b, -1.0)):
        if which:
            contrast[which] = sign
    middle, low, high, above = posterior.contrast(contrast)
    ratio = Estimate(*(float(np.exp(x)) for x in (middle, low, high)))
    note = "Bayesian logistic model with effects of condition and block, of person, case and explanation, and their slopes"
    return Odds(first, second, ratio, above, posterior.spreads, note)


def table_posterior(table: AnswerTable) -> tuple[mixed.Posterior, int]:
    """Fitted once per table of answers. Slopes of what was met in one condition only would be nothing but intercepts."""
    if not hasattr(table, "posterior"):
        k, blocks, design = len(table.conditions), int(table.block.max()) + 1, table.design
        X = np.c_[np.ones(len(table.right)), np.eye(k)[table.condition][:, 1:], np.eye(blocks)[table.block][:, 1:]]
        persons = [Term("person", np.zeros(len(table.right), int))]
        if design.layout == "within":
            persons.append(Term("person by condition", table.condition))
        terms = [Term("case", table.item), Term(BY_EXPLANATION, k * table.explanation + table.condition)]
        if design.mode == "crossed":
            terms.append(Term("case by condition", k * table.item + table.condition))
        if not design.explains_items:
            terms.append(Term("explanation", table.explanation))
        elif design.mode == "crossed":
            terms.pop()  # the explanation is the case's own
        table.posterior = mixed.fit(table.right, X, table.person, persons, terms, BY_EXPLANATION), X.shape[1]  # type: ignore[attr-defined]
    return table.posterior  # type: ignore[attr-defined]
