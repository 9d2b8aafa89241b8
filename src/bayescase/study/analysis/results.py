"""What an analysis finds: estimates, tests and groups of people, as records that become JSON. Nothing here is NaN.

A test that cannot be made says why in `note`, and has no numbers.
"""

from dataclasses import dataclass

LABELS = {"bcm": "BCM", "lda": "LDA", "subspace": "BCM with subspace"}


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
    holm: float | None  # p, adjusted for the number of pairs of conditions; None for a single pair
    note: str  # how it was made, or why it could not be


@dataclass(frozen=True)
class Arm:
    """A condition."""

    condition: str
    answers: int
    right: int
    accuracy: float | None
    mean_seconds: float | None
    median_seconds: float | None


@dataclass(frozen=True)
class Within:
    """One outcome, compared within participants."""

    people: int
    difference: Estimate | None  # of shares of right answers; for time the ratio of geometric means
    effect_size: Estimate | None  # Cohen's d_z
    t: Test
    flip: Test
    order: Test
    by_order: tuple[tuple[str, int, float], ...]  # which condition came first, people, their mean difference (time: ratio)


@dataclass(frozen=True)
class Odds:
    """Of a right answer with the first condition against the second, for the same person and item."""

    ratio: Estimate | None
    above_one: float | None  # probability
    person_sd: float | None  # on the logit scale
    item_sd: float | None
    note: str


@dataclass(frozen=True)
class Pair:
    """Two conditions."""

    first: str
    second: str
    pooled_accuracy: Test  # the paper's
    pooled_time: Test
    accuracy: Within
    time: Within
    odds: Odds


@dataclass(frozen=True)
class Rating:
    """A question of the questionnaire, or two or three that ask the same of each part of the study."""

    id: str
    text: str
    labels: tuple[str, ...]
    counts: dict[str, tuple[int, ...]]  # condition, or "all" → people per label
    tests: dict[str, Test]  # "bcm, lda" → Wilcoxon


@dataclass(frozen=True)
class Result:
    """The analysis of one group of people."""

    people: int
    answers: int
    arms: tuple[Arm, ...]
    pairs: tuple[Pair, ...]
    ratings: tuple[Rating, ...]
    by_person: dict[str, dict[str, float]]  # person → condition → accuracy
    by_item: dict[str, dict[str, tuple[int, int]]]  # item → condition → right, answers
    seconds: dict[str, tuple[float, ...]]  # condition → times
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    title: str
    design_hash: str
    mode: str
    conditions: tuple[str, ...]
    phase: str
    simulated: int  # people among those included
    times: str
    left_out: dict[str, int]  # why → people
    everyone: Result
    flagged: int  # people who failed an attention check
    attentive: Result | None  # without them; None if there are none


def not_made(name: str, why: str) -> Test:
    return Test(name, None, None, None, None, why)
