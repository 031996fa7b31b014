"""Convolutions, plain and transposed, of one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import FLOATS, batched, computed, known, sizes_of, spread, static
from atonnx_aten_nn._windows import unfolded

aten = torch.ops.aten
table = Table(__name__)

Sizes = Sequence[Any]


def _of_integers(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    pads: Sizes,
    dilation: Sizes,
    groups: int,
) -> Value:
    """MatMul of the weights and the windows, which Gather takes apart: Conv has no integers."""
    spatial = len(stride)
    wide = computed(x.dtype)
    kernel = [known(op, size, "kernel size of integers") for size in sizes_of(weight)[2:]]
    batch, channels = sizes_of(x)[:2]
    outputs, counts = sizes_of(weight)[0], op.out.dims[-spatial:]
    depth = channels // groups * math.prod(kernel)
    parts = op.cast(x, wide)
    if any(pads):
        parts = op.Pad(parts, [0, 0, *pads[:spatial], 0, 0, *pads[spatial:]])
    parts = unfolded(op, parts, counts, kernel, dilation, stride)
    perm = [0, 1, *range(3, 2 + 2 * spatial, 2), *range(2, 2 + 2 * spatial, 2)]
    area: Any = 1
    for count in counts:
        area = count * area
    parts = op.reshape(op.Transpose(parts, perm=perm), (batch, groups, depth, area))
    rows = op.reshape(op.cast(weight, wide), (groups, outputs // groups, depth))
    y = op.reshape(op.MatMul(rows, parts), (batch, outputs, *counts))
    if bias is not None:
        y = op.Add(y, op.Unsqueeze(op.cast(bias, wide), list(range(1, 1 + spatial))))
    return op.cast(y, x.dtype)


def _transposed_of_integers(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Value:
    """A plain convolution of the input with zeros between its elements, by the weights mirrored."""
    spatial = len(stride)
    batch, channels, *sizes = sizes_of(x)
    kernel = [known(op, size, "kernel size of integers") for size in sizes_of(weight)[2:]]
    if any(s > 1 for s in stride):
        apart = [n for size in sizes for n in (size, 1)]
        ends = [n for s in stride for n in (0, s - 1)]
        x = op.Pad(op.reshape(x, (batch, channels, *apart)), [0] * (2 + 2 * spatial) + [0, 0, *ends])
        x = op.reshape(x, (batch, channels, *(size * s for size, s in zip(sizes, stride, strict=True))))
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    begins = [r - p for r, p in zip(reach, padding, strict=True)]
    ends = [b + o - s + 1 for b, o, s in zip(begins, output_padding, stride, strict=True)]
    axes = list(range(2, 2 + spatial))
    mirrored = op.Slice(weight, [-1] * spatial, [-1 - (1 << 31)] * spatial, axes, [-1] * spatial)
    outputs = sizes_of(weight)[1]
    mirrored = op.reshape(mirrored, (groups, channels // groups, outputs, *kernel))
    mirrored = op.Transpose(mirrored, perm=[0, 2, 1, *range(3, 3 + spatial)])
    mirrored = op.reshape(mirrored, (groups * outputs, channels // groups, *kernel))
    return _of_integers(op, x, mirrored, bias, (1,) * spatial, (*begins, *ends), dilation, groups)


def convolve(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: Any,
) -> Value:
    """Conv; ``padding`` has one entry an axis, or all begins and then all ends."""
    spatial = weight.rank - 2
    x, single = batched(op, x, spatial)
    pads = spread(padding, spatial)
    pads = pads if len(pads) == 2 * spatial else pads * 2
    if not all(isinstance(p, int) for p in pads):
        x = op.Pad(x, op.shape([0, 0, *pads[:spatial], 0, 0, *pads[spatial:]]))
        pads = (0,) * (2 * spatial)
    strides, dilations = static(op, stride, spatial, "stride"), static(op, dilation, spatial, "dilation")
    group = known(op, groups, "number of groups")
    if x.dtype not in FLOATS:
        y = _of_integers(op, x, weight, bias, strides, pads, dilations, group)
        return op.Squeeze(y, [0]) if single else y
    kernel = sizes_of(weight)[2:]
    y = op.Conv(
        x,
        weight,
        bias,
        kernel_shape=list(kernel) if all(isinstance(k, int) for k in kernel) else None,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
    )
    return op.Squeeze(y, [0]) if single else y


def deconvolve(
    op: Builder,
    x: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: Any,
    dilation: Sizes,
) -> Value:
    """ConvTranspose."""
    spatial = weight.rank - 2
    x, single = batched(op, x, spatial)
    more = static(op, output_padding, spatial, "output_padding")
    strides, dilations = static(op, stride, spatial, "stride"), static(op, dilation, spatial, "dilation")
    pads = static(op, padding, spatial, "padding")
    group = known(op, groups, "number of groups")
    if x.dtype not in FLOATS:
        y = _transposed_of_integers(op, x, weight, bias, strides, pads, more, dilations, group)
        return op.Squeeze(y, [0]) if single else y
    kernel = sizes_of(weight)[2:]
    y = op.ConvTranspose(
        x,
        weight,
        bias,
        kernel_shape=list(kernel) if all(isinstance(k, int) for k in kernel) else None,
        strides=strides,
        pads=pads * 2,
        output_padding=more if any(more) else None,
        dilations=dilations,
        group=group,
    )
    return op.Squeeze(y, [0]) if single else y


def _named(op: Builder, weight: Value, padding: str, dilation: Sizes) -> Sizes:
    """The pads that ``padding="same"`` and ``"valid"`` mean; an odd total has its rest at the end."""
    spatial = weight.rank - 2
    if padding == "valid":
        return (0,) * spatial
    steps = static(op, dilation, spatial, "dilation")
    total = [(size - 1) * step for size, step in zip(sizes_of(weight)[2:], steps, strict=True)]
    begin = [t // 2 for t in total]
    return (*begin, *(t - b for t, b in zip(total, begin, strict=True)))


@table.translate(aten.conv1d.default)
def conv1d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1,),
    padding: Sizes = (0,),
    dilation: Sizes = (1,),
    groups: Any = 1,
) -> Value:
    """Conv."""
    return convolve(op, input, weight, bias, stride, padding, dilation, groups)


@table.translate(aten.conv2d.default)
def conv2d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1),
    padding: Sizes = (0, 0),
    dilation: Sizes = (1, 1),
    groups: Any = 1,
) -> Value:
    """Conv."""
    return convolve(op, input, weight, bias, stride, padding, dilation, groups)


@table.translate(aten.conv3d.default)
def conv3d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1, 1),
    padding: Sizes = (0, 0, 0),
    dilation: Sizes = (1, 1, 1),
    groups: Any = 1,
) -> Value:
    """Conv."""
    return convolve(op, input, weight, bias, stride, padding, dilation, groups)


@table.translate(aten.conv1d.padding)
def conv1d_padding(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1,),
    padding: str = "valid",
    dilation: Sizes = (1,),
    groups: Any = 1,
) -> Value:
    """Conv, the pads spelled out."""
    pads = _named(op, weight, padding, dilation)
    return convolve(op, input, weight, bias, stride, pads, dilation, groups)


@table.translate(aten.conv2d.padding)
def conv2d_padding(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1),
    padding: str = "valid",
    dilation: Sizes = (1, 1),
    groups: Any = 1,
) -> Value:
    """Conv, the pads spelled out."""
    pads = _named(op, weight, padding, dilation)
    return convolve(op, input, weight, bias, stride, pads, dilation, groups)


@table.translate(aten.conv3d.padding)
def conv3d_padding(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1, 1),
    padding: str = "valid",
    dilation: Sizes = (1, 1, 1),
    groups: Any = 1,
) -> Value:
    """Conv, the pads spelled out."""
    pads = _named(op, weight, padding, dilation)
    return convolve(op, input, weight, bias, stride, pads, dilation, groups)


@table.translate(aten.conv_transpose1d.default)
def conv_transpose1d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1,),
    padding: Sizes = (0,),
    output_padding: Sizes = (0,),
    groups: Any = 1,
    dilation: Sizes = (1,),
) -> Value:
    """ConvTranspose."""
    return deconvolve(op, input, weight, bias, stride, padding, output_padding, groups, dilation)


@table.translate(aten.conv_transpose2d.input)
def conv_transpose2d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1),
    padding: Sizes = (0, 0),
    output_padding: Sizes = (0, 0),
    groups: Any = 1,
    dilation: Sizes = (1, 1),
) -> Value:
    """ConvTranspose."""
    return deconvolve(op, input, weight, bias, stride, padding, output_padding, groups, dilation)


@table.translate(aten.conv_transpose3d.input)
def conv_transpose3d(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Sizes = (1, 1, 1),
    padding: Sizes = (0, 0, 0),
    output_padding: Sizes = (0, 0, 0),
    groups: Any = 1,
    dilation: Sizes = (1, 1, 1),
) -> Value:
    """ConvTranspose."""
    return deconvolve(op, input, weight, bias, stride, padding, output_padding, groups, dilation)


@table.translate(aten.slow_conv_transpose2d.default)
def slow_conv_transpose2d(
    op: Builder,
    self: Value,
    weight: Value,
    kernel_size: Sizes,
    bias: Value | None = None,
    stride: Sizes = (1, 1),
    padding: Sizes = (0, 0),
    output_padding: Sizes = (0, 0),
    dilation: Sizes = (1, 1),
) -> Value:
    """ConvTranspose."""
    return deconvolve(op, self, weight, bias, stride, padding, output_padding, 1, dilation)


@table.translate(aten.conv_tbc.default)
def conv_tbc(op: Builder, self: Value, weight: Value, bias: Value, pad: int = 0) -> Value:
    """Conv between Transposes: time comes first, and channels last."""
    x, kernel = op.Transpose(self, perm=[1, 2, 0]), op.Transpose(weight, perm=[2, 1, 0])
    return op.Transpose(convolve(op, x, kernel, bias, (1,), (pad,), (1,), 1), perm=[2, 0, 1])


@table.translate(aten.convolution.default)
def convolution(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: Any,
) -> Value:
    """Conv or ConvTranspose."""
    if transposed:
        return deconvolve(op, input, weight, bias, stride, padding, output_padding, groups, dilation)
    return convolve(op, input, weight, bias, stride, padding, dilation, groups)


@table.translate(aten._convolution.default)
def convolution_with_flags(
    op: Builder,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: Any,
    benchmark: bool,
    deterministic: bool,
    cudnn_enabled: bool,
    allow_tf32: bool,
) -> Value:
    """Conv or ConvTranspose; the flags choose torch's kernel only."""
    return convolution(op, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample, Weight

    def one(spatial: int, *more: Any, channels: tuple[int, int] = (4, 2)) -> Callable[[], tuple[Any, ...]]:
        out, each = channels
        return lambda: (
            torch.randn(2, 4, *(6, 7, 5)[:spatial]),
            Weight(torch.randn(out, each, *(3, 2, 3)[:spatial])),
            Weight(torch.randn(4)),
            *more,
        )

    plain = ((aten.conv1d, 1), (aten.conv2d, 2), (aten.conv3d, 3))
    transposed = (
        (aten.conv_transpose1d.default, 1),
        (aten.conv_transpose2d.input, 2),
        (aten.conv_transpose3d.input, 3),
    )
    sequence = (torch.randn(6, 2, 4), Weight(torch.randn(3, 4, 5)), Weight(torch.randn(5)), 1)
    core = ([2, 1], [1, 1], [1, 2])
    return [
        *(OpSample(o.default, one(n, [2] * n, [1] * n, [1] * n, 2), expect="Conv:1!") for o, n in plain),
        *(OpSample(o.padding, one(n, [1] * n, "same", [1] * n, 2), expect="Conv:1!") for o, n in plain),
        *(OpSample(o, one(n, [2] * n, [1] * n, [1] * n, 2)) for o, n in transposed),
        OpSample(aten.conv_tbc.default, lambda: sequence, expect="Conv:1"),
        OpSample(
            aten.slow_conv_transpose2d.default,
            lambda: (torch.randn(1, 4, 5, 6), Weight(torch.randn(4, 2, 3, 2)), [3, 2], None, [2, 1]),
        ),
        OpSample(aten.convolution.default, one(2, *core, False, [0, 0], 2), expect="Conv:1!"),
        OpSample(aten.convolution.default, one(2, *core, True, [1, 0], 2), expect="ConvTranspose:1!"),
        OpSample(
            aten._convolution.default,
            one(2, *core, False, [0, 0], 2, False, False, False, False),
            expect="Conv:1!",
        ),
    ]
