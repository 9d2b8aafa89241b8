"""How often learned hyperparameters lie in their intervals: `python benchmarks/intervals.py [--from-priors --clusters known]`.

Tables of three clusters of equal weight are drawn from the model, their prototypes from a catalogue of 60 rows, and fitted with
`n_clusters="auto"` and everything learned. Counted is how many intervals of probability 0.9 hold what the table was drawn
with. With --from-priors hyperparameters are drawn anew for each table; many then have no clusters that could be seen. With
--own-cases prototypes are chosen among the cases, as by default, and not from the catalogue.

A sampler is right if intervals hold 90 % where tables are drawn as it assumes: hyperparameters from their priors, and with
--clusters known three clusters and a fit that is told so, with --clusters drawn the weights of six from their prior with
γ = 1.5, and a fit by "auto" with this γ. Short chains hold less: draws that follow each other are alike, and their quantiles
are too near each other.
"""

import argparse
import contextlib
import warnings
from unittest import mock

import numpy as np

from bayescase import BayesianCaseModel, model
from bayescase.sampling.diagnostics import ess_bulk
from bayescase.sampling.hyper import LEARNED, Learn, draw_prior
from bayescase.state import make_data, make_hyper

CASES, FEATURES, VALUES, CLUSTERS, ROWS = 120, 15, 4, 3, 60
DRAWN_WITH = {"alpha": 0.1, "lam": 1.0, "c": 20.0, "q": 0.5}
DRAWN, GAMMA = 6, 1.5  # --clusters drawn


def draw(seed, given):
    """(hyperparameters, cases, catalogue)."""
    rng, drawn = np.random.default_rng([1, seed]), given.clusters == "drawn"
    S = DRAWN if drawn else CLUSTERS
    hyper = make_hyper(S, FEATURES, **DRAWN_WITH, gamma=GAMMA)
    hyper = draw_prior(hyper, Learn(LEARNED if given.from_priors else (), np.ones_like(hyper.q, dtype=bool), drawn), rng)
    offset = np.arange(FEATURES + 1) * VALUES
    catalogue = rng.integers(VALUES, size=(ROWS, FEATURES))
    table = model.simulate(make_data(catalogue + offset[:-1], offset), hyper, rng, CASES)
    return {name: float(np.ravel(getattr(hyper, name))[0]) for name in LEARNED}, table.x - offset[:-1], catalogue


def fit(seed, given):
    """(what the table was drawn with, the fitted model)."""
    drawn_with, cases, catalogue = draw(seed, given)
    fitted = BayesianCaseModel(
        CLUSTERS if given.clusters == "known" else "auto",
        max_clusters=DRAWN if given.clusters == "drawn" else 20,
        n_iter=given.sweeps,
        n_chains=2,
        n_init=1,
        random_state=seed,
        n_jobs=1,
        **dict.fromkeys(LEARNED, "learn"),
    )
    gamma = contextlib.nullcontext()
    if given.clusters == "drawn":
        gamma = mock.patch("bayescase.sampling.problem.gamma_of", return_value=GAMMA)
    with warnings.catch_warnings(), gamma:
        warnings.simplefilter("ignore")
        return drawn_with, fitted.fit(cases, candidates=None if given.own_cases else catalogue)


def report(held, draws, kinds):
    """A line per kind of tables: how many there are, how many intervals hold, the median of effective draws."""
    for kind, those in kinds.items():
        counts = "  ".join(f"{name} {held[those, k].sum()}" for k, name in enumerate(LEARNED))
        median = " ".join(f"{value:.0f}" for value in np.median(draws[those], axis=0)) if those.any() else "-"
        print(f"{those.sum():4} tables, {kind:15} held: {counts}   effective draws: {median}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=1200)
    parser.add_argument("--from-priors", action="store_true")
    parser.add_argument("--clusters", choices=("auto", "known", "drawn"), default="auto")
    parser.add_argument("--own-cases", action="store_true")
    given = parser.parse_args()
    held, draws, found, good = [], [], [], []
    for seed in range(given.tables):
        drawn_with, fitted = fit(seed, given)
        intervals = fitted.hyperparameters_
        held.append([intervals[name].low <= drawn_with[name] <= intervals[name].high for name in LEARNED])
        draws.append([ess_bulk(fitted.fitted_.pooled(name)) for name in LEARNED])
        found.append(fitted.n_clusters_)
        good.append(fitted.diagnostics_.converged)
        if (seed + 1) % 20 == 0 or seed + 1 == given.tables:
            three, sure = np.array(found) == CLUSTERS, np.array(good)
            kinds = {"all": three | ~three, "three found": three, "others": ~three, "good verdict": sure}
            report(np.array(held), np.array(draws), kinds)


if __name__ == "__main__":
    main()
