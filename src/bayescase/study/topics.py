"""The other explanation: topics of LDA, fitted or read from a file, matched to clusters, as long as the prototypes.

A cluster is visible in the topics if its cases and those of its topic are mostly the same: their overlap, the cases in both
divided by the cases in either, is at least a given share.
"""

import csv
import difflib
import io
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from .design import DesignError
from .stimuli import Sight

ALPHA, ETA, SWEEPS = 0.1, 1.0, 500  # of every topic; of every word, as λ in the Bayesian Case Model
SETTINGS = f"α {ALPHA} per topic, η {ETA} per word, {SWEEPS} sweeps"
FLOOR = 1e-4  # of a topic's weight: what a word has that a file does not list


class Topics(NamedTuple):
    names: tuple[str, ...]
    weights: np.ndarray  # (topics, codes); 0: the topic does not say the word
    labels: np.ndarray  # (cases,) the main topic; -1 for a case without words


class Match(NamedTuple):
    topic: dict[int, int]  # of each cluster
    overlap: dict[int, float]


def fit_topics(sight: Sight, cases: np.ndarray, n_topics: int, seed: int) -> Topics:
    """LDA by Gibbs sampling, one thread, so that the seed decides."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing its compiled part warns, which strict filters turn into a failure
        try:
            import tomotopy
        except ImportError:
            raise DesignError(
                "LDA needs tomotopy (pip install 'bayescase[study]'); or give topics of another program with --lda FILE."
            ) from None
    lda = tomotopy.LDAModel(k=n_topics, alpha=ALPHA, eta=ETA, seed=seed)
    lda.optim_interval = 0  # α stays as it is
    documents = [sight.words(row, sight.spoken) for row in cases]
    told = [i for i, words in enumerate(documents) if len(words)]
    for i in told:
        lda.add_doc([str(code) for code in documents[i]])
    for _ in range(SWEEPS // 50):
        lda.train(50, workers=1)  # in between, Ctrl-C is heard
    codes = [int(word) for word in lda.used_vocabs]
    weights = np.zeros((n_topics, len(sight.values)))
    weights[:, codes] = [lda.get_topic_word_dist(t) for t in range(n_topics)]
    labels = np.full(len(cases), -1)
    labels[told] = [int(np.argmax(document.get_topic_dist())) for document in lda.docs]
    return Topics(tuple(f"topic {t}" for t in range(n_topics)), weights, labels)


def match_topics(topics: Topics, labels: np.ndarray, clusters) -> Match:
    """A topic for every cluster, each another one, with the largest sum of overlaps (the Hungarian method)."""
    overlap = np.zeros((len(clusters), len(topics.names)))
    for k, s in enumerate(clusters):
        for t in range(len(topics.names)):
            here, there = labels == s, topics.labels == t
            overlap[k, t] = (here & there).sum() / max((here | there).sum(), 1)
    pairs = [(int(k), int(t)) for k, t in zip(*linear_sum_assignment(-overlap), strict=True)]
    return Match({clusters[k]: t for k, t in pairs}, {clusters[k]: float(overlap[k, t]) for k, t in pairs})


def top_words(sight: Sight, weights: np.ndarray, n: int) -> list[int]:
    """The n weightiest words that can be drawn, or as many as there are; one per pixel; ties in the order of the table."""
    found: dict[int, int] = {}
    for code in np.argsort(-weights, kind="stable"):
        if weights[code] > 0 and sight.drawn[code] and len(found) < n:
            found.setdefault(int(sight.feature[code]) if sight.kind == "image" else int(code), int(code))
    return list(found.values())


# --- topics of another program ---------------------------------------------------------------------------------------------


def read_topics(path: Any, sight: Sight, cases: np.ndarray) -> Topics:
    """Topics from a file: CSV with the columns topic, word, weight, or JSON {topic: {word: weight}}.

    A word is an ingredient, or feature=value. Weights are probabilities, counts or anything else that is larger for words
    that say more; each topic's are divided by their sum. A case belongs to the topic that gives its words the highest
    probability.
    """
    known = {spelling(sight.word(code)): code for code in np.flatnonzero(sight.spoken)}
    names: list[str] = []
    weights: list[np.ndarray] = []
    seen = set()
    for topic, word, weight in rows_of(Path(path)):
        where = f"{path}, topic {topic!r}, word {word!r}"
        if spelling(word) not in known:
            near = difflib.get_close_matches(spelling(word), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"words look like {next(iter(known), '')!r}."
            raise DesignError(f"{where}: the model has no such word; {hint}")
        if not isinstance(weight, (int, float)) or isinstance(weight, bool) or not 0 <= weight < math.inf:
            raise DesignError(f"{where}: the weight must be a number that is not negative, not {weight!r}.")
        if (topic, spelling(word)) in seen:
            raise DesignError(f"{where}: the word is listed twice.")
        seen.add((topic, spelling(word)))
        if topic not in names:
            names.append(topic)
            weights.append(np.zeros(len(sight.values)))
        weights[names.index(topic)][known[spelling(word)]] = weight
    if not names:
        raise DesignError(f"{path} has no topics.")
    for topic, given in zip(names, weights, strict=True):
        if not given.sum() > 0:
            raise DesignError(f"{path}, topic {topic!r}: all weights are 0.")
    table = np.array([given / given.sum() for given in weights])
    return Topics(tuple(names), table, most_probable(sight, cases, table))


def most_probable(sight, cases, weights):
    """argmax_t Σ_w log φ_t(w) over the words of a case."""
    log_phi = np.log(np.maximum(weights, FLOOR))
    documents = [sight.words(row, sight.spoken) for row in cases]
    return np.array([int(log_phi[:, words].sum(axis=1).argmax()) if len(words) else -1 for words in documents])


def spelling(word) -> str:
    return re.sub(r"\s*=\s*", "=", " ".join(str(word).split()))


def rows_of(path):
    """(topic, word, weight) from either kind of file."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DesignError(f"{path} is not a text file in UTF-8.") from None
    if text.lstrip().startswith(("{", "[")):
        yield from rows_of_json(path, text)
        return
    rows = csv.DictReader(io.StringIO(text))
    if not {"topic", "word", "weight"} <= set(rows.fieldnames or ()):
        raise DesignError(f"{path} must have the columns topic, word and weight, or be JSON: {{topic: {{word: weight}}}}.")
    for row in rows:
        try:
            yield str(row["topic"]), str(row["word"]), float(row["weight"])
        except (TypeError, ValueError):
            raise DesignError(f"{path}, line {rows.line_num}: the weight {row['weight']!r} is not a number.") from None


def rows_of_json(path, text):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DesignError(f"{path} is not JSON ({error}).") from error
    if not isinstance(value, dict) or not all(isinstance(words, dict) for words in value.values()):
        raise DesignError(f"{path} must be {{topic: {{word: weight}}}}.")
    for topic, words in value.items():
        for word, weight in words.items():
            yield topic, word, weight
