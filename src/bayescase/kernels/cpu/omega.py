"""ω of single features: guessed while the driver waits for prototypes, and drawn once they are known."""

from math import exp
from typing import NamedTuple

import numpy as np

from ..compiling import compiled, inner
from ..equations import omega_logit
from ..rng import derive, uniform


class Bits(NamedTuple):
    """ω as it would be with other prototypes, made while the driver waits for the true ones."""

    u: np.ndarray  # (S, P) their codes; UNKNOWN where nothing was made
    logit: np.ndarray  # (S, P)
    prob: np.ndarray  # (S, P)
    omega: np.ndarray  # (S, P)


UNKNOWN = -2


def no_bits(S, P):
    return Bits(np.full((S, P), UNKNOWN), np.zeros((S, P)), np.zeros((S, P)), np.zeros((S, P), dtype=np.bool_))


@compiled
def guess_omega(P, u, evidence, subspaces, key, bits):
    """What `update_omega` makes if the prototypes' codes are u."""
    for s in range(len(subspaces.omega)):
        for j in range(P):
            bits.u[s, j] = u[s, j]
            draw_bit(u[s, j], evidence, subspaces, key, s, j, bits)


@compiled
def update_omega(P, u, evidence, subspaces, key, prob, bits):
    """ω_sj of P single features given the prototypes' codes u, φ integrated out; prob[s, j] = p(ω_sj = 1 | rest).

    Returns Σ ω E + log p(ω) − Σ log(1 − q). What was guessed is used where it is right, and forgotten.
    """
    total = 0.0
    for s in range(len(subspaces.omega)):
        for j in range(P):
            if bits.u[s, j] != u[s, j]:
                draw_bit(u[s, j], evidence, subspaces, key, s, j, bits)
            bits.u[s, j] = UNKNOWN
            prob[s, j], subspaces.omega[s, j] = bits.prob[s, j], bits.omega[s, j]
            total += bits.omega[s, j] * bits.logit[s, j]
    return total


@inner
def draw_bit(u, evidence, subspaces, key, s, j, bits):
    """ω_sj if the prototype has value u."""
    held, e = subspaces.held, evidence[u, s] if u >= 0 else 0.0
    logit = omega_logit(subspaces.q[s, j], e)
    bits.logit[s, j] = logit
    if len(held) > 0 and held[s, j] >= 0:
        bits.prob[s, j] = bits.omega[s, j] = held[s, j]
    else:
        bits.prob[s, j] = 1.0 / (1.0 + exp(-logit))
        bits.omega[s, j] = uniform(derive(key, s), j) < bits.prob[s, j]
