"""Operators on the bits of integers; on bools they are the logical ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_aten_core._axes import axis_of
from atonnx_aten_core._promote import BOOL, promote

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)

INT64, UINT64 = ir.DataType.INT64, ir.DataType.UINT64


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


@table.translate(
    aten.bitwise_left_shift.Tensor,
    aten.bitwise_left_shift.Tensor_Scalar,
    aten.bitwise_left_shift.Scalar_Tensor,
    aten.__lshift__.Tensor,
    aten.__lshift__.Scalar,
)
def left_shift(op: Builder, self: Any, other: Any) -> Value:
    """BitShift; a negative count, or one past the last bit, leaves zero."""
    return op.BitShift(*promote(op, self, other), direction="LEFT")


@table.translate(
    aten.bitwise_right_shift.Tensor,
    aten.bitwise_right_shift.Tensor_Scalar,
    aten.bitwise_right_shift.Scalar_Tensor,
    aten.__rshift__.Tensor,
    aten.__rshift__.Scalar,
)
def right_shift(op: Builder, self: Any, other: Any) -> Value:
    """BitShift, which keeps the sign; of a count past the last bit only that is left."""
    return op.BitShift(*promote(op, self, other), direction="RIGHT")


# ------------------------------------------------------------- hash_tensor


def _pattern(op: Builder, x: Value) -> Value:
    """The bits of float64 as int64, computed from the parts of the numbers; a nan has no sign."""
    mantissa, exponent = op.translate(aten.frexp.Tensor, x)
    whole = op.cast(op.Mul(op.Abs(mantissa), 2.0**53), INT64)
    normal = op.Add(whole, op.Mul(op.cast(op.Add(exponent, 1021), INT64), 1 << 52))
    # 2**1074 is no number, so what is below the normal numbers is scaled twice.
    small = op.cast(op.Mul(op.Mul(op.Abs(x), 2.0**537), 2.0**537), INT64)
    made = op.Where(op.Less(op.Abs(x), 2.0**-1022), small, normal)
    made = op.Where(op.Equal(op.Abs(x), math.inf), 0x7FF << 52, made)
    negative = op.translate(aten.signbit.default, x)
    made = op.Add(made, op.Where(negative, op.const(-1 << 63, INT64), 0))
    return op.Where(op.IsNaN(x), 0x7FF8 << 48, made)


@table.translate("aten::hash_tensor")
def hash_tensor(
    op: Builder, self: Value, dim: Sequence[int] = (), *, keepdim: bool = False, mode: int = 0
) -> Value:
    """The exclusive or of 64-bit patterns: of each bit, whether the ReduceSum is odd."""
    floats = self.dtype in FLOATS
    bits = _pattern(op, op.cast(self, ir.DataType.DOUBLE)) if floats else op.cast(self, INT64)
    places = op.const(np.arange(64, dtype=np.uint64))
    shifted = op.BitShift(op.Unsqueeze(op.cast(bits, UINT64), [-1]), places, direction="RIGHT")
    counts = op.cast(op.Mod(shifted, 2), INT64)
    axes = [axis_of(d, self.rank) for d in dim] or list(range(self.rank))
    if axes and self.rank:
        counts = op.ReduceSum(counts, axes, keepdims=int(keepdim))
    powers = op.const(np.int64(1) << np.arange(32))
    # In halves, as ONNX Runtime adds integers up in float64.
    halves = op.Split(op.Mod(counts, 2), [32, 32], axis=-1, outputs=2)
    low, high = (op.ReduceSum(op.Mul(half, powers), [-1], keepdims=0) for half in halves)
    return op.cast(op.Add(low, op.Mul(high, 1 << 32)), UINT64)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def numbers() -> tuple[Any, ...]:
        return (torch.tensor([[6, -7, 0], [5, 3, -1]]), torch.tensor([3, 5, -4]))

    found = []
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.Tensor, numbers),
            OpSample(packet.Tensor, lambda: (torch.tensor([True, False]), torch.tensor([[True], [False]]))),
            OpSample(packet.Scalar, lambda: (numbers()[0], 3)),
            OpSample(packet.Scalar_Tensor, lambda: (3, numbers()[0])),
        ]
    for name in ("__and__", "__or__", "__xor__"):
        packet = getattr(aten, name)
        found += [OpSample(packet.Tensor, numbers), OpSample(packet.Scalar, lambda: (numbers()[0], 3))]
    for name in ("bitwise_left_shift", "bitwise_right_shift"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.Tensor, lambda: (numbers()[0], torch.tensor([1, 2, 70]))),
            OpSample(packet.Tensor_Scalar, lambda: (numbers()[0], 2)),
            OpSample(packet.Scalar_Tensor, lambda: (-9, torch.tensor([1, 2, 70]))),
        ]
    for name in ("__lshift__", "__rshift__"):
        packet = getattr(aten, name)
        found += [
            OpSample(packet.Tensor, lambda: (numbers()[0], torch.tensor([1, 2, 70]))),
            OpSample(packet.Scalar, lambda: (numbers()[0], 2)),
        ]
    if hasattr(aten, "hash_tensor"):
        found.append(OpSample(aten.hash_tensor.default, lambda: (numbers()[0], [1])))
        found.append(OpSample(aten.hash_tensor.default, lambda: (numbers()[0] / 7,)))
    found.append(OpSample(aten.bitwise_not.default, lambda: (numbers()[0],)))
    found.append(OpSample(aten.bitwise_not.default, lambda: (torch.tensor([True, False]),)))
    return found
