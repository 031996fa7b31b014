"""Losses."""

from __future__ import annotations

from typing import Any

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack

pack = OpsetPack(__name__)

pack.same("NegativeLogLikelihoodLoss", 12, 13, 22)
pack.same("SoftmaxCrossEntropyLoss", 12, 13)


def _loss(
    op: Builder,
    logarithms: Value,
    target: Value,
    weight: Value | None,
    reduction: str,
    ignore_index: int | None,
) -> Value:
    """What each target's class has, times the weight of that class."""
    ignored: Value | None = None
    if ignore_index is not None:
        ignored = op.Equal(target, ignore_index)
        target = op.Where(ignored, op.const(0, target.dtype), target)
    zero = op.const(0, logarithms.dtype)
    picked = op.GatherElements(logarithms, op.Unsqueeze(target, [1]), axis=1)
    loss = op.Neg(op.Squeeze(picked, [1]))
    shares: Value | None = None
    if weight is not None:
        shares = op.Gather(weight, target)
        loss = op.Mul(loss, shares)
    elif ignored is not None:
        shares = op.Expand(op.const(1, logarithms.dtype), op.Shape(target))
    if ignored is not None:
        loss, shares = (op.Where(ignored, zero, value) for value in (loss, shares))
    if reduction == "none":
        return loss
    if reduction == "sum":
        return op.ReduceSum(loss, keepdims=0)
    if shares is None:
        return op.ReduceMean(loss, keepdims=0)
    return op.Div(op.ReduceSum(loss, keepdims=0), op.ReduceSum(shares, keepdims=0))


@pack.below(12, "NegativeLogLikelihoodLoss")
def negative_log_likelihood_loss(
    op: Builder,
    x: Value,
    target: Value,
    weight: Value | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Value:
    """Gathers of the targets' classes."""
    return _loss(op, x, target, weight, reduction, ignore_index)


@pack.below(12, "SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(
    op: Builder,
    scores: Value,
    target: Value,
    weight: Value | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Any:
    """LogSoftmax, and gathers of the targets' classes."""
    logarithms = op.LogSoftmax(scores, axis=1)
    loss = _loss(op, logarithms, target, weight, reduction, ignore_index)
    return (loss, logarithms) if op.asked_outputs > 1 else loss
