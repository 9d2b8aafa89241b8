"""A study made by hand, for tests that need a design but no model: five clusters of dishes by their ingredients."""

from dataclasses import replace

from bayescase.study.design.design import (
    Check,
    Design,
    Ending,
    Field,
    Item,
    Likert,
    Line,
    Representation,
    Rules,
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
    return Stimulus("set", tuple(Line(name, None, False) for name in sorted(names)), None, (), ())


def topic(cluster) -> Stimulus:
    """As many words as the prototype has, the weightiest first; one of them is of another cluster."""
    own, other = CLUSTERS[cluster][1], CLUSTERS[cluster - 1][1]
    return Stimulus("set", tuple(Line(name, None, False) for name in (*own[1:], other[0])), None, (), ())


def item(id, item_set, case, cluster, extra) -> Item:
    """A case of a cluster: its ingredients but one, and another; the options are four neighbours and itself, or all five."""
    name, own = CLUSTERS[cluster]
    options = tuple(range(5)) if case % 2 else tuple(sorted((cluster + step) % 5 for step in range(4)))
    return Item(id, item_set, case, f"{name} {case}", ingredients(*own[:-1], EXTRAS[extra]), cluster, options, ())


def small_design(**changes) -> Design:
    """Eight questions in each of two conditions, a practice item, two checks, four ratings, three fields."""
    items = [item(f"a{i + 1}", "A", i, i % 5, i) for i in range(8)]
    items += [item(f"b{i + 1}", "B", 8 + i, (i + 2) % 5, i) for i in range(8)]
    items += [item("practice", "practice", 16, 1, 3)]
    bcm = [Representation("bcm", s, name, ingredients(*own)) for s, (name, own) in enumerate(CLUSTERS)]
    lda = [Representation("lda", s, f"topic {s}", topic(s)) for s in range(5)]
    design = Design(
        title="Dishes",
        language="en",
        seed=1,
        mode="crossed",
        conditions=("bcm", "lda"),
        representations=(*bcm, *lda),
        items=tuple(items),
        checks=(
            Check("check-1", "To show that you read this, choose “blue”.", ("red", "blue", "green"), 1, 6),
            Check("check-2", "To show that you read this, choose “seven”.", ("five", "six", "seven"), 2, 14),
        ),
        questionnaire=(
            Likert("clear", "The groups were easy to understand.", AGREEMENT),
            Likert("sure", "I was sure of my answers.", AGREEMENT),
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
        rules=Rules(
            break_every=4,
            break_seconds=5,
            resume="resume",
            resume_minutes=60,
            timeout_minutes=120,
            unique_people=True,
            complete=Ending("DONE-1", None),
            no_consent=Ending("NO-1", None),
            timed_out=Ending("LATE-1", None),
        ),
        made={"by": "hand"},
    )
    return replace(design, **changes)
