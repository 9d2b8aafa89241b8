"""How likely the cells of a case are under each label, φ integrated out, while cases change their labels in turn.

    f_s(v) = (g_sj(v) + n_sv) / Σ_v (g_sj(v) + n_sv)

The cells of the case at hand are left out of the counts of their own label. The case, n cells, has the weight
(α β_s)^(n) Π_j f_s(x_ij) with label s (rising powers), and in all ways to mix a and b together

    Σ_k (α β_a)^(n − k) (α β_b)^(k) Σ Π_j f_{z_j}(x_ij),  the inner sum over those with b for k cells.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..compiling import inlined, inner
from .intrinsics import WIDTH, add, mul, wide_every, wide_load, wide_store
from .redraw import MOST, fill_chances

# A product of probabilities that is smaller is made of logarithms
TINY = 1e-200
NARROW = 6  # labels that are weighed one by one: a vector must wait for numbers in it that have just been written


class Likely(NamedTuple):
    """Lanes: room for as many labels as vectors hold."""

    n: np.ndarray  # (ΣV, S) cells
    g: np.ndarray  # (ΣV, S) pseudo-counts
    sums: np.ndarray  # (J, S) Σ_v (g + n)
    scale: np.ndarray  # (ΣV,) so that no product gets small because its values are rare
    top: np.ndarray  # (ΣV · lanes,) (g + n) · scale, the labels side by side; 0 in lanes without one
    norm: np.ndarray  # (J · lanes,) 1 / Σ
    less: np.ndarray  # (J · lanes,) 1 / (Σ − 1)
    own: np.ndarray  # (W,) of the cells of the case at hand f · scale of their own label, the case left out
    product: np.ndarray  # (lanes,) Π_j f_s(x_ij) · scale of the case at hand


class Priors(NamedTuple):
    """(α β_s)^(n) in rising powers."""

    of: np.ndarray  # ((W + 1) · lanes,) over the largest
    log_most: np.ndarray  # (W + 1,) of that the log
    both: np.ndarray  # [n, k] the largest of k cells times that of n − k, over that of n, for at most MOST cells
    theta: np.ndarray  # by n: both[n, k] ≤ both[n, 1] θ^(k − 1) for k ≤ n / 2; 0 while row n of both is not made


class Mixtures(NamedTuple):
    """Ways to mix a label a with another, by that one."""

    few: np.ndarray  # (lanes,) Π_j (f_a + θ f_s): a bound on few cells with s,
    all_but_few: np.ndarray  # (lanes,) Π_j (f_s + θ f_a): and on all but few
    weight: np.ndarray  # (lanes,) of all ways, or a bound on it
    by_cell: np.ndarray  # (W,)


def make_likely(n, g, J, lanes, width):
    """Of counts that are to be followed, and pseudo-counts."""
    V, S = n.shape
    by_feature = np.zeros((2, J * lanes))
    return Likely(n, g, np.zeros((J, S)), np.ones(V), np.zeros(V * lanes), *by_feature, np.zeros(width), np.zeros(lanes))


def make_priors(lanes, width):
    most = min(width, MOST) + 1
    return Priors(np.zeros((width + 1) * lanes), np.zeros(width + 1), np.zeros((most, most)), np.zeros(most))


def make_mixtures(lanes, width):
    return Mixtures(*np.zeros((3, lanes)), np.zeros(width))


@inner
def begin(book, likely):
    """f of all labels, from counts and pseudo-counts."""
    n, g, sums, scale, lanes = likely.n, likely.g, likely.sums, likely.scale, len(likely.product)
    for j in range(len(sums)):
        for s in range(n.shape[1]):
            sums[j, s] = 0.0
            for v in range(book.offset[j], book.offset[j + 1]):
                sums[j, s] += g[v, s] + n[v, s]
            fill_norm(j, s, likely)
        for v in range(book.offset[j], book.offset[j + 1]):
            most = 0.0
            for s in range(n.shape[1]):
                most = max(most, (g[v, s] + n[v, s]) * likely.norm[j * lanes + s])
            scale[v] = 1.0 / most
            for s in range(n.shape[1]):
                likely.top[v * lanes + s] = (g[v, s] + n[v, s]) * scale[v]


@inlined
def fill_norm(j, s, likely):
    at = j * len(likely.product) + s
    likely.norm[at], likely.less[at] = 1.0 / likely.sums[j, s], 1.0 / (likely.sums[j, s] - 1.0)


@inner
def fill_priors(S, rise, priors):
    """From the logs of rising powers, as long rows of lanes."""
    lanes = len(priors.of) // len(priors.log_most)
    for n in range(len(priors.log_most)):
        top = -np.inf
        for s in range(S):
            top = max(top, rise[n * lanes + s])
        priors.log_most[n] = top
        for s in range(S):
            priors.of[n * lanes + s] = exp(rise[n * lanes + s] - top)


@inner
def fill_both(n, priors):
    log_most, theta = priors.log_most, 0.01  # any that is large enough gives a bound
    for k in range(n + 1):
        priors.both[n, k] = exp(log_most[k] + log_most[n - k] - log_most[n])
    for k in range(2, n // 2 + 1):
        theta = max(theta, exp((log_most[k] + log_most[n - k] - log_most[1] - log_most[n - 1]) / (k - 1)))
    priors.theta[n] = theta


@inlined
def f_of(t, x, z, s, book, likely):
    """f_s of cell t, without the case."""
    if z[t] == s:
        return likely.own[t]
    return f_with(np.intp(x[t]), s, book, likely)


@inlined
def f_with(v, s, book, likely):
    """f_s of a value."""
    lanes = len(likely.product)
    return likely.top[v * lanes + s] * likely.norm[np.intp(book.feature[v]) * lanes + s]


@inlined
def f_lanes(v, s0, book, likely):
    """f of a value, of the labels s0, s0 + 1, … side by side."""
    lanes = len(likely.product)
    norm = wide_load(likely.norm, np.intp(book.feature[v]) * lanes + s0, WIDTH)
    return mul(wide_load(likely.top, v * lanes + s0, WIDTH), norm)


@inlined
def leave_out(x, z, book, likely):
    """f of the own labels of a case's cells, without it."""
    lanes = len(likely.product)
    for t in range(len(x)):
        v = np.intp(x[t])
        if v >= 0:
            less = likely.less[np.intp(book.feature[v]) * lanes + z[t]]
            likely.own[t] = (likely.top[v * lanes + z[t]] - likely.scale[v]) * less


@inlined
def weigh_labels(x, z, n, used, k, book, likely, priors, w):
    """w[s] ∝ the weight of a case, n cells, with label s; it has k labels now, used[:k]. False if products are too small."""
    S, lanes, product, top = likely.n.shape[1], len(likely.product), likely.product, 0.0
    prior = len(priors.of) // len(priors.log_most) * n
    if S <= NARROW:
        for s in range(S):
            here = 1.0
            for t in range(len(x)):
                if x[t] >= 0:
                    here *= f_with(np.intp(x[t]), s, book, likely)
            product[s] = here
    else:
        for s0 in range(0, lanes, WIDTH):
            all_here = wide_every(1.0)
            for t in range(len(x)):
                if x[t] >= 0:
                    all_here = mul(all_here, f_lanes(np.intp(x[t]), s0, book, likely))
            wide_store(product, s0, all_here, WIDTH)
    for u in range(k):
        product[used[u]] = 1.0
        for t in range(len(x)):
            if x[t] >= 0:
                product[used[u]] *= f_of(t, x, z, used[u], book, likely)
    for s in range(S):
        w[s] = product[s] * priors.of[prior + s]
        top = max(top, w[s])
    if top >= TINY:
        return True
    top = -np.inf
    for s in range(S):
        w[s] = log(priors.of[prior + s])
        for t in range(len(x)):
            if x[t] >= 0:
                w[s] += log(f_of(t, x, z, s, book, likely))
        top = max(top, w[s])
    for s in range(S):
        w[s] = exp(w[s] - top)
    return False


@inlined
def bound_mixtures(x, z, n, a, used, k, book, likely, priors, mixtures):
    """mixtures.weight[s] ← a bound on that of all ways to mix a and s; 0 of a. Of k cells with b, and so of n − k,

    (α β_a)^(n − k) (α β_b)^(k) Σ Π f  ≤  most_n both_1 / θ · (Π (f_a + θ f_b) − Π f_a)
    """
    if priors.theta[n] == 0.0:
        fill_both(n, priors)
    f, theta, lanes, product = mixtures.by_cell, priors.theta[n], len(likely.product), likely.product
    for t in range(len(x)):
        if x[t] >= 0:
            f[t] = f_of(t, x, z, a, book, likely)
    for s0 in range(0, lanes, WIDTH):
        few, all_but_few, by = wide_every(1.0), wide_every(1.0), wide_every(theta)
        for t in range(len(x)):
            if x[t] >= 0:
                f_a, here = wide_every(f[t]), f_lanes(np.intp(x[t]), s0, book, likely)
                few, all_but_few = mul(few, add(f_a, mul(by, here))), mul(all_but_few, add(here, mul(by, f_a)))
        wide_store(mixtures.few, s0, few, WIDTH)
        wide_store(mixtures.all_but_few, s0, all_but_few, WIDTH)
    for u in range(k):
        few_cells, most_cells = 1.0, 1.0
        for t in range(len(x)):
            if x[t] >= 0:
                here = f_of(t, x, z, used[u], book, likely)
                few_cells *= f[t] + theta * here
                most_cells *= here + theta * f[t]
        mixtures.few[used[u]], mixtures.all_but_few[used[u]] = few_cells, most_cells
    for s in range(lanes):
        more = max(0.0, mixtures.few[s] - product[a]) + max(0.0, mixtures.all_but_few[s] - product[s])
        mixtures.weight[s] = more * priors.both[n, 1] / theta if s != a else 0.0


@inner
def weigh_mixtures(x, z, n, a, b, book, likely, priors, pairs):
    """The weight of all ways to mix a and b; pairs.weight[k] ∝ that of k cells with b."""
    lanes, both, m, total = len(priors.of) // len(priors.log_most), 1.0, 0, 0.0
    for t in range(len(x)):
        if x[t] >= 0:
            f, g = f_of(t, x, z, a, book, likely), f_of(t, x, z, b, book, likely)
            pairs.odds[m], pairs.cells[m] = g / (f + g), t
            both *= f + g
            m += 1
    fill_chances(n, pairs)
    pairs.weight[0] = 0.0
    for k in range(1, n):
        pairs.weight[k] = prior_of_both(n, k, a, b, lanes, priors) * pairs.chance[n, k]
        total += pairs.weight[k]
    return total * both


@inlined
def prior_of_both(n, k, a, b, lanes, priors):
    """Of n − k cells with a and k with b, over the largest prior of n cells."""
    return priors.both[n, k] * priors.of[(n - k) * lanes + a] * priors.of[k * lanes + b]


@inlined
def put(t, x, z, b, book, likely):
    """Cell t gets label b; counts and f follow."""
    if z[t] != b:
        own = f_of(t, x, z, b, book, likely)
        move_value(np.intp(x[t]), z[t], b, book, likely)
        z[t], likely.own[t] = b, own


@inlined
def move_value(v, a, b, book, likely):
    """A cell with value v goes from a to b."""
    j, lanes = np.intp(book.feature[v]), len(likely.product)
    likely.n[v, a] -= 1
    likely.n[v, b] += 1
    likely.sums[j, a] -= 1.0
    likely.sums[j, b] += 1.0
    likely.top[v * lanes + a] -= likely.scale[v]
    likely.top[v * lanes + b] += likely.scale[v]
    fill_norm(j, a, likely)
    fill_norm(j, b, likely)
