"""Normalization."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import known_ints, rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("InstanceNormalization", 6, 22)
pack.same("LRN", 1, 13)
pack.same("LpNormalization", 1, 22)
pack.same("MeanVarianceNormalization", 9, 13)
pack.same("Dropout", 12, 13, 22)


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
    wide = op.cast(x, ir.DataType(stash_type))
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


@pack.below(23, "RMSNormalization")
def rms_normalization(
    op: Builder, x: Value, scale: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """Root mean square of the last axes, computed in ``stash_type``."""
    rank = rank_of(op, x, "RMSNormalization", 23)
    axes = list(range(axis % rank, rank))
    wide = op.cast(x, ir.DataType(stash_type))
    square = op.ReduceMean(op.Mul(wide, wide), axes)
    normal = op.Div(wide, op.Sqrt(op.Add(square, epsilon)))
    return op.Mul(op.cast(normal, scale.dtype), scale)


@pack.below(21, "GroupNormalization")
def group_normalization(
    op: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Value:
    """InstanceNormalization of the groups, then scale and bias of the channels."""
    rank = rank_of(op, x, "GroupNormalization", 21)
    stash = ir.DataType(stash_type)
    rest = known_ints(sizes(op, x, 1))
    if rest is not None:
        count = math.prod(rest) // num_groups
        target = op.const([0, num_groups, count], ir.DataType.INT64)
    else:
        each = op.Div(op.ReduceProd(op.Shape(x, start=1), [0]), num_groups)
        target = op.Concat(sizes(op, x, 0, 1), op.const([num_groups], ir.DataType.INT64), each, axis=0)
    grouped = op.Reshape(op.cast(x, stash), target)
    ones, zeros = (op.const(np.full(num_groups, n, stash.numpy())) for n in (1, 0))
    normal = op.Reshape(op.InstanceNormalization(grouped, ones, zeros, epsilon=epsilon), sizes(op, x))
    axes = list(range(1, rank - 1))
    if axes:
        scale, bias = op.Unsqueeze(scale, axes), op.Unsqueeze(bias, axes)
    return op.Add(op.Mul(op.cast(normal, x.dtype), scale), bias)


@pack.below(15, "BatchNormalization")
def batch_normalization(
    op: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """BatchNormalization of one dtype; of several, all in the widest of them."""
    kinds = [value.dtype for value in (x, scale, bias, mean, variance)]
    wide = max(kinds, key=lambda kind: kind.itemsize)
    if len(set(kinds)) > 1 and wide.itemsize == 2:
        wide = ir.DataType.FLOAT
    result = op.at(14).BatchNormalization(
        *(op.cast(value, wide) for value in (x, scale, bias, mean, variance)),
        epsilon=epsilon,
        momentum=momentum,
        training_mode=training_mode,
        outputs=op.asked_outputs,
    )
    kinds = [x.dtype, mean.dtype, variance.dtype]
    return tuple(op.cast(value, kind) for value, kind in zip(result, kinds, strict=False))


@pack.below(14, "BatchNormalization")
def batch_normalization_14(
    op: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """BatchNormalization with the batch's own mean and variance in training."""
    attributes = {"epsilon": epsilon, "momentum": momentum}
    if not training_mode:
        return op.at(9).BatchNormalization(x, scale, bias, mean, variance, **attributes)
    rank = rank_of(op, x, "BatchNormalization", 14)
    axes = [axis for axis in range(rank) if axis != 1]
    center = op.ReduceMean(x, axes)
    centered = op.Sub(x, center)
    spread = op.ReduceMean(op.Mul(centered, centered), axes, keepdims=0)
    center = op.Reshape(center, [-1])
    result = op.at(9).BatchNormalization(x, scale, bias, center, spread, **attributes)
    running = [
        op.Add(op.Mul(old, momentum), op.Mul(new, 1 - momentum))
        for old, new in ((mean, center), (variance, spread))
    ]
    return (result, *running)[: op.asked_outputs] if op.asked_outputs > 1 else result


@pack.above(9, "BatchNormalization")
def batch_normalization_9(
    op: Builder,
    x: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
) -> Value:
    """BatchNormalization by the given statistics.

    Raises:
        UnsupportedOpError: the four further outputs of training are wanted.
    """
    if op.asked_outputs > 1:
        raise refuse(op, "BatchNormalization-9 in training", 9)
    return op.BatchNormalization(x, scale, bias, mean, variance, epsilon=epsilon, momentum=momentum)


@pack.above(14, "BatchNormalization")
def batch_normalization_up(op: Builder, *inputs: Value, **attributes: Any) -> Any:
    """BatchNormalization, unchanged in what it took."""
    return op.BatchNormalization(*inputs, outputs=op.asked_outputs, **attributes)


@pack.below(12, "Dropout")
def dropout(
    op: Builder,
    x: Value,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    seed: int | None = None,
) -> Any:
    """Identity outside training; in training a random mask, its numbers drawn in float."""
    training = None if training_mode is None else training_mode.const_value
    if training_mode is not None and training is None:
        raise refuse(op, "Dropout whose training mode the model computes", 12)
    if training is None or not training.numpy().item():
        kept = op.Identity(x)
        if op.asked_outputs == 1:
            return kept
        return kept, op.Expand(op.const(True), op.Shape(x))
    rate = op.const(0.5) if ratio is None else op.cast(ratio, ir.DataType.FLOAT)
    drawn = op.RandomUniformLike(x, dtype=ir.DataType.FLOAT, seed=None if seed is None else float(seed))
    mask = op.Not(op.Less(drawn, rate))
    scale = op.cast(op.Sub(1.0, rate), x.dtype)
    kept = op.Where(mask, op.Div(x, scale), op.const(0, x.dtype))
    return (kept, mask)[: op.asked_outputs] if op.asked_outputs > 1 else kept


@pack.above(10, "Dropout")
def dropout_10(op: Builder, x: Value, *, ratio: float = 0.5) -> Any:
    """Dropout outside training, where its ratio means nothing."""
    return op.Dropout(x, outputs=op.asked_outputs)
