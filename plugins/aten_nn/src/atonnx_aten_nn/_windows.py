"""Windows along the spatial axes, taken apart by Gather."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atonnx.build import Builder, Value


def places(op: Builder, count: Any, kernel: int, dilation: int, stride: int, before: int = 0) -> Value:
    """The places of each window along an axis, a row a window; the first begins ``before`` the axis."""
    taps = np.arange(kernel).reshape(1, kernel) * dilation - before
    if isinstance(count, int):
        return op.const(np.arange(count).reshape(count, 1) * stride + taps)
    begins = op.Unsqueeze(op.Range(0, op.size(count), 1), [1])
    return op.Add(begins if stride == 1 else op.Mul(begins, stride), op.const(taps))


def inside(op: Builder, index: Value, size: Any, dilation: int) -> Value:
    """``index`` with places outside of the axis moved to the nearest one that their window has inside."""
    last = op.size(size - 1)
    if dilation == 1:
        return op.Max(op.Min(index, last), 0)
    back = op.Sub(last, op.Mod(op.Sub(last, index), dilation))
    index = op.Where(op.Greater(index, last), back, index)
    return op.Where(op.Less(index, 0), op.Mod(index, dilation), index)


def unfolded(
    op: Builder,
    x: Value,
    counts: Sequence[Any],
    kernel: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """``x`` with each of its last axes in two: window and place in it."""
    first = x.rank - len(counts)
    for i, numbers in enumerate(zip(counts, kernel, dilation, stride, strict=True)):
        x = op.Gather(x, places(op, *numbers), axis=first + 2 * i)
    return x


def greatest(
    op: Builder, x: Value, sizes: Sequence[Any], indices: bool, cut: Callable[[Value, int], Value]
) -> tuple[Value, Value | None]:
    """Maxima over windows of the last axes, and their places in a channel.

    ``cut`` gives a tensor with an axis, told by its number from the first spatial one, in two: window and
    place in it.
    """
    place = _flat_places(op, x, sizes) if indices else None
    first = x.rank - len(sizes)
    for i in reversed(range(len(sizes))):
        axis = first + i
        parts = cut(x, i)
        if place is None:
            x = op.ReduceMax(parts, [axis + 1], keepdims=0)
            continue
        best = op.ArgMax(parts, axis=axis + 1, keepdims=1)
        found = cut(place, i)
        x = op.Squeeze(op.GatherElements(parts, best, axis=axis + 1), [axis + 1])
        place = op.Squeeze(op.GatherElements(found, best, axis=axis + 1), [axis + 1])
    return x, place


def _flat_places(op: Builder, x: Value, sizes: Sequence[Any]) -> Value:
    """For each element its number in its channel."""
    count: Any = 1
    for size in sizes:
        count = size * count
    dims = (*(x.dims or ())[: x.rank - len(sizes)], *sizes)
    return op.expand(op.reshape(op.Range(0, op.size(count), 1), sizes), dims)
