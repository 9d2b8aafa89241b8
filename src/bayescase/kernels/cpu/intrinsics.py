"""What numba lacks: sixteen float32, or float64, as one value, prefetching, and parts of an array at no cost.

Numba leaves `for s in range(S): acc[s] += table[v, s]` in memory, because it cannot prove that the arrays do not overlap.
A vector that is a value stays in a register. LLVM lowers it to AVX-512, two AVX2 or four NEON registers.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array

WIDTH = 16
F32 = ir.VectorType(ir.FloatType(), WIDTH)
F64 = ir.VectorType(ir.DoubleType(), WIDTH)


class Lanes(types.Type):
    def __init__(self):
        super().__init__(f"Lanes({WIDTH} x float32)")


class WideLanes(types.Type):
    def __init__(self):
        super().__init__(f"Lanes({WIDTH} x float64)")


LANES, WIDE = Lanes(), WideLanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, F32)


@register_model(WideLanes)
class _WideLanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, F64)


def address(context, builder, array_type, array, index, vector):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [index]), vector.as_pointer())


@intrinsic
def zeros(typing_context):
    def generate(context, builder, signature, args):
        return ir.Constant(F32, [0.0] * WIDTH)

    return LANES(), generate


@intrinsic
def load(typing_context, array, index):
    """array[index : index + WIDTH] of a flat float32 array."""

    def generate(context, builder, signature, args):
        return builder.load(address(context, builder, signature.args[0], *args, F32), align=4)

    return LANES(array, types.intp), generate


@intrinsic
def add(typing_context, a, b):
    def generate(context, builder, signature, args):
        return builder.fadd(*args)

    return a(a, b), generate


@intrinsic
def sub(typing_context, a, b):
    def generate(context, builder, signature, args):
        return builder.fsub(*args)

    return a(a, b), generate


@intrinsic
def mul(typing_context, a, b):
    def generate(context, builder, signature, args):
        return builder.fmul(*args)

    return a(a, b), generate


@intrinsic
def div(typing_context, a, b):
    def generate(context, builder, signature, args):
        return builder.fdiv(*args)

    return a(a, b), generate


@intrinsic
def larger(typing_context, a, b):
    """Lane by lane."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", *args), *args)

    return LANES(a, b), generate


@intrinsic
def smaller(typing_context, a, b):
    """Lane by lane."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", *args), *args)

    return LANES(a, b), generate


def _every_word(builder, number):
    """A whole number in every lane."""
    word = ir.VectorType(ir.IntType(32), WIDTH)
    nothing = ir.Constant(word, ir.Undefined)
    first = builder.insert_element(nothing, builder.trunc(number, ir.IntType(32)), ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(word, [0] * WIDTH))


def _order():
    return ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), list(range(WIDTH)))


@intrinsic
def others(typing_context, lanes, s, own, S):
    """The same, with 0 for label `own` and in lanes that no label has: the first lane is label s, of S in all."""

    def generate(context, builder, signature, args):
        value, s, own, S = args
        label = builder.add(_every_word(builder, s), _order())
        keep = builder.and_(
            builder.icmp_signed("!=", label, _every_word(builder, own)),
            builder.icmp_signed("<", label, _every_word(builder, S)),
        )
        return builder.select(keep, value, ir.Constant(F32, [0.0] * WIDTH))

    return LANES(lanes, types.intp, types.intp, types.intp), generate


@intrinsic
def first_lanes(typing_context, lanes, size, rest):
    """Those before lane `size`, and the number `rest` in the others."""

    def generate(context, builder, signature, args):
        value, size, rest = args
        nothing = ir.Constant(F32, ir.Undefined)
        first = builder.insert_element(nothing, rest, ir.IntType(32)(0))
        word = ir.VectorType(ir.IntType(32), WIDTH)
        other = builder.shuffle_vector(first, nothing, ir.Constant(word, [0] * WIDTH))
        return builder.select(builder.icmp_signed("<", _order(), _every_word(builder, size)), value, other)

    return LANES(lanes, types.intp, types.float32), generate


@intrinsic
def every(typing_context, number):
    """A number in every lane."""

    def generate(context, builder, signature, args):
        word = ir.VectorType(ir.IntType(32), WIDTH)
        first = builder.insert_element(ir.Constant(F32, ir.Undefined), args[0], ir.IntType(32)(0))
        return builder.shuffle_vector(first, ir.Constant(F32, ir.Undefined), ir.Constant(word, [0] * WIDTH))

    return LANES(types.float32), generate


def _fold(builder, value, join):
    """All lanes joined to one number, halves to halves: the same order on every processor."""
    width = WIDTH
    while width > 1:
        width //= 2
        order = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width)))
        other = ir.Constant(ir.VectorType(ir.IntType(32), width), list(range(width, 2 * width)))
        nothing = ir.Constant(value.type, ir.Undefined)
        value = join(builder.shuffle_vector(value, nothing, order), builder.shuffle_vector(value, nothing, other))
    return builder.extract_element(value, ir.IntType(32)(0))


@intrinsic
def total(typing_context, lanes):
    """Their sum."""

    def generate(context, builder, signature, args):
        return _fold(builder, args[0], builder.fadd)

    return (types.float32 if lanes == LANES else types.float64)(lanes), generate


@intrinsic
def largest(typing_context, lanes):
    """The largest of them."""

    def generate(context, builder, signature, args):
        return _fold(builder, args[0], lambda a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))

    return (types.float32 if lanes == LANES else types.float64)(lanes), generate


@intrinsic
def store(typing_context, array, index, lanes):
    """array[index : index + WIDTH] = lanes, for a flat float32 array."""

    def generate(context, builder, signature, args):
        builder.store(args[2], address(context, builder, signature.args[0], args[0], args[1], F32), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def differences(typing_context, array, index, other, other_index, number):
    """array[index + k] + other[other_index + k] − number of flat float64 arrays, as lanes: summed in float64 first."""

    def generate(context, builder, signature, args):
        a = builder.load(address(context, builder, signature.args[0], args[0], args[1], F64), align=8)
        b = builder.load(address(context, builder, signature.args[2], args[2], args[3], F64), align=8)
        word = ir.VectorType(ir.IntType(32), WIDTH)
        first = builder.insert_element(ir.Constant(F64, ir.Undefined), args[4], ir.IntType(32)(0))
        every = builder.shuffle_vector(first, ir.Constant(F64, ir.Undefined), ir.Constant(word, [0] * WIDTH))
        return builder.fptrunc(builder.fsub(builder.fadd(a, b), every), F32)

    return LANES(array, types.intp, other, types.intp, types.float64), generate


@intrinsic
def wide_load(typing_context, array, index, size):
    """array[index : index + WIDTH] of a flat array of any numbers, as float64. The lanes from `size` on are not read, and 0."""
    element = array.dtype

    def generate(context, builder, signature, args):
        kind = ir.VectorType(context.get_data_type(element), WIDTH)
        bit = ir.VectorType(ir.IntType(1), WIDTH)
        at = address(context, builder, signature.args[0], args[0], args[1], kind)
        there = builder.icmp_signed("<", _order(), _every_word(builder, args[2]))
        function = ir.FunctionType(kind, [at.type, ir.IntType(32), bit, kind])
        name = f"llvm.masked.load.v{WIDTH}{kind.element.intrinsic_name}.p0"
        call = cgutils.get_or_insert_function(builder.module, function, name)
        value = builder.call(call, [at, ir.IntType(32)(element.bitwidth // 8), there, ir.Constant(kind, None)])
        if isinstance(element, types.Float):
            return value if element.bitwidth == 64 else builder.fpext(value, F64)
        return builder.sitofp(value, F64)

    return WIDE(array, types.intp, types.intp), generate


@intrinsic
def wide_store(typing_context, array, index, lanes, size):
    """array[index + k] = lanes[k] for k < size, for a flat float64 array."""

    def generate(context, builder, signature, args):
        bit = ir.VectorType(ir.IntType(1), WIDTH)
        at = address(context, builder, signature.args[0], args[0], args[1], F64)
        there = builder.icmp_signed("<", _order(), _every_word(builder, args[3]))
        function = ir.FunctionType(ir.VoidType(), [F64, at.type, ir.IntType(32), bit])
        call = cgutils.get_or_insert_function(builder.module, function, f"llvm.masked.store.v{WIDTH}f64.p0")
        builder.call(call, [args[2], at, ir.IntType(32)(8), there])
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes, types.intp), generate


@intrinsic
def wide_every(typing_context, number):
    """A float64 in every lane."""

    def generate(context, builder, signature, args):
        word = ir.VectorType(ir.IntType(32), WIDTH)
        first = builder.insert_element(ir.Constant(F64, ir.Undefined), args[0], ir.IntType(32)(0))
        return builder.shuffle_vector(first, ir.Constant(F64, ir.Undefined), ir.Constant(word, [0] * WIDTH))

    return WIDE(types.float64), generate


@intrinsic
def where_less(typing_context, a, b, yes, no):
    """Lane by lane: yes if a < b, else no."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("<", args[0], args[1]), args[2], args[3])

    return yes(a, b, yes, no), generate


@intrinsic
def where_same(typing_context, a, b, yes, no):
    """Lane by lane: yes if a = b, else no."""

    def generate(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered("==", args[0], args[1]), args[2], args[3])

    return yes(a, b, yes, no), generate


@intrinsic
def widen(typing_context, lanes):
    def generate(context, builder, signature, args):
        return builder.fpext(args[0], F64)

    return WIDE(lanes), generate


@intrinsic
def narrow(typing_context, wide):
    def generate(context, builder, signature, args):
        return builder.fptrunc(args[0], F32)

    return LANES(wide), generate


@intrinsic
def add_to(typing_context, array, index, lanes):
    """array[index : index + WIDTH] += lanes, for a flat float64 array."""

    def generate(context, builder, signature, args):
        at = address(context, builder, signature.args[0], args[0], args[1], F64)
        builder.store(builder.fadd(builder.load(at, align=8), builder.fpext(args[2], F64)), at, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@intrinsic
def take(typing_context, array, index):
    """array.flat[index] of a C-ordered array, one at a time: LLVM would gather, which is slower on many processors."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "monotonic", array.dtype.bitwidth // 8)

    return array.dtype(array, types.intp), generate


@intrinsic
def prefetch(typing_context, array, index):
    """Ask for the cache line of array[index], a flat array; index may lie beyond its end."""

    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        at = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [at.type, word, word, word])
        call = builder.module.declare_intrinsic("llvm.prefetch", (at.type,), kind)
        builder.call(call, [at, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic
def span(typing_context, array, start, size):
    """array[start : start + size] of a flat array, which must have as many: a slice would look whether it has."""

    def generate(context, builder, signature, args):
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, args[0])
        part = context.make_array(signature.return_type)(context, builder)
        itemsize = view.itemsize
        populate_array(
            part,
            data=builder.gep(view.data, [args[1]]),
            shape=cgutils.pack_array(builder, [args[2]], ty=itemsize.type),
            strides=cgutils.pack_array(builder, [itemsize], ty=itemsize.type),
            itemsize=itemsize,
            meminfo=None,
        )
        return part._getvalue()

    return array(array, types.intp, types.intp), generate
