"""Shapes: reshaping, joining, parting, picking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import LAST, axes_of, known_ints, rank_of, sizes, zero

pack = OpsetPack(__name__)

pack.same("Expand", 8, 13)
for _name in ("Concat", "Slice"):
    pack.same(_name, 11, 13)
pack.same("Flatten", 11, 13, 21, 23, 24, 25)
pack.same("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
pack.same("NonZero", 9, 13)
pack.same("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
pack.same("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
pack.same("Size", 1, 13, 19, 21, 23, 24, 25)
pack.same("Squeeze", 13, 21, 23, 24, 25)
pack.same("Tile", 6, 13)
pack.same("Transpose", 1, 13, 21, 23, 24, 25)
pack.same("Unsqueeze", 13, 21, 23, 24, 25)
pack.same("OneHot", 11, 28)
pack.same("Compress", 11, 28)
pack.same("Unique", 11, 28)
pack.same("ReverseSequence", 10, 28)
pack.same("DepthToSpace", 11, 13, 28)
pack.same("SpaceToDepth", 1, 13, 28)
pack.same("Pad", 11, 13, 18)
pack.same("Pad", 19, 21, 23, 24, 25)


@pack.below(13, "Squeeze")
def squeeze(op: Builder, x: Value, axes: Value | None = None) -> Value:
    """Squeeze with its axes as an attribute."""
    found = axes_of(op, axes, "Squeeze over axes", 13)
    if found is not None and not found:
        return op.Identity(x)
    return op.at(11).Squeeze(x, axes=found)


@pack.above(11, "Squeeze")
def squeeze_11(op: Builder, x: Value, *, axes: Sequence[int] | None = None) -> Value:
    """Squeeze with its axes as an input."""
    return op.Squeeze(x) if not axes else op.Squeeze(x, list(axes))


@pack.below(13, "Unsqueeze")
def unsqueeze(op: Builder, x: Value, axes: Value) -> Value:
    """Unsqueeze with its axes as an attribute."""
    found = axes_of(op, axes, "Unsqueeze at axes", 13)
    return op.at(11).Unsqueeze(x, axes=found) if found else op.Identity(x)


@pack.above(11, "Unsqueeze")
def unsqueeze_11(op: Builder, x: Value, *, axes: Sequence[int]) -> Value:
    """Unsqueeze with its axes as an input."""
    return op.Unsqueeze(x, list(axes))


@pack.below(15, "Shape")
def shape(op: Builder, x: Value, *, start: int = 0, end: int | None = None) -> Value:
    """A Slice of the whole shape."""
    whole = op.Shape(x)
    return op.Slice(whole, [start], [LAST if end is None else end], [0])


@pack.below(14, "Reshape")
def reshape(op: Builder, x: Value, target: Value, *, allowzero: int = 0) -> Value:
    """Reshape without allowzero; a target with a zero size is made anew, being empty.

    Where only the running model knows the target, If chooses between the two.
    """
    found = known_ints(target)
    empty = np.zeros(1, x.dtype.numpy())
    if found is not None:
        return op.ConstantOfShape(target, value=empty) if 0 in found else op.Reshape(x, target)
    with op.body("empty") as then:
        then.output(then.ConstantOfShape(target, value=empty))
    with op.body("full") as other:
        other.output(other.Reshape(x, target))
    product = op.ReduceProd(target, keepdims=0)
    return op.If(op.Equal(product, 0), then_branch=then.graph, else_branch=other.graph)


@pack.below(18, "Split")
def split(
    op: Builder, x: Value, sizes: Value | None = None, *, axis: int = 0, num_outputs: int | None = None
) -> Any:
    """Split with the sizes written out; Slice where only the running model knows them."""
    count = op.asked_outputs
    if sizes is not None:
        return op.at(13).Split(x, sizes, axis=axis, outputs=count)
    rank = rank_of(op, x, "Split", 18)
    size = (x.dims or ())[axis % rank]
    if isinstance(size, int):
        each = -(-size // count)
        parts = [max(min(each, size - each * i), 0) for i in range(count)]
        return op.at(13).Split(x, parts, axis=axis, outputs=count)
    axis %= rank
    whole = op.Shape(x, start=axis, end=axis + 1)
    chunk = op.Div(op.Add(whole, count - 1), count)
    bounds = [op.Mul(chunk, i) for i in range(count + 1)]
    return tuple(op.Slice(x, low, high, [axis]) for low, high in zip(bounds, bounds[1:], strict=False))


@pack.below(13, "Split")
def split_13(op: Builder, x: Value, sizes: Value | None = None, *, axis: int = 0) -> Any:
    """Split with its sizes as an attribute; Slice where only the running model knows them."""
    count = op.asked_outputs
    found = known_ints(sizes)
    if sizes is None or found is not None:
        return op.at(11).Split(x, axis=axis, split=found, outputs=count)
    ends = op.CumSum(sizes, 0)
    starts = op.Sub(ends, sizes)

    def at(values: Value, index: int) -> Any:
        return op.Slice(values, [index], [index + 1])

    return tuple(op.Slice(x, at(starts, i), at(ends, i), [axis]) for i in range(count))


@pack.above(11, "Split")
def split_11(op: Builder, x: Value, *, axis: int = 0, split: Sequence[int] | None = None) -> Any:
    """Split with its sizes as an input."""
    count = op.asked_outputs
    if split:
        return op.Split(x, list(split), axis=axis, outputs=count)
    return op.Split(x, axis=axis, num_outputs=count, outputs=count)


@pack.above(13, "Split")
def split_13_up(op: Builder, x: Value, sizes: Value | None = None, *, axis: int = 0) -> Any:
    """Split that says how many parts it makes."""
    count = op.asked_outputs
    if sizes is not None:
        return op.Split(x, sizes, axis=axis, outputs=count)
    return op.Split(x, axis=axis, num_outputs=count, outputs=count)


@pack.below(14, "Trilu")
def trilu(op: Builder, x: Value, k: Value | None = None, *, upper: int = 1) -> Value:
    """Where over a mask of positions: rows against columns."""
    rank = rank_of(op, x, "Trilu", 14)
    rows = op.Range(0, op.Squeeze(op.Shape(x, start=rank - 2, end=rank - 1)), 1)
    columns = op.Range(0, op.Squeeze(op.Shape(x, start=rank - 1)), 1)
    if k is not None:
        rows = op.Add(rows, k)
    rows = op.Unsqueeze(rows, [1])
    kept = op.GreaterOrEqual(columns, rows) if upper else op.LessOrEqual(columns, rows)
    return op.Where(kept, x, zero(op, x))


@pack.below(19, "Pad")
def pad(
    op: Builder,
    x: Value,
    pads: Value,
    fill: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    """Pad; wrapping around is a Gather along each axis, at positions modulo its size."""
    if mode != "wrap":
        return op.at(18).Pad(x, pads, fill, axes, mode=mode)
    rank = rank_of(op, x, "Pad", 19)
    where = axes_of(op, axes, "Pad of axes", 19)
    where = list(range(rank)) if where is None else [axis % rank for axis in where]
    numbers = known_ints(pads)
    pads = op.cast(pads, ir.DataType.INT64)
    for place, axis in enumerate(where):
        ends = (place, place + len(where))
        if numbers is not None and not any(numbers[end] for end in ends):
            continue
        before, after = (op.Squeeze(op.Slice(pads, [end], [end + 1]), [0]) for end in ends)
        size = op.Squeeze(sizes(op, x, axis, axis + 1 if axis + 1 < rank else None), [0])
        start, stop = op.Neg(before), op.Add(size, after)
        if numbers is None or any(numbers[end] < 0 for end in ends):
            # What is cut off is no part of the torus.
            low, high = op.Max(start, 0), op.Min(stop, size)
            x = op.Slice(x, op.Unsqueeze(low, [0]), op.Unsqueeze(high, [0]), [axis])
            start, stop, size = op.Sub(start, low), op.Sub(stop, low), op.Sub(high, low)
        x = op.Gather(x, op.Mod(op.Range(start, stop, 1), size), axis=axis)
    return x


@pack.below(18, "Pad")
def pad_axes(
    op: Builder,
    x: Value,
    pads: Value,
    fill: Value | None = None,
    axes: Value | None = None,
    *,
    mode: str = "constant",
) -> Value:
    """Pad with a number for each axis."""
    pads = op.cast(pads, ir.DataType.INT64)
    where = axes_of(op, axes, "Pad of axes", 18)
    if where is None:
        return op.at(13).Pad(x, pads, fill, mode=mode)
    rank = rank_of(op, x, "Pad", 18)
    where = [axis % rank for axis in where]
    numbers = known_ints(pads)
    if numbers is not None:
        whole = [0] * (2 * rank)
        for place, axis in enumerate(where):
            whole[axis], whole[axis + rank] = numbers[place], numbers[place + len(where)]
        return op.at(13).Pad(x, whole, fill, mode=mode)
    parts = [
        op.Slice(pads, [where.index(axis) + offset], [where.index(axis) + offset + 1])
        if axis in where
        else op.const([0], ir.DataType.INT64)
        for offset in (0, len(where))
        for axis in range(rank)
    ]
    return op.at(13).Pad(x, op.Concat(*parts, axis=0), fill, mode=mode)


@pack.above(11, "Pad")
def pad_up(op: Builder, x: Value, *inputs: Value | None, mode: str = "constant") -> Value:
    """Pad, unchanged in what it took."""
    return op.Pad(x, *inputs, mode=mode)


@pack.below(28, "SpaceToDepth")
def space_to_depth(op: Builder, x: Value, *, blocksize: int, mode: str = "DCR") -> Value:
    """SpaceToDepth; its channels are moved before the blocks where mode="CRD"."""
    moved = op.at(13).SpaceToDepth(x, blocksize=blocksize)
    if mode == "DCR":
        return moved
    batch, area = sizes(op, x, 0, 1), op.const([blocksize**2], ir.DataType.INT64)
    parted = op.Concat(batch, area, sizes(op, x, 1, 2), op.Shape(moved, start=2), axis=0)
    turned = op.Transpose(op.Reshape(moved, parted), perm=[0, 2, 1, 3, 4])
    return op.Reshape(turned, op.Shape(moved))


@pack.below(18, "CenterCropPad")
def center_crop_pad(op: Builder, x: Value, shape: Value, *, axes: Sequence[int] | None = None) -> Value:
    """Slice and Pad of each axis, by halves."""
    rank = rank_of(op, x, "CenterCropPad", 18)
    where = list(range(rank)) if axes is None else [axis % rank for axis in axes]
    shape = op.cast(shape, ir.DataType.INT64)
    for place, axis in enumerate(where):
        size = sizes(op, x, axis, axis + 1 if axis + 1 < rank else None)
        wanted = op.Slice(shape, [place], [place + 1])
        start = op.Div(op.Max(op.Sub(size, wanted), 0), 2)
        x = op.Slice(x, start, op.Add(start, op.Min(size, wanted)), [axis])
        missing = op.Max(op.Sub(wanted, size), 0)
        before = op.Div(missing, 2)
        x = op.Pad(x, op.Concat(before, op.Sub(missing, before), axis=0), None, [axis])
    return x
