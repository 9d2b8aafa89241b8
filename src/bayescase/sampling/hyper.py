"""Hyperparameters that are learned: α, λ, c, q, and for an unknown number of clusters β, given z, p and ω.

Only tables of counts enter, so this is cheap. Priors are diffuse:

    log α, log λ, log c ~ Normal, cut off at the limits of what can be computed exactly
    q ~ Uniform(0, 1), one number for all clusters and features that have no q of their own
    β ~ Dirichlet(γ/S, …, γ/S): as S grows, π_i ~ DP(α β) becomes the hierarchical Dirichlet process. Unlike stick-breaking,
    this treats all labels alike, so that labels can be aligned over draws as usual.
    log γ = −(information in a case − log of the number of candidates). A prototype is one of the cases, so a cluster of
    one case predicts it almost surely, and pays only for choosing it from the catalogue. With γ near 1, or learned, the
    posterior would be full of such clusters. This γ makes a new cluster pay for the whole description of its prototype.
"""

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import gammaln

from ..errors import Advice, BayescaseWarning, Setting
from ..kernels import Driver, Rows, copied
from ..state import Codebook, Data, Hyper, State, chunks

LARGEST = 1e6  # hyperparameter: beyond it, differences of log Γ lose their digits
PRIORS = {"alpha": (np.log(0.1), 2.0), "lam": (0.0, 1.5), "c": (np.log(10.0), 2.0)}  # mean and sd of the log
SMALLEST_LOG_GAMMA = -600.0  # below it, γ and β would underflow
RESEATED = 64  # cases that are reseated in a sweep
LEARNED = ("alpha", "lam", "c", "q")
STEPS = 24  # that widen a slice, at most
MOST_PAIRS = 1 << 22  # entries of a histogram of (pseudo-count, count), at most

Learnable: TypeAlias = float | Literal["learn"]


class Learn(NamedTuple):
    """What to draw."""

    names: tuple[str, ...] = ()  # of LEARNED
    q_free: np.ndarray = np.zeros((1, 1), dtype=bool)  # (S, D) where q is the learned number
    beta: bool = False  # is the number of clusters to be found?

    def __bool__(self) -> bool:
        return bool(self.names) or self.beta


def gamma_of(data: Data) -> float:
    """γ of the cases and candidates in memory."""
    counts, codes = np.zeros(data.offset[-1] + 1), data.cells.codes
    for part in chunks(len(codes), 1):
        counts += np.bincount(codes[part].astype(np.int64) + 1, minlength=len(counts))
    return gamma_by_counts(counts[1:], data.offset, len(data.x), len(data.candidates))


def gamma_by_counts(counts: np.ndarray, offset: np.ndarray, N: int, M: int) -> float:
    """log γ = −(mean information in a case, by the frequencies of its values, − log of the number of candidates)."""
    n_j = np.add.reduceat(counts, offset[:-1])
    seen = counts[counts > 0]
    total = (n_j * np.log(np.maximum(n_j, 1))).sum() - (seen * np.log(seen)).sum()
    log_gamma = np.log(M) - total / N
    if log_gamma < SMALLEST_LOG_GAMMA:
        warnings.warn(
            BayescaseWarning(
                "A case holds {n:.0f} nats of information, more than {auto} can make a new cluster pay ({most:.0f}), so it may "
                "find clusters of one case; use fewer features.",
                Advice("choose the number of clusters by {}", Setting("select_n_clusters")),
                n=-log_gamma,
                most=-SMALLEST_LOG_GAMMA,
                auto=Setting("n_clusters", "auto"),
            ),
            stacklevel=4,
        )
    return float(np.exp(np.clip(log_gamma, SMALLEST_LOG_GAMMA, 0.0)))


def initial(hyper: Hyper, learn: Learn) -> Hyper:
    """The hyperparameters to start from: what is learned starts at the middle of its prior, q at one half."""
    for name in learn.names:
        if name == "q":
            hyper = hyper._replace(q=np.where(learn.q_free, 0.5, hyper.q))
        else:
            hyper = Hyper(**hyper._asdict() | {name: float(np.exp(PRIORS[name][0]))})
    return hyper


def draw_prior(hyper: Hyper, learn: Learn, rng: np.random.Generator) -> Hyper:
    """The learned hyperparameters from their priors, the others as they are."""
    for name in learn.names:
        if name == "q":
            hyper = hyper._replace(q=np.where(learn.q_free, rng.random(), hyper.q))
        else:
            value = np.inf
            while abs(value) > np.log(LARGEST):
                value = rng.normal(*PRIORS[name])
            hyper = Hyper(**hyper._asdict() | {name: float(np.exp(value))})
    if learn.beta:
        hyper = hyper._replace(beta=dirichlet(np.full(len(hyper.beta), hyper.gamma / len(hyper.beta)), rng))
    return hyper


def log_prior(hyper: Hyper, learn: Learn) -> float:
    """Log prior density of what is learned of log α, log λ and log c, up to a constant. That of β has poles: left out."""
    return float(sum(_log_normal(np.log(getattr(hyper, name)), *PRIORS[name]) for name in learn.names if name != "q"))


def update(
    driver: Driver,
    rows: Rows,
    hyper: Hyper,
    learn: Learn,
    state: State,
    n_i: np.ndarray,
    rng: np.random.Generator,
    alpha: bool = True,
) -> Hyper:
    """Draw each of the learned hyperparameters given all else, and β with some of the cases in one block.

    n_i: histogram of the numbers of observed cells per row. alpha=False leaves α as it is, for sweeps that move whole cases
    only: no case can become mixed in them, and α would follow that.
    """
    if learn.beta:
        m = reseat_some(driver, rows, hyper, state, rng)
        hyper = hyper._replace(beta=dirichlet(hyper.gamma / len(m) + m, rng))
    if alpha and "alpha" in learn.names:
        hyper = hyper._replace(alpha=slice_log("alpha", hyper.alpha, lambda x: log_z(x, hyper.beta, state.n_rows, n_i), rng))
    if "lam" in learn.names or "c" in learn.names:
        counts = Counts(driver.book, state)
        if "lam" in learn.names:
            hyper = hyper._replace(lam=slice_log("lam", hyper.lam, lambda x: counts.log_x(x, hyper.c), rng))
        if "c" in learn.names:
            hyper = hyper._replace(c=slice_log("c", hyper.c, lambda x: counts.log_x(hyper.lam, x), rng))
    if "q" in learn.names:
        there = bits_there(driver.book, state) & learn.q_free
        idle = there & idle_bits(state, driver.omega_held)
        on, free = int(state.omega[there & ~idle].sum()), int((there & ~idle).sum())
        q = np.clip(rng.beta(1 + on, 1 + free - on), 1 / LARGEST, 1 - 1 / LARGEST)
        hyper = hyper._replace(q=np.where(learn.q_free, q, hyper.q))
        if idle.any():
            state.omega[idle] = rng.random(int(idle.sum())) < q
    return hyper


def bits_there(book: Codebook, state: State) -> np.ndarray:
    """(S, D) Which bits of ω there are: of a bag only those of the prototype's items."""
    there = np.ones(state.omega.shape, dtype=bool)
    there[:, book.n_single :] = False
    for s, codes in enumerate(state.u[:, book.n_single :]):
        there[s, book.column[codes[codes >= 0]]] = True
    return there


def idle_bits(state: State, held: np.ndarray) -> np.ndarray:
    """(S, D) Free bits of clusters without cells. The data say nothing about them, so q is drawn without them, and then they
    are drawn from q. If q depended on bits that it has drawn itself, it would hardly move where most labels are unused."""
    empty = np.add.reduce(state.n_sv, axis=0) == 0
    idle = np.repeat(empty[:, None], state.omega.shape[1], axis=1)
    return idle & (held < 0) if len(held) else idle


# --- the number of clusters ---------------------------------------------------------------------------------------------


def count_tables(hyper: Hyper, n_rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """m_s: tables that serve label s, all rows together (Teh et al. 2006). Given them, β ~ Dirichlet(γ/S + m).

    A row with n_is cells of label s has Σ_{l < n_is} Bernoulli(α β_s / (α β_s + l)) tables; so only the
    number of rows with n_is > l matters. At α = 0 a row has one table.
    """
    width = n_rows.shape[1]
    more = n_rows[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]  # rows with n_is > l, l = 0 …
    if hyper.alpha > 0.0:
        a = hyper.alpha * hyper.beta[:, None]
        return rng.binomial(more, a / (a + np.arange(width - 1))).sum(axis=1)
    return more[:, 0]


def reseat_some(driver: Driver, rows: Rows, hyper: Hyper, state: State, rng: np.random.Generator) -> np.ndarray:
    """Draw the tables m; then, given m, the labels of some whole cases with φ and β integrated out. Returns m.

    Given β and φ, a cluster of one case hardly ever ends, since its β and φ fit that case. Here, without its case, the cluster
    has only the weight γ/S. Cases are chosen at random. Those with several labels or tables stay: the move cannot change which
    cases these are, so it is exact.
    """
    N = int(driver.n_i.sum())
    few = rng.choice(N, size=min(RESEATED, N), replace=False)
    label, n = main_label(rows, few)  # n < 0: several labels, or none, or held
    others = state.n_rows.copy()
    np.subtract.at(others, (label[n > 0], n[n > 0]), 1)
    own = np.ones(len(few), dtype=np.int64)
    for r in np.flatnonzero(n > 1):
        a = hyper.alpha * hyper.beta[label[r]]
        own[r] = 1 + (rng.random(n[r] - 1) * (a + np.arange(1, n[r])) < a).sum() if a > 0 else 1
    m = count_tables(hyper, others, rng)
    np.add.at(m, label[n > 0], own[n > 0])
    chosen = (n > 0) & (own == 1)
    driver.reseat(hyper, state, rows, few[chosen], rng.random(int(chosen.sum())), m)
    return m


def seat_rows(
    hyper: Hyper, one: np.ndarray, n: np.ndarray, n_rows: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """(m as in `count_tables`, rows with one label and one table). one: label of each row, < 0 if several; n: its cells.

    All n cells of a row sit at one table with probability Π_{0 < l < n} l / (α β_s + l).
    """
    rows = np.flatnonzero(one >= 0)
    label, size = one[rows], n[rows]
    others = n_rows.copy()
    np.subtract.at(others, (label, size), 1)
    m, alone = count_tables(hyper, others, rng), np.ones(len(rows), dtype=bool)
    if hyper.alpha > 0.0:
        a = hyper.alpha * hyper.beta[label]
        alone = np.log(rng.random(len(rows))) < gammaln(size) + gammaln(a + 1.0) - gammaln(a + size)
    for r in np.flatnonzero(~alone):  # the first cell with a table of its own, then those after it
        new = a[r] / (a[r] + np.arange(1, size[r]))
        first = rng.choice(size[r] - 1, p=normal(new * np.concatenate([[1.0], np.cumprod(1.0 - new)[:-1]])))
        m[label[r]] += 2 + (rng.random(size[r] - 2 - first) < new[first + 1 :]).sum()
    np.add.at(m, label[alone], 1)
    found = np.zeros(len(one), dtype=bool)
    found[rows[alone]] = True
    return m, found


def normal(weight: np.ndarray) -> np.ndarray:
    return weight / weight.sum()


def main_label(rows: Rows, few: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(label, n) of each row whose n cells share a label and are not held; n = -1 for other rows."""
    cells, z, held = rows.take(few)
    row = np.repeat(np.arange(len(few)), cells.sizes)
    row, z = row[cells.codes >= 0], z[cells.codes >= 0].astype(np.int64)
    label, n = np.full(len(few), -1), np.bincount(row, minlength=len(few))
    np.maximum.at(label, row, z)
    same = np.bincount(row[z == label[row]], minlength=len(few)) == n
    return np.maximum(label, 0), np.where(same & (n > 0) & (held < 0), n, -1)


def log_tables(m: np.ndarray, gamma: float) -> float:
    """log p(m | γ) with β integrated out, up to a constant. log Γ(a + m) / Γ(a) = log a + log Γ(a + m) − log Γ(a + 1)."""
    a, used = gamma / len(m), m[m > 0]
    return (np.log(a) + gammaln(a + used) - gammaln(a + 1.0)).sum() - (
        np.log(gamma) + gammaln(gamma + m.sum()) - gammaln(gamma + 1.0)
    )


def instead_of_beta(m: np.ndarray, hyper: Hyper) -> float:
    """Added to log p(… | β) it gives log p(…, m) with β integrated out, where a chain pays for each cluster that it uses."""
    return float(log_tables(m, hyper.gamma) - (m * np.log(hyper.beta)).sum())


def log_gammas(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Logarithms of Gamma draws, which small shapes do not underflow: Gamma(a) = Gamma(a + 1) U^(1/a)."""
    drawn: np.ndarray = np.log(rng.gamma(shape + 1.0)) + np.log(rng.random(shape.shape)) / shape
    return drawn


def dirichlet(shape: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A Dirichlet draw; no entry is below 1e-300, so that its logarithm exists."""
    log_gamma = log_gammas(shape, rng)
    beta = np.exp(log_gamma - log_gamma.max())
    return np.maximum(beta / beta.sum(), 1e-300)


# --- likelihoods of single hyperparameters --------------------------------------------------------------------------------


def log_z(alpha: float, beta: np.ndarray, n_rows: np.ndarray, n_i: np.ndarray) -> float:
    """log p(z | α, β) with π integrated out: the first line of the log joint, from histograms of counts."""
    a, n = (alpha * beta)[:, None], np.arange(n_rows.shape[1])
    return (n_rows * _rise(a, n)).sum() - (n_i * _rise(alpha, n)).sum()


class Counts:
    """log p(x | z, p, ω, λ, c) with φ integrated out, from a histogram of (base measure, similarity, count)."""

    def __init__(self, book: Codebook, state: State):
        n_sv, starts = state.n_sv, book.offset[:-1]
        k_sv = copied(book, state.u, state.omega)  # ω_sj K_j(p_sj, v)
        base, of_base = np.unique(book.base, return_inverse=True)
        k, which = np.unique(k_sv, return_inverse=True)
        width = int(n_sv.max()) + 1
        keys = ((of_base.reshape(-1, 1) * len(k) + which.reshape(n_sv.shape)) * width + n_sv).reshape(-1)
        if len(base) * len(k) * width <= MOST_PAIRS:
            times = np.bincount(keys)
            keys = np.flatnonzero(times)
            self.times = times[keys]
        else:
            keys, self.times = np.unique(keys[n_sv.reshape(-1) > 0], return_counts=True)  # a count of 0 adds nothing
        self.k, self.n, self.base = k[keys // width % len(k)], keys % width, base[keys // width // len(k)]
        self.sizes = np.diff(book.offset)[:, None]
        self.k_sum, self.n_sj = np.add.reduceat(k_sv * book.base[:, None], starts), np.add.reduceat(n_sv, starts)

    def log_x(self, lam: float, c: float) -> float:
        values = (self.times * _rise(lam * self.base * (1.0 + c * self.k), self.n)).sum()
        return values - _rise(lam * (self.sizes + c * self.k_sum), self.n_sj).sum()


def _rise(a: np.ndarray | float, n: np.ndarray) -> np.ndarray:
    return gammaln(a + n) - gammaln(a)


# --- slice sampling -------------------------------------------------------------------------------------------------------


def _log_normal(x: float, mean: float, sd: float) -> float:
    return -0.5 * ((x - mean) / sd) ** 2


def slice_log(
    name: str, value: float, log_likelihood: Callable[[float], float], rng: np.random.Generator, width: float = 1.0
) -> float:
    """One slice-sampling update (Neal 2003, stepping out) of a positive number, on the scale of its logarithm."""
    far = np.log(LARGEST)

    def height(x: float) -> float:
        return log_likelihood(np.exp(x)) + _log_normal(x, *PRIORS[name]) if abs(x) <= far else -np.inf

    x = np.log(value)
    level = height(x) - rng.exponential()
    left = x - width * rng.random()
    right = left + width
    below = rng.integers(STEPS)
    for _ in range(below):
        if height(left) < level:
            break
        left -= width
    for _ in range(STEPS - 1 - below):
        if height(right) < level:
            break
        right += width
    while True:
        new = rng.uniform(left, right)
        if height(new) >= level:
            return float(np.exp(new))
        left, right = (new, right) if new < x else (left, new)
