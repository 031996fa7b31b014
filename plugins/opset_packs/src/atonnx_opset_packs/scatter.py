"""Scatter operators."""

from __future__ import annotations

from atonnx.build import Builder, Value
from atonnx.dispatch import OpsetPack
from atonnx_opset_packs._constants import refuse

pack = OpsetPack(__name__)

pack.same("ScatterND", 11, 13, 16)
pack.same("ScatterElements", 11, 13, 16)


@pack.below(18, "ScatterND")
def scatter_nd(op: Builder, data: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Value:
    """ScatterND as of opset 16, which can add and multiply."""
    if reduction in ("max", "min"):
        raise refuse(op, f"ScatterND with reduction {reduction}", 18)
    return op.at(16).ScatterND(data, indices, updates, reduction=reduction)


@pack.above(11, "ScatterND")
def scatter_nd_11(
    op: Builder, data: Value, indices: Value, updates: Value, *, reduction: str = "none"
) -> Value:
    """ScatterND, unchanged in what it had."""
    return op.ScatterND(data, indices, updates, reduction=reduction)


@pack.below(18, "ScatterElements")
def scatter_elements(
    op: Builder, data: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements as of opset 16, which can add and multiply."""
    if reduction in ("max", "min"):
        raise refuse(op, f"ScatterElements with reduction {reduction}", 18)
    return op.at(16).ScatterElements(data, indices, updates, axis=axis, reduction=reduction)


@pack.above(11, "ScatterElements")
def scatter_elements_11(
    op: Builder, data: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Value:
    """ScatterElements, unchanged in what it had."""
    return op.ScatterElements(data, indices, updates, axis=axis, reduction=reduction)
