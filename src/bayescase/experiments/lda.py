"""Latent Dirichlet allocation by Gibbs sampling: tomotopy's, with (feature, value) as words."""

import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

ABSENT = "Left out: tomotopy is not installed (pip install 'bayescase[peers]')."


class Topics(NamedTuple):
    theta: np.ndarray  # (N, S) mixture of each case
    phi: np.ndarray  # (S, words)
    words: list[tuple[int, str]]  # (feature, value)


def has_lda() -> bool:
    return find_spec("tomotopy") is not None


def fit_lda(cases: np.ndarray, n_topics: int, *, alpha: float, lam: float, n_iter: int, seed: int) -> Topics:
    """alpha is the total, as for BayesianCaseModel; λ is the pseudo-count of every word. One thread, so that seeds decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing its compiled part warns, which strict filters turn into a failure
        import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=alpha / n_topics, eta=lam, seed=seed)
    model.optim_interval = 0  # α stays as it is
    for row in cases:
        model.add_doc([f"{j}={value}" for j, value in enumerate(row)])
    model.train(n_iter, workers=1)
    words = [word.split("=", 1) for word in model.used_vocabs]
    theta = np.array([doc.get_topic_dist() for doc in model.docs])
    phi = np.array([model.get_topic_word_dist(s) for s in range(n_topics)])
    return Topics(theta, phi, [(int(j), value) for j, value in words])
