"""How often learned hyperparameters lie in their intervals: `python benchmarks/coverage.py [--tables 100] [--own-cases]`.

Tables of three clusters are drawn from the model, their prototypes from a catalogue of 60 rows, and fitted with
`n_clusters="auto"` and everything learned. Counted is how many intervals of probability 0.9 hold what the table was drawn
with. With --own-cases prototypes are chosen among the cases, as by default, and not from the catalogue.
"""

import argparse
import warnings

import numpy as np

from bayescase import BayesianCaseModel, model
from bayescase.state import make_data, make_hyper

CASES, FEATURES, VALUES, CLUSTERS, ROWS = 120, 15, 4, 3, 60
DRAWN_WITH = {"alpha": 0.1, "lam": 1.0, "c": 20.0, "q": 0.5}


def draw(seed):
    """(cases, catalogue)."""
    rng = np.random.default_rng([1, seed])
    offset = np.arange(FEATURES + 1) * VALUES
    catalogue = rng.integers(VALUES, size=(ROWS, FEATURES))
    hyper = make_hyper(CLUSTERS, FEATURES, **DRAWN_WITH)
    drawn = model.simulate(make_data(catalogue + offset[:-1], offset), hyper, rng, CASES)
    return drawn.x - offset[:-1], catalogue


def covered(seed, own_cases):
    """name → is it in its interval?"""
    cases, catalogue = draw(seed)
    learn = dict.fromkeys(DRAWN_WITH, "learn")
    fitted = BayesianCaseModel("auto", n_iter=300, n_chains=2, n_init=1, random_state=seed, n_jobs=1, **learn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted.fit(cases, candidates=None if own_cases else catalogue)
    of = fitted.hyperparameters_
    return {name: of[name].low <= value <= of[name].high for name, value in DRAWN_WITH.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--own-cases", action="store_true")
    given = parser.parse_args()
    found = [covered(seed, given.own_cases) for seed in range(given.tables)]
    print(f"of {given.tables}:", {name: sum(of[name] for of in found) for name in DRAWN_WITH})


if __name__ == "__main__":
    main()
