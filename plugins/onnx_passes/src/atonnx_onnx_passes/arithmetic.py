"""Arithmetic that changes no value of any dtype, nan and negative zero included."""

from __future__ import annotations

import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import dims_of, holds, made_by, same_dims

__all__ = ["rules"]

rules = Rules()


def _drop_operand(node: ir.Node, graph: Rewriter, index: int, number: float) -> bool:
    """Drop the operator if an operand is all ``number`` and does not widen the other."""
    other, out = node.inputs[1 - index], node.outputs[0]
    if not holds(node.inputs[index], number) or other is None:
        return False
    small, large = dims_of(node.inputs[index]), dims_of(other)
    if small is None or large is None:
        return False
    if not same_dims(other, out) and not (len(small) <= len(large) and all(size == 1 for size in small)):
        return False
    return graph.forward(out, other)


@rules.on("Mul")
def times_one(node: ir.Node, graph: Rewriter) -> bool:
    """x * 1."""
    return _drop_operand(node, graph, 1, 1) or _drop_operand(node, graph, 0, 1)


@rules.on("Div", "Pow")
def by_one(node: ir.Node, graph: Rewriter) -> bool:
    """x / 1 and x ** 1."""
    return _drop_operand(node, graph, 1, 1)


@rules.on("Sub")
def less_zero(node: ir.Node, graph: Rewriter) -> bool:
    """x - 0, which keeps -0.0; x - (-0.0) does not."""
    return _drop_operand(node, graph, 1, 0)


@rules.on("Add")
def plus_zero(node: ir.Node, graph: Rewriter) -> bool:
    """x + 0 of integers, x + -0.0 of floats; x + 0.0 would make 0.0 of -0.0."""
    dtype = node.outputs[0].dtype
    if dtype is None:
        return False
    zero = -0.0 if dtype.is_floating_point() else 0
    return _drop_operand(node, graph, 1, zero) or _drop_operand(node, graph, 0, zero)


@rules.on("And")
def and_true(node: ir.Node, graph: Rewriter) -> bool:
    """x and True, x and x."""
    if node.inputs[0] is node.inputs[1]:
        return graph.forward(node.outputs[0], node.inputs[0])  # type: ignore[arg-type]
    return _drop_operand(node, graph, 1, 1) or _drop_operand(node, graph, 0, 1)


@rules.on("Or")
def or_false(node: ir.Node, graph: Rewriter) -> bool:
    """x or False, x or x."""
    if node.inputs[0] is node.inputs[1]:
        return graph.forward(node.outputs[0], node.inputs[0])  # type: ignore[arg-type]
    return _drop_operand(node, graph, 1, 0) or _drop_operand(node, graph, 0, 0)


@rules.on("Not", "Neg")
def twice(node: ir.Node, graph: Rewriter) -> bool:
    """Not(Not(x)), Neg(Neg(x))."""
    inner = made_by(node.inputs[0], node.op_type)
    return inner is not None and graph.forward(node.outputs[0], inner.inputs[0])  # type: ignore[arg-type]
