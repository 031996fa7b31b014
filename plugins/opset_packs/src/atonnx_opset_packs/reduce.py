"""Reductions, and what goes along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import axes_of, rank_of, refuse, sizes

pack = OpsetPack(__name__)

_MEAN = ("ReduceL1", "ReduceL2", "ReduceMean", "ReduceProd", "ReduceSumSquare")
_LOG = ("ReduceLogSum", "ReduceLogSumExp")
_EXTREME = ("ReduceMax", "ReduceMin")

for _name in _MEAN:
    pack.same(_name, 11, 13)
for _name in _LOG:
    pack.same(_name, 11, 13)
    pack.same(_name, 18, 28)
for _name in _EXTREME:
    pack.same(_name, 11, 12, 13)
    pack.same(_name, 18, 20)
for _name in ("ArgMax", "ArgMin"):
    pack.same(_name, 11, 12, 13)
pack.same("CumSum", 11, 14)
pack.same("TopK", 11, 24)

# What is left of a reduction over no axis at all.
_OF_NOTHING: dict[str, Callable[[Builder, Value], Value]] = {
    "ReduceL1": lambda op, x: op.Abs(x),
    "ReduceL2": lambda op, x: op.Abs(x),
    "ReduceLogSum": lambda op, x: op.Log(x),
    "ReduceSumSquare": lambda op, x: op.Mul(x, x),
}


def _below(name: str, opset: int) -> Callable[..., Value]:
    def row(
        op: Builder, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Value:
        found = axes_of(op, axes, f"{name} over axes", opset)
        if not found and noop_with_empty_axes:
            return _OF_NOTHING.get(name, lambda op, x: op.Identity(x))(op, x)
        return getattr(op.at(11), name)(x, axes=found or None, keepdims=keepdims)

    row.__doc__ = f"{name} with its axes as an attribute."
    return row


def _above(name: str) -> Callable[..., Value]:
    def row(op: Builder, x: Value, *, axes: Sequence[int] | None = None, keepdims: int = 1) -> Value:
        return getattr(op, name)(x, list(axes) if axes else None, keepdims=keepdims)

    row.__doc__ = f"{name} with its axes as an input."
    return row


for _name in (*_MEAN, *_LOG, *_EXTREME):
    pack.below(18, _name)(_below(_name, 18))
    pack.above(11, _name)(_above(_name))
pack.below(13, "ReduceSum")(_below("ReduceSum", 13))
pack.above(11, "ReduceSum")(_above("ReduceSum"))


def _arg(name: str) -> Callable[..., Value]:
    def row(op: Builder, x: Value, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Value:
        if not select_last_index:
            return getattr(op.at(11), name)(x, axis=axis, keepdims=keepdims)
        axis %= max(rank_of(op, x, name, 12), 1)
        turned = op.Slice(x, [-1], [np.iinfo(np.int64).min], [axis], [-1])
        index = getattr(op.at(11), name)(turned, axis=axis, keepdims=keepdims)
        return op.Sub(op.Sub(op.Squeeze(sizes(op, x, axis, axis + 1), [0]), 1), index)

    row.__doc__ = f"{name}; the last index is the first of the turned axis."
    return row


pack.below(12, "ArgMax")(_arg("ArgMax"))
pack.below(12, "ArgMin")(_arg("ArgMin"))


@pack.below(26, "CumProd")
def cum_prod(op: Builder, x: Value, axis: Value, *, exclusive: int = 0, reverse: int = 0) -> Any:
    """Scan along the axis with the product as its state."""
    at = axes_of(op, axis, "CumProd along an axis", 26) or [0]
    rank = rank_of(op, x, "CumProd", 26)
    index = at[0] % rank
    one = op.const(np.array(1, x.dtype.numpy()))
    start = op.Expand(one, sizes_without(op, x, index))
    with op.body("cumprod") as body:
        dims = None if x.dims is None else tuple(d for i, d in enumerate(x.dims) if i != index)
        state = body.input("state", x.dtype, dims)
        item = body.input("item", x.dtype, dims)
        product = body.Mul(state, item)
        body.output(product, body.Identity(state) if exclusive else product)
    _, result = op.Scan(
        start,
        x,
        body=body.graph,
        num_scan_inputs=1,
        scan_input_axes=[index],
        scan_output_axes=[index],
        scan_input_directions=[reverse],
        scan_output_directions=[reverse],
        outputs=2,
    )
    return result


def sizes_without(op: Builder, x: Value, axis: int) -> Value:
    """The sizes of ``x`` without one axis."""
    rank = rank_of(op, x, "CumProd", 26)
    parts = [part for part in ((0, axis), (axis + 1, rank)) if part[0] < part[1]]
    made = [sizes(op, x, start, end if end < rank else None) for start, end in parts]
    if not made:
        return op.const(np.zeros(0, np.int64))
    return made[0] if len(made) == 1 else op.Concat(*made, axis=0)


@pack.below(27, "Range")
def arange(op: Builder, start: Value, limit: Value, delta: Value, *, stash_type: int = 1) -> Value:
    """Range; one that adds up in another dtype is computed in that."""
    if stash_type != 1 and start.dtype.itemsize == 2 and start.dtype.is_floating_point():
        raise refuse(op, f"Range with stash_type {stash_type}", 27)
    return op.at(11).Range(start, limit, delta)


@pack.above(11, "Range")
def arange_11(op: Builder, start: Value, limit: Value, delta: Value) -> Value:
    """Range, unchanged in what it took."""
    return op.Range(start, limit, delta)
