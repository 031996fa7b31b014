"""Operators that rearrange: Reshape and its kin, Transpose, Expand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build.infer import broadcast
from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import (
    attribute,
    constant,
    dims_of,
    facts_of,
    ints,
    known,
    made_by,
    reshape_target,
    same_dims,
)

__all__ = ["rules"]

rules = Rules()

_RESHAPES = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")


@rules.on(*_RESHAPES, "Expand")
def nothing_changes(node: ir.Node, graph: Rewriter) -> bool:
    """Drop what gives the shape that is there."""
    x = node.inputs[0]
    return x is not None and same_dims(x, node.outputs[0]) and graph.forward(node.outputs[0], x)


@rules.on(*_RESHAPES)
def reshape_twice(node: ir.Node, graph: Rewriter) -> bool:
    """Two in a row are one Reshape, where a constant target says it."""
    inner = made_by(node.inputs[0], *_RESHAPES)
    if inner is None:
        return False
    middle, x, out = node.inputs[0], inner.inputs[0], node.outputs[0]
    if x is None or middle is None or any(use.node.op_type not in _RESHAPES for use in middle.uses()):
        return False
    if same_dims(x, out):
        return graph.forward(out, x)
    target = reshape_target(dims_of(x), dims_of(out), facts_of(out))
    if target is None and node.op_type == "Reshape":
        given = ints(node.inputs[1])
        # Without zeros, which copy sizes of what comes in, a target does not mind what comes in.
        if given is not None and 0 not in given:
            target = list(given)
    if target is None or middle.is_graph_output():
        return False
    shape = graph.constant(np.asarray(target, np.int64), node)
    return graph.become(node, "Reshape", [x, shape], (), [inner])


@rules.on("Unsqueeze")
def unsqueeze_again(node: ir.Node, graph: Rewriter) -> bool:
    """Squeeze and Unsqueeze at the same axes cancel, where sizes are not known."""
    inner = made_by(node.inputs[0], "Squeeze")
    return inner is not None and _same_axes(node, inner) and graph.forward(node.outputs[0], inner.inputs[0])  # type: ignore[arg-type]


@rules.on("Squeeze")
def squeeze_again(node: ir.Node, graph: Rewriter) -> bool:
    """Unsqueeze and Squeeze at the same axes cancel, where sizes are not known."""
    inner = made_by(node.inputs[0], "Unsqueeze")
    return inner is not None and _same_axes(node, inner) and graph.forward(node.outputs[0], inner.inputs[0])  # type: ignore[arg-type]


def _axes(node: ir.Node) -> tuple[int, ...] | None:
    found = attribute(node, "axes")
    if found is not None:
        return tuple(found)
    return ints(node.inputs[1]) if len(node.inputs) > 1 else None


def _same_axes(a: ir.Node, b: ir.Node) -> bool:
    axes = _axes(a)
    return axes is not None and axes == _axes(b)


@rules.on("Transpose")
def transpose(node: ir.Node, graph: Rewriter) -> bool:
    """Drop one that leaves the order; two in a row are one."""
    x, out = node.inputs[0], node.outputs[0]
    perm = _perm(node)
    if perm is None or x is None:
        return False
    if perm == list(range(len(perm))):
        return graph.forward(out, x)
    inner = made_by(x, "Transpose")
    first = _perm(inner) if inner is not None else None
    if inner is None or first is None:
        return False
    return graph.become(
        node, "Transpose", [inner.inputs[0]], [ir.AttrInt64s("perm", [first[i] for i in perm])], [inner]
    )


def _perm(node: ir.Node) -> list[int] | None:
    perm = attribute(node, "perm")
    if perm is not None:
        return list(perm)
    dims = dims_of(node.inputs[0])
    return None if dims is None else list(range(len(dims)))[::-1]


_BROADCASTING = (
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual",
    "Less", "LessOrEqual", "Max", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor",
)  # fmt: skip


@rules.on(*_BROADCASTING)
def expanded_operand(node: ir.Node, graph: Rewriter) -> bool:
    """An Expand goes where the operator broadcasts by itself to the same sizes."""
    for index, value in enumerate(node.inputs):
        inner = made_by(value, "Expand")
        if inner is None:
            continue
        before = [dims_of(other) for other in node.inputs]
        after: list[Any] = list(before)
        after[index] = dims_of(inner.inputs[0])
        sizes = broadcast(*before)
        if known(sizes) and sizes == broadcast(*after):
            return graph.set_input(node, index, inner.inputs[0])
    return False


@rules.on("MatMul")
def expanded_batch(node: ir.Node, graph: Rewriter) -> bool:
    """The same for the batch sizes of MatMul."""
    for index in (0, 1):
        inner = made_by(node.inputs[index], "Expand")
        if inner is None:
            continue
        x, wide, other = (dims_of(v) for v in (inner.inputs[0], node.inputs[index], node.inputs[1 - index]))
        if x is None or wide is None or other is None or min(len(x), len(wide), len(other)) < 2:
            continue
        batch = broadcast(wide[:-2], other[:-2]) if len(wide) + len(other) > 4 else ()
        if len(x) < len(wide) and len(other) < len(wide) or x[-2:] != wide[-2:] or not known(x[-2:]):
            continue
        if known(batch) and batch == (broadcast(x[:-2], other[:-2]) if batch else ()):
            return graph.set_input(node, index, inner.inputs[0])
    return False


@rules.on("Where")
def where_constant(node: ir.Node, graph: Rewriter) -> bool:
    """A condition that is the same everywhere chooses now."""
    array = constant(node.inputs[0], 1 << 16)
    if array is None or not array.size or array.any() != array.all():
        return False
    chosen = node.inputs[1] if array.all() else node.inputs[2]
    return (
        chosen is not None and same_dims(chosen, node.outputs[0]) and graph.forward(node.outputs[0], chosen)
    )


@rules.on("Not")
def where_not(node: ir.Node, graph: Rewriter) -> bool:
    """Where(Not(c), a, b) is Where(c, b, a), if nothing else reads the Not."""
    condition = node.outputs[0]
    users = list(condition.uses())
    if not users or condition.is_graph_output():
        return False
    if any(use.node.op_type != "Where" or use.node.domain or use.idx for use in users):
        return False
    for use in users:
        where = use.node
        graph.become(where, "Where", [node.inputs[0], where.inputs[2], where.inputs[1]], (), [node])
    return True
