"""What is known of a value: sizes, constant contents, attributes. Weights are never read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Value
from atonnx.build.sizes import SizeFacts
from atonnx.build.weights import Derived, Weight

__all__ = [
    "attribute",
    "constant",
    "dims_of",
    "facts_of",
    "holds",
    "input_at",
    "is_weight",
    "ints",
    "known",
    "made_by",
    "nbytes",
    "reshape_target",
    "same_dims",
    "set_dims",
    "sizes",
]

_NO_FACTS = SizeFacts()
_MOST_SIZES = 64


def input_at(node: ir.Node, index: int) -> ir.Value | None:
    """An input of a node, None where it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """The value of an attribute."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def made_by(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that makes ``value``, if it is one of these ONNX operators."""
    node = value.producer() if value is not None else None
    return node if node is not None and not node.domain and node.op_type in op_types else None


def dims_of(value: ir.Value | None) -> tuple[Any, ...] | None:
    """Sizes as ints, symbolic sizes and None; None when the rank is not known."""
    if value is None:
        return None
    if isinstance(value, Value):
        return value.dims
    shape = value.shape
    return None if shape is None else tuple(d if isinstance(d, int) else None for d in shape)


def set_dims(value: ir.Value, dims: Sequence[Any] | None) -> None:
    """Tell the sizes of a value."""
    if isinstance(value, Value):
        value.dims = None if dims is None else tuple(dims)
    elif dims is not None:
        value.shape = ir.Shape(list(dims))


def known(dims: Sequence[Any] | None) -> bool:
    """Whether all sizes are known, as numbers or symbols."""
    return dims is not None and None not in dims


def same_dims(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Whether two values surely have one shape."""
    first = dims_of(a)
    return known(first) and first == dims_of(b)


def facts_of(value: ir.Value) -> SizeFacts:
    """What is known of the symbols in sizes."""
    return value.scope.session.facts if isinstance(value, Value) else _NO_FACTS


def _tensor(value: ir.Value | None) -> Any:
    if value is None or value.is_graph_input():
        return None
    tensor = value.const_value
    if tensor is None:
        node = made_by(value, "Constant")
        found = node.attributes.get("value") if node is not None else None
        tensor = found.value if found is not None and not found.is_ref() else None
    return tensor


def is_weight(value: ir.Value | None) -> bool:
    """Whether a value is an initializer of the model's, or derived from one."""
    return value is not None and isinstance(value.const_value, (Weight, Derived))


def constant(value: ir.Value | None, limit: int = 1 << 10) -> np.ndarray | None:
    """The content of a constant of at most ``limit`` bytes; None for weights, whose content may change."""
    tensor = _tensor(value)
    if tensor is None or isinstance(tensor, (Weight, Derived)):
        return None
    if type(tensor) is ir.Tensor:  # has the array; its own nbytes is slow
        array: np.ndarray = tensor.numpy()
        return array if array.nbytes <= limit else None
    if tensor.nbytes > limit:
        return None
    if tensor.dtype == ir.DataType.STRING:
        return None
    return np.asarray(tensor.numpy())


def ints(value: ir.Value | None) -> tuple[int, ...] | None:
    """The integers in a constant."""
    array = constant(value)
    return None if array is None or array.dtype.kind not in "iu" else tuple(array.reshape(-1).tolist())


def holds(value: ir.Value | None, number: float) -> bool:
    """Whether a value is a constant of nothing but ``number``; 0.0 and -0.0 are told apart."""
    array = constant(value)
    if array is None or not array.size:
        return False
    if array.dtype.kind == "b":
        return bool((array == bool(number)).all())
    wanted = np.asarray(number).astype(array.dtype)
    return bool((array == wanted).all()) and bool((np.signbit(array) == np.signbit(wanted)).all())


def nbytes(value: ir.Value) -> int:
    """Bytes of a value of static shape; -1 when it has none."""
    dims = dims_of(value)
    if dims is None or value.dtype is None or not all(isinstance(d, int) for d in dims):
        return -1
    return int(np.prod(dims, dtype=np.int64) * value.dtype.itemsize)


def sizes(value: ir.Value | None) -> tuple[Any, ...] | None:
    """What a small int64 scalar or vector holds: ints, symbolic sizes, and None for unknown ones."""
    if value is None or value.dtype is not ir.DataType.INT64:
        return None
    content = value.content if isinstance(value, Value) else None
    if content is not None:
        return content
    dims = dims_of(value)
    if dims is None or len(dims) > 1:
        return None
    numbers = ints(value)
    if numbers is not None:
        return numbers
    node = made_by(value, *_CONTENT)
    if node is None or any(attr.is_ref() for attr in node.attributes.values()):
        return None
    found = _CONTENT[node.op_type](node)
    if found is None or len(found) > _MOST_SIZES:
        return None
    if isinstance(value, Value) and None not in found:
        value.content = found
    return found


def _of_shape(node: ir.Node) -> tuple[Any, ...] | None:
    dims = dims_of(node.inputs[0])
    if dims is None:
        return None
    return dims[attribute(node, "start", 0) : attribute(node, "end", len(dims))]


def _of_concat(node: ir.Node) -> tuple[Any, ...] | None:
    parts = [sizes(value) for value in node.inputs]
    return None if None in parts else tuple(size for part in parts for size in part or ())


def _of_same(node: ir.Node) -> tuple[Any, ...] | None:
    return sizes(node.inputs[0])


def _of_gather(node: ir.Node) -> tuple[Any, ...] | None:
    found, index = sizes(node.inputs[0]), ints(node.inputs[1])
    source = dims_of(node.inputs[0])
    if found is None or index is None or source is None or len(source) != 1:
        return None
    if not all(-len(found) <= i < len(found) for i in index):
        return None
    return tuple(found[i] for i in index)


def _of_slice(node: ir.Node) -> tuple[Any, ...] | None:
    found, start, end = sizes(node.inputs[0]), ints(input_at(node, 1)), ints(input_at(node, 2))
    step = ints(input_at(node, 4)) if input_at(node, 4) is not None else (1,)
    if found is None or not start or not end or not step or step[0] < 1:
        return None
    return found[start[0] : end[0] : step[0]]


_CONTENT: dict[str, Any] = {
    "Shape": _of_shape,
    "Concat": _of_concat,
    "Identity": _of_same,
    "Squeeze": _of_same,
    "Unsqueeze": _of_same,
    "Reshape": _of_same,
    "Gather": _of_gather,
    "Slice": _of_slice,
}


def reshape_target(
    source: Sequence[Any] | None, target: Sequence[Any] | None, facts: SizeFacts
) -> list[int] | None:
    """A constant target that reshapes ``source`` to ``target`` at all sizes; None when there is none.

    ``0`` copies a size at its place; ``-1`` is used only where no other size can be zero.
    """
    if target is None or not known(target):
        return None
    symbolic = [i for i, size in enumerate(target) if not isinstance(size, int)]
    if any(isinstance(size, int) and size == 0 for size in target):
        return None
    before = source or ()
    copied = [i for i in symbolic if i < len(before) and before[i] == target[i]]
    rest = [i for i in symbolic if i not in copied]
    if len(rest) > 1 or (rest and not all(facts.provably_nonzero(target[i].expr) for i in copied)):
        return None
    return [-1 if i in rest else 0 if i in copied else size for i, size in enumerate(target)]
