"""Nodes whose result is known now: small constants, and what static sizes tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx_onnx_passes._rewrite import Rewriter, Rules
from atonnx_onnx_passes._values import attribute, constant, dims_of, made_by, sizes

__all__ = ["rules"]

rules = Rules()

_INPUT = 1 << 16  # bytes of a constant that is looked at
_RESULT = 1 << 10  # bytes of a result that is kept

Arrays = list[Any]
Compute = Callable[[ir.Node, Arrays], Any]


def _axes(node: ir.Node, inputs: Arrays) -> tuple[int, ...] | None:
    axes = attribute(node, "axes")
    if axes is None and len(inputs) > 1 and inputs[1] is not None:
        axes = inputs[1].reshape(-1).tolist()
    return None if axes is None else tuple(axes)


def _unsqueeze(node: ir.Node, inputs: Arrays) -> Any:
    return np.expand_dims(inputs[0], _axes(node, inputs) or ())


def _squeeze(node: ir.Node, inputs: Arrays) -> Any:
    return np.squeeze(inputs[0], _axes(node, inputs))


def _reshape(node: ir.Node, inputs: Arrays) -> Any:
    x, target = inputs[0], inputs[1].tolist()
    if not attribute(node, "allowzero", 0):
        target = [x.shape[i] if size == 0 else size for i, size in enumerate(target)]
    return x.reshape(target)


def _concat(node: ir.Node, inputs: Arrays) -> Any:
    return np.concatenate(inputs, attribute(node, "axis"))


def _gather(node: ir.Node, inputs: Arrays) -> Any:
    return np.take(inputs[0], inputs[1], attribute(node, "axis", 0))


def _slice(node: ir.Node, inputs: Arrays) -> Any:
    x = inputs[0]
    starts, ends = inputs[1].tolist(), inputs[2].tolist()
    axes = inputs[3].tolist() if len(inputs) > 3 and inputs[3] is not None else range(len(starts))
    steps = inputs[4].tolist() if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = x.shape[axis]
        if step < 0 and end < -size:
            end = None
        index: list[Any] = [slice(None)] * x.ndim
        index[axis] = slice(start, end, step)
        x = x[tuple(index)]
    return x


def _transpose(node: ir.Node, inputs: Arrays) -> Any:
    return np.transpose(inputs[0], attribute(node, "perm"))


def _expand(node: ir.Node, inputs: Arrays) -> Any:
    shape = np.broadcast_shapes(inputs[0].shape, tuple(inputs[1].tolist()))
    return np.broadcast_to(inputs[0], shape)


def _cast(node: ir.Node, inputs: Arrays) -> Any:
    (x,) = inputs
    to = ir.DataType(attribute(node, "to")).numpy()
    if x.dtype.kind == "f" and to.kind in "iu":
        # What lies outside is cast by each kernel as it likes.
        info = np.iinfo(to)
        if not (np.isfinite(x).all() and (x > float(info.min)).all() and (x < float(info.max)).all()):
            return None
    return x.astype(to) if x.dtype.kind in "fiub" and to.kind in "fiub" else None


def _range(node: ir.Node, inputs: Arrays) -> Any:
    start, limit, delta = inputs
    if start.dtype.kind not in "iu" or abs(int(limit) - int(start)) > _RESULT * abs(int(delta)):
        return None
    return np.arange(int(start), int(limit), int(delta), dtype=start.dtype)


def _constant_of_shape(node: ir.Node, inputs: Arrays) -> Any:
    value = attribute(node, "value")
    fill = np.zeros(1, np.float32) if value is None else value.numpy()
    shape = tuple(inputs[0].tolist())
    return np.full(shape, fill.reshape(()), fill.dtype) if np.prod(shape) * fill.itemsize <= _RESULT else None


def _div(node: ir.Node, inputs: Arrays) -> Any:
    a, b = inputs
    if a.dtype.kind == "f":
        return a / b
    if not b.all():
        return None
    magnitude = np.abs(a) // np.abs(b)
    return np.where((a < 0) != (b < 0), -magnitude, magnitude).astype(a.dtype)


def _mod(node: ir.Node, inputs: Arrays) -> Any:
    a, b = inputs
    if attribute(node, "fmod", 0):
        return np.fmod(a, b)
    return np.mod(a, b) if a.dtype.kind in "iu" and b.all() else None


def _where(node: ir.Node, inputs: Arrays) -> Any:
    return np.where(*inputs)


def _reduce(function: Any) -> Compute:
    def compute(node: ir.Node, inputs: Arrays) -> Any:
        x, axes = inputs[0], _axes(node, inputs)
        if not axes and attribute(node, "noop_with_empty_axes", 0):
            return x
        if x.dtype.kind not in "iu":
            return None  # the order of a float sum is the kernel's
        return function(x, axis=axes or None, keepdims=bool(attribute(node, "keepdims", 1))).astype(x.dtype)

    return compute


def _pure(function: Any) -> Compute:
    """An elementwise function that is exact, or correctly rounded, in every runtime."""
    return lambda node, inputs: function(*inputs)


_COMPUTE: dict[str, Compute] = {
    "Abs": _pure(np.abs),
    "Add": _pure(np.add),
    "And": _pure(np.logical_and),
    "Cast": _cast,
    "Ceil": _pure(np.ceil),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _div,
    "Equal": _pure(np.equal),
    "Expand": _expand,
    "Floor": _pure(np.floor),
    "Gather": _gather,
    "Greater": _pure(np.greater),
    "GreaterOrEqual": _pure(np.greater_equal),
    "Identity": lambda node, inputs: inputs[0],
    "Less": _pure(np.less),
    "LessOrEqual": _pure(np.less_equal),
    "Mod": _mod,
    "Mul": _pure(np.multiply),
    "Neg": _pure(np.negative),
    "Not": _pure(np.logical_not),
    "Or": _pure(np.logical_or),
    "Range": _range,
    "ReduceMax": _reduce(np.max),
    "ReduceMin": _reduce(np.min),
    "ReduceProd": _reduce(np.prod),
    "ReduceSum": _reduce(np.sum),
    "Reshape": _reshape,
    "Slice": _slice,
    "Sqrt": _pure(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _pure(np.subtract),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
    "Xor": _pure(np.logical_xor),
}
# These only move elements, of any dtype; the others compute in numpy's own dtypes.
_MOVES = frozenset("Concat Expand Gather Identity Reshape Slice Squeeze Transpose Unsqueeze Where".split())


@rules.on(*_COMPUTE)
def fold(node: ir.Node, graph: Rewriter) -> bool:
    """A node of small constants is computed."""
    if len(node.outputs) != 1 or node.outputs[0].is_graph_output() or not node.inputs:
        return False
    inputs: Arrays = []
    for value in node.inputs:
        array = constant(value, _INPUT) if value is not None else None
        if array is None and value is not None:
            return False
        inputs.append(array)
    if node.op_type not in _MOVES and any(a is not None and a.dtype.kind not in "fiub" for a in inputs):
        return False
    out = node.outputs[0]
    with np.errstate(all="ignore"):
        try:
            result = _COMPUTE[node.op_type](node, inputs)
        except (ValueError, IndexError, ZeroDivisionError, np.exceptions.AxisError):
            return False  # the model is wrong at this place; whoever runs it will say so
    if result is None or result.nbytes > _RESULT:
        return False
    result = np.asarray(result)
    if out.dtype is not None and result.dtype != out.dtype.numpy():
        return False
    return graph.forward(out, graph.constant(result, node, out))


@rules.on("Shape", "Gather", "Slice", "Concat", "Squeeze", "Unsqueeze", "Reshape")
def static_sizes(node: ir.Node, graph: Rewriter) -> bool:
    """Sizes that are numbers, though they are read off a tensor."""
    out = node.outputs[0]
    if out.dtype is not ir.DataType.INT64 or out.is_graph_output():
        return False
    content, dims = sizes(out), dims_of(out)
    if content is None or dims is None or not all(isinstance(size, int) for size in (*content, *dims)):
        return False
    if len(content) != np.prod(dims, dtype=np.int64):
        return False
    array = np.asarray(content, np.int64).reshape(dims)
    return graph.forward(out, graph.constant(array, node, out))


@rules.on("Size")
def static_count(node: ir.Node, graph: Rewriter) -> bool:
    """The number of elements of a static shape."""
    dims, out = dims_of(node.inputs[0]), node.outputs[0]
    if dims is None or not all(isinstance(size, int) for size in dims) or out.is_graph_output():
        return False
    return graph.forward(out, graph.constant(np.asarray(np.prod(dims, dtype=np.int64)), node, out))


@rules.on("Constant")
def constant_node(node: ir.Node, graph: Rewriter) -> bool:
    """Outside of functions a constant is an initializer."""
    out = node.outputs[0]
    if graph.in_function or out.is_graph_output():
        return False
    name, attr = next(iter(node.attributes.items()))
    if name == "value":
        if attr.value.nbytes > _RESULT:
            return graph.forward(out, graph.initializer(attr.value, out, out))
        return graph.forward(out, graph.constant(attr.value.numpy(), node, out))
    dtype = {"value_int": np.int64, "value_float": np.float32}.get(name.removesuffix("s"))
    if dtype is None:
        return False
    return graph.forward(out, graph.constant(np.asarray(attr.value, dtype), node, out))


@rules.on("Gather", "Unsqueeze")
def size_of_shape(node: ir.Node, graph: Rewriter) -> bool:
    """One symbolic size taken out of a whole shape, as a vector of one, is a Shape of that axis."""
    gather: ir.Node | None = node if node.op_type == "Gather" else made_by(node.inputs[0], "Gather")
    shape = made_by(gather.inputs[0], "Shape") if gather is not None else None
    if gather is None or shape is None or shape.attributes or graph.opset < 15:
        return False
    index = constant(gather.inputs[1])
    if index is None or index.size != 1 or dims_of(node.outputs[0]) != (1,):
        return False
    rank = len(dims_of(shape.inputs[0]) or ())
    at = int(index.reshape(()))
    if not -rank <= at < rank:
        return False
    attributes = [ir.AttrInt64("start", at % rank), ir.AttrInt64("end", at % rank + 1)]
    return graph.become(node, "Shape", [shape.inputs[0]], attributes, [gather, shape])
