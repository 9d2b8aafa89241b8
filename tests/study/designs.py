"""A study made by hand, for tests that need a design but no model: five clusters of dishes by their ingredients."""

from dataclasses import replace

from bayescase.study.design.design import (
    Admission,
    AnalysisPlan,
    Check,
    Condition,
    Design,
    Ending,
    Field,
    Group,
    Item,
    Likert,
    Line,
    Rules,
    ShownExplanation,
    Stimulus,
    Texts,
)

CLUSTERS = (
    ("chilli", ("beans", "beef", "chilli powder", "cumin", "onion", "tomato")),
    ("brownie", ("butter", "chocolate", "egg", "flour", "sugar", "vanilla")),
    ("pasta", ("basil", "garlic", "olive oil", "parmesan", "pasta", "tomato")),
    ("crepe", ("butter", "egg", "flour", "milk", "salt")),
    ("punch", ("lemon juice", "orange juice", "pineapple juice", "sugar", "water")),
)
EXTRAS = ("bay leaf", "cinnamon", "honey", "lime", "mint", "nutmeg", "paprika", "parsley")
AGREEMENT = ("Strongly disagree", "Disagree", "Neither", "Agree", "Strongly agree")


def ingredients(*names) -> Stimulus:
    return Stimulus("set", tuple(Line(name) for name in sorted(names)))


def topic(cluster) -> Stimulus:
    """As many words as the prototype has, the weightiest first; one of them is of another cluster."""
    own, other = CLUSTERS[cluster][1], CLUSTERS[cluster - 1][1]
    return Stimulus("set", tuple(Line(name) for name in (*own[1:], other[0])))


def item(id, item_set, case, cluster, extra) -> Item:
    """A case of a cluster: its ingredients but one, and another; the options are four neighbours and itself, or all five."""
    name, own = CLUSTERS[cluster]
    options = tuple(range(5)) if case % 2 else tuple(sorted((cluster + step) % 5 for step in range(4)))
    return Item(id, item_set, case, f"{name} {case}", ingredients(*own[:-1], EXTRAS[extra]), cluster, options, ())


def small_design(**changes) -> Design:
    """Eight questions in each of two conditions, practice, two checks, two ratings of each part, two of all, three fields."""
    items = [item(f"a{i + 1}", "A", i, i % 5, i) for i in range(8)]
    items += [item(f"b{i + 1}", "B", 8 + i, (i + 2) % 5, i) for i in range(8)]
    items += [item("practice", "practice", 16, 1, 3)]
    bcm = [ShownExplanation("bcm", s, None, name, ingredients(*own)) for s, (name, own) in enumerate(CLUSTERS)]
    lda = [ShownExplanation("lda", s, None, f"topic {s}", topic(s)) for s in range(5)]
    design = Design(
        title="Dishes",
        language="en",
        seed=1,
        task="classify",
        layout="within",
        mode="crossed",
        order="random",
        conditions=(Condition("bcm", "BCM", "by a typical dish"), Condition("lda", "LDA", "by frequent ingredients")),
        groups=tuple(Group(s, name) for s, (name, _) in enumerate(CLUSTERS)),
        explanations=(*bcm, *lda),
        items=tuple(items),
        checks=(
            Check("check-1", "To show that you read this, choose “blue”.", ("red", "blue", "green"), 1, 6),
            Check("check-2", "To show that you read this, choose “seven”.", ("five", "six", "seven"), 2, 14),
        ),
        item_ratings=(),
        block_ratings=(
            Likert("clear", "The groups were easy to understand.", AGREEMENT),
            Likert("sure", "I was sure of my answers.", AGREEMENT),
        ),
        questionnaire=(
            Likert("effort", "The task took a lot of effort.", AGREEMENT),
            Likert("pleasant", "I liked the task.", AGREEMENT),
        ),
        demographics=(
            Field("age", "Age in years", "number", ()),
            Field("gender", "Gender", "choice", ("woman", "man", "another")),
            Field("cooking", "What do you cook most often?", "text", ()),
        ),
        texts=Texts(
            information="You will sort dishes into groups.\n\nIt takes ten minutes.",
            consent="I have read this and take part of my own will.",
            instructions="Work as quickly and as accurately as possible.",
            question="Which group does this dish belong to?",
            debrief="Thank you. We compare two ways to explain groups.",
            contact="Ann Example, ann@example.org",
        ),
        plan=AnalysisPlan(("BCM is better.",), "accuracy", 24, "After 24 people.", (), 0.05, 1.1),
        rules=Rules(
            break_every=4,
            break_seconds=5,
            resume="resume",
            resume_minutes=60,
            timeout_minutes=120,
            unique_people=True,
            comprehension_tries=2,
            keep_days=None,
            admission=Admission("open", "PROLIFIC_PID", "[0-9a-z]{3,24}", ("STUDY_ID", "SESSION_ID"), None, 100_000),
            complete=Ending("DONE-1", None),
            no_consent=Ending("NO-1", None),
            timed_out=Ending("LATE-1", None),
            screened_out=Ending("OUT-1", None),
        ),
        made={"by": "hand"},
    )
    return replace(design, **changes)


def three_conditions(**changes) -> Design:
    """A third way to explain, and a third set of items."""
    design = small_design()
    items = [replace(one, id=f"c{i}", item_set="C") for i, one in enumerate(design.of_set("A"))]
    more = [replace(shown, condition="subspace") for shown in design.explanations if shown.condition == "bcm"]
    third = Condition("subspace", "BCM with subspace", "by a typical dish with boxes")
    return small_design(
        conditions=(*design.conditions, third),
        items=(*design.items, *items),
        explanations=(*design.explanations, *more),
        **changes,
    )


def between(**changes) -> Design:
    """One condition per person, all items for everybody."""
    design = small_design()
    items = tuple(replace(one, item_set="A") if one.item_set == "B" else one for one in design.items)
    return small_design(**{"layout": "between", "items": items} | changes)


def predicting(**changes) -> Design:
    """What will the model say? Each item has its own explanations: weights, and a text."""
    design = small_design()
    groups = tuple(Group(s, name) for s, name in enumerate(("yes", "no", "perhaps")))

    def case(i):
        return Stimulus("table", (Line("size", str(i)), Line("colour", "red")))

    def weights(i):
        return Stimulus("bars", (Line("size", str(i), False, 0.5 - i / 20), Line("colour", "red", False, -0.2)))

    items = tuple(Item(one.id, one.item_set, None, one.id, case(i), i % 3, (0, 1, 2), ()) for i, one in enumerate(design.items))
    shown = [ShownExplanation("bcm", None, one.id, "weights", weights(i)) for i, one in enumerate(items)]
    shown += [
        ShownExplanation("lda", None, one.id, "words", Stimulus("text", text=f"Case **{i}** is like one of size {i}."))
        for i, one in enumerate(items)
    ]
    return small_design(**{"task": "predict", "groups": groups, "items": items, "explanations": tuple(shown)} | changes)


def rating_design(**changes) -> Design:
    """How good is the explanation? Nothing is right or wrong."""
    design = small_design()
    items = tuple(replace(one, options=()) for one in design.items)
    asked = Likert("trust", "I trust this explanation.", AGREEMENT)
    plan = replace(design.plan, primary="trust")
    return small_design(**{"task": "rate", "items": items, "item_ratings": (asked,), "plan": plan} | changes)
