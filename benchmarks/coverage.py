"""How often learned hyperparameters lie in their intervals: `python benchmarks/coverage.py [--from-priors] [--own-cases]`.

Tables of three clusters are drawn from the model, their prototypes from a catalogue of 60 rows, and fitted with
`n_clusters="auto"` and everything learned. Counted is how many intervals of probability 0.9 hold what the table was drawn
with. With --from-priors hyperparameters are drawn anew for each table; many then have no clusters that could be seen. With
--own-cases prototypes are chosen among the cases, as by default, and not from the catalogue.
"""

import argparse
import warnings

import numpy as np

from bayescase import BayesianCaseModel, model
from bayescase.sampling.hyper import PRIORS
from bayescase.state import make_data, make_hyper

CASES, FEATURES, VALUES, CLUSTERS, ROWS = 120, 15, 4, 3, 60
DRAWN_WITH = {"alpha": 0.1, "lam": 1.0, "c": 20.0, "q": 0.5}


def draw(seed, from_priors):
    """(hyperparameters, cases, catalogue)."""
    rng, drawn_with = np.random.default_rng([1, seed]), DRAWN_WITH
    if from_priors:
        drawn_with = {name: float(np.exp(rng.normal(*prior))) for name, prior in PRIORS.items()} | {"q": rng.random()}
    offset = np.arange(FEATURES + 1) * VALUES
    catalogue = rng.integers(VALUES, size=(ROWS, FEATURES))
    hyper = make_hyper(CLUSTERS, FEATURES, **drawn_with)
    drawn = model.simulate(make_data(catalogue + offset[:-1], offset), hyper, rng, CASES)
    return drawn_with, drawn.x - offset[:-1], catalogue


def covered(seed, from_priors, own_cases):
    """name → is it in its interval?"""
    drawn_with, cases, catalogue = draw(seed, from_priors)
    learn = dict.fromkeys(DRAWN_WITH, "learn")
    fitted = BayesianCaseModel("auto", n_iter=300, n_chains=2, n_init=1, random_state=seed, n_jobs=1, **learn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(cases, candidates=None if own_cases else catalogue)
    found = fitted.hyperparameters_
    return {name: found[name].low <= value <= found[name].high for name, value in drawn_with.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--from-priors", action="store_true")
    parser.add_argument("--own-cases", action="store_true")
    given = parser.parse_args()
    held = dict.fromkeys(DRAWN_WITH, 0)
    for seed in range(given.tables):
        for name, inside in covered(seed, given.from_priors, given.own_cases).items():
            held[name] += inside
        if (seed + 1) % 20 == 0 or seed + 1 == given.tables:
            print(f"of {seed + 1}:", held, flush=True)


if __name__ == "__main__":
    main()
