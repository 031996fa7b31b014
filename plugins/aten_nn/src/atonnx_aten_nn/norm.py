"""Normalization: batch, layer, group, instance, root mean square."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import HALVES, D, filled, sizes_of, used

aten = torch.ops.aten
table = Table(__name__)


# ONNX's epsilons are float32, and its operators compute in float32 unless told otherwise.


def _near(x: Value, eps: float) -> float:
    """The epsilon that a node can have; another number than ``eps`` where that matters: for float64."""
    near = float(np.float32(eps))
    return near if near and x.dtype == D.DOUBLE else eps


def _scaled(op: Builder, x: Value, eps: float) -> tuple[Value, float]:
    """Input and epsilon, scaled so that the epsilon is a float32. The normalized result is the same."""
    near = _near(x, eps)
    return (x, eps) if near == eps else (op.Mul(x, math.sqrt(near / eps)), near)


def _stash(x: Value) -> int | None:
    """The dtype for an operator to compute in; None where its default serves."""
    return int(D.DOUBLE) if x.dtype == D.DOUBLE else None


# ------------------------------------------------------------------ batch norm


def _compute_dtype(x: Value, *others: Value | None) -> Any:
    """The dtype in which eager computes: float32 where a half input meets float32 weights."""
    return next((o.dtype for o in others if o is not None and o.dtype != x.dtype), x.dtype)


def _affine(
    op: Builder, x: Value, weight: Value | None, bias: Value | None, sizes: Sequence[Any], dtype: Any
) -> tuple[Value, Value]:
    scale = filled(op, 1.0, sizes, dtype) if weight is None else op.cast(weight, dtype)
    shift = filled(op, 0.0, sizes, dtype) if bias is None else op.cast(bias, dtype)
    return scale, shift


def batch_norm_by(
    op: Builder, x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value, eps: float
) -> Value:
    """BatchNormalization with given statistics."""
    dtype = _compute_dtype(x, weight, bias, mean, var)
    scale, shift = _affine(op, x, weight, bias, sizes_of(x)[1:2], dtype)
    wide, mean, var = (op.cast(each, dtype) for each in (x, mean, var))
    near = _near(wide, eps)
    if near != eps:
        var = op.Add(var, eps - near)
    return op.cast(op.BatchNormalization(wide, scale, shift, mean, var, epsilon=near), x.dtype)


def batch_statistics(op: Builder, x: Value) -> tuple[Value, Value]:
    """Mean and biased variance of each channel."""
    axes = [axis for axis in range(x.rank) if axis != 1]
    mean = op.ReduceMean(x, axes, keepdims=1)
    centered = op.Sub(x, mean)
    return op.Squeeze(mean, axes), op.ReduceMean(op.Mul(centered, centered), axes, keepdims=0)


def _with_batch_statistics(
    op: Builder, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """The normalized input, its mean and its biased variance, the last two in the computing dtype."""
    wide = op.cast(x, D.FLOAT if x.dtype in HALVES else x.dtype)
    mean, var = batch_statistics(op, wide)
    y = batch_norm_by(op, wide, weight, bias, mean, var, eps)
    return op.cast(y, x.dtype), mean, var


@table.translate(aten.batch_norm.default)
def batch_norm(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """BatchNormalization, in training with the statistics of the batch."""
    if training or running_mean is None or running_var is None:
        return _with_batch_statistics(op, input, weight, bias, eps)[0]
    return batch_norm_by(op, input, weight, bias, running_mean, running_var, eps)


def _inverse_std(op: Builder, var: Value, eps: float) -> Value:
    return op.Reciprocal(op.Sqrt(op.Add(var, eps)))


def _saved(op: Builder, mean: Value, var: Value, eps: float) -> tuple[Value, Value]:
    """What torch keeps for the gradient, in the dtypes that it promises."""
    return op.cast(mean, op.outs[1].dtype), op.cast(_inverse_std(op, var, eps), op.outs[2].dtype)


def _nothing(op: Builder, index: int) -> Value | None:
    """The empty tensor that stands where evaluation keeps nothing; None where nobody reads it."""
    return filled(op, 0.0, op.outs[index].dims, op.outs[index].dtype) if used(op, index) else None


@table.translate(aten._native_batch_norm_legit_no_training.default)
def native_batch_norm_no_training(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization; the statistics that it returns are empty."""
    y = batch_norm_by(op, input, weight, bias, running_mean, running_var, eps)
    return y, _nothing(op, 1), _nothing(op, 2)


@table.translate(aten.native_batch_norm.default)
def native_batch_norm(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization, with mean and inverse deviation of the batch in training."""
    if not training and running_mean is not None and running_var is not None:
        y = batch_norm_by(op, input, weight, bias, running_mean, running_var, eps)
        return y, _nothing(op, 1), _nothing(op, 2)
    y, mean, var = _with_batch_statistics(op, input, weight, bias, eps)
    return (y, *_saved(op, mean, var, eps))


@table.translate(aten._native_batch_norm_legit.no_stats)
def native_batch_norm_no_stats(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization with the statistics of the batch."""
    return native_batch_norm(op, input, weight, bias, None, None, True, momentum, eps)


@table.translate(aten._native_batch_norm_legit_functional.default)
def native_batch_norm_functional(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization, with the new running statistics."""
    if not training:
        y = batch_norm_by(op, input, weight, bias, running_mean, running_var, eps)
        return y, _nothing(op, 1), _nothing(op, 2), running_mean, running_var
    y, mean, var = _with_batch_statistics(op, input, weight, bias, eps)
    new = _running(op, input, running_mean, running_var, mean, var, momentum)
    return (y, *_saved(op, mean, var, eps), *new)


def _running(
    op: Builder, x: Value, old_mean: Value, old_var: Value, mean: Value, var: Value, momentum: float
) -> tuple[Value, Value]:
    """Running statistics moved towards the batch's; the variance is the unbiased one."""
    count: Any = 1
    for axis, size in enumerate(sizes_of(x)):
        if axis != 1:
            count = size * count
    number = op.cast(op.size(count), var.dtype)
    unbiased = op.Mul(var, op.Div(number, op.Sub(number, 1.0)))
    results = []
    for old, new in ((old_mean, mean), (old_var, unbiased)):
        moved = op.Add(op.Mul(op.cast(old, new.dtype), 1 - momentum), op.Mul(new, momentum))
        results.append(op.cast(moved, old.dtype))
    return results[0], results[1]


@table.translate(aten.cudnn_batch_norm.default)
def cudnn_batch_norm(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    exponential_average_factor: float,
    epsilon: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization; the reserve that cuDNN keeps is empty."""
    first = native_batch_norm(
        op, input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
    )
    return (*first, _nothing(op, 3))


@table.translate(aten._batch_norm_no_update.default)
def batch_norm_no_update(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization; the reserve is empty."""
    first = native_batch_norm(op, input, weight, bias, running_mean, running_var, False, momentum, eps)
    return (*first, _nothing(op, 3))


@table.translate(aten._batch_norm_with_update_functional.default)
def batch_norm_with_update(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value | None, ...]:
    """BatchNormalization with the batch's statistics, and the new running ones."""
    y, mean, var = _with_batch_statistics(op, input, weight, bias, eps)
    new = _running(op, input, running_mean, running_var, mean, var, momentum)
    return (y, *_saved(op, mean, var, eps), _nothing(op, 3), *new)


@table.translate(aten.instance_norm.default)
def instance_norm(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Value:
    """InstanceNormalization; BatchNormalization where running statistics are used."""
    if not use_input_stats and running_mean is not None and running_var is not None:
        return batch_norm_by(op, input, weight, bias, running_mean, running_var, eps)
    dtype = _compute_dtype(input, weight, bias)
    scale, shift = _affine(op, input, weight, bias, sizes_of(input)[1:2], dtype)
    wide, eps = _scaled(op, op.cast(input, dtype), eps)
    return op.cast(op.InstanceNormalization(wide, scale, shift, epsilon=eps), input.dtype)


# ------------------------------------------------------------------ layer norm


def layer_norm_by(
    op: Builder, x: Value, sizes: Sequence[Any], weight: Value | None, bias: Value | None, eps: float
) -> Value:
    """LayerNormalization, in the dtype of the computation."""
    dtype = _compute_dtype(x, weight, bias)
    scale = filled(op, 1.0, sizes, dtype) if weight is None else op.cast(weight, dtype)
    shift = None if bias is None else op.cast(bias, dtype)
    wide, eps = _scaled(op, op.cast(x, dtype), eps)
    return op.LayerNormalization(wide, scale, shift, axis=-len(sizes), epsilon=eps, stash_type=_stash(wide))


@table.translate(aten.layer_norm.default)
def layer_norm(
    op: Builder,
    input: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
    cudnn_enable: bool = True,
) -> Value:
    """LayerNormalization."""
    return op.cast(layer_norm_by(op, input, normalized_shape, weight, bias, eps), op.out.dtype)


@table.translate(aten.native_layer_norm.default)
def native_layer_norm(
    op: Builder,
    input: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None,
    bias: Value | None,
    eps: float,
) -> tuple[Value | None, ...]:
    """LayerNormalization, with mean and inverse deviation where they are read.

    These are computed apart: those of ONNX's operator are float32 for float64 too.
    """
    y = op.cast(layer_norm_by(op, input, normalized_shape, weight, bias, eps), op.outs[0].dtype)
    if not (used(op, 1) or used(op, 2)):
        return y, None, None
    x = op.cast(input, D.FLOAT if input.dtype in HALVES else input.dtype)
    axes = list(range(-len(normalized_shape), 0))
    mean = op.ReduceMean(x, axes, keepdims=1)
    centered = op.Sub(x, mean)
    var = op.ReduceMean(op.Mul(centered, centered), axes, keepdims=1)
    return (y, *_saved(op, mean, var, eps))


# ------------------------------------------------------------------ group norm


def group_norm_by(
    op: Builder, x: Value, groups: int, weight: Value | None, bias: Value | None, eps: float
) -> Value:
    """GroupNormalization."""
    dtype = _compute_dtype(x, weight, bias)
    scale, shift = _affine(op, x, weight, bias, sizes_of(x)[1:2], dtype)
    wide, eps = _scaled(op, op.cast(x, dtype), eps)
    y = op.GroupNormalization(wide, scale, shift, num_groups=groups, epsilon=eps, stash_type=_stash(wide))
    return op.cast(y, x.dtype)


@table.translate(aten.group_norm.default)
def group_norm(
    op: Builder,
    input: Value,
    num_groups: int,
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-05,
    cudnn_enabled: bool = True,
) -> Value:
    """GroupNormalization."""
    return group_norm_by(op, input, num_groups, weight, bias, eps)


@table.translate(aten.native_group_norm.default)
def native_group_norm(
    op: Builder,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: Any,
    C: Any,
    HxW: Any,
    group: int,
    eps: float,
) -> tuple[Value | None, ...]:
    """GroupNormalization, with mean and inverse deviation of each group where they are read."""
    y = group_norm_by(op, input, group, weight, bias, eps)
    if not (used(op, 1) or used(op, 2)):
        return y, None, None
    x = op.cast(input, D.FLOAT if input.dtype in HALVES else input.dtype)
    rows = op.Reshape(x, op.shape([N, group, C // group * HxW]))
    mean = op.ReduceMean(rows, [2], keepdims=1)
    centered = op.Sub(rows, mean)
    var = op.ReduceMean(op.Mul(centered, centered), [2], keepdims=0)
    return (y, *_saved(op, op.Squeeze(mean, [2]), var, eps))


# -------------------------------------------------------- root mean square norm


def _default_epsilon(x: Value) -> float:
    """torch's: that of the dtype in which it computes."""
    return float(torch.finfo(torch.float64 if x.dtype == D.DOUBLE else torch.float32).eps)


@table.translate(aten.rms_norm.default)
def rms_norm(
    op: Builder,
    input: Value,
    normalized_shape: Sequence[Any],
    weight: Value | None = None,
    eps: float | None = None,
) -> Value:
    """RMSNormalization."""
    x, epsilon = _scaled(op, input, _default_epsilon(input) if eps is None else eps)
    direct = weight is not None and weight.dtype == input.dtype
    scale = weight if direct else filled(op, 1.0, normalized_shape, input.dtype)
    y = op.RMSNormalization(x, scale, axis=-len(normalized_shape), epsilon=epsilon, stash_type=_stash(x))
    if direct or weight is None:
        return y
    return op.Mul(op.cast(y, op.out.dtype), op.cast(weight, op.out.dtype))


@table.translate(aten._fused_rms_norm.default)
def fused_rms_norm(
    op: Builder, input: Value, normalized_shape: Sequence[Any], weight: Value | None, eps: float | None
) -> tuple[Value | None, ...]:
    """RMSNormalization, with the inverse root mean square where it is read."""
    y = rms_norm(op, input, normalized_shape, weight, eps)
    if not used(op, 1):
        return y, None
    x = op.cast(input, op.outs[1].dtype)
    axes = list(range(-len(normalized_shape), 0))
    square = op.ReduceMean(op.Mul(x, x), axes, keepdims=1)
    return y, _inverse_std(op, square, _default_epsilon(input) if eps is None else eps)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def one(*more: Any, shape: Sequence[int] = (2, 4, 5)) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.randn(shape), *(x() if callable(x) else x for x in more))

    def channel() -> Any:
        return Weight(torch.rand(4) + 0.5, "BUFFER")

    def last() -> Any:
        return Weight(torch.rand(5) + 0.5)

    two, four = (channel, channel), (channel,) * 4
    return [
        OpSample(
            aten.batch_norm.default, one(*four, False, 0.1, 1e-5, False), expect="BatchNormalization:1!"
        ),
        OpSample(aten.batch_norm.default, one(*two, None, None, True, 0.1, 1e-5, False)),
        OpSample(aten._native_batch_norm_legit_no_training.default, one(*four, 0.1, 1e-5)),
        OpSample(aten.native_batch_norm.default, one(*four, False, 0.1, 1e-5)),
        OpSample(aten.native_batch_norm.default, one(*two, None, None, True, 0.1, 1e-5)),
        OpSample(aten._native_batch_norm_legit.no_stats, one(*two, True, 0.1, 1e-5)),
        OpSample(aten._native_batch_norm_legit_functional.default, one(*four, True, 0.1, 1e-5)),
        OpSample(aten._batch_norm_no_update.default, one(*four, 0.1, 1e-5)),
        OpSample(aten._batch_norm_with_update_functional.default, one(*four, 0.1, 1e-5)),
        OpSample(
            aten.cudnn_batch_norm.default,
            one(*four, False, 0.1, 1e-5),
            opsets=(0, 0),
            reason="torch has no CPU kernel: the tests compare it with batch_norm",
        ),
        OpSample(aten.instance_norm.default, one(*two, None, None, True, 0.1, 1e-5, False)),
        OpSample(aten.instance_norm.default, one(*four, False, 0.1, 1e-5, False)),
        OpSample(aten.layer_norm.default, one([5], last, last)),
        OpSample(aten.native_layer_norm.default, one([5], last, last, 1e-5)),
        OpSample(aten.group_norm.default, one(2, channel, channel)),
        OpSample(aten.native_group_norm.default, one(*two, 2, 4, 5, 2, 1e-5), options={"dynamic": False}),
        OpSample(aten.rms_norm.default, one([5], last)),
        OpSample(aten._fused_rms_norm.default, one([5], last, 1e-5)),
    ]
