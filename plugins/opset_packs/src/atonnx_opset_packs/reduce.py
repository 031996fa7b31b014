"""Reductions."""

from __future__ import annotations

from collections.abc import Callable

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import axes_of

pack = OpsetPack(__name__)

_AT_18 = ("ReduceL1", "ReduceL2", "ReduceMean", "ReduceProd", "ReduceSumSquare")

for _name in _AT_18:
    pack.same(_name, 11, 13)
for _name in ("ReduceLogSum", "ReduceLogSumExp"):
    pack.same(_name, 11, 13)
    pack.same(_name, 18, 28)
for _name in ("ReduceMax", "ReduceMin"):
    pack.same(_name, 11, 12, 13)
    pack.same(_name, 18, 20)
for _name in ("ArgMax", "ArgMin"):
    pack.same(_name, 11, 12, 13)
pack.same("CumSum", 11, 14)
pack.same("TopK", 11, 24)


def _below(name: str, opset: int) -> Callable[..., Value]:
    def row(
        op: Builder, x: Value, axes: Value | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Value:
        found = axes_of(op, axes, f"{name} over axes", opset)
        if not found and noop_with_empty_axes:
            return op.Identity(x)
        return getattr(op.at(11), name)(x, axes=found or None, keepdims=keepdims)

    row.__doc__ = f"{name} with its axes as an attribute."
    return row


def _above(name: str) -> Callable[..., Value]:
    def row(op: Builder, x: Value, *, axes: list[int] | None = None, keepdims: int = 1) -> Value:
        return getattr(op, name)(x, list(axes) if axes else None, keepdims=keepdims)

    row.__doc__ = f"{name} with its axes as an input."
    return row


for _name in (*_AT_18, "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMin"):
    pack.below(18, _name)(_below(_name, 18))
    pack.above(11, _name)(_above(_name))
pack.below(13, "ReduceSum")(_below("ReduceSum", 13))
pack.above(11, "ReduceSum")(_above("ReduceSum"))
