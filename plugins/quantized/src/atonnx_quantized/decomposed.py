"""``quantized_decomposed``: quantized models as an exported program has them.

The rows are named by text: torch registers these operators when its quantization package is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_ir
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_quantized._affine import FLOAT, along, clipped, dequantized, grid, quantized, scalar, storage

if TYPE_CHECKING:
    from atonnx.testing import OpSample

table = Table(__name__)

_STORED = (ir.DataType.UINT8, ir.DataType.INT8, ir.DataType.UINT16, ir.DataType.INT16)


def _quantize(
    op: Builder, x: Value, scale: Any, zero: Any, low: Any, high: Any, axis: int | None = None
) -> Value:
    """QuantizeLinear, or arithmetic for dtypes that it has not."""
    kind = op.out.dtype
    if kind in _STORED:
        if axis is None:
            scale, zero = scalar(op, scale, FLOAT), scalar(op, zero, kind)
        else:
            scale, zero = op.cast(scale, FLOAT), op.cast(zero, kind)
        return quantized(op, x, scale, zero, low, high, axis)
    if axis is None:
        scale, zero = scalar(op, scale, FLOAT), scalar(op, zero, FLOAT)
    else:
        scale, zero = (along(op, op.cast(v, FLOAT), axis, x.rank) for v in (scale, zero))
    return op.cast(clipped(op, grid(op, op.cast(x, FLOAT), scale, zero), low, high), kind)


def _dequantize(op: Builder, q: Value, scale: Any, zero: Any, axis: int | None = None) -> Value:
    """DequantizeLinear in float32, or arithmetic for dtypes that it has not."""
    kind = op.out.dtype
    if q.dtype in _STORED:
        if axis is None:
            scale, zero = scalar(op, scale, FLOAT), scalar(op, zero, q.dtype)
        else:
            scale, zero = op.cast(scale, FLOAT), None if zero is None else op.cast(zero, q.dtype)
        return op.cast(dequantized(op, q, scale, zero, axis), kind)
    number = op.cast(q, FLOAT)
    if axis is None:
        scale, zero = scalar(op, scale, FLOAT), scalar(op, zero, FLOAT)
    else:
        scale = along(op, op.cast(scale, FLOAT), axis, q.rank)
        zero = None if zero is None else along(op, op.cast(zero, FLOAT), axis, q.rank)
    if zero is not None:
        number = op.Sub(number, zero)
    return op.cast(op.Mul(number, scale), kind)


@table.translate("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(
    op: Builder, input: Value, scale: float, zero_point: int, quant_min: int, quant_max: int, dtype: Any
) -> Value:
    """QuantizeLinear, and Clip to a range that is narrower than the dtype."""
    return _quantize(op, input, scale, zero_point, quant_min, quant_max)


@table.translate(
    "quantized_decomposed::quantize_per_tensor.tensor", "quantized_decomposed::quantize_per_tensor.tensor2"
)
def quantize_per_tensor_tensor(
    op: Builder, input: Value, scale: Value, zero_point: Value, quant_min: Any, quant_max: Any, dtype: Any
) -> Value:
    """QuantizeLinear, and Clip to a range that is narrower than the dtype."""
    return _quantize(op, input, scale, zero_point, quant_min, quant_max)


@table.translate("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(
    op: Builder,
    input: Value,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Value:
    """DequantizeLinear."""
    return _dequantize(op, input, scale, zero_point)


@table.translate(
    "quantized_decomposed::dequantize_per_tensor.tensor",
    "quantized_decomposed::dequantize_per_tensor.tensor2",
)
def dequantize_per_tensor_tensor(
    op: Builder,
    input: Value,
    scale: Value,
    zero_point: Value,
    quant_min: Any,
    quant_max: Any,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Value:
    """DequantizeLinear."""
    return _dequantize(op, input, scale, zero_point)


@table.translate("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
) -> Value:
    """QuantizeLinear along an axis, and Clip to a range that is narrower than the dtype."""
    return _quantize(op, input, scales, zero_points, quant_min, quant_max, axis)


@table.translate("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value | None,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    *,
    out_dtype: Any = None,
) -> Value:
    """DequantizeLinear along an axis."""
    return _dequantize(op, input, scales, zero_points, axis)


@table.translate("quantized_decomposed::fake_quant_per_channel")
def fake_quant_per_channel(
    op: Builder, input: Value, scales: Value, zero_points: Value, axis: int, quant_min: int, quant_max: int
) -> Value:
    """QuantizeLinear and DequantizeLinear along an axis; arithmetic for a range beyond 16 bits."""
    kind = storage(quant_min, quant_max)
    if kind is None:
        scale, zero = (along(op, op.cast(v, FLOAT), axis, input.rank) for v in (scales, zero_points))
        steps = op.Clip(grid(op, input, scale, zero), quant_min, quant_max)
        return op.Mul(op.Sub(steps, zero), scale)
    scale, zero = op.cast(scales, FLOAT), op.cast(zero_points, kind)
    q = quantized(op, input, scale, zero, quant_min, quant_max, axis)
    return dequantized(op, q, scale, zero, axis)


@table.translate("quantized_decomposed::quantize_per_token")
def quantize_per_token(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value,
    quant_min: int,
    quant_max: int,
    dtype: Any,
) -> Value:
    """Arithmetic: QuantizeLinear has scales along one axis only, and adds the zero point after rounding."""
    steps = grid(op, op.cast(input, FLOAT), scales, zero_points, inside=True)
    return op.cast(op.Clip(steps, quant_min, quant_max), op.out.dtype)


@table.translate("quantized_decomposed::dequantize_per_token")
def dequantize_per_token(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    output_dtype: Any,
) -> Value:
    """Arithmetic: DequantizeLinear has scales along one axis only."""
    number = op.Sub(op.cast(input, FLOAT), op.cast(zero_points, FLOAT))
    return op.cast(op.Mul(number, op.cast(scales, FLOAT)), op.out.dtype)


def _blocks(op: Builder, x: Value, values: Value, group_size: int) -> tuple[Value, int]:
    """One number for each group of a row, as (rows, groups), and the size of a group."""
    rows, length = x.dims or (None, None)
    if not isinstance(length, int):
        raise UnsupportedOpError.here(
            op, "groups along a dynamic axis", hint="make the last axis of the tensor static"
        )
    size = min(group_size, length)
    return op.reshape(values, (rows, length // size)), size


@table.translate("quantized_decomposed::quantize_per_channel_group")
def quantize_per_channel_group(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int,
) -> Value:
    """Arithmetic over groups: QuantizeLinear adds the zero point after rounding."""
    scale, size = _blocks(op, input, op.cast(scales, FLOAT), group_size)
    zero, _ = _blocks(op, input, op.cast(zero_points, FLOAT), group_size)
    rows, length = input.dims or (None, 0)
    grouped = op.reshape(op.cast(input, FLOAT), (rows, length // size, size))  # type: ignore[operator]
    steps = grid(op, grouped, op.Unsqueeze(scale, [2]), op.Unsqueeze(zero, [2]), inside=True)
    q = op.cast(op.Clip(steps, quant_min, quant_max), op.out.dtype)
    return op.reshape(q, op.out.dims)


@table.translate("quantized_decomposed::dequantize_per_channel_group")
def dequantize_per_channel_group(
    op: Builder,
    input: Value,
    scales: Value,
    zero_points: Value | None,
    quant_min: int,
    quant_max: int,
    dtype: Any,
    group_size: int,
    output_dtype: Any,
) -> Value:
    """DequantizeLinear by blocks."""
    scale, size = _blocks(op, input, op.cast(scales, FLOAT), group_size)
    zero = None
    if zero_points is not None:
        zero, _ = _blocks(op, input, op.cast(zero_points, input.dtype), group_size)
    made = op.DequantizeLinear(input, scale, zero, axis=1, block_size=size)
    return op.cast(made, op.out.dtype)


@table.translate("quantized_decomposed::convert_element_type.no_fuse")
def convert_element_type(op: Builder, input: Value, dtype: Any) -> Value:
    """Cast."""
    return op.cast(input, to_ir(dtype))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    import torch.ao.quantization.fx._decomposed

    from atonnx.testing import OpSample

    ops = torch.ops.quantized_decomposed

    def x() -> torch.Tensor:
        return torch.tensor([[0.52, -1.53, 2.29, 0.0], [-0.74, 300.0, -200.0, 1.0]])

    def q(dtype: torch.dtype = torch.int8) -> torch.Tensor:
        return torch.tensor([[1, 100, 127, 0], [55, 3, 7, 14]]).to(dtype)

    def numbers(*values: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.tensor(values, dtype=dtype)

    i8, u8, i16, i32 = torch.int8, torch.uint8, torch.int16, torch.int32
    zeros = {"dtype": torch.int64}
    per_channel = (ops.quantize_per_channel.default, ops.dequantize_per_channel.default)
    return [
        OpSample(ops.quantize_per_tensor.default, lambda: (x(), 0.03, 128, 0, 255, u8)),
        OpSample(ops.quantize_per_tensor.default, lambda: (x(), 0.03, 0, -127, 127, i8)),
        OpSample(ops.quantize_per_tensor.default, lambda: (x(), 0.03, 5, -(2**31), 2**31 - 1, i32)),
        OpSample(ops.quantize_per_tensor.default, lambda: (x(), 0.03, 5, -(2**15), 2**15 - 1, i16)),
        OpSample(ops.quantize_per_tensor.tensor, lambda: (x(), numbers(0.3), numbers(3, **zeros), 0, 9, u8)),
        OpSample(
            ops.quantize_per_tensor.tensor2,
            lambda: (x(), numbers(0.3), *(numbers(n, **zeros) for n in (3, 0, 9)), u8),
        ),
        OpSample(ops.dequantize_per_tensor.default, lambda: (q(u8), 0.03, 128, 0, 255, u8)),
        OpSample(
            ops.dequantize_per_tensor.default,
            lambda: (q(), 0.03, 5, -128, 127, i8),
            {"out_dtype": torch.half},
        ),
        OpSample(ops.dequantize_per_tensor.default, lambda: (q(i32), 0.03, 128, 0, 255, i32)),
        OpSample(
            ops.dequantize_per_tensor.tensor, lambda: (q(u8), numbers(0.3), numbers(3, **zeros), 0, 255, u8)
        ),
        OpSample(
            ops.dequantize_per_tensor.tensor2,
            lambda: (q(u8), numbers(0.3), *(numbers(n, **zeros) for n in (3, 0, 255)), u8),
        ),
        OpSample(per_channel[0], lambda: (x(), numbers(0.3, 2), numbers(3, -2, **zeros), 0, -127, 127, i8)),
        OpSample(
            per_channel[1],
            lambda: (q(), numbers(0.3, 2, 1, 4), numbers(3, -2, 0, 1, **zeros), 1, -127, 127, i8),
        ),
        OpSample(per_channel[1], lambda: (q(), numbers(0.3, 2), None, 0, -127, 127, i8)),
        OpSample(
            ops.fake_quant_per_channel.default,
            lambda: (x(), numbers(0.3, 2), numbers(3, -2, **zeros), 0, -127, 127),
        ),
        OpSample(
            ops.quantize_per_token.default,
            lambda: (x(), numbers(0.3, 2)[:, None], numbers(3, -2)[:, None], -127, 127, i8),
        ),
        OpSample(
            ops.dequantize_per_token.default,
            lambda: (
                q(),
                numbers(0.3, 2).view(2, 1),
                numbers(3, -2).view(2, 1),
                -127,
                127,
                i8,
                torch.float32,
            ),
        ),
        OpSample(
            ops.quantize_per_channel_group.default,
            lambda: (x(), numbers(1, 2, 3, 4), numbers(1, 2, 3, 4), -127, 127, i8, 2),
            options={"dynamic": False},
        ),
        OpSample(
            ops.dequantize_per_channel_group.default,
            lambda: (q(), numbers(1, 2, 3, 4), None, -127, 127, i8, 2, torch.float32),
            options={"dynamic": False},
        ),
        OpSample(
            ops.dequantize_per_channel_group.default,
            lambda: (q(), numbers(1, 2, 3, 4), numbers(1, 2, 3, 4), -127, 127, i8, 2, torch.float32),
            options={"dynamic": False},
        ),
        OpSample(ops.convert_element_type.no_fuse, lambda: (x(), torch.float64)),
    ]
