"""What was decided before there were data, as a document: hypotheses, design, people, outcomes, analysis; with the hash."""

from .analysis.answers_table import outcomes
from .analysis.generalise import FEWEST
from .analysis.results import SURE
from .design.design import PRACTICE, Design, DesignError
from .design.schedule import cells

TASKS = {
    "classify": "People see a case and several groups, each by its explanation, and say which group the case belongs to.",
    "predict": "People see a case and an explanation, and say what the model will answer (forward simulation).",
    "rate": "People see a case, what the model says of it, and an explanation, and rate the explanation.",
}
ORDERS = {
    "random": "in a random order of words per person, the same on all cards of that person",
    "alphabetical": "in alphabetical order",
    "given": "in the order of their sources",
}


def lacks(design: Design) -> list[str]:
    """What must be decided first."""
    plan = design.plan
    missing = [name for name, value in (("hypotheses", plan.hypotheses), ("stopping", plan.stopping)) if not value]
    return missing + (["sample_size"] if plan.sample_size is None else [])


def document(design: Design, frozen: bool) -> str:
    """Markdown, to be uploaded to a registry."""
    missing = lacks(design)
    if missing:
        raise DesignError(f"plan in design.json lacks {', '.join(missing)}; decide that before the study is registered.")
    parts = [
        f"# Preregistration: {' '.join(design.title.split())}",
        f"Design {design.hash}, {'frozen' if frozen else 'NOT FROZEN: freeze it before this document is registered'}. Every "
        "page, item, explanation and schedule follows from the file with this hash.",
        "## Hypotheses",
        "\n".join(f"{k}. {words}" for k, words in enumerate(design.plan.hypotheses, 1)),
        "## Design",
        *design_words(design),
        "## People",
        *people_words(design),
        "## Outcomes",
        outcome_words(design),
        "## Analysis",
        *analysis_words(design),
    ]
    return "\n\n".join(parts) + "\n"


def design_words(design: Design) -> list[str]:
    ways = "\n".join(f"- **{condition.label}** (`{condition.id}`): {condition.about}" for condition in design.conditions)
    if design.layout == "within":
        how = f"Everybody meets every condition, one per block, {len(design.of_set('A'))} items each. "
        how += "Item sets change conditions from person to person. " if design.mode == "crossed" else "Item sets are fixed. "
    else:
        how = f"Each person meets one condition, with all {design.questions} items. "
    how += f"{len(cells(design))} cells are filled evenly; the schedule follows from the hash, seed {design.seed} and the slot."
    asked = [item for item in design.items if item.item_set != PRACTICE]
    behind = len({design.explanation_behind(item) for item in asked})
    return [
        TASKS[design.task],
        ways,
        how,
        f"{len(asked)} items, about {behind} explanations per condition; cards are shown {ORDERS[design.order]}.",
    ]


def people_words(design: Design) -> list[str]:
    plan, rules = design.plan, design.rules
    who = {
        "open": "anybody with the address",
        "id": f"people with an id in {rules.admission.id_parameter}",
        "invited": "people on a list",
    }[rules.admission.who]
    tries = rules.comprehension_tries
    checks = [f"{sum(check.after > 0 for check in design.checks)} attention checks flag, and end nothing"]
    if any(check.after == 0 for check in design.checks):
        checks.append(f"comprehension checks end the study for a person after {tries} wrong answers")
    out = (
        "People who fail an attention check are left out."
        if "attention" in plan.leave_out
        else ("People who fail an attention check are counted; results without them are reported, too.")
    )
    return [
        f"{plan.sample_size} complete people; admitted are {who}. {plan.stopping}",
        f"{'; '.join(checks)}. {out} People who are not complete, and those who withdraw, are left out.",
    ]


def outcome_words(design: Design) -> str:
    lines = []
    for outcome in outcomes(design):
        kind = {"share": "share of right answers", "ratio": "log seconds, reported as a ratio", "points": "rating"}[
            outcome.scale
        ]
        per = "per answer" if outcome.level == "answer" else "per part"
        lines.append(f"- **{outcome.family}**: {outcome.name} ({kind}, {per})")
    return "\n".join(lines)


def analysis_words(design: Design) -> list[str]:
    plan = design.plan
    reach = (
        "Each outcome that has a value per answer is compared by least squares with effects of persons, items and blocks, and "
        "a difference per explanation. Two intervals are given: for these explanations (people and cases vary; t with "
        "Satterthwaite's degrees of freedom), and for explanations of this kind (explanations vary, too; random-effects mean "
        f"with Hartung and Knapp's t, from {FEWEST} explanations on). Ratings of a part are compared by Wilcoxon's signed-rank "
        "test within people, or Brunner and Munzel's between them."
    )
    if design.mode == "paper":
        reach = "As item sets are fixed to conditions, differences are described, and no verdict is given."
    return [
        reach,
        "p values are adjusted by Holm's method within two families, the primary outcome over all pairs of conditions and all "
        f"other outcomes together; below {SURE:g} counts. Explanations of this kind are asked about where these explanations "
        "differ.",
        f"Two conditions count as equal if the 90 % interval lies within ±{100 * plan.equal_within:g} percentage points, "
        f"{plan.equal_within:g} of the range of a rating, or a ratio of times between {1 / plan.equal_ratio:.3g} and "
        f"{plan.equal_ratio:g}.",
        "`bayescase study analyse` does all of this; `analysis.R` in an export does the mixed models with lme4.",
    ]
