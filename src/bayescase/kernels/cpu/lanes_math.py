"""Sixteen float32 at a time: exp, log, and draws of Gamma variables on the log scale.

A Gamma draw needs four uniform numbers of 32 bits each, from two hashes. What the vector cannot decide is left as NaN, and
`log_gamma_again` decides it in float64 from the same numbers, by the same rule (Marsaglia and Tsang 2000). One lane in thirty
is rejected, and drawn from other numbers.
"""

from math import cos, log, pi, sqrt

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import Chebyshev

from ..compiling import inner
from ..rng import derive, log_gamma
from .intrinsics import F32, F64, LANES, WIDTH, address, first_lanes, store

_I32, _I64 = ir.VectorType(ir.IntType(32), WIDTH), ir.VectorType(ir.IntType(64), WIDTH)
_GAMMA, _M1, _M2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # as in `rng`
LARGE = 1000.0  # shape: beyond it, float32 has too few digits for the second test
CLEARLY = 0.01  # below LARGE, a rejection by this much is no rounding error of float32
LOWEST = -87.0  # exp is 0 below; float32 has nothing smaller but subnormal numbers
HIGHEST = 88.0


def _fit(function, degree, low, high):
    """Coefficients of a polynomial that agrees with the function to float32."""
    fitted = Chebyshev.interpolate(function, degree, (low, high))
    return tuple(fitted.convert(kind=Polynomial).coef.tolist())


EXP = _fit(np.exp, 6, -0.5 * np.log(2.0), 0.5 * np.log(2.0))
_LOG = _fit(lambda r: np.log1p(r) / r, 10, np.sqrt(0.5) - 1.0, np.sqrt(2.0) - 1.0)  # log(1 + r) / r
_COS = _fit(lambda y: np.cos(2.0 * np.pi * np.sqrt(y)), 8, 0.0, 0.25)  # cos(2 π t) in t²


def _const(value, kind=F32):
    return ir.Constant(kind, [value] * WIDTH)


def _every(builder, value, kind):
    """A number in every lane."""
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), ir.Constant(_I32, [0] * WIDTH))


def _polynomial(builder, coefficients, x):
    value = _const(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value = builder.fadd(builder.fmul(value, x), _const(coefficient))
    return value


def _fused(builder, coefficients, x):
    """The same with fused multiply-add, for values that no other engine computes."""
    kind = x.type
    function = ir.FunctionType(kind, [kind, kind, kind])
    fma = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{WIDTH}{kind.element.intrinsic_name}")
    value = _const(coefficients[-1], kind)
    for coefficient in coefficients[-2::-1]:
        value = builder.call(fma, [value, x, _const(coefficient, kind)])
    return value


def _log(builder, x):
    """Of positive, normal numbers: log of the mantissa, between √½ and √2, plus the exponent times ln 2."""
    bits = builder.sub(builder.bitcast(x, _I32), _const(0x3F3504F3, _I32))  # √½
    exponent = builder.ashr(bits, _const(23, _I32))
    mantissa = builder.add(builder.and_(bits, _const(0x007FFFFF, _I32)), _const(0x3F3504F3, _I32))
    r = builder.fsub(builder.bitcast(mantissa, F32), _const(1.0))
    e = builder.sitofp(exponent, F32)
    return builder.fadd(builder.fmul(r, _fused(builder, _LOG, r)), builder.fmul(e, _const(0.6931471805599453)))


def _hash(builder, keys, number):
    """rng.derive(key, number) in every lane."""
    step = builder.mul(builder.add(number, _const(1, _I64)), _const(_GAMMA, _I64))
    h = builder.add(keys, step)
    for shift, factor in ((30, _M1), (27, _M2)):
        h = builder.mul(builder.xor(h, builder.lshr(h, _const(shift, _I64))), _const(factor, _I64))
    return builder.xor(h, builder.lshr(h, _const(31, _I64)))


def _uniforms(builder, bits):
    """Two numbers above 0 and at most 1 from 64 bits: (k + ½) / 2³² of the upper and of the lower half."""
    both = (builder.trunc(builder.lshr(bits, _const(32, _I64)), _I32), builder.trunc(bits, _I32))
    return [builder.fadd(builder.fmul(builder.uitofp(half, F32), _const(2.0**-32)), _const(2.0**-33)) for half in both]


def _exp(builder, x):
    low = builder.fcmp_ordered("<", x, _const(LOWEST))
    x = builder.select(builder.fcmp_ordered(">", x, _const(HIGHEST)), _const(HIGHEST), builder.select(low, _const(0.0), x))
    # x = n ln 2 + r; adding and taking away 1.5 · 2²³ rounds to a whole number
    magic = _const(12582912.0)
    n = builder.fsub(builder.fadd(builder.fmul(x, _const(1.4426950408889634)), magic), magic)
    r = builder.fsub(builder.fsub(x, builder.fmul(n, _const(0.693359375))), builder.fmul(n, _const(-2.12194440e-4)))
    power = builder.bitcast(_polynomial(builder, EXP, r), _I32)
    scaled = builder.add(power, builder.shl(builder.fptosi(n, _I32), _const(23, _I32)))
    return builder.select(low, _const(0.0), builder.bitcast(scaled, F32))


@intrinsic
def exp_lanes(typing_context, lanes):
    """exp of every lane; 0 below LOWEST, and no more than exp(HIGHEST)."""

    def generate(context, builder, signature, args):
        return _exp(builder, args[0])

    return LANES(lanes), generate


@intrinsic
def log_lanes(typing_context, lanes):
    """log of every lane, which must be positive and no subnormal number."""

    def generate(context, builder, signature, args):
        return _log(builder, args[0])

    return LANES(lanes), generate


@intrinsic
def wide_log(typing_context, wide):
    """log of every float64 lane, which must be positive and no subnormal number, to the last digits.

    As above; with r = (m − 1) / (m + 1) the log of the mantissa m is 2 (r + r³/3 + r⁵/5 + …), and |r| < 0.172.
    """

    def generate(context, builder, signature, args):
        root_half, exponent_bits = 0x3FE6A09E667F3BCD, 52
        bits = builder.sub(builder.bitcast(args[0], _I64), _const(root_half, _I64))
        exponent = builder.sitofp(builder.ashr(bits, _const(exponent_bits, _I64)), F64)
        mantissa = builder.add(builder.and_(bits, _const((1 << exponent_bits) - 1, _I64)), _const(root_half, _I64))
        m, one = builder.bitcast(mantissa, F64), _const(1.0, F64)
        r = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
        value = _fused(builder, [2.0 / k for k in range(1, 22, 2)], builder.fmul(r, r))
        return builder.fadd(builder.fmul(r, value), builder.fmul(exponent, _const(log(2.0), F64)))

    return wide(wide), generate


@intrinsic
def no_number(typing_context, lanes):
    """Which lanes are NaN or ∞, as bits."""

    def generate(context, builder, signature, args):
        bits = builder.bitcast(builder.fcmp_unordered(">=", args[0], _const(float("inf"))), ir.IntType(WIDTH))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(lanes), generate


@intrinsic
def log_gamma_lanes(typing_context, keys, numbers, index, number, shapes):
    """log of Gamma(shape, 1) draws for shapes[index : index + WIDTH], a flat float32 array; ∞ if rejected, NaN if undecided.

    Lane k is the draw of the key derive(keys[index + k], numbers[index + k] + number); keys and numbers are flat, of 64 bits.
    """

    def generate(context, builder, signature, args):
        keys, numbers = (
            builder.load(address(context, builder, signature.args[k], args[k], args[2], _I64), align=8) for k in (0, 1)
        )
        shape = builder.load(address(context, builder, signature.args[4], args[4], args[2], F32), align=4)
        h = _hash(builder, keys, builder.add(numbers, _every(builder, args[3], _I64)))
        u1, u2 = _uniforms(builder, h)
        u3, u4 = _uniforms(builder, _hash(builder, h, _const(0, _I64)))
        kind = ir.FunctionType(F32, [F32])
        root = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.v{WIDTH}f32")
        radius = builder.call(root, [builder.fmul(_log(builder, u1), _const(-2.0))])
        t = builder.fsub(u2, _const(0.5))
        x = builder.fmul(radius, builder.fneg(_fused(builder, _COS, builder.fmul(t, t))))
        small = builder.fcmp_ordered("<", shape, _const(1.0))
        d = builder.fsub(builder.select(small, builder.fadd(shape, _const(1.0)), shape), _const(1.0 / 3.0))
        c = builder.fdiv(_const(1.0), builder.call(root, [builder.fmul(d, _const(9.0))]))
        v = builder.fadd(_const(1.0), builder.fmul(c, x))
        positive = builder.fcmp_ordered(">", v, _const(1e-6))
        log_v = builder.fmul(_log(builder, builder.select(positive, v, _const(1.0))), _const(3.0))
        v3 = builder.fmul(v, builder.fmul(v, v))
        x2 = builder.fmul(x, x)
        sure = builder.fcmp_ordered("<", u3, builder.fsub(_const(1.0), builder.fmul(builder.fmul(x2, x2), _const(0.0331))))
        ratio = builder.fmul(d, builder.fadd(builder.fsub(_const(1.0), v3), log_v))
        over = builder.fsub(_log(builder, u3), builder.fadd(builder.fmul(x2, _const(0.5)), ratio))
        exact = builder.fcmp_ordered("<", d, _const(LARGE))
        second = builder.and_(builder.fcmp_ordered("<", over, _const(0.0)), exact)
        accepted = builder.and_(positive, builder.or_(sure, second))
        rejected = builder.and_(builder.fcmp_ordered(">", over, _const(CLEARLY)), builder.and_(exact, positive))
        boost = builder.select(small, builder.fdiv(_log(builder, u4), shape), _const(0.0))
        value = builder.fadd(builder.fadd(_log(builder, d), log_v), boost)
        left = builder.select(rejected, _const(float("inf")), _const(float("nan")))
        return builder.select(accepted, value, left)

    return LANES(keys, numbers, types.intp, types.int64, shapes), generate


@intrinsic
def may_win(typing_context, key, s, sums, at, add, score):
    """Which of the labels s .. s + WIDTH - 1, as bits, may have sums[at] + add − log(−log u) > score[s], u = uniform(key, s).

    As −log u ≥ 1 − u, it has not if 1 − u ≥ exp(x) with x = sums[at] + add − score[s]; and 2^(n + f) ≤ 2^n (1 + f), a float32
    whose bits are those of a whole number. So nearly all are decided without log or exp, with some room for rounding. sums and
    score are flat float64 arrays; at belongs to s.
    """

    def generate(context, builder, signature, args):
        key, s, sums, at, number, score = args
        numbers = builder.add(_every(builder, s, _I64), ir.Constant(_I64, list(range(WIDTH))))
        rest = builder.not_(_hash(builder, _every(builder, key, _I64), numbers))  # 1 − u in units of 2⁻⁶⁴
        least = builder.fmul(builder.uitofp(builder.trunc(builder.lshr(rest, _const(32, _I64)), _I32), F32), _const(2.0**-32))
        w = builder.load(address(context, builder, signature.args[2], sums, at, F64), align=8)
        best = builder.load(address(context, builder, signature.args[5], score, s, F64), align=8)
        short = builder.fptrunc(builder.fsub(builder.fadd(w, _every(builder, number, F64)), best), F32)
        short = builder.select(builder.fcmp_ordered(">", short, _const(LOWEST)), short, _const(LOWEST))  # −∞ − −∞ as well
        short = builder.select(builder.fcmp_ordered("<", short, _const(HIGHEST)), short, _const(HIGHEST))
        bits = builder.fadd(builder.fmul(short, _const(2.0**23 / np.log(2.0))), _const(127.0 * 2.0**23))
        bound = builder.fmul(builder.bitcast(builder.fptosi(bits, _I32), F32), _const(1.0001))
        return builder.zext(builder.bitcast(builder.fcmp_ordered("<=", least, bound), ir.IntType(WIDTH)), ir.IntType(64))

    return types.int64(key, types.int64, sums, types.intp, types.float64, score), generate


@inner
def log_gamma_again(shape, key, rejected):
    """What `log_gamma_lanes` left for this lane's key, in float64: a decision by the same numbers, or other numbers."""
    if rejected:
        return log_gamma(shape, derive(key, np.int64(1)))
    h = derive(key, np.int64(0))
    u1, u2, u3 = half(key >> np.uint64(32)), half(key & np.uint64(0xFFFFFFFF)), half(h >> np.uint64(32))
    d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
    x = sqrt(-2.0 * log(u1)) * cos(2.0 * pi * u2)
    v = 1.0 + x / sqrt(9.0 * d)
    if v > 0.0:
        v = v * v * v
        if log(u3) < 0.5 * x * x + d * (1.0 - v + log(v)):
            boost = log(half(h & np.uint64(0xFFFFFFFF))) / shape if shape < 1.0 else 0.0
            return log(d * v) + boost
    return log_gamma(shape, derive(key, np.int64(1)))


@inner
def half(bits):
    return (np.float64(bits) + 0.5) * 2.0**-32


@inner
def draw_log_gammas(keys, numbers, number, shapes, n, out, at):
    """out[at + k] = log of a Gamma(shapes[k], 1) draw of the key derive(keys[k], numbers[k] + number) for k < n.

    The arrays are as long as n lanes need; of the last ones, those from n on get 0.
    """
    for k0 in range(0, n, WIDTH):
        drawn = first_lanes(log_gamma_lanes(keys, numbers, k0, number, shapes), n - k0, np.float32(0.0))
        store(out, at + k0, drawn)
        left, k = no_number(drawn), k0
        while left:
            if left & 1:
                key = derive(keys[k], numbers[k] + number)
                out[at + k] = log_gamma_again(np.float64(shapes[k]), key, out[at + k] == np.inf)
            left >>= 1
            k += 1
