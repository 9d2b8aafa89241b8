"""The labels of a row: found, counted, renamed and noted in the statistics."""

import numpy as np

from ..compiling import inlined, inner


@inner
def row_labels(x, z, gaps, n, used):
    """n_is of a row, and the labels in use by first appearance. n must be 0 before. Returns how many labels there are.

    Most rows have one or two labels and most tables no gaps, so these are looked for first, in loops that can be vectorised.
    """
    P = len(x)
    if P == 0:
        return 0
    first, observed = 0, P
    if gaps:
        while first < P and x[first] < 0:
            first += 1
        if first == P:
            return 0
        for j in range(P):
            observed -= x[j] < 0
    a, mixed = z[first], False
    if observed < P:
        for j in range(P):
            mixed |= (x[j] >= 0) & (z[j] != a)
    else:
        for j in range(P):
            mixed |= z[j] != a
    used[0] = a
    if not mixed:
        n[a] = observed
        return 1
    second = first + 1
    while x[second] < 0 or z[second] == a:
        second += 1
    b, of_a, of_b = z[second], 0, 0
    for j in range(P):
        of_a += (x[j] >= 0) & (z[j] == a)
        of_b += (x[j] >= 0) & (z[j] == b)
    if of_a + of_b == observed:
        used[1], n[a], n[b] = b, of_a, of_b
        return 2
    k = 0
    for j in range(P):
        if x[j] >= 0:
            if n[z[j]] == 0:
                used[k] = z[j]
                k += 1
            n[z[j]] += 1
    return k


@inlined
def count_gaps(x):
    n = 0
    for j in range(len(x)):
        n += x[j] < 0
    return n


@inner
def used_labels(n, used):
    """The labels with cells; returns how many there are."""
    k = 0
    for s in range(len(n)):
        if n[s] > 0:
            used[k] = s
            k += 1
    return k


@inner
def drop(used, k, a):
    """Remove label a from the k labels in use."""
    for t in range(k):
        if used[t] == a:
            used[t] = used[k - 1]
            return k - 1
    return k


@inner
def drop_empty(used, k, n):
    """Remove the labels without cells from the k labels in use."""
    kept = np.int64(0)
    for t in range(k):
        if n[used[t]] > 0:
            used[kept] = used[t]
            kept += 1
    return kept


@inner
def move_counts(x, a, b, delta):
    """A whole row moves from label a to label b."""
    for j in range(len(x)):
        if x[j] >= 0:
            delta[x[j], a] -= 1
            delta[x[j], b] += 1


@inner
def rename_cells(x, z, to, delta):
    """Every cell of a row with label a gets to[a]."""
    for j in range(len(x)):
        a = z[j]
        if x[j] >= 0 and to[a] != a:
            delta[x[j], a] -= 1
            delta[x[j], to[a]] += 1
            z[j] = to[a]


@inner
def note_row(k, row, tally):
    """Add the row's counts to the statistics and set n back to 0."""
    n, used = row.n, row.used
    observed, most, b = 0, 0, 0
    for t in range(k):
        s = used[t]
        tally.n_rows[s, n[s]] += 1
        observed += n[s]
        if n[s] > most:
            most, b = n[s], s
        n[s] = 0
    tally.main[b] += 1
    tally.purity[0] += (most << 32) // observed


@inlined
def note_whole(s, n, tally):
    """`note_row` for a row whose n cells have label s."""
    tally.n_rows[s, n] += 1
    tally.main[s] += 1
    tally.purity[0] += 1 << 32
