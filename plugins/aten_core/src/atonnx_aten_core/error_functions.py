"""The error function's relatives: its inverse, the normal distribution, entropies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._fitted import Array, Cells, look_up, of_torch
from atonnx_aten_core._promote import arithmetic, float_type, through_float

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

_erfcx = of_torch(torch.special.erfcx)
_erfinv = of_torch(torch.special.erfinv)
_ndtri = of_torch(torch.special.ndtri)


def _erfcx_over_place(y: Array) -> Array:
    return _erfcx(4.0 / y - 4.0) / y


def _erfinv_over_y(s: Array) -> Array:
    """erfinv(y) / y for s = sqrt(-log(1 - y**2)); by ndtri where y is too near 1 to be told from it."""
    above = -np.expm1(-s * s)
    low = np.sqrt(above)
    gap = np.exp(-s * s) / (1.0 + low)
    return np.where(low < 0.5, _erfinv(low), -_ndtri(gap / 2) / math.sqrt(2)) / low


# Johnson's variable y = 4 / (4 + x) for x from infinity to 0.
_SCALED = Cells((_erfcx_over_place, 0.0, 1.0, 128))
# Doubles next to 1 have s = 6.06.
_INVERSE = Cells((_erfinv_over_y, 0.0, 6.25, 100))
# The smallest normal double has s = 37.6; below, ndtri itself has no digits.
_QUANTILE = Cells((lambda s: -_ndtri(np.exp(-0.5 * s * s)), 1.0, 37.625, 293))


def scaled_erfc(op: Builder, x: Value) -> Value:
    """exp(x**2) erfc(x) of an x that is not negative."""
    place = op.Div(4.0, op.Add(x, 4.0))
    return op.Mul(place, look_up(op, _SCALED, op.Mul(place, 128.0)))


@table.translate(aten.special_erfcx.default)
def special_erfcx(op: Builder, self: Value) -> Value:
    """exp(x**2) * erfc(x): a table over 4 / (4 + |x|), mirrored by erfc(-x) = 2 - erfc(x)."""

    def compute(x: Value) -> Value:
        right = scaled_erfc(op, op.Abs(x))
        left = op.Sub(op.Mul(op.Exp(op.Mul(x, x)), 2.0), right)
        return op.Where(op.Less(x, 0.0), left, right)

    return through_float(op, self, compute)


@table.translate(aten.erfinv.default, aten.special_erfinv.default)
def erfinv(op: Builder, self: Value) -> Value:
    """y times a table over sqrt(-log(1 - y**2)), in which erfinv(y) / y is smooth up to the ends."""

    def compute(y: Value) -> Value:
        far = op.Sqrt(op.Neg(op.Log(op.Mul(op.Sub(1.0, y), op.Add(y, 1.0)))))
        slope = look_up(op, _INVERSE, op.Mul(far, 16.0))
        return op.Mul(y, op.Where(op.Equal(far, math.inf), math.inf, slope))

    return through_float(op, self, compute)


@table.translate(aten.special_ndtri.default)
def special_ndtri(op: Builder, self: Value) -> Value:
    """The normal quantile: a table over sqrt(-2 log p) of the smaller of p and 1 - p."""

    def compute(p: Value) -> Value:
        tail = op.Sqrt(op.Mul(op.Log(op.Min(p, op.Sub(1.0, p))), -2.0))
        size = look_up(op, _QUANTILE, op.Sub(op.Mul(tail, 8.0), 8.0))
        size = op.Where(op.Equal(tail, math.inf), math.inf, size)
        return op.Where(op.Less(p, 0.5), op.Neg(size), size)

    return through_float(op, self, compute)


@table.translate(aten.special_log_ndtr.default)
def special_log_ndtr(op: Builder, self: Value) -> Value:
    """log(erfcx(t) / 2) - t**2 below zero, t being |x| / sqrt(2); log(1 - exp(-t**2) erfcx(t) / 2) above."""

    def compute(x: Value) -> Value:
        t = op.Mul(op.Abs(x), math.sqrt(0.5))
        half = op.Mul(scaled_erfc(op, t), 0.5)
        square = op.Mul(t, t)
        below = op.Sub(op.Log(half), square)
        above = _log1p(op, op.Neg(op.Mul(op.Exp(op.Neg(square)), half)))
        return op.Where(op.Less(x, 0.0), below, above)

    return through_float(op, self, compute)


def _log1p(op: Builder, x: Value) -> Value:
    made: Value = op.translate(aten.log1p.default, x)
    return made


@table.translate(aten.special_entr.default)
def special_entr(op: Builder, self: Value) -> Value:
    """-x log x, 0 at zero, -inf below."""

    def compute(x: Value) -> Value:
        made = op.Where(op.Equal(x, 0.0), 0.0, op.Neg(op.Mul(x, op.Log(x))))
        return op.Where(op.Less(x, 0.0), -math.inf, made)

    return through_float(op, self, compute)


@table.translate(
    aten.special_xlog1py.default, aten.special_xlog1py.other_scalar, aten.special_xlog1py.self_scalar
)
def special_xlog1py(op: Builder, self: Any, other: Any) -> Value:
    """Mul with log(1 + y); zero where the factor is zero, nan where the other operand is."""

    def compute(x: Value, y: Value) -> Value:
        made = op.Where(op.Equal(x, 0.0), 0.0, op.Mul(x, _log1p(op, y)))
        return op.Where(op.IsNaN(y), math.nan, made)

    return arithmetic(op, compute, self, other, dtype=float_type(self, other), wide=True)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample, ulps

    def line() -> tuple[Any, ...]:
        return (torch.tensor([[-30.0, -2.5, -0.75, -0.0], [0.25, 1.5, 6.0, 400.0]]),)

    def inside() -> tuple[Any, ...]:
        return (torch.tensor([[1e-30, 0.01, 0.25, 0.5], [0.625, 0.9, 0.99999, 1.0]]),)

    def whole() -> tuple[Any, ...]:
        return (torch.tensor([[-1, 0], [1, 3]]),)

    def pair() -> tuple[Any, ...]:
        return (torch.tensor([[1.5, 0.0, -2.0]]), torch.tensor([[0.25], [-0.5], [8.0]]))

    near: dict[str, Any] = {"atol": ulps(32), "reason": "a table and several operators, each of which rounds"}
    return [
        *(
            OpSample(f.default, args, **near)
            for f in (aten.special_erfcx, aten.special_log_ndtr, aten.special_entr)
            for args in (line, whole)
        ),
        *(
            OpSample(f.default, args, **near)
            for f in (aten.erfinv, aten.special_erfinv, aten.special_ndtri)
            for args in (inside, whole)
        ),
        OpSample(aten.special_xlog1py.default, pair, **near),
        OpSample(aten.special_xlog1py.other_scalar, lambda: (pair()[0], 2), **near),
        OpSample(aten.special_xlog1py.self_scalar, lambda: (2, pair()[1]), **near),
    ]
