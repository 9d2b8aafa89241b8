"""What an analysis finds: estimates, tests and groups of people, as records that become JSON. Nothing here is NaN.

A test that cannot be made says why in `note`, and has no numbers.
"""

from dataclasses import dataclass

SURE = 0.05
# What is concluded from a comparison. "kind": it holds for explanations of this kind; "these": for those that were shown;
# "equal": too small a difference to matter; "open": nothing; "none": the design cannot carry a verdict.
VERDICTS = ("kind", "these", "equal", "open", "none")


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Test:
    name: str
    statistic: float | None
    df: float | None
    p: float | None
    holm: float | None  # p, adjusted for all comparisons of its family; None if there is one
    note: str  # how it was made, or why it could not be

    @property
    def final(self) -> float | None:
        """The p that decides."""
        return self.p if self.holm is None else self.holm


@dataclass(frozen=True)
class Outcome:
    """What is compared between conditions."""

    id: str  # "accuracy", "time", or the id of a rating
    name: str
    level: str  # "answer": one value per answer; "block": one per person and condition
    scale: str  # "share", "ratio" (of times) or "points" (of a rating)
    family: str  # "primary" or "others": p values are adjusted within
    labels: tuple[str, ...] = ()  # of a rating


@dataclass(frozen=True)
class Comparison:
    """One outcome in two conditions."""

    outcome: str
    first: str
    second: str
    people: int
    cases: int
    explanations: int
    difference: Estimate | None  # first − second, with these explanations; of times the ratio
    kind_difference: Estimate | None  # with explanations of this kind
    these: Test
    kind: Test
    people_only: Test  # which takes cases and explanations for all that there are
    effect_size: Estimate | None  # Cohen's d_z, or d between people
    order: Test
    by_order: tuple[tuple[str, int, float], ...]  # which condition came first, people, their mean difference (time: ratio)
    verdict: str  # one of VERDICTS
    better: str | None  # the condition with the higher values


@dataclass(frozen=True)
class Odds:
    """Of a right answer with the first condition against the second, for the same person, case and explanation."""

    first: str
    second: str
    ratio: Estimate | None
    above_one: float | None  # probability
    spreads: dict[str, float]  # standard deviations on the logit scale
    note: str


@dataclass(frozen=True)
class Pooled:
    """The tests of the paper."""

    first: str
    second: str
    accuracy: Test
    time: Test


@dataclass(frozen=True)
class Arm:
    """A condition."""

    condition: str
    people: int
    answers: int
    right: int
    accuracy: float | None
    mean_seconds: float | None
    median_seconds: float | None


@dataclass(frozen=True)
class Rating:
    """How people used a scale."""

    id: str
    text: str
    labels: tuple[str, ...]
    per: str  # "answer", "part" or "person"
    counts: dict[str, tuple[int, ...]]  # condition, or "all" → how often each label was chosen


@dataclass(frozen=True)
class Result:
    """The analysis of one group of people."""

    people: int
    answers: int
    arms: tuple[Arm, ...]
    outcomes: tuple[Outcome, ...]
    comparisons: tuple[Comparison, ...]
    odds: tuple[Odds, ...]
    pooled: tuple[Pooled, ...]
    ratings: tuple[Rating, ...]
    by_person: dict[str, dict[str, float]]  # person → condition → accuracy
    by_item: dict[str, dict[str, tuple[int, int]]]  # item → condition → right, answers
    by_explanation: dict[str, dict[str, tuple[int, int]]]  # the same for explanations
    seconds: dict[str, tuple[float, ...]]  # condition → times
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    title: str
    design_hash: str
    task: str
    layout: str
    mode: str
    labels: dict[str, str]  # condition → what it is called
    abouts: dict[str, str]  # condition → how it explains
    primary: str
    phase: str
    simulated: int  # people among those included
    times: str
    left_out: dict[str, int]  # why → people
    everyone: Result
    flagged: int  # people who failed an attention check
    attentive: Result | None  # without them; None if there are none, or if they are left out by plan
    planned: int | None  # sample size of the plan


def not_made(name: str, why: str) -> Test:
    return Test(name, None, None, None, None, why)
