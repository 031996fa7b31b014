"""Elementwise operators of doubles, by double operators that have a kernel.

Each is right to a few units in the last place, also for small numbers, where plain formulas would cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx_ort_target.rows import Row, Rows

rows = Rows()
D = ir.DataType

_BIG = 1e150  # whose square is finite


def row(op_type: str) -> Callable[[Row], Row]:
    """A row for an operator of doubles."""
    return rows.on(op_type, D.DOUBLE)


def _log1p(op: Builder, x: Value) -> Value:
    """log(1 + x), corrected by what 1 + x loses where x is small."""
    sum_ = op.Add(x, 1)
    log = op.Log(sum_)
    lost = op.Sub(op.Sub(sum_, 1), x)
    return op.Where(op.Less(op.Abs(x), 0.5), op.Sub(log, op.Div(lost, sum_)), log)


def _expm1(op: Builder, x: Value) -> Value:
    """exp(x) - 1 without cancelling: tanh(x / 2) * (exp(x) + 1)."""
    return op.Mul(op.Tanh(op.Mul(x, 0.5)), op.Add(op.Exp(x), 1))


def _polynomial(op: Builder, x: Value, coefficients: Sequence[float]) -> Value:
    """By Horner's rule, the constant first."""
    made = op.Add(op.Mul(x, coefficients[-1]), coefficients[-2])
    for coefficient in coefficients[-3::-1]:
        made = op.Add(op.Mul(made, x), coefficient)
    return made


def _signed(op: Builder, size: Value, x: Value) -> Value:
    """``size`` with the sign of ``x``, a zero's too.

    ONNX Runtime makes +0 of -0 in Sign, and in Where if the condition holds.
    """
    return op.Mul(size, op.Sign(op.Add(x, op.Reciprocal(x))))


@row("Tan")
def tan(op: Builder, x: Value) -> Value:
    """Sin / Cos."""
    return op.Div(op.Sin(x), op.Cos(x))


@row("Atan")
def atan(op: Builder, x: Value) -> Value:
    """The float Atan, and one step of the tangent's addition theorem from there to the double one.

    An error d of the start leaves d**3 / 3, less than half a unit in the last place.
    """
    near = op.Cast(op.Atan(op.Cast(x, to=D.FLOAT)), to=D.DOUBLE)
    sin, cos = op.Sin(near), op.Cos(near)
    finite = op.Where(op.IsInf(op.Cast(x, to=D.FLOAT)), 0, x)
    step = op.Div(op.Sub(op.Mul(finite, cos), sin), op.Add(cos, op.Mul(finite, sin)))
    # Beyond floats, and at infinity, it is a right angle; 1 / x is what is left of it.
    far = op.Sub(op.Mul(op.Sign(x), math.pi / 2), op.Reciprocal(x))
    return _signed(op, op.Abs(op.Where(op.Greater(op.Abs(x), 1e30), far, op.Add(near, step))), x)


@row("Asin")
def asin(op: Builder, x: Value) -> Value:
    """Atan of sine by cosine."""
    return op.Atan(op.Div(x, op.Sqrt(op.Mul(op.Sub(1, x), op.Add(1, x)))))


@row("Acos")
def acos(op: Builder, x: Value) -> Value:
    """Twice Atan of the half angle's tangent."""
    return op.Mul(op.Atan(op.Sqrt(op.Div(op.Sub(1, x), op.Add(1, x)))), 2)


@row("Sinh")
def sinh(op: Builder, x: Value) -> Value:
    """Tanh * Cosh."""
    return op.Mul(op.Tanh(x), op.Cosh(x))


@row("Cosh")
def cosh(op: Builder, x: Value) -> Value:
    """(e + 1/e) / 2, e in two factors, for it overflows before the result does."""
    root = op.Exp(op.Mul(op.Abs(x), 0.5))
    half = op.Mul(root, 0.5)
    return op.Add(op.Mul(half, root), op.Div(op.Div(0.5, root), root))


@row("Asinh")
def asinh(op: Builder, x: Value) -> Value:
    """Log of |x| + sqrt(x**2 + 1), with the sign of x."""
    size = op.Abs(x)
    square = op.Mul(size, size)
    near = _log1p(op, op.Add(size, op.Div(square, op.Add(op.Sqrt(op.Add(square, 1)), 1))))
    far = op.Add(op.Log(size), math.log(2))
    return _signed(op, op.Where(op.Less(size, _BIG), near, far), x)


@row("Acosh")
def acosh(op: Builder, x: Value) -> Value:
    """Log of x + sqrt(x**2 - 1), counted from 1."""
    over = op.Sub(x, 1)
    near = _log1p(op, op.Add(over, op.Sqrt(op.Mul(over, op.Add(x, 1)))))
    far = op.Add(op.Log(x), math.log(2))
    return op.Where(op.Greater(x, _BIG), far, near)


@row("Atanh")
def atanh(op: Builder, x: Value) -> Value:
    """Half the log of (1 + |x|) / (1 - |x|), with the sign of x."""
    size = op.Abs(x)
    ratio = op.Div(op.Mul(size, 2), op.Sub(1, size))
    return _signed(op, op.Mul(_log1p(op, ratio), 0.5), x)


# erf(x) / x as a polynomial of x**2, for |x| < 1. Both interpolate the function, as mpmath has it, at the
# Chebyshev nodes of the interval; they are off by less than 2e-17 and 4e-16 of its values.
_ERF = (
    1.1283791670955126, -0.3761263890318375, 0.11283791670954879, -0.026866170645076792,
    0.0052239776248180145, -0.000854832698083379, 0.0001205533111164271, -1.4925595266831182e-05,
    1.6461000484121368e-06, -1.6350312701054695e-07, 1.4659775274047436e-08, -1.1372848856791674e-09,
    5.957176147748911e-11,
)  # fmt: skip
# erfc(x) * exp(x**2) as a polynomial of 2.4 * (x - 3) / (x + 3) + 0.2, for x from 1 to 6.
_ERFC = (
    0.20798329133342885, -0.15436117429436919, 0.04969844540339464, -0.012713147695692198,
    0.002479314697078186, -0.0003316029605764125, 1.9563583246137112e-05, 2.4255574719050315e-06,
    -5.541274478467714e-07, -4.526700764248741e-09, 1.1339538061744706e-08, -2.6381508985080735e-10,
    -2.571511429603255e-10, 6.047405945991704e-12, 6.0857915906870915e-12,
)  # fmt: skip


@row("Erf")
def erf(op: Builder, x: Value) -> Value:
    """Two polynomials: of x**2 below 1, above it of a fraction of x, times exp(-x**2)."""
    size = op.Abs(x)
    inner = op.Mul(size, _polynomial(op, op.Mul(x, x), _ERF))
    # From 6 on it is 1.
    outer = op.Where(op.Greater(size, 6.0), 6.0, size)
    place = op.Add(op.Mul(op.Div(op.Sub(outer, 3), op.Add(outer, 3)), 2.4), 0.2)
    tail = op.Mul(op.Exp(op.Neg(op.Mul(outer, outer))), _polynomial(op, place, _ERFC))
    return _signed(op, op.Where(op.Less(size, 1.0), inner, op.Sub(1, tail)), x)


@row("Gelu")
def gelu(op: Builder, x: Value, *, approximate: str = "none") -> Value:
    """Spelled out with Erf, or with Tanh when approximate="tanh"."""
    if approximate == "tanh":
        cubic = op.Mul(op.Mul(op.Mul(x, x), x), 0.044715)
        inner = op.Tanh(op.Mul(op.Add(x, cubic), math.sqrt(2 / math.pi)))
    else:
        inner = op.Erf(op.Mul(x, math.sqrt(0.5)))
    return op.Mul(op.Mul(x, 0.5), op.Add(inner, 1))


@row("Elu")
def elu(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """alpha * (exp(x) - 1) below zero."""
    curved = _expm1(op, x)
    return op.Where(op.Greater(x, 0), x, curved if alpha == 1.0 else op.Mul(curved, alpha))


@row("Selu")
def selu(
    op: Builder,
    x: Value,
    *,
    alpha: float = 1.6732632423543772,
    gamma: float = 1.0507009873554805,
) -> Value:
    """gamma * Elu."""
    return op.Mul(elu(op, x, alpha=alpha), gamma)


@row("Softplus")
def softplus(op: Builder, x: Value) -> Value:
    """log(1 + exp(-|x|)) + max(x, 0)."""
    return op.Add(_log1p(op, op.Exp(op.Neg(op.Abs(x)))), op.Relu(x))


@row("Softsign")
def softsign(op: Builder, x: Value) -> Value:
    """x / (1 + |x|)."""
    return op.Div(x, op.Add(op.Abs(x), 1))


@row("Mish")
def mish(op: Builder, x: Value) -> Value:
    """x * Tanh(Softplus(x))."""
    return op.Mul(x, op.Tanh(op.Softplus(x)))


@row("HardSigmoid")
def hard_sigmoid(op: Builder, x: Value, *, alpha: float = 0.2, beta: float = 0.5) -> Value:
    """alpha * x + beta within 0 and 1."""
    return op.Max(op.Min(op.Add(op.Mul(x, alpha), beta), 1), 0)


@row("HardSwish")
def hard_swish(op: Builder, x: Value) -> Value:
    """x * (x + 3) / 6, the fraction within 0 and 1."""
    return op.Div(op.Mul(x, op.Max(op.Min(op.Add(x, 3), 6), 0)), 6)


@row("LeakyRelu")
def leaky_relu(op: Builder, x: Value, *, alpha: float = 0.01) -> Value:
    """alpha * x below zero."""
    return op.Where(op.Less(x, 0), op.Mul(x, alpha), x)


@row("PRelu")
def prelu(op: Builder, x: Value, slope: Value) -> Value:
    """slope * x below zero."""
    return op.Where(op.Less(x, 0), op.Mul(slope, x), x)


@row("ThresholdedRelu")
def thresholded_relu(op: Builder, x: Value, *, alpha: float = 1.0) -> Value:
    """x above alpha, else 0."""
    return op.Where(op.Greater(x, alpha), x, 0)


@row("Clip")
def clip(op: Builder, x: Value, low: Value | None = None, high: Value | None = None) -> Value:
    """Max and Min."""
    made = x if low is None else op.Max(x, low)
    return made if high is None else op.Min(made, high)


@row("Mean")
def mean(op: Builder, *xs: Value) -> Value:
    """Sum / n."""
    return op.Div(op.Sum(*xs), float(len(xs)))


@row("NonZero")
def nonzero(op: Builder, x: Value) -> Value:
    """NonZero of whether it is not zero."""
    return op.NonZero(op.Cast(x, to=D.BOOL))


@row("OneHot")
def one_hot(op: Builder, indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Value:
    """OneHot of integers."""
    return op.OneHot(op.Cast(indices, to=D.INT64), op.Cast(depth, to=D.INT64), values, axis=axis)


@row("Hardmax")
def hardmax(op: Builder, x: Value, *, axis: int = -1) -> Any:
    """OneHot of the place of the largest. Below opset 13 it takes several axes for one."""
    if op.opset < 13:
        return NotImplemented
    depth = op.Gather(op.Shape(x), op.const(axis, D.INT64))
    place = op.ArgMax(x, axis=axis, keepdims=0)
    return op.Cast(op.OneHot(place, depth, op.const([0, 1], D.INT64), axis=axis), to=D.DOUBLE)


@row("MeanVarianceNormalization")
def mean_variance_normalization(op: Builder, x: Value, *, axes: Sequence[int] = (0, 2, 3)) -> Value:
    """As ONNX's function has it, the variance by squares of distances."""
    centred = op.Sub(x, op.ReduceMean(x, list(axes)))
    deviation = op.Sqrt(op.ReduceMean(op.Mul(centred, centred), list(axes)))
    return op.Div(centred, op.Add(deviation, 1e-9))
