"""Matrix product and bias of two-dimensional tensors as one Gemm."""

from __future__ import annotations

import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import attribute, dims_of, made_by

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
