"""What nobody reads goes: nodes, and initializers."""

from __future__ import annotations

import onnx_ir as ir

from atonnx_onnx_passes._rewrite import bodies, has_body, release

__all__ = ["RemoveUnused"]


class RemoveUnused(ir.passes.InPlacePass):
    """Remove nodes without a use, in bodies and functions too, and initializers that nothing reads."""

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Remove them."""
        modified = _nodes(model.graph)
        for function in model.functions.values():
            modified |= _nodes(function.graph)
        for name, value in list(model.graph.initializers.items()):
            if not value.uses() and not value.is_graph_output() and not value.is_graph_input():
                del model.graph.initializers[name]
                modified = True
        return ir.passes.PassResult(model, modified)


def _nodes(graph: ir.Graph) -> bool:
    modified = False
    for node in reversed(graph):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            release(node)
            graph.remove(node, safe=True)
            modified = True
        elif node.attributes and has_body(node):
            for body in bodies(node):
                modified |= _nodes(body)
    return modified
