"""Quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("QuantizeLinear", 23, 24, 25, 28)
pack.same("DequantizeLinear", 21, 23, 24, 25, 28)
pack.same("QLinearMatMul", 10, 21)

_FLOAT = ir.DataType.FLOAT
_RANGES = {
    kind: (int(np.iinfo(kind.numpy()).min), int(np.iinfo(kind.numpy()).max))
    for kind in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16, ir.DataType.UINT16)
}
_SINCE_19 = frozenset({ir.DataType.INT8, ir.DataType.UINT8})


def _per_tensor(scale: Value) -> bool:
    return scale.dims is not None and all(size == 1 for size in scale.dims)


def _scalar(op: Builder, value: Value | None) -> Value | None:
    """One number without axes."""
    if value is None or value.dims == ():
        return value
    return op.Reshape(value, op.shape([]))


def _spread(op: Builder, x: Value, values: Value, axis: int, block: int) -> Value:
    """Scales or zero points in a form that broadcasts with ``x``."""
    if values.dims is None:
        raise refuse(op, "quantization with scales of unknown rank", 21)
    if block and values.rank == x.rank:
        rank = x.rank
        axis %= rank
        wide = op.Unsqueeze(values, [axis + 1])
        one = op.const([1], ir.DataType.INT64)
        parts = [op.Shape(values, end=axis + 1), op.const([block], ir.DataType.INT64)]
        if axis + 1 < rank:
            parts.append(op.Shape(values, start=axis + 1))
        wide = op.Expand(wide, op.Concat(*parts, axis=0))
        ahead = [op.Shape(values, end=axis)] if axis else []
        behind = [op.Shape(values, start=axis + 1)] if axis + 1 < rank else []
        length = op.Mul(sizes(op, values, axis, axis + 1 if axis + 1 < rank else None), block)
        whole = op.Reshape(wide, op.Concat(*ahead, length, *behind, axis=0))
        wanted = sizes(op, x, axis, axis + 1 if axis + 1 < rank else None)
        return op.Slice(whole, op.Sub(one, 1), wanted, [axis])
    if values.rank == 1 and not _per_tensor(values):
        rank = rank_of(op, x, "quantization along an axis", 13)
        behind_axes = list(range(1, rank - axis % rank))
        return op.Unsqueeze(values, behind_axes) if behind_axes else values
    return values


def _quantized(
    op: Builder, x: Value, scale: Value, zero: Value | None, kind: ir.DataType, axis: int, block: int
) -> Value:
    """Round half to even, the zero point added, and clipped."""
    if kind not in _RANGES:
        raise refuse(op, f"QuantizeLinear to {kind.name}", 19 if kind.is_floating_point() else 21)
    wide = _FLOAT if scale.dtype == ir.DataType.INT32 else scale.dtype
    rounded = op.Round(op.Div(op.cast(x, wide), op.cast(_spread(op, x, scale, axis, block), wide)))
    # Half precision does not hold every number of 16 bits.
    rounded = op.cast(rounded, _FLOAT)
    if zero is not None:
        rounded = op.Add(rounded, op.cast(_spread(op, x, zero, axis, block), _FLOAT))
    low, high = _RANGES[kind]
    return op.cast(op.Clip(rounded, low, high), kind)


def _target(zero: Value | None, output_dtype: int | None) -> ir.DataType:
    if zero is not None:
        return zero.dtype
    return ir.DataType(output_dtype or ir.DataType.UINT8)


@pack.below(23, "QuantizeLinear")
def quantize_23(
    op: Builder,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Value:
    """QuantizeLinear with the tensor in the dtype of its scale."""
    kind = ir.DataType(precision) if precision else scale.dtype
    return op.at(21).QuantizeLinear(
        op.cast(x, kind),
        op.cast(scale, kind),
        zero,
        axis=axis,
        block_size=block_size,
        output_dtype=output_dtype,
        saturate=saturate,
    )


@pack.below(21, "QuantizeLinear")
def quantize_21(
    op: Builder,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    saturate: int = 1,
) -> Value:
    """QuantizeLinear to 8 bits; spelled out for 16 bits and for blocks."""
    kind = _target(zero, output_dtype)
    if block_size or kind in (ir.DataType.INT16, ir.DataType.UINT16):
        return _quantized(op, x, scale, zero, kind, axis, block_size)
    if zero is None and kind != ir.DataType.UINT8:
        zero = op.Expand(op.const(0, kind), sizes(op, scale))
    return op.at(19).QuantizeLinear(x, scale, zero, axis=axis, saturate=saturate)


@pack.below(19, "QuantizeLinear")
def quantize_19(
    op: Builder, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1, saturate: int = 1
) -> Value:
    """QuantizeLinear with its scale in float; spelled out in half precision, which it did not take."""
    kind = _target(zero, None)
    if scale.dtype != _FLOAT or kind not in _SINCE_19:
        return _quantized(op, x, scale, zero, kind, axis, 0)
    return op.at(13).QuantizeLinear(x, scale, zero, axis=axis)


@pack.below(13, "QuantizeLinear")
def quantize_13(op: Builder, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    """QuantizeLinear of the whole tensor; spelled out along an axis."""
    if not _per_tensor(scale):
        return _quantized(op, x, scale, zero, _target(zero, None), axis, 0)
    return op.at(10).QuantizeLinear(x, _scalar(op, scale), _scalar(op, zero))


@pack.above(10, "QuantizeLinear")
@pack.above(13, "QuantizeLinear")
@pack.above(19, "QuantizeLinear")
@pack.above(21, "QuantizeLinear")
def quantize_up(op: Builder, x: Value, scale: Value, zero: Value | None = None, **attributes: Any) -> Value:
    """QuantizeLinear, its division in the dtype of the tensor."""
    if scale.dtype != x.dtype and x.dtype != ir.DataType.INT32:
        scale = op.cast(scale, x.dtype)
    return op.QuantizeLinear(x, scale, zero, **attributes)


def _dequantized(
    op: Builder, x: Value, scale: Value, zero: Value | None, kind: ir.DataType, axis: int, block: int
) -> Value:
    """The zero point taken off, exactly, and times the scale."""
    exact = ir.DataType.INT32 if x.dtype.is_integer() else _FLOAT
    number = op.cast(x, exact)
    if zero is not None:
        number = op.Sub(number, op.cast(_spread(op, x, zero, axis, block), exact))
    return op.Mul(op.cast(number, kind), op.cast(_spread(op, x, scale, axis, block), kind))


@pack.below(23, "DequantizeLinear")
def dequantize_23(
    op: Builder,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """DequantizeLinear with its scale in the dtype of the result."""
    kind = ir.DataType(output_dtype) if output_dtype else scale.dtype
    return op.at(21).DequantizeLinear(x, op.cast(scale, kind), zero, axis=axis, block_size=block_size)


@pack.below(21, "DequantizeLinear")
def dequantize_21(
    op: Builder,
    x: Value,
    scale: Value,
    zero: Value | None = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Value:
    """DequantizeLinear of 8 bits; spelled out for 16 bits and for blocks."""
    if output_dtype:
        scale = op.cast(scale, ir.DataType(output_dtype))
    if block_size or x.dtype in (ir.DataType.INT16, ir.DataType.UINT16):
        return _dequantized(op, x, scale, zero, scale.dtype, axis, block_size)
    return op.at(19).DequantizeLinear(x, scale, zero, axis=axis)


@pack.below(19, "DequantizeLinear")
def dequantize_19(op: Builder, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    """DequantizeLinear with its scale in float; spelled out with another."""
    if scale.dtype != _FLOAT:
        return _dequantized(op, x, scale, zero, scale.dtype, axis, 0)
    return op.at(13).DequantizeLinear(x, scale, zero, axis=axis)


@pack.below(13, "DequantizeLinear")
def dequantize_13(op: Builder, x: Value, scale: Value, zero: Value | None = None, *, axis: int = 1) -> Value:
    """DequantizeLinear of the whole tensor; spelled out along an axis."""
    if not _per_tensor(scale):
        return _dequantized(op, x, scale, zero, _FLOAT, axis, 0)
    return op.at(10).DequantizeLinear(x, _scalar(op, scale), _scalar(op, zero))


@pack.above(10, "DequantizeLinear")
@pack.above(13, "DequantizeLinear")
@pack.above(19, "DequantizeLinear")
def dequantize_up(op: Builder, x: Value, scale: Value, zero: Value | None = None, **attributes: Any) -> Value:
    """DequantizeLinear, unchanged in what it took."""
    return op.DequantizeLinear(x, scale, zero, **attributes)
