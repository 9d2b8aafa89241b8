"""Cases drawn anew between sweeps: those with one label as a whole, φ integrated out; two labels of a case jointly, given φ.

A sweep moves one cell at a time. To get a second label a case has to pass through states in which few cells have it, which
a small α makes rare: it takes hundreds of sweeps. Here all cells that have one of two labels a and b are drawn at once,

    p(z) ∝ (α β_a)^(n_a) (α β_b)^(n_b) Π_j φ_{z_j}(x_j)        (rising powers)

The prior depends on n_b alone. So n_b is drawn first, from the prior times the probability that so many of independent cells
take b; then the cells, given how many take it. And a case of a small cluster, whose φ has learned it, hardly ever leaves that
cluster given φ; with φ integrated out it does.

A learned α is drawn before these cells are. Given all labels it hardly moves, since they have followed it. But which two labels
a case may have, and which cells may have them, does not depend on it, so that they can be summed out,

    p(α | rest) ∝ p(α) Π_i Σ_k chance_k (α β_a)^(n_a + n − k) (α β_b)^(n_b + k) Π_{s ≠ a, b} (α β_s)^(n_is) / α^(n_i)
"""

from math import exp, log
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..equations import row_weight
from ..rng import categorical, derive, uniform
from .cells import leave_sum
from .collapsed import count_features, fill_pseudo_counts, move_case
from .intrinsics import span
from .labels import count_gaps, row_labels
from .sums import block_sums, row_span
from .tables import ROWS

MOST = 256  # cells that are drawn jointly
OWN, CELL, PARTNER, FIRST, NUMBER, EACH = map(np.int64, range(6))  # what the uniform numbers of a row decide


class Pairs(NamedTuple):
    """Room for the cells of a row that are drawn jointly."""

    cells: np.ndarray  # (W,) places of those that have one of the two labels, for the longest row of W cells
    odds: np.ndarray  # (MOST,) probability of the second label, given φ alone
    second: np.ndarray  # (MOST,) bool: do they take it?
    chance: np.ndarray  # (MOST + 1, MOST + 1) that k of the first t cells take the second label, by these
    weight: np.ndarray  # (max(S, MOST + 1),)


class Weighed(NamedTuple):
    """How many of a row's cells take the second label, and what else has the two."""

    n: np.ndarray  # (N, 3) cells that are drawn jointly, others that have a, others that have b
    chance: np.ndarray  # (cells + N,) row i from place first[i] + i on: probability that k of them take b, by φ alone


def make_weighed(N, n_cells):
    return Weighed(np.zeros((N, 3), np.int64), np.zeros(n_cells + N))


def make_pairs(S, width):
    """width: cells of the longest row."""
    most = min(width, MOST)
    odds, second, chance = np.zeros(most), np.zeros(most, np.bool_), np.zeros((most + 1, most + 1))
    return Pairs(np.zeros(width, np.int64), odds, second, chance, np.zeros(max(S, most + 1)))


@compiled
def move_cases(block, book, hyper, state, rise, lanes, key, row, w, weights):
    """All cases that have one label and are not held, in turn, φ integrated out; the counts n_sv follow.

    s ∝ (α β_s)^(n_i) Π_j (g_sj(x_ij) + n_sv) / (Σ_v g_sj(v) + n_sj), without the case
    """
    S, n_sv, n_sj, log_prior = len(state.omega), state.n_sv, weights.n_sj, weights.log_prior
    fill_pseudo_counts(book, hyper, state, weights)
    count_features(book, n_sv, n_sj)
    for i in range(block.size):
        if len(block.held) > 0 and block.held[i] >= 0:
            continue
        start, size = row_span(block, i)
        xi, zi = span(block.x, start, size), span(block.z, start, size)
        if row_labels(xi, zi, block.gaps, row.n, row.used) == 1:
            at = row.n[row.used[0]] * lanes
            for s in range(S):
                log_prior[s] = rise[at + s]
            move_case(xi, zi, book, n_sv, n_sj, weights, uniform(key, block.number + i), w, row.n)
        for s in range(S):
            row.n[s] = 0


@compiled
def choose_pairs(block, tables, rise, key, sums, weight, label, lo, hi):
    """label[i] ← two labels for each of the rows lo .. hi - 1, by x and φ alone; equal if there is nothing to draw."""
    lanes = len(sums) // ROWS
    for i0 in range(lo, hi, ROWS):
        i1 = min(i0 + ROWS, hi)
        block_sums(block, tables.log_phi, lanes, i0, i1, sums)
        for i in range(i0, i1):
            start, size = row_span(block, i)
            label[i, 0], label[i, 1] = 0, 0
            if size == 0 or (len(block.held) > 0 and block.held[i] >= 0):
                continue
            row_key = derive(key, block.number + i)
            x, at = span(block.x, start, size), (i - i0) * lanes
            label[i, 0], label[i, 1] = two_labels(x, tables, rise, lanes, sums, at, row_key, weight)


@compiled
def draw_pairs(block, tables, label, key, pairs, lo, hi):
    """The cells of each of the rows lo .. hi - 1 that have one of its two labels, jointly, given φ."""
    for i in range(lo, hi):
        start, size = row_span(block, i)
        a, b = label[i, 0], label[i, 1]
        if a != b:
            row_key = derive(key, block.number + i)
            draw_two(span(block.x, start, size), span(block.z, start, size), a, b, tables, row_key, pairs)


@compiled
def weigh_pairs(block, tables, label, key, row, pairs, weighed, n_rows, lo, hi):
    """What `draw_pairs` would draw from, without drawing; and n_rows, the counts of rows by all their other labels."""
    for i in range(lo, hi):
        start, size = row_span(block, i)
        xi, zi = span(block.x, start, size), span(block.z, start, size)
        a, b = label[i, 0], label[i, 1]
        for u in range(row_labels(xi, zi, block.gaps, row.n, row.used)):
            s = row.used[u]
            if a == b or (s != a and s != b):
                n_rows[s, row.n[s]] += 1
            row.n[s] = 0
        if a != b:
            n, _, n_a, n_b = weigh_two(xi, zi, a, b, tables, derive(key, block.number + i), pairs)
            fill_chances(n, pairs)
            weighed.n[i, 0], weighed.n[i, 1], weighed.n[i, 2] = n, n_a, n_b
            for k in range(n + 1):
                weighed.chance[start + i + k] = pairs.chance[n, k]


@compiled
def log_pairs(block, label, weighed, rise, out, lo, hi):
    """out[i] ← log Σ_k chance_k (α β_a)^(n_a + n − k) (α β_b)^(n_b + k). rise: (longest row + 1, S), of the α that is tried."""
    for i in range(lo, hi):
        start, _ = row_span(block, i)
        a, b = label[i, 0], label[i, 1]
        out[i] = 0.0
        if a == b:
            continue
        n, n_a, n_b = weighed.n[i, 0], weighed.n[i, 1], weighed.n[i, 2]
        chance, top, total = span(weighed.chance, start + i, n + 1), -np.inf, 0.0
        for k in range(n + 1):
            if chance[k] > 0.0:
                top = max(top, rise[n_a + n - k, a] + rise[n_b + k, b])
        for k in range(n + 1):
            if chance[k] > 0.0:
                total += chance[k] * exp(rise[n_a + n - k, a] + rise[n_b + k, b] - top)
        out[i] = top + log(total)


@inner
def two_labels(x, tables, rise, lanes, sums, at, key, w):
    """A label a that the whole row might have, drawn by its weight, and another, b, by how likely a cell is to leave a for it,
    Σ_j α β_b φ_b(x_j) / φ_a(x_j). They do not depend on z. Equal if there is nothing to draw. rise: the prior of a.
    """
    S, n = len(tables.a), len(x) - count_gaps(x)
    if n == 0 or S == 1:
        return 0, 0
    if S == 2:
        return 0, 1
    top = -np.inf
    for s in range(S):
        w[s] = sums[at + s] + rise[n * lanes + s]
        top = max(top, w[s])
    for s in range(S):
        w[s] = exp(w[s] - top)
    a = categorical(w, S, uniform(key, OWN))
    r, v = uniform(key, CELL) * leave_sum(x, tables.leave, a), np.intp(0)
    for j in range(len(x)):
        left = tables.leave[a, np.intp(x[j]) + 1]  # 0 for a missing cell
        if left > 0.0:
            v = np.intp(x[j]) + 1
            r -= left
            if r < 0.0:
                break
    for s in range(S):
        w[s] = row_weight(tables.a[s], 0.0, tables.phi[v * lanes + s]) if s != a else 0.0
    return a, categorical(w, S, uniform(key, PARTNER))


@inner
def weigh_two(x, z, a, b, tables, key, pairs):
    """(cells that are drawn jointly, at most MOST of those with label a or b; the first of them; how many others have a; b)."""
    cells, odds, m, n_b = pairs.cells, pairs.odds, 0, 0
    lanes = len(tables.phi) // tables.leave.shape[1]
    for j in range(len(x)):
        if x[j] >= 0 and (z[j] == a or z[j] == b):
            cells[m] = j
            m += 1
            n_b += z[j] == b
    n, first = min(m, MOST), 0
    if m > MOST:  # others stay as they are
        first = np.int64(uniform(key, FIRST) * (m - MOST + 1))
    for t in range(n):
        j = cells[first + t]
        at = (np.intp(x[j]) + 1) * lanes
        phi_a, phi_b = np.float64(tables.phi[at + a]), np.float64(tables.phi[at + b])
        p = phi_b / (phi_a + phi_b)
        odds[t] = p
        n_b -= z[j] == b
    return n, first, m - n - n_b, n_b


@inner
def fill_chance(chance, t, p):
    """chance[t + 1] ← the probability of each number of t + 1 cells, if the last one takes the second label with p."""
    chance[t, t + 1], chance[t + 1, 0] = 0.0, (1.0 - p) * chance[t, 0]
    for k in range(t + 1):
        chance[t + 1, k + 1] = (1.0 - p) * chance[t, k + 1] + p * chance[t, k]


@inner
def fill_chances(n, pairs):
    pairs.chance[0, 0] = 1.0
    for t in range(n):
        fill_chance(pairs.chance, t, pairs.odds[t])


@inner
def draw_two(x, z, a, b, tables, key, pairs):
    """The cells that have label a or b, at most MOST of them, drawn jointly."""
    n, first, n_a, n_b = weigh_two(x, z, a, b, tables, key, pairs)
    lanes = len(tables.phi) // tables.leave.shape[1]
    k = draw_number(n, n_a, n_b, a, b, tables.rise, lanes, uniform(key, NUMBER), pairs)
    assign_two(n, k, key, pairs)
    for t in range(n):
        z[pairs.cells[first + t]] = b if pairs.second[t] else a


@inner
def draw_number(n, n_a, n_b, a, b, rise, lanes, u, pairs):
    """How many of n cells take b, if n_a and n_b others have the labels.

    k ∝ chance_k (α β_a)^(n_a + n − k) (α β_b)^(n_b + k). Mostly all take the same, which is known without all chances: the
    prior of no number between is larger than that of 1 or of n − 1.
    """
    if n == 0:
        return 0
    chance, w, odds, none, all_b = pairs.chance, pairs.weight, pairs.odds, 1.0, 1.0
    for t in range(n):
        none *= 1.0 - odds[t]
        all_b *= odds[t]
    no_k, all_k = rise[(n_a + n) * lanes + a] + rise[n_b * lanes + b], rise[n_a * lanes + a] + rise[(n_b + n) * lanes + b]
    top, between = max(no_k, all_k), 0.0
    if n > 1:
        one = rise[(n_a + n - 1) * lanes + a] + rise[(n_b + 1) * lanes + b]
        all_but_one = rise[(n_a + 1) * lanes + a] + rise[(n_b + n - 1) * lanes + b]
        between = exp(max(one, all_but_one) - top) * max(0.0, 1.0 - none - all_b)
    none, all_b = none * exp(no_k - top), all_b * exp(all_k - top)
    most = none + between + all_b
    if u * most < none:
        return 0
    if (1.0 - u) * most <= all_b:
        return n
    fill_chances(n, pairs)
    top = -np.inf
    for k in range(n + 1):
        w[k] = rise[(n_a + n - k) * lanes + a] + rise[(n_b + k) * lanes + b]
        if chance[n, k] > 0.0:
            top = max(top, w[k])
    for k in range(n + 1):
        w[k] = chance[n, k] * exp(w[k] - top) if chance[n, k] > 0.0 else 0.0
    return categorical(w, n + 1, u)


@inner
def assign_two(n, k, key, pairs):
    """Which of n cells take the second label, if k do."""
    odds, chance, second = pairs.odds, pairs.chance, pairs.second
    for t in range(n - 1, -1, -1):
        second[t] = k > 0 and (k == t + 1 or uniform(key, EACH + t) * chance[t + 1, k] < odds[t] * chance[t, k - 1])
        k -= second[t]
