"""What tests of many rooms do."""

import numpy as np

from bayescase import BayesianCaseModel

OF_FIT = ("candidates", "pins", "prototype_prior", "case_names", "callback", "checkpoint")


def split_settings(settings):
    """(parameters of the model, parameters of its fit); an `init` that is no name of a start is labels."""
    of_fit = {name: value for name, value in settings.items() if name in OF_FIT}
    rest = {name: value for name, value in settings.items() if name not in OF_FIT}
    init = rest.get("init", "mixed")
    if not isinstance(init, str) and not all(isinstance(start, str) for start in np.ravel(np.asarray(init, dtype=object))):
        of_fit["init"] = rest.pop("init")
    return rest, of_fit


def fit_model(X, n_clusters=8, **settings):
    """A fitted model, whichever settings belong to the model and to the fit."""
    of_model, of_fit = split_settings(settings)
    return BayesianCaseModel(n_clusters, **of_model).fit(X, **of_fit)
