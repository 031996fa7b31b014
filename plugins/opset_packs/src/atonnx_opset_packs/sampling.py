"""Sampling at places that the model computes: grids and regions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import fixed_size, rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("GridSample", 20, 22)
pack.same("RoiAlign", 16, 22)
pack.same("DeformConv", 19, 22)

_INT64 = ir.DataType.INT64
_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


@pack.below(20, "GridSample")
def grid_sample_20(
    op: Builder,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "linear",
    padding_mode: str = "zeros",
) -> Value:
    """GridSample of images by its older mode names; spelled out for volumes."""
    if rank_of(op, x, "GridSample", 20) != 4:
        return _grid_sample(op, x, grid, align_corners, mode, padding_mode)
    return op.at(16).GridSample(
        x, grid, align_corners=align_corners, mode=_OLD_MODES[mode], padding_mode=padding_mode
    )


@pack.below(16, "GridSample")
def grid_sample_16(
    op: Builder,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Value:
    """Gathers of the neighbours of each place and their weighted sum."""
    return _grid_sample(op, x, grid, align_corners, mode.removeprefix("bi"), padding_mode)


@pack.above(16, "GridSample")
def grid_sample_up(
    op: Builder,
    x: Value,
    grid: Value,
    *,
    align_corners: int = 0,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
) -> Value:
    """GridSample by its newer mode names."""
    return op.GridSample(
        x, grid, align_corners=align_corners, mode=mode.removeprefix("bi"), padding_mode=padding_mode
    )


class _Axis:
    """Places along one axis of the input, its size, and what happens beyond its ends."""

    def __init__(self, op: Builder, x: Value, axis: int, padding: str, align: bool) -> None:
        self.op, self.padding, self.align = op, padding, align
        end = axis + 1 if axis + 1 < x.rank else None
        self.size = op.Squeeze(sizes(op, x, axis, end), [0])

    def place(self, at: Value) -> Value:
        """From -1..1 to places of the input."""
        op, size = self.op, self.op.cast(self.size, at.dtype)
        if self.align:
            return op.Mul(op.Div(op.Add(at, 1), 2), op.Sub(size, 1))
        return op.Div(op.Sub(op.Mul(op.Add(at, 1), size), 1), 2)

    def inside(self, at: Value) -> Value:
        """Places put back into the input, where the padding is not zeros."""
        op, last = self.op, self.op.Sub(self.op.cast(self.size, at.dtype), 1)
        if self.padding == "zeros":
            return at
        if self.padding == "reflection":
            low = op.const(0.0 if self.align else -0.5, at.dtype)
            span = last if self.align else op.Add(last, 1)
            away = op.Abs(op.Sub(at, low))
            # A span of nothing has one place, which clipping gives.
            turns = op.Div(away, op.Max(span, op.const(1e-6, at.dtype)))
            whole = op.Floor(turns)
            rest = op.Sub(away, op.Mul(whole, span))
            even = op.Equal(op.Mul(op.Floor(op.Div(whole, 2)), 2), whole)
            at = op.Add(op.Where(even, rest, op.Sub(span, rest)), low)
        return op.Max(op.Min(at, last), op.const(0, at.dtype))

    def index(self, at: Value) -> tuple[Value, Value | None]:
        """A whole place as an index that is safe to read, and whether it is in the input."""
        op = self.op
        there: Value | None = None
        if self.padding == "zeros":
            size = op.cast(self.size, at.dtype)
            there = op.And(op.GreaterOrEqual(at, 0), op.Less(at, size))
            at = op.Where(there, at, op.const(0, at.dtype))
        found = op.cast(self.inside(at), _INT64)
        return op.Max(op.Min(found, op.Sub(self.size, 1)), op.const(0, _INT64)), there


def _cubic(op: Builder, t: Value) -> list[Value]:
    """Weights of the four neighbours of a place ``t`` behind the second."""
    a = -0.75

    def near(d: Value) -> Value:
        return op.Add(op.Mul(op.Mul(op.Sub(op.Mul(d, a + 2), a + 3), d), d), 1)

    def far(d: Value) -> Value:
        return op.Mul(op.Sub(op.Mul(op.Add(op.Mul(op.Sub(d, 5), d), 8), d), 4), a)

    rest = op.Sub(1, t)
    return [far(op.Add(t, 1)), near(t), near(rest), far(op.Add(rest, 1))]


def _grid_sample(op: Builder, x: Value, grid: Value, align: int, mode: str, padding: str) -> Value:
    rank = rank_of(op, x, "GridSample", 16) - 2
    dtype = grid.dtype
    axes = [_Axis(op, x, axis + 2, padding, bool(align)) for axis in range(rank)]
    steps = op.Concat(sizes(op, x, 0, 1), op.const([1, -1], _INT64), axis=0)
    choices: list[list[tuple[Value, Value | None, Value | None]]] = []
    for number, axis in enumerate(axes):
        column = rank - 1 - number
        at = op.Slice(grid, [column], [column + 1], [-1])
        at = axis.place(op.Reshape(at, steps))
        if mode == "nearest":
            index, there = axis.index(axis.inside(op.Round(at)))
            choices.append([(index, there, None)])
            continue
        if mode == "linear":
            at = axis.inside(at)
        base = op.Floor(at)
        part = op.Sub(at, base)
        if mode == "linear":
            moves, weights = [0, 1], [op.Sub(1, part), part]
        else:
            moves, weights = [-1, 0, 1, 2], _cubic(op, part)
        found = []
        for move, weight in zip(moves, weights, strict=True):
            neighbour = base if not move else op.Add(base, op.const(move, dtype))
            found.append((*axis.index(neighbour), weight))
        choices.append(found)
    flat = op.Reshape(x, op.Concat(sizes(op, x, 0, 2), op.const([-1], _INT64), axis=0))
    total: Value | None = None
    for corner in itertools.product(*choices):
        term = _corner(op, flat, sizes(op, x, 1, 2), axes, corner)
        total = term if total is None else op.Add(total, term)
    spatial = sizes(op, grid, 1, rank + 1)
    return op.Reshape(total, op.Concat(sizes(op, x, 0, 2), spatial, axis=0))


def _corner(op: Builder, flat: Value, channels: Value, axes: Sequence[_Axis], corner: Any) -> Value:
    """What one neighbour of each place adds: ``flat`` is (batch, channels, places)."""
    index: Value | None = None
    weight: Value | None = None
    there: Value | None = None
    for axis, (at, inside, share) in zip(axes, corner, strict=True):
        index = at if index is None else op.Add(op.Mul(index, axis.size), at)
        if share is not None:
            weight = share if weight is None else op.Mul(weight, share)
        if inside is not None:
            there = inside if there is None else op.And(there, inside)
    one = op.const([1], _INT64)
    shape = op.Concat(one, channels, one, axis=0)
    value = op.GatherElements(flat, op.Expand(index, shape), axis=2)
    if there is not None:
        value = op.Where(there, value, op.const(0, flat.dtype))
    return value if weight is None else op.Mul(value, op.cast(weight, flat.dtype))


@pack.below(20, "AffineGrid")
def affine_grid(op: Builder, theta: Value, size: Value, *, align_corners: int = 0) -> Value:
    """The places of the output, from -1 to 1, by the product with theta."""
    length = fixed_size(size, 0)
    rank = fixed_size(theta, 1) if length is None else length - 2
    if rank is None:
        raise refuse(op, "AffineGrid of unknown rank", 20)
    dtype = theta.dtype
    size = op.cast(size, _INT64)
    spatial = op.Slice(size, [2], [2 + rank])
    columns = []
    for axis in range(rank):
        length = op.Squeeze(op.Slice(spatial, [axis], [axis + 1]), [0])
        steps = op.cast(op.Range(0, length, 1), dtype)
        count = op.cast(length, dtype)
        if align_corners:
            # One place lies in the middle.
            gaps = op.Max(op.Sub(count, 1), op.const(1, dtype))
            places = op.Where(
                op.Greater(count, 1), op.Sub(op.Div(op.Mul(steps, 2), gaps), 1), op.const(0, dtype)
            )
        else:
            places = op.Sub(op.Div(op.Add(op.Mul(steps, 2), 1), count), 1)
        tail = [*range(1, rank - axis), rank - axis]
        shaped = op.Unsqueeze(places, tail)
        columns.append(op.Expand(shaped, op.Concat(spatial, op.const([1], _INT64), axis=0)))
    ones = op.Expand(op.const(1, dtype), op.Concat(spatial, op.const([1], _INT64), axis=0))
    places = op.Concat(*reversed(columns), ones, axis=-1)
    flat = op.Reshape(places, [1, -1, rank + 1])
    product = op.MatMul(flat, op.Transpose(theta, perm=[0, 2, 1]))
    whole = op.Concat(op.Slice(size, [0], [1]), spatial, op.const([rank], _INT64), axis=0)
    return op.Reshape(product, whole)


@pack.below(16, "RoiAlign")
def roi_align(
    op: Builder,
    x: Value,
    rois: Value,
    batch: Value,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    **attributes: Any,
) -> Value:
    """RoiAlign, which did not move coordinates by half a pixel.

    Raises:
        UnsupportedOpError: it has to; moving the regions beforehand differs for those below one pixel.
    """
    if coordinate_transformation_mode != "output_half_pixel":
        raise refuse(op, f"RoiAlign with {coordinate_transformation_mode}", 16)
    return op.at(10).RoiAlign(x, rois, batch, **attributes)


@pack.above(10, "RoiAlign")
def roi_align_up(op: Builder, x: Value, rois: Value, batch: Value, **attributes: Any) -> Value:
    """RoiAlign that does not move coordinates by half a pixel."""
    mode = "output_half_pixel"
    return op.RoiAlign(x, rois, batch, coordinate_transformation_mode=mode, **attributes)


@pack.below(19, "DeformConv")
def deform_conv(
    op: Builder,
    x: Value,
    weight: Value,
    offset: Value,
    bias: Value | None = None,
    mask: Value | None = None,
    *,
    dilations: Sequence[int] | None = None,
    group: int = 1,
    kernel_shape: Sequence[int] | None = None,
    offset_group: int = 1,
    pads: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
) -> Value:
    """The numbers at the moved places of each window, and their product with the weights."""
    kernel = [fixed_size(weight, axis) for axis in (2, 3)] if kernel_shape is None else list(kernel_shape)
    channels, filters = fixed_size(x, 1), fixed_size(weight, 0)
    if rank_of(op, x, "DeformConv", 19) != 4 or None in (*kernel, channels, filters):
        raise refuse(op, "DeformConv that is not of images, or of unknown sizes", 19)
    count = math.prod(int(size or 0) for size in kernel)
    channels, filters = int(channels or 0), int(filters or 0)
    steps, spread, before = strides or (1, 1), dilations or (1, 1), pads or (0, 0, 0, 0)
    dtype = x.dtype
    batch, place = sizes(op, x, 0, 1), sizes(op, offset, 2)
    groups = op.Mul(batch, offset_group)
    moves = op.Reshape(offset, op.Concat(groups, op.const([count, 2], _INT64), place, axis=0))
    axes = [_Axis(op, x, axis, "zeros", False) for axis in (2, 3)]
    choices: list[list[tuple[Value, Value | None, Value | None]]] = []
    taps = np.stack(np.meshgrid(*(np.arange(size or 0) for size in kernel), indexing="ij")).reshape(2, -1)
    for number, axis in enumerate(axes):
        length = op.Squeeze(op.Slice(place, [number], [number + 1]), [0])
        along = op.cast(op.Mul(op.Range(0, length, 1), steps[number]), dtype)
        along = op.Unsqueeze(along, [1]) if number == 0 else along
        tap = (taps[number] * spread[number] - before[number]).reshape(count, 1, 1)
        start = op.Add(op.const(tap.astype(dtype.numpy())), along)
        move = op.Squeeze(op.Slice(moves, [number], [number + 1], [2]), [2])
        at = op.Reshape(op.Add(move, start), op.Concat(groups, op.const([1, -1], _INT64), axis=0))
        base = op.Floor(at)
        part = op.Sub(at, base)
        choices.append(
            [
                (*axis.index(base), op.Sub(1, part)),
                (*axis.index(op.Add(base, 1)), part),
            ]
        )
    each = op.const([channels // offset_group], _INT64)
    flat = op.Reshape(x, op.Concat(groups, each, op.const([-1], _INT64), axis=0))
    total: Value | None = None
    for corner in itertools.product(*choices):
        term = _corner(op, flat, each, axes, corner)
        total = term if total is None else op.Add(total, term)
    if mask is not None:
        total = op.Mul(total, op.Reshape(mask, op.Concat(groups, op.const([1, -1], _INT64), axis=0)))
    columns = op.Concat(batch, op.const([group, channels // group * count, -1], _INT64), axis=0)
    rows = op.Reshape(weight, [group, filters // group, channels // group * count])
    made = op.MatMul(rows, op.Reshape(total, columns))
    result = op.Reshape(made, op.Concat(batch, op.const([filters], _INT64), place, axis=0))
    return result if bias is None else op.Add(result, op.Unsqueeze(bias, [1, 2]))
