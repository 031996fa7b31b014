"""Operators that change nothing: Identity, casts, slices, concatenations."""

from __future__ import annotations

import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import attribute, dims_of, holds, input_at, ints, made_by, same_dims

__all__ = ["rules"]

rules = Rules()

D = ir.DataType
_INTS = frozenset({D.BOOL, D.INT8, D.INT16, D.INT32, D.INT64, D.UINT8, D.UINT16, D.UINT32, D.UINT64})
_FLOATS = frozenset({D.FLOAT16, D.BFLOAT16, D.FLOAT, D.DOUBLE})
# Wider dtypes that hold every value of a dtype.
_HOLDS: dict[ir.DataType, frozenset[ir.DataType]] = {
    D.BOOL: _INTS | _FLOATS,
    D.INT8: frozenset({D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE}),
    D.INT16: frozenset({D.INT32, D.INT64, D.FLOAT, D.DOUBLE}),
    D.INT32: frozenset({D.INT64, D.DOUBLE}),
    D.UINT8: frozenset({D.UINT16, D.UINT32, D.UINT64, D.INT16, D.INT32, D.INT64, D.FLOAT, D.DOUBLE}),
    D.UINT16: frozenset({D.UINT32, D.UINT64, D.INT32, D.INT64, D.FLOAT, D.DOUBLE}),
    D.UINT32: frozenset({D.UINT64, D.INT64, D.DOUBLE}),
    D.FLOAT16: frozenset({D.FLOAT, D.DOUBLE}),
    D.BFLOAT16: frozenset({D.FLOAT, D.DOUBLE}),
    D.FLOAT: frozenset({D.DOUBLE}),
}


@rules.on("Identity")
def identity(node: ir.Node, graph: Rewriter) -> bool:
    """Drop it, except where it joins an input, an initializer or an output to an output."""
    return graph.forward(node.outputs[0], node.inputs[0])  # type: ignore[arg-type]


@rules.on("Max", "Min", "Sum", "Mean")
def of_one(node: ir.Node, graph: Rewriter) -> bool:
    """Of one tensor, it is that tensor."""
    return len(node.inputs) == 1 and graph.forward(node.outputs[0], node.inputs[0])  # type: ignore[arg-type]


@rules.on("Cast")
def cast(node: ir.Node, graph: Rewriter) -> bool:
    """Drop a cast to the dtype that is there, and the first of two casts if it loses nothing."""
    (x,), out = node.inputs, node.outputs[0]
    if x is None or x.dtype is None:
        return False
    to = D(attribute(node, "to"))
    if x.dtype == to:
        return graph.forward(out, x)
    first = made_by(x, "Cast")
    source = first.inputs[0] if first is not None else None
    if first is None or source is None or source.dtype is None:
        return False
    if x.dtype not in _HOLDS.get(source.dtype, ()):
        return False
    if source.dtype == to:
        return graph.forward(out, source)
    # A float out of an integer's range is cast to what the kernel likes, which may differ by dtype.
    if source.dtype in _INTS and to in _INTS | _FLOATS or to in _FLOATS:
        return graph.become(node, "Cast", [source], node.attributes.values(), [first])
    return False


@rules.on("Slice")
def slice_all(node: ir.Node, graph: Rewriter) -> bool:
    """Drop a slice that takes everything in order."""
    steps = input_at(node, 4)
    if steps is not None and not holds(steps, 1):
        return False
    x, out = node.inputs[0], node.outputs[0]
    if x is None:
        return False
    if same_dims(x, out):
        return graph.forward(out, x)
    starts, ends = ints(input_at(node, 1)), ints(input_at(node, 2))
    if starts is None or ends is None:
        return False
    whole = all(start == 0 and end >= (1 << 31) - 1 for start, end in zip(starts, ends, strict=True))
    return whole and graph.forward(out, x)


@rules.on("Concat")
def concat(node: ir.Node, graph: Rewriter) -> bool:
    """Drop it around one tensor; leave out empty parts; take over the parts of a Concat inside."""
    if len(node.inputs) == 1:
        return graph.forward(node.outputs[0], node.inputs[0])  # type: ignore[arg-type]
    axis, rank = attribute(node, "axis"), len(dims_of(node.outputs[0]) or ())
    if not rank:
        return False
    at = axis % rank
    parts: list[ir.Value | None] = []
    absorbed = []
    for value in node.inputs:
        dims = dims_of(value)
        inner = made_by(value, "Concat")
        if dims is not None and len(dims) == rank and isinstance(dims[at], int) and dims[at] == 0:
            continue
        if inner is not None and len(value.uses()) == 1 and not value.is_graph_output():  # type: ignore[union-attr]
            if attribute(inner, "axis") % rank == at and inner.graph is node.graph:
                parts += inner.inputs
                absorbed.append(inner)
                continue
        parts.append(value)
    if not parts or len(parts) == len(node.inputs) and not absorbed:
        return False
    return graph.become(node, "Concat", parts, [ir.AttrInt64("axis", axis)], absorbed)


@rules.on("Concat")
def concat_of_split(node: ir.Node, graph: Rewriter) -> bool:
    """Drop a Concat that puts the parts of a Split together again."""
    split = made_by(node.inputs[0], "Split")
    rank = len(dims_of(node.outputs[0]) or ())
    if split is None or not rank or len(node.inputs) != len(split.outputs):
        return False
    if any(a is not b for a, b in zip(node.inputs, split.outputs, strict=True)):
        return False
    if attribute(node, "axis") % rank != attribute(split, "axis", 0) % rank:
        return False
    return graph.forward(node.outputs[0], split.inputs[0])  # type: ignore[arg-type]
