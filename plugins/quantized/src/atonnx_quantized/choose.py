"""Scales and zero points that are found while the model runs: dynamic quantization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from atonnx.build import Builder, Value
from atonnx.build.dtypes import to_ir
from atonnx.dispatch import Table
from atonnx_quantized._affine import FLOAT

if TYPE_CHECKING:
    from atonnx.testing import OpSample

table = Table(__name__)

_INT64 = ir.DataType.INT64


def _as_promised(op: Builder, scale: Value, zero: Value) -> tuple[Value, Value]:
    return op.cast(scale, op.outs[0].dtype), op.cast(zero, op.outs[1].dtype)


@table.translate("quantized_decomposed::choose_qparams.tensor")
def choose_qparams(
    op: Builder, input: Value, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Value, Value]:
    """The range from ReduceMin to ReduceMax, zero within it, in equal steps."""
    x = op.cast(input, FLOAT)
    low = op.Min(op.ReduceMin(x, None, keepdims=0), 0.0)
    high = op.Max(op.ReduceMax(x, None, keepdims=0), 0.0)
    scale = op.Max(op.Div(op.Sub(high, low), float(quant_max - quant_min)), eps)
    zero = op.Sub(float(quant_min), op.Round(op.Div(low, scale)))
    zero = op.Clip(zero, quant_min, quant_max)
    return _as_promised(op, op.Reshape(scale, [1]), op.Reshape(zero, [1]))


@table.translate("quantized_decomposed::choose_qparams_symmetric.tensor")
def choose_qparams_symmetric(
    op: Builder, input: Value, quant_min: int, quant_max: int, eps: float, dtype: Any
) -> tuple[Value, Value]:
    """ReduceMax of the absolute value over half the range."""
    top = op.ReduceMax(op.Abs(op.cast(input, FLOAT)), None, keepdims=0)
    scale = op.Max(op.Div(top, (quant_max - quant_min) / 2), eps)
    zero = 128 if to_ir(dtype) == ir.DataType.UINT8 else 0
    return _as_promised(op, op.Reshape(scale, [1]), op.const([zero], _INT64))


@table.translate(
    "quantized_decomposed::choose_qparams_per_token_asymmetric",
    "quantized_decomposed::_choose_qparams_per_token_asymmetric_impl",
)
def choose_qparams_per_token_asymmetric(op: Builder, input: Value, dtype: Any) -> tuple[Value, Value]:
    """The range of each token, zero within it, in 255 steps; the end that is missed by less is kept."""
    x = op.cast(input, FLOAT)
    low = op.Min(op.ReduceMin(x, [-1], keepdims=1), 0.0)
    high = op.Max(op.ReduceMax(x, [-1], keepdims=1), 0.0)
    scale = op.Max(op.Div(op.Sub(high, low), 255.0), torch.finfo(torch.float32).eps)
    least, most = op.Div(low, scale), op.Div(high, scale)
    error = op.Add(op.Add(least, -128.0), op.Add(most, 127.0))
    zero = op.Where(op.Greater(error, 0.0), op.Sub(-128.0, least), op.Sub(127.0, most))
    return _as_promised(op, scale, op.Round(op.Clip(zero, -128, 127)))


def samples() -> list[OpSample]:
    """Test inputs of the rows."""
    import torch.ao.quantization.fx._decomposed

    from atonnx.testing import OpSample

    ops = torch.ops.quantized_decomposed

    def x() -> torch.Tensor:
        return torch.tensor([[0.52, -1.53, 2.29, 0.0], [-0.74, 3.0, -2.0, 1.0]])

    return [
        OpSample(ops.choose_qparams.tensor, lambda: (x(), 0, 255, 1e-6, torch.uint8)),
        OpSample(ops.choose_qparams.tensor, lambda: (x().abs() + 1, -128, 127, 1e-6, torch.int8)),
        OpSample(ops.choose_qparams_symmetric.tensor, lambda: (x(), -127, 127, 1e-6, torch.int8)),
        OpSample(ops.choose_qparams_symmetric.tensor, lambda: (x(), 0, 255, 1e-6, torch.uint8)),
        OpSample(ops.choose_qparams_per_token_asymmetric.default, lambda: (x(), torch.int8)),
        OpSample(ops._choose_qparams_per_token_asymmetric_impl.default, lambda: (x(), torch.int8)),
    ]
