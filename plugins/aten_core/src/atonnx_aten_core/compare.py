"""Comparisons, and logic on truth values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._promote import BOOL, in_dtype, promote

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


def _ordered(op: Builder, name: str, self: Any, other: Any) -> Value:
    """Less and its kin over the promoted operands; ONNX does not order bools, so they are cast."""
    a, b = promote(op, self, other)
    if a.dtype == BOOL:
        a, b = op.cast(a, ir.DataType.INT32), op.cast(b, ir.DataType.INT32)
    return getattr(op, name)(a, b)


@table.translate(aten.eq.Tensor, aten.eq.Scalar)
def eq(op: Builder, self: Value, other: Any) -> Value:
    """Equal."""
    return op.Equal(*promote(op, self, other))


@table.translate(aten.ne.Tensor, aten.ne.Scalar, aten.not_equal.Tensor, aten.not_equal.Scalar)
def ne(op: Builder, self: Value, other: Any) -> Value:
    """Not of Equal."""
    return op.Not(op.Equal(*promote(op, self, other)))


@table.translate(aten.lt.Tensor, aten.lt.Scalar, aten.less.Tensor, aten.less.Scalar)
def lt(op: Builder, self: Value, other: Any) -> Value:
    """Less."""
    return _ordered(op, "Less", self, other)


@table.translate(aten.le.Tensor, aten.le.Scalar, aten.less_equal.Tensor, aten.less_equal.Scalar)
def le(op: Builder, self: Value, other: Any) -> Value:
    """LessOrEqual."""
    return _ordered(op, "LessOrEqual", self, other)


@table.translate(aten.gt.Tensor, aten.gt.Scalar, aten.greater.Tensor, aten.greater.Scalar)
def gt(op: Builder, self: Value, other: Any) -> Value:
    """Greater."""
    return _ordered(op, "Greater", self, other)


@table.translate(aten.ge.Tensor, aten.ge.Scalar, aten.greater_equal.Tensor, aten.greater_equal.Scalar)
def ge(op: Builder, self: Value, other: Any) -> Value:
    """GreaterOrEqual."""
    return _ordered(op, "GreaterOrEqual", self, other)


@table.translate(aten.logical_and.default)
def logical_and(op: Builder, self: Value, other: Value) -> Value:
    """And of the operands as truth values."""
    return op.And(in_dtype(op, self, BOOL), in_dtype(op, other, BOOL))


@table.translate(aten.logical_or.default)
def logical_or(op: Builder, self: Value, other: Value) -> Value:
    """Or of the operands as truth values."""
    return op.Or(in_dtype(op, self, BOOL), in_dtype(op, other, BOOL))


@table.translate(aten.logical_xor.default)
def logical_xor(op: Builder, self: Value, other: Value) -> Value:
    """Xor of the operands as truth values."""
    return op.Xor(in_dtype(op, self, BOOL), in_dtype(op, other, BOOL))


@table.translate(aten.logical_not.default)
def logical_not(op: Builder, self: Value) -> Value:
    """Not of the operand as a truth value."""
    return op.Not(op.cast(self, BOOL))


@table.translate(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther, aten.where.Scalar)
def where(op: Builder, condition: Value, self: Any, other: Any) -> Value:
    """Where over the promoted branches."""
    return op.Where(op.cast(condition, BOOL), *promote(op, self, other))


@table.translate(aten.isclose.default)
def isclose(
    op: Builder,
    self: Value,
    other: Value,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Value:
    """Equal, or a finite difference within atol + rtol * |other|; nans are equal if asked."""
    a, b = promote(op, self, other)
    if a.dtype == BOOL:
        return op.Equal(a, b)
    close = op.Equal(a, b)
    floats = a.dtype.is_floating_point()
    if equal_nan and floats:
        close = op.Or(close, op.And(op.IsNaN(a), op.IsNaN(b)))
    if rtol == 0 and atol == 0:
        return close
    kind = a.dtype if floats else ir.DataType.FLOAT
    allowed = op.Add(op.Abs(op.Mul(op.cast(b, kind), rtol)), atol)
    error = op.cast(op.Abs(op.Sub(a, b)), kind)
    near = op.And(op.LessOrEqual(error, allowed), op.Less(error, float("inf")))
    return op.Or(close, near)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def pair() -> tuple[Any, ...]:
        return (torch.tensor([[1.0, -2.0, 0.0], [float("nan"), 3.0, 2.5]]), torch.tensor([1.0, 3.0, -0.0]))

    def truths() -> tuple[Any, ...]:
        return (torch.tensor([True, False, True]), torch.tensor([[True], [False]]))

    found = []
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.Tensor, pair),
            OpSample(packet.Tensor, truths),
            OpSample(packet.Tensor, lambda: (torch.tensor([1, 2]), torch.tensor(1.5))),
            OpSample(packet.Scalar, lambda: (pair()[0], 2.5)),
            OpSample(packet.Scalar, lambda: (torch.tensor([1, 2, 3], dtype=torch.int8), 2)),
        ]
    for name in ("not_equal", "less", "less_equal", "greater", "greater_equal"):
        packet = getattr(aten, name)
        found += [OpSample(packet.Tensor, pair), OpSample(packet.Scalar, lambda: (pair()[0], 1))]
    for packet in (aten.logical_and, aten.logical_or, aten.logical_xor):
        found += [OpSample(packet.default, truths), OpSample(packet.default, pair)]
    condition = torch.tensor([[True, False, True], [False, True, False]])
    return [
        *found,
        OpSample(aten.logical_not.default, lambda: (pair()[0],)),
        OpSample(aten.where.self, lambda: (condition, *pair())),
        OpSample(aten.where.self, lambda: (condition, torch.tensor([1, 2, 3]), torch.tensor(0.5))),
        OpSample(aten.where.ScalarSelf, lambda: (condition, 2.5, torch.tensor([1, 2, 3]))),
        OpSample(aten.where.ScalarOther, lambda: (condition, torch.tensor([1, 2, 3]), 2.5)),
        OpSample(aten.where.Scalar, lambda: (condition, 1, 2)),
        OpSample(aten.isclose.default, pair),
        OpSample(aten.isclose.default, lambda: (*pair(), 0.5, 0.1, True)),
        OpSample(aten.isclose.default, lambda: (torch.tensor([1, 5]), torch.tensor([1, 6]))),
    ]
