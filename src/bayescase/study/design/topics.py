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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...errors import Advice, Setting
from ...lda import has_lda, main_topics, train_lda, word_shares
from .design import DesignError, WishError
from .stimuli import CaseView

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


def fit_topics(view: CaseView, cases: np.ndarray, n_topics: int, seed: int) -> Topics:
    """LDA by Gibbs sampling."""
    if not has_lda():
        raise WishError(
            "LDA needs tomotopy (pip install 'bayescase[study]').",
            Advice("give topics of another program with {}", Setting("lda", "FILE")),
        )
    documents = [view.words(row) for row in cases]
    filled = [i for i, words in enumerate(documents) if len(words)]
    words = ([str(code) for code in documents[i]] for i in filled)
    model = train_lda(words, n_topics, alpha=ALPHA, eta=ETA, n_iter=SWEEPS, seed=seed)
    weights = np.zeros((n_topics, len(view.values)))
    weights[:, [int(word) for word in model.used_vocabs]] = word_shares(model)
    labels = np.full(len(cases), -1)
    labels[filled] = main_topics(model)
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


def top_words(view: CaseView, weights: np.ndarray, n: int) -> list[int]:
    """The n weightiest words that can be drawn, or as many as there are; one per pixel; ties in the order of the table."""
    found: dict[int, int] = {}
    for code in np.argsort(-weights, kind="stable"):
        if weights[code] > 0 and view.is_drawn[code] and len(found) < n:
            found.setdefault(int(view.feature[code]) if view.kind == "image" else int(code), int(code))
    return list(found.values())


# --- topics of another program ---------------------------------------------------------------------------------------------


def read_topics(path: Any, view: CaseView, cases: np.ndarray) -> Topics:
    """Topics from a file: CSV with the columns topic, word, weight, or JSON {topic: {word: weight}}.

    A word is an ingredient, or feature=value. Weights are probabilities, counts or anything else that is larger for words
    that say more; each topic's are divided by their sum. A case belongs to the topic that gives its words the highest
    probability.
    """
    known = {spelling(view.word(code)): code for code in np.flatnonzero(view.is_word).tolist()}
    names: list[str] = []
    weights: list[np.ndarray] = []
    seen = set()
    for topic, word, weight in topic_rows(Path(path)):
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
            weights.append(np.zeros(len(view.values)))
        weights[names.index(topic)][known[spelling(word)]] = weight
    if not names:
        raise DesignError(f"{path} has no topics.")
    for topic, given in zip(names, weights, strict=True):
        if not given.sum() > 0:
            raise DesignError(f"{path}, topic {topic!r}: all weights are 0.")
    table = np.array([given / given.sum() for given in weights])
    return Topics(tuple(names), table, most_probable(view, cases, table))


def most_probable(view, cases, weights):
    """argmax_t Σ_w log φ_t(w) over the words of a case."""
    log_phi = np.log(np.maximum(weights, FLOOR))
    documents = [view.words(row) for row in cases]
    return np.array([int(log_phi[:, words].sum(axis=1).argmax()) if len(words) else -1 for words in documents])


def spelling(word) -> str:
    return re.sub(r"\s*=\s*", "=", " ".join(str(word).split()))


def topic_rows(path):
    """(topic, word, weight) from either kind of file."""
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise DesignError(f"{path} is not a text file in UTF-8.") from None
    if text.lstrip().startswith(("{", "[")):
        yield from topic_rows_of_json(path, text)
        return
    rows = csv.DictReader(io.StringIO(text))
    if not {"topic", "word", "weight"} <= set(rows.fieldnames or ()):
        raise DesignError(f"{path} must have the columns topic, word and weight, or be JSON: {{topic: {{word: weight}}}}.")
    for row in rows:
        try:
            yield str(row["topic"]), str(row["word"]), float(row["weight"])
        except (TypeError, ValueError):
            raise DesignError(f"{path}, line {rows.line_num}: the weight {row['weight']!r} is not a number.") from None


def topic_rows_of_json(path, text):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DesignError(f"{path} is not JSON ({error}).") from error
    if not isinstance(value, dict) or not all(isinstance(words, dict) for words in value.values()):
        raise DesignError(f"{path} must be {{topic: {{word: weight}}}}.")
    for topic, words in value.items():
        for word, weight in words.items():
            yield topic, word, weight
