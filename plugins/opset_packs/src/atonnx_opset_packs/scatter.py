"""Scatter and gather operators.

Updates of one place are combined in rounds: a stable sort tells which update of its place each
one is, and a Loop applies the first ones, the second ones, and so on, each with distinct places.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import fixed_size, rank_of, refuse, sizes

pack = OpsetPack(__name__)

pack.same("ScatterND", 11, 13)
pack.same("ScatterElements", 11, 13)
pack.same("GatherND", 11, 12, 13)
for _name in ("Gather", "GatherElements"):
    pack.same(_name, 11, 13)

_INT64 = ir.DataType.INT64
_COMBINE: dict[str, Callable[[Builder, Value, Value], Value]] = {
    "add": lambda op, old, new: op.Add(old, new),
    "mul": lambda op, old, new: op.Mul(old, new),
    "max": lambda op, old, new: op.Max(old, new),
    "min": lambda op, old, new: op.Min(old, new),
}


def _scalar(op: Builder, vector: Value) -> Value:
    return op.Squeeze(vector, [0])


def _rounds(op: Builder, data: Value, places: Value, updates: Value, reduction: str) -> Value:
    """``data[places[i]] = f(data[places[i]], updates[i])`` one after the other, rows of ``data``."""
    count = op.Shape(places)
    _, order = op.TopK(places, count, axis=0, largest=0, sorted=1, outputs=2)
    places, updates = op.Gather(places, order), op.Gather(updates, order)
    positions = op.Range(0, _scalar(op, count), 1)
    ahead = op.Slice(op.Concat(op.const([-1], _INT64), places, axis=0), [0], [-1], [0])
    first = op.Not(op.Equal(places, ahead))
    run = op.Sub(op.CumSum(op.cast(first, _INT64), 0), 1)
    starts = op.Squeeze(op.NonZero(first), [0])
    turn = op.Sub(positions, op.Gather(starts, run))
    # No update at all: no round.
    turns = op.ReduceMax(op.Concat(op.const([-1], _INT64), turn, axis=0), [0], keepdims=0)
    with op.body("scatter") as body:
        index = body.input("round", _INT64, ())
        going = body.input("going", ir.DataType.BOOL, ())
        state = body.input("data", data.dtype, data.dims)
        now = body.Compress(places, body.Equal(turn, index), axis=0)
        new = body.Compress(updates, body.Equal(turn, index), axis=0)
        old = body.Gather(state, now)
        mixed = _COMBINE[reduction](body, old, new)
        body.output(going, body.ScatterND(state, body.Unsqueeze(now, [-1]), mixed))
    return op.Loop(op.Add(turns, 1), None, data, body=body.graph)


def _strides(op: Builder, x: Value, rank: int, upto: int) -> list[Value]:
    """How many rows of the first ``upto`` axes lie behind one step along each of them."""
    return [
        op.ReduceProd(sizes(op, x, axis + 1, upto), [0], keepdims=1)
        if axis + 1 < upto
        else op.const([1], _INT64)
        for axis in range(upto)
    ]


def _placed(op: Builder, x: Value, rank: int, index: Value, axis: int) -> Value:
    """Indices along an axis, negative ones from its end."""
    index = op.cast(index, _INT64)
    size = sizes(op, x, axis, axis + 1 if axis + 1 < rank else None)
    return op.Where(op.Less(index, 0), op.Add(index, size), index)


def _nd_in_rounds(op: Builder, data: Value, indices: Value, updates: Value, reduction: str) -> Value:
    rank = rank_of(op, data, "ScatterND", 16)
    depth = fixed_size(indices, -1)
    if depth is None:
        raise refuse(op, f"ScatterND with reduction {reduction} and indices of unknown length", 18)
    if depth == 0:
        raise refuse(op, f"ScatterND with reduction {reduction} and empty indices", 18)
    flat_indices = op.Reshape(indices, [-1, depth])
    place: Value | None = None
    for axis, stride in enumerate(_strides(op, data, rank, depth)):
        column = op.Squeeze(op.Slice(flat_indices, [axis], [axis + 1], [1]), [1])
        step = op.Mul(_placed(op, data, rank, column, axis), stride)
        place = step if place is None else op.Add(place, step)
    rest = sizes(op, data, depth) if depth < rank else None
    rows = op.ReduceProd(sizes(op, data, 0, depth if depth < rank else None), [0], keepdims=1)
    flat = op.Reshape(data, rows if rest is None else op.Concat(rows, rest, axis=0), allowzero=1)
    count = op.Shape(place)
    flat_updates = op.Reshape(updates, count if rest is None else op.Concat(count, rest, axis=0), allowzero=1)
    flat.dims = (None,) * (1 + rank - depth)
    return op.Reshape(_rounds(op, flat, place, flat_updates, reduction), sizes(op, data), allowzero=1)  # type: ignore[arg-type]


@pack.below(18, "ScatterND")
def scatter_nd_18(
    op: Builder, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """ScatterND as of opset 16, which adds and multiplies; max and min in rounds."""
    if reduction in ("max", "min"):
        return _nd_in_rounds(op, data, indices, updates, reduction)
    return op.at(16).ScatterND(data, indices, updates, reduction=reduction)


@pack.below(16, "ScatterND")
def scatter_nd_16(
    op: Builder, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """ScatterND as of opset 13; what it combines, in rounds."""
    if reduction != "none":
        return _nd_in_rounds(op, data, indices, updates, reduction)
    return op.at(13).ScatterND(data, indices, updates)


@pack.above(11, "ScatterND")
@pack.above(16, "ScatterND")
def scatter_nd_up(
    op: Builder, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """ScatterND, unchanged in what it took."""
    return op.ScatterND(data, indices, updates, reduction=reduction)


def _elements_in_rounds(
    op: Builder, data: Value, indices: Value, updates: Value, axis: int, reduction: str
) -> Value:
    rank = rank_of(op, data, "ScatterElements", 16)
    axis %= max(rank, 1)
    place: Value | None = None
    for at, stride in enumerate(_strides(op, data, rank, rank)):
        if at == axis:
            index = _placed(op, data, rank, indices, at)
        else:
            end = _scalar(op, sizes(op, indices, at, at + 1 if at + 1 < rank else None))
            steps = op.Range(0, end, 1)
            index = op.Unsqueeze(steps, list(range(1, rank - at))) if at + 1 < rank else steps
        step = op.Mul(index, stride)
        place = step if place is None else op.Add(place, step)
    flat = op.Reshape(data, [-1])
    flat.dims = (None,)
    result = _rounds(op, flat, op.Reshape(place, [-1]), op.Reshape(updates, [-1]), reduction)
    return op.Reshape(result, sizes(op, data), allowzero=1)


@pack.below(18, "ScatterElements")
def scatter_elements_18(
    op: Builder, data: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements as of opset 16, which adds and multiplies; max and min in rounds."""
    if reduction in ("max", "min"):
        return _elements_in_rounds(op, data, indices, updates, axis, reduction)
    return op.at(16).ScatterElements(data, indices, updates, axis=axis, reduction=reduction)


@pack.below(16, "ScatterElements")
def scatter_elements_16(
    op: Builder, data: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements as of opset 13; what it combines, in rounds."""
    if reduction != "none":
        return _elements_in_rounds(op, data, indices, updates, axis, reduction)
    return op.at(13).ScatterElements(data, indices, updates, axis=axis)


@pack.above(11, "ScatterElements")
@pack.above(16, "ScatterElements")
def scatter_elements_up(
    op: Builder, data: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements, unchanged in what it took."""
    return op.ScatterElements(data, indices, updates, axis=axis, reduction=reduction)


@pack.below(12, "GatherND")
def gather_nd(op: Builder, data: Value, indices: Value, *, batch_dims: int = 0) -> Value:
    """GatherND; the places of batch dims become indices like the others."""
    if not batch_dims:
        return op.at(11).GatherND(data, indices)
    rank = rank_of(op, indices, "GatherND", 12)
    shape = op.Concat(sizes(op, indices, 0, rank - 1), op.const([1], _INT64), axis=0)
    columns = []
    for axis in range(batch_dims):
        steps = op.Range(0, _scalar(op, sizes(op, indices, axis, axis + 1)), 1)
        columns.append(op.Expand(op.Unsqueeze(steps, list(range(1, rank - axis))), shape))
    return op.at(11).GatherND(data, op.Concat(*columns, indices, axis=-1))


@pack.below(24, "TensorScatter")
def tensor_scatter(
    op: Builder,
    cache: Value,
    update: Value,
    start: Value | None = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Value:
    """ScatterElements of the update at the places that it takes along the axis."""
    rank = rank_of(op, cache, "TensorScatter", 24)
    axis %= rank
    steps = op.Range(0, _scalar(op, sizes(op, update, axis, axis + 1 if axis + 1 < rank else None)), 1)
    places = op.Unsqueeze(steps, [i for i in range(rank) if i != axis])
    if start is not None:
        places = op.Add(places, op.Unsqueeze(start, list(range(1, rank))))
    if mode == "circular":
        places = op.Mod(places, sizes(op, cache, axis, axis + 1 if axis + 1 < rank else None))
    return op.ScatterElements(cache, op.Expand(places, sizes(op, update)), update, axis=axis)
