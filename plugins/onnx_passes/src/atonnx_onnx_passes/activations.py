"""Spelled-out functions as the operators, or the forms of them, that runtimes have kernels for."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import constant, made_by

__all__ = ["rules"]

rules = Rules()


@rules.on("Mul")
def by_root(node: ir.Node, graph: Rewriter) -> bool:
    """x * (1 / sqrt(v)) is x / sqrt(v), which ONNX Runtime knows as part of a normalization.

    The two agree at 0, inf and nan, since the root of the smallest number is far from overflowing.
    """
    for index in (0, 1):
        inverse = made_by(node.inputs[index], "Reciprocal")
        root = made_by(inverse.inputs[0], "Sqrt") if inverse is not None else None
        if inverse is None or root is None or not _only_here(inverse, node):
            continue
        return graph.become(node, "Div", [node.inputs[1 - index], root.outputs[0]], (), [inverse])
    return False


@rules.on("Mul")
def gelu_of_tanh(node: ir.Node, graph: Rewriter) -> bool:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))) is Gelu(x, approximate="tanh")."""
    if graph.opset < 20:
        return False
    for index in (0, 1):
        half, rest = made_by(node.inputs[1 - index], "Mul"), made_by(node.inputs[index], "Add")
        x = _beside(half, 0.5)
        tanh = made_by(_beside(rest, 1.0), "Tanh")
        scaled = made_by(tanh.inputs[0], "Mul") if tanh is not None else None
        inner = made_by(_beside(scaled, math.sqrt(2 / math.pi)), "Add")
        if x is None or inner is None or x not in inner.inputs:
            continue
        cubic = made_by(inner.inputs[1] if inner.inputs[0] is x else inner.inputs[0], "Mul")
        cube = _beside(cubic, 0.044715)
        if not _is_cube(cube, x):
            continue
        parts = [half, rest, tanh, scaled, inner, cubic, cube.producer() if cube is not None else None]
        attributes = [ir.AttrString("approximate", "tanh")]
        return graph.become(node, "Gelu", [x], attributes, [part for part in parts if part is not None])
    return False


def _only_here(inner: ir.Node, user: ir.Node) -> bool:
    value = inner.outputs[0]
    return all(use.node is user for use in value.uses()) and not value.is_graph_output()


def _beside(node: ir.Node | None, number: float) -> ir.Value | None:
    """The operand of a binary operator beside the constant ``number``, as its dtype rounds it."""
    if node is None or len(node.inputs) != 2:
        return None
    for index in (0, 1):
        array = constant(node.inputs[index])
        if array is None or array.size != 1 or array.ndim:
            continue
        if array.dtype.kind == "f" and array == np.asarray(number).astype(array.dtype):
            return node.inputs[1 - index]
    return None


def _is_cube(value: ir.Value | None, x: ir.Value) -> bool:
    power = made_by(value, "Pow")
    if power is not None:
        return power.inputs[0] is x and _beside(power, 3.0) is x
    product = made_by(value, "Mul")
    if product is None or x not in product.inputs:
        return False
    square = made_by(product.inputs[1] if product.inputs[0] is x else product.inputs[0], "Mul")
    return square is not None and square.inputs[0] is x and square.inputs[1] is x
