"""Images taken apart into windows, and put together from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import D, filled, sizes_of
from atonnx_aten_nn._windows import unfolded

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.col2im.default)
def col2im(
    op: Builder,
    self: Value,
    output_size: Sequence[Any],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """Col2Im; ScatterND of float64, which runtimes lack, and of dynamic sizes before opset 18."""
    fixed = all(isinstance(size, int) for size in (*output_size, sizes_of(self)[-2]))
    if self.dtype == D.DOUBLE or (op.opset < 18 and not fixed):
        return op.decompose()
    single = self.rank == 2
    x = op.Unsqueeze(self, [0]) if single else self
    image = op.Col2Im(
        x,
        op.shape(output_size),
        op.const(list(kernel_size), D.INT64),
        dilations=dilation,
        pads=[*padding, *padding],
        strides=stride,
    )
    return op.Squeeze(image, [0]) if single else image


@table.translate(aten.im2col.default)
def im2col(
    op: Builder,
    self: Value,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Value:
    """Gather of the windows along each axis."""
    x = self if self.rank == 4 else op.Unsqueeze(self, [0])
    if any(padding):
        x = op.Pad(x, [*padding, *padding], None, [2, 3])
    counts = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, p, d, k, s in zip(sizes_of(self)[-2:], padding, dilation, kernel_size, stride, strict=True)
    ]
    x = unfolded(op, x, counts, kernel_size, dilation, stride)
    return op.reshape(op.Transpose(x, perm=[0, 1, 3, 5, 2, 4]), op.out.dims)


@table.translate(aten.max_unpool2d.default)
def max_unpool2d(op: Builder, self: Value, indices: Value, output_size: Sequence[Any]) -> Value:
    """ScatterElements into zeros."""
    return _unpooled(op, self, indices, 2)


@table.translate(aten.max_unpool3d.default)
def max_unpool3d(
    op: Builder,
    self: Value,
    indices: Value,
    output_size: Sequence[Any],
    stride: Sequence[int],
    padding: Sequence[int],
) -> Value:
    """ScatterElements into zeros."""
    return _unpooled(op, self, indices, 3)


def _product(sizes: Sequence[Any]) -> Any:
    found: Any = 1
    for size in sizes:
        found = size * found
    return found


def _unpooled(op: Builder, x: Value, indices: Value, spatial: int) -> Value:
    planes, image = op.out.dims[:-spatial], op.out.dims[-spatial:]
    area = _product(sizes_of(x)[-spatial:])
    zeros = filled(op, 0, (*planes, _product(image)), x.dtype)
    flat, places = (op.reshape(value, (*planes, area)) for value in (x, indices))
    return op.reshape(op.ScatterElements(zeros, places, flat, axis=len(planes)), op.out.dims)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    one = [1, 1]

    def places(spatial: int) -> torch.Tensor:
        return torch.arange(6).reshape(1, 2, 3, *[1] * (spatial - 1)) * 2

    return [
        OpSample(aten.im2col.default, lambda: (torch.randn(2, 3, 5, 6), [2, 3], one, [1, 0], [2, 1])),
        OpSample(aten.max_unpool2d.default, lambda: (torch.randn(1, 2, 3, 1), places(2), [4, 5])),
        OpSample(
            aten.max_unpool3d.default,
            lambda: (torch.randn(1, 2, 3, 1, 1), places(3), [3, 2, 2], [1, 2, 2], [0, 0, 0]),
        ),
        OpSample(
            aten.col2im.default,
            lambda: (torch.randn(2, 12, 12), [4, 5], [2, 2], one, [0, 0], one),
            expect="Col2Im:1!",
            opsets=18,
        ),
        OpSample(
            aten.col2im.default, lambda: (torch.randn(8, 9), [5, 5], [2, 2], one, [1, 1], [2, 2]), opsets=18
        ),
    ]
