"""Quantization simulated in floats, as quantization-aware training does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import FLOATS
from atonnx.dispatch import Table
from atonnx_quantized._affine import (
    FLOAT,
    along,
    dequantized,
    grid,
    integer,
    is_used,
    quantized,
    scalar,
    storage,
)

if TYPE_CHECKING:
    from atonnx.testing import OpSample

aten = torch.ops.aten
table = Table(__name__)


def _fake(
    op: Builder, x: Value, scale: Any, zero: Any, low: int, high: int, axis: int | None = None
) -> Value:
    """QuantizeLinear and DequantizeLinear; arithmetic where a zero point is no integer or the range wide."""
    kind = storage(low, high)
    is_float = isinstance(zero, Value) and zero.dtype in FLOATS
    if kind is None or x.dtype == ir.DataType.DOUBLE or is_float:
        return _by_arithmetic(op, x, scale, zero, low, high, axis, is_float)
    if axis is None:
        scale, zero = scalar(op, scale, FLOAT), scalar(op, zero, kind)
    else:
        scale, zero = op.cast(scale, FLOAT), op.cast(zero, kind)
    q = quantized(op, x, scale, zero, low, high, axis)
    return op.cast(dequantized(op, q, scale, zero, axis), x.dtype)


def _by_arithmetic(
    op: Builder, x: Value, scale: Any, zero: Any, low: int, high: int, axis: int | None, inside: bool
) -> Value:
    kind = ir.DataType.DOUBLE if x.dtype == ir.DataType.DOUBLE else FLOAT
    scale, zero = _spread(op, x, scale, zero, axis, kind)
    steps = op.Clip(grid(op, op.cast(x, kind), scale, zero, inside=inside), low, high)
    return op.cast(op.Mul(op.Sub(steps, zero), scale), x.dtype)


def _spread(
    op: Builder, x: Value, scale: Any, zero: Any, axis: int | None, kind: ir.DataType
) -> tuple[Value, Value]:
    """Scale and zero point in a form that broadcasts with ``x``."""
    if axis is None:
        return scalar(op, scale, kind), scalar(op, zero, kind)
    return along(op, op.cast(scale, kind), axis, x.rank), along(op, op.cast(zero, kind), axis, x.rank)


def _mask(op: Builder, x: Value, scale: Any, zero: Any, low: int, high: int, axis: int | None = None) -> Any:
    """Which elements are not clipped; nothing where nobody asks."""
    if not is_used(op, 1):
        return None
    kind = ir.DataType.DOUBLE if x.dtype == ir.DataType.DOUBLE else FLOAT
    inside = isinstance(zero, Value) and zero.dtype in FLOATS
    steps = grid(op, op.cast(x, kind), *_spread(op, x, scale, zero, axis, kind), inside=inside)
    return op.And(op.GreaterOrEqual(steps, low), op.LessOrEqual(steps, high))


@table.translate(aten.fake_quantize_per_tensor_affine.default)
def fake_quantize_per_tensor_affine(
    op: Builder, self: Value, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> Value:
    """QuantizeLinear and DequantizeLinear."""
    return _fake(op, self, scale, zero_point, quant_min, quant_max)


@table.translate(aten.fake_quantize_per_tensor_affine.tensor_qparams)
def fake_quantize_per_tensor_affine_tensor(
    op: Builder, self: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int
) -> Value:
    """QuantizeLinear and DequantizeLinear."""
    return _fake(op, self, scale, _whole(op, zero_point), quant_min, quant_max)


def _whole(op: Builder, zero_point: Value) -> Value:
    """The integer that torch makes of a tensor's zero point."""
    if zero_point.dtype in FLOATS:
        return op.cast(zero_point, ir.DataType.INT64)
    return zero_point


@table.translate(aten.fake_quantize_per_tensor_affine_cachemask.default)
def fake_quantize_per_tensor_affine_cachemask(
    op: Builder, self: Value, scale: float, zero_point: int, quant_min: int, quant_max: int
) -> tuple[Value, Value | None]:
    """QuantizeLinear and DequantizeLinear; the mask by comparison."""
    made = _fake(op, self, scale, zero_point, quant_min, quant_max)
    return made, _mask(op, self, scale, zero_point, quant_min, quant_max)


@table.translate(aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default)
def _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
    op: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    fake_quant_enabled: Value,
    quant_min: int,
    quant_max: int,
) -> tuple[Value, Value | None]:
    """QuantizeLinear and DequantizeLinear, where it is enabled; the mask by comparison."""
    zero = _whole(op, zero_point)
    made = _fake(op, self, scale, zero, quant_min, quant_max)
    mask = _mask(op, self, scale, zero, quant_min, quant_max)
    # Buffers are inputs of a deployed model as weights are: it is read while the model runs.
    enabled = op.cast(scalar(op, fake_quant_enabled, ir.DataType.INT64), ir.DataType.BOOL)
    return op.Where(enabled, made, self), None if mask is None else op.Or(mask, op.Not(enabled))


@table.translate(aten._fake_quantize_learnable_per_tensor_affine.default)
def _fake_quantize_learnable_per_tensor_affine(
    op: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Value:
    """QuantizeLinear and DequantizeLinear, the zero point rounded."""
    zero = op.cast(integer(op, zero_point, quant_min, quant_max), ir.DataType.INT64)
    return _fake(op, self, scale, zero, quant_min, quant_max)


@table.translate(aten.fake_quantize_per_channel_affine.default)
def fake_quantize_per_channel_affine(
    op: Builder, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int
) -> Value:
    """QuantizeLinear and DequantizeLinear along an axis."""
    return _fake(op, self, scale, zero_point, quant_min, quant_max, axis)


@table.translate(aten.fake_quantize_per_channel_affine_cachemask.default)
def fake_quantize_per_channel_affine_cachemask(
    op: Builder, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int
) -> tuple[Value, Value | None]:
    """QuantizeLinear and DequantizeLinear along an axis; the mask by comparison."""
    made = _fake(op, self, scale, zero_point, quant_min, quant_max, axis)
    return made, _mask(op, self, scale, zero_point, quant_min, quant_max, axis)


@table.translate(aten._fake_quantize_learnable_per_channel_affine.default)
def _fake_quantize_learnable_per_channel_affine(
    op: Builder,
    self: Value,
    scale: Value,
    zero_point: Value,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad_factor: float = 1.0,
) -> Value:
    """QuantizeLinear and DequantizeLinear along an axis, the zero points rounded."""
    zero = op.cast(integer(op, zero_point, quant_min, quant_max), ir.DataType.INT64)
    return _fake(op, self, scale, zero, quant_min, quant_max, axis)


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    from atonnx.testing import OpSample

    def x() -> torch.Tensor:
        return torch.tensor([[0.52, -1.53, 2.29], [-0.74, 300.0, -200.0]])

    def one(zero: Any, *between: Any, scale: float = 0.5) -> tuple[Any, ...]:
        return (x(), torch.tensor([scale]), torch.tensor([zero]), *between, 0, 255)

    def rows(dtype: torch.dtype = torch.int32, low: int = -128, high: int = 127) -> tuple[Any, ...]:
        return (x(), torch.tensor([0.1, 0.25]), torch.tensor([3, -2]).to(dtype), 0, low, high)

    pair = "QuantizeLinear:1 DequantizeLinear:1"
    return [
        OpSample(aten.fake_quantize_per_tensor_affine.default, lambda: (x(), 0.1, 3, 0, 255), expect=pair),
        OpSample(aten.fake_quantize_per_tensor_affine.default, lambda: (x(), 0.1, 0, -127, 127), expect=pair),
        OpSample(aten.fake_quantize_per_tensor_affine.default, lambda: (x().double(), 0.1, 3, 0, 255)),
        OpSample(aten.fake_quantize_per_tensor_affine.tensor_qparams, lambda: one(3), expect=pair),
        OpSample(aten.fake_quantize_per_tensor_affine_cachemask.default, lambda: (x(), 0.1, 3, 0, 255)),
        OpSample(
            aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
            lambda: one(3, torch.tensor([1])),
        ),
        OpSample(
            aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default,
            lambda: one(3, torch.tensor([0])),
        ),
        OpSample(aten._fake_quantize_learnable_per_tensor_affine.default, lambda: one(3.4), expect=pair),
        OpSample(aten.fake_quantize_per_channel_affine.default, rows),
        OpSample(aten.fake_quantize_per_channel_affine.default, lambda: rows(low=-(2**20), high=2**20)),
        OpSample(aten.fake_quantize_per_channel_affine_cachemask.default, lambda: rows(torch.float32)),
        OpSample(
            aten._fake_quantize_learnable_per_channel_affine.default, lambda: rows(torch.float32), opsets=13
        ),
    ]
