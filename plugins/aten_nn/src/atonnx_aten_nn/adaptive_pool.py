"""Pooling to a given size: window ``i`` of ``n`` goes from floor(i*size/n) to ceil((i+1)*size/n)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import HALVES, D, batched, sizes_of, spread, used
from atonnx_aten_nn._windows import greatest

aten = torch.ops.aten
table = Table(__name__)


def _bounds(size: int, count: int) -> tuple[list[int], list[int]]:
    starts = [i * size // count for i in range(count)]
    ends = [-(-(i + 1) * size // count) for i in range(count)]
    return starts, ends


def _regular(size: Any, count: Any) -> tuple[int, int] | None:
    """Kernel and stride, where all windows are of one size at one distance."""
    if isinstance(size, int) and isinstance(count, int):
        if not size or not count:
            return None
        starts, ends = _bounds(size, count)
        kernel, stride = ends[0], starts[1] if count > 1 else 1
        even = all(
            s == i * stride and e - s == kernel for i, (s, e) in enumerate(zip(starts, ends, strict=True))
        )
        return (kernel, stride) if even else None
    if size == count:
        return (1, 1)
    try:
        ratio = size // count
        return (ratio, ratio) if isinstance(ratio, int) and ratio * count == size else None
    except Exception:
        return None


def _positions(op: Builder, size: Any, count: Any) -> tuple[Value, Value]:
    """Begin of each window, and one behind its end, as columns."""
    steps = op.Range(0, op.size(count), 1)
    length, number = op.size(size), op.size(count)
    begin = op.Div(op.Mul(steps, length), number)
    end = op.Div(op.Add(op.Mul(op.Add(steps, 1), length), op.Sub(number, 1)), number)
    return op.Unsqueeze(begin, [1]), op.Unsqueeze(end, [1])


def _static_windows(op: Builder, x: Value, axis: int, size: int, count: int) -> tuple[Value, Value, Value]:
    """The same from constants."""
    begin, end = (np.array(bounds, np.int64).reshape(count, 1) for bounds in _bounds(size, count))
    length = end - begin
    places = np.arange(length.max(initial=0))[None]
    index = op.const(np.minimum(begin + places, end - 1))
    return op.Gather(x, index, axis=axis), op.const(places < length), op.const(length)


def windows(op: Builder, x: Value, axis: int, count: Any) -> tuple[Value, Value, Value]:
    """The windows along an axis, uneven ones too.

    Returns ``x`` with the axis in two, window and place in it; which places belong to their window
    (the others repeat its last); and how long each window is, as a column.
    """
    size = sizes_of(x)[axis]
    if isinstance(size, int) and isinstance(count, int):
        return _static_windows(op, x, axis, size, count)
    begin, end = _positions(op, size, count)
    length = op.Sub(end, begin)
    places = op.Unsqueeze(op.Range(0, op.Squeeze(op.ReduceMax(length, [0, 1], keepdims=0)), 1), [0])
    index = op.Min(op.Add(begin, places), op.Sub(end, 1))
    return op.Gather(x, index, axis=axis), op.Less(places, length), length


def _average_axis(op: Builder, x: Value, axis: int, count: Any) -> Value:
    parts, inside, length = windows(op, x, axis, count)
    behind = list(range(2, 2 + x.rank - axis - 1))
    if behind:
        inside = op.Unsqueeze(inside, behind)
    total = op.ReduceSum(op.Where(inside, parts, 0.0), [axis + 1], keepdims=0)
    number = op.cast(op.Squeeze(length, [1]), x.dtype)
    if behind:
        number = op.Unsqueeze(number, [b - 1 for b in behind])
    return op.Div(total, number)


def _average(op: Builder, x: Value, output_size: Sequence[Any], spatial: int) -> Value:
    sizes = sizes_of(x)[-spatial:]
    wanted = spread(output_size, spatial)
    whole = [i for i, count in enumerate(wanted) if isinstance(count, int) and count == 1]
    if len(whole) == spatial:
        if x.rank == spatial + 2:
            return op.GlobalAveragePool(x)
        return op.ReduceMean(x, list(range(-spatial, 0)), keepdims=1)
    plans = [_regular(size, count) for size, count in zip(sizes, wanted, strict=True)]
    if all(plan is not None for plan in plans):
        if all(plan == (1, 1) for plan in plans):
            return x
        x, single = batched(op, x, spatial)
        kernel, strides = zip(*[plan for plan in plans if plan is not None], strict=True)
        y = op.AveragePool(x, kernel_shape=kernel, strides=strides)
        return op.Squeeze(y, [0]) if single else y
    wide = D.FLOAT if x.dtype in HALVES else x.dtype
    y = op.cast(x, wide)
    if whole:
        y = op.ReduceMean(y, [i - spatial for i in whole], keepdims=1)
    for i, (size, count) in enumerate(zip(sizes, wanted, strict=True)):
        if i not in whole and size != count:
            y = _average_axis(op, y, x.rank - spatial + i, count)
    return op.cast(y, x.dtype)


@table.translate(aten.adaptive_avg_pool1d.default)
def adaptive_avg_pool1d(op: Builder, self: Value, output_size: Sequence[Any]) -> Value:
    """GlobalAveragePool, AveragePool where all windows are alike, else Gather of the windows."""
    return _average(op, self, output_size, 1)


@table.translate(aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default)
def adaptive_avg_pool2d(op: Builder, self: Value, output_size: Sequence[Any]) -> Value:
    """GlobalAveragePool, AveragePool where all windows are alike, else Gather of the windows."""
    return _average(op, self, output_size, 2)


@table.translate(aten.adaptive_avg_pool3d.default, aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(op: Builder, self: Value, output_size: Sequence[Any]) -> Value:
    """GlobalAveragePool, AveragePool where all windows are alike, else Gather of the windows."""
    return _average(op, self, output_size, 3)


# --------------------------------------------------------------------- maximum


def _maximum(op: Builder, x: Value, output_size: Sequence[Any], spatial: int) -> tuple[Value, Value | None]:
    """What a short window repeats does not change its maximum, so that all places may count."""
    sizes = sizes_of(x)[-spatial:]
    wanted = spread(output_size, spatial)
    indices = used(op, 1)
    if not indices and all(isinstance(count, int) and count == 1 for count in wanted):
        return op.ReduceMax(x, list(range(-spatial, 0)), keepdims=1), None
    plans = [_regular(size, count) for size, count in zip(sizes, wanted, strict=True)]
    if not indices and all(plan is not None for plan in plans):
        x, single = batched(op, x, spatial)
        kernel, strides = zip(*[plan for plan in plans if plan is not None], strict=True)
        y = op.MaxPool(x, kernel_shape=kernel, strides=strides)
        return (op.Squeeze(y, [0]) if single else y), None
    first = x.rank - spatial
    return greatest(op, x, sizes, indices, lambda part, i: windows(op, part, first + i, wanted[i])[0])


@table.translate(aten.adaptive_max_pool1d.default)
def adaptive_max_pool1d(op: Builder, self: Value, output_size: Sequence[int]) -> tuple[Value, Value | None]:
    """MaxPool where all windows are alike, else ReduceMax over a Gather of the windows."""
    return _maximum(op, self, output_size, 1)


@table.translate(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(op: Builder, self: Value, output_size: Sequence[int]) -> tuple[Value, Value | None]:
    """MaxPool where all windows are alike, else ReduceMax over a Gather of the windows."""
    return _maximum(op, self, output_size, 2)


@table.translate(aten.adaptive_max_pool3d.default)
def adaptive_max_pool3d(op: Builder, self: Value, output_size: Sequence[int]) -> tuple[Value, Value | None]:
    """MaxPool where all windows are alike, else ReduceMax over a Gather of the windows."""
    return _maximum(op, self, output_size, 3)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def one(spatial: int, *counts: int) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.randn(2, 3, *(7, 6, 8)[:spatial]), list(counts))

    two = (aten.adaptive_avg_pool2d.default, aten._adaptive_avg_pool2d.default)
    three = (aten.adaptive_avg_pool3d.default, aten._adaptive_avg_pool3d.default)
    return [
        OpSample(aten.adaptive_avg_pool1d.default, one(1, 1), expect="GlobalAveragePool:1!"),
        OpSample(aten.adaptive_avg_pool1d.default, one(1, 3)),
        *(OpSample(o, one(2, 1, 1), expect="GlobalAveragePool:1!") for o in two),
        *(OpSample(o, one(2, 3, 5)) for o in two),
        *(OpSample(o, one(3, 1, 2, 3)) for o in three),
        OpSample(aten.adaptive_max_pool1d.default, one(1, 3)),
        OpSample(aten.adaptive_max_pool2d.default, one(2, 3, 5)),
        OpSample(aten.adaptive_max_pool2d.default, one(2, 3, 5), options={"outputs": (0,)}),
        OpSample(aten.adaptive_max_pool3d.default, one(3, 1, 2, 3)),
    ]
