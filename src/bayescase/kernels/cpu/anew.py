"""Cases of a table drawn anew between sweeps, one after the other, φ integrated out (`likely` has the weights).

An anchor a is drawn by x_i and the other cases alone. A case that has one label, or a and another, draws from all such states
at once: a label for all of it, or one beside a, how many cells have that, and which (`draw_few`). Then, of few such cases and
all others, all cells that have one of two labels are drawn, whatever the others have (`draw_two`). Whether they are must not
depend on the labels. Nothing needs to be accepted or rejected.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inlined, inner
from ..rng import categorical, derive, uniform
from .collapsed import fill_pseudo_counts
from .intrinsics import WIDTH, add, mul, span, total, wide_every, wide_load
from .labels import row_labels
from .likely import (
    Likely,
    Mixtures,
    Priors,
    begin,
    bound_mixtures,
    f_lanes,
    f_of,
    fill_priors,
    leave_out,
    make_likely,
    make_mixtures,
    make_priors,
    put,
    weigh_labels,
    weigh_mixtures,
)
from .redraw import CELL, FIRST, MOST, NUMBER, OWN, PARTNER, assign_two, draw_number
from .sums import row_span

WHOLE, FEW, TWO = map(np.int64, range(3))  # what the random numbers of a row are for
NONE, ZERO = np.int64(-1), np.int64(0)  # literals are types of their own, for which functions are compiled once more
OFTEN = 0.25  # cases that are drawn from all states with one or two labels are drawn by two labels, too
MIX = FIRST  # does it mix? Other purposes of a case's random numbers are those of `redraw`


class Anew(NamedTuple):
    likely: Likely
    priors: Priors
    mixtures: Mixtures
    known: np.ndarray  # (S,) bool: is the weight of a mixture known, not a bound on it?


def make_anew(n_sv, weights, lanes, width):
    S, likely = n_sv.shape[1], make_likely(n_sv, weights.g_sv, len(weights.g_sum), lanes, width)
    return Anew(likely, make_priors(lanes, width), make_mixtures(lanes, width), np.zeros(S, np.bool_))


@compiled
def draw_cases(block, book, hyper, state, rise, lanes, key, mix, row, w, weights, pairs, anew):
    """All cases that are not held, in turn; the counts n_sv follow. Without `mix`, only cases with one label, as a whole."""
    S, likely, priors, room = len(state.omega), anew.likely, anew.priors, anew.mixtures.weight
    fill_pseudo_counts(book, hyper, state, weights)
    begin(book, likely)
    fill_priors(S, rise, priors)
    for i in range(block.size):
        if len(block.held) > 0 and block.held[i] >= 0:
            continue
        start, size = row_span(block, i)
        x, z = span(block.x, start, size), span(block.z, start, size)
        k, n = row_labels(x, z, block.gaps, row.n, row.used), ZERO
        for u in range(k):
            n += row.n[row.used[u]]
            row.n[row.used[u]] = 0
        if n == 0 or (k > 1 and not mix):
            continue
        row_key = derive(key, block.number + i)
        leave_out(x, z, book, likely)
        in_reach = weigh_labels(x, z, n, row.used, k, book, likely, priors, w)
        few = mix and S > 1 and in_reach and 2 <= n <= MOST
        if few:
            few_key = derive(row_key, FEW)
            a = draw_anchor(w, S, True, uniform(few_key, OWN), room)
            if k == 1 or (k == 2 and (row.used[0] == a or row.used[1] == a)):
                draw_few(x, z, n, a, row.used, k, book, few_key, w, pairs, anew)
        elif k == 1:
            give(x, z, categorical(w, S, uniform(row_key, WHOLE)), book, likely)
        two_key = derive(row_key, TWO)
        if mix and S > 1 and n > 1 and not (few and (S == 2 or uniform(two_key, MIX) >= OFTEN)):
            a = draw_anchor(w, S, False, uniform(two_key, OWN), room)
            b = choose_second(x, z, a, S, book, hyper.beta, two_key, anew)
            if a != b:
                draw_two(x, z, a, b, book, rise, lanes, two_key, pairs, likely)


@inner
def draw_anchor(w, S, level, u, room):
    """A label by the weight of having it for the whole case; level: more evenly, since a case that mixes two may fit none."""
    for s in range(S):
        room[s] = sqrt(sqrt(sqrt(w[s]))) if level else w[s]
    return categorical(room, S, u)


@inlined
def draw_few(x, z, n, a, used, k, book, key, w, pairs, anew):
    """A case that has one label, or a and another, from all states in which it does, n cells.

    Whether it mixes is mostly known without the weights of all mixtures, from bounds on them. So the weights take the place of
    the bounds one by one, the largest first, until that is known.
    """
    S, likely, priors, mixed, whole, most = len(anew.known), anew.likely, anew.priors, anew.mixtures.weight, 0.0, 0.0
    bound_mixtures(x, z, n, a, used, k, book, likely, priors, anew.mixtures)
    for s in range(S):
        anew.known[s] = s == a
        whole += w[s]
        most += mixed[s]
    u, b = uniform(key, MIX), ZERO
    while u * (whole + most) >= whole and b >= 0:
        b = NONE  # the label of the largest bound
        for s in range(S):
            if not anew.known[s] and (b < 0 or mixed[s] > mixed[b]):
                b = np.int64(s)
        if b >= 0:
            most -= mixed[b]
            mixed[b] = weigh_mixtures(x, z, n, a, b, book, likely, priors, pairs)
            most, anew.known[b] = most + mixed[b], True
    if b >= 0:
        give(x, z, categorical(w, S, uniform(key, CELL)), book, likely)
        return
    b = categorical(mixed, S, uniform(key, PARTNER))
    weigh_mixtures(x, z, n, a, b, book, likely, priors, pairs)
    assign_two(n, categorical(pairs.weight, n, uniform(key, NUMBER)), key, pairs)
    for u in range(n):
        put(pairs.cells[u], x, z, b if pairs.second[u] else a, book, likely)


@inlined
def choose_second(x, z, a, S, book, beta, key, anew):
    """A second label for a case that might have a, by how likely a cell is to leave a for it; a if there is none."""
    likely, left, w, total, at = anew.likely, anew.mixtures.by_cell, anew.mixtures.weight, 0.0, -1
    for t in range(len(x)):
        if x[t] >= 0:
            left[t] = leaving(t, x, z, a, book, beta, likely)
            total += left[t]
    r = uniform(key, CELL) * total
    for t in range(len(x)):
        if x[t] >= 0 and left[t] > 0.0:
            at = t
            r -= left[t]
            if r < 0.0:
                break
    if at < 0:
        return a
    for s in range(S):
        w[s] = beta[s] * f_of(at, x, z, s, book, likely) if s != a else 0.0
    return categorical(w, S, uniform(key, PARTNER))


@inlined
def leaving(t, x, z, a, book, beta, likely):
    """Σ_{s ≠ a} β_s f_s / f_a of cell t"""
    v, own, lanes, every = np.intp(x[t]), z[t], len(likely.product), wide_every(0.0)
    for s in range(0, lanes, WIDTH):
        every = add(every, mul(wide_load(beta, s, len(beta) - s), f_lanes(v, s, book, likely)))
    f_own = likely.top[v * lanes + own] * likely.norm[np.intp(book.feature[v]) * lanes + own]
    left = total(every) - beta[own] * (f_own - likely.own[t])
    return max(0.0, left / f_of(t, x, z, a, book, likely) - beta[a])


@inlined
def draw_two(x, z, a, b, book, rise, lanes, key, pairs, likely):
    """The cells that have label a or b, at most MOST of them, drawn jointly."""
    cells, odds, m, n_b = pairs.cells, pairs.odds, ZERO, ZERO
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
        f, g = f_of(t, x, z, a, book, likely), f_of(t, x, z, b, book, likely)
        odds[u] = g / (f + g)
        n_b -= z[t] == b
    assign_two(n, draw_number(n, m - n - n_b, n_b, a, b, rise, lanes, uniform(key, NUMBER), pairs), key, pairs)
    for u in range(n):
        put(cells[first + u], x, z, b if pairs.second[u] else a, book, likely)


@inner
def give(x, z, b, book, likely):
    """All cells of a case get label b."""
    for t in range(len(x)):
        if x[t] >= 0:
            put(t, x, z, b, book, likely)
