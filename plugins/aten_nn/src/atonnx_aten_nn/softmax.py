"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table

aten = torch.ops.aten
table = Table(__name__)


def _normalize(op: Builder, name: str, x: Value, dim: int) -> Value:
    x = op.cast(x, op.out.dtype)
    if x.rank:
        return op.call("", name, x, axis=dim)
    return op.Reshape(op.call("", name, op.Reshape(x, [1]), axis=0), op.shape([]))


@table.translate(aten.softmax.int, aten.special_softmax.default)
def softmax(op: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """Softmax, in the result's dtype."""
    return _normalize(op, "Softmax", self, dim)


@table.translate(aten.log_softmax.int)
def log_softmax(op: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """LogSoftmax, in the result's dtype."""
    return _normalize(op, "LogSoftmax", self, dim)


@table.translate(aten.special_log_softmax.default)
def special_log_softmax(op: Builder, self: Value, dim: int, *, dtype: torch.dtype | None = None) -> Value:
    """LogSoftmax, in the result's dtype."""
    return _normalize(op, "LogSoftmax", self, dim)


@table.translate(aten._softmax.default)
def core_softmax(op: Builder, self: Value, dim: int, half_to_float: bool) -> Value:
    """Softmax, in float32 where a half input is to become one."""
    return _normalize(op, "Softmax", self, dim)


@table.translate(aten._log_softmax.default)
def core_log_softmax(op: Builder, self: Value, dim: int, half_to_float: bool) -> Value:
    """LogSoftmax, in float32 where a half input is to become one."""
    return _normalize(op, "LogSoftmax", self, dim)


@table.translate(aten._safe_softmax.default)
def safe_softmax(op: Builder, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """Softmax; zero where all of a row is -inf."""
    x = op.cast(self, op.out.dtype)
    infinity: Any = -float("inf")
    if not x.rank:
        return op.Where(op.Equal(x, infinity), 0.0, _normalize(op, "Softmax", x, 0))
    highest = op.ReduceMax(x, [dim])
    return op.Where(op.Equal(highest, infinity), 0.0, _normalize(op, "Softmax", x, dim))


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def x() -> tuple[torch.Tensor, int]:
        return torch.randn(2, 5), -1

    def half() -> tuple[torch.Tensor, int, bool]:
        return torch.randn(2, 5).half(), 1, False

    return [
        *(OpSample(o, x) for o in (aten.softmax.int, aten.log_softmax.int, aten._safe_softmax.default)),
        *(OpSample(o, x) for o in (aten.special_softmax.default, aten.special_log_softmax.default)),
        *(OpSample(o, half) for o in (aten._softmax.default, aten._log_softmax.default)),
    ]
