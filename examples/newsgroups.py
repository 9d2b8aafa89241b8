"""18,846 messages of twenty newsgroups, by their words alone.

    python examples/newsgroups.py [FILE] [FOLDER FOR PICTURES]

Without FILE the messages are fetched by scikit-learn, without headers, footers and quotes. FILE is a .npz file of word counts
with `data`, `indices`, `indptr`, `shape`, `vocabulary`, `label` and `label_names`.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from shared import show
from sklearn.datasets import fetch_20newsgroups
from sklearn.feature_extraction.text import CountVectorizer

from bayescase import BayesianCaseModel


def read(path: Path | None) -> tuple[csr_matrix, list[str], np.ndarray]:
    """(counts, words, group of each message)."""
    if path is not None:
        file = np.load(path)
        counts = csr_matrix((file["data"], file["indices"], file["indptr"]), shape=file["shape"])
        return counts, [str(word) for word in file["vocabulary"]], file["label_names"][file["label"]].astype(str)
    news = fetch_20newsgroups(subset="all", remove=("headers", "footers", "quotes"))
    words = CountVectorizer(stop_words="english", token_pattern="[a-z]{3,}", min_df=10, max_df=0.5)
    return words.fit_transform(news.data), words.get_feature_names_out().tolist(), np.array(news.target_names)[news.target]


def main(path: Path | None, out: Path) -> None:
    counts, words, groups = read(path)
    some = np.asarray(counts.sum(axis=1)).reshape(-1) > 0
    model = BayesianCaseModel(20, encoder={"feature_names": words}, n_iter=1000, n_chains=4, random_state=0)
    model.fit(counts[some], case_names=[f"a message in {group}" for group in groups[some]])
    show(model, "newsgroups", out, groups[some], "newsgroup")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None, Path(sys.argv[2] if len(sys.argv) > 2 else "."))
