"""Arithmetic on two or three tensors, with torch's type promotion."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import FLOATS, INTS
from atonnx.dispatch import Table
from atonnx_aten_core._promote import (
    BOOL,
    arithmetic,
    default_float,
    in_dtype,
    promote,
    result_type,
)
from atonnx_aten_core.pointwise import truncated

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_UNSIGNED = frozenset({ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64})


def _is_number(x: Any) -> bool:
    return not isinstance(x, (Value, SymSize))


def _scaled(op: Builder, x: Value, factor: Any) -> Value:
    """``factor * x``; ``x`` itself for 1."""
    return x if factor == 1 else op.Mul(x, in_dtype(op, factor, x.dtype))


def _add(op: Builder, self: Any, other: Any, alpha: Any) -> Value:
    if result_type(self, other) == BOOL:
        a, b = promote(op, self, other)
        return op.Or(a, b) if alpha else a
    return arithmetic(op, lambda a, b: op.Add(a, _scaled(op, b, alpha)), self, other, wide=alpha != 1)


def _sub(op: Builder, self: Any, other: Any, alpha: Any) -> Value:
    return arithmetic(op, lambda a, b: op.Sub(a, _scaled(op, b, alpha)), self, other, wide=alpha != 1)


@table.translate(aten.add.Tensor)
def add(op: Builder, self: Value, other: Any, *, alpha: Any = 1) -> Value:
    """Add, of alpha * other; bools are added by Or."""
    return _add(op, self, other, alpha)


@table.translate(aten.add.Scalar)
def add_scalar(op: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    """Add, of alpha * other; bools are added by Or."""
    return _add(op, self, other, alpha)


@table.translate(aten.sub.Tensor, aten.subtract.Tensor)
def sub(op: Builder, self: Value, other: Any, *, alpha: Any = 1) -> Value:
    """Sub, of alpha * other."""
    return _sub(op, self, other, alpha)


@table.translate(aten.sub.Scalar, aten.subtract.Scalar)
def sub_scalar(op: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    """Sub, of alpha * other."""
    return _sub(op, self, other, alpha)


@table.translate(aten.rsub.Tensor)
def rsub(op: Builder, self: Value, other: Any, *, alpha: Any = 1) -> Value:
    """Sub from the other operand."""
    return _sub(op, other, self, alpha)


@table.translate(aten.rsub.Scalar)
def rsub_scalar(op: Builder, self: Value, other: Any, alpha: Any = 1) -> Value:
    """Sub from a number."""
    return _sub(op, other, self, alpha)


@table.translate(aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.multiply.Scalar)
def mul(op: Builder, self: Value, other: Any) -> Value:
    """Mul; bools are multiplied by And."""
    if result_type(self, other) == BOOL:
        return op.And(*promote(op, self, other))
    return arithmetic(op, op.Mul, self, other)


def _float_type(*operands: Any) -> ir.DataType:
    """The dtype of a quotient: integers are divided as floats."""
    dtype = result_type(*operands)
    return dtype if dtype in FLOATS else default_float()


@table.translate(aten.div.Tensor, aten.div.Scalar, aten.divide.Tensor, aten.divide.Scalar)
def div(op: Builder, self: Value, other: Any) -> Value:
    """Div of floats; integers are cast to the default float dtype first."""
    return arithmetic(op, op.Div, self, other, dtype=_float_type(self, other))


@table.translate(aten.true_divide.Tensor, aten.true_divide.Scalar)
def true_divide(op: Builder, self: Value, other: Any) -> Value:
    """Div of floats."""
    return div(op, self, other)


@table.translate(aten.div.Tensor_mode, aten.div.Scalar_mode, aten.divide.Tensor_mode, aten.divide.Scalar_mode)
def div_mode(op: Builder, self: Value, other: Any, *, rounding_mode: str | None) -> Value:
    """Div, rounded towards zero or down as asked; an integer Div truncates already."""
    if rounding_mode is None:
        return div(op, self, other)
    if rounding_mode == "floor":
        return _floor_div(op, self, other)
    if result_type(self, other) in INTS:
        return op.Div(*promote(op, self, other))
    return arithmetic(op, lambda a, b: truncated(op, op.Div(a, b)), self, other, wide=True)


@table.translate(aten.floor_divide.default, aten.floor_divide.Scalar)
def floor_divide(op: Builder, self: Value, other: Any) -> Value:
    """Div, rounded down."""
    return _floor_div(op, self, other)


def _floor_div(op: Builder, self: Any, other: Any) -> Value:
    dtype = result_type(self, other)
    if dtype in _UNSIGNED:
        return op.Div(*promote(op, self, other))
    if dtype in INTS:
        return floor_div_ints(op, *promote(op, self, other), positive=_is_number(other) and other > 0)
    return arithmetic(op, lambda a, b: _floor_div_floats(op, a, b), self, other, wide=True)


def floor_div_ints(op: Builder, a: Value, b: Value, *, positive: bool = False) -> Value:
    """Div truncates: one less where there is a remainder of another sign than the divisor.

    ``positive``: the divisor is known to be.
    """
    rest = op.Mod(a, b, fmod=1)
    if not positive:
        rest = op.Mul(rest, op.Sign(b))
    return op.Sub(op.Div(a, b), op.Cast(op.Less(rest, 0), to=a.dtype))


def _floor_div_floats(op: Builder, a: Value, b: Value) -> Value:
    """torch's exact quotient: the remainder is taken off first, so 1.0 // 0.1 is 9."""
    quotient = op.Div(a, b)
    rest = op.Mod(a, b, fmod=1)
    exact = op.Div(op.Sub(a, rest), b)
    # rest != 0 and of another sign than b; rest * sign(b) cannot round to zero.
    exact = op.Where(op.Less(op.Mul(rest, op.Sign(b)), 0.0), op.Sub(exact, 1.0), exact)
    # Nearest integer, a half goes down. A quotient of zero keeps the sign of a / b.
    near = op.Where(op.Equal(exact, 0.0), op.Mul(quotient, 0.0), op.Ceil(op.Sub(exact, 0.5)))
    return op.Where(op.Equal(b, 0.0), quotient, near)


def _remainder(op: Builder, self: Any, other: Any) -> Value:
    if result_type(self, other) in INTS:
        return op.Mod(*promote(op, self, other))

    def compute(a: Value, b: Value) -> Value:
        rest = op.Mod(a, b, fmod=1)
        return op.Where(op.Less(op.Mul(rest, op.Sign(b)), 0.0), op.Add(rest, b), rest)

    return arithmetic(op, compute, self, other, wide=True)


@table.translate(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def remainder(op: Builder, self: Any, other: Any) -> Value:
    """Mod for integers; of floats the C remainder, plus the divisor where the signs differ."""
    return _remainder(op, self, other)


@table.translate(aten.fmod.Tensor, aten.fmod.Scalar)
def fmod(op: Builder, self: Value, other: Any) -> Value:
    """Mod with the sign of the dividend."""
    return op.Mod(*promote(op, self, other), fmod=1)


def _int_power(op: Builder, x: Value, exponent: int) -> Value:
    """Products, as integers wrap around in torch and Pow may go through floats."""
    result: Value | None = None
    while exponent:
        if exponent & 1:
            result = x if result is None else op.Mul(result, x)
        exponent >>= 1
        if exponent:
            x = op.Mul(x, x)
    return result if result is not None else op.expand(op.const(1, x.dtype), x.dims or ())


def _float_power(op: Builder, x: Value, exponent: float) -> Value:
    """The forms that torch has for common exponents, else Pow."""
    if exponent == 1:
        return x
    if exponent == 0.5:
        return op.Sqrt(x)
    if exponent == -0.5:
        return op.Reciprocal(op.Sqrt(x))
    if exponent == -1:
        return op.Reciprocal(x)
    if exponent == -2:
        return op.Reciprocal(op.Mul(x, x))
    # A number would become float32, as the type of an exponent is its own.
    return op.Pow(x, op.const(exponent, x.dtype))


def _pow(op: Builder, self: Any, exponent: Any, dtype: ir.DataType) -> Value:
    if dtype in FLOATS:
        if _is_number(exponent):
            wide = exponent in (-0.5, -2)
            return arithmetic(
                op, lambda x: _float_power(op, x, float(exponent)), self, dtype=dtype, wide=wide
            )
        return arithmetic(op, op.Pow, self, exponent, dtype=dtype)
    if _is_number(exponent) and 0 <= exponent < 64:
        return _int_power(op, in_dtype(op, self, dtype), int(exponent))
    base, power = in_dtype(op, self, dtype), in_dtype(op, exponent, dtype)
    if dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        base, power = op.Cast(base, to=ir.DataType.INT64), op.Cast(power, to=ir.DataType.INT64)
    if dtype not in _UNSIGNED and not (_is_number(self) and self):
        # torch has 0 for 1 / 0 too; a runtime that goes through floats has what infinity is cast to.
        power = op.Where(op.Equal(base, 0), op.Abs(power), power)
    return op.cast(op.Pow(base, power), dtype)


@table.translate(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar)
def pow(op: Builder, self: Any, exponent: Any) -> Value:
    """Pow; products for integers with a constant exponent, Sqrt and Reciprocal for the usual ones."""
    return _pow(op, self, exponent, result_type(self, exponent))


@table.translate(aten.float_power.Tensor_Tensor, aten.float_power.Tensor_Scalar, aten.float_power.Scalar)
def float_power(op: Builder, self: Any, exponent: Any) -> Value:
    """Pow in double precision."""
    return _pow(op, self, exponent, ir.DataType.DOUBLE)


def _extreme(op: Builder, name: str, self: Any, other: Any) -> Value:
    """Max or Min; on bools they are Or and And."""
    a, b = promote(op, self, other)
    if a.dtype == BOOL:
        return op.Or(a, b) if name == "Max" else op.And(a, b)
    return getattr(op, name)(a, b)


@table.translate(aten.maximum.default, aten.max.other)
def maximum(op: Builder, self: Value, other: Value) -> Value:
    """Max; Or for bools."""
    return _extreme(op, "Max", self, other)


@table.translate(aten.minimum.default, aten.min.other)
def minimum(op: Builder, self: Value, other: Value) -> Value:
    """Min; And for bools."""
    return _extreme(op, "Min", self, other)


def _ignoring_nan(op: Builder, name: str, self: Any, other: Any) -> Value:
    a, b = promote(op, self, other)
    if a.dtype not in FLOATS:
        return _extreme(op, name, a, b)
    return op.Where(op.IsNaN(a), b, op.Where(op.IsNaN(b), a, getattr(op, name)(a, b)))


@table.translate(aten.fmax.default)
def fmax(op: Builder, self: Value, other: Value) -> Value:
    """Max, or the other operand where one is nan."""
    return _ignoring_nan(op, "Max", self, other)


@table.translate(aten.fmin.default)
def fmin(op: Builder, self: Value, other: Value) -> Value:
    """Min, or the other operand where one is nan."""
    return _ignoring_nan(op, "Min", self, other)


def _clamp(op: Builder, self: Value, low: Any, high: Any) -> Value:
    if low is None and high is None:
        return self
    dtype = result_type(self, low, high)
    x = in_dtype(op, self, dtype)
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        return op.expand(op.const(math.nan, dtype), x.dims or ())
    # A missing bound of Clip is the largest finite number, so infinity would not stay: Max or Min then.
    # A bound that may be nan, which Clip leaves open, is for them too.
    tensors = [bound for bound in (low, high) if isinstance(bound, Value)]
    if low is not None and high is not None and not any(t.rank or dtype in FLOATS for t in tensors):
        return op.Clip(x, in_dtype(op, low, dtype), in_dtype(op, high, dtype))
    if low is not None:
        x = _extreme(op, "Max", x, in_dtype(op, low, dtype))
    if high is not None:
        x = _extreme(op, "Min", x, in_dtype(op, high, dtype))
    return x


@table.translate(aten.clamp.default, aten.clip.default)
def clamp(op: Builder, self: Value, min: Any = None, max: Any = None) -> Value:
    """Clip, or Max or Min for one bound; where min exceeds max, the result is max."""
    return _clamp(op, self, min, max)


@table.translate(aten.clamp.Tensor, aten.clip.Tensor)
def clamp_tensor(op: Builder, self: Value, min: Any = None, max: Any = None) -> Value:
    """Max, then Min: bounds broadcast, and a nan among them is the result."""
    return _clamp(op, self, min, max)


@table.translate(aten.clamp_min.default, aten.clamp_min.Tensor)
def clamp_min(op: Builder, self: Value, min: Any) -> Value:
    """Max; Or for bools."""
    return _clamp(op, self, min, None)


@table.translate(aten.clamp_max.default, aten.clamp_max.Tensor)
def clamp_max(op: Builder, self: Value, max: Any) -> Value:
    """Min; And for bools."""
    return _clamp(op, self, None, max)


@table.translate(aten.addcmul.default)
def addcmul(op: Builder, self: Value, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Value:
    """self + value * tensor1 * tensor2."""
    return arithmetic(
        op,
        lambda x, a, b: op.Add(x, op.Mul(_scaled(op, a, value), b)),
        self,
        tensor1,
        tensor2,
        wide=True,
    )


@table.translate(aten.addcdiv.default)
def addcdiv(op: Builder, self: Value, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Value:
    """self + value * tensor1 / tensor2."""
    return arithmetic(
        op,
        lambda x, a, b: op.Add(x, op.Div(_scaled(op, a, value), b)),
        self,
        tensor1,
        tensor2,
        wide=True,
    )


@table.translate(aten.lerp.Scalar)
def lerp_scalar(op: Builder, self: Value, end: Value, weight: Any) -> Value:
    """From the nearer end, as torch does: exact at weight 0 and 1."""

    def compute(start: Value, stop: Value) -> Value:
        way = op.Sub(stop, start)
        if not _is_number(weight):
            return _lerp(op, start, stop, in_dtype(op, weight, start.dtype))
        if -0.5 < weight < 0.5:
            return op.Add(start, op.Mul(way, weight))
        return op.Sub(stop, op.Mul(way, 1.0 - weight))

    return arithmetic(op, compute, self, end, wide=True)


@table.translate(aten.lerp.Tensor)
def lerp(op: Builder, self: Value, end: Value, weight: Value) -> Value:
    """From the nearer end, as torch does: exact at weight 0 and 1."""
    return arithmetic(op, lambda a, b, w: _lerp(op, a, b, w), self, end, weight, wide=True)


def _lerp(op: Builder, start: Value, stop: Value, weight: Value) -> Value:
    way = op.Sub(stop, start)
    return op.Where(
        op.Less(op.Abs(weight), 0.5),
        op.Add(start, op.Mul(way, weight)),
        op.Sub(stop, op.Mul(way, op.Sub(1.0, weight))),
    )


def _is_negative(op: Builder, x: Value) -> Value:
    """Whether the sign bit is set, of a zero too."""
    return op.Or(op.Less(x, 0.0), op.Equal(op.Reciprocal(x), -math.inf))


@table.translate(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(op: Builder, self: Value, other: Any) -> Value:
    """Abs, negated where the sign bit of the other operand is set."""
    dtype = _float_type(self, other)
    size = op.Abs(in_dtype(op, self, dtype))
    if _is_number(other):
        return size if math.copysign(1.0, other) > 0 else op.Neg(size)
    return op.Where(_is_negative(op, in_dtype(op, other, dtype)), op.Neg(size), size)


@table.translate(aten.atan2.default, aten.arctan2.default)
def atan2(op: Builder, self: Value, other: Any) -> Value:
    """Atan of the ratio of the smaller to the larger magnitude, mirrored into the right eighth."""

    def compute(y: Value, x: Value) -> Value:
        high, wide = op.Abs(y), op.Abs(x)
        low, top = op.Min(high, wide), op.Max(high, wide)
        # 0 / 0 is angle 0, inf / inf the diagonal.
        ratio = op.Where(op.Equal(low, top), 1.0, op.Div(low, top))
        angle = op.Atan(op.Where(op.Equal(top, 0.0), 0.0, ratio))
        angle = op.Where(op.Greater(high, wide), op.Sub(math.pi / 2, angle), angle)
        angle = op.Where(_is_negative(op, x), op.Sub(math.pi, angle), angle)
        angle = op.Where(_is_negative(op, y), op.Neg(angle), angle)
        return op.Where(op.Or(op.IsNaN(y), op.IsNaN(x)), math.nan, angle)

    return arithmetic(op, compute, self, other, dtype=_float_type(self, other), wide=True)


@table.translate(aten.hypot.default)
def hypot(op: Builder, self: Value, other: Any) -> Value:
    """Sqrt of the sum of squares, scaled by the larger magnitude so that squares do not overflow."""

    def compute(a: Value, b: Value) -> Value:
        a, b = op.Abs(a), op.Abs(b)
        low, top = op.Min(a, b), op.Max(a, b)
        ratio = op.Div(low, op.Where(op.Equal(top, 0.0), 1.0, top))
        made = op.Mul(top, op.Sqrt(op.Add(op.Mul(ratio, ratio), 1.0)))
        infinite = op.Or(op.Equal(a, math.inf), op.Equal(b, math.inf))
        return op.Where(infinite, math.inf, made)

    return arithmetic(op, compute, self, other, wide=True)


def _log_add(op: Builder, self: Any, other: Any, base: float | None) -> Value:
    """max + log(1 + exp(-|a - b|)); equal infinities have no difference."""

    def compute(a: Value, b: Value) -> Value:
        top = op.Max(a, b)
        gap = op.Where(op.Equal(a, b), 0.0, op.Abs(op.Sub(a, b)))
        if base is not None:
            gap = op.Mul(gap, math.log(base))
        # log1p of e in (0, 1]: the digits of 1 + e that matter beside max.
        more = op.Log(op.Add(op.Exp(op.Neg(gap)), 1.0))
        return op.Add(top, op.Div(more, math.log(base)) if base is not None else more)

    return arithmetic(op, compute, self, other, dtype=_float_type(self, other), wide=True)


@table.translate(aten.logaddexp.default)
def logaddexp(op: Builder, self: Value, other: Any) -> Value:
    """max + log(1 + exp(-|a - b|))."""
    return _log_add(op, self, other, None)


@table.translate(aten.logaddexp2.default)
def logaddexp2(op: Builder, self: Value, other: Any) -> Value:
    """logaddexp to the base 2."""
    return _log_add(op, self, other, 2.0)


@table.translate(aten.xlogy.Tensor, aten.xlogy.Scalar_Other, aten.xlogy.Scalar_Self)
def xlogy(op: Builder, self: Any, other: Any) -> Value:
    """Mul with Log; zero where the factor is zero, nan where the other operand is."""

    def compute(x: Value, y: Value) -> Value:
        made = op.Where(op.Equal(x, 0.0), 0.0, op.Mul(x, op.Log(y)))
        return op.Where(op.IsNaN(y), math.nan, made)

    return arithmetic(op, compute, self, other, dtype=_float_type(self, other), wide=True)


@table.translate(aten.heaviside.default)
def heaviside(op: Builder, self: Value, values: Value) -> Value:
    """0 below zero, 1 above it, and the given values at zero."""
    x, v = promote(op, self, values)
    if x.dtype == BOOL:
        return op.Or(x, v)
    above = op.Cast(op.Greater(x, 0), to=x.dtype)
    return op.Where(op.Equal(x, 0), v, above)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def pair() -> tuple[Any, ...]:
        return (torch.tensor([[1.5, -2.0, 0.25], [4.0, -0.5, 7.0]]), torch.tensor([2.0, -0.75, 3.0]))

    def ints() -> tuple[Any, ...]:
        return (torch.tensor([[7, -7, 5], [3, -3, 8]]), torch.tensor([2, 3, -4]))

    def truths() -> tuple[Any, ...]:
        return (torch.tensor([[True], [False]]), torch.tensor([True, False, True]))

    def bytes_() -> torch.Tensor:
        return torch.tensor([200, 3, 0], dtype=torch.uint8)

    near: dict[str, Any] = {"atol": ulps(8), "reason": "several operators, each of which rounds"}
    found = [
        *(OpSample(f.Tensor, args) for f in (aten.add, aten.mul, aten.div) for args in (pair, ints, truths)),
        *(OpSample(f.Tensor, args) for f in (aten.sub, aten.subtract, aten.rsub) for args in (pair, ints)),
        *(OpSample(f.Tensor, pair) for f in (aten.multiply, aten.divide, aten.true_divide)),
        *(
            OpSample(f.Tensor, args, {"alpha": 3})
            for f in (aten.add, aten.sub, aten.rsub)
            for args in (pair, ints)
        ),
        *(
            OpSample(f.Scalar, lambda: (pair()[0], 0.3))
            for f in (aten.add, aten.sub, aten.subtract, aten.rsub, aten.mul, aten.div, aten.floor_divide)
        ),
        *(OpSample(f.Scalar, lambda: (bytes_(), -1)) for f in (aten.add, aten.sub, aten.rsub, aten.mul)),
        *(OpSample(f.Scalar, lambda: (ints()[0], 2, 3)) for f in (aten.add, aten.sub, aten.rsub)),
        *(
            OpSample(f.Scalar, lambda: (pair()[0], 0.3))
            for f in (aten.multiply, aten.divide, aten.true_divide, aten.remainder, aten.fmod)
        ),
        *(
            OpSample(f.Tensor_mode, args, {"rounding_mode": mode})
            for f in (aten.div, aten.divide)
            for args in (pair, ints)
            for mode in (None, "trunc", "floor")
        ),
        *(
            OpSample(f.Scalar_mode, lambda: (ints()[0], 3), {"rounding_mode": mode})
            for f in (aten.div, aten.divide)
            for mode in ("trunc", "floor")
        ),
        *(OpSample(f, args) for f in (aten.floor_divide.default, aten.fmod.Tensor) for args in (pair, ints)),
        *(OpSample(aten.remainder.Tensor, args) for args in (pair, ints)),
        OpSample(aten.remainder.Scalar_Tensor, lambda: (-7, ints()[1])),
        *(OpSample(aten.pow.Tensor_Scalar, (pair()[0].abs(), e)) for e in (0, 1, 2, 0.5, -0.5, -1, -2, 2.5)),
        *(OpSample(aten.pow.Tensor_Scalar, (ints()[0].to(torch.int8), e)) for e in (0, 1, 3)),
        OpSample(aten.pow.Tensor_Tensor, lambda: (pair()[0].abs(), pair()[1])),
        OpSample(aten.pow.Tensor_Tensor, lambda: (ints()[0], ints()[1].abs()), opsets=12),
        OpSample(aten.pow.Scalar, lambda: (2, pair()[0])),
        OpSample(aten.float_power.Tensor_Scalar, lambda: (ints()[0], 2)),
        OpSample(aten.float_power.Tensor_Tensor, lambda: (pair()[0].abs(), ints()[1])),
        OpSample(aten.float_power.Scalar, lambda: (2, pair()[0])),
        *(
            OpSample(f, args)
            for f in (aten.maximum.default, aten.minimum.default, aten.max.other, aten.min.other)
            for args in (pair, ints, truths)
        ),
        *(OpSample(f.default, args) for f in (aten.fmax, aten.fmin) for args in (pair, ints)),
    ]
    for packet in (aten.clamp, aten.clip):
        found += [
            OpSample(packet.default, lambda: (pair()[0], -1, 2.5)),
            OpSample(packet.default, lambda: (pair()[0], None, 2.5)),
            OpSample(packet.default, lambda: (ints()[0], -2, 4)),
            OpSample(packet.Tensor, lambda: (*pair(), torch.tensor(3.0))),
        ]
    for packet in (aten.clamp_min, aten.clamp_max):
        found += [OpSample(packet.default, lambda: (pair()[0], 1)), OpSample(packet.Tensor, pair)]

    def triple() -> tuple[Any, ...]:
        return (*pair(), torch.tensor(0.75))

    return [
        *found,
        OpSample(aten.addcmul.default, triple, {"value": 2}, **near),
        OpSample(aten.addcdiv.default, triple, {"value": 0.5}, **near),
        *(OpSample(aten.lerp.Scalar, (*pair(), w), **near) for w in (0.25, 0.75)),
        OpSample(aten.lerp.Tensor, triple, **near),
        OpSample(aten.copysign.Tensor, pair),
        OpSample(aten.copysign.Scalar, lambda: (pair()[0], -0.0)),
        OpSample(aten.heaviside.default, lambda: (ints()[0] - 3, ints()[1])),
        *(
            OpSample(f.default, pair, **near)
            for f in (aten.atan2, aten.arctan2, aten.hypot, aten.logaddexp, aten.logaddexp2)
        ),
        OpSample(aten.xlogy.Tensor, lambda: (pair()[0], pair()[1].abs()), **near),
        OpSample(aten.xlogy.Scalar_Other, lambda: (pair()[0], 2), **near),
        OpSample(aten.xlogy.Scalar_Self, lambda: (2, pair()[1].abs()), **near),
    ]
