"""Sixteen float32 at a time, as a value inside compiled code.

Numba leaves `for s in range(S): acc[s] += table[v, s]` in memory, because it cannot prove that the arrays do not overlap.
A vector that is a value stays in a register. LLVM lowers it to AVX-512, two AVX2 or four NEON registers.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, models, register_model

WIDTH = 16
_F32 = ir.VectorType(ir.FloatType(), WIDTH)
_F64 = ir.VectorType(ir.DoubleType(), WIDTH)


class Lanes(types.Type):
    def __init__(self):
        super().__init__(f"Lanes({WIDTH} x float32)")


_lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _F32)


def _at(context, builder, array_type, array, index, vector):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@intrinsic
def zeros(typing_context):
    def generate(context, builder, signature, args):
        return ir.Constant(_F32, [0.0] * WIDTH)

    return _lanes(), generate


@intrinsic
def load(typing_context, array, index):
    """array[index : index + WIDTH] of a flat float32 array."""

    def generate(context, builder, signature, args):
        return builder.load(_at(context, builder, signature.args[0], *args, _F32), align=4)

    return _lanes(array, types.intp), generate


@intrinsic
def add(typing_context, a, b):
    def generate(context, builder, signature, args):
        return builder.fadd(*args)

    return _lanes(a, b), generate


@intrinsic
def add_to(typing_context, array, index, lanes):
    """array[index : index + WIDTH] += lanes, for a flat float64 array."""

    def generate(context, builder, signature, args):
        at = _at(context, builder, signature.args[0], args[0], args[1], _F64)
        builder.store(builder.fadd(builder.load(at, align=8), builder.fpext(args[2], _F64)), at, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate
