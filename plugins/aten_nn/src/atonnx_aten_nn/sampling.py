"""Sampling at places that the model computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from atonnx.build import Builder, Value
from atonnx.dispatch import Table
from atonnx.errors import UnsupportedOpError

aten = torch.ops.aten
table = Table(__name__)

_MODES = ("linear", "nearest", "cubic")
_PADDING = ("zeros", "border", "reflection")


@table.translate(
    aten.grid_sampler.default,
    aten.grid_sampler_2d.default,
    aten.grid_sampler_3d.default,
    aten._grid_sampler_2d_cpu_fallback.default,
)
def grid_sampler(
    op: Builder,
    input: Value,
    grid: Value,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> Value:
    """GridSample."""
    if not 0 <= interpolation_mode < len(_MODES) or not 0 <= padding_mode < len(_PADDING):
        raise UnsupportedOpError.here(
            op,
            f"sampling by mode {interpolation_mode} and padding {padding_mode}",
            hint="modes and paddings are 0, 1 and 2",
        )
    return op.GridSample(
        input,
        grid,
        mode=_MODES[interpolation_mode],
        padding_mode=_PADDING[padding_mode],
        align_corners=int(align_corners),
    )


@table.translate(aten.affine_grid_generator.default)
def affine_grid_generator(op: Builder, theta: Value, size: Sequence[Any], align_corners: bool) -> Value:
    """AffineGrid; the sum over the axes where corners are aligned and there may be one place only.

    That place is in the middle for torch, and nowhere in particular for ONNX.
    """
    if align_corners and not all(_several(op, length) for length in size[2:]):
        return _grid(op, theta, size[2:])
    return op.AffineGrid(theta, op.shape(size), align_corners=int(align_corners))


def _several(op: Builder, length: Any) -> bool:
    if isinstance(length, int):
        return length > 1
    bounds = op.session.facts.bounds(length.expr)
    return bounds is not None and bool(bounds[0] > 1)


def _grid(op: Builder, theta: Value, lengths: Sequence[Any]) -> Value:
    """Each axis's places from -1 to 1 by its column of theta, and the last column."""
    rank, dtype = len(lengths), theta.dtype
    one = op.const(1, dtype)
    around = list(range(1, rank + 1))
    columns = op.Split(theta, num_outputs=rank + 1, axis=2, outputs=rank + 1)
    columns = [op.Unsqueeze(op.Squeeze(column, [2]), around) for column in columns]
    result = columns[rank]
    for axis, length in enumerate(lengths):
        steps = op.cast(op.Range(0, op.size(length), 1), dtype)
        gaps = op.cast(op.size(length - 1), dtype)
        places = op.Sub(op.Div(op.Mul(steps, 2), op.Max(gaps, one)), 1)
        places = op.Where(op.Greater(gaps, 0), places, op.const(0, dtype))
        shaped = op.Unsqueeze(places, list(range(1, rank - axis + 1)))
        result = op.Add(result, op.Mul(shaped, columns[rank - 1 - axis]))
    return result


def samples() -> list[Any]:
    """A call of each row."""
    from atonnx.testing import OpSample

    def image() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(2, 3, 5, 6), torch.rand(2, 4, 3, 2) * 2.4 - 1.2

    def volume() -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(1, 2, 4, 5, 3), torch.rand(1, 3, 2, 4, 3) * 2.4 - 1.2

    two = (
        aten.grid_sampler.default,
        aten.grid_sampler_2d.default,
        aten._grid_sampler_2d_cpu_fallback.default,
    )
    return [
        *(OpSample(o, lambda: (*image(), 0, 0, False), expect="GridSample:1!", opsets=16) for o in two),
        # torch's kernel of the cubic mode takes half a minute to find the size of its result from symbols.
        OpSample(aten.grid_sampler_2d.default, lambda: (*image(), 2, 1, True), options={"dynamic": False}),
        OpSample(aten.grid_sampler_3d.default, lambda: (*volume(), 0, 0, False)),
        OpSample(aten.affine_grid_generator.default, lambda: (torch.randn(2, 2, 3), [2, 3, 1, 5], True)),
        OpSample(aten.affine_grid_generator.default, lambda: (torch.randn(2, 2, 3), [2, 3, 4, 5], False)),
    ]
