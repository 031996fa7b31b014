"""Nodes that only rearrange or rescale weights become initializers with a recipe.

No weight is read or copied here: a recipe is computed while the weight is written to a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from atonnx.build.dtypes import to_torch
from atonnx.build.weights import Derived, Recipe, Transpose, Transposed
from atonnx_onnx_passes._rewrite import Rewriter, graphs
from atonnx_onnx_passes._values import (
    attribute,
    constant,
    dims_of,
    input_at,
    ints,
    is_weight,
    nbytes,
    set_dims,
)

__all__ = ["Converted", "Elementwise", "FoldWeights", "Joined", "Reshaped", "Sliced", "Taken", "TakenBy"]

_GROWTH = 1 << 18  # bytes by which one result may be larger than what it is made of
_FREE = 1 << 10  # bytes up to which a constant may be read by recipes and nodes alike, as often as they like


def _vector(tape: ir.tape.Tape, numbers: Sequence[int], name: str) -> ir.Value:
    return tape.initializer(ir.tensor(np.asarray(numbers, np.int64), name=name))


@dataclass(frozen=True)
class Reshaped(Recipe):
    """The same elements in another shape."""

    shape: tuple[int, ...]

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """A view where that is possible."""
        return sources[0].reshape(self.shape)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Reshape."""
        return tape.op("Reshape", [sources[0], _vector(tape, self.shape, "shape")])


@dataclass(frozen=True)
class Joined(Recipe):
    """Weights one after the other along an axis."""

    axis: int

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """torch.cat."""
        return torch.cat(sources, self.axis)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Concat."""
        return tape.op("Concat", list(sources), {"axis": self.axis})


@dataclass(frozen=True)
class Sliced(Recipe):
    """A range along an axis."""

    axis: int
    start: int
    stop: int
    step: int = 1

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """A view."""
        index: list[slice] = [slice(None)] * self.axis + [slice(self.start, self.stop, self.step)]
        return sources[0][tuple(index)]

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Slice."""
        numbers = {"starts": self.start, "ends": self.stop, "axes": self.axis, "steps": self.step}
        return tape.op("Slice", [sources[0], *(_vector(tape, [n], name) for name, n in numbers.items())])


@dataclass(frozen=True)
class Taken(Recipe):
    """Rows of an axis, chosen by number."""

    axis: int
    rows: tuple[int, ...]

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """torch.index_select."""
        rows = torch.tensor(self.rows, device=sources[0].device)
        return sources[0].index_select(self.axis, rows)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Gather."""
        return tape.op("Gather", [sources[0], _vector(tape, self.rows, "rows")], {"axis": self.axis})


@dataclass(frozen=True)
class TakenBy(Recipe):
    """Rows of an axis, chosen by the numbers in a buffer, as of positions; sources: weight, numbers."""

    axis: int

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """torch.index_select, where negative numbers count from the end."""
        weight, rows = sources
        return weight.index_select(self.axis, torch.where(rows < 0, rows + weight.shape[self.axis], rows))

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Gather."""
        return tape.op("Gather", list(sources), {"axis": self.axis})


@dataclass(frozen=True)
class Elementwise(Recipe):
    """An elementwise operator of ONNX's that torch has as well."""

    op_type: str

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """The torch function."""
        return _FUNCTIONS[self.op_type](*sources)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """The operator."""
        return tape.op(self.op_type, list(sources))


@dataclass(frozen=True)
class Converted(Recipe):
    """Another floating-point dtype."""

    dtype: torch.dtype

    def compute(self, *sources: torch.Tensor) -> torch.Tensor:
        """The weight itself when it has the dtype."""
        return sources[0].to(self.dtype)

    def build(self, tape: ir.tape.Tape, *sources: ir.Value) -> ir.Value:
        """Cast."""
        to = ir.tensor_adapters.from_torch_dtype(self.dtype)
        return tape.op("Cast", [sources[0]], {"to": int(to)})


_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "Add": torch.add,
    "Div": torch.div,
    "Exp": torch.exp,
    "Mul": torch.mul,
    "Neg": torch.neg,
    "Reciprocal": torch.reciprocal,
    "Sqrt": torch.sqrt,
    "Sub": torch.sub,
}

Made = list[tuple[Recipe, list[ir.Value]]]


@dataclass
class _Step:
    """A node that can be a recipe: for each output, the recipe and what it reads."""

    node: ir.Node
    made: Made
    sources: list[ir.Value] = field(default_factory=list)


def _recipes(node: ir.Node) -> Made | None:
    """The recipes that stand for a node's outputs; None when it cannot be one."""
    x, op_type = node.inputs[0] if node.inputs else None, node.op_type
    dims = dims_of(x)
    if x is None or dims is None or not all(isinstance(size, int) for size in dims):
        return None
    if op_type == "Transpose":
        perm = attribute(node, "perm") or range(len(dims) - 1, -1, -1)
        return [(Transpose(tuple(perm)), [x])]
    if op_type in ("Reshape", "Squeeze", "Unsqueeze", "Flatten"):
        if len(node.inputs) > 1 and constant(node.inputs[1]) is None:
            return None
        shape = dims_of(node.outputs[0])
        if shape is None or not shape or not all(isinstance(size, int) and size for size in shape):
            return None
        return [(Reshaped(shape), [x])]
    if op_type == "Concat":
        return [(Joined(attribute(node, "axis") % len(dims)), [v for v in node.inputs if v is not None])]
    if op_type == "Split":
        return _split(node, x, dims)
    if op_type == "Slice":
        return _slice(node, x, dims)
    if op_type == "Gather":
        rows, chosen = constant(node.inputs[1], 1 << 16), node.inputs[1]
        axis = attribute(node, "axis", 0) % len(dims)
        if chosen is not None and is_weight(chosen) and len(dims_of(chosen) or ()) == 1:
            return [(TakenBy(axis), [x, chosen])]
        if rows is None or rows.ndim != 1 or not rows.size or not (abs(rows) < dims[axis]).all():
            return None
        return [(Taken(axis, tuple(int(row) % dims[axis] for row in rows)), [x])]
    if op_type == "Cast":
        to = ir.DataType(attribute(node, "to"))
        if x.dtype is None or not (x.dtype.is_floating_point() and to.is_floating_point()):
            return None
        if x.dtype.bitwidth <= 8:
            return None  # somebody quantized it, so that it is stored and loaded as such
        return [(Converted(to_torch(to)), [x])]
    if op_type in _FUNCTIONS and not node.attributes and all(v is not None for v in node.inputs):
        if x.dtype not in (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
            return None
        return [(Elementwise(op_type), [v for v in node.inputs if v is not None])]
    return None


def _split(node: ir.Node, x: ir.Value, dims: Sequence[int]) -> Made | None:
    axis = attribute(node, "axis", 0) % len(dims)
    made: Made = []
    start = 0
    for out in node.outputs:
        shape = dims_of(out)
        if shape is None or not isinstance(shape[axis], int):
            return None
        made.append((Sliced(axis, start, start + shape[axis]), [x]))
        start += shape[axis]
    return made if start == dims[axis] else None


def _slice(node: ir.Node, x: ir.Value, dims: Sequence[int]) -> Made | None:
    starts, ends = ints(node.inputs[1]), ints(node.inputs[2])
    axes = ints(input_at(node, 3)) if input_at(node, 3) is not None else tuple(range(len(starts or ())))
    steps = ints(input_at(node, 4)) if input_at(node, 4) is not None else (1,)
    if starts is None or ends is None or axes is None or steps is None or len(axes) != 1 or steps[0] < 1:
        return None
    axis = axes[0] % len(dims)
    start, stop, step = slice(starts[0], ends[0], steps[0]).indices(dims[axis])
    return [(Sliced(axis, start, stop, step), [x])]


class FoldWeights(ir.passes.InPlacePass):
    """Weights by recipe in place of nodes that rearrange them, such as the Transpose of a Linear.

    A weight that something else reads as it is stays as it is, since it would be stored twice; the same
    holds for weights whose recipes give more bytes than they have, apart from one small result.
    """

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Fold what can be folded."""
        steps = self._steps(model)
        self._drop_shared(steps)
        groups = self._groups(steps)
        rewriter = Rewriter(model)
        modified = False
        for nodes, leaves in groups:
            results = [
                out
                for node in nodes
                for out in node.outputs
                if out.is_graph_output() or any(use.node not in steps for use in out.uses())
            ]
            sizes = [nbytes(out) for out in results]
            growth = _GROWTH if len(results) == 1 else _FREE
            if not results or min(sizes) < 0 or sum(sizes) > sum(map(nbytes, leaves)) + growth:
                continue
            modified |= self._fold(steps, results, leaves, rewriter)
        return ir.passes.PassResult(model, modified)

    @staticmethod
    def _steps(model: ir.Model) -> dict[ir.Node, _Step]:
        """Nodes that read weights, constants and each other only."""
        steps: dict[ir.Node, _Step] = {}
        for graph, _, in_function in graphs(model):
            if in_function:
                continue
            for node in graph:
                if node.domain or not node.inputs:
                    continue
                first = node.inputs[0]
                if first is None or not (first.is_initializer() or first.producer() in steps):
                    continue
                made = _recipes(node)
                if made is None or any(out.is_graph_output() for out in node.outputs):
                    continue
                sources = list(dict.fromkeys(value for _, values in made for value in values))
                if all(_stored(v) or v.producer() in steps for v in sources):
                    steps[node] = _Step(node, made, sources)
        return steps

    @staticmethod
    def _drop_shared(steps: dict[ir.Node, _Step]) -> None:
        """Leave out what reads a weight that others read as it is."""
        checked = set()
        waiting = list(
            dict.fromkeys(v for step in steps.values() for v in step.sources if v.producer() is None)
        )
        while waiting:
            leaf = waiting.pop()
            if leaf in checked or _free(leaf):
                continue
            if not leaf.is_graph_output() and all(use.node in steps for use in leaf.uses()):
                continue
            checked.add(leaf)
            falling = [use.node for use in leaf.uses()]
            while falling:
                step = steps.pop(falling.pop(), None)
                if step is not None:
                    waiting += [v for v in step.sources if v.producer() is None]
                    falling += [use.node for out in step.node.outputs for use in out.uses()]

    @staticmethod
    def _groups(steps: dict[ir.Node, _Step]) -> list[tuple[list[ir.Node], list[ir.Value]]]:
        """Nodes that weights or each other connect, with the weights that they read."""
        parent: dict[Any, Any] = {}

        def find(item: Any) -> Any:
            while parent.setdefault(item, item) is not item:
                parent[item] = parent[parent[item]]
                item = parent[item]
            return item

        leaves: dict[ir.Value, None] = {}
        for node, step in steps.items():
            for value in step.sources:
                if value.producer() is not None:
                    parent[find(value.producer())] = find(node)
                elif not _free(value):
                    leaves[value] = None
                    parent[find(value)] = find(node)
        groups: dict[Any, tuple[list[ir.Node], list[ir.Value]]] = {}
        for node in steps:
            groups.setdefault(find(node), ([], []))[0].append(node)
        for leaf in leaves:
            groups[find(leaf)][1].append(leaf)
        return [group for group in groups.values() if group[1]]

    def _fold(
        self,
        steps: dict[ir.Node, _Step],
        results: list[ir.Value],
        leaves: list[ir.Value],
        rewriter: Rewriter,
    ) -> bool:
        made: dict[ir.Value, Any] = {}
        tensors = []
        for out in results:
            tensor = _derived(out, steps, made)
            if tensor.dtype != out.dtype or tuple(tensor.shape.numpy()) != dims_of(out):
                return False
            tensors.append(tensor)
        for out, tensor in zip(results, tensors, strict=True):
            if len(results) == len(leaves) == 1:
                new = leaves[0]
                tensor.name = new.name
                new.const_value = tensor
                new.type = out.type
                set_dims(new, dims_of(out))
            else:
                new = rewriter.initializer(tensor, out, out)
            rewriter.forward(out, new)
        rewriter.drop_dead()
        return True


def _stored(value: ir.Value) -> bool:
    return value.is_initializer() and not value.is_graph_input()


def _free(value: ir.Value) -> bool:
    """A small constant: it may be stored beside what is made of it."""
    return not is_weight(value) and value.const_value is not None and value.const_value.nbytes <= _FREE


def _derived(value: ir.Value, steps: dict[ir.Node, _Step], made: dict[ir.Value, Any]) -> Any:
    """The tensor that a value holds, by its recipe."""
    stack = [value]
    while stack:
        current = stack[-1]
        node = current.producer()
        if node is None:
            made.setdefault(current, current.const_value)
        if current in made:
            stack.pop()
            continue
        recipe, sources = steps[node].made[current.index() or 0]  # type: ignore[index]
        missing = [source for source in sources if source not in made]
        if missing:
            stack += missing
            continue
        tensors = [made[source] for source in sources]
        if isinstance(recipe, Transpose):
            made[current] = Transposed(tensors[0], recipe.perm)
        else:
            made[current] = Derived(recipe, *tensors)
        stack.pop()
    return made[value]
