"""Convolutions, plain and transposed, of one to three spatial axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError
from atonnx_aten_nn._common import FLOATS, known, sizes_of, spread, static

aten = torch.ops.aten
table = Table(__name__)

Sizes = Sequence[Any]


def _batched(op: Builder, x: Value, spatial: int) -> tuple[Value, bool]:
    """``x`` with a batch axis, and whether it had none."""
    if x.rank == spatial + 1:
        return op.Unsqueeze(x, [0]), True
    return x, False


def _floating(op: Builder, *tensors: Value | None) -> None:
    if any(t is not None and t.dtype not in FLOATS for t in tensors):
        raise UnsupportedOpError.here(
            op, "convolution of integers", hint="cast input and weight to float before, and back after"
        )


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
    _floating(op, x, weight)
    spatial = weight.rank - 2
    x, single = _batched(op, x, spatial)
    pads = spread(padding, spatial)
    pads = pads if len(pads) == 2 * spatial else pads * 2
    if not all(isinstance(p, int) for p in pads):
        x = op.Pad(x, op.shape([0, 0, *pads[:spatial], 0, 0, *pads[spatial:]]))
        pads = (0,) * (2 * spatial)
    kernel = sizes_of(weight)[2:]
    y = op.Conv(
        x,
        weight,
        bias,
        kernel_shape=list(kernel) if all(isinstance(k, int) for k in kernel) else None,
        strides=static(op, stride, spatial, "stride"),
        pads=pads,
        dilations=static(op, dilation, spatial, "dilation"),
        group=known(op, groups, "number of groups"),
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
    _floating(op, x, weight)
    spatial = weight.rank - 2
    x, single = _batched(op, x, spatial)
    kernel = sizes_of(weight)[2:]
    more = static(op, output_padding, spatial, "output_padding")
    y = op.ConvTranspose(
        x,
        weight,
        bias,
        kernel_shape=list(kernel) if all(isinstance(k, int) for k in kernel) else None,
        strides=static(op, stride, spatial, "stride"),
        pads=static(op, padding, spatial, "padding") * 2,
        output_padding=more if any(more) else None,
        dilations=static(op, dilation, spatial, "dilation"),
        group=known(op, groups, "number of groups"),
    )
    return op.Squeeze(y, [0]) if single else y


def _named(op: Builder, weight: Value, padding: str, dilation: Sizes) -> Sizes:
    """The pads that ``padding="same"`` and ``"valid"`` mean; an odd total has its rest at the end."""
    spatial = weight.rank - 2
    if padding == "valid":
        return (0,) * spatial
    kernel = [known(op, size, "kernel size") for size in sizes_of(weight)[2:]]
    total = [d * (k - 1) for d, k in zip(static(op, dilation, spatial, "dilation"), kernel, strict=True)]
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
    core = ([2, 1], [1, 1], [1, 2])
    return [
        *(OpSample(o.default, one(n, [2] * n, [1] * n, [1] * n, 2), expect="Conv:1!") for o, n in plain),
        *(OpSample(o.padding, one(n, [1] * n, "same", [1] * n, 2), expect="Conv:1!") for o, n in plain),
        *(OpSample(o, one(n, [2] * n, [1] * n, [1] * n, 2)) for o, n in transposed),
        OpSample(aten.convolution.default, one(2, *core, False, [0, 0], 2), expect="Conv:1!"),
        OpSample(aten.convolution.default, one(2, *core, True, [1, 0], 2), expect="ConvTranspose:1!"),
        OpSample(
            aten._convolution.default,
            one(2, *core, False, [0, 0], 2, False, False, False, False),
            expect="Conv:1!",
        ),
    ]
