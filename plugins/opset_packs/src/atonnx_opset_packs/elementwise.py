"""Arithmetic, comparison and logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import FLOATS, refuse

pack = OpsetPack(__name__)

for _name in ("Abs", "Ceil", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Sqrt"):
    pack.same(_name, 6, 13)
for _name in ("Add", "Div", "Mul", "Sub"):
    pack.same(_name, 7, 13, 14)
for _name in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"):
    pack.same(_name, 7, 22)
for _name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh"):
    pack.same(_name, 9, 22)
for _name in ("Mean", "Sum"):
    pack.same(_name, 8, 13)
for _name in ("Erf", "Greater", "Less", "Sign"):
    pack.same(_name, 9, 13)
for _name in ("GreaterOrEqual", "LessOrEqual"):
    pack.same(_name, 12, 16)
for _name in ("Max", "Min", "Clip", "Pow"):
    pack.same(_name, 12, 13)
pack.same("Equal", 11, 13, 19)
pack.same("IsInf", 10, 20)
pack.same("IsNaN", 9, 13, 20)
pack.same("Mod", 10, 13)
pack.same("Round", 11, 22)
pack.same("Where", 9, 16)


@pack.below(12, "GreaterOrEqual")
def greater_or_equal(op: Builder, a: Value, b: Value) -> Value:
    """Greater or Equal: not the negation of Less, which differs where a number is nan."""
    return op.Or(op.Greater(a, b), op.Equal(a, b))


@pack.below(12, "LessOrEqual")
def less_or_equal(op: Builder, a: Value, b: Value) -> Value:
    """Less or Equal: not the negation of Greater, which differs where a number is nan."""
    return op.Or(op.Less(a, b), op.Equal(a, b))


def _extreme(name: str, compare: str) -> Callable[..., Value]:
    def row(op: Builder, *values: Value) -> Value:
        if values[0].dtype in FLOATS:
            return getattr(op.at(11), name)(*values)
        best = values[0]
        for value in values[1:]:
            best = op.Where(getattr(op, compare)(best, value), best, value)
        return best if len(values) > 1 else op.Identity(best)

    row.__doc__ = f"{name} of floats; {compare} and Where for integers, which have no {name} below 12."
    return row


def _again(name: str) -> Callable[..., Any]:
    def row(op: Builder, *inputs: Any, **attributes: Any) -> Any:
        return getattr(op, name)(*inputs, **attributes)

    row.__doc__ = f"{name} as it was: the newer version takes more, what it took it takes alike."
    return row


pack.below(12, "Max")(_extreme("Max", "Greater"))
pack.below(12, "Min")(_extreme("Min", "Less"))
pack.above(8, "Max")(_again("Max"))
pack.above(8, "Min")(_again("Min"))
pack.above(11, "Clip")(_again("Clip"))
pack.above(7, "Pow")(_again("Pow"))
pack.above(10, "Mod")(_again("Mod"))


@pack.below(12, "Clip")
def clip(op: Builder, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Clip of floats; Max and Min for integers."""
    if x.dtype in FLOATS:
        return op.at(11).Clip(x, low, high)
    if low is not None:
        x = op.Max(x, low)
    if high is not None:
        x = op.Min(x, high)
    return x if low is not None or high is not None else op.Identity(x)


@pack.above(12, "Pow")
def pow_12(op: Builder, x: Value, exponent: Value) -> Value:
    """Pow, unchanged in what it took."""
    return op.Pow(x, exponent)


@pack.below(15, "Pow")
def pow_15(op: Builder, x: Value, exponent: Value) -> Value:
    """Pow with an exponent that opset 13 takes: half precision ones are cast exactly."""
    if exponent.dtype == ir.DataType.BFLOAT16:
        exponent = op.cast(exponent, ir.DataType.FLOAT)
    return op.at(13).Pow(x, exponent)


@pack.below(12, "Pow")
def pow_of_floats(op: Builder, x: Value, exponent: Value) -> Value:
    """Pow of one float dtype; whole powers of integers by squaring, other powers of them in double.

    Raises:
        UnsupportedOpError: 64-bit integers, which double does not hold, to a power that is not constant.
    """
    if x.dtype in FLOATS:
        return op.at(11).Pow(x, op.cast(exponent, x.dtype))
    power = _whole_number(exponent)
    if power is not None and x.dims is not None and exponent.rank <= x.rank:
        return _whole_power(op, x, power)
    if x.dtype in (ir.DataType.INT64, ir.DataType.UINT64):
        raise refuse(op, f"Pow of {x.dtype.name}", 12)
    wide = ir.DataType.DOUBLE
    return op.cast(op.at(11).Pow(op.cast(x, wide), op.cast(exponent, wide)), x.dtype)


def _whole_number(value: Value) -> int | None:
    """The number that is the only one in a constant, from 1 to 64."""
    constant = value.const_value
    if constant is None or constant.size != 1:
        return None
    number = float(constant.numpy().reshape(()))
    return int(number) if number.is_integer() and 1 <= number <= 64 else None


def _whole_power(op: Builder, x: Value, power: int) -> Value:
    """x multiplied by itself, ``power`` times in all."""
    result: Value | None = None
    square = x
    while power:
        if power & 1:
            result = square if result is None else op.Mul(result, square)
        power >>= 1
        if power:
            square = op.Mul(square, square)
    return op.Identity(x) if result is None or result is x else result


@pack.below(28, "Mod")
def mod(op: Builder, a: Value, b: Value, *, fmod: int = 0) -> Value:
    """Mod of integers, and of floats rounding to zero; floats rounding down are put right after it.

    The remainder that has the dividend's sign is exact, so is adding the divisor where signs differ.
    """
    if fmod or a.dtype not in FLOATS:
        return op.at(13).Mod(a, b, fmod=fmod)
    rest = op.at(13).Mod(a, b, fmod=1)
    differ = op.And(op.Xor(op.Less(rest, 0), op.Less(b, 0)), op.Not(op.Equal(rest, 0)))
    # A zero gets its sign by a product: ONNX Runtime's Where loses that of -0.0.
    return op.Mul(op.Abs(op.Where(differ, op.Add(rest, b), rest)), op.Sign(b))


_UNSIGNED = {
    ir.DataType.INT8: ir.DataType.UINT8,
    ir.DataType.INT16: ir.DataType.UINT16,
    ir.DataType.INT32: ir.DataType.UINT32,
    ir.DataType.INT64: ir.DataType.UINT64,
}


def _bits(dtype: ir.DataType) -> int:
    return int(dtype.itemsize * 8)


@pack.below(28, "BitShift")
def bit_shift(op: Builder, x: Value, count: Value, *, direction: str) -> Value:
    """BitShift of unsigned numbers, guarded where the count reaches the number of bits.

    A signed number shifts right as its complement does, and left as its bits do.
    """
    dtype, unsigned = x.dtype, _UNSIGNED.get(x.dtype, x.dtype)
    bits = _bits(dtype)
    constant = None if count.const_value is None else count.const_value.numpy()
    tame = constant is not None and bool(np.all((constant >= 0) & (constant < bits)))
    shifts = op.cast(count, unsigned)
    kept: Value | None = None
    if not tame:
        # A negative count is, as an unsigned one, beyond the bits as well.
        kept = op.cast(op.Less(shifts, bits), unsigned)
        shifts = op.Mul(shifts, kept)

    def shift(value: Value) -> Value:
        moved = op.at(11).BitShift(value, shifts, direction=direction)
        return moved if kept is None else op.Mul(moved, kept)

    if dtype == unsigned or direction == "LEFT":
        return op.cast(shift(op.cast(x, unsigned)), dtype)
    negative = op.Less(x, 0)
    flipped = op.Where(negative, op.Sub(op.const(-1, dtype), x), x)
    back = op.cast(shift(op.cast(flipped, unsigned)), dtype)
    return op.Where(negative, op.Sub(op.const(-1, dtype), back), back)


pack.above(11, "BitShift")(_again("BitShift"))


@pack.below(18, "BitwiseNot")
def bitwise_not(op: Builder, x: Value) -> Value:
    """-1 - x; for unsigned numbers the largest less x."""
    if x.dtype in _UNSIGNED:
        return op.Sub(op.const(-1, x.dtype), x)
    return op.Sub(op.const(np.array((1 << _bits(x.dtype)) - 1, x.dtype.numpy())), x)


def _bit_by_bit(name: str, combine: Callable[[Builder, Value, Value], Value]) -> Callable[..., Value]:
    def row(op: Builder, a: Value, b: Value) -> Value:
        bits = _bits(a.dtype)
        result = _gathered(op, combine(op, _parted(op, a, bits), _parted(op, b, bits)), bits)
        return op.cast(result, a.dtype)

    row.__doc__ = f"{name} on an axis of single bits, which are summed up again."
    return row


def _parted(op: Builder, x: Value, bits: int) -> Value:
    """The bits of ``x`` as truth values along a new last axis."""
    kind = ir.DataType.UINT64
    wide = op.Unsqueeze(op.cast(op.cast(x, ir.DataType.INT64), kind), [-1])
    shifted = op.BitShift(wide, op.const(np.arange(bits, dtype=np.uint64)), direction="RIGHT")
    return op.cast(op.cast(op.Mod(shifted, 2), ir.DataType.INT64), ir.DataType.BOOL)


def _gathered(op: Builder, truth: Value, bits: int) -> Value:
    """The number of the bits, 32 at a time: ONNX Runtime adds up 64-bit integers in double."""
    kind = ir.DataType.INT64
    digits = op.cast(truth, kind)
    words = []
    for start in range(0, bits, 32):
        count = min(bits, 32)
        part = op.Slice(digits, [start], [start + count], [-1]) if bits > 32 else digits
        weights = op.const(np.left_shift(np.int64(1), np.arange(count, dtype=np.int64)))
        words.append(op.ReduceSum(op.Mul(part, weights), [-1], keepdims=0))
    return words[0] if len(words) == 1 else op.Add(words[0], op.Mul(words[1], 1 << 32))


pack.below(18, "BitwiseAnd")(_bit_by_bit("BitwiseAnd", lambda op, a, b: op.And(a, b)))
pack.below(18, "BitwiseOr")(_bit_by_bit("BitwiseOr", lambda op, a, b: op.Or(a, b)))
pack.below(18, "BitwiseXor")(_bit_by_bit("BitwiseXor", lambda op, a, b: op.Xor(a, b)))
