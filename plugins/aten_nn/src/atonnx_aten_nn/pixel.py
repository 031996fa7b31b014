"""Channels into space and back."""

from __future__ import annotations

from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import FLOATS, sizes_of

aten = torch.ops.aten
table = Table(__name__)


@table.translate(aten.pixel_shuffle.default)
def pixel_shuffle(op: Builder, self: Value, upscale_factor: int) -> Value:
    """DepthToSpace; Reshape and Transpose of integers, which runtimes move in no other way."""
    *batch, channels, height, width = sizes_of(self)
    r, axes = upscale_factor, len(batch)
    if self.dtype not in FLOATS:
        parted = op.reshape(self, (*batch, channels // (r * r), r, r, height, width))
        perm = [*range(axes), axes, axes + 3, axes + 1, axes + 4, axes + 2]
        return op.reshape(op.Transpose(parted, perm=perm), op.out.dims)
    x = self
    if len(batch) != 1:
        planes: Any = 1
        for size in batch:
            planes = size * planes
        x = op.reshape(self, (planes, channels, height, width))
    made = op.DepthToSpace(x, blocksize=r, mode="CRD")
    return made if len(batch) == 1 else op.reshape(made, op.out.dims)


@table.translate(aten.pixel_unshuffle.default)
def pixel_unshuffle(op: Builder, self: Value, downscale_factor: int) -> Value:
    """SpaceToDepth, of each channel apart where it cannot keep torch's order of channels."""
    *batch, channels, height, width = sizes_of(self)
    r, axes = downscale_factor, len(batch)
    if self.dtype not in FLOATS:
        parted = op.reshape(self, (*batch, channels, height // r, r, width // r, r))
        perm = [*range(axes), axes, axes + 2, axes + 4, axes + 1, axes + 3]
        return op.reshape(op.Transpose(parted, perm=perm), op.out.dims)
    if len(batch) == 1 and (channels == 1 or op.opset >= 28):
        return op.SpaceToDepth(self, blocksize=r, mode=None if channels == 1 else "CRD")
    planes: Any = channels
    for size in batch:
        planes = size * planes
    apart = op.reshape(self, (planes, 1, height, width))
    return op.reshape(op.SpaceToDepth(apart, blocksize=r), op.out.dims)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    return [
        OpSample(aten.pixel_shuffle.default, lambda: (torch.randn(2, 8, 3, 4), 2), expect="DepthToSpace:1!"),
        OpSample(aten.pixel_shuffle.default, lambda: (torch.randn(8, 3, 4), 2)),
        OpSample(aten.pixel_unshuffle.default, lambda: (torch.randn(2, 1, 6, 4), 2), expect="SpaceToDepth:1"),
        OpSample(aten.pixel_unshuffle.default, lambda: (torch.randn(2, 3, 6, 4), 2)),
    ]
