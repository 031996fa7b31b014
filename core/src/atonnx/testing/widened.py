"""A model in float32 in place of half types, for runtimes that lack kernels for those."""

from __future__ import annotations

import numpy as np
import onnx

__all__ = ["widened"]

_HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
_FLOAT = onnx.TensorProto.FLOAT
_DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


def widened(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with float32 for float16 and bfloat16; None for a model without them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    changed = _graph(made.graph)
    for function in made.functions:
        changed |= _nodes(function.node)
        del function.value_info[:]
    return made if changed else None


def _graph(graph: onnx.GraphProto) -> bool:
    changed = False
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        if kind.elem_type in _HALF:
            kind.elem_type = _FLOAT
            changed = True
    for tensor in graph.initializer:
        changed |= _tensor(tensor)
    return _nodes(graph.node) or changed


def _nodes(nodes: object) -> bool:
    changed = False
    for node in nodes:  # type: ignore[attr-defined]
        for attribute in node.attribute:
            if attribute.name in _DTYPE_ATTRIBUTES and attribute.i in _HALF:
                attribute.i = _FLOAT
                changed = True
            if attribute.HasField("t"):
                changed |= _tensor(attribute.t)
            if attribute.HasField("g"):
                changed |= _graph(attribute.g)
    return changed


def _tensor(tensor: onnx.TensorProto) -> bool:
    if tensor.data_type not in _HALF:
        return False
    array = onnx.numpy_helper.to_array(tensor).astype(np.float32)
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    return True
