"""Operators on the bits of integers; on bools they are the logical ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, SymSize, Value
from atonnx.build.dtypes import to_torch
from atonnx.dispatch import Table
from atonnx_aten_core._promote import BOOL, in_dtype, promote, result_type

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

# The unsigned dtype of the same width, which BitShift needs.
_UNSIGNED = {
    ir.DataType.INT8: ir.DataType.UINT8,
    ir.DataType.INT16: ir.DataType.UINT16,
    ir.DataType.INT32: ir.DataType.UINT32,
    ir.DataType.INT64: ir.DataType.UINT64,
}


def _bits(op: Builder, logical: str, bitwise: str, self: Any, other: Any) -> Value:
    a, b = promote(op, self, other)
    return getattr(op, logical if a.dtype == BOOL else bitwise)(a, b)


@table.translate(
    aten.bitwise_and.Tensor,
    aten.bitwise_and.Scalar,
    aten.bitwise_and.Scalar_Tensor,
    aten.__and__.Tensor,
    aten.__and__.Scalar,
)
def bitwise_and(op: Builder, self: Any, other: Any) -> Value:
    """BitwiseAnd; And for bools."""
    return _bits(op, "And", "BitwiseAnd", self, other)


@table.translate(
    aten.bitwise_or.Tensor,
    aten.bitwise_or.Scalar,
    aten.bitwise_or.Scalar_Tensor,
    aten.__or__.Tensor,
    aten.__or__.Scalar,
)
def bitwise_or(op: Builder, self: Any, other: Any) -> Value:
    """BitwiseOr; Or for bools."""
    return _bits(op, "Or", "BitwiseOr", self, other)


@table.translate(
    aten.bitwise_xor.Tensor,
    aten.bitwise_xor.Scalar,
    aten.bitwise_xor.Scalar_Tensor,
    aten.__xor__.Tensor,
    aten.__xor__.Scalar,
)
def bitwise_xor(op: Builder, self: Any, other: Any) -> Value:
    """BitwiseXor; Xor for bools."""
    return _bits(op, "Xor", "BitwiseXor", self, other)


@table.translate(aten.bitwise_not.default)
def bitwise_not(op: Builder, self: Value) -> Value:
    """BitwiseNot; Not for bools."""
    return op.Not(self) if self.dtype == BOOL else op.BitwiseNot(self)


def _unsigned(op: Builder, x: Value) -> Value:
    kind = _UNSIGNED.get(x.dtype)  # type: ignore[arg-type]
    return x if kind is None else op.Cast(x, to=kind)


def _shift(op: Builder, direction: str, x: Value, count: Any) -> Value:
    """BitShift of the unsigned bits of ``x``; past the last one nothing is left.

    A negative count is a large one without its sign, as in torch.
    """
    width = torch.iinfo(to_torch(x.dtype)).bits  # type: ignore[arg-type]
    if not isinstance(count, (Value, SymSize)):
        if not 0 <= count < width:
            return op.Mul(x, 0)
        return op.cast(op.BitShift(_unsigned(op, x), int(count), direction=direction), x.dtype)
    by = _unsigned(op, in_dtype(op, count, x.dtype))  # type: ignore[arg-type]
    made = op.cast(op.BitShift(_unsigned(op, x), by, direction=direction), x.dtype)
    return op.Where(op.Less(by, width), made, 0)


@table.translate(
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
def left_shift(op: Builder, self: Any, other: Any) -> Value:
    """BitShift of the unsigned bits; a count past them gives zero."""
    return _shift(op, "LEFT", in_dtype(op, self, result_type(self, other)), other)


@table.translate(
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)
def right_shift(op: Builder, self: Any, other: Any) -> Value:
    """BitShift of the unsigned bits; of a negative number the flipped bits are shifted and flipped back."""
    x = in_dtype(op, self, result_type(self, other))
    if x.dtype not in _UNSIGNED:
        return _shift(op, "RIGHT", x, other)
    negative = op.Less(x, 0)
    # -1 - x has all bits of x flipped.
    made = _shift(op, "RIGHT", op.Where(negative, op.Sub(-1, x), x), other)
    return op.Where(negative, op.Sub(-1, made), made)
