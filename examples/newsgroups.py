"""18,846 messages of twenty newsgroups, by their words alone.

    python examples/newsgroups.py [FILE] [FOLDER FOR PICTURES]

Without FILE the messages are fetched by scikit-learn, without headers, footers and quotes. FILE is a .npz file of word counts
with `data`, `indices`, `indptr`, `shape`, `vocabulary`, `label`, `label_names` and `doc_id`. A word counts once in a message,
however often it is used: that predicts other words better (docs/hyperparameters.md).
"""

import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from shared import show
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer

from bayescase import BayesianCaseModel

LEAST = 20  # messages that have a word; rarer words are left out
SHORTEST, LONGEST = 30, 100  # words of a prototype: to be read on a card, and enough of them to stand for others


def read(path: Path | None) -> tuple[csr_matrix, np.ndarray, np.ndarray, np.ndarray]:
    """(which words each message has, words, group of each message, its number there)."""
    if path is not None:
        file = np.load(path)
        counts = csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
        groups = file["label_names"][file["label"]].astype(str)
        return (counts > 0).astype(int), file["vocabulary"].astype(str), groups, file["doc_id"].astype(str)
    news = fetch_20newsgroups(subset="all", remove=("headers", "footers", "quotes"))
    words = CountVectorizer(stop_words="english", token_pattern="[a-z]{3,}", max_df=0.5, binary=True)
    has = words.fit_transform(news.data)
    numbers = np.array([Path(name).name for name in news.filenames])
    return has, words.get_feature_names_out(), np.array(news.target_names)[news.target], numbers


def main(path: Path | None, out: Path, n_clusters: int = 20, n_iter: int = 1000) -> None:
    has, words, groups, numbers = read(path)
    kept = np.flatnonzero(has.getnnz(axis=0) >= LEAST)
    has, words = has[:, kept], words[kept].tolist()
    some = np.flatnonzero(has.getnnz(axis=1))
    has, groups, numbers, n_words = has[some], groups[some], numbers[some], has.getnnz(axis=1)[some]
    readable = (n_words >= SHORTEST) & (n_words <= LONGEST)
    print(f"{len(some):,} messages, {len(words):,} words; half of the messages have {np.median(n_words):.0f} words or fewer")
    print(f"{readable.sum():,} messages of {SHORTEST} to {LONGEST} words may be prototypes")
    model = BayesianCaseModel(n_clusters, encoder={"feature_names": words}, n_iter=n_iter, n_chains=4, random_state=0)
    names = [f"{group} {number}" for group, number in zip(groups, numbers, strict=True)]
    model.fit(has, case_names=names, prototype_prior=readable)
    show(model, "newsgroups", out, groups, "newsgroup")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, Path(sys.argv[2] if len(sys.argv) > 2 else "."))
