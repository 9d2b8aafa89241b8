"""What a researcher wishes for a new study of a model, and what was done about it, in words."""

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from .design import CONDITIONS, POLICIES, DesignError

OPTIONS = (4, 6)  # clusters to choose from: the fewest and the most


@dataclass(frozen=True)
class Wishes:
    """How a study is to be made of a model; `bayescase study new` has an option for each.

    Parameters
    ----------
    title : str
        Heading of the pages.
    noun : str, optional
        What a case is called in the texts: recipe, animal. "image" or "case" if None.
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
    practice : int
        Items to begin with that do not count.
    image_shape : (height, width), optional
        The features are the pixels of an image, row by row.
    paper_mode : bool
        Only the order of the blocks changes from person to person; otherwise also which items go with which condition.
    break_every, break_seconds : int
        How often and how long to rest.
    resume : str
        One of "resume", "resume within", "restart block", "refuse": what happens when a person comes back.
    seed : int
        Decides everything that is random: LDA, which cases are asked about, later the schedule.
    """

    title: str = "Which group?"
    noun: str | None = None
    arms: tuple[str, ...] = ("bcm", "lda")
    lda: str | PathLike = "auto"
    overlap: float = 0.5
    tries: int = 50
    coders: str | PathLike | None = None
    items_per_block: int = 8
    options: int = 5
    practice: int = 1
    image_shape: tuple[int, int] | None = None
    paper_mode: bool = False
    break_every: int = 4
    break_seconds: int = 5
    resume: str = "resume"
    seed: int = 0

    def __post_init__(self):
        arms = tuple(self.arms)
        if not 2 <= len(arms) <= len(CONDITIONS) or len(set(arms)) < len(arms) or not set(arms) <= set(CONDITIONS):
            raise DesignError(f"--arms must be two or three of {', '.join(CONDITIONS)}, not {', '.join(arms) or 'none'}.")
        object.__setattr__(self, "arms", tuple(arm for arm in CONDITIONS if arm in arms))
        if not OPTIONS[0] <= self.options <= OPTIONS[1]:
            raise DesignError(f"--options must be from {OPTIONS[0]} to {OPTIONS[1]}, not {self.options}.")
        if not 0 < self.overlap <= 1:
            raise DesignError(f"--overlap must be above 0 and at most 1, not {self.overlap:g}.")
        if self.tries < 1 or self.items_per_block < 1 or self.practice < 0:
            raise DesignError("--tries and --items-per-block must be at least 1, --practice at least 0.")
        if self.break_every < 1 or self.break_seconds < 0:
            raise DesignError("--break-every must be at least 1, --break-seconds at least 0.")
        if self.resume not in POLICIES:
            raise DesignError(f"--resume must be one of {', '.join(POLICIES)}, not {self.resume!r}.")
        if self.lda != "auto" and "lda" not in arms:
            raise DesignError("--lda names a file, but lda is not one of --arms.")

    @property
    def questions(self) -> int:
        return self.items_per_block * len(self.arms)


@dataclass
class MakingNotes:
    """What was done and what a researcher should know, written into the design."""

    say: Callable[[str], Any] = lambda words: None  # called while it is done
    made: dict[str, Any] = field(default_factory=dict)  # how: a text per step
    warnings: list[str] = field(default_factory=list)

    def as_made(self) -> dict[str, Any]:
        return self.made | {f"note_{k + 1}": words for k, words in enumerate(self.warnings)}
