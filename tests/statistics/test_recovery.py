"""Level 6: planted structure is recovered, and the two samplers agree on moments within their Monte-Carlo error."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from bayescase import BayesianCaseModel, model
from bayescase.kernels.rng import stream
from bayescase.state import make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, same_mean, smallest


def planted(seed=0, N=300, P=12, S=3, V=4):
    """Three clusters that copy their prototype on five features of their own and are arbitrary elsewhere."""
    rng = np.random.default_rng(seed)
    offset = np.arange(P + 1) * V
    omega = np.zeros((S, P), dtype=bool)
    for s in range(S):
        omega[s, (np.arange(5) + 4 * s) % P] = True
    catalogue = offset[:-1] + rng.integers(V, size=(S, P))
    data = make_data(catalogue, offset)
    hyper = make_hyper(S, P, alpha=0.01, lam=1.0, c=50.0, q=0.5)
    drawn = model.simulate(data, hyper, rng, N, p=np.arange(S), omega=omega)
    return drawn, catalogue - offset[:-1], drawn.x - offset[:-1], omega


@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_planted_clusters_prototypes_and_subspaces(sampler):
    drawn, prototypes, X, omega = planted()
    labels = np.array([np.bincount(row).argmax() for row in drawn.z])
    fitted = BayesianCaseModel(3, sampler=sampler, n_iter=300, q=0.5, random_state=0).fit(X)
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    for s in range(3):
        true = np.bincount(labels[fitted.labels_ == s]).argmax()
        on = omega[true]
        assert (fitted.prototype_cases_[s][on] == prototypes[true][on]).all(), "the prototype has the planted values"
        assert fitted.subspaces_[s][on].all()
        assert fitted.subspace_probabilities_[s][on].mean() > 0.9
        # a feature outside the plan may look copied by chance, but not most of them
        assert fitted.subspaces_[s][~on].mean() < 0.5


def test_chance_of_omega_is_calibrated():
    """Over many planted features, P(ω = 1) averages to the share of ω that is 1 (z and p given by a long run at the truth)."""
    said, true = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        P, V, S = 20, 3, 2
        offset = np.arange(P + 1) * V
        catalogue = offset[:-1] + rng.integers(V, size=(S, P))
        hyper = make_hyper(S, P, alpha=0.01, lam=1.0, c=6.0, q=0.4)
        drawn = model.simulate(make_data(catalogue, offset), hyper, rng, 40, p=np.arange(S))
        data = make_data(drawn.x, offset, catalogue)
        chain = Bench(data, hyper, drawn.z.astype(np.uint8))
        chances, labels = [], []
        for t in range(300):
            chain.sweep("rows", stream(seed, t))
            chances.append(chain.state.omega_prob.copy())
            labels.append(chain.state.p.copy())
        chance = np.mean(chances, axis=0)
        if (np.mean(labels, axis=0) == [0, 1]).all():  # labels did not switch: compare cluster by cluster
            said.append(chance.ravel())
            true.append(drawn.omega.ravel())
    said, true = np.concatenate(said), np.concatenate(true)
    assert len(said) > 400
    error = np.sqrt((said * (1 - said)).sum()) / len(said)
    assert abs(said.mean() - true.mean()) < 4 * error


def test_samplers_agree_on_moments():
    """Started at the truth, on data with real ambiguity, both samplers give the same label-free means."""
    rng = np.random.default_rng(2)
    P, V, S, N = 8, 3, 3, 60
    offset = np.arange(P + 1) * V
    base = make_data(offset[:-1] + rng.integers(V, size=(10, P)), offset)
    hyper = make_hyper(S, P, alpha=0.6, lam=0.8, c=10.0, q=0.5)
    drawn = model.simulate(base, hyper, rng, N)
    data = make_data(np.where(rng.random((N, P)) < 0.1, -1, drawn.x), offset, base.candidates)
    series = {}
    for sampler, sweeps in (("rows", 12_000), ("collapsed", 30_000)):
        chain = Bench(data, hyper, drawn.z.astype(np.uint8))
        chain.put(drawn.p, drawn.omega)
        state = chain.state
        rows = []
        for t in range(sweeps):
            log_joint, moved = chain.sweep(sampler, stream(6, t))
            size = np.sort(state.n_sv.sum(axis=0))
            rows.append((log_joint, moved.purity, state.omega.sum(), size[-1], (state.n_sv.astype(float) ** 2).sum()))
        series[sampler] = np.array(rows)[1000:]
    names = ("log joint", "purity", "omega", "largest", "n_sv squared")
    p_values = {name: same_mean(series["rows"][:, k], series["collapsed"][:, k]) for k, name in enumerate(names)}
    means = {name: [float(s[:, k].mean()) for s in series.values()] for k, name in enumerate(names)}
    assert smallest(p_values)[0] > REJECT_BELOW, (p_values, means)
