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
HUGE = 100  # an R-hat that says no more than that chains are apart
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
    quantities : dict of str to Quantity
        Mean, standard deviation, R-hat (over the chains that agree with the best one, and over all), bulk and tail effective
        sample size of the log joint, the mean purity of the cases (the share of a case's cells in its main cluster), the
        size of all subspaces together (Σω) and the entropy of the clusters' shares of all cells.
    rates : dict of str to float
        How much a sweep changes: the share of the cells that moved, of the cases with another main cluster, of the clusters
        with another prototype.
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
        return "\n".join([*lines, "", f"A sweep's changes: {shares}."])

    def __str__(self) -> str:
        return self.render()

    def to_json(self, words: Words = in_python) -> dict[str, Any]:
        """Plain words and numbers; the advice in the words of a front end."""
        return {
            "converged": self.converged,
            "sound": self.sound,
            "verdict": self.verdict,
            "advice": advise(self.remedies, words),
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


def diagnose(trace: dict[str, np.ndarray], of: Round, overlap: np.ndarray, longer: Setting | None = None) -> Diagnostics:
    """Diagnostics of the sweeps of a round, from the trace and each chain's overlap with the best one.

    longer: what makes the run longer; n_iter of twice as many sweeps if None.
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
    found = Found(quantities, kept["log_joint"].mean(axis=1), agree, kept["log_joint"].shape[1])
    return Diagnostics(
        **judge(found, longer or Setting("n_iter", 2 * of.end))._asdict(),
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

    def passes(self, r_hat: float, ess: float) -> bool:
        """Is every quantity within these limits, in the chains that agree?"""
        return all(of.r_hat <= r_hat and of.ess_bulk >= ess for of in self.quantities.values())


class Verdict(NamedTuple):
    converged: bool
    sound: bool
    verdict: str
    remedies: tuple[Advice, ...] = ()


def judge(found: Found, longer: Setting) -> Verdict:
    """What was found, how sure it is, and what to do."""
    C, n = len(found.agree), found.n_sweeps
    run_longer = Advice("run longer with {}", longer)
    if n < FEWEST_SWEEPS:
        return Verdict(False, False, f"Too short to judge: {n} sweep{'s' * (n > 1)} after the burn-in.", (run_longer,))
    if not found.agree.all():
        return judge_apart(found, run_longer)
    same = f"all {C} chains found the same clusters" if C > 1 else "one chain alone, which has no other to compare with"
    exact = f"robabilities are exact to about {standard_error(found):.2f}"
    if found.passes(LARGEST_R_HAT, ENOUGH_DRAWS):
        return Verdict(True, True, f"Good: {same}. P{exact} ({figures(found)}).")
    if found.passes(SOUND_R_HAT, SOUND_DRAWS):
        more_exact = Advice("for more exact ones run longer with {}", longer)
        return Verdict(False, True, f"{same[0].upper()}{same[1:]}. P{exact} only: {shortfall(found)}.", (more_exact,))
    words = f"The chain{'s are' if C > 1 else ' is'} too short to rely on: {shortfall(found)}."
    return Verdict(False, False, words, (run_longer,))


def judge_apart(found: Found, run_longer: Advice) -> Verdict:
    """The verdict on chains that found different clusters."""
    C, A, log_joint = len(found.agree), int(found.agree.sum()), found.log_joint
    others = f" and of the {A - 1} that agree with it" if A > 2 else " and of another that agrees with it" if A == 2 else ""
    best = f"those of the best one{others}"
    more_chains = Advice("try more chains with {}", Setting("n_chains", 2 * C))
    enough = found.passes(LARGEST_R_HAT, ENOUGH_DRAWS)
    if enough and all(of.r_hat_all <= LARGEST_R_HAT for of in found.quantities.values()):
        words = (
            f"The data hardly tell some clusters apart: all {C} chains mix, but their clusters do not match. Shown are {best}."
        )
        fewer = Advice("try fewer clusters with a smaller {}", Setting("n_clusters"))
        return Verdict(False, False, words, (fewer, Advice("keep more draws with a smaller {}", Setting("thin"))))
    gaps = [f"{max(log_joint[found.agree].mean() - other, 0.0):.0f}" for other in np.sort(log_joint[~found.agree])[::-1]]
    lower = gaps[0] if gaps[0] == gaps[-1] else f"up to {gaps[-1]}" if gaps[0] == "0" else f"{gaps[0]} to {gaps[-1]}"
    rest = "the remaining one is" if A == C - 1 else f"the remaining {C - A} are"
    than = f"less probable (log joint {lower} lower)" if lower != "0" else "as probable"
    words = f"The {C} chains found different clusters. Shown are {best}; {rest} {than}."
    if not enough:
        return Verdict(False, False, f"{words} They are also too short: {shortfall(found)}.", (run_longer, more_chains))
    another = Advice("try another {}", Setting("n_clusters"))
    return Verdict(False, False, f"{words} Longer runs seldom bring such chains together.", (more_chains, another))


def at_the_cap(found: Diagnostics, most: int, folded: bool = False) -> Diagnostics:
    """The same of a run that has used all the clusters that it was allowed: how many there are is not known."""
    words = f"All {most} clusters that it may have are in use, so there may be more, and some may be several in one."
    more = Advice("allow more with {}", Setting("max_clusters", 2 * most))
    ways = (more,) if folded else (more, Advice("tell them as fewer by {}", Setting("fold")))
    return replace(found, converged=False, verdict=f"{words} {found.verdict}", remedies=(*ways, *found.remedies))


def short(r_hat: float) -> str:
    """An R-hat that fits its column."""
    return f">{HUGE}" if r_hat > HUGE else f"{r_hat:.3f}"


def standard_error(found: Found) -> float:
    """Of a probability, at most: that of one half, by the quantity with the fewest effective draws."""
    return 0.5 / math.sqrt(min(of.ess_bulk for of in found.quantities.values()))


def figures(found: Found) -> str:
    of = found.quantities.values()
    return f"R-hat at most {max(q.r_hat for q in of):.2f}, at least {min(q.ess_bulk for q in of):.0f} effective draws"


def shortfall(found: Found) -> str:
    """The criteria that are missed, each with the quantity that misses it most."""
    quantities = found.quantities
    worst = max(quantities, key=lambda name: quantities[name].r_hat)
    least = min(quantities, key=lambda name: quantities[name].ess_bulk)
    r_hat, ess, words = quantities[worst].r_hat, quantities[least].ess_bulk, []
    if not ess >= ENOUGH_DRAWS:
        below = np.minimum(np.round(ess), ENOUGH_DRAWS - 1)  # a figure that failed never looks as if it had passed
        draws = f"{below:.0f} effective draw{'' if below == 1 else 's'}"
        words.append(f"the {in_words(least)} has {draws} ({ENOUGH_DRAWS} are wanted)")
    if not r_hat <= LARGEST_R_HAT:
        above = f"{np.ceil(100 * r_hat) / 100:.2f}" if r_hat < HUGE else f"above {HUGE}"  # chains that stand still apart
        words.append(f"R-hat of the {in_words(worst)} is {above} (at most {LARGEST_R_HAT} is wanted)")
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
