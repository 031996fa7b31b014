"""Operators on the bits of integers; on bools they are the logical ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_core._promote import BOOL, promote

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


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
    found.append(OpSample(aten.bitwise_not.default, lambda: (numbers()[0],)))
    found.append(OpSample(aten.bitwise_not.default, lambda: (torch.tensor([True, False]),)))
    return found
