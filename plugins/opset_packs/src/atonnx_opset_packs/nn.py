"""Convolution, pooling, matrix products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import fixed_size, known_ints, rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("MatMul", 9, 13)
pack.same("Gemm", 11, 13)
pack.same("Det", 11, 22)
pack.same("Conv", 11, 22)
pack.same("ConvTranspose", 11, 22)
pack.same("MaxPool", 11, 12, 22)
pack.same("AveragePool", 11, 19, 22)
pack.same("LpPool", 11, 18, 22)
pack.same("GlobalAveragePool", 1, 22)
pack.same("GlobalMaxPool", 1, 22)
pack.same("GlobalLpPool", 2, 22)
pack.same("MaxUnpool", 11, 22)
pack.same("MaxRoiPool", 1, 22)


@pack.below(18, "Col2Im")
def col2im(
    op: Builder,
    x: Value,
    image_shape: Value,
    block_shape: Value,
    *,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """ConvTranspose with a kernel that sends each of a block's numbers to its place."""
    image, block = known_ints(image_shape), known_ints(block_shape)
    channels = fixed_size(x, 1)
    if image is None or block is None or channels is None:
        raise refuse(op, "Col2Im of sizes computed by the model", 18)
    rank, area = len(image), int(np.prod(block))
    steps = list(strides or [1] * rank)
    spread = list(dilations or [1] * rank)
    around = list(pads or [0] * 2 * rank)
    room = [image[i] + around[i] + around[i + rank] - spread[i] * (block[i] - 1) - 1 for i in range(rank)]
    blocks = [room[i] // steps[i] + 1 for i in range(rank)]
    channels //= area
    batch = op.Mul(sizes(op, x, 0, 1), channels)
    tail = op.const([area, *blocks], ir.DataType.INT64)
    parted = op.Reshape(x, op.Concat(batch, tail, axis=0))
    kernel = op.const(np.eye(area).reshape(area, 1, *block).astype(x.dtype.numpy()))
    made = op.ConvTranspose(
        parted,
        kernel,
        dilations=spread,
        strides=steps,
        pads=around,
        output_padding=[room[i] % steps[i] for i in range(rank)],
        kernel_shape=block,
    )
    whole = op.Concat(sizes(op, x, 0, 1), op.const([channels, *image], ir.DataType.INT64), axis=0)
    return op.Reshape(made, whole)


def _window_of_ones(
    op: Builder, x: Value, kernel: Sequence[int], rank: int, **attributes: Sequence[int] | str | None
) -> Value:
    weight = op.const(np.ones((1, 1, *kernel), x.dtype.numpy()))
    return op.Conv(x, weight, kernel_shape=list(kernel), **attributes)


@pack.below(19, "AveragePool")
def average_pool(
    op: Builder,
    x: Value,
    *,
    kernel_shape: Sequence[int],
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sequence[int] | None = None,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """AveragePool; with gaps in its window a Conv of ones over each channel, by the numbers in it."""
    if dilations is None or all(step == 1 for step in dilations):
        return op.at(11).AveragePool(
            x,
            kernel_shape=kernel_shape,
            auto_pad=auto_pad,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            pads=pads,
            strides=strides,
        )
    if ceil_mode:
        raise refuse(op, "AveragePool with dilations and ceil_mode", 19)
    rank = rank_of(op, x, "AveragePool", 19) - 2
    attributes = {
        "dilations": dilations,
        "pads": pads,
        "strides": strides,
        "auto_pad": auto_pad if auto_pad != "NOTSET" else None,
    }
    one = op.const([1], ir.DataType.INT64)
    planes = op.Mul(sizes(op, x, 0, 1), sizes(op, x, 1, 2))
    flat = op.Reshape(x, op.Concat(planes, one, sizes(op, x, 2), axis=0))
    total = _window_of_ones(op, flat, kernel_shape, rank, **attributes)
    if count_include_pad:
        mean = op.Div(total, int(np.prod(kernel_shape)))
    else:
        ones = op.Expand(op.const(1, x.dtype), op.Concat(one, one, sizes(op, x, 2), axis=0))
        mean = op.Div(total, _window_of_ones(op, ones, kernel_shape, rank, **attributes))
    return op.Reshape(mean, op.Concat(sizes(op, x, 0, 2), op.Shape(mean, start=2), axis=0))
