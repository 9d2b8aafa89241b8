"""Fitted models of sets, of tables and of images, for tests."""

import csv
import warnings
from collections import Counter

import numpy as np

from bayescase import BayesianCaseModel
from bayescase.study.design.source_model import source_model
from bayescase.study.design.stimuli import CaseView


def fit(table, k, **given):
    return BayesianCaseModel(k, n_iter=60, n_chains=2, n_jobs=1, random_state=0).fit(table, **given)


def dishes(S=5, own=6, each=14, seed=0):
    """Sets: a dish has most of its family's ingredients, and now and then one of another family."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(S), each)
    has = rng.random((S * each, S * own)) < np.where(family[:, None] == np.arange(S * own) // own, 0.8, 0.04)
    return {f"{'abcdefgh'[j // own]}{j % own}": has[:, j] for j in range(S * own)}, family


def meals():
    """A model of five families. Tests must not change it."""
    table, family = dishes()
    model = fit(table, 5)
    sizes = Counter(model.labels_)
    assert len(sizes) == 5  # the families are found
    assert min(sizes.values()) >= 12
    return model.name_cases([f"dish {i} of {family[i]}" for i in range(len(family))])


def animals():
    """A table of words and numbers with missing cells, in three clusters."""
    rng = np.random.default_rng(3)
    label = np.arange(60) % 3
    own = {
        "coat": ("fur", "scales", "feathers"),
        "legs": (4, 0, 2),
        "home": ("land", "sea", "air"),
        "eats": ("meat", "algae", "corn"),
    }
    table = {}
    for name, values in own.items():
        column = np.array(values, dtype=object)[np.where(rng.random(60) < 0.1, rng.integers(3, size=60), label)]
        column[rng.random(60) < 0.1] = None
        table[name] = column
    table["size"] = label + rng.random(60) * 0.8
    table["tame"] = np.array([True, False, None], dtype=object)[rng.choice(3, size=60, p=[0.5, 0.4, 0.1])]
    return fit(table, 3)


def digits():
    from sklearn.datasets import load_digits

    data = load_digits(n_class=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some pixels are never inked
        return fit((data.data[:250] > 7).astype(int), 5)


def view_of(model, image_shape=None):
    """(how its cases are shown, their codes)"""
    source = source_model(model)
    return CaseView(source, image_shape), source.cases


def write_topics(path, model, labels, n_words=None):
    """Topics as another program might give them: how often a word is in a group."""
    view, cases = view_of(model)
    lines = [["topic", "word", "weight"]]
    for t in np.unique(labels):
        codes = np.concatenate([view.words(row) for row in cases[labels == t]])
        for code, n in Counter(codes.tolist()).most_common(n_words):
            lines.append([f"T{t}", view.word(code), n])
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(lines)
    return path


class Other:
    """Something with some of its attributes replaced."""

    def __init__(self, of, **changes):
        self.of = of
        self.__dict__ |= changes

    def __getattr__(self, name):
        return getattr(self.of, name)


def twisted(model, memberships=None, **changes):
    """A model with some of its results replaced: labels, prototypes, memberships."""
    posterior = model.fitted_.posterior
    if memberships is not None:
        changes["posterior"] = Other(posterior, memberships=memberships)
    return Other(model, fitted_=Other(model.fitted_, **changes))
