"""BayesianCaseClassifier: labels from memberships, and the prototypes behind each prediction."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone, is_classifier
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils import Tags, check_array, column_or_1d, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import predicting
from .errors import Advice, ParameterError, ParameterTypeError, Setting
from .estimator import BayesianCaseModel
from .explaining.evidence import ClusterEvidence, PredictionExplanation
from .explaining.tree import TOLERANCE
from .explaining.view import view_of
from .reading.tables import TableLike, is_missing, read

Method = TypeVar("Method", bound=Callable[..., Any])
MEMBERSHIPS, PROTOTYPE = Setting("by", "memberships"), Setting("by", "prototype")


def labels_by_prototype(estimator: BayesianCaseClassifier) -> bool:
    return estimator.by == "prototype"


def if_offered(method: str) -> Callable[[Method], Method]:
    """Offer a method only if the classifier has it: the fitted classifier, or else the one that `fit` will clone."""

    def check(estimator: BayesianCaseClassifier) -> bool:
        if labels_by_prototype(estimator):
            return method == "predict_proba"
        fitted = getattr(estimator, "classifier_", None)
        return hasattr(choose(estimator.classifier, default_classifier) if fitted is None else fitted, method)

    return available_if(check)


def choose(part: Any, default: Callable[[], Any]) -> Any:
    """`part or default()` would ask for the length of a forest or a pipeline."""
    return default() if part is None else part


def default_classifier() -> LinearSVC:
    """The paper's linear SVM.

    LinearSVC, not SVC(kernel="linear"): it has one weight per label and cluster, which an explanation can show (SVC has one
    per pair of labels), and its time grows with the number of cases, not with its square. The primal problem is small, since
    there are never more clusters than cases, and needs no random numbers.
    """
    return LinearSVC(dual=False)


class BayesianCaseClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier on the clusters of a Bayesian Case Model, which explains its predictions by prototypes.

    The clusters are found without the labels. With ``by="memberships"``, the paper's recipe, the memberships of a case (π in
    the paper) are the features of a classifier. With ``by="prototype"`` a case takes the label of its prototype, as in the
    paper's unsupervised accuracy.

    Parameters
    ----------
    case_model : BayesianCaseModel, default=None
        The model that finds clusters and memberships; ``BayesianCaseModel()`` if None.
    classifier : scikit-learn classifier, default=None
        What predicts labels from memberships; a linear SVM, ``LinearSVC(dual=False)``, if None. Not used, and so not allowed,
        with ``by="prototype"``.
    by : {"memberships", "prototype"}, default="memberships"
        "prototype" gives each cluster the label of the case that is its prototype; if several cases tie for prototype, the
        label most of them have. The probability of a label is the sum of the memberships of its clusters, and the most
        probable label is predicted. That is the label of the case's own cluster wherever one cluster has more than half of
        the case.

    Attributes
    ----------
    case_model_ : BayesianCaseModel
        The fitted case model.
    classifier_ : classifier or None
        The fitted classifier; None with ``by="prototype"``.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    prototype_labels_ : ndarray of shape (n_clusters,) or None
        The label of each cluster's prototype; None if `fit` got candidates, which have no labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has names.

    Examples
    --------
    >>> from bayescase import BayesianCaseClassifier, BayesianCaseModel, load_recipes
    >>> recipes = load_recipes()
    >>> model = BayesianCaseModel(n_clusters=5, random_state=0)
    >>> classifier = BayesianCaseClassifier(model, by="prototype").fit(recipes.table, recipes.families)
    >>> classifier.score(recipes.table, recipes.families) > 0.8
    True
    """

    def __init__(
        self,
        case_model: BayesianCaseModel | None = None,
        classifier: BaseEstimator | None = None,
        *,
        by: Literal["memberships", "prototype"] = "memberships",
    ):
        self.case_model = case_model
        self.classifier = classifier
        self.by = by

    def fit(self, X: TableLike, y: ArrayLike, **fit_params: Any) -> BayesianCaseClassifier:
        """Find clusters in X, then learn labels from them.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `BayesianCaseModel.fit`.
        y : array of shape (n_samples,)
            A label for each case, of any type that can be sorted.
        **fit_params : dict
            What else `BayesianCaseModel.fit` takes: candidates, pins, case_names and so on.

        Returns
        -------
        BayesianCaseClassifier
            The classifier itself.
        """
        case_model, classifier = check_parts(self, fit_params)
        n_cases = read(X).n_cases
        y = check_labels(y, n_cases)
        case_model = clone(case_model).fit(X, **fit_params)
        return self._learn(case_model, classifier, y)

    def _learn(self, case_model: BayesianCaseModel, classifier: Any, y: np.ndarray) -> BayesianCaseClassifier:
        """Learn the labels of the cases of a fitted model."""
        classes = np.unique(y)
        if classifier is not None:
            fitted = case_model.fitted_
            memberships = predicting.memberships(fitted, fitted.data.cases, effective_n_jobs(case_model.n_jobs))
            classifier = clone(classifier).fit(memberships, y)
            classes = classifier.classes_
        else:
            warn_arbitrary(case_model)
        self.case_model_, self.classifier_, self.classes_, self._y = case_model, classifier, classes, y
        self.prototype_labels_: Any = prototype_labels(case_model, y) if case_model.fitted_.data.own_cases else None
        self.n_features_in_ = case_model.n_features_in_
        if hasattr(case_model, "feature_names_in_"):
            self.feature_names_in_ = case_model.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def predict(self, X: TableLike) -> np.ndarray:
        """The label of each case.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `BayesianCaseModel.transform`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels of `classes_`.
        """
        return self._labels(self._memberships(X))

    @if_offered("predict_proba")
    def predict_proba(self, X: TableLike) -> np.ndarray:
        """The probability of each label, in the order of `classes_`: memberships summed by label, or the classifier's.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `BayesianCaseModel.transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Each row sums to 1.
        """
        memberships = self._memberships(X)
        return self._summed(memberships) if self.classifier_ is None else self.classifier_.predict_proba(memberships)

    @if_offered("decision_function")
    def decision_function(self, X: TableLike) -> np.ndarray:
        """The classifier's decision function of the memberships.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `BayesianCaseModel.transform`.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The first for two labels, the second for more.
        """
        memberships = self._memberships(X)
        return self.classifier_.decision_function(memberships)

    def name_features(self, names: Sequence[str]) -> BayesianCaseClassifier:
        """Give names to the columns of an X that had none, as in `BayesianCaseModel.name_features`.

        Parameters
        ----------
        names : sequence of str
            A name for each column of X.

        Returns
        -------
        BayesianCaseClassifier
            The classifier itself.

        Examples
        --------
        >>> import numpy as np
        >>> from bayescase import BayesianCaseClassifier, BayesianCaseModel
        >>> X, y = np.array([[0, 1], [1, 0]] * 4), ["left", "right"] * 4
        >>> classifier = BayesianCaseClassifier(BayesianCaseModel(2, n_iter=40, n_chains=1, random_state=0)).fit(X, y)
        >>> classifier.name_features(["colour", "size"]).case_model_.feature_types_
        {'colour': 'integer', 'size': 'integer'}
        """
        check_is_fitted(self)
        self.feature_names_in_ = self.case_model_.name_features(names).feature_names_in_
        return self

    def fold(self, n_clusters: int | None = None, *, tolerance: float = TOLERANCE) -> BayesianCaseClassifier:
        """The same classifier with fewer clusters, those joined that lose least, as in `BayesianCaseModel.fold`.

        The clusters are not fitted anew; the labels are learned anew from the memberships in the folded ones, or are those of
        their prototypes. Predictions may change: `score` says what the shorter explanation costs.

        Parameters
        ----------
        n_clusters : int, default=None
            How many clusters; as many as the tolerance leaves if None.
        tolerance : float, default=0.07
            Clusters are one if that makes their cases less probable by no more than this share; that two features go together
            in them does not count.

        Returns
        -------
        BayesianCaseClassifier
            A new one with the same parameters; this one stays as it is.

        Examples
        --------
        >>> from bayescase import BayesianCaseClassifier, BayesianCaseModel, load_recipes
        >>> recipes = load_recipes()
        >>> classifier = BayesianCaseClassifier(BayesianCaseModel(5, n_iter=200, random_state=0))
        >>> classifier.fit(recipes.table, recipes.families).fold(3).case_model_.n_clusters_
        3
        """
        check_is_fitted(self)
        fewer = type(self)(**self.get_params(deep=False))
        return fewer._learn(self.case_model_.fold(n_clusters, tolerance=tolerance), self.classifier_, self._y)

    def explain(self, X: TableLike) -> list[PredictionExplanation]:
        """The prototypes behind the prediction of each case.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            As for `BayesianCaseModel.transform`.

        Returns
        -------
        list of PredictionExplanation
            One per case; print it to read it. For each cluster, from the largest membership to the smallest: the prototype, its
            label, its values on its key features (those of the subspace), whether the case agrees, and, if the classifier is
            linear, what the membership contributes to the decision for the predicted label.

        Examples
        --------
        >>> from bayescase import BayesianCaseClassifier, BayesianCaseModel, load_recipes
        >>> recipes = load_recipes()
        >>> classifier = BayesianCaseClassifier(BayesianCaseModel(5, n_iter=40, n_chains=1, random_state=0))
        >>> found = classifier.fit(recipes.table, recipes.families).explain({"ingredients": [["rum", "lime", "ice"]]})
        >>> str(found[0].label)
        'punch'
        """
        memberships = self._memberships(X)
        view = view_of(self.case_model_.fitted_)
        cases = view.fitted.encoding.encode(read(X))[0]
        own = self.prototype_labels_
        labels = [None] * view.fitted.n_clusters if own is None else own.tolist()
        parts = [ClusterEvidence(view, s, cases, label) for s, label in enumerate(labels)]
        weights, known, explanations = linear_weights(self.classifier_, len(self.classes_)), cases.known, []
        for i, label in enumerate(self._labels(memberships).tolist()):
            coef, intercept = (None, None) if weights is None else weights[int(np.flatnonzero(self.classes_ == label)[0])]
            evidence = [
                parts[s].of_case(i, float(memberships[i, s]), None if coef is None else float(coef[s] * memberships[i, s]))
                for s in np.argsort(-memberships[i], kind="stable").tolist()
            ]
            explanations.append(PredictionExplanation(label, tuple(evidence), intercept, bool(known[i])))
        return explanations

    def _memberships(self, X: TableLike) -> np.ndarray:
        check_is_fitted(self)
        return self.case_model_.predict_proba(X)

    def _labels(self, memberships: np.ndarray) -> np.ndarray:
        if self.classifier_ is None:
            return self.classes_[self._summed(memberships).argmax(axis=1)]
        return self.classifier_.predict(memberships)

    def _summed(self, memberships: np.ndarray) -> np.ndarray:
        return memberships @ (self.prototype_labels_[:, None] == self.classes_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(choose(self.case_model, BayesianCaseModel)).input_tags
        if labels_by_prototype(self):
            tags.classifier_tags.poor_score = True  # clusters found without labels need not be those of the labels
        elif self.classifier is not None:
            tags.classifier_tags = get_tags(self.classifier).classifier_tags or tags.classifier_tags
        return tags


def prototype_labels(model: BayesianCaseModel, y: np.ndarray) -> np.ndarray:
    """The label of each cluster's prototype: that of most of the tied cases; if labels tie, too, the first-named case's."""
    ranking = model.fitted_.prototype_ranking
    labels = [Counter(y[list(ranked[0].ties)].tolist()).most_common(1)[0][0] for ranked in ranking]
    return np.array(labels, dtype=y.dtype)


def warn_arbitrary(model: BayesianCaseModel) -> None:
    """Without a subspace every case is as good a prototype, so its label says nothing."""
    arbitrary = [str(s) for s in np.flatnonzero(~model.subspaces_.any(axis=1))]
    if arbitrary:
        some = f"Cluster {arbitrary[0]} has" if len(arbitrary) == 1 else f"Clusters {', '.join(arbitrary)} have"
        warnings.warn(
            f"{some} no key feature, so which case is the prototype, and with it the label, is arbitrary; a smaller c may "
            "help, or by='memberships'.",
            stacklevel=4,
        )


def linear_weights(classifier: Any, n_classes: int) -> list[tuple[np.ndarray, float]] | None:
    """For each label (weights of the memberships, intercept) of its decision; None unless there is one decision per label."""
    if not hasattr(classifier, "coef_") or (isinstance(classifier, (SVC, NuSVC)) and n_classes > 2):  # a decision per pair
        return None
    coef, intercept = np.asarray(classifier.coef_), np.ravel(classifier.intercept_)
    if coef.ndim != 2 or n_classes < 2:
        return None
    if len(coef) == 1 and n_classes == 2:  # the decision for the second label
        coef, intercept = np.vstack([-coef, coef]), np.array([-intercept[0], intercept[0]])
    return [(row, float(b)) for row, b in zip(coef, np.broadcast_to(intercept, len(coef)), strict=True)]


# --- checks ---------------------------------------------------------------------------------------------------------------


def check_parts(estimator: BayesianCaseClassifier, fit_params: Mapping[str, Any]) -> tuple[BayesianCaseModel, Any]:
    """(case model, classifier or None), neither of them cloned yet."""
    if estimator.by not in ("memberships", "prototype"):
        raise ParameterError(
            "{parameter} must be 'memberships' or 'prototype', not {value!r}.", parameter="by", value=estimator.by
        )
    model = choose(estimator.case_model, BayesianCaseModel)
    if not isinstance(model, BayesianCaseModel):
        raise ParameterTypeError("{parameter} must be a BayesianCaseModel, not {value!r}.", parameter="case_model", value=model)
    if estimator.classifier is not None and not (
        isinstance(estimator.classifier, BaseEstimator) and is_classifier(estimator.classifier)
    ):
        raise ParameterTypeError(
            "{parameter} must be a scikit-learn classifier, not {value!r}.", parameter="classifier", value=estimator.classifier
        )
    if estimator.by == "memberships":
        return model, choose(estimator.classifier, default_classifier)
    if estimator.classifier is not None:
        raise ParameterError(
            "{parameter} uses no classifier.",
            Advice("leave {} out", Setting("classifier")),
            Advice("use {}", MEMBERSHIPS),
            parameter=PROTOTYPE,
        )
    if fit_params.get("candidates") is not None:
        raise ParameterError(
            "{parameter} needs prototypes with labels, but candidates have none.",
            Advice("give {} to choose among the cases of X instead", Setting("prototype_prior")),
            Advice("use {}", MEMBERSHIPS),
            parameter=PROTOTYPE,
        )
    return model, None


def check_labels(y: Any, n_cases: int) -> np.ndarray:
    if y is None:
        raise ParameterError("BayesianCaseClassifier requires y to be passed, but the target y is None.", parameter="y")
    y = column_or_1d(y, warn=True)
    if y.dtype == object and any(is_missing(label) for label in y):
        raise ParameterError("Input y contains NaN or None: give every case a label.", parameter="y")
    check_array(y, ensure_2d=False, dtype=None, input_name="y")
    check_classification_targets(y)
    if len(y) != n_cases:
        raise ParameterError(
            "X has {n} cases, but y has {value} labels: give one label per case.", parameter="y", n=n_cases, value=len(y)
        )
    return y
