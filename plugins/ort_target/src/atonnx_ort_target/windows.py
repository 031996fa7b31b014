"""Convolution, pooling and normalization of doubles, by slices, one for each place in the window.

A slice takes every number that one place of the window meets, so sizes may be dynamic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx_ort_target.rows import Rows

rows = Rows()
D = ir.DataType

_MOST = 1024  # places in a window; a graph of more slices is of no use
_END = 2**62  # behind the end of any axis

Ints = Sequence[int]


def _power(op: Builder, x: Value, exponent: float) -> Value:
    """Pow, whose exponent would be a float of its own."""
    return op.Pow(x, op.const(float(exponent), x.dtype))


def _padded(op: Builder, x: Value, before: Ints, after: Ints, value: float = 0.0) -> Value:
    """``x`` with more numbers at the spatial axes, or fewer."""
    if not any(before) and not any(after):
        return x
    pads = [0, 0, *before, 0, 0, *after]
    return op.Pad(x, pads, op.const(value, x.dtype))


def _place(
    op: Builder, x: Value, axes: Ints, place: Ints, kernel: Ints, strides: Ints, dilations: Ints
) -> Value:
    """The numbers that one place of a window meets."""
    starts, ends = [], []
    for at, size, dilation in zip(place, kernel, dilations, strict=True):
        left = (size - 1 - at) * dilation
        starts.append(at * dilation)
        ends.append(-left if left else _END)
    if not any(starts) and all(end == _END for end in ends) and all(s == 1 for s in strides):
        return x
    return op.Slice(x, starts, ends, list(axes), list(strides))


def _convolved(
    op: Builder, x: Value, w: Value, b: Value | None, sizes: Ints, strides: Ints, dilations: Ints, group: int
) -> Value:
    """The product of all windows of ``x`` with ``w``, of sizes (outputs, inputs of a group, kernel)."""
    channels, inputs, *kernel = sizes
    rank = len(kernel)
    first = 2  # the first spatial axis
    if group > 1:
        whole = op.Shape(x)
        shape = op.Concat(op.Slice(whole, [0], [1]), [group, inputs], op.Slice(whole, [2], [_END]), axis=0)
        x = op.Reshape(x, shape, allowzero=1)
        first = 3
    axes = list(range(first, first + rank))
    places = [
        _place(op, x, axes, place, kernel, strides, dilations)
        for place in itertools.product(*map(range, kernel))
    ]
    columns = places[0] if len(places) == 1 else op.Concat(*places, axis=first - 1)
    columns = op.Transpose(columns, perm=[*range(first - 1), *axes, first - 1])
    # (group, places * inputs, outputs of a group), the order of the columns.
    count = len(places)
    flat = op.Reshape(w, [group, channels // group, inputs, count])
    flat = op.Reshape(op.Transpose(flat, perm=[0, 3, 2, 1]), [group, count * inputs, channels // group])
    ones = [1] * (rank - 1) if group > 1 else []
    shape = [*([group] if group > 1 else []), *ones, count * inputs, channels // group]
    made = op.MatMul(columns, op.Reshape(flat, shape))
    made = op.Transpose(made, perm=[*range(first - 1), first + rank - 1, *range(first - 1, first + rank - 1)])
    if group > 1:
        whole = op.Shape(made)
        shape = op.Concat(op.Slice(whole, [0], [1]), [channels], op.Slice(whole, [3], [_END]), axis=0)
        made = op.Reshape(made, shape, allowzero=1)
    return made if b is None else op.Add(made, op.Reshape(b, [channels, *[1] * rank]))


def _known(w: Value, auto_pad: str) -> tuple[int, ...] | None:
    dims = w.dims
    if auto_pad != "NOTSET" or dims is None or not all(isinstance(d, int) and d for d in dims):
        return None
    sizes = tuple(d for d in dims if isinstance(d, int))
    return sizes if len(sizes) > 2 and math.prod(sizes[2:]) <= _MOST else None


@rows.on("Conv", D.DOUBLE)
def conv(
    op: Builder,
    x: Value,
    w: Value,
    b: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """One MatMul with all places of the windows."""
    sizes = _known(w, auto_pad)
    if sizes is None:
        return NotImplemented
    rank = len(sizes) - 2
    pads = pads or [0] * (2 * rank)
    x = _padded(op, x, pads[:rank], pads[rank:])
    return _convolved(op, x, w, b, sizes, strides or [1] * rank, dilations or [1] * rank, group)


@rows.on("ConvTranspose", D.DOUBLE)
def conv_transpose(
    op: Builder,
    x: Value,
    w: Value,
    b: Value | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Ints | None = None,
    group: int = 1,
    kernel_shape: Ints | None = None,
    output_padding: Ints | None = None,
    output_shape: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The convolution, with the kernel turned round, of the input with zeros between its numbers."""
    sizes = _known(w, auto_pad)
    if sizes is None or output_shape:
        return NotImplemented
    inputs, outputs, kernel = sizes[0], sizes[1], sizes[2:]
    rank = len(kernel)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads, more = pads or [0] * (2 * rank), output_padding or [0] * rank
    if any(stride > 1 for stride in strides):
        wanted = op.Mul(op.Shape(x), [1, 1, *strides])
        x = op.Unsqueeze(x, [3 + 2 * i for i in range(rank)])
        after = [0, 0, *itertools.chain.from_iterable((0, stride - 1) for stride in strides)]
        x = op.Pad(x, [*[0] * len(after), *after], op.const(0.0, x.dtype))
        x = op.Reshape(x, wanted, allowzero=1)
    reach = [dilation * (size - 1) for dilation, size in zip(dilations, kernel, strict=True)]
    before = [far - pad for far, pad in zip(reach, pads[:rank], strict=True)]
    after = [reach[i] - pads[rank + i] + more[i] - (strides[i] - 1) for i in range(rank)]
    x = _padded(op, x, before, after)
    w = op.Reshape(w, [group, inputs // group, outputs, *kernel])
    w = op.Transpose(w, perm=[0, 2, 1, *range(3, 3 + rank)])
    w = op.Reshape(w, [group * outputs, inputs // group, *kernel])
    if any(size > 1 for size in kernel):
        w = op.Slice(w, [-1] * rank, [-_END] * rank, list(range(2, 2 + rank)), [-1] * rank)
    sizes = (group * outputs, inputs // group, *kernel)
    return _convolved(op, x, w, b, sizes, [1] * rank, dilations, group)


def _summed(op: Builder, x: Value, kernel: Ints, strides: Ints, dilations: Ints) -> Value:
    """The sums over windows, axis by axis."""
    for i, size in enumerate(kernel):
        axis = [2 + i]
        steps = strides[i : i + 1]
        parts = [_place(op, x, axis, [at], [size], steps, dilations[i : i + 1]) for at in range(size)]
        x = parts[0] if len(parts) == 1 else op.Sum(*parts)
    return x


def _after(kernel: Ints, strides: Ints, dilations: Ints, pads: Ints, ceil_mode: int) -> list[int]:
    """How far the last windows may reach behind the input; none may begin there."""
    rank = len(kernel)
    ends = list(pads[rank:])
    if not ceil_mode:
        return ends
    return [min(ends[i] + strides[i] - 1, dilations[i] * (kernel[i] - 1)) for i in range(rank)]


@rows.on("AveragePool", D.DOUBLE)
def average_pool(
    op: Builder,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Ints | None = None,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The sum over each window by how many numbers there are in it."""
    rank = len(kernel_shape)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads or [0] * (2 * rank)
    if auto_pad != "NOTSET" or sum(kernel_shape) > _MOST:
        return NotImplemented
    after = _after(kernel_shape, strides, dilations, pads, ceil_mode)
    made = _summed(op, _padded(op, x, pads[:rank], after), kernel_shape, strides, dilations)
    more = [end - pad for end, pad in zip(after, pads[rank:], strict=True)]
    if not any(more) and (count_include_pad or not any(pads)):
        return op.Div(made, float(math.prod(kernel_shape)))
    ones = op.Expand(op.const(1.0, x.dtype), op.Concat([1, 1], op.Slice(op.Shape(x), [2], [_END]), axis=0))
    if count_include_pad:
        ones = _padded(op, _padded(op, ones, pads[:rank], pads[rank:], 1.0), [0] * rank, more)
    else:
        ones = _padded(op, ones, pads[:rank], after)
    return op.Div(made, _summed(op, ones, kernel_shape, strides, dilations))


@rows.on("LpPool", D.DOUBLE)
def lp_pool(
    op: Builder,
    x: Value,
    *,
    kernel_shape: Ints,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Ints | None = None,
    p: int = 2,
    pads: Ints | None = None,
    strides: Ints | None = None,
) -> Any:
    """The root of the sum of powers over each window."""
    rank = len(kernel_shape)
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    pads = pads or [0] * (2 * rank)
    if auto_pad != "NOTSET" or sum(kernel_shape) > _MOST:
        return NotImplemented
    after = _after(kernel_shape, strides, dilations, pads, ceil_mode)
    powers = _power(op, op.Abs(x), p)
    made = _summed(op, _padded(op, powers, pads[:rank], after), kernel_shape, strides, dilations)
    return _power(op, made, 1 / p)


def _spatial(x: Value) -> list[int]:
    return list(range(2, x.rank))


@rows.on("GlobalAveragePool", D.DOUBLE)
def global_average_pool(op: Builder, x: Value) -> Value:
    """ReduceMean of the spatial axes."""
    return op.ReduceMean(x, _spatial(x))


@rows.on("GlobalMaxPool", D.DOUBLE)
def global_max_pool(op: Builder, x: Value) -> Value:
    """ReduceMax of the spatial axes."""
    return op.ReduceMax(x, _spatial(x))


@rows.on("GlobalLpPool", D.DOUBLE)
def global_lp_pool(op: Builder, x: Value, *, p: int = 2) -> Value:
    """The root of the sum of powers over the spatial axes."""
    return _power(op, op.ReduceSum(_power(op, op.Abs(x), p), _spatial(x)), 1 / p)


@rows.on("InstanceNormalization", D.DOUBLE)
def instance_normalization(
    op: Builder, x: Value, scale: Value, bias: Value, *, epsilon: float = 1e-5
) -> Value:
    """Mean and variance of the spatial axes."""
    axes = _spatial(x)
    centred = op.Sub(x, op.ReduceMean(x, axes))
    variance = op.ReduceMean(op.Mul(centred, centred), axes)
    made = op.Div(centred, op.Sqrt(op.Add(variance, epsilon)))
    shape = [-1, *[1] * len(axes)]
    return op.Add(op.Mul(made, op.Reshape(scale, shape)), op.Reshape(bias, shape))


@rows.on("LRN", D.DOUBLE)
def local_response(
    op: Builder, x: Value, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Value:
    """The sum of squares over near channels."""
    rest = [0] * (x.rank - 2)
    before = (size - 1) // 2
    squares = op.Pad(op.Mul(x, x), [0, before, *rest, 0, size - 1 - before, *rest], op.const(0.0, x.dtype))
    parts = [_place(op, squares, [1], [at], [size], [1], [1]) for at in range(size)]
    total = op.Sum(*parts) if len(parts) > 1 else parts[0]
    return op.Div(x, _power(op, op.Add(op.Mul(total, alpha / size), bias), beta))
