"""Arithmetic and functions of complex tensors, which are pairs of real numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS, to_torch
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_core._complex import (
    Lanes,
    as_pair,
    column,
    compute,
    imaginary,
    is_complex,
    is_zero,
    joined,
    lanes,
    magnitude,
    paired,
    part_type,
    real,
    scaled,
    turned,
)
from atonnx_aten_core._promote import default_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
prims = torch.ops.prims
table = Table(__name__)


# --------------------------------------------------------------- arithmetic


def added(op: Builder, a: Any, b: Any, alpha: Any = 1, sign: int = 1) -> Value:
    """a + alpha b, or a - alpha b."""

    def sum_of(dtype: ir.DataType) -> Value:
        second = b if alpha == 1 else product(op, as_pair(op, b, dtype), alpha)
        x, y = as_pair(op, a, dtype), as_pair(op, second, dtype)
        return paired(op.Add(x, y) if sign > 0 else op.Sub(x, y))

    return compute(op, part_type(a, b), sum_of)


def product(op: Builder, a: Any, b: Any) -> Value:
    """a b: the parts of one times the other, and times the other turned by a right angle."""
    if not is_complex(a) or isinstance(a, Value) and a.producer() is None and a.const_value is not None:
        a, b = b, a
    if isinstance(a, complex) and isinstance(b, Value):
        a, b = b, a

    def product_of(dtype: ir.DataType) -> Value:
        if not is_complex(b):
            return paired(op.Mul(as_pair(op, a, dtype), column(op, b, dtype)))
        if not is_complex(a):
            return paired(op.Mul(column(op, a, dtype), as_pair(op, b, dtype)))
        x = as_pair(op, a, dtype)
        if isinstance(b, complex):
            re, im = op.const(b.real, dtype), op.const(b.imag, dtype)
        else:
            re, im = lanes(op, as_pair(op, b, dtype))
        return paired(op.Add(op.Mul(x, re), op.Mul(turned(op, x), im)))

    return compute(op, part_type(a, b), product_of)


def quotient(op: Builder, a: Any, b: Any) -> Value:
    """a / b: the product with the conjugate of b over its square, scaled so that squares do not overflow."""

    def quotient_of(dtype: ir.DataType) -> Value:
        x = as_pair(op, a, dtype)
        if not is_complex(b):
            return paired(op.Div(x, column(op, b, dtype)))
        y, top = scaled(op, as_pair(op, b, dtype))
        above = product(op, paired(op.Div(x, top)), conjugate(op, y))
        return paired(op.Div(above, op.ReduceSumSquare(y, [-1], keepdims=1)))

    return compute(op, part_type(a, b), quotient_of)


def conjugate(op: Builder, z: Value) -> Value:
    """The imaginary parts change their sign; a real tensor itself."""
    return paired(op.Mul(z, op.const([1, -1], z.dtype))) if z.is_complex else z


@table.translate(aten.add.Tensor, complex="only")
def add(op: Builder, self: Any, other: Any, *, alpha: Any = 1) -> Value:
    """Add of pairs."""
    return added(op, self, other, alpha)


@table.translate(aten.add.Scalar, complex="only")
def add_scalar(op: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """Add of pairs."""
    return added(op, self, other, alpha)


@table.translate(prims.add.default, complex="only")
def add_prim(op: Builder, self: Any, other: Any) -> Value:
    """Add of pairs."""
    return added(op, self, other)


@table.translate(aten.sub.Tensor, aten.subtract.Tensor, complex="only")
def sub(op: Builder, self: Any, other: Any, *, alpha: Any = 1) -> Value:
    """Sub of pairs."""
    return added(op, self, other, alpha, -1)


@table.translate(aten.sub.Scalar, aten.subtract.Scalar, complex="only")
def sub_scalar(op: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """Sub of pairs."""
    return added(op, self, other, alpha, -1)


@table.translate(prims.sub.default, complex="only")
def sub_prim(op: Builder, self: Any, other: Any) -> Value:
    """Sub of pairs."""
    return added(op, self, other, 1, -1)


@table.translate(aten.rsub.Tensor, complex="only")
def rsub(op: Builder, self: Any, other: Any, *, alpha: Any = 1) -> Value:
    """Sub of pairs from the other operand."""
    return added(op, other, self, alpha, -1)


@table.translate(aten.rsub.Scalar, complex="only")
def rsub_scalar(op: Builder, self: Any, other: Any, alpha: Any = 1) -> Value:
    """Sub of pairs from a number."""
    return added(op, other, self, alpha, -1)


@table.translate(
    aten.mul.Tensor,
    aten.mul.Scalar,
    aten.multiply.Tensor,
    aten.multiply.Scalar,
    prims.mul.default,
    complex="only",
)
def mul(op: Builder, self: Any, other: Any) -> Value:
    """Mul with the real parts, and of the turned pairs with the imaginary ones; Mul with a real operand."""
    return product(op, self, other)


@table.translate(
    aten.div.Tensor,
    aten.div.Scalar,
    aten.divide.Tensor,
    aten.divide.Scalar,
    aten.true_divide.Tensor,
    aten.true_divide.Scalar,
    prims.div.default,
    complex="only",
)
def div(op: Builder, self: Any, other: Any) -> Value:
    """Mul with the conjugate, Div by the square of the magnitude; Div by a real operand."""
    return quotient(op, self, other)


@table.translate(
    aten.div.Tensor_mode,
    aten.div.Scalar_mode,
    aten.divide.Tensor_mode,
    aten.divide.Scalar_mode,
    complex="only",
)
def div_mode(op: Builder, self: Any, other: Any, *, rounding_mode: str | None) -> Value:
    """As div: torch does not round complex quotients."""
    if rounding_mode is not None:
        raise UnsupportedOpError.here(
            op, "rounding a complex quotient", hint="round the real and the imaginary part"
        )
    return quotient(op, self, other)


@table.translate(aten.addcmul.default, complex="only")
def addcmul(op: Builder, self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Value:
    """self + value * tensor1 * tensor2."""
    made = product(op, tensor1, tensor2)
    return added(op, self, made if value == 1 else product(op, made, value))


@table.translate(aten.addcdiv.default, complex="only")
def addcdiv(op: Builder, self: Any, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Value:
    """self + value * tensor1 / tensor2."""
    made = quotient(op, tensor1, tensor2)
    return added(op, self, made if value == 1 else product(op, made, value))


@table.translate(aten.lerp.Scalar, aten.lerp.Tensor, complex="only")
def lerp(op: Builder, self: Any, end: Any, weight: Any) -> Value:
    """From the nearer end, as torch does; which one is told by the magnitude of the weight."""
    way = added(op, end, self, 1, -1)
    near = added(op, self, product(op, way, weight))
    far = added(op, end, product(op, way, added(op, 1.0, weight, 1, -1)), 1, -1) if _is_pair(weight) else None
    if far is None:
        rest = 1 - weight if not isinstance(weight, Value) else op.Sub(1.0, weight)
        far = added(op, end, product(op, way, rest), 1, -1)
    if not isinstance(weight, Value):
        return near if math.hypot(weight.real, weight.imag) < 0.5 else far
    size = magnitude(op, weight) if weight.is_complex else op.Unsqueeze(op.Abs(weight), [-1])
    return paired(op.Where(op.Less(size, 0.5), near, far))


def _is_pair(x: Any) -> bool:
    return isinstance(x, Value) and x.is_complex


@table.translate(aten.neg.default, aten.negative.default, prims.neg.default, complex="only")
def neg(op: Builder, self: Value) -> Value:
    """Neg."""
    return op.Neg(self)


@table.translate(aten.square.default, complex="only")
def square(op: Builder, self: Value) -> Value:
    """The product with itself."""
    return product(op, self, self)


@table.translate(aten.reciprocal.default, prims.reciprocal.default, complex="only")
def reciprocal(op: Builder, self: Value) -> Value:
    """The conjugate over the square of the magnitude."""
    return quotient(op, 1.0, self)


# ---------------------------------------------------- magnitude, angle, sign


@table.translate(aten.abs.default, aten.absolute.default, prims.abs.default, complex="only")
def abs(op: Builder, self: Value) -> Value:
    """ReduceL2 over the pair, scaled so that squares neither overflow nor vanish."""
    return op.Squeeze(magnitude(op, self), [-1])


@table.translate(aten.angle.default, complex="also")
def angle(op: Builder, self: Value) -> Value:
    """atan2 of the parts; of a real tensor pi below zero, zero above."""
    if self.is_complex:
        return _atan2(op, imaginary(op, self), real(op, self))
    x = self if self.dtype in FLOATS else op.cast(self, default_float())
    made = op.Where(op.Less(x, 0.0), math.pi, op.const(0.0, x.dtype))
    return op.Where(op.IsNaN(x), x, made) if self.dtype in FLOATS else made


@table.translate(aten.sgn.default, complex="only")
def sgn(op: Builder, self: Value) -> Value:
    """Div by the magnitude; zero for zero."""
    z, _ = scaled(op, self)
    size = op.ReduceL2(z, [-1], keepdims=1)
    return op.Where(op.Equal(size, 0.0), 0.0, op.Div(z, size))


# ----------------------------------------------------- powers, exponentials


def _exp(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    return paired(op.Mul(op.Exp(re), _circle(op, im)))


def _circle(op: Builder, angle: Value) -> Value:
    """cos + i sin of an angle that has a last axis of 1."""
    return joined(op, op.Cos(angle), op.Sin(angle))


def _atan2(op: Builder, y: Value, x: Value) -> Value:
    """The angle; in float64 by a Newton step from that in float32, as ONNX Runtime has no Atan of float64."""
    if x.dtype != ir.DataType.DOUBLE:
        made: Value = op.translate(aten.atan2.default, y, x)
        return made
    limits = torch.finfo(torch.float64)
    top = op.Clip(op.Max(op.Abs(x), op.Abs(y)), limits.tiny, limits.max)
    cosine, sine = op.Div(x, top), op.Div(y, top)
    rough = op.translate(aten.atan2.default, *(op.cast(v, ir.DataType.FLOAT) for v in (sine, cosine)))
    near = op.cast(rough, ir.DataType.DOUBLE)
    size = op.Sqrt(op.Add(op.Mul(cosine, cosine), op.Mul(sine, sine)))
    rest = op.Div(op.Sub(op.Mul(sine, op.Cos(near)), op.Mul(cosine, op.Sin(near))), size)
    return op.Where(op.Equal(size, 0.0), near, op.Add(near, rest))


def _hyperbolic(op: Builder, x: Value) -> tuple[Value, Value]:
    """Sinh and Cosh, which ONNX Runtime does not have of float64."""
    if x.dtype != ir.DataType.DOUBLE:
        return op.Sinh(x), op.Cosh(x)
    less: Value = op.translate(aten.expm1.default, x)
    exp = op.Exp(x)
    return op.Mul(op.Add(less, op.Div(less, exp)), 0.5), op.Mul(op.Add(exp, op.Reciprocal(exp)), 0.5)


def _real_tan(op: Builder, x: Value) -> Value:
    return op.Div(op.Sin(x), op.Cos(x)) if x.dtype == ir.DataType.DOUBLE else op.Tan(x)


def _real_asinh(op: Builder, x: Value) -> Value:
    if x.dtype != ir.DataType.DOUBLE:
        return op.Asinh(x)
    size = op.Abs(x)
    squared = op.Mul(size, size)
    more = op.Add(size, op.Div(squared, op.Add(op.Sqrt(op.Add(squared, 1.0)), 1.0)))
    made: Value = op.Mul(op.Sign(x), op.translate(aten.log1p.default, more))
    return made


def _log(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    if z.dtype == ir.DataType.DOUBLE:
        w, top = scaled(op, z)
        size = op.Add(op.Log(top), op.Log(op.ReduceL2(w, [-1], keepdims=1)))
    else:  # powers multiply the error of the logarithm
        wide = op.cast(z, ir.DataType.DOUBLE)
        size = op.cast(op.Log(op.ReduceL2(wide, [-1], keepdims=1)), z.dtype)
    return joined(op, size, _atan2(op, im, re))


def _rounded_log(op: Builder, z: Value) -> Value:
    """The logarithm with the roundings of the C library, which a power multiplies by its exponent.

    The magnitude is rounded before its logarithm is taken, and each part after.
    """
    if z.dtype == ir.DataType.DOUBLE:
        return _log(op, z)
    double = ir.DataType.DOUBLE
    wide = op.cast(z, double)
    size = op.cast(op.ReduceL2(wide, [-1], keepdims=1), z.dtype)
    re, im = lanes(op, wide)
    return paired(op.cast(joined(op, op.Log(op.cast(size, double)), _atan2(op, im, re)), z.dtype))


def _sqrt(op: Builder, z: Value) -> Value:
    """The root in the right half plane; halves are exact, so nothing overflows by the sum."""
    re, im = lanes(op, z)
    size = op.Add(op.Mul(magnitude(op, z), 0.5), op.Mul(op.Abs(re), 0.5))
    large = op.Sqrt(size)
    small = op.Where(op.Equal(large, 0.0), 0.0, op.Div(op.Mul(op.Abs(im), 0.5), large))
    right = op.GreaterOrEqual(re, 0.0)
    up = op.translate(aten.copysign.Tensor, op.Where(right, small, large), im)
    return joined(op, op.Where(right, large, small), up)


def _unary(
    name: str, doc: str, function: Callable[[Builder, Value], Value], *targets: Any
) -> Callable[..., Value]:
    """A row for a function of complex numbers."""

    def row(op: Builder, self: Value) -> Value:
        return function(op, self)

    row.__name__ = row.__qualname__ = name
    row.__doc__ = doc
    return table.translate(*targets, complex="only")(row)


@table.translate(aten.exp.default, prims.exp.default, complex="only")
def exp(op: Builder, self: Value) -> Value:
    """Exp of the real part, times Cos and Sin of the imaginary one."""
    return _exp(op, self)


@table.translate(aten.exp2.default, aten.special_exp2.default, prims.exp2.default, complex="only")
def exp2(op: Builder, self: Value) -> Value:
    """exp of z log 2."""
    return _exp(op, op.Mul(self, math.log(2)))


@table.translate(aten.expm1.default, aten.special_expm1.default, prims.expm1.default, complex="only")
def expm1(op: Builder, self: Value) -> Value:
    """expm1(x) cos(y) - 2 sin(y/2)**2 and exp(x) sin(y), which keep the digits near zero."""
    re, im = lanes(op, self)
    less: Value = op.translate(aten.expm1.default, re)
    half = op.Sin(op.Mul(im, 0.5))
    first = op.Sub(op.Mul(less, op.Cos(im)), op.Mul(op.Mul(half, half), 2.0))
    return joined(op, first, op.Mul(op.Exp(re), op.Sin(im)))


@table.translate(aten.log.default, prims.log.default, complex="only")
def log(op: Builder, self: Value) -> Value:
    """Log of the magnitude, and the angle."""
    return _log(op, self)


@table.translate(aten.log2.default, prims.log2.default, complex="only")
def log2(op: Builder, self: Value) -> Value:
    """log over the logarithm of 2."""
    return op.Div(_log(op, self), math.log(2))


@table.translate(aten.log10.default, prims.log10.default, complex="only")
def log10(op: Builder, self: Value) -> Value:
    """log over the logarithm of 10."""
    return op.Div(_log(op, self), math.log(10))


@table.translate(aten.log1p.default, aten.special_log1p.default, prims.log1p.default, complex="only")
def log1p(op: Builder, self: Value) -> Value:
    """log1p of x (2 + x) + y**2, halved, where z is small; else log of 1 + z."""
    re, im = lanes(op, self)
    more = op.Add(op.Mul(re, op.Add(re, 2.0)), op.Mul(im, im))
    near: Value = op.Mul(op.translate(aten.log1p.default, more), 0.5)
    far, angle = lanes(op, _log(op, added(op, self, 1.0)))
    small = op.Less(magnitude(op, self), 0.5)
    return joined(op, op.Where(small, near, far), angle)


@table.translate(aten.sqrt.default, prims.sqrt.default, complex="only")
def sqrt(op: Builder, self: Value) -> Value:
    """Sqrt of half the magnitude and the real part, and what the imaginary part is over twice that."""
    return _sqrt(op, self)


@table.translate(aten.rsqrt.default, prims.rsqrt.default, complex="only")
def rsqrt(op: Builder, self: Value) -> Value:
    """The reciprocal of the root."""
    return quotient(op, 1.0, _sqrt(op, self))


def power(op: Builder, base: Any, exponent: Any, dtype: ir.DataType) -> Value:
    """Products and roots for the exponents that torch has them for, else exp(w log z)."""
    if not isinstance(exponent, Value):
        z = as_pair(op, base, dtype)
        simple = _simple_power(op, z, complex(exponent))
        if simple is not None:
            return simple
    if isinstance(base, Value):
        return _general_power(op, as_pair(op, base, dtype), exponent, dtype)
    if base == 0:
        return _power_of_zero(op, as_pair(op, exponent, dtype))
    # The logarithm in the precision in which torch takes it: its error grows with the exponent.
    log = torch.tensor(base, dtype=to_torch(dtype).to_complex()).log().item()
    return _exp(op, product(op, as_pair(op, exponent, dtype), log))


def _simple_power(op: Builder, z: Value, exponent: complex) -> Value | None:
    if exponent == 0:
        return paired(op.expand(op.const([1, 0], z.dtype), z.dims or ()))
    if exponent == 1:
        return z
    if exponent == 0.5:
        return _sqrt(op, z)
    if exponent == -0.5:
        return quotient(op, 1.0, _sqrt(op, z))
    if exponent.imag == 0 and exponent.real in (2, 3, 4, -1, -2):
        made = z
        for _ in range(int(math.fabs(exponent.real)) - 1):
            made = product(op, made, z)
        return made if exponent.real > 0 else quotient(op, 1.0, made)
    return None


def _power_of_zero(op: Builder, exponent: Value) -> Value:
    """Zero for an exponent of a positive real part, else no number: as exp(w log 0), infinite below zero."""
    re = lanes(op, exponent).re
    beyond = op.Where(op.Less(re, 0.0), op.const([math.inf, math.nan], exponent.dtype), math.nan)
    return paired(op.Where(op.Greater(re, 0.0), op.Mul(exponent, 0.0), beyond))


def _general_power(op: Builder, z: Value, exponent: Any, dtype: ir.DataType) -> Value:
    """exp of the product with the logarithm."""
    zero = is_zero(op, z)
    safe = paired(op.Where(zero, op.const([1, 0], dtype), z))
    if is_complex(exponent):
        made = _exp(op, product(op, _rounded_log(op, safe), exponent))
    else:
        made = _exp(op, paired(op.Mul(_rounded_log(op, safe), column(op, exponent, dtype))))
    return paired(op.Where(zero, _power_of_zero(op, as_pair(op, exponent, dtype)), made))


@table.translate(aten.pow.Tensor_Tensor, aten.pow.Tensor_Scalar, aten.pow.Scalar, complex="only")
def pow(op: Builder, self: Any, exponent: Any) -> Value:
    """Products and roots for small constant exponents; else exp(w log z)."""
    return power(op, self, exponent, part_type(self, exponent))


@table.translate(prims.pow.default, complex="only")
def pow_prim(op: Builder, self: Any, other: Any) -> Value:
    """As pow."""
    return power(op, self, other, part_type(self, other))


@table.translate(
    aten.float_power.Tensor_Tensor, aten.float_power.Tensor_Scalar, aten.float_power.Scalar, complex="only"
)
def float_power(op: Builder, self: Any, exponent: Any) -> Value:
    """As pow, in double precision."""
    return power(op, self, _wide(op, exponent), ir.DataType.DOUBLE)


def _wide(op: Builder, x: Any) -> Any:
    if not isinstance(x, Value):
        return x
    made = op.cast(x, ir.DataType.DOUBLE)
    made.is_complex = x.is_complex
    return made


@table.translate(aten.ldexp.Tensor, complex="only")
def ldexp(op: Builder, self: Any, other: Any) -> Value:
    """Mul with a power of 2."""
    return product(op, self, op.translate(aten.pow.Scalar, 2.0, other))


@table.translate(aten.sigmoid.default, aten.special_expit.default, complex="only")
def sigmoid(op: Builder, self: Value) -> Value:
    """1 / (1 + exp(-z))."""
    return quotient(op, 1.0, added(op, _exp(op, paired(op.Neg(self))), 1.0))


@table.translate(aten.silu.default, complex="only")
def silu(op: Builder, self: Value) -> Value:
    """z / (1 + exp(-z))."""
    return quotient(op, self, added(op, _exp(op, paired(op.Neg(self))), 1.0))


@table.translate(aten.logaddexp.default, complex="only")
def logaddexp(op: Builder, self: Value, other: Value) -> Value:
    """log of the sum of exponentials, which are taken relative to the operand of the larger real part."""
    dtype = part_type(self, other)
    a, b = as_pair(op, self, dtype), as_pair(op, other, dtype)
    first = op.GreaterOrEqual(lanes(op, a).re, lanes(op, b).re)
    top, low = paired(op.Where(first, a, b)), paired(op.Where(first, b, a))
    gap = paired(op.Where(op.Equal(low, top), 0.0, op.Sub(low, top)))  # equal infinities have none
    more = op.translate(aten.log1p.default, _exp(op, gap))
    return paired(op.Add(top, more))


# --------------------------------------------- trigonometric and hyperbolic


def _sin(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    sinh, cosh = _hyperbolic(op, im)
    return joined(op, op.Mul(op.Sin(re), cosh), op.Mul(op.Cos(re), sinh))


def _cos(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    sinh, cosh = _hyperbolic(op, im)
    return joined(op, op.Mul(op.Cos(re), cosh), op.Neg(op.Mul(op.Sin(re), sinh)))


def _sinh(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    sinh, cosh = _hyperbolic(op, re)
    return joined(op, op.Mul(sinh, op.Cos(im)), op.Mul(cosh, op.Sin(im)))


def _cosh(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    sinh, cosh = _hyperbolic(op, re)
    return joined(op, op.Mul(cosh, op.Cos(im)), op.Mul(sinh, op.Sin(im)))


def _tanh(op: Builder, z: Value) -> Value:
    """Of t = tanh x, v = tan y: (t (1 + v**2) + i v / cosh(x)**2) / (1 + t**2 v**2)."""
    re, im = lanes(op, z)
    t, v, wide = op.Tanh(re), _real_tan(op, im), _hyperbolic(op, re)[1]
    squared = op.Mul(v, v)
    below = op.Add(op.Mul(op.Mul(t, t), squared), 1.0)
    first = op.Div(op.Mul(t, op.Add(squared, 1.0)), below)
    return joined(op, first, op.Div(op.Div(op.Div(v, wide), wide), below))


def _through(op: Builder, z: Value, function: Callable[[Builder, Value], Value]) -> Value:
    """f(i z) / i, by which the circular and the hyperbolic functions become each other."""
    made = turned(op, function(op, turned(op, z)))
    return paired(op.Neg(made))


def _root_of(op: Builder, re: Value, im: Value) -> Lanes:
    """The parts of a root. They come apart, as a sum of pairs would lose the sign of a zero."""
    return lanes(op, _sqrt(op, joined(op, re, im)))


def _roots(op: Builder, z: Value) -> tuple[Lanes, Lanes]:
    """The roots of 1 - z and of 1 + z."""
    re, im = lanes(op, z)
    return _root_of(op, op.Sub(1.0, re), op.Neg(im)), _root_of(op, op.Add(re, 1.0), im)


def _asin(op: Builder, z: Value) -> Value:
    """By the roots of 1 - z and 1 + z, which are right on both sides of the cuts (Kahan)."""
    a, b = _roots(op, z)
    first = _atan2(op, lanes(op, z).re, op.Sub(op.Mul(a.re, b.re), op.Mul(a.im, b.im)))
    return joined(op, first, _real_asinh(op, op.Sub(op.Mul(a.re, b.im), op.Mul(a.im, b.re))))


def _acos(op: Builder, z: Value) -> Value:
    a, b = _roots(op, z)
    first = op.Mul(_atan2(op, a.re, b.re), 2.0)
    return joined(op, first, _real_asinh(op, op.Sub(op.Mul(b.re, a.im), op.Mul(b.im, a.re))))


def _acosh(op: Builder, z: Value) -> Value:
    re, im = lanes(op, z)
    a, b = _root_of(op, op.Sub(re, 1.0), im), _root_of(op, op.Add(re, 1.0), im)
    first = _real_asinh(op, op.Add(op.Mul(a.re, b.re), op.Mul(a.im, b.im)))
    return joined(op, first, op.Mul(_atan2(op, a.im, b.re), 2.0))


def _asinh(op: Builder, z: Value) -> Value:
    return _through(op, z, _asin)


def _atanh(op: Builder, z: Value) -> Value:
    """log1p(4x / ((1 - x)**2 + y**2)) / 4, and half the angle of (1 - x)(1 + x) - y**2 + 2iy."""
    re, im = lanes(op, z)
    less, more, squared = op.Sub(1.0, re), op.Add(re, 1.0), op.Mul(im, im)
    ratio = op.Div(op.Mul(re, 4.0), op.Add(op.Mul(less, less), squared))
    first: Value = op.Mul(op.translate(aten.log1p.default, ratio), 0.25)
    angle = _atan2(op, op.Mul(im, 2.0), op.Sub(op.Mul(less, more), squared))
    return joined(op, first, op.Mul(angle, 0.5))


def _atan(op: Builder, z: Value) -> Value:
    return _through(op, z, _atanh)


def _tan(op: Builder, z: Value) -> Value:
    return _through(op, z, _tanh)


def _sinc(op: Builder, z: Value) -> Value:
    angle = paired(op.Mul(z, math.pi))
    zero = is_zero(op, z)
    return paired(op.Where(zero, op.const([1, 0], z.dtype), quotient(op, _sin(op, angle), angle)))


sin = _unary("sin", "sin x cosh y + i cos x sinh y.", _sin, aten.sin.default, prims.sin.default)
cos = _unary("cos", "cos x cosh y - i sin x sinh y.", _cos, aten.cos.default, prims.cos.default)
tan = _unary("tan", "tanh(iz) / i.", _tan, aten.tan.default, prims.tan.default)
sinh = _unary("sinh", "sinh x cos y + i cosh x sin y.", _sinh, aten.sinh.default, prims.sinh.default)
cosh = _unary("cosh", "cosh x cos y + i sinh x sin y.", _cosh, aten.cosh.default, prims.cosh.default)
tanh = _unary("tanh", "By Tanh of x and Tan of y.", _tanh, aten.tanh.default, prims.tanh.default)
asin = _unary(
    "asin",
    "By the roots of 1 - z and 1 + z.",
    _asin,
    *(aten.asin.default, aten.arcsin.default, prims.asin.default),
)
acos = _unary(
    "acos",
    "By the roots of 1 - z and 1 + z.",
    _acos,
    *(aten.acos.default, aten.arccos.default, prims.acos.default),
)
atan = _unary("atan", "atanh(iz) / i.", _atan, *(aten.atan.default, aten.arctan.default, prims.atan.default))
asinh = _unary(
    "asinh", "asin(iz) / i.", _asinh, *(aten.asinh.default, aten.arcsinh.default, prims.asinh.default)
)
acosh = _unary(
    "acosh",
    "By the roots of z - 1 and z + 1.",
    _acosh,
    *(aten.acosh.default, aten.arccosh.default, prims.acosh.default),
)
atanh = _unary(
    "atanh",
    "Half the logarithm of (1 + z) / (1 - z).",
    _atanh,
    *(aten.atanh.default, aten.arctanh.default, prims.atanh.default),
)
sinc = _unary(
    "sinc", "sin(pi z) / (pi z), and 1 at zero.", _sinc, aten.sinc.default, aten.special_sinc.default
)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def z() -> torch.Tensor:
        return torch.tensor([[1 + 2j, -0.5j, -1 + 0.25j], [0.75 - 1.5j, -0.25 + 0j, 2 + 0j]])

    def w() -> torch.Tensor:
        return torch.tensor([2 - 1j, 0.5 + 0j, 0.25 + 3j])

    def x() -> torch.Tensor:
        return torch.tensor([[1.5, -2.5, 0.5], [3.0, 0.25, -7.75]])

    def both(f: Callable[..., tuple[Any, ...]]) -> list[Callable[[], tuple[Any, ...]]]:
        return [f, lambda: tuple(a.to(torch.complex128) if isinstance(a, torch.Tensor) else a for a in f())]

    near: dict[str, Any] = {"atol": ulps(32), "reason": "complex functions are several operators here"}
    unary: list[Any] = [
        *(aten.neg, aten.negative, aten.square, aten.reciprocal, aten.abs, aten.absolute, aten.angle),
        *(aten.sgn, aten.exp, aten.exp2, aten.special_exp2, aten.expm1, aten.special_expm1, aten.log),
        *(aten.log2, aten.log10, aten.log1p, aten.special_log1p, aten.sqrt, aten.rsqrt, aten.sigmoid),
        *(aten.special_expit, aten.silu, aten.sin, aten.cos, aten.tan, aten.sinh, aten.cosh, aten.tanh),
        *(aten.asin, aten.arcsin, aten.acos, aten.arccos, aten.atan, aten.arctan, aten.asinh),
        *(aten.arcsinh, aten.acosh, aten.arccosh, aten.atanh, aten.arctanh, aten.sinc, aten.special_sinc),
    ]
    prim_unary: list[Any] = [
        *(prims.neg, prims.reciprocal, prims.abs, prims.exp, prims.exp2, prims.expm1, prims.log),
        *(prims.log2, prims.log10, prims.log1p, prims.sqrt, prims.rsqrt, prims.sin, prims.cos, prims.tan),
        *(prims.sinh, prims.cosh, prims.tanh, prims.asin, prims.acos, prims.atan, prims.asinh),
        *(prims.acosh, prims.atanh),
    ]
    found = [
        OpSample(f.default, args, **near) for f in (*unary, *prim_unary) for args in both(lambda: (z(),))
    ]
    for name in ("add", "sub", "subtract", "rsub", "mul", "multiply", "div", "divide", "true_divide"):
        packet = getattr(aten, name)
        pairs: list[Any] = [lambda: (z(), w()), lambda: (z(), x()), lambda: (x(), w())]
        found += [OpSample(packet.Tensor, args, **near) for args in pairs]
        found += [OpSample(packet.Scalar, args, **near) for args in (lambda: (z(), 2), lambda: (x(), 1 - 2j))]
    for name in ("div", "divide"):
        packet = getattr(aten, name)
        found.append(OpSample(packet.Tensor_mode, lambda: (z(), w()), {"rounding_mode": None}, **near))
        found.append(OpSample(packet.Scalar_mode, lambda: (z(), 2j), {"rounding_mode": None}, **near))
    for name in ("pow", "float_power"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.Tensor_Tensor, lambda: (z(), w()), **near),
            *(OpSample(packet.Tensor_Scalar, (z(), e), **near) for e in (0, 1, 3, -2, 0.5, -0.5, 1.7, 2j)),
            *(OpSample(packet.Scalar, (e, w()), **near) for e in (0, 2, 1 - 1j)),
        ]
    return [
        *found,
        *(
            OpSample(f.default, lambda: (z(), z() + w()), **near)
            for f in (prims.add, prims.sub, prims.mul, prims.div, prims.pow, aten.logaddexp)
        ),
        OpSample(aten.angle.default, lambda: (x(),)),
        OpSample(aten.angle.default, lambda: (torch.tensor([3, -2]),)),
        OpSample(aten.add.Tensor, lambda: (z(), w()), {"alpha": 1 - 2j}, **near),
        OpSample(aten.addcmul.default, lambda: (z(), z(), w()), {"value": 2j}, **near),
        OpSample(aten.addcdiv.default, lambda: (z(), z(), w()), {"value": 2}, **near),
        *(OpSample(aten.lerp.Scalar, (z(), w(), t), **near) for t in (0.25, 0.75, 2j)),
        OpSample(aten.lerp.Tensor, lambda: (z(), z() + 1, w()), **near),
        OpSample(aten.ldexp.Tensor, lambda: (z(), torch.tensor([1, 2, -3])), **near),
    ]
