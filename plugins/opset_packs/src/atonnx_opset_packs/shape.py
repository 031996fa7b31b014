"""Shapes: reshaping, joining, parting, picking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import axes_of, known_ints, rank_of

pack = OpsetPack(__name__)

for _name in ("Expand",):
    pack.same(_name, 8, 13)
for _name in ("Concat", "Gather", "GatherElements", "Slice"):
    pack.same(_name, 11, 13)
pack.same("Flatten", 11, 13, 21, 23, 24, 25)
pack.same("GatherND", 11, 12, 13)
pack.same("Identity", 1, 13, 14, 16, 19, 21, 23, 24, 25)
pack.same("NonZero", 9, 13)
pack.same("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
pack.same("Shape", 1, 13, 15, 19, 21, 23, 24, 25)
pack.same("Size", 1, 13, 19, 21, 23, 24, 25)
pack.same("Squeeze", 13, 21, 23, 24, 25)
pack.same("Tile", 6, 13)
pack.same("Transpose", 1, 13, 21, 23, 24, 25)
pack.same("Unsqueeze", 13, 21, 23, 24, 25)
pack.same("ConstantOfShape", 9, 20, 21, 23, 24, 25)
pack.same("EyeLike", 9, 22)
pack.same("OneHot", 11, 28)
pack.same("Compress", 11, 28)
pack.same("Unique", 11, 28)
pack.same("ReverseSequence", 10, 28)


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
    stop = np.iinfo(np.int64).max if end is None else end
    return op.Slice(whole, [start], [stop], [0])


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
    zero = op.const(np.zeros((), x.dtype.numpy()))
    return op.Where(kept, x, zero)
