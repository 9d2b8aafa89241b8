"""Cases that draw labels of a switch anew, or are scored as they are; `sampling.jumps` says what for.

A unit is all cells of a case whose label is one of L. Given φ it has the weight

    w(z) = Π_s (α β_s)^(n_s) Π_j φ_{z_j}(x_j)        (rising powers, s ∈ L)

and is drawn from this among the states in which it has one label, or mixes the one that is best for all of it with another. How
many cells have the other is drawn first, then which, as in `redraw`. φ follows from the labels of all other units.
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from .moves import fill_log_phi, fill_log_phi_of
from .redraw import fill_chance

MOST = 128  # cells of a unit that may mix
TINY = 1e-200  # products of probabilities are kept larger


class Parts(NamedTuple):
    """Units, one after the other: the observed cells of each that have labels of a switch."""

    x: np.ndarray  # (cells,) int32 values
    place: np.ndarray  # (cells,) where in the table
    first: np.ndarray  # (U + 1,)
    row: np.ndarray  # (U,) the case
    whole: np.ndarray  # (U,) bool: are these all its cells?
    at: np.ndarray  # (cells,) int8, which of the labels


class Prior(NamedTuple):
    """Of a case's cells that have a label, (α β_s)^n in rising powers."""

    log: np.ndarray  # (longest case + 1, S)
    shared: np.ndarray  # (most cells of a unit that may mix + 1, S), not the log, over exp(step · n); (0, 0) if none may
    step: float


class Bench(NamedTuple):
    """Room to draw in, for L labels."""

    n: np.ndarray  # (ΣV, L) int32
    g: np.ndarray  # (ΣV, L) pseudo-counts
    new: np.ndarray  # (cells,) int8
    log_phi: np.ndarray  # (ΣV, 2 L), in the second half without a cell of its own
    phi: np.ndarray  # (ΣV, 2 L)
    weight: np.ndarray  # (2 L,) of having a label, then of sharing the best one with it
    odds: np.ndarray  # (MOST,) probability of the second label, given φ alone
    chance: np.ndarray  # (MOST + 1, MOST + 1) that k of the first t cells take the second label, by these
    share: np.ndarray  # (MOST,) of each number of cells that have the second
    of: np.ndarray  # (L,) cells of a unit


def make_bench(V: int, L: int, cells: int) -> Bench:
    phi, g, of_cells = np.empty((2, V, 2 * L)), np.empty((V, L)), np.empty((2, MOST))
    chance, of = np.empty((MOST + 1, MOST + 1)), np.empty(L, np.int64)
    n, new = np.empty((V, L), np.int32), np.empty(cells, np.int8)
    return Bench(n, g, new, phi[0], phi[1], np.empty(2 * L), of_cells[0], chance, of_cells[1], of)


@compiled
def gather(codes, first, z, one, place, may_mix, parts, n):
    """The units of some labels, place[s] being the number of label s or -1: how many. Their counts are taken from n.

    one: the label of a case that has one, -1 of one with several, -2 of one that stays. Units that mix stay unless may_mix.
    """
    count, end = 0, 0
    for i in range(len(one)):
        if one[i] == -2 or (one[i] >= 0 and place[one[i]] < 0):
            continue
        begin, at, several, whole = end, -1, False, True
        for c in range(first[i], first[i + 1]):
            if codes[c] < 0:
                continue
            k = place[z[c]]
            if k < 0:
                whole = False
                continue
            several |= at >= 0 and k != at
            at = k
            parts.x[end], parts.place[end], parts.at[end] = codes[c], c, k
            end += 1
        if end == begin or (several and not may_mix):
            end = begin
            continue
        for c in range(begin, end):
            n[parts.x[c], parts.at[c]] -= 1
        parts.row[count], parts.whole[count] = i, whole
        count += 1
        parts.first[count] = end
    return count


@compiled
def settle(parts, book, rises, hyper, labels, prior, now, given, launch, u, stay, bench, rounds):
    """Draw which of the labels cells have, or score those that are given: the log probability of `given`.

    Cells begin as `now` says, -1 for none. Each unit goes to the label under which it is most probable, `rounds` times. Then
    units are drawn in turn, each given all others, twice: the second time to `given`.
    launch, u: uniforms of units, then two for each cell, of the two times; u (0,) if `given` is to be scored.
    """
    total, L, n, weight, may_mix = 0.0, len(labels), bench.n, bench.weight, len(prior.shared) > 0
    for turn in range(rounds + 2):
        if turn <= rounds:
            count_all(parts, now, stay, n)
            for k in range(L):
                fill_log_phi(book, rises, hyper, labels[k], n, k, bench.g, bench.log_phi)
        if turn == rounds and may_mix:
            for v in range(len(n)):
                for k in range(2 * L):
                    bench.phi[v, k] = exp(bench.log_phi[v, k])
        for i in range(len(parts.row)):
            lo, hi = parts.first[i], parts.first[i + 1]
            a, top, norm = 0, -np.inf, 0.0
            for k in range(L):
                weight[k], weight[L + k] = prior.log[hi - lo, labels[k]], -np.inf
                for c in range(lo, hi):
                    weight[k] += bench.log_phi[parts.x[c], L + k if now[c] == k else k]
                if weight[k] > top:
                    a, top = k, weight[k]
            if turn < rounds:
                for c in range(lo, hi):
                    now[c] = a
                continue
            if 2 <= hi - lo < len(prior.shared):
                for b in range(L):
                    if b != a:
                        weight[L + b] = weigh_mixed(parts.x, now, lo, hi, labels, prior, a, b, bench)
                        top = max(top, weight[L + b])
            for k in range(2 * L):
                norm += exp(weight[k] - top)
            draws = launch if turn == rounds else u
            if len(draws) > 0:
                choice, left = a, draws[i] * norm  # a where rounding leaves none
                for k in range(2 * L):
                    left -= exp(weight[k] - top)
                    if left < 0.0:
                        choice = k
                        break
                put(parts.x, now, bench.new, lo, hi, labels, prior, a, choice, draws, len(parts.row), bench)
            else:
                for c in range(lo, hi):
                    bench.new[c] = given[c]
            if turn > rounds:
                total += score(parts.x, now, bench.new, lo, hi, labels, prior, a, bench) - top - log(norm)
            to = now if turn == rounds else given
            for c in range(lo, hi):
                if bench.new[c] != now[c]:
                    take(parts.x[c], now[c], bench.new[c], book, may_mix, bench)
                to[c] = bench.new[c]
    return total


@inner
def count_all(parts, now, stay, n):
    for v in range(len(n)):
        for k in range(n.shape[1]):
            n[v, k] = stay[v, k]
    for c in range(len(now)):
        if now[c] >= 0:
            n[parts.x[c], now[c]] += 1


@inner
def take(v, k, to, book, may_mix, bench):
    """A cell of value v goes from one label to another: n and φ follow, of a bag with many items that of the item alone."""
    n, g, log_phi, L, j = bench.n, bench.g, bench.log_phi, bench.n.shape[1], book.feature[v]
    n[v, k] -= 1
    n[v, to] += 1
    for s in (k, to):
        v0, v1 = book.offset[j], book.offset[j + 1]
        if j < book.n_single:
            fill_log_phi_of(book, n, s, j, g, log_phi)
        else:
            v0, v1, before = v, v + 1, n[v, s] + (1 if s == k else -1)
            log_phi[v, s] += log(g[v, s] + n[v, s]) - log(g[v, s] + before)
            less = log(g[v, s] + n[v, s] - 1.0) - log(g[v, s] + n[v, s]) if n[v, s] > 0 else 0.0
            log_phi[v, L + s] = log_phi[v, s] + less
        if may_mix:
            for w in range(v0, v1):
                bench.phi[w, s], bench.phi[w, L + s] = exp(log_phi[w, s]), exp(log_phi[w, L + s])


@inner
def weigh_mixed(x, now, lo, hi, labels, prior, a, b, bench):
    """log Σ w(z) over all ways to mix a and b; share[k] ∝ that of all in which k cells have b."""
    size, L, odds, chance, share, base, both = hi - lo, len(labels), bench.odds, bench.chance, bench.share, 0.0, 1.0
    total, chance[0, 0] = 0.0, 1.0
    for t in range(size):
        v, k = x[lo + t], now[lo + t]
        phi_b = bench.phi[v, L + b if k == b else b]
        norm = bench.phi[v, L + a if k == a else a] + phi_b
        p = phi_b / norm
        both *= norm
        if both < TINY:
            base += log(both)
            both = 1.0
        odds[t] = p
        fill_chance(chance, t, p)
    for k in range(1, size):
        share[k] = prior.shared[size - k, labels[a]] * prior.shared[k, labels[b]] * chance[size, k]
        total += share[k]
    return base + log(both) + log(total) + prior.step * size if total > 0.0 else -np.inf


@inner
def put(x, now, to, lo, hi, labels, prior, a, choice, u, U, bench):
    """A unit gets the label that was chosen, or, beyond these, shares a with another."""
    L, size = len(labels), hi - lo
    if choice < L:
        for c in range(lo, hi):
            to[c] = choice
        return
    b, k, left = choice - L, 1, 0.0
    weigh_mixed(x, now, lo, hi, labels, prior, a, b, bench)
    for t in range(1, size):
        left += bench.share[t]
    left *= u[U + len(now) + lo]
    for t in range(1, size):
        left -= bench.share[t]
        if left < 0.0:
            k = t
            break
    for t in range(size - 1, -1, -1):
        takes_b = k > 0 and u[U + lo + t] * bench.chance[t + 1, k] < bench.odds[t] * bench.chance[t, k - 1]
        to[lo + t] = b if takes_b else a
        k -= takes_b


@inner
def score(x, now, given, lo, hi, labels, prior, a, bench):
    """log w(z) of a unit as it is given, -∞ if it is never drawn so."""
    L, of, total, used, other = len(labels), bench.of, 0.0, 0, a
    for k in range(L):
        of[k] = 0
    for c in range(lo, hi):
        k = given[c]
        if of[k] == 0:
            used += 1
            other = k if k != a else other
        of[k] += 1
        total += bench.log_phi[x[c], L + k if now[c] == k else k]
    if used > 2 or (used == 2 and (of[a] == 0 or bench.weight[L + other] == -np.inf)):
        return -np.inf
    return total + log_prior(of, labels, prior)


@inner
def log_prior(of, labels, prior):
    total = 0.0
    for k in range(len(labels)):
        if of[k] > 0:
            total += prior.log[of[k], labels[k]]
    return total


@compiled
def count_up(parts, given, labels, prior, n, of):
    """n += the counts of cells with these labels; the log prior of the units so."""
    total = 0.0
    for i in range(len(parts.row)):
        for k in range(len(labels)):
            of[k] = 0
        for c in range(parts.first[i], parts.first[i + 1]):
            n[parts.x[c], given[c]] += 1
            of[given[c]] += 1
        total += log_prior(of, labels, prior)
    return total
