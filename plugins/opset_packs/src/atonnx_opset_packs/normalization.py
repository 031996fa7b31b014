"""Normalization."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import rank_of

pack = OpsetPack(__name__)

pack.same("BatchNormalization", 14, 15)
pack.same("InstanceNormalization", 6, 22)
pack.same("LRN", 1, 13)
pack.same("LpNormalization", 1, 22)
pack.same("MeanVarianceNormalization", 9, 13)


@pack.below(17, "LayerNormalization")
def layer_normalization(
    op: Builder,
    x: Value,
    scale: Value,
    bias: Value | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """Mean and variance of the last axes, computed in ``stash_type``."""
    rank = rank_of(op, x, "LayerNormalization", 17)
    axes = list(range(axis % rank, rank))
    stash = ir.DataType(stash_type)
    wide = op.cast(x, stash)
    mean = op.ReduceMean(wide, axes)
    centered = op.Sub(wide, mean)
    variance = op.ReduceMean(op.Mul(centered, centered), axes)
    deviation = op.Sqrt(op.Add(variance, epsilon))
    result = op.Mul(op.cast(op.Div(centered, deviation), x.dtype), scale)
    if bias is not None:
        result = op.Add(result, bias)
    if op.asked_outputs == 1:
        return result
    return (result, mean, op.Reciprocal(deviation))[: op.asked_outputs]
