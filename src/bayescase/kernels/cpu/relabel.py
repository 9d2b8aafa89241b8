"""Relabelling: all cells of a row that share a label take another one together."""

from math import exp

import numpy as np

from ..compiling import inlined, inner
from ..rng import uniform
from .intrinsics import WIDTH, add, add_to, differences, load, others, store, total, zeros
from .lanes_math import exp_lanes
from .sums import TILE

TOO_LARGE = 1e37  # Σ exp beyond this is made anew, with the largest term as 1


@inner
def group_sums(x, z, log_phi, lanes, k, sums, at, row):
    """row.groups[t] = Σ_j log φ(x_j) over the cells whose label is used[t].

    sums[at : at + lanes] is the sum over all cells, so the largest group is what the others leave.
    """
    n, used, groups, where = row.n, row.used, row.groups, row.where
    largest = 0
    for t in range(1, k):
        if n[used[t]] > n[used[largest]]:
            largest = t
    groups[: k * lanes] = 0.0
    for s in range(lanes):
        groups[largest * lanes + s] = sums[at + s]
    for t in range(k):
        if t == largest:
            continue
        size = 0
        for j in range(len(x)):
            where[size] = (np.intp(x[j]) + 1) * lanes
            size += (x[j] >= 0) & (z[j] == used[t])
        for s in range(0, lanes, 2 * WIDTH):
            two = s + WIDTH < lanes
            for r0 in range(0, size, TILE):
                a, b = zeros(), zeros()
                for r in range(r0, min(r0 + TILE, size)):
                    a = add(a, load(log_phi, where[r] + s))
                    if two:
                        b = add(b, load(log_phi, where[r] + s + WIDTH))
                add_to(groups, t * lanes + s, a)
                if two:
                    add_to(groups, t * lanes + s + WIDTH, b)
        for s in range(lanes):
            groups[largest * lanes + s] -= groups[t * lanes + s]


@inner
def relabel_row(x, rise, key, sums, at, lanes, k, row):
    """Each group of cells that share a label draws a new one among its own and those the row does not use, ∝ Π φ.

    sums[at + t · lanes + s] = Σ log φ_s over the cells of group t. Groups are taken in the order of their first cells, which
    the move cannot change, so that the scan is exact. The group stays with probability 1 / (1 + Σ exp(w_s − w_own)), summed
    over the labels that the row does not use: row.barred is −∞ for the others. Leaves old label → new label in row.to, and
    returns how many groups moved.
    """
    n, used, to, barred, e = row.n, row.used, row.to, row.barred, row.e
    for t in range(k):
        barred[used[t]] = -np.inf
    moved = 0
    for t in range(k):
        own, first = used[t], at + t * lanes
        size = n[own]
        acc, own_weight = zeros(), sums[first + own] + rise[size * lanes + own]
        for s in range(0, lanes, WIDTH):
            part = exp_lanes(add(differences(sums, first + s, rise, size * lanes + s, own_weight), load(barred, s)))
            store(e, s, part)
            acc = add(acc, part)
        leave, to[own] = np.float64(total(acc)), own
        u, stay = uniform(key, len(x) + t), 1.0
        if leave > TOO_LARGE:
            leave, stay = weigh_again(sums, first, rise, size * lanes, own, row)
        r = u * (leave + stay)
        if r < leave:
            b = pick(e, len(n), own, r)
            barred[own], barred[b] = 0.0, -np.inf
            n[own], n[b], used[t], to[own] = 0, size, b, b
            moved += 1
    for t in range(k):
        barred[used[t]] = 0.0
    return moved


@inlined
def relabel_whole(rise, u, sums, at, lanes, own, n, row):
    """The same for a row whose n cells share one label, from the uniform number u: the label that they take."""
    S, e, first = len(row.n), row.e, n * lanes
    acc, own_weight = zeros(), sums[at + own] + rise[first + own]
    for s in range(0, lanes, WIDTH):
        part = others(exp_lanes(differences(sums, at + s, rise, first + s, own_weight)), s, own, S)
        store(e, s, part)
        acc = add(acc, part)
    leave = np.float64(total(acc))
    if leave > TOO_LARGE:
        return relabel_hopeless(rise, u, sums, at, lanes, own, n, row)
    r = u * (leave + 1.0)
    return pick(e, S, own, r) if r < leave else own


@inner
def relabel_hopeless(rise, u, sums, at, lanes, own, n, row):
    """`relabel_whole` if the own label is next to impossible."""
    row.barred[own] = -np.inf
    leave, stay = weigh_again(sums, at, rise, n * lanes, own, row)
    row.barred[own] = 0.0
    r = u * (leave + stay)
    return pick(row.e, len(row.n), own, r) if r < leave else own


@inner
def weigh_again(sums, first, rise, rise_first, own, row):
    """(Σ of row.e, weight of the own label), made anew with the largest term as 1."""
    S, e, barred = len(row.n), row.e, row.barred
    top = -np.inf
    for s in range(S):
        if barred[s] == 0.0:
            top = max(top, sums[first + s] + rise[rise_first + s])
    leave = 0.0
    for s in range(S):
        e[s] = exp(sums[first + s] + rise[rise_first + s] - top) if barred[s] == 0.0 else 0.0
        leave += e[s]
    return leave, exp(sums[first + own] + rise[rise_first + own] - top)


@inner
def pick(w, S, own, r):
    """The label that owns r < Σ w, never the own one."""
    last = own
    for s in range(S):
        if w[s] > 0.0 and s != own:
            last = s
            r -= w[s]
            if r < 0.0:
                return s
    return last
