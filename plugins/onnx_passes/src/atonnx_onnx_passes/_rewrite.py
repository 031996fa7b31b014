"""Rewriting by rules: each looks at one node and what is before it, and changes the graph in place.

A node that changes keeps its outputs, their names, and its metadata, so that what stands for several
nodes tells of the one that was nearest to the output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from atonnx.build import Value
from atonnx_onnx_passes._values import dims_of, known, set_dims

__all__ = ["Rewrite", "Rewriter", "Rule", "Rules", "bodies", "graphs", "has_body", "release"]

_GRAPHS = (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
_MOST_STEPS = 16  # changes of one node in one run; no set of rules is known to need more than five
_SHARED = 64  # bytes up to which constants are shared by content


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among a node's attributes."""
    for attr in node.attributes.values():
        if attr.type is ir.AttributeType.GRAPH and not attr.is_ref():
            yield attr.value
        elif attr.type is ir.AttributeType.GRAPHS and not attr.is_ref():
            yield from attr.value


def has_body(node: ir.Node) -> bool:
    """Whether a node has graphs among its attributes."""
    return any(attr.type in _GRAPHS for attr in node.attributes.values())


def graphs(model: ir.Model) -> Iterator[tuple[ir.Graph, int, bool]]:
    """All graphs, outer ones first: the graph, its opset, whether it belongs to a function."""
    for top, in_function in [(model.graph, False), *((f.graph, True) for f in model.functions.values())]:
        imports = top.opset_imports or model.opset_imports
        opset = imports.get("", 1)
        waiting = [top]
        while waiting:
            graph = waiting.pop()
            yield graph, opset, in_function
            waiting += [body for node in graph if node.attributes and has_body(node) for body in bodies(node)]


def release(node: ir.Node) -> list[ir.Node]:
    """Let the bodies of a node, which goes, read nothing any more; the nodes that they have read."""
    freed = []
    for body in bodies(node):
        for inner in body:
            freed += release(inner)
            for index, value in enumerate(inner.inputs):
                maker = value.producer() if value is not None else None
                if maker is not None:
                    freed.append(maker)
                inner.replace_input_with(index, None)
    return freed


class Rewriter:
    """What a rule can do to the graph."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self.opset = model.graph.opset_imports.get("", 1)
        self.in_function = False
        self._names: set[str] | None = None
        self._constants: dict[Any, ir.Value] | None = None
        self._suspects: list[ir.Node] = []

    # ------------------------------------------------------------- changing

    def forward(self, old: ir.Value, new: ir.Value) -> bool:
        """Let everything that reads ``old`` read ``new``; False where an output's name forbids it."""
        node = old.producer()
        if node is None or old is new:
            return False
        if old.is_graph_output():
            maker = new.producer()
            if maker is None or maker.graph is not node.graph or new.is_graph_output():
                return False
            self._take_place(old, new)
        elif not new.is_graph_input() and known(dims_of(old)) and not known(dims_of(new)):
            set_dims(new, dims_of(old))
        old.replace_all_uses_with(new)
        self._suspects.append(node)
        return True

    @staticmethod
    def _take_place(old: ir.Value, new: ir.Value) -> None:
        """Make ``new`` the output that ``old`` was, under its name."""
        outputs = old.producer().graph.outputs  # type: ignore[union-attr]
        name, old.name = old.name, None
        new.name = name
        new.metadata_props.update(old.metadata_props)
        if isinstance(new, Value) and isinstance(old, Value):
            new.is_complex = old.is_complex
        if dims_of(old) is not None:
            set_dims(new, dims_of(old))
        for index, value in enumerate(outputs):
            if value is old:
                outputs[index] = new

    def become(
        self,
        node: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr] = (),
        absorbed: Iterable[ir.Node] = (),
    ) -> bool:
        """Make ``node`` another operator of ONNX's; it stands for the ``absorbed`` nodes too."""
        attributes = tuple(attributes)
        self._suspect_inputs(node)
        node.domain, node.op_type, node.overload = "", op_type, ""
        node.attributes.clear()
        for attr in attributes:
            node.attributes[attr.name] = attr
        if len(inputs) != len(node.inputs):
            node.resize_inputs(len(inputs))
        for index, value in enumerate(inputs):
            if node.inputs[index] is not value:
                node.replace_input_with(index, value)
        for other in absorbed:
            for key, text in other.metadata_props.items():
                node.metadata_props.setdefault(key, text)
        return True

    def set_input(self, node: ir.Node, index: int, value: ir.Value | None) -> bool:
        """Let ``node`` read another value."""
        self._suspect_inputs(node)
        node.replace_input_with(index, value)
        return True

    def insert(
        self,
        before: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Iterable[ir.Attr] = (),
        *,
        dtype: ir.DataType | None,
        dims: Sequence[Any] | None,
    ) -> ir.Value:
        """The output of a new node ahead of ``before``, whose metadata it has."""
        near = before.outputs[0]
        value = _new_value(near, dtype, dims, self.fresh(f"{near.name}_part"))
        node = ir.Node(
            "",
            op_type,
            inputs,
            attributes,
            outputs=[value],
            version=before.version,
            name=f"node_{value.name}",
            metadata_props=dict(before.metadata_props),
        )
        before.graph.insert_before(before, node)  # type: ignore[union-attr]
        return value

    def instead(
        self,
        values: Sequence[ir.Value],
        op_type: str,
        x: ir.Value,
        more: Sequence[ir.Value | None] = (),
        attributes: Iterable[ir.Attr] = (),
    ) -> bool:
        """One new node right behind what makes ``x``; its outputs stand instead of ``values``.

        It has their names, and the metadata of what makes the first. ``more`` are constants; none of
        ``values`` may be an output of a graph.
        """
        first: ir.Node = values[0].producer()  # type: ignore[assignment]
        graph: ir.Graph = first.graph  # type: ignore[assignment]
        outputs = []
        for value in values:
            made = _new_value(value, value.dtype, dims_of(value), value.name or "")
            made.metadata_props.update(value.metadata_props)
            value.name = None
            outputs.append(made)
        node = ir.Node(
            "",
            op_type,
            [x, *more],
            attributes,
            outputs=outputs,
            version=first.version,
            name=f"node_{outputs[0].name}",
            metadata_props=dict(first.metadata_props),
        )
        maker = x.producer()
        if maker is not None and maker.graph is graph:
            graph.insert_after(maker, node)
        else:
            graph.insert_before(graph[0], node)
        for value, made in zip(values, outputs, strict=True):
            self.forward(value, made)
        return True

    def constant(self, array: np.ndarray, near: ir.Node, instead: ir.Value | None = None) -> ir.Value:
        """A constant that ``near`` can read: an initializer, or in a function the output of a node.

        A new one takes the name of the value that it stands ``instead`` of.
        """
        tensor = ir.Tensor(np.ascontiguousarray(array).reshape(array.shape))
        if self.in_function:
            attr = ir.Attr("value", ir.AttributeType.TENSOR, tensor)
            made = self.insert(near, "Constant", (), [attr], dtype=tensor.dtype, dims=array.shape)
            made.const_value = tensor
            return made
        if self._constants is None:
            self._constants = {
                _key(value.const_value): value
                for value in self.model.graph.initializers.values()
                if type(value.const_value) is ir.Tensor
                and value.const_value.nbytes <= _SHARED
                and not value.is_graph_input()
            }
        small = tensor.nbytes <= _SHARED
        found = self._constants.get(_key(tensor)) if small else None
        if found is not None and found.is_initializer():
            return found
        value = self.initializer(tensor, near.outputs[0], instead)
        if small:
            self._constants[_key(tensor)] = value
        return value

    def initializer(
        self, tensor: ir.TensorProtocol, near: ir.Value, instead: ir.Value | None = None, name: str = "const"
    ) -> ir.Value:
        """A new initializer of the model, named ``name`` or as the value that it stands ``instead`` of."""
        if instead is not None and instead.name is not None:
            name, instead.name = instead.name, None
        else:
            name = self.fresh(name)
        value = _new_value(near, tensor.dtype, tuple(tensor.shape.numpy()), name, root=True)
        tensor.name = name
        value.const_value = tensor
        self.model.graph.register_initializer(value)
        return value

    def fresh(self, name: str) -> str:
        """``name``, or one like it that no value has."""
        if self._names is None:
            names: set[str | None] = set()
            for graph, _, _ in graphs(self.model):
                names.update(value.name for value in graph.inputs)
                names.update(graph.initializers)
                names.update(value.name for node in graph for value in node.outputs)
            self._names = {name for name in names if name is not None}
        found, count = name, 0
        while found in self._names:
            count += 1
            found = f"{name}_{count}"
        self._names.add(found)
        return found

    # -------------------------------------------------------------- cleaning

    def _suspect_inputs(self, node: ir.Node) -> None:
        makers = [value.producer() for value in node.inputs if value is not None]
        self._suspects += [maker for maker in makers if maker is not None]

    def drop_dead(self) -> None:
        """Remove the nodes that nobody reads any more, among those that were touched."""
        while self._suspects:
            node = self._suspects.pop()
            graph = node.graph
            if graph is None or any(value.uses() or value.is_graph_output() for value in node.outputs):
                continue
            self._suspect_inputs(node)
            self._suspects += release(node)
            graph.remove(node, safe=True)


def _key(tensor: Any) -> Any:
    return tensor.dtype, tuple(tensor.shape.numpy()), tensor.tobytes()


def _new_value(
    near: ir.Value, dtype: ir.DataType | None, dims: Sequence[Any] | None, name: str, root: bool = False
) -> ir.Value:
    if isinstance(near, Value):
        scope = near.scope.session.root if root else near.scope
        return Value(scope=scope, dtype=dtype, dims=None if dims is None else tuple(dims), name=name)
    value = ir.Value(name=name, type=None if dtype is None else ir.TensorType(dtype))
    set_dims(value, dims)
    return value


Rule = Callable[[ir.Node, Rewriter], bool]


class Rules:
    """Rules by operator, in the order in which they are tried."""

    def __init__(self) -> None:
        self.by_op: dict[str, list[Rule]] = {}

    def on(self, *op_types: str) -> Callable[[Rule], Rule]:
        """A rule for these operators; it returns whether it changed anything."""

        def add(rule: Rule) -> Rule:
            for op_type in op_types:
                self.by_op.setdefault(op_type, []).append(rule)
            return rule

        return add


class Rewrite(ir.passes.InPlacePass):
    """Try rules at each node, those before it done first; nodes that nobody reads go at once."""

    def __init__(self, *rules: Rules) -> None:
        super().__init__()
        self._rules: dict[str, tuple[Rule, ...]] = {}
        for each in rules:
            for op_type, found in each.by_op.items():
                self._rules[op_type] = (*self._rules.get(op_type, ()), *found)

    def call(self, model: ir.Model) -> ir.passes.PassResult:
        """Go through all graphs once."""
        rewriter = Rewriter(model)
        modified = False
        for graph, opset, in_function in graphs(model):
            rewriter.opset, rewriter.in_function = opset, in_function
            for node in graph:
                modified |= self._visit(node, rewriter)
        return ir.passes.PassResult(model, modified)

    def _visit(self, node: ir.Node, rewriter: Rewriter) -> bool:
        changed = False
        for _ in range(_MOST_STEPS):
            rules = self._rules.get(node.op_type) if not node.domain else None
            if rules is None or (
                rewriter.in_function and any(attr.is_ref() for attr in node.attributes.values())
            ):
                break
            if not any(rule(node, rewriter) for rule in rules):
                break
            changed = True
            rewriter.drop_dead()
            if node.graph is None:
                break
        return changed
