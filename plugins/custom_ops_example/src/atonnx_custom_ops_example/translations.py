"""The operators in ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir
import torch

import atonnx_custom_ops_example.ops  # noqa: F401  (registers torch.ops.mylib)
from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_custom_ops_example.domain import EXAMPLE

if TYPE_CHECKING:
    from atonnx.testing import OpSample

table = Table(__name__)
mylib = torch.ops.mylib


@table.translate(mylib.clamp_scale.default)
def clamp_scale(op: Builder, x: Value, low: float, high: float, scale: float = 1.0) -> Value:
    """Clip, then Mul; Clip alone where the scale is 1."""
    clipped = op.Clip(x, low, high)
    return clipped if scale == 1 else op.Mul(clipped, scale)


@table.translate(mylib.soft_threshold.default)
def soft_threshold(op: Builder, x: Value, threshold: float) -> Value:
    """SoftThreshold of the domain com.example."""
    if x.dtype == ir.DataType.BFLOAT16:
        raise UnsupportedOpError.here(op, "a bfloat16 tensor", hint="cast it to float32 first")
    return op.call(EXAMPLE.domain, "SoftThreshold", x, threshold=threshold, version=EXAMPLE.version)


@table.translate(mylib.mel_scale.default)
def mel_scale(op: Builder, x: Value, mels: int, rate: int) -> Value:
    """MatMul with a MelWeightMatrix."""
    bins = x.dims[-1] if x.dims else None
    if not isinstance(bins, int):
        raise UnsupportedOpError.here(op, "a dynamic number of frequencies", hint="leave that axis static")
    return op.MatMul(
        x, op.MelWeightMatrix(mels, 2 * (bins - 1), rate, 0.0, rate / 2, output_datatype=x.dtype)
    )


def samples() -> list[OpSample]:
    """A call of each operator. Arguments are made when a sample is run, not when it is listed."""
    from atonnx.testing import OpSample

    return [
        OpSample(mylib.clamp_scale.default, lambda: (torch.randn(3, 4), -1.0, 0.5, 2.0)),
        OpSample(mylib.soft_threshold.default, lambda: (torch.randn(3, 4), 0.5)),
        OpSample(mylib.mel_scale.default, lambda: (torch.rand(2, 65), 8, 16000), options={"dynamic": False}),
    ]
