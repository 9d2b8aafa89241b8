"""How far does a difference between two conditions reach: these explanations, or explanations of this kind?

    y = person + item + block + (d + explanation's own part of d + case's own part + person's own part) · x + noise,   x = ±½

Explanations differ, so the effect of a condition differs from one to the next; so it does from case to case and from person to
person. A test that knows of people only takes the luck of five explanations for a difference between two kinds: with slopes of
1 logit by explanation and no difference on average it errs in a third of the studies with 24 people, and more with more.

d_e, the difference of each explanation, comes from least squares with effects of persons, items and blocks. Then

    these explanations      mean of d_e, variance from the spread of cases within explanations   (df: cases − explanations)
    explanations of a kind  mean of d_e by random effects, variance and t of Hartung and Knapp   (df: explanations − 1);
                            as above, if explanations differ no more than cases do

To both is added how far people differ beyond the noise of their answers; within people, where an F test at 0.1 sees it. Degrees
of freedom are Satterthwaite's. If each case has its own explanation, the first line knows of people only. How often both err
is in docs/study-analysis.md.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse, stats

FEWEST = 3  # explanations to generalise from
SEEN = 0.1  # level of the F test for people


class Effect(NamedTuple):
    """A difference, its standard error and degrees of freedom."""

    value: float
    se: float
    df: float

    @property
    def t(self) -> float:
        return self.value / self.se

    @property
    def p(self) -> float:
        return float(2 * stats.t.sf(abs(self.t), self.df))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        reach = float(stats.t.ppf(0.5 + level / 2, self.df)) * self.se
        return self.value - reach, self.value + reach


class Reach(NamedTuple):
    """What the answers say of these explanations, and of explanations of this kind; None: nothing can be said."""

    these: Effect | None
    kind: Effect | None
    explanations: int
    cases: int
    people: int


class Observed(NamedTuple):
    """Answers in two conditions, as arrays with an entry per answer; all numbered from 0."""

    value: np.ndarray
    first: np.ndarray  # is it in the first condition?
    person: np.ndarray
    item: np.ndarray
    block: np.ndarray
    explanation: np.ndarray


def reach(seen: Observed, within: bool = True) -> Reach:
    """Compare two conditions; `within`: each person met both."""
    seen = comparable(seen, within)
    counts = [len(np.unique(part)) for part in (seen.explanation, seen.item, seen.person)]
    if len(seen.value) < 4 or np.ptp(seen.value) == 0:
        return Reach(None, None, *counts)
    by_explanation, without_people, without_items = least_squares(seen, within)
    own = of_people(without_items, seen, within)
    if own is None:
        return Reach(None, None, *counts)
    cases = of_cases(without_people, seen, counts[2] if within else 0)
    these = plain_mean(by_explanation, cases, own)
    df = len(by_explanation) - 1 - (unseen(seen) if within else 0)
    kind = random_mean(by_explanation, cases, own, df) if df >= FEWEST - 1 else None
    return Reach(these, kind, *counts)


def comparable(seen: Observed, within: bool) -> Observed:
    """Without explanations that were met in one condition only, and without such people where each should meet both."""
    while True:
        keep = in_both(seen.explanation, seen.first) & in_both(seen.item, seen.first)
        if within:
            keep &= in_both(seen.person, seen.first)
        seen = Observed(*(part[keep] for part in seen))
        if keep.all():
            number = [np.unique(part, return_inverse=True)[1] for part in seen[2:]]
            return Observed(seen.value.astype(float), seen.first.astype(bool), *number)


def in_both(group: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Entries whose group was met in both conditions."""
    if not len(group):
        return np.ones(0, bool)
    n = group.max() + 1
    both = (np.bincount(group, first, n) > 0) & (np.bincount(group, ~first.astype(bool), n) > 0)
    return both[group]


def least_squares(seen: Observed, within: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(d_e, values without effects of persons and blocks, values without effects of items, blocks and d_e − d)."""
    x = np.where(seen.first, 0.5, -0.5)
    rows, n = np.arange(len(x)), len(x)
    one = np.ones(n)
    groups = [(seen.item, one), (seen.block, one), (seen.explanation, x)] + ([(seen.person, one)] if within else [])
    columns = [sparse.csr_matrix((by, (rows, of)), shape=(n, of.max() + 1)) for of, by in groups]
    found = sparse.linalg.lsqr(sparse.hstack(columns).tocsr(), seen.value, atol=1e-12, btol=1e-12, iter_lim=2000)[0]
    parts = np.split(found, np.cumsum([part.shape[1] for part in columns])[:-1])
    items, blocks, d = parts[:3]
    persons = parts[3][seen.person] if within else 0.0
    common = seen.value - blocks[seen.block]
    return d, common - persons, common - items[seen.item] - (d - d.mean())[seen.explanation] * x


def unseen(seen: Observed) -> int:
    """Contrasts among explanations that persons could account for as well: if each item has its own, those among item sets."""
    x = np.where(seen.first, 0.5, -0.5)
    order = np.lexsort((seen.block, seen.item, seen.person))
    met = np.split(order, np.flatnonzero(np.diff(seen.person[order])) + 1)
    patterns: dict[bytes, np.ndarray] = {}  # persons who met the same in the same way
    for rows in met:
        patterns[np.c_[seen.item[rows], seen.first[rows], seen.block[rows]].tobytes()] = rows
    rows = np.concatenate(list(patterns.values()))
    person = np.repeat(np.arange(len(patterns)), [len(of) for of in patterns.values()])
    others = np.hstack([np.eye(of.max() + 1)[of] for of in (person, seen.item[rows], seen.block[rows])])
    effects = np.eye(seen.explanation.max() + 1)[seen.explanation[rows]] * x[rows, None]
    rank = np.linalg.matrix_rank
    return int(effects.shape[1] + rank(others) - rank(np.hstack([effects, others])))


class Variance(NamedTuple):
    value: float
    df: float


def of_people(value: np.ndarray, seen: Observed, within: bool) -> tuple[Variance, float] | None:
    """(variance of d from people alone, how much of it is more than the noise of their answers)."""
    n = seen.person.max() + 1
    side = np.where(seen.first, seen.person, seen.person + n)  # each person in each condition
    count = np.bincount(side, minlength=2 * n)
    here = count > 0
    mean = np.divide(np.bincount(side, value, 2 * n), count, out=np.zeros(2 * n), where=here)
    several = count > 1
    if not several.any():
        return None
    error = np.bincount(side, (value - mean[side]) ** 2, 2 * n)
    noise = error[several].sum() / (count[several] - 1).sum()  # of one answer; pooled, as those of one person are few
    sizes = np.divide(noise, count, out=np.zeros(2 * n), where=here)
    if within:
        if n < 2:
            return None
        spread = Variance(float((mean[:n] - mean[n:]).var(ddof=1) / n), n - 1)
        noise_of_mean = float(sizes.sum() / n**2)
    else:
        groups = [mean[:n][here[:n]], mean[n:][here[n:]]]
        if min(map(len, groups)) < 2:
            return None
        parts = [group.var(ddof=1) / len(group) for group in groups]
        spread = Variance(
            float(sum(parts)), satterthwaite([Variance(v, len(g) - 1) for v, g in zip(parts, groups, strict=True)])
        )
        noise_of_mean = float(sizes[:n].sum() / len(groups[0]) ** 2 + sizes[n:].sum() / len(groups[1]) ** 2)
    # Within people slopes are small as a rule; between people nobody doubts that they differ.
    noisy = stats.f.ppf(1 - SEEN, spread.df, (count[several] - 1).sum()) if within and noise > 0 else 1.0
    more = spread.value - noise_of_mean if spread.value > noise_of_mean * noisy else 0.0
    return spread, more


def of_cases(value: np.ndarray, seen: Observed, effects: int) -> tuple[Variance | None, np.ndarray]:
    """(variance of a case's own difference within its explanation, cases of each explanation)."""
    m = seen.item.max() + 1
    side = np.where(seen.first, seen.item, seen.item + m)
    mean = np.bincount(side, value, 2 * m) / np.bincount(side, minlength=2 * m)
    d = mean[:m] - mean[m:]
    explanation = np.zeros(m, int)
    explanation[seen.item] = seen.explanation
    cases = np.bincount(explanation)
    middle = np.bincount(explanation, d) / cases
    df = m - len(cases)
    if df < FEWEST - 1:
        return None, cases
    fitted = len(value) / (len(value) - effects)  # the effects that were taken out have taken a part of the noise with them
    return Variance(float(((d - middle[explanation]) ** 2).sum() / df * fitted), df), cases


def satterthwaite(parts: list[Variance]) -> float:
    """Degrees of freedom of a sum of independent estimates of variances."""
    parts = [part for part in parts if part.value > 0]
    return sum(part.value for part in parts) ** 2 / sum(part.value**2 / part.df for part in parts) if parts else 1.0


def effect(value: float, main: Variance, people: tuple[Variance, float]) -> Effect | None:
    spread, more = people
    total = main.value + more
    if total <= 1e-20:
        return None
    parts = [main, *([Variance(more, spread.df)] if more > 0 else [])]
    return Effect(float(value), float(np.sqrt(total)), max(1.0, satterthwaite(parts)))


def plain_mean(d: np.ndarray, cases: tuple[Variance | None, np.ndarray], people: tuple[Variance, float]) -> Effect | None:
    """These explanations: other people and other cases could have been asked."""
    within, count = cases
    if within is None:  # a case, an explanation: people alone vary
        spread, _ = people
        return Effect(float(d.mean()), float(np.sqrt(spread.value)), spread.df) if spread.value > 1e-20 else None
    return effect(d.mean(), Variance(float((within.value / count).sum() / len(d) ** 2), within.df), people)


def random_mean(
    d: np.ndarray, cases: tuple[Variance | None, np.ndarray], people: tuple[Variance, float], df: int
) -> Effect | None:
    """Explanations of this kind: a mean over those that could have been made."""
    within, count = cases
    noise = within.value / count if within is not None else np.zeros(len(d))

    def weights(tau):
        return 1 / np.maximum(noise + tau, 1e-12)

    def excess(tau):
        w = weights(tau)
        return float(w @ (d - w @ d / w.sum()) ** 2) - df

    if within is not None and excess(0.0) <= 0:  # else by luck the interval would be narrower than for these explanations
        return plain_mean(d, cases, people)
    top = float(len(d) * d.var() + noise.max()) + 1e-12
    tau = optimize.brentq(excess, 0.0, top) if excess(0.0) > 0 and excess(top) < 0 else 0.0  # Paule and Mandel's
    w = weights(tau)
    mean = w @ d / w.sum()
    variance = float(w @ (d - mean) ** 2 / (df * w.sum()))
    return effect(mean, Variance(variance, df), people)
