"""Reshapes between transposes, and what is taken apart behind them: as attention writes its heads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

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
)

__all__ = ["rules"]

rules = Rules()


def _single(value: ir.Value | None) -> bool:
    return value is not None and len(value.uses()) == 1 and not value.is_graph_output()


@rules.on("Reshape")
def split_before_transpose(node: ir.Node, graph: Rewriter) -> bool:
    """Reshape, Transpose, and a Reshape that only splits sizes: split in the first, then transpose."""
    transpose = made_by(node.inputs[0], "Transpose")
    first = made_by(transpose.inputs[0], "Reshape") if transpose is not None else None
    if transpose is None or first is None or not _single(node.inputs[0]) or not _single(transpose.inputs[0]):
        return False
    perm, middle = attribute(transpose, "perm"), dims_of(node.inputs[0])
    x, out = first.inputs[0], node.outputs[0]
    target = dims_of(out)
    if perm is None or x is None or middle is None or target is None or not known(target):
        return False
    groups = _groups(middle, target)
    if groups is None:
        return False
    before: list[Any] = []
    places: dict[int, list[int]] = {}
    for axis in range(len(perm)):
        sizes = groups[list(perm).index(axis)]
        places[axis] = list(range(len(before), len(before) + len(sizes)))
        before += sizes
    shape = reshape_target(dims_of(x), before, facts_of(out))
    if shape is None:
        return False
    numbers = graph.constant(np.asarray(shape, np.int64), node)
    value = graph.insert(node, "Reshape", [x, numbers], dtype=out.dtype, dims=before)
    order = [place for axis in perm for place in places[axis]]
    return graph.become(node, "Transpose", [value], [ir.AttrInt64s("perm", order)], [transpose, first])


def _groups(sizes: Sequence[Any], parts: Sequence[Any]) -> list[list[Any]] | None:
    """``parts`` in consecutive groups whose products are ``sizes``; None where they are not that."""
    groups: list[list[Any]] = []
    at = 0
    for size in sizes:
        group: list[Any] = []
        product: Any = 1
        while product != size:
            if at == len(parts):
                return None
            group.append(parts[at])
            product = parts[at] * product
            at += 1
        groups.append(group)
    if any(part != 1 for part in parts[at:]):
        return None
    groups[-1] += parts[at:]
    return groups


@rules.on("Gather")
def parts_of_last_axis(node: ir.Node, graph: Rewriter) -> bool:
    """Splitting the last axis, moving the new one, and taking it apart again is a Split of the last axis."""
    value = node.inputs[0]
    found = (
        _origin(value, attribute(node, "axis", 0)) if value is not None and not graph.in_function else None
    )
    if value is None or found is None:
        return False
    x, count, size = found
    dims = dims_of(x) or ()
    parts: dict[int, ir.Value] = {}
    for use in value.uses():
        index = constant(use.node.inputs[1]) if use.node.op_type == "Gather" and not use.idx else None
        if index is None or index.ndim or attribute(use.node, "axis", 0) != attribute(node, "axis", 0):
            return False
        out = use.node.outputs[0]
        if dims_of(out) != (*dims[:-1], size) or out.is_graph_output() or use.node.graph is not node.graph:
            return False
        parts[int(index) % count] = out
    if sorted(parts) != list(range(count)) or len(value.uses()) != count or value.is_graph_output():
        return False
    more = []
    attributes = [ir.AttrInt64("axis", len(dims) - 1)]
    if graph.opset >= 13:
        more.append(graph.constant(np.asarray([size] * count, np.int64), node))
    else:
        attributes.append(ir.AttrInt64s("split", [size] * count))
    return graph.instead([parts[i] for i in range(count)], "Split", x, more, attributes)


def _origin(value: ir.Value, axis: int) -> tuple[ir.Value, int, int] | None:
    """The tensor whose last axis was split into (count, size), where ``axis`` of ``value`` is the count.

    The axes of ``value`` besides it must be those of the tensor in order, apart from sizes of 1.
    """
    if axis < 0:
        return None
    steps: list[ir.Node] = []
    node = made_by(value, "Squeeze", "Transpose", "Reshape")
    while node is not None and node.op_type != "Reshape" and len(steps) < 4:
        if not _single(node.inputs[0]):
            return None
        steps.append(node)
        node = made_by(node.inputs[0], "Squeeze", "Transpose", "Reshape")
    x = node.inputs[0] if node is not None and node.op_type == "Reshape" else None
    source, split = dims_of(x), dims_of(node.outputs[0]) if node is not None else None
    if x is None or not source or split is None or not known(source) or not known(split):
        return None
    axes = [i for i, size in enumerate(split) if size != 1]
    kept = [i for i, size in enumerate(source) if size != 1]
    sizes = [split[i] for i in axes]
    if not kept or kept[-1] != len(source) - 1 or sizes[:-2] != [source[i] for i in kept[:-1]]:
        return None
    if not all(isinstance(size, int) for size in (*sizes[-2:], source[-1])) or len(sizes) < 2:
        return None
    if sizes[-2] * sizes[-1] != source[-1]:
        return None
    labels: list[int | None] = [axes.index(i) if i in axes else None for i in range(len(split))]
    for step in reversed(steps):
        if step.op_type == "Transpose":
            perm = attribute(step, "perm")
            if perm is None:
                return None
            labels = [labels[i] for i in perm]
        else:
            gone = attribute(step, "axes") or (ints(step.inputs[1]) if len(step.inputs) > 1 else None)
            if not gone:
                return None
            places = {i % len(labels) for i in gone}
            labels = [label for i, label in enumerate(labels) if i not in places]
    rest = [label for i, label in enumerate(labels) if i != axis and label is not None]
    count = len(axes) - 2
    if axis >= len(labels) or labels[axis] != count or rest != [i for i in range(len(axes)) if i != count]:
        return None
    return x, sizes[-2], sizes[-1]
