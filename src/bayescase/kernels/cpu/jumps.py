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
from ..rng import categorical, derive, uniform
from .moves import fill_likely_counts
from .redraw import fill_chance

MOST = 128  # cells of a unit that may mix
TINY = 1e-200  # products of probabilities are kept larger
LAST = 1 << 40  # before it the random numbers of units in the first turn that draws, from it on those of the last
WHICH, NUMBER, EACH = range(3)  # what they decide


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
    """Room to draw in, for L labels.

    φ(v) = (g(v) + n) / total; of a cell that is counted there (g(v) + n − 1) / (total − 1)
    """

    n: np.ndarray  # (ΣV, L) int32
    g: np.ndarray  # (ΣV, L) pseudo-counts
    total: np.ndarray  # (J, L) Σ (g + n) of each feature
    norm: np.ndarray  # (J, L) 1 / total
    less: np.ndarray  # (J, L) 1 / (total − 1)
    phi: np.ndarray  # (L, cells of the longest unit)
    weight: np.ndarray  # (2, 2 L) logs, then not: of having a label, then of sharing the best one with it
    odds: np.ndarray  # (longest that may mix,) probability of the second label, given φ alone
    chance: np.ndarray  # (longest that may mix + 1, + 1) that k of the first t cells take the second label, by these
    share: np.ndarray  # (longest that may mix,) of each number of cells that have the second
    of: np.ndarray  # (L,) cells of a unit
    new: np.ndarray  # (cells of the longest unit,) int8


def make_bench(V: int, J: int, L: int, longest: int) -> Bench:
    most = min(longest, MOST)
    n, g, total, phi = np.empty((V, L), np.int32), np.empty((V, L)), np.empty((3, J, L)), np.empty((L, longest))
    weight, of, new = np.empty((2, 2 * L)), np.empty(L, np.int64), np.empty(longest, np.int8)
    odds, chance, share = np.empty(most), np.empty((most + 1, most + 1)), np.empty(most + 1)
    return Bench(n, g, *total, phi, weight, odds, chance, share, of, new)


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
def settle(parts, book, rises, hyper, labels, prior, now, given, to_draw, key, stay, bench, rounds, least):
    """Draw which of the labels cells have, or score those that are given: the log probability of `given`.

    Cells begin as `now` says, -1 for none. Each unit goes to the label under which it is most probable, `rounds` times. Then
    units are drawn in turn, each given all others, twice: the second time to `given`. −∞ as soon as it is below `least`.
    """
    log_p, L, weight, new = 0.0, len(labels), bench.weight, bench.new
    for turn in range(rounds + 2):
        last = turn > rounds
        if not last:
            count_all(parts, now, stay, bench.n)
            fill_phi(book, rises, hyper, labels, bench)
        for i in range(len(parts.row)):
            lo, hi = parts.first[i], parts.first[i + 1]
            a = weigh(parts.x, now, lo, hi, book, labels, prior, bench)
            if turn < rounds:
                for c in range(lo, hi):
                    now[c] = a
                continue
            top, norm = weight[0, a], 0.0
            for b in range(L):
                weight[0, L + b] = -np.inf
                if last and b != a and 2 <= hi - lo < len(prior.shared):
                    weight[0, L + b] = weigh_mixed(hi - lo, labels, prior, a, b, bench)
                    top = max(top, weight[0, L + b])
            for k in range(2 * L):
                weight[1, k] = exp(weight[0, k] - top)
                norm += weight[1, k]
            if to_draw or not last:
                put(hi - lo, labels, prior, a, derive(key, i + (LAST if last else 0)), bench)
            else:
                for c in range(lo, hi):
                    new[c - lo] = given[c]
            if last:
                log_p += score(hi - lo, labels, prior, a, bench) - top - log(norm)
                if not log_p >= least:
                    return -np.inf
            for c in range(lo, hi):
                to = new[c - lo]
                if to != now[c]:
                    take(parts.x[c], now[c], to, book, bench)
                if last:
                    given[c] = to
                else:
                    now[c] = to
    return log_p


@inner
def count_all(parts, now, stay, n):
    for v in range(len(n)):
        for k in range(n.shape[1]):
            n[v, k] = stay[v, k]
    for c in range(len(now)):
        if now[c] >= 0:
            n[parts.x[c], now[c]] += 1


@inner
def fill_phi(book, rises, hyper, labels, bench):
    n, g, total = bench.n, bench.g, bench.total
    for k in range(len(labels)):
        for j in range(len(book.offset) - 1):
            fill_likely_counts(book, rises, hyper, labels[k], n, k, j, g)
            total[j, k] = 0.0
            for v in range(book.offset[j], book.offset[j + 1]):
                total[j, k] += g[v, k] + n[v, k]
            fill_norm(bench, j, k)


@inner
def fill_norm(bench, j, k):
    bench.norm[j, k], bench.less[j, k] = 1.0 / bench.total[j, k], 1.0 / max(bench.total[j, k] - 1.0, 1e-9)


@inner
def take(v, k, to, book, bench):
    """A cell of value v goes from one label to another, and φ follows."""
    j = book.feature[v]
    bench.n[v, k] -= 1
    bench.n[v, to] += 1
    bench.total[j, k] -= 1.0
    bench.total[j, to] += 1.0
    fill_norm(bench, j, k)
    fill_norm(bench, j, to)


@inner
def weigh(x, now, lo, hi, book, labels, prior, bench):
    """The label under which a unit is most probable; the log weight of each; φ of its cells."""
    weight, phi, g, n, norm, less, best = bench.weight, bench.phi, bench.g, bench.n, bench.norm, bench.less, 0
    for label in range(len(labels)):
        k = np.uintp(label)  # an index without a sign needs no test for being negative
        total, product = prior.log[hi - lo, labels[label]], 1.0
        for t in range(hi - lo):
            c = np.uintp(lo + t)
            v = np.uintp(x[c])
            j = np.uintp(book.feature[v])
            one = g[v, k] + n[v, k]
            if now[c] == label:
                one = (one - 1.0) * less[j, k]
            else:
                one *= norm[j, k]
            phi[k, np.uintp(t)] = one
            product *= one
            if product < TINY:
                total += log(product)
                product = 1.0
        weight[0, k] = total + log(product)
        if weight[0, k] > weight[0, best]:
            best = label
    return best


@inner
def weigh_mixed(size, labels, prior, a, b, bench):
    """log Σ w(z) over all ways to mix a and b; share[k] ∝ that of all in which k cells have b."""
    odds, chance, share, phi, base, both = bench.odds, bench.chance, bench.share, bench.phi, 0.0, 1.0
    total, chance[0, 0] = 0.0, 1.0
    for t in range(size):
        norm = phi[a, t] + phi[b, t]
        odds[t] = phi[b, t] / norm
        both *= norm
        if both < TINY:
            base += log(both)
            both = 1.0
        fill_chance(chance, t, odds[t])
    share[0] = 0.0
    for k in range(1, size):
        share[k] = prior.shared[size - k, labels[a]] * prior.shared[k, labels[b]] * chance[size, k]
        total += share[k]
    return base + log(both) + log(total) + prior.step * size if total > 0.0 else -np.inf


@inner
def put(size, labels, prior, a, key, bench):
    """A unit gets a label, drawn by its weight, or shares a with another."""
    L, new, odds, chance = len(labels), bench.new, bench.odds, bench.chance
    b = categorical(bench.weight[1], 2 * L, uniform(key, WHICH))
    if b < L:
        for t in range(size):
            new[t] = b
        return
    b -= L
    weigh_mixed(size, labels, prior, a, b, bench)
    k = categorical(bench.share, size, uniform(key, NUMBER))
    for t in range(size - 1, -1, -1):
        takes_b = k > 0 and uniform(key, EACH + t) * chance[t + 1, k] < odds[t] * chance[t, k - 1]
        new[t] = b if takes_b else a
        k -= takes_b


@inner
def score(size, labels, prior, a, bench):
    """log w(z) of a unit as it is given, -∞ if it is never drawn so."""
    L, of, new, product, total, used, other = len(labels), bench.of, bench.new, 1.0, 0.0, 0, a
    for k in range(L):
        of[k] = 0
    for t in range(size):
        k = new[t]
        if of[k] == 0:
            used += 1
            other = k if k != a else other
        of[k] += 1
        product *= bench.phi[k, t]
        if product < TINY:
            total += log(product)
            product = 1.0
    if used > 2 or (used == 2 and (of[a] == 0 or bench.weight[0, L + other] == -np.inf)):
        return -np.inf
    return total + log(product) + log_prior(of, labels, prior)


@inner
def log_prior(of, labels, prior):
    total = 0.0
    for k in range(len(labels)):
        if of[k] > 0:
            total += prior.log[of[k], labels[k]]
    return total


@compiled
def change(parts, new, labels, prior, n, of):
    """n, the counts of the labels, as they are with units so; how much more is the log prior of these."""
    more = 0.0
    for i in range(len(parts.row)):
        lo, hi = parts.first[i], parts.first[i + 1]
        more += log_prior_of(new, lo, hi, labels, prior, of) - log_prior_of(parts.at, lo, hi, labels, prior, of)
        for c in range(lo, hi):
            n[parts.x[c], parts.at[c]] -= 1
            n[parts.x[c], new[c]] += 1
    return more


@inner
def log_prior_of(at, lo, hi, labels, prior, of):
    for k in range(len(labels)):
        of[k] = 0
    for c in range(lo, hi):
        of[at[c]] += 1
    return log_prior(of, labels, prior)


@compiled
def differences(sides, one, differ, known):
    """In how many of the cases that a side says something about their label is another one; and of how many it does."""
    for k in range(len(sides)):
        n, m = 0, 0
        for i in range(len(one)):
            n += (sides[k, i] >= 0) & (sides[k, i] != one[i])
            m += sides[k, i] >= 0
        differ[k], known[k] = n, m
