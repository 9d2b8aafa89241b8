"""What a new study says and asks until a researcher says it better: texts, ratings, demographics, checks, rules."""

import hashlib
from dataclasses import replace
from typing import NamedTuple

from .design import AnalysisPlan, Check, Condition, Design, Ending, Field, Likert, Rules, Texts, canonical
from .language import Catalogue, catalogue
from .platforms import admission, platform
from .wishes import Wishes

ENDINGS = ("complete", "no_consent", "timed_out", "screened_out")
LABELS = {"bcm": "BCM", "lda": "LDA", "subspace": "BCM with subspace"}


class Wanted(NamedTuple):
    """What the texts of a study depend on, besides the wishes."""

    task: str
    questions: int  # of a person
    parts: int  # blocks of a person
    ways: tuple[str, ...]  # what is compared, in a phrase each
    practice: int
    images: bool = False
    boxed: bool = False  # does a condition box what matters?
    unsaid: bool = False  # is there a condition with pixels of which nothing is said?


def arm_condition(arm: str, language: str) -> Condition:
    return Condition(arm, LABELS[arm], catalogue(language)(f"new.condition.{arm}"))


def texts(wishes: Wishes, wanted: Wanted) -> Texts:
    say, task = catalogue(wishes.language), wanted.task
    noun = wishes.noun or say("new.noun.image" if wanted.images else "new.noun.case")
    per_question = 0.75 if task != "rate" else 0.5  # minutes
    minutes = max(5, 5 * round(wanted.questions * per_question / 5))
    who = wishes.reviewed_by or say("new.reviewed")
    information = [
        say(f"new.information.{task}", questions=wanted.questions, noun=noun),
        say("new.information.time", minutes=minutes),
        say("new.information.privacy"),
        say("new.information.keep", days=wishes.keep_days) if wishes.keep_days else "",
        say("new.information.reviewed", who=who),
    ]
    ways = say("new.or").join(wanted.ways)
    return Texts(
        information="\n\n".join(filter(None, information)),
        consent=say("new.consent"),
        instructions="\n\n".join(filter(None, instructions(say, wishes, wanted, noun))),
        question=say(f"new.question.{task}", noun=noun),
        debrief=f"{say('new.debrief', ways=ways)}\n\n{say('new.debrief.tell')}",
        contact=wishes.contact or say("new.contact"),
    )


def instructions(say: Catalogue, wishes: Wishes, wanted: Wanted, noun: str) -> list[str]:
    pauses = (wanted.questions - 1) // wishes.break_every if wishes.break_seconds else 0
    parts = [
        say("new.instructions.parts", parts=wanted.parts) if wanted.parts > 1 else "",
        say("new.instructions.boxed") if wanted.boxed else "",
        say("new.instructions.unsaid") if wanted.unsaid else "",
    ]
    return [
        say(f"new.instructions.{wanted.task}", noun=noun),
        say("new.instructions.back" if wanted.task == "rate" else "new.instructions.care"),
        say("new.instructions.practice") if wanted.practice else "",
        say("new.instructions.breaks", seconds=wishes.break_seconds, every=wishes.break_every) if pauses else "",
        " ".join(filter(None, parts)),
    ]


def block_ratings(language: str) -> tuple[Likert, ...]:
    """Asked after each part, of its explanations."""
    say = catalogue(language)
    labels = tuple(say.list("new.agreement"))
    return tuple(Likert(name, say(f"new.rating.{name}"), labels) for name in ("understood", "useful", "effort", "trust"))


def confidence(language: str) -> Likert:
    say = catalogue(language)
    return Likert("confidence", say("new.confidence"), tuple(say.list("new.confidence.labels")))


def item_trust(language: str) -> Likert:
    """Asked with every question, where the task is to rate and nothing else is asked."""
    say = catalogue(language)
    return Likert("trust_item", say("new.rating.trust"), tuple(say.list("new.agreement")))


def demographics(language: str) -> tuple[Field, ...]:
    say = catalogue(language)
    return (
        Field("age", say("new.about.age"), "number", ()),
        Field("gender", say("new.about.gender"), "choice", tuple(say.list("new.about.gender.options"))),
        Field("familiarity", say("new.about.familiarity"), "choice", tuple(say.list("new.about.familiarity.options"))),
    )


def checks(language: str, task: str, questions: int) -> tuple[Check, ...]:
    """A comprehension check, and two attention checks at about a third and at most of the way."""
    say = catalogue(language)
    places = (max(1, questions * 3 // 8), max(1, questions * 7 // 8))
    return (
        Check("understood-task", say("new.comprehension"), tuple(say.list(f"new.comprehension.{task}")), 1, 0),
        Check("check-1", say("new.check.read"), tuple(say.list("new.check.read.options")), 2, places[0]),
        Check("check-2", say("new.check.animal"), tuple(say.list("new.check.animal.options")), 1, places[1]),
    )


def rules(wishes: Wishes) -> Rules:
    return Rules(
        break_every=wishes.break_every,
        break_seconds=wishes.break_seconds,
        resume=wishes.resume,
        resume_minutes=60,
        timeout_minutes=60,
        unique_people=True,
        comprehension_tries=2,
        keep_days=wishes.keep_days,
        admission=admission(wishes.platform, wishes.admission, wishes.quota),
        **dict.fromkeys(ENDINGS, Ending("", None)),
    )


def plan(wishes: Wishes, primary: str) -> AnalysisPlan:
    decided = tuple(wishes.hypotheses), primary, wishes.sample_size, wishes.stopping or ""
    return AnalysisPlan(*decided, leave_out=(), equal_within=0.05, equal_ratio=1.1)


def with_codes(design: Design, platform_name: str) -> Design:
    """Codes that a participant cannot guess, but that the same design always has, and where the platform wants them."""
    address = platform(platform_name).ending

    def ending(name):
        code = hashlib.sha256(f"{name}/{canonical(design)}".encode()).hexdigest()[:8].upper()
        return Ending(code, address.replace("{code}", code) if address else None)

    return replace(design, rules=replace(design.rules, **{name: ending(name) for name in ENDINGS}))
