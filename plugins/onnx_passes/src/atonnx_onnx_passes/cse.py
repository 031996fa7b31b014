"""Equal nodes are computed once."""

from __future__ import annotations

from collections import ChainMap
from typing import Any

import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, bodies, has_body
from atonnx_onnx_passes._values import dims_of, sizes

__all__ = ["MergeEqualNodes"]

_COMMUTE = frozenset(
    "Add And BitwiseAnd BitwiseOr BitwiseXor Equal Mul Or Xor".split()  # Max and Min: not for two nans
)
_RANDOM = frozenset(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)
_MOST_BYTES = 1024  # of a tensor in an attribute that is compared


class MergeEqualNodes(ir.passes.InPlacePass):
    """One node for those with the same operator, inputs and attributes, and for equal sizes.

    A node in a body is also merged into one before it outside of the body. Nodes of other domains
    stay: nobody says that they give the same each time.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Merge in all graphs."""
        rewriter = Rewriter(model)
        modified = self._merge(model.graph, ChainMap(), rewriter)
        for function in model.functions.values():
            modified |= self._merge(function.graph, ChainMap(), rewriter)
        return ir.passes.PassResult(model, modified)

    def _merge(self, graph: ir.Graph, seen: ChainMap[Any, ir.Node], rewriter: Rewriter) -> bool:
        modified = False
        for node in graph:
            if node.attributes and has_body(node):
                for body in bodies(node):
                    modified |= self._merge(body, seen.new_child(), rewriter)
                continue
            for key in (_key(node), _sizes_key(node)):
                if key is None:
                    continue
                first = seen.get(key)
                if first is None or first.graph is None:
                    seen[key] = node
                elif _replace(node, first, rewriter):
                    modified = True
                    break
        return modified


def _replace(node: ir.Node, first: ir.Node, rewriter: Rewriter) -> bool:
    if any(value.is_graph_output() for value in node.outputs):
        # Only a node of one output, so that nothing is half done when a name forbids it.
        if len(node.outputs) > 1:
            return False
    done = [rewriter.forward(a, b) for a, b in zip(node.outputs, first.outputs, strict=True)]
    rewriter.drop_dead()
    return any(done)


def _key(node: ir.Node) -> Any:
    if node.domain or node.op_type in _RANDOM:
        return None
    inputs: Any = [id(value) for value in node.inputs]
    if node.op_type in _COMMUTE:
        inputs.sort()
    if not node.attributes:
        return node.op_type, len(node.outputs), tuple(inputs)
    attributes = []
    for name, attr in sorted(node.attributes.items()):
        value: Any = attr.ref_attr_name if attr.is_ref() else attr.value
        if attr.type is ir.AttributeType.TENSOR and not attr.is_ref():
            if value.nbytes > _MOST_BYTES:
                return None
            value = (value.dtype, tuple(value.shape.numpy()), value.tobytes())
        elif isinstance(value, (list, tuple)):
            value = tuple(value)
        elif isinstance(value, float):
            value = value.hex()
        attributes.append((name, attr.type, attr.is_ref(), value))
    return node.op_type, len(node.outputs), tuple(inputs), tuple(attributes)


def _sizes_key(node: ir.Node) -> Any:
    """A key under which values meet that hold the same symbolic sizes in the same form."""
    if node.domain or len(node.outputs) != 1 or node.outputs[0].dtype is not ir.DataType.INT64:
        return None
    content, dims = sizes(node.outputs[0]), dims_of(node.outputs[0])
    if not content or dims is None or None in content or len(dims) > 1:
        return None
    return "sizes", len(dims), content
