"""CaseEncoder: the public transformer from any table to integer codes, and back."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..errors import BayescaseError, ParameterError, ParameterTypeError, Setting, TableWarning
from ..state import Codes
from .bags import from_cells, to_cells
from .encoding import Encoding, FeatureTable, describe
from .features import Feature
from .rules import Asked
from .tables import Marker, Table, TableLike, check_columns, holds_items, read

ColumnKey: TypeAlias = str | int  # name or position
OneBins: TypeAlias = int | tuple[str, int] | Sequence[float]


class CaseEncoder(TransformerMixin, BaseEstimator):
    """Read any table as features with a few values each, and give each value an integer code.

    `BayesianCaseModel` reads its data with one; by itself it prepares mixed tables for any method that takes integers. Numbers
    are cut into intervals, a few whole numbers and all words are values as they are, and missing cells stay missing. Lists,
    texts and sparse matrices are bags: a case has any number of their items, and what it lacks is no value.

    Parameters
    ----------
    bins : int, tuple, list or mapping, default=5
        How numbers other than a few integers are cut into intervals: into n at quantiles (n or ("quantile", n)), into n of
        equal width (("uniform", n)), or at given edges ([18, 65]: below 18, 18 to 65, 65 or more); or a mapping from columns
        (name or position) to any of these, with 5 quantile bins for the columns that are not in it. A column named here is
        read as numbers, even if it holds few integers or words like "3.5".
    feature_types : str or mapping, default=None
        How columns (name or position) are read, where the guess shown by `feature_types_` is wrong: "category", "ordered"
        (categories on a scale), "integer" (each one a value), "number" (binned), "count" (see `max_count`), "bag" (its cells
        are lists of items), or "drop", which leaves the column out. One word is for all columns.
    missing_values : str, number or list of these, default=None
        Values such as "?" or -1 that mean missing, beside NaN, None, NA and null.
    top_values : int or mapping, default=None
        Keep this many of the most frequent values of a category and call the rest "other", also values first seen in new
        cases; for all categories, or a mapping from columns (name or position) to numbers. A column named here is read as
        categories.
    max_count : int, default=1
        A column of type "count" becomes absent (zero) and present (anything else), at the default 1; with a larger number it
        must hold counts, and the values are 0, 1, …, with the last one for this many or more. The columns of a sparse matrix
        are then of this type unless `feature_types` says otherwise.
    bags : "all" or mapping, default=None
        Which columns are bags, beside sparse matrices and columns of lists. "all": all columns are items of one bag, each
        with its counts, zeros and ones, or booleans. A mapping has the name of a new bag and the columns (names or positions)
        that are its items, {"ingredients": ["onion", "garlic"]}, or a column of words and what separates its items,
        {"tags": ";"}.
    texts : column or list of columns, default=None
        Columns (name or position) of texts. Each is a bag of its words, as scikit-learn's CountVectorizer finds them: in lower
        case, of two or more letters or digits; each word once, however often it occurs. Words of new texts that the fit did
        not have are passed over.
    stop_words : "english" or list of str, default=None
        Words of texts that are no items.
    min_cases : int or mapping, default=1
        Items in fewer cases are left out of their bag, with a note of how many; for all bags, or a mapping from bags to
        numbers.
    feature_names : sequence of str, default=None
        Names for the columns of an X that has none, such as `vectorizer.get_feature_names_out()` for a sparse matrix of counts.

    Attributes
    ----------
    features_ : tuple of Feature
        The features, in order: name, type, values, and the edges of intervals.
    feature_values_ : list of tuples
        The values of each feature, in the order of their codes; intervals for binned numbers.
    feature_types_ : dict
        How each feature was read, by name ("x0", "x1", … if X has no names).
    encoding_ : Encoding
        The same features as the samplers use them, with codes that are unique over all features.
    n_features_in_ : int
        Number of columns of X, those that are left out included.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if it has names or `feature_names` gives them.

    See Also
    --------
    BayesianCaseModel : Takes one as its parameter `encoder`.

    Examples
    --------
    >>> from bayescase import CaseEncoder
    >>> cases = {"colour": ["red", "blue", "?", "red"], "age": [3, 40, 70, 20]}
    >>> encoder = CaseEncoder(bins={"age": [18, 65]}, missing_values="?").fit(cases)
    >>> encoder.transform(cases)
    array([[ 1,  0],
           [ 0,  1],
           [-1,  2],
           [ 1,  1]])
    >>> encoder.feature_values_
    [('blue', 'red'), ('below 18', '18 to 64', '65 or more')]
    >>> encoder.inverse_transform([[1, 2]])
    array([['red', '65 or more']], dtype=object)

    Lists are bags:

    >>> recipes = {"ingredients": [["egg", "salt"], ["salt", "rice"], ["egg", "egg", "sugar"]]}
    >>> encoder = CaseEncoder().fit(recipes)
    >>> encoder.get_feature_names_out()
    array(['egg', 'rice', 'salt', 'sugar'], dtype=object)
    >>> encoder.transform(recipes).toarray()
    array([[1, 0, 1, 0],
           [0, 1, 1, 0],
           [2, 0, 0, 1]])
    """

    features_: tuple[Feature, ...]
    feature_values_: list[tuple[Any, ...]]
    feature_types_: dict[str, str]
    encoding_: Encoding
    n_features_in_: int
    feature_names_in_: np.ndarray

    def __init__(
        self,
        bins: OneBins | Mapping[ColumnKey, OneBins] = 5,
        *,
        feature_types: str | Mapping[ColumnKey, str] | None = None,
        missing_values: Marker | Sequence[Marker] | None = None,
        top_values: int | Mapping[ColumnKey, int] | None = None,
        max_count: int = 1,
        bags: str | Mapping[ColumnKey, str | Sequence[ColumnKey]] | None = None,
        texts: ColumnKey | Sequence[ColumnKey] | None = None,
        stop_words: str | Sequence[str] | None = None,
        min_cases: int | Mapping[str, int] = 1,
        feature_names: Sequence[str] | np.ndarray | None = None,
    ):
        self.bins = bins
        self.feature_types = feature_types
        self.missing_values = missing_values
        self.top_values = top_values
        self.max_count = max_count
        self.bags = bags
        self.texts = texts
        self.stop_words = stop_words
        self.min_cases = min_cases
        self.feature_names = feature_names

    def fit(self, X: TableLike, y: object = None) -> CaseEncoder:
        """Learn what the features of a table are.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            A NumPy array, a data frame (pandas, polars, pyarrow), a mapping of columns, or a SciPy sparse matrix. Cells may be
            lists.
        y : None
            Not used.

        Returns
        -------
        CaseEncoder
            The encoder itself, fitted.
        """
        for note in self._learn(read(X)).notes:
            warnings.warn(note, stacklevel=2)
        return self

    def _learn(self, table: Table, catalogue: Table | None = None) -> Encoding:
        """`fit` for a table already read, and a catalogue whose values count too; warns of nothing."""
        return self._take(Encoding.learn(table, Asked(**self.get_params(deep=False)), catalogue))

    def _take(self, encoding: Encoding) -> Encoding:
        """Become the fitted encoder of these features."""
        self.encoding_, self.features_ = encoding, encoding.features
        self.feature_values_ = [feature.values for feature in encoding.features]
        self.feature_types_ = {feature.name: feature.type for feature in encoding.features}
        self.n_features_in_ = encoding.wanted.width
        if encoding.wanted.columns is not None:
            self.feature_names_in_ = np.array(encoding.wanted.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return encoding

    def transform(self, X: TableLike) -> np.ndarray | scipy.sparse.csr_array:
        """Give every cell its code.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            If the encoder was fitted to named columns, those of a table are found by name, in any order and among others; the
            columns of an array count by position.

        Returns
        -------
        ndarray of int, shape (n_samples, n_features_out)
            0, 1, … in the order of `feature_values_`; -1 where a cell is missing or has a value never seen in `fit`. With bags
            it is a SciPy sparse array (CSR) with the columns of `get_feature_names_out`: that of an item has its count, that
            of any other feature its code + 1, and 0 where it is missing.
        """
        check_is_fitted(self)
        encoding = self.encoding_
        x, bags = new_codes(encoding, X, type(self).__name__)
        local = np.where(x < 0, -1, x - encoding.offset[: encoding.n_single])
        if bags is None:
            return local
        counts = from_cells(bags, encoding.first_item, int(encoding.offset[-1]) - encoding.first_item)
        both: scipy.sparse.csr_array = scipy.sparse.hstack([scipy.sparse.csr_array(local + 1), counts], format="csr")
        return both

    def inverse_transform(self, X: ArrayLike | scipy.sparse.sparray | scipy.sparse.spmatrix) -> np.ndarray:
        """Give every code its value.

        Parameters
        ----------
        X : array of int, shape (n_samples, n_features_out)
            Codes as `transform` gives them, sparse or not.

        Returns
        -------
        ndarray of object, shape (n_samples, number of features)
            Values as in `feature_values_`, None where one is missing; of a bag a tuple of the items, each as often as it
            occurs.
        """
        check_is_fitted(self)
        encoding = self.encoding_
        matrix: Any = X if scipy.sparse.issparse(X) else np.asarray(X)
        n, width = encoding.n_single, len(encoding.column_names)
        if matrix.ndim != 2 or matrix.shape[1] != width or matrix.dtype.kind not in "iu":
            raise ParameterError(
                "{parameter} must be whole numbers with a column for each of the {n} features, not {dtype} of shape {shape}.",
                parameter="X",
                n=width,
                dtype=matrix.dtype,
                shape=matrix.shape,
            )
        matrix = scipy.sparse.csr_array(matrix)
        if not encoding.bags:
            return encoding.decode(self._global_codes(matrix.toarray(), missing=-1))
        counts = matrix[:, n:]
        if counts.data.min(initial=0) < 0:
            raise ParameterError("{parameter} has the count {value}.", parameter="X", value=counts.data.min())
        x = self._global_codes(matrix[:, :n].toarray(), missing=0)
        return encoding.decode(x, to_cells([counts], encoding.first_item, encoding.dtype))

    def _global_codes(self, codes: np.ndarray, missing: int) -> np.ndarray:
        """Codes that are unique over all features, from those of each, which begin after `missing`."""
        n = self.encoding_.n_single
        offset, sizes = self.encoding_.offset[:n], np.diff(self.encoding_.offset)[:n]
        wrong = (codes < missing) | (codes > missing + sizes)
        if wrong.any():
            row, j = (int(at[0]) for at in np.nonzero(wrong))
            raise ParameterError(
                "{parameter} has the code {value} for {column!r} in row {row}; its codes go from {missing} to {last}.",
                parameter="X",
                value=codes[row, j],
                column=self.features_[j].name,
                row=row,
                missing=missing,
                last=missing + sizes[j],
            )
        return np.where(codes == missing, -1, codes - missing - 1 + offset)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Name the columns that `transform` gives: those of X that are not left out, and the items of bags.

        An item is called by its own name, or "bag: item" if there are several bags, or a feature of the same name.

        Parameters
        ----------
        input_features : sequence of str, default=None
            Names of the columns of X, for a fit to a table without names.

        Returns
        -------
        ndarray of str, shape (n_features_out,)
            The names.
        """
        check_is_fitted(self)
        wanted = self.encoding_.wanted
        if input_features is None:
            return np.array(self.encoding_.column_names, dtype=object)
        given = np.asarray(input_features, dtype=object)
        if len(given) != wanted.width:
            raise ParameterError(
                "{parameter} should have length equal to number of features ({n}), got {value}.",
                parameter="input_features",
                n=wanted.width,
                value=len(given),
            )
        if wanted.columns is not None and given.tolist() != wanted.columns:
            raise ParameterError("{parameter} is not equal to feature_names_in_.", parameter="input_features")
        return np.array(self.encoding_.named(given.tolist()).column_names, dtype=object)

    def describe_features(self, X: TableLike) -> FeatureTable:
        """Show how columns are read: name, type, number of values, share of missing cells and first values of each.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
            The table of the fit, or one like it.

        Returns
        -------
        FeatureTable
            A tuple with a `FeatureSummary` per feature, which prints as a table.

        Examples
        --------
        >>> from bayescase import CaseEncoder
        >>> table = {"age": [17, 30, 70, 45], "town": ["Bonn", "Ulm", "Bonn", None]}
        >>> print(CaseEncoder(bins={"age": [18, 65]}).fit(table).describe_features(table))
        feature  type      values  missing
        age      number         3     0.0%  below 18, 18 to 64, 65 or more
        town     category       2    25.0%  Bonn, Ulm
        """
        check_is_fitted(self)
        return describe(self.encoding_, new_codes(self.encoding_, X, type(self).__name__))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags


# --- for estimators that read their data with an encoder -----------------------------------------------------------------


def fit_encoder(encoder: Any, table: Table, catalogue: Table | None = None) -> CaseEncoder:
    """A fitted CaseEncoder from an estimator's parameter `encoder`; errors and warnings speak of that parameter."""
    fitted = new_encoder(encoder)
    try:
        notes = fitted._learn(table, catalogue).notes
    except BayescaseError as error:
        raise error.within("encoder") from None
    for note in notes:
        warnings.warn(note.within("encoder"), stacklevel=3)
    return fitted


def new_encoder(encoder: Any) -> CaseEncoder:
    """An encoder to fit: a clone of the one given, or one with the parameters in a mapping."""
    if isinstance(encoder, CaseEncoder):
        copy: CaseEncoder = clone(encoder)
        return copy
    if encoder is not None and not isinstance(encoder, Mapping):
        raise ParameterTypeError(
            "{parameter} must be a CaseEncoder or a mapping of its parameters, not {value!r}.",
            parameter="encoder",
            value=encoder,
        )
    params = {} if encoder is None else dict(encoder)
    known = CaseEncoder().get_params()
    for name in params:
        if name not in known:
            raise ParameterError(
                "{parameter} has no parameter {value!r}; there are {known}.",
                parameter=Setting("encoder"),
                value=name,
                known=", ".join(known),
            )
    return CaseEncoder(**params)


def known_encoder(encoder: Any, encoding: Encoding) -> CaseEncoder:
    """The encoder of features that are known already, from a file."""
    fitted = new_encoder(encoder)
    fitted._take(encoding)
    return fitted


def new_codes(encoding: Encoding, X: TableLike, estimator: str) -> Codes:
    """Global codes of new cases; warns of values never seen. `estimator` is the name of the class that was fitted."""
    table = read(X)
    wanted, _ = encoding.wanted_of(table)
    if wanted.positions:
        check_columns(table, wanted, estimator)
    codes, unseen = encoding.encode(table)
    if unseen:
        warnings.warn(note_on_unseen(unseen, encoding), stacklevel=4)
    return codes


def one_row(case: Mapping[str, Any], encoding: Encoding) -> dict[str, Any]:
    """A case {feature: value} as a table of one row; what is a table already stays."""
    bags = {bag.name for bag in encoding.bags if bag.source == "lists"}
    return {name: value if is_column(value, name in bags) else [value] for name, value in case.items()}


def is_column(value: Any, bag: bool) -> bool:
    """Is it a column of cases? A list of words may also be the items of one case, if the feature is a bag."""
    if isinstance(value, (str, bytes, set, frozenset)) or not hasattr(value, "__len__"):
        return False
    return not bag or (not isinstance(value, dict) and any(map(holds_items, value)))


def note_on_unseen(n: int, encoding: Encoding) -> TableWarning:
    if not encoding.bags:
        cells = "cells have values" if n > 1 else "cell has a value"
        return TableWarning("{n} {cells} never seen in fit; counted as missing.", n=n, cells=cells)
    things = [word + "s" * (n > 1) for word in (["value"] * bool(encoding.n_single) + ["item"])]
    verbs = ("were", "are") if n > 1 else ("was", "is")
    return TableWarning(
        "{n} {things} {was} never seen in fit and {is_} left out.",
        n=n,
        things=" or ".join(things),
        was=verbs[0],
        is_=verbs[1],
    )
