"""Cases of a table drawn anew between sweeps, one after the other, φ integrated out.

Without case i, and with each of its cells in a feature of its own, its cells are independent given their labels:

    p(z_i | rest) ∝ Π_s (α β_s)^(n_is) Π_j f_{z_j}(x_ij),    f_s(v) = (g_sj(v) + n_sv) / (Σ_v g_sj(v) + n_sj)

An anchor a is drawn by x_i and the other cases alone. A case that has one label, or a and another, draws from all such states
at once: a label for all of it, or one beside a, how many cells have that, and which (`draw_few`). Then all cells that have one
of two labels are drawn, whatever the others have (`draw_two`). Nothing needs to be accepted or rejected.
"""

from math import exp, log, sqrt
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..rng import categorical, derive, uniform
from .collapsed import count_features, fill_pseudo_counts
from .intrinsics import WIDTH, add, mul, span, sub, wide_every, wide_load, wide_store
from .labels import row_labels
from .redraw import CELL, FIRST, MOST, NUMBER, OWN, PARTNER, assign_two, draw_number, fill_chances
from .sums import row_span

# A product of probabilities that is smaller is made of logarithms
TINY = 1e-200
WHOLE, FEW, TWO = map(np.int64, range(3))  # what the random numbers of a row are for
MIX = FIRST  # does it mix? Other purposes of a case's random numbers are those of `redraw`


class Likely(NamedTuple):
    """f of all cases together, and of the case at hand without it."""

    of: np.ndarray  # (ΣV · lanes,) f_s(v), the clusters side by side; 0 in lanes without a cluster
    total: np.ndarray  # (ΣV,) Σ_s β_s f_s(v)
    own: np.ndarray  # (W,) of the cells of the case f of their own label, without the case


class Priors(NamedTuple):
    """(α β_s)^(n) in rising powers, over their largest."""

    of: np.ndarray  # ((W + 1) · lanes,)
    log_most: np.ndarray  # (W + 1,)
    both: np.ndarray  # (W + 1,) the largest of k times that of n − k, over that of n, for the n of the last case
    theta: np.ndarray  # (1,) both[k] ≤ both[1] θ^(k − 1) for k ≤ n / 2


class Ways(NamedTuple):
    """What a case may have, by label: room for `lanes` of each."""

    product: np.ndarray  # Π_j f_s(x_ij)
    a_most: np.ndarray  # Π_j (f_a + θ f_s)
    b_most: np.ndarray  # Π_j (f_s + θ f_a)
    both: np.ndarray  # Π_j (f_a + f_s)
    mixed: np.ndarray  # the weight of all ways to mix s with a
    odds: np.ndarray  # (W · lanes,) that a cell has s, not a
    chance: np.ndarray  # ((W + 1) · lanes,) that so many have it


class Anew(NamedTuple):
    likely: Likely
    priors: Priors
    ways: Ways


def make_anew(V, lanes, width):
    by_number = (width + 1) * lanes
    return Anew(
        Likely(np.zeros(V * lanes), np.zeros(V), np.zeros(width)),
        Priors(np.zeros(by_number), np.zeros(width + 1), np.zeros(width + 1), np.zeros(1)),
        Ways(*np.zeros((5, lanes)), np.zeros(width * lanes), np.zeros(by_number)),
    )


@compiled
def draw_cases(block, book, hyper, state, rise, lanes, key, mix, row, w, weights, pairs, anew):
    """All cases that are not held, in turn; the counts n_sv follow. Without `mix`, only cases with one label, as a whole."""
    S, n_sv, likely, priors = len(state.omega), state.n_sv, anew.likely, anew.priors
    fill_pseudo_counts(book, hyper, state, weights)
    count_features(book, n_sv, weights.n_sj)
    for j in range(len(weights.g_sum)):
        for s in range(S):
            fill_feature(j, s, book, n_sv, weights, likely, hyper.beta)
    fill_priors(S, lanes, rise, priors)
    known = 0
    for i in range(block.size):
        if len(block.held) > 0 and block.held[i] >= 0:
            continue
        start, size = row_span(block, i)
        x, z = span(block.x, start, size), span(block.z, start, size)
        k, n = row_labels(x, z, block.gaps, row.n, row.used), 0
        for u in range(k):
            n += row.n[row.used[u]]
            row.n[row.used[u]] = 0
        if n == 0 or (k > 1 and not mix):
            continue
        if n != known:
            known = n
            fill_both(n, priors)
        row_key = derive(key, block.number + i)
        in_reach = weigh_case(x, z, n, k, row.used, book, n_sv, weights, rise, lanes, anew, w)
        if mix and S > 2 and in_reach and 2 <= n <= MOST:
            few_key = derive(row_key, FEW)
            a = draw_anchor(w, S, True, uniform(few_key, OWN), anew.ways.mixed)
            if is_few(x, z, a):
                draw_few(x, z, n, a, book, n_sv, weights, hyper.beta, lanes, few_key, w, pairs, anew)
        elif k == 1:
            give(x, z, categorical(w, S, uniform(row_key, WHOLE)), book, n_sv, weights, likely, hyper.beta)
        if mix and S > 1 and n > 1:
            two_key = derive(row_key, TWO)
            a = draw_anchor(w, S, False, uniform(two_key, OWN), anew.ways.mixed)
            b = choose_second(x, z, a, S, hyper.beta, likely, two_key, anew.ways.mixed)
            if a != b:
                draw_two(x, z, a, b, book, n_sv, weights, hyper.beta, rise, lanes, two_key, pairs, likely)


@inner
def fill_feature(j, s, book, n_sv, weights, likely, beta):
    """f_s of a feature's values, and what they add to the totals."""
    lanes = len(likely.of) // len(likely.total)
    norm = 1.0 / (weights.g_sum[j, s] + weights.n_sj[j, s])
    for v in range(book.offset[j], book.offset[j + 1]):
        f = (weights.g_sv[v, s] + n_sv[v, s]) * norm
        likely.total[v] += beta[s] * (f - likely.of[v * lanes + s])
        likely.of[v * lanes + s] = f


@inner
def fill_priors(S, lanes, rise, priors):
    for n in range(len(priors.log_most)):
        top = -np.inf
        for s in range(S):
            top = max(top, rise[n * lanes + s])
        priors.log_most[n] = top
        for s in range(S):
            priors.of[n * lanes + s] = exp(rise[n * lanes + s] - top)


@inner
def fill_both(n, priors):
    log_most, theta = priors.log_most, 0.0
    for k in range(n + 1):
        priors.both[k] = exp(log_most[k] + log_most[n - k] - log_most[n])
    for k in range(2, n // 2 + 1):
        theta = max(theta, exp((log_most[k] + log_most[n - k] - log_most[1] - log_most[n - 1]) / (k - 1)))
    priors.theta[0] = theta


@inner
def f_of(t, x, z, s, likely):
    """f_s of cell t, without the case."""
    return likely.own[t] if z[t] == s else likely.of[np.intp(x[t]) * (len(likely.of) // len(likely.total)) + s]


@inner
def weigh_case(x, z, n, k, used, book, n_sv, weights, rise, lanes, anew, w):
    """w[s] ∝ (α β_s)^(n) Π_j f_s(x_ij), the case left out; false if these products are too small for float64."""
    S, likely, product, top = len(weights.log_prior), anew.likely, anew.ways.product, 0.0
    for s in range(lanes):
        product[s] = 1.0
    for t in range(len(x)):
        v = np.intp(x[t])
        if v >= 0:
            j, a = book.feature[v], z[t]
            likely.own[t] = (weights.g_sv[v, a] + n_sv[v, a] - 1.0) / (weights.g_sum[j, a] + weights.n_sj[j, a] - 1.0)
            for s in range(lanes):
                product[s] *= likely.of[v * lanes + s]
    for u in range(k):
        product[used[u]] = 1.0
        for t in range(len(x)):
            if x[t] >= 0:
                product[used[u]] *= f_of(t, x, z, used[u], likely)
    for s in range(S):
        w[s] = product[s] * anew.priors.of[n * lanes + s]
        top = max(top, w[s])
    if top >= TINY:
        return True
    top = -np.inf
    for s in range(S):
        w[s] = rise[n * lanes + s]
        for t in range(len(x)):
            if x[t] >= 0:
                w[s] += log(f_of(t, x, z, s, likely))
        top = max(top, w[s])
    for s in range(S):
        w[s] = exp(w[s] - top)
    return False


@inner
def draw_anchor(w, S, level, u, room):
    """A label by the weight of having it for the whole case; level: more evenly, since a case that mixes two may fit none."""
    for s in range(S):
        room[s] = sqrt(sqrt(sqrt(w[s]))) if level else w[s]
    return categorical(room, S, u)


@inner
def is_few(x, z, a):
    """Has the case one label, or a and another?"""
    other, several = np.int64(-1), False
    for t in range(len(x)):
        if x[t] >= 0 and z[t] != a:
            several |= other >= 0 and z[t] != other
            other = np.int64(z[t])
    return not several


@inner
def draw_few(x, z, n, a, book, n_sv, weights, beta, lanes, key, w, pairs, anew):
    """A case that has one label, or a and another, from all states in which it does, n cells.

    Whether it mixes is mostly known without the weights of all mixtures, from a bound: of k cells with b

        (α β_a)^(n − k) (α β_b)^(k) Σ Π f  ≤  most_n both_1 / θ · (Π (f_a + θ f_b) − Π f_a), and so for n − k cells
    """
    S, ways, likely, priors = len(weights.log_prior), anew.ways, anew.likely, anew.priors
    product, mixed, theta, whole, most = ways.product, ways.mixed, priors.theta[0], 0.0, 0.0
    ways.a_most[:], ways.b_most[:] = 1.0, 1.0
    for t in range(len(x)):
        if x[t] >= 0:
            f, at, own = f_of(t, x, z, a, likely), np.intp(x[t]) * lanes, z[t]
            before = likely.of[at + own]
            likely.of[at + own] = likely.own[t]
            for s in range(lanes):
                ways.a_most[s] *= f + theta * likely.of[at + s]
                ways.b_most[s] *= likely.of[at + s] + theta * f
            likely.of[at + own] = before
    for s in range(S):
        whole += w[s]
        if s != a:
            most += max(0.0, ways.a_most[s] - product[a]) + max(0.0, ways.b_most[s] - product[s])
    most *= priors.both[1] / theta if theta > 0.0 else 0.0
    u = uniform(key, MIX)
    if theta > 0.0 and u * (whole + most) < whole:
        give(x, z, categorical(w, S, uniform(key, CELL)), book, n_sv, weights, likely, beta)
        return
    weigh_mixtures(x, z, n, a, lanes, anew)
    total = 0.0
    for s in range(S):
        mixed[s] = mixed[s] if s != a else 0.0
        total += mixed[s]
    if u * (whole + total) < whole:
        give(x, z, categorical(w, S, uniform(key, CELL)), book, n_sv, weights, likely, beta)
        return
    b, m = categorical(mixed, S, uniform(key, PARTNER)), 0
    for t in range(len(x)):
        if x[t] >= 0:
            f, g = f_of(t, x, z, a, likely), f_of(t, x, z, b, likely)
            pairs.odds[m], pairs.cells[m] = g / (f + g), t
            m += 1
    fill_chances(n, pairs)
    pairs.weight[0] = 0.0
    for k in range(1, n):
        prior = priors.both[k] * priors.of[(n - k) * lanes + a] * priors.of[k * lanes + b]
        pairs.weight[k] = prior * pairs.chance[n, k]
    assign_two(n, categorical(pairs.weight, n, uniform(key, NUMBER)), key, pairs)
    for u in range(n):
        put(pairs.cells[u], x, z, b if pairs.second[u] else a, book, n_sv, weights, likely, beta)


@inner
def weigh_mixtures(x, z, n, a, lanes, anew):
    """mixed[s] ← the weight of all ways to mix a and s, over the largest prior of n cells; all labels side by side."""
    ways, likely, priors, c = anew.ways, anew.likely, anew.priors, 0
    odds, chance = ways.odds, ways.chance
    ways.both[:] = 1.0
    for t in range(len(x)):
        if x[t] >= 0:
            f, at, own = f_of(t, x, z, a, likely), np.intp(x[t]) * lanes, z[t]
            before = likely.of[at + own]
            likely.of[at + own] = likely.own[t]
            for s in range(lanes):
                ways.both[s] *= f + likely.of[at + s]
                odds[c * lanes + s] = likely.of[at + s] / (f + likely.of[at + s])
            likely.of[at + own] = before
            c += 1
    for s0 in range(0, lanes, WIDTH):
        wide_store(chance, s0, wide_every(1.0), WIDTH)
        for t in range(n):
            p, last = wide_load(odds, t * lanes + s0, WIDTH), wide_every(0.0)
            wide_store(chance, (t + 1) * lanes + s0, last, WIDTH)
            for k in range(t + 2):
                here = wide_load(chance, k * lanes + s0, WIDTH)
                wide_store(chance, k * lanes + s0, add(here, mul(p, sub(last, here))), WIDTH)
                last = here
        total = wide_every(0.0)
        for k in range(1, n):
            share = mul(wide_load(priors.of, k * lanes + s0, WIDTH), wide_load(chance, k * lanes + s0, WIDTH))
            total = add(total, mul(wide_every(priors.both[k] * priors.of[(n - k) * lanes + a]), share))
        wide_store(ways.mixed, s0, mul(total, wide_load(ways.both, s0, WIDTH)), WIDTH)


@inner
def choose_second(x, z, a, S, beta, likely, key, w):
    """A second label for a case that might have a, by how likely a cell is to leave a for it; a if there is none."""
    total, left, at = 0.0, 0.0, -1
    for t in range(len(x)):
        if x[t] >= 0:
            total += leaving(t, x, z, a, beta, likely)
    r = uniform(key, CELL) * total
    for t in range(len(x)):
        if x[t] >= 0 and r >= 0.0:
            left = leaving(t, x, z, a, beta, likely)
            if left > 0.0:
                at = t
                r -= left
    if at < 0:
        return a
    for s in range(S):
        w[s] = beta[s] * f_of(at, x, z, s, likely) if s != a else 0.0
    return categorical(w, S, uniform(key, PARTNER))


@inner
def leaving(t, x, z, a, beta, likely):
    """Σ_{s ≠ a} β_s f_s / f_a of cell t"""
    v = np.intp(x[t])
    of_all = likely.of[v * (len(likely.of) // len(likely.total)) + z[t]]
    return max(0.0, (likely.total[v] - beta[z[t]] * (of_all - likely.own[t])) / f_of(t, x, z, a, likely) - beta[a])


@inner
def draw_two(x, z, a, b, book, n_sv, weights, beta, rise, lanes, key, pairs, likely):
    """The cells that have label a or b, at most MOST of them, drawn jointly."""
    cells, odds, m, n_b = pairs.cells, pairs.odds, 0, 0
    for t in range(len(x)):
        if x[t] >= 0 and (z[t] == a or z[t] == b):
            cells[m] = t
            m += 1
            n_b += z[t] == b
    n, first = min(m, MOST), 0
    if m > MOST:  # others stay as they are
        first = np.int64(uniform(key, FIRST) * (m - MOST + 1))
    for u in range(n):
        t = cells[first + u]
        f, g = f_of(t, x, z, a, likely), f_of(t, x, z, b, likely)
        odds[u] = g / (f + g)
        n_b -= z[t] == b
    assign_two(n, draw_number(n, m - n - n_b, n_b, a, b, rise, lanes, uniform(key, NUMBER), pairs), key, pairs)
    for u in range(n):
        put(cells[first + u], x, z, b if pairs.second[u] else a, book, n_sv, weights, likely, beta)


@inner
def give(x, z, b, book, n_sv, weights, likely, beta):
    """All cells of a case get label b."""
    for t in range(len(x)):
        if x[t] >= 0:
            put(t, x, z, b, book, n_sv, weights, likely, beta)


@inner
def put(t, x, z, b, book, n_sv, weights, likely, beta):
    """Cell t gets label b; counts and f follow."""
    a, v = z[t], x[t]
    if a == b:
        return
    j, own = book.feature[v], f_of(t, x, z, b, likely)
    n_sv[v, a] -= 1
    n_sv[v, b] += 1
    weights.n_sj[j, a] -= 1
    weights.n_sj[j, b] += 1
    z[t] = b
    likely.own[t] = own
    fill_feature(j, a, book, n_sv, weights, likely, beta)
    fill_feature(j, b, book, n_sv, weights, likely, beta)
