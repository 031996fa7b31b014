"""Affine quantization: q = clip(round(x / scale) + zero point), x' = (q - zero point) * scale."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS, INTS, to_torch

__all__ = [
    "along",
    "clipped",
    "dequantized",
    "grid",
    "integer",
    "is_used",
    "quantized",
    "scalar",
    "storage",
]

FLOAT = ir.DataType.FLOAT
# The dtypes of QuantizeLinear that runtimes have everywhere, the usual ones first.
_STORAGE = (ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.UINT16, ir.DataType.INT16)


def _limits(dtype: ir.DataType) -> tuple[int, int]:
    info = torch.iinfo(to_torch(dtype))
    return info.min, info.max


def storage(low: int, high: int) -> ir.DataType | None:
    """The dtype of QuantizeLinear that holds a range; None where none does."""
    for dtype in _STORAGE:
        least, most = _limits(dtype)
        if least <= low and high <= most:
            return dtype
    return None


def scalar(op: Builder, value: Any, dtype: ir.DataType) -> Value:
    """A number, or a tensor of one element, as a rank-0 value."""
    if isinstance(value, Value):
        value = op.reshape(value, ())
    return op.cast(value, dtype)


def integer(op: Builder, zero_point: Value, low: int, high: int) -> Value:
    """A zero point that was learnt: rounded, and within the range."""
    return op.Clip(op.Round(zero_point), low, high) if zero_point.dtype in FLOATS else zero_point


def along(op: Builder, value: Value, axis: int, rank: int) -> Value:
    """One number for each channel, in a form that broadcasts with the tensor."""
    behind = list(range(1, rank - axis % rank))
    return op.Unsqueeze(value, behind) if behind else value


def clipped(op: Builder, q: Value, low: Any, high: Any) -> Value:
    """Clip, where the range is narrower than the dtype."""
    if q.dtype in INTS and (low, high) == _limits(q.dtype):
        return q
    bounds = [op.reshape(op.cast(b, q.dtype), ()) if isinstance(b, Value) else b for b in (low, high)]
    return op.Clip(q, *bounds)


def quantized(
    op: Builder, x: Value, scale: Value, zero: Value, low: Any, high: Any, axis: int | None = None
) -> Value:
    """QuantizeLinear to the zero point's dtype, of float32."""
    q = op.QuantizeLinear(op.cast(x, FLOAT), scale, zero, axis=axis)
    return clipped(op, q, low, high)


def dequantized(op: Builder, q: Value, scale: Value, zero: Value | None, axis: int | None = None) -> Value:
    """DequantizeLinear to float32."""
    return op.DequantizeLinear(q, scale, zero, axis=axis)


def grid(op: Builder, x: Value, scale: Value, zero: Value, *, inside: bool = False) -> Value:
    """round(x / scale) + zero point before it is clipped, by arithmetic in the dtype of ``x``.

    ``inside``: the zero point is added before rounding. Scale and zero point broadcast with ``x``.
    """
    steps = op.Mul(x, op.Reciprocal(op.cast(scale, x.dtype)))
    zero = op.cast(zero, x.dtype)
    return op.Round(op.Add(steps, zero)) if inside else op.Add(op.Round(steps), zero)


def is_used(op: Builder, index: int) -> bool:
    """Whether somebody reads the node's result of that index."""
    node = op.origin.fx
    return node is None or any(
        user.op == "output" or index in user.args and user.users for user in node.users
    )
