"""Fractional maximum pooling: windows of one size that begin at places drawn for each channel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx_aten_nn._common import HALVES, D, batched, sizes_of, used

aten = torch.ops.aten
table = Table(__name__)


def _begins(op: Builder, sample: Value, size: Any, count: int, kernel: int) -> Value:
    """Where the windows along one axis begin, in each channel: (N, C, count)."""
    last = op.size(size - kernel)
    if count == 1:
        return op.expand(last, (*sizes_of(sample)[:2], 1))
    dtype = sample.dtype
    alpha = op.Div(op.cast(last, dtype), op.const(count - 1, dtype))
    steps = op.const(np.arange(count - 1), D.INT64)
    ahead = op.cast(op.Mul(op.Add(op.cast(steps, dtype), sample), alpha), D.INT64)
    begins = op.Sub(ahead, op.cast(op.Mul(sample, alpha), D.INT64))
    end = op.expand(op.Reshape(last, [1, 1, 1]), (*sizes_of(sample)[:2], 1))
    return op.Concat(begins, end, axis=2)


def _pooled(
    op: Builder, x: Value, kernel: Sequence[int], counts: Sequence[int], samples: Value
) -> tuple[Value, Value | None]:
    spatial = len(kernel)
    x, single = batched(op, x, spatial)
    planes, sizes = sizes_of(x)[:2], sizes_of(x)[2:]
    samples = op.cast(samples, D.FLOAT if samples.dtype in HALVES else samples.dtype)
    place: Value | None = None
    for axis in range(spatial):
        # Images draw the width's sample first, volumes that of the depth.
        number = spatial - 1 - axis if spatial == 2 else axis
        sample = op.Slice(samples, [number], [number + 1], [2])
        begins = _begins(op, sample, sizes[axis], counts[axis], kernel[axis])
        within = op.const(np.arange(kernel[axis]), D.INT64)
        at = op.Add(op.Unsqueeze(begins, [3]), within)
        shaped = [1] * (2 * spatial)
        shaped[axis], shaped[axis + spatial] = counts[axis], kernel[axis]
        at = op.Reshape(at, [0, 0, *shaped])
        if place is None:
            place = at
            continue
        place = op.Add(op.Mul(place, op.size(sizes[axis])), at)
    volume: Any = 1
    for size in sizes:
        volume = size * volume
    windows, area = math.prod(counts), math.prod(kernel)
    places = op.reshape(place, (*planes, windows * area))  # type: ignore[arg-type]
    rows = op.reshape(x, (*planes, volume))
    parts = op.reshape(op.GatherElements(rows, places, axis=2), (*planes, windows, area))
    result = op.reshape(op.ReduceMax(parts, [3], keepdims=0), (*planes, *counts))
    indices: Value | None = None
    if used(op, 1):
        first = op.ArgMax(parts, axis=3, keepdims=1)
        found = op.GatherElements(op.reshape(places, (*planes, windows, area)), first, axis=3)
        indices = op.reshape(found, (*planes, *counts))
    if single:
        return op.Squeeze(result, [0]), None if indices is None else op.Squeeze(indices, [0])
    return result, indices


@table.translate(aten.fractional_max_pool2d.default, aten.fractional_max_pool3d.default)
def fractional_max_pool(
    op: Builder, self: Value, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Value
) -> tuple[Value, Value | None]:
    """GatherElements of the windows and ReduceMax."""
    return _pooled(op, self, kernel_size, output_size, random_samples)


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def image() -> tuple[Any, ...]:
        return torch.randn(2, 3, 8, 9), [2, 3], [4, 5], torch.rand(2, 3, 2)

    def volume() -> tuple[Any, ...]:
        return torch.randn(3, 6, 5, 7), [2, 2, 3], [3, 1, 4], torch.rand(1, 3, 3)

    return [
        OpSample(aten.fractional_max_pool2d.default, image),
        OpSample(aten.fractional_max_pool3d.default, volume),
    ]
