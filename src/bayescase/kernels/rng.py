"""Counter-based random numbers: every draw is a function of (key, index), so threads and blocks cannot change it.

SplitMix64's finaliser over a Weyl sequence: draw i of a stream is mix(key + (i + 1) γ), and the same function derives the
key of a sub-stream, seed → chain → sweep → purpose → row. Integers only, hence the same on every machine.
"""

from math import log, sqrt

import numpy as np

from .compiling import compiled, inner

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)
_FIRST = np.int64(0)  # not 0, which is a type of its own to compile for


@compiled
def derive(key, i):
    """The 64 bits number i of the stream `key`; also the key of its sub-stream i."""
    h = key + (np.uint64(i) + _ONE) * _GAMMA
    h = (h ^ (h >> _S30)) * _M1
    h = (h ^ (h >> _S27)) * _M2
    return h ^ (h >> _S31)


@inner
def uniform(key, i):
    """Uniform on [0, 1), 53 bits."""
    return np.float64(derive(key, i) >> _S11) * (1.0 / 9007199254740992.0)


@inner
def normal(key):
    """Standard normal: ratio of uniforms with Leva's (1992) bounds, so that a logarithm is rarely needed."""
    i = _FIRST
    while True:
        u = 1.0 - uniform(key, i)
        v = 1.7156 * (uniform(key, i + 1) - 0.5)
        i += 2
        x = u - 0.449871
        y = abs(v) + 0.386595
        bound = x * x + y * (0.19600 * y - 0.25472 * x)
        if bound < 0.27597 or (bound <= 0.27846 and v * v <= -4.0 * log(u) * u * u):
            return v / u


@inner
def log_gamma(shape, key):
    """log of a Gamma(shape, 1) draw (Marsaglia and Tsang 2000); the log does not underflow at small shapes."""
    if shape == 1.0:  # a value without a count at λ = 1: most entries of large tables
        return log(-log(1.0 - uniform(key, _FIRST)))
    boost = 0.0
    if shape < 1.0:  # Gamma(a) = Gamma(a + 1) U^(1/a)
        boost = log(1.0 - uniform(key, _FIRST)) / shape
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / sqrt(9.0 * d)
    i = _FIRST + 1
    while True:
        x = normal(derive(key, i))
        u = uniform(key, i + 1)
        i += 2
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if u < 1.0 - 0.0331 * x * x * x * x or log(u) < 0.5 * x * x + d * (1.0 - v + log(v)):
                return log(d * v) + boost


@inner
def categorical(w, n, u):
    """Index drawn with probability ∝ w[:n], from one uniform u. A weight of zero is never drawn."""
    total = 0.0
    for k in range(n):
        total += w[k]
    r = u * total
    last = 0
    for k in range(n):
        if w[k] > 0.0:
            r -= w[k]
            last = k
            if r < 0.0:
                return k
    return last


def stream(seed: int, *path: int) -> np.uint64:
    """Key of the sub-stream at seed → path, for use outside compiled code."""
    key = np.uint64(seed)
    for i in path:
        key = np.uint64(derive(key, int(i)))
    return key
