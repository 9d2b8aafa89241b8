"""The draws of a run as results: means of the hyperparameters, and every kept draw."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..state import Data, Hyper
from .posterior import AGREE, Posterior
from .problem import Problem
from .run import Draws


class KeptDraws(NamedTuple):
    """Every kept draw, labels aligned: the first axis is the chain, the second the draw.

    With n_clusters="auto" S is `max_clusters`; the labels from `n_clusters_` on are the main one of no case.
    """

    z: np.ndarray  # (chains, draws, N, P) cluster of each cell; 0 where it is missing; (chains, draws, cells) with bags
    p: np.ndarray  # (chains, draws, S) row of the catalogue
    omega: np.ndarray  # (chains, draws, S, columns)
    log_joint: np.ndarray  # (chains, draws)


def mean_hyper(problem: Problem, posterior: Posterior, draws: Draws) -> Hyper:
    """The hyperparameters, with posterior means for what was learned, for the clusters in use."""
    S, learn, hyper = posterior.memberships.shape[1], problem.learn, problem.hyper
    pooled = posterior.overlap >= AGREE
    mean = {name: float(draws.trace[name][pooled, draws.kept.first : draws.kept.end].mean()) for name in learn.names}
    q = np.where(learn.q_free, mean.pop("q", 0.5), hyper.q)[:S]
    beta = posterior.prior.mean(axis=0)
    return hyper._replace(**mean, beta=beta / beta.sum(), q=q)


def kept_draws(draws: Draws, relabel: np.ndarray, data: Data) -> KeptDraws:
    """Every kept draw, labels as in the posterior."""
    chains = [(chain.kept, order) for chain, order in zip(draws.chains, relabel, strict=True)]
    z, missing = [], data.x < 0 if data.bags is None else data.cells.codes < 0
    for kept, order in chains:
        labels = kept.of_draws("z")
        z.append(np.where(missing, 0, np.argsort(order).astype(labels.dtype)[labels]))
    return KeptDraws(
        z=np.stack(z),
        p=np.stack([kept.of_draws("p")[:, order] for kept, order in chains]),
        omega=np.stack([kept.of_draws("omega")[:, order] for kept, order in chains]),
        log_joint=np.stack([kept.of_draws("log_joint") for kept, _ in chains]),
    )
