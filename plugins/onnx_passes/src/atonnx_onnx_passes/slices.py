"""Slices that share a tensor out among them as one Split."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import dims_of, holds, input_at, ints

__all__ = ["rules"]

rules = Rules()

_MOST_USES = 16  # of a tensor whose slices are looked at, so that a tensor with many does not cost its square


@rules.on("Slice")
def all_parts(node: ir.Node, graph: Rewriter) -> bool:
    """Slices that together take each element of an axis once are a Split."""
    x = node.inputs[0]
    if x is None or len(x.uses()) > _MOST_USES or graph.in_function:
        return False
    mine = _range(node)
    if mine is None:
        return False
    found: dict[tuple[int, int], ir.Node] = {}
    for use in x.uses():
        other = use.node
        if other.op_type != "Slice" or other.domain or use.idx or other.graph is not node.graph:
            continue
        where = _range(other)
        if where is not None and where[0] == mine[0] and where[1] < where[2]:
            if where[1:] in found or other.outputs[0].is_graph_output():
                return False
            found[where[1:]] = other
    ranges = sorted(found)
    size = (dims_of(x) or ())[mine[0]]
    whole = [0, *(stop for _, stop in ranges)] == [*(start for start, _ in ranges), size]
    if len(ranges) < 2 or not whole:
        return False
    slices = [found[key] for key in ranges]
    lengths = [stop - start for start, stop in ranges]
    attributes = [ir.AttrInt64("axis", mine[0])]
    more = []
    if graph.opset >= 13:
        more.append(graph.constant(np.asarray(lengths, np.int64), node))
    else:
        attributes.append(ir.AttrInt64s("split", lengths))
    return graph.instead([s.outputs[0] for s in slices], "Split", x, more, attributes)


def _range(node: ir.Node) -> tuple[int, int, int] | None:
    """Axis, start and stop of a slice of one axis in steps of one, in numbers."""
    dims = dims_of(node.inputs[0])
    starts, ends, axes = (ints(input_at(node, i)) for i in (1, 2, 3))
    if input_at(node, 4) is not None and not holds(input_at(node, 4), 1):
        return None
    if dims is None or starts is None or ends is None or axes is None or len(axes) != 1:
        return None
    axis = axes[0] % len(dims)
    if not isinstance(dims[axis], int):
        return None
    start, stop, _ = slice(starts[0], ends[0]).indices(dims[axis])
    return axis, start, stop
