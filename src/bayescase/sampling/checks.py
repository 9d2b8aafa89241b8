"""Checks of what a user gives, one clear sentence each; and of what a file holds."""

import math
import numbers
import os
import warnings
from collections.abc import Mapping
from textwrap import shorten

import numpy as np

from ..state import chunks
from .diagnostics import TRACED
from .hyper import LARGEST, LEARNED

STARTS = ("seeded", "cases", "cells")
MIXED = ("seeded", "cases", "seeded", "seeded")  # of the chains 0, 1, 2, 3, and so on from the first


def is_int(value):
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def is_auto(value):
    return isinstance(value, str) and value == "auto"


def is_learned(value):
    return isinstance(value, str) and value == "learn"


def is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and math.isfinite(value)


def check_parameters(model):
    for name in ("n_clusters", "max_clusters", "n_iter", "max_iter", "thin", "n_chains"):
        value, either = getattr(model, name), "'auto' or " if name in ("n_clusters", "n_iter") else ""
        if not (is_int(value) and value >= 1) and not (either and is_auto(value)):
            raise ValueError(f"{name} must be {either}a whole number of at least 1, not {value!r}.")
    for name, least in (("alpha", "of at least 0"), ("lam", "above 0"), ("c", "of at least 0")):
        value = getattr(model, name)
        if is_learned(value):
            continue
        if not is_real(value) or value < 0 or (value == 0 and name == "lam"):
            raise ValueError(f"{name} must be 'learn' or a number {least}, not {value!r}.")
        if value > LARGEST or 0 < value < 1 / LARGEST:
            raise ValueError(f"{name}={value!r} is beyond what can be computed exactly: use {1 / LARGEST:g} to {LARGEST:g}.")
    if not is_real(model.heat) or not 0 < model.heat <= 1:
        raise ValueError(f"heat must be a number above 0 and at most 1, not {model.heat!r}.")
    if not isinstance(model.sampler, str) or model.sampler not in ("rows", "collapsed"):
        raise ValueError(f"sampler must be 'rows' or 'collapsed', not {model.sampler!r}.")
    if is_auto(model.n_clusters):
        for name in ("pins", "subspace_prior"):
            if getattr(model, name) is not None:
                raise ValueError(f"{name} speaks of single clusters, so n_clusters must be a number, not 'auto'.")
    if not isinstance(model.keep_draws, (bool, np.bool_)):
        raise ValueError(f"keep_draws must be True or False, not {brief(model.keep_draws)}.")
    if model.burn_in is not None and is_auto(model.n_iter):
        raise ValueError(
            f"n_iter='auto' always keeps the second half of the sweeps: leave burn_in=None, not {model.burn_in!r}."
        )
    if model.burn_in is not None and (not is_int(model.burn_in) or not 0 <= model.burn_in < model.n_iter):
        raise ValueError(f"burn_in must be a whole number from 0 to n_iter - 1 = {model.n_iter - 1}, not {model.burn_in!r}.")
    if model.checkpoint is not None:
        check_path(model.checkpoint)
    if model.callback is not None and not callable(model.callback):
        raise ValueError(f"callback must be a function, not {model.callback!r}.")


def check_path(path):
    """A checkpoint that cannot be written should say so before the run, not after it."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"checkpoint must be a path, not {path!r}.")
    if os.path.isdir(path):
        raise ValueError(f"checkpoint={os.fspath(path)!r} is a folder; give the path of a file.")
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ValueError(f"checkpoint={os.fspath(path)!r} cannot be written: there is no folder {folder!r}.")


def numbers_of(values, shapes, what):
    """An array of one of the shapes, which have a description each, or one clear sentence."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{what} must be numbers, not {brief(values)}.") from None
    if array.shape not in shapes:
        raise ValueError(f"{what} has shape {array.shape}; it must be {' or '.join(shapes.values())}.")
    return array


def brief(value):
    """A value in a sentence."""
    return shorten(repr(value), 60, placeholder=" …")


def check_q(q, subspace_prior, S, P):
    """(q, where it is to be learned), both (S, P)."""
    if isinstance(q, str) and not is_learned(q):
        raise ValueError(f"q must be 'learn', a number between 0 and 1, or one per feature, not {q!r}.")
    values = np.full((S, P), 0.5)
    if not is_learned(q):
        values[:] = numbers_of(q, {(): "one number", (P,): f"one per feature ({P})"}, "q")
        if not ((values > 0) & (values < 1)).all():
            raise ValueError(f"q must lie strictly between 0 and 1, not {brief(q)}.")
    free = np.full((S, P), is_learned(q))
    if subspace_prior is not None:
        given = numbers_of(subspace_prior, {(S, P): f"one number per cluster and feature, ({S}, {P})"}, "subspace_prior")
        own = ~np.isnan(given)
        if not ((given[own] > 0) & (given[own] < 1)).all():
            raise ValueError(
                "subspace_prior must lie strictly between 0 and 1, or be NaN where q holds; use pins for certainty."
            )
        values[own], free[own] = given[own], False
    if is_learned(q) and not free.any():
        raise ValueError("q='learn' has nothing to learn: subspace_prior gives every feature of every cluster a number.")
    return values, free


def check_start(init, N, S, n_chains):
    """The kind of start of each chain, as a tuple, or labels."""
    kinds = (init,) if isinstance(init, str) else np.asarray(init).tolist()
    if isinstance(kinds, (list, tuple)) and len(kinds) and all(isinstance(kind, str) for kind in kinds):
        wrong = [kind for kind in kinds if kind not in STARTS and (kind != "mixed" or not isinstance(init, str))]
        if wrong:
            raise ValueError(
                f"init must be 'seeded', 'cases', 'cells' or 'mixed', one of the first three for each chain, or an array of "
                f"labels, not {wrong[0]!r}."
            )
        if isinstance(init, str):
            return tuple(MIXED[c % len(MIXED)] if init == "mixed" else init for c in range(n_chains))
        if len(kinds) != n_chains:
            raise ValueError(f"init names {len(kinds)} starts, but n_chains={n_chains}: give one for each chain.")
        return tuple(kinds)
    labels = np.asarray(init)
    if labels.shape != (N,):
        raise ValueError(f"init has labels of shape {labels.shape}, but there are {N} cases: give one label per case.")
    if labels.dtype.kind not in "iu" or labels.min() < -1 or labels.max() >= S:
        raise ValueError(f"The labels in init must be whole numbers from 0 to n_clusters - 1 = {S - 1}, or -1 for unknown.")
    return labels.astype(np.int64)


def check_prototype_prior(weights, M, S, auto):
    """Weights of the candidates, (M, 1) or (M, S), or None if all are equal."""
    if weights is None:
        return None
    shapes = {(M,): f"one number per candidate ({M})", (S, M): f"per cluster and candidate, ({S}, {M})"}
    if auto:
        del shapes[S, M]
    values = numbers_of(weights, shapes, "prototype_prior").reshape(-1, M).T
    if not np.isfinite(values).all() or (values < 0).any() or not values.any(axis=0).all():
        raise ValueError("prototype_prior must be finite, at least 0, and not all 0 for any cluster.")
    return values / values.max(axis=0)  # so that their sum stays finite


def check_pins(pins, weights, S, N, M, encoding):
    """What is held fixed, as (weights, z_held, omega_held); a pinned prototype is one of weight 1 among weights 0."""
    if pins is None:
        return weights, None, None
    if not isinstance(pins, Mapping) or set(pins) - {"prototypes", "subspaces", "cases"}:
        raise ValueError("pins must be a mapping with some of the keys 'prototypes', 'subspaces' and 'cases'.")
    parts = {name: {} if pins.get(name) is None else pins[name] for name in ("prototypes", "subspaces", "cases")}
    for name, part in parts.items():
        if not isinstance(part, Mapping):
            raise ValueError(f"pins[{name!r}] must be a mapping, not {brief(part)}.")
    if parts["prototypes"]:
        weights = np.repeat(
            np.ones((M, 1)) if weights is None else weights, S // (1 if weights is None else weights.shape[1]), axis=1
        )
        for s, m in parts["prototypes"].items():
            index_of(s, S, "pins['prototypes']", "cluster")
            weights[:, s] = np.arange(M) == index_of(m, M, "pins['prototypes']", "candidate")
    z_held = np.full(N, -1) if parts["cases"] else None
    for i, s in parts["cases"].items():
        z_held[index_of(i, N, "pins['cases']", "case")] = index_of(s, S, "pins['cases']", "cluster")
    omega_held = np.full((S, len(encoding.features)), -1) if parts["subspaces"] else None
    for s, of in parts["subspaces"].items():
        index_of(s, S, "pins['subspaces']", "cluster")
        if not isinstance(of, Mapping):
            raise ValueError(f"pins['subspaces'][{s!r}] must be a mapping from features to True or False, not {brief(of)}.")
        for key, on in of.items():
            if not isinstance(on, (bool, np.bool_)):
                raise ValueError(f"pins['subspaces'][{s!r}][{key!r}] must be True or False, not {on!r}.")
            j = encoding.find(key, f"pins['subspaces'][{s!r}]")
            if omega_held[s, j] >= 0:
                raise ValueError(f"pins['subspaces'][{s!r}] has the feature {key!r} twice, by name and by position.")
            omega_held[s, j] = on
    return weights, z_held, omega_held


def index_of(value, n, where, what):
    if not is_int(value) or not 0 <= value < n:
        raise ValueError(f"{where} names the {what} {value!r}; there are {n}, counted from 0.")
    return int(value)


def check_names(names, M):
    """Names of the rows of the catalogue, or None."""
    if names is None:
        return None
    names = list(names)
    if len(names) != M:
        raise ValueError(f"names has {len(names)} entries, but the catalogue has {M} rows: give one name each.")
    return [str(name) for name in names]


def check_cluster(model, s):
    if not is_int(s) or not 0 <= s < model.n_clusters_:
        raise ValueError(f"There is no cluster {s!r}: the model has {model.n_clusters_}, counted from 0.")


def check_columns(model, table):
    """As scikit-learn does: names on one side only are a warning, another number of columns without names is an error."""
    name, wanted = type(model).__name__, model._encoding.wanted
    if wanted.named and table.names:
        return  # matched by name
    if len(table.columns) != wanted.width:
        raise ValueError(f"X has {len(table.columns)} features, but {name} is expecting {wanted.width} features as input.")
    if wanted.named:
        warnings.warn(f"X does not have valid feature names, but {name} was fitted with feature names", stacklevel=4)
    elif table.names:
        warnings.warn(f"X has feature names, but {name} was fitted without feature names", stacklevel=4)


def check_fitted(header, encoding, data, hyper, posterior, trace, draws):
    """Raise unless the parts of a file fit together: compiled code trusts shapes and codes."""
    (N, P), M, S, V = data.x.shape, len(data.candidates), len(hyper.beta), int(encoding.offset[-1])
    labels = posterior["relabel"].shape[1]  # more than clusters, if their number was to be found
    (C, T), K = trace["log_joint"].shape, len(data.k_idx)

    def need(true, what):
        if not true:
            raise ValueError(what)

    def whole(array, shape, low, high):
        need(array.dtype.kind in "iu" and fits(array.shape, shape), "shape")
        need(array.size > 0 and array.min() >= low and array.max() < high, "codes")

    def real(array, shape):
        need(array.dtype.kind in "fb" and fits(array.shape, shape), "shape")

    need(len(encoding.features) == P, "features")
    need(set(TRACED) <= set(trace) <= {*TRACED, *LEARNED, "clusters_in_use"}, "traces")
    need(np.array_equal(data.offset, encoding.offset) and data.offset.dtype == np.int64, "offsets")
    need(is_int(header["seed"]) and 0 <= header["seed"] < 2**63, "seed")
    names = header.get("case_names")
    need(names is None or (isinstance(names, list) and len(names) == M and all(isinstance(n, str) for n in names)), "names")
    first, end = header["kept"]
    need(is_int(first) and is_int(end) and is_int(header["thin"]), "kept sweeps")
    need(0 <= first < end <= T and header["thin"] > 0, "kept sweeps")
    need(all(isinstance(value, float) for value in (hyper.alpha, hyper.lam, hyper.c, hyper.gamma)), "hyperparameters")
    need(hyper.alpha >= 0 and hyper.lam > 0 and hyper.c >= 0 and (hyper.q > 0).all() and (hyper.q < 1).all(), "range")
    whole(data.x, (N, P), -1, V)
    whole(data.candidates, (M, P), -1, V)
    whole(data.k_ptr, (V + 1,), 0, K + 1)
    whole(data.k_idx, (K,), 0, V)
    whole(posterior["p"], (None, None, S), 0, M)
    whole(posterior["relabel"], (C, labels), 0, labels)
    real(data.log_weight, (M, 1 if data.log_weight.shape[1] == 1 else labels))
    need(labels >= S and (posterior["prior"] >= 0).all() and posterior["prior"].any(axis=1).all(), "labels")
    for array, shape in (
        (data.k_val, (K,)),
        (hyper.beta, (S,)),
        (hyper.q, (S, P)),
        (posterior["memberships"], (N, S)),
        (posterior["values"], (V, S)),
        (posterior["chance"], (S, P)),
        (posterior["tables"], (None, V, S)),
        (posterior["prior"], (len(posterior["tables"]), S)),
        (posterior["overlap"], (C,)),
        *((value, (C, T)) for value in trace.values()),
    ):
        real(array, shape)
    if draws:
        D = len(range(first, end, header["thin"]))
        whole(draws["z"], (C, D, N, P), 0, labels)
        whole(draws["p"], (C, D, labels), 0, M)
        real(draws["omega"], (C, D, labels, P))
        real(draws["log_joint"], (C, D))


def fits(shape, wanted):
    return len(shape) == len(wanted) and all(n > 0 and want in (n, None) for n, want in zip(shape, wanted, strict=True))


def warn_empty_rows(x):
    empty = np.concatenate([rows.start + np.flatnonzero((x[rows] < 0).all(axis=1)) for rows in chunks(*x.shape)])
    if len(empty):
        shown = ", ".join(str(i) for i in empty[:5]) + (f" and {len(empty) - 5} more" if len(empty) > 5 else "")
        some = "Row" if len(empty) == 1 else "Rows"
        warnings.warn(
            f"{some} {shown} {'has' if len(empty) == 1 else 'have'} no value at all; every cluster is equally likely there.",
            stacklevel=3,
        )
