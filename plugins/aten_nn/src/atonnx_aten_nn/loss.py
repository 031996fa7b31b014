"""Losses over classes, and losses by margins."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import FLOATS, HALVES, UNSIGNED, D, filled, known, sizes_of, used

aten = torch.ops.aten
table = Table(__name__)

_REDUCTIONS = ("none", "mean", "sum")


def _reduced(op: Builder, loss: Value, reduction: int) -> Value:
    if _REDUCTIONS[reduction] == "none":
        return loss
    return op.translate(aten.mean.default if reduction == 1 else aten.sum.default, loss)


def _batched(op: Builder, scores: Value, target: Value) -> tuple[Value, Value, bool]:
    """Scores of (N, C, ...) and targets of (N, ...), and whether there was no batch."""
    if target.dtype not in (D.INT32, D.INT64) and target.dtype not in FLOATS:
        target = op.cast(target, D.INT64)
    if scores.rank > 1:
        return scores, target, False
    if target.rank == scores.rank and target.dtype not in FLOATS:
        return op.Unsqueeze(scores, [0]), target, False  # one target in a vector
    return op.Unsqueeze(scores, [0]), op.Unsqueeze(target, [0]), True


def _single(op: Builder, loss: Value, single: bool, reduction: int) -> Value:
    return op.Squeeze(loss, [0]) if single and reduction == 0 else loss


def _classes(op: Builder, x: Value) -> Any:
    return sizes_of(x)[1]


# ------------------------------------------------- negative log likelihood


def _nll(
    op: Builder, x: Value, target: Value, weight: Value | None, reduction: int, ignore_index: Any
) -> Value:
    x, target, single = _batched(op, x, target)
    loss = op.NegativeLogLikelihoodLoss(
        x,
        target,
        weight,
        reduction=_REDUCTIONS[reduction],
        ignore_index=known(op, ignore_index, "ignore_index"),
    )
    return _single(op, loss, single, reduction)


@table.translate(aten.nll_loss.default, aten.nll_loss2d.default, aten.nll_loss_nd.default)
def nll_loss(
    op: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: Any = -100,
) -> Value:
    """NegativeLogLikelihoodLoss."""
    return _nll(op, self, target, weight, reduction, ignore_index)


@table.translate(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss_forward(
    op: Builder, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: Any
) -> tuple[Value, Value | None]:
    """NegativeLogLikelihoodLoss, and the weight of all targets where it is read."""
    loss = _nll(op, self, target, weight, reduction, ignore_index)
    if not used(op, 1):
        return loss, None
    if reduction == 0:
        return loss, filled(op, 0.0, (), self.dtype)
    return loss, op.ReduceSum(_shares(op, self, target, weight, ignore_index), keepdims=0)


def _shares(op: Builder, x: Value, target: Value, weight: Value | None, ignore_index: Any) -> Value:
    """What each target counts: the weight of its class, nothing where it is ignored."""
    ignored = op.Equal(target, ignore_index)
    if weight is None:
        return op.cast(op.Not(ignored), x.dtype)
    safe = op.Where(ignored, op.const(0, target.dtype), target)
    return op.Where(ignored, 0.0, op.Gather(weight, safe, axis=0))


def cross_entropy(
    op: Builder,
    scores: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: Any,
    smoothing: float,
) -> Value:
    """SoftmaxCrossEntropyLoss; LogSoftmax and sums where labels are smoothed or are probabilities."""
    x, target, single = _batched(op, scores, target)
    if target.dtype in FLOATS:
        loss = _of_probabilities(op, x, target, weight, reduction, smoothing)
    elif smoothing:
        loss = _smoothed(op, x, target, weight, reduction, ignore_index, smoothing)
    else:
        loss = op.SoftmaxCrossEntropyLoss(
            x,
            target,
            weight,
            reduction=_REDUCTIONS[reduction],
            ignore_index=known(op, ignore_index, "ignore_index"),
        )
    return _single(op, loss, single, reduction)


def _by_class(op: Builder, x: Value, weight: Value) -> Value:
    """A weight for each class, to be multiplied with ``x``."""
    rest = list(range(1, x.rank - 1))
    return op.Unsqueeze(weight, rest) if rest else weight


def _of_probabilities(
    op: Builder, x: Value, target: Value, weight: Value | None, reduction: int, smoothing: float
) -> Value:
    classes = _classes(op, x)
    if smoothing:
        share = op.Div(op.const(smoothing, x.dtype), op.cast(op.size(classes), x.dtype))
        target = op.Add(op.Mul(target, 1 - smoothing), share)
    terms = op.Mul(op.LogSoftmax(x, axis=1), target)
    if weight is not None:
        terms = op.Mul(terms, _by_class(op, x, weight))
    if reduction == 0:
        return op.Neg(op.ReduceSum(terms, [1], keepdims=0))
    total = op.Neg(op.ReduceSum(terms, keepdims=0))
    if reduction == 2:
        return total
    count: Any = 1
    for axis, size in enumerate(sizes_of(x)):
        if axis != 1:
            count = size * count
    return op.Div(total, op.cast(op.size(count), x.dtype))


def _smoothed(
    op: Builder,
    x: Value,
    target: Value,
    weight: Value | None,
    reduction: int,
    ignore_index: Any,
    smoothing: float,
) -> Value:
    logarithms = op.LogSoftmax(x, axis=1)
    ignored = op.Equal(target, ignore_index)
    safe = op.Where(ignored, op.const(0, target.dtype), target)
    own = op.Squeeze(op.GatherElements(logarithms, op.Unsqueeze(safe, [1]), axis=1), [1])
    every = logarithms
    if weight is not None:
        own = op.Mul(own, op.Gather(weight, safe, axis=0))
        every = op.Mul(logarithms, _by_class(op, x, weight))
    share = op.Div(op.const(smoothing, x.dtype), op.cast(op.size(_classes(op, x)), x.dtype))
    both = op.Add(op.Mul(own, 1 - smoothing), op.Mul(op.ReduceSum(every, [1], keepdims=0), share))
    loss = op.Where(ignored, 0.0, op.Neg(both))
    if reduction == 0:
        return loss
    total = op.ReduceSum(loss, keepdims=0)
    if reduction == 2:
        return total
    return op.Div(total, op.ReduceSum(_shares(op, x, target, weight, ignore_index), keepdims=0))


@table.translate(aten.cross_entropy_loss.default)
def cross_entropy_loss(
    op: Builder,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: Any = -100,
    label_smoothing: float = 0.0,
) -> Value:
    """SoftmaxCrossEntropyLoss, or what it is made of for smoothed labels and probabilities."""
    return cross_entropy(op, self, target, weight, reduction, ignore_index, label_smoothing)


def _of_linear(
    op: Builder,
    x: Value,
    linear_weight: Value,
    target: Value,
    linear_bias: Value | None,
    weight: Value | None,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Value:
    """Scores by a linear layer, and their cross entropy, in the dtype in which eager sums."""
    wide = D.FLOAT if x.dtype in HALVES else x.dtype
    scores = op.MatMul(op.cast(x, wide), op.Transpose(op.cast(linear_weight, wide), perm=[1, 0]))
    if linear_bias is not None:
        scores = op.Add(scores, op.cast(linear_bias, wide))
    if target.dtype in FLOATS:
        target = op.cast(target, wide)
    weight = None if weight is None else op.cast(weight, wide)
    number = _REDUCTIONS.index(reduction)
    return op.cast(
        cross_entropy(op, scores, target, weight, number, ignore_index, smoothing), op.outs[0].dtype
    )


@table.translate("torch_nn::_linear_cross_entropy_batch_chunked")
def linear_cross_entropy_chunked(
    op: Builder,
    input: Value,
    linear_weight: Value,
    target: Value,
    linear_bias: Value | None,
    weight: Value | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: Any,
    allow_retain_graph: bool,
    compute_input_grad: bool,
    compute_linear_weight_grad: bool,
    compute_linear_bias_grad: bool,
) -> tuple[Value | None, ...]:
    """MatMul and SoftmaxCrossEntropyLoss over all rows at once; gradients are not computed."""
    if any(used(op, index) for index in (1, 2, 3)):
        raise UnsupportedOpError.here(
            op, "gradients that a chunked cross entropy computes", hint="export under torch.no_grad()"
        )
    loss = _of_linear(
        op,
        input,
        linear_weight,
        target,
        linear_bias,
        weight,
        reduction,
        ignore_index,
        label_smoothing,
    )
    return loss, None, None, None


@table.translate("torch_nn::_linear_cross_entropy_batch_chunked_no_reduction")
def linear_cross_entropy_chunked_whole(
    op: Builder,
    input: Value,
    linear_weight: Value,
    target: Value,
    linear_bias: Value | None,
    weight: Value | None,
    ignore_index: int,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: Any,
) -> Value:
    """MatMul and SoftmaxCrossEntropyLoss over all rows at once."""
    return _of_linear(op, input, linear_weight, target, linear_bias, weight, "none", ignore_index, 0.0)


# ---------------------------------------------------------------- by margins


def _is(op: Builder, x: Value, number: int) -> Value:
    return op.translate(aten.eq.Scalar, x, number)


def _floored(op: Builder, x: Value) -> Value:
    return op.translate(aten.clamp_min.default, x, 0)


@table.translate(aten.margin_ranking_loss.default)
def margin_ranking_loss(
    op: Builder, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1
) -> Value:
    """Arithmetic, and a reduction."""
    apart = op.translate(aten.sub.Tensor, input1, input2)
    if target.dtype in UNSIGNED:
        # The sign that torch gives the target wraps around before it is multiplied.
        moved = op.translate(aten.mul.Tensor, op.translate(aten.neg.default, target), apart)
        return _reduced(op, _floored(op, op.translate(aten.add.Scalar, moved, margin)), reduction)
    apart = op.translate(aten.mul.Tensor, apart, target)
    return _reduced(op, _floored(op, op.translate(aten.rsub.Scalar, apart, margin)), reduction)


@table.translate(aten.hinge_embedding_loss.default)
def hinge_embedding_loss(
    op: Builder, self: Value, target: Value, margin: float = 1.0, reduction: int = 1
) -> Value:
    """Where of each kind of target, and a reduction."""
    near = _floored(op, op.translate(aten.rsub.Scalar, self, margin))
    far = op.translate(aten.where.ScalarOther, op.Not(_is(op, target, 1)), near, 0)
    own = op.translate(aten.where.ScalarOther, op.Not(_is(op, target, -1)), self, 0)
    return _reduced(op, op.translate(aten.add.Tensor, far, own), reduction)


@table.translate(aten.multilabel_margin_loss_forward.default)
def multilabel_margin_loss_forward(
    op: Builder, self: Value, target: Value, reduction: int
) -> tuple[Value, Value]:
    """The targets of a row end before its first negative one; margins to all other classes are added up."""
    if self.rank < 2 and reduction == 0:
        what = "one example without a reduction, for which torch states a wrong shape,"
        raise UnsupportedOpError.here(op, what, hint="give a batch of one, or reduce")
    classes = sizes_of(self)[-1] if self.rank else 1
    x = op.reshape(self, [1, classes]) if self.rank < 2 else self
    targets = op.reshape(target, [1, classes]) if self.rank < 2 else target
    ended = op.CumSum(op.cast(op.Less(targets, 0), D.INT64), op.const(1, D.INT64))
    valid = op.Equal(ended, 0)
    places = op.Where(valid, targets, 0)
    numbers = op.Range(0, op.size(classes), 1)
    named = op.And(op.Equal(op.Unsqueeze(places, [2]), numbers), op.Unsqueeze(valid, [2]))
    is_target = op.Greater(op.ReduceSum(op.cast(named, D.INT32), [1], keepdims=0), 0)
    apart = op.Sub(1.0, op.Unsqueeze(op.GatherElements(x, places, axis=1), [2]))
    apart = op.Add(apart, op.Unsqueeze(x, [1]))
    counted = op.And(op.Unsqueeze(valid, [2]), op.Unsqueeze(op.Not(is_target), [1]))
    counted = op.And(counted, op.Greater(apart, 0.0))
    sums = op.ReduceSum(op.Where(counted, apart, 0.0), [1, 2], keepdims=0)
    loss = op.Div(sums, op.cast(op.size(classes), self.dtype))
    return (
        _reduced(op, loss, reduction),
        op.reshape(op.cast(is_target, self.dtype), sizes_of(target)),
    )


@table.translate(aten.multilabel_margin_loss.default)
def multilabel_margin_loss(op: Builder, self: Value, target: Value, reduction: int = 1) -> Value:
    """The first result of multilabel_margin_loss_forward."""
    return multilabel_margin_loss_forward(op, self, target, reduction)[0]


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def scores(*more: Any) -> Any:
        return lambda: (torch.randn(3, 5).log_softmax(1), torch.tensor([0, 4, -100]), *more)

    def image(*more: Any) -> Any:
        return lambda: (torch.randn(2, 5, 3, 4), torch.randint(0, 5, (2, 3, 4)), *more)

    def pair(*more: Any) -> Any:
        return lambda: (torch.randn(3, 4), torch.randn(3, 4), torch.ones(3, 4), *more)

    sets = torch.tensor([[2, 0, -1], [1, -1, 0]])
    one: dict[str, Any] = {"expect": "NegativeLogLikelihoodLoss:1!", "opsets": 12}
    return [
        OpSample(aten.nll_loss.default, scores(), **one),
        OpSample(aten.nll_loss_nd.default, scores(None, 0), **one),
        OpSample(aten.nll_loss2d.default, image(None, 2), **one),
        OpSample(aten.nll_loss_forward.default, scores(None, 1, -100)),
        OpSample(aten.nll_loss2d_forward.default, image(None, 1, -100)),
        OpSample(aten.cross_entropy_loss.default, scores(), opsets=12, expect="SoftmaxCrossEntropyLoss:1!"),
        OpSample(aten.cross_entropy_loss.default, image(None, 1, -100, 0.1)),
        OpSample(aten.margin_ranking_loss.default, pair(0.5)),
        OpSample(aten.hinge_embedding_loss.default, lambda: (torch.randn(2, 3), torch.ones(2, 3), 0.5)),
        OpSample(aten.multilabel_margin_loss.default, lambda: (torch.randn(2, 3), sets)),
        OpSample(aten.multilabel_margin_loss_forward.default, lambda: (torch.randn(2, 3), sets, 0)),
    ]
