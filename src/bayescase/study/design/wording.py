"""What a new study says and asks until a researcher says it better: texts, ratings, demographics, attention checks."""

from .design import PLACEHOLDER, Check, Field, Likert, Texts
from .wishes import Wishes

AGREEMENT = ("Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree")

PARTS = ("first", "second", "third")
RATINGS = (
    ("understood", "I understood what the groups had in common."),
    ("confident", "I felt sure of my answers."),
    ("effort", "I had to think hard to choose a group."),
    ("useful", "What was shown of a group helped me to decide."),
)

DEMOGRAPHICS = (
    Field("age", "How old are you, in years?", "number", ()),
    Field("gender", "What is your gender?", "choice", ("Woman", "Man", "Non-binary", "Another")),
    Field(
        "familiarity",
        "How much do you know about the subject of this study?",
        "choice",
        ("Nothing", "A little", "Some", "A lot"),
    ),
)


WAYS = {
    "bcm": "by a typical member of the group",
    "lda": "by what is frequent in the group",
    "subspace": "by a typical member in which everything that matters is marked",
}


def texts(wishes: Wishes) -> Texts:
    arms, questions, pictures = wishes.arms, wishes.questions, wishes.image_shape is not None
    noun = wishes.noun or ("image" if pictures else "case")
    break_every, break_seconds = wishes.break_every, wishes.break_seconds
    pauses = (questions - 1) // break_every if break_seconds else 0
    rest = f"There is a break of {break_seconds} seconds after every {break_every} questions.\n\n" if pauses else ""
    first = "You begin with an example, which does not count.\n\n" if wishes.practice else ""
    boxed = " In one part some things are boxed: these matter most for the group." if "subspace" in arms else ""
    unsaid = " In one part the pictures are blue where nothing is said about the group." if pictures and "lda" in arms else ""
    minutes = max(5, 5 * round(questions * 0.75 / 5))
    return Texts(
        information=(
            f"In this study you sort things into groups. In each of {questions} questions you see one {noun} and several "
            f"groups, and choose the group that the {noun} belongs to. A few questions about you and about the task go with "
            "it.\n\n"
            f"It takes about {minutes} minutes. There are no risks beyond those of reading on a screen.\n\n"
            "Your answers and the time they take are stored under a random number, without your name and without your network "
            "address. They may be published in this form for research. You can stop at any time, without giving a reason; "
            "every page lets you delete what you have answered.\n\n"
            f"This study was reviewed by {PLACEHOLDER}: ethics committee and number of its decision]."
        ),
        consent=(
            "I am at least 18 years old. I have read the information above and could ask about it. I take part of my own free "
            "will, and know that I can stop and delete my answers at any time."
        ),
        instructions=(
            f"You will see one {noun} and several groups. Which group does the {noun} belong to? Choose one and "
            "confirm.\n\n"
            "Each group stands for many members that have something in common. You see a short description of it.\n\n"
            "Please answer as quickly and as accurately as possible. You cannot go back to a question.\n\n"
            f"{first}{rest}The study has {len(arms)} parts, and each describes the groups in another way; the question "
            f"stays the same.{boxed}{unsaid}"
        ),
        question=f"Which group does this {noun} belong to?",
        debrief=(
            "Thank you. We compare ways in which a computer can explain groups that it found: "
            f"{', or '.join(WAYS[arm] for arm in arms)}. Your answers show which of them helps people more.\n\n"
            "Please do not tell others what the study is about before they take part."
        ),
        contact=f"{PLACEHOLDER}: name, institution and e-mail address of the researcher]",
    )


def ratings(parts: int) -> tuple[Likert, ...]:
    """The same of each part, as each has its own condition; the analysis compares ids that differ in first, second, third."""
    return tuple(
        Likert(f"{name}_{part}", f"In the {part} part of the study: {text}", AGREEMENT)
        for name, text in RATINGS
        for part in PARTS[:parts]
    )


def checks(questions: int) -> tuple[Check, ...]:
    """Two, at about a third and at most of the way."""
    places = (max(1, questions * 3 // 8), max(1, questions * 7 // 8))
    return (
        Check(
            "check-1",
            "This question shows that you are reading. Please choose “blue”.",
            ("Red", "Green", "Blue", "Yellow"),
            2,
            places[0],
        ),
        Check("check-2", "Which of these is an animal?", ("Table", "Horse", "Window", "Spoon"), 1, places[1]),
    )
