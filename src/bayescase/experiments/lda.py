"""Latent Dirichlet allocation by Gibbs sampling: tomotopy's, of tables with (feature, value) as words, and of documents."""

import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

ABSENT = "Left out: tomotopy is not installed (pip install 'bayescase[peers]')."
INFER_ITER = 20  # sweeps over documents that the topics were not learned from


class Topics(NamedTuple):
    theta: np.ndarray  # (N, S) mixture of each case
    phi: np.ndarray  # (S, words)
    words: list[tuple[int, str]]  # (feature, value)


def has_lda() -> bool:
    return find_spec("tomotopy") is not None


def fit_lda(cases: np.ndarray, n_topics: int, *, alpha: float, lam: float, n_iter: int, seed: int) -> Topics:
    """alpha is the total, as for BayesianCaseModel; λ is the pseudo-count of every word."""
    documents = ([f"{j}={value}" for j, value in enumerate(row)] for row in cases)
    model = train(documents, n_topics, alpha / n_topics, lam, n_iter, seed)
    words = [word.split("=", 1) for word in model.used_vocabs]
    theta = np.array([doc.get_topic_dist() for doc in model.docs])
    phi = np.array([model.get_topic_word_dist(s) for s in range(n_topics)])
    return Topics(theta, phi, [(int(j), value) for j, value in words])


def mixtures(documents, new, n_topics: int, *, n_iter: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Topics of documents, lists of words, and of new ones, with tomotopy's own α and η. One without words has the prior's."""
    model = train([doc for doc in documents if doc], n_topics, 0.1, 0.01, n_iter, seed)
    known = set(model.used_vocabs)
    new = [[word for word in doc if word in known] for doc in new]
    theta, theta_new = np.full((len(documents), n_topics), 1 / n_topics), np.full((len(new), n_topics), 1 / n_topics)
    theta[[bool(doc) for doc in documents]] = [doc.get_topic_dist() for doc in model.docs]
    if any(new):
        made = [model.make_doc(doc) for doc in new if doc]
        theta_new[[bool(doc) for doc in new]] = model.infer(made, iterations=INFER_ITER, workers=1, together=True)[0]
    return theta, theta_new


def train(documents, n_topics, alpha, eta, n_iter, seed):
    """One thread, so that seeds decide."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing its compiled part warns, which strict filters turn into a failure
        import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=seed)
    model.optim_interval = 0  # α stays as it is
    for words in documents:
        model.add_doc(words)
    model.train(n_iter, workers=1)
    return model
