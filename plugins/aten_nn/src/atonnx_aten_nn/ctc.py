"""Connectionist temporal classification: the forward algorithm as one Scan over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import D, sizes_of

aten = torch.ops.aten
table = Table(__name__)

_NEVER = -float("inf")


def _labels(op: Builder, targets: Value, lengths: Value, batch: Any, blank: int) -> Value:
    """The targets of each sequence in a row of the longest's length, blanks behind them."""
    targets = op.cast(targets, D.INT64)
    if targets.rank == 2:
        width = op.size(sizes_of(targets)[1])
        steps = op.Range(0, width, 1)
        rows = targets
    else:
        steps = op.Range(0, op.ReduceMax(lengths, keepdims=0), 1)
        begins = op.Sub(op.CumSum(lengths, 0), lengths)
        last = op.size(sizes_of(targets)[0] - 1)
        rows = op.Gather(targets, op.Min(op.Add(op.Unsqueeze(begins, [1]), steps), last), axis=0)
    return op.Where(op.Less(steps, op.Unsqueeze(lengths, [1])), rows, blank)


def _interleaved(op: Builder, labels: Value, batch: Any, blank: int) -> Value:
    """A blank before, between and behind the labels: (N, 2S+1)."""
    column = op.expand(op.const([[blank]], D.INT64), (batch, 1))
    pairs = op.Unsqueeze(labels, [2])
    both = op.Concat(op.Expand(op.const([[[blank]]], D.INT64), op.Shape(pairs)), pairs, axis=2)
    flat = op.Reshape(both, op.Concat(op.shape([batch]), op.Mul(op.Shape(labels, start=1), 2), axis=0))
    return op.Concat(flat, column, axis=1)


def _summed(op: Builder, *terms: Value) -> Value:
    """The logarithm of the sum of what the terms are logarithms of."""
    highest = op.Max(*terms)
    highest = op.Where(op.Equal(highest, _NEVER), 0.0, highest)
    total = op.Sum(*(op.Exp(op.Sub(term, highest)) for term in terms))
    return op.Add(op.Log(total), highest)


def _forward(op: Builder, emitted: Value, active: Value, skips: Value, batch: Any) -> Value:
    """The logarithm of the probability of each place after the last step: (N, L)."""
    dtype = emitted.dtype
    width = op.Shape(emitted, start=2)
    shape = op.Concat(op.shape([batch]), width, axis=0)
    first = op.expand(op.const([[0.0]], dtype), (batch, 1))
    rest = op.Sub(width, 1)
    begin = op.Concat(
        first,
        op.Expand(op.const([[_NEVER]], dtype), op.Concat(op.shape([batch]), rest, axis=0)),
        axis=1,
    )
    ahead = op.expand(op.const([[_NEVER]], dtype), (batch, 2))
    with op.body("step") as body:
        state = body.input("state", dtype, (batch, None))
        step = body.input("emitted", dtype, (batch, None))
        runs = body.input("active", D.BOOL, (batch, 1))
        longer = body.Concat(ahead, state, axis=1)
        before = body.Slice(longer, [1], [-1], [1])
        skipped = body.Add(body.Slice(longer, [0], [-2], [1]), skips)
        moved = body.Add(_summed(body, state, before, skipped), step)
        body.output(body.Where(runs, moved, state))
    last: Value = op.Scan(begin, emitted, active, body=body.graph, num_scan_inputs=2, outputs=1)[0]
    return op.Reshape(last, shape)


def _loss(
    op: Builder,
    scores: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    blank: int,
    reduction: int,
    zero_infinity: bool,
) -> Value:
    single = scores.rank == 2
    x = op.Unsqueeze(scores, [1]) if single else scores
    if single and targets.rank == 1:
        targets = op.Unsqueeze(targets, [0])
    time, batch, _ = sizes_of(x)
    x_lengths, lengths = (
        op.cast(n if n.rank else op.Reshape(n, [1]), D.INT64) for n in (input_lengths, target_lengths)
    )
    labels = _interleaved(op, _labels(op, targets, lengths, batch, blank), batch, blank)
    # A label is reached from the one before the blank if it is another one.
    two = op.expand(op.const([[blank]], D.INT64), (batch, 2))
    before = op.Slice(op.Concat(two, labels, axis=1), [0], [-2], [1])
    barred = op.Or(op.Equal(labels, blank), op.Equal(labels, before))
    skips = op.Where(barred, op.const(_NEVER, x.dtype), op.const(0, x.dtype))
    index = op.Unsqueeze(labels, [0])
    whole = op.Concat(op.shape([time]), op.Shape(labels), axis=0)
    emitted = op.GatherElements(x, op.Expand(index, whole), axis=2)
    steps = op.Unsqueeze(op.Range(0, op.size(time), 1), [1, 2])
    active = op.Less(steps, op.Reshape(x_lengths, [1, -1, 1]))
    final = _forward(op, emitted, active, skips, batch)
    end = op.Unsqueeze(op.Mul(lengths, 2), [1])
    at_blank = op.GatherElements(final, end, axis=1)
    at_label = op.GatherElements(final, op.Max(op.Sub(end, 1), 0), axis=1)
    at_label = op.Where(op.Equal(end, 0), op.const(_NEVER, x.dtype), at_label)
    loss = op.Neg(op.Squeeze(_summed(op, at_blank, at_label), [1]))
    if zero_infinity:
        loss = op.Where(op.Equal(loss, -_NEVER), 0.0, loss)
    if reduction == 0:
        return op.Squeeze(loss, [0]) if single else loss
    if reduction == 2:
        return op.ReduceSum(loss, keepdims=0)
    counts = op.cast(op.Max(lengths, 1), x.dtype)
    return op.ReduceMean(op.Div(loss, counts), keepdims=0)


@table.translate(aten.ctc_loss.IntList)
def ctc_loss(
    op: Builder,
    log_probs: Value,
    targets: Value,
    input_lengths: Sequence[int],
    target_lengths: Sequence[int],
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Value:
    """Scan over time."""
    steps, labels = (op.const(list(numbers), D.INT64) for numbers in (input_lengths, target_lengths))
    return _loss(op, log_probs, targets, steps, labels, blank, reduction, zero_infinity)


@table.translate(aten.ctc_loss.Tensor)
def ctc_loss_tensor(
    op: Builder,
    log_probs: Value,
    targets: Value,
    input_lengths: Value,
    target_lengths: Value,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Value:
    """Scan over time."""
    return _loss(op, log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def scores() -> torch.Tensor:
        return torch.randn(6, 2, 5).log_softmax(2)

    targets = torch.tensor([[1, 2, 2], [3, 1, 0]])
    return [
        OpSample(
            aten.ctc_loss.IntList, lambda: (scores(), targets, [6, 5], [3, 2]), options={"dynamic": False}
        ),
        OpSample(
            aten.ctc_loss.Tensor,
            lambda: (scores(), targets, torch.tensor([6, 5]), torch.tensor([3, 2])),
            options={"dynamic": False},
        ),
    ]
