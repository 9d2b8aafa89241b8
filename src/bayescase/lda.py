"""Latent Dirichlet allocation by Gibbs sampling: tomotopy, driven in one place.

One thread, so that the seed decides, and α stays what it is (learned, it empties topics).
"""

import warnings
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

ABSENT = "Left out: tomotopy is not installed (pip install 'bayescase[peers]')."
INFER_ITER = 20  # sweeps over documents that the topics were not learned from
AT_ONCE = 50  # sweeps between which Ctrl-C is heard


class Topics(NamedTuple):
    theta: np.ndarray  # (N, S) mixture of each case
    phi: np.ndarray  # (S, words)
    words: list[tuple[int, str]]  # (feature, value)


def has_lda() -> bool:
    return find_spec("tomotopy") is not None


def new_lda(n_topics: int, *, alpha: float = 0.1, eta: float = 0.01, seed: int) -> Any:
    """tomotopy's model without documents: α is of every topic, η of every word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing its compiled part warns, which strict filters turn into a failure
        import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=alpha, eta=eta, seed=seed)
    model.optim_interval = 0
    return model


def train_lda(documents: Iterable[Sequence[str]], n_topics: int, *, n_iter: int, seed: int, **priors: float) -> Any:
    """tomotopy's model of documents, lists of words of which none is empty."""
    model = new_lda(n_topics, seed=seed, **priors)
    for words in documents:
        model.add_doc(words)
    for done in range(0, n_iter, AT_ONCE):
        model.train(min(AT_ONCE, n_iter - done), workers=1)
    return model


def main_topics(model: Any) -> np.ndarray:
    """The largest topic of each document."""
    return np.array([int(np.argmax(document.get_topic_dist())) for document in model.docs], dtype=int)


def word_shares(model: Any) -> np.ndarray:
    """φ: (topics, words), in the order of `model.used_vocabs`."""
    return np.array([model.get_topic_word_dist(topic) for topic in range(model.k)])


def fit_lda(cases: np.ndarray, n_topics: int, *, alpha: float, lam: float, n_iter: int, seed: int) -> Topics:
    """LDA of a table with (feature, value) as words. α is the total, as for BayesianCaseModel; λ is of every word."""
    documents = ([f"{j}={value}" for j, value in enumerate(row)] for row in cases)
    model = train_lda(documents, n_topics, alpha=alpha / n_topics, eta=lam, n_iter=n_iter, seed=seed)
    words = [word.split("=", 1) for word in model.used_vocabs]
    theta = np.array([doc.get_topic_dist() for doc in model.docs])
    return Topics(theta, word_shares(model), [(int(j), value) for j, value in words])


def mixtures(documents, new, n_topics: int, *, n_iter: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Topics of documents, lists of words, and of new ones, with tomotopy's own α and η. One without words has the prior's."""
    model = train_lda([doc for doc in documents if doc], n_topics, n_iter=n_iter, seed=seed)
    known = set(model.used_vocabs)
    new = [[word for word in doc if word in known] for doc in new]
    theta, theta_new = np.full((len(documents), n_topics), 1 / n_topics), np.full((len(new), n_topics), 1 / n_topics)
    theta[[bool(doc) for doc in documents]] = [doc.get_topic_dist() for doc in model.docs]
    if any(new):
        made = [model.make_doc(doc) for doc in new if doc]
        theta_new[[bool(doc) for doc in new]] = model.infer(made, iterations=INFER_ITER, workers=1, together=True)[0]
    return theta, theta_new
