"""Recipes and newsgroups as bags: what is there counts, what is lacking says nothing. No label is used in any fit."""

from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.metrics import normalized_mutual_info_score
from sklearn.svm import LinearSVC

from ..estimator import BayesianCaseModel
from ..explaining.explanation import ModelExplanation
from ..explaining.render.figures import plot_prototypes
from ..lda import ABSENT, has_lda, mixtures
from . import newsgroups, recipes
from .accuracy import svm
from .frame import Experiment, Row, spread
from .newsgroups import COUNTS, GROUPS, PAPER_LDA, PAPER_SD, News, draw_documents, frequent_words

TOLD = 5  # words that introduce a cluster
APART = 0.1  # accuracies that are those of other clusters
SPREAD = 0.05  # from the lowest seed to the highest, that is worth telling


def source(settings: dict, data: Path | None) -> str:
    return f"{recipes.source(settings, data)}; {newsgroups.source(settings, data)}"


def run(seed: int, settings: dict, data: Path | None) -> dict:
    news = newsgroups.load(data)["stripped"]
    found = {"recipes": of_recipes(seed, settings, data), "groups": four_groups(once(news), seed, settings)}
    found["counted"] = four_groups(news, seed, settings)
    if seed < settings["all_seeds"]:
        found["all"] = [all_groups(news, S, seed, settings) for S in settings["all_clusters"]]
    return found


def once(news):
    """Every word of a document once. A word that has been used is likely to be used again, whatever the document is about:
    the fourth "car" tells next to nothing, but four independent draws say that it is all about cars."""
    return News((news.counts > 0).astype(int), news.label, news.is_train, news.vocabulary, news.label_names)


def of_recipes(seed, settings, data):
    """The recipes as bags of ingredients, as many clusters as families."""
    table = recipes.load(data)
    columns = list(table.table)
    bags = [[name for name in columns if table.table[name][i]] for i in range(len(table.names))]
    S = len(np.unique(table.families))
    model = BayesianCaseModel(S, n_iter=settings["n_iter"], n_chains=settings["n_chains"], random_state=seed)
    model.fit({"ingredients": bags}, case_names=table.names)
    explained = model.explain()
    families = table.families[model.prototypes_].tolist()
    return {
        "n_families": S,
        "prototypes": table.names[model.prototypes_].tolist(),
        "families": families,
        "each_once": len(set(families)) == S,
        "nmi": float(normalized_mutual_info_score(table.families, model.labels_)),
        "converged": bool(model.diagnostics_.converged),
        "explanation": recipes.briefly(explained).to_json(),
    }


def four_groups(news, seed, settings):
    """Whole documents of four groups, the words that are most frequent in them."""
    size, words = settings["size"], frequent_words(news, settings["words"])
    rows, y = draw_documents(news, news.counts.sum(axis=1) > 0, size, np.random.default_rng((seed, size)))
    counts = csr_matrix(news.counts[rows][:, words])
    model = fit_counts(counts, news.vocabulary[words], len(GROUPS), settings["n_iter"], settings["n_chains"], seed)
    fitted, labels = model.fitted_, model.labels_
    told = [
        {"group": GROUPS[y[c.prototype.row]], "size": c.size, "words": [d.words for d in c.more_often[:TOLD]]}
        for c in model.explain().clusters
    ]
    found = {
        "svm": svm(model.memberships_, y, seed),
        "unsupervised": float((y[model.prototypes_[labels]] == y).mean()),
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "members": float((fitted.homes[fitted.prototypes] == np.arange(fitted.n_clusters)).mean()),
        "told": told,
    }
    if has_lda():
        bags = News(counts, y, np.ones(len(y)), news.vocabulary[words], GROUPS).bags(np.arange(len(y)))
        theta, _ = mixtures(bags, [], len(GROUPS), n_iter=settings["lda_iter"], seed=seed)
        found["lda"] = svm(theta, y, seed)
    return found


def fit_counts(counts, vocabulary, S, n_iter, n_chains, seed):
    encoder = {"feature_names": vocabulary.tolist()}
    model = BayesianCaseModel(S, n_iter=n_iter, n_chains=n_chains, encoder=encoder, random_state=seed)
    return model.fit(counts)


def all_groups(news, S, seed, settings):
    """All groups: clusters of the training part, a linear SVM on the memberships, its accuracy on the test part.

    Each word once; LDA also with words as often as they occur.
    """
    train, test = np.flatnonzero(news.is_train), np.flatnonzero(~news.is_train)
    words = once(news)
    model = fit_counts(csr_matrix(words.counts[train]), news.vocabulary, S, settings["all_iter"], settings["all_chains"], seed)
    pi = [model.memberships_, model.transform(csr_matrix(words.counts[test]))]
    found = {"clusters": S, "bcm": svm_accuracy(news, pi, seed)}
    for name, read in {"lda": words, "lda_counted": news}.items() if has_lda() else ():
        theta = mixtures(read.bags(train), read.bags(test), S, n_iter=settings["lda_iter"], seed=seed)
        found[name] = svm_accuracy(news, theta, seed)
    return found


def svm_accuracy(news, memberships, seed):
    """Of a linear SVM on the memberships of the training part, tried on those of the test part."""
    known, new = memberships
    guessed = LinearSVC(random_state=seed).fit(known, news.label[news.is_train]).predict(new)
    return float((guessed == news.label[~news.is_train]).mean())


# --- the page -----------------------------------------------------------------------------------------------------------


def rows(results: list[dict]) -> list[Row]:
    return [
        *recipe_rows([r["recipes"] for r in results]),
        *group_rows([r["groups"] for r in results], "four groups, each word once"),
        *group_rows([r["counted"] for r in results], "four groups, words as often as they occur"),
        *all_rows(results),
    ]


def recipe_rows(fits):
    n, S = len(fits), fits[0]["n_families"]
    names, counts = np.unique([name for fit in fits for name in fit["prototypes"]], return_counts=True)
    best = [f"{names[k]} ({counts[k]})" for k in np.argsort(-counts, kind="stable")[:6]]
    every, nmi = sum(fit["each_once"] for fit in fits), [fit["nmi"] for fit in fits]
    return [
        Row(f"recipes: seeds with a prototype of each of the {S} families", "the run shown", f"{every} of {n}"),
        Row("recipes: agreement of clusters and families (NMI)", "labels “identical” to the experts'",
            spread(nmi), seed_by_seed(nmi)),
        Row("recipes: prototypes, with the number of clusters", ", ".join(recipes.PAPER.values()), ", ".join(best),
            come_back(names) if len(recipes.PAPER) == S else ""),
        Row("recipes: runs with a good verdict", "not given", f"{sum(f['converged'] for f in fits)} of {n}"),
    ]  # fmt: skip


def seed_by_seed(values):
    """How far seeds are apart, where a mean alone says little."""
    low, high = np.min(values), np.max(values)
    if high - low < SPREAD:
        return ""
    lowest = int((np.array(values) < low + 0.0005).sum())
    return f"Mean {np.mean(values):.3f}, from {low:.3f} (in {lowest} of {len(values)} seeds) to {high:.3f}."


def come_back(names):
    """Which prototypes of the paper's run are prototypes here, too."""
    plain = {name.casefold() for name in names}
    own = [name for name in recipes.PAPER.values() if name.casefold() in plain]
    if len(own) == len(recipes.PAPER):
        return ""
    which = f"Of the paper's prototypes {', '.join(own)} alone." if own else "None of the paper's prototypes comes back."
    return f"{which} With a column per ingredient, absent or present, some do: see figure 4b above."


def group_rows(fits, what):
    svms = np.array([f["svm"] for f in fits])
    low = int((svms < np.median(svms) - APART).sum())
    remark = f"In {low} of {len(fits)} seeds the most probable chain has other clusters than in the rest." if low else ""
    lines = [
        Row(f"{what}: SVM on π", "figure only", spread(svms.tolist()), remark),
        Row(f"{what}: label of the prototype (unsupervised)", "figure only", spread([f["unsupervised"] for f in fits])),
        Row(f"{what}: agreement of clusters and groups (NMI)", "not given", spread([f["nmi"] for f in fits])),
        Row(f"{what}: prototypes that are members of their cluster", "not given", spread([f["members"] for f in fits])),
    ]
    known = [f["lda"] for f in fits if "lda" in f]
    lines.append(Row(f"{what}: SVM on the topics of LDA", "figure only", spread(known), "" if known else ABSENT))
    words = "; ".join(f"{one['group']} ({one['size']}): {', '.join(one['words'])}" for one in fits[0]["told"])
    return [*lines, Row(f"{what}: what sets the clusters apart (first seed; group of the prototype)", "not given", words)]


def all_rows(results):
    lines = []
    fits = [one for result in results for one in result.get("all", [])]
    for S in dict.fromkeys(one["clusters"] for one in fits):
        of = [one for one in fits if one["clusters"] == S]
        n = f"{len(of)} seed{'s' if len(of) > 1 else ''}"
        what, paper = "all 20 groups, train to test", f"{PAPER_LDA} ± {PAPER_SD}"
        lines.append(Row(f"{what}: SVM on π, S = {S}, each word once", "not done", spread([one["bcm"] for one in of]),
                         f"{n}. {beside_lda(of)}".strip()))  # fmt: skip
        for name, words in {"lda": "each word once", "lda_counted": "words as often as they occur"}.items():
            known = [one[name] for one in of if name in one]
            there = paper if name == "lda_counted" and max(one["clusters"] for one in fits) == S else "not done"
            topics = f"{what}: SVM on the topics of LDA, {S} topics, {words}"
            lines.append(Row(topics, there, spread(known) if known else "", n if known else ABSENT))
    return lines


def beside_lda(fits):
    """How far the accuracy is from that of each LDA on the same documents, and what so many seeds say of it."""
    off = {}
    for name, words in {"lda": "each word once", "lda_counted": "words as often as they occur"}.items():
        pairs = [one["bcm"] - one[name] for one in fits if name in one]
        if pairs:
            off[f"LDA with {words}"] = float(np.mean(pairs))
    told = [f"{abs(by):.2f} {'above' if by > 0 else 'below'} {what}" for what, by in off.items()]
    if not told:
        return ""
    seeds = "" if len(fits) > 1 else " How much of that is chance, one seed does not say."
    return f"{' and '.join(told)}.{seeds}"


def figures(results: list[dict]) -> dict:
    explained = ModelExplanation.from_json(results[0]["recipes"]["explanation"])
    return {"Figure 4b again, recipes as bags (first seed): prototypes, with what matters in a box": plot_prototypes(explained)}


BAGS = Experiment(
    name="bags",
    title="Recipes and newsgroups as bags",
    paper="The paper does not say how recipes and newsgroups became features. Here they are bags: an ingredient or a word that "
    "is absent is nothing, not a value. All settings are the defaults for bags (λ = .5, c = 5, q = .5, the base measure is the "
    "frequency of an item). These were the best of those tried on two sets of newsgroups, with the groups in view, so that "
    "the newsgroups are no blind test of them; no fit sees a label, and no start does. Four groups: those of the newsgroups "
    "above, whole documents, 450 of each, the 1,000 most frequent words, 1,000 sweeps. All groups: the training part, all "
    "words, 200 sweeps, one seed, and memberships of the test part by folding in.\n\nWords were first counted as often as "
    "they occur. The most probable clusters, which the search for a start finds, are then other ones in some seeds: one "
    "cluster is for messages that repeat their words, and two groups are one. For the model every occurrence is news, but a "
    "word that has been used is likely to be used again, whatever a message is about; the longest twentieth of the messages "
    "has about 45 % of all occurrences. Each word once also predicts the words of left-out messages better, in other groups "
    "and without labels (`python benchmarks/defaults.py --bags`). It was tried after the results with counts had been seen; "
    "both are here, and LDA gets the same words.",
    files=(recipes.FILE, COUNTS),
    full={
        "fetch": True,
        "size": 450,
        "words": 1000,
        "n_iter": 1000,
        "n_chains": 4,
        "lda_iter": 200,
        "all_seeds": 1,
        "all_clusters": [20, 110],
        "all_iter": 200,
        "all_chains": 2,
    },
    quick={
        "fetch": False,
        "size": 100,
        "words": 300,
        "n_iter": 100,
        "n_chains": 2,
        "lda_iter": 50,
        "all_seeds": 0,
        "all_clusters": [],
        "all_iter": 0,
        "all_chains": 0,
    },
    source=source,
    run=run,
    rows=rows,
    figures=figures,
    left_out=newsgroups.left_out,
)
