"""What a researcher wishes for a new study, and what was done about it, in words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from ...errors import Setting
from .design import ADMISSIONS, LAYOUTS, ORDERS, POLICIES, WishError
from .language import languages
from .platforms import platform

OPTIONS = (4, 6)  # clusters to choose from: the fewest and the most
ARMS = ("bcm", "lda", "subspace")


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How any study is to be made; `bayescase study new` has an option for each.

    Parameters
    ----------
    title : str
        Heading of the pages.
    noun : str, optional
        What a case is called in the texts: recipe, animal. "image" or "case" if None.
    language : str
        Of the pages and of the texts that the study begins with.
    layout : {"within", "between"}
        Everybody meets every condition, or one condition per person.
    paper_mode : bool
        Only the order of the blocks changes from person to person; otherwise also which items go with which condition.
    order : {"random", "alphabetical", "given"}
        Of the words on every card. At random: another order for each person, the same on all cards that the person sees.
    confidence : bool
        Ask with every question how sure people are.
    practice : int
        Items to begin with that do not count.
    break_every, break_seconds : int
        How often and how long to rest.
    resume : str
        One of "resume", "resume within", "restart block", "refuse": what happens when a person comes back.
    platform : str
        Where people are recruited: "prolific", "mturk", "sona", "cloudresearch", "none".
    admission : {"open", "id", "invited"}
        Who may take part when the study is live: anybody, who brings an id of the platform, who is on a list.
    quota : int, optional
        Complete people, after which nobody else is admitted.
    sample_size : int, optional
        Complete people that are planned for.
    hypotheses : tuple of str
        What is expected.
    stopping : str, optional
        When the collection of data ends.
    keep_days : int, optional
        After so many days receipts and hashes of ids can be deleted, so that nobody is known again.
    contact, reviewed_by : str, optional
        Who answers questions, and the ethics committee with the number of its decision; to be filled in later if None.
    seed : int
        Decides everything that is random: topics, which cases are asked about, the schedule.
    """

    title: str | None = None
    noun: str | None = None
    language: str = "en"
    layout: str = "within"
    paper_mode: bool = False
    order: str = "random"
    confidence: bool = False
    practice: int = 1
    break_every: int = 4
    break_seconds: int = 5
    resume: str = "resume"
    platform: str = "prolific"
    admission: str = "id"
    quota: int | None = None
    sample_size: int | None = None
    hypotheses: tuple[str, ...] = ()
    stopping: str | None = None
    keep_days: int | None = None
    contact: str | None = None
    reviewed_by: str | None = None
    seed: int = 0

    def __post_init__(self):
        for name, known in (
            ("layout", LAYOUTS),
            ("order", ORDERS),
            ("resume", POLICIES),
            ("admission", ADMISSIONS),
            ("language", languages()),
        ):
            if getattr(self, name) not in known:
                raise one_of(name, known, getattr(self, name))
        platform(self.platform)
        for name, least in (("practice", 0), ("break_every", 1), ("break_seconds", 0)):
            at_least(name, least, getattr(self, name))
        for name in ("quota", "sample_size", "keep_days"):
            if getattr(self, name) is not None:
                at_least(name, 1, getattr(self, name))
        if self.paper_mode and self.layout == "between":
            raise WishError(
                "{parameter} is about people who meet every condition; it cannot be had with {other}.",
                parameter="paper_mode",
                other=Setting("layout", "between"),
            )


def one_of(name: str, known: Sequence[str], value: object) -> WishError:
    return WishError("{parameter} must be one of {known}, not {value!r}.", parameter=name, known=", ".join(known), value=value)


def at_least(name: str, least: int, value: int) -> None:
    if value < least:
        raise WishError("{parameter} must be at least {least}, not {value}.", parameter=name, least=least, value=value)


@dataclass(frozen=True, kw_only=True)
class ModelWishes(Wishes):
    """How a study is to be made of a model.

    Parameters
    ----------
    arms : tuple of str
        Two or three of "bcm" (the prototype), "lda" (the top words of a topic) and "subspace" (the prototype with its
        subspace marked).
    lda : "auto" or path
        Fit LDA, or read topics from a file (see `read_topics`).
    overlap : float
        Topics are accepted if the cases of every cluster and of its topic overlap by this share at least.
    tries : int
        Seeds of LDA to try.
    coders : path, optional
        What two people say of the cases (see `read_coders`).
    items_per_block : int
        Questions in each condition.
    options : int
        Clusters to choose from, 4 to 6; all of them if there are fewer.
    image_shape : (height, width), optional
        The features are the pixels of an image, row by row.
    **others
        See `Wishes`.
    """

    arms: tuple[str, ...] = ("bcm", "lda")
    lda: str | PathLike = "auto"
    overlap: float = 0.5
    tries: int = 50
    coders: str | PathLike | None = None
    items_per_block: int = 8
    options: int = 5
    image_shape: tuple[int, int] | None = None

    def __post_init__(self):
        super().__post_init__()
        arms = tuple(self.arms)
        if not 2 <= len(arms) <= len(ARMS) or len(set(arms)) < len(arms) or not set(arms) <= set(ARMS):
            raise WishError(
                "{parameter} must be two or three of {known}, not {value}.",
                parameter="arms",
                known=", ".join(ARMS),
                value=", ".join(arms) or "none",
            )
        object.__setattr__(self, "arms", tuple(arm for arm in ARMS if arm in arms))
        if not OPTIONS[0] <= self.options <= OPTIONS[1]:
            low, high = OPTIONS
            raise WishError(
                "{parameter} must be from {low} to {high}, not {value}.",
                parameter="options",
                low=low,
                high=high,
                value=self.options,
            )
        if not 0 < self.overlap <= 1:
            raise WishError(
                "{parameter} must be above 0 and at most 1, not {value:g}.", parameter="overlap", value=self.overlap
            )
        for name in ("tries", "items_per_block"):
            at_least(name, 1, getattr(self, name))
        if self.lda != "auto" and "lda" not in arms:
            raise WishError("{parameter} names a file, but lda is not one of {arms}.", parameter="lda", arms=Setting("arms"))

    @property
    def sets(self) -> int:
        """Item sets: one per condition that a person meets."""
        return len(self.arms) if self.layout == "within" else 1


@dataclass
class MakingNotes:
    """What was done and what a researcher should know, written into the design."""

    say: Callable[[str], Any] = lambda words: None  # called while it is done
    made: dict[str, Any] = field(default_factory=dict)  # how: a text per step
    warnings: list[str] = field(default_factory=list)

    def as_made(self) -> dict[str, Any]:
        return self.made | {f"note_{k + 1}": words for k, words in enumerate(self.warnings)}
