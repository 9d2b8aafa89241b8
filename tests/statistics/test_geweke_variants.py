"""Level 4 for pins, one label per case, learned hyperparameters and an unknown number of clusters.

As in `test_geweke`, but hyperparameters are drawn as well: from their priors on one side, by `hyper.update` on the other. By
the sampler "rows" cases are drawn anew before every second sweep, as in a run.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from bayescase import model
from bayescase.kernels.rng import stream
from bayescase.sampling import hyper as hyper_
from bayescase.state import Data, Hyper, count_observed, make_data, make_hyper

from .chains import Bench
from .judge import REJECT_BELOW, same_mean, smallest
from .mutants import break_function
from .problems import similarity_of

N_DRAWS = 8_000
N_DRAWS_EVERY_DAY = 4_000
S, N, P = 3, 6, 4


class Problem(NamedTuple):
    data: Data
    hyper: Hyper
    learn: hyper_.Learn
    gaps: np.ndarray


def problem(learned=(), beta=False, alpha=0.8, pinned=False, kernel="table", one_bit=False):
    """one_bit: only a single bit has the learned q."""
    rng = np.random.default_rng(3)
    offset = np.array([0, 2, 5, 8, 10])
    candidates = offset[:-1] + (rng.random((4, P)) * np.diff(offset)).astype(int)
    candidates[1, 1] = -1
    gaps = np.zeros((N, P), dtype=bool)
    gaps[0, 2] = gaps[3, 0] = True
    weight, held = np.array([1.0, 3.0, 1.0, 2.0]), {}
    hyper = make_hyper(S, P, alpha, lam=0.6, c=6.0, q=[0.5, 0.2, 0.7, 0.4], gamma=1.5 if beta else 0.0)
    if pinned:
        weight = np.column_stack([weight, weight[::-1], [0.0, 0.0, 1.0, 0.0]])
        held["z_held"] = np.array([-1, 2, 0, -1, -1, 2])
        held["omega_held"] = np.array([[1, 1, 0, -1], [-1, 0, 0, 1], [-1, 1, 1, -1]])
        hyper = hyper._replace(beta=np.array([0.5, 0.3, 0.2]), q=np.array([hyper.q[0], hyper.q[0][::-1], hyper.q[0]]))
    x = np.zeros((N, P), dtype=int)
    data = make_data(x, offset, candidates, weight, similarity_of(rng, offset, kernel), **held)
    q_free = np.ones((S, P), dtype=bool)
    if one_bit:
        q_free[:], q_free[0, 0] = False, True
    return Problem(data, hyper, hyper_.Learn(tuple(learned), q_free, beta), gaps)


PROBLEMS = {
    "pinned": {"pinned": True},
    "pinned, one label": {"pinned": True, "alpha": 0.0},
    "alpha": {"learned": ["alpha"]},
    "lam": {"learned": ["lam"]},
    "c": {"learned": ["c"]},
    "q": {"learned": ["q"]},
    "q of one bit": {"learned": ["q"], "one_bit": True},
    "number of clusters": {"beta": True},
    "number of clusters, one label": {"beta": True, "alpha": 0.0},
    "all": {"learned": hyper_.LEARNED, "beta": True},
    "all, one label": {"learned": ["lam", "c", "q"], "beta": True, "alpha": 0.0},
}
EVERY_DAY = {"pinned, one label", "all"}


def quantities(data, hyper, z, p, omega, pinned):
    """Label-free functions of the joint state, hyperparameters among them; where labels are pinned, also label by label."""
    n_sv, n_is = model.count(data, z, S)
    n_i = np.maximum(n_is.sum(axis=1), 1)
    proto = data.candidates[p]
    matches = sum(n_sv[u, s] for s in range(S) for u in proto[s] if u >= 0)
    copied = ((model.g_table(data, hyper._replace(lam=1.0, c=1.0), p, omega) - 1.0) * n_sv).sum(axis=0)  # Σ ω K(p, x)
    size = n_is.sum(axis=0)
    purity, squares = (n_is.max(axis=1) / n_i).mean(), float((n_sv**2).sum())
    even = float((hyper.beta**2).sum())
    alpha, lam, c = (np.log(max(value, 1e-300)) for value in (hyper.alpha, hyper.lam, hyper.c))
    found = {
        "purity": purity,
        "largest": size.max(),
        "in use": (size > 0).sum(),
        "size squared": (size**2).sum(),
        "omega": omega.sum(),
        "matches": matches,
        "copied": copied.sum(),
        "n_sv squared": squares,
        "size omega": size @ omega.sum(axis=1),
        "size p": size @ (p == 1),
        "alpha": alpha,
        "alpha purity": alpha * purity,
        "lam": lam,
        "lam squares": lam * squares,
        "c": c,
        "c copied": c * copied.sum(),
        "q": hyper.q[0, 0],
        "q omega": hyper.q[0, 0] * omega.sum(),
        "beta": even,
        "beta size": hyper.beta @ size,
        "beta purity": even * purity,
        "beta p": hyper.beta @ (p == 1),
    }
    if pinned:
        found |= {f"size {s}": size[s] for s in range(S)} | {f"omega {s}": omega[s].sum() for s in range(S)}
        found |= {f"p {s}": p[s] == 1 for s in range(S)} | {
            f"matches {s}": n_sv[proto[s][proto[s] >= 0], s].sum() for s in range(S)
        }
        found |= {f"copied {s}": copied[s] for s in range(S)} | {f"copied p {s}": copied[s] * p[s] for s in range(S)}
        found |= {f"square {s}": (n_sv[:, s] ** 2).sum() for s in range(S)}
    return found


def forward(problem, rng):
    """One draw from the prior given what is held: (data, hyper, z, p, ω)."""
    data, hyper = problem.data, hyper_.draw_prior(problem.hyper, problem.learn, rng)
    drawn = model.simulate(data, hyper, rng, N)
    z, omega = drawn.z, drawn.omega
    if len(data.z_held):
        z = np.where(data.z_held[:, None] >= 0, data.z_held[:, None], z)
        omega = np.where(data.omega_held >= 0, data.omega_held > 0, omega)
    return redraw(problem, hyper, z, drawn.p, omega, rng), hyper, z, drawn.p, omega


def redraw(problem, hyper, z, p, omega, rng):
    """New cases given all else."""
    x = model.simulate(problem.data, hyper, rng, N, p=p, omega=omega, z=z).x
    return problem.data._replace(x=np.where(problem.gaps, -1, x))


def prior_draws(problem, n):
    rng = np.random.default_rng(1)
    return columns([quantities(*forward(problem, rng), pinned=len(problem.data.z_held) > 0) for _ in range(n)])


def chain_draws(problem, sampler, n):
    rng = np.random.default_rng(2)
    data, hyper, z, p, omega = forward(problem, rng)
    chain = Bench(data, hyper, z.astype(np.uint8))
    chain.put(p, omega)
    state, n_i = chain.state, count_observed(data.x)
    out = []
    for t in range(n):
        if sampler == "rows" and t % 2:
            draw_cases(chain, problem.learn, stream(9, t, 1), rng)
        chain.hyper = hyper_.update(chain.driver, chain.rows, chain.hyper, problem.learn, state, n_i, rng)
        chain.sweep(sampler, stream(9, t))
        out.append(quantities(chain.data, chain.hyper, chain.z, state.p, state.omega, pinned=len(data.z_held) > 0))
        chain.put_cases(redraw(problem, chain.hyper, chain.z.astype(int), state.p, state.omega, rng).x)
    return columns(out)


def draw_cases(chain, learn, key, rng):
    """The labels of cases, as wholes and two of each jointly, a learned α with them."""
    z, held = chain.rows.labels(), chain.data.z_held
    draw_alpha = partial(hyper_.slice_log, "alpha", chain.hyper.alpha, rng=rng) if "alpha" in learn.names else None
    chain.hyper = chain.driver.redraw(chain.hyper, chain.state, chain.data.cells, z, held, key, draw_alpha)
    chain.put_labels(z)


def columns(draws):
    return {name: np.array([draw[name] for draw in draws], dtype=float) for name in draws[0]}


PRIORS: dict = {}  # prior draws by problem: shared by samplers and mutants


def prior_of(name):
    n = N_DRAWS_EVERY_DAY if name in EVERY_DAY else N_DRAWS
    if name not in PRIORS:
        PRIORS[name] = prior_draws(problem(**PROBLEMS[name]), n)
    return PRIORS[name], n


def verdict(name, sampler):
    prior, n = prior_of(name)
    chain = chain_draws(problem(**PROBLEMS[name]), sampler, n)
    p_values = {}
    for quantity, values in prior.items():
        if values.std() > 1e-9:
            p_values[quantity] = same_mean(values, chain[quantity])
            p_values[quantity + " squared"] = same_mean(values**2, chain[quantity] ** 2)
    means = {quantity: (float(prior[quantity].mean()), float(chain[quantity].mean())) for quantity in prior}
    return *smallest(p_values), p_values, means


def days(name):
    return () if name in EVERY_DAY else pytest.mark.slow


@pytest.mark.parametrize("name", [pytest.param(name, marks=days(name)) for name in PROBLEMS])
@pytest.mark.parametrize("sampler", ["rows", "collapsed"])
def test_joint_distribution(name, sampler):
    p, which, p_values, means = verdict(name, sampler)
    assert p > REJECT_BELOW, (which, p_values, means)


@pytest.mark.parametrize(
    ("name", "sampler", "mutant"),
    [
        ("pinned, one label", "rows", "beta forgotten, rows"),
        ("number of clusters", "collapsed", "reseat with several tables"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in [
                ("all", "rows", "slice without the prior"),
                ("pinned", "rows", "held rows move, rows"),
                ("pinned", "collapsed", "held rows move, collapsed"),
                ("pinned", "rows", "K transposed"),
                ("alpha", "rows", "alpha without n_i"),
                ("lam", "rows", "lam and c without totals"),
                ("lam", "collapsed", "slice with another Jacobian"),
                ("c", "rows", "c without K"),
                ("q of one bit", "rows", "Beta without its prior"),  # where many bits have one q, it hardly leaves them
                ("all", "rows", "pairs without their prior"),
                ("number of clusters, one label", "rows", "cases without their prior"),
                ("number of clusters", "rows", "tables from l = 1"),
                ("number of clusters", "rows", "reseat with several tables"),
                ("number of clusters", "collapsed", "gamma not divided"),
                ("number of clusters, one label", "collapsed", "reseat without gamma"),
                ("all, one label", "collapsed", "beta without gamma"),
            ]
        ),
    ],
)
def test_mutant_is_rejected(monkeypatch, name, sampler, mutant):
    prior_of(name)  # before anything is broken
    break_function(monkeypatch, mutant)
    p, which, p_values, means = verdict(name, sampler)
    assert p < REJECT_BELOW, (which, p_values, means)
