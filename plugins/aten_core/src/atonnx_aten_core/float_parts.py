"""The parts of floating-point numbers, and their neighbours, by arithmetic that is exact."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table
from atonnx_aten_core._promote import HALF, promote

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


class _Format(NamedTuple):
    """Bits of the mantissa, exponent of the least subnormal."""

    bits: int
    least: int


_FORMATS = {
    ir.DataType.FLOAT16: _Format(11, -24),
    ir.DataType.BFLOAT16: _Format(8, -133),
    ir.DataType.FLOAT: _Format(24, -149),
    ir.DataType.DOUBLE: _Format(53, -1074),
}


@table.translate(aten.frexp.Tensor)
def frexp(op: Builder, self: Value) -> tuple[Value, Value]:
    """The exponent by Log, corrected by one, and Mul with the power of two; exact.

    Subnormal numbers are scaled into the range of normal ones first.
    """
    kind = self.dtype
    x = op.cast(self, ir.DataType.FLOAT) if kind in HALF else self
    form = _FORMATS[x.dtype]
    size = op.Abs(x)
    plain = op.And(op.Greater(size, 0.0), op.Less(size, math.inf))
    small = op.Less(size, 2.0 ** (form.least + form.bits - 1))
    scaled = op.Where(plain, op.Where(small, op.Mul(x, 2.0**form.bits), x), 0.5)
    exponent = op.Add(op.Floor(op.Div(op.Log(op.Abs(scaled)), math.log(2))), 1.0)
    mantissa = op.Mul(scaled, op.Pow(op.const(2.0, x.dtype), op.Neg(exponent)))
    high = op.GreaterOrEqual(op.Abs(mantissa), 1.0)
    low = op.Less(op.Abs(mantissa), 0.5)
    shift = op.Where(high, 1.0, op.Where(low, -1.0, op.const(0.0, x.dtype)))
    mantissa = op.Where(high, op.Mul(mantissa, 0.5), op.Where(low, op.Mul(mantissa, 2.0), mantissa))
    exponent = op.Sub(op.Add(exponent, shift), op.Where(small, float(form.bits), op.const(0.0, x.dtype)))
    exponent = op.Where(plain, exponent, 0.0)
    return (
        op.cast(op.Where(plain, mantissa, x), kind),
        op.Cast(exponent, to=ir.DataType.INT32),
    )


@table.translate(aten.nextafter.default)
def nextafter(op: Builder, self: Value, other: Value) -> Value:
    """x plus or minus a little more than half its last bit, which rounds to its neighbour.

    Rump, Zimmermann, Boldo and Melquiond, "Computing predecessor and successor in rounding to nearest".
    """
    a, b = promote(op, self, other)
    kind = a.dtype
    form = _FORMATS[kind]
    if kind in HALF:
        a, b = op.cast(a, ir.DataType.FLOAT), op.cast(b, ir.DataType.FLOAT)
    unit, least = 2.0**-form.bits, 2.0**form.least
    negative = op.Or(op.Less(a, 0.0), op.And(op.Equal(a, 0.0), op.Less(b, 0.0)))
    size = op.Abs(a)
    away = op.Where(op.Xor(op.Greater(b, a), negative), 1.0, op.const(-1.0, a.dtype))
    # Below 1/2 unit**-2 least the product would lose bits, so such numbers are scaled up; below
    # unit**-1 least neighbours are the least number apart.
    small = op.Less(size, 2.0 ** (2 * form.bits - 1 + form.least))
    scaled = op.Where(small, op.Mul(size, 1 / unit), size)
    moved = op.Add(scaled, op.Mul(op.Mul(scaled, unit * (1 + 2 * unit)), away))
    if kind in HALF:  # float32 keeps that it is more than a half; it is rounded here
        moved = op.cast(op.cast(moved, kind), ir.DataType.FLOAT)
    moved = op.Where(small, op.Mul(moved, unit), moved)
    moved = op.Where(op.Less(size, least / unit), op.Add(size, op.Mul(away, least)), moved)
    moved = op.Where(op.Equal(size, math.inf), torch.finfo(to_torch(kind)).max, moved)
    made = op.Where(op.Equal(a, b), b, op.Where(negative, op.Neg(moved), moved))
    return op.cast(op.Where(op.Or(op.IsNaN(a), op.IsNaN(b)), math.nan, made), kind)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        special = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1e-45, 3e38]
        return torch.tensor([[1.0, -2.0, 0.3, 1e-39, -1e-20, 7e30, -5.5], special])

    return [
        OpSample(aten.frexp.Tensor, lambda: (x(),)),
        OpSample(aten.frexp.Tensor, lambda: (x().double(),)),
        OpSample(aten.nextafter.default, lambda: (x(), torch.tensor(2.0))),
        OpSample(aten.nextafter.default, lambda: (x().double(), -x()[:1].double())),
    ]
