"""What tests of many rooms do."""

import io
import json
import zipfile

import numpy as np
import pytest

from bayescase import BayesianCaseModel

OF_FIT = ("candidates", "pins", "prototype_prior", "case_names", "callback", "checkpoint")


def split_settings(settings):
    """(parameters of the model, parameters of its fit); an `init` that is no name of a start is labels."""
    of_fit = {name: value for name, value in settings.items() if name in OF_FIT}
    rest = {name: value for name, value in settings.items() if name not in OF_FIT}
    init = rest.get("init", "mixed")
    starts = np.ravel(np.asarray(init, dtype=object))
    if init is not None and not all(isinstance(start, str) for start in starts):
        of_fit["init"] = rest.pop("init")
    return rest, of_fit


def fit_model(X, n_clusters=8, **settings):
    """A fitted model, whichever settings belong to the model and to the fit."""
    of_model, of_fit = split_settings(settings)
    return BayesianCaseModel(n_clusters, **of_model).fit(X, **of_fit)


def in_columns(bags):
    """A column per item: has the case it?"""
    return {name: np.array([name in items for items in bags]) for name in sorted(set().union(*bags))}


def check_refused(X, message, n_clusters=8, **settings):
    """The fit is refused in one sentence, and the model stays unfitted."""
    of_model, of_fit = split_settings(settings)
    model = BayesianCaseModel(n_clusters, **of_model)
    with pytest.raises(ValueError, match=message) as raised:
        model.fit(X, **of_fit)
    assert "\n" not in str(raised.value)
    assert str(raised.value).endswith(".")
    assert not [name for name in vars(model) if name.endswith("_")]


def rewritten(raw, header=None, arrays=None, drop=()):
    """A model file with another header, or with some of its arrays changed or left out; checksums are right.

    The header is the whole text, or what to replace, or a function that changes it; so is an array.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        found = json.loads(old.read("bayescase.json"))
        if callable(header):
            header(found)
        text = header if isinstance(header, (str, bytes)) else json.dumps(found if callable(header) else found | (header or {}))
        new.writestr("bayescase.json", text)
        for name in old.namelist():
            key = name.removesuffix(".npy")
            if name == "bayescase.json" or key in drop:
                continue
            content = old.read(name)
            if key in (arrays or {}):
                array = np.lib.format.read_array(io.BytesIO(content))
                changed = arrays[key](array) if callable(arrays[key]) else arrays[key]
                content = changed if isinstance(changed, bytes) else npy(changed)
            new.writestr(name, content)
    return out.getvalue()


def npy(array, allow_pickle=False):
    """The bytes of an array in a file."""
    out = io.BytesIO()
    np.lib.format.write_array(out, np.asanyarray(array), allow_pickle=allow_pickle)
    return out.getvalue()
