"""Matrix product and bias: one Gemm for two dimensions, MatMul and Add for more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import attribute, dims_of, facts_of, input_at, known, made_by, reshape_target

__all__ = ["rules"]

rules = Rules()

_DTYPES = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16})
_TRANSPOSED = (ir.AttrInt64("transB", 1),)


def _matrices(node: ir.Node) -> bool:
    """Whether a MatMul is of two matrices with something to sum over, in a dtype that Gemm takes."""
    a, b = dims_of(node.inputs[0]), dims_of(node.inputs[1])
    if a is None or b is None or len(a) != 2 or len(b) != 2 or node.outputs[0].dtype not in _DTYPES:
        return False
    # Runtimes differ about a Gemm that sums over nothing.
    return any(isinstance(size, int) and size > 0 for size in (a[1], b[0]))


def _second(node: ir.Node) -> tuple[ir.Value | None, ir.Node | None]:
    """The second matrix of a MatMul as Gemm reads it: before its transpose, which Gemm does itself."""
    transpose = made_by(node.inputs[1], "Transpose")
    if transpose is not None and attribute(transpose, "perm", [1, 0]) in ([1, 0], (1, 0)):
        return transpose.inputs[0], transpose
    return node.inputs[1], None


@rules.on("Add")
def product_and_bias(node: ir.Node, graph: Rewriter) -> bool:
    """Add(MatMul(a, b), bias) is Gemm; a transposed second matrix is read as it is stored."""
    for index in (0, 1):
        product, bias = made_by(node.inputs[index], "MatMul"), node.inputs[1 - index]
        if product is None or bias is None or not _matrices(product):
            continue
        value = product.outputs[0]
        if len(value.uses()) != 1 or value.is_graph_output() or product.graph is not node.graph:
            continue
        columns = (dims_of(product.inputs[1]) or ())[1]
        if not isinstance(columns, int) or dims_of(bias) not in ((columns,), (1, columns)):
            continue
        second, transpose = _second(product)
        absorbed = [product] if transpose is None else [product, transpose]
        inputs = [product.inputs[0], second, bias]
        return graph.become(node, "Gemm", inputs, _TRANSPOSED if transpose else (), absorbed)
    return False


@rules.on("MatMul")
def tied_matrix(node: ir.Node, graph: Rewriter) -> bool:
    """A weight that is used untransposed elsewhere is not transposed for this product."""
    weight, transpose = _second(node)
    if transpose is None or weight is None or not weight.is_initializer() or not _matrices(node):
        return False
    if len(weight.uses()) < 2:
        return False
    return graph.become(node, "Gemm", [node.inputs[0], weight], _TRANSPOSED, [transpose])


@rules.on("Reshape")
def flattened_product(node: ir.Node, graph: Rewriter) -> bool:
    """Reshapes around a Gemm, which only make a matrix of more dimensions: MatMul needs none."""
    gemm = made_by(node.inputs[0], "Gemm")
    flat = made_by(gemm.inputs[0], "Reshape") if gemm is not None else None
    if gemm is None or flat is None or gemm.graph is not node.graph:
        return False
    product = gemm.outputs[0]
    if len(product.uses()) != 1 or product.is_graph_output() or attribute(gemm, "transA", 0):
        return False
    if attribute(gemm, "alpha", 1.0) != 1.0 or attribute(gemm, "beta", 1.0) != 1.0:
        return False
    x, matrix, bias = flat.inputs[0], gemm.inputs[1], input_at(gemm, 2)
    dims, out, rows = dims_of(x), dims_of(node.outputs[0]), dims_of(flat.outputs[0])
    if x is None or matrix is None or dims is None or out is None or rows is None or not known(out):
        return False
    if len(out) < 3 or out[-1] != (dims_of(product) or ())[-1]:
        return False
    wanted = (*out[:-1], rows[-1])
    target = None if dims == wanted else _between_transposes(node, flat, wanted)
    if dims != wanted and target is None:
        return False
    if bias is not None and len(dims_of(bias) or (1, 1)) != 1:
        return False
    if attribute(gemm, "transB", 0):
        if len(matrix.uses()) > 1:
            return False  # a tied weight, which Gemm reads as it is stored
        swapped = (dims_of(matrix) or (None, None))[::-1]
        perm = [ir.AttrInt64s("perm", [1, 0])]
        matrix = graph.insert(gemm, "Transpose", [matrix], perm, dtype=matrix.dtype, dims=swapped)
    if target is not None:
        shape = graph.constant(np.asarray(target, np.int64), gemm)
        x = graph.insert(gemm, "Reshape", [x, shape], dtype=x.dtype, dims=wanted)
    if bias is None:
        return graph.become(node, "MatMul", [x, matrix], (), [gemm, flat])
    summand = graph.insert(gemm, "MatMul", [x, matrix], dtype=product.dtype, dims=out)
    return graph.become(node, "Add", [summand, bias], (), [gemm, flat])


def _between_transposes(node: ir.Node, flat: ir.Node, wanted: Sequence[Any]) -> list[int] | None:
    """A target for the first Reshape where the product stands between transposes, one of which can go."""
    if made_by(flat.inputs[0], "Transpose") is None or len(flat.outputs[0].uses()) != 1:
        return None
    if any(use.node.op_type != "Transpose" for use in node.outputs[0].uses()):
        return None
    return reshape_target(dims_of(flat.inputs[0]), wanted, facts_of(node.outputs[0]))
