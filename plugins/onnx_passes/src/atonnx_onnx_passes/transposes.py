"""Two transposes with only such operators between them that do not mind the order of axes: one or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import (
    attribute,
    dims_of,
    facts_of,
    input_at,
    known,
    reshape_target,
    set_dims,
)

__all__ = ["rules"]

rules = Rules()

_MOST_NODES = 16  # between two transposes
_UNARY = frozenset(
    """Abs Cast Ceil Clip Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg Not Reciprocal
    Relu Round Selu Sigmoid Sign Softplus Softsign Sqrt Tanh""".split()
)
_BINARY = frozenset("Add Div Mul Pow Sub".split())
# Nodes between, with the input by which the order comes, and the order.
Plan = list[tuple[ir.Node, int, list[int]]]
# Nodes between, with the new sizes of their outputs, and the new target of a Reshape.
Shapes = list[tuple[ir.Node, list[Any], Any]]


def _moved(perm: Sequence[int]) -> int:
    """How many axes from the front on are moved among themselves; those behind stay."""
    return max((i + 1 for i, axis in enumerate(perm) if axis != i), default=0)


def _widened(perm: Sequence[int], rank: int) -> list[int]:
    """The same order of the moved axes for another rank."""
    front = list(perm[: _moved(perm)])
    return [*front, *range(len(front), rank)]


def _indifferent(node: ir.Node, index: int, perm: Sequence[int]) -> bool:
    """Whether a node gives the same numbers when the axes of one input, and of its outputs, are reordered."""
    if node.domain or node.graph is None:
        return False
    rank = len(perm)
    last_stays = _moved(perm) < rank
    if node.op_type in _UNARY:
        return index == 0
    if node.op_type in _BINARY:
        other = dims_of(node.inputs[1 - index])
        if other is None or len(dims_of(node.outputs[0]) or ()) != rank:
            return False
        return len(other) == 0 or (last_stays and len(other) == 1)
    if node.op_type == "MatMul":
        return index == 0 and last_stays and rank > 2 and len(dims_of(node.inputs[1]) or ()) == 2
    if node.op_type in ("LayerNormalization", "Softmax", "LogSoftmax"):
        return (
            index == 0
            and last_stays
            and attribute(node, "axis", -1) in (-1, rank - 1)
            and len(node.outputs) == 1
        )
    if node.op_type == "Split":
        return index == 0 and attribute(node, "axis", 0) % rank >= _moved(perm)
    if node.op_type == "Reshape":
        front = _moved(perm)
        before, after = dims_of(node.inputs[0]), dims_of(node.outputs[0])
        if index or before is None or after is None or not known(before) or not known(after):
            return False
        return before[:front] == after[:front]
    return False


def _between(value: ir.Value, perm: Sequence[int], plan: Plan, ends: list[ir.Node]) -> bool:
    """Go on from ``value`` to the transposes where all ways from it end; False if one does not."""
    if value.is_graph_output() or not value.uses() or len(plan) + len(ends) > _MOST_NODES:
        return False
    home = value.producer().graph  # type: ignore[union-attr]
    for use in value.uses():
        node = use.node
        if node.graph is not home:
            return False
        if node.op_type == "Transpose" and not node.domain and attribute(node, "perm") is not None:
            ends.append(node)
            continue
        if any(node is planned for planned, _, _ in plan) or not _indifferent(node, use.idx, perm):
            return False
        plan.append((node, use.idx, list(perm)))
        for out in node.outputs:
            if not _between(out, _widened(perm, len(dims_of(out) or ())), plan, ends):
                return False
    return True


@rules.on("Transpose")
def into_later_ones(node: ir.Node, graph: Rewriter) -> bool:
    """A transpose all of whose ways lead to further ones is done by those."""
    perm, out, x = attribute(node, "perm"), node.outputs[0], node.inputs[0]
    dims = dims_of(out)
    if perm is None or x is None or dims is None or not known(dims):
        return False
    plan: Plan = []
    ends: list[ir.Node] = []
    if not _between(out, list(perm), plan, ends) or not plan:
        return False
    # A value of the old order is the new one, transposed: old = new.transpose(order).
    shapes = _shapes(plan, graph, lambda order: [order.index(i) for i in range(len(order))])
    if shapes is None:
        return False
    for end in ends:
        order = _widened(perm, len(dims_of(end.inputs[0]) or ()))
        end.attributes["perm"] = ir.AttrInt64s("perm", [order[i] for i in attribute(end, "perm")])
    _apply(shapes, graph)
    return graph.forward(out, x)


def _shapes(plan: Plan, graph: Rewriter, reorder: Callable[[list[int]], list[int]]) -> Shapes | None:
    """For each node its outputs' new sizes, and for a Reshape its new target; None where it has none."""
    found: Shapes = []
    for node, index, perm in plan:
        new = []
        for out in node.outputs:
            dims = dims_of(out)
            if dims is None or not known(dims):
                return None
            new.append([dims[i] for i in reorder(_widened(perm, len(dims)))])
        target = None
        if node.op_type == "Reshape":
            before = dims_of(node.inputs[index]) or ()
            before = tuple(before[i] for i in reorder(list(perm)))
            target = reshape_target(before, new[0], facts_of(node.outputs[0]))
            if target is None:
                return None
        found.append((node, new, target))
    return found


def _apply(shapes: Shapes, graph: Rewriter) -> None:
    """Give the values between their new sizes, and other names: the old ones tell of another layout."""
    for node, sizes, target in shapes:
        for out, dims in zip(node.outputs, sizes, strict=True):
            set_dims(out, dims)
            out.name = graph.fresh(f"{out.name}_moved")
        node.name = f"node_{node.outputs[0].name}"
        if target is not None:
            graph.set_input(node, 1, graph.constant(np.asarray(target, np.int64), node))
            node.attributes.pop("allowzero", None)


@rules.on("Transpose")
def into_an_earlier_one(node: ir.Node, graph: Rewriter) -> bool:
    """A transpose that a chain leads to from an earlier one is done by that one."""
    perm, out = attribute(node, "perm"), node.outputs[0]
    value = node.inputs[0]
    if perm is None or value is None:
        return False
    plan: Plan = []
    order = list(perm)
    first: ir.Node | None = None
    while len(plan) < _MOST_NODES:
        if value is None or len(value.uses()) != 1 or value.is_graph_output():
            return False
        maker = value.producer()
        if maker is None or maker.graph is not node.graph:
            return False
        if maker.op_type == "Transpose" and not maker.domain and attribute(maker, "perm") is not None:
            first = maker
            break
        step = _backwards(maker, order)
        if step is None:
            return False
        index, order = step
        plan.append((maker, index, order))
        value = maker.inputs[index]
    if first is None or not plan:
        return False
    # A value of the new order is the old one, transposed: new = old.transpose(order).
    shapes = _shapes(plan, graph, lambda order: order)
    dims = dims_of(first.outputs[0])
    if shapes is None or dims is None:
        return False
    before = attribute(first, "perm")
    first.attributes["perm"] = ir.AttrInt64s("perm", [before[i] for i in order])
    shapes.append((first, [[dims[i] for i in order]], None))
    _apply(shapes, graph)
    last: ir.Value = node.inputs[0]  # type: ignore[assignment]
    if not out.is_graph_output():
        last.name, out.name = out.name, None
    return graph.forward(out, last)


def _backwards(node: ir.Node, order: list[int]) -> tuple[int, list[int]] | None:
    """The input by which a chain goes on, and the order of its axes."""
    if node.domain or len(node.outputs) != 1:
        return None
    for index in range(min(len(node.inputs), 2)):
        value = input_at(node, index)
        if value is None or value.producer() is None:
            continue
        rank = len(dims_of(value) or ())
        if rank < _moved(order):
            continue
        perm = _widened(order, rank)
        if _indifferent(node, index, perm) and _moved(order) <= len(dims_of(node.outputs[0]) or ()):
            return index, perm
    return None
