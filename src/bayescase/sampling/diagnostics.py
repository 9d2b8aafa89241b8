"""Can the draws be trusted? R-hat, effective sample size and a verdict, from quantities that no label enters.

Rank-normalised split R-hat, bulk and tail effective sample size as in Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from .posterior import AGREE

QUANTITIES = ("log_joint", "purity", "subspace_size", "entropy")
RATES = ("cells_moved", "cases_relabelled", "prototypes_changed")
TRACED = QUANTITIES + RATES  # after every sweep of every chain


def traced(learn):
    """The names of all that is traced: the learned hyperparameters, too, and how many clusters are in use if that is found."""
    return TRACED + learn.names + (("clusters_in_use",) if learn.beta else ())


# What is reported are means and shares of draws: 100 effective draws put the standard error of a probability below 0.05.
# R-hat² − 1 is about 2 chains / ESS, so that four chains with 100 effective draws stand at 1.04; a limit of 1.01 would in
# truth ask for 400.
ENOUGH_DRAWS = 100
LARGEST_R_HAT = 1.05
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
        All chains found the same clusters, and there are enough effective draws.
    verdict : str
        What was found, in one line.
    advice : str
        What to do about it; empty if there is nothing to do.
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
    verdict: str
    advice: str
    quantities: dict[str, Quantity]
    rates: dict[str, float]
    n_chains: int
    n_agreeing: int
    n_sweeps: int

    def __str__(self):
        lines = [self.verdict, *([self.advice] if self.advice else []), ""]
        lines.append(f"{'':13}{'mean':>12}{'sd':>10}{'R-hat':>8}{'R-hat all':>11}{'ESS bulk':>10}{'ESS tail':>10}")
        for name, of in self.quantities.items():
            lines.append(
                f"{in_words(name):13}{of.mean:12.5g}{of.sd:10.3g}{of.r_hat:8.3f}{of.r_hat_all:11.3f}"
                f"{of.ess_bulk:10.0f}{of.ess_tail:10.0f}"
            )
        shares = ", ".join(f"{in_words(name)} {share:.2%}" for name, share in self.rates.items())
        return "\n".join([*lines, "", f"A sweep's changes: {shares}."])


def in_words(name):
    return name.replace("_", " ")


# --- R-hat and effective sample size of x, (chains, sweeps) -------------------------------------------------------------


def r_hat(x):
    """The larger of R-hat of the ranks and of the ranks of the distances from the median; each chain is cut in two.

    A quantity that never changes has R-hat 1: nothing speaks against it.
    """
    if x.shape[1] < FEWEST_SWEEPS or not np.isfinite(x).all():
        return np.nan
    halves = split(x)
    return max(spread(normal_ranks(halves)), spread(normal_ranks(abs(halves - np.median(halves)))))


def spread(x):
    """√(var⁺ / W): the spread of all draws over that within a chain."""
    n = x.shape[1]
    between, within = x.mean(axis=1).var(ddof=1), x.var(axis=1, ddof=1).mean()
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return float(np.sqrt(between / within + (n - 1) / n))


def ess_bulk(x):
    return ess(normal_ranks(split(x))) if x.shape[1] >= FEWEST_SWEEPS else np.nan


def ess_tail(x):
    """Of the 5% and the 95% quantile, the smaller."""
    if x.shape[1] < FEWEST_SWEEPS:
        return np.nan
    return min(ess(split(x <= edge).astype(float)) for edge in np.quantile(x, (0.05, 0.95)))


def ess(x):
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


def autocovariance(x):
    """At every lag, for each chain, divided by n."""
    n = x.shape[1]
    spectrum = np.fft.rfft(x - x.mean(axis=1, keepdims=True), n=2 * n)
    return np.fft.irfft(np.abs(spectrum) ** 2, n=2 * n)[:, :n] / n


def split(x):
    """Each chain as two; an odd sweep in the middle is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])


def normal_ranks(x):
    return ndtri((rankdata(x) - 0.375) / (x.size + 0.25)).reshape(x.shape)


# --- the verdict --------------------------------------------------------------------------------------------------------


def diagnose(trace, of, overlap):
    """Diagnostics of the sweeps of a round, from the trace and each chain's overlap with the best one."""
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
    n_chains, n_sweeps = kept["log_joint"].shape
    verdict, advice = judge(quantities, kept["log_joint"].mean(axis=1), agree, n_sweeps)
    return Diagnostics(
        converged=not advice,
        verdict=verdict,
        advice=advice,
        quantities=quantities,
        rates={name: float(kept[name][agree].mean()) for name in RATES},
        n_chains=n_chains,
        n_agreeing=int(agree.sum()),
        n_sweeps=n_sweeps,
    )


LONGER = "Run longer: raise n_iter, or max_iter if n_iter is 'auto'."


def judge(quantities, log_joint, agree, n_sweeps):
    """(verdict, advice) in words; no advice if all is well."""
    C, A = len(agree), int(agree.sum())
    if n_sweeps < FEWEST_SWEEPS:
        return f"Too short to judge: {n_sweeps} sweep{'s' * (n_sweeps > 1)} after the burn-in.", LONGER
    of_r_hat = max(quantities, key=lambda name: quantities[name].r_hat)
    of_ess = min(quantities, key=lambda name: quantities[name].ess_bulk)
    worst, least = quantities[of_r_hat].r_hat, quantities[of_ess].ess_bulk
    faults = []  # rounded so that a figure never looks as if it had passed
    if not worst <= LARGEST_R_HAT:
        faults.append(f"R-hat is {np.ceil(100 * worst) / 100:.2f} for the {in_words(of_r_hat)} ({LARGEST_R_HAT} is the limit)")
    if not least >= ENOUGH_DRAWS:
        faults.append(f"the {in_words(of_ess)} has {np.floor(least):.0f} effective draws ({ENOUGH_DRAWS} are needed)")
    enough, short = not faults, f"too short: {', and '.join(faults)}."
    if A < C:
        who = f"{A} of {C} agree, the best one among them, and give" if A > 1 else f"the best of {C} stands alone and gives"
        mixing = max(of.r_hat_all for of in quantities.values())
        if enough and mixing <= LARGEST_R_HAT:
            return (
                f"The chains mix, R-hat over all is at most {mixing:.2f}, but their clusters do not match: {who} the results.",
                "Try fewer clusters, since the data hardly tell these apart, or a smaller thin if few draws were kept.",
            )
        gaps = [f"{max(log_joint[agree].mean() - other, 0.0):.0f}" for other in np.sort(log_joint[~agree])[::-1]]
        lower = gaps[0] if gaps[0] == gaps[-1] else f"{gaps[0]} to {gaps[-1]}"
        rest = "the other" if A == C - 1 else "the others"
        found = f"The chains found different clusters: {who} the results; the log joint of {rest} is {lower} lower."
        if not enough:
            return f"{found} The chains are also {short}", f"{LONGER} Then try more chains."
        return found, (
            f"Try more chains (n_chains={2 * C}), or another n_clusters; more sweeps alone seldom bring settled chains "
            "together."
        )
    if not enough:
        return f"The chain{'s are' if C > 1 else ' is'} {short}", LONGER
    figures = f"R-hat is at most {worst:.2f}, with at least {least:.0f} effective draws."
    if C == 1:
        return f"Good as far as one chain can show, which has no other to disagree with: {figures}", ""
    return f"Good: all {C} chains agree, and {figures}", ""


def is_settled(trace, of):
    """Is every chain by itself where it will stay? Then more sweeps will not bring chains together that are apart."""
    return all(r_hat(chain[None, of.first : of.end]) <= LARGEST_R_HAT for name in QUANTITIES for chain in trace[name])


# --- ArviZ ----------------------------------------------------------------------------------------------------------------


def to_arviz(trace, sweeps, more, dims, coords, attributes):
    """The trace at `sweeps` and arrays `more` (chain, draw, …) of those sweeps, as ArviZ takes it."""
    try:
        import arviz
        import xarray
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'bayescase[arviz]'.") from error
    coords = {"chain": np.arange(len(trace["log_joint"])), "draw": sweeps} | coords

    def dataset(variables):
        found = {name: (("chain", "draw", *dims.get(name, ())), value) for name, value in variables.items()}
        used = {dim for names, _ in found.values() for dim in names}
        return xarray.Dataset(found, {dim: value for dim, value in coords.items() if dim in used}, attributes)

    at = {name: value[:, sweeps] for name, value in trace.items()}
    groups = {
        "posterior": dataset({name: value for name, value in at.items() if name not in RATES} | more),
        "sample_stats": dataset({"lp": at["log_joint"]} | {name: at[name] for name in RATES}),
    }
    if int(arviz.__version__.split(".")[0]) < 1:  # 1.x has a name InferenceData, too, that only warns
        return arviz.InferenceData(**groups)
    return xarray.DataTree.from_dict(groups)
