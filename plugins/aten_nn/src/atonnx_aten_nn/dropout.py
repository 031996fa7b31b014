"""Dropout: nothing in a model that is evaluated, random in one that is trained."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import HALVES, D, sizes_of, used

aten = torch.ops.aten
table = Table(__name__)


def _drop(op: Builder, x: Value, p: float) -> tuple[Value, Value]:
    """What Dropout keeps in training, and which that is.

    ONNX Runtime takes a Dropout out of a model, in training too, unless its mask is read.
    """
    if p == 1:
        return op.Mul(x, 0.0), op.expand(op.const(False), sizes_of(x))
    y, mask = op.Dropout(x, op.const(p, x.dtype), True, outputs=2)
    return op.Where(mask, y, op.const(0, x.dtype)), mask


def drop(op: Builder, x: Value, p: float) -> Value:
    """Dropout in training."""
    return _drop(op, x, p)[0]


@table.translate(aten.dropout.default)
def dropout(op: Builder, input: Value, p: float, train: bool) -> Value:
    """The input itself in evaluation; Dropout(training_mode=True), and Where by its mask, in training."""
    return drop(op, input, p) if train and p else input


@table.translate(aten.native_dropout.default)
def native_dropout(op: Builder, input: Value, p: float, train: bool | None) -> tuple[Value, Value | None]:
    """Dropout with its mask."""
    if train is not False and p:
        return _drop(op, input, p)
    return input, op.expand(op.const(True), op.outs[1].dims) if used(op, 1) else None


def draw(op: Builder, like: Value, low: float | None = None, high: float | None = None) -> Value:
    """RandomUniformLike; in float32 for half precision, which no runtime draws."""
    wide = op.cast(like, D.FLOAT) if like.dtype in HALVES else like
    return op.RandomUniformLike(wide, low=low, high=high)


def _feature_mask(op: Builder, x: Value, p: float) -> Value:
    """Which channels stay: 1 or 0, one number a channel."""
    sizes = (*sizes_of(x)[:2], *(1,) * (x.rank - 2))
    made = draw(op, op.expand(op.const(0.0, x.dtype), sizes))
    return op.cast(op.GreaterOrEqual(made, p), x.dtype)


@table.translate(aten.feature_dropout.default)
def feature_dropout(op: Builder, input: Value, p: float, train: bool) -> Value:
    """The input itself in evaluation; in training whole channels are dropped by a random mask."""
    if not train or not p:
        return input
    if p == 1:
        return op.Mul(input, 0.0)
    return op.Mul(input, op.Div(_feature_mask(op, input, p), 1 - p))


def _alpha(op: Builder, x: Value, keep: Value, p: float) -> Value:
    """What is dropped becomes selu's negative limit; mean and variance are kept."""
    alpha = 1.7580993408473766
    a = ((1 - p) * (1 + p * alpha**2)) ** -0.5
    b = a * alpha * p
    kept = op.Mul(x, keep)
    return op.Add(op.Mul(kept, a), op.Add(op.Mul(op.Sub(keep, 1.0), a * alpha), b))


@table.translate(aten.alpha_dropout.default)
def alpha_dropout(op: Builder, input: Value, p: float, train: bool) -> Value:
    """The input itself in evaluation; in training spelled out over a random mask."""
    if not train or not p:
        return input
    if p == 1:
        return op.Mul(input, 0.0)
    keep = op.cast(op.GreaterOrEqual(draw(op, input), p), input.dtype)
    return _alpha(op, input, keep, p)


@table.translate(aten.feature_alpha_dropout.default)
def feature_alpha_dropout(op: Builder, input: Value, p: float, train: bool) -> Value:
    """The input itself in evaluation; in training spelled out over a random mask of channels."""
    if not train or not p:
        return input
    if p == 1:
        return op.Mul(input, 0.0)
    return _alpha(op, input, _feature_mask(op, input, p), p)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def trained() -> tuple[torch.Tensor, float, bool]:
        return torch.randn(2, 3, 4), 0.5, True

    def evaluated() -> tuple[torch.Tensor, float, bool]:
        return torch.randn(2, 3, 4), 0.5, False

    channels = (aten.feature_dropout.default, aten.feature_alpha_dropout.default)
    plain = (aten.dropout.default, aten.native_dropout.default, aten.alpha_dropout.default)
    return [
        *(OpSample(overload, make) for overload in (*plain, *channels) for make in (trained, evaluated)),
    ]
