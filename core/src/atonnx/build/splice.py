"""Writing other nodes in the place of one, in a model that is already made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from atonnx.build.builder import Builder
from atonnx.build.metadata import Origin
from atonnx.build.scope import Scope, Session
from atonnx.build.value import Value
from atonnx.dispatch import OpsetTable
from atonnx.errors import BuildError

__all__ = ["Draft", "Splicer", "bodies"]

Write = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Nodes for the place of another, in a graph of their own; they have its metadata.

    They read stand-ins of what the node reads. The graph's outputs are the results.
    """

    node: ir.Node
    graph: ir.Graph
    stand_ins: tuple[tuple[ir.Value, ir.Value], ...]


class Splicer:
    """Replaces nodes of a model by what a Builder writes.

    ``draft`` writes; ``put`` brings it to the place of the node. A draft that is not put leaves no trace.
    A node of a draft can be replaced in turn, before the draft is put.
    """

    def __init__(self, model: ir.Model, opset_table: OpsetTable) -> None:
        self._model = model
        self._table = opset_table
        self._sessions: dict[int, Session] = {}
        self._constants: dict[Any, Value] = {}
        self._names: dict[str, int] = {}  # names in use, and how often each was asked for again

    def draft(
        self,
        node: ir.Node,
        write: Write,
        opset: int,
        *,
        in_function: bool = False,
        version: int | None = None,
    ) -> Draft | None:
        """What ``write(op, *inputs)`` writes for ``node``; None where it returns NotImplemented.

        ``op`` has the operators of the opset ``version``, else the newest ones, and writes for ``opset``.

        Raises:
            BuildError: the results are not what the node gives.
        """
        if opset not in self._sessions:
            self._sessions[opset] = Session(opset, self._table)
        scope = Scope(self._sessions[opset], "graph")
        if not in_function:
            scope.constants = self._constants
        op = Builder(scope, Origin(op=node.op_type, metadata=dict(node.metadata_props)))
        stand_ins = {value: _stand_in(value, scope) for value in node.inputs if value is not None}
        made = write(
            op if version is None else op.at(version),
            *[None if value is None else stand_ins[value] for value in node.inputs],
        )
        if made is NotImplemented:
            return None
        results = list(made) if isinstance(made, tuple) else [made]
        if len(results) != len(node.outputs):
            raise BuildError(f"{node.op_type} has {len(node.outputs)} outputs, {len(results)} were written")
        outputs = scope.graph.outputs
        for old, new in zip(node.outputs, results, strict=True):
            value = op.as_value(new)
            if old.dtype is not None and value.dtype != old.dtype:
                raise BuildError(f"{node.op_type} gives {old.dtype.name}, {value.dtype.name} was written")
            if value.producer() is None or value in outputs:
                value = op.Identity(value)
            outputs.append(value)
        return Draft(node, scope.graph, tuple(stand_ins.items()))

    def put(self, draft: Draft, *, in_function: bool = False, nested: bool = False) -> list[ir.Node]:
        """Bring a draft to the place of its node; the nodes that it consists of.

        The results have the names, sizes and metadata of the node's outputs. Constants become
        initializers, in a function Constant nodes. ``nested``: the place is in a draft.
        """
        node = draft.node
        graph: ir.Graph = node.graph  # type: ignore[assignment]
        for value, stand_in in draft.stand_ins:
            stand_in.replace_all_uses_with(value)
        made, results = list(draft.graph), list(draft.graph.outputs)
        draft.graph.outputs.clear()
        draft.graph.remove(made)
        if not nested:
            self._name(made, node, results)
            made = [*self._hold_constants(made, node, in_function), *made]
        graph.insert_before(node, made)
        for old, new in zip(node.outputs, results, strict=True):
            _take_place(old, new)
        graph.remove(node, safe=True)
        return made

    def _name(self, nodes: list[ir.Node], replaced: ir.Node, results: list[ir.Value]) -> None:
        if not self._names:
            for graph in [self._model.graph, *(f.graph for f in self._model.functions.values())]:
                for value in [*graph.inputs, *graph.initializers.values()]:
                    self._names.setdefault(value.name or "", 0)
                for value in _made_in(ir.traversal.RecursiveGraphIterator(graph)):
                    self._names.setdefault(value.name or "", 0)
        base = replaced.outputs[0].name or replaced.op_type.lower()
        for value in _made_in(_walk(nodes)):
            value.name = self._fresh(base)
        for old, new in zip(replaced.outputs, results, strict=True):
            new.name = old.name
        for inner in _walk(nodes):
            inner.name = f"node_{inner.outputs[0].name}"

    def _fresh(self, base: str) -> str:
        while True:
            count = self._names[base] = self._names.get(base, 0) + 1
            name = f"{base}_{count}"
            if name not in self._names:
                self._names[name] = 0
                return name

    def _hold_constants(self, nodes: list[ir.Node], near: ir.Node, in_function: bool) -> list[ir.Node]:
        """Make constants that nodes read initializers, or the outputs of the nodes that are returned."""
        held: dict[ir.Value, ir.Value] = {}
        holders = []
        for inner in _walk(nodes):
            for index, value in enumerate(inner.inputs):
                if value is None or not isinstance(value, Value) or value.const_value is None:
                    continue
                if value.producer() is not None or value.is_initializer() or value.is_graph_input():
                    continue
                if not in_function:
                    value.name = value.const_value.name = self._fresh("const")
                    self._model.graph.register_initializer(value)
                    continue
                if value not in held:
                    holder = _constant_node(value, self._fresh("const"), near)
                    held[value] = holder.outputs[0]
                    holders.append(holder)
                inner.replace_input_with(index, held[value])
        return holders


def _constant_node(value: Value, name: str, near: ir.Node) -> ir.Node:
    output = Value(
        scope=value.scope, dtype=value.dtype, dims=value.dims, name=name, const_value=value.const_value
    )
    return ir.Node(
        "",
        "Constant",
        (),
        [ir.Attr("value", ir.AttributeType.TENSOR, value.const_value)],
        outputs=[output],
        version=near.version,
        name=f"node_{name}",
        metadata_props=dict(near.metadata_props),
    )


def _stand_in(value: ir.Value, scope: Scope) -> Value:
    if isinstance(value, Value):
        made = Value(scope=scope, dtype=value.dtype, dims=value.dims, name=value.name)
        made.is_complex = value.is_complex
        made.content = value.content
        if value.producer() is None or value.producer().op_type == "Constant":  # type: ignore[union-attr]
            made.const_value = value.const_value
        return made
    dims = None
    if value.shape is not None:
        dims = tuple(size if isinstance(size, int) else None for size in value.shape)
    return Value(scope=scope, dtype=value.dtype, dims=dims, name=value.name, const_value=value.const_value)


def _take_place(old: ir.Value, new: ir.Value) -> None:
    new.metadata_props.update(old.metadata_props)
    if isinstance(old, Value) and isinstance(new, Value):
        new.is_complex, new.content = old.is_complex, old.content
        if old.dims is not None:
            new.scope, new.dims = old.scope, old.dims
    elif old.shape is not None:
        new.shape = old.shape
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def bodies(node: ir.Node) -> Iterator[ir.Graph]:
    """The graphs among a node's attributes."""
    for attr in node.attributes.values():
        if attr.is_ref():
            continue
        if attr.type is ir.AttributeType.GRAPH:
            yield attr.value
        elif attr.type is ir.AttributeType.GRAPHS:
            yield from attr.value


def _walk(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from _walk(body)


def _made_in(nodes: Iterable[ir.Node]) -> Iterator[ir.Value]:
    for node in nodes:
        yield from node.outputs
        for body in bodies(node):
            yield from body.inputs
