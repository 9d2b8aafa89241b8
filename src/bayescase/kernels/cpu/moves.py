"""Many cases at once: their units collected, split in two, and weighed by a rough evidence. `sampling.moves` says what for."""

from math import exp, lgamma, log, log1p
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..equations import log_copy
from .tables import rise

ZERO = np.int64(0)  # a literal is a type of its own, for which functions are compiled once more


class Units(NamedTuple):
    """Room for units: the cells of a case that go together."""

    codes: np.ndarray  # (cells,) int32, one unit after the other; -1 for cells that stay
    first: np.ndarray  # (N + 1,)
    row: np.ndarray  # (N,) the case
    at: np.ndarray  # (N,) int8, which of the labels


class Sides(NamedTuple):
    """Two sides of a split, whose units are drawn, or scored as they are."""

    side: np.ndarray  # (units,) int8, 0 or 1: the result
    now: np.ndarray  # (units,) int8, the side that a unit begins on; -1 for none
    fixed: np.ndarray  # (units,) bool: those at the centres, which keep their side
    order: np.ndarray  # (n,) those to be split
    u: np.ndarray  # (units,) uniforms; (0,) if the split in `side` is to be scored
    stay: np.ndarray  # (ΣV, 2) int32, counts of the cells that stay
    n: np.ndarray  # (ΣV, 2) int32, and of all
    log_phi: np.ndarray  # (ΣV, 4)


@inner
def copy_evidence(book, rises, u, none, n, k, n_j):
    """E of value u with counts n[:, k]: the log Bayes factor that it is copied; see `tables.update_evidence`."""
    e = none - rise(rises, rises.sum1[u], n_j)
    for at in range(book.k_ptr[u], book.k_ptr[u + 1]):
        v = book.k_idx[at]
        e += rise(rises, rises.k[at], n[v, k]) - rise(rises, rises.one[v], n[v, k])
    return e


@inner
def best_copy(book, rises, q, n, k, j, n_j):
    """(log evidence of feature j with ω = 0, what its best value adds, that value, its E), of counts n[:, k]."""
    none = rise(rises, rises.sum0[j], n_j)
    plain, best, top = -none, book.offset[j], -np.inf
    for u in range(book.offset[j], book.offset[j + 1]):
        plain += rise(rises, rises.one[u], n[u, k])
        e = copy_evidence(book, rises, u, none, n, k, n_j)
        if e > top:
            best, top = u, e
    return plain, log_copy(q, top), best, top


@inner
def rough_evidence(book, rises, hyper, s, n, k):
    """log evidence of cluster s with counts n[:, k], as if its prototype had the best value of each feature, and no item."""
    total = 0.0
    for j in range(len(book.offset) - 1):
        n_j = ZERO
        for v in range(book.offset[j], book.offset[j + 1]):
            n_j += n[v, k]
        if n_j == 0:
            continue
        if j < book.n_single:
            plain, top, _, _ = best_copy(book, rises, hyper.q[s, j], n, k, j, n_j)
            total += plain + top
        else:
            size = hyper.lam * (book.offset[j + 1] - book.offset[j])
            total += lgamma(size) - lgamma(size + n_j)
            for v in range(book.offset[j], book.offset[j + 1]):
                if n[v, k] > 0:
                    total += lgamma(hyper.lam * book.base[v] + n[v, k]) - lgamma(hyper.lam * book.base[v])
    return total


@compiled
def fill_rough(book, rises, hyper, n, which, with_pairs, rough, gain):
    """The rough evidence of the labels `which`; with_pairs: what their unions with all labels would gain instead.

    −∞ beside a label without cells. The last column of n is scratch.
    """
    S = len(rough)
    for k in range(len(which)):
        a = np.int64(which[k])
        for b in range(S):
            if b == a:
                if not with_pairs:
                    rough[a] = rough_evidence(book, rises, hyper, a, n, a)
                gain[a, a] = -np.inf
            elif with_pairs:
                mine, theirs = 0, 0
                for v in range(len(n)):
                    mine += n[v, a]
                    theirs += n[v, b]
                    n[v, S] = n[v, a] + n[v, b]
                both = -np.inf
                if mine > 0 and theirs > 0:
                    both = rough_evidence(book, rises, hyper, min(a, b), n, S) - rough[a] - rough[b]
                gain[a, b] = gain[b, a] = both


@inner
def fill_log_phi(book, rises, hyper, s, n, k, g, out):
    """log φ of side k, of label s: φ(v) = (g(v) + n) / Σ, in the second half without a cell of its own. g may be in `out`."""
    for j in range(len(book.offset) - 1):
        fill_likely_counts(book, rises, hyper, s, n, k, j, g)
        fill_log_phi_of(book, n, k, j, g, out)


@inner
def fill_likely_counts(book, rises, hyper, s, n, k, j, out):
    """Pseudo-counts g of feature j, of label s: a single feature copies its best value as far as ω is likely."""
    v0, v1, n_j = book.offset[j], book.offset[j + 1], ZERO
    for v in range(v0, v1):
        n_j += n[v, k]
        out[v, k] = hyper.lam * book.base[v]
    if j < book.n_single:
        q = hyper.q[s, j]
        _, _, u, e = best_copy(book, rises, q, n, k, j, n_j)
        on = q / (q + (1.0 - q) * exp(-e))
        for at in range(book.k_ptr[u], book.k_ptr[u + 1]):
            v = book.k_idx[at]
            out[v, k] += hyper.lam * book.base[v] * hyper.c * on * book.k_val[at]


@inner
def fill_log_phi_of(book, n, k, j, g, out):
    """log φ of feature j from pseudo-counts and counts, which may be in the same place."""
    total, own = 0.0, out.shape[1] // 2 + k
    for v in range(book.offset[j], book.offset[j + 1]):
        total += g[v, k] + n[v, k]
    norm, less = log(total), log(max(total - 1.0, 1e-9))
    for v in range(book.offset[j], book.offset[j + 1]):
        g_v = g[v, k]
        out[v, k] = log(g_v + n[v, k]) - norm
        out[v, own] = log(g_v + n[v, k] - 1.0) - less if n[v, k] > 0 else out[v, k]


@compiled
def split(codes, first, book, rises, hyper, labels, sides, rounds):
    """Draw the sides of units, or score them: the log probability of sides.side.

    rounds ≥ 0: units go to the side on which they are more probable, `rounds` times, beginning with those that have a side;
    then each is drawn given these sides, its own cells left out. rounds < 0: in order, each given those before it; φ follows
    whenever their number has doubled.
    """
    n, phi, now, side = sides.n, sides.log_phi, sides.now, sides.side
    size, in_turn, total = len(sides.order), rounds < 0, 0.0
    lo, hi, turn = 0, min(2, size) if in_turn else size, 0
    while lo < size:
        if turn == 0 or not in_turn:
            for v in range(len(n)):
                for k in range(2):
                    n[v, k] = sides.stay[v, k]
            for at in range(size):
                i = sides.order[at]
                if now[i] >= 0:
                    for c in range(first[i], first[i + 1]):
                        if codes[c] >= 0:
                            n[codes[c], now[i]] += 1
        for k in range(2):
            fill_log_phi(book, rises, hyper, labels[k], n, k, phi, phi)
        for at in range(lo, hi):
            i = sides.order[at]
            if sides.fixed[i]:
                continue
            own = 0 if in_turn else 2
            mine, other = own if now[i] == 0 else 0, own + 1 if now[i] == 1 else 1
            odds = 0.0
            for c in range(first[i], first[i + 1]):
                if codes[c] >= 0:
                    odds += phi[codes[c], mine] - phi[codes[c], other]
            if turn < rounds:
                now[i] = 0 if odds > 0.0 else 1
                continue
            if len(sides.u) > 0:
                side[i] = 0 if sides.u[i] < 1.0 / (1.0 + exp(-odds)) else 1
            away = odds if side[i] == 1 else -odds
            total -= away + log1p(exp(-away)) if away > 0.0 else log1p(exp(away))
            if in_turn:
                for c in range(first[i], first[i + 1]):
                    if codes[c] >= 0:
                        n[codes[c], side[i]] += 1
        if in_turn:
            lo, hi = hi, min(2 * hi, size)
        elif turn == rounds:
            lo = size
        turn += 1
    return total


@compiled
def add_up(codes, first, table, out):
    """For each row the sum of its codes' entries in a table; that of a gap, -1, is the last."""
    for i in range(len(out)):
        out[i] = 0.0
        for c in range(first[i], first[i + 1]):
            out[i] += table[codes[c]]


@compiled
def log_evidence(book, rises, hyper, held, s, n, codes, first, log_weight, adds, scores):
    """Of label s with counts n, (ΣV, 1), of single features: p, ω and φ summed out. (ΣV + 1) `adds`, (M,) `scores`: room."""
    total, top = 0.0, -np.inf
    for j in range(book.n_single):
        v0, v1 = book.offset[j], book.offset[j + 1]
        n_j, known = ZERO, len(held) > 0 and held[s, j] >= 0
        for v in range(v0, v1):
            n_j += n[v, 0]
            total += rise(rises, rises.one[v], n[v, 0])
        none = rise(rises, rises.sum0[j], n_j)
        total -= none
        for u in range(v0, v1):
            e = copy_evidence(book, rises, u, none, n, ZERO, n_j)
            adds[u] = held[s, j] * e if known else log_copy(hyper.q[s, j], e)
    adds[-1] = 0.0  # a gap
    add_up(codes, first, adds, scores)
    for m in range(len(scores)):
        scores[m] += log_weight[m]
        top = max(top, scores[m])
    norm = 0.0
    for m in range(len(scores)):
        norm += exp(scores[m] - top)
    return total + top + log(norm)


@compiled
def collect(codes, first, z, one, place, units, n):
    """The units of some labels, place[s] being the number of label s or -1: how many. Their counts are added to n.

    one: the label of a case that has one, -1 of a case with several, -2 of a case that stays.
    """
    count, end = 0, 0
    for i in range(len(one)):
        own, at = one[i], -1
        if own == -2 or (own >= 0 and place[own] < 0):
            continue
        if own >= 0:
            at = place[own]
        else:
            several = False
            for c in range(first[i], first[i + 1]):
                if codes[c] >= 0 and place[z[c]] >= 0:
                    several |= at >= 0 and place[z[c]] != at
                    at = place[z[c]]
            if several or at < 0:
                continue
        units.row[count], units.at[count], units.first[count] = i, at, end
        for c in range(first[i], first[i + 1]):
            v = codes[c]
            if v >= 0 and own == -1 and place[z[c]] < 0:
                v = -1
            units.codes[end] = v
            end += 1
            if v >= 0:
                n[v, at] += 1
        count += 1
        units.first[count] = end
    return count
