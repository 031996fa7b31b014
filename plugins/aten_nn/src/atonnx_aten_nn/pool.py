"""Pooling by windows of fixed size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import FLOATS, D, batched, computed, sizes_of, spread, used
from atonnx_aten_nn._windows import greatest, inside, places

aten = torch.ops.aten
table = Table(__name__)

Ints = Sequence[int]

# What MaxPool takes.
_POOLED = FLOATS | {D.INT8, D.UINT8}


class _Windows:
    """The numbers of a pooling, one entry for each spatial axis."""

    def __init__(
        self,
        spatial: int,
        kernel: Ints,
        stride: Ints,
        padding: Any,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> None:
        self.spatial = spatial
        self.kernel = spread(kernel, spatial)
        self.stride = spread(stride, spatial) if stride else self.kernel
        self.padding = spread(padding, spatial)
        self.dilation = spread(dilation, spatial)
        self.ceil_mode = ceil_mode
        self.reach = tuple(d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True))

    def surplus(self) -> bool:
        """Whether rounding up may make a window that begins behind the input: torch leaves it out."""
        return self.ceil_mode and any(
            s + p > r for s, p, r in zip(self.stride, self.padding, self.reach, strict=True)
        )

    def ends(self) -> tuple[int, ...]:
        """Padding up to where the last window ends, so that no window is cut."""
        if not self.ceil_mode:
            return self.padding
        return tuple(p + s - 1 for p, s in zip(self.padding, self.stride, strict=True))

    def attributes(self) -> dict[str, Any]:
        """As MaxPool and AveragePool have them."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.stride,
            "pads": self.padding * 2,
            "dilations": self.dilation if any(d != 1 for d in self.dilation) else None,
            "ceil_mode": 1 if self.ceil_mode else None,
        }

    def trimmed(self, op: Builder, y: Value) -> Value:
        """``y`` without surplus windows."""
        if not self.surplus():
            return y
        sizes = op.outs[0].dims[-self.spatial :]
        axes = range(y.rank - self.spatial, y.rank)
        return op.Slice(y, [0] * self.spatial, op.shape(sizes), list(axes))


# --------------------------------------------------------------------- maximum


def _max_pool(op: Builder, x: Value, windows: _Windows, indices: bool) -> tuple[Value, Value | None]:
    """MaxPool; its indices count in the whole tensor, torch's in one channel."""
    x, single = batched(op, x, windows.spatial)
    if x.dtype not in _POOLED:
        return _max_of_integers(op, x, windows, indices, single)
    made = op.MaxPool(x, **windows.attributes(), outputs=2 if indices else 1)
    results: list[Value] = [windows.trimmed(op, made[0])]
    if indices:
        count: Any = 1
        for size in sizes_of(x)[2:]:
            count = size * count
        results.append(op.Mod(windows.trimmed(op, made[1]), op.size(count)))
    if single:
        results = [op.Squeeze(result, [0]) for result in results]
    return results[0], results[1] if indices else None


def _max_of_integers(
    op: Builder, x: Value, windows: _Windows, indices: bool, single: bool
) -> tuple[Value, Value | None]:
    """ReduceMax over a Gather of the windows; what is outside of the input repeats a place inside."""
    sizes, counts = sizes_of(x)[2:], op.outs[0].dims[-windows.spatial :]
    index = []
    for i, size in enumerate(sizes):
        numbers = (windows.kernel[i], windows.dilation[i], windows.stride[i], windows.padding[i])
        found = places(op, counts[i], *numbers)
        cut = windows.padding[i] or windows.ceil_mode
        index.append(inside(op, found, size, windows.dilation[i]) if cut else found)
    wide = op.cast(x, computed(x.dtype))
    y, at = greatest(op, wide, sizes, indices, lambda part, i: op.Gather(part, index[i], axis=2 + i))
    y = op.cast(y, x.dtype)
    if single:
        return op.Squeeze(y, [0]), None if at is None else op.Squeeze(at, [0])
    return y, at


@table.translate(aten.max_pool1d.default)
def max_pool1d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0,),
    dilation: Any = (1,),
    ceil_mode: bool = False,
) -> Value:
    """MaxPool."""
    return _max_pool(op, self, _Windows(1, kernel_size, stride, padding, dilation, ceil_mode), False)[0]


@table.translate(aten.max_pool2d.default)
def max_pool2d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
) -> Value:
    """MaxPool."""
    return _max_pool(op, self, _Windows(2, kernel_size, stride, padding, dilation, ceil_mode), False)[0]


@table.translate(aten.max_pool3d.default)
def max_pool3d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    ceil_mode: bool = False,
) -> Value:
    """MaxPool."""
    return _max_pool(op, self, _Windows(3, kernel_size, stride, padding, dilation, ceil_mode), False)[0]


def _with_indices(op: Builder, x: Value, windows: _Windows) -> tuple[Value, Value | None]:
    return _max_pool(op, x, windows, used(op, 1))


@table.translate(aten.max_pool1d_with_indices.default)
def max_pool1d_with_indices(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0,),
    dilation: Any = (1,),
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """MaxPool, and Mod on its indices."""
    return _with_indices(op, self, _Windows(1, kernel_size, stride, padding, dilation, ceil_mode))


@table.translate(aten.max_pool2d_with_indices.default)
def max_pool2d_with_indices(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0),
    dilation: Any = (1, 1),
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """MaxPool, and Mod on its indices."""
    return _with_indices(op, self, _Windows(2, kernel_size, stride, padding, dilation, ceil_mode))


@table.translate(aten.max_pool3d_with_indices.default)
def max_pool3d_with_indices(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0, 0),
    dilation: Any = (1, 1, 1),
    ceil_mode: bool = False,
) -> tuple[Value, Value | None]:
    """MaxPool, and Mod on its indices."""
    return _with_indices(op, self, _Windows(3, kernel_size, stride, padding, dilation, ceil_mode))


# --------------------------------------------------------------------- average


def _avg_pool(
    op: Builder, x: Value, windows: _Windows, count_include_pad: bool, divisor: int | None = None
) -> Value:
    """AveragePool.

    Where a window that rounding up has made reaches beyond the padding, runtimes differ in what
    they divide by: there the padding is spelled out, so that only the input counts.
    """
    x, single = batched(op, x, windows.spatial)
    attributes = windows.attributes()
    spatial = windows.spatial
    padded = any(windows.padding)
    if x.dtype not in FLOATS:
        y = _average_of_integers(op, x, windows, count_include_pad, divisor)
        return op.Squeeze(y, [0]) if single else y
    if divisor is not None:
        y = _summed(op, x, windows, divisor)
    else:
        if padded and count_include_pad and windows.ceil_mode:
            x = op.Pad(x, [0, 0, *windows.padding, 0, 0, *windows.padding])
            attributes["pads"] = (0,) * (2 * spatial)
            padded = False
        attributes["count_include_pad"] = 1 if padded and count_include_pad else None
        y = op.AveragePool(x, **attributes)
    y = windows.trimmed(op, y)
    return op.Squeeze(y, [0]) if single else y


def _summed(op: Builder, x: Value, windows: _Windows, divisor: int) -> Value:
    """Sums over the windows by a given number: averages over full windows, scaled."""
    attributes = windows.attributes()
    ends = windows.ends()
    if any(ends):
        x = op.Pad(x, [0, 0, *windows.padding, 0, 0, *ends])
    attributes["pads"] = (0,) * (2 * windows.spatial)
    attributes["ceil_mode"] = None
    y = op.AveragePool(x, **attributes)
    factor = math.prod(windows.kernel) / divisor
    return y if factor == 1 else op.Mul(y, factor)


def _average_of_integers(
    op: Builder, x: Value, windows: _Windows, count_include_pad: bool, divisor: int | None
) -> Value:
    """Sums over a Gather of the windows, by how many elements count; cut off towards zero."""
    ends, counts = windows.ends(), op.out.dims[-windows.spatial :]
    sizes = sizes_of(x)[2:]
    y = op.Pad(x, [0, 0, *windows.padding, 0, 0, *ends]) if any(ends) else x
    number: Any = math.prod(windows.kernel) if divisor is None else divisor
    varied = divisor is None and any(ends)
    for i, size in enumerate(sizes):
        kernel, padding = windows.kernel[i], windows.padding[i]
        index = places(op, counts[i], kernel, 1, windows.stride[i])
        y = op.ReduceSum(op.Gather(y, index, axis=2 + i), [3 + i], keepdims=0)
        if varied:
            low, high = (0, size + 2 * padding) if count_include_pad else (padding, size + padding)
            begin, end = op.ReduceMin(index, [1]), op.Add(op.ReduceMax(index, [1]), 1)
            length = op.Sub(op.Min(end, op.size(high)), op.Max(begin, low))
            length = op.reshape(length, (counts[i], *[1] * (windows.spatial - 1 - i)))
            number = length if i == 0 else op.Mul(number, length)
    return op.Div(y, number)


@table.translate(aten.avg_pool1d.default)
def avg_pool1d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """AveragePool."""
    return _avg_pool(op, self, _Windows(1, kernel_size, stride, padding, 1, ceil_mode), count_include_pad)


@table.translate(aten.avg_pool2d.default)
def avg_pool2d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """AveragePool."""
    windows = _Windows(2, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool(op, self, windows, count_include_pad, divisor_override)


@table.translate(aten.avg_pool3d.default)
def avg_pool3d(
    op: Builder,
    self: Value,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Any = (0, 0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """AveragePool."""
    windows = _Windows(3, kernel_size, stride, padding, 1, ceil_mode)
    return _avg_pool(op, self, windows, count_include_pad, divisor_override)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def one(spatial: int, *more: Any) -> Callable[[], tuple[Any, ...]]:
        return lambda: (torch.randn(2, 3, *(7, 6, 8)[:spatial]), *more)

    greatest = (aten.max_pool1d, aten.max_pool2d, aten.max_pool3d)
    indexed = (aten.max_pool1d_with_indices, aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
    average = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)
    found = []
    for n in (1, 2, 3):
        kernel, stride, padding = [3] * n, [2] * n, [1] * n
        for packets in (greatest, indexed):
            found.append(OpSample(packets[n - 1].default, one(n, kernel, stride, padding)))
            found.append(OpSample(packets[n - 1].default, one(n, [2] * n, stride, padding, [1] * n, True)))
        found.append(OpSample(average[n - 1].default, one(n, kernel, stride, padding)))
        found.append(OpSample(average[n - 1].default, one(n, kernel, stride, padding, True, False)))
    found.append(OpSample(aten.avg_pool2d.default, one(2, [3, 3], [2, 2], [1, 1], True, True, 5)))
    return found
