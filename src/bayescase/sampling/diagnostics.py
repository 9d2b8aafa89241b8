"""Can the draws be trusted? R-hat, effective sample size and a verdict, from quantities that no label enters.

Rank-normalised split R-hat, bulk and tail effective sample size as in Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from ..errors import Advice, Setting, Words, advise, in_python
from .differing import Counts
from .hyper import Learn
from .plan import Round
from .posterior import AGREE

QUANTITIES = ("log_joint", "purity", "subspace_size", "entropy")
RATES = ("cells_moved", "cases_relabelled", "prototypes_changed")
TRACED = QUANTITIES + RATES  # after every sweep of every chain


def traced(learn: Learn) -> tuple[str, ...]:
    """The names of all that is traced: the learned hyperparameters, too, and how many clusters are in use if that is found."""
    return TRACED + learn.names + (("clusters_in_use",) if learn.beta else ())


# What is reported are means and shares of draws: 100 effective draws put the standard error of a probability below 0.05.
# R-hat² − 1 is about 2 chains / ESS, so that four chains with 100 effective draws stand at 1.04; a limit of 1.01 would in
# truth ask for 400.
ENOUGH_DRAWS = 100
HUGE = 100  # a larger R-hat says only that the chains are apart
LARGEST_R_HAT = 1.05
SOUND_DRAWS = 25  # a standard error of 0.1: enough to say what the clusters are
SOUND_R_HAT = 1.2
FEWEST_SWEEPS = 4  # two halves of two


class Quantity(NamedTuple):
    """One label-free quantity over the sweeps after the burn-in, of the chains that the results rest on."""

    mean: float
    sd: float
    r_hat: float
    r_hat_all: float  # over all chains, those that found other clusters included
    ess_bulk: float
    ess_tail: float


@dataclass(frozen=True)
class Diagnostics:
    """How far a fit can be trusted; print it for a table.

    Attributes
    ----------
    converged : bool
        All chains found the same clusters, and every quantity has enough effective draws.
    sound : bool
        All chains found the same clusters, and probabilities are exact to about 0.1. A fit that is not sound warns.
    verdict : str
        What was found and how sure it is, in a sentence or two.
    remedies : tuple of Advice
        What to do about it, one way or another; empty if there is nothing to do.
    details : str
        The figures behind it: what is wanted of R-hat and effective sample sizes, and what falls short.
    quantities : dict of str to Quantity
        Mean, standard deviation, R-hat (over the chains that agree with the best one, and over all), bulk and tail effective
        sample size of the log joint, the mean purity of the cases (the share of a case's cells in its main cluster), the
        size of all subspaces together (Σω) and the entropy of the clusters' shares of all cells.
    rates : dict of str to float
        How much a sweep changes: the share of the cells that moved, of the cases with another main cluster, and, where
        prototypes are drawn, of the clusters with another one.
    n_chains : int
        Number of chains.
    n_agreeing : int
        How many of them found the clusters of the best chain, itself included. Results rest on these.
    n_sweeps : int
        Sweeps of each chain after the burn-in.
    """

    converged: bool
    sound: bool
    verdict: str
    remedies: tuple[Advice, ...]
    details: str
    quantities: dict[str, Quantity]
    rates: dict[str, float]
    n_chains: int
    n_agreeing: int
    n_sweeps: int

    @property
    def advice(self) -> str:
        """What to do about it, in a sentence with Python's words; "" if there is nothing to do."""
        return advise(self.remedies)

    def render(self, words: Words = in_python) -> str:
        """The verdict, the advice in the words of a front end, and a table of the quantities."""
        advice = advise(self.remedies, words)
        lines = [self.verdict, *([advice] if advice else []), ""]
        lines.append(f"{'':13}{'mean':>12}{'sd':>10}{'R-hat':>8}{'R-hat all':>11}{'ESS bulk':>10}{'ESS tail':>10}")
        for name, of in self.quantities.items():
            lines.append(
                f"{in_words(name):13}{of.mean:12.5g}{of.sd:10.3g}{short(of.r_hat):>8}{short(of.r_hat_all):>11}"
                f"{of.ess_bulk:10.0f}{of.ess_tail:10.0f}"
            )
        shares = ", ".join(f"{in_words(name)} {share:.2%}" for name, share in self.rates.items())
        return "\n".join([*lines, "", *([self.details] if self.details else []), f"A sweep's changes: {shares}."])

    def __str__(self) -> str:
        return self.render()

    def to_json(self, words: Words = in_python) -> dict[str, Any]:
        """Plain words and numbers; the advice in the words of a front end."""
        return {
            "converged": self.converged,
            "sound": self.sound,
            "verdict": self.verdict,
            "advice": advise(self.remedies, words),
            "details": self.details,
            "quantities": {name: of._asdict() for name, of in self.quantities.items()},
            "rates": self.rates,
            "n_chains": self.n_chains,
            "n_agreeing": self.n_agreeing,
            "n_sweeps": self.n_sweeps,
        }


def in_words(name: str) -> str:
    return name.replace("_", " ")


# --- R-hat and effective sample size of x, (chains, sweeps) -------------------------------------------------------------


def r_hat(x: np.ndarray) -> float:
    """The larger of R-hat of the ranks and of the ranks of the distances from the median; each chain is cut in two.

    A quantity that never changes has R-hat 1: nothing speaks against it.
    """
    if x.shape[1] < FEWEST_SWEEPS or not np.isfinite(x).all():
        return np.nan
    halves = split(x)
    return max(spread(normal_ranks(halves)), spread(normal_ranks(abs(halves - np.median(halves)))))


def spread(x: np.ndarray) -> float:
    """√(var⁺ / W): the spread of all draws over that within a chain."""
    n = x.shape[1]
    between, within = x.mean(axis=1).var(ddof=1), x.var(axis=1, ddof=1).mean()
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt(between / within + (n - 1) / n))


def ess_bulk(x: np.ndarray) -> float:
    return ess(normal_ranks(split(x))) if x.shape[1] >= FEWEST_SWEEPS else np.nan


def ess_tail(x: np.ndarray) -> float:
    """Of the 5% and the 95% quantile, the smaller."""
    if x.shape[1] < FEWEST_SWEEPS:
        return np.nan
    return min(ess(split(x <= edge).astype(float)) for edge in np.quantile(x, (0.05, 0.95)))


def ess(x: np.ndarray) -> float:
    """Effective draws by Geyer's initial monotone sequence of autocorrelations; all of them if x never changes."""
    C, n = x.shape
    if not np.isfinite(x).all():
        return np.nan
    if np.ptp(x) < np.finfo(float).resolution:
        return float(x.size)
    cov = autocovariance(x)
    within = cov[:, 0].mean() * n / (n - 1)
    var_plus = within * (n - 1) / n + x.mean(axis=1).var(ddof=1)
    rho = 1.0 - (within - cov.mean(axis=0)) / var_plus
    rho[0] = 1.0
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)[: max(1, (n - 1) // 2)]
    last = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs) - 1
    tau = -1.0 + 2.0 * np.minimum.accumulate(pairs[:last]).sum() + max(rho[2 * last], 0.0)
    return float(C * n / max(tau, 1.0 / np.log10(C * n)))


def autocovariance(x: np.ndarray) -> np.ndarray:
    """At every lag, for each chain, divided by n."""
    n = x.shape[1]
    spectrum = np.fft.rfft(x - x.mean(axis=1, keepdims=True), n=2 * n)
    covariance: np.ndarray = np.fft.irfft(np.abs(spectrum) ** 2, n=2 * n)[:, :n] / n
    return covariance


def split(x: np.ndarray) -> np.ndarray:
    """Each chain as two; an odd sweep in the middle is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])


def normal_ranks(x: np.ndarray) -> np.ndarray:
    return ndtri((rankdata(x) - 0.375) / (x.size + 0.25)).reshape(x.shape)


# --- the verdict --------------------------------------------------------------------------------------------------------


def diagnose(
    trace: dict[str, np.ndarray],
    of: Round,
    overlap: np.ndarray,
    longer: Setting | None = None,
    counts: Counts | None = None,
    jumps: Setting | None = None,
) -> Diagnostics:
    """Diagnostics of the sweeps of a round, from the trace and each chain's overlap with the best one.

    longer: what makes the run longer; n_iter of twice as many sweeps if None.
    counts: what differs between chains, for the verdict.
    jumps: what lets chains jump between descriptions, if they could.
    """
    kept = {name: values[:, of.first : of.end] for name, values in trace.items()}
    agree = overlap >= AGREE
    quantities = {}
    for name in kept:
        if name in RATES:
            continue
        x, pooled = kept[name], kept[name][agree]
        quantities[name] = Quantity(
            mean=float(pooled.mean()),
            sd=float(pooled.std()),
            r_hat=r_hat(pooled),
            r_hat_all=r_hat(x),
            ess_bulk=ess_bulk(pooled),
            ess_tail=ess_tail(pooled),
        )
    found = Found(quantities, kept["log_joint"].mean(axis=1), agree, kept["log_joint"].shape[1], counts)
    return Diagnostics(
        **judge(found, longer or Setting("n_iter", 2 * of.end), jumps)._asdict(),
        details=details(found),
        quantities=quantities,
        rates={name: float(kept[name][agree].mean()) for name in RATES},
        n_chains=len(agree),
        n_agreeing=int(agree.sum()),
        n_sweeps=found.n_sweeps,
    )


class Found(NamedTuple):
    """What a verdict is about."""

    quantities: dict[str, Quantity]
    log_joint: np.ndarray  # (C,) mean of each chain
    agree: np.ndarray  # (C,) did the chain find the clusters of the best one?
    n_sweeps: int
    counts: Counts | None = None  # what differs between chains

    def passes(self, r_hat: float, ess: float) -> bool:
        """Is every quantity within these limits, in the chains that agree?"""
        return all(of.r_hat <= r_hat and of.ess_bulk >= ess for of in self.quantities.values())

    @property
    def gaps(self) -> tuple[int, int]:
        """By how much the log joint of the other chains is lower than that of those that agree: at least, at most."""
        lower = self.log_joint[self.agree].mean() - self.log_joint[~self.agree]
        return max(round(float(lower.min())), 0), max(round(float(lower.max())), 0)


class Verdict(NamedTuple):
    converged: bool
    sound: bool
    verdict: str
    remedies: tuple[Advice, ...] = ()


def judge(found: Found, longer: Setting, jumps: Setting | None) -> Verdict:
    """What was found, how sure it is, and what to do, in everyday words. `details` has the figures behind it."""
    C, n = len(found.agree), found.n_sweeps
    run_longer = Advice("run longer with {}", longer)
    to_jump = (Advice("let chains jump between what they found with {}", jumps),) if jumps else ()
    if n < FEWEST_SWEEPS:
        return Verdict(False, False, f"Too short to judge: only {n} sweep{'s were' if n > 1 else ' was'} kept.", (run_longer,))
    if not found.agree.all():
        return judge_apart(found, run_longer, to_jump)
    every = "both chains" if C == 2 else f"all {C} chains"
    alone = "" if C > 1 else " More chains would show whether others find the same."
    exact = f"robabilities are exact to about {points(found)}"
    if found.passes(LARGEST_R_HAT, ENOUGH_DRAWS):
        good = f"Good: {every} found the same clusters, and p" if C > 1 else "Good, as far as one chain can tell: p"
        return Verdict(True, True, f"{good}{exact}.{alone}")
    same = f"{every.capitalize()} found the same clusters" if C > 1 else "One chain found these clusters"
    if found.passes(SOUND_R_HAT, SOUND_DRAWS):
        more_exact = Advice("for more exact ones run longer with {}", longer)
        return Verdict(False, True, f"{same}. P{exact} only.{alone}", (more_exact,))
    words = f"{same}, but {'they are' if C > 1 else 'it is'} too short to say how sure that is.{alone}"
    return Verdict(False, False, words, (run_longer, *to_jump))


def judge_apart(found: Found, run_longer: Advice, to_jump: tuple[Advice, ...]) -> Verdict:
    """The verdict on chains that found different clusters."""
    C, A = len(found.agree), int(found.agree.sum())
    shown = f"{A} of {C} found those shown" if A > 1 else "shown are those of the best one"
    to_meet = to_jump or (Advice("try more chains with {}", Setting("n_chains", 2 * C)),)
    look = Advice("see where they differ by {}", Setting("explain_differences"))
    enough = found.passes(LARGEST_R_HAT, ENOUGH_DRAWS)
    settled = found.counts is not None and not found.counts.moving  # only shares of cases differ
    if enough and all(of.r_hat_all <= LARGEST_R_HAT for of in found.quantities.values()):
        hardly = "how much of a case belongs to which cluster" if settled else "some clusters apart"
        ways = "shares that cases have" if settled else "ways to cluster the cases"
        words = f"The data hardly tell {hardly}: every chain goes to and fro between {ways}, and {shown}."
        words = f"{words} {what_differs(found.counts)}"
        fewer = Advice("try fewer clusters with a smaller {}", Setting("n_clusters"))
        keep_more = Advice("keep more draws with a smaller {}", Setting("thin"))
        return Verdict(False, False, words.rstrip(), (fewer, keep_more, look))
    least, most = found.gaps
    others = "what the other one found" if A == C - 1 else f"what the other {C - A} found"
    than = "as probable" if most == 0 else "as probable or less" if least == 0 else "less probable"
    different = "the same main cluster of every case, but other shares of it" if settled else "different clusters"
    words = f"The {C} chains found {different}: {shown}, and {others} is {than}. {what_differs(found.counts)}".rstrip()
    if not enough:
        words = f"{words} The chains are also too short to say how sure that is."
        return Verdict(False, False, words, (run_longer, *to_meet, look))
    another = Advice("try another {}", Setting("n_clusters"))
    return Verdict(False, False, f"{words} Longer runs seldom bring such chains together.", (*to_meet, another, look))


def what_differs(counts: Counts | None) -> str:
    """ "3 of 4 clusters are the same in all chains; 14 of 120 cases could as well be in another one."; "" if no case could."""
    if counts is None or not counts.moving:
        return ""
    clusters = f"{counts.same or 'None'} of {counts.clusters} clusters {'are' if counts.same > 1 else 'is'}"
    if counts.clusters == 1:
        clusters = f"The only cluster is{'' if counts.same else ' not'}"
    return f"{clusters} the same in all chains; {counts.moving:,} of {counts.cases:,} cases could as well be in another one."


def at_the_cap(found: Diagnostics, most: int, folded: bool = False, structured: bool = True) -> Diagnostics:
    """The verdict on a run that uses all the clusters it was allowed: the true number is not known.

    structured: do the clusters tell cases apart? Else more of them would be no help.
    """
    words = (
        f"All {most} clusters that were allowed are in use, so there may be more, and some of these may be several in truth."
    )
    rest = found.verdict.replace("Good", "Otherwise good", 1) if found.converged else found.verdict
    more = (Advice("allow more with {}", Setting("max_clusters", 2 * most)),) if structured else ()
    ways = more if folded else (*more, Advice("tell them as fewer by {}", Setting("fold")))
    return replace(found, converged=False, verdict=f"{words} {rest}", remedies=(*ways, *found.remedies))


def stopped_early(found: Diagnostics, made: int, planned: int) -> Diagnostics:
    """The verdict on a run that was stopped."""
    return replace(found, verdict=f"The run was stopped after {made:,} of {planned:,} sweeps. {found.verdict}")


# --- the figures behind it ------------------------------------------------------------------------------------------------


def short(r_hat: float) -> str:
    """An R-hat that fits its column."""
    return f">{HUGE}" if r_hat > HUGE else f"{r_hat:.3f}"


def points(found: Found) -> str:
    """The standard error of a probability, at most: that of one half, by the quantity with the fewest effective draws."""
    error = 0.5 / math.sqrt(min(of.ess_bulk for of in found.quantities.values()))
    n = max(round(100 * error), 1)
    return f"{n} percentage point{'s' * (n > 1)}"


def details(found: Found) -> str:
    """The criteria, and whether they are met."""
    if found.n_sweeps < FEWEST_SWEEPS:
        return ""
    wanted = f"Wanted: an R-hat of at most {LARGEST_R_HAT}, and at least {ENOUGH_DRAWS} effective draws (ESS bulk)."
    missed = shortfall(found)
    words = f"{wanted} {missed[0].upper()}{missed[1:]}." if missed else f"{wanted} All quantities have that."
    if found.agree.all():
        return words
    least, most = found.gaps
    lower = f"{least}" if least == most else f"{least} to {most}"
    return f"{words} The log joint of the chains that found other clusters is lower by {lower}."


def shortfall(found: Found) -> str:
    """The criteria that are missed, each with the quantity that misses it most."""
    quantities = found.quantities
    worst = max(quantities, key=lambda name: quantities[name].r_hat)
    least = min(quantities, key=lambda name: quantities[name].ess_bulk)
    r_hat, ess, words = quantities[worst].r_hat, quantities[least].ess_bulk, []
    if not ess >= ENOUGH_DRAWS:
        below = np.minimum(np.round(ess), ENOUGH_DRAWS - 1)  # a figure that failed never looks as if it had passed
        words.append(f"the {in_words(least)} has {below:.0f} effective draw{'' if below == 1 else 's'}")
    if not r_hat <= LARGEST_R_HAT:
        above = f"{np.ceil(100 * r_hat) / 100:.2f}" if r_hat < HUGE else f"above {HUGE}"  # chains that stand still apart
        words.append(f"R-hat of the {in_words(worst)} is {above}")
    return ", and ".join(words)


def is_settled(trace: Mapping[str, np.ndarray], of: Round) -> bool:
    """Is every chain by itself where it will stay? Then more sweeps will not bring chains together that are apart."""
    return all(r_hat(chain[None, of.first : of.end]) <= LARGEST_R_HAT for name in QUANTITIES for chain in trace[name])


# --- ArviZ ----------------------------------------------------------------------------------------------------------------


def to_arviz(
    trace: Mapping[str, np.ndarray],
    sweeps: np.ndarray,
    more: Mapping[str, np.ndarray],
    dims: Mapping[str, tuple[str, ...]],
    coords: Mapping[str, Any],
    attributes: Mapping[str, str],
) -> Any:
    """The trace at `sweeps` and arrays `more` (chain, draw, …) of those sweeps, as ArviZ takes it."""
    try:
        import arviz
        import xarray
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'bayescase[arviz]'.") from error
    coords = {"chain": np.arange(len(trace["log_joint"])), "draw": sweeps, **coords}

    def dataset(variables: Mapping[str, np.ndarray]) -> Any:
        found = {name: (("chain", "draw", *dims.get(name, ())), value) for name, value in variables.items()}
        used = {dim for names, _ in found.values() for dim in names}
        return xarray.Dataset(found, {dim: value for dim, value in coords.items() if dim in used}, attributes)

    at = {name: value[:, sweeps] for name, value in trace.items()}
    groups = {
        "posterior": dataset({name: value for name, value in at.items() if name not in RATES} | dict(more)),
        "sample_stats": dataset({"lp": at["log_joint"]} | {name: at[name] for name in RATES}),
    }
    if int(arviz.__version__.split(".")[0]) < 1:  # 1.x has a name InferenceData, too, that only warns
        return arviz.InferenceData(**groups)
    return xarray.DataTree.from_dict(groups)
